/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods that will be placed any moment compete with those of a removal for the same seats: pending ones, those of nodes that are
 * leaving already, and successors that are not made yet. The seats that pending pods and those of leaving nodes would have if
 * nothing else went are kept: there they stand, so that a node that one of them needs does not go as if nobody wanted it. A pod
 * with status.nominatedNodeName stands on that node from the beginning (simulator.c).
 */
#include "alloc-util.h"
#include "simulator-internal.h"

/* Each removal tries to place all of them, several times. */
#define COMPETITORS_MAX 500u

/* Of these so many of one namespace may be pods that may never be placed. */
#define UNSURE_MAX 100u

/* Who competes is found out in one go: so many looks of a pod at a node, of some 10 ns each. Of 5,000 nodes each of 500 pods that nobody takes may
 * look at all, if it has up to two volumes, or forty rules about other pods. */
const uint64_t simulator_search_work = UINT64_C(32) * 1000 * 1000;
#define VOLUME_LOOKS 4u        /* what a volume costs */
#define RULES_A_LOOK 4u        /* as many rules about other pods cost a look */
#define COMPARED_A_LOOK 8u     /* as many ports, or volumes, are compared with one another in a look */

/* Without its rules a pod still takes the room that others would need. */
static bool may_compete(const SimulatorPod *p) {
        return p->unmodelled == POD_MODELLED || pod_lacks_rules(p->unmodelled);
}

static bool is_competitor(const Simulator *s, uint32_t pod) {
        const SimulatorPod *p = s->pods + pod;
        const KubePod *o;

        if (!p->object || (p->home != NOWHERE && !s->nodes[p->home].is_leaving)) /* of most pods, without a look at their objects */
                return false;
        o = &p->object->pod;
        if (!may_compete(p) || o->phase == POD_SUCCEEDED || o->phase == POD_FAILED)
                return false;
        if (p->is_vanished || !o->node_name) /* also one of a DaemonSet that has no node yet */
                return p->is_vanished || (!p->is_terminating && !o->is_static);
        return p->moves && p->home != NOWHERE;
}

/* -- who competes ------------------------------------------------------------------------------------------- */

typedef struct WaitingSearch {
        Simulator *s;
        const uint32_t *candidates;
        size_t n;
        bool *competes;              /* by candidate */
        uint64_t n_ports, n_volumes; /* of all nodes together */
        uint64_t work_left;          /* looks of a pod at a node */
        bool is_spent;               /* a pod was not asked for */
} WaitingSearch;

static WaitingSearch begin_search(Simulator *s, const uint32_t *candidates, size_t n, bool *competes) {
        WaitingSearch x = { .s = s, .candidates = candidates, .n = n, .competes = competes, .work_left = s->search_work_max };

        for (uint32_t i = 0; i < s->n_nodes; i++) {
                x.n_ports += s->nodes[i].n_ports;
                x.n_volumes += s->nodes[i].n_volumes;
        }
        s->pass++;
        return x;
}

/* The most that it costs to ask all nodes whether they take the pod. */
static uint64_t search_work(const WaitingSearch *x, uint32_t pod) {
        const Simulator *s = x->s;
        const SimulatorTemplate *t = s->templates + s->pods[pod].template;
        uint64_t n_rules = t->n_spread + t->n_affinity + t->n_anti_affinity + t->n_inverse + s->n_closing, n_volumes = s->pods[pod].n_volumes;
        uint64_t looks = 1 + n_rules / RULES_A_LOOK + n_volumes * VOLUME_LOOKS, n_compared = 0;

        if (t->n_masked < s->n_nodes) /* what it asks of nodes was not compared with all of them yet */
                n_compared = (uint64_t) (t->asks_for_name ? s->n_nodes : s->n_classes) * node_terms_size(&t->parsed->required);
        return s->n_nodes * looks + n_compared + (t->parsed->n_ports * x->n_ports + n_volumes * x->n_volumes) / COMPARED_A_LOOK;
}

/* A pod that no node takes now competes with nobody. Pods that the scheduler cannot tell apart get one answer. */
static int would_be_placed(WaitingSearch *x, uint32_t pod, bool *ret) {
        Simulator *s = x->s;
        SimulatorTemplate *t = s->templates + s->pods[pod].template;
        bool answers_for_all = s->pods[pod].home == NOWHERE && s->pods[pod].n_volumes == 0;
        SimulatorMark mark = simulator_mark(s);
        uint64_t work;
        int r;

        *ret = s->pods[pod].promised != NOWHERE;
        if (*ret || (answers_for_all && t->failed_at == s->pass))
                return 0;
        work = search_work(x, pod);
        x->is_spent = work > x->work_left;
        if (x->is_spent)
                return 0;
        x->work_left -= work;
        r = simulator_take_off(s, pod);
        *ret = r >= 0 && simulator_first_fit(s, pod) != NOWHERE;
        simulator_undo(s, mark);
        if (r >= 0 && !*ret && answers_for_all)
                t->failed_at = s->pass;
        return r;
}

/* May a pod like it never come, or not be placed whatever there is? One that vanished, and one whose rules are not looked at. */
static bool is_unsure(const SimulatorPod *p) {
        return p->is_vanished || pod_lacks_rules(p->unmodelled);
}

/* As many as are simulated, the first in the order of placing. */
static int find_sure(WaitingSearch *x) {
        Simulator *s = x->s;

        for (size_t i = 0; i < x->n; i++) {
                bool placed;
                int r;

                if (is_unsure(s->pods + x->candidates[i]))
                        continue;
                r = would_be_placed(x, x->candidates[i], &placed);
                if (r < 0)
                        return r;
                if (x->is_spent || (placed && s->n_competitors == COMPETITORS_MAX)) {
                        s->has_more_competitors = true;
                        return 0;
                }
                x->competes[i] = placed;
                s->n_competitors += placed;
        }
        return 0;
}

