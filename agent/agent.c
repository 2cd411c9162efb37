/* SPDX-License-Identifier: Apache-2.0 */
#include "agent.h"

#include <malloc.h>

#include "acknowledge.h"
#include "agent-face.h"
#include "agent-metrics.h"
#include "by-hand.h"
#include "early.h"
#include "http-face.h"
#include "informer.h"
#include "kubelet-watch.h"
#include "log-catalog.h"
#include "log.h"
#include "notices.h"
#include "notify-sender.h"
#include "reboot.h"
#include "reflex.h"
#include "resume.h"
#include "schedule.h"
#include "shutdown.h"
#include "string-util.h"

/*
 *      start --own Node seen, intent log read--> settled: what was under way goes on, looks are acted upon
 *
 * A look that comes earlier is kept. Marks of an earlier boot wait for the node to be Ready; a notice does
 * not wait for that.
 */

/* kube-apiserver closes what was idle for 90 s. One that dies silently is noticed by TCP's keepalive, not by
 * this. */
#define WARM_USEC USEC_PER_MINUTE

/* Requests of a drain in flight together. One costs about 22 kB: 10 of structures, most of them libcurl's,
 * and some pages of the two buffers of 16 kB that it gives each. At the most this process takes 3.2 MB with
 * 30 pods, which go out at once, and 3.5 with 100. Fewer together spare little, and may cost time, for the
 * API server's answers come in rounds: with 34, 100 pods took 0.1 MB less and 0.46 to 0.80 s, with 40 0.52
 * to 0.61; with 12, 30 pods took 0.32 s in place of 0.20. */
#define WINDOW 40u

/* Messages to the receiver of [Notify] that wait: one interruption has a dozen. */
#define NOTIFY_QUEUE_MAX 32u
#define NOTIFY_QUEUE_MAX_BYTES (128u * 1024)

struct Agent {
        Env *env;
        const AgentConfig *config;
        KubeClient *client;
        Metrics *metrics;
        AgentMetricsPage page;
        HttpServer *metrics_server, *health_server;
        IntentLog *intents;
        Evictor *evictor;
        NotifySender *notify;
        NodeVoice *voice;
        Informer *nodes, *pods;
        KubeletClient *kubelet_client;
        Containers *containers;
        Reflex *reflex;
        Notices *notices;
        AgentFace *face;
        Reboot *reboot;
        ByHand *by_hand;
        Early *early;
        Acknowledger *acknowledger;
        Schedule *schedule;
        const char *due_kind; /* what logind has on its schedule, static; NULL: nothing */
        usec_t due_usec;      /* wall clock */
        ClockWatch *clock;
        Shutdown *shutdown;
        KubeletWatch *kubelet;
        usec_t no_route_usec; /* since when there is no way to the API server */
        agent_stopped_t on_stopped;
        void *stopped_userdata;

        bool settled;         /* the own Node has been seen, and what it said was dealt with */
        bool undo_when_ready; /* marks of an earlier boot */
        bool resume_waits;    /* for whether the machine's shutdown is still under way */
        const char *undo_why;
        ReflexState trimmed; /* the state in which memory was given back last */
};

const char *agent_phase(const Agent *a) {
        return reflex_state_to_string(reflex_state(a->reflex));
}

size_t agent_pods_left(const Agent *a) {
        return reflex_pods_left(a->reflex);
}

/* After the start and after a drain, once all is quiet: what lists and answers took, and nobody uses any
 * more. */
static void trim_memory(Agent *a) {
        ReflexState s = reflex_state(a->reflex);

        if (!a->settled || s == a->trimmed || (s != REFLEX_IDLE && s != REFLEX_DRAINED))
                return;
        a->trimmed = s;
        (void) malloc_trim(0);
}

/* -- the start ---------------------------------------------------------------------------------- */

/* It ends with the machine's shutdown, or with the request for a reboot, which ended with the agent that had it. */
static bool is_of_going_down(const Notice *n) {
        return n->kind == NOTICE_SHUTDOWN || (n->kind == NOTICE_MANUAL && n->by_hand == BY_HAND_NONE);
}

