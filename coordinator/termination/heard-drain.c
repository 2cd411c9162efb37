/* SPDX-License-Identifier: Apache-2.0 */
#include "heard-drain.h"

#include "agent-drain.h"
#include "hashmap.h"
#include "heard-rule.h"
#include "heard-status.h"
#include "heard-voice.h"
#include "marks.h"
#include "node-deadline.h"
#include "node-pods.h"
#include "pod-warnings.h"
#include "string-util.h"
#include "termination-marks.h"

/* One Node of whose machine something was announced, or that is drained for that. */
typedef struct Heard {
        HeardDrains *owner;
        char *node, *uid, *key;
        char *boot_id;           /* as of the last step */
        usec_t other_boot_usec;  /* of HeardFacts */
        usec_t step_usec;        /* wall clock: the last step */
        PodReturns *returns;
        usec_t settled_usec; /* of HeardFacts */
        NodeDeadline deadline;
        AgentDrain agent;
        usec_t lb_until_usec; /* loop_now(): load balancers let go until then */
        bool is_behind_agent; /* as of the last step: our drain waits for the agent's */
        NodeDrain *drain;
        DrainRules rules; /* as of the last step */
        usec_t begun_usec, drained_usec; /* wall clock, of that drain; 0: not yet, or not by this leader */
        size_t n_evicted, n_deleted;
        usec_t progress_usec; /* loop_now(): podsLeft was written last */
        PodWarnings *warnings;
        HeardVoice voice;
        HeardAct act; /* as of the last step */
        bool has_ended; /* this leader has ended its drain, for voice.why */
        bool is_held;   /* as of the last step: drained for a notice that the brake of the queue holds */
} Heard;

struct HeardDrains {
        const TerminationContext *context;
        Env *env;
        WorkQueue *queue;
        Hashmap *map; /* node -> Heard */
        HeardStatuses *statuses;
};

/* -- memory --------------------------------------------------------------------------------------------- */

static void *heard_free(void *p) {
        Heard *x = p;

        node_drain_free(x->drain);
        pod_warnings_free(x->warnings);
        pod_returns_free(x->returns);
        heard_voice_done(&x->voice);
        node_deadline_done(&x->deadline);
        free(x->node);
        free(x->uid);
        free(x->key);
        free(x->boot_id);
        return mfree(x);
}

int heard_drains_new(const TerminationContext *context, WorkQueue *queue, HeardDrains **ret) {
        _cleanup_(heard_drains_freep) HeardDrains *h = NULL;
        int r;

        assert(context && queue && ret);
        h = new0(HeardDrains, 1);
        if (!h)
                return -ENOMEM;
        h->context = context;
        h->env = context->env;
        h->queue = queue;
        r = hashmap_new(HASHMAP_BORROW_KEYS, &h->map);
        if (r < 0)
                return r;
        r = heard_statuses_new(context, queue, &h->statuses);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(h);
        return 0;
}

HeardDrains *heard_drains_free(HeardDrains *h) {
        if (!h)
                return NULL;
        heard_statuses_free(h->statuses);
        hashmap_free_with(h->map, heard_free);
        return mfree(h);
}

static void heard_forget(HeardDrains *h, const char *node) {
        Heard *x = hashmap_remove(h->map, node);

        if (x)
                heard_free(x);
}

static int heard_new(HeardDrains *h, const KubeNode *n, const char *key, Heard **ret) {
        Heard *x = new0(Heard, 1);
        int r;

        if (!x)
                return -ENOMEM;
        x->owner = h;
        x->deadline = NODE_DEADLINE_NONE;
        x->agent.moved_usec = loop_now(h->env->loop);
        x->voice = (HeardVoice){ .context = h->context };
        if (free_and_strdup(&x->node, n->object.meta.name) < 0 || free_and_strdup(&x->uid, n->object.meta.uid) < 0 ||
            free_and_strdup(&x->key, key) < 0)
                r = -ENOMEM;
        else
                r = pod_returns_new(&x->returns);
        if (r >= 0)
                r = pod_warnings_new(h->context, x->node, true, &x->warnings);
        if (r >= 0)
                r = hashmap_put(h->map, x->node, x);
        if (r < 0) {
                heard_free(x);
                return r;
        }
        *ret = x;
        return 0;
}

