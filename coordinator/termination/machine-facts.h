/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What Node and claim know of one machine, as a provider is told. Pure. */

#include "cloud-registry.h"
#include "kube-kinds.h"

#define MACHINE_ADDRESSES_MAX 16u
#define MACHINE_ID_SHOWN_MAX 256u /* bytes of a providerID in a text for people: a kubelet writes what it likes */

typedef struct MachineFacts {
        CloudMachine machine; /* borrows from Node and claim, and from `addresses` */
        CloudAddress addresses[MACHINE_ADDRESSES_MAX];
        CloudProvider *provider; /* that it belongs to; never NULL */
        usec_t born_usec; /* wall clock: the machine is at least as old as that; 0: not known */
} MachineFacts;

/* The Node that this one's providerID names (MACHINE_ID_BY_NAME), if that is another one; else NULL. Borrowed. */
const char *machine_named_for_another(const KubeNode *n);

/* Either may be NULL, not both. The claim is what is trusted, the Node fills in what it does not have, but never the
 * machine of another Node. chosen: the provider that its pool names; NULL: none. Without claim and pool's choice the kubelet
 * alone has said which machine it is, and with a standalone claim whoever may make one: of several providers that is then
 * never one that asks for no proof. False: nothing
 * names a machine. */
bool machine_facts_fill(MachineFacts *f, const CloudRegistry *cloud, const KubeNode *n,
                        const KubeNodeClaim *claim, const char *chosen);

/* Why a machine is not ended, and what to do about it: unproved as CloudResult has it, or NULL. NULL on ENOMEM. */
char *machine_unproved_message(const char *unproved, const char *pool);
