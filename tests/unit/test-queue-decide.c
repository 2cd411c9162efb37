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

/* A notice that stands, or stood, on the claim, or on a Node without one: of the message itself (SAME), or of another one. */
#define ONE(id_, kind_, action_, at, ...) \
        { .notice = &(Notice){ .id = (char *) (id_), .kind = (kind_), .action = (char *) (action_), .announced_usec = (at), }, .boot_id = (char *) "", __VA_ARGS__ }
#define TOLD(...) \
        .announced = &(AnnouncedList){ .items = (Announced[]){ __VA_ARGS__ }, .n_items = sizeof((Announced[]){ __VA_ARGS__ }) / sizeof(Announced) }
#define SAME(kind_, action_, at, ...) ONE("e/i-1", kind_, action_, at, __VA_ARGS__)
#define OTHER(kind_, action_, at, ...) ONE("other", kind_, action_, at, __VA_ARGS__)
#define HOOKED(...) ONE("e/i-1", NOTICE_SCALE_IN, "terminate", 0, __VA_ARGS__)

TEST_CASE(test_decide) {
        const struct {
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
                  { MANAGED, TOLD(SAME(NOTICE_SPOT, "terminate", NOW + MINUTES(2))) }, { TERMINATE }, QUEUE_NOTHING },
                { "a later end beside an earlier one", EVENT_MESSAGE_SPOT, "terminate", MINUTES(3), false,
                  { MANAGED, TOLD(OTHER(NOTICE_SPOT, "terminate", NOW + MINUTES(2))) }, { TERMINATE }, QUEUE_WRITE },
                { "a later end, and its claim goes for an earlier one", EVENT_MESSAGE_SPOT, "terminate", MINUTES(3), false,
                  { MANAGED, .is_going = true, TOLD(OTHER(NOTICE_SPOT, "terminate", NOW + MINUTES(2))) }, { TERMINATE }, QUEUE_KNOWN },
                { "a nearer end, and its claim goes for a later one", EVENT_MESSAGE_SPOT, "terminate", MINUTES(1), false,
                  { MANAGED, .is_going = true, TOLD(OTHER(NOTICE_SPOT, "terminate", NOW + MINUTES(2))) }, { TERMINATE }, QUEUE_WRITE },
                { "a Spot end, and its claim goes for a hook, which has no time", EVENT_MESSAGE_SPOT, "terminate", MINUTES(1), false,
                  { MANAGED, .is_going = true, TOLD(OTHER(NOTICE_SCALE_IN, "terminate", 0)) }, { TERMINATE }, QUEUE_WRITE },
                { "an end, and somebody has deleted its claim", EVENT_MESSAGE_SPOT, "terminate", MINUTES(1), false,
                  { MANAGED, .is_going = true }, { TERMINATE }, QUEUE_WRITE },
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
                { "a node of no pool, drained", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { FREE }, { DRAINS }, QUEUE_WRITE },
                { "the same, reported", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { FREE },
                  { TERMINATE }, QUEUE_TELL },
                { "a node that is kept from vesper", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { .has_node = true }, { DRAINS },
                  QUEUE_TELL },
                { "of no pool, a stop", EVENT_MESSAGE_SPOT, "stop", MINUTES(2), false, { FREE }, { DRAINS }, QUEUE_WRITE },
                { "of no pool, a stop, always", EVENT_MESSAGE_SPOT, "stop", MINUTES(2), false, { FREE },
                  { .drains_unmanaged = true, ALWAYS }, QUEUE_WRITE },
                { "of no pool, never", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false, { FREE },
                  { .drains_unmanaged = true, NEVER }, QUEUE_TELL },
                { "of no pool, rebalance", EVENT_MESSAGE_REBALANCE, "", USEC_INFINITY, false, { FREE }, { DRAINS }, QUEUE_TELL },
                { "of no pool, retirement within the hour", EVENT_MESSAGE_HEALTH, "terminate", MINUTES(59), false, { FREE }, { DRAINS },
                  QUEUE_WRITE },
                { "of no pool, retirement in two weeks", EVENT_MESSAGE_HEALTH, "terminate", 14 * USEC_PER_DAY, false, { FREE }, { DRAINS },
                  QUEUE_WRITE },
                { "a node that its pool releases just now", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false,
                  { .has_node = true, .is_joining = true }, { DRAINS }, QUEUE_SOON },
                { "of no pool, the same again", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false,
                  { FREE, TOLD(SAME(NOTICE_SPOT, "terminate", NOW + MINUTES(2))) }, { DRAINS }, QUEUE_NOTHING },
                { "of no pool, overruled", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false,
                  { FREE, TOLD(SAME(NOTICE_SPOT, "terminate", NOW + MINUTES(2), .state = ANNOUNCED_OVERRULED)) }, { DRAINS }, QUEUE_NOTHING },
                { "of no pool, and another one is overruled", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false,
                  { FREE, TOLD(OTHER(NOTICE_SPOT, "terminate", NOW, .state = ANNOUNCED_OVERRULED)) }, { DRAINS }, QUEUE_WRITE },
                { "of no pool, a hook", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false, { FREE }, { DRAINS }, QUEUE_WRITE },
                { "of no pool, a hook, and it drains", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false, { FREE, TOLD(HOOKED()) }, { DRAINS },
                  QUEUE_BEAT },
                { "of no pool, a hook, drained", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false,
                  { FREE, TOLD(HOOKED()), .is_drained = true }, { DRAINS }, QUEUE_CONTINUE },
                { "of no pool, a hook that the brake holds, drained", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false,
                  { FREE, TOLD(HOOKED(.state = ANNOUNCED_HELD)), .is_drained = true }, { DRAINS }, QUEUE_BEAT },
                { "a hook that the brake holds", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false,
                  { MANAGED, TOLD(HOOKED(.state = ANNOUNCED_HELD)) }, { TERMINATE }, QUEUE_BEAT },
                { "a hook that the brake holds, its claim was deleted and is drained", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false,
                  { MANAGED, .is_going = true, .is_drained = true, TOLD(HOOKED(.state = ANNOUNCED_HELD)) }, { TERMINATE }, QUEUE_CONTINUE },
                { "one that the brake holds, again", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false,
                  { MANAGED, TOLD(SAME(NOTICE_SPOT, "terminate", NOW + MINUTES(2), .state = ANNOUNCED_HELD)) }, { TERMINATE }, QUEUE_NOTHING },
                { "one that the brake holds, at another time", EVENT_MESSAGE_SPOT, "terminate", MINUTES(1), false,
                  { MANAGED, TOLD(SAME(NOTICE_SPOT, "terminate", NOW + MINUTES(2), .state = ANNOUNCED_HELD)) }, { TERMINATE }, QUEUE_WRITE },
                { "an end, and its claim goes, while the brake holds an earlier end", EVENT_MESSAGE_SPOT, "terminate", MINUTES(3), false,
                  { MANAGED, .is_going = true, TOLD(OTHER(NOTICE_SPOT, "terminate", NOW + MINUTES(2), .state = ANNOUNCED_HELD)) }, { TERMINATE }, QUEUE_WRITE },
                { "of no pool, a hook, overruled", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false,
                  { FREE, .is_held = true, TOLD(HOOKED(.state = ANNOUNCED_OVERRULED)) }, { DRAINS }, QUEUE_NOTHING },
                { "a node that a pool wants, without its claim", EVENT_MESSAGE_SPOT, "terminate", MINUTES(2), false,
                  { .has_node = true, .is_joining = true }, { TERMINATE }, QUEUE_SOON },
                { "the same, and nothing is to be written", EVENT_MESSAGE_REBALANCE, "", USEC_INFINITY, false,
                  { .has_node = true, .is_joining = true }, { ALWAYS }, QUEUE_TELL },
                { "rebalance", EVENT_MESSAGE_REBALANCE, "", USEC_INFINITY, false, { MANAGED }, { ALWAYS },
                  QUEUE_TELL },
                { "a hook, told, and the node drains", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false,
                  { MANAGED, TOLD(HOOKED()), .is_held = true }, { TERMINATE }, QUEUE_BEAT },
                { "a hook, after a change that is to come", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false,
                  { MANAGED, TOLD(OTHER(NOTICE_MAINTENANCE, "terminate", NOW + MINUTES(50))) }, { TERMINATE }, QUEUE_WRITE },
                { "a hook, and its claim goes for something else", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false,
                  { MANAGED, .is_going = true, TOLD(OTHER(NOTICE_SPOT, "terminate", NOW)) }, { TERMINATE }, QUEUE_WRITE },
                { "a hook, drained", EVENT_MESSAGE_ASG_TERMINATE, "", USEC_INFINITY, false,
                  { MANAGED, TOLD(HOOKED()), .is_held = true, .is_drained = true }, { TERMINATE }, QUEUE_CONTINUE },
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
                  { TERMINATE }, QUEUE_WRITE },
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

