/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>

#include "cmocka-test.h"
#include "fake-azure-metadata.h"
#include "http-ask.h"
#include "string-util.h"

#define METADATA "Metadata: true\n"
#define I "/metadata/instance"
#define V "?api-version=2021-12-13"
#define EVENTS "/metadata/scheduledevents?api-version=2020-07-01"
#define TOKEN "/metadata/identity/oauth2/token"
#define ARM "?api-version=2018-02-01&resource=https%3A%2F%2Fmanagement.azure.com%2F"
#define NO_EVENTS "*\"Events\":[]"

typedef struct Vm {
        HttpAsk ask;
        FakeAzureEvents *events;
        FakeAzureMetadata *azure;
} Vm;

static void vm_init_as(Vm *v, FakeAzureMetadataOptions o) {
        http_ask_init(&v->ask);
        v->events = fake_azure_events_new(v->ask.loop);
        o.name = o.name ? o.name : "vm-a";
        v->azure = fake_azure_metadata_new(v->ask.loop, v->events, &o);
        fake_azure_metadata_set_unlimited(v->azure, true);
        http_ask_route(&v->ask, fake_azure_metadata_handle, v->azure);
}

static void vm_init(Vm *v) {
        vm_init_as(v, (FakeAzureMetadataOptions){ 0 });
}

static void vm_done(Vm *v) {
        http_ask_close(&v->ask);
        fake_azure_metadata_free(v->azure);
        fake_azure_events_free(v->events);
        http_ask_done(&v->ask);
}

static void expect(Vm *v, const char *path, unsigned status, const char *body) {
        AskRow row = { path, HTTP_GET, path, METADATA, NULL, status, body };

        http_ask_rows(&v->ask, &row, 1);
}

static void approve(Vm *v, const char *body, unsigned status) {
        AskRow row = { "approval", HTTP_POST, EVENTS, METADATA, body, status, NULL };

        http_ask_rows(&v->ask, &row, 1);
}

TEST_CASE(test_transport) {
        static const AskRow rows[] = {
                { "without the header", HTTP_GET, I V, NULL, NULL, 400, "*Required metadata header" },
                { "with another word", HTTP_GET, I V, "Metadata: yes\n", NULL, 400,
                  "*Required metadata header" },
                { "forwarded", HTTP_GET, I V, METADATA "X-Forwarded-For: 10.0.0.1\n", NULL, 400,
                  "*X-Forwarded-For" },
                { "without a version", HTTP_GET, I, METADATA, NULL, 400,
                  "*\"newest-versions\":[\"2023-07-01\",\"2021-12-13\",\"2021-02-01\"]" },
                { "with a version that is none", HTTP_GET, I "?api-version=2021-12-14", METADATA, NULL, 400,
                  "*\"newest-versions\":" },
                { "with a version of something else", HTTP_GET, "/metadata/scheduledevents" V, METADATA,
                  NULL, 400, "*\"newest-versions\":[\"2020-07-01\"" },
                { "events without a version", HTTP_GET, "/metadata/scheduledevents", METADATA, NULL, 400,
                  "*\"newest-versions\":[\"2020-07-01\"" },
                { "a version twice", HTTP_GET, I V "&api-version=2021-12-13", METADATA, NULL, 400,
                  "*more than once" },
                { "nothing", HTTP_GET, "/metadata/nothing" V, METADATA, NULL, 404, NULL },
                { "a POST", HTTP_POST, I V, METADATA, "{}", 405, NULL },
                { "a DELETE of events", HTTP_DELETE, EVENTS, METADATA, NULL, 405, NULL },
                { "a value without a format", HTTP_GET, I "/compute/name" V, METADATA, NULL, 400,
                  "*format=text" },
                { "a value as JSON", HTTP_GET, I "/compute/name" V "&format=json", METADATA, NULL, 400,
                  NULL },
                { "a value as text", HTTP_GET, I "/compute/name" V "&format=text", METADATA, NULL, 200,
                  "vm-a" },
                { "in no format", HTTP_GET, I V "&format=xml", METADATA, NULL, 400, NULL },
                { "no such value", HTTP_GET, I "/compute/nothing" V "&format=text", METADATA, NULL, 404,
                  NULL },
                { "names", HTTP_GET, I V "&format=text", METADATA, NULL, 200, "compute/\nnetwork/" },
                { "an element", HTTP_GET, I "/network/interface/0/macAddress" V "&format=text", METADATA,
                  NULL, 200, "000D3AF806EC" },
                { "no such element", HTTP_GET, I "/network/interface/1/macAddress" V "&format=text",
                  METADATA, NULL, 404, NULL },
                { "the whole", HTTP_GET, I V, METADATA, NULL, 200, "*{\"compute\":{\"azEnvironment\"" },
        };
        Vm v;

        vm_init(&v);
        http_ask_rows(&v.ask, rows, ELEMENTSOF(rows));
        vm_done(&v);
}

