/* SPDX-License-Identifier: Apache-2.0 */
#include "disruption-limit.h"
#include "disruption-methods.h"

#include "string-util.h"

/* Of those without a seat so many are named. */
#define NAMED_MAX 5u

bool pool_respects_preferences(const DisruptionScene *s, uint32_t node) {
        const DisruptionPool *pool = node < s->n_nodes ? s->nodes[node].pool : NULL;

        return !pool || !pool->pool->disruption.ignores_preferences;
}

uint32_t *plan_nodes_left(const DisruptionPlan *p, size_t *ret_n) {
        uint32_t *nodes = new0(uint32_t, (size_t) p->n_nodes + 1);

        *ret_n = 0;
        for (uint32_t i = 0; nodes && i < p->n_nodes; i++)
                if (p->scene->nodes[i].pool && p->nodes[i].step == NO_STEP && (p->only == NO_NODE || p->only == i))
                        nodes[(*ret_n)++] = i;
        return nodes;
}

GateFindings *plan_lacks(DisruptionPlan *p, uint32_t node, PlanMethod m) {
        GateFindings *f = p->nodes[node].lacks + m;

        gate_findings_done(f);
        return f;
}

/* -- why pods have no seat ------------------------------------------------------------------------------ */

char *preference_text(const KubeScheduledPod *pod) {
        static const struct {
                const char *kind, *name;
        } kinds[] = {
                { "podAntiAffinity", "preferred Anti-Affinity" },
                { "podAffinity", "preferred Affinity" },
                { "nodeAffinity", "preferred node affinity" },
        };
        const ObjectMeta *m = &pod->pod.object.meta;
        const char *what = "topology spread that is only wished for";
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;

        if (pod->scheduling && json_parse(pod->scheduling, strlen(pod->scheduling), SIZE_MAX, &doc, NULL) < 0)
                doc = NULL;
        for (size_t i = ELEMENTSOF(kinds); doc && i > 0; i--)
                if (json_size(json_path(json_root(doc), "affinity", kinds[i - 1].kind,
                                        "preferredDuringSchedulingIgnoredDuringExecution", NULL)) > 0)
                        what = kinds[i - 1].name;
        return strf("pod %s/%s has a %s which can prevent consolidation", m->ns, m->name, what);
}

/* The last filter that any node came to: what would have to change. */
static FitReason nearest_reason(const SimulateUnplaced *u) {
        for (FitReason r = _FIT_REASON_MAX - 1; r > FIT_OK; r--)
                if (u->counts[r] > 0)
                        return r;
        return FIT_NOT_A_DESTINATION;
}

static void add_counts(StrBuf *b, const uint32_t counts[_FIT_REASON_MAX]) {
        bool is_first = true;

        for (FitReason r = FIT_OK + 1; r < _FIT_REASON_MAX; r++) {
                if (counts[r] == 0)
                        continue;
                strbuf_addf(b, "%s%u %s", is_first ? "" : ", ", counts[r], fit_reason_to_string(r));
                is_first = false;
        }
}

/* How many pods, what they lack, then some of them by name, with what nodes say. */
static void add_unplaced(const DisruptionScene *s, const SimulateVerdict *v, GateFindings *f) {
        uint32_t pods[_FIT_REASON_MAX] = {};
        _cleanup_free_ char *object = NULL;
        _cleanup_strbuf_ StrBuf b = {};
        size_t n = 0, named = 0;

        for (size_t i = 0; i < v->n_unplaced; i++)
                if (v->unplaced[i].unmodelled == POD_MODELLED && !v->unplaced[i].waits) {
                        pods[nearest_reason(v->unplaced + i)]++;
                        n++;
                }
        if (n == 0)
                return;
        strbuf_addf(&b, "%zu of its pods %s no place on other nodes%s (", n, n == 1 ? "has" : "have",
                    v->fits_packed ? " if kube-scheduler spreads what moves or gets it in an unlucky order, though all fit if it is packed" : "");
        add_counts(&b, pods);
        strbuf_add(&b, ")");
        for (size_t i = 0; i < v->n_unplaced && named < NAMED_MAX; i++) {
                const SimulateUnplaced *u = v->unplaced + i;
                const ObjectMeta *m = &scene_pod(s, u->pod)->object.meta;

                if (u->unmodelled != POD_MODELLED || u->waits)
                        continue;
                if (!object)
                        object = strf("pod %s/%s", m->ns, m->name);
                f->failed = f->failed || !object;
                strbuf_addf(&b, "%s %s/%s: of all nodes ", named == 0 ? ":" : ";", m->ns, m->name);
                add_counts(&b, u->counts);
                if (u->nearest != UINT32_MAX)
                        strbuf_addf(&b, ", nearest %s", scene_node_name(s, u->nearest));
                named++;
        }
        if (n > named)
                strbuf_addf(&b, "; and %zu more", n - named);
        gate_add(f, GATE_NOT_PLACED, object, USEC_INFINITY, strbuf_steal(&b));
}

