/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The instance metadata service of one EC2 instance, version 2 only, for both faces of the fake: an
 * http_handler_t. Strict where the real one is: 401 without a token or with one that has expired, 400 for a
 * TTL that is none, 403 for what was forwarded, 404 for what is not there, error bodies in XHTML. Each
 * answer says "Connection: close", and is the last on its connection (so do the answers of real instances
 * that people have shown in public, from 2020 to 2023). Tokens live by the loop's clock, real or virtual.
 */

#include "http-message.h"
#include "loop.h"

typedef struct FakeImds FakeImds;

/* In zone us-east-1a. */
FakeImds *fake_imds_new(Loop *loop, const char *instance_id);
FakeImds *fake_imds_free(FakeImds *f); /* what hangs must be gone before: free the transports first */
DEFINE_FREEP(FakeImds, fake_imds_free);

void fake_imds_handle(HttpExchange *x, void *fake_imds);

/* spot/instance-action: "terminate", "stop" or "hibernate", at so much wall-clock time. */
void fake_imds_set_action(FakeImds *f, const char *action, usec_t at_wall_usec);
/* Any body. */
void fake_imds_set_action_text(FakeImds *f, const char *text);
void fake_imds_clear_action(FakeImds *f);
/* What a path below meta-data/ says ("events/maintenance/scheduled"); NULL: what it says at first, or 404. At most 4 paths. */
void fake_imds_set_text(FakeImds *f, const char *path, const char *body);
/* Paths of texts. */
#define FAKE_IMDS_LIFECYCLE "autoscaling/target-lifecycle-state"
#define FAKE_IMDS_REBALANCE "events/recommendations/rebalance"
/* meta-data/instance-id says this instead; NULL: it is not there (404). */
void fake_imds_set_instance_id(FakeImds *f, const char *id);

typedef enum FakeImdsPart {
        FAKE_IMDS_TOKEN = 1 << 0,
        FAKE_IMDS_DATA = 1 << 1,
        FAKE_IMDS_ALL = FAKE_IMDS_TOKEN | FAKE_IMDS_DATA,
} FakeImdsPart;

/* Faults, of the next n requests (UINT_MAX: for ever; 0: none any more) to these parts. */
void fake_imds_hang(FakeImds *f, unsigned parts, unsigned n); /* no answer, ever */
void fake_imds_fail(FakeImds *f, unsigned parts, unsigned n, unsigned status);
void fake_imds_garble(FakeImds *f, unsigned parts, unsigned n, const char *body); /* 200 with that */
/* All tokens given so far are worth nothing from now on. */
void fake_imds_revoke(FakeImds *f);
/* Tokens live so long at most, whatever is asked for; the answer's header says so. 0: as asked for. */
void fake_imds_set_max_ttl(FakeImds *f, unsigned sec);
/* Whether its answers have a Date, by the loop's wall clock, as they do at first. */
void fake_imds_tell_date(FakeImds *f, bool tell);
/* As other services do, and some that stand in for this one. */
void fake_imds_keep_connections(FakeImds *f);

/* Requests that came in: PUTs of tokens, and GETs. */
size_t fake_imds_n_tokens(const FakeImds *f);
size_t fake_imds_n_gets(const FakeImds *f);
