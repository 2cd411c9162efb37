/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "cmocka-test.h"
#include "launch-rule.h"

#define NOW (UINT64_C(1790000000) * USEC_PER_SEC)
#define SECOND USEC_PER_SEC
#define NEVER USEC_INFINITY

static const char *const act_names[_LAUNCH_ACT_MAX] = {
        [LAUNCH_WAIT] = "wait", [LAUNCH_REQUEST] = "request", [LAUNCH_FIND] = "find",
        [LAUNCH_TAKE] = "take", [LAUNCH_GIVE_UP] = "give up", [LAUNCH_RELEASE] = "release",
};

/* A claim of a pool that wants its machine. Nothing was requested yet. */
#define WANTED .is_wanted = true, .may_begin = true, .now_usec = NOW
/* The first request left so long ago, and the last one. */
#define ASKED_AT(first, last) \
        .is_wanted = true, .is_asked = true, .now_usec = NOW, .since_usec = NOW - (first), \
        .time_usec = NOW - (last)
#define ASKED ASKED_AT(USEC_PER_MINUTE, USEC_PER_MINUTE)
#define LAST(ago) ASKED_AT(LAUNCH_SETTLED_USEC, ago)
#define DELETED ASKED, .deleting = true
#define DELETED_LAST(ago) LAST(ago), .deleting = true

