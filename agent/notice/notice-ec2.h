/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * notice-ec2.c: what the instance metadata of EC2 announces, in five feeds:
 *
 *      spot/instance-action                each poll; a notice of kind spot
 *      autoscaling/target-lifecycle-state  every 4 s at most: the group lets go of the instance (scale-in, without a time)
 *      events/recommendations/rebalance    every 10 s at most; advice
 *      events/maintenance/scheduled        every minute at most: reboot, stop, retirement, maintenance, each with its time
 *      tags/instance/vesper.sh:capacity-block-end  every five minutes at most: when the Capacity Block of the instance ends
 *
 * Metadata says of an instance that it runs in a Capacity Block (instance-life-cycle), and not until when; EC2 begins to terminate
 * half an hour before the end, and warns 40 minutes before it, to EventBridge alone. So the end is read from a tag, where people
 * set one and let metadata show tags (InstanceMetadataTags): an end that they move is another notice.
 * docs.aws.amazon.com: capacity-blocks-how, capacity-blocks-monitor, work-with-tags-in-IMDS.
 *
 * One of the last four is asked behind the first, when it is due: never more than two requests a poll, and the first
 * never waits for them: what has not answered by the next poll is dropped, and asked again in its turn.
 *
 *      200            a notice, or what says that there is none; its time may move: the same id. By a token that is newer than the
 *                     last proof the instance id is asked for first; should that not be answered, the last proof counts. An
 *                     answer that is no instance id is a stranger's: it drops the notice until the next look, which asks for the id first
 *      404            positively none, if this endpoint has answered meta-data/instance-id with an i-... id since the
 *                     token was made: a stranger's 404 says nothing
 *      anything else  unknown. Of the first feed: backs off with jitter, never slower than 8 x the poll interval
 *
 * That instance id is also what tells whether this is the metadata of the machine that the Node's providerID names. Should it be the
 * one that the firmware of this machine names, it is the providerID that is of another.
 *
 * The id of a spot notice is instance id + action + boot id, that of a scheduled event EC2's own. Deadlines are the
 * cloud's times, held against the Date of their answers (notice_source_judge(); for spot notice_ec2_left()).
 * docs.aws.amazon.com: spot-instance-termination-notices; for the rest see ec2-events.h.
 */

#include "notice-source.h"

typedef struct NoticeEc2Options {
        const char *endpoint;
        const char *other_endpoint; /* where there is no route to that; NULL: none */
        bool allow_v1;              /* imds_client_allow_v1() */
        const char *firmware_instance; /* which instance this is by its firmware; NULL or "": that does not say */
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
/* Pure. "aws:///eu-west-1a/i-0123", or the bare id, against what metadata says; other forms do not tell. */
NoticeIdentity notice_ec2_identity(const char *instance_id, const char *provider_id);
#define EC2_INSTANCE_ID_MAX 34u
/* i- and 8 to 32 hexadecimal digits, nothing else. */
bool ec2_instance_id_is_valid(const char *s, size_t size);
