/* SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent-client.h"
#include "agent.h"
#include "check.h"
#include "fd-store.h"
#include "file-util.h"
#include "log-catalog.h"
#include "node-cleanup.h"
#include "node-identity.h"
#include "notice-sources.h"
#include "notice-survey.h"
#include "plain-output.h"
#include "program.h"
#include "string-util.h"

/* The process around an Agent: options, configuration, the real Env, signals. SIGTERM asks the agent, which
 * ends at once unless the machine shuts down (shutdown.h): nothing is drained and nothing undone by a stop,
 * a restart or an upgrade. SIGINT, from a person's terminal, ends it without a question. */

#define DEFAULT_CONFIG "/etc/vesper/agent.conf"
/* The id of this boot as the service manager has it (%b in the unit). The file says another one where the
 * machine is a container whose manager has put its own over the kernel's: the unit's /proc is without that,
 * and the kubelet, which has no sandbox, tells the machine's on the Node. */
#define BOOT_ID_VARIABLE "VESPER_BOOT_ID"
#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"
/* Nothing that the loop waits for takes so long. */
#define HUNG_USEC USEC_PER_MINUTE
#define RELEASE_TIMEOUT_USEC (15 * USEC_PER_SEC)

typedef struct Options {
        ProgramOptions program;
        bool release, drain, reboot, cancel, cancel_drain, cancel_reboot, check, notices, force;
        const char *output;
} Options;

/* Everything that lives as long as the process, freed from the last to the first. */
typedef struct Process {
        Options options;
        AgentConfig config;
        Program program;
        char *boot_id;
        FdStore fds;
        Agent *agent;
        Timer *watch;
        bool passing; /* does one thing and ends: keeps no state, hears of nothing */
} Process;

static void process_done(Process *p) {
        Env *env = &p->program.kube.env;

        timer_free(p->watch);
        agent_free(p->agent);
        netlink_free(env->netlink);
        bus_free(env->bus);
        state_store_free(env->state);
        program_done(&p->program);
        fd_store_done(&p->fds);
        free(p->boot_id);
}

/* -- options ------------------------------------------------------------------------------------ */

#define FLAG(option, field, text) \
        { .name = option, .kind = OPTION_FLAG, .offset = offsetof(Options, field), .help = text }

static const OptionItem option_items[] = {
        PROGRAM_OPTIONS(Options, program, DEFAULT_CONFIG),
        FLAG("check", check,
             "Say what this machine gives an agent: OK, WARN and FAIL, each with its fix (exit status 0, 3, 4)"),
        FLAG("notices", notices,
             "Ask every source of notices once, and say what stands and what [Policy] makes of it (exit status 0; 3: not all of them answered)"),
        { .name = "output",
          .letter = 'o',
          .value = "FORM",
          .kind = OPTION_STRING,
          .offset = offsetof(Options, output),
          .help = "With --notices: text or json" },
        FLAG("drain", drain,
             "Ask the agent of this machine to take its node out of service, and wait until it is drained"),
        FLAG("reboot", reboot, "Ask for a slot to reboot this node, wait for it, drain and reboot"),
        FLAG("force", force,
             "With --drain or --reboot: in spite of do-not-evict pods, which they wait for; also where it was asked for before"),
        FLAG("cancel-drain", cancel_drain, "End what --drain asked for, and nothing else"),
        FLAG("cancel-reboot", cancel_reboot, "Take back what --reboot asked for, and nothing else"),
        FLAG("cancel", cancel, "Both of these"),
        FLAG("release", release,
             "Take everything of vesper-agent's off this machine's Node, and exit: before the agent is removed, and while it does not run"),
        OPTIONS_HELP,
        OPTIONS_VERSION,
};

static const OptionTable options = {
        .program = "vesper-agent",
        .usage = "[OPTIONS...]",
        .about = "Sees the end of its own node coming, and moves the node's work away in time.",
        .items = option_items,
        .n_items = ELEMENTSOF(option_items),
};

/* 1: go on; 0: done; -EINVAL, -ENOMEM: said what is wrong. */
static int parse_options(Options *o, int argc, char **argv) {
        int first, r;

        r = options_parse(&options, argc, argv, o, &first);
        if (r <= 0)
                return r;
        if (o->cancel)
                o->cancel_drain = o->cancel_reboot = true;
        if (o->drain + (o->cancel_drain || o->cancel_reboot) + o->reboot + o->release + o->check + o->notices > 1) {
                fputs("vesper-agent: --check, --notices, --drain, --reboot, --cancel... and --release exclude each other\n",
                      stderr);
                return -EINVAL;
        }
        if (o->output && (!o->notices || (!streq(o->output, "text") && !streq(o->output, "json")))) {
                fputs("vesper-agent: --output goes with --notices, and is text or json\n", stderr);
                return -EINVAL;
        }
        if (o->force && !o->drain && !o->reboot) {
                fputs("vesper-agent: --force goes with --drain or --reboot\n", stderr);
                return -EINVAL;
        }
        if (first < argc) {
                fprintf(stderr, "vesper-agent: '%s' is not an option\nTry 'vesper-agent --help'.\n",
                        argv[first]);
                return -EINVAL;
        }
        return 1;
}

