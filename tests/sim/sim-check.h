/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What must never happen, whatever goes wrong. Looks at the fake's store, its log of requests and the fake
 * cloud alone, and knows nothing of the daemons but who sent what; names of marks are written here as people
 * read them. A violation begins with the name of its invariant:
 *
 *   finalizer   none of ours leaves a Node or NodeClaim while its instance is there; one that was lost by
 *               accident is put back. It may leave a person's claim that was refused, if that was
 *               never adopted or another claim has the instance
 *   leak        when all is over no instance is without its node, and no claim
 *   ended       an instance is told to end only if its node (or claim) is being deleted and, before T, no
 *               pod that a drain waits for is on it, as whoever ends it has seen by a consistent list of his
 *               own, a few seconds old when the request leaves, and no volume is attached that moved in the last two minutes
 *               and while several Nodes say that they are that instance, for none of them
 *   chosen      a coordinator deletes a claim only where its Node is being deleted or tells of its end, or
 *               its instance is gone, and a Node only where its claim is being deleted, or to repair it
 *   doubt       no coordinator makes a second claim of a machine its own while the first is there, which it was before
 *   repair      no node is deleted to be repaired that is Ready, or was less than `after` ago by its own Node object, or
 *               that tells of its end, that a person has cordoned, or whose machine is off. Where a rule says Reboot:
 *               a coordinator asks for a reboot only of a node that has been ill for as long as the rule says, both since its
 *               illness began and since the first boot in it; it names the boot that the node shows, which the claim names, too. For one
 *               illness the coordinators together ask for the end of one boot; two illnesses are one where the node was well for
 *               less than five minutes between them. A coordinator deletes a node only if such a reboot has not helped, or the agent
 *               has not asked for a slot within five minutes after this leader had asked. No agent reboots its machine but for that, or for a person
 *   off         the taint out-of-service is put by a coordinator only on a Node that is not Ready, whose machine is off, or was
 *               when the cloud was asked; it is not left on one that is Ready
 *   evicted     no pod is evicted or deleted from a node for which nothing is announced, or that still
 *               takes pods
 *   budget      no pod goes against its PDB
 *   taken       a coordinator takes hold of no more available nodes than their NodeDisruptionBudget has let go, but of
 *               those that a notice or T ends
 *   charged     in the status of a NodeDisruptionBudget no more nodes that are Ready are charged than it allows
 *   admitted    the webhooks together let no more deletions of available nodes pass than it allows
 *   holder      no charge goes from that status while its holder stands: a reboot slot, or the deletion of a Node that is being
 *               deleted; and a slot is granted, or a deletion let pass, only if the node is charged for it: two holders never share
 *               one charge
 *   paused      a coordinator takes hold of none while a person has paused removals, but of those
 *   gate        a coordinator sends no eviction to a budget that it sees closed, but a few to one that allows nothing as it stands
 *   protected   a coordinator does not touch a pod that opted out while nothing forces: neither an
 *               interruption, as its node tells, nor T
 *   daemon      DaemonSet, static and mirror pods are left alone
 *   grace       nothing is deleted or cut short before T - grace, then each gets min(its own, time left);
 *               what could have been told in time was; nothing is promised beyond T
 *   running     no pod is taken off the API while its containers run
 *   cordon      a person's cordon is not undone; a node that a person opened is not closed again, nor
 *               emptied further
 *   notice      an announced end is acted upon, by agent and coordinators, is not taken off before its giver
 *               may have withdrawn it, and no node is drained twice for one notice and boot, by whose id the
 *               two can be told; for notices of all kinds, by the rules of [Policy]: sim-notices.h
 *   drained     Drained is said only after a consistent list of the node's pods by whoever says it, in which
 *               nothing was left to wait for
 *   leader      no guarded request is sent when the Lease is another's, or has ended on the sender's clock,
 *               and nobody says until then that he leads; it passes from one to another only when it has run
 *               out or was given up
 *   precondition  a patch of a Node carries the version it was decided on, the end of a pod its uid
 *   window      no process has more evictions under way than evictor.h allows it
 *   repeats     nobody asks again for what he was told is done: evictions, ends of instances; nor,
 *               within a minute, for the end that a provider's command has accepted
 *   late        T, or a notice's time, passes and all has been told to go
 *   marks       when all is over no mark and no cordon of ours is left
 *   kept        when no Node or NodeClaim is being deleted no coordinator says, in its metrics, that it
 *               removes one, or has evictions to send
 *   pool        when all is over the status of the NodePool counts the nodes that there are and those that are
 *               being removed, and its conditions agree with that
 *   slots       no more nodes hold a slot to reboot than [Budget] MaxConcurrentReboots=, counted those whose agents
 *               have told them to reboot on one and that are not back, and no agent reboots its machine but on a
 *               slot that its node holds then: so no more begin to at once
 *   early       (sim-events.h) the cloud is told to reboot a machine only while its node is drained for that, and once for each
 *               event
 *   acknowledged  (sim-events.h) an event is acknowledged only while all nodes that it names are drained for it
 *   queue       (sim-queue.h) what the interruption queue announces is on the claim in time, and before the message is deleted;
 *               no message goes that somebody else may want; nothing that stands there is lost but by time
 *   brake       (sim-brake.h) a coordinator ends no more machines than max(10, 10 %) because of the queue alone, and none that AWS
 *               announces is lost for that
 *   told        (sim-queue.h) when all is over no node of no pool says DrainInProgress, and one that says Drained is closed and empty
 *   hook        (sim-queue.h) a group is told to go on when its node is drained, or Ready, and waits until then
 *   storm       no process sends more than SIM_CHECK_PER_SECOND requests in a second, nor one request to one
 *               object more than SIM_CHECK_SAME_PER_SECOND times, nor all of them more than the whole life
 *               calls for
 *   asleep      each thing that a daemon has not finished has a timer, a call under way or a watch that will wake it, as the daemon's
 *               own modules report (wakeup.h)
 *   seen        (sim-seen.h) conditions, status, annotations, metrics, Events, and the lines of vesperctl status and explain agree with
 *               the world: counts, times, reasons, and the object that each names
 *   launch      (sim-check-launches.c) a machine is launched only for a claim that carries the token of the request already and is
 *               in the place of one whose end the cloud has announced, or that is repaired, in a pool that says Replace; one claim
 *               has one token; no two machines live in the place of one; when all is over each launched machine is one claim's, or
 *               ended, and each machine that the pool had to replace has a successor, where the cloud had one to give
 *   run         the world itself: time that stands still
 *
 * That all comes to its end within a bound once nothing goes wrong any more is sim-plan's.
 *
 * Promises about time (late, some of notice, grace, gate, cordon) are held only where nothing is in the way:
 * after sim_check_promise(), and so long as sim_check_trouble() is not told of any.
 *
 *      sim-check         the store's changes, and who caused them
 *      sim-check-pods    sim-check-nodes    sim-check-calls (requests, Lease, cloud)    sim-check-time    sim-check-asleep
 *      sim-check-launches
 */

