/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator.h"

#include <inttypes.h>
#include <limits.h>
#include <unistd.h>

#include "cluster-view.h"
#include "coordinator-metrics.h"
#include "event-recorder.h"
#include "http-face.h"
#include "leader-elector.h"
#include "file-util.h"
#include "leading.h"
#include "log-catalog.h"
#include "log.h"
#include "node-webhook.h"
#include "notify-sender.h"
#include "string-util.h"
#include "webhook-server.h"

#define BEGIN_AGAIN_USEC USEC_PER_SEC
#define CLOCK_CHECK_USEC (10 * USEC_PER_SEC)
/* Difference of two clocks from which on people are told. */
#define CLOCK_OFF_USEC ((int64_t) (30 * USEC_PER_SEC))
#define KEEP_WARM_USEC (45 * USEC_PER_SEC) /* below the idle time-out of what lies in between */
/* An Event's reportingInstance, which is the identity, has at most 128 characters. */
#define IDENTITY_NAME_MAX (128 - UUID_MAX)

/* Messages to the receiver of [Notify] that wait: hundreds of nodes may be removed at once, each with half a dozen. */
#define NOTIFY_QUEUE_MAX 1024u
#define NOTIFY_QUEUE_MAX_BYTES (2u * 1024 * 1024)

struct Coordinator {
        Env *env;
        const CoordinatorConfig *config;
        KubeClient *client;
        const CloudRegistry *cloud;
        struct SqsClient *queue; /* NULL: none */
        char *identity;
        Metrics *metrics;
        EventRecorder *recorder;
        NotifySender *notify;
        LeaderElector *elector;
        ClusterView *view; /* NULL before the start */
        BudgetLedger *ledger; /* the same */
        NodeWebhook *webhook; /* the same */
        Leading *leading;  /* while we lead and the view is complete */
        LeadingPace pace;
        Timer *begin_timer;
        Timer *clock_timer;
        bool clock_is_off; /* people were told */
        unsigned clock_jumps; /* of the API server's clock, that were heeded */
        HttpServer *metrics_server, *health_server;
        WebhookServer *webhook_server;
        bool elected, stopping;
        void (*stopped)(void *userdata);
        void *stopped_userdata;
};

static void tell(Coordinator *c, const char *text) {
        if (c->env->notify)
                c->env->notify(text, c->env->notify_userdata);
}

/* -- time ----------------------------------------------------------------------------------------------- */

static void on_clock(Timer *t, void *userdata) {
        Coordinator *c = userdata;
        int64_t ahead = loop_machine_clock_ahead(c->env->loop);
        int64_t limit = c->clock_is_off ? CLOCK_OFF_USEC / 2 : CLOCK_OFF_USEC;
        bool is_off = ahead > limit || ahead < -limit;

        timer_arm_in(t, CLOCK_CHECK_USEC);
        if (loop_server_clock_jumps(c->env->loop) != c->clock_jumps) {
                c->clock_jumps = loop_server_clock_jumps(c->env->loop);
                coordinator_reconfigured(c); /* whatever waits for a time of that clock */
        }
        if (is_off == c->clock_is_off)
                return;
        c->clock_is_off = is_off;
        if (is_off)
                log_warning(c->env->log,
                            "The clock of this machine is %" PRIi64 " s %s the API server's. The coordinator keeps deadlines of removals by the API server's clock. Correct the clock of the machine (NTP)",
                            (ahead > 0 ? ahead : -ahead) / (int64_t) USEC_PER_SEC, ahead > 0 ? "ahead of" : "behind");
        else
                log_info(c->env->log, "The clocks of this machine and of the API server agree again");
}

/* -- leading -------------------------------------------------------------------------------------------- */

