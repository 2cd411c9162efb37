/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate.h"

#include "alloc-util.h"
#include "simulator-internal.h"
#include "string-util.h"

typedef uint32_t (*place_t)(Simulator *s, uint32_t pod);

void simulate_verdict_done(SimulateVerdict *v) {
        free(v->placements);
        free(v->sequence);
        free(v->unplaced);
        *v = (SimulateVerdict){};
}

/* -- the order in which pods are placed ------------------------------------------------------------------ */

static int compare_int64(int64_t a, int64_t b) {
        return (a > b) - (a < b);
}

/* By what a pod is placed: the most CPU first, then the most memory, the oldest, by uid. Gathered once for each sort, which looks at
 * each many times. */
typedef struct PlacingKey {
        int64_t cpu, memory;
        usec_t creation_usec;
        uint64_t uid_head;
        uint32_t pod;
} PlacingKey;

static PlacingKey placing_key(const Simulator *s, uint32_t pod) {
        const PodTemplate *t = template_of(s, pod);

        return (PlacingKey){ .cpu = pod_template_request(t, RESOURCE_CPU),
                             .memory = pod_template_request(t, RESOURCE_MEMORY),
                             .creation_usec = s->pods[pod].creation_usec,
                             .uid_head = s->pods[pod].uid_head,
                             .pod = pod };
}

static int compare_uids(const Simulator *s, uint32_t a, uint32_t b) {
        return strcmp(strempty(s->pods[a].object->pod.object.meta.uid), strempty(s->pods[b].object->pod.object.meta.uid));
}

static int compare_keys(const void *a, const void *b, void *userdata) {
        const PlacingKey *x = a, *y = b;
        int r = compare_int64(y->cpu, x->cpu) ?: compare_int64(y->memory, x->memory);

        if (r == 0 && x->creation_usec != y->creation_usec)
                r = x->creation_usec < y->creation_usec ? -1 : 1;
        if (r == 0 && x->uid_head != y->uid_head)
                r = x->uid_head < y->uid_head ? -1 : 1;
        return (r ?: compare_uids(userdata, x->pod, y->pod)) ?: (x->pod > y->pod) - (x->pod < y->pod);
}

int simulator_sort_pods(Simulator *s, uint32_t *pods, size_t n) {
        _cleanup_free_ PlacingKey *keys = n > 1 ? new0(PlacingKey, n) : NULL;

        if (n <= 1)
                return 0;
        if (!keys)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                keys[i] = placing_key(s, pods[i]);
        qsort_r(keys, n, sizeof(PlacingKey), compare_keys, s);
        for (size_t i = 0; i < n; i++)
                pods[i] = keys[i].pod;
        return 0;
}

/* -- one removal -------------------------------------------------------------------------------------------- */

typedef struct Removal {
        Simulator *s;
        const uint32_t *nodes;
        size_t n_nodes;
        const SimulateOptions *options;
        uint32_t *movers; /* pods of these nodes */
        size_t n_movers;
        uint32_t *queue;  /* these and the competitors, in the order of placing */
        size_t n_queue;
        bool *is_mover;   /* by place in the queue */
        bool *is_seated;  /* likewise: a competitor that has a seat */
        size_t n_seated;
        bool seats_count; /* who has a seat has to keep one: not where only the luck of an order is tried */
        uint32_t *order;  /* places in the queue, as they are tried */
        uint32_t *placed; /* places in the queue, in the order of their placing */
        size_t n_placed;
        bool *is_placed;
        bool has_preferences; /* some mover's hold now */
        bool is_lost;         /* a mover has no seat, and will not have one: what else is placed only takes room away */
} Removal;

static void removal_done(Removal *x) {
        free(x->movers);
        free(x->queue);
        free(x->is_mover);
        free(x->is_seated);
        free(x->order);
        free(x->placed);
        free(x->is_placed);
}

