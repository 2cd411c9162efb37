/* SPDX-License-Identifier: Apache-2.0 */
#include "agent-config.h"

#include <unistd.h>

#include "listen-address.h"
#include "log-catalog.h"
#include "string-util.h"

static const char *const source_choices[] = { "ec2", "none", NULL };
static const char *const too_short_choices[] = { "degrade", "refuse", NULL };
static const char *const target_choices[] = { "auto", "journal", "json", "text", "null", NULL };
static const char *const level_choices[] = { "error", "warning", "notice", "info", "debug", NULL };

#define ITEM_STRING(s, k, member, def, text, ...) \
        { \
                .section = s, .key = k, .parse = config_parse_string, .format = config_format_string, \
                .offset = offsetof(AgentConfig, member), .default_value = def, .help = text, __VA_ARGS__ \
        }
#define ITEM_USEC(s, k, member, def, low, high, text, ...) \
        { \
                .section = s, .key = k, .parse = config_parse_usec, .format = config_format_usec, \
                .offset = offsetof(AgentConfig, member), .default_value = def, .help = text, .min = low, \
                .max = high, __VA_ARGS__ \
        }
#define ITEM_BOOL(s, k, member, def, text, ...) \
        { \
                .section = s, .key = k, .parse = config_parse_bool, .format = config_format_bool, \
                .offset = offsetof(AgentConfig, member), .default_value = def, .help = text, __VA_ARGS__ \
        }
#define ITEM_CHOICE(s, k, member, def, list, text, ...) \
        { \
                .section = s, .key = k, .parse = config_parse_choice, .format = config_format_choice, \
                .offset = offsetof(AgentConfig, member), .default_value = def, .help = text, \
                .choices = list, __VA_ARGS__ \
        }

const ConfigItem agent_config_table[] = {
        ITEM_STRING("Kubernetes", "Kubeconfig", kubeconfig, NULL,
                    "Credential of this node. Unset: the kubelet's, at its usual places (kubeadm, EKS, AKS, "
                    "k3s, RKE2)."),
        ITEM_STRING("Kubernetes", "NodeName", node_name, NULL,
                    "Name of this node's Node object. Unset: from the certificate (system:node:NAME), else "
                    "the host name."),
        ITEM_CHOICE("Metadata", "Source", metadata_source, "ec2", source_choices,
                    "Where the end of this machine is announced."),
        ITEM_STRING("Metadata", "Endpoint", metadata_endpoint, NULL,
                    "Base of the metadata service. Unset: AWS_EC2_METADATA_SERVICE_ENDPOINT, "
                    "else " AGENT_METADATA_ENDPOINT "."),
        ITEM_USEC("Metadata", "PollSec", poll_usec, "2s", USEC_PER_SEC, USEC_PER_MINUTE,
                  "How often to look; one request each time. While looking fails it slows down, at most to "
                  "eight times this."),
        ITEM_STRING("Agent", "RuntimeDirectory", runtime_directory, "/run/vesper-agent",
                    "What survives a crash of the agent, until the machine boots: which notice was handled how "
                    "far. To be in memory: a disk that hangs would hold up a drain."),
        ITEM_USEC("Drain", "LoadBalancerWaitSec", lb_wait_usec, "30s", 0, 10 * USEC_PER_MINUTE,
                  "Between cordon and first eviction, so that load balancers let go; only for notices that "
                  "leave 5 minutes or more.",
                  .flags = CONFIG_RELOADABLE),
        ITEM_BOOL("Shutdown", "Drain", shutdown_drain, "yes",
                  "Whether the node is drained before its machine is powered off or rebooted, whoever told "
                  "it."),
        ITEM_USEC("Shutdown", "MaxSec", shutdown_max_usec, "10min", USEC_PER_SEC, USEC_PER_HOUR,
                  "The most time by which such a shutdown is delayed for that.", .flags = CONFIG_RELOADABLE),
        ITEM_USEC("Shutdown", "RebootPatienceSec", reboot_patience_usec, "1h", USEC_PER_SEC, USEC_PER_DAY,
                  "How long vesper-reboot.service waits for the coordinator to grant a reboot; then it "
                  "fails.",
                  .flags = CONFIG_RELOADABLE),
        ITEM_CHOICE("Shutdown", "TooShort", shutdown_too_short, "degrade", too_short_choices,
                    "Where logind and systemd give less time than MaxSec=: drain in what there is, or drain "
                    "nothing "
                    "before a shutdown and say so.",
                    .flags = CONFIG_RELOADABLE),
        ITEM_STRING("Metrics", "Listen", metrics_listen, NULL,
                    "ADDRESS:PORT or unix:/PATH for Prometheus (/metrics) and /healthz. Unset: none."),
        ITEM_STRING("Health", "Listen", health_listen, NULL,
                    "ADDRESS:PORT or unix:/PATH for probes alone (/healthz): nobody who holds connections "
                    "to the "
                    "metrics keeps them out. Unset: none."),
        ITEM_CHOICE("Log", "Target", log_target, "auto", target_choices,
                    "auto: text on a terminal, the journal under systemd, else JSON lines.",
                    .flags = CONFIG_RELOADABLE),
        ITEM_CHOICE("Log", "Level", log_level, "info", level_choices,
                    "The least important level that is logged.", .flags = CONFIG_RELOADABLE),
};
const size_t agent_config_table_size = ELEMENTSOF(agent_config_table);

