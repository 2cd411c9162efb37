/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Compute Engine's REST API v1 of one project, for both faces of the fake: an http_handler_t. Instances,
 * managed instance groups (zonal and regional) and the operations that change them. Time is the loop's. True
 * to the traps: a managed instance that is deleted directly comes back under the same name; deleteInstances
 * is DONE when it is accepted; resize chooses its own victims; TERMINATED is stopped, gone is 404; a project
 * that is not ours is a 404 as well; throttling may come as 403. Strict: bearer token, parameters,
 * requestId, zones; what is not played here is a 404 or a 400 that says so.
 *
 * https://cloud.google.com/compute/docs/reference/rest/v1
 */

#include "fake-rest.h"

typedef struct FakeGce FakeGce;

typedef struct FakeGceOptions {
        Loop *loop;
        const char *project;   /* the id; NULL: "vesper-test" */
        const char *zones;     /* that exist; NULL: "us-central1-a us-central1-b us-central1-c" */
        const char *token;     /* NULL: any bearer token is good */
        usec_t accept_usec;    /* from a request to its operation's RUNNING, and a group's DONE; 0: 1 s */
        usec_t delete_usec;    /* from a delete to gone; 0: 30 s */
        usec_t recreate_usec;  /* from gone to a managed instance's return; 0: 20 s */
        usec_t provision_usec; /* from its creation to RUNNING; 0: 10 s */
        usec_t wait_usec;      /* .../wait holds so long at most; 0: 120 s */
} FakeGceOptions;

FakeGce *fake_gce_new(const FakeGceOptions *options);
/* Who waits for operations must be gone before: free transports and servers first. */
FakeGce *fake_gce_free(FakeGce *f);
DEFINE_FREEP(FakeGce, fake_gce_free);

void fake_gce_handle(HttpExchange *x, void *fake_gce);

/* A running instance; group NULL: its own master, else a group there is, which then wants one more. */
void fake_gce_run(FakeGce *f, const char *zone, const char *name, const char *group);
/* scope: "zones/us-central1-a" or "regions/us-central1". */
void fake_gce_add_group(FakeGce *f, const char *scope, const char *name);
/* Any of the API's; "TERMINATED" is how a preempted instance ends. */
void fake_gce_set_status(FakeGce *f, const char *zone, const char *name, const char *status);
void fake_gce_protect(FakeGce *f, const char *zone, const char *name, bool protect);
void fake_gce_set_label(FakeGce *f, const char *zone, const char *name, const char *key, const char *value);
/* A stop waits so long as PENDING_STOP, unless noGracefulShutdown=true. */
void fake_gce_set_graceful(FakeGce *f, const char *zone, const char *name, usec_t graceful_usec);
/* NULL: it would not be found. */
const char *fake_gce_status(FakeGce *f, const char *zone, const char *name);
unsigned fake_gce_target_size(FakeGce *f, const char *group);
/* "zones/us-central1-a", "regions/us-central1" */
bool fake_gce_has_scope(const FakeGce *f, const char *scope);
bool fake_gce_has_group(const FakeGce *f, const char *group);
/* Instances that nobody has asked to delete. */
size_t fake_gce_n_alive(FakeGce *f);

/* The next n changes are accepted, but their operations end with this error, and nothing is done. */
void fake_gce_fail_operations(FakeGce *f, unsigned n, unsigned http_status, const char *code,
                              const char *message);
FakeRest *fake_gce_rest(FakeGce *f);
/* status 403 or 429: both are rateLimitExceeded. */
void fake_gce_throttle(FakeGce *f, unsigned n, unsigned status);
