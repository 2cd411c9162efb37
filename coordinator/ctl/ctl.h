/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * ctl/: vesperctl. Works with a person's own credential on the objects of the API alone, and needs no coordinator
 * to be up. Calls everything below; called by nobody.
 *
 *      ctl-main.c      the command line, the process
 *      ctl-verbs.c     the table of verbs
 *      ctl-say.c       what a failed call is called in words, tables, YAML of JSON
 *      verb-NAME.c     one verb each: its calls, and what it prints
 *      others          what verbs stand on: pure, or without a word on standard output
 */

#include <stdio.h>
#include <systemd/sd-event.h>

#include "env.h"
#include "kube-client.h"

typedef enum CtlOutput {
        CTL_OUTPUT_TABLE, /* for people */
        CTL_OUTPUT_JSON,
        CTL_OUTPUT_YAML,
        CTL_OUTPUT_SVG,
        CTL_OUTPUT_HTML,
        _CTL_OUTPUT_MAX,
        _CTL_OUTPUT_INVALID = -EINVAL,
} CtlOutput;

const char *ctl_output_to_string(CtlOutput o);
CtlOutput ctl_output_from_string(const char *s);

typedef struct CtlOptions {
        const char *kubeconfig, *context, *cluster, *user, *server, *request_timeout;
        const char *output, *lease_ns, *lease_name;
        const char *timeout, *deadline, *protected_policy;
        const char *as, *as_uid;
        char **as_groups;
        const char *without, *upgrade;
        char **logs, **snapshots, **with;
        bool dry_run, all, yes, watch, without_coordinator, all_drainable, complete, anonymize, simulate;
} CtlOptions;

typedef struct Ctl Ctl;

typedef struct CtlVerb {
        const char *name;      /* "drain" */
        const char *arguments; /* "NODE..."; NULL: it takes none */
        const char *summary;   /* one line, for the list of verbs */
        const char *text;      /* a paragraph, or some: --help of this verb, and the manual page */
        const char *example;   /* a command line */
        const char *statuses;  /* exit statuses that mean something here beside 0, 1 and 2; NULL: none */
        unsigned min_args, max_args;
        bool takes_claims;          /* an argument may be "node/NAME" or "nodeclaim/NAME" */
        unsigned outputs;           /* 1u << CTL_OUTPUT_*: which -o it knows; the lowest is what it has without */
        const char *const *options; /* names of those it takes beside what all take, NULL at the end; or NULL */
        /* Is asked first, without a cluster: 1: it is done, and has set Ctl.status; 0: it needs one; negative: said what
         * is wrong with the command line. NULL: it needs one. */
        int (*offline)(Ctl *ctl);
        /* Begins: makes its calls, from the loop ctl_finish(). *ret: what free gets. Negative: said what is
         * wrong. */
        int (*start)(Ctl *ctl, void **ret);
        void (*free)(void *state);
} CtlVerb;

extern const CtlVerb *const ctl_verbs[]; /* NULL at the end */
const CtlVerb *ctl_verb_find(const char *name); /* NULL: there is none */
bool ctl_verb_takes(const CtlVerb *v, const char *option);

struct Ctl {
        const CtlVerb *verb;
        Env *env;
        KubeClient *client;
        const CtlOptions *options;
        CtlOutput output;
        char *const *args; /* behind the verb */
        size_t n_args;
        usec_t started_wall_usec;
        int status; /* of the process, once ctl_finish() was called */
};

/* The verb is done: the loop ends. status: the process' exit status. */
void ctl_finish(Ctl *ctl, int status);
/* Finishes with EXIT_FAILURE. error: negative errno of a call that could not be made, to print; 0: the
 * caller has printed the reason. */
void ctl_give_up(Ctl *ctl, int error);
/* SIGINT and SIGTERM come by the loop from now on, to handler; whoever made the sources drops them. EXIT_INTERRUPTED is the
 * status then. */
int ctl_watch_signals(Ctl *ctl, sd_event_source *ret_sources[2], sd_event_signal_handler_t handler, void *userdata);
#define EXIT_INTERRUPTED 130
/* Somebody looks at standard error, a terminal. */
bool ctl_shows_progress(void);
/* Prints one line. Line feeds and control characters in the arguments are replaced. */
void ctl_print(FILE *f, const char *fmt, ...) _printf_(2, 3);
/* "vesperctl: " and such a line on standard error. Returns -EINVAL, for a start that has found a wrong
 * argument. */
int ctl_complain(const char *fmt, ...) _printf_(1, 2);
/* --option=text as a duration above 0: 0, or what complaining of it returns. text NULL: *ret stays. */
int ctl_duration_option(const char *option, const char *text, usec_t *ret);
