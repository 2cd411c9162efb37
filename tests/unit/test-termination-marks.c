/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "marks.h"
#include "status-patch.h"
#include "string-util.h"
#include "termination-marks.h"

#define DEADLINE (UINT64_C(1800000000) * USEC_PER_SEC) /* 2027-01-15T08:00:00Z */

static char *with_quotes(const char *s) {
        char *text = strdup(s);

        assert_non_null(text);
        for (char *p = text; *p; p++)
                *p = *p == '\'' ? '"' : *p;
        return text;
}

/* A Node from what stands behind name and resourceVersion. */
static KubeNode *node_of(InternPool *pool, const char *meta, const char *rest) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_free_ char *raw =
                strf("{'metadata':{'name':'n','uid':'u','resourceVersion':'7'%s}%s}", meta, rest);
        _cleanup_free_ char *text = with_quotes(raw);
        KubeObject *o;

        assert_return_code(json_parse(text, strlen(text), 1u << 16, &doc, NULL), 0);
        assert_return_code(kube_object_decode(&kube_node_kind, json_root(doc), pool, &o), 0);
        assert_null(o->invalid);
        return (KubeNode *) o;
}

static void assert_patch(const char *body, const char *expected) {
        _cleanup_free_ char *text = with_quotes(expected);

        assert_string_equal(strempty(body), text);
}

#define OURS "'vesper.sh/cordoned-by-coordinator':'{\\'why\\':\\'gone\\'}'"

#define KEPT_OFF ",{'key':'node.kubernetes.io/unschedulable','effect':'NoSchedule'}"

