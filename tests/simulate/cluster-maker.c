/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster-maker.h"

#include <stdio.h>

#include "simulator-internal.h"
#include "string-util.h"

#define NODE_MILLICPU 16000
#define NODE_MEMORY_MIB 65536
/* 2027-01-15: nodes are between two and seven weeks old. */
#define MADE_NOW_USEC (1800000000 * USEC_PER_SEC)

uint64_t cluster_draw(uint64_t *state) {
        uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

KubeObject *cluster_put(Snapshot *s, SnapshotKind kind, const char *json) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        KubeObject *o = NULL;
        int r = json_parse(json, strlen(json), strlen(json), &doc, NULL);

        if (r < 0)
                fprintf(stderr, "cannot be parsed: %s\n", json);
        assert(r >= 0);
        r = kube_object_decode(snapshot_kube_kind(kind), json_root(doc), s->pool, &o);
        assert(r >= 0);
        r = snapshot_put(s, kind, o);
        assert(r >= 0);
        kube_object_unref(o);
        return o; /* the snapshot's */
}

void cluster_put_several(Snapshot *s, const char *objects) {
        _cleanup_free_ char *list = strf("[%s]", objects);
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        int r = list ? json_parse(list, strlen(list), 1 << 20, &doc, NULL) : -ENOMEM;

        assert(r >= 0);
        JSON_FOREACH (v, json_root(doc)) {
                _cleanup_free_ char *text = json_format(v);

                cluster_put(s,
                            snapshot_kind_of(json_string_or_null(json_get(v, "apiVersion")),
                                             json_string_or_null(json_get(v, "kind"))),
                            text);
        }
}

static void make_node(Snapshot *s, uint32_t i, unsigned millicpu, const char *spec) {
        _cleanup_free_ char *text = strf(
                "{\"metadata\":{\"name\":\"node-%05u\",\"uid\":\"n%u\",\"creationTimestamp\":\"2026-12-%02uT%02u:00:00Z\",\"labels\":{"
                "\"kubernetes.io/hostname\":\"node-%05u\",\"topology.kubernetes.io/zone\":\"zone-%c\",\"disk\":\"%s\",\"pool\":\"main\","
                "\"image\":\"%s\",\"node.kubernetes.io/instance-type\":\"large\"}},\"spec\":{%s},"
                "\"status\":{\"allocatable\":{\"cpu\":\"%um\",\"memory\":\"%uMi\",\"pods\":\"110\",\"ephemeral-storage\":\"100Gi\"},"
                "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
                i, i, i % 29 + 1, i % 24, i, (int) ('a' + i % 3), i % 4 == 0 ? "ssd" : "hdd", i % 50 == 7 ? "old" : "new", spec, millicpu, (unsigned) NODE_MEMORY_MIB);

        assert(text);
        cluster_put(s, SNAPSHOT_NODES, text);
}

/* What an owner's pods say in their spec, by the owner's number: shares as clusters have them. */
static char *rules_of(uint32_t owner, const ClusterShape *shape) {
        const char *honors = shape->honors_taints ? "\"nodeTaintsPolicy\":\"Honor\"," : "";
        unsigned kind = shape->plain ? 99 : owner * 37 % 100;
        _cleanup_(strbuf_done) StrBuf b = {};

        if (kind < 33 && shape->no_spread)
                ; /* none */
        else if (kind < 25)
                strbuf_addf(&b,
                            ",\"topologySpreadConstraints\":[{\"maxSkew\":2,\"topologyKey\":\"topology.kubernetes.io/zone\","
                            "\"whenUnsatisfiable\":\"DoNotSchedule\",%s\"labelSelector\":{\"matchLabels\":{\"app\":\"app-%u\"}}}]",
                            honors, owner);
        else if (kind < 33)
                strbuf_addf(&b,
                            ",\"topologySpreadConstraints\":[{\"maxSkew\":1,\"topologyKey\":\"kubernetes.io/hostname\","
                            "\"whenUnsatisfiable\":\"DoNotSchedule\",%s\"labelSelector\":{\"matchLabels\":{\"app\":\"app-%u\"}}}]",
                            honors, owner);
        else if (kind < 45)
                strbuf_addf(&b,
                            ",\"affinity\":{\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{"
                            "\"topologyKey\":\"kubernetes.io/hostname\",\"labelSelector\":{\"matchLabels\":{\"app\":\"app-%u\"}}}]}}",
                            owner);
        if (!shape->plain && owner * 53 % 100 < 30)
                strbuf_add(&b, ",\"nodeSelector\":{\"disk\":\"ssd\"}");
        strbuf_add(&b, "");
        return strbuf_steal(&b);
}

static unsigned mean_millicpu_of(const ClusterShape *shape) {
        return (unsigned) ((uint64_t) shape->n_nodes * NODE_MILLICPU * shape->fill_percent / 100 / shape->n_pods);
}

static KubeObject *make_pod(Snapshot *s, const ClusterShape *shape, uint32_t i, const char *node) {
        unsigned mean_millicpu = mean_millicpu_of(shape);
        uint32_t owner = i % shape->n_owners;
        uint64_t state = shape->seed * 1000003 + owner;
        unsigned cpu = mean_millicpu / 2 + (unsigned) (cluster_draw(&state) % (mean_millicpu + 1)), memory = cpu * 3;
        _cleanup_free_ char *rules = rules_of(owner, shape);
        _cleanup_free_ char *text = strf(
                "{\"metadata\":{\"name\":\"app-%u-%06u\",\"namespace\":\"ns-%u\",\"uid\":\"p%u\",\"labels\":{\"app\":\"app-%u\"},"
                "\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"app-%u\",\"uid\":\"o%u\","
                "\"controller\":true}]},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"%um\","
                "\"memory\":\"%uMi\"}}}],\"nodeName\":\"%s\"%s},\"status\":{\"phase\":\"Running\"}}",
                owner, i, owner % 50, i, owner, owner, owner, MAX(cpu, 1u), MAX(memory, 1u), node, strempty(rules));

        assert(rules && text);
        return cluster_put(s, SNAPSHOT_PODS, text);
}

