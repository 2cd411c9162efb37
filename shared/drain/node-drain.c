/* SPDX-License-Identifier: Apache-2.0 */
#include "node-drain-internal.h"

#include "log.h"
#include "string-util.h"

/* Pods of one node go in quick succession, each with several changes: they are looked at together. */
#define TOGETHER_USEC (20 * USEC_PER_MSEC)
/* Interval at which the drain reports changes that need no action of its own. */
#define TELL_USEC (500 * USEC_PER_MSEC)
/* Limit, from the moment at which this drain finds T passed, until which deletes wait for their place
 * (evictor_admit()). After it the pods end with their machine. A drain that begins after T sends deletes, too. */
#define ADMITTED_WITHIN_USEC (10 * USEC_PER_SEC)
/* Where one pod after the other is not as we knew it (etcd was restored), one list serves several of them. */
#define LIST_GAP_USEC (150 * USEC_PER_MSEC)
/* A proof is as old as its question, but for so long its answer counts however late it came: where a list takes longer
 * than a proof may be old, there would never be one that is young enough. */
#define PROOF_FRESH_USEC USEC_PER_SEC
/* Number of pods that one drain reports by DRAIN_POD_LEFT_ALONE. */
#define LEFT_ALONE_REPORTED_MAX 5u
#define LIST_MAX_BYTES (64u * 1024u * 1024u)
/* Pods per page if all pods of a node together exceed LIST_MAX_BYTES. JSON may write one byte as six: a pod
 * of the 1.5 MB that etcd takes may have 9 MB. */
#define LIST_PAGE_PODS 5u

static const char *const state_table[_NODE_DRAIN_STATE_MAX] = {
        [NODE_DRAIN_DRAINING] = "Draining",
        [NODE_DRAIN_PROVING] = "Proving",
        [NODE_DRAIN_DRAINED] = "Drained",
        [NODE_DRAIN_EXPIRED] = "Expired",
};

const char *node_drain_state_to_string(NodeDrainState s) {
        return s >= 0 && s < _NODE_DRAIN_STATE_MAX ? state_table[s] : NULL;
}

static void on_timer(Timer *t, void *userdata);

/* An answer to our own question, of which there is one at a time. */
void node_drain_act_at_once(NodeDrain *d) {
        timer_arm_earlier(d->timer, 0);
}

void node_drain_tell_later(NodeDrain *d) {
        timer_arm_earlier(d->timer, d->acted_usec > 0 ? usec_add(d->acted_usec, TELL_USEC) : 0);
}

int node_drain_new(KubeClient *c, Evictor *evictor, const NodeDrainOptions *o, const NodeDrainHandler *h,
                   NodeDrain **ret) {
        _cleanup_(node_drain_freep) NodeDrain *d = NULL;
        int r;

        assert(c && evictor && o && o->node && h && h->on_changed && h->iterate && ret);
        d = new0(NodeDrain, 1);
        if (!d)
                return -ENOMEM;

        d->client = c;
        d->env = kube_client_env(c);
        d->evictor = evictor;
        d->handler = *h;
        d->rules = o->rules;
        d->guard = o->guard;
        d->proof_backoff = d->list_backoff = (Backoff){ .base_usec = 100 * USEC_PER_MSEC,
                                                        .cap_usec = 5 * USEC_PER_SEC,
                                                        .jitter_permille = 200 };
        r = free_and_strdup(&d->node, o->node);
        if (r < 0)
                return r;
        r = hashmap_new(HASHMAP_BORROW_KEYS, &d->pods);
        if (r >= 0)
                r = hashmap_new(0, &d->left_alone);
        if (r < 0)
                return r;
        r = timer_new(d->env->loop, "node-drain", on_timer, d, &d->timer);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(d);
        return 0;
}

NodeDrain *node_drain_free(NodeDrain *d) {
        if (!d)
                return NULL;
        kube_call_free(d->proof);
        kube_call_free(d->look);
        hashmap_free_with(d->pods, drain_pod_free);
        hashmap_free(d->left_alone);
        LIST_FOREACH (dp, &d->left, DrainPod, left_node)
                drain_pod_free(dp);
        timer_free(d->timer);
        free(d->blockers);
        free(d->node);
        free(d);
        return NULL;
}

