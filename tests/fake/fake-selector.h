/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Selectors as the API server reads them: labelSelector and fieldSelector of a query, metav1.LabelSelector
 * of an object. */

#include "fake-json.h"
#include "fake-resource.h"

typedef enum FakeOperator {
        FAKE_IN,     /* "a=b" is "a in (b)" */
        FAKE_NOT_IN, /* also true where the key is absent */
        FAKE_EXISTS,
        FAKE_NOT_EXISTS,
} FakeOperator;

typedef struct FakeRequirement {
        char *key;
        FakeOperator operator;
        char **values;
} FakeRequirement;

typedef struct FakeSelector {
        FakeRequirement *items;
        size_t n_items, allocated;
} FakeSelector;

void fake_selector_done(FakeSelector *s);

/* "a=b,c in (d, e),!f". False: not understood (*reterr says what, to be freed). */
bool fake_label_selector_parse(const char *text, FakeSelector *ret, char **reterr);
bool fake_label_selector_matches(const FakeSelector *s, const cJSON *labels);

/* "spec.nodeName=a,status.phase!=Failed". Keys that the resource does not know: false. */
bool fake_field_selector_parse(const FakeResource *r, const char *text, FakeSelector *ret, char **reterr);
bool fake_field_selector_matches(const FakeSelector *s, const cJSON *object);
/* The value that the selector asks this key to be equal to, or NULL. */
const char *fake_field_selector_exact(const FakeSelector *s, const char *key);

/* metav1.LabelSelector: {} matches everything, NULL nothing; one that the server would refuse, nothing. */
bool fake_object_selector_matches(const cJSON *selector, const cJSON *labels);
