/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Azure Resource Manager's compute provider in one subscription, for both faces of the fake: an
 * http_handler_t. Virtual machines (of their own, or of flexible scale sets), uniform scale sets with their
 * members, and the operations that end them. Time is the loop's. True to the traps: resource ids are read
 * without regard to case; only ResourceNotFound, NotFound and 204 say that a machine is gone,
 * ResourceGroupNotFound and SubscriptionNotFound do not; deletes are accepted (202) and polled to their end,
 * which may be a failure; deallocate keeps the machine; a uniform delete lowers the capacity. Strict: bearer
 * token, api-version, unknown parameters and paths.
 *
 * https://learn.microsoft.com/azure/azure-resource-manager/management/async-operations
 */

#include "fake-rest.h"

typedef struct FakeAzure FakeAzure;

typedef struct FakeAzureOptions {
        Loop *loop;
        const char *subscription; /* NULL: FAKE_AZURE_SUBSCRIPTION */
        const char *group;        /* the resource group there is; NULL: "vesper-rg" */
        const char *location;     /* NULL: "westeurope" */
        const char *token;        /* NULL: any bearer token is good */
        const char *base_url;     /* of the links in answers; NULL: "https://management.azure.com" */
        usec_t delete_usec;       /* from a delete to gone; 0: 40 s */
        unsigned retry_after_sec; /* said with every 202; 0: 10 */
} FakeAzureOptions;

#define FAKE_AZURE_SUBSCRIPTION "0b1f6471-1bf0-4dda-aec3-cb9272f09590"

FakeAzure *fake_azure_new(const FakeAzureOptions *options);
FakeAzure *fake_azure_free(FakeAzure *f);
DEFINE_FREEP(FakeAzure, fake_azure_free);

void fake_azure_handle(HttpExchange *x, void *fake_azure);
void fake_azure_set_base_url(FakeAzure *f, const char *url);

/* A running machine of its own, or of the flexible scale set of that name (NULL: none). */
void fake_azure_run(FakeAzure *f, const char *vm, const char *flexible_set);
/* A uniform scale set, and a running member: its instance id ("0", "1", ...). */
void fake_azure_add_set(FakeAzure *f, const char *set);
void fake_azure_run_member(FakeAzure *f, const char *set, const char *instance_id);
bool fake_azure_has_set(const FakeAzure *f, const char *set);
unsigned fake_azure_capacity(FakeAzure *f, const char *set);

/* set NULL: a virtual machine. All of these know the machine by (set, name or instance id). */
/* "running", "stopped", "deallocated": PowerState/... */
void fake_azure_set_power(FakeAzure *f, const char *set, const char *vm, const char *power);
/* NULL: it would not be found. "deleting" while it is. */
const char *fake_azure_state(FakeAzure *f, const char *set, const char *vm);
/* 409 ScopeLocked for every delete. */
void fake_azure_lock(FakeAzure *f, const char *set, const char *vm, bool lock);
/* On a dedicated host: 409 OperationNotAllowed for a delete with forceDeletion. */
void fake_azure_set_dedicated(FakeAzure *f, const char *set, const char *vm, bool dedicated);
size_t fake_azure_n_alive(FakeAzure *f); /* that nobody has asked to delete */

/* The next n deletes are accepted, but end in this error (status Failed), and nothing is done. */
void fake_azure_fail_operations(FakeAzure *f, unsigned n, const char *code, const char *message);
/* 202 says where to look in Location only, not in Azure-AsyncOperation. */
void fake_azure_set_location_only(FakeAzure *f, bool location_only);
/* The links are made so long, as they can be (4 KB). 0: as they come. */
void fake_azure_set_link_bytes(FakeAzure *f, size_t n);
/* Polls of operations that came before Retry-After had passed. */
size_t fake_azure_n_early_polls(const FakeAzure *f);
FakeRest *fake_azure_rest(FakeAzure *f);
void fake_azure_throttle(FakeAzure *f, unsigned n, unsigned retry_after_sec);
