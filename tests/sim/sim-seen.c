/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the requests and writes of each life of a process, and compares shown values with the truth. */
#include "sim-seen-internal.h"

#include <inttypes.h>

#include "fake-controllers.h"

#define LOOK_USEC (5 * USEC_PER_SEC)
/* Interval of checks while no Node, NodeClaim or pod changes. */
#define REST_USEC USEC_PER_MINUTE

/* A value that was wrong when it was checked last. */
typedef struct Difference {
        double low, high; /* the truth */
        usec_t since_usec, seen_usec;
} Difference;

static Hashmap *map_new(void) {
        Hashmap *m = NULL;
        int r = hashmap_new(0, &m);

        assert(r >= 0);
        return m;
}

SimObserver *sim_observer_new(SimCheck *c) {
        SimObserver *o = MUST(new0(SimObserver, 1));

        o->check = c;
        o->counts = map_new();
        o->compared = map_new();
        o->started = map_new();
        o->uids = map_new();
        o->told = map_new();
        o->left = map_new();
        return o;
}

SimObserver *sim_observer_free(SimObserver *o) {
        if (!o)
                return NULL;
        hashmap_free_with(o->counts, mfree);
        hashmap_free_with(o->compared, mfree);
        hashmap_free_with(o->started, mfree);
        hashmap_free_with(o->uids, mfree);
        hashmap_free_with(o->told, mfree);
        hashmap_free_with(o->left, mfree);
        for (size_t i = 0; i < o->n_ended; i++)
                sim_seen_ended_done(o->ended + i);
        free(o->ended);
        return mfree(o);
}

/* -- the comparison ---------------------------------------------------------------------------- */

/* Returns how long the value has had its present wrong value; 0: the value is right, or was right at the
 * last check. */
static usec_t wrong_for(SimObserver *o, const char *key, double shown, double low, double high) {
        usec_t now = sim_world_now(o->check->world);
        Difference *d;

        if (shown >= low && shown <= high) {
                free(hashmap_remove(o->compared, key));
                return 0;
        }
        d = sim_check_entry(o->compared, key, sizeof(Difference));
        if (d->since_usec == 0 || d->low < low || d->low > low || d->high < high || d->high > high ||
            now > d->seen_usec + 2 * REST_USEC)
                *d = (Difference){ .low = low, .high = high, .since_usec = now };
        d->seen_usec = now;
        return now - d->since_usec;
}

void sim_seen_compare(SimObserver *o, const char *key, double shown, double low, double high,
                      usec_t lag_usec) {
        usec_t wrong_usec = wrong_for(o, key, shown, low, high);

        if (wrong_usec == 0 || wrong_usec < lag_usec || !sim_check_was_calm(o->check, lag_usec))
                return;
        if (low == high)
                sim_check_broken(o->check, "seen", "%s is shown as %g, and is %g, for %.0f s", key, shown,
                                 low,
                                 (double) wrong_usec / USEC_PER_SEC);
        else
                sim_check_broken(o->check, "seen", "%s is shown as %g, and is from %g to %g, for %.0f s",
                                 key, shown, low, high,
                                 (double) wrong_usec / USEC_PER_SEC);
}

/* Returns a hash of the text that a double holds exactly. */
static double number_of(const char *text) {
        return text ? (double) (hash64(text, strlen(text)) >> 12) : -1;
}

void sim_seen_compare_text(SimObserver *o, const char *key, const char *shown, const char *truth,
                           usec_t lag_usec) {
        usec_t wrong_usec = wrong_for(o, key, number_of(shown), number_of(truth), number_of(truth));

        if (wrong_usec > 0 && wrong_usec >= lag_usec && sim_check_was_calm(o->check, lag_usec))
                sim_check_broken(o->check, "seen", "%s is shown as '%s', and is '%s', for %.0f s", key,
                                 strempty(shown), strempty(truth),
                                 (double) wrong_usec / USEC_PER_SEC);
}

/* -- lives ------------------------------------------------------------------------------------- */

SimCounts *sim_seen_counts(SimObserver *o, const SimLife *l) {
        _cleanup_free_ char *key = MUST(strf("%s %u", l->process->name, l->number));
        bool is_new = !hashmap_contains(o->counts, key);
        SimCounts *n = sim_check_entry(o->counts, key, sizeof(SimCounts));

        if (is_new)
                n->is_exact = l->number == 1;
        return n;
}

SimProcess *sim_seen_actor(const SimObserver *o) {
        SimProcess *p = sim_check_actor(o->check);

        return p && p->life ? p : NULL;
}

bool sim_seen_is_ours(const cJSON *object) {
        return fj_array_has(fj_get(object, "metadata", "finalizers", NULL), SIM_FINALIZER);
}

