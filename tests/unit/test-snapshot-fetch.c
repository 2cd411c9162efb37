/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "cmocka-test.h"
#include "ctl-rig.h"
#include "snapshot-fetch.h"

/* Lines that a terminal shows while a snapshot is read. */

typedef struct Fetched {
        bool is_done;
        bool has_snapshot;
        char *message;
} Fetched;

static void on_fetched(const char *message, Snapshot *snapshot, char *const *unknown, void *userdata) {
        Fetched *f = userdata;

        (void) unknown;
        assert_false(f->is_done);
        f->is_done = true;
        f->has_snapshot = snapshot;
        f->message = message ? strdup(message) : NULL;
        snapshot_free(snapshot);
}

static void on_request(const FakeRequest *r, FakeApiFault *ret_fault, void *userdata) {
        const char *plural = userdata;

        if (r->verb == FAKE_LIST && r->plural && streq(r->plural, plural))
                ret_fault->status = 500;
}

TEST_CASE(test_progress) {
        static const struct {
                bool progress;
                const char *fails; /* list that is answered by 500 */
                unsigned n_pods;
                const char *text;  /* what each line shows in the place of the one before */
        } rows[] = {
                { false, "none", 1, "" },
                { true, "none", 1,
                  "3 nodes 3 nodes 1 pods 3 nodes 1 pods 3 nodes 1 pods 3 nodes 1 pods 3 nodes 1 pods "
                  "3 nodes 1 pods 3 nodes 1 pods 4 namespaces 3 nodes 1 pods 4 namespaces "
                  "3 nodes 1 pods 4 namespaces 3 nodes 1 pods 4 namespaces \n" },
                { true, "pods", 1,
                  "3 nodes 3 nodes 3 nodes 3 nodes 3 nodes 3 nodes 3 nodes 3 nodes 4 namespaces "
                  "3 nodes 4 namespaces 3 nodes 4 namespaces 3 nodes 4 namespaces \n" },
                { true, "none", 1001,
                  "3 nodes 3 nodes 1000 pods... 3 nodes 1000 pods... 3 nodes 1000 pods... "
                  "3 nodes 1000 pods... 3 nodes 1000 pods... 3 nodes 1000 pods... "
                  "3 nodes 1000 pods... 4 namespaces 3 nodes 1000 pods... 4 namespaces "
                  "3 nodes 1000 pods... 4 namespaces 3 nodes 1000 pods... 4 namespaces "
                  "3 nodes 1001 pods 4 namespaces \n" },
        };
        unsigned n_wrong = 0;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_ctl_rig_ CtlRig rig;
                _cleanup_(snapshot_fetch_freep) SnapshotFetch *fetch = NULL;
                _cleanup_free_ char *text = NULL;
                FILE *terminal = stderr;
                Fetched f = {};
                size_t size;

                ctl_rig_init(&rig, NULL);
                for (unsigned k = 0; k < rows[i].n_pods; k++)
                        fake_put(rig.w.cluster, FAKE_PODS,
                                 fj_parse("{'metadata':{'name':'p%u','namespace':'default'},'spec':{'nodeName':'n1'}}", k));
                fake_api_set_fault(ctl_rig_api(&rig), on_request, (void *) rows[i].fails);
                stderr = open_memstream(&text, &size);
                assert_return_code(snapshot_fetch_new(rig.ctl.client,
                                                      &(SnapshotFetchOptions){ .progress = rows[i].progress },
                                                      on_fetched, &f, &fetch),
                                   0);
                fake_world_run(&rig.w, 5 * USEC_PER_SEC);
                fclose(stderr);
                stderr = terminal;
                assert_true(f.is_done);
                assert_int_equal(f.has_snapshot, streq(rows[i].fails, "none"));
                assert_int_equal(f.message != NULL, !f.has_snapshot);
                free(f.message);
                if (!streq(text, rows[i].text)) {
                        print_error("want: %s\ngot: %s\n", rows[i].text, text);
                        n_wrong++;
                }
                fake_api_set_fault(ctl_rig_api(&rig), NULL, NULL);
        }
        assert_int_equal(n_wrong, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_progress) };

        return cmocka_run_group_tests_name("snapshot-fetch", tests, NULL, NULL);
}
