/* SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

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

static void test_nodes(void **state) {
        size_t young, old;
        (void) state;

        if (!heap_is_told())
                skip();
        (void) size_after(20);
        young = size_after(WARM_NODES);
        old = size_after(WARM_NODES + 1000);
        assert_true(young > 10000);
        if (old > young + SLACK_BYTES)
                fail_msg("a coordinator held %zu bytes after %d nodes and %zu after 1,000 more", young, WARM_NODES, old);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_nodes),
        };
        return cmocka_run_group_tests_name("coordinator-growth", tests, NULL, NULL);
}
