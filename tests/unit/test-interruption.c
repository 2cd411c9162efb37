/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "interruption.h"
#include "kube-kinds.h"
#include "marks.h"
#include "string-util.h"

#define DEADLINE (UINT64_C(1800000000) * USEC_PER_SEC) /* 2027-01-15T08:00:00Z */

static char *with_quotes(const char *s) {
        char *text = strdup(s);

        assert_non_null(text);
        for (char *p = text; *p; p++)
                *p = *p == '\'' ? '"' : *p;
        return text;
}

/* A Node with that behind its name. */
static KubeNode *node_of(InternPool *pool, const char *meta) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_free_ char *raw = strf("{'metadata':{'name':'n','uid':'u'%s}}", meta), *text = with_quotes(raw);
        KubeObject *o;

        assert_return_code(json_parse(text, strlen(text), 1u << 16, &doc, NULL), 0);
        assert_return_code(kube_object_decode(&kube_node_kind, json_root(doc), pool, &o), 0);
        return (KubeNode *) o;
}

TEST_CASE(test_of_a_node) {
        static const struct {
                const char *what, *value; /* NULL: no annotation; ~ stands for \" */
                int expected; /* 0; -ENODATA: none of this boot; -EBADMSG: unreadable */
                bool ends, draining;
                usec_t deadline_usec;
        } rows[] = {
                { "no annotation", NULL, -ENODATA, false, false, USEC_INFINITY },
                { "not JSON", "soon", -EBADMSG, false, false, USEC_INFINITY },
                { "JSON, but no object", "[1]", -EBADMSG, false, false, USEC_INFINITY },
                { "a deadline that is none", "{~action~:~terminate~,~deadline~:~noon~}", -EBADMSG, false,
                  false, USEC_INFINITY },
                { "a drain under way",
                  "{~action~:~terminate~,~phase~:~Draining~,~deadline~:~2027-01-15T08:00:00Z~}", 0, true,
                  true, DEADLINE },
                { "just planned", "{~action~:~stop~,~phase~:~Planned~}", 0, true, true, USEC_INFINITY },
                { "hibernation", "{~action~:~hibernate~,~phase~:~Cordoned~}", 0, true, true, USEC_INFINITY },
                { "a reboot ends nothing", "{~action~:~reboot~,~phase~:~Draining~}", 0, false, true,
                  USEC_INFINITY },
                { "drained", "{~action~:~terminate~,~phase~:~Drained~}", 0, true, false, USEC_INFINITY },
                { "waiting for volumes", "{~phase~:~Volumes~}", 0, false, false, USEC_INFINITY },
                { "ending", "{~phase~:~Ending~}", 0, false, false, USEC_INFINITY },
                { "cancelled", "{~phase~:~Cancelled~}", 0, false, false, USEC_INFINITY },
                { "overruled by a person", "{~phase~:~Released~}", 0, false, false, USEC_INFINITY },
                { "empty", "{}", 0, false, false, USEC_INFINITY },
                { "of other types", "{~phase~:7,~action~:[]}", -EBADMSG, false, false, USEC_INFINITY },
                { "of a later agent", "{~kind~:~asteroid~,~action~:~stop~,~phase~:~Hiding~,~byHand~:~foot~,~orbit~:7}", 0,
                  true, true, USEC_INFINITY },
                { "of this boot", "{~action~:~stop~,~phase~:~Drained~,~bootID~:~0123-4567~}", 0, true, false,
                  USEC_INFINITY },
                { "of an earlier boot", "{~action~:~stop~,~phase~:~Drained~,~bootID~:~89ab-cdef~}", -ENODATA,
                  false, false, USEC_INFINITY },
        };
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;

        assert_return_code(intern_pool_new(&pool), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_strbuf_ StrBuf meta = {};
                const Interruption *found;
                KubeNode *n;

                print_message("  %s\n", rows[i].what);
                if (rows[i].value) {
                        strbuf_add(&meta, ",'annotations':{'" ANNOTATION_INTERRUPTION "':'");
                        for (const char *p = rows[i].value; *p; p++)
                                strbuf_add(&meta, *p == '~' ? "\\'" : (char[]){ *p, 0 });
                        strbuf_add(&meta, "'}");
                }
                n = node_of(pool, strbuf_str(&meta));
                assert_return_code(free_and_strdup(&n->boot_id, "01234567"), 0);
                found = kube_node_interruption(n);
                assert_int_equal(n->interruption_is_unreadable, rows[i].expected == -EBADMSG);
                assert_int_equal(found != NULL, rows[i].expected == 0);
                assert_ptr_equal(kube_node_standing_interruption(n), found && !interruption_is_over(found) ? found : NULL);
                if (found) {
                        assert_int_equal(notice_ends_machine(found->notice), rows[i].ends);
                        assert_int_equal(interruption_is_draining(found), rows[i].draining);
                        assert_true(notice_announced(found->notice) == rows[i].deadline_usec);
                }
                kube_object_unref(&n->object);
        }
}

