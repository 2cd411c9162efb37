/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "queue-decide.h"
#include "string-util.h"

#define NOW (UINT64_C(1790000000) * USEC_PER_SEC)
#define MINUTES(n) ((n) * USEC_PER_MINUTE)

#define TERMINATE .deletes = INTERRUPTION_DELETE_TERMINATE
#define ALWAYS .deletes = INTERRUPTION_DELETE_ALWAYS
#define NEVER .deletes = INTERRUPTION_DELETE_NEVER
#define MANAGED .is_managed = true, .has_node = true
#define UNKNOWN_FOR(n) .unknown_usec = MINUTES(n)

/* in_usec: the announced time, from now; USEC_INFINITY: none is said. */
static void assert_decides(const char *what, EventMessage *m, usec_t in_usec, const QueueFacts *facts, const QueueRules *rules, QueueAct expected) {
        _cleanup_(notice_freep) Notice *notice = NULL;
        QueueAct act;
        int r;

        m->not_before_usec = in_usec == USEC_INFINITY ? 0 : NOW + in_usec;
        r = event_message_notice(m, "i-1", &notice);
        assert_true(r == 0 || r == -ENODATA);
        act = queue_decide(m, notice, facts, rules);
        if (act != expected)
                fail_msg("%s: expected %s, saw %s", what, queue_act_to_string(expected), queue_act_to_string(act));
}

