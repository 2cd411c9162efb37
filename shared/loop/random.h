/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Seeded randomness: a seam, so that a simulation draws the same numbers from the same seed. Not for keys. */

#include <stdint.h>

#include "macro.h"
#include "time-util.h"

typedef struct Random Random;

int random_new(uint64_t seed, Random **ret);
int random_new_from_system(Random **ret); /* seeded by getrandom() */
Random *random_free(Random *r);
DEFINE_FREEP(Random, random_free);

uint64_t random_u64(Random *r);
/* Evenly from [0, bound); bound > 0. */
uint64_t random_below(Random *r, uint64_t bound);
/* Evenly from [usec * (1 - permille/1000), usec * (1 + permille/1000)]. */
usec_t random_jitter(Random *r, usec_t usec, unsigned permille);
/* Makes random_jitter() return usec unchanged from now on, for simulations that compare two runs. */
void random_stop_jitter(Random *r);
/* A version-4 UUID text. */
#define UUID_MAX 37
void random_uuid(Random *r, char ret[UUID_MAX]);
