/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The metadata server of one Compute Engine VM, for both faces of the fake: an http_handler_t. Strict where
 * the real one is (cloud.google.com/compute/docs/metadata/querying-metadata, .../predefined-metadata-keys):
 *
 *      no Metadata-Flavor: Google, or X-Forwarded-For             403
 *      a directory without its slash                              301
 *      alt on a plain listing, or wait_for_change on one          400
 *      what is not there                                          404
 *      the server itself moves                                    503, hanging GETs included
 *
 * Every answer carries Metadata-Flavor, every value an ETag. A hanging GET (wait_for_change, last_etag,
 * timeout_sec) ends at a change, or with the same value and ETag when its time is up; without last_etag only
 * what changes from now on counts. The warning before a live migration is given only to a VM that asked for
 * maintenance-event itself, not for a parent of it, since the last event. Time is the loop's, real or
 * virtual.
 */

#include "http-message.h"
#include "loop.h"

typedef struct FakeGceMetadata FakeGceMetadata;

/* Every text may be NULL but the name. */
typedef struct FakeGceMetadataOptions {
        const char *name;
        const char *id;             /* decimal; "4520031799277581759" */
        const char *project_id;     /* "fake-project" */
        const char *project_number; /* "739419398126" */
        const char *zone;           /* "us-central1-a" */
        const char *machine_type;   /* "n2-standard-4" */
        const char *created_by; /* "projects/739419398126/zones/Z/instanceGroupManagers/G"; NULL: no MIG made
                                   it */
        const char *cluster_name; /* of GKE */
        bool spot;                /* and so it cannot migrate */
        bool terminates; /* on-host-maintenance TERMINATE; without a GPU it hears of no maintenance */
        bool gpu;
        bool graceful_shutdown; /* shutdown-details are there */
        bool no_service_account;
} FakeGceMetadataOptions;

/* Copies what it is given. */
FakeGceMetadata *fake_gce_metadata_new(Loop *loop, const FakeGceMetadataOptions *options);
/* What hangs must be gone before: free the transports first. */
FakeGceMetadata *fake_gce_metadata_free(FakeGceMetadata *f);
DEFINE_FREEP(FakeGceMetadata, fake_gce_metadata_free);

void fake_gce_metadata_handle(HttpExchange *x, void *fake_gce_metadata);

/* -- notices ------------------------------------------------------------------------------------------- */

/* instance/preempted. Google never takes it back. */
void fake_gce_metadata_set_preempted(FakeGceMetadata *f, bool preempted);
/* instance/maintenance-event says so at once: any text; "NONE" ends an event. */
void fake_gce_metadata_set_maintenance(FakeGceMetadata *f, const char *event);
/* The host goes into maintenance after lead_usec, for lasts_usec (USEC_INFINITY: until set_maintenance()).
 * True: the VM is warned from now on. False: it learns when it happens, or never if its policy is TERMINATE
 * without a GPU. */
bool fake_gce_metadata_migrate(FakeGceMetadata *f, const char *event, usec_t lead_usec, usec_t lasts_usec);

/* instance/upcoming-maintenance. */
typedef enum FakeGceUpcoming {
        FAKE_GCE_UPCOMING_EMPTY,       /* {} */
        FAKE_GCE_UPCOMING_NONE,        /* NONE */
        FAKE_GCE_UPCOMING_ERROR,       /* {"error": "no notifications have been received yet, ..."} */
        FAKE_GCE_UPCOMING_UNAVAILABLE, /* 503 */
        FAKE_GCE_UPCOMING_ABSENT,      /* 404 */
} FakeGceUpcoming;

/* How it says that nothing is planned; all of these have been seen. */
void fake_gce_metadata_set_upcoming_none(FakeGceMetadata *f, FakeGceUpcoming none);
/* A window: type "SCHEDULED", ...; status "PENDING", "ONGOING". */
void fake_gce_metadata_set_upcoming(FakeGceMetadata *f, const char *type, const char *status,
                                    usec_t start_wall_usec, usec_t end_wall_usec, bool can_reschedule);
/* Any JSON object. */
void fake_gce_metadata_set_upcoming_text(FakeGceMetadata *f, const char *json);
/* instance/shutdown-details/stop-state: "PENDING_STOP" with max-duration; "UNSPECIFIED" is idle. */
void fake_gce_metadata_set_stop_state(FakeGceMetadata *f, const char *state, unsigned max_duration_sec);
/* Nothing is announced any more. */
void fake_gce_metadata_withdraw(FakeGceMetadata *f);

/* -- faults -------------------------------------------------------------------------------------------- */

/* instance/name says this instead; NULL: it is not there. */
void fake_gce_metadata_set_name(FakeGceMetadata *f, const char *name);
/* ... and instance/id this. */
void fake_gce_metadata_set_id(FakeGceMetadata *f, const char *id);
/* What a pod on GKE with Workload Identity sees: ids, zone, host name, cluster name and tokens; no notices.
 */
void fake_gce_metadata_intercept(FakeGceMetadata *f, bool on);
/* The server moves: 503 for so long, and to everybody who waits. */
void fake_gce_metadata_restart(FakeGceMetadata *f, usec_t lasts_usec);

typedef enum FakeGcePart {
        FAKE_GCE_TOKEN = 1 << 0, /* service-accounts/.../token */
        FAKE_GCE_DATA = 1 << 1,
        FAKE_GCE_ALL = FAKE_GCE_TOKEN | FAKE_GCE_DATA,
} FakeGcePart;

/* Of the next n requests (UINT_MAX: for ever; 0: none any more) to these parts. */
void fake_gce_metadata_hang(FakeGceMetadata *f, unsigned parts, unsigned n); /* no answer, ever */
void fake_gce_metadata_fail(FakeGceMetadata *f, unsigned parts, unsigned n, unsigned status);
void fake_gce_metadata_garble(FakeGceMetadata *f, unsigned parts, unsigned n,
                              const char *body); /* 200 with that */
/* No answer carries Metadata-Flavor: somebody else answers at that address. */
void fake_gce_metadata_set_stranger(FakeGceMetadata *f, bool on);

/* -- what came ----------------------------------------------------------------------------------------- */

size_t fake_gce_metadata_n_gets(const FakeGceMetadata *f);
size_t fake_gce_metadata_n_waiting(const FakeGceMetadata *f); /* hanging GETs now */
/* That token was given and has not expired. */
bool fake_gce_metadata_token_is_good(const FakeGceMetadata *f, const char *token);
