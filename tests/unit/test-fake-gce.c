/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cloud-rig.h"
#include "cmocka-test.h"
#include "fake-gce.h"

#define ORIGIN "https://compute.googleapis.com"
#define BASE ORIGIN "/compute/v1/projects/vesper-test/"
#define ZONE "us-central1-a"
#define ID1 "?requestId=11111111-1111-4111-8111-111111111111"
#define ID2 "?requestId=22222222-2222-4222-8222-222222222222"

typedef struct Room {
        CloudRig rig;
        FakeGce *gce;
        char operation[400]; /* selfLink of the last one, behind the base */
} Room;

static int room_setup(void **state) {
        Room *r = new0(Room, 1);

        rig_init(&r->rig);
        r->gce = fake_gce_new(&(FakeGceOptions) { .loop = r->rig.loop, .token = "good" });
        fake_gce_add_group(r->gce, "zones/" ZONE, "mig");
        fake_gce_add_group(r->gce, "regions/us-central1", "wide");
        fake_gce_run(r->gce, ZONE, "alone", NULL);
        fake_gce_run(r->gce, ZONE, "mig-1", "mig");
        fake_gce_run(r->gce, ZONE, "mig-2", "mig");
        fake_gce_run(r->gce, "us-central1-b", "wide-1", "wide");
        rig_route(&r->rig, ORIGIN, fake_gce_handle, r->gce);
        *state = r;
        return 0;
}

static int room_teardown(void **state) {
        Room *r = *state;

        rig_stop(&r->rig);
        fake_gce_free(r->gce);
        rig_done(&r->rig);
        free(r);
        return 0;
}

static void keep_operation(Room *r, const CloudAsk *a) {
        _cleanup_cjson_ cJSON *o = cJSON_Parse(a->body);
        const char *link = fj_string(o, "selfLink", NULL);

        if (streq_ptr(fj_string(o, "kind", NULL), "compute#operation"))
                (void) snprintf(r->operation, sizeof(r->operation), "%s", strstr(link, "vesper-test/") + 12);
}

static void expect_as(Room *r, const char *token, HttpMethod method, const char *url, const char *body,
                      unsigned status, const char *part) {
        _cleanup_free_ char *bearer = strf("Bearer %s", token ? token : "");
        _cleanup_free_ char *text = body ? strdup(body) : NULL;
        HttpHeader headers[] = { { "Authorization", bearer }, { "Content-Type", "application/json" } };
        _cleanup_ask_ CloudAsk a = { 0 };

        for (char *p = text; p && *p; p++)
                *p = *p == '\'' ? '"' : *p;
        rig_start(&r->rig, &a, method, url, headers + !token, ELEMENTSOF(headers) - !token, text);
        rig_wait(&r->rig, &a);
        ask_expect(&a, url, status, part);
        keep_operation(r, &a);
}

static void expect(Room *r, HttpMethod method, const char *path, const char *body, unsigned status,
                   const char *part) {
        _cleanup_free_ char *url = strf(BASE "%s", path);

        expect_as(r, "good", method, url, body, status, part);
}

static void expect_operation(Room *r, const char *part) {
        _cleanup_free_ char *path = strdup(r->operation);

        expect(r, HTTP_GET, path, NULL, 200, part);
}

#define DELETE "zones/" ZONE "/instances/"
#define MIG "zones/" ZONE "/instanceGroupManagers/mig"

