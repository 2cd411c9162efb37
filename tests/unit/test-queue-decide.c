/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "queue-decide.h"
#include "string-util.h"

#define NOW (UINT64_C(1790000000) * USEC_PER_SEC)
#define MINUTES(n) ((n) * USEC_PER_MINUTE)

#define MANAGED .is_managed = true, .has_node = true
#define UNKNOWN_FOR(n) .unknown_usec = MINUTES(n)

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
                { "spot", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { MANAGED }, { .deletes = INTERRUPTION_DELETE_TERMINATE },
                  QUEUE_WRITE },
                { "spot, its Node is not in view", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { .is_managed = true },
                  { .deletes = INTERRUPTION_DELETE_TERMINATE }, QUEUE_WRITE },
                { "the same again", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false,
                  { MANAGED, .is_told = true, .told_usec = NOW + MINUTES(2) }, { .deletes = INTERRUPTION_DELETE_TERMINATE }, QUEUE_NOTHING },
                { "a later end, out of order", EVENT_MESSAGE_SPOT, "terminate", MINUTES(3), false,
                  { MANAGED, .is_told = true, .told_usec = NOW + MINUTES(2) }, { .deletes = INTERRUPTION_DELETE_TERMINATE }, QUEUE_NOTHING },
                { "a nearer end", EVENT_MESSAGE_SPOT, "terminate", MINUTES(1), false,
                  { MANAGED, .is_told = true, .told_usec = NOW + MINUTES(2) }, { .deletes = INTERRUPTION_DELETE_TERMINATE }, QUEUE_WRITE },
                { "an end after one without time", EVENT_MESSAGE_SPOT, "terminate", MINUTES(1), false,
                  { MANAGED, .is_told = true, .told_usec = USEC_INFINITY }, { .deletes = INTERRUPTION_DELETE_TERMINATE }, QUEUE_WRITE },
                { "stop", EVENT_MESSAGE_SPOT, "stop", MINUTES(2), false, { MANAGED }, { .deletes = INTERRUPTION_DELETE_TERMINATE },
                  QUEUE_TELL },
                { "stop, always", EVENT_MESSAGE_SPOT, "stop", MINUTES(2), false, { MANAGED }, { .deletes = INTERRUPTION_DELETE_ALWAYS },
                  QUEUE_WRITE },
                { "never", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { MANAGED }, { .deletes = INTERRUPTION_DELETE_NEVER },
                  QUEUE_TELL },
                { "a node of no pool", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { .has_node = true },
                  { .deletes = INTERRUPTION_DELETE_TERMINATE }, QUEUE_TELL },
