/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cmocka-test.h"
#include "kube-rig.h"
#include "node-cleanup.h"

#define TIMEOUT_USEC (15 * USEC_PER_SEC)
#define NODE(version, meta, spec, conditions) \
        "{\"metadata\":{\"name\":\"n1\",\"uid\":\"u\",\"resourceVersion\":\"" version "\"" meta \
        "},\"spec\":{" spec "},\"status\":{\"conditions\":[" conditions "]}}"
#define CORDON_MARK "\"vesper.sh/cordoned-by-agent\":\"{\\\"bootID\\\":\\\"b\\\"}\""
#define INTERRUPTION "\"vesper.sh/interruption\":\"{}\""
#define OURS ",\"annotations\":{" CORDON_MARK "," INTERRUPTION "}"
#define CONDITION(type, reason) \
        "{\"type\":\"" type "\",\"status\":\"True\",\"reason\":\"" reason "\",\"message\":\"m\"}"

typedef struct Bench {
        Rig *rig;
        NodeCleanup *release;
        unsigned n_done;
        NodeCleanupResult result;
        char *message;
} Bench;

static void on_done(const NodeCleanupResult *result, void *userdata) {
        Bench *b = userdata;

        b->n_done++;
        b->result = *result;
        if (result->message)
                b->message = strdup(result->message);
}

/* The answers are in place; lets it come to its end. */
static void run(Bench *b) {
        assert_return_code(
                node_cleanup_new(b->rig->host->client, "n1", TIMEOUT_USEC, on_done, b, &b->release), 0);
        rig_run_for(b->rig, 2 * TIMEOUT_USEC);
        assert_int_equal(b->n_done, 1);
}

static void bench_done(Bench *b) {
        node_cleanup_free(b->release);
        free(b->message);
        rig_free(b->rig);
}
#define _cleanup_bench_ _cleanup_(bench_done)

static const char *body(const Bench *b, size_t i) {
        assert_true(i < b->rig->n_requests);
        return strempty(b->rig->requests[i].body);
}

TEST_CASE(test_takes_off) {
        _cleanup_bench_ Bench b = { .rig = rig_new() };

        rig_answer(b.rig, 200,
                   NODE("7", OURS, "\"unschedulable\":true", CONDITION("Drained", "VesperAgent")));
        rig_answer(b.rig, 409, "{\"kind\":\"Status\",\"reason\":\"Conflict\",\"message\":\"modified\"}");
        rig_answer(b.rig, 200,
                   NODE("8", OURS, "\"unschedulable\":true", CONDITION("Drained", "VesperAgent")));
        rig_answer(b.rig, 200, "{}");
        rig_answer(b.rig, 200, NODE("9", "", "", CONDITION("Drained", "VesperAgent")));
        rig_answer(b.rig, 200, "{}");
        rig_answer(b.rig, 200, NODE("10", "", "", ""));
        run(&b);

        assert_return_code(b.result.error, 0);
        assert_true(b.result.found);
        assert_true(b.result.uncordoned);
        assert_int_equal(b.rig->n_requests, 7);
        assert_int_equal(b.rig->requests[1].method, HTTP_PATCH);
        assert_string_equal(body(&b, 3),
                            "{\"metadata\":{\"resourceVersion\":\"8\",\"annotations\":{"
                            "\"vesper.sh/interruption\":null,\"vesper.sh/cordoned-by-agent\":null}},"
                            "\"spec\":{\"unschedulable\":null}}");
        assert_string_equal(b.rig->requests[5].path, "/api/v1/nodes/n1/status");
        assert_non_null(strstr(body(&b, 5), "{\"type\":\"Drained\",\"$patch\":\"delete\"}"));
}

