/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmocka-test.h"
#include "kube-kinds.h"
#include "string-util.h"
#include "strv.h"

/* JSON with ' for ", so that it can be read here. */
static char *json_text(const char *text) {
        char *copy = strdup(text);

        assert_non_null(copy);
        for (char *p = copy; *p; p++)
                if (*p == '\'')
                        *p = '"';
        return copy;
}

static int decode(const KubeKind *kind, InternPool *pool, const char *text, KubeObject **ret) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_free_ char *json = json_text(text);

        assert_return_code(json_parse(json, strlen(json), strlen(json), &doc, NULL), 0);
        return kube_object_decode(kind, json_root(doc), pool, ret);
}

static KubeObject *decode_ok(const KubeKind *kind, InternPool *pool, const char *text) {
        KubeObject *o = NULL;

        assert_return_code(decode(kind, pool, text, &o), 0);
        if (o->invalid)
                print_message("invalid: %s\n", o->invalid);
        assert_null(o->invalid);
        assert_ptr_equal(o->kind, kind);
        return o;
}

static int setup(void **state) {
        return intern_pool_new((InternPool **) state);
}

/* Every string of every object was given back. */
static int teardown(void **state) {
        assert_int_equal(intern_pool_size(*state), 0);
        intern_pool_free(*state);
        return 0;
}

/* -- metadata ------------------------------------------------------------------------------------------- */

TEST_CASE(test_meta) {
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
        _cleanup_free_ char *key = NULL;
        const ObjectMeta *m;

        o = decode_ok(
                &kube_pod_kind, *state,
                "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'web-1','namespace':'shop','uid':'u1',"
                "'resourceVersion':'77','generation':3,'creationTimestamp':'2026-11-21T05:03:00Z',"
                "'deletionTimestamp':'2026-11-21T05:04:00Z','deletionGracePeriodSeconds':45,"
                "'labels':{'tier':'front','app':'web','empty':''},"
                "'annotations':{'vesper.sh/do-not-evict':'true','big':'never kept'},"
                "'ownerReferences':[{'apiVersion':'apps/"
                "v1','kind':'ReplicaSet','name':'web','uid':'u0','controller':true},"
                "{'apiVersion':'v1','kind':'ConfigMap','name':'c','uid':'u9'}],"
                "'finalizers':['a/b','c/d'],'managedFields':[{'manager':'x'}]}}");
        m = &o->meta;
        assert_string_equal(m->name, "web-1");
        assert_string_equal(m->ns, "shop");
        assert_string_equal(m->uid, "u1");
        assert_string_equal(m->resource_version, "77");
        assert_int_equal(m->generation, 3);
        assert_int_equal(m->deletion_usec - m->creation_usec, USEC_PER_MINUTE);
        assert_int_equal(m->deletion_grace_sec, 45);
        assert_int_equal(m->labels.n_items, 3);
        assert_string_equal(m->labels.items[0].key, "app"); /* sorted */
        assert_string_equal(object_meta_label(m, "app"), "web");
        assert_string_equal(object_meta_label(m, "empty"), "");
        assert_null(object_meta_label(m, "ap"));
        assert_int_equal(m->annotations.n_items, 1);
        assert_string_equal(object_meta_annotation(m, "vesper.sh/do-not-evict"), "true");
        assert_int_equal(m->n_owners, 2);
        assert_string_equal(object_meta_controller(m)->kind, "ReplicaSet");
        assert_string_equal(object_meta_controller(m)->uid, "u0");
        assert_true(object_meta_has_finalizer(m, "c/d"));
        assert_false(object_meta_has_finalizer(m, "c"));
        key = kube_object_key(o);
        assert_string_equal(key, "shop/web-1");
}

TEST_CASE(test_bare_item) {
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL, *again = NULL;
        _cleanup_free_ char *key = NULL;

        o = decode_ok(&kube_node_kind, *state, "{'metadata':{'name':'n1'}}");
        again = kube_object_ref(o);
        assert_int_equal(o->n_ref, 2);
        key = kube_object_key(o);
        assert_string_equal(key, "n1");
        assert_null(o->meta.ns);
        assert_int_equal(o->meta.deletion_usec, 0);
        assert_int_equal(o->meta.deletion_grace_sec, -1);
        assert_null(object_meta_controller(&o->meta));
        assert_null(kube_object_unref(NULL));
}

