/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster-maker.h"
#include "cmocka-test.h"
#include "fuzz-objects.h"
#include "snapshot-anonymize.h"
#include "snapshot-file.h"
#include "string-util.h"

static char *save(const Snapshot *s) {
        char *text = NULL;
        size_t size;

        assert_return_code(snapshot_save(s, &text, &size), 0);
        return text;
}

static void put(Snapshot *s, SnapshotKind kind, const char *text) {
        _cleanup_free_ char *json = strdup(text);

        assert_non_null(json);
        for (char *p = json; *p; p++)
                if (*p == '\'')
                        *p = '"';
        (void) cluster_put(s, kind, json);
}

/* -- what is kept and what is not ----------------------------------------------------------------------- */

/* Each text that somebody might know has secret in it, or is one of these. */
static void put_names(Snapshot *s) {
        put(s, SNAPSHOT_NODES,
            "{'metadata':{'name':'secret-node','uid':'secret-u1','labels':{'kubernetes.io/hostname':'secret-node',"
            "'topology.kubernetes.io/zone':'secret-zone','secret.io/team':'secret-x','gen':'4','account':'123456789012','ready':'true'},"
            "'annotations':{'karpenter.sh/do-not-disrupt':'2h','vesper.sh/interruption':'{\\\"id\\\":\\\"secret-i\\\",\\\"kind\\\":\\\"spot\\\","
            "\\\"podsLeft\\\":3,\\\"deadline\\\":\\\"2027-01-15T08:01:00Z\\\"}','karpenter.sh/note':'secret-note'},"
            "'finalizers':['secret.io/f','vesper.sh/termination']},'spec':{'providerID':'aws:///secret','unschedulable':true,"
            "'taints':[{'key':'secret.io/dedicated','value':'secret-team','effect':'NoSchedule'},{'key':'node.kubernetes.io/unschedulable',"
            "'effect':'NoSchedule'}]},'status':{'allocatable':{'cpu':'4','memory':'8Gi','pods':'110','hugepages-2Mi':'0','secret.io/chip':'2'},"
            "'conditions':[{'type':'Ready','status':'True','reason':'secret','lastTransitionTime':'2027-01-15T07:00:00Z'},"
            "{'type':'secretProblem','status':'False'}],'volumesInUse':['kubernetes.io/csi/secret^v'],"
            "'volumesAttached':[{'name':'kubernetes.io/csi/secret^v'}]}}");
        put(s, SNAPSHOT_PODS,
            "{'metadata':{'name':'secret-pod','namespace':'secret-ns','uid':'secret-u2','labels':{'app':'secret-app'},"
            "'ownerReferences':[{'apiVersion':'secret.io/v1','kind':'secretSet','name':'secret-set','uid':'secret-u3','controller':true}]},"
            "'spec':{'nodeName':'secret-node','schedulerName':'secret-scheduler','priorityClassName':'secret-class','priority':7,"
            "'containers':[{'resources':{'requests':{'cpu':'100m','secret.io/chip':'1'}},'ports':[{'hostPort':80,'hostIP':'10.9.8.7','protocol':'TCP'}]}],"
            "'nodeSelector':{'secret.io/team':'secret-x'},'tolerations':[{'key':'secret.io/dedicated','operator':'Equal','value':'secret-team'}],"
            "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{'matchExpressions':"
            "[{'key':'gen','operator':'Gt','values':['3']},{'key':'secret.io/team','operator':'In','values':['secret-x','secret-y']}],"
            "'matchFields':[{'key':'metadata.name','operator':'In','values':['secret-node']}]}]}},"
            "'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':'kubernetes.io/hostname','labelSelector':"
            "{'matchLabels':{'app':'secret-app'}},'namespaces':['secret-ns'],'namespaceSelector':{'matchExpressions':"
            "[{'key':'kubernetes.io/metadata.name','operator':'In','values':['secret-ns']}]},'matchLabelKeys':['pod-template-hash','secret-key']}]}},"
            "'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'secret.io/rack','whenUnsatisfiable':'DoNotSchedule',"
            "'labelSelector':{'matchLabels':{'app':'secret-app'}}}],"
            "'volumes':[{'name':'secret-vol','ephemeral':{}},{'name':'x','persistentVolumeClaim':{'claimName':'secret-claim'}}]},"
            "'status':{'phase':'Running','nominatedNodeName':'secret-node'}}");
        put(s, SNAPSHOT_PODS, "{'metadata':{'name':'broken','namespace':'secret-ns'},'spec':{'nodeSelector':{'secret-k':7}}}");
        put(s, SNAPSHOT_PDBS,
            "{'metadata':{'name':'secret-pdb','namespace':'secret-ns','generation':2},'spec':{'selector':{'matchLabels':{'app':'secret-app'}}},"
            "'status':{'disruptionsAllowed':1,'observedGeneration':2}}");
        put(s, SNAPSHOT_NAMESPACES,
            "{'metadata':{'name':'secret-ns','labels':{'kubernetes.io/metadata.name':'secret-ns','team':'secret-team'}}}");
        put(s, SNAPSHOT_VOLUME_CLAIMS,
            "{'metadata':{'name':'secret-pod-secret-vol','namespace':'secret-ns'},'spec':{'volumeName':'secret-pv','storageClassName':'secret-sc'}}");
        put(s, SNAPSHOT_VOLUME_CLAIMS, "{'metadata':{'name':'secret-claim','namespace':'secret-ns'},'spec':{'volumeName':'secret-pv'}}");
        put(s, SNAPSHOT_VOLUMES,
            "{'metadata':{'name':'secret-pv','labels':{'topology.kubernetes.io/zone':'secret-zone__secret-other'}},'spec':{'storageClassName':'secret-sc',"
            "'csi':{'driver':'csi.secret.io','volumeHandle':'vol-secret'},'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':"
            "[{'key':'topology.secret.io/zone','operator':'In','values':['secret-zone']}]}]}}}}");
        put(s, SNAPSHOT_STORAGE_CLASSES,
            "{'metadata':{'name':'secret-sc'},'provisioner':'csi.secret.io','volumeBindingMode':'WaitForFirstConsumer','allowedTopologies':"
            "[{'matchLabelExpressions':[{'key':'topology.secret.io/zone','values':['secret-zone']}]}]}");
        put(s, SNAPSHOT_CSI_NODES, "{'metadata':{'name':'secret-node'},'spec':{'drivers':[{'name':'csi.secret.io','allocatable':{'count':25}}]}}");
        put(s, SNAPSHOT_NODE_POOLS,
            "{'metadata':{'name':'secret-pool','annotations':{'vesper.sh/paused':'true'}},'spec':{'selector':{'matchLabels':{'secret.io/team':'secret-x'}},"
            "'provider':{'name':'secret-p','group':'secret-g'},'repair':[{'condition':'secretProblem','status':'True','reason':'secret','action':'None'}]},"
            "'status':{'conditions':[{'type':'Ready','status':'True','message':'secret'}]}}");
        put(s, SNAPSHOT_NODE_CLAIMS,
            "{'metadata':{'name':'secret-nc'},'spec':{'nodePool':'secret-pool','providerID':'aws:///secret','nodeName':'secret-node',"
            "'replaces':['secret-nc0']},'status':{'group':{'token':'launch-secret','like':'aws:///secret','zone':'secret-zone',"
            "'message':'secret'},'successor':{'claim':'secret-nc1'},'nodeName':'secret-node','nodeUID':'secret-u1','lastCloudError':'secret','phase':'Ready'}}");
        put(s, SNAPSHOT_NODE_BUDGETS,
            "{'metadata':{'name':'secret-b'},'spec':{'maxUnavailable':'20%','selector':{'matchLabels':{'secret.io/team':'secret-x'}}},"
            "'status':{'disruptedNodes':[{'name':'secret-node','uid':'secret-u1','kind':'DELETE','holder':'secret-h','heldBefore':'secret-r'}]}}");
}

