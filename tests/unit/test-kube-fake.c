/* SPDX-License-Identifier: Apache-2.0 */
/* Informer, leader election and Events against the fake cluster: what the scripted tests assert step by
 * step, here as a whole. */
#include <errno.h>
#include <stdlib.h>

#include "cmocka-test.h"
#include "event-recorder.h"
#include "fake-cluster.h"
#include "informer.h"
#include "kube-kinds.h"
#include "kube-rig.h"
#include "leader-elector.h"

#define SEC USEC_PER_SEC
#define SEEDS 20u
#define NAMES 40u

/* -- a cluster and one client of it
 * ------------------------------------------------------------------------- */

typedef struct Stand {
        VirtualTime *time;
        Loop *loop; /* of the server */
        Random *random;
        FakeCluster *cluster;
        RigHost *host;
        Informer *informer;
        unsigned known[NAMES]; /* by the events alone: 1 if there */
        unsigned synced;
} Stand;

static Stand *stand_new(uint64_t seed) {
        FakeClusterOptions options = { .controllers_off = FAKE_CONTROLLERS_ALL };
        Stand *s = new0(Stand, 1);

        assert_non_null(s);
        assert_return_code(virtual_time_new(RIG_START_WALL, &s->time), 0);
        assert_return_code(loop_new_virtual(s->time, &s->loop), 0);
        assert_return_code(random_new(seed, &s->random), 0);
        s->cluster = fake_cluster_new(s->loop, s->random, &options);
        s->host = rig_host_new(s->time, seed + 1, NULL, fake_cluster_handle, s->cluster);
        return s;
}

static Stand *stand_free(Stand *s) {
        informer_free(s->informer);
        rig_host_free(s->host);
        fake_cluster_free(s->cluster);
        random_free(s->random);
        loop_free(s->loop);
        virtual_time_free(s->time);
        return mfree(s);
}
DEFINE_FREEP(Stand, stand_free);

static void run_for(Stand *s, usec_t usec) {
        rig_run_until(s->time, virtual_time_now(s->time) + usec);
}

/* -- informer
 * ------------------------------------------------------------------------------------------------ */

static void on_event(Informer *i, InformerEvent e, KubeObject *old, KubeObject *new, void *userdata) {
        Stand *s = userdata;
        unsigned *known = &s->known[strtoul((new ?: old)->meta.name + 1, NULL, 10)];

        switch (e) {
        case INFORMER_ADDED:
                assert_int_equal((*known)++, 0);
                break;
        case INFORMER_MODIFIED:
                assert_int_equal(*known, 1);
                assert_string_equal(old->meta.uid, new->meta.uid);
                assert_string_not_equal(old->meta.resource_version, new->meta.resource_version);
                break;
        case INFORMER_DELETED:
                assert_int_equal((*known)--, 1);
                break;
        }
}

static void on_synced(Informer *i, void *userdata) {
        ((Stand *) userdata)->synced++;
}

static void informer_begin(Stand *s, unsigned page_size) {
        InformerHandler h = { .on_event = on_event, .on_synced = on_synced, .userdata = s };
        InformerOptions o = { .page_size = page_size };

        assert_return_code(informer_new(s->host->client, &kube_node_kind, &o, &h, &s->informer), 0);
}

static void assert_same_as_server(Stand *s) {
        const cJSON *node;
        size_t n = 0;

        FAKE_FOREACH(node, s->cluster, FAKE_NODES, NULL) {
                const KubeObject *o =
                        informer_get(s->informer, NULL, fj_string(node, "metadata", "name", NULL));

                assert_non_null(o);
                assert_string_equal(o->meta.uid, fj_string(node, "metadata", "uid", NULL));
                assert_string_equal(o->meta.resource_version,
                                    fj_string(node, "metadata", "resourceVersion", NULL));
                assert_int_equal(s->known[strtoul(o->meta.name + 1, NULL, 10)], 1);
                n++;
        }
        assert_int_equal(informer_size(s->informer), n);
        for (unsigned i = 0; i < NAMES; i++)
                n -= s->known[i];
        assert_int_equal(n, 0);
}

static void change_something(Stand *s) {
        _cleanup_free_ char *name = strf("n%u", (unsigned) random_below(s->random, NAMES));

        if (!fake_get(s->cluster, FAKE_NODES, NULL, name))
                fake_put(s->cluster, FAKE_NODES, fj_parse("{'metadata': {'name': '%s'}}", name));
        else if (random_below(s->random, 3) == 0)
                assert_true(fake_remove(s->cluster, FAKE_NODES, NULL, name));
        else
                fake_merge(s->cluster, FAKE_NODES, NULL, name, "{'metadata': {'labels': {'at': '%llu'}}}",
                           (unsigned long long) random_u64(s->random));
}