/* Each case in which nothing is done says why. */
TEST_CASE(test_why_reported) {
        static const struct {
                EventMessageKind kind;
                usec_t in_usec;
                QueueFacts facts;
                QueueRules rules;
                const char *why; /* NULL: something is done */
        } rows[] = {
                { EVENT_MESSAGE_REBALANCE, USEC_INFINITY, { MANAGED }, { TERMINATE }, "it is a recommendation" },
                { EVENT_MESSAGE_SPOT, MINUTES(2), { MANAGED }, { NEVER }, "[Interruption] Delete= is never" },
                { EVENT_MESSAGE_HEALTH, USEC_INFINITY, { MANAGED }, { TERMINATE }, "its time cannot be read" },
                { EVENT_MESSAGE_SPOT, MINUTES(2), { .has_node = true }, { TERMINATE }, "no NodePool manages this node, and [Queue] Unmanaged= is report" },
                { EVENT_MESSAGE_SPOT, MINUTES(2), { .has_node = true }, { DRAINS },
                  "a NodePool selects this node and has not adopted it, or the node is kept from vesper (vesper.sh/unmanaged)" },
                { EVENT_MESSAGE_SPOT, (usec_t) -MINUTES(11), { MANAGED }, { TERMINATE }, "the message came more than ten minutes after that time" },
                { EVENT_MESSAGE_SPOT, MINUTES(2), { MANAGED }, { TERMINATE }, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                EventMessage m = { .kind = rows[i].kind, .action = (char *) "terminate", .id = (char *) "e", .sent_usec = NOW };
                QueueRules rules = rows[i].rules;
                _cleanup_(notice_freep) Notice *notice = NULL;
                const char *why;

                rules.wall_usec = NOW;
                rules.before_usec = USEC_PER_HOUR;
                m.not_before_usec = rows[i].in_usec == USEC_INFINITY ? 0 : NOW + rows[i].in_usec;
                assert_return_code(event_message_notice(&m, "i-1", &notice), 0);
                why = queue_why_reported(&m, notice, &rows[i].facts, &rules);
                assert_string_equal(strempty(why), strempty(rows[i].why));
                assert_int_equal(queue_decide(&m, notice, &rows[i].facts, &rules) == QUEUE_TELL, rows[i].why != NULL);
        }
}

/* A Node is not closed for what it has outlived: a message that comes again, very late, is an Event. */
TEST_CASE(test_outlived) {
        const QueueRules rules = { .drains_unmanaged = true, TERMINATE, .before_usec = USEC_PER_HOUR, .wall_usec = NOW };
        const QueueFacts facts = { .has_node = true, .is_drainable = true };
        EventMessage m = { .kind = EVENT_MESSAGE_SPOT, .action = (char *) "terminate", .id = (char *) "e" };

        for (unsigned late = 0; late <= 1; late++) {
                _cleanup_(notice_freep) Notice *notice = NULL;

                m.not_before_usec = NOW - ANNOUNCED_OUTLIVED_USEC + (1 - late) * USEC_PER_SEC;
                assert_return_code(event_message_notice(&m, "i-1", &notice), 0);
                assert_int_equal(queue_decide(&m, notice, &facts, &rules), late ? QUEUE_TELL : QUEUE_WRITE);
        }
}

/* Notices that are kept: nothing is done for them yet, or the node comes back from them. */
TEST_CASE(test_kept) {
#define HOURS(n) (n) * USEC_PER_HOUR
#define REBOOT(in, ...) SAME(NOTICE_MAINTENANCE, "reboot", NOW + (in), __VA_ARGS__)
#define OTHER_REBOOT(in, ...) OTHER(NOTICE_MAINTENANCE, "reboot", NOW + (in), __VA_ARGS__)
        const struct {
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

                { "the same again", HEALTH, "reboot", HOURS(2), false, T, { MANAGED, TOLD(REBOOT(HOURS(2))) }, QUEUE_NOTHING },
                { "moved to later", HEALTH, "reboot", HOURS(5), false, T, { MANAGED, TOLD(REBOOT(HOURS(2))) }, QUEUE_WRITE },
                { "moved to earlier, also of no pool", HEALTH, "reboot", HOURS(1), false, T, { FREE, TOLD(REBOOT(HOURS(2))) }, QUEUE_WRITE },
                { "moved, and others stand", HEALTH, "reboot", HOURS(5), false, T, { MANAGED, TOLD(OTHER_REBOOT(HOURS(1)), REBOOT(HOURS(2))) },
                  QUEUE_WRITE },
                { "a message of before comes again", HEALTH, "reboot", HOURS(5), false, T,
                  { MANAGED, TOLD({ .notice = &(Notice){ .id = (char *) "e/i-1", .announced_usec = NOW, .said_usec = NOW + 1 }, .boot_id = (char *) "" }) },
                  QUEUE_NOTHING },
                { "a third, whatever stands", HEALTH, "reboot", HOURS(5), false, T,
                  { MANAGED, TOLD(OTHER_REBOOT(HOURS(1)), ONE("third", NOTICE_MAINTENANCE, "terminate", NOW + HOURS(2))) }, QUEUE_WRITE },
                { "a stop now, before a reboot", SPOT, "stop", MINUTES(2), false, T, { MANAGED, TOLD(OTHER_REBOOT(HOURS(1))) }, QUEUE_WRITE },
                { "the same, without Node", SPOT, "stop", MINUTES(2), false, T, { .is_managed = true, TOLD(OTHER_REBOOT(HOURS(1))) }, QUEUE_WRITE },
                { "it goes already, and not by then", HEALTH, "reboot", HOURS(5), false, T, { MANAGED, .is_going = true }, QUEUE_WRITE },
                { "it goes already, and ends before", HEALTH, "reboot", HOURS(5), false, T,
                  { MANAGED, .is_going = true, TOLD(OTHER(NOTICE_SPOT, "terminate", NOW + MINUTES(2))) }, QUEUE_KNOWN },

                { "called off", HEALTH, "reboot", HOURS(2), true, T, { MANAGED, TOLD(REBOOT(HOURS(2))) }, QUEUE_WRITE },
                { "called off, also while it goes", HEALTH, "terminate", HOURS(2), true, T,
                  { MANAGED, .is_going = true, TOLD(SAME(NOTICE_MAINTENANCE, "terminate", NOW + HOURS(2))) }, QUEUE_WRITE },
                { "called off before it was told", HEALTH, "terminate", HOURS(2), true, T, { MANAGED, TOLD(OTHER_REBOOT(HOURS(2))) }, QUEUE_WRITE },
                { "of no pool, called off before it was told", HEALTH, "terminate", HOURS(2), true, T, { FREE }, QUEUE_WRITE },
                { "called off before it was told, never", HEALTH, "terminate", HOURS(2), true, N, { MANAGED }, QUEUE_TELL },
                { "called off long after it was to be", HEALTH, "terminate", (usec_t) -HOURS(2), true, T, { MANAGED }, QUEUE_TELL },
                { "unknown, called off", HEALTH, "terminate", HOURS(2), true, T, { UNKNOWN_FOR(0) }, QUEUE_ASK },
                { "called off twice", HEALTH, "reboot", HOURS(2), true, T, { MANAGED, TOLD(REBOOT(HOURS(2), .state = ANNOUNCED_CALLED_OFF)) },
                  QUEUE_NOTHING },
                { "told again after it was called off", HEALTH, "reboot", HOURS(2), false, T,
                  { MANAGED, TOLD(REBOOT(HOURS(2), .state = ANNOUNCED_CALLED_OFF)) }, QUEUE_NOTHING },
                { "moved after it was called off", HEALTH, "reboot", HOURS(5), false, T,
                  { MANAGED, TOLD(REBOOT(HOURS(2), .state = ANNOUNCED_CALLED_OFF)) }, QUEUE_WRITE },
                { "moved after a person has overruled it, which waits on the Node for a claim", HEALTH, "reboot", HOURS(5), false, T,
                  { .has_node = true, .is_joining = true, TOLD(REBOOT(HOURS(2), .state = ANNOUNCED_OVERRULED)) }, QUEUE_WRITE },
                { "called off while it waits on the Node for a claim", HEALTH, "reboot", HOURS(2), true, T,
                  { .has_node = true, TOLD(REBOOT(HOURS(2))) }, QUEUE_WRITE },
                { "moved before it was called off, and the message comes late", HEALTH, "reboot", HOURS(5), false, T,
                  { MANAGED, TOLD({ .notice = &(Notice){ .id = (char *) "e/i-1", .announced_usec = NOW, .said_usec = NOW + 1 }, .boot_id = (char *) "", .state = ANNOUNCED_CALLED_OFF }) },
                  QUEUE_NOTHING },
                { "told again after it was done", HEALTH, "reboot", MINUTES(5), false, T,
                  { MANAGED, TOLD(REBOOT(MINUTES(5), .state = ANNOUNCED_DONE)) }, QUEUE_NOTHING },
                { "of no pool, told again after a person has opened the Node", HEALTH, "reboot", MINUTES(5), false, T,
                  { FREE, TOLD(REBOOT(MINUTES(5), .state = ANNOUNCED_OVERRULED)) }, QUEUE_NOTHING },
                { "of no pool, a reboot, far, and its group lets go of it now", HEALTH, "reboot", HOURS(40), false, T,
                  { FREE, TOLD(OTHER(NOTICE_SCALE_IN, "terminate", 0)) }, QUEUE_WRITE },
                { "of no pool, a reboot, far", HEALTH, "reboot", HOURS(40), false, T, { FREE }, QUEUE_WRITE },

#define READY .is_ready = true
                { "stopping", STATE, "stopping", USEC_INFINITY, false, T, { MANAGED, READY }, QUEUE_WRITE },
                { "shutting down", STATE, "shutting-down", USEC_INFINITY, false, T, { MANAGED, READY }, QUEUE_WRITE },
                { "stopping, never", STATE, "stopping", USEC_INFINITY, false, N, { MANAGED, READY }, QUEUE_LOOK },
                { "stopping, and not Ready", STATE, "stopping", USEC_INFINITY, false, T, { MANAGED }, QUEUE_LOOK },
                { "stopping, and it is back since", STATE, "stopping", USEC_INFINITY, false, T, { MANAGED, READY, .ready_since_usec = NOW + 1 }, QUEUE_LOOK },
                { "our own end of it", STATE, "shutting-down", USEC_INFINITY, false, T, { MANAGED, READY, .is_going = true }, QUEUE_LOOK },
                { "stopping, as was told", STATE, "stopping", USEC_INFINITY, false, T,
                  { MANAGED, READY, TOLD(OTHER(NOTICE_SPOT, "stop", NOW + MINUTES(2))) }, QUEUE_LOOK },
                { "stopping, and a Spot stop stands for after BeforeSec=", STATE, "stopping", USEC_INFINITY, false, T,
                  { MANAGED, READY, TOLD(OTHER(NOTICE_SPOT, "stop", NOW + HOURS(2))) }, QUEUE_LOOK },
                { "stopping, and a reboot is to come", STATE, "stopping", USEC_INFINITY, false, T, { MANAGED, READY, TOLD(OTHER_REBOOT(HOURS(1))) },
                  QUEUE_WRITE },
                { "stopping, and a retirement is far", STATE, "stopping", USEC_INFINITY, false, T,
                  { MANAGED, READY, TOLD(OTHER(NOTICE_MAINTENANCE, "terminate", NOW + HOURS(20))) }, QUEUE_WRITE },
                { "shutting down, and a stop was told", STATE, "shutting-down", USEC_INFINITY, false, T,
                  { MANAGED, READY, TOLD(OTHER(NOTICE_SPOT, "stop", NOW + MINUTES(2))) }, QUEUE_WRITE },
                { "stopped", STATE, "stopped", USEC_INFINITY, false, T, { MANAGED, READY }, QUEUE_LOOK },
                { "of no pool, stopping", STATE, "stopping", USEC_INFINITY, false, T, { FREE, READY }, QUEUE_WRITE },
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

                m.sent_usec = NOW - ANNOUNCED_OUTLIVED_USEC + (i % 2 ? 0 : USEC_PER_SEC);
                if (streq(m.action, "terminate"))
                        m.not_before_usec = m.sent_usec;
                assert_return_code(event_message_notice(&m, "i-1", &notice), 0);
                act = queue_decide(&m, notice, &(QueueFacts){ MANAGED, READY }, &rules);
                assert_int_equal(act, i % 2 == 0                        ? rows[i / 2].in_time
                                      : m.kind == EVENT_MESSAGE_STATE_CHANGE ? QUEUE_LOOK
                                                                             : QUEUE_TELL);
        }
}

/* How old a message is decides what it may end, and how long it is waited for. */
TEST_CASE(test_age) {
#define TERMINATES EVENT_MESSAGE_ASG_TERMINATE
#define LAUNCHES EVENT_MESSAGE_ASG_LAUNCH
#define UNSAID USEC_INFINITY
        Notice other = { .id = (char *) "other", .kind = NOTICE_SCALE_IN, .action = (char *) "terminate" };
        Announced items[ANNOUNCED_MAX];
        const AnnouncedList full = { .items = items, .n_items = ANNOUNCED_MAX };
        const struct {
                const char *what;
                EventMessageKind kind;
                usec_t age_usec; /* of the message; USEC_INFINITY: it says no time */
                usec_t in_usec;
                QueueFacts facts;
                bool is_shared;
                QueueAct expected;
        } rows[] = {
                { "a hook, in time", TERMINATES, MINUTES(9), UNSAID, { MANAGED }, false, QUEUE_WRITE },
                { "a hook, long ago",
                  TERMINATES, MINUTES(10), UNSAID, { MANAGED }, false, QUEUE_CONFIRM },
                { "its group still waits",
                  TERMINATES, MINUTES(10), UNSAID, { MANAGED, .is_held = true }, false, QUEUE_WRITE },
                { "it says no time", TERMINATES, UNSAID, UNSAID, { MANAGED }, false, QUEUE_WRITE },
                { "of no pool", TERMINATES, MINUTES(10), UNSAID, { FREE }, false, QUEUE_CONFIRM },
                { "it is written",
                  TERMINATES, HOURS(47), UNSAID, { MANAGED, TOLD(HOOKED()) }, false, QUEUE_BEAT },
                { "no group waits so long",
                  TERMINATES, HOURS(48), UNSAID, { MANAGED, TOLD(HOOKED()) }, false, QUEUE_TELL },
                { "the same, its Node is gone",
                  TERMINATES, HOURS(48), UNSAID, { .is_managed = true }, false, QUEUE_NOTHING },
#define FULL MANAGED, .announced = &full
                { "a full list", TERMINATES, 0, UNSAID, { FULL }, false, QUEUE_BEAT },
                { "a full list, drained",
                  TERMINATES, 0, UNSAID, { FULL, .is_drained = true }, false, QUEUE_CONTINUE },
                { "a launch", LAUNCHES, HOURS(47), UNSAID, { .has_node = true }, false, QUEUE_WAIT },
                { "a launch, and no group waits so long",
                  LAUNCHES, HOURS(48), UNSAID, { .has_node = true }, false, QUEUE_TELL },
                { "unknown, a launch that its group may wait for",
                  LAUNCHES, MINUTES(119), UNSAID, { .sight = QUEUE_SEEN }, false, QUEUE_WAIT },
                { "unknown, a launch",
                  LAUNCHES, HOURS(2), UNSAID, { .sight = QUEUE_SEEN }, false, QUEUE_FOREIGN },
                { "unknown, a launch that says no time",
                  LAUNCHES, UNSAID, UNSAID, { .sight = QUEUE_SEEN }, false, QUEUE_WAIT },
                { "unknown, a launch, shared",
                  LAUNCHES, HOURS(2), UNSAID, { .sight = QUEUE_SEEN }, true, QUEUE_LEAVE },
                { "unknown, a hook that its group may wait for",
                  TERMINATES, MINUTES(119), UNSAID, { .sight = QUEUE_SEEN }, false, QUEUE_WAIT },
                { "unknown, a hook",
                  TERMINATES, HOURS(2), UNSAID, { .sight = QUEUE_UNCLEAR }, false, QUEUE_FOREIGN },
                { "gone, a hook that this leader holds",
                  TERMINATES, HOURS(3), UNSAID, { .is_held = true }, false, QUEUE_CONTINUE },
                { "unknown, in time",
                  SPOT, MINUTES(9), (usec_t) -MINUTES(9), { .sight = QUEUE_SEEN }, false, QUEUE_WAIT },
                { "unknown, outlived",
                  SPOT, MINUTES(12), (usec_t) -MINUTES(10), { .sight = QUEUE_SEEN }, false, QUEUE_FOREIGN },
                { "unknown, outlived, not asked",
                  SPOT, MINUTES(12), (usec_t) -MINUTES(10), {}, false, QUEUE_FOREIGN },
                { "unknown, outlived, shared",
                  SPOT, MINUTES(12), (usec_t) -MINUTES(10), {}, true, QUEUE_LEAVE },
                { "moved, to a time that has passed",
                  HEALTH, 0, (usec_t) -MINUTES(10), { MANAGED, TOLD(REBOOT(HOURS(2))) }, false, QUEUE_TELL },
                { "moved, to a time that has just passed",
                  HEALTH, 0, (usec_t) -MINUTES(9), { MANAGED, TOLD(REBOOT(HOURS(2))) }, false, QUEUE_WRITE },
        };

        for (size_t i = 0; i < ANNOUNCED_MAX; i++)
                items[i] = (Announced){ .notice = &other, .boot_id = (char *) "" };
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const QueueRules rules = { TERMINATE,
                                           .drains_unmanaged = true,
                                           .is_shared = rows[i].is_shared,
                                           .before_usec = USEC_PER_HOUR,
                                           .wall_usec = NOW };
                EventMessage m = { .kind = rows[i].kind, .action = (char *) "reboot", .id = (char *) "e",
                                   .sent_usec = rows[i].age_usec == UNSAID ? 0 : NOW - rows[i].age_usec };

                if (rows[i].kind != HEALTH)
                        m.action = (char *) "terminate";
                assert_decides(rows[i].what, &m, rows[i].in_usec, &rows[i].facts, &rules, rows[i].expected);
        }
}

