/* SPDX-License-Identifier: Apache-2.0 */
/* Our custom objects: the status apart from the rest, generation, and what their schemas refuse. */
#include "claim-status.h"
#include "contract-ask.h"
#include "marks.h"
#include "node-termination.h"

#define OF(kind) "'apiVersion': 'vesper.sh/v1alpha1', 'kind': '" kind "'"

TEST_CASE(status_is_apart) {
        Rig *r = *state;
        _cleanup_answer_ Answer made = { 0 }, by_status = { 0 }, by_object = { 0 };

        made = rig_create(r, RIG_COORDINATOR, CLAIM(NULL),
                          "{" OF("NodeClaim") ", 'metadata': {'name': 'status-apart'}, 'spec': {'nodePool': "
                                              "'general', "
                                              "'providerID': 'x'}, 'status': {'phase': 'Draining'}}");
        assert_answer(made, 201, NULL);
        assert_null(json_get(made.json, "status"));
        assert_int_equal(answer_int(&made, "metadata", "generation", NULL), 1);

        by_status = rig_merge(
                r, RIG_COORDINATOR, CLAIM_STATUS("status-apart"),
                "{'metadata': {'labels': {'a': 'b'}, 'finalizers': ['a.example/b']}, 'spec': {'nodePool': "
                "'other'}, 'status': {'phase': 'Draining', 'podsLeft': 3}}");
        assert_answer(by_status, 200, NULL);
        assert_string_equal(answer_string(&by_status, "status", "phase", NULL), "Draining");
        assert_string_equal(answer_string(&by_status, "spec", "nodePool", NULL), "general");
        assert_null(json_path(by_status.json, "metadata", "labels", NULL));
        assert_null(json_path(by_status.json, "metadata", "finalizers", NULL));
        assert_int_equal(answer_int(&by_status, "metadata", "generation", NULL), 1);
        assert_string_not_equal(answer_version(&by_status), answer_version(&made));

        by_object = rig_merge(
                r, RIG_COORDINATOR, CLAIM("status-apart"),
                "{'metadata': {'labels': {'a': 'b'}}, 'spec': {'nodePool': 'other'}, 'status': {'phase': "
                "'Finished'}}");
        assert_answer(by_object, 200, NULL);
        assert_string_equal(answer_string(&by_object, "status", "phase", NULL), "Draining");
        assert_string_equal(answer_string(&by_object, "spec", "nodePool", NULL), "other");
        assert_string_equal(answer_string(&by_object, "metadata", "labels", "a", NULL), "b");
        assert_int_equal(answer_int(&by_object, "metadata", "generation", NULL), 2);
}

/* It counts what the spec has been through, and nothing else. */
TEST_CASE(generation_counts_specs) {
        static const struct {
                const char *body;
                int64_t generation;
        } rows[] = {
                { "{'metadata': {'labels': {'a': 'b'}}}", 1 },
                { "{'metadata': {'finalizers': ['a.example/b']}}", 1 },
                { "{'spec': {'nodePool': 'general'}}", 1 },
                { "{'spec': {'nodePool': 'other'}}", 2 },
                { "{'spec': {'expireAfter': '720h'}}", 3 },
                { "{'spec': {'expireAfter': null}}", 4 },
                { "{'metadata': {'finalizers': null}}", 4 },
        };
        Rig *r = *state;

        rig_make_claim(r, "status-generation");
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_answer_ Answer a =
                        rig_merge(r, RIG_ADMIN, CLAIM("status-generation"), "%s", rows[i].body);

                assert_answer(a, 200, NULL);
                assert_int_equal(answer_int(&a, "metadata", "generation", NULL), rows[i].generation);
        }
}

