/* SPDX-License-Identifier: Apache-2.0 */
#include "instance-orphans.h"

#include "coordinator-metrics.h"
#include "hashmap.h"
#include "log.h"
#include "string-util.h"

#define FIRST_USEC USEC_PER_MINUTE
#define PERIOD_USEC (5 * USEC_PER_MINUTE)
#define JITTER_PERMILLE 100u

/* -- which of them are orphans -------------------------------------------------------------------------- */

/* One that was present and unknown in each list since first_usec. */
typedef struct Look {
        char *provider_id;
        usec_t first_usec, last_usec; /* loop_now() */
        bool is_orphan;
} Look;

struct InstanceLooks {
        Hashmap *map; /* providerID -> Look */
        size_t n_orphans;
};

static void *look_free(void *p) {
        Look *x = p;

        free(x->provider_id);
        free(x);
        return NULL;
}

int instance_looks_new(InstanceLooks **ret) {
        _cleanup_(instance_looks_freep) InstanceLooks *l = new0(InstanceLooks, 1);
        int r;

        if (!l)
                return -ENOMEM;
        r = hashmap_new(HASHMAP_BORROW_KEYS, &l->map);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(l);
        return 0;
}

InstanceLooks *instance_looks_free(InstanceLooks *l) {
        if (!l)
                return NULL;
        hashmap_free_with(l->map, look_free);
        free(l);
        return NULL;
}

size_t instance_looks_orphans(const InstanceLooks *l) {
        return l->n_orphans;
}

static int look_new(InstanceLooks *l, const char *provider_id, usec_t now_usec) {
        Look *x = new0(Look, 1);
        int r;

        if (!x)
                return -ENOMEM;
        x->first_usec = x->last_usec = now_usec;
        r = free_and_strdup(&x->provider_id, provider_id);
        if (r >= 0)
                r = hashmap_put(l->map, x->provider_id, x);
        if (r < 0)
                look_free(x);
        return r;
}

static void look_drop(InstanceLooks *l, const char *provider_id) {
        Look *x = hashmap_remove(l->map, provider_id);

        if (!x)
                return;
        l->n_orphans -= x->is_orphan;
        look_free(x);
}

/* What was not in this list, or what somebody knows by now. */
static void drop_unseen(InstanceLooks *l, usec_t now_usec) {
        Look *x;

        HASHMAP_FOREACH (x, l->map)
                if (x->last_usec != now_usec)
                        look_drop(l, x->provider_id);
}

/* It may come back, or is there: it is paid for. */
static bool stays(InstanceState s) {
        return s == INSTANCE_PRESENT || s == INSTANCE_OFF;
}

int instance_looks_note(InstanceLooks *l, const CloudInstance *list, size_t n, usec_t now_usec,
                        bool (*is_known)(const char *provider_id, void *userdata),
                        void (*on_orphan)(const char *provider_id, usec_t since_usec, void *userdata),
                        void *userdata) {
        Look *x;
        int r = 0, k;

        for (size_t i = 0; i < n; i++) {
                if (!stays(list[i].state) || is_known(list[i].provider_id, userdata))
                        continue;
                x = hashmap_get(l->map, list[i].provider_id);
                if (x)
                        x->last_usec = now_usec;
                else if ((k = look_new(l, list[i].provider_id, now_usec)) < 0)
                        r = k;
        }
        /* Listed twice, it is not only present. */
        for (size_t i = 0; i < n; i++)
                if (!stays(list[i].state))
                        look_drop(l, list[i].provider_id);
        drop_unseen(l, now_usec);

        HASHMAP_FOREACH (x, l->map) {
                if (x->is_orphan || usec_sub(x->last_usec, x->first_usec) < INSTANCE_ORPHAN_USEC)
                        continue;
                x->is_orphan = true;
                l->n_orphans++;
                on_orphan(x->provider_id, x->first_usec, userdata);
        }
        return r;
}

/* -- the lists of all providers ------------------------------------------------------------------------- */

#define NAMED_MAX 5u /* of one list, one line each: a command may call a whole data centre its own */

