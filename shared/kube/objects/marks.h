/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The contract in the API: every name by which agent, coordinator and people know each other on a Node and a NodeClaim
 * (vesper(7), MARKS ON A NODE). Agent and coordinator never talk but through these.
 */

#define VESPER_GROUP "vesper.sh"
#define VESPER_VERSION_API "v1alpha1"

/* spec.providerID of the claim of a Node that has none itself: this and the Node's name. Only provider exec has such. */
#define MACHINE_ID_BY_NAME "exec://"

/* On Node AND NodeClaim: deletion waits for the coordinator. */
#define FINALIZER_TERMINATION "vesper.sh/termination"

/* Coordinator: chosen for removal. */
#define TAINT_DISRUPTED "vesper.sh/disrupted"
#define TAINT_UNSCHEDULABLE "node.kubernetes.io/unschedulable"
/* The node readiness controller keeps pods away until a rule of its own holds. */
#define TAINT_READINESS_PREFIX "readiness.k8s.io/"
/* A cloud controller manager has still to come by, and brings spec.providerID. */
#define TAINT_UNINITIALIZED "node.cloudprovider.kubernetes.io/uninitialized"

/* Names the writer of a cordon; the value is JSON {"bootID":..., "why":...}. The node is un-cordoned only by the conditional patch
 * that removes the last of them; unschedulable=false while our mark is there means that a person un-cordoned: the mark goes,
 * the node stays open. A cordon found before ours is never claimed. */
#define ANNOTATION_CORDONED_BY_AGENT "vesper.sh/cordoned-by-agent"
#define ANNOTATION_CORDONED_BY_COORDINATOR "vesper.sh/cordoned-by-coordinator"
/* By a person, with vesperctl drain. */
#define ANNOTATION_CORDONED_BY_VESPERCTL "vesper.sh/cordoned-by-vesperctl"
/* Agent: JSON {"id","kind","source","action","deadline","phase","podsLeft","bootID"}, and "resources", the names of all machines
 * of a cloud's event that names others, too. deadline: as the giver of the notice
 * said it, or by this machine's clock where that is the giver (a shutdown). "deadlineUptimeUsec" beside it is the same on the
 * boot-time clock of the machine, for its agent alone (interruption.h reads and writes it).
 * phase: how far its drain is; Released: a person un-cordoned, nothing goes on, and this notice is not acted upon again. */
#define ANNOTATION_INTERRUPTION "vesper.sh/interruption"
/* Coordinator, on a Node that it drains for what its interruption queue announced of the machine, and keeps (heard-drain.h): how far that
 * drain is. The same JSON as the agent's: the notice that comes first, "blockedBy", pods that hold it, and a phase of Draining, Drained, or
 * Ending (the deadline has passed). The agent's own annotation is never touched for it. */
#define ANNOTATION_HEARD "vesper.sh/heard"
/* Coordinator, on a NodeClaim, or on a Node that has none: JSON {"notices":[...]}, all that its interruption queue announced of the machine
 * (announced.h): each {"id","kind","source","action","deadline","until","said","received","state","bootID"}. A "state" says that it is over,
 * and how, or "Held": the brake of the queue holds it. */
#define ANNOTATION_ANNOUNCED "vesper.sh/announced"
/* Agent: JSON {"id","bootID","kind":"reboot"|"poweroff","until"}: asks for a slot before it begins, and waits for it until then;
 * gone when that is over. Of a reboot that was announced and is taken early also "event", the id of that notice, and, where the
 * coordinator is to have the cloud reboot the machine, "by":"cloud". And the coordinator's answer, JSON {"id","until"}: the slot
 * is that node's until then, or until it is Ready with another boot id, or the request is gone. "sent": true in it: the cloud is
 * being told to reboot the machine, once for this request. */
#define ANNOTATION_SHUTDOWN_REQUEST "vesper.sh/shutdown-request"
#define ANNOTATION_SHUTDOWN_GRANTED "vesper.sh/shutdown-granted"
/* Agent: ids of announced reboots, with a space between them, that were taken early: written before the node is drained for
 * one, and never taken off for what still stands, so that no event is the cause of two reboots (reboot-taken.h). */