static void node_drain_set_state(NodeDrain *d, NodeDrainState to) {
        if (d->state == to)
                return;
        log_debug(d->env->log, "Drain of node %s: %s -> %s", d->node, state_table[d->state],
                  state_table[to]);
        d->state = to;
        d->changed = true;
}

/* -- the node as a whole -------------------------------------------------------------------------------- */

static int node_drain_note_pod(NodeDrain *d, const KubePod *pod, DrainPod **ret) {
        DrainPod *dp = hashmap_get(d->pods, pod->object.meta.uid);
        int r;

        if (!dp) {
                dp = new0(DrainPod, 1);
                if (!dp)
                        return -ENOMEM;
                dp->drain = d;
                dp->since_usec = loop_server_wall(d->env->loop);
                dp->met_usec = loop_now(d->env->loop);
                dp->delete_backoff = (Backoff){ .base_usec = 250 * USEC_PER_MSEC,
                                                .cap_usec = 5 * USEC_PER_SEC,
                                                .jitter_permille = 200 };
                dp->pod = (KubePod *) kube_object_ref((KubeObject *) &pod->object);
                r = hashmap_put(d->pods, dp->pod->object.meta.uid, dp);
                if (r < 0) {
                        drain_pod_free(dp);
                        return r;
                }
                d->changed = true;
        } else if (dp->pod != pod) {
                void *old;

                /* The key is borrowed from the object: move it along with the reference. */
                r = hashmap_replace(d->pods, pod->object.meta.uid, dp, &old);
                if (r < 0)
                        return r;
                if (!streq_ptr(pod->object.meta.resource_version, dp->pod->object.meta.resource_version)) {
                        drain_pod_forget_fresh(dp);
                        dp->list_overtaken = true;
                        if (dp->eviction)
                                eviction_pod_changed(dp->eviction);
                }
                if (dp->eviction &&
                    !key_values_are_same(&pod->object.meta.labels, &dp->pod->object.meta.labels))
                        eviction_pod_edited(dp->eviction);
                kube_object_ref((KubeObject *) &pod->object);
                kube_object_unref(&dp->pod->object);
                dp->pod = (KubePod *) pod;
        }
        dp->generation = d->generation;
        *ret = dp;
        return 0;
}

static void node_drain_forget_missing(NodeDrain *d) {
        DrainPod *dp;

        HASHMAP_FOREACH (dp, d->pods) {
                if (dp->generation == d->generation)
                        continue;
                hashmap_remove(d->pods, dp->pod->object.meta.uid);
                d->changed = true;
                /* Often the watch is faster than the answer, which alone says whose eviction it was. */
                if (drain_pod_awaits_answer(dp)) {
                        dp->has_left = true;
                        list_append(&d->left, &dp->left_node);
                        continue;
                }
                drain_pod_tell_unanswered(dp);
                drain_pod_tell_gone(dp);
        }
}

static bool node_drain_lets_stay(const NodeDrain *d, const KubePod *pod) {
        return drain_lets_stay(pod, &d->rules, loop_server_wall(d->env->loop));
}

/* Reports a pod that is let stay, once for each controller. */
static void node_drain_warn_of_return(NodeDrain *d, const KubePod *pod) {
        if (d->handler.on_pod && pod_returns_should_warn(d->rules.returns, pod))
                d->handler.on_pod(d, DRAIN_POD_STAYS, pod, NULL, NULL, d->handler.userdata);
}

/* Before the pods are looked at: which of them have come back too often? */
static void node_drain_see_returns(NodeDrain *d) {
        PodReturns *r = d->rules.returns;
        const KubePod *pod;
        uint64_t stay = 0;

        if (!r)
                return;
        pod_returns_begin(r);
        for (HashmapIterator it = {}; d->handler.iterate(&it, &pod, d->handler.userdata);)
                pod_returns_see(r, pod);
        pod_returns_end(r);
        for (HashmapIterator it = {}; d->handler.iterate(&it, &pod, d->handler.userdata);) {
                if (!node_drain_lets_stay(d, pod))
                        continue;
                stay += hash64(pod->object.meta.uid, strlen(pod->object.meta.uid));
                node_drain_warn_of_return(d, pod);
        }
        d->changed = d->changed || stay != d->staying;
        d->staying = stay;
}