bool verdict_is_of_waiting(const SimulateVerdict *v) {
        for (size_t i = 0; i < v->n_unplaced; i++)
                if (!v->unplaced[i].waits)
                        return false;
        return v->n_unplaced > 0;
}

bool is_node_of(const uint32_t *nodes, size_t n, uint32_t node) {
        for (size_t i = 0; i < n; i++)
                if (nodes[i] == node)
                        return true;
        return false;
}

/* Pods that have a seat, and would lose it. */
static void add_waiting(const DisruptionScene *s, uint32_t node, GoesWith with, const SimulateVerdict *v, GateFindings *f) {
        _cleanup_free_ char *object = NULL;
        _cleanup_strbuf_ StrBuf b = {};
        size_t n = 0;

        for (size_t i = 0; i < v->n_unplaced; i++) {
                const SimulateUnplaced *u = v->unplaced + i;
                const ObjectMeta *m = &scene_pod(s, u->pod)->object.meta;
                uint32_t home = simulator_home_of(s->simulator, u->pod);

                if (u->unmodelled != POD_MODELLED || !u->waits || n++ > 0)
                        continue;
                object = strf("pod %s/%s", m->ns, m->name);
                f->failed = f->failed || !object;
                if (with == GOES_AFTER_OTHERS)
                        strbuf_add(&b, "with the nodes that go before it gone, ");
                strbuf_addf(&b, "%spod %s/%s", home == NO_NODE ? "pending " : "", m->ns, m->name);
                if (home != NO_NODE)
                        strbuf_addf(&b, ", whose node %s is going,", scene_node_name(s, home));
        }
        if (n > 1)
                strbuf_addf(&b, " and %zu more", n - 1);
        if (with == GOES_AFTER_OTHERS)
                strbuf_addf(&b, " would have no place if node %s went, too", scene_node_name(s, node));
        else {
                strbuf_addf(&b, " %s a place now, and would have none if ", n > 1 ? "have" : "has");
                strbuf_addf(&b, with == GOES_AMONG_OTHERS ? "node %s and the others went" : "node %s went", scene_node_name(s, node));
        }
        if (n > 0)
                gate_add(f, GATE_NOMINATED, object, USEC_INFINITY, strbuf_steal(&b));
}

static void add_unmodelled(const DisruptionScene *s, const SimulateVerdict *v, GateFindings *f) {
        for (size_t i = 0; i < v->n_unplaced; i++) {
                const SimulateUnplaced *u = v->unplaced + i;
                const ObjectMeta *m = &scene_pod(s, u->pod)->object.meta;
                _cleanup_free_ char *object = NULL;

                if (u->unmodelled == POD_MODELLED)
                        continue;
                object = strf("pod %s/%s", m->ns, m->name);
                f->failed = f->failed || !object;
                if (u->unmodelled == POD_SNAPSHOT_INCOMPLETE)
                        gate_add(f, GATE_SNAPSHOT_INCOMPLETE, object, USEC_INFINITY,
                                 strf("pod %s/%s needs objects of a kind that was not read", m->ns, m->name));
                else
                        gate_add(f, GATE_UNMODELLED, object, USEC_INFINITY,
                                 strf("where pod %s/%s would go %s simulated: %s", m->ns, m->name,
                                      u->unmodelled == POD_TOO_MANY_RULES ? "is not" : "cannot be", pod_unmodelled_text(u->unmodelled)));
        }
}

