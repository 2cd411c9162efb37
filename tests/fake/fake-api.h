/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The API server: fake_api_handle() is an http_handler_t (userdata: the FakeApi). Routing, authentication,
 * faults and the request log live in fake-api.c; each verb in a file of its own (fake-handlers.h).
 */

#include "fake-authz.h"
#include "fake-store.h"
#include "http-message.h"
#include "http-transport.h"
#include "list.h"
#include "random.h"

typedef struct FakeApi FakeApi;

/* What is answered where protobuf is asked for first. */
typedef enum FakeEncoding {
        FAKE_ENCODING_PROTOBUF, /* that, of the kinds that have it (fake-protobuf.h); lists, watches, and
                                   Statuses */
        FAKE_ENCODING_JSON,     /* as by a server, or something in between, that does not speak it */
        FAKE_ENCODING_EITHER,   /* now that, now JSON */
} FakeEncoding;

typedef struct FakeApiOptions {
        FakeEncoding encoding;
        usec_t bookmark_usec;  /* 0: 60 s */
        usec_t min_watch_usec; /* a watch without timeoutSeconds lasts 1-2 times this; 0: 30 min */
        size_t log_limit;      /* newest requests kept; 0: 100,000 */
        bool no_progress;      /* no bookmark on a watch without news: etcd does not report its progress */
} FakeApiOptions;

/* What a test wants to happen to one request. */
typedef struct FakeApiFault {
        unsigned status;   /* != 0: answered so: 409, 429, 500, 503, 504, ... */
        bool takes_effect; /* ... after the request was carried out: the answer is a lie */
        unsigned retry_after_sec;
        const char *reason; /* Status.reason; NULL: the usual one of that code */
        const char *message;
        bool plain;        /* no Status body, as from something in between */
        bool drop;         /* the connection breaks before an answer (takes_effect: and after the act) */
        usec_t delay_usec; /* before the server looks at it */
        bool cut; /* of an answer in protobuf, or of the first event of a watch, the end is missing */
} FakeApiFault;

/* Each request that is not for health; *ret_fault is zeroed. */
typedef void (*fake_api_fault_t)(const FakeRequest *request, FakeApiFault *ret_fault, void *userdata);

/* An annotation: a webhook answers the evictions of this pod, "403 it is being migrated", for as long as it is there. */
#define FAKE_EVICTION_WEBHOOK "fake.vesper.test/eviction-webhook"

/* One answered request. A watch is logged when it begins. */
typedef struct FakeLogEntry {
        usec_t at_usec; /* loop_now() when it arrived */
        char *user, *method, *path, *query;
        FakeVerb verb;
        const FakeResource *resource; /* NULL: none of ours */
        char *subresource;
        unsigned status;
} FakeLogEntry;

FakeApi *fake_api_new(Loop *loop, Random *random, FakeStore *store, FakeAuthz *authz,
                      const FakeApiOptions *options);
FakeApi *fake_api_free(FakeApi *a); /* open exchanges are cut */
DEFINE_FREEP(FakeApi, fake_api_free);

void fake_api_handle(HttpExchange *x, void *api);
/* The schema that a CRD gives a custom resource (fake-schema.h); it is taken. Without one every object is
 * fine. */
void fake_api_set_schema(FakeApi *a, FakeResourceId id, cJSON *schema);

/* How ValidatingWebhookConfigurations' webhooks are reached; it must outlive the API (NULL: not at all, and
 * failurePolicy decides). Their URLs go there as they are, a service's as https://NAME.NAMESPACE.svc:PORT/PATH. A
 * request waits meanwhile; nobody else does. */
void fake_api_set_webhook_transport(FakeApi *a, HttpTransport *transport);

/* No webhook is asked about what users whose names begin so do, as matchConditions would have it; NULL: about everybody. Static. */
void fake_api_spare_from_webhooks(FakeApi *a, const char *prefix);

/* -- faults -------------------------------------------------------------------------------------------- */

void fake_api_set_fault(FakeApi *a, fake_api_fault_t fault, void *userdata); /* NULL: none */
/* Every request before this instant ends in a broken connection, and watches are cut. */
void fake_api_away_until(FakeApi *a, usec_t until_usec);
void fake_api_cut_watches(FakeApi *a);
/* No byte comes over any watch before this instant; nothing is lost. */
void fake_api_stall_watches(FakeApi *a, usec_t until_usec);
/* The same for the watches of one user, as of an API server that lies behind the others; the last call counts. */
void fake_api_deafen(FakeApi *a, const char *user, usec_t until_usec);
/* The same for everybody's watches of one kind: what happens to two kinds is heard of in another order. */
void fake_api_mute(FakeApi *a, FakeResourceId id, usec_t until_usec);
/* When fake_api_stall_watches() or fake_api_mute() last ended, or will end, for this kind; 0: neither was. */
usec_t fake_api_unheard_until(const FakeApi *a, FakeResourceId id);
/* Each watch tells of what happens up to so much later than the others do, as those of a real server; 0: all
 * at once. */
void fake_api_lag_watches(FakeApi *a, usec_t usec);
/* Until this instant a watch that begins anew is told some of what its client has seen already, and what
 * comes together comes in another order between objects, never within one; the last is the last. */
void fake_api_disorder_watches(FakeApi *a, usec_t until_usec);
/* The header Date of each answer from now on, whatever the time; "": there is none; NULL: it tells the time. Static. */
void fake_api_set_date(FakeApi *a, const char *date);
size_t fake_api_n_watches(const FakeApi *a);

/* -- the log ------------------------------------------------------------------------------------------- */

size_t fake_api_log_size(const FakeApi *a);
const FakeLogEntry *fake_api_log_at(const FakeApi *a, size_t i); /* oldest first; NULL past the end */
/* All requests since the start (or the last reset) with that verb, resource and subresource (NULL: the
 * object itself). */
uint64_t fake_api_count(const FakeApi *a, FakeVerb verb, FakeResourceId id, const char *subresource);
/* The same among answers of this status (0: any). */
uint64_t fake_api_count_status(const FakeApi *a, FakeVerb verb, FakeResourceId id, const char *subresource,
                               unsigned status);
uint64_t fake_api_count_all(const FakeApi *a);
void fake_api_log_reset(FakeApi *a);
/* [{time, user, verb, method, path, query, status}, ...] and {"create pods/eviction 201": 30, ...} */
cJSON *fake_api_log_json(const FakeApi *a);
cJSON *fake_api_counters_json(const FakeApi *a);