/* Reports a pod that only claims to be a static pod. A tenant may make thousands of them. */
static void node_drain_report_left_alone(NodeDrain *d, const KubePod *pod) {
        const char *uid = pod->object.meta.uid;

        if (!d->handler.on_pod || hashmap_size(d->left_alone) >= LEFT_ALONE_REPORTED_MAX ||
            !pod_static_doubt(pod))
                return;
        if (hashmap_put(d->left_alone, uid, NULL) < 0)
                return; /* -EEXIST: it was reported */
        d->handler.on_pod(d, DRAIN_POD_LEFT_ALONE, pod, NULL, NULL, d->handler.userdata);
}

/* All pods once for the context, once for the acts. */
static usec_t node_drain_act(NodeDrain *d, usec_t wall_now) {
        DrainContext context = {};
        usec_t next = USEC_INFINITY;
        const KubePod *pod;

        node_drain_see_returns(d);
        for (HashmapIterator it = {}; d->handler.iterate(&it, &pod, d->handler.userdata);)
                drain_context_add(&context, pod, &d->rules, wall_now);

        d->generation++;
        d->n_gone = 0;
        d->any_held = false;
        for (HashmapIterator it = {}; d->handler.iterate(&it, &pod, d->handler.userdata);) {
                DrainPod *dp;
                PodPlan p;

                if (!drain_waits_for(pod, &d->rules, wall_now)) {
                        node_drain_report_left_alone(d, pod);
                        continue;
                }
                if (node_drain_note_pod(d, pod, &dp) < 0) {
                        next = MIN(next, usec_add(wall_now, USEC_PER_SEC));
                        continue;
                }
                p = drain_plan_pod(drain_pod_known(dp), &d->rules, &context, dp->refused, wall_now);
                next = MIN(next, p.next_usec);
                drain_pod_act(dp, &p, wall_now);
        }
        node_drain_forget_missing(d);
        return next;
}

/* Deletes that wait for their place are awaited, too, but not for ever. */
static bool node_drain_deletes_under_way(const NodeDrain *d) {
        bool may_wait = loop_now(d->env->loop) < d->admitted_until_usec;
        DrainPod *dp;

        HASHMAP_FOREACH (dp, d->pods)
                if (dp->delete_call || (dp->admission && may_wait))
                        return true;
        return false;
}

/* -- one consistent list of its pods -------------------------------------------------------------------- */

typedef struct PodWalk {
        NodeDrain *drain;
        void (*on_pod)(struct PodWalk *w, KubePod *pod);
        char *next; /* continue token of the next page; NULL: this one is the last. Free it */
} PodWalk;

static int on_list_item(const char *item, size_t size, void *userdata) {
        const JsonOmits omits = { .list = kube_pod_kind.unread, .n_list = kube_pod_kind.n_unread };
        PodWalk *w = userdata;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
        int r;

        /* Skips unread parts: keys with \u0000 in one pod, which the reader cannot tell apart, must not make
         * the node's whole list unreadable. */
        r = json_parse_without(item, size, LIST_MAX_BYTES, &omits, &doc, NULL);
        if (r < 0)
                return r;
        r = kube_object_decode(&kube_pod_kind, json_root(doc), kube_client_pool(w->drain->client), &o);
        if (r < 0)
                return r;
        w->on_pod(w, (KubePod *) o);
        return 0;
}

/* Reads one page of pods, or the list of all. */
static int walk_pods(PodWalk *w, const KubeReply *reply) {
        _cleanup_(json_doc_freep) JsonDoc *rest = NULL;
        const char *next;
        int r;

        if (reply->error) {
                r = api_error_to_errno(reply->error);
                if (r == -EMSGSIZE && w->drain->page_size == 0) {
                        w->drain->page_size = LIST_PAGE_PODS;
                        log_warning(w->drain->env->log,
                                    "The pods of node %s are larger than %u MB together, listing %u at a "
                                    "time",
                                    w->drain->node, LIST_MAX_BYTES >> 20, LIST_PAGE_PODS);
                }
                return r;
        }
        r = json_split_items(reply->body, reply->body_size, LIST_MAX_BYTES, on_list_item, w, &rest, NULL);
        next = r < 0 ? NULL : json_string_or_null(json_path(json_root(rest), "metadata", "continue", NULL));
        return isempty(next) ? r : free_and_strdup(&w->next, next);
}

