/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who asks, and may he? Identities come from the exchange (client certificate, or the transport's name in a
 * simulation) or from a bearer token of the table. system:masters may do everything; system:nodes what the
 * Node authorizer and the NodeRestriction admission of 1.34 let a kubelet do; everybody else what the test
 * allowed.
 */

#include "fake-request.h"
#include "fake-store.h"

typedef struct FakeAuthz FakeAuthz;

FakeAuthz *fake_authz_new(void);
FakeAuthz *fake_authz_free(FakeAuthz *a);
DEFINE_FREEP(FakeAuthz, fake_authz_free);

/* identity: "CN=user,O=group,O=group". */
void fake_authz_add_token(FakeAuthz *a, const char *token, const char *identity);
/* subject: a user's or a group's name. verbs, resources ("pods,pods/eviction"): lists, "*" is all. group: ""
 * core, "*" all. ns NULL: everywhere. */
void fake_authz_allow(FakeAuthz *a, const char *subject, const char *verbs, const char *group,
                      const char *resources, const char *ns);
/* The same with resourceNames ("a,b"; NULL: every name): requests that name one of them, no others. */
void fake_authz_allow_named(FakeAuthz *a, const char *subject, const char *verbs, const char *group,
                            const char *resources, const char *ns, const char *names);

/* Fills *ret; false: nobody we know (401). */
bool fake_authz_authenticate(const FakeAuthz *a, const HttpExchange *x, FakeUser *ret);
/* False: *ret_reason (to be freed; may be NULL) says why, as the authorizer does. */
bool fake_authz_check(const FakeAuthz *a, const FakeStore *s, const FakeRequest *r, char **ret_reason);
/* Headers Impersonate-User, -Group: r->user becomes that one, if he who asks may "impersonate" users and groups of those names; so
 * may system:masters. False: *ret_reason (to be freed) says why not. */
bool fake_authz_impersonate(const FakeAuthz *a, FakeRequest *r, char **ret_reason);
/* The node's name if this is a kubelet, else NULL. */
const char *fake_user_node(const FakeUser *u);

/* Admission: NodeRestriction and NamespaceLifecycle, of a create (old NULL), an update, a delete (new NULL),
 * or an eviction (both NULL). False: the reply refuses. */
bool fake_admit(const FakeStore *s, const FakeRequest *r, const cJSON *new, const cJSON *old,
                FakeReply *reply);
