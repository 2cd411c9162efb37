/* SPDX-License-Identifier: Apache-2.0 */
#include "launch-bench.h"
#include "rig-rounds.h"

/* A machine that is asked for in the place of another, until its node takes pods. */

/* -- the whole chain ------------------------------------------------------------------------------------ */

/* Each notice that replaces, of the agent and of the queue. */
TEST_CASE(test_asked) {
        static const struct {
                const char *what, *kind;
                bool queue;
        } rows[] = {
                { "spot", "spot", false },
                { "retirement", "maintenance", false },
                { "spot of the queue", "spot", true },
                { "retirement of the queue", "maintenance", true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_room_ Room r;
                _cleanup_free_ char *like = NULL;

                print_message("  %s\n", rows[i].what);
                room_make(&r);
                room_begin(&r,
                           "{" REPLACE ",'provider':{'name':'ec2','group':'workers'}}");
                fake_merge(r.rig->cluster, FAKE_NODES, NULL, "n0",
                           "{'metadata':{'labels':{'karpenter.sh/capacity-type':'spot'}}}");
                like = MUST(strf("workers|%s|" ZONE "|spot", rig_machine(r.rig, "n0")->provider_id));
                if (rows[i].queue)
                        announce(&r, rows[i].kind);
                else
                        interrupt(&r, "n0", rows[i].kind, "terminate");
                rig_run(r.rig, 30 * S);
                assert_replaced(&r);
                assert_string_equal(phase(&r, 1), "Launched");
                assert_string_equal(rig_condition(claim(&r, 1), "Launched"), "True");
                assert_string_equal(r.rig->toy.launch_text, like);
                assert_int_equal(r.rig->toy.n_launches, 1);
                assert_true(rig_has_event(r.rig, r.replaced, "SuccessorAsked"));
                /* After a notice of the queue, the Node has gone too early for an Event. */
                assert_true(rows[i].queue || rig_has_event(r.rig, "n0", "SuccessorAsked"));
                assert_string_equal(request(&r, "request"), "Launch");
                assert_string_equal(request(&r, "like"), rig_machine(r.rig, "n0")->provider_id);
                assert_string_equal(request(&r, "zone"), ZONE);
                assert_string_equal(request(&r, "capacityType"), "spot");
                assert_true(fj_array_has(fj_get(claim(&r, 1), "spec", "replaces", NULL), r.replaced));
        }
}

/* status.successor of the claim that goes, and the successor's phases until its node takes pods. */
TEST_CASE(test_chain) {
        static const char *const patches[] = {
                "{'status':{'conditions':[{'type':'Ready','status':'False'}]}}",
                "{'spec':{'taints':[" READINESS ","
                "{'key':'example.com/agent','effect':'NoExecute'}]}}",
                "{'status':{'conditions':[{'type':'Ready','status':'True'}]}}",
                "{'spec':{'taints':[" READINESS "]}}",
                "{'spec':{'taints':[{'key':'example.com/agent','effect':'NoExecute'}]}}",
                /* not the pool's */
                "{'spec':{'taints':[{'key':'example.com/agent','effect':'NoSchedule'}]}}",
        };
        _cleanup_room_ Room r;

        room_make(&r);
        room_begin(&r, "{" REPLACE ","
                       "'template':{'startupTaints':[{'key':'example.com/agent','effect':'NoExecute'}]}}");
        fake_add_pod(r.rig->cluster, &(FakePod){ .name = "web", .node = "n0", .stop_sec = 60,
                                                 .grace_sec = 100 });
        rig_run(r.rig, S);
        interrupt_and_run(&r, 10 * S);
        assert_string_equal(fj_string(rig_claim(r.rig, "n0"), "status", "successor", "claim", NULL),
                            r.names[1]);
        assert_true(cJSON_IsTrue(fj_get(rig_claim(r.rig, "n0"), "status", "successor", "made", NULL)));
        assert_string_equal(phase(&r, 1), "Launched");
        assert_int_equal(fj_int(fake_get(r.rig->cluster, FAKE_NODEPOOLS, NULL, POOL), 0, "status", "nodes",
                                NULL), 1);
        assert_int_equal(rig_n_events(r.rig, "n0", "SuccessorAsked"), 1);

        fake_cluster_set_kubelet(r.rig->cluster, "n0-1", false);
        rig_join(r.rig, "n0-1");
        for (size_t i = 0; i < ELEMENTSOF(patches); i++) {
                bool ends = i + 1 == ELEMENTSOF(patches);

                fake_merge(r.rig->cluster, FAKE_NODES, NULL, "n0-1", "%s", patches[i]);
                rig_run(r.rig, 3 * S);
                assert_string_equal(phase(&r, 1), ends ? "Adopted" : "Registered");
                assert_string_equal(rig_condition(claim(&r, 1), "Registered"), "True");
                assert_string_equal(rig_condition(claim(&r, 1), "Initialized"), ends ? "True" : "False");
                assert_int_equal(rig_n_events(r.rig, "n0-1", "SuccessorReady"), ends);
        }
        assert_true(rig_event_says(r.rig, "n0-1", "SuccessorReady", "in place of node n0"));
        assert_true(rig_event_says(r.rig, "n0", "SuccessorReady", "Node n0-1 "));
        assert_true(rig_is_adopted(r.rig, "n0-1"));
        rig_run(r.rig, 30 * M); /* launchTimeout is over */
        assert_replaced(&r);
        assert_true(rig_is_adopted(r.rig, "n0-1"));
        assert_int_equal(r.rig->toy.n_launches, 1);
        assert_string_equal(rig_condition_reason(claim(&r, 1), "Launched"), "Launched");

        /* A later notice about the new node is answered as the first one was. */
        interrupt(&r, "n0-1", "spot", "terminate");
        rig_run(r.rig, M);
        assert_null(rig_node(r.rig, "n0-1"));
        assert_int_equal(r.rig->toy.n_launched, 2);
        assert_non_null(rig_claim(r.rig, "n0-1-1"));
}

/* A machine goes, and no successor is asked for. */
TEST_CASE(test_not_asked) {
        static const struct {
                const char *what, *kind, *action, *spec;
        } rows[] = {
                { "scale-in", "scale-in", "terminate", "{" REPLACE "}" },
                { "capacity block", "capacity-block", "terminate",
                  "{" REPLACE "}" },
                { "onInterruption unset", "spot", "terminate", "{}" },
                { "onInterruption None", "spot", "terminate", "{'disruption':{'onInterruption':'None'}}" },
                { "a person deletes the claim", NULL, NULL, "{" REPLACE "}" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_room_ Room r;

                print_message("  %s\n", rows[i].what);
                room_make(&r);
                room_begin(&r, rows[i].spec);
                if (rows[i].kind)
                        interrupt(&r, "n0", rows[i].kind, rows[i].action);
                else
                        assert_true(fake_delete(r.rig->cluster, FAKE_NODECLAIMS, NULL, r.replaced, -1));
                rig_run(r.rig, M);
                assert_null(rig_node(r.rig, "n0"));
                assert_int_equal(n_claims(&r), 0);
                assert_int_equal(r.rig->toy.n_launches, 0);
        }
}

/* A repair that replaces the machine. */
TEST_CASE(test_repair) {
        _cleanup_room_ Room r;

        room_make(&r);
        fake_add_node(r.rig->cluster, BEACON, "us-east-1b", "i-beacon", NULL);
        room_begin(&r, "{" REPLACE "}");
        rig_machine(r.rig, "n0")->after = INSTANCE_GONE;
        run(r.rig, 2 * M);
        silence(r.rig, 0, 1);
        run(r.rig, 20 * M);
        assert_replaced(&r);
        assert_int_equal(r.rig->toy.n_launches, 1);
        assert_string_equal(phase(&r, 1), "Launched");
}

/* -- answers of the cloud ------------------------------------------------------------------------------- */

TEST_CASE(test_answers) {
#define MAYBE "It is not known whether the cloud launched the machine. Asking again launches no second one: the connection broke"
        static const struct {
                const char *what;
                ToyLaunchAnswer answers[3];
                size_t n_answers;
                usec_t run_usec, seen_usec;
                bool no_find;
                CloudOutcome find;
                unsigned n_launches;
                const char *event;    /* about the new claim; NULL: none */
                bool is_failing;      /* 2 s after the first request */
                const char *says;     /* the Event; NULL: none */
        } rows[] = {
                { "named", { TOY_NAMED }, 1, 5 * S, 0, false, CLOUD_OK, 1, NULL, false },
                { "accepted, and found", { TOY_ACCEPTED }, 1, 10 * S, 0, false, CLOUD_OK, 1, NULL, false },
                { "accepted, and found late", { TOY_ACCEPTED }, 1, 4 * M, 2 * M, false, CLOUD_OK, 1, NULL,
                  false },
                { "accepted, and never launched", { TOY_LOST }, 1, 7 * M, 0, false, CLOUD_OK, 2, NULL,
                  false },
                { "accepted, and no find", { TOY_ACCEPTED }, 1, 20 * S, 0, true, CLOUD_OK, 2, NULL, false },
                { "accepted, and find is unsupported", { TOY_ACCEPTED }, 1, 20 * S, 0, false, CLOUD_INVALID,
                  2, NULL, false },
                { "no answer, and launched", { TOY_UNKNOWN_DONE }, 1, 20 * S, 0, false, CLOUD_OK, 1,
                  "LaunchUnknown", true, MAYBE },
                { "no answer, launched, and no find", { TOY_UNKNOWN_DONE }, 1, 20 * S, 0, true, CLOUD_OK, 2,
                  "LaunchUnknown", true, MAYBE },
                { "no answer, and not launched", { TOY_UNKNOWN }, 1, 20 * S, 0, false, CLOUD_OK, 2,
                  "LaunchUnknown", true, MAYBE },
                { "no answer, seen late: the identical request", { TOY_UNKNOWN_DONE }, 1, M, 10 * M, false,
                  CLOUD_OK, 2, "LaunchUnknown", true, MAYBE },
                { "later, twice: pauses of 2 s and 4 s", { TOY_LATER, TOY_LATER }, 2, 6 * S, 0, false,
                  CLOUD_OK, 3, "LaunchFailed", true,
                  "The cloud did not launch the machine now. vesper asks again: throttled" },
                { "no capacity", { TOY_NO_CAPACITY }, 1, 20 * S, 0, false, CLOUD_OK, 2, "NoCapacity", true,
                  "The cloud has no capacity for the machine now. vesper asks again: no such machine is left" },
                { "refused", { TOY_REFUSED }, 1, 20 * S, 0, false, CLOUD_OK, 2, "LaunchRefused", true,
                  "The cloud refused to launch the machine. vesper asks again: not authorized" },
                { "no answer, launched, then later", { TOY_UNKNOWN_DONE, TOY_LATER, TOY_LATER }, 3, M,
                  20 * S, false, CLOUD_OK, 3, "LaunchUnknown", true, MAYBE },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_room_ Room r;

                print_message("  %s\n", rows[i].what);
                room_make(&r);
                r.rig->toy.no_find = rows[i].no_find;
                r.rig->toy.seen_after_usec = rows[i].seen_usec;
                r.rig->toy.find_outcome = rows[i].find;
                room_begin(&r, "{" REPLACE "}");
                set_answers(&r, rows[i].answers, rows[i].n_answers);
                interrupt_and_run(&r, S + 500 * MSEC);
                assert_int_equal(streq_ptr(rig_condition(claim(&r, 1), "LaunchFailing"), "True"),
                                 rows[i].is_failing);
                if (rows[i].is_failing)
                        assert_string_equal(rig_condition_reason(claim(&r, 1), "LaunchFailing"),
                                            rows[i].event);
                rig_run(r.rig, rows[i].run_usec);
                assert_string_equal(phase(&r, 1), "Launched");
                rig_run(r.rig, 20 * S); /* the old node goes */
                assert_replaced(&r);
                assert_int_equal(r.rig->toy.n_launches, rows[i].n_launches);
                assert_in_range(r.rig->toy.n_finds, 0, 10);
                assert_string_equal(strempty(rig_condition(claim(&r, 1), "LaunchFailing")), "False");
                assert_true(!rows[i].event || rig_event_says(r.rig, r.names[1], rows[i].event,
                                                             rows[i].says));
                assert_false(!rows[i].event && rig_has_event(r.rig, r.names[1], "LaunchFailed"));
        }
}

/* While find does not answer, no request follows one that may have launched a machine. */
TEST_CASE(test_find_fails) {
        _cleanup_room_ Room r;

        room_init(&r);
        set_answers(&r, (ToyLaunchAnswer[]){ TOY_UNKNOWN_DONE }, 1);
        r.rig->toy.find_outcome = CLOUD_RETRY;
        interrupt_and_run(&r, 5 * M);
        assert_int_equal(r.rig->toy.n_launches, 1);
        assert_in_range(r.rig->toy.n_finds, 4, 20);
        assert_true(rig_event_says(r.rig, r.names[1], "FindFailed",
                                   ": the cloud is in a bad mood. vesper asks again"));
        r.rig->toy.find_outcome = CLOUD_OK;
        rig_run(r.rig, 90 * S);
        assert_replaced(&r);
        assert_int_equal(r.rig->toy.n_launches, 1);
}

/* A deleted claim waits for an answer of find only if a machine may be there. */
TEST_CASE(test_deleted_and_find_fails) {
        static const struct {
                ToyLaunchAnswer answer;
                bool stays;
        } rows[] = {
                { TOY_NO_CAPACITY, false },
                { TOY_UNKNOWN, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_room_ Room r;

                room_init(&r);
                set_answers(&r, &rows[i].answer, 1);
                r.rig->toy.find_outcome = CLOUD_RETRY;
                interrupt_and_run(&r, 1500 * MSEC);
                assert_int_equal(r.rig->toy.n_launches, 1);
                delete_claim(&r, 1);
                rig_run(r.rig, 15 * M);
                assert_int_equal(claim(&r, 1) != NULL, rows[i].stays);
                assert_int_equal(rig_has_event(r.rig, r.names[1], "FindFailed"), rows[i].stays);
                r.rig->toy.find_outcome = CLOUD_OK;
                rig_run(r.rig, 2 * M);
                assert_null(claim(&r, 1));
                assert_int_equal(r.rig->toy.n_launches, 1);
        }
}

/* The cloud names a machine that was there before the request. */
TEST_CASE(test_misnamed) {
#define UNJOINED "aws:///" ZONE "/i-unjoined"
        static const struct {
                const char *what, *provider_id;
                ToyLaunchAnswer answer;
                bool is_deleted; /* a person deletes the claim, and the cloud goes on */
        } rows[] = {
                { "machine of a claim without a Node", UNJOINED, TOY_LOST, false },
                { "machine of a Node without a claim", "aws:///us-east-1b/i-beacon", TOY_LOST, false },
                { "by find alone", UNJOINED, TOY_UNKNOWN, false },
                { "for ever", UNJOINED, TOY_LOST, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                ToyMachine *unjoined;
                _cleanup_room_ Room r;

                print_message("  %s\n", rows[i].what);
                room_make(&r);
                fake_add_node(r.rig->cluster, BEACON, "us-east-1b", "i-beacon", NULL);
                room_begin(&r, "{" REPLACE "}");
                unjoined = rig_add_machine(r.rig, UNJOINED, "unjoined");
                fake_put(r.rig->cluster, FAKE_NODECLAIMS,
                         fj_parse("{'metadata':{'name':'other'},"
                                  "'spec':{'nodePool':'" POOL "','providerID':'" UNJOINED "'}}"));
                rig_run(r.rig, 2 * M);
                r.rig->toy.misnamed = rows[i].provider_id;
                set_answers(&r, &rows[i].answer, 1);
                interrupt_and_run(&r, 10 * S);
                assert_null(fj_string(claim(&r, 1), "spec", "providerID", NULL));
                assert_true(rig_event_says(r.rig, r.names[1], "LaunchRefused", rows[i].provider_id));
                if (rows[i].is_deleted) {
                        delete_claim(&r, 1);
                        rig_run(r.rig, 15 * M);
                        assert_null(claim(&r, 1));
                        assert_int_equal(unjoined->state, INSTANCE_PRESENT);
                        continue;
                }
                r.rig->toy.misnamed = NULL;
                rig_run(r.rig, 2 * M);
                assert_string_equal(phase(&r, 1), "Launched");
                assert_int_equal(r.rig->toy.n_launched, 1);
                assert_ptr_equal(rig_claim(r.rig, "n0-1"), claim(&r, 1));
        }
}

/* The launch waits in line for its place at the provider, and its pool changes meanwhile. */
TEST_CASE(test_changed_in_line) {
        static const char *const specs[] = {
                "{'disruption':{'onInterruption':'None'}}",
                "{'limits':{'nodes':'0'}}",
        };

        for (size_t i = 0; i < ELEMENTSOF(specs); i++) {
                _cleanup_room_ Room r;
                unsigned n_turns;

                print_message("  %s\n", specs[i]);
                room_init(&r);
                r.rig->toy.turn_usec = 20 * S;
                n_turns = r.rig->toy.n_turns;
                interrupt_and_run(&r, 5 * S);
                assert_string_equal(phase(&r, 1), "Launching");
                assert_int_equal(r.rig->toy.n_turns, n_turns + 1);
                assert_string_equal(request(&r, "token"), "");
                set_pool(&r, specs[i]);
                rig_run(r.rig, 5 * M);
                assert_int_equal(r.rig->toy.n_launches, 0);
                assert_null(rig_node(r.rig, "n0"));
        }
}

/* The claim is deleted while the answer to its request is under way: that answer names a machine. */
TEST_CASE(test_slow_cloud) {
        _cleanup_room_ Room r;

        room_init(&r);
        r.rig->toy.latency_usec = 20 * S;
        interrupt_and_run(&r, 5 * S);
        assert_string_equal(phase(&r, 1), "Launching");
        assert_string_not_equal(request(&r, "token"), "");
        delete_claim(&r, 1);
        rig_run(r.rig, 5 * S);
        assert_non_null(claim(&r, 1));
        assert_int_equal(r.rig->toy.n_launched, 0);
        rig_run(r.rig, 15 * S);
        assert_int_equal(r.rig->toy.n_launched, 1);
        r.rig->toy.latency_usec = 5 * MSEC;
        rig_run(r.rig, 4 * M);
        assert_true(has_ended(&r, "n0-1"));
        assert_int_equal(n_claims(&r), 0);
}

/* The cloud never has one, or nobody wants it any more: given up, and nothing is left over. */
TEST_CASE(test_given_up) {
        static const struct {
                const char *what;
                ToyLaunchAnswer answer;
                usec_t gone_usec; /* after the notice: the claim is gone, within a minute and a half */
                const char *says; /* the Event */
                bool unwanted;    /* the NodePool is changed to onInterruption: None then */
        } rows[] = {
                { "unsupported", TOY_UNSUPPORTED, 0, "The provider cannot launch machines: no launch here",
                  false },
                { "no capacity", TOY_NO_CAPACITY, 15 * M, "The cloud named no machine within 15 minutes, and vesper asks for it no more: ",
                  false },
                { "no answer: a machine may come for ten minutes more", TOY_UNKNOWN, 24 * M,
                  "vesper looks for it for 10 minutes, and ends it", false },
                { "nobody wants it any more", TOY_NO_CAPACITY, 2 * M,
                  "vesper does not ask for the machine any more", true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_room_ Room r;

                print_message("  %s\n", rows[i].what);
                room_init(&r);
                interrupt(&r, "n0", "spot", "terminate");
                for (usec_t ran = 0; ran < rows[i].gone_usec; ran += 5 * S) {
                        set_answers(&r, (ToyLaunchAnswer[]){ rows[i].answer, rows[i].answer }, 2);
                        rig_run(r.rig, 5 * S);
                        assert_non_null(claim(&r, 1));
                }
                set_answers(&r, (ToyLaunchAnswer[]){ rows[i].answer, rows[i].answer }, 2);
                if (rows[i].unwanted)
                        fake_merge(r.rig->cluster, FAKE_NODEPOOLS, NULL, POOL,
                                   "{'spec':{'disruption':{'onInterruption':'None'}}}");
                rig_run(r.rig, 150 * S);
                assert_true(rig_event_says(r.rig, r.names[1], "LaunchGivenUp", rows[i].says));
                assert_int_equal(n_claims(&r), 0);
                assert_int_equal(r.rig->toy.n_launched, 0);
        }
}

/* -- others --------------------------------------------------------------------------------------------- */

/* The Node is there before the cloud has named its machine: no other claim adopts it. */
TEST_CASE(test_joins_early) {
        _cleanup_room_ Room r;

        room_init(&r);
        r.rig->toy.seen_after_usec = M;
        set_answers(&r, (ToyLaunchAnswer[]){ TOY_ACCEPTED }, 1);
        interrupt_and_run(&r, 10 * S);
        rig_join(r.rig, "n0-1");
        rig_run(r.rig, 30 * S);
        assert_null(rig_claim(r.rig, "n0-1"));
        rig_run(r.rig, 2 * M);
        assert_replaced(&r);
        assert_true(rig_is_adopted(r.rig, "n0-1"));
        assert_string_equal(rig_condition(claim(&r, 1), "Launched"), "True");
        assert_true(rig_event_says(r.rig, "n0-1", "SuccessorReady", r.replaced));
}

/* Patches of claims whose body has this text. */
typedef struct RecordFault {
        const char *text;
        unsigned n_faults; /* so many of them are answered with 409 */
        unsigned n;
} RecordFault;

static void on_record(const FakeRequest *q, FakeApiFault *ret_fault, void *userdata) {
        RecordFault *f = userdata;

        if (q->verb != FAKE_PATCH || !q->resource || q->resource->id != FAKE_NODECLAIMS || !q->x->body ||
            !memmem(q->x->body, q->x->body_size, f->text, strlen(f->text)))
                return;
        if (f->n++ < f->n_faults)
                ret_fault->status = 409;
}

/* The Node is adopted before the claim says that its machine is launched. */
TEST_CASE(test_adopted_first) {
        RecordFault f = { .text = "\"phase\":\"Launched\"", .n_faults = 1 };
        _cleanup_room_ Room r;

        room_init(&r);
        r.rig->toy.seen_after_usec = M;
        set_answers(&r, (ToyLaunchAnswer[]){ TOY_ACCEPTED }, 1);
        interrupt_and_run(&r, 10 * S);
        rig_join(r.rig, "n0-1");
        fake_api_set_fault(r.rig->api, on_record, &f);
        rig_run(r.rig, 3 * M);
        assert_int_equal(f.n, 1);
        assert_string_equal(phase(&r, 1), "Adopted");
        assert_string_equal(rig_condition(claim(&r, 1), "Launched"), "True");
        assert_string_equal(rig_condition(claim(&r, 1), "LaunchFailing"), "False");
        fake_api_set_fault(r.rig->api, NULL, NULL);
}

/* Nothing leaves unless the request is in the claim. */
TEST_CASE(test_record_conflict) {
        RecordFault f = { .text = "\"token\"", .n_faults = UINT32_MAX };
        _cleanup_room_ Room r;

        room_init(&r);
        fake_api_set_fault(r.rig->api, on_record, &f);
        interrupt_and_run(&r, 2 * M);
        assert_int_equal(r.rig->toy.n_launches, 0);
        assert_in_range(f.n, 4, 12); /* with growing pauses */
        f.n_faults = 0;
        rig_run(r.rig, 2 * M);
        assert_replaced(&r);
        assert_int_equal(r.rig->toy.n_launches, 1);
        fake_api_set_fault(r.rig->api, NULL, NULL);
}

/* -- another leader ------------------------------------------------------------------------------------- */

/* The coordinator dies after so many steps of the world. next: the first machine was launched, and a person
 * deletes its claim. Returns false once that is after the end of the chain. */
static bool take_over(ToyLaunchAnswer answer, bool next, unsigned n_steps) {
        int attempt = next ? 2 : 1;
        _cleanup_room_ Room r;
        bool ended = false;
        usec_t until;

        room_init(&r);
        if (next)
                interrupt_and_run(&r, 30 * S);
        set_answers(&r, &answer, 1);
        if (next)
                delete_claim(&r, 1);
        else
                interrupt(&r, "n0", "spot", "terminate");
        until = virtual_time_now(r.rig->w.time) + USEC_PER_HOUR;
        for (unsigned i = 0; i < n_steps && !ended; i++) {
                assert_int_equal(virtual_time_step(r.rig->w.time, until), 1);
                ended = streq(phase(&r, attempt), "Launched");
        }
        rig_kill(r.rig, 0);
        rig_start(r.rig, 0);
        rig_run(r.rig, next ? 5 * M : M);
        if (!streq(phase(&r, attempt), "Launched") || r.rig->toy.n_launched != (unsigned) attempt ||
            n_claims(&r) != 1)
                fail_msg("after %u steps: '%s', %u machines, %zu claims", n_steps, phase(&r, attempt),
                         r.rig->toy.n_launched, n_claims(&r));
        assert_true(!next || has_ended(&r, "n0-1"));
        return !ended;
}

TEST_CASE(test_leaders) {
        static const struct {
                ToyLaunchAnswer answer;
                bool next;
                unsigned stride; /* of the steps, so that the test is fast */
        } rows[] = {
                { TOY_NAMED, false, 3 },
                { TOY_ACCEPTED, false, 3 },
                { TOY_UNKNOWN_DONE, false, 1 },
                { TOY_UNKNOWN_DONE, true, 11 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                unsigned n = 0;

                while (take_over(rows[i].answer, rows[i].next, n))
                        n += rows[i].stride;
                print_message("  %u steps\n", n);
                assert_true(n > 20);
        }
}

/* The pool has another provider when the next leader starts. That leader asks the provider of the request. */
TEST_CASE(test_other_provider) {
        for (ToyOther other = TOY_ALONE; other < _TOY_OTHER_MAX; other++) {
                _cleanup_room_ Room r;

                print_message("  other provider: %u\n", other);
                room_make(&r);
                r.rig->toy.other = other;
                room_begin(&r, "{" REPLACE ",'provider':{'name':'ec2'}}");
                r.rig->toy.seen_after_usec = 3 * M;
                set_answers(&r, (ToyLaunchAnswer[]){ TOY_ACCEPTED }, 1);
                interrupt_and_run(&r, 30 * S);
                assert_null(rig_node(r.rig, "n0"));
                rig_kill(r.rig, 0);
                set_pool(&r, "{'provider':{'name':'exec'}}");
                rig_start(r.rig, 0);
                rig_run(r.rig, 4 * M);
                assert_replaced(&r);
                assert_string_equal(phase(&r, 1), "Launched");
                assert_int_equal(r.rig->toy.n_launches, 1);
                assert_int_equal(r.rig->toy.n_other, 0);
        }
}

/* No provider can be asked for a machine that may be there: its claim waits for one. */
TEST_CASE(test_no_provider) {
        _cleanup_room_ Room r;

        room_init(&r);
        set_answers(&r, (ToyLaunchAnswer[]){ TOY_UNKNOWN }, 1);
        interrupt_and_run(&r, 1500 * MSEC);
        rig_kill(r.rig, 0);
        delete_claim(&r, 1);
        r.rig->toy.launches = false;
        rig_start(r.rig, 0);
        rig_run(r.rig, 15 * M);
        assert_non_null(claim(&r, 1));
        assert_true(rig_event_says(r.rig, r.names[1], "FindFailed", request(&r, "token")));
        rig_kill(r.rig, 0);
        r.rig->toy.launches = true;
        rig_start(r.rig, 0);
        rig_run(r.rig, M);
        assert_null(claim(&r, 1));
        assert_true(rig_has_event(r.rig, r.names[1], "NothingLaunched"));
}

/* The provider has no operation find: the claim ends, and an Event asks a person to look for the machine. */
TEST_CASE(test_unknown_and_no_find) {
        _cleanup_room_ Room r;

        room_make(&r);
        r.rig->toy.no_find = true;
        room_begin(&r, "{" REPLACE "}");
        set_answers(&r, (ToyLaunchAnswer[]){ TOY_UNKNOWN }, 1);
        interrupt_and_run(&r, 1500 * MSEC);
        delete_claim(&r, 1);
        rig_run(r.rig, 9 * M);
        assert_non_null(claim(&r, 1));
        rig_run(r.rig, 2 * M);
        assert_null(claim(&r, 1));
        assert_true(rig_has_event(r.rig, r.names[1], "MachineUnknown"));
        assert_false(rig_has_event(r.rig, r.names[1], "NothingLaunched"));
}

/* The leader that gives up sent no request: its Event has the answer to the leader before. */
TEST_CASE(test_words_stay) {
        _cleanup_room_ Room r;

        room_init(&r);
        set_answers(&r, (ToyLaunchAnswer[]){ TOY_NO_CAPACITY }, 1);
        interrupt_and_run(&r, 1500 * MSEC);
        rig_kill(r.rig, 0);
        rig_run(r.rig, 20 * M);
        rig_start(r.rig, 0);
        rig_run(r.rig, M);
        assert_true(rig_event_says(r.rig, r.names[1], "LaunchGivenUp",
                                   "asks for it no more: no such machine is left"));
        assert_int_equal(r.rig->toy.n_launches, 1);
}

/* A request whose machine never shows does not hold other Nodes of the pool for ever. */
TEST_CASE(test_unknown_and_new_node) {
        _cleanup_room_ Room r;

        room_init(&r);
        set_answers(&r, (ToyLaunchAnswer[]){ TOY_UNKNOWN }, 1);
        r.rig->toy.find_outcome = CLOUD_RETRY;
        interrupt_and_run(&r, 10 * M);
        rig_add_node(r.rig, "new");
        rig_run(r.rig, M);
        assert_false(rig_is_adopted(r.rig, "new"));
        rig_run(r.rig, 5 * M);
        assert_true(rig_is_adopted(r.rig, "new"));
        assert_non_null(claim(&r, 1));
}

/* The NodePool cannot be read for a while: its launch goes on. */
TEST_CASE(test_invalid_pool) {
        _cleanup_room_ Room r;

        room_init(&r);
        set_answers(&r, (ToyLaunchAnswer[]){ TOY_NO_CAPACITY, TOY_NO_CAPACITY }, 2);
        interrupt_and_run(&r, 1500 * MSEC);
        set_pool(&r, "{'disruption':{'onInterruption':7}}");
        rig_run(r.rig, M);
        assert_false(rig_has_event(r.rig, r.names[1], "LaunchGivenUp"));
        set_pool(&r, "{" REPLACE "}");
        rig_run(r.rig, M);
        assert_replaced(&r);
}

/* The cloud names the machine of another claim that vesper has asked for a moment before. */
TEST_CASE(test_misnamed_new) {
        _cleanup_free_ char *name = NULL, *misnamed = NULL;
        const cJSON *c;
        _cleanup_room_ Room r;

        room_make(&r);
        room_begin(&r, "{" REPLACE "}");
        rig_add_node(r.rig, "n1");
        rig_run(r.rig, 5 * S);
        name = MUST(successor_claim_name(fj_string(rig_claim(r.rig, "n1"), "metadata", "name", NULL), 1));
        interrupt_and_run(&r, 2 * S);
        assert_string_equal(phase(&r, 1), "Launched");
        misnamed = MUST(strdup(rig_machine(r.rig, "n0-1")->provider_id));
        r.rig->toy.misnamed = misnamed;
        interrupt(&r, "n1", "spot", "terminate");
        rig_run(r.rig, 20 * S);
        c = fake_get(r.rig->cluster, FAKE_NODECLAIMS, NULL, name);
        assert_true(c && !fj_string(c, "spec", "providerID", NULL));
        assert_true(rig_event_says(r.rig, name, "LaunchRefused", misnamed));
        r.rig->toy.misnamed = NULL;
        rig_run(r.rig, 2 * M);
        assert_ptr_equal(rig_claim(r.rig, "n1-1"), fake_get(r.rig->cluster, FAKE_NODECLAIMS, NULL, name));
}

/* Nobody leads for longer than launchTimeout, and the new node takes pods meanwhile. */
TEST_CASE(test_no_leader) {
        _cleanup_room_ Room r;

        room_init_launched(&r);
        rig_kill(r.rig, 0);
        rig_join(r.rig, "n0-1");
        rig_run(r.rig, 20 * M);
        rig_start(r.rig, 0);
        rig_run(r.rig, 5 * M);
        assert_replaced(&r);
        assert_true(rig_is_adopted(r.rig, "n0-1"));
        assert_string_equal(phase(&r, 1), "Adopted");
        assert_int_equal(r.rig->toy.n_launches, 1);
        assert_false(rig_has_event(r.rig, r.names[1], "LaunchTimeout"));
}

/* -- nothing left over ---------------------------------------------------------------------------------- */

static void play_interruption(CoordinatorRig *r, const char *node) {
        Room room = { .rig = r };
        _cleanup_free_ char *successor = strf("%s-1", node);

        set_answers(&room, (ToyLaunchAnswer[]){ TOY_NO_CAPACITY, TOY_ACCEPTED }, 2);
        interrupt(&room, node, "spot", "terminate");
        rig_run(r, M);
        rig_join(r, successor);
        rig_run(r, M);
        assert_true(rig_is_adopted(r, successor));
        assert_null(rig_node(r, node));
}

TEST_CASE(test_rounds) {
        static const char *const nodes[] = { "node-a", "node-b", "node-c" };
        RigRounds rounds = { .play = play_interruption, .nodes = { nodes[0], nodes[1], nodes[2] } };
        _cleanup_room_ Room r;

        room_init(&r);
        for (size_t i = 0; i < ELEMENTSOF(nodes); i++)
                rig_add_node(r.rig, nodes[i]);
        rig_run(r.rig, M);
        rig_rounds(r.rig, &rounds);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_asked), cmocka_unit_test(test_chain),
                cmocka_unit_test(test_not_asked), cmocka_unit_test(test_repair),
                cmocka_unit_test(test_answers), cmocka_unit_test(test_find_fails),
                cmocka_unit_test(test_deleted_and_find_fails),
                cmocka_unit_test(test_misnamed), cmocka_unit_test(test_changed_in_line),
                cmocka_unit_test(test_misnamed_new), cmocka_unit_test(test_other_provider),
                cmocka_unit_test(test_no_provider), cmocka_unit_test(test_unknown_and_no_find),
                cmocka_unit_test(test_words_stay), cmocka_unit_test(test_unknown_and_new_node),
                cmocka_unit_test(test_invalid_pool), cmocka_unit_test(test_no_leader),
                cmocka_unit_test(test_slow_cloud), cmocka_unit_test(test_given_up),
                cmocka_unit_test(test_joins_early), cmocka_unit_test(test_adopted_first),
                cmocka_unit_test(test_record_conflict),
                cmocka_unit_test(test_leaders), cmocka_unit_test(test_rounds),
        };

        return cmocka_run_group_tests_name("launches", tests, NULL, NULL);
}