TEST_CASE(test_resource_ids) {
#define SUBSCRIPTION \
        "/subscriptions/8d10da13-8125-4ba9-a717-bf7490507b3d/resourceGroups/Fake-RG/providers/" \
        "Microsoft.Compute"
        static const struct {
                const char *what;
                FakeAzureMetadataOptions options;
                const char *id, *scale_set_id;
        } rows[] = {
                { "a VM", { .name = "vm-a" }, SUBSCRIPTION "/virtualMachines/vm-a", "" },
                { "of a flexible scale set",
                  { .name = "vm-a", .scale_set = "ss" },
                  SUBSCRIPTION "/virtualMachines/vm-a",
                  SUBSCRIPTION "/virtualMachineScaleSets/ss" },
                { "of a uniform scale set",
                  { .name = "ss_7", .scale_set = "ss", .instance = "7" },
                  SUBSCRIPTION "/virtualMachineScaleSets/ss/virtualMachines/7",
                  "" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Vm v;

                print_message("  %s\n", rows[i].what);
                vm_init_as(&v, rows[i].options);
                expect(&v, I "/compute/resourceId" V "&format=text", 200, rows[i].id);
                expect(&v, I "/compute/virtualMachineScaleSet/id" V "&format=text", 200,
                       rows[i].scale_set_id);
                expect(&v, I "/compute/name" V "&format=text", 200, rows[i].options.name);
                vm_done(&v);
        }
}

TEST_CASE(test_rates) {
        Vm v;

        vm_init(&v);
        fake_azure_metadata_set_unlimited(v.azure, false);
        for (unsigned round = 0; round < 3; round++) {
                for (unsigned i = 0; i < 5; i++)
                        expect(&v, I V, 200, NULL);
                expect(&v, I V, 429, NULL);
                expect(&v, EVENTS, 429, NULL);
                http_ask_run(&v.ask, USEC_PER_SEC);
        }
        for (unsigned i = 0; i < 20; i++)
                expect(&v, TOKEN ARM, 200, NULL);
        expect(&v, TOKEN ARM, 429, NULL);
        expect(&v, I V, 200, NULL); /* each has its own */
        vm_done(&v);
}

/* -- scheduled events ---------------------------------------------------------------------------------- */

TEST_CASE(test_first_call) {
        Asked a;
        Vm v;

        vm_init_as(&v, (FakeAzureMetadataOptions){ .first_call_usec = 2 * USEC_PER_MINUTE,
                                                   .watch_usec = 5 * USEC_PER_MINUTE });
        (void) fake_azure_events_add(
                v.events,
                &(FakeAzureEvent){ .type = "Reboot", .resources = "vm-a", .lead_usec = USEC_PER_HOUR });
        assert_false(fake_azure_metadata_is_watching(v.azure));
        http_ask_start(&v.ask, &a, HTTP_GET, EVENTS, METADATA, NULL);
        http_ask_run(&v.ask, 119 * USEC_PER_SEC);
        assert_false(a.done);
        http_ask_run(&v.ask, USEC_PER_SEC);
        assert_true(a.done);
        assert_int_equal(a.status, 200);
        assert_non_null(strstr(a.body, "\"Events\":[]"));
        asked_done(&a);
        assert_true(fake_azure_metadata_is_watching(v.azure));
        http_ask_run(&v.ask, 299 * USEC_PER_SEC);
        expect(&v, EVENTS, 200, NO_EVENTS);
        http_ask_run(&v.ask, USEC_PER_SEC);
        expect(&v, EVENTS, 200, "*\"EventType\":\"Reboot\"");

        /* A day of silence, and it begins again. */
        http_ask_run(&v.ask, USEC_PER_DAY);
        assert_false(fake_azure_metadata_is_watching(v.azure));
        http_ask_start(&v.ask, &a, HTTP_GET, EVENTS, METADATA, NULL);
        http_ask_run(&v.ask, USEC_PER_SEC);
        assert_false(a.done);
        asked_done(&a); /* gives up: that does not stop it */
        http_ask_run(&v.ask, 2 * USEC_PER_MINUTE);
        {
                _cleanup_asked_ Asked b = http_ask(&v.ask, HTTP_GET, EVENTS, METADATA, NULL);

                assert_int_equal(b.took_usec, 0);
        }
        vm_done(&v);
}

TEST_CASE(test_life_of_an_event) {
        Vm v;

        vm_init(&v);
        expect(&v, EVENTS, 200, "{\"DocumentIncarnation\":1,\"Events\":[]}");
        (void) fake_azure_events_add(v.events, &(FakeAzureEvent){
                                                       .id = "e-1",
                                                       .type = "Preempt",
                                                       .resources = "vm-a,vm-b",
                                                       .description = "spot",
                                                       .duration_sec = -1,
                                                       .lead_usec = 30 * USEC_PER_SEC,
                                                       .lasts_usec = USEC_PER_MINUTE,
                                               });
        expect(&v, EVENTS, 200,
               "{\"DocumentIncarnation\":2,\"Events\":[{\"EventId\":\"e-1\",\"EventStatus\":\"Scheduled\","
               "\"EventType\":\"Preempt\",\"ResourceType\":\"VirtualMachine\",\"Resources\":[\"vm-a\",\"vm-"
               "b\"],"
               "\"NotBefore\":\"Fri, 15 Jan 2027 08:00:30 "
               "GMT\",\"Description\":\"spot\",\"EventSource\":\"Platform\","
               "\"DurationInSeconds\":-1}]}");
        http_ask_run(&v.ask, 30 * USEC_PER_SEC);
        expect(&v, EVENTS, 200, "*\"DocumentIncarnation\":3,");
        expect(&v, EVENTS, 200, "*\"EventStatus\":\"Started\"");
        expect(&v, EVENTS, 200, "*\"NotBefore\":\"\"");
        http_ask_run(&v.ask, USEC_PER_MINUTE);
        expect(&v, EVENTS, 200, "{\"DocumentIncarnation\":4,\"Events\":[]}");

        /* A host that fails does not warn. */
        (void) fake_azure_events_add(
                v.events, &(FakeAzureEvent){ .id = "e-2", .type = "Reboot", .resources = "vm-a" });
        expect(&v, EVENTS, 200, "*\"EventStatus\":\"Started\"");
        assert_true(fake_azure_events_remove(v.events, "e-2"));
        assert_false(fake_azure_events_remove(v.events, "e-2"));
        expect(&v, EVENTS, 200, NO_EVENTS);
        vm_done(&v);
}

TEST_CASE(test_approval) {
        Vm v;

        vm_init(&v);
        (void) fake_azure_events_add(v.events, &(FakeAzureEvent){ .id = "e-1",
                                                                  .type = "Terminate",
                                                                  .resources = "vm-b,vm-a",
                                                                  .lead_usec = 5 * USEC_PER_MINUTE });
        approve(&v, "", 400);
        approve(&v, "{", 400);
        approve(&v, "{'StartRequests':[]}", 400);
        approve(&v, "{'StartRequests':[{'Event':'e-1'}]}", 400);
        approve(&v, "{'StartRequests':[{'EventId':'e-2'}]}", 400);
        expect(&v, EVENTS, 200, "*\"EventStatus\":\"Scheduled\"");
        assert_int_equal(fake_azure_events_n_approved(v.events), 0);
        http_ask_rows(&v.ask,
                      &(AskRow){ "without the header", HTTP_POST, EVENTS, NULL,
                                 "{'StartRequests':[{'EventId':'e-1'}]}", 400, NULL },
                      1);
        approve(&v, "{'StartRequests':[{'EventId':'e-1'}]}", 200);
        expect(&v, EVENTS, 200, "*\"EventStatus\":\"Started\"");
        approve(&v, "{'StartRequests':[{'EventId':'e-1'}]}", 200); /* again */
        assert_int_equal(fake_azure_events_n_approved(v.events), 2);
        http_ask_run(&v.ask, USEC_PER_HOUR);
        expect(&v, EVENTS, 200, "*\"EventStatus\":\"Started\"");
        fake_azure_events_clear(v.events);
        expect(&v, EVENTS, 200, NO_EVENTS);
        vm_done(&v);
}

TEST_CASE(test_versions) {
        static const struct {
                const char *version;
                bool terminate, preempt, description, source, duration;
        } rows[] = {
                { "2017-08-01", false, false, false, false, false },
                { "2017-11-01", false, true, false, false, false },
                { "2019-01-01", true, true, false, false, false },
                { "2019-04-01", true, true, true, false, false },
                { "2019-08-01", true, true, true, true, false },
                { "2020-07-01", true, true, true, true, true },
        };
        Vm v;

        vm_init(&v);
        (void) fake_azure_events_add(v.events,
                                     &(FakeAzureEvent){ .type = "Terminate", .resources = "vm-a" });
        (void) fake_azure_events_add(v.events, &(FakeAzureEvent){ .type = "Preempt", .resources = "vm-a" });
        (void) fake_azure_events_add(v.events, &(FakeAzureEvent){ .type = "Freeze", .resources = "vm-a" });
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *path =
                        strf("/metadata/scheduledevents?api-version=%s", rows[i].version);
                _cleanup_asked_ Asked a = http_ask(&v.ask, HTTP_GET, path, METADATA, NULL);

                print_message("  %s\n", rows[i].version);
                assert_int_equal(a.status, 200);
                assert_non_null(strstr(a.body, "Freeze"));
                assert_int_equal(!!strstr(a.body, "Terminate"), rows[i].terminate);
                assert_int_equal(!!strstr(a.body, "Preempt"), rows[i].preempt);
                assert_int_equal(!!strstr(a.body, "Description"), rows[i].description);
                assert_int_equal(!!strstr(a.body, "EventSource"), rows[i].source);
                assert_int_equal(!!strstr(a.body, "DurationInSeconds"), rows[i].duration);
        }
        vm_done(&v);
}

