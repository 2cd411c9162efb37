/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * notice-gce.c: what the metadata server of a Compute Engine VM announces (docs.cloud.google.com: compute/docs/metadata,
 * instances/spot, instances/monitor-plan-host-maintenance-event, instances/graceful-shutdown-overview), in four feeds, each a
 * hanging GET of its own, so that news comes at once and an idle minute costs one request a feed:
 *
 *      instance/preempted                    TRUE: kind spot, action stop, 30 s; Google takes it back never
 *      instance/maintenance-event            TERMINATE_ON_HOST_MAINTENANCE: maintenance, stop, no time said; MIGRATE_...: advice.
 *                                            Only who asks for this very key is warned of a migration
 *      instance/upcoming-maintenance         a window: maintenance, with its begin as time
 *      instance/shutdown-details/stop-state  PENDING_STOP: a graceful shutdown has begun: maintenance, stop, no time said
 *
 * At the start it is asked for instance/id, of which ids of notices are made, and for instance/name, by which a Node's providerID tells
 * whether it is this machine's; while it is not, for both every minute again. Notices do not wait for a name: until one is told, which is
 * asked for with backoff, never slower than a minute, metadata counts as this machine's.
 *
 * An answer counts only with the header Metadata-Flavor: Google.
 *
 *      200 and a value that is known   a notice, or none
 *      404                             of the last two: none, the VM has no such thing; of the first two unknown: a pod sees no
 *                                      notices through the metadata server of GKE (hostNetwork: true is needed)
 *      503                             the server moves: unknown. Of upcoming-maintenance it also says "nothing planned": none, if
 *                                      none is known
 *      anything else                   unknown: backs off with jitter, never slower than a minute
 */

#include "notice-source.h"

typedef struct NoticeGceOptions {
        const char *endpoint; /* "http://169.254.169.254" */
        usec_t poll_usec;     /* the least between two questions of a feed, should the server not let them wait */
} NoticeGceOptions;

int notice_gce_new(Env *env, const NoticeGceOptions *o, notice_look_t on_look, void *userdata, NoticeSource **ret);

/* Pure. "gce://PROJECT/ZONE/NAME" against what metadata says as instance/name; other forms do not tell. */
NoticeIdentity notice_gce_identity(const char *name, const char *provider_id);

/* Pure (fuzzed): the window of instance/upcoming-maintenance. 1: there is one, which begins then; 0: nothing is planned; -EBADMSG:
 * neither, *reterr_why (static). */
int notice_gce_parse_upcoming(const char *body, size_t size, usec_t *ret_begin_usec, const char **reterr_why);
