/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * MESSAGE_ID of every operator-visible event. They are kept for ever: people filter and alert on them, and
 * the journal's catalogue finds its explanations by them. A new event takes a new id (systemd-id128 new).
 */

/* The end of a node was announced. */
#define MESSAGE_NOTICE_SEEN "6a7cdf5e8698fafb45cf5ab8590bfce4"
/* An announcement was positively withdrawn; our marks are undone. */
#define MESSAGE_NOTICE_CANCELLED "34ae4b171eca2c57824e15e4ad30695a"
/* A node was made unschedulable by us. */
#define MESSAGE_NODE_CORDONED "539e7a7e6c45070e4e2476bdd92c666b"
/* Our cordon was taken off again. */
#define MESSAGE_NODE_UNCORDONED "49835c06a09a42948980df5aa0802214"
/* Pods of a node begin to be evicted. */
#define MESSAGE_DRAIN_STARTED "876dee7d5a7499da13c70876eff8de2b"
/* A pod may not be evicted yet; the message names what holds it. */
#define MESSAGE_POD_EVICTION_BLOCKED "09308caf9d7843c8e6159ac55647a39c"
/* A pod was deleted instead of evicted because its time was up. */
#define MESSAGE_POD_DELETED_AT_DEADLINE "286dec0cc6ffd0d08606c66d0fed2fa5"
/* A pod came back onto its cordoned node too often: it is left to the end of the machine. */
#define MESSAGE_POD_COMES_BACK "6d3b1c0a5e8f4f0c9b7e2d41a8c35f96"
/* A pod counts as a static pod, and has not all the marks that a kubelet gives to one: the drain leaves
 * it alone. */
#define MESSAGE_POD_LEFT_ALONE "6c6c10d6b9ce44108614aa1888125315"
/* Nothing that had to leave is on the node any more. */
#define MESSAGE_NODE_DRAINED "37e89773ec7b77b4d118e18d299bc1f8"
/* A drain ended with pods left on the node. */
#define MESSAGE_DRAIN_FAILED "cddb7ff7a720e22a53c66d18c19b1180"
/* The API server does not answer; what can be done without it goes on. */
#define MESSAGE_API_UNREACHABLE "071af49d8a75f5a5bfb9dcd6396af075"
/* The API server answers again. */
#define MESSAGE_API_BACK "af9976ff7757373c18d69c146f8491f0"
/* The kubelet's /healthz has failed for minutes. */
#define MESSAGE_KUBELET_UNHEALTHY "d7089ea62db44a08aded6fe138ad4750"
/* The kubelet is healthy again. */
#define MESSAGE_KUBELET_HEALTHY "1b9e30f50892421daa8faa7248f84784"
/* A notice source keeps answering "unknown". */
#define MESSAGE_NOTICE_SOURCE_FAILING "9b1c5fbdef97f7bdc7a01b7486b0cf6c"
/* The metadata service answers for another machine than this node's. */
#define MESSAGE_FOREIGN_METADATA "2cffd9d5cc3f4d3ea0e6b7aa52f889db"
/* The providerID of this node is another machine's. */
#define MESSAGE_FOREIGN_PROVIDER_ID "7a1319337f7f4deb984ef83d83e46f17"
/* This process leads. */
#define MESSAGE_LEASE_ACQUIRED "6538e63bb787c0c9dacf0140ff3e954f"
/* This process leads no more. */
#define MESSAGE_LEASE_LOST "92eaf099d356a400d48443bccb493e4b"
/* A node is managed from now on: claim made, finalizers set. */
#define MESSAGE_NODE_ADOPTED "031eab321e09b984a8fd8d1b0d714c2d"
/* The cloud could not prove whose instance a managed node's is: it will not be ended. */
#define MESSAGE_IDENTITY_UNPROVED "7b7628c36e05432384cfd83ed8cf3c91"
/* A node is deleted, as its pool wants nodes in such a condition repaired. */
#define MESSAGE_NODE_REPAIRED "81351fde8298422693a600925ec76095"
/* The coordinator asks the agent to reboot the node: the pool has a repair rule for its condition. */
#define MESSAGE_REPAIR_REBOOT_ASKED "c1f0a3d7b94e4d5f8a26e7d30b58c942"
/* The coordinator withdraws its request for a reboot; the line has the reason. */
#define MESSAGE_REPAIR_REBOOT_TAKEN_BACK "5b7e92c40da84f31a6cf18e2973d0b64"
/* A node is not Ready, and its machine was proved to be off: it was tainted out-of-service. */
#define MESSAGE_NODE_OUT_OF_SERVICE "45a4b6ceb12221a215c98bef4ef80785"
/* The Node is Ready again, and the taint was taken off. */
#define MESSAGE_NODE_BACK_IN_SERVICE "937b02baae11d99e64f7f172c41fc907"
/* A managed node is being deleted; its removal began. */
#define MESSAGE_NODE_TERMINATION_STARTED "1070620252c3a684e76f8ca90c9dc32d"
/* A removal went from one phase to the next. */
#define MESSAGE_TERMINATION_PHASE_CHANGED "3f0795bcab9086744048f493bdaa140c"
/* The provider reported the machine of a node gone. */
#define MESSAGE_INSTANCE_TERMINATED "4d33c5eca006eea9809f77cf0bdffd34"
/* A deleted node waits for a NodeDisruptionBudget, undrained. */
#define MESSAGE_WAITING_FOR_BUDGET "5f0c1e7b9a3d4c62b8e04d7719a65f31"
/* A deleted node waits undrained: a person has paused removals, or they resume one by one. */
#define MESSAGE_REMOVAL_PAUSED "53fb86877ba5449faef02b7c8d310773"
/* A removal cannot go on; the message names why and what to do. */
#define MESSAGE_TERMINATION_BLOCKED "8bedc301c948ae1c4342bd91726aa2bc"
/* Our finalizer was taken off; the object may go. */
#define MESSAGE_FINALIZER_REMOVED "d0a92bc0c3f927c498d605a413f7a9b5"
/* The configuration has a value that we do not start with. */
#define MESSAGE_CONFIGURATION_REFUSED "13dea1d6f494f9ea5a50f8494b27f232"
/* The configuration was read again; the message says what was taken and what needs a restart. */
#define MESSAGE_CONFIGURATION_RELOADED "3eb59206de6d45479732a63e9bd1da99"
/* The configuration was to be read again and cannot be; what was in force stays. */
#define MESSAGE_CONFIGURATION_KEPT "110040d8de174716b43bec6d0cbc880a"
/* The credential for the API server is used in a way that puts it at risk. */
#define MESSAGE_CREDENTIAL_AT_RISK "674431861a764a3287cabb8bb1883aeb"
/* The process is up and does its work. */
#define MESSAGE_READY "aba7501ff7679c2e2f1b9117cae88daf"
/* The process ends. */
#define MESSAGE_STOPPING "351a564c17110524097d06cd46b31c30"
/* How long a shutdown of this machine may be delayed for its node's drain; the message says what limits it.
 */