TEST_CASE(test_cordon) {
        static const struct {
                const char *what, *meta, *rest;
                usec_t deadline_usec;
                const char *expected; /* NULL: nothing to do */
        } rows[] = {
                { "a bare node: all of it", "", "", USEC_INFINITY,
                  "{'metadata':{'resourceVersion':'7','annotations':{" OURS
                  "},'labels':{'" LABEL_EXCLUDE_FROM_LB "':'vesper'}},"
                  "'spec':{'unschedulable':true,'taints':[{'key':'vesper.sh/"
                  "disrupted','effect':'NoSchedule'}" KEPT_OFF "]}}" },
                { "with a deadline", "", "", DEADLINE,
                  "{'metadata':{'resourceVersion':'7','annotations':{" OURS
                  ",'vesper.sh/deadline':'2027-01-15T08:00:00Z'},"
                  "'labels':{'" LABEL_EXCLUDE_FROM_LB "':'vesper'}},"
                  "'spec':{'unschedulable':true,'taints':[{'key':'vesper.sh/"
                  "disrupted','effect':'NoSchedule'}" KEPT_OFF "]}}" },
                { "other taints stay as they are, times and values included", "",
                  ",'spec':{'taints':[{'key':'a','value':'b','effect':'NoExecute','timeAdded':'2027-01-"
                  "15T08:00:00Z'},"
                  "{'key':'c','effect':'PreferNoSchedule'}]}",
                  USEC_INFINITY,
                  "{'metadata':{'resourceVersion':'7','annotations':{" OURS
                  "},'labels':{'" LABEL_EXCLUDE_FROM_LB "':'vesper'}},"
                  "'spec':{'unschedulable':true,'taints':[{'key':'a','value':'b','effect':'NoExecute','"
                  "timeAdded':"
                  "'2027-01-15T08:00:00Z'},{'key':'c','effect':'PreferNoSchedule'},{'key':'vesper.sh/"
                  "disrupted','effect':"
                  "'NoSchedule'}" KEPT_OFF "]}}" },
                { "the taint of a cordon is there", "",
                  ",'spec':{'unschedulable':true,'taints':[{'key':'node.kubernetes.io/"
                  "unschedulable','effect':'NoSchedule'}]}",
                  USEC_INFINITY,
                  "{'metadata':{'resourceVersion':'7','annotations':{},'labels':{'" LABEL_EXCLUDE_FROM_LB
                  "':'vesper'}},"
                  "'spec':{'unschedulable':true,'taints':[{'key':'node.kubernetes.io/"
                  "unschedulable','effect':'NoSchedule'},{'key':'vesper.sh/"
                  "disrupted','effect':'NoSchedule'}]}}" },
                { "a person's cordon is not claimed", "", ",'spec':{'unschedulable':true}", USEC_INFINITY,
                  "{'metadata':{'resourceVersion':'7','annotations':{},'labels':{'" LABEL_EXCLUDE_FROM_LB
                  "':'vesper'}},"
                  "'spec':{'unschedulable':true,'taints':[{'key':'vesper.sh/"
                  "disrupted','effect':'NoSchedule'}" KEPT_OFF "]}}" },
                { "the agent's cordon is joined", ",'annotations':{'vesper.sh/cordoned-by-agent':'{}'}",
                  ",'spec':{'unschedulable':true}", USEC_INFINITY,
                  "{'metadata':{'resourceVersion':'7','annotations':{" OURS
                  "},'labels':{'" LABEL_EXCLUDE_FROM_LB "':'vesper'}},"
                  "'spec':{'unschedulable':true,'taints':[{'key':'vesper.sh/"
                  "disrupted','effect':'NoSchedule'}" KEPT_OFF "]}}" },
                { "vesperctl's cordon is joined", ",'annotations':{'vesper.sh/cordoned-by-vesperctl':'{}'}",
                  ",'spec':{'unschedulable':true}", USEC_INFINITY,
                  "{'metadata':{'resourceVersion':'7','annotations':{" OURS
                  "},'labels':{'" LABEL_EXCLUDE_FROM_LB "':'vesper'}},"
                  "'spec':{'unschedulable':true,'taints':[{'key':'vesper.sh/"
                  "disrupted','effect':'NoSchedule'}" KEPT_OFF "]}}" },
                { "a person's label stays", ",'labels':{'" LABEL_EXCLUDE_FROM_LB "':'mine'}", "",
                  USEC_INFINITY,
                  "{'metadata':{'resourceVersion':'7','annotations':{" OURS "}},"
                  "'spec':{'unschedulable':true,'taints':[{'key':'vesper.sh/"
                  "disrupted','effect':'NoSchedule'}" KEPT_OFF "]}}" },
                { "all is there",
                  ",'annotations':{'vesper.sh/"
                  "cordoned-by-coordinator':'x'},'labels':{'" LABEL_EXCLUDE_FROM_LB "':'vesper'}",
                  ",'spec':{'unschedulable':true,'taints':[{'key':'vesper.sh/"
                  "disrupted','effect':'NoSchedule'}]}",
                  USEC_INFINITY, NULL },
                { "all but the new deadline",
                  ",'annotations':{'vesper.sh/cordoned-by-coordinator':'x','vesper.sh/deadline':"
                  "'2028-01-15T08:00:00Z'},'labels':{'" LABEL_EXCLUDE_FROM_LB "':'vesper'}",
                  ",'spec':{'unschedulable':true,'taints':[{'key':'vesper.sh/"
                  "disrupted','effect':'NoSchedule'}]}",
                  DEADLINE,
                  "{'metadata':{'resourceVersion':'7','annotations':{'vesper.sh/"
                  "deadline':'2027-01-15T08:00:00Z'}},"
                  "'spec':{'unschedulable':true}}" },
                { "a deadline that is over",
                  ",'annotations':{'vesper.sh/cordoned-by-coordinator':'x','vesper.sh/deadline':"
                  "'2028-01-15T08:00:00Z'},'labels':{'" LABEL_EXCLUDE_FROM_LB "':'vesper'}",
                  ",'spec':{'unschedulable':true,'taints':[{'key':'vesper.sh/"
                  "disrupted','effect':'NoSchedule'}]}",
                  USEC_INFINITY,
                  "{'metadata':{'resourceVersion':'7','annotations':{'vesper.sh/deadline':null}},"
                  "'spec':{'unschedulable':true}}" },
                { "somebody un-cordoned it meanwhile",
                  ",'annotations':{'vesper.sh/"
                  "cordoned-by-coordinator':'x'},'labels':{'" LABEL_EXCLUDE_FROM_LB "':'vesper'}",
                  ",'spec':{'taints':[{'key':'vesper.sh/disrupted','effect':'NoSchedule'}]}", USEC_INFINITY,
                  "{'metadata':{'resourceVersion':'7','annotations':{}},'spec':{'unschedulable':true}}" },
        };
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;

        assert_return_code(intern_pool_new(&pool), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                KubeNode *n = node_of(pool, rows[i].meta, rows[i].rest);
                _cleanup_free_ char *body = NULL, *expected = NULL;

                print_message("  %s\n", rows[i].what);
                assert_int_equal(termination_cordon_patch(n, "gone", rows[i].deadline_usec, &body),
                                 rows[i].expected != NULL);
                if (rows[i].expected) {
                        /* The mark's value is JSON in a string: its quotes are escaped. */
                        expected = with_quotes(rows[i].expected);
                        assert_string_equal(body, expected);
                }
                kube_object_unref(&n->object);
        }
}

