/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "coordinator-metrics.h"
#include "coordinator-rig.h"
#include "http-inproc.h"
#include "marks.h"
#include "page.h"
#include "strv.h"

static uint64_t n_writes(CoordinatorRig *r) {
        uint64_t n = 0;

        for (size_t i = 0; i < fake_api_log_size(r->api); i++) {
                const FakeLogEntry *e = fake_api_log_at(r->api, i);

                n += e->verb != FAKE_GET && e->verb != FAKE_LIST && e->verb != FAKE_WATCH && e->resource &&
                     e->resource->id != FAKE_LEASES && startswith(e->path, "/") &&
                     !streq_ptr(e->user, "admin");
        }
        return n;
}

static const char *holder(CoordinatorRig *r) {
        return strempty(fj_string(fake_get(r->cluster, FAKE_LEASES, "vesper-system", "vesper-coordinator"),
                                  "spec", "holderIdentity", NULL));
}

/* -- who leads ------------------------------------------------------------------------------------------ */

TEST_CASE(test_one_leads) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 2, NULL);
        rig_start(r, 1);
        rig_run(r, 10 * USEC_PER_SEC);
        assert_true(coordinator_is_leader(r->coordinators[0]->coordinator));
        assert_false(coordinator_is_leader(r->coordinators[1]->coordinator));
        assert_true(coordinator_is_synced(r->coordinators[1]->coordinator));
        assert_string_equal(holder(r), "a-1");

        print_message("  the other does nothing, whatever happens\n");
        loop_virtual_pause(r->coordinators[0]->loop, loop_now(r->w.loop) + 5 * USEC_PER_SEC);
        fake_api_log_reset(r->api);
        rig_delete_node(r, "n0");
        rig_add_node(r, "n2");
        rig_run(r, 4 * USEC_PER_SEC);
        assert_int_equal(n_writes(r), 0);
        assert_true(rig_wait_gone(r, "n0", 5 * USEC_PER_SEC));
}

/* One ConfigMap for both replicas. */
TEST_CASE(test_same_configured_identity) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        r->settings[0] = (char *) "Lease.Identity=same";
        rig_start(r, 0);
        rig_start(r, 1);
        for (unsigned i = 0; i < 600; i++) {
                rig_run(r, 100 * MSEC);
                assert_false(coordinator_is_leader(r->coordinators[0]->coordinator) &&
                             coordinator_is_leader(r->coordinators[1]->coordinator));
        }
        assert_non_null(rig_leader(r));
        assert_non_null(startswith(holder(r), "same_"));
        assert_string_equal(holder(r), rig_leader(r)->identity);
        assert_string_not_equal(r->coordinators[0]->identity, r->coordinators[1]->identity);

        print_message("  and a process that starts anew is another one\n");
        rig_kill(r, 0);
        rig_start(r, 0);
        assert_string_not_equal(r->coordinators[0]->identity, holder(r));
        assert_string_not_equal(r->coordinators[0]->identity, r->coordinators[1]->identity);
}

TEST_CASE(test_identity_is_short) {
        CoordinatorConfig config = {
                .lease_identity =
                        (char *) "a-name-of-more-than-a-hundred-and-twenty-eight-characters-which-"
                                 "somebody-has-thought-out-for-a-replica-and-which-no-event-would-take"
        };
        _cleanup_(random_freep) Random *random = NULL;
        _cleanup_free_ char *identity = NULL, *other = NULL;

        assert_return_code(random_new(1, &random), 0);
        identity = MUST(coordinator_identity(&config, random));
        other = MUST(coordinator_identity(&config, random));
        assert_true(strlen(config.lease_identity) > 128);
        assert_int_equal(strlen(identity), 128);
        assert_non_null(startswith(identity, "a-name-of-more"));
        assert_string_not_equal(identity, other);

        print_message("  and no character is cut in two\n");
        config.lease_identity = (char *) "ééééééééééééééééééééééééééééééééééééééééééééééééé";
        free(other);
        other = MUST(coordinator_identity(&config, random));
        assert_int_equal(strlen(other), 127);
        assert_true(utf8_is_valid(other, strlen(other)));
}