static void begin_leading(Coordinator *c) {
        LeadingOptions o = {
                .env = c->env,
                .config = c->config,
                .client = c->client,
                .view = c->view,
                .cloud = c->cloud,
                .queue = c->queue,
                .ledger = c->ledger,
                .recorder = c->recorder,
                .notify = c->notify,
                .metrics = c->metrics,
                .guard = leader_elector_guard(c->elector),
                .pace = &c->pace,
        };
        int r;

        if (c->leading || !c->elected || !coordinator_is_synced(c))
                return;
        r = leading_new(&o, &c->leading);
        if (r < 0) {
                log_error_errno(c->env->log, r, "Failed to start leading, retrying: %m");
                timer_arm_in(c->begin_timer, BEGIN_AGAIN_USEC);
                return;
        }
        if (c->webhook_server)
                webhook_server_lead(c->webhook_server, &o.guard);
        tell(c, "STATUS=Leading");
}

static void on_begin_again(Timer *t, void *userdata) {
        begin_leading(userdata);
}

static void on_started(void *userdata) {
        Coordinator *c = userdata;

        log_event(c->env->log, LOG_LEVEL_NOTICE, MESSAGE_LEASE_ACQUIRED,
                  LOG_FIELDS({ "IDENTITY", c->identity }), "Leading, as %s", c->identity);
        c->elected = true;
        metrics_set(c->metrics, METRIC_LEADER, 0, 1);
        if (c->view) /* the server answers: whatever waits out a backoff need not */
                cluster_view_kick(c->view);
        begin_leading(c);
}

static void end_leading(Coordinator *c) {
        c->elected = false;
        timer_disarm(c->begin_timer);
        c->leading = leading_free(c->leading);
        if (c->webhook_server)
                webhook_server_lead(c->webhook_server, NULL);
        metrics_set(c->metrics, METRIC_LEADER, 0, 0);
}

static void on_stopped(const char *why, void *userdata) {
        Coordinator *c = userdata;

        log_event(c->env->log, LOG_LEVEL_WARNING, MESSAGE_LEASE_LOST,
                  LOG_FIELDS({ "IDENTITY", c->identity }, { "REASON", why }),
                  "Not leading any more: %s. Removals under way are dropped; the next leader continues them",
                  why);
        end_leading(c);
        tell(c, "STATUS=Standing by");
}

static void on_observed(const char *holder, void *userdata) {
        Coordinator *c = userdata;

        log_info(c->env->log, "%s leads", holder);
}

/* -- the view ------------------------------------------------------------------------------------------- */

static void on_node_dirty(const char *node, void *userdata) {
        Coordinator *c = userdata;

        if (c->leading)
                leading_node_dirty(c->leading, node);
}

static void on_pool_dirty(const char *pool, void *userdata) {
        Coordinator *c = userdata;

        if (c->leading)
                leading_pool_dirty(c->leading, pool);
}

static void on_claim_dirty(const char *claim, void *userdata) {
        Coordinator *c = userdata;

        if (c->leading)
                leading_claim_dirty(c->leading, claim);
}

static void on_pod(const char *node, const KubePod *old, const KubePod *new, void *userdata) {
        Coordinator *c = userdata;

        if (c->leading)
                leading_on_pod(c->leading, node, old, new);
}

static void on_any_pod(const KubePod *old, const KubePod *new, void *userdata) {
        Coordinator *c = userdata;

        if (c->leading)
                leading_on_any_pod(c->leading, old, new);
}

static void on_pdb(const KubePdb *old, const KubePdb *new, void *userdata) {
        Coordinator *c = userdata;

        if (c->leading)
                leading_on_pdb(c->leading, old, new);
}

static void on_budget(const KubeNodeBudget *old, const KubeNodeBudget *new, void *userdata) {
        Coordinator *c = userdata;

        if (c->ledger)
                budget_ledger_see_budget(c->ledger, old, new);
        if (c->leading)
                leading_on_budget(c->leading, old, new);
}

static void on_pause(void *userdata) {
        Coordinator *c = userdata;

        if (c->leading)
                leading_on_pause(c->leading);
}

static void on_node(const KubeNode *old, const KubeNode *new, void *userdata) {
        Coordinator *c = userdata;

        if (c->ledger)
                budget_ledger_see_node(c->ledger, old, new);
        if (c->leading)
                leading_on_node(c->leading, old, new);
}

