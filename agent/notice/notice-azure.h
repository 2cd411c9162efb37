/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * notice-azure.c: scheduled events of an Azure VM (learn.microsoft.com: virtual-machines/linux/scheduled-events), from its
 * instance metadata, one request a poll. Of the events those that name this VM among their resources:
 *
 *      Preempt            spot, action stop
 *      Terminate          scale-in, action terminate: a scale set lets go of the VM
 *      Reboot, Redeploy   maintenance, action reboot or redeploy (the VM gets another host, and loses its temporary disk)
 *      Freeze             advice, action freeze: the VM stands still for seconds
 *
 * Each has its NotBefore as time; once it is Started, that is now. The id is Azure's own. An event that is gone from the
 * document is over, or was cancelled: that looks the same. An acknowledgement (StartRequests) starts
 * an event for all VMs that it names, whoever sends it: none is sent but by acknowledge(), and when that may be agent/acknowledge.h
 * says. An event that names others, too, has their names in Notice.resources.
 *
 * Asking for scheduled events switches them on for the VM; the first answer may take two minutes, and events may be
 * shown only five minutes later. 200 and a document: what stands, or none. Anything else, an empty body too: unknown, backs off
 * with jitter, never slower than 8 x the poll interval. The name of the VM is asked for first; while it is another one than the Node's
 * providerID says, every minute again.
 */

#include "scheduled-events.h"

typedef struct NoticeAzureOptions {
        const char *endpoint; /* "http://169.254.169.254" */
        usec_t poll_usec;
} NoticeAzureOptions;

int notice_azure_new(Env *env, const NoticeAzureOptions *o, notice_look_t on_look, void *userdata, NoticeSource **ret);

/* Pure (fuzzed): those of the document that name this VM (case does not matter), at most `max`; *ret_more: there were more.
 * 0; -EBADMSG with *reterr_why (static); -ENOMEM. */
int azure_events_parse(const char *body, size_t size, const char *vm, size_t max, ScheduledEvent **ret, size_t *ret_n, bool *ret_more,
                       const char **reterr_why);
