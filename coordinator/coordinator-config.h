/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* /etc/vesper/coordinator.conf: the struct and its table. */

#include "config.h"
#include "drain-plan.h"
#include "time-util.h"

/* Of which interruptions it takes that a claim is deleted. */
typedef enum InterruptionDelete {
        INTERRUPTION_DELETE_NEVER,
        INTERRUPTION_DELETE_TERMINATE, /* after which the machine is no more */
        INTERRUPTION_DELETE_ALWAYS,    /* also stop and hibernate */
} InterruptionDelete;

typedef struct CoordinatorConfig {
        char *kubeconfig;                /* [Kubernetes] Kubeconfig=; NULL: in-cluster, then KUBECONFIG */
        char *lease_namespace;           /* [Lease] Namespace= */
        char *lease_name;                /* [Lease] Name= */
        char *lease_identity; /* [Lease] Identity=; NULL: the host's name; see coordinator_identity() */
        int provider;                    /* [Provider] Name=: index into cloud_provider_names */
        char *provider_endpoint;         /* [Provider] Endpoint= */
        char *provider_region;           /* [Provider] Region= */
        char *provider_command;          /* [Provider] Command= */
        int protected_policy;            /* [Drain] Protected=wait|others|ignore: a ProtectedPolicy */
        usec_t lb_wait_usec;             /* [Drain] LoadBalancerWaitSec= */
        int interruption_delete;         /* [Interruption] Delete=: an InterruptionDelete */
        unsigned max_concurrent_reboots; /* [Budget] MaxConcurrentReboots= */
        usec_t reboot_slot_usec;         /* [Budget] RebootSlotSec= */
        char *metrics_listen;            /* [Metrics] Listen=ADDRESS:PORT; NULL: none */
        char *health_listen;             /* [Health] Listen=ADDRESS:PORT; NULL: none */
        int log_target;                  /* [Log] Target= */
        int log_level;                   /* [Log] Level= */
        /* No settings: 0 is what evictor.h says. Simulated clusters have fewer pods than real ones. */
        unsigned evictions_at_once, evictions_per_second;
} CoordinatorConfig;

extern const ConfigItem coordinator_config_table[];
extern const size_t coordinator_config_table_size;

LogTarget coordinator_config_log_target(const CoordinatorConfig *c);
LogLevel coordinator_config_log_level(const CoordinatorConfig *c);