static void on_synced(void *userdata) {
        Coordinator *c = userdata;

        log_event(c->env->log, LOG_LEVEL_INFO, MESSAGE_READY, NULL, 0,
                  "The view of the cluster is complete: %zu nodes, %zu claims",
                  cluster_view_n_nodes(c->view), cluster_view_n_claims(c->view));
        metrics_set(c->metrics, METRIC_SYNCED, 0, 1);
        if (!c->elected)
                tell(c, "STATUS=Standing by");
        begin_leading(c);
}

static void on_health(bool connected, const char *why, void *userdata) {
        Coordinator *c = userdata;

        if (connected)
                log_event(c->env->log, LOG_LEVEL_NOTICE, MESSAGE_API_BACK, NULL, 0,
                          "Every watch of the API server is connected");
        else
                log_event(c->env->log, LOG_LEVEL_WARNING, MESSAGE_API_UNREACHABLE,
                          LOG_FIELDS({ "REASON", why }),
                          "A watch of the API server is disconnected, retrying: %s", why);
        if (c->leading)
                leading_view_health(c->leading, connected);
}

/* -- metrics and health over HTTP ----------------------------------------------------------------------- */

static void measure_provider(Coordinator *c, const CloudProvider *p) {
        size_t provider = cloud_provider_index(p);

        for (size_t i = 0; i < _CLOUD_OPERATION_MAX; i++)
                for (size_t k = 0; k < _CLOUD_OUTCOME_MAX; k++) {
                        size_t index =
                                metrics_index(c->metrics, METRIC_CLOUD_CALLS, (size_t[]){ provider, i, k });

                        metrics_add(c->metrics, METRIC_CLOUD_CALLS, index,
                                    p->answers[i][k] -
                                            (uint64_t) metrics_value(c->metrics, METRIC_CLOUD_CALLS, index));
                }
}

static void measure_budgets(Coordinator *c) {
        size_t n = 0, n_invalid = 0;
        const KubeNodeBudget *b;

        for (HashmapIterator it = {}; cluster_view_iterate_budgets(c->view, &it, &b); n++)
                n_invalid += b->object.invalid != NULL;
        metrics_set(c->metrics, METRIC_BUDGETS, 0, (double) n);
        metrics_set(c->metrics, METRIC_BUDGETS_INVALID, 0, (double) n_invalid);
        for (size_t i = 0; i < _BUDGET_ANSWER_MAX; i++)
                metrics_add(c->metrics, METRIC_BUDGET_ANSWERS, i,
                            budget_ledger_answers(c->ledger)[i] -
                                    (uint64_t) metrics_value(c->metrics, METRIC_BUDGET_ANSWERS, i));
}

static void measure_webhook(Coordinator *c) {
        for (size_t i = 0; i < _WEBHOOK_ANSWER_MAX; i++)
                metrics_add(c->metrics, METRIC_WEBHOOK_ANSWERS, i,
                            node_webhook_answers(c->webhook)[i] -
                                    (uint64_t) metrics_value(c->metrics, METRIC_WEBHOOK_ANSWERS, i));
        for (size_t i = 0; i < _HTTP_REFUSAL_MAX; i++)
                metrics_add(c->metrics, METRIC_WEBHOOK_REFUSED, i,
                            node_webhook_refusals(c->webhook)[i] -
                                    (uint64_t) metrics_value(c->metrics, METRIC_WEBHOOK_REFUSED, i));
}

static void measure_namespaces(Coordinator *c) {
        size_t n_pods, bytes;
        const char *name = cluster_view_costliest_namespace(c->view, &n_pods, &bytes);

        metrics_set(c->metrics, METRIC_CROWDED_NAMESPACES, 0, (double) cluster_view_n_crowded_namespaces(c->view));
        if (name && metrics_name(c->metrics, METRIC_COSTLIEST_NAMESPACE_BYTES, 0, name) >= 0)
                metrics_set(c->metrics, METRIC_COSTLIEST_NAMESPACE_BYTES, 0, (double) bytes);
}

