/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One fake cloud on virtual time behind an in-process transport, and questions to it, signed or not. */

#include "http-inproc.h"

#define RIG_KEY "AKIAIOSFODNN7EXAMPLE"
#define RIG_SECRET "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
#define RIG_REGION "eu-west-1"
#define RIG_START_USEC (UINT64_C(1790000000) * USEC_PER_SEC)

typedef struct CloudRig {
        VirtualTime *time;
        Loop *loop;
        HttpTransport *transport;
} CloudRig;

void rig_init(CloudRig *rig);
void rig_route(CloudRig *rig, const char *origin, http_handler_t handler, void *fake);
/* What hangs ends here: before the fakes go. */
void rig_stop(CloudRig *rig);
void rig_done(CloudRig *rig); /* after them */
void rig_run_for(CloudRig *rig, usec_t usec);
usec_t rig_now(const CloudRig *rig);

typedef struct CloudAsk {
        HttpCall *call;
        bool answered;
        unsigned status;
        char *body;
        HttpHeader *headers;
        size_t n_headers;
} CloudAsk;

void ask_done(CloudAsk *a);
#define _cleanup_ask_ _cleanup_(ask_done)

/* Without waiting; `a` must stay where it is. Fails the test if the call cannot begin. */
void rig_start(CloudRig *rig, CloudAsk *a, HttpMethod method, const char *url, const HttpHeader *headers,
               size_t n_headers, const char *body);
/* Time passes until the answer comes, an hour at most. */
void rig_wait(CloudRig *rig, CloudAsk *a);
const char *ask_header(const CloudAsk *a, const char *name);
/* Fails the test, saying what came, unless status and a part of the body are these, and our own readers
 * understand the body. */
void ask_expect(const CloudAsk *a, const char *what, unsigned status, const char *part);

/* How a request to AWS is signed; zeroed: as is right. */
typedef struct RigSigning {
        const char *key, *secret, *token, *region, *service;
        int64_t skew_usec;
        bool unsigned_;
} RigSigning;

void rig_start_aws(CloudRig *rig, CloudAsk *a, const char *service, const char *url, const char *type,
                   const char *target, const char *body, const RigSigning *signing);
