/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "marks.h"
#include "page.h"

/* Nodes ask for slots as their agents do; what the coordinator answers. */

#define S USEC_PER_SEC
#define SETTLED (60 * S) /* the half minute of a new leader, and a list */

/* max: of MaxConcurrentReboots=, one digit. */
static CoordinatorRig *new_rig(const char *max, unsigned n_nodes) {
        CoordinatorRig *r = coordinator_rig_new();
        char slots[] = "Budget.MaxConcurrentReboots=?", slot[] = "Budget.RebootSlotSec=10min";

        slots[sizeof(slots) - 2] = max[0];
        r->settings[0] = slots;
        r->settings[1] = slot;
        rig_begin(r, n_nodes, NULL); /* reads them, once */
        r->settings[0] = r->settings[1] = NULL;
        return r;
}

static const char *annotation(CoordinatorRig *r, const char *node, const char *key) {
        return fj_string(rig_node(r, node), "metadata", "annotations", key, NULL);
}

/* id NULL: takes it back. in: it waits so long. */
static void ask(CoordinatorRig *r, const char *node, const char *id, usec_t in) {
        const char *boot = fj_string(rig_node(r, node), "status", "nodeInfo", "bootID", NULL);
        char until[RFC3339_MAX];

        rfc3339_format(loop_wall(r->w.loop) + in, until);
        if (id)
                fake_merge(r->cluster, FAKE_NODES, NULL, node,
                           "{'metadata':{'annotations':{'" ANNOTATION_SHUTDOWN_REQUEST
                           "':'{\\'id\\':\\'%s\\',\\'bootID\\':\\'%s\\',\\'kind\\':\\'reboot\\',\\'until\\':"
                           "\\'%s\\'}'}}}",
                           id, boot, until);
        else
                fake_merge(r->cluster, FAKE_NODES, NULL, node,
                           "{'metadata':{'annotations':{'" ANNOTATION_SHUTDOWN_REQUEST "':null}}}");
}

/* Is that request granted, by a grant that has not run out? */
static bool is_granted(CoordinatorRig *r, const char *node, const char *id) {
        const char *text = annotation(r, node, ANNOTATION_SHUTDOWN_GRANTED);
        cJSON *grant = text ? cJSON_Parse(text) : NULL;
        bool granted = false;
        usec_t until;

        if (grant)
                granted = streq_ptr(fj_string(grant, "id", NULL), id) &&
                          rfc3339_parse(fj_string(grant, "until", NULL), &until) >= 0 &&
                          until > loop_wall(r->w.loop);
        cJSON_Delete(grant);
        return granted;
}

/* It runs again, in a new boot; ready: its kubelet, too. */
static void boot(CoordinatorRig *r, const char *node, const char *id, bool ready) {
        fake_cluster_set_kubelet(r->cluster, node, ready);
        fake_merge(r->cluster, FAKE_NODES, NULL, node,
                   "{'status':{'nodeInfo':{'bootID':'%s'},'conditions':[{'type':'Ready','status':'%s'}]}}",
                   id, ready ? "True" : "False");
}

static bool metrics_say(CoordinatorRig *r, const char *line) {
        _cleanup_page_ Page p =
                page_ask(coordinator_handle, rig_leader(r)->coordinator, HTTP_GET, "/metrics");

        return strstr(p.body, line) != NULL;
}

static void refuse_lists(const FakeRequest *request, FakeApiFault *ret_fault, void *userdata) {
        if (request->verb == FAKE_LIST)
                ret_fault->status = 503;
}