static int collect_movers(Removal *x) {
        Simulator *s = x->s;
        size_t n = 0;

        for (size_t i = 0; i < x->n_nodes; i++)
                for (uint32_t p = s->nodes[x->nodes[i]].first_pod; p != NOWHERE; p = s->pods[p].next)
                        n += simulator_is_mover(s->pods + p);
        x->movers = new0(uint32_t, n + 1);
        if (!x->movers)
                return -ENOMEM;
        for (size_t i = 0; i < x->n_nodes; i++)
                for (uint32_t p = s->nodes[x->nodes[i]].first_pod; p != NOWHERE; p = s->pods[p].next)
                        if (simulator_is_mover(s->pods + p))
                                x->movers[x->n_movers++] = p;
        return simulator_sort_pods(s, x->movers, x->n_movers);
}

/* One that was placed on one of these nodes is a mover; and one that stands where it was promised stays there, as for kube-scheduler. */
static bool competes(const Removal *x, uint32_t pod) {
        const SimulatorPod *p = x->s->pods + pod;

        if (p->node != NOWHERE && x->s->nodes[p->node].is_asked_about && simulator_is_mover(p))
                return false;
        return p->promised == NOWHERE || p->node != p->promised;
}

static void mark_nodes(const Removal *x, bool asked) {
        for (size_t i = 0; i < x->n_nodes; i++)
                x->s->nodes[x->nodes[i]].is_asked_about = asked;
}

/* It stands where it would go. */
static bool has_seat(const SimulatorPod *p) {
        return simulator_is_mover(p) && p->node != NOWHERE && p->node != p->home;
}

/* Both are in order: they are merged. */
static int make_queue(Removal *x) {
        const Simulator *s = x->s;
        size_t n = x->n_movers + s->n_competitors, m = 0, c = 0;

        x->queue = new0(uint32_t, n + 1);
        x->is_mover = new0(bool, n + 1);
        x->is_seated = new0(bool, n + 1);
        x->placed = new0(uint32_t, n + 1);
        x->is_placed = new0(bool, n + 1);
        x->order = new0(uint32_t, n + 1);
        if (!x->queue || !x->is_mover || !x->is_seated || !x->placed || !x->is_placed || !x->order)
                return -ENOMEM;
        while (m < x->n_movers || c < s->n_competitors) {
                bool mover = c == s->n_competitors;

                if (c < s->n_competitors && !competes(x, s->competitors[c])) {
                        c++;
                        continue;
                }
                if (!mover && m < x->n_movers) {
                        PlacingKey k = placing_key(s, x->movers[m]), l = placing_key(s, s->competitors[c]);

                        mover = compare_keys(&k, &l, x->s) < 0;
                }
                x->is_mover[x->n_queue] = mover;
                x->is_seated[x->n_queue] = !mover && has_seat(s->pods + s->competitors[c]);
                x->n_seated += x->is_seated[x->n_queue];
                x->queue[x->n_queue++] = mover ? x->movers[m++] : s->competitors[c++];
        }
        return 0;
}

/* Which of a pod's preferences hold where it runs now: those have to hold where it goes. Of a competitor none have to, whatever held when its
 * node was judged. */
static int note_preferences(Removal *x) {
        Simulator *s = x->s;

        for (size_t i = 0; i < x->n_queue; i++)
                s->pods[x->queue[i]].held_preferences = 0;
        for (size_t i = 0; i < x->n_movers; i++) {
                SimulatorPod *p = s->pods + x->movers[i];
                SimulatorMark mark = simulator_mark(s);
                uint32_t node = p->node;
                int r;

                if (!x->options->respect_preferences || p->unmodelled != POD_MODELLED || s->templates[p->template].n_preferences == 0 ||
                    (p->home != p->node && (p->is_seated || p->home == NOWHERE))) /* it has never run there */
                        continue;
                r = simulator_take_off(s, x->movers[i]);
                if (r < 0)
                        return r;
                p->held_preferences = preferences_that_hold(s, x->movers[i], node);
                x->has_preferences |= p->held_preferences != 0;
                simulator_undo(s, mark);
        }
        return 0;
}