static void check_texts(const char *text) {
        static const char *const gone[] = { "secret", "10.9.8.7", "123456789012", "aws:", "vol-" };
        static const char *const kept[] = { "\"kubernetes.io/hostname\":", "\"topology.kubernetes.io/zone\":", "\"karpenter.sh/do-not-disrupt\":\"2h\"",
                                            "\"vesper.sh/paused\":\"true\"", "\"vesper.sh/termination\"", "node.kubernetes.io/unschedulable",
                                            "\"cpu\":\"100m\"", "\"hugepages-2Mi\":\"0\"", "\"count\":25", "\"20%\"", "\"pod-template-hash\"",
                                            "spot", "\"2027-01-15T07:00:00Z\"", "2027-01-15T08:01:00Z", "\"4\"", "[\"3\"]", "\"key\":\"metadata.name\"",
                                            "\"protocol\":\"TCP\"", "a field could not be read" };

        for (size_t i = 0; i < ELEMENTSOF(gone); i++)
                if (strstr(text, gone[i]))
                        fail_msg("'%s' is still there: %s", gone[i], text);
        for (size_t i = 0; i < ELEMENTSOF(kept); i++)
                if (!strstr(text, kept[i]))
                        fail_msg("'%s' is not there any more: %s", kept[i], text);
}

