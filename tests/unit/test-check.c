/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "agent-rig.h"
#include "check.h"
#include "cmocka-test.h"
#include "http-inproc.h"
#include "string-util.h"
#include "strv.h"

#define S USEC_PER_SEC

/* A machine on which all is well. */
static CheckFacts good(void) {
        return (CheckFacts){
                .kubeconfig = "/etc/kubernetes/kubelet.conf",
                .node = "n1",
                .api_http = 200,
                .node_ready = true,
                .metadata_wanted = true,
                .metadata_polled = true,
                .look = NOTICE_POLL_NONE,
                .bus = true,
                .limits_known = true,
                .limits = { 600 * S, 1800 * S, true },
                .shutdown_drain = true,
                .shutdown_max_usec = 600 * S,
                .inhibited = true,
                .unit_state = "active",
                .after_kubelet = true,
                .scope_dropins = true,
                .kubelet = { .healthz_http = 200, .configz_http = 403 },
        };
}

static const CheckRow *find(const CheckTable *t, const char *what) {
        for (size_t i = 0; i < t->n_rows; i++)
                if (streq(t->rows[i].what, what))
                        return &t->rows[i];
        return NULL;
}

/* fix: a part of what is said to do; NULL: nothing. */
static void assert_row(const CheckFacts *f, const char *title, const char *what, CheckLevel level,
                       const char *fix) {
        const CheckRow *row;
        CheckTable t;

        print_message("%s\n", title);
        assert_return_code(check_judge(f, &t), 0);
        row = find(&t, what);
        if (!row)
                fail_msg("%s: expected a row '%s', there is none", title, what);
        if (row->level != level)
                fail_msg("%s: expected level %d, got %d: %s", title, (int) level, (int) row->level,
                         row->found);
        if (fix && (!row->fix || !strstr(row->fix, fix)))
                fail_msg("%s: expected a fix with '%s', got '%s'", title, fix, strempty(row->fix));
        if (!fix)
                assert_null(row->fix);
        assert_int_equal(check_worst(&t), level);
        check_table_done(&t);
}

static void assert_no_row(const CheckFacts *f, const char *title, const char *what) {
        CheckTable t;

        print_message("%s\n", title);
        assert_return_code(check_judge(f, &t), 0);
        assert_null(find(&t, what));
        check_table_done(&t);
}

TEST_CASE(test_notify) {
        CheckFacts f = good();
        CheckTable t;

        assert_return_code(check_judge(&f, &t), 0);
        assert_null(find(&t, "notify")); /* nobody is to be told */
        check_table_done(&t);
        f.notify_wanted = true;
        assert_row(&f, "the URL can be read", "notify", CHECK_OK, NULL);
        f.notify_error = "[Notify] UrlFile=/x cannot be used: No such file or directory";
        assert_row(&f, "it cannot", "notify", CHECK_WARN, "drained all the same");
}

/* One line for each, and the fix under what needs one. */
TEST_CASE(test_print) {
        CheckTable t = { .rows = { { CHECK_OK, "credential", (char *) "is there", NULL },
                                   { CHECK_FAIL, "api", (char *) "is away", (char *) "start it" } },
                         .n_rows = 2 };
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        assert_non_null(f);
        check_print(&t, f);
        assert_int_equal(fclose(f), 0);
        assert_string_equal(text, "OK    credential  is there\n"
                                  "FAIL  api         is away\n"
                                  "                  -> start it\n");
        free(text);
}

TEST_CASE(test_all_is_well) {
        CheckFacts f = good();
        CheckTable t;

        assert_return_code(check_judge(&f, &t), 0);
        assert_int_equal(t.n_rows, 9);
        assert_int_equal(check_worst(&t), CHECK_OK);
        for (size_t i = 0; i < t.n_rows; i++)
                assert_null(t.rows[i].fix);
        check_table_done(&t);
        assert_int_equal(check_exit_status(CHECK_OK), 0);
        assert_int_equal(check_exit_status(CHECK_WARN), 3);
        assert_int_equal(check_exit_status(CHECK_FAIL), 4);
}

