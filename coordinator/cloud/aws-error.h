/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Error documents of AWS. Of its query protocols, in their two wrappings:
 *
 *      <Response><Errors><Error><Code/><Message/></Error></Errors><RequestID/></Response>       EC2
 *      <ErrorResponse><Error><Type/><Code/><Message/></Error><RequestId/></ErrorResponse>       STS, others
 *
 * Mixtures of the two, as imitations of EC2 send them, are read as well. And of its JSON
 * protocols, where the code is what follows the '#', if there is one:
 *
 *      {"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "..."}
 */

#include <stddef.h>

#include "macro.h"

#define AWS_ERROR_MAX_BYTES (64u * 1024u)

typedef struct AwsError {
        char *code;    /* never NULL after a 0 */
        char *message; /* sanitized, bounded, without the encoded authorization blob; never NULL after a 0 */
} AwsError;

/* Of several errors the first. -EBADMSG for anything else, -ENOMEM. */
int aws_error_parse(const char *data, size_t size, AwsError *ret);
int aws_error_parse_json(const char *data, size_t size, AwsError *ret);
void aws_error_done(AwsError *e);
