/* SPDX-License-Identifier: Apache-2.0 */
/* The rig itself: the same seed gives the same trace, a disk loses what it must, and every check can fail.
 */
#include "sim-load.h"
#include "sim-queue.h"
#include "sim-test.h"

#include <inttypes.h>
#include <limits.h>

/* -- the trace --------------------------------------------------------------------------------- */

static SimWorld *busy_world(uint64_t seed, FakeEncoding encoding) {
        static const SimChances chances = {
                .error = 30, .lie = 10, .lose_reply = 10, .slow = 20, .slow_max_usec = SEC
        };
        SimOptions options = { THREE_NODES };
        SimWorld *w;

        options.encoding = encoding;
        w = settled_world(seed, &options);
        sim_faults_chances(w->faults, &chances, sim_world_now(w) + 60 * SEC);
        sim_world_notice(w, 0, 120);
        sim_world_delete_node(w, 1);
        require_runs(w, 10 * SEC);
        sim_process_kill(sim_world_coordinator(w, seed % 2), 7 * SEC);
        sim_process_kill(sim_world_agent(w, 0), SEC);
        require_runs(w, 200 * SEC);
        return w;
}

TEST_CASE(test_same_seed_same_trace) {
        for (uint64_t seed = 1; seed <= 3; seed++) {
                _cleanup_(sim_world_freep) SimWorld *a = busy_world(seed, FAKE_ENCODING_PROTOBUF),
                                                    *b = busy_world(seed, FAKE_ENCODING_PROTOBUF),
                                                    *c = busy_world(seed + 100, FAKE_ENCODING_PROTOBUF);

                print_message("seed %" PRIu64 ": %zu lines, hash %016" PRIx64 "\n", seed,
                              sim_trace_n_lines(a->trace), sim_trace_hash(a->trace));
                assert_true(sim_trace_n_lines(a->trace) > 500);
                assert_string_equal(sim_trace_text(a->trace), sim_trace_text(b->trace));
                assert_true(sim_trace_hash(a->trace) != sim_trace_hash(c->trace));
        }
}

/* What a daemon does it does whichever encoding it has read: every byte that anybody stores is in the trace.
 */
TEST_CASE(test_same_in_every_encoding) {
        for (uint64_t seed = 1; seed <= 3; seed++) {
                _cleanup_(sim_world_freep) SimWorld *protobuf = busy_world(seed, FAKE_ENCODING_PROTOBUF),
                                                    *json = busy_world(seed, FAKE_ENCODING_JSON),
                                                    *either = busy_world(seed, FAKE_ENCODING_EITHER);

                assert_string_equal(sim_trace_text(json->trace), sim_trace_text(protobuf->trace));
                assert_string_equal(sim_trace_text(json->trace), sim_trace_text(either->trace));
        }
}

/* -- /run ------------------------------------------------------------------------------------- */

static SimDiskFate next_fate(const char *name, void *userdata) {
        return *(SimDiskFate *) userdata;
}

static void assert_record(StateStore *s, const char *expected) {
        _cleanup_free_ char *data = NULL;
        size_t size;
        int r = state_store_read(s, "a", &data, &size);

        if (!expected) {
                assert_int_equal(r, -ENOENT);
                return;
        }
        assert_return_code(r, 0);
        assert_int_equal(size, strlen(expected));
        assert_memory_equal(data, expected, size);
}

TEST_CASE(test_disk) {
        static const struct {
                const char *what;
                SimDiskFate fate;
                const char *after, *later_after;
                int result, later;
        } rows[] = {
                { "written", SIM_DISK_OK, "newer", "newest", 0, 0 },
                { "a disk that fails", SIM_DISK_FAIL, "old!", "old!", -EIO, -EIO },
                { "dies before it is renamed", SIM_DISK_DIE_BEFORE, "old!", "old!", -EIO, -EIO },
                { "dies when it is renamed", SIM_DISK_DIE_AFTER, "newer", "newer", 0, -EIO },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(sim_disk_freep) SimDisk *d = sim_disk_new();
                SimDiskFate fate = SIM_DISK_OK;
                StateStore *s = sim_state_store_new(d, next_fate, &fate);

                print_message("%s\n", rows[i].what);
                assert_record(s, NULL);
                assert_return_code(state_store_write(s, "a", "old!", 4), 0);
                fate = rows[i].fate;
                assert_int_equal(state_store_write(s, "a", "newer", 5), rows[i].result);
                assert_record(s, rows[i].after);
                assert_int_equal(state_store_write(s, "a", "newest", 6), rows[i].later);
                assert_record(s, rows[i].later_after);
                sim_disk_boot(d);
                assert_record(s, NULL);
                state_store_free(s);
        }
}

/* -- the checks: each mistake, played by hand, is found ---------------------------------------- */

