/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Provider "ec2": describe by DescribeInstances, terminate by TerminateInstances, reboot by RebootInstances.
 *
 * Describe. Questions of one loop iteration go out as one request (filter instance-id, at most 100 ids and a witness),
 * within EC2's published rate for such requests (burst 100, then 20 a second; what waits is coalesced
 * further).
 *
 *      pending, running, stopping, stopped    present
 *      shutting-down                          terminating
 *      terminated                             gone
 *      not in the answer                      not found if the scope is proved, else unknown, with a message
 *                                             that says what would prove it
 *
 * With each instance shown comes whether it is the Node's: ec2-identity.h.
 *
 * The scope is proved when the zone in the providerID lies in our region, and the same credentials have
 * shown us, from this endpoint, an instance of this cluster (any of its Nodes). As long as they have shown none,
 * each request asks about the instance of one more Node (a witness, cloud_provider_set_witness()), each time
 * that of the next. A providerID without a zone proves nothing by itself: then this very instance must have been
 * seen before. Proofs are forgotten when the credentials become somebody else's. An answer that contradicts
 * the providerID's zone is unknown.
 *
 * Terminate. One id a request (a batch fails unevenly), burst 100, then 5 a second. It is its turn once the
 * region is known, keys are at hand and EC2 takes one more, turns counted that are held and not used. From
 * there nothing is waited for but a connection (and new keys, if EC2 refuses these), and the guard is asked
 * in the last moment. Not found is told as such only with proved scope, else it is CLOUD_DENIED: most likely
 * the wrong region or account.
 *
 * Reboot. One id a request, in the same line and within the same rate. An instance with a scheduled event system-reboot is moved to
 * another host by it, unless its maintenance options say otherwise. What EC2 has not answered, or answered with an error of its own
 * (5xx but throttling), is undecided.
 *
 * A providerID whose zone lies outside our region is CLOUD_INVALID and nothing is sent. Who knows of an instance no more than
 * its region asks for aws:///REGION/i-...: any of its zones will do.
 */

#include "cloud.h"

int cloud_ec2_new(Env *env, const CloudConfig *config, CloudProvider **ret, const char **reterr_message);