TEST_CASE(test_refusals) {
        static const struct {
                const char *token;
                HttpMethod method;
                const char *path, *body;
                unsigned status;
                const char *part;
        } rows[] = {
                { NULL, HTTP_GET, "vesper-test/zones/us-central1-a/instances/alone", NULL, 401,
                  "\"reason\":\"required\"" },
                { "bad", HTTP_GET, "vesper-test/zones/us-central1-a/instances/alone", NULL, 401,
                  "\"status\":\"UNAUTHENTICATED\"" },
                { "good", HTTP_GET, "vesper-test/zones/us-central1-a/instances/alone", NULL, 200,
                  "\"status\":\"RUNNING\"" },
                /* both 404, but only one says that the machine is gone */
                { "good", HTTP_GET, "vesper-test/zones/us-central1-a/instances/none", NULL, 404,
                  "The resource 'projects/vesper-test/zones/us-central1-a/instances/none' was not found" },
                { "good", HTTP_GET, "other/zones/us-central1-a/instances/alone", NULL, 404,
                  "The resource 'projects/other' was not found" },
                { "good", HTTP_GET, "vesper-test/zones/mars-a/instances/alone", NULL, 400, "Unknown zone" },
                { "good", HTTP_GET, "vesper-test/regions/mars/instanceGroupManagers/wide", NULL, 400,
                  "Unknown region" },
                { "good", HTTP_GET, "vesper-test/global/images", NULL, 404, "not played here" },
                { "good", HTTP_PUT, "vesper-test/zones/us-central1-a/instances/alone", NULL, 404,
                  "not played here" },
                { "good", HTTP_GET, "vesper-test/zones/us-central1-a/instances/alone?verbose=1", NULL, 400,
                  "verbose" },
                { "good", HTTP_DELETE, "vesper-test/zones/us-central1-a/instances/alone?requestId=x", NULL,
                  400, "UUID" },
                { "good", HTTP_DELETE,
                  "vesper-test/zones/us-central1-a/instances/"
                  "alone?requestId=00000000-0000-0000-0000-000000000000",
                  NULL, 400, "not zero" },
                { "good", HTTP_POST,
                  "vesper-test/zones/us-central1-a/instanceGroupManagers/mig/deleteInstances", "{", 400,
                  "Parse Error" },
                { "good", HTTP_POST,
                  "vesper-test/zones/us-central1-a/instanceGroupManagers/mig/deleteInstances",
                  "{'instances':[]}", 400, "1 to 1000" },
                { "good", HTTP_POST,
                  "vesper-test/zones/us-central1-a/instanceGroupManagers/mig/deleteInstances",
                  "{'names':['x']}", 400, "Unknown name" },
                { "good", HTTP_POST,
                  "vesper-test/zones/us-central1-a/instanceGroupManagers/mig/deleteInstances",
                  "{'instances':['zones/us-central1-a/instances/alone']}", 400, "not a member" },
                { "good", HTTP_POST,
                  "vesper-test/zones/us-central1-a/instanceGroupManagers/mig/deleteInstances",
                  "{'instances':['projects/other/zones/us-central1-a/instances/mig-1']}", 400,
                  "not a member" },
        };
        Room *r = *state;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *url = strf(ORIGIN "/compute/v1/projects/%s", rows[i].path);

                expect_as(r, rows[i].token, rows[i].method, url, rows[i].body, rows[i].status, rows[i].part);
        }
        fake_gce_rest(r->gce)->expired = true;
        expect(r, HTTP_GET, DELETE "alone", NULL, 401, "\"reason\":\"authError\"");
        fake_gce_rest(r->gce)->expired = false;
        assert_int_equal(fake_gce_n_alive(r->gce), 4);

        print_message("  throttled under 403 as well as 429\n");
        fake_gce_throttle(r->gce, 1, 403);
        fake_gce_throttle(r->gce, 1, 429);
        expect(r, HTTP_GET, DELETE "alone", NULL, 403,
               "\"domain\":\"usageLimits\",\"reason\":\"rateLimitExceeded\"");
        expect(r, HTTP_GET, DELETE "alone", NULL, 429, "\"reason\":\"rateLimitExceeded\"");
        fake_troubles_add(fake_gce_rest(r->gce)->troubles, &(FakeTrouble) { .kind = FAKE_TROUBLE_FAIL,
                                                                            .n = 1,
                                                                            .status = 503,
                                                                            .code = "backendError",
                                                                            .message = "Try again" });
        expect(r, HTTP_GET, DELETE "alone", NULL, 503, "\"status\":\"UNAVAILABLE\"");
}

TEST_CASE(test_delete) {
        Room *r = *state;

        fake_gce_protect(r->gce, ZONE, "alone", true);
        expect(r, HTTP_DELETE, DELETE "alone", NULL, 400, "\"reason\":\"invalidResourceUsage\"");
        fake_gce_protect(r->gce, ZONE, "alone", false);
        expect(r, HTTP_DELETE, DELETE "alone" ID1, NULL, 200, "\"status\":\"PENDING\"");
        assert_string_equal(fake_gce_status(r->gce, ZONE, "alone"), "STOPPING");
        expect(r, HTTP_GET, DELETE "alone", NULL, 200, "\"status\":\"STOPPING\"");
        rig_run_for(&r->rig, 2 * USEC_PER_SEC);
        expect_operation(r, "\"status\":\"RUNNING\"");
        print_message("  the same requestId is the same operation\n");
        {
                char before[400];

                memcpy(before, r->operation, sizeof(before));
                expect(r, HTTP_DELETE, DELETE "alone" ID1, NULL, 200, "\"operationType\":\"delete\"");
                assert_string_equal(r->operation, before);
        }
        rig_run_for(&r->rig, 30 * USEC_PER_SEC);
        expect_operation(r, "\"status\":\"DONE\"");
        expect(r, HTTP_GET, DELETE "alone", NULL, 404, "\"reason\":\"notFound\"");
        expect(r, HTTP_DELETE, DELETE "alone" ID1, NULL, 200, "\"status\":\"DONE\"");
        expect(r, HTTP_DELETE, DELETE "alone" ID2, NULL, 404, "\"reason\":\"notFound\"");
        expect(r, HTTP_GET, "zones/" ZONE "/operations/none", NULL, 404, "operations/none");

        print_message("  TERMINATED is stopped, not gone\n");
        fake_gce_run(r->gce, ZONE, "spot", NULL);
        fake_gce_set_status(r->gce, ZONE, "spot", "TERMINATED");
        expect(r, HTTP_GET, DELETE "spot", NULL, 200, "\"status\":\"TERMINATED\"");
}