TEST_CASE(test_decide) {
        static const struct {
                const char *what;
                EventMessageKind kind;
                const char *action;
                usec_t in_usec; /* the end, from now; USEC_INFINITY: not said */
                bool closed;
                QueueFacts facts;
                QueueRules rules;
                QueueAct expected;
        } rows[] = {
                { "spot", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { MANAGED }, { TERMINATE },
                  QUEUE_WRITE },
                { "spot, its Node is not in view", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { .is_managed = true },
                  { TERMINATE }, QUEUE_WRITE },
                { "the same again", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false,
                  { MANAGED, .told = { .is_told = true, .is_same = true, .deletes = true, .usec = NOW + MINUTES(2) } }, { TERMINATE }, QUEUE_NOTHING },
                { "a later end, out of order", EVENT_MESSAGE_SPOT, "terminate", MINUTES(3), false,
                  { MANAGED, .told = { .is_told = true, .deletes = true, .usec = NOW + MINUTES(2) } }, { TERMINATE }, QUEUE_KNOWN },
                { "a nearer end", EVENT_MESSAGE_SPOT, "terminate", MINUTES(1), false,
                  { MANAGED, .told = { .is_told = true, .deletes = true, .usec = NOW + MINUTES(2) } }, { TERMINATE }, QUEUE_WRITE },
                { "an end after one without time", EVENT_MESSAGE_SPOT, "terminate", MINUTES(1), false,
                  { MANAGED, .told = { .is_told = true, .deletes = true, .usec = USEC_INFINITY } }, { TERMINATE }, QUEUE_WRITE },
                { "stop", EVENT_MESSAGE_SPOT, "stop", MINUTES(2), false, { MANAGED }, { TERMINATE },
                  QUEUE_WRITE },
                { "stop, always", EVENT_MESSAGE_SPOT, "stop", MINUTES(2), false, { MANAGED }, { ALWAYS },
                  QUEUE_WRITE },
                { "never", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { MANAGED }, { NEVER },
                  QUEUE_TELL },
                { "a node of no pool", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { .has_node = true },
                  { TERMINATE }, QUEUE_TELL },
#define FREE .has_node = true, .is_drainable = true
#define DRAINS .drains_unmanaged = true, TERMINATE
                { "a node of no pool, drained", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { FREE }, { DRAINS }, QUEUE_WRITE_NODE },
                { "the same, reported", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { FREE },
                  { TERMINATE }, QUEUE_TELL },
                { "a node that is kept from vesper", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { .has_node = true }, { DRAINS },
                  QUEUE_TELL },
                { "of no pool, a stop", EVENT_MESSAGE_SPOT, "stop", MINUTES(2), false, { FREE }, { DRAINS }, QUEUE_WRITE_NODE },
                { "of no pool, a stop, always", EVENT_MESSAGE_SPOT, "stop", MINUTES(2), false, { FREE },
                  { .drains_unmanaged = true, ALWAYS }, QUEUE_WRITE_NODE },
                { "of no pool, never", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { FREE },
                  { .drains_unmanaged = true, NEVER }, QUEUE_TELL },
                { "of no pool, rebalance", EVENT_MESSAGE_REBALANCE, "", USEC_INFINITY, false, { FREE }, { DRAINS }, QUEUE_TELL },
                { "of no pool, retirement within the hour", EVENT_MESSAGE_HEALTH, "terminate", MINUTES(59), false, { FREE }, { DRAINS },
                  QUEUE_WRITE_NODE },
                { "of no pool, retirement in two weeks", EVENT_MESSAGE_HEALTH, "terminate", 14 * USEC_PER_DAY, false, { FREE }, { DRAINS },
                  QUEUE_WRITE_NODE },
                { "of no pool, and its pool lets go of it", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false,
                  { .has_node = true, .is_joining = true }, { DRAINS }, QUEUE_SOON },
                { "of no pool, the same again", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false,
                  { FREE, .told = { .is_told = true, .is_same = true, .deletes = true, .usec = NOW + MINUTES(2), .own_usec = NOW + MINUTES(2) } }, { DRAINS }, QUEUE_NOTHING },
                { "of no pool, a later end", EVENT_MESSAGE_SPOT, "terminate", MINUTES(3), false,
                  { FREE, .told = { .is_told = true, .deletes = true, .usec = NOW + MINUTES(2) } }, { DRAINS }, QUEUE_KNOWN },
                { "of no pool, a nearer end", EVENT_MESSAGE_SPOT, "terminate", MINUTES(1), false,
                  { FREE, .told = { .is_told = true, .deletes = true, .usec = NOW + MINUTES(2) } }, { DRAINS }, QUEUE_WRITE_NODE },
                { "of no pool, overruled", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false,
                  { FREE, .is_overruled = true, .told = { .is_told = true, .deletes = true, .usec = NOW + MINUTES(2) } }, { DRAINS }, QUEUE_NOTHING },
                { "of no pool, a hook", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false, { FREE }, { DRAINS }, QUEUE_WRITE_NODE },
                { "of no pool, a hook, and it drains", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false,
                  { FREE, .told = { .is_told = true, .deletes = true, .is_now = true, .usec = USEC_INFINITY } }, { DRAINS }, QUEUE_BEAT },
                { "of no pool, a hook, drained", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false,
                  { FREE, .told = { .is_told = true, .deletes = true, .is_now = true, .usec = USEC_INFINITY }, .is_drained = true }, { DRAINS }, QUEUE_CONTINUE },
                { "of no pool, a hook, overruled", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false,
                  { FREE, .is_overruled = true, .is_held = true, .told = { .is_told = true, .deletes = true, .is_now = true, .usec = USEC_INFINITY } }, { DRAINS },
                  QUEUE_NOTHING },
                { "a node that a pool wants, without its claim", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false,
                  { .has_node = true, .is_joining = true }, { TERMINATE }, QUEUE_SOON },
                { "the same, and nothing is to be written", EVENT_MESSAGE_REBALANCE, "", USEC_INFINITY, false,
                  { .has_node = true, .is_joining = true }, { ALWAYS }, QUEUE_TELL },
                { "rebalance", EVENT_MESSAGE_REBALANCE, "", USEC_INFINITY, false, { MANAGED }, { ALWAYS },
                  QUEUE_TELL },
                { "a hook, told, and the node drains", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false,
                  { MANAGED, .told = { .is_told = true, .deletes = true, .is_now = true, .usec = USEC_INFINITY }, .is_held = true }, { TERMINATE },
                  QUEUE_BEAT },
                { "a hook, after a change that is to come", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false,
                  { MANAGED, .told = { .is_told = true, .deletes = true, .usec = NOW + MINUTES(50) } }, { TERMINATE }, QUEUE_WRITE },
                { "hibernation, after a change that is to come", EVENT_MESSAGE_SPOT, "hibernate", USEC_INFINITY, false,
                  { MANAGED, .told = { .is_told = true, .deletes = true, .usec = NOW + MINUTES(50) } }, { ALWAYS }, QUEUE_WRITE },
                { "a hook, after a spot notice", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false,
                  { MANAGED, .told = { .is_told = true, .deletes = true, .is_now = true, .usec = NOW } }, { TERMINATE }, QUEUE_BEAT },
                { "a hook, drained", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false,
                  { MANAGED, .told = { .is_told = true, .deletes = true, .is_now = true, .usec = USEC_INFINITY }, .is_held = true, .is_drained = true },
                  { TERMINATE }, QUEUE_CONTINUE },
                { "a hook, and all is gone", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false,
                  { UNKNOWN_FOR(0), .is_held = true }, { TERMINATE }, QUEUE_CONTINUE },
                { "a hook, claims are never deleted", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false, { MANAGED },
                  { NEVER }, QUEUE_TELL },
                { "a launch, not there yet", EVENT_MESSAGE_ASG_LAUNCH, "", USEC_INFINITY, false, { UNKNOWN_FOR(9), .sight = QUEUE_SEEN }, {},
                  QUEUE_WAIT },
                { "a launch, not Ready yet", EVENT_MESSAGE_ASG_LAUNCH, "", USEC_INFINITY, false, { .has_node = true }, {}, QUEUE_WAIT },
                { "a launch, Ready", EVENT_MESSAGE_ASG_LAUNCH, "", USEC_INFINITY, false, { .has_node = true, .is_ready = true }, {},
                  QUEUE_CONTINUE },
                { "a hook", EVENT_MESSAGE_ASG_TERMINATE, "terminate", USEC_INFINITY, false, { MANAGED },
                  { TERMINATE }, QUEUE_WRITE },
                { "going down", EVENT_MESSAGE_STATE_CHANGE, "stopping", USEC_INFINITY, false, { MANAGED }, {}, QUEUE_LOOK },
                { "going up", EVENT_MESSAGE_STATE_CHANGE, "running", USEC_INFINITY, false, { MANAGED }, {}, QUEUE_TELL },
                { "retirement within the hour", EVENT_MESSAGE_HEALTH, "terminate", MINUTES(59), false, { MANAGED },
                  { TERMINATE }, QUEUE_WRITE },
                { "retirement in two weeks", EVENT_MESSAGE_HEALTH, "terminate", 14 * USEC_PER_DAY, false, { MANAGED },
                  { TERMINATE }, QUEUE_WRITE },
                { "a reboot, soon", EVENT_MESSAGE_HEALTH, "reboot", MINUTES(5), false, { MANAGED },
                  { ALWAYS }, QUEUE_WRITE },
                { "called off", EVENT_MESSAGE_HEALTH, "terminate", MINUTES(5), true, { MANAGED },
                  { TERMINATE }, QUEUE_TAKE_BACK },
                { "unknown, just now", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { UNKNOWN_FOR(0) },
                  { TERMINATE }, QUEUE_ASK },
                { "unknown, and EC2 has it", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { UNKNOWN_FOR(9), .sight = QUEUE_SEEN },
                  { TERMINATE }, QUEUE_WAIT },
                { "unknown, also to EC2, too soon", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false,
                  { UNKNOWN_FOR(1), .sight = QUEUE_NOT_SEEN }, { TERMINATE }, QUEUE_WAIT },
                { "unknown, also to EC2, for two minutes", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false,
                  { UNKNOWN_FOR(2), .sight = QUEUE_NOT_SEEN }, { TERMINATE }, QUEUE_FOREIGN },
                { "unknown, and EC2 does not say", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false,
                  { UNKNOWN_FOR(9), .sight = QUEUE_UNCLEAR }, { TERMINATE }, QUEUE_WAIT },
                { "it has ended", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { UNKNOWN_FOR(0), .sight = QUEUE_ENDED },
                  { TERMINATE }, QUEUE_FOREIGN },
                { "unknown, and only for an Event", EVENT_MESSAGE_REBALANCE, "", USEC_INFINITY, false, { UNKNOWN_FOR(0) },
                  { TERMINATE }, QUEUE_FOREIGN },
                { "unknown, shared", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { UNKNOWN_FOR(9), .sight = QUEUE_ENDED },
                  { .is_shared = true, TERMINATE }, QUEUE_LEAVE },
                { "unknown, for an Event, shared", EVENT_MESSAGE_REBALANCE, "", USEC_INFINITY, false, { UNKNOWN_FOR(9) },
                  { .is_shared = true }, QUEUE_LEAVE },
                { "ours, shared", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { MANAGED },
                  { .is_shared = true, TERMINATE }, QUEUE_WRITE },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                QueueRules rules = rows[i].rules;
                EventMessage m = { .kind = rows[i].kind, .action = (char *) rows[i].action, .closed = rows[i].closed, .id = (char *) "e" };

                rules.wall_usec = NOW;
                rules.before_usec = USEC_PER_HOUR;
                assert_decides(rows[i].what, &m, rows[i].in_usec, &rows[i].facts, &rules, rows[i].expected);
        }
}