static void measure(Coordinator *c) {
        for (size_t i = 0; i < _KUBE_VERB_MAX; i++) {
                uint64_t n = kube_client_requests(c->client, (KubeVerb) i);

                metrics_add(c->metrics, METRIC_API_REQUESTS, i,
                            n - (uint64_t) metrics_value(c->metrics, METRIC_API_REQUESTS, i));
        }
        metrics_set(c->metrics, METRIC_NODES, 0, (double) cluster_view_n_nodes(c->view));
        metrics_set(c->metrics, METRIC_CLAIMS, 0, (double) cluster_view_n_claims(c->view));
        measure_namespaces(c);
        measure_budgets(c);
        measure_webhook(c);
        for (size_t i = 0; i < c->cloud->n_providers; i++)
                measure_provider(c, c->cloud->providers[i]);
        if (c->leading)
                leading_measure(c->leading);
}

void coordinator_handle_health(HttpExchange *x, void *coordinator) {
        const Coordinator *c = coordinator;

        if (x->method != HTTP_GET && x->method != HTTP_HEAD)
                http_reply_text(x, 405, "text/plain", "method not allowed\n");
        else if (streq(x->path, "/healthz"))
                http_reply_text(x, 200, "text/plain", "ok\n");
        else if (streq(x->path, "/readyz") && coordinator_is_synced(c))
                http_reply_text(x, 200, "text/plain",
                                coordinator_is_leader(c) ? "leading\n" : "standing by\n");
        else if (streq(x->path, "/readyz"))
                http_reply_text(x, 503, "text/plain", "the view of the cluster is not complete yet\n");
        else
                http_reply_text(x, 404, "text/plain", "not found\n");
}

void coordinator_handle(HttpExchange *x, void *coordinator) {
        Coordinator *c = coordinator;
        _cleanup_strbuf_ StrBuf b = {};

        if (!streq(x->path, "/metrics") || (x->method != HTTP_GET && x->method != HTTP_HEAD)) {
                coordinator_handle_health(x, c);
                return;
        }
        measure(c);
        metrics_format(c->metrics, &b);
        http_reply_text(x, b.failed ? 500 : 200, "text/plain; version=0.0.4", strbuf_str(&b));
}

static int start_server(Coordinator *c, HttpFace face, const char *section, const char *listen,
                        http_handler_t handler, HttpServer **ret) {
        int r = isempty(listen) ? 0 : http_face_new(c->env->loop, face, listen, "*", handler, c, ret);

        return r < 0 ? log_error_errno(c->env->log, r,
                                       "Failed to listen on [%s] Listen=%s (it is ADDRESS:PORT): %m",
                                       section, listen)
                     : 0;
}

void coordinator_handle_webhook(HttpExchange *x, void *coordinator) {
        Coordinator *c = coordinator;

        node_webhook_handle(x, c->webhook);
}

static int start_servers(Coordinator *c) {
        int r;

        if (!isempty(c->config->webhook_listen)) {
                r = webhook_server_new(c->client, c->config, c->webhook, &c->webhook_server);
                if (r < 0)
                        return r;
        }
        r = start_server(c, HTTP_FACE_METRICS, "Metrics", c->config->metrics_listen, coordinator_handle,
                         &c->metrics_server);
        return r < 0 ? r
                     : start_server(c, HTTP_FACE_HEALTH, "Health", c->config->health_listen,
                                    coordinator_handle_health, &c->health_server);
}

/* -- the cloud ------------------------------------------------------------------------------------------ */

/* The machine of a Node that reports must be there. */
static const char *on_witness(const CloudProvider *p, size_t n, void *userdata) {
        const Coordinator *c = userdata;
        const KubeNode *node;
        size_t i = 0;

        for (HashmapIterator it = {}; cluster_view_iterate_nodes(c->view, &it, &node);)
                if (node->provider_id && kube_node_is_ready(node) && p->ops->owns(p, node->provider_id) && i++ == n)
                        return node->provider_id;
        return NULL;
}

static void name_witnesses(Coordinator *c, cloud_witness_t witness) {
        for (size_t i = 0; i < c->cloud->n_providers; i++)
                cloud_provider_set_witness(c->cloud->providers[i], witness, c);
}