cJSON *sim_seen_annotation(const cJSON *object, const char *key) {
        const char *text = fj_string(object, "metadata", "annotations", key, NULL);

        return text ? cJSON_Parse(text) : NULL;
}

static SimVerb verb_of(const HttpRequest *request) {
        switch (request->method) {
        case HTTP_POST:
                return endswith(request->url, "/eviction") ? SIM_EVICT : SIM_CREATE;
        case HTTP_PUT:
                return SIM_UPDATE;
        case HTTP_PATCH:
                return SIM_PATCH;
        case HTTP_DELETE:
                return SIM_DELETE;
        case HTTP_GET:
        case HTTP_HEAD:
        case _HTTP_METHOD_MAX:
        case _HTTP_METHOD_INVALID:
                break;
        }
        return strstr(request->url, "watch=") ? SIM_WATCH : SIM_GET_OR_LIST;
}

void sim_observer_sent(SimObserver *o, const SimLife *life, const HttpRequest *request, const char *peer,
                       bool clean) {
        SimCounts *n = sim_seen_counts(o, life);

        n->is_exact = n->is_exact && clean && !life->was_paused && life->process->cut_usec == 0;
        if (streq(peer, "api")) {
                n->api_sent++;
                n->verbs[verb_of(request)]++;
                n->evictions_sent += verb_of(request) == SIM_EVICT;
        } else if (streq(peer, "169.254.169.254"))
                n->metadata_sent++;
        else
                n->cloud_sent++;
}

static bool writes_node(const FakeLogEntry *e) {
        return e && e->resource && e->resource->id == FAKE_NODES && !streq(e->method, "GET");
}

void sim_observer_answered(SimObserver *o, unsigned status) {
        const SimRequest *r = o->check->world->request;
        FakeApi *api = fake_cluster_api(o->check->world->cluster);
        SimProcess *p = sim_seen_actor(o);
        SimCounts *n;

        if (!p || status == 0)
                return;
        n = sim_seen_counts(o, p->life);
        if (streq_ptr(r->subresource, "eviction")) {
                n->evicted += status / 100 == 2;
                n->gone += status == 404;
        }
        n->node_writes_refused += status >= 400 &&
        writes_node(fake_api_log_at(api, fake_api_log_size(api) - 1));
}

void sim_observer_asked(SimObserver *o, const SimProcess *p) {
        if (p->life)
                sim_seen_counts(o, p->life)->reviews++;
}

/* -- writes ------------------------------------------------------------------------------------ */

static bool has(const cJSON *object, const char *annotation) {
        return fj_string(object, "metadata", "annotations", annotation, NULL);
}

/* Counts the removal as started, once for each leadership. */
static void note_removal(SimObserver *o, const SimLife *l, const cJSON *node) {
        _cleanup_free_ char *key = NULL;

        if (!l->leads || !sim_check_is_deleting(node) || !sim_seen_is_ours(node))
                return;
        key = MUST(strf("%s %u %u %s", l->process->name, l->number, l->term,
                        strempty(fj_string(node, "metadata", "uid", NULL))));
        if (hashmap_contains(o->started, key))
                return;
        (void) sim_check_entry(o->started, key, sizeof(uint8_t));
        sim_seen_counts(o, l)->started++;
}

static void note_interruption(SimCounts *n, const cJSON *old, const cJSON *new) {
        cJSON *was = sim_seen_annotation(old, "vesper.sh/interruption"),
                *is = sim_seen_annotation(new, "vesper.sh/interruption");
        const char *phase = fj_string(is, "phase", NULL);

        n->cordons += is && !streq_ptr(fj_string(was, "phase", NULL), phase) && streq_ptr(phase, "Cordoned");
        n->drained += is && !streq_ptr(fj_string(was, "phase", NULL), phase) && streq_ptr(phase, "Drained");
        cJSON_Delete(was);
        cJSON_Delete(is);
}

static void note_node_written(SimObserver *o, const SimLife *l, const cJSON *old, const cJSON *new) {
        SimCounts *n = sim_seen_counts(o, l);

        if (old && new) {
                n->adopted += !sim_seen_is_ours(old) && sim_seen_is_ours(new);
                n->released += sim_seen_is_ours(old) && !sim_seen_is_ours(new) &&
                !sim_check_is_deleting(new);
                n->granted += !has(old, "vesper.sh/shutdown-granted") &&
                has(new, "vesper.sh/shutdown-granted");
                n->repairs += !has(old, "vesper.sh/reboot-for-repair") &&
                has(new, "vesper.sh/reboot-for-repair");
                n->repairs += !sim_check_is_deleting(old) && sim_check_is_deleting(new);
                note_interruption(n, old, new);
        }
        if (old && sim_check_is_deleting(old) && sim_seen_is_ours(old) && (!new || !sim_seen_is_ours(new))) {
                n->finished++;
                sim_seen_removal_ended(o, l, old);
        }
}

