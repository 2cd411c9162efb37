/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Has a row for each metric family: the function that gives its true value, or the reason why no observer
 * can know that value. A family of the coordinator or the agent without a row fails sim-rig
 * (test_each_metric_is_observed).
 */
#include "sim-seen-internal.h"

#include <math.h>

#include "agent-metrics.h"
#include "coordinator-metrics.h"
#include "fake-controllers.h"
#include "page.h"
#include "sim-queue.h"

/* Limit until which a gauge follows a change of the world. */
#define GAUGE_USEC (15 * USEC_PER_SEC)

/* The bounds of a true value. */
typedef struct Truth {
        double low, high;
} Truth;

typedef struct Looked {
        SimObserver *o;
        const SimProcess *process;
        const SimLife *life;
        const SimCounts *counts;
        const Page *page;
} Looked;

typedef struct MetricRow {
        const char *family, *series;
        /* series: behind the family: labels, or "_count"; "": the sum over all labels */
        Truth (*truth)(const Looked *x);
        const char *why_not; /* truth NULL: why no observer knows it, and the test of it */
} MetricRow;

static Truth exactly(double n) {
        return (Truth){ n, n };
}

static Truth at_most(double n) {
        return (Truth){ 0, n };
}

/* The value of a counter of answers that this process got. Exact if no answer was lost. */
static Truth counted(const Looked *x, uint64_t n) {
        return x->counts->is_exact ? exactly((double) n) : at_most((double) n);
}

static FakeCluster *cluster_of(const Looked *x) {
        return x->o->check->world->cluster;
}

static Truth nothing(const Looked *x) {
        return exactly(0);
}

static Truth one(const Looked *x) {
        return exactly(1);
}

/* -- both -------------------------------------------------------------------------------------- */

/* Each eviction request has one answer, is under way, or was given up with its pod or its drain. */
static Truth evictions(const Looked *x) {
        return at_most((double) (x->counts->evictions_sent - x->life->n_evictions));
}

static Truth evicted(const Looked *x) {
        return at_most((double) x->counts->evicted);
}

static Truth evictions_gone(const Looked *x) {
        return at_most((double) x->counts->gone);
}

/* -- the coordinator --------------------------------------------------------------------------- */

static Truth leader(const Looked *x) {
        return exactly(x->life->leads);
}

static Truth nodes(const Looked *x) {
        return exactly((double) fake_count(cluster_of(x), FAKE_NODES));
}

static Truth claims(const Looked *x) {
        return exactly((double) fake_count(cluster_of(x), FAKE_NODECLAIMS));
}

static Truth budgets(const Looked *x) {
        return exactly((double) fake_count(cluster_of(x), FAKE_NDBS));
}

static Truth adopted(const Looked *x) {
        return counted(x, x->counts->adopted);
}

static Truth released(const Looked *x) {
        return counted(x, x->counts->released);
}

/* Number of Nodes that are being deleted. Nodes without our finalizer count as possible: the coordinator may
 * have taken it off a moment ago. */
static Truth removals(const Looked *x) {
        Truth t = { 0 };
        const cJSON *node;

        if (x->life->leads)
                FAKE_FOREACH (node, cluster_of(x), FAKE_NODES, NULL) {
                        t.low += sim_check_is_deleting(node) && sim_seen_is_ours(node);
                        t.high += sim_check_is_deleting(node);
                }
        return t;
}

/* Number of removals in a phase, from the status of NodeClaims. Each Node without a NodeClaim may be in any
 * phase. */
static Truth removals_in_phase(const Looked *x, const char *phase) {
        double n = 0, unclaimed = 0;
        const cJSON *node;

        if (x->life->leads)
                FAKE_FOREACH (node, cluster_of(x), FAKE_NODES, NULL) {
                        const SimMachine *m = sim_world_machine_of(x->o->check->world,
                                                                   fj_string(node, "metadata", "name",
                                                                             NULL));
                        const cJSON *claim = m ? sim_world_claim(x->o->check->world,
                                                                 sim_check_index(x->o->check, m)) : NULL;

                        if (!sim_check_is_deleting(node))
                                continue;
                        unclaimed += !claim;
                        n += claim && streq_ptr(fj_string(claim, "status", "phase", NULL), phase);
                }
        return (Truth){ n, n + unclaimed };
}

