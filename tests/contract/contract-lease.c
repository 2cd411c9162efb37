/* SPDX-License-Identifier: Apache-2.0 */
/* The Lease: compare and swap, its times, and leader election on it. */
#include "contract-ask.h"
#include "leader-elector.h"
#include "lease-record.h"
#include "time-util.h"

#define NS "kube-system"
#define LEASE_BODY \
        "{'metadata': {'name': '%s'}, 'spec': {'holderIdentity': 'a', 'leaseDurationSeconds': 15, " \
        "'leaseTransitions': 0, " \
        "'acquireTime': '2026-01-01T00:00:00.000000Z', 'renewTime': '2026-01-01T00:00:00.123456Z'}}"

/* Of two who create it one succeeds. */
TEST_CASE(created_once) {
        Rig *r = *state;
        _cleanup_answer_ Answer first = rig_create(r, RIG_ADMIN, LEASE(NS, NULL), LEASE_BODY, "lease-once");
        _cleanup_answer_ Answer second = rig_create(r, RIG_ADMIN, LEASE(NS, NULL), LEASE_BODY, "lease-once");

        assert_answer(first, 201, NULL);
        assert_answer(second, 409, "AlreadyExists");
        assert_int_equal(api_error_to_errno(&second.error), -EEXIST);
}

/* PUT of a record as it was read, changed: the second who read the same is refused. */
TEST_CASE(compare_and_swap) {
        Rig *r = *state;
        _cleanup_answer_ Answer made = rig_create(r, RIG_ADMIN, LEASE(NS, NULL), LEASE_BODY, "lease-swap");
        _cleanup_(lease_record_done) LeaseRecord record = { 0 };
        LeaseClaim claim = { .holder = "b",
                             .duration_sec = 15,
                             .transitions = 1,
                             .now_wall_usec = UINT64_C(1790000000123456) };
        _cleanup_free_ char *body = NULL;
        _cleanup_answer_ Answer won = { 0 }, lost = { 0 }, read = { 0 };

        assert_answer(made, 201, NULL);
        assert_return_code(lease_record_parse(made.json, &record), 0);
        assert_string_equal(record.holder, "a");
        body = lease_body_update(&record, &claim);
        assert_non_null(body);
        won = rig_update_raw(r, RIG_ADMIN, LEASE(NS, "lease-swap"), body);
        assert_answer(won, 200, NULL);
        lost = rig_update_raw(r, RIG_ADMIN, LEASE(NS, "lease-swap"), body);
        assert_answer(lost, 409, "Conflict");

        read = rig_get(r, RIG_ADMIN, LEASE(NS, "lease-swap"));
        assert_string_equal(answer_string(&read, "spec", "holderIdentity", NULL), "b");
        assert_string_equal(answer_string(&read, "spec", "renewTime", NULL), "2026-09-21T14:13:20.123456Z");
        assert_string_equal(answer_string(&read, "spec", "acquireTime", NULL),
                            "2026-09-21T14:13:20.123456Z");
        assert_int_equal(answer_int(&read, "spec", "leaseTransitions", NULL), 1);
}

TEST_CASE(unconditional_put_is_refused) {
        Rig *r = *state;
        _cleanup_answer_ Answer made = rig_create(r, RIG_ADMIN, LEASE(NS, NULL), LEASE_BODY, "lease-blind");
        _cleanup_answer_ Answer blind =
                rig_update(r, RIG_ADMIN, LEASE(NS, "lease-blind"), LEASE_BODY, "lease-blind");
        _cleanup_answer_ Answer another = { 0 };

        assert_answer(made, 201, NULL);
        assert_answer(blind, 422, "Invalid");
        another = rig_update(r, RIG_ADMIN, LEASE(NS, "lease-blind"), LEASE_BODY, "lease-other");
        assert_answer(another, 400, "BadRequest");
}

/* The object that was read is not the one that is there. */
TEST_CASE(put_to_another_life) {
        Rig *r = *state;
        _cleanup_answer_ Answer first = rig_create(r, RIG_ADMIN, LEASE(NS, NULL), LEASE_BODY, "lease-lives");
        _cleanup_answer_ Answer gone = { 0 }, second = { 0 }, put = { 0 };

        assert_answer(first, 201, NULL);
        gone = rig_delete(r, RIG_ADMIN, LEASE(NS, "lease-lives"), NULL);
        assert_answer(gone, 200, NULL);
        second = rig_create(r, RIG_ADMIN, LEASE(NS, NULL), LEASE_BODY, "lease-lives");
        assert_answer(second, 201, NULL);
        put = rig_update_raw(r, RIG_ADMIN, LEASE(NS, "lease-lives"), first.body);
        assert_answer(put, 409, "Conflict");
}

