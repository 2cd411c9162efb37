/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "fake-authz.h"

/* Gives the fake's authorizer the rules of a manifest: each ClusterRole and Role to the ServiceAccount of the same name, as
 * the bindings beside them do. Prints why it could not. */
int contract_rbac_load(const char *path, FakeAuthz *authz);
