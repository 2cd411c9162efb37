/* SPDX-License-Identifier: Apache-2.0 */
#include "object-writes.h"

#include "backoff.h"
#include "hashmap.h"
#include "list.h"
#include "log.h"
#include "string-util.h"
#include "token-bucket.h"

/* The server says that the state moved on: the watch will bring it; should it not, look again after a
 * moment. */
#define CONFLICT_USEC (500 * USEC_PER_MSEC)

/* So many in a row, on a state of which the view has brought no newer one: the view is old. */
#define CONFLICTS_MAX 3u

/* What was done, and is not seen after so long, is not there any more, as after etcd was restored from a backup: no watch
 * is that late. */
#define SEEN_USEC OBJECT_WRITES_WAKEUP_USEC

/* of the log */
#define WARNINGS_BURST 10u
#define WARNINGS_PER_MINUTE 6u

/* of urgent writes */
#define RETRY_BASE_USEC (100 * USEC_PER_MSEC)
#define RETRY_CAP_USEC (10 * USEC_PER_SEC)

/* An object with what was written on it. */
typedef struct Written {
        const KubeKind *kind;
        char *key; /* "kind/ns/name" */
        List list; /* of Write: one for each `what` */
} Written;

typedef struct Write {
        ObjectWrites *writes;
        Written *object;
        ListNode list;
        char *what, *name, *state, *reconcile_key, *also_fine;
        object_written_t written;
        void *userdata;
        KubeCall *call;
        bool done;   /* succeeded, on `state`: */
        usec_t done_usec;
        bool gone;   /* the object is: nothing is to be remembered */
        bool urgent; /* remembered when it fails, too: */
        unsigned n_conflicts; /* in a row, on `state` */
        Backoff backoff;
        usec_t not_before_usec;
        bool failing, moved_on; /* moved on: on another state at once */
} Write;

struct ObjectWrites {
        KubeClient *client;
        Env *env;
        WorkQueue *queue;
        HttpGuard guard;
        Hashmap *map; /* Written by its key; never with an empty list */
        TokenBucket warnings; /* of the log */
        view_is_old_t view_is_old;
        void *userdata; /* of view_is_old */
};

static void write_free(Write *x) {
        kube_call_free(x->call);
        free(x->what);
        free(x->name);
        free(x->state);
        free(x->reconcile_key);
        free(x->also_fine);
        free(x);
}

static void *written_free(void *p) {
        Written *o = p;

        LIST_FOREACH (x, &o->list, Write, list)
                write_free(x);
        free(o->key);
        return mfree(o);
}

int object_writes_new(KubeClient *c, WorkQueue *queue, HttpGuard guard, ObjectWrites **ret) {
        _cleanup_(object_writes_freep) ObjectWrites *w = NULL;
        int r;

        assert(c && queue && ret);
        w = new0(ObjectWrites, 1);
        if (!w)
                return -ENOMEM;
        w->client = c;
        w->env = kube_client_env(c);
        w->queue = queue;
        w->guard = guard;
        w->warnings = (TokenBucket){ .burst = WARNINGS_BURST, .per_minute = WARNINGS_PER_MINUTE };
        r = hashmap_new(HASHMAP_BORROW_KEYS, &w->map);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(w);
        return 0;
}

void object_writes_set_view_is_old(ObjectWrites *w, view_is_old_t view_is_old, void *userdata) {
        w->view_is_old = view_is_old;
        w->userdata = userdata;
}

ObjectWrites *object_writes_free(ObjectWrites *w) {
        if (!w)
                return NULL;
        hashmap_free_with(w->map, written_free);
        free(w);
        return NULL;
}

static char *written_key(const KubeKind *kind, const char *ns, const char *name) {
        return strf("%s/%s/%s", kind->plural, strempty(ns), name);
}

static Written *find_written(const ObjectWrites *w, const KubeKind *kind, const char *ns, const char *name) {
        _cleanup_free_ char *key = written_key(kind, ns, name);

        return key ? hashmap_get(w->map, key) : NULL;
}

/* The object goes with its last write. */
static void forget(ObjectWrites *w, Write *x) {
        Written *o = x->object;

        list_remove(&o->list, &x->list);
        write_free(x);
        if (o->list.size > 0)
                return;
        hashmap_remove(w->map, o->key);
        written_free(o);
}

static Write *find_write(ObjectWrites *w, const ObjectWrite *o) {
        Written *object = find_written(w, o->target.kind, o->target.ns, o->target.name);

        if (!object)
                return NULL;
        LIST_FOREACH (x, &object->list, Write, list)
                if (streq(x->what, o->what))
                        return x;
        return NULL;
}