static int list_pods(NodeDrain *d, const char *continue_token, KubeRank rank, kube_done_t done,
                     KubeCall **ret) {
        _cleanup_free_ char *selector = strf("spec.nodeName=%s", d->node);
        KubeTarget target = { .kind = &kube_pod_kind };
        KubeListOptions list = { .field_selector = selector,
                                 .limit = d->page_size,
                                 .continue_token = continue_token };
        KubeCallOptions call = { .lane = rank == KUBE_RANK_FIRST ? HTTP_LANE_URGENT : HTTP_LANE_BULK,
                                 .timeout_usec = NODE_DRAIN_LIST_USEC,
                                 .rank = rank };

        return selector ? kube_list(d->client, &target, &list, &call, done, d, ret) : -ENOMEM;
}

static void on_listed_pod(PodWalk *w, KubePod *pod) {
        DrainPod *dp = hashmap_get(w->drain->pods, pod->object.meta.uid);

        if (!dp || dp->look != LOOK_UNDER_WAY)
                return;
        dp->listed_usec = w->drain->list_asked_usec;
        drain_pod_forget_fresh(dp);
        if (!dp->list_overtaken)
                dp->fresh = (KubePod *) kube_object_ref(&pod->object);
        dp->look = LOOK_NONE;
}

static void on_pods_listed(const KubeReply *reply, void *userdata) {
        NodeDrain *d = userdata;
        PodWalk walk = { .drain = d, .on_pod = on_listed_pod };
        _cleanup_free_ char *next = NULL;
        DrainPod *dp;
        int r;

        r = walk_pods(&walk, reply);
        next = walk.next;
        if (r >= 0 && next) {
                d->look = kube_call_free(d->look);
                r = list_pods(d, next, KUBE_RANK_FIRST, on_pods_listed, &d->look);
                if (r >= 0)
                        return;
        }
        if (r < 0) {
                log_debug_errno(d->env->log, r,
                                "Failed to list the pods of node %s again, retrying: %m", d->node);
                d->list_retry_usec =
                        usec_add(loop_now(d->env->loop), backoff_next(&d->list_backoff, d->env->random));
        } else {
                backoff_reset(&d->list_backoff);
                d->list_retry_usec = usec_add(d->list_asked_usec, LIST_GAP_USEC);
        }
        d->look = kube_call_free(d->look);

        HASHMAP_FOREACH (dp, d->pods) {
                if (dp->look != LOOK_UNDER_WAY)
                        continue;
                dp->look = r < 0 ? LOOK_WANTED : LOOK_NONE;
                if (r >= 0 && free_and_strdup(&dp->sent_version, dp->pod->object.meta.resource_version) >= 0)
                        drain_pod_note_deleted(dp); /* gone; the watch will say so, too */
        }
        node_drain_act_at_once(d);
}

/* Pods that were not as we knew them are looked at before anything is done to them. */
static void node_drain_list_pods(NodeDrain *d) {
        usec_t now = loop_now(d->env->loop);
        bool wanted = false;
        DrainPod *dp;

        HASHMAP_FOREACH (dp, d->pods)
                wanted |= dp->look == LOOK_WANTED;
        if (!wanted || d->look)
                return;
        if (now < d->list_retry_usec) {
                timer_arm_earlier(d->timer, d->list_retry_usec);
                return;
        }
        d->list_asked_usec = now;
        if (list_pods(d, NULL, KUBE_RANK_FIRST, on_pods_listed, &d->look) < 0) {
                timer_arm_earlier(d->timer, usec_add(now, USEC_PER_SEC));
                return;
        }
        HASHMAP_FOREACH (dp, d->pods)
                if (dp->look == LOOK_WANTED) {
                        dp->look = LOOK_UNDER_WAY;
                        dp->list_overtaken = false;
                }
}

/* -- the proof ------------------------------------------------------------------------------------------ */

static void node_drain_prove_later(NodeDrain *d) {
        d->proof_retry_usec = usec_add(loop_now(d->env->loop), backoff_next(&d->proof_backoff, d->env->random));
}

static void on_pod_of_proof(PodWalk *w, KubePod *pod) {
        if (drain_waits_for(pod, &w->drain->rules, loop_server_wall(w->drain->env->loop)))
                w->drain->proof_left++;
        else if (node_drain_lets_stay(w->drain, pod))
                node_drain_warn_of_return(w->drain, pod); /* the watch may not have shown it, and the drain may end with this list */
}

