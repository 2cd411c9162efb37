/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ctl-completion.h"
#include "ctl-options.h"
#include "ctl-verbs.h"
#include "daemon.h"
#include "kube-process.h"
#include "plain-output.h"
#include "string-util.h"
#include "strv.h"

typedef struct Process {
        Log *log;
        KubeProcess kube;
        CtlOptions options;
        usec_t request_timeout_usec; /* 0: none is given */
        Ctl ctl;
        void *state; /* of the verb */
        PlainOutput out, err; /* filter standard output and standard error */
} Process;

/* -- the command line ----------------------------------------------------------------------------------- */

static const OptionItem *find_item(const OptionItem *items, size_t n, const char *arg) {
        for (size_t i = 0; i < n; i++) {
                const char *name = startswith(arg, "--");

                if (name ? streq(items[i].name, name)
                         : items[i].letter && arg[0] == '-' && arg[1] == items[i].letter && arg[2] == 0)
                        return items + i;
        }
        return NULL;
}

/* The verb that this command line names: its first argument that is neither an option nor the value of one. 0: there
 * is none. */
static int find_verb(int argc, char **argv) {
        OptionItem items[CTL_ITEMS_MAX];
        size_t n = ctl_all_items(items);

        for (int i = 1; i < argc; i++) {
                const OptionItem *item;

                if (argv[i][0] != '-')
                        return i;
                item = find_item(items, n, argv[i]);
                if (item && item->value)
                        i++;
        }
        return 0;
}

static void describe_verbs(StrBuf *b) {
        strbuf_add(b, "Takes nodes out of service gracefully, and says what vesper does about them.\n\nCommands:\n");
        for (const CtlVerb *const *v = ctl_verbs; *v; v++)
                strbuf_addf(b, "  %-10s  %s\n", (*v)->name, (*v)->summary);
        strbuf_add(b, "\n'vesperctl COMMAND --help' tells more of one. 'vesperctl completion bash' (or zsh) prints a script for your shell.");
}

static void describe_verb(StrBuf *b, const CtlVerb *v) {
        strbuf_addf(b, "%s.\n\n%s\n\nExample:\n  %s\n\nExit status:\n"
                       "  0 done; 1 failed, as is said on standard error; 2 the command line is not valid%s%s.",
                    v->summary, v->text, v->example, v->statuses ? "; " : "", strempty(v->statuses));
}

static int check_output(Process *p, const CtlVerb *v) {
        CtlOutput o = (CtlOutput) __builtin_ctz(v->outputs);

        if (p->options.output)
                o = ctl_output_from_string(p->options.output);
        if (o < 0 || !(v->outputs & 1u << o)) {
                _cleanup_strbuf_ StrBuf known = {};

                for (CtlOutput k = 0; k < _CTL_OUTPUT_MAX; k++)
                        if (v->outputs & 1u << k)
                                strbuf_addf(&known, "%s%s", known.size > 0 ? ", " : "", ctl_output_to_string(k));
                return ctl_complain("-o %s: of %s it is one of: %s", p->options.output, v->name, strbuf_str(&known));
        }
        p->ctl.output = o;
        /* The lines of a snapshot are JSON in its only form. */
        if (o == CTL_OUTPUT_JSON || o == CTL_OUTPUT_YAML || v == &verb_snapshot)
                plain_output_set_form(&p->out, PLAIN_OUTPUT_JSON);
        return 1;
}

/* Returns the argument without a prefix of its kind that the verb knows. */
static const char *object_name(const CtlVerb *v, const char *arg) {
        const char *name = v->takes_claims ? startswith(arg, "nodeclaim/") ?: startswith(arg, "node/") : NULL;

        return name ?: arg;
}

static int check_arguments(Process *p, const CtlVerb *v) {
        if (p->ctl.n_args < v->min_args)
                return ctl_complain("%s needs %s. See 'vesperctl %s --help'", v->name, v->arguments, v->name);
        if (v->max_args == 0 && p->ctl.n_args > 0)
                return ctl_complain("%s takes no argument, and got '%s'", v->name, p->ctl.args[0]);
        if (p->ctl.n_args > v->max_args)
                return ctl_complain("%s takes %s, and got '%s', too", v->name, v->arguments,
                                    p->ctl.args[v->max_args]);
        for (size_t i = 0; i < p->ctl.n_args; i++)
                if (!dns1123_subdomain_is_valid(object_name(v, p->ctl.args[i])))
                        return ctl_complain("'%s' is not a valid name of an object", p->ctl.args[i]);
        return 1;
}

/* Before any of it is printed as a wrong word. */
static int refuse_secrets(int argc, char **argv) {
        static const char *const options[] = { "--token", "--password" };

        for (int i = 1; i < argc && !streq(argv[i], "--"); i++)
                for (size_t k = 0; k < ELEMENTSOF(options); k++) {
                        const char *rest = startswith(argv[i], options[k]);

                        if (rest && (*rest == 0 || *rest == '='))
                                return ctl_complain("%s is not taken: whoever lists the processes of this machine, or reads your shell's history, would have it. "
                                                    "Let a kubeconfig that only you may read hold the credential, and name it by --kubeconfig",
                                                    options[k]);
                }
        return 1;
}

static int check_request_timeout(Process *p) {
        const char *text = p->options.request_timeout;

        if (text && duration_parse_go(text, &p->request_timeout_usec) < 0)
                return ctl_complain("--request-timeout=%s: it is a duration such as 90s, 2m or 1h30m, or 0", text);
        return 1;
}