static void add_preferences(const DisruptionScene *s, const SimulateVerdict *v, GateFindings *f) {
        for (size_t i = 0; i < v->n_unplaced; i++) {
                const ObjectMeta *m = &scene_pod(s, v->unplaced[i].pod)->object.meta;
                _cleanup_free_ char *object = strf("pod %s/%s", m->ns, m->name);

                if (!object)
                        f->failed = true;
                else
                        gate_add(f, GATE_PREFERENCE, object, USEC_INFINITY,
                                 preference_text(simulator_pod(s->simulator, v->unplaced[i].pod)));
        }
}

void gate_add_verdict(const DisruptionScene *s, uint32_t node, GoesWith with, const SimulateVerdict *v, GateFindings *f) {
        if (v->only_by_preference) {
                add_preferences(s, v, f);
                return;
        }
        add_unmodelled(s, v, f);
        add_unplaced(s, v, f);
        if (verdict_is_of_waiting(v))
                add_waiting(s, node, with, v, f);
}

int gate_waiting(const DisruptionScene *s, uint32_t node, GoesWith with, GateFindings *f) {
        const SimulateOptions quick = { .quick = true };
        SimulateVerdict v = {};
        int r;

        if (!simulator_any_moves(s->simulator, node))
                return 0;
        r = simulate_removal(s->simulator, &node, 1, &quick, false, &v);
        if (r >= 0 && !v.fits)
                gate_add_verdict(s, node, with, &v, f);
        simulate_verdict_done(&v);
        return r;
}

/* -- a step --------------------------------------------------------------------------------------------- */

static PlanMove move_of(const DisruptionPlan *p, const SimulatePlacement *to, const uint32_t *nodes, size_t n) {
        uint32_t home = simulator_home_of(p->scene->simulator, to->pod);
        bool runs_there = home != NO_NODE && (p->nodes[home].step != NO_STEP || is_node_of(nodes, n, home));

        return (PlanMove){ .pod = to->pod, .from = runs_there ? p->standing[to->pod] : home, .to = to->node, .waits = !runs_there };
}

static int step_fill(DisruptionPlan *p, PlanStep *step, const uint32_t *nodes, size_t n, const SimulateVerdict *v) {
        DisruptionScene *s = p->scene;

        step->nodes = memdup(nodes, n * sizeof(uint32_t));
        step->why = new0(char *, n + 1);
        step->moves = new0(PlanMove, v->n_placements + 1);
        if (!step->nodes || !step->why || !step->moves)
                return -ENOMEM;
        step->n_nodes = n;
        for (size_t i = 0; i < v->n_placements; i++)
                step->moves[step->n_moves++] = move_of(p, v->placements + i, nodes, n);
        step->price_before_micros = 0;
        for (size_t i = 0; i < n; i++) {
                int64_t price = scene_price_micros(s, nodes[i]);

                step->n_naked += s->nodes[nodes[i]].n_naked;
                step->price_before_micros = price < 0 || step->price_before_micros < 0 ? -1 : step->price_before_micros + price;
        }
        return drain_estimate(s, nodes, n, &step->drain);
}

void plan_step_done(PlanStep *step) {
        for (size_t i = 0; step->why && i < step->n_nodes; i++)
                free(step->why[i]);
        free(step->why);
        free(step->nodes);
        free(step->moves);
        free(step->replacement_like);
}

/* The nodes are gone from here on, for this plan. */
static void plan_count(DisruptionPlan *p, const PlanStep *step) {
        for (size_t i = 0; i < step->n_nodes; i++) {
                p->nodes[step->nodes[i]].step = (uint32_t) p->n_steps;
                for (PlanMethod m = 0; m < _PLAN_METHOD_MAX; m++)
                        gate_findings_done(p->nodes[step->nodes[i]].lacks + m);
                disruption_count_taken(p->scene, step->nodes[i], 1);
                pool_count_node(p->scene, p->scene->nodes[step->nodes[i]].pool, step->nodes[i], NULL, -1);
        }
        for (size_t i = 0; i < step->n_moves; i++) {
                p->standing[step->moves[i].pod] = step->moves[i].to;
                if (step->moves[i].to < p->n_nodes)
                        p->nodes[step->moves[i].to].n_arrived++;
        }
}

