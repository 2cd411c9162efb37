/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* /etc/vesper/coordinator.conf: the struct and its table. */

#include "config.h"
#include "drain-plan.h"
#include "interruption.h"
#include "log-settings.h"
#include "notify-settings.h"
#include "time-util.h"

/* What the interruption queue means for a Node without NodeClaim that no NodePool wants. */
typedef enum QueueUnmanaged {
        QUEUE_UNMANAGED_REPORT,
        QUEUE_UNMANAGED_DRAIN, /* it is cordoned and drained; its machine is never ended */
} QueueUnmanaged;

typedef struct CoordinatorConfig {
        char *kubeconfig;                /* [Kubernetes] Kubeconfig=; NULL: in-cluster, then KUBECONFIG */
        char *lease_namespace;           /* [Lease] Namespace= */
        char *lease_name;                /* [Lease] Name= */
        char *lease_identity; /* [Lease] Identity=; NULL: the host's name; see coordinator_identity() */
        ConfigChoices providers;         /* [Provider] Name=: of cloud_provider_names */
        char *provider_endpoint;         /* [Provider] Endpoint= */
        char *provider_region;           /* [Provider] Region= */
        char *provider_command;          /* [Provider] Command= */
        int protected_policy;            /* [Drain] Protected=wait|others|ignore: a ProtectedPolicy */
        usec_t lb_wait_usec;             /* [Drain] LoadBalancerWaitSec= */
        int interruption_delete;         /* [Interruption] Delete=: an InterruptionDelete */
        usec_t interruption_before_usec; /* [Interruption] BeforeSec= */
        char *queue_url;                 /* [Queue] Url=; NULL: none is heard */
        bool queue_shared;               /* [Queue] Shared= */
        char **queue_accounts;           /* [Queue] Accounts=; NULL: the queue's own alone */
        char **queue_regions;            /* [Queue] Regions=; the same */
        unsigned queue_polls;            /* [Queue] Polls= */
        int queue_unmanaged;             /* [Queue] Unmanaged=: a QueueUnmanaged */
        unsigned max_concurrent_reboots; /* [Budget] MaxConcurrentReboots= */
        usec_t reboot_slot_usec;         /* [Budget] RebootSlotSec= */
        char *metrics_listen;            /* [Metrics] Listen=ADDRESS:PORT; NULL: none */
        char *health_listen;             /* [Health] Listen=ADDRESS:PORT; NULL: none */
        char *webhook_listen;            /* [Webhook] Listen=ADDRESS:PORT; NULL: none */
        char *webhook_certificate;       /* [Webhook] CertificateFile= */
        char *webhook_key;               /* [Webhook] KeyFile= */
        char *webhook_secret;            /* [Webhook] CertificateSecret= */
        char **webhook_names;            /* [Webhook] Names= */
        char *webhook_configuration;     /* [Webhook] Configuration= */
        char *webhook_client_ca;         /* [Webhook] ClientCAFile=; NULL: whoever reaches it may ask */
        char **webhook_exempt;           /* [Webhook] Exempt=: user names, "*" for any characters */
        NotifySettings notify;           /* [Notify] */
        bool notify_agents_tell;         /* [Notify] AgentsTell= */
        LogSettings log;                 /* [Log] */
        unsigned terminations_per_minute, terminations_burst; /* [Provider] TerminationsPerMinute=, TerminationsBurst= */
        unsigned evictions_per_second;   /* [Drain] EvictionsPerSecond=; 0: what evictor.h says */
        /* No setting: 0 is what evictor.h says. Simulated clusters have fewer pods than real ones. */
        unsigned evictions_at_once;
} CoordinatorConfig;

/* What no key alone can say: 0, or -EINVAL, with what is wrong in the log. */
int coordinator_config_check(const CoordinatorConfig *c, Log *log);
extern const ConfigItem coordinator_config_table[];
extern const size_t coordinator_config_table_size;
