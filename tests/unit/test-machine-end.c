/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cloud-engine.h"
#include "cmocka-test.h"
#include "machine-end.h"
#include "string-util.h"

#define SEC USEC_PER_SEC
#define ID "aws:///us-east-1a/i-0a"

/* A cloud that lets wait, before a turn and on the way of a request. */
typedef struct World {
        CloudEngine engine;
        Timer *turns;
        VirtualTime *time;
        Env env;
        MachineEnd *machine;
        usec_t turn_usec, way_usec;
        CloudOutcome turn_outcome, outcome; /* outcome: of terminate */
        InstanceState after, state;         /* after an accepted terminate; what describe says */
        unsigned n_turns, n_sent, n_described, n_changed;
        usec_t sent_usec, least_pause_usec; /* the last; between two */
        CloudOutcome describe_outcome;
        const char *method, *region; /* of describe's identity */
        usec_t way_of_looks_usec, described_usec;
        bool lease_lost, says_word;
        usec_t word_usec; /* for so long */
} World;

typedef struct Batch {
        CloudBatch batch;
        Timer *timer;
} Batch;

static World *world_of(const CloudEngine *e) {
        return CONTAINER_OF(e, World, engine);
}

static CloudResult answer_of_describe(World *w) {
        w->n_described++;
        w->described_usec = loop_now(w->env.loop);
        if (w->describe_outcome != CLOUD_OK)
                return (CloudResult){ .outcome = w->describe_outcome, .message = "it does not say" };
        return (CloudResult){ .outcome = CLOUD_OK,
                              .state = w->state,
                              .message = w->state == INSTANCE_UNKNOWN ? "it cannot say" : "",
                              .identity = { .instance_id = "i-0a",
                                            .region = w->region ? w->region : "us-east-1",
                                            .method = w->method },
                              .unproved = "its name is another" };
}

static CloudResult answer_of_terminate(World *w, const CloudRequest *r) {
        if (!r->guard.may_send(r->guard.userdata))
                return (CloudResult){ .outcome = CLOUD_RETRY, .message = "lease lost" };
        if (w->n_sent++ > 0)
                w->least_pause_usec = MIN(w->least_pause_usec, loop_now(w->env.loop) - w->sent_usec);
        w->sent_usec = loop_now(w->env.loop);
        if (w->outcome != CLOUD_OK)
                return (CloudResult){ .outcome = w->outcome, .message = "it will not" };
        w->state = w->after;
        return (CloudResult){ .outcome = CLOUD_OK, .state = w->state, .message = "" };
}

static void on_batch(Timer *t, void *userdata) {
        Batch *b = userdata;
        World *w = world_of(b->batch.engine);
        CloudRequest *r = cloud_batch_first(&b->batch);

        b->batch.answering = true;
        cloud_request_finish(r, b->batch.operation == CLOUD_TERMINATE ? answer_of_terminate(w, r) : answer_of_describe(w));
        cloud_batch_free(&b->batch);
}

static int fake_send(CloudBatch *batch) {
        World *w = world_of(batch->engine);
        Batch *b = CONTAINER_OF(batch, Batch, batch);
        const CloudRequest *r = cloud_batch_first(batch);

        assert_string_equal(r->machine->provider_id, ID);
        assert_string_equal(r->machine->node, "n1");
        if (batch->operation == CLOUD_TERMINATE) {
                assert_string_equal(r->reservation.op_id, "op-7");
                assert_string_equal(r->reservation.pool, "pool-a");
        }
        assert_return_code(timer_new(w->env.loop, "batch", on_batch, b, &b->timer), 0);
        timer_arm_in(b->timer, batch->operation == CLOUD_TERMINATE ? w->way_usec : w->way_of_looks_usec);
        return 0;
}

static void fake_batch_done(CloudBatch *b) {
        timer_free(CONTAINER_OF(b, Batch, batch)->timer);
}

static bool fake_refuses(const CloudRequest *r, char **ret_message) {
        return false;
}

static void on_turns(Timer *t, void *userdata) {
        World *w = userdata;

        w->turns = timer_free(w->turns);
        if (w->turn_outcome != CLOUD_OK)
                cloud_engine_refuse_waiting(&w->engine, true, w->turn_outcome, "no keys");
        cloud_engine_give_places(&w->engine);
}

static void fake_prepare_turns(CloudEngine *e) {
        World *w = world_of(e);

        if (w->turns)
                return;
        w->n_turns++;
        assert_return_code(timer_new(w->env.loop, "turns", on_turns, w, &w->turns), 0);
        timer_arm_in(w->turns, w->turn_usec);
}

