/* SPDX-License-Identifier: Apache-2.0 */
#include "heard-status.h"

#include "hashmap.h"
#include "late-status.h"
#include "string-util.h"
#include "token-bucket.h"

#define PROGRESS_USEC (10 * USEC_PER_SEC)

/* One Node of which something is to be written, or was; what the coordinator said last is the status's memory. */
typedef struct NodeWords {
        HeardStatuses *owner;
        char *node, *uid;
        LateStatus *late;
        HeardSay say;
        unsigned set; /* bit 1 << index of a type */
        usec_t progress_usec; /* loop_now(): figures were told last */
} NodeWords;

struct HeardStatuses {
        const TerminationContext *context;
        WorkQueue *queue;
        Hashmap *map; /* node -> NodeWords */
};

/* -- memory --------------------------------------------------------------------------------------------- */

static void *node_words_free(void *p) {
        NodeWords *x = p;

        late_status_free(x->late);
        free(x->node);
        free(x->uid);
        return mfree(x);
}

int heard_statuses_new(const TerminationContext *context, WorkQueue *queue, HeardStatuses **ret) {
        _cleanup_(heard_statuses_freep) HeardStatuses *h = NULL;
        int r;

        assert(context && queue && ret);
        h = new0(HeardStatuses, 1);
        if (!h)
                return -ENOMEM;
        h->context = context;
        h->queue = queue;
        r = hashmap_new(HASHMAP_BORROW_KEYS, &h->map);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(h);
        return 0;
}

HeardStatuses *heard_statuses_free(HeardStatuses *h) {
        if (!h)
                return NULL;
        hashmap_free_with(h->map, node_words_free);
        return mfree(h);
}

void heard_statuses_forget(HeardStatuses *h, const char *node) {
        NodeWords *x = hashmap_remove(h->map, node);

        if (x)
                node_words_free(x);
}

/* -- one node ------------------------------------------------------------------------------------------- */

/* The Node has become its agent's to speak of, or what was to be written is another's by now. */
static bool is_outdated(const NodeWords *x, const KubeNode *n) {
        if (!streq(x->uid, n->object.meta.uid) || (x->say != HEARD_SAY_AGENTS && heard_conditions_are_agents(n)))
                return true;
        for (size_t i = 0; i < HEARD_CONDITIONS; i++)
                if ((x->set & 1u << i) && !heard_condition_is_free(n, heard_condition_type(i)))
                        return true;
        return false;
}

/* The reconcile that is due for this change of the Node decides anew. */
static const KubeObject *on_node_now(void *userdata) {
        const NodeWords *x = userdata;
        const KubeNode *n = cluster_view_node(x->owner->context->view, x->node);

        return n && !is_outdated(x, n) ? &n->object : NULL;
}

static int node_words_new(HeardStatuses *h, const KubeNode *n, NodeWords **ret) {
        NodeWords *x = new0(NodeWords, 1);
        LateStatusOptions o = { .client = h->context->client,
                                .guard = h->context->guard,
                                .kind = &kube_node_kind,
                                .name = n->object.meta.name,
                                .of_version = true,
                                .object_now = on_node_now,
                                .userdata = x };
        int r;

        if (!x)
                return -ENOMEM;
        x->owner = h;
        if (free_and_strdup(&x->node, n->object.meta.name) < 0 || free_and_strdup(&x->uid, n->object.meta.uid) < 0)
                r = -ENOMEM;
        else
                r = late_status_new(&o, &x->late);
        if (r >= 0)
                r = hashmap_put(h->map, x->node, x);
        if (r < 0) {
                node_words_free(x);
                return r;
        }
        *ret = x;
        return 0;
}

bool heard_progress_may(const TerminationContext *context, usec_t told_usec, usec_t *ret_at) {
        usec_t now = loop_now(context->env->loop);

        *ret_at = usec_add(told_usec, PROGRESS_USEC);
        return now >= *ret_at && token_bucket_take(context->progress, now, ret_at);
}

/* Nothing but the figures of a drain is new. */
static bool is_progress(const NodeWords *x, const Condition *said, const Condition *c) {
        return x && x->say == HEARD_SAY_DRAINING && said && said->status == c->status && streq(strempty(said->reason), c->reason);
}

/* 0 or -ENOMEM. */
static int say_one(HeardStatuses *h, NodeWords **x, const KubeNode *n, const char *key, HeardSay say, size_t type, const HeardWords *words) {
        const char *name = heard_condition_type(type);
        usec_t at;
        _cleanup_free_ char *message = NULL;
        const Condition *said = kube_node_condition(n, name);
        Condition ours, c;
        int r;

        if (*x && late_status_condition((*x)->late, name, &ours))
                said = &ours;
        r = heard_condition_is_free(n, name) ? heard_condition(say, type, said, words, &c, &message) : 0;
        if (r <= 0)
                return r;
        if (say == HEARD_SAY_DRAINING && is_progress(*x, said, &c) && !heard_progress_may(h->context, (*x)->progress_usec, &at)) {
                (void) work_queue_add_at(h->queue, key, at);
                return 0;
        }
        if (!*x) {
                r = node_words_new(h, n, x);
                if (r < 0)
                        return r;
        }
        if (say == HEARD_SAY_DRAINING)
                (*x)->progress_usec = loop_now(h->context->env->loop);
        (*x)->set |= 1u << type;
        late_status_set_condition((*x)->late, name, c.status, c.reason, message);
        return 0;
}

void heard_statuses_say(HeardStatuses *h, const KubeNode *n, const char *key, HeardSay say, const HeardWords *words) {
        NodeWords *x = hashmap_get(h->map, n->object.meta.name);
        bool ends = say == HEARD_SAY_OVER || say == HEARD_SAY_OVERRULED;
        int r = 0;

        if (!x && ends && !heard_conditions_stand(n))
                return; /* as most nodes, which were never drained */
        if (say != HEARD_SAY_NOTHING && heard_conditions_are_agents(n))
                say = HEARD_SAY_AGENTS;
        if (x && (say == HEARD_SAY_NOTHING || is_outdated(x, n))) {
                heard_statuses_forget(h, x->node);
                x = NULL;
        }
        for (size_t i = 0; i < HEARD_CONDITIONS && r >= 0; i++)
                r = say_one(h, &x, n, key, say, i, words);
        if (r < 0)
                (void) work_queue_retry(h->queue, key);
        if (!x)
                return;
        x->say = say;
        if (ends && !late_status_is_told(x->late))
                late_status_flush(x->late); /* the coordinator itself may be about to go */
        else if (ends && r >= 0 && !heard_conditions_stand(n))
                heard_statuses_forget(h, x->node);
}

void heard_statuses_next_wakeup(const HeardStatuses *h, Wakeups *w) {
        const NodeWords *x;

        HASHMAP_FOREACH (x, h->map)
                late_status_next_wakeup(x->late, w);
}
