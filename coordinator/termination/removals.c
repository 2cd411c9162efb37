/* SPDX-License-Identifier: Apache-2.0 */
#include "removals.h"

#include "coordinator-metrics.h"
#include "hashmap.h"
#include "string-util.h"

/* Changes of its pods are gathered for this long before a draining node is stepped. Where the drain is ours, it
 * hears of them itself, and says when it has ended. */
#define TOGETHER_USEC (20 * USEC_PER_MSEC)
#define OURS_TOGETHER_USEC (200 * USEC_PER_MSEC)
/* For at least this long after the last change of any removal the pods' watch is read at once. */
#define IMMEDIATE_USEC USEC_PER_MINUTE

/* One Node that is being removed. */
typedef struct Removal {
        char *node;
        NodeTermination *termination;
        NodeTerminationState state; /* as of the last step */
        usec_t counted_usec; /* loop_now(): the wait for protected pods is in the metric up to here */
        usec_t blocked_usec; /* loop_now(): likewise the time that it was blocked */
        bool blocked_by[_BLOCKED_BY_MAX]; /* what blocked it at the last step or page of metrics */
        usec_t stepped_usec; /* loop_now(): the last step */
        usec_t deleted_usec; /* wall clock: when its removal began; the Node's deletionTimestamp is in whole seconds */
} Removal;

struct Removals {
        const TerminationContext *context;
        Hashmap *removals;     /* node -> Removal */
        bool is_immediate;     /* http_transport_set_immediate() */
        usec_t moved_usec;     /* loop_now(): when one of them did last */
        Timer *coalesce_timer; /* armed while is_immediate: do they still? */
};

static void *removal_free(void *p) {
        Removal *x = p;

        node_termination_free(x->termination);
        free(x->node);
        free(x);
        return NULL;
}

static usec_t now_of(const Removals *r) {
        return loop_now(r->context->env->loop);
}

/* -- how closely pods are followed ---------------------------------------------------------------------- */

static bool any_awaits_pods(const Removals *r) {
        const Removal *x;

        HASHMAP_FOREACH (x, r->removals)
                if (node_termination_awaits_pods(x->termination))
                        return true;
        return false;
}

static void set_immediate(Removals *r, bool is_immediate) {
        if (is_immediate && !r->is_immediate)
                timer_arm_in(r->coalesce_timer, IMMEDIATE_USEC);
        else if (!is_immediate)
                timer_disarm(r->coalesce_timer);
        if (is_immediate != r->is_immediate)
                http_transport_set_immediate(r->context->env->transport, is_immediate);
        r->is_immediate = is_immediate;
}

void removals_moved(Removals *r) {
        r->moved_usec = now_of(r);
        set_immediate(r, true);
}

static void on_coalesce_timer(Timer *t, void *userdata) {
        Removals *r = userdata;
        usec_t now = now_of(r), until = usec_add(r->moved_usec, IMMEDIATE_USEC);

        if (now < until)
                timer_arm(r->coalesce_timer, until);
        else if (any_awaits_pods(r))
                timer_arm_in(r->coalesce_timer, IMMEDIATE_USEC);
        else
                set_immediate(r, false);
}

/* -- life ----------------------------------------------------------------------------------------------- */

int removals_new(const TerminationContext *context, Removals **ret) {
        _cleanup_(removals_freep) Removals *r = NULL;
        int k;

        assert(context && ret);
        r = new0(Removals, 1);
        if (!r)
                return -ENOMEM;
        r->context = context;
        k = hashmap_new(HASHMAP_BORROW_KEYS, &r->removals);
        if (k < 0)
                return k;
        k = timer_new(context->env->loop, "coalesce_timer", on_coalesce_timer, r, &r->coalesce_timer);
        if (k < 0)
                return k;
        *ret = TAKE_PTR(r);
        return 0;
}

Removals *removals_free(Removals *r) {
        if (!r)
                return NULL;
        hashmap_free_with(r->removals, removal_free);
        timer_free(r->coalesce_timer);
        http_transport_set_immediate(r->context->env->transport, false);
        return mfree(r);
}

NodeTermination *removals_get(const Removals *r, const char *node) {
        const Removal *x = hashmap_get(r->removals, node);

        return x ? x->termination : NULL;
}

/* -- what is counted ------------------------------------------------------------------------------------ */

/* Whole seconds; the rest is counted with the next ones. */
static uint64_t take_seconds(usec_t *since_usec, usec_t now_usec) {
        uint64_t sec = usec_sub(now_usec, *since_usec) / USEC_PER_SEC;

        *since_usec = usec_add(*since_usec, sec * USEC_PER_SEC);
        return sec;
}

/* As it goes, not only when the wait is over: it may last for days. */
static void count_protected(Removals *r, Removal *x) {
        if (x->state == NODE_TERMINATION_PROTECTED)
                metrics_add(r->context->metrics, METRIC_PROTECTED_SECONDS, 0,
                            take_seconds(&x->counted_usec, now_of(r)));
}

/* The time that has passed is that of what blocked it meanwhile, not of what has come just now. */
static void count_blocked(Removals *r, Removal *x) {
        uint64_t sec = take_seconds(&x->blocked_usec, now_of(r));

        for (size_t i = 0; i < _BLOCKED_BY_MAX; i++)
                if (x->blocked_by[i] && sec > 0)
                        metrics_add(r->context->metrics, METRIC_BLOCKED_SECONDS, i, sec);
        node_termination_blocked_by(x->termination, x->blocked_by);
}

