/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "string-util.h"
#include "strv.h"

int check_exit_status(CheckLevel worst) {
        static const int statuses[_CHECK_LEVEL_MAX] = { [CHECK_OK] = 0, [CHECK_WARN] = 3, [CHECK_FAIL] = 4 };

        return statuses[worst];
}

/* Takes both texts. */
static int add(CheckTable *t, CheckLevel level, const char *what, char *found, const char *fix) {
        CheckRow *row = &t->rows[t->n_rows++];

        assert(t->n_rows <= CHECK_ROWS_MAX);
        *row = (CheckRow){ .level = level, .what = what, .found = found };
        if (fix && found)
                row->fix = strdup(fix);
        return found && (!fix || row->fix) ? 0 : -ENOMEM;
}

static int judge_credential(const CheckFacts *f, CheckTable *t) {
        if (!f->kubeconfig)
                return add(t, CHECK_FAIL, "credential", strdup("no kubelet credential at its usual places"),
                           "Set [Kubernetes] Kubeconfig= to the kubelet's kubeconfig.");
        if (f->kube_error)
                return add(t, CHECK_FAIL, "credential", strf("%s: %s", f->kubeconfig, f->kube_error),
                           "The agent needs what the kubelet uses: see [Kubernetes] Kubeconfig= and NodeName=.");
        return add(t, CHECK_OK, "credential", strf("%s, node %s", f->kubeconfig, strempty(f->node)), NULL);
}

static int judge_risk(const CheckFacts *f, CheckTable *t) {
        return f->kube_risk ? add(t, CHECK_WARN, "risk", strdup(f->kube_risk), f->kube_remedy) : 0;
}

static int judge_api(const CheckFacts *f, CheckTable *t) {
        if (f->api_http < 0)
                return 0;
        if (f->api_http == 0 && f->api_no_route)
                return add(t, CHECK_FAIL, "API server", strf("there is no way to it: %s", strempty(f->api_error)),
                           "See ip route on this machine, and whether it finds an address for the server's name (getent hosts NAME).");
        if (f->api_http == 0)
                return add(t, CHECK_FAIL, "API server", strf("no answer: %s", strempty(f->api_error)),
                           "Check network, proxy and load balancer between this machine and the server of the kubeconfig.");
        if (f->api_http == 404)
                return add(
                        t, CHECK_WARN, "API server", strf("there is no Node %s", strempty(f->node)),
                        "Wait for the kubelet to register it, or set [Kubernetes] NodeName= to its name.");
        if (f->api_http == 401 || f->api_http == 403)
                return add(
                        t, CHECK_FAIL, "API server", strf("refuses this credential: HTTP %d", f->api_http),
                        "It must be that of this very node: user system:node:NAME in group system:nodes.");
        if (f->api_http >= 300)
                return add(t, CHECK_FAIL, "API server",
                           strf("HTTP %d: %s", f->api_http, strempty(f->api_error)),
                           "The server has trouble of its own: see its log.");
        return f->node_ready ? add(t, CHECK_OK, "API server", strf("Node %s is Ready", f->node), NULL)
                             : add(t, CHECK_WARN, "API server", strf("Node %s is not Ready", f->node),
                                   "See kubectl describe node, and the kubelet's log.");
}

