/* SPDX-License-Identifier: Apache-2.0 */
/* Each allocation of a simulation fails once: it has to say so, lose nothing, and leave what it was told of as it was. */
#include <stdio.h>
#include <stdlib.h>

#include "alloc-fault.h"
#include "cmocka-test.h"
#include "simulate.h"
#include "snapshot-file.h"
#include "string-util.h"

#define NODE(name, zone, more) \
        "{'apiVersion':'v1','kind':'Node','metadata':{'name':'" name "','labels':{'kubernetes.io/hostname':'" name "'," \
        "'topology.kubernetes.io/zone':'" zone "','size':'4'}},'spec':{" more "},'status':{'allocatable':{'cpu':'4','memory':'8Gi'," \
        "'pods':'20','example.com/gpu':'2'},'volumesAttached':[{'name':'kubernetes.io/csi/d^left'}],'conditions':[{'type':'Ready','status':'True'}]}},"
#define POD(name, app, node, spec) \
        "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'" name "','namespace':'x','uid':'" name "','labels':{'app':'" app "'}," \
        "'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'o','uid':'u','controller':true}]}," \
        "'spec':{'nodeName':'" node "','containers':[{'name':'c','resources':{'requests':{'cpu':'500m','example.com/gpu':'1'}}," \
        "'ports':[{'hostPort':80,'hostIP':'10.0.0.1'}]}]," spec "},'status':{'phase':'Running'}},"
#define TERM "{'topologyKey':'topology.kubernetes.io/zone','labelSelector':{'matchLabels':{'app':'a'}},'namespaces':['x']}"
#define TERM_OF_NAMESPACES "{'topologyKey':'kubernetes.io/hostname','labelSelector':{'matchLabels':{'app':'b'}},'namespaceSelector':{'matchLabels':{'team':'t'}}}"
#define SPREAD(key, when) \
        "{'maxSkew':2,'topologyKey':'" key "','whenUnsatisfiable':'" when "','nodeTaintsPolicy':'Honor','matchLabelKeys':['app']," \
        "'labelSelector':{'matchLabels':{'app':'a'}}}"

static const char objects[] =
        "{'kind':'List','apiVersion':'v1','items':["
        NODE("n1", "1", "'taints':[{'key':'k','value':'v','effect':'NoSchedule'}]") NODE("n2", "1", "") NODE("n3", "2", "")
        POD("p1", "a", "n1", "'tolerations':[{'key':'k','operator':'Equal','value':'v','effect':'NoSchedule'}],"
            "'topologySpreadConstraints':[" SPREAD("topology.kubernetes.io/zone", "DoNotSchedule") "," SPREAD("kubernetes.io/hostname", "ScheduleAnyway") "]")
        POD("p2", "b", "n1", "'tolerations':[{'operator':'Exists'}],'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[" TERM "],"
            "'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':1,'podAffinityTerm':" TERM "}]},"
            "'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[" TERM_OF_NAMESPACES "],"
            "'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':1,'podAffinityTerm':" TERM_OF_NAMESPACES "}]},"
            "'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{'matchExpressions':["
            "{'key':'size','operator':'Gt','values':['1']}],'matchFields':[{'key':'metadata.name','operator':'NotIn','values':['n9']}]}]},"
            "'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':1,'preference':{'matchExpressions':[{'key':'size','operator':'Exists'}]}}]}}")
        POD("p3", "c", "n1", "'nodeSelector':{'size':'4'},'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'k1'}},"
            "{'name':'w','persistentVolumeClaim':{'claimName':'k2'}}]")
        POD("p4", "c", "", "'nodeSelector':{'size':'4'}")
        POD("p5", "c", "", "'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':'size'},{'labelSelector':{}}]}}")
        POD("p6", "c", "n4", "'volumes':[{'name':'w','persistentVolumeClaim':{'claimName':'k2'}}]")
        "{'apiVersion':'v1','kind':'Node','metadata':{'name':'n4','deletionTimestamp':'2026-01-01T00:00:00Z','labels':{'topology.kubernetes.io/zone':'1'}},"
        "'status':{'conditions':[{'type':'Ready','status':'True'}]}},"
        "{'apiVersion':'v1','kind':'PersistentVolumeClaim','metadata':{'name':'k1','namespace':'x'},'spec':{'volumeName':'v1','accessModes':['ReadWriteOncePod']}},"
        "{'apiVersion':'v1','kind':'PersistentVolumeClaim','metadata':{'name':'k2','namespace':'x'},'spec':{'storageClassName':'s'}},"
        "{'apiVersion':'v1','kind':'PersistentVolume','metadata':{'name':'v1','labels':{'topology.kubernetes.io/zone':'1__2','topology.kubernetes.io/region':'r'}},"
        "'spec':{'csi':{'driver':'d','volumeHandle':'h'},'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'size','operator':'In','values':['4']}]}]}}}},"
        "{'apiVersion':'storage.k8s.io/v1','kind':'StorageClass','metadata':{'name':'s'},'provisioner':'ebs.csi.aws.com','volumeBindingMode':'WaitForFirstConsumer',"
        "'allowedTopologies':[{'matchLabelExpressions':[{'key':'topology.kubernetes.io/zone','values':['2']}]}]},"
        "{'apiVersion':'storage.k8s.io/v1','kind':'CSINode','metadata':{'name':'n3'},'spec':{'drivers':[{'name':'d','nodeID':'i','allocatable':{'count':5}}]}},"
        "{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'x','labels':{'team':'t'}}}"
        "]}";