/* Charged by a conditional patch, so that two can never both spend the last one. */
TEST_CASE(status_is_written_conditionally) {
        Rig *r = *state;
        _cleanup_answer_ Answer made = { 0 }, none = { 0 };

        made = rig_create(r, RIG_ADMIN, NDB(NULL),
                          "{" OF("NodeDisruptionBudget") ", 'metadata': {'name': 'status-charge'}, 'spec': "
                                                         "{'maxUnavailable': 1, 'selector': {'matchLabels': "
                                                         "{'a': 'b'}}}}");
        assert_answer(made, 201, NULL);
        for (unsigned i = 0; i < 2; i++) {
                _cleanup_answer_ Answer a = rig_merge(
                        r, RIG_ADMIN, NDB_STATUS("status-charge"),
                        "{'metadata': {'resourceVersion': '%s'}, 'status': "
                        "{'disruptionsAllowed': %u, 'disruptedNodes': [{'name': 'n%u', 'uid': 'u', "
                        "'time': '2026-01-01T00:00:00Z'}]}}",
                        answer_version(&made), i, i);

                assert_answer(a, i == 0 ? 200 : 409, "Conflict");
        }
        none = rig_merge(r, RIG_ADMIN, NDB_STATUS("status-nobody"), "{'status': {}}");
        assert_answer(none, 404, "NotFound");
}

/* A merge patch replaces the list of conditions whole. */
TEST_CASE(conditions_are_one_list) {
        Rig *r = *state;
        _cleanup_answer_ Answer two = { 0 }, one = { 0 }, twice = { 0 };

        rig_make_claim(r, "status-conditions");
        two = rig_merge(r, RIG_COORDINATOR, CLAIM_STATUS("status-conditions"),
                        "{'status': {'conditions': [{'type': 'Launched', 'status': 'True', 'reason': 'A', "
                        "'lastTransitionTime': '2026-01-01T00:00:00Z'}, {'type': 'Drained', 'status': "
                        "'Unknown'}]}}");
        assert_answer(two, 200, NULL);
        assert_int_equal(json_size(json_path(two.json, "status", "conditions", NULL)), 2);
        one = rig_merge(r, RIG_COORDINATOR, CLAIM_STATUS("status-conditions"),
                        "{'status': {'conditions': [{'type': 'Drained', 'status': 'True'}]}}");
        assert_answer(one, 200, NULL);
        assert_int_equal(json_size(json_path(one.json, "status", "conditions", NULL)), 1);
        twice = rig_merge(r, RIG_COORDINATOR, CLAIM_STATUS("status-conditions"),
                          "{'status': {'conditions': [{'type': 'Drained', 'status': 'True'}, {'type': "
                          "'Drained', 'status': "
                          "'False'}]}}");
        assert_answer(twice, 422, "Invalid");
}

/* What a claim says, its decoder reads. */
TEST_CASE(claim_is_read_back) {
        Rig *r = *state;
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
        _cleanup_answer_ Answer a = { 0 };
        const KubeNodeClaim *c;

        rig_make_claim(r, "status-decoded");
        a = rig_merge(
                r, RIG_COORDINATOR, CLAIM_STATUS("status-decoded"),
                "{'status': {'nodeName': 'n', 'nodeUID': 'u', 'phase': 'Draining', 'podsLeft': 2, "
                "'deadline': "
                "'2026-01-01T00:00:00Z', 'lastCloudError': 'none', 'blockers': [{'pod': 'a/b', 'reason': "
                "'BlockedByPDB', 'pdb': 'a/c', 'message': 'm', 'since': '2026-01-01T00:00:00Z'}], "
                "'conditions': "
                "[{'type': 'Drained', 'status': 'False', 'reason': 'R', 'message': 'm', "
                "'lastTransitionTime': "
                "'2026-01-01T00:00:00Z'}]}}");
        assert_answer(a, 200, NULL);
        assert_return_code(kube_object_decode(&kube_node_claim_kind, a.json,
                                              kube_client_pool(rig_client(r, RIG_ADMIN)), &o),
                           0);
        assert_null(o->invalid);
        c = CONTAINER_OF(o, KubeNodeClaim, object);
        assert_string_equal(c->node_name, "n");
        assert_string_equal(c->phase, "Draining");
        assert_int_equal(c->pods_left, 2);
        assert_int_equal(c->termination_grace_usec, 30 * USEC_PER_MINUTE);
        assert_int_equal(c->deadline_usec, UINT64_C(1767225600) * USEC_PER_SEC);
        assert_int_equal(c->n_blockers, 1);
        assert_string_equal(c->blockers[0].pdb, "a/c");
        assert_int_equal(kube_node_claim_condition(c, "Drained")->status, CONDITION_FALSE);
}

