/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "awake-check.h"
#include "cmocka-test.h"
#include "containers.h"
#include "fake-client.h"
#include "fake-power.h"
#include "http-inproc.h"
#include "kubeconfig.h"
#include "kubelet-pods.h"
#include "log.h"
#include "string-util.h"

/* What PID 1 (fake-power.h) and the kubelet's /runningpods/ say of the pods of one machine, whose kubelet is slow to tell
 * the API. Nobody answers at /runningpods/ but in the tests test_kubelet_*. */

#define MS USEC_PER_MSEC

typedef struct Rig {
        FakeWorld world;
        Log *log;
        FakePower *power;
        Bus *bus;
        FakeRunningPods kubelet;
        HttpTransport *transport;
        KubeAuth *auth;
        KubeletClient *client;
        Env env;
        Containers *containers;
        unsigned n_told;
} Rig;

static void nothing(void *userdata) {
}

static void on_ended(void *userdata) {
        Rig *r = userdata;

        r->n_told++;
}

static void add(Rig *r, const char *name, int64_t stop_sec, bool pending) {
        fake_add_pod(r->world.cluster,
                     &(FakePod){ .name = name, .node = "n1", .stop_sec = stop_sec, .pending = pending });
}

static Rig *rig(void) {
        _cleanup_(kubeconfig_freep) KubeConfig *config = NULL;
        Rig *r = new0(Rig, 1);
        char *message = NULL;

        fake_world_init(&r->world, &(FakeClusterOptions){ 0 });
        fake_cluster_set_kubelet_lag(r->world.cluster, 3 * USEC_PER_SEC);
        r->power = fake_power_new(r->world.loop, &(FakePowerHooks){ nothing, nothing, nothing, NULL, NULL, r });
        fake_power_set_pods(r->power, r->world.cluster, "n1");
        r->bus = fake_power_bus(r->power, r->world.loop);
        assert_return_code(log_new(LOG_TARGET_NULL, LOG_LEVEL_INFO, "test", &r->log), 0);
        assert_return_code(http_inproc_new(r->world.loop, NULL, NULL, &r->transport), 0);
        r->env = (Env){ .loop = r->world.loop, .bus = r->bus, .log = r->log, .transport = r->transport };
        r->kubelet = (FakeRunningPods){ .cluster = r->world.cluster, .node = "n1" };
        assert_return_code(kubeconfig_plain("http://api", &config), 0);
        assert_return_code(kube_auth_new(r->world.loop, r->log, NULL, config, NULL, NULL, &r->auth, &message), 0);
        assert_return_code(kubelet_client_new(&r->env, r->auth, "n1", &r->client), 0);
        assert_return_code(containers_new(&r->env, r->client, on_ended, r, &r->containers), 0);
        fake_add_node(r->world.cluster, "n1", NULL, NULL, NULL);
        return r;
}

static void rig_freep(Rig **r) {
        containers_free((*r)->containers);
        kubelet_client_free((*r)->client);
        kube_auth_free((*r)->auth);
        http_transport_free((*r)->transport);
        free((*r)->kubelet.body);
        bus_free((*r)->bus);
        fake_power_free((*r)->power);
        fake_world_done(&(*r)->world);
        log_free((*r)->log);
        free(*r);
}

static void run(Rig *r, usec_t usec) {
        usec_t until = usec_add(virtual_time_now(r->world.time), usec);

        while (virtual_time_step(r->world.time, until) > 0)
                ;
        assert_in_range(assert_awake(r->world.loop, containers_next_wakeup, r->containers), 1, 2); /* the kubelet's poll, and PID 1's */
}

static bool ended(Rig *r, const char *name) {
        const cJSON *pod = fake_get(r->world.cluster, FAKE_PODS, "default", name);

        return containers_have_ended(r->containers, strempty(fj_string(pod, "metadata", "uid", NULL)));
}