TEST_CASE(test_risk) {
        CheckFacts f = good();

        f.kube_risk = "everybody can read it";
        f.kube_remedy = "Mend the kubeconfig.";
        assert_row(&f, "a credential that is at risk", "risk", CHECK_WARN, "Mend the kubeconfig.");
}

TEST_CASE(test_cluster) {
        static const struct {
                const char *what;
                int http;
                bool ready;
                CheckLevel level;
                const char *fix;
        } rows[] = {
                { "Ready", 200, true, CHECK_OK, NULL },
                { "not Ready", 200, false, CHECK_WARN, "kubectl describe node" },
                { "no Node", 404, false, CHECK_WARN, "NodeName=" },
                { "not let in", 401, false, CHECK_FAIL, "system:node:NAME" },
                { "not allowed", 403, false, CHECK_FAIL, "system:node:NAME" },
                { "no answer", 0, false, CHECK_FAIL, "load balancer" },
                { "a server in trouble", 503, false, CHECK_FAIL, "its log" },
        };
        CheckFacts f;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                f = good();
                f.api_http = rows[i].http;
                f.node_ready = rows[i].ready;
                assert_row(&f, rows[i].what, "API server", rows[i].level, rows[i].fix);
        }
        f = good();
        f.kubeconfig = NULL;
        assert_row(&f, "no credential", "credential", CHECK_FAIL, "Kubeconfig=");
        f = good();
        f.kube_error = "no such key";
        assert_row(&f, "a bad credential", "credential", CHECK_FAIL, "NodeName=");
}

TEST_CASE(test_metadata) {
        CheckFacts f = good();

        f.look = NOTICE_POLL_UNKNOWN;
        f.metadata_why = "HTTP 403";
        assert_row(&f, "unknown", "metadata", CHECK_WARN, "Source=none");
        f.metadata_polled = false;
        assert_row(&f, "silent", "metadata", CHECK_WARN, "hop limit");
        f.metadata_wanted = false;
        assert_row(&f, "not wanted", "metadata", CHECK_OK, NULL);
        f = good();
        f.machine = "i-0fedcba9876543210";
        f.provider_id = "aws:///us-east-1a/i-0123456789abcdef0";
        f.identity = NOTICE_IDENTITY_OTHER;
        assert_row(&f, "another machine's", "metadata", CHECK_FAIL, "kubectl delete node");
        f.look = NOTICE_POLL_UNKNOWN;
        assert_row(&f, "another machine's, of which one feed fails", "metadata", CHECK_FAIL, "Endpoint=");
        f.look = NOTICE_POLL_NONE;
        f.identity = NOTICE_IDENTITY_FIRMWARE;
        assert_row(&f, "its own, and the providerID is another's", "metadata", CHECK_WARN, "kubectl delete node");
        f.identity = NOTICE_IDENTITY_SAME;
        assert_row(&f, "its own", "metadata", CHECK_OK, NULL);
        f = good();
        f.look = NOTICE_POLL_NOTICE;
        assert_row(&f, "a notice stands", "metadata", CHECK_OK, NULL);
}

