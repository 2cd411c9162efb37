/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "heard-rule.h"
#include "string-util.h"

#define NOW (UINT64_C(1790000000) * USEC_PER_SEC)
#define MINUTES(n) ((n) * USEC_PER_MINUTE)
#define OUTLIVED(end) ((end) + ANNOUNCED_OUTLIVED_USEC)

/* "reboot:Done spot:b" of a list: its state, or, where it stands, in which boot. */
static char *text_of(const AnnouncedList *l) {
        _cleanup_strbuf_ StrBuf text = {};

        for (size_t i = 0; i < l->n_items; i++)
                strbuf_addf(&text, "%s%s:%s", i > 0 ? " " : "", l->items[i].notice->id,
                            l->items[i].state == ANNOUNCED_STANDS ? l->items[i].boot_id : announced_state_to_string(l->items[i].state));
        return strbuf_steal(&text);
}

static void assert_rewrites(const HeardFacts *f, const char *expected) {
        _cleanup_(announced_list_done) AnnouncedList l = {};
        _cleanup_free_ char *text = NULL;

        assert_return_code(heard_rewrite(f, &l), 0);
        text = text_of(&l);
        assert_string_equal(text, expected);
}

/* A case: the list of notices, and the drain that is under way; NULL: none. */
typedef struct Case {
        AnnouncedList l;
        Notice first; /* of the drain */
        Interruption drain;
        HeardFacts f;
} Case;

static void case_init(Case *c, const char *phase, bool managed) {
        *c = (Case){ .f = { .boot_id = "b",
                            .deletes = INTERRUPTION_DELETE_TERMINATE,
                            .before_usec = USEC_PER_HOUR,
                            .drains_unmanaged = true,
                            .is_managed = managed,
                            .is_wanted = managed,
                            .is_ready = true,
                            .ready_since_usec = NOW - USEC_PER_DAY,
                            .wall_usec = NOW } };
        c->f.announced = &c->l;
        c->first = (Notice){ .id = (char *) "gone", .kind = NOTICE_SPOT };
        if (!phase)
                return;
        c->drain = (Interruption){ .notice = &c->first, .phase = interruption_phase_from_string(phase), .boot_id = (char *) "b" };
        c->f.drain = &c->drain;
        c->f.is_unschedulable = true;
        c->f.settled_usec = streq(phase, "Drained") ? NOW : 0;
}

static void case_add(Case *c, const Notice *n, AnnouncedState state, const char *boot_id) {
        assert_return_code(announced_list_put(&c->l, n, state, boot_id), 0);
        if (c->f.drain)
                c->first = *c->l.items[0].notice;
}

static Notice spot, hook, hibernation, stop, reboot, retirement;

static int make_notices(void **state) {
        spot = (Notice){ .id = (char *) "spot", .source = (char *) "sqs", .kind = NOTICE_SPOT, .action = (char *) "terminate", .announced_usec = NOW + MINUTES(2) };
        hook = (Notice){ .id = (char *) "hook", .source = (char *) "sqs", .kind = NOTICE_SCALE_IN, .action = (char *) "terminate" };
        stop = (Notice){ .id = (char *) "stop", .source = (char *) "sqs", .kind = NOTICE_SPOT, .action = (char *) "stop", .announced_usec = NOW + MINUTES(2) };
        hibernation = (Notice){ .id = (char *) "sleep", .source = (char *) "sqs", .kind = NOTICE_SPOT, .action = (char *) "hibernate" };
        reboot = (Notice){ .id = (char *) "reboot", .source = (char *) "sqs", .kind = NOTICE_MAINTENANCE, .action = (char *) "reboot", .announced_usec = NOW + MINUTES(90), .until_usec = NOW + MINUTES(210) };
        retirement = (Notice){ .id = (char *) "retire", .source = (char *) "sqs", .kind = NOTICE_MAINTENANCE, .action = (char *) "terminate", .announced_usec = NOW + MINUTES(100) };
        return 0;
}

/* rewritten: the list after HEARD_REWRITE; NULL: it is not. */
static void check(const char *what, Case *c, HeardAct expected, usec_t expected_until, const char *rewritten) {
        usec_t until;
        HeardAct act = heard_decide(&c->f, &until);

        print_message("%s\n", what);
        if (act != expected)
                fail_msg("%s: expected %s, saw %s", what, heard_act_to_string(expected), heard_act_to_string(act));
        if (rewritten)
                assert_rewrites(&c->f, rewritten);
        else
                assert_int_equal(until, expected_until);
        announced_list_done(&c->l);
}