static int judge_metadata(const CheckFacts *f, CheckTable *t) {
        if (!f->metadata_wanted)
                return add(t, CHECK_OK, "metadata",
                           strdup(f->metadata_auto
                                          ? "not polled, unless the providerID of the node names a cloud: the firmware of this machine names none ([Metadata] Source=auto)"
                                          : "not polled ([Metadata] Source=none)"),
                           NULL);
        if (f->identity == NOTICE_IDENTITY_OTHER)
                return add(t, CHECK_FAIL, "metadata",
                           strf("speaks for another machine: for %s, and the providerID of Node %s is %s; nothing that it announces is acted upon",
                                f->machine, strempty(f->node), f->provider_id),
                           "Look for what answers at [Metadata] Endpoint= (a proxy, a NAT rule). "
                           "Should the providerID be that of an earlier machine: kubectl delete node, and the kubelet registers it anew.");
        if (!f->metadata_polled || f->look == NOTICE_POLL_UNKNOWN)
                return add(t, CHECK_WARN, "metadata",
                           strf("no answer: %s", f->metadata_why ? f->metadata_why : "within 5 s"),
                           "An announced end would not be seen. "
                           "Check the hop limit and firewalls before 169.254.169.254, or set [Metadata] Source=none where there is no such service.");
        if (f->identity == NOTICE_IDENTITY_FIRMWARE)
                return add(t, CHECK_WARN, "metadata",
                           strf("speaks for %s, as the firmware does, and the providerID of Node %s is another machine's: %s", f->machine,
                                strempty(f->node), f->provider_id),
                           "Its notices are acted upon, and others take the node for that machine: kubectl delete node, and the kubelet registers it anew.");
        return add(t, CHECK_OK, "metadata",
                   strf("answers%s%s", f->look == NOTICE_POLL_NOTICE ? ": the end of this machine is announced (vesper-agent --notices)" : "",
                        f->allows_imdsv1 ? "; a session token is not insisted on ([Metadata] AllowIMDSv1=yes)" : ""),
                   NULL);
}

static int judge_capacity(const CheckFacts *f, CheckTable *t) {
        if (!f->in_capacity_block)
                return 0;
        return f->knows_block_end
                       ? add(t, CHECK_OK, "capacity", strdup("in a Capacity Block, and its end is known by the tag vesper.sh:capacity-block-end"),
                             NULL)
                       : add(t, CHECK_WARN, "capacity",
                             strdup("in a Capacity Block, whose end instance metadata does not announce: the machine would go unannounced"),
                             "Tag the instance vesper.sh:capacity-block-end=2027-01-21T11:30:00Z (when the block ends), with InstanceMetadataTags=enabled.");
}

static int judge_windows(const CheckFacts *f, CheckTable *t) {
        return f->windows ? add(t, CHECK_OK, "windows", strdup(f->windows), NULL) : 0;
}

static int judge_notify(const CheckFacts *f, CheckTable *t) {
        if (!f->notify_wanted)
                return 0;
        return f->notify_error ? add(t, CHECK_WARN, "notify", strdup(f->notify_error),
                                     "Others would not be told of interruptions of this node, which is drained all the same.")
                               : add(t, CHECK_OK, "notify", strdup("the URL of the receiver can be read; no request was sent"), NULL);
}

static int judge_budget(const CheckFacts *f, CheckTable *t) {
        PowerBudget b = power_budget(&f->limits, true, f->shutdown_max_usec);
        char total[DURATION_MAX], delay[DURATION_MAX];
        char *found;

        duration_format(b.total_usec, total);
        duration_format(f->limits.inhibit_delay_usec, delay);
        found = strf("a shutdown is delayed by %s at most (InhibitDelayMaxSec=%s)", total, delay);
        if (!b.too_short)
                return add(t, CHECK_OK, "shutdown", found, NULL);
        return add(t, f->refuse ? CHECK_FAIL : CHECK_WARN, "shutdown", found, b.remedy);
}

static int judge_shutdown(const CheckFacts *f, CheckTable *t) {
        if (!f->shutdown_drain)
                return add(t, CHECK_OK, "shutdown", strdup("not drained before ([Shutdown] Drain=no)"),
                           NULL);
        if (!f->bus)
                return add(t, CHECK_FAIL, "shutdown",
                           strdup("there is no system bus: shutdowns are not seen"),
                           "Install and start dbus and systemd-logind; in a container mount /run/dbus/system_bus_socket.");
        if (!f->limits_known || f->limits.inhibit_delay_usec == 0)
                return add(t, CHECK_WARN, "shutdown",
                           strdup("logind does not answer: only the ordered stop leaves time"),
                           "See systemctl status systemd-logind.");
        return judge_budget(f, t);
}

static int judge_healthz(const CheckFacts *f, CheckTable *t) {
        const KubeletFacts *k = &f->kubelet;

        if (k->healthz_http < 0)
                return 0;
        if (k->healthz_http == 200)
                return add(t, CHECK_OK, "healthz", strdup("the kubelet is healthy"), NULL);
        if (k->healthz_http == 0)
                return add(
                        t, CHECK_WARN, "healthz",
                        strf("no answer of the kubelet on 127.0.0.1:10248: %s", strempty(k->healthz_text)),
                        "See systemctl status kubelet: without it pods neither start nor end. "
                        "If its configuration has another healthzPort=, nothing is wrong.");
        return add(
                t, CHECK_WARN, "healthz",
                strf("the kubelet is not healthy: HTTP %d: %s", k->healthz_http, strempty(k->healthz_text)),
                "See the kubelet's log: pods that are evicted may not end.");
}