TEST_CASE(test_graceful) {
        Room *r = *state;

        fake_gce_set_graceful(r->gce, ZONE, "alone", USEC_PER_MINUTE);
        expect(r, HTTP_DELETE, DELETE "alone", NULL, 200, NULL);
        assert_string_equal(fake_gce_status(r->gce, ZONE, "alone"), "PENDING_STOP");
        rig_run_for(&r->rig, 61 * USEC_PER_SEC);
        assert_string_equal(fake_gce_status(r->gce, ZONE, "alone"), "STOPPING");
        fake_gce_run(r->gce, ZONE, "b", NULL);
        fake_gce_set_graceful(r->gce, ZONE, "b", USEC_PER_MINUTE);
        expect(r, HTTP_DELETE, DELETE "b?noGracefulShutdown=true", NULL, 200, NULL);
        assert_string_equal(fake_gce_status(r->gce, ZONE, "b"), "STOPPING");
}

TEST_CASE(test_wait) {
        _cleanup_free_ char *path = NULL;
        usec_t before;
        Room *r = *state;

        expect(r, HTTP_DELETE, DELETE "alone", NULL, 200, NULL);
        path = strf("%s/wait", r->operation);
        before = rig_now(&r->rig);
        expect(r, HTTP_POST, path, NULL, 200, "\"status\":\"DONE\"");
        assert_int_equal((rig_now(&r->rig) - before) / USEC_PER_SEC, 30);

        print_message("  it may return before it is done\n");
        fake_gce_set_graceful(r->gce, ZONE, "mig-1", USEC_PER_HOUR);
        expect(r, HTTP_DELETE, DELETE "mig-1", NULL, 200, NULL);
        free(path);
        path = strf("%s/wait", r->operation);
        before = rig_now(&r->rig);
        expect(r, HTTP_POST, path, NULL, 200, "\"status\":\"RUNNING\"");
        assert_int_equal((rig_now(&r->rig) - before) / USEC_PER_SEC, 120);
}

/* DONE with an error is a failure, and nothing was done. */
TEST_CASE(test_failed_operation) {
        Room *r = *state;

        fake_gce_fail_operations(r->gce, 1, 503, "ZONE_RESOURCE_POOL_EXHAUSTED", "no room");
        expect(r, HTTP_DELETE, DELETE "alone", NULL, 200, "PENDING");
        rig_run_for(&r->rig, 2 * USEC_PER_SEC);
        expect_operation(r, "\"error\":{\"errors\":[{\"code\":\"ZONE_RESOURCE_POOL_EXHAUSTED\",\"message\":"
                            "\"no room\"}]},\"httpErrorStatusCode\":503");
        assert_string_equal(fake_gce_status(r->gce, ZONE, "alone"), "RUNNING");
}