static void note_node(SimObserver *o, const cJSON *old, const cJSON *new) {
        SimWorld *w = o->check->world;
        const SimProcess *p = sim_seen_actor(o);

        if (p)
                note_node_written(o, p->life, old, new);
        if (old && sim_check_is_deleting(old) && !new)
                o->n_removed++;
        for (size_t i = 0; i < w->n_processes && new; i++)
                if (w->processes[i]->kind == SIM_COORDINATOR && w->processes[i]->life)
                        note_removal(o, w->processes[i]->life, new);
}

static bool is_waited_for(const cJSON *pod) {
        return pod && fj_string(pod, "spec", "nodeName", NULL) && !fake_pod_is_terminal(pod) &&
                !sim_check_pod_is_daemon(pod);
}

static void note_pod(SimObserver *o, const cJSON *pod, int64_t n) {
        SimLeft *left;

        if (!is_waited_for(pod))
                return;
        left = sim_check_entry(o->left, fj_string(pod, "spec", "nodeName", NULL), sizeof(SimLeft));
        left->before[left->n_before % SIM_LEFT_MAX].n = left->n;
        left->before[left->n_before++ % SIM_LEFT_MAX].until_usec = sim_world_now(o->check->world);
        left->n += n;
}

int64_t sim_seen_pods_left(const SimObserver *o, const char *node) {
        const SimLeft *left = node ? hashmap_get(o->left, node) : NULL;

        return left ? left->n : 0;
}

int64_t sim_seen_pods_alive(const SimObserver *o, const char *node) {
        const SimMachine *m = sim_world_machine_of(o->check->world, strempty(node));

        return m ? MIN((int64_t) sim_world_pods_alive(o->check->world, sim_check_index(o->check, m)),
                       sim_seen_pods_left(o, node)) : 0;
}

bool sim_seen_pods_left_were(const SimObserver *o, const char *node, int64_t n, usec_t within_usec) {
        const SimLeft *left = node ? hashmap_get(o->left, node) : NULL;
        usec_t since = usec_sub(sim_world_now(o->check->world), within_usec);

        if (!left || left->n == n)
                return !left || left->n == n;
        for (size_t i = 0; i < MIN(left->n_before, (size_t) SIM_LEFT_MAX); i++)
                if (left->before[i].n == n && left->before[i].until_usec >= since)
                        return true;
        return left->n_before > SIM_LEFT_MAX &&
                left->before[left->n_before % SIM_LEFT_MAX].until_usec >= since;
}

void sim_observer_changed(SimObserver *o, const FakeChange *change) {
        const cJSON *old = fake_version_json(change->old), *new = fake_version_json(change->new);

        if (change->resource->id == FAKE_NODES || change->resource->id == FAKE_NODECLAIMS ||
            change->resource->id == FAKE_PODS)
                o->changed_usec = sim_world_now(o->check->world);
        sim_seen_note_object(o, change);
        if (change->resource->id == FAKE_NODES)
                note_node(o, old, new);
        if (change->resource->id == FAKE_NODECLAIMS && sim_seen_actor(o) && old &&
            new) /* a repair deletes the claim */
                sim_seen_counts(o, sim_seen_actor(o)->life)->repairs += !sim_check_is_deleting(old) &&
                sim_check_is_deleting(new);
        if (change->resource->id == FAKE_PODS) {
                note_pod(o, old, -1);
                note_pod(o, new, 1);
        }
        if (change->resource->id == FAKE_EVENTS)
                sim_seen_event_written(o, old, new);
        sim_seen_conditions_written(o, change);
        sim_seen_counts_written(o, change);
}

/* -- each second ------------------------------------------------------------------------------- */

static void note_removals(SimObserver *o) {
        SimWorld *w = o->check->world;
        const cJSON *node;

        for (size_t i = 0; i < w->n_processes; i++)
                if (w->processes[i]->kind == SIM_COORDINATOR && w->processes[i]->life)
                        FAKE_FOREACH (node, w->cluster, FAKE_NODES, NULL)
                                note_removal(o, w->processes[i]->life, node);
}

void sim_observer_look(SimObserver *o) {
        usec_t now = sim_world_now(o->check->world);

        note_removals(o);
        if (now < o->look_usec || !sim_check_was_calm(o->check, LOOK_USEC))
                return;
        o->look_usec = now + (now > o->changed_usec + REST_USEC ? REST_USEC : LOOK_USEC);
        sim_seen_look_at_statuses(o);
        sim_seen_look_at_metrics(o);
        sim_seen_look_at_events(o);
        sim_seen_look_at_ctl(o);
}