static void *only(const Snapshot *s, SnapshotKind kind) {
        return hashmap_first(s->objects[kind], NULL);
}

/* What was the same name is the same made-up one, wherever it stands. */
static void check_references(const Snapshot *s) {
        const KubeScheduledNode *node = only(s, SNAPSHOT_NODES);
        const KubeScheduledPod *pod = only(s, SNAPSHOT_PODS);
        const KubeScheduledClaim *claim = only(s, SNAPSHOT_VOLUME_CLAIMS);
        const KubeVolume *volume = only(s, SNAPSHOT_VOLUMES);
        const KubeStorageClass *class = only(s, SNAPSHOT_STORAGE_CLASSES);
        const KubeCsiNode *csi = only(s, SNAPSHOT_CSI_NODES);
        const KubeNodePool *pool = only(s, SNAPSHOT_NODE_POOLS);
        const KubeNodeClaim *machine = only(s, SNAPSHOT_NODE_CLAIMS);
        const KubeNodeBudget *budget = only(s, SNAPSHOT_NODE_BUDGETS);
        const KubeObject *ns = only(s, SNAPSHOT_NAMESPACES);
        const char *name = node->node.object.meta.name;
        _cleanup_free_ char *key = strf("%s/%s", pod->pod.object.meta.ns, pod->claims[0].name);

        if (pod->n_claims != 2 || !pod->claims[0].ephemeral)
                fail_msg("the pod's claims are others");
        assert_string_equal(pod->pod.node_name, name);
        assert_string_equal(csi->object.meta.name, name);
        assert_string_equal(object_meta_label(&node->node.object.meta, "kubernetes.io/hostname"), name);
        assert_string_equal(pod->pod.object.meta.ns, ns->meta.name);
        assert_string_equal(object_meta_label(&ns->meta, "kubernetes.io/metadata.name"), ns->meta.name);
        assert_non_null(key);
        assert_non_null(snapshot_get(s, SNAPSHOT_VOLUME_CLAIMS, key)); /* that of the ephemeral volume */
        assert_string_equal(claim->claim.volume_name, volume->object.meta.name);
        assert_string_equal(claim->storage_class, class->object.meta.name);
        assert_string_equal(volume->csi_driver, class->provisioner);
        assert_string_equal(volume->csi_driver, csi->drivers[0].driver);
        assert_true(kube_pdb_matches(only(s, SNAPSHOT_PDBS), &pod->pod));
        assert_true(selector_matches(pool->selector, &node->node.object.meta.labels));
        assert_string_equal(machine->node_pool, pool->object.meta.name);
        assert_string_equal(machine->request.like, machine->provider_id);
        assert_string_equal(machine->node_uid, node->node.object.meta.uid);
        assert_string_equal(budget->charges[0].name, name);
        assert_true(kube_node_budget_matches(budget, &node->node));
        assert_non_null(strstr(pod->scheduling, name));
}

static int setup(void **state) {
        return intern_pool_new((InternPool **) state);
}

static int teardown(void **state) {
        assert_int_equal(intern_pool_size(*state), 0);
        intern_pool_free(*state);
        return 0;
}