#define ANNOTATION_REBOOT_TAKEN "vesper.sh/reboot-taken"
/* Coordinator: the id of a cloud's event all whose machines are Nodes that are drained for it: their agents may acknowledge it. */
#define ANNOTATION_ACK_OK "vesper.sh/ack-ok"
/* Coordinator: RFC 3339 copy of the claim's T; the agent keeps to the earlier of T and its notice. */
#define ANNOTATION_DEADLINE "vesper.sh/deadline"

/* Coordinator, on a Node that is not Ready and whose machine is off, as the provider has proved: what the
 * controllers of KEP-2268 go by. The annotation says since when (RFC 3339), and that the taint is vesper's: both go
 * when the node is Ready. */
#define TAINT_OUT_OF_SERVICE "node.kubernetes.io/out-of-service"
#define TAINT_OUT_OF_SERVICE_VALUE "nodeshutdown"
#define ANNOTATION_OUT_OF_SERVICE "vesper.sh/out-of-service"

/* A person, on a Node: "true": no pool adopts it, and what has adopted it lets go of it. A removal that has begun goes on. */
#define ANNOTATION_UNMANAGED "vesper.sh/unmanaged"
/* A person, on a NodePool, or on the namespace of the coordinator's Lease for all: "true": no removal of its nodes begins. */
#define ANNOTATION_PAUSED "vesper.sh/paused"
/* vesperctl, beside it: JSON {"by","command","since"}, who has set the pause
 * (coordinator/termination/pause-mark.h). */
#define ANNOTATION_PAUSED_BY "vesper.sh/paused-by"
/* A person, on a Node: anything but "false": it is not repaired. Karpenter's means the same. */
#define ANNOTATION_DO_NOT_REPAIR "vesper.sh/do-not-repair"
#define ANNOTATION_KARPENTER_DO_NOT_REPAIR "karpenter.sh/do-not-repair"
/* Coordinator, on a Node whose NodePool has it repaired by a reboot: the boot id that is to end. Its agent asks for a slot. */
#define ANNOTATION_REBOOT_FOR_REPAIR "vesper.sh/reboot-for-repair"
/* Coordinator, on a NodeClaim: the boot id that its node was last asked to end, written before the Node's annotation. A node that shows
 * another boot id was rebooted. It is taken off when the node has been well for five minutes. */
#define ANNOTATION_REBOOTED_FOR_REPAIR "vesper.sh/rebooted-for-repair"
/* A person, on a NodeClaim: an RFC 3339 time. Once the claim is being deleted its node goes then at the latest. */
#define ANNOTATION_FORCE_DEADLINE "vesper.sh/force-deadline"
/* A person (vesperctl let-go), on a NodeClaim, or on a Node that has none: an RFC 3339 time. Notices of the
 * interruption queue that the brake holds (queue-brake.h), and that the coordinator received up to this time, count as confirmed. */
#define ANNOTATION_LET_GO "vesper.sh/let-go"

/* Kubelet, on the mirror pod of a static pod. */
#define ANNOTATION_MIRROR "kubernetes.io/config.mirror"

/* Load balancers let go before pods do. Set to "vesper" only where absent, and only that value is ever taken off. */
#define LABEL_EXCLUDE_FROM_LB "node.kubernetes.io/exclude-from-external-load-balancers"
#define LABEL_EXCLUDE_FROM_LB_VALUE "vesper"
/* Coordinator, where absent: the NodePool that has adopted this Node, so that people can select its nodes. */
#define LABEL_NODE_POOL "vesper.sh/nodepool"
/* "terminable" asks for the deletion of this Node. */
#define LABEL_LIFECYCLE_PHASE "karpenter.sh/lifecycle-phase"

