/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What happens to a world, as data: entries with their time and with arguments that were drawn beforehand.
 * An argument stands for a machine, a process, a number of seconds... only when it is played, so an entry
 * fits a world that was made smaller. One that makes no sense at its time (a node to cordon that is gone) is
 * passed over. So what happens depends on the world and on the entries that are kept, and on nothing else.
 */

#include "random.h"
#include "sim-world.h"

#define SIM_ENTRY_ARGS 3u

typedef struct SimEntry {
        unsigned number; /* its name: its place in the schedule as it was drawn */
        usec_t at_usec;  /* since the beginning */
        unsigned act;
        uint64_t seed; /* of its own draws */
        uint64_t args[SIM_ENTRY_ARGS];
} SimEntry;

typedef struct SimSchedule {
        SimEntry *entries; /* in the order of time */
        size_t n, allocated;
} SimSchedule;

/* All of it within so long. */
SimSchedule *sim_schedule_draw(Random *random, usec_t length_usec);
/* One more, drawn apart, so that the others are what they are without it: answers in protobuf are cut; the
 * watches of one kind say nothing for a while; somebody deletes what is left on a node that goes, and they say
 * nothing of that; a kubelet falls silent for longer than the load lasts, or for nearly so long that it is repaired; several nodes are deleted together; what
 * is read comes many seconds after it was true; a person opens a node that an agent drains, just when that
 * agent has read it; etcd is restored from a backup; another Node says that it is
 * a machine, and they are deleted together or one by one. n: of several of that sort. */
void sim_schedule_add_garbling(SimSchedule *s, uint64_t seed, usec_t length_usec);
void sim_schedule_add_mute(SimSchedule *s, uint64_t seed, unsigned n, usec_t length_usec);
void sim_schedule_add_deletes_unheard(SimSchedule *s, uint64_t seed, unsigned n, usec_t length_usec);
void sim_schedule_add_silence(SimSchedule *s, uint64_t seed);
void sim_schedule_add_falter(SimSchedule *s, uint64_t seed, unsigned n, usec_t length_usec);
void sim_schedule_add_rush(SimSchedule *s, uint64_t seed, unsigned n, usec_t length_usec);
void sim_schedule_add_late_answers(SimSchedule *s, uint64_t seed, unsigned n, usec_t length_usec);
void sim_schedule_add_open_once_read(SimSchedule *s, uint64_t seed, unsigned n, usec_t length_usec);
void sim_schedule_add_restore(SimSchedule *s, uint64_t seed, usec_t length_usec);
void sim_schedule_add_person(SimSchedule *s, uint64_t seed, unsigned n, usec_t length_usec);
void sim_schedule_add_hook(SimSchedule *s, uint64_t seed, unsigned n, usec_t length_usec);
void sim_schedule_add_twins(SimSchedule *s, uint64_t seed, unsigned n, usec_t length_usec);
/* A person's second claim of a machine. */
void sim_schedule_add_rival(SimSchedule *s, uint64_t seed, unsigned n, usec_t length_usec);
SimSchedule *sim_schedule_free(SimSchedule *s);
DEFINE_FREEP(SimSchedule, sim_schedule_free);

/* Nothing that goes wrong: what people and clouds usually do. */
bool sim_entry_is_load(const SimEntry *e);
void sim_entry_play(SimWorld *w, const SimEntry *e);
/* "  12.345  #7  notice  n3, in 45 s": as it would be in that world; no line end. */
void sim_entry_print(const SimEntry *e, const SimOptions *o, StrBuf *b);