#include "http-transport.h"
#include "sim-world.h"

#define SIM_CHECK_PER_SECOND 800u
#define SIM_CHECK_SAME_PER_SECOND 10u

typedef struct SimLife SimLife;

SimCheck *sim_check_new(SimWorld *w);
SimCheck *sim_check_free(SimCheck *c); /* before its world */
DEFINE_FREEP(SimCheck, sim_check_free);

/* NULL: all is well. The first one stays. */
const char *sim_check_violation(const SimCheck *c);
/* etcd is about to be what it was: what the check knew of objects that come back, and of what was done to them, is over.
 * What cannot be known of that before one has asked is passed over for as long as it takes to ask: who leads, and a
 * node that was seen empty. */
void sim_check_restoring(SimCheck *c);
/* Of the run itself. */
void sim_check_fail(SimCheck *c, const char *fmt, ...) _printf_(2, 3);

/* From now on promises about time are held, too. */
void sim_check_promise(SimCheck *c);
/* ... but not for so long: something is in the way. */
void sim_check_trouble(SimCheck *c, usec_t usec);

/* clean: its answer will come, and soon; delay_usec: so long it takes there and back, at least. */
void sim_check_sent(SimCheck *c, const SimLife *life, const HttpRequest *request, const char *peer,
                    bool clean, usec_t delay_usec);
/* who: "USER NODE": this user was answered a consistent list of that node's pods, so many of them to wait for. */
void sim_check_note_proof(SimCheck *c, const char *who, size_t left);
/* Its agent tells this machine to reboot: on a slot, that is. */
void sim_check_told_to_reboot(SimCheck *c, SimMachine *m);
/* The request of this step is carried out, and answered with a failure. */
void sim_check_note_lie(SimCheck *c);
/* What was announced to this machine is over, and is announced anew: the same id is another notice from now on. */
void sim_check_taken_back(SimCheck *c, const SimMachine *m);
/* A webhook has let its deletion pass, which had not begun. */
void sim_check_admitted(SimCheck *c, const SimMachine *m);
void sim_check_handle_ec2(HttpExchange *x, void *world);
/* The command that this process ran (sim-exec.h) ends a machine; answers so, and says with it that it ends;
 * says so when it is asked how the machine is. */
void sim_check_exec_ends(SimCheck *c, const SimProcess *p, const SimMachine *m);
void sim_check_exec_accepted(SimCheck *c, const SimProcess *p, const SimMachine *m, bool says_end);
void sim_check_exec_saw_end(SimCheck *c, const SimProcess *p, const SimMachine *m, bool clean);
/* The command is called with "launch", and has carried that out (sim-stock.h). A person deletes this claim. */
void sim_check_launch_sent(SimCheck *c, const SimProcess *p, const cJSON *input);
void sim_check_launched(SimCheck *c, const SimOrder *o);
void sim_check_claim_unwanted(SimCheck *c, const cJSON *claim);
/* status: of the request of this step, as it was answered; 0: there was none. */
void sim_check_after_step(SimCheck *c, unsigned status);
/* Called after a step of the process. Checks at most once a second that the process has something that wakes
 * it (wakeup.h). */
void sim_check_asleep(SimCheck *c, SimProcess *p);

/* Nothing of ours goes on: what is left over, and whether more requests than these were sent. */
bool sim_check_quiet(SimCheck *c, uint64_t requests_max);
uint64_t sim_check_n_requests(const SimCheck *c);
/* Evictions that were sent, and those that the API server carried out. */
uint64_t sim_check_n_evictions(const SimCheck *c, uint64_t *ret_done);
