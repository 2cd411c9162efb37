/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a call looks like on the wire: URL, query, bodies. Pure. Private to kube/. */

#include "kube-client.h"
#include "string-util.h"

/* SERVER/api/v1/... or SERVER/apis/GROUP/VERSION/..., percent-encoded, into `b`. -EINVAL for a target that
 * has no URL: a subresource without a name, a name without the namespace that its kind needs. */
int kube_request_url(StrBuf *b, const char *server, const KubeTarget *t);
/* Appends ?key=value or &key=value; value NULL: nothing. */
void kube_request_query(StrBuf *b, const char *key, const char *value);
/* Free it; NULL on ENOMEM. */
char *kube_request_delete_body(const KubeDeleteOptions *d);
char *kube_request_eviction_body(const char *ns, const char *name, const char *uid, int64_t grace_sec);