static void break_something(Stand *s) {
        FakeApi *api = fake_cluster_api(s->cluster);
        usec_t now = virtual_time_now(s->time);

        switch (random_below(s->random, 6)) {
        case 0:
                fake_cluster_compact(s->cluster);
                break;
        case 1:
                fake_api_cut_watches(api);
                break;
        case 2:
                fake_api_away_until(api, now + random_below(s->random, 20 * SEC));
                break;
        case 3:
                fake_api_stall_watches(api, now + random_below(s->random, 300 * SEC));
                break;
        case 4:
                http_inproc_cut_streams(s->host->transport);
                break;
        case 5:
                informer_kick(s->informer);
                break;
        }
}

static void on_fault(const FakeRequest *request, FakeApiFault *ret, void *userdata) {
        static const unsigned statuses[] = { 410, 429, 500, 503 };
        Stand *s = userdata;
        uint64_t dice = random_below(s->random, 20);

        if (dice < ELEMENTSOF(statuses))
                ret->status = statuses[dice];
        else if (dice == ELEMENTSOF(statuses))
                ret->drop = true;
        ret->delay_usec = random_below(s->random, 50 * USEC_PER_MSEC);
}

/* Whatever happens in between: in the end the copy is the original, and the events have told the same story.
 */
TEST_CASE(test_informer_converges) {
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
                _cleanup_(stand_freep) Stand *s = stand_new(seed);

                for (unsigned i = 0; i < NAMES; i++)
                        change_something(s);
                informer_begin(s, 7);
                fake_api_set_fault(fake_cluster_api(s->cluster), on_fault, s);
                for (unsigned i = 0; i < 2000; i++) {
                        change_something(s);
                        if (random_below(s->random, 50) == 0)
                                break_something(s);
                        run_for(s, random_below(s->random, 400 * USEC_PER_MSEC));
                }

                fake_api_set_fault(fake_cluster_api(s->cluster), NULL, NULL);
                run_for(s, 15 * USEC_PER_MINUTE);
                assert_int_equal(s->synced, 1);
                assert_true(informer_connected(s->informer));
                assert_int_equal(informer_undecodable(s->informer), 0);
                assert_same_as_server(s);
        }
}

/* The number of requests for a quiet hour: one list, and a watch every 6 to 10 minutes. */
TEST_CASE(test_informer_is_quiet) {
        _cleanup_(stand_freep) Stand *s = stand_new(1);
        FakeApi *api = fake_cluster_api(s->cluster);

        for (unsigned i = 0; i < NAMES; i++)
                change_something(s);
        informer_begin(s, 0);
        run_for(s, USEC_PER_HOUR);
        assert_int_equal(fake_api_count(api, FAKE_LIST, FAKE_NODES, NULL), 1);
        assert_in_range(fake_api_count(api, FAKE_WATCH, FAKE_NODES, NULL), 6, 10);
        assert_int_equal(fake_api_count_all(api), fake_api_count(api, FAKE_WATCH, FAKE_NODES, NULL) + 1);
        assert_same_as_server(s);
}

/* Bookmarks keep the point of resume young: a compaction while nothing of ours happens costs no list. */
TEST_CASE(test_bookmarks_spare_lists) {
        _cleanup_(stand_freep) Stand *s = stand_new(1);
        FakeApi *api = fake_cluster_api(s->cluster);

        change_something(s);
        informer_begin(s, 0);
        for (unsigned i = 0; i < 30; i++) {
                fake_put(s->cluster, FAKE_PODS,
                         fj_parse("{'metadata': {'namespace': 'default', 'name': 'p%u'}}", i));
                run_for(s, 2 * USEC_PER_MINUTE);
                fake_cluster_compact(s->cluster);
                fake_api_cut_watches(api);
                run_for(s, SEC);
        }
        assert_int_equal(fake_api_count(api, FAKE_LIST, FAKE_NODES, NULL), 1);
        assert_true(fake_api_count(api, FAKE_WATCH, FAKE_NODES, NULL) > 30);
}

/* -- leader election
 * ----------------------------------------------------------------------------------------- */

static void on_started(void *userdata) {
        ++*(unsigned *) userdata;
}

static void on_stopped(const char *why, void *userdata) {
        (void) why;
        *(unsigned *) userdata += 100;
}

static void on_released(void *userdata) {
        *(unsigned *) userdata += 10;
}

