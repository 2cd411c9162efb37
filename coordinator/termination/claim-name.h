/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* "nc-" and 16 hex digits of pool, providerID and uid: the same adoption makes the same NodeClaim, and whoever knows the
 * Node finds it without a list. Pure. NULL on ENOMEM. */
char *claim_name(const char *pool, const char *provider_id, const char *node_uid);