/* How it is known; free it. */
static char *kubelet_source(const KubeletFacts *k) {
        if (k->shutdown != KUBELET_SHUTDOWN_UNKNOWN)
                return strdup("its /configz says");
        if (k->configz_http == 401 || k->configz_http == 403)
                return strf(
                        "by logind's list of inhibitors; its /configz is not for this credential, HTTP %d",
                        k->configz_http);
        return k->configz_http > 0
                       ? strf("by logind's list of inhibitors; its /configz says HTTP %d", k->configz_http)
                       : strdup("by logind's list of inhibitors");
}

static int judge_kubelet(const CheckFacts *f, CheckTable *t) {
        _cleanup_free_ char *source = NULL;
        bool on = f->kubelet_inhibits || f->kubelet.shutdown == KUBELET_SHUTDOWN_ON;

        if ((!f->limits_known && f->kubelet.shutdown == KUBELET_SHUTDOWN_UNKNOWN) || !f->shutdown_drain)
                return 0;
        source = kubelet_source(&f->kubelet);
        if (!source)
                return -ENOMEM;
        if (f->kubelet_inhibits && f->kubelet.shutdown == KUBELET_SHUTDOWN_OFF)
                return add(t, CHECK_WARN, "kubelet",
                           strdup("its /configz says that its own graceful node shutdown is off, and logind that it inhibits shutdowns"),
                           "Restart the kubelet: else both act in the same window.");
        return on ? add(t, CHECK_WARN, "kubelet",
                        strf("its own graceful node shutdown is on (%s): both act in the same window, and it kills pods while they are evicted",
                             source),
                        "Set shutdownGracePeriod: 0s (and no shutdownGracePeriodByPodPriority) in its configuration.")
                  : add(t, CHECK_OK, "kubelet", strf("its own graceful node shutdown is off (%s)", source),
                        NULL);
}

/* Optional, so it never warns. */
static int judge_pods(const CheckFacts *f, CheckTable *t) {
        const KubeletFacts *k = &f->kubelet;

        if (!f->shutdown_drain || k->pods == KUBELET_PODS_UNKNOWN)
                return 0;
        return add(t, CHECK_OK, "pods",
                   k->pods == KUBELET_PODS_READABLE
                           ? strdup("the kubelet's " KUBELET_PODS_PATH " can be read, and says at a shutdown which pods have ended")
                           : strf("the kubelet's " KUBELET_PODS_PATH " cannot be read (%s); it is optional: vesper-agent(8), KUBELET AND NETWORK",
                                  strempty(k->pods_text)),
                   NULL);
}

bool check_after_kubelet(char *const *after, const bool active[_CHECK_UNIT_MAX]) {
        static const char *const names[_CHECK_UNIT_MAX] = {
                [CHECK_UNIT_KUBELET] = "kubelet.service",
                [CHECK_UNIT_K3S] = "k3s.service",
                [CHECK_UNIT_K3S_AGENT] = "k3s-agent.service",
                [CHECK_UNIT_RKE2_SERVER] = "rke2-server.service",
                [CHECK_UNIT_RKE2_AGENT] = "rke2-agent.service",
                [CHECK_UNIT_K0S_CONTROLLER] = "k0scontroller.service",
                [CHECK_UNIT_K0S_WORKER] = "k0sworker.service",
                [CHECK_UNIT_MICROK8S] = "snap.microk8s.daemon-kubelite.service",
        };

        for (CheckUnit u = 0; u < _CHECK_UNIT_MAX; u++)
                if (active[u] && strv_contains(after, names[u]))
                        return true;
        return false;
}

