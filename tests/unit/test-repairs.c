/* SPDX-License-Identifier: Apache-2.0 */
#include "repair-bench.h"

/* A zone of ten nodes falls silent at once: one, two, four; one again when no successors come. */
TEST_CASE(test_slow_start) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(10);

        run(r, M);
        silence(r, 0, 10);
        run(r, SEEN + 14 * M);
        assert_int_equal(n_repaired(r, 10), 0);
        run(r, 2 * M);
        assert_int_equal(n_repaired(r, 10), 1);
        assert_true(rig_event_says(r, "n0", "NodeRepair",
                                   "its condition Ready is Unknown, NodeStatusUnknown, for 15min, and NodePool pool has that "
                                   "repaired after 15min"));
        assert_null(rig_node(r, "n0"));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
        assert_string_equal(held(r), "SlowStart");
        assert_true(rig_event_says(r, POOL, POOL_REPAIR_HELD, "1 of 1 repairs are under way in NodePool pool"));
        assert_true(metrics_say(r, "vesper_coordinator_repairs_waiting 9\n"));
        run(r, 10 * M);
        assert_int_equal(n_repaired(r, 10), 1);

        print_message("  a successor, and two\n");
        succeed(r, 0, 1);
        run(r, 4 * M);
        assert_int_equal(n_repaired(r, 10), 1);
        run(r, 2 * M);
        assert_int_equal(n_repaired(r, 10), 3);
        print_message("  two successors, and four\n");
        succeed(r, 1, 3);
        run(r, 6 * M);
        assert_int_equal(n_repaired(r, 10), 7);
        assert_true(metrics_say(r, "vesper_coordinator_repairs_total{outcome=\"begun\"} 7\n"));
        assert_true(metrics_say(r, "vesper_coordinator_repairs_total{outcome=\"proved\"} 3\n"));
        assert_true(metrics_say(r, "vesper_coordinator_repairs_under_way 4\n"));

        print_message("  nobody succeeds these: one again\n");
        run(r, 32 * M);
        assert_int_equal(n_repaired(r, 10), 8);
        assert_true(metrics_say(r, "vesper_coordinator_repairs_total{outcome=\"failed\"} 4\n"));

        print_message("  the others report again\n");
        fake_cluster_set_kubelet(r->cluster, "n8", true);
        fake_cluster_set_kubelet(r->cluster, "n9", true);
        run(r, 2 * USEC_PER_HOUR);
        assert_int_equal(n_repaired(r, 10), 8);
        assert_string_equal(held(r), "");
        assert_true(metrics_say(r, "vesper_coordinator_repairs_waiting 0\n"));
}

TEST_CASE(test_view) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(3);

        print_message("  no heartbeat moves at all\n");
        silence(r, 0, 3);
        rig_run(r, USEC_PER_HOUR);
        assert_int_equal(n_repaired(r, 3), 0);
        assert_string_equal(held(r), "ViewNotHealthy");
        assert_true(rig_event_says(r, POOL, POOL_REPAIR_HELD, "no Node's heartbeat has moved"));
        print_message("  they move: kubelets have five minutes to report\n");
        run(r, 4 * M);
        assert_int_equal(n_repaired(r, 3), 0);
        fake_cluster_set_kubelet(r->cluster, "n0", true);
        run(r, 3 * M);
        assert_int_equal(n_repaired(r, 3), 1);
        assert_false(is_repaired(r, "n0"));
        print_message("  none moves again: a successor proves nothing meanwhile\n");
        rig_run(r, 11 * M);
        succeed(r, 0, 1);
        rig_run(r, 6 * M);
        assert_true(metrics_say(r, "vesper_coordinator_repairs_total{outcome=\"proved\"} 0\n"));
        assert_int_equal(n_repaired(r, 3), 1);
        run(r, 6 * M);
        assert_true(metrics_say(r, "vesper_coordinator_repairs_total{outcome=\"proved\"} 1\n"));
        assert_int_equal(n_repaired(r, 3), 2);
}

TEST_CASE(test_left_alone) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(5);

        print_message("  a person's veto, Karpenter's, and a node that is interrupted\n");
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'annotations':{'" ANNOTATION_DO_NOT_REPAIR "':'true'}}}");
        fake_merge(r->cluster, FAKE_NODES, NULL, "n1", "{'metadata':{'annotations':{'" ANNOTATION_KARPENTER_DO_NOT_REPAIR "':'true'}}}");
        fake_merge(r->cluster, FAKE_NODES, NULL, "n2",
                   "{'metadata':{'annotations':{'" ANNOTATION_INTERRUPTION
                   "':'{\\'id\\':\\'i\\',\\'kind\\':\\'rebalance\\',\\'source\\':\\'s\\',\\'action\\':\\'none\\',"
                   "\\'phase\\':\\'Draining\\',\\'bootID\\':\\'n2-boot-1\\'}'}}}");
        run(r, M);
        silence(r, 0, 4);
        print_message("  Ready again before its time\n");
        run(r, SEEN + 13 * M);
        fake_cluster_set_kubelet(r->cluster, "n3", true);
        run(r, USEC_PER_HOUR);
        assert_int_equal(n_repaired(r, 5), 0);
        assert_string_equal(held(r), "");
        print_message("  the veto is taken back\n");
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'annotations':{'" ANNOTATION_DO_NOT_REPAIR "':null}}}");
        run(r, 2 * M); /* it was not announced before */
        assert_int_equal(n_repaired(r, 5), 1);
        assert_true(is_repaired(r, "n0"));
}

