/* SPDX-License-Identifier: Apache-2.0 */
#include "evictor.h"

#include "backoff.h"
#include "eviction-window.h"
#include "hashmap.h"
#include "list.h"
#include "string-util.h"

/*
 * The life of a wish; wish_set_state() is its only writer, wish_edges has the legal steps:
 *
 *      LOOSE ---> QUEUED ---its PDB's turn---> READY ---window, rate---> IN_FLIGHT ---answer---> LOOSE
 *
 *   LOOSE      in no place: just made, answered, or moved between PDBs; never left so
 *   READY      in the evictor's ready list: goes out as soon as the window and the rate allow
 *   QUEUED     in its PDB's queue, behind others or behind a closed gate
 *   IN_FLIGHT  a request is under way
 *   RESTING    its timer runs; then it is READY, or QUEUED behind the others of its PDB
 *   DONE       finally answered; kept only because its slot is
 *
 * A queue (one PDB) has at most one active wish: READY, IN_FLIGHT, or RESTING as the queue's probe. A wish with
 * trouble of its own (no answer, 5xx, not allowed) rests beside its queue, which goes on without it; one that an admission
 * webhook answered for is READY and IN_FLIGHT beside it, too. So is, every 5 minutes, a wish behind a PDB that never allows
 * (`is_request`): between two requests it is RESTING.
 */

/* An eviction of a pod that is done or was not ready uses nothing of its PDB, whose status then says nothing
 * new: so long our own count closes a gate that the status leaves open. */
#define ROOM_USEC (5 * USEC_PER_SEC)
/* Where very many are under way their answers are taken in together. */
#define CROWD_STRETCH 3u
#define CALL_TIMEOUT_USEC (30 * USEC_PER_SEC) /* an eviction may take 10 s inside the API server */
#define REFUSED_USEC (5 * USEC_PER_SEC)
/* Until somebody edits nothing helps; this is for an edit that nobody has told us of. */
#define SEVERAL_PDBS_USEC (5 * USEC_PER_MINUTE)

/* Interval of the requests for one pod whose PDB never allows, and how long the PDB must be so before the first of them. While the
 * successor of a pod is being made every PDB looks so for a moment. */
#define NEVER_USEC (5 * USEC_PER_MINUTE)
#define NEVER_STANDS_USEC (5 * USEC_PER_SEC)
#define WEBHOOK_CHANGED_USEC (5 * USEC_PER_SEC)
/* So long at the most, whatever Retry-After a webhook asks for. */
#define WEBHOOK_USEC (30 * USEC_PER_SEC)

typedef enum WishState {
        WISH_LOOSE,
        WISH_READY,
        WISH_QUEUED,
        WISH_IN_FLIGHT,
        WISH_RESTING,
        WISH_DONE,
        _WISH_STATE_MAX,
} WishState;

#define TO(state) (1u << (state))
static const unsigned wish_edges[_WISH_STATE_MAX] = {
        [WISH_LOOSE] = TO(WISH_READY) | TO(WISH_QUEUED) | TO(WISH_RESTING) | TO(WISH_DONE),
        [WISH_READY] = TO(WISH_IN_FLIGHT) | TO(WISH_QUEUED) | TO(WISH_RESTING) | TO(WISH_LOOSE),
        [WISH_QUEUED] = TO(WISH_READY) | TO(WISH_RESTING) | TO(WISH_LOOSE),
        [WISH_IN_FLIGHT] = TO(WISH_LOOSE),
        [WISH_RESTING] = TO(WISH_READY) | TO(WISH_QUEUED) | TO(WISH_RESTING) | TO(WISH_LOOSE),
};

typedef struct PdbQueue {
        Evictor *evictor;
        char *key; /* "ns/name" */
        List waiting;
        Eviction *active;
        bool gated;       /* somebody watches this PDB's status */
        bool never;       /* it allows nothing as it stands ... */
        usec_t never_usec; /* ... since then, loop_now() */
        int64_t allowed;  /* what we think is left of it */
        int64_t reported; /* what the status said last */
        Backoff backoff;  /* of probes */
        size_t n_wishes;
} PdbQueue;