static int judge_inhibitor(const CheckFacts *f, CheckTable *t) {
        if (!f->shutdown_drain || !f->limits_known)
                return 0;
        return f->inhibited ? add(t, CHECK_OK, "inhibitor", strdup("held by the agent"), NULL)
                            : add(t, CHECK_WARN, "inhibitor", strdup("the agent runs and holds none"),
                                  f->in_pod ? "See the log of the agent's pod; a shutdown may be under way, or TooShort=refuse in force."
                                            : "See journalctl -u vesper-agent; a shutdown may be under way, or TooShort=refuse in force.");
}

/* The bus is that of the machine, and so are the units that are asked about. */
static int judge_pod(const CheckFacts *f, CheckTable *t) {
        int r;

        if (streq_ptr(f->unit_state, "active"))
                r = add(t, CHECK_WARN, "unit", strdup("this is a pod, and vesper-agent.service is active on the machine as well: two agents of one node"),
                        "Keep one of them: systemctl disable --now vesper-agent on the machine, or a label that keeps the DaemonSet off it.");
        else
                r = add(t, CHECK_OK, "unit", strdup("none: the agent runs in a pod, and a shutdown waits for it by the inhibitor alone"), NULL);
        return r < 0 ? r : judge_inhibitor(f, t);
}

static int judge_unit(const CheckFacts *f, CheckTable *t) {
        int r;

        if (f->in_pod)
                return judge_pod(f, t);
        if (!f->unit_state)
                return 0;
        if (!streq(f->unit_state, "active"))
                return add(t, CHECK_WARN, "unit", strf("vesper-agent.service is %s", f->unit_state),
                           "systemctl enable --now vesper-agent; if it fails: journalctl -u vesper-agent.");
        r = f->after_kubelet
                    ? add(t, CHECK_OK, "unit",
                          strdup("vesper-agent.service is active, and stops before the kubelet"), NULL)
                    : add(t, CHECK_WARN, "unit",
                          strdup("none of the units that run a kubelet is active here, of those that vesper-agent.service is ordered after"),
                          "By a drop-in (systemctl edit vesper-agent), [Unit] After= the unit that runs the kubelet: else it ends before the drain does. "
                          "Where the drop-in names one that is not known here, that is all.");
        return r < 0 ? r : judge_inhibitor(f, t);
}

static int judge_scopes(const CheckFacts *f, CheckTable *t) {
        if (!f->shutdown_drain || !f->unit_state || f->in_pod)
                return 0;
        return f->scope_dropins
                       ? add(t, CHECK_OK, "containers", strdup("their scopes stop after the agent"), NULL)
                       : add(t, CHECK_WARN, "containers",
                             strdup("their scopes are not ordered: they may be stopped beside the drain"),
                             "Install 50-vesper.conf into cri-containerd-.scope.d, crio-.scope.d and docker-.scope.d (the package does), then systemctl daemon-reload.");
}

int check_judge(const CheckFacts *f, CheckTable *ret) {
        static int (*const judges[])(const CheckFacts *f, CheckTable *t) = {
                judge_credential, judge_risk,     judge_api,     judge_metadata, judge_capacity, judge_windows, judge_notify,
                judge_shutdown,   judge_healthz,  judge_kubelet, judge_pods,     judge_unit,
                judge_scopes,
        };

        assert(f && ret);
        *ret = (CheckTable){ 0 };
        for (size_t i = 0; i < ELEMENTSOF(judges); i++) {
                int r = judges[i](f, ret);

                if (r < 0) {
                        check_table_done(ret);
                        return r;
                }
        }
        return 0;
}

CheckLevel check_worst(const CheckTable *t) {
        CheckLevel worst = CHECK_OK;

        for (size_t i = 0; i < t->n_rows; i++)
                worst = MAX(worst, t->rows[i].level);
        return worst;
}

void check_print(const CheckTable *t, FILE *to) {
        static const char *const levels[_CHECK_LEVEL_MAX] = { "OK", "WARN", "FAIL" };

        for (size_t i = 0; i < t->n_rows; i++) {
                const CheckRow *row = &t->rows[i];

                fprintf(to, "%-4s  %-10s  %s\n", levels[row->level], row->what, row->found);
                if (row->fix)
                        fprintf(to, "                  -> %s\n", row->fix);
        }
}

void check_table_done(CheckTable *t) {
        for (size_t i = 0; i < t->n_rows; i++) {
                free(t->rows[i].found);
                free(t->rows[i].fix);
        }
        *t = (CheckTable){ 0 };
}
