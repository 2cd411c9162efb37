/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* NULL-terminated arrays of owned strings. A NULL array is an empty one. */

#include <stdbool.h>
#include <stddef.h>

#include "macro.h"

char **strv_free(char **l);
DEFINE_FREEP(char *, strv_free);
#define _cleanup_strv_free_ _cleanup_(strv_freep)

size_t strv_length(char *const *l);
bool strv_contains(char *const *l, const char *s);
bool strv_equal(char *const *a, char *const *b); /* the same strings in the same order */
char **strv_copy(char *const *l);                 /* NULL on ENOMEM */
int strv_extend(char ***l, const char *s);        /* copies s; 0 or -ENOMEM */
int strv_split(const char *s, const char *separators, char ***ret); /* empty parts dropped */
char *strv_join(char *const *l, const char *separator);

#define STRV_FOREACH(s, l) for (char *const *s = (l); s && *s; s++)