/* Node conditions of KEP-5683; `reason` names who drains. */
#define CONDITION_REASON_AGENT "VesperAgent"
#define CONDITION_REASON_COORDINATOR "VesperCoordinator"
#define CONDITION_DRAIN_IN_PROGRESS "DrainInProgress"
#define CONDITION_DRAINED "Drained"
#define CONDITION_MAINTENANCE_PLANNED "MaintenancePlanned"
#define CONDITION_MAINTENANCE_IN_PROGRESS "MaintenanceInProgress"
#define CONDITION_GRACEFUL_SHUTDOWN "GracefulNodeShutdownInProgress"
/* ... but of the last three it is the cause, and whose they are the message says, which begins with the daemon's name. */
#define CONDITION_REASON_ADMIN "AdminRequested"
#define CONDITION_REASON_REPAIR "NodeRepair" /* the coordinator deleted the Node to replace it */
#define CONDITION_REASON_WINDOW "MaintenanceWindow"
#define CONDITION_REASON_SHUTDOWN "NodeShutdown"
#define CONDITION_REASON_DRAINED "DrainCompleted"
/* Coordinator: why a termination does not go on. */
#define CONDITION_TERMINATION_BLOCKED "vesper.sh/TerminationBlocked"

/* NodeClaim conditions. */
#define CLAIM_LAUNCHED "Launched"
#define CLAIM_REGISTERED "Registered"
#define CLAIM_INITIALIZED "Initialized"
/* vesper asks the cloud for the machine, and was not given it: the message has the cloud's words. */
#define CLAIM_LAUNCH_FAILING "LaunchFailing"
#define CLAIM_PHASE_LAUNCHING "Launching"
#define CLAIM_PHASE_LAUNCHED "Launched"
#define CLAIM_DRAINED "Drained"
#define CLAIM_VOLUMES_DETACHED "VolumesDetached"
#define CLAIM_INSTANCE_TERMINATING "InstanceTerminating"
/* False: the cloud could not prove that the instance is this Node's; its machine is not ended. */
#define CLAIM_IDENTITY_PROVED VESPER_GROUP "/IdentityProved"
/* The claim's Node does not exist, and its machine may. */
#define CLAIM_NODE_ABSENT VESPER_GROUP "/NodeAbsent"

/* A person's claim of no pool is not acted on: reason and message say why. Its phase is then that, too. */
#define CLAIM_NOT_ADOPTED VESPER_GROUP "/NotAdopted"
#define CLAIM_PHASE_NOT_ADOPTED "NotAdopted"

/* The claim has a field that cannot be understood. */
#define CLAIM_INVALID "Invalid"

/* Would its node go though nobody asked: what it is, and in the reason what stands in the way. Each only while its pool asks. */
#define CLAIM_EXPIRED "Expired"
#define CLAIM_DRIFTED "Drifted"
#define CLAIM_EMPTY "Empty"
#define CLAIM_CONSOLIDATABLE "Consolidatable"

/* NodeDisruptionBudget conditions: one more node may be disrupted; it has a field that cannot be
 * understood; its selector reads a label that a kubelet may set on its own Node. */
#define BUDGET_DISRUPTION_ALLOWED "DisruptionAllowed"
#define BUDGET_INVALID "Invalid"
#define BUDGET_OPEN_TO_KUBELETS "SelectorOpenToKubelets"

/* NodePool conditions: a node is matched by two pools and adopted by neither; the pool cannot be understood;
 * it selects nodes that cannot be adopted; it has nodes of which nothing proves whose instance they are; it sets fields that this release does nothing about;
 * it has nodes with notices that the brake of the queue holds; it has nodes that are to be repaired, and something holds that. */
#define POOL_CONFLICT "Conflicting"
#define POOL_INVALID "Invalid"
#define POOL_NOT_ADOPTED "NodesNotAdopted"
#define POOL_IDENTITY "IdentityUnproved"
#define POOL_NOT_ACTED_ON "FieldsNotActedOn"
/* A person has paused the removal of its nodes; False and reason Resuming or ResumingAll: they begin one by one. */
#define POOL_PAUSED "Paused"
#define POOL_INTERRUPTIONS_HELD "InterruptionsHeld"
#define POOL_REPAIR_HELD "RepairHeld"
/* For tools that wait: nodes come or go; nothing is wrong, and none comes or goes. */
#define POOL_PROGRESSING "Progressing"
#define POOL_READY "Ready"
/* The pool does not come to rest before a person changes it. */
#define POOL_STALLED "Stalled"
