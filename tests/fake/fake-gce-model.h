/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between fake-gce-model.c (instances, groups and operations as time goes by) and fake-gce.c (the API). */

#include "fake-gce.h"
#include "list.h"

typedef struct GceGroup {
        ListNode groups;
        char *scope, *name;
        unsigned size; /* that it wants */
        unsigned n_made;
        uint64_t id;
} GceGroup;

typedef struct GceInstance {
        ListNode instances;
        char *zone, *name;
        char *status; /* once it runs, until somebody deletes it */
        cJSON *labels;
        uint64_t id;
        GceGroup *group;
        bool protected;
        bool removed;        /* by its group: it does not come back */
        bool again;          /* it was deleted before, and came back */
        usec_t created_usec; /* there is nothing before; after: PROVISIONING */
        usec_t running_usec;
        usec_t graceful_usec; /* how long PENDING_STOP lasts */
        usec_t stopping_usec; /* the end of PENDING_STOP; USEC_INFINITY: nobody asked */
        usec_t gone_usec;
} GceInstance;

typedef struct GceOperation {
        ListNode operations;
        char *name, *scope, *type, *target, *request_id;
        char *code, *message; /* it failed */
        unsigned http_status;
        uint64_t id, target_id;
        usec_t inserted_wall_usec, running_usec, done_usec;
} GceOperation;

struct FakeGce {
        FakeRest rest;
        char *project;
        char **zones;
        usec_t accept_usec, delete_usec, recreate_usec, provision_usec, wait_usec;
        List instances, groups, operations, waits;
        uint64_t n_ids;
        unsigned n_failing, failing_status;
        char *failing_code, *failing_message;
};

bool gce_zone_exists(const FakeGce *f, const char *zone);
/* "regions/us-central1" or "zones/us-central1-a". */
bool gce_scope_exists(const FakeGce *f, const char *scope);
bool gce_scope_has_zone(const char *scope, const char *zone);
/* What is due happens: call before looking at anything. */
void gce_advance(FakeGce *f);

/* As the API shows it: NULL if there is nothing to be seen. */
const char *gce_instance_status(const FakeGce *f, const GceInstance *i);
GceInstance *gce_find_instance(const FakeGce *f, const char *zone, const char *name);
GceInstance *gce_add_instance(FakeGce *f, const char *zone, const char *name, GceGroup *group);
void gce_instance_free(FakeGce *f, GceInstance *i);
/* Returns when it will be gone. */
usec_t gce_delete_instance(FakeGce *f, GceInstance *i, bool graceful);
bool gce_is_ending(const GceInstance *i);

/* Terms "key op value" joined by AND; keys are name, status and labels.X, operators =, !=, eq, ne. 1: it
 * fits, 0: it does not, -EINVAL: nothing that is understood here. NULL fits everything. */
int gce_filter_fits(const FakeGce *f, const GceInstance *i, const char *filter);

GceGroup *gce_find_group(const FakeGce *f, const char *scope, const char *name); /* scope NULL: any */
/* Makes and deletes until there are so many as are wanted; which go is its own choice. */
void gce_group_fill(FakeGce *f, GceGroup *g);

/* The operation that this requestId began; NULL: none. */
GceOperation *gce_find_request(const FakeGce *f, const char *request_id);
GceOperation *gce_find_operation(const FakeGce *f, const char *scope, const char *name);
/* target: from "projects/" on. */
GceOperation *gce_add_operation(FakeGce *f, const char *scope, const char *type, const char *target,
                                uint64_t target_id, const char *request_id, usec_t done_usec);
/* True: the operation is one that fails, and nothing is to be done. */
bool gce_operation_fails(FakeGce *f, GceOperation *o);
void gce_operation_free(FakeGce *f, GceOperation *o);