bool object_writes_may(ObjectWrites *w, const ObjectWrite *o) {
        Write *x = find_write(w, o);
        bool same;

        if (!x)
                return true;
        same = streq(x->state, o->state);
        if (x->call)
                return false;
        if (same && x->done && loop_now(w->env->loop) < usec_add(x->done_usec, SEEN_USEC)) {
                (void) work_queue_add_at(w->queue, o->reconcile_key, usec_add(x->done_usec, SEEN_USEC));
                return false;
        }
        if (loop_now(w->env->loop) >= x->not_before_usec || (x->moved_on && !same))
                return true;
        (void) work_queue_add_at(w->queue, o->reconcile_key, x->not_before_usec);
        return false;
}

bool object_writes_failing(ObjectWrites *w, const ObjectWrite *o) {
        const Write *x = find_write(w, o);

        return x && x->failing;
}

void object_writes_forget(ObjectWrites *w, const KubeKind *kind, const char *ns, const char *name) {
        Written *o = find_written(w, kind, ns, name);
        size_t n;

        if (!o)
                return;
        n = o->list.size; /* the last one takes the object along */
        LIST_FOREACH (x, &o->list, Write, list) {
                if (x->call)
                        x->gone = true;
                else
                        forget(w, x);
                if (--n == 0)
                        break;
        }
}

static bool is_fine(const Write *x, const ApiError *error) {
        return !error || (x->also_fine && streq_ptr(error->reason, x->also_fine));
}

static void succeeded(ObjectWrites *w, Write *x, const char *reconcile_key) {
        x->done = true;
        x->done_usec = loop_now(w->env->loop);
        x->n_conflicts = 0;
        backoff_reset(&x->backoff);
        work_queue_forget(w->queue, reconcile_key);
        (void) work_queue_add(w->queue, reconcile_key);
}

/* A conflict passes by itself. */
static void warn_of_failure(ObjectWrites *w, const Write *x, const ApiError *error) {
        bool refused = error->http == 422, conflict = error->http == 404 || error->http == 409;
        usec_t at;

        if (conflict || (!refused && !x->urgent) ||
            !token_bucket_take(&w->warnings, loop_now(w->env->loop), &at))
                log_debug(w->env->log, "Failed to %s %s %s, retrying: %s", x->what, x->object->kind->kind, x->name,
                          strempty(error->message));
        else
                log_warning(w->env->log, "Failed to %s %s %s, %sretrying: %s", x->what, x->object->kind->kind,
                            x->name, refused ? "which the API server refuses as invalid, " : "",
                            strempty(error->message));
}

static void failed(ObjectWrites *w, Write *x, const char *reconcile_key, const ApiError *error) {
        bool moved_on = error->http == 404 || error->http == 409;
        usec_t now = loop_now(w->env->loop);

        warn_of_failure(w, x, error);
        if (moved_on)
                x->not_before_usec = usec_add(now, CONFLICT_USEC);
        else if (x->urgent)
                x->not_before_usec = usec_add(
                        now, MAX(backoff_next(&x->backoff, w->env->random), error->retry_after_usec));
        x->moved_on = moved_on;
        if (x->not_before_usec > 0)
                (void) work_queue_add_at(w->queue, reconcile_key, x->not_before_usec);
        else
                (void) work_queue_retry(w->queue, reconcile_key);
        if (moved_on && x->urgent) /* the view may know already */
                (void) work_queue_add(w->queue, reconcile_key);
        if (!moved_on || ++x->n_conflicts < CONFLICTS_MAX)
                return;
        x->n_conflicts = 0;
        if (w->view_is_old)
                w->view_is_old(x->object->kind, w->userdata);
}

static void on_done(const KubeReply *reply, void *userdata) {
        Write *x = userdata;
        ObjectWrites *w = x->writes;
        _cleanup_free_ char *reconcile_key = TAKE_PTR(x->reconcile_key);
        const ApiError *error = is_fine(x, reply->error) ? NULL : reply->error;

        x->call = kube_call_free(x->call);
        x->not_before_usec = 0;
        x->failing = error;
        if (x->written)
                x->written(x->name, error, x->userdata);
        if (error)
                failed(w, x, reconcile_key, error);
        else
                succeeded(w, x, reconcile_key);
        if (x->gone || (error && !x->urgent && error->http != 409)) /* conflicts are counted */
                forget(w, x);
}

