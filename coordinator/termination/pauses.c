/* SPDX-License-Identifier: Apache-2.0 */
#include "pauses.h"

#include "hashmap.h"
#include "log.h"
#include "marks.h"
#include "resume-pace.h"
#include "string-util.h"

#define POOL_PAUSED_REASON "PoolPaused"
#define ALL_PAUSED_REASON "AllPaused"
#define POOL_RESUMING_REASON "Resuming"
#define ALL_RESUMING_REASON "ResumingAll"

/* One pool, or all of them. */
typedef struct Scope {
        char *pool;
        bool paused;
        ResumePace pace;
} Scope;

/* A removal that is to begin. */
typedef struct Wait {
        char *node, *pool; /* pool "": of none */
        usec_t begun_usec;
        bool may_begin;
} Wait;

struct Pauses {
        const TerminationContext *context;
        WorkQueue *queue;
        Scope all;
        Hashmap *scopes;  /* by pool; one that was never paused has none */
        Hashmap *waiting; /* by node */
        Timer *timer;
};

static void *scope_free(void *p) {
        Scope *s = p;

        free(s->pool);
        return mfree(s);
}

static void *wait_free(void *p) {
        Wait *w = p;

        free(w->node);
        free(w->pool);
        return mfree(w);
}

static usec_t now_of(const Pauses *p) {
        return loop_now(p->context->env->loop);
}

static Scope *scope_of(Pauses *p, const char *pool) {
        Scope *s = hashmap_get(p->scopes, pool);

        if (s)
                return s;
        s = new0(Scope, 1);
        if (!s || free_and_strdup(&s->pool, pool) < 0 || hashmap_put(p->scopes, s->pool, s) < 0)
                return s ? scope_free(s) : NULL;
        return s;
}

static void mark_pool(Pauses *p, const char *pool) {
        _cleanup_free_ char *key = strf("pool/%s", pool);

        if (key)
                (void) work_queue_add(p->queue, key);
        else
                work_queue_note_lost(p->queue);
}

static void mark_pools(Pauses *p) {
        const KubeNodePool *pool;

        for (HashmapIterator it = {}; cluster_view_iterate_pools(p->context->view, &it, &pool);)
                mark_pool(p, pool->object.meta.name);
}

/* -- turns ---------------------------------------------------------------------------------------------- */

static int by_age(const void *a, const void *b) {
        const Wait *const *x = a, *const *y = b;

        if ((*x)->begun_usec != (*y)->begun_usec)
                return (*x)->begun_usec < (*y)->begun_usec ? -1 : 1;
        return strcmp((*x)->node, (*y)->node);
}

/* loop_now() of when one of this scope may begin; USEC_INFINITY: not for itself. */
static usec_t scope_next(Scope *s, usec_t now) {
        return !s ? 0 : s->paused ? USEC_INFINITY : resume_pace_next(&s->pace, now);
}

static void scope_took(Scope *s, usec_t now) {
        if (s && s->pace.active)
                resume_pace_took(&s->pace, now);
}

/* Its turn, if it has come; else when to look again. */
static usec_t give_turn(Pauses *p, Wait *w, usec_t now) {
        Scope *s = hashmap_get(p->scopes, w->pool);
        usec_t at = MAX(scope_next(&p->all, now), scope_next(s, now));

        if (at > now)
                return at;
        scope_took(&p->all, now);
        scope_took(s, now);
        w->may_begin = true;
        p->context->requeue(w->node, 0, p->context->userdata);
        return USEC_INFINITY;
}

/* The scope's pace ends by itself, and its pool says so then. */
static usec_t watch_pace(Pauses *p, Scope *s, usec_t now) {
        bool before = s->pace.active;

        (void) resume_pace_next(&s->pace, now);
        if (before && !s->pace.active && s->pool)
                mark_pool(p, s->pool);
        else if (before && !s->pace.active)
                mark_pools(p);
        return s->pace.active ? usec_add(s->pace.minute_usec, USEC_PER_MINUTE) : USEC_INFINITY;
}

