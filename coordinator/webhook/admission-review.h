/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * webhook/: what the API server asks the coordinator before a Node or a NodeClaim is deleted, and what it is
 * answered. Calls cluster/ and budget/; is driven by the coordinator's HTTPS listener.
 *
 *      admission-review.c  pure: the AdmissionReview (admission.k8s.io/v1), read and answered
 *      admission-exempt.c  pure: whose deletions pass in any case
 *
 * An AdmissionReview comes from the API server, which has authenticated whoever deletes; but labels,
 * annotations and user names in it are anybody's. It is read once into AdmissionReview, within limits, and
 * the JSON is not kept.
 */

#include "kube-kinds.h"

/* The API server's own limit for the body of a request, and so about the largest object it has to show. */
#define ADMISSION_BODY_BYTES_MAX (3u * 1024u * 1024u)
/* Of a uid, a name, a user's name, a group. */
#define ADMISSION_STRING_BYTES_MAX 4096u
#define ADMISSION_GROUPS_MAX 4096u

typedef enum AdmissionSubject {
        ADMISSION_OTHER, /* another operation, kind or subresource: to be allowed */
        ADMISSION_NODE_DELETE,
        ADMISSION_CLAIM_DELETE,
        _ADMISSION_SUBJECT_MAX,
} AdmissionSubject;

typedef struct AdmissionReview {
        char *uid; /* of the request: its answer names the same */
        AdmissionSubject subject;
        char *operation, *group, *resource, *subresource; /* "DELETE", "", "nodes", ""; never NULL */
        char *username;                                   /* as the API server knows it; "": none */
        char **groups;
        bool dry_run;       /* nothing may be charged */
        KubeObject *object; /* what is to be deleted, a KubeNode or KubeNodeClaim, with name and uid;
                             * ADMISSION_OTHER: NULL. From oldObject: of one object of many
                             * (DELETECOLLECTION) the request itself has no name */
} AdmissionReview;

/* 0; -EBADMSG: it is no AdmissionReview that can be answered, and *reterr_message says why, for the answer
 * with HTTP 400 and the log; free it; -E2BIG: larger than ADMISSION_BODY_BYTES_MAX, with a text as well;
 * -ENOMEM. On failure *ret is empty. */
int admission_review_parse(const char *body, size_t size, InternPool *pool, AdmissionReview *ret,
                           char **reterr_message);
void admission_review_done(AdmissionReview *r);

/* Returns true if a Node that the view does not have may have been created after the last event of the Node
 * watch. version: the resourceVersion of the review's oldObject; seen_version: the last one that the watch
 * has delivered. Versions of one resource can be compared as numbers (KEP-5504, since 1.35; before that they
 * are revisions of etcd). A Node whose version the watch has passed was delivered, and has gone since or was
 * never there. Returns true also if either version is no number. A made-up version gains nothing: the answer
 * is a refusal. */
bool admission_may_be_newer(const char *version, const char *seen_version);

/* -- answers: the whole body, to be sent with HTTP 200. Free it; NULL on ENOMEM ------------------------- */

/* Limits of the API server, which cuts off or leaves out the rest: 4,096 bytes of warnings, 256 in each. */
#define ADMISSION_WARNINGS_MAX 16u
#define ADMISSION_WARNING_BYTES_MAX 256u
#define ADMISSION_MESSAGE_BYTES_MAX 4096u

/* kubectl prints each warning on a line of its own, and goes on. */
char *admission_allow(const char *uid, const char *const *warnings, size_t n_warnings);
/* 429 TooManyRequests: "admission webhook ... denied the request: MESSAGE". Without
 * details.retryAfterSeconds, for client-go would then repeat the request ten times and say nothing to the
 * person who waits. */
char *admission_refuse(const char *uid, const char *message);
/* 503 ServiceUnavailable, in the review: the failurePolicy does not decide. */
char *admission_unavailable(const char *uid, const char *message);
