/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A fuzz target is one file, fuzz-NAME.c, with this one function: it feeds `data` to a parser and asserts
 * what must hold of any input. Always returns 0. See meson.build.
 */

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
