/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Provider "exec": any machine that a command can end: bare metal, a private cloud, a script around one's
 * own tools. packaging/examples/kind-nodes is a whole one, for the nodes of a kind cluster, and begins with how it
 * is tried.
 *
 *      [Provider]                              coordinator.conf
 *      Name=exec
 *      Command=/usr/local/bin/my-machines
 *
 * The command is run with one argument, for one machine:
 *
 *      COMMAND describe        COMMAND terminate        COMMAND list (for none: which ones are there)        COMMAND reboot
 *
 * The request. Standard input is one JSON object, and then it ends. What is not known is left out, and more fields
 * may come: ignore what you do not know. The version stays 1 for as long as fields are only added.
 *
 *      { "version": 1,
 *        "op": "describe" | "terminate" | "list" | "reboot",         list: no more than this
 *        "opId": "terminate-6f0c...",                     terminate and reboot only
 *        "pool": "workers",                               terminate and reboot only: the NodePool
 *        "providerID": "rack:7",
 *        "node": { "name": "worker-7",
 *                  "systemUUID": "4c4c4544-...", "machineID": "9d0f...",
 *                  "addresses": [ { "type": "InternalIP", "address": "10.0.0.7" } ] } }
 *
 *      opId          is the same for every repetition of one termination or reboot: a call that comes twice must do its
 *                    work once.
 *      pool          missing where the Node has no claim any more.
 *      providerID    as the Node had it when it was adopted; of a Node without spec.providerID it is "exec://" and the
 *                    Node's name.
 *      node.name     the Node's name, the one thing that a kubelet cannot choose: the API server lets it write no other
 *                    Node. Missing only where the Node has left and was never seen.
 *      systemUUID    of the machine's firmware, and machineID of its installation (/etc/machine-id), as the Node told them
 *                    when it was adopted.
 *      addresses     as the Node tells now; missing when it has left.
 *
 * Whose machine it is, is the command's business: vesper proves nothing here. All but the name is what a kubelet has once
 * written about itself, and whoever is root on one node can have it write another machine's. So look the machine up by
 * node.name in an inventory that nodes cannot write to, and answer with the error "invalid" where that leads to another
 * providerID or systemUUID than the request says.
 *
 * The answer. Standard output, at most 1 MiB, is one JSON object; fields that are not needed may be left out, unknown
 * ones are ignored; "error" may also be a string, the message:
 *
 *      { "state": "present" | "off" | "terminating" | "gone" | "unknown",
 *        "error": { "code": "protected" | "denied" | "invalid" | ..., "message": "for a person" },
 *        "instances": [ { "providerID": "rack:7", "state": "present" } ],      list only
 *        "retryAfter": SECONDS }
 *
 *      describe   must give a state. "gone" is final, and believed at once: the machine does not exist and cannot come
 *                 back. A command that does not know the machine must be sure that it looked in the right place before
 *                 it says so, else "unknown". "terminating" is final, too: on its way out, and cannot come back. "off" is
 *                 what is shut off, and may be started again: it runs nothing at this moment, so that its pods may be
 *                 started elsewhere and its volumes be written by another machine. A command that cannot be sure of
 *                 that, or that the request reached the machine's power switch, says "present".
 *      terminate  without "error": accepted, or there was nothing to end; {} says all of that. The node is removed when
 *                 an answer, this one or that of a later describe, says "gone" or "terminating". Until then describe is
 *                 asked with growing pauses, and after a minute terminate again, with the same opId.
 *
 *      list       must give instances, all of them, or an error: no list is no empty list. An instance is listed where this
 *                 cluster brought it up for a node of its own, be it one that has not joined yet; spares that wait to be
 *                 used are not. providerID is what describe would be asked (of a Node without spec.providerID "exec://" and
 *                 its name), state as above. One that is "present" or "off" and has neither Node nor NodeClaim in two lists at least
 *                 ten minutes apart is reported (instance-orphans.h); nothing is done to it. Asked every five minutes; a
 *                 command that cannot say answers with the error code "unsupported", and is asked no more until the next
 *                 leader comes. So a command must not take what is not "describe" for "terminate".
 *
 *      reboot     optional; asked where the node of a machine is drained for a reboot that is announced, by a cloud whose own call
 *                 alone ends that ([Policy] Reboot=early of its agent; vesper(7)). Without "error": it was told to. An error, or exit
 *                 status 75, says that it was not, and it is told again for as long as the node has its slot. What ends in another
 *                 way may have told it: it is not told again. A command that cannot reboot answers with the error code
 *                 "unsupported": the Node's Events say so once, and its agent puts the node back into service.
 *
 * Exit status 0: answered (also with "error"). 75 (EX_TEMPFAIL): not now, ask again; output as above, or
 * none. Anything else: failed; the last line of standard error becomes the message, and it is tried again
 * slowly. "error" without one of the three codes is tried again like 75. What is wrong stands in the Node's condition
 * vesper.sh/TerminationBlocked.
 *
 * A run may take 60 seconds; then its process group is killed. At most 16 run at a time, the others wait in
 * order; what changes something keeps its place while vesper looks at the node once more, at most 12 do so at a time, for at most
 * 10 s each. The environment is empty but for PATH (default
 * /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin), HOME, and LANG (default C.UTF-8): secrets
 * belong into files that the command reads.
 */

#include "cloud.h"

#define CLOUD_EXEC_RUNNING_MAX 16u
#define CLOUD_EXEC_CHANGES_MAX 12u /* looks go on, whatever those who have a place wait for */

int cloud_exec_new(Env *env, const CloudConfig *config, CloudProvider **ret, const char **reterr_message);