static void requeue_at(Heard *x, usec_t at_usec) {
        if (at_usec != USEC_INFINITY)
                (void) work_queue_add_at(x->owner->queue, x->key, at_usec);
}

static void requeue_at_wall(Heard *x, usec_t wall_usec) {
        if (wall_usec != USEC_INFINITY)
                requeue_at(x, loop_from_wall(x->owner->env->loop, wall_usec));
}

/* -- writes --------------------------------------------------------------------------------------------- */

static void on_written(const char *name, const ApiError *error, void *userdata) {
        HeardDrains *h = userdata;
        Heard *x = hashmap_get(h->map, name);
        const KubeNode *n = cluster_view_node(h->context->view, name);

        if (x && n)
                heard_voice_written(&x->voice, n, !error);
}

/* -- which pods hold it ---------------------------------------------------------------------------------- */

typedef struct Held {
        InterruptionBlocker list[INTERRUPTION_BLOCKERS_MAX];
        size_t n;
        bool failed; /* want of memory */
} Held;

static void held_done(Held *h) {
        for (size_t i = 0; i < h->n; i++)
                interruption_blocker_done(h->list + i);
}

static Held held_of(NodeDrain *d) {
        size_t n;
        const DrainBlocker *b = node_drain_blockers_and_returns(d, &n);
        Held h = {};

        for (size_t i = 0; i < n && h.n < INTERRUPTION_BLOCKERS_MAX; i++) {
                _cleanup_free_ char *pod = NULL;
                int r;

                if (!pod_wait_remedy(b[i].wait) && b[i].wait != POD_WAIT_COMES_BACK)
                        continue;
                pod = strf("%s/%s", b[i].ns, b[i].name);
                r = pod ? interruption_blocker_fill(h.list + h.n, pod, pod_wait_to_string(b[i].wait), b[i].detail) : -ENOMEM;
                h.failed = h.failed || r == -ENOMEM;
                h.n += r >= 0;
        }
        return h;
}

static bool held_is_told(const Held *h, const Interruption *i) {
        for (size_t k = 0; k < h->n && k < i->n_blockers; k++)
                if (!streq(h->list[k].pod, i->blockers[k].pod) || !streq(h->list[k].reason, i->blockers[k].reason) ||
                    !streq(h->list[k].detail, i->blockers[k].detail))
                        return false;
        return h->n == i->n_blockers;
}

/* step: what is said once the API server has it. notice NULL: the annotation goes. held: the pods that hold it; NULL: none. */
static void write_heard(Heard *x, const KubeNode *n, const Notice *notice, HeardStep step, InterruptionPhase phase, HeardCordon cordon,
                        size_t pods_left, const Held *held) {
        /* What begins does so in this boot, and stands on the Node from here on. */
        const char *boot_id = strempty(step == HEARD_STEP_CORDONED || !n->heard ? n->boot_id : n->heard->boot_id);
        HeardDrains *h = x->owner;
        ObjectWrite w = { .what = "write how far its drain for the interruption queue is on",
                          .target = { .kind = &kube_node_kind, .name = n->object.meta.name },
                          .state = n->object.meta.resource_version,
                          .reconcile_key = x->key,
                          .urgent = true,
                          .written = on_written,
                          .userdata = h };
        _cleanup_free_ char *text = NULL, *body = NULL;

        if (!object_writes_may(h->context->writes, &w))
                return;
        text = notice ? interruption_format_held(notice, phase, pods_left, boot_id, held ? held->list : NULL, held ? held->n : 0) : NULL;
        if ((notice && !text) || termination_heard_patch(n, text, cordon, &body) < 0) {
                (void) work_queue_retry(h->queue, x->key);
                return;
        }
        if (object_writes_patch(h->context->writes, &w, KUBE_PATCH_MERGE, body) > 0)
                heard_voice_writing(&x->voice, step);
}

