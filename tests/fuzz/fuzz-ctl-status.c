/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "ctl-status.h"
#include "fuzz-objects.h"
#include "string-util.h"

/* vesperctl status of any cluster: rows that fit together, a table that does nothing to the terminal, JSON
 * that is read. */

static void add(ObjectList *l, KubeObject *o) {
        if (!o)
                return;
        assert(GREEDY_REALLOC(l->items, l->allocated, l->n_items + 1) >= 0);
        l->items[l->n_items++] = o;
}

/* As it is read from the Lease: always UTF-8. */
static char *draw_leader(Draw *d) {
        _cleanup_free_ char *text = draw_bent_json(d, "{\"holder\":\"host_1\"}");
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const char *holder;

        assert(json_parse(text, strlen(text), strlen(text), &doc, NULL) == 0);
        holder = json_string_or_null(json_get(json_root(doc), "holder"));
        return holder ? strdup(holder) : NULL;
}

static void check_table(const StatusRows *rows, const CtlSnapshot *s) {
        _cleanup_free_ char *table = status_rows_table(rows, s);

        assert(table && *table);
        assert(utf8_is_valid(table, strlen(table)));
        for (const char *p = table; *p; p++)
                assert(*p == '\n' || ((unsigned char) *p >= ' ' && *p != 0x7f));
}

static void check_json(const StatusRows *rows, const CtlSnapshot *s) {
        _cleanup_free_ char *text = status_rows_json(rows, s);
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const Json *row;
        size_t i = 0;

        assert(text);
        assert(json_parse(text, strlen(text), strlen(text), &doc, NULL) == 0);
        assert(json_size(json_get(json_root(doc), "nodes")) + json_size(json_get(json_root(doc), "launches")) == rows->n_rows);
        for (row = json_first(json_get(json_root(doc), "nodes")); row; row = json_next(row), i++) {
                int64_t left;

                while (rows->rows[i].asked) /* a machine that is no node yet stands in the other list */
                        i++;
                assert(streq_ptr(json_string_or_null(json_get(row, "node")), rows->rows[i].node));
                assert(streq_ptr(json_string_or_null(json_get(row, "phase")), rows->rows[i].phase));
                assert(json_int64(json_get(row, "podsLeft"), &left) < 0 || left >= 0);
        }
}

/* A node of no pool that is drained for the interruption queue: its condition names the pods. */
static const char heard_node[] =
        "{\"metadata\":{\"name\":\"n0\",\"annotations\":{\"vesper.sh/heard\":\"{\\\"id\\\":\\\"e\\\",\\\"phase\\\":\\\"Draining\\\",\\\"podsLeft\\\":3,"
        "\\\"blockedBy\\\":[{\\\"pod\\\":\\\"default/web\\\",\\\"reason\\\":\\\"BlockedByPDB\\\",\\\"detail\\\":\\\"pdb\\\"},"
        "{\\\"pod\\\":\\\"x/y\\\",\\\"reason\\\":\\\"Protected\\\",\\\"detail\\\":\\\"key\\\"}]}\"}},"
        "\"status\":{\"conditions\":[{\"type\":\"DrainInProgress\",\"status\":\"True\",\"reason\":\"VesperCoordinator\",\"message\":\"vesper-coordinator evicts; "
        "3 pods are left, and it waits for default/web (BlockedByPDB pdb), x/y (Protected key), x/z (Forbidden) and 1 more\"}]}}";

static void check_blockers(const StatusRow *row) {
        for (size_t i = 0; row->told && i < row->n_blockers; i++) {
                assert(strchr(row->told[i].pod, '/') && !strchr(row->told[i].pod, ' '));
                assert(!isempty(row->told[i].reason));
                assert(!row->told[i].pdb || !row->told[i].message);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        CtlSnapshot s = { 0 };
        Draw d = { data, size };
        size_t n_nodes = 1 + draw_below(&d, 3), n_claims = 1 + draw_below(&d, 3);
        StatusRows rows;

        assert(intern_pool_new(&pool) >= 0);
        s.now_usec = FUZZ_NOW;
        s.leader = draw_bool(&d) ? draw_leader(&d) : NULL;
        s.leader_seen_usec = draw_usec(&d, FUZZ_NOW);
        s.lease_usec = draw_usec(&d, 15 * USEC_PER_SEC);
        for (size_t i = 0; i < n_nodes; i++)
                add(&s.nodes, fuzz_draw_object(&d, &kube_node_kind, fuzz_node, pool));
        for (size_t i = 0; i < n_claims; i++)
                add(&s.claims, fuzz_draw_object(&d, &kube_node_claim_kind, fuzz_node_claim, pool));
        add(&s.nodes, fuzz_draw_object(&d, &kube_node_kind, heard_node, pool));

        assert(status_rows_make(&s, &rows) == 0);
        assert(rows.n_rows <= s.nodes.n_items + s.claims.n_items);
        for (size_t i = 0; i < rows.n_rows; i++) {
                assert(rows.rows[i].node || rows.rows[i].claim);
                assert(!isempty(rows.rows[i].phase));
                check_blockers(rows.rows + i);
                assert(i == 0 || strcmp(strempty(rows.rows[i - 1].node), strempty(rows.rows[i].node)) <= 0);
        }
        check_table(&rows, &s);
        check_json(&rows, &s);
        status_rows_done(&rows);
        ctl_snapshot_done(&s);
        assert(intern_pool_size(pool) == 0);
        return 0;
}
