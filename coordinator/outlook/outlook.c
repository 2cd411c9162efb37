/* SPDX-License-Identifier: Apache-2.0 */
#include "outlook.h"

#include "coordinator-metrics.h"
#include "log.h"
#include "marks.h"
#include "outlook-feed.h"
#include "outlook-rule.h"
#include "status-patch.h"
#include "string-util.h"

#define ROUND_MIN_USEC (10 * USEC_PER_SEC)
#define ROUND_MAX_USEC (5 * USEC_PER_MINUTE)
#define ROUND_SHARE 20u /* of the time until the next round one part at most is spent on judging */
#define TURN_USEC (10 * USEC_PER_MSEC)
#define TURN_PAUSE_USEC (10 * USEC_PER_MSEC)
#define TURN_NODES 200u /* as many at most, however quick they are */
#define RETRY_USEC USEC_PER_SEC
#define LEFT_OUT_USEC USEC_PER_HOUR /* until it is told again which namespaces have too many rules */

struct Outlook {
        const TerminationContext *context;
        WorkQueue *queue;
        TokenBucket *writes, *events;
        OutlookFeed *feed; /* NULL: no pool asks */
        Hashmap *memos;    /* by node */
        bool stands;       /* the view is whole */
        bool is_changed;   /* since the last round began */
        DisruptionScene *scene; /* of the round under way; NULL: none is */
        uint32_t first_node, n_judged; /* of that round: it goes on from there, and round at the last */
        uint64_t round;
        usec_t began_usec, busy_usec;  /* loop_now(): of the round under way, or the last; how long it has judged */
        usec_t ended_usec;             /* the same: 0: none has ended */
        usec_t asked_usec;             /* the same: since when a pool asks */
        usec_t not_before_usec, due_usec; /* the same, of the next one: at the earliest; in any case */
        usec_t until_usec; /* wall clock: the first thing that ends by itself, as far as the round has come */
        bool is_unfinished; /* a claim is still to be written */
        char *next_claim;   /* whose turn it is when writes are to be had again; NULL: the first's */
        char *next_told;    /* the node whose turn it is when Events are; NULL: the first's */
        bool is_quiet;      /* in the round under way there was none to be had for a node */
        char *left_out;     /* the sentence that was logged last about namespaces with too many rules; NULL: none have */
        usec_t left_out_usec; /* loop_now(): when that was; 0: never */
        bool is_clean;      /* no pool asks, and no claim says anything of ours */
};

static usec_t now_of(const Outlook *o) {
        return loop_now(o->context->env->loop);
}

static void mark(Outlook *o, usec_t at_usec) {
        (void) work_queue_add_at(o->queue, OUTLOOK_KEY, MAX(at_usec, now_of(o)));
}

/* Without memory for it, it is the first's. */
static void note_turn(char **turn, const char *name) {
        free(*turn);
        *turn = strdup(name);
}

static void *free_memo(void *m) {
        return node_memo_free(m);
}

int outlook_new(const TerminationContext *context, WorkQueue *queue, TokenBucket *writes, TokenBucket *events, Outlook **ret) {
        _cleanup_(outlook_freep) Outlook *o = new0(Outlook, 1);
        int r;

        assert(context && queue && writes && events && ret);
        if (!o)
                return -ENOMEM;
        o->context = context;
        o->queue = queue;
        o->writes = writes;
        o->events = events;
        o->stands = cluster_view_healthy(context->view);
        r = hashmap_new(HASHMAP_BORROW_KEYS, &o->memos);
        if (r < 0)
                return r;
        mark(o, 0);

        *ret = TAKE_PTR(o);
        return 0;
}

Outlook *outlook_free(Outlook *o) {
        if (!o)
                return NULL;
        outlook_feed_free(o->feed);
        hashmap_free_with(o->memos, free_memo);
        free(o->next_claim);
        free(o->next_told);
        free(o->left_out);
        return mfree(o);
}

/* Its NodeClaim says what becomes of it: one that is there, and stays. */
static bool claim_is_told(const KubeNodeClaim *claim) {
        return claim && claim->object.meta.deletion_usec == 0 && kube_node_claim_is_adopted(claim);
}

/* -- what changes --------------------------------------------------------------------------------------- */

static void on_changed(void *userdata) {
        Outlook *o = userdata;

        if (o->is_changed)
                return;
        o->is_changed = true;
        if (!o->scene)
                mark(o, o->not_before_usec);
}