#define ROW_OF(managed, what, of, phase, expected, until, rewritten, ...) \
        do { \
                Case c; \
                case_init(&c, phase, managed); \
                case_add(&c, &(of), ANNOUNCED_STANDS, "b"); \
                __VA_ARGS__; \
                check(what, &c, HEARD_##expected, until, rewritten); \
        } while (0)
#define ROW(what, of, phase, expected, until, ...) ROW_OF(false, what, of, phase, expected, until, NULL, __VA_ARGS__)
#define MANAGED(what, of, phase, expected, until, ...) ROW_OF(true, what, of, phase, expected, until, NULL, __VA_ARGS__)
#define BECOMES(what, of, phase, rewritten, ...) ROW_OF(true, what, of, phase, REWRITE, 0, rewritten, __VA_ARGS__)
#define AT(t) c.f.wall_usec = (t)
#define ALSO(of, state) case_add(&c, &(of), ANNOUNCED_##state, "b")
#define BOOTED c.f.boot_id = "second"
#define SPOT_UNTIL (NOW + MINUTES(2))
#define REBOOT_UNTIL OUTLIVED(NOW + MINUTES(210))
#define STARTED (NOW + MINUTES(91))

/* A node that no pool wants, Ready and open. */
TEST_CASE(test_unmanaged) {
        ROW("a Spot end, and nothing done yet", spot, NULL, CORDON, SPOT_UNTIL, (void) 0);
        ROW("cordoned", spot, "Draining", DRAIN, SPOT_UNTIL, (void) 0);
        ROW("cordoned by somebody, and just told", spot, NULL, CORDON, SPOT_UNTIL, c.f.is_unschedulable = true);
        ROW("drained", spot, "Drained", KEEP, SPOT_UNTIL, (void) 0);
        ROW("drained, as its Node says, for what nobody announced", spot, "Drained", DRAIN, SPOT_UNTIL, c.first.id = (char *) "another");
        ROW("its time has come, with pods left", spot, "Ending", KEEP, OUTLIVED(SPOT_UNTIL), AT(NOW + MINUTES(3)));
        ROW("the time of one has come with pods left, and another one is to come", spot, "Ending", DRAIN, OUTLIVED(SPOT_UNTIL),
            AT(NOW + MINUTES(3)); retirement.announced_usec = NOW + MINUTES(20); ALSO(retirement, STANDS); retirement.announced_usec = NOW + MINUTES(100));
        ROW("a retirement in a hundred minutes", retirement, NULL, WAIT, NOW + MINUTES(40), (void) 0);
        ROW("... in an hour", retirement, NULL, CORDON, NOW + MINUTES(100), AT(NOW + MINUTES(40)));
        ROW("ten minutes later, and not Ready", spot, "Drained", KEEP, USEC_INFINITY, AT(NOW + MINUTES(12)); c.f.is_ready = false);
        ROW("a hook, drained for long", hook, "Drained", KEEP, USEC_INFINITY, AT(NOW + USEC_PER_DAY));
        ROW("a hibernation, drained", hibernation, "Drained", KEEP, OUTLIVED(NOW), (void) 0);
        ROW("a hibernation, told when the node was drained for long", hibernation, "Drained", KEEP, OUTLIVED(NOW),
            announced_list_done(&c.l); hibernation.said_usec = NOW; ALSO(hibernation, STANDS); hibernation.said_usec = 0; c.f.settled_usec = NOW - MINUTES(11));
        ROW("a hibernation that drains for long", hibernation, "Draining", DRAIN, USEC_INFINITY, AT(NOW + USEC_PER_DAY));
        ROW("two, of which the first is over", stop, "Draining", DRAIN, SPOT_UNTIL, ALSO(hook, OVERRULED));
        ROW("all are over", stop, "Draining", END, OUTLIVED(SPOT_UNTIL), announced_list_done(&c.l); ALSO(stop, OVERRULED); c.f.is_unschedulable = false);
        ROW("nothing is announced, and marks are left", spot, "Draining", END, USEC_INFINITY, announced_list_done(&c.l));
        ROW("a pool wants it, and its claim will be deleted for that", spot, "Draining", KEEP, SPOT_UNTIL, c.f.is_wanted = true);
        ROW("a pool wants it, and the notice has just come", spot, NULL, WAIT, SPOT_UNTIL, c.f.is_wanted = true);
        ROW("a pool wants it, and has not adopted it: a stop", stop, NULL, CORDON, SPOT_UNTIL, c.f.is_wanted = true);
        ROW("the same while it drains", stop, "Draining", DRAIN, SPOT_UNTIL, c.f.is_wanted = true);
        ROW("a pool wants it, and others are reported only", spot, "Draining", KEEP, SPOT_UNTIL, c.f.drains_unmanaged = false; c.f.is_wanted = true);
        ROW("being deleted by somebody", spot, "Draining", DRAIN, SPOT_UNTIL, c.f.is_deleted = true);
        ROW("begun in an earlier boot", hook, "Drained", CORDON, USEC_INFINITY, c.drain.boot_id = (char *) "before");

#define GOES(what, of, phase, rewritten, ...) ROW_OF(false, what, of, phase, REWRITE, 0, rewritten, __VA_ARGS__)
        GOES("opened while it drains", spot, "Draining", "spot:Overruled", c.f.is_unschedulable = false);
        GOES("opened when it is drained", spot, "Drained", "spot:Overruled", c.f.is_unschedulable = false);
        GOES("opened, and a change is still far", spot, "Draining", "spot:Overruled retire:b", c.f.is_unschedulable = false; ALSO(retirement, STANDS));
        GOES("overruled, and outlived", spot, NULL, "", announced_list_done(&c.l); ALSO(spot, OVERRULED); AT(OUTLIVED(SPOT_UNTIL)));
        GOES("booted anew while it drains for an end", spot, "Draining", "spot:second", BOOTED);
        GOES("booted anew while its group lets go of it", hook, "Draining", "hook:second", BOOTED);
        GOES("opened, and another notice came later", hook, "Draining", "hook:Overruled stop:b", c.f.is_unschedulable = false; stop.said_usec = NOW; ALSO(stop, STANDS);
             stop.said_usec = 0);
        GOES("alive ten minutes later", spot, "Drained", "", AT(OUTLIVED(SPOT_UNTIL)));
        GOES("a hibernation, and it is back", hibernation, "Drained", "", AT(OUTLIVED(NOW)));
        GOES("a hibernation that does not come, and a budget holds its drain", hibernation, "Draining", "",
             announced_list_done(&c.l); hibernation.said_usec = NOW; ALSO(hibernation, STANDS); hibernation.said_usec = 0; AT(OUTLIVED(NOW)));
        GOES("reported only, from now on", spot, "Draining", "", c.f.drains_unmanaged = false);
        GOES("kept from vesper", spot, "Draining", "", c.f.is_kept = true);
}

/* A node that has a claim. */
TEST_CASE(test_managed) {
        static const Interruption agents_overruled = { .notice = &stop, .phase = INTERRUPTION_RELEASED };

        MANAGED("a stop", stop, NULL, CORDON, SPOT_UNTIL, (void) 0);
        MANAGED("an end, for which its claim is deleted", spot, NULL, WAIT, SPOT_UNTIL, (void) 0);
        MANAGED("adopted while it drains for an end", spot, "Draining", KEEP, SPOT_UNTIL, (void) 0);
        MANAGED("its claim is being deleted", stop, "Draining", KEEP, SPOT_UNTIL, c.f.is_going = true);
        MANAGED("... and it is opened, which its removal sees", stop, "Draining", KEEP, SPOT_UNTIL, c.f.is_going = true; c.f.is_unschedulable = false);
        MANAGED("its Node is being deleted", stop, "Draining", NOTHING, USEC_INFINITY, c.f.is_deleted = true);
        MANAGED("it is being adopted, or released", stop, NULL, KEEP, SPOT_UNTIL, c.f.is_between = true);
        MANAGED("the same while it drains", stop, "Draining", DRAIN, SPOT_UNTIL, c.f.is_between = true);
        MANAGED("the same, and it is opened", stop, "Draining", KEEP, SPOT_UNTIL, c.f.is_between = true; c.f.is_unschedulable = false);
        MANAGED("opened, and the notice has come since", stop, "Draining", CORDON, SPOT_UNTIL, c.f.is_unschedulable = false; c.first = hook; c.l.items[0].notice->said_usec = NOW);
        MANAGED("kept from vesper", stop, "Draining", END, SPOT_UNTIL, c.f.is_kept = true);
        MANAGED("Delete=never while it drains", stop, "Draining", END, SPOT_UNTIL, c.f.deletes = INTERRUPTION_DELETE_NEVER);
        MANAGED("Delete=never, and nothing was done", stop, NULL, NOTHING, SPOT_UNTIL, c.f.deletes = INTERRUPTION_DELETE_NEVER);
        MANAGED("always: its claim is deleted for a stop", stop, NULL, WAIT, SPOT_UNTIL, c.f.deletes = INTERRUPTION_DELETE_ALWAYS);
        MANAGED("a reboot in ninety minutes", reboot, NULL, WAIT, NOW + MINUTES(30), (void) 0);
        MANAGED("a reboot in an hour", reboot, NULL, CORDON, NOW + MINUTES(90), AT(NOW + MINUTES(30)));
        MANAGED("in its window, and not rebooted yet", reboot, "Drained", KEEP, NOW + MINUTES(210), AT(STARTED));
        MANAGED("in its window, with pods left", reboot, "Ending", DRAIN, NOW + MINUTES(210), AT(STARTED));
        MANAGED("a reboot and a retirement", reboot, "Drained", KEEP, NOW + MINUTES(40), AT(NOW + MINUTES(30)); ALSO(retirement, STANDS));
        MANAGED("a reboot is over, and a retirement is to come", retirement, "Drained", END, NOW + MINUTES(40), ALSO(reboot, CALLED_OFF));
        MANAGED("a reboot is over, and a retirement is near", retirement, "Drained", KEEP, NOW + MINUTES(100), ALSO(reboot, DONE); AT(NOW + MINUTES(50)));
        MANAGED("moved to later while it is drained", reboot, "Drained", END, NOW + MINUTES(30), (void) 0);

        BECOMES("opened by a person", stop, "Draining", "stop:Overruled", c.f.is_unschedulable = false);
        BECOMES("opened by a person, and an end was told, too", stop, "Draining", "stop:Overruled spot:b", c.f.is_unschedulable = false; ALSO(spot, STANDS));
        BECOMES("opened in spite of its agent", spot, NULL, "spot:Overruled", c.f.agents = &agents_overruled);
        MANAGED("... for something else", reboot, NULL, WAIT, NOW + MINUTES(30), c.f.agents = &agents_overruled);
        MANAGED("... for the same, at another time", stop, NULL, CORDON, NOW + MINUTES(40),
                announced_list_done(&c.l); stop.announced_usec = NOW + MINUTES(40); ALSO(stop, STANDS); stop.announced_usec = SPOT_UNTIL; c.f.agents = &agents_overruled);
        BECOMES("told when it had no Node", stop, NULL, "stop:b", announced_list_done(&c.l); case_add(&c, &stop, ANNOUNCED_STANDS, ""));
}

/* The brake of the queue holds the first notice. */
#define HELD(what, of, phase, expected, until, ...) \
        MANAGED(what, of, phase, expected, until, c.l.items[0].state = ANNOUNCED_HELD; c.l.items[0].notice->received_usec = NOW; __VA_ARGS__)
#define FREED(what, of, rewritten, ...) \
        BECOMES(what, of, NULL, rewritten, c.l.items[0].state = ANNOUNCED_HELD; c.l.items[0].notice->received_usec = NOW; __VA_ARGS__)

TEST_CASE(test_held) {
        Interruption agents = { .notice = &spot, .phase = INTERRUPTION_DRAINING };
        Notice by_hand = { .id = (char *) "hand", .kind = NOTICE_MANUAL, .action = (char *) "terminate" };

        HELD("an end: drained, and its claim is not deleted", spot, NULL, CORDON, SPOT_UNTIL, (void) 0);
        HELD("the same, drained", spot, "Drained", KEEP, SPOT_UNTIL, (void) 0);
        HELD("always", stop, NULL, CORDON, SPOT_UNTIL, c.f.deletes = INTERRUPTION_DELETE_ALWAYS);
        HELD("a retirement that is far", retirement, NULL, WAIT, NOW + MINUTES(40), (void) 0);
        HELD("a person let earlier ones go", spot, NULL, CORDON, SPOT_UNTIL, c.f.let_go_usec = NOW - USEC_PER_SEC);
        HELD("its claim is being deleted", spot, NULL, KEEP, SPOT_UNTIL, c.f.is_going = true; c.f.let_go_usec = NOW);
        FREED("a person let it go", spot, "spot:b", c.f.let_go_usec = NOW);
        FREED("a person let it go, and another one came since", spot, "hook:Held spot:b", ALSO(hook, HELD); c.l.items[0].notice->received_usec = NOW + 1;
              c.f.let_go_usec = NOW);
        FREED("the agent reports the same", spot, "spot:b", c.f.agents = &agents);
        FREED("a person opened the node", spot, "spot:Overruled", c.first = *c.l.items[0].notice; c.drain = (Interruption){ .notice = &c.first, .boot_id = (char *) "b" };
              c.f.drain = &c.drain);
        FREED("outlived", spot, "", AT(OUTLIVED(SPOT_UNTIL)));
        FREED("for years, as its sender says", spot, "", c.l.items[0].notice->announced_usec = NOW + 3650 * USEC_PER_DAY; AT(OUTLIVED(NOW + USEC_PER_HOUR)));
        HELD("a hook, for an hour", hook, "Drained", KEEP, OUTLIVED(NOW + 2 * USEC_PER_DAY), AT(NOW + USEC_PER_HOUR));
        FREED("a hook, for two days", hook, "", AT(OUTLIVED(NOW + 2 * USEC_PER_DAY)));
        agents.notice = &by_hand;
        HELD("somebody drains it by hand", spot, NULL, CORDON, SPOT_UNTIL, c.f.agents = &agents);
        agents = (Interruption){ .notice = &spot, .phase = INTERRUPTION_CANCELLED };
        HELD("the agent's notice was withdrawn", spot, NULL, CORDON, SPOT_UNTIL, c.f.agents = &agents);
}

/* The boot of each notice. */
TEST_CASE(test_boots) {
        BECOMES("booted long before", reboot, NULL, "reboot:second", BOOTED);
        BECOMES("booted when it is drained, before its time", reboot, "Drained", "reboot:second", BOOTED; AT(NOW + MINUTES(80)));
        BECOMES("rebooted as was announced, as this leader saw", reboot, "Drained", "reboot:Done", BOOTED; AT(STARTED); c.f.other_boot_usec = STARTED - 1);
        BECOMES("... as the Node's Ready says", reboot, "Drained", "reboot:Done", BOOTED; AT(STARTED); c.f.ready_since_usec = STARTED - 1);
        MANAGED("... and it is not Ready yet", reboot, "Drained", CORDON, NOW + MINUTES(210), BOOTED; AT(STARTED); c.f.is_ready = false);
        BECOMES("booted before its time, and no leader saw it", reboot, "Drained", "reboot:second", BOOTED; AT(STARTED));
        MANAGED("rebooted, and it stands as Done", reboot, NULL, NOTHING, REBOOT_UNTIL, announced_list_done(&c.l); ALSO(reboot, DONE); BOOTED; AT(STARTED));
        BECOMES("... until it is outlived", reboot, NULL, "", announced_list_done(&c.l); ALSO(reboot, DONE); BOOTED; AT(REBOOT_UNTIL));
        BECOMES("its window has closed, and it was not rebooted", reboot, "Drained", "", AT(REBOOT_UNTIL));
        BECOMES("booted before it stops", stop, "Drained", "stop:second", BOOTED);
        BECOMES("a stop, and it is back", stop, "Drained", "stop:Done", BOOTED; AT(NOW + MINUTES(3)); c.f.other_boot_usec = SPOT_UNTIL);
        BECOMES("a hibernation, and a boot since", hibernation, "Drained", "sleep:Done", BOOTED; c.f.other_boot_usec = NOW);
        BECOMES("a stop is over, and a reboot is to come", stop, "Drained", "stop:Done reboot:second", BOOTED; AT(NOW + MINUTES(3)); c.f.other_boot_usec = SPOT_UNTIL; ALSO(reboot, STANDS));
        BECOMES("an end is not over by a boot", spot, NULL, "spot:second", BOOTED);
}

TEST_CASE(test_end) {
        static const struct {
                AnnouncedState state;
                HeardEnd why;
        } rows[] = { { ANNOUNCED_DONE, HEARD_END_BOOTED }, { ANNOUNCED_CALLED_OFF, HEARD_END_CALLED_OFF }, { ANNOUNCED_OVERRULED, HEARD_END_OVERRULED }, { ANNOUNCED_STANDS, HEARD_END_MOVED } };
        Case c;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                case_init(&c, "Drained", true);
                case_add(&c, &reboot, rows[i].state, "b");
                assert_int_equal(heard_end(&c.f), rows[i].why);
                assert_int_equal(heard_is_overruled(&c.f), rows[i].state == ANNOUNCED_OVERRULED);
                c.f.is_kept = true;
                assert_int_equal(heard_end(&c.f), HEARD_END_EXEMPT);
                announced_list_done(&c.l);
        }
        case_init(&c, "Drained", true);
        assert_int_equal(heard_end(&c.f), HEARD_END_OUTLIVED);
        BOOTED;
        assert_int_equal(heard_end(&c.f), HEARD_END_BOOTED);
}