TEST_CASE(test_one_by_one) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig("1", 3);

        print_message("  who runs out of patience first is first; not before the leader has settled\n");
        ask(r, "n1", "b", 3000 * S);
        ask(r, "n0", "a", 3600 * S);
        ask(r, "n2", "c", 3300 * S);
        rig_run(r, 5 * S);
        assert_null(annotation(r, "n1", ANNOTATION_SHUTDOWN_GRANTED));
        assert_true(rig_event_says(r, "n1", "RebootWaits", "lists all Nodes first"));
        rig_run(r, SETTLED);
        assert_true(is_granted(r, "n1", "b"));
        assert_false(is_granted(r, "n0", "a"));
        assert_false(is_granted(r, "n2", "c"));
        assert_true(rig_has_event(r, "n1", "RebootGranted"));
        assert_true(metrics_say(r, "vesper_coordinator_reboot_slots_held 1\n"));
        assert_true(metrics_say(r, "vesper_coordinator_reboots_waiting 2\n"));
        assert_true(metrics_say(r, "vesper_coordinator_reboots_granted_total 1\n"));
        assert_true(rig_event_says(r, "n0", "RebootWaits", "held by n1 until"));
        assert_non_null(strstr(strbuf_str(&rig_leader(r)->said), "Node n1 may reboot now"));
        assert_non_null(strstr(strbuf_str(&rig_leader(r)->said), "Waiting: n2, n0"));
        rig_run(r, 120 * S);
        assert_false(is_granted(r, "n2", "c"));

        print_message("  down, up and not Ready: the slot is kept; Ready: the next one\n");
        boot(r, "n1", "n1-boot-2", false);
        rig_run(r, 60 * S);
        assert_false(is_granted(r, "n2", "c"));
        boot(r, "n1", "n1-boot-2", true);
        rig_run(r, 2 * S);
        assert_true(is_granted(r, "n2", "c"));
        assert_null(annotation(r, "n1", ANNOTATION_SHUTDOWN_GRANTED)); /* taken off again */
        assert_non_null(strstr(strbuf_str(&rig_leader(r)->said), "is Ready after its reboot"));

        print_message("  withdrawn: the next one, and nothing of ours is left\n");
        ask(r, "n2", NULL, 0);
        rig_run(r, 2 * S);
        assert_null(annotation(r, "n2", ANNOTATION_SHUTDOWN_GRANTED));
        assert_true(is_granted(r, "n0", "a"));

        print_message("  its slot runs out: told, given to the next, and not granted again\n");
        ask(r, "n2", "d", 6000 * S);
        rig_run(r, 590 * S);
        assert_false(is_granted(r, "n2", "d"));
        rig_run(r, 15 * S);
        assert_true(is_granted(r, "n2", "d"));
        assert_true(rig_has_event(r, "n0", "RebootSlotExpired"));
        ask(r, "n2", NULL, 0);
        rig_run(r, 60 * S);
        assert_false(is_granted(r, "n0", "a"));
        print_message("  asked anew: granted again\n");
        ask(r, "n0", "e", 3600 * S);
        rig_run(r, 2 * S);
        assert_true(is_granted(r, "n0", "e"));
        ask(r, "n0", NULL, 0);
        rig_run(r, 2 * S);
        for (unsigned i = 0; i < 3; i++) {
                _cleanup_free_ char *node = MUST(strf("n%u", i));

                assert_null(annotation(r, node, ANNOTATION_SHUTDOWN_GRANTED));
        }
}

TEST_CASE(test_several) {
        static const struct {
                const char *max;
                unsigned granted;
        } rows[] = { { "0", 0 }, { "2", 2 }, { "3", 3 }, { "9", 5 } };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(rows[i].max, 5);
                unsigned granted = 0;

                print_message("  MaxConcurrentReboots=%s\n", rows[i].max);
                for (unsigned n = 0; n < 5; n++) {
                        _cleanup_free_ char *node = MUST(strf("n%u", n));

                        ask(r, node, node, (3600 + n) * S);
                }
                rig_run(r, SETTLED);
                for (unsigned n = 0; n < 5; n++) {
                        _cleanup_free_ char *node = MUST(strf("n%u", n));

                        assert_int_equal(is_granted(r, node, node), n < rows[i].granted);
                        granted += is_granted(r, node, node);
                }
                assert_int_equal(granted, rows[i].granted);
                if (granted == 0)
                        assert_true(rig_event_says(r, "n0", "RebootWaits", "MaxConcurrentReboots=0"));
        }
}

