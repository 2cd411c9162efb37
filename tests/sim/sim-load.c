/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-load.h"

#include <inttypes.h>

#include "fake-controllers.h"
#include "sim-process.h"
#include "sim-workload.h"

/* From the end of an instance to the deletion of its Node by the cloud's own controller; in every third world
 * with coordinators there is none. */
#define NOTICED_GONE_USEC (45 * USEC_PER_SEC)

/* -- pods -------------------------------------------------------------------------------------- */

static char *pod_name(SimWorld *w, uint64_t n) {
        size_t count = 0;
        const cJSON *pod;

        FAKE_FOREACH (pod, w->cluster, FAKE_PODS, "default")
                count++;
        if (count == 0)
                return NULL;
        n %= count;
        FAKE_FOREACH (pod, w->cluster, FAKE_PODS, "default")
                if (n-- == 0)
                        return MUST(strdup(fj_string(pod, "metadata", "name", NULL)));
        return NULL;
}

bool sim_load_delete_pod(SimWorld *w, uint64_t n, bool forced) {
        _cleanup_free_ char *name = pod_name(w, n);

        if (!name)
                return false;
        sim_trace_add(w->trace, "world", "a person deletes pod %s", name);
        fake_delete(w->cluster, FAKE_PODS, "default", name, forced ? 0 : -1);
        return true;
}

void sim_load_delete_pods_of(SimWorld *w, size_t machine) {
        size_t n = fake_count(w->cluster, FAKE_PODS), k = 0;
        _cleanup_free_ char **names = MUST(new0(char *, n + 1));
        const cJSON *pod;

        FAKE_FOREACH (pod, w->cluster, FAKE_PODS, "default")
                if (streq_ptr(fj_string(pod, "spec", "nodeName", NULL), w->machines[machine].node) &&
                    !fj_get(pod, "metadata", "deletionTimestamp", NULL))
                        names[k++] = MUST(strdup(fj_string(pod, "metadata", "name", NULL)));
        while (k > 0) {
                sim_trace_add(w->trace, "world", "a person deletes pod %s", names[--k]);
                fake_delete(w->cluster, FAKE_PODS, "default", names[k], -1);
                free(names[k]);
        }
}

bool sim_load_finish_pod(SimWorld *w, uint64_t n) {
        _cleanup_free_ char *name = pod_name(w, n);

        if (!name || !fake_condition_is(fake_get(w->cluster, FAKE_PODS, "default", name), "Ready", "True"))
                return false;
        sim_trace_add(w->trace, "world", "pod %s is done", name);
        fake_merge(w->cluster, FAKE_PODS, "default", name,
                   "{'status':{'phase':'Succeeded','conditions':[{'type':'Ready','status':'False'}]}}");
        return true;
}

bool sim_load_protect_pod(SimWorld *w, uint64_t n, unsigned opt_out) {
        _cleanup_free_ char *name = pod_name(w, n);

        if (!name)
                return false;
        sim_trace_add(w->trace, "world", "pod %s is protected", name);
        fake_merge(w->cluster, FAKE_PODS, "default", name, "{'metadata':{%s}}", sim_opt_out(opt_out));
        return true;
}

void sim_load_hook_pods(SimWorld *w, uint64_t workload, const char *answer) {
        _cleanup_free_ char *prefix = MUST(strf("w%" PRIu64 "-", workload));
        size_t n = fake_count(w->cluster, FAKE_PODS);
        _cleanup_free_ char **names = MUST(new0(char *, n + 1));
        const cJSON *pod;
        size_t k = 0;

        FAKE_FOREACH (pod, w->cluster, FAKE_PODS, "default")
                if (startswith(fj_string(pod, "metadata", "name", NULL), prefix))
                        names[k++] = MUST(strdup(fj_string(pod, "metadata", "name", NULL)));
        sim_trace_add(w->trace, "world", "a webhook answers for %zu pods of w%" PRIu64, k, workload);
        while (k > 0) {
                fake_merge(w->cluster, FAKE_PODS, "default", names[--k],
                           "{'metadata':{'annotations':{'" FAKE_EVICTION_WEBHOOK "':'%s'}}}", answer);
                free(names[k]);
        }
}

void sim_load_unprotect_pods(SimWorld *w) {
        size_t n = fake_count(w->cluster, FAKE_PODS);
        _cleanup_free_ char **names = MUST(new0(char *, n + 1));
        const cJSON *pod;
        size_t k = 0;

        FAKE_FOREACH (pod, w->cluster, FAKE_PODS, "default")
                names[k++] = MUST(strdup(fj_string(pod, "metadata", "name", NULL)));
        while (k > 0) {
                fake_merge(w->cluster, FAKE_PODS, "default", names[--k],
                           "{'metadata':{'annotations':{'vesper.sh/do-not-evict':null,"
                           "'karpenter.sh/do-not-evict':null,'karpenter.sh/do-not-disrupt':null,"
                           "'cluster-autoscaler.kubernetes.io/safe-to-evict':null,"
                           "'" FAKE_EVICTION_WEBHOOK "':null},"
                           "'labels':{'vesper.sh/do-not-evict':null}}}");
                free(names[k]);
        }
}