TEST_CASE(test_secrets) {
        _cleanup_(snapshot_freep) Snapshot *s = NULL, *made = NULL, *again = NULL;
        _cleanup_free_ char *text = NULL, *why = NULL;

        assert_return_code(snapshot_new(*state, 7 * USEC_PER_DAY, &s), 0);
        put_names(s);
        s->is_known[SNAPSHOT_CSI_NODES] = true;
        assert_return_code(snapshot_anonymize(s, &made), 0);
        for (SnapshotKind k = 0; k < _SNAPSHOT_KIND_MAX; k++) {
                assert_int_equal(hashmap_size(made->objects[k]), hashmap_size(s->objects[k]));
                assert_int_equal(made->is_known[k], s->is_known[k]);
        }
        text = save(made);
        check_texts(text);
        check_references(made);
        if (snapshot_load(text, strlen(text), *state, &again, &why) < 0)
                fail_msg("%s", strempty(why));
}

/* Only what says nothing of the pods' own is invalid: its sentence may name anything. */
TEST_CASE(test_invalid_stays) {
        _cleanup_(snapshot_freep) Snapshot *s = NULL, *made = NULL;
        size_t n = 0;
        KubeObject *o;

        assert_return_code(snapshot_new(*state, 0, &s), 0);
        put_names(s);
        assert_return_code(snapshot_anonymize(s, &made), 0);
        HASHMAP_FOREACH (o, made->objects[SNAPSHOT_PODS])
                n += o->invalid != NULL;
        assert_int_equal(n, 1);
        HASHMAP_FOREACH (o, made->objects[SNAPSHOT_NODE_POOLS])
                assert_null(o->invalid);
}

static bool is_one_of(const char *s, const char *const *list, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (streq(s, list[i]))
                        return true;
        return false;
}

/* Keys of maps are renamed, and sorted anew: only how many there are counts. */
static void assert_has_members(const Json *plain, const Json *made, const char *member) {
        static const char *const maps[] = { "labels", "annotations", "requests", "overhead", "allocatable", "nodeSelector", "matchLabels" };
        static const char *const left_out[] = { "reason", "message", "repair" };
        const Json *m = json_first(made);

        if (json_is_array(plain)) {
                assert_int_equal(json_size(plain), json_size(made));
                JSON_FOREACH (i, plain) {
                        assert_has_members(i, m, member);
                        m = json_next(m);
                }
        } else if (json_is_object(plain) && is_one_of(member, maps, ELEMENTSOF(maps)))
                assert_int_equal(json_size(plain), json_size(made));
        else if (json_is_object(plain))
                JSON_FOREACH (i, plain) {
                        if (is_one_of(json_key(i), left_out, ELEMENTSOF(left_out)))
                                continue;
                        if (!json_get(made, json_key(i)))
                                fail_msg("%s is lost: snapshot-anonymize.c does not know it", json_key(i));
                        assert_has_members(i, json_get(made, json_key(i)), json_key(i));
                }
}

/* The only object of it, as its file has it. */
static JsonDoc *only_line(const Snapshot *s) {
        _cleanup_free_ char *text = save(s);
        JsonDoc *doc = NULL;
        size_t head = strcspn(text, "\n");

        assert_return_code(json_parse(text + head, strlen(text + head), SIZE_MAX, &doc, NULL), 0);
        return doc;
}

/* Of objects that have every field that a file has, each member is known: a new one has to be given its meaning. */
TEST_CASE(test_every_member_is_known) {
        static const struct {
                SnapshotKind kind;
                const char *text;
        } objects[] = {
                { SNAPSHOT_NODES, fuzz_node }, { SNAPSHOT_NODES, fuzz_scheduled_node }, { SNAPSHOT_PODS, fuzz_pod },
                { SNAPSHOT_PODS, fuzz_scheduled_pod }, { SNAPSHOT_PDBS, fuzz_pdb }, { SNAPSHOT_VOLUME_CLAIMS, fuzz_scheduled_claim },
                { SNAPSHOT_VOLUMES, fuzz_volume }, { SNAPSHOT_STORAGE_CLASSES, fuzz_storage_class }, { SNAPSHOT_CSI_NODES, fuzz_csi_node },
                { SNAPSHOT_NAMESPACES, fuzz_namespace }, { SNAPSHOT_NODE_POOLS, fuzz_node_pool },
                { SNAPSHOT_NODE_CLAIMS, fuzz_node_claim }, { SNAPSHOT_NODE_BUDGETS, fuzz_node_budget },
        };

        for (size_t i = 0; i < ELEMENTSOF(objects); i++) {
                _cleanup_(snapshot_freep) Snapshot *s = NULL, *made = NULL;
                _cleanup_(json_doc_freep) JsonDoc *plain_doc = NULL, *made_doc = NULL;

                assert_return_code(snapshot_new(*state, 0, &s), 0);
                put(s, objects[i].kind, objects[i].text);
                assert_return_code(snapshot_anonymize(s, &made), 0);
                plain_doc = only_line(s);
                made_doc = only_line(made);
                assert_has_members(json_root(plain_doc), json_root(made_doc), "");
        }
}