/* A reload lets the first go, and the second. */
TEST_CASE(test_more_slots) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig("0", 3);

        ask(r, "n0", "a", 3600 * S);
        ask(r, "n1", "b", 3601 * S);
        ask(r, "n2", "c", 3602 * S);
        rig_run(r, SETTLED);
        for (unsigned max = 1; max <= 2; max++) {
                assert_false(is_granted(r, "n0", "a") && is_granted(r, "n1", "b"));
                r->config.max_concurrent_reboots = max;
                coordinator_reconfigured(rig_leader(r)->coordinator);
                rig_run(r, 2 * S);
                assert_true(is_granted(r, "n0", "a"));
                assert_int_equal(is_granted(r, "n1", "b"), max == 2);
                assert_false(is_granted(r, "n2", "c"));
        }
}

TEST_CASE(test_not_granted) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig("1", 3);

        rig_run(r, SETTLED);
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                   "{'metadata':{'annotations':{'" ANNOTATION_SHUTDOWN_REQUEST "':'reboot me'}}}");
        fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n1", .stuck = true });
        rig_delete_node(r, "n1");
        ask(r, "n1", "b", 3600 * S);
        rig_run(r, 5 * S);
        assert_true(rig_event_says(r, "n0", "RebootNotGranted", "cannot be read"));
        assert_true(rig_event_says(r, "n1", "RebootNotGranted", "being deleted"));
        assert_null(annotation(r, "n0", ANNOTATION_SHUTDOWN_GRANTED));
        assert_null(annotation(r, "n1", ANNOTATION_SHUTDOWN_GRANTED));
        print_message("  they keep nobody else waiting\n");
        ask(r, "n2", "c", 3600 * S);
        rig_run(r, SETTLED);
        assert_true(is_granted(r, "n2", "c"));
        print_message("  patience that is over is no request\n");
        ask(r, "n2", NULL, 0);
        ask(r, "n0", "d", 0);
        rig_run(r, 10 * S);
        assert_false(is_granted(r, "n0", "d"));
}

TEST_CASE(test_node_gone) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig("1", 2);

        ask(r, "n0", "a", 3000 * S);
        ask(r, "n1", "b", 3600 * S);
        rig_run(r, SETTLED);
        assert_true(is_granted(r, "n0", "a"));
        fake_remove(r->cluster, FAKE_NODES, NULL, "n0");
        rig_run(r, 2 * S);
        assert_true(is_granted(r, "n1", "b"));
        assert_non_null(strstr(strbuf_str(&rig_leader(r)->said), "the Node is gone"));
}

/* The next leader goes by what stands on the Nodes. */
TEST_CASE(test_takeover) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig("1", 3);

        rig_start(r, 1);
        ask(r, "n0", "a", 3000 * S);
        ask(r, "n1", "b", 3600 * S);
        rig_run(r, SETTLED);
        assert_true(is_granted(r, "n0", "a"));
        rig_kill(r, 0);
        rig_run(r, 120 * S);
        assert_non_null(rig_leader(r));
        assert_true(is_granted(r, "n0", "a"));
        assert_false(is_granted(r, "n1", "b"));
        assert_false(strstr(strbuf_str(&rig_leader(r)->said), "may reboot now") != NULL);
        boot(r, "n0", "n0-boot-2", true);
        rig_run(r, SETTLED);
        assert_true(is_granted(r, "n1", "b"));
}

/* A leader whose watch lies behind finds in its list what it has not seen yet. */
TEST_CASE(test_watch_behind) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig("1", 3);
        char until[RFC3339_MAX];

        ask(r, "n1", "b", 3600 * S);
        rig_run(r, 5 * S);
        /* From here on nothing comes to it by watch; the leader before it granted n0 just then. */
        assert_false(is_granted(r, "n1", "b"));
        fake_api_stall_watches(r->api, virtual_time_now(r->w.time) + SETTLED + 5 * S);
        ask(r, "n0", "a", 3600 * S);
        rfc3339_format(loop_wall(r->w.loop) + 300 * S, until);
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                   "{'metadata':{'annotations':{'" ANNOTATION_SHUTDOWN_GRANTED
                   "':'{\\'id\\':\\'a\\',\\'until\\':\\'%s\\'}'}}}",
                   until);
        rig_run(r, SETTLED);
        assert_true(is_granted(r, "n0", "a"));
        assert_false(is_granted(r, "n1", "b"));
        print_message("  it sees that the slot is free: the next one\n");
        ask(r, "n0", NULL, 0);
        rig_run(r, 30 * S);
        assert_true(is_granted(r, "n1", "b"));
}

