/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "marks.h"
#include "node-deadline.h"
#include "string-util.h"

#define EIGHT (UINT64_C(1800000000) * USEC_PER_SEC) /* 2027-01-15T08:00:00Z */
#define NOT_DELETED 0
#define NEVER USEC_INFINITY

/* A Node with this word of its agent, in which ~ stands for a quote; NULL: with none. */
static KubeNode *node_that_says(InternPool *pool, const char *notice) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_strbuf_ StrBuf text = {};
        KubeObject *o;

        strbuf_add(&text, "{\"metadata\":{\"name\":\"n\",\"uid\":\"u\"");
        if (notice) {
                strbuf_add(&text, ",\"annotations\":{\"" ANNOTATION_INTERRUPTION "\":\"");
                for (const char *p = notice; *p; p++)
                        strbuf_add(&text, *p == '~' ? "\\\"" : (char[]){ *p, 0 });
                strbuf_add(&text, "\"}");
        }
        strbuf_add(&text, "}}");
        assert_return_code(json_parse(strbuf_str(&text), text.size, 1u << 16, &doc, NULL), 0);
        assert_return_code(kube_object_decode(&kube_node_kind, json_root(doc), pool, &o), 0);
        return (KubeNode *) o;
}

/* The states of one node, one after the other; times in seconds after EIGHT. */
typedef struct Look {
        const char *what, *notice;
        int64_t now, deleted; /* of its claim */
        usec_t grace_usec;
        int64_t expected; /* -1: there is no T */
        bool changed, by_notice;
        int64_t forced; /* 0: the claim has no such annotation */
        bool by_force;
} Look;

#define TELLS(id, action, at) "{~id~:~" id "~,~action~:~" action "~,~deadline~:~2027-01-15T08:" at "Z~}"
#define OVER(id) "{~id~:~" id "~,~action~:~terminate~,~phase~:~Cancelled~,~deadline~:~2027-01-15T08:01:00Z~}"

static void play(const Look *looks, size_t n) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        NodeDeadline d = NODE_DEADLINE_NONE;

        assert_return_code(intern_pool_new(&pool), 0);
        for (size_t i = 0; i < n; i++) {
                const Look *l = &looks[i];
                KubeNode *node = node_that_says(pool, l->notice);
                KubeNodeClaim claim = { .termination_grace_usec = l->grace_usec,
                                        .force_deadline_usec = l->forced > 0 ? EIGHT + (usec_t) l->forced * USEC_PER_SEC : NEVER };
                usec_t now = EIGHT + (usec_t) l->now * USEC_PER_SEC;
                usec_t expected = l->expected < 0 ? NEVER : EIGHT + (usec_t) l->expected * USEC_PER_SEC;

                print_message("  %s\n", l->what);
                if (l->deleted != NOT_DELETED)
                        claim.object.meta.deletion_usec = EIGHT + (usec_t) l->deleted * USEC_PER_SEC;
                assert_int_equal(node_deadline_update(&d, node, l->grace_usec > 0 ? &claim : NULL, now),
                                 l->changed);
                assert_true(d.at_usec == expected);
                assert_int_equal(node_deadline_passed(&d, now), expected <= now);
                if (expected != NEVER)
                        assert_string_equal(node_deadline_source(&d),
                                            l->by_force ? "the annotation " ANNOTATION_FORCE_DEADLINE " of its NodeClaim"
                                            : l->by_notice              ? "the interruption its agent saw"
                                                                        : "its NodeClaim's terminationGracePeriod");
                kube_object_unref(&node->object);
        }
        node_deadline_done(&d);
}

TEST_CASE(test_claim) {
        static const Look looks[] = {
                { "no claim, no notice", NULL, 1, NOT_DELETED, 0, -1, false, false },
                { "its claim stands", NULL, 2, NOT_DELETED, USEC_PER_MINUTE, -1, false, false },
                { "it is deleted", NULL, 3, 3, USEC_PER_MINUTE, 63, true, false },
                { "later only", NULL, 4, 3, USEC_PER_HOUR, 63, false, false },
                { "earlier", NULL, 5, 3, 30 * USEC_PER_SEC, 33, true, false },
                { "it has left", NULL, 6, NOT_DELETED, 0, 33, false, false },
                { "T is now", NULL, 33, NOT_DELETED, 0, 33, false, false },
        };
        static const Look for_ever[] = {
                { "deleted, and has all the time", NULL, 3, 3, NEVER, -1, false, false },
        };

        play(looks, ELEMENTSOF(looks));
        play(for_ever, ELEMENTSOF(for_ever));
}

/* Equal times name the claim's grace period first, then the agent's notice, then the queue's. The
 * annotation comes last. */
