/* SPDX-License-Identifier: Apache-2.0 */
#include "agent-config.h"

#include <unistd.h>

#include "listen-address.h"
#include "log-catalog.h"
#include "string-util.h"

static const char *const source_choices[] = { "ec2", "gce", "azure", "none", "auto", NULL };
static const char *const acknowledge_choices[] = { "no", "alone", "all", NULL };
static const char *const too_short_choices[] = { "degrade", "refuse", NULL };

#define ITEM(kind, ...) CONFIG_ITEM(kind, AgentConfig, __VA_ARGS__)

/* What there may be behind Key=, in the words of policy.h. */
#define POLICY(key, kind, default_text, help_text) \
        ITEM(string, "Policy", key, policy[kind], default_text, help_text, .flags = CONFIG_RELOADABLE)

const ConfigItem agent_config_table[] = {
        ITEM(string, "Kubernetes", "Kubeconfig", kubeconfig, NULL,
             "Credential of this node. Unset: the kubelet's, at its usual places (kubeadm, EKS, "
             "AKS, k3s, RKE2)."),
        ITEM(string, "Kubernetes", "NodeName", node_name, NULL,
             "Name of this node's Node object. Unset: from the certificate (system:node:NAME), "
             "else the host name."),
        ITEM(choice, "Metadata", "Source", metadata_source, "auto",
             "Whose metadata service announces the end of this machine. auto: the cloud that the "
             "machine's firmware names, else the one that the providerID of its node names.",
             .choices = source_choices),
        ITEM(string, "Metadata", "Endpoint", metadata_endpoint, NULL,
             "Base of the metadata service. Unset: AWS_EC2_METADATA_SERVICE_ENDPOINT, else " AGENT_METADATA_ENDPOINT
             ", and on EC2 " AGENT_METADATA_ENDPOINT_IPV6 " where there is no route to that."),
        ITEM(usec, "Metadata", "PollSec", poll_usec, "2s",
             "How often to look; one request each time. While looking fails it slows down, at most "
             "to eight times this.",
             .min = USEC_PER_SEC, .max = USEC_PER_MINUTE),
        ITEM(boolean, "Metadata", "AllowIMDSv1", allow_imdsv1, "no",
             "EC2: go on without a session token (IMDSv1) where the metadata service gives none, as some that stand "
             "in for it do. An instance of EC2 always gives one, unless its answer is lost on the way to a pod network."),
        ITEM(choice, "Metadata", "Acknowledge", acknowledge, "no",
             "Azure alone: whether a scheduled event (Reboot, Redeploy, Preempt, Terminate) is acknowledged once the node is "
             "drained for it, so that Azure begins at once and does not wait for its time. That begins it for every VM that "
             "the event names. alone: events that name this VM alone; all: also those all whose VMs are nodes of this "
             "cluster and drained, as the coordinator says by the annotation vesper.sh/ack-ok. One VM whose agent is dead, or that is no node, holds the "
             "acknowledgement up for all: the event then begins at its own time, and an Event on the drained nodes says which is waited for. all believes kubelets what machine they "
             "run on: where a node may not be trusted so far, it can have an event begin early for a machine that is none of its cluster.",
             .choices = acknowledge_choices, .flags = CONFIG_RELOADABLE),
        ITEM(string, "File", "Path", file_path, NULL,
             "A file of notices in JSON (vesper(7), INTERRUPTION), root's alone, such as "
             "/run/vesper-agent/notices.json. Not there: there is none. Unset: none is looked at."),
        ITEM(usec, "File", "PollSec", file_poll_usec, "2s", "How often to look at it.", .min = USEC_PER_SEC,
             .max = USEC_PER_HOUR),
        ITEM(strv, "Command", "Run", command, NULL,
             "A command, by its absolute path, and its arguments, that prints such notices or nothing. It "
             "runs in the agent's sandbox: no capability, no writable file system. Unset: none is run."),
        ITEM(usec, "Command", "PollSec", command_poll_usec, "10s",
             "How often to run it. While it fails it slows down, at most to eight times this.",
             .min = USEC_PER_SEC, .max = USEC_PER_HOUR),
        ITEM(string, "Agent", "RuntimeDirectory", runtime_directory, "/run/vesper-agent",
             "What survives a crash of the agent, until the machine boots: which notice was "
             "handled how far. To be in memory: a disk that hangs would hold up a drain."),
        ITEM(boolean, "Agent", "DryRun", dry_run, "no",
             "Everything is looked at, decided and said, in log lines and Events, and nothing is "
             "done: no cordon, no eviction, no delay of a shutdown, no reboot."),
        POLICY("Spot", NOTICE_SPOT, "now",
               "The cloud takes a spot machine back, within minutes."),
        POLICY("Rebalance", NOTICE_REBALANCE, "report",
               "EC2 recommends to move away from a spot instance at elevated risk; the machine may live on for hours."),
        POLICY("Maintenance", NOTICE_MAINTENANCE, "before:1h",
               "A reboot, a stop or a retirement of this machine that is planned for some time."),
        ITEM(string, "Policy", "Reboot", policy_reboot, NULL,
             "Maintenance that is a reboot: a rule as the others, or early: the node asks the coordinator for a slot to reboot "
             "([Budget] MaxConcurrentReboots=), is drained when it is granted, and rebooted before the announced time, where "
             "that ends what was announced: a system-reboot of EC2 by the coordinator's call of its API, for nodes of a "
             "NodePool; a Reboot of Azure by its acknowledgement (Acknowledge=); a notice of [File] or [Command] by the "
             "machine's own reboot. What still stands after that is left to its time, by Maintenance=. Unset: as Maintenance=.",
             .flags = CONFIG_RELOADABLE),
        POLICY("ScaleIn", NOTICE_SCALE_IN, "now",
               "The group of this machine lets go of it."),
        POLICY("CapacityBlock", NOTICE_CAPACITY_BLOCK, "before:1h",
               "The reservation that this machine runs in ends."),
        ITEM(usec, "Drain", "LoadBalancerWaitSec", lb_wait_usec, "30s",
             "Between cordon and first eviction, so that load balancers let go; only for notices "
             "that leave 5 minutes or more.",
             .min = 0, .max = 10 * USEC_PER_MINUTE, .flags = CONFIG_RELOADABLE),
        ITEM(boolean, "Shutdown", "Drain", shutdown_drain, "yes",
             "Whether the node is drained before its machine is powered off or rebooted, whoever "
             "told it."),
        ITEM(usec, "Shutdown", "MaxSec", shutdown_max_usec, "10min",
             "The most time by which such a shutdown is delayed for that.", .min = USEC_PER_SEC,
             .max = USEC_PER_HOUR, .flags = CONFIG_RELOADABLE),
        ITEM(usec, "Shutdown", "RebootPatienceSec", reboot_patience_usec, "1h",
             "How long vesper-reboot.service waits for the coordinator to grant a reboot; then it "
             "fails.",
             .min = USEC_PER_SEC, .max = USEC_PER_DAY, .flags = CONFIG_RELOADABLE),
        ITEM(boolean, "Shutdown", "RepairReboots", repair_reboots, "yes",
             "Whether the coordinator may have this machine rebooted to repair its node, where the "
             "NodePool says so (spec.repair with action Reboot). Whoever may change annotations of the "
             "Node may ask for that as well; it happens within the budget of reboots, after a drain.",
             .flags = CONFIG_RELOADABLE),
        ITEM(choice, "Shutdown", "TooShort", shutdown_too_short, "degrade",
             "Where logind and systemd give less time than MaxSec=: drain in what there is, or "
             "drain nothing before a shutdown and say so.",
             .choices = too_short_choices, .flags = CONFIG_RELOADABLE),
        ITEM(string, "Metrics", "Listen", metrics_listen, NULL,
             "ADDRESS:PORT or unix:/PATH for Prometheus (/metrics) and /healthz. Unset: none."),
        ITEM(string, "Health", "Listen", health_listen, NULL,
             "ADDRESS:PORT or unix:/PATH for probes alone (/healthz): nobody who holds connections "
             "to the metrics keeps them out. Unset: none."),
        NOTIFY_SETTINGS_ITEMS(AgentConfig, notify),
        LOG_SETTINGS_ITEMS(AgentConfig, log),
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
                log_full(
                        l, LOG_LEVEL_ERROR, 0, MESSAGE_CONFIGURATION_REFUSED, NULL, 0,
                        "[%s] Listen=%s is no address to listen on; it must look like 127.0.0.1:%u, [::1]:%u or unix:/run/vesper-agent/%s.",
                        section, text, port, port, streq(section, "Health") ? "health" : "metrics");
        return r;
}