static void give_turns(Pauses *p) {
        usec_t now = now_of(p), next = watch_pace(p, &p->all, now);
        size_t n = hashmap_size(p->waiting), i = 0;
        _cleanup_free_ Wait **list = new0(Wait *, MAX(n, (size_t) 1));
        Scope *s;
        Wait *w;

        if (!list) {
                timer_arm_in(p->timer, USEC_PER_SEC);
                return;
        }
        HASHMAP_FOREACH (s, p->scopes)
                next = MIN(next, watch_pace(p, s, now));
        HASHMAP_FOREACH (w, p->waiting)
                list[i++] = w;
        qsort(list, n, sizeof(*list), by_age);
        for (i = 0; i < n; i++)
                if (!list[i]->may_begin)
                        next = MIN(next, give_turn(p, list[i], now));
        if (next == USEC_INFINITY)
                timer_disarm(p->timer);
        else
                timer_arm(p->timer, next);
}

static void on_timer(Timer *t, void *userdata) {
        give_turns(userdata);
}

/* -- what is paused --------------------------------------------------------------------------------------- */

static bool is_annotated(const ObjectMeta *m) {
        return streq_ptr(object_meta_annotation(m, ANNOTATION_PAUSED), "true");
}

static const char *name_of(const KubeNodePool *pool) {
        return pool ? pool->object.meta.name : "";
}

static void set_paused(Pauses *p, Scope *s, bool paused) {
        if (s->paused == paused)
                return;
        s->paused = paused;
        s->pace = (ResumePace){};
        if (!paused)
                resume_pace_begin(&s->pace, now_of(p));
        log_notice(p->context->env->log, "The removal of nodes of %s%s is %s", s->pool ? "NodePool " : "all NodePools", strempty(s->pool),
                   paused ? "paused: none begins, those under way go on"
                          : "resumed: what has piled up begins one by one, and twice as fast after each minute that goes well");
        timer_arm_in(p->timer, 0);
}

void pauses_see(Pauses *p, const KubeNodePool *pool) {
        bool paused = pool ? is_annotated(&pool->object.meta) : cluster_view_is_paused(p->context->view);
        Scope *s = pool ? hashmap_get(p->scopes, name_of(pool)) : &p->all;

        if (!s && !paused)
                return;
        if (!s)
                s = scope_of(p, name_of(pool));
        if (!s) {
                mark_pool(p, name_of(pool));
                return;
        }
        if (!pool && s->paused != paused)
                mark_pools(p);
        set_paused(p, s, paused);
}

/* What its condition says of before this leader: that it was paused, or was resuming. */
static int inherit(Pauses *p, const KubeNodePool *pool) {
        const Condition *c = condition_find(pool->conditions, pool->n_conditions, POOL_PAUSED);
        const char *reason = c ? strempty(c->reason) : "";
        Scope *s;

        if (streq(reason, ALL_PAUSED_REASON) || streq(reason, ALL_RESUMING_REASON))
                p->all.paused = true;
        else if (streq(reason, POOL_PAUSED_REASON) || streq(reason, POOL_RESUMING_REASON)) {
                s = scope_of(p, name_of(pool));
                if (!s)
                        return -ENOMEM;
                s->paused = true;
        }
        return 0;
}

int pauses_new(const TerminationContext *context, WorkQueue *queue, Pauses **ret) {
        _cleanup_(pauses_freep) Pauses *p = new0(Pauses, 1);
        const KubeNodePool *pool;
        int r;

        assert(context && queue && ret);
        if (!p)
                return -ENOMEM;
        p->context = context;
        p->queue = queue;
        r = hashmap_new(HASHMAP_BORROW_KEYS, &p->scopes);
        if (r >= 0)
                r = hashmap_new(HASHMAP_BORROW_KEYS, &p->waiting);
        if (r >= 0)
                r = timer_new(context->env->loop, "pauses", on_timer, p, &p->timer);
        for (HashmapIterator it = {}; r >= 0 && cluster_view_iterate_pools(context->view, &it, &pool);)
                r = inherit(p, pool);
        if (r < 0)
                return r;
        pauses_see(p, NULL);
        for (HashmapIterator it = {}; cluster_view_iterate_pools(context->view, &it, &pool);)
                pauses_see(p, pool);
        *ret = TAKE_PTR(p);
        return 0;
}

Pauses *pauses_free(Pauses *p) {
        if (!p)
                return NULL;
        timer_free(p->timer);
        hashmap_free_with(p->scopes, scope_free);
        hashmap_free_with(p->waiting, wait_free);
        return mfree(p);
}

void pauses_forget_node(Pauses *p, const char *node) {
        Wait *w = hashmap_remove(p->waiting, node);

        if (w)
                wait_free(w);
}

void pauses_forget_pool(Pauses *p, const char *pool) {
        Scope *s = hashmap_remove(p->scopes, pool);

        if (s)
                scope_free(s);
        timer_arm_in(p->timer, 0);
}