/* As exec's, which leaves the proof to the command, and as EC2's. */
static const CloudProviderOps ops = { .name = "fake" };
static const CloudProviderOps proving_ops = { .name = "fake", .proves_identity = true };
static const CloudEngineOps engine_ops = {
        .batch_bytes = sizeof(Batch),
        .describes_at_once = 1,
        .refuses = fake_refuses,
        .prepare = fake_prepare_turns,
        .send = fake_send,
        .batch_done = fake_batch_done,
};

static unsigned turns_held(const World *w) {
        return (unsigned) w->engine.yours.size;
}

static bool has_lease(void *userdata) {
        return !((World *) userdata)->lease_lost;
}

static void say_word(World *w) {
        machine_end_confirm(w->machine, w->word_usec == USEC_INFINITY
                                                ? USEC_INFINITY
                                                : usec_add(loop_now(w->env.loop), w->word_usec));
}

static void on_changed(MachineEnd *m, void *userdata) {
        World *w = userdata;

        w->n_changed++;
        assert_true(turns_held(w) <= machine_end_asks(m));
        if (w->says_word)
                say_word(w);
}

static void machine_make(World *w, const ClaimIdentity *identity, usec_t born_usec) {
        MachineEndOptions o = { .provider = &w->engine.provider,
                                .guard = { has_lease, w },
                                .machine = &(CloudMachine){ .provider_id = ID, .node = "n1" },
                                .op_id = "op-7",
                                .pool = "pool-a",
                                .identity = identity,
                                .born_usec = born_usec,
                                .changed = on_changed,
                                .userdata = w };

        w->machine = machine_end_free(w->machine);
        assert_return_code(machine_end_new(&w->env, &o, &w->machine), 0);
}

static int world_setup(void **state) {
        World *w = new0(World, 1);

        *w = (World){ .state = INSTANCE_PRESENT,
                      .after = INSTANCE_TERMINATING,
                      .word_usec = MACHINE_END_CONFIRMED_USEC,
                      .least_pause_usec = USEC_INFINITY };
        assert_return_code(virtual_time_new(UINT64_C(1790000000) * SEC, &w->time), 0);
        assert_return_code(loop_new_virtual(w->time, &w->env.loop), 0);
        assert_return_code(random_new(1, &w->env.random), 0);
        assert_return_code(cloud_engine_init(&w->engine, &w->env, &ops, &engine_ops), 0);
        machine_make(w, NULL, 0);
        *state = w;
        return 0;
}

static int proving_setup(void **state) {
        World *w;

        assert_int_equal(world_setup(state), 0);
        w = *state;
        w->engine.provider.ops = &proving_ops;
        w->method = "Name";
        return 0;
}

static int world_teardown(void **state) {
        World *w = *state;

        machine_end_free(w->machine);
        assert_int_equal(turns_held(w), 0); /* wherever it was */
        timer_free(w->turns);
        cloud_engine_done(&w->engine);
        random_free(w->env.random);
        loop_free(w->env.loop);
        virtual_time_free(w->time);
        free(w);
        return 0;
}

static void run_for(World *w, usec_t usec) {
        usec_t limit = usec_add(virtual_time_now(w->time), usec);

        while (virtual_time_step(w->time, limit) > 0)
                ;
}

static void assert_problem(World *w, const char *reason, const char *part) {
        const char *why, *problem = machine_end_problem(w->machine, &why);

        if (!reason) {
                assert_null(problem);
                return;
        }
        assert_non_null(problem);
        assert_string_equal(why, reason);
        assert_non_null(strstr(problem, part));
}

/* The owner is asked when there is nothing left to wait for, and what he says is done at once. */
TEST_CASE(test_wait_comes_before_the_word) {
        World *w = *state;

        w->turn_usec = 20 * SEC;
        say_word(w); /* nobody asked */
        machine_end_terminate(w->machine);
        machine_end_terminate(w->machine);
        say_word(w);
        run_for(w, 19 * SEC);
        assert_false(machine_end_asks(w->machine));
        assert_int_equal(w->n_changed, 0);
        run_for(w, 3 * SEC);
        assert_true(machine_end_asks(w->machine));
        assert_int_equal(w->n_changed, 1);
        assert_int_equal(w->n_sent, 0);
        say_word(w);
        say_word(w);
        assert_false(machine_end_asks(w->machine));
        run_for(w, 0);
        assert_int_equal(w->n_sent, 1);
        assert_int_equal(machine_end_state(w->machine), MACHINE_ENDING);
        run_for(w, 10 * USEC_PER_MINUTE);
        assert_int_equal(w->n_turns, 1);
        assert_int_equal(w->n_sent, 1);
}

/* A turn that is not confirmed goes back after ten seconds, and its owner may take as long as he needs: then it is the
 * first to have one again. */
