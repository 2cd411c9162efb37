/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What to do about one Node whose machine may be off: the decision of out-of-service.h, as a pure function of
 * what is known. All times are loop_now() of one process.
 */

#include "time-util.h"

/* A node that restarts is silent for less: by our own sight, not by what its condition says. */
#define OUT_OF_SERVICE_SILENT_USEC USEC_PER_MINUTE
/* From one question to the next about one node, at least. */
#define OUT_OF_SERVICE_ASK_USEC USEC_PER_MINUTE
/* Of an older question the answer proves nothing any more: the machine may have been started meanwhile. */
#define OUT_OF_SERVICE_PROOF_USEC (30 * USEC_PER_SEC)

typedef enum OutOfServiceProof {
        OUT_OF_SERVICE_UNPROVED, /* it runs, or no answer that counts */
        OUT_OF_SERVICE_OFF,
        OUT_OF_SERVICE_GONE,
} OutOfServiceProof;

typedef struct OutOfServiceFacts {
        bool managed; /* our finalizer is on the Node */
        bool ready;
        bool tainted; /* whoever did so */
        bool marked;  /* the annotation says that the taint is, or was, ours */
        bool shared;  /* another Node says that it is the same machine */
        bool holds;   /* pods that a drain would wait for, or volumes, are left on it */
        bool view_stands;
        bool asking;  /* a question is under way */
        OutOfServiceProof proof; /* the last answer */
        usec_t now_usec;
        usec_t silent_usec;   /* since when it is seen not to be Ready, in a view that stands */
        usec_t asked_usec;    /* when the question was put that `proof` answers */
        usec_t next_ask_usec;
} OutOfServiceFacts;

typedef enum OutOfServiceStep {
        OUT_OF_SERVICE_LEAVE, /* nothing, until one of the facts changes */
        OUT_OF_SERVICE_WAIT,  /* nothing until *ret_until_usec */
        OUT_OF_SERVICE_ASK,
        OUT_OF_SERVICE_TAINT,
        OUT_OF_SERVICE_UNTAINT, /* the mark too; or the mark alone, where somebody else took the taint off */
} OutOfServiceStep;

OutOfServiceStep out_of_service_decide(const OutOfServiceFacts *f, usec_t *ret_until_usec);