/* Writes the list on its claim, or on a Node that has none. An empty list is taken off. Returns true if the write is under way. */
static bool write_list(HeardDrains *h, const KubeObject *o, const AnnouncedList *l, const char *key) {
        ObjectWrite w = { .what = "write what the interruption queue announced on",
                          .target = { .kind = o->kind, .name = o->meta.name },
                          .state = o->meta.resource_version,
                          .reconcile_key = key,
                          .urgent = true };
        _cleanup_free_ char *text = l->n_items > 0 ? announced_list_format(l) : NULL, *body = NULL;
        int r = l->n_items > 0 && !text ? -ENOMEM : termination_annotation_patch(o, ANNOTATION_ANNOUNCED, text, &body);

        if (r > 0)
                return object_writes_patch(h->context->writes, &w, KUBE_PATCH_MERGE, body) > 0;
        if (r < 0)
                (void) work_queue_retry(h->queue, key);
        return false;
}

static void write_next_list(Heard *x, const KubeNode *n, const KubeObject *o, const HeardFacts *f) {
        _cleanup_(announced_list_done) AnnouncedList l = {};

        if (heard_rewrite(f, &l) < 0) {
                (void) work_queue_retry(x->owner->queue, x->key);
                return;
        }
        if (!write_list(x->owner, o, &l, x->key))
                return;
        for (size_t i = 0; i < f->announced->n_items; i++)
                if (heard_is_let_go(f, f->announced->items + i))
                        heard_voice_let_go(&x->voice, n, f->announced->items[i].notice, !announced_is_let_go(f->announced->items + i, f->let_go_usec));
}

/* Moves the list of a Node that has its claim by now to that claim: writes it there first, and then takes it off the Node. */
static void hand_over(HeardDrains *h, const KubeNode *n, const KubeNodeClaim *claim, const char *key) {
        _cleanup_(announced_list_done) AnnouncedList l = {};

        if (announced_list_copy(&claim->announced, &l) < 0 || announced_list_take(&l, &n->announced) < 0)
                (void) work_queue_retry(h->queue, key);
        else if (l.n_items == claim->announced.n_items)
                (void) write_list(h, &n->object, &(AnnouncedList){}, key);
        else
                (void) write_list(h, &claim->object, &l, key);
}

static void end_drain(Heard *x, const KubeNode *n, const HeardFacts *f) {
        x->voice.why = heard_end(f);
        x->has_ended = true;
        write_heard(x, n, NULL, HEARD_STEP_ENDED, INTERRUPTION_PHASE_NONE,
                    x->voice.why == HEARD_END_OVERRULED ? HEARD_CORDON_LEAVE : HEARD_CORDON_OPEN, 0, NULL);
}

/* -- the drain ------------------------------------------------------------------------------------------ */

static bool on_iterate(HashmapIterator *it, const KubePod **ret, void *userdata) {
        Heard *x = userdata;

        return cluster_view_iterate_pods(x->owner->context->view, x->node, it, ret);
}

static const KubePdb *on_pdb_of(const KubePod *pod, void *userdata) {
        Heard *x = userdata;

        return cluster_view_pdb_of_pod(x->owner->context->view, pod);
}

static void on_drain_changed(NodeDrain *d, void *userdata) {
        Heard *x = userdata;

        (void) work_queue_add(x->owner->queue, x->key);
}