TEST_CASE(test_stop_hands_over) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, NULL);
        rig_start(r, 1);
        rig_run(r, 5 * USEC_PER_SEC);
        rig_stop(r, 0);
        assert_string_equal(holder(r), "");
        rig_run(r, 5 * USEC_PER_SEC);
        assert_true(coordinator_is_leader(r->coordinators[1]->coordinator));
        rig_delete_node(r, "n0");
        assert_true(rig_wait_gone(r, "n0", USEC_PER_SEC));

        print_message("  one that never led stops, too\n");
        rig_start(r, 0);
        rig_run(r, 3 * USEC_PER_SEC);
        rig_stop(r, 0);
        assert_true(coordinator_is_leader(r->coordinators[1]->coordinator));
}

TEST_CASE(test_kill_hands_over) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, NULL);
        rig_start(r, 1);
        fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0", .stop_sec = 5 });
        rig_run(r, 5 * USEC_PER_SEC);
        rig_delete_node(r, "n0");
        rig_run(r, USEC_PER_SEC);
        rig_kill(r, 0);
        rig_run(r, 20 * USEC_PER_SEC);
        assert_true(coordinator_is_leader(r->coordinators[1]->coordinator));
        assert_true(rig_wait_gone(r, "n0", USEC_PER_SEC));
        assert_int_equal(rig_evictions(r, 0), 1);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
}

/* A leader that got no CPU for longer than its lease sends nothing any more when it wakes. */
TEST_CASE(test_paused_leader) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 3, NULL);
        rig_start(r, 1);
        fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0", .stop_sec = 2 });
        rig_run(r, 5 * USEC_PER_SEC);
        rig_delete_node(r, "n0");
        rig_run(r, 100 * MSEC);
        loop_virtual_pause(r->coordinators[0]->loop, loop_now(r->w.loop) + 60 * USEC_PER_SEC);
        assert_true(rig_wait_gone(r, "n0", 40 * USEC_PER_SEC));
        assert_true(coordinator_is_leader(r->coordinators[1]->coordinator));
        rig_run(r, 10 * USEC_PER_SEC);
        rig_stop(r, 1); /* so that nobody but the sleeper could write */
        fake_api_log_reset(r->api);
        rig_run(r, 9 * USEC_PER_SEC);
        assert_int_equal(n_writes(r), 0);
        rig_run(r, 30 * USEC_PER_SEC);
        assert_true(coordinator_is_leader(r->coordinators[0]->coordinator));
        assert_non_null(strstr(strbuf_str(&r->coordinators[0]->said), "Not leading any more"));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
        rig_delete_node(r, "n1");
        assert_true(rig_wait_gone(r, "n1", USEC_PER_SEC));
}

TEST_CASE(test_lease_lost_during_removal) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, NULL);
        fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0", .stop_sec = 25 });
        rig_run(r, USEC_PER_SEC);
        rig_delete_node(r, "n0");
        rig_run(r, 2 * USEC_PER_SEC);
        fake_merge(r->cluster, FAKE_LEASES, "vesper-system", "vesper-coordinator",
                   "{'spec':{'holderIdentity':'somebody-else','leaseDurationSeconds':15}}");
        rig_run(r, 5 * USEC_PER_SEC);
        assert_null(rig_leader(r));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
        print_message("  it ends, and the removal goes on where it was\n");
        rig_run(r, 20 * USEC_PER_SEC);
        assert_non_null(rig_leader(r));
        assert_true(rig_wait_gone(r, "n0", 30 * USEC_PER_SEC));
        assert_int_equal(rig_evictions(r, 0), 1);
}

static double tokens(CoordinatorRig *r) {
        return rig_metric(rig_leader(r), "vesper_coordinator_termination_tokens");
}

