/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * EC2 (and as much of STS as says who is calling), for both faces of the fake: an http_handler_t on any
 * transport or server. Strict where the real one is: the signature is recomputed by code of its own, the
 * credential scope must name the region, the clock may be 15 minutes off, unknown parameters are refused.
 * Time is the loop's, real or virtual: instances pass through shutting-down and terminated and vanish by it,
 * without timers.
 */

#include "fake-trouble.h"
#include "http-message.h"
#include "list.h"
#include "loop.h"

typedef struct FakeEc2 FakeEc2;

typedef struct FakeEc2Options {
        Loop *loop;
        const char *region;  /* of the endpoint; NULL: it stands for all regions, the scope of the signature
                                picks one */
        const char *account; /* NULL: 123456789012 */
        const char *access_key_id; /* NULL: no signature is asked for (a region is then needed) */
        const char *secret_access_key;
        const char *session_token; /* NULL: permanent keys */
        usec_t shutting_down_usec; /* from terminate to terminated */
        usec_t visible_usec;       /* from terminated to not found; 0: an hour */
} FakeEc2Options;

FakeEc2 *fake_ec2_new(const FakeEc2Options *options);
FakeEc2 *fake_ec2_free(FakeEc2 *f);
DEFINE_FREEP(FakeEc2, fake_ec2_free);

void fake_ec2_handle(HttpExchange *x, void *fake_ec2);

/* A running instance; id NULL: the next one of i-0000000000000001 and so on. The id is borrowed from it. */
const char *fake_ec2_run(FakeEc2 *f, const char *id, const char *zone);
/* Ends the instance as TerminateInstances would. */
void fake_ec2_terminate(FakeEc2 *f, const char *id);
/* "pending", "running", "stopping", "stopped"; or "terminated": as if somebody had ended it just now. */
void fake_ec2_set_state(FakeEc2 *f, const char *id, const char *state);
void fake_ec2_protect(FakeEc2 *f, const char *id, bool protect);
/* The tag aws:autoscaling:groupName; NULL takes it away. */
void fake_ec2_set_group(FakeEc2 *f, const char *id, const char *group);
/* Sets the private DNS name, which goes when the instance ends; NULL: an odd name, no Node's. */
void fake_ec2_set_private_dns_name(FakeEc2 *f, const char *id, const char *name);
/* Adds a tag; value NULL takes it away. The tag stays when the instance ends. */
void fake_ec2_set_node_tag(FakeEc2 *f, const char *id, const char *node);
/* A scheduled event of it: "system-reboot", "instance-reboot", ... RebootInstances ends the first kind, unless the instance
 * does not migrate on reboots (as its maintenance options may say); whoever schedules again that id moves it. */
void fake_ec2_schedule(FakeEc2 *f, const char *id, const char *event, const char *code, usec_t not_before_wall_usec);
void fake_ec2_set_reboot_migration(FakeEc2 *f, const char *id, bool on);
/* The event's description; "[Completed] ..." is how EC2 marks one that is over. */
void fake_ec2_describe_event(FakeEc2 *f, const char *id, const char *event, const char *description);
bool fake_ec2_has_event(const FakeEc2 *f, const char *id, const char *event);
/* Makes the instance a Spot instance whose request has this status code. */
void fake_ec2_set_spot_status(FakeEc2 *f, const char *id, const char *code);
/* RebootInstances was obeyed for it; told before the request is answered. */
void fake_ec2_on_reboot(FakeEc2 *f, void (*rebooted)(const char *id, void *userdata), void *userdata);
size_t fake_ec2_n_reboots(const FakeEc2 *f, const char *id);
/* Forgets the instance, as EC2 does hours after its end. */
void fake_ec2_forget(FakeEc2 *f, const char *id);
/* The name of its state as a describe would show it now, or NULL if it would not be found. */
const char *fake_ec2_state(FakeEc2 *f, const char *id);
const char *fake_ec2_zone(FakeEc2 *f, const char *id); /* NULL: nothing of that id was ever run */
/* All that are neither shutting down nor terminated: what would be leaked. */
size_t fake_ec2_n_alive(FakeEc2 *f);

/* Told of every change of state somebody asked for, before the request is answered; not of time's doing
 * (shutting-down becomes terminated). The watch is the caller's. */
typedef struct FakeEc2Watch {
        ListNode watches;
        void (*changed)(const char *id, void *userdata);
        void *userdata;
} FakeEc2Watch;
void fake_ec2_watch(FakeEc2 *f, FakeEc2Watch *w);
void fake_ec2_unwatch(FakeEc2 *f, FakeEc2Watch *w);

/* Faults of every kind, by operation; what follows replaces all of them by one. */
FakeTroubles *fake_ec2_troubles(FakeEc2 *f);
/* Faults. The next n requests are throttled (retry_after_msec 0: it is not said for how long), or fail. */
void fake_ec2_throttle(FakeEc2 *f, unsigned n, unsigned retry_after_msec);
void fake_ec2_fail(FakeEc2 *f, unsigned n, unsigned status, const char *code, const char *message);
/* The next n requests are answered with this body and status 200. */
void fake_ec2_garble(FakeEc2 *f, unsigned n, const char *body);
/* The keys that are known from now on; the old ones are answered with AuthFailure. */
void fake_ec2_set_keys(FakeEc2 *f, const char *access_key_id, const char *secret, const char *session_token);
/* The keys known now have run out: they are answered with this code ("ExpiredToken"). */
void fake_ec2_expire_keys(FakeEc2 *f, const char *code);
/* The cloud's clock runs ahead of the loop's wall clock by so much. */
void fake_ec2_set_skew(FakeEc2 *f, int64_t skew_usec);
/* At most so many instances a page, asked for or not; 0: as asked for. */
void fake_ec2_set_page_size(FakeEc2 *f, size_t n);

/* Counts, of requests that were let in. */
size_t fake_ec2_n_requests(const FakeEc2 *f, const char *action);
size_t fake_ec2_n_refused(const FakeEc2 *f); /* signature, keys, clock */
size_t fake_ec2_n_terminations(const FakeEc2 *f,
                               const char *id); /* requests that named it and were obeyed */
size_t fake_ec2_last_n_ids(const FakeEc2 *f);   /* of the last DescribeInstances */