/* The API server lets no such taint in; should one come all the same, nothing falls over it. */
TEST_CASE(test_taint_without_key) {
        static const char text[] = "{\"metadata\":{\"name\":\"n\",\"resourceVersion\":\"7\"},"
                                   "\"spec\":{\"taints\":[{\"effect\":\"NoSchedule\"}]}}";
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_free_ char *body = NULL;

        assert_return_code(intern_pool_new(&pool), 0);
        assert_return_code(json_parse(text, strlen(text), sizeof(text), &doc, NULL), 0);
        assert_return_code(kube_object_decode(&kube_node_kind, json_root(doc), pool, &o), 0);
        assert_non_null(o->invalid);
        assert_int_equal(termination_cordon_patch((const KubeNode *) o, "gone", USEC_INFINITY, &body), 1);
        assert_non_null(
                strstr(body, "\"taints\":[{\"effect\":\"NoSchedule\"},{\"key\":\"vesper.sh/disrupted\""));
        o = kube_object_unref(o);
}

/* A patch replaces the whole list of taints: no patch is sent that would lose a taint of somebody else. */
TEST_CASE(test_unread_taints) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_strbuf_ StrBuf text = { 0 };
        char *body = NULL;

        strbuf_add(&text, "{\"metadata\":{\"name\":\"n\",\"resourceVersion\":\"7\",\"annotations\":{\"vesper.sh/out-of-service\":"
                          "\"2027-01-15T08:00:00Z\",\"vesper.sh/cordoned-by-coordinator\":\"x\"}},\"spec\":{\"unschedulable\":true,\"taints\":[");
        for (unsigned i = 0; i < 257; i++)
                strbuf_addf(&text, "%s{\"key\":\"vesper.sh/disrupted\",\"effect\":\"NoSchedule\"}", i > 0 ? "," : "");
        strbuf_add(&text, "]}}");
        assert_return_code(intern_pool_new(&pool), 0);
        assert_return_code(json_parse(strbuf_str(&text), text.size, text.size, &doc, NULL), 0);
        assert_return_code(kube_object_decode(&kube_node_kind, json_root(doc), pool, &o), 0);
        assert_true(((const KubeNode *) o)->has_unread_taints);

        assert_int_equal(termination_cordon_patch((const KubeNode *) o, "gone", DEADLINE, &body), 1);
        assert_null(strstr(body, "taints"));
        body = mfree(body);
        assert_int_equal(termination_out_of_service_patch((const KubeNode *) o, DEADLINE, &body), 0);
        assert_int_equal(termination_in_service_patch((const KubeNode *) o, &body), 0);
        assert_int_equal(termination_release_patch((const KubeNode *) o, NULL, &body), 1);
        assert_null(strstr(body, "taints"));
        free(body);
}

