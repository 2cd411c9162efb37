/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * vesper-agent --drain, --reboot and --cancel: asks the agent of this machine by D-Bus (agent-face.h), as
 * vesper-drain.service and vesper-reboot.service does. Blocks; progress goes to the service manager
 * (STATUS=) and, on a terminal, to standard output.
 *
 * All: 0; a negative errno, logged with what to do.
 */

#include "log.h"

/* Until the node is drained. -ECANCELED: somebody undid it meanwhile. */
int agent_client_drain(Log *l);
/* Until the machine goes down. -ECANCELED: withdrawn, or not granted in time. */
int agent_client_reboot(Log *l);
/* An agent that does not run has nothing to undo while the machine goes down; else that is an error. */
int agent_client_cancel(Log *l);
