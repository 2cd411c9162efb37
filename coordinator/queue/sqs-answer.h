/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What SQS answers by its JSON protocol, read once into our own structs. Pure; fuzzed.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
 */

#include <stdbool.h>

#include "time-util.h"

#define SQS_BATCH_MAX 10u /* of messages in one answer, and of entries in one request */
#define SQS_ANSWER_MAX_BYTES (8u * 1024u * 1024u)
/* Maximum size of a message body (SQS, since 2025). Escaped in JSON, each byte can take six ("\u000a"). */
#define SQS_BODY_MAX_BYTES (1024u * 1024u)

typedef struct SqsMessage {
        char *id;          /* the same each time it comes */
        char *receipt;     /* of this time: by it the message is deleted or hidden */
        char *body;        /* anything; UTF-8 */
        usec_t sent_usec;  /* SentTimestamp, wall clock of SQS; 0: not told */
        unsigned receives; /* ApproximateReceiveCount; 0: not told */
} SqsMessage;

typedef struct SqsMessages {
        SqsMessage at[SQS_BATCH_MAX];
        size_t n;
} SqsMessages;

void sqs_message_done(SqsMessage *m);
void sqs_messages_done(SqsMessages *m); /* a zeroed one is fine */

/* Of ReceiveMessage. No messages at all is an answer. -EBADMSG: it cannot be read, as a whole (one without
 * id, receipt or body among them, or more than were asked for), and *ret is empty; -ENOMEM. */
int sqs_messages_parse(const char *data, size_t size, SqsMessages *ret);

/* Returns how many messages the next ReceiveMessage asks for, 1 to SQS_BATCH_MAX. asked: in the last one.
 * answer_bytes: size of its answer; SIZE_MAX: it was larger than SQS_ANSWER_MAX_BYTES, and its messages come
 * again later. The number is halved then: one message always fits. It grows by one with each answer that leaves
 * room for one message more, were all twice as large. */
unsigned sqs_batch_next(unsigned asked, size_t answer_bytes);

/* Of DeleteMessageBatch and ChangeMessageVisibilityBatch, whose entries have the ids "0" to "9": the bit of
 * each that the answer does not call successful, of the first n. -EBADMSG, -ENOMEM. */
int sqs_failures_parse(const char *data, size_t size, size_t n, unsigned *ret_failed);