/* An answer that comes after the proof finds nobody who would count it. */
static void node_drain_forget_left(NodeDrain *d) {
        LIST_FOREACH (dp, &d->left, DrainPod, left_node) {
                list_remove(&d->left, &dp->left_node);
                drain_pod_tell_unanswered(dp);
                drain_pod_tell_gone(dp);
        }
}

static KubeRank proof_rank(const NodeDrain *d) {
        return d->rules.deadline_usec == USEC_INFINITY ? KUBE_RANK_FOLLOWS : KUBE_RANK_FIRST;
}

static void on_proof(const KubeReply *reply, void *userdata) {
        NodeDrain *d = userdata;
        PodWalk walk = { .drain = d, .on_pod = on_pod_of_proof };
        _cleanup_free_ char *next = NULL;
        int r = walk_pods(&walk, reply);

        next = walk.next;
        d->proof = kube_call_free(d->proof);
        if (r >= 0 && next && d->proof_left == 0 && !d->proof_spoilt) {
                r = list_pods(d, next, proof_rank(d), on_proof, &d->proof);
                if (r >= 0)
                        return; /* all pages are of the moment of the first one */
        }
        if (r < 0 || d->proof_left > 0 || d->proof_spoilt) {
                /* Not readable, or pods that the watch has not brought yet. */
                log_debug(d->env->log, "Node %s is not proven empty: %zu pods in the list, result %d",
                          d->node, d->proof_left, r);
                if (d->proof_left > 0 || d->proof_spoilt)
                        node_drain_set_state(d, NODE_DRAIN_DRAINING);
                node_drain_prove_later(d);
        } else {
                d->proven_usec = d->asked_usec;
                d->proof_came_usec = loop_now(d->env->loop);
                d->unproven_usec = 0;
                node_drain_forget_left(d);
                node_drain_set_state(d, NODE_DRAIN_DRAINED);
        }
        node_drain_act_at_once(d);
}

static void node_drain_prove(NodeDrain *d) {
        usec_t now = loop_now(d->env->loop);

        if (d->proof)
                return;
        if (now < d->proof_retry_usec) {
                timer_arm_earlier(d->timer, d->proof_retry_usec);
                return;
        }
        if (list_pods(d, NULL, proof_rank(d), on_proof, &d->proof) < 0) {
                timer_arm_earlier(d->timer, usec_add(now, USEC_PER_SEC));
                return;
        }
        d->proof_left = 0;
        d->proof_spoilt = false;
        d->asked_usec = now;
        if (d->unproven_usec == 0)
                d->unproven_usec = now;
        node_drain_set_state(d, NODE_DRAIN_PROVING);
}

usec_t node_drain_unproven_since(const NodeDrain *d) {
        return d->unproven_usec;
}

bool node_drain_confirm(NodeDrain *d, usec_t max_age_usec) {
        usec_t now = loop_now(d->env->loop);

        if (d->state != NODE_DRAIN_DRAINED)
                return false;
        if (now <= MAX(usec_add(d->proven_usec, max_age_usec), usec_add(d->proof_came_usec, PROOF_FRESH_USEC)))
                return true;
        backoff_reset(&d->proof_backoff); /* no pod has come since: what failed before that proof is over */
        node_drain_prove(d);
        return false;
}

static void node_drain_step(NodeDrain *d, usec_t wall_now) {
        bool expired = d->rules.deadline_usec != USEC_INFINITY && wall_now >= d->rules.deadline_usec;

        if (hashmap_size(d->pods) == 0) {
                if (d->state != NODE_DRAIN_DRAINED)
                        node_drain_prove(d);
                /* Even the proof does not hold a machine beyond T. */
                if (expired && d->state != NODE_DRAIN_DRAINED)
                        node_drain_set_state(d, NODE_DRAIN_EXPIRED);
                return;
        }
        d->unproven_usec = 0;
        if (d->proof) /* a pod came in between: one that is made anew as fast as it goes costs no list each time */
                node_drain_prove_later(d);
        d->proof = kube_call_free(d->proof);
        if (!expired)
                d->admitted_until_usec = 0;
        else if (d->admitted_until_usec == 0)
                d->admitted_until_usec = usec_add(loop_now(d->env->loop), ADMITTED_WITHIN_USEC);
        if (expired && node_drain_deletes_under_way(d)) {
                expired = false;
                if (loop_now(d->env->loop) < d->admitted_until_usec)
                        timer_arm_earlier(d->timer, d->admitted_until_usec);
        }
        node_drain_set_state(d, expired ? NODE_DRAIN_EXPIRED : NODE_DRAIN_DRAINING);
}

