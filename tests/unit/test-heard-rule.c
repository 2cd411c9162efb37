/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "heard-rule.h"
#include "string-util.h"

#define NOW (UINT64_C(1790000000) * USEC_PER_SEC)
#define MINUTES(n) ((n) * USEC_PER_MINUTE)
#define OUTLIVED(end) ((end) + HEARD_OUTLIVED_USEC)

/* A node that no pool wants, Ready and open, of which an end in two minutes was told, and nothing has been done. */
TEST_CASE(test_decide) {
        Notice spot, hook, hibernation, stop, reboot, retirement, *notice;
        Interruption heard;
        HeardFacts f;
        usec_t until;

        notice = &spot;
        spot = (Notice){ .id = (char *) "e/i-1", .kind = NOTICE_SPOT, .action = (char *) "terminate", .announced_usec = NOW + MINUTES(2) };
        hook = (Notice){ .id = (char *) "h/i-1", .kind = NOTICE_SCALE_IN, .action = (char *) "terminate" };
        stop = (Notice){ .id = (char *) "s/i-1", .kind = NOTICE_SPOT, .action = (char *) "stop", .announced_usec = NOW + MINUTES(2) };
        reboot = (Notice){ .id = (char *) "r/i-1", .kind = NOTICE_MAINTENANCE, .action = (char *) "reboot", .announced_usec = NOW + MINUTES(90), .until_usec = NOW + MINUTES(210) };
        retirement = (Notice){ .id = (char *) "t/i-1", .kind = NOTICE_MAINTENANCE, .action = (char *) "terminate", .announced_usec = NOW + MINUTES(90) };
        hibernation = (Notice){ .id = (char *) "z/i-1", .kind = NOTICE_SPOT, .action = (char *) "hibernate" };

#define ROW(what, of, as, expected, expected_until, ...) \
        do { \
                print_message("%s\n", what); \
                notice = &(of); \
                heard = (Interruption){ .notice = notice, .phase = interruption_phase_from_string(as), .boot_id = (char *) "b" }; \
                f = (HeardFacts){ .heard = &heard, \
                                  .drains = true, \
                                  .acts = true, \
                                  .deletes = notice_ends_for_good(notice), \
                                  .before_usec = USEC_PER_HOUR, \
                                  .is_ready = true, \
                                  .is_claim_told = true, \
                                  .is_unschedulable = !streq(as, "Planned"), \
                                  .is_marked = !streq(as, "Planned") && !streq(as, "Released"), \
                                  .settled_usec = streq(as, "Drained") || streq(as, "Released") ? NOW : 0, \
                                  .wall_usec = NOW }; \
                __VA_ARGS__; \
                if (heard_decide(&f, &until) != HEARD_##expected) \
                        fail_msg("%s: expected %s, saw %s", what, heard_act_to_string(HEARD_##expected), \
                                 heard_act_to_string(heard_decide(&f, &until))); \
                assert_int_equal(until, expected_until); \
        } while (0)
#define SPOT_UNTIL OUTLIVED(NOW + MINUTES(2))

        ROW("just told", spot, "Planned", CORDON, SPOT_UNTIL, (void) 0);
        ROW("nothing that can be read", spot, "Planned", NOTHING, USEC_INFINITY, f.heard = NULL);
        ROW("cordoned", spot, "Draining", DRAIN, SPOT_UNTIL, (void) 0);
        ROW("cordoned, and somebody else's cordon was first", spot, "Draining", DRAIN, SPOT_UNTIL, f.is_marked = false);
        ROW("cordoned by somebody, and just told", spot, "Planned", CORDON, SPOT_UNTIL, f.is_unschedulable = true);
        ROW("drained", spot, "Drained", KEEP, SPOT_UNTIL, (void) 0);
        ROW("its time has come, with pods left", spot, "Ending", KEEP, SPOT_UNTIL, f.wall_usec = NOW + MINUTES(3));

        ROW("opened while it drains", spot, "Draining", OVERRULE, SPOT_UNTIL, f.is_unschedulable = false);
        ROW("opened when it is drained", spot, "Drained", OVERRULE, SPOT_UNTIL, f.is_unschedulable = false);
        ROW("opened before another notice was told", spot, "Planned", OVERRULE, SPOT_UNTIL, f.is_marked = true);
        ROW("opened in spite of its agent", spot, "Planned", OVERRULE, SPOT_UNTIL, f.is_agent_overruled = true);
        ROW("overruled", spot, "Released", KEEP, SPOT_UNTIL, f.is_unschedulable = false);
        ROW("overruled, and its agent, too", spot, "Released", KEEP, SPOT_UNTIL, f.is_agent_overruled = true);
        ROW("overruled, and outlived", spot, "Released", END, USEC_INFINITY, f.wall_usec = NOW + MINUTES(12));

        ROW("booted anew while it drains", spot, "Draining", END, USEC_INFINITY, f.is_of_other_boot = true);
        ROW("alive ten minutes later", spot, "Drained", END, USEC_INFINITY, f.wall_usec = NOW + MINUTES(12));
        ROW("not yet", spot, "Drained", KEEP, SPOT_UNTIL, f.wall_usec = NOW + MINUTES(12) - 1);
        ROW("ten minutes later, and not Ready", spot, "Drained", KEEP, USEC_INFINITY, f.wall_usec = NOW + MINUTES(12); f.is_ready = false);
        ROW("told after it was outlived", spot, "Planned", END, USEC_INFINITY, f.wall_usec = NOW + MINUTES(12));

        ROW("a hook, told", hook, "Planned", CORDON, USEC_INFINITY, (void) 0);
        ROW("a hook, drained", hook, "Drained", KEEP, USEC_INFINITY, (void) 0);
        ROW("a hook, drained for long", hook, "Drained", KEEP, USEC_INFINITY, f.wall_usec = NOW + USEC_PER_DAY);
        ROW("a hibernation, drained", hibernation, "Drained", KEEP, OUTLIVED(NOW), (void) 0);
        ROW("a hibernation, and it is back", hibernation, "Drained", END, USEC_INFINITY, f.wall_usec = OUTLIVED(NOW));
        hibernation.said_usec = NOW;
        ROW("a hibernation that does not come, and a budget holds its drain", hibernation, "Draining", END, USEC_INFINITY, f.wall_usec = OUTLIVED(NOW));
        hibernation.said_usec = 0;
        ROW("a hibernation that drains for long", hibernation, "Draining", DRAIN, USEC_INFINITY, f.wall_usec = NOW + USEC_PER_DAY);

        ROW("reported only, from now on", spot, "Draining", END, USEC_INFINITY, f.drains = false);
        ROW("reported only, and a pool wants it", spot, "Draining", KEEP, SPOT_UNTIL, f.drains = false; f.is_wanted = true);
        ROW("kept from vesper", spot, "Draining", END, USEC_INFINITY, f.is_kept = true);
        ROW("a pool wants it", spot, "Draining", KEEP, SPOT_UNTIL, f.is_wanted = true);
        ROW("a pool wants it, and it is opened", spot, "Draining", OVERRULE, SPOT_UNTIL, f.is_wanted = true; f.is_unschedulable = false);
        ROW("adopted", spot, "Draining", HAND_OVER, SPOT_UNTIL, f.is_wanted = f.is_managed = true; f.is_claim_told = false);
        ROW("adopted, and told", spot, "Draining", KEEP, SPOT_UNTIL, f.is_wanted = f.is_managed = true);
        ROW("adopted, and told long ago", spot, "Draining", END, USEC_INFINITY, f.is_managed = true; f.wall_usec = NOW + MINUTES(12));
        ROW("adopted, overruled", spot, "Released", KEEP, SPOT_UNTIL, f.is_managed = true; f.is_claim_told = false);
        ROW("adopted, where no claim is deleted", spot, "Draining", END, USEC_INFINITY, f.is_managed = true; f.acts = false);
        ROW("adopted, and being removed", spot, "Draining", NOTHING, USEC_INFINITY, f.is_managed = f.is_deleted = true);
#define HELD f.is_managed = f.is_wanted = true
#define REBOOT_UNTIL OUTLIVED(NOW + MINUTES(210))
#define STARTED f.wall_usec = NOW + MINUTES(100)
        ROW("managed, a stop", stop, "Planned", CORDON, SPOT_UNTIL, HELD);
        ROW("managed, a stop, cordoned", stop, "Draining", DRAIN, SPOT_UNTIL, HELD);
        ROW("managed, a stop, drained", stop, "Drained", KEEP, SPOT_UNTIL, HELD);
        ROW("managed, a stop, and the machine is off for an hour", stop, "Drained", KEEP, USEC_INFINITY, HELD; f.is_ready = false; f.wall_usec = NOW + MINUTES(62));
        ROW("managed, a stop, and it is back", stop, "Drained", END, USEC_INFINITY, HELD; f.is_of_other_boot = true);
        ROW("managed, a stop that does not come", stop, "Drained", END, USEC_INFINITY, HELD; f.wall_usec = NOW + MINUTES(12));
        ROW("managed, a stop, where that deletes the claim", stop, "Planned", HAND_OVER, SPOT_UNTIL, HELD; f.deletes = true; f.is_claim_told = false);
        ROW("managed, a stop, and it is being deleted for something else", stop, "Draining", KEEP, SPOT_UNTIL, HELD; f.is_going = true);
        ROW("managed, and kept from vesper", stop, "Draining", END, USEC_INFINITY, HELD; f.is_kept = true);
        ROW("managed, a stop, never", stop, "Planned", END, USEC_INFINITY, HELD; f.acts = false);
        ROW("managed, opened by a person", stop, "Draining", OVERRULE, SPOT_UNTIL, HELD; f.is_unschedulable = false);
        ROW("managed, a hibernation", hibernation, "Planned", CORDON, USEC_INFINITY, HELD);

        stop.announced_usec = NOW + MINUTES(90);
        ROW("a stop in ninety minutes that is no scheduled change", stop, "Planned", CORDON, OUTLIVED(NOW + MINUTES(90)), HELD);
        ROW("a reboot in ninety minutes", reboot, "Planned", WAIT, NOW + MINUTES(30), (void) 0);
        ROW("managed, a reboot in ninety minutes", reboot, "Planned", WAIT, NOW + MINUTES(30), HELD);
        ROW("a person has opened the node for another reason", reboot, "Planned", WAIT, NOW + MINUTES(30), HELD; f.is_agent_overruled = true);
        ROW("in an hour", reboot, "Planned", CORDON, REBOOT_UNTIL, HELD; f.wall_usec = NOW + MINUTES(30));
        ROW("booted long before", reboot, "Planned", WAIT, NOW + MINUTES(30), HELD; f.is_of_other_boot = true);
        ROW("booted when it is drained, before its time", reboot, "Drained", ANEW, USEC_INFINITY, HELD; f.is_of_other_boot = true; f.wall_usec = NOW + MINUTES(80));
        ROW("the same, and a person had opened it", reboot, "Released", KEEP, REBOOT_UNTIL, HELD; f.is_of_other_boot = true; f.wall_usec = NOW + MINUTES(80));
        ROW("rebooted as was announced", reboot, "Drained", CALL_OFF, USEC_INFINITY, HELD; f.is_of_other_boot = true; STARTED);
        ROW("... and that stands", reboot, "Cancelled", KEEP, REBOOT_UNTIL, HELD; f.is_unschedulable = false; f.is_marked = false; f.is_of_other_boot = true; STARTED);
        ROW("... until it is outlived", reboot, "Cancelled", END, USEC_INFINITY, HELD; f.is_marked = false; f.is_of_other_boot = true; f.wall_usec = REBOOT_UNTIL);
        ROW("in its window, and not rebooted yet", reboot, "Drained", KEEP, REBOOT_UNTIL, HELD; STARTED);
        ROW("its window has closed, and it was not rebooted", reboot, "Drained", END, USEC_INFINITY, HELD; f.wall_usec = REBOOT_UNTIL);
        ROW("called off", reboot, "Cancelled", CALL_OFF, REBOOT_UNTIL, HELD; f.is_marked = true);
        ROW("called off, and only the claim says something else", reboot, "Cancelled", CALL_OFF, REBOOT_UNTIL, HELD; f.is_marked = false; f.is_on_claim = true);
        ROW("called off, and all is done", reboot, "Cancelled", KEEP, REBOOT_UNTIL, HELD; f.is_marked = f.is_unschedulable = false);
        ROW("of no pool, called off", reboot, "Cancelled", CALL_OFF, REBOOT_UNTIL, f.is_marked = true);
        ROW("called off, where nodes of no pool are not drained any more", reboot, "Cancelled", END, USEC_INFINITY, f.drains = false);
        reboot.own_announced_usec = NOW + MINUTES(200);
        ROW("another has brought it nearer, and is outlived", reboot, "Drained", OWN, USEC_INFINITY, HELD; f.wall_usec = OUTLIVED(NOW + MINUTES(90)));
        ROW("... and not yet", reboot, "Drained", KEEP, OUTLIVED(NOW + MINUTES(90)), HELD; STARTED - MINUTES(1));
        ROW("... and the machine has booted for the other", reboot, "Drained", OWN, USEC_INFINITY, HELD; f.is_of_other_boot = true; STARTED);
        ROW("... and a person had opened it", reboot, "Released", END, USEC_INFINITY, HELD; f.wall_usec = OUTLIVED(NOW + MINUTES(90)));
        ROW("... and its own time has passed as well", reboot, "Drained", END, USEC_INFINITY, HELD; f.wall_usec = NOW + MINUTES(200));
        reboot.own_announced_usec = 0;
        reboot.not_before_usec = NOW;
        ROW("another one is now", reboot, "Planned", CORDON, USEC_INFINITY, (void) 0);
        ROW("... and drained for", reboot, "Drained", KEEP, OUTLIVED(NOW), (void) 0);
        ROW("... and outlived", reboot, "Drained", OWN, USEC_INFINITY, f.wall_usec = OUTLIVED(NOW));
        ROW("... and the machine has booted for it", reboot, "Drained", OWN, USEC_INFINITY, f.is_of_other_boot = true);
        reboot.not_before_usec = reboot.announced_usec;
        ROW("of no pool, a retirement in ninety minutes", retirement, "Planned", WAIT, NOW + MINUTES(30), (void) 0);
        ROW("of no pool, a retirement in an hour", retirement, "Planned", CORDON, OUTLIVED(NOW + MINUTES(90)), f.wall_usec = NOW + MINUTES(30));
        ROW("being deleted by somebody", spot, "Draining", DRAIN, SPOT_UNTIL, f.is_deleted = true);
}

/* A window that never closes closes a day after it has opened. */
TEST_CASE(test_window) {
        Notice n = { .announced_usec = NOW };

        assert_int_equal(notice_window_end(&n), NOW);
        n.until_usec = NOW - 1;
        assert_int_equal(notice_window_end(&n), NOW);
        n.until_usec = NOW + MINUTES(7);
        assert_int_equal(notice_window_end(&n), NOW + MINUTES(7));
        n.own_announced_usec = NOW + MINUTES(5);
        assert_int_equal(notice_window_end(&n), NOW);
        n.own_announced_usec = 0;
        n.until_usec = NOW + 365 * USEC_PER_DAY;
        assert_int_equal(notice_window_end(&n), NOW + NOTICE_WINDOW_MAX_USEC);
        n.announced_usec = 0;
        assert_int_equal(notice_window_end(&n), USEC_INFINITY);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_decide),
                cmocka_unit_test(test_window),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