#define FREE .has_node = true, .is_drainable = true
#define DRAINS .drains_unmanaged = true, .deletes = INTERRUPTION_DELETE_TERMINATE
                { "a node of no pool, drained", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { FREE }, { DRAINS }, QUEUE_WRITE_NODE },
                { "the same, reported", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { FREE },
                  { .deletes = INTERRUPTION_DELETE_TERMINATE }, QUEUE_TELL },
                { "a node that is kept from vesper", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { .has_node = true }, { DRAINS },
                  QUEUE_TELL },
                { "of no pool, a stop", EVENT_MESSAGE_SPOT, "stop", MINUTES(2), false, { FREE }, { DRAINS }, QUEUE_TELL },
                { "of no pool, a stop, always", EVENT_MESSAGE_SPOT, "stop", MINUTES(2), false, { FREE },
                  { .drains_unmanaged = true, .deletes = INTERRUPTION_DELETE_ALWAYS }, QUEUE_WRITE_NODE },
                { "of no pool, never", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { FREE },
                  { .drains_unmanaged = true, .deletes = INTERRUPTION_DELETE_NEVER }, QUEUE_TELL },
                { "of no pool, rebalance", EVENT_MESSAGE_REBALANCE, "", USEC_INFINITY, false, { FREE }, { DRAINS }, QUEUE_TELL },
                { "of no pool, retirement within the hour", EVENT_MESSAGE_HEALTH, "terminate", MINUTES(59), false, { FREE }, { DRAINS },
                  QUEUE_WRITE_NODE },
                { "of no pool, retirement in two weeks", EVENT_MESSAGE_HEALTH, "terminate", 14 * USEC_PER_DAY, false, { FREE }, { DRAINS },
                  QUEUE_TELL },
                { "of no pool, and its pool lets go of it", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false,
                  { .has_node = true, .is_joining = true }, { DRAINS }, QUEUE_SOON },
                { "of no pool, the same again", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false,
                  { FREE, .is_told = true, .told_usec = NOW + MINUTES(2) }, { DRAINS }, QUEUE_NOTHING },
                { "of no pool, a later end", EVENT_MESSAGE_SPOT, "terminate", MINUTES(3), false,
                  { FREE, .is_told = true, .told_usec = NOW + MINUTES(2) }, { DRAINS }, QUEUE_NOTHING },
                { "of no pool, a nearer end", EVENT_MESSAGE_SPOT, "terminate", MINUTES(1), false,
                  { FREE, .is_told = true, .told_usec = NOW + MINUTES(2) }, { DRAINS }, QUEUE_WRITE_NODE },
                { "of no pool, overruled", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false,
                  { FREE, .is_overruled = true, .is_told = true, .told_usec = NOW + MINUTES(2) }, { DRAINS }, QUEUE_NOTHING },
                { "of no pool, a hook", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false, { FREE }, { DRAINS }, QUEUE_WRITE_NODE },
                { "of no pool, a hook, and it drains", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false,
                  { FREE, .is_told = true, .is_told_now = true, .told_usec = USEC_INFINITY }, { DRAINS }, QUEUE_BEAT },
                { "of no pool, a hook, drained", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false,
                  { FREE, .is_told = true, .is_told_now = true, .told_usec = USEC_INFINITY, .is_drained = true }, { DRAINS }, QUEUE_CONTINUE },
                { "of no pool, a hook, overruled", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false,
                  { FREE, .is_overruled = true, .is_held = true, .is_told = true, .is_told_now = true, .told_usec = USEC_INFINITY }, { DRAINS },
                  QUEUE_NOTHING },
                { "a node that a pool wants, without its claim", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false,
                  { .has_node = true, .is_joining = true }, { .deletes = INTERRUPTION_DELETE_TERMINATE }, QUEUE_SOON },
                { "the same, and nothing is to be written", EVENT_MESSAGE_REBALANCE, "", USEC_INFINITY, false,
                  { .has_node = true, .is_joining = true }, { .deletes = INTERRUPTION_DELETE_ALWAYS }, QUEUE_TELL },
                { "rebalance", EVENT_MESSAGE_REBALANCE, "", USEC_INFINITY, false, { MANAGED }, { .deletes = INTERRUPTION_DELETE_ALWAYS },
                  QUEUE_TELL },
                { "a hook, told, and the node drains", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false,
                  { MANAGED, .is_told = true, .is_told_now = true, .told_usec = USEC_INFINITY, .is_held = true }, { .deletes = INTERRUPTION_DELETE_TERMINATE },
                  QUEUE_BEAT },
                { "a hook, after a change that is to come", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false,
                  { MANAGED, .is_told = true, .told_usec = NOW + MINUTES(50) }, { .deletes = INTERRUPTION_DELETE_TERMINATE }, QUEUE_WRITE },
                { "hibernation, after a change that is to come", EVENT_MESSAGE_SPOT, "hibernate", USEC_INFINITY, false,
                  { MANAGED, .is_told = true, .told_usec = NOW + MINUTES(50) }, { .deletes = INTERRUPTION_DELETE_ALWAYS }, QUEUE_WRITE },
                { "a hook, after a spot notice", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false,
                  { MANAGED, .is_told = true, .is_told_now = true, .told_usec = NOW }, { .deletes = INTERRUPTION_DELETE_TERMINATE }, QUEUE_BEAT },
                { "a hook, drained", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false,
                  { MANAGED, .is_told = true, .is_told_now = true, .told_usec = USEC_INFINITY, .is_held = true, .is_drained = true },
                  { .deletes = INTERRUPTION_DELETE_TERMINATE }, QUEUE_CONTINUE },
                { "a hook, and all is gone", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false,
                  { UNKNOWN_FOR(0), .is_held = true }, { .deletes = INTERRUPTION_DELETE_TERMINATE }, QUEUE_CONTINUE },
                { "a hook, claims are never deleted", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false, { MANAGED },
                  { .deletes = INTERRUPTION_DELETE_NEVER }, QUEUE_TELL },
                { "a launch, not there yet", EVENT_MESSAGE_ASG_LAUNCH, "", USEC_INFINITY, false, { UNKNOWN_FOR(9), .sight = QUEUE_SEEN }, {},
                  QUEUE_WAIT },
                { "a launch, not Ready yet", EVENT_MESSAGE_ASG_LAUNCH, "", USEC_INFINITY, false, { .has_node = true }, {}, QUEUE_WAIT },
                { "a launch, Ready", EVENT_MESSAGE_ASG_LAUNCH, "", USEC_INFINITY, false, { .has_node = true, .is_ready = true }, {},
                  QUEUE_CONTINUE },
                { "a hook", EVENT_MESSAGE_ASG_TERMINATE, "terminate", USEC_INFINITY, false, { MANAGED },
                  { .deletes = INTERRUPTION_DELETE_TERMINATE }, QUEUE_WRITE },
                { "going down", EVENT_MESSAGE_STATE_CHANGE, "stopping", USEC_INFINITY, false, { MANAGED }, {}, QUEUE_LOOK },
                { "going up", EVENT_MESSAGE_STATE_CHANGE, "running", USEC_INFINITY, false, { MANAGED }, {}, QUEUE_NOTHING },
                { "retirement within the hour", EVENT_MESSAGE_HEALTH, "terminate", MINUTES(59), false, { MANAGED },
                  { .deletes = INTERRUPTION_DELETE_TERMINATE }, QUEUE_WRITE },
                { "retirement in two weeks", EVENT_MESSAGE_HEALTH, "terminate", 14 * USEC_PER_DAY, false, { MANAGED },
                  { .deletes = INTERRUPTION_DELETE_TERMINATE }, QUEUE_TELL },
                { "a reboot, soon", EVENT_MESSAGE_HEALTH, "reboot", MINUTES(5), false, { MANAGED },
                  { .deletes = INTERRUPTION_DELETE_ALWAYS }, QUEUE_TELL },
                { "called off", EVENT_MESSAGE_HEALTH, "terminate", MINUTES(5), true, { MANAGED },
                  { .deletes = INTERRUPTION_DELETE_TERMINATE }, QUEUE_NOTHING },
                { "unknown, just now", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { UNKNOWN_FOR(0) },
                  { .deletes = INTERRUPTION_DELETE_TERMINATE }, QUEUE_ASK },
                { "unknown, and EC2 has it", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { UNKNOWN_FOR(9), .sight = QUEUE_SEEN },
                  { .deletes = INTERRUPTION_DELETE_TERMINATE }, QUEUE_WAIT },
                { "unknown, also to EC2, too soon", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false,
                  { UNKNOWN_FOR(1), .sight = QUEUE_NOT_SEEN }, { .deletes = INTERRUPTION_DELETE_TERMINATE }, QUEUE_WAIT },
                { "unknown, also to EC2, for two minutes", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false,
                  { UNKNOWN_FOR(2), .sight = QUEUE_NOT_SEEN }, { .deletes = INTERRUPTION_DELETE_TERMINATE }, QUEUE_FOREIGN },
                { "unknown, and EC2 does not say", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false,
                  { UNKNOWN_FOR(9), .sight = QUEUE_UNCLEAR }, { .deletes = INTERRUPTION_DELETE_TERMINATE }, QUEUE_WAIT },
                { "it has ended", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { UNKNOWN_FOR(0), .sight = QUEUE_ENDED },
                  { .deletes = INTERRUPTION_DELETE_TERMINATE }, QUEUE_FOREIGN },
                { "unknown, and only for an Event", EVENT_MESSAGE_REBALANCE, "", USEC_INFINITY, false, { UNKNOWN_FOR(0) },
                  { .deletes = INTERRUPTION_DELETE_TERMINATE }, QUEUE_FOREIGN },
                { "unknown, shared", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { UNKNOWN_FOR(9), .sight = QUEUE_ENDED },
                  { .is_shared = true, .deletes = INTERRUPTION_DELETE_TERMINATE }, QUEUE_LEAVE },
                { "unknown, for an Event, shared", EVENT_MESSAGE_REBALANCE, "", USEC_INFINITY, false, { UNKNOWN_FOR(9) },
                  { .is_shared = true }, QUEUE_LEAVE },
                { "ours, shared", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { MANAGED },
                  { .is_shared = true, .deletes = INTERRUPTION_DELETE_TERMINATE }, QUEUE_WRITE },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                QueueRules rules = rows[i].rules;
                EventMessage m = { .kind = rows[i].kind, .action = (char *) rows[i].action, .closed = rows[i].closed, .id = (char *) "e" };
                _cleanup_(notice_freep) Notice *notice = NULL;
                QueueAct act;
                int r;

                rules.wall_usec = NOW;
                m.not_before_usec = rows[i].in_usec == USEC_INFINITY ? 0 : NOW + rows[i].in_usec;
                r = event_message_notice(&m, "i-1", &notice);
                assert_true(r == 0 || r == -ENODATA);
                act = queue_decide(&m, notice, &rows[i].facts, &rules);
                if (act != rows[i].expected)
                        fail_msg("%s: expected %s, saw %s", rows[i].what, queue_act_to_string(rows[i].expected), queue_act_to_string(act));
        }
}

/* A Node is not closed for what it has outlived: a message that comes again, very late, is an Event. */
TEST_CASE(test_outlived) {
        const QueueRules rules = { .drains_unmanaged = true, .deletes = INTERRUPTION_DELETE_TERMINATE, .wall_usec = NOW };
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
                told.is_told = true;
                told.told_usec = NOW + MINUTES(2);
                assert_int_equal(queue_decide(&m, notice, &told, &rules), late ? QUEUE_TELL : QUEUE_NOTHING);
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
                cmocka_unit_test(test_poison),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