/* The claim, once this field of its status has that value (NULL: is not there). */
static Answer await_status(Rig *r, const char *name, const char *field, const char *value,
                           usec_t limit_usec) {
        Loop *loop = rig_env(r, RIG_ADMIN)->loop;
        usec_t until = usec_add(loop_now(loop), rig_limit(r, limit_usec));

        for (;;) {
                Answer a = rig_get(r, RIG_ADMIN, CLAIM(name));
                const char *seen = answer_string(&a, "status", field, NULL);

                assert_answer(a, 200, NULL);
                if (streq_ptr(seen, value))
                        return a;
                if (loop_now(loop) >= until)
                        fail_msg("%s of %s: expected %s, seen %s", field, name, value ?: "nothing",
                                 seen ?: "nothing");
                answer_done(&a);
                rig_sleep(r, USEC_PER_SEC / 10);
        }
}

/* As a view follows it. */
static void see_claim(Rig *r, const Answer *a, KubeObject **claim) {
        kube_object_unref(*claim);
        assert_return_code(kube_object_decode(&kube_node_claim_kind, a->json,
                                              kube_client_pool(rig_client(r, RIG_COORDINATOR)), claim),
                           0);
}

static const KubeNodeClaim *on_claim_now(void *userdata) {
        KubeObject **claim = userdata;

        return CONTAINER_OF(*claim, KubeNodeClaim, object);
}

/* Everything that the coordinator tells on a claim, in each phase, is what the schema takes. */
TEST_CASE(coordinator_tells_each_phase) {
        Rig *r = *state;
        _cleanup_answer_ Answer made = { 0 };
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
        _cleanup_(claim_status_freep) ClaimStatus *s = NULL;
        const DrainBlocker blocker = {
                .ns = "web",
                .name = "web-0",
                .uid = "u",
                .wait = POD_WAIT_PDB,
                .detail = "web",
                .message = "The disruption budget web needs 3 healthy pods and has 3 currently",
                .since_usec = UINT64_C(1790000000) * USEC_PER_SEC,
        };

        rig_make_claim(r, "status-told");
        made = rig_get(r, RIG_ADMIN, CLAIM("status-told"));
        see_claim(r, &made, &o);
        assert_return_code(claim_status_new(rig_client(r, RIG_COORDINATOR), (HttpGuard){ 0 }, "status-told",
                                            on_claim_now, &o, NULL, &s),
                           0);
        claim_status_set_node(s, "n", "4f0cfdc4-0000-4000-8000-000000000000");
        claim_status_set_deadline(s, UINT64_C(1790000000) * USEC_PER_SEC);
        claim_status_set_cloud_error(s, "UnauthorizedOperation");
        claim_status_set_condition(s, CLAIM_DRAINED, CONDITION_FALSE, "Draining", "1 pod is left");
        claim_status_set_blockers(s, 1, &blocker, 1);
        for (NodeTerminationState i = NODE_TERMINATION_CORDONING; i < NODE_TERMINATION_DONE; i++) {
                const char *phase = node_termination_state_to_string(i);
                _cleanup_answer_ Answer a = { 0 };

                claim_status_set_phase(s, phase);
                a = await_status(r, "status-told", "phase", phase, 3 * USEC_PER_SEC);
                see_claim(r, &a, &o);
        }
        claim_status_set_blockers(s, 0, NULL, 0);
        claim_status_set_cloud_error(s, NULL);
        answer_done(&made);
        made = await_status(r, "status-told", "lastCloudError", NULL, 3 * USEC_PER_SEC);
        assert_string_equal(answer_string(&made, "status", "deadline", NULL), "2026-09-21T14:13:20Z");
        assert_null(answer_string(&made, "status", "lastCloudError", NULL));
        assert_int_equal(json_size(json_path(made.json, "status", "blockers", NULL)), 0);
        assert_non_null(
                json_find(json_path(made.json, "status", "conditions", NULL), "type", CLAIM_DRAINED));
}

/* -- schemas -------------------------------------------------------------------------------------- */

/* Each row in a new object of its own, which goes again. */
typedef struct SchemaRow {
        const char *what, *spec;
        unsigned status;
} SchemaRow;

