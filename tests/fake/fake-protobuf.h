/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The API server's other encoding: what is stored as JSON, in Kubernetes' protobuf. How it is encoded is
 * written down anew here: what reads it in vesper is not asked. The fields are those of kube-field-list.h,
 * which vesper reads by; contract-fields.c asks a real API server whether that list is right.
 *
 *      an object, a list, a Status    "k8s\0", then runtime.Unknown {typeMeta, raw}
 *      an event of a watch            four bytes of size, big-endian, then metav1.WatchEvent {type, object
 * {raw}}, in which raw is the above
 *
 * As Go writes it: plain fields also when they are zero, in the order of their numbers, and each object with
 * its managedFields. Members that the list does not name are left out. It has the kinds of which anybody asks
 * for protobuf.
 */

#include "fake-resource.h"
#include "http-message.h"
#include "string-util.h"

#include <cjson/cJSON.h>
#include <stdint.h>

#define FAKE_PROTOBUF "application/vnd.kubernetes.protobuf"
#define FAKE_PROTOBUF_WATCH FAKE_PROTOBUF ";stream=watch"

/* Is it the first type of the Accept header that we know? */
bool fake_protobuf_is_asked(const HttpExchange *x);
bool fake_protobuf_has(const FakeResource *r);

/* The message of one object, as it stands in lists. strange: of a later version of the API, with fields that
 * nobody knows yet, in each of its messages. */
void fake_protobuf_add_message(StrBuf *to, const FakeResource *r, const cJSON *object, bool strange);
void fake_protobuf_add_item(StrBuf *items, const void *message, size_t size);
/* meta: ListMeta, as JSON. */
void fake_protobuf_add_list(StrBuf *to, const FakeResource *r, const cJSON *meta, const StrBuf *items);
/* type: "ADDED", ... cut: some of it is not there. */
void fake_protobuf_add_event(StrBuf *to, const char *type, const FakeResource *r, const void *message,
                             size_t size, bool cut);
/* The same with a Status: "ERROR". */
void fake_protobuf_add_error(StrBuf *to, const cJSON *status);
void fake_protobuf_add_status(StrBuf *to, const cJSON *status);
