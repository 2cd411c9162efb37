/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Calls that wait for their answer, watches that collect, and makers of what cases stand on. Texts of JSON
 * may be written with ' for ". */

#include "api-error.h"
#include "contract-rig.h"
#include "kube-scheduling.h"
#include "string-util.h"

/* -- answers -------------------------------------------------------------------------------------- */

typedef struct Answer {
        unsigned status; /* 0: none came */
        ApiError error;  /* http 0 and error 0 for a success */
        char *body;
        size_t body_size; /* of rig_http() */
        JsonDoc *doc;
        const Json *json; /* NULL: the body is none */
        usec_t started_usec, finished_usec;
        usec_t date_usec; /* http_date() */
} Answer;

void answer_done(Answer *a);
#define _cleanup_answer_ _cleanup_(answer_done)
/* The string at that path; NULL if it is none. */
const char *answer_string(const Answer *a, ...) __attribute__((sentinel));
/* The integer at that path; INT64_MIN if it is none. */
int64_t answer_int(const Answer *a, ...) __attribute__((sentinel));
#define answer_name(a) answer_string((a), "metadata", "name", NULL)
#define answer_uid(a) answer_string((a), "metadata", "uid", NULL)
#define answer_version(a) answer_string((a), "metadata", "resourceVersion", NULL)
/* "a b c" of a list, in its order; free it. */
char *answer_names(const Answer *a);
/* The condition (or taint, or whatever has that key) of a list; NULL if there is none. */
const Json *json_find(const Json *list, const char *key, const char *value);

/* Fails the case, showing the body, unless it was answered so. reason NULL: a success, or a failure without
 * reason. */
void check_answer(const Answer *a, unsigned status, const char *reason, const char *file, int line);
#define assert_answer(a, status, reason) check_answer(&(a), (status), (reason), __FILE__, __LINE__)

/* -- calls ---------------------------------------------------------------------------------------- */

extern const KubeKind contract_namespace_kind, contract_event_kind, contract_ndb_kind;

#define NODE(n) ((KubeTarget){ .kind = &kube_node_kind, .name = (n) })
#define NODE_STATUS(n) ((KubeTarget){ .kind = &kube_node_kind, .name = (n), .subresource = "status" })
#define POD(s, n) ((KubeTarget){ .kind = &kube_pod_kind, .ns = (s), .name = (n) })
#define POD_STATUS(s, n) \
        ((KubeTarget){ .kind = &kube_pod_kind, .ns = (s), .name = (n), .subresource = "status" })
#define PDB(s, n) ((KubeTarget){ .kind = &kube_pdb_kind, .ns = (s), .name = (n) })
#define PDB_STATUS(s, n) \
        ((KubeTarget){ .kind = &kube_pdb_kind, .ns = (s), .name = (n), .subresource = "status" })
#define LEASE(s, n) ((KubeTarget){ .kind = &kube_lease_kind, .ns = (s), .name = (n) })
#define EVENT(s, n) ((KubeTarget){ .kind = &contract_event_kind, .ns = (s), .name = (n) })
#define NAMESPACE(n) ((KubeTarget){ .kind = &contract_namespace_kind, .name = (n) })
#define CLAIM(n) ((KubeTarget){ .kind = &kube_node_claim_kind, .name = (n) })
#define CLAIM_STATUS(n) ((KubeTarget){ .kind = &kube_node_claim_kind, .name = (n), .subresource = "status" })
#define POOL(n) ((KubeTarget){ .kind = &kube_node_pool_kind, .name = (n) })
#define POOL_STATUS(n) ((KubeTarget){ .kind = &kube_node_pool_kind, .name = (n), .subresource = "status" })
#define NDB(n) ((KubeTarget){ .kind = &contract_ndb_kind, .name = (n) })
#define NDB_STATUS(n) ((KubeTarget){ .kind = &contract_ndb_kind, .name = (n), .subresource = "status" })
#define PVC(s, n) ((KubeTarget){ .kind = &kube_pvc_kind, .ns = (s), .name = (n) })
#define PV(n) ((KubeTarget){ .kind = &kube_volume_kind, .name = (n) })
#define STORAGE_CLASS(n) ((KubeTarget){ .kind = &kube_storage_class_kind, .name = (n) })
#define CSI_NODE(n) ((KubeTarget){ .kind = &kube_csi_node_kind, .name = (n) })
#define ATTACHMENT(n) ((KubeTarget){ .kind = &kube_volume_attachment_kind, .name = (n) })