static InternPool *pool;
static Snapshot *snapshot;
static KubeObject *late; /* a pod that comes while the simulator stands */

static char *with_quotes(const char *text) {
        char *copy = strdup(text);

        for (char *p = copy; p && *p; p++)
                if (*p == '\'')
                        *p = '"';
        return copy;
}

static int group_setup(void **state) {
        _cleanup_free_ char *list = with_quotes(objects), *why = NULL, *passed = NULL;
        Snapshot *s = NULL;
        int r = intern_pool_new(&pool);

        if (r >= 0)
                r = snapshot_load_list(list, strlen(list), 0, pool, &s, &passed, &why);
        if (r < 0 || why)
                fail_msg("the objects cannot be read: %s", why);
        snapshot = s;
        late = kube_object_ref(snapshot_get(s, SNAPSHOT_PODS, "x/p4"));
        kube_object_unref(hashmap_remove(s->objects[SNAPSHOT_PODS], "x/p4"));
        return 0;
}

static int group_teardown(void **state) {
        kube_object_unref(late);
        snapshot_free(snapshot);
        intern_pool_free(pool);
        return 0;
}

/* A removal as often as it may be asked for: for good, and without a trace. */
static int remove_some(Simulator *s) {
        static const SimulateOptions options = { .respect_preferences = true };
        const uint32_t nodes[] = { 0, 1 };
        SimulatorMark mark = simulator_mark(s);
        int r = 0;

        for (size_t n = 1; n <= 2 && r >= 0; n++) {
                SimulateVerdict v;

                r = simulate_removal(s, nodes, n, &options, n == 1, &v);
                if (r >= 0)
                        simulate_verdict_done(&v);
                simulator_undo(s, mark);
        }
        return r;
}

static int add_what_is_new(Simulator *s) {
        const KeyValue labels[] = { { "topology.kubernetes.io/zone", "3" } }, rooms[] = { { "cpu", "8" } };
        const SimulatorNewNode new = { .name = "new",
                                       .like = 1,
                                       .labels = &(KeyValues){ (KeyValue *) labels, 1 },
                                       .allocatable = &(KeyValues){ (KeyValue *) rooms, 1 } };
        uint32_t pod, node;
        int r = simulator_add_pod(s, (KubeScheduledPod *) late, &pod);

        if (r >= 0)
                r = simulator_add_node(s, &new, &node);
        if (r >= 0) {
                assert_int_equal(simulator_allocatable(s, node, "cpu"), 8000);
                simulator_drop_node(s, node);
                r = simulator_add_node(s, &new, &node);
        }
        return r;
}

static int name_left_out(const Simulator *s, const SimulatorBounds *bounds) {
        _cleanup_free_ char *text = NULL;
        int r = simulator_left_out_text(s, &text);

        if (r >= 0)
                assert_true(!text == (bounds == &simulator_bounds));
        return r;
}

/* Pods that wait have seats, or without memory all are where they were. */
static int seat_some(Simulator *s, const SimulatorBounds *bounds) {
        uint32_t n_seated = 0;
        int r = simulator_seat_waiting(s);

        for (uint32_t i = 0; i < simulator_n_pods(s); i++) {
                if (r < 0)
                        assert_int_equal(simulator_node_of(s, i), simulator_home_of(s, i));
                n_seated += simulator_node_of(s, i) != simulator_home_of(s, i);
        }
        if (r >= 0)
                assert_int_equal(n_seated, bounds == &simulator_bounds); /* p6, whose node is leaving; without its rules it is none of them */
        return r;
}

static int simulate_all(const SimulatorBounds *bounds) {
        size_t texts = intern_pool_size(pool);
        Simulator *s = NULL;
        int r = simulator_new_within(snapshot, &(AwaitedPods){}, bounds, &s);

        if (r >= 0)
                r = name_left_out(s, bounds);
        if (r >= 0)
                r = seat_some(s, bounds);
        if (r >= 0)
                r = remove_some(s);
        if (r >= 0)
                r = add_what_is_new(s);
        if (r >= 0)
                r = remove_some(s);
        simulator_free(s);
        assert_int_equal(intern_pool_size(pool), texts);
        return r;
}

static void sweep(const SimulatorBounds *bounds) {
        size_t n = 1;
        int r;

        assert_return_code(simulate_all(bounds), 0);
        for (;; n++) {
                alloc_fault_arm(n);
                r = simulate_all(bounds);
                (void) alloc_fault_disarm();
                if (!alloc_fault_fired())
                        break;
                if (r != -ENOMEM)
                        fail_msg("allocation %zu failing: expected -ENOMEM, got %d", n, r);
        }
        assert_return_code(r, 0);
        print_message("%zu allocations, each failed once\n", n - 1);
        assert_true(n > 100);
}

TEST_CASE(test_sweep) {
        sweep(&simulator_bounds);
}

TEST_CASE(test_sweep_left_out) {
        static const SimulatorBounds few = { .work = 30, .bytes = UINT64_C(1) << 20 }; /* enough to begin with the groups, and not to end */

        sweep(&few);
}

int main(void) {
        static const struct CMUnitTest tests[] = { cmocka_unit_test(test_sweep), cmocka_unit_test(test_sweep_left_out) };

        return cmocka_run_group_tests_name("alloc-simulate", tests, group_setup, group_teardown);
}
