/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Provider "exec": machines that a command of the user describes, ends and launches: bare metal, a private cloud, a script
 * around one's own tools. packaging/examples/kind-nodes is a whole command, for the nodes of a kind cluster; its first lines
 * say how to try it.
 *
 *      [Provider]                              coordinator.conf
 *      Name=exec
 *      Command=/usr/local/bin/my-machines
 *
 * The command is run with one argument, the operation:
 *
 *      describe    the state of a machine                                    required
 *      terminate   end a machine                                             required
 *      list        all machines                                              optional, like all below
 *      reboot      reboot a machine
 *      launch      one machine more
 *      find        the machine that an earlier launch has made
 *      leave       take a machine out of its group, alive
 *      end         end a machine, and say how large its group is to be then
 *      group       the group of a machine
 *
 * A command that does not have an operation exits with 64, or answers with the error code "unsupported". It does nothing
 * then. Operations may be added: a command must not take an operation that it does not know for "terminate".
 *
 * The request. Standard input is one JSON object, and then it ends. A field that is not known is left out. More fields may
 * come: ignore those that you do not know. The version stays 1 for as long as fields are only added.
 *
 *      { "version": 1,
 *        "op": "describe" | "terminate" | ...,
 *        "opId": "terminate-6f0c...",                     all but describe, list and group
 *        "pool": "workers",                               the NodePool; with opId only
 *        "providerID": "rack:7",                          all but list, launch and find; and so is node
 *        "group": "a", "like": "rack:7",                  launch only
 *        "zone": "z1", "capacityType": "spot",            launch only
 *        "refill": true,                                  leave only, always there
 *        "shrink": true,                                  end only, always there
 *        "node": { "name": "worker-7",
 *                  "systemUUID": "4c4c4544-...", "machineID": "9d0f...",
 *                  "addresses": [ { "type": "InternalIP", "address": "10.0.0.7" } ] } }
 *
 *      opId          is the same for every repetition of one operation. A call that comes twice must do its work once. A find
 *                    has the opId of the launch that it asks about.
 *      pool          is missing where the Node has no claim any more.
 *      providerID    as the Node had it when it was adopted, or as launch or find has answered it; "exec://" and the Node's
 *                    name for a Node without spec.providerID.
 *      group         spec.provider.group of the NodePool.
 *      like          providerID of a machine that the new one is to be like. That machine may have gone.
 *      zone          topology.kubernetes.io/zone that the new Node is to have.
 *      capacityType  value of the label vesper.sh/capacity-type, or karpenter.sh/capacity-type, of the Node whose machine is
 *                    replaced: "spot", "on-demand".
 *      refill        true: the group launches another machine in place of this one. false: the group becomes smaller by one.
 *      shrink        true: the group becomes smaller by this machine. false: the group keeps its size.
 *      node.name     the Node's name, the one thing that a kubelet cannot choose: the API server lets it write no other
 *                    Node. node is missing where the Node was never seen.
 *      systemUUID    of the machine's firmware, and machineID of its installation (/etc/machine-id), as the Node reported
 *                    them when it was adopted.
 *      addresses     as the Node reports them now; missing when it has left.
 *
 * Whose machine it is, is the command's business: vesper proves nothing here. A kubelet writes everything but the name about
 * itself, and root on one node can make its kubelet write another machine's. So look the machine up by node.name in an
 * inventory that nodes cannot write to. Answer with the error "invalid" if that leads to another providerID or systemUUID
 * than the request has.
 *
 * The answer. Standard output, at most 1 MiB, is one JSON object. Fields that are not needed may be left out; unknown fields
 * are ignored. "error" may also be a string, the message.
 *
 *      { "state": "present" | "off" | "terminating" | "gone" | "unknown",
 *        "error": { "code": "protected" | "denied" | "invalid" | "unsupported" | "noCapacity" | "atMinimum" | ...,
 *                   "message": "for a person" },
 *        "retryAfter": SECONDS,
 *        "instances": [ { "providerID": "rack:7", "state": "present" } ],                      list only
 *        "launch": "accepted" | "unknown" | "later" | "noCapacity" | "refused",                launch only
 *        "providerID": "rack:8",                                                               launch and find only
 *        "group": { "name": "a", "size": 3, "min": 1, "max": 5, "template": "7" } | null }     group only
 *
 *      describe   must give a state. "gone" is final, and believed at once: the machine does not exist and cannot come
 *                 back. A command that does not know the machine must be sure that it looked in the right place before
 *                 it says so; else it says "unknown". "terminating" is final, too: on its way out, and cannot come back.
 *                 "off" is shut off, and may be started again: the machine runs nothing at this moment, so that its pods may
 *                 be started elsewhere and its volumes be written by another machine. A command that cannot be sure of
 *                 that, or that the request reached the machine's power switch, says "present".
 *      terminate  without "error": accepted, or there was nothing to end; {} says all of that. The node is removed when
 *                 an answer, this one or that of a later describe, says "gone" or "terminating". Until then describe is
 *                 asked with growing pauses, and after a minute terminate again, with the same opId.
 *
 *      list       must give instances, all of them, or an error: no list is no empty list. vesper skips an instance
 *                 without a readable providerID, and logs how many it could not read. An instance is listed if this
 *                 cluster brought it up for a node of its own, even if that node has not joined yet; spares that wait to be
 *                 used are not listed. providerID is as in describe, state as above. An instance that is "present" or "off"
 *                 and has neither Node nor NodeClaim in two lists at least ten minutes apart is reported
 *                 (instance-orphans.h); nothing is done to it. vesper asks every five minutes. If the command has no such
 *                 operation, vesper does not ask again until another coordinator leads.
 *
 *      reboot     is asked for where a node is drained for an announced reboot that only a call of the cloud ends ([Policy]
 *                 Reboot=early of its agent; vesper(7)). Without "error": the machine reboots. An error, or exit status 75,
 *                 says that it does not, and vesper asks again for as long as the node has its slot. After any other end the
 *                 machine may be rebooting, and vesper does not ask again. If the command has no such operation, the Node's
 *                 Events say so once, and its agent puts the node back into service.
 *
 *      launch     must give the word "launch":
 *                   accepted     the machine comes, or is there. providerID, if it is known already. Else vesper asks find until
 *                                that names the machine, and repeats the launch after five minutes, or if there is no find.
 *                   unknown      the machine may have been launched. vesper asks find, or the same launch again.
 *                   later        nothing was launched; the same launch may succeed after a while.
 *                   noCapacity   nothing was launched; there is no such machine to give now.
 *                   refused      nothing was launched; a person must change something first.
 *                 An "error" beside the word has the message for a person. An error alone says that nothing was launched:
 *                 noCapacity by that code, refused by "protected", "denied" and "invalid", else later.
 *      find       must give providerID: that of the machine that the launch of this opId has made, or null. null says that
 *                 the command has looked everywhere (every zone, by token, by name and by tag) and there is none. A command
 *                 that could not look everywhere answers with an error.
 *      leave      without "error": the machine is in no group now, and it runs on. The code "atMinimum" says that the group
 *                 would become smaller than its minimum. It is no answer to a leave with refill.
 *      end        without "error": as terminate. A machine that is already going, or gone, is success, and the group does not
 *                 become smaller. "atMinimum" as in leave; it is no answer to an end without shrink.
 *      group      must give the group, as it is now, or null: the machine is in no group. name and size are required. size
 *                 is the number of machines that the group is to have, not the number that it has. Without min or max the
 *                 group has no such limit. template is any text that changes when a new member would be another machine.
 *                 Numbers are 0 to 1000000, texts at most 256 bytes.
 *
 * Exit status:
 *
 *      0     answered, also with "error"
 *      64    the command has no such operation (not for describe and terminate)
 *      75    (EX_TEMPFAIL) not now, ask again. The output is as above, or there is none. Nothing was launched, left, ended.
 *      else  failed. The last line of standard error becomes the message, and vesper tries again slowly.
 *
 * An "error" with none of the codes above is tried again like 75. The Node's condition vesper.sh/TerminationBlocked shows what
 * is wrong. Where an operation that changes something exits with another status, is killed, or prints no answer of the
 * protocol, vesper takes it for unknown: it may have been carried out.
 *
 * Rules for a command that launches and ends machines. Other tools had each of these faults:
 *
 *      - A wait that ends without an answer is "unknown", never a failure: the cloud may go on with the request.
 *      - Read the machine's state before you end it, and have one deletion of it under way at a time. If it is already going,
 *        that is success, and no group becomes smaller for it.
 *      - Compare the group's minimum with a size that was read for this very call, and count the other calls that run at
 *        the same time.
 *      - A launch that failed may still succeed later. Write the opId to the machine (client token, name, tag) in the request
 *        that creates it, so that find finds it then. A repeated launch goes on with that machine.
 *      - Look in every zone, by name and by tag, before you create a machine.
 *      - If nothing was launched, say so: a NodeClaim that is deleted then goes at once. If that is not sure, say "unknown".
 *
 * This release of vesper asks for launch and find (spec.disruption.onInterruption: Replace). It does not ask for leave, end and
 * group yet.
 *
 * A run may take 60 seconds; then its process group is killed. At most 16 runs go on at a time, the others wait in order.
 * An operation that changes something keeps its place while vesper checks the node once more: at most 12 do so at a time,
 * for at most 10 s each. The environment is empty but for PATH (default
 * /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin), HOME, and LANG (default C.UTF-8): secrets belong into files
 * that the command reads.
 */

#include "cloud.h"

#define CLOUD_EXEC_RUNNING_MAX 16u
#define CLOUD_EXEC_CHANGES_MAX 12u /* of those 16; the others are left to describe, list, find and group */

int cloud_exec_new(Env *env, const CloudConfig *config, CloudProvider **ret, const char **reterr_message);