/* -- machines ---------------------------------------------------------------------------------- */

void sim_load_crash(SimWorld *w, size_t machine, usec_t away_usec) {
        SimMachine *m = &w->machines[machine];

        sim_trace_add(w->trace, "world", "%s crashes", m->node);
        m->crashed_for_good = away_usec == USEC_INFINITY;
        if (m->noticed)
                sim_world_withdraw(w, machine);
        if (m->agent)
                sim_process_kill(m->agent, USEC_INFINITY);
        fake_cluster_set_kubelet(w->cluster, m->node, false);
        timer_disarm(m->kubelet);
        timer_arm_in(m->boot, away_usec);
}

void sim_load_switch_off(SimWorld *w, size_t machine, usec_t away_usec) {
        SimMachine *m = &w->machines[machine];

        sim_load_crash(w, machine, away_usec);
        if (!streq_ptr(fake_ec2_state(w->ec2, m->instance), "running"))
                return;
        sim_trace_add(w->trace, "cloud", "%s is stopped", m->instance);
        fake_ec2_set_state(w->ec2, m->instance, "stopped");
        m->stopped_usec = sim_world_now(w);
}

void sim_load_stop_kubelet(SimWorld *w, size_t machine, usec_t away_usec) {
        SimMachine *m = &w->machines[machine];

        sim_trace_add(w->trace, "world", "the kubelet of %s stops", m->node);
        fake_cluster_set_kubelet(w->cluster, m->node, false);
        timer_arm_in(m->kubelet, away_usec);
}

void sim_load_take(SimWorld *w, size_t machine, usec_t in_usec) {
        SimMachine *m = &w->machines[machine];

        timer_arm_in(m->taken, in_usec);
        if (w->options.n_coordinators == 0 || sim_world_derive(w, "cloud controller", 0) % 3 > 0)
                timer_arm_in(m->deleted, in_usec + NOTICED_GONE_USEC);
}

void sim_load_delete_claim(SimWorld *w, size_t machine) {
        const char *name = fj_string(sim_world_claim(w, machine), "metadata", "name", NULL);

        if (!name)
                return;
        sim_trace_add(w->trace, "world", "the claim of %s is deleted", w->machines[machine].node);
        fake_delete(w->cluster, FAKE_NODECLAIMS, NULL, name, -1);
}

static char *rival_of(const SimWorld *w, size_t machine) {
        return MUST(strf(SIM_RIVAL "%s", w->machines[machine].node));
}

void sim_load_add_rival(SimWorld *w, size_t machine) {
        _cleanup_free_ char *name = rival_of(w, machine);
        const cJSON *claim = sim_world_claim(w, machine);

        if (!claim || !fj_array_has(fj_get(claim, "metadata", "finalizers", NULL), "vesper.sh/termination") ||
            fake_get(w->cluster, FAKE_NODECLAIMS, NULL, name))
                return;
        sim_trace_add(w->trace, "world", "a person makes a second claim of %s", w->machines[machine].node);
        sim_world_make_claim(w, &w->machines[machine], name);
}

/* Nothing is ended by it, unless it has become the only one, and was adopted. */
void sim_load_delete_rival(SimWorld *w, size_t machine) {
        _cleanup_free_ char *name = rival_of(w, machine);
        const cJSON *claim = fake_get(w->cluster, FAKE_NODECLAIMS, NULL, name);

        if (!claim || claim == sim_world_claim(w, machine))
                return;
        sim_trace_add(w->trace, "world", "a person deletes the second claim of %s", w->machines[machine].node);
        (void) fake_delete(w->cluster, FAKE_NODECLAIMS, NULL, name, -1);
}

/* Of people, and not acted on: their conditions say why, and who made them takes them away. */
void sim_load_remove_idle_claims(SimWorld *w) {
        for (size_t i = 0; i < w->n_machines; i++) {
                _cleanup_free_ char *rival = rival_of(w, i), *own = MUST(strf("own-%s", w->machines[i].node));

                sim_load_delete_rival(w, i);
                for (unsigned k = 0; k < 2; k++) {
                        const cJSON *claim = fake_get(w->cluster, FAKE_NODECLAIMS, NULL, k == 0 ? rival : own);

                        if (claim && (claim != sim_world_claim(w, i) || !fj_get(claim, "metadata", "finalizers", NULL)))
                                (void) fake_delete(w->cluster, FAKE_NODECLAIMS, NULL, k == 0 ? rival : own, -1);
                }
        }
}

void sim_load_tear_node(SimWorld *w, size_t machine) {
        SimMachine *m = &w->machines[machine];

        sim_load_crash(w, machine, USEC_INFINITY);
        sim_trace_add(w->trace, "world", "a person removes Node %s with its finalizers", m->node);
        fake_merge(w->cluster, FAKE_NODES, NULL, m->node, "{'metadata':{'finalizers':null}}");
        if (sim_world_node(w, machine))
                fake_delete(w->cluster, FAKE_NODES, NULL, m->node, -1);
}

static char *twin_of(SimWorld *w, size_t machine) {
        return MUST(strf("twin-%s", w->machines[machine].node));
}

