/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Stories: each plays one thing that happens to one node, from what begins it until nothing is left to do, in a world where
 * nothing goes wrong. A round plays a story once. Rounds follow each other in the same world, with the same daemons; each
 * has a node of its own, unless the node stays. While the first node of a story goes, another joins.
 *
 *      sim-rounds    plays each story again in the same world: the second round is like the first (sim-account.h)
 *      sim-answers   plays each story with another answer to one of its calls: it ends as without it, only later
 *
 * To cover a new reconciler: a row in sim-stories.c, or the act that begins its work as a step of one that is there.
 */

#include "sim-conditions.h"

#define SIM_STORY_ROUNDS 3u
#define SIM_STORY_STEPS 8u

typedef struct SimStep {
        const char *what;
        void (*act)(SimWorld *w, size_t machine); /* NULL: nothing is done */
        sim_condition_t until;                    /* of the machine; NULL: the step only takes its time */
        unsigned within_sec;
} SimStep;

typedef enum SimStoryNode {
        SIM_STORY_NODE_GOES,  /* each round has another machine, and between two rounds one joins */
        SIM_STORY_NODE_STAYS, /* each round has the first machine */
        SIM_STORY_NODE_NEXT,  /* each round has another machine, all of which stay: what is told of one is kept there */
} SimStoryNode;

typedef struct SimStory {
        const char *name; /* of its file in tests/sim/stories */
        const char *title;
        SimOptions options;        /* without what rounds need: nodes that join */
        bool has_power;            /* machines have a logind (sim-power.h) */
        SimStoryNode node;
        unsigned poll_sec;         /* what begins it may be seen so late; 0: 3 s */
        unsigned rest_sec;         /* how long a round goes on after its last step; 0: 120 */
        void (*prepare)(SimWorld *w); /* once, before the world settles; may be NULL */
        void (*warm)(SimWorld *w);    /* whenever it has settled and daemons have started: what only a first time does; may be NULL */
        SimStep steps[SIM_STORY_STEPS];
} SimStory;

extern const SimStory sim_stories[];
extern const size_t sim_n_stories;

/* Makes the world, and lets it settle. NULL, with the reason on standard error: it does not. */
SimWorld *sim_story_world(const SimStory *s, uint64_t seed);
/* The machine of this round, from 0. */
size_t sim_story_machine(const SimStory *s, unsigned round);
/* Plays one round. patience: how many times as long as usual each step may take. False: a step has
 * not come to pass (ret_where names it), or the world has a violation. */
bool sim_story_play(const SimStory *s, SimWorld *w, unsigned round, unsigned patience, const char **ret_where);
/* Between two rounds: where the node of this round has gone, another joins. False: the world does not settle. */
bool sim_story_next(const SimStory *s, SimWorld *w, unsigned round);
/* Each daemon is killed and starts again; the world settles. False: it does not. */
bool sim_story_restart(const SimStory *s, SimWorld *w);
/* As sim_world_run(), also in worlds where machines have a logind. */
bool sim_story_run(const SimStory *s, SimWorld *w, usec_t usec);