/* Deleted directly, it comes back; through its group, it does not. */
TEST_CASE(test_group) {
        Room *r = *state;

        expect(r, HTTP_DELETE, DELETE "mig-1", NULL, 200, NULL);
        rig_run_for(&r->rig, 31 * USEC_PER_SEC);
        expect(r, HTTP_GET, DELETE "mig-1", NULL, 404, NULL);
        expect(r, HTTP_POST, MIG "/listManagedInstances", NULL, 200, "\"currentAction\":\"RECREATING\"");
        rig_run_for(&r->rig, 30 * USEC_PER_SEC);
        expect(r, HTTP_GET, DELETE "mig-1", NULL, 200, "RUNNING");
        assert_int_equal(fake_gce_target_size(r->gce, "mig"), 2);

        print_message("  DONE is accepted; the list says when it is over\n");
        expect(r, HTTP_POST, MIG "/deleteInstances" ID1,
               "{'instances':['" BASE "zones/" ZONE "/instances/mig-1','zones/" ZONE
               "/instances/gone'],'skipInstancesOnValidationError':true}",
               200, "deleteInstances");
        assert_int_equal(fake_gce_target_size(r->gce, "mig"), 1);
        rig_run_for(&r->rig, 2 * USEC_PER_SEC);
        expect_operation(r, "DONE");
        expect(r, HTTP_POST, MIG "/listManagedInstances", NULL, 200,
               "\"instanceStatus\":\"STOPPING\",\"currentAction\":\"DELETING\"");
        expect(r, HTTP_POST, MIG "/deleteInstances" ID2, "{'instances':['zones/" ZONE "/instances/mig-1']}",
               200, NULL);
        assert_int_equal(fake_gce_target_size(r->gce, "mig"), 1); /* not twice */
        rig_run_for(&r->rig, 2 * USEC_PER_MINUTE);
        expect(r, HTTP_GET, DELETE "mig-1", NULL, 404, NULL);
        expect(r, HTTP_GET, MIG, NULL, 200, "\"targetSize\":1");

        print_message("  a regional one, under its region\n");
        expect(r, HTTP_POST, "regions/us-central1/instanceGroupManagers/wide/deleteInstances",
               "{'instances':['zones/us-central1-b/instances/wide-1']}", 200,
               "/regions/us-central1/operations/");
        expect(r, HTTP_GET, "zones/us-central1-b/instanceGroupManagers/wide", NULL, 404, NULL);
        assert_int_equal(fake_gce_target_size(r->gce, "wide"), 0);

        print_message("  resize chooses its own\n");
        expect(r, HTTP_POST, MIG "/resize?size=3", NULL, 200, "resize");
        expect(r, HTTP_POST, MIG "/listManagedInstances", NULL, 200, "\"currentAction\":\"CREATING\"");
        rig_run_for(&r->rig, USEC_PER_MINUTE);
        expect(r, HTTP_POST, MIG "/resize?size=2", NULL, 200, NULL);
        assert_string_equal(fake_gce_status(r->gce, ZONE, "mig-2"), "STOPPING");
}

TEST_CASE(test_list) {
        static const struct {
                const char *path;
                unsigned status;
                const char *part;
        } rows[] = {
                { "zones/" ZONE "/instances?maxResults=2", 200, "\"nextPageToken\":\"page+2\"" },
                { "zones/" ZONE "/instances?maxResults=2&pageToken=page%2B2", 200, "\"name\":\"mig-2\"" },
                { "zones/" ZONE "/instances?pageToken=x", 400, "pageToken" },
                { "zones/" ZONE "/instances?maxResults=0", 400, "maxResults" },
                { "zones/" ZONE "/instances?filter=name%3Dalone", 200,
                  "\"items\":[{\"kind\":\"compute#instance\"" },
                { "zones/" ZONE "/instances?filter=name%20eq%20mig-.*%20AND%20status%3DRUNNING", 200,
                  "mig-2" },
                { "zones/" ZONE "/instances?filter=%28labels.pool%20%3D%20%22a%22%29", 200, "alone" },
                { "zones/" ZONE "/instances?filter=labels.pool%3Db", 200,
                  "{\"kind\":\"compute#instanceList\"}" },
                { "zones/" ZONE "/instances?filter=nonsense", 400, "Invalid list filter" },
                { "aggregated/instances", 200, "\"zones/us-central1-b\":{\"instances\":[" },
        };
        Room *r = *state;

        fake_gce_set_label(r->gce, ZONE, "alone", "pool", "a");
        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                expect(r, HTTP_GET, rows[i].path, NULL, rows[i].status, rows[i].part);
}

TEST_CASE(test_lost_answer) {
        HttpHeader headers[] = { { "Authorization", "Bearer good" } };
        _cleanup_ask_ CloudAsk lost = { 0 };
        Room *r = *state;

        fake_troubles_add(
                fake_gce_rest(r->gce)->troubles,
                &(FakeTrouble) { .kind = FAKE_TROUBLE_LOSE, .n = 1, .operation = "instances.delete" });
        rig_start(&r->rig, &lost, HTTP_DELETE, BASE DELETE "alone" ID1, headers, 1, NULL);
        rig_run_for(&r->rig, 5 * USEC_PER_SEC);
        assert_false(lost.answered);
        print_message("  it was done, and the repeat finds it by its requestId\n");
        expect(r, HTTP_DELETE, DELETE "alone" ID1, NULL, 200, "\"status\":\"RUNNING\"");
        assert_int_equal(fake_troubles_n_requests(fake_gce_rest(r->gce)->troubles, "instances.delete"), 2);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, room_setup, room_teardown)

int main(void) {
        static const struct CMUnitTest tests[] = {
                TEST(test_refusals),         TEST(test_delete), TEST(test_graceful), TEST(test_wait),
                TEST(test_failed_operation), TEST(test_group),  TEST(test_list),     TEST(test_lost_answer),
        };
        return cmocka_run_group_tests_name("fake-gce", tests, NULL, NULL);
}