/* A shutdown that was begun before this start goes on only if the machine does so. */
static void doubt(Agent *a, Resumption *found) {
        if (found->act != RESUME_CONTINUE || !is_of_going_down(found->notice))
                return;
        switch (shutdown_power(a->shutdown)) {
        case POWER_ENDS:
                return;
        case POWER_STAYS:
                found->act = RESUME_CLEAN;
                found->why = "the shutdown that they are of was cancelled, or is over without a new boot (soft-reboot), or ended with the agent that was asked for it";
                intent_log_forget(a->intents, found->notice->id);
                return;
        case POWER_UNKNOWN:
                found->act = RESUME_NOTHING;
                a->resume_waits = true;
                return;
        case _POWER_STATE_MAX:
                break;
        }
        assert(false && "a machine in no state");
}

/* What people on this machine asked an earlier life of the agent for. */
static NoticeByHand by_hand_before(const Resumption *found) {
        return found->act == RESUME_CONTINUE || found->act == RESUME_CLEAN
                       ? (found->notice ? found->notice->by_hand : BY_HAND_NONE)
                       : BY_HAND_NONE;
}

static void resume(Agent *a, const KubeNode *node) {
        _cleanup_(resumption_done) Resumption found = { 0 };
        int r;

        a->resume_waits = false;
        r = resume_decide(node, a->intents, a->env->boot_id, &found);
        if (r >= 0)
                doubt(a, &found);
        switch (r < 0 ? RESUME_NOTHING : found.act) {
        case RESUME_NOTHING:
                break;
        case RESUME_CONTINUE:
                r = reflex_resume(a->reflex, found.notice, found.phase, found.since_usec,
                                  notices_only_cordon(a->notices, found.notice));
                break;
        case RESUME_RELEASE:
                intent_log_note(a->intents, found.notice, INTENT_RELEASED, 0);
                reflex_clean(a->reflex, true, found.why);
                break;
        case RESUME_REMEMBER:
                intent_log_note(a->intents, found.notice, INTENT_RELEASED, 0);
                break;
        case RESUME_CLEAN:
                reflex_clean(a->reflex, false, found.why);
                break;
        case RESUME_UNDO:
                a->undo_when_ready = true;
                a->undo_why = found.why;
                break;
        }
        if (!a->resume_waits)
                by_hand_start(a->by_hand, by_hand_before(&found));
        if (r >= 0 && found.act == RESUME_CONTINUE && a->early)
                early_resumed(a->early, node, found.notice, found.phase);
        if (r < 0)
                log_error_errno(a->env->log, r, "Failed to resume the drain that was under way on node %s: %m",
                                a->config->node_name);
}

static void settle(Agent *a, const KubeNode *node) {
        a->settled = true;
        if (a->config->dry_run)
                by_hand_start(a->by_hand, BY_HAND_NONE);
        else
                resume(a, node);
        notices_settle(a->notices, node->provider_id);
        shutdown_wake(a->shutdown);
        node_voice_ready(a->voice);
        node_voice_set_status(a->voice, reflex_pods_left(a->reflex));
}

/* While the machine goes down a request of before a crash is still in use: its slot must not be given away.
 */
static void show_reboot(Agent *a, const KubeNode *node) {
        if (shutdown_power(a->shutdown) == POWER_STAYS || reboot_state(a->reboot) != REBOOT_NONE)
                reboot_see_node(a->reboot, node);
}

/* Returns the event for whose early reboot the agent waits for a slot. NULL: none, or the event is called off. */
static const char *event_without_slot(const Agent *a) {
        const char *event = reboot_state(a->reboot) == REBOOT_ASKED ? reboot_event(a->reboot) : NULL;

        return event && notices_is_standing(a->notices, event) ? event : NULL;
}

/* Returns true if the slot for an early reboot is granted, and the node is about to be cordoned for it. The report
 * on that replaces the plan: a write of another plan would be in its way. */
static bool has_slot_and_begins(const Agent *a) {
        return reboot_event(a->reboot) && reboot_state(a->reboot) != REBOOT_ASKED &&
               reflex_state(a->reflex) == REFLEX_IDLE;
}

