/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "ctl-held.h"
#include "marks.h"
#include "string-util.h"

#define NOTICE(id, more) "{'id':'" id "','kind':'spot','source':'sqs','action':'terminate'" more "}"
#define RECEIVED(at) ",'received':'2027-01-15T" at "Z'"
#define UNTIL(at) ",'deadline':'2027-01-15T" at "Z'"
#define HELD ",'state':'Held'"
#define STOP "{'id':'s','kind':'maintenance','source':'sqs','action':'stop','deadline':'2027-01-15T09:00:00Z','received':'2027-01-15T08:00:03Z','state':'Held'}"
#define SCALE_IN "{'id':'g','kind':'scale-in','source':'sqs','action':'terminate','received':'2027-01-15T08:00:04Z','state':'Held'}"
#define END "the end of its machine (spot, terminate)"
#define GIVES "vesper deletes its NodeClaim, gives its pods until "
#define WHATEVER ", whatever their PodDisruptionBudgets allow, and ends its machine."
#define NO_CLAIM "vesper gives its pods until "
#define TO_CLOUD ", whatever their PodDisruptionBudgets allow. It leaves the machine to its cloud."

typedef struct Row {
        const char *what;
        const char *notices, *let_go; /* let_go: the annotation; NULL: none */
        bool is_node, is_deleted;     /* is_node: a Node without NodeClaim */
        HeldState state;
        const char *patch_at; /* NULL: nothing is held */
        const char *line;     /* its end */
} Row;

static const Row rows[] = {
        { "nothing was announced", "", NULL, false, false, HELD_NOTHING, NULL, "Node w: the brake of the interruption queue holds nothing of it." },
        { "a notice that stands", NOTICE("a", UNTIL("08:02:00")), NULL, false, false, HELD_NOTHING, NULL,
          "Node w: the brake of the interruption queue holds nothing of it. The queue announced " END " by 2027-01-15T08:02:00Z. "
          "The brake does not hold these notices." },
        { "a notice that is over", NOTICE("a", ",'state':'CalledOff'"), NULL, false, false, HELD_NOTHING, NULL, "holds nothing of it." },
        { "one that is held", NOTICE("a", UNTIL("08:02:00") RECEIVED("08:00:00") HELD), NULL, false, false, HELD_HELD, "2027-01-15T08:00:00Z",
          "Node w: the interruption queue announced " END " by 2027-01-15T08:02:00Z, received at 2027-01-15T08:00:00Z. "
          "Once it is let go, " GIVES "2027-01-15T08:02:00Z at most" WHATEVER },
        { "one without a time", SCALE_IN, NULL, false, false, HELD_HELD, "2027-01-15T08:00:04Z",
          "Once it is let go, vesper deletes its NodeClaim, drains the node and ends its machine." },
        { "one of which it is not known when it was received", NOTICE("a", UNTIL("08:02:00") HELD), NULL, false, false, HELD_HELD, "1970-01-01T00:00:01Z",
          END " by 2027-01-15T08:02:00Z. Once it is let go, " GIVES "2027-01-15T08:02:00Z at most" WHATEVER },
        { "two, and one that stands", NOTICE("a", UNTIL("08:02:00") RECEIVED("08:00:05") HELD) "," NOTICE("b", UNTIL("08:01:00")) "," STOP, NULL, false, false, HELD_HELD,
          "2027-01-15T08:00:05Z",
          "announced " END " by 2027-01-15T08:02:00Z, received at 2027-01-15T08:00:05Z; a stop of its machine (maintenance, stop) by 2027-01-15T09:00:00Z, received at 2027-01-15T08:00:03Z. "
          "Once it is let go, " GIVES "2027-01-15T08:02:00Z at most" WHATEVER },
        { "as many as are named", NOTICE("a", RECEIVED("08:00:00") HELD) "," NOTICE("b", RECEIVED("08:00:00") HELD) "," NOTICE("c", RECEIVED("08:00:00") HELD),
          NULL, false, false, HELD_HELD, "2027-01-15T08:00:00Z",
          "Node w: the interruption queue announced " END ", received at 2027-01-15T08:00:00Z; " END ", received at 2027-01-15T08:00:00Z; "
          END ", received at 2027-01-15T08:00:00Z. Once it is let go, vesper deletes its NodeClaim, drains the node and ends its machine." },
        { "more than are named", NOTICE("a", RECEIVED("08:00:00") HELD) "," NOTICE("b", RECEIVED("08:00:00") HELD) "," NOTICE("c", RECEIVED("08:00:00") HELD) "," NOTICE("d", RECEIVED("08:00:00") HELD),
          NULL, false, false, HELD_HELD, "2027-01-15T08:00:00Z", "; and 1 more (annotation vesper.sh/announced). Once it is let go, vesper deletes its NodeClaim, drains the node and ends its machine." },
        { "a stop, from which the machine comes back", STOP, NULL, false, false, HELD_HELD, "2027-01-15T08:00:03Z", "Once it is let go, " NO_CLAIM "2027-01-15T09:00:00Z at most" TO_CLOUD },
        { "of a Node without NodeClaim", NOTICE("a", UNTIL("08:02:00") RECEIVED("08:00:00") HELD), NULL, true, false, HELD_HELD, "2027-01-15T08:00:00Z",
          "Once it is let go, " NO_CLAIM "2027-01-15T08:02:00Z at most" TO_CLOUD },
        { "of a Node without NodeClaim, without a time", SCALE_IN, NULL, true, false, HELD_HELD, "2027-01-15T08:00:04Z",
          "Once it is let go, vesper goes on with the drain. It leaves the machine to its cloud." },
        { "of a node that is being removed", NOTICE("a", UNTIL("08:02:00") RECEIVED("08:00:00") HELD), NULL, false, true, HELD_HELD, "2027-01-15T08:00:00Z",
          "The node is being removed. Once the notice is let go, vesper gives its pods until 2027-01-15T08:02:00Z at most" WHATEVER },
        { "let go, and the coordinator has not read that yet", NOTICE("a", UNTIL("08:02:00") RECEIVED("08:00:00") HELD), "2027-01-15T08:00:00Z", false, false, HELD_LET_GO, "2027-01-15T08:00:00Z",
          "Node w: somebody has let it go already (annotation vesper.sh/let-go). The leading coordinator acts on that." },
        { "let go before another was received", NOTICE("a", UNTIL("08:02:00") RECEIVED("08:00:01") HELD), "2027-01-15T08:00:00Z", false, false, HELD_HELD, "2027-01-15T08:00:01Z", "ends its machine." },
        { "one let go, and one received later", NOTICE("a", UNTIL("08:02:00") RECEIVED("08:00:00") HELD) "," NOTICE("b", UNTIL("08:03:00") RECEIVED("08:00:09") HELD), "2027-01-15T08:00:00Z", false, false,
          HELD_HELD, "2027-01-15T08:00:09Z", "ends its machine." },
        { "action of a stranger", "{'id':'a','kind':'spot','source':'sqs','action':'x\\u001b[31my\\nz','received':'2027-01-15T08:00:00Z','state':'Held'}", NULL, false, false, HELD_HELD,
          "2027-01-15T08:00:00Z", "Once it is let go, vesper goes on with the drain. It leaves the machine to its cloud." },
};

