/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Rows of what a node shows, minute by minute, and of the repair that is due then. The test repair-sight
 * plays each row with the pure rule. The test repair-rows shows the same to a coordinator, and reads from
 * the API server when it repairs the node.
 */

#include "repair-sight.h"

#define M USEC_PER_MINUTE
#define NEVER USEC_INFINITY

#define READY "{'type':'Ready','status':'True','reason':'KubeletReady'}"
#define UNREADY "{'type':'Ready','status':'False','reason':'KubeletNotReady','lastTransitionTime':'2020-01-01T00:00:00Z'}"
#define UNKNOWN "{'type':'Ready','status':'Unknown','reason':'NodeStatusUnknown'}"
#define DISK_A "{'type':'Disk','status':'False','reason':'Slow'}"
#define DISK_B "{'type':'Disk','status':'False','reason':'Dead'}"
#define DISK_OK "{'type':'Disk','status':'True'}"

#define RULE(condition, status, reason, after, action) \
        "{'condition':'" condition "','status':'" status "'" reason ",'after':'" after "','action':'" action "'}"
#define REASON(r) ",'reason':'" r "'"

typedef struct RepairStep {
        usec_t at_usec;
        const char *conditions;
        RepairSightAnswer answer;
        usec_t since_usec, due_usec;
        RepairAction action;
} RepairStep;

typedef struct RepairSightRow {
        const char *what, *rules;
        usec_t born_usec;
        RepairStep steps[6];
} RepairSightRow;

static const RepairSightRow repair_sight_rows[] = {
        { "the default: from the first sight, and a kubelet that reports again ends it", NULL, NEVER,
          { { 100 * M, READY, REPAIR_SIGHT_CLEAR },
            { 101 * M, UNREADY, REPAIR_SIGHT_DUE, 101 * M, 116 * M, REPAIR_ACTION_REPLACE },
            { 110 * M, UNREADY, REPAIR_SIGHT_DUE, 101 * M, 116 * M, REPAIR_ACTION_REPLACE },
            { 111 * M, READY, REPAIR_SIGHT_CLEAR },
            { 112 * M, UNREADY, REPAIR_SIGHT_DUE, 112 * M, 127 * M, REPAIR_ACTION_REPLACE } } },
        { "False and Unknown by turns are both not True", NULL, NEVER,
          { { 100 * M, UNREADY, REPAIR_SIGHT_DUE, 100 * M, 115 * M, REPAIR_ACTION_REPLACE },
            { 105 * M, UNKNOWN, REPAIR_SIGHT_DUE, 100 * M, 115 * M, REPAIR_ACTION_REPLACE },
            { 110 * M, UNREADY, REPAIR_SIGHT_DUE, 100 * M, 115 * M, REPAIR_ACTION_REPLACE } } },
        { "no condition Ready is Unknown, and no other condition is nothing",
          "[" RULE("Ready", "Unknown", "", "10m", "Replace") "," RULE("Disk", "NotTrue", "", "1m", "Replace") "]", NEVER,
          { { 100 * M, "", REPAIR_SIGHT_DUE, 100 * M, 110 * M, REPAIR_ACTION_REPLACE } } },
        { "a node that never was Ready counts from its creation", NULL, 90 * M,
          { { 100 * M, UNREADY, REPAIR_SIGHT_DUE, 90 * M, 105 * M, REPAIR_ACTION_REPLACE } } },
        { "long ago, or by a clock that is ahead: it has been in sight for five minutes", NULL, 1 * M,
          { { 100 * M, UNREADY, REPAIR_SIGHT_DUE, 1 * M, 105 * M, REPAIR_ACTION_REPLACE } } },
        { "never later than by its first sight", NULL, 99 * M,
          { { 100 * M, UNREADY, REPAIR_SIGHT_DUE, 99 * M, 114 * M, REPAIR_ACTION_REPLACE } } },
        { "once Ready, its creation counts no more", NULL, 90 * M,
          { { 100 * M, UNREADY, REPAIR_SIGHT_DUE, 90 * M, 105 * M, REPAIR_ACTION_REPLACE },
            { 101 * M, READY, REPAIR_SIGHT_CLEAR },
            { 102 * M, UNREADY, REPAIR_SIGHT_DUE, 102 * M, 117 * M, REPAIR_ACTION_REPLACE } } },
        { "another reason ends nothing, and is not acted upon; another status ends it",
          "[" RULE("Disk", "False", REASON("^Dead$"), "10m", "Replace") "]", NEVER,
          { { 100 * M, DISK_A, REPAIR_SIGHT_CLEAR },
            { 101 * M, DISK_B, REPAIR_SIGHT_DUE, 101 * M, 111 * M, REPAIR_ACTION_REPLACE },
            { 102 * M, DISK_A, REPAIR_SIGHT_REMEMBERS },
            { 112 * M, DISK_B, REPAIR_SIGHT_DUE, 101 * M, 111 * M, REPAIR_ACTION_REPLACE },
            { 113 * M, DISK_OK, REPAIR_SIGHT_CLEAR },
            { 114 * M, DISK_B, REPAIR_SIGHT_DUE, 114 * M, 124 * M, REPAIR_ACTION_REPLACE } } },
        { "of a condition the first rule that matches counts",
          "[" RULE("Disk", "False", REASON("Slow|Busy"), "1m", "None") "," RULE("Disk", "False", "", "10m", "Replace") "]", NEVER,
          { { 100 * M, DISK_A, REPAIR_SIGHT_REMEMBERS },
            { 105 * M, DISK_B, REPAIR_SIGHT_DUE, 100 * M, 110 * M, REPAIR_ACTION_REPLACE } } },
        { "of several conditions the one that is due first",
          "[" RULE("Ready", "NotTrue", "", "15m", "Replace") "," RULE("Disk", "False", "", "5m", "Reboot") "]", NEVER,
          { { 100 * M, UNREADY "," DISK_OK, REPAIR_SIGHT_DUE, 100 * M, 115 * M, REPAIR_ACTION_REPLACE },
            { 105 * M, UNREADY "," DISK_B, REPAIR_SIGHT_DUE, 105 * M, 110 * M, REPAIR_ACTION_REBOOT },
            { 109 * M, UNREADY "," DISK_OK, REPAIR_SIGHT_DUE, 100 * M, 115 * M, REPAIR_ACTION_REPLACE } } },
        { "a condition that says what is wrong by True", "[" RULE("KernelDeadlock", "True", "", "2m", "Replace") "]", NEVER,
          { { 100 * M, READY ",{'type':'KernelDeadlock','status':'True'}", REPAIR_SIGHT_DUE, 100 * M, 102 * M, REPAIR_ACTION_REPLACE },
            { 101 * M, READY ",{'type':'KernelDeadlock','status':'Unknown'}", REPAIR_SIGHT_CLEAR } } },
        { "no rules", "[]", NEVER, { { 100 * M, UNREADY, REPAIR_SIGHT_CLEAR } } },
};

/* Annotations by which a person keeps a node from repair. */
typedef struct RepairVetoRow {
        const char *annotations;
        bool vetoed;
} RepairVetoRow;

static const RepairVetoRow repair_veto_rows[] = {
        { "", false },
        { "'vesper.sh/do-not-repair':'true'", true },
        { "'vesper.sh/do-not-repair':''", true },
        { "'vesper.sh/do-not-repair':'false'", false },
        { "'karpenter.sh/do-not-repair':'true'", true },
        { "'vesper.sh/unmanaged':'true'", true },
        { "'karpenter.sh/do-not-disrupt':'true'", false },
};
