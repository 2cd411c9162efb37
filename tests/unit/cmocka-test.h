/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Includes cmocka, and before it the headers that cmocka.h needs. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Begins the definition of a case that cmocka_unit_test() can take: TEST_CASE(test_name) { ... }. The case may read
 * void **state, which its setup function has set. */
#define TEST_CASE(name) static void name(void **state)