TEST_CASE(test_release) {
        static const struct {
                const char *what, *meta, *rest, *expected;
        } rows[] = {
                { "nothing of ours", ",'finalizers':['a/b'],'labels':{'" LABEL_EXCLUDE_FROM_LB "':'mine'}",
                  ",'spec':{'unschedulable':true}", NULL },
                { "the finalizer alone, others stay", ",'finalizers':['a/b','vesper.sh/termination']", "",
                  "{'metadata':{'resourceVersion':'7','finalizers':['a/b'],'annotations':{}}}" },
                { "all of it",
                  ",'finalizers':['vesper.sh/termination'],'annotations':{'vesper.sh/"
                  "cordoned-by-coordinator':'x',"
                  "'vesper.sh/deadline':'y'},'labels':{'" LABEL_EXCLUDE_FROM_LB "':'vesper'}",
                  ",'spec':{'unschedulable':true,'taints':[{'key':'a','effect':'NoExecute'},{'key':'vesper."
                  "sh/disrupted','effect':"
                  "'NoSchedule'}]}",
                  "{'metadata':{'resourceVersion':'7','finalizers':[],'annotations':{'vesper.sh/"
                  "cordoned-by-coordinator':null,"
                  "'vesper.sh/deadline':null},'labels':{'" LABEL_EXCLUDE_FROM_LB
                  "':null}},'spec':{'unschedulable':null,'taints':"
                  "[{'key':'a','effect':'NoExecute'}]}}" },
                { "out of service, and by us: the taint goes, another effect's stays",
                  ",'annotations':{'vesper.sh/out-of-service':'x'}",
                  ",'spec':{'taints':[{'key':'node.kubernetes.io/out-of-service','value':'nodeshutdown','effect':'NoExecute'},"
                  "{'key':'node.kubernetes.io/out-of-service','effect':'NoSchedule'}]}",
                  "{'metadata':{'resourceVersion':'7','annotations':{'vesper.sh/out-of-service':null}},"
                  "'spec':{'taints':[{'key':'node.kubernetes.io/out-of-service','effect':'NoSchedule'}]}}" },
                { "out of service by a person", "",
                  ",'spec':{'taints':[{'key':'node.kubernetes.io/out-of-service','value':'nodeshutdown','effect':'NoExecute'}]}", NULL },
                { "what the queue told",
                  ",'annotations':{'vesper.sh/heard':'x','vesper.sh/cordoned-by-coordinator':'y'},'labels':{'" LABEL_EXCLUDE_FROM_LB "':'vesper'}",
                  ",'spec':{'unschedulable':true}",
                  "{'metadata':{'resourceVersion':'7','annotations':{'vesper.sh/cordoned-by-coordinator':null,'vesper.sh/heard':null},"
                  "'labels':{'" LABEL_EXCLUDE_FROM_LB "':null}},'spec':{'unschedulable':null}}" },
                { "what the queue told, and nothing was done yet", ",'annotations':{'vesper.sh/announced':'x'}", "",
                  "{'metadata':{'resourceVersion':'7','annotations':{'vesper.sh/announced':null}}}" },
                { "what the queue told, and a person let go", ",'annotations':{'vesper.sh/announced':'x','vesper.sh/let-go':'2027-01-15T08:00:00Z'}", "",
                  "{'metadata':{'resourceVersion':'7','annotations':{'vesper.sh/let-go':null,'vesper.sh/announced':null}}}" },
                { "the label of its pool",
                  ",'finalizers':['vesper.sh/termination'],'labels':{'vesper.sh/nodepool':'web','a':'b'}", "",
                  "{'metadata':{'resourceVersion':'7','finalizers':[],'annotations':{},'labels':{'vesper.sh/nodepool':null}}}" },
                { "the agent's cordon and label stay",
                  ",'annotations':{'vesper.sh/cordoned-by-coordinator':'x',"
                  "'vesper.sh/cordoned-by-agent':'y'},'labels':{'" LABEL_EXCLUDE_FROM_LB "':'vesper'}",
                  ",'spec':{'unschedulable':true}",
                  "{'metadata':{'resourceVersion':'7','annotations':{'vesper.sh/"
                  "cordoned-by-coordinator':null}}}" },
                { "vesperctl's cordon stays, the label goes",
                  ",'annotations':{'vesper.sh/cordoned-by-coordinator':'x',"
                  "'vesper.sh/cordoned-by-vesperctl':'y'},'labels':{'" LABEL_EXCLUDE_FROM_LB "':'vesper'}",
                  ",'spec':{'unschedulable':true}",
                  "{'metadata':{'resourceVersion':'7','annotations':{'vesper.sh/"
                  "cordoned-by-coordinator':null},'labels':{'" LABEL_EXCLUDE_FROM_LB "':null}}}" },
                { "a node being deleted is not un-cordoned",
                  ",'deletionTimestamp':'2027-01-15T08:00:00Z','annotations':"
                  "{'vesper.sh/cordoned-by-coordinator':'x'}",
                  ",'spec':{'unschedulable':true}",
                  "{'metadata':{'resourceVersion':'7','annotations':{'vesper.sh/"
                  "cordoned-by-coordinator':null}}}" },
                { "a person un-cordoned: the mark goes",
                  ",'annotations':{'vesper.sh/cordoned-by-coordinator':'x'}", "",
                  "{'metadata':{'resourceVersion':'7','annotations':{'vesper.sh/"
                  "cordoned-by-coordinator':null}}}" },
        };
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;

        assert_return_code(intern_pool_new(&pool), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                KubeNode *n = node_of(pool, rows[i].meta, rows[i].rest);
                _cleanup_free_ char *body = NULL;

                print_message("  %s\n", rows[i].what);
                assert_int_equal(termination_release_patch(n, NULL, &body), rows[i].expected != NULL);
                if (rows[i].expected)
                        assert_patch(body, rows[i].expected);
                kube_object_unref(&n->object);
        }
}

