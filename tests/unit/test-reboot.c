/* SPDX-License-Identifier: Apache-2.0 */
#include "reboot.h"
#include "reboot-request-bench.h"
#include "texts.h"

/* A reboot that is asked for: the request on the Node, the coordinator's answer (played by the test), and
 * what follows. */

static void set_mark(AgentRig *r, const char *boot_id, bool of_a_pool) {
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'metadata':{'finalizers':['vesper.sh/termination'],'labels':{'vesper.sh/nodepool':%s},"
                   "'annotations':{'vesper.sh/reboot-for-repair':%s%s%s}}}",
                   of_a_pool ? "'web'" : "null", boot_id ? "'" : "", boot_id ? boot_id : "null", boot_id ? "'" : "");
        run(r, 2 * S);
}

static void set_repair(AgentRig *r, const char *boot_id) {
        set_mark(r, boot_id, true);
}

/* The coordinator asks for it by this boot's id: once, until it takes that back. */
TEST_CASE(test_for_repair) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig();
        char *id;

        set_repair(r, "of-another-boot");
        assert_given_up(r);
        set_mark(r, r->boot_id, false); /* of a node that no NodePool has adopted nobody has that repaired */
        assert_given_up(r);
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'metadata':{'finalizers':null,'labels':{'vesper.sh/nodepool':'web'}}}");
        run(r, 2 * S);
        assert_given_up(r); /* the pool has not adopted the node yet */
        set_repair(r, r->boot_id);
        assert_asks(r);
        set_repair(r, NULL);
        assert_given_up(r);

        set_repair(r, r->boot_id);
        assert_int_equal(fake_power_call_unit(r->power, "CancelReboot"), 0);
        run(r, 10 * S);
        assert_given_up(r); /* a person's word is the last, while the annotation stands */
        set_repair(r, NULL);
        set_repair(r, r->boot_id);
        id = asked_id(r);
        grant(r, id, 600);
        free(id);
        run(r, 10 * S);
        assert_int_not_equal(fake_power_phase(r->power), FAKE_POWER_UP);
}

/* The coordinator takes it back a moment before the slot is used, and the informer does not know yet. */
TEST_CASE(test_for_repair_taken_back_meanwhile) {
        for (int by_hand = 0; by_hand < 2; by_hand++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig();
                _cleanup_free_ char *id = NULL;

                set_repair(r, r->boot_id);
                if (by_hand)
                        assert_int_equal(fake_power_call_unit(r->power, "RequestReboot"), 0);
                run(r, 5 * S);
                id = asked_id(r);
                r->request_delay_usec = 3 * S;
                grant(r, id, 300);
                run(r, S);
                fake_api_stall_watches(fake_cluster_api(r->cluster), usec_add(virtual_time_now(r->world.time), 20 * S));
                fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'metadata':{'annotations':{'vesper.sh/reboot-for-repair':null}}}");
                run(r, 10 * S);
                if (by_hand)
                        assert_int_not_equal(fake_power_phase(r->power), FAKE_POWER_UP);
                else
                        assert_int_equal(fake_power_phase(r->power), FAKE_POWER_UP);
                run(r, 20 * S);
                if (!by_hand)
                        assert_given_up(r);
        }
}

/* What a person has asked for, too, stays when the coordinator takes its own back. */
TEST_CASE(test_for_repair_and_by_hand) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig();

        set_repair(r, r->boot_id);
        assert_int_equal(fake_power_call_unit(r->power, "RequestReboot"), 0);
        set_repair(r, NULL);
        assert_asks(r);
}

TEST_CASE(test_no_repair) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig();

        r->config.repair_reboots = false;
        set_repair(r, r->boot_id);
        assert_given_up(r);
}