static const struct {
        const char *what;
        LaunchFacts f;
        LaunchAct act;
        usec_t at_usec; /* of LAUNCH_WAIT */
} rows[] = {
        /* -- before the first request */
        { "the first request leaves at once", { WANTED }, LAUNCH_REQUEST, 0 },
        { "the provider has find: there is nothing to find yet", { WANTED, .can_find = true },
          LAUNCH_REQUEST, 0 },
        { "the back-off delays it", { WANTED, .again_usec = NOW + 1 }, LAUNCH_WAIT, NOW + 1 },
        { "the back-off ends", { WANTED, .again_usec = NOW }, LAUNCH_REQUEST, 0 },
        { "an earlier attempt or the limits hold it", { .is_wanted = true, .now_usec = NOW },
          LAUNCH_WAIT, NEVER },
        { "nobody wants it", { .may_begin = true, .now_usec = NOW }, LAUNCH_GIVE_UP, 0 },
        { "held for too long, and the machine before is gone", { .is_wanted = true, .is_stale = true, .now_usec = NOW },
          LAUNCH_GIVE_UP, 0 },
        { "the machine before is gone, and nothing holds it", { WANTED, .is_stale = true }, LAUNCH_REQUEST, 0 },
        { "deleted, and nobody can be asked for the machine", { DELETED, .maybe = true, .lacks_provider = true },
          LAUNCH_WAIT, NEVER },
        { "deleted, nobody can be asked, and nothing was launched", { DELETED, .lacks_provider = true },
          LAUNCH_RELEASE, 0 },
        { "nobody wants it, and it may not begin", { .now_usec = NOW }, LAUNCH_GIVE_UP, 0 },
        { "deleted before the first request", { WANTED, .deleting = true }, LAUNCH_RELEASE, 0 },
        { "deleted, and nobody wants it", { .deleting = true, .now_usec = NOW, .again_usec = NOW + 1 },
          LAUNCH_RELEASE, 0 },
        /* -- the machine is known */
        { "the machine is known", { ASKED, .has_id = true }, LAUNCH_TAKE, 0 },
        { "the machine of a claim that is being deleted is known", { DELETED, .has_id = true },
          LAUNCH_TAKE, 0 },
        { "the machine of a claim that nobody wants is known",
          { .is_asked = true, .now_usec = NOW, .has_id = true }, LAUNCH_TAKE, 0 },
        { "the back-off does not delay a known machine", { ASKED, .has_id = true, .again_usec = NOW + 1 },
          LAUNCH_TAKE, 0 },
        /* -- requested */
        { "find comes before the next request", { ASKED, .can_find = true }, LAUNCH_FIND, 0 },
        { "the back-off delays find", { ASKED, .can_find = true, .again_usec = NOW + 1 },
          LAUNCH_WAIT, NOW + 1 },
        { "find saw none", { ASKED, .can_find = true, .looked_usec = NOW }, LAUNCH_REQUEST, 0 },
        { "find saw none, and the back-off delays the request",
          { ASKED, .can_find = true, .looked_usec = NOW, .again_usec = NOW + 1 }, LAUNCH_WAIT, NOW + 1 },
        { "no find: the identical request again", { ASKED, .maybe = true }, LAUNCH_REQUEST, 0 },
        { "no find, and the back-off", { ASKED, .maybe = true, .again_usec = NOW + 1 },
          LAUNCH_WAIT, NOW + 1 },
        { "the request can never work", { ASKED, .is_final = true }, LAUNCH_GIVE_UP, 0 },
        { "requested for almost long enough", { ASKED_AT(LAUNCH_ASKED_USEC - 1, USEC_PER_MINUTE) },
          LAUNCH_REQUEST, 0 },
        { "requested for long enough", { ASKED_AT(LAUNCH_ASKED_USEC, USEC_PER_MINUTE) }, LAUNCH_GIVE_UP, 0 },
        { "the back-off does not delay that", { ASKED_AT(LAUNCH_ASKED_USEC, USEC_PER_MINUTE),
                                                .again_usec = NOW + 1 }, LAUNCH_GIVE_UP, 0 },
        /* -- accepted without an id */
        { "accepted: find", { ASKED, .maybe = true, .is_accepted = true, .can_find = true },
          LAUNCH_FIND, 0 },
        { "accepted: find again, not request",
          { ASKED, .maybe = true, .is_accepted = true, .can_find = true, .looked_usec = NOW },
          LAUNCH_FIND, 0 },
        { "accepted: the back-off delays find",
          { ASKED, .maybe = true, .is_accepted = true, .can_find = true, .again_usec = NOW + 1 },
          LAUNCH_WAIT, NOW + 1 },
        { "accepted: the back-off ends after the time in which the cloud names the machine",
          { LAST(LAUNCH_NAMED_USEC - 1), .maybe = true, .is_accepted = true, .can_find = true,
            .again_usec = NOW + SECOND },
          LAUNCH_WAIT, NOW + 1 },
        { "accepted, and not named in time: request again",
          { LAST(LAUNCH_NAMED_USEC), .maybe = true, .is_accepted = true, .can_find = true,
            .looked_usec = NOW },
          LAUNCH_REQUEST, 0 },
        { "accepted, not named in time, and no find has answered",
          { LAST(LAUNCH_NAMED_USEC), .maybe = true, .is_accepted = true, .can_find = true },
          LAUNCH_FIND, 0 },
        { "accepted, not named in time: the back-off delays the request",
          { LAST(LAUNCH_NAMED_USEC), .maybe = true, .is_accepted = true, .can_find = true,
            .looked_usec = NOW, .again_usec = NOW + 1 },
          LAUNCH_WAIT, NOW + 1 },
        { "accepted, and no find: request again", { ASKED, .maybe = true, .is_accepted = true },
          LAUNCH_REQUEST, 0 },
        /* -- being deleted */
        { "deleted: find", { DELETED, .can_find = true }, LAUNCH_FIND, 0 },
        { "deleted: the back-off delays find", { DELETED, .can_find = true, .again_usec = NOW + 1 },
          LAUNCH_WAIT, NOW + 1 },
        { "deleted: find saw none, and no request can have launched one",
          { DELETED, .can_find = true, .looked_usec = NOW }, LAUNCH_RELEASE, 0 },
        { "deleted: no find, and no request can have launched one", { DELETED }, LAUNCH_RELEASE, 0 },
        { "deleted: no find: until it is settled", { DELETED_LAST(LAUNCH_SETTLED_USEC - 1), .maybe = true },
          LAUNCH_WAIT, NOW + 1 },
        { "deleted: no find: it is settled", { DELETED_LAST(LAUNCH_SETTLED_USEC), .maybe = true },
          LAUNCH_RELEASE, 0 },
        { "deleted: find saw none, and a machine may still appear",
          { DELETED_LAST(LAUNCH_SETTLED_USEC - 1), .maybe = true, .can_find = true, .looked_usec = NOW },
          LAUNCH_FIND, 0 },
        { "deleted: find saw none before it was settled, and not since",
          { DELETED_LAST(LAUNCH_SETTLED_USEC), .maybe = true, .can_find = true, .looked_usec = NOW - 1 },
          LAUNCH_FIND, 0 },
        { "deleted: find saw none when it was settled",
          { DELETED_LAST(LAUNCH_SETTLED_USEC), .maybe = true, .can_find = true, .looked_usec = NOW },
          LAUNCH_RELEASE, 0 },
        { "deleted: settled, and no find has answered",
          { DELETED_LAST(LAUNCH_SETTLED_USEC), .maybe = true, .can_find = true }, LAUNCH_FIND, 0 },
        { "deleted: a final answer changes nothing", { DELETED, .is_final = true, .maybe = true },
          LAUNCH_WAIT, NOW - USEC_PER_MINUTE + LAUNCH_SETTLED_USEC },
};

