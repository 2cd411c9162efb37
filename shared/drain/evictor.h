/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The evictor: carries out standing wishes "this pod shall be evicted" for a whole process, in parallel,
 * within a window.
 *
 *   no PDB known          all together, as the window allows
 *   PDB known             one queue per PDB, serial. The queue's gate is the PDB's status where
 *                         somebody watches it (evictor_set_allowed(): the coordinator): while
 *                         disruptionsAllowed is 0 no request is sent, and the next goes out when the status
 *                         says there is room. Where nobody does (the agent) it is one probe at a time with
 *                         backoff and jitter.
 *   PDB that can never    (evictor_set_never()) each pod is asked for once, beside the queue, and again every 5 minutes,
 *   allow                 though the status allows nothing: operators use such a PDB on purpose, act on the eviction
 *                         *request* in an admission webhook, and move the pod themselves. The API server asks admission
 *                         webhooks before the PDB
 * A pod learns its PDB from whoever wished (hint), or from the refusal.
 *
 * What a status allows is counted down by each eviction; used up by that count alone, with no status since, the
 * queue asks for one more after 5 s.
 *
 * Answers other than final ones are retried here for as long as the wish stands. What is not the PDB's word (no
 * answer, 5xx, not allowed) is the pod's own trouble: it steps out of its queue, which goes on, and comes back by a
 * backoff of its own, behind the others. Whom an admission webhook answered for (it may be moving the pod itself) asks again
 * beside the queue, as the webhook is asked before the PDB: by a backoff of 30 s at the most, and 5 s after that answer
 * if the pod has changed (eviction_pod_changed()); every 5 minutes where the PDB never allows. Where several PDBs select it no eviction works until somebody edits: it is
 * asked again when a PDB of its namespace is edited (evictor_pdb_edited()) or the pod is (eviction_pod_edited()), and
 * every 5 minutes.
 *
 * How many leave at once, and in a second, says eviction-window.h.
 */

#include "eviction.h"
#include "kube-client.h"
#include "kube-kinds.h"
#include "wakeup.h"

typedef struct Evictor Evictor;
/* one wish: a slot; dropping it withdraws the wish (a call under way may still land) */
typedef struct Eviction Eviction;

typedef struct EvictionReport {
        EvictionAnswer answer;
        const char *by;                     /* name of the PDB or webhook that refused it, or NULL */
        const char *message;                /* the webhook's words, else the server's; "" on success */
        usec_t started_usec, finished_usec; /* loop_now() of the call */
        unsigned attempts;
} EvictionReport;

/* After each answer. The slot may be freed inside. After a final answer nothing more is done for this
 * wish. */
typedef void (*eviction_report_t)(Eviction *e, const EvictionReport *report, void *userdata);

/* Whether pods may be ended now, asked when a request is about to leave. While it is not given nothing
 * leaves, until evictor_go_on(). */
typedef struct EvictorPermit {
        bool (*is_given)(void *userdata); /* NULL: always */
        void *userdata;
} EvictorPermit;

typedef struct EvictorOptions {
        unsigned window_start, window_max; /* 0: 160 */
        unsigned per_second;               /* of evictions; 0: 500 */
        HttpGuard guard;                   /* each request */
        EvictorPermit permit;
} EvictorOptions;

int evictor_new(KubeClient *c, const EvictorOptions *o, Evictor **ret);
Evictor *evictor_free(Evictor *e); /* all wishes must be freed before */
DEFINE_FREEP(Evictor, evictor_free);

/* grace_sec -1: the pod's own. pdb: NULL, or the PDB known to match (a name in the pod's namespace). The pod
 * is not kept. */
int evictor_add(Evictor *e, const KubePod *pod, int64_t grace_sec, const char *pdb, eviction_report_t report,
                void *userdata, Eviction **ret);
Eviction *eviction_free(Eviction *e);
DEFINE_FREEP(Eviction, eviction_free);
/* The pod goes, or is gone: nothing more is wished. A call under way ends in peace instead of being torn off
 * (its answer still counts for its PDB's queue), but is not reported any more. NULL is fine; returns
 * NULL. */
Eviction *eviction_detach(Eviction *e);
bool eviction_is_under_way(const Eviction *e);           /* a request has been sent and not been answered */
void eviction_set_grace(Eviction *e, int64_t grace_sec); /* for the next request */
/* It waits behind a gate: the PDB's status allows nothing now, and so nothing is asked. */
bool eviction_is_held(const Eviction *e);
/* Its PDB never allows, and it is asked for all the same: now, or in a few minutes again. */
bool eviction_is_request(const Eviction *e);
/* The PDB that matches it now (NULL: none): moves the wish between queues. */
int eviction_set_pdb(Eviction *e, const char *pdb);

/* Its labels have changed: other PDBs may select it. */
void eviction_pod_edited(Eviction *e);
/* Anything of it has changed: a webhook may think otherwise of it now. */
void eviction_pod_changed(Eviction *e);

/* A PDB of that namespace came, went, or selects other pods. */
void evictor_pdb_edited(Evictor *e, const char *ns);
/* What the PDB's status says: evictions that may go out now. Gates the queue of this PDB from here on;
 * allowed > 0 wakes it. */
int evictor_set_allowed(Evictor *e, const char *ns, const char *pdb, int64_t allowed);
/* never: the PDB allows no eviction as it stands (kube_pdb_never_allows()). After evictor_set_allowed(), which made its queue. */
void evictor_set_never(Evictor *e, const char *ns, const char *pdb, bool never);
/* The PDB is gone, or nobody watches it any more: its pods go on without a gate. */
void evictor_forget_pdb(Evictor *e, const char *ns, const char *pdb);

/* For what else ends pods beside evictions. */
bool evictor_has_permit(const Evictor *e);

/* A place for a request that ends a pod in another way: as many at once as the window has, beside the evictions, and
 * of the same rate, before them. on_admitted comes once, from the loop, when the permit is given, too; it may end the
 * admission. Hold it until the answer is there. */
typedef struct EvictorAdmission EvictorAdmission;
typedef void (*evictor_admitted_t)(EvictorAdmission *a, void *userdata);
int evictor_admit(Evictor *e, evictor_admitted_t on_admitted, void *userdata, EvictorAdmission **ret);
bool evictor_admission_is_given(const EvictorAdmission *a);
/* reply: what came of the request, for the window; NULL: it was not sent, or its answer is not waited for. Returns
 * NULL; NULL is fine. */
EvictorAdmission *evictor_admission_end(EvictorAdmission *a, const KubeReply *reply);
/* What the permit depends on has changed: what waits for it goes. */
void evictor_go_on(Evictor *e);

/* The path to the API server came back: pending backoffs after no answer end now. */
void evictor_kick(Evictor *e);

typedef struct EvictorStats {
        uint64_t sent, answers[_EVICTION_ANSWER_MAX];
        size_t in_flight, waiting;
        unsigned window;
} EvictorStats;
EvictorStats evictor_stats(const Evictor *e);
/* Reports each wanted eviction without a final answer, and each admission that is not given yet. An eviction
 * that waits for its timer is sent again within EVICTOR_WAKEUP_USEC. */
#define EVICTOR_WAKEUP_USEC (10 * USEC_PER_MINUTE)
void evictor_next_wakeup(const Evictor *e, Wakeups *w);