/* More nodes than a page of the list has, and a list that fails at first: nobody is granted before it is
 * whole. */
TEST_CASE(test_long_list) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        char until[RFC3339_MAX];
        uint64_t lists;

        for (unsigned i = 0; i < 510; i++) {
                _cleanup_free_ char *name = MUST(strf("a%03u", i));

                fake_add_node(r->cluster, name, NULL, NULL, NULL);
        }
        rig_begin(r, 1, NULL);
        ask(r, "n0", "b", 3600 * S);
        rig_run(r, 5 * S);
        /* The last one by name, granted unseen. */
        fake_api_stall_watches(r->api, virtual_time_now(r->w.time) + SETTLED + 20 * S);
        ask(r, "a509", "a", 3600 * S);
        rfc3339_format(loop_wall(r->w.loop) + 300 * S, until);
        fake_merge(r->cluster, FAKE_NODES, NULL, "a509",
                   "{'metadata':{'annotations':{'" ANNOTATION_SHUTDOWN_GRANTED
                   "':'{\\'id\\':\\'a\\',\\'until\\':\\'%s\\'}'}}}",
                   until);
        /* What is no grant, found there too. */
        fake_merge(r->cluster, FAKE_NODES, NULL, "a001",
                   "{'metadata':{'annotations':{'" ANNOTATION_SHUTDOWN_GRANTED "':'{}'}}}");
        lists = fake_api_count_status(r->api, FAKE_LIST, FAKE_NODES, NULL, 200);
        rig_run(r, 15 * S);
        fake_api_set_fault(r->api, refuse_lists, NULL);
        rig_run(r, 20 * S);
        assert_int_equal(fake_api_count_status(r->api, FAKE_LIST, FAKE_NODES, NULL, 200), lists);
        assert_true(fake_api_count_status(r->api, FAKE_LIST, FAKE_NODES, NULL, 503) > 0);
        fake_api_set_fault(r->api, NULL, NULL);
        rig_run(r, SETTLED - 20 * S);
        assert_int_equal(fake_api_count_status(r->api, FAKE_LIST, FAKE_NODES, NULL, 200), lists + 2);
        assert_false(is_granted(r, "n0", "b"));
        ask(r, "a509", NULL, 0);
        rig_run(r, 60 * S);
        assert_true(is_granted(r, "n0", "b"));
}

/* The answer to the last request stands where the next one is made: it is taken off first. */
TEST_CASE(test_stale_answer) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig("1", 1);

        rig_run(r, SETTLED);
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                   "{'metadata':{'annotations':{'" ANNOTATION_SHUTDOWN_GRANTED "':'of another time'}}}");
        ask(r, "n0", "a", 3600 * S);
        rig_run(r, 5 * S);
        assert_true(is_granted(r, "n0", "a"));
}

/* Nobody knows what became of a grant: it is counted, sent again, and nobody else gets one. */
TEST_CASE(test_lost_answers) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig("1", 2);

        rig_run(r, SETTLED);
        ask(r, "n0", "a", 3000 * S);
        ask(r, "n1", "b", 3600 * S);
        fake_api_away_until(r->api, virtual_time_now(r->w.time) + 40 * S);
        rig_run(r, 200 * S);
        assert_true(is_granted(r, "n0", "a") != is_granted(r, "n1", "b"));
}

/* -- what is on its way ----------------------------------------------------------------------------------- */

/* Patches of Nodes and lists take so long; the first so many patches fail. */
typedef struct Slow {
        usec_t patch_usec, list_usec;
        unsigned n_failing, n_patches, n_lists;
} Slow;