/* What is known of the machine's end before anything is done about it stands on the Node. */
static void show_plan(Agent *a) {
        _cleanup_free_ char *scheduled = NULL;
        char when[RFC3339_MAX];
        const Notice *announced;
        usec_t begin_usec;
        int r;

        if (has_slot_and_begins(a))
                return;
        announced = a->config->dry_run ? NULL : notices_planned(a->notices, &begin_usec);
        if (!reboot_is_told(a->reboot))
                return; /* the request first: two writes at once would be in each other's way */
        if (a->due_kind) {
                rfc3339_format(a->due_usec, when);
                scheduled = strf(" waits for the %s of this machine that is scheduled for %s, and moves its pods away then",
                                 a->due_kind, when);
                r = scheduled ? reflex_plan(a->reflex, NOTICE_SHUTDOWN, scheduled) : -ENOMEM;
        } else if (announced) {
                rfc3339_format(loop_to_wall(a->env->loop, begin_usec), when);
                scheduled = strf("%s moves this node's pods away from %s on: %s announces %s of this machine",
                                 streq_ptr(event_without_slot(a), announced->id)
                                         ? " waits for a slot to reboot this machine early. Without a slot, vesper-agent"
                                         : "",
                                 when, announced->source, announced->action ? announced->action : "the end");
                r = scheduled ? reflex_plan(a->reflex, announced->kind, scheduled) : -ENOMEM;
        } else if (event_without_slot(a))
                r = reflex_plan(a->reflex, NOTICE_MAINTENANCE,
                                " waits for a slot to take the reboot of this machine that is announced before its time");
        else if (!reboot_event(a->reboot) && reboot_is_by_hand(a->reboot))
                r = reflex_plan(a->reflex, NOTICE_MANUAL,
                                " waits for a slot to reboot this machine, as somebody on it asked for");
        else
                r = reflex_plan(a->reflex, _NOTICE_KIND_INVALID, NULL);
        if (r < 0)
                log_debug_errno(a->env->log, r, "Failed to say on the Node what is planned, ignoring: %m");
}

/* Not while what was under way before this start is still looked into. */
static void wake_early(Agent *a) {
        if (!a->settled || a->resume_waits || !a->early || !a->acknowledger)
                return;
        early_wake(a->early);
        acknowledger_wake(a->acknowledger);
}

static void on_node(Informer *i, InformerEvent e, KubeObject *old, KubeObject *new, void *userdata) {
        const KubeNode *node = (const KubeNode *) new;
        Agent *a = userdata;

        reflex_see_node(a->reflex, node);
        if (!node) {
                reboot_see_node(a->reboot, NULL);
                return;
        }
        kubelet_client_set_port(a->kubelet_client, node->kubelet_port);
        if (!a->settled)
                settle(a, node);
        else
                notices_see_provider_id(a->notices, node->provider_id);
        show_reboot(a, node);
        show_plan(a);
        wake_early(a);
        if (a->undo_when_ready && reflex_state(a->reflex) == REFLEX_IDLE && resume_is_ready(node)) {
                a->undo_when_ready = false;
                reflex_clean(a->reflex, false, a->undo_why);
        }
}

static void on_node_synced(Informer *i, void *userdata) {
        Agent *a = userdata;

        if (!a->settled)
                log_notice(a->env->log,
                           "There is no Node %s yet: waiting for the kubelet to register it (or is NodeName= wrong?).",
                           a->config->node_name);
}

static void on_node_listed(Informer *i, void *userdata) {
        Agent *a = userdata;
        const KubeNode *node = (const KubeNode *) informer_get(i, NULL, a->config->node_name);

        if (node)
                reflex_node_listed(a->reflex, node, informer_resource_version(i));
}

static void on_health(Informer *i, bool connected, const char *why, void *userdata) {
        Agent *a = userdata;

        if (connected)
                log_event(a->env->log, LOG_LEVEL_INFO, MESSAGE_API_BACK,
                          LOG_FIELDS({ "NODE", a->config->node_name }), "Connected to the API server (%s).",
                          i == a->nodes ? "own Node" : "own pods");
        else
                log_event(a->env->log, LOG_LEVEL_WARNING, MESSAGE_API_UNREACHABLE,
                          LOG_FIELDS({ "NODE", a->config->node_name }),
                          "%s. Retrying; the notice that is known stays in use.", why);
}

static void on_pod(Informer *i, InformerEvent e, KubeObject *old, KubeObject *new, void *userdata) {
        Agent *a = userdata;

        reflex_see_pod(a->reflex, e, (const KubePod *) (new ? new : old));
}

static void on_pods_synced(Informer *i, void *userdata) {
        Agent *a = userdata;

        reflex_pods_synced(a->reflex);
}