static Truth removals_draining(const Looked *x) {
        return removals_in_phase(x, "Draining");
}

static double claims_blocked_by(const Looked *x, const char *reason) {
        const cJSON *claim;
        double n = 0;

        FAKE_FOREACH (claim, cluster_of(x), FAKE_NODECLAIMS, NULL)
                n += sim_check_is_deleting(claim) &&
                fj_find(fj_get(claim, "status", "blockers", NULL), "reason", reason);
        return n;
}

/* Number of removals with this blocker. Only a lower bound is known: a NodeClaim lists its first 20
 * blockers, and a Node without NodeClaim lists none. */
static Truth removals_blocked_by(const Looked *x, const char *reason) {
        return x->life->leads ? (Truth){ claims_blocked_by(x, reason), removals(x).high } : exactly(0);
}

static Truth removals_blocked_by_pdb(const Looked *x) {
        return removals_blocked_by(x, "BlockedByPDB");
}

static Truth removals_paused(const Looked *x) {
        return removals_blocked_by(x, "RemovalPaused");
}

static Truth removals_waiting(const Looked *x) {
        return removals_blocked_by(x, "WaitingForBudget");
}

/* A leader whose watch is behind may start a removal that has just ended, once in each leadership. */
static Truth removals_started(const Looked *x) {
        double leaderships = x->life->term + 1.0;

        return x->counts->is_exact ? exactly((double) x->counts->started)
                                   : at_most(leaderships * ((double) x->o->n_removed + removals(x).high));
}

/* Not each started removal is finished: somebody else may have deleted the Node while the process removed
 * it. */
static Truth removals_finished(const Looked *x) {
        return (Truth){ x->counts->is_exact && x->life->term == 0 ? (double) x->counts->finished : 0,
                        removals_started(x).high };
}

static Truth tokens(const Looked *x) {
        return at_most(x->life->leads ? x->process->coordinator_config.terminations_burst : 0);
}

static Truth in_flight(const Looked *x) {
        return exactly(x->life->leads ? x->life->n_evictions : 0);
}

static Truth waiting(const Looked *x) {
        return at_most(x->life->leads ? (double) fake_count(cluster_of(x), FAKE_PODS) : 0);
}

static Truth window(const Looked *x) {
        unsigned most = x->process->coordinator_config.evictions_at_once;

        return x->life->leads ? (Truth){ 1, most > 0 ? most : 160 } : exactly(0);
}

/* Counted requests may be more than the sent ones: after the Lease is lost a request is counted and not
 * sent. */
static Truth requests(const Looked *x, uint64_t n) {
        return x->counts->is_exact && x->life->term == 0 ? exactly((double) n)
                : (Truth){ (double) n, INFINITY };
}

static Truth api_requests(const Looked *x) {
        return requests(x, x->counts->api_sent);
}

static Truth sent(const Looked *x, SimVerb verb) {
        return requests(x, x->counts->verbs[verb]);
}

static Truth api_watches(const Looked *x) {
        return sent(x, SIM_WATCH);
}

static Truth api_creates(const Looked *x) {
        return sent(x, SIM_CREATE);
}

static Truth api_updates(const Looked *x) {
        return sent(x, SIM_UPDATE);
}

static Truth api_patches(const Looked *x) {
        return sent(x, SIM_PATCH);
}

static Truth api_deletes(const Looked *x) {
        return sent(x, SIM_DELETE);
}

static Truth api_evictions(const Looked *x) {
        return sent(x, SIM_EVICT);
}

/* Number of calls to the cloud, without an upper bound: a batch counts once for each of its machines. */
static Truth cloud_calls(const Looked *x) {
        return x->counts->cloud_sent > 0 || x->o->check->world->options.exec ? at_most(INFINITY)
                : at_most(0);
}

/* Length of the work queue. Keys of objects that do not exist any more do not count: they are reconciled at
 * once. */
static Truth queue_depth(const Looked *x) {
        FakeCluster *c = cluster_of(x);
        size_t objects = fake_count(c, FAKE_NODES) + fake_count(c, FAKE_NODECLAIMS) + fake_count(c, FAKE_NODEPOOLS);

        return at_most(x->life->leads ? (double) (objects + 5) : 0);
}

static Truth costliest_namespace(const Looked *x) {
        size_t pods = fake_count(cluster_of(x), FAKE_PODS);

        return pods > 0 ? (Truth){ 1, (double) pods * 4096 } : exactly(0);
}