/* Nodes that were ended before the lease was lost count: whoever wins it again has no second burst. */
TEST_CASE(test_rate_over_leases) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 40, NULL);
        for (unsigned i = 0; i < 40; i++) {
                char name[16];

                snprintf(name, sizeof(name), "n%u", i);
                rig_delete_node(r, name);
        }
        rig_run(r, 10 * USEC_PER_SEC);
        assert_int_equal(fake_count(r->cluster, FAKE_NODES), 0);
        assert_in_range(tokens(r), 160, 175);
        fake_merge(r->cluster, FAKE_LEASES, "vesper-system", "vesper-coordinator",
                   "{'spec':{'holderIdentity':'somebody-else','leaseDurationSeconds':1}}");
        rig_run(r, 20 * USEC_PER_SEC);
        assert_non_null(rig_leader(r));
        assert_in_range(tokens(r), 160, 199);
}

static bool is_immediate_now(CoordinatorRig *r, size_t i) {
        return http_inproc_is_immediate(r->coordinators[i]->transport);
}

/* What pods do is awaited by who removes a node, as long as it does. */
TEST_CASE(test_hurry) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 2, NULL);
        rig_start(r, 1);
        fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0", .stop_sec = 25 });
        rig_run(r, 5 * USEC_PER_SEC);
        assert_false(is_immediate_now(r, 0) || is_immediate_now(r, 1));
        rig_delete_node(r, "n0");
        rig_delete_node(r, "n1");
        rig_run(r, 2 * USEC_PER_SEC);
        assert_null(rig_node(r, "n1"));
        assert_true(is_immediate_now(r, 0));
        assert_false(is_immediate_now(r, 1));

        print_message("  another leads\n");
        rig_stop(r, 1);
        fake_merge(r->cluster, FAKE_LEASES, "vesper-system", "vesper-coordinator",
                   "{'spec':{'holderIdentity':'somebody-else','leaseDurationSeconds':15}}");
        rig_run(r, 5 * USEC_PER_SEC);
        assert_false(is_immediate_now(r, 0));
        rig_run(r, 15 * USEC_PER_SEC);
        assert_true(is_immediate_now(r, 0));

        print_message("  the node is gone\n");
        assert_true(rig_wait_gone(r, "n0", 30 * USEC_PER_SEC));
        rig_run(r, USEC_PER_SEC);
        assert_false(is_immediate_now(r, 0));
}

static void let_go(CoordinatorRig *r) {
        fake_remove(r->cluster, FAKE_PDBS, "default", "web");
}

static void go_by_itself(CoordinatorRig *r) {
        fake_delete(r->cluster, FAKE_PODS, "default", "web", -1);
}

static void opt_out(CoordinatorRig *r) {
        fake_merge(r->cluster, FAKE_PODS, "default", "web",
                   "{'metadata':{'annotations':{'vesper.sh/do-not-evict':'true'}}}");
}

static void late_pod(CoordinatorRig *r) {
        fake_add_pod(r->cluster, &(FakePod){ .name = "late", .node = "n0", .stop_sec = 100 });
}

static void delete_another(CoordinatorRig *r) {
        fake_add_pod(r->cluster, &(FakePod){ .name = "late", .node = "n1", .stop_sec = 100 });
        rig_delete_node(r, "n1");
}