/* A path came back: nothing waits out its backoff. */
static void on_link(void *userdata) {
        Agent *a = userdata;

        log_debug(a->env->log, "Links or routes changed: retrying what waits");
        metrics_add(a->metrics, AGENT_METRIC_ROUTE_CHANGES, 0, 1);
        notices_kick(a->notices);
        reflex_kick(a->reflex);
        evictor_kick(a->evictor);
        informer_kick(a->nodes);
        informer_kick(a->pods);
}

static void on_path(bool has_path, void *userdata) {
        Agent *a = userdata;

        metrics_set(a->metrics, AGENT_METRIC_NO_ROUTE, 0, has_path ? 0 : 1);
        if (has_path)
                node_voice_route_back(a->voice, usec_sub(loop_now(a->env->loop), a->no_route_usec));
        else {
                a->no_route_usec = loop_now(a->env->loop);
                node_voice_no_route(a->voice);
        }
}

/* -- the machine -------------------------------------------------------------------------------- */

/* Said, and counted; never acted upon (kubelet-watch.h). A machine that goes down stops its kubelet. */
static void on_kubelet(KubeletVerdict verdict, const char *why, usec_t since_usec, void *userdata) {
        Agent *a = userdata;
        usec_t lasted = usec_sub(loop_now(a->env->loop), since_usec);

        metrics_set(a->metrics, AGENT_METRIC_KUBELET_UNHEALTHY, 0, verdict == KUBELET_UNHEALTHY ? 1 : 0);
        if (verdict == KUBELET_HEALTHY)
                node_voice_kubelet_healthy(a->voice, lasted);
        else if (shutdown_power(a->shutdown) != POWER_ENDS)
                node_voice_kubelet_unhealthy(a->voice, why, lasted);
}

/* Not while marks are being taken off: once they are, it finds the reflex idle. */
static bool on_shutdown_notice(const Notice *n, void *userdata) {
        Agent *a = userdata;

        if (!a->settled || a->resume_waits || reflex_state(a->reflex) == REFLEX_CANCELLED)
                return false;
        notices_act(a->notices, n, loop_now(a->env->loop));
        return true;
}

static void on_power(PowerState state, void *userdata) {
        const KubeNode *node;
        Agent *a = userdata;

        by_hand_wake(a->by_hand);
        agent_face_changed(a->face);
        node = reflex_node(a->reflex);
        if (state == POWER_STAYS && reboot_state(a->reboot) == REBOOT_REBOOTING)
                reboot_withdraw(a->reboot, "the shutdown was cancelled");
        if (state == POWER_ENDS)
                reboot_machine_ends(a->reboot);
        if (node)
                show_reboot(a, node);
        if (a->resume_waits && node && reflex_state(a->reflex) == REFLEX_IDLE)
                resume(a, node);
        wake_early(a); /* may_not_reboot() has changed */
}

static void on_clock_set(void *userdata) {
        Agent *a = userdata;

        reflex_clock_was_set(a->reflex);
        reboot_clock_was_set(a->reboot);
        notices_wake(a->notices);
}

static void on_schedule(const char *kind, usec_t at_usec, void *userdata) {
        Agent *a = userdata;

        a->due_kind = kind;
        a->due_usec = at_usec;
        reboot_see_schedule(a->reboot, kind, at_usec);
        show_plan(a);
}

static void on_shutdown_stop(void *userdata) {
        Agent *a = userdata;

        if (a->on_stopped)
                a->on_stopped(a->stopped_userdata);
}

void agent_ask_stop(Agent *a, agent_stopped_t fn, void *userdata) {
        assert(fn);
        a->on_stopped = fn;
        a->stopped_userdata = userdata;
        shutdown_ask_stop(a->shutdown);
}

void agent_reconfigured(Agent *a) {
        notices_reconfigured(a->notices);
        wake_early(a);
        shutdown_reconfigured(a->shutdown);
}

void agent_read_files(Agent *a) {
        notify_sender_reload(a->notify);
}

const char *agent_left(const Agent *a) {
        if (shutdown_power(a->shutdown) != POWER_ENDS)
                return "the node is left as it is";
        return reflex_state(a->reflex) == REFLEX_ENDING ? "the machine goes down, and its node is drained"
                                                        : "the machine goes down, and its node is not drained";
}

static void on_reflex(void *userdata) {
        Agent *a = userdata;

        if (a->shutdown)
                shutdown_wake(a->shutdown);
        if (a->by_hand)
                by_hand_wake(a->by_hand);
        if (a->notices)
                notices_wake(a->notices);
        if (a->face)
                agent_face_changed(a->face);
        wake_early(a);
}

