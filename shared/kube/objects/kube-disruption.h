/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a NodePool says about nodes that nobody has asked to be removed: when which of them may go (spec.disruption), what a
 * node of it should look like (spec.template), and what another one would cost (spec.offerings). Part of KubeNodePool;
 * kube-disruption.c reads it.
 */

#include "kube-object.h"

typedef struct Taint Taint;

typedef enum NodeAmountUnit { NODE_AMOUNT_UNSET, NODE_AMOUNT_NODES, NODE_AMOUNT_PERCENT } NodeAmountUnit;

/* "3", "20%" */
typedef struct NodeAmount {
        NodeAmountUnit unit;
        int64_t value; /* >= 0; of PERCENT at most 100 */
} NodeAmount;

/* Why a node goes that nobody has asked to be removed, in the order in which it is looked for. */
typedef enum DisruptionReason {
        DISRUPTION_EXPIRED,
        DISRUPTION_DRIFTED,
        DISRUPTION_EMPTY,
        DISRUPTION_UNDERUTILIZED,
        _DISRUPTION_REASON_MAX,
        _DISRUPTION_REASON_INVALID = -EINVAL,
} DisruptionReason;

const char *disruption_reason_to_string(DisruptionReason r); /* "Expired" */

/* When something holds that a pool says of its nodes: always, or for `duration_usec` from each hit of the schedule on. */
typedef struct PoolSchedule {
        unsigned reasons;  /* 1u << DISRUPTION_*; 0: of all of them */
        char *schedule;    /* as in crontab(5); NULL: always */
        char *time_zone;   /* "Europe/Berlin"; NULL: UTC */
        usec_t duration_usec;
} PoolSchedule;

/* At most so many nodes of the pool are unavailable for it. */
typedef struct PoolBudget {
        NodeAmount nodes; /* UNSET: could not be read: none */
        PoolSchedule when;
} PoolBudget;

typedef enum ConsolidationPolicy {
        CONSOLIDATION_NEVER,
        CONSOLIDATION_WHEN_EMPTY,
        CONSOLIDATION_WHEN_UNDERUTILIZED,
        _CONSOLIDATION_POLICY_MAX,
} ConsolidationPolicy;

/* Whether a machine whose end is announced gets a successor. */
typedef enum OnInterruption {
        ON_INTERRUPTION_UNSET,
        ON_INTERRUPTION_REPLACE,
        ON_INTERRUPTION_NONE,
        _ON_INTERRUPTION_MAX,
} OnInterruption;

const char *on_interruption_to_string(OnInterruption o); /* "Replace", "None"; NULL: unset */

/* Unset, or not understood, each of them removes nothing. */
typedef struct PoolDisruption {
        usec_t empty_after_usec, expire_after_usec, expire_hard_after_usec; /* USEC_INFINITY: unset, or Never */
        bool drift;                                                        /* Auto */
        ConsolidationPolicy consolidation;
        usec_t consolidate_after_usec;  /* quiet for so long; 0 where unset */
        int64_t minimum_savings_permille; /* of the price of what goes; 0: any */
        bool ignores_preferences;
        bool naked_pods_block;          /* pods without a controller keep their node; else they are evicted, and lost */
        int64_t max_concurrent;         /* nodes that go at once; 0: as many as budgets allow */
        PoolBudget *budgets;            /* spec unset: one, of 10 % */
        size_t n_budgets;
        bool has_default_budget;        /* that one */
        PoolSchedule *windows;          /* outside all of them nothing goes; none: whenever */
        size_t n_windows;
        OnInterruption on_interruption;
        usec_t launch_timeout_usec;     /* a new machine has so long to become a node that takes pods */
} PoolDisruption;

#define LAUNCH_TIMEOUT_USEC (15 * USEC_PER_MINUTE) /* where launchTimeout is unset */

const char *consolidation_policy_to_string(ConsolidationPolicy p); /* "WhenEmpty" */

typedef enum PoolOperator {
        POOL_OPERATOR_IN,
        POOL_OPERATOR_NOT_IN,
        POOL_OPERATOR_EXISTS,
        POOL_OPERATOR_DOES_NOT_EXIST,
        POOL_OPERATOR_GT,
        POOL_OPERATOR_LT,
        _POOL_OPERATOR_MAX,
} PoolOperator;

const char *pool_operator_to_string(PoolOperator o);

/* What a label of each node of the pool must be. */
typedef struct PoolRequirement {
        const char *key; /* interned */
        PoolOperator operator;
        const char **values; /* interned */
        size_t n_values;
} PoolRequirement;

/* A label that is absent passes NotIn and DoesNotExist alone. Of Gt and Lt both sides are integers, or it fails. */
bool pool_requirement_holds(const PoolRequirement *r, const KeyValues *labels);

typedef struct PoolTemplate {
        KeyValues labels, annotations;
        Taint *taints, *startup_taints;
        size_t n_taints, n_startup_taints;
        PoolRequirement *requirements;
        size_t n_requirements;
        const char *kubelet_version, *os_image; /* nodeInfo; interned; NULL: not asked for */
} PoolTemplate;

/* A machine that the pool could have, and its price. */
typedef struct PoolOffering {
        const char *instance_type, *zone, *capacity_type; /* interned; NULL: unset, any */
        int64_t price_micros;  /* relative: there is no unit; thousandths of thousandths of what is written */
        KeyValues allocatable; /* as of Node status.allocatable */
        char *group;           /* where one more would be asked of; NULL: unset */
} PoolOffering;

#define PRICE_MICROS 1000000

/* -- kube-disruption-write.c: members of a NodePool's spec, which are read as the same ------------------- */

void pool_template_write(const PoolTemplate *t, usec_t termination_grace_usec, JsonWriter *w, const char *key);
void pool_disruption_write(const PoolDisruption *d, JsonWriter *w, const char *key);
void pool_offerings_write(const PoolOffering *o, size_t n, JsonWriter *w, const char *key); /* leaves out an empty list */
void pool_limits_write(const KeyValues *limits, JsonWriter *w, const char *key); /* leaves out an empty map */
void price_write(JsonWriter *w, const char *key, int64_t micros); /* 0.250000 */