/* Does one thing as that user, as a request of this step would. */
static void as(SimWorld *w, const char *user, const char *subresource) {
        if (w->request) {
                free(w->request->user);
                free(w->request->subresource);
                free(w->request);
        }
        w->request = new0(SimRequest, 1);
        assert_non_null(w->request);
        w->request->user = strdup(user);
        w->request->subresource = subresource ? strdup(subresource) : NULL;
}

static const char *pod_on(SimWorld *w, const char *node) {
        const cJSON *pod;

        FAKE_FOREACH (pod, w->cluster, FAKE_PODS, "default")
                if (streq_ptr(fj_string(pod, "spec", "nodeName", NULL), node) &&
                    !fj_get(pod, "metadata", "deletionTimestamp", NULL))
                        return fj_string(pod, "metadata", "name", NULL);
        fail();
        return NULL;
}

static void close_node(SimWorld *w) {
        fake_merge(w->cluster, FAKE_NODES, NULL, "n0", "{'spec':{'unschedulable':true}}");
}

static void end_pod(SimWorld *w, const char *subresource, int64_t grace) {
        as(w, "system:node:n0", subresource);
        fake_delete(w->cluster, FAKE_PODS, "default", pod_on(w, "n0"), grace);
}

static void undo_cordon(SimWorld *w) {
        sim_world_admin_cordon(w, 0);
        as(w, "system:node:n0", NULL);
        fake_merge(w->cluster, FAKE_NODES, NULL, "n0", "{'spec':{'unschedulable':null}}");
}

static void cordon_again(SimWorld *w) {
        close_node(w);
        fake_merge(w->cluster, FAKE_NODES, NULL, "n0",
                   "{'metadata':{'annotations':{'vesper.sh/interruption':'{}'}}}");
        sim_world_admin_uncordon(w, 0);
        as(w, "system:node:n0", NULL);
        close_node(w);
}

static void evict_for_nothing(SimWorld *w) {
        close_node(w);
        end_pod(w, "eviction", -1);
}

static void evict_from_open(SimWorld *w) {
        w->machines[0].deadline_usec = sim_world_wall(w) + 300 * SEC;
        end_pod(w, "eviction", -1);
}

static void delete_early(SimWorld *w) {
        w->machines[0].deadline_usec = sim_world_wall(w) + 300 * SEC;
        close_node(w);
        end_pod(w, NULL, -1);
}

static void evict_immediate(SimWorld *w) {
        w->machines[0].deadline_usec = sim_world_wall(w) + 300 * SEC;
        close_node(w);
        end_pod(w, "eviction", 3);
}

static void delete_hard(SimWorld *w) {
        w->machines[0].deadline_usec = sim_world_wall(w) + 18 * SEC;
        close_node(w);
        end_pod(w, NULL, 1);
}

/* Its grace is over, its kubelet has only seen the deletion. */
static void take_off_running(SimWorld *w) {
        const char *pod = pod_on(w, "n0");

        w->machines[0].deadline_usec = sim_world_wall(w) + SEC;
        close_node(w);
        as(w, "system:node:n0", "eviction");
        fake_delete(w->cluster, FAKE_PODS, "default", pod, 1);
        fake_delete(w->cluster, FAKE_PODS, "default", pod, 0);
}

static void break_budget(SimWorld *w) {
        w->machines[0].deadline_usec = sim_world_wall(w) + 300 * SEC;
        close_node(w);
        end_pod(w, "eviction", -1);
        end_pod(w, "eviction", -1);
}

static void drop_finalizer(SimWorld *w) {
        as(w, "coordinator-a", NULL);
        fake_merge(w->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'finalizers':null}}");
}

static void grant(SimWorld *w, size_t i, usec_t until_wall_usec) {
        char until[RFC3339_MAX];

        rfc3339_format(until_wall_usec, until);
        fake_merge(w->cluster, FAKE_NODES, NULL, w->machines[i].node,
                   "{'metadata':{'annotations':{"
                   "'vesper.sh/shutdown-request':'{\\'id\\':\\'a\\',\\'bootID\\':\\'%s\\'}',"
                   "'vesper.sh/shutdown-granted':'{\\'id\\':\\'a\\',\\'until\\':\\'%s\\'}'}}}",
                   w->machines[i].boot_id, until);
}

static void grant_two(SimWorld *w) {
        for (size_t i = 0; i < 2; i++)
                grant(w, i, sim_world_wall(w) + 60 * SEC);
}

static void reboot_late(SimWorld *w) {
        grant(w, 0, sim_world_wall(w) - SEC);
        sim_check_told_to_reboot(w->check, &w->machines[0]);
}

static void send_as(SimWorld *w, const char *url, HttpMethod method, const char *body, unsigned n) {
        SimProcess *leader = sim_world_leader(w);
        SimProcess *other = leader == sim_world_coordinator(w, 0) ? sim_world_coordinator(w, 1)
                                                                  : sim_world_coordinator(w, 0);
        HttpRequest request = { .method = method, .url = url, .body = body, .body_size = strlen(body) };

        for (unsigned i = 0; i < n; i++)
                sim_check_sent(w->check, other->life, &request, strstr(url, "ec2") ? "ec2.sim" : "api",
                               true, 0);
}

