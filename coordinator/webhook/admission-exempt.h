/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Users whose deletions of Nodes and NodeClaims no budget refuses: controllers that delete the Node of a
 * machine which has ended already, or that manage machines themselves and keep budgets of their own. To
 * refuse them brings no machine back and leaves Nodes without a machine behind. The coordinator's own
 * ServiceAccount passes, too (admission_own_account()), in its own namespace alone: it charges voluntary
 * deletions before it sends them, and any other deletion waits for its budget before the drain.
 *
 * The API server knows both, too, as matchConditions (CEL) of the webhook, and does not ask at all. So the
 * coordinator does not depend on its own webhook, whatever the failurePolicy is. An API server that has no
 * matchConditions (before 1.28) asks, and finds the same answer here.
 *
 * A pattern is a user name, as in userInfo.username; "*" in it stands for any characters, or none.
 */

#include <stdbool.h>
#include <stddef.h>

#define ADMISSION_PATTERN_BYTES_MAX 253u

typedef struct AdmissionExemption {
        const char *pattern;
        const char *reason; /* for people: why the deletion of this user passes */
} AdmissionExemption;

/* Those that are always exempt. */
extern const AdmissionExemption admission_exemptions[];
extern const size_t n_admission_exemptions;

/* For configuration: 0; -EINVAL with *reterr_reason (static): "stands for every user". */
int admission_pattern_check(const char *pattern, const char **reterr_reason);
bool admission_pattern_matches(const char *pattern, const char *username);

/* Returns the user name of the coordinator's ServiceAccount in that namespace. Free it; NULL on ENOMEM. */
char *admission_own_account(const char *ns);

/* configured: patterns besides admission_exemptions, each of them checked; NULL: none. Why this user is
 * exempt (static), or NULL: it is not; nor is "", nobody. */
const char *admission_exempt_reason(const char *username, char *const *configured);
/* The same in CEL, true of a request that the webhook is to be asked about. Free it; NULL on ENOMEM. */
char *admission_match_condition(char *const *configured);