#define MESSAGE_SHUTDOWN_LIMITS "0d2b3f0f6a4e4a1c9b7e5d8c2f61a3b7"
/* logind does not let us inhibit shutdowns. */
#define MESSAGE_SHUTDOWN_NOT_INHIBITED "5c1e9a7d3b8f4f60a2d4c6e8f0917b35"
/* The machine is shutting down; its node is drained first. */
#define MESSAGE_SHUTDOWN_BEGAN "b7f3d1c5e9a24867936bc0ad5f4e2819"
/* The shutdown goes on: we delay it no longer. */
#define MESSAGE_SHUTDOWN_LET_GO "e4a86c2f7d9043b5b1f5c3e7a9d80264"
/* The shutdown was cancelled; what was done for it is undone. */
#define MESSAGE_SHUTDOWN_CANCELLED "93c7e5b1f0d84a26a8e2d6f4b9c1370f"
/* A slot to reboot this node was asked for. */
#define MESSAGE_REBOOT_REQUESTED "f1d86b0e5c3a47929e0b7d4a6c28f513"
/* The coordinator granted it: the machine reboots. */
#define MESSAGE_REBOOT_GRANTED "2ea7c9f4b1d3450e8f6a0c5d7b92e138"
/* The request is withdrawn; the message says why. */
#define MESSAGE_REBOOT_WITHDRAWN "8c40d6e2a7f1493bb52e9c0f3d6a178e"
/* The coordinator granted it, and pods that opted out of drains are waited for. */
#define MESSAGE_REBOOT_HELD "05b9fc1a6fb50167b2ffc9d71063ab19"
/* Coordinator: a node waits for a slot to reboot; the message names who holds them. */
#define MESSAGE_REBOOT_SLOT_WAITS "73f4101afa6a05731a77a09c7b2f5082"
/* Coordinator: a node may reboot. */
#define MESSAGE_REBOOT_SLOT_GRANTED "11aee049cdb7c3205dd5058b20530b49"
/* Coordinator: a slot is free again; the message says why. */
#define MESSAGE_REBOOT_SLOT_FREED "24d1bcfad3bfd1285b0e1f19e3311c85"
/* Coordinator: a node that was granted a reboot did not come back in time. */
#define MESSAGE_REBOOT_SLOT_EXPIRED "cc0351a3b3c389df7133b9e53041e63c"
/* Coordinator: a Node carries a grant that no coordinator wrote. */
#define MESSAGE_REBOOT_GRANT_TOO_LONG "90eb29e5975654303cedc5e15081b790"
/* A slot was granted, and the API server does not say whether it still stands. */
#define MESSAGE_REBOOT_UNPROVED "8363ca430dd14620a554ddfdd21b6148"
/* A shutdown of this machine begins without the slot that was asked for, or after its end. */
#define MESSAGE_REBOOT_UNGRANTED "bd1f31fb9094a359ffa49f189c2e0fb2"
/* An announced reboot is not taken early (any more), or was and stands all the same: it is left to its time. */
#define MESSAGE_EARLY_REBOOT_LEFT "00ae770c4b904f299e98e0c31e739d63"
/* The node is drained for an announced reboot that is taken early; the line says who reboots its machine now. */
#define MESSAGE_EARLY_REBOOT_DRAINED "0776e5b8d2da45b59b0392fdf2db3765"
/* The cloud was told that an event for which this node is drained may begin. */
#define MESSAGE_EVENT_ACKNOWLEDGED "bd7ba419068d438c9294ddb0ab05d511"
/* Coordinator: the cloud was told to reboot the machine of a node that is drained for that. */
#define MESSAGE_REBOOT_BY_CLOUD "d11bfc00fdb54698a42383b40d949512"
/* Coordinator: the cloud did not take that, or nobody knows whether it did. */
#define MESSAGE_REBOOT_BY_CLOUD_FAILED "e136e12be6a64523a5a497bf4594e49a"
/* Coordinator: all machines of a cloud's event are nodes that are drained for it: their agents may acknowledge it. */
#define MESSAGE_EVENT_ALL_DRAINED "8e6224630a60490bbc66c7fe9656a3ca"
/* Coordinator: nodes are drained for a cloud's event that waits for another of the machines that it names; the line says for which. */
#define MESSAGE_EVENT_WAITS "054b959e6a43455598389caa4f366952"
/* Coordinator: the interruption queue announces something for the instance of a node; the line says what is done. */
#define MESSAGE_QUEUE_NOTICE "ba56f29fe7614a98b580a7116c7c509b"
/* Coordinator: the interruption queue is not heard; the line says why. */
#define MESSAGE_QUEUE_FAILING "1bebd2cf474d41a4a3252a34ffbf6b7b"
/* Coordinator: the interruption queue answers again. */
#define MESSAGE_QUEUE_BACK "1447636a622b4be3ba6811e965ca8b01"
/* Coordinator: a message of the interruption queue cannot be read; it is hidden, not deleted. */
#define MESSAGE_QUEUE_POISON "b04dccc4a59e4a2a8cf5522fd5945492"
/* Coordinator: a message of the interruption queue is about another account or region, which the line
 * names. */
