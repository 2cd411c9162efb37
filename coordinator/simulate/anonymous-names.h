/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Made-up names for names: first all of them are collected, then each has one. Private to snapshot-anonymize.c. */

#include "hashmap.h"

typedef enum NameOrder {
        NAME_ORDER_PLAIN,
        NAME_ORDER_OF_NAMESPACES, /* as keys "namespace/name" sort: '/' stands behind them */
} NameOrder;

typedef struct AnonymousNames {
        Hashmap *names;  /* made-up names; until they are made, the names themselves */
        char **made;     /* owned */
        size_t n_made;
} AnonymousNames;

int anonymous_names_init(AnonymousNames *a);
void anonymous_names_done(AnonymousNames *a);
int anonymous_names_add(AnonymousNames *a, const char *name);
/* Made-up names have all the same length, and sort as the originals do. letter: how they begin. */
int anonymous_names_make(AnonymousNames *a, char letter, NameOrder order);
/* NULL: it was not added. Borrowed. */
const char *anonymous_names_get(const AnonymousNames *a, const char *name);
