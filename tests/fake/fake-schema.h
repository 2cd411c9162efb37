/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The schema of a custom resource (spec.versions[].schema.openAPIV3Schema of its CRD) at work:
 * apiextensions-apiserver's pruning, defaulting and validation, as far as our own CRDs use them. What a
 * schema says that is not known here ends the test: a check that is left out would be a lie. */

#include "fake-status.h"

/* What the schema does not know is dropped, what it presets is put. */
void fake_schema_prune(const cJSON *schema, cJSON *object);
/* old NULL: a create. */
void fake_schema_validate(const cJSON *schema, const cJSON *new, const cJSON *old, FakeErrors *e);
