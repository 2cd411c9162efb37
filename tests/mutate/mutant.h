/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The switch of a planted mistake. mutate.py adds this header to shared/base of its copy of the tree. */

extern unsigned char *mutant_reached;
extern int mutant_planted;

/* Marks the place as reached. Returns true if its mistake is on. */
#define MUTANT(number) (mutant_reached[number] = 1, mutant_planted == (number))
