/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The query of a request, or its body if that is a form, taken apart: shared/ builds queries and never reads
 * one. */

#include "fake-json.h"
#include "hashmap.h"
#include "http-message.h"

/* "%41" is "A"; what is no escape stays. Free it. */
char *fake_url_decode(const char *s, size_t size, bool plus_is_space);

typedef struct FakeQuery {
        Hashmap *values; /* decoded, by decoded key, the first of each */
        bool repeated;   /* a key came twice */
} FakeQuery;

/* query may be NULL. */
void fake_query_init(FakeQuery *q, const char *query);
void fake_query_init_form(FakeQuery *q, const HttpExchange *x);
void fake_query_done(FakeQuery *q);
#define _cleanup_query_ _cleanup_(fake_query_done)
const char *fake_query_get(const FakeQuery *q, const char *key); /* NULL if absent */
/* The values of prefix.1, prefix.2, ...: a string vector of its own. */
char **fake_query_list(const FakeQuery *q, const char *prefix);
/* The first key that is none of these; a known one that ends in '.' stands for all that begin so; the list
 * ends at n_known or NULL. NULL: all are known. */
const char *fake_query_unknown(const FakeQuery *q, const char *const *known, size_t n_known);
