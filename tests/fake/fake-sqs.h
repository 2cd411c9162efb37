/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * SQS standard queues over the JSON protocol, for both faces of the fake: an http_handler_t. Time is the
 * loop's: long polls end, messages become visible again and run out by it. True to the traps: `Messages` is
 * absent when there are none, a delete with an old handle succeeds and the message may come again, and on
 * request messages come twice or in another order. Strict where the real one is (signature, scope, 5 minutes
 * of skew, ranges of numbers, addresses of queues), and stricter: unknown members are refused.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/
 */

#include "fake-aws-front.h"
#include "random.h"

typedef struct FakeSqs FakeSqs;

typedef struct FakeSqsOptions {
        FakeAwsFrontOptions aws;
        size_t max_in_flight; /* 0: 120,000 */
} FakeSqsOptions;

FakeSqs *fake_sqs_new(const FakeSqsOptions *options);
/* Who polls must be gone before: free transports and servers first. */
FakeSqs *fake_sqs_free(FakeSqs *f);
DEFINE_FREEP(FakeSqs, fake_sqs_free);

void fake_sqs_handle(HttpExchange *x, void *fake_sqs);

typedef struct FakeSqsQueue {
        const char *name;
        usec_t visibility_usec; /* 0: 30 s */
        usec_t retention_usec;  /* 0: four days */
        usec_t wait_usec;       /* of a poll that does not say; 0: answered at once */
} FakeSqsQueue;

void fake_sqs_add_queue(FakeSqs *f, const FakeSqsQueue *queue);
bool fake_sqs_has_queue(const FakeSqs *f, const char *queue);
/* As from EventBridge or a colleague; who waits for one gets it. Its id, borrowed from it. */
const char *fake_sqs_send(FakeSqs *f, const char *queue, const char *body);
/* The next n messages given out stay visible: they come again at once, with other handles. */
void fake_sqs_duplicate(FakeSqs *f, const char *queue, unsigned n);
/* Messages are given out in an order drawn from it (borrowed); NULL: as they came. */
void fake_sqs_shuffle(FakeSqs *f, const char *queue, Random *random);

/* Told of each message that a request deletes, before that is answered. */
void fake_sqs_on_delete(FakeSqs *f, const char *queue, void (*deleted)(const char *id, void *userdata), void *userdata);

/* Messages there are, in flight or not; and those of them in flight. */
size_t fake_sqs_n_messages(FakeSqs *f, const char *queue);
size_t fake_sqs_n_in_flight(FakeSqs *f, const char *queue);
/* Polls that are waiting now. */
size_t fake_sqs_n_waiting(const FakeSqs *f, const char *queue);

FakeTroubles *fake_sqs_troubles(FakeSqs *f);
FakeAwsFront *fake_sqs_front(FakeSqs *f);
/* 400 RequestThrottled. */
void fake_sqs_throttle(FakeSqs *f, unsigned n);
