/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator-config.h"

#include "admission-exempt.h"
#include "cloud.h"
#include "log-catalog.h"
#include "string-util.h"
#include "strv.h"

/* ProtectedPolicy */
static const char *const protected_choices[] = { "wait", "others", "ignore", NULL };
/* InterruptionDelete */
static const char *const delete_choices[] = { "never", "terminate", "always", NULL };

/* QueueUnmanaged */
static const char *const unmanaged_choices[] = { "report", "drain", NULL };

#define ITEM(kind, ...) CONFIG_ITEM(kind, CoordinatorConfig, __VA_ARGS__)

const ConfigItem coordinator_config_table[] = {
        ITEM(string, "Kubernetes", "Kubeconfig", kubeconfig, NULL,
             "kubeconfig file. Empty: the pod's own ServiceAccount, else the file named by KUBECONFIG."),
        ITEM(string, "Lease", "Namespace", lease_namespace, "vesper-system",
             "Namespace of the Lease by which one replica leads."),
        ITEM(string, "Lease", "Name", lease_name, "vesper-coordinator", "Name of that Lease."),
        ITEM(string, "Lease", "Identity", lease_identity, NULL,
             "The name of this process in the Lease, followed by an underscore and a UUID that "
             "each start draws anew. Empty: the host's name."),
        ITEM(choices, "Provider", "Name", providers, "ec2",
             "What ends machines: ec2, exec for a command of one's own, or both. A machine belongs to the first "
             "that its Node's spec.providerID has the form of. exec takes any, so that it is named last: ec2 exec.",
             .choices = cloud_provider_names),
        ITEM(string, "Provider", "Endpoint", provider_endpoint, NULL,
             "URL of the cloud's API. Empty: the provider's own."),
        ITEM(string, "Provider", "Region", provider_region, NULL,
             "Region of the machines. Empty: AWS_REGION, AWS_DEFAULT_REGION, instance metadata."),
        ITEM(string, "Provider", "Command", provider_command, NULL, "exec: absolute path of the command."),
        ITEM(unsigned, "Provider", "TerminationsPerMinute", terminations_per_minute, "60",
             "How many machines are ended in a minute, of all providers together, beyond TerminationsBurst=: what a mistake costs. "
             "A cloud's own limits come besides.",
             .min = 1, .max = 6000),
        ITEM(unsigned, "Provider", "TerminationsBurst", terminations_burst, "200",
             "How many machines may be ended at once before TerminationsPerMinute= counts; as many again after a quiet time.",
             .min = 1, .max = 10000),
        ITEM(unsigned, "Drain", "EvictionsPerSecond", evictions_per_second, "500",
             "How many evictions the API server is asked for in a second at most.",
             .min = 1, .max = 5000),
        ITEM(choice, "Drain", "Protected", protected_policy, "wait",
             "Pods that opted out of eviction on a node being deleted: wait (nothing is evicted "
             "until they are gone), others (the rest is evicted meanwhile), ignore (they are "
             "evicted like any other). An interrupted node waits for none of them.",
             .choices = protected_choices, .flags = CONFIG_RELOADABLE),
        ITEM(usec, "Drain", "LoadBalancerWaitSec", lb_wait_usec, "0s",
             "How long load balancers get to let go of a node before its pods are evicted.",
             .max = USEC_PER_HOUR, .flags = CONFIG_RELOADABLE),
        ITEM(choice, "Interruption", "Delete", interruption_delete, "terminate",
             "Whether a managed node of whose end its agent or the queue tells is deleted for that, so that its "
             "drain is seen through, its volumes are let go and its machine is ended, "
             "without waiting for its cloud (a new machine in its place: spec.disruption.onInterruption of its NodePool): terminate (if its cloud is to terminate it), always "
             "(also if its cloud is to stop or hibernate it, after which it would come back, and for every scheduled change that "
             "the queue tells of), never (and nothing is drained for the queue). What a node comes back from it is drained for, and kept.",
             .choices = delete_choices, .flags = CONFIG_RELOADABLE),
        ITEM(usec, "Interruption", "BeforeSec", interruption_before_usec, "1h",
             "How long before a scheduled change that the interruption queue has told of (a reboot, a maintenance, a stop, a retirement) the "
             "node is drained. What is nearer is acted upon at once. An agent of the node goes by its own [Policy] besides.",
             .min = USEC_PER_MINUTE, .max = 7 * USEC_PER_DAY, .flags = CONFIG_RELOADABLE),
        ITEM(string, "Queue", "Url", queue_url, NULL,
             "URL of the SQS queue to which EventBridge, AWS Health or Auto Scaling send notices: "
             "https://sqs.REGION.amazonaws.com/ACCOUNT/NAME. Empty: none is heard."),
        ITEM(boolean, "Queue", "Shared", queue_shared, "no",
             "Whether others receive from that queue, too. yes: only messages about nodes of this cluster are deleted, and those that cannot "
             "be read are left alone. no: what concerns nobody is deleted as well, once neither this cluster nor EC2 has known the "
             "instance for two minutes."),
        ITEM(strv, "Queue", "Accounts", queue_accounts, NULL,
             "AWS accounts besides the queue's own (by its URL) whose messages are acted on: those in which nodes "
             "of this cluster run. The coordinator ignores messages about any other account and logs each "
             "pair of account and region once. A second Accounts= adds to the first.",
             .flags = CONFIG_RELOADABLE),
        ITEM(strv, "Queue", "Regions", queue_regions, NULL,
             "AWS regions besides the queue's own whose messages are acted on, as with Accounts=.",
             .flags = CONFIG_RELOADABLE),
        ITEM(unsigned, "Queue", "Polls", queue_polls, "2",
             "How many requests for messages may be under way at once. One waits for what may come, the others help where there are many.",
             .min = 1, .max = 4),
        ITEM(choice, "Queue", "Unmanaged", queue_unmanaged, "report",
             "What a notice of the end of an instance does ([Interruption] Delete= says which ends count) where its Node has no NodeClaim "
             "and no NodePool selects it: report (an Event) or drain (the node is cordoned and drained until the announced time, "
             "by its agent where that is at work; its machine is never ended by vesper).",
             .choices = unmanaged_choices, .flags = CONFIG_RELOADABLE),
        ITEM(unsigned, "Budget", "MaxConcurrentReboots", max_concurrent_reboots, "1",
             "How many nodes may hold a slot to reboot at once, of those that ask for one "
             "(vesper-reboot.service, shutdown -r +N). 0: none is granted.",
             .max = 10000, .flags = CONFIG_RELOADABLE),
        ITEM(usec, "Budget", "RebootSlotSec", reboot_slot_usec, "45min",
             "How long such a slot is kept at most, from its grant until the node is Ready with "
             "another boot id: the agent's [Shutdown] MaxSec= and the machine's start must fit. A "
             "node that is not back by then keeps no other from rebooting. A node that waits for "
             "pods that opted out uses its slot meanwhile: others wait for it. A grant on a Node "
             "that lasts longer from now is none of the coordinator's and is taken off: make it "
             "shorter while no slot is held.",
             .min = USEC_PER_MINUTE, .max = USEC_PER_DAY, .flags = CONFIG_RELOADABLE),
        ITEM(string, "Metrics", "Listen", metrics_listen, NULL,
             "ADDRESS:PORT for /metrics, /healthz and /readyz over HTTP; :PORT or *:PORT is every "
             "address, of IPv6 and of IPv4. Empty: none."),
        ITEM(string, "Health", "Listen", health_listen, NULL,
             "ADDRESS:PORT for probes alone, /healthz and /readyz over HTTP; :PORT or *:PORT is "
             "every address, of IPv6 and of IPv4. Nobody who holds connections to the metrics "
             "keeps them out. Empty: none."),
        ITEM(string, "Webhook", "Listen", webhook_listen, NULL,
             "ADDRESS:PORT for the admission webhook over HTTPS, POST /admission: the API server asks there before a Node or "
             "NodeClaim is deleted, once a ValidatingWebhookConfiguration says so. Empty: none."),
        ITEM(string, "Webhook", "CertificateFile", webhook_certificate, NULL,
             "The certificate (PEM, with its chain) that the webhook shows."),
        ITEM(string, "Webhook", "KeyFile", webhook_key, NULL,
             "Its private key (PEM)."),
        ITEM(string, "Webhook", "CertificateSecret", webhook_secret, NULL,
             "In place of both files: the Secret, in the namespace of the Lease, that holds the certificate and its CA. vesper "
             "makes it, renews it, and writes the CA into Configuration=."),
        ITEM(strv, "Webhook", "Names", webhook_names, NULL,
             "Names and addresses that the certificate in CertificateSecret= covers besides vesper-webhook.NAMESPACE.svc, the "
             "Service: for a webhook that is registered by url."),
        ITEM(string, "Webhook", "Configuration", webhook_configuration, "vesper-nodes",
             "The ValidatingWebhookConfiguration that gets the CA as the caBundle of each of its webhooks."),
        ITEM(string, "Webhook", "ClientCAFile", webhook_client_ca, NULL,
             "Only clients with a certificate of this CA (PEM) are answered: the API server's, where its AdmissionConfiguration gives "
             "it one for webhooks. Empty: whoever reaches the webhook may ask, and have disruptions charged."),
        ITEM(strv, "Webhook", "Exempt", webhook_exempt, NULL,
             "Users whose deletions no budget refuses, besides the node lifecycle and cloud controllers, Cluster API and "
             "Karpenter; * stands for any characters. Given again it adds to what it has."),
        NOTIFY_SETTINGS_ITEMS(CoordinatorConfig, notify),
        ITEM(boolean, "Notify", "AgentsTell", notify_agents_tell, "no",
             "Whether the agents of the nodes have a [Notify] of their own: then the phases of a drain that a node's agent has "
             "reported are told by that agent alone, as long as it gets on with the drain."),
        LOG_SETTINGS_ITEMS(CoordinatorConfig, log),
};
const size_t coordinator_config_table_size = ELEMENTSOF(coordinator_config_table);

