/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmocka-test.h"
#include "kube-scheduling.h"
#include "string-util.h"

/* JSON is written with ' for ". */
static char *with_quotes(const char *text) {
        char *copy = strdup(text);

        assert_non_null(copy);
        for (char *p = copy; *p; p++)
                if (*p == '\'')
                        *p = '"';
        return copy;
}

/* May be invalid. */
static void *decode(const KubeKind *kind, InternPool *pool, const char *text) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_free_ char *json = with_quotes(text);
        KubeObject *o = NULL;

        assert_return_code(json_parse(json, strlen(json), strlen(json), &doc, NULL), 0);
        assert_return_code(kube_object_decode(kind, json_root(doc), pool, &o), 0);
        return o;
}

static void *decode_ok(const KubeKind *kind, InternPool *pool, const char *text) {
        KubeObject *o = decode(kind, pool, text);

        if (o->invalid)
                fail_msg("%s: %s", text, o->invalid);
        return o;
}

/* A pod of namespace d with these members of metadata and spec. */
static KubeScheduledPod *pod(InternPool *pool, const char *meta, const char *spec) {
        _cleanup_free_ char *text = strf("{'metadata':{'name':'p','namespace':'d'%s%s},'spec':{%s}}", *meta ? "," : "", meta, spec);

        assert_non_null(text);
        return decode(&kube_scheduled_pod_kind, pool, text);
}

static void unref(void *o) {
        kube_object_unref(o);
}

static int setup(void **state) {
        return intern_pool_new((InternPool **) state);
}

static int teardown(void **state) {
        assert_int_equal(intern_pool_size(*state), 0);
        intern_pool_free(*state);
        return 0;
}

/* -- the text of a pod ---------------------------------------------------------------------------------- */