static void on_reboot(void *userdata) {
        show_plan(userdata);
        on_reflex(userdata);
}

/* -- asked by people on this machine ------------------------------------------------------------ */

static int on_by_hand_begin(const Notice *n, void *userdata) {
        Agent *a = userdata;

        return notices_begin(a->notices, n, loop_now(a->env->loop));
}

static bool machine_ends(void *userdata) {
        Agent *a = userdata;

        return shutdown_power(a->shutdown) == POWER_ENDS;
}

static bool is_reboot_held(char **ret_what, void *userdata) {
        Agent *a = userdata;

        return by_hand_find_protected(a->by_hand, ret_what);
}

static const Notice *on_stands(void *userdata) {
        Agent *a = userdata;

        const Notice *announced = notices_stand(a->notices);

        return announced ? announced : by_hand_stands(a->by_hand);
}

static void on_overruled(void *userdata) {
        Agent *a = userdata;

        by_hand_overruled(a->by_hand);
}

/* -- new, free ---------------------------------------------------------------------------------- */

static int make_informers(Agent *a) {
        const InformerHandler node_handler = {
                .on_event = on_node,
                .on_synced = on_node_synced,
                .on_listed = on_node_listed,
                .on_health = on_health,
                .userdata = a,
        };
        const InformerHandler pod_handler = {
                .on_event = on_pod,
                .on_synced = on_pods_synced,
                .on_health = on_health,
                .userdata = a,
        };
        _cleanup_free_ char *own_node = strf("metadata.name=%s", a->config->node_name);
        _cleanup_free_ char *own_pods = strf("spec.nodeName=%s", a->config->node_name);
        int r;

        if (!own_node || !own_pods)
                return -ENOMEM;
        r = informer_new(a->client, &kube_node_kind, &(InformerOptions){ .field_selector = own_node },
                         &node_handler, &a->nodes);
        if (r < 0)
                return r;
        return informer_new(a->client, &kube_own_pod_kind, &(InformerOptions){ .field_selector = own_pods },
                            &pod_handler, &a->pods);
}

static void on_begun(void *userdata) {
        Agent *a = userdata;

        a->undo_when_ready = false; /* the marks are taken over */
}

static bool may_clean(void *userdata) {
        Agent *a = userdata;

        return !a->undo_when_ready && !a->resume_waits && !a->config->dry_run;
}

static bool may_take_early(const Notice *n, void *userdata) {
        Agent *a = userdata;

        return a->early && early_may_take(a->early, n);
}

/* Called at looks at which something stands, or has stood: the others find nothing to do. */
static void on_planned(void *userdata) {
        show_plan(userdata);
        wake_early(userdata);
}

static void on_looked(void *userdata) {
        trim_memory(userdata);
}

static int make_notices(Agent *a) {
        const NoticesContext context = {
                .env = a->env,
                .config = a->config,
                .reflex = a->reflex,
                .intents = a->intents,
                .voice = a->voice,
                .metrics = a->metrics,
                .on_begun = on_begun,
                .may_clean = may_clean,
                .may_take_early = may_take_early,
                .on_planned = on_planned,
                .on_looked = on_looked,
                .userdata = a,
        };

        return notices_new(&context, &a->notices);
}

static int make_reflex(Agent *a) {
        const ReflexContext context = {
                .env = a->env,
                .config = a->config,
                .client = a->client,
                .evictor = a->evictor,
                .intents = a->intents,
                .voice = a->voice,
                .metrics = a->metrics,
                .pods = a->pods,
                .containers = a->containers,
                .on_state = on_reflex,
                .on_overruled = on_overruled,
                .stands = on_stands,
                .userdata = a,
        };

        return reflex_new(&context, &a->reflex);
}

static int make_shutdown(Agent *a) {
        const ShutdownContext context = {
                .env = a->env,
                .config = a->config,
                .client = a->client,
                .reflex = a->reflex,
                .intents = a->intents,
                .voice = a->voice,
                .metrics = a->metrics,
                .pods = a->pods,
                .containers = a->containers,
        };
        const ShutdownHandler handler = {
                .on_notice = on_shutdown_notice,
                .on_power = on_power,
                .on_stop = on_shutdown_stop,
                .userdata = a,
        };

        return shutdown_new(&context, &handler, &a->shutdown);
}

