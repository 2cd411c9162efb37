/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cloud-reboot-rows.h"
#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "event-ack-rows.h"
#include "page.h"
#include "reboot-slot-rows.h"
#include "strv.h"

/*
 * The tables of the pure rules of reboots, shown to a coordinator: Nodes carry what a row says, with its
 * times counted from now. The answers are read from the Nodes, from Events and metrics, and from what EC2 is
 * told.
 */

#define S USEC_PER_SEC
#define M USEC_PER_MINUTE

static CoordinatorRig *new_rig(const char *max, bool use_ec2) {
        char slots[] = "Budget.MaxConcurrentReboots=?", slot[] = "Budget.RebootSlotSec=30min";
        CoordinatorRig *r = coordinator_rig_new();

        slots[sizeof(slots) - 2] = max[0];
        r->use_ec2 = use_ec2;
        r->settings[0] = slots;
        r->settings[1] = slot;
        rig_begin(r, 1, NULL); /* lists the Nodes once */
        r->settings[0] = r->settings[1] = NULL;
        rig_run(r, 2 * M);
        return r;
}

/* The text of a row with each time of its day moved to now. Free it. */
static char *at_now(CoordinatorRig *r, const char *text, usec_t rows_now_usec) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        usec_t now = loop_wall(r->w.loop) / S * S;

        for (const char *at; (at = strstr(text, "2027-01-15T")); text = at + 20) {
                char then[21], moved[RFC3339_MAX];
                usec_t usec;

                snprintf(then, sizeof(then), "%s", at);
                assert_return_code(rfc3339_parse(then, &usec), 0);
                rfc3339_format(now + usec - rows_now_usec, moved);
                strbuf_addf(&b, "%.*s%s", (int) (at - text), text, moved);
        }
        strbuf_add(&b, text);
        return MUST(strbuf_steal(&b));
}

static const char *granted_text(CoordinatorRig *r, const char *node) {
        return strempty(fj_string(rig_node(r, node), "metadata", "annotations", ANNOTATION_SHUTDOWN_GRANTED,
                                  NULL));
}

static bool metrics_say(CoordinatorRig *r, const char *line) {
        _cleanup_page_ Page p = page_ask(coordinator_handle, rig_leader(r)->coordinator, HTTP_GET,
                                         "/metrics");

        return strstr(p.body, line) != NULL;
}

/* -- slots ---------------------------------------------------------------------------------------------- */

/* Creates a Node "n" with these annotations, and checks the answer. is_too_long: the Node has a grant that
 * the coordinator did not write. */
static void play_stand(const char *annotations, const char *meta, const char *status,
                       RebootRequestState state, bool is_stale,
                       bool is_too_long) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig("1", false);
        _cleanup_free_ char *text = strf("{'metadata':{'name':'n','annotations':{%s}%s},'status':{%s}}",
                                         annotations, meta, status),
                            *moved = at_now(r, text, REBOOT_ROWS_NOW), *before = NULL;
        bool waits = state == REBOOT_REQUEST_WAITING, holds = state == REBOOT_REQUEST_HOLDS_SLOT;
        uint64_t n_patches = fake_api_count(r->api, FAKE_PATCH, FAKE_NODES, NULL);

        fake_cluster_set_controller(r->cluster, FAKE_CONTROLLER_NODE_STATUS, false);
        fake_put(r->cluster, FAKE_NODES, fj_parse("%s", moved));
        before = MUST(strdup(granted_text(r, "n")));
        rig_run(r, 5 * S);
        if (waits) {
                char until[RFC3339_MAX];
                _cleanup_free_ char *id = NULL;

                rfc3339_format(loop_wall(r->w.loop) + 30 * M - 5 * S, until);
                id = strf("{\"id\":\"a\",\"until\":\"%.16s", until);
                assert_non_null(startswith(granted_text(r, "n"), id));
                assert_true(rig_has_event(r, "n", "RebootGranted"));
        } else
                assert_string_equal(granted_text(r, "n"), is_stale ? "" : before);
        assert_int_equal(fake_api_count(r->api, FAKE_PATCH, FAKE_NODES, NULL) - n_patches,
                         (waits ? 1 : 0) + (is_stale ? 1 : 0));
        assert_true(metrics_say(r, waits ||
                                holds ? "vesper_coordinator_reboot_slots_held 1\n" : "vesper_coordinator_reboot_slots_held 0\n"));
        assert_true(metrics_say(r, "vesper_coordinator_reboots_waiting 0\n"));
        assert_int_equal(rig_event_says(r, "n", "RebootNotGranted", "cannot be read"),
                         state == REBOOT_REQUEST_INVALID);
        assert_int_equal(rig_event_says(r, "n", "RebootNotGranted", "being deleted"),
                         state == REBOOT_REQUEST_LEAVING);
        assert_int_equal(rig_has_event(r, "n", "RebootSlotExpired"), state == REBOOT_REQUEST_EXPIRED);
        assert_int_equal(rig_has_event(r, "n", "RebootGrantTooLong"), is_too_long);
}

TEST_CASE(test_stand) {
        for (size_t i = 0; i < ELEMENTSOF(reboot_stand_rows); i++) {
                const RebootStandRow *row = reboot_stand_rows + i;
                _cleanup_free_ char *phase = row->interruption ? strf(spot, row->interruption) : strdup(""),
                                    *annotations = strf("%s%s", row->annotations, phase);

                print_message("  %s\n", row->what);
                play_stand(annotations, row->meta, row->status, row->stand, row->stale, false);
        }
}

