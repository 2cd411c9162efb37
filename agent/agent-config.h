/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* /etc/vesper/agent.conf: the struct, its table, and what the environment has to say to it. */

#include "config.h"
#include "log-settings.h"
#include "notify-settings.h"
#include "policy.h"
#include "time-util.h"

#define AGENT_INSTANCE_ID_MAX 34u /* EC2_INSTANCE_ID_MAX */
#define AGENT_METADATA_ENDPOINT "http://169.254.169.254"
/* EC2's, where there is no route to that: an instance with IPv6 alone. */
#define AGENT_METADATA_ENDPOINT_IPV6 "http://[fd00:ec2::254]"

/* Of [Metadata] Source=, in the order of its words. */
typedef enum MetadataSource {
        METADATA_SOURCE_EC2,
        METADATA_SOURCE_GCE,
        METADATA_SOURCE_AZURE,
        METADATA_SOURCE_NONE,
        METADATA_SOURCE_AUTO, /* by the firmware, else by the providerID of the Node (notice-sources.h) */
        _METADATA_SOURCE_MAX,
} MetadataSource;

typedef enum ShutdownTooShort { SHUTDOWN_TOO_SHORT_DEGRADE, SHUTDOWN_TOO_SHORT_REFUSE } ShutdownTooShort;

/* Which scheduled events are acknowledged once the node is drained for them. */
typedef enum Acknowledge {
        ACKNOWLEDGE_NO,
        ACKNOWLEDGE_ALONE, /* that name this machine alone */
        ACKNOWLEDGE_ALL,   /* ... or whose machines are all Nodes that are drained, as the coordinator says */
} Acknowledge;

typedef struct AgentConfig {
        char *kubeconfig;    /* [Kubernetes] Kubeconfig=; NULL: agent_config_find_kubeconfig() */
        char *node_name;     /* [Kubernetes] NodeName=; NULL: from the credential. Set before agent_new() */
        int metadata_source; /* [Metadata] Source=: a MetadataSource */
        int acknowledge;     /* [Metadata] Acknowledge=: an Acknowledge */
        char *metadata_endpoint;     /* [Metadata] Endpoint=; NULL: AGENT_METADATA_ENDPOINT */
        usec_t poll_usec;            /* [Metadata] PollSec= */
        bool allow_imdsv1;           /* [Metadata] AllowIMDSv1= */
        char *file_path;             /* [File] Path=; NULL: none */
        usec_t file_poll_usec;       /* [File] PollSec= */
        char **command;              /* [Command] Run=: argv; NULL: none */
        usec_t command_poll_usec;    /* [Command] PollSec= */
        bool dry_run;                /* [Agent] DryRun= */
        char *policy[_NOTICE_KIND_MAX]; /* [Policy], a rule each; NULL: a kind that has none there */
        char *policy_reboot;         /* [Policy] Reboot=; NULL: as Maintenance= */
        char *runtime_directory;     /* [Agent] RuntimeDirectory= */
        usec_t lb_wait_usec;         /* [Drain] LoadBalancerWaitSec= */
        bool shutdown_drain;         /* [Shutdown] Drain= */
        usec_t shutdown_max_usec;    /* [Shutdown] MaxSec= */
        usec_t reboot_patience_usec; /* [Shutdown] RebootPatienceSec= */
        bool repair_reboots;         /* [Shutdown] RepairReboots= */
        int shutdown_too_short;      /* [Shutdown] TooShort=: a ShutdownTooShort */
        char *metrics_listen;        /* [Metrics] Listen=ADDRESS:PORT or unix:/PATH; NULL: none */
        char *health_listen;         /* [Health] Listen=, the same; NULL: none */
        NotifySettings notify;       /* [Notify] */
        LogSettings log;             /* [Log] */

        MetadataSource detected_cloud; /* not configured: what the firmware says */
        char detected_instance[AGENT_INSTANCE_ID_MAX + 1]; /* the same: EC2's id of this machine; "": it does not say */
} AgentConfig;

extern const ConfigItem agent_config_table[];
extern const size_t agent_config_table_size;

void agent_config_done(AgentConfig *c);

/* What every tool of that cloud obeys: AWS_EC2_METADATA_DISABLED=true ends looking,
 * AWS_EC2_METADATA_SERVICE_ENDPOINT holds where Endpoint= is not set. environment: as in environ. Then
 * refuses, with a logged error, an endpoint that is no http:// URL, an address of [Metrics] that is none, and a rule of
 * [Policy] that is none: 0, -EINVAL, -ENOMEM. DryRun= ends what would delay a shutdown or ask for a reboot. */
int agent_config_finish(AgentConfig *c, Log *l, char *const *environment);

/* What [Policy] and [Drain] say, checked by agent_config_finish(); policy_settings_done(). -ENOMEM; -EINVAL: the file of a time
 * zone is not any more what it was then. */
int agent_config_policy(const AgentConfig *c, PolicySettings *ret);

/* Kubeconfig= or the first of the usual places that exists; borrowed. NULL: none. */
const char *agent_config_find_kubeconfig(const AgentConfig *c);