void outlook_changed(Outlook *o) {
        if (o->feed)
                on_changed(o);
}

void outlook_pools_changed(Outlook *o) {
        o->is_clean = false;
        outlook_changed(o);
        mark(o, 0);
}

static bool pod_runs(const KubePod *p) {
        return p && p->node_name && p->phase != POD_SUCCEEDED && p->phase != POD_FAILED;
}

void outlook_on_pod(Outlook *o, const KubePod *old, const KubePod *new) {
        const KubePod *pod = new ?: old;
        NodeMemo *m;

        if (!o->feed)
                return;
        outlook_feed_on_pod(o->feed, old, new);
        m = pod->node_name && !pod->is_daemon && !pod->is_static ? hashmap_get(o->memos, pod->node_name) : NULL;
        if (!m)
                return;
        if (new && !(old && old->node_name))
                m->was_occupied = true;
        if (pod_runs(old) && !pod_runs(new))
                m->left_usec = loop_wall(o->context->env->loop);
}

void outlook_on_node(Outlook *o, const KubeNode *old, const KubeNode *new) {
        if (o->feed)
                outlook_feed_on_node(o->feed, old, new);
}

void outlook_on_claim(Outlook *o, const KubeNodeClaim *claim) {
        const KubeNodePool *pool = claim && claim->node_pool ? cluster_view_pool(o->context->view, claim->node_pool) : NULL;

        if (o->feed && pool && pool_asks_for_any(pool) && claim_is_told(claim) && !hashmap_contains(o->memos, claim->node_name))
                on_changed(o);
}

void outlook_view_changed(Outlook *o, bool stands) {
        o->stands = stands;
        o->is_clean = false;
        mark(o, 0);
}

/* -- Events --------------------------------------------------------------------------------------------- */

static void tell_event(Outlook *o, NodeMemo *m, const KubeNode *n, const KubeNodeClaim *claim) {
        EventObject object = event_object(&n->object);
        _cleanup_free_ char *text = NULL;
        usec_t at;

        if (!token_bucket_has(o->events, 1, now_of(o), &at)) {
                if (!o->is_quiet) /* another round begins with it */
                        note_turn(&o->next_told, m->node);
                o->is_quiet = true;
                return;
        }
        text = outlook_event(m, claim, now_of(o));
        if (!text)
                return;
        (void) token_bucket_take(o->events, now_of(o), &at);
        event_record(o->context->recorder, &object, EVENT_NORMAL, "Unconsolidatable", "%s", text);
}

/* -- a round -------------------------------------------------------------------------------------------- */

static bool any_pool_asks(const Outlook *o) {
        const KubeNodePool *pool;

        for (HashmapIterator it = {}; cluster_view_iterate_pools(o->context->view, &it, &pool);)
                if (pool_asks_for_any(pool))
                        return true;
        return false;
}

static NodeMemo *take_memo(Outlook *o, const KubeNode *n) {
        NodeMemo *m = hashmap_get(o->memos, n->object.meta.name);

        if (m && streq(m->uid, strempty(n->object.meta.uid)))
                return m;
        if (m) {
                hashmap_remove(o->memos, m->node);
                node_memo_free(m);
        }
        if (node_memo_new(n->object.meta.name, strempty(n->object.meta.uid), now_of(o), &m) < 0)
                return NULL;
        if (hashmap_put(o->memos, m->node, m) < 0)
                return node_memo_free(m);
        return m;
}

static void note_until(Outlook *o, const NodeMemo *m) {
        for (PlanMethod i = 0; i < _PLAN_METHOD_MAX; i++)
                if (m->judgement.methods[i].is_asked)
                        o->until_usec = MIN(o->until_usec, m->judgement.methods[i].until_usec);
}

/* What was seen of the node, and its objects do not tell. */
static void look_back(const Outlook *o, NodeMemo *m, const KubeNodeClaim *claim, DisruptionNode *n) {
        usec_t since = node_memo_empty_since(m, claim, o->scene->now_usec);

        if (n->n_moving == 0)
                scene_set_empty_since(n, since);
        n->quiet_since_usec = MAX(n->quiet_since_usec, MIN(m->left_usec, o->scene->now_usec)); /* the clock may be set back */
}

