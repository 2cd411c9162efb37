/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "alloc-fault.h"
#include "cmocka-test.h"
#include "evictor.h"
#include "kube-rig.h"

/*
 * One wish, and one moment in which memory runs out: whoever asked may be told -ENOMEM, but the wish stands
 * and is carried out.
 */

#define CREATED "{\"kind\":\"Status\",\"status\":\"Success\"}"

typedef struct Bench {
        VirtualTime *time;
        RigHost *host;
        Evictor *evictor;
        Eviction *wish;
        unsigned n_accepted;
} Bench;

static void on_exchange(HttpExchange *x, void *userdata) {
        HttpHeader h = { "Content-Type", "application/json" };

        x->ops->reply(x, 201, &h, 1, CREATED, strlen(CREATED));
}

static void on_report(Eviction *e, const EvictionReport *report, void *userdata) {
        Bench *b = userdata;

        b->n_accepted += report->answer == EVICTION_ACCEPTED;
}

static int new_wish(Bench *b, const char *pdb) {
        KubePod pod = { .object.meta = { .ns = (char *) "shop", .name = (char *) "web-0", .uid = (char *) "u" } };

        return evictor_add(b->evictor, &pod, -1, pdb, on_report, b, &b->wish);
}

static void bench_init(Bench *b) {
        *b = (Bench){};
        assert_return_code(virtual_time_new(RIG_START_WALL, &b->time), 0);
        b->host = rig_host_new(b->time, 7, NULL, on_exchange, b);
        assert_return_code(evictor_new(b->host->client, NULL, &b->evictor), 0);
}

static void bench_done(Bench *b) {
        eviction_free(b->wish);
        evictor_free(b->evictor);
        rig_host_free(b->host);
        virtual_time_free(b->time);
}

static void run_for(Bench *b, usec_t usec) {
        rig_run_until(b->time, virtual_time_now(b->time) + usec);
}

/* Each allocation once, until there is none left to fail. */
TEST_CASE(test_move) {
        static const struct {
                const char *from, *to;
        } rows[] = { { "shut", "open" }, { "shut", NULL }, { NULL, "open" } };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                bool fired = true;
                size_t n_failed = 0;

                for (size_t n = 1; fired; n++) {
                        Bench b;
                        int r;

                        bench_init(&b);
                        assert_return_code(evictor_set_allowed(b.evictor, "shop", "shut", 0), 0);
                        assert_return_code(new_wish(&b, rows[i].from), 0);
                        alloc_fault_arm(n);
                        r = eviction_set_pdb(b.wish, rows[i].to);
                        fired = alloc_fault_fired();
                        alloc_fault_disarm();
                        assert_int_equal(r, fired ? -ENOMEM : 0);
                        n_failed += fired;

                        assert_return_code(evictor_set_allowed(b.evictor, "shop", "shut", 1), 0);
                        run_for(&b, USEC_PER_SEC);
                        assert_int_equal(b.n_accepted, 1);
                        bench_done(&b);
                }
                print_message("  %s to %s: %zu allocations\n", rows[i].from ? rows[i].from : "no PDB",
                              rows[i].to ? rows[i].to : "no PDB", n_failed);
                assert_true(rows[i].to ? n_failed > 0 : n_failed == 0);
        }
}

/* While a request leaves, or an answer comes. */
TEST_CASE(test_life) {
        bool fired = true;

        for (size_t n = 1; fired; n++) {
                Bench b;
                int r;

                bench_init(&b);
                alloc_fault_arm(n);
                r = new_wish(&b, "web");
                run_for(&b, USEC_PER_SEC);
                fired = alloc_fault_fired();
                alloc_fault_disarm();
                if (r < 0)
                        assert_return_code(new_wish(&b, "web"), 0);
                run_for(&b, USEC_PER_MINUTE);
                assert_true(b.n_accepted == 1);
                bench_done(&b);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_move),
                cmocka_unit_test(test_life),
        };
        return cmocka_run_group_tests_name("alloc-evictor", tests, NULL, NULL);
}
