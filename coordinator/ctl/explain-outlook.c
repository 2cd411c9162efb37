/* SPDX-License-Identifier: Apache-2.0 */
#include "explain-outlook.h"

#include <inttypes.h>

#include "ctl-say.h"
#include "plan-show.h"
#include "string-util.h"
#include "strv.h"

void node_outlook_done(NodeOutlook *o) {
        disruption_plan_free(o->plan);
        for (size_t i = 0; i < o->n_pods; i++)
                free(o->pods[i].remedy);
        free(o->pods);
        *o = (NodeOutlook){};
}

/* -- what would free a pod ------------------------------------------------------------------------------ */

/* In the unit that people write: "1500m" CPU, "512Mi". */
static void add_amount(StrBuf *b, const char *resource, int64_t amount) {
        if (streq(resource, "cpu"))
                strbuf_addf(b, "%" PRId64 "m cpu", amount);
        else
                strbuf_addf(b, "%" PRId64 "Mi %s", (amount + (1 << 20) - 1) >> 20, resource);
}

static void add_shortage(StrBuf *b, const DisruptionScene *s, uint32_t pod, uint32_t node) {
        static const char *const resources[] = { "cpu", "memory", "ephemeral-storage" };
        const char *name = scene_node_name(s, node);
        bool is_first = true;

        for (size_t i = 0; i < ELEMENTSOF(resources); i++) {
                int64_t lacks = simulator_request(s->simulator, pod, resources[i]) - simulator_free_room(s->simulator, node, resources[i]);

                if (lacks <= 0)
                        continue;
                strbuf_add(b, is_first ? "" : " and ");
                add_amount(b, resources[i], lacks);
                is_first = false;
        }
        if (is_first)
                strbuf_addf(b, "room on %s for a resource of its own, or for one more pod", name);
        else
                strbuf_addf(b, " more on %s", name);
}

/* Of the node that comes nearest. */
static void add_remedy(StrBuf *b, const DisruptionScene *s, uint32_t pod, uint32_t node, FitReason why) {
        const char *name = scene_node_name(s, node);

        switch (why) {
        case FIT_RESOURCES:
                add_shortage(b, s, pod, node);
                break;
        case FIT_PORTS:
                strbuf_addf(b, "its host port, which is taken on %s", name);
                break;
        case FIT_VOLUME:
                strbuf_addf(b, "a volume that can be used on %s", name);
                break;
        case FIT_VOLUME_LIMIT:
                strbuf_addf(b, "one volume less on %s, which has as many as may be attached", name);
                break;
        case FIT_SPREAD:
                strbuf_addf(b, "a topologySpreadConstraint that allows one more where %s is", name);
                break;
        case FIT_AFFINITY:
                strbuf_addf(b, "a pod near %s that its pod affinity asks for", name);
                break;
        case FIT_ANTI_AFFINITY:
                strbuf_addf(b, "that near %s no pod runs which it keeps away, or which keeps it away, by pod anti-affinity", name);
                break;
        case FIT_OK:
        case FIT_NOT_A_DESTINATION:
        case FIT_TAINT:
        case FIT_NODE_AFFINITY:
        case FIT_PREFERENCE: /* no preference is asked for here */
        case _FIT_REASON_MAX:
        case _FIT_REASON_INVALID:
                break; /* simulator_count_fits() names no node as the nearest for these */
        }
}

/* While the node is gone, and the pod is nowhere. */
static int judge_pod(const DisruptionScene *s, PodOutlook *p) {
        _cleanup_strbuf_ StrBuf b = {};

        p->nearest = NO_NODE;
        p->unmodelled = simulator_pod_unmodelled(s->simulator, p->pod);
        if (p->unmodelled != POD_MODELLED)
                strbuf_addf(&b, "nobody can tell: %s", pod_unmodelled_text(p->unmodelled));
        else {
                simulator_count_fits(s->simulator, p->pod, p->counts, &p->nearest);
                p->counts[FIT_NOT_A_DESTINATION]--; /* the node itself is not one of the others */
                p->n_takers = p->counts[FIT_OK];
                if (p->n_takers > 0)
                        return 0;
                if (p->nearest == NO_NODE)
                        strbuf_addf(&b, "a node that is %s", p->counts[FIT_NODE_AFFINITY] > 0 ? "as its nodeSelector or node affinity asks for"
                                                             : p->counts[FIT_TAINT] > 0       ? "without a taint that it does not tolerate"
                                                                                              : "there and takes pods");
                else
                        add_remedy(&b, s, p->pod, p->nearest, simulator_fits(s->simulator, p->pod, p->nearest));
        }
        p->remedy = strbuf_steal(&b);
        return p->remedy ? 0 : -ENOMEM;
}

static int judge_pods(DisruptionScene *s, NodeOutlook *o) {
        SimulatorMark mark = simulator_mark(s->simulator);
        size_t n;
        const uint32_t *pods = simulator_pods_of(s->simulator, o->node, &n);
        int r;

        o->pods = new0(PodOutlook, n + 1);
        r = o->pods ? simulator_remove_node(s->simulator, o->node) : -ENOMEM;
        for (size_t i = 0; i < n && r >= 0; i++)
                if (simulator_pod_moves(s->simulator, pods[i])) {
                        o->pods[o->n_pods].pod = pods[i];
                        r = judge_pod(s, o->pods + o->n_pods++);
                }
        simulator_undo(s->simulator, mark);
        return r;
}

int node_outlook_make(DisruptionScene *s, const char *node, NodeOutlook *ret) {
        NodeOutlook o = {};
        int r;

        r = simulator_find_node(s->simulator, node, &o.node);
        if (r >= 0)
                r = judge_pods(s, &o);
        if (r >= 0)
                r = disruption_plan_node(s, o.node, &o.plan);
        if (r < 0) {
                node_outlook_done(&o);
                return r;
        }
        *ret = o;
        return 0;
}

