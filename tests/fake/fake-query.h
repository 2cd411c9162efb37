/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The query of a request, taken apart: shared/ builds queries and never reads one. */

#include "fake-json.h"
#include "hashmap.h"

/* "%41" is "A"; what is no escape stays. Free it. */
char *fake_url_decode(const char *s, size_t size, bool plus_is_space);

typedef struct FakeQuery {
        Hashmap *values; /* decoded, by decoded key, the first of each */
        bool repeated;   /* a key came twice */
} FakeQuery;

/* query may be NULL. */
void fake_query_init(FakeQuery *q, const char *query);
void fake_query_done(FakeQuery *q);
#define _cleanup_query_ _cleanup_(fake_query_done)
const char *fake_query_get(const FakeQuery *q, const char *key); /* NULL if absent */