/* -- the world ---------------------------------------------------------------------------------- */

static int read_boot_id(Process *p) {
        const char *told = getenv(BOOT_ID_VARIABLE), *where = told ? "$" BOOT_ID_VARIABLE : BOOT_ID_PATH;
        _cleanup_free_ char *text = NULL;
        char *to;
        size_t size;
        int r = 0;

        if (told) {
                text = strdup(told);
                if (!text)
                        r = -ENOMEM;
        } else
                r = read_file(BOOT_ID_PATH, 256, &text, &size);
        if (r < 0)
                return log_error_errno(p->program.log, r, "Failed to read %s: %m", where);
        to = text;
        for (const char *from = text; *from; from++)
                if (strchr("0123456789abcdef", *from))
                        *to++ = *from;
        *to = 0;
        if (strlen(text) != 32)
                return log_error_errno(p->program.log, EBADMSG, "%s does not contain a boot id: %m", where);
        p->boot_id = TAKE_PTR(text);
        return 0;
}

/* Without these the agent goes on: what is lost is said. */
static void open_optional(Process *p) {
        Env *env = &p->program.kube.env;
        int r;

        r = state_store_new_directory(p->config.runtime_directory, &env->state);
        if (r < 0)
                log_warning_errno(p->program.log, r,
                                  "Failed to open RuntimeDirectory=%s, continuing without it: %m. "
                                  "After a crash the agent knows only what the Node's annotation says.",
                                  p->config.runtime_directory);
        r = netlink_new(env->loop, &env->netlink);
        if (r < 0)
                log_warning_errno(p->program.log, r,
                                  "Failed to watch network links and routes, continuing without it: %m");
        r = bus_new_system(env->loop, &env->bus);
        if (r < 0)
                log_debug_errno(p->program.log, r,
                                "Failed to connect to the system bus, continuing without it: %m");
}

static void open_store(Process *p) {
        Env *env = &p->program.kube.env;
        int r;

        if (!getenv("NOTIFY_SOCKET"))
                return; /* by hand, or in a container */
        r = fd_store_init(&p->fds);
        if (r < 0)
                log_warning_errno(
                        p->program.log, r,
                        "Failed to take back the file descriptors that the service manager kept, ignoring: %m");
        env->store_fd = fd_store_put;
        env->take_stored_fd = fd_store_take;
        env->forget_fd = fd_store_forget;
        env->notify_userdata = &p->fds;
        env->stop_extendable = true;
}

static int open_world(Process *p) {
        const HttpCurlOptions curl = { .user_agent = "vesper-agent/" VESPER_VERSION };
        int r;

        r = read_boot_id(p);
        if (r < 0)
                return r;
        r = kube_process_open(&p->program.kube, p->program.log, &curl);
        if (r < 0)
                return r;
        p->program.kube.env.boot_id = p->boot_id;
        if (!p->passing) {
                open_store(p);
                open_optional(p);
        }
        return 0;
}

static int open_kube(Process *p) {
        const char *path = agent_config_find_kubeconfig(&p->config), *from = NULL;
        _cleanup_free_ char *name = NULL;
        int r;

        if (!path)
                return log_error_errno(p->program.log, ENOENT,
                                       "No kubelet credential at its usual places. "
                                       "Set [Kubernetes] Kubeconfig= to the kubelet's kubeconfig.");
        r = kube_process_load(&p->program.kube, path, false, false);
        if (r < 0)
                return r;
        r = node_identity_find(p->program.kube.kubeconfig, p->config.node_name, &name, &from);
        if (r < 0)
                return log_error_errno(
                        p->program.log, r,
                        "Failed to tell this node's name (from %s); set [Kubernetes] NodeName=: %m",
                        strempty(from));
        free(p->config.node_name);
        p->config.node_name = TAKE_PTR(name);

        r = kube_process_connect(&p->program.kube, "vesper-agent");
        if (r < 0)
                return r;
        log_info(p->program.log, "Node %s (by %s), API server %s, %s.", p->config.node_name, from,
                 p->program.kube.kubeconfig->server, kube_auth_describe(p->program.kube.auth));
        return 0;
}

