/* SPDX-License-Identifier: Apache-2.0 */
/* The ground that everything else stands on: HTTP/2, how failures look, what is no request. */
#include "contract-ask.h"

/* What the benchmarks count on: one connection with many streams. */
TEST_CASE(http_2_is_spoken) {
        Rig *r = *state;

        if (rig_is_fake(r)) {
                print_message("  the in-process fake speaks no HTTP\n");
                skip();
        }
        for (HttpLane lane = 0; lane < _HTTP_LANE_MAX; lane++)
                assert_int_equal(rig_http_version(r, lane), 20);
}

/* 401: the client looks at its credential again, asks once more, and says so. */
TEST_CASE(a_credential_of_nobody) {
        Rig *r = *state;
        _cleanup_answer_ Answer a = rig_get(r, RIG_NOBODY, NODE("api-nobody"));

        assert_answer(a, 401, "Unauthorized");
        assert_int_equal(api_error_to_errno(&a.error), -EACCES);
}

TEST_CASE(a_failure_is_a_status) {
        Rig *r = *state;
        _cleanup_answer_ Answer none = rig_get(r, RIG_ADMIN, NODE("api-none"));
        _cleanup_answer_ Answer pod = rig_get(r, RIG_ADMIN, POD("api-nowhere", "p"));
        _cleanup_answer_ Answer custom = rig_get(r, RIG_ADMIN, CLAIM("api-none"));
        _cleanup_answer_ Answer twice = { 0 }, invalid = { 0 };

        assert_answer(none, 404, "NotFound");
        assert_string_equal(none.error.message, "nodes \"api-none\" not found");
        assert_string_equal(answer_string(&none, "details", "kind", NULL), "nodes");
        assert_answer(pod, 404, "NotFound");
        assert_answer(custom, 404, "NotFound");
        assert_string_equal(custom.error.message, "nodeclaims.vesper.sh \"api-none\" not found");
        assert_string_equal(answer_string(&custom, "details", "group", NULL), "vesper.sh");

        rig_make_node(r, "api-node");
        twice = rig_create(r, RIG_ADMIN, NODE(NULL), "{'metadata': {'name': 'api-node'}}");
        assert_answer(twice, 409, "AlreadyExists");
        assert_string_equal(twice.error.message, "nodes \"api-node\" already exists");
        assert_int_equal(api_error_to_errno(&twice.error), -EEXIST);

        invalid = rig_create(r, RIG_ADMIN, NODE(NULL), "{'metadata': {'name': 'No_Name'}}");
        assert_answer(invalid, 422, "Invalid");
        assert_true(api_error_has_cause(&invalid.error, "FieldValueInvalid"));
        assert_string_equal(invalid.error.causes[0].field, "metadata.name");
}

/* Some failures are plain text: the HTTP status alone speaks. */
TEST_CASE(a_failure_without_a_status) {
        static const char *const paths[] = { "/apis/vesper.sh/v1alpha1/nothings",
                                             "/apis/nothing.example/v1/things", "/nothing" };
        Rig *r = *state;

        for (size_t i = 0; i < ELEMENTSOF(paths); i++) {
                _cleanup_answer_ Answer a = rig_http(r, RIG_ADMIN, HTTP_GET, paths[i], NULL, NULL);

                print_message("  %s\n", paths[i]);
                assert_int_equal(a.status, 404);
                assert_int_equal(api_error_to_errno(&a.error), -ENOENT);
                assert_string_not_equal(a.error.message, "");
        }
}

TEST_CASE(what_is_no_request) {
        static const struct {
                const char *what;
                HttpMethod method;
                const char *path, *type, *body;
                unsigned status;
        } rows[] = {
                { "broken JSON", HTTP_POST, "/api/v1/nodes", "application/json", "{\"metadata\":", 400 },
                { "no JSON", HTTP_POST, "/api/v1/nodes", "application/json", "nonsense", 400 },
                { "an array", HTTP_POST, "/api/v1/nodes", "application/json", "[]", 400 },
                { "nothing", HTTP_POST, "/api/v1/nodes", "application/json", "", 400 },
                { "another kind", HTTP_POST, "/api/v1/nodes", "application/json",
                  "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"}}", 400 },
                { "another version", HTTP_POST, "/api/v1/nodes", "application/json",
                  "{\"kind\":\"Node\",\"apiVersion\":\"v9\",\"metadata\":{\"name\":\"a\"}}", 400 },
                { "text", HTTP_POST, "/api/v1/nodes", "text/plain", "{}", 415 },
                { "no name", HTTP_POST, "/api/v1/nodes", "application/json", "{}", 422 },
                { "a pod without containers", HTTP_POST, "/api/v1/namespaces/api-requests/pods",
                  "application/json", "{\"metadata\":{\"name\":\"a\"},\"spec\":{}}", 422 },
                { "another namespace than its own", HTTP_POST, "/api/v1/namespaces/kube-public/events",
                  "application/json", "{\"metadata\":{\"name\":\"a\",\"namespace\":\"default\"}}", 400 },
                { "a namespace that is not there", HTTP_POST, "/api/v1/namespaces/api-nowhere/events",
                  "application/json",
                  "{\"metadata\":{\"name\":\"a\"},\"involvedObject\":{\"namespace\":\"api-nowhere\"}}",
                  404 },
                { "a patch of no known kind", HTTP_PATCH, "/api/v1/nodes/api-node", "application/json", "{}",
                  415 },
                { "creating by an object's path", HTTP_POST, "/api/v1/nodes/api-node", "application/json",
                  "{\"metadata\":{\"name\":\"a\"}}", 405 },
                { "a limit that is no number", HTTP_GET, "/api/v1/nodes?limit=some", NULL, NULL, 400 },
                { "a custom object without its kind", HTTP_POST, "/apis/vesper.sh/v1alpha1/nodeclaims",
                  "application/json", "{\"metadata\":{\"name\":\"a\"}}", 400 },
        };
        Rig *r = *state;

        rig_make_namespace(r, "api-requests");
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_answer_ Answer a =
                        rig_http(r, RIG_ADMIN, rows[i].method, rows[i].path, rows[i].type, rows[i].body);

                print_message("  %s\n", rows[i].what);
                if (a.status != rows[i].status)
                        print_error("%u %s\n", a.status, a.body);
                assert_int_equal(a.status, rows[i].status);
                assert_int_equal(a.error.http, rows[i].status);
                assert_string_equal(answer_string(&a, "kind", NULL), "Status");
                assert_string_not_equal(a.error.message, "");
        }
}

