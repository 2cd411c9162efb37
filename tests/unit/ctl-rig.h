/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Runs verbs of vesperctl in process: a fake cluster on virtual time, a client with a loop of its own, and
 * the texts that a verb writes to standard output and standard error.
 */

#include "ctl.h"
#include "fake-client.h"
#include "kubeconfig.h"

typedef struct CtlRig {
        FakeWorld w;
        const char *identity; /* name of the user; borrowed */
        bool is_used;         /* a verb has run in this process */
        Loop *loop;           /* event loop of vesperctl */
        Random *random;
        HttpTransport *transport;
        KubeAuth *auth;
        Env env;
        Ctl ctl;
        char **args;
        void *verb;
        FILE *terminal[2]; /* standard output and error of the test */
        char *said[2];     /* standard output and error since the verb began */
        size_t size[2];
        unsigned n_faults;          /* how often the fault of the test still happens */
        usec_t eviction_reply_usec; /* delay of answers to evictions */
} CtlRig;

/* Makes a cluster with the nodes n1, n2 and spare. identity: name of the user, borrowed; NULL:
 * FAKE_ADMIN. */
void ctl_rig_init(CtlRig *b, const char *identity);
void ctl_rig_done(CtlRig *b);
#define _cleanup_ctl_rig_ _cleanup_(ctl_rig_done)

FakeApi *ctl_rig_api(CtlRig *b);
/* Starts a verb on nodes, which are separated by spaces. Returns the result of the verb's start function. */
int ctl_rig_start(CtlRig *b, const CtlVerb *v, CtlOutput output, const CtlOptions *o, const char *nodes);
/* Starts the verb of b->ctl with its options and arguments, each verb in a process of its own. */
int ctl_rig_start_ctl(CtlRig *b);
void ctl_rig_run(CtlRig *b, usec_t usec);
/* Frees the verb, as Ctrl-C does, and clears its output. */
void ctl_rig_end_verb(CtlRig *b);
/* stream: 0 is standard output, 1 is standard error. */
void ctl_rig_assert_says(const CtlRig *b, size_t stream, const char *text);
#define assert_prints(b, text) ctl_rig_assert_says((b), 0, (text))
#define assert_complains(b, text) ctl_rig_assert_says((b), 1, (text))
