/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The URL of an SQS queue, as [Queue] Url= has it: where requests go, and in which region they are signed.
 * Pure.
 *
 *      https://sqs.REGION.amazonaws.com/ACCOUNT/NAME      also .com.cn and the other partitions, GovCloud
 *      https://sqs.REGION.api.aws/ACCOUNT/NAME            IPv4 and IPv6
 *      https://sqs-fips.REGION.amazonaws.com/ACCOUNT/NAME
 *      https://VPCE.sqs.REGION.vpce.amazonaws.com/...     an endpoint in a VPC
 *      https://REGION.queue.amazonaws.com/..., https://queue.amazonaws.com/...   as they were called before
 *      http://127.0.0.1:PORT/..., [::1], localhost        an imitation; plain HTTP goes nowhere else
 *
 * https://docs.aws.amazon.com/general/latest/gr/sqs-service.html
 */

#include "macro.h"

typedef struct SqsUrl {
        char *url;      /* of the queue, as requests name it */
        char *endpoint; /* "https://sqs.eu-west-1.amazonaws.com" */
        char *region;   /* NULL: the host's name does not contain it */
        char *account;  /* digits; NULL: the path does not contain it */
        char *name;     /* of the queue, for people */
} SqsUrl;

/* -EINVAL and *reterr_why (static) if it is no such URL; -ENOMEM. */
int sqs_url_parse(const char *url, SqsUrl *ret, const char **reterr_why);
void sqs_url_done(SqsUrl *u); /* a zeroed one is fine */
