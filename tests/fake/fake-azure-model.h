/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between fake-azure-model.c (machines and operations as time goes by) and fake-azure.c (the API). */

#include "fake-azure.h"
#include "list.h"

typedef struct AzureSet {
        ListNode sets;
        char *name;
        unsigned capacity;
} AzureSet;

typedef struct AzureVm {
        ListNode vms;
        AzureSet *set; /* uniform; name is the instance id */
        char *name;
        char *flexible_set; /* NULL: none */
        char *power;        /* "running" */
        char *vm_id;        /* a GUID */
        bool locked, dedicated;
        usec_t created_wall_usec;
        usec_t gone_usec; /* USEC_INFINITY: nobody asked */
} AzureVm;

typedef struct AzureOperation {
        ListNode operations;
        char id[37];
        char *code, *message;                      /* it fails */
        usec_t started_usec, ends_usec, poll_usec; /* poll_usec: not to be asked before */
} AzureOperation;

struct FakeAzure {
        FakeRest rest;
        char *subscription, *group, *location, *base_url;
        usec_t delete_usec;
        unsigned retry_after_sec;
        List vms, sets, operations;
        uint64_t n_ids;
        unsigned n_failing;
        char *failing_code, *failing_message;
        bool location_only;
        size_t link_bytes, n_early_polls;
};

/* What is due happens: call before looking at anything. */
void azure_advance(FakeAzure *f);
AzureSet *azure_find_set(const FakeAzure *f, const char *name);
AzureVm *azure_find_vm(const FakeAzure *f, const AzureSet *set, const char *name);
bool azure_is_ending(const AzureVm *vm);
/* As it is asked for; its set wants one less. Nothing if it is ending. */
void azure_delete_vm(FakeAzure *f, AzureVm *vm);
/* Ends at that time; or, if it is one that fails (*ret_fails), now. */
AzureOperation *azure_add_operation(FakeAzure *f, usec_t ends_usec, bool *ret_fails);
AzureOperation *azure_find_operation(const FakeAzure *f, const char *id);
void azure_new_id(FakeAzure *f, char ret[37]);
