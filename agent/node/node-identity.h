/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* node-identity.c: under which name this machine is a Node. */

#include "kubeconfig.h"

/* configured, else NAME of the client certificate's CN=system:node:NAME, else the host name in lower case
 * (as kubelets do without
 * --hostname-override). *ret_from: static, for people. -EINVAL: that is no name of a Node; -ENOMEM. */
int node_identity_find(const KubeConfig *config, const char *configured, char **ret, const char **ret_from);

/* Of the first certificate in a PEM text: the name behind system:node:, or -ENOENT; -ENOMEM. */
int node_identity_from_pem(const void *pem, size_t size, char **ret);