/* -- JSON ----------------------------------------------------------------------------------------------- */

static void add_pod(JsonWriter *w, const DisruptionScene *s, const PodOutlook *p) {
        const ObjectMeta *m = &scene_pod(s, p->pod)->object.meta;

        json_open_object(w, NULL);
        json_addf(w, "pod", "%s/%s", m->ns, m->name);
        if (p->unmodelled != POD_MODELLED)
                json_add_string(w, "unmodelled", pod_unmodelled_to_string(p->unmodelled));
        else {
                json_add_int64(w, "takers", p->n_takers);
                json_open_object(w, "others");
                for (FitReason r = FIT_OK + 1; r < _FIT_REASON_MAX; r++)
                        if (p->counts[r] > 0)
                                json_add_int64(w, fit_reason_to_string(r), p->counts[r]);
                json_close_object(w);
        }
        json_add_string(w, "nearest", p->nearest == NO_NODE ? NULL : scene_node_name(s, p->nearest));
        json_add_string(w, "needs", p->remedy);
        json_close_object(w);
}

char *node_outlook_json(const NodeOutlook *o, char *const *unknown) {
        const DisruptionScene *s = o->plan->scene;
        const PlanNode *n = o->plan->nodes + o->node;
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_object(w, NULL);
        json_add_bool(w, "wouldGo", n->step != NO_STEP);
        if (n->step != NO_STEP) {
                const PlanStep *step = o->plan->steps + n->step;

                json_add_string(w, "method", plan_method_to_string(step->method));
                json_add_string(w, "how", step->how);
                json_add_string(w, "why", step->why[0]);
        }
        json_open_object(w, "lacks");
        for (PlanMethod m = 0; m < _PLAN_METHOD_MAX; m++)
                if (n->lacks[m].n_items > 0)
                        json_add_findings(w, plan_method_to_string(m), n->lacks + m);
        json_close_object(w);
        json_open_array(w, "pods");
        for (size_t i = 0; i < o->n_pods; i++)
                add_pod(w, s, o->pods + i);
        json_close_array(w);
        json_add_notes(w, unknown);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

/* -- for people ----------------------------------------------------------------------------------------- */

static void add_step(StrBuf *b, const PlanStep *step) {
        size_t from = b->size;

        strbuf_addf(b, "By itself it would be removed now by %s%s%s%s: ", plan_method_to_string(step->method), step->how ? " (" : "",
                    strempty(step->how), step->how ? ")" : "");
        strbuf_add(b, step->why[0]);
        ctl_make_plain(b, from);
        strbuf_add(b, ".\nWhether others come before it, and take its turn or its pods' places, 'vesperctl plan' says.\n");
}

static void add_lacks(StrBuf *b, const PlanNode *n) {
        CtlTable t = CTL_TABLE(3);

        strbuf_add(b, "By itself it would not be removed now unless somebody asked for it:\n\n");
        ctl_table_add(&t, "METHOD");
        ctl_table_add(&t, "CODE");
        ctl_table_add(&t, "WHY");
        for (PlanMethod m = 0; m < _PLAN_METHOD_MAX; m++)
                for (size_t i = 0; i < n->lacks[m].n_items; i++) {
                        ctl_table_add(&t, plan_method_to_string(m));
                        ctl_table_add(&t, gate_code_to_string(n->lacks[m].items[i].code));
                        ctl_table_add(&t, n->lacks[m].items[i].text);
                }
        ctl_table_print(&t, b);
        ctl_table_done(&t);
}

static void add_pods(StrBuf *b, const NodeOutlook *o) {
        const DisruptionScene *s = o->plan->scene;
        CtlTable t = CTL_TABLE(4);

        strbuf_add(b, o->n_pods > 0 ? "\nWhere its pods would find a place, each by itself:\n" : "\nNo pod of it would have to move.\n");
        if (o->n_pods == 0)
                return;
        ctl_table_add(&t, "POD");
        ctl_table_add(&t, "NODES");
        ctl_table_add(&t, "NEAREST");
        ctl_table_add(&t, "NEEDS");
        for (size_t i = 0; i < o->n_pods; i++) {
                const PodOutlook *p = o->pods + i;
                const ObjectMeta *m = &scene_pod(s, p->pod)->object.meta;

                ctl_table_addf(&t, "%s/%s", m->ns, m->name);
                if (p->unmodelled == POD_MODELLED)
                        ctl_table_addf(&t, "%u of %u", p->n_takers, o->plan->n_nodes - 1);
                else
                        ctl_table_add(&t, NULL);
                ctl_table_add(&t, p->nearest == NO_NODE ? NULL : scene_node_name(s, p->nearest));
                ctl_table_add(&t, p->remedy);
        }
        ctl_table_print(&t, b);
        ctl_table_done(&t);
}

char *node_outlook_text(const NodeOutlook *o, char *const *unknown) {
        const PlanNode *n = o->plan->nodes + o->node;
        _cleanup_strbuf_ StrBuf b = {};

        strbuf_add_char(&b, '\n');
        if (n->step != NO_STEP)
                add_step(&b, o->plan->steps + n->step);
        else
                add_lacks(&b, n);
        add_pods(&b, o);
        STRV_FOREACH(i, unknown) {
                size_t from = b.size;

                strbuf_addf(&b, "Note: %s", *i);
                ctl_make_plain(&b, from);
                strbuf_add_char(&b, '\n');
        }
        return strbuf_steal(&b);
}
