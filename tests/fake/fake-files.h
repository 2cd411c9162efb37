/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the fake cluster's process leaves in its directory for those who want to use it. */

#include "fake-json.h"

/* DIR/NAME, whole or not at all; mode 0600. 0 or a negative errno. */
int fake_write_file(const char *dir, const char *name, const char *text);
/* DIR/kubeconfig-USER with a bearer token. ca_file NULL: plain HTTP. */
int fake_write_kubeconfig(const char *dir, const char *user, const char *server, const char *ca_file,
                          const char *token);