struct Eviction {
        Evictor *evictor;
        WishState state;
        ListNode node; /* in ready or in queue->waiting */
        ListNode all_node;
        PdbQueue *queue;
        char *ns, *name, *uid;
        int64_t grace_sec;
        unsigned attempts;
        EvictionAnswer last;
        int64_t allowed_at_send; /* of its queue, gated */
        bool waits_for_room;     /* resting: our own count says that its PDB is used up, no status did */
        bool counted;            /* a status that came since shows this eviction already */
        bool released;           /* nobody's any more: freed when its call is answered */
        bool is_request;         /* beside its queue, whose PDB never allows */
        usec_t requested_usec;   /* loop_now(): when such a request was answered last; 0: never */
        Backoff backoff, webhook_backoff;
        usec_t webhook_usec; /* loop_now(): when a webhook answered last */
        Timer *timer;
        KubeCall *call;
        eviction_report_t report;
        void *userdata;
};

struct EvictorAdmission {
        Evictor *evictor;
        ListNode node; /* in evictor->asking, until it is given */
        bool given;
        evictor_admitted_t on_admitted;
        void *userdata;
};

struct Evictor {
        KubeClient *client;
        Env *env;
        HttpGuard guard;
        EvictorPermit permit;
        List ready, all; /* wishes */
        List asking;     /* admissions that are not given yet */
        EvictionWindow window;
        bool is_crowd;
        Hashmap *queues;
        Timer *pump;
        EvictorStats stats;
};

static void on_pump(Timer *t, void *userdata);
static void on_wake(Timer *t, void *userdata);

int evictor_new(KubeClient *c, const EvictorOptions *o, Evictor **ret) {
        _cleanup_(evictor_freep) Evictor *e = NULL;
        int r;

        assert(c && ret);
        e = new0(Evictor, 1);
        if (!e)
                return -ENOMEM;

        e->client = c;
        e->env = kube_client_env(c);
        eviction_window_init(&e->window, o ? o->window_start : 0, o ? o->window_max : 0, o ? o->per_second : 0);
        if (o) {
                e->guard = o->guard;
                e->permit = o->permit;
        }
        r = hashmap_new(HASHMAP_BORROW_KEYS, &e->queues);
        if (r < 0)
                return r;
        r = timer_new(e->env->loop, "evictor", on_pump, e, &e->pump);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(e);
        return 0;
}

static void *pdb_queue_free(void *p) {
        PdbQueue *q = p;

        assert(q->n_wishes == 0);
        free(q->key);
        free(q);
        return NULL;
}

Evictor *evictor_free(Evictor *e) {
        if (!e)
                return NULL;
        assert(e->asking.size == 0 && e->window.n_admitted == 0);
        LIST_FOREACH (w, &e->all, Eviction, all_node) {
                assert(w->released);
                eviction_free(w);
        }
        hashmap_free_with(e->queues, pdb_queue_free);
        timer_free(e->pump);
        free(e);
        return NULL;
}

static void evictor_pump(Evictor *e) {
        if (e->ready.size > 0 || e->asking.size > 0)
                timer_arm_earlier(e->pump, e->window.closed_until_usec);
}

/* After each change of what is under way. */
static void evictor_set_pace(Evictor *e) {
        bool is_crowd = eviction_window_is_crowded(&e->window);

        if (is_crowd == e->is_crowd)
                return;
        e->is_crowd = is_crowd;
        loop_stretch_pace(e->env->loop, is_crowd ? CROWD_STRETCH : 1);
}

/* -- the place of a wish -------------------------------------------------------------------------------- */

static void wish_leave_place(Eviction *w) {
        Evictor *e = w->evictor;

        switch (w->state) {
        case WISH_READY:
                list_remove(&e->ready, &w->node);
                break;
        case WISH_QUEUED:
                list_remove(&w->queue->waiting, &w->node);
                break;
        case WISH_IN_FLIGHT:
                w->call = kube_call_free(w->call);
                eviction_window_gives_back_eviction(&e->window);
                evictor_set_pace(e);
                evictor_pump(e);
                break;
        case WISH_RESTING:
                timer_disarm(w->timer);
                w->waits_for_room = false;
                break;
        case WISH_LOOSE:
        case WISH_DONE:
                break;
        case _WISH_STATE_MAX:
                assert(false && "a wish without a state");
        }
}

