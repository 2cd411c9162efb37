/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A story plays one event in the life of a node, from the act that begins it until the daemons have
 * finished, in a world without faults. A round plays a story once. Rounds follow each other in the same
 * world, with the same daemons. Each round has a node of its own, unless the node stays: while the first
 * node of a story goes, another joins.
 *
 *      sim-rounds    plays each story again in the same world: the second round is like the first
 *      sim-answers   plays each story with another answer to one of its calls: the story ends as without
 *                    that answer, only later
 *
 * To cover a new reconciler, add a row to sim-stories.c, or add the act that begins its work to the steps of
 * an existing story.
 */

#include "sim-conditions.h"

#define SIM_STORY_ROUNDS 3u
#define SIM_STORY_STEPS 8u

typedef struct SimStep {
        const char *what;
        void (*act)(SimWorld *w, size_t machine); /* NULL: nothing is done */
        sim_condition_t until; /* condition of the machine; NULL: the step only takes its time */
        unsigned within_sec;
} SimStep;

typedef enum SimStoryNode {
        SIM_STORY_NODE_GOES,  /* each round has another machine, and between two rounds one joins */
        SIM_STORY_NODE_STAYS, /* each round has the first machine */
        /* Each round has another machine, all of which stay, and keep their annotations. */
        SIM_STORY_NODE_NEXT,
} SimStoryNode;

typedef struct SimStory {
        const char *name; /* name of its file in tests/sim/stories */
        const char *title;
        SimOptions options;        /* without the nodes that join between rounds */
        bool has_power;            /* machines have a logind (sim-power.h) */
        SimStoryNode node;
        unsigned poll_sec;         /* maximum delay until daemons see its first act; 0: 3 s */
        const char *unseen;        /* why the observer (invariant `seen`) does not know the truth; NULL: it does */
        unsigned rest_sec;         /* how long a round goes on after its last step; 0: 120 */
        void (*prepare)(SimWorld *w); /* once, before the world settles; may be NULL */
        /* After each start of the daemons: makes them do things that they do once; may be NULL. */
        void (*warm)(SimWorld *w);
        SimStep steps[SIM_STORY_STEPS];
} SimStory;

extern const SimStory sim_stories[];
extern const size_t sim_n_stories;

/* Makes the world, and lets it settle. Returns NULL, and prints the reason to standard error, if it does
 * not. */
SimWorld *sim_story_world(const SimStory *s, uint64_t seed);
/* Returns the index of the machine of this round. Rounds count from 0. */
size_t sim_story_machine(const SimStory *s, unsigned round);
typedef void (*sim_step_ended_t)(SimWorld *w, size_t machine, const char *step);
/* Plays one round. patience: factor by which each step may take longer than usual. on_step_ended: called after
 * each step; may be NULL. Returns false if a step's condition did not come true (ret_where names the step),
 * or the world has a violation. */
bool sim_story_play(const SimStory *s, SimWorld *w, unsigned round, unsigned patience,
                    sim_step_ended_t on_step_ended, const char **ret_where);
/* Prepares the next round: if the node of this round has gone, another one joins. Returns false if the world
 * does not settle. */
bool sim_story_next(const SimStory *s, SimWorld *w, unsigned round);
/* Kills and starts each daemon. Returns false if the world does not settle after that. */
bool sim_story_restart(const SimStory *s, SimWorld *w);
/* Like sim_world_run(), also for worlds whose machines have a logind. */
bool sim_story_run(const SimStory *s, SimWorld *w, usec_t usec);