static void on_slow(const FakeRequest *request, FakeApiFault *ret_fault, void *userdata) {
        Slow *s = userdata;

        if (!request->resource || request->resource->id != FAKE_NODES || request->subresource)
                return;
        if (request->verb == FAKE_PATCH) {
                ret_fault->delay_usec = s->patch_usec;
                ret_fault->status = s->n_patches++ < s->n_failing ? 500 : 0;
        } else if (request->verb == FAKE_LIST) {
                ret_fault->delay_usec = s->list_usec;
                s->n_lists++;
        }
}

static unsigned n_granted(CoordinatorRig *r, unsigned n_nodes) {
        unsigned n = 0;

        for (unsigned i = 0; i < n_nodes; i++) {
                _cleanup_free_ char *node = MUST(strf("n%u", i));

                n += is_granted(r, node, node);
        }
        return n;
}

/* Its grant is on its way for seconds: nobody else's is sent meanwhile, be they more urgent, and who gets it is not told that it
 * waits. */
TEST_CASE(test_grant_on_its_way) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig("1", 3);
        Slow slow = { .patch_usec = 4 * S };

        rig_run(r, SETTLED);
        ask(r, "n2", "n2", 6000 * S); /* the first grant of a leader waits for its list */
        rig_run(r, 2 * S);
        ask(r, "n2", NULL, 0);
        rig_run(r, 2 * S);
        fake_api_set_fault(r->api, on_slow, &slow);
        ask(r, "n0", "n0", 3600 * S);
        rig_run(r, S);
        assert_int_equal(slow.n_patches, 1);
        assert_int_equal(n_granted(r, 3), 0);
        assert_true(metrics_say(r, "vesper_coordinator_reboot_slots_held 1\n"));
        ask(r, "n1", "n1", 1000 * S);
        for (unsigned i = 0; i < 100; i++) {
                rig_run(r, S / 10);
                assert_true(n_granted(r, 3) <= 1);
        }
        assert_int_equal(slow.n_patches, 1);
        assert_true(is_granted(r, "n0", "n0"));
        assert_false(rig_has_event(r, "n0", "RebootWaits"));
        assert_true(rig_event_says(r, "n1", "RebootWaits", "held by n0"));

        print_message("  given back: the next one, as slowly, and once\n");
        ask(r, "n0", NULL, 0);
        rig_run(r, 30 * S);
        assert_true(is_granted(r, "n1", "n1"));
        fake_api_set_fault(r->api, NULL, NULL);
}

/* The Node goes while its grant is on its way: the slot is the next one's. */
TEST_CASE(test_gone_with_its_grant) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig("1", 2);
        Slow slow = { .patch_usec = 5 * S };

        rig_run(r, SETTLED);
        ask(r, "n1", "n1", 6000 * S);
        rig_run(r, 2 * S);
        ask(r, "n1", NULL, 0);
        rig_run(r, 2 * S);
        fake_api_set_fault(r->api, on_slow, &slow);
        ask(r, "n0", "n0", 3000 * S);
        ask(r, "n1", "n1", 3600 * S);
        rig_run(r, S);
        fake_remove(r->cluster, FAKE_NODES, NULL, "n0");
        rig_run(r, 30 * S);
        assert_true(is_granted(r, "n1", "n1"));
        fake_api_set_fault(r->api, NULL, NULL);
}

/* Refused again and again: sent again, until it is taken. */
TEST_CASE(test_grant_fails) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig("1", 2);
        Slow slow = { .n_failing = 4 };

        rig_run(r, SETTLED);
        fake_api_set_fault(r->api, on_slow, &slow);
        ask(r, "n0", "n0", 3000 * S);
        ask(r, "n1", "n1", 3600 * S);
        rig_run(r, SETTLED);
        assert_true(is_granted(r, "n0", "n0"));
        assert_false(is_granted(r, "n1", "n1"));
        assert_in_range(slow.n_patches, 5, 7);
        fake_api_set_fault(r->api, NULL, NULL);
}