/* -- life ----------------------------------------------------------------------------------------------- */

char *coordinator_identity(const CoordinatorConfig *config, Random *random) {
        char host[HOST_NAME_MAX + 1] = "localhost", uuid[UUID_MAX];
        const char *name = isempty(config->lease_identity) ? host : config->lease_identity;
        size_t n;

        (void) gethostname(host, sizeof(host) - 1);
        random_uuid(random, uuid);
        n = strnlen(name, IDENTITY_NAME_MAX);
        while (n > 0 && ((unsigned char) name[n] & 0xc0) == 0x80)
                n--; /* not in the middle of a character */
        return strf("%.*s_%s", (int) n, name, uuid);
}

static int make_sender(Coordinator *c) {
        const NotifySenderOptions o = {
                .env = c->env,
                .settings = &c->config->notify,
                .reporter = "vesper-coordinator",
                .metrics = c->metrics,
                .family = METRIC_NOTIFICATIONS,
                .max_messages = NOTIFY_QUEUE_MAX,
                .max_bytes = NOTIFY_QUEUE_MAX_BYTES,
        };

        return notify_sender_new(&o, &c->notify);
}

int coordinator_new(Env *env, const CoordinatorConfig *config, KubeClient *client, const CloudRegistry *cloud,
                    const char *identity, Coordinator **ret) {
        _cleanup_(coordinator_freep) Coordinator *c = NULL;
        LeaderConfig lease = { .ns = config->lease_namespace,
                               .name = config->lease_name,
                               .identity = identity };
        LeaderHandler handler = { .on_started = on_started,
                                  .on_stopped = on_stopped,
                                  .on_observed = on_observed };
        int r;

        assert(env && client && cloud && cloud->n_providers > 0 && identity && ret);
        c = new0(Coordinator, 1);
        if (!c)
                return -ENOMEM;
        c->env = env;
        c->config = config;
        c->client = client;
        c->cloud = cloud;
        leading_pace_init(&c->pace, config);
        handler.userdata = c;
        r = free_and_strdup(&c->identity, identity);
        if (r < 0)
                return r;
        r = coordinator_metrics_new(&c->metrics);
        if (r < 0)
                return r;
        r = timer_new(env->loop, "begin-leading", on_begin_again, c, &c->begin_timer);
        if (r >= 0)
                r = timer_new(env->loop, "clock", on_clock, c, &c->clock_timer);
        if (r < 0)
                return r;
        loop_follow_server_clock(env->loop);
        timer_arm_in(c->clock_timer, CLOCK_CHECK_USEC);
        r = event_recorder_new(client, "vesper-coordinator", identity, &c->recorder);
        if (r < 0)
                return r;
        r = make_sender(c);
        if (r < 0)
                return r;
        r = leader_elector_new(client, &lease, &handler, &c->elector);
        if (r < 0)
                return log_error_errno(env->log, r,
                                       "Failed to stand for election with Lease '%s/%s' as '%s': %m",
                                       strempty(lease.ns), strempty(lease.name), identity);

        *ret = TAKE_PTR(c);
        return 0;
}

void coordinator_set_queue(Coordinator *c, struct SqsClient *queue) {
        assert(c && !c->view);
        c->queue = queue;
}

Coordinator *coordinator_free(Coordinator *c) {
        if (!c)
                return NULL;
        http_server_free(c->metrics_server);
        http_server_free(c->health_server);
        webhook_server_free(c->webhook_server);
        leading_free(c->leading);
        leader_elector_free(c->elector);
        name_witnesses(c, NULL);
        node_webhook_free(c->webhook);
        budget_ledger_free(c->ledger);
        cluster_view_free(c->view);
        event_recorder_free(c->recorder);
        notify_sender_free(c->notify);
        timer_free(c->begin_timer);
        timer_free(c->clock_timer);
        metrics_free(c->metrics);
        free(c->identity);
        free(c);
        return NULL;
}