TEST_CASE(lease_that_is_none) {
        static const struct {
                const char *what, *spec;
                unsigned status;
        } rows[] = {
                { "no time", "'renewTime': 'now'", 400 },
                { "a time of seconds", "'renewTime': '2026-01-01T00:00:00Z'", 400 },
                { "a negative duration", "'leaseDurationSeconds': -1", 422 },
                { "no duration", "'leaseDurationSeconds': 0", 422 },
                { "negative transitions", "'leaseTransitions': -1", 422 },
                { "a word for a number", "'leaseDurationSeconds': 'long'", 400 },
                { "nothing at all", "", 201 },
        };
        Rig *r = *state;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_answer_ Answer a =
                        rig_create(r, RIG_ADMIN, LEASE(NS, NULL),
                                   "{'metadata': {'name': 'lease-none'}, 'spec': {%s}}", rows[i].spec);

                print_message("  %s\n", rows[i].what);
                assert_int_equal(a.status, rows[i].status);
        }
}

/* What the server does not know it drops; an empty holder it keeps. */
TEST_CASE(unknown_fields_and_empty_ones) {
        Rig *r = *state;
        _cleanup_answer_ Answer a =
                rig_create(r, RIG_ADMIN, LEASE(NS, NULL),
                           "{'metadata': {'name': 'lease-unknown', 'annotations': {'k': 'v'}}, 'spec': "
                           "{'holderIdentity': '', 'strategy': 'OldestEmulationVersion', "
                           "'preferredHolder': 'c', 'inventedField': 1}}");

        assert_answer(a, 201, NULL);
        assert_null(json_path(a.json, "spec", "inventedField", NULL));
        assert_string_equal(answer_string(&a, "spec", "holderIdentity", NULL), "");
        assert_string_equal(answer_string(&a, "metadata", "annotations", "k", NULL), "v");
}

/* -- leader election ------------------------------------------------------------------------------ */

/* Asserts nothing itself: it may be called after its case has failed. */
typedef struct Candidate {
        LeaderElector *elector;
        unsigned n_started, n_stopped;
        bool released;
} Candidate;

static void on_started(void *userdata) {
        ((Candidate *) userdata)->n_started++;
}

static void on_stopped(const char *why, void *userdata) {
        ((Candidate *) userdata)->n_stopped++;
}

static void on_released(void *userdata) {
        ((Candidate *) userdata)->released = true;
}

/* lease_usec: what a candidate that others follow, or nobody, may be late without losing it. */
static Candidate *candidate_new(Rig *r, RigWho who, const char *ns, const char *name, const char *identity,
                                usec_t lease_usec) {
        Candidate *c = new0(Candidate, 1);
        LeaderConfig config = {
                .ns = ns,
                .name = name,
                .identity = identity,
                .lease_usec = lease_usec,
                .renew_deadline_usec = lease_usec / 5 * 4,
                .retry_usec = USEC_PER_SEC / 2,
        };
        LeaderHandler h = { .on_started = on_started, .on_stopped = on_stopped, .userdata = c };

        assert_non_null(c);
        assert_return_code(leader_elector_new(rig_client(r, who), &config, &h, &c->elector), 0);
        leader_elector_start(c->elector);
        return c;
}

static Candidate *candidate_free(Candidate *c) {
        if (!c)
                return NULL;
        leader_elector_free(c->elector);
        return mfree(c);
}
DEFINE_FREEP(Candidate, candidate_free);

static bool leads(void *userdata) {
        return ((Candidate *) userdata)->n_started > 0;
}

static bool follows_a(void *userdata) {
        return streq_ptr(leader_elector_holder(((Candidate *) userdata)->elector), "a");
}

static bool lost(void *userdata) {
        return ((Candidate *) userdata)->n_stopped > 0;
}

static bool released(void *userdata) {
        return ((Candidate *) userdata)->released;
}

/* When the holder took, or last renewed it, by its own clock. */
static usec_t lease_time(const Answer *lease, const char *field) {
        usec_t t;

        assert_answer(*lease, 200, NULL);
        assert_return_code(rfc3339_parse(strempty(answer_string(lease, "spec", field, NULL)), &t), 0);
        return t;
}

static usec_t renewed_at(Rig *r, const char *name) {
        _cleanup_answer_ Answer lease = rig_get(r, RIG_ADMIN, LEASE(NS, name));

        return lease_time(&lease, "renewTime");
}

/* Killed, the first leaves its lease to run out; then the second leads, and not before. */
TEST_CASE(a_killed_leader_is_followed) {
        Rig *r = *state;
        usec_t lease_usec = (rig_is_fake(r) ? 5 : 12) * USEC_PER_SEC, killed, renewed;
        _cleanup_(candidate_freep)
                Candidate *a = candidate_new(r, RIG_ADMIN, NS, "elect-kill", "a", lease_usec),
                          *b = NULL;
        _cleanup_answer_ Answer lease = { 0 };

        assert_true(rig_wait(r, leads, a, rig_limit(r, lease_usec)));
        b = candidate_new(r, RIG_ADMIN, NS, "elect-kill", "b", lease_usec);
        rig_sleep(r, lease_usec + USEC_PER_SEC);
        assert_int_equal(a->n_stopped, 0);
        assert_true(leader_elector_is_leader(a->elector));
        assert_int_equal(b->n_started, 0);
        assert_string_equal(leader_elector_holder(b->elector), "a");

        candidate_freep(&a);
        killed = loop_now(rig_env(r, RIG_ADMIN)->loop);
        renewed = renewed_at(r, "elect-kill");
        assert_true(rig_wait(r, leads, b, rig_limit(r, lease_usec + 3 * USEC_PER_SEC)));
        assert_true(!rig_is_fake(r) ||
                    loop_now(rig_env(r, RIG_ADMIN)->loop) - killed > lease_usec - 2 * USEC_PER_SEC);
        lease = rig_get(r, RIG_ADMIN, LEASE(NS, "elect-kill"));
        assert_true(lease_time(&lease, "acquireTime") >= renewed + lease_usec);
        assert_string_equal(answer_string(&lease, "spec", "holderIdentity", NULL), "b");
        assert_int_equal(answer_int(&lease, "spec", "leaseTransitions", NULL), 1);
}