TEST_CASE(test_granted) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig();
        char *id;

        assert_int_equal(fake_power_call_unit(r->power, "RequestReboot"), 0);
        run(r, 2 * S);
        id = asked_id(r);
        assert_state(r, "RebootRequested");
        assert_int_equal(fake_power_call_unit(r->power, "RequestReboot"), 0); /* the same */
        run(r, 600 * S);
        assert_false(agent_rig_unschedulable(r)); /* in service until it is granted */
        assert_int_equal(agent_rig_n_pods(r), 3);

        grant(r, id, 300);
        run(r, S);
        assert_true(agent_rig_unschedulable(r));
        run(r, 20 * S);
        assert_int_equal(fake_power_phase(r->power), FAKE_POWER_OFF);
        assert_int_equal(agent_rig_n_pods(r), 0);
        free(id);

        /* Off, up, not Ready yet: the slot is kept. Ready: free. */
        fake_power_boot(r->power);
        fake_cluster_set_kubelet(r->cluster, RIG_NODE, false);
        run(r, 60 * S);
        agent_rig_reboot(r);
        agent_rig_start(r);
        run(r, 5 * S);
        assert_non_null(agent_rig_annotation(r, REQUEST));
        fake_cluster_set_kubelet(r->cluster, RIG_NODE, true);
        run(r, 30 * S);
        assert_null(agent_rig_annotation(r, REQUEST));
        assert_false(agent_rig_unschedulable(r));
        assert_int_equal(fake_power_phase(r->power), FAKE_POWER_UP); /* once */
}

/* Granted, but logind is not there: the slot goes back. */
TEST_CASE(test_logind_refuses) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig();
        char *id;

        assert_int_equal(fake_power_call_unit(r->power, "RequestReboot"), 0);
        run(r, 2 * S);
        id = asked_id(r);
        fake_power_set_logind(r->power, false);
        grant(r, id, 300);
        run(r, 5 * S);
        assert_true(agent_rig_said(r, "logind does not reboot this machine"));
        run(r, 10 * S);
        assert_null(agent_rig_annotation(r, REQUEST));
        assert_int_equal(fake_power_phase(r->power), FAKE_POWER_UP);
        assert_false(agent_rig_unschedulable(r));
        free(id);
}

/* logind is told, and its answer is another one, or the machine stays up in spite of it. The request is over, the node serves
 * again, and a second request is like the first. */