static void on_drain_pod(NodeDrain *d, DrainPodEvent e, const KubePod *pod, const DrainBlocker *blocker,
                         const EvictionReport *report, void *userdata) {
        Heard *x = userdata;
        const TerminationContext *c = x->owner->context;
        const KubeNode *n = cluster_view_node(c->view, x->node);

        if (n)
                heard_voice_pod(&x->voice, n, e, pod, blocker, x->deadline.at_usec);
        x->n_evicted += e == DRAIN_POD_EVICTED;
        x->n_deleted += e == DRAIN_POD_DELETED;
        if (e == DRAIN_POD_EVICTED || e == DRAIN_POD_DELETED)
                c->moved(c->userdata);
}

static bool on_drain_due(NodeDrain *d, const KubePod *pod, usec_t at_usec, void *userdata) {
        Heard *x = userdata;

        return pod_warnings_tell(x->warnings, pod, at_usec, x->deadline.at_usec);
}

/* a: the notice that the node is drained for. deadline_usec: wall clock; it is later again where the one that had come first is over. */
static void update_rules(Heard *x, const KubeNode *n, const Announced *a, usec_t deadline_usec) {
        usec_t wall = loop_wall(x->owner->env->loop);

        if (deadline_usec > x->deadline.heard_usec) { /* that was another notice's, which has passed or is over */
                x->drain = node_drain_free(x->drain);
                node_deadline_done(&x->deadline);
                x->deadline = NODE_DEADLINE_NONE;
        }
        x->deadline.is_heard = a->state != ANNOUNCED_HELD; /* pods that opted out are waited for as in a drain without a notice */
        x->deadline.heard_usec = deadline_usec;
        (void) node_deadline_update(&x->deadline, n, NULL, wall);
        x->rules = node_deadline_rules(&x->deadline, n, (ProtectedPolicy) x->owner->context->config->protected_policy);
        x->rules.returns = x->returns;
        if (!x->drain)
                return;
        node_drain_set_protected(x->drain, x->rules.protected_policy);
        node_drain_set_stuck_after(x->drain, x->rules.stuck_after_usec);
        node_drain_set_deadline(x->drain, x->deadline.at_usec);
}

static usec_t first_pod_due(const Heard *x) {
        return node_pods_first_due(x->owner->context->view, x->node, &x->rules, loop_wall(x->owner->env->loop));
}

/* Its agent, or its load balancers, have the time until the first pod is due. */
static bool others_go_first(Heard *x, const KubeNode *n) {
        const TerminationContext *c = x->owner->context;
        usec_t now = loop_now(c->env->loop), wall = loop_wall(c->env->loop), due = first_pod_due(x), until;
        uint64_t pods = node_pods_fingerprint(c->view, x->node, &x->rules, wall);

        x->is_behind_agent = wall < due && agent_drain_moves(&x->agent, n, pods, now, &until);
        if (wall >= due)
                return false;
        if (x->is_behind_agent)
                requeue_at(x, pod_warnings_beside_agent(x->warnings, &x->rules));
        else if (now < x->lb_until_usec)
                until = x->lb_until_usec;
        else
                return false;
        requeue_at(x, until);
        requeue_at_wall(x, due);
        return true;
}

static int begin_drain(Heard *x) {
        const TerminationContext *c = x->owner->context;
        const NodeDrainOptions o = { .node = x->node, .guard = c->guard, .rules = x->rules };
        const NodeDrainHandler handler = { .on_changed = on_drain_changed,
                                           .on_pod = on_drain_pod,
                                           .on_due = on_drain_due,
                                           .pdb_of = on_pdb_of,
                                           .iterate = on_iterate,
                                           .userdata = x };
        int r = node_drain_new(c->client, c->evictor, &o, &handler, &x->drain);

        if (r < 0)
                return r;
        x->begun_usec = loop_wall(c->env->loop);
        x->drained_usec = 0;
        x->n_evicted = x->n_deleted = 0;
        x->progress_usec = loop_now(c->env->loop);
        node_drain_wake(x->drain);
        return 0;
}

