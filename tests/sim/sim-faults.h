/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What goes wrong on the way of a request: by chance, as the seed draws it, until an instant; and for those
 * that a test picks. Also the usual latency.
 */

#include "fake-api.h"
#include "http-inproc.h"

/* In thousandths of all requests. */
typedef struct SimChances {
        unsigned error; /* API: 409 (of writes), 429, 500, 503, 504, without effect */
        unsigned lie;   /* API: a write is carried out and answered 500 or 504 */
        unsigned lose_request, lose_reply, refuse;
        unsigned slow; /* up to slow_max_usec longer */
        usec_t slow_max_usec;
        unsigned cloud; /* cloud and metadata: the ways of above */
} SimChances;

typedef enum SimLoss {
        SIM_LOSE_REQUEST,
        SIM_LOSE_REPLY,
        SIM_LIE, /* API: carried out, answered 500 */
        SIM_REFUSE,
} SimLoss;

typedef struct SimFaults SimFaults;

SimFaults *sim_faults_new(Loop *loop, uint64_t seed);
SimFaults *sim_faults_free(SimFaults *f);
DEFINE_FREEP(SimFaults, sim_faults_free);

void sim_faults_chances(SimFaults *f, const SimChances *c, usec_t until_usec);
bool sim_faults_by_chance(const SimFaults *f); /* now */
/* The next n requests of this method whose URL and body contain these texts (NULL: any). */
void sim_faults_pick(SimFaults *f, HttpMethod method, const char *url, const char *body, SimLoss loss,
                     unsigned n);
/* How many of those picked have not come yet. */
unsigned sim_faults_left(const SimFaults *f);

/* For the hook of a transport. True: its answer will come, and soon. */
bool sim_faults_on_request(SimFaults *f, const HttpRequest *request, const char *peer, HttpFault *ret);
/* For the hook of the API server. True: a lie. */
bool sim_faults_on_api(SimFaults *f, const FakeRequest *request, FakeApiFault *ret);
const char *sim_fault_to_string(const HttpFault *f); /* "" for none */
