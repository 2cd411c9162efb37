/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator.h"
#include "daemon.h"
#include "kube-process.h"
#include "log-catalog.h"
#include "reload.h"
#include "string-util.h"
#include "strv.h"

#define DEFAULT_CONFIG "/etc/vesper/coordinator.conf"
/* What must be soon (an empty node, a PDB that gives way) is done by the first of them. An answer of a busy
 * API server takes five intervals and more. */
#define WAKEUPS_BURST 50
#define WAKEUP_USEC (20 * USEC_PER_MSEC)
/* Room for the evictor's 160, and beside them for what gives way to them. A connection is 120 kB. */
#define CONNECTIONS 4u
#define BULK_STREAMS 50u
/* What pods do matters to nodes that are being removed: then nothing rests (leading.c). */
#define REST_USEC (100 * USEC_PER_MSEC)

typedef struct Arguments {
        const char *config_path;
        bool config_required, dump_config;
        char **settings;
} Arguments;

typedef struct Program {
        Arguments arguments;
        Log *log;
        KubeProcess process;
        CoordinatorConfig config;
        CloudProvider *provider;
        Coordinator *coordinator;
        Reload *reload;
        char *identity;
} Program;

static void help(void) {
        printf("vesper-coordinator [OPTIONS...]\n\n"
               "Takes the nodes of this cluster's NodePools out of service gracefully. Run two: one leads "
               "by Lease.\n\n"
               "  -c --config=FILE              Read FILE and FILE.d/*.conf instead of " DEFAULT_CONFIG "\n"
               "  -s --set=SECTION.KEY=VALUE    Set one value; may be given several times\n"
               "     --dump-config              Print the configuration that would be used, and exit\n"
               "  -h --help                     Show this help\n"
               "     --version                  Show the version\n");
}

/* 1: go on; 0: done; negative: wrong usage. */
static int parse_arguments(int argc, char **argv, Arguments *a) {
        enum { ARG_DUMP = 256, ARG_VERSION };
        static const struct option options[] = {
                { "config", required_argument, NULL, 'c' },     { "set", required_argument, NULL, 's' },
                { "dump-config", no_argument, NULL, ARG_DUMP }, { "help", no_argument, NULL, 'h' },
                { "version", no_argument, NULL, ARG_VERSION },  {},
        };
        int o;

        while ((o = getopt_long(argc, argv, "c:s:h", options, NULL)) >= 0)
                switch (o) {
                case 'c':
                        a->config_path = optarg;
                        a->config_required = true;
                        break;
                case 's':
                        if (strv_extend(&a->settings, optarg) < 0)
                                return -ENOMEM;
                        break;
                case ARG_DUMP:
                        a->dump_config = true;
                        break;
                case 'h':
                        help();
                        return 0;
                case ARG_VERSION:
                        printf("vesper-coordinator %s\n", VESPER_VERSION);
                        return 0;
                default:
                        return -EINVAL; /* getopt said why */
                }
        if (optind < argc) {
                fprintf(stderr, "vesper-coordinator: unexpected argument '%s', see --help\n", argv[optind]);
                return -EINVAL;
        }
        return 1;
}

static const char *on_getenv(const char *name, void *userdata) {
        return secure_getenv(name);
}

/* Messages about the configuration itself go where standard error is, before anybody could say otherwise. */
static int load_config(Program *p) {
        const Arguments *a = &p->arguments;
        _cleanup_(log_freep) Log *log = NULL;
        int r;

        r = log_new(log_target_auto(), LOG_LEVEL_INFO, "vesper-coordinator", &log);
        if (r < 0)
                return r;
        return config_load(log, coordinator_config_table, coordinator_config_table_size, a->config_path,
                           a->config_required, a->settings, &p->config);
}

static int make_provider(Program *p) {
        const CloudConfig c = {
                .name = cloud_provider_names[p->config.provider],
                .endpoint = p->config.provider_endpoint,
                .region = p->config.provider_region,
                .command = p->config.provider_command,
                .getenv = on_getenv,
        };
        const char *message = NULL;
        int r;

        r = cloud_provider_new(&p->process.env, &c, &p->provider, &message);
        if (r < 0)
                log_full(p->process.env.log, LOG_LEVEL_ERROR, r, MESSAGE_CONFIGURATION_REFUSED, NULL, 0,
                         "Failed to set up provider '%s' ([Provider] Name=): %s", c.name,
                         message ? message : "out of memory");
        return r;
}

static void on_stopped(void *userdata) {
        Program *p = userdata;

        loop_exit(p->process.env.loop, 0);
}

static void on_stop_signal(int signal, void *userdata) {
        Program *p = userdata;

        log_info(p->log, "Got %s, stopping", strsignal(signal));
        coordinator_stop(p->coordinator, on_stopped, p);
}