/* What the kubelet says of itself; and logind of it, where it does not let us read that. */
TEST_CASE(test_kubelet) {
        static const struct {
                const char *what;
                int healthz, configz;
                KubeletShutdown shutdown;
                bool inhibits, bus;
                const char *row, *found, *fix;
                CheckLevel level;
        } rows[] = {
                { "healthy", 200, 403, KUBELET_SHUTDOWN_UNKNOWN, false, true, "healthz", "is healthy", NULL,
                  CHECK_OK },
                { "dead", 0, 0, KUBELET_SHUTDOWN_UNKNOWN, false, true, "healthz", "127.0.0.1:10248: gone",
                  "systemctl status kubelet", CHECK_WARN },
                { "ill", 500, 403, KUBELET_SHUTDOWN_UNKNOWN, false, true, "healthz", "HTTP 500: gone",
                  "the kubelet's log", CHECK_WARN },
                { "not for us, off", 200, 403, KUBELET_SHUTDOWN_UNKNOWN, false, true, "kubelet",
                  "off (by logind's list of inhibitors; its /configz is not for this credential, HTTP 403)",
                  NULL, CHECK_OK },
                { "not for us, on", 200, 401, KUBELET_SHUTDOWN_UNKNOWN, true, true, "kubelet",
                  "on (by logind's list of inhibitors; its /configz is not for this credential, HTTP 401)",
                  "shutdownGracePeriod: 0s", CHECK_WARN },
                { "not asked", 200, -1, KUBELET_SHUTDOWN_UNKNOWN, false, true, "kubelet",
                  "off (by logind's list of inhibitors)", NULL, CHECK_OK },
                { "strange", 200, 500, KUBELET_SHUTDOWN_UNKNOWN, false, true, "kubelet", "says HTTP 500",
                  NULL, CHECK_OK },
                { "off", 200, 200, KUBELET_SHUTDOWN_OFF, false, true, "kubelet", "off (its /configz says)",
                  NULL, CHECK_OK },
                { "on, both", 200, 200, KUBELET_SHUTDOWN_ON, true, true, "kubelet",
                  "both act in the same window", "shutdownGracePeriod: 0s", CHECK_WARN },
                { "on, and logind too short for it", 200, 200, KUBELET_SHUTDOWN_ON, false, true, "kubelet",
                  "on (its /configz says)", "shutdownGracePeriod: 0s", CHECK_WARN },
                { "off, and not restarted since", 200, 200, KUBELET_SHUTDOWN_OFF, true, true, "kubelet",
                  "logind that it inhibits", "Restart the kubelet", CHECK_WARN },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                CheckFacts f = good();
                CheckTable t;

                f.kubelet = (KubeletFacts){ .healthz_http = rows[i].healthz,
                                            .healthz_text = (char *) "gone",
                                            .configz_http = rows[i].configz,
                                            .shutdown = rows[i].shutdown };
                f.kubelet_inhibits = rows[i].inhibits;
                assert_row(&f, rows[i].what, rows[i].row, rows[i].level, rows[i].fix);
                assert_return_code(check_judge(&f, &t), 0);
                if (!strstr(find(&t, rows[i].row)->found, rows[i].found))
                        fail_msg("%s: found %s", rows[i].what, find(&t, rows[i].row)->found);
                check_table_done(&t);
        }
}

/* Whether the kubelet says which pods run: said, and never a warning. */
TEST_CASE(test_running_pods) {
        static const struct {
                KubeletPodsState state;
                const char *text, *found;
        } rows[] = {
                { KUBELET_PODS_READABLE, NULL, "can be read, and says" },
                { KUBELET_PODS_REFUSED, "HTTP 403: Forbidden", "cannot be read (HTTP 403: Forbidden); it is optional" },
                { KUBELET_PODS_FAILING, "Connection refused", "cannot be read (Connection refused)" },
        };
        CheckFacts f = good();
        CheckTable t;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                f.kubelet.pods = rows[i].state;
                f.kubelet.pods_text = (char *) rows[i].text;
                assert_row(&f, rows[i].found, "pods", CHECK_OK, NULL);
                assert_return_code(check_judge(&f, &t), 0);
                assert_non_null(strstr(find(&t, "pods")->found, rows[i].found));
                check_table_done(&t);
        }
        f.shutdown_drain = false;
        assert_no_row(&f, "shutdowns do not drain", "pods");
        f = good();
        assert_no_row(&f, "not asked", "pods");
}

