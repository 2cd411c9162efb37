/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "ctl-fetch.h"
#include "daemon.h"
#include "kube-process.h"
#include "options.h"
#include "string-util.h"

typedef struct Options {
        const char *kubeconfig, *output, *lease_ns, *lease_name;
} Options;

typedef struct Process {
        Log *log;
        KubeProcess process;
        Options options;
        bool json;
        CtlFetch *fetch;
        CtlSnapshot snapshot;
} Process;

#define STRING(option, field, shown, text, ...) \
        { .name = option, \
          .value = shown, \
          .kind = OPTION_STRING, \
          .offset = offsetof(Options, field), \
          .help = text, \
          __VA_ARGS__ }

static const OptionItem option_items[] = {
        STRING("kubeconfig", kubeconfig, "FILE", "Credential; else KUBECONFIG, else ~/.kube/config"),
        STRING("output", output, "table|json", "Form of the output", .letter = 'o'),
        STRING("lease-namespace", lease_ns, "NAMESPACE",
               "Where the coordinator's Lease lies (vesper-system)"),
        STRING("lease-name", lease_name, "NAME", "Its name (vesper-coordinator)"),
        OPTIONS_HELP,
        OPTIONS_VERSION,
};

static const OptionTable options = {
        .program = "vesperctl",
        .usage = "[OPTIONS...] COMMAND",
        .about = "Commands:\n"
                 "  status      Which nodes are managed or interrupted, how far each is, and what holds it",
        .items = option_items,
        .n_items = ELEMENTSOF(option_items),
};

/* 1: go on; 0: done; negative: said what is wrong. */
static int parse(Process *p, int argc, char **argv) {
        const char *output;
        int first, r;

        r = options_parse(&options, argc, argv, &p->options, &first);
        if (r <= 0)
                return r;
        output = p->options.output;
        p->json = output && streq(output, "json");
        if (output && !p->json && !streq(output, "table")) {
                fprintf(stderr, "vesperctl: -o %s: it is table or json\n", output);
                return -EINVAL;
        }
        if (first >= argc) {
                fprintf(stderr, "vesperctl: which command? See --help\n");
                return -EINVAL;
        }
        if (!streq(argv[first], "status")) {
                fprintf(stderr, "vesperctl: no such command: '%s'. See --help\n", argv[first]);
                return -EINVAL;
        }
        if (first + 1 < argc) {
                fprintf(stderr, "vesperctl: status takes no argument, and got '%s'\n", argv[first + 1]);
                return -EINVAL;
        }
        return 1;
}

static void on_fetched(int error, const char *message, CtlSnapshot *snapshot, void *userdata) {
        Process *p = userdata;

        if (message)
                fprintf(stderr, "vesperctl: %s\n", message);
        p->snapshot = *snapshot;
        loop_exit(p->process.env.loop, error);
}

static int print_status(Process *p) {
        _cleanup_(status_rows_done) StatusRows rows = {};
        _cleanup_free_ char *text = NULL;
        int r;

        r = status_rows_make(&p->snapshot, &rows);
        if (r < 0)
                return r;
        text = p->json ? status_rows_json(&rows, &p->snapshot) : status_rows_table(&rows, &p->snapshot);
        if (!text)
                return -ENOMEM;
        return printf("%s%s", text, p->json ? "\n" : "") < 0 || fflush(stdout) < 0 ? -EIO : 0;
}

static int run(Process *p) {
        const HttpCurlOptions curl = { .user_agent = "vesperctl/" VESPER_VERSION };
        int r;

        r = log_new(LOG_TARGET_TEXT, LOG_LEVEL_NOTICE, "vesperctl", &p->log);
        if (r < 0)
                return r;
        r = kube_process_open(&p->process, p->log, &curl);
        if (r < 0)
                return r;
        r = kube_process_load(&p->process, p->options.kubeconfig, false, true);
        if (r < 0)
                return r;
        r = kube_process_connect(&p->process, "vesperctl");
        if (r < 0)
                return r;
        r = ctl_fetch_new(p->process.client, p->options.lease_ns, p->options.lease_name, on_fetched, p,
                          &p->fetch);
        if (r < 0)
                return log_error_errno(p->log, r, "Failed to ask the API server: %m");
        r = loop_run(p->process.env.loop);
        return r < 0 ? r : print_status(p);
}

int main(int argc, char **argv) {
        Process p = { .options = { .lease_ns = "vesper-system", .lease_name = "vesper-coordinator" } };
        int r;

        r = parse(&p, argc, argv);
        if (r < 0)
                return EXIT_USAGE; /* what is wrong has been said */
        if (r > 0)
                r = run(&p);
        ctl_fetch_free(p.fetch);
        ctl_snapshot_done(&p.snapshot);
        kube_process_done(&p.process);
        log_free(p.log);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
