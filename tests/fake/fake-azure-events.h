/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The scheduled events of one availability set or scale set: one document, that the metadata of every VM in
 * it shows (learn.microsoft.com/azure/virtual-machines/linux/scheduled-events). An approval by any of them
 * is for all.
 *
 *      Scheduled --NotBefore passes, or StartRequests--> Started (NotBefore empty) --lasts_usec--> gone
 *          \------------------------- cancelled: gone, and nothing says which -------------------/
 */

#include "fake-json.h"
#include "loop.h"

typedef struct FakeAzureEvents FakeAzureEvents;

typedef struct FakeAzureEvent {
        const char *id;        /* of the event; NULL: made */
        const char *type;      /* "Freeze", "Reboot", "Redeploy", "Preempt", "Terminate" */
        const char *resources; /* names of VMs, "vm-a,vm-b" */
        const char *source;    /* NULL: "Platform" */
        const char *description;
        int64_t duration_sec; /* as announced; -1: unknown */
        usec_t lead_usec;     /* until NotBefore, from now; 0: it is Started at once, as when a host fails */
        usec_t lasts_usec;    /* Started until gone; 0 or USEC_INFINITY: until it is removed */
} FakeAzureEvent;

FakeAzureEvents *fake_azure_events_new(Loop *loop);
FakeAzureEvents *fake_azure_events_free(FakeAzureEvents *e);
DEFINE_FREEP(FakeAzureEvents, fake_azure_events_free);

/* Its id, borrowed until it is gone. */
const char *fake_azure_events_add(FakeAzureEvents *e, const FakeAzureEvent *event);
/* Cancelled, or over: it looks the same. False: there is none of that id. */
bool fake_azure_events_remove(FakeAzureEvents *e, const char *id);
void fake_azure_events_clear(FakeAzureEvents *e);
/* StartRequests: true also if it has started. False: there is none of that id. */
bool fake_azure_events_approve(FakeAzureEvents *e, const char *id);
/* Told of each approval, before the event starts: the names of all VMs that it names. */
typedef void (*fake_azure_approved_t)(const char *id, const char *const *resources, size_t n, void *userdata);
void fake_azure_events_on_approve(FakeAzureEvents *e, fake_azure_approved_t approved, void *userdata);
/* How often somebody approved. */
size_t fake_azure_events_n_approved(const FakeAzureEvents *e);

/* {"DocumentIncarnation": n, "Events": [...]} as that api-version has it; free it. */
char *fake_azure_events_print(const FakeAzureEvents *e, const char *api_version);
/* The same before events are watched for: none. */
char *fake_azure_events_print_none(void);
