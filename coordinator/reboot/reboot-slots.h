/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * reboot/: which nodes may reboot now. Calls cluster/ and termination/ (its writes, and the agent's word
 * about an interruption); is driven by the coordinator's work queue.
 *
 * reboot-slots.c: pure. What a Node says of the reboot that it asks for, and what was answered (marks.h):
 *
 *      vesper.sh/shutdown-request {"id","bootID","kind":"reboot|poweroff","until"}   the agent
 *              of an announced reboot that is taken early also "event", and "by":"cloud" where the coordinator has the
 *              cloud reboot the machine (cloud-reboots.h)
 *      vesper.sh/shutdown-granted {"id","until"}                                     the coordinator
 *              "sent": true: the cloud is being told to, once for this request
 *
 * A grant of the request's id holds a slot until its time has passed, the request is withdrawn, the Node is
 * Ready with another boot id, or is gone. An id is granted once: what let its slot run out asks anew.
 * Everything that survives a change of leaders stands in these two.
 */

#include "kube-kinds.h"

typedef enum RebootRequestState {
        REBOOT_REQUEST_NONE,    /* nothing is asked for */
        REBOOT_REQUEST_INVALID, /* ... that can be read */
        REBOOT_REQUEST_OVER,    /* it has been rebooted since, or waits no longer */
        REBOOT_REQUEST_LEAVING, /* its Node is being deleted, or its machine ends: no slot is spent on it */
        REBOOT_REQUEST_EXPIRED, /* its slot ran out before it was back */
        REBOOT_REQUEST_WAITING,
        REBOOT_REQUEST_HOLDS_SLOT,
        _REBOOT_REQUEST_STATE_MAX,
} RebootRequestState;

typedef struct RebootCase {
        char *node;
        char *id;                  /* of the request; NULL: NONE or GARBLED */
        char *boot_id;             /* the boot that is to end; NULL where id is */
        char *event;               /* of the request: what is taken early; NULL: nothing */
        bool by_cloud;             /* ... and the coordinator is to have the cloud reboot the machine */
        bool is_sent;              /* of the grant of that id: the cloud is being told, or was */
        usec_t until_usec;         /* wall clock: so long the request waits */
        usec_t granted_until_usec; /* wall clock: of the grant of that id; 0: there is none */
        RebootRequestState request_state;
        bool is_answered; /* some grant stands on the Node */
        bool is_stale;    /* ... that holds nothing and tells nothing: to be taken off */
        bool is_too_long; /* ... because no coordinator grants for so long: somebody else wrote it */
} RebootCase;

/* Where this Node stands at that time (wall clock). slot_usec: the longest slot that is granted; a grant that lasts longer
 * from now, by more than REBOOT_GRANT_SLACK_USEC, holds nothing: a kubelet may write both annotations of its own Node.
 * -ENOMEM. */
int reboot_case_read(const KubeNode *n, usec_t wall_usec, usec_t slot_usec, RebootCase *ret);
/* The clock of the leader who granted it may be ahead. */
#define REBOOT_GRANT_SLACK_USEC (5 * USEC_PER_MINUTE)
void reboot_case_done(RebootCase *c);
/* When time alone changes it (wall clock); USEC_INFINITY: never. */
usec_t reboot_case_next(const RebootCase *c);

/* Who comes first of those whose requests were seen at the same time, as a new leader sees them: who runs out of patience
 * first. With the same RebootPatienceSec= on all nodes that is who asked first. Below 0: a comes before b. */
int reboot_case_order(const RebootCase *a, const RebootCase *b);

/* The patch that grants it, or takes a stale grant off (id NULL), on this state of the Node. NULL on ENOMEM.
 */
char *reboot_grant_patch(const KubeNode *n, const char *id, usec_t until_usec);
/* The same grant with "sent". */
char *reboot_sent_patch(const KubeNode *n, const char *id, usec_t until_usec);
