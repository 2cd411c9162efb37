/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>

#include "cmocka-test.h"
#include "fake-gce-metadata.h"
#include "http-ask.h"
#include "string-util.h"

#define FLAVOR "Metadata-Flavor: Google\n"
#define V1 "/computeMetadata/v1/"
#define PREEMPTED V1 "instance/preempted"
#define EVENT V1 "instance/maintenance-event"
#define TOKEN V1 "instance/service-accounts/default/token"
#define MIGRATE "MIGRATE_ON_HOST_MAINTENANCE"
#define WAIT "?wait_for_change=true"

typedef struct Vm {
        HttpAsk ask;
        FakeGceMetadata *gce;
} Vm;

static void vm_init_as(Vm *v, FakeGceMetadataOptions o) {
        http_ask_init(&v->ask);
        o.name = "vm-a";
        v->gce = fake_gce_metadata_new(v->ask.loop, &o);
        http_ask_route(&v->ask, fake_gce_metadata_handle, v->gce);
}

static void vm_init(Vm *v) {
        vm_init_as(v, (FakeGceMetadataOptions){ .cluster_name = "c1" });
}

static void vm_done(Vm *v) {
        http_ask_close(&v->ask);
        fake_gce_metadata_free(v->gce);
        http_ask_done(&v->ask);
}

static Asked get(Vm *v, const char *path) {
        return http_ask(&v->ask, HTTP_GET, path, FLAVOR, NULL);
}

static void expect(Vm *v, const char *path, unsigned status, const char *body) {
        AskRow row = { path, HTTP_GET, path, FLAVOR, NULL, status, body };

        http_ask_rows(&v->ask, &row, 1);
}

/* "?wait_for_change=true&last_etag=..." of what is there now. */
static char *wait_path(Vm *v, const char *path, const char *more) {
        _cleanup_asked_ Asked a = get(v, path);
        char etag[256], *url;

        assert_int_equal(a.status, 200);
        url = strf("%s" WAIT "&last_etag=%s%s", path, asked_header(&a, "ETag", etag), more);
        assert_non_null(url);
        return url;
}