/* What an agent writes comes back, and writing it again changes nothing. */
TEST_CASE(test_round_trip) {
        static const struct {
                const char *text;
                bool complete, over, overruled;
        } rows[] = {
                { "{'id':'i','kind':'spot','source':'ec2','action':'stop','deadline':'2027-01-15T08:00:00Z','deadlineUptimeUsec':5,'phase':'Draining','podsLeft':3,'bootID':'b'}", true, false, false },
                { "{'id':'i','kind':'manual','source':'by-hand','action':'drain','byHand':'force','phase':'Released',"
                  "'bootID':'b'}", true, true, true },
                { "{'id':'i','kind':'maintenance','source':'ec2','action':'reboot','phase':'Cancelled','podsLeft':0,'bootID':'b'}", true, true, false },
                { "{'id':'i','kind':'spot','source':'sqs','action':'terminate','phase':'Draining','podsLeft':2,'bootID':'b','blockedBy':["
                  "{'pod':'a/b','reason':'BlockedByPDB','detail':'web'},{'pod':'a/c','reason':'Forbidden'}]}", true, false, false },
                { "{'id':'','kind':'spot','source':'ec2','action':'stop','phase':'Drained','podsLeft':0,'bootID':'b'}", false, false, false },
                { "{'id':'i','kind':'spot','source':'ec2','action':'stop','phase':'','podsLeft':0,'bootID':'b'}", false, false, false },
                { "{'id':'i','kind':'spot','source':'ec2','action':'stop','phase':'Drained','podsLeft':0,'bootID':''}", false, false, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *text = with_quotes(rows[i].text), *again = NULL;
                _cleanup_(interruption_freep) Interruption *found = NULL;

                print_message("  %s\n", rows[i].text);
                assert_return_code(interruption_parse(text, &found), 0);
                assert_int_equal(interruption_is_complete(found), rows[i].complete);
                assert_int_equal(interruption_is_over(found), rows[i].over);
                assert_int_equal(interruption_is_overruled(found), rows[i].overruled);
                again = interruption_format_held(found->notice, found->phase, (size_t) found->pods_left, found->boot_id, found->blockers, found->n_blockers);
                assert_string_equal(again, text);
        }
}

/* A kubelet may write anything about the pods that hold its node. */
TEST_CASE(test_blockers) {
        static const struct {
                const char *list, *expected; /* "POD REASON DETAIL;" each */
        } rows[] = {
                { "7", "" },
                { "[7,null,[],{}]", "" },
                { "[{'pod':'a/b','reason':'R','detail':7}]", "a/b R ;" },
                { "[{'pod':'a','reason':'R'},{'pod':'a/b'},{'pod':'a/b','reason':''},{'pod':'a/b','reason':'R'}]", "a/b R ;" },
                { "[{'pod':'a/b\\u001b[2J','reason':'R'},{'pod':'a/b','reason':'a b'},{'pod':'a/b','reason':'R','detail':'x\\ny'}]", "a/b R ;" },
                { "[{'pod':'a/1','reason':'R'},{'pod':'a/2','reason':'R'},{'pod':'a/3','reason':'R'},{'pod':'a/4','reason':'R'}]", "a/1 R ;a/2 R ;a/3 R ;" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *json = strf("{'id':'i','kind':'spot','source':'sqs','action':'terminate','phase':'Draining','blockedBy':%s}", rows[i].list),
                                    *text = with_quotes(json);
                _cleanup_(interruption_freep) Interruption *found = NULL;
                _cleanup_strbuf_ StrBuf seen = {};

                assert_return_code(interruption_parse(text, &found), 0);
                for (size_t k = 0; k < found->n_blockers; k++)
                        strbuf_addf(&seen, "%s %s %s;", found->blockers[k].pod, found->blockers[k].reason, found->blockers[k].detail);
                assert_string_equal(strbuf_str(&seen), rows[i].expected);
        }
}

TEST_CASE(test_phases) {
        for (InterruptionPhase p = 0; p < INTERRUPTION_LATER; p++)
                assert_int_equal(interruption_phase_from_string(interruption_phase_to_string(p)), p);
        assert_int_equal(interruption_phase_from_string(NULL), INTERRUPTION_PHASE_NONE);
        assert_int_equal(interruption_phase_from_string("Hiding"), INTERRUPTION_LATER);
        assert_string_equal(interruption_phase_to_string(INTERRUPTION_LATER), "");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_of_a_node),
                cmocka_unit_test(test_round_trip),
                cmocka_unit_test(test_blockers),
                cmocka_unit_test(test_phases),
        };

        return cmocka_run_group_tests_name("interruption", tests, NULL, NULL);
}