static int make_by_hand(Agent *a) {
        const RebootHandler handler = { .on_changed = on_reboot, .is_held = is_reboot_held, .userdata = a };
        int r;

        r = reboot_new(a->env, a->config, a->client, &handler, &a->reboot);
        if (r < 0)
                return r;
        return by_hand_new(
                &(ByHandContext){
                        .env = a->env,
                        .reflex = a->reflex,
                        .reboot = a->reboot,
                        .intents = a->intents,
                        .pods = a->pods,
                        .dry_run = a->config->dry_run,
                        .on_begin = on_by_hand_begin,
                        .machine_ends = machine_ends,
                        .userdata = a,
                },
                &a->by_hand);
}

/* Early reboots, and acknowledgements. */
static bool may_not_reboot(void *userdata) {
        Agent *a = userdata;

        return a->resume_waits || shutdown_power(a->shutdown) != POWER_STAYS;
}

static int make_early(Agent *a) {
        const EarlyContext early = {
                .env = a->env,
                .config = a->config,
                .client = a->client,
                .reflex = a->reflex,
                .notices = a->notices,
                .reboot = a->reboot,
                .machine_ends = may_not_reboot,
                .userdata = a,
        };
        const AcknowledgeContext acknowledge = {
                .env = a->env, .config = a->config, .client = a->client, .reflex = a->reflex, .notices = a->notices,
        };
        int r = early_new(&early, &a->early);

        return r < 0 ? r : acknowledger_new(&acknowledge, &a->acknowledger);
}

static void on_containers_ended(void *userdata) {
        Agent *a = userdata;

        reflex_containers_ended(a->reflex);
        shutdown_wake(a->shutdown);
}

static bool may_end_pods(void *userdata) {
        Agent *a = userdata;

        return reflex_may_end_pods(a->reflex);
}

static int make_voice(Agent *a) {
        const NotifySenderOptions options = {
                .env = a->env,
                .settings = &a->config->notify,
                .reporter = "vesper-agent",
                .metrics = a->metrics,
                .family = AGENT_METRIC_NOTIFICATIONS,
                .max_messages = NOTIFY_QUEUE_MAX,
                .max_bytes = NOTIFY_QUEUE_MAX_BYTES,
        };
        int r;

        r = notify_sender_new(&options, &a->notify);
        if (r >= 0)
                r = node_voice_new(a->client, a->config->node_name, &a->voice);
        if (r >= 0)
                node_voice_set_sender(a->voice, a->notify);
        return r;
}

static int agent_init(Agent *a) {
        int r;

        r = agent_metrics_new(&a->metrics);
        if (r < 0)
                return r;
        r = intent_log_new(a->env, &a->intents);
        if (r < 0)
                return r;
        r = evictor_new(a->client,
                        &(EvictorOptions){ .window_start = WINDOW,
                                           .window_max = WINDOW,
                                           .permit = { may_end_pods, a } },
                        &a->evictor);
        if (r < 0)
                return r;
        a->page = (AgentMetricsPage){ .metrics = a->metrics, .evictor = a->evictor };
        r = make_voice(a);
        if (r < 0)
                return r;
        r = make_informers(a);
        if (r < 0)
                return r;
        r = kubelet_client_new(a->env, kube_client_auth(a->client), a->config->node_name, &a->kubelet_client);
        if (r < 0)
                return r;
        r = containers_new(a->env, a->kubelet_client, on_containers_ended, a, &a->containers);
        if (r < 0)
                return r;
        r = make_reflex(a);
        if (r < 0)
                return r;
        r = make_notices(a);
        if (r < 0)
                return r;
        r = make_shutdown(a);
        if (r < 0)
                return r;
        r = make_by_hand(a);
        if (r >= 0)
                r = make_early(a);
        if (r < 0)
                return r;
        r = schedule_new(a->env, on_schedule, a, &a->schedule);
        if (r < 0)
                return r;
        r = clock_watch_new(a->env->loop, on_clock_set, a, &a->clock);
        if (r < 0)
                return r;
        r = kubelet_watch_new(a->env, on_kubelet, a, &a->kubelet);
        if (r < 0)
                return r;
        return agent_face_new(a->env, a->reflex, a->reboot, a->by_hand, &a->face);
}