/* They are gone from the simulator already. */
static int plan_add_step(DisruptionPlan *p, const StepDraft *draft, const uint32_t *nodes, size_t n, char **why,
                         const SimulateVerdict *v, PlanStep **ret_step) {
        PlanStep step = { .method = draft->method, .how = draft->how, .replacement = NO_NODE, .price_after_micros = -1 };
        int r;

        r = step_fill(p, &step, nodes, n, v);
        if (r >= 0)
                r = GREEDY_REALLOC(p->steps, p->steps_allocated, p->n_steps + 1);
        if (r < 0) {
                plan_step_done(&step);
                return r;
        }
        for (size_t i = 0; i < n; i++)
                step.why[i] = TAKE_PTR(why[i]);
        if (step.price_before_micros >= 0)
                step.price_after_micros = 0;
        plan_count(p, &step);
        p->steps[p->n_steps++] = step;
        if (ret_step)
                *ret_step = p->steps + p->n_steps - 1;
        return 1;
}

int plan_try(DisruptionPlan *p, const StepDraft *draft, const uint32_t *nodes, size_t n, char **why, GateFindings *f,
             PlanStep **ret_step) {
        const SimulateOptions o = { .respect_preferences = draft->respects_preferences, .quick = !f };
        Simulator *s = p->scene->simulator;
        SimulatorMark mark = simulator_mark(s);
        SimulateVerdict v = {};
        int r;

        r = simulate_removal(s, nodes, n, &o, true, &v);
        if (r >= 0 && v.fits) {
                r = plan_add_step(p, draft, nodes, n, why, &v, ret_step);
                if (r < 0)
                        simulator_undo(s, mark);
        } else if (r >= 0 && f) {
                gate_add_verdict(p->scene, nodes[n - 1], n > 1 ? GOES_AMONG_OTHERS : plan_goes_with(p), &v, f);
                r = f->failed ? -ENOMEM : 0;
        }
        simulate_verdict_done(&v);
        return r;
}

int plan_force(DisruptionPlan *p, const StepDraft *draft, uint32_t node, char **why) {
        const SimulateVerdict none = {};
        Simulator *s = p->scene->simulator;
        SimulatorMark mark = simulator_mark(s);
        int r = simulator_remove_node(s, node);

        if (r >= 0)
                r = plan_add_step(p, draft, &node, 1, why, &none, NULL);
        if (r < 0)
                simulator_undo(s, mark);
        return r;
}

int plan_try_with_successor(DisruptionPlan *p, const StepDraft *draft, uint32_t node, char **why, GateFindings *f) {
        DisruptionPool *pool = p->scene->nodes[node].pool;
        _cleanup_free_ char *like = NULL;
        size_t before = f->n_items;
        _cleanup_(gate_findings_done) GateFindings anyway = {};
        PlanStep *step;
        uint32_t new;
        int r;

        r = plan_try(p, draft, &node, 1, why, f, &step);
        if (r != 0)
                return r;
        if (!pool_limits_allow(p->scene, pool, node, NULL)) {
                gate_add_limit(p->scene, pool, node, NULL, strdup(SUCCESSOR_WANTED), f);
                gate_sort(f, before);
                return f->failed ? -ENOMEM : 0;
        }
        like = strdup(scene_node_name(p->scene, node));
        if (!like)
                return -ENOMEM;
        r = scene_add_node(p->scene, &(SimulatorNewNode){ .like = node, .labels = pool ? &pool->pool->template.labels : NULL }, &new);
        if (r == -E2BIG || r == -EINVAL)
                return 0;
        if (r < 0)
                return r;
        r = plan_try(p, draft, &node, 1, why, &anyway, &step);
        if (r <= 0) {
                scene_drop_node(p->scene, new);
                return r;
        }
        pool_count_node(p->scene, pool, node, NULL, 1);
        step->replacement = new;
        step->replacement_like = TAKE_PTR(like);
        step->price_after_micros = step->price_before_micros;
        return 1;
}
