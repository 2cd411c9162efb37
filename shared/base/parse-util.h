/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Typed parsing of whole texts: no leading white space, no trailing rest, no locale. -EINVAL, -ERANGE. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int parse_uint64(const char *s, uint64_t *ret);
int parse_int64(const char *s, int64_t *ret);
int parse_uint64_range(const char *s, uint64_t min, uint64_t max, uint64_t *ret);
/* 1/0, yes/no, true/false, on/off, any case. */
int parse_bool(const char *s, bool *ret);
/* Exactly "true", as Kubernetes annotations are read; anything else is false. */
bool annotation_is_true(const char *s);