TEST_CASE(test_scheduling) {
        static const struct {
                const char *meta, *spec, *text;
        } rows[] = {
                { "", "", "{'ns':'d'}" },
                { "'labels':{}", "'containers':[],'affinity':{},'tolerations':[],'nodeSelector':{},'overhead':{},'volumes':null", "{'ns':'d'}" },
                { "", "'affinity':{'podAffinity':null,'new':{}}", "{'ns':'d'}" },
                { "'labels':{'b':'2','a':''}", "", "{'ns':'d'}" },
                { "", "'priority':0,'schedulerName':'default-scheduler'", "{'ns':'d'}" },
                { "", "'priority':-5,'schedulerName':'volcano'", "{'ns':'d','priority':-5,'scheduler':'volcano'}" },
                { "", "'containers':[{'name':'a','image':'i','env':[{'name':'SECRET','value':'s'}],'args':['x']}]", "{'ns':'d'}" },
                { "", "'containers':[{'resources':{'limits':{'cpu':'9'}}},{'resources':{'requests':{'memory':'1Gi','cpu':'100m'}}}]",
                  "{'ns':'d','containers':[{'requests':{'cpu':'100m','memory':'1Gi'}}]}" },
                { "", "'containers':[{'resources':{'requests':{'cpu':2}}}]", "{'ns':'d','containers':[{'requests':{'cpu':'2'}}]}" },
                { "", "'containers':[{'ports':[{'containerPort':80},{'hostPort':443,'containerPort':8443,'protocol':'TCP','hostIP':'::'}]}]",
                  "{'ns':'d','containers':[{'ports':[{'hostPort':443,'hostIP':'::','protocol':'TCP'}]}]}" },
                { "",
                  "'initContainers':[{'resources':{'requests':{'cpu':'3'}}},{'restartPolicy':'Always'},"
                  "{'restartPolicy':'Always','resources':{'requests':{'cpu':'1'}}}]",
                  "{'ns':'d','init':[{'requests':{'cpu':'3'}},{'requests':{'cpu':'1'},'always':true}]}" },
                { "", "'containers':[{'restartPolicy':'Always','resources':{'requests':{'cpu':'1'}}}]",
                  "{'ns':'d','containers':[{'requests':{'cpu':'1'}}]}" },
                { "", "'resources':{'limits':{'cpu':'4'},'requests':{'cpu':'3'}},'overhead':{'memory':'64Mi'}",
                  "{'ns':'d','podRequests':{'cpu':'3'},'overhead':{'memory':'64Mi'}}" },
                { "", "'nodeSelector':{'z':'','disk':'ssd'}", "{'ns':'d','nodeSelector':{'disk':'ssd','z':''}}" },
                { "", "'tolerations':[{'tolerationSeconds':300,'effect':'NoExecute','key':'k','value':'','operator':'Exists'},{'operator':'Exists'}]",
                  "{'ns':'d','tolerations':[{'key':'k','operator':'Exists','effect':'NoExecute'},{'operator':'Exists'}]}" },
                { "",
                  "'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':'h','labelSelector':{}}]},"
                  "'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{},"
                  "{'matchExpressions':[{'values':['','b','a'],'key':'k','operator':'In','new':1}]}]}}}",
                  "{'ns':'d','affinity':{"
                  "'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{},"
                  "{'matchExpressions':[{'key':'k','operator':'In','values':['','b','a']}]}]}},"
                  "'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'labelSelector':{},'topologyKey':'h'}]}}}" },
                { "",
                  "'affinity':{'podAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{'podAffinityTerm':{'topologyKey':'z',"
                  "'matchLabelKeys':['m'],'mismatchLabelKeys':['n'],'namespaceSelector':{'matchLabels':{'b':'','a':'1'}},'namespaces':['x'],"
                  "'labelSelector':null},'weight':7}]}}",
                  "{'ns':'d','affinity':{'podAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':7,'podAffinityTerm':{"
                  "'namespaces':['x'],'topologyKey':'z','namespaceSelector':{'matchLabels':{'a':'1','b':''}},"
                  "'matchLabelKeys':['m'],'mismatchLabelKeys':['n']}}]}}}" },
                { "",
                  "'topologySpreadConstraints':[{'whenUnsatisfiable':'DoNotSchedule','maxSkew':2,'topologyKey':'z','minDomains':3,"
                  "'matchLabelKeys':['m'],'nodeTaintsPolicy':'Honor','nodeAffinityPolicy':'Ignore','labelSelector':{'matchLabels':{'a':'1'}}}]",
                  "{'ns':'d','topologySpreadConstraints':[{'maxSkew':2,'topologyKey':'z','whenUnsatisfiable':'DoNotSchedule',"
                  "'labelSelector':{'matchLabels':{'a':'1'}},'minDomains':3,'nodeAffinityPolicy':'Ignore','nodeTaintsPolicy':'Honor',"
                  "'matchLabelKeys':['m']}]}" },
                /* what is not understood */
                { "", "'resourceClaims':[{'name':'gpu'}]", "{'ns':'d','unmodelled':['resourceClaims']}" },
                { "", "'resourceClaims':[]", "{'ns':'d'}" },
                { "", "'schedulingGates':[{'name':'g'}]", "{'ns':'d','unmodelled':['schedulingGates']}" },
                { "", "'schedulingGates':[{'name':'g'}],'nodeName':'n1'", "{'ns':'d'}" },
                { "'labels':{'scheduling.x-k8s.io/pod-group':'g'}", "", "{'ns':'d','unmodelled':['podGroup']}" },
                { "'labels':{'pod-group.scheduling.sigs.k8s.io':'g'}", "",
                  "{'ns':'d','unmodelled':['podGroup']}" },
                { "", "'workloadRef':{'name':'w'}", "{'ns':'d','unmodelled':['podGroup']}" },
                { "", "'schedulingGroup':{'podGroupName':'w'}", "{'ns':'d','unmodelled':['podGroup']}" },
                { "", "'volumes':[{'name':'a','emptyDir':{}},{'name':'b','iscsi':{}}]", "{'ns':'d','unmodelled':['disk']}" },
                { "", "'volumes':[{'name':'b','rbd':{}}]", "{'ns':'d','unmodelled':['disk']}" },
                { "", "'volumes':[{'name':'b','gcePersistentDisk':{}}]", "{'ns':'d','unmodelled':['disk']}" },
                { "", "'volumes':[{'name':'b','awsElasticBlockStore':{}}]", "{'ns':'d','unmodelled':['disk']}" },
                { "", "'volumes':[{'name':'b','azureDisk':{}}],'resourceClaims':[{'name':'c'}]", "{'ns':'d','unmodelled':['resourceClaims','disk']}" },
                { "", "'volumes':[{'name':'b','csi':{}},{'name':'c','nfs':{}},{'name':'d','configMap':{}}]", "{'ns':'d'}" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                KubeScheduledPod *p = pod(*state, rows[i].meta, rows[i].spec);
                _cleanup_free_ char *expected = with_quotes(rows[i].text);

                if (p->pod.object.invalid)
                        fail_msg("%s, %s: %s", rows[i].meta, rows[i].spec, p->pod.object.invalid);
                assert_string_equal(p->scheduling, expected);
                unref(p);
        }
}

/* Of what the scheduler reads and cannot be read, the pod is invalid, and all else of it is there. */
TEST_CASE(test_invalid) {
        static const struct {
                const char *spec, *sentence;
        } rows[] = {
                { "'priority':'high'", "spec.priority is no integer" },
                { "'schedulerName':7", "spec.schedulerName is no string" },
                { "'containers':{}", "spec.containers is no list" },
                { "'initContainers':{}", "spec.initContainers is no list" },
                { "'containers':[{'resources':{'requests':['cpu']}}]", "spec.containers.resources.requests is no map" },
                { "'containers':[{'resources':{'requests':{'cpu':true}}}]", "spec.containers.resources.requests.cpu is no quantity" },
                { "'containers':[{'resources':{'requests':{'cpu':0.5}}}]", "spec.containers.resources.requests.cpu is no quantity" },
                { "'containers':[{'ports':{}}]", "spec.containers.ports is no list" },
                { "'containers':[{'ports':[{'hostPort':'80'}]}]", "spec.containers.ports.hostPort is no integer" },
                { "'containers':[{'ports':[{'hostPort':80,'hostIP':1}]}]", "spec.containers.ports.hostIP is no string" },
                { "'initContainers':[{'restartPolicy':1,'resources':{'requests':{'cpu':'1'}}}]", "restartPolicy of a container is no string" },
                { "'overhead':'64Mi'", "spec.overhead is no map" },
                { "'resources':{'requests':1}", "spec.resources.requests is no map" },
                { "'nodeSelector':{'a':1}", "spec.nodeSelector.a is no string" },
                { "'affinity':[]", "spec.affinity is no object" },
                { "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{'matchExpressions':[7]}]}}}",
                  "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.matchExpressions is no list of objects" },
                { "'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':[]}]}}",
                  "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution.topologyKey is no string" },
                { "'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'namespaces':[1]}]}}",
                  "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution.namespaces is no list of strings" },
                { "'tolerations':[null]", "spec.tolerations is no list of objects" },
                { "'topologySpreadConstraints':[{'maxSkew':1.5}]", "spec.topologySpreadConstraints.maxSkew is no integer in range" },
                { "'volumes':[{'persistentVolumeClaim':{}}]", "spec.volumes is no list of volumes" },
                { "'resourceClaims':{}", "spec.resourceClaims is no list" },
                { "'schedulingGates':'g'", "spec.schedulingGates is no list" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *spec = strf("%s,'nodeName':'n1'", rows[i].spec);
                KubeScheduledPod *p = pod(*state, "'labels':{'a':'b'}", spec);
                const char *invalid = strempty(p->pod.object.invalid);

                if (!startswith(invalid, rows[i].sentence))
                        fail_msg("%s: expected '%s', got '%s'", rows[i].spec, rows[i].sentence, invalid);
                assert_string_equal(p->pod.node_name, "n1");
                assert_non_null(startswith(p->scheduling, "{\"ns\":\"d\""));
                unref(p);
        }
}

#define SIBLING(name, rest) \
        "{'metadata':{'name':'" name "','namespace':'d','uid':'u-" name "','labels':{'app':'web','pod-template-hash':'x'}}," \
        "'spec':{'nodeName':'" name "','containers':[{'name':'c','resources':{'requests':{'cpu':'1','memory':'1Gi'}}}]," \
        "'tolerations':[{'key':'a','operator':'Exists'}]" rest "},'status':{'phase':'Running'}}"

/* Pods of one ReplicaSet share one text; each thing that the scheduler reads makes another. */
TEST_CASE(test_siblings) {
        static const char *const others[] = {
                SIBLING("o", ",'priority':1"),
                SIBLING("o", ",'schedulerName':'x'"),
                SIBLING("o", ",'nodeSelector':{'a':'b'}"),
                SIBLING("o", ",'overhead':{'cpu':'1m'}"),
                SIBLING("o", ",'initContainers':[{'resources':{'requests':{'cpu':'1'}}}]"),
                SIBLING("o", ",'resources':{'requests':{'cpu':'1'}}"),
                SIBLING("o", ",'affinity':{'podAffinity':{}}"),
                SIBLING("o", ",'topologySpreadConstraints':[{'maxSkew':1}]"),
                SIBLING("o", ",'volumes':[{'rbd':{}}]"),
                ("{'metadata':{'name':'o','namespace':'e','labels':{'app':'web','pod-template-hash':'x'}},'spec':{"
                 "'containers':[{'resources':{'requests':{'cpu':'1','memory':'1Gi'}}}],'tolerations':[{'key':'a','operator':'Exists'}]}}"),
        };
        KubeScheduledPod *a = decode_ok(&kube_scheduled_pod_kind, *state, SIBLING("a", ",'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'x'}}]"));
        /* the same in another order, with what nobody reads */
        KubeScheduledPod *b = decode_ok(&kube_scheduled_pod_kind, *state,
                                        "{'spec':{'tolerations':[{'operator':'Exists','key':'a','value':'','tolerationSeconds':5}],'hostNetwork':false,"
                                        "'containers':[{'resources':{'requests':{'memory':'1Gi','cpu':'1'},'limits':{'cpu':'2'}},'image':'i'}],'affinity':{}},"
                                        "'metadata':{'labels':{'pod-template-hash':'x','app':'web'},'namespace':'d','name':'b'}}");

        assert_ptr_equal(a->scheduling, b->scheduling);
        for (size_t i = 0; i < ELEMENTSOF(others); i++) {
                KubeScheduledPod *o = decode_ok(&kube_scheduled_pod_kind, *state, others[i]);

                if (o->scheduling == a->scheduling)
                        fail_msg("%s is the same to the scheduler", others[i]);
                unref(o);
        }
        unref(a);
        unref(b);
}

/* Labels are no part of the text, and two pods that differ by one are not the same. */
TEST_CASE(test_labels) {
#define LABELLED(labels) "{'metadata':{'name':'w-0','namespace':'d','labels':{" labels "}},'spec':{}}"
        static const struct {
                const char *labels;
                bool is_same; /* as the first */
        } rows[] = {
                { LABELLED("'app':'w','own':'0'"), true }, { LABELLED("'own':'0','app':'w'"), true }, { LABELLED("'app':'w','own':'1'"), false },
                { LABELLED("'app':'w'"), false },          { LABELLED(""), false },
        };
        KubeScheduledPod *first = decode_ok(&kube_scheduled_pod_kind, *state, rows[0].labels);

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                KubeScheduledPod *p = decode_ok(&kube_scheduled_pod_kind, *state, rows[i].labels);

                assert_string_equal(p->scheduling, "{\"ns\":\"d\"}");
                assert_int_equal(kube_pod_says_same(&p->pod, &first->pod), rows[i].is_same);
                unref(p);
        }
        unref(first);
}

TEST_CASE(test_pod) {
        KubeScheduledPod *p = decode_ok(
                &kube_scheduled_pod_kind, *state,
                "{'metadata':{'name':'db-0','namespace':'d','annotations':{'controller.kubernetes.io/pod-deletion-cost':'-12',"
                "'karpenter.sh/do-not-disrupt':'true','other':'x'},'ownerReferences':[{'apiVersion':'apps/v1','kind':'DaemonSet','name':'x','uid':'u',"
                "'controller':true}]},'spec':{'nodeName':'n1','terminationGracePeriodSeconds':5,'volumes':[{'name':'data','persistentVolumeClaim':{"
                "'claimName':'data-db-0'}},{'name':'tmp','ephemeral':{}},{'name':'c','configMap':{}}]},'status':{'phase':'Running','nominatedNodeName':'n2'}}");

        assert_int_equal(p->deletion_cost, -12);
        assert_int_equal(p->pod.object.meta.annotations.n_items, 2);
        assert_string_equal(object_meta_annotation(&p->pod.object.meta, "karpenter.sh/do-not-disrupt"), "true");
        assert_true(p->pod.is_daemon && p->pod.needs_kubelet && p->pod.phase == POD_RUNNING);
        assert_int_equal(p->pod.grace_sec, 5);
        assert_string_equal(p->nominated_node, "n2");
        assert_int_equal(p->n_claims, 2);
        assert_string_equal(p->claims[0].name, "data-db-0");
        assert_false(p->claims[0].ephemeral);
        assert_string_equal(p->claims[1].name, "db-0-tmp");
        assert_true(p->claims[1].ephemeral);
        unref(p);
}

TEST_CASE(test_deletion_cost) {
        static const struct {
                const char *text;
                int64_t cost;
        } rows[] = {
                { "0", 0 },   { "10", 10 },     { "-10", -10 },           { "+10", 0 },          { "010", 0 },
                { "", 0 },    { "many", 0 },    { "2147483647", 2147483647 }, { "2147483648", 0 },
                { "1.5", 0 }, { "-2147483648", INT64_C(-2147483648) },    { "-2147483649", 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *meta = strf("'annotations':{'controller.kubernetes.io/pod-deletion-cost':'%s'}", rows[i].text);
                KubeScheduledPod *p = pod(*state, meta, "");

                assert_null(p->pod.object.invalid);
                if (p->deletion_cost != rows[i].cost)
                        fail_msg("cost '%s': got %lld", rows[i].text, (long long) p->deletion_cost);
                unref(p);
        }
}

/* A store keeps the old state of a pod only if nothing that is kept here has changed. */
TEST_CASE(test_says_same) {
        static const char *const specs[] = {
                "'priority':1",
                "'containers':[{'resources':{'requests':{'cpu':'2'}}}]",
                "'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'x'}}]",
                "'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'y'}}]",
                "'volumes':[{'name':'v','ephemeral':{}}]",
                "",
        };

        for (size_t i = 0; i < ELEMENTSOF(specs); i++)
                for (size_t j = 0; j < ELEMENTSOF(specs); j++) {
                        KubeScheduledPod *a = pod(*state, "", specs[i]), *b = pod(*state, "", specs[j]);

                        assert_int_equal(kube_pod_says_same(&a->pod, &b->pod), i == j);
                        unref(a);
                        unref(b);
                }
        KubeScheduledPod *a = pod(*state, "'annotations':{'controller.kubernetes.io/pod-deletion-cost':'1'}", ""), *b = pod(*state, "", "");

        assert_false(kube_pod_says_same(&a->pod, &b->pod));
        unref(a);
        a = pod(*state, "", "");
        assert_true(kube_pod_says_same(&a->pod, &b->pod));
        a->is_resizing = true;
        assert_false(kube_pod_says_same(&a->pod, &b->pod));
        unref(a);
        unref(b);
        a = decode_ok(&kube_scheduled_pod_kind, *state, "{'metadata':{'name':'p','namespace':'x'},'spec':{},'status':{'nominatedNodeName':''}}");
        b = decode_ok(&kube_scheduled_pod_kind, *state, "{'metadata':{'name':'p','namespace':'x'},'spec':{},'status':{'nominatedNodeName':'n'}}");
        assert_null(a->nominated_node);
        assert_false(kube_pod_says_same(&a->pod, &b->pod));
        unref(a);
        unref(b);
}

/* -- nodes ---------------------------------------------------------------------------------------------- */

TEST_CASE(test_node) {
        KubeScheduledNode *n = decode_ok(&kube_scheduled_node_kind, *state,
                                         "{'apiVersion':'v1','kind':'Node','metadata':{'name':'n1','labels':{'a':'b'},'annotations':{'vesper.sh/do-not-disrupt':'true',"
                                         "'karpenter.sh/do-not-consolidate':'true','karpenter.sh/do-not-disrupt':'true',"
                                         "'cluster-autoscaler.kubernetes.io/scale-down-disabled':'true','other':'x'}},'spec':{'unschedulable':true},"
                                         "'status':{'capacity':{'cpu':'8'},'allocatable':{'memory':'1Gi','cpu':'7','pods':'110'},'conditions':[{'type':'Ready','status':'True'}]}}");

        assert_int_equal(n->node.object.meta.annotations.n_items, 4);
        assert_true(n->node.unschedulable && n->is_initialized);
        assert_int_equal(n->allocatable.n_items, 3);
        assert_string_equal(n->allocatable.items[0].key, "cpu");
        assert_string_equal(key_values_get(&n->allocatable, "memory"), "1Gi");
        assert_null(key_values_get(&n->allocatable, "gpu"));
        assert_non_null(kube_node_condition(&n->node, "Ready"));
        unref(n);
}

TEST_CASE(test_node_is_initialized) {
        static const struct {
                const char *ready, *taint;
                bool initialized;
        } rows[] = {
                { "True", "gpu", true },
                { "True", "node.kubernetes.io/unschedulable", true },
                { "True", "node.kubernetes.io/disk-pressure", true },
                { "False", "gpu", false },
                { "Unknown", "gpu", false },
                { "True", "node.cloudprovider.kubernetes.io/uninitialized", false },
                { "True", "node.kubernetes.io/not-ready", false },
                { "True", "node.kubernetes.io/unreachable", false },
                { "True", "node.kubernetes.io/network-unavailable", false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *text = strf("{'metadata':{'name':'n1'},'spec':{'taints':[{'key':'%s','effect':'NoSchedule'}]},"
                                                 "'status':{'conditions':[{'type':'Ready','status':'%s'}]}}",
                                                 rows[i].taint, rows[i].ready);
                KubeScheduledNode *n = decode_ok(&kube_scheduled_node_kind, *state, text);

                if (n->is_initialized != rows[i].initialized)
                        fail_msg("Ready %s, taint %s: expected %d", rows[i].ready, rows[i].taint, rows[i].initialized);
                unref(n);
        }
        KubeScheduledNode *bare = decode_ok(&kube_scheduled_node_kind, *state, "{'metadata':{'name':'n1'}}");

        assert_false(bare->is_initialized);
        assert_int_equal(bare->allocatable.n_items, 0);
        unref(bare);
}

TEST_CASE(test_node_invalid) {
        KubeScheduledNode *n = decode(&kube_scheduled_node_kind, *state,
                                      "{'metadata':{'name':'n1'},'spec':{'providerID':'a://b'},'status':{'allocatable':{'cpu':7,'memory':'1Gi'}}}");

        assert_string_equal(n->node.object.invalid, "a value in status.allocatable is no string");
        assert_string_equal(n->node.provider_id, "a://b");
        assert_string_equal(key_values_get(&n->allocatable, "memory"), "1Gi");
        unref(n);
}

/* -- storage -------------------------------------------------------------------------------------------- */

TEST_CASE(test_volume) {
        KubeVolume *v = decode_ok(&kube_volume_kind, *state,
                                  "{'apiVersion':'v1','kind':'PersistentVolume','metadata':{'name':'pv','labels':{'topology.kubernetes.io/zone':'a'}},'spec':{"
                                  "'storageClassName':'gp3','capacity':{'storage':'1Gi'},'csi':{'driver':'ebs','volumeHandle':'vol-1'},"
                                  "'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[{'values':['a'],'operator':'In','key':'z'}]}]}}}}");

        assert_string_equal(v->storage_class, "gp3");
        assert_string_equal(v->csi_driver, "ebs");
        assert_string_equal(v->csi_handle, "vol-1");
        assert_string_equal(v->node_affinity,
                            "{\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"z\",\"operator\":\"In\",\"values\":[\"a\"]}]}]}");
        assert_string_equal(object_meta_label(&v->object.meta, "topology.kubernetes.io/zone"), "a");
        unref(v);

        v = decode_ok(&kube_volume_kind, *state, "{'metadata':{'name':'pv'},'spec':{'storageClassName':'','hostPath':{'path':'/d'}}}");
        assert_true(!v->storage_class && !v->node_affinity && !v->csi_driver && !v->csi_handle);
        unref(v);

        v = decode(&kube_volume_kind, *state, "{'metadata':{'name':'pv'},'spec':{'nodeAffinity':{'required':7}}}");
        assert_string_equal(v->object.invalid, "spec.nodeAffinity.required is no object");
        unref(v);
}

TEST_CASE(test_claim) {
        static const struct {
                const char *spec, *class, *volume;
                bool one_pod_only;
        } rows[] = {
                { "'storageClassName':'gp3','volumeName':'pv-1','accessModes':['ReadWriteOnce']", "gp3", "pv-1", false },
                { "'accessModes':['ReadOnlyMany','ReadWriteOncePod']", NULL, NULL, true },
                { "'storageClassName':''", NULL, NULL, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *text = strf("{'metadata':{'name':'c','namespace':'d'},'spec':{%s}}", rows[i].spec);
                KubeScheduledClaim *c = decode_ok(&kube_scheduled_claim_kind, *state, text);

                assert_true(streq_ptr(c->storage_class, rows[i].class) && streq_ptr(c->claim.volume_name, rows[i].volume));
                assert_int_equal(c->one_pod_only, rows[i].one_pod_only);
                unref(c);
        }
        KubeScheduledClaim *bad = decode(&kube_scheduled_claim_kind, *state, "{'metadata':{'name':'c','namespace':'d'},'spec':{'accessModes':[7]}}");

        assert_string_equal(bad->claim.object.invalid, "spec.accessModes is no string");
        unref(bad);
}

TEST_CASE(test_storage_class) {
        KubeStorageClass *c = decode_ok(&kube_storage_class_kind, *state,
                                        "{'apiVersion':'storage.k8s.io/v1','kind':'StorageClass','metadata':{'name':'s'},'provisioner':'ebs','parameters':{'a':'b'},"
                                        "'volumeBindingMode':'WaitForFirstConsumer','allowedTopologies':[{'matchLabelExpressions':[{'values':['a'],'key':'z'}]}]}");

        assert_string_equal(c->provisioner, "ebs");
        assert_true(c->waits_for_consumer);
        assert_string_equal(c->allowed_topologies, "[{\"matchLabelExpressions\":[{\"key\":\"z\",\"values\":[\"a\"]}]}]");
        unref(c);

        c = decode_ok(&kube_storage_class_kind, *state,
                      "{'metadata':{'name':'s'},'provisioner':'x','volumeBindingMode':'Immediate','allowedTopologies':[]}");
        assert_false(c->waits_for_consumer);
        assert_null(c->allowed_topologies);
        unref(c);
}

TEST_CASE(test_csi_node) {
        KubeCsiNode *n = decode_ok(&kube_csi_node_kind, *state,
                                   "{'apiVersion':'storage.k8s.io/v1','kind':'CSINode','metadata':{'name':'n1'},'spec':{'drivers':[{'name':'ebs','nodeID':'i-1',"
                                   "'allocatable':{'count':25}},{'name':'efs','allocatable':{}},{'name':'none','allocatable':{'count':0}}]}}");

        assert_int_equal(n->n_drivers, 3);
        assert_string_equal(n->drivers[0].driver, "ebs");
        assert_int_equal(n->drivers[0].volumes, 25);
        assert_int_equal(n->drivers[1].volumes, -1);
        assert_int_equal(n->drivers[2].volumes, 0);
        unref(n);

        n = decode_ok(&kube_csi_node_kind, *state, "{'metadata':{'name':'n1'},'spec':{'drivers':null}}");
        assert_int_equal(n->n_drivers, 0);
        unref(n);

        n = decode(&kube_csi_node_kind, *state, "{'metadata':{'name':'n1'},'spec':{'drivers':[{'allocatable':{'count':1}}]}}");
        assert_string_equal(n->object.invalid, "a driver in spec.drivers has no name");
        unref(n);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_scheduling, setup, teardown),
                cmocka_unit_test_setup_teardown(test_invalid, setup, teardown),
                cmocka_unit_test_setup_teardown(test_siblings, setup, teardown),
                cmocka_unit_test_setup_teardown(test_labels, setup, teardown),
                cmocka_unit_test_setup_teardown(test_pod, setup, teardown),
                cmocka_unit_test_setup_teardown(test_deletion_cost, setup, teardown),
                cmocka_unit_test_setup_teardown(test_says_same, setup, teardown),
                cmocka_unit_test_setup_teardown(test_node, setup, teardown),
                cmocka_unit_test_setup_teardown(test_node_is_initialized, setup, teardown),
                cmocka_unit_test_setup_teardown(test_node_invalid, setup, teardown),
                cmocka_unit_test_setup_teardown(test_volume, setup, teardown),
                cmocka_unit_test_setup_teardown(test_claim, setup, teardown),
                cmocka_unit_test_setup_teardown(test_storage_class, setup, teardown),
                cmocka_unit_test_setup_teardown(test_csi_node, setup, teardown),
        };

        return cmocka_run_group_tests_name("kube-scheduling", tests, NULL, NULL);
}
