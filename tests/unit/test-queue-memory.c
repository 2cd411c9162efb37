/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cmocka-test.h"
#include "queue-memory.h"

/* A queue of a whole account names very many instances: the memory stays bounded, and the newest is always there. */
#define MANY 20000u

typedef struct Bench {
        VirtualTime *time;
        Loop *loop;
        QueueMemory memory;
} Bench;

static void bench_init(Bench *b) {
        assert_return_code(virtual_time_new(UINT64_C(1800000000) * USEC_PER_SEC, &b->time), 0);
        assert_return_code(loop_new_virtual(b->time, &b->loop), 0);
        assert_return_code(queue_memory_init(&b->memory, b->loop), 0);
}

static void bench_done(Bench *b) {
        queue_memory_done(&b->memory);
        loop_free(b->loop);
        virtual_time_free(b->time);
}

static void run(Bench *b, usec_t usec) {
        usec_t until = usec_add(virtual_time_now(b->time), usec);

        while (virtual_time_step(b->time, until) > 0)
                ;
}

static const char *name(char buffer[32], unsigned i) {
        (void) snprintf(buffer, 32, "i-%08x", i);
        return buffer;
}

TEST_CASE(test_unknown) {
        UnknownInstance *u;
        usec_t since;
        char text[32];
        Bench b;

        bench_init(&b);
        u = queue_memory_note_unknown(&b.memory, "i-first");
        since = u->since_usec;
        run(&b, USEC_PER_MINUTE);
        assert_ptr_equal(queue_memory_note_unknown(&b.memory, "i-first"), u);
        assert_true(u->since_usec == since && u->seen_usec > since);
        for (unsigned i = 1; i < MANY; i++)
                assert_non_null(queue_memory_note_unknown(&b.memory, name(text, i)));
        /* All are fresh when another one comes: one of them is forgotten. */
        assert_non_null(queue_memory_note_unknown(&b.memory, "i-last"));
        assert_int_equal(hashmap_size(b.memory.unknown), MANY);
        /* A quarter of an hour later nobody has named them again. */
        run(&b, 16 * USEC_PER_MINUTE);
        assert_non_null(queue_memory_note_unknown(&b.memory, "i-later"));
        assert_int_equal(hashmap_size(b.memory.unknown), 1);
        queue_memory_forget_unknown(&b.memory, "i-later");
        assert_null(queue_memory_unknown(&b.memory, "i-later"));
        bench_done(&b);
}

TEST_CASE(test_writes) {
        char text[32];
        Bench b;

        bench_init(&b);
        for (unsigned i = 0; i < MANY; i++)
                assert_int_equal(queue_memory_begin_write(&b.memory, name(text, i)), 1);
        assert_int_equal(queue_memory_begin_write(&b.memory, name(text, 7)), 0);
        assert_int_equal(queue_memory_begin_write(&b.memory, "newest"), -ENOMEM);
        queue_memory_end_write(&b.memory, name(text, 7));
        assert_int_equal(queue_memory_begin_write(&b.memory, "newest"), 1);
        bench_done(&b);
}

#define PARK_USEC (12 * USEC_PER_HOUR)

/* The number of parked messages is bounded. A parked message keeps its place when it comes again. */
TEST_CASE(test_park) {
        char text[32];
        Bench b;

        bench_init(&b);
        assert_int_equal(queue_memory_park(&b.memory, "first", PARK_USEC), QUEUE_PARK_NEW);
        assert_int_equal(queue_memory_park(&b.memory, "first", PARK_USEC), QUEUE_PARK_AGAIN);
        for (unsigned i = 1; i < QUEUE_PARKED_MAX; i++)
                assert_int_equal(queue_memory_park(&b.memory, name(text, i), PARK_USEC), QUEUE_PARK_NEW);
        assert_int_equal(queue_memory_park(&b.memory, "one more", PARK_USEC), QUEUE_PARK_FULL);

        print_message("when their time is over, the parked messages come first\n");
        run(&b, PARK_USEC + USEC_PER_MINUTE);
        assert_int_equal(queue_memory_park(&b.memory, "one more", PARK_USEC), QUEUE_PARK_FULL);
        assert_int_equal(queue_memory_park(&b.memory, "first", PARK_USEC), QUEUE_PARK_AGAIN);

        print_message("messages that do not come again have ended: each gives its place to another\n");
        run(&b, USEC_PER_HOUR);
        for (unsigned i = 1; i < QUEUE_PARKED_MAX; i++) {
                (void) snprintf(text, sizeof(text), "new-%u", i);
                assert_int_equal(queue_memory_park(&b.memory, text, PARK_USEC), QUEUE_PARK_NEW);
        }
        assert_int_equal(queue_memory_park(&b.memory, "one more", PARK_USEC), QUEUE_PARK_FULL);
        assert_int_equal(queue_memory_park(&b.memory, "first", PARK_USEC), QUEUE_PARK_AGAIN);
        bench_done(&b);
}

/* A message counts for each instance that it names. At the limit the oldest is forgotten. */
TEST_CASE(test_reported) {
        char text[32];
        Bench b;

        bench_init(&b);
        assert_true(queue_memory_note_reported(&b.memory, "first", "i-1"));
        assert_true(queue_memory_note_reported(&b.memory, "first", "i-2"));
        assert_false(queue_memory_note_reported(&b.memory, "first", "i-1"));
        for (unsigned i = 2; i < MANY; i++)
                assert_true(queue_memory_note_reported(&b.memory, name(text, i), "i-1"));
        assert_false(queue_memory_note_reported(&b.memory, "first", "i-1"));
        assert_true(queue_memory_note_reported(&b.memory, "last", "i-1"));
        assert_false(queue_memory_note_reported(&b.memory, "last", "i-1"));
        assert_false(queue_memory_note_reported(&b.memory, "first", "i-2"));
        assert_int_equal(hashmap_size(b.memory.reported), MANY);
        assert_true(queue_memory_note_reported(&b.memory, "first", "i-1"));
        assert_int_equal(hashmap_size(b.memory.reported), MANY);
        bench_done(&b);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_unknown),
                cmocka_unit_test(test_writes),
                cmocka_unit_test(test_park),
                cmocka_unit_test(test_reported),
        };
        return cmocka_run_group_tests_name("queue-memory", tests, NULL, NULL);
}