TEST_CASE(test_heard) {
#define HEARD_MARK "'vesper.sh/cordoned-by-coordinator':'{\\'why\\':\\'it is drained for what the interruption queue announced\\'}'"
#define MARKED ",'annotations':{'vesper.sh/cordoned-by-coordinator':'y'},'labels':{'" LABEL_EXCLUDE_FROM_LB "':'vesper'}"
#define HEAD "{'metadata':{'resourceVersion':'7','uid':'u','annotations':{'vesper.sh/heard':"
#define SHUT ",'spec':{'unschedulable':true}"
        static const struct {
                const char *what, *meta, *rest, *heard;
                HeardCordon cordon;
                const char *expected;
        } rows[] = {
                { "a bare node is cordoned", "", "", "h", HEARD_CORDON_PUT,
                  HEAD "'h'," HEARD_MARK "},'labels':{'" LABEL_EXCLUDE_FROM_LB "':'vesper'}},'spec':{'unschedulable':true}}" },
                { "a cordon of somebody's is not claimed", "", SHUT, "h", HEARD_CORDON_PUT,
                  HEAD "'h'},'labels':{'" LABEL_EXCLUDE_FROM_LB "':'vesper'}},'spec':{'unschedulable':true}}" },
                { "the agent's is joined", ",'annotations':{'vesper.sh/cordoned-by-agent':'{}'},'labels':{'" LABEL_EXCLUDE_FROM_LB "':'vesper'}",
                  SHUT, "h", HEARD_CORDON_PUT, HEAD "'h'," HEARD_MARK "},'labels':{}},'spec':{'unschedulable':true}}" },
                { "how far it is", MARKED, SHUT, "h", HEARD_CORDON_KEEP, HEAD "'h'},'labels':{}}}" },
                { "a person has opened it", MARKED, "", "h", HEARD_CORDON_LEAVE,
                  HEAD "'h','vesper.sh/cordoned-by-coordinator':null},'labels':{'" LABEL_EXCLUDE_FROM_LB "':null}}}" },
                { "it is over", MARKED, SHUT, NULL, HEARD_CORDON_OPEN,
                  HEAD "null,'vesper.sh/cordoned-by-coordinator':null},'labels':{'" LABEL_EXCLUDE_FROM_LB
                       "':null}},'spec':{'unschedulable':null}}" },
                { "it is over, and the agent's cordon stays",
                  ",'annotations':{'vesper.sh/cordoned-by-agent':'{}','vesper.sh/cordoned-by-coordinator':'y'},'labels':{'" LABEL_EXCLUDE_FROM_LB
                  "':'vesper'}",
                  SHUT, NULL, HEARD_CORDON_OPEN, HEAD "null,'vesper.sh/cordoned-by-coordinator':null},'labels':{}}}" },
                { "it is over, and the cordon was never ours", "", SHUT, NULL, HEARD_CORDON_OPEN, HEAD "null},'labels':{}}}" },
        };
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;

        assert_return_code(intern_pool_new(&pool), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                KubeNode *n = node_of(pool, rows[i].meta, rows[i].rest);
                _cleanup_free_ char *body = NULL;

                print_message("  %s\n", rows[i].what);
                assert_int_equal(termination_heard_patch(n, rows[i].heard, rows[i].cordon, &body), 1);
                assert_patch(body, rows[i].expected);
                kube_object_unref(&n->object);
        }
}

