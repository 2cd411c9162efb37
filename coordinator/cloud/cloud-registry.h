/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The providers of one coordinator, and which of them a machine belongs to: the first, in the order of [Provider] Name=,
 * whose form its providerID has. Each provider has its own credentials, region, rates and requests under way: one that
 * cannot do its work holds up no machine of another's.
 */

#include "cloud.h"

#define CLOUD_PROVIDERS_MAX 8u

typedef struct CloudRegistry {
        CloudProvider *providers[CLOUD_PROVIDERS_MAX]; /* in their order */
        size_t n_providers;                            /* at least one, once it is used */
} CloudRegistry;

/* Takes the provider. */
void cloud_registry_add(CloudRegistry *c, CloudProvider *p);
void cloud_registry_done(CloudRegistry *c); /* frees them; a zeroed one is fine */

/* Never NULL: of a providerID that none owns (NULL and "" included) it is the first, which says why it cannot be. */
CloudProvider *cloud_registry_for(const CloudRegistry *c, const char *provider_id);
/* The same where a person has said which it is (spec.provider.name of a NodePool; NULL: not): that one, if it can be. */
CloudProvider *cloud_registry_chosen(const CloudRegistry *c, const char *provider_id, const char *name);
/* NULL: there is none of that name. */
CloudProvider *cloud_registry_named(const CloudRegistry *c, const char *name);
/* "ec2 exec"; free it. NULL on ENOMEM. */
char *cloud_registry_names(const CloudRegistry *c);
