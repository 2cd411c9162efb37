/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Counts the comparisons of texts of a whole test program, whose strcmp() is this one. What looks for one
 * name among many compares names: so work that grows faster than what causes it is seen on any machine,
 * however busy.
 */

#include <stddef.h>

size_t n_compared(void); /* since the program began */