static KubeObject *object_of(const Row *row, InternPool *pool) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        _cleanup_free_ char *list = strf("{'notices':[%s]}", row->notices), *text = NULL;
        KubeObject *o;

        for (char *p = list; *p; p++)
                *p = *p == '\'' ? '"' : *p;
        assert_return_code(json_writer_new(&w), 0);
        json_open_object(w, NULL);
        json_open_object(w, "metadata");
        json_add_string(w, "name", "w");
        if (row->is_deleted)
                json_add_string(w, "deletionTimestamp", "2027-01-15T07:59:00Z");
        json_open_object(w, "annotations");
        json_add_string(w, ANNOTATION_ANNOUNCED, list);
        json_add_string(w, ANNOTATION_LET_GO, row->let_go);
        json_close_object(w);
        json_close_object(w);
        json_close_object(w);
        text = json_writer_steal(w, NULL);
        assert_return_code(json_parse(text, strlen(text), 1u << 20, &doc, NULL), 0);
        assert_return_code(kube_object_decode(row->is_node ? &kube_node_kind : &kube_node_claim_kind, json_root(doc), pool, &o), 0);
        return o;
}

TEST_CASE(test_rows) {
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const Row *row = rows + i;
                _cleanup_free_ char *line = NULL, *patch = NULL, *expected = NULL;
                InternPool *pool;
                KubeObject *o;
                HeldNotices h;

                print_message("  %s\n", row->what);
                assert_return_code(intern_pool_new(&pool), 0);
                o = object_of(row, pool);
                h = held_notices(row->is_node ? (const KubeNode *) o : NULL, row->is_node ? NULL : (const KubeNodeClaim *) o);
                assert_int_equal(held_state(&h), row->state);
                line = held_line(&h, "Node w");
                assert_non_null(line);
                if (!endswith(line, row->line))
                        fail_msg("%s", line);
                assert_null(strpbrk(line, "\033\n"));
                patch = row->patch_at ? held_let_go_patch(&h) : NULL;
                expected = row->patch_at ? strf("{\"metadata\":{\"annotations\":{\"vesper.sh/let-go\":\"%s\"}}}", row->patch_at) : NULL;
                if (expected)
                        assert_string_equal(patch, expected);
                kube_object_unref(o);
                intern_pool_free(pool);
        }
}

/* Neither Node nor NodeClaim is there. */
TEST_CASE(test_neither) {
        HeldNotices h = held_notices(NULL, NULL);

        assert_int_equal(held_state(&h), HELD_NOTHING);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows), cmocka_unit_test(test_neither) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
