/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The questions by which AWS confirms a notice that only the interruption queue announced: which request asks each of them, and
 * which answer confirms that a machine ends. Pure; confirmation-client.h sends the requests.
 *
 *      question                      request                        confirms
 *      CONFIRMATION_INSTANCE_STATE   DescribeInstances              an instance that stops or shuts down, or has done so
 *      CONFIRMATION_SPOT_REQUEST     DescribeSpotInstanceRequests   a Spot instance that EC2 stops or terminates
 *      CONFIRMATION_EVENTS           DescribeInstanceStatus         a scheduled event that is neither completed nor canceled
 *      CONFIRMATION_GROUP            DescribeAutoScalingInstances   an instance that its group terminates, or stops in its warm pool
 *
 * A state, status or code that is not in the tables of confirmation.c confirms nothing: AWS may add new ones at any time.
 *
 * https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceState.html
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instances-request-status-lifecycle.html
 * https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceStatusEvent.html
 * https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_AutoScalingInstanceDetails.html
 */

#include <errno.h>
#include <stddef.h>

#include "macro.h"
#include "time-util.h"

typedef enum ConfirmationQuestion {
        CONFIRMATION_INSTANCE_STATE,
        CONFIRMATION_SPOT_REQUEST,
        CONFIRMATION_EVENTS,
        CONFIRMATION_GROUP,
        _CONFIRMATION_QUESTION_MAX,
        _CONFIRMATION_QUESTION_INVALID = -EINVAL,
} ConfirmationQuestion;

/* Maximum number of instances in one question: the limit of DescribeAutoScalingInstances. */
#define CONFIRMATION_BATCH_MAX 50u

/* AWS confirms that a machine ends. */
typedef struct Confirmed {
        const char *instance; /* one of the ids that were asked about; borrowed from the caller */
        unsigned rank;        /* as notice_rank(): 0: a reboot or maintenance, 1: a stop or hibernation, 2: an end for good */
        usec_t from_usec;     /* wall clock: AWS takes the machine then at the earliest; 0: it does so now, or has done so */
        const char *words;    /* static: "its Spot request is marked-for-termination" */
} Confirmed;

#define CONFIRMATION_RANKS 3u

/* At most one entry for each rank of each instance that was asked about. An entry that another one confirms, too, is left out. */
typedef struct Confirmations {
        Confirmed at[CONFIRMATION_BATCH_MAX * CONFIRMATION_RANKS];
        size_t n;
} Confirmations;

/* Returns the IAM action of the request: "ec2:DescribeSpotInstanceRequests". Static. */
const char *confirmation_permission(ConfirmationQuestion q);

/* Returns the form of the request for these instances (a NULL-terminated vector of 1 to CONFIRMATION_BATCH_MAX ids). next_token:
 * of the page before; NULL: the first page. Free it. NULL: no memory. */
char *confirmation_form(ConfirmationQuestion q, char *const *instances, const char *next_token);

/* Reads one page of the answer, and adds to *found what it confirms of these instances. Passes over all other instances.
 * *ret_next_token: of the next page, free it; NULL: this page is the last one. -EBADMSG: this is not the whole document that
 * answers the question, and *found stays as it was; -ENOMEM. */
int confirmation_parse(ConfirmationQuestion q, char *const *instances, const char *data, size_t size, Confirmations *found,
                       char **ret_next_token);
