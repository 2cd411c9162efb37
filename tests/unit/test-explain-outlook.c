/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "ctl-say.h"
#include "disruption-rig.h"
#include "expected-file.h"
#include "explain-outlook.h"
#include "string-util.h"

/* A second container with these requests. */
#define REQUESTS(amounts) "'initContainers':[{'name':'i','restartPolicy':'Always','resources':{'requests':{" amounts "}}}]"
#define ZONE "topology.kubernetes.io/zone"
#define ZONED(name) { name, "4", "'labels':{'pool':'a','" ZONE "':'" name "'}" }
#define USES(claim) "'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'" claim "'}}]"
#define CLAIM(name, volume) \
        "{'apiVersion':'v1','kind':'PersistentVolumeClaim','metadata':{'name':'" name "','namespace':'x'},'spec':{'volumeName':'" volume "'}}"
#define VOLUME(name, zone) \
        "{'apiVersion':'v1','kind':'PersistentVolume','metadata':{'name':'" name "'},'spec':{'csi':{'driver':'d'," \
        "'volumeHandle':'" name "'},'nodeAffinity':{'required':{" \
        "'nodeSelectorTerms':[{'matchExpressions':[{'key':'" ZONE "','operator':'In','values':['" zone "']}]}]}}}}"
#define ATTACHES(node, n) \
        "{'apiVersion':'storage.k8s.io/v1','kind':'CSINode','metadata':{'name':'" node \
        "'},'spec':{'drivers':[{'name':'d','nodeID':'i','allocatable':{'count':" n "}}]}}"