/* How many pods are left, and which of them hold it, for who looks at the annotation. */
static void write_progress(Heard *x, const KubeNode *n, const Notice *notice) {
        const TerminationContext *c = x->owner->context;
        size_t left = node_drain_pods_left(x->drain);
        _cleanup_(held_done) Held held = held_of(x->drain);
        usec_t at;

        if (held.failed) {
                (void) work_queue_retry(x->owner->queue, x->key);
                return;
        }
        if (n->heard->phase == INTERRUPTION_DRAINING && streq(n->heard->notice->id, notice->id) && n->heard->pods_left == (int64_t) left &&
            held_is_told(&held, n->heard))
                return;
        if (!heard_progress_may(c, x->progress_usec, &at)) {
                requeue_at(x, at);
                return;
        }
        x->progress_usec = loop_now(c->env->loop);
        write_heard(x, n, notice, HEARD_STEP_PROGRESS, INTERRUPTION_DRAINING, HEARD_CORDON_KEEP, left, &held);
}

static void step_drain(Heard *x, const KubeNode *n, const Notice *notice) {
        _cleanup_(held_done) Held held = {};
        const DrainBlocker *blockers;
        size_t n_left;

        if (!x->drain) {
                if (others_go_first(x, n))
                        return;
                pod_warnings_agent_ended(x->warnings);
                if (begin_drain(x) < 0) {
                        (void) work_queue_retry(x->owner->queue, x->key);
                        return;
                }
        }
        node_drain_tell_later(x->drain);
        blockers = node_drain_blockers(x->drain, &n_left);
        switch (node_drain_state(x->drain)) {
        case NODE_DRAIN_DRAINED:
                if (x->drained_usec == 0)
                        x->drained_usec = loop_wall(x->owner->env->loop);
                held = held_of(x->drain); /* who came back too often */
                write_heard(x, n, notice, HEARD_STEP_DRAINED, INTERRUPTION_DRAINED, HEARD_CORDON_KEEP, 0, &held);
                break;
        case NODE_DRAIN_EXPIRED:
                heard_voice_left(&x->voice, blockers, n_left);
                write_heard(x, n, notice, HEARD_STEP_EXPIRED, INTERRUPTION_ENDING, HEARD_CORDON_KEEP, n_left, NULL);
                break;
        case NODE_DRAIN_DRAINING:
                heard_voice_draining(&x->voice, n);
                write_progress(x, n, notice);
                break;
        case NODE_DRAIN_PROVING:
        case _NODE_DRAIN_STATE_MAX:
        case _NODE_DRAIN_STATE_INVALID:
                break;
        }
        if (!node_deadline_passed(&x->deadline, loop_wall(x->owner->env->loop)))
                requeue_at_wall(x, x->deadline.at_usec);
}

size_t heard_drains_held(const HeardDrains *h) {
        const Heard *x;
        size_t n = 0;

        HASHMAP_FOREACH (x, h->map)
                n += x->is_held;
        return n;
}

size_t heard_drains_under_way(const HeardDrains *h) {
        const Heard *x;
        size_t n = 0;

        HASHMAP_FOREACH (x, h->map)
                n += x->act == HEARD_CORDON || x->act == HEARD_DRAIN;
        return n;
}

void heard_drains_on_pod(HeardDrains *h, const char *node, const KubePod *old, const KubePod *new) {
        Heard *x = hashmap_get(h->map, node);

        if (!x || !x->drain)
                return;
        if (new && !old)
                node_drain_pod_seen(x->drain, new);
        else if (new)
                node_drain_pod_changed(x->drain, new);
        else
                node_drain_pod_gone(x->drain, old);
}

/* -- what its conditions say ---------------------------------------------------------------------------- */

/* What is said of it then is its removal's to say. */
static bool is_being_removed(const KubeNode *n, const KubeNodeClaim *claim) {
        return n->object.meta.deletion_usec > 0 || (claim && claim->object.meta.deletion_usec > 0);
}