TEST_CASE(test_transport) {
        static const AskRow rows[] = {
                { "without the header", HTTP_GET, PREEMPTED, NULL, NULL, 403, NULL },
                { "with another flavour", HTTP_GET, PREEMPTED, "Metadata-Flavor: Azure\n", NULL, 403, NULL },
                { "forwarded", HTTP_GET, PREEMPTED, FLAVOR "X-Forwarded-For: 10.0.0.1\n", NULL, 403, NULL },
                { "a PUT", HTTP_PUT, PREEMPTED, FLAVOR, "x", 405, NULL },
                { "the root", HTTP_GET, "/", FLAVOR, NULL, 200, "computeMetadata/\n" },
                { "the root, unasked", HTTP_GET, "/", NULL, NULL, 403, NULL },
                { "another version", HTTP_GET, "/computeMetadata/v2/instance/id", FLAVOR, NULL, 404, NULL },
                { "nothing", HTTP_GET, V1 "instance/nothing", FLAVOR, NULL, 404, NULL },
                { "a directory without its slash", HTTP_GET, V1 "instance", FLAVOR, NULL, 301, NULL },
                { "the same, recursive", HTTP_GET, V1 "instance?recursive=true", FLAVOR, NULL, 301, NULL },
                { "a value with a slash", HTTP_GET, PREEMPTED "/", FLAVOR, NULL, 404, NULL },
                { "a listing", HTTP_GET, V1 "instance/scheduling/", FLAVOR, NULL, 200,
                  "automatic-restart\non-host-maintenance\npreemptible\n" },
                { "directories in a listing", HTTP_GET, V1, FLAVOR, NULL, 200, "instance/\nproject/\n" },
                { "alt on a listing", HTTP_GET, V1 "instance/scheduling/?alt=json", FLAVOR, NULL, 400,
                  NULL },
                { "waiting on a listing", HTTP_GET, V1 "instance/" WAIT, FLAVOR, NULL, 400, NULL },
                { "no such alt", HTTP_GET, PREEMPTED "?alt=xml", FLAVOR, NULL, 400, NULL },
                { "no time", HTTP_GET, PREEMPTED WAIT "&timeout_sec=soon", FLAVOR, NULL, 400, NULL },
                { "a subtree", HTTP_GET, V1 "instance/scheduling/?recursive=true", FLAVOR, NULL, 200,
                  "{\"automaticRestart\":\"TRUE\",\"onHostMaintenance\":\"MIGRATE\",\"preemptible\":"
                  "\"FALSE\"}" },
                { "a subtree as text", HTTP_GET, V1 "instance/scheduling/?recursive=true&alt=text", FLAVOR,
                  NULL, 200, "automatic-restart TRUE\non-host-maintenance MIGRATE\npreemptible FALSE\n" },
                { "names that people chose stay", HTTP_GET, V1 "instance/?recursive=true&alt=json", FLAVOR,
                  NULL, 200, "*\"attributes\":{\"cluster-name\":\"c1\"}" },
                { "names of directories do not", HTTP_GET, V1 "instance/?recursive=true", FLAVOR, NULL, 200,
                  "*\"maintenanceEvent\":\"NONE\"" },
                { "no token in a subtree", HTTP_GET, V1 "instance/service-accounts/default/?recursive=true",
                  FLAVOR, NULL, 200,
                  "{\"aliases\":[\"default\"],\"email\":\"739419398126-compute@developer.gserviceaccount."
                  "com\","
                  "\"scopes\":[\"https://www.googleapis.com/auth/cloud-platform\"]}" },
        };
        Vm v;

        vm_init(&v);
        http_ask_rows(&v.ask, rows, ELEMENTSOF(rows));
        vm_done(&v);
}

TEST_CASE(test_values) {
        static const struct {
                const char *path, *body; /* NULL: 404 */
        } rows[] = {
                { "instance/id", "4520031799277581759" },
                { "instance/id?alt=json", "4520031799277581759" },
                { "instance/name", "vm-a" },
                { "instance/name?alt=json", "\"vm-a\"" },
                { "instance/zone", "projects/739419398126/zones/us-central1-a" },
                { "instance/machine-type", "projects/739419398126/machineTypes/n2-standard-4" },
                { "project/project-id", "fake-project" },
                { "project/numeric-project-id", "739419398126" },
                { "instance/attributes/created-by", NULL },
                { "instance/attributes/cluster-name", "c1" },
                { "instance/scheduling/preemptible", "FALSE" },
                { "instance/scheduling/on-host-maintenance", "MIGRATE" },
                { "instance/preempted", "FALSE" },
                { "instance/maintenance-event", "NONE" },
                { "instance/shutdown-details/stop-state", NULL },
                { "instance/service-accounts/default/scopes",
                  "https://www.googleapis.com/auth/cloud-platform\n" },
                { "instance/service-accounts/other/token", NULL },
                { "instance/service-accounts//token", NULL },
        };
        Vm v;

        vm_init(&v);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *path = strf(V1 "%s", rows[i].path);

                expect(&v, path, rows[i].body ? 200 : 404, rows[i].body);
        }
        vm_done(&v);
}