/* An answer without a request is taken off, if not at once. */
TEST_CASE(test_stale_answer_stays) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig("1", 1);
        Slow slow = { .n_failing = 3 };

        rig_run(r, SETTLED);
        fake_api_set_fault(r->api, on_slow, &slow);
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                   "{'metadata':{'annotations':{'" ANNOTATION_SHUTDOWN_GRANTED "':'of another time'}}}");
        rig_run(r, 60 * S);
        assert_null(annotation(r, "n0", ANNOTATION_SHUTDOWN_GRANTED));
        fake_api_set_fault(r->api, NULL, NULL);
}

/* The first list of a leader takes its time: it is asked for once, whatever happens meanwhile. */
TEST_CASE(test_slow_list) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig("1", 2);
        Slow slow = { .list_usec = 10 * S };

        fake_api_set_fault(r->api, on_slow, &slow);
        ask(r, "n0", "n0", 3600 * S);
        while (slow.n_lists == 0)
                rig_run(r, S / 10);
        for (unsigned i = 0; i < 5; i++) {
                ask(r, "n1", "n1", (3000 - i) * S);
                rig_run(r, S);
        }
        assert_int_equal(slow.n_lists, 1);
        assert_int_equal(n_granted(r, 2), 0);
        rig_run(r, 10 * S);
        assert_int_equal(slow.n_lists, 1);
        assert_true(is_granted(r, "n0", "n0")); /* it asked first */
        assert_false(is_granted(r, "n1", "n1"));
        fake_api_set_fault(r->api, NULL, NULL);
}

/* What the list has found and the watch never brings counts until its time, and no longer. */
TEST_CASE(test_found_runs_out) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig("1", 2);
        char until[RFC3339_MAX];

        ask(r, "n1", "b", 3600 * S);
        rig_run(r, 5 * S);
        fake_api_stall_watches(r->api, virtual_time_now(r->w.time) + 600 * S);
        ask(r, "n0", "a", 3600 * S);
        rfc3339_format(loop_wall(r->w.loop) + 100 * S, until);
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                   "{'metadata':{'annotations':{'" ANNOTATION_SHUTDOWN_GRANTED
                   "':'{\\'id\\':\\'a\\',\\'until\\':\\'%s\\'}'}}}",
                   until);
        rig_run(r, 95 * S);
        assert_false(is_granted(r, "n1", "b"));
        coordinator_reconfigured(rig_leader(r)->coordinator);
        rig_run(r, S);
        assert_false(is_granted(r, "n1", "b"));
        rig_run(r, 10 * S);
        coordinator_reconfigured(rig_leader(r)->coordinator); /* it looks again */
        rig_run(r, S);
        assert_true(is_granted(r, "n1", "b"));
}

/* A kubelet may write both annotations of its own Node: what it grants itself holds no slot. */
TEST_CASE(test_grants_itself) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig("1", 2);

        for (unsigned i = 0; i < 2; i++) { /* and it tries again */
                ask(r, "n0", "a", 600000 * S);
                fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                           "{'metadata':{'annotations':{'" ANNOTATION_SHUTDOWN_GRANTED
                           "':'{\\'id\\':\\'a\\',\\'until\\':\\'2099-01-01T00:00:00Z\\'}'}}}");
                rig_run(r, 2 * S);
                if (i == 0)
                        ask(r, "n1", "b", 3600 * S);
                rig_run(r, SETTLED);
                assert_true(is_granted(r, "n1", "b"));
                assert_null(annotation(r, "n0", ANNOTATION_SHUTDOWN_GRANTED));
                assert_true(rig_event_says(r, "n0", "RebootGrantTooLong", "no coordinator wrote it"));
        }
        assert_true(metrics_say(r, "vesper_coordinator_reboot_slots_held 1\n"));
}