TEST_CASE(test_refused) {
        static const struct {
                const char *what;
                const KubeKind *kind;
                const char *json;
        } rows[] = {
                { "another kind", &kube_node_kind, "{'kind':'Pod','metadata':{'name':'a'}}" },
                { "another group", &kube_pdb_kind,
                  "{'apiVersion':'policy.example/v1','metadata':{'name':'a','namespace':'n'}}" },
                { "another version", &kube_pdb_kind,
                  "{'apiVersion':'policy/v1beta1','metadata':{'name':'a','namespace':'n'}}" },
                { "a group in core", &kube_node_kind, "{'apiVersion':'x/v1','metadata':{'name':'a'}}" },
                { "a prefix of the group", &kube_pdb_kind,
                  "{'apiVersion':'policy','metadata':{'name':'a'}}" },
                { "a kind that is a number", &kube_node_kind, "{'kind':1,'metadata':{'name':'a'}}" },
                { "no metadata", &kube_node_kind, "{'kind':'Node'}" },
                { "no name", &kube_node_kind, "{'metadata':{}}" },
                { "an empty name", &kube_node_kind, "{'metadata':{'name':''}}" },
                { "a name that is a number", &kube_node_kind, "{'metadata':{'name':7}}" },
                { "a list", &kube_node_kind, "[]" },
                { "a Status", &kube_node_kind, "{'kind':'Status','metadata':{},'status':'Failure'}" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                KubeObject *o = NULL;

                print_message("%s\n", rows[i].what);
                assert_int_equal(decode(rows[i].kind, *state, rows[i].json, &o), -EINVAL);
                assert_null(o);
        }
}

/* -- values that cannot be understood ------------------------------------------------------------------- */

#define POD "'metadata':{'name':'p','namespace':'n'}"
#define CLUSTER "'metadata':{'name':'c'}"

TEST_CASE(test_invalid) {
        static const struct {
                const char *what;
                const KubeKind *kind;
                const char *json, *invalid;
        } rows[] = {
                { "a namespaced object without a namespace", &kube_pod_kind, "{'metadata':{'name':'p'}}",
                  "metadata.namespace is missing" },
                { "a deletion time that is none", &kube_node_kind,
                  "{'metadata':{'name':'c','deletionTimestamp':'soon'}}",
                  "metadata.deletionTimestamp: 'soon' is no time" },
                { "a generation with a fraction", &kube_node_kind,
                  "{'metadata':{'name':'c','generation':1.5}}", "metadata.generation is no integer" },
                { "labels as a list", &kube_node_kind, "{'metadata':{'name':'c','labels':[]}}",
                  "metadata.labels is no map" },
                { "a label that is a number", &kube_node_kind, "{'metadata':{'name':'c','labels':{'a':1}}}",
                  "a value in metadata.labels is no string" },
                { "an annotation of ours that is a map", &kube_node_kind,
                  "{'metadata':{'name':'c','annotations':{'vesper.sh/deadline':{}}}}",
                  "a value in metadata.annotations is no string" },
                { "owners as a map", &kube_node_kind, "{'metadata':{'name':'c','ownerReferences':{}}}",
                  "metadata.ownerReferences is no list" },
                { "an owner without a kind", &kube_node_kind,
                  "{'metadata':{'name':'c','ownerReferences':[{'apiVersion':'v1','name':'x'}]}}",
                  "an owner in metadata.ownerReferences has no apiVersion, kind or name" },
                { "a finalizer that is a number", &kube_node_kind,
                  "{'metadata':{'name':'c','finalizers':[1]}}",
                  "an element of metadata.finalizers has no name" },
                { "unschedulable as a text", &kube_node_kind,
                  "{" CLUSTER ",'spec':{'unschedulable':'true'}}",
                  "spec.unschedulable is neither true nor false" },
                { "a taint without an effect", &kube_node_kind,
                  "{" CLUSTER ",'spec':{'taints':[{'key':'a'}]}}",
                  "a taint in spec.taints has no key or effect" },
                { "conditions as a map", &kube_node_kind, "{" CLUSTER ",'status':{'conditions':{}}}",
                  "status.conditions is no list of conditions" },
                { "a condition without a type", &kube_node_kind,
                  "{" CLUSTER ",'status':{'conditions':[{'status':'True'}]}}",
                  "status.conditions is no list of conditions" },
                { "a volume without a name", &kube_node_kind,
                  "{" CLUSTER ",'status':{'volumesAttached':[{}]}}",
                  "an element of status.volumesAttached has no name" },
                { "a grace that is a text", &kube_pod_kind,
                  "{" POD ",'spec':{'terminationGracePeriodSeconds':'30'}}",
                  "spec.terminationGracePeriodSeconds is no integer" },
                { "a priority beyond every integer", &kube_pod_kind, "{" POD ",'spec':{'priority':1e300}}",
                  "spec.priority is no integer in range" },
                { "a phase that is a list", &kube_pod_kind, "{" POD ",'status':{'phase':[]}}",
                  "status.phase is no string" },
                { "a selector with an unknown operator", &kube_pdb_kind,
                  "{" POD ",'spec':{'selector':{'matchExpressions':[{'key':'a','operator':'Near'}]}}}",
                  "spec.selector is no label selector" },
                { "a PDB that allows a text", &kube_pdb_kind,
                  "{" POD ",'status':{'disruptionsAllowed':'1'}}",
                  "status.disruptionsAllowed is no integer" },
                { "attached, perhaps", &kube_volume_attachment_kind,
                  "{" CLUSTER ",'status':{'attached':'maybe'}}",
                  "status.attached is neither true nor false" },
                { "a forced end in words", &kube_node_claim_kind,
                  "{'metadata':{'name':'c','annotations':{'vesper.sh/force-deadline':'now'}}}",
                  "annotation vesper.sh/force-deadline is not a time like 2027-01-15T08:00:00Z: nothing is forced" },
                { "a grace without a unit that we have", &kube_node_claim_kind,
                  "{" CLUSTER ",'spec':{'terminationGracePeriod':'24x'}}",
                  "spec.terminationGracePeriod: '24x' is no duration" },
                { "a grace of a fraction", &kube_node_claim_kind,
                  "{" CLUSTER ",'spec':{'terminationGracePeriod':'1.5h'}}",
                  "spec.terminationGracePeriod: '1.5h' is no duration" },
                { "an empty grace", &kube_node_claim_kind,
                  "{" CLUSTER ",'spec':{'terminationGracePeriod':''}}",
                  "spec.terminationGracePeriod: '' is no duration" },
                { "a grace without a unit", &kube_node_claim_kind,
                  "{" CLUSTER ",'spec':{'terminationGracePeriod':'0'}}",
                  "spec.terminationGracePeriod: '0' is no duration" },
                { "a grace below zero", &kube_node_claim_kind,
                  "{" CLUSTER ",'spec':{'terminationGracePeriod':'-1h'}}",
                  "spec.terminationGracePeriod: '-1h' is no duration" },
                { "a grace past every clock", &kube_node_claim_kind,
                  "{" CLUSTER ",'spec':{'terminationGracePeriod':'99999999999999999999h'}}",
                  "spec.terminationGracePeriod: '99999999999999999999h' is no duration" },
                { "a grace of 300 years", &kube_node_claim_kind,
                  "{" CLUSTER ",'spec':{'terminationGracePeriod':'2628000h'}}",
                  "spec.terminationGracePeriod: '2628000h' is no duration" },
                { "a grace that never ends is no grace", &kube_node_claim_kind,
                  "{" CLUSTER ",'spec':{'terminationGracePeriod':'Never'}}",
                  "spec.terminationGracePeriod: 'Never' is no duration" },
                { "a deadline in words", &kube_node_claim_kind,
                  "{" CLUSTER ",'status':{'deadline':'tomorrow'}}",
                  "status.deadline: 'tomorrow' is no time" },
                { "blockers as a text", &kube_node_claim_kind, "{" CLUSTER ",'status':{'blockers':'all'}}",
                  "status.blockers is no list" },
                { "replaces as a text", &kube_node_claim_kind, "{" CLUSTER ",'spec':{'replaces':'nc-1'}}",
                  "spec.replaces is no list" },
                { "replaces numbers", &kube_node_claim_kind, "{" CLUSTER ",'spec':{'replaces':[7]}}",
                  "an element of spec.replaces has no name" },
                { "an attempt in words", &kube_node_claim_kind, "{" CLUSTER ",'spec':{'attempt':'two'}}",
                  "spec.attempt is no integer" },
                { "a token as a number", &kube_node_claim_kind,
                  "{" CLUSTER ",'status':{'group':{'token':7}}}",
                  "status.group.token is no string" },
                { "a request at some time", &kube_node_claim_kind,
                  "{" CLUSTER ",'status':{'group':{'time':'soon'}}}",
                  "status.group.time: 'soon' is no time" },
                { "perhaps unresolved", &kube_node_claim_kind,
                  "{" CLUSTER ",'status':{'group':{'unresolved':'maybe'}}}",
                  "status.group.unresolved is neither true nor false" },
                { "a successor made yesterday", &kube_node_claim_kind,
                  "{" CLUSTER ",'status':{'successor':{'claim':'a','made':'x'}}}",
                  "status.successor.made is neither true nor false" },
                { "an empty policy", &kube_node_pool_kind, "{" CLUSTER ",'spec':{'deletionPolicy':''}}",
                  "spec.deletionPolicy is neither Release nor Delete" },
                { "a condition of an empty type", &kube_node_kind,
                  "{" CLUSTER ",'status':{'conditions':[{'type':'','status':'True'}]}}",
                  "status.conditions is no list of conditions" },
                { "a policy that we do not have", &kube_node_pool_kind,
                  "{" CLUSTER ",'spec':{'deletionPolicy':'Keep'}}",
                  "spec.deletionPolicy is neither Release nor Delete" },
                { "a repair of no condition", &kube_node_pool_kind,
                  "{" CLUSTER ",'spec':{'repair':[{'status':'True','action':'None'}]}}", "spec.repair.condition is missing" },
                { "a repair at a status that there is not", &kube_node_pool_kind,
                  "{" CLUSTER ",'spec':{'repair':[{'condition':'Ready','status':'Maybe','action':'None'}]}}",
                  "spec.repair.status is none of its choices" },
                { "a repair without an action", &kube_node_pool_kind,
                  "{" CLUSTER ",'spec':{'repair':[{'condition':'Ready','status':'False'}]}}",
                  "spec.repair.action is none of its choices" },
                { "a repair that never comes", &kube_node_pool_kind,
                  "{" CLUSTER ",'spec':{'repair':[{'condition':'Ready','status':'False','after':'Never','action':'None'}]}}",
                  "spec.repair.after: 'Never' is no duration" },
                { "a reason that is no expression", &kube_node_pool_kind,
                  "{" CLUSTER ",'spec':{'repair':[{'condition':'Ready','status':'False','reason':'(a','action':'None'}]}}",
                  "spec.repair.reason: '(a' is no extended regular expression" },
                { "a reason with bounds", &kube_node_pool_kind,
                  "{" CLUSTER ",'spec':{'repair':[{'condition':'Ready','status':'False','reason':'a{9}','action':'None'}]}}",
                  "spec.repair.reason has more than 128 bytes, or others than "
                  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_,:.*+?|()^$[]-" },
                { "repair as a map", &kube_node_pool_kind, "{" CLUSTER ",'spec':{'repair':{}}}", "spec.repair is no list" },
                { "a pool whose selector is a text", &kube_node_pool_kind,
                  "{" CLUSTER ",'spec':{'selector':'a=b'}}", "spec.selector is no label selector" },
                { "control characters are not handed on", &kube_node_claim_kind,
                  "{" CLUSTER ",'spec':{'terminationGracePeriod':'1\\n2'}}",
                  "spec.terminationGracePeriod: '1?2' is no duration" },
                { "the first of two stays", &kube_node_claim_kind,
                  "{" CLUSTER ",'spec':{'nodePool':1,'terminationGracePeriod':'x'}}",
                  "spec.nodePool is no string" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(kube_object_unrefp) KubeObject *o = NULL;

                print_message("%s\n", rows[i].what);
                assert_return_code(decode(rows[i].kind, *state, rows[i].json, &o), 0);
                assert_non_null(o->invalid);
                assert_string_equal(o->invalid, rows[i].invalid);
        }
}

/* -- bounds --------------------------------------------------------------------------------------------- */

/* The element n times, as a list, or as a map with keys of their own. */
static char *repeated(const char *element, bool as_map, size_t n) {
        _cleanup_strbuf_ StrBuf b = { 0 };

        strbuf_add_char(&b, as_map ? '{' : '[');
        for (size_t i = 0; i < n; i++) {
                strbuf_add(&b, i > 0 ? "," : "");
                if (as_map)
                        strbuf_addf(&b, "'vesper.sh/k%zu':", i);
                strbuf_add(&b, element);
        }
        strbuf_add_char(&b, as_map ? '}' : ']');
        return strbuf_steal(&b);
}

/* A list at its bound is kept; with one element more the object is invalid, and says which list it is. */
TEST_CASE(test_bounds) {
        static const struct {
                const KubeKind *kind;
                const char *before, *element, *behind; /* what stands around the list or map */
                bool is_map;
                size_t max;
                const char *invalid;
        } rows[] = {
                { &kube_node_kind, "{'metadata':{'name':'n','labels':", "'v'", "}}", true, 512,
                  "metadata.labels has more than 512 entries; only those that a kubelet cannot set are read" },
                { &kube_pod_kind, "{'metadata':{'name':'n','namespace':'d','labels':", "'v'", "}}", true, 512, "metadata.labels has more than 512 entries" },
                { &kube_node_kind, "{'metadata':{'name':'n','annotations':", "'v'", "}}", true, 512,
                  "metadata.annotations has more than 512 entries" },
                { &kube_node_kind, "{'metadata':{'name':'n','ownerReferences':", "{'apiVersion':'v','kind':'k','name':'n'}", "}}", false, 256,
                  "metadata.ownerReferences has more than 256 elements" },
                { &kube_node_kind, "{'metadata':{'name':'n'},'spec':{'taints':", "{'key':'k','effect':'NoSchedule'}", "}}", false, 256,
                  "spec.taints has more than 256 elements" },
                { &kube_node_kind, "{'metadata':{'name':'n'},'status':{'conditions':", "{'type':'Ready','status':'True'}", "}}", false, 256,
                  "status.conditions has more than 256 elements" },
                { &kube_node_kind, "{'metadata':{'name':'n'},'status':{'addresses':", "{'type':'InternalIP','address':'a'}", "}}", false, 256,
                  "status.addresses has more than 256 elements" },
                { &kube_pdb_kind, "{'metadata':{'name':'n','namespace':'d'},'spec':{'selector':{'matchExpressions':",
                  "{'key':'k','operator':'Exists'}", "}}}", false, 64, "spec.selector has more than 64 requirements or 2048 values" },
                { &kube_pdb_kind,
                  "{'metadata':{'name':'n','namespace':'d'},'spec':{'selector':{'matchExpressions':[{'key':'k','operator':'In','values':", "'v'",
                  "}]}}}", false, 2048, "spec.selector has more than 64 requirements or 2048 values" },
                { &kube_node_claim_kind, "{'metadata':{'name':'n'},'status':{'blockers':", "{'reason':'r'}", "}}", false, 256,
                  "status.blockers has more than 256 elements" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                for (size_t more = 0; more < 2; more++) {
                        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
                        _cleanup_free_ char *list = repeated(rows[i].element, rows[i].is_map, rows[i].max + more), *text = NULL;

                        print_message("  %zu: %s\n", rows[i].max + more, rows[i].invalid);
                        text = strf("%s%s%s", rows[i].before, list, rows[i].behind);
                        assert_non_null(text);
                        assert_return_code(decode(rows[i].kind, *state, text, &o), 0);
                        if (more == 0)
                                assert_null(o->invalid);
                        else
                                assert_string_equal(strempty(o->invalid), rows[i].invalid);
                }
}

/* Lists that a patch writes back, or that a drain waits for, are kept whole. */
TEST_CASE(test_names_without_bound) {
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
        _cleanup_free_ char *list = repeated("'a/b'", false, 5000), *text = NULL;

        text = strf("{'metadata':{'name':'n','finalizers':%s},'status':{'volumesInUse':%s}}", list, list);
        assert_non_null(text);
        o = decode_ok(&kube_node_kind, *state, text);
        assert_int_equal(strv_length(o->meta.finalizers), 5000);
        assert_string_equal(o->meta.finalizers[4999], "a/b");
        assert_int_equal(strv_length(((KubeNode *) o)->volumes_in_use), 5000);
}

/* No selector matches an object whose labels are not kept. */
TEST_CASE(test_unread_labels) {
        static const char *const selectors[] = { "{}", "{'matchExpressions':[{'key':'a','operator':'DoesNotExist'}]}",
                                                 "{'matchExpressions':[{'key':'a','operator':'NotIn','values':['b']}]}",
                                                 "{'matchLabels':{'vesper.sh/k1':'v'}}" };
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
        _cleanup_free_ char *labels = repeated("'v'", true, 513), *text = NULL;

        text = strf("{'metadata':{'name':'p','namespace':'d','labels':%s}}", labels);
        assert_non_null(text);
        assert_return_code(decode(&kube_pod_kind, *state, text, &o), 0);
        assert_true(o->meta.labels.unread);
        assert_int_equal(o->meta.labels.n_items, 0);
        for (size_t i = 0; i < ELEMENTSOF(selectors); i++) {
                _cleanup_(kube_object_unrefp) KubeObject *pdb = NULL;
                _cleanup_free_ char *spec = strf("{'metadata':{'name':'b','namespace':'d'},'spec':{'selector':%s}}", selectors[i]);

                assert_non_null(spec);
                pdb = decode_ok(&kube_pdb_kind, *state, spec);
                assert_false(kube_pdb_matches((KubePdb *) pdb, (KubePod *) o));
        }
}

/* A kubelet sets labels until there are too many: those that it cannot set stay, and selectors of them
 * match. */
TEST_CASE(test_labels_of_a_kubelet) {
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL, *b = NULL;
        _cleanup_free_ char *labels = repeated("'v'", true, 600), *text = NULL;

        text = strf("{'metadata':{'name':'n','labels':{'node-restriction.kubernetes.io/team':'a',%s}}", labels + 1);
        assert_non_null(text);
        assert_return_code(decode(&kube_node_kind, *state, text, &o), 0);
        assert_true(o->meta.labels.is_cut && !o->meta.labels.unread);
        assert_int_equal(o->meta.labels.n_items, 1);
        b = decode_ok(&kube_node_budget_kind, *state,
                      "{'metadata':{'name':'b'},'spec':{'maxUnavailable':1,'selector':{'matchLabels':{'node-restriction.kubernetes.io/team':'a'}}}}");
        assert_true(kube_node_budget_matches((KubeNodeBudget *) b, (KubeNode *) o));
}

/* The readable part of a bad object is read, so that its node is known. */
TEST_CASE(test_invalid_keeps_the_rest) {
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL, *pdb = NULL, *node = NULL;
        const KubeNodeClaim *c;

        assert_return_code(decode(&kube_node_claim_kind, *state,
                                  "{" CLUSTER
                                  ",'spec':{'terminationGracePeriod':'x','providerID':'aws:///a/i-1'},"
                                  "'status':{'nodeName':'n1','podsLeft':4}}",
                                  &o),
                           0);
        c = (KubeNodeClaim *) o;
        assert_non_null(o->invalid);
        assert_int_equal(c->termination_grace_usec, USEC_INFINITY);
        assert_string_equal(c->provider_id, "aws:///a/i-1");
        assert_string_equal(c->node_name, "n1");
        assert_int_equal(c->pods_left, 4);

        assert_return_code(decode(&kube_node_kind, *state,
                                  "{'metadata':{'name':'c','labels':{'a':1,'b':'2','c':'3'}}}", &node),
                           0);
        assert_string_equal(object_meta_label(&node->meta, "b"), "2");
        assert_string_equal(object_meta_label(&node->meta, "c"), "3");

        assert_return_code(decode(&kube_pdb_kind, *state,
                                  "{" POD ",'spec':{'selector':7},'status':{'disruptionsAllowed':2}}", &pdb),
                           0);
        assert_null(((KubePdb *) pdb)->selector);
        assert_int_equal(((KubePdb *) pdb)->disruptions_allowed, 2);
}

/* -- kinds ---------------------------------------------------------------------------------------------- */

TEST_CASE(test_node) {
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
        const KubeNode *n;

        o = decode_ok(&kube_node_kind, *state,
                      "{'kind':'Node','apiVersion':'v1','metadata':{'name':'n1','annotations':{'vesper.sh/"
                      "interruption':'{}',"
                      "'karpenter.sh/do-not-disrupt':'true','cluster-autoscaler.kubernetes.io/"
                      "scale-down-disabled':'true',"
                      "'node.alpha.kubernetes.io/ttl':'0','vesper.shop/x':'y'}},"
                      "'spec':{'providerID':'aws:///eu-1a/i-1','unschedulable':true,'taints':["
                      "{'key':'node.kubernetes.io/"
                      "unschedulable','effect':'NoSchedule','timeAdded':'2026-11-21T05:03:00Z'},"
                      "{'key':'dedicated','value':'db','effect':'NoExecute'}]},"
                      "'status':{'conditions':["
                      "{'type':'Ready','status':'True','reason':'KubeletReady','message':'long','"
                      "lastTransitionTime':'2026-11-21T05:03:00Z'},"
                      "{'type':'Drained','status':'False','reason':'vesper-agent','message':'3 pods "
                      "left','lastTransitionTime':null},"
                      "{'type':'vesper.sh/TerminationBlocked','status':'odd','message':'cloud'}],"
                      "'volumesInUse':['v1','v2'],'volumesAttached':[{'name':'v1','devicePath':''}],"
                      "'addresses':[{'type':'InternalIP','address':'10.0.0.7'},{'type':'Hostname','address':'n1'}],"
                      "'nodeInfo':{'bootID':'b-1','kernelVersion':'6','systemUUID':'ec2-1','machineID':''}}}");
        n = (KubeNode *) o;
        assert_string_equal(n->provider_id, "aws:///eu-1a/i-1");
        assert_true(n->unschedulable);
        assert_int_equal(n->n_taints, 2);
        assert_string_equal(n->taints[0].value, "");
        assert_string_equal(n->taints[1].value, "db");
        assert_true(kube_node_has_taint(n, "dedicated", NULL));
        assert_true(kube_node_has_taint(n, "dedicated", "NoExecute"));
        assert_false(kube_node_has_taint(n, "dedicated", "NoSchedule"));
        assert_false(kube_node_has_taint(n, "other", NULL));
        assert_true(kube_node_is_ready(n));
        assert_int_equal(n->n_conditions, 3);
        assert_null(kube_node_condition(n, "Ready")->message);
        assert_true(kube_node_condition(n, "Ready")->last_transition_usec > 0);
        assert_string_equal(kube_node_condition(n, "Drained")->message, "3 pods left");
        assert_string_equal(kube_node_condition(n, "Drained")->reason, "vesper-agent");
        assert_int_equal(kube_node_condition(n, "Drained")->last_transition_usec, 0);
        assert_int_equal(kube_node_condition(n, "vesper.sh/TerminationBlocked")->status, CONDITION_UNKNOWN);
        assert_string_equal(kube_node_condition(n, "vesper.sh/TerminationBlocked")->message, "cloud");
        assert_null(kube_node_condition(n, "MemoryPressure"));
        assert_int_equal(strv_length(n->volumes_in_use), 2);
        assert_int_equal(strv_length(n->volumes_attached), 1);
        assert_string_equal(n->boot_id, "b-1");
        assert_string_equal(n->system_uuid, "ec2-1");
        assert_null(n->machine_id);
        assert_int_equal(n->n_addresses, 2);
        assert_string_equal(n->addresses[0].type, "InternalIP");
        assert_string_equal(n->addresses[0].address, "10.0.0.7");
        assert_string_equal(n->addresses[1].address, "n1");
        assert_string_equal(kube_node_machine_id(n), "aws:///eu-1a/i-1");
        assert_int_equal(o->meta.annotations.n_items, 3);
}

TEST_CASE(test_node_readiness) {
        static const struct {
                const char *what, *conditions;
                bool ready;
        } rows[] = {
                { "no conditions", "[]", false },
                { "Ready", "[{'type':'Ready','status':'True'}]", true },
                { "not Ready", "[{'type':'Ready','status':'False'}]", false },
                { "nobody knows", "[{'type':'Ready','status':'Unknown'}]", false },
                { "no status", "[{'type':'Ready'}]", false },
                { "something else is", "[{'type':'DiskPressure','status':'True'}]", false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
                _cleanup_free_ char *json =
                        strf("{" CLUSTER ",'status':{'conditions':%s}}", rows[i].conditions);

                print_message("%s\n", rows[i].what);
                o = decode_ok(&kube_node_kind, *state, json);
                assert_int_equal(kube_node_is_ready((KubeNode *) o), rows[i].ready);
        }
}

TEST_CASE(test_pod) {
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL, *bare = NULL, *other = NULL;
        const KubePod *p;

        o = decode_ok(
                &kube_pod_kind, *state,
                "{" POD
                ",'spec':{'nodeName':'n1','priorityClassName':'system-node-critical','priority':2000001000,"
                "'terminationGracePeriodSeconds':0},'status':{'phase':'Running','startTime':'2026-11-21T05:"
                "03:00Z',"
                "'conditions':[{'type':'PodScheduled','status':'True'},{'type':'Ready','status':'True'}]}}");
        p = (KubePod *) o;
        assert_string_equal(p->node_name, "n1");
        assert_string_equal(p->priority_class, "system-node-critical");
        assert_int_equal(p->priority, 2000001000);
        assert_int_equal(p->grace_sec, 0);
        assert_int_equal(p->phase, POD_RUNNING);
        assert_true(p->ready);
        assert_true(p->start_usec > 0);
        assert_false(p->is_static);
        assert_false(p->is_daemon);

        /* The API server reads a negative grace as 1, too. A condition after Ready does not change Ready. */
        other = decode_ok(&kube_pod_kind, *state,
                          "{" POD ",'spec':{'terminationGracePeriodSeconds':-5},'status':{'conditions':["
                          "{'type':'Ready','status':'True'},{'type':'PodScheduled','status':'False'}]}}");
        assert_int_equal(((KubePod *) other)->grace_sec, 1);
        assert_true(((KubePod *) other)->ready);

        bare = decode_ok(&kube_pod_kind, *state,
                         "{" POD ",'spec':{'nodeName':''},'status':{'phase':'Dreaming'}}");
        p = (KubePod *) bare;
        assert_null(p->node_name);
        assert_null(p->priority_class);
        assert_int_equal(p->grace_sec, 30);
        assert_int_equal(p->phase, POD_PHASE_UNKNOWN);
        assert_false(p->ready);
        assert_int_equal(p->start_usec, 0);
}

/* The work that a kubelet has when the containers have ended, as the node's own agent reads it, and nobody
 * else. */
TEST_CASE(test_own_pod) {
        static const struct {
                const char *spec;
                bool needs;
        } rows[] = {
                { "{'restartPolicy':'Always'}", false },
                { "{'restartPolicy':'Always','volumes':[]}", false },
                { "{'restartPolicy':'Always','volumes':[{'name':'a','emptyDir':{}},{'name':'b','hostPath':{'"
                  "path':'/x'}},"
                  "{'name':'c','projected':{'sources':[]}},{'name':'d','configMap':{'name':'c'}},"
                  "{'name':'e','secret':{'secretName':'s'}},{'name':'f','downwardAPI':{}},"
                  "{'name':'g','image':{'reference':'r'}}]}",
                  false },
                { "{}", true },
                { "{'restartPolicy':7}", true },
                { "{'restartPolicy':'OnFailure'}", true },
                { "{'restartPolicy':'Never'}", true },
                { "{'restartPolicy':'Always','resourceClaims':[{'name':'gpu'}]}", true },
                { "{'restartPolicy':'Always','volumes':[{'name':'a','emptyDir':{}},"
                  "{'name':'b','persistentVolumeClaim':{'claimName':'c'}}]}",
                  true },
                { "{'restartPolicy':'Always','volumes':[{'name':'a','ephemeral':{}}]}", true },
                { "{'restartPolicy':'Always','volumes':[{'name':'a','csi':{'driver':'d'}}]}", true },
                { "{'restartPolicy':'Always','volumes':[{'name':'a','nfs':{'server':'s'}}]}", true },
                { "{'restartPolicy':'Always','volumes':[{'name':'a'}]}", true },
                { "{'restartPolicy':'Always','volumes':'none'}", false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *text = strf("{" POD ",'spec':%s}", rows[i].spec);
                _cleanup_(kube_object_unrefp) KubeObject *own = NULL, *other = NULL;

                own = decode_ok(&kube_own_pod_kind, *state, text);
                other = decode_ok(&kube_pod_kind, *state, text);
                if (((KubePod *) own)->needs_kubelet != rows[i].needs)
                        fail_msg("%s", rows[i].spec);
                assert_true(((KubePod *) other)->needs_kubelet);
        }
}

/* `text` with the first `from` in it replaced; the row is wrong where it has none. */
static char *with(const char *text, const char *from, const char *to) {
        const char *at = strstr(text, from);
        char *s;

        assert_non_null(at);
        s = strf("%.*s%s%s", (int) (at - text), text, to, at + strlen(from));
        assert_non_null(s);
        return s;
}

TEST_CASE(test_pod_says_same) {
        static const char base[] =
                "{'metadata':{'name':'p','namespace':'n','uid':'u','resourceVersion':'1','generation':1,"
                "'creationTimestamp':'2026-11-21T05:00:00Z','labels':{'a':'1','b':'2'},"
                "'annotations':{'vesper.sh/do-not-evict':'true','x/y':'z'},"
                "'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'rs','uid':'o','controller':true}],"
                "'finalizers':['f/a']},"
                "'spec':{'nodeName':'n1','priorityClassName':'high','priority':7,'terminationGracePeriodSeconds':30,"
                "'tolerations':[{'key':'x','operator':'Exists'}]},"
                "'status':{'phase':'Running','podIP':'10.0.0.1','startTime':'2026-11-21T05:03:00Z',"
                "'conditions':[{'type':'Ready','status':'True','lastProbeTime':'1'}]}}";
        static const struct {
                const char *from, *to;
                bool same;
        } rows[] = {
                { "'resourceVersion':'1'", "'resourceVersion':'2'", true },
                { "10.0.0.1", "10.0.0.2", true },
                { "'x/y':'z'", "'x/y':'w'", true },
                { "'lastProbeTime':'1'", "'lastProbeTime':'2'", true },
                { "'status':{", "'status':{'containerStatuses':[{'restartCount':3}],", true },
                { "'uid':'u'", "'uid':'v'", false },
                { "'generation':1", "'generation':2", false },
                { "05:00:00Z", "05:00:01Z", false },
                { "'generation':1", "'generation':1,'deletionTimestamp':'2026-11-21T06:00:00Z'", false },
                { "'generation':1", "'generation':1,'deletionGracePeriodSeconds':3", false },
                { "'b':'2'", "'b':'3'", false },
                { "'b':'2'", "'c':'2'", false },
                { ",'b':'2'", "", false },
                { "'vesper.sh/do-not-evict':'true'", "'vesper.sh/do-not-evict':'false'", false },
                { "'apps/v1'", "'apps/v2'", false },
                { "'ReplicaSet'", "'DaemonSet'", false },
                { "'name':'rs'", "'name':'rt'", false },
                { "'uid':'o'", "'uid':'q'", false },
                { "'controller':true", "'controller':false", false },
                { "'controller':true}", "'controller':true},{'apiVersion':'v1','kind':'X','name':'x','uid':'y'}", false },
                { "'f/a'", "'f/b'", false },
                { "'f/a'", "'f/a','f/b'", false },
                { "'f/a'", "", false },
                { "'n1'", "'n2'", false },
                { "'high'", "'low'", false },
                { "'priority':7", "'priority':8", false },
                { "Seconds':30", "Seconds':31", false },
                { "'key':'x'", "'key':'node.kubernetes.io/unschedulable'", false },
                { "'key':'x'", "'key':'vesper.sh/disrupted'", false },
                { "'Running'", "'Failed'", false },
                { "05:03:00Z", "05:03:01Z", false },
                { "'status':'True'", "'status':'False'", false },
                { "'priority':7", "'priority':'seven'", false },
        };
        _cleanup_(kube_object_unrefp) KubeObject *a = decode_ok(&kube_pod_kind, *state, base);

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *text = with(base, rows[i].from, rows[i].to);
                _cleanup_(kube_object_unrefp) KubeObject *b = NULL;

                (void) decode(&kube_pod_kind, *state, text, &b);
                assert_non_null(b);
                if (kube_pod_says_same((KubePod *) a, (KubePod *) b) != rows[i].same ||
                    kube_pod_says_same((KubePod *) b, (KubePod *) a) != rows[i].same)
                        fail_msg("%s in place of %s is %s", rows[i].to, rows[i].from,
                                 rows[i].same ? "not taken for the same" : "taken for the same");
        }
}

/* Compares two objects that both differ from the base above. */
TEST_CASE(test_pods_say_same) {
        static const struct {
                const KubeKind *kind;
                const char *a, *b;
                bool same;
        } rows[] = {
                { &kube_pod_kind, "{'metadata':{'name':'p','namespace':'n','finalizers':['a','b']}}",
                  "{'metadata':{'name':'p','namespace':'n','finalizers':['b','a']}}", false },
                { &kube_pod_kind, "{" POD ",'spec':{'priority':'x'}}", "{" POD ",'spec':{'priority':'y'}}", true },
                { &kube_pod_kind, "{" POD ",'spec':{'priority':'x'}}",
                  "{" POD ",'spec':{'terminationGracePeriodSeconds':'x'}}", false },
                { &kube_own_pod_kind, "{" POD ",'spec':{'restartPolicy':'Always'}}",
                  "{" POD ",'spec':{'restartPolicy':'Never'}}", false },
                { &kube_pod_kind, "{" POD ",'spec':{'restartPolicy':'Always'}}",
                  "{" POD ",'spec':{'restartPolicy':'Never'}}", true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(kube_object_unrefp) KubeObject *a = NULL, *b = NULL;

                assert_return_code(decode(rows[i].kind, *state, rows[i].a, &a), 0);
                assert_return_code(decode(rows[i].kind, *state, rows[i].b, &b), 0);
                if (kube_pod_says_same((KubePod *) a, (KubePod *) b) != rows[i].same)
                        fail_msg("%s and %s", rows[i].a, rows[i].b);
        }
}

TEST_CASE(test_pod_phases) {
        static const struct {
                const char *text;
                PodPhase phase;
        } rows[] = {
                { "Pending", POD_PENDING },       { "Running", POD_RUNNING },
                { "Succeeded", POD_SUCCEEDED },   { "Failed", POD_FAILED },
                { "Unknown", POD_PHASE_UNKNOWN }, { "running", POD_PHASE_UNKNOWN },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
                _cleanup_free_ char *json = strf("{" POD ",'status':{'phase':'%s'}}", rows[i].text);

                o = decode_ok(&kube_pod_kind, *state, json);
                assert_int_equal(((KubePod *) o)->phase, rows[i].phase);
        }
}

TEST_CASE(test_pod_owners) {
        static const struct {
                const char *what, *meta;
                bool is_static, is_daemon;
        } rows[] = {
                { "of a DaemonSet",
                  "'ownerReferences':[{'apiVersion':'apps/"
                  "v1','kind':'DaemonSet','name':'d','uid':'u','controller':true}]",
                  false, true },
                { "of a DaemonSet of another version",
                  "'ownerReferences':[{'apiVersion':'apps/"
                  "v2','kind':'DaemonSet','name':'d','uid':'u','controller':true}]",
                  false, true },
                { "of a DaemonSet of another group",
                  "'ownerReferences':[{'apiVersion':'apps.kruise.io/"
                  "v1alpha1','kind':'DaemonSet','name':'d','uid':'u','controller':true}]",
                  false, true },
                { "of a kind of its own, and marked for the Cluster Autoscaler",
                  "'annotations':{'cluster-autoscaler.kubernetes.io/daemonset-pod':'true'},"
                  "'ownerReferences':[{'apiVersion':'example.io/v1','kind':'Foo','name':'f','uid':'u','controller':true}]",
                  false, true },
                { "marked that it is none", "'annotations':{'cluster-autoscaler.kubernetes.io/daemonset-pod':'false'}", false, false },
                { "a DaemonSet that does not control it",
                  "'ownerReferences':[{'apiVersion':'apps/v1','kind':'DaemonSet','name':'d','uid':'u'}]",
                  false, false },
                { "of a node",
                  "'ownerReferences':[{'apiVersion':'v1','kind':'Node','name':'n','uid':'u','controller':"
                  "true}]",
                  true, false },
                { "of a Node of somebody else's",
                  "'ownerReferences':[{'apiVersion':'fleet.example/v1','kind':'Node','name':'n','uid':'u','controller':"
                  "true}]",
                  false, false },
                { "a mirror pod", "'annotations':{'kubernetes.io/config.mirror':'h'}", true, false },
                { "of nobody", "'labels':{}", false, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
                _cleanup_free_ char *json =
                        strf("{'metadata':{'name':'p','namespace':'n',%s}}", rows[i].meta);

                print_message("%s\n", rows[i].what);
                o = decode_ok(&kube_pod_kind, *state, json);
                assert_int_equal(((KubePod *) o)->is_static, rows[i].is_static);
                assert_int_equal(((KubePod *) o)->is_daemon, rows[i].is_daemon);
        }
}

TEST_CASE(test_pod_tolerations) {
        static const struct {
                const char *what, *toleration;
                bool unschedulable, disrupted;
        } rows[] = {
                { "everything", "{'operator':'Exists'}", true, true },
                { "everything, with the effect", "{'operator':'Exists','effect':'NoSchedule'}", true, true },
                { "everything, of another effect", "{'operator':'Exists','effect':'NoExecute'}", false,
                  false },
                { "the cordon",
                  "{'key':'node.kubernetes.io/unschedulable','operator':'Exists','effect':'NoSchedule'}",
                  true, false },
                { "ours, by value", "{'key':'vesper.sh/disrupted','value':''}", false, true },
                { "ours, by Equal", "{'key':'vesper.sh/disrupted','operator':'Equal'}", false, true },
                { "ours, of another value", "{'key':'vesper.sh/disrupted','value':'x'}", false, false },
                { "an operator of tomorrow", "{'key':'vesper.sh/disrupted','operator':'Lt','value':'3'}",
                  false, false },
                { "no key, but Equal", "{'operator':'Equal'}", false, false },
                { "nothing", "{}", false, false },
                { "a text", "'all'", false, false },
                { "everything, then something", "{'operator':'Exists'},{'key':'x','operator':'Exists'}", true, true },
                { "something, then everything", "{'key':'x','operator':'Exists'},{'operator':'Exists'}", true, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
                _cleanup_free_ char *json =
                        strf("{" POD ",'spec':{'tolerations':[%s]}}", rows[i].toleration);

                print_message("%s\n", rows[i].what);
                o = decode_ok(&kube_pod_kind, *state, json);
                assert_int_equal(((KubePod *) o)->tolerates_unschedulable, rows[i].unschedulable);
                assert_int_equal(((KubePod *) o)->tolerates_disrupted, rows[i].disrupted);
        }
}

TEST_CASE(test_pdb) {
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL, *ours = NULL, *other = NULL, *none = NULL;
        const KubePdb *p;

        o = decode_ok(&kube_pdb_kind, *state,
                      "{'apiVersion':'policy/"
                      "v1','kind':'PodDisruptionBudget','metadata':{'name':'web','namespace':'n'},"
                      "'spec':{'selector':{'matchLabels':{'app':'web'}},'unhealthyPodEvictionPolicy':'"
                      "AlwaysAllow'},"
                      "'status':{'disruptionsAllowed':1,'currentHealthy':3,'desiredHealthy':2,'expectedPods'"
                      ":4,'observedGeneration':5}}");
        p = (KubePdb *) o;
        assert_int_equal(p->disruptions_allowed, 1);
        assert_int_equal(p->current_healthy, 3);
        assert_int_equal(p->desired_healthy, 2);
        assert_int_equal(p->expected_pods, 4);
        assert_int_equal(p->observed_generation, 5);
        assert_true(p->always_allow_unhealthy);

        ours = decode_ok(&kube_pod_kind, *state,
                         "{'metadata':{'name':'a','namespace':'n','labels':{'app':'web'}}}");
        other = decode_ok(&kube_pod_kind, *state,
                          "{'metadata':{'name':'a','namespace':'m','labels':{'app':'web'}}}");
        assert_true(kube_pdb_matches(p, (KubePod *) ours));
        assert_false(kube_pdb_matches(p, (KubePod *) other));
        assert_int_equal(kube_pdb_allowed(p), 1);
        o->meta.generation = 6; /* its controller has not seen that */
        assert_int_equal(kube_pdb_allowed(p), 0);

        none = decode_ok(&kube_pdb_kind, *state, "{" POD "}");
        assert_false(kube_pdb_matches((KubePdb *) none, (KubePod *) ours));
        assert_false(((KubePdb *) none)->always_allow_unhealthy);
}

/* Whether a PDB allows nothing as it stands, and why it cannot be counted. */
TEST_CASE(test_pdb_never) {
        static const struct {
                const char *what, *status;
                bool never;
                const char *sync_failed;
        } rows[] = {
                { "room", "'disruptionsAllowed':1,'desiredHealthy':2,'expectedPods':3,'observedGeneration':1", false, NULL },
                { "used up", "'disruptionsAllowed':0,'desiredHealthy':2,'expectedPods':3,'observedGeneration':1", false, NULL },
                { "all of them", "'disruptionsAllowed':0,'desiredHealthy':3,'expectedPods':3,'observedGeneration':1", true, NULL },
                { "more than there are", "'disruptionsAllowed':0,'desiredHealthy':5,'expectedPods':3,'observedGeneration':1", true, NULL },
                { "no pods", "'disruptionsAllowed':0,'desiredHealthy':1,'expectedPods':0,'observedGeneration':1", false, NULL },
                { "of an earlier generation", "'disruptionsAllowed':0,'desiredHealthy':3,'expectedPods':3,'observedGeneration':0", false, NULL },
                { "cannot be counted", "'disruptionsAllowed':0,'conditions':[{'type':'x'},{'type':'DisruptionAllowed','status':'False','reason':'SyncFailed',"
                                       "'message':'no scale'}]", true, "no scale" },
                { "cannot be counted, and nobody says why", "'conditions':[{'type':'DisruptionAllowed','status':'False','reason':'SyncFailed'}]", true, "" },
                { "counted", "'conditions':[{'type':'DisruptionAllowed','status':'False','reason':'InsufficientPods','message':'m'}],'observedGeneration':1", false, NULL },
                { "counted since", "'conditions':[{'type':'DisruptionAllowed','status':'True','reason':'SyncFailed','message':'m'}],'observedGeneration':1", false, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *json = strf("{'metadata':{'name':'p','namespace':'n','generation':1},'status':{%s}}", rows[i].status);
                _cleanup_(kube_object_unrefp) KubeObject *o = decode_ok(&kube_pdb_kind, *state, json);
                const KubePdb *p = (const KubePdb *) o;

                print_message("%s\n", rows[i].what);
                assert_int_equal(kube_pdb_never_allows(p), rows[i].never);
                assert_true(streq_ptr(p->sync_failed, rows[i].sync_failed));
        }
}

TEST_CASE(test_lease_and_volume) {
        _cleanup_(kube_object_unrefp) KubeObject *lease = NULL, *v = NULL, *inline_volume = NULL;

        lease = decode_ok(&kube_lease_kind, *state,
                          "{'apiVersion':'coordination.k8s.io/v1','kind':'Lease'," POD
                          ",'spec':{'holderIdentity':'x'}}");
        assert_string_equal(lease->meta.name, "p");

        v = decode_ok(&kube_volume_attachment_kind, *state,
                      "{'apiVersion':'storage.k8s.io/v1'," CLUSTER
                      ",'spec':{'nodeName':'n1','source':{'persistentVolumeName':'pv1'}},'status':{'"
                      "attached':true}}");
        assert_string_equal(((KubeVolumeAttachment *) v)->node_name, "n1");
        assert_string_equal(((KubeVolumeAttachment *) v)->pv_name, "pv1");
        assert_true(((KubeVolumeAttachment *) v)->attached);

        inline_volume = decode_ok(&kube_volume_attachment_kind, *state,
                                  "{" CLUSTER ",'spec':{'nodeName':'n1','source':{'inlineVolumeSpec':{}}}}");
        assert_null(((KubeVolumeAttachment *) inline_volume)->pv_name);
        assert_false(((KubeVolumeAttachment *) inline_volume)->attached);
}

TEST_CASE(test_claims_of_pods) {
        static const struct {
                const char *spec, *expected; /* NULL: cannot be read */
        } rows[] = {
                { "{}", "" },
                { "{'volumes':null}", "" },
                { "{'volumes':[]}", "" },
                { "{'volumes':[{'name':'a','emptyDir':{}},{'name':'b','configMap':{'name':'c'}}]}", "" },
                { "{'volumes':[{'name':'a','persistentVolumeClaim':{'claimName':'data'}}]}", "data" },
                { "{'volumes':[{'name':'a','persistentVolumeClaim':{'claimName':'x'}},{'name':'b','emptyDir'"
                  ":{}},"
                  "{'name':'c','ephemeral':{'volumeClaimTemplate':{}}},{'name':'d','persistentVolumeClaim':"
                  "{'claimName':'y','readOnly':true}}]}",
                  "x p-c! y" },
                { "{'volumes':{}}", NULL },
                { "{'volumes':[7]}", NULL },
                { "{'volumes':[{'name':'a','persistentVolumeClaim':{}}]}", NULL },
                { "{'volumes':[{'name':'a','persistentVolumeClaim':{'claimName':7}}]}", NULL },
                { "{'volumes':[{'ephemeral':{}}]}", NULL },
        };
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL, *loose = NULL;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *text = strf("{" POD ",'spec':%s}", rows[i].spec);
                _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
                _cleanup_strbuf_ StrBuf b = {};
                PodClaim *claims = NULL;
                size_t n = 0;
                int r;

                print_message("  %s\n", rows[i].spec);
                for (char *c = text; *c; c++)
                        *c = *c == '\'' ? '"' : *c;
                assert_return_code(json_parse(text, strlen(text), 1u << 16, &doc, NULL), 0);
                r = pod_claims_decode(json_root(doc), &claims, &n);
                for (size_t k = 0; k < n; k++)
                        strbuf_addf(&b, "%s%s%s", k > 0 ? " " : "", claims[k].name,
                                    claims[k].ephemeral ? "!" : "");
                pod_claims_free(claims, n);
                assert_int_equal(r, rows[i].expected ? 0 : -EINVAL);
                assert_string_equal(strbuf_str(&b), strempty(rows[i].expected));
        }
        o = decode_ok(&kube_pvc_kind, *state,
                      "{'metadata':{'namespace':'d','name':'c'},'spec':{'volumeName':'pv'}}");
        assert_string_equal(((KubePersistentVolumeClaim *) o)->volume_name, "pv");
        loose = decode_ok(&kube_pvc_kind, *state, "{'metadata':{'namespace':'d','name':'c'},'spec':{}}");
        assert_null(((KubePersistentVolumeClaim *) loose)->volume_name);
}

TEST_CASE(test_node_pool) {
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL, *bare = NULL, *odd = NULL;
        const KubeNodePool *p;

        o = decode_ok(&kube_node_pool_kind, *state,
                      "{'apiVersion':'vesper.sh/"
                      "v1alpha1','kind':'NodePool','metadata':{'name':'c','annotations':{'vesper.sh/"
                      "x':'1','y':'2'}},"
                      "'spec':{'selector':{'matchLabels':{'pool':'a'}},'template':{'terminationGracePeriod':"
                      "'1h30m5s'},"
                      "'provider':{'name':'asg','group':'workers','identity':'ProviderID'},'disruption':{'expireAfter':'720h'},'"
                      "deletionPolicy':'Delete'}}");
        p = (KubeNodePool *) o;
        assert_false(selector_is_empty(p->selector));
        assert_int_equal(p->termination_grace_usec, USEC_PER_HOUR + 30 * USEC_PER_MINUTE + 5 * USEC_PER_SEC);
        assert_int_equal(p->disruption.expire_after_usec, 720 * USEC_PER_HOUR);
        assert_string_equal(p->provider_name, "asg");
        assert_string_equal(p->provider_group, "workers");
        assert_true(p->trusts_provider_ids);
        assert_int_equal(p->deletion_policy, DELETION_POLICY_DELETE);
        assert_int_equal(o->meta.annotations.n_items, 1);

        bare = decode_ok(&kube_node_pool_kind, *state,
                         "{" CLUSTER ",'spec':{'disruption':{'expireAfter':'Never'}}}");
        p = (KubeNodePool *) bare;
        assert_true(selector_is_empty(p->selector));
        assert_int_equal(p->termination_grace_usec, USEC_INFINITY);
        assert_int_equal(p->disruption.expire_after_usec, USEC_INFINITY);
        assert_int_equal(p->deletion_policy, DELETION_POLICY_RELEASE);
        assert_null(p->provider_name);
        assert_false(p->trusts_provider_ids);

        assert_return_code(decode(&kube_node_pool_kind, *state,
                                  "{" CLUSTER ",'spec':{'provider':{'identity':'Trusted'}}}", &odd),
                           0);
        assert_non_null(strstr(odd->invalid, "spec.provider.identity"));
        assert_false(((KubeNodePool *) odd)->trusts_provider_ids);
}

/* A text with everything that spec.disruption, .template and .offerings can hold. */
TEST_CASE(test_pool_disruption) {
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL, *bare = NULL, *open = NULL;
        const PoolDisruption *d;
        const PoolTemplate *t;
        const KubeNodePool *p;

        o = decode_ok(&kube_node_pool_kind, *state,
                      "{" CLUSTER ",'spec':{'weight':7,'disruption':{'emptyAfter':'5m','expireAfter':'720h','expireHardAfter':'800h',"
                      "'drift':'Auto','consolidation':{'policy':'WhenUnderutilized','after':'10m','minimumSavings':'15%',"
                      "'preferences':'Ignore'},'nakedPods':'Block','maxConcurrent':3,'onInterruption':'Replace','launchTimeout':'7m',"
                      "'budgets':[{'nodes':'20%','reasons':['Drifted','Empty']},"
                      "{'nodes':0,'schedule':'0 8 * * 1-5','duration':'10h','timeZone':'Europe/Berlin'}],"
                      "'windows':[{'reasons':['Expired'],'schedule':'@daily','duration':'4h'}]},"
                      "'template':{'labels':{'b':'2','a':'1'},'annotations':{'vesper.sh/x':'y'},"
                      "'taints':[{'key':'gpu','effect':'NoSchedule'}],'startupTaints':[{'key':'cni','value':'v','effect':'NoExecute'}],"
                      "'requirements':[{'key':'arch','operator':'In','values':['arm64','amd64']},{'key':'n','operator':'Gt','values':['4']}]},"
                      "'offerings':[{'instanceType':'m','zone':'z1','capacityType':'spot','price':0.25,"
                      "'allocatable':{'cpu':'3900m','pods':110},'group':'g'},{'instanceType':'l','price':2}],'limits':{'memory':'64Gi','cpu':96}}}");
        p = (KubeNodePool *) o;
        d = &p->disruption;
        assert_int_equal(p->weight, 7);
        assert_int_equal(d->empty_after_usec, 5 * USEC_PER_MINUTE);
        assert_int_equal(d->expire_after_usec, 720 * USEC_PER_HOUR);
        assert_int_equal(d->expire_hard_after_usec, 800 * USEC_PER_HOUR);
        assert_true(d->drift && d->ignores_preferences && d->naked_pods_block && !d->has_default_budget);
        assert_int_equal(d->consolidation, CONSOLIDATION_WHEN_UNDERUTILIZED);
        assert_int_equal(d->consolidate_after_usec, 10 * USEC_PER_MINUTE);
        assert_int_equal(d->minimum_savings_permille, 150);
        assert_int_equal(d->max_concurrent, 3);
        assert_int_equal(d->on_interruption, ON_INTERRUPTION_REPLACE);
        assert_int_equal(d->launch_timeout_usec, 7 * USEC_PER_MINUTE);
        assert_int_equal(d->n_budgets, 2);
        assert_int_equal(d->budgets[0].nodes.unit, NODE_AMOUNT_PERCENT);
        assert_int_equal(d->budgets[0].nodes.value, 20);
        assert_int_equal(d->budgets[0].when.reasons, 1u << DISRUPTION_DRIFTED | 1u << DISRUPTION_EMPTY);
        assert_null(d->budgets[0].when.schedule);
        assert_int_equal(d->budgets[1].nodes.unit, NODE_AMOUNT_NODES);
        assert_int_equal(d->budgets[1].when.reasons, 0);
        assert_string_equal(d->budgets[1].when.schedule, "0 8 * * 1-5");
        assert_string_equal(d->budgets[1].when.time_zone, "Europe/Berlin");
        assert_int_equal(d->budgets[1].when.duration_usec, 10 * USEC_PER_HOUR);
        assert_int_equal(d->n_windows, 1);
        assert_int_equal(d->windows[0].reasons, 1u << DISRUPTION_EXPIRED);
        t = &p->template;
        assert_int_equal(t->labels.n_items, 2);
        assert_string_equal(t->labels.items[0].key, "a"); /* sorted */
        assert_string_equal(key_values_get(&t->annotations, "vesper.sh/x"), "y");
        assert_int_equal(t->n_taints, 1);
        assert_string_equal(t->taints[0].value, "");
        assert_string_equal(t->startup_taints[0].effect, "NoExecute");
        assert_int_equal(t->n_requirements, 2);
        assert_int_equal(t->requirements[0].n_values, 2);
        assert_int_equal(t->requirements[1].operator, POOL_OPERATOR_GT);
        assert_int_equal(p->n_offerings, 2);
        assert_int_equal(p->offerings[0].price_micros, 250000);
        assert_string_equal(key_values_get(&p->offerings[0].allocatable, "pods"), "110");
        assert_string_equal(p->offerings[0].group, "g");
        assert_int_equal(p->offerings[1].price_micros, 2 * PRICE_MICROS);
        assert_null(p->offerings[1].zone);
        assert_int_equal(p->limits.n_items, 2);
        assert_string_equal(key_values_get(&p->limits, "cpu"), "96");
        assert_string_equal(key_values_get(&p->limits, "memory"), "64Gi");

        bare = decode_ok(&kube_node_pool_kind, *state, "{" CLUSTER ",'spec':{}}");
        d = &((KubeNodePool *) bare)->disruption;
        assert_int_equal(d->empty_after_usec, USEC_INFINITY);
        assert_int_equal(d->expire_hard_after_usec, USEC_INFINITY);
        assert_int_equal(d->launch_timeout_usec, LAUNCH_TIMEOUT_USEC);
        assert_int_equal(d->on_interruption, ON_INTERRUPTION_UNSET);
        assert_int_equal(d->consolidation, CONSOLIDATION_NEVER);
        assert_true(!d->drift && !d->naked_pods_block && !d->ignores_preferences && d->has_default_budget);
        assert_int_equal(d->n_budgets, 1);
        assert_int_equal(d->budgets[0].nodes.unit, NODE_AMOUNT_PERCENT);
        assert_int_equal(d->budgets[0].nodes.value, 10);

        open = decode_ok(&kube_node_pool_kind, *state, "{" CLUSTER ",'spec':{'disruption':{'budgets':[]}}}");
        assert_int_equal(((KubeNodePool *) open)->disruption.n_budgets, 0);
}

/* A written pool is read back as the same. */
static char *written(const KubeObject *o) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        const KubeNodePool *p = (const KubeNodePool *) o;

        assert_return_code(json_writer_new(&w), 0);
        json_open_object(w, NULL);
        json_open_object(w, "metadata");
        json_add_string(w, "name", "c");
        json_close_object(w);
        json_open_object(w, "spec");
        pool_template_write(&p->template, p->termination_grace_usec, w, "template");
        pool_disruption_write(&p->disruption, w, "disruption");
        pool_offerings_write(p->offerings, p->n_offerings, w, "offerings");
        pool_limits_write(&p->limits, w, "limits");
        json_close_object(w);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

TEST_CASE(test_pool_written) {
        static const char *const specs[] = {
                "", "'disruption':{'budgets':[]}",
                "'template':{'terminationGracePeriod':'90s','labels':{'a':'1'},'annotations':{'b':'2'},'taints':[{'key':'k','effect':'NoSchedule'}],"
                "'startupTaints':[{'key':'s','value':'v','effect':'NoExecute'}],'requirements':[{'key':'r','operator':'NotIn','values':['1','2']},"
                "{'key':'e','operator':'DoesNotExist'}],'nodeInfo':{'kubeletVersion':'v1','osImage':'o'}},'offerings':[{'instanceType':'m','zone':'z','capacityType':'spot','price':0.123456,"
                "'allocatable':{'cpu':4},'group':'g'}],'limits':{'nodes':3,'cpu':'4500m'},'disruption':{'emptyAfter':'0s','expireAfter':'24h','expireHardAfter':'48h','drift':'Auto',"
                "'consolidation':{'policy':'WhenEmpty','after':'5m','minimumSavings':'7%','preferences':'Ignore'},'nakedPods':'Block',"
                "'maxConcurrent':2,'onInterruption':'None','launchTimeout':'90s','budgets':[{'nodes':'20%','reasons':['Expired','Empty']},{'nodes':3,'schedule':'@daily','duration':'1h',"
                "'timeZone':'UTC'}],'windows':[{'schedule':'0 3 * * *','duration':'2h'}]}",
        };

        for (size_t i = 0; i < ELEMENTSOF(specs); i++) {
                _cleanup_(kube_object_unrefp) KubeObject *o = NULL, *again = NULL;
                _cleanup_free_ char *text = strf("{" CLUSTER ",'spec':{%s}}", specs[i]), *first = NULL, *second = NULL;

                o = decode_ok(&kube_node_pool_kind, *state, text);
                first = written(o);
                again = decode_ok(&kube_node_pool_kind, *state, first);
                second = written(again);
                assert_string_equal(first, second);
                if (i == ELEMENTSOF(specs) - 1)
                        assert_non_null(strstr(first, "0.123456"));
                if (i == ELEMENTSOF(specs) - 1)
                        assert_non_null(strstr(first, "\"onInterruption\":\"None\",\"launchTimeout\":\"90s\""));
        }
}

TEST_CASE(test_pool_disruption_invalid) {
        static const struct {
                const char *spec, *says;
        } rows[] = {
                { "'disruption':{'emptyAfter':'5'}", "spec.disruption.emptyAfter: '5' is no duration" },
                { "'disruption':{'drift':'Sometimes'}", "spec.disruption.drift is none of its choices" },
                { "'disruption':{'consolidation':{'policy':'Always'}}", "policy is none of its choices" },
                { "'disruption':{'consolidation':{'minimumSavings':3}}", "minimumSavings is no percentage" },
                { "'disruption':{'maxConcurrent':-1}", "maxConcurrent is negative" },
                { "'disruption':{'onInterruption':'Sometimes'}",
                  "spec.disruption.onInterruption is none of its choices" },
                { "'disruption':{'launchTimeout':'soon'}",
                  "spec.disruption.launchTimeout: 'soon' is no duration" },
                { "'disruption':{'launchTimeout':'Never'}",
                  "spec.disruption.launchTimeout: 'Never' is no duration" },
                { "'disruption':{'budgets':{}}", "spec.disruption.budgets is no list" },
                { "'disruption':{'budgets':[{}]}", "nodes is missing" },
                { "'disruption':{'budgets':[{'nodes':'many'}]}", "neither a number of nodes nor a percentage" },
                { "'disruption':{'budgets':[{'nodes':1,'reasons':['Bored']}]}", "budgets.reasons is none of its choices" },
                { "'disruption':{'budgets':[{'nodes':1,'schedule':'@daily'}]}", "schedule and duration stand together" },
                { "'disruption':{'budgets':[{'nodes':1,'schedule':'@often','duration':'1h'}]}", "schedule wants @yearly" },
                { "'disruption':{'budgets':[{'nodes':1,'timeZone':'UTC'}]}", "timeZone stands with a schedule" },
                { "'disruption':{'windows':[{'duration':'1h'}]}", "schedule" },
                { "'template':{'labels':{'a':true}}", "a value of spec.template.labels is no text" },
                { "'template':{'labels':[]}", "spec.template.labels is no map" },
                { "'template':{'taints':[{'key':'a'}]}", "a taint has no key or effect" },
                { "'template':{'requirements':[{'key':'a','operator':'In'}]}", "is no requirement" },
                { "'template':{'requirements':[{'key':'a','operator':'Gt','values':['x']}]}", "is no requirement" },
                { "'template':{'requirements':[{'key':'a','operator':'About','values':['x']}]}", "none of its choices" },
                { "'offerings':[{'price':1}]", "spec.offerings.instanceType is missing" },
                { "'limits':{'cpu':'many'}", "spec.limits.cpu is no quantity" },
                { "'limits':{'memory':-1}", "spec.limits.memory is no quantity" },
                { "'limits':[]", "spec.limits is no map" },
                { "'offerings':[{'instanceType':'m'}]", "spec.offerings.price is no number" },
                { "'offerings':[{'instanceType':'m','price':-1}]", "spec.offerings.price is no number" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
                _cleanup_free_ char *text = strf("{" CLUSTER ",'spec':{%s}}", rows[i].spec);

                print_message("  %s\n", rows[i].spec);
                assert_return_code(decode(&kube_node_pool_kind, *state, text, &o), 0);
                assert_non_null(o->invalid);
                assert_non_null(strstr(o->invalid, rows[i].says));
                /* A field that cannot be understood removes nothing. */
                assert_false(((KubeNodePool *) o)->disruption.drift);
                assert_int_equal(((KubeNodePool *) o)->disruption.consolidation, CONSOLIDATION_NEVER);
                assert_int_equal(((KubeNodePool *) o)->disruption.on_interruption, ON_INTERRUPTION_UNSET);
        }
}

TEST_CASE(test_node_requirements) {
        static const struct {
                const char *requirement, *label;
                bool holds;
        } rows[] = {
                { "'operator':'In','values':['1','2']", "2", true },
                { "'operator':'In','values':['1','2']", "3", false },
                { "'operator':'In','values':['1']", NULL, false },
                { "'operator':'NotIn','values':['1']", "2", true },
                { "'operator':'NotIn','values':['1']", "1", false },
                { "'operator':'NotIn','values':['1']", NULL, true },
                { "'operator':'Exists'", "", true },
                { "'operator':'Exists'", NULL, false },
                { "'operator':'DoesNotExist'", NULL, true },
                { "'operator':'DoesNotExist'", "1", false },
                { "'operator':'Gt','values':['4']", "5", true },
                { "'operator':'Gt','values':['4']", "4", false },
                { "'operator':'Gt','values':['4']", "many", false },
                { "'operator':'Lt','values':['4']", "3", true },
                { "'operator':'Lt','values':['4']", "4", false },
                { "'operator':'Lt','values':['4']", NULL, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
                _cleanup_free_ char *text =
                        strf("{" CLUSTER ",'spec':{'template':{'requirements':[{'key':'k',%s}]}}}", rows[i].requirement);
                KeyValue item = { "k", rows[i].label };
                KeyValues labels = { &item, rows[i].label ? 1 : 0 };

                print_message("  %s of %s\n", rows[i].requirement, rows[i].label ?: "none");
                o = decode_ok(&kube_node_pool_kind, *state, text);
                assert_int_equal(pool_requirement_holds(((KubeNodePool *) o)->template.requirements, &labels), rows[i].holds);
        }
}

TEST_CASE(test_repair_rules) {
        _cleanup_(kube_object_unrefp) KubeObject *unset = NULL, *none = NULL, *two = NULL;
        const KubeNodePool *p;

        unset = decode_ok(&kube_node_pool_kind, *state, "{" CLUSTER ",'spec':{}}");
        p = (KubeNodePool *) unset;
        assert_int_equal(p->n_repair, 1);
        assert_string_equal(p->repair[0].condition, "Ready");
        assert_int_equal(p->repair[0].status, REPAIR_STATUS_NOT_TRUE);
        assert_null(p->repair[0].reason_pattern);
        assert_int_equal(p->repair[0].after_usec, 15 * USEC_PER_MINUTE);
        assert_int_equal(p->repair[0].action, REPAIR_ACTION_REPLACE);

        none = decode_ok(&kube_node_pool_kind, *state, "{" CLUSTER ",'spec':{'repair':[]}}");
        assert_int_equal(((KubeNodePool *) none)->n_repair, 0);

        two = decode_ok(&kube_node_pool_kind, *state,
                        "{" CLUSTER ",'spec':{'repair':["
                        "{'condition':'Ready','status':'Unknown','reason':'^(A|B)$','after':'1h','action':'Reboot'},"
                        "{'condition':'DiskOk','status':'False','action':'None'}]}}");
        p = (KubeNodePool *) two;
        assert_int_equal(p->n_repair, 2);
        assert_int_equal(p->repair[0].status, REPAIR_STATUS_UNKNOWN);
        assert_int_equal(p->repair[0].after_usec, USEC_PER_HOUR);
        assert_int_equal(p->repair[0].action, REPAIR_ACTION_REBOOT);
        assert_int_equal(regexec(p->repair[0].reason_pattern, "B", 0, NULL, 0), 0);
        assert_int_equal(regexec(p->repair[0].reason_pattern, "BC", 0, NULL, 0), REG_NOMATCH);
        assert_string_equal(p->repair[1].condition, "DiskOk");
        assert_int_equal(p->repair[1].after_usec, 15 * USEC_PER_MINUTE);
        assert_int_equal(p->repair[1].action, REPAIR_ACTION_NONE);
}

TEST_CASE(test_heartbeat) {
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL, *odd = NULL;

        o = decode_ok(&kube_node_kind, *state,
                      "{" CLUSTER ",'status':{'conditions':["
                      "{'type':'DiskPressure','status':'False','lastHeartbeatTime':'2027-01-15T09:00:00Z'},"
                      "{'type':'Ready','status':'True','lastHeartbeatTime':'2027-01-15T08:00:00Z'}]}}");
        assert_int_equal(((KubeNode *) o)->heartbeat_usec, 1800000000 * USEC_PER_SEC);
        odd = decode_ok(&kube_node_kind, *state,
                        "{" CLUSTER ",'status':{'conditions':[{'type':'Ready','status':'True','lastHeartbeatTime':'soon'}]}}");
        assert_int_equal(((KubeNode *) odd)->heartbeat_usec, 0);
}

TEST_CASE(test_node_claim) {
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL, *bare = NULL, *never = NULL;
        const KubeNodeClaim *c;

        o = decode_ok(
                &kube_node_claim_kind, *state,
                "{'apiVersion':'vesper.sh/v1alpha1','kind':'NodeClaim'," CLUSTER
                ",'spec':{'nodePool':'a','providerID':'aws:///z/"
                "i-1','terminationGracePeriod':'0s','expireAfter':'24h',"
                "'nodeName':'n0','systemUUID':'s-1','machineID':'m-1','replaces':['nc-1','nc-2'],'attempt':2},"
                "'status':{'group':{'request':'Launch','token':'launch-u','like':'aws:///z/i-0','zone':'z','capacityType':'spot',"
                "'since':'2026-11-21T05:01:00Z','time':'2026-11-21T05:02:00Z','answer':'later','message':'throttled','unresolved':true},"
                "'successor':{'claim':'nc-3','made':true},'identity':{'instanceID':'i-1','region':'eu-west-1','method':'Tag'},'nodeName':'n1','nodeUID':'u-1','phase':'Draining','deadline':'2026-11-21T05:03:00Z','"
                "lastCloudError':'throttled',"
                "'podsLeft':3,'blockers':[{'pod':'n/p','reason':'BlockedByPDB','pdb':'n/"
                "web','since':'2026-11-21T05:03:00Z'},"
                "{'pod':'n/q','reason':'Protected'}],"
                "'conditions':[{'type':'Drained','status':'False','reason':'Pods','message':'3 left'}]}}");
        c = (KubeNodeClaim *) o;
        assert_string_equal(c->node_pool, "a");
        assert_string_equal(c->provider_id, "aws:///z/i-1");
        assert_string_equal(c->made_for, "n0");
        assert_string_equal(c->system_uuid, "s-1");
        assert_string_equal(c->machine_id, "m-1");
        assert_string_equal(c->identity.instance_id, "i-1");
        assert_string_equal(c->identity.region, "eu-west-1");
        assert_string_equal(c->identity.method, "Tag");
        assert_string_equal(c->replaces[0], "nc-1");
        assert_string_equal(c->replaces[1], "nc-2");
        assert_null(c->replaces[2]);
        assert_int_equal(c->attempt, 2);
        assert_string_equal(c->request.token, "launch-u");
        assert_string_equal(c->request.like, "aws:///z/i-0");
        assert_string_equal(c->request.zone, "z");
        assert_string_equal(c->request.capacity_type, "spot");
        assert_int_equal(c->request.time_usec - c->request.since_usec, USEC_PER_MINUTE);
        assert_int_equal(c->deadline_usec - c->request.time_usec, USEC_PER_MINUTE);
        assert_string_equal(c->request.answer, "later");
        assert_string_equal(c->request.message, "throttled");
        assert_true(c->request.unresolved);
        assert_string_equal(c->successor, "nc-3");
        assert_true(c->successor_is_made);
        assert_int_equal(c->termination_grace_usec, 0);
        assert_int_equal(c->expire_after_usec, USEC_PER_DAY);
        assert_string_equal(c->node_name, "n1");
        assert_string_equal(c->phase, "Draining");
        assert_true(c->deadline_usec > 0);
        assert_string_equal(c->last_cloud_error, "throttled");
        assert_string_equal(c->node_uid, "u-1");
        assert_int_equal(c->pods_left, 3);
        assert_int_equal(c->n_blockers, 2);
        assert_string_equal(c->blockers[0].pdb, "n/web");
        assert_int_equal(c->blockers[0].since_usec, c->deadline_usec);
        assert_null(c->blockers[1].pdb);
        assert_string_equal(kube_node_claim_condition(c, "Drained")->message, "3 left");
        assert_null(kube_node_claim_condition(c, "Launched"));

        never = decode_ok(&kube_node_claim_kind, *state, "{" CLUSTER ",'spec':{'expireAfter':'Never'}}");
        assert_int_equal(((KubeNodeClaim *) never)->expire_after_usec, USEC_INFINITY);

        bare = decode_ok(&kube_node_claim_kind, *state, "{" CLUSTER "}");
        c = (KubeNodeClaim *) bare;
        assert_int_equal(c->termination_grace_usec, USEC_INFINITY);
        assert_int_equal(c->pods_left, -1);
        assert_int_equal(c->deadline_usec, 0);
        assert_null(c->replaces);
        assert_int_equal(c->attempt, 1);
        assert_null(c->request.token);
        assert_false(c->request.unresolved || c->successor_is_made);
        assert_null(c->successor);
}

/* May the cloud have launched a machine that is not known? Is the claim of a machine that is no node yet? */
TEST_CASE(test_new_claims) {
        static const struct {
                const char *fields;
                bool is_open, is_new;
        } rows[] = {
                { "'spec':{}", false, false },
                { "'spec':{'replaces':['a']}", false, true },
                { "'spec':{'replaces':[]}", false, false },
                { "'spec':{'replaces':['a']},'status':{'conditions':[{'type':'Initialized','status':'True'}]}", false, false },
                { "'spec':{'replaces':['a']},'status':{'conditions':[{'type':'Initialized','status':'False'}]}", false, true },
                { "'status':{'group':{'like':'x','answer':'unknown','unresolved':true}}", false, false }, /* no request */
                { "'status':{'group':{'token':'t'}}", true, false },
                { "'status':{'group':{'token':'t','answer':'unknown'}}", true, false },
                { "'status':{'group':{'token':'t','answer':'accepted'}}", true, false },
                { "'status':{'group':{'token':'t','answer':'later'}}", false, false },
                { "'status':{'group':{'token':'t','answer':'noCapacity'}}", false, false },
                { "'status':{'group':{'token':'t','answer':'refused'}}", false, false },
                { "'status':{'group':{'token':'t','answer':'refused','unresolved':true}}", true, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
                _cleanup_free_ char *text = strf("{" CLUSTER ",%s}", rows[i].fields);

                print_message("  %s\n", rows[i].fields);
                o = decode_ok(&kube_node_claim_kind, *state, text);
                assert_int_equal(claim_request_is_open(&((KubeNodeClaim *) o)->request), rows[i].is_open);
                assert_int_equal(kube_node_claim_is_new((KubeNodeClaim *) o), rows[i].is_new);
        }
}

TEST_CASE(test_condition_strings) {
        for (ConditionStatus s = CONDITION_UNKNOWN; s <= CONDITION_TRUE; s++)
                assert_int_equal(condition_status_from_string(condition_status_to_string(s)), s);
        assert_int_equal(condition_status_from_string("true"), CONDITION_UNKNOWN);
        assert_int_equal(condition_status_from_string(NULL), CONDITION_UNKNOWN);
}

/* The API server prints a boot id that no kubelet has reported as "". */
TEST_CASE(test_no_boot_id) {
        static const char *const infos[] = { "{'bootID':''}", "{}" };
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;

        assert_return_code(intern_pool_new(&pool), 0);
        for (size_t i = 0; i < ELEMENTSOF(infos); i++) {
                _cleanup_free_ char *text = strf("{'metadata':{'name':'n','uid':'u'},'status':{'nodeInfo':%s}}", infos[i]);
                KubeObject *o = decode_ok(&kube_node_kind, pool, text);

                assert_null(((KubeNode *) o)->boot_id);
                kube_object_unref(o);
        }
}

TEST_CASE(test_boot_ids) {
        static const struct {
                const char *a, *b;
                bool equal;
        } rows[] = {
                { "0a1b2c3d", "0a1b2c3d", true },   { "0a1b-2c3d", "0a1b2c3d", true }, { "0A1B2C3D", "0a1b2c3d", true },
                { "0a1b2c3d-", "0a1b2c3d", true },  { "0a1b2c3d", "0a1b2c3e", false }, { "0a1b2c3d", "0a1b2c3", false },
                { "0a1b2c3", "0a1b2c3d", false },   { "", "0", false },                { NULL, "0a1b2c3d", false },
                { "0a1b2c3d", NULL, false },        { NULL, NULL, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                if (boot_id_equal(rows[i].a, rows[i].b) != rows[i].equal)
                        fail_msg("%s and %s", strempty(rows[i].a), strempty(rows[i].b));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        static const struct CMUnitTest tests[] = {
                TEST(test_meta),
                TEST(test_bare_item),
                TEST(test_refused),
                TEST(test_invalid),
                TEST(test_bounds),
                TEST(test_names_without_bound),
                TEST(test_unread_labels),
                TEST(test_labels_of_a_kubelet),
                TEST(test_invalid_keeps_the_rest),
                TEST(test_node),
                TEST(test_node_readiness),
                TEST(test_pod),
                TEST(test_own_pod),
                TEST(test_pod_says_same),
                TEST(test_pods_say_same),
                TEST(test_pod_phases),
                TEST(test_pod_owners),
                TEST(test_pod_tolerations),
                TEST(test_pdb),
                TEST(test_pdb_never),
                TEST(test_lease_and_volume),
                TEST(test_claims_of_pods),
                TEST(test_node_pool),
                TEST(test_pool_disruption),
                TEST(test_pool_written),
                TEST(test_pool_disruption_invalid),
                TEST(test_node_requirements),
                TEST(test_repair_rules),
                TEST(test_heartbeat),
                TEST(test_node_claim),
                TEST(test_new_claims),
                cmocka_unit_test(test_condition_strings),
                cmocka_unit_test(test_no_boot_id),
                cmocka_unit_test(test_boot_ids),
        };
        return cmocka_run_group_tests_name("kube-object", tests, NULL, NULL);
}
