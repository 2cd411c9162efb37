/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Providers as the contract suite (test-provider-contract.c) plays them: a provider of coordinator/cloud on
 * virtual time, the fake cloud behind it, and the faults that the suite injects. A provider joins the suite
 * with one ProviderUnderTestOps in a file provider-contract-NAME.c and one line in the suite's table of
 * providers. The cases stay as they are.
 *
 * Machines have the numbers 1, 2, ... The Node of machine 3 is "node-3", and the cloud's own record leads to
 * that name. A fake without groups leaves the functions about groups NULL.
 */

#include "cloud.h"

typedef struct ProviderUnderTest ProviderUnderTest;

typedef enum ContractFault {
        CONTRACT_UNAVAILABLE, /* the cloud answers at once that it cannot serve now (HTTP 503) */
        CONTRACT_LOST,        /* the cloud does what it was asked, and the answer never arrives */
        CONTRACT_LATE,        /* launch: no answer; the machine comes CONTRACT_LATE_USEC after the request */
        CONTRACT_NO_CAPACITY, /* launch: the cloud has no such machine now */
        CONTRACT_POISONED,    /* list: two more objects, one without providerID, one without a known state */
        _CONTRACT_FAULT_MAX,
} ContractFault;

#define CONTRACT_LATE_USEC (5 * USEC_PER_MINUTE)
/* No provider waits longer for an answer. */
#define CONTRACT_TIMEOUT_USEC (61 * USEC_PER_SEC)

typedef struct ContractGroup {
        int64_t size, min;
} ContractGroup;

typedef struct ProviderUnderTestOps {
        const char *name;
        unsigned faults; /* 1 << ContractFault: those that the fake can play */
        /* The env has loop and random. The driver sets its transport or its children. */
        ProviderUnderTest *(*new)(Env *env);
        ProviderUnderTest *(*free)(ProviderUnderTest *p);
        /* Group and zone that launches name. The zone has no room: machines come up in another one. NULL where
         * the provider has no launch. */
        const char *group_name, *full_zone;
        /* Starts machine n. Where the fake has a group, the machine joins the group and makes it larger by 1.
         * The group's minimum is 0 until set_group(). Returns the providerID, borrowed. */
        const char *(*run)(ProviderUnderTest *p, unsigned n);
        /* Sets PRESENT, OFF, TERMINATING or GONE. */
        void (*set_state)(ProviderUnderTest *p, unsigned n, InstanceState state);
        /* Injects the fault into that number of next calls of the operation. */
        void (*fault)(ProviderUnderTest *p, CloudOperation o, ContractFault fault, unsigned calls);
        /* While set, calls that end this machine reach the cloud, have no effect, and are never answered. */
        void (*hold_end)(ProviderUnderTest *p, unsigned n, bool hold);
        unsigned (*calls)(const ProviderUnderTest *p, CloudOperation o); /* that have reached the cloud */
        size_t (*n_alive)(ProviderUnderTest *p);                         /* neither ending nor ended */
        void (*set_group)(ProviderUnderTest *p, ContractGroup group);    /* NULL: no groups */
        ContractGroup (*group)(const ProviderUnderTest *p);
} ProviderUnderTestOps;

/* The first member of each driver's struct. */
struct ProviderUnderTest {
        const ProviderUnderTestOps *ops;
        CloudProvider *provider;
};

extern const ProviderUnderTestOps contract_ec2, contract_exec;
