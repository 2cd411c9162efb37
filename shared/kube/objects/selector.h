/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Label selectors: metav1.LabelSelector (matchLabels, matchExpressions In NotIn Exists DoesNotExist). Parsed once. */

#include "hashmap.h"
#include "intern.h"
#include "json.h"

typedef struct KeyValues KeyValues;
typedef struct Selector Selector;

/*
 * Bounds of one selector: several times what people write. A match costs at most two binary searches per
 * requirement, one among the labels and one among its values.
 */
#define SELECTOR_REQUIREMENTS_MAX 64u
#define SELECTOR_VALUES_MAX 2048u /* of all requirements together */

/* json NULL or null: selects nothing. {}: everything for a PDB, so the caller asks selector_is_empty() where
 * its kind says otherwise. -EINVAL for anything that the API server would refuse (unknown operator, In
 * without values); -E2BIG beyond the bounds above. */
int selector_parse(const Json *json, InternPool *pool, Selector **ret);
Selector *selector_free(Selector *s);
DEFINE_FREEP(Selector, selector_free);
/* NULL selects nothing. No selector matches labels that vesper does not keep (KeyValues.unread). */
bool selector_matches(const Selector *s, const KeyValues *labels);
bool selector_is_empty(const Selector *s);                         /* no requirement at all */
/* Puts the labels that it has requirements about into a map of keys. 0 or -ENOMEM. */
int selector_gather_keys(const Selector *s, Hashmap *keys);
/* Are these all that it has requirements about? */
bool selector_keeps_to_keys(const Selector *s, const Hashmap *keys);
/* May a label have this value? At most 63 of letters, digits, '-', '_', '.', or none. */
bool label_value_is_valid(const char *s);
/* Writes the selector as a member of an object, which reads back as the same. A selector that selects nothing is left out. */
void selector_write(const Selector *s, JsonWriter *w, const char *key);
