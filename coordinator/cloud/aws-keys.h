/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A set of AWS keys, and the texts that they come in: the shared credentials file, the JSON of container
 * endpoints and instance metadata, the XML of STS. Pure: texts go in, nothing is read or fetched here.
 */

#include <stdbool.h>
#include <stddef.h>

#include "macro.h"
#include "time-util.h"

#define AWS_PROFILE_FILE_MAX_BYTES (256u * 1024u)
#define AWS_KEYS_REPLY_MAX_BYTES (64u * 1024u)

typedef struct AwsKeys {
        char *access_key_id;
        char *secret_access_key;
        char *session_token;      /* NULL for permanent keys */
        char *account_id;         /* NULL if not told */
        usec_t expires_wall_usec; /* USEC_INFINITY: never */
} AwsKeys;

void aws_keys_done(AwsKeys *k); /* a zeroed one is fine; secrets are erased */
/* Both keys there, and nothing in them that may not stand in a header. */
bool aws_keys_are_valid(const AwsKeys *k);

/* The shared credentials file: INI sections, one per profile. -ENOENT: no such profile, or one without both
 * keys (a role, a process, SSO: not read here); -EBADMSG, -ENOMEM. Where a section or a key comes twice the
 * last one wins, as in the SDKs; lines that are neither are passed over. */
int aws_keys_parse_profile(const char *text, const char *profile, AwsKeys *ret);
/* {"AccessKeyId", "SecretAccessKey", "Token", "Expiration", "AccountId", "Code", "Message"}. -EBADMSG;
 * -ENOKEY: a well-formed answer that says there are none, *reterr_message (owned, may stay NULL) is its
 * reason. */
int aws_keys_parse_json(const char *data, size_t size, AwsKeys *ret, char **reterr_message);
/* AssumeRoleWithWebIdentityResponse. -EBADMSG. */
int aws_keys_parse_sts(const char *data, size_t size, AwsKeys *ret);

/* https, or plain http to loopback and to the link-local addresses of ECS and EKS. */
bool aws_container_uri_is_allowed(const char *url);
/* 2..64 of [A-Za-z0-9_+=,.@-]. */
bool aws_role_session_name_is_valid(const char *name);