/* Nobody's work on a machine is ended: a person or a tool has cordoned the node, or its machine is off, or nobody can say. */
TEST_CASE(test_held_for_people) {
        static const char cordoned[] =
                "Node n0 waits to be repaired: it was cordoned by a person or a tool, who may be at work on its "
                "machine. kubectl uncordon n0, and it is repaired; if it is to go now, kubectl delete node n0";
        static const char unknown[] =
                "Node n0 waits to be repaired: the provider does not say whether its machine is off: the cloud is "
                "in a bad mood. vesper asks again every two minutes. Check the provider's credentials and region; "
                "if the node is to go, kubectl delete node n0";
        static const struct {
                const char *what, *annotation, *reason, *text;
                InstanceState state;
                CloudOutcome answer;
        } rows[] = {
                { "cordoned with kubectl", "kubectl", "Cordoned", cordoned, INSTANCE_PRESENT, CLOUD_OK },
                { "drained with vesperctl", ANNOTATION_CORDONED_BY_VESPERCTL, "Cordoned", cordoned,
                  INSTANCE_PRESENT, CLOUD_OK },
                { "switched off", NULL, "MachineOff",
                  "Node n0 waits to be repaired: its machine is off, as the provider says, and is not ended by a "
                  "repair. Start it, or, if it is to go, kubectl delete node n0",
                  INSTANCE_OFF, CLOUD_OK },
                { "the provider does not answer", NULL, "MachineUnknown", unknown, INSTANCE_OFF,
                  CLOUD_RETRY },
                { "nor may it be asked", NULL, "MachineUnknown", unknown, INSTANCE_OFF, CLOUD_DENIED },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(2);

                print_message("  %s\n", rows[i].what);
                run(r, M);
                rig_machine(r, "n0")->state = rows[i].state;
                if (rows[i].annotation)
                        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'annotations':{'%s':'{}'}},'spec':{'unschedulable':true}}",
                                   rows[i].annotation);
                silence(r, 0, 1);
                run(r, SEEN);
                r->toy.describe_outcome = rows[i].answer;
                run(r, USEC_PER_HOUR);
                assert_int_equal(n_repaired(r, 2), 0);
                assert_string_equal(held(r), rows[i].reason);
                assert_true(rig_event_says(r, POOL, POOL_REPAIR_HELD, rows[i].text));
                assert_true(rig_machine(r, "n0")->n_described < 60);
                assert_true(rig_event_says(r, "n0", "NodeRepairAnnounced", "") == !rows[i].annotation);

                print_message("  ... and another node is not held with it\n");
                r->toy.describe_outcome = CLOUD_OK;
                silence(r, 1, 2);
                run(r, SEEN + 16 * M);
                assert_true(is_repaired(r, "n1"));
                succeed(r, 0, 1);
                run(r, 10 * M);
                assert_false(is_repaired(r, "n0"));

                print_message("  ... until it is on, and open\n");
                rig_machine(r, "n0")->state = INSTANCE_PRESENT;
                fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'spec':{'unschedulable':null}}");
                run(r, 5 * M);
                assert_true(is_repaired(r, "n0"));
                assert_string_equal(held(r), "");
        }
}

/* At two thirds of its time, once; not of a node that comes round, and again when it is silent anew. */
TEST_CASE(test_announced) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);

        run(r, M);
        silence(r, 0, 1);
        run(r, SEEN + 8 * M);
        assert_false(rig_event_says(r, "n0", "NodeRepairAnnounced", ""));
        run(r, 2 * M);
        assert_true(rig_event_says(r, "n0", "NodeRepairAnnounced",
                                   "its condition Ready is Unknown, NodeStatusUnknown, for 10min, and NodePool pool has that repaired after 15min. "
                                   "To keep it: kubectl cordon n0"));
        assert_true(rig_event_says(r, "n0", "NodeRepairAnnounced", "vesper deletes this Node in 5min"));
        fake_cluster_set_kubelet(r->cluster, "n0", true);
        run(r, 2 * M);
        silence(r, 0, 1);
        run(r, SEEN + 14 * M);
        assert_int_equal(n_repaired(r, 1), 0);
        run(r, 2 * M);
        assert_int_equal(n_repaired(r, 1), 1);

        print_message("  cordoned over its time, and opened: a minute of notice\n");
        succeed(r, 0, 1);
        rig_add_node(r, "n1");
        rig_machine(r, "n1")->after = INSTANCE_GONE;
        run(r, 10 * M);
        fake_merge(r->cluster, FAKE_NODES, NULL, "n1", "{'spec':{'unschedulable':true}}");
        silence(r, 1, 2);
        run(r, USEC_PER_HOUR);
        assert_false(rig_event_says(r, "n1", "NodeRepairAnnounced", ""));
        fake_merge(r->cluster, FAKE_NODES, NULL, "n1", "{'spec':{'unschedulable':null}}");
        run(r, 40 * USEC_PER_SEC);
        assert_true(rig_event_says(r, "n1", "NodeRepairAnnounced", "vesper deletes this Node in 1min"));
        assert_false(is_repaired(r, "n1"));
        run(r, 2 * M);
        assert_true(is_repaired(r, "n1"));
}

