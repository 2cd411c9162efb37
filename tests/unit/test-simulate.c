/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cluster-maker.h"
#include "cmocka-test.h"
#include "simulator-internal.h"
#include "string-util.h"

/*
 * A cluster in a few words: nodes "NAME CPU ZONE [+TAINT] [labels]" and pods "NAME NODE CPU [rules]", where rules are a piece
 * of a pod's spec in JSON.
 */
typedef struct NodeRow {
        const char *name, *cpu, *zone, *extra; /* extra: members of spec, "" for none */
} NodeRow;

typedef struct PodRow {
        const char *name, *node, *cpu, *app, *spec, *meta;
} PodRow;

typedef struct Case {
        const char *what;
        NodeRow nodes[6];
        PodRow pods[4];
        const char *others[4]; /* objects as JSON, with kind and apiVersion */
        const char *remove;    /* "a" or "a b" */
        bool preferences;
        const char *want;      /* "p>b q>c", placements in their order; or "p: resources 1, taint 2" of the first without a seat */
} Case;

#define SPREAD(key, skew, app, more) \
        "\"topologySpreadConstraints\":[{\"maxSkew\":" #skew ",\"topologyKey\":\"" key "\",\"whenUnsatisfiable\":" \
        "\"DoNotSchedule\",\"labelSelector\":{\"matchLabels\":{\"app\":\"" app "\"}}" more "}]"
#define TERM(key, app) "{\"topologyKey\":\"" key "\",\"labelSelector\":{\"matchLabels\":{\"app\":\"" app "\"}}}"
#define ANTI(key, app) \
        "\"affinity\":{\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[" TERM(key, app) "]}}"
#define AFFINITY(key, app) \
        "\"affinity\":{\"podAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[" TERM(key, app) "]}}"
#define WISH_APART(key, app) \
        "\"affinity\":{\"podAntiAffinity\":{\"preferredDuringSchedulingIgnoredDuringExecution\":[{\"weight\":1," \
        "\"podAffinityTerm\":" TERM(key, app) "}]}}"
#define HOST "kubernetes.io/hostname"
#define ZONE "topology.kubernetes.io/zone"
#define VOLUME(claim) "\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"" claim "\"}}]"
#define CLAIM(name, volume) \
        "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"" name \
        "\",\"namespace\":\"x\"},\"spec\":{\"volumeName\":\"" volume "\"}}"
#define VOLUME_IN_ZONE(name, zone) \
        "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":\"" name "\"},\"spec\":{\"csi\":{" \
        "\"driver\":\"d\",\"volumeHandle\":\"" name "\"},\"nodeAffinity\":{\"required\":{\"nodeSelectorTerms\":[{" \
        "\"matchExpressions\":[{\"key\":\"" ZONE "\",\"operator\":\"In\",\"values\":[\"" zone "\"]}]}]}}}}"
#define ATTACHES(node, n) \
        "{\"apiVersion\":\"storage.k8s.io/v1\",\"kind\":\"CSINode\",\"metadata\":{\"name\":\"" node "\"},\"spec\":{" \
        "\"drivers\":[{\"name\":\"d\",\"nodeID\":\"i\",\"allocatable\":{\"count\":" #n "}}]}}"