/* The last of its list; of RESTING the caller sets the timer, of IN_FLIGHT the call. */
static void wish_set_state(Eviction *w, WishState to) {
        Evictor *e = w->evictor;

        assert(wish_edges[w->state] & TO(to));
        wish_leave_place(w);
        w->state = to;
        switch (to) {
        case WISH_READY:
                list_append(&e->ready, &w->node);
                evictor_pump(e);
                break;
        case WISH_QUEUED:
                list_append(&w->queue->waiting, &w->node);
                break;
        case WISH_IN_FLIGHT: /* the window has counted it */
                evictor_set_pace(e);
                break;
        case WISH_RESTING:
        case WISH_LOOSE:
        case WISH_DONE:
                break;
        case _WISH_STATE_MAX:
                assert(false && "a wish without a state");
        }
}

static void wish_rest(Eviction *w, usec_t delay_usec) {
        wish_set_state(w, WISH_RESTING);
        timer_arm_in(w->timer, delay_usec);
}

/* Before the others of its list, which had it first. */
static void wish_go_first(Eviction *w) {
        List *l = w->state == WISH_READY ? &w->evictor->ready : &w->queue->waiting;

        assert(w->state == WISH_READY || w->state == WISH_QUEUED);
        list_remove(l, &w->node);
        list_prepend(l, &w->node);
}

/* -- one PDB's queue ------------------------------------------------------------------------------------ */

static int evictor_queue(Evictor *e, const char *ns, const char *pdb, PdbQueue **ret) {
        _cleanup_free_ char *key = strf("%s/%s", ns, pdb);
        PdbQueue *q;
        int r;

        if (!key)
                return -ENOMEM;
        *ret = hashmap_get(e->queues, key);
        if (*ret)
                return 0;

        q = new0(PdbQueue, 1);
        if (!q)
                return -ENOMEM;
        q->evictor = e;
        q->key = TAKE_PTR(key);
        q->backoff = (Backoff){ .base_usec = 500 * USEC_PER_MSEC,
                                .cap_usec = 10 * USEC_PER_SEC,
                                .jitter_permille = 200 };
        r = hashmap_put(e->queues, q->key, q);
        if (r < 0) {
                pdb_queue_free(q);
                return r;
        }
        *ret = q;
        return 0;
}

static void queue_collect(PdbQueue *q) {
        if (q->n_wishes > 0 || q->gated)
                return;
        hashmap_remove(q->evictor->queues, q->key);
        pdb_queue_free(q);
}

/* Its status says that it allows no disruption. */
static bool queue_is_closed(const PdbQueue *q) {
        return q->gated && q->reported <= 0;
}

/* Lets the next wish of this PDB go, if its gate is open and none is under way. */
static void queue_promote(PdbQueue *q) {
        Eviction *w;

        if (q->active || queue_is_closed(q))
                return;
        w = LIST_ENTRY(q->waiting.first, Eviction, node);
        if (!w)
                return;
        q->active = w;
        if (q->gated && q->allowed <= 0) {
                wish_rest(w, ROOM_USEC);
                w->waits_for_room = true;
        } else
                wish_set_state(w, WISH_READY);
}

/* Its PDB never allows: asked for all the same now, or when it is time. */
static void wish_request(Eviction *w) {
        usec_t now = loop_now(w->evictor->env->loop), at = usec_add(w->queue->never_usec, NEVER_STANDS_USEC);

        if (w->requested_usec > 0)
                at = MAX(at, usec_add(w->requested_usec, NEVER_USEC));
        w->is_request = true;
        if (now >= at)
                wish_set_state(w, WISH_READY);
        else
                wish_rest(w, at - now);
}

static void wish_enqueue(Eviction *w) {
        w->is_request = false;
        if (!w->queue)
                wish_set_state(w, WISH_READY);
        else if (w->queue->never && queue_is_closed(w->queue))
                wish_request(w);
        else {
                wish_set_state(w, WISH_QUEUED);
                queue_promote(w->queue);
        }
}

