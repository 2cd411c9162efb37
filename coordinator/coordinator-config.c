/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator-config.h"

#include "cloud.h"

/* ProtectedPolicy */
static const char *const protected_choices[] = { "wait", "others", "ignore", NULL };
/* InterruptionDelete */
static const char *const delete_choices[] = { "never", "terminate", "always", NULL };
/* LogTarget, auto */
static const char *const target_choices[] = { "journal", "json", "text", "null", "auto", NULL };
static const char *const level_choices[] = { "error", "warning", "notice", "info", "debug", NULL };

#define STRING(s, k, field, def, text, ...) \
        { \
                .section = s, .key = k, .parse = config_parse_string, .format = config_format_string, \
                .offset = offsetof(CoordinatorConfig, field), .default_value = def, .help = text, \
                __VA_ARGS__ \
        }
#define CHOICE(s, k, field, table, def, text, ...) \
        { \
                .section = s, .key = k, .parse = config_parse_choice, .format = config_format_choice, \
                .offset = offsetof(CoordinatorConfig, field), .default_value = def, .help = text, \
                .choices = table, __VA_ARGS__ \
        }

const ConfigItem coordinator_config_table[] = {
        STRING("Kubernetes", "Kubeconfig", kubeconfig, NULL,
               "kubeconfig file. Empty: the pod's own ServiceAccount, else the file named by KUBECONFIG."),
        STRING("Lease", "Namespace", lease_namespace, "vesper-system",
               "Namespace of the Lease by which one replica leads."),
        STRING("Lease", "Name", lease_name, "vesper-coordinator", "Name of that Lease."),
        STRING("Lease", "Identity", lease_identity, NULL,
               "The name of this process in the Lease, followed by an underscore and a UUID that each start "
               "draws anew. Empty: the host's name."),
        CHOICE("Provider", "Name", provider, cloud_provider_names, "ec2",
               "What ends machines: ec2, or exec for a command of one's own."),
        STRING("Provider", "Endpoint", provider_endpoint, NULL,
               "URL of the cloud's API. Empty: the provider's own."),
        STRING("Provider", "Region", provider_region, NULL,
               "Region of the machines. Empty: AWS_REGION, AWS_DEFAULT_REGION, instance metadata."),
        STRING("Provider", "Command", provider_command, NULL, "exec: absolute path of the command."),
        CHOICE("Drain", "Protected", protected_policy, protected_choices, "wait",
               "Pods that opted out of eviction on a node being deleted: wait (nothing is evicted until "
               "they are gone), others (the rest is evicted meanwhile), ignore (they are evicted like any "
               "other). An interrupted node waits for none of them.",
               .flags = CONFIG_RELOADABLE),
        { .section = "Drain",
          .key = "LoadBalancerWaitSec",
          .parse = config_parse_usec,
          .format = config_format_usec,
          .offset = offsetof(CoordinatorConfig, lb_wait_usec),
          .default_value = "0s",
          .max = USEC_PER_HOUR,
          .help = "How long load balancers get to let go of a node before its pods are evicted.",
          .flags = CONFIG_RELOADABLE },
        CHOICE("Interruption", "Delete", interruption_delete, delete_choices, "terminate",
               "Whether a managed node whose agent tells of its end is deleted at once, so that its drain "
               "is "
               "seen through, its volumes are let go and its machine is ended and replaced, without waiting "
               "for its cloud: terminate (if its cloud is to terminate it), always (also if its cloud is to "
               "stop or hibernate it, after which it would come back), never.",
               .flags = CONFIG_RELOADABLE),
        { .section = "Budget",
          .key = "MaxConcurrentReboots",
          .parse = config_parse_unsigned,
          .format = config_format_unsigned,
          .offset = offsetof(CoordinatorConfig, max_concurrent_reboots),
          .default_value = "1",
          .max = 10000,
          .help = "How many nodes may hold a slot to reboot at once, of those that ask for one "
                  "(vesper-reboot.service, shutdown -r +N). 0: none is granted.",
          .flags = CONFIG_RELOADABLE },
        { .section = "Budget",
          .key = "RebootSlotSec",
          .parse = config_parse_usec,
          .format = config_format_usec,
          .offset = offsetof(CoordinatorConfig, reboot_slot_usec),
          .default_value = "45min",
          .min = USEC_PER_MINUTE,
          .max = USEC_PER_DAY,
          .help = "How long such a slot is kept at most, from its grant until the node is Ready with "
                  "another "
                  "boot id: the agent's [Shutdown] MaxSec= and the machine's start must fit. A node that is "
                  "not back by then keeps no other from rebooting. A node that waits for pods that opted out uses its "
                  "slot meanwhile: others wait for it. A grant on a Node that lasts longer from now is none of the "
                  "coordinator's and is taken off: make it shorter while no slot is held.",
          .flags = CONFIG_RELOADABLE },
        STRING("Metrics", "Listen", metrics_listen, NULL,
               "ADDRESS:PORT for /metrics, /healthz and /readyz over HTTP; :PORT or *:PORT is every address, of "
               "IPv6 and of IPv4. Empty: none."),
        STRING("Health", "Listen", health_listen, NULL,
               "ADDRESS:PORT for probes alone, /healthz and /readyz over HTTP; :PORT or *:PORT is every address, "
               "of IPv6 and of IPv4. Nobody who holds connections "
               "to the "
               "metrics keeps them out. Empty: none."),
        CHOICE("Log", "Target", log_target, target_choices, "auto",
               "Where messages go; auto goes by what standard error is.", .flags = CONFIG_RELOADABLE),
        CHOICE("Log", "Level", log_level, level_choices, "info", "The least important level that is logged.",
               .flags = CONFIG_RELOADABLE),
};
const size_t coordinator_config_table_size = ELEMENTSOF(coordinator_config_table);

LogTarget coordinator_config_log_target(const CoordinatorConfig *c) {
        return c->log_target >= _LOG_TARGET_MAX ? log_target_auto() : (LogTarget) c->log_target;
}

LogLevel coordinator_config_log_level(const CoordinatorConfig *c) {
        return (LogLevel) (LOG_LEVEL_ERROR + c->log_level);
}