TEST_CASE(test_logind_answers) {
        static const struct {
                const char *what;
                FakePowerAnswer answer;
                const char *said;
                bool stays; /* logind takes the call */
        } rows[] = {
                { "a shutdown is on its way", { "Reboot", .error = -EALREADY, .error_name = "org.freedesktop.login1.OperationInProgress" },
                  "The request to reboot this node is withdrawn: logind refused", false },
                { "no permission", { "Reboot", .error = -EACCES }, "The request to reboot this node is withdrawn: logind refused", false },
                { "no answer", { "Reboot", .late = true, .error = -ETIMEDOUT },
                  "The request to reboot this node is withdrawn: logind refused", false },
                { "no connection", { "Reboot", .unsent = -ENOTCONN }, "The request to reboot this node is withdrawn: "
                  "logind cannot be reached", false },
                { "nothing happens", { "Reboot" }, "The request to reboot this node is withdrawn: the machine was to "
                  "go down, and is still here", true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig();

                print_message("%s\n", rows[i].what);
                fake_power_set_answer(r->power, &rows[i].answer);
                for (unsigned round = 1; round <= 2; round++) {
                        _cleanup_free_ char *id = NULL;

                        strbuf_truncate(&r->lines, 0);
                        assert_int_equal(fake_power_call_unit(r->power, "RequestReboot"), 0);
                        run(r, 2 * S);
                        id = asked_id(r);
                        grant(r, id, 3000);
                        run(r, 5 * S);
                        if (rows[i].stays) {
                                assert_state(r, "Rebooting");
                                assert_int_equal(fake_power_call_unit(r->power, "CancelReboot"), 0); /* too late */
                                assert_int_equal(fake_power_call_unit(r->power, "RequestReboot"), 0); /* the same */
                                run(r, 40 * S + r->config.shutdown_max_usec);
                                assert_state(r, "Rebooting");
                        }
                        run(r, 30 * S);
                        assert_true(agent_rig_said(r, rows[i].said));
                        assert_int_equal(fake_power_n_calls(r->power, "Reboot"), round);
                        assert_given_up(r);
                        run(r, 30 * USEC_PER_MINUTE);
                        assert_int_equal(fake_power_n_calls(r->power, "Reboot"), round);
                        assert_given_up(r);
                }
        }
}

/* The pure answer: a grant counts for its id alone, and not in the last half minute of its slot. */
TEST_CASE(test_answer) {
#define LONG "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define UNTIL "\"until\":\"2027-01-15T08:30:00Z\""
        static const usec_t end = UINT64_C(1800001800) * S; /* 2027-01-15T08:30:00Z */
        static const struct {
                const char *text; /* NULL: no annotation */
                usec_t server_usec;
                RebootAnswer answer;
                usec_t until;
        } rows[] = {
                { NULL, 0, REBOOT_ANSWER_NONE, 0 },
                { "", 0, REBOOT_ANSWER_NONE, 0 },
                { "{", 0, REBOOT_ANSWER_NONE, 0 },
                { "[]", 0, REBOOT_ANSWER_NONE, 0 },
                { "{\"id\":\"a\"}", 0, REBOOT_ANSWER_NONE, 0 },
                { "{\"id\":\"a\",\"until\":7}", 0, REBOOT_ANSWER_NONE, 0 },
                { "{\"id\":\"a\",\"until\":\"soon\"}", 0, REBOOT_ANSWER_NONE, 0 },
                { "{" UNTIL "}", 0, REBOOT_ANSWER_NONE, 0 },
                { "{\"id\":\"b\"," UNTIL "}", 0, REBOOT_ANSWER_NONE, 0 },
                { "{\"id\":\"a\"," UNTIL "}", 0, REBOOT_ANSWER_GRANTED, end },
                { "{\"id\":\"a\"," UNTIL ",\"x\":\"" LONG LONG LONG LONG LONG LONG LONG LONG LONG LONG LONG "\"}", 0, REBOOT_ANSWER_NONE, 0 },
                { "{\"id\":\"a\"," UNTIL ",\"sent\":true}", end - 31 * S, REBOOT_ANSWER_GRANTED, end },
                { "{\"id\":\"a\"," UNTIL "}", end - 30 * S - 1, REBOOT_ANSWER_GRANTED, end },
                { "{\"id\":\"a\"," UNTIL "}", end - 30 * S, REBOOT_ANSWER_RUN_OUT, end },
                { "{\"id\":\"a\"," UNTIL "}", end + 30 * S, REBOOT_ANSWER_RUN_OUT, end },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                KeyValue annotation = { (char *) GRANTED, (char *) rows[i].text };
                KubeNode n = { .object.meta.annotations = { &annotation, rows[i].text ? 1 : 0 } };
                usec_t until = 1;

                print_message("%s\n", strempty(rows[i].text));
                assert_int_equal(reboot_answer(&n, "a", rows[i].server_usec, &until), rows[i].answer);
                assert_true(until == rows[i].until);
        }
}

/* A request that this agent did not write stays while it may belong to a boot that has not ended its reboot. */
TEST_CASE(test_left_over) {
        static const struct {
                const char *what, *request;
                bool ready, own_boot, stays;
        } rows[] = {
                { "of an earlier boot, and the node is Ready", "{\\\"id\\\":\\\"x\\\",\\\"bootID\\\":\\\"b0\\\"}", true, true, false },
                { "of an earlier boot, and the node is not Ready", "{\\\"id\\\":\\\"x\\\",\\\"bootID\\\":\\\"b0\\\"}", false, true, true },
                { "of an earlier boot, and the kubelet has not reported this one", "{\\\"id\\\":\\\"x\\\",\\\"bootID\\\":\\\"b0\\\"}", true, false,
                  true },
                { "of this boot", "{\\\"id\\\":\\\"x\\\",\\\"bootID\\\":\\\"OWN\\\"}", false, true, false },
                { "of no boot", "{\\\"id\\\":\\\"x\\\"}", false, true, false },
                { "no JSON", "x", false, true, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig();
                const char *own = strstr(rows[i].request, "OWN");
                _cleanup_free_ char *request = own ? strf("%.*s%s%s", (int) (own - rows[i].request), rows[i].request, r->boot_id, own + 3)
                                                   : strdup(rows[i].request);

                print_message("%s\n", rows[i].what);
                if (!rows[i].ready)
                        fake_cluster_set_kubelet(r->cluster, RIG_NODE, false);
                run(r, 2 * USEC_PER_MINUTE);
                fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'metadata':{'annotations':{'" REQUEST "':'%s'}}%s}", request,
                           rows[i].own_boot ? "" : ",'status':{'nodeInfo':{'bootID':'b0'}}");
                run(r, 5 * S);
                assert_int_equal(agent_rig_annotation(r, REQUEST) != NULL, rows[i].stays);
        }
}