TEST_CASE(test_turn_is_given_back) {
        World *w = *state;

        w->turn_usec = 2 * SEC;
        machine_end_terminate(w->machine);
        run_for(w, 11 * SEC);
        assert_int_equal(turns_held(w), 1);
        run_for(w, 2 * SEC);
        assert_int_equal(turns_held(w), 0);
        run_for(w, USEC_PER_HOUR);
        assert_true(machine_end_asks(w->machine));
        assert_int_equal(w->n_turns, 1); /* it stands in nobody's way */
        assert_int_equal(w->n_changed, 1);
        assert_int_equal(w->n_sent, 0);
        assert_problem(w, NULL, NULL);
        say_word(w);
        run_for(w, 3 * SEC);
        assert_int_equal(w->n_turns, 2);
        assert_int_equal(w->n_sent, 1);
}

/* Its owner has to list pods, which takes so long: up to ten seconds its turn is kept, longer lists have the next. Where
 * that takes more time than what was confirmed holds, he is asked once more. */
TEST_CASE(test_slow_owner) {
        static const struct {
                unsigned list_sec, holds_sec, turn_sec, n_turns, n_asked;
        } rows[] = {
                { 8, 1, 0, 1, 1 },
                { 9, 1, 3, 1, 1 },
                { 12, 1, 0, 2, 1 },
                { 14, 5, 4, 2, 1 },
                { 14, 1, 4, 2, 2 }, /* asked once more before the second turn comes */
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                World *w;

                print_message("  a list of %u s, true for %u s, a turn after %u s\n", rows[i].list_sec, rows[i].holds_sec,
                              rows[i].turn_sec);
                if (i > 0)
                        world_setup(state);
                w = *state;
                w->turn_usec = rows[i].turn_sec * SEC;
                w->word_usec = rows[i].holds_sec * SEC;
                machine_end_terminate(w->machine);
                run_for(w, (rows[i].turn_sec + rows[i].list_sec) * SEC);
                assert_int_equal(turns_held(w), rows[i].list_sec < 10);
                assert_int_equal(w->n_sent, 0);
                say_word(w);
                run_for(w, (rows[i].turn_sec + 1) * SEC);
                if (rows[i].n_asked == 2) {
                        assert_int_equal(w->n_sent, 0);
                        assert_true(machine_end_asks(w->machine));
                        say_word(w);
                        run_for(w, SEC);
                }
                assert_int_equal(w->n_sent, 1);
                assert_int_equal(w->n_turns, rows[i].n_turns);
                assert_int_equal(w->n_changed, rows[i].n_asked + 1); /* and accepted */
                assert_int_equal(machine_end_state(w->machine), MACHINE_ENDING);
                if (i < ELEMENTSOF(rows) - 1)
                        world_teardown(state);
        }
}

