/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What kube-apiserver's strategies do to an object before it is stored: defaults, what a write may not
 * touch, what it may not contain. Objects here are without kind and apiVersion. */

#include "fake-status.h"
#include "fake-store.h"

/* Could this be decoded into the Go type? Strings where strings belong, times that parse. False: the reply
 * says 400 (patched: 422). */
bool fake_strategy_decode(const FakeResource *r, const cJSON *object, bool patched, FakeReply *reply);
/* What goes through the Go type loses: nulls, empty maps and lists marked omitempty, false where false is
 * the default; kind and apiVersion. */
void fake_strategy_normalise(const FakeResource *r, cJSON *object);

void fake_strategy_prepare_create(const FakeStore *s, const FakeResource *r, cJSON *object);
void fake_strategy_prepare_update(const FakeResource *r, const char *subresource, cJSON *new,
                                  const cJSON *old);
bool fake_strategy_validate_create(const FakeResource *r, const cJSON *object, FakeReply *reply);
bool fake_strategy_validate_update(const FakeResource *r, const char *subresource, const cJSON *new,
                                   const cJSON *old, FakeReply *reply);