/* Before its Node was seen there is nothing to ask on. */
TEST_CASE(test_too_early) {
        _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();

        fake_api_away_until(fake_cluster_api(r->cluster),
                            usec_add(virtual_time_now(r->world.time), USEC_PER_MINUTE));
        agent_rig_start(r);
        run(r, 5 * S);
        assert_int_equal(fake_power_call_unit(r->power, "RequestReboot"), -EAGAIN);
}

/* What is no answer to this request does nothing. */
TEST_CASE(test_not_granted) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig();
        char *id;

        assert_int_equal(fake_power_call_unit(r->power, "RequestReboot"), 0);
        run(r, 2 * S);
        id = asked_id(r);
        grant(r, "another", 300);
        run(r, 60 * S);
        assert_state(r, "RebootRequested");
        assert_int_equal(fake_power_phase(r->power), FAKE_POWER_UP);
        run(r, USEC_PER_HOUR); /* patience */
        assert_state(r, "Idle");
        assert_null(agent_rig_annotation(r, REQUEST));
        assert_true(agent_rig_said(r, "RebootPatienceSec="));
        grant(r, id, 300); /* too late */
        run(r, 60 * S);
        assert_int_equal(fake_power_phase(r->power), FAKE_POWER_UP);
        free(id);
}

/* An id is granted once: what has run out when it is seen, or does so in a moment, keeps no slot and no
 * person waiting. Whether it has the API server's clock says, whatever this machine's does. */
TEST_CASE(test_slot_is_over) {
        static const int off_sec[] = { 0, -70, -1800, -10 * 24 * 3600, 70, 10 * 24 * 3600 };
        static const struct {
                int left_sec;
                bool is_over;
        } rows[] = { { -1200, true }, { -1, true }, { 20, true }, { 45, false } };

        for (size_t i = 0; i < ELEMENTSOF(off_sec) * ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig();
                int off = off_sec[i / ELEMENTSOF(rows)], left = rows[i % ELEMENTSOF(rows)].left_sec;
                _cleanup_free_ char *id = NULL;

                print_message("%d s to go, by a clock that is %d s ahead\n", left, off);
                loop_virtual_step_wall(r->loop, off * (int64_t) S);
                assert_int_equal(fake_power_call_unit(r->power, "RequestReboot"), 0);
                run(r, 5 * S);
                id = asked_id(r);
                grant(r, id, left);
                run(r, 2 * S);
                assert_int_equal(fake_power_phase(r->power) == FAKE_POWER_UP,
                                 rows[i % ELEMENTSOF(rows)].is_over);
                if (!rows[i % ELEMENTSOF(rows)].is_over)
                        continue;
                assert_given_up(r);
                assert_true(agent_rig_said(r, "its slot is over (it ends at "));
        }
}

/* Number of patches that wrote a request. */
static size_t n_requests(AgentRig *r) {
        return text_count(strbuf_str(&r->patches), "\"" REQUEST "\":\"");
}

