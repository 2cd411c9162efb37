/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A request to the fake of EC2, between fake-ec2.c (instances, and how requests are answered) and fake-ec2-status.c (scheduled
 * events and Spot requests). */

#include "fake-aws-front.h"
#include "fake-ec2.h"
#include "fake-query.h"

typedef struct FakeTag {
        ListNode tags;
        char *key, *value;
} FakeTag;

typedef struct FakeEvent {
        ListNode events;
        char *id, *code;
        char *description; /* NULL: the usual one */
        usec_t not_before_wall_usec;
} FakeEvent;

typedef struct FakeInstance {
        ListNode instances;
        char *id;
        char *zone;
        char *group;    /* Auto Scaling's, in a tag; NULL: none */
        char *name;     /* private DNS name; NULL: an odd one */
        char *node_tag; /* vesper.sh/node; NULL: none */
        char *spot_status; /* status code of its Spot request; NULL: it has none */
        const char *state;      /* until terminated */
        usec_t terminated_usec; /* the end of shutting-down; USEC_INFINITY: nobody asked for it */
        bool protected;
        size_t n_terminations, n_reboots;
        bool stays;        /* a reboot does not move it */
        List tags, events; /* tags: of CreateTags */
} FakeInstance;

struct FakeEc2 {
        FakeAwsFront front;
        usec_t shutting_down_usec, visible_usec;
        size_t page_size;
        uint64_t next_id;
        List instances;
        List watches; /* of FakeEc2Watch */
        size_t last_n_ids;
        void (*rebooted)(const char *id, void *userdata);
        void *reboot_userdata;
};

typedef struct Ec2Request {
        FakeEc2 *f;
        HttpExchange *x;
        FakeQuery params;
        FakeAwsScope scope;
        bool sts;
} Ec2Request;

/* The instances that a describing request selects. */
typedef struct Ec2Selection {
        char **ids;    /* by InstanceId.N */
        bool filtered; /* by Filter.1 */
        char **filter; /* its values */
        uint64_t first, max; /* items before the page, and the most on it */
        uint64_t n; /* items that were selected so far */
} Ec2Selection;

FakeInstance *ec2_must_find(const FakeEc2 *f, const char *id);
void ec2_event_free(FakeInstance *i, FakeEvent *e);

const char *ec2_param(const Ec2Request *r, const char *name);
/* Returns the state of the instance as the request sees it; NULL: the request sees no such instance. */
const char *ec2_visible_state(const Ec2Request *r, const FakeInstance *i);
/* filter: the name of the one filter that the call knows. False: the error was sent. Free ids and filter in either case. */
bool ec2_select(Ec2Request *r, const char *filter, Ec2Selection *s);
/* Counts one more selected item. Returns true if the item is on the page that was asked for. */
bool ec2_selection_take(Ec2Selection *s);
/* Closes the set of items. Adds a token if items follow the page. */
void ec2_selection_close(const Ec2Selection *s, StrBuf *b, const char *set);
/* True: the request was answered. */
bool ec2_is_dry_run(Ec2Request *r);
void ec2_reply(Ec2Request *r, unsigned status, usec_t retry_after_usec, const char *body);
void ec2_reply_error(Ec2Request *r, unsigned status, const char *code, const char *message);
void ec2_open_reply(StrBuf *b, const char *action);
void ec2_add_state(StrBuf *b, const char *element, const char *state);

/* Actions. */
void ec2_describe_instance_status(Ec2Request *r);
void ec2_describe_spot_requests(Ec2Request *r);