/* 1: go on; 0: done; negative: said what is wrong. */
static int parse(Process *p, int argc, char **argv) {
        _cleanup_strbuf_ StrBuf about = {}, usage = {};
        OptionItem items[CTL_ITEMS_MAX];
        OptionTable table = { .program = "vesperctl", .items = items };
        const CtlVerb *v = NULL;
        int at, first, r;

        r = refuse_secrets(argc, argv);
        if (r < 0)
                return r;
        at = find_verb(argc, argv);
        if (at > 0 && streq(argv[at], "completion"))
                return ctl_print_completion(argv[at + 1]);
        if (at > 0) {
                v = ctl_verb_find(argv[at]);
                if (!v)
                        return ctl_complain("no such command: '%s'. See 'vesperctl --help'", argv[at]);
                strbuf_addf(&usage, "%s [OPTIONS...] %s", v->name, strempty(v->arguments));
                describe_verb(&about, v);
        } else {
                strbuf_add(&usage, "[OPTIONS...] COMMAND");
                describe_verbs(&about);
        }
        table.n_items = ctl_items(v, items);
        table.usage = strbuf_str(&usage);
        table.about = strbuf_str(&about);
        r = options_parse(&table, argc, argv, &p->options, &first);
        if (r <= 0)
                return r;
        if (!v)
                return ctl_complain("which command? See 'vesperctl --help'");
        p->ctl = (Ctl) { .verb = v,
                         .options = &p->options,
                         .args = argv + first + 1,
                         .n_args = (size_t) (argc - first - 1) };
        if (!p->options.as && (p->options.as_uid || p->options.as_groups))
                return ctl_complain("--as-group and --as-uid go with --as: a name of a user");
        r = check_request_timeout(p);
        if (r >= 0)
                r = check_output(p, v);
        return r < 0 ? r : check_arguments(p, v);
}

/* -- the process ---------------------------------------------------------------------------------------- */

static void on_log_line(LogLevel level, const char *message_id, const char *text, const LogField *fields, size_t n_fields,
                        void *userdata) {
        ctl_complain("%s", text);
}

static int act_as(Process *p) {
        const CtlOptions *o = &p->options;
        int r = o->as ? kube_client_impersonate(p->kube.client, o->as, o->as_uid, o->as_groups) : 0;

        if (r == -EINVAL)
                ctl_complain("--as, --as-group and --as-uid take names without control characters, and of groups %u at most",
                             KUBE_GROUPS_MAX);
        return r;
}

static int connect_to_cluster(Process *p) {
        const HttpCurlOptions curl = { .user_agent = "vesperctl/" VESPER_VERSION };
        int r;

        r = log_new(LOG_TARGET_TEXT, LOG_LEVEL_NOTICE, "vesperctl", &p->log);
        if (r < 0)
                return r;
        log_set_hook(p->log, on_log_line, NULL);
        r = kube_process_open(&p->kube, p->log, &curl);
        if (r < 0)
                return r;
        p->kube.choice = (KubeConfigChoice){ .context = p->options.context,
                                             .cluster = p->options.cluster,
                                             .user = p->options.user,
                                             .server = p->options.server };
        r = kube_process_load(&p->kube, p->options.kubeconfig, false, true);
        if (r >= 0)
                r = kube_process_connect(&p->kube, "vesperctl");
        if (r >= 0)
                kube_client_limit(p->kube.client, p->request_timeout_usec);
        return r;
}

/* 1: done; 0: go on; negative: the status of a command line that is wrong. */
static int run_offline(Process *p) {
        struct timespec now;

        if (!p->ctl.verb->offline)
                return 0;
        clock_gettime(CLOCK_REALTIME, &now);
        p->ctl.started_wall_usec = (usec_t) now.tv_sec * USEC_PER_SEC;
        return p->ctl.verb->offline(&p->ctl);
}

static int run(Process *p) {
        int r;

        r = run_offline(p);
        if (r != 0)
                return r < 0 ? EXIT_USAGE : p->ctl.status;
        r = connect_to_cluster(p);
        if (r < 0)
                return EXIT_FAILURE;
        r = act_as(p);
        if (r < 0)
                return r == -EINVAL ? EXIT_USAGE : EXIT_FAILURE;
        p->ctl.env = &p->kube.env;
        p->ctl.client = p->kube.client;
        r = p->ctl.verb->start(&p->ctl, &p->state);
        if (r < 0)
                return r == -EINVAL ? EXIT_USAGE : EXIT_FAILURE;
        r = loop_run(p->kube.env.loop);
        if (r < 0)
                return EXIT_FAILURE;
        if (fflush(stdout) < 0) {
                ctl_complain("what was to be printed could not be written: %m");
                return EXIT_FAILURE;
        }
        return p->ctl.status;
}

int main(int argc, char **argv) {
        Process p = { .options = { .lease_ns = "vesper-system", .lease_name = "vesper-coordinator" } };
        int r;

        if (plain_output_begin(&p.err, &stderr, STDERR_FILENO) < 0 ||
            plain_output_begin(&p.out, &stdout, STDOUT_FILENO) < 0)
                return EXIT_FAILURE;
        r = parse(&p, argc, argv);
        r = r < 0 ? EXIT_USAGE : r == 0 ? EXIT_SUCCESS : run(&p);
        if (p.state)
                p.ctl.verb->free(p.state);
        kube_process_done(&p.kube);
        log_free(p.log);
        strv_free(p.options.logs);
        strv_free(p.options.as_groups);
        strv_free(p.options.snapshots);
        strv_free(p.options.with);
        (void) plain_output_end(&p.out);
        (void) plain_output_end(&p.err);
        return r;
}