/* The gate of this queue has opened, or its PDB never allows, or may again: each wish goes where it belongs now. */
static void queue_sort_anew(PdbQueue *q) {
        LIST_FOREACH (w, &q->evictor->all, Eviction, all_node)
                if (w->queue == q && q->active != w && (w->state == WISH_QUEUED || (w->is_request && w->state != WISH_IN_FLIGHT))) {
                        wish_set_state(w, WISH_LOOSE);
                        wish_enqueue(w);
                }
}

/* A webhook is asked before the PDB, and may take its time: it holds up nobody else of its queue. Where the PDB allows
 * nothing there is no use in asking it. */
static bool wish_may_go_beside(const Eviction *w) {
        return w->last == EVICTION_WEBHOOK && w->queue && (!w->queue->gated || w->queue->allowed > 0);
}

/* It has rested. */
static void wish_wake(Eviction *w) {
        if ((w->queue && w->queue->active == w) || wish_may_go_beside(w)) {
                w->is_request = false;
                wish_set_state(w, WISH_READY);
        } else
                wish_enqueue(w);
}

static bool answer_is_of_pdb(EvictionAnswer a) {
        return a == EVICTION_BLOCKED_BY_PDB || a == EVICTION_PDB_NOT_OBSERVED;
}

/* The gate closed before the active wish left, or was taken: back to the head of its queue. */
static void queue_call_back(PdbQueue *q) {
        Eviction *w = q->active;

        if (!w || w->state == WISH_IN_FLIGHT)
                return;
        q->active = NULL;
        wish_set_state(w, WISH_QUEUED);
        wish_go_first(w);
}

/* The others of its PDB need not wait for it any more. */
static void wish_step_out(Eviction *w) {
        if (!w->queue || w->queue->active != w)
                return;
        w->queue->active = NULL;
        queue_promote(w->queue);
}

/* Between two places: LOOSE. q NULL: no PDB. */
static void wish_set_queue(Eviction *w, PdbQueue *q) {
        PdbQueue *old = w->queue;

        assert(w->state == WISH_LOOSE || w->state == WISH_DONE);
        if (q == old)
                return;
        wish_step_out(w);
        w->queue = q;
        if (q)
                q->n_wishes++;
        if (old) {
                old->n_wishes--;
                queue_collect(old);
        }
}

/* -- wishes --------------------------------------------------------------------------------------------- */

int evictor_add(Evictor *e, const KubePod *pod, int64_t grace_sec, const char *pdb, eviction_report_t report,
                void *userdata, Eviction **ret) {
        _cleanup_(eviction_freep) Eviction *w = NULL;
        const ObjectMeta *m;
        int r;

        assert(e && pod && report && ret);
        m = &pod->object.meta;
        w = new0(Eviction, 1);
        if (!w)
                return -ENOMEM;

        w->evictor = e;
        w->last = _EVICTION_ANSWER_INVALID;
        w->grace_sec = grace_sec;
        w->report = report;
        w->userdata = userdata;
        w->backoff = (Backoff){ .base_usec = 250 * USEC_PER_MSEC,
                                .cap_usec = 10 * USEC_PER_SEC,
                                .jitter_permille = 200 };
        w->webhook_backoff = (Backoff){ .base_usec = USEC_PER_SEC,
                                        .cap_usec = WEBHOOK_USEC,
                                        .jitter_permille = 200 };
        list_append(&e->all, &w->all_node);
        if (free_and_strdup(&w->ns, m->ns) < 0 || free_and_strdup(&w->name, m->name) < 0 ||
            free_and_strdup(&w->uid, m->uid) < 0)
                return -ENOMEM;
        r = timer_new(e->env->loop, "eviction", on_wake, w, &w->timer);
        if (r < 0)
                return r;
        if (pdb) {
                PdbQueue *q;

                r = evictor_queue(e, w->ns, pdb, &q);
                if (r < 0)
                        return r;
                wish_set_queue(w, q);
        }

        wish_enqueue(w);
        *ret = TAKE_PTR(w);
        return 0;
}