int agent_new(Env *env, const AgentConfig *config, KubeClient *client, Agent **ret) {
        _cleanup_(agent_freep) Agent *a = NULL;
        int r;

        assert(env && env->boot_id && config && config->node_name && client && ret);
        a = new0(Agent, 1);
        if (!a)
                return -ENOMEM;
        a->env = env;
        a->config = config;
        a->client = client;
        a->trimmed = _REFLEX_STATE_INVALID;
        r = agent_init(a);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(a);
        return 0;
}

Agent *agent_free(Agent *a) {
        if (!a)
                return NULL;
        if (a->env->netlink)
                a->env->netlink->ops->subscribe(a->env->netlink, NULL, NULL);
        kube_client_on_path(a->client, NULL, NULL);
        kubelet_watch_free(a->kubelet);
        a->face = agent_face_free(a->face);
        clock_watch_free(a->clock);
        schedule_free(a->schedule);
        a->acknowledger = acknowledger_free(a->acknowledger);
        a->early = early_free(a->early);
        a->by_hand = by_hand_free(a->by_hand);
        a->reboot = reboot_free(a->reboot);
        a->shutdown = shutdown_free(a->shutdown);
        http_server_free(a->metrics_server);
        http_server_free(a->health_server);
        a->notices = notices_free(a->notices);
        reflex_free(a->reflex);
        containers_free(a->containers);
        kubelet_client_free(a->kubelet_client);
        informer_free(a->nodes);
        informer_free(a->pods);
        node_voice_free(a->voice);
        notify_sender_free(a->notify);
        evictor_free(a->evictor);
        intent_log_free(a->intents);
        metrics_free(a->metrics);
        return mfree(a);
}

/* A node is drained with or without them. */
void agent_handle_metrics(HttpExchange *x, void *agent) {
        Agent *a = agent;

        agent_metrics_handle(x, &a->page);
}

static void start_servers(Agent *a) {
        const struct {
                HttpFace face;
                const char *listen, *what;
                http_handler_t handler;
                HttpServer **ret;
        } servers[] = {
                { HTTP_FACE_METRICS, a->config->metrics_listen, "metrics", agent_handle_metrics,
                  &a->metrics_server },
                { HTTP_FACE_HEALTH, a->config->health_listen, "health", agent_health_handle,
                  &a->health_server },
        };

        for (size_t i = 0; i < ELEMENTSOF(servers); i++) {
                int r = servers[i].listen
                                ? http_face_new(a->env->loop, servers[i].face, servers[i].listen,
                                                "127.0.0.1", servers[i].handler, a, servers[i].ret)
                                : 0;

                if (r < 0)
                        log_error_errno(a->env->log, r,
                                        "Failed to listen on %s for %s, continuing without it: %m",
                                        servers[i].listen, servers[i].what);
        }
}

int agent_start(Agent *a) {
        int r;

        r = kube_client_keep_warm(a->client, HTTP_LANE_URGENT, WARM_USEC);
        if (r < 0)
                return r;
        if (a->env->netlink)
                a->env->netlink->ops->subscribe(a->env->netlink, on_link, a);
        kube_client_on_path(a->client, on_path, a);
        start_servers(a);
        shutdown_start(a->shutdown);
        if (a->config->shutdown_drain)
                schedule_start(a->schedule);
        return notices_start(a->notices);
}

/* -- tests -------------------------------------------------------------------------------------- */

void agent_next_wakeup(const Agent *a, Wakeups *w) {
        if (!a->nodes)
                return;
        informer_next_wakeup(a->nodes, w);
        informer_next_wakeup(a->pods, w);
        evictor_next_wakeup(a->evictor, w);
        reflex_next_wakeup(a->reflex, w);
        notices_next_wakeup(a->notices, w);
        reboot_next_wakeup(a->reboot, w);
        shutdown_next_wakeup(a->shutdown, w);
        by_hand_next_wakeup(a->by_hand, w);
        containers_next_wakeup(a->containers, w);
        notify_sender_next_wakeup(a->notify, w);
        if (a->early)
                early_next_wakeup(a->early, w);
        if (a->acknowledger)
                acknowledger_next_wakeup(a->acknowledger, w);
        if (a->kubelet)
                kubelet_watch_next_wakeup(a->kubelet, w);
        if (a->schedule && a->config->shutdown_drain)
                schedule_next_wakeup(a->schedule, w);
}