static bool has_node(SimWorld *w, const cJSON *claim) {
        const char *id = fj_string(claim, "spec", "providerID", NULL);
        const cJSON *node;

        FAKE_FOREACH (node, w->cluster, FAKE_NODES, NULL)
                if (streq_ptr(fj_string(node, "spec", "providerID", NULL), id) ||
                    streq(strempty(startswith(strempty(id), "exec://")),
                          fj_string(node, "metadata", "name", NULL)))
                        return true;
        return false;
}

/* Number of NodeClaims without Node. A NodeClaim without our finalizer does not count. */
static Truth orphans(const Looked *x) {
        Truth t = { 0 };
        const cJSON *claim;

        if (x->life->leads)
                FAKE_FOREACH (claim, cluster_of(x), FAKE_NODECLAIMS, NULL) {
                        t.low += !has_node(x->o->check->world, claim) && sim_seen_is_ours(claim);
                        t.high += !has_node(x->o->check->world, claim);
                }
        return t;
}

static Truth orphaned_instances(const Looked *x) {
        double n = 0;

        for (size_t i = 0; i < x->o->check->world->n_machines; i++)
                n += !sim_world_node(x->o->check->world, i) && !sim_world_claim(x->o->check->world, i);
        return at_most(x->life->leads ? n : 0);
}

static Truth reviews(const Looked *x) {
        return exactly((double) x->counts->reviews);
}

/* Returns true if the time of a request or a grant is ahead, and less than an hour away: a forged grant lasts longer. */
static bool is_ahead(const Looked *x, const cJSON *text) {
        usec_t now = sim_world_wall(x->o->check->world), until;

        return rfc3339_parse(strempty(fj_string(text, "until", NULL)), &until) >= 0 && until > now && until < now + USEC_PER_HOUR;
}

/* Number of Nodes with a granted reboot slot, or with a request and no grant. Certain are those whose machine has not
 * rebooted, and about whose grant or request there is no doubt. */
static Truth reboots(const Looked *x, bool is_granted) {
        const cJSON *node;
        Truth t = { 0 };

        if (x->life->leads)
                FAKE_FOREACH (node, cluster_of(x), FAKE_NODES, NULL) {
                        cJSON *asked = sim_seen_annotation(node, "vesper.sh/shutdown-request"),
                              *granted = sim_seen_annotation(node, "vesper.sh/shutdown-granted");
                        bool has_text = is_granted ? granted : asked,
                             is_its_boot = streq_ptr(fj_string(asked, "bootID", NULL),
                                                     fj_string(node, "status", "nodeInfo", "bootID", NULL));

                        t.high += has_text;
                        t.low += has_text && is_its_boot &&
                                 (is_granted ? is_ahead(x, granted) &&
                                                       streq_ptr(fj_string(asked, "id", NULL), fj_string(granted, "id", NULL))
                                             : !granted && is_ahead(x, asked) && !sim_check_is_deleting(node) &&
                                                       !fj_string(node, "metadata", "annotations", "vesper.sh/interruption", NULL) &&
                                                       !fj_string(node, "metadata", "annotations", "vesper.sh/heard", NULL));
                        cJSON_Delete(asked);
                        cJSON_Delete(granted);
                }
        return t;
}

static Truth slots_held(const Looked *x) {
        return reboots(x, true);
}

static Truth reboots_waiting(const Looked *x) {
        return reboots(x, false);
}

static Truth granted(const Looked *x) {
        return counted(x, x->counts->granted);
}

static Truth repairs_begun(const Looked *x) {
        return at_most((double) x->counts->repairs);
}

static Truth repairs_gauge(const Looked *x) {
        return at_most(x->life->leads ? (double) x->o->check->world->n_machines : 0);
}

static bool has_outlook(const Looked *x) {
        const cJSON *pool;

        FAKE_FOREACH (pool, cluster_of(x), FAKE_NODEPOOLS, NULL)
                if (fj_get(pool, "spec", "disruption", NULL))
                        return true;
        return x->o->check->world->options.outlook;
}

/* Number of results of the outlook: four methods judge each NodeClaim. */
static Truth outlook_nodes(const Looked *x) {
        return at_most(x->life->leads && has_outlook(x) ? 4 * claims(x).high : 0);
}