/* Nodes a of small clusters. The file expected/explain-outlook.txt has what explain --simulate prints about each of them. */
static const struct {
        const char *what;
        RigCluster cluster;
} rows[] = {
        { "it would go",
          { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "1" }, { "q1", "b", "1" }, { "q2", "b", "1" } },
                    "'disruption':{'budgets':[],'consolidation':{'policy':'WhenUnderutilized'}}" } },
        { "each method says why it would not",
          { { { "a", "4" } }, {}, "" } },
        { "no pod moves",
          { { { "a", "4" } }, {}, "" } },
        { "what a pod lacks",
          { { { "a", "4" }, { "b", "1" } }, { { "p", "a", "2" } }, "" } },
        { "a taint",
          { { { "a", "4" }, { "b", "4", NULL, "'taints':[{'key':'k','effect':'NoSchedule'}]" } }, { { "p", "a", "2" } }, "" } },
        { "a selector",
          { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "2", NULL, "'nodeSelector':{'x':'y'}" } }, "" } },
        { "a port",
          { { { "a", "4" }, { "b", "4" } },
                    { { "p", "a", "1", NULL, "'initContainers':[{'name':'i','restartPolicy':'Always',"
                        "'ports':[{'hostPort':80,'containerPort':80}]}]" },
                      { "q", "b", "1", NULL, "'initContainers':[{'name':'i','restartPolicy':'Always',"
                        "'ports':[{'hostPort':80,'containerPort':80}]}]" } },
                    "" } },
        { "anti-affinity",
          { { { "a", "4", "'labels':{'pool':'a','h':'a'}" }, { "b", "4", "'labels':{'pool':'a','h':'b'}" } },
                    { { "p1", "a", "1", NULL, "'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':'h',"
                                              "'labelSelector':{'matchLabels':{'app':'p'}}}]}}" },
                      { "p2", "b", "1" } },
                    "" } },
        { "spread",
          { { { "a", "4", "'labels':{'pool':'a','h':'a'}" }, { "b", "4", "'labels':{'pool':'a','h':'b'}" } },
                    { { "p1", "a", "1", NULL, "'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'h','whenUnsatisfiable':'DoNotSchedule',"
                                              "'labelSelector':{'matchLabels':{'app':'p'}}}]" },
                      { "p2", "b", "1" } },
                    "" } },
        { "nobody can tell",
          { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "1", NULL, "'schedulerName':'own'" } }, "" } },
        { "memory that is short", { { { "a", "4" }, { "b", "4" } },
            { { "p", "a", "1", NULL, REQUESTS("'memory':'101Gi'") }, { "q", "b", "1" } }, "" } },
        { "half a mebibyte is rounded up", { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "1", NULL, REQUESTS("'memory':'107374182401'") } }, "" } },
        { "two resources that are short", { { { "a", "9" }, { "b", "4" } },
            { { "p", "a", "1", NULL, REQUESTS("'cpu':'4100m','memory':'102Gi','ephemeral-storage':'7Mi'") } }, "" } },
        { "a resource of its own", { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "1", NULL, REQUESTS("'x.io/gpu':'1'") } }, "" } },
        { "exactly as much as is free", { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "1", NULL, REQUESTS("'cpu':'3','memory':'100Gi'") } }, "" } },
        { "the node that lacks least", { { { "a", "9" }, { "b", "1" }, { "c", "3" }, { "d", "2" } }, { { "p", "a", "4" } }, "" } },
        { "a node that is cordoned", { { { "a", "4" }, { "b", "4", NULL, "'unschedulable':true" } }, { { "p", "a", "1" } }, "" } },
        { "no other node", { { { "a", "4" } }, { { "p", "a", "1" } }, "" } },
        { "a taint here, and a selector there",
          { { { "a", "4" }, { "b", "4", NULL, "'taints':[{'key':'k','effect':'NoSchedule'}]" }, { "c", "4" } },
            { { "p", "a", "1", NULL, "'nodeSelector':{'x':'y'}" } }, "" } },
        { "pod affinity",
          { { { "a", "4", "'labels':{'pool':'a','h':'a'}" }, { "b", "4", "'labels':{'pool':'a','h':'b'}" } },
            { { "p", "a", "1", NULL,
                "'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':'h',"
                "'labelSelector':{'matchLabels':{'app':'q'}}}]}}" },
              { "q", "a", "1", "'labels':{'app':'q'}", "'hostNetwork':true" } },
            "" } },
        { "a volume of another zone", { { ZONED("a"), ZONED("b") }, { { "p", "a", "1", NULL, USES("c") } }, "",
            { CLAIM("c", "v"), VOLUME("v", "a") } } },
        { "as many volumes as may be attached",
          { { ZONED("a"), { "b", "4", "'labels':{'pool':'a','" ZONE "':'a'}" } },
            { { "p", "a", "1", NULL, USES("c") } }, "", { CLAIM("c", "v"), VOLUME("v", "a"), ATTACHES("b", "0") } } },
        { "pods of several kinds",
          { { { "a", "8" }, { "b", "2" }, { "c", "3" } }, { { "small", "a", "1" }, { "middle", "a", "3" },
              { "large", "a", "4" }, { "of", "c", "500m" },
              { "d", "a", "1", "'ownerReferences':[{'apiVersion':'apps/v1','kind':'DaemonSet','name':'d','uid':'d','controller':true}]" } }, "" } },
        { "a replacement that costs less",
          { { { "a", "8", RIG_TYPE("l") } }, { { "p", "a", "3", "'labels':{'app':'p'}" } },
            "'disruption':{'budgets':[],'consolidation':{'policy':'WhenUnderutilized'}},"
            "'offerings':[{'instanceType':'l','price':4},{'instanceType':'s','zone':'z1','price':1.5,"
            "'allocatable':{'cpu':'4'}}]" } },
        { "names that a terminal would read",
          { { { "a", "8", RIG_TYPE("l") } }, { { "p", "a", "3", "'labels':{'app':'p'}" } },
            "'disruption':{'budgets':[],'consolidation':{'policy':'WhenUnderutilized'}},"
            "'offerings':[{'instanceType':'l','price':4},{'instanceType':'s\\u001b[2J','price':1.5,"
            "'allocatable':{'cpu':'4'}}]" } },
        { "it has expired", { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "1" } }, "'disruption':{'budgets':[],'expireAfter':'100h'}" } },
        { "it is empty", { { { "a", "4" } }, {}, "'disruption':{'budgets':[],'emptyAfter':'5m'}" } },
        { "nobody manages it", { { { "a", "4", "'labels':{'any':'thing'}" }, { "b", "4" } }, { { "p", "a", "1" } }, "" } },
};

static bool write_files;

TEST_CASE(test_rows) {
        _cleanup_free_ char *path = expected_file_path("expected/explain-outlook.txt");
        char *notes[] = { (char *) "pods are not \033[1mknown", (char *) "another note", NULL };
        _cleanup_strbuf_ StrBuf all = {};

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&rows[i].cluster);
                _cleanup_(node_outlook_done) NodeOutlook o = {};
                _cleanup_free_ char *text = NULL, *json = NULL, *yaml = NULL;

                print_message("  %s\n", rows[i].what);
                assert_int_equal(node_outlook_make(r->scene, "nope", &o), -ENOENT);
                assert_return_code(node_outlook_make(r->scene, "a", &o), 0);
                text = node_outlook_text(&o, i == 0 ? notes : NULL);
                json = node_outlook_json(&o, i == 0 ? notes : NULL);
                assert_true(text && json);
                yaml = ctl_format_json(json, true);
                assert_non_null(yaml);
                strbuf_addf(&all, "# %s%s---\n%s\n", rows[i].what, text, yaml);
        }
        if (!path)
                skip();
        expected_file_compare(path, strbuf_str(&all), write_files);
}

int main(int argc, char **argv) {
        static const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows) };

        write_files = expected_file_is_written(argc, argv);
        return cmocka_run_group_tests_name("explain-outlook", tests, NULL, NULL);
}
