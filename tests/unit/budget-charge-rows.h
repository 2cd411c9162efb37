/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Rows of the rules of a charge. The test budget-charge-rule plays each row with the pure rules. The test
 * budget-rows builds a cluster in which the facts of the row hold, and reads the decision from the status
 * of the NodeDisruptionBudget.
 */

#include "budget-charge-rule.h"

/* Short names for the columns. */
#define D NODE_CHARGE_DELETE
#define R NODE_CHARGE_REBOOT
#define O NODE_CHARGE_OPERATION
#define S NODE_CHARGE_SUCCESSOR

#define M USEC_PER_MINUTE
#define H USEC_PER_HOUR
#define NEVER USEC_INFINITY
#define STANDS CHARGE_FATE_STANDS
#define ENDS CHARGE_FATE_ENDS
#define GOES_BACK CHARGE_FATE_GOES_BACK

/* A holder asks for a charge of a node that has one. */
typedef struct ChargeClaimRow {
        NodeChargeKind kind;
        const char *holder; /* holder of the charge */
        NodeChargeKind asks;
        const char *who;
        bool begun;
        ChargeClaim claim;
} ChargeClaimRow;

static const ChargeClaimRow charge_claim_rows[] = {
        { D, "alice", D, "alice", false, CHARGE_CLAIM_OWN },
        { R, "slot-1", R, "slot-1", false, CHARGE_CLAIM_OWN },
        { O, "u1", O, "u1", false, CHARGE_CLAIM_OWN },
        { S, "u1", S, "u1", false, CHARGE_CLAIM_OWN },
        { D, "alice", D, "bob", false, CHARGE_CLAIM_REFUSED },
        /* A charge of a deletion that has begun counts for that deletion, for any holder. */
        { D, "alice", D, "vesper-coordinator", true, CHARGE_CLAIM_OWN },
        { R, "slot-1", D, "vesper-coordinator", true, CHARGE_CLAIM_REPLACE },
        { R, "slot-1", D, "alice", false, CHARGE_CLAIM_REPLACE },
        { D, "vesper-coordinator", D, "alice", false, CHARGE_CLAIM_REPLACE },
        { D, "alice", D, "vesper-coordinator", false, CHARGE_CLAIM_REFUSED },
        { D, "vesper-coordinator", R, "slot-1", false, CHARGE_CLAIM_REFUSED },
        { O, "u1", D, "alice", false, CHARGE_CLAIM_REPLACE },
        { S, "u1", D, "alice", false, CHARGE_CLAIM_REFUSED },
        /* Nobody but a DELETE takes a charge over. */
        { R, "slot-1", R, "slot-2", false, CHARGE_CLAIM_REFUSED },
        { D, "alice", R, "slot-1", false, CHARGE_CLAIM_REFUSED },
        { D, "alice", O, "u1", false, CHARGE_CLAIM_REFUSED },
        { R, "slot-1", O, "u1", false, CHARGE_CLAIM_REFUSED },
        { O, "u1", R, "slot-1", false, CHARGE_CLAIM_REFUSED },
        { O, "u1", S, "u1", false, CHARGE_CLAIM_REFUSED },
        /* The same name as another kind of holder. */
        { R, "x", D, "x", false, CHARGE_CLAIM_REPLACE },
        /* Charges of an earlier version have no holder. */
        { D, NULL, D, "alice", false, CHARGE_CLAIM_OWN },
        { D, NULL, R, "slot-1", false, CHARGE_CLAIM_REFUSED },
};

/* A user who deletes again is charged anew before the charge ends. */
typedef struct ChargeRenewalRow {
        NodeChargeKind kind;
        bool begun;
        usec_t age_usec;
        ChargeClaim claim;
} ChargeRenewalRow;

static const ChargeRenewalRow charge_renewal_rows[] = {
        { D, false, 0, CHARGE_CLAIM_OWN },       { D, false, M - 1, CHARGE_CLAIM_OWN },
        { D, false, M, CHARGE_CLAIM_REPLACE }, { D, true, H, CHARGE_CLAIM_OWN },
        { R, false, H, CHARGE_CLAIM_OWN },    { O, false, H, CHARGE_CLAIM_OWN },
};

/* The state of a charge after some time. The facts are letters of charge_facts(). */
typedef struct ChargeFateRow {
        const char *what;
        NodeChargeKind kind;
        const char *held_before;
        usec_t lasts_usec; /* until - time */
        const char *facts; /* see charge_facts() */
        usec_t seen_usec, unheld_usec;
        ChargeFate fate;
        usec_t left_usec;
} ChargeFateRow;

static const ChargeFateRow charge_fate_rows[] = {
        { "a deletion to come", D, NULL, 2 * M, "n", 0, 0, STANDS, 2 * M },
        { "it does not come", D, NULL, 2 * M, "n", 2 * M, 0, ENDS, NEVER },
        { "it has come", D, NULL, 2 * M, "nd", H, 0, STANDS, NEVER },
        { "the node has gone", D, NULL, 2 * M, "", 2 * M, 0, ENDS, NEVER },
        { "the view may lie behind", D, NULL, 2 * M, "", M, 0, STANDS, M },
        { "until is unset", D, NULL, 0, "n", M, 0, STANDS, M },
        { "a reboot of an earlier version", D, NULL, H, "n", 3 * M, 0, STANDS, 57 * M },
        { "and its node has gone", D, NULL, H, "", 2 * M, 0, ENDS, NEVER },
        { "taken over, to come", D, "slot-1", 2 * M, "nb", M, 0, STANDS, M },
        { "taken over, not to come", D, "slot-1", 2 * M, "nb", 2 * M, 0, GOES_BACK, NEVER },
        { "and the slot has ended", D, "slot-1", 2 * M, "n", 2 * M, 0, ENDS, NEVER },
        { "taken over, has come", D, "slot-1", 2 * M, "ndb", H, 0, STANDS, NEVER },
        { "a slot", R, NULL, H, "nh", 3 * H, 0, STANDS, NEVER },
        { "a slot that is not seen", R, NULL, H, "n", H, M, STANDS, M },
        { "any more", R, NULL, H, "n", 2 * M, 2 * M, ENDS, NEVER },
        { "a slot is not the deletion's", R, NULL, H, "nd", H, 2 * M, ENDS, NEVER },
        { "released", R, NULL, H, "nhr", 0, 0, ENDS, NEVER },
        { "released at once", D, NULL, 2 * M, "ndr", 0, 0, ENDS, NEVER },
        { "released after it was taken over", D, "slot-1", 2 * M, "nbr", 0, 0, GOES_BACK, NEVER },
        { "an operation", O, NULL, 0, "ndh", 3 * H, 0, STANDS, NEVER },
        { "an operation that is not seen", O, NULL, 0, "nd", H, 2 * M, ENDS, NEVER },
        { "a successor has no Node yet", S, NULL, 0, "h", H, 0, STANDS, NEVER },
        { "a successor that is not seen", S, NULL, 0, "n", H, 2 * M, ENDS, NEVER },
};
