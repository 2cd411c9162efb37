/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cloud-rig.h"
#include "cmocka-test.h"
#include "fake-azure.h"

#define ORIGIN "https://management.azure.com"
#define SUBSCRIPTION "/subscriptions/" FAKE_AZURE_SUBSCRIPTION
#define COMPUTE SUBSCRIPTION "/resourceGroups/vesper-rg/providers/Microsoft.Compute/"
#define V "?api-version=2024-07-01"

typedef struct Room {
        CloudRig rig;
        FakeAzure *azure;
        char *location, *async; /* of the last 202 */
} Room;

static int room_setup(void **state) {
        Room *r = new0(Room, 1);

        rig_init(&r->rig);
        r->azure = fake_azure_new(&(FakeAzureOptions) { .loop = r->rig.loop, .token = "good" });
        fake_azure_run(r->azure, "vm", NULL);
        fake_azure_run(r->azure, "flex_1", "flex");
        fake_azure_add_set(r->azure, "ss");
        fake_azure_run_member(r->azure, "ss", "0");
        fake_azure_run_member(r->azure, "ss", "1");
        fake_azure_run_member(r->azure, "ss", "7");
        rig_route(&r->rig, ORIGIN, fake_azure_handle, r->azure);
        *state = r;
        return 0;
}

static int room_teardown(void **state) {
        Room *r = *state;

        rig_stop(&r->rig);
        fake_azure_free(r->azure);
        rig_done(&r->rig);
        free(r->location);
        free(r->async);
        free(r);
        return 0;
}

static void expect_url(Room *r, const char *token, HttpMethod method, const char *url, const char *body,
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
        if (status == 202) {
                assert_string_equal(ask_header(&a, "Retry-After"), "10");
                assert_return_code(free_and_strdup(&r->location, ask_header(&a, "Location")), 0);
                assert_return_code(free_and_strdup(&r->async, ask_header(&a, "Azure-AsyncOperation")), 0);
        }
        if (status == 429)
                assert_string_equal(ask_header(&a, "Retry-After"), "17");
}

static void expect(Room *r, HttpMethod method, const char *path, const char *body, unsigned status,
                   const char *part) {
        _cleanup_free_ char *url = strf(ORIGIN "%s", path);

        expect_url(r, "good", method, url, body, status, part);
}

TEST_CASE(test_refusals) {
        static const struct {
                const char *token;
                HttpMethod method;
                const char *path, *body;
                unsigned status;
                const char *part;
        } rows[] = {
                { NULL, HTTP_GET, COMPUTE "virtualMachines/vm" V, NULL, 401,
                  "\"code\":\"AuthenticationFailed\"" },
                { "bad", HTTP_GET, COMPUTE "virtualMachines/vm" V, NULL, 401,
                  "\"code\":\"InvalidAuthenticationToken\"" },
                { "good", HTTP_GET, COMPUTE "virtualMachines/vm", NULL, 400,
                  "\"code\":\"MissingApiVersionParameter\"" },
                { "good", HTTP_GET, COMPUTE "virtualMachines/vm?api-version=latest", NULL, 400,
                  "\"code\":\"InvalidApiVersionParameter\"" },
                { "good", HTTP_GET, COMPUTE "virtualMachines/vm" V "&force=1", NULL, 400, "not known" },
                { "good", HTTP_GET, COMPUTE "virtualMachines/vm" V, NULL, 200,
                  "\"provisioningState\":\"Succeeded\"" },
                /* all 404, but only one says that the machine is gone */
                { "good", HTTP_GET, COMPUTE "virtualMachines/none" V, NULL, 404,
                  "\"code\":\"ResourceNotFound\"" },
                { "good", HTTP_GET,
                  SUBSCRIPTION "/resourceGroups/other/providers/Microsoft.Compute/virtualMachines/vm" V,
                  NULL, 404, "\"code\":\"ResourceGroupNotFound\"" },
                { "good", HTTP_GET,
                  "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/vesper-rg/providers/"
                  "Microsoft.Compute/virtualMachines/vm" V,
                  NULL, 404, "\"code\":\"SubscriptionNotFound\"" },
                { "good", HTTP_DELETE,
                  SUBSCRIPTION "/resourceGroups/other/providers/Microsoft.Compute/virtualMachines/vm" V,
                  NULL, 404, "\"code\":\"ResourceGroupNotFound\"" },
                { "good", HTTP_DELETE, COMPUTE "virtualMachineScaleSets/none/virtualMachines/0" V, NULL, 404,
                  "\"code\":\"ParentResourceNotFound\"" },
                { "good", HTTP_GET, COMPUTE "virtualMachineScaleSets/ss/virtualMachines/3" V, NULL, 404,
                  "\"code\":\"NotFound\"" },
                { "good", HTTP_GET, COMPUTE "disks/d" V, NULL, 404, "\"code\":\"InvalidResourceType\"" },
                { "good", HTTP_GET, "/nothing" V, NULL, 404, "\"code\":\"InvalidResourceType\"" },
                /* any case will do */
                { "good", HTTP_GET,
                  "/SUBSCRIPTIONS/" FAKE_AZURE_SUBSCRIPTION
                  "/resourcegroups/VESPER-RG/PROVIDERS/microsoft.compute/VirtualMachines/VM" V,
                  NULL, 200, "\"name\":\"vm\"" },
                { "good", HTTP_DELETE, COMPUTE "virtualMachines/vm" V "&forceDeletion=maybe", NULL, 400,
                  "forceDeletion" },
                { "good", HTTP_POST, COMPUTE "virtualMachineScaleSets/ss/delete" V, "{'instanceIds':[]}",
                  400, "instanceIds" },
                { "good", HTTP_POST, COMPUTE "virtualMachineScaleSets/ss/delete" V,
                  "{'instanceIds':['0','9']}", 400, "instanceId 9" },
                { "good", HTTP_POST, COMPUTE "virtualMachineScaleSets/ss/delete" V, "{", 400,
                  "\"code\":\"InvalidRequestContent\"" },
        };
        Room *r = *state;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *url = strf(ORIGIN "%s", rows[i].path);

                expect_url(r, rows[i].token, rows[i].method, url, rows[i].body, rows[i].status,
                           rows[i].part);
        }
        assert_int_equal(fake_azure_n_alive(r->azure), 5);
        fake_azure_rest(r->azure)->expired = true;
        expect(r, HTTP_GET, COMPUTE "virtualMachines/vm" V, NULL, 401,
               "\"code\":\"ExpiredAuthenticationToken\"");
        fake_azure_rest(r->azure)->expired = false;
        fake_azure_throttle(r->azure, 1, 17);
        expect(r, HTTP_DELETE, COMPUTE "virtualMachines/vm" V, NULL, 429, "TooManyRequests");
}

