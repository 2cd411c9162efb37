/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What AWS's SDKs read from the environment, as far as vesper honours it, read once; and where a service is
 * to be found. Empty variables count as unset.
 */

#include <stdbool.h>

#include "macro.h"

typedef struct AwsSettings {
        char *access_key_id;           /* AWS_ACCESS_KEY_ID */
        char *secret_access_key;       /* AWS_SECRET_ACCESS_KEY */
        char *session_token;           /* AWS_SESSION_TOKEN */
        char *role_arn;                /* AWS_ROLE_ARN */
        char *web_identity_token_file; /* AWS_WEB_IDENTITY_TOKEN_FILE */
        char *role_session_name;       /* AWS_ROLE_SESSION_NAME */
        char *shared_credentials_file; /* AWS_SHARED_CREDENTIALS_FILE; else HOME/.aws/credentials; NULL
                                          without HOME */
        char *profile;                 /* AWS_PROFILE; NULL: "default" */
        char *container_full_uri;      /* AWS_CONTAINER_CREDENTIALS_FULL_URI */
        char *container_relative_uri;  /* AWS_CONTAINER_CREDENTIALS_RELATIVE_URI */
        char *container_token;         /* AWS_CONTAINER_AUTHORIZATION_TOKEN */
        char *container_token_file;    /* AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE */
        char *imds_endpoint; /* AWS_EC2_METADATA_SERVICE_ENDPOINT, else by ..._ENDPOINT_MODE; never NULL */
        char *imds_disabled; /* AWS_EC2_METADATA_DISABLED */
        char *region;        /* AWS_REGION, AWS_DEFAULT_REGION */
        char *endpoint_ec2;  /* AWS_ENDPOINT_URL_EC2, AWS_ENDPOINT_URL */
        char *endpoint_autoscaling; /* AWS_ENDPOINT_URL_AUTO_SCALING, AWS_ENDPOINT_URL */
        char *endpoint_sts;  /* AWS_ENDPOINT_URL_STS, AWS_ENDPOINT_URL */
} AwsSettings;

typedef const char *(*aws_getenv_t)(const char *name, void *userdata);

/* getenv_fn NULL: nothing is set. -ENOMEM. */
int aws_settings_new(aws_getenv_t getenv_fn, void *userdata, AwsSettings **ret);
AwsSettings *aws_settings_free(AwsSettings *s); /* secrets are erased */
DEFINE_FREEP(AwsSettings, aws_settings_free);
bool aws_imds_is_disabled(const AwsSettings *s);

/* "us-east-1": lower-case letters, digits and single dashes. */
bool aws_region_is_valid(const char *region);
/* Does a zone ("us-east-1a", "us-east-1-bos-1a") lie in this region? */
bool aws_zone_is_in_region(const char *zone, const char *region);

/* An origin to send to: "https://ec2.eu-west-1.amazonaws.com". */
typedef struct AwsEndpoint {
        char *url;  /* scheme, host, port, "/" */
        char *host; /* as the Host header has it: with the port unless it is the scheme's own */
} AwsEndpoint;

/* Of the published endpoints, by the region's partition. -ENOMEM. */
int aws_endpoint_for(const char *service, const char *region, AwsEndpoint *ret);
/* http:// or https://, a host, maybe a port, no path but "/". -EINVAL, -ENOMEM. */
int aws_endpoint_parse(const char *url, AwsEndpoint *ret);
void aws_endpoint_done(AwsEndpoint *e);
