/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One request as apiserver/pkg/endpoints/request/requestinfo.go takes it apart. */

#include "fake-json.h"
#include "fake-query.h"
#include "fake-resource.h"
#include "fake-selector.h"
#include "fake-status.h"
#include "http-message.h"
#include "time-util.h"

typedef enum FakeVerb {
        FAKE_GET,
        FAKE_LIST,
        FAKE_WATCH,
        FAKE_CREATE,
        FAKE_UPDATE,
        FAKE_PATCH,
        FAKE_DELETE,
        FAKE_DELETECOLLECTION,
        _FAKE_VERB_MAX,
        _FAKE_VERB_INVALID = -EINVAL,
} FakeVerb;

const char *fake_verb_to_string(FakeVerb v);

typedef struct FakeUser {
        char *name; /* NULL: anonymous */
        char **groups;
} FakeUser;

typedef struct FakeCallout FakeCallout;

typedef struct FakeRequest {
        const HttpExchange *x;
        FakeCallout **callout; /* what webhooks have said so far; *callout NULL: none was asked */
        const char *method; /* in small letters */
        FakeUser user;
        FakeVerb verb;
        bool is_resource;
        char *group, *version, *plural, *subresource; /* of a resource request; subresource NULL: none */
        char *ns, *name;                              /* NULL: none */
        const FakeResource *resource;                 /* NULL: not one that we serve */
        FakeQuery query;
        char *selected_name; /* list, watch: the one name that a field selector picks */
        bool dry_run;
        bool protobuf; /* the answer is; set by the API server */
        bool cut;      /* and is cut by a fault: the body, or the first event of a watch */
} FakeRequest;

/* Never fails: what cannot be understood is no resource request. The exchange is borrowed. */
void fake_request_init(FakeRequest *r, const HttpExchange *x);
void fake_request_done(FakeRequest *r);
const char *fake_request_query(const FakeRequest *r, const char *key); /* NULL if absent */
bool fake_request_flag(const FakeRequest *r, const char *key);         /* "true", "1" */
/* The name for authorization: in the path or picked by the selector; "" if none. */
const char *fake_request_authz_name(const FakeRequest *r);
/* The body as JSON object (or array, for a JSON patch). False: the reply says 400. */
bool fake_request_json(const FakeRequest *r, cJSON **ret, FakeReply *reply);