/* A removal that is stuck: what could bring it forward is awaited if it is what its pods do. */
TEST_CASE(test_hurry_of_one_that_is_stuck) {
        static const struct {
                const char *what, *annotations;
                int64_t stop_sec;
                bool budget;   /* that allows nothing */
                bool critical; /* another pod is, which goes after it */
                CloudOutcome outcome;
                bool is_immediate;                     /* after ten minutes */
                void (*go_on)(CoordinatorRig *r); /* and then it is */
        } rows[] = {
                { "its pod takes its time", NULL, 3600, false, false, CLOUD_OK, true, NULL },
                { "its pod has opted out", "{'vesper.sh/do-not-evict':'true'}", 100, false, false, CLOUD_OK,
                  true, NULL },
                { "... and a budget holds it, too", "{'vesper.sh/do-not-evict':'true'}", 100, true, false,
                  CLOUD_OK, true, NULL },
                { "a budget holds its pod, until it lets go", NULL, 100, true, false, CLOUD_OK, false,
                  let_go },
                { "... with one that waits for others, until somebody else ends it", NULL, 100, true, true,
                  CLOUD_OK, false, go_by_itself },
                { "... until that opts out", NULL, 100, true, false, CLOUD_OK, false, opt_out },
                { "... and another node is deleted", NULL, 100, true, false, CLOUD_OK, false,
                  delete_another },
                { "its cloud does not want to, and a pod comes", NULL, 1, false, false, CLOUD_DENIED, false,
                  late_pod },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 2, NULL);
                rig_machine(r, "n0")->outcome = rows[i].outcome;
                fake_add_pod(r->cluster, &(FakePod){ .name = "web",
                                                     .node = "n0",
                                                     .app = "web",
                                                     .grace_sec = 7200,
                                                     .stop_sec = rows[i].stop_sec,
                                                     .annotations = rows[i].annotations });
                if (rows[i].budget)
                        fake_add_pdb(r->cluster, NULL, "web", "web", true, "1");
                if (rows[i].critical) {
                        fake_add_pod(r->cluster,
                                     &(FakePod){ .name = "last", .node = "n0", .stop_sec = 100 });
                        fake_merge(r->cluster, FAKE_PODS, "default", "last",
                                   "{'spec':{'priorityClassName':'system-cluster-critical'}}");
                }
                rig_run(r, USEC_PER_SEC);
                rig_delete_node(r, "n0");
                rig_run(r, 50 * USEC_PER_SEC);
                assert_true(is_immediate_now(r, 0));
                for (unsigned k = 0; k < 20; k++) {
                        rig_run(r, 30 * USEC_PER_SEC);
                        if (fake_get(r->cluster, FAKE_PODS, "default", "web"))
                                fake_merge(r->cluster, FAKE_PODS, "default", "web",
                                           "{'metadata':{'annotations':{'beat':'%u'}}}", k);
                }
                assert_non_null(rig_node(r, "n0"));
                assert_int_equal(is_immediate_now(r, 0), rows[i].is_immediate);
                if (!rows[i].go_on)
                        continue;
                rows[i].go_on(r);
                for (unsigned k = 0; k < 500 && !is_immediate_now(r, 0); k++)
                        rig_run(r, MSEC);
                rig_run(r, 90 * USEC_PER_SEC); /* and stays so: a pod is going, or is waited for */
                assert_true(is_immediate_now(r, 0));
        }
}

/* -- the API server's bad days -------------------------------------------------------------------------- */

TEST_CASE(test_api_away) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 2, NULL);
        rig_start(r, 1);
        fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0", .stop_sec = 5 });
        rig_run(r, 5 * USEC_PER_SEC);
        rig_delete_node(r, "n0");
        rig_run(r, USEC_PER_SEC);
        fake_api_away_until(r->api, loop_now(r->w.loop) + USEC_PER_MINUTE);
        rig_run(r, USEC_PER_MINUTE - USEC_PER_SEC);
        assert_null(rig_leader(r));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
        assert_true(rig_wait_gone(r, "n0", 30 * USEC_PER_SEC));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
        assert_true(rig_is_adopted(r, "n1"));
}

/* A boot waits for no API server: ready is said at the start, and what it waits for. Over HTTP it is not ready. */
TEST_CASE(test_ready_without_api) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        RigCoordinator *c;

        rig_begin(r, 1, NULL);
        rig_kill(r, 0);
        fake_api_away_until(r->api, loop_now(r->w.loop) + 200 * USEC_PER_SEC);
        rig_start(r, 1);
        c = r->coordinators[1];
        assert_string_equal(strbuf_str(&c->told), "READY=1\nSTATUS=Waiting for the API server to tell all of the cluster\n");
        rig_run(r, 150 * USEC_PER_SEC);
        assert_false(coordinator_is_synced(c->coordinator));
        assert_null(strstr(strbuf_str(&c->told), "STATUS=Leading"));
        rig_run(r, 120 * USEC_PER_SEC);
        assert_true(coordinator_is_leader(c->coordinator));
        assert_non_null(endswith(strbuf_str(&c->told), "STATUS=Leading\n"));
}

