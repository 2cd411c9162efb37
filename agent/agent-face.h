/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The agent on D-Bus: sh.vesper.Agent1 at /sh/vesper/Agent1.
 *
 *      State     s  "Idle", "Draining", "Drained", ... (reflex.h), or in place of "Idle": "RebootRequested", "RebootGranted",
 *                   "Rebooting" (reboot.h); StateChanged(s) with each
 *      Notice    s  id of the notice that is acted upon, or ""
 *      PodsLeft  t  pods that the drain still waits for
 *      Deadline  t  when the node has to be empty, in microseconds since 1970; 0: no time was set
 *      Drain()      take the node out of service, as for a notice without a deadline; returns at once
 *      RequestReboot()  ask the coordinator for a slot, drain, reboot; returns at once
 *      Cancel()     undo either; nothing happens where nothing was asked for, or while the machine goes down
 *
 * Anybody may read; methods are root's. vesper-agent --drain, --reboot and --cancel call them
 * (agent-client.h).
 */

#include "reboot.h"
#include "reflex.h"

#define AGENT_BUS_NAME "sh.vesper.Agent1"
#define AGENT_BUS_PATH "/sh/vesper/Agent1"
#define AGENT_BUS_INTERFACE "sh.vesper.Agent1"

typedef struct AgentFace AgentFace;

typedef struct AgentFaceHandler {
        int (*on_drain)(const char **reterr_message, void *userdata);
        int (*on_cancel)(const char **reterr_message, void *userdata);
        int (*on_reboot)(const char **reterr_message, void *userdata);
        void *userdata;
} AgentFaceHandler;

/* reflex and reboot are borrowed. Without a bus: a face that nobody sees. */
int agent_face_new(Env *env, const Reflex *reflex, const Reboot *reboot, const AgentFaceHandler *h,
                   AgentFace **ret);
AgentFace *agent_face_free(AgentFace *f);
DEFINE_FREEP(AgentFace, agent_face_free);
/* Something may have changed: told in the next iteration, once for many. */
void agent_face_changed(AgentFace *f);
