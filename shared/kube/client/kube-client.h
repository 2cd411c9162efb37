/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One API server, one identity. Calls are slots: dropping one cancels, no callback comes after; `done` comes once, from the
 * loop. Nothing is retried here but a GET or LIST whose connection died before an answer (once): a caller knows best what a
 * lost answer means for it (a call that lands late is harmless: it has a precondition, or is idempotent).
 *
 * 401: the credential is looked at again and the call repeated once. 429 and 503 with Retry-After come to the caller. Calls
 * made before the first credential is there are held, for as long as their time-out allows.
 */

#include "api-error.h"
#include "env.h"
#include "http-transport.h"
#include "kube-auth.h"
#include "kube-object.h"

typedef struct KubeClient KubeClient;
typedef struct KubeCall KubeCall;

typedef struct KubeReply {
        const ApiError *error; /* NULL: success (2xx) */
        unsigned status;
        const Json *object;    /* the body, parsed; NULL for an empty one and for raw lists */
        const char *body;      /* NUL-terminated */
        bool protobuf;         /* lists: that is what the body is; watches: that is what came */
        size_t body_size;
        usec_t started_usec, finished_usec; /* loop_now(): when the request left, when the answer was whole */
        const HttpResponse *response;       /* as it came: its headers */
} KubeReply;

typedef void (*kube_done_t)(const KubeReply *reply, void *userdata);

/* Who gives way to whom where the API server has much to do.
 *
 * What people read lets a crowd pass: 16 or more calls of the ranks before it, of the first rank writes (a Lease is
 * none). A crowd that stands for 10 s it no longer waits for: it goes out one at a time beside it, in its order, so
 * that nothing starves. Without a crowd 32 of it are under way together, and never more of what follows a drain,
 * which waits for nothing else: a node that is empty is to go while others still drain, and the evictor counts these
 * calls into its window (kube_client_under_way()).
 *
 * A call that waits has not begun: its time-out counts from its turn on. */
typedef enum KubeRank {
        KUBE_RANK_FIRST,   /* at once; all that has a deadline */
        KUBE_RANK_FOLLOWS, /* what ends nodes, of which many may come together: a claim's deletion, a drained node's
                              proof, finalizers */
        KUBE_RANK_TELLS,   /* for people: an Event, a condition */
        _KUBE_RANK_MAX,
} KubeRank;

typedef struct KubeCallOptions {
        HttpLane lane;          /* zero: urgent */
        usec_t timeout_usec;    /* 0: 10 s (evictions: 30 s); kube_client_limit() has the last word */
        HttpGuard guard;        /* may_send NULL: unguarded */
        size_t max_response_bytes; /* 0: 4 MiB; lists 64 MiB */
        KubeRank rank;
        bool dry_run; /* of patches and evictions: the server says what would come of it, and changes nothing */
        bool object_unread; /* nobody looks at the object in the answer: it is checked to be JSON, and KubeReply.object is NULL */
        /* Of what has waited its turn: the body as it would be now, allocated, or NULL: as it was. May not touch
         * the client's calls. NULL: never asked. */
        char *(*body_now)(void *userdata);
} KubeCallOptions;

/* What a call is about. For list and create `name` is NULL; ns NULL on a namespaced list: all namespaces. */
typedef struct KubeTarget {
        const KubeKind *kind;
        const char *ns, *name;
        const char *subresource; /* "status", "eviction"; NULL: the object itself */
} KubeTarget;

typedef enum KubePatchType { KUBE_PATCH_MERGE, KUBE_PATCH_STRATEGIC, KUBE_PATCH_JSON } KubePatchType;

typedef struct KubeDeleteOptions {
        const char *uid, *resource_version; /* preconditions; NULL: none */
        int64_t grace_sec;                  /* -1: the object's own */
        const char *propagation;            /* "Background", ...; NULL: default */
        bool dry_run;
} KubeDeleteOptions;

typedef struct KubeListOptions {
        const char *label_selector, *field_selector;
        unsigned limit;                /* 0: no paging */
        const char *continue_token;
        const char *resource_version;  /* NULL: consistent read; "0": from the cache */
        const char *resource_version_match; /* "Exact", "NotOlderThan"; NULL: absent */
        bool protobuf;                 /* asks for it, if the kind has a shape. What came KubeReply says: a server may not
                                          speak it */
} KubeListOptions;

/* auth: owned by the caller, outlives the client. field_manager: "vesper-agent". */
int kube_client_new(Env *env, KubeAuth *auth, const char *server, const char *field_manager, KubeClient **ret);
KubeClient *kube_client_free(KubeClient *c); /* all calls must be freed before */
DEFINE_FREEP(KubeClient, kube_client_free);
KubeCall *kube_call_free(KubeCall *c);
DEFINE_FREEP(KubeCall, kube_call_free);
/* Each call from now on acts as that user (headers Impersonate-*; kubectl's --as), for which the credential needs the permission
 * to impersonate. uid, groups: NULL: none; of groups at most KUBE_GROUPS_MAX. -EINVAL: more, or a text that is empty or no header's
 * value. Texts are copied. */
