/* SPDX-License-Identifier: Apache-2.0 */
#include "machine-look.h"

#include "machine-facts.h"
#include "string-util.h"

int machine_look_ask(const TerminationContext *c, const KubeNode *n, machine_changed_t changed, void *userdata, MachineEnd **ret) {
        const KubeNodeClaim *claim = cluster_view_claim_of_node(c->view, n);
        const KubeNodePool *pool = claim ? cluster_view_pool(c->view, strempty(claim->node_pool)) : NULL;
        MachineFacts facts;
        MachineEndOptions o = { .guard = c->guard,
                                .machine = &facts.machine,
                                .op_id = "describe",
                                .identity = claim ? &claim->identity : NULL,
                                .changed = changed,
                                .userdata = userdata };
        int r;

        *ret = NULL;
        if (!machine_facts_fill(&facts, c->cloud, n, claim, pool ? pool->provider_name : NULL))
                return 0;
        o.provider = facts.provider;
        o.born_usec = facts.born_usec;
        r = machine_end_new(c->env, &o, ret);
        if (r < 0)
                return r;
        machine_end_trust(*ret, pool && pool->trusts_provider_ids);
        machine_end_describe(*ret);
        return 1;
}

MachineLook machine_look_read(const MachineEnd *m) {
        assert(machine_end_has_answered(m));
        switch (machine_end_state(m)) {
        case MACHINE_PRESENT:
                return machine_end_is_off(m) ? MACHINE_LOOK_OFF : MACHINE_LOOK_RUNS;
        case MACHINE_GONE:
                return MACHINE_LOOK_GONE;
        case MACHINE_MISSING:
                return machine_end_is_proved(m) ? MACHINE_LOOK_GONE : MACHINE_LOOK_RUNS;
        case MACHINE_ENDING:
                break;
        case MACHINE_UNKNOWN:
                return machine_end_problem(m, NULL) ? MACHINE_LOOK_UNKNOWN : MACHINE_LOOK_RUNS;
        }
        return MACHINE_LOOK_RUNS;
}