/* When its time is up, and no later: it was announced by then. */
TEST_CASE(test_in_time) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);
        unsigned sec = 0;

        set_rules(r, "[{'condition':'Ready','status':'NotTrue','after':'12s','action':'Replace'}]");
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'status':{'conditions':[{'type':'Ready','status':'False','reason':'KubeletNotReady'}]}}");
        fake_cluster_set_kubelet(r->cluster, "n0", false);
        for (; sec < 60 && !is_repaired(r, "n0"); sec++) {
                set_heartbeat(r, BEACON);
                rig_run(r, USEC_PER_SEC);
        }
        assert_true(rig_event_says(r, "n0", "NodeRepairAnnounced", "vesper deletes this Node in 4s"));
        assert_in_range(sec, 12, 20);
}

TEST_CASE(test_rules_of_the_pool) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(2);

        print_message("  none\n");
        set_rules(r, "[]");
        silence(r, 0, 1);
        run(r, USEC_PER_HOUR);
        assert_int_equal(n_repaired(r, 2), 0);
        print_message("  no reboot of a node whose boot nobody knows\n");
        set_rules(r, "[{'condition':'Ready','status':'NotTrue','after':'1m','action':'Reboot'}]");
        run(r, USEC_PER_HOUR);
        assert_int_equal(n_repaired(r, 2), 0);
        assert_null(fj_string(rig_node(r, "n0"), "metadata", "annotations", ANNOTATION_REBOOT_FOR_REPAIR, NULL));
        print_message("  a minute, from now on: that was not what it was watched for\n");
        set_rules(r, "[{'condition':'Ready','status':'Unknown','after':'1m','action':'Replace'}]");
        assert_int_equal(n_repaired(r, 2), 0);
        run(r, 2 * M);
        assert_int_equal(n_repaired(r, 2), 1);
}

static void refuse_deletes(const FakeRequest *request, FakeApiFault *ret_fault, void *userdata) {
        if (request->verb == FAKE_DELETE && request->resource && request->resource->id == FAKE_NODES)
                ret_fault->status = 503;
}

/* A deletion that nobody answers may have been done: it keeps its place, and is sent again. Its node is Ready meanwhile, and
 * is to be repaired once more. */
TEST_CASE(test_no_answer) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(3);

        run(r, M);
        silence(r, 0, 1);
        run(r, SEEN + 16 * M);
        assert_int_equal(n_repaired(r, 3), 1);
        succeed(r, 0, 1);
        run(r, 6 * M);
        fake_api_set_fault(r->api, refuse_deletes, NULL);
        silence(r, 1, 2);
        run(r, SEEN + 17 * M);
        assert_int_equal(n_repaired(r, 3), 1);
        assert_true(metrics_say(r, "vesper_coordinator_repairs_total{outcome=\"begun\"} 2\n"));
        assert_true(metrics_say(r, "vesper_coordinator_repairs_under_way 1\n"));
        print_message("  Ready, and silent again\n");
        fake_cluster_set_kubelet(r->cluster, "n1", true);
        run(r, M);
        fake_api_set_fault(r->api, NULL, NULL);
        silence(r, 1, 2);
        run(r, SEEN + 14 * M);
        assert_int_equal(n_repaired(r, 3), 1);
        run(r, 2 * M);
        assert_int_equal(n_repaired(r, 3), 2);
        assert_true(metrics_say(r, "vesper_coordinator_repairs_under_way 1\n"));
}

TEST_CASE(test_paused) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);

        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL, "{'metadata':{'annotations':{'" ANNOTATION_PAUSED "':'true'}}}");
        run(r, M);
        silence(r, 0, 1);
        run(r, USEC_PER_HOUR);
        assert_int_equal(n_repaired(r, 1), 0);
        assert_string_equal(held(r), "Paused");
        assert_true(rig_event_says(r, POOL, POOL_REPAIR_HELD,
                                   "Node n0 waits to be repaired: a person has paused removals "
                                   "(" ANNOTATION_PAUSED ")"));
        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL, "{'metadata':{'annotations':{'" ANNOTATION_PAUSED "':null}}}");
        run(r, 2 * M);
        assert_int_equal(n_repaired(r, 1), 1);
}

/* A node that is Ready, and ails otherwise, asks the budgets. */
TEST_CASE(test_ready_asks_the_budgets) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(2);

        set_rules(r, "[{'condition':'Disk','status':'False','after':'1m','action':'Replace'}]");
        fake_put(r->cluster, FAKE_NDBS,
                 fj_parse("{'metadata':{'name':'b','generation':1},'spec':{'maxUnavailable':0,"
                          "'selector':{'matchLabels':{'vesper.sh/pool':'" POOL "'}}}}"));
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                   "{'status':{'conditions':[{'type':'Ready','status':'True','reason':'KubeletReady','message':'kubelet is posting ready "
                   "status'},{'type':'Disk','status':'False'}]}}");
        run(r, 10 * M);
        assert_int_equal(n_repaired(r, 2), 0);
        assert_true(rig_event_says(r, "n0", "DeletionWaits", "as it is to be repaired"));
        fake_merge(r->cluster, FAKE_NDBS, NULL, "b", "{'metadata':{'generation':2},'spec':{'maxUnavailable':1}}");
        run(r, 2 * M);
        assert_int_equal(n_repaired(r, 2), 1);
        assert_true(rig_event_says(r, "n0", "NodeRepair", "its condition Disk is False, for"));
}