void sim_load_add_twin(SimWorld *w, size_t machine) {
        _cleanup_free_ char *name = twin_of(w, machine),
                            *id = sim_world_provider_id(w, &w->machines[machine]);

        if (fake_get(w->cluster, FAKE_NODES, NULL, name))
                return;
        sim_trace_add(w->trace, "world", "Node %s says that it is %s", name, w->machines[machine].instance);
        fake_add_node(w->cluster, name, SIM_ZONE, NULL, SIM_POOL);
        fake_merge(w->cluster, FAKE_NODES, NULL, name,
                   "{'metadata':{'finalizers':['vesper.sh/"
                   "termination']},'spec':{'providerID':'%s','unschedulable':true}}",
                   id);
        w->machines[machine].twin_usec = sim_world_now(w);
}

void sim_load_delete_twin(SimWorld *w, size_t machine) {
        _cleanup_free_ char *name = twin_of(w, machine);

        sim_trace_add(w->trace, "world", "node %s is deleted", name);
        (void) fake_delete(w->cluster, FAKE_NODES, NULL, name, -1);
}

void sim_load_remove_twins(SimWorld *w) {
        for (size_t i = 0; i < w->n_machines; i++) {
                _cleanup_free_ char *name = twin_of(w, i);

                if (fake_remove(w->cluster, FAKE_NODES, NULL, name))
                        sim_trace_add(w->trace, "world", "a person removes Node %s with its finalizers", name);
        }
}

void sim_load_pause(SimWorld *w, bool all, bool paused) {
        sim_trace_add(w->trace, "world", "removals of %s are %s", all ? "all nodes" : "the pool's nodes", paused ? "paused" : "resumed");
        fake_merge(w->cluster, all ? FAKE_NAMESPACES : FAKE_NODEPOOLS, NULL, all ? "vesper-system" : SIM_POOL,
                   "{'metadata':{'annotations':{'vesper.sh/paused':%s}}}", paused ? "'true'" : "null");
        if (paused && w->paused_usec[all] == 0)
                w->paused_usec[all] = sim_world_now(w);
        else if (!paused)
                w->paused_usec[all] = 0;
}

void sim_load_unmanage(SimWorld *w, size_t machine, bool unmanaged) {
        SimMachine *m = &w->machines[machine];

        sim_trace_add(w->trace, "world", "node %s is %s", m->node, unmanaged ? "none of vesper's" : "vesper's again");
        fake_merge(w->cluster, FAKE_NODES, NULL, m->node, "{'metadata':{'annotations':{'vesper.sh/unmanaged':%s}}}",
                   unmanaged ? "'true'" : "null");
        m->unmanaged_usec = sim_world_now(w);
}

void sim_load_force(SimWorld *w, size_t machine, unsigned in_sec) {
        const cJSON *claim = sim_world_claim(w, machine);
        SimMachine *m = &w->machines[machine];
        usec_t at = (sim_world_wall(w) / USEC_PER_SEC + in_sec) * USEC_PER_SEC;
        char text[RFC3339_MAX];

        rfc3339_format(at, text);
        sim_trace_add(w->trace, "world", "the removal of %s is to end by %s", m->node, text);
        fake_merge(w->cluster, FAKE_NODECLAIMS, NULL, fj_string(claim, "metadata", "name", NULL),
                   "{'metadata':{'annotations':{'vesper.sh/force-deadline':'%s'}}}", text);
        m->forced_usec = MIN(m->forced_usec, at);
}

void sim_load_take_annotations_off(SimWorld *w) {
        for (int all = 0; all < 2; all++)
                if (w->paused_usec[all] > 0)
                        sim_load_pause(w, all, false);
        for (size_t i = 0; i < w->n_machines; i++)
                if (sim_world_is_unmanaged(w, i))
                        sim_load_unmanage(w, i, false);
}

void sim_load_all_come_back(SimWorld *w) {
        for (size_t i = 0; i < w->n_machines; i++) {
                SimMachine *m = &w->machines[i];
                const cJSON *node = sim_world_node(w, i);

                if (timer_is_armed(m->kubelet))
                        timer_arm_in(m->kubelet, 0);
                if (timer_is_armed(m->boot))
                        timer_arm_in(m->boot, 0);
                fake_imds_fail(m->imds, FAKE_IMDS_ALL, 0, 0);
                fake_imds_set_instance_id(m->imds, m->instance);
                if (m->crashed_for_good && !node) /* its Event tells people to do so */
                        sim_load_delete_claim(w, i);
                if (!m->crashed_for_good || m->ended || !node)
                        continue;
                /* Somebody gives it up; where nobody would end it, it is switched on again. */
                if (w->options.n_coordinators == 0)
                        timer_arm_in(m->boot, 0);
                else if (!fj_get(node, "metadata", "deletionTimestamp", NULL)) {
                        sim_world_delete_node(w, i);
                        /* Its finalizer was lost: the Event of its claim says that a machine is there without Node. */
                        if (!sim_world_node(w, i))
                                sim_load_delete_claim(w, i);
                }
        }
}