static const Case cases[] = {
        { "a pod goes where there is room, the first by name",
          { { "a", "4", "1" }, { "b", "1", "1" }, { "c", "4", "1" } },
          { { "p", "a", "2" } },
          {}, "a", false, "p>c" },
        { "an empty node goes",
          { { "a", "4", "1" }, { "b", "4", "1" } }, {}, {}, "a", false, "" },
        { "the largest first: both find a seat",
          { { "a", "8", "1" }, { "b", "4", "1" }, { "c", "4", "1" } },
          { { "p", "a", "2" }, { "q", "a", "3" } },
          {}, "a", false, "q>b p>c" },
        { "the largest first finds seats for both, and who comes first is not the largest",
          { { "a", "8", "1" }, { "b", "3", "1" }, { "c", "2", "1" } },
          { { "p", "a", "2" }, { "q", "a", "3" } },
          {}, "a", false, "q: not a destination 1, resources 2" },
        { "no room",
          { { "a", "4", "1" }, { "b", "1", "1" } }, { { "p", "a", "2" } }, {}, "a", false,
          "p: not a destination 1, resources 1" },
        { "who asks for nothing goes where less than nothing is free",
          { { "a", "4", "1" }, { "b", "1", "1" } },
          { { "p", "a", "0" }, { "q", "b", "1" }, { "r", "b", "1" } },
          {}, "a", false, "p>b" },
        { "packing finds seats for all, and spreading would not",
          { { "a", "8", "1" }, { "b", "4", "1" }, { "c", "2", "2" } },
          { { "p", "a", "2" }, { "q", "a", "2", NULL, "\"nodeSelector\":{\"" ZONE "\":\"2\"}" }, { "r", "b", "2" } },
          {}, "a", false, "q: not a destination 1, node affinity 1, resources 1" },
        { "a cordoned node takes nothing",
          { { "a", "4", "1" }, { "b", "4", "1", "\"unschedulable\":true" } },
          { { "p", "a", "1" } }, {}, "a", false, "p: not a destination 2" },
        { "a taint keeps off who does not tolerate it",
          { { "a", "4", "1" }, { "b", "4", "1", "\"taints\":[{\"key\":\"k\",\"value\":\"v\",\"effect\":\"NoSchedule\"}]" } },
          { { "p", "a", "1" },
            { "q", "a", "1", NULL, "\"tolerations\":[{\"key\":\"k\",\"operator\":\"Equal\",\"value\":\"v\",\"effect\":\"NoSchedule\"}]" } },
          {}, "a", false, "p: not a destination 1, taint 1" },
        { "PreferNoSchedule is no more than a wish",
          { { "a", "4", "1" }, { "b", "4", "1", "\"taints\":[{\"key\":\"k\",\"effect\":\"PreferNoSchedule\"}]" } },
          { { "p", "a", "1" } }, {}, "a", false, "p>b" },
        { "node affinity: terms are alternatives, requirements of one are not",
          { { "a", "4", "1" }, { "b", "4", "2" }, { "c", "4", "3" } },
          { { "p", "a", "1", NULL,
              "\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":["
              "{\"matchExpressions\":[{\"key\":\"" ZONE "\",\"operator\":\"In\",\"values\":[\"2\"]},{\"key\":\"none\",\"operator\":\"Exists\"}]},"
              "{\"matchExpressions\":[{\"key\":\"" ZONE "\",\"operator\":\"Gt\",\"values\":[\"2\"]}]}]}}}" } },
          {}, "a", false, "p>c" },
        { "a pod that names its node moves to that one",
          { { "a", "4", "1" }, { "b", "4", "1" }, { "c", "4", "1" } },
          { { "p", "a", "1", NULL,
              "\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":["
              "{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"c\"]}]}]}}}" } },
          {}, "a", false, "p>c" },
        { "host ports clash by port and protocol",
          { { "a", "4", "1" }, { "b", "4", "1" }, { "c", "4", "1" } },
          { { "p", "a", "1", NULL, "PORT" }, { "q", "b", "1", NULL, "PORT" } },
          {}, "a", false, "p>c" },
        { "spread over zones counts from the emptiest",
          { { "a", "4", "1" }, { "b", "4", "1" }, { "c", "4", "2" } },
          { { "p", "a", "1", "s", SPREAD(ZONE, 1, "s", "") }, { "q", "c", "1", "s", SPREAD(ZONE, 1, "s", "") } },
          {}, "a", false, "p>b" },
        { "a node that goes is a domain until it is gone: a ghost is the emptiest",
          { { "a", "4", "1" }, { "b", "4", "1" }, { "c", "4", "1" } },
          { { "p", "a", "1", "s", SPREAD(HOST, 1, "s", "") },
            { "q", "b", "1", "s", SPREAD(HOST, 1, "s", "") },
            { "r", "c", "1", "s", SPREAD(HOST, 1, "s", "") } },
          {}, "a", false, "p: not a destination 1, topology spread 2" },
        { "where taints are honored, a ghost is no domain",
          { { "a", "4", "1" }, { "b", "4", "1" }, { "c", "4", "1" } },
          { { "p", "a", "1", "s", SPREAD(HOST, 1, "s", ",\"nodeTaintsPolicy\":\"Honor\"") },
            { "q", "b", "1", "s", SPREAD(HOST, 1, "s", ",\"nodeTaintsPolicy\":\"Honor\"") },
            { "r", "c", "1", "s", SPREAD(HOST, 1, "s", ",\"nodeTaintsPolicy\":\"Honor\"") } },
          {}, "a", false, "p>b" },
        { "... and a pod that stays on it counts in no domain",
          { { "a", "4", "1" }, { "b", "1", "1" }, { "c", "4", "2" } },
          { { "p", "a", "2", "s", SPREAD(ZONE, 1, "s", ",\"nodeTaintsPolicy\":\"Honor\"") },
            { "d", "a", "1", "s", "", "DAEMON" },
            { "q", "c", "1", "s" } },
          {}, "a", false, "p: not a destination 1, resources 1, topology spread 1" },
        { "with fewer domains than minDomains the minimum is none",
          { { "a", "4", "1" }, { "b", "4", "1" }, { "c", "4", "2" } },
          { { "p", "a", "1", "s", SPREAD(ZONE, 1, "s", ",\"minDomains\":3") },
            { "q", "b", "1", "s", SPREAD(ZONE, 1, "s", ",\"minDomains\":3") } },
          {}, "a", false, "p>c" },
        { "anti-affinity of the pod that moves",
          { { "a", "4", "1" }, { "b", "4", "1" }, { "c", "4", "1" } },
          { { "p", "a", "1", "s", ANTI(HOST, "s") }, { "q", "b", "1", "s", "" } },
          {}, "a", false, "p>c" },
        { "anti-affinity of a pod that stays",
          { { "a", "4", "1" }, { "b", "4", "1" } },
          { { "p", "a", "1", "s", "" }, { "q", "b", "1", "t", ANTI(HOST, "s") } },
          {}, "a", false, "p: not a destination 1, pod anti-affinity 1" },
        { "affinity follows its kind, and the chain is tried until nothing more moves",
          { { "a", "8", "1" }, { "b", "4", "1" }, { "c", "4", "2" } },
          { { "p", "a", "2", "follows", AFFINITY(ZONE, "leads") }, { "q", "a", "1", "leads", "\"nodeSelector\":{\"" ZONE "\":\"2\"}" } },
          {}, "a", false, "q>c p>c" },
        { "the first of a group that looks for its own kind goes anywhere",
          { { "a", "4", "1" }, { "b", "4", "2" } },
          { { "p", "a", "1", "s", AFFINITY(ZONE, "s") }, { "q", "a", "1", "s", AFFINITY(ZONE, "s") } },
          {}, "a", false, "p>b q>b" },
        { "affinity is to one pod that matches all terms, not to one for each",
          { { "a", "4", "1" }, { "b", "4", "1" }, { "c", "4", "2" } },
          { { "p", "a", "1", "s",
              "\"affinity\":{\"podAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[" TERM(ZONE, "t") "," TERM(ZONE, "u") "]}}" },
            { "q", "b", "1", "t" }, { "r", "b", "1", "u" } },
          {}, "a", false, "p: not a destination 1, pod affinity 2" },
        { "the last node of a zone: what is there stays the emptiest domain",
          { { "a", "4", "1" }, { "b", "4", "2" }, { "c", "4", "3" } },
          { { "p", "a", "1", "s", SPREAD(ZONE, 1, "s", "") }, { "q", "b", "1", "s", SPREAD(ZONE, 1, "s", "") },
            { "r", "c", "1", "s", SPREAD(ZONE, 1, "s", "") } },
          {}, "a", false, "p: not a destination 1, topology spread 2" },
        { "pods of a low priority are no room: nobody is preempted",
          { { "a", "4", "1" }, { "b", "2", "1" } },
          { { "p", "a", "2", NULL, "\"priority\":1000" }, { "q", "b", "2", NULL, "\"priority\":-10" } },
          {}, "a", false, "p: not a destination 1, resources 1" },
        { "a local volume pins its pod to the node that goes",
          { { "a", "4", "1" }, { "b", "4", "1" } },
          { { "p", "a", "1", NULL, VOLUME("k") } },
          { CLAIM("k", "v"),
            "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":\"v\"},\"spec\":{\"local\":{\"path\":\"/d\"},"
            "\"nodeAffinity\":{\"required\":{\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"" HOST "\",\"operator\":\"In\","
            "\"values\":[\"a\"]}]}]}}}}" },
          "a", false, "p: not a destination 1, volume 1" },
        { "a node whose end is announced takes nothing, schedulable or not; nor does one that has as many volumes attached as it may",
          { { "a", "4", "1" }, { "b", "4", "1" }, { "c", "4", "1" }, { "d", "4", "1" } },
          { { "p", "a", "1", NULL, VOLUME("k") } },
          { CLAIM("k", "v") "," VOLUME_IN_ZONE("v", "1"), ATTACHES("c", 1),
            "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"b\",\"labels\":{\"" ZONE "\":\"1\"},\"annotations\":{"
            "\"vesper.sh/interruption\":\"{\\\"phase\\\":\\\"Planned\\\"}\"}},\"spec\":{},\"status\":{\"allocatable\":{\"cpu\":\"4\",\"pods\":\"9\"},"
            "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}},"
            "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"c\",\"labels\":{\"" ZONE "\":\"1\"}},\"spec\":{},"
            "\"status\":{\"allocatable\":{\"cpu\":\"4\",\"pods\":\"9\"},\"volumesAttached\":[{\"name\":\"kubernetes.io/csi/d^gone\"}],"
            "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}" },
          "a", false, "p>d" },
#define INTERRUPTED(text) \
        "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"b\",\"labels\":{\"" ZONE "\":\"1\"},\"annotations\":{" \
        "\"vesper.sh/interruption\":\"" text "\"}},\"spec\":{},\"status\":{\"allocatable\":{\"cpu\":\"4\",\"pods\":\"9\"}," \
        "\"nodeInfo\":{\"bootID\":\"b1\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}"
#define AGENT_SAYS(phase, boot) INTERRUPTED("{\\\"phase\\\":\\\"" phase "\\\",\\\"bootID\\\":\\\"" boot "\\\"}")
        { "an interruption of this boot", { { "a", "4", "1" }, { "b", "4", "1" } }, { { "p", "a", "1" } }, { AGENT_SAYS("Drained", "b1") },
          "a", false, "p: not a destination 2" },
        { "an interruption of a phase that this version does not know", { { "a", "4", "1" }, { "b", "4", "1" } }, { { "p", "a", "1" } },
          { AGENT_SAYS("Hiding", "b1") }, "a", false, "p: not a destination 2" },
        { "an interruption that cannot be read", { { "a", "4", "1" }, { "b", "4", "1" } }, { { "p", "a", "1" } }, { INTERRUPTED("soon") },
          "a", false, "p: not a destination 2" },
        { "an interruption that a person released is over", { { "a", "4", "1" }, { "b", "4", "1" } }, { { "p", "a", "1" } },
          { AGENT_SAYS("Released", "b1") }, "a", false, "p>b" },
        { "an interruption that was withdrawn is over", { { "a", "4", "1" }, { "b", "4", "1" } }, { { "p", "a", "1" } },
          { AGENT_SAYS("Cancelled", "b1") }, "a", false, "p>b" },
        { "an interruption of an earlier boot is over", { { "a", "4", "1" }, { "b", "4", "1" } }, { { "p", "a", "1" } },
          { AGENT_SAYS("Drained", "b0") }, "a", false, "p>b" },
        { "a claim that nobody provisions has no volume anywhere",
          { { "a", "4", "1" }, { "b", "4", "1" } },
          { { "p", "a", "1", NULL, VOLUME("k") } },
          { "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"k\",\"namespace\":\"x\"},\"spec\":{"
            "\"storageClassName\":\"s\"}},{\"apiVersion\":\"storage.k8s.io/v1\",\"kind\":\"StorageClass\",\"metadata\":{\"name\":\"s\"},"
            "\"provisioner\":\"kubernetes.io/no-provisioner\",\"volumeBindingMode\":\"WaitForFirstConsumer\"}" },
          "a", false, "p: not a destination 1, volume 1" },
        { "more than can be counted is not less than nothing",
          { { "a", "4", "1" }, { "b", "4", "1" } },
          { { "p", "a", "1" }, { "q", "b", "9223372036854775807" }, { "r", "b", "9223372036854775807" } },
          {}, "a", false, "p: not a destination 1, resources 1" },
        { "of a node with a pod that nobody can read, nobody knows what is free",
          { { "a", "4", "1" }, { "b", "4", "1" } },
          { { "p", "a", "1" }, { "q", "b", "1", NULL, "\"topologySpreadConstraints\":[{\"topologyKey\":5}]" } },
          {}, "a", false, "p: not a destination 2" },
        { "what an init container asks for counts, and its sidecars with it",
          { { "a", "4", "1" }, { "b", "1", "1" } },
          { { "p", "a", "100m", NULL,
              "\"initContainers\":[{\"name\":\"s\",\"restartPolicy\":\"Always\",\"resources\":{\"requests\":{\"cpu\":\"600m\"}}},"
              "{\"name\":\"i\",\"resources\":{\"requests\":{\"cpu\":\"500m\"}}}]" } },
          {}, "a", false, "p: not a destination 1, resources 1" },
        { "a volume stays in its zone",
          { { "a", "4", "1" }, { "b", "4", "2" }, { "c", "4", "1" } },
          { { "p", "a", "1", NULL, VOLUME("k") } },
          { CLAIM("k", "v"), VOLUME_IN_ZONE("v", "1") }, "a", false, "p>c" },
        { "a node attaches so many volumes and not more",
          { { "a", "4", "1" }, { "b", "4", "1" }, { "c", "4", "1" } },
          { { "p", "a", "1", NULL, VOLUME("k") }, { "q", "b", "1", NULL, VOLUME("l") } },
          { CLAIM("k", "v") "," VOLUME_IN_ZONE("v", "1"), CLAIM("l", "w") "," VOLUME_IN_ZONE("w", "1"),
            ATTACHES("b", 1), ATTACHES("c", 1) },
          "a", false, "p>c" },
        { "a claim that is not there",
          { { "a", "4", "1" }, { "b", "4", "1" } }, { { "p", "a", "1", NULL, VOLUME("k") } }, {}, "a", false,
          "p: not a destination 1, volume 1" },
        { "a wish that holds now is respected",
          { { "a", "4", "1" }, { "b", "4", "1" } },
          { { "p", "a", "1", "s", WISH_APART(HOST, "s") }, { "q", "b", "1", "s", WISH_APART(HOST, "s") } },
          {}, "a", true, "p: not a destination 1, preference 1 (a wish)" },
        { "and does not count where wishes are ignored",
          { { "a", "4", "1" }, { "b", "4", "1" } },
          { { "p", "a", "1", "s", WISH_APART(HOST, "s") }, { "q", "b", "1", "s", WISH_APART(HOST, "s") } },
          {}, "a", false, "p>b" },
        { "a wish that does not hold now is nobody's loss",
          { { "a", "4", "1" }, { "b", "4", "1" } },
          { { "p", "a", "1", "s", WISH_APART(HOST, "s") }, { "q", "a", "1", "s", WISH_APART(HOST, "s") } },
          {}, "a", true, "p>b q>b" },
        { "pods of DaemonSets stay, and need no seat",
          { { "a", "4", "1" }, { "b", "1", "1" } },
          { { "p", "a", "2", NULL, "", "DAEMON" } }, {}, "a", false, "" },
        { "a terminating pod needs no seat, a StatefulSet's does",
          { { "a", "4", "1" }, { "b", "4", "1" } },
          { { "p", "a", "2", NULL, "", "TERMINATING" }, { "q", "a", "2", NULL, "", "STATEFUL" } },
          {}, "a", false, "q>b" },
        { "a pending pod takes its seat first if it asks for more",
          { { "a", "4", "1" }, { "b", "4", "1" } },
          { { "p", "a", "2" }, { "q", "", "3" } },
          {}, "a", false, "p: not a destination 1, resources 1" },
        { "two nodes together",
          { { "a", "4", "1" }, { "b", "4", "1" }, { "c", "4", "1" } },
          { { "p", "a", "2" }, { "q", "b", "1" } },
          {}, "a b", false, "p>c q>c" },
        { "nor is what nobody can read, whatever it wishes",
          { { "a", "4", "1" }, { "b", "4", "1" } },
          { { "p", "a", "1", NULL, "\"affinity\":{\"podAffinity\":{\"preferredDuringSchedulingIgnoredDuringExecution\":[{\"weight\":1,\"podAffinityTerm\":"
              TERM(HOST, "s") "}]},\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{\"topologyKey\":5}]}}" } },
          {}, "a", true, "p: UNREADABLE" },
        { "what nobody can model is not moved",
          { { "a", "4", "1" }, { "b", "4", "1" } },
          { { "p", "a", "1", NULL, "\"schedulerName\":\"mine\"" } }, {}, "a", false, "p: FOREIGN_SCHEDULER" },
};

/* -- a case becomes a snapshot ----------------------------------------------------------------------------- */

static void put_node(Snapshot *s, const NodeRow *n) {
        _cleanup_free_ char *text =
                strf("{\"metadata\":{\"name\":\"%s\",\"labels\":{\"" HOST "\":\"%s\",\"" ZONE "\":\"%s\"}},\"spec\":{%s},"
                     "\"status\":{\"allocatable\":{\"cpu\":\"%s\",\"memory\":\"8Gi\",\"pods\":\"10\"},\"conditions\":["
                     "{\"type\":\"Ready\",\"status\":\"True\"}]}}",
                     n->name, n->name, n->zone, strempty(n->extra), n->cpu);

        cluster_put(s, SNAPSHOT_NODES, text);
}

static void put_pod(Snapshot *s, const PodRow *p) {
        const char *owner = streq_ptr(p->meta, "DAEMON") ? "DaemonSet" : streq_ptr(p->meta, "STATEFUL") ? "StatefulSet" : "ReplicaSet";
        bool leaves = streq_ptr(p->meta, "TERMINATING") || streq_ptr(p->meta, "STATEFUL");
        bool port = streq_ptr(p->spec, "PORT");
        const char *spec = port ? "" : strempty(p->spec);
        _cleanup_free_ char *text =
                strf("{\"metadata\":{\"name\":\"%s\",\"namespace\":\"x\",\"uid\":\"%s\",\"labels\":{\"app\":\"%s\"},%s"
                     "\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"%s\",\"name\":\"o\",\"uid\":\"u\",\"controller\":true}]},"
                     "\"spec\":{\"nodeName\":\"%s\",\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"%s\"}}%s}]%s%s},"
                     "\"status\":{\"phase\":\"%s\"}}",
                     p->name, p->name, strempty(p->app), leaves ? "\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"," : "", owner,
                     p->node, p->cpu, port ? ",\"ports\":[{\"containerPort\":1,\"hostPort\":80}]" : "", *spec ? "," : "", spec,
                     *p->node ? "Running" : "Pending");

        cluster_put(s, SNAPSHOT_PODS, text);
}

static void case_put(Snapshot *s, const Case *c) {
        for (size_t i = 0; i < _SNAPSHOT_KIND_MAX; i++)
                s->is_known[i] = true;
        for (size_t i = 0; i < ELEMENTSOF(c->nodes) && c->nodes[i].name; i++)
                put_node(s, c->nodes + i);
        for (size_t i = 0; i < ELEMENTSOF(c->pods) && c->pods[i].name; i++)
                put_pod(s, c->pods + i);
        for (size_t i = 0; i < ELEMENTSOF(c->others) && c->others[i]; i++)
                cluster_put_several(s, c->others[i]);
}

/* -- a verdict becomes words --------------------------------------------------------------------------------- */

static char *say_unplaced(const Simulator *s, const SimulateUnplaced *u) {
        _cleanup_(strbuf_done) StrBuf b = {};
        const char *between = " ";

        strbuf_addf(&b, "%s:", simulator_pod(s, u->pod)->pod.object.meta.name);
        if (u->unmodelled != POD_MODELLED)
                strbuf_addf(&b, " %s", pod_unmodelled_to_string(u->unmodelled));
        for (size_t i = 0; i < _FIT_REASON_MAX; i++)
                if (u->counts[i] > 0) {
                        strbuf_addf(&b, "%s%s %u", between, fit_reason_to_string((FitReason) i), u->counts[i]);
                        between = ", ";
                }
        return strbuf_steal(&b);
}

static char *say(const Simulator *s, const SimulateVerdict *v) {
        _cleanup_(strbuf_done) StrBuf b = {};

        if (!v->fits) {
                _cleanup_free_ char *first = v->n_unplaced > 0 ? say_unplaced(s, v->unplaced) : NULL;

                strbuf_addf(&b, "%s%s", strempty(first), v->only_by_preference ? " (a wish)" : "");
        }
        for (size_t i = 0; v->fits && i < v->n_placements; i++)
                strbuf_addf(&b, "%s%s>%s", i > 0 ? " " : "", simulator_pod(s, v->placements[i].pod)->pod.object.meta.name,
                            simulator_node_name(s, v->placements[i].node));
        return strbuf_steal(&b);
}

static size_t find_nodes(const Simulator *s, const char *names, uint32_t nodes[2]) {
        size_t n = 0;

        for (const char *p = names; *p; p += p[1] ? 2 : 1) {
                const char name[2] = { *p, 0 };

                assert_int_equal(simulator_find_node(s, name, nodes + n++), 0);
        }
        return n;
}

/* Removes the nodes for good. If they may go, each pod has the node that the verdict names. Else nothing moves. */
static void expect_kept(Simulator *s, const uint32_t *nodes, size_t n, const SimulateOptions *options) {
        _cleanup_free_ uint32_t *before = new0(uint32_t, s->n_pods + 1);
        SimulateVerdict v;

        assert_non_null(before);
        for (uint32_t i = 0; i < s->n_pods; i++)
                before[i] = s->pods[i].node;
        assert_int_equal(simulate_removal(s, nodes, n, options, true, &v), 0);
        if (v.fits)
                for (size_t i = 0; i < v.n_sequence; i++)
                        assert_int_equal(s->pods[v.sequence[i].pod].node, v.sequence[i].node);
        else
                for (uint32_t i = 0; i < s->n_pods; i++)
                        assert_int_equal(s->pods[i].node, before[i]);
        simulate_verdict_done(&v);
}

TEST_CASE(test_cases) {
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const Case *c = cases + i;
                _cleanup_(intern_pool_freep) InternPool *pool = NULL;
                _cleanup_(snapshot_freep) Snapshot *snapshot = NULL;
                _cleanup_(simulator_freep) Simulator *s = NULL;
                _cleanup_free_ char *said = NULL;
                SimulateOptions options = { .respect_preferences = c->preferences };
                SimulateVerdict v;
                uint32_t nodes[2];
                size_t n;

                assert_int_equal(intern_pool_new(&pool), 0);
                assert_int_equal(snapshot_new(pool, 0, &snapshot), 0);
                case_put(snapshot, c);
                assert_int_equal(simulator_new(snapshot, &s), 0);
                n = find_nodes(s, c->remove, nodes);
                assert_int_equal(simulate_removal(s, nodes, n, &options, false, &v), 0);
                said = say(s, &v);
                if (!streq(said, c->want))
                        print_error("%s:\n  want '%s'\n  got  '%s'\n", c->what, c->want, said);
                assert_string_equal(said, c->want);
                simulate_verdict_done(&v);
                expect_kept(s, nodes, n, &options);
        }
}

/* -- what a watch brings ------------------------------------------------------------------------------------- */

/* What is said of each node by itself. */
static char *say_all(Simulator *s) {
        _cleanup_(strbuf_done) StrBuf b = {};
        SimulateOptions options = { .quick = true };

        for (uint32_t i = 0; i < simulator_n_nodes(s); i++) {
                _cleanup_free_ char *said = NULL;
                SimulateVerdict v;
                size_t n_pods;

                (void) simulator_pods_of(s, i, &n_pods);
                assert_int_equal(simulate_removal(s, &i, 1, &options, false, &v), 0);
                said = v.fits ? say(s, &v) : strf("no, %zu", v.n_unplaced);
                strbuf_addf(&b, "%s of %zu pods: %s\n", simulator_node_name(s, i), n_pods, said);
                simulate_verdict_done(&v);
        }
        return strbuf_steal(&b);
}

typedef struct Live {
        MadeCluster c;
        const ClusterShape *shape;
        Simulator *s;
        KubeObject *objects[256]; /* by the number of the simulator, a reference each */
        uint32_t n, next;
} Live;

static void live_add(Live *l, uint64_t *state) {
        uint32_t node = (uint32_t) (cluster_draw(state) % (simulator_n_nodes(l->s) + 1)), number;
        const char *name = node == simulator_n_nodes(l->s) ? "" : simulator_node_name(l->s, node);
        KubeObject *o = kube_object_ref(cluster_add_pod(&l->c, l->shape, l->next++, name));

        assert_int_equal(simulator_add_pod(l->s, (KubeScheduledPod *) o, &number), 0);
        l->objects[number] = o;
        l->n = MAX(l->n, number + 1);
}

static void live_forget(Live *l, uint32_t number) {
        _cleanup_free_ char *key = kube_object_key(l->objects[number]);

        simulator_forget_pod(l->s, number);
        kube_object_unref(hashmap_remove(l->c.snapshot->objects[SNAPSHOT_PODS], key));
        l->objects[number] = kube_object_unref(l->objects[number]);
}

static void live_begin(Live *l) {
        assert_int_equal(cluster_make(l->shape, &l->c), 0);
        assert_int_equal(simulator_new(l->c.snapshot, &l->s), 0);
        l->n = simulator_n_pods(l->s);
        l->next = l->shape->n_pods;
        for (uint32_t i = 0; i < l->n; i++)
                l->objects[i] = kube_object_ref((KubeObject *) simulator_pod(l->s, i));
}

static void live_end(Live *l) {
        simulator_free(l->s);
        for (uint32_t i = 0; i < l->n; i++)
                kube_object_unref(l->objects[i]);
        cluster_done(&l->c);
}

/* Pods come and go, of owners that there were and of new ones: a simulator that was told of each says the same as one
 * that was made of the snapshot as it is then. */
TEST_CASE(test_updates) {
        for (uint64_t seed = 1; seed <= 30; seed++) {
                ClusterShape before = { .seed = seed, .n_nodes = 7, .n_pods = 60, .n_owners = 9, .fill_percent = 60 }, after = before;
                Live l = { .shape = &before };
                uint64_t dice = seed;

                live_begin(&l);
                after.n_owners = 14;
                l.shape = &after;
                for (unsigned step = 0; step < 60; step++) {
                        uint32_t pick = (uint32_t) (cluster_draw(&dice) % l.n);

                        if (l.objects[pick] && cluster_draw(&dice) % 2 == 0)
                                live_forget(&l, pick);
                        else
                                live_add(&l, &dice);
                        if (step % 6 == 0) {
                                _cleanup_(simulator_freep) Simulator *fresh = NULL;
                                _cleanup_free_ char *told = say_all(l.s), *made = NULL;

                                assert_int_equal(simulator_new(l.c.snapshot, &fresh), 0);
                                made = say_all(fresh);
                                if (!streq(told, made))
                                        print_error("seed %lu, step %u:\ntold:\n%smade:\n%s", (unsigned long) seed, step, told, made);
                                assert_string_equal(told, made);
                        }
                }
                live_end(&l);
        }
}

/* A pod asks for a resource that nobody had, and another one shares a claim that is for one pod: both are told while the
 * simulator stands. */
TEST_CASE(test_news) {
        static const Case c = {
                "", { { "a", "4", "1" }, { "b", "4", "1" } }, { { "p", "a", "1", NULL, VOLUME("k") } },
                { "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"k\",\"namespace\":\"x\"},\"spec\":{"
                  "\"volumeName\":\"v\",\"accessModes\":[\"ReadWriteOncePod\"]}}," VOLUME_IN_ZONE("v", "1") },
                NULL, false, NULL
        };
        static const char *const late[] = {
                "{\"metadata\":{\"name\":\"g\",\"namespace\":\"x\"},\"spec\":{\"containers\":[{\"resources\":{\"requests\":{"
                "\"example.com/new\":\"1\"}}}]},\"status\":{\"phase\":\"Pending\"}}",
                "{\"metadata\":{\"name\":\"q\",\"namespace\":\"x\"},\"spec\":{\"containers\":[{}]," VOLUME("k") "},\"status\":{\"phase\":\"Pending\"}}",
        };
        static const char *const want[] = { "p>b", "p: not a destination 1, volume 1" };
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_(snapshot_freep) Snapshot *snapshot = NULL;
        _cleanup_(simulator_freep) Simulator *s = NULL;
        SimulateOptions options = {};
        uint32_t node = 0, number;

        assert_int_equal(intern_pool_new(&pool), 0);
        assert_int_equal(snapshot_new(pool, 0, &snapshot), 0);
        case_put(snapshot, &c);
        assert_int_equal(simulator_new(snapshot, &s), 0);
        for (size_t i = 0; i < ELEMENTSOF(late); i++) {
                KubeObject *o = cluster_put(snapshot, SNAPSHOT_PODS, late[i]);
                _cleanup_free_ char *said = NULL;
                SimulateVerdict v;

                assert_int_equal(simulator_add_pod(s, (KubeScheduledPod *) o, &number), 0);
                assert_int_equal(simulate_removal(s, &node, 1, &options, false, &v), 0);
                said = say(s, &v);
                assert_string_equal(said, want[i]);
                simulate_verdict_done(&v);
        }
}

static void expect_removal(Simulator *s, const char *nodes, const char *want) {
        SimulateOptions options = {};
        uint32_t numbers[2];
        size_t n = find_nodes(s, nodes, numbers);
        _cleanup_free_ char *said = NULL;
        SimulateVerdict v;

        assert_int_equal(simulate_removal(s, numbers, n, &options, false, &v), 0);
        said = say(s, &v);
        assert_string_equal(said, want);
        simulate_verdict_done(&v);
}

/* One that is gone, and whose successor is to come: it takes room, and nothing waits for it. */
TEST_CASE(test_vanished) {
        static const Case c = { "", { { "a", "4", "1" }, { "b", "4", "1" }, { "c", "4", "1" } }, { { "p", "a", "3" }, { "q", "b", "2" } }, {}, NULL, false, NULL };
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_(snapshot_freep) Snapshot *snapshot = NULL, *gone = NULL;
        _cleanup_(simulator_freep) Simulator *s = NULL;
        uint32_t number;

        assert_int_equal(intern_pool_new(&pool), 0);
        assert_int_equal(snapshot_new(pool, 0, &snapshot), 0);
        assert_int_equal(snapshot_new(pool, 0, &gone), 0);
        case_put(snapshot, &c);
        put_pod(gone, &(PodRow){ "z", "c", "4", NULL, NULL, "TERMINATING" });
        assert_int_equal(simulator_new(snapshot, &s), 0);
        expect_removal(s, "a", "p>c");
        assert_int_equal(simulator_add_vanished(s, (const KubeScheduledPod *) snapshot_get(gone, SNAPSHOT_PODS, "x/z"), &number), 0);
        expect_removal(s, "a", "p: not a destination 1, resources 2");
        expect_removal(s, "c", "");
        expect_removal(s, "b c", "q: not a destination 2, resources 1"); /* its seat on a is none of theirs */
        simulator_forget_pod(s, number);
        expect_removal(s, "a", "p>c");
}

/* Made with pods that are awaited, it knows what their rules ask for, and they cost their own namespace what it may cost, not others their answer. */
TEST_CASE(test_awaited) {
        static const Case nodes = { "", { { "a", "4", "1" }, { "b", "4", "1" } }, { { "p", "a", "3" } }, {}, NULL, false, NULL };
        static const struct {
                const char *what, *ns;
                SimulatorBounds bounds;
                const char *pdb; /* asks for its label; NULL: nobody does */
                int added; /* what simulator_add_vanished() says */
                size_t n_left_out;
        } rows[] = {
                { "a label that nobody asks for, where there are others", "x", { UINT64_MAX, UINT64_MAX }, NULL, -ESTALE, 0 },
                { "no bytes for its rule", "y", { UINT64_MAX, 1 },
                  "{\"metadata\":{\"name\":\"b\",\"namespace\":\"y\"},\"spec\":{\"selector\":{\"matchLabels\":{\"k9\":\"v\"}}}}", -E2BIG, 1 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(intern_pool_freep) InternPool *pool = NULL;
                _cleanup_(snapshot_freep) Snapshot *snapshot = NULL, *gone = NULL;
                _cleanup_(simulator_freep) Simulator *s = NULL;
                _cleanup_free_ char *text = NULL;
                KubeObject *pods[2];
                uint32_t number;
                size_t n;

                print_message("  %s\n", rows[i].what);
                assert_int_equal(intern_pool_new(&pool), 0);
                assert_int_equal(snapshot_new(pool, 0, &snapshot), 0);
                assert_int_equal(snapshot_new(pool, 0, &gone), 0);
                case_put(snapshot, &nodes);
                if (rows[i].pdb)
                        cluster_put(snapshot, SNAPSHOT_PDBS, rows[i].pdb);
                text = strf("{\"metadata\":{\"name\":\"q\",\"namespace\":\"%s\",\"labels\":{\"k9\":\"v\"}},\"spec\":{\"containers\":[{}],"
                            "\"topologySpreadConstraints\":[{\"maxSkew\":1,\"topologyKey\":\"" ZONE "\",\"whenUnsatisfiable\":\"DoNotSchedule\","
                            "\"labelSelector\":{\"matchLabels\":{\"k9\":\"v\"}}}]}}",
                            rows[i].ns);
                pods[0] = cluster_put(gone, SNAPSHOT_PODS, text);
                put_pod(gone, &(PodRow){ "z", "b", "4", NULL, NULL, "TERMINATING" });
                pods[1] = snapshot_get(gone, SNAPSHOT_PODS, "x/z");
                assert_int_equal(simulator_new_within(snapshot, &(AwaitedPods){}, &rows[i].bounds, &s), 0);
                expect_removal(s, "a", "p>b");
                assert_int_equal(simulator_add_vanished(s, (const KubeScheduledPod *) pods[0], &number), rows[i].added);
                s = simulator_free(s);
                assert_int_equal(simulator_new_within(snapshot, &(AwaitedPods){ pods, ELEMENTSOF(pods) }, &rows[i].bounds, &s), 0);
                assert_ptr_equal(simulator_pod(s, 1), pods[0]);
                assert_ptr_equal(simulator_pod(s, 2), pods[1]);
                (void) simulator_left_out(s, &n);
                assert_int_equal(n, rows[i].n_left_out);
                expect_removal(s, "a", "p: not a destination 1, resources 1"); /* b is z's */
                simulator_forget_pod(s, 2);
                simulator_forget_pod(s, 1);
                expect_removal(s, "a", "p>b");
        }
}

/* What is said of a node does not depend on which were judged before. The pod of one that is leaving has to keep its wish while that node is
 * asked about, and takes what seat there is while others are. */
TEST_CASE(test_history) {
        static const Case c = { "", { { "a", "4", "1" }, { "b", "4", "1" }, { "c", "4", "1" } },
                                { { "p", "a", "1", "s", "\"affinity\":{\"nodeAffinity\":{\"preferredDuringSchedulingIgnoredDuringExecution\":[{\"weight\":1,"
                                    "\"preference\":{\"matchExpressions\":[{\"key\":\"" HOST "\",\"operator\":\"In\",\"values\":[\"a\"]}]}}]}}" },
                                  { "q", "c", "1" } },
                                {}, NULL, true, NULL };
        static const char *const want[][2] = { { "a", "p: not a destination 1, preference 2 (a wish)" }, { "b", "p>c" }, { "c", "q>b" } };
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_(snapshot_freep) Snapshot *snapshot = NULL;
        _cleanup_(simulator_freep) Simulator *s = NULL;
        const SimulateOptions options = { .respect_preferences = true };

        assert_int_equal(intern_pool_new(&pool), 0);
        assert_int_equal(snapshot_new(pool, 0, &snapshot), 0);
        case_put(snapshot, &c);
        ((KubeObject *) snapshot_get(snapshot, SNAPSHOT_NODES, "a"))->meta.deletion_usec = 1;
        assert_int_equal(simulator_new(snapshot, &s), 0);
        for (unsigned i = 0; i < 9; i++) {
                const char *const *row = want[(i + i / 3) % 3];
                _cleanup_free_ char *said = NULL;
                SimulateVerdict v;
                uint32_t node[2];

                assert_int_equal(find_nodes(s, row[0], node), 1);
                assert_int_equal(simulate_removal(s, node, 1, &options, false, &v), 0);
                said = say(s, &v);
                assert_string_equal(said, row[1]);
                simulate_verdict_done(&v);
        }
}

/* Seats of those that wait are kept while others change, and are nowhere when these are counted; too many are said to be. */
TEST_CASE(test_waiting) {
        static const Case c = { "", { { "a", "4", "1" }, { "b", "4", "1" }, { "c", "4", "1" } }, { { "p", "a", "1" }, { "w", "", "3" } }, {}, NULL, false, NULL };
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_(snapshot_freep) Snapshot *snapshot = NULL;
        _cleanup_(simulator_freep) Simulator *s = NULL;
        uint32_t number;

        assert_int_equal(intern_pool_new(&pool), 0);
        assert_int_equal(snapshot_new(pool, 0, &snapshot), 0);
        case_put(snapshot, &c);
        assert_int_equal(simulator_new(snapshot, &s), 0);
        assert_int_equal(simulator_seat_waiting(s), 0);
        assert_int_equal(simulator_node_of(s, 1), 0);
        assert_int_equal(simulator_home_of(s, 1), UINT32_MAX);
        assert_int_equal(simulator_free_room(s, 0, "cpu"), 0);
        expect_removal(s, "a", "w>b p>b");
        expect_removal(s, "b c", "");
        assert_int_equal(simulator_free_room(s, 0, "cpu"), 0);
        put_pod(snapshot, &(PodRow){ "v", "a", "1" });
        assert_int_equal(simulator_add_pod(s, (const KubeScheduledPod *) snapshot_get(snapshot, SNAPSHOT_PODS, "x/v"), &number), 0);
        assert_int_equal(simulator_node_of(s, 1), UINT32_MAX);
        assert_int_equal(simulator_free_room(s, 0, "cpu"), 2000);
        expect_removal(s, "c", ""); /* w is on b now */
        expect_removal(s, "b c", "w: not a destination 2, resources 1");
        assert_false(simulator_has_more_waiting(s));
        for (unsigned i = 0; i < 600; i++) {
                _cleanup_free_ char *name = strf("many-%u", i), *key = strf("x/%s", name);

                put_pod(snapshot, &(PodRow){ name, "", "1m" });
                assert_int_equal(simulator_add_pod(s, (const KubeScheduledPod *) snapshot_get(snapshot, SNAPSHOT_PODS, key), &number), 0);
        }
        assert_int_equal(simulator_seat_waiting(s), 0);
        assert_true(simulator_has_more_waiting(s));
}

#define BY_NAME \
        "\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":[{\"matchFields\":[" \
        "{\"key\":\"metadata.name\",\"operator\":\"NotIn\",\"values\":[\"x\"]}]}]}}}"
#define FOUR_RULES \
        "\"affinity\":{\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[" TERM(HOST, "o") "," TERM(HOST, "o") "," TERM(HOST, "o") "," TERM(HOST, "o") "]}}"

/* Pods that no node takes are asked for as long as that does not take too long: a pod for all that are like it, each other one by itself, by what it
 * asks nodes about. Those that are not asked for may need any node. */
TEST_CASE(test_waiting_work) {
        static const struct {
                const char *what;
                unsigned n_pods;
                bool differ;      /* by a byte */
                const char *spec; /* members, of each */
                unsigned n_ports; /* of the host, of each; both nodes have two that are taken */
                uint64_t work;    /* that is needed */
        } rows[] = {
                { "pods of one kind", 500, false, "", 0, 2 },
                { "each of its own kind", 500, true, "", 0, 1000 },
                { "each with a volume, which somebody else may not have", 500, false, "," VOLUME("k"), 0, 500 * 2 * (1 + 4) },
                { "each with 16 host ports, and 2 nodes with 2 each", 10, true, "", 16, 10 * (2 + 16 * 4 / 8) },
                { "as many as a pod may have", 10, true, "", 256, 10 * (2 + 256 * 4 / 8) },
                { "more: none of these is asked for", 10, true, "", 257, 0 },
                { "each asks for nodes by their names", 10, true, "," BY_NAME, 0, 10 * 2 * (1 + 2) },
                { "each with 4 rules about others", 10, false, "," FOUR_RULES, 0, 2 * (1 + 1) },
        };
        static const Case nodes = { "", { { "a", "4", "1" }, { "b", "4", "1" } }, {}, {}, NULL, false, NULL };
        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                for (unsigned lacks = 0; lacks <= 1; lacks++) {
                        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
                        _cleanup_(snapshot_freep) Snapshot *snapshot = NULL;
                        _cleanup_(simulator_freep) Simulator *s = NULL;
                        _cleanup_strbuf_ StrBuf ports = {};

                        if (lacks > rows[i].work)
                                continue;
                        print_message("  %s%s\n", rows[i].what, lacks ? ", and a look too few" : "");
                        assert_int_equal(intern_pool_new(&pool), 0);
                        assert_int_equal(snapshot_new(pool, 0, &snapshot), 0);
                        case_put(snapshot, &nodes);
                        for (unsigned k = 0; k < 2; k++) {
                                _cleanup_free_ char *text = strf("{\"metadata\":{\"name\":\"d%u\",\"namespace\":\"w\"},\"spec\":{\"nodeName\":\"%s\",\"containers\":["
                                                                 "{\"ports\":[{\"hostPort\":80},{\"hostPort\":81}]}]},\"status\":{\"phase\":\"Running\"}}",
                                                                 k, k == 0 ? "a" : "b");

                                cluster_put(snapshot, SNAPSHOT_PODS, text);
                        }
                        for (unsigned k = 0; k < rows[i].n_ports; k++)
                                strbuf_addf(&ports, "%s{\"hostPort\":%u}", k > 0 ? "," : "", 1000 + k);
                        for (unsigned k = 0; k < rows[i].n_pods; k++) {
                                _cleanup_free_ char *text =
                                        strf("{\"metadata\":{\"name\":\"p%u\",\"namespace\":\"x\"},\"spec\":{\"containers\":[{\"ports\":[%s],\"resources\":{\"requests\":{"
                                             "\"cpu\":\"99\",\"memory\":\"%u\"}}}]%s},\"status\":{\"phase\":\"Pending\"}}",
                                             k, strbuf_str(&ports), rows[i].differ ? k + 1 : 1, rows[i].spec);

                                cluster_put(snapshot, SNAPSHOT_PODS, text);
                        }
                        assert_int_equal(simulator_new(snapshot, &s), 0);
                        assert_int_equal(s->search_work_max, simulator_search_work);
                        s->search_work_max = rows[i].work - lacks;
                        assert_int_equal(simulator_seat_waiting(s), 0);
                        assert_int_equal(simulator_has_more_waiting(s), lacks);
                }
}

/* Of small sizes, some of them bound to a zone or node, some that keep others away. */
static void put_drawn_pod(Snapshot *snapshot, uint64_t *dice, const char *name, bool keeps_off) {
        static const char *const apps[] = { "s", "t", "u" };
        static const char *const specs[] = { "", "", "", "\"nodeSelector\":{\"" ZONE "\":\"1\"}", "\"nodeSelector\":{\"" ZONE "\":\"2\"}", "\"nodeSelector\":{\"" HOST "\":\"b\"}",
                                             SPREAD(HOST, 2, "t", "") };
        static const char *const rules[] = { ANTI(HOST, "s"), ANTI(ZONE, "t"), ANTI(HOST, "u") };
        const char node[] = { (char) ('a' + cluster_draw(dice) % 5), 0 }, cpu[] = { (char) ('1' + cluster_draw(dice) % 3), 0 };

        put_pod(snapshot, &(PodRow){ name, node, cpu, apps[cluster_draw(dice) % 3],
                                     keeps_off ? rules[cluster_draw(dice) % 3] : specs[cluster_draw(dice) % ELEMENTSOF(specs)] });
}

/* Pods that keep others away come, each node is judged, and they go: what is said of nodes is then what a simulator says that has never heard of
 * them. Their groups are still there, and orders in which pods are tried have been found with them. */
TEST_CASE(test_leaves_nothing) {
        static const Case nodes = { "", { { "a", "8", "1" }, { "b", "9", "2" }, { "c", "7", "1" }, { "d", "6", "2" }, { "e", "8", "3" } }, {}, {}, NULL, false, NULL };
        unsigned yes = 0, no = 0;

        for (uint64_t seed = 1; seed <= 200; seed++) {
                _cleanup_(intern_pool_freep) InternPool *pool = NULL;
                _cleanup_(snapshot_freep) Snapshot *snapshot = NULL, *more = NULL;
                _cleanup_(simulator_freep) Simulator *s = NULL, *fresh = NULL;
                _cleanup_free_ char *with = NULL, *after = NULL, *want = NULL;
                uint32_t numbers[3], n = 0;
                uint64_t dice = seed;
                KubeObject *o;

                assert_int_equal(intern_pool_new(&pool), 0);
                assert_int_equal(snapshot_new(pool, 0, &snapshot), 0);
                assert_int_equal(snapshot_new(pool, 0, &more), 0);
                case_put(snapshot, &nodes);
                put_pod(snapshot, &(PodRow){ "asks", "", "99", "none", ANTI(HOST, "none") }); /* for the label app */
                for (unsigned i = 0; i < 11 + ELEMENTSOF(numbers); i++) {
                        _cleanup_free_ char *name = strf("p%02u", i);

                        put_drawn_pod(i < 11 ? snapshot : more, &dice, name, i >= 11);
                }
                assert_int_equal(simulator_new(snapshot, &s), 0);
                HASHMAP_FOREACH (o, more->objects[SNAPSHOT_PODS])
                        assert_int_equal(simulator_add_pod(s, (KubeScheduledPod *) o, numbers + n++), 0);
                with = say_all(s);
                while (n > 0)
                        simulator_forget_pod(s, numbers[--n]);
                after = say_all(s);
                assert_int_equal(simulator_new(snapshot, &fresh), 0);
                want = say_all(fresh);
                if (!streq(after, want))
                        print_error("seed %lu:\nwhile they were there:\n%safter:\n%sfresh:\n%s", (unsigned long) seed, with, after, want);
                assert_string_equal(after, want);
                for (const char *p = want; (p = strchr(p, ':')); p++)
                        if (startswith(p, ": no"))
                                no++;
                        else
                                yes++;
        }
        print_message("%u may go, %u may not\n", yes, no);
        assert_true(yes > 100 && no > 100);
}

static KubeObject *put_spread_pod(Snapshot *snapshot, const char *label) {
        _cleanup_free_ char *text = strf("{\"metadata\":{\"name\":\"p\",\"namespace\":\"x\",\"labels\":{\"app\":\"p\",\"own\":\"%s\"}},\"spec\":{"
                                         "\"nodeName\":\"a\",\"containers\":[{}],\"topologySpreadConstraints\":[{\"maxSkew\":1,\"topologyKey\":\"" ZONE "\","
                                         "\"whenUnsatisfiable\":\"ScheduleAnyway\",\"labelSelector\":{\"matchExpressions\":[{\"key\":\"own\",\"operator\":\"Exists\"}]}}]},"
                                         "\"status\":{\"phase\":\"Running\"}}", label);

        return kube_object_ref(cluster_put(snapshot, SNAPSHOT_PODS, text));
}

/* A pod that changes all the time takes no more room for that; where each time it is of another kind, somebody is told. */
TEST_CASE(test_bloat) {
        static const Case c = { "", { { "a", "4", "1" }, { "b", "4", "1" } }, {}, {}, NULL, false, NULL };
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_(snapshot_freep) Snapshot *snapshot = NULL;
        _cleanup_(simulator_freep) Simulator *s = NULL;
        KubeObject *before, *now;

        assert_int_equal(intern_pool_new(&pool), 0);
        assert_int_equal(snapshot_new(pool, 0, &snapshot), 0);
        case_put(snapshot, &c);
        before = put_spread_pod(snapshot, "0");
        assert_int_equal(simulator_new(snapshot, &s), 0);
        for (unsigned i = 1; i < 1500; i++) {
                char label[16];

                snprintf(label, sizeof(label), "%u", i < 500 ? 1 : i);
                now = put_spread_pod(snapshot, label);
                assert_int_equal(simulator_change_pod(s, 0, (KubeScheduledPod *) now), 0);
                kube_object_unref(before);
                before = now;
                assert_int_equal(simulator_n_pods(s), 1);
                for (uint32_t k = 0; k < s->n_groups; k++)
                        assert_int_equal(s->groups[k].n_reserved, 1);
                if (simulator_n_templates(s) <= 1000)
                        assert_false(simulator_is_bloated(s));
        }
        assert_int_equal(simulator_n_templates(s), 1002);
        assert_false(simulator_is_bloated(s)); /* it began with one */
        now = put_spread_pod(snapshot, "last");
        assert_int_equal(simulator_change_pod(s, 0, (KubeScheduledPod *) now), 0);
        assert_true(simulator_is_bloated(s));
        kube_object_unref(before);
        kube_object_unref(now);
}

/* -- what tenants may write without end ------------------------------------------------------------------------ */

/* The label own is asked for, so that each pod that has another is a kind. */
#define NONE "{\"matchLabels\":{\"own\":\"none\"}}"
#define EACH "{\"matchExpressions\":[{\"key\":\"own\",\"operator\":\"Exists\"}]}"

/* Pods 0 .. n-1, each with a label of its own and so many terms of anti-affinity. */
static void put_rules(Snapshot *snapshot, unsigned n, unsigned n_terms, const char *selector) {
        _cleanup_strbuf_ StrBuf terms = {};

        for (unsigned i = 0; i < n_terms; i++)
                strbuf_addf(&terms, "%s{\"topologyKey\":\"" ZONE "\",\"labelSelector\":%s}", i > 0 ? "," : "", selector);
        for (unsigned i = 0; i < n; i++) {
                _cleanup_free_ char *text = strf("{\"metadata\":{\"name\":\"p%u\",\"namespace\":\"x\",\"labels\":{\"own\":\"%u\"}},\"spec\":{"
                                                 "\"containers\":[{}],\"affinity\":{\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[%s]}}},"
                                                 "\"status\":{\"phase\":\"Pending\"}}", i, i, strbuf_str(&terms));

                cluster_put(snapshot, SNAPSHOT_PODS, text);
        }
}

TEST_CASE(test_too_large) {
        static const Case nodes = { "", { { "a", "4", "1" }, { "b", "4", "1" } }, {}, {}, NULL, false, NULL };
        static const struct {
                const char *what;
                unsigned n_pods, n_terms;
                const char *selector;
                PodUnmodelled unmodelled; /* each */
        } rows[] = {
                { "as many rules as a pod may have", 3, 64, EACH, POD_MODELLED },
                { "one more: none is looked at", 3, 65, EACH, POD_RULES_OVER_MAX },
                { "of which a few cost nothing", 4, 500, EACH, POD_RULES_OVER_MAX },
                { "nor do those that make a text which is too long", 4, 1000, EACH, POD_UNREADABLE },
                { "however long", 4, 11000, EACH, POD_UNREADABLE },
                { "many kinds of pods", 500, 64, NONE, POD_MODELLED },
                { "too many for all of them to be compared", 1200, 64, NONE, POD_TOO_MANY_RULES },
                { "not that many, but each counts in each rule", 700, 64, EACH, POD_TOO_MANY_RULES },
                { "many more, of one kind: nobody asks for the label that differs", 5000, 64, "{}", POD_MODELLED },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(intern_pool_freep) InternPool *pool = NULL;
                _cleanup_(snapshot_freep) Snapshot *snapshot = NULL;
                _cleanup_(simulator_freep) Simulator *s = NULL;
                size_t n_left_out;

                print_message("  %s\n", rows[i].what);
                assert_int_equal(intern_pool_new(&pool), 0);
                assert_int_equal(snapshot_new(pool, 0, &snapshot), 0);
                case_put(snapshot, &nodes);
                put_rules(snapshot, rows[i].n_pods, rows[i].n_terms, rows[i].selector);
                assert_int_equal(simulator_new(snapshot, &s), 0);
                for (uint32_t k = 0; k < rows[i].n_pods; k++)
                        assert_int_equal(simulator_pod_unmodelled(s, k), rows[i].unmodelled);
                (void) simulator_left_out(s, &n_left_out);
                assert_int_equal(n_left_out, rows[i].unmodelled == POD_TOO_MANY_RULES);
                assert_true((s->spent.bytes > 0) == (rows[i].unmodelled != POD_TOO_MANY_RULES));
                assert_true((s->n_groups > 0) == (rows[i].unmodelled != POD_TOO_MANY_RULES));
                /* Their one key, however many rules have it; or the two of the usual ones that nodes have. */
                assert_int_equal(s->n_closing, rows[i].unmodelled == POD_RULES_OVER_MAX ? 1 : rows[i].unmodelled == POD_UNREADABLE ? 2 : 0);
                for (uint32_t k = 0; k < simulator_n_templates(s) && s->n_closing > 0; k++)
                        assert_int_equal(s->templates[k].n_counted, s->n_closing);
        }
}

/* A simulator that stands is held to the same by what a watch brings; the next one leaves the namespace out. */
TEST_CASE(test_grows_too_large) {
        static const Case nodes = { "", { { "a", "4", "1" }, { "b", "4", "1" } }, {}, {}, NULL, false, NULL };
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_(snapshot_freep) Snapshot *snapshot = NULL, *more = NULL;
        _cleanup_(simulator_freep) Simulator *s = NULL, *next = NULL;
        _cleanup_free_ char *text = NULL;
        KubeObject *o;
        uint32_t number;
        int r = 0;

        assert_int_equal(intern_pool_new(&pool), 0);
        assert_int_equal(snapshot_new(pool, 0, &snapshot), 0);
        assert_int_equal(snapshot_new(pool, 0, &more), 0);
        case_put(snapshot, &nodes);
        case_put(more, &nodes);
        put_rules(snapshot, 1, 1, NONE); /* somebody asks for the label already */
        assert_int_equal(simulator_new(snapshot, &s), 0);
        put_rules(more, 1200, 64, NONE);
        HASHMAP_FOREACH (o, more->objects[SNAPSHOT_PODS])
                if (r >= 0)
                        r = simulator_add_pod(s, (KubeScheduledPod *) o, &number);
        assert_int_equal(r, -E2BIG);
        assert_in_range(simulator_n_pods(s), 700, 1200);
        assert_int_equal(simulator_left_out_text(s, &text), 0);
        assert_null(text);
        assert_int_equal(simulator_new(more, &next), 0);
        assert_int_equal(simulator_left_out_text(next, &text), 0);
        assert_string_equal(text, "namespace 'x' has " TOO_MANY_RULES_TEXT);
}

/* -- namespaces that are left out --------------------------------------------------------------------------- */

#define ALL_NAMESPACES ",\"namespaceSelector\":{}"
#define KEEP_OFF(key, more) REQUIRED("podAntiAffinity", key, "{}", more)
#define REQUIRED(what, key, selector, more) \
        "\"affinity\":{\"" what "\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{\"topologyKey\":\"" key "\",\"labelSelector\":" selector more "}]}}"
#define OWN_TERM "{\"topologyKey\":\"" ZONE "\",\"labelSelector\":" NONE "}"
#define OF_Y ",\"namespaces\":[\"y\"]"
#define TENANT "{\"matchLabels\":{\"app\":\"t\"}}"

/* A tenant's pod t, and eight that have run, each of its own kind with four rules. */
static void put_tenant(Snapshot *snapshot, const char *node, const char *rules) {
        _cleanup_free_ char *text = strf("{\"metadata\":{\"name\":\"t\",\"namespace\":\"y\",\"labels\":{\"app\":\"t\"}},\"spec\":{\"nodeName\":\"%s\","
                                         "\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"3\"}}}]%s%s},\"status\":{\"phase\":\"%s\"}}",
                                         node, *rules ? "," : "", rules, *node ? "Running" : "Pending");

        cluster_put(snapshot, SNAPSHOT_PODS, text);
        for (unsigned i = 0; i < 8; i++) {
                _cleanup_free_ char *other = strf("{\"metadata\":{\"name\":\"u%u\",\"namespace\":\"y\",\"labels\":{\"own\":\"%u\"}},\"spec\":{\"containers\":[{}],"
                                                  "\"affinity\":{\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":["
                                                  OWN_TERM "," OWN_TERM "," OWN_TERM "," OWN_TERM "]}}},\"status\":{\"phase\":\"Succeeded\"}}",
                                                  i, i);

                cluster_put(snapshot, SNAPSHOT_PODS, other);
        }
}

/* Pods of a namespace that is left out cost no comparison, however many come. late: empty, and stays until s is freed. */
static void add_late_tenants(Simulator *s, Snapshot *late) {
        KubeObject *o;
        uint32_t number;

        for (unsigned i = 0; i < 10; i++) {
                _cleanup_free_ char *text = strf("{\"metadata\":{\"name\":\"late%u\",\"namespace\":\"y\",\"labels\":{\"own\":\"late%u\"}},"
                                                 "\"spec\":{\"containers\":[{}]},\"status\":{\"phase\":\"Succeeded\"}}", i, i);

                cluster_put(late, SNAPSHOT_PODS, text);
        }
        HASHMAP_FOREACH (o, late->objects[SNAPSHOT_PODS])
                assert_int_equal(simulator_add_pod(s, (KubeScheduledPod *) o, &number), 0);
}

TEST_CASE(test_left_out) {
        static const SimulatorBounds few = { .work = 200, .bytes = 1 << 20 }; /* y's rules take more than that, x's do not */
        static const struct {
                const char *what, *node, *rules; /* of y's pod t; node "": it is pending */
                PodRow pods[2];                  /* of x */
                const char *want;                /* what is said if a goes */
        } rows[] = {
                { "x goes by its own rules, to nodes of y's as well", "c", "", { { "p", "a", "1", "s", ANTI(HOST, "s") }, { "q", "b", "1", "s" } }, "p>c" },
                { "a pod of y has no seat that anybody could promise", "a", "", { { "p", "a", "1" } }, "t: TOO_MANY_RULES" },
                { "what keeps y's own pods off keeps nobody else off", "b", KEEP_OFF(ZONE, ""), { { "p", "a", "1" } }, "p>b" },
                { "what keeps off all pods closes the zone", "b", KEEP_OFF(ZONE, ALL_NAMESPACES), { { "p", "a", "1" } }, "p>d" },
                { "... and if it is about one namespace, too", "b", KEEP_OFF(ZONE, ",\"namespaces\":[\"z\"]"), { { "p", "a", "1" } }, "p>d" },
                { "... or the node", "b", KEEP_OFF(HOST, ALL_NAMESPACES), { { "p", "a", "1" } }, "p>c" },
                { "... or nothing, if no node has that label", "b", KEEP_OFF("none", ALL_NAMESPACES), { { "p", "a", "1" } }, "p>b" },
                { "x wants to be with y's pod", "c", "", { { "p", "a", "1", "s", REQUIRED("podAffinity", HOST, TENANT, OF_Y) } }, "p>c" },
                { "x wants to be away from it", "b", "", { { "p", "a", "1", "s", REQUIRED("podAntiAffinity", ZONE, TENANT, OF_Y) } }, "p>d" },
                { "one that is pending takes room", "", "", { { "p", "a", "2", "s", "\"nodeSelector\":{\"" HOST "\":\"b\"}" } },
                  "p: not a destination 1, node affinity 2, resources 1" },
                { "... whatever keeps it off", "", KEEP_OFF(ZONE, ALL_NAMESPACES), { { "p", "a", "2", "s", "\"nodeSelector\":{\"" HOST "\":\"b\"}" } },
                  "p: not a destination 1, node affinity 2, resources 1" },
        };
        static const Case nodes = { "", { { "a", "8", "1" }, { "b", "4", "1" }, { "c", "4", "1" }, { "d", "4", "2" } }, {}, {}, NULL, false, NULL };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                for (unsigned late = 0; late <= 1; late++) { /* t is there when the simulator is made, or comes when it stands */
                        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
                        _cleanup_(snapshot_freep) Snapshot *snapshot = NULL, *tenants = NULL;
                        _cleanup_(simulator_freep) Simulator *s = NULL;
                        _cleanup_free_ char *said = NULL;
                        SimulateOptions options = {};
                        SimulateVerdict v;
                        KubeObject *t = NULL;
                        uint32_t node = 0, number;
                        size_t n;
                        const char *const *names;

                        print_message("  %s%s\n", rows[i].what, late ? ", late" : "");
                        assert_int_equal(intern_pool_new(&pool), 0);
                        assert_int_equal(snapshot_new(pool, 0, &snapshot), 0);
                        assert_int_equal(snapshot_new(pool, 0, &tenants), 0);
                        case_put(snapshot, &nodes);
                        for (size_t k = 0; k < ELEMENTSOF(rows[i].pods) && rows[i].pods[k].name; k++)
                                put_pod(snapshot, rows[i].pods + k);
                        put_tenant(snapshot, rows[i].node, rows[i].rules);
                        if (late)
                                t = hashmap_remove(snapshot->objects[SNAPSHOT_PODS], "y/t");
                        assert_int_equal(simulator_new_within(snapshot, &(AwaitedPods){}, &few, &s), 0);
                        if (late) {
                                assert_int_equal(simulator_add_pod(s, (KubeScheduledPod *) t, &number), 0);
                                assert_int_equal(snapshot_put(snapshot, SNAPSHOT_PODS, t), 0);
                                kube_object_unref(t);
                                add_late_tenants(s, tenants);
                        }
                        names = simulator_left_out(s, &n);
                        assert_int_equal(n, 1);
                        assert_string_equal(names[0], "y");
                        assert_int_equal(simulate_removal(s, &node, 1, &options, false, &v), 0);
                        said = say(s, &v);
                        assert_string_equal(said, rows[i].want);
                        simulate_verdict_done(&v);
                }
}

/* Pending pods of this namespace, which no rule keeps from a, b and c. */
static void put_pending(Snapshot *snapshot, const char *ns, const char *rules, unsigned n) {
        for (unsigned i = 0; i < n; i++) {
                _cleanup_free_ char *text = strf("{\"metadata\":{\"name\":\"w%u\",\"namespace\":\"%s\",\"uid\":\"%s-%u\",\"labels\":{\"own\":\"%u\"}},\"spec\":{"
                                                 "\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"1m\"}}}]%s%s},\"status\":{\"phase\":\"Pending\"}}",
                                                 i, ns, ns, i, i, *rules ? "," : "", rules);

                cluster_put(snapshot, SNAPSHOT_PODS, text);
        }
}

/* However many pods tenants make that may never be placed, those that will be have their places, and nodes may go. */
TEST_CASE(test_unsure) {
        static const char never[] = REQUIRED("podAffinity", HOST, NONE, "");
        static const struct {
                const char *what;
                unsigned n_sure, n_left_out, n_vanished; /* of x; of y, and as many of z; of v */
                size_t n_competitors;
                bool has_more;
        } rows[] = {
                { "few of each", 3, 50, 50, 153, false },
                { "many, of which no node may ever take one", 3, 501, 0, 203, false },
                { "many whose successors are still to come", 3, 0, 501, 103, false },
                { "both, and there is no place left", 400, 501, 501, 500, false },
                { "as many as there are places, and others", 500, 501, 501, 500, false },
                { "one more", 501, 501, 501, 500, true },
        };
        static const Case nodes = { "", { { "a", "8", "1" }, { "b", "4", "1" } }, {}, {}, NULL, false, NULL };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const SimulatorBounds none = { .bytes = 1 << 20 };
                _cleanup_(intern_pool_freep) InternPool *pool = NULL;
                _cleanup_(snapshot_freep) Snapshot *snapshot = NULL, *gone = NULL;
                _cleanup_(simulator_freep) Simulator *s = NULL;
                size_t n_sure = 0;
                KubeObject *o;
                uint32_t number;

                print_message("  %s\n", rows[i].what);
                assert_int_equal(intern_pool_new(&pool), 0);
                assert_int_equal(snapshot_new(pool, 0, &snapshot), 0);
                assert_int_equal(snapshot_new(pool, 0, &gone), 0);
                case_put(snapshot, &nodes);
                put_pending(snapshot, "x", "", rows[i].n_sure);
                put_pending(snapshot, "y", never, rows[i].n_left_out);
                put_pending(snapshot, "z", never, rows[i].n_left_out);
                put_pending(gone, "v", "", rows[i].n_vanished);
                assert_int_equal(simulator_new_within(snapshot, &(AwaitedPods){}, &none, &s), 0);
                HASHMAP_FOREACH (o, gone->objects[SNAPSHOT_PODS])
                        assert_int_equal(simulator_add_vanished(s, (KubeScheduledPod *) o, &number), 0);
                assert_int_equal(simulator_seat_waiting(s), 0);
                assert_int_equal(s->n_competitors, rows[i].n_competitors);
                assert_int_equal(simulator_has_more_waiting(s), rows[i].has_more);
                for (size_t k = 0; k < s->n_competitors; k++)
                        n_sure += streq(simulator_pod(s, s->competitors[k])->pod.object.meta.ns, "x");
                assert_int_equal(n_sure, MIN(rows[i].n_sure, 500u));
        }
}

/* -- pods whose rules are not looked at ------------------------------------------------------------------- */

#define OFF(key, selector, more) "{\"topologyKey\":" key ",\"labelSelector\":" selector more "}"
#define OFF_ZONE "\"" ZONE "\""
#define OFF_HOST "\"" HOST "\""
#define WEB "{\"matchLabels\":{\"app\":\"web\"}}"
#define UNKNOWN "{\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"Gt\",\"values\":[\"1\"]}]}"

/* y's pod e on b: such a rule that keeps others away, and as many wishes about pods that there are not. */
static KubeObject *put_unread(Snapshot *snapshot, const char *rule, unsigned n_wishes, const char *more) {
        _cleanup_strbuf_ StrBuf wishes = {};
        _cleanup_free_ char *text = NULL;

        for (unsigned i = 0; i < n_wishes; i++)
                strbuf_addf(&wishes, "%s{\"weight\":1,\"podAffinityTerm\":{\"topologyKey\":\"" ZONE "\",\"labelSelector\":{\"matchLabels\":{\"key-%u\":\"none\"}}}}",
                            i > 0 ? "," : "", i);
        text = strf("{\"metadata\":{\"name\":\"e\",\"namespace\":\"y\",\"labels\":{\"app\":\"t\"}},\"spec\":{\"nodeName\":\"b\",\"containers\":[{}]%s,"
                    "\"affinity\":{\"podAffinity\":{\"preferredDuringSchedulingIgnoredDuringExecution\":[%s]},"
                    "\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[%s]}}},\"status\":{\"phase\":\"Running\"}}",
                    more, strbuf_str(&wishes), rule);
        return cluster_put(snapshot, SNAPSHOT_PODS, text);
}

TEST_CASE(test_unread) {
        static const struct {
                const char *what, *rule;
                unsigned n_wishes;
                const char *more; /* members of e's spec */
                PodUnmodelled unmodelled;
                PodRow p;
                const char *want; /* what is said if a goes */
        } rows[] = {
                { "as many as a pod may have, about p", OFF(OFF_ZONE, WEB, ALL_NAMESPACES), 63, "", POD_MODELLED, { "p", "a", "1", "web" }, "p>d" },
                { "... or about others", OFF(OFF_ZONE, TENANT, ALL_NAMESPACES), 63, "", POD_MODELLED, { "p", "a", "1", "web" }, "p>b" },
                { "one more, about p", OFF(OFF_ZONE, WEB, ALL_NAMESPACES), 64, "", POD_RULES_OVER_MAX, { "p", "a", "1", "web" }, "p>d" },
                { "... whomever it is about", OFF(OFF_ZONE, TENANT, ALL_NAMESPACES), 64, "", POD_RULES_OVER_MAX, { "p", "a", "1", "web" }, "p>d" },
                { "... in its own namespace, too", OFF(OFF_ZONE, TENANT, ""), 64, "", POD_RULES_OVER_MAX, { "p", "a", "1", "web" }, "p>d" },
                { "... on its node alone", OFF(OFF_HOST, WEB, ALL_NAMESPACES), 64, "", POD_RULES_OVER_MAX, { "p", "a", "1", "web" }, "p>c" },
                { "... or nowhere", "", 65, "", POD_RULES_OVER_MAX, { "p", "a", "1", "web" }, "p>b" },
                { "... nor on what no node has", OFF("\"none\"", WEB, ALL_NAMESPACES), 64, "", POD_RULES_OVER_MAX, { "p", "a", "1", "web" }, "p>b" },
                { "p wants to be away from it", "", 65, "", POD_RULES_OVER_MAX,
                  { "p", "a", "1", "web", REQUIRED("podAntiAffinity", ZONE, TENANT, OF_Y) }, "p>d" },
                { "p wants to be with it", "", 65, "", POD_RULES_OVER_MAX,
                  { "p", "a", "1", "web", "\"nodeSelector\":{\"" HOST "\":\"b\"}," REQUIRED("podAffinity", ZONE, TENANT, OF_Y) }, "p>b" },
                { "an operator that nobody knows", OFF(OFF_ZONE, UNKNOWN, ALL_NAMESPACES), 0, "", POD_UNREADABLE, { "p", "a", "1", "web" }, "p>d" },
                { "... beside a rule that can be read", OFF(OFF_HOST, WEB, "") "," OFF(OFF_HOST, UNKNOWN, ""), 0, "", POD_UNREADABLE, { "p", "a", "1", "web" }, "p>c" },
                { "a key that cannot be read: its zone", OFF("5", WEB, ALL_NAMESPACES), 0, "", POD_UNREADABLE, { "p", "a", "1", "web" }, "p>d" },
                { "something else that cannot be read", OFF(OFF_ZONE, WEB, ALL_NAMESPACES), 0, ",\"overhead\":{\"cpu\":\"-\"}", POD_UNREADABLE, { "p", "a", "1", "web" }, "p>d" },
                { "... of a pod that keeps nobody away", "", 0, ",\"overhead\":{\"cpu\":\"-\"}", POD_UNREADABLE, { "p", "a", "1", "web" }, "p>c" },
                { "... and that p wants to be away from", "", 0, ",\"overhead\":{\"cpu\":\"-\"}", POD_UNREADABLE,
                  { "p", "a", "1", "web", REQUIRED("podAntiAffinity", ZONE, TENANT, OF_Y) }, "p>d" },
        };
        static const Case nodes = { "", { { "a", "8", "1" }, { "b", "4", "1" }, { "c", "4", "1" }, { "d", "4", "2" } }, {}, {}, NULL, false, NULL };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                for (unsigned late = 0; late <= 1; late++) { /* e is there when the simulator is made, or comes when it stands */
                        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
                        _cleanup_(snapshot_freep) Snapshot *snapshot = NULL, *more = NULL;
                        _cleanup_(simulator_freep) Simulator *s = NULL;
                        KubeObject *e;
                        uint32_t number;

                        print_message("  %s%s\n", rows[i].what, late ? ", late" : "");
                        assert_int_equal(intern_pool_new(&pool), 0);
                        assert_int_equal(snapshot_new(pool, 0, &snapshot), 0);
                        assert_int_equal(snapshot_new(pool, 0, &more), 0);
                        case_put(snapshot, &nodes);
                        put_pod(snapshot, &rows[i].p);
                        put_pod(snapshot, &(PodRow){ "asks", "", "99", "s", ANTI(HOST, "none") }); /* for the label app */
                        e = put_unread(late ? more : snapshot, rows[i].rule, rows[i].n_wishes, rows[i].more);
                        assert_int_equal(simulator_new(snapshot, &s), 0);
                        if (late && rows[i].unmodelled == POD_MODELLED) { /* it asks for labels that nobody has asked for */
                                assert_int_equal(simulator_add_pod(s, (KubeScheduledPod *) e, &number), -ESTALE);
                                continue;
                        }
                        if (late)
                                assert_int_equal(simulator_add_pod(s, (KubeScheduledPod *) e, &number), 0);
                        else
                                number = 2; /* y/e is behind x's */
                        assert_int_equal(simulator_pod_unmodelled(s, number), rows[i].unmodelled);
                        expect_removal(s, "a", rows[i].want);
                        assert_true((read_labels_size(s->read_labels) < 10) == (rows[i].unmodelled != POD_MODELLED)); /* rules that are not looked at ask for none */
                }
}

/* Of three that need too much together, for which there are three quarters of it, those that need less have their rules. */
TEST_CASE(test_shares) {
        static const struct {
                const char *what;
                unsigned n_kinds[3]; /* of namespaces a, b, c, with a rule each */
                uint64_t work;
                const char *left_out;
        } rows[] = {
                { "room for all", { 10, 20, 30 }, 10000, NULL },
                { "not for the largest", { 10, 20, 30 }, 1600, "namespace 'c' has " TOO_MANY_RULES_TEXT },
                { "whichever that is", { 30, 10, 20 }, 1600, "namespace 'a' has " TOO_MANY_RULES_TEXT },
                { "for the smallest only", { 20, 10, 30 }, 532, "namespaces 'a' and 'c' have " TOO_MANY_RULES_TEXT },
                { "for none", { 10, 10, 10 }, 268, "namespaces 'a', 'b' and 'c' have " TOO_MANY_RULES_TEXT },
        };
        static const Case nodes = { "", { { "n", "4", "1" } }, {}, {}, NULL, false, NULL };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const SimulatorBounds bounds = { .work = rows[i].work, .bytes = 1 << 20 };
                _cleanup_(intern_pool_freep) InternPool *pool = NULL;
                _cleanup_(snapshot_freep) Snapshot *snapshot = NULL;
                _cleanup_(simulator_freep) Simulator *s = NULL;
                _cleanup_free_ char *said = NULL;

                print_message("  %s\n", rows[i].what);
                assert_int_equal(intern_pool_new(&pool), 0);
                assert_int_equal(snapshot_new(pool, 0, &snapshot), 0);
                case_put(snapshot, &nodes);
                for (unsigned ns = 0; ns < 3; ns++)
                        for (unsigned k = 0; k < rows[i].n_kinds[ns]; k++) {
                                _cleanup_free_ char *text = strf("{\"metadata\":{\"name\":\"p%u\",\"namespace\":\"%c\",\"labels\":{\"own\":\"%u\"}},\"spec\":{"
                                                                 "\"containers\":[{}],\"affinity\":{\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[" OWN_TERM "]}}},\"status\":{\"phase\":\"Succeeded\"}}", k, 'a' + (int) ns, k);

                                cluster_put(snapshot, SNAPSHOT_PODS, text);
                        }
                assert_int_equal(simulator_new_within(snapshot, &(AwaitedPods){}, &bounds, &s), 0);
                assert_int_equal(simulator_left_out_text(s, &said), 0);
                if (rows[i].left_out)
                        assert_string_equal(said, rows[i].left_out);
                else
                        assert_null(said);
        }
}

static void put_spread(Snapshot *snapshot, const char *ns, const char *name, const char *app) {
        _cleanup_free_ char *text = strf("{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"labels\":{\"app\":\"%s\"}},\"spec\":{\"containers\":[{}],"
                                         "\"topologySpreadConstraints\":[{\"maxSkew\":1,\"topologyKey\":\"" ZONE "\",\"whenUnsatisfiable\":\"DoNotSchedule\","
                                         "\"labelSelector\":{\"matchLabels\":{\"app\":\"%s\"}}}]}}",
                                         name, ns, app, app);

        cluster_put(snapshot, SNAPSHOT_PODS, text);
}

/* One tenant has rules for all bytes that there are, or for as many as are shared out: pods of another that count in rules of their own have room. */
TEST_CASE(test_late_pods_have_room) {
        static const SimulatorBounds none = { UINT64_MAX, UINT64_MAX };
        static const Case nodes = { "", { { "a", "4", "1" }, { "b", "4", "2" } }, {}, {}, NULL, false, NULL };
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_(snapshot_freep) Snapshot *snapshot = NULL, *late = NULL;
        uint64_t bytes;

        assert_int_equal(intern_pool_new(&pool), 0);
        assert_int_equal(snapshot_new(pool, 0, &snapshot), 0);
        assert_int_equal(snapshot_new(pool, 0, &late), 0);
        case_put(snapshot, &nodes);
        put_spread(snapshot, "x", "web", "web");
        put_spread(late, "x", "late", "web");
        for (unsigned i = 0; i < 50; i++) {
                _cleanup_free_ char *name = strf("p%u", i);

                put_spread(snapshot, "y", name, name);
        }
        for (unsigned i = 0; i < 3; i++) {
                SimulatorBounds bounds = { UINT64_MAX, UINT64_MAX };
                _cleanup_(simulator_freep) Simulator *s = NULL;
                uint32_t number;
                size_t n;

                if (i > 0)
                        bounds.bytes = i == 1 ? bytes : (4 * bytes + 2) / 3;
                assert_int_equal(simulator_new_within(snapshot, &(AwaitedPods){}, i == 0 ? &none : &bounds, &s), 0);
                bytes = i == 0 ? s->spent.bytes : bytes;
                (void) simulator_left_out(s, &n);
                assert_int_equal(n, i == 1);
                for (unsigned k = 0; k < 20; k++)
                        assert_int_equal(simulator_add_pod(s, (const KubeScheduledPod *) snapshot_get(late, SNAPSHOT_PODS, "x/late"), &number), 0);
        }
}

/* -- labels that differ from pod to pod ------------------------------------------------------------------------ */

#define POD_NAME "statefulset.kubernetes.io/pod-name"

/* web-0 and web-1 on a and b, with labels as a StatefulSet makes them, kept apart by a selector. */
static void put_stateful(Snapshot *snapshot, const char *selector) {
        for (unsigned i = 0; i < 2; i++) {
                _cleanup_free_ char *text = strf("{\"metadata\":{\"name\":\"web-%u\",\"namespace\":\"x\",\"labels\":{\"app\":\"web\","
                                                 "\"apps.kubernetes.io/pod-index\":\"%u\",\"" POD_NAME "\":\"web-%u\"}},\"spec\":{\"nodeName\":\"%s\","
                                                 "\"containers\":[{}],\"affinity\":{\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":["
                                                 "{\"topologyKey\":\"" ZONE "\",\"labelSelector\":%s}]}}},\"status\":{\"phase\":\"Running\"}}",
                                                 i, i, i, i == 0 ? "a" : "b", selector);

                cluster_put(snapshot, SNAPSHOT_PODS, text);
        }
}

TEST_CASE(test_own_labels) {
        static const Case nodes = { "", { { "a", "4", "1" }, { "b", "4", "2" } }, {}, {}, NULL, false, NULL };
        static const struct {
                const char *what, *selector, *pdb; /* members of its selector */
                uint32_t n_templates;
                const char *without_a; /* what is said if a goes */
        } rows[] = {
                { "nobody asks for those that differ: one kind", "{\"matchLabels\":{\"app\":\"web\"}}", NULL, 1, "web-0: not a destination 1, pod anti-affinity 1" },
                { "a rule does", "{\"matchLabels\":{\"" POD_NAME "\":\"web-0\"}}", NULL, 2, "web-0: not a destination 1, pod anti-affinity 1" },
                { "... which matches nobody", "{\"matchLabels\":{\"" POD_NAME "\":\"other\"}}", NULL, 2, "web-0>b" },
                { "... or all but one", "{\"matchExpressions\":[{\"key\":\"apps.kubernetes.io/pod-index\",\"operator\":\"NotIn\",\"values\":[\"0\"]}]}",
                  NULL, 2, "web-0: not a destination 1, pod anti-affinity 1" },
                { "a PodDisruptionBudget does", "{\"matchLabels\":{\"app\":\"none\"}}", "\"matchLabels\":{\"" POD_NAME "\":\"web-0\"}", 2, "web-0>b" },
                { "another does not", "{\"matchLabels\":{\"app\":\"none\"}}", "\"matchLabels\":{\"app\":\"web\"}", 1, "web-0>b" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(intern_pool_freep) InternPool *pool = NULL;
                _cleanup_(snapshot_freep) Snapshot *snapshot = NULL;
                _cleanup_(simulator_freep) Simulator *s = NULL;
                _cleanup_free_ char *pdb = NULL, *said = NULL;
                SimulateOptions options = {};
                SimulateVerdict v;
                uint32_t node = 0, number;
                KubeObject *o;

                print_message("  %s\n", rows[i].what);
                assert_int_equal(intern_pool_new(&pool), 0);
                assert_int_equal(snapshot_new(pool, 0, &snapshot), 0);
                case_put(snapshot, &nodes);
                put_stateful(snapshot, rows[i].selector);
                pdb = strf("{\"metadata\":{\"name\":\"one\",\"namespace\":\"x\"},\"spec\":{\"selector\":{%s}}}", rows[i].pdb);
                if (rows[i].pdb)
                        cluster_put(snapshot, SNAPSHOT_PDBS, pdb);
                assert_int_equal(simulator_new(snapshot, &s), 0);
                assert_int_equal(simulator_n_templates(s), rows[i].n_templates);
                assert_int_equal(simulate_removal(s, &node, 1, &options, false, &v), 0);
                said = say(s, &v);
                assert_string_equal(said, rows[i].without_a);
                simulate_verdict_done(&v);
                assert_false(simulator_is_too_coarse(s));

                /* One comes that asks for them, and a PodDisruptionBudget. */
                o = cluster_put(snapshot, SNAPSHOT_PODS, "{\"metadata\":{\"name\":\"z\",\"namespace\":\"x\"},\"spec\":{\"containers\":[{}],"
                                "\"topologySpreadConstraints\":[{\"topologyKey\":\"" ZONE "\",\"maxSkew\":1,\"labelSelector\":{},\"matchLabelKeys\":[\""
                                "apps.kubernetes.io/pod-index\"]}]},\"status\":{\"phase\":\"Pending\"}}");
                assert_int_equal(simulator_add_pod(s, (KubeScheduledPod *) o, &number), strstr(rows[i].selector, "pod-index") ? 0 : -ESTALE);
                cluster_put(snapshot, SNAPSHOT_PDBS, "{\"metadata\":{\"name\":\"two\",\"namespace\":\"x\"},\"spec\":{\"selector\":{\"matchExpressions\":["
                            "{\"key\":\"batch.kubernetes.io/job-completion-index\",\"operator\":\"Exists\"}]}}}");
                assert_true(simulator_is_too_coarse(s));
        }
}

/* Three pods of a Job in x with labels of their own, and a rule or a PodDisruptionBudget of another namespace that asks for them. */
TEST_CASE(test_labels_of_others) {
#define ASKS "\"labelSelector\":{\"matchExpressions\":[{\"key\":\"batch.kubernetes.io/job-name\",\"operator\":\"DoesNotExist\"}]}"
        static const Case nodes = { "", { { "a", "4", "1" } }, {}, {}, NULL, false, NULL };
        static const struct {
                const char *what, *rule; /* of y's pod; NULL: a PodDisruptionBudget */
                uint32_t n_templates;    /* with that pod's */
        } rows[] = {
                { "pod anti-affinity", "\"affinity\":{\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{\"topologyKey\":\"" ZONE "\"," ASKS "}]}}", 2 },
                { "... that names its own namespace",
                  "\"affinity\":{\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{\"topologyKey\":\"" ZONE "\",\"namespaces\":[\"y\"]," ASKS "}]}}", 2 },
                { "... that is about theirs",
                  "\"affinity\":{\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{\"topologyKey\":\"" ZONE "\",\"namespaces\":[\"x\"]," ASKS "}]}}", 4 },
                { "... or may be",
                  "\"affinity\":{\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{\"topologyKey\":\"" ZONE "\",\"namespaceSelector\":{}," ASKS "}]}}", 4 },
                { "a preference", "\"affinity\":{\"podAffinity\":{\"preferredDuringSchedulingIgnoredDuringExecution\":[{\"weight\":1,\"podAffinityTerm\":{\"topologyKey\":\"" ZONE "\"," ASKS "}}]}}", 2 },
                { "topology spread", "\"topologySpreadConstraints\":[{\"maxSkew\":1,\"topologyKey\":\"" ZONE "\",\"whenUnsatisfiable\":\"DoNotSchedule\"," ASKS "}]", 2 },
                { "... by matchLabelKeys", "\"topologySpreadConstraints\":[{\"maxSkew\":1,\"topologyKey\":\"" ZONE "\",\"whenUnsatisfiable\":\"DoNotSchedule\","
                  "\"labelSelector\":{},\"matchLabelKeys\":[\"batch.kubernetes.io/job-name\"]}]", 2 },
                { "a PodDisruptionBudget", NULL, 2 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(intern_pool_freep) InternPool *pool = NULL;
                _cleanup_(snapshot_freep) Snapshot *snapshot = NULL, *late = NULL;
                _cleanup_(simulator_freep) Simulator *s = NULL;
                _cleanup_free_ char *text = strf("{\"metadata\":{\"name\":\"e\",\"namespace\":\"y\"},\"spec\":{\"containers\":[{}]%s%s}}",
                                                 rows[i].rule ? "," : "", strempty(rows[i].rule));
                uint32_t number;
                KubeObject *o;

                print_message("  %s\n", rows[i].what);
                assert_int_equal(intern_pool_new(&pool), 0);
                assert_int_equal(snapshot_new(pool, 0, &snapshot), 0);
                assert_int_equal(snapshot_new(pool, 0, &late), 0);
                case_put(snapshot, &nodes);
                for (unsigned k = 0; k < 3; k++) {
                        _cleanup_free_ char *pod = strf("{\"metadata\":{\"name\":\"j-%u\",\"namespace\":\"x\",\"labels\":{\"batch.kubernetes.io/job-name\":\"j-%u\"}},"
                                                        "\"spec\":{\"nodeName\":\"a\",\"containers\":[{}]},\"status\":{\"phase\":\"Running\"}}", k, k);

                        cluster_put(snapshot, SNAPSHOT_PODS, pod);
                }
                o = cluster_put(late, SNAPSHOT_PODS, text);
                assert_int_equal(simulator_new(snapshot, &s), 0);
                assert_int_equal(simulator_n_templates(s), 1);
                assert_int_equal(simulator_add_pod(s, (KubeScheduledPod *) o, &number), rows[i].n_templates == 2 ? 0 : -ESTALE); /* the first of y */
                s = simulator_free(s);
                assert_int_equal(snapshot_put(snapshot, SNAPSHOT_PODS, o), 0);
                if (!rows[i].rule)
                        cluster_put(snapshot, SNAPSHOT_PDBS, "{\"metadata\":{\"name\":\"b\",\"namespace\":\"y\"},\"spec\":{\"selector\":{\"matchExpressions\":["
                                    "{\"key\":\"batch.kubernetes.io/job-name\",\"operator\":\"Exists\"}]}}}");
                assert_int_equal(simulator_new(snapshot, &s), 0);
                assert_int_equal(simulator_n_templates(s), rows[i].n_templates);
                assert_false(simulator_is_too_coarse(s));

                /* One of x asks for what is known of its own pods only where a rule of y is about them. */
                o = cluster_put(late, SNAPSHOT_PODS, "{\"metadata\":{\"name\":\"z\",\"namespace\":\"x\"},\"spec\":{\"containers\":[{}],"
                                "\"topologySpreadConstraints\":[{\"topologyKey\":\"" ZONE "\",\"maxSkew\":1," ASKS "}]}}");
                assert_int_equal(simulator_add_pod(s, (KubeScheduledPod *) o, &number), rows[i].n_templates == 2 ? -ESTALE : 0);
        }
#undef ASKS
}

/* -- every assignment, tried --------------------------------------------------------------------------------- */

typedef struct Search {
        Simulator *s;
        uint32_t pods[8];
        size_t n;
        unsigned long budget;
} Search;

/* Is there an order and a seat for each? */
static bool search_seats(Search *x, unsigned placed) {
        if (placed == (1u << x->n) - 1)
                return true;
        for (size_t i = 0; i < x->n; i++)
                for (uint32_t node = 0; !(placed >> i & 1) && node < simulator_n_nodes(x->s) && x->budget > 0; node++) {
                        SimulatorMark mark = simulator_mark(x->s);
                        bool found;

                        x->budget--;
                        if (simulator_fits(x->s, x->pods[i], node) != FIT_OK)
                                continue;
                        assert_int_equal(simulator_place(x->s, x->pods[i], node), 0);
                        found = search_seats(x, placed | 1u << i);
                        simulator_undo(x->s, mark);
                        if (found)
                                return true;
                }
        return false;
}

/* 1: seats exist; 0: they do not; -1: too many pods, or too long to say. */
static int seats_exist(Simulator *s, uint32_t node) {
        SimulatorMark mark = simulator_mark(s);
        Search x = { .s = s, .budget = 200000 };
        size_t n;
        const uint32_t *pods = simulator_pods_of(s, node, &n);
        bool found;

        if (n > ELEMENTSOF(x.pods))
                return -1;
        for (size_t i = 0; i < n; i++)
                x.pods[x.n++] = pods[i];
        assert_int_equal(simulator_remove_node(s, node), 0);
        found = search_seats(&x, 0);
        simulator_undo(s, mark);
        return found ? 1 : x.budget > 0 ? 0 : -1;
}

/* A yes is never wrong, a no seldom: both ways of placing are greedy, and a search finds seats that they miss. */
TEST_CASE(test_against_every_assignment) {
        unsigned yes = 0, no = 0, missed = 0, packing_missed = 0;

        for (uint64_t seed = 1; seed <= 150; seed++) {
                ClusterShape shape = { .seed = seed, .n_nodes = 4 + seed % 3, .n_pods = 18, .n_owners = 7, .fill_percent = 70 + 5 * (seed % 5) };
                _cleanup_(simulator_freep) Simulator *s = NULL;
                SimulateOptions options = {};
                MadeCluster c;

                assert_int_equal(cluster_make(&shape, &c), 0);
                assert_int_equal(simulator_new(c.snapshot, &s), 0);
                for (uint32_t i = 0; i < simulator_n_nodes(s); i++) {
                        int exists = seats_exist(s, i);
                        SimulateVerdict v;

                        assert_int_equal(simulate_removal(s, &i, 1, &options, false, &v), 0);
                        assert_false(v.fits && exists == 0);
                        yes += v.fits;
                        no += !v.fits;
                        missed += !v.fits && exists > 0;
                        packing_missed += !v.fits_packed && exists > 0;
                        simulate_verdict_done(&v);
                }
                s = simulator_free(s);
                cluster_done(&c);
        }
        print_message("%u may go, %u may not; of these a search finds seats for %u, which packing alone does not for %u\n", yes, no,
                      missed, packing_missed);
        assert_true(yes > 100 && no > 50);
        assert_true(packing_missed * 20 <= yes + no); /* one in twenty */
}

/* Rules about pods of other namespaces, on nodes drawn: what is left out may be about everybody. */
static void put_reaching(MadeCluster *c, uint64_t *dice, uint32_t n_nodes) {
        static const char *const kinds[] = { "podAntiAffinity", "podAntiAffinity", "podAffinity" };
        static const char *const keys[] = { ZONE, HOST, HOST, "node.kubernetes.io/none" };
        static const char *const reaches[] = { ALL_NAMESPACES, ",\"namespaces\":[\"ns-0\",\"ns-1\"]", "" };

        for (unsigned i = 0; i < 4; i++) {
                /* One draw in each statement: compilers order the arguments of a call differently. */
                unsigned namespace = (unsigned) (cluster_draw(dice) % 5);
                unsigned node = (unsigned) (cluster_draw(dice) % n_nodes);
                const char *kind = kinds[cluster_draw(dice) % 3];
                const char *key = keys[cluster_draw(dice) % 4];
                unsigned app = (unsigned) (cluster_draw(dice) % 7);
                const char *reach = reaches[cluster_draw(dice) % 3];
                _cleanup_free_ char *text = strf("{\"metadata\":{\"name\":\"reach-%u\",\"namespace\":\"ns-%u\",\"labels\":{\"app\":\"reach\"}},\"spec\":{\"nodeName\":\"node-%05u\","
                                                 "\"containers\":[{}],\"affinity\":{\"%s\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{\"topologyKey\":\"%s\","
                                                 "\"labelSelector\":{\"matchLabels\":{\"app\":\"app-%u\"}}%s}]}}},\"status\":{\"phase\":\"Running\"}}",
                                                 i, namespace, node, kind, key, app, reach);

                cluster_put(c->snapshot, SNAPSHOT_PODS, text);
        }
}

static bool is_left_out(const Simulator *s, uint32_t pod) {
        return simulator_pod_unmodelled(s, pod) == POD_TOO_MANY_RULES;
}

/* Each seat, in the order of its taking, by all rules. */
static void replay(Simulator *whole, const Simulator *s, uint32_t node, const SimulateVerdict *v) {
        SimulatorMark mark = simulator_mark(whole);

        assert_int_equal(simulator_remove_node(whole, node), 0);
        for (size_t i = 0; i < v->n_sequence; i++) {
                if (is_left_out(s, v->sequence[i].pod))
                        continue; /* it is pending, and takes room somewhere */
                assert_int_equal(simulator_fits(whole, v->sequence[i].pod, v->sequence[i].node), FIT_OK);
                assert_int_equal(simulator_place(whole, v->sequence[i].pod, v->sequence[i].node), 0);
        }
        simulator_undo(whole, mark);
}

/* Whatever is left out: a yes holds by all rules, and there is none that there would not be otherwise. */
TEST_CASE(test_left_out_promises_nothing) {
        unsigned yes = 0, lost = 0, closed = 0;

        for (uint64_t seed = 1; seed <= 300; seed++) {
                ClusterShape shape = { .seed = seed, .n_nodes = 8 + seed % 5, .n_pods = 24, .n_owners = 7, .fill_percent = 30 + 5 * (seed % 7) };
                _cleanup_(simulator_freep) Simulator *whole = NULL, *s = NULL;
                uint64_t dice = seed;
                SimulatorBounds bounds = { .bytes = 1 << 20 };
                SimulateOptions options = {};
                MadeCluster c;
                size_t n;

                assert_int_equal(cluster_make(&shape, &c), 0);
                put_reaching(&c, &dice, shape.n_nodes);
                assert_int_equal(simulator_new(c.snapshot, &whole), 0);
                (void) simulator_left_out(whole, &n);
                assert_int_equal(n, 0);
                bounds.work = cluster_draw(&dice) % (400);
                assert_int_equal(simulator_new_within(c.snapshot, &(AwaitedPods){}, &bounds, &s), 0);
                (void) simulator_left_out(s, &n);
                closed += s->n_closing > 0;
                for (uint32_t i = 0; i < simulator_n_nodes(s) && n > 0; i++) {
                        SimulateVerdict v, w;

                        assert_int_equal(simulate_removal(s, &i, 1, &options, false, &v), 0);
                        assert_int_equal(simulate_removal(whole, &i, 1, &options, false, &w), 0);
                        if (v.fits)
                                replay(whole, s, i, &v);
                        assert_false(v.fits && !w.fits);
                        yes += v.fits && v.n_placements > 0;
                        lost += !v.fits && w.fits;
                        simulate_verdict_done(&v);
                        simulate_verdict_done(&w);
                }
                s = simulator_free(s);
                whole = simulator_free(whole);
                cluster_done(&c);
        }
        print_message("%u may go all the same, %u may not; in %u clusters domains are closed\n", yes, lost, closed);
        assert_true(yes > 100 && lost > 100 && closed > 50);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_cases),
                cmocka_unit_test(test_updates),
                cmocka_unit_test(test_news),
                cmocka_unit_test(test_vanished),
                cmocka_unit_test(test_awaited),
                cmocka_unit_test(test_waiting),
                cmocka_unit_test(test_waiting_work),
                cmocka_unit_test(test_history),
                cmocka_unit_test(test_leaves_nothing),
                cmocka_unit_test(test_bloat),
                cmocka_unit_test(test_labels_of_others), cmocka_unit_test(test_own_labels),
                cmocka_unit_test(test_too_large),
                cmocka_unit_test(test_grows_too_large),
                cmocka_unit_test(test_left_out),
                cmocka_unit_test(test_late_pods_have_room),
                cmocka_unit_test(test_unread),
                cmocka_unit_test(test_unsure),
                cmocka_unit_test(test_shares),
                cmocka_unit_test(test_against_every_assignment),
                cmocka_unit_test(test_left_out_promises_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