TEST_CASE(test_headers) {
        static const char *const paths[] = { PREEMPTED, V1 "instance/nothing", V1 "instance" };
        Vm v;
        char h[256], again[256];

        vm_init(&v);
        for (size_t i = 0; i < ELEMENTSOF(paths); i++) {
                _cleanup_asked_ Asked a = get(&v, paths[i]);

                assert_string_equal(asked_header(&a, "Metadata-Flavor", h), "Google");
        }
        {
                _cleanup_asked_ Asked a = get(&v, PREEMPTED), b = get(&v, PREEMPTED "?alt=json"),
                                      c = get(&v, V1 "instance?recursive=true");

                assert_string_equal(asked_header(&a, "Content-Type", h), "application/text");
                assert_string_equal(asked_header(&b, "Content-Type", h), "application/json");
                assert_string_equal(asked_header(&a, "ETag", h), asked_header(&b, "ETag", again));
                assert_int_equal(strlen(h), 16);
                assert_non_null(strstr(asked_header(&c, "Location", h), V1 "instance/?recursive=true"));
        }
        fake_gce_metadata_set_stranger(v.gce, true);
        {
                _cleanup_asked_ Asked a = get(&v, PREEMPTED);

                assert_int_equal(a.status, 200);
                assert_string_equal(asked_header(&a, "Metadata-Flavor", h), "");
        }
        vm_done(&v);
}

/* -- hanging GETs -------------------------------------------------------------------------------------- */

TEST_CASE(test_wait_until_change) {
        _cleanup_free_ char *path = NULL;
        Asked a;
        Vm v;

        vm_init(&v);
        path = wait_path(&v, PREEMPTED, "&timeout_sec=60");
        http_ask_start(&v.ask, &a, HTTP_GET, path, FLAVOR, NULL);
        http_ask_run(&v.ask, 20 * USEC_PER_SEC);
        assert_false(a.done);
        assert_int_equal(fake_gce_metadata_n_waiting(v.gce), 1);
        fake_gce_metadata_set_maintenance(v.gce, MIGRATE); /* another key */
        http_ask_run(&v.ask, USEC_PER_SEC);
        assert_false(a.done);
        fake_gce_metadata_set_preempted(v.gce, true);
        http_ask_run(&v.ask, USEC_PER_MSEC);
        assert_true(a.done);
        assert_string_equal(a.body, "TRUE");
        assert_int_equal(a.took_usec, 21 * USEC_PER_SEC);
        assert_int_equal(fake_gce_metadata_n_waiting(v.gce), 0);
        asked_done(&a);
        vm_done(&v);
}

TEST_CASE(test_wait_until_timeout) {
        _cleanup_free_ char *path = NULL;
        char before[256], after[256];
        Vm v;

        vm_init(&v);
        path = wait_path(&v, PREEMPTED, "&timeout_sec=60");
        {
                _cleanup_asked_ Asked a = get(&v, PREEMPTED), b = get(&v, path);

                assert_int_equal(b.status, 200);
                assert_string_equal(b.body, "FALSE");
                assert_int_equal(b.took_usec, 60 * USEC_PER_SEC);
                assert_string_equal(asked_header(&a, "ETag", before), asked_header(&b, "ETag", after));
        }
        vm_done(&v);
}

/* What changed between two calls is told at once to him who says what he knows, and missed by him who does
 * not. */
TEST_CASE(test_last_etag) {
        _cleanup_free_ char *path = NULL;
        Vm v;

        vm_init(&v);
        path = wait_path(&v, PREEMPTED, "&timeout_sec=60");
        fake_gce_metadata_set_preempted(v.gce, true);
        {
                _cleanup_asked_ Asked zero = get(&v, EVENT WAIT "&last_etag=0&timeout_sec=60"),
                                      known = get(&v, path),
                                      unknown = get(&v, PREEMPTED WAIT "&timeout_sec=60");

                assert_string_equal(zero.body, "NONE");
                assert_int_equal(zero.took_usec, 0);
                assert_string_equal(known.body, "TRUE");
                assert_int_equal(known.took_usec, 0);
                assert_int_equal(unknown.took_usec, 60 * USEC_PER_SEC);
        }
        vm_done(&v);
}