static LeaderElector *elector_begin(Stand *s, const char *identity, unsigned *count) {
        LeaderConfig config = { .ns = "kube-system", .name = "vesper", .identity = identity };
        LeaderHandler h = { .on_started = on_started, .on_stopped = on_stopped, .userdata = count };
        LeaderElector *e;

        assert_return_code(leader_elector_new(s->host->client, &config, &h, &e), 0);
        leader_elector_start(e);
        return e;
}

TEST_CASE(test_leases) {
        _cleanup_(stand_freep) Stand *s = stand_new(1);
        FakeApi *api = fake_cluster_api(s->cluster);
        unsigned a_count = 0, b_count = 0;
        _cleanup_(leader_elector_freep) LeaderElector *a = NULL, *b = NULL;

        a = elector_begin(s, "a", &a_count);
        run_for(s, SEC);
        b = elector_begin(s, "b", &b_count);
        run_for(s, USEC_PER_MINUTE - SEC);
        assert_int_equal(a_count, 1);
        assert_int_equal(b_count, 0);
        assert_true(leader_elector_is_leader(a));
        assert_string_equal(leader_elector_holder(b), "a");
        /* A renewal is one PUT; who waits only reads. */
        assert_int_equal(fake_api_count(api, FAKE_CREATE, FAKE_LEASES, NULL), 1);
        assert_int_equal(fake_api_count(api, FAKE_UPDATE, FAKE_LEASES, NULL), 30);
        assert_int_equal(fake_api_count_status(api, FAKE_UPDATE, FAKE_LEASES, NULL, 200), 30);

        leader_elector_step_down(a, on_released, &a_count);
        run_for(s, SEC / 10);
        assert_int_equal(a_count, 11);
        run_for(s, 4400 * USEC_PER_MSEC);
        assert_int_equal(b_count, 1);
        assert_true(leader_elector_is_leader(b));
        assert_int_equal(fj_int(fake_get(s->cluster, FAKE_LEASES, "kube-system", "vesper"), -1, "spec",
                                "leaseTransitions", NULL),
                         1);

        fake_api_away_until(api, virtual_time_now(s->time) + USEC_PER_MINUTE);
        run_for(s, 15 * SEC);
        assert_false(leader_elector_is_leader(b));
        assert_int_equal(b_count, 101);
        run_for(s, USEC_PER_MINUTE);
        assert_true(leader_elector_is_leader(b));
        assert_int_equal(b_count, 102);
}

/* -- Events
 * --------------------------------------------------------------------------------------------------- */

TEST_CASE(test_events) {
        static const EventObject objects[] = {
                { .api_version = "v1", .kind = "Node", .name = "n1", .uid = "u1" },
                { .api_version = "v1", .kind = "Pod", .ns = "kube-system", .name = "p1", .uid = "u2" },
                { .group = "vesper.sh",
                  .api_version = "v1alpha1",
                  .kind = "NodeClaim",
                  .name = "c1",
                  .uid = "u3" },
        };
        _cleanup_(stand_freep) Stand *s = stand_new(1);
        _cleanup_(event_recorder_freep) EventRecorder *e = NULL;
        FakeApi *api = fake_cluster_api(s->cluster);
        const cJSON *event;
        unsigned n = 0;

        assert_return_code(event_recorder_new(s->host->client, "vesper-coordinator", "host", &e), 0);
        for (unsigned i = 0; i < 5; i++) {
                for (size_t k = 0; k < ELEMENTSOF(objects); k++)
                        event_record(e, &objects[k], EVENT_WARNING, "DrainBlocked", "Waits for %s",
                                     objects[k].name);
                run_for(s, 10 * SEC);
        }
        run_for(s, USEC_PER_MINUTE);
        FAKE_FOREACH(event, s->cluster, FAKE_EVENTS, NULL) {
                assert_int_equal(fj_int(event, -1, "count", NULL), 5);
                assert_string_equal(fj_string(event, "lastTimestamp", NULL), "2027-01-15T08:00:40Z");
                n++;
        }
        assert_int_equal(n, 3);
        assert_int_equal(fake_api_count_status(api, FAKE_CREATE, FAKE_EVENTS, NULL, 201), 3);
        assert_int_equal(fake_api_count_status(api, FAKE_PATCH, FAKE_EVENTS, NULL, 200), 3);
        assert_int_equal(fake_api_count_all(api), 6);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_informer_converges),
                cmocka_unit_test(test_informer_is_quiet),
                cmocka_unit_test(test_bookmarks_spare_lists),
                cmocka_unit_test(test_leases),
                cmocka_unit_test(test_events),
        };
        return cmocka_run_group_tests_name("kube-fake", tests, NULL, NULL);
}