/* Its own patience is what a node can choose: it comes behind who waits already each time it asks anew. */
TEST_CASE(test_asks_again_and_again) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig("1", 3);

        ask(r, "n0", "a", 700 * S);
        rig_run(r, SETTLED);
        assert_true(is_granted(r, "n0", "a"));
        ask(r, "n1", "b", 90000 * S);
        rig_run(r, 10 * S);
        ask(r, "n0", "a2", 700 * S);
        rig_run(r, 5 * S);
        assert_true(is_granted(r, "n1", "b"));
        assert_false(is_granted(r, "n0", "a2"));

        print_message("  who let a slot run out comes behind those that ask later\n");
        ask(r, "n1", NULL, 0);
        rig_run(r, 5 * S);
        assert_true(is_granted(r, "n0", "a2"));
        rig_run(r, 605 * S);
        assert_true(rig_has_event(r, "n0", "RebootSlotExpired"));
        ask(r, "n0", NULL, 0);
        ask(r, "n2", "c", 3600 * S);
        rig_run(r, 5 * S);
        assert_true(is_granted(r, "n2", "c"));
        ask(r, "n0", "a3", 700 * S);
        rig_run(r, 5 * S);
        ask(r, "n1", "b2", 90000 * S);
        rig_run(r, 5 * S);
        ask(r, "n2", NULL, 0);
        rig_run(r, 5 * S);
        assert_true(is_granted(r, "n1", "b2"));
        ask(r, "n1", NULL, 0);
        rig_run(r, 5 * S);
        assert_true(is_granted(r, "n0", "a3"));
}

/* More that wait than each change is told to: the first word each of them hears. */
TEST_CASE(test_many_wait) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig("1", 13);

        for (unsigned i = 0; i < 13; i++) {
                _cleanup_free_ char *node = MUST(strf("n%u", i));

                ask(r, node, node, (3600 + i) * S);
        }
        rig_run(r, SETTLED);
        for (unsigned i = 1; i < 13; i++) {
                _cleanup_free_ char *node = MUST(strf("n%u", i));

                assert_true(rig_has_event(r, node, "RebootWaits"));
        }
}

/* What the leader before has told is not told again: neither a slot that is held, nor one that ran out. */
TEST_CASE(test_takeover_tells_nothing_twice) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig("2", 2);

        ask(r, "n0", "a", 3000 * S);
        rig_run(r, SETTLED + 590 * S);
        ask(r, "n1", "b", 3600 * S);
        rig_run(r, 60 * S);
        assert_true(rig_has_event(r, "n0", "RebootSlotExpired"));
        assert_true(is_granted(r, "n1", "b"));
        rig_start(r, 1);
        rig_run(r, 5 * S);
        rig_kill(r, 0);
        rig_run(r, 120 * S);
        assert_non_null(rig_leader(r));
        assert_null(strstr(strbuf_str(&rig_leader(r)->said), "was not Ready again in time"));
        assert_null(strstr(strbuf_str(&rig_leader(r)->said), "may reboot now"));
}

static size_t n_charges(CoordinatorRig *r) {
        return (size_t) cJSON_GetArraySize(
                fj_get(fake_get(r->cluster, FAKE_NDBS, NULL, "nodes"), "status", "disruptedNodes", NULL));
}

/* A leader that has led for long does not say that it lists the Nodes first, while and after it asks the
 * budgets. */
TEST_CASE(test_budgets_are_asked) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig("1", 3);

        fake_put(r->cluster, FAKE_NDBS,
                 fj_parse("{'metadata':{'name':'nodes','generation':1},'spec':{'maxUnavailable':1,'selector':{"
                          "'matchExpressions':[{'key':'rack','operator':'DoesNotExist'}]}}}"));
        rig_run(r, SETTLED);
        ask(r, "n1", "b", 3000 * S);
        rig_run(r, 5 * S);
        assert_true(is_granted(r, "n1", "b"));
        ask(r, "n1", NULL, 0);
        boot(r, "n2", "boot-1", false);
        rig_run(r, 5 * S);
        ask(r, "n0", "a", 3000 * S);
        rig_run(r, 150 * S);
        assert_false(is_granted(r, "n0", "a"));
        assert_true(rig_event_says(r, "n0", "RebootWaits", "NodeDisruptionBudget nodes allows no disruption of node n0 now"));
        assert_false(rig_event_says(r, "n0", "RebootWaits", "lists all Nodes first"));
        assert_non_null(strstr(strbuf_str(&rig_leader(r)->said), "Node n0: Waits for a slot to reboot: NodeDisruptionBudget nodes"));
        assert_null(strstr(strbuf_str(&rig_leader(r)->said), "Node n0: Waits for a slot to reboot; the coordinator lists"));
}

