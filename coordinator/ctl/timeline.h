/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What happened to one node, and when: pure, of what the API still knows and of log lines that somebody kept.
 *
 * Everything here comes from outside: each text is bounded and made plain when it is taken, and one source holds at
 * most TIMELINE_ENTRIES_MAX entries.
 */

#include "json.h"
#include "string-util.h"
#include "time-util.h"

#define TIMELINE_ENTRIES_MAX 20000u
#define TIMELINE_TEXT_MAX 400u

typedef enum TimelineSource {
        TIMELINE_OBJECT,    /* creation and deletion of Node and NodeClaim */
        TIMELINE_CONDITION, /* lastTransitionTime of their conditions */
        TIMELINE_WRITE,     /* managedFields: who wrote last, and when */
        TIMELINE_EVENT,
        TIMELINE_LOG,
        _TIMELINE_SOURCE_MAX,
} TimelineSource;

const char *timeline_source_to_string(TimelineSource s); /* "object", "condition", ... */

typedef struct TimelineEntry {
        usec_t at_usec; /* wall clock */
        TimelineSource source;
        size_t order;   /* of arrival: the later of two at one time */
        char *object;   /* "Node", "NodeClaim", "Pod web/web-1" */
        char *actor;    /* "vesper-coordinator", a field manager; NULL: not known */
        char *reason;   /* one word; NULL: none */
        char *text;     /* for people */
        int64_t count;  /* of an Event: how often until then; 0: once */
} TimelineEntry;

typedef struct Timeline {
        char *node;
        TimelineEntry *entries;
        size_t n_entries, allocated;
        size_t of_source[_TIMELINE_SOURCE_MAX];
        char **successors; /* names of NodeClaims that take the place of the node's */
        char **missing; /* sentences: what is not known, and why */
} Timeline;

int timeline_init(Timeline *t, const char *node);
void timeline_done(Timeline *t);

/* A Node or NodeClaim: its life, conditions and writers. 0 or -ENOMEM. */
int timeline_take_object(Timeline *t, const Json *object);
/* An Event of core/v1. */
int timeline_take_event(Timeline *t, const Json *event);
/* One line of a log: JSON as our daemons write it, or as journalctl -o json does. 1: it is about this node; 0: it is not,
 * or is none; -ENOMEM. */
int timeline_take_log_line(Timeline *t, const char *line, size_t size);
/* Something that cannot be told. */
int timeline_miss(Timeline *t, const char *sentence);

/* In order of time. Entries that say the same at the same time are told once. Before anything is printed. */
void timeline_sort(Timeline *t);

char *timeline_text(const Timeline *t);
char *timeline_json(const Timeline *t);
/* A picture of its own, light and dark: a lane for each node above, on one axis; below it what happened to any of them. Each is
 * sorted. */
char *timeline_svg(const Timeline *nodes, size_t n);