Eviction *eviction_free(Eviction *w) {
        if (!w)
                return NULL;
        if (w->state != WISH_LOOSE && w->state != WISH_DONE)
                wish_set_state(w, WISH_LOOSE);
        wish_set_queue(w, NULL);
        list_remove(&w->evictor->all, &w->all_node);
        timer_free(w->timer);
        free(w->ns);
        free(w->name);
        free(w->uid);
        free(w);
        return NULL;
}

bool eviction_is_under_way(const Eviction *w) {
        return w->state == WISH_IN_FLIGHT;
}

Eviction *eviction_detach(Eviction *w) {
        if (!w || !eviction_is_under_way(w))
                return eviction_free(w);
        w->released = true;
        return NULL;
}

void eviction_set_grace(Eviction *w, int64_t grace_sec) {
        w->grace_sec = grace_sec;
}

bool eviction_is_held(const Eviction *w) {
        return w->state == WISH_QUEUED && queue_is_closed(w->queue);
}

bool eviction_is_request(const Eviction *w) {
        return w->is_request;
}

int eviction_set_pdb(Eviction *w, const char *pdb) {
        PdbQueue *q = NULL;
        int r;

        if (w->state == WISH_DONE || w->state == WISH_IN_FLIGHT)
                return 0; /* its answer will say where it belongs */
        if (pdb) {
                r = evictor_queue(w->evictor, w->ns, pdb, &q);
                if (r < 0)
                        return r; /* it stays where it is */
        }
        if (q == w->queue)
                return 0;
        wish_set_state(w, WISH_LOOSE);
        wish_set_queue(w, q);
        /* Told that no PDB is asked where the API server has just asked one: the two may go on
         * disagreeing. */
        if (!q && answer_is_of_pdb(w->last))
                wish_rest(w, backoff_next(&w->backoff, w->evictor->env->random));
        else
                wish_enqueue(w);
        return 0;
}

static bool wish_waits_for_edit(const Eviction *w) {
        return w->state == WISH_RESTING && w->last == EVICTION_SEVERAL_PDBS;
}

void eviction_pod_edited(Eviction *w) {
        if (wish_waits_for_edit(w))
                wish_wake(w);
}

void eviction_pod_changed(Eviction *w) {
        if (w->state == WISH_RESTING && w->last == EVICTION_WEBHOOK && !w->waits_for_room)
                timer_arm_earlier(w->timer, usec_add(w->webhook_usec, WEBHOOK_CHANGED_USEC));
}

void evictor_pdb_edited(Evictor *e, const char *ns) {
        LIST_FOREACH (w, &e->all, Eviction, all_node)
                if (wish_waits_for_edit(w) && streq(w->ns, ns))
                        wish_wake(w);
}

int evictor_set_allowed(Evictor *e, const char *ns, const char *pdb, int64_t allowed) {
        bool was_closed;
        PdbQueue *q;
        int r;

        r = evictor_queue(e, ns, pdb, &q);
        if (r < 0)
                return r;
        was_closed = queue_is_closed(q);
        q->gated = true;
        q->allowed = q->reported = allowed;
        backoff_reset(&q->backoff);
        if (q->active && q->active->state == WISH_IN_FLIGHT && allowed < q->active->allowed_at_send)
                q->active->counted = true;
        if (allowed <= 0)
                queue_call_back(q);
        else if (q->active && q->active->state == WISH_RESTING &&
                 (q->active->waits_for_room || answer_is_of_pdb(q->active->last)))
                wish_wake(q->active);
        if (q->never && was_closed != queue_is_closed(q))
                queue_sort_anew(q);
        queue_promote(q);
        return 0;
}

void evictor_set_never(Evictor *e, const char *ns, const char *pdb, bool never) {
        _cleanup_free_ char *key = strf("%s/%s", ns, pdb);
        PdbQueue *q = key ? hashmap_get(e->queues, key) : NULL;

        if (!q || q->never == never)
                return;
        q->never = never;
        q->never_usec = loop_now(e->env->loop);
        if (queue_is_closed(q))
                queue_sort_anew(q);
}