TEST_CASE(test_cgroups) {
        static const struct {
                const char *path, *uid;
        } rows[] = {
                { "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1b2c_3d.slice/"
                  "cri-containerd-4e.scope",
                  "1b2c-3d" },
                { "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1b2c.slice/"
                  "crio-4e.scope/x",
                  "1b2c" },
                { "/kubepods.slice/kubepods-pod00ff_1.slice", "00ff-1" },
                { "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1b2c_3d.slice/"
                  "docker-4e.scope",
                  "1b2c-3d" },
                { "/machine.slice/n1/kubepods.slice/kubepods-pod00ff.slice/cri-containerd-1.scope", "00ff" },
                { "kubepods-pod00ff.slice//", "00ff" },
                { "/kubepods.slice/kubepods-burstable.slice", NULL },
                { "/kubepods.slice/kubepods-pod.slice/a.scope", NULL },
                { "/kubepods.slice/kubepods-pod12", NULL },
                { "/system.slice/kubelet.service", NULL },
                { "/system.slice/my-pod12.slice", NULL },
                { ".slice", NULL },
                { "-", NULL },
                { "/", NULL },
                { "", NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *uid = NULL;

                assert_return_code(containers_pod_of_cgroup(rows[i].path, &uid), 0);
                if (!streq_ptr(uid, rows[i].uid))
                        fail_msg("%s: %s", rows[i].path, strempty(uid));
        }
}

/* The kubelet answers, and PID 1 does too, or has no slices. */
static Rig *kubelet_rig(bool slices) {
        Rig *r = rig();

        assert_return_code(http_inproc_route(r->transport, "https://127.0.0.1:10250", fake_running_pods_handle, &r->kubelet), 0);
        if (!slices)
                fake_power_set_pods(r->power, NULL, NULL);
        return r;
}

TEST_CASE(test_decision) {
        enum { UNKNOWN, NEVER, RUNS, GONE, EARLY }; /* one source: no answer; not seen; runs; ended; ended, asked too early */
        static const struct {
                unsigned pid1, kubelet;
                bool ended;
        } rows[] = {
                { UNKNOWN, UNKNOWN, false }, { NEVER, NEVER, false },  { NEVER, UNKNOWN, false },
                { RUNS, UNKNOWN, false },    { GONE, UNKNOWN, true },  { UNKNOWN, GONE, true },
                { GONE, NEVER, true },       { NEVER, GONE, true },    { NEVER, RUNS, false },
                { GONE, GONE, true },        { GONE, RUNS, true },     { RUNS, GONE, false },
                { RUNS, RUNS, false },       { EARLY, UNKNOWN, false }, { UNKNOWN, EARLY, false },
                { GONE, EARLY, true },       { EARLY, GONE, false },   { EARLY, NEVER, false },
        };
        static const ContainersView views[] = {
                [UNKNOWN] = { .ran = true, .as_of_usec = 100 * USEC_PER_SEC },
                [NEVER] = { .known = true, .as_of_usec = 100 * USEC_PER_SEC },
                [RUNS] = { .known = true, .ran = true, .runs = true, .as_of_usec = 100 * USEC_PER_SEC },
                [GONE] = { .known = true, .ran = true, .as_of_usec = 10 * USEC_PER_SEC + CONTAINERS_SETTLE_USEC },
                [EARLY] = { .known = true, .ran = true, .as_of_usec = 10 * USEC_PER_SEC + CONTAINERS_SETTLE_USEC - 1 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const ContainersView both[] = { views[rows[i].pid1], views[rows[i].kubelet] };

                if (containers_pod_has_ended(both, ELEMENTSOF(both), 10 * USEC_PER_SEC) != rows[i].ended)
                        fail_msg("row %zu", i);
        }
}

/* From its last container on, with and without PID 1's signals; and what never ran has not ended. */
TEST_CASE(test_ended) {
        for (unsigned signals = 0; signals <= 1; signals++) {
                _cleanup_(rig_freep) Rig *r = rig();
                usec_t late = signals ? 10 * MS : 1010 * MS;

                add(r, "a", 2, false);
                add(r, "b", 2, false);
                run(r, 100 * MS);
                fake_power_set_unit_signals(r->power, signals > 0);
                assert_false(ended(r, "a")); /* not begun */
                containers_start(r->containers);
                run(r, 100 * MS);
                add(r, "late", 0, true);
                (void) fake_delete(r->world.cluster, FAKE_PODS, "default", "late", -1);
                (void) fake_delete(r->world.cluster, FAKE_PODS, "default", "a", -1);
                assert_false(ended(r, "a"));
                assert_false(ended(r, "late"));
                run(r, 1990 * MS);
                assert_false(ended(r, "a"));
                assert_int_equal(r->n_told, 0);
                run(r, 20 * MS + late);
                assert_true(ended(r, "a"));
                assert_int_equal(r->n_told, 1);
                assert_false(ended(r, "b"));
                assert_false(ended(r, "late"));
                containers_stop(r->containers);
                assert_false(ended(r, "a"));
                run(r, 3 * USEC_PER_SEC); /* nothing of it is left on the way */
                assert_int_equal(r->n_told, 1);
        }
}

/* In whatever moment between two looks somebody asks: half a second later it is known. */
TEST_CASE(test_asked_at_any_time) {
        for (unsigned at = 0; at <= 1000; at += 50) {
                _cleanup_(rig_freep) Rig *r = rig();

                fake_power_set_unit_signals(r->power, false);
                add(r, "a", 0, false);
                run(r, 100 * MS);
                containers_start(r->containers);
                run(r, 100 * MS);
                (void) fake_delete(r->world.cluster, FAKE_PODS, "default", "a", -1);
                run(r, 1200 * MS + at * MS);
                assert_false(ended(r, "a"));
                run(r, 490 * MS);
                assert_false(ended(r, "a"));
                run(r, 20 * MS);
                assert_true(ended(r, "a"));
                assert_int_equal(r->n_told, 1);
        }
}

/* It had ended, and runs once more: it has not ended, until it ends again. */
TEST_CASE(test_runs_once_more) {
        _cleanup_(rig_freep) Rig *r = rig();
        char uid[64];

        fake_cluster_set_kubelet(r->world.cluster, "n1", false);
        add(r, "a", 20, false);
        run(r, 100 * MS);
        (void) snprintf(
                uid, sizeof(uid), "%s",
                fj_string(fake_get(r->world.cluster, FAKE_PODS, "default", "a"), "metadata", "uid", NULL));
        containers_start(r->containers);
        run(r, 100 * MS);
        for (unsigned round = 1; round <= 2; round++) {
                fake_merge(r->world.cluster, FAKE_PODS, "default", "a", "{'status':{'phase':'Pending'}}");
                assert_false(containers_have_ended(r->containers, uid));
                run(r, 2 * USEC_PER_SEC);
                assert_true(containers_have_ended(r->containers, uid));
                assert_int_equal(r->n_told, round);
                fake_merge(r->world.cluster, FAKE_PODS, "default", "a", "{'status':{'phase':'Running'}}");
                run(r, 2 * USEC_PER_SEC);
                assert_false(containers_have_ended(r->containers, uid));
                assert_int_equal(r->n_told, round);
        }
}

/* Who asks late is told by a look that was begun half a second after he asked. */
TEST_CASE(test_asked_late) {
        _cleanup_(rig_freep) Rig *r = rig();

        add(r, "a", 0, false);
        run(r, 100 * MS);
        containers_start(r->containers);
        run(r, 100 * MS);
        (void) fake_delete(r->world.cluster, FAKE_PODS, "default", "a", -1);
        run(r, 1500 * MS);
        assert_int_equal(r->n_told, 0);
        assert_false(ended(r, "a"));
        run(r, 490 * MS);
        assert_false(ended(r, "a"));
        run(r, 20 * MS);
        assert_true(ended(r, "a"));
        assert_int_equal(r->n_told, 1);
}

/* One that ends at once, and is there again: its kubelet had just begun to start it. */
TEST_CASE(test_started_again) {
        _cleanup_(rig_freep) Rig *r = rig();
        char uid[64];

        add(r, "a", 20, false);
        run(r, 100 * MS);
        (void) snprintf(
                uid, sizeof(uid), "%s",
                fj_string(fake_get(r->world.cluster, FAKE_PODS, "default", "a"), "metadata", "uid", NULL));
        containers_start(r->containers);
        run(r, 100 * MS);
        fake_merge(r->world.cluster, FAKE_PODS, "default", "a", "{'status':{'phase':'Pending'}}");
        fake_cluster_set_kubelet(r->world.cluster, "n1", false);
        assert_false(containers_have_ended(r->containers, uid));
        run(r, 400 * MS);
        fake_merge(r->world.cluster, FAKE_PODS, "default", "a", "{'status':{'phase':'Running'}}");
        for (unsigned i = 0; i < 30; i++) {
                run(r, 100 * MS);
                assert_false(containers_have_ended(r->containers, uid));
        }
        assert_int_equal(r->n_told, 0);
}

/* A bus that falls silent: nothing is known; when it is back, all is asked and listened to again. */
TEST_CASE(test_silent) {
        _cleanup_(rig_freep) Rig *r = rig();

        fake_cluster_set_kubelet_lag(r->world.cluster, 10 * USEC_PER_SEC);
        add(r, "a", 1, false);
        add(r, "b", 6, false);
        run(r, 100 * MS);
        containers_start(r->containers);
        run(r, 100 * MS);
        (void) fake_delete(r->world.cluster, FAKE_PODS, "default", "a", -1);
        (void) fake_delete(r->world.cluster, FAKE_PODS, "default", "b", -1);
        assert_false(ended(r, "a") || ended(r, "b"));
        run(r, 1200 * MS);
        assert_true(ended(r, "a"));
        fake_power_set_bus(r->power, false);
        run(r, 3 * USEC_PER_SEC);
        assert_false(ended(r, "a"));
        fake_power_set_bus(r->power, true);
        run(r, 100 * MS);
        assert_true(ended(r, "a"));
        assert_false(ended(r, "b"));
        run(r, 1600 * MS);
        assert_false(ended(r, "b"));
        run(r, 200 * MS);
        assert_true(ended(r, "b"));
}

/* PID 1 does not answer at first: looked each second until it does. */
TEST_CASE(test_silent_at_first) {
        _cleanup_(rig_freep) Rig *r = rig();

        add(r, "a", 7, false);
        run(r, 100 * MS);
        fake_power_set_bus(r->power, false);
        containers_start(r->containers);
        run(r, 4 * USEC_PER_SEC);
        fake_power_set_bus(r->power, true);
        run(r, 100 * MS);
        (void) fake_delete(r->world.cluster, FAKE_PODS, "default", "a", -1);
        assert_false(ended(r, "a"));
        run(r, 6 * USEC_PER_SEC);
        assert_false(ended(r, "a"));
        run(r, 1100 * MS);
        assert_true(ended(r, "a"));
}

/* The driver "cgroupfs" has no slices; and there may be no bus, or one that is away. */
TEST_CASE(test_unknown) {
        for (unsigned bus = 0; bus <= 2; bus++) {
                _cleanup_(rig_freep) Rig *r = rig();

                fake_power_set_pods(r->power, NULL, NULL);
                if (bus == 0)
                        r->env.bus = NULL;
                add(r, "a", 0, false);
                if (bus == 2) {
                        assert_true(fake_power_shutdown(r->power, "poweroff", false));
                        run(r, 2 * USEC_PER_SEC);
                        assert_int_equal(fake_power_phase(r->power), FAKE_POWER_OFF);
                }
                run(r, 100 * MS);
                containers_start(r->containers);
                containers_start(r->containers);
                run(r, 100 * MS);
                (void) fake_delete(r->world.cluster, FAKE_PODS, "default", "a", -1);
                for (unsigned i = 0; i < 20; i++) {
                        assert_false(ended(r, "a"));
                        run(r, 100 * MS);
                }
                assert_int_equal(r->n_told, 0);
        }
}

/* Whenever the pods are asked about, and whenever they end: none has ended before it has, and each is known to have 4 s
 * later, or, where PID 1 knows of them, a second later. */
TEST_CASE(test_kubelet_tells) {
        for (unsigned slices = 0; slices <= 1; slices++)
                for (unsigned at = 0; at < 4000; at += 170) {
                        _cleanup_(rig_freep) Rig *r = kubelet_rig(slices > 0);
                        usec_t since = 0;

                        fake_cluster_set_kubelet_lag(r->world.cluster, USEC_PER_MINUTE);
                        add(r, "a", 1 + at % 3, false);
                        add(r, "b", 0, false);
                        run(r, at * MS);
                        if (at == 0)
                                run(r, 100 * MS);
                        containers_start(r->containers);
                        run(r, at % 1100 * MS + 100 * MS);
                        (void) fake_delete(r->world.cluster, FAKE_PODS, "default", "a", -1);
                        for (unsigned i = 0; i < 100; i++) {
                                const cJSON *pod = fake_get(r->world.cluster, FAKE_PODS, "default", "a");
                                bool runs = fake_cluster_containers_run(r->world.cluster, pod);

                                assert_false(runs && ended(r, "a"));
                                assert_false(ended(r, "b"));
                                since += runs ? 0 : 100 * MS;
                                assert_true(ended(r, "a") || since < (slices ? 1300 : 4300) * MS);
                                run(r, 100 * MS);
                        }
                        assert_int_equal(r->n_told, 1);
                        containers_stop(r->containers);
                        assert_false(ended(r, "a"));
                }
}

/* A container that the kubelet starts again is missing from its answers for 3 s more. */
TEST_CASE(test_kubelet_starts_it_again) {
        for (unsigned at = 0; at < 4000; at += 90) {
                _cleanup_(rig_freep) Rig *r = kubelet_rig(false);
                _cleanup_free_ char *uid = NULL;

                add(r, "a", 20, false);
                run(r, 100 * MS);
                uid = strdup(fj_string(fake_get(r->world.cluster, FAKE_PODS, "default", "a"), "metadata", "uid", NULL));
                containers_start(r->containers);
                run(r, 100 * MS + at * MS);
                fake_merge(r->world.cluster, FAKE_PODS, "default", "a", "{'status':{'phase':'Pending'}}");
                fake_cluster_set_kubelet(r->world.cluster, "n1", false);
                run(r, at % 1500 * MS);
                assert_false(containers_have_ended(r->containers, uid));
                run(r, 490 * MS);
                fake_merge(r->world.cluster, FAKE_PODS, "default", "a", "{'status':{'phase':'Running'}}");
                for (unsigned i = 0; i < 80; i++) {
                        run(r, 100 * MS);
                        assert_false(containers_have_ended(r->containers, uid));
                }
        }
}

/* What the kubelet no longer answers is not known any more, unless PID 1 knows it; a refusal changes nothing. */
TEST_CASE(test_kubelet_silent) {
        for (unsigned slices = 0; slices <= 1; slices++) {
                _cleanup_(rig_freep) Rig *r = kubelet_rig(slices > 0);

                fake_cluster_set_kubelet_lag(r->world.cluster, USEC_PER_MINUTE);
                add(r, "a", 1, false);
                run(r, 100 * MS);
                containers_start(r->containers);
                run(r, 100 * MS);
                (void) fake_delete(r->world.cluster, FAKE_PODS, "default", "a", -1);
                assert_false(ended(r, "a"));
                run(r, 7 * USEC_PER_SEC);
                assert_true(ended(r, "a"));
                r->kubelet.status = 500;
                run(r, 2 * USEC_PER_SEC);
                assert_true(ended(r, "a") == (slices > 0));
                r->kubelet.status = 0;
                run(r, 5 * USEC_PER_SEC);
                assert_true(ended(r, "a"));
                r->kubelet.status = 403;
                run(r, 2 * USEC_PER_SEC);
                assert_true(ended(r, "a") == (slices > 0));
                r->kubelet.status = 0; /* asked again in an hour */
                run(r, 5 * USEC_PER_SEC);
                assert_true(ended(r, "a") == (slices > 0));
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_cgroups),    cmocka_unit_test(test_ended),
                cmocka_unit_test(test_asked_at_any_time), cmocka_unit_test(test_runs_once_more),
                cmocka_unit_test(test_asked_late), cmocka_unit_test(test_started_again),
                cmocka_unit_test(test_silent),     cmocka_unit_test(test_silent_at_first),
                cmocka_unit_test(test_unknown),    cmocka_unit_test(test_decision),
                cmocka_unit_test(test_kubelet_tells), cmocka_unit_test(test_kubelet_starts_it_again),
                cmocka_unit_test(test_kubelet_silent),
        };

        return cmocka_run_group_tests_name("containers", tests, NULL, NULL);
}