TEST_CASE(test_watches_cut) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 3, NULL);
        for (unsigned i = 0; i < 3; i++) {
                char name[8] = { 'n', (char) ('0' + i), 0 };

                fake_api_cut_watches(r->api);
                if (i == 1)
                        fake_cluster_compact(r->cluster);
                rig_delete_node(r, name);
                assert_true(rig_wait_gone(r, name, 10 * USEC_PER_SEC));
        }
        assert_int_equal(fake_count(r->cluster, FAKE_NODECLAIMS), 0);
}

/* -- what is said --------------------------------------------------------------------------------------- */

TEST_CASE(test_journal) {
        static const char *const expected[] = {
                "Leading, as a-1",
                "Node n0 is managed from now on",
                "Node n0 is being deleted",
                "Node n0: Checking -> Cordoning",
                "Node n0 is drained",
                "Node n0: Volumes -> Terminating",
                "The machine of node n0 is gone or cannot come back",
                "The removal of node n0 is complete",
        };
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        const char *at;

        rig_begin(r, 1, NULL);
        rig_delete_node(r, "n0");
        assert_true(rig_wait_gone(r, "n0", USEC_PER_SEC));
        rig_run(r, USEC_PER_SEC);
        at = strbuf_str(&r->coordinators[0]->said);
        for (size_t i = 0; i < ELEMENTSOF(expected); i++) {
                const char *found = strstr(at, expected[i]);

                if (!found)
                        fail_msg("'%s' is missing, or out of order, in:\n%s", expected[i],
                                 strbuf_str(&r->coordinators[0]->said));
                at = found;
        }
}

/* Answers to patches of Nodes come later than what the watch says of them. */
static void answer_late(const HttpRequest *q, const char *peer, HttpFault *ret_fault, void *userdata) {
        if (q->method == HTTP_PATCH && strstr(q->url, "/api/v1/nodes/"))
                ret_fault->reply_delay_usec = 300 * MSEC;
}

TEST_CASE(test_watch_before_answer) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        const char *said, *first;

        r->hooks.on_request = answer_late;
        rig_begin(r, 1, NULL);
        rig_delete_node(r, "n0");
        assert_true(rig_wait_gone(r, "n0", 10 * USEC_PER_SEC));
        rig_run(r, 2 * USEC_PER_SEC);
        said = strbuf_str(&r->coordinators[0]->said);
        first = strstr(said, "The removal of node n0 is complete");
        if (!first || strstr(first + 1, "The removal of node n0 is complete"))
                fail_msg("that n0 is finished is said %s in:\n%s", first ? "twice" : "nowhere", said);
}

TEST_CASE(test_metrics) {
        _cleanup_(metrics_freep) Metrics *m = NULL;
        _cleanup_strbuf_ StrBuf b = {};

        assert_return_code(coordinator_metrics_new(&m), 0);
        metrics_set(m, METRIC_LEADER, 0, 1);
        metrics_add(m, METRIC_EVICTIONS, 0, 7);
        metrics_observe(m, METRIC_TERMINATION_SECONDS, 0, 0.2);
        metrics_format(m, &b);
        assert_non_null(strstr(strbuf_str(&b), "\nvesper_coordinator_leader 1\n"));
        assert_non_null(
                strstr(strbuf_str(&b), "\nvesper_coordinator_evictions_total{answer=\"Evicted\"} 7\n"));
        assert_non_null(strstr(strbuf_str(&b), "\nvesper_coordinator_terminations{state=\"draining\"} 0\n"));
        assert_non_null(strstr(strbuf_str(&b),
                               "\nvesper_coordinator_termination_duration_seconds_bucket{le=\"0.3\"} 1\n"));
        assert_non_null(
                strstr(strbuf_str(&b), "\nvesper_coordinator_api_requests_total{verb=\"evict\"} 0\n"));
}