static Truth outlook_seconds(const Looked *x) {
        return at_most(x->life->leads && has_outlook(x)
                       ? (double) sim_world_now(x->o->check->world) / USEC_PER_SEC : 0);
}

static Truth queue_messages(const Looked *x) {
        SimQueue *q = x->o->check->world->queue;

        return at_most(q && x->life->leads ? (double) fake_sqs_n_messages(sim_queue_sqs(q), SIM_QUEUE) : 0);
}

static Truth queue_answers(const Looked *x) {
        return at_most((double) x->counts->cloud_sent);
}

/* Number of Nodes with the annotation of a drain for the queue, which is removed when the drain is over. */
static Truth queue_drains(const Looked *x) {
        const cJSON *node;
        double n = 0;

        FAKE_FOREACH (node, cluster_of(x), FAKE_NODES, NULL)
                n += fj_string(node, "metadata", "annotations", "vesper.sh/heard", NULL) != NULL;
        return at_most(x->life->leads ? n : 0);
}

static Truth only_with_queue(const Looked *x) {
        return at_most(x->o->check->world->queue ? INFINITY : 0);
}

#define COORDINATOR(f) "vesper_coordinator_" f

static const MetricRow coordinator_rows[] = {
        { COORDINATOR("leader"), "", leader, NULL },
        { COORDINATOR("synced"), "", one, NULL },
        { COORDINATOR("nodes"), "", nodes, NULL },
        { COORDINATOR("nodeclaims"), "", claims, NULL },
        { COORDINATOR("adoptions_total"), "", adopted, NULL },
        { COORDINATOR("releases_total"), "", released, NULL },
        { COORDINATOR("terminations"), "", removals, NULL },
        { COORDINATOR("terminations"), "{state=\"draining\"}", removals_draining, NULL },
        { COORDINATOR("terminations_started_total"), "", removals_started, NULL },
        { COORDINATOR("terminations_finished_total"), "", removals_finished, NULL },
        { COORDINATOR("termination_duration_seconds"), "_count", removals_finished, NULL },
        { COORDINATOR("termination_tokens"), "", tokens, NULL },
        { COORDINATOR("removals_blocked"), "{reason=\"BlockedByPDB\"}", removals_blocked_by_pdb, NULL },
        { COORDINATOR("removals_blocked"), "{reason=\"RemovalPaused\"}", removals_paused, NULL },
        { COORDINATOR("removals_blocked"), "{reason=\"WaitingForBudget\"}", removals_waiting, NULL },
        { COORDINATOR("removals_blocked_seconds_total"), "", NULL,
          "grows by what passes between two scrapes: test-removal-metrics" },
        { COORDINATOR("protected_seconds_total"), "", NULL, "the same: test-removal-metrics" },
        { COORDINATOR("evictions_total"), "", evictions, NULL },
        { COORDINATOR("evictions_total"), "{answer=\"Evicted\"}", evicted, NULL },
        { COORDINATOR("evictions_total"), "{answer=\"Gone\"}", evictions_gone, NULL },
        { COORDINATOR("evictions_in_flight"), "", in_flight, NULL },
        { COORDINATOR("evictions_waiting"), "", waiting, NULL },
        { COORDINATOR("eviction_window"), "", window, NULL },
        { COORDINATOR("api_requests_total"), "", api_requests, NULL },
        { COORDINATOR("api_requests_total"), "{verb=\"watch\"}", api_watches, NULL },
        { COORDINATOR("api_requests_total"), "{verb=\"create\"}", api_creates, NULL },
        { COORDINATOR("api_requests_total"), "{verb=\"update\"}", api_updates, NULL },
        { COORDINATOR("api_requests_total"), "{verb=\"patch\"}", api_patches, NULL },
        { COORDINATOR("api_requests_total"), "{verb=\"delete\"}", api_deletes, NULL },
        { COORDINATOR("api_requests_total"), "{verb=\"evict\"}", api_evictions, NULL },
        { COORDINATOR("cloud_calls_total"), "", cloud_calls, NULL },
        { COORDINATOR("queue_depth"), "", queue_depth, NULL },
        { COORDINATOR("crowded_namespaces"), "", nothing, NULL },
        { COORDINATOR("costliest_namespace_bytes"), "", costliest_namespace, NULL },
        { COORDINATOR("orphans"), "", orphans, NULL },
        { COORDINATOR("orphaned_instances"), "", orphaned_instances, NULL },
        { COORDINATOR("node_disruption_budgets"), "", budgets, NULL },
        { COORDINATOR("node_disruption_budgets_invalid"), "", nothing, NULL },
        { COORDINATOR("budget_answers_total"), "", NULL,
          "a removal that waits asks again, and writes nothing: test-budget-ledger" },
        { COORDINATOR("webhook_answers_total"), "", reviews, NULL },
        { COORDINATOR("webhook_refused_total"), "", nothing, NULL },
        { COORDINATOR("reboots_granted_total"), "", granted, NULL },
        { COORDINATOR("reboot_slots_held"), "", slots_held, NULL },
        { COORDINATOR("reboots_waiting"), "", reboots_waiting, NULL },
        { COORDINATOR("repairs_total"), "{outcome=\"begun\"}", repairs_begun, NULL },
        { COORDINATOR("repairs_under_way"), "", repairs_gauge, NULL },
        { COORDINATOR("repairs_waiting"), "", repairs_gauge, NULL },
        { COORDINATOR("voluntary_disruption_nodes"), "", outlook_nodes, NULL },
        { COORDINATOR("voluntary_disruption_oldest_candidate_seconds"), "", outlook_seconds, NULL },
        { COORDINATOR("voluntary_disruption_round_seconds"), "", outlook_seconds, NULL },
        { COORDINATOR("voluntary_disruption_round_age_seconds"), "", outlook_seconds, NULL },
        { COORDINATOR("queue_answers_total"), "", queue_answers, NULL },
        { COORDINATOR("queue_messages_received_total"), "", only_with_queue, NULL },
        { COORDINATOR("queue_sender_messages_total"), "", only_with_queue, NULL },
        { COORDINATOR("queue_sender_bytes_total"), "", only_with_queue, NULL },
        { COORDINATOR("queue_messages_deleted_total"), "", only_with_queue, NULL },
        { COORDINATOR("queue_instances_foreign_total"), "", only_with_queue, NULL },
        { COORDINATOR("queue_messages_poison_total"), "", only_with_queue, NULL },
        { COORDINATOR("queue_messages_poison_deleted_total"), "", nothing, NULL },
        { COORDINATOR("queue_messages_other_account_total"), "", only_with_queue, NULL },
        { COORDINATOR("queue_instances_too_late_total"), "", only_with_queue, NULL },
        { COORDINATOR("queue_messages_working"), "", queue_messages, NULL },
        { COORDINATOR("queue_drains"), "", queue_drains, NULL },
        { COORDINATOR("queue_held_nodes"), "", queue_drains, NULL },
        { COORDINATOR("queue_durable_seconds"), "_count", only_with_queue, NULL },
        { COORDINATOR("notifications_total"), "", nothing, NULL },
};