TEST_CASE(test_delete) {
        Room *r = *state;

        expect(r, HTTP_DELETE, COMPUTE "virtualMachines/vm" V, NULL, 202, NULL);
        expect(r, HTTP_GET, COMPUTE "virtualMachines/vm/instanceView" V, NULL, 200,
               "\"code\":\"ProvisioningState/deleting\"");
        expect_url(r, "good", HTTP_GET, r->async, NULL, 200, "\"status\":\"InProgress\"");
        assert_int_equal(fake_azure_n_early_polls(r->azure), 1);
        rig_run_for(&r->rig, 11 * USEC_PER_SEC);
        expect_url(r, "good", HTTP_GET, r->location, NULL, 202, NULL);
        expect(r, HTTP_DELETE, COMPUTE "virtualMachines/vm" V, NULL, 202, NULL); /* a repeat is accepted */
        rig_run_for(&r->rig, 30 * USEC_PER_SEC);
        expect_url(r, "good", HTTP_GET, r->async, NULL, 200, "\"status\":\"Succeeded\"");
        expect_url(r, "good", HTTP_GET, r->location, NULL, 204, NULL);
        expect(r, HTTP_GET, COMPUTE "virtualMachines/vm" V, NULL, 404, "ResourceNotFound");
        expect(r, HTTP_DELETE, COMPUTE "virtualMachines/vm" V, NULL, 204, NULL);
        assert_int_equal(fake_azure_n_early_polls(r->azure), 1);
        expect(r, HTTP_GET, COMPUTE "virtualMachines/flex_1" V, NULL, 200,
               "virtualMachineScaleSets/flex\"}");
}

TEST_CASE(test_ways_of_following) {
        Room *r = *state;

        print_message("  an operation that fails\n");
        fake_azure_fail_operations(r->azure, 1, "OperationPreempted", "a newer call took over");
        expect(r, HTTP_DELETE, COMPUTE "virtualMachines/vm" V, NULL, 202, NULL);
        rig_run_for(&r->rig, 11 * USEC_PER_SEC);
        expect_url(r, "good", HTTP_GET, r->async, NULL, 200, "\"error\":{\"code\":\"OperationPreempted\"");
        expect_url(r, "good", HTTP_GET, r->async, NULL, 200, "\"status\":\"Failed\"");
        expect_url(r, "good", HTTP_GET, r->location, NULL, 409, "OperationPreempted");
        assert_string_equal(fake_azure_state(r->azure, NULL, "vm"), "running");

        print_message("  Location alone, 4 KB long\n");
        fake_azure_set_location_only(r->azure, true);
        fake_azure_set_link_bytes(r->azure, 4000);
        expect(r, HTTP_DELETE, COMPUTE "virtualMachines/vm" V, NULL, 202, NULL);
        assert_null(r->async);
        assert_int_equal(strlen(r->location), 4000);
        rig_run_for(&r->rig, USEC_PER_MINUTE);
        expect_url(r, "good", HTTP_GET, r->location, NULL, 204, NULL);
        expect(r, HTTP_GET, SUBSCRIPTION "/providers/Microsoft.Compute/locations/westeurope/operations/x" V,
               NULL, 404, "NotFound");
}