TEST_CASE(test_interruptions) {
        for (size_t i = 0; i < ELEMENTSOF(reboot_interruption_rows); i++) {
                const RebootInterruptionRow *row = reboot_interruption_rows + i;
                _cleanup_free_ char *annotations =
                        strf(ASKED ",'" ANNOTATION_INTERRUPTION "':'{\\'id\\':\\'s\\',\\'action\\':\\'%s\\',\\'phase\\':\\'%s\\'}'",
                             row->action, row->phase);

                print_message("  %s, %s\n", row->action, row->phase);
                play_stand(annotations, "", BOOT("b1"), row->stand, false, false);
        }
}

TEST_CASE(test_too_long) {
        for (size_t i = 0; i < ELEMENTSOF(reboot_too_long_rows); i++) {
                const RebootTooLongRow *row = reboot_too_long_rows + i;
                _cleanup_free_ char *annotations =
                        strf(ASKED ",'" ANNOTATION_SHUTDOWN_GRANTED "':'{\\'id\\':\\'a\\',\\'until\\':\\'%s\\'}'", row->until);

                print_message("  until %s\n", row->until);
                play_stand(annotations, "", READY BOOT("b1"), row->stand, row->too_long, row->too_long);
        }
}

/* -- by the cloud --------------------------------------------------------------------------------------- */

TEST_CASE(test_cloud) {
        for (size_t i = 0; i < ELEMENTSOF(cloud_reboot_rows); i++) {
                const CloudRebootRow *row = cloud_reboot_rows + i;
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig("0", true);
                _cleanup_free_ char *annotations = at_now(r, row->annotations, CLOUD_ROWS_NOW);
                const char *node = row->meta[0] ? "n0" : "stranger";
                bool is_marked;

                print_message("  %s\n", row->what);
                /* A Node of no pool. */
                fake_add_node(r->cluster, "stranger", ZONE, "i-00000000000000001", NULL);
                fake_merge(r->cluster, FAKE_NODES, NULL, node,
                           "{'metadata':{'annotations':{%s}},'spec':{%s},'status':{'nodeInfo':{'bootID':'%s'}}}",
                           annotations, row->spec, row->boot);
                if (strstr(row->meta, "deletionTimestamp"))
                        rig_delete_node(r, node);
                rig_run(r, 2 * M);
                is_marked = strstr(granted_text(r, node), "\"sent\":true");
                assert_int_equal(fake_ec2_n_requests(r->ec2, "RebootInstances"),
                                 row->verdict == CLOUD_REBOOT_DUE ? 1 : 0);
                if (row->verdict != CLOUD_REBOOT_NONE)
                        assert_int_equal(is_marked, row->verdict == CLOUD_REBOOT_DUE ||
                                         row->verdict == CLOUD_REBOOT_SENT);
                assert_int_equal(rig_has_event(r, node, "MachineRebooted"),
                                 row->verdict == CLOUD_REBOOT_DUE);
        }
}

/* -- events of several machines ------------------------------------------------------------------------- */

static void put_machine(CoordinatorRig *r, const EventAckNode *n) {
        _cleanup_strbuf_ StrBuf names = { 0 };

        fake_add_node(r->cluster, n->node, NULL, NULL, NULL);
        if (n->machine[0])
                fake_merge(r->cluster, FAKE_NODES, NULL, n->node,
                           "{'spec':{'providerID':'azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/%s'}}",
                           n->machine);
        if (!n->event)
                return;
        STRV_FOREACH (name, n->resources)
                strbuf_addf(&names, "%s\\'%s\\'", names.size > 0 ? "," : "", *name);
        fake_merge(r->cluster, FAKE_NODES, NULL, n->node,
                   "{'metadata':{'annotations':{'" ANNOTATION_INTERRUPTION
                   "':'{\\'id\\':\\'%s\\',\\'kind\\':\\'maintenance\\',\\'source\\':\\'azure\\',\\'action\\':\\'redeploy\\',\\'phase\\':\\'%s\\',"
                   "\\'bootID\\':\\'%s-boot-1\\',\\'resources\\':[%s]}'}},'spec':{'unschedulable':true}}",
                   n->event, n->is_drained ? "Drained" : "Draining", n->node, strbuf_str(&names));
}

TEST_CASE(test_acknowledged) {
        for (size_t i = 0; i < ELEMENTSOF(event_ack_rows); i++) {
                const EventAckRow *row = event_ack_rows + i;
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                uint64_t n_expected = 0;

                print_message("  %s\n", row->what);
                rig_start(r, 0);
                for (size_t k = 0; k < row->n; k++)
                        put_machine(r, row->nodes + k);
                rig_run(r, 3 * M);
                for (size_t k = 0; k < row->n; k++) {
                        const EventAckNode *n = row->nodes + k;
                        bool is_of = streq_ptr(n->event, "e"), may = is_of && !row->why;
                        const char *ack = fj_string(rig_node(r, n->node), "metadata", "annotations",
                                                    ANNOTATION_ACK_OK, NULL);

                        n_expected += may;
                        assert_int_equal(ack != NULL, may);
                        if (may)
                                assert_string_equal(ack, "e");
                        assert_int_equal(is_of && n->is_drained && row->why && rig_event_says(r, n->node,
                                                            "EventNotAcknowledged", row->why),
                                         is_of && n->is_drained && row->why);
                }
                assert_int_equal(fake_api_count(r->api, FAKE_PATCH, FAKE_NODES, NULL), n_expected);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_stand), cmocka_unit_test(test_interruptions), cmocka_unit_test(test_too_long),
                cmocka_unit_test(test_cloud), cmocka_unit_test(test_acknowledged),
        };

        return cmocka_run_group_tests_name("reboot-rows", tests, NULL, NULL);
}