TEST_CASE(test_source) {
        static const char claim[] = "its NodeClaim's terminationGracePeriod",
                          agent[] = "the interruption its agent saw",
                          queue[] = "the interruption that the queue told of",
                          forced[] = "the annotation " ANNOTATION_FORCE_DEADLINE " of its NodeClaim";
        static const struct {
                usec_t claim_usec, notice_usec, heard_usec, forced_usec;
                const char *expected;
        } rows[] = {
                { 5, NEVER, NEVER, NEVER, claim },
                { NEVER, 5, NEVER, NEVER, agent },
                { NEVER, NEVER, 5, NEVER, queue },
                { NEVER, NEVER, NEVER, 5, forced },
                { 5, 4, NEVER, NEVER, agent },
                { 5, 5, NEVER, NEVER, claim },
                { 5, NEVER, 4, NEVER, queue },
                { 5, NEVER, 5, NEVER, claim },
                { NEVER, 5, 4, NEVER, queue },
                { NEVER, 5, 5, NEVER, agent },
                { NEVER, 4, 5, NEVER, agent },
                { 5, NEVER, NEVER, 4, forced },
                { 5, NEVER, NEVER, 5, claim },
                { NEVER, 5, NEVER, 4, forced },
                { NEVER, 5, NEVER, 5, agent },
                { NEVER, NEVER, 5, 4, forced },
                { NEVER, NEVER, 5, 5, queue },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const NodeDeadline d = { .claim_usec = rows[i].claim_usec,
                                         .notice_usec = rows[i].notice_usec,
                                         .heard_usec = rows[i].heard_usec,
                                         .forced_usec = rows[i].forced_usec };

                print_message("  row %zu\n", i);
                assert_string_equal(node_deadline_source(&d), rows[i].expected);
        }
}

/* A person moves the end nearer, and never further away. */
TEST_CASE(test_forced) {
        static const Look looks[] = {
                { "a claim that is not deleted", NULL, 1, NOT_DELETED, USEC_PER_HOUR, -1, false, false, 60 },
                { "it is deleted", NULL, 2, 2, NEVER, 60, true, false, 60, true },
                { "later only", NULL, 3, 2, NEVER, 60, false, false, 90, true },
                { "earlier", NULL, 4, 2, NEVER, 50, true, false, 50, true },
                { "the claim's own time comes first", NULL, 5, 2, 40 * USEC_PER_SEC, 42, true, false, 50 },
                { "a notice comes first", TELLS("a", "terminate", "00:30"), 6, 2, 40 * USEC_PER_SEC, 30, true, true, 50 },
                { "a time that has passed is now", NULL, 7, 2, 40 * USEC_PER_SEC, 5, true, false, 5, true },
        };

        play(looks, ELEMENTSOF(looks));
}

TEST_CASE(test_notice) {
        static const Look looks[] = {
                { "one that ends the machine", TELLS("a", "terminate", "02:00"), 1, NOT_DELETED, 0, 120,
                  true, true },
                { "later only", TELLS("a", "terminate", "03:00"), 2, NOT_DELETED, 0, 120, false, true },
                { "earlier", TELLS("a", "terminate", "01:00"), 3, NOT_DELETED, 0, 60, true, true },
                { "not to be read", "soon", 4, NOT_DELETED, 0, 60, false, true },
                { "another one has its own time", TELLS("b", "stop", "04:00"), 5, NOT_DELETED, 0, 240, true,
                  true },
                { "a claim is deleted, and goes first", TELLS("b", "stop", "04:00"), 6, 6, USEC_PER_MINUTE,
                  66, true, false },
                { "withdrawn", OVER("b"), 7, 6, USEC_PER_MINUTE, 66, false, false },
        };
        static const Look taken_back[] = {
                { "it ends the machine", TELLS("a", "terminate", "01:00"), 1, NOT_DELETED, 0, 60, true,
                  true },
                { "it is withdrawn", OVER("a"), 2, NOT_DELETED, 0, -1, true, false },
                { "a reboot ends nothing", TELLS("b", "reboot", "01:00"), 3, NOT_DELETED, 0, -1, false,
                  false },
                { "it is back", TELLS("a", "terminate", "01:00"), 4, NOT_DELETED, 0, 60, true, true },
                { "no word of it any more", NULL, 5, NOT_DELETED, 0, -1, true, false },
        };
        static const Look too_late[] = {
                { "it ends the machine", TELLS("a", "terminate", "01:00"), 1, NOT_DELETED, 0, 60, true,
                  true },
                { "withdrawn after T", OVER("a"), 61, NOT_DELETED, 0, 60, false, false },
                { "a claim with time", OVER("a"), 62, 62, USEC_PER_HOUR, 60, false, false },
        };

        play(looks, ELEMENTSOF(looks));
        play(taken_back, ELEMENTSOF(taken_back));
        play(too_late, ELEMENTSOF(too_late));
}