/* By the coordinator's clock, too, it waits for its patience and no other time. */
TEST_CASE(test_request_tells_the_time) {
        static const int off_sec[] = { 0, 3, -3, -7200, 7200, -10 * 365 * 24 * 3600 };

        for (size_t i = 0; i < ELEMENTSOF(off_sec); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig();
                usec_t until, expected = loop_wall(r->world.loop) + USEC_PER_HOUR;
                cJSON *request;

                print_message("%d s ahead\n", off_sec[i]);
                loop_virtual_step_wall(r->loop, off_sec[i] * (int64_t) S);
                assert_int_equal(fake_power_call_unit(r->power, "RequestReboot"), 0);
                run(r, 5 * S);
                request = request_of(r);
                assert_return_code(rfc3339_parse(fj_string(request, "until", NULL), &until), 0);
                assert_in_range(until, expected - 5 * S, expected + 5 * S);
                cJSON_Delete(request);
                run(r, 5 * USEC_PER_MINUTE);
                assert_int_equal(n_requests(r), off_sec[i] >= -10 && off_sec[i] <= 10 ? 1 : 2); /* written anew once, where it was wrong */
        }
}

/* The grant is seen, and whether it still stands nobody says: it waits, in service, and says so once. */
TEST_CASE(test_unproved) {
        static const struct {
                const char *what, *said;
                unsigned away_sec;
                int left_sec;
                bool reboots;
        } rows[] = {
                { "in time", "rebooting now", 60, 300, true },
                { "when it is over", "its slot is over", 400, 300, false },
                { "never", "did not say within RebootPatienceSec=", 4000, 86400, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig();
                _cleanup_free_ char *id = NULL;

                print_message("%s\n", rows[i].what);
                assert_int_equal(fake_power_call_unit(r->power, "RequestReboot"), 0);
                run(r, 5 * S);
                id = asked_id(r);
                r->lost = "/nodes/" RIG_NODE;
                grant(r, id, rows[i].left_sec);
                run(r, 30 * S);
                assert_asks(r);
                assert_false(agent_rig_unschedulable(r));
                assert_true(agent_rig_said(r, "does not say whether it still stands"));
                strbuf_truncate(&r->lines, 0);
                run(r, rows[i].away_sec * S);
                assert_int_equal(fake_power_phase(r->power), FAKE_POWER_UP);
                assert_false(agent_rig_said(r, "does not say whether it still stands"));
                r->lost = NULL;
                run(r, 10 * S);
                assert_true(agent_rig_said(r, rows[i].said));
                if (rows[i].reboots)
                        assert_int_not_equal(fake_power_phase(r->power), FAKE_POWER_UP);
                else
                        assert_given_up(r);
        }
}

/* Somebody between takes the time off the answers, or spoils it: nothing is proved, and nobody waits. */
TEST_CASE(test_no_date) {
        static const char *const dates[] = { "", "soon", "Mon, 99 Nov 2026 10:00:00 GMT" };

        for (size_t i = 0; i < ELEMENTSOF(dates); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig();
                _cleanup_free_ char *id = NULL;

                fake_api_set_date(fake_cluster_api(r->cluster), dates[i]);
                assert_int_equal(fake_power_call_unit(r->power, "RequestReboot"), 0);
                run(r, 5 * S);
                id = asked_id(r);
                grant(r, id, 300);
                run(r, 5 * S);
                assert_given_up(r);
                assert_true(agent_rig_said(r, "do not tell its time"));
        }
}

/* Taken back while the answer is on its way: by the coordinator (or a person), or by who asked. */
TEST_CASE(test_taken_back_meanwhile) {
        for (int by_asker = 0; by_asker < 2; by_asker++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig();
                _cleanup_free_ char *id = NULL;

                assert_int_equal(fake_power_call_unit(r->power, "RequestReboot"), 0);
                run(r, 5 * S);
                id = asked_id(r);
                r->request_delay_usec = 3 * S;
                grant(r, id, 300);
                run(r, S);
                assert_asks(r);
                if (by_asker)
                        assert_int_equal(fake_power_call_unit(r->power, "CancelReboot"), 0);
                else
                        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE,
                                   "{'metadata':{'annotations':{'" GRANTED "':null}}}");
                run(r, 20 * S);
                assert_int_equal(fake_power_phase(r->power), FAKE_POWER_UP);
                if (by_asker)
                        assert_given_up(r);
                else
                        assert_asks(r);
        }
}

