/* SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cloud-registry.h"
#include "coordinator.h"
#include "log-catalog.h"
#include "program.h"
#include "sqs-client.h"
#include "string-util.h"

#define DEFAULT_CONFIG "/etc/vesper/coordinator.conf"
/* What must be soon (an empty node, a PDB that gives way) is done by the first of them. An answer of a busy
 * API server takes five intervals and more. */
#define WAKEUPS_BURST 50
#define WAKEUP_USEC (20 * USEC_PER_MSEC)
/* Room for the evictor's 160, and beside them for what gives way to them. A connection is 120 kB. */
#define CONNECTIONS 4u
#define BULK_STREAMS 50u
/* What pods do matters to nodes that are being removed: then nothing rests (removals.h). */
#define REST_USEC (100 * USEC_PER_MSEC)

/* Everything that lives as long as the process, freed from the last to the first. */
typedef struct Process {
        ProgramOptions options;
        CoordinatorConfig config;
        Program program;
        CloudRegistry cloud;
        SqsClient *queue; /* NULL: none */
        Coordinator *coordinator;
        char *identity;
} Process;

static void process_done(Process *p) {
        coordinator_free(p->coordinator);
        sqs_client_free(p->queue);
        cloud_registry_done(&p->cloud);
        program_done(&p->program);
        free(p->identity);
}

static const char *on_getenv(const char *name, void *userdata) {
        return secure_getenv(name);
}

static int make_provider(Process *p, const char *name) {
        const CloudConfig c = {
                .name = name,
                .endpoint = p->config.provider_endpoint,
                .region = p->config.provider_region,
                .command = p->config.provider_command,
                .getenv = on_getenv,
        };
        CloudProvider *provider;
        const char *message = NULL;
        int r;

        r = cloud_provider_new(&p->program.kube.env, &c, &provider, &message);
        if (r < 0) {
                log_full(p->program.kube.env.log, LOG_LEVEL_ERROR, r, MESSAGE_CONFIGURATION_REFUSED, NULL, 0,
                         "Failed to set up provider '%s' ([Provider] Name=): %s", name,
                         message ? message : "out of memory");
                return r;
        }
        cloud_registry_add(&p->cloud, provider);
        return 0;
}

static int make_queue(Process *p) {
        const SqsConfig c = { .url = p->config.queue_url, .region = p->config.provider_region, .getenv = on_getenv };
        const char *message = NULL;
        int r;

        if (isempty(p->config.queue_url))
                return 0;
        r = sqs_client_new(&p->program.kube.env, &c, &p->queue, &message);
        return r < 0 ? log_full(p->program.kube.env.log, LOG_LEVEL_ERROR, r, MESSAGE_CONFIGURATION_REFUSED, NULL, 0,
                                "Failed to set up the interruption queue, [Queue] Url=%s: %s", p->config.queue_url,
                                message ? message : "out of memory")
                     : 0;
}

static void on_stopped(void *userdata) {
        Process *p = userdata;

        loop_exit(p->program.kube.env.loop, 0);
}

static void on_stop_signal(int signal, void *userdata) {
        Process *p = userdata;

        log_info(p->program.log, "Got %s, stopping", strsignal(signal));
        coordinator_stop(p->coordinator, on_stopped, p);
}

static int on_finish(void *config, Log *log, void *userdata) {
        return coordinator_config_check(config, log);
}

static void on_apply(void *userdata) {
        Process *p = userdata;

        coordinator_reconfigured(p->coordinator);
}

static void on_files(void *userdata) {
        Process *p = userdata;

        coordinator_read_files(p->coordinator);
}

/* -- running -------------------------------------------------------------------------------------------- */

static const OptionItem option_items[] = {
        PROGRAM_OPTIONS(Process, options, DEFAULT_CONFIG),
        OPTIONS_HELP,
        OPTIONS_VERSION,
};

static const OptionTable options = {
        .program = "vesper-coordinator",
        .usage = "[OPTIONS...]",
        .about =
                "Takes the nodes of this cluster's NodePools out of service gracefully. Run two: one leads by Lease.",
        .items = option_items,
        .n_items = ELEMENTSOF(option_items),
};

static int run(Process *p) {
        const HttpCurlOptions curl = { .user_agent = "vesper-coordinator/" VESPER_VERSION,
                                       .max_connections_per_host = CONNECTIONS,
                                       .max_bulk_streams = BULK_STREAMS,
                                       .keep_tls_buffers = true,
                                       .rest_usec = REST_USEC };
        int r;

        r = kube_process_open(&p->program.kube, p->program.log, &curl);
        if (r < 0)
                return r;
        r = kube_process_load(&p->program.kube, p->config.kubeconfig, true, false);
        if (r < 0)
                return r;
        r = kube_process_connect(&p->program.kube, "vesper-coordinator");
        if (r < 0)
                return r;
        r = program_watch(&p->program);
        if (r < 0)
                return r;
        kube_process_warn(&p->program.kube);
        for (size_t i = 0; i < p->config.providers.n; i++) {
                r = make_provider(p, cloud_provider_names[p->config.providers.at[i]]);
                if (r < 0)
                        return r;
        }
        r = make_queue(p);
        if (r < 0)
                return r;
        p->identity = coordinator_identity(&p->config, p->program.kube.env.random);
        if (!p->identity)
                return -ENOMEM;
        r = coordinator_new(&p->program.kube.env, &p->config, p->program.kube.client, &p->cloud,
                            p->identity, &p->coordinator);
        if (r < 0)
                return r;
        if (p->queue)
                coordinator_set_queue(p->coordinator, p->queue);
        loop_set_pace(p->program.kube.env.loop, WAKEUPS_BURST, WAKEUP_USEC);
        r = coordinator_start(p->coordinator);
        if (r < 0)
                return r;
        log_info(p->program.log, "vesper-coordinator %s at %s, %s", VESPER_VERSION,
                 p->program.kube.kubeconfig->server, kube_auth_describe(p->program.kube.auth));
        return loop_run(p->program.kube.env.loop);
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
        const ProgramSpec spec = {
                .options = &options,
                .config_path = DEFAULT_CONFIG,
                .table = coordinator_config_table,
                .n_table = coordinator_config_table_size,
                .config_size = sizeof(CoordinatorConfig),
                .finish = on_finish,
                .on_stop = on_stop_signal,
                .on_apply = on_apply,
                .on_files = on_files,
        };
        _cleanup_(process_done) Process p = { .program = { .spec = &spec,
                                                           .options = &p.options,
                                                           .config = &p.config,
                                                           .log_settings = &p.config.log,
                                                           .userdata = &p } };
        int first, r;

        keep_memory_small();
        r = options_parse(&options, argc, argv, &p, &first);
        if (r > 0 && first < argc) {
                fprintf(stderr,
                        "vesper-coordinator: '%s' is not an option\nTry 'vesper-coordinator --help'.\n",
                        argv[first]);
                r = -EINVAL;
        }
        if (r > 0)
                r = program_configure(&p.program);
        if (r <= 0)
                return r < 0 ? EXIT_USAGE : EXIT_SUCCESS;
        return run(&p) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
