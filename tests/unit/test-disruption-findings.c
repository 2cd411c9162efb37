/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cmocka-test.h"
#include "disruption-budget.h"
#include "disruption-due.h"
#include "disruption-findings-rows.h"
#include "disruption-gate.h"
#include "string-util.h"

/* Everything that can be found about one node, with the whole text of each finding. Rows that stand together differ by one fact. */

static char *findings_text(const GateFindings *f) {
        _cleanup_strbuf_ StrBuf b = {};

        for (size_t i = 0; i < f->n_items; i++) {
                const GateFinding *x = f->items + i;

                strbuf_addf(&b, "%s%s", i > 0 ? "; " : "", gate_code_to_string(x->code));
                if (x->object)
                        strbuf_addf(&b, " [%s]", x->object);
                if (x->until_usec != USEC_INFINITY)
                        strbuf_addf(&b, " +%llds", (long long) (x->until_usec - RIG_NOW_USEC) / (long long) USEC_PER_SEC);
                strbuf_addf(&b, ": %s", x->text);
        }
        return b.size > 0 ? strbuf_steal(&b) : strdup("");
}

static void due_done(NodeDue *due) {
        free(due->why);
}

/* 1: it is due. */
static int ask(const DisruptionScene *s, const FindingRow *row, NodeDue *ret, GateFindings *f) {
        switch (row->ask) {
        case ASK_GATE:
                gate_node(s, 0, row->flags, f);
                break;
        case ASK_BUDGETS:
                gate_budgets(s, 0, row->reason, f);
                break;
        case ASK_EXPIRY:
                return node_due_by_expiry(s, 0, ret, f);
        case ASK_DRIFT:
                return node_due_by_drift(s, 0, ret, f);
        case ASK_EMPTINESS:
                gate_emptiness(s, 0, f);
                break;
        case ASK_CONSOLIDATION:
                gate_consolidation(s, 0, f);
                break;
        }
        return f->failed ? -ENOMEM : 0;
}

static char *play_row(const FindingRow *row) {
        RigCluster c = { .nodes = { { "a", "8", row->meta, row->spec, row->ready }, { "b", "4", NULL, row->spec_b, row->ready_b } },
                         .pool = row->no_pool ? NULL : strempty(row->pool) };
        _cleanup_(disruption_rig_freep) DisruptionRig *r = NULL;
        _cleanup_(gate_findings_done) GateFindings f = {};
        _cleanup_(due_done) NodeDue due = {};
        int is_due;

        memcpy(c.pods, row->pods, sizeof(row->pods));
        memcpy(c.others, row->others, sizeof(row->others));
        r = disruption_rig_new(&c);
        if (row->unknown) {
                for (SnapshotKind k = 0; k < _SNAPSHOT_KIND_MAX; k++)
                        if (streq(snapshot_kube_kind(k)->plural, row->unknown))
                                r->snapshot->is_known[k] = false;
                rig_judge(r);
        }
        r->scene->lacks_waiting = row->lacks_waiting;
        if (row->takes_b)
                disruption_count_taken(r->scene, 1, 1);
        is_due = ask(r->scene, row, &due, &f);
        assert_return_code(is_due, 0);
        if (is_due == 0)
                return findings_text(&f);
        assert_int_equal(f.n_items, 0);
        return strf("due %+llds%s: %s", (long long) (due.since_usec - RIG_NOW_USEC) / (long long) USEC_PER_SEC,
                    due.by_force ? ", by force" : "", due.why);
}

TEST_CASE(test_findings) {
        unsigned n_wrong = 0;

        for (size_t i = 0; i < ELEMENTSOF(finding_rows); i++) {
                const FindingRow *row = finding_rows + i;
                _cleanup_free_ char *text = play_row(row);

                if (streq(text, strempty(row->want)))
                        continue;
                print_error("%s\n  want: %s\n  got:  %s\n", row->what, strempty(row->want), text);
                n_wrong++;
        }
        assert_int_equal(n_wrong, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_findings) };

        return cmocka_run_group_tests_name("disruption-findings", tests, NULL, NULL);
}
