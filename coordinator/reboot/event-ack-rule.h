/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * event-ack-rule.c: pure. May a cloud's event that names several machines be acknowledged? An acknowledgement begins it for all
 * of them. So each machine that any agent has seen it name must be a Node of this cluster, each Node that is that machine must be
 * drained for this very event, in the boot that it is in, and cordoned.
 *
 * A machine is known by the cloud's name for it, of Azure as azure-vm.h says; the case of letters does not matter.
 */

#include "azure-vm.h"
#include "kube-kinds.h"

/* One Node, as far as it matters here. Borrows. */
typedef struct EventAckNode {
        const char *node;
        char machine[AZURE_VM_NAME_MAX + 1]; /* ""; its providerID is none that has such names */
        const char *event;       /* that its agent acts upon; NULL: none */
        char *const *resources;  /* that it names, as that agent says; NULL: not said */
        bool is_drained;         /* for that event */
        const char *ack_ok;      /* of ANNOTATION_ACK_OK; NULL */
        usec_t announced_usec;   /* wall clock: when the event begins by itself; 0: not said */
} EventAckNode;

/* *ret borrows from the Node. */
void event_ack_node_read(const KubeNode *n, EventAckNode *ret);

/* 1: it may; 0: not, *ret_why (free it) says why; -ENOMEM. */
int event_ack_may(const EventAckNode *nodes, size_t n, const char *event, char **ret_why);