int agent_config_policy(const AgentConfig *c, PolicySettings *ret) {
        PolicySettings settings = { .lb_wait_usec = c->lb_wait_usec };
        const char *expected;
        int r = 0;

        for (size_t i = 0; i < _NOTICE_KIND_MAX && r >= 0; i++)
                if (c->policy[i]) /* a kind without a rule is one that none is asked for (policy.h) */
                        r = policy_rule_parse(c->policy[i], &settings.rules[i], &expected);
        if (r >= 0 && c->policy_reboot) {
                r = policy_reboot_parse(c->policy_reboot, &settings.reboot, &settings.early, &expected);
                settings.has_reboot = r >= 0 && !settings.early;
        }
        if (r < 0)
                policy_settings_done(&settings);
        else
                *ret = settings;
        return r;
}

static int check_policy(const AgentConfig *c, Log *l) {
        for (size_t i = 0; i < agent_config_table_size; i++) {
                const ConfigItem *item = &agent_config_table[i];
                const char *text, *expected;
                PolicyRule rule;
                bool of_reboots = streq(item->key, "Reboot"), early = false;
                int r;

                if (!streq(item->section, "Policy"))
                        continue;
                rule = (PolicyRule){};
                text = *(char *const *) ((const char *) c + item->offset);
                if (of_reboots)
                        r = text ? policy_reboot_parse(text, &rule, &early, &expected) : 0;
                else
                        r = policy_rule_parse(strempty(text), &rule, &expected);
                if (r >= 0) {
                        policy_rule_done(&rule);
                        continue;
                }
                if (r == -ENOMEM)
                        return r;
                log_full(l, LOG_LEVEL_ERROR, 0, MESSAGE_CONFIGURATION_REFUSED, NULL, 0, "[Policy] %s=%s is no rule: expected %s.",
                         item->key, strempty(text), expected);
                return -EINVAL;
        }
        return 0;
}

