/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How the decoders of this room read a field: a value that is absent leaves the default, one that cannot be
 * understood leaves the default too and becomes the object's `invalid` sentence (the first one stays), and
 * lack of memory sticks. So a decoder is a list of fields, and everything that can be read of a bad object
 * is read. Private to kube/.
 */

#include "kube-kinds.h"

typedef struct Decoder {
        KubeObject *object;
        InternPool *pool;
        bool failed; /* out of memory */
} Decoder;

/* -EINVAL if the object became invalid, -ENOMEM. */
int decoder_finish(const Decoder *d);
void decoder_invalid(Decoder *d, const char *fmt, ...) _printf_(2, 3);

/* path: "spec.nodeName", for the sentence. The targets begin with their defaults. */
void decode_string(Decoder *d, const Json *v, const char *path, char **ret);
void decode_interned(Decoder *d, const Json *v, const char *path, const char **ret);
void decode_int64(Decoder *d, const Json *v, const char *path, int64_t *ret);
void decode_bool(Decoder *d, const Json *v, const char *path, bool *ret);
void decode_time(Decoder *d, const Json *v, const char *path, usec_t *ret);
/* ^([0-9]+(s|m|h))+$, the pattern of NodeClaim's CRD; "0s" is 0. With allow_never "Never" is USEC_INFINITY. */
void decode_duration(Decoder *d, const Json *v, const char *path, bool allow_never, usec_t *ret);
void decode_selector(Decoder *d, const Json *v, const char *path, Selector **ret);
/* spec.repair of a NodePool, or what it is when unset. */
void decode_repair(Decoder *d, const Json *v, RepairRule **ret, size_t *ret_n);
void repair_rules_free(RepairRule *rules, size_t n);
void decode_conditions(Decoder *d, const Json *v, Condition **ret, size_t *ret_n);
/* The elements of an array that may be absent; NULL (and invalid) for anything else. */
const Json *decode_array(Decoder *d, const Json *v, const char *path);