static int check_webhook(const CoordinatorConfig *c, Log *log) {
        if (c->webhook_listen && isempty(c->webhook_secret) && (!c->webhook_certificate || !c->webhook_key))
                return log_full(log, LOG_LEVEL_ERROR, -EINVAL, MESSAGE_CONFIGURATION_REFUSED, NULL, 0,
                                "[Webhook] Listen= needs CertificateSecret=, or CertificateFile= and KeyFile=: the API server asks over "
                                "HTTPS alone");
        if (!isempty(c->webhook_secret) && (c->webhook_certificate || c->webhook_key))
                return log_full(log, LOG_LEVEL_ERROR, -EINVAL, MESSAGE_CONFIGURATION_REFUSED, NULL, 0,
                                "[Webhook] CertificateSecret= and CertificateFile= or KeyFile= are both set: one of them");
        if (!isempty(c->webhook_secret) && isempty(c->webhook_configuration))
                return log_full(log, LOG_LEVEL_ERROR, -EINVAL, MESSAGE_CONFIGURATION_REFUSED, NULL, 0,
                                "[Webhook] CertificateSecret= needs Configuration=: by it the API server knows the CA");
        STRV_FOREACH(pattern, c->webhook_exempt) {
                const char *reason;

                if (admission_pattern_check(*pattern, &reason) < 0)
                        return log_full(log, LOG_LEVEL_ERROR, -EINVAL, MESSAGE_CONFIGURATION_REFUSED, NULL, 0,
                                        "[Webhook] Exempt=%s: %s", *pattern, reason);
        }
        return 0;
}

