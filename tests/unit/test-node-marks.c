/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "marks.h"
#include "node-marks.h"
#include "string-util.h"

#define NOW (UINT64_C(1800000000) * USEC_PER_SEC)
#define BOOT "0123456789abcdef0123456789abcdef"

/* One Node, from JSON with ' for ". */
typedef struct Fixture {
        InternPool *pool;
        KubeObject *object;
} Fixture;

static KubeNode *decode(Fixture *f, const char *text) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_free_ char *json = strdup(text);

        for (char *c = json; *c; c++)
                if (*c == '\'')
                        *c = '"';
        assert_return_code(intern_pool_new(&f->pool), 0);
        assert_return_code(json_parse(json, strlen(json), 65536, &doc, NULL), 0);
        assert_return_code(kube_object_decode(&kube_node_kind, json_root(doc), f->pool, &f->object), 0);
        return (KubeNode *) f->object;
}

static void fixture_done(Fixture *f) {
        kube_object_unref(f->object);
        intern_pool_free(f->pool);
}
#define _cleanup_fixture_ _cleanup_(fixture_done)

static void assert_json(char *found, const char *expected) {
        _cleanup_free_ char *text = strdup(expected), *have = found;

        assert_non_null(have);
        for (char *c = text; *c; c++)
                if (*c == '\'')
                        *c = '"';
        assert_string_equal(have, text);
}

#define META "'kind':'Node','apiVersion':'v1','metadata':{'name':'n1','uid':'u1','resourceVersion':'7'"
#define MARK "'vesper.sh/cordoned-by-agent':'{}'"
#define THEIRS "'vesper.sh/cordoned-by-coordinator':'{}'"
#define PERSONS "'vesper.sh/cordoned-by-vesperctl':'{}'"
#define INTERRUPTION "'vesper.sh/interruption':'x'"
#define LABEL "'labels':{'node.kubernetes.io/exclude-from-external-load-balancers':'vesper'}"
#define FOREIGN_LABEL "'labels':{'node.kubernetes.io/exclude-from-external-load-balancers':''}"