static int clear_nodes(Removal *x) {
        Simulator *s = x->s;
        int r = 0;

        for (size_t i = 0; i < x->n_nodes && r >= 0; i++)
                r = simulator_remove_node(s, x->nodes[i]);
        for (size_t i = 0; i < x->n_queue && r >= 0; i++)
                if (!x->is_mover[i])
                        r = simulator_take_off(s, x->queue[i]);
        return r;
}

/* Could a pod that no node takes get a seat by what is placed after it? By its rules about other pods; and a volume may be attached then
 * already. */
static bool may_be_helped(const Simulator *s, uint32_t pod) {
        const SimulatorTemplate *t = s->templates + s->pods[pod].template;

        return s->pods[pod].unmodelled == POD_MODELLED &&
               (t->n_spread > 0 || t->n_affinity > 0 || s->pods[pod].n_volumes > 0 || s->pods[pod].held_preferences != 0);
}

/* 1: it has a seat; 0: no node takes it, or one like it, in this pass. */
static int try_pod(Removal *x, size_t i, place_t place) {
        Simulator *s = x->s;
        uint32_t pod = x->queue[i], node;
        SimulatorTemplate *t = s->templates + s->pods[pod].template;
        bool has_peers = s->pods[pod].n_volumes == 0 && s->pods[pod].held_preferences == 0;
        int r;

        if ((x->is_mover[i] && s->pods[pod].unmodelled != POD_MODELLED) || (has_peers && t->failed_at == s->pass))
                return 0;
        node = place(s, pod);
        if (node == NOWHERE) {
                if (has_peers)
                        t->failed_at = s->pass;
                return 0;
        }
        r = simulator_place(s, pod, node);
        if (r < 0)
                return r;
        x->is_placed[i] = true;
        x->placed[x->n_placed++] = (uint32_t) i;
        return 1;
}

/* Pods that could go anywhere first, the smallest of them first: whoever needs one of few seats finds it taken. */
static int compare_pickiness(const void *a, const void *b, void *userdata) {
        const Removal *x = userdata;
        uint32_t i = *(const uint32_t *) a, k = *(const uint32_t *) b;
        const SimulatorTemplate *t = x->s->templates + x->s->pods[x->queue[i]].template,
                                *u = x->s->templates + x->s->pods[x->queue[k]].template;
        int r = compare_int64(t->pickiness, u->pickiness);

        if (r == 0)
                r = compare_int64(pod_template_request(t->parsed, RESOURCE_CPU), pod_template_request(u->parsed, RESOURCE_CPU));
        return r != 0 ? r : (i > k) - (i < k);
}

/* Does a pod keep others of this template away? The groups of pods that went are still there. */
static bool is_kept_away(const Simulator *s, const SimulatorTemplate *t) {
        for (size_t i = 0; i < t->n_inverse; i++)
                if (s->groups[t->inverse[i]].total > 0)
                        return true;
        return false;
}

/* Nodes whose class does not take it; and any rule about other pods or volumes counts for more. */
static void find_pickiness(Simulator *s, uint32_t pod) {
        SimulatorTemplate *t = s->templates + s->pods[pod].template;
        const uint64_t *mask;

        if (t->picky_at == s->pass)
                return;
        t->picky_at = s->pass;
        mask = template_mask(s, s->pods[pod].template);
        if (t->n_refusing < 0) {
                t->n_refusing = s->n_nodes;
                for (uint32_t block = 0; block * BLOCK_NODES < s->n_nodes; block++)
                        t->n_refusing -= __builtin_popcountll(mask[block]);
        }
        t->pickiness = t->n_refusing;
        if (t->n_spread + t->n_affinity + t->n_anti_affinity + t->parsed->n_ports > 0 || is_kept_away(s, t))
                t->pickiness += s->n_nodes;
}

