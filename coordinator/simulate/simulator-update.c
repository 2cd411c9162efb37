/* SPDX-License-Identifier: Apache-2.0 */
/* One pod more, another, or less: what a watch brings, without making everything anew. */
#include "alloc-util.h"
#include "simulator-internal.h"
#include "string-util.h"

#define GONE_MIN 1000u /* with so few that went, or are another, it is not worth while to make a new one */

static void leave_home(Simulator *s, uint32_t pod) {
        uint32_t home = s->pods[pod].home;
        SimulatorNode *n = home == NOWHERE ? NULL : s->nodes + home;

        if (!n)
                return;
        n->n_unsettled -= s->pods[pod].unsettles;
        simulator_score_node(s, home);
        for (size_t i = 0; i < n->n_home_pods; i++)
                if (n->home_pods[i] == pod) {
                        n->home_pods[i] = n->home_pods[--n->n_home_pods];
                        return;
                }
}

/* The place is filled, and counts. */
static int settle(Simulator *s, uint32_t pod, const KubeScheduledPod *object, bool is_vanished) {
        uint32_t n_templates = s->n_templates, seat;
        int r = simulator_fill_pod(s, pod, object, is_vanished);

        if (r >= 0 && s->is_too_coarse)
                r = -ESTALE;
        if (r >= 0 && s->n_templates > n_templates) {
                r = simulator_classify_new(s);
                if (r >= 0)
                        r = simulator_make_groups_of_new(s);
        }
        if (r >= 0)
                r = simulator_reserve_groups(s, s->pods[pod].template);
        if (r < 0)
                return r;
        s->pods[pod].unmodelled = simulator_judge_pod(s, pod);
        r = simulator_load_volumes_of(s, pod);
        seat = simulator_first_seat(s->pods + pod);
        return r < 0 || seat == NOWHERE ? r : simulator_bring_pod(s, pod, seat);
}

static int add_pod(Simulator *s, const KubeScheduledPod *object, bool is_vanished, uint32_t *ret) {
        int r = GREEDY_REALLOC(s->pods, s->pods_allocated, (size_t) s->n_pods + 1);

        assert(s->n_log == 0);
        if (r < 0)
                return r;
        simulator_unseat_waiting(s);
        *ret = s->n_pods++;
        return settle(s, *ret, object, is_vanished);
}

int simulator_add_pod(Simulator *s, const KubeScheduledPod *object, uint32_t *ret) {
        return add_pod(s, object, false, ret);
}

int simulator_add_vanished(Simulator *s, const KubeScheduledPod *object, uint32_t *ret) {
        return add_pod(s, object, true, ret);
}

void simulator_forget_pod(Simulator *s, uint32_t pod) {
        SimulatorPod *p = s->pods + pod;

        assert(s->n_log == 0);
        if (!p->object)
                return;
        simulator_unseat_waiting(s);
        if (p->node != NOWHERE)
                simulator_drop_pod(s, pod);
        leave_home(s, pod);
        simulator_forget_volumes_of(s, pod);
        simulator_release_groups(s, p->template);
        s->n_gone++;
        *p = (SimulatorPod){ .node = NOWHERE, .next = NOWHERE, .previous = NOWHERE, .home = NOWHERE, .promised = NOWHERE,
                             .template = p->template };
}

int simulator_change_pod(Simulator *s, uint32_t pod, const KubeScheduledPod *object) {
        simulator_forget_pod(s, pod);
        s->n_gone--;
        return settle(s, pod, object, false);
}

bool simulator_is_bloated(const Simulator *s) {
        return s->n_gone > s->n_pods / 2 + GONE_MIN / 2 || s->n_templates > 2 * s->n_first_templates + GONE_MIN;
}