/* -- the agent --------------------------------------------------------------------------------- */

static const cJSON *own_node(const Looked *x) {
        return fake_get(cluster_of(x), FAKE_NODES, NULL, x->process->machine->node);
}

/* Number of pods that the agent's drain waits for. Before the drain begins it may be any number up to all
 * pods. */
static Truth pods_left(const Looked *x) {
        cJSON *interruption = sim_seen_annotation(own_node(x), "vesper.sh/interruption");
        bool drains = streq_ptr(fj_string(interruption, "phase", NULL), "Draining");
        double left = (double) sim_seen_pods_left(x->o, x->process->machine->node);
        bool is_idle = own_node(x) && !interruption;

        cJSON_Delete(interruption);
        return drains ? (Truth){ (double) sim_seen_pods_alive(x->o, x->process->machine->node), left }
                : at_most(is_idle ? 0 : left);
}

/* Returns 1 if the agent is in the phase. Each phase has a series of the metric. */
static Truth phase_is(const Looked *x, const char *phase) {
        cJSON *interruption = sim_seen_annotation(own_node(x), "vesper.sh/interruption");
        bool is = streq_ptr(fj_string(interruption, "phase", NULL), phase) &&
                  streq_ptr(fj_string(interruption, "bootID", NULL), x->process->machine->boot_id);

        cJSON_Delete(interruption);
        return is ? exactly(1) : at_most(1);
}

static Truth phase_drained(const Looked *x) {
        return phase_is(x, "Drained");
}

static Truth cordons(const Looked *x) {
        return at_most((double) x->counts->cordons);
}

