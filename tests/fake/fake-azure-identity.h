/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Tokens of the managed identities of one VM: /metadata/identity/oauth2/token, once the header and the
 * api-version are right
 * (learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token). Errors are
 * {"error", "error_description"}, all values strings. A token lives an hour and is served from a cache until
 * five minutes before its end.
 */

#include "fake-query.h"
#include "http-message.h"
#include "loop.h"

typedef struct FakeAzureIdentity FakeAzureIdentity;

/* user: client ids, NULL at the end, or NULL; their object ids are "object-of-ID", their resource ids
 * "/identities/ID". */
FakeAzureIdentity *fake_azure_identity_new(Loop *loop, const char *vm_id, bool system,
                                           const char *const *user);
FakeAzureIdentity *fake_azure_identity_free(FakeAzureIdentity *i);

void fake_azure_identity_give(FakeAzureIdentity *i, HttpExchange *x, const FakeQuery *q);
void fake_azure_identity_refuse(HttpExchange *x, const char *error, const char *description);
bool fake_azure_identity_token_is_good(const FakeAzureIdentity *i, const char *token, const char *resource);