void pauses_note_trouble(Pauses *p) {
        Scope *s;

        resume_pace_note_trouble(&p->all.pace);
        HASHMAP_FOREACH (s, p->scopes)
                resume_pace_note_trouble(&s->pace);
}

/* -- asking --------------------------------------------------------------------------------------------- */

bool pauses_is_paused(const Pauses *p, const KubeNodePool *pool) {
        const Scope *s = hashmap_get(p->scopes, name_of(pool));

        return p->all.paused || (s && s->paused);
}

static bool holds(const Pauses *p, const char *pool) {
        const Scope *s = hashmap_get(p->scopes, pool);

        return p->all.paused || p->all.pace.active || (s && (s->paused || s->pace.active));
}

static char *message_of(const Pauses *p, const char *pool) {
        const Scope *s = hashmap_get(p->scopes, pool);

        if (p->all.paused)
                return strf("All removals of nodes are paused by the annotation " ANNOTATION_PAUSED
                            " on namespace %s. They begin when it is taken off",
                            cluster_view_pause_namespace(p->context->view));
        if (s && s->paused)
                return strf("NodePool %s is paused by its annotation " ANNOTATION_PAUSED ". Removals of its nodes begin when it is taken off", pool);
        return strf("Removals were paused, and begin one by one now. %zu of them wait", hashmap_size(p->waiting));
}

static int wait_new(Pauses *p, const char *node, const char *pool, usec_t begun_usec) {
        Wait *w = new0(Wait, 1);

        if (!w)
                return -ENOMEM;
        w->begun_usec = begun_usec;
        if (free_and_strdup(&w->node, node) < 0 || free_and_strdup(&w->pool, pool) < 0 || hashmap_put(p->waiting, w->node, w) < 0) {
                wait_free(w);
                return -ENOMEM;
        }
        return 0;
}

bool pauses_let_begin(Pauses *p, const KubeNode *n, const KubeNodePool *pool, usec_t begun_usec, char **ret_message) {
        const char *name = n->object.meta.name;
        Wait *w = hashmap_get(p->waiting, name);

        *ret_message = NULL;
        if (!w && !holds(p, name_of(pool)))
                return true;
        if (w && w->may_begin) {
                pauses_forget_node(p, name);
                return true;
        }
        if (!w && wait_new(p, name, name_of(pool), begun_usec) < 0)
                p->context->requeue(name, usec_add(now_of(p), USEC_PER_SEC), p->context->userdata);
        if (!w)
                timer_arm_in(p->timer, 0);
        *ret_message = message_of(p, name_of(pool));
        return false;
}

bool pauses_condition(const Pauses *p, const KubeNodePool *pool, const char **ret_reason, char **ret_message) {
        const Scope *s = hashmap_get(p->scopes, name_of(pool));

        *ret_message = NULL;
        if (pauses_is_paused(p, pool)) {
                *ret_reason = p->all.paused ? ALL_PAUSED_REASON : POOL_PAUSED_REASON;
                *ret_message = message_of(p, name_of(pool));
                return true;
        }
        *ret_reason = p->all.pace.active          ? ALL_RESUMING_REASON
                      : s && s->pace.active ? POOL_RESUMING_REASON
                                            : NULL;
        return false;
}

/* -- tests ---------------------------------------------------------------------------------------------- */

static void report_pace(const Pauses *p, const Scope *s, Wakeups *w) {
        if (!s->pace.active)
                return;
        wakeups_unfinished(w, "pause", s->pool ? s->pool : "of all pools", "lifted", PAUSES_WAKEUP_USEC);
        wakeups_timer(w, p->timer);
}

bool pauses_has_node(const Pauses *p, const char *node) {
        const Wait *x = hashmap_get(p->waiting, node);

        return x && !x->may_begin;
}

void pauses_next_wakeup(const Pauses *p, Wakeups *w) {
        const Scope *s;
        const Wait *x;

        report_pace(p, &p->all, w);
        HASHMAP_FOREACH (s, p->scopes)
                report_pace(p, s, w);
        HASHMAP_FOREACH (x, p->waiting) {
                s = hashmap_get(p->scopes, x->pool);
                if (x->may_begin || p->all.paused || (s && s->paused))
                        continue;
                wakeups_unfinished(w, "turn of node", x->node, "a pause was lifted", PAUSES_WAKEUP_USEC);
                wakeups_timer(w, p->timer);
        }
}
