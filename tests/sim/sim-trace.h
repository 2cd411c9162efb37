/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What happened in a simulated world, one line each with its virtual time: requests, log lines, changes of
 * the store, faults. The same seed gives the same text, byte for byte. */

#include <stdio.h>

#include "loop.h"

typedef struct SimTrace SimTrace;

/* Times count from the creation. */
SimTrace *sim_trace_new(const VirtualTime *time);
SimTrace *sim_trace_free(SimTrace *t);
DEFINE_FREEP(SimTrace, sim_trace_free);

void sim_trace_add(SimTrace *t, const char *who, const char *fmt, ...) _printf_(3, 4);
/* FNV-1a over all lines. */
uint64_t sim_trace_hash(const SimTrace *t);
size_t sim_trace_n_lines(const SimTrace *t);
const char *sim_trace_text(const SimTrace *t);
void sim_trace_print_tail(const SimTrace *t, FILE *f, size_t n_lines);