static void on_timer(Timer *t, void *userdata) {
        NodeDrain *d = userdata;
        usec_t wall_now, next;

        if (d->handler.before_act)
                d->handler.before_act(d, d->handler.userdata);
        wall_now = loop_server_wall(d->env->loop);
        d->acted_usec = loop_now(d->env->loop);
        next = node_drain_act(d, wall_now);
        if (d->rules.deadline_usec > wall_now)
                next = MIN(next, d->rules.deadline_usec);
        node_drain_list_pods(d);
        node_drain_step(d, wall_now);
        if (next != USEC_INFINITY)
                timer_arm_earlier(d->timer, loop_from_server_wall(d->env->loop, next));

        if (d->changed) {
                d->changed = false;
                d->handler.on_changed(d, d->handler.userdata); /* may free us */
        }
}

void node_drain_wake(NodeDrain *d) {
        timer_arm_earlier(d->timer, d->acted_usec > 0 ? usec_add(d->acted_usec, TOGETHER_USEC) : 0);
}

void node_drain_pod_seen(NodeDrain *d, const KubePod *pod) {
        if (drain_waits_for(pod, &d->rules, loop_server_wall(d->env->loop)))
                d->proof_spoilt = true;
        if (d->state == NODE_DRAIN_DRAINED && d->proof_spoilt) {
                node_drain_prove_later(d);
                node_drain_set_state(d, NODE_DRAIN_DRAINING);
        }
        node_drain_wake(d);
}

void node_drain_pod_changed(NodeDrain *d, const KubePod *pod) {
        const DrainPod *dp = hashmap_get(d->pods, pod->object.meta.uid);

        if (dp && dp->evicted && pod->object.meta.deletion_usec > 0 &&
            drain_waits_for(pod, &d->rules, loop_server_wall(d->env->loop)))
                node_drain_tell_later(d);
        else
                node_drain_wake(d);
}

void node_drain_pod_gone(NodeDrain *d, const KubePod *pod) {
        if (hashmap_get(d->pods, pod->object.meta.uid))
                d->n_gone++;
        if (d->any_held || d->n_gone >= hashmap_size(d->pods))
                node_drain_wake(d);
        else
                node_drain_tell_later(d);
}

void node_drain_set_deadline(NodeDrain *d, usec_t wall_usec) {
        unsigned jumps = loop_server_clock_jumps(d->env->loop);

        if (wall_usec == d->rules.deadline_usec && jumps == d->clock_jumps)
                return;
        d->rules.deadline_usec = wall_usec;
        d->clock_jumps = jumps;
        d->proof = kube_call_free(d->proof); /* it may wait for its turn: anew, at once */
        node_drain_act_at_once(d);
}

void node_drain_set_protected(NodeDrain *d, ProtectedPolicy policy) {
        if (policy == d->rules.protected_policy)
                return;
        d->rules.protected_policy = policy;
        node_drain_act_at_once(d);
}

static bool stands_in_view(const NodeDrain *d, const char *uid) {
        const KubePod *pod;

        for (HashmapIterator it = {}; d->handler.iterate(&it, &pod, d->handler.userdata);)
                if (streq(pod->object.meta.uid, uid))
                        return pod->object.meta.deletion_usec == 0;
        return false;
}

void node_drain_tell_unanswered(NodeDrain *d) {
        DrainPod *dp;

        HASHMAP_FOREACH (dp, d->pods)
                if (!stands_in_view(d, dp->pod->object.meta.uid))
                        drain_pod_tell_unanswered(dp);
        node_drain_forget_left(d);
}

bool node_drain_awaits_answers(const NodeDrain *d) {
        const DrainPod *dp;

        HASHMAP_FOREACH (dp, d->pods)
                if (dp->delete_call && !dp->ended && stands_in_view(d, dp->pod->object.meta.uid))
                        return true;
        return false;
}

void node_drain_set_stuck_after(NodeDrain *d, usec_t usec) {
        if (usec == d->rules.stuck_after_usec)
                return;
        d->rules.stuck_after_usec = usec;
        node_drain_act_at_once(d);
}

