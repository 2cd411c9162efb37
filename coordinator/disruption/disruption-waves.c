/* SPDX-License-Identifier: Apache-2.0 */
#include "disruption-waves.h"

#include "drain-plan.h"
#include "string-util.h"

bool pdb_is_asked(const DisruptionPdb *pdb, const KubePod *pod) {
        return !kube_pdb_passes_by(pdb->pdb, pod);
}

static void count_pod(const DisruptionScene *s, uint32_t pod, size_t *need, DrainEstimate *e, int64_t *grace_sec) {
        const PdbList *pdbs = scene_pdbs_of(s, pod);
        const KubePod *p = scene_pod(s, pod);

        e->n_pods++;
        *grace_sec = MAX(*grace_sec, p->grace_sec);
        for (size_t i = 0; i < pdbs->n_items; i++)
                if (pdb_is_asked(pdbs->items[i], p))
                        need[pdbs->items[i] - s->pdbs]++;
}

/* Saturating: a grace period is whatever somebody has written into a pod. */
static usec_t times(usec_t usec, size_t n) {
        return n > 0 && usec > USEC_INFINITY / n ? USEC_INFINITY : usec * n;
}

int drain_estimate(const DisruptionScene *s, const uint32_t *nodes, size_t n, DrainEstimate *ret) {
        _cleanup_free_ size_t *need = new0(size_t, s->n_pdbs + 1);
        int64_t grace_sec = 0;
        size_t most; /* waves of the budget that is named */

        *ret = (DrainEstimate){};
        if (!need)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                size_t n_pods;
                const uint32_t *pods = simulator_pods_of(s->simulator, nodes[i], &n_pods);

                for (size_t k = 0; k < n_pods; k++)
                        if (simulator_pod_moves(s->simulator, pods[k]))
                                count_pod(s, pods[k], need, ret, &grace_sec);
        }
        most = ret->n_waves = ret->n_pods > 0;
        for (size_t i = 0; i < s->n_pdbs; i++) {
                size_t allowed = (size_t) s->pdbs[i].allowed, waves;

                if (need[i] == 0)
                        continue;
                waves = allowed == 0 ? need[i] : (need[i] + allowed - 1) / allowed;
                ret->n_waves = MAX(ret->n_waves, waves);
                if (allowed == 0 && !ret->is_endless) {
                        ret->is_endless = true;
                        most = 0; /* named before budgets that let some pods go */
                }
                if (waves > most && (allowed == 0) == ret->is_endless) {
                        most = waves;
                        ret->pdb = s->pdbs + i;
                }
        }
        if (ret->n_waves > 0)
                ret->usec = usec_add(times(drain_grace(grace_sec), ret->n_waves), times(SUCCESSOR_USEC, ret->n_waves - 1));
        return 0;
}