TEST_CASE(test_conflicts) {
        Room *r = *state;

        fake_azure_lock(r->azure, NULL, "vm", true);
        expect(r, HTTP_DELETE, COMPUTE "virtualMachines/vm" V, NULL, 409, "\"code\":\"ScopeLocked\"");
        fake_azure_lock(r->azure, NULL, "vm", false);
        fake_azure_set_dedicated(r->azure, NULL, "vm", true);
        expect(r, HTTP_DELETE, COMPUTE "virtualMachines/vm" V "&forceDeletion=true", NULL, 409,
               "\"code\":\"OperationNotAllowed\"");
        fake_troubles_add(fake_azure_rest(r->azure)->troubles,
                          &(FakeTrouble) { .kind = FAKE_TROUBLE_FAIL,
                                           .n = 1,
                                           .status = 409,
                                           .code = "AnotherOperationInProgress",
                                           .message = "wait" });
        expect(r, HTTP_DELETE, COMPUTE "virtualMachines/vm" V, NULL, 409, "AnotherOperationInProgress");
        expect(r, HTTP_DELETE, COMPUTE "virtualMachines/vm" V "&forceDeletion=false", NULL, 202, NULL);
}

TEST_CASE(test_set) {
        Room *r = *state;

        expect(r, HTTP_GET, COMPUTE "virtualMachineScaleSets/ss" V, NULL, 200, "\"capacity\":3");
        expect(r, HTTP_GET,
               COMPUTE "virtualMachineScaleSets/SS/virtualMachines/7" V "&%24expand=instanceView", NULL, 200,
               "\"name\":\"ss_7\",\"instanceId\":\"7\"");
        expect(r, HTTP_DELETE, COMPUTE "virtualMachineScaleSets/ss/virtualMachines/7" V, NULL, 202, NULL);
        assert_int_equal(fake_azure_capacity(r->azure, "ss"), 2);
        expect(r, HTTP_DELETE, COMPUTE "virtualMachineScaleSets/ss/virtualMachines/7" V, NULL, 202, NULL);
        assert_int_equal(fake_azure_capacity(r->azure, "ss"), 2); /* not twice */
        expect(r, HTTP_GET, COMPUTE "virtualMachineScaleSets/ss/virtualMachines/7/instanceView" V, NULL, 200,
               "ProvisioningState/deleting");

        print_message("  deallocated is not deleted\n");
        expect(r, HTTP_POST, COMPUTE "virtualMachineScaleSets/ss/deallocate" V, "{'instanceIds':['0','1']}",
               202, NULL);
        rig_run_for(&r->rig, USEC_PER_MINUTE);
        expect(r, HTTP_GET, COMPUTE "virtualMachineScaleSets/ss/virtualMachines/7" V, NULL, 404,
               "\"code\":\"NotFound\"");
        expect(r, HTTP_DELETE, COMPUTE "virtualMachineScaleSets/ss/virtualMachines/7" V, NULL, 204, NULL);
        expect(r, HTTP_GET, COMPUTE "virtualMachineScaleSets/ss/virtualMachines/1/instanceView" V, NULL, 200,
               "PowerState/deallocated");
        assert_int_equal(fake_azure_capacity(r->azure, "ss"), 2);

        expect(r, HTTP_POST, COMPUTE "virtualMachineScaleSets/ss/delete" V, "{'instanceIds':['0','1']}", 202,
               NULL);
        assert_int_equal(fake_azure_capacity(r->azure, "ss"), 0);
        rig_run_for(&r->rig, USEC_PER_MINUTE);
        expect(r, HTTP_GET, COMPUTE "virtualMachineScaleSets/ss/virtualMachines" V, NULL, 200,
               "{\"value\":[]}");

        print_message("  pages of 50\n");
        for (int i = 0; i < 60; i++) {
                _cleanup_free_ char *name = strf("n%d", i);

                fake_azure_run(r->azure, name, NULL);
        }
        expect(r, HTTP_GET, COMPUTE "virtualMachines" V, NULL, 200, "%24skiptoken=50\"");
        expect(r, HTTP_GET, COMPUTE "virtualMachines" V "&%24skiptoken=50", NULL, 200, "\"name\":\"n59\"");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, room_setup, room_teardown)

int main(void) {
        static const struct CMUnitTest tests[] = {
                TEST(test_refusals),  TEST(test_delete), TEST(test_ways_of_following),
                TEST(test_conflicts), TEST(test_set),
        };
        return cmocka_run_group_tests_name("fake-azure", tests, NULL, NULL);
}