bool node_drain_awaits_pods(const NodeDrain *d) {
        const DrainPod *dp;

        HASHMAP_FOREACH (dp, d->pods)
                if (drain_pod_is_awaited(dp))
                        return true;
        return hashmap_size(d->pods) == 0;
}

NodeDrainState node_drain_state(const NodeDrain *d) {
        return d->state;
}

size_t node_drain_pods_left(const NodeDrain *d) {
        const KubePod *pod;
        size_t n = 0;

        if (d->acted_usec > 0)
                return hashmap_size(d->pods);
        for (HashmapIterator it = {}; d->handler.iterate(&it, &pod, d->handler.userdata);)
                n += drain_waits_for(pod, &d->rules, loop_server_wall(d->env->loop));
        return n;
}

const DrainBlocker *node_drain_blockers(NodeDrain *d, size_t *ret_n) {
        DrainPod *dp;

        *ret_n = 0;
        if (GREEDY_REALLOC(d->blockers, d->blockers_allocated, MAX(hashmap_size(d->pods), (size_t) 1)) < 0)
                return NULL;
        HASHMAP_FOREACH (dp, d->pods)
                d->blockers[(*ret_n)++] = drain_pod_blocker(dp);
        return d->blockers;
}

static DrainBlocker blocker_of_return(const KubePod *pod) {
        const ObjectMeta *m = &pod->object.meta;
        const OwnerRef *owner = object_meta_controller(m);

        return (DrainBlocker){
                .ns = strempty(m->ns),
                .name = m->name,
                .uid = m->uid,
                .wait = POD_WAIT_COMES_BACK,
                .detail = owner ? strempty(owner->name) : "",
                .message = owner ? strempty(owner->kind) : "",
                .since_usec = m->creation_usec,
                .end_usec = m->deletion_usec,
        };
}

const DrainBlocker *node_drain_blockers_and_returns(NodeDrain *d, size_t *ret_n) {
        const KubePod *pod;

        if (!node_drain_blockers(d, ret_n))
                return NULL;
        for (HashmapIterator it = {}; d->staying > 0 && d->handler.iterate(&it, &pod, d->handler.userdata);)
                if (node_drain_lets_stay(d, pod) && GREEDY_REALLOC(d->blockers, d->blockers_allocated, *ret_n + 1) >= 0)
                        d->blockers[(*ret_n)++] = blocker_of_return(pod);
        return d->blockers;
}

/* -- tests ---------------------------------------------------------------------------------------------- */

/* Reports pods that the informer has and the drain's last step did not: the timer of the next step finds
 * them. */
static void report_unseen_pods(const NodeDrain *d, Wakeups *w) {
        usec_t wall_now = loop_server_wall(d->env->loop);
        const KubePod *pod;

        for (HashmapIterator it = {}; d->handler.iterate(&it, &pod, d->handler.userdata);) {
                if (!drain_waits_for(pod, &d->rules, wall_now) || hashmap_get(d->pods, pod->object.meta.uid))
                        continue;
                wakeups_unfinished(w, "pod to evict", pod->object.meta.name, "not seen", USEC_PER_SEC);
                wakeups_timer(w, d->timer);
        }
}

bool node_drain_will_report(const NodeDrain *d) {
        return d->changed || d->state == NODE_DRAIN_DRAINING || d->state == NODE_DRAIN_PROVING;
}

void node_drain_next_wakeup(const NodeDrain *d, Wakeups *w) {
        DrainPod *dp;

        if (d->changed) {
                wakeups_unfinished(w, "drain of node", d->node, "changed", NODE_DRAIN_PROOF_WAKEUP_USEC);
                wakeups_timer(w, d->timer);
                wakeups_await(w, d->proof); /* the answer to the proof arms the timer */
        }
        if (d->state == NODE_DRAIN_EXPIRED)
                return;
        report_unseen_pods(d, w);
        HASHMAP_FOREACH (dp, d->pods)
                drain_pod_next_wakeup(dp, w);
        if (d->state == NODE_DRAIN_DRAINED || hashmap_size(d->pods) > 0)
                return;
        wakeups_unfinished(w, "drain of node", d->node, state_table[d->state], NODE_DRAIN_PROOF_WAKEUP_USEC);
        wakeups_timer(w, d->timer);
        wakeups_await(w, d->proof);
}
