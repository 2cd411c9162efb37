/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where AWS credentials come from, in the order of the SDKs:
 *
 *      environment -> web identity (IRSA) -> shared file -> container endpoint (EKS, ECS)
 *                  -> instance metadata
 *
 * The first source that is configured is asked; if it fails, the failure is told: nothing falls through to
 * another identity. Keys are kept and renewed in the background when less than ten minutes remain (one
 * renewal at a time). Keys of instance metadata are used even past their end while metadata gives no newer
 * ones, so that its fault does not stop us; it is looked at again after 10 to 20 minutes. Secrets never
 * reach a log or a message.
 */

#include "aws-keys.h"
#include "aws-settings.h"
#include "env.h"

typedef struct AwsCredentials AwsCredentials;
typedef struct AwsCredentialsCall AwsCredentialsCall;

typedef struct AwsIdentity {
        const AwsKeys *keys;
        const char *principal; /* the same text = the same account: a role, a key id, an account id */
        unsigned generation;   /* of these keys, for aws_credentials_refuse() */
} AwsIdentity;

/* error: 0 and `identity`; or a negative errno (-ENOENT: no source is configured), and `message` says why
 * for a person. Borrowed for the callback. */
typedef void (*aws_credentials_done_t)(int error, const AwsIdentity *identity, const char *message,
                                       void *userdata);

/* All are borrowed and must outlive the object. */
int aws_credentials_new(Env *env, const AwsSettings *settings, AwsCredentials **ret);
/* Not inside a callback; all calls must be freed before. */
AwsCredentials *aws_credentials_free(AwsCredentials *c);
DEFINE_FREEP(AwsCredentials, aws_credentials_free);

/* Needed for the address of STS before the first get with web identity. -EINVAL, -ENOMEM. */
int aws_credentials_set_region(AwsCredentials *c, const char *region);

/* A slot: `done` comes once, from the loop, and not after the slot was freed; it may be freed inside. */
int aws_credentials_get(AwsCredentials *c, aws_credentials_done_t done, void *userdata,
                        AwsCredentialsCall **ret);
AwsCredentialsCall *aws_credentials_call_free(AwsCredentialsCall *call);
DEFINE_FREEP(AwsCredentialsCall, aws_credentials_call_free);

/* The cloud says that keys of this generation have expired or are none: they are not handed out again. */
void aws_credentials_refuse(AwsCredentials *c, unsigned generation);