#define MESSAGE_QUEUE_ELSEWHERE "9cecdb7bea7344c1973df0d313d28107"
/* Coordinator: the brake of the queue holds notices: the interruption queue alone announced interruptions of too many machines. */
#define MESSAGE_QUEUE_BRAKE "316ca720ab824ccfa09fc8f99ddf728d"
/* Coordinator: AWS cannot be asked to confirm held notices; the line says why. */
#define MESSAGE_QUEUE_UNCONFIRMED "73b2fb5f81eb44559f83d49e2c44fa59"
/* Coordinator: the brake of the queue no longer holds a notice of a node. */
#define MESSAGE_INTERRUPTION_LET_GO "a82bb2c7e4bc4ea59caa8352493ea563"
/* Coordinator: a message of the interruption queue announces the end of a Capacity Block; it names no
 * instance. */
#define MESSAGE_QUEUE_CAPACITY_BLOCK "3257d15fa3e94e01bfa050bcea18b938"
/* Coordinator: the machine of a node goes, and its pool has a new one asked for in its place. */
#define MESSAGE_SUCCESSOR_ASKED "6d2c0f8b4e1a4b6f9a3d57e08c91b2f4"
/* Coordinator: the cloud has named the machine that was asked for. */
#define MESSAGE_MACHINE_LAUNCHED "b83e5a917c0d4f2286f41d9ae7c0356b"
/* Coordinator: the node of a machine that was asked for takes pods. */
#define MESSAGE_SUCCESSOR_READY "c1d4e7029b5f4a6d8e3b60f27a958d1e"
/* Coordinator: the cloud did not launch a machine that was asked for; the line has its words. */
#define MESSAGE_LAUNCH_FAILED "0f9a6c53d27b4e18b5c8e41f7a2d9063"
/* The receiver of [Notify] is not told; the line says why. */
#define MESSAGE_NOTIFY_FAILING "3d0a97944e7e75e150845591217918c5"
/* The receiver of [Notify] takes messages again. */
#define MESSAGE_NOTIFY_BACK "f11aa9b9e64a83a6fdca6c1443bde7d1"
