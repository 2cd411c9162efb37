/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What people and the receiver of [Notify] are told of a drain for what the interruption queue told (heard-drain.h): log
 * lines, Events on the Node and its pods, a message for each phase. Decides nothing.
 */

#include "heard-rule.h"
#include "node-drain.h"
#include "notice.h"
#include "termination-context.h"

/* What is written on the Node, and said once the API server has it. */
typedef enum HeardStep {
        HEARD_STEP_PROGRESS, /* pods left: nothing to say */
        HEARD_STEP_CORDONED,
        HEARD_STEP_DRAINED,
        HEARD_STEP_EXPIRED,
        HEARD_STEP_ENDED, /* HeardVoice.why */
        _HEARD_STEP_MAX,
} HeardStep;

typedef struct HeardVoice {
        const TerminationContext *context;
        Notice *notice;      /* NULL: none yet */
        bool is_held;        /* by the brake of the queue */
        HeardStep step;      /* being written */
        HeardEnd why;        /* of HEARD_STEP_ENDED */
        bool is_draining;    /* the coordinator's own drain has begun, and that was told */
        unsigned told_phase; /* bit 1 << NotifyPhase */
        char *left;          /* of HEARD_STEP_EXPIRED: pods, and what holds each */
} HeardVoice;

void heard_voice_done(HeardVoice *v);

/* The first notice for which the Node is drained. All phases are told again when it is another one. is_held: the brake of the
 * queue holds it. Out of memory nothing is told of it. */
void heard_voice_set(HeardVoice *v, const Notice *notice, bool is_held);
/* Reports in a log line and an Event that the brake no longer holds the notice. by_agent: the agent confirms it; else a person let it go. */
void heard_voice_let_go(HeardVoice *v, const KubeNode *n, const Notice *notice, bool by_agent);

/* Which pods are left, for HEARD_STEP_EXPIRED. */
void heard_voice_left(HeardVoice *v, const DrainBlocker *b, size_t n);
void heard_voice_writing(HeardVoice *v, HeardStep step);
void heard_voice_written(HeardVoice *v, const KubeNode *n, bool done);
void heard_voice_draining(HeardVoice *v, const KubeNode *n); /* the first time */
/* As NodeDrainHandler.on_pod tells; deadline_usec: wall clock, USEC_INFINITY: none. */
void heard_voice_pod(HeardVoice *v, const KubeNode *n, DrainPodEvent e, const KubePod *pod, const DrainBlocker *blocker,
                     usec_t deadline_usec);