/* In the places that are left, so many of each namespace. They stand for a likely need of room: what tenants make more of them keeps no node
 * from going, and no pod that is sure to come from its place. */
static int find_unsure(WaitingSearch *x) {
        _cleanup_(hashmap_freep) Hashmap *of_namespace = NULL;
        Simulator *s = x->s;
        int r = hashmap_new(HASHMAP_BORROW_KEYS, &of_namespace);

        for (size_t i = 0; i < x->n && r >= 0 && !x->is_spent && s->n_competitors < COMPETITORS_MAX; i++) {
                const char *ns = template_of(s, x->candidates[i])->ns;
                uintptr_t n = (uintptr_t) hashmap_get(of_namespace, ns);

                if (!is_unsure(s->pods + x->candidates[i]) || n == UNSURE_MAX)
                        continue;
                r = would_be_placed(x, x->candidates[i], x->competes + i);
                if (r < 0 || !x->competes[i])
                        continue;
                s->n_competitors++;
                r = hashmap_replace(of_namespace, ns, (void *) (n + 1), NULL);
        }
        return r;
}

static int find_competitors(Simulator *s, uint32_t *candidates, size_t n) {
        _cleanup_free_ bool *competes = new0(bool, n + 1);
        WaitingSearch x = begin_search(s, candidates, n, competes);
        size_t kept = 0;
        int r = competes ? simulator_sort_pods(s, candidates, n) : -ENOMEM;

        if (r >= 0)
                r = find_sure(&x);
        if (r >= 0 && !x.is_spent)
                r = find_unsure(&x);
        for (size_t i = 0; i < n && r >= 0; i++)
                if (competes[i])
                        s->competitors[kept++] = candidates[i];
        s->n_competitors = kept;
        return r;
}

/* -- their seats -------------------------------------------------------------------------------------------- */

/* Not one that its node was promised to, which has its seat; nor a successor that is not made yet, which may never be; nor one whose
 * rules are left out: where it would go nobody knows. */
static bool wants_seat(const SimulatorPod *p) {
        return p->moves && !p->is_vanished && p->promised == NOWHERE && p->unmodelled == POD_MODELLED;
}

static int seat_pod(Simulator *s, uint32_t pod) {
        SimulatorPod *p = s->pods + pod;
        uint32_t node;

        if (p->node != NOWHERE)
                simulator_drop_pod(s, pod);
        p->is_successor = true;
        node = simulator_first_fit(s, pod);
        p->is_seated = node != NOWHERE; /* also if that fails: simulator_unseat_waiting() brings it home */
        if (p->is_seated)
                return simulator_bring_pod(s, pod, node);
        p->is_successor = false;
        return p->home == NOWHERE ? 0 : simulator_bring_pod(s, pod, p->home);
}

int simulator_seat_waiting(Simulator *s) {
        _cleanup_free_ uint32_t *candidates = NULL;
        size_t n = 0;
        int r;

        if (s->knows_competitors)
                return 0;
        for (uint32_t i = 0; i < s->n_pods; i++)
                n += is_competitor(s, i);
        candidates = new0(uint32_t, n + 1);
        s->competitors = new0(uint32_t, MIN(n, (size_t) COMPETITORS_MAX) + 1);
        if (!candidates || !s->competitors)
                return -ENOMEM;
        n = 0;
        for (uint32_t i = 0; i < s->n_pods; i++)
                if (is_competitor(s, i))
                        candidates[n++] = i;
        r = find_competitors(s, candidates, n);
        for (size_t i = 0; i < s->n_competitors && r >= 0; i++)
                if (wants_seat(s->pods + s->competitors[i]))
                        r = seat_pod(s, s->competitors[i]);
        if (r < 0)
                simulator_unseat_waiting(s);
        else
                s->knows_competitors = true;
        return r;
}

void simulator_unseat_waiting(Simulator *s) {
        for (size_t i = 0; i < s->n_competitors; i++) {
                SimulatorPod *p = s->pods + s->competitors[i];
                int r = 0;

                if (!p->is_seated)
                        continue;
                if (p->node != NOWHERE)
                        simulator_drop_pod(s, s->competitors[i]);
                p->is_seated = p->is_successor = false;
                if (p->home != NOWHERE)
                        r = simulator_bring_pod(s, s->competitors[i], p->home);
                assert(r >= 0); /* what was there has its room */
                (void) r;
        }
        s->competitors = mfree(s->competitors);
        s->n_competitors = 0;
        s->knows_competitors = s->has_more_competitors = false;
}

/* Pods of nodes that are asked about are judged from where they run. */
int simulator_send_home(Simulator *s, uint32_t node) {
        const SimulatorNode *n = s->nodes + node;
        int r = 0;

        for (size_t i = 0; i < n->n_home_pods && n->is_leaving && r >= 0; i++) {
                uint32_t pod = n->home_pods[i];

                if (!s->pods[pod].is_seated || s->pods[pod].node == node)
                        continue;
                r = simulator_take_off(s, pod);
                if (r >= 0)
                        r = simulator_place(s, pod, node);
        }
        return r;
}

bool simulator_has_more_waiting(const Simulator *s) {
        return s->has_more_competitors;
}

uint32_t simulator_promised_to(const Simulator *s, uint32_t pod) {
        return s->pods[pod].promised;
}

bool simulator_any_moves(const Simulator *s, uint32_t node) {
        for (uint32_t i = s->nodes[node].first_pod; i != NOWHERE; i = s->pods[i].next)
                if (simulator_is_mover(s->pods + i))
                        return true;
        return false;
}