void evictor_forget_pdb(Evictor *e, const char *ns, const char *pdb) {
        _cleanup_free_ char *key = strf("%s/%s", ns, pdb);
        PdbQueue *q = key ? hashmap_get(e->queues, key) : NULL;

        if (!q)
                return;
        q->gated = false;
        if (q->never)
                queue_sort_anew(q);
        q->never = false;
        queue_promote(q);
        queue_collect(q);
}

void evictor_kick(Evictor *e) {
        LIST_FOREACH (w, &e->all, Eviction, all_node) {
                if (w->state != WISH_RESTING || w->last != EVICTION_NO_ANSWER)
                        continue;
                backoff_reset(&w->backoff);
                wish_wake(w);
        }
}

bool evictor_has_permit(const Evictor *e) {
        return !e->permit.is_given || e->permit.is_given(e->permit.userdata);
}

void evictor_go_on(Evictor *e) {
        evictor_pump(e);
}

static void on_wake(Timer *t, void *userdata) {
        wish_wake(userdata);
}

/* -- answers -------------------------------------------------------------------------------------------- */

static void evictor_learn(Evictor *e, EvictionAnswer a, const KubeReply *reply) {
        eviction_window_learns(&e->window, a, usec_sub(reply->finished_usec, reply->started_usec),
                               reply->error ? reply->error->retry_after_usec : 0, loop_now(e->env->loop));
}

/* A failure of this pod's own: it steps out, and comes back behind the others of its PDB. */
static void wish_rest_alone(Eviction *w, usec_t at_least_usec) {
        usec_t delay = backoff_next(&w->backoff, w->evictor->env->random);

        wish_rest(w, MAX(delay, at_least_usec));
        wish_step_out(w);
}

/* The PDB never allows, and the request was answered: the next one is due in five minutes. */
static void wish_was_requested(Eviction *w) {
        w->requested_usec = loop_now(w->evictor->env->loop);
        wish_enqueue(w);
}

/* The PDB said no: the wish waits in its queue, as probe or behind the gate. */
static void wish_blocked(Eviction *w, const char *pdb, usec_t retry_after_usec) {
        PdbQueue *q = w->queue;

        if ((pdb || !q) && evictor_queue(w->evictor, w->ns, strempty(pdb), &q) < 0) {
                wish_rest_alone(w, REFUSED_USEC);
                return;
        }
        wish_set_queue(w, q);
        if (q->active && q->active != w) {
                wish_enqueue(w);
                return;
        }
        if (queue_is_closed(q)) {
                q->active = NULL;
                q->allowed = 0;
                wish_set_state(w, WISH_QUEUED);
                wish_go_first(w);
                return;
        }
        /* Nobody watches it, or its status says yes while the API server says no: ask again later, one at a
         * time. */
        q->active = w;
        wish_rest(w, MAX(backoff_next(&q->backoff, w->evictor->env->random), retry_after_usec));
}

static void wish_done(Eviction *w, EvictionAnswer a) {
        PdbQueue *q = w->queue;

        wish_set_state(w, WISH_DONE);
        if (q && a == EVICTION_ACCEPTED) {
                if (q->allowed > 0 && !w->counted)
                        q->allowed--;
                backoff_reset(&q->backoff);
        }
        wish_set_queue(w, NULL);
}

/* Somebody else decides about this pod, and perhaps moves it himself. */
static void wish_answered_by_webhook(Eviction *w, usec_t retry_after_usec) {
        usec_t delay = backoff_next(&w->webhook_backoff, w->evictor->env->random);

        w->webhook_usec = loop_now(w->evictor->env->loop);
        if (w->is_request) {
                wish_was_requested(w);
                return;
        }
        wish_rest(w, MAX(delay, MIN(retry_after_usec, WEBHOOK_USEC)));
        wish_step_out(w);
}

