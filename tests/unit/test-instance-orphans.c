/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "instance-orphans.h"
#include "texts.h"

/* -- which of them are orphans -------------------------------------------------------------------------- */

#define LISTS_MAX 5u

/* What one instance is in a list: not listed, present and unknown, known, on its way, of no known state, twice there, or off. */
typedef enum Entry { NOT_LISTED = '-', UNKNOWN = 'u', KNOWN = 'k', ENDING = 'e', STATELESS = 's', TWICE = '2', SWITCHED_OFF = 'o' } Entry;

static bool on_is_known(const char *provider_id, void *userdata) {
        return streq(provider_id, "known");
}

static void on_orphan(const char *provider_id, usec_t since_usec, void *userdata) {
        usec_t *since = userdata;

        assert_string_equal(provider_id, "rack:7");
        assert_int_equal(*since, USEC_INFINITY); /* each is told once */
        *since = since_usec;
}

TEST_CASE(test_looks) {
        static const struct {
                const char *what;
                const char *entries; /* Entry, in each list */
                unsigned minutes[LISTS_MAX];
                unsigned orphan_at; /* the list that makes it one; 0: none */
                unsigned since_minute;
                bool ends_as_orphan;
        } rows[] = {
                { "one look, however late", "u", { 90 }, 0, 0, false },
                { "two looks ten minutes apart", "uu", { 1, 11 }, 2, 1, true },
                { "two looks nine minutes apart", "uu", { 1, 10 }, 0, 0, false },
                { "the third look", "uuu", { 1, 6, 11 }, 3, 1, true },
                { "known from the beginning", "kkk", { 1, 6, 11 }, 0, 0, false },
                { "it joined meanwhile", "uku", { 1, 6, 11 }, 0, 0, false },
                { "it was not listed meanwhile", "u-uuu", { 1, 6, 11, 16, 21 }, 5, 11, true },
                { "it was on its way", "ueu", { 1, 6, 11 }, 0, 0, false },
                { "its state was not known meanwhile", "usu", { 1, 6, 11 }, 0, 0, false },
                { "listed twice, as present and as ending", "222", { 1, 6, 11 }, 0, 0, false },
                { "it joins late", "uuuk", { 1, 6, 11, 16 }, 3, 1, false },
                { "it is ended by somebody", "uuu-", { 1, 6, 11, 16 }, 3, 1, false },
                { "switched off meanwhile, and left so", "uoo", { 1, 6, 11 }, 3, 1, true },
                { "told once", "uuuuu", { 1, 6, 11, 16, 21 }, 3, 1, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(instance_looks_freep) InstanceLooks *looks = NULL;
                usec_t since = USEC_INFINITY;

                print_message("  %s\n", rows[i].what);
                assert_return_code(instance_looks_new(&looks), 0);
                for (unsigned k = 0; k < strlen(rows[i].entries); k++) {
                        Entry e = (Entry) rows[i].entries[k];
                        CloudInstance list[] = {
                                { e == KNOWN ? "known" : "rack:7",
                                  e == ENDING      ? INSTANCE_TERMINATING
                                  : e == STATELESS ? INSTANCE_UNKNOWN
                                  : e == SWITCHED_OFF ? INSTANCE_OFF
                                                   : INSTANCE_PRESENT },
                                { "rack:7", INSTANCE_TERMINATING },
                        };
                        size_t n = e == NOT_LISTED ? 0 : e == TWICE ? 2 : 1;

                        assert_return_code(instance_looks_note(looks, list, n, rows[i].minutes[k] * USEC_PER_MINUTE,
                                                               on_is_known, on_orphan, &since),
                                           0);
                        assert_int_equal(since != USEC_INFINITY, rows[i].orphan_at > 0 && k + 1 >= rows[i].orphan_at);
                }
                if (rows[i].orphan_at > 0)
                        assert_int_equal(since, rows[i].since_minute * USEC_PER_MINUTE);
                assert_int_equal(instance_looks_orphans(looks), rows[i].ends_as_orphan);
        }
}

/* -- a leader ------------------------------------------------------------------------------------------- */

static size_t times_said(CoordinatorRig *r, const char *text) {
        return text_count(strbuf_str(&r->coordinators[0]->said), text);
}

static uint64_t orphans(CoordinatorRig *r) {
        return (uint64_t) rig_metric(rig_leader(r), "vesper_coordinator_orphaned_instances{provider=\"exec\"}");
}

/* Nodes n0 and n1, whose machines the command lists, and rack:7, of which nobody knows. */
static void begin(CoordinatorRig *r, CloudInstance list[3]) {
        static const char *const nodes[] = { "n0", "n1" };

        r->toy.is_exec = r->toy.lists = true;
        fake_add_nodepool(r->cluster, POOL, NULL, "exec");
        for (size_t i = 0; i < ELEMENTSOF(nodes); i++) {
                rig_add_node(r, nodes[i]);
                list[i] = (CloudInstance){ strdup(rig_machine(r, nodes[i])->provider_id), INSTANCE_PRESENT };
        }
        list[2] = (CloudInstance){ strdup("rack:7"), INSTANCE_PRESENT };
        r->toy.list = (CloudResult){ .outcome = CLOUD_OK, .instances = list, .n_instances = 3 };
        rig_start(r, 0);
        rig_run(r, 3 * USEC_PER_SEC);
        for (size_t i = 0; i < ELEMENTSOF(nodes); i++)
                assert_true(rig_is_adopted(r, nodes[i]));
}

static void list_done(CloudInstance list[3]) {
        for (size_t i = 0; i < 3; i++)
                free((char *) list[i].provider_id);
}

TEST_CASE(test_reported) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        CloudInstance list[3];

        begin(r, list);
        rig_run(r, 10 * USEC_PER_MINUTE);
        assert_int_equal(r->toy.n_listed, 2);
        assert_int_equal(orphans(r), 0);
        rig_run(r, 6 * USEC_PER_MINUTE);
        assert_int_equal(times_said(r, "Instance rack:7 of provider exec has had neither a Node nor a NodeClaim"), 1);
        assert_int_equal(orphans(r), 1);

        print_message("  a machine whose claim is all that is left is not one of them, nor is one whose Node is\n");
        fake_remove(r->cluster, FAKE_NODES, NULL, "n0");
        rig_run(r, USEC_PER_HOUR);
        assert_non_null(rig_claim(r, "n0"));
        assert_int_equal(orphans(r), 1);
        assert_int_equal(times_said(r, "has had neither"), 1);

        print_message("  it joins\n");
        fake_add_node(r->cluster, "late", NULL, NULL, NULL);
        fake_merge(r->cluster, FAKE_NODES, NULL, "late", "{'spec':{'providerID':'rack:7'}}");
        rig_run(r, 6 * USEC_PER_MINUTE);
        assert_int_equal(orphans(r), 0);
        list_done(list);
}