TEST_CASE(test_configz) {
        static const struct {
                const char *body;
                KubeletShutdown expected;
        } rows[] = {
                { "{\"kubeletconfig\":{\"shutdownGracePeriod\":\"0s\"}}", KUBELET_SHUTDOWN_OFF },
                { "{\"kubeletconfig\":{}}", KUBELET_SHUTDOWN_OFF },
                { "{\"kubeletconfig\":{\"shutdownGracePeriod\":\"30s\"}}", KUBELET_SHUTDOWN_ON },
                { "{\"kubeletconfig\":{\"shutdownGracePeriod\":\"1m0s\",\"shutdownGracePeriodCriticalPods\":"
                  "\"10s\"}}",
                  KUBELET_SHUTDOWN_ON },
                { "{\"kubeletconfig\":{\"shutdownGracePeriod\":\"0s\",\"shutdownGracePeriodByPodPriority\":"
                  "[{\"priority\":0,\"shutdownGracePeriodSeconds\":10}]}}",
                  KUBELET_SHUTDOWN_ON },
                { "{\"kubeletconfig\":{\"shutdownGracePeriodByPodPriority\":"
                  "[{\"priority\":0,\"shutdownGracePeriodSeconds\":0}]}}",
                  KUBELET_SHUTDOWN_OFF },
                { "{\"kubeletconfig\":7}", KUBELET_SHUTDOWN_UNKNOWN },
                { "{}", KUBELET_SHUTDOWN_UNKNOWN },
                { "Forbidden", KUBELET_SHUTDOWN_UNKNOWN },
                { "", KUBELET_SHUTDOWN_UNKNOWN },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                if (kubelet_shutdown_in(rows[i].body, strlen(rows[i].body)) != rows[i].expected)
                        fail_msg("%s", rows[i].body);
}

/* -- asking it ---------------------------------------------------------------------------------- */

typedef struct Kubelet {
        unsigned status;
        const char *body;
} Kubelet;

static void on_kubelet_asked(HttpExchange *x, void *userdata) {
        Kubelet *k = userdata;

        http_reply_text(x, k->status, "text/plain", k->body);
}

static void on_told(void *userdata) {
        ++*(unsigned *) userdata;
}

TEST_CASE(test_asking) {
        static const struct {
                const char *what;
                Kubelet healthz, configz; /* status 0: nobody is there */
                KubeletFacts expected;
        } rows[] = {
                { "lets us in",
                  { 200, "ok" },
                  { 200, "{\"kubeletconfig\":{\"shutdownGracePeriod\":\"5s\"}}" },
                  { 200, (char *) "ok", 200, NULL, KUBELET_SHUTDOWN_ON, KUBELET_PODS_FAILING, NULL } },
                { "shows its pods",
                  { 200, "ok" },
                  { 200, "{\"kind\":\"PodList\",\"items\":[]}" },
                  { 200, (char *) "ok", 200, NULL, KUBELET_SHUTDOWN_UNKNOWN, KUBELET_PODS_READABLE, NULL } },
                { "does not",
                  { 500, "[-]syncloop failed\nhealthz check failed" },
                  { 403, "Forbidden" },
                  { 500, (char *) "[-]syncloop failed", 403, (char *) "Forbidden",
                    KUBELET_SHUTDOWN_UNKNOWN, KUBELET_PODS_REFUSED, NULL } },
                { "is not there", { 0 }, { 0 }, { 0, NULL, 0, NULL, KUBELET_SHUTDOWN_UNKNOWN, KUBELET_PODS_FAILING, NULL } },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();
                Kubelet healthz = rows[i].healthz, configz = rows[i].configz;
                CheckKubelet *k;
                KubeletFacts f;
                unsigned n = 0;

                print_message("%s\n", rows[i].what);
                agent_rig_start(r);
                if (healthz.status > 0) {
                        assert_return_code(http_inproc_route(r->transport, "http://127.0.0.1:10248",
                                                             on_kubelet_asked, &healthz),
                                           0);
                        assert_return_code(http_inproc_route(r->transport, "https://127.0.0.1:10250",
                                                             on_kubelet_asked, &configz),
                                           0);
                }
                assert_return_code(check_kubelet_new(&r->env, NULL, RIG_NODE, &f, on_told, &n, &k), 0);
                (void) agent_rig_run(r, 6 * S);
                assert_int_equal(n, 1);
                assert_int_equal(f.configz_http, -1); /* without a credential */
                assert_int_equal(f.pods, KUBELET_PODS_UNKNOWN);
                check_kubelet_free(k);
                kubelet_facts_done(&f);
                assert_return_code(check_kubelet_new(&r->env, r->auth, RIG_NODE, &f, on_told, &n, &k), 0);
                (void) agent_rig_run(r, 6 * S);
                assert_int_equal(n, 2);
                assert_int_equal(f.healthz_http, rows[i].expected.healthz_http);
                assert_int_equal(f.configz_http, rows[i].expected.configz_http);
                assert_int_equal(f.shutdown, rows[i].expected.shutdown);
                assert_int_equal(f.pods, rows[i].expected.pods);
                assert_non_null(f.pods_text);
                if (rows[i].expected.healthz_text)
                        assert_string_equal(f.healthz_text, rows[i].expected.healthz_text);
                else
                        assert_true(strlen(f.healthz_text) > 0);
                check_kubelet_free(k);
                kubelet_facts_done(&f);
        }
}

TEST_CASE(test_machine) {
        CheckFacts f = good();

        f.bus = false;
        f.limits_known = false;
        assert_row(&f, "no bus", "shutdown", CHECK_FAIL, "dbus");
        f = good();
        f.limits.inhibit_delay_usec = 0;
        assert_row(&f, "no logind", "shutdown", CHECK_WARN, "systemd-logind");
        f = good();
        f.limits.job_timeout_usec = 200 * S;
        f.limits.inhibit_delay_usec = 5 * S;
        assert_row(&f, "too short, degrade", "shutdown", CHECK_WARN, "MaxSec=");
        f.refuse = true;
        assert_row(&f, "too short, refuse", "shutdown", CHECK_FAIL, "MaxSec=");
        f = good();
        f.kubelet_inhibits = true;
        assert_row(&f, "the kubelet's own", "kubelet", CHECK_WARN, "shutdownGracePeriod: 0s");
        f = good();
        f.unit_state = "failed";
        assert_row(&f, "the unit failed", "unit", CHECK_WARN, "journalctl -u vesper-agent");
        f.in_pod = true;
        f.scope_dropins = f.after_kubelet = false;
        assert_row(&f, "in a pod there is no unit", "unit", CHECK_OK, NULL);
        assert_row(&f, "in a pod", "inhibitor", CHECK_OK, NULL);
        assert_no_row(&f, "whose scopes it cannot see", "containers");
        f.inhibited = false;
        assert_row(&f, "in a pod, no inhibitor", "inhibitor", CHECK_WARN, "agent's pod");
        f.unit_state = "active";
        assert_row(&f, "pod and unit", "unit", CHECK_WARN, "Keep one of them");
        f = good();
        f.after_kubelet = false;
        assert_row(&f, "stops too late", "unit", CHECK_WARN, "After=");
        f = good();
        f.inhibited = false;
        assert_row(&f, "no inhibitor", "inhibitor", CHECK_WARN, "journalctl");
        f = good();
        f.scope_dropins = false;
        assert_row(&f, "scopes", "containers", CHECK_WARN, "daemon-reload");
        f.shutdown_drain = false;
        f.inhibited = false;
        f.kubelet_inhibits = true;
        f.bus = false;
        assert_row(&f, "shutdowns are not ours", "shutdown", CHECK_OK, NULL);
}

/* The unit names all of them on every machine; one that is not active stops before nobody. */
TEST_CASE(test_after_kubelet) {
        static const struct {
                const char *what, *after[4];
                int active; /* CheckUnit; -1: none */
                bool expected;
        } rows[] = {
                { "kubeadm", { "dbus.service", "kubelet.service", "k3s.service" }, CHECK_UNIT_KUBELET, true },
                { "k3s", { "kubelet.service", "k3s.service" }, CHECK_UNIT_K3S, true },
                { "none runs", { "kubelet.service", "k3s.service" }, -1, false },
                { "k0s, as shipped", { "kubelet.service", "k3s.service" }, CHECK_UNIT_K0S_WORKER, false },
                { "k0s, by a drop-in", { "kubelet.service", "k0sworker.service" }, CHECK_UNIT_K0S_WORKER, true },
                { "nothing known", { NULL }, CHECK_UNIT_KUBELET, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                bool active[_CHECK_UNIT_MAX] = { false };

                print_message("%s\n", rows[i].what);
                if (rows[i].active >= 0)
                        active[rows[i].active] = true;
                assert_int_equal(check_after_kubelet((char *const *) rows[i].after, active), rows[i].expected);
        }
}

/* -- what is asked of PID 1 and logind ------------------------------------------------------------------- */

/* Answers calls from a table, as a bus does: later. What is not in it is refused. */
typedef struct TableBus {
        Bus bus;
        Loop *loop;
} TableBus;

typedef struct TableSlot {
        BusSlot slot;
        const char *values;
        bus_reply_t fn;
        void *userdata;
        Timer *timer;
} TableSlot;

static const struct {
        const char *path, *what, *values;
} bus_table[] = {
        { "/org/freedesktop/systemd1/unit/vesper_2dagent_2eservice", "ActiveState", "active" },
        { "/org/freedesktop/systemd1/unit/vesper_2dagent_2eservice", "After", "basic.target k3s.service" },
        { "/org/freedesktop/systemd1/unit/k3s_2eservice", "ActiveState", "active" },
        { "/org/freedesktop/login1", "ListInhibitors", "shutdown vesper-agent draining delay 0 1" },
        { "/org/freedesktop/login1", "InhibitDelayMaxUSec", "5000000" },
};

static void on_table_answer(Timer *t, void *userdata) {
        TableSlot *slot = userdata;
        BusReply reply = { .error = -ENOENT, .error_name = "", .fd = -EBADF };
        char **values = NULL;

        if (slot->values) {
                assert_return_code(strv_split(slot->values, " ", &values), 0);
                reply.error = 0;
                reply.values = values;
        }
        slot->fn(&reply, slot->userdata); /* may free the slot */
        strv_free(values);
}

static int table_call(Bus *b, const BusCall *call, bus_reply_t fn, void *userdata, BusSlot **ret) {
        TableBus *t = CONTAINER_OF(b, TableBus, bus);
        const char *what = streq(call->member, "Get") ? call->args[1] : call->member;
        TableSlot *slot = test_calloc(1, sizeof(*slot));

        *slot = (TableSlot){ .slot.bus = b, .fn = fn, .userdata = userdata };
        for (size_t i = 0; i < ELEMENTSOF(bus_table); i++)
                if (streq(bus_table[i].path, call->path) && streq(bus_table[i].what, what))
                        slot->values = bus_table[i].values;
        assert_return_code(timer_new(t->loop, "table-bus", on_table_answer, slot, &slot->timer), 0);
        timer_arm_in(slot->timer, 0);
        *ret = &slot->slot;
        return 0;
}

static int table_match(Bus *b, const char *service, const char *path, const char *interface, const char *signal,
                       bus_value_t fn, void *userdata, BusSlot **ret) {
        return -ENOTCONN;
}

static void table_slot_free(BusSlot *s) {
        TableSlot *slot = CONTAINER_OF(s, TableSlot, slot);

        timer_free(slot->timer);
        test_free(slot);
}

static void assert_found(const CheckTable *t, const char *what, const char *found) {
        for (size_t i = 0; i < t->n_rows; i++)
                if (streq(t->rows[i].what, what)) {
                        assert_string_equal(t->rows[i].found, found);
                        return;
                }
        fail_msg("there is no row '%s'", what);
}

TEST_CASE(test_findings_of_notices) {
        CheckFacts f = good();

        f.api_http = 0;
        f.api_no_route = true;
        assert_row(&f, "no route", "API server", CHECK_FAIL, "ip route");
        f = good();
        f.in_capacity_block = true;
        assert_row(&f, "a block without a tag", "capacity", CHECK_WARN, "InstanceMetadataTags=enabled");
        f.knows_block_end = true;
        assert_row(&f, "a block with one", "capacity", CHECK_OK, NULL);
        f = good();
        f.windows = "maintenance: open now, the next from 2026-11-26T03:00:00Z for 2h";
        assert_row(&f, "a window", "windows", CHECK_OK, NULL);
}

static void on_metadata(HttpExchange *x, void *userdata) {
        const char *end = userdata;

        if (x->method == HTTP_PUT)
                http_reply_text(x, 200, "text/plain", "token");
        else if (streq(x->path, "/latest/meta-data/instance-id"))
                http_reply_text(x, 200, "text/plain", "i-0123456789abcdef0");
        else if (streq(x->path, "/latest/meta-data/instance-life-cycle"))
                http_reply_text(x, 200, "text/plain", "capacity-block");
        else if (streq(x->path, "/latest/meta-data/tags/instance/vesper.sh:capacity-block-end") && end)
                http_reply_text(x, 200, "text/plain", end);
        else
                http_reply_text(x, 404, "text/plain", "");
}

/* The Capacity Block of the instance, and the windows of the configuration, as they are asked for. */
TEST_CASE(test_run_on_ec2) {
        static const char *const ends[] = { NULL, "soon", "2027-01-21T11:30:00Z" };

        for (size_t i = 0; i < ELEMENTSOF(ends); i++) {
                AgentConfig config = { .node_name = (char *) "n1",
                                       .metadata_source = METADATA_SOURCE_EC2,
                                       .poll_usec = 100 * USEC_PER_MSEC,
                                       .policy[NOTICE_MAINTENANCE] = (char *) "window:0 3 21 1 */2h",
                                       .policy_reboot = (char *) (i == 0 ? "window:0 4 22 2 */1h" : "early") };
                Env env = { .boot_id = "boot-1" };
                const CheckRow *row;
                CheckTable t;

                assert_return_code(loop_new(&env.loop), 0);
                assert_return_code(log_new(LOG_TARGET_NULL, LOG_LEVEL_ERROR, "test", &env.log), 0);
                assert_return_code(random_new(1, &env.random), 0);
                assert_return_code(http_inproc_new(env.loop, NULL, NULL, &env.transport), 0);
                assert_return_code(http_inproc_route(env.transport, AGENT_METADATA_ENDPOINT, on_metadata, (void *) (uintptr_t) ends[i]), 0);

                assert_return_code(check_run(&env, &config, NULL, NULL, NULL, "no kubeconfig", &t), 0);
                row = find(&t, "capacity");
                assert_non_null(row);
                assert_int_equal(row->level, i == 2 ? CHECK_OK : CHECK_WARN);
                row = find(&t, "windows");
                assert_non_null(row);
                assert_non_null(strstr(row->found, "maintenance: "));
                assert_non_null(strstr(row->found, "-01-21T03:00:00Z for 2h"));
                assert_int_equal(strstr(row->found, "; reboot: ") && strstr(row->found, "-02-22T04:00:00Z for 1h"),
                                 i == 0);
                assert_non_null(strstr(find(&t, "metadata")->found, "answers"));
                check_table_done(&t);
                http_transport_free(env.transport);
                random_free(env.random);
                log_free(env.log);
                loop_free(env.loop);
        }
}

#define API "http://api"

static void on_own_node(HttpExchange *x, void *userdata) {
        const char *id = userdata;
        _cleanup_free_ char *text = strf("{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n1\",\"uid\":\"u\","
                                         "\"resourceVersion\":\"7\"},\"spec\":{\"providerID\":\"aws:///us-east-1a/%s\"}}",
                                         id);

        http_reply_text(x, 200, "application/json", text);
}

/* Whose machine metadata speaks for, by the Node. */
TEST_CASE(test_run_identity) {
        static const struct {
                const char *id, *firmware, *found;
                CheckLevel level;
        } rows[] = {
                { "i-0123456789abcdef0", "", "answers", CHECK_OK },
                { "i-0fedcba9876543210", "", "speaks for another machine: for i-0123456789abcdef0, and the providerID of Node n1 is aws:///us-east-1a/i-0fedcba9876543210",
                  CHECK_FAIL },
                { "i-0fedcba9876543210", "i-0123456789abcdef0", "speaks for i-0123456789abcdef0, as the firmware does", CHECK_WARN },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                AgentConfig config = { .node_name = (char *) "n1", .metadata_source = METADATA_SOURCE_EC2, .poll_usec = 100 * USEC_PER_MSEC };
                _cleanup_(kubeconfig_freep) KubeConfig *kubeconfig = NULL;
                _cleanup_free_ char *message = NULL;
                Env env = { .boot_id = "boot-1", .version = "0" };
                KubeClient *client;
                KubeAuth *auth;
                const CheckRow *row;
                CheckTable t;

                (void) snprintf(config.detected_instance, sizeof(config.detected_instance), "%s", rows[i].firmware);
                assert_return_code(loop_new(&env.loop), 0);
                assert_return_code(log_new(LOG_TARGET_NULL, LOG_LEVEL_ERROR, "test", &env.log), 0);
                assert_return_code(random_new(1, &env.random), 0);
                assert_return_code(http_inproc_new(env.loop, NULL, NULL, &env.transport), 0);
                assert_return_code(http_inproc_route(env.transport, AGENT_METADATA_ENDPOINT, on_metadata, NULL), 0);
                assert_return_code(http_inproc_route(env.transport, API, on_own_node, (void *) (uintptr_t) rows[i].id), 0);
                assert_return_code(kubeconfig_plain(API, &kubeconfig), 0);
                assert_return_code(kube_auth_new(env.loop, NULL, NULL, kubeconfig, NULL, NULL, &auth, &message), 0);
                assert_return_code(kube_client_new(&env, auth, API, "test", &client), 0);

                assert_return_code(check_run(&env, &config, NULL, client, auth, NULL, &t), 0);
                row = find(&t, "metadata");
                assert_non_null(row);
                print_message("%s\n", row->found);
                assert_int_equal(row->level, rows[i].level);
                assert_non_null(strstr(row->found, rows[i].found));
                check_table_done(&t);
                kube_client_free(client);
                kube_auth_free(auth);
                http_transport_free(env.transport);
                random_free(env.random);
                log_free(env.log);
                loop_free(env.loop);
        }
}

/* Nothing but a bus: the unit, what it is ordered after here, and its inhibitor are asked for by it. */
TEST_CASE(test_run) {
        static const BusOps ops = { .call = table_call, .match_signal = table_match, .slot_free = table_slot_free };
        AgentConfig config = { .node_name = (char *) "n1",
                               .metadata_source = METADATA_SOURCE_NONE,
                               .shutdown_drain = true,
                               .shutdown_max_usec = USEC_PER_MINUTE,
                               .notify.url_file = (char *) "/nowhere/url" };
        TableBus bus = { .bus.ops = &ops };
        Env env = { .bus = &bus.bus };
        CheckTable t;

        assert_return_code(loop_new(&bus.loop), 0);
        env.loop = bus.loop;
        assert_return_code(log_new(LOG_TARGET_NULL, LOG_LEVEL_ERROR, "test", &env.log), 0);
        assert_return_code(random_new(1, &env.random), 0);
        assert_return_code(http_inproc_new(env.loop, NULL, NULL, &env.transport), 0);

        assert_return_code(check_run(&env, &config, NULL, NULL, NULL, "no kubeconfig", &t), 0);
        assert_found(&t, "unit", "vesper-agent.service is active, and stops before the kubelet");
        assert_found(&t, "inhibitor", "held by the agent");
        assert_found(&t, "notify", "[Notify] UrlFile=/nowhere/url cannot be used: No such file or directory");
        check_table_done(&t);

        http_transport_free(env.transport);
        random_free(env.random);
        log_free(env.log);
        loop_free(env.loop);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_print),    cmocka_unit_test(test_all_is_well),
                cmocka_unit_test(test_cluster),  cmocka_unit_test(test_risk),
                cmocka_unit_test(test_metadata), cmocka_unit_test(test_kubelet),
                cmocka_unit_test(test_running_pods), cmocka_unit_test(test_configz),  cmocka_unit_test(test_asking),
                cmocka_unit_test(test_machine),  cmocka_unit_test(test_after_kubelet),
                cmocka_unit_test(test_run),
                cmocka_unit_test(test_run_identity),
                cmocka_unit_test(test_notify),
                cmocka_unit_test(test_findings_of_notices),
                cmocka_unit_test(test_run_on_ec2),
        };

        return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