/* -- identity, faults ---------------------------------------------------------------------------------- */

TEST_CASE(test_identity) {
        static const char *const one[] = { "id-1", NULL }, *const two[] = { "id-1", "id-2", NULL };
        static const struct {
                const char *what;
                bool no_system;
                const char *const *user;
                const char *query, *headers;
                unsigned status;
                const char *part;
        } rows[] = {
                { "the system's", false, NULL, ARM, METADATA, 200, "\"client_id\":\"system-identity\"" },
                { "without the header", false, NULL, ARM, NULL, 400, "\"error\":\"bad_request_102\"" },
                { "without a version", false, NULL, "?resource=https://x", METADATA, 400,
                  "newest-versions" },
                { "for nothing", false, NULL, "?api-version=2018-02-01", METADATA, 400,
                  "\"error\":\"invalid_request\"" },
                { "for something unknown", false, NULL, "?api-version=2018-02-01&resource=x", METADATA, 400,
                  "\"error\":\"invalid_resource\"" },
                { "there is none", true, NULL, ARM, METADATA, 400, "Identity not found" },
                { "the only one", true, one, ARM, METADATA, 200, "\"client_id\":\"id-1\"" },
                { "one of two, which is not said", true, two, ARM, METADATA, 400, "Multiple user assigned" },
                { "one of two by client", true, two, ARM "&client_id=id-2", METADATA, 200,
                  "\"client_id\":\"id-2\"" },
                { "by object", true, two, ARM "&object_id=object-of-id-2", METADATA, 200,
                  "\"client_id\":\"id-2\"" },
                { "by resource", true, two, ARM "&msi_res_id=/identities/id-2", METADATA, 200,
                  "\"client_id\":\"id-2\"" },
                { "an unknown one", true, two, ARM "&client_id=id-3", METADATA, 400, "Identity not found" },
                { "named twice over", true, two, ARM "&client_id=id-1&object_id=object-of-id-1", METADATA,
                  400, "Only one of" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *path = strf(TOKEN "%s", rows[i].query),
                                    *part = strf("*%s", rows[i].part);
                AskRow row = { rows[i].what, HTTP_GET, path, rows[i].headers, NULL, rows[i].status, part };
                Vm v;

                vm_init_as(&v, (FakeAzureMetadataOptions){ .no_system_identity = rows[i].no_system,
                                                           .user_identities = rows[i].user });
                http_ask_rows(&v.ask, &row, 1);
                vm_done(&v);
        }
}

TEST_CASE(test_token_life) {
        _cleanup_free_ char *token = NULL;
        const char *begin;
        Vm v;

        vm_init(&v);
        {
                _cleanup_asked_ Asked a = http_ask(&v.ask, HTTP_GET, TOKEN ARM, METADATA, NULL);

                begin = strstr(a.body, "eyJ0");
                assert_non_null(begin);
                token = memdup_str(begin, strcspn(begin, "\""));
                assert_non_null(strstr(a.body, "\"expires_in\":\"3600\",\"expires_on\":\"1800003600\""));
                assert_non_null(strstr(
                        a.body,
                        "\"not_before\":\"1800000000\",\"resource\":\"https://management.azure.com/\""));
        }
        http_ask_run(&v.ask, 50 * USEC_PER_MINUTE);
        {
                _cleanup_asked_ Asked a = http_ask(&v.ask, HTTP_GET, TOKEN ARM, METADATA, NULL);

                assert_non_null(strstr(a.body, token));
                assert_non_null(strstr(a.body, "\"expires_in\":\"600\",\"expires_on\":\"1800003600\""));
        }
        http_ask_run(&v.ask, 6 * USEC_PER_MINUTE);
        {
                _cleanup_asked_ Asked a = http_ask(&v.ask, HTTP_GET, TOKEN ARM, METADATA, NULL);

                assert_null(strstr(a.body, token));
        }
        assert_true(fake_azure_metadata_token_is_good(v.azure, token, "https://management.azure.com/"));
        assert_false(fake_azure_metadata_token_is_good(v.azure, token, "https://vault.azure.net"));
        http_ask_run(&v.ask, 5 * USEC_PER_MINUTE);
        assert_false(fake_azure_metadata_token_is_good(v.azure, token, "https://management.azure.com/"));
        vm_done(&v);
}

TEST_CASE(test_faults) {
        Asked a;
        Vm v;

        vm_init(&v);
        fake_azure_metadata_fail(v.azure, FAKE_AZURE_EVENTS, 2, 410);
        expect(&v, EVENTS, 410, "{\"error\":\"Gone\"}");
        expect(&v, I V, 200, NULL);
        expect(&v, EVENTS, 410, NULL);
        expect(&v, EVENTS, 200, NO_EVENTS);
        fake_azure_metadata_garble(v.azure, FAKE_AZURE_EVENTS, 1, "");
        expect(&v, EVENTS, 200, "");
        fake_azure_metadata_fail(v.azure, FAKE_AZURE_IDENTITY, 1, 500);
        expect(&v, TOKEN ARM, 500, NULL);
        fake_azure_metadata_hang(v.azure, FAKE_AZURE_ALL, UINT_MAX);
        http_ask_start(&v.ask, &a, HTTP_GET, EVENTS, METADATA, NULL);
        http_ask_run(&v.ask, 10 * USEC_PER_MINUTE);
        assert_false(a.done);
        asked_done(&a);
        fake_azure_metadata_hang(v.azure, FAKE_AZURE_ALL, 0);
        fake_azure_metadata_set_name(v.azure, "other");
        expect(&v, I "/compute/name" V "&format=text", 200, "other");
        assert_int_equal(fake_azure_metadata_n_requests(v.azure), 8);
        vm_done(&v);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_transport),
                cmocka_unit_test(test_resource_ids),
                cmocka_unit_test(test_rates),
                cmocka_unit_test(test_first_call),
                cmocka_unit_test(test_life_of_an_event),
                cmocka_unit_test(test_approval),
                cmocka_unit_test(test_versions),
                cmocka_unit_test(test_identity),
                cmocka_unit_test(test_token_life),
                cmocka_unit_test(test_faults),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
