/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-workload.h"

#include "fake-controllers.h"
#include "sim-world.h"

const char *sim_opt_out(unsigned i) {
        static const char *const all[] = {
                NULL,
                "'annotations':{'vesper.sh/do-not-evict':'true'}",
                "'labels':{'vesper.sh/do-not-evict':'true'}",
                "'annotations':{'karpenter.sh/do-not-evict':'true'}",
                "'annotations':{'karpenter.sh/do-not-disrupt':'true'}",
                "'annotations':{'cluster-autoscaler.kubernetes.io/safe-to-evict':'false'}",
        };

        return i < ELEMENTSOF(all) ? all[i] : NULL;
}

static const SimWorkload *workload(const SimWorld *w, unsigned i) {
        return &w->options.workloads[i];
}

static char *name_of(unsigned i) {
        return MUST(strf("w%u", i));
}

/* -- making ------------------------------------------------------------------------------------ */

static cJSON *template_of(const SimWorkload *l, const char *name) {
        cJSON *t = fj_parse("{'metadata':{'labels':{'app':'%s'},'annotations':{"
                            "'fake.vesper.sh/stop-seconds':'%u'}},"
                            "'spec':{'containers':[{'name':'main','image':'app'}],"
                            "'terminationGracePeriodSeconds':%u}}",
                            name, l->stop_sec, l->grace_sec);
        const char *opt_out = sim_opt_out(l->opt_out);

        if (opt_out) {
                _cleanup_cjson_ cJSON *more = fj_parse("{%s}", opt_out);
                cJSON *to = fj_object(fj_object(t, "metadata"), more->child->string);

                fj_set_copy(to, more->child->child->string, more->child->child);
        }
        if (l->critical)
                fj_set_string(fj_object(t, "spec"), "priorityClassName", "system-cluster-critical");
        return t;
}

static cJSON *controller_of(const SimWorkload *l, const char *name) {
        cJSON *o = fj_parse("{'metadata':{'name':'%s','namespace':'default'},'spec':{'replicas':%u,"
                            "'selector':{'matchLabels':{'app':'%s'}}},'status':{'replicas':0}}",
                            name, l->n_pods, name);

        fj_set(fj_object(o, "spec"), "template", template_of(l, name));
        if (l->volumes)
                fj_set(fj_object(o, "spec"), "volumeClaimTemplates",
                       fj_parse("[{'metadata':{'name':'data'}}]"));
        return o;
}

static void make_bare(SimWorld *w, const SimWorkload *l, const char *name) {
        for (unsigned k = 0; k < l->n_pods; k++) {
                _cleanup_free_ char *pod = MUST(strf("%s-bare-%u", name, k));
                cJSON *o = template_of(l, name);

                fj_set_string(fj_object(o, "metadata"), "name", pod);
                fj_set_string(fj_object(o, "metadata"), "namespace", "default");
                fake_create(w->cluster, FAKE_PODS, o);
        }
}

void sim_workload_make(SimWorld *w, unsigned i) {
        const SimWorkload *l = workload(w, i);
        _cleanup_free_ char *name = name_of(i);

        if (l->n_pods == 0)
                return;
        for (unsigned k = 0; k < SIM_BUDGETS_MAX; k++)
                sim_workload_set_budget(w, i, k, &l->budgets[k]);
        if (l->kind == SIM_BARE)
                make_bare(w, l, name);
        else
                fake_put(w->cluster, l->kind == SIM_REPLICASET ? FAKE_REPLICASETS : FAKE_STATEFULSETS,
                         controller_of(l, name));
}

/* -- later ------------------------------------------------------------------------------------- */

static FakeResourceId resource_of(const SimWorkload *l) {
        return l->kind == SIM_STATEFULSET ? FAKE_STATEFULSETS : FAKE_REPLICASETS;
}

void sim_workload_scale(SimWorld *w, unsigned i, unsigned n) {
        const SimWorkload *l = workload(w, i);
        _cleanup_free_ char *name = name_of(i);

        if (l->n_pods == 0 || l->kind == SIM_BARE)
                return;
        sim_trace_add(w->trace, "world", "%s is scaled to %u", name, n);
        fake_merge(w->cluster, resource_of(l), "default", name, "{'spec':{'replicas':%u}}", n);
}

void sim_workload_set_budget(SimWorld *w, unsigned i, unsigned budget, const SimBudget *b) {
        static const char *const fields[] = { NULL, "minAvailable", "maxUnavailable", "minAvailable",
                                              "maxUnavailable" };
        _cleanup_free_ char *app = name_of(i), *name = MUST(strf("%s-%u", app, budget));
        bool percent = b->kind == SIM_BUDGET_MIN_PERCENT || b->kind == SIM_BUDGET_MAX_PERCENT;
        cJSON *pdb;

        if (workload(w, i)->n_pods == 0)
                return;
        if (b->kind == SIM_BUDGET_NONE) {
                fake_remove(w->cluster, FAKE_PDBS, "default", name);
                return;
        }
        sim_trace_add(w->trace, "world", "the budget %s: %s %u%s", name, fields[b->kind], b->value,
                      percent ? "%" : "");
        pdb = fj_parse("{'metadata':{'name':'%s','namespace':'default'},'spec':{'%s':%s%u%s,"
                       "'selector':{'matchLabels':{'app':'%s'}}}}",
                       name, fields[b->kind], percent ? "'" : "", b->value, percent ? "%'" : "", app);
        fj_set_copy(pdb, "status", fj_get(fake_get(w->cluster, FAKE_PDBS, "default", name), "status", NULL));
        fake_put(w->cluster, FAKE_PDBS, pdb);
}

static void unprotect(SimWorld *w, FakeResourceId id, const char *name, const char *opt_out, bool template) {
        _cleanup_free_ char *null = MUST(strdup(opt_out));

        memcpy(strrchr(null, ':') + 1, "null", 5);
        fake_merge(w->cluster, id, "default", name,
                   template ? "{'spec':{'template':{'metadata':{%s}}}}}" : "{'metadata':{%s}}}", null);
}

void sim_workload_let_go(SimWorld *w, unsigned i) {
        const SimWorkload *l = workload(w, i);
        _cleanup_free_ char *name = name_of(i);

        if (l->n_pods == 0)
                return;
        sim_workload_set_budget(w, i, 0,
                                &(SimBudget){ l->budgets[0].kind == SIM_BUDGET_NONE || l->kind == SIM_BARE
                                                      ? SIM_BUDGET_NONE
                                                      : SIM_BUDGET_MAX,
                                              1 });
        sim_workload_set_budget(w, i, 1, &(SimBudget){ SIM_BUDGET_NONE, 0 });
        if (l->opt_out > 0 && l->kind != SIM_BARE)
                unprotect(w, resource_of(l), name, sim_opt_out(l->opt_out), true);
}

bool sim_workload_is_back(SimWorld *w, unsigned i) {
        const SimWorkload *l = workload(w, i);
        _cleanup_free_ char *name = name_of(i);
        int64_t ready = 0;
        const cJSON *pod;

        if (l->n_pods == 0 || l->kind == SIM_BARE)
                return true;
        FAKE_FOREACH (pod, w->cluster, FAKE_PODS, "default")
                ready += streq_ptr(fj_string(pod, "metadata", "labels", "app", NULL), name) &&
                         fake_condition_is(pod, "Ready", "True") &&
                         !fj_get(pod, "metadata", "deletionTimestamp", NULL);
        return ready == fj_int(fake_get(w->cluster, resource_of(l), "default", name), 0, "spec", "replicas",
                               NULL);
}