static int judge_node(Outlook *o, uint32_t node) {
        const KubeNode *n = scene_node(o->scene, node);
        const KubeNodeClaim *claim = o->scene->nodes[node].claim;
        _cleanup_(node_judgement_done) NodeJudgement j = {};
        NodeMemo *m;
        int r;

        if (!o->scene->nodes[node].pool || !claim_is_told(claim) || n->object.meta.deletion_usec > 0 ||
            !pool_asks_for_any(o->scene->nodes[node].pool->pool))
                return 0;
        m = take_memo(o, n);
        if (!m)
                return -ENOMEM;
        m->round = o->round;
        look_back(o, m, claim, o->scene->nodes + node);
        r = outlook_judge(o->scene, node, &j);
        if (r < 0)
                return r;
        r = node_memo_take(m, &j, o->scene->now_usec);
        if (r < 0)
                return r;
        note_until(o, m);
        tell_event(o, m, n, claim);
        return 0;
}

static void drop_old_memos(Outlook *o) {
        NodeMemo *m;

        HASHMAP_FOREACH (m, o->memos)
                if (m->round != o->round) {
                        hashmap_remove(o->memos, m->node);
                        node_memo_free(m);
                }
}

static void end_round(Outlook *o) {
        usec_t now = now_of(o), until = o->until_usec == USEC_INFINITY ? USEC_INFINITY : loop_from_wall(o->context->env->loop, o->until_usec);

        o->scene = NULL;
        outlook_feed_end(o->feed);
        drop_old_memos(o);
        o->ended_usec = now;
        o->not_before_usec = usec_add(o->began_usec, MAX(ROUND_MIN_USEC, MIN(ROUND_SHARE * o->busy_usec, ROUND_MAX_USEC)));
        o->due_usec = MAX(MIN(usec_add(o->began_usec, ROUND_MAX_USEC), until), o->not_before_usec);
}

static void drop_round(Outlook *o) {
        if (!o->scene)
                return;
        o->scene = NULL;
        outlook_feed_end(o->feed);
        o->is_changed = true;
}

/* Some nodes, for ten milliseconds. */
static void take_turn(Outlook *o) {
        usec_t begin = now_of(o);
        int r = 0;

        for (unsigned i = 0; i < TURN_NODES && o->n_judged < o->scene->n_nodes && r >= 0; i++) {
                r = judge_node(o, (o->first_node + o->n_judged++) % o->scene->n_nodes);
                if (usec_sub(now_of(o), begin) >= TURN_USEC)
                        break;
        }
        o->busy_usec += usec_sub(now_of(o), begin);
        if (r < 0) {
                log_error_errno(o->context->env->log, r, "Failed to judge which nodes would go though nobody asked, beginning anew: %m");
                drop_round(o);
                o->not_before_usec = usec_add(now_of(o), ROUND_MIN_USEC);
        } else if (o->n_judged >= o->scene->n_nodes)
                end_round(o);
}

/* Once, and again where others are left out; never more than once an hour, as pods come and go. */
static void tell_left_out(Outlook *o) {
        _cleanup_free_ char *text = NULL;

        if (simulator_left_out_text(o->scene->simulator, &text) < 0)
                return;
        if (!text)
                o->left_out = mfree(o->left_out);
        if (!text || streq_ptr(text, o->left_out) || (o->left_out_usec > 0 && now_of(o) < usec_add(o->left_out_usec, LEFT_OUT_USEC)))
                return;
        log_warning(o->context->env->log, LEFT_OUT_NOTE, text);
        free(o->left_out);
        o->left_out = TAKE_PTR(text);
        o->left_out_usec = now_of(o);
}

/* False: later, at *ret_at_usec. */
static bool begin_round(Outlook *o, usec_t *ret_at_usec) {
        usec_t begin = now_of(o);
        int r;

        *ret_at_usec = o->is_changed || o->ended_usec == 0 ? o->not_before_usec : o->due_usec;
        if (begin < *ret_at_usec)
                return false;
        r = outlook_feed_begin(o->feed, &o->scene, ret_at_usec);
        if (r < 0)
                log_error_errno(o->context->env->log, r,
                                "Failed to make the snapshot by which nodes are judged that would go though nobody asked, retrying: %m");
        if (r <= 0) {
                o->scene = NULL;
                return false;
        }
        tell_left_out(o);
        o->is_changed = false;
        o->n_judged = 0;
        o->first_node = 0;
        if (o->next_told)
                (void) simulator_find_node(o->scene->simulator, o->next_told, &o->first_node);
        o->is_quiet = false;
        o->round++;
        o->until_usec = outlook_feed_awaits(o->feed) ? usec_add(o->scene->now_usec, VANISHED_USEC) : USEC_INFINITY;
        o->began_usec = begin;
        o->busy_usec = usec_sub(now_of(o), begin);
        return true;
}