TEST_CASE(test_taken_back) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig();

        assert_int_equal(fake_power_call_unit(r->power, "RequestReboot"), 0);
        run(r, 2 * S);
        assert_non_null(agent_rig_annotation(r, REQUEST));
        assert_int_equal(fake_power_call_unit(r->power, "CancelReboot"), 0);
        run(r, 5 * S);
        assert_null(agent_rig_annotation(r, REQUEST));
        assert_state(r, "Idle");
}

/* A crash ends the request: whoever waits sees it, and no grant of it counts any more. */
TEST_CASE(test_crash) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig();

        assert_int_equal(fake_power_call_unit(r->power, "RequestReboot"), 0);
        run(r, 2 * S);
        agent_rig_kill(r);
        agent_rig_start(r);
        run(r, 10 * S);
        assert_null(agent_rig_annotation(r, REQUEST));
        assert_state(r, "Idle");
}

/* Crashed while the machine goes down: the slot is in use until the node is back. */
TEST_CASE(test_crash_while_rebooting) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig();
        char *id;

        assert_int_equal(fake_power_call_unit(r->power, "RequestReboot"), 0);
        run(r, 2 * S);
        id = asked_id(r);
        grant(r, id, 300);
        free(id);
        run(r, S);
        assert_int_equal(fake_power_phase(r->power), FAKE_POWER_DELAY);
        assert_int_equal(fake_power_call_unit(r->power, "CancelReboot"), 0); /* too late */
        run(r, 2 * S);
        assert_non_null(agent_rig_annotation(r, REQUEST));
        agent_rig_kill(r);
        agent_rig_start(r);
        run(r, 20 * S);
        assert_int_equal(fake_power_phase(r->power), FAKE_POWER_OFF);
        assert_non_null(agent_rig_annotation(r, REQUEST));
}

/* A shutdown that is cancelled ends the request, too. */
TEST_CASE(test_cancelled_reboot) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig();
        char *id;

        assert_int_equal(fake_power_call_unit(r->power, "RequestReboot"), 0);
        run(r, 2 * S);
        id = asked_id(r);
        grant(r, id, 300);
        free(id);
        run(r, S);
        assert_true(fake_power_cancel(r->power));
        run(r, 10 * S);
        assert_state(r, "Idle");
        assert_null(agent_rig_annotation(r, REQUEST));
        assert_int_equal(fake_power_phase(r->power), FAKE_POWER_UP);
}

/* The API server is away when it is asked for, and somebody else removes it: it is written (again). */
TEST_CASE(test_written_again) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig();

        fake_api_away_until(fake_cluster_api(r->cluster), virtual_time_now(r->world.time) + 20 * S);
        assert_int_equal(fake_power_call_unit(r->power, "RequestReboot"), 0);
        run(r, 10 * S);
        assert_null(agent_rig_annotation(r, REQUEST));
        run(r, 60 * S);
        assert_non_null(agent_rig_annotation(r, REQUEST));
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE,
                   "{'metadata':{'annotations':{'" REQUEST "':null}}}");
        run(r, 5 * S);
        assert_non_null(agent_rig_annotation(r, REQUEST));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_for_repair),
                cmocka_unit_test(test_for_repair_taken_back_meanwhile),
                cmocka_unit_test(test_for_repair_and_by_hand),
                cmocka_unit_test(test_no_repair),
                cmocka_unit_test(test_granted),
                cmocka_unit_test(test_logind_refuses),
                cmocka_unit_test(test_logind_answers),
                cmocka_unit_test(test_answer),
                cmocka_unit_test(test_left_over),
                cmocka_unit_test(test_too_early),
                cmocka_unit_test(test_not_granted),
                cmocka_unit_test(test_taken_back),
                cmocka_unit_test(test_crash),
                cmocka_unit_test(test_written_again),
                cmocka_unit_test(test_crash_while_rebooting),
                cmocka_unit_test(test_cancelled_reboot),
                cmocka_unit_test(test_slot_is_over),
                cmocka_unit_test(test_request_tells_the_time),
                cmocka_unit_test(test_unproved),
                cmocka_unit_test(test_no_date),
                cmocka_unit_test(test_taken_back_meanwhile),
        };

        return cmocka_run_group_tests_name("reboot", tests, NULL, NULL);
}