static void order_queue(Removal *x, bool adversely) {
        for (uint32_t i = 0; i < x->n_queue; i++)
                x->order[i] = i;
        if (!adversely)
                return;
        x->s->pass++;
        for (size_t i = 0; i < x->n_queue; i++)
                find_pickiness(x->s, x->queue[i]);
        qsort_r(x->order, x->n_queue, sizeof(uint32_t), compare_pickiness, x);
}

/* Without a seat for this one the nodes may not go. */
static bool is_needed(const Removal *x, size_t i) {
        return x->is_mover[i] || (x->seats_count && x->is_seated[i]);
}

/* As long as one more finds a seat, those without one are tried again: affinity may have waited for it. */
static int place_all(Removal *x, place_t place, size_t *ret_needed) {
        bool progress = true;
        size_t n = 0;

        x->n_placed = 0;
        x->is_lost = false;
        memset(x->is_placed, 0, x->n_queue * sizeof(bool));
        while (progress) {
                progress = false;
                x->s->pass++;
                for (size_t k = 0; k < x->n_queue; k++) {
                        size_t i = x->order[k];
                        int r = x->is_placed[i] ? 0 : try_pod(x, i, place);

                        if (r < 0)
                                return r;
                        progress |= r > 0;
                        n += r > 0 && is_needed(x, i);
                        x->is_lost |= !x->is_placed[i] && is_needed(x, i) && !may_be_helped(x->s, x->queue[i]);
                        if (x->is_lost && x->options->quick) {
                                *ret_needed = n;
                                return 0;
                        }
                }
                progress = progress && x->n_placed < x->n_queue;
        }
        *ret_needed = n;
        return 0;
}

/* Removes and places; the caller undoes. */
static int play(Removal *x, place_t place, bool *ret_fits) {
        size_t n;
        int r = clear_nodes(x);

        if (r >= 0)
                r = place_all(x, place, &n);
        if (r >= 0)
                *ret_fits = n == x->n_movers + (x->seats_count ? x->n_seated : 0);
        return r;
}

/* -- the verdict --------------------------------------------------------------------------------------------- */

static int note_placements(const Removal *x, SimulateVerdict *v) {
        v->placements = new0(SimulatePlacement, x->n_movers + 1);
        v->sequence = x->options->quick ? NULL : new0(SimulatePlacement, x->n_placed + 1);
        if (!v->placements || (!v->sequence && !x->options->quick))
                return -ENOMEM;
        for (size_t i = 0; i < x->n_placed; i++) {
                uint32_t pod = x->queue[x->placed[i]];
                SimulatePlacement seat = { pod, x->s->pods[pod].node };

                if (v->sequence)
                        v->sequence[v->n_sequence++] = seat;
                if (x->is_mover[x->placed[i]])
                        v->placements[v->n_placements++] = seat;
        }
        return 0;
}

static int compare_unplaced(const void *a, const void *b) {
        uint32_t x = ((const SimulateUnplaced *) a)->pod, y = ((const SimulateUnplaced *) b)->pod;

        return (x > y) - (x < y);
}

/* It does not run on one of these nodes: it was to come there. */
static bool waits(const Simulator *s, uint32_t pod) {
        uint32_t home = s->pods[pod].home;

        return home == NOWHERE || (s->nodes[home].is_leaving && !s->nodes[home].is_removed);
}