/* The message of a hook that waits as long as its group may, two hours, is received fewer than 200 times: the
 * maxReceiveCount of packaging/aws/interruption-queue.yaml. */
TEST_CASE(test_wait) {
        static const struct {
                EventMessageKind kind;
                usec_t age_usec; /* UNSAID: the message says no time */
                unsigned expected_sec;
        } rows[] = {
                { SPOT, 0, 20 },
                { SPOT, MINUTES(20), 20 },
                { HEALTH, HOURS(40), 20 },
                { LAUNCHES, 0, 20 },
                { LAUNCHES, UNSAID, 20 },
                { LAUNCHES, MINUTES(10) - USEC_PER_SEC, 20 },
                { LAUNCHES, MINUTES(10), 60 },
                { TERMINATES, HOURS(40), 60 },
        };
        EventMessage launch = { .kind = LAUNCHES, .sent_usec = NOW };
        QueueRules rules = { .wall_usec = NOW };
        unsigned n = 0;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const EventMessage m = { .kind = rows[i].kind,
                                         .sent_usec = rows[i].age_usec == UNSAID ? 0 : NOW - rows[i].age_usec };

                print_message("row %zu\n", i);
                assert_int_equal(queue_wait_sec(&m, &rules), rows[i].expected_sec);
        }
        for (; rules.wall_usec < NOW + HOURS(2); n++)
                rules.wall_usec += queue_wait_sec(&launch, &rules) * USEC_PER_SEC;
        assert_in_range(n, 100, 160);
}