static int written_get(ObjectWrites *w, const KubeTarget *t, Written **ret) {
        Written *o = find_written(w, t->kind, t->ns, t->name);
        int r;

        if (!o) {
                o = new0(Written, 1);
                if (!o)
                        return -ENOMEM;
                o->kind = t->kind;
                o->key = written_key(t->kind, t->ns, t->name);
                r = o->key ? hashmap_put(w->map, o->key, o) : -ENOMEM;
                if (r < 0) {
                        written_free(o);
                        return r;
                }
        }
        *ret = o;
        return 0;
}

/* What there is of that kind already is used again: its backoff goes on. */
static int write_get(ObjectWrites *w, const ObjectWrite *o, Write **ret) {
        Write *x = find_write(w, o);
        int r;

        if (!x) {
                x = new0(Write, 1);
                if (!x)
                        return -ENOMEM;
                x->writes = w;
                x->backoff = (Backoff){ .base_usec = RETRY_BASE_USEC,
                                        .cap_usec = RETRY_CAP_USEC,
                                        .jitter_permille = 200 };
                r = free_and_strdup(&x->what, o->what);
                if (r >= 0)
                        r = written_get(w, &o->target, &x->object);
                if (r < 0) {
                        write_free(x);
                        return r;
                }
                list_append(&x->object->list, &x->list);
        }
        if (!streq_ptr(x->state, o->state))
                x->n_conflicts = 0;
        x->done = false;
        x->urgent = o->urgent;
        x->written = o->written;
        x->userdata = o->userdata;
        *ret = x;
        return free_and_strdup(&x->name, o->target.name) < 0 || free_and_strdup(&x->state, o->state) < 0 ||
                               free_and_strdup(&x->reconcile_key, o->reconcile_key) < 0 ||
                               free_and_strdup(&x->also_fine, o->also_fine) < 0
                       ? -ENOMEM
                       : 0;
}

/* The call was started, or not. */
static int started(ObjectWrites *w, const ObjectWrite *o, Write *x, int r) {
        if (r >= 0)
                return 1;
        if (x)
                forget(w, x);
        (void) work_queue_retry(w->queue, o->reconcile_key);
        return r;
}

static KubeCallOptions call_options(const ObjectWrites *w, const ObjectWrite *o) {
        KubeRank rank = !o->urgent && o->rank == KUBE_RANK_FIRST ? KUBE_RANK_FOLLOWS : o->rank;

        return (KubeCallOptions){ .lane = rank == KUBE_RANK_FIRST ? HTTP_LANE_URGENT : HTTP_LANE_BULK,
                                  .guard = w->guard,
                                  .rank = rank,
                                  .object_unread = true };
}

int object_writes_patch(ObjectWrites *w, const ObjectWrite *o, KubePatchType type, const char *body) {
        KubeCallOptions options = call_options(w, o);
        Write *x = NULL;
        int r;

        if (!object_writes_may(w, o))
                return 0;
        r = write_get(w, o, &x);
        if (r >= 0)
                r = kube_patch(w->client, &o->target, type, body, &options, on_done, x, &x->call);
        return started(w, o, x, r);
}

int object_writes_create(ObjectWrites *w, const ObjectWrite *o, const char *body) {
        KubeCallOptions options = call_options(w, o);
        KubeTarget collection = o->target;
        Write *x = NULL;
        int r;

        if (!object_writes_may(w, o))
                return 0;
        collection.name = NULL;
        r = write_get(w, o, &x);
        if (r >= 0)
                r = kube_create(w->client, &collection, body, &options, on_done, x, &x->call);
        return started(w, o, x, r);
}

int object_writes_delete(ObjectWrites *w, const ObjectWrite *o, const char *uid,
                         const char *resource_version) {
        KubeCallOptions options = call_options(w, o);
        KubeDeleteOptions d = { .uid = uid, .resource_version = resource_version, .grace_sec = -1 };
        Write *x = NULL;
        int r;

        if (!object_writes_may(w, o))
                return 0;
        r = write_get(w, o, &x);
        if (r >= 0)
                r = kube_delete(w->client, &o->target, &d, &options, on_done, x, &x->call);
        return started(w, o, x, r);
}

bool object_writes_are_under_way(const ObjectWrites *w, const KubeKind *kind, const char *ns,
                                 const char *name) {
        const Written *o = find_written(w, kind, ns, name);

        if (!o)
                return false;
        LIST_FOREACH (x, &o->list, Write, list)
                if (x->call)
                        return true;
        return false;
}
