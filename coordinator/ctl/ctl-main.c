/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "ctl-fetch.h"
#include "daemon.h"
#include "kube-process.h"
#include "string-util.h"

typedef struct Arguments {
        const char *kubeconfig, *lease_ns, *lease_name;
        bool json;
} Arguments;

typedef struct Program {
        Log *log;
        KubeProcess process;
        Arguments arguments;
        CtlFetch *fetch;
        CtlSnapshot snapshot;
} Program;

static void help(void) {
        printf("vesperctl [OPTIONS...] COMMAND\n\n"
               "Commands:\n"
               "  status      Which nodes are managed or interrupted, how far each is, and what holds it\n\n"
               "Options:\n"
               "     --kubeconfig=FILE         Credential; else KUBECONFIG, else ~/.kube/config\n"
               "  -o --output=table|json       Form of the output\n"
               "     --lease-namespace=NS      Where the coordinator's Lease lies (vesper-system)\n"
               "     --lease-name=NAME         Its name (vesper-coordinator)\n"
               "  -h --help                    Show this help\n"
               "     --version                 Show the version\n");
}

/* 1: go on; 0: done; negative: wrong usage. */
static int parse_options(int argc, char **argv, Arguments *a) {
        enum { ARG_KUBECONFIG = 256, ARG_LEASE_NS, ARG_LEASE_NAME, ARG_VERSION };
        static const struct option options[] = {
                { "kubeconfig", required_argument, NULL, ARG_KUBECONFIG },
                { "output", required_argument, NULL, 'o' },
                { "lease-namespace", required_argument, NULL, ARG_LEASE_NS },
                { "lease-name", required_argument, NULL, ARG_LEASE_NAME },
                { "help", no_argument, NULL, 'h' },
                { "version", no_argument, NULL, ARG_VERSION },
                {},
        };
        int o;

        while ((o = getopt_long(argc, argv, "o:h", options, NULL)) >= 0)
                switch (o) {
                case ARG_KUBECONFIG:
                        a->kubeconfig = optarg;
                        break;
                case ARG_LEASE_NS:
                        a->lease_ns = optarg;
                        break;
                case ARG_LEASE_NAME:
                        a->lease_name = optarg;
                        break;
                case 'o':
                        a->json = streq(optarg, "json");
                        if (!a->json && !streq(optarg, "table")) {
                                fprintf(stderr, "vesperctl: -o %s: it is table or json\n", optarg);
                                return -EINVAL;
                        }
                        break;
                case 'h':
                        help();
                        return 0;
                case ARG_VERSION:
                        printf("vesperctl %s\n", VESPER_VERSION);
                        return 0;
                default:
                        return -EINVAL; /* getopt said why */
                }
        return 1;
}

static int parse_command(int argc, char **argv) {
        if (optind >= argc) {
                fprintf(stderr, "vesperctl: which command? See --help\n");
                return -EINVAL;
        }
        if (!streq(argv[optind], "status")) {
                fprintf(stderr, "vesperctl: no such command: '%s'. See --help\n", argv[optind]);
                return -EINVAL;
        }
        if (optind + 1 < argc) {
                fprintf(stderr, "vesperctl: status takes no argument, and got '%s'\n", argv[optind + 1]);
                return -EINVAL;
        }
        return 1;
}

static void on_fetched(int error, const char *message, CtlSnapshot *snapshot, void *userdata) {
        Program *p = userdata;

        if (message)
                fprintf(stderr, "vesperctl: %s\n", message);
        p->snapshot = *snapshot;
        loop_exit(p->process.env.loop, error);
}

static int print_status(Program *p) {
        _cleanup_(status_rows_done) StatusRows rows = {};
        _cleanup_free_ char *text = NULL;
        int r;

        r = status_rows_make(&p->snapshot, &rows);
        if (r < 0)
                return r;
        text = p->arguments.json ? status_rows_json(&rows, &p->snapshot)
                                 : status_rows_table(&rows, &p->snapshot);
        if (!text)
                return -ENOMEM;
        return printf("%s%s", text, p->arguments.json ? "\n" : "") < 0 || fflush(stdout) < 0 ? -EIO : 0;
}

static int run(Program *p) {
        const HttpCurlOptions curl = { .user_agent = "vesperctl/" VESPER_VERSION };
        int r;

        r = log_new(LOG_TARGET_TEXT, LOG_LEVEL_NOTICE, "vesperctl", &p->log);
        if (r < 0)
                return r;
        r = kube_process_open(&p->process, p->log, &curl);
        if (r < 0)
                return r;
        r = kube_process_load(&p->process, p->arguments.kubeconfig, false, true);
        if (r < 0)
                return r;
        r = kube_process_connect(&p->process, "vesperctl");
        if (r < 0)
                return r;
        r = ctl_fetch_new(p->process.client, p->arguments.lease_ns, p->arguments.lease_name, on_fetched, p,
                          &p->fetch);
        if (r < 0)
                return log_error_errno(p->log, r, "Failed to ask the API server: %m");
        r = loop_run(p->process.env.loop);
        return r < 0 ? r : print_status(p);
}

int main(int argc, char **argv) {
        Program p = { .arguments = { .lease_ns = "vesper-system", .lease_name = "vesper-coordinator" } };
        int r;

        r = parse_options(argc, argv, &p.arguments);
        if (r > 0)
                r = parse_command(argc, argv);
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