/* One at a time, each proved by the node itself; the annotation goes with the boot that it names. */
TEST_CASE(test_reboot) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(2);
        const char *first, *second;

        set_rules(r, REBOOT_RULES);
        set_boot(r, "n0", "b0");
        set_boot(r, "n1", "b1");
        set_deadlock(r, "n0", "True");
        set_deadlock(r, "n1", "True");
        run(r, 2 * M);
        first = mark_of(r, "n0") ? "n0" : "n1";
        second = streq(first, "n0") ? "n1" : "n0";
        assert_string_equal(mark_of(r, first), streq(first, "n0") ? "b0" : "b1");
        assert_null(mark_of(r, second));
        assert_string_equal(held(r), "SlowStart");
        assert_true(rig_event_says(r, first, "NodeRepair", "Asking its agent to reboot it: its condition KernelDeadlock is True"));

        fake_merge(r->cluster, FAKE_NODES, NULL, first,
                   "{'metadata':{'annotations':{'" ANNOTATION_SHUTDOWN_REQUEST
                   "':'{\\\"id\\\":\\\"r\\\",\\\"bootID\\\":\\\"%s\\\",\\\"kind\\\":\\\"reboot\\\","
                   "\\\"until\\\":\\\"2037-01-15T08:00:00Z\\\"}'}}}",
                   mark_of(r, first));
        run(r, 8 * M);
        assert_non_null(mark_of(r, first)); /* its agent has asked, and waits for its slot */
        set_boot(r, first, "b2");
        set_deadlock(r, first, "False");
        fake_merge(r->cluster, FAKE_NODES, NULL, first, "{'metadata':{'annotations':{'" ANNOTATION_SHUTDOWN_REQUEST "':null}}}");
        run(r, 2 * M);
        assert_null(mark_of(r, first));
        assert_null(mark_of(r, second));
        run(r, 5 * M);
        assert_true(metrics_say(r, "vesper_coordinator_repairs_total{outcome=\"proved\"} 1\n"));
        assert_non_null(mark_of(r, second));
        assert_int_equal(n_repaired(r, 2), 0);
}

static void refuse_patches(const FakeRequest *request, FakeApiFault *ret_fault, void *userdata) {
        unsigned *n = userdata;

        if (request->verb == FAKE_PATCH && request->resource && request->resource->id == FAKE_NODES && *n > 0) {
                ret_fault->status = 409;
                (*n)--;
        }
}

/* Somebody else has written on the Node: the annotation is written again, and its repair is counted and reported once. */
TEST_CASE(test_reboot_conflict) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);
        unsigned n = 5;

        set_rules(r, REBOOT_RULES);
        set_boot(r, "n0", "b0");
        set_deadlock(r, "n0", "True");
        run(r, 30 * USEC_PER_SEC);
        fake_api_set_fault(r->api, refuse_patches, &n);
        run(r, 3 * M);
        assert_int_equal(n, 0);
        assert_string_equal(mark_of(r, "n0"), "b0");
        assert_true(metrics_say(r, "vesper_coordinator_repairs_total{outcome=\"begun\"} 1\n"));
        assert_true(metrics_say(r, "vesper_coordinator_repairs_under_way 1\n"));
        print_message("  its agent is away: what comes next is counted, too\n");
        run(r, 8 * M);
        assert_int_equal(n_repaired(r, 1), 1);
        assert_true(metrics_say(r, "vesper_coordinator_repairs_total{outcome=\"begun\"} 2\n"));
}

/* Nobody asks for it, or it was in vain: the next rule decides, and it is not rebooted again. */
TEST_CASE(test_reboot_in_vain) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);

        for (unsigned round = 0; round < 2; round++) {
                set_rules(r, "[{'condition':'KernelDeadlock','status':'True','after':'1m','action':'Reboot'}]");
                set_boot(r, "n0", "b0");
                set_deadlock(r, "n0", "True");
                run(r, 2 * M);
                assert_non_null(mark_of(r, "n0"));
                if (round == 0)
                        set_boot(r, "n0", "b1"); /* it has booted, and is as before */
                run(r, 6 * M);
                assert_null(mark_of(r, "n0"));
                run(r, 20 * M);
                assert_null(mark_of(r, "n0"));
                assert_int_equal(n_repaired(r, 1), 0);
                if (round == 1)
                        break;
                set_deadlock(r, "n0", "False");
                run(r, 7 * M);
        }
        assert_true(rig_event_says(r, "n0", "NodeRepair", "It was rebooted to be repaired, and is not well: "));
        assert_true(rig_event_says(r, "n0", "NodeRepair", "its agent has not asked for a slot within five minutes"));
        assert_true(metrics_say(r, "vesper_coordinator_repairs_total{outcome=\"failed\"} 2\n"));
        assert_true(metrics_say(r, "vesper_coordinator_repairs_total{outcome=\"proved\"} 0\n"));
        set_rules(r, REBOOT_RULES);
        run(r, 3 * M);
        assert_int_equal(n_repaired(r, 1), 1);
}