TEST_CASE(test_acts) {
        bool seen[_LAUNCH_ACT_MAX] = {};

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                usec_t at = 1;
                LaunchAct act = launch_act(&rows[i].f, &at);

                if (act != rows[i].act || (act == LAUNCH_WAIT && at != rows[i].at_usec))
                        fail_msg("%s: %s until %" PRIu64 ", expected %s until %" PRIu64, rows[i].what,
                                 act_names[act], at,
                                 act_names[rows[i].act], rows[i].at_usec);
                seen[act] = true;
        }
        for (size_t i = 0; i < ELEMENTSOF(seen); i++)
                assert_true(seen[i]);
}

/* -- every combination ---------------------------------------------------------------------------------- */

static void check(const LaunchFacts *f) {
        usec_t settled = f->maybe ? f->time_usec + LAUNCH_SETTLED_USEC : 0, at = 1;
        LaunchAct act = launch_act(f, &at);
        bool has_looked = f->looked_usec > 0;

        if (f->has_id)
                assert_int_equal(act, LAUNCH_TAKE);
        else
                assert_int_not_equal(act, LAUNCH_TAKE);
        if (f->deleting)
                assert_true(act != LAUNCH_REQUEST && act != LAUNCH_GIVE_UP);
        if (act == LAUNCH_REQUEST) {
                assert_true(f->is_wanted);
                assert_true(!f->is_asked || !f->can_find || has_looked);
                assert_true(f->now_usec >= f->again_usec);
        }
        if (act == LAUNCH_FIND)
                assert_true(f->can_find && f->is_asked && f->now_usec >= f->again_usec);
        if (act == LAUNCH_RELEASE) {
                assert_true(f->deleting);
                assert_false(f->is_asked && f->maybe && f->lacks_provider);
                assert_true(!f->is_asked || f->now_usec >= settled);
                assert_true(!f->is_asked || !f->can_find || (has_looked && f->looked_usec >= settled));
        }
        if (act == LAUNCH_GIVE_UP)
                assert_false(f->deleting);
        if (act == LAUNCH_WAIT && at == USEC_INFINITY) /* another claim goes, or the pool changes */
                assert_true(f->deleting ? f->is_asked && f->maybe && f->lacks_provider : !f->is_asked && !f->may_begin);
        else if (act == LAUNCH_WAIT)
                assert_true(at > f->now_usec);
}

TEST_CASE(test_every_combination) {
        static const usec_t since[] = { 0, LAUNCH_ASKED_USEC - 1, LAUNCH_ASKED_USEC, LAUNCH_ASKED_USEC + 1 };
        static const usec_t last[] = { 0, LAUNCH_NAMED_USEC - 1, LAUNCH_NAMED_USEC, LAUNCH_SETTLED_USEC - 1,
                                       LAUNCH_SETTLED_USEC };
        static const usec_t again[] = { 0, NOW - 1, NOW, NOW + 1, NOW + USEC_PER_HOUR };
        static const usec_t looked[] = { 0, NOW - SECOND, NOW };
        const size_t times = ELEMENTSOF(since) * ELEMENTSOF(last) * ELEMENTSOF(again) * ELEMENTSOF(looked);

        for (unsigned bits = 0; bits < 1u << 11; bits++)
                for (size_t i = 0; i < times; i++) {
                        size_t k = i;
                        LaunchFacts f = { .deleting = bits & 1,
                                          .is_wanted = bits & 2,
                                          .may_begin = bits & 4,
                                          .is_asked = bits & 8,
                                          .maybe = bits & 16,
                                          .can_find = bits & 32,
                                          .is_final = bits & 64,
                                          .has_id = bits & 128,
                                          .is_accepted = bits & 256,
                                          .lacks_provider = bits & 512,
                                          .is_stale = bits & 1024,
                                          .now_usec = NOW };

                        f.since_usec = NOW - since[k % ELEMENTSOF(since)];
                        k /= ELEMENTSOF(since);
                        f.time_usec = NOW - last[k % ELEMENTSOF(last)];
                        k /= ELEMENTSOF(last);
                        f.again_usec = again[k % ELEMENTSOF(again)];
                        k /= ELEMENTSOF(again);
                        f.looked_usec = looked[k % ELEMENTSOF(looked)];
                        check(&f);
                }
}

int main(void) {
        static const struct CMUnitTest tests[] = { cmocka_unit_test(test_acts),
                                                   cmocka_unit_test(test_every_combination) };

        return cmocka_run_group_tests_name("launch-rule", tests, NULL, NULL);
}