typedef struct Lister {
        InstanceOrphans *orphans;
        CloudProvider *provider;
        InstanceLooks *looks;
        CloudCall *call;
        char *said; /* why there was no list, as it was logged last; NULL: there was one */
        bool is_off;
        size_t n_unreadable; /* as it was logged last; 0: every object could be read */
        size_t n_new; /* orphans of the list that is being read */
} Lister;

struct InstanceOrphans {
        const TerminationContext *context;
        Env *env;
        WorkQueue *queue;
        Hashmap *claimed; /* providerIDs of all claims, while a list is read */
        usec_t next_usec; /* loop_now(): the next lists */
        Lister listers[CLOUD_PROVIDERS_MAX];
        size_t n_listers;
};

static int lister_add(InstanceOrphans *o, CloudProvider *p) {
        Lister *l = &o->listers[o->n_listers];
        int r;

        r = instance_looks_new(&l->looks);
        if (r < 0)
                return r;
        l->orphans = o;
        l->provider = p;
        o->n_listers++;
        return 0;
}

int instance_orphans_new(const TerminationContext *context, WorkQueue *queue, InstanceOrphans **ret) {
        _cleanup_(instance_orphans_freep) InstanceOrphans *o = NULL;
        int r = 0;

        assert(context && queue && ret);
        o = new0(InstanceOrphans, 1);
        if (!o)
                return -ENOMEM;
        o->context = context;
        o->env = context->env;
        o->queue = queue;
        for (size_t i = 0; i < context->cloud->n_providers && r >= 0; i++)
                if (cloud_provider_has(context->cloud->providers[i], CLOUD_LIST))
                        r = lister_add(o, context->cloud->providers[i]);
        if (r < 0)
                return r;
        o->next_usec = usec_add(loop_now(o->env->loop), FIRST_USEC);
        if (o->n_listers > 0)
                (void) work_queue_add_at(queue, INSTANCE_ORPHANS_KEY, o->next_usec);
        *ret = TAKE_PTR(o);
        return 0;
}

InstanceOrphans *instance_orphans_free(InstanceOrphans *o) {
        if (!o)
                return NULL;
        for (size_t i = 0; i < o->n_listers; i++) {
                cloud_call_free(o->listers[i].call);
                instance_looks_free(o->listers[i].looks);
                free(o->listers[i].said);
        }
        hashmap_free(o->claimed);
        free(o);
        return NULL;
}

/* -- one list ------------------------------------------------------------------------------------------- */

static int note_claimed(InstanceOrphans *o) {
        const ClusterView *view = o->context->view;
        const KubeNodeClaim *claim;
        int r;

        o->claimed = hashmap_free(o->claimed);
        r = hashmap_new(HASHMAP_BORROW_KEYS, &o->claimed);
        for (HashmapIterator it = {}; r >= 0 && cluster_view_iterate_claims(view, &it, &claim);) {
                r = claim->provider_id ? hashmap_put(o->claimed, claim->provider_id, o) : 0;
                if (r == -EEXIST)
                        r = 0;
        }
        return r;
}

static bool on_is_known(const char *provider_id, void *userdata) {
        const InstanceOrphans *o = ((Lister *) userdata)->orphans;

        return hashmap_contains(o->claimed, provider_id) ||
               cluster_view_node_of_provider_id(o->context->view, provider_id, NULL);
}

static void on_orphan(const char *provider_id, usec_t since_usec, void *userdata) {
        Lister *l = userdata;
        _cleanup_free_ char *shown = NULL;
        usec_t now = loop_now(l->orphans->env->loop);

        if (++l->n_new > NAMED_MAX)
                return;
        shown = str_sanitize(provider_id, 256);
        log_warning(l->orphans->env->log,
                    "Instance %s of provider %s has had neither a Node nor a NodeClaim for %llu minutes. "
                    "It is left alone: if nobody needs it, end it at the provider",
                    strempty(shown), l->provider->ops->name,
                    (unsigned long long) (usec_sub(now, since_usec) / USEC_PER_MINUTE));
}