/* A node that comes round by itself is not rebooted any more, and holds up no other. */
TEST_CASE(test_reboot_not_needed) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);

        set_rules(r, REBOOT_RULES);
        set_boot(r, "n0", "b0");
        set_deadlock(r, "n0", "True");
        run(r, 2 * M);
        assert_non_null(mark_of(r, "n0"));
        set_deadlock(r, "n0", "False");
        run(r, M);
        assert_null(mark_of(r, "n0"));
        assert_true(metrics_say(r, "vesper_coordinator_repairs_under_way 0\n"));
}

static void change_leaders(CoordinatorRig *r, unsigned from) {
        rig_stop(r, from);
        rig_start(r, 1 - from);
        run(r, USEC_PER_SEC);
}

/* What a reboot did not cure is not rebooted again by the next leader, whose next rule decides. */
TEST_CASE(test_rebooted_before_this_leader) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);

        set_rules(r, "[{'condition':'KernelDeadlock','status':'True','after':'1m','action':'Reboot'},"
                     "{'condition':'KernelDeadlock','status':'True','after':'10m','action':'Replace'}]");
        set_boot(r, "n0", "b0");
        set_deadlock(r, "n0", "True");
        run(r, 2 * M);
        assert_string_equal(mark_of(r, "n0"), "b0");
        assert_false(rig_event_says(r, "n0", "NodeRepair", "The request of an earlier leader"));
        print_message("  a leader who finds that it was not rebooted asks again\n");
        change_leaders(r, 0);
        assert_null(mark_of(r, "n0"));
        assert_true(rig_event_says(r, "n0", "NodeRepair", "The request of an earlier leader to reboot this node is taken off"));
        run(r, 2 * M);
        assert_string_equal(mark_of(r, "n0"), "b0");
        print_message("  one who finds that it was does not\n");
        set_boot(r, "n0", "b1");
        run(r, 10 * USEC_PER_SEC);
        change_leaders(r, 1);
        for (unsigned i = 0; i < 9; i++) {
                run(r, M);
                assert_null(mark_of(r, "n0"));
        }
        assert_int_equal(n_repaired(r, 1), 0);
        run(r, 2 * M);
        assert_int_equal(n_repaired(r, 1), 1);
}

/* The leader learns late that an earlier one had the node rebooted: it cannot write on the claim before, and asks for nothing then. */
TEST_CASE(test_rebooted_is_seen_late) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);

        set_rules(r, "[{'condition':'KernelDeadlock','status':'True','after':'1m','action':'Reboot'}]");
        set_boot(r, "n0", "b1");
        set_deadlock(r, "n0", "True");
        run(r, 30 * USEC_PER_SEC);
        fake_api_mute(r->api, FAKE_NODECLAIMS, usec_add(loop_now(r->w.loop), M));
        fake_merge(r->cluster, FAKE_NODECLAIMS, NULL, fj_string(rig_claim(r, "n0"), "metadata", "name", NULL),
                   "{'metadata':{'annotations':{'" ANNOTATION_REBOOTED_FOR_REPAIR "':'b0'}}}");
        for (unsigned i = 0; i < 10; i++) {
                run(r, 30 * USEC_PER_SEC);
                assert_null(mark_of(r, "n0"));
                assert_string_equal(record_of(r, "n0"), "b0");
        }
        assert_true(metrics_say(r, "vesper_coordinator_repairs_under_way 0\n"));
        assert_true(metrics_say(r, "vesper_coordinator_repairs_total{outcome=\"failed\"} 0\n"));
        assert_true(rig_event_says(r, "n0", "NodeRepair", "Not asking its agent any more to reboot it: it was rebooted for that already"));
}

/* A fault that comes back soon is the same; one that comes after the node was well for five minutes gets its reboot. */
TEST_CASE(test_reboot_is_forgotten) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);

        set_rules(r, "[{'condition':'KernelDeadlock','status':'True','after':'1m','action':'Reboot'}]");
        set_boot(r, "n0", "b0");
        set_deadlock(r, "n0", "True");
        run(r, 2 * M);
        assert_string_equal(mark_of(r, "n0"), "b0");
        set_boot(r, "n0", "b1");
        set_deadlock(r, "n0", "False");
        run(r, 4 * M);
        set_deadlock(r, "n0", "True");
        run(r, 4 * M);
        assert_null(mark_of(r, "n0"));
        assert_non_null(record_of(r, "n0"));
        print_message("  well under two leaders, each of which counts anew\n");
        set_deadlock(r, "n0", "False");
        run(r, 4 * M);
        change_leaders(r, 0);
        run(r, 4 * M);
        assert_non_null(record_of(r, "n0"));
        run(r, 2 * M);
        assert_null(record_of(r, "n0"));
        set_deadlock(r, "n0", "True");
        run(r, 2 * M);
        assert_string_equal(mark_of(r, "n0"), "b1");
}

