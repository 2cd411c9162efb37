/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The instance metadata service of one Azure VM, for both faces of the fake: an http_handler_t. Strict where
 * the real one is (learn.microsoft.com/azure/virtual-machines/instance-metadata-service):
 *
 *      no Metadata: true, X-Forwarded-For, a query name twice     400
 *      no api-version, or one that is not supported               400 with newest-versions
 *      a single value without format=text                         400
 *      what is not there; another method                          404; 405
 *      more than 5 requests in a second (identity: 20)            429
 *
 * /metadata/scheduledevents is off until it is first asked for: that answer takes first_call_usec, events
 * are shown from watch_usec after it, and a day without a request turns it off again. Time is the loop's,
 * real or virtual. Not imitated: who may reach the address at all, and that only five identity requests are
 * served at a time.
 */

#include "fake-azure-events.h"
#include "http-message.h"

typedef struct FakeAzureMetadata FakeAzureMetadata;

/* Every text may be NULL but the name. */
typedef struct FakeAzureMetadataOptions {
        const char *name;            /* of the VM; uniform: "<scale set>_<instance>" */
        const char *vm_id;           /* "02aab8a4-74ef-476e-8182-f6d2ba4166a6" */
        const char *subscription_id; /* "8d10da13-8125-4ba9-a717-bf7490507b3d" */
        const char *resource_group;  /* "Fake-RG": the case is as people typed it */
        const char *location;        /* "westeurope" */
        const char *zone;            /* "1" */
        const char *vm_size;         /* "Standard_D4s_v5" */
        const char *scale_set;
        const char *instance; /* number in a uniform scale set; NULL: a flexible one, or none */
        bool spot;            /* priority, evictionPolicy */
        bool no_system_identity;
        const char *const *user_identities; /* client ids, NULL at the end; NULL: none */
        usec_t first_call_usec;             /* up to two minutes in the field; 0: at once */
        usec_t watch_usec;                  /* up to five minutes in the field; 0: at once */
} FakeAzureMetadataOptions;

/* Copies what it is given; the events are borrowed. */
FakeAzureMetadata *fake_azure_metadata_new(Loop *loop, FakeAzureEvents *events,
                                           const FakeAzureMetadataOptions *options);
/* What hangs must be gone before: free the transports first. */
FakeAzureMetadata *fake_azure_metadata_free(FakeAzureMetadata *f);
DEFINE_FREEP(FakeAzureMetadata, fake_azure_metadata_free);

void fake_azure_metadata_handle(HttpExchange *x, void *fake_azure_metadata);

/* compute/name says this instead; NULL: it is empty. */
void fake_azure_metadata_set_name(FakeAzureMetadata *f, const char *name);

typedef enum FakeAzurePart {
        FAKE_AZURE_INSTANCE = 1 << 0,
        FAKE_AZURE_EVENTS = 1 << 1,
        FAKE_AZURE_IDENTITY = 1 << 2,
        FAKE_AZURE_ALL = FAKE_AZURE_INSTANCE | FAKE_AZURE_EVENTS | FAKE_AZURE_IDENTITY,
} FakeAzurePart;

/* Faults, of the next n requests (UINT_MAX: for ever; 0: none any more) to these parts. */
void fake_azure_metadata_hang(FakeAzureMetadata *f, unsigned parts, unsigned n); /* no answer, ever */
void fake_azure_metadata_fail(FakeAzureMetadata *f, unsigned parts, unsigned n, unsigned status);
/* 200 with that; "" is what the real one sometimes says of events. */
void fake_azure_metadata_garble(FakeAzureMetadata *f, unsigned parts, unsigned n, const char *body);
/* Any number of requests in a second is fine. */
void fake_azure_metadata_set_unlimited(FakeAzureMetadata *f, bool on);

size_t fake_azure_metadata_n_requests(const FakeAzureMetadata *f);
/* Scheduled events are on. */
bool fake_azure_metadata_is_watching(const FakeAzureMetadata *f);
/* That token was given for that resource and has not expired. */
bool fake_azure_metadata_token_is_good(const FakeAzureMetadata *f, const char *token, const char *resource);