/* With or without a time, until it is taken back; what cannot be read changes nothing. */
TEST_CASE(test_has_notice) {
        static const struct {
                const char *what, *notice;
                bool expected;
        } looks[] = {
                { "none", NULL, false },
                { "a reboot", TELLS("a", "reboot", "01:00"), false },
                { "one that ends the machine", TELLS("b", "terminate", "01:00"), true },
                { "not to be read", "soon", true },
                { "another, without a time or an id", "{~action~:~stop~}", true },
                { "taken back", OVER("b"), false },
                { "a person has overruled it", "{~id~:~b~,~action~:~terminate~,~phase~:~Released~}", false },
        };
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        NodeDeadline d = NODE_DEADLINE_NONE;

        assert_return_code(intern_pool_new(&pool), 0);
        for (size_t i = 0; i < ELEMENTSOF(looks); i++) {
                KubeNode *node = node_that_says(pool, looks[i].notice);

                print_message("  %s\n", looks[i].what);
                (void) node_deadline_update(&d, node, NULL, EIGHT);
                assert_int_equal(node_deadline_has_notice(&d), looks[i].expected);
                kube_object_unref(&node->object);
        }
        node_deadline_done(&d);
}

/* Notices from the queue count once the claim is being deleted: the earliest of all. AWS alone takes one back, and nobody once T has passed. */
TEST_CASE(test_heard) {
#define ONE(id, at) "{\\\"id\\\":\\\"" id "\\\",\\\"action\\\":\\\"terminate\\\",\\\"deadline\\\":\\\"" at "\\\"}"
        static const char told[] = "{\"metadata\":{\"name\":\"c\",\"uid\":\"u\",\"annotations\":{\"" ANNOTATION_ANNOUNCED
                                   "\":\"{\\\"notices\\\":[" ONE("e", "2027-01-15T08:02:00Z") "," ONE("f", "2027-01-15T08:03:00Z") "]}\"}}}";
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        NodeDeadline d = NODE_DEADLINE_NONE;
        KubeNode *node, *says_over;
        KubeNodeClaim *claim;
        KubeObject *o;

        assert_return_code(intern_pool_new(&pool), 0);
        assert_return_code(json_parse(told, strlen(told), 1u << 16, &doc, NULL), 0);
        assert_return_code(kube_object_decode(&kube_node_claim_kind, json_root(doc), pool, &o), 0);
        claim = (KubeNodeClaim *) o;
        node = node_that_says(pool, NULL);
        says_over = node_that_says(pool, OVER("a"));

        assert_false(node_deadline_update(&d, node, claim, EIGHT));
        assert_false(node_deadline_has_notice(&d));
        claim->object.meta.deletion_usec = EIGHT;
        assert_true(node_deadline_update(&d, node, claim, EIGHT));
        assert_true(node_deadline_has_notice(&d) && d.at_usec == EIGHT + 120 * USEC_PER_SEC);
        assert_string_equal(node_deadline_source(&d), "the interruption that the queue told of");
        assert_false(node_deadline_update(&d, says_over, claim, EIGHT));
        assert_true(node_deadline_has_notice(&d));
        print_message("one that the brake holds gives no time, until a person lets it go\n");
        claim->announced.items[0].state = ANNOUNCED_HELD;
        claim->announced.items[0].notice->received_usec = EIGHT;
        assert_true(node_deadline_update(&d, node, claim, EIGHT));
        assert_true(d.at_usec == EIGHT + 180 * USEC_PER_SEC);
        claim->let_go_usec = EIGHT - USEC_PER_SEC;
        assert_false(node_deadline_update(&d, node, claim, EIGHT));
        claim->let_go_usec = EIGHT;
        assert_true(node_deadline_update(&d, node, claim, EIGHT));
        assert_true(d.at_usec == EIGHT + 120 * USEC_PER_SEC);
        claim->announced.items[0].state = ANNOUNCED_CALLED_OFF;
        assert_true(node_deadline_update(&d, node, claim, EIGHT));
        assert_true(node_deadline_has_notice(&d) && d.at_usec == EIGHT + 180 * USEC_PER_SEC);
        assert_false(node_deadline_update(&d, node, claim, d.at_usec));
        claim->announced.items[1].state = ANNOUNCED_CALLED_OFF;
        assert_false(node_deadline_update(&d, node, claim, d.at_usec));
        assert_true(d.at_usec == EIGHT + 180 * USEC_PER_SEC);

        kube_object_unref(&node->object);
        kube_object_unref(&says_over->object);
        kube_object_unref(o);
        node_deadline_done(&d);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_claim),
                cmocka_unit_test(test_source),
                cmocka_unit_test(test_forced),
                cmocka_unit_test(test_notice),
                cmocka_unit_test(test_has_notice),
                cmocka_unit_test(test_heard),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
