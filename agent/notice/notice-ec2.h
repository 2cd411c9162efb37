/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * notice-ec2.c: spot interruptions of EC2 from the instance metadata (docs.aws.amazon.com:
 * spot-instance-termination-notices). One request a poll in steady state.
 *
 *      200 {"action","time"}  a notice: id = instance id + action + boot id; a time that moves is the same
 *      404                    positively none, if this endpoint has answered meta-data/instance-id with an
 *                             i-... id since the token was made: a stranger's 404 says nothing
 *      anything else          unknown: backs off with jitter, never slower than 8 x the poll interval
 *
 * The deadline is the cloud's `time`, held against our clock (notice_ec2_deadline()).
 */

#include "notice-source.h"

typedef struct NoticeEc2Options {
        const char *endpoint;
        usec_t poll_usec;
} NoticeEc2Options;

/* The source's env is borrowed; it logs to it only what a person must mend (a clock that is wrong). */
int notice_ec2_new(Env *env, const NoticeEc2Options *o, notice_look_t on_look, void *userdata,
                   NoticeSource **ret);

typedef enum Ec2ClockVerdict {
        EC2_CLOCK_FINE,
        EC2_CLOCK_BEHIND, /* the time lies more than 120 s ahead, which EC2 never gives: the clock is slow */
        EC2_CLOCK_AHEAD,  /* the time had passed when it was first seen: the clock is fast, or it is stale */
} Ec2ClockVerdict;

/* Pure. In how long the machine may be gone, by a clock that says clock_usec when the notice is first seen:
 *      terminate, stop    until `time`; at most 120 s; 30 s if it lies in the past
 *      hibernate          10 s: it begins at once, and freezes what is left */
usec_t notice_ec2_left(const char *action, usec_t time_usec, usec_t clock_usec, Ec2ClockVerdict *ret_verdict);

/* Pure (fuzzed): the body of spot/instance-action. 0; -EBADMSG: not such a text, *reterr_why (static) says
 * what is wrong; -ENOMEM. */
int notice_ec2_parse(const char *body, size_t size, char **ret_action, usec_t *ret_time_usec,
                     const char **reterr_why);
/* i- and 8 to 32 hexadecimal digits, nothing else. */
bool ec2_instance_id_is_valid(const char *s, size_t size);