static void check_schema(Rig *r, KubeTarget t, const SchemaRow *rows, size_t n) {
        for (size_t i = 0; i < n; i++) {
                _cleanup_answer_ Answer made = { 0 }, gone = { 0 };

                print_message("  %s\n", rows[i].what);
                t.name = NULL;
                made = rig_create(r, RIG_ADMIN, t,
                                  "{'apiVersion': 'vesper.sh/v1alpha1', 'kind': '%s', 'metadata': {'name': "
                                  "'schema'}%s%s}",
                                  t.kind->kind, rows[i].spec ? ", 'spec': " : "", strempty(rows[i].spec));
                assert_answer(made, rows[i].status, "Invalid");
                if (made.status != 201)
                        continue;
                t.name = "schema";
                gone = rig_delete(r, RIG_ADMIN, t, NULL);
                assert_answer(gone, 200, NULL);
        }
}

TEST_CASE(schema_of_claims) {
        static const SchemaRow rows[] = {
                { "all there is",
                  "{'nodePool': 'a', 'providerID': 'b', 'terminationGracePeriod': '1h30m', 'expireAfter': "
                  "'Never', 'nodeName': 'n', 'systemUUID': 's', 'machineID': 'm'}",
                  201 },
                { "force at once", "{'nodePool': 'a', 'providerID': 'b', 'terminationGracePeriod': '0s'}",
                  201 },
                { "no spec", NULL, 422 },
                { "no pool: a person's", "{'providerID': 'b'}", 201 },
                { "an empty pool", "{'nodePool': '', 'providerID': 'b'}", 422 },
                { "no machine", "{'nodePool': 'a'}", 422 },
                { "a number for a name", "{'nodePool': 5, 'providerID': 'b'}", 422 },
                { "no duration", "{'nodePool': 'a', 'providerID': 'b', 'terminationGracePeriod': 'soon'}",
                  422 },
                { "days", "{'nodePool': 'a', 'providerID': 'b', 'terminationGracePeriod': '1d'}", 422 },
                { "a negative duration",
                  "{'nodePool': 'a', 'providerID': 'b', 'terminationGracePeriod': '-1s'}", 422 },
                { "a fraction", "{'nodePool': 'a', 'providerID': 'b', 'terminationGracePeriod': '1.5h'}",
                  422 },
                { "seconds as a number", "{'nodePool': 'a', 'providerID': 'b', 'terminationGracePeriod': 5}",
                  422 },
                { "expiry never", "{'nodePool': 'a', 'providerID': 'b', 'expireAfter': 'never'}", 422 },
                { "a machine that is asked for", "{'nodePool': 'a', 'replaces': ['b'], 'attempt': 2}", 201 },
                { "in the place of none", "{'nodePool': 'a', 'replaces': []}", 422 },
                { "no attempt at all", "{'nodePool': 'a', 'replaces': ['b'], 'attempt': 0}", 422 },
        };

        check_schema(*state, CLAIM(NULL), rows, ELEMENTSOF(rows));
}