TEST_CASE(names_can_be_made_there) {
        Rig *r = *state;
        _cleanup_answer_ Answer a =
                rig_create(r, RIG_ADMIN, NODE(NULL), "{'metadata': {'generateName': 'api-made-'}}");
        _cleanup_answer_ Answer b =
                rig_create(r, RIG_ADMIN, NODE(NULL), "{'metadata': {'generateName': 'api-made-'}}");

        assert_answer(a, 201, NULL);
        assert_answer(b, 201, NULL);
        assert_non_null(startswith(answer_name(&a), "api-made-"));
        assert_string_not_equal(answer_name(&a), answer_name(&b));
        assert_non_null(answer_uid(&a));
        assert_non_null(answer_string(&a, "metadata", "creationTimestamp", NULL));
}

TEST_CASE(a_dry_run_leaves_nothing) {
        Rig *r = *state;
        _cleanup_answer_ Answer made = rig_http(r, RIG_ADMIN, HTTP_POST, "/api/v1/nodes?dryRun=All",
                                                "application/json", "{\"metadata\":{\"name\":\"api-dry\"}}");
        _cleanup_answer_ Answer read = rig_get(r, RIG_ADMIN, NODE("api-dry"));

        assert_answer(made, 201, NULL);
        assert_answer(read, 404, "NotFound");
}

/* What keeps a connection warm. */
TEST_CASE(version_is_told) {
        Rig *r = *state;
        _cleanup_answer_ Answer a = rig_http(r, RIG_NODE, HTTP_GET, "/version", NULL, NULL);

        assert_answer(a, 200, NULL);
        assert_non_null(startswith(answer_string(&a, "gitVersion", NULL), "v1."));
}

/* By which a node whose clock is wrong knows that its slot to reboot is over. Here all have one clock. */
TEST_CASE(every_answer_tells_the_time) {
        Rig *r = *state;
        usec_t began = rig_wall(r);

        rig_make_node(r, "api-time");

        _cleanup_answer_ Answer node = rig_get(r, RIG_ADMIN, NODE("api-time"));
        _cleanup_answer_ Answer patched =
                rig_merge(r, RIG_ADMIN, NODE("api-time"), "{'metadata': {'labels': {'a': 'b'}}}");
        _cleanup_answer_ Answer refused = rig_get(r, RIG_ADMIN, NODE("api-nowhere"));
        const Answer *all[] = { &node, &patched, &refused };

        for (size_t i = 0; i < ELEMENTSOF(all); i++)
                assert_in_range(all[i]->date_usec, began - began % USEC_PER_SEC, rig_wall(r));
}

/* Four hundred at once over one client: none is lost, and none waits for ever. */
TEST_CASE(many_calls_at_once) {
        Rig *r = *state;
        _cleanup_answer_ Answer list = { 0 };

        rig_make_namespace(r, "api-many");
        rig_make_pods(r, "api-many", "p", 400, RIG_NODE_NAME);
        list = rig_list(r, RIG_ADMIN, POD("api-many", NULL), NULL);
        assert_answer(list, 200, NULL);
        assert_int_equal(json_size(json_get(list.json, "items")), 400);
}

static const struct CMUnitTest cases[] = {
        cmocka_unit_test(http_2_is_spoken),
        cmocka_unit_test(a_credential_of_nobody),
        cmocka_unit_test(a_failure_is_a_status),
        cmocka_unit_test(a_failure_without_a_status),
        cmocka_unit_test(what_is_no_request),
        cmocka_unit_test(names_can_be_made_there),
        cmocka_unit_test(a_dry_run_leaves_nothing),
        cmocka_unit_test(version_is_told),
        cmocka_unit_test(every_answer_tells_the_time),
        cmocka_unit_test(many_calls_at_once),
};
CONTRACT_SUITE(api, cases);