static int note_unplaced(Removal *x, SimulateVerdict *v) {
        v->unplaced = new0(SimulateUnplaced, x->n_movers + x->n_seated + 1);
        if (!v->unplaced)
                return -ENOMEM;
        for (size_t i = 0; i < x->n_queue; i++) {
                SimulateUnplaced *u = v->unplaced + v->n_unplaced;

                if (!is_needed(x, i) || x->is_placed[i])
                        continue;
                *u = (SimulateUnplaced){ .pod = x->queue[i],
                                         .unmodelled = x->s->pods[x->queue[i]].unmodelled,
                                         .waits = waits(x->s, x->queue[i]),
                                         .nearest = NOWHERE };
                if (!x->options->quick && u->unmodelled == POD_MODELLED)
                        simulator_count_fits(x->s, u->pod, u->counts, &u->nearest);
                v->n_unplaced++;
        }
        qsort(v->unplaced, v->n_unplaced, sizeof(SimulateUnplaced), compare_unplaced);
        return 0;
}

/* One way of placing, and undone; what it found is noted if it decides: packing's seats, and what has none. */
static int judge(Removal *x, place_t place, bool adversely, SimulateVerdict *v, bool *ret_fits) {
        SimulatorMark mark = simulator_mark(x->s);
        int r;

        order_queue(x, adversely);
        x->seats_count = place == simulator_first_fit;
        r = play(x, place, ret_fits);
        if (r >= 0 && place == simulator_first_fit)
                r = note_placements(x, v);
        if (r >= 0 && !*ret_fits)
                r = note_unplaced(x, v);
        simulator_undo(x->s, mark);
        return r;
}

static int judge_both(Removal *x, SimulateVerdict *v) {
        int r = judge(x, simulator_first_fit, false, v, &v->fits_packed);

        if (r >= 0 && v->fits_packed)
                r = judge(x, simulator_freest_fit, false, v, &v->fits_spread);
        if (r >= 0 && v->fits_spread)
                r = judge(x, simulator_freest_fit, true, v, &v->fits_any_order);
        v->fits = v->fits_packed && v->fits_spread && v->fits_any_order;
        return r;
}

static int ask_without_preferences(Removal *x, SimulateVerdict *v) {
        SimulateVerdict again = {};
        int r;

        x->s->respects_preferences = false;
        r = judge_both(x, &again);
        v->only_by_preference = again.fits;
        simulate_verdict_done(&again);
        return r;
}

static int removal_prepare(Removal *x) {
        int r = simulator_seat_waiting(x->s);

        for (size_t i = 0; i < x->n_nodes && r >= 0; i++)
                r = simulator_send_home(x->s, x->nodes[i]);
        if (r >= 0)
                r = collect_movers(x);
        if (r < 0)
                return r;
        mark_nodes(x, true);
        r = make_queue(x);
        mark_nodes(x, false);
        return r < 0 ? r : note_preferences(x);
}

static int removal_judge(Removal *x, bool keep, SimulateVerdict *v) {
        Simulator *s = x->s;
        SimulatorMark mark = simulator_mark(s);
        bool fits;
        int r;

        s->respects_preferences = x->options->respect_preferences;
        r = judge_both(x, v);
        if (r >= 0 && v->fits && keep) {
                order_queue(x, false);
                r = play(x, simulator_first_fit, &fits);
                if (r < 0)
                        simulator_undo(s, mark);
        }
        if (r >= 0 && !v->fits && x->has_preferences && !x->options->quick)
                r = ask_without_preferences(x, v);
        s->respects_preferences = false;
        return r;
}

int simulate_removal(Simulator *s, const uint32_t *nodes, size_t n_nodes, const SimulateOptions *options, bool keep,
                     SimulateVerdict *ret) {
        Removal x = { .s = s, .nodes = nodes, .n_nodes = n_nodes, .options = options };
        SimulatorMark mark = simulator_mark(s);
        SimulateVerdict v = {};
        int r = removal_prepare(&x);

        if (r >= 0)
                r = removal_judge(&x, keep, &v);
        removal_done(&x);
        if (r < 0 || !keep || !v.fits)
                simulator_undo(s, mark);
        if (r < 0) {
                simulate_verdict_done(&v);
                return r;
        }
        *ret = v;
        return 0;
}
