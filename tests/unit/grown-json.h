/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Makes large JSON of a small template, one place after the other: each list, each map and each text of the
 * template becomes the large one. A text that is itself JSON (an annotation) has its places, too. A field
 * that is added to a template is therefore tested as the large one, too.
 */

#include <stddef.h>

#include "json.h"

typedef enum Growth {
        GROW_COPIES,        /* a list: its first element again and again */
        GROW_DISTINCT,      /* the same, with a number behind each text of each copy */
        GROW_EMPTY_TEXTS,   /* a list: "" */
        GROW_EMPTY_OBJECTS, /* a list: {} */
        GROW_NUMBERS,       /* a list: 0 */
        GROW_EMPTY_MEMBERS, /* a map: members with keys of their own, and "" */
        GROW_MEMBERS,       /* a map: the same, with the value of its first member */
        GROW_TEXT,          /* a text, by one letter again and again */
        _GROWTH_MAX,
} Growth;

const char *growth_to_string(Growth g);

/* Returns the template, grown by about `bytes` at the place of that number (from 0, in the order of the
 * text). Free it. *ret_path (free it, too): the place, such as "metadata.labels". NULL, with a path: the
 * place does not grow in this way. NULL without: the template has no such place. */
char *grown_json(const char *template, size_t place, Growth g, size_t bytes, char **ret_path);