static void wish_handle(Eviction *w, EvictionAnswer a, const char *by, usec_t retry_after_usec) {
        switch (a) {
        case EVICTION_ACCEPTED:
        case EVICTION_GONE:
        case EVICTION_REPLACED:
                wish_done(w, a);
                break;
        case EVICTION_BLOCKED_BY_PDB:
        case EVICTION_PDB_NOT_OBSERVED:
                wish_blocked(w, by, retry_after_usec);
                break;
        case EVICTION_PDB_NEVER_ALLOWS:
                wish_was_requested(w);
                break;
        case EVICTION_WEBHOOK:
                wish_answered_by_webhook(w, retry_after_usec);
                break;
        case EVICTION_FLOW_CONTROL:
                if (w->queue && queue_is_closed(w->queue)) { /* since it was sent */
                        if (w->queue->active == w)
                                queue_call_back(w->queue);
                        else
                                wish_enqueue(w);
                        break;
                }
                wish_set_state(w, WISH_READY);
                wish_go_first(w);
                break;
        case EVICTION_SEVERAL_PDBS:
                wish_rest_alone(w, MAX(retry_after_usec, SEVERAL_PDBS_USEC));
                break;
        case EVICTION_NAMESPACE_TERMINATING:
        case EVICTION_FORBIDDEN:
        case EVICTION_REFUSED_FOR_GOOD:
                wish_rest_alone(w, MAX(retry_after_usec, REFUSED_USEC));
                break;
        case EVICTION_SERVER_BUSY:
        case EVICTION_NO_ANSWER:
                wish_rest_alone(w, retry_after_usec);
                break;
        case _EVICTION_ANSWER_MAX:
        case _EVICTION_ANSWER_INVALID:
                assert(false && "an eviction without an answer");
        }
}

static void on_answer(const KubeReply *reply, void *userdata) {
        Eviction *w = userdata;
        Evictor *e = w->evictor;
        usec_t retry_after = reply->error ? reply->error->retry_after_usec : 0;
        _cleanup_free_ char *by = NULL;
        EvictionReport report = {};
        EvictionAnswer a;

        a = eviction_classify(reply->error, &by);
        if (w->is_request && answer_is_of_pdb(a))
                a = EVICTION_PDB_NEVER_ALLOWS;
        wish_set_state(w, WISH_LOOSE);
        w->last = a;
        e->stats.answers[a]++;
        evictor_learn(e, a, reply);
        wish_handle(w, a, by, retry_after);
        if (w->released) {
                eviction_free(w);
                return;
        }

        report = (EvictionReport){
                .answer = a,
                .by = by,
                .message = eviction_words(reply->error),
                .started_usec = reply->started_usec,
                .finished_usec = reply->finished_usec,
                .attempts = w->attempts,
        };
        w->report(w, &report, w->userdata); /* may free the wish */
}

static int wish_send(Eviction *w) {
        Evictor *e = w->evictor;
        KubeCallOptions o = { .lane = HTTP_LANE_BULK,
                              .timeout_usec = CALL_TIMEOUT_USEC,
                              .guard = e->guard,
                              .object_unread = true };
        int r;

        r = kube_evict(e->client, w->ns, w->name, w->uid, w->grace_sec, &o, on_answer, w, &w->call);
        if (r < 0)
                return r;
        wish_set_state(w, WISH_IN_FLIGHT);
        w->attempts++;
        w->counted = false;
        w->allowed_at_send = w->queue ? w->queue->allowed : 0;
        e->stats.sent++;
        return 0;
}

/* -- what else ends pods -------------------------------------------------------------------------------- */

int evictor_admit(Evictor *e, evictor_admitted_t on_admitted, void *userdata, EvictorAdmission **ret) {
        EvictorAdmission *a = new0(EvictorAdmission, 1);

        assert(e && on_admitted && ret);
        if (!a)
                return -ENOMEM;
        a->evictor = e;
        a->on_admitted = on_admitted;
        a->userdata = userdata;
        list_append(&e->asking, &a->node);
        evictor_pump(e);
        *ret = a;
        return 0;
}

bool evictor_admission_is_given(const EvictorAdmission *a) {
        return a->given;
}

EvictorAdmission *evictor_admission_end(EvictorAdmission *a, const KubeReply *reply) {
        Evictor *e;

        if (!a)
                return NULL;
        e = a->evictor;
        if (a->given) {
                eviction_window_gives_back_admission(&e->window);
                evictor_set_pace(e);
        } else
                list_remove(&e->asking, &a->node);
        if (reply)
                evictor_learn(e, eviction_classify(reply->error, NULL), reply);
        evictor_pump(e);
        return mfree(a);
}