/* A word that names no account or region would have the messages of the meant one deleted. */
static int check_queue(const CoordinatorConfig *c, Log *log) {
        STRV_FOREACH(account, c->queue_accounts)
                if (strlen(*account) != 12 || strspn(*account, "0123456789") != 12)
                        return log_full(log, LOG_LEVEL_ERROR, -EINVAL, MESSAGE_CONFIGURATION_REFUSED, NULL, 0,
                                        "[Queue] Accounts=%s: an AWS account has 12 digits; separate several by spaces", *account);
        STRV_FOREACH(region, c->queue_regions)
                if (strspn(*region, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(*region))
                        return log_full(log, LOG_LEVEL_ERROR, -EINVAL, MESSAGE_CONFIGURATION_REFUSED, NULL, 0,
                                        "[Queue] Regions=%s: an AWS region is such as eu-west-1; separate several by spaces", *region);
        return 0;
}

int coordinator_config_check(const CoordinatorConfig *c, Log *log) {
        for (size_t i = 0; i < c->providers.n; i++) {
                if (!streq(cloud_provider_names[c->providers.at[i]], "exec"))
                        continue;
                if (i + 1 < c->providers.n)
                        return log_full(log, LOG_LEVEL_ERROR, -EINVAL, MESSAGE_CONFIGURATION_REFUSED, NULL, 0,
                                        "[Provider] Name=: exec takes machines with any providerID, so it has to be the last, "
                                        "behind those that know their own: Name=ec2 exec");
                if (isempty(c->provider_command) || c->provider_command[0] != '/')
                        return log_full(log, LOG_LEVEL_ERROR, -EINVAL, MESSAGE_CONFIGURATION_REFUSED, NULL, 0,
                                        "[Provider] Name=exec needs Command=, the absolute path of an executable");
        }
        if (c->queue_unmanaged == QUEUE_UNMANAGED_DRAIN && c->interruption_delete == INTERRUPTION_DELETE_NEVER)
                log_warning(log, "[Queue] Unmanaged=drain has no effect beside [Interruption] Delete=never, by which no announced end of a machine "
                                 "counts: no node is drained for the queue. Set Delete=terminate, or Unmanaged=report");
        if (notify_settings_check(&c->notify, log) < 0)
                return -EINVAL;
        return check_queue(c, log) < 0 ? -EINVAL : check_webhook(c, log);
}
