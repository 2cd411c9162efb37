/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * resume.c: pure. What an agent that has just started finds on its Node and in its intent log, and what
 * follows:
 *
 *      marks of another boot                       over: once the node is Ready, exactly our marks go
 *      marks of this boot, released in the log     a person un-cordoned; only the clean-up was missing
 *      an interruption of this boot, Released      a person un-cordoned: remembered, whatever the log says
 *      marks of this boot, node schedulable        a person un-cordoned while nobody looked
 *      annotation of this boot, over in the log    the time of a cordon has passed; only the clean-up was missing
 *      annotation of this boot                     go on, in the later phase of annotation and log
 *      no marks, but conditions of ours            only their clean-up was missing
 *      nothing of ours                             nothing
 */

#include "intent-log.h"
#include "node-marks.h"

typedef enum ResumeAct {
        RESUME_NOTHING,
        RESUME_CONTINUE, /* notice, phase, since */
        RESUME_RELEASE,  /* notice: remember that a person overruled it; then clean */
        RESUME_REMEMBER, /* notice: remember that a person overruled it; there is nothing to clean */
        RESUME_CLEAN,    /* at once */
        RESUME_UNDO,     /* once the node is Ready */
} ResumeAct;

typedef struct Resumption {
        ResumeAct act;
        Notice *notice; /* owned; NULL where none can be read */
        IntentPhase phase;
        usec_t since_usec;
        const char *why; /* static, for people */
} Resumption;

void resumption_done(Resumption *r);
/* 0 or -ENOMEM. */
int resume_decide(const KubeNode *node, const IntentLog *log, const char *boot_id, Resumption *ret);

/* The kubelet of this boot has reported, and says Ready: what an earlier boot left may be undone. */
bool resume_is_ready(const KubeNode *node);
