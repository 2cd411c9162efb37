/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "alloc-sweep.h"
#include "alloc-util.h"
#include "cmocka-test.h"

/* Is it the first or the last of its place? */
static bool is_chosen(const uint64_t *places, size_t n, size_t at) {
        const char *only = getenv("VESPER_ALLOC_AT");
        bool first = true, last = true;

        if (only)
                return strtoull(only, NULL, 10) == at + 1;
        if (getenv("VESPER_ALLOC_ALL"))
                return true;
        for (size_t i = 0; i < at && first; i++)
                first = places[i] != places[at];
        for (size_t i = at + 1; i < n && last; i++)
                last = places[i] != places[at];
        return first || last;
}

void alloc_sweep(alloc_run_t run, void *userdata, const char *good) {
        size_t total, n_chosen = 0, n_failed = 0, n_wrong = 0;
        _cleanup_free_ uint64_t *places = NULL;
        const char *wrong;

        /* Nothing fails. Twice: libraries are warm from then on, and the same is asked for each time. */
        for (int i = 0; i < 2; i++) {
                _cleanup_free_ char *log = NULL;

                wrong = run(0, &total, &log, userdata);
                if (wrong)
                        fail_msg("with all memory: expected %s, but %s:\n%s", good, wrong, log);
        }
        assert_true(total > 100);
        places = calloc(total, sizeof(*places));
        assert_non_null(places);
        for (size_t i = 0; i < total; i++)
                places[i] = alloc_fault_place(i + 1);

        for (size_t i = 0; i < total; i++) {
                _cleanup_free_ char *log = NULL;
                size_t n;

                if (!is_chosen(places, total, i))
                        continue;
                n_chosen++;
                wrong = run(i + 1, &n, &log, userdata);
                n_failed += alloc_fault_fired();
                if (!wrong)
                        continue;
                n_wrong++;
                print_message("allocation %zu of %zu failing: expected %s, but %s; what was said:\n", i + 1,
                              total, good, wrong);
                printf("%s", log);
        }
        print_message("%zu allocations, %zu of them failed, one in each run\n", total, n_failed);
        assert_int_equal(n_wrong, 0);
        assert_int_equal(n_failed, n_chosen);
}