TEST_CASE(schema_of_pools) {
        static const SchemaRow rows[] = {
                { "all there is",
                  "{'selector': {'matchLabels': {'a': 'b'}, 'matchExpressions': [{'key': 'c', 'operator': "
                  "'In', 'values': ['d']}]}, 'template': {'terminationGracePeriod': '30m'}, 'provider': "
                  "{'name': 'ec2', 'group': 'g'}, 'disruption': {'expireAfter': '720h'}, 'deletionPolicy': "
                  "'Delete'}",
                  201 },
                { "by expressions alone",
                  "{'selector': {'matchExpressions': [{'key': 'c', 'operator': 'Exists'}]}}", 201 },
                { "no spec", NULL, 422 },
                { "no selector", "{}", 422 },
                { "a selector of everything", "{'selector': {}}", 422 },
                { "of nothing said", "{'selector': {'matchLabels': {}, 'matchExpressions': []}}", 422 },
                { "an unknown operator",
                  "{'selector': {'matchExpressions': [{'key': 'c', 'operator': 'Maybe'}]}}", 422 },
                { "In nothing", "{'selector': {'matchExpressions': [{'key': 'c', 'operator': 'In'}]}}",
                  422 },
                { "Exists with values",
                  "{'selector': {'matchExpressions': [{'key': 'c', 'operator': 'Exists', 'values': "
                  "['d']}]}}",
                  422 },
                { "no key", "{'selector': {'matchExpressions': [{'operator': 'Exists'}]}}", 422 },
                { "machines by what kubelets say",
                  "{'selector': {'matchLabels': {'a': 'b'}}, 'provider': {'identity': 'ProviderID'}}", 201 },
                { "machines by hearsay",
                  "{'selector': {'matchLabels': {'a': 'b'}}, 'provider': {'identity': 'Trusted'}}", 422 },
                { "a policy of its own",
                  "{'selector': {'matchLabels': {'a': 'b'}}, 'deletionPolicy': 'Forget'}", 422 },
                { "no duration",
                  "{'selector': {'matchLabels': {'a': 'b'}}, 'template': {'terminationGracePeriod': '5'}}",
                  422 },
#define DISRUPTION(text) "{'selector': {'matchLabels': {'a': 'b'}}, 'disruption': {" text "}}"
                { "all of spec.disruption",
                  DISRUPTION("'emptyAfter': '5m', 'expireAfter': '720h', 'expireHardAfter': 'Never', 'drift': 'Auto', 'consolidation': "
                             "{'policy': 'WhenUnderutilized', 'after': '10m', 'minimumSavings': '15%', 'preferences': 'Ignore'}, "
                             "'nakedPods': 'Block', 'maxConcurrent': 1, 'onInterruption': 'Replace', 'launchTimeout': '20m', "
                             "'budgets': [{'nodes': '20%', 'reasons': ['Drifted']}, "
                             "{'nodes': 0, 'schedule': '0 8 * * 1-5', 'duration': '10h', 'timeZone': 'Europe/Berlin'}], "
                             "'windows': [{'schedule': '@daily', 'duration': '4h'}]"),
                  201 },
                { "a hard end of nothing", DISRUPTION("'expireHardAfter': '720h'"), 422 },
                { "drift at times", DISRUPTION("'drift': 'Sometimes'"), 422 },
                { "savings of more than all", DISRUPTION("'consolidation': {'minimumSavings': '101%'}"), 422 },
                { "none at a time", DISRUPTION("'maxConcurrent': 0"), 422 },
                { "a successor at times", DISRUPTION("'onInterruption': 'Sometimes'"), 422 },
                { "a launch without an end", DISRUPTION("'launchTimeout': 'Never'"), 422 },
                { "a budget of no amount", DISRUPTION("'budgets': [{'reasons': ['Empty']}]"), 422 },
                { "a budget of many", DISRUPTION("'budgets': [{'nodes': 'many'}]"), 422 },
                { "a budget below nothing", DISRUPTION("'budgets': [{'nodes': -1}]"), 422 },
                { "a budget for boredom", DISRUPTION("'budgets': [{'nodes': 1, 'reasons': ['Bored']}]"), 422 },
                { "a schedule without an end", DISRUPTION("'budgets': [{'nodes': 1, 'schedule': '@daily'}]"), 422 },
                { "a zone of no schedule", DISRUPTION("'budgets': [{'nodes': 1, 'timeZone': 'UTC'}]"), 422 },
                { "a window for ever", DISRUPTION("'windows': [{'schedule': '@daily'}]"), 422 },
#undef DISRUPTION
                { "what nodes look like, and cost",
                  "{'selector': {'matchLabels': {'a': 'b'}}, 'weight': 3, 'template': {'labels': {'a': 'b'}, 'annotations': {'c': 'd'}, "
                  "'taints': [{'key': 'gpu', 'effect': 'NoSchedule'}], 'startupTaints': [{'key': 'e', 'value': 'f', 'effect': "
                  "'NoExecute'}], 'requirements': [{'key': 'g', 'operator': 'In', 'values': ['h']}, {'key': 'i', 'operator': 'Gt', "
                  "'values': ['4']}, {'key': 'j', 'operator': 'Exists'}], "
                  "'nodeInfo': {'kubeletVersion': 'v1.34.4', 'osImage': 'Debian GNU/Linux 12'}}, 'offerings': [{'instanceType': 'm', 'zone': 'z', "
                  "'capacityType': 'spot', 'price': 0.25, 'allocatable': {'cpu': '3900m', 'pods': 110}, 'group': 'k'}], "
                  "'limits': {'cpu': '96', 'memory': '1.5Ti', 'nodes': 12}}",
                  201 },
                { "a limit below nothing", "{'selector': {'matchLabels': {'a': 'b'}}, 'limits': {'cpu': '-1'}}", 422 },
                { "a limit of many", "{'selector': {'matchLabels': {'a': 'b'}}, 'limits': {'cpu': 'many'}}", 422 },
                { "In without values",
                  "{'selector': {'matchLabels': {'a': 'b'}}, 'template': {'requirements': [{'key': 'a', 'operator': 'In'}]}}", 422 },
                { "greater than a word",
                  "{'selector': {'matchLabels': {'a': 'b'}}, 'template': {'requirements': [{'key': 'a', 'operator': 'Gt', 'values': "
                  "['x']}]}}",
                  422 },
                { "an effect of its own",
                  "{'selector': {'matchLabels': {'a': 'b'}}, 'template': {'taints': [{'key': 'a', 'effect': 'Never'}]}}", 422 },
                { "a price below nothing",
                  "{'selector': {'matchLabels': {'a': 'b'}}, 'offerings': [{'instanceType': 'm', 'price': -1}]}", 422 },
                { "an offering for nothing said",
                  "{'selector': {'matchLabels': {'a': 'b'}}, 'offerings': [{'instanceType': 'm'}]}", 422 },
        };

        check_schema(*state, POOL(NULL), rows, ELEMENTSOF(rows));
}