static Truth drained(const Looked *x) {
        return at_most((double) x->counts->drained);
}

static Truth polls(const Looked *x) {
        return at_most((double) x->counts->metadata_sent);
}

static Truth api_errors(const Looked *x) {
        return at_most(x->counts->is_exact ? (double) x->counts->node_writes_refused : INFINITY);
}

static Truth only_with_power(const Looked *x) {
        return at_most(x->process->machine->power ? INFINITY : 0);
}

static Truth yes_or_no(const Looked *x) {
        return at_most(1);
}

#define AGENT(f) "vesper_agent_" f

static const MetricRow agent_rows[] = {
        { AGENT("notices_total"), "", NULL,
          "what a source announces again after it was silent is no other notice: test-notices" },
        { AGENT("polls_total"), "", polls, NULL },
        { AGENT("evictions_total"), "", evictions, NULL },
        { AGENT("evictions_total"), "{answer=\"Evicted\"}", evicted, NULL },
        { AGENT("phase"), "", one, NULL },
        { AGENT("phase"), "{phase=\"drained\"}", phase_drained, NULL },
        { AGENT("pods_left"), "", pods_left, NULL },
        { AGENT("notice_to_cordon_seconds"), "_count", cordons, NULL },
        { AGENT("notice_to_drained_seconds"), "_count", drained, NULL },
        { AGENT("api_errors_total"), "", api_errors, NULL },
        { AGENT("shutdown_budget_seconds"), "", only_with_power, NULL },
        { AGENT("kubelet_inhibits_shutdown"), "", only_with_power, NULL },
        { AGENT("kubelet_unhealthy"), "", yes_or_no, NULL },
        { AGENT("api_no_route"), "", yes_or_no, NULL },
        { AGENT("route_changes_total"), "", nothing, NULL },
        { AGENT("notifications_total"), "", nothing, NULL },
};

/* -- looking ----------------------------------------------------------------------------------- */

static const char *unobserved(const MetricFamily *families, size_t n, const MetricRow *rows, size_t n_rows) {
        for (size_t i = 0; i < n; i++) {
                bool has_row = false;

                for (size_t k = 0; k < n_rows; k++)
                        has_row = has_row || (streq(rows[k].family, families[i].name) &&
                                              (rows[k].truth || rows[k].why_not));
                if (!has_row)
                        return families[i].name;
        }
        return NULL;
}

const char *sim_seen_unobserved_family(void) {
        const char *name = unobserved(coordinator_metric_families, _COORDINATOR_METRIC_MAX, coordinator_rows,
                                      ELEMENTSOF(coordinator_rows));

        return name ?: unobserved(agent_metric_families, _AGENT_METRIC_MAX, agent_rows,
                                  ELEMENTSOF(agent_rows));
}

static void look_at_row(const Looked *x, const MetricRow *row) {
        _cleanup_free_ char *series = MUST(strf("%s%s", row->family, row->series));
        _cleanup_free_ char *key = MUST(strf("%s of %s, life %u,", series, x->process->name,
                                             x->life->number));
        Truth t;

        if (!row->truth)
                return;
        t = row->truth(x);
        sim_seen_compare(x->o, key, page_sum(x->page, series), t.low, t.high, GAUGE_USEC);
}

static void look_at_process(SimObserver *o, SimProcess *p) {
        bool is_agent = p->kind == SIM_AGENT;
        const MetricRow *rows = is_agent ? agent_rows : coordinator_rows;
        size_t n = is_agent ? ELEMENTSOF(agent_rows) : ELEMENTSOF(coordinator_rows);
        _cleanup_page_ Page page = is_agent
                ? page_ask(agent_handle_metrics, p->life->agent, HTTP_GET, "/metrics")
                                            : page_ask(coordinator_handle, p->life->coordinator, HTTP_GET,
                                                       "/metrics");
        const Looked x = { .o = o, .process = p, .life = p->life, .counts = sim_seen_counts(o, p->life),
                           .page = &page };

        for (size_t i = 0; i < n; i++)
                look_at_row(&x, rows + i);
}

void sim_seen_look_at_metrics(SimObserver *o) {
        SimWorld *w = o->check->world;

        for (size_t i = 0; i < w->n_processes; i++)
                if (w->processes[i]->life && w->processes[i]->life->ready)
                        look_at_process(o, w->processes[i]);
}