TEST_CASE(test_mark) {
        static const struct {
                const char *what, *node, *patch;
                bool claimed;
        } rows[] = {
                { "an open node", "{" META "}}",
                  "{'metadata':{'resourceVersion':'7','annotations':{'vesper.sh/"
                  "interruption':'x','vesper.sh/cordoned-by-agent':"
                  "'{\\'bootID\\':\\'" BOOT "\\',\\'why\\':\\'spot\\'}'},'labels':{"
                  "'node.kubernetes.io/"
                  "exclude-from-external-load-balancers':'vesper'}},'spec':{'unschedulable':true}}",
                  true },
                { "a stranger has cordoned", "{" META "},'spec':{'unschedulable':true}}",
                  "{'metadata':{'resourceVersion':'7','annotations':{'vesper.sh/"
                  "interruption':'x'},'labels':{"
                  "'node.kubernetes.io/exclude-from-external-load-balancers':'vesper'}}}",
                  false },
                { "the coordinator has cordoned, and somebody labelled",
                  "{" META ",'annotations':{" THEIRS "}," FOREIGN_LABEL "},'spec':{'unschedulable':true}}",
                  "{'metadata':{'resourceVersion':'7','annotations':{'vesper.sh/"
                  "interruption':'x','vesper.sh/cordoned-by-agent':"
                  "'{\\'bootID\\':\\'" BOOT "\\',\\'why\\':\\'spot\\'}'}},'spec':{'unschedulable':true}}",
                  true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_fixture_ Fixture f = { 0 };
                bool claimed = !rows[i].claimed;

                print_message("%s\n", rows[i].what);
                assert_json(node_patch_mark(decode(&f, rows[i].node), "x", BOOT, "spot", &claimed),
                            rows[i].patch);
                assert_int_equal(claimed, rows[i].claimed);
        }
}

TEST_CASE(test_undo) {
        static const struct {
                const char *what, *node, *patch; /* NULL: nothing to take off */
                bool uncordons;
        } rows[] = {
                { "nothing of ours", "{" META "},'spec':{'unschedulable':true}}", NULL, false },
                { "all of it",
                  "{" META ",'annotations':{" MARK "," INTERRUPTION "}," LABEL
                  "},'spec':{'unschedulable':true}}",
                  "{'metadata':{'resourceVersion':'7','annotations':{'vesper.sh/"
                  "interruption':null,'vesper.sh/cordoned-by-agent':null},"
                  "'labels':{'node.kubernetes.io/"
                  "exclude-from-external-load-balancers':null}},'spec':{'unschedulable':null}}",
                  true },
                { "a person un-cordoned", "{" META ",'annotations':{" MARK "," INTERRUPTION "}}}",
                  "{'metadata':{'resourceVersion':'7','annotations':{'vesper.sh/"
                  "interruption':null,'vesper.sh/cordoned-by-agent':null}}}",
                  false },
                { "a stranger's cordon and label",
                  "{" META ",'annotations':{" INTERRUPTION "}," FOREIGN_LABEL
                  "},'spec':{'unschedulable':true}}",
                  "{'metadata':{'resourceVersion':'7','annotations':{'vesper.sh/interruption':null}}}",
                  false },
                { "the coordinator's cordon stays, and what goes with it",
                  "{" META ",'annotations':{" MARK "," THEIRS "}," LABEL "},'spec':{'unschedulable':true}}",
                  "{'metadata':{'resourceVersion':'7','annotations':{'vesper.sh/cordoned-by-agent':null}}}",
                  false },
                { "vesperctl's cordon stays, our label goes",
                  "{" META ",'annotations':{" MARK "," PERSONS "}," LABEL "},'spec':{'unschedulable':true}}",
                  "{'metadata':{'resourceVersion':'7','annotations':{'vesper.sh/cordoned-by-agent':null},"
                  "'labels':{'node.kubernetes.io/exclude-from-external-load-balancers':null}}}",
                  false },
                { "a node that is being deleted stays closed",
                  "{" META ",'deletionTimestamp':'2027-01-15T08:00:00Z','annotations':{" MARK
                  "," INTERRUPTION "}," LABEL "},"
                  "'spec':{'unschedulable':true}}",
                  "{'metadata':{'resourceVersion':'7','annotations':{'vesper.sh/interruption':null}}}",
                  false },
                { "and then there is nothing more to take off",
                  "{" META ",'deletionTimestamp':'2027-01-15T08:00:00Z','annotations':{" MARK "}," LABEL "},"
                  "'spec':{'unschedulable':true}}",
                  NULL, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_fixture_ Fixture f = { 0 };
                char *patch = NULL;
                bool uncordons = false;

                print_message("%s\n", rows[i].what);
                assert_int_equal(node_patch_undo(decode(&f, rows[i].node), &patch, &uncordons),
                                 rows[i].patch ? 1 : 0);
                if (rows[i].patch)
                        assert_json(patch, rows[i].patch);
                assert_int_equal(uncordons, rows[i].uncordons);
        }
}

#define CAUSED(type, status, reason, message) \
        "{'type':'" type "','status':'" status "','reason':'" reason "','message':'" message "'}"
#define OWN(type, status) \
        "{'type':'" type "','status':'" status \
        "','reason':'VesperAgent','lastTransitionTime':'2027-01-15T07:00:00Z'}"

TEST_CASE(test_conditions) {
        static const struct {
                const char *what, *conditions;
                DrainConditions have;
        } rows[] = {
                { "none", "{'type':'Ready','status':'True','reason':'KubeletReady'}", NODE_CONDITIONS_NONE },
                { "draining", OWN("DrainInProgress", "True"), NODE_CONDITIONS_DRAINING },
                { "drained", OWN("DrainInProgress", "False") "," OWN("Drained", "True"),
                  NODE_CONDITIONS_DRAINED },
                { "planned", CAUSED("MaintenancePlanned", "True", "NodeShutdown", "vesper-agent waits"), NODE_CONDITIONS_PLANNED },
                { "a word that was left behind", CAUSED("MaintenanceInProgress", "True", "AdminRequested", "vesper-agent moves"),
                  NODE_CONDITIONS_PLANNED },
                { "another's plan", CAUSED("MaintenancePlanned", "True", "AdminRequested", "theirs"), NODE_CONDITIONS_NONE },
                { "the coordinator's removal",
                  CAUSED("MaintenanceInProgress", "True", "AdminRequested", "vesper-coordinator removes this node"),
                  NODE_CONDITIONS_NONE },
                { "another's drain", "{'type':'Drained','status':'True','reason':'Other'}",
                  NODE_CONDITIONS_NONE },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_fixture_ Fixture f = { 0 };
                _cleanup_free_ char *node =
                        strf("{" META "},'status':{'conditions':[%s]}}", rows[i].conditions);

                print_message("%s\n", rows[i].what);
                assert_int_equal(node_conditions(decode(&f, node)), rows[i].have);
        }
}

TEST_CASE(test_conditions_patch) {
        _cleanup_fixture_ Fixture f = { 0 }, g = { 0 };
        KubeNode *n = decode(&f, "{" META "},'status':{'conditions':[" OWN("DrainInProgress", "True") "]}}");
        KubeNode *other = decode(
                &g,
                "{" META "},'status':{'conditions':[{'type':'Drained','status':'True','reason':'Other'}]}}");

        /* The same status: it holds since it began. */
        assert_json(node_patch_conditions(n, NODE_CONDITIONS_DRAINING, NOTICE_SPOT, "m", NOW),
                    "{'metadata':{'resourceVersion':'7'},'status':{'conditions':[{'type':'DrainInProgress','"
                    "status':'True',"
                    "'reason':'VesperAgent','message':'m','lastHeartbeatTime':'2027-01-15T08:00:00Z',"
                    "'lastTransitionTime':'2027-01-15T07:00:00Z'},"
                    "{'type':'MaintenanceInProgress','status':'True','reason':'VesperAgent','message':'m','lastHeartbeatTime':'2027-01-15T08:00:00Z',"
                    "'lastTransitionTime':'2027-01-15T08:00:00Z'}]}}");
        assert_json(node_patch_conditions(n, NODE_CONDITIONS_NONE, NOTICE_SPOT, NULL, NOW),
                    "{'metadata':{'resourceVersion':'7'},'status':{'conditions':[{'type':'DrainInProgress','"
                    "$patch':'delete'}]}}");
        /* Another's is never taken off. */
        assert_json(node_patch_conditions(other, NODE_CONDITIONS_NONE, NOTICE_SPOT, NULL, NOW),
                    "{'metadata':{'resourceVersion':'7'},'status':{'conditions':[]}}");
}

/* What is planned, and what of it becomes of a shutdown: by cause, and never over another's word that is True. */
TEST_CASE(test_conditions_of_maintenance) {
#define STANDS ",'lastHeartbeatTime':'2027-01-15T08:00:00Z','lastTransitionTime':'2027-01-15T08:00:00Z'}"
#define DRAINS(status) "{'type':'DrainInProgress','status':'" status "','reason':'VesperAgent','message':'m'" STANDS
#define TOLD(type, status, reason) "{'type':'" type "','status':'" status "','reason':'" reason "','message':'m'" STANDS
#define PATCH(conditions) "{'metadata':{'resourceVersion':'7'},'status':{'conditions':[" conditions "]}}"
        static const struct {
                const char *what, *conditions;
                DrainConditions wanted;
                NoticeKind kind;
                bool stands;
                const char *patch;
        } rows[] = {
                { "a shutdown is scheduled", "", NODE_CONDITIONS_PLANNED, NOTICE_SHUTDOWN, false,
                  PATCH(TOLD("MaintenancePlanned", "True", "NodeShutdown")) },
                { "a person asked", "", NODE_CONDITIONS_PLANNED, NOTICE_MANUAL, false,
                  PATCH(TOLD("MaintenancePlanned", "True", "AdminRequested")) },
                { "the cloud has a window", "", NODE_CONDITIONS_PLANNED, NOTICE_MAINTENANCE, false,
                  PATCH(TOLD("MaintenancePlanned", "True", "MaintenanceWindow")) },
                { "another has planned, too", CAUSED("MaintenancePlanned", "True", "AdminRequested", "theirs"),
                  NODE_CONDITIONS_PLANNED, NOTICE_SHUTDOWN, true, PATCH("") },
                { "another's plan is over", CAUSED("MaintenancePlanned", "False", "AdminRequested", "theirs"),
                  NODE_CONDITIONS_PLANNED, NOTICE_SHUTDOWN, false,
                  PATCH(TOLD("MaintenancePlanned", "True", "NodeShutdown")) },
                { "it begins", CAUSED("MaintenancePlanned", "True", "NodeShutdown", "vesper-agent waits"),
                  NODE_CONDITIONS_DRAINING, NOTICE_SHUTDOWN, false,
                  PATCH(DRAINS("True") ",{'type':'MaintenancePlanned','$patch':'delete'}," TOLD(
                          "MaintenanceInProgress", "True",
                          "NodeShutdown") "," TOLD("GracefulNodeShutdownInProgress", "True", "NodeShutdown")) },
                { "a drain becomes one of a shutdown", OWN("DrainInProgress", "True"), NODE_CONDITIONS_DRAINING,
                  NOTICE_SHUTDOWN, false, NULL },
                { "a drain that nothing is missing of", OWN("DrainInProgress", "True"), NODE_CONDITIONS_DRAINING,
                  NOTICE_MANUAL, true, NULL },
                { "it is drained", "", NODE_CONDITIONS_DRAINED, NOTICE_SHUTDOWN, false,
                  PATCH(DRAINS("False") "," TOLD("Drained", "True", "VesperAgent") "," TOLD(
                          "MaintenanceInProgress", "True",
                          "NodeShutdown") "," TOLD("GracefulNodeShutdownInProgress", "False", "DrainCompleted")) },
                { "all is over",
                  OWN("Drained", "True") "," CAUSED("MaintenanceInProgress", "True", "NodeShutdown", "vesper-agent has")
                  "," CAUSED("GracefulNodeShutdownInProgress", "False", "DrainCompleted", "vesper-agent has") ","
                  CAUSED("MaintenancePlanned", "True", "AdminRequested", "theirs"),
                  NODE_CONDITIONS_NONE, _NOTICE_KIND_INVALID, false,
                  PATCH("{'type':'Drained','$patch':'delete'},{'type':'MaintenanceInProgress','$patch':'delete'},"
                        "{'type':'GracefulNodeShutdownInProgress','$patch':'delete'}") },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *node = strf("{" META "},'status':{'conditions':[%s]}}", rows[i].conditions);
                _cleanup_fixture_ Fixture f = { 0 };
                KubeNode *n = decode(&f, node);

                print_message("%s\n", rows[i].what);
                assert_int_equal(node_conditions_stand(n, rows[i].wanted, rows[i].kind), rows[i].stands);
                if (rows[i].patch)
                        assert_json(node_patch_conditions(n, rows[i].wanted, rows[i].kind, "m", NOW), rows[i].patch);
        }
}
#undef STANDS
#undef DRAINS
#undef TOLD
#undef PATCH

TEST_CASE(test_boot_id) {
        static const struct {
                const char *a, *b;
                bool equal;
        } rows[] = {
                { BOOT, BOOT, true },
                { BOOT, "01234567-89ab-cdef-0123-456789ABCDEF", true },
                { BOOT, "01234567-89ab-cdef-0123-456789abcdee", false },
                { BOOT, "0123", false },
                { "", "", true },
                { "", "-", true },
                { NULL, NULL, false },
                { BOOT, NULL, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                assert_int_equal(boot_id_equal(rows[i].a, rows[i].b), rows[i].equal);
                assert_int_equal(boot_id_equal(rows[i].b, rows[i].a), rows[i].equal);
        }
}

TEST_CASE(test_boot_of_marks) {
        static const struct {
                const char *what, *annotations, *boot_id;
        } rows[] = {
                { "no marks", "'a':'b'", NULL },
                { "the cordon alone", "'vesper.sh/cordoned-by-agent':'{\\\"bootID\\\":\\\"b2\\\"}'", "b2" },
                { "both", "'vesper.sh/interruption':'{\\\"bootID\\\":\\\"b1\\\"}'," MARK, "b1" },
                { "a reason that cannot be read",
                  INTERRUPTION ",'vesper.sh/cordoned-by-agent':'{\\\"bootID\\\":\\\"b2\\\"}'", "b2" },
                { "a reason without a boot",
                  "'vesper.sh/interruption':'{}','vesper.sh/"
                  "cordoned-by-agent':'{\\\"bootID\\\":\\\"b2\\\"}'",
                  "b2" },
                { "neither says", INTERRUPTION "," MARK, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *text = strf("{" META ",'annotations':{%s}}}", rows[i].annotations),
                                    *found = NULL;
                _cleanup_fixture_ Fixture f = { 0 };
                KubeNode *n = decode(&f, text);

                print_message("%s\n", rows[i].what);
                assert_return_code(node_marks_boot_id(n, &found), 0);
                assert_true(streq_ptr(found, rows[i].boot_id));
        }
}

TEST_CASE(test_reading) {
        static const struct {
                const char *what, *node;
                bool marks, stranger, uncordoned;
                usec_t deadline;
        } rows[] = {
                { "nothing", "{" META "}}", false, false, false, 0 },
                { "a stranger", "{" META "},'spec':{'unschedulable':true}}", false, true, false, 0 },
                { "vesperctl", "{" META ",'annotations':{" PERSONS "}},'spec':{'unschedulable':true}}", false, false,
                  false, 0 },
                { "we", "{" META ",'annotations':{" MARK "}},'spec':{'unschedulable':true}}", true, false,
                  false, 0 },
                { "a person undid us", "{" META ",'annotations':{" INTERRUPTION "}}}", true, false, true,
                  0 },
                { "the claim's T", "{" META ",'annotations':{'vesper.sh/deadline':'2027-01-15T08:00:00Z'}}}",
                  false, false, false, NOW },
                { "a T that is none", "{" META ",'annotations':{'vesper.sh/deadline':'soon'}}}", false,
                  false, false, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_fixture_ Fixture f = { 0 };
                KubeNode *n = decode(&f, rows[i].node);

                print_message("%s\n", rows[i].what);
                assert_int_equal(node_has_marks(n), rows[i].marks);
                assert_int_equal(node_is_cordoned_by_stranger(n), rows[i].stranger);
                assert_int_equal(node_was_uncordoned(n), rows[i].uncordoned);
                assert_true(node_claim_deadline(n) == rows[i].deadline);
        }
}

#define SAYS(kind, phase, boot) \
        "'vesper.sh/interruption':'{\\\"id\\\":\\\"x\\\",\\\"kind\\\":\\\"" kind "\\\",\\\"source\\\":\\\"ec2\\\",\\\"phase\\\":\\\"" phase \
        "\\\",\\\"bootID\\\":\\\"" boot "\\\"}'"
#define OTHER_BOOT "ffffffffffffffffffffffffffffffff"

/* What stands there, of this boot or another, overruled or not. */
TEST_CASE(test_interruptions) {
        static const struct {
                const char *what, *annotations;
                bool marks, marked, released;
        } rows[] = {
                { "none", "'a':'b'", false, false, false },
                { "of this boot", SAYS("spot", "Draining", BOOT), true, true, false },
                { "of another boot", SAYS("spot", "Draining", OTHER_BOOT), true, false, false },
                { "overruled", SAYS("spot", "Released", BOOT), false, false, true },
                { "overruled in another boot", SAYS("spot", "Released", OTHER_BOOT), false, false, false },
                { "overruled, and our cordon is left", SAYS("spot", "Released", BOOT) "," MARK, true, false, true },
                { "garbled", INTERRUPTION, true, false, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *text = strf("{" META ",'annotations':{%s}}}", rows[i].annotations);
                _cleanup_fixture_ Fixture f = { 0 };
                KubeNode *n = decode(&f, text);

                print_message("%s\n", rows[i].what);
                assert_int_equal(node_has_marks(n), rows[i].marks);
                assert_int_equal(node_was_uncordoned(n), rows[i].marks);
                assert_int_equal(node_is_marked_with(n, "x", BOOT), rows[i].marked);
                assert_false(node_is_marked_with(n, "y", BOOT));
                assert_int_equal(node_is_overruled(n, "x", BOOT), rows[i].released);
                assert_int_equal(node_is_overruled(n, NULL, BOOT), rows[i].released);
                assert_false(node_is_overruled(n, "y", BOOT));
        }
}

/* A person overruled us: our marks go, the cordon is whoever's it is now, and what was overruled stays to be known; but not a
 * shutdown, and nothing is written twice. */
TEST_CASE(test_release) {
        static const struct {
                const char *what, *node;
                bool patch, is_overruled_phase, takes_interruption;
        } rows[] = {
                { "nothing of ours", "{" META "},'spec':{'unschedulable':true}}", false, false, false },
                { "a spot notice, and the node is open",
                  "{" META ",'annotations':{" MARK "," SAYS("spot", "Draining", BOOT) "}," LABEL "}}", true, true, false },
                { "and closed again by a person since",
                  "{" META ",'annotations':{" MARK "," SAYS("spot", "Draining", BOOT) "}},'spec':{'unschedulable':true}}", true,
                  true, false },
                { "a shutdown", "{" META ",'annotations':{" MARK "," SAYS("shutdown", "Draining", BOOT) "}}}", true, false,
                  true },
                { "garbled", "{" META ",'annotations':{" MARK "," INTERRUPTION "}}}", true, false, true },
                { "it says so, and a cordon of ours is left",
                  "{" META ",'annotations':{" MARK "," SAYS("spot", "Released", BOOT) "}}}", true, false, false },
                { "it says so already", "{" META ",'annotations':{" SAYS("spot", "Released", BOOT) "}}}", false, false,
                  false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_fixture_ Fixture f = { 0 };
                _cleanup_free_ char *patch = NULL;

                print_message("%s\n", rows[i].what);
                assert_int_equal(node_patch_overruled(decode(&f, rows[i].node), &patch), rows[i].patch);
                if (!rows[i].patch)
                        continue;
                assert_null(strstr(patch, "unschedulable")); /* never ours to open or close */
                assert_int_equal(strstr(patch, "Released") != NULL, rows[i].is_overruled_phase);
                assert_int_equal(strstr(patch, "\"vesper.sh/interruption\":null") != NULL, rows[i].takes_interruption);
                assert_non_null(strstr(patch, "\"vesper.sh/cordoned-by-agent\":null"));
        }
}

/* One condition after the other, as the drain goes on: since when each holds, and that no older word is left. */
TEST_CASE(test_conditions_change) {
        static const struct {
                const char *what, *conditions;
                DrainConditions have, wanted;
                const char *patch;
        } rows[] = {
                { "drained at last: since now", OWN("DrainInProgress", "True"), NODE_CONDITIONS_DRAINING,
                  NODE_CONDITIONS_DRAINED,
                  "{'metadata':{'resourceVersion':'7'},'status':{'conditions':[{'type':'DrainInProgress','status':'False',"
                  "'reason':'VesperAgent','message':'m','lastHeartbeatTime':'2027-01-15T08:00:00Z',"
                  "'lastTransitionTime':'2027-01-15T08:00:00Z'},{'type':'Drained','status':'True','reason':'VesperAgent',"
                  "'message':'m','lastHeartbeatTime':'2027-01-15T08:00:00Z','lastTransitionTime':'2027-01-15T08:00:00Z'},"
                  "{'type':'MaintenanceInProgress','status':'True','reason':'VesperAgent','message':'m','lastHeartbeatTime':'2027-01-15T08:00:00Z',"
                  "'lastTransitionTime':'2027-01-15T08:00:00Z'}]}}" },
                { "drained before, and draining again", OWN("DrainInProgress", "False") "," OWN("Drained", "True"),
                  NODE_CONDITIONS_DRAINED, NODE_CONDITIONS_DRAINING,
                  "{'metadata':{'resourceVersion':'7'},'status':{'conditions':[{'type':'DrainInProgress','status':'True',"
                  "'reason':'VesperAgent','message':'m','lastHeartbeatTime':'2027-01-15T08:00:00Z',"
                  "'lastTransitionTime':'2027-01-15T08:00:00Z'},{'type':'Drained','$patch':'delete'},"
                  "{'type':'MaintenanceInProgress','status':'True','reason':'VesperAgent','message':'m','lastHeartbeatTime':'2027-01-15T08:00:00Z',"
                  "'lastTransitionTime':'2027-01-15T08:00:00Z'}]}}" },
                { "a word of ours that is not true any more is one", OWN("Drained", "False"), NODE_CONDITIONS_DRAINING,
                  NODE_CONDITIONS_NONE,
                  "{'metadata':{'resourceVersion':'7'},'status':{'conditions':[{'type':'Drained','$patch':'delete'}]}}" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *node = strf("{" META "},'status':{'conditions':[%s]}}", rows[i].conditions);
                _cleanup_fixture_ Fixture f = { 0 };
                KubeNode *n = decode(&f, node);

                print_message("%s\n", rows[i].what);
                assert_int_equal(node_conditions(n), rows[i].have);
                assert_json(node_patch_conditions(n, rows[i].wanted, NOTICE_SPOT, "m", NOW), rows[i].patch);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_mark),       cmocka_unit_test(test_undo),
                cmocka_unit_test(test_conditions), cmocka_unit_test(test_conditions_patch),
                cmocka_unit_test(test_conditions_of_maintenance),
                cmocka_unit_test(test_boot_id),    cmocka_unit_test(test_boot_of_marks),
                cmocka_unit_test(test_reading),    cmocka_unit_test(test_interruptions),
                cmocka_unit_test(test_release),    cmocka_unit_test(test_conditions_change),
        };
        return cmocka_run_group_tests_name("node-marks", tests, NULL, NULL);
}