/* A Node is not closed for what it has outlived: a message that comes again, very late, is an Event. */
TEST_CASE(test_outlived) {
        const QueueRules rules = { .drains_unmanaged = true, TERMINATE, .before_usec = USEC_PER_HOUR, .wall_usec = NOW };
        const QueueFacts facts = { .has_node = true, .is_drainable = true };
        QueueFacts told;
        EventMessage m = { .kind = EVENT_MESSAGE_SPOT, .action = (char *) "terminate", .id = (char *) "e" };

        for (unsigned late = 0; late <= 1; late++) {
                _cleanup_(notice_freep) Notice *notice = NULL;

                m.not_before_usec = NOW - QUEUE_OUTLIVED_USEC + 1 - late;
                assert_return_code(event_message_notice(&m, "i-1", &notice), 0);
                assert_int_equal(queue_decide(&m, notice, &facts, &rules), late ? QUEUE_TELL : QUEUE_WRITE_NODE);
                /* Another one stands, whose time is to come. */
                told = facts;
                told.told = (QueueTold){ .is_told = true, .usec = NOW + MINUTES(2) };
                assert_int_equal(queue_decide(&m, notice, &told, &rules), late ? QUEUE_TELL : QUEUE_NOTHING);
        }
}

/* What is kept: nothing is done for it yet, or the node comes back from it. What stands already is of another notice, two hours away, unless
 * it is the same. */
