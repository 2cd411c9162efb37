/* SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>
#include <stdlib.h>

#include "agent-rig.h"
#include "cmocka-test.h"

/*
 * An agent lives as long as its machine. What it holds is what its death gives back: the heap in use before
 * and after it is freed, so that the fake beside it does not count. (What nobody could free any more is
 * ASan's to find.) The old must hold no more than the young.
 */

#define POLL_USEC USEC_PER_SEC
#define WARM_NOTICES 600 /* fill what is bounded: the 1,024 last Events, by which repetitions are known */
#define SLACK_BYTES 4096 /* one buffer that is larger this time */

static unsigned n_trims;

/* Takes the place of glibc's: counts how often an agent gives memory back. */
int malloc_trim(size_t pad) {
        n_trims++;
        return 0;
}

static size_t heap(void) {
        struct mallinfo2 m = mallinfo2();

        return m.uordblks + m.hblkhd;
}

static size_t bury(AgentRig *r) {
        size_t before = heap();

        agent_rig_kill(r);
        return before - heap();
}

/* Not by ASan's. */
static bool heap_is_told(void) {
        _cleanup_free_ char *p = MUST(malloc(100));

        return p && heap() > 0;
}

static AgentRig *rig_with_pods(usec_t poll_usec) {
        AgentRig *r = agent_rig_new();

        r->config.poll_usec = poll_usec;
        agent_rig_add_pods(r, "web", 30);
        agent_rig_start(r);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        return r;
}

static size_t size_after_polls(unsigned polls) {
        _cleanup_(agent_rig_freep) AgentRig *r = rig_with_pods(POLL_USEC);
        size_t begin = fake_imds_n_gets(r->imds), size;

        while (fake_imds_n_gets(r->imds) < begin + polls) {
                agent_rig_run(r, 1000 * POLL_USEC);
                fake_api_log_reset(fake_cluster_api(r->cluster));
        }
        size = bury(r);
        print_message("  %6u polls: %zu bytes\n", polls, size);
        return size;
}

TEST_CASE(test_polls) {
        size_t young, old;

        if (!heap_is_told())
                skip();
        /* What the first agent frees fills malloc()'s caches, which count as in use: it seems smaller. */
        (void) size_after_polls(1000);
        young = size_after_polls(1000);
        (void) size_after_polls(20000);
        old = size_after_polls(100000);
        assert_true(young > 10000);
        if (old > young + SLACK_BYTES)
                fail_msg("an agent held %zu bytes after 1,000 polls and %zu after 100,000", young, old);
}

/* A notice, the drain of two pods, and the notice is taken back: believed ten minutes past its deadline. */
static void one_notice(AgentRig *r, unsigned i) {
        _cleanup_free_ char *app = strf("job%u", i);

        agent_rig_add_pods(r, app, 2);
        agent_rig_run(r, 2 * POLL_USEC);
        agent_rig_notice(r, 120 * USEC_PER_SEC);
        agent_rig_run(r, 30 * USEC_PER_SEC);
        assert_true(agent_rig_unschedulable(r));
        assert_string_equal(agent_phase(r->agent), "Drained");
        assert_int_equal(agent_rig_n_pods(r), 0);
        fake_imds_clear_action(r->imds);
        agent_rig_run(r, 13 * USEC_PER_MINUTE);
        assert_string_equal(agent_phase(r->agent), "Idle");
        assert_false(agent_rig_unschedulable(r));
        strbuf_done(&r->lines);
        strbuf_done(&r->patches);
        fake_api_log_reset(fake_cluster_api(r->cluster));
}

static size_t size_after_notices(unsigned notices) {
        _cleanup_(agent_rig_freep) AgentRig *r = rig_with_pods(5 * POLL_USEC);
        size_t size;

        for (unsigned i = 0; i < notices; i++)
                one_notice(r, i);
        agent_rig_run(r, 2 * USEC_PER_HOUR); /* what is remembered for a while is forgotten */
        size = bury(r);
        print_message("  %6u notices: %zu bytes\n", notices, size);
        return size;
}

TEST_CASE(test_notices) {
        size_t young, old;

        if (!heap_is_told())
                skip();
        (void) size_after_notices(10);
        young = size_after_notices(WARM_NOTICES);
        old = size_after_notices(WARM_NOTICES + 1000);
        if (old > young + SLACK_BYTES)
                fail_msg("an agent held %zu bytes after %d notices and %zu after 1,000 more", young, WARM_NOTICES,
                         old);
}

/* An agent gives memory back once after its start, once when its node is drained, and once when that is undone; not while it
 * waits for its Node, nor during a drain, nor at each poll. */
TEST_CASE(test_trims) {
        _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();
        unsigned n = n_trims;

        r->no_route = true;
        agent_rig_add_pods(r, "web", 2);
        agent_rig_start(r);
        agent_rig_run(r, 20 * USEC_PER_SEC);
        assert_int_equal(n_trims - n, 0);
        r->no_route = false;
        agent_rig_run(r, 20 * USEC_PER_SEC);
        assert_int_equal(n_trims - n, 1);
        for (unsigned i = 0; i < 2; i++) {
                agent_rig_notice(r, 120 * USEC_PER_SEC);
                agent_rig_run(r, 4 * USEC_PER_SEC); /* two polls: the pods need three seconds to stop */
                assert_int_equal(n_trims - n, 1 + 2 * i + (i > 0));
                agent_rig_run(r, 30 * USEC_PER_SEC);
                assert_string_equal(agent_phase(r->agent), "Drained");
                assert_int_equal(n_trims - n, 2 + 2 * i);
                fake_imds_clear_action(r->imds);
                agent_rig_run(r, 13 * USEC_PER_MINUTE);
                assert_string_equal(agent_phase(r->agent), "Idle");
                assert_int_equal(n_trims - n, 3 + 2 * i);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_trims),
                cmocka_unit_test(test_polls),
                cmocka_unit_test(test_notices),
        };
        return cmocka_run_group_tests_name("agent-growth", tests, NULL, NULL);
}