/* From where do messages count? */
TEST_CASE(test_elsewhere) {
        char *others[] = { (char *) "2", (char *) "3", NULL }, *regions[] = { (char *) "eu", NULL };
        const struct {
                const char *account, *region;
                bool has_settings, has_account, is_elsewhere;
        } rows[] = {
                { "1", "us", false, true, false },  { "2", "us", false, true, true },
                { "1", "eu", false, true, true },   { "2", "us", true, true, false },
                { "3", "eu", true, true, false },   { "4", "us", true, true, true },
                { "1", "ap", true, true, true },    { "", "us", false, true, false },
                { "1", "", false, true, false },
                { "2", "us", false, false, false }, { "2", "eu", false, false, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const EventMessage m = { .account = (char *) rows[i].account,
                                         .region = (char *) rows[i].region };
                const QueueOrigin o = { .account = rows[i].has_account ? "1" : NULL,
                                        .region = "us",
                                        .accounts = rows[i].has_settings ? others : NULL,
                                        .regions = rows[i].has_settings ? regions : NULL };

                print_message("account %s, region %s\n", rows[i].account, rows[i].region);
                assert_int_equal(queue_is_from_elsewhere(&m, &o), rows[i].is_elsewhere);
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
                cmocka_unit_test(test_outlived), cmocka_unit_test(test_why_reported),
                cmocka_unit_test(test_kept),
                cmocka_unit_test(test_late),
                cmocka_unit_test(test_age),
                cmocka_unit_test(test_elsewhere),
                cmocka_unit_test(test_wait), cmocka_unit_test(test_poison),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