/* -- the same verdicts ---------------------------------------------------------------------------------- */

static uint64_t draw(uint64_t *state) {
        uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

static unsigned below(uint64_t *state, unsigned n) {
        return (unsigned) (draw(state) % n);
}

/* Names that sort badly: one begins as the other, with characters on both sides of '/'. */
static const char *const namespaces[] = { "a", "a-b", "a.c", "a0", "b", "team" };
static const char *const teams[] = { "red", "green", "a", "true" };

static void put_namespaces(Snapshot *s) {
        for (size_t i = 0; i < ELEMENTSOF(namespaces); i++) {
                _cleanup_free_ char *text = strf("{'metadata':{'name':'%s','labels':{'kubernetes.io/metadata.name':'%s','team':'%s'}}}",
                                                 namespaces[i], namespaces[i], teams[i % ELEMENTSOF(teams)]);

                put(s, SNAPSHOT_NAMESPACES, text);
        }
}

static void put_node(Snapshot *s, uint64_t *state, unsigned i) {
        static const char *const names[] = { "a", "a-1", "a.1", "a1", "b", "node-2", "node-10", "z" };
        _cleanup_free_ char *name = strf("%s%s%u", names[i % ELEMENTSOF(names)], i % 2 ? "-" : "", i / 4), *text = NULL;
        unsigned n = 1 + below(state, 8);

        text = strf("{'metadata':{'name':'%s','uid':'%u','labels':{'kubernetes.io/hostname':'%s','topology.kubernetes.io/zone':'z%u',"
                    "'gen':'%u','team':'%s','rack.example.com/row':'%u'}},'spec':{%s'taints':[%s]},'status':{'allocatable':{'cpu':'%u','memory':'16Gi',"
                    "'pods':'%u','example.com/fpga':'%u'},'conditions':[{'type':'Ready','status':'True'}]}}",
                    name, 1000 - i, name, below(state, 3), below(state, 12), teams[below(state, 4)], below(state, 4),
                    below(state, 12) == 0 ? "'unschedulable':true," : "",
                    below(state, 4) == 0   ? "{'key':'dedicated','value':'red','effect':'NoSchedule'}"
                    : below(state, 8) == 0 ? "{'key':'node.kubernetes.io/not-ready','effect':'NoSchedule'}"
                                           : "",
                    n, 2 + below(state, 8), below(state, 3));
        assert_true(name && text);
        put(s, SNAPSHOT_NODES, text);
        free(text);
        text = strf("{'metadata':{'name':'%s'},'spec':{'drivers':[{'name':'csi.example','allocatable':{'count':%u}}]}}", name, 1 + below(state, 2));
        put(s, SNAPSHOT_CSI_NODES, text);
}

static char *draw_rules(uint64_t *state) {
        const char *team = teams[below(state, 4)], *ns = namespaces[below(state, ELEMENTSOF(namespaces))];
        unsigned n = below(state, 12);

        switch (below(state, 13)) {
        case 0:
                return strf("'nodeSelector':{'team':'%s'}", team);
        case 1:
                return strf("'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{'matchExpressions':"
                            "[{'key':'gen','operator':'%s','values':['%u']}]}]}}}", n % 2 ? "Gt" : "Lt", n);
        case 2:
                return strf("'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':'rack.example.com/row',"
                            "'labelSelector':{'matchLabels':{'app':'%u'}},'namespaces':['%s']}]}}", n % 4, ns);
        case 3:
                return strf("'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':'topology.kubernetes.io/zone',"
                            "'labelSelector':{'matchExpressions':[{'key':'app','operator':'In','values':['%u','9']}]},'namespaceSelector':"
                            "{'matchLabels':{'team':'%s'}}}]}}", n % 4, team);
        case 4:
                return strf("'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'%s','whenUnsatisfiable':'DoNotSchedule','labelSelector':"
                            "{'matchLabels':{'app':'%u'}},'matchLabelKeys':['hash']}]", n % 2 ? "kubernetes.io/hostname" : "topology.kubernetes.io/zone", n % 4);
        case 5:
                return strf("'tolerations':[{'key':'dedicated','operator':'Equal','value':'%s','effect':'NoSchedule'}]", team);
        case 6:
                return strf("'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'claim-%u'}},{'name':'scratch','ephemeral':{}}]", n);
        case 11:
                return strf("'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'claim-%u'}}]", n);
        case 7:
                return strf("'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':1,'preference':{'matchExpressions':"
                            "[{'key':'team','operator':'NotIn','values':['%s']}]}}]}}", team);
        case 8:
                return strf("'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{'matchFields':"
                            "[{'key':'metadata.name','operator':'NotIn','values':['a0']}]}]}}}");
        case 9:
                return strf("'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':'kubernetes.io/hostname',"
                            "'labelSelector':{'matchLabels':{'app':'%u'}},'namespaceSelector':{'matchExpressions':[{'key':'kubernetes.io/metadata.name',"
                            "'operator':'In','values':['%s','b']}]}}]}}", n % 4, ns);
        case 10:
                return strf("'schedulerName':'%s'", n % 4 ? "default-scheduler" : "other");
        default:
                return strdup("'priority':0");
        }
}

static void put_pod(Snapshot *s, uint64_t *state, unsigned i, const char *node) {
        static const char *const names[] = { "p", "p-", "p.", "q", "p0" };
        _cleanup_free_ char *rules = draw_rules(state), *text = NULL;

        text = strf("{'metadata':{'name':'%s%u','namespace':'%s','uid':'%u','labels':{'app':'%u','hash':'%u'},'ownerReferences':[{'apiVersion':'apps/v1',"
                    "'kind':'%s','name':'o','uid':'u','controller':true}]},'spec':{'nodeName':'%s','containers':[{'resources':{'requests':{'cpu':'%u00m',"
                    "'memory':'%u00Mi'%s}}%s}],%s},'status':{'phase':'Running'}}",
                    names[below(state, 5)], i, namespaces[below(state, ELEMENTSOF(namespaces))], below(state, 100000), below(state, 4), below(state, 2),
                    below(state, 10) == 0 ? "DaemonSet" : "ReplicaSet", node, 1 + below(state, 12), 1 + below(state, 12),
                    below(state, 8) == 0 ? ",'example.com/fpga':'1'" : "",
                    below(state, 10) == 0 ? ",'ports':[{'hostPort':80,'protocol':'TCP','hostIP':'10.0.0.7'}]"
                    : below(state, 10) == 0 ? ",'ports':[{'hostPort':80,'protocol':'TCP','hostIP':'0.0.0.0'}]" : "", rules);
        assert_true(rules && text);
        put(s, SNAPSHOT_PODS, text);
}

static void put_storage(Snapshot *s, uint64_t *state) {
        static const char *const zones[] = { "", "", "'topology.kubernetes.io/zone':'z0'", "'topology.kubernetes.io/zone':'z1__z2'" };

        for (unsigned i = 0; i < 12; i++) {
                for (size_t k = 0; k < ELEMENTSOF(namespaces); k++) {
                        _cleanup_free_ char *claim = strf("{'metadata':{'name':'claim-%u','namespace':'%s'},'spec':{'volumeName':'pv-%u','storageClassName':'%s'%s}}",
                                                          i, namespaces[k], i, i % 2 ? "fast" : "slow", i == 5 ? ",'accessModes':['ReadWriteOncePod']" : "");

                        put(s, SNAPSHOT_VOLUME_CLAIMS, claim);
                }
                _cleanup_free_ char *volume = strf("{'metadata':{'name':'pv-%u','labels':{%s}},'spec':{'csi':{'driver':'csi.example',"
                                                   "'volumeHandle':'h%u'}}}", i, zones[below(state, 4)], i);

                put(s, SNAPSHOT_VOLUMES, volume);
        }
        put(s, SNAPSHOT_STORAGE_CLASSES,
            "{'metadata':{'name':'fast'},'provisioner':'csi.example','volumeBindingMode':'WaitForFirstConsumer','allowedTopologies':[{'matchLabelExpressions':"
            "[{'key':'topology.kubernetes.io/zone','values':['z0','z1']}]}]}");
}

/* The claim of each pod's ephemeral volume, if it has one. */
static void put_ephemeral_claims(Snapshot *s, uint64_t *state) {
        KubeObject *o;

        HASHMAP_FOREACH (o, s->objects[SNAPSHOT_PODS]) {
                _cleanup_free_ char *claim = strf("{'metadata':{'name':'%s-scratch','namespace':'%s','ownerReferences':[{'apiVersion':'v1','kind':'Pod',"
                                                  "'name':'%s','uid':'%s','controller':true}]},'spec':{'volumeName':'%s'}}",
                                                  o->meta.name, o->meta.ns, o->meta.name, strempty(o->meta.uid), below(state, 2) ? "pv-1" : "pv-2");

                if (((const KubeScheduledPod *) o)->n_claims > 1)
                        put(s, SNAPSHOT_VOLUME_CLAIMS, claim);
        }
}

static Snapshot *make_cluster(InternPool *pool, uint64_t seed) {
        uint64_t state = seed;
        KubeObject *nodes[24];
        Snapshot *s = NULL;
        size_t n = 0;
        KubeObject *o;

        assert_return_code(snapshot_new(pool, 0, &s), 0);
        put_namespaces(s);
        for (unsigned i = 0; i < 12; i++)
                put_node(s, &state, i);
        put_storage(s, &state);
        HASHMAP_FOREACH (o, s->objects[SNAPSHOT_NODES])
                nodes[n++] = o;
        for (unsigned i = 0; i < 30; i++)
                put_pod(s, &state, i, nodes[below(&state, (unsigned) n)]->meta.name);
        put_ephemeral_claims(s, &state);
        for (SnapshotKind k = 0; k < _SNAPSHOT_KIND_MAX; k++)
                s->is_known[k] = true;
        return s;
}

static void assert_same_unplaced(const SimulateUnplaced *a, const SimulateUnplaced *b) {
        assert_int_equal(a->pod, b->pod);
        assert_int_equal(a->unmodelled, b->unmodelled);
        for (size_t i = 0; i < _FIT_REASON_MAX; i++)
                assert_int_equal(a->counts[i], b->counts[i]);
}

static void assert_same_verdicts(const SimulateVerdict *a, const SimulateVerdict *b) {
        assert_int_equal(a->fits, b->fits);
        assert_int_equal(a->fits_packed, b->fits_packed);
        assert_int_equal(a->fits_spread, b->fits_spread);
        assert_int_equal(a->only_by_preference, b->only_by_preference);
        assert_int_equal(a->n_placements, b->n_placements);
        for (size_t i = 0; i < a->n_placements; i++) {
                assert_int_equal(a->placements[i].pod, b->placements[i].pod);
                assert_int_equal(a->placements[i].node, b->placements[i].node);
        }
        assert_int_equal(a->n_unplaced, b->n_unplaced);
        for (size_t i = 0; i < a->n_unplaced; i++)
                assert_same_unplaced(a->unplaced + i, b->unplaced + i);
}

typedef struct Tally {
        size_t fits, no, placements;
        size_t reasons[_FIT_REASON_MAX];
} Tally;

static void compare_verdicts(const Snapshot *plain, const Snapshot *made, bool preferences, Tally *tally) {
        const SimulateOptions options = { .respect_preferences = preferences };
        _cleanup_(simulator_freep) Simulator *s = NULL, *m = NULL;

        assert_return_code(simulator_new(plain, &s), 0);
        assert_return_code(simulator_new(made, &m), 0);
        assert_int_equal(simulator_n_nodes(s), simulator_n_nodes(m));
        assert_int_equal(simulator_n_pods(s), simulator_n_pods(m));
        assert_int_equal(simulator_n_templates(s), simulator_n_templates(m));
        for (uint32_t i = 0; i < simulator_n_nodes(s); i++) {
                uint32_t nodes[2] = { i, (i + 1) % simulator_n_nodes(s) };

                for (size_t n = 1; n <= 2; n++) {
                        SimulateVerdict a, b;

                        assert_return_code(simulate_removal(s, nodes, n, &options, false, &a), 0);
                        assert_return_code(simulate_removal(m, nodes, n, &options, false, &b), 0);
                        assert_same_verdicts(&a, &b);
                        tally->fits += a.fits;
                        tally->no += !a.fits;
                        tally->placements += a.n_placements;
                        for (size_t k = 0; k < a.n_unplaced; k++)
                                for (size_t r = 0; r < _FIT_REASON_MAX; r++)
                                        tally->reasons[r] += a.unplaced[k].counts[r] > 0;
                        simulate_verdict_done(&a);
                        simulate_verdict_done(&b);
                }
        }
}

static void compare_seed(InternPool *pool, uint64_t seed, Tally *tally) {
        _cleanup_(snapshot_freep) Snapshot *s = make_cluster(pool, seed), *made = NULL;

        assert_return_code(snapshot_anonymize(s, &made), 0);
        compare_verdicts(s, made, seed % 2 == 0, tally);
}

/* VESPER_SEED: one of them. */
TEST_CASE(test_same_verdicts) {
        static const FitReason wanted[] = { FIT_TAINT, FIT_NODE_AFFINITY, FIT_RESOURCES,    FIT_PORTS,   FIT_VOLUME,
                                            FIT_VOLUME_LIMIT, FIT_SPREAD, FIT_AFFINITY, FIT_ANTI_AFFINITY, FIT_PREFERENCE };
        const char *only_seed = getenv("VESPER_SEED");
        Tally tally = { 0 };

        if (only_seed) {
                compare_seed(*state, strtoull(only_seed, NULL, 10), &tally);
                return;
        }
        for (uint64_t seed = 1; seed <= 60; seed++) {
                print_message("seed %llu\n", (unsigned long long) seed);
                compare_seed(*state, seed, &tally);
        }
        print_message("%zu removals fit, %zu do not, %zu placements\n", tally.fits, tally.no, tally.placements);
        for (size_t r = 0; r < _FIT_REASON_MAX; r++)
                print_message("%-20s %zu\n", fit_reason_to_string((FitReason) r), tally.reasons[r]);
        /* The clusters are such that it matters. */
        assert_true(tally.fits > 100 && tally.no > 100 && tally.placements > 500);
        for (size_t i = 0; i < ELEMENTSOF(wanted); i++)
                assert_true(tally.reasons[wanted[i]] > 0);
}

/* And of a cluster as big ones are. */
TEST_CASE(test_same_verdicts_of_a_large_one) {
        const ClusterShape shape = { .seed = 3, .n_nodes = 60, .n_pods = 900, .n_owners = 90, .fill_percent = 70 };
        _cleanup_(snapshot_freep) Snapshot *made = NULL;
        MadeCluster c;
        Tally tally = { 0 };

        assert_return_code(cluster_make(&shape, &c), 0);
        assert_return_code(snapshot_anonymize(c.snapshot, &made), 0);
        compare_verdicts(c.snapshot, made, false, &tally);
        assert_true(tally.placements > 500);
        made = snapshot_free(made);
        cluster_done(&c);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_secrets, setup, teardown),
                cmocka_unit_test_setup_teardown(test_invalid_stays, setup, teardown),
                cmocka_unit_test_setup_teardown(test_every_member_is_known, setup, teardown),
                cmocka_unit_test_setup_teardown(test_same_verdicts, setup, teardown),
                cmocka_unit_test(test_same_verdicts_of_a_large_one),
        };

        return cmocka_run_group_tests_name("snapshot-anonymize", tests, NULL, NULL);
}