Answer rig_get(Rig *r, RigWho who, KubeTarget t);
/* t: without a name. */
Answer rig_list(Rig *r, RigWho who, KubeTarget t, const KubeListOptions *o);
/* Formats a body, and writes " for each '. The caller frees it. */
char *rig_text(const char *fmt, va_list ap) _printf_(1, 0);
Answer rig_create(Rig *r, RigWho who, KubeTarget t, const char *fmt, ...) _printf_(4, 5);
Answer rig_update(Rig *r, RigWho who, KubeTarget t, const char *fmt, ...) _printf_(4, 5);
Answer rig_patch(Rig *r, RigWho who, KubeTarget t, KubePatchType type, const char *fmt, ...) _printf_(5, 6);
#define rig_merge(r, who, t, ...) rig_patch((r), (who), (t), KUBE_PATCH_MERGE, __VA_ARGS__)
/* A merge patch, to see what would come of it (dryRun=All). */
Answer rig_merge_dry(Rig *r, RigWho who, KubeTarget t, const char *fmt, ...) _printf_(4, 5);
/* The body goes as it is. */
Answer rig_patch_raw(Rig *r, RigWho who, KubeTarget t, KubePatchType type, const char *body);
Answer rig_update_raw(Rig *r, RigWho who, KubeTarget t, const char *body);
/* o NULL: nothing special. */
Answer rig_delete(Rig *r, RigWho who, KubeTarget t, const KubeDeleteOptions *o);
/* grace_sec -1: the pod's own. */
Answer rig_evict(Rig *r, RigWho who, const char *ns, const char *name, const char *uid, int64_t grace_sec);
/* The same, to see what would come of it (dryRun=All). */
Answer rig_evict_dry(Rig *r, RigWho who, const char *ns, const char *name, const char *uid);

/* Past the client: a path with query, a body as it is. type NULL: no body. */
Answer rig_http(Rig *r, RigWho who, HttpMethod method, const char *path, const char *type, const char *body);
/* The same with an Accept header. */
Answer rig_http_accept(Rig *r, RigWho who, HttpMethod method, const char *path, const char *accept,
                       const char *type, const char *body);
/* With which version of HTTP a request of this lane is answered: 11, 20; 0: there is no network. */
unsigned rig_http_version(Rig *r, HttpLane lane);

/* -- watches -------------------------------------------------------------------------------------- */

typedef struct RigWatch {
        Rig *rig;
        KubeCall *call;
        StrBuf seen;       /* "ADDED a, DELETED a", since the last look; ERROR with its code */
        uint64_t version;  /* of the last event but bookmarks */
        bool out_of_order; /* versions went back */
        unsigned n_bookmarks;
        uint64_t bookmark; /* version of the last one */
        bool ended;
        int error; /* of the end: 0 was clean */
        bool protobuf; /* what came; known at the end */
        unsigned status;
        char *error_reason; /* of an ERROR event */
} RigWatch;

/* version NULL: from what is there now; timeout_sec 0: the server's own. */
RigWatch *rig_watch(Rig *r, RigWho who, KubeTarget t, const KubeWatchOptions *o);
RigWatch *rig_watch_free(RigWatch *w);
DEFINE_FREEP(RigWatch, rig_watch_free);
#define _cleanup_watch_ _cleanup_(rig_watch_freep)
/* Waits for just these, and takes them. */
void check_watch(RigWatch *w, const char *expected, const char *file, int line);
#define assert_watch(w, expected) check_watch((w), (expected), __FILE__, __LINE__)
/* Until the stream ended. */
bool rig_watch_wait_end(RigWatch *w);
/* Until a bookmark came, and not the end before it. */
bool rig_watch_wait_bookmark(RigWatch *w, usec_t timeout_usec);

/* -- makers --------------------------------------------------------------------------------------- */

void rig_make_namespace(Rig *r, const char *name);
void rig_make_node(Rig *r, const char *name);
/* The newest state, decoded; *p is freed first if it is there. */
KubeNode *rig_node(Rig *r, const char *name);
static inline void kube_node_freep(KubeNode **n) {
        if (*n)
                kube_object_unref(&(*n)->object);
}
#define _cleanup_node_ _cleanup_(kube_node_freep)

/* Running and Ready, with label app. node NULL: bound to none. Returns its uid; free it. */
char *rig_make_pod(Rig *r, const char *ns, const char *name, const char *node, const char *app);
/* The same with what `spec` adds to its spec ("'terminationGracePeriodSeconds': 5", "" for nothing), and
 * left Pending. */
char *rig_make_pending_pod(Rig *r, const char *ns, const char *name, const char *node, const char *app,
                           const char *spec);
void rig_set_pod_status(Rig *r, const char *ns, const char *name, const char *phase, bool ready);
/* n pods app-0000, app-0001, ..., many at a time; they stay Pending. */
void rig_make_pods(Rig *r, const char *ns, const char *app, unsigned n, const char *node);
/* Over the pods of that app: maxUnavailable 1, and a status that its controller might have written. */
void rig_make_pdb(Rig *r, const char *ns, const char *name, const char *app, const char *more);
void rig_set_pdb_status(Rig *r, const char *ns, const char *name, int64_t observed, int64_t allowed,
                        int64_t current, int64_t desired);
void rig_make_claim(Rig *r, const char *name);
