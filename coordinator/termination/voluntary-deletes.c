/* SPDX-License-Identifier: Apache-2.0 */
#include "voluntary-deletes.h"

#include "budget-gate.h"
#include "hashmap.h"
#include "log.h"
#include "pauses.h"
#include "string-util.h"

#define ASKED_MAX 16u
#define PAUSE_USEC USEC_PER_SEC
/* One that was refused is asked for again after so long, if no budget changed before. */
#define AGAIN_USEC USEC_PER_MINUTE
/* What is not deleted by then is asked for again: its charge may have ended. */
#define ADMITTED_USEC USEC_PER_MINUTE

struct VoluntaryDeletes {
        const TerminationContext *context;
        WorkQueue *queue;
        Hashmap *nodes; /* by name */
        size_t n_asked;
        usec_t paused_until_usec; /* loop_now() */
};

typedef struct Wish {
        VoluntaryDeletes *deletes;
        char *node, *uid, *key;
        const char *why;
        BudgetRequest *request;    /* while the ledger is asked */
        usec_t admitted_until_usec, refused_until_usec; /* loop_now() */
        char *told;
} Wish;

static void *wish_free(void *p) {
        Wish *w = p;

        if (w->request)
                w->deletes->n_asked--;
        budget_request_free(w->request);
        free(w->node);
        free(w->uid);
        free(w->key);
        free(w->told);
        return mfree(w);
}

static Wish *wish_new(VoluntaryDeletes *d, const KubeNode *n, const char *why, const char *key) {
        Wish *w = new0(Wish, 1);

        if (!w)
                return NULL;
        w->deletes = d;
        w->why = why;
        if (free_and_strdup(&w->node, n->object.meta.name) < 0 || free_and_strdup(&w->uid, n->object.meta.uid) < 0 ||
            free_and_strdup(&w->key, key) < 0 || hashmap_put(d->nodes, w->node, w) < 0)
                return wish_free(w);
        return w;
}

static usec_t now_of(const VoluntaryDeletes *d) {
        return loop_now(d->context->env->loop);
}

static void mark_dirty(Wish *w, usec_t at_usec) {
        if (at_usec == 0)
                (void) work_queue_add(w->deletes->queue, w->key);
        else
                (void) work_queue_add_at(w->deletes->queue, w->key, at_usec);
}

static void tell_refused(Wish *w, const char *message) {
        const KubeNode *n = cluster_view_node(w->deletes->context->view, w->node);
        EventObject o;

        if (!n || streq_ptr(w->told, message))
                return;
        (void) free_and_strdup(&w->told, message);
        o = event_object(&n->object);
        event_record(w->deletes->context->recorder, &o, EVENT_NORMAL, "DeletionWaits", "Is to be deleted, as %s: %s", w->why, message);
}

static void on_answered(BudgetAnswer a, const char *message, void *userdata) {
        Wish *w = userdata;
        VoluntaryDeletes *d = w->deletes;
        usec_t now = now_of(d);

        if (a == BUDGET_REFUSED)
                tell_refused(w, message);
        d->n_asked--;
        w->request = budget_request_free(w->request); /* the message goes with it */
        if (a == BUDGET_ADMITTED) {
                w->admitted_until_usec = usec_add(now, ADMITTED_USEC);
                mark_dirty(w, 0);
                return;
        }
        d->paused_until_usec = usec_add(now, PAUSE_USEC);
        w->refused_until_usec = usec_add(now, a == BUDGET_REFUSED ? AGAIN_USEC : PAUSE_USEC);
        mark_dirty(w, w->refused_until_usec);
}

static void ask(VoluntaryDeletes *d, Wish *w, const KubeNode *n) {
        const BudgetAsk question = budget_ask_delete(n, false);
        int r = budget_ledger_ask(d->context->ledger, &question, on_answered, w, &w->request);

        if (r >= 0)
                d->n_asked++;
        else {
                log_warning_errno(d->context->env->log, r, "Failed to ask the budgets of node %s, retrying: %m", w->node);
                mark_dirty(w, usec_add(now_of(d), PAUSE_USEC));
        }
}

bool voluntary_delete_is_admitted(VoluntaryDeletes *d, const KubeNode *n, const KubeNodePool *pool, const char *why,
                                  const char *key) {
        Wish *w = hashmap_get(d->nodes, n->object.meta.name);
        const BudgetAsk question = budget_ask_delete(n, false);
        usec_t now = now_of(d);

        if (w && !streq(w->uid, n->object.meta.uid)) {
                voluntary_deletes_forget(d, n->object.meta.name);
                w = NULL;
        }
        if (w && !streq(w->key, key) && free_and_strdup(&w->key, key) < 0) { /* the answer marks the key of the last caller */
                work_queue_note_lost(d->queue);
                return false;
        }
        if (pauses_is_paused(d->context->pauses, pool))
                return false; /* all nodes of the pool are looked at when it is no more */
        if (!budget_ledger_concerns(d->context->ledger, &question))
                return true;
        if (w && w->request)
                return false; /* the answer to the request marks the key */
        if (w && now < w->refused_until_usec) {
                /* This reconcile has consumed the earlier time of the key. */
                mark_dirty(w, w->refused_until_usec);
                return false;
        }
        if (w && now < w->admitted_until_usec)
                return true;
        if (!w)
                w = wish_new(d, n, why, key);
        if (!w) {
                work_queue_note_lost(d->queue);
                return false;
        }
        if (d->n_asked >= ASKED_MAX || now < d->paused_until_usec)
                mark_dirty(w, MAX(d->paused_until_usec, usec_add(now, PAUSE_USEC / 4)));
        else
                ask(d, w, n);
        return false;
}

bool voluntary_delete_is_asked(const VoluntaryDeletes *d, const char *node) {
        const Wish *w = hashmap_get(d->nodes, node);

        return w && w->request;
}

void voluntary_deletes_forget(VoluntaryDeletes *d, const char *node) {
        Wish *w = hashmap_remove(d->nodes, node);

        if (w)
                wish_free(w);
}

void voluntary_deletes_budgets_changed(VoluntaryDeletes *d) {
        Wish *w;

        d->paused_until_usec = 0;
        HASHMAP_FOREACH (w, d->nodes)
                if (w->refused_until_usec > 0) {
                        w->refused_until_usec = 0;
                        mark_dirty(w, 0);
                }
}

int voluntary_deletes_new(const TerminationContext *context, WorkQueue *queue, VoluntaryDeletes **ret) {
        _cleanup_(voluntary_deletes_freep) VoluntaryDeletes *d = new0(VoluntaryDeletes, 1);
        int r;

        if (!d)
                return -ENOMEM;
        d->context = context;
        d->queue = queue;
        r = hashmap_new(HASHMAP_BORROW_KEYS, &d->nodes);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(d);
        return 0;
}

VoluntaryDeletes *voluntary_deletes_free(VoluntaryDeletes *d) {
        if (!d)
                return NULL;
        hashmap_free_with(d->nodes, wish_free);
        return mfree(d);
}