/* -- reload ----------------------------------------------------------------------------------------------
 */

static void on_reload_signal(void *userdata) {
        Program *p = userdata;

        reload_now(p->reload, "SIGHUP");
}

static void on_apply(void *userdata) {
        Program *p = userdata;

        log_set_target(p->log, coordinator_config_log_target(&p->config));
        log_set_level(p->log, coordinator_config_log_level(&p->config));
        coordinator_reconfigured(p->coordinator);
}

static int on_credential(char **ret_text, void *userdata) {
        Program *p = userdata;

        return kube_process_reload(&p->process, ret_text);
}

static int make_reload(Program *p) {
        const ReloadOptions o = {
                .env = &p->process.env,
                .table = coordinator_config_table,
                .n_table = coordinator_config_table_size,
                .path = p->arguments.config_path,
                .required = p->arguments.config_required,
                .settings = p->arguments.settings,
                .config = &p->config,
                .config_size = sizeof(p->config),
                .credential_path = p->process.path,
                .apply = on_apply,
                .credential = on_credential,
                .userdata = p,
        };

        return reload_new(&o, &p->reload);
}

/* -- running ---------------------------------------------------------------------------------------------
 */

static int run(Program *p) {
        const DaemonSignals signals = { .on_stop = on_stop_signal,
                                        .on_reload = on_reload_signal,
                                        .userdata = p };
        const HttpCurlOptions curl = { .user_agent = "vesper-coordinator/" VESPER_VERSION,
                                       .max_connections_per_host = CONNECTIONS,
                                       .max_bulk_streams = BULK_STREAMS,
                                       .keep_tls_buffers = true,
                                       .rest_usec = REST_USEC };
        int r;

        r = log_new(coordinator_config_log_target(&p->config), coordinator_config_log_level(&p->config),
                    "vesper-coordinator", &p->log);
        if (r < 0)
                return r;
        r = kube_process_open(&p->process, p->log, &curl);
        if (r < 0)
                return r;
        r = kube_process_load(&p->process, p->config.kubeconfig, true, false);
        if (r < 0)
                return r;
        r = kube_process_connect(&p->process, "vesper-coordinator");
        if (r < 0)
                return r;
        kube_process_warn(&p->process);
        r = make_provider(p);
        if (r < 0)
                return r;
        p->identity = coordinator_identity(&p->config, p->process.env.random);
        if (!p->identity)
                return -ENOMEM;
        r = coordinator_new(&p->process.env, &p->config, p->process.client, p->provider, p->identity,
                            &p->coordinator);
        if (r < 0)
                return r;
        r = make_reload(p);
        if (r < 0)
                return r;
        r = daemon_watch_signals(p->process.env.loop, p->log, &signals);
        if (r < 0)
                return r;
        loop_set_pace(p->process.env.loop, WAKEUPS_BURST, WAKEUP_USEC);
        r = coordinator_start(p->coordinator);
        if (r < 0)
                return r;
        log_info(p->log, "vesper-coordinator %s at %s, %s", VESPER_VERSION, p->process.kubeconfig->server,
                 kube_auth_describe(p->process.auth));
        return loop_run(p->process.env.loop);
}

static void program_done(Program *p) {
        reload_free(p->reload);
        coordinator_free(p->coordinator);
        cloud_provider_free(p->provider);
        kube_process_done(&p->process);
        log_free(p->log);
        free(p->identity);
        config_done(coordinator_config_table, coordinator_config_table_size, &p->config);
        strv_free(p->arguments.settings);
}

/* Each request holds libcurl's upload buffer of 16 kB. As a mapping of its own it would cost two system
 * calls and a fault for every request, so that it comes from the heap; what is larger, a page of a list,
 * goes back at once. Fast bins would be swept at each piece of more than a kilobyte. */
static void keep_memory_small(void) {
        (void) mallopt(M_MMAP_THRESHOLD, 32 * 1024);
        (void) mallopt(M_TRIM_THRESHOLD, 128 * 1024);
        (void) mallopt(M_MXFAST, 0);
        (void) mallopt(M_ARENA_MAX, 1);
}

int main(int argc, char **argv) {
        Program p = { .arguments = { .config_path = DEFAULT_CONFIG } };
        bool refused;
        int r;

        keep_memory_small();
        r = parse_arguments(argc, argv, &p.arguments);
        if (r > 0) {
                r = load_config(&p);
                refused = r < 0;
                if (r >= 0 && p.arguments.dump_config)
                        r = config_dump(stdout, coordinator_config_table, coordinator_config_table_size,
                                        &p.config);
                else if (r >= 0)
                        r = run(&p);
        } else
                refused = r < 0;
        program_done(&p);
        return refused ? EXIT_USAGE : r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