void agent_config_done(AgentConfig *c) {
        config_done(agent_config_table, agent_config_table_size, c);
}

static const char *environment_get(char *const *environment, const char *name) {
        for (char *const *e = environment; e && *e; e++) {
                const char *v = startswith(*e, name);

                if (v && *v == '=')
                        return v + 1;
        }
        return NULL;
}

/* A path behind the host is allowed (a proxy in front of many); one slash at the end is not kept. */
static int check_endpoint(AgentConfig *c, Log *l) {
        const char *host = startswith(c->metadata_endpoint, "http://");
        size_t n = strlen(c->metadata_endpoint);

        if (!host || host[0] == 0 || host[0] == '/' || strpbrk(host, " \t\r\n?#@")) {
                log_full(l, LOG_LEVEL_ERROR, 0, MESSAGE_CONFIGURATION_REFUSED, NULL, 0,
                         "[Metadata] Endpoint=%s is no address of a metadata service; it must look like %s.",
                         c->metadata_endpoint, AGENT_METADATA_ENDPOINT);
                return -EINVAL;
        }
        if (c->metadata_endpoint[n - 1] == '/')
                c->metadata_endpoint[n - 1] = 0;
        return 0;
}

/* text: of [section] Listen=; NULL: there is none. */
static int check_listen(Log *l, const char *section, unsigned port, const char *text) {
        _cleanup_free_ char *address = NULL;
        uint16_t given;
        int r;

        if (!text || listen_address_unix_path(text))
                return 0;
        r = listen_address_parse(text, "127.0.0.1", &address, &given);
        if (r >= 0 && given == 0)
                r = -EINVAL;
        if (r == -EINVAL)
                log_full(l, LOG_LEVEL_ERROR, 0, MESSAGE_CONFIGURATION_REFUSED, NULL, 0,
                         "[%s] Listen=%s is no address to listen on; it must look like 127.0.0.1:%u, "
                         "[::1]:%u or unix:/run/vesper-agent/%s.",
                         section, text, port, port, streq(section, "Health") ? "health" : "metrics");
        return r;
}

int agent_config_finish(AgentConfig *c, Log *l, char *const *environment) {
        const char *disabled = environment_get(environment, "AWS_EC2_METADATA_DISABLED");
        const char *endpoint = environment_get(environment, "AWS_EC2_METADATA_SERVICE_ENDPOINT");
        int r;

        if (disabled && strcasecmp(disabled, "true") == 0 && c->metadata_source != METADATA_SOURCE_NONE) {
                log_notice(l,
                           "AWS_EC2_METADATA_DISABLED=true is set in the environment: the metadata service is not polled for notices.");
                c->metadata_source = METADATA_SOURCE_NONE;
        }
        if (!c->metadata_endpoint) {
                r = free_and_strdup(&c->metadata_endpoint,
                                    isempty(endpoint) ? AGENT_METADATA_ENDPOINT : endpoint);
                if (r < 0)
                        return r;
        }
        r = check_endpoint(c, l);
        if (r < 0)
                return r;

        r = check_listen(l, "Metrics", 9101, c->metrics_listen);
        return r < 0 ? r : check_listen(l, "Health", 9104, c->health_listen);
}

const char *agent_config_find_kubeconfig(const AgentConfig *c) {
        static const char *const places[] = {
                "/etc/kubernetes/kubelet.conf",
                "/var/lib/kubelet/kubeconfig",
                "/var/lib/rancher/k3s/agent/kubelet.kubeconfig",
                "/var/lib/rancher/rke2/agent/kubelet.kubeconfig",
        };

        if (c->kubeconfig)
                return c->kubeconfig;
        for (size_t i = 0; i < ELEMENTSOF(places); i++)
                if (access(places[i], F_OK) >= 0)
                        return places[i];
        return NULL;
}

LogTarget agent_config_log_target(const AgentConfig *c) {
        LogTarget t = log_target_from_string(target_choices[c->log_target]);

        return t < 0 ? log_target_auto() : t;
}

LogLevel agent_config_log_level(const AgentConfig *c) {
        return (LogLevel) log_level_from_string(level_choices[c->log_level]);
}