static void write_as_follower(SimWorld *w) {
        send_as(w, SIM_API "/api/v1/nodes/n0", HTTP_PATCH, "{\"metadata\":{\"resourceVersion\":\"1\"}}", 1);
}

static void patch_without_version(SimWorld *w) {
        send_as(w, SIM_API "/api/v1/nodes/n0", HTTP_PATCH, "{\"metadata\":{\"annotations\":{}}}", 1);
}

static void evict_by_name(SimWorld *w) {
        send_as(w, SIM_API "/api/v1/namespaces/default/pods/a/eviction", HTTP_POST, "{}", 1);
}

static void terminate_as_follower(SimWorld *w) {
        send_as(w, SIM_EC2 "/", HTTP_POST, "Action=TerminateInstances&InstanceId.1=i-0000000000000001", 1);
}

static void storm(SimWorld *w) {
        for (unsigned i = 0; i <= SIM_CHECK_PER_SECOND; i++) {
                _cleanup_free_ char *url = MUST(strf(SIM_API "/api/v1/nodes/n%u", i));

                send_as(w, url, HTTP_GET, "", 1);
        }
}

static void ask_again_and_again(SimWorld *w) {
        send_as(w, SIM_API "/api/v1/nodes/n0", HTTP_GET, "", SIM_CHECK_SAME_PER_SECOND + 1);
}

/* A pod of this kind on a node that is being deleted, and the leader evicts it. */
static void evict_kind(SimWorld *w, const FakePod *pod) {
        fake_add_pod(w->cluster, pod);
        close_node(w);
        fake_delete(w->cluster, FAKE_NODES, NULL, "n0", -1);
        as(w, "coordinator-a", "eviction");
        fake_delete(w->cluster, FAKE_PODS, "default", pod->name, -1);
}

static const FakePod protected_pod = { .name = "p",
                                       .node = "n0",
                                       .annotations = "{'vesper.sh/do-not-evict':'true'}" };

static void evict_protected(SimWorld *w) {
        evict_kind(w, &protected_pod);
}

/* Its node told of an end once, which a person overruled long ago. */
static void evict_protected_after(SimWorld *w) {
        fake_add_pod(w->cluster, &protected_pod);
        close_node(w);
        for (unsigned over = 0; over < 2; over++)
                fake_merge(w->cluster, FAKE_NODES, NULL, "n0",
                           "{'metadata':{'annotations':{'vesper.sh/interruption':"
                           "'{\\'id\\':\\'x\\',\\'bootID\\':\\'%s\\',"
                           "\\'action\\':\\'terminate\\',\\'phase\\':\\'%s\\'}'}}}",
                           w->machines[0].boot_id, over ? "Released" : "Draining");
        (void) sim_world_run(w, SEC);
        sim_check_promise(w->check);
        sim_world_delete_node(w, 0);
        (void) sim_world_run(w, 30 * SEC);
        as(w, "coordinator-a", "eviction");
        fake_delete(w->cluster, FAKE_PODS, "default", "p", -1);
}

static void evict_daemon(SimWorld *w) {
        evict_kind(w, &(FakePod){ .name = "d", .node = "n0", .owner_kind = "DaemonSet", .owner = "d" });
}

static void take_lease(SimWorld *w) {
        as(w, "coordinator-a", NULL);
        fake_merge(w->cluster, FAKE_LEASES, "vesper-system", "vesper-coordinator",
                   "{'spec':{'holderIdentity':'somebody'}}");
}

static void two_lead(SimWorld *w) {
        for (size_t i = 0; i < 2; i++)
                sim_world_coordinator(w, i)->life->leads = true;
}

/* Long after a person's word. */
static void end_opened(SimWorld *w) {
        _cleanup_free_ char *url =
                MUST(strf(SIM_API "/api/v1/namespaces/default/pods/%s/eviction", pod_on(w, "n0")));
        HttpRequest request = { .method = HTTP_POST, .url = url, .body = "{}", .body_size = 2 };
        SimProcess *agent = sim_world_agent(w, 0);

        w->machines[0].deadline_usec = sim_world_wall(w) + 300 * SEC;
        close_node(w);
        fake_merge(w->cluster, FAKE_NODES, NULL, "n0",
                   "{'metadata':{'annotations':{'vesper.sh/interruption':'{}'}}}");
        sim_world_admin_uncordon(w, 0);
        (void) sim_world_run(w, 30 * SEC);
        sim_process_start(agent); /* it has not done a thing yet */
        sim_check_sent(w->check, agent->life, &request, "api", true, 0);
}

static void mark(SimWorld *w, const char *phase) {
        as(w, "system:node:n0", NULL);
        fake_merge(w->cluster, FAKE_NODES, NULL, "n0",
                   "{'metadata':{'annotations':{'vesper.sh/interruption':"
                   "'{\\'id\\':\\'x\\',\\'bootID\\':\\'%s\\',\\'phase\\':\\'%s\\'}'}}}",
                   w->machines[0].boot_id, phase);
}

