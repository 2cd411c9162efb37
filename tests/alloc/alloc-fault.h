/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Memory that runs out at a chosen moment. A program that has alloc-fault.c in it has its own malloc(),
 * calloc(), realloc(), strdup() and strndup(), in front of those of libc (or of the sanitizer), for itself
 * and for every library that it uses: so cJSON, libyaml and OpenSSL run out, too. Only what is asked for
 * between alloc_fault_arm() and alloc_fault_disarm(), and not inside a pause, is counted and can fail; and
 * only of the thread that armed it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From now on the n-th allocation fails, and that one only; 0: they are only counted, and where each was
 * asked for is noted. */
void alloc_fault_arm(size_t n);
/* How many there were. */
size_t alloc_fault_disarm(void);
/* Since it was armed. */
bool alloc_fault_fired(void);
/* Of the n-th allocation (from 1) when they were last only counted: who asked for it, as one number for the
 * chain of callers; it holds in this process. */
uint64_t alloc_fault_place(size_t n);

/* What is asked for in between is somebody else's (a fake's, the test's own). Nests. */
void alloc_fault_pause(void);
void alloc_fault_resume(void);
