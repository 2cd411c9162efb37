/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent-client.h"
#include "agent.h"
#include "check.h"
#include "daemon.h"
#include "fd-store.h"
#include "file-util.h"
#include "kube-process.h"
#include "log-catalog.h"
#include "node-identity.h"
#include "node-cleanup.h"
#include "reload.h"
#include "string-util.h"
#include "strv.h"

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
        const char *config_path; /* NULL: DEFAULT_CONFIG, which need not exist */
        char **settings;
        bool dump_config;
        bool release, drain, reboot, cancel_drain, cancel_reboot, check, force;
} Options;

static const char *config_path(const Options *o) {
        return o->config_path ? o->config_path : DEFAULT_CONFIG;
}

/* Everything that lives as long as the process, freed from the last to the first. */
typedef struct Process {
        Options options; /* a reload reads the same files and settings */
        AgentConfig config;
        Log *log;
        KubeProcess kube;
        char *boot_id;
        FdStore fds;
        Agent *agent;
        Reload *reload;
        Timer *watch;
        bool passing; /* does one thing and ends: keeps no state, hears of nothing */
} Process;

static void process_done(Process *p) {
        timer_free(p->watch);
        reload_free(p->reload);
        agent_free(p->agent);
        netlink_free(p->kube.env.netlink);
        bus_free(p->kube.env.bus);
        state_store_free(p->kube.env.state);
        kube_process_done(&p->kube);
        fd_store_done(&p->fds);
        agent_config_done(&p->config);
        free(p->boot_id);
        log_free(p->log);
        strv_free(p->options.settings);
}

/* -- options ------------------------------------------------------------------------------------ */

static void print_help(FILE *f) {
        fputs("vesper-agent [OPTIONS...]\n\n"
              "Sees the end of its own node coming, and moves the node's work away in time.\n\n"
              "  --config FILE            read FILE and FILE.d/*.conf instead of " DEFAULT_CONFIG "\n"
              "  --set SECTION.KEY=VALUE  one setting, over what the files say; may be repeated\n"
              "  --dump-config            print the configuration in force, with an explanation of each "
              "key, and exit\n"
              "  --release                take everything of ours off this machine's Node, and exit: before "
              "the agent is removed,\n"
              "                           and while it does not run\n"
              "  --check                  say what this machine gives an agent: OK, WARN and FAIL, each "
              "with its fix (exit 0, 3, 4)\n"
              "  --drain                  ask the agent of this machine to take its node out of service, "
              "and wait "
              "until it is drained\n"
              "  --reboot                 ask for a slot to reboot this node, wait for it, drain and "
              "reboot\n"
              "  --force                  with one of these: in spite of do-not-evict pods, which they wait for; also "
              "where it was\n"
              "                           asked for before\n"
              "  --cancel-drain           end what --drain asked for, and nothing else\n"
              "  --cancel-reboot          take back what --reboot asked for, and nothing else\n"
              "  --cancel                 both of these\n"
              "  --version                print the version and exit\n"
              "  --help                   print this and exit\n",
              f);
}