/* -- configuration -------------------------------------------------------------------------------------- */

static void on_log(LogLevel level, const char *message_id, const char *text, const LogField *fields,
                   size_t n_fields, void *userdata) {
        strbuf_addf(userdata, "%s\n", text);
}

TEST_CASE(test_config) {
        static const struct {
                const char *what, *setting; /* of several, apart by ";" */
                bool refused;
                const char *says;
                size_t n_providers; /* 0: one */
        } rows[] = {
                { "a policy that is none", "Drain.Protected=maybe", true, "wait, others, ignore" },
                { "a wait that is no time", "Drain.LoadBalancerWaitSec=soon", true, "a time span" },
                { "a wait beyond reason", "Drain.LoadBalancerWaitSec=2h", true, "1h" },
                { "a provider that is none", "Provider.Name=nonsense", true, "expected one or more, each once and separated by spaces, of ec2, exec" },
                { "no provider", "Provider.Name=", true, "expected one or more, each once and separated by spaces, of ec2, exec" },
                { "a provider twice", "Provider.Name=ec2 ec2", true, "expected one or more, each once and separated by spaces, of ec2, exec" },
                { "two providers", "Provider.Name=ec2  exec;Provider.Command=/bin/true", false, "", 2 },
                { "exec before another", "Provider.Name=exec ec2;Provider.Command=/bin/true", true, "it has to be the last" },
                { "exec without a command", "Provider.Name=ec2 exec", true, "needs Command=" },
                { "a command that is no path", "Provider.Name=exec;Provider.Command=end", true, "absolute path" },
                { "a log level", "Log.Level=loud", true, "error, warning" },
                { "a key of another release", "Drain.Politeness=3", false, "Politeness" },
                { "nodes of no pool are drained for what never counts", "Queue.Unmanaged=drain;Interruption.Delete=never", false, "has no effect beside" },
                { "nodes of no pool, neither drained nor reported", "Queue.Unmanaged=ignore", true, "report, drain" },
                { "all is well", "Drain.Protected=others", false, "" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_strv_free_ char **settings = NULL;
                _cleanup_(log_freep) Log *log = NULL;
                _cleanup_strbuf_ StrBuf said = {};
                CoordinatorConfig c = {};
                int r;

                print_message("  %s\n", rows[i].what);
                assert_return_code(log_new(LOG_TARGET_NULL, LOG_LEVEL_INFO, "t", &log), 0);
                log_set_hook(log, on_log, &said);
                assert_return_code(strv_split(rows[i].setting, ";", &settings), 0);
                r = config_load(log, coordinator_config_table, coordinator_config_table_size, NULL, false,
                                settings, &c);
                if (r >= 0)
                        r = coordinator_config_check(&c, log);
                assert_int_equal(r < 0, rows[i].refused);
                assert_non_null(strstr(strbuf_str(&said), rows[i].says));
                if (r >= 0) {
                        assert_string_equal(c.lease_namespace, "vesper-system");
                        assert_int_equal(c.providers.n, MAX(rows[i].n_providers, 1u));
                        assert_string_equal(cloud_provider_names[c.providers.at[0]], "ec2");
                        assert_int_equal(c.lb_wait_usec, 0);
                }
                config_done(coordinator_config_table, coordinator_config_table_size, &c);
        }
}

/* -- what it serves ------------------------------------------------------------------------------------- */

static void assert_page(RigCoordinator *c, const char *path, unsigned status, const char *part) {
        _cleanup_page_ Page p = page_ask(coordinator_handle, c->coordinator, HTTP_GET, path);

        print_message("  %s: %u, with %s\n", path, status, part);
        assert_int_equal(p.status, status);
        if (!strstr(p.body, part))
                fail_msg("'%s' is not in the page:\n%s", part, p.body);
}

TEST_CASE(test_page) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_page_ Page refused = { 0 }, health = { 0 }, metrics = { 0 };
        RigCoordinator *a, *b;

        rig_begin(r, 2, NULL);
        rig_start(r, 1);
        a = r->coordinators[0];
        b = r->coordinators[1];
        assert_page(b, "/healthz", 200, "ok");
        assert_page(b, "/readyz", 503, "not complete");
        rig_run(r, 5 * USEC_PER_SEC);
        assert_page(a, "/readyz", 200, "leading");
        assert_page(b, "/readyz", 200, "standing by");
        assert_page(a, "/", 404, "not found");
        health = page_ask(coordinator_handle_health, b->coordinator, HTTP_GET, "/readyz");
        assert_int_equal(health.status, 200);
        metrics = page_ask(coordinator_handle_health, b->coordinator, HTTP_GET, "/metrics");
        assert_int_equal(metrics.status, 404); /* not where anybody may probe */
        refused = page_ask(coordinator_handle, a->coordinator, HTTP_DELETE, "/metrics");
        assert_int_equal(refused.status, 405);

        print_message("  one node is drained\n");
        fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0", .stop_sec = 5 });
        rig_run(r, USEC_PER_SEC);
        assert_page(a, "/metrics", 200, "vesper_coordinator_nodes 2\n");
        rig_delete_node(r, "n0");
        rig_run(r, USEC_PER_SEC);
        assert_page(a, "/metrics", 200, "vesper_coordinator_terminations{state=\"draining\"} 1\n");
        assert_true(rig_wait_gone(r, "n0", 20 * USEC_PER_SEC));
        rig_run(r, USEC_PER_SEC); /* until its watch has told */
        assert_page(a, "/metrics", 200, "vesper_coordinator_nodes 1\n");
        assert_page(a, "/metrics", 200, "vesper_coordinator_evictions_total{answer=\"Evicted\"} 1\n");
        assert_page(a, "/metrics", 200, "vesper_coordinator_terminations{state=\"draining\"} 0\n");
        assert_page(b, "/metrics", 200, "vesper_coordinator_evictions_total{answer=\"Evicted\"} 0\n");

        print_message("  another one leads: what this one measured is not its any more\n");
        fake_add_pod(r->cluster, &(FakePod){ .name = "slow", .node = "n1", .stop_sec = 600 });
        rig_delete_node(r, "n1");
        rig_run(r, USEC_PER_SEC);
        assert_page(a, "/metrics", 200, "vesper_coordinator_terminations{state=\"draining\"} 1\n");
        fake_merge(r->cluster, FAKE_LEASES, "vesper-system", "vesper-coordinator",
                   "{'spec':{'holderIdentity':'%s','leaseDurationSeconds':15}}", b->identity);
        rig_run(r, 20 * USEC_PER_SEC);
        assert_page(a, "/readyz", 200, "standing by");
        assert_page(a, "/metrics", 200, "vesper_coordinator_terminations{state=\"draining\"} 0\n");
        assert_page(a, "/metrics", 200, "vesper_coordinator_eviction_window 0\n");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_one_leads),
                cmocka_unit_test(test_same_configured_identity),
                cmocka_unit_test(test_identity_is_short),
                cmocka_unit_test(test_page),
                cmocka_unit_test(test_stop_hands_over),
                cmocka_unit_test(test_kill_hands_over),
                cmocka_unit_test(test_paused_leader),
                cmocka_unit_test(test_lease_lost_during_removal),
                cmocka_unit_test(test_rate_over_leases),
                cmocka_unit_test(test_hurry),
                cmocka_unit_test(test_hurry_of_one_that_is_stuck),
                cmocka_unit_test(test_api_away),
                cmocka_unit_test(test_ready_without_api),
                cmocka_unit_test(test_watches_cut),
                cmocka_unit_test(test_journal),
                cmocka_unit_test(test_watch_before_answer),
                cmocka_unit_test(test_metrics),
                cmocka_unit_test(test_config),
        };
        return cmocka_run_group_tests_name("coordinator", tests, NULL, NULL);
}
