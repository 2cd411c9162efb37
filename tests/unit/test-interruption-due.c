/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "cmocka-test.h"
#include "interruption-due.h"
#include "interruption.h"

#define NOW (UINT64_C(1790000000) * USEC_PER_SEC)
#define END (NOW + USEC_PER_DAY)
#define BEFORE USEC_PER_HOUR /* [Interruption] BeforeSec= */
#define NEVER USEC_INFINITY

typedef struct Case {
        CoordinatorConfig config;
        KubeNode node;
        KubeNodeClaim claim;
        Notice seen_notice, told_notice[2];
        Interruption seen;
        Announced told[2];
} Case;

static void case_init(Case *c, InterruptionDelete deletes, usec_t grace_usec) {
        *c = (Case){ .config = { .interruption_delete = (int) deletes, .interruption_before_usec = BEFORE },
                     .claim.termination_grace_usec = grace_usec };
}

static Notice notice(NoticeKind kind, const char *action, const char *source, usec_t announced_usec) {
        return (Notice){ .id = (char *) "x",
                         .kind = kind,
                         .source = (char *) (uintptr_t) source,
                         .action = (char *) (uintptr_t) action,
                         .announced_usec = announced_usec };
}

/* The agent's annotation on the Node. */
static void see(Case *c, Notice n, InterruptionPhase phase) {
        c->seen_notice = n;
        c->seen = (Interruption){ .notice = &c->seen_notice, .phase = phase, .boot_id = (char *) "" };
        c->node.interruption = &c->seen;
}

/* An entry of the queue's list on the claim. */
static void announce(Case *c, Notice n, AnnouncedState state) {
        size_t i = c->claim.announced.n_items++;

        c->told_notice[i] = n;
        c->told[i] = (Announced){ .notice = c->told_notice + i, .state = state, .boot_id = (char *) "" };
        c->claim.announced.items = c->told;
}

static void check(const char *what, const Case *c, usec_t at_usec, bool replaces) {
        InterruptionDue due = interruption_due(&c->config, &c->node, &c->claim);

        if (due.at_usec != at_usec || due.replaces != replaces)
                fail_msg("%s: at %" PRIu64 ", replaces %d; expected %" PRIu64 ", %d", what, due.at_usec,
                         due.replaces, at_usec, replaces);
}

/* Each kind and action: which Delete= deletes the claim for it, from the agent and from the queue, and
 * whether it replaces the machine then. */
TEST_CASE(test_kinds) {
        static const char *const actions[] = { "terminate", "stop", "hibernate", "reboot", "drain", "" };
        static const bool ends[] = { true, true, true, false, false, false };

        for (int k = 0; k < _NOTICE_KIND_MAX; k++)
                for (size_t a = 0; a < ELEMENTSOF(actions); a++)
                        for (int deletes = 0; deletes <= (int) INTERRUPTION_DELETE_ALWAYS; deletes++)
                                for (unsigned queue = 0; queue < 2; queue++) {
                                        NoticeKind kind = (NoticeKind) k;
                                        bool always = deletes == INTERRUPTION_DELETE_ALWAYS;
                                        bool change = kind == NOTICE_MAINTENANCE && queue;
                                        bool counts = deletes != INTERRUPTION_DELETE_NEVER &&
                                                      (a == 0 || (always && (ends[a] || change)));
                                        bool replaces = counts &&
                                                (kind == NOTICE_SPOT ||
                                                 (kind == NOTICE_MAINTENANCE && ends[a]));
                                        const char *source = queue ? NOTICE_SOURCE_QUEUE : "ec2";
                                        Notice n = notice(kind, actions[a], source, END);
                                        usec_t due = change ? END - BEFORE : 0;
                                        char what[96];
                                        Case c;

                                        snprintf(what, sizeof(what), "%s %s Delete=%d %s",
                                                 notice_kind_to_string(kind), actions[a], deletes,
                                                 queue ? "queue" : "agent");
                                        case_init(&c, (InterruptionDelete) deletes, USEC_INFINITY);
                                        if (queue)
                                                announce(&c, n, ANNOUNCED_STANDS);
                                        else
                                                see(&c, n, INTERRUPTION_CORDONED);
                                        check(what, &c, counts ? due : NEVER, replaces);
                                }
}

