/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cmocka-test.h"
#include "disruption-rig.h"

#include "string-util.h"
#include "texts.h"

const RigCluster rig_plan_cluster = {
        .nodes = { { "a", "4", RIG_TYPE("l") }, { "b", "4", RIG_TYPE("l") }, { "c", "4", RIG_TYPE("l") }, { "d", "4", "'labels':{'any':'thing'}" } },
        .pods = { { "p1", "b", "1" }, { "p2", "b", "1", "'labels':{'app':'p'}" }, { "q", "c", "3" } },
        .pool = "'disruption':{'budgets':[],'emptyAfter':'5m','consolidation':{'policy':'WhenUnderutilized'}},"
                "'offerings':[{'instanceType':'l','price':4}]",
        .others = { RIG_PDB("web", "p", "'disruptionsAllowed':1,'currentHealthy':2,'desiredHealthy':1,'expectedPods':2") },
};

/* ' is " in what tests write. */
static char *json_of(const char *text) {
        char *s = strdup(text);

        assert(s);
        return text_quote(s);
}

static KubeObject *decode_text(const KubeKind *kind, const char *text, InternPool *pool) {
        _cleanup_free_ char *json = json_of(text);
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        KubeObject *o = NULL;
        int r;

        r = json_parse(json, strlen(json), SIZE_MAX, &doc, NULL);
        if (r < 0)
                fprintf(stderr, "no JSON: %s\n", json);
        assert(r >= 0);
        r = kube_object_decode(kind, json_root(doc), pool, &o);
        assert(r >= 0);
        return o;
}

void rig_put_object(DisruptionRig *r, SnapshotKind kind, const char *text) {
        _cleanup_(kube_object_unrefp) KubeObject *o = decode_text(snapshot_kube_kind(kind), text, r->interned);
        int k = snapshot_put(r->snapshot, kind, o);

        assert(k >= 0);
}

static const char *creation_of(const char *meta) {
        return meta && strstr(meta, "creationTimestamp") ? "" : "'creationTimestamp':'" RIG_OLD "',";
}

static void put_node(DisruptionRig *r, const RigNode *n) {
        _cleanup_free_ char *text =
                strf("{'metadata':{'name':'%s','uid':'u-%s',%s%s},'spec':{%s},"
                     "'status':{'nodeInfo':{'kubeletVersion':'v1.33.1','osImage':'Debian GNU/Linux 12'},'allocatable':{'cpu':'%s','memory':'100Gi','pods':'110'},"
                     "'conditions':[{'type':'Ready','status':'%s','lastTransitionTime':'" RIG_OLD "'}]}}",
                     n->name, n->name, creation_of(n->meta), n->meta ?: "'labels':{'pool':'a'}", strempty(n->spec), n->cpu, n->ready ?: "True");

        assert(text);
        rig_put_object(r, SNAPSHOT_NODES, text);
}

static void put_pod(DisruptionRig *r, const RigPod *p) {
        _cleanup_free_ char *app = strdup(p->name), *node = p->node ? strf("'nodeName':'%s',", p->node) : strdup(""),
                            *meta = NULL, *text = NULL;

        assert(app && node);
        app[strcspn(app, "0123456789")] = 0;
        meta = p->meta ? strdup(p->meta)
                       : strf("'labels':{'app':'%s'},'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'%s',"
                              "'uid':'o-%s','controller':true}]",
                              app, app, app);
        assert(meta);
        text = strf("{'metadata':{'namespace':'x','name':'%s','uid':'p-%s',%s%s},"
                    "'spec':{%s'containers':[{'name':'c','resources':{'requests':{'cpu':'%s'}}}]%s%s},'status':{%s}}",
                    p->name, p->name, creation_of(p->meta), meta, node, p->cpu, p->spec ? "," : "", strempty(p->spec),
                    p->status ?: p->node ? "'phase':'Running','startTime':'" RIG_OLD "','conditions':[{'type':'Ready','status':'True'}]"
                                         : "'phase':'Pending'");
        assert(text);
        rig_put_object(r, SNAPSHOT_PODS, text);
}

static void put_other(DisruptionRig *r, const char *text) {
        _cleanup_free_ char *json = json_of(text);
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        SnapshotKind kind;
        int k = json_parse(json, strlen(json), SIZE_MAX, &doc, NULL);

        assert(k >= 0);
        kind = snapshot_kind_of(json_string_or_null(json_get(json_root(doc), "apiVersion")),
                                json_string_or_null(json_get(json_root(doc), "kind")));
        assert(kind >= 0);
        rig_put_object(r, kind, text);
}