/* No turn: the reason is told, and it is asked for again. */
TEST_CASE(test_no_turn) {
        static const struct {
                const char *what;
                CloudOutcome outcome;
                const char *reason;
                unsigned in_sec; /* at most, until it is sent after all */
        } rows[] = {
                { "no keys", CLOUD_DENIED, "CloudDenied", 80 },
                { "no region yet", CLOUD_RETRY, "CloudUnavailable", 20 },
                { "none of its machines", CLOUD_INVALID, "CloudRefused", 80 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                World *w;

                print_message("  %s\n", rows[i].what);
                if (i > 0)
                        world_setup(state);
                w = *state;
                w->says_word = true;
                w->turn_outcome = rows[i].outcome;
                machine_end_terminate(w->machine);
                run_for(w, 10 * SEC);
                assert_problem(w, rows[i].reason, "no keys");
                assert_int_equal(turns_held(w), 0);
                assert_in_range(w->n_turns, 1, 12);
                w->turn_outcome = CLOUD_OK;
                run_for(w, rows[i].in_sec * SEC);
                assert_int_equal(w->n_sent, 1);
                assert_problem(w, NULL, NULL);
                if (i < ELEMENTSOF(rows) - 1)
                        world_teardown(state);
        }
}

/* Between the word and the wire there may be a connection to make, or new keys: what was said is not for
 * ever. */
TEST_CASE(test_word_ages) {
        World *w = *state;

        w->says_word = true;
        w->way_usec = 6 * SEC;
        machine_end_terminate(w->machine);
        run_for(w, 6 * SEC);
        assert_int_equal(w->n_sent, 0);
        assert_problem(w, "CloudUnavailable", "took too long");
        run_for(w, 2 * SEC);
        assert_int_equal(w->n_turns, 2);
        w->way_usec = 5 * SEC; /* as long as it holds */
        run_for(w, 10 * USEC_PER_MINUTE);
        assert_int_equal(w->n_sent, 1);
        assert_problem(w, NULL, NULL);
}

/* At T nothing that is so can change its end. */
TEST_CASE(test_word_for_ever) {
        World *w = *state;

        w->says_word = true;
        w->word_usec = USEC_INFINITY;
        w->way_usec = USEC_PER_HOUR;
        machine_end_terminate(w->machine);
        run_for(w, USEC_PER_HOUR);
        assert_int_equal(w->n_turns, 1);
        assert_int_equal(w->n_sent, 1);
}

TEST_CASE(test_lease) {
        World *w = *state;

        w->says_word = w->lease_lost = true;
        machine_end_terminate(w->machine);
        run_for(w, USEC_PER_MINUTE);
        assert_int_equal(w->n_sent, 0);
        assert_problem(w, "CloudUnavailable", "lease lost");
}

/* Each terminate has a turn and a word of its own, however it is due. */
TEST_CASE(test_due_again) {
        static const struct {
                const char *what;
                CloudOutcome outcome;
                InstanceState after;
                unsigned after_sec;
        } rows[] = {
                { "refused", CLOUD_DENIED, INSTANCE_PRESENT, 40 },
                { "it cannot say", CLOUD_RETRY, INSTANCE_PRESENT, 2 },
                { "accepted, and nothing comes of it", CLOUD_OK, INSTANCE_PRESENT, 100 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                World *w;

                print_message("  %s\n", rows[i].what);
                if (i > 0)
                        world_setup(state);
                w = *state;
                w->outcome = rows[i].outcome;
                w->after = rows[i].after;
                w->turn_usec = SEC;
                machine_end_terminate(w->machine);
                run_for(w, 2 * SEC);
                say_word(w);
                run_for(w, rows[i].after_sec * SEC);
                while (!machine_end_asks(w->machine)) /* its turns come and go */
                        run_for(w, SEC);
                assert_int_equal(w->n_sent, 1);
                assert_true(w->n_turns >= 2);
                w->outcome = CLOUD_OK;
                w->after = INSTANCE_TERMINATING;
                say_word(w);
                run_for(w, SEC);
                assert_int_equal(w->n_sent, 2);
                assert_int_equal(machine_end_state(w->machine), MACHINE_ENDING);
                if (i < ELEMENTSOF(rows) - 1)
                        world_teardown(state);
        }
}

/* An acceptance is one, whatever is told with it: from there the machine is watched to its end, and told again
 * once a minute. */
TEST_CASE(test_accepted) {
        static const struct {
                const char *what;
                InstanceState after;
                usec_t ends_usec; /* when the cloud has ended it */
                unsigned sent_min, sent_max, described_min;
        } rows[] = {
                { "without a word of its state", INSTANCE_UNKNOWN, 20 * SEC, 1, 1, 3 },
                { "it is still there", INSTANCE_PRESENT, 20 * SEC, 1, 1, 3 },
                { "it takes long", INSTANCE_UNKNOWN, 10 * USEC_PER_MINUTE, 8, 10, 30 },
                { "and it is on its way", INSTANCE_TERMINATING, 20 * SEC, 1, 1, 0 },
                { "and it is gone", INSTANCE_GONE, 20 * SEC, 1, 1, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                World *w;

                print_message("  %s\n", rows[i].what);
                if (i > 0)
                        world_setup(state);
                w = *state;
                w->says_word = true;
                w->after = rows[i].after;
                machine_end_terminate(w->machine);
                run_for(w, SEC / 2);
                assert_int_equal(w->n_sent, 1);
                assert_problem(w, NULL, NULL);
                w->after = w->state = INSTANCE_PRESENT;
                run_for(w, rows[i].ends_usec);
                assert_in_range(w->n_sent, rows[i].sent_min, rows[i].sent_max);
                assert_true(w->least_pause_usec >= 60 * SEC);
                assert_true(w->n_described >= rows[i].described_min);
                assert_true(!rows[i].described_min || machine_end_state(w->machine) == MACHINE_PRESENT);
                w->after = w->state = INSTANCE_GONE;
                run_for(w, 70 * SEC);
                assert_int_equal(machine_end_state(w->machine),
                                 rows[i].after == INSTANCE_TERMINATING ? MACHINE_ENDING : MACHINE_GONE);
                if (i < ELEMENTSOF(rows) - 1)
                        world_teardown(state);
        }
}

/* Not now, after all: until it is on its way, and while it is in doubt whether it had an effect. */
TEST_CASE(test_hold) {
        World *w = *state;

        assert_true(machine_end_hold(w->machine));
        w->turn_usec = 5 * SEC;
        machine_end_terminate(w->machine);
        run_for(w, SEC);
        assert_true(machine_end_hold(w->machine)); /* it waits for its turn */
        run_for(w, USEC_PER_MINUTE);
        assert_int_equal(w->n_turns, 1);
        assert_int_equal(w->n_changed, 0);

        machine_end_terminate(w->machine);
        run_for(w, 6 * SEC);
        assert_true(machine_end_asks(w->machine));
        assert_true(machine_end_hold(w->machine)); /* it has it */
        assert_int_equal(turns_held(w), 0);
        assert_false(machine_end_asks(w->machine));
        say_word(w);
        run_for(w, USEC_PER_MINUTE);
        assert_int_equal(w->n_turns, 2);

        w->after = INSTANCE_PRESENT;
        w->way_usec = 2 * SEC;
        machine_end_terminate(w->machine);
        run_for(w, 6 * SEC);
        say_word(w);
        assert_false(machine_end_hold(w->machine)); /* on its way; what has not left yet does not */
        run_for(w, 3 * SEC);
        assert_int_equal(w->n_sent, 0);
        assert_problem(w, "CloudUnavailable", "took too long");
        while (!machine_end_asks(w->machine))
                run_for(w, SEC);
        say_word(w);
        run_for(w, 3 * SEC);
        assert_int_equal(w->n_sent, 1);
        assert_false(machine_end_hold(w->machine)); /* accepted */
        while (w->n_turns < 5)
                run_for(w, SEC);
        assert_true(machine_end_hold(w->machine)); /* in vain: it is due again */
        run_for(w, 10 * USEC_PER_MINUTE);
        assert_int_equal(w->n_sent, 1);

        w->after = INSTANCE_TERMINATING;
        machine_end_terminate(w->machine);
        run_for(w, 6 * SEC);
        say_word(w);
        run_for(w, 3 * SEC);
        assert_int_equal(w->n_sent, 2);
        assert_false(machine_end_hold(w->machine)); /* it cannot come back */
}

/* A look under way has nothing to say any more once it is to end. */
TEST_CASE(test_look_gives_way) {
        World *w = *state;

        w->state = INSTANCE_GONE;
        machine_end_describe(w->machine);
        machine_end_terminate(w->machine);
        run_for(w, SEC);
        assert_int_equal(w->n_described, 0);
        assert_false(machine_end_has_answered(w->machine));
        assert_true(machine_end_asks(w->machine));
        machine_end_describe(w->machine);
        run_for(w, SEC);
        assert_int_equal(w->n_described, 0);
        w->after = INSTANCE_GONE;
        say_word(w);
        run_for(w, SEC);
        assert_int_equal(machine_end_state(w->machine), MACHINE_GONE); /* its own answer counts at once */
}

/* -- looks ---------------------------------------------------------------------------------------------- */

/* What the cloud calls ended is gone; what it merely does not find, only after two looks 10 s apart, and never in its
 * first 10 minutes. */
TEST_CASE(test_when_gone) {
        static const ClaimIdentity kept = { (char *) "i-0a", (char *) "us-east-1", (char *) "Name" };
        static const ClaimIdentity elsewhere = { (char *) "i-0a", (char *) "eu-west-1", (char *) "Name" };
        static const ClaimIdentity another = { (char *) "i-0b", (char *) "us-east-1", (char *) "Name" };
        static const struct {
                const char *what;
                const ClaimIdentity *identity;
                bool proves, trusted;
                InstanceState says;
                unsigned age_sec;
                MachineState first, second; /* after one look, and 11 s later */
                unsigned looks;             /* by then, of one that was asked for */
                bool proved;
        } rows[] = {
                { "a command's word is final", NULL, false, false, INSTANCE_GONE, 0, MACHINE_GONE, MACHINE_GONE, 1,
                  true },
                { "a command says terminating", NULL, false, false, INSTANCE_TERMINATING, 0, MACHINE_ENDING,
                  MACHINE_ENDING, 1, true },
                { "terminated, and proved before", &kept, true, false, INSTANCE_GONE, 0, MACHINE_GONE, MACHINE_GONE, 1,
                  true },
                { "terminated, and believed", NULL, true, true, INSTANCE_GONE, 0, MACHINE_GONE, MACHINE_GONE, 1, true },
                { "terminated, and never proved", NULL, true, false, INSTANCE_GONE, 0, MACHINE_UNKNOWN,
                  MACHINE_MISSING, 2, false },
                { "terminated, and proved in another region", &elsewhere, true, false, INSTANCE_GONE, 0,
                  MACHINE_UNKNOWN, MACHINE_MISSING, 2, false },
                { "terminated, and another was proved", &another, true, false, INSTANCE_GONE, 0, MACHINE_UNKNOWN,
                  MACHINE_MISSING, 2, false },
                { "shutting down, and proved before", &kept, true, false, INSTANCE_TERMINATING, 0, MACHINE_ENDING,
                  MACHINE_ENDING, 1, true },
                { "shutting down, and never proved", NULL, true, false, INSTANCE_TERMINATING, 0, MACHINE_UNKNOWN,
                  MACHINE_UNKNOWN, 1, false },
                { "off, and proved before", &kept, true, false, INSTANCE_OFF, 0, MACHINE_PRESENT, MACHINE_PRESENT, 1, true },
                { "off, as a command says", NULL, false, false, INSTANCE_OFF, 0, MACHINE_PRESENT, MACHINE_PRESENT, 1, true },
                { "off, and never proved", NULL, true, false, INSTANCE_OFF, 0, MACHINE_PRESENT, MACHINE_PRESENT, 1, false },
                { "off, and another was proved", &another, true, false, INSTANCE_OFF, 0, MACHINE_PRESENT, MACHINE_PRESENT, 1,
                  false },
                { "there, and proved before", &kept, true, false, INSTANCE_PRESENT, 0, MACHINE_PRESENT, MACHINE_PRESENT, 1,
                  true },
                { "not found, and old enough", &kept, true, false, INSTANCE_NOT_FOUND, 601, MACHINE_UNKNOWN,
                  MACHINE_MISSING, 2, true },
                { "not found, never proved", NULL, true, false, INSTANCE_NOT_FOUND, 601, MACHINE_UNKNOWN,
                  MACHINE_MISSING, 2, false },
                { "not found, and young", &kept, true, false, INSTANCE_NOT_FOUND, 560, MACHINE_UNKNOWN,
                  MACHINE_UNKNOWN, 1, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                usec_t begun;
                World *w;

                print_message("  %s\n", rows[i].what);
                if (i > 0)
                        world_setup(state);
                w = *state;
                w->engine.provider.ops = rows[i].proves ? &proving_ops : &ops;
                w->state = rows[i].says;
                machine_make(w, rows[i].identity, loop_wall(w->env.loop) - rows[i].age_sec * SEC);
                machine_end_trust(w->machine, rows[i].trusted);
                begun = loop_now(w->env.loop);
                machine_end_describe(w->machine);
                run_for(w, SEC);
                assert_int_equal(machine_end_state(w->machine), rows[i].first);
                assert_int_equal(machine_end_has_answered(w->machine), rows[i].looks == 1);
                run_for(w, 8900 * USEC_PER_MSEC);
                assert_int_equal(machine_end_state(w->machine), rows[i].first);
                run_for(w, 1200 * USEC_PER_MSEC);
                assert_int_equal(machine_end_state(w->machine), rows[i].second);
                assert_true(machine_end_has_answered(w->machine));
                assert_int_equal(machine_end_is_proved(w->machine), rows[i].proved);
                assert_int_equal(machine_end_is_off(w->machine), rows[i].says == INSTANCE_OFF && rows[i].proved);
                run_for(w, USEC_PER_MINUTE);
                assert_int_equal(w->n_described, rows[i].looks);
                assert_true(rows[i].looks == 1 || w->described_usec - begun >= 10 * SEC);
                assert_int_equal(w->n_sent, 0);
                if (i < ELEMENTSOF(rows) - 1)
                        world_teardown(state);
        }
}

/* Ten seconds lie between the end of the first look and the beginning of the second, however slow the cloud is; what
 * it says in between counts. */
TEST_CASE(test_second_look) {
        static const struct {
                const char *what;
                CloudOutcome outcome;
                InstanceState between;
        } rows[] = {
                { "it is there again", CLOUD_OK, INSTANCE_PRESENT },
                { "it cannot say", CLOUD_OK, INSTANCE_UNKNOWN },
                { "it does not answer", CLOUD_RETRY, INSTANCE_NOT_FOUND },
        };
        World *w = *state;

        w->way_of_looks_usec = 4 * SEC;
        w->state = INSTANCE_NOT_FOUND;
        machine_end_describe(w->machine);
        run_for(w, 5 * SEC);
        assert_int_equal(w->n_described, 1);
        machine_end_describe(w->machine); /* it has its time */
        run_for(w, 12500 * USEC_PER_MSEC);
        assert_int_equal(w->n_described, 1);
        assert_int_equal(machine_end_state(w->machine), MACHINE_UNKNOWN);
        run_for(w, SEC);
        assert_int_equal(w->n_described, 2);
        assert_int_equal(machine_end_state(w->machine), MACHINE_MISSING);

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                unsigned n = w->n_described;

                print_message("  %s\n", rows[i].what);
                w->way_of_looks_usec = 0;
                w->describe_outcome = rows[i].outcome;
                w->state = rows[i].between;
                machine_end_describe(w->machine);
                run_for(w, SEC);
                assert_int_not_equal(machine_end_state(w->machine), MACHINE_MISSING);
                w->describe_outcome = CLOUD_OK;
                w->state = INSTANCE_NOT_FOUND;
                machine_end_describe(w->machine);
                run_for(w, SEC);
                assert_int_equal(machine_end_state(w->machine), MACHINE_UNKNOWN); /* counted anew */
                run_for(w, 10 * SEC);
                assert_int_equal(machine_end_state(w->machine), MACHINE_MISSING);
                assert_int_equal(w->n_described, n + 3);
        }
}

/* -- whose it is ---------------------------------------------------------------------------------------- */

/* It is proved anew before each terminate, and what cannot be proved is not told to end. */
TEST_CASE(test_proved_before_the_end) {
        World *w = *state;

        w->says_word = true;
        w->after = INSTANCE_PRESENT;
        machine_end_terminate(w->machine);
        run_for(w, SEC / 2);
        assert_int_equal(w->n_described, 1);
        assert_int_equal(w->n_sent, 1);
        run_for(w, USEC_PER_MINUTE);
        w->method = NULL; /* a tag was taken off */
        run_for(w, 5 * USEC_PER_MINUTE);
        assert_int_equal(w->n_sent, 1);
        assert_problem(w, "IdentityUnproved", "its name is another");
        assert_problem(w, "IdentityUnproved", "NodePool pool-a");
        w->method = "Name";
        w->after = INSTANCE_TERMINATING;
        run_for(w, 2 * USEC_PER_MINUTE);
        assert_int_equal(w->n_sent, 2);
        assert_int_equal(machine_end_state(w->machine), MACHINE_ENDING);
        assert_problem(w, NULL, NULL);
}

/* Whose the machine is was proved before a long line: the place is not used by that. */
TEST_CASE(test_proved_in_its_place) {
        static const struct {
                const char *what, *method;
                InstanceState state;
                usec_t wait_usec;
                unsigned n_described, n_sent;
        } rows[] = {
                { "its place comes at once", "Name", INSTANCE_PRESENT, 0, 1, 1 },
                { "... or within 10 s", "Name", INSTANCE_PRESENT, 10 * SEC, 1, 1 },
                { "... or after that: proved again", "Name", INSTANCE_PRESENT, 11 * SEC, 2, 1 },
                { "meanwhile its tag was taken off", NULL, INSTANCE_PRESENT, 11 * SEC, 2, 0 },
                { "meanwhile it has gone", "Name", INSTANCE_GONE, 11 * SEC, 2, 0 },
                { "meanwhile somebody else ends it", "Name", INSTANCE_TERMINATING, 11 * SEC, 2, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                World *w;
                void *state2;

                print_message("%s\n", rows[i].what);
                assert_int_equal(proving_setup(&state2), 0);
                w = state2;
                w->says_word = true;
                w->turn_usec = rows[i].wait_usec;
                machine_end_terminate(w->machine);
                run_for(w, SEC / 100);
                w->method = rows[i].method;
                w->state = rows[i].state;
                run_for(w, rows[i].wait_usec + SEC / 2);
                assert_int_equal(w->n_described, rows[i].n_described);
                assert_int_equal(w->n_sent, rows[i].n_sent);
                assert_int_equal(turns_held(w), 0);
                if (!rows[i].method)
                        assert_problem(w, "IdentityUnproved", "NodePool pool-a");
                world_teardown(&state2);
        }
}

TEST_CASE(test_not_proved) {
        static const struct {
                const char *what;
                CloudOutcome outcome;
                InstanceState says;
                const char *reason;
                MachineState end;
        } rows[] = {
                { "nothing leads to its name", CLOUD_OK, INSTANCE_PRESENT, "IdentityUnproved", MACHINE_PRESENT },
                { "no answer", CLOUD_RETRY, INSTANCE_PRESENT, "CloudUnavailable", MACHINE_UNKNOWN },
                { "not allowed", CLOUD_DENIED, INSTANCE_PRESENT, "CloudDenied", MACHINE_UNKNOWN },
                { "it cannot say", CLOUD_OK, INSTANCE_UNKNOWN, "CloudUnknown", MACHINE_UNKNOWN },
                { "somebody ends what may be another's", CLOUD_OK, INSTANCE_TERMINATING, "IdentityUnproved",
                  MACHINE_UNKNOWN },
                { "somebody ended it", CLOUD_OK, INSTANCE_GONE, "IdentityUnproved", MACHINE_MISSING },
                { "it is not found", CLOUD_OK, INSTANCE_NOT_FOUND, "MachineMissing", MACHINE_MISSING },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                World *w;

                print_message("  %s\n", rows[i].what);
                if (i > 0)
                        proving_setup(state);
                w = *state;
                w->says_word = true;
                w->method = NULL;
                w->describe_outcome = rows[i].outcome;
                w->state = rows[i].says;
                machine_end_terminate(w->machine);
                run_for(w, 10 * USEC_PER_MINUTE);
                assert_int_equal(w->n_turns, 0);
                assert_int_equal(w->n_sent, 0);
                assert_problem(w, rows[i].reason, "");
                assert_int_equal(machine_end_state(w->machine), rows[i].end);
                assert_true(machine_end_hold(w->machine));
                if (i < ELEMENTSOF(rows) - 1)
                        world_teardown(state);
        }
}

/* The pool believes providerIDs, then does not any more: whoever has his turn by that is not ended. */
TEST_CASE(test_trusted) {
        World *w = *state;

        w->method = NULL;
        machine_end_terminate(w->machine);
        run_for(w, USEC_PER_MINUTE);
        assert_problem(w, "IdentityUnproved", "");
        machine_end_trust(w->machine, true);
        run_for(w, SEC); /* at once, not when it would be asked again */
        assert_true(machine_end_asks(w->machine));
        machine_end_trust(w->machine, false);
        say_word(w);
        run_for(w, USEC_PER_MINUTE);
        assert_int_equal(w->n_sent, 0);
        assert_problem(w, "IdentityUnproved", "");
        machine_end_trust(w->machine, true);
        run_for(w, SEC);
        say_word(w);
        run_for(w, SEC);
        assert_int_equal(w->n_sent, 1);
        assert_int_equal(machine_end_state(w->machine), MACHINE_ENDING);
}

/* A look once proved it by name, the describe before its end did not: then the pool's word is all there is, and it counts
 * for as long as it stands. */
TEST_CASE(test_trust_is_taken_back) {
        World *w = *state;

        machine_end_describe(w->machine);
        run_for(w, SEC);
        assert_int_equal(w->n_described, 1);
        w->method = NULL;
        w->turn_usec = 2 * SEC;
        machine_end_trust(w->machine, true);
        machine_end_terminate(w->machine);
        run_for(w, 3 * SEC);
        assert_true(machine_end_asks(w->machine));
        machine_end_trust(w->machine, false);
        assert_int_equal(turns_held(w), 0);
        assert_false(machine_end_asks(w->machine));
        say_word(w);
        run_for(w, USEC_PER_MINUTE);
        assert_int_equal(w->n_sent, 0);
        assert_problem(w, "IdentityUnproved", "its name is another");
}

/* While it is proved it may be held, and it needs no second answer where the first says that it has ended. */
TEST_CASE(test_hold_the_proof) {
        World *w = *state;

        w->way_of_looks_usec = 2 * SEC;
        machine_end_terminate(w->machine);
        run_for(w, SEC);
        assert_true(machine_end_hold(w->machine));
        run_for(w, USEC_PER_MINUTE);
        assert_int_equal(w->n_described, 0);
        assert_int_equal(w->n_turns, 0);

        w->state = INSTANCE_GONE;
        machine_end_terminate(w->machine);
        run_for(w, 3 * SEC);
        assert_int_equal(machine_end_state(w->machine), MACHINE_GONE);
        assert_int_equal(w->n_turns, 0);
        assert_false(machine_end_hold(w->machine));
}

#define PROVING_TEST(t) cmocka_unit_test_setup_teardown(t, proving_setup, world_teardown)
#define WORLD_TEST(t) cmocka_unit_test_setup_teardown(t, world_setup, world_teardown)

int main(void) {
        static const struct CMUnitTest tests[] = {
                WORLD_TEST(test_wait_comes_before_the_word),
                WORLD_TEST(test_turn_is_given_back),
                WORLD_TEST(test_slow_owner),
                WORLD_TEST(test_no_turn),
                WORLD_TEST(test_word_ages),
                WORLD_TEST(test_word_for_ever),
                WORLD_TEST(test_lease),
                WORLD_TEST(test_due_again),
                WORLD_TEST(test_accepted),
                WORLD_TEST(test_hold),
                WORLD_TEST(test_look_gives_way),
                WORLD_TEST(test_when_gone),
                WORLD_TEST(test_second_look),
                PROVING_TEST(test_proved_before_the_end),
                cmocka_unit_test(test_proved_in_its_place),
                PROVING_TEST(test_not_proved),
                PROVING_TEST(test_trusted),
                PROVING_TEST(test_trust_is_taken_back),
                PROVING_TEST(test_hold_the_proof),
        };
        return cmocka_run_group_tests_name("machine-end", tests, NULL, NULL);
}