static void say_drained(SimWorld *w) {
        mark(w, "Draining");
        mark(w, "Drained");
}

/* As proven. */
static void drain_twice(SimWorld *w) {
        sim_check_note_proof(w->check, "system:node:n0 n0", 0);
        say_drained(w);
        assert_null(sim_world_violation(w));
        mark(w, "Cordoned");
}

static void say_drained_too_soon(SimWorld *w) {
        sim_check_note_proof(w->check, "system:node:n0 n0", 2);
        say_drained(w);
}

static void forget_notice(SimWorld *w) {
        sim_world_notice(w, 0, 60);
        (void) sim_world_run(w, 10 * SEC);
        mark(w, "Cordoned");
        fake_merge(w->cluster, FAKE_NODES, NULL, "n0",
                   "{'metadata':{'annotations':{'vesper.sh/interruption':null}}}");
}

static void delete_claim_unasked(SimWorld *w) {
        _cleanup_free_ char *claim = MUST(strdup(fj_string(sim_world_claim(w, 0), "metadata", "name", NULL)));

        as(w, "coordinator-a", NULL);
        fake_delete(w->cluster, FAKE_NODECLAIMS, NULL, claim, -1);
}

static void heed_second_claim(SimWorld *w) {
        sim_load_add_rival(w, 0);
        as(w, "coordinator-a", NULL);
        fake_merge(w->cluster, FAKE_NODECLAIMS, NULL, SIM_RIVAL "n0", "{'metadata':{'finalizers':['vesper.sh/termination']}}");
}

static void delete_node_unasked(SimWorld *w) {
        as(w, "coordinator-a", NULL);
        fake_delete(w->cluster, FAKE_NODES, NULL, "n0", -1);
}

static void repair_ready(SimWorld *w) {
        w->options.repair_sec = 60;
        delete_node_unasked(w);
}

static void repair_cordoned(SimWorld *w) {
        w->options.repair_sec = 10;
        sim_world_admin_cordon(w, 0);
        fake_cluster_set_kubelet(w->cluster, "n0", false);
        (void) sim_world_run(w, 120 * SEC);
        delete_node_unasked(w);
}

static void repair_off(SimWorld *w) {
        w->options.repair_sec = 10;
        sim_load_switch_off(w, 0, USEC_INFINITY);
        (void) sim_world_run(w, 120 * SEC);
        delete_node_unasked(w);
}

#define ILL_SEC 10u

static void ask_unrecorded(SimWorld *w, const char *coordinator, const char *boot_id) {
        as(w, coordinator, NULL);
        fake_merge(w->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'annotations':{'vesper.sh/reboot-for-repair':'%s'}}}", boot_id);
}

static void record_reboot(SimWorld *w, const char *boot_id) {
        fake_merge(w->cluster, FAKE_NODECLAIMS, NULL, fj_string(sim_world_claim(w, 0), "metadata", "name", NULL),
                   "{'metadata':{'annotations':{'vesper.sh/rebooted-for-repair':'%s'}}}", boot_id);
}

static void ask_for_reboot(SimWorld *w, const char *boot_id) {
        record_reboot(w, boot_id);
        ask_unrecorded(w, "coordinator-a", boot_id);
}

/* Its rule's time is over twice. */
static void be_ill(SimWorld *w) {
        w->options.repair_reboot_sec = ILL_SEC;
        sim_world_set_ill(w, 0, true);
        (void) sim_world_run(w, 3 * ILL_SEC * SEC);
}

static void reboot_well(SimWorld *w) {
        w->options.repair_reboot_sec = ILL_SEC;
        ask_for_reboot(w, w->machines[0].boot_id);
}

static void reboot_early(SimWorld *w) {
        w->options.repair_reboot_sec = ILL_SEC;
        sim_world_set_ill(w, 0, true);
        (void) sim_world_run(w, 3 * SEC);
        ask_for_reboot(w, w->machines[0].boot_id);
}

static void reboot_cordoned(SimWorld *w) {
        be_ill(w);
        sim_world_admin_cordon(w, 0);
        ask_for_reboot(w, w->machines[0].boot_id);
}

static void reboot_of_old_boot(SimWorld *w) {
        be_ill(w);
        ask_for_reboot(w, "of-another-boot");
}

static void reboot_booted(SimWorld *w) {
        be_ill(w);
        sim_world_reboot(w, 0, SEC);
        (void) sim_world_run(w, 3 * SEC);
        ask_for_reboot(w, w->machines[0].boot_id);
}

static void reboot_in_vain(SimWorld *w) {
        be_ill(w);
        ask_for_reboot(w, w->machines[0].boot_id);
        w->request->user = mfree(w->request->user);
        sim_world_reboot(w, 0, SEC);
        (void) sim_world_run(w, 2 * ILL_SEC * SEC);
}