TEST_CASE(schema_of_budgets) {
        static const SchemaRow rows[] = {
                { "nodes", "{'minAvailable': 2, 'selector': {'matchLabels': {'a': 'b'}}}", 201 },
                { "a percentage", "{'maxUnavailable': '10%', 'selector': {}}", 201 },
                { "the whole", "{'minAvailable': '100%'}", 201 },
                { "both", "{'minAvailable': 1, 'maxUnavailable': 1}", 422 },
                { "neither", "{'selector': {}}", 422 },
                { "no spec", NULL, 422 },
                { "less than none", "{'minAvailable': -1}", 422 },
                { "more than all", "{'minAvailable': '101%'}", 422 },
                { "a number in a string", "{'minAvailable': '5'}", 422 },
                { "half a node", "{'minAvailable': 1.5}", 422 },
                { "a word", "{'minAvailable': 'most'}", 422 },
        };

        check_schema(*state, NDB(NULL), rows, ELEMENTSOF(rows));
}

/* What must be trusted cannot be changed. */
TEST_CASE(claims_are_immutable) {
        static const struct {
                const char *what, *body;
                unsigned status;
        } rows[] = {
                { "a later grace", "{'spec': {'terminationGracePeriod': '60m'}}", 422 },
                { "the same in other words", "{'spec': {'terminationGracePeriod': '1800s'}}", 422 },
                { "no grace any more", "{'spec': {'terminationGracePeriod': null}}", 422 },
                { "another machine", "{'spec': {'providerID': 'other'}}", 422 },
                { "no machine any more", "{'spec': {'providerID': null}}", 422 },
                { "in the place of another", "{'spec': {'replaces': ['other']}}", 422 },
                { "another attempt", "{'spec': {'attempt': 2}}", 422 },
                { "another node", "{'spec': {'nodeName': 'other'}}", 422 },
                { "another firmware", "{'spec': {'systemUUID': 'other'}}", 422 },
                { "another installation", "{'spec': {'machineID': 'other'}}", 422 },
                { "the same grace", "{'spec': {'terminationGracePeriod': '30m'}}", 200 },
                { "another pool", "{'spec': {'nodePool': 'other'}}", 200 },
        };
        Rig *r = *state;
        _cleanup_answer_ Answer without = { 0 }, late = { 0 };

        rig_make_claim(r, "status-immutable");
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_answer_ Answer a =
                        rig_merge(r, RIG_ADMIN, CLAIM("status-immutable"), "%s", rows[i].body);

                print_message("  %s\n", rows[i].what);
                assert_answer(a, rows[i].status, "Invalid");
        }
        without = rig_create(
                r, RIG_ADMIN, CLAIM(NULL),
                "{" OF("NodeClaim") ", 'metadata': {'name': 'status-without'}, 'spec': {'nodePool': 'a', "
                                    "'providerID': 'b'}}");
        assert_answer(without, 201, NULL);
        late = rig_merge(r, RIG_ADMIN, CLAIM("status-without"),
                         "{'spec': {'terminationGracePeriod': '1s'}}");
        assert_answer(late, 422, "Invalid");
}

