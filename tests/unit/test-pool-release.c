/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "marks.h"

/* Nodes that their pool lets go: what happens between the steps of release.c. */

typedef struct Meddler {
        CoordinatorRig *rig;
        char *claim;
        unsigned left; /* so often somebody is quicker than the coordinator's DELETE */
        bool selects_again; /* and the pool's label is back on the Node */
} Meddler;

/* Just before the DELETE is looked at, the claim has its finalizer again. */
static void on_request(const FakeRequest *request, FakeApiFault *ret_fault, void *userdata) {
        Meddler *m = userdata;

        if (request->verb != FAKE_DELETE || !request->resource || request->resource->id != FAKE_NODECLAIMS)
                return;
        if (m->left == 0)
                return;
        m->left--;
        fake_merge(m->rig->cluster, FAKE_NODECLAIMS, NULL, m->claim,
                   "{'metadata':{'finalizers':['" FINALIZER_TERMINATION "']}}");
        if (m->selects_again)
                fake_merge(m->rig->cluster, FAKE_NODES, NULL, "n0",
                           "{'metadata':{'labels':{'vesper.sh/pool':'" POOL "'}}}");
}

/* A claim with our finalizer that is being deleted is a wish to end the machine: who lets a node go must not
 * make one. */
TEST_CASE(test_finalizer_comes_back) {
        static const struct {
                const char *what;
                unsigned rounds;
                bool selected_again;
        } rows[] = {
                { "and goes again", 1, false },
                { "three times running", 3, false },
                { "with a pool that selects the node again", 1, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                Meddler m = { .rig = r, .left = rows[i].rounds, .selects_again = rows[i].selected_again };

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 2, "0s");
                m.claim = MUST(strdup(fj_string(rig_claim(r, "n0"), "metadata", "name", NULL)));
                fake_api_set_fault(r->api, on_request, &m);
                fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                           "{'metadata':{'labels':{'vesper.sh/pool':null}}}");
                for (unsigned k = 0; k < 3000; k++) {
                        const cJSON *claim = rig_claim(r, "n0");

                        if (claim && fj_get(claim, "metadata", "deletionTimestamp", NULL))
                                fail_msg("a claim with a finalizer was deleted");
                        rig_run(r, 10 * MSEC);
                }
                assert_int_equal(m.left, 0);
                assert_non_null(rig_node(r, "n0"));
                assert_null(fj_get(rig_node(r, "n0"), "metadata", "deletionTimestamp", NULL));
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
                if (rows[i].selected_again)
                        assert_true(rig_is_adopted(r, "n0"));
                else {
                        assert_null(rig_claim(r, "n0"));
                        assert_false(rig_has_finalizer(rig_node(r, "n0")));
                }
                assert_true(rig_is_adopted(r, "n1"));
                fake_api_set_fault(r->api, NULL, NULL);
                free(m.claim);
        }
}

/* vesper's two taints among so many others. */
static void put_taints(CoordinatorRig *r, unsigned n_others) {
        _cleanup_strbuf_ StrBuf taints = {};

        for (unsigned i = 0; i < n_others; i++)
                strbuf_addf(&taints, "{'key':'a%u','effect':'PreferNoSchedule'},", i);
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                   "{'metadata':{'annotations':{'" ANNOTATION_OUT_OF_SERVICE "':'2027-01-15T08:00:00Z','" ANNOTATION_DEADLINE
                   "':'2027-01-15T08:00:00Z'}},'spec':{'taints':[%s{'key':'" TAINT_DISRUPTED
                   "','effect':'NoSchedule'},{'key':'" TAINT_OUT_OF_SERVICE "','value':'" TAINT_OUT_OF_SERVICE_VALUE
                   "','effect':'NoExecute'}]}}",
                   strbuf_str(&taints));
}

static int n_taints(CoordinatorRig *r) {
        return cJSON_GetArraySize(fj_get(rig_node(r, "n0"), "spec", "taints", NULL));
}

/* A Node with more than 256 taints is released, too. Its taints stay, as an Event says, and go when the Node has
 * fewer. They keep neither its claim nor its pool. */
TEST_CASE(test_unread_taints) {
        static const struct {
                const char *what;
                unsigned n_others;
                bool deletes_pool, taints_stay;
        } rows[] = {
                { "its taints are read", 254, false, false },
                { "no pool selects it any more", 255, false, true },
                { "its pool is deleted", 255, true, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 2, "0s");
                put_taints(r, rows[i].n_others);
                if (rows[i].deletes_pool)
                        (void) fake_delete(r->cluster, FAKE_NODEPOOLS, NULL, POOL, 0);
                else
                        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'labels':{'vesper.sh/pool':null}}}");
                rig_run(r, 30 * USEC_PER_SEC);
                assert_null(rig_claim(r, "n0"));
                assert_false(rig_has_finalizer(rig_node(r, "n0")));
                assert_null(fj_get(rig_node(r, "n0"), "metadata", "annotations", ANNOTATION_DEADLINE, NULL));
                assert_int_equal(!fake_get(r->cluster, FAKE_NODEPOOLS, NULL, POOL), rows[i].deletes_pool);
                assert_int_equal(rig_has_event(r, "n0", "TaintsNotRemoved"), rows[i].taints_stay);
                assert_int_equal(!!strstr(r->coordinators[0]->said.data, "Its taints stay"), rows[i].taints_stay);
                assert_int_equal(n_taints(r), (int) rows[i].n_others + (rows[i].taints_stay ? 2 : 0));

                print_message("  a person removes one of the others\n");
                if (rows[i].taints_stay)
                        put_taints(r, 254);
                rig_run(r, 30 * USEC_PER_SEC);
                assert_int_equal(n_taints(r), 254);
                assert_null(fj_get(rig_node(r, "n0"), "metadata", "annotations", ANNOTATION_OUT_OF_SERVICE, NULL));
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_finalizer_comes_back),
                cmocka_unit_test(test_unread_taints),
        };
        return cmocka_run_group_tests_name("pool-release", tests, NULL, NULL);
}