/* NULL: not known to this leader, or no memory. */
static char *how_far(const Heard *x, HeardSay say) {
        const DrainBlocker *blockers;
        size_t n;

        if (say == HEARD_SAY_DRAINING && x->drain) {
                blockers = node_drain_blockers(x->drain, &n);
                return heard_pods_left_text(node_drain_pods_left(x->drain), blockers, n);
        }
        if (say == HEARD_SAY_DRAINED && x->drained_usec > 0)
                return heard_drained_text(x->begun_usec, x->drained_usec, x->n_evicted, x->n_deleted);
        return say == HEARD_SAY_EXPIRED && !isempty(x->voice.left) ? strf("pods left: %s", x->voice.left) : NULL;
}

/* _HEARD_SAY_INVALID: what comes of this step is not known yet, and all stays as it was said. */
static HeardSay what_to_say(const Heard *x, const KubeNode *n, const HeardFacts *f) {
        switch (x->act) {
        case HEARD_DRAIN:
                if (!x->drain)
                        return x->is_behind_agent ? HEARD_SAY_BEHIND_AGENT : HEARD_SAY_PLANNED;
                return node_drain_state(x->drain) == NODE_DRAIN_DRAINING ? HEARD_SAY_DRAINING : _HEARD_SAY_INVALID;
        case HEARD_KEEP:
                if (f->is_between)
                        break;
                if (n->heard && interruption_has_drained(n->heard))
                        return n->heard->phase == INTERRUPTION_DRAINED ? HEARD_SAY_DRAINED : HEARD_SAY_EXPIRED;
                return HEARD_SAY_HANDED_OVER;
        case HEARD_NOTHING:
                if (f->is_managed && f->is_deleted)
                        return HEARD_SAY_NOTHING;
                return (x->has_ended ? x->voice.why == HEARD_END_OVERRULED : heard_is_overruled(f)) ? HEARD_SAY_OVERRULED : HEARD_SAY_OVER;
        case HEARD_WAIT:
                return HEARD_SAY_LATER;
        case HEARD_REWRITE:
        case HEARD_CORDON:
        case HEARD_END:
        case _HEARD_ACT_MAX:
        case _HEARD_ACT_INVALID:
                break;
        }
        return _HEARD_SAY_INVALID;
}

/* Why it is drained no more. NULL: not known to this leader. */
static const char *why_over(const Heard *x) {
        return x && x->has_ended ? heard_end_text(x->voice.why) : NULL;
}

static void say_conditions(Heard *x, const KubeNode *n, const KubeNodeClaim *claim, const HeardFacts *f) {
        HeardSay say = what_to_say(x, n, f);
        _cleanup_free_ char *text = how_far(x, say);

        if (say == _HEARD_SAY_INVALID)
                return;
        if (is_being_removed(n, claim))
                say = HEARD_SAY_NOTHING;
        heard_statuses_say(x->owner->statuses, n, x->key, say,
                           &(HeardWords){ .announced = f->announced,
                                          .deletes = f->is_managed ? f->deletes : INTERRUPTION_DELETE_NEVER,
                                          .why = why_over(x),
                                          .how_far = text });
}

/* -- one node ------------------------------------------------------------------------------------------- */

/* In which boot it is, and until when it was in another one. */
static void note_boot(Heard *x, const KubeNode *n) {
        usec_t wall = loop_wall(x->owner->env->loop);

        if (boot_id_differs(x->boot_id, n->boot_id))
                x->other_boot_usec = x->step_usec;
        x->step_usec = wall;
        if (!isempty(n->boot_id) && free_and_strdup(&x->boot_id, n->boot_id) < 0)
                (void) work_queue_retry(x->owner->queue, x->key);
}