/* Another boot proves nothing while the node shows what it was rebooted for. */
TEST_CASE(test_reboot_proved_by_what_the_node_shows) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(2);

        set_rules(r, "[{'condition':'KernelDeadlock','status':'True','after':'1m','action':'Reboot'}]");
        set_boot(r, "n0", "b0");
        set_boot(r, "n1", "b0");
        set_deadlock(r, "n0", "True");
        run(r, 2 * M);
        set_boot(r, "n0", "b1");
        run(r, 4 * M);
        set_deadlock(r, "n0", "False");
        run(r, 4 * M);
        assert_true(metrics_say(r, "vesper_coordinator_repairs_under_way 1\n"));
        run(r, 2 * M);
        assert_true(metrics_say(r, "vesper_coordinator_repairs_total{outcome=\"proved\"} 1\n"));
        assert_null(record_of(r, "n0"));
        print_message("  in vain\n");
        set_deadlock(r, "n1", "True");
        run(r, 2 * M);
        set_boot(r, "n1", "b1");
        run(r, 6 * M);
        assert_true(metrics_say(r, "vesper_coordinator_repairs_total{outcome=\"failed\"} 1\n"));
        assert_true(metrics_say(r, "vesper_coordinator_repairs_total{outcome=\"proved\"} 1\n"));
}

/* A successor that shows what its predecessor was replaced for proves nothing: as where both boot a bad image. */
TEST_CASE(test_successor_is_not_well) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(2);

        set_rules(r, "[{'condition':'KernelDeadlock','status':'True','after':'1m','action':'Replace'}]");
        set_deadlock(r, "n0", "True");
        run(r, 3 * M);
        assert_int_equal(n_repaired(r, 2), 1);
        set_deadlock(r, "n1", "True");
        succeed(r, 0, 1);
        set_deadlock(r, "s0", "True");
        run(r, 10 * M);
        assert_true(metrics_say(r, "vesper_coordinator_repairs_total{outcome=\"proved\"} 0\n"));
        assert_int_equal(n_repaired(r, 2), 1);
        assert_false(is_repaired(r, "s0"));
        set_deadlock(r, "s0", "False");
        run(r, 4 * M);
        assert_true(metrics_say(r, "vesper_coordinator_repairs_total{outcome=\"proved\"} 0\n"));
        run(r, 2 * M);
        assert_true(metrics_say(r, "vesper_coordinator_repairs_total{outcome=\"proved\"} 1\n"));
        assert_int_equal(n_repaired(r, 2), 2);
}

/* Before its slot is granted, and after that, while the machine has not booted: a person's word takes the reboot back. */
TEST_CASE(test_reboot_taken_back) {
        static const struct {
                const char *what, *set, *unset;
        } rows[] = {
                { "vetoed", "{'metadata':{'annotations':{'" ANNOTATION_DO_NOT_REPAIR "':'true'}}}",
                  "{'metadata':{'annotations':{'" ANNOTATION_DO_NOT_REPAIR "':null}}}" },
                { "vetoed by Karpenter's annotation", "{'metadata':{'annotations':{'" ANNOTATION_KARPENTER_DO_NOT_REPAIR "':'true'}}}",
                  "{'metadata':{'annotations':{'" ANNOTATION_KARPENTER_DO_NOT_REPAIR "':null}}}" },
                { "cordoned", "{'spec':{'unschedulable':true}}", "{'spec':{'unschedulable':null}}" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows) * 3; i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);
                bool asks = i % 3 >= 1, granted = i % 3 == 2;

                print_message("  %s%s\n", rows[i / 3].what, granted ? ", in its slot" : asks ? ", while its agent asks" : "");
                set_rules(r, "[{'condition':'KernelDeadlock','status':'True','after':'1m','action':'Reboot'}]");
                set_boot(r, "n0", "b0");
                set_deadlock(r, "n0", "True");
                run(r, 2 * M);
                assert_string_equal(mark_of(r, "n0"), "b0");
                if (granted)
                        set_request(r, "n0");
                run(r, 10 * USEC_PER_SEC);
                fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "%s", rows[i / 3].set);
                if (asks && !granted)
                        set_request(r, "n0");
                run(r, 10 * USEC_PER_SEC);
                assert_null(mark_of(r, "n0"));
                assert_true(rig_event_says(r, "n0", "NodeRepair", "Not asking its agent any more to reboot it: "));
                assert_true(rig_event_says(r, "n0", "NodeRepair", "It has a slot: a reboot that has begun by now goes on") == granted);
                assert_true(metrics_say(r, granted ? "vesper_coordinator_repairs_under_way 1\n" : "vesper_coordinator_repairs_under_way 0\n"));

                print_message("  ... its agent asks no more\n");
                fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'annotations':{'" ANNOTATION_SHUTDOWN_REQUEST "':null}}}");
                run(r, 8 * M);
                assert_null(mark_of(r, "n0"));
                assert_true(metrics_say(r, "vesper_coordinator_repairs_under_way 0\n"));
                assert_true(metrics_say(r, "vesper_coordinator_repairs_total{outcome=\"failed\"} 0\n"));

                print_message("  ... and a person lets it be repaired\n");
                fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "%s", rows[i / 3].unset);
                run(r, M);
                assert_string_equal(mark_of(r, "n0"), "b0");
                assert_int_equal(n_repaired(r, 1), 0);
        }
}