/* -- running ------------------------------------------------------------------------------------ */

static void on_stopped(void *userdata) {
        Process *p = userdata;

        log_full(p->program.log, LOG_LEVEL_INFO, 0, MESSAGE_STOPPING, NULL, 0, "Stopping: %s.",
                 p->agent ? agent_left(p->agent) : "nothing was begun");
        daemon_notify("STOPPING=1", NULL);
        loop_exit(p->program.kube.env.loop, 0);
}

static void on_stop_signal(int signal, void *userdata) {
        Process *p = userdata;

        if (signal == SIGTERM && p->agent)
                agent_ask_stop(p->agent, on_stopped, p);
        else
                on_stopped(p);
}

/* The name of the node is found once; a configuration that names none means that one. */
static int on_finish(void *config, Log *log, void *userdata) {
        AgentConfig *c = config;
        Process *p = userdata;
        int r;

        metadata_source_detect("", c);
        r = agent_config_finish(c, log, environ);
        return r < 0 || c->node_name ? r : free_and_strdup(&c->node_name, p->config.node_name);
}

static void on_apply(void *userdata) {
        Process *p = userdata;

        agent_reconfigured(p->agent);
}

static void on_files(void *userdata) {
        Process *p = userdata;

        agent_read_files(p->agent);
}

static int process_run(Process *p) {
        int r;

        r = open_world(p);
        if (r < 0)
                return r;
        r = daemon_watch_loop(p->program.kube.env.loop, HUNG_USEC, &p->watch);
        if (r < 0)
                return log_error_errno(p->program.log, r, "Failed to watch the event loop: %m");
        r = open_kube(p);
        if (r < 0)
                return r;
        r = program_watch(&p->program);
        if (r < 0)
                return r;
        kube_process_warn(&p->program.kube);
        r = agent_new(&p->program.kube.env, &p->config, p->program.kube.client, &p->agent);
        if (r < 0)
                return log_error_errno(p->program.log, r, "Failed to set up the agent: %m");
        r = agent_start(p->agent);
        if (r < 0)
                return log_error_errno(p->program.log, r, "Failed to start the agent: %m");
        /* Said now: a boot must not wait for an API server. What it waits for stands in its status, and in
         * the log when it is over. */
        daemon_notify("READY=1\nSTATUS=Waiting for the API server", NULL);
        r = loop_run(p->program.kube.env.loop);
        return r < 0 ? log_error_errno(p->program.log, r, "The event loop failed: %m") : 0;
}

/* -- leaving this machine ----------------------------------------------------------------------- */

static void on_cleanup_done(const NodeCleanupResult *result, void *userdata) {
        Process *p = userdata;

        if (result->error < 0)
                log_error_errno(p->program.log, result->error,
                                "Failed to remove vesper's marks from node %s: %m%s%s", p->config.node_name,
                                result->message ? ": " : "", strempty(result->message));
        else
                printf("Node %s: %s\n", p->config.node_name,
                       !result->found       ? "nothing of vesper-agent is there."
                       : result->uncordoned ? "vesper's marks were removed, and it is schedulable."
                                            : "vesper's marks were removed.");
        loop_exit(p->program.kube.env.loop, result->error);
}

static int process_cleanup(Process *p) {
        _cleanup_(node_cleanup_freep) NodeCleanup *release = NULL;
        int r;

        if (!agent_config_find_kubeconfig(&p->config)) {
                puts("No kubelet credential on this machine: it is no node, nothing is to be taken off.");
                return 0;
        }
        p->passing = true;
        r = open_world(p);
        if (r >= 0)
                r = open_kube(p);
        if (r < 0)
                return r;
        r = node_cleanup_new(p->program.kube.client, p->config.node_name, RELEASE_TIMEOUT_USEC,
                             on_cleanup_done, p, &release);
        if (r < 0)
                return log_error_errno(p->program.log, r,
                                       "Failed to begin to remove vesper's marks from node %s: %m",
                                       p->config.node_name);
        return loop_run(p->program.kube.env.loop);
}

/* The exit status. */
static int process_check(Process *p) {
        const char *kube_error = NULL;
        CheckTable table;
        int r;

        r = open_world(p);
        if (r < 0)
                return EXIT_FAILURE;
        if (open_kube(p) < 0)
                kube_error = "it cannot be used, the line above says why";
        r = check_run(&p->program.kube.env, &p->config, p->program.kube.kubeconfig, p->program.kube.client,
                      p->program.kube.auth, kube_error, &table);
        if (r < 0) {
                log_error_errno(p->program.log, r, "Failed to run the checks: %m");
                return EXIT_FAILURE;
        }
        check_print(&table, stdout);
        r = check_exit_status(check_worst(&table));
        check_table_done(&table);
        return r;
}

