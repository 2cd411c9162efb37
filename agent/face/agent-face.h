/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The agent on D-Bus: sh.vesper.Agent1 at /sh/vesper/Agent1.
 *
 *      State     s  "Idle", "Draining", "Drained", ... (reflex.h), or in place of "Idle": "RebootRequested", "RebootHeld",
 *                   "RebootGranted", "Rebooting" (reboot.h); StateChanged(s) with each
 *      Notice    s  id of the notice that is acted upon, or ""
 *      PodsLeft  t  pods that the drain still waits for
 *      Deadline  t  when the node has to be empty, in microseconds since 1970; 0: no time was set
 *      DrainState   s  what stands of Drain(): "None", "Draining", "Drained"; "Unknown" until the agent has seen its Node
 *      DrainReason  s  which do-not-evict pod it waits for, by which key; or why it does not stand any more; or ""
 *      RebootState  s  ... of RequestReboot(): "None", "Requested", "Held" (granted, and such pods are left),
 *                      "Rebooting" (the machine goes down), "Unknown"
 *      RebootReason s  the same
 *
 *      Drain()          take the node out of service, as for a notice without a deadline
 *      ForceDrain()     the same, in spite of do-not-evict pods; also when it has begun
 *      CancelDrain()    undo what was asked for by these two, and nothing else
 *      RequestReboot()  ask the coordinator for a slot, drain, reboot
 *      ForceReboot()    the same, in spite of do-not-evict pods; also when it has been asked for
 *      CancelReboot()   take the request back, and nothing else
 *
 * Methods return at once, and the four properties are true of what they did from that moment on: nobody has to have
 * watched in between. Nothing happens where there is nothing to undo, or while the machine goes down. Anybody may read;
 * methods are root's. vesper-agent --drain, --reboot, --cancel-drain and --cancel-reboot call them (agent-client.h).
 */

#include "by-hand.h"

#define AGENT_BUS_NAME "sh.vesper.Agent1"
#define AGENT_BUS_PATH "/sh/vesper/Agent1"
#define AGENT_BUS_INTERFACE "sh.vesper.Agent1"

typedef struct AgentFace AgentFace;

/* reflex, reboot and by_hand are borrowed. Without a bus: a face that nobody sees. */
int agent_face_new(Env *env, const Reflex *reflex, const Reboot *reboot, ByHand *by_hand, AgentFace **ret);
AgentFace *agent_face_free(AgentFace *f);
DEFINE_FREEP(AgentFace, agent_face_free);
/* Something may have changed: told in the next iteration, once for many. */
void agent_face_changed(AgentFace *f);