static void fail_patches(const FakeRequest *request, FakeApiFault *ret_fault, void *userdata) {
        if (request->verb == FAKE_PATCH && request->resource &&
            (request->resource->id == FAKE_NODES || request->resource->id == FAKE_NODECLAIMS))
                ret_fault->status = 503;
}

/* The API server does not answer: the request is written later, and its agent has five minutes from then on. */
TEST_CASE(test_reboot_no_answer) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);
        uint64_t n;

        set_rules(r, REBOOT_RULES);
        set_boot(r, "n0", "b0");
        set_deadlock(r, "n0", "True");
        run(r, 30 * USEC_PER_SEC);
        fake_api_set_fault(r->api, fail_patches, NULL);
        run(r, 4 * M);
        n = fake_api_count(r->api, FAKE_PATCH, FAKE_NODECLAIMS, NULL);
        run(r, 4 * M);
        assert_in_range(fake_api_count(r->api, FAKE_PATCH, FAKE_NODECLAIMS, NULL) - n, 1, 10);
        assert_null(mark_of(r, "n0"));
        assert_int_equal(n_repaired(r, 1), 0);
        fake_api_set_fault(r->api, NULL, NULL);
        run(r, M);
        assert_string_equal(mark_of(r, "n0"), "b0");
        assert_true(metrics_say(r, "vesper_coordinator_repairs_total{outcome=\"begun\"} 1\n"));
        run(r, 3 * M);
        assert_true(metrics_say(r, "vesper_coordinator_repairs_total{outcome=\"failed\"} 0\n"));
}

/* A deletion that was not answered has its place; the rules are changed, and a reboot takes that, and no second one. */
TEST_CASE(test_reboot_in_place_of_deletion) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(2);

        set_boot(r, "n0", "b0");
        set_boot(r, "n1", "b0");
        set_rules(r, "[{'condition':'KernelDeadlock','status':'True','after':'1m','action':'Replace'}]");
        fake_api_set_fault(r->api, refuse_deletes, NULL);
        set_deadlock(r, "n0", "True");
        run(r, USEC_PER_SEC);
        set_deadlock(r, "n1", "True");
        run(r, 2 * M);
        assert_true(metrics_say(r, "vesper_coordinator_repairs_total{outcome=\"begun\"} 1\n"));
        assert_true(metrics_say(r, "vesper_coordinator_repairs_under_way 1\n"));
        set_rules(r, "[{'condition':'KernelDeadlock','status':'True','after':'1m','action':'Reboot'}]");
        fake_api_set_fault(r->api, NULL, NULL);
        run(r, 3 * M);
        assert_string_equal(mark_of(r, "n0"), "b0");
        assert_null(mark_of(r, "n1"));
        assert_true(metrics_say(r, "vesper_coordinator_repairs_under_way 1\n"));
        assert_int_equal(n_repaired(r, 2), 0);
        set_boot(r, "n0", "b1");
        set_deadlock(r, "n0", "False");
        run(r, 6 * M);
        assert_true(metrics_say(r, "vesper_coordinator_repairs_total{outcome=\"proved\"} 1\n"));
        assert_string_equal(mark_of(r, "n1"), "b0");
}

/* A deletion that nobody answers has failed after half an hour: what is sent later is another repair, which needs a place. */
TEST_CASE(test_deletion_has_failed) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);

        run(r, M);
        fake_api_set_fault(r->api, refuse_deletes, NULL);
        silence(r, 0, 1);
        run(r, SEEN + 17 * M);
        assert_true(metrics_say(r, "vesper_coordinator_repairs_under_way 1\n"));
        run(r, 31 * M);
        assert_true(metrics_say(r, "vesper_coordinator_repairs_total{outcome=\"failed\"} 1\n"));
        assert_true(metrics_say(r, "vesper_coordinator_repairs_total{outcome=\"begun\"} 2\n"));
        assert_true(metrics_say(r, "vesper_coordinator_repairs_under_way 1\n"));
}

/* Never Ready: it counts from its creation where it was there before us, and else from when it came. */
TEST_CASE(test_never_ready) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);

        rig_add_node(r, "n1");
        fake_cluster_set_kubelet(r->cluster, "n1", false);
        fake_merge(r->cluster, FAKE_NODES, NULL, "n1",
                   "{'status':{'conditions':[{'type':'Ready','status':'False','reason':'KubeletNotReady'}]}}");
        run(r, 12 * M);
        assert_int_equal(n_repaired(r, 2), 0);
        print_message("  another leader takes over: it has not to wait for all of its time again\n");
        rig_stop(r, 0);
        rig_start(r, 1);
        run(r, 4 * M);
        assert_int_equal(n_repaired(r, 2), 0);
        run(r, 2 * M + USEC_PER_SEC); /* its provider is asked */
        assert_int_equal(n_repaired(r, 2), 1);
        assert_true(is_repaired(r, "n1"));
}

/* A leader who takes over counts from its own first sight. */
TEST_CASE(test_new_leader) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);

        run(r, M);
        silence(r, 0, 1);
        run(r, SEEN + 12 * M);
        rig_stop(r, 0);
        rig_start(r, 1);
        run(r, 14 * M);
        assert_int_equal(n_repaired(r, 1), 0);
        run(r, 2 * M);
        assert_int_equal(n_repaired(r, 1), 1);
}