static HeardFacts gather_facts(const HeardDrains *h, const Heard *x, const KubeNode *n, const KubeNodeClaim *claim) {
        const KubeNodePool *pool, *other;
        const CoordinatorConfig *config = h->context->config;
        bool is_marked = object_meta_has_finalizer(&n->object.meta, FINALIZER_TERMINATION);

        return (HeardFacts){
                .announced = claim ? &claim->announced : &n->announced,
                .drain = n->heard,
                .agents = kube_node_interruption(n),
                .boot_id = n->boot_id,
                .let_go_usec = claim ? claim->let_go_usec : n->let_go_usec,
                .deletes = (InterruptionDelete) config->interruption_delete,
                .before_usec = config->interruption_before_usec,
                .drains_unmanaged = config->queue_unmanaged == QUEUE_UNMANAGED_DRAIN,
                .is_kept = kube_node_is_unmanaged(n),
                .is_managed = claim || is_marked,
                .is_between = !claim != !is_marked,
                .is_going = claim && claim->object.meta.deletion_usec > 0,
                .is_wanted = cluster_view_pool_of_node(h->context->view, n, &pool, &other) != POOL_MATCH_NONE,
                .is_deleted = n->object.meta.deletion_usec > 0,
                .is_ready = kube_node_is_ready(n),
                .is_unschedulable = n->unschedulable,
                .ready_since_usec = kube_node_ready_since(n),
                .other_boot_usec = x->other_boot_usec,
                .settled_usec = x->settled_usec,
                .wall_usec = loop_wall(h->env->loop),
        };
}

static void heard_act(Heard *x, const KubeNode *n, const KubeNodeClaim *claim, const HeardFacts *f) {
        const TerminationContext *c = x->owner->context;
        usec_t wall = loop_wall(c->env->loop), deadline;
        const Announced *a = heard_drained_for(f, &deadline);

        switch (x->act) {
        case HEARD_REWRITE:
                write_next_list(x, n, claim ? &claim->object : &n->object, f);
                break;
        case HEARD_CORDON:
                x->has_ended = false;
                pod_returns_clear(x->returns); /* what came onto an open node is not counted */
                update_rules(x, n, a, deadline);
                x->lb_until_usec = usec_add(loop_now(c->env->loop), c->config->lb_wait_usec);
                write_heard(x, n, a->notice, HEARD_STEP_CORDONED, INTERRUPTION_DRAINING, HEARD_CORDON_PUT,
                            node_pods_count(c->view, x->node, &x->rules, wall).waited, NULL);
                break;
        case HEARD_DRAIN:
                update_rules(x, n, a, deadline);
                step_drain(x, n, a->notice);
                break;
        case HEARD_END:
                end_drain(x, n, f);
                break;
        case HEARD_WAIT:
        case HEARD_KEEP:
        case HEARD_NOTHING:
        case _HEARD_ACT_MAX:
        case _HEARD_ACT_INVALID:
                break;
        }
}

static void heard_step(Heard *x, const KubeNode *n, const KubeNodeClaim *claim) {
        HeardDrains *h = x->owner;
        bool has_drained = n->heard && interruption_has_drained(n->heard);
        usec_t wall = loop_wall(h->env->loop), until, deadline;
        const Announced *a;
        HeardFacts facts;

        x->settled_usec = !has_drained ? 0 : x->settled_usec > 0 ? x->settled_usec : wall;
        note_boot(x, n);
        facts = gather_facts(h, x, n, claim);
        x->act = heard_decide(&facts, &until);
        if (x->act != HEARD_DRAIN && x->act != HEARD_REWRITE) {
                if (x->drain)
                        node_drain_tell_unanswered(x->drain);
                x->drain = node_drain_free(x->drain);
        }
        a = heard_drained_for(&facts, &deadline);
        if (a || n->heard)
                heard_voice_set(&x->voice, a ? a->notice : n->heard->notice, a && a->state == ANNOUNCED_HELD);
        x->is_held = a && a->state == ANNOUNCED_HELD && !facts.is_going;
        heard_act(x, n, claim, &facts);
        say_conditions(x, n, claim, &facts);
        requeue_at_wall(x, until);
}

