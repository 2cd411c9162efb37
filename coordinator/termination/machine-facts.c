/* SPDX-License-Identifier: Apache-2.0 */
#include "machine-facts.h"

#include "string-util.h"

static void add_addresses(MachineFacts *f, const KubeNode *n) {
        for (size_t i = 0; i < n->n_addresses && f->machine.n_addresses < MACHINE_ADDRESSES_MAX; i++)
                if (n->addresses[i].type && n->addresses[i].address)
                        f->addresses[f->machine.n_addresses++] = (CloudAddress){
                                .type = n->addresses[i].type, .address = n->addresses[i].address
                        };
        f->machine.addresses = f->addresses;
}

static usec_t older(usec_t a, usec_t b) {
        return a == 0 || b == 0 ? MAX(a, b) : MIN(a, b);
}

const char *machine_named_for_another(const KubeNode *n) {
        const char *name = machine_id_node_name(n->provider_id);

        return name && !streq(name, n->object.meta.name) ? name : NULL;
}

bool machine_facts_fill(MachineFacts *f, const CloudProvider *provider, const KubeNode *n,
                        const KubeNodeClaim *claim) {
        CloudMachine *m = &f->machine;

        assert(n || claim);
        *f = (MachineFacts){ 0 };
        if (n) {
                if (!machine_named_for_another(n))
                        m->provider_id = provider->ops->takes_names ? kube_node_machine_id(n) : n->provider_id;
                m->node = n->object.meta.name;
                m->system_uuid = n->system_uuid;
                m->machine_id = n->machine_id;
                f->born_usec = n->object.meta.creation_usec;
                add_addresses(f, n);
        }
        if (claim) {
                if (!isempty(claim->provider_id))
                        m->provider_id = claim->provider_id;
                if (!m->node)
                        m->node = claim->node_name ? claim->node_name : claim->made_for;
                if (claim->system_uuid)
                        m->system_uuid = claim->system_uuid;
                if (claim->machine_id)
                        m->machine_id = claim->machine_id;
                f->born_usec = older(f->born_usec, claim->object.meta.creation_usec);
        }
        return !isempty(m->provider_id);
}

char *machine_unproved_message(const char *unproved, const char *pool) {
        return strf("%s. "
                    "Until then its machine is not ended by vesper; where such a proof cannot be had, set spec.provider.identity: ProviderID on NodePool %s, and spec.providerID is believed",
                    unproved ? unproved : "The cloud has not proved whose instance this is",
                    isempty(pool) ? "(none)" : pool);
}
