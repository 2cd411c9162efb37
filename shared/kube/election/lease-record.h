/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a coordination.k8s.io/v1 Lease says, and the bodies that are written back. Times inside are opaque texts of other
 * machines' clocks: they are never compared, only their change counts.
 */

#include <stdbool.h>

#include "json.h"
#include "time-util.h"

typedef struct LeaseRecord {
        char *holder;         /* "": nobody */
        usec_t duration_usec; /* as recorded; 0 if absent or not positive */
        int64_t transitions;
        char *spec;           /* compact text: a record changed iff this did */
        char *object;         /* compact text of the whole: what we do not know goes back with the next PUT */
} LeaseRecord;

/* What we want to stand in spec. */
typedef struct LeaseClaim {
        const char *holder;   /* "" releases */
        int64_t duration_sec;
        int64_t transitions;
        usec_t now_wall_usec; /* renewTime, and acquireTime unless it is kept */
        bool keep_acquired;
} LeaseClaim;

/* -EINVAL for anything without resourceVersion (a PUT of it would be unconditional) or with a spec of wrong types; -ENOMEM. */
int lease_record_parse(const Json *lease, LeaseRecord *ret);
void lease_record_done(LeaseRecord *r); /* leaves it zeroed */

/* Bodies for POST and for PUT of the record as last read; owned by the caller, NULL on ENOMEM. */
char *lease_body_create(const char *ns, const char *name, const LeaseClaim *c);
char *lease_body_update(const LeaseRecord *r, const LeaseClaim *c);