TEST_CASE(test_wait_on_a_subtree) {
        Asked a;
        Vm v;

        vm_init(&v);
        http_ask_start(&v.ask, &a, HTTP_GET, V1 "instance/" WAIT "&recursive=true", FLAVOR, NULL);
        http_ask_run(&v.ask, USEC_PER_SEC);
        assert_false(a.done);
        fake_gce_metadata_set_preempted(v.gce, true);
        http_ask_run(&v.ask, USEC_PER_MSEC);
        assert_true(a.done);
        assert_non_null(strstr(a.body, "\"preempted\":\"TRUE\""));
        asked_done(&a);
        vm_done(&v);
}

TEST_CASE(test_client_that_leaves) {
        Asked a;
        Vm v;

        vm_init(&v);
        http_ask_start(&v.ask, &a, HTTP_GET, PREEMPTED WAIT, FLAVOR, NULL);
        http_ask_run(&v.ask, USEC_PER_SEC);
        asked_done(&a);
        http_ask_run(&v.ask, USEC_PER_SEC);
        assert_int_equal(fake_gce_metadata_n_waiting(v.gce), 0);
        fake_gce_metadata_set_preempted(v.gce, true);
        http_ask_start(&v.ask, &a, HTTP_GET, PREEMPTED WAIT, FLAVOR, NULL);
        http_ask_run(&v.ask, USEC_PER_SEC);
        asked_done(&a);
        vm_done(&v); /* and one that leaves with the transport */
}

/* -- notices ------------------------------------------------------------------------------------------- */

/* Seconds from a migration's announcement (60 s before it) until the VM could see it. */
static uint64_t seen_after(Vm *v) {
        uint64_t sec = 0;

        (void) fake_gce_metadata_migrate(v->gce, MIGRATE, 60 * USEC_PER_SEC, 10 * USEC_PER_SEC);
        for (; sec < 100; sec++) {
                _cleanup_asked_ Asked a = get(v, V1 "instance/?recursive=true");

                if (strstr(a.body, "\"maintenanceEvent\":\"" MIGRATE))
                        break;
                http_ask_run(&v->ask, USEC_PER_SEC);
        }
        return sec;
}

TEST_CASE(test_migration_warns_who_asked_itself) {
        Vm v;

        vm_init(&v);
        /* A parent does not count, and neither does a question without the header. */
        expect(&v, V1 "instance/?recursive=true", 200, NULL);
        http_ask_rows(&v.ask, &(AskRow){ "unasked", HTTP_GET, EVENT, NULL, NULL, 403, NULL }, 1);
        assert_int_equal(seen_after(&v), 60);
        http_ask_run(&v.ask, 11 * USEC_PER_SEC);
        expect(&v, V1 "instance/?recursive=true", 200, "*\"maintenanceEvent\":\"NONE\"");

        expect(&v, EVENT, 200, "NONE");
        assert_int_equal(seen_after(&v), 0);
        http_ask_run(&v.ask, 71 * USEC_PER_SEC);

        /* Once is for one event. */
        assert_int_equal(seen_after(&v), 60);
        http_ask_run(&v.ask, 11 * USEC_PER_SEC);
        expect(&v, EVENT, 200, "NONE");
        vm_done(&v);
}

