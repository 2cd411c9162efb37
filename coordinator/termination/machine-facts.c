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

/* The Node's name counts only with a provider that finds machines by it. */
static const char *provider_id_of_node(const CloudRegistry *cloud, const KubeNode *n) {
        const char *id = kube_node_machine_id(n);

        return n->provider_id || cloud_registry_for(cloud, id)->ops->takes_names ? id : NULL;
}

bool machine_facts_fill(MachineFacts *f, const CloudRegistry *cloud, const KubeNode *n,
                        const KubeNodeClaim *claim, const char *chosen) {
        CloudMachine *m = &f->machine;

        assert(n || claim);
        *f = (MachineFacts){ 0 };
        if (n) {
                if (!machine_named_for_another(n))
                        m->provider_id = provider_id_of_node(cloud, n);
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
        f->provider = cloud_registry_chosen(cloud, m->provider_id, chosen);
        if ((!claim || kube_node_claim_is_standalone(claim)) && !chosen && cloud->n_providers > 1 && !f->provider->ops->proves_identity)
                f->provider = cloud->providers[0]; /* which says that it is none of its own */
        return !isempty(m->provider_id);
}

char *machine_unproved_message(const char *unproved, const char *pool) {
        if (isempty(pool))
                return strf("%s. "
                            "Until then its machine is not ended by vesper: give it that proof, or end it by other means. Without a "
                            "NodePool there is nothing that could say that spec.providerID is believed",
                            unproved ? unproved : "The cloud has not proved whose instance this is");
        return strf("%s. "
                    "Until then its machine is not ended by vesper; where such a proof cannot be had, set spec.provider.identity: ProviderID on NodePool %s, and spec.providerID is believed",
                    unproved ? unproved : "The cloud has not proved whose instance this is",
                    pool);
}