static void reboot_twice(SimWorld *w) {
        reboot_in_vain(w);
        ask_for_reboot(w, w->machines[0].boot_id);
}

static void reboot_twice_over_leaders(SimWorld *w) {
        reboot_in_vain(w);
        record_reboot(w, w->machines[0].boot_id);
        ask_unrecorded(w, "coordinator-b", w->machines[0].boot_id);
}

static void reboot_twice_soon(SimWorld *w) {
        reboot_in_vain(w);
        sim_world_set_ill(w, 0, false);
        (void) sim_world_run(w, 60 * SEC);
        be_ill(w);
        ask_for_reboot(w, w->machines[0].boot_id);
}

static void reboot_unrecorded(SimWorld *w) {
        be_ill(w);
        ask_unrecorded(w, "coordinator-a", w->machines[0].boot_id);
}

static void reboot_unasked(SimWorld *w) {
        w->options.repair_reboot_sec = ILL_SEC;
        grant(w, 0, sim_world_wall(w) + 60 * SEC);
        sim_check_told_to_reboot(w->check, &w->machines[0]);
}

static void replace_cured(SimWorld *w) {
        reboot_in_vain(w);
        sim_world_set_ill(w, 0, false);
        delete_node_unasked(w);
}

static void replace_unrebooted(SimWorld *w) {
        be_ill(w);
        delete_node_unasked(w);
}

static void replace_before_its_agent_asks(SimWorld *w) {
        be_ill(w);
        ask_for_reboot(w, w->machines[0].boot_id);
        delete_node_unasked(w);
}

static const char out_of_service[] =
        "{'spec':{'taints':[{'key':'node.kubernetes.io/out-of-service','value':'nodeshutdown','effect':'NoExecute'}]}}";

static void taint_running(SimWorld *w) {
        as(w, "coordinator-a", NULL);
        fake_merge(w->cluster, FAKE_NODES, NULL, "n0", out_of_service);
}

static void taint_ready(SimWorld *w) {
        fake_ec2_set_state(w->ec2, w->machines[0].instance, "stopped");
        taint_running(w);
}

static void leave_taint(SimWorld *w) {
        fake_merge(w->cluster, FAKE_NODES, NULL, "n0", out_of_service);
        sim_check_promise(w->check);
        (void) sim_world_run(w, 130 * SEC);
}

static void nothing(const HttpResponse *response, void *userdata) {
}

static void end_in_service(SimWorld *w) {
        char body[] = "Action=TerminateInstances&Version=2016-11-15&InstanceId.1=i-0000000000000001";
        HttpHeader type = { "Content-Type", "application/x-www-form-urlencoded" };
        SimProcess *p = sim_world_leader(w);
        HttpRequest request = {
                .method = HTTP_POST,
                .url = SIM_EC2 "/",
                .headers = &type,
                .n_headers = 1,
                .body = body,
                .body_size = strlen(body),
                .timeout_usec = SEC,
                .max_response_bytes = 10000,
        };

        assert_return_code(http_call_start(p->life->transport, &request, nothing, NULL, NULL), 0);
        (void) sim_world_run(w, SEC);
}

static void leave_mark(SimWorld *w) {
        fake_merge(w->cluster, FAKE_NODES, NULL, "n0",
                   "{'metadata':{'annotations':{'vesper.sh/deadline':'x'}}}");
        sim_check_quiet(w->check, UINT64_MAX);
}

static void leave_cordon(SimWorld *w) {
        close_node(w);
        sim_check_quiet(w->check, UINT64_MAX);
}

static void leak(SimWorld *w) {
        fake_remove(w->cluster, FAKE_NODES, NULL, "n0");
        sim_check_quiet(w->check, UINT64_MAX);
}

/* It is told that the first one is done. */
static void evict_twice(SimWorld *w) {
        SimProcess *p = sim_world_coordinator(w, 0);
        HttpRequest request = { .method = HTTP_POST,
                                .url = SIM_API "/api/v1/namespaces/default/pods/a/eviction" };

        sim_check_promise(w->check);
        (void) sim_world_run(w, 70 * SEC); /* nothing hides from it what became of the first */
        as(w, p->user, "eviction");
        w->request->ns = strdup("default");
        w->request->name = strdup("a");
        sim_check_sent(w->check, p->life, &request, "none", true, 0);
        sim_check_after_step(w->check, 201);
        (void) sim_world_run(w, SEC);
        sim_check_sent(w->check, p->life, &request, "none", true, 0);
}

static void again(Timer *t, void *userdata) {
        timer_arm_in(t, 0);
}

static void spin(SimWorld *w) {
        Timer *t;

        assert_return_code(timer_new(w->loop, "spin", again, NULL, &t), 0);
        timer_arm_in(t, 0);
        (void) sim_world_run(w, SEC);
        timer_free(t);
}

