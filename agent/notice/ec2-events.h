/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * ec2-events.c: what EC2's instance metadata says of this machine's end besides spot/instance-action. Pure (fuzzed): the
 * text of a path in, what it says out (docs.aws.amazon.com: monitoring-instances-status-check_sched,
 * rebalance-recommendations, retrieving-target-lifecycle-state-through-imds).
 */

#include "scheduled-events.h"

/* events/maintenance/scheduled: those that stand, at most `max`; *ret_more: there were more. What is completed or canceled
 * is not among them; a state that is not known stands. action: "reboot", "stop", "maintenance". 0; -EBADMSG with *reterr_why
 * (static); -ENOMEM. */
int ec2_events_parse(const char *body, size_t size, size_t max, ScheduledEvent **ret, size_t *ret_n, bool *ret_more,
                     const char **reterr_why);

/* "21 Jan 2019 09:00:43 GMT", the day with one digit or two; also RFC 3339. -EINVAL. */
int ec2_event_time_parse(const char *text, usec_t *ret_wall_usec);

/* events/recommendations/rebalance: when it was given. As above. */
int ec2_rebalance_parse(const char *body, size_t size, usec_t *ret_wall_usec, const char **reterr_why);

/* autoscaling/target-lifecycle-state: does the group let go of this instance? The states of a warm pool are meant as well.
 * -EBADMSG: not one word. */
int ec2_lifecycle_parse(const char *body, size_t size, bool *ret_goes, const char **reterr_why);

/* tags/instance/vesper.sh:capacity-block-end, which people set: when the Capacity Block ends that the instance runs in (RFC 3339).
 * -EBADMSG: not one time. */
int ec2_capacity_end_parse(const char *body, size_t size, usec_t *ret_wall_usec, const char **reterr_why);
