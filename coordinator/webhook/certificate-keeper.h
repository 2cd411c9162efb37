/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The Secret that holds the webhook's certificate (certificate-plan.h): watched by each replica, made by whichever comes
 * first where it is absent (or blank, as the chart makes it), brought forward by the leader alone. One that was deleted, or overwritten with garbage, is put
 * back as it was by whoever still has it.
 *
 * The API server is asked for its time each hour (header Date of its answers). Nothing is renewed or replaced for
 * its age unless that clock and our own both say so, and what is made begins by the API server's: a machine whose
 * clock is set years ahead makes no CA that others do not trust yet. While the API server tells no time, nothing is
 * of an age.
 */

#include "certificate-plan.h"
#include "kube-client.h"
#include "wakeup.h"

/* Bound of the timer of the Secret: the keeper asks the API server for its time as often. */
#define CERTIFICATE_KEEPER_WAKEUP_USEC USEC_PER_HOUR

typedef struct CertificateKeeper CertificateKeeper;

typedef struct CertificateKeeperOptions {
        const char *ns, *name;   /* of the Secret */
        char *const *names;      /* that the certificate is to cover; borrowed */
        void (*changed)(void *userdata); /* certificate_keeper_set() is another */
        void *userdata;
} CertificateKeeperOptions;

int certificate_keeper_new(KubeClient *c, const CertificateKeeperOptions *o, CertificateKeeper **ret);
CertificateKeeper *certificate_keeper_free(CertificateKeeper *k);
DEFINE_FREEP(CertificateKeeper, certificate_keeper_free);

/* What is to be shown, and trusted; NULL: nothing that serves was seen yet. Borrowed until `changed`. */
const CertificateSet *certificate_keeper_set(const CertificateKeeper *k);
/* guard NULL: another leads. */
void certificate_keeper_lead(CertificateKeeper *k, const HttpGuard *guard);
/* Whether the API server knows the bundle of certificate_keeper_set(). */
void certificate_keeper_set_bundle_stands(CertificateKeeper *k, bool stands);

/* Reports the Secret to wakeups_unfinished() as soon as its informer has synced, and the informer. */
void certificate_keeper_next_wakeup(const CertificateKeeper *k, Wakeups *w);