/* -- writes --------------------------------------------------------------------------------------------- */

static char *wish_body(const KubeNodeClaim *claim, const OutlookWish *w) {
        JsonWriter *j = status_patch_open(&claim->object);

        if (!j)
                return NULL;
        status_patch_add_conditions(j, &claim->object, w->conditions, w->n_conditions, 0, w->dropped);
        return status_patch_close(j);
}

/* False: nothing more may be written before *ret_at_usec. */
static bool write_claim(Outlook *o, const KubeNodeClaim *claim, NodeMemo *m, usec_t *ret_at_usec) {
        ObjectWrite w = { .what = "write what would become of the node into",
                          .target = { .kind = &kube_node_claim_kind, .name = claim->object.meta.name, .subresource = "status" },
                          .state = claim->object.meta.resource_version,
                          .reconcile_key = OUTLOOK_KEY };
        _cleanup_(outlook_wish_done) OutlookWish wish = {};
        int r = outlook_wish(claim, m, now_of(o), &wish);
        _cleanup_free_ char *body = NULL;

        if (r == OUTLOOK_WRITE_NOTHING || r == OUTLOOK_WRITE_LATER)
                return true;
        o->is_unfinished = true;
        if (r < 0) {
                *ret_at_usec = usec_add(now_of(o), RETRY_USEC);
                return false;
        }
        if (!object_writes_may(o->context->writes, &w))
                return true; /* its answer, or the claim as it was written, is to come */
        if (!token_bucket_take(o->writes, now_of(o), ret_at_usec)) {
                note_turn(&o->next_claim, claim->object.meta.name);
                return false;
        }
        body = wish_body(claim, &wish);
        if (body && object_writes_patch(o->context->writes, &w, KUBE_PATCH_MERGE, body) > 0 && m)
                m->told_usec = now_of(o);
        return true;
}

/* Without a memo, once a round has come to its end, no pool asks about the node. */
static bool write_claim_of_node(Outlook *o, const KubeNodeClaim *claim, usec_t *ret_at_usec) {
        const KubeNode *n = claim->node_name ? cluster_view_node(o->context->view, claim->node_name) : NULL;
        NodeMemo *m = n ? hashmap_get(o->memos, claim->node_name) : NULL;

        if (!n || n->object.meta.deletion_usec > 0 || !streq_ptr(n->object.meta.uid, claim->node_uid) ||
            !claim_is_told(claim) || (m && !streq(m->uid, n->object.meta.uid)) || (!m && o->feed && o->ended_usec == 0))
                return true;
        return write_claim(o, claim, m, ret_at_usec);
}

/* From the claim at which writes ended to the last, then those before it: however many claims change, each has its turn. */
static void write_claims(Outlook *o) {
        _cleanup_free_ char *from = TAKE_PTR(o->next_claim);
        usec_t at = usec_add(now_of(o), RETRY_USEC);
        const KubeNodeClaim *claim;
        bool may = true;

        o->is_unfinished = false;
        for (unsigned lap = 0; lap < 2; lap++) {
                bool has_come = !from;

                for (HashmapIterator it = {}; may && cluster_view_iterate_claims(o->context->view, &it, &claim);) {
                        has_come = has_come || streq(claim->object.meta.name, from);
                        if (has_come == (lap == 0))
                                may = write_claim_of_node(o, claim, &at);
                }
        }
        if (o->is_unfinished)
                mark(o, at);
}

/* -- reconcile ------------------------------------------------------------------------------------------ */

static void stop_asking(Outlook *o) {
        drop_round(o);
        o->feed = outlook_feed_free(o->feed);
        hashmap_free_with(o->memos, free_memo);
        o->memos = NULL;
        outlook_unmeasure(o->context->metrics);
        o->ended_usec = o->not_before_usec = 0;
        o->left_out = mfree(o->left_out);
}