/* A reboot is a disruption like another: its slot is a limit besides. */
TEST_CASE(test_budgets) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig("2", 4);

        fake_merge(r->cluster, FAKE_NODES, NULL, "n3", "{'metadata':{'labels':{'rack':'b'}}}");
        fake_put(r->cluster, FAKE_NDBS,
                 fj_parse("{'metadata':{'name':'nodes','generation':1},'spec':{'maxUnavailable':1,'selector':{"
                          "'matchExpressions':[{'key':'rack','operator':'DoesNotExist'}]}}}"));
        rig_run(r, SETTLED);
        ask(r, "n0", "a", 3000 * S);
        rig_run(r, S);
        ask(r, "n1", "b", 3000 * S);
        rig_run(r, S);
        ask(r, "n3", "d", 3000 * S);
        rig_run(r, 60 * S);
        assert_true(is_granted(r, "n0", "a"));
        assert_false(is_granted(r, "n1", "b"));
        assert_true(rig_event_says(r, "n1", "RebootWaits", "NodeDisruptionBudget nodes allows no disruption of node n1 now"));
        assert_true(rig_event_says(r, "n1", "RebootWaits", "n0 (may reboot since "));
        assert_non_null(strstr(strbuf_str(&rig_leader(r)->said), "Node n1: Waits for a slot to reboot: NodeDisruptionBudget nodes"));
        print_message("  one of another rack is not held up by it\n");
        assert_true(is_granted(r, "n3", "d"));
        assert_int_equal(n_charges(r), 1);

        print_message("  and who is back makes room\n");
        boot(r, "n0", "boot-2", false);
        rig_run(r, 60 * S);
        assert_false(is_granted(r, "n1", "b"));
        boot(r, "n0", "boot-2", true);
        ask(r, "n0", NULL, 0);
        rig_run(r, 10 * S);
        assert_true(is_granted(r, "n1", "b"));
        assert_int_equal(n_charges(r), 1);
        ask(r, "n1", NULL, 0);
        rig_run(r, 10 * S);
        assert_int_equal(n_charges(r), 0);

        print_message("  a node that is being deleted counts\n");
        fake_add_pod(r->cluster, &(FakePod){ .name = "stays", .node = "n2", .annotations = "{'vesper.sh/do-not-evict':'true'}" });
        rig_run(r, S);
        rig_delete_node(r, "n2");
        rig_run(r, 10 * S);
        ask(r, "n1", "e", 3000 * S);
        rig_run(r, 120 * S);
        assert_false(is_granted(r, "n1", "e"));
        assert_true(fake_remove(r->cluster, FAKE_PODS, "default", "stays"));
        rig_run(r, 30 * S);
        assert_true(is_granted(r, "n1", "e"));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_one_by_one),
                cmocka_unit_test(test_several),
                cmocka_unit_test(test_more_slots),
                cmocka_unit_test(test_not_granted),
                cmocka_unit_test(test_node_gone),
                cmocka_unit_test(test_takeover),
                cmocka_unit_test(test_watch_behind),
                cmocka_unit_test(test_lost_answers),
                cmocka_unit_test(test_long_list),
                cmocka_unit_test(test_stale_answer),
                cmocka_unit_test(test_grant_on_its_way),
                cmocka_unit_test(test_gone_with_its_grant),
                cmocka_unit_test(test_grant_fails),
                cmocka_unit_test(test_stale_answer_stays),
                cmocka_unit_test(test_slow_list),
                cmocka_unit_test(test_found_runs_out),
                cmocka_unit_test(test_grants_itself),
                cmocka_unit_test(test_asks_again_and_again),
                cmocka_unit_test(test_many_wait),
                cmocka_unit_test(test_takeover_tells_nothing_twice),
                cmocka_unit_test(test_budgets_are_asked),
                cmocka_unit_test(test_budgets),
        };

        return cmocka_run_group_tests_name("reboot-grants", tests, NULL, NULL);
}