/* 1: exit with success; 0: go on; -EINVAL: said why. */
static int parse_options(Options *o, int argc, char **argv) {
        enum {
                OPTION_CONFIG = 256,
                OPTION_SET,
                OPTION_DUMP,
                OPTION_RELEASE,
                OPTION_DRAIN,
                OPTION_FORCE,
                OPTION_CANCEL,
                OPTION_CANCEL_DRAIN,
                OPTION_CANCEL_REBOOT,
                OPTION_REBOOT,
                OPTION_CHECK,
                OPTION_VERSION
        };
        static const struct option table[] = {
                { "config", required_argument, NULL, OPTION_CONFIG },
                { "set", required_argument, NULL, OPTION_SET },
                { "dump-config", no_argument, NULL, OPTION_DUMP },
                { "release", no_argument, NULL, OPTION_RELEASE },
                { "check", no_argument, NULL, OPTION_CHECK },
                { "drain", no_argument, NULL, OPTION_DRAIN },
                { "force", no_argument, NULL, OPTION_FORCE },
                { "cancel", no_argument, NULL, OPTION_CANCEL },
                { "cancel-drain", no_argument, NULL, OPTION_CANCEL_DRAIN },
                { "cancel-reboot", no_argument, NULL, OPTION_CANCEL_REBOOT },
                { "reboot", no_argument, NULL, OPTION_REBOOT },
                { "version", no_argument, NULL, OPTION_VERSION },
                { "help", no_argument, NULL, 'h' },
                {},
        };
        int c;

        while ((c = getopt_long(argc, argv, "h", table, NULL)) >= 0)
                switch (c) {
                case OPTION_CONFIG:
                        o->config_path = optarg;
                        break;
                case OPTION_SET:
                        if (strv_extend(&o->settings, optarg) < 0)
                                return -ENOMEM;
                        break;
                case OPTION_DUMP:
                        o->dump_config = true;
                        break;
                case OPTION_RELEASE:
                        o->release = true;
                        break;
                case OPTION_DRAIN:
                        o->drain = true;
                        break;
                case OPTION_CHECK:
                        o->check = true;
                        break;
                case OPTION_REBOOT:
                        o->reboot = true;
                        break;
                case OPTION_FORCE:
                        o->force = true;
                        break;
                case OPTION_CANCEL:
                        o->cancel_drain = o->cancel_reboot = true;
                        break;
                case OPTION_CANCEL_DRAIN:
                        o->cancel_drain = true;
                        break;
                case OPTION_CANCEL_REBOOT:
                        o->cancel_reboot = true;
                        break;
                case OPTION_VERSION:
                        puts("vesper-agent " VESPER_VERSION);
                        return 1;
                case 'h':
                        print_help(stdout);
                        return 1;
                default:
                        fputs("Try 'vesper-agent --help'.\n", stderr);
                        return -EINVAL;
                }
        if (o->drain + (o->cancel_drain || o->cancel_reboot) + o->reboot + o->release + o->check > 1) {
                fputs("vesper-agent: --check, --drain, --reboot, --cancel... and --release exclude each "
                      "other\n",
                      stderr);
                return -EINVAL;
        }
        if (o->force && !o->drain && !o->reboot) {
                fputs("vesper-agent: --force goes with --drain or --reboot\n", stderr);
                return -EINVAL;
        }
        if (optind < argc) {
                fprintf(stderr, "vesper-agent: '%s' is not an option\nTry 'vesper-agent --help'.\n",
                        argv[optind]);
                return -EINVAL;
        }
        return 0;
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
                return log_error_errno(p->log, r, "Failed to read %s: %m", where);
        to = text;
        for (const char *from = text; *from; from++)
                if (strchr("0123456789abcdef", *from))
                        *to++ = *from;
        *to = 0;
        if (strlen(text) != 32)
                return log_error_errno(p->log, EBADMSG, "%s does not contain a boot id: %m", where);
        p->boot_id = TAKE_PTR(text);
        return 0;
}

/* Without these the agent goes on: what is lost is said. */
static void open_optional(Process *p) {
        Env *env = &p->kube.env;
        int r;

        r = state_store_new_directory(p->config.runtime_directory, &env->state);
        if (r < 0)
                log_warning_errno(p->log, r,
                                  "Failed to open RuntimeDirectory=%s, continuing without it: %m. "
                                  "After a crash the agent knows only what the Node's annotation says.",
                                  p->config.runtime_directory);
        r = netlink_new(env->loop, &env->netlink);
        if (r < 0)
                log_warning_errno(p->log, r, "Failed to watch network links and routes, continuing without it: %m");
        r = bus_new_system(env->loop, &env->bus);
        if (r < 0)
                log_debug_errno(p->log, r, "Failed to connect to the system bus, continuing without it: %m");
}