TEST_CASE(test_kept) {
#define HOURS(n) (n) * USEC_PER_HOUR
#define OTHER(...) .told = { .is_told = true, .usec = NOW + HOURS(2), .own_usec = NOW + HOURS(2), __VA_ARGS__ }
#define SAME(...) OTHER(.is_same = true, __VA_ARGS__)
#define ON_NODE(...) .on_node = { .is_told = true, .usec = NOW + HOURS(2), .own_usec = NOW + HOURS(2), __VA_ARGS__ }
        static const struct {
                const char *what;
                EventMessageKind kind;
                const char *action;
                usec_t in_usec; /* as in test_decide */
                bool closed;
                InterruptionDelete deletes;
                QueueFacts facts;
                QueueAct expected;
        } rows[] = {
#define T INTERRUPTION_DELETE_TERMINATE
#define A INTERRUPTION_DELETE_ALWAYS
#define N INTERRUPTION_DELETE_NEVER
#define HEALTH EVENT_MESSAGE_HEALTH
#define SPOT EVENT_MESSAGE_SPOT
#define STATE EVENT_MESSAGE_STATE_CHANGE
                { "a stop", SPOT, "stop", MINUTES(2), false, T, { MANAGED }, QUEUE_WRITE },
                { "a hibernation", SPOT, "hibernate", USEC_INFINITY, false, T, { MANAGED }, QUEUE_WRITE },
                { "a reboot, far", HEALTH, "reboot", HOURS(40), false, T, { MANAGED }, QUEUE_WRITE },
                { "a maintenance, near", HEALTH, "maintenance", MINUTES(5), false, T, { MANAGED }, QUEUE_WRITE },
                { "a retirement, far", HEALTH, "terminate", HOURS(40), false, T, { MANAGED }, QUEUE_WRITE },
                { "never", HEALTH, "reboot", HOURS(40), false, N, { MANAGED }, QUEUE_TELL },
                { "without a time", HEALTH, "reboot", USEC_INFINITY, false, T, { MANAGED }, QUEUE_TELL },
                { "long past", HEALTH, "reboot", (usec_t) -HOURS(1), false, T, { MANAGED }, QUEUE_TELL },
                { "a claim without Node", HEALTH, "reboot", HOURS(40), false, T, { .is_managed = true }, QUEUE_WRITE },

                { "the same again", HEALTH, "reboot", HOURS(2), false, T, { MANAGED, SAME(.deletes = false) }, QUEUE_NOTHING },
                { "moved to later", HEALTH, "reboot", HOURS(5), false, T, { MANAGED, SAME(.deletes = false) }, QUEUE_WRITE },
                { "moved, by a message of before that comes again", HEALTH, "reboot", HOURS(5), false, T, { MANAGED, SAME(.said_usec = NOW + 1) }, QUEUE_NOTHING },
                { "a retirement, moved", HEALTH, "terminate", HOURS(5), false, T, { MANAGED, SAME(.deletes = true) }, QUEUE_WRITE },
                { "the same again, and another one brought it nearer", HEALTH, "terminate", HOURS(5), false, T,
                  { MANAGED, .told = { .is_told = true, .is_same = true, .deletes = true, .usec = NOW + HOURS(2), .own_usec = NOW + HOURS(5) } },
                  QUEUE_NOTHING },
                { "moved too late", HEALTH, "reboot", HOURS(5), false, T, { MANAGED, SAME(.is_begun = true) }, QUEUE_NOTHING },
                { "moved before the one on the Node", HEALTH, "reboot", MINUTES(90), false, T,
                  { MANAGED, SAME(.deletes = false), ON_NODE(.deletes = false) }, QUEUE_SWAP },
                { "on the Node, moved behind the one on the claim", HEALTH, "reboot", HOURS(5), false, T,
                  { MANAGED, OTHER(.deletes = false), ON_NODE(.is_same = true) }, QUEUE_MAKE_ROOM },
                { "moved, on the Node", HEALTH, "reboot", HOURS(5), false, T,
                  { MANAGED, OTHER(.deletes = true), ON_NODE(.is_same = true) }, QUEUE_WRITE_NODE },

                { "a retirement after a reboot was told", HEALTH, "terminate", HOURS(5), false, T, { MANAGED, OTHER(.deletes = false) }, QUEUE_MAKE_ROOM },
                { "... which has moved to the Node", HEALTH, "terminate", HOURS(5), false, T,
                  { MANAGED, OTHER(.is_on_node = true), ON_NODE(.deletes = false) }, QUEUE_WRITE },
                { "... which has no room there", HEALTH, "terminate", HOURS(5), false, T, { MANAGED, OTHER(.deletes = false), ON_NODE(.deletes = false) },
                  QUEUE_WRITE },
                { "an earlier retirement", HEALTH, "terminate", MINUTES(90), false, T, { MANAGED, OTHER(.deletes = true) }, QUEUE_MAKE_ROOM },
                { "an earlier retirement, within the hour", HEALTH, "terminate", MINUTES(30), false, T, { MANAGED, OTHER(.deletes = true) }, QUEUE_MAKE_ROOM },
                { "a later retirement", HEALTH, "terminate", HOURS(5), false, T, { MANAGED, OTHER(.deletes = true) }, QUEUE_WRITE_NODE },
                { "... and the Node has another", HEALTH, "terminate", HOURS(5), false, T, { MANAGED, OTHER(.deletes = true), ON_NODE(.deletes = false) }, QUEUE_KNOWN },
                { "... and it goes already", HEALTH, "terminate", HOURS(5), false, T, { MANAGED, OTHER(.deletes = true), .is_going = true }, QUEUE_KNOWN },
                { "an end now, after a retirement", SPOT, "terminate", MINUTES(2), false, T, { MANAGED, OTHER(.deletes = true) }, QUEUE_WRITE },
                { "an end now, after a reboot", SPOT, "terminate", MINUTES(2), false, T, { MANAGED, OTHER(.deletes = false) }, QUEUE_WRITE },
                { "a reboot before a retirement", HEALTH, "reboot", MINUTES(90), false, T, { MANAGED, OTHER(.deletes = true) }, QUEUE_WRITE_NODE },
                { "a reboot after a retirement, which may be called off", HEALTH, "reboot", HOURS(5), false, T, { MANAGED, OTHER(.deletes = true) },
                  QUEUE_WRITE_NODE },
                { "a reboot after a reboot", HEALTH, "reboot", HOURS(5), false, T, { MANAGED, OTHER(.deletes = false) }, QUEUE_MAKE_ROOM },
                { "... which has moved to the Node", HEALTH, "reboot", HOURS(5), false, T, { MANAGED, OTHER(.is_on_node = true), ON_NODE(.deletes = false) },
                  QUEUE_WRITE },
                { "a reboot before a reboot", HEALTH, "reboot", MINUTES(90), false, T, { MANAGED, OTHER(.deletes = false) }, QUEUE_WRITE_NODE },
                { "a reboot before the one on the Node, and the claim is free", HEALTH, "reboot", MINUTES(90), false, T, { MANAGED, ON_NODE(.deletes = false) },
                  QUEUE_SWAP },
                { "... which has moved to the claim", HEALTH, "reboot", MINUTES(90), false, T, { MANAGED, OTHER(.is_on_node = true), ON_NODE(.deletes = false) },
                  QUEUE_WRITE_NODE },
                { "a third, before the others", HEALTH, "reboot", MINUTES(90), false, T, { MANAGED, OTHER(.deletes = false), ON_NODE(.deletes = false) },
                  QUEUE_WRITE_NODE },
                { "a third, after the others", HEALTH, "reboot", HOURS(5), false, T, { MANAGED, OTHER(.deletes = false), ON_NODE(.deletes = false) },
                  QUEUE_KNOWN },
                { "a stop now, before a reboot", SPOT, "stop", MINUTES(2), false, T, { MANAGED, OTHER(.deletes = false) }, QUEUE_WRITE_NODE },
                { "the same, without Node", SPOT, "stop", MINUTES(2), false, T, { .is_managed = true, OTHER(.deletes = false) }, QUEUE_NOTHING },
                { "a hibernation, and the Node is drained for another", SPOT, "hibernate", USEC_INFINITY, false, T,
                  { MANAGED, OTHER(.deletes = false), ON_NODE(.is_begun = true) }, QUEUE_KNOWN },
                { "a stop in two minutes, and the Node is drained for another", SPOT, "stop", MINUTES(2), false, T,
                  { MANAGED, OTHER(.deletes = false), ON_NODE(.is_begun = true) }, QUEUE_WRITE },
                { "a reboot after the one that it drains for", HEALTH, "reboot", HOURS(5), false, T,
                  { MANAGED, OTHER(.is_on_node = true, .is_begun = true), ON_NODE(.is_begun = true) }, QUEUE_WRITE },
                { "a reboot after a hibernation that it drains for", HEALTH, "reboot", MINUTES(30), false, T,
                  { MANAGED, .told = { .is_told = true, .is_now = true, .is_on_node = true, .is_begun = true, .usec = USEC_INFINITY, .own_usec = USEC_INFINITY },
                    ON_NODE(.is_begun = true) }, QUEUE_WRITE },
                { "a stop, and a person has opened the Node in spite of another", SPOT, "stop", MINUTES(2), false, T,
                  { MANAGED, OTHER(.is_on_node = false), .on_node = { .is_over = true } }, QUEUE_WRITE_NODE },
                { "it goes already", HEALTH, "reboot", HOURS(5), false, T, { MANAGED, .is_going = true }, QUEUE_KNOWN },

                { "called off", HEALTH, "reboot", HOURS(2), true, T, { MANAGED, SAME(.deletes = false) }, QUEUE_TAKE_BACK },
                { "a retirement, called off", HEALTH, "terminate", HOURS(2), true, T, { MANAGED, SAME(.deletes = true) }, QUEUE_TAKE_BACK },
                { "called off while it drains", HEALTH, "reboot", HOURS(2), true, T,
                  { MANAGED, SAME(.is_begun = true), ON_NODE(.is_same = true, .is_begun = true) }, QUEUE_CANCEL_NODE },
                { "called off before it was told", HEALTH, "terminate", HOURS(2), true, T, { MANAGED }, QUEUE_TAKE_BACK },
                { "of no pool, called off before it was told", HEALTH, "terminate", HOURS(2), true, T, { FREE }, QUEUE_CANCEL_NODE },
                { "called off long after it was to be", HEALTH, "terminate", (usec_t) -HOURS(2), true, T, { MANAGED }, QUEUE_TELL },
                { "unknown, called off", HEALTH, "terminate", HOURS(2), true, T, { UNKNOWN_FOR(0) }, QUEUE_ASK },
                { "called off too late", HEALTH, "terminate", HOURS(2), true, T, { MANAGED, SAME(.deletes = true), .is_going = true }, QUEUE_TELL },
                { "one of two that have become one is called off", HEALTH, "reboot", HOURS(5), true, T,
                  { MANAGED, .told = { .is_told = true, .is_same = true, .usec = NOW + HOURS(2), .own_usec = NOW + HOURS(5) } }, QUEUE_TELL },
                { "called off twice", HEALTH, "reboot", HOURS(2), true, T, { MANAGED, .told = { .is_same = true, .is_over = true } }, QUEUE_NOTHING },
                { "called off twice, on the Node", HEALTH, "reboot", HOURS(2), true, T, { MANAGED, .on_node = { .is_same = true, .is_over = true } },
                  QUEUE_NOTHING },
                { "told again after it was called off", HEALTH, "reboot", HOURS(5), false, T,
                  { MANAGED, .told = { .is_same = true, .is_over = true } }, QUEUE_NOTHING },
                { "a retirement, told again after it was called off", HEALTH, "terminate", MINUTES(5), false, T,
                  { MANAGED, .told = { .is_same = true, .is_over = true } }, QUEUE_NOTHING },
                { "told again after it was called off on the Node", HEALTH, "reboot", HOURS(5), false, T,
                  { MANAGED, .on_node = { .is_same = true, .is_over = true } }, QUEUE_NOTHING },
                { "another after one that was called off", HEALTH, "reboot", HOURS(5), false, T, { MANAGED, .told = { .is_over = true } }, QUEUE_WRITE },
                { "another is called off", HEALTH, "reboot", HOURS(2), true, T, { MANAGED, OTHER(.deletes = false) }, QUEUE_TELL },
                { "of no pool, called off", HEALTH, "reboot", HOURS(2), true, T, { FREE, SAME(.is_begun = true), ON_NODE(.is_same = true) },
                  QUEUE_CANCEL_NODE },
                { "of no pool, moved", HEALTH, "reboot", HOURS(5), false, T, { FREE, SAME(.is_begun = false) }, QUEUE_WRITE_NODE },
                { "of no pool, a reboot, far, and the Node is closed for what has passed", HEALTH, "reboot", HOURS(40), false, T,
                  { FREE, .told = { .is_begun = true } }, QUEUE_WAIT },
                { "of no pool, a reboot, near, likewise", HEALTH, "reboot", MINUTES(40), false, T, { FREE, .told = { .is_begun = true } }, QUEUE_WRITE_NODE },
                { "of no pool, a reboot, far, and its group lets go of it now", HEALTH, "reboot", HOURS(40), false, T,
                  { FREE, .told = { .is_told = true, .is_now = true, .is_for_good = true, .usec = USEC_INFINITY } }, QUEUE_KNOWN },
                { "of no pool, a reboot, far", HEALTH, "reboot", HOURS(40), false, T, { FREE }, QUEUE_WRITE_NODE },

#define READY .is_ready = true
                { "stopping", STATE, "stopping", USEC_INFINITY, false, T, { MANAGED, READY }, QUEUE_WRITE },
                { "shutting down", STATE, "shutting-down", USEC_INFINITY, false, T, { MANAGED, READY }, QUEUE_WRITE },
                { "stopping, never", STATE, "stopping", USEC_INFINITY, false, N, { MANAGED, READY }, QUEUE_LOOK },
                { "stopping, and not Ready", STATE, "stopping", USEC_INFINITY, false, T, { MANAGED }, QUEUE_LOOK },
                { "stopping, and it is back since", STATE, "stopping", USEC_INFINITY, false, T, { MANAGED, READY, .ready_since_usec = NOW + 1 }, QUEUE_LOOK },
                { "our own end of it", STATE, "shutting-down", USEC_INFINITY, false, T, { MANAGED, READY, .is_going = true }, QUEUE_LOOK },
                { "stopping, as was told", STATE, "stopping", USEC_INFINITY, false, T,
                  { MANAGED, READY, OTHER(.is_begun = true), ON_NODE(.is_begun = true) }, QUEUE_LOOK },
                { "stopping, and a reboot is to come", STATE, "stopping", USEC_INFINITY, false, T, { MANAGED, READY, OTHER(.deletes = false) },
                  QUEUE_WRITE_NODE },
                { "shutting down, and a reboot is to come", STATE, "shutting-down", USEC_INFINITY, false, T,
                  { MANAGED, READY, OTHER(.deletes = false) }, QUEUE_WRITE },
                { "stopped", STATE, "stopped", USEC_INFINITY, false, T, { MANAGED, READY }, QUEUE_LOOK },
                { "of no pool, stopping", STATE, "stopping", USEC_INFINITY, false, T, { FREE, READY }, QUEUE_WRITE_NODE },
                { "of no pool, kept from vesper, stopping", STATE, "stopping", USEC_INFINITY, false, T, { .has_node = true, READY }, QUEUE_LOOK },
                { "a node that is joining, stopping", STATE, "stopping", USEC_INFINITY, false, T, { .has_node = true, READY, .is_joining = true },
                  QUEUE_SOON },
                { "unknown, stopping", STATE, "stopping", USEC_INFINITY, false, T, { UNKNOWN_FOR(0) }, QUEUE_FOREIGN },
                { "Delete=always, stopping", STATE, "stopping", USEC_INFINITY, false, A, { MANAGED, READY }, QUEUE_WRITE },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const QueueRules rules = { .deletes = rows[i].deletes, .drains_unmanaged = true, .before_usec = USEC_PER_HOUR, .wall_usec = NOW };
                EventMessage m = { .kind = rows[i].kind, .action = (char *) rows[i].action, .closed = rows[i].closed, .id = (char *) "e", .sent_usec = NOW };

                assert_decides(rows[i].what, &m, rows[i].in_usec, &rows[i].facts, &rules, rows[i].expected);
        }
}