/* Put on a Node and taken off again, its other taints as they were. */
TEST_CASE(test_out_of_service) {
#define OUT_TAINT "{'key':'node.kubernetes.io/out-of-service','value':'nodeshutdown','effect':'NoExecute'}"
#define OUT_MARK ",'annotations':{'vesper.sh/out-of-service':'2027-01-15T08:00:00Z'}"
        static const struct {
                const char *what, *meta, *rest, *put, *take; /* NULL: nothing to do */
        } rows[] = {
                { "a bare node", "", "",
                  "{'metadata':{'resourceVersion':'7','annotations':{'vesper.sh/out-of-service':'2027-01-15T08:00:00Z'}},'spec':{'taints':["
                  "{'key':'node.kubernetes.io/out-of-service','value':'nodeshutdown','effect':'NoExecute','timeAdded':'2027-01-15T08:00:00Z'}]}}",
                  NULL },
                { "other taints stay", "", ",'spec':{'taints':[{'key':'vesper.sh/disrupted','effect':'NoSchedule'}]}",
                  "{'metadata':{'resourceVersion':'7','annotations':{'vesper.sh/out-of-service':'2027-01-15T08:00:00Z'}},'spec':{'taints':["
                  "{'key':'vesper.sh/disrupted','effect':'NoSchedule'},"
                  "{'key':'node.kubernetes.io/out-of-service','value':'nodeshutdown','effect':'NoExecute','timeAdded':'2027-01-15T08:00:00Z'}]}}",
                  NULL },
                { "a person's taint", "", ",'spec':{'taints':[" OUT_TAINT "]}", NULL, NULL },
                { "ours", OUT_MARK, ",'spec':{'taints':[{'key':'a','effect':'NoExecute'}," OUT_TAINT "]}", NULL,
                  "{'metadata':{'resourceVersion':'7','annotations':{'vesper.sh/out-of-service':null}},"
                  "'spec':{'taints':[{'key':'a','effect':'NoExecute'}]}}" },
                { "ours, which a person took off", OUT_MARK, "", NULL,
                  "{'metadata':{'resourceVersion':'7','annotations':{'vesper.sh/out-of-service':null}},'spec':{'taints':[]}}" },
        };
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;

        assert_return_code(intern_pool_new(&pool), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                KubeNode *n = node_of(pool, rows[i].meta, rows[i].rest);
                _cleanup_free_ char *put = NULL, *take = NULL;

                print_message("  %s\n", rows[i].what);
                assert_int_equal(termination_out_of_service_patch(n, UINT64_C(1800000000) * USEC_PER_SEC, &put), rows[i].put != NULL);
                assert_int_equal(termination_in_service_patch(n, &take), rows[i].take != NULL);
                if (rows[i].put)
                        assert_patch(put, rows[i].put);
                if (rows[i].take)
                        assert_patch(take, rows[i].take);
                kube_object_unref(&n->object);
        }
}