/* Given up, it need not run out, which nobody would wait for here. By the coordinator's credential, on its
 * own Lease. */
TEST_CASE(a_leader_that_leaves_is_followed) {
        Rig *r = *state;
        usec_t lease_usec = 10 * RIG_PATIENCE_USEC;
        _cleanup_(candidate_freep) Candidate *a = NULL, *b = NULL;
        _cleanup_answer_ Answer lease = { 0 };

        a = candidate_new(r, RIG_COORDINATOR, "vesper-system", "vesper-coordinator", "a", lease_usec);
        assert_true(rig_wait(r, leads, a, rig_limit(r, 5 * USEC_PER_SEC)));
        b = candidate_new(r, RIG_COORDINATOR, "vesper-system", "vesper-coordinator", "b", lease_usec);
        assert_true(rig_wait(r, follows_a, b, rig_limit(r, USEC_PER_SEC)));
        leader_elector_step_down(a->elector, on_released, a);
        assert_true(rig_wait(r, released, a, rig_limit(r, 2 * USEC_PER_SEC)));
        assert_true(rig_wait(r, leads, b, rig_limit(r, 2 * USEC_PER_SEC)));
        lease = rig_get(r, RIG_COORDINATOR, LEASE("vesper-system", "vesper-coordinator"));
        assert_string_equal(answer_string(&lease, "spec", "holderIdentity", NULL), "b");
}

/* Somebody takes the Lease by hand: whoever led leads no more, and says so, long before its own would have
 * run out. */
TEST_CASE(a_leader_that_is_robbed_stops) {
        Rig *r = *state;
        _cleanup_(candidate_freep) Candidate *a =
                candidate_new(r, RIG_ADMIN, NS, "elect-rob", "a", 10 * RIG_PATIENCE_USEC);
        _cleanup_answer_ Answer robbed = { 0 };

        assert_true(rig_wait(r, leads, a, rig_limit(r, 5 * USEC_PER_SEC)));
        robbed = rig_merge(r, RIG_ADMIN, LEASE(NS, "elect-rob"), "{'spec': {'holderIdentity': 'thief'}}");
        assert_answer(robbed, 200, NULL);
        assert_true(rig_wait(r, lost, a, rig_limit(r, 5 * USEC_PER_SEC)));
        assert_false(leader_elector_is_leader(a->elector));
}

/* The connection breaks, and the leader goes on: it renews its lease over the next one. */
TEST_CASE(a_leader_outlives_a_cut) {
        Rig *r = *state;
        Loop *loop = rig_env(r, RIG_ADMIN)->loop;
        _cleanup_(candidate_freep) Candidate *a =
                candidate_new(r, RIG_ADMIN, NS, "elect-cut", "a", 2 * RIG_PATIENCE_USEC);

        assert_true(rig_wait(r, leads, a, rig_limit(r, 5 * USEC_PER_SEC)));
        for (unsigned i = 0; i < 4; i++) {
                usec_t cut_wall, until;

                rig_sleep(r, USEC_PER_SEC);
                rig_cut(r);
                cut_wall = loop_wall(loop);
                until = usec_add(loop_now(loop), rig_limit(r, 4 * USEC_PER_SEC));
                while (renewed_at(r, "elect-cut") <= cut_wall) {
                        if (loop_now(loop) >= until)
                                fail_msg("the leader did not renew its lease after cut %u", i + 1);
                        rig_sleep(r, USEC_PER_SEC / 10);
                }
        }
        assert_int_equal(a->n_started, 1);
        assert_int_equal(a->n_stopped, 0);
        assert_true(leader_elector_is_leader(a->elector));
}

static const struct CMUnitTest cases[] = {
        cmocka_unit_test(created_once),
        cmocka_unit_test(compare_and_swap),
        cmocka_unit_test(unconditional_put_is_refused),
        cmocka_unit_test(put_to_another_life),
        cmocka_unit_test(lease_that_is_none),
        cmocka_unit_test(unknown_fields_and_empty_ones),
        cmocka_unit_test(a_killed_leader_is_followed),
        cmocka_unit_test(a_leader_that_leaves_is_followed),
        cmocka_unit_test(a_leader_that_is_robbed_stops),
        cmocka_unit_test(a_leader_outlives_a_cut),
};
CONTRACT_SUITE(lease, cases);