void removals_measure(Removals *r) {
        size_t states[_NODE_TERMINATION_STATE_MAX] = {}, blocked[_BLOCKED_BY_MAX] = {};
        Removal *x;

        HASHMAP_FOREACH (x, r->removals) {
                states[x->state]++;
                count_protected(r, x);
                count_blocked(r, x);
                for (size_t i = 0; i < _BLOCKED_BY_MAX; i++)
                        blocked[i] += x->blocked_by[i];
        }
        for (size_t i = 0; i < _BLOCKED_BY_MAX; i++)
                metrics_set(r->context->metrics, METRIC_BLOCKED, i, (double) blocked[i]);
        for (size_t i = 0; i < ELEMENTSOF(states); i++)
                metrics_set(r->context->metrics, METRIC_TERMINATIONS, i, (double) states[i]);
}

void removals_unmeasure(Metrics *m) {
        for (size_t i = 0; i < _NODE_TERMINATION_STATE_MAX; i++)
                metrics_set(m, METRIC_TERMINATIONS, i, 0);
        for (size_t i = 0; i < _BLOCKED_BY_MAX; i++)
                metrics_set(m, METRIC_BLOCKED, i, 0);
}

/* -- one removal ---------------------------------------------------------------------------------------- */

static void removal_note_state(Removals *r, Removal *x) {
        NodeTerminationState s = node_termination_state(x->termination);
        usec_t now = now_of(r);

        count_blocked(r, x);
        if (s == x->state)
                return;
        count_protected(r, x);
        x->state = s;
        x->counted_usec = now;
        removals_moved(r);
}

static void removal_drop(Removals *r, Removal *x) {
        if (x->state == NODE_TERMINATION_DONE) {
                usec_t took = usec_sub(loop_wall(r->context->env->loop), x->deleted_usec);

                metrics_add(r->context->metrics, METRIC_TERMINATIONS_FINISHED, 0, 1);
                metrics_observe(r->context->metrics, METRIC_TERMINATION_SECONDS, 0,
                                (double) took / (double) USEC_PER_SEC);
        }
        hashmap_remove(r->removals, x->node);
        removal_free(x);
        if (hashmap_size(r->removals) == 0)
                set_immediate(r, false);
}

static void removal_step(Removals *r, Removal *x) {
        x->stepped_usec = now_of(r);
        node_termination_reconsider(x->termination);
        removal_note_state(r, x);
        if (x->state == NODE_TERMINATION_DONE)
                removal_drop(r, x);
        else if (!r->is_immediate && node_termination_awaits_pods(x->termination))
                set_immediate(r, true);
}

int removals_begin(Removals *r, const KubeNode *n) {
        Removal *x = new0(Removal, 1);
        int k;

        if (!x)
                return -ENOMEM;
        x->counted_usec = x->blocked_usec = now_of(r);
        x->deleted_usec = node_termination_begun(n, loop_wall(r->context->env->loop));
        k = free_and_strdup(&x->node, n->object.meta.name);
        if (k >= 0)
                k = node_termination_new(r->context, n, &x->termination);
        if (k >= 0) {
                x->state = node_termination_state(x->termination);
                k = hashmap_put(r->removals, x->node, x);
        }
        if (k < 0) {
                removal_free(x);
                return k;
        }
        metrics_add(r->context->metrics, METRIC_TERMINATIONS_STARTED, 0, 1);
        removal_step(r, x);
        return 0;
}

void removals_end_others(Removals *r, const KubeNode *n) {
        Removal *x = hashmap_get(r->removals, n->object.meta.name);

        if (!x || streq(node_termination_uid(x->termination), n->object.meta.uid))
                return;
        node_termination_reconsider(x->termination); /* it may be done */
        removal_note_state(r, x);
        removal_drop(r, x);
}

void removals_step(Removals *r, const char *node) {
        removal_step(r, hashmap_get(r->removals, node));
}

/* -- news ----------------------------------------------------------------------------------------------- */

bool removals_on_pod(Removals *r, const char *node, const KubePod *old, const KubePod *new) {
        Removal *x = hashmap_get(r->removals, node);

        if (!x)
                return false;
        if (!old || !new || (new->object.meta.deletion_usec > 0 && old->object.meta.deletion_usec == 0))
                removals_moved(r);
        node_termination_on_pod(x->termination, old, new);
        return true;
}

/* Of a Node that has left: its claim need not name it, for the claim's status may never have been written. */
void removals_on_claim_gone(Removals *r, const char *claim) {
        Removal *x;

        HASHMAP_FOREACH (x, r->removals)
                if (streq_ptr(node_termination_claim(x->termination), claim))
                        r->context->requeue(x->node, 0, r->context->userdata);
}

usec_t removals_due(const Removals *r, const char *node) {
        const Removal *x = hashmap_get(r->removals, node);

        if (!x || node_termination_state(x->termination) != NODE_TERMINATION_DRAINING)
                return 0;
        return usec_add(x->stepped_usec, node_termination_drains(x->termination) ? OURS_TOGETHER_USEC : TOGETHER_USEC);
}

void removals_next_wakeup(const Removals *r, const WorkQueue *queue, Wakeups *w) {
        const Removal *x;

        HASHMAP_FOREACH (x, r->removals)
                node_termination_next_wakeup(x->termination, queue, w);
        if (!r->is_immediate)
                return;
        wakeups_unfinished(w, "reads of", "pods", "uncoalesced", IMMEDIATE_USEC);
        wakeups_timer(w, r->coalesce_timer);
}
