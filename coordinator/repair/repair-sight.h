/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * repair/: nodes that are not as they should be, and what their pool says about that (spec.repair: vesper(7)). Calls
 * cluster/, termination/ (its writes and deletions) and reboot/; is driven by the coordinator's work queue.
 *
 * repair-sight.c: pure. What one node has shown, and since when, by the loop's clock, as we ourselves saw it: a source that
 * alternates between reasons moves lastTransitionTime all the time. A rule's time begins when the node first matches it, and
 * is over when the condition has another status; another reason does not end it. Of each condition the first rule that
 * matches counts. The time of a rule that says Reboot begins anew, once, when the node shows another boot.
 * A condition Ready that is absent is Unknown. A node that was rebooted for what it shows is judged as if no rule
 * said Reboot (repair_sight_set_rebooted()).
 */

#include "kube-kinds.h"

typedef struct RepairSight RepairSight;

/* A node that was there before us and has never been Ready counts from its creation, and has been in our sight for so long
 * at least: our clock may be ahead. */
#define REPAIR_SIGHT_USEC (5 * USEC_PER_MINUTE)

typedef struct RepairVerdict {
        const RepairRule *rule; /* the pool's; never one whose action is None */
        usec_t since_usec;      /* loop_now() */
        usec_t due_usec;        /* loop_now(): when the rule's time is up */
} RepairVerdict;

/* born_usec: of a node that has never been Ready and was there before us, when it came, by the loop's clock;
 * USEC_INFINITY: any other. */
int repair_sight_new(const char *node_uid, usec_t born_usec, RepairSight **ret);
RepairSight *repair_sight_free(RepairSight *s);
DEFINE_FREEP(RepairSight, repair_sight_free);
const char *repair_sight_uid(const RepairSight *s);

/* Does the node match any rule, whatever its action? Without that there is nothing to remember. */
bool repair_rules_match(const KubeNodePool *pool, const KubeNode *n);
/* Returns true if a rule with an action matches the node now. */
bool repair_rules_ask(const KubeNodePool *pool, const KubeNode *n);
/* As the node is now. REPAIR_SIGHT_DUE: *ret, for the rule that is due first; it is due now or later. */
typedef enum RepairSightAnswer { REPAIR_SIGHT_CLEAR, REPAIR_SIGHT_REMEMBERS, REPAIR_SIGHT_DUE } RepairSightAnswer;
/* A RepairSightAnswer: CLEAR: nothing is remembered; REMEMBERS: something is, and no rule asks for anything; or -ENOMEM. */
int repair_sight_look(RepairSight *s, const KubeNodePool *pool, const KubeNode *n, usec_t now_usec, RepairVerdict *ret);
/* Sets whether the node was rebooted for what it shows, or could not be: then no rule that says Reboot counts. */
void repair_sight_set_rebooted(RepairSight *s, bool rebooted);
/* Returns true if the node showed at the last look, or has not ceased to show since, what a rule with an action is about. */
bool repair_sight_ails(const RepairSight *s, const KubeNodePool *pool);

/* A person keeps it from repair: ANNOTATION_DO_NOT_REPAIR, Karpenter's, or a person who keeps it from vesper. */
bool repair_is_vetoed(const KubeNode *n);
/* Somebody who is not vesper cordoned it, with vesperctl drain or otherwise, and may be at work on its machine. */
bool repair_is_cordoned_by_a_person(const KubeNode *n);
