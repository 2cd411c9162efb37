/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What must never happen, whatever goes wrong. Looks at the fake's store, its requests and the fake cloud
 * alone, and knows nothing of the daemons but who sent what; names of marks are written here as people read
 * them.
 *
 * At each change of the store, each request sent and each call of the cloud:
 *
 *      no finalizer of ours leaves a Node or NodeClaim while its instance is there (so no instance leaks)
 *      no instance is ended whose node is not being deleted; nor while pods are on it that a drain waits
 * for, before T one process does not end an instance again once it was told that this is done no pod is
 * evicted or deleted from a node for which nothing is announced, or that still takes pods no budget is
 * broken; no pod is deleted past its budget, or with less grace than its own, before T - grace; then it gets
 *      what time there is
 *      one process does not evict a pod again once it was told that this is done
 *      a person's cordon is not undone, and a node that a person opened is not closed again
 *      no guarded request is sent when the Lease, on the sender's own clock, has ended
 *      no process sends more than SIM_CHECK_PER_SECOND requests in a second
 */

#include "http-transport.h"
#include "sim-world.h"

#define SIM_CHECK_PER_SECOND 600u

typedef struct SimLife SimLife;

SimCheck *sim_check_new(SimWorld *w);
SimCheck *sim_check_free(SimCheck *c);
DEFINE_FREEP(SimCheck, sim_check_free);

/* NULL: all is well. The first one stays. */
const char *sim_check_violation(const SimCheck *c);
void sim_check_fail(SimCheck *c, const char *fmt, ...) _printf_(2, 3);

/* clean: its answer will come, and soon. */
void sim_check_sent(SimCheck *c, const SimLife *life, const HttpRequest *request, const char *peer,
                    bool clean);
void sim_check_handle_ec2(HttpExchange *x, void *world);
/* status: of the request of this step, as it was answered; 0: there was none. */
void sim_check_after_step(SimCheck *c, unsigned status);

/* Nothing of ours goes on: no node has a mark of ours left, no instance is without its node, and no request
 * was made beyond so many. */
bool sim_check_quiet(SimCheck *c, uint64_t requests_max);
uint64_t sim_check_n_requests(const SimCheck *c);
/* Evictions that were sent, and those that the API server carried out. */
uint64_t sim_check_n_evictions(const SimCheck *c, uint64_t *ret_done);