/* True: there is a feed, and a pool that asks. */
static bool keep_feed(Outlook *o) {
        bool asks = any_pool_asks(o);

        if (!asks && o->feed)
                stop_asking(o);
        if (!o->memos && hashmap_new(HASHMAP_BORROW_KEYS, &o->memos) < 0) {
                mark(o, usec_add(now_of(o), RETRY_USEC));
                return false;
        }
        if (asks && !o->feed) {
                o->asked_usec = now_of(o);
                if (outlook_feed_new(o->context->client, o->context->view, on_changed, o, &o->feed) < 0)
                        mark(o, usec_add(now_of(o), RETRY_USEC));
        }
        return o->feed;
}

void outlook_reconcile(Outlook *o) {
        usec_t at = USEC_INFINITY;

        if (!o->stands || !cluster_view_synced(o->context->view)) {
                drop_round(o);
                return; /* until outlook_view_changed() */
        }
        if (keep_feed(o)) {
                if (o->scene || begin_round(o, &at)) {
                        take_turn(o);
                        at = o->scene ? usec_add(now_of(o), TURN_PAUSE_USEC) : o->is_changed ? o->not_before_usec : o->due_usec;
                }
                mark(o, at);
        } else if (o->is_clean)
                return;
        if (o->scene)
                return;
        write_claims(o);
        o->is_clean = !o->feed && !o->is_unfinished;
}

/* -- metrics -------------------------------------------------------------------------------------------- */

void outlook_measure(Outlook *o) {
        size_t counts[_PLAN_METHOD_MAX][_OUTLOOK_WORD_MAX] = {};
        usec_t now = now_of(o), wall = loop_wall(o->context->env->loop), oldest = wall;
        Metrics *metrics = o->context->metrics;
        NodeMemo *m;

        HASHMAP_FOREACH (m, o->memos) {
                for (PlanMethod i = 0; i < _PLAN_METHOD_MAX; i++)
                        if (m->judgement.methods[i].is_asked)
                                counts[i][outlook_word(m->judgement.methods[i].code)]++;
                if (m->candidate_since_usec > 0)
                        oldest = MIN(oldest, m->candidate_since_usec);
        }
        for (size_t i = 0; i < _PLAN_METHOD_MAX; i++)
                for (size_t k = 0; k < _OUTLOOK_WORD_MAX; k++)
                        metrics_set(metrics, METRIC_OUTLOOK_NODES, metrics_index(metrics, METRIC_OUTLOOK_NODES, (size_t[]){ i, k, 0 }),
                                    (double) counts[i][k]);
        metrics_set(metrics, METRIC_OUTLOOK_OLDEST_SECONDS, 0, (double) usec_sub(wall, oldest) / USEC_PER_SEC);
        metrics_set(metrics, METRIC_OUTLOOK_ROUND_SECONDS, 0, (double) o->busy_usec / USEC_PER_SEC);
        metrics_set(metrics, METRIC_OUTLOOK_ROUND_AGE_SECONDS, 0,
                    o->feed ? (double) usec_sub(now, o->ended_usec > 0 ? o->ended_usec : o->asked_usec) / USEC_PER_SEC : 0);
}

void outlook_unmeasure(Metrics *metrics) {
        for (size_t i = 0; i < _PLAN_METHOD_MAX; i++)
                for (size_t k = 0; k < _OUTLOOK_WORD_MAX; k++)
                        metrics_set(metrics, METRIC_OUTLOOK_NODES, metrics_index(metrics, METRIC_OUTLOOK_NODES, (size_t[]){ i, k, 0 }), 0);
        metrics_set(metrics, METRIC_OUTLOOK_OLDEST_SECONDS, 0, 0);
        metrics_set(metrics, METRIC_OUTLOOK_ROUND_SECONDS, 0, 0);
        metrics_set(metrics, METRIC_OUTLOOK_ROUND_AGE_SECONDS, 0, 0);
}

void outlook_next_wakeup(const Outlook *o, Wakeups *w) {
        if (!o->stands || (!o->feed && o->is_clean))
                return;
        wakeups_unfinished(w, "outlook", "rounds", o->scene ? "a round" : "between rounds",
                           OUTLOOK_WAKEUP_USEC);
        wakeups_key(w, o->queue, OUTLOOK_KEY);
        if (!o->is_changed || o->scene || !o->feed)
                return;
        /* The feed may postpone the round, too. No round begins before not_before_usec. */
        wakeups_unfinished(w, "outlook", "rounds", "something changed",
                           MAX(usec_sub(o->not_before_usec, now_of(o)), OUTLOOK_CHANGED_WAKEUP_USEC));
        wakeups_key(w, o->queue, OUTLOOK_KEY);
}