void rig_judge(DisruptionRig *r) {
        int k;

        r->scene = disruption_scene_free(r->scene);
        r->simulator = simulator_free(r->simulator);
        k = simulator_new(r->snapshot, &r->simulator);
        assert(k >= 0);
        k = disruption_scene_new(r->snapshot, r->simulator, NULL, &r->scene);
        assert(k >= 0);
}

DisruptionRig *disruption_rig_new(const RigCluster *c) {
        DisruptionRig *r = new0(DisruptionRig, 1);
        int k;

        assert(r);
        k = intern_pool_new(&r->interned);
        assert(k >= 0);
        k = snapshot_new(r->interned, RIG_NOW_USEC, &r->snapshot);
        assert(k >= 0);
        for (SnapshotKind kind = 0; kind < _SNAPSHOT_KIND_MAX; kind++)
                r->snapshot->is_known[kind] = true;
        for (size_t i = 0; c && i < RIG_ROWS && c->nodes[i].name; i++)
                put_node(r, c->nodes + i);
        for (size_t i = 0; c && i < RIG_ROWS && c->pods[i].name; i++)
                put_pod(r, c->pods + i);
        if (c && c->pool) {
                _cleanup_free_ char *text = strf("{'metadata':{'name':'a'},'spec':{'selector':{'matchLabels':{'pool':'a'}}%s%s}}",
                                                 *c->pool ? "," : "", c->pool);

                assert(text);
                rig_put_object(r, SNAPSHOT_NODE_POOLS, text);
        }
        for (size_t i = 0; c && i < ELEMENTSOF(c->others) && c->others[i]; i++)
                put_other(r, c->others[i]);
        if (c)
                rig_judge(r);
        return r;
}

DisruptionRig *disruption_rig_free(DisruptionRig *r) {
        if (!r)
                return NULL;
        disruption_scene_free(r->scene);
        simulator_free(r->simulator);
        snapshot_free(r->snapshot);
        intern_pool_free(r->interned);
        return mfree(r);
}

void rig_expect(const char *text, const char *piece) {
        if (!strstr(text, piece))
                fail_msg("no '%s' in:\n%s", piece, text);
}

uint32_t rig_number(const DisruptionRig *r, const char *node) {
        uint32_t number = UINT32_MAX;
        int k = simulator_find_node(r->simulator, node, &number);

        assert(k >= 0);
        return number;
}

char *rig_codes(const GateFindings *f) {
        _cleanup_strbuf_ StrBuf b = {};

        for (size_t i = 0; i < f->n_items; i++)
                strbuf_addf(&b, "%s%s", i > 0 ? " " : "", gate_code_to_string(f->items[i].code));
        return strbuf_steal(&b);
}

char *rig_plan_line(const DisruptionRig *r, const DisruptionPlan *p) {
        _cleanup_strbuf_ StrBuf b = {};

        for (size_t i = 0; i < p->n_steps; i++) {
                const PlanStep *s = p->steps + i;

                strbuf_addf(&b, "%s%s%s%s", b.size > 0 ? "; " : "", plan_method_to_string(s->method), s->how ? "/" : "",
                            strempty(s->how));
                for (size_t k = 0; k < s->n_nodes; k++)
                        strbuf_addf(&b, " %s", scene_node_name(r->scene, s->nodes[k]));
                for (size_t k = 0; k < s->n_moves; k++)
                        strbuf_addf(&b, " %s>%s", scene_pod(r->scene, s->moves[k].pod)->object.meta.name,
                                    scene_node_name(r->scene, s->moves[k].to));
                if (s->replacement_like)
                        strbuf_addf(&b, " +%s", s->replacement_like);
        }
        for (uint32_t i = 0; i < p->n_nodes; i++) {
                _cleanup_free_ char *codes = NULL;

                if (p->nodes[i].step != NO_STEP)
                        continue;
                codes = rig_codes(p->nodes[i].lacks + plan_nearest_method(p, i));
                strbuf_addf(&b, "%s%s: %s", b.size > 0 ? "; " : "", scene_node_name(r->scene, i), codes);
        }
        return strbuf_steal(&b);
}
