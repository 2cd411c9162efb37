/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Lets the clocks of a whole test program jump. Replaces clock_gettime() in the program and its libraries. A
 * test of a time-out waits for the event that has to come before it (the server has the request), then skips
 * the time: no pause of the machine can change the order, and nobody waits. The loop notices in its next
 * iteration.
 */

#include "time-util.h"

void clock_skip(usec_t usec);