#define KUBE_GROUPS_MAX 16u
int kube_client_impersonate(KubeClient *c, const char *user, const char *uid, char *const *groups);
/* Each call from now on but watches may take so long, whatever its options say (kubectl's --request-timeout). 0: as they say. */
void kube_client_limit(KubeClient *c, usec_t timeout_usec);
InternPool *kube_client_pool(KubeClient *c); /* strings of all objects decoded for this client's users */
Env *kube_client_env(KubeClient *c);
KubeAuth *kube_client_auth(KubeClient *c); /* borrowed */
/* A new credential arrived: held calls go out. The client listens to its KubeAuth by itself; calling it again is harmless. */
void kube_client_auth_ready(void *client);

/* options NULL: all zero. ret NULL: fire and forget (freed after `done`; `done` may be NULL too). */
int kube_get(KubeClient *c, const KubeTarget *t, const KubeCallOptions *o, kube_done_t done, void *userdata, KubeCall **ret);
int kube_list(KubeClient *c, const KubeTarget *t, const KubeListOptions *l, const KubeCallOptions *o, kube_done_t done,
              void *userdata, KubeCall **ret);
/* body: JSON text, copied. The content type follows the type. */
int kube_patch(KubeClient *c, const KubeTarget *t, KubePatchType type, const char *body, const KubeCallOptions *o,
               kube_done_t done, void *userdata, KubeCall **ret);
int kube_create(KubeClient *c, const KubeTarget *t, const char *body, const KubeCallOptions *o, kube_done_t done,
                void *userdata, KubeCall **ret);
int kube_update(KubeClient *c, const KubeTarget *t, const char *body, const KubeCallOptions *o, kube_done_t done,
                void *userdata, KubeCall **ret); /* PUT: the Lease only */
int kube_delete(KubeClient *c, const KubeTarget *t, const KubeDeleteOptions *d, const KubeCallOptions *o, kube_done_t done,
                void *userdata, KubeCall **ret);
/* policy/v1 Eviction of a pod. uid: precondition, required. grace_sec -1: the pod's own. Default lane: bulk. */
int kube_evict(KubeClient *c, const char *ns, const char *name, const char *uid, int64_t grace_sec, const KubeCallOptions *o,
               kube_done_t done, void *userdata, KubeCall **ret);

/* A watch: one event at a time. on_event gets each event's type ("ADDED" "MODIFIED" "DELETED" "BOOKMARK" "ERROR") and
 * object; returning < 0 ends the watch. `done` comes once when the stream ended, error NULL for a clean end. */
typedef int (*kube_watch_event_t)(const char *type, const Json *object, void *userdata);

typedef struct KubeWatchOptions {
        const char *label_selector, *field_selector, *resource_version;
        unsigned timeout_sec; /* asked of the server */
        usec_t stall_usec;    /* no byte for so long: -ETIMEDOUT; before the first one 19 s */
        bool without_unread;  /* objects come without what their kind does not read (KubeKind.unread) */
        bool protobuf;        /* as in KubeListOptions; only with without_unread. A type of event that we do not know is then
                                 "" */
        bool coalesced;         /* HttpRequest.coalesced */
} KubeWatchOptions;

int kube_watch(KubeClient *c, const KubeTarget *t, const KubeWatchOptions *w, kube_watch_event_t on_event, kube_done_t done,
               void *userdata, KubeCall **ret);

/* Writes of KUBE_RANK_FIRST, and calls of KUBE_RANK_FOLLOWS, that were sent, or wait for a credential, and are not
 * answered; Leases are none. */
size_t kube_client_under_way(const KubeClient *c);

/* Keeps a connection of this lane open by a small request (GET /version) whenever it was quiet for interval_usec. */
int kube_client_keep_warm(KubeClient *c, HttpLane lane, usec_t interval_usec);

/* Told when a request finds no way to the server (no route, no address for its name: -EHOSTUNREACH), and when one is answered
 * again: changes only. fn NULL: nobody. It may not free the client. */
typedef void (*kube_path_fn)(bool has_path, void *userdata);
void kube_client_on_path(KubeClient *c, kube_path_fn fn, void *userdata);

/* Counters by verb for metrics, HACKING.md's figures and tests: requests that left, by verb. */
typedef enum KubeVerb {
        KUBE_VERB_GET, KUBE_VERB_LIST, KUBE_VERB_WATCH, KUBE_VERB_CREATE, KUBE_VERB_UPDATE, KUBE_VERB_PATCH, KUBE_VERB_DELETE,
        KUBE_VERB_EVICT, _KUBE_VERB_MAX,
} KubeVerb;
uint64_t kube_client_requests(const KubeClient *c, KubeVerb v);
const char *kube_verb_to_string(KubeVerb v);