/* The cloud names the machine of a claim once. */
TEST_CASE(machine_is_named_once) {
        static const struct {
                const char *what, *body;
                unsigned status;
        } rows[] = {
                { "in the place of another", "{'spec': {'replaces': ['other']}}", 422 },
                { "of none any more", "{'spec': {'replaces': null}}", 422 },
                { "another attempt", "{'spec': {'attempt': 3}}", 422 },
                { "it is named", "{'spec': {'providerID': 'b'}}", 200 },
                { "it is another", "{'spec': {'providerID': 'c'}}", 422 },
                { "it is none any more", "{'spec': {'providerID': null}}", 422 },
        };
        Rig *r = *state;
        _cleanup_answer_ Answer made = rig_create(
                r, RIG_ADMIN, CLAIM(NULL),
                "{" OF("NodeClaim") ", 'metadata': {'name': 'status-named'}, 'spec': {'nodePool': 'a', 'replaces': ['a'], 'attempt': 2}}");

        assert_answer(made, 201, NULL);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_answer_ Answer a = rig_merge(r, RIG_ADMIN, CLAIM("status-named"), "%s", rows[i].body);

                print_message("  %s\n", rows[i].what);
                assert_answer(a, rows[i].status, "Invalid");
        }
}

TEST_CASE(schema_of_the_status) {
        static const struct {
                const char *what, *status;
                unsigned expected;
        } rows[] = {
                { "a phase", "{'phase': 'WaitingForProtected'}", 200 },
                { "an unknown phase", "{'phase': 'Confused'}", 422 },
                { "no time", "{'deadline': 'tomorrow'}", 422 },
                { "words for a number", "{'podsLeft': 'many'}", 422 },
                { "a blocker without reason", "{'blockers': [{'pod': 'a/b'}]}", 422 },
                { "a condition of no status", "{'conditions': [{'type': 'Drained', 'status': 'Perhaps'}]}",
                  422 },
                { "a condition of no type", "{'conditions': [{'status': 'True'}]}", 422 },
                { "an unknown field", "{'mood': 'good'}", 200 },
        };
        Rig *r = *state;

        rig_make_claim(r, "status-schema");
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_answer_ Answer a = rig_merge(r, RIG_COORDINATOR, CLAIM_STATUS("status-schema"),
                                                      "{'status': %s}", rows[i].status);

                print_message("  %s\n", rows[i].what);
                assert_answer(a, rows[i].expected, "Invalid");
                assert_null(json_path(a.json, "status", "mood", NULL));
        }
}

/* What the schema does not know is dropped; what it presets is there. */
TEST_CASE(pruned_and_defaulted) {
        Rig *r = *state;
        _cleanup_answer_ Answer pool = { 0 }, bare = { 0 };

        pool = rig_create(
                r, RIG_ADMIN, POOL(NULL),
                "{" OF("NodePool") ", 'metadata': {'name': 'status-pruned'}, 'spec': {'selector': "
                                   "{'matchLabels': "
                                   "{'a': 'b'}}, 'invented': {'c': 1}, 'template': {'invented': 2}}}");
        assert_answer(pool, 201, NULL);
        assert_null(json_path(pool.json, "spec", "invented", NULL));
        assert_null(json_path(pool.json, "spec", "template", "invented", NULL));
        assert_non_null(json_path(pool.json, "spec", "template", NULL));
        assert_string_equal(answer_string(&pool, "spec", "deletionPolicy", NULL), "Release");

        bare = rig_create(r, RIG_ADMIN, POOL(NULL), "{'metadata': {'name': 'status-bare'}, 'spec': {}}");
        assert_answer(bare, 400, "BadRequest");
}

static const struct CMUnitTest cases[] = {
        cmocka_unit_test(status_is_apart),
        cmocka_unit_test(generation_counts_specs),
        cmocka_unit_test(status_is_written_conditionally),
        cmocka_unit_test(conditions_are_one_list),
        cmocka_unit_test(claim_is_read_back),
        cmocka_unit_test(coordinator_tells_each_phase),
        cmocka_unit_test(schema_of_claims),
        cmocka_unit_test(schema_of_pools),
        cmocka_unit_test(schema_of_budgets),
        cmocka_unit_test(claims_are_immutable),
        cmocka_unit_test(machine_is_named_once),
        cmocka_unit_test(schema_of_the_status),
        cmocka_unit_test(pruned_and_defaulted),
};
CONTRACT_SUITE(status, cases);
