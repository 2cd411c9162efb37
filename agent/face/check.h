/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * vesper-agent --check: what this machine gives an agent, as a table of OK, WARN and FAIL with what to do
 * about it.
 *
 * check_judge() is pure: facts in, rows out. check_run() collects the facts by asking (the API server, the
 * metadata service, the kubelet, logind, PID 1), each for some seconds at most, and changes nothing.
 */

#include <stdio.h>

#include "agent-config.h"
#include "check-kubelet.h"
#include "kube-client.h"
#include "notice-source.h"
#include "power.h"

typedef enum CheckLevel { CHECK_OK, CHECK_WARN, CHECK_FAIL, _CHECK_LEVEL_MAX } CheckLevel;

/* Exit status of the program: 0, 3, 4. */
int check_exit_status(CheckLevel worst);

/* All borrowed. */
typedef struct CheckFacts {
        /* the credential */
        const char *kubeconfig; /* NULL: none found */
        const char *kube_error; /* why it cannot be used; NULL: it can */
        const char *node;
        const char *kube_risk, *kube_remedy; /* kubeconfig_risk() */
        /* GET of the own Node: -1: not asked; 0: no answer, and api_error says why */
        int api_http;
        const char *api_error;
        bool api_no_route; /* 0: as there is no way to it */
        bool node_ready;
        /* the metadata service */
        bool metadata_wanted;
        bool metadata_auto; /* the cloud is to be found by the agent itself */
        bool metadata_polled;
        NoticePollResult look;
        const char *metadata_why;
        NoticeIdentity identity; /* whose machine that is, by the providerID of the Node */
        const char *machine, *provider_id; /* FIRMWARE, OTHER: what metadata calls it, and what the Node does */
        bool allows_imdsv1;
        bool in_capacity_block, knows_block_end; /* EC2: instance-life-cycle, and the tag (notice-ec2.h) */
        const char *windows; /* of [Policy], when they open next; NULL: there is none */
        /* [Notify] */
        bool notify_wanted;
        const char *notify_error; /* why its files cannot be used; NULL: they can */
        /* the machine */
        bool in_pod; /* this process runs in a pod, as the agent does then: there is no unit */
        bool bus;
        bool limits_known;
        PowerLimits limits;
        bool kubelet_inhibits; /* as logind's list has it */
        KubeletFacts kubelet;
        bool shutdown_drain, refuse;
        usec_t shutdown_max_usec;
        bool inhibited;         /* by an agent */
        const char *unit_state; /* of vesper-agent.service, "active"; NULL: not known */
        bool after_kubelet;     /* that unit stops before the kubelet: check_after_kubelet() */
        bool scope_dropins;     /* of each container runtime */
} CheckFacts;

typedef struct CheckRow {
        CheckLevel level;
        const char *what;
        char *found; /* owned */
        char *fix;   /* owned; NULL: nothing to do */
} CheckRow;

#define CHECK_ROWS_MAX 14u

typedef struct CheckTable {
        CheckRow rows[CHECK_ROWS_MAX];
        size_t n_rows;
} CheckTable;

/* The units that are known to run a kubelet. */
typedef enum CheckUnit {
        CHECK_UNIT_KUBELET,
        CHECK_UNIT_K3S,
        CHECK_UNIT_K3S_AGENT,
        CHECK_UNIT_RKE2_SERVER,
        CHECK_UNIT_RKE2_AGENT,
        CHECK_UNIT_K0S_CONTROLLER,
        CHECK_UNIT_K0S_WORKER,
        CHECK_UNIT_MICROK8S,
        _CHECK_UNIT_MAX,
} CheckUnit;

/* after: what vesper-agent.service is ordered after, on every machine the same: one of them has to be active on
 * this one. active: of each CheckUnit. */
bool check_after_kubelet(char *const *after, const bool active[_CHECK_UNIT_MAX]);

/* 0 or -ENOMEM. */
int check_judge(const CheckFacts *f, CheckTable *ret);
CheckLevel check_worst(const CheckTable *t);
void check_print(const CheckTable *t, FILE *to);
void check_table_done(CheckTable *t);

/* kubeconfig, client, auth: NULL where there is none, and kube_error says why. Runs the loop. 0, or a
 * negative errno; *ret is then empty. */
int check_run(Env *env, const AgentConfig *config, const KubeConfig *kubeconfig, KubeClient *client,
              KubeAuth *auth, const char *kube_error, CheckTable *ret);