/* By the earliest of those that are due; named is the one that comes first. */
TEST_CASE(test_deadline) {
        usec_t deadline;
        Case c;

        case_init(&c, "Draining", true);
        case_add(&c, &reboot, ANNOUNCED_STANDS, "b");
        assert_null(heard_drained_for(&c.f, &deadline));
        assert_int_equal(deadline, USEC_INFINITY);
        case_add(&c, &hibernation, ANNOUNCED_STANDS, "b");
        assert_string_equal(heard_drained_for(&c.f, &deadline)->notice->id, "sleep");
        assert_int_equal(deadline, USEC_INFINITY);
        case_add(&c, &stop, ANNOUNCED_STANDS, "b");
        assert_string_equal(heard_drained_for(&c.f, &deadline)->notice->id, "sleep");
        assert_int_equal(deadline, SPOT_UNTIL);
        case_add(&c, &stop, ANNOUNCED_CALLED_OFF, "b");
        AT(NOW + MINUTES(30));
        (void) heard_drained_for(&c.f, &deadline);
        assert_int_equal(deadline, NOW + MINUTES(90));
        announced_list_done(&c.l);

        print_message("what the brake holds gives no time\n");
        case_init(&c, "Draining", true);
        case_add(&c, &spot, ANNOUNCED_HELD, "b");
        assert_string_equal(heard_drained_for(&c.f, &deadline)->notice->id, "spot");
        assert_int_equal(deadline, USEC_INFINITY);
        stop.announced_usec = NOW + MINUTES(5);
        case_add(&c, &stop, ANNOUNCED_STANDS, "b");
        stop.announced_usec = SPOT_UNTIL;
        assert_string_equal(heard_drained_for(&c.f, &deadline)->notice->id, "stop");
        assert_int_equal(deadline, NOW + MINUTES(5));
        announced_list_done(&c.l);
}

/* A window that never closes closes a day after it has opened. */
TEST_CASE(test_window) {
        Notice n = { .announced_usec = NOW };

        assert_int_equal(notice_window_end(&n), NOW);
        n.until_usec = NOW - 1;
        assert_int_equal(notice_window_end(&n), NOW);
        n.until_usec = NOW + MINUTES(7);
        assert_int_equal(notice_window_end(&n), NOW + MINUTES(7));
        n.until_usec = NOW + 365 * USEC_PER_DAY;
        assert_int_equal(notice_window_end(&n), NOW + NOTICE_WINDOW_MAX_USEC);
        n.announced_usec = 0;
        assert_int_equal(notice_window_end(&n), USEC_INFINITY);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_unmanaged), cmocka_unit_test(test_managed), cmocka_unit_test(test_boots),
                cmocka_unit_test(test_end),       cmocka_unit_test(test_held),       cmocka_unit_test(test_deadline), cmocka_unit_test(test_window),
        };

        return cmocka_run_group_tests(tests, make_notices, NULL);
}
