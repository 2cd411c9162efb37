/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How many nodes may be under repair at once. Pure: time comes with the calls (loop_now()).
 *
 * Never a static share, which holds everything up and then lets all go at once, but a slow start. A node lies in three
 * domains in which nodes fail together: its pool, its zone, and the condition that it is repaired for. In each domain one
 * repair is under way at first. Each repair that is proved makes room for itself and one more, so that a round of proved
 * repairs is followed by one of twice as many. After one that failed a domain begins with one again, and also when it has
 * been calm for REPAIR_CALM_USEC. The domain that admits the least counts.
 *
 * A replacement is proved once a successor, a Node of the same pool that came after the repair began, has been well (Ready, and no rule
 * asks for its repair) for REPAIR_PROOF_USEC; one successor proves one repair, the oldest of its pool. A repair by reboot is proved by the
 * node itself, when it has been Ready for REPAIR_PROOF_USEC with another boot id, and no rule has asked for its repair meanwhile. A node that has been
 * Ready for so long, and for which a rule still asks, was rebooted in vain: its repair has failed. A repair that is not proved
 * within REPAIR_FAILED_USEC has failed, too: its place is free, or a node that nobody replaces would hold up all others.
 */

#include <stdbool.h>
#include <stddef.h>

#include "macro.h"
#include "time-util.h"

#define REPAIR_PROOF_USEC (5 * USEC_PER_MINUTE)
#define REPAIR_FAILED_USEC (30 * USEC_PER_MINUTE)
#define REPAIR_CALM_USEC USEC_PER_HOUR

typedef enum RepairDomainKind {
        REPAIR_DOMAIN_POOL,
        REPAIR_DOMAIN_ZONE,
        REPAIR_DOMAIN_CONDITION,
        _REPAIR_DOMAIN_MAX,
} RepairDomainKind;

/* "NodePool", "zone", "condition". */
extern const char *const repair_domain_names[_REPAIR_DOMAIN_MAX];

/* The domains of one node by their names; NULL: it is in none of that kind. Borrowed. */
typedef struct RepairDomains {
        const char *names[_REPAIR_DOMAIN_MAX];
} RepairDomains;

typedef struct RepairLimit {
        RepairDomainKind kind;
        size_t n_under_way, n_at_once;
} RepairLimit;

typedef struct RepairBrake RepairBrake;

int repair_brake_new(RepairBrake **ret);
RepairBrake *repair_brake_free(RepairBrake *b);
DEFINE_FREEP(RepairBrake, repair_brake_free);

/* May one more begin? False: *ret says which domain is full. */
bool repair_brake_admits(const RepairBrake *b, const RepairDomains *d, RepairLimit *ret);
/* Returns true if a repair of this node is under way: it has its place. */
bool repair_brake_has(const RepairBrake *b, const char *node_uid);
/* Starts a repair. boot_id: the boot that a reboot must end; NULL: replace the node. -EEXIST: the same repair is under way.
 * A different repair of the node is dropped first. -ENOMEM: the repair must not start. */
int repair_brake_begin(RepairBrake *b, const char *node_uid, const char *boot_id, const RepairDomains *d, usec_t now_usec);
/* It did not begin after all. */
void repair_brake_cancel(RepairBrake *b, const char *node_uid);
size_t repair_brake_n_under_way(const RepairBrake *b);

/* A Node came, or changed: came: it was not there before. pool: that it is in now, or NULL. well: it is Ready, and no
 * rule asks for its repair. Heeded while some repair is under way. -ENOMEM: it will prove nothing. */
int repair_brake_see_node(RepairBrake *b, const char *node_uid, bool came, const char *pool, bool well, usec_t now_usec);
/* Notes the state of a node under repair by reboot. ails: a rule asks for its repair. */
void repair_brake_see_rebooted(RepairBrake *b, const char *node_uid, const char *boot_id, bool ready, bool ails, usec_t now_usec);
void repair_brake_forget_node(RepairBrake *b, const char *node_uid); /* the Node is gone */

/* Ends what is proved, and what has failed. The next time at which something ends unless a node changes before;
 * USEC_INFINITY: never. ended() must not call back. */
typedef void (*repair_ended_t)(const char *node_uid, bool proved, void *userdata);
/* This one has failed already. */
void repair_brake_fail(RepairBrake *b, const char *node_uid, usec_t now_usec, repair_ended_t ended, void *userdata);
usec_t repair_brake_step(RepairBrake *b, usec_t now_usec, repair_ended_t ended, void *userdata);
