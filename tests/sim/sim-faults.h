/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What goes wrong on the way of a request: in windows of time, by chance; and for those that a test picks.
 * Also the usual latency, which is one of three classes.
 *
 * Whether a window takes a request is drawn from the window's own seed, who sends it, its method and path,
 * and how often this one has sent that before: so what becomes of one request does not depend on what else
 * goes on, and a schedule without one of its windows plays the others as before.
 */

#include "fake-api.h"
#include "http-inproc.h"

typedef enum SimFaultKind {
        SIM_FAULT_ERROR,        /* API: 409 (of writes), 429, 500, 503, 504, without effect */
        SIM_FAULT_FLOW_CONTROL, /* API: 429 with Retry-After, as priority and fairness answers */
        SIM_FAULT_LIE,          /* API: a write is carried out and answered 500 or 504 */
        SIM_FAULT_REFUSE,       /* API */
        SIM_FAULT_LOSE_REQUEST, /* API */
        SIM_FAULT_LOSE_REPLY,   /* API */
        SIM_FAULT_SLOW,         /* up to max_usec longer, either way */
        SIM_FAULT_CLOUD,        /* cloud and metadata: refused, lost either way, or 503 */
        SIM_FAULT_PARTITION,    /* API: requests are lost */
        SIM_FAULT_PARTITION_CLOUD, /* cloud and metadata */
        SIM_FAULT_TURNED_AWAY, /* API: evictions are answered 429 with Retry-After, as a flood of them is */
        SIM_FAULT_LEASE_SLOW,  /* API: requests about a Lease take max_usec */
        SIM_FAULT_LEASE_LOST,  /* API: they are lost */
        SIM_FAULT_GARBLED,     /* API: protobuf is cut: a reply, or the first event of a watch */
        SIM_FAULT_LATE_ANSWER, /* API: what is read comes up to max_usec after it was true; a third of that at least */
        _SIM_FAULT_KIND_MAX,
} SimFaultKind;

typedef struct SimWindow {
        SimFaultKind kind;
        usec_t from_usec, until_usec; /* on the clock of the world */
        unsigned permille; /* of the requests */
        usec_t max_usec;
        char *who; /* process; NULL: all. Of a window that was added: its copy */
        uint64_t seed;
} SimWindow;

/* In thousandths of all requests. */
typedef struct SimChances {
        unsigned error, lie, lose_request, lose_reply, refuse, slow, cloud;
        usec_t slow_max_usec;
} SimChances;

/* How long requests to the API server and to the cloud take where nothing goes wrong. */
typedef enum SimLatency {
        SIM_LATENCY_FAST,   /* 1 to 9 ms; the cloud takes 60 ms more */
        SIM_LATENCY_MEDIUM, /* 50 to 300 ms */
        SIM_LATENCY_SLOW,   /* each second one 1 to 8 s, of what is read almost all of that on the way back; the others,
                               Leases and the begin of watches as MEDIUM */
        /* 2 ms each way, the cloud's too, controllers take their average time, and daemons wait without
         * jitter: no random number decides which of two things comes first */
        SIM_LATENCY_EVEN,
        _SIM_LATENCY_MAX,
} SimLatency;

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

void sim_faults_add(SimFaults *f, const SimWindow *window);
/* A window for each of these, instead of all that were there. */
void sim_faults_chances(SimFaults *f, const SimChances *c, usec_t until_usec);
void sim_faults_stop(SimFaults *f); /* no window any more */
bool sim_faults_by_chance(const SimFaults *f); /* now */
void sim_faults_set_latency(SimFaults *f, SimLatency latency); /* FAST at first */
/* The next n requests of this method whose URL and body contain these texts (NULL: any). */
void sim_faults_pick(SimFaults *f, HttpMethod method, const char *url, const char *body, SimLoss loss,
                     unsigned n);
/* How many of those picked have not come yet. */
unsigned sim_faults_left(const SimFaults *f);

/* For the hook of a transport. True: its answer will come, and soon. */
bool sim_faults_on_request(SimFaults *f, const char *who, const HttpRequest *request, const char *peer,
                           HttpFault *ret);
/* For the hook of the API server; who: NULL: none of ours. True: a lie. */
bool sim_faults_on_api(SimFaults *f, const char *who, const FakeRequest *request, FakeApiFault *ret);
const char *sim_fault_to_string(const HttpFault *f); /* "" for none */