TEST_CASE(test_who_hears_of_maintenance) {
        static const struct {
                const char *what;
                FakeGceMetadataOptions options;
                bool hears;
        } rows[] = {
                { "migrates", { 0 }, true },
                { "terminates", { .terminates = true }, false },
                { "is spot", { .spot = true }, false },
                { "has a GPU", { .terminates = true, .gpu = true }, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Vm v;

                print_message("  %s\n", rows[i].what);
                vm_init_as(&v, rows[i].options);
                expect(&v, EVENT, 200, "NONE");
                assert_int_equal(fake_gce_metadata_migrate(v.gce, "TERMINATE_ON_HOST_MAINTENANCE",
                                                           60 * USEC_PER_SEC, USEC_INFINITY),
                                 rows[i].hears);
                http_ask_run(&v.ask, 100 * USEC_PER_SEC);
                expect(&v, EVENT, 200, rows[i].hears ? "TERMINATE_ON_HOST_MAINTENANCE" : "NONE");
                fake_gce_metadata_withdraw(v.gce);
                expect(&v, EVENT, 200, "NONE");
                vm_done(&v);
        }
}

TEST_CASE(test_upcoming) {
        static const struct {
                FakeGceUpcoming none;
                unsigned status;
                const char *body;
        } rows[] = {
                { FAKE_GCE_UPCOMING_EMPTY, 200, "{}" },
                { FAKE_GCE_UPCOMING_NONE, 200, "\"NONE\"" },
                { FAKE_GCE_UPCOMING_ERROR, 200,
                  "{\"error\":\"no notifications have been received yet, try again later\"}" },
                { FAKE_GCE_UPCOMING_UNAVAILABLE, 503, NULL },
                { FAKE_GCE_UPCOMING_ABSENT, 404, NULL },
        };
        Vm v;

        vm_init(&v);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                fake_gce_metadata_set_upcoming_none(v.gce, rows[i].none);
                expect(&v, V1 "instance/upcoming-maintenance?alt=json", rows[i].status, rows[i].body);
        }
        fake_gce_metadata_set_upcoming(v.gce, "SCHEDULED", "PENDING", ASK_T0 + USEC_PER_HOUR,
                                       ASK_T0 + 2 * USEC_PER_HOUR, true);
        expect(&v, V1 "instance/upcoming-maintenance?alt=json", 200,
               "{\"can_reschedule\":\"true\",\"latest_window_start_time\":\"2027-01-15T09:00:00Z\","
               "\"maintenance_reasons\":\"PLANNED_UPDATE\",\"maintenance_status\":\"PENDING\","
               "\"type\":\"SCHEDULED\",\"window_end_time\":\"2027-01-15T10:00:00Z\","
               "\"window_start_time\":\"2027-01-15T09:00:00Z\"}");
        expect(&v, V1 "instance/upcoming-maintenance", 200,
               "*maintenance_status PENDING\n"); /* no JSON unasked */
        fake_gce_metadata_withdraw(v.gce);
        expect(&v, V1 "instance/upcoming-maintenance?alt=json", 404, NULL); /* the last way to say nothing */
        vm_done(&v);
}

TEST_CASE(test_graceful_shutdown) {
        Vm v;

        vm_init_as(&v, (FakeGceMetadataOptions){ .graceful_shutdown = true });
        expect(&v, V1 "instance/shutdown-details/stop-state", 200, "UNSPECIFIED");
        expect(&v, V1 "instance/shutdown-details/max-duration", 404, NULL);
        fake_gce_metadata_set_stop_state(v.gce, "PENDING_STOP", 600);
        expect(&v, V1 "instance/shutdown-details/stop-state", 200, "PENDING_STOP");
        expect(&v, V1 "instance/shutdown-details/max-duration", 200, "600");
        expect(&v, V1 "instance/shutdown-details/request-timestamp", 200, "2027-01-15T08:00:00Z");
        vm_done(&v);
}

/* -- identity, faults ---------------------------------------------------------------------------------- */

/* A token comes from a cache until five minutes before its end. */
TEST_CASE(test_token) {
        static const char first[] = "ya29.c.fake-";
        _cleanup_free_ char *token = NULL;
        const char *begin;
        Vm v;

        vm_init(&v);
        {
                _cleanup_asked_ Asked a = get(&v, TOKEN);

                assert_non_null(strstr(a.body, "\"expires_in\":3600,\"token_type\":\"Bearer\""));
                begin = strstr(a.body, first);
                assert_non_null(begin);
                token = memdup_str(begin, strcspn(begin, "\""));
        }
        http_ask_run(&v.ask, 54 * USEC_PER_MINUTE);
        {
                _cleanup_asked_ Asked a = get(&v, TOKEN);

                assert_non_null(strstr(a.body, token));
                assert_non_null(strstr(a.body, "\"expires_in\":360,"));
        }
        http_ask_run(&v.ask, 2 * USEC_PER_MINUTE);
        {
                _cleanup_asked_ Asked a = get(&v, TOKEN);

                assert_null(strstr(a.body, token));
        }
        assert_true(fake_gce_metadata_token_is_good(v.gce, token));
        http_ask_run(&v.ask, 5 * USEC_PER_MINUTE);
        assert_false(fake_gce_metadata_token_is_good(v.gce, token));
        assert_false(fake_gce_metadata_token_is_good(v.gce, "another"));
        vm_done(&v);

        vm_init_as(&v, (FakeGceMetadataOptions){ .no_service_account = true });
        expect(&v, TOKEN, 404, NULL);
        vm_done(&v);
}