/* Disarms the timer by which the leader renews its Lease. */
static void forget_timer(SimWorld *w) {
        for (unsigned i = 0; i < 500 && !sim_world_violation(w); i++) {
                const SimProcess *p = sim_world_leader(w);

                if (p && p->life)
                        loop_virtual_lose_timers(p->life->loop, "leader-retry");
                (void) sim_world_run(w, 10 * USEC_PER_MSEC);
        }
}

static void chatter(SimWorld *w) {
        sim_check_quiet(w->check, 10);
}

/* It never hears that the Node has gone. */
static void keep_removal(SimWorld *w) {
        sim_check_promise(w->check);
        sim_world_delete_node(w, 0);
        (void) sim_world_run(w, SEC);
        fake_api_mute(fake_cluster_api(w->cluster), FAKE_NODES, USEC_INFINITY);
        (void) sim_world_run(w, 120 * SEC);
        fake_remove(w->cluster, FAKE_NODES, NULL, w->machines[0].node);
        (void) sim_world_run(w, 60 * SEC);
}

/* -- of the interruption queue */

static void announce(SimWorld *w, FakeAwsEventKind kind, const char *instance) {
        sim_queue_send(w->queue, &(FakeAwsEvent){ .kind = kind, .instance = instance, .group = SIM_GROUP, .hook = "join", .token = "t" }, false);
}

static void kill_coordinators(SimWorld *w) {
        for (size_t i = 0; i < 2; i++)
                sim_process_kill(sim_world_coordinator(w, i), USEC_INFINITY);
}

/* A budget whose status has these charges, and nobody who looks after them. */
static void put_charges(SimWorld *w, const char *charges) {
        fake_put(
                w->cluster, FAKE_NDBS,
                fj_parse(
                        "{'metadata':{'name':'nodes'},'spec':{'maxUnavailable':1},'status':{'disruptedNodes':[%s]}}",
                        charges));
}

static void begin_charges(SimWorld *w, const char *charge) {
        const char *uid = fj_string(sim_world_node(w, 0), "metadata", "uid", NULL);
        _cleanup_free_ char *charges = MUST(strf("{'name':'n0','uid':'%s',%s}", uid, charge));

        kill_coordinators(w);
        w->options.node_budget = 1;
        (void) sim_world_run(w, 60 * SEC); /* the node has been Ready for a while */
        put_charges(w, charges);
}

static void end_charge_of_slot(SimWorld *w) {
        begin_charges(w, "'kind':'DELETE','holder':'person','heldBefore':'a'");
        grant(w, 0, sim_world_wall(w) + 60 * SEC);
        put_charges(w, "");
}

static void end_charge_of_deletion(SimWorld *w) {
        begin_charges(w, "'kind':'DELETE','holder':'person'");
        sim_world_delete_node(w, 0);
        (void) sim_world_run(w, 200 * SEC);
        put_charges(w, "");
}

static void grant_uncharged(SimWorld *w) {
        begin_charges(w, "'kind':'DELETE','holder':'person'");
        grant(w, 0, sim_world_wall(w) + 60 * SEC);
}

static void delete_uncharged(SimWorld *w) {
        begin_charges(w, "'kind':'reboot','holder':'a'");
        sim_check_admitted(w->check, &w->machines[0]);
}

static void delete_unwritten(SimWorld *w) {
        announce(w, FAKE_AWS_EVENT_SPOT, w->machines[0].instance);
        sim_queue_note_deleted(w->queue, 1);
}

static void delete_unread(SimWorld *w) {
        sim_queue_send_text(w->queue, "{");
        sim_queue_note_deleted(w->queue, 1);
}

static void delete_foreign_too_soon(SimWorld *w) {
        announce(w, FAKE_AWS_EVENT_SPOT, "i-0feedfeedfeedfee3");
        sim_queue_note_deleted(w->queue, 1);
}

static void delete_shared(SimWorld *w) {
        sim_world_coordinator(w, 0)->coordinator_config.queue_shared = true;
        announce(w, FAKE_AWS_EVENT_REBALANCE, "i-0feedfeedfeedfee3");
        sim_queue_note_deleted(w->queue, 1);
}

static void do_nothing_about_it(SimWorld *w) {
        sim_check_promise(w->check);
        kill_coordinators(w);
        announce(w, FAKE_AWS_EVENT_SPOT, w->machines[0].instance);
        (void) sim_world_run(w, 40 * SEC);
}

static void write_on_claim(SimWorld *w, const char *id) {
        _cleanup_free_ char *claim = MUST(strdup(fj_string(sim_world_claim(w, 0), "metadata", "name", NULL)));

        as(w, "coordinator-a", NULL);
        fake_merge(w->cluster, FAKE_NODECLAIMS, NULL, claim,
                   "{'metadata':{'annotations':{'vesper.sh/announced':'{\\'notices\\':[{\\'id\\':\\'%s\\',\\'action\\':\\'terminate\\',"
                   "\\'deadline\\':\\'2027-01-15T08:30:00Z\\'}]}'}}}",
                   id);
}

