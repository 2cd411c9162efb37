/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The counter of one fake cloud service: how often each operation was asked for, and what is to go wrong
 * with the next ones. Troubles queue up; each is for one operation or for any, and for so many requests.
 * (fake-fault.h is the smaller thing that a metadata service needs.)
 */

#include "http-message.h"
#include "time-util.h"

typedef struct FakeTroubles FakeTroubles;

typedef enum FakeTroubleKind {
        FAKE_TROUBLE_FAIL, /* answered in the service's own form of an error; nothing is done */
        FAKE_TROUBLE_BODY, /* answered with this status and body as they are; nothing is done */
        FAKE_TROUBLE_HANG, /* never answered; nothing is done */
        FAKE_TROUBLE_LOSE, /* done, but the answer never comes */
        _FAKE_TROUBLE_MAX,
        _FAKE_TROUBLE_INVALID = -EINVAL,
} FakeTroubleKind;

FakeTroubleKind fake_trouble_kind_from_string(const char *s); /* "fail", "body", "hang", "lose" */

typedef struct FakeTrouble {
        FakeTroubleKind kind;
        const char *operation; /* NULL: any */
        unsigned n;            /* so many requests; UINT_MAX: for ever; 0: none */
        unsigned status;
        const char *code, *message; /* of an error; GCE: code is the reason */
        const char *body;
        usec_t retry_after_usec; /* 0: is not said */
} FakeTrouble;

FakeTroubles *fake_troubles_new(void);
/* What hangs must be gone before: free transports and servers first. */
FakeTroubles *fake_troubles_free(FakeTroubles *f);
DEFINE_FREEP(FakeTroubles, fake_troubles_free);

/* Behind those that wait already; texts are copied. */
void fake_troubles_add(FakeTroubles *f, const FakeTrouble *trouble);
void fake_troubles_clear(FakeTroubles *f);

/* A request for this operation was let in: counts it, and says what becomes of it. NULL: none, or one
 * that needs nothing more of the caller. Hanging and losing are done here: *x is NULL if it hangs, or an
 * exchange whose answer goes nowhere. Valid until the next call. */
const FakeTrouble *fake_troubles_take(FakeTroubles *f, const char *operation, HttpExchange **x);

size_t fake_troubles_n_requests(const FakeTroubles *f, const char *operation); /* NULL: of all */
