/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Keys of objects under a name that several of them share (their node, an owner's uid), in the order of
 * keys: what would else be a walk over all pods for those of one node.
 */

#include "fake-json.h"

typedef struct FakeIndex FakeIndex;

FakeIndex *fake_index_new(void);
FakeIndex *fake_index_free(FakeIndex *x);

/* The key is borrowed and must live as long as it is there. One that is there already, or to be removed and
 * is not, is a bug of the caller. */
void fake_index_put(FakeIndex *x, const char *name, const char *key);
void fake_index_remove(FakeIndex *x, const char *name, const char *key);
/* The n-th key under that name, or NULL past the last. */
const char *fake_index_at(const FakeIndex *x, const char *name, size_t n);