static void open_store(Process *p) {
        Env *env = &p->kube.env;
        int r;

        if (!getenv("NOTIFY_SOCKET"))
                return; /* by hand, or in a container */
        r = fd_store_init(&p->fds);
        if (r < 0)
                log_warning_errno(p->log, r,
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
        r = kube_process_open(&p->kube, p->log, &curl);
        if (r < 0)
                return r;
        p->kube.env.boot_id = p->boot_id;
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
                return log_error_errno(
                        p->log, ENOENT,
                        "No kubelet credential at its usual places. "
                        "Set [Kubernetes] Kubeconfig= to the kubelet's kubeconfig.");
        r = kube_process_load(&p->kube, path, false, false);
        if (r < 0)
                return r;
        r = node_identity_find(p->kube.kubeconfig, p->config.node_name, &name, &from);
        if (r < 0)
                return log_error_errno(
                        p->log, r,
                        "Failed to tell this node's name (from %s); set [Kubernetes] NodeName=: %m",
                        strempty(from));
        free(p->config.node_name);
        p->config.node_name = TAKE_PTR(name);

        r = kube_process_connect(&p->kube, "vesper-agent");
        if (r < 0)
                return r;
        log_info(p->log, "Node %s (by %s), API server %s, %s.", p->config.node_name, from,
                 p->kube.kubeconfig->server, kube_auth_describe(p->kube.auth));
        return 0;
}

/* -- running ------------------------------------------------------------------------------------ */

static void on_stopped(void *userdata) {
        Process *p = userdata;

        log_full(p->log, LOG_LEVEL_INFO, 0, MESSAGE_STOPPING, NULL, 0, "Stopping: %s.",
                 p->agent ? agent_left(p->agent) : "nothing was begun");
        daemon_notify("STOPPING=1", NULL);
        loop_exit(p->kube.env.loop, 0);
}

static void on_stop_signal(int signal, void *userdata) {
        Process *p = userdata;

        if (signal == SIGTERM && p->agent)
                agent_ask_stop(p->agent, on_stopped, p);
        else
                on_stopped(p);
}

static void on_reload_signal(void *userdata) {
        Process *p = userdata;

        if (p->reload)
                reload_now(p->reload, "SIGHUP");
}

/* The name of the node is found once; a configuration that names none means that one. */
static int on_finish(void *fresh, void *userdata) {
        AgentConfig *c = fresh;
        Process *p = userdata;
        int r;

        r = agent_config_finish(c, p->log, environ);
        return r < 0 || c->node_name ? r : free_and_strdup(&c->node_name, p->config.node_name);
}

static void on_apply(void *userdata) {
        Process *p = userdata;

        log_set_target(p->log, agent_config_log_target(&p->config));
        log_set_level(p->log, agent_config_log_level(&p->config));
        agent_reconfigured(p->agent);
}

static int on_credential(char **ret_text, void *userdata) {
        Process *p = userdata;

        return kube_process_reload(&p->kube, ret_text);
}

static int make_reload(Process *p) {
        const ReloadOptions o = {
                .env = &p->kube.env,
                .table = agent_config_table,
                .n_table = agent_config_table_size,
                .path = config_path(&p->options),
                .required = p->options.config_path != NULL,
                .settings = p->options.settings,
                .config = &p->config,
                .config_size = sizeof(p->config),
                .credential_path = p->kube.path,
                .finish = on_finish,
                .apply = on_apply,
                .credential = on_credential,
                .userdata = p,
        };

        return reload_new(&o, &p->reload);
}

static int process_run(Process *p) {
        const DaemonSignals signals = { .on_stop = on_stop_signal,
                                        .on_reload = on_reload_signal,
                                        .userdata = p };
        int r;

        r = open_world(p);
        if (r < 0)
                return r;
        r = daemon_watch_signals(p->kube.env.loop, p->log, &signals);
        if (r < 0)
                return r;
        r = daemon_watch_loop(p->kube.env.loop, HUNG_USEC, &p->watch);
        if (r < 0)
                return log_error_errno(p->log, r, "Failed to watch the event loop: %m");
        r = open_kube(p);
        if (r < 0)
                return r;
        kube_process_warn(&p->kube);
        r = agent_new(&p->kube.env, &p->config, p->kube.client, &p->agent);
        if (r < 0)
                return log_error_errno(p->log, r, "Failed to set up the agent: %m");
        r = agent_start(p->agent);
        if (r < 0)
                return log_error_errno(p->log, r, "Failed to start the agent: %m");
        r = make_reload(p);
        if (r < 0)
                return log_error_errno(p->log, r, "Failed to set up reloading of the configuration: %m");
        /* Said now: a boot must not wait for an API server. What it waits for stands in its status, and in
         * the log when it is over. */
        daemon_notify("READY=1\nSTATUS=Waiting for the API server", NULL);
        r = loop_run(p->kube.env.loop);
        return r < 0 ? log_error_errno(p->log, r, "The event loop failed: %m") : 0;
}

/* -- leaving this machine ----------------------------------------------------------------------- */

static void on_cleanup_done(const NodeCleanupResult *result, void *userdata) {
        Process *p = userdata;

        if (result->error < 0)
                log_error_errno(p->log, result->error, "Failed to remove vesper's marks from node %s: %m%s%s",
                                p->config.node_name, result->message ? ": " : "", strempty(result->message));
        else
                printf("Node %s: %s\n", p->config.node_name,
                       !result->found       ? "nothing of vesper-agent is there."
                       : result->uncordoned ? "vesper's marks were removed, and it is schedulable."
                                            : "vesper's marks were removed.");
        loop_exit(p->kube.env.loop, result->error);
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
        r = node_cleanup_new(p->kube.client, p->config.node_name, RELEASE_TIMEOUT_USEC, on_cleanup_done, p,
                             &release);
        if (r < 0)
                return log_error_errno(p->log, r, "Failed to begin to remove vesper's marks from node %s: %m",
                                       p->config.node_name);
        return loop_run(p->kube.env.loop);
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
        r = check_run(&p->kube.env, &p->config, p->kube.kubeconfig, p->kube.client, p->kube.auth, kube_error,
                      &table);
        if (r < 0) {
                log_error_errno(p->log, r, "Failed to run the checks: %m");
                return EXIT_FAILURE;
        }
        check_print(&table, stdout);
        r = check_exit_status(check_worst(&table));
        check_table_done(&table);
        return r;
}

/* What is wrong with the configuration goes to where the default says, as the configuration itself is not
 * known yet. */
static int load_config(Process *p, const Options *o) {
        int r;

        r = log_new(log_target_auto(), LOG_LEVEL_INFO, "vesper-agent", &p->log);
        if (r < 0)
                return r;
        r = config_load(p->log, agent_config_table, agent_config_table_size, config_path(o),
                        o->config_path != NULL, o->settings, &p->config);
        if (r < 0)
                return r;
        r = agent_config_finish(&p->config, p->log, environ);
        if (r < 0)
                return r;
        p->log = log_free(p->log);
        if (o->release || o->check) /* somebody waits for it and reads */
                return log_new(LOG_TARGET_TEXT, LOG_LEVEL_WARNING, "vesper-agent", &p->log);
        return log_new(agent_config_log_target(&p->config), agent_config_log_level(&p->config),
                       "vesper-agent", &p->log);
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

int main(int argc, char **argv) {
        _cleanup_(process_done) Process p = { .config = { 0 } };
        Options o = { 0 };
        int r;

        keep_memory_small();
        r = parse_options(&o, argc, argv);
        p.options = o;
        if (r == 0) {
                r = load_config(&p, &o);
                if (r >= 0 && o.dump_config)
                        r = config_dump(stdout, agent_config_table, agent_config_table_size, &p.config) < 0
                                    ? -EIO
                                    : 1;
        }
        if (r != 0)
                return r > 0 ? EXIT_SUCCESS : EXIT_USAGE;
        if (o.drain)
                r = agent_client_run(p.log, AGENT_VERB_DRAIN, o.force);
        else if (o.check)
                return process_check(&p);
        else if (o.reboot)
                r = agent_client_run(p.log, AGENT_VERB_REBOOT, o.force);
        else if (o.cancel_drain || o.cancel_reboot)
                r = cancel(p.log, &o);
        else
                r = o.release ? process_cleanup(&p) : process_run(&p);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