static int check_paths(const AgentConfig *c, Log *l) {
        if (c->file_path && c->file_path[0] != '/')
                log_full(l, LOG_LEVEL_ERROR, 0, MESSAGE_CONFIGURATION_REFUSED, NULL, 0,
                         "[File] Path=%s is no absolute path; it must look like /run/vesper-agent/notices.json.", c->file_path);
        else if (c->command && c->command[0] && c->command[0][0] != '/')
                log_full(l, LOG_LEVEL_ERROR, 0, MESSAGE_CONFIGURATION_REFUSED, NULL, 0,
                         "[Command] Run=%s is no absolute path; it must look like /usr/local/bin/notices.", c->command[0]);
        else
                return 0;
        return -EINVAL;
}

int agent_config_finish(AgentConfig *c, Log *l, char *const *environment) {
        const char *disabled = environment_get(environment, "AWS_EC2_METADATA_DISABLED");
        const char *endpoint = environment_get(environment, "AWS_EC2_METADATA_SERVICE_ENDPOINT");
        int r;

        if (disabled && strcasecmp(disabled, "true") == 0 && c->metadata_source != METADATA_SOURCE_NONE) {
                log_notice(
                        l,
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
        r = check_policy(c, l);
        if (r >= 0)
                r = check_paths(c, l);
        if (r >= 0)
                r = notify_settings_check(&c->notify, l);
        if (r < 0)
                return r;
        if (streq_ptr(c->policy_reboot, "early") && c->metadata_source == METADATA_SOURCE_AZURE &&
            c->acknowledge == ACKNOWLEDGE_NO)
                log_warning(l, "[Policy] Reboot=early takes no reboot of Azure's early while [Metadata] Acknowledge=no: each is left to "
                               "its time. Acknowledge=alone lets it.");
        if (c->dry_run)
                c->shutdown_drain = c->repair_reboots = false;

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
