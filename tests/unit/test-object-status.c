/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "coordinator-rig.h"
#include "marks.h"

/* What the coordinator says in the status of NodeClaims and NodePools, beside what others say there. */

static const char *condition_message(const cJSON *object, const char *type) {
        return strempty(fj_string(fj_find(fj_get(object, "status", "conditions", NULL), "type", type),
                                  "message", NULL));
}

/* -- claims --------------------------------------------------------------------------------------------- */

static void set_condition_of_another(CoordinatorRig *r, const char *claim, const char *message) {
        _cleanup_cjson_ cJSON *list = fj_copy(fj_get(fake_get(r->cluster, FAKE_NODECLAIMS, NULL, claim),
                                                     "status", "conditions", NULL));
        _cleanup_free_ char *text = NULL;

        cJSON_Delete(cJSON_DetachItemViaPointer(list, (cJSON *) fj_find(list, "type", "Audited")));
        cJSON_AddItemToArray(list, fj_parse("{'type':'Audited','status':'True','reason':'Theirs','message':"
                                            "'%s','lastTransitionTime':'2026-01-01T00:00:00Z'}",
                                            message));
        text = fj_print(list);
        fake_merge(r->cluster, FAKE_NODECLAIMS, NULL, claim, "{\"status\":{\"conditions\":%s}}", text);
}

/* Somebody else keeps a condition on the claim, and changes it at every stage of a removal: a patch of the
 * list, which replaces it as a whole, is only taken on the list that it was made of. */
static void test_conditions_of_others_stay(void **state) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_free_ char *name = NULL;
        (void) state;

        rig_begin(r, 1, NULL);
        name = MUST(strdup(fj_string(rig_claim(r, "n0"), "metadata", "name", NULL)));
        fake_add_pod(r->cluster, &(FakePod){ .name = "slow", .node = "n0", .stop_sec = 20 });
        rig_run(r, USEC_PER_SEC);
        rig_delete_node(r, "n0");
        for (unsigned i = 0; i < 25 && rig_claim(r, "n0"); i++) {
                _cleanup_free_ char *said = MUST(strf("round %u", i));

                set_condition_of_another(r, name, said);
                rig_run(r, USEC_PER_SEC);
                if (!rig_claim(r, "n0"))
                        break;
                assert_string_equal(condition_message(rig_claim(r, "n0"), "Audited"), said);
                assert_string_equal(rig_condition(rig_claim(r, "n0"), CLAIM_REGISTERED), "True");
        }
        assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_conditions_of_others_stay),
        };
        return cmocka_run_group_tests_name("object-status", tests, NULL, NULL);
}