/* A person's claim that is refused (standalone.h) is none: nothing becomes of it, and what is put on its Node is taken off again. */
static const KubeNodeClaim *claim_of(const HeardDrains *h, const KubeNode *n) {
        const KubeNodeClaim *claim = cluster_view_claim_of_node(h->context->view, n);

        return claim && (!kube_node_claim_is_standalone(claim) || kube_node_claim_is_adopted(claim)) ? claim : NULL;
}

/* Nothing was announced, or no more: what was said of a drain, by this leader or one before, goes, too. */
static void see_no_more(HeardDrains *h, const char *name, const KubeNode *n, const KubeNodeClaim *claim, const char *key) {
        HeardSay say = n && is_being_removed(n, claim) ? HEARD_SAY_NOTHING : HEARD_SAY_OVER;

        if (n)
                heard_statuses_say(h->statuses, n, key, say, &(HeardWords){ .announced = &(AnnouncedList){}, .why = why_over(hashmap_get(h->map, name)) });
        else
                heard_statuses_forget(h->statuses, name);
        heard_forget(h, name);
}

bool heard_drains_see_node(HeardDrains *h, const char *name, const KubeNode *n, const char *key) {
        const KubeNodeClaim *claim = n ? claim_of(h, n) : NULL;
        Heard *x = hashmap_get(h->map, name);
        bool on_node = n && n->announced.n_items > 0, is_ours = n && object_meta_has_finalizer(&n->object.meta, FINALIZER_TERMINATION);
        const KubeNodePool *pool, *other;

        if (x && (!n || !streq(x->uid, n->object.meta.uid))) {
                heard_forget(h, name);
                x = NULL;
        }
        if (!n || !(n->heard || on_node || (claim && claim->announced.n_items > 0))) {
                see_no_more(h, name, n, claim, key);
                return false;
        }
        if (claim && is_ours && on_node)
                hand_over(h, n, claim, key);
        if (x || heard_new(h, n, key, &x) >= 0)
                heard_step(x, n, claim);
        else
                (void) work_queue_retry(h->queue, key);
        return !claim && !is_ours && cluster_view_pool_of_node(h->context->view, n, &pool, &other) == POOL_MATCH_NONE;
}

/* -- tests ---------------------------------------------------------------------------------------------- */

static void report_heard(const HeardDrains *h, const Heard *x, Wakeups *w) {
        static const char *const names[_HEARD_ACT_MAX] = {
                [HEARD_REWRITE] = "rewriting", [HEARD_CORDON] = "cordoning", [HEARD_DRAIN] = "draining",
                        [HEARD_END] = "ending",
        };
        const KubeNodeClaim *claim = NULL;
        const KubeNode *n = cluster_view_node(h->context->view, x->node);
        bool is_drained = n && n->heard && interruption_has_drained(n->heard);

        if (!names[x->act] || (x->act == HEARD_DRAIN && is_drained))
                return;
        if (n)
                claim = cluster_view_claim_of_node(h->context->view, n);
        wakeups_unfinished(w, "drain from the queue of node", x->node, names[x->act],
                           MAX(HEARD_DRAIN_WAKEUP_USEC, h->context->config->lb_wait_usec));
        wakeups_key(w, h->queue, x->key);
        wakeups_await(w, object_writes_are_under_way(h->context->writes, &kube_node_kind, NULL, x->node));
        wakeups_await(w, claim &&
                      object_writes_are_under_way(h->context->writes, &kube_node_claim_kind, NULL,
                                                  claim->object.meta.name));
        wakeups_await(w, x->drain && node_drain_will_report(x->drain));
        if (x->drain)
                node_drain_next_wakeup(x->drain, w);
}

void heard_drains_next_wakeup(const HeardDrains *h, Wakeups *w) {
        const Heard *x;

        HASHMAP_FOREACH (x, h->map)
                report_heard(h, x, w);
        heard_statuses_next_wakeup(h->statuses, w);
}