/* Objects that cannot be read hide no other, and the log names each number of them once. */
TEST_CASE(test_unreadable) {
        static const size_t numbers[] = { 2, 2, 0, 2, 3 };
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        CloudInstance list[3];
        unsigned n;

        begin(r, list);
        for (size_t i = 0; i < ELEMENTSOF(numbers); i++) {
                r->toy.list.n_unreadable = numbers[i];
                for (n = r->toy.n_listed; r->toy.n_listed == n;)
                        rig_run(r, USEC_PER_MINUTE);
        }
        assert_int_equal(times_said(r, "Failed to read 2 of the instances that provider exec lists"), 2);
        assert_int_equal(times_said(r, "Failed to read 3 of the instances that provider exec lists"), 1);
        assert_int_equal(orphans(r), 1);
        list_done(list);
}

static void on_no_nodes(const FakeRequest *request, FakeApiFault *fault, void *userdata) {
        if (request->resource && request->resource->id == FAKE_NODES)
                fault->status = 503;
}

/* What is absent from a view that does not stand proves nothing. */
TEST_CASE(test_view_is_old) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        CloudInstance list[3];

        begin(r, list);
        rig_run(r, 5 * USEC_PER_MINUTE);
        assert_int_equal(r->toy.n_listed, 1);
        fake_api_set_fault(r->api, on_no_nodes, NULL);
        fake_api_cut_watches(r->api);
        rig_run(r, 20 * USEC_PER_MINUTE);
        assert_int_equal(r->toy.n_listed, 1);
        assert_int_equal(times_said(r, "has had neither"), 0);
        list_done(list);
}

/* What a provider answers that gives no list, for an hour. */
TEST_CASE(test_no_list) {
        static const struct {
                CloudResult list;
                const char *said;
                bool is_off;
        } rows[] = {
                { { .outcome = CLOUD_INVALID, .code = CLOUD_UNSUPPORTED, .message = "no such verb" },
                  "Provider exec cannot list its instances", true },
                { { .outcome = CLOUD_INVALID, .code = "invalid", .message = "no such rack" },
                  "does not list its instances: no such rack", false },
                { { .outcome = CLOUD_DENIED, .message = "exited with 64" },
                  "does not list its instances: exited with 64", false },
                { { .outcome = CLOUD_RETRY, .message = "not now" }, "does not list its instances: not now", false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                CloudInstance list[3];

                print_message("  %s\n", rows[i].list.message);
                begin(r, list);
                r->toy.list = rows[i].list;
                rig_run(r, USEC_PER_HOUR);
                assert_int_equal(times_said(r, rows[i].said), 1);
                assert_in_range(r->toy.n_listed, rows[i].is_off ? 1 : 10, rows[i].is_off ? 1 : 14);
                assert_int_equal(orphans(r), 0);
                assert_int_equal(times_said(r, "has had neither"), 0);
                list_done(list);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_looks),
                cmocka_unit_test(test_reported),
                cmocka_unit_test(test_unreadable),
                cmocka_unit_test(test_view_is_old),
                cmocka_unit_test(test_no_list),
        };
        return cmocka_run_group_tests_name("instance-orphans", tests, NULL, NULL);
}