KubeObject *cluster_add_pod(MadeCluster *c, const ClusterShape *shape, uint32_t number, const char *node) {
        return make_pod(c->snapshot, shape, number, node);
}

void cluster_add_node(MadeCluster *c, uint32_t number, unsigned millicpu, const char *spec) {
        make_node(c->snapshot, number, millicpu, spec);
}

/* Puts each pod where the freest node is, and writes that into the objects. */
static int bind_pods(MadeCluster *c) {
        _cleanup_(simulator_freep) Simulator *s = NULL;
        int r = simulator_new(c->snapshot, &s);

        for (uint32_t i = 0; r >= 0 && i < simulator_n_pods(s); i++) {
                KubePod *pod = (KubePod *) &simulator_pod(s, i)->pod;
                uint32_t node = simulator_freest_fit(s, i);

                if (node == NOWHERE)
                        continue;
                r = simulator_place(s, i, node);
                pod->node_name = intern(c->pool, simulator_node_name(s, node));
                c->n_bound++;
        }
        return r;
}

int cluster_make(const ClusterShape *shape, MadeCluster *ret) {
        int r;

        *ret = (MadeCluster){};
        r = intern_pool_new(&ret->pool);
        if (r >= 0)
                r = snapshot_new(ret->pool, 0, &ret->snapshot);
        if (r < 0)
                return r;
        for (size_t i = 0; i < _SNAPSHOT_KIND_MAX; i++)
                ret->snapshot->is_known[i] = true;
        for (uint32_t i = 0; i < shape->n_nodes; i++)
                make_node(ret->snapshot, i, NODE_MILLICPU, "");
        for (uint32_t i = 0; i < shape->n_pods; i++)
                (void) make_pod(ret->snapshot, shape, i, "");
        return bind_pods(ret);
}

/* As JSON. */
static char *offerings_of(const ClusterShape *shape) {
        _cleanup_(strbuf_done) StrBuf b = {};

        strbuf_add(&b, "{\"instanceType\":\"large\",\"price\":4}");
        if (shape->n_offerings == 0)
                strbuf_add(&b, ",{\"instanceType\":\"medium\",\"price\":2.2,\"allocatable\":{\"cpu\":\"8\",\"memory\":\"32Gi\"}},"
                               "{\"instanceType\":\"small\",\"price\":1.5,\"allocatable\":{\"cpu\":\"4\",\"memory\":\"16Gi\"}}");
        for (unsigned i = 1; i < shape->n_offerings; i++) {
                unsigned cpu = i * NODE_MILLICPU / shape->n_offerings;

                strbuf_addf(&b, ",{\"instanceType\":\"part-%u\",\"price\":%.3f,\"allocatable\":{\"cpu\":\"%um\",\"memory\":\"%uMi\"}}", i,
                            0.5 + 3.0 * i / shape->n_offerings, cpu, cpu * 4);
        }
        return strbuf_steal(&b);
}

void cluster_add_pools(MadeCluster *c, const ClusterShape *shape, const char *budgets) {
        _cleanup_free_ char *offerings = offerings_of(shape);

        assert(offerings);
        c->snapshot->taken_usec = MADE_NOW_USEC;
        for (char zone = 'a'; zone <= 'c'; zone++) {
                _cleanup_free_ char *text = strf(
                        "{\"metadata\":{\"name\":\"zone-%c\"},\"spec\":{\"selector\":{\"matchLabels\":{\"topology.kubernetes.io/zone\":\"zone-%c\"}},"
                        "\"template\":{\"labels\":{\"image\":\"new\"}},\"disruption\":{%s%s%s\"expireAfter\":\"1080h\",\"drift\":\"Auto\",\"emptyAfter\":\"5m\","
                        "\"consolidation\":{\"policy\":\"WhenUnderutilized\",\"minimumSavings\":\"10%%\"}},\"offerings\":[%s]}}",
                        zone, zone, budgets ? "\"budgets\":" : "", strempty(budgets), budgets ? "," : "", offerings);

                assert(text);
                cluster_put(c->snapshot, SNAPSHOT_NODE_POOLS, text);
        }
        for (uint32_t owner = 0; owner < shape->n_owners; owner += 10) {
                _cleanup_free_ char *text = strf("{\"metadata\":{\"namespace\":\"ns-%u\",\"name\":\"app-%u\"},\"spec\":{\"selector\":{\"matchLabels\":{"
                                                 "\"app\":\"app-%u\"}}},\"status\":{\"disruptionsAllowed\":%u,\"currentHealthy\":3,\"desiredHealthy\":2,"
                                                 "\"expectedPods\":3}}",
                                                 owner % 50, owner, owner, owner % 100 == 50 ? 0u : 1u + owner % 3);

                assert(text);
                cluster_put(c->snapshot, SNAPSHOT_PDBS, text);
        }
}

void cluster_done(MadeCluster *c) {
        snapshot_free(c->snapshot);
        intern_pool_free(c->pool);
        *c = (MadeCluster){};
}
