/* SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>
#include <stdlib.h>

#include "cmocka-test.h"
#include "compare-count.h"
#include "coordinator-rig.h"

/* As test-agent-growth.c: what a coordinator holds is what its death gives back. Nodes come, are adopted, are
 * deleted and go. So many fill what is bounded (the 1,024 last Events, by which repetitions are known); a thousand
 * more must add nothing. */

#define WARM_NODES 600
#define SLACK_BYTES 16384 /* 16 bytes a node; what is forgotten for one node is hundreds */

static size_t heap(void) {
        struct mallinfo2 m = mallinfo2();

        return m.uordblks + m.hblkhd;
}

/* Not by ASan's. */
static bool heap_is_told(void) {
        _cleanup_free_ char *p = MUST(malloc(100));

        return p && heap() > 0;
}

static void one_node(CoordinatorRig *r, unsigned i) {
        _cleanup_free_ char *name = strf("cycle%u", i), *pod = strf("pod%u", i);

        rig_add_node(r, name);
        fake_add_pod(r->cluster, &(FakePod){ .name = pod, .node = name });
        rig_run(r, 2 * USEC_PER_SEC);
        assert_true(rig_is_adopted(r, name));
        rig_delete_node(r, name);
        assert_true(rig_wait_gone(r, name, USEC_PER_MINUTE));
        fake_api_log_reset(r->api);
}

static size_t size_after(unsigned nodes) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        size_t before, size;

        rig_begin(r, 3, NULL);
        for (unsigned i = 0; i < nodes; i++)
                one_node(r, i);
        rig_run(r, 2 * USEC_PER_HOUR); /* what is remembered for a while is forgotten */
        assert_non_null(rig_leader(r));
        strbuf_done(&r->coordinators[0]->said); /* what it logged is the rig's */
        before = heap();
        rig_kill(r, 0);
        size = before - heap();
        print_message("  %5u nodes: %zu bytes\n", nodes, size);
        return size;
}

TEST_CASE(test_nodes) {
        size_t young, old;

        if (!heap_is_told())
                skip();
        (void) size_after(20);
        young = size_after(WARM_NODES);
        old = size_after(WARM_NODES + 1000);
        assert_true(young > 10000);
        if (old > young + SLACK_BYTES)
                fail_msg("a coordinator held %zu bytes after %d nodes and %zu after 1,000 more", young, WARM_NODES, old);
}

/* -- adoption ------------------------------------------------------------------------------------------- */

/* Comparisons of texts, the coordinator's and the fake API server's, for a new installation that finds so
 * many nodes; until all are adopted and their pool has said so. */
static size_t compared_for_adoption(unsigned nodes) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        size_t before, spent;
        usec_t begin;

        for (unsigned i = 0; i < nodes; i++) {
                _cleanup_free_ char *name = strf("n%u", i * 7919 % 100003);

                rig_add_node(r, name);
        }
        rig_start(r, 0);
        rig_run(r, 3 * USEC_PER_SEC);
        assert_non_null(rig_leader(r));

        before = n_compared();
        begin = loop_now(r->w.loop);
        fake_add_nodepool(r->cluster, POOL, NULL, NULL);
        while (fake_api_count_status(r->api, FAKE_PATCH, FAKE_NODECLAIMS, "status", 200) < nodes) {
                rig_run(r, 100 * MSEC);
                assert_true(loop_now(r->w.loop) < begin + 10 * USEC_PER_MINUTE);
        }
        rig_run(r, 3 * USEC_PER_SEC);
        spent = n_compared() - before;
        assert_int_equal(fake_api_count_status(r->api, FAKE_CREATE, FAKE_NODECLAIMS, NULL, 201), nodes);
        print_message("  %5u nodes: %zu comparisons, %zu a node, in %.1f s\n", nodes, spent, spent / nodes,
                      (double) (loop_now(r->w.loop) - begin) / 1e6);
        return spent;
}

TEST_CASE(test_adoption) {
        size_t few = compared_for_adoption(200), many = compared_for_adoption(16 * 200);

        /* A little more than sixteen times as many: the fake's store is sorted. */
        assert_true(few > 200);
        if (many > 20 * few)
                fail_msg("sixteen times the nodes took %zu times the comparisons", many / few);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_nodes),
                cmocka_unit_test(test_adoption),
        };
        return cmocka_run_group_tests_name("coordinator-growth", tests, NULL, NULL);
}