static void write_unannounced(SimWorld *w) {
        write_on_claim(w, "a");
}

/* A notice is held, and it is the only one. */
static void hold_the_first(SimWorld *w) {
        _cleanup_free_ char *claim = MUST(strdup(fj_string(sim_world_claim(w, 0), "metadata", "name", NULL)));

        kill_coordinators(w);
        announce(w, FAKE_AWS_EVENT_SPOT, w->machines[0].instance);
        as(w, "coordinator-a", NULL);
        fake_merge(w->cluster, FAKE_NODECLAIMS, NULL, claim,
                   "{'metadata':{'annotations':{'vesper.sh/announced':'{\\'notices\\':[{\\'id\\':\\'a\\',\\'state\\':\\'Held\\'}]}'}}}");
}

static void write_over(SimWorld *w) {
        kill_coordinators(w);
        announce(w, FAKE_AWS_EVENT_SPOT, w->machines[0].instance);
        write_on_claim(w, "a");
        assert_null(sim_world_violation(w));
        write_on_claim(w, "b");
}

static void leave_message(SimWorld *w) {
        kill_coordinators(w);
        announce(w, FAKE_AWS_EVENT_REBALANCE, w->machines[0].instance);
        sim_queue_check_left(w->queue);
}

/* Of a node of no pool. */
static void leave_told(SimWorld *w, const char *type) {
        kill_coordinators(w);
        w->options.no_pool = true;
        fake_merge(w->cluster, FAKE_NODES, NULL, w->machines[0].node,
                   "{'status':{'conditions':[{'type':'Ready','status':'True'},{'type':'%s','status':'True'}]}}", type);
        sim_queue_check_left(w->queue);
}

static void leave_drain_told(SimWorld *w) {
        leave_told(w, "DrainInProgress");
}

static void leave_drained_open(SimWorld *w) {
        leave_told(w, "Drained");
}

static void answer_hook(SimWorld *w, const char *hook, const char *result) {
        _cleanup_free_ char *form = MUST(strf("Action=CompleteLifecycleAction&Version=2011-01-01&AutoScalingGroupName=" SIM_GROUP
                                              "&LifecycleHookName=%s&LifecycleActionResult=%s&InstanceId=%s",
                                              hook, result, w->machines[0].instance));
        static const HttpHeader headers[] = { { "Host", "autoscaling.us-east-1.amazonaws.com" },
                                              { "Content-Type", "application/x-www-form-urlencoded; charset=utf-8" } };
        const HttpRequest request = { .method = HTTP_POST,
                                      .url = SIM_GROUPS "/",
                                      .headers = headers,
                                      .n_headers = ELEMENTSOF(headers),
                                      .body = form,
                                      .body_size = strlen(form),
                                      .timeout_usec = SEC,
                                      .max_response_bytes = 10000 };

        assert_return_code(http_call_start(sim_world_leader(w)->life->transport, &request, nothing, NULL, NULL), 0);
        (void) sim_world_run(w, SEC);
}

static void abandon(SimWorld *w) {
        (void) sim_queue_scale_in(w->queue, 0, FAKE_AWS_EVENT_HOOK, false);
        answer_hook(w, "drain", "ABANDON");
}

static void continue_undrained(SimWorld *w) {
        (void) sim_queue_scale_in(w->queue, 0, FAKE_AWS_EVENT_TERMINATE_ACTION, true);
        answer_hook(w, "drain", "CONTINUE");
}

static void launch_unready(SimWorld *w) {
        fake_cluster_set_kubelet(w->cluster, "n0", false);
        (void) sim_world_run(w, 60 * SEC);
        announce(w, FAKE_AWS_EVENT_LAUNCH_ACTION, w->machines[0].instance);
        answer_hook(w, "join", "CONTINUE");
}

static void delete_unanswered(SimWorld *w) {
        (void) sim_queue_scale_in(w->queue, 0, FAKE_AWS_EVENT_HOOK, false);
        sim_queue_note_deleted(w->queue, 1);
}

/* Nobody tells its group to wait, and one pod takes longer than that does by itself. */
static void let_hook_run_out(SimWorld *w) {
        fake_add_pod(w->cluster, &(FakePod){ .name = "slow", .node = "n0", .grace_sec = 300, .stop_sec = 120 });
        sim_check_promise(w->check);
        (void) sim_world_run(w, 70 * SEC);
        fake_troubles_add(fake_autoscaling_troubles(sim_queue_groups(w->queue)),
                          &(FakeTrouble){ .kind = FAKE_TROUBLE_HANG, .operation = "RecordLifecycleActionHeartbeat", .n = UINT_MAX });
        (void) sim_queue_scale_in(w->queue, 0, FAKE_AWS_EVENT_HOOK, false);
        (void) sim_world_run(w, 40 * SEC);
}