/* When: the grace period of the claim, BeforeSec=, and a notice without time. */
TEST_CASE(test_times) {
        static const struct {
                const char *what;
                NoticeKind kind;
                bool queue;
                usec_t grace_usec, announced_usec, at_usec;
        } rows[] = {
                { "agent, no grace period", NOTICE_SPOT, false, NEVER, END, 0 },
                { "agent, grace period", NOTICE_SPOT, false, 45 * USEC_PER_SEC, END,
                  END - 45 * USEC_PER_SEC },
                { "agent, grace period 0", NOTICE_SPOT, false, 0, END, END },
                { "agent, grace period longer than all time", NOTICE_SPOT, false, END + 1, END, 0 },
                { "agent, no time", NOTICE_SPOT, false, 45 * USEC_PER_SEC, 0, 0 },
                { "agent, retirement: the agent has waited", NOTICE_MAINTENANCE, false, NEVER, END, 0 },
                { "queue, no grace period", NOTICE_SPOT, true, NEVER, END, 0 },
                { "queue, grace period", NOTICE_SPOT, true, 45 * USEC_PER_SEC, END,
                  END - 45 * USEC_PER_SEC },
                { "queue, no time", NOTICE_SPOT, true, 45 * USEC_PER_SEC, 0, 0 },
                { "queue, retirement: BeforeSec=", NOTICE_MAINTENANCE, true, NEVER, END, END - BEFORE },
                { "queue, retirement: a shorter grace period", NOTICE_MAINTENANCE, true, BEFORE - 1, END,
                  END - BEFORE + 1 },
                { "queue, retirement: a longer grace period", NOTICE_MAINTENANCE, true, BEFORE + 1, END,
                  END - BEFORE },
                { "queue, retirement without a time", NOTICE_MAINTENANCE, true, NEVER, 0, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Notice n = notice(rows[i].kind, "terminate", rows[i].queue ? NOTICE_SOURCE_QUEUE : "ec2",
                                  rows[i].announced_usec);
                Case c;

                case_init(&c, INTERRUPTION_DELETE_TERMINATE, rows[i].grace_usec);
                if (rows[i].queue)
                        announce(&c, n, ANNOUNCED_STANDS);
                else
                        see(&c, n, INTERRUPTION_CORDONED);
                check(rows[i].what, &c, rows[i].at_usec, true);
        }
}

/* The progress of the agent's drain, and the state of the queue's notice. */
TEST_CASE(test_states) {
        static const InterruptionPhase over[] = { INTERRUPTION_CANCELLED, INTERRUPTION_RELEASED };
        Case c;

        for (AnnouncedState s = 0; s < _ANNOUNCED_STATE_MAX; s++) {
                case_init(&c, INTERRUPTION_DELETE_TERMINATE, NEVER);
                announce(&c, notice(NOTICE_SPOT, "terminate", NOTICE_SOURCE_QUEUE, END), s);
                check(announced_state_to_string(s), &c, s == ANNOUNCED_STANDS ? 0 : NEVER,
                      s == ANNOUNCED_STANDS);
        }
        for (size_t i = 0; i < ELEMENTSOF(over); i++) {
                case_init(&c, INTERRUPTION_DELETE_TERMINATE, NEVER);
                see(&c, notice(NOTICE_SPOT, "terminate", "ec2", END), over[i]);
                check(interruption_phase_to_string(over[i]), &c, NEVER, false);
                /* A person's answer to the agent answers the queue's notice of the same end, too. */
                announce(&c, notice(NOTICE_SPOT, "terminate", NOTICE_SOURCE_QUEUE, END), ANNOUNCED_STANDS);
                check("and the queue", &c, over[i] == INTERRUPTION_RELEASED ? NEVER : 0,
                      over[i] != INTERRUPTION_RELEASED);
        }
}

/* Several notices: the earliest time. One of them that replaces is enough. */
TEST_CASE(test_several) {
        const Notice scale_in = notice(NOTICE_SCALE_IN, "terminate", NOTICE_SOURCE_QUEUE, 0);
        const Notice block = notice(NOTICE_CAPACITY_BLOCK, "terminate", "ec2", END);
        const Notice retirement = notice(NOTICE_MAINTENANCE, "terminate", NOTICE_SOURCE_QUEUE, END);
        Case c;

        case_init(&c, INTERRUPTION_DELETE_TERMINATE, NEVER);
        check("none", &c, NEVER, false);
        see(&c, block, INTERRUPTION_DRAINED);
        check("block", &c, 0, false);
        announce(&c, retirement, ANNOUNCED_STANDS);
        check("block, retirement", &c, 0, true);

        case_init(&c, INTERRUPTION_DELETE_TERMINATE, NEVER);
        announce(&c, retirement, ANNOUNCED_STANDS);
        announce(&c, scale_in, ANNOUNCED_STANDS);
        check("retirement, scale-in", &c, 0, true);
        c.told[0].state = ANNOUNCED_CALLED_OFF;
        check("scale-in alone", &c, 0, false);
}

int main(void) {
        static const struct CMUnitTest tests[] = { cmocka_unit_test(test_kinds),
                                                   cmocka_unit_test(test_times),
                                                   cmocka_unit_test(test_states),
                                                   cmocka_unit_test(test_several) };

        return cmocka_run_group_tests_name("interruption-due", tests, NULL, NULL);
}