/* A message that comes so late that its machine has outlived it ends nothing, be it a NodePool's or not. */
TEST_CASE(test_late) {
        const QueueRules rules = { TERMINATE, .drains_unmanaged = true, .before_usec = USEC_PER_HOUR, .wall_usec = NOW };
        static const struct {
                EventMessage message;
                QueueAct in_time;
        } rows[] = {
                { { .kind = EVENT_MESSAGE_SPOT, .action = (char *) "terminate", .id = (char *) "e" }, QUEUE_WRITE },
                { { .kind = EVENT_MESSAGE_SPOT, .action = (char *) "hibernate", .id = (char *) "e" }, QUEUE_WRITE },
                { { .kind = EVENT_MESSAGE_STATE_CHANGE, .action = (char *) "shutting-down", .id = (char *) "e" }, QUEUE_WRITE },
        };

        for (size_t i = 0; i < 2 * ELEMENTSOF(rows); i++) {
                EventMessage m = rows[i / 2].message;
                _cleanup_(notice_freep) Notice *notice = NULL;
                QueueAct act;

                m.sent_usec = NOW - QUEUE_OUTLIVED_USEC + (i % 2 ? 0 : 1);
                if (streq(m.action, "terminate"))
                        m.not_before_usec = m.sent_usec;
                assert_return_code(event_message_notice(&m, "i-1", &notice), 0);
                act = queue_decide(&m, notice, &(QueueFacts){ MANAGED, READY }, &rules);
                assert_int_equal(act, i % 2 == 0                        ? rows[i / 2].in_time
                                      : m.kind == EVENT_MESSAGE_STATE_CHANGE ? QUEUE_LOOK
                                                                             : QUEUE_TELL);
        }
}

TEST_CASE(test_poison) {
        assert_false(queue_is_poison(QUEUE_POISON_RECEIVES - 1, &(QueueRules){}));
        assert_true(queue_is_poison(QUEUE_POISON_RECEIVES, &(QueueRules){}));
        assert_false(queue_is_poison(1000, &(QueueRules){ .is_shared = true }));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_decide),
                cmocka_unit_test(test_outlived),
                cmocka_unit_test(test_kept),
                cmocka_unit_test(test_late),
                cmocka_unit_test(test_poison),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
