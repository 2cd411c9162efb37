/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The coordinator's own instance metadata (IMDSv2 only): region and role credentials. One session token,
 * renewed at half its life, and once when a 401 says that it no longer holds. No proxy, urgent lane, 64 KiB,
 * 2 s a request.
 *
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html
 */

#include "env.h"

typedef struct AwsImds AwsImds;
typedef struct AwsImdsCall AwsImdsCall;

/* error: 0, and `text` is the body, without white space at its end; -ENOENT: answered, and there is no such
 * path; else a negative errno, and `text` says for a person what happened. Borrowed for the callback. */
typedef void (*aws_imds_done_t)(int error, const char *text, void *userdata);

int aws_imds_new(Env *env, const char *endpoint, AwsImds **ret);
AwsImds *aws_imds_free(AwsImds *i); /* all calls must be freed before */
DEFINE_FREEP(AwsImds, aws_imds_free);

/* path: behind "/latest/". A slot: `done` comes once, from the loop, and not after the slot was freed. */
int aws_imds_get(AwsImds *i, const char *path, aws_imds_done_t done, void *userdata, AwsImdsCall **ret);
AwsImdsCall *aws_imds_call_free(AwsImdsCall *c);
DEFINE_FREEP(AwsImdsCall, aws_imds_call_free);