static void on_surveyed(void *userdata) {
        Process *p = userdata;

        loop_exit(p->program.kube.env.loop, 0);
}

/* For its providerID; a command is told its name. */
static bool needs_node(const AgentConfig *c) {
        return c->metadata_source != METADATA_SOURCE_NONE || (c->command && c->command[0]);
}

/* The exit status. */
static int process_notices(Process *p) {
        _cleanup_(notice_survey_freep) NoticeSurvey *survey = NULL;
        int r;

        p->passing = true;
        r = open_world(p);
        if (r < 0)
                return EXIT_FAILURE;
        if (needs_node(&p->config))
                (void) open_kube(p); /* it says why not, and the survey that it was not asked */
        r = notice_survey_new(&p->program.kube.env, &p->config, p->program.kube.client, on_surveyed, p, &survey);
        if (r >= 0)
                r = loop_run(p->program.kube.env.loop);
        if (r >= 0 && streq_ptr(p->options.output, "json"))
                r = notice_survey_print_json(survey, stdout);
        else if (r >= 0)
                notice_survey_print(survey, stdout);
        if (r < 0) {
                log_error_errno(p->program.log, r, "Failed to ask the sources of notices: %m");
                return EXIT_FAILURE;
        }
        return check_exit_status(notice_survey_is_whole(survey) ? CHECK_OK : CHECK_WARN);
}

/* It idles for weeks and works for a minute: what a list or an answer took goes back to the system at once,
 * instead of being kept for the next one. */
static void keep_memory_small(void) {
        (void) mallopt(M_MMAP_THRESHOLD, 32 * 1024);
        (void) mallopt(M_TRIM_THRESHOLD, 32 * 1024);
        (void) mallopt(M_TOP_PAD, 4 * 1024);
        (void) mallopt(M_ARENA_MAX, 1);
}

/* Both are asked, whatever becomes of the first. */
static int cancel(Log *l, const Options *o) {
        int r = 0, k = 0;

        if (o->cancel_reboot)
                r = agent_client_run(l, AGENT_VERB_CANCEL_REBOOT, false);
        if (o->cancel_drain)
                k = agent_client_run(l, AGENT_VERB_CANCEL_DRAIN, false);
        return r < 0 ? r : k;
}

/* Prints the report of --check or --notices and returns the exit status. The report has texts of the metadata
 * service, the kubelet and the API server. */
static int process_report(Process *p) {
        PlainOutput out;
        int r, k;

        if (plain_output_begin(&out, &stdout, STDOUT_FILENO) < 0)
                return EXIT_FAILURE;
        if (streq_ptr(p->options.output, "json"))
                plain_output_set_form(&out, PLAIN_OUTPUT_JSON);
        r = p->options.check ? process_check(p) : process_notices(p);
        k = plain_output_end(&out);
        if (k < 0) {
                log_error_errno(p->program.log, k, "Failed to write the report: %m");
                return EXIT_FAILURE;
        }
        return r;
}

int main(int argc, char **argv) {
        const ProgramSpec spec = {
                .options = &options,
                .config_path = DEFAULT_CONFIG,
                .table = agent_config_table,
                .n_table = agent_config_table_size,
                .config_size = sizeof(AgentConfig),
                .finish = on_finish,
                .on_stop = on_stop_signal,
                .on_apply = on_apply,
                .on_files = on_files,
        };
        _cleanup_(process_done) Process p = { .program = { .spec = &spec,
                                                           .options = &p.options.program,
                                                           .config = &p.config,
                                                           .log_settings = &p.config.log,
                                                           .userdata = &p } };
        const Options *o = &p.options;
        int r;

        keep_memory_small();
        r = parse_options(&p.options, argc, argv);
        p.program.terse = o->release || o->check || o->notices;
        if (r > 0)
                r = program_configure(&p.program);
        if (r <= 0)
                return r < 0 ? EXIT_USAGE : EXIT_SUCCESS;
        if (o->drain)
                r = agent_client_run(p.program.log, AGENT_VERB_DRAIN, o->force);
        else if (o->check || o->notices)
                return process_report(&p);
        else if (o->reboot)
                r = agent_client_run(p.program.log, AGENT_VERB_REBOOT, o->force);
        else if (o->cancel_drain || o->cancel_reboot)
                r = cancel(p.program.log, o);
        else
                r = o->release ? process_cleanup(&p) : process_run(&p);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