int coordinator_start(Coordinator *c) {
        ClusterViewHandler h = {
                .on_node_dirty = on_node_dirty,
                .on_pool_dirty = on_pool_dirty,
                .on_claim_dirty = on_claim_dirty,
                .on_pod = on_pod,
                .on_any_pod = on_any_pod,
                .on_pdb = on_pdb,
                .on_budget = on_budget,
                .on_node = on_node,
                .on_pause = on_pause,
                .on_synced = on_synced,
                .on_health = on_health,
                .userdata = c,
        };
        int r;

        assert(c && !c->view);
        r = cluster_view_new(c->client, c->config->lease_namespace, &h, &c->view);
        if (r < 0)
                return log_error_errno(c->env->log, r, "Failed to begin to watch the cluster: %m");
        r = budget_ledger_new(c->client, c->view, &c->ledger);
        if (r >= 0)
                r = node_webhook_new(c->client, c->view, c->ledger, c->config->lease_namespace,
                                     c->config->webhook_exempt, !isempty(c->config->webhook_client_ca),
                                     &c->webhook);
        if (r < 0)
                return log_error_errno(c->env->log, r, "Failed to open the ledger of disruption budgets: %m");
        name_witnesses(c, on_witness);
        r = start_servers(c);
        if (r < 0)
                return r;
        /* Renewals keep the urgent lane open; the first eviction finds its connection, too. */
        r = kube_client_keep_warm(c->client, HTTP_LANE_BULK, KEEP_WARM_USEC);
        if (r < 0)
                return log_error_errno(c->env->log, r,
                                       "Failed to keep a connection to the API server open: %m");
        leader_elector_start(c->elector);
        /* Said now: a boot must not wait for an API server. Over HTTP it is ready when the view is complete. */
        tell(c, "READY=1\nSTATUS=Waiting for the API server to tell all of the cluster");
        return 0;
}

void coordinator_read_files(Coordinator *c) {
        notify_sender_reload(c->notify);
}

void coordinator_reconfigured(Coordinator *c) {
        if (c->leading)
                leading_reconfigured(c->leading);
}

static void on_stepped_down(void *userdata) {
        Coordinator *c = userdata;

        log_event(c->env->log, LOG_LEVEL_INFO, MESSAGE_STOPPING, NULL, 0, "Stopped");
        if (c->stopped)
                c->stopped(c->stopped_userdata);
}

void coordinator_stop(Coordinator *c, void (*done)(void *userdata), void *userdata) {
        assert(c);
        if (c->stopping)
                return;
        c->stopping = true;
        c->stopped = done;
        c->stopped_userdata = userdata;
        tell(c, "STOPPING=1");
        end_leading(c);
        leader_elector_step_down(c->elector, on_stepped_down, c);
}

bool coordinator_is_leader(const Coordinator *c) {
        return leader_elector_is_leader(c->elector);
}

bool coordinator_is_synced(const Coordinator *c) {
        return c->view && cluster_view_synced(c->view);
}

/* -- tests ---------------------------------------------------------------------------------------------- */

void coordinator_next_wakeup(const Coordinator *c, Wakeups *w) {
        if (!c->view || c->stopping)
                return;
        cluster_view_next_wakeup(c->view, w);
        leader_elector_next_wakeup(c->elector, w);
        budget_ledger_next_wakeup(c->ledger, w);
        event_recorder_next_wakeup(c->recorder, w);
        notify_sender_next_wakeup(c->notify, w);
        wakeups_unfinished(w, "check of", "the clock", "", CLOCK_CHECK_USEC);
        wakeups_timer(w, c->clock_timer);
        if (c->webhook)
                node_webhook_next_wakeup(c->webhook, w);
        if (c->webhook_server)
                webhook_server_next_wakeup(c->webhook_server, w);
        if (c->leading)
                leading_next_wakeup(c->leading, w);
        else if (c->elected && coordinator_is_synced(c)) {
                wakeups_unfinished(w, "leadership of", c->identity, "not begun", BEGIN_AGAIN_USEC);
                wakeups_timer(w, c->begin_timer);
        }
}
