/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * vesper-coordinator: what needs the whole cluster. One of its replicas leads by Lease; all keep the view
 * warm.
 *
 *      cluster/ --dirty key--> one work queue --> reconcile(key): termination/ --> API server, cloud/
 *      (view)                  (leading.c)        adoption, release, node-termination, orphan
 *
 * Level-triggered: reconcile(key) looks at the view only and may be called at any time, any number of times,
 * by any leader.
 */

#include "cloud-registry.h"
#include "coordinator-config.h"
#include "http-message.h"
#include "kube-client.h"
#include "wakeup.h"

typedef struct Coordinator Coordinator;
struct SqsClient; /* sqs-client.h */

/* Who this process is in the Lease: [Lease] Identity= (else the host's name), "_" and a UUID of its own.
 * Both replicas may have been given the same configuration, and two of one name would both lead. Free it;
 * NULL: out of memory. */
char *coordinator_identity(const CoordinatorConfig *config, Random *random);

/* client and providers are made by the caller (main, or a simulation) and outlive the coordinator; so does
 * config. identity: of the Lease; must be new for each process. */
int coordinator_new(Env *env, const CoordinatorConfig *config, KubeClient *client, const CloudRegistry *cloud,
                    const char *identity, Coordinator **ret);
/* The interruption queue is heard while it leads. Borrowed; before the start. */
void coordinator_set_queue(Coordinator *c, struct SqsClient *queue);
/* Stops without shutdown actions ("kill"); the Lease is not released. */
Coordinator *coordinator_free(Coordinator *c);
DEFINE_FREEP(Coordinator, coordinator_free);
int coordinator_start(Coordinator *c);
/* Files that config names are to be read again. */
void coordinator_read_files(Coordinator *c);
/* Reloadable values of config have changed: whatever waits by the old ones is looked at again. */
void coordinator_reconfigured(Coordinator *c);
/* A clean stop: guarded work ends, the Lease is released, then done() (within 2 s in any case). */
void coordinator_stop(Coordinator *c, void (*done)(void *userdata), void *userdata);

/* An http_handler_t each: what answers on [Health] Listen= (/healthz: it runs; /readyz: its view of the
 * cluster is complete, 503 before that), and on [Metrics] Listen= (/metrics, Prometheus text, and the same
 * two). */
void coordinator_handle_health(HttpExchange *x, void *coordinator);
void coordinator_handle(HttpExchange *x, void *coordinator);
void coordinator_handle_webhook(HttpExchange *x, void *coordinator); /* node-webhook.h */

bool coordinator_is_leader(const Coordinator *c);
bool coordinator_is_synced(const Coordinator *c);
/* Reports all unfinished work of this process (wakeup.h). */
void coordinator_next_wakeup(const Coordinator *c, Wakeups *w);