TEST_CASE(test_checks_find) {
        static const struct {
                const char *found;
                void (*mistake)(SimWorld *w);
        } rows[] = {
                { "undoes a person's cordon", undo_cordon },
                { "which a person opened", cordon_again },
                { "for which nothing is announced", evict_for_nothing },
                { "which still takes pods", evict_from_open },
                { "before its time", delete_early },
                { "before its time", evict_immediate },
                { "though there is more time", delete_hard },
                { "whose containers run", take_off_running },
                { "against its budget", break_budget },
                { "takes the finalizer off", drop_finalizer },
                { "now 2 nodes have one of 1", grant_two },
                { "takes the charge of slot a off", end_charge_of_slot },
                { "takes the charge of n0 off", end_charge_of_deletion },
                { "no budget has charged it for that", grant_uncharged },
                { "no budget has charged it for that", delete_uncharged },
                { "does not hold a slot", reboot_late },
                { "leads", write_as_follower },
                { "without the version it was decided on", patch_without_version },
                { "without the uid of its pod", evict_by_name },
                { "leads", terminate_as_follower },
                { "requests in a second", storm },
                { "times in a second", ask_again_and_again },
                { "opted out by vesper.sh/do-not-evict", evict_protected },
                { "opted out by vesper.sh/do-not-evict", evict_protected_after },
                { "a DaemonSet's or static one", evict_daemon },
                { "somebody takes the Lease", take_lease },
                { "says that it leads", two_lead },
                { "which a person opened 30000 ms ago", end_opened },
                { "without having listed", say_drained },
                { "its last list of the pods there had 2", say_drained_too_soon },
                { "for a notice it was drained for", drain_twice },
                { "which is still announced", forget_notice },
                { "is not being deleted", end_in_service },
                { "which nobody asked for", delete_claim_unasked },
                { "its own while", heed_second_claim },
                { "whose claim nobody deletes", delete_node_unasked },
                { "which is Ready, and whose claim", repair_ready },
                { "n0, which a person has cordoned", repair_cordoned },
                { "n0, whose machine is off", repair_off },
                { "n0, which is well", reboot_well },
                { "has not been ill for as long", reboot_early },
                { "which has booted 2.0 s ago", reboot_booted },
                { "or is a person's", reboot_cordoned },
                { "which is over", reboot_of_old_boot },
                { "a second reboot of n0", reboot_twice },
                { "coordinator-b asks for a second reboot of n0", reboot_twice_over_leaders },
                { "a second reboot of n0", reboot_twice_soon },
                { "its claim does not say so", reboot_unrecorded },
                { "asked for the end of this boot", reboot_unasked },
                { "deletes n0, which is well", replace_cured },
                { "has not had it rebooted first", replace_unrebooted },
                { "had less than five minutes", replace_before_its_agent_asks },
                { "n0 is out of service, and", taint_running },
                { "out of service, which is Ready", taint_ready },
                { "and still out of service", leave_taint },
                { "vesper.sh/deadline is left", leave_mark },
                { "is left cordoned", leave_cordon },
                { "is leaked", leak },
                { "requests were sent", chatter },
                { "time stands still", spin },
                { "lease vesper-coordinator (leading) has no timer, no call and no watch", forget_timer },
                { "asks again", evict_twice },
                { "where nothing goes on", keep_removal },
                { "and its claim does not say so", delete_unwritten },
                { "and nobody could read it", delete_unread },
                { "is unknown for no more than 0 s", delete_foreign_too_soon },
                { "which may be somebody else's", delete_shared },
                { "its claim stays", do_nothing_about_it },
                { "what nobody announced", write_unannounced },
                { "forgets a of n0", write_over },
                { "of only 1 machines", hold_the_first },
                { "is left in the queue", leave_message },
                { "says that it is being drained", leave_drain_told },
                { "is drained, and is open", leave_drained_open },
                { "is answered with ABANDON", abandon },
                { "is told to go on, and", continue_undrained },
                { "is there, which is not Ready", launch_unready },
                { "its group has not been answered", delete_unanswered },
                { "nobody has asked it to wait", let_hook_run_out },
        };
        SimOptions o = { THREE_NODES };

        o.endpoint_region = "us-east-1"; /* asks for no signature */
        o.queue = 1;
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(1, &o);

                for (size_t k = 0; k < w->n_machines; k++) /* nobody else's doing */
                        sim_process_kill(sim_world_agent(w, k), USEC_INFINITY);
                rows[i].mistake(w);
                sim_check_after_step(w->check, 0);
                assert_non_null(sim_world_violation(w));
                print_message("%s\n", sim_world_violation(w));
                assert_non_null(strstr(sim_world_violation(w), rows[i].found));
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_same_seed_same_trace),
                cmocka_unit_test(test_same_in_every_encoding),
                cmocka_unit_test(test_disk),
                cmocka_unit_test(test_checks_find),
        };
        return cmocka_run_group_tests_name("sim-rig", tests, NULL, NULL);
}