/* What is not ours stays: a person's cordon, conditions of others. */
TEST_CASE(test_leaves) {
        static const struct {
                const char *what, *node;
                bool found;
                size_t n_requests;
        } rows[] = {
                { "nothing of ours", NODE("7", "", "", ""), false, 1 },
                { "a person's cordon", NODE("7", "", "\"unschedulable\":true", ""), false, 1 },
                { "a condition of somebody else", NODE("7", "", "", CONDITION("Drained", "Other")), false,
                  1 },
                { "our interruption under a person's cordon",
                  NODE("7", ",\"annotations\":{" INTERRUPTION "}", "\"unschedulable\":true", ""), true, 3 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_bench_ Bench b = { .rig = rig_new() };

                print_message("  %s\n", rows[i].what);
                rig_answer(b.rig, 200, rows[i].node);
                if (rows[i].found) {
                        rig_answer(b.rig, 200, "{}");
                        rig_answer(b.rig, 200, NODE("8", "", "\"unschedulable\":true", ""));
                }
                run(&b);
                assert_return_code(b.result.error, 0);
                assert_int_equal(b.result.found, rows[i].found);
                assert_false(b.result.uncordoned);
                assert_int_equal(b.rig->n_requests, rows[i].n_requests);
                if (rows[i].found)
                        assert_null(strstr(body(&b, 1), "unschedulable"));
        }
}

/* Nobody would reboot any more: the slot is for others. */
TEST_CASE(test_withdraws_request) {
        _cleanup_bench_ Bench b = { .rig = rig_new() };

        rig_answer(b.rig, 200,
                   NODE("7", ",\"annotations\":{\"vesper.sh/shutdown-request\":\"{}\"}", "", ""));
        rig_answer(b.rig, 200, "{}");
        rig_answer(b.rig, 200, NODE("8", "", "", ""));
        run(&b);
        assert_return_code(b.result.error, 0);
        assert_true(b.result.found);
        assert_int_equal(b.rig->n_requests, 3);
        assert_string_equal(body(&b, 1), "{\"metadata\":{\"resourceVersion\":\"7\",\"annotations\":{"
                                         "\"vesper.sh/shutdown-request\":null}}}");
}

TEST_CASE(test_no_node) {
        _cleanup_bench_ Bench b = { .rig = rig_new() };

        rig_answer(b.rig, 404, "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"message\":\"no n1\"}");
        run(&b);
        assert_return_code(b.result.error, 0);
        assert_false(b.result.found);
        assert_int_equal(b.rig->n_requests, 1);
}

TEST_CASE(test_refused) {
        _cleanup_bench_ Bench b = { .rig = rig_new() };

        rig_answer(b.rig, 403, "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"not yours\"}");
        run(&b);
        assert_int_equal(b.result.error, -EACCES);
        assert_string_equal(b.message, "not yours");
        assert_int_equal(b.rig->n_requests, 1);
}

TEST_CASE(test_silence) {
        _cleanup_bench_ Bench b = { .rig = rig_new() };
        usec_t begin = virtual_time_now(b.rig->time);

        for (int i = 0; i < 10; i++)
                rig_silence(b.rig);
        assert_return_code(
                node_cleanup_new(b.rig->host->client, "n1", TIMEOUT_USEC, on_done, &b, &b.release), 0);
        rig_run_until(b.rig->time, begin + TIMEOUT_USEC - 1);
        assert_int_equal(b.n_done, 0);
        rig_run_until(b.rig->time, begin + TIMEOUT_USEC);
        assert_int_equal(b.n_done, 1);
        assert_true(b.result.error < 0);
        assert_true(b.rig->n_requests > 1);
}

/* It goes on where it can; when the time is over, the last word of the server is told. */
TEST_CASE(test_unwell) {
        _cleanup_bench_ Bench well = { .rig = rig_new() }, ill = { .rig = rig_new() };

        rig_answer(well.rig, 500, "{\"kind\":\"Status\",\"message\":\"etcd is away\"}");
        rig_answer(well.rig, 200, NODE("7", "", "", ""));
        run(&well);
        assert_return_code(well.result.error, 0);
        assert_null(well.message);

        for (int i = 0; i < 200; i++)
                rig_answer(ill.rig, 500, "{\"kind\":\"Status\",\"message\":\"etcd is away\"}");
        run(&ill);
        assert_int_equal(ill.result.error, -ECOMM);
        assert_string_equal(ill.message, "etcd is away");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_takes_off),
                cmocka_unit_test(test_leaves),
                cmocka_unit_test(test_withdraws_request),
                cmocka_unit_test(test_no_node),
                cmocka_unit_test(test_refused),
                cmocka_unit_test(test_silence),
                cmocka_unit_test(test_unwell),
        };
        return cmocka_run_group_tests_name("node-cleanup", tests, NULL, NULL);
}
