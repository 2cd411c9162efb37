/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a notice that is seen changes about the interruption under way: does it take the place of the one that is acted upon, and
 * if not, what is new in that one? Pure.
 */

#include "policy.h"

/* Does the notice that is acted upon, only_cordon: by a cordon alone, give way to another one, for which this is the plan? One that
 * only people on this machine or its shutdown have made does, whatever comes, for that says when the machine ends; any other only
 * to one that the node is to be drained for, if that outranks it or the node is only cordoned. */
bool reflex_rule_gives_way(const Notice *acted, bool only_cordon, const Notice *other, const Plan *plan);
/* Of a node that is only cordoned, which acts upon another notice now, or upon the same one as it is now: another notice, or a
 * person on this machine, wants it empty. */
bool reflex_rule_wants_empty(const Notice *before, const Notice *now);

typedef struct ReflexNews {
        bool is_changed;          /* the notice; else all below is false */
        bool is_deadline_changed; /* by however little */
        bool is_nearer;           /* so much that people are told */
        bool is_for_others;       /* than this machine: the Node is to say it */
} ReflexNews;

/* The notice seen, the same one or another, has not taken the place of the one that is acted upon: brings into that what it says.
 * -ENOMEM: not all of it. */
int reflex_rule_take(Notice *acted, const Notice *seen, ReflexNews *ret);