TEST_CASE(test_finalizers) {
        static const struct {
                const char *what, *meta, *off, *on;
        } rows[] = {
                { "none", "", NULL,
                  "{'metadata':{'resourceVersion':'7','finalizers':['vesper.sh/termination']}}" },
                { "others", ",'finalizers':['a/b','c/d']", NULL,
                  "{'metadata':{'resourceVersion':'7','finalizers':['a/b','c/d','vesper.sh/"
                  "termination']}}" },
                { "ours among others", ",'finalizers':['a/b','vesper.sh/termination','c/d']",
                  "{'metadata':{'resourceVersion':'7','finalizers':['a/b','c/d']}}", NULL },
        };
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;

        assert_return_code(intern_pool_new(&pool), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                KubeNode *n = node_of(pool, rows[i].meta, "");
                _cleanup_free_ char *off = NULL, *on = NULL;

                print_message("  %s\n", rows[i].what);
                assert_int_equal(termination_finalizer_patch(&n->object, &off), rows[i].off != NULL);
                assert_int_equal(termination_add_finalizer_patch(&n->object, &on), rows[i].on != NULL);
                if (rows[i].off)
                        assert_patch(off, rows[i].off);
                if (rows[i].on)
                        assert_patch(on, rows[i].on);
                kube_object_unref(&n->object);
        }
}

TEST_CASE(test_adopt) {
        static const struct {
                const char *what, *meta, *expected;
        } rows[] = {
                { "a new Node", ",'finalizers':['a/b']",
                  "{'metadata':{'resourceVersion':'7','finalizers':['a/b','vesper.sh/termination'],"
                  "'labels':{'vesper.sh/nodepool':'web'}}}" },
                { "adopted before there was a label", ",'finalizers':['vesper.sh/termination']",
                  "{'metadata':{'resourceVersion':'7','labels':{'vesper.sh/nodepool':'web'}}}" },
                { "a person's label stays", ",'labels':{'vesper.sh/nodepool':'mine'}",
                  "{'metadata':{'resourceVersion':'7','finalizers':['vesper.sh/termination']}}" },
                { "all of it is there", ",'finalizers':['vesper.sh/termination'],'labels':{'vesper.sh/nodepool':'web'}",
                  NULL },
        };
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;

        assert_return_code(intern_pool_new(&pool), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                KubeNode *n = node_of(pool, rows[i].meta, "");
                _cleanup_free_ char *body = NULL;

                print_message("  %s\n", rows[i].what);
                assert_int_equal(termination_adopt_patch(n, "web", &body), rows[i].expected != NULL);
                if (rows[i].expected)
                        assert_patch(body, rows[i].expected);
                kube_object_unref(&n->object);
        }
}

TEST_CASE(test_condition) {
        static const Condition marks[] = {
                { "T", "R", "it \"hangs\"", CONDITION_TRUE, DEADLINE },
                { "U", "S", "", CONDITION_FALSE, DEADLINE },
        };
        static const KubeNode node = { .object = { .kind = &kube_node_kind, .meta.uid = (char *) "u-1" } };
        JsonWriter *w = status_patch_open(&node.object);
        _cleanup_free_ char *body = NULL;

        status_patch_add_conditions(w, &node.object, marks, ELEMENTSOF(marks), DEADLINE + 7 * USEC_PER_SEC, NULL);
        body = status_patch_close(w);
        assert_string_equal(
                body,
                "{\"metadata\":{\"uid\":\"u-1\"},\"status\":{\"conditions\":[{\"type\":\"T\",\"status\":"
                "\"True\",\"reason\":\"R\","
                "\"message\":"
                "\"it \\\"hangs\\\"\",\"lastHeartbeatTime\":\"2027-01-15T08:00:07Z\",\"lastTransitionTime\":"
                "\"2027-01-15T08:00:00Z\"},{\"type\":\"U\",\"status\":\"False\",\"reason\":\"S\","
                "\"message\":\"\","
                "\"lastHeartbeatTime\":\"2027-01-15T08:00:07Z\",\"lastTransitionTime\":"
                "\"2027-01-15T08:00:00Z\"}]}}");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_cordon),
                cmocka_unit_test(test_unread_taints),
                cmocka_unit_test(test_release),
                cmocka_unit_test(test_heard),
                cmocka_unit_test(test_out_of_service),
                cmocka_unit_test(test_finalizers),
                cmocka_unit_test(test_adopt),
                cmocka_unit_test(test_condition),
                cmocka_unit_test(test_taint_without_key),
        };
        return cmocka_run_group_tests_name("termination-marks", tests, NULL, NULL);
}