/* Logs each change of the number, but for its way back to 0. */
static void log_unreadable(Lister *l, size_t n) {
        if (n > 0 && n != l->n_unreadable)
                log_warning(l->orphans->env->log,
                            "Failed to read %zu of the instances that provider %s lists, ignoring them: they are not found "
                            "if they have neither a Node nor a NodeClaim. Correct what the provider lists",
                            n, l->provider->ops->name);
        l->n_unreadable = n;
}

static void read_list(Lister *l, const CloudResult *result) {
        InstanceOrphans *o = l->orphans;
        int r;

        l->said = mfree(l->said);
        log_unreadable(l, result->n_unreadable);
        l->n_new = 0;
        r = note_claimed(o);
        if (r >= 0)
                r = instance_looks_note(l->looks, result->instances, result->n_instances,
                                        loop_now(o->env->loop), on_is_known, on_orphan, l);
        o->claimed = hashmap_free(o->claimed);
        if (r < 0)
                log_warning_errno(o->env->log, r,
                                  "Failed to read the instances of provider %s, awaiting the next list: %m",
                                  l->provider->ops->name);
        if (l->n_new > NAMED_MAX)
                log_warning(o->env->log, "So it is with %zu more instances of provider %s",
                            l->n_new - NAMED_MAX, l->provider->ops->name);
}

/* Once for each that is another than before. */
static void say_no_list(Lister *l, const CloudResult *result) {
        if (streq_ptr(l->said, result->message))
                return;
        (void) free_and_strdup(&l->said, result->message);
        log_warning(l->orphans->env->log,
                    "Provider %s does not list its instances: %s. "
                    "Those without a Node and a NodeClaim are not found meanwhile; it is asked again every 5 minutes",
                    l->provider->ops->name, result->message);
}

static void on_listed(const CloudResult *result, void *userdata) {
        Lister *l = userdata;
        InstanceOrphans *o = l->orphans;

        if (result->outcome == CLOUD_OK && cluster_view_healthy(o->context->view))
                read_list(l, result);
        else if (result->outcome == CLOUD_INVALID && streq_ptr(result->code, CLOUD_UNSUPPORTED)) {
                l->is_off = true;
                log_info(o->env->log,
                         "Provider %s cannot list its instances: those without a Node and a NodeClaim are not found",
                         l->provider->ops->name);
        } else if (result->outcome != CLOUD_OK)
                say_no_list(l, result);
        l->call = cloud_call_free(l->call);
}

void instance_orphans_reconcile(InstanceOrphans *o) {
        usec_t now = loop_now(o->env->loop);
        int r;

        if (now >= o->next_usec) {
                o->next_usec =
                        usec_add(now, random_jitter(o->env->random, PERIOD_USEC, JITTER_PERMILLE));
                for (size_t i = 0; i < o->n_listers && cluster_view_healthy(o->context->view); i++) {
                        Lister *l = &o->listers[i];

                        if (l->call || l->is_off)
                                continue;
                        r = cloud_reserve(l->provider, &(CloudReservation){ .operation = CLOUD_LIST, .done = on_listed, .userdata = l }, &l->call);
                        if (r < 0)
                                log_warning_errno(o->env->log, r,
                                                  "Failed to ask provider %s for its instances: %m",
                                                  l->provider->ops->name);
                }
        }
        (void) work_queue_add_at(o->queue, INSTANCE_ORPHANS_KEY, o->next_usec);
}

void instance_orphans_measure(const InstanceOrphans *o) {
        for (size_t i = 0; i < o->n_listers; i++)
                metrics_set(o->context->metrics, METRIC_ORPHANED_INSTANCES,
                            cloud_provider_index(o->listers[i].provider),
                            (double) instance_looks_orphans(o->listers[i].looks));
}

void instance_orphans_next_wakeup(const InstanceOrphans *o, Wakeups *w) {
        if (o->n_listers == 0)
                return;
        wakeups_unfinished(w, "list of", "instances", "", INSTANCE_ORPHANS_WAKEUP_USEC);
        wakeups_key(w, o->queue, INSTANCE_ORPHANS_KEY);
}