TEST_CASE(test_intercepted) {
        Vm v;

        vm_init(&v);
        fake_gce_metadata_intercept(v.gce, true);
        expect(&v, PREEMPTED, 404, NULL);
        expect(&v, EVENT, 404, NULL);
        expect(&v, V1 "instance/", 404, NULL);
        expect(&v, V1 "instance/zone", 200, NULL);
        expect(&v, V1 "instance/attributes/cluster-name", 200, "c1");
        expect(&v, TOKEN, 200, NULL);
        vm_done(&v);
}

TEST_CASE(test_restart) {
        Asked a;
        Vm v;

        vm_init(&v);
        http_ask_start(&v.ask, &a, HTTP_GET, PREEMPTED WAIT, FLAVOR, NULL);
        http_ask_run(&v.ask, USEC_PER_SEC);
        fake_gce_metadata_restart(v.gce, 2 * USEC_PER_SEC);
        http_ask_run(&v.ask, USEC_PER_MSEC);
        assert_true(a.done);
        assert_int_equal(a.status, 503);
        expect(&v, PREEMPTED, 503, NULL);
        http_ask_run(&v.ask, 2 * USEC_PER_SEC);
        expect(&v, PREEMPTED, 200, "FALSE");
        asked_done(&a);
        vm_done(&v);
}

TEST_CASE(test_faults) {
        Asked a;
        Vm v;

        vm_init(&v);
        fake_gce_metadata_fail(v.gce, FAKE_GCE_ALL, 2, 503);
        expect(&v, PREEMPTED, 503, NULL);
        expect(&v, TOKEN, 503, NULL);
        expect(&v, PREEMPTED, 200, "FALSE");
        fake_gce_metadata_garble(v.gce, FAKE_GCE_DATA, UINT_MAX, "<html>");
        expect(&v, PREEMPTED, 200, "<html>");
        expect(&v, TOKEN, 200, NULL);
        fake_gce_metadata_hang(v.gce, FAKE_GCE_DATA, 1);
        http_ask_start(&v.ask, &a, HTTP_GET, PREEMPTED, FLAVOR, NULL);
        http_ask_run(&v.ask, 10 * USEC_PER_MINUTE);
        assert_false(a.done);
        asked_done(&a);
        fake_gce_metadata_set_name(v.gce, NULL);
        expect(&v, V1 "instance/name", 404, NULL);
        assert_int_equal(fake_gce_metadata_n_gets(v.gce), 7);
        vm_done(&v);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_transport),
                cmocka_unit_test(test_values),
                cmocka_unit_test(test_headers),
                cmocka_unit_test(test_wait_until_change),
                cmocka_unit_test(test_wait_until_timeout),
                cmocka_unit_test(test_last_etag),
                cmocka_unit_test(test_wait_on_a_subtree),
                cmocka_unit_test(test_client_that_leaves),
                cmocka_unit_test(test_migration_warns_who_asked_itself),
                cmocka_unit_test(test_who_hears_of_maintenance),
                cmocka_unit_test(test_upcoming),
                cmocka_unit_test(test_graceful_shutdown),
                cmocka_unit_test(test_token),
                cmocka_unit_test(test_intercepted),
                cmocka_unit_test(test_restart),
                cmocka_unit_test(test_faults),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