/* -- what leaves now ------------------------------------------------------------------------------------ */

/* What must be gone by its time. */
static void evictor_give_admissions(Evictor *e, usec_t now) {
        usec_t at = USEC_INFINITY;

        while (e->asking.size > 0 && eviction_window_takes_admission(&e->window, now, &at)) {
                EvictorAdmission *a = LIST_ENTRY(e->asking.first, EvictorAdmission, node);

                list_remove(&e->asking, &a->node);
                a->given = true;
                evictor_set_pace(e);
                a->on_admitted(a, a->userdata);
        }
        if (e->asking.size > 0)
                timer_arm_earlier(e->pump, at);
}

/* It goes beside its queue, whose gate has closed while it waited for the window. */
static bool wish_went_stale(const Eviction *w) {
        return w->queue && w->queue->active != w && !w->is_request && queue_is_closed(w->queue);
}

static void evictor_send_evictions(Evictor *e, usec_t now) {
        usec_t at = USEC_INFINITY;

        while (e->ready.size > 0 &&
               eviction_window_takes_eviction(&e->window, kube_client_under_way(e->client), now, &at)) {
                Eviction *w = LIST_ENTRY(e->ready.first, Eviction, node);

                if (wish_went_stale(w)) {
                        eviction_window_gives_back_eviction(&e->window);
                        wish_enqueue(w);
                        continue;
                }
                if (wish_send(w) >= 0)
                        continue;
                /* out of memory: this one rests, so that others may end and give some back */
                eviction_window_gives_back_eviction(&e->window);
                wish_rest(w, USEC_PER_SEC);
        }
        if (e->ready.size > 0)
                timer_arm_earlier(e->pump, at);
}

static void on_pump(Timer *t, void *userdata) {
        Evictor *e = userdata;
        usec_t now = loop_now(e->env->loop);

        if ((e->ready.size == 0 && e->asking.size == 0) || !evictor_has_permit(e))
                return;
        evictor_give_admissions(e, now);
        evictor_send_evictions(e, now);
}

EvictorStats evictor_stats(const Evictor *e) {
        EvictorStats s = e->stats;

        s.window = e->window.size;
        s.in_flight = e->window.n_evictions;
        s.waiting = e->all.size;
        return s;
}

/* -- tests ---------------------------------------------------------------------------------------------- */

static const char *const wish_names[_WISH_STATE_MAX] = {
        [WISH_LOOSE] = "in no list", [WISH_READY] = "ready",     [WISH_QUEUED] = "queued",
        [WISH_IN_FLIGHT] = "sent",   [WISH_RESTING] = "resting", [WISH_DONE] = "done",
};

/* Reports what sends the evictions that are ready: the pump's timer, or an answer that makes room in the
 * window. */
static void report_pump(const Evictor *e, Wakeups *w) {
        wakeups_timer(w, e->pump);
        wakeups_await(w, !evictor_has_permit(e) || e->window.n_evictions + e->window.n_admitted > 0 ||
                                 kube_client_under_way(e->client) > 0);
}

static void report_eviction(const Eviction *x, Wakeups *w) {
        const PdbQueue *q = x->queue;

        wakeups_unfinished(w, "eviction of pod", x->name, wish_names[x->state], EVICTOR_WAKEUP_USEC);
        wakeups_timer(w, x->timer);
        if (x->state == WISH_READY)
                report_pump(x->evictor, w);
        /* The watch of the PDB, or the eviction of another pod of the PDB, wakes it. */
        if (x->state == WISH_QUEUED)
                wakeups_await(w, q && (queue_is_closed(q) || q->active));
        wakeups_await(w, x->state == WISH_IN_FLIGHT && x->call);
}

void evictor_next_wakeup(const Evictor *e, Wakeups *w) {
        LIST_FOREACH (x, &e->all, Eviction, all_node)
                if (x->state != WISH_DONE)
                        report_eviction(x, w);
        if (e->asking.size == 0)
                return;
        wakeups_unfinished(w, "admission of", "deletes", "not given", EVICTOR_WAKEUP_USEC);
        report_pump(e, w);
}