/* The condition of a Node that a repair deleted names the repair, also under the next leader. A person's deletion is an
 * administrator's. */
TEST_CASE(test_repair_is_the_cause) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(2);

        run(r, M);
        rig_machine(r, "n0")->after = rig_machine(r, "n1")->after = INSTANCE_PRESENT;
        silence(r, 0, 1);
        run(r, SEEN + 16 * M);
        assert_true(is_repaired(r, "n0"));
        rig_delete_node(r, "n1");
        run(r, M);
        for (unsigned leader = 0; leader < 2; leader++) {
                assert_string_equal(rig_condition(rig_node(r, "n0"), CONDITION_MAINTENANCE_IN_PROGRESS), "True");
                assert_string_equal(rig_condition_reason(rig_node(r, "n0"), CONDITION_MAINTENANCE_IN_PROGRESS),
                                    CONDITION_REASON_REPAIR);
                assert_string_equal(rig_condition_reason(rig_node(r, "n1"), CONDITION_MAINTENANCE_IN_PROGRESS),
                                    CONDITION_REASON_ADMIN);
                if (leader == 0)
                        change_leaders(r, 0);
                run(r, 2 * M);
        }
}

/* Pauses the pool in the moment in which the repair deletes its node. The coordinator sees the pause first. */
static void pause_at_delete(const FakeRequest *request, FakeApiFault *ret_fault, void *userdata) {
        CoordinatorRig *r = userdata;

        if (request->verb != FAKE_DELETE || !request->resource || request->resource->id != FAKE_NODES)
                return;
        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL,
                   "{'metadata':{'annotations':{'" ANNOTATION_PAUSED "':'true'}}}");
        fake_api_mute(r->api, FAKE_NODES, usec_add(loop_now(r->w.loop), USEC_PER_SEC));
}

/* While a pause holds the removal, MaintenancePlanned names the cause, and the next leader reads it there. */
TEST_CASE(test_repair_is_the_cause_while_held) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(2);
        static const char *const reasons[] = { CONDITION_REASON_REPAIR, CONDITION_REASON_ADMIN };

        set_rules(r, "[{'condition':'KernelDeadlock','status':'True','after':'1m','action':'Replace'}]");
        rig_machine(r, "n0")->after = rig_machine(r, "n1")->after = INSTANCE_PRESENT;
        fake_api_set_fault(r->api, pause_at_delete, r);
        set_deadlock(r, "n0", "True");
        run(r, 2 * M);
        assert_true(is_repaired(r, "n0"));
        rig_delete_node(r, "n1");
        run(r, M);
        for (unsigned leader = 0; leader < 2; leader++) {
                for (unsigned i = 0; i < ELEMENTSOF(reasons); i++) {
                        const cJSON *node = rig_node(r, i == 0 ? "n0" : "n1");

                        assert_string_equal(rig_condition(node, CONDITION_MAINTENANCE_PLANNED), "True");
                        assert_string_equal(rig_condition_reason(node, CONDITION_MAINTENANCE_PLANNED),
                                            reasons[i]);
                }
                if (leader == 0)
                        change_leaders(r, 0);
                run(r, 2 * M);
        }
        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL,
                   "{'metadata':{'annotations':{'" ANNOTATION_PAUSED "':null}}}");
        run(r, 2 * M);
        for (unsigned i = 0; i < ELEMENTSOF(reasons); i++) {
                const cJSON *node = rig_node(r, i == 0 ? "n0" : "n1");

                assert_string_equal(rig_condition(node, CONDITION_MAINTENANCE_IN_PROGRESS), "True");
                assert_string_equal(rig_condition_reason(node, CONDITION_MAINTENANCE_IN_PROGRESS), reasons[i]);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_slow_start),
                cmocka_unit_test(test_view),
                cmocka_unit_test(test_left_alone),
                cmocka_unit_test(test_held_for_people),
                cmocka_unit_test(test_announced),
                cmocka_unit_test(test_in_time),
                cmocka_unit_test(test_rules_of_the_pool),
                cmocka_unit_test(test_no_answer),
                cmocka_unit_test(test_paused),
                cmocka_unit_test(test_ready_asks_the_budgets),
                cmocka_unit_test(test_reboot),
                cmocka_unit_test(test_reboot_conflict),
                cmocka_unit_test(test_reboot_in_vain),
                cmocka_unit_test(test_reboot_not_needed),
                cmocka_unit_test(test_rebooted_before_this_leader),
                cmocka_unit_test(test_rebooted_is_seen_late),
                cmocka_unit_test(test_reboot_is_forgotten),
                cmocka_unit_test(test_reboot_proved_by_what_the_node_shows),
                cmocka_unit_test(test_successor_is_not_well),
                cmocka_unit_test(test_reboot_taken_back),
                cmocka_unit_test(test_reboot_no_answer),
                cmocka_unit_test(test_reboot_in_place_of_deletion),
                cmocka_unit_test(test_deletion_has_failed),
                cmocka_unit_test(test_never_ready),
                cmocka_unit_test(test_new_leader),
                cmocka_unit_test(test_repair_is_the_cause),
                cmocka_unit_test(test_repair_is_the_cause_while_held),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
