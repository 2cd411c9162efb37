/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* metav1.Status as kube-apiserver writes it: apimachinery/pkg/api/errors, word for word. */

#include "fake-json.h"
#include "fake-resource.h"

/* What is going to be answered. Empty: nothing decided yet. */
typedef struct FakeReply {
        unsigned code;
        cJSON *status;            /* a Status; or */
        char *text;               /* the body as it is */
        size_t size;              /* of that */
        const char *content_type; /* NULL: application/json */
        unsigned retry_after_sec; /* header; 0: none */
        bool waiting;             /* for a webhook: nothing is decided */
} FakeReply;

void fake_reply_done(FakeReply *r);
#define _cleanup_reply_ _cleanup_(fake_reply_done)

/* Each drops what was there. Those that refuse return false, so that `return fake_reply_x(...)` reads well.
 */
bool fake_reply_text(FakeReply *r, unsigned code, char *json);
/* Takes what is in the buffer. */
void fake_reply_protobuf(FakeReply *r, unsigned code, StrBuf *b);
bool fake_reply_failure(FakeReply *r, unsigned code, const char *reason, const char *fmt, ...)
        _printf_(4, 5);
bool fake_reply_not_found(FakeReply *r, const FakeResource *resource, const char *name);
bool fake_reply_exists(FakeReply *r, const FakeResource *resource, const char *name);
bool fake_reply_conflict(FakeReply *r, const FakeResource *resource, const char *name, const char *fmt, ...)
        _printf_(4, 5);
bool fake_reply_stale(FakeReply *r, const FakeResource *resource,
                      const char *name); /* 409, a stale resourceVersion */
bool fake_reply_forbidden(FakeReply *r, const FakeResource *resource, const char *name, const char *fmt, ...)
        _printf_(4, 5);
bool fake_reply_bad_request(FakeReply *r, const char *fmt, ...) _printf_(2, 3);
bool fake_reply_expired(FakeReply *r, const char *fmt, ...) _printf_(2, 3);
/* {"status": "Success", "details": ...}; details taken, may be NULL. */
void fake_reply_success(FakeReply *r, unsigned code, cJSON *details);

/* details of the Status that is there, made if absent. */
cJSON *fake_reply_details(FakeReply *r);
void fake_reply_add_cause(FakeReply *r, const char *reason, const char *message, const char *field);
void fake_reply_set_retry_after(FakeReply *r, unsigned seconds);

/* -- field errors: 422 --------------------------------------------------------------------------------- */

typedef enum FakeErrorType {
        FAKE_ERROR_REQUIRED,
        FAKE_ERROR_INVALID,
        FAKE_ERROR_FORBIDDEN,
        FAKE_ERROR_NOT_SUPPORTED,
        FAKE_ERROR_DUPLICATE,
        FAKE_ERROR_TOO_LONG,
} FakeErrorType;

/* An array of causes; each once. */
typedef struct FakeErrors {
        cJSON *causes;
} FakeErrors;

void fake_errors_done(FakeErrors *e);
#define _cleanup_errors_ _cleanup_(fake_errors_done)

/* value: as it stands in the message, quoted if a string ("\"x\"", "0"); NULL where the type shows none. */
void fake_errors_add(FakeErrors *e, FakeErrorType type, const char *value, const char *detail,
                     const char *field_fmt, ...) _printf_(5, 6);
/* True if there are none; else the reply is the 422. */
bool fake_errors_reply(FakeErrors *e, const FakeResource *resource, const char *name, FakeReply *r);
/* The same under another name than the kind's: "leases.coordination.k8s.io", "DeleteOptions.meta.k8s.io". */
bool fake_errors_reply_as(FakeErrors *e, const char *qualified_kind, const char *name, FakeReply *r);
