/* SPDX-License-Identifier: Apache-2.0 */
#include "node-voice.h"

#include <inttypes.h>
#include <stdio.h>

#include "log-catalog.h"
#include "log.h"
#include "string-util.h"

#define NAMES_SHOWN 5u

struct NodeVoice {
        Env *env;
        EventRecorder *events;
        char *node, *uid;
        NotifySender *sender; /* NULL: none */
        char *told_id;        /* of the notice whose phases were told: */
        unsigned told;        /* bit 1 << NotifyPhase */
        const Notice *notice;
        const char *phase;
        char deadline[RFC3339_MAX];
        char *status; /* sent to the service manager last; NULL: none yet */
};

int node_voice_new(KubeClient *c, const char *node, NodeVoice **ret) {
        _cleanup_(node_voice_freep) NodeVoice *v = NULL;
        int r;

        assert(c && node && ret);
        v = new0(NodeVoice, 1);
        if (!v)
                return -ENOMEM;
        v->env = kube_client_env(c);
        v->node = strdup(node);
        if (!v->node)
                return -ENOMEM;
        r = event_recorder_new(c, "vesper-agent", node, &v->events);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(v);
        return 0;
}

NodeVoice *node_voice_free(NodeVoice *v) {
        if (!v)
                return NULL;
        event_recorder_free(v->events);
        free(v->node);
        free(v->uid);
        free(v->told_id);
        free(v->status);
        return mfree(v);
}

/* -- the four channels -------------------------------------------------------------------------- */

void node_voice_set_node(NodeVoice *v, const KubeNode *n) {
        if (!streq_ptr(v->uid, n->object.meta.uid))
                (void) free_and_strdup(&v->uid, n->object.meta.uid);
}

void node_voice_set_notice(NodeVoice *v, const Notice *n) {
        v->notice = n;
        v->deadline[0] = 0;
        if (!n)
                v->told_id = mfree(v->told_id);
        if (n && n->announced_usec > 0)
                rfc3339_format(n->announced_usec, v->deadline);
}

static void notify(NodeVoice *v, const char *text) {
        if (v->env->notify)
                v->env->notify(text, v->env->notify_userdata);
}

void node_voice_set_phase(NodeVoice *v, const char *phase) {
        v->phase = phase;
}

void node_voice_set_status(NodeVoice *v, size_t pods_left) {
        _cleanup_free_ char *text = NULL;

        if (!v->notice)
                text = strf("STATUS=%s: watching for notices on node %s", v->phase, v->node);
        else
                text = strf("STATUS=%s: %s notice, deadline %s, %zu pod%s left on node %s", v->phase,
                            notice_kind_to_string(v->notice->kind),
                            v->deadline[0] ? v->deadline : "not said", pods_left, pods_left == 1 ? "" : "s", v->node);
        if (!text || streq_ptr(text, v->status))
                return;
        free(v->status);
        v->status = TAKE_PTR(text);
        notify(v, v->status);
}

/* One line with the fields of the interruption; pod, pdb and delay where they are known. */
static void say_full(NodeVoice *v, LogLevel level, const char *id, const char *pod, const char *pdb,
                     const char *delay, const char *text) {
        if (!text || !log_enabled(v->env->log, level))
                return;
        log_event(v->env->log, level, id,
                  LOG_FIELDS({ "NODE", v->node }, { "NOTICE_ID", v->notice ? v->notice->id : NULL },
                             { "NOTICE_KIND", v->notice ? notice_kind_to_string(v->notice->kind) : NULL },
                             { "PHASE", v->phase }, { "DEADLINE", v->deadline[0] ? v->deadline : NULL },
                             { "POD", pod }, { "PDB", pdb }, { "CORDON_DELAY_USEC", delay }),
                  "%s", text);
}

static void say(NodeVoice *v, LogLevel level, const char *id, const char *fmt, ...) _printf_(4, 5);
static void say(NodeVoice *v, LogLevel level, const char *id, const char *fmt, ...) {
        _cleanup_free_ char *text = NULL;
        StrBuf b = { 0 };
        va_list ap;

        va_start(ap, fmt);
        strbuf_addv(&b, fmt, ap);
        va_end(ap);
        text = strbuf_steal(&b);
        say_full(v, level, id, NULL, NULL, NULL, text);
}

static EventObject node_object(const NodeVoice *v) {
        return (EventObject){ .api_version = "v1", .kind = "Node", .name = v->node, .uid = v->uid };
}

static void tell_node(NodeVoice *v, EventType type, const char *reason, const char *text) {
        EventObject o = node_object(v);

        if (text)
                event_record(v->events, &o, type, reason, "%s", text);
}

static void tell_pod(NodeVoice *v, const KubePod *pod, EventType type, const char *reason,
                     const char *text) {
        EventObject o = event_object(&pod->object);

        if (text)
                event_record(v->events, &o, type, reason, "%s", text);
}

void node_voice_set_sender(NodeVoice *v, NotifySender *s) {
        v->sender = s;
}

static void tell_receiver(NodeVoice *v, NotifyPhase phase, const Notice *n, size_t pods_left, const char *text) {
        notify_sender_tell(v->sender, &(NotifyFacts){ .phase = phase,
                                                      .node = v->node,
                                                      .node_uid = v->uid,
                                                      .notice_id = n->id,
                                                      .kind = notice_kind_to_string(n->kind),
                                                      .source = n->source,
                                                      .action = n->action,
                                                      .deadline_usec = n->announced_usec,
                                                      .pods_left = pods_left == SIZE_MAX ? -1 : (int64_t) pods_left,
                                                      .message = text });
}

/* Each phase of the notice in force once, however often a pod is blocked, or the node is drained once more. */
static void tell_phase(NodeVoice *v, NotifyPhase phase, size_t pods_left, const char *text) {
        if (!v->notice || !text)
                return;
        if (!streq_ptr(v->told_id, v->notice->id)) {
                v->told = 0;
                if (free_and_strdup(&v->told_id, v->notice->id) < 0)
                        return;
        }
        if (v->told & (1u << phase))
                return;
        v->told |= 1u << phase;
        tell_receiver(v, phase, v->notice, pods_left, text);
}

static const char *action_of(const Notice *n) {
        return n->action ? n->action : "end";
}

static const char *why_of(const Notice *n) {
        if (n->kind == NOTICE_SHUTDOWN)
                return "The machine of this node shuts down";
        if (n->kind == NOTICE_MANUAL)
                return "Somebody on this node takes it out of service";
        if (n->kind != NOTICE_MAINTENANCE || notice_ends_machine(n))
                return "The cloud takes this node back";
        return streq_ptr(n->action, "reboot") ? "The machine of this node is to reboot"
                                              : "Maintenance of this node's machine is about to begin";
}

static const char *event_of(const Notice *n) {
        if (n->kind == NOTICE_SHUTDOWN)
                return "Shutdown";
        return n->kind == NOTICE_SPOT ? "SpotInterruption" : "Interruption";
}

/* -- agent and API server ----------------------------------------------------------------------- */

void node_voice_ready(NodeVoice *v) {
        say(v, LOG_LEVEL_INFO, MESSAGE_READY, "Watching over node %s.", v->node);
        notify(v, "READY=1"); /* systemd has heard it before (agent-main.c); other runners may wait for it */
}

void node_voice_api_lost(NodeVoice *v, const ApiError *e) {
        if (e->http == 401 || e->http == 403)
                say(v, LOG_LEVEL_ERROR, MESSAGE_API_UNREACHABLE,
                    "The API server does not let this agent mark node %s, retrying: %s (HTTP %u). "
                    "Kubeconfig= must be the credential of this very node (user system:node:%s in group system:nodes).",
                    v->node, e->message, e->http, v->node);
        else if (e->http > 0)
                say(v, LOG_LEVEL_WARNING, MESSAGE_API_UNREACHABLE,
                    "The API server refused to mark node %s, retrying: %s (HTTP %u).", v->node, e->message,
                    e->http);
        else
                say(v, LOG_LEVEL_WARNING, MESSAGE_API_UNREACHABLE,
                    "The API server does not answer, retrying: %s. What does not need it continues.",
                    e->message);
}

void node_voice_api_back(NodeVoice *v) {
        say(v, LOG_LEVEL_NOTICE, MESSAGE_API_BACK, "The API server takes reports on node %s again.",
            v->node);
}

void node_voice_kubelet_unhealthy(NodeVoice *v, const char *why, usec_t for_usec) {
        char span[DURATION_MAX];
        _cleanup_free_ char *text = strf("The kubelet of node %s has not been healthy for %s (%s): pods that are evicted or deleted may not end. "
                                         "Nothing is drained for that. See systemctl status kubelet, and its log.",
                                         v->node, duration_format(for_usec, span), why);

        say_full(v, LOG_LEVEL_WARNING, MESSAGE_KUBELET_UNHEALTHY, NULL, NULL, NULL, text);
        tell_node(v, EVENT_WARNING, "KubeletUnhealthy", text);
}

void node_voice_kubelet_healthy(NodeVoice *v, usec_t after_usec) {
        char span[DURATION_MAX];
        _cleanup_free_ char *text = strf("The kubelet of node %s is healthy again, after %s.", v->node, duration_format(after_usec, span));

        say_full(v, LOG_LEVEL_NOTICE, MESSAGE_KUBELET_HEALTHY, NULL, NULL, NULL, text);
        tell_node(v, EVENT_NORMAL, "KubeletHealthy", text);
}

void node_voice_no_route(NodeVoice *v) {
        say(v, LOG_LEVEL_WARNING, MESSAGE_API_UNREACHABLE,
            "Node %s has no way to the API server: no route, or no address for its name. What waits is tried again, and at once "
            "when links or routes change; a cordon does not wait for that.",
            v->node);
}

void node_voice_route_back(NodeVoice *v, usec_t after_usec) {
        char span[DURATION_MAX];

        say(v, LOG_LEVEL_NOTICE, MESSAGE_API_BACK, "Node %s has a way to the API server again, after %s.", v->node,
            duration_format(after_usec, span));
}

void node_voice_source_failing(NodeVoice *v, const char *source, const char *why, unsigned looks) {
        say(v, LOG_LEVEL_WARNING, MESSAGE_NOTICE_SOURCE_FAILING,
            "Source %s has given no usable answer %u times in a row (%s): a notice would not be seen. Still asking.",
            source, looks, why);
}

void node_voice_foreign_metadata(NodeVoice *v, const char *source, const char *name, const char *provider_id) {
        _cleanup_free_ char *text = strf("The %s metadata service that answers node %s speaks for another machine: for %s, and the providerID of "
                                         "this node is %s. Nothing that it announces is acted upon. "
                                         "Look for what answers at [Metadata] Endpoint= (a proxy, a NAT rule, another machine's address). "
                                         "Should it be the providerID that is wrong, as the machine was replaced under the name of its "
                                         "node: kubectl delete node %s, which its kubelet registers anew.",
                                         source, v->node, name, provider_id, v->node);

        say_full(v, LOG_LEVEL_WARNING, MESSAGE_FOREIGN_METADATA, NULL, NULL, NULL, strempty(text));
        tell_node(v, EVENT_WARNING, "ForeignMetadata", text);
}

void node_voice_foreign_provider_id(NodeVoice *v, const char *name, const char *provider_id) {
        _cleanup_free_ char *text = strf("Node %s runs on %s, as the machine's firmware and metadata say alike, and its providerID is that of another "
                                         "machine: %s. What metadata announces is acted upon all the same; others may take the node for that machine. "
                                         "It cannot be changed: kubectl delete node %s, which its kubelet registers anew.",
                                         v->node, name, provider_id, v->node);

        say_full(v, LOG_LEVEL_WARNING, MESSAGE_FOREIGN_PROVIDER_ID, NULL, NULL, NULL, strempty(text));
        tell_node(v, EVENT_WARNING, "ForeignProviderID", text);
}

void node_voice_source_back(NodeVoice *v, const char *source) {
        say(v, LOG_LEVEL_NOTICE, NULL, "Source %s answers again.", source);
}

/* -- the notice --------------------------------------------------------------------------------- */

void node_voice_notice_seen(NodeVoice *v, const Plan *plan) {
        _cleanup_free_ char *text =
                strf("%s announces: %s of this machine at %s.", v->notice->source, action_of(v->notice),
                     v->deadline[0] ? v->deadline : "a time not said");
        _cleanup_free_ char *kind = NULL;

        say(v, LOG_LEVEL_WARNING, MESSAGE_NOTICE_SEEN, "%s Taking node %s out of service now: %s.",
            strempty(text), v->node, plan->why);
        kind = strf("%s: %s", why_of(v->notice), strempty(text));
        tell_node(v, EVENT_WARNING, event_of(v->notice), kind);
        tell_phase(v, NOTIFY_NOTICED, SIZE_MAX, kind);
}

void node_voice_notice_only(NodeVoice *v, const Notice *n, const char *why) {
        _cleanup_free_ char *text = strf("%s notice of %s (%s): nothing is moved, as %s.",
                                         notice_kind_to_string(n->kind), n->source, action_of(n), why);

        say_full(v, LOG_LEVEL_NOTICE, MESSAGE_NOTICE_SEEN, NULL, NULL, NULL, text);
        tell_node(v, EVENT_NORMAL, n->kind == NOTICE_REBALANCE ? "RebalanceRecommendation" : "Notice", text);
        tell_receiver(v, NOTIFY_REPORTED, n, SIZE_MAX, text);
}

void node_voice_notice_planned(NodeVoice *v, const Notice *n, usec_t begin_usec, bool may_be_early) {
        _cleanup_free_ char *text = NULL;
        char at[RFC3339_MAX], begin[RFC3339_MAX];

        rfc3339_format(n->announced_usec, at);
        rfc3339_format(begin_usec, begin);
        text = strf("%s announces: %s of this machine at %s (%s). Node %s stays in service until %s%s; then its pods are moved away.",
                    n->source, action_of(n), n->announced_usec > 0 ? at : "a time not said", notice_kind_to_string(n->kind),
                    v->node, begin, may_be_early ? ", or until a coordinator lets its machine reboot early" : "");
        say_full(v, LOG_LEVEL_NOTICE, MESSAGE_NOTICE_SEEN, NULL, NULL, NULL, text);
        tell_node(v, EVENT_NORMAL, "InterruptionPlanned", text);
        tell_receiver(v, NOTIFY_PLANNED, n, SIZE_MAX, text);
}

void node_voice_clock_was_set(NodeVoice *v, usec_t deadline_usec) {
        char text[RFC3339_MAX];

        rfc3339_format(deadline_usec, text);
        say(v, LOG_LEVEL_WARNING, MESSAGE_NOTICE_SEEN,
            "The clock of this machine was set while a notice stands: by the new time node %s must be empty by %s.",
            v->node, text);
}

void node_voice_notice_took_over(NodeVoice *v) {
        _cleanup_free_ char *text =
                strf("%s: %s announces: %s of this machine at %s.", why_of(v->notice), v->notice->source,
                     action_of(v->notice), v->deadline[0] ? v->deadline : "a time not said");

        say(v, LOG_LEVEL_WARNING, MESSAGE_NOTICE_SEEN,
            "%s Node %s is already being drained; the drain continues with the deadline of this notice.",
            strempty(text), v->node);
        tell_node(v, EVENT_WARNING, event_of(v->notice), text);
        tell_phase(v, NOTIFY_NOTICED, SIZE_MAX, text);
}

void node_voice_falls_back(NodeVoice *v, const char *why) {
        _cleanup_free_ char *text =
                strf("The interruption of node %s is over: %s. "
                     "The node stays out of service all the same, as another notice stands or somebody on this machine has asked for that.",
                     v->node, why);

        say_full(v, LOG_LEVEL_NOTICE, MESSAGE_NOTICE_CANCELLED, NULL, NULL, NULL, text);
        tell_phase(v, NOTIFY_CANCELLED, SIZE_MAX, text);
}

void node_voice_notice_nearer(NodeVoice *v, usec_t deadline_usec) {
        char text[RFC3339_MAX];

        rfc3339_format(deadline_usec, text);
        say(v, LOG_LEVEL_WARNING, MESSAGE_NOTICE_SEEN,
            "The end of node %s came nearer: it must be empty by %s.", v->node, text);
}

/* It may have been told before, or lost with the process: who was told knows it by its key. */
static void tell_resumed(NodeVoice *v) {
        static const struct {
                const char *state; /* reflex.c */
                NotifyPhase phase;
        } phases[] = {
                { "Cordoned", NOTIFY_CORDONED }, { "LBWait", NOTIFY_CORDONED }, { "Draining", NOTIFY_DRAINING },
                { "Volumes", NOTIFY_DRAINING },   { "Drained", NOTIFY_DRAINED },
        };
        _cleanup_free_ char *text = strf("vesper-agent of node %s has started again, and goes on with what was begun (%s).", v->node, v->phase);

        for (size_t i = 0; i < ELEMENTSOF(phases); i++)
                if (streq(v->phase, phases[i].state))
                        tell_phase(v, phases[i].phase, SIZE_MAX, text);
}

void node_voice_resumed(NodeVoice *v) {
        say(v, LOG_LEVEL_NOTICE, MESSAGE_DRAIN_STARTED,
            "Node %s is being taken out of service since before this start: continuing where it was left (%s).",
            v->node, v->phase);
        tell_resumed(v);
}

void node_voice_notice_ignored(NodeVoice *v, const Notice *n, const char *why) {
        say(v, LOG_LEVEL_NOTICE, MESSAGE_NOTICE_SEEN, "Notice %s is not acted upon: %s.", n->id, why);
}

/* -- the drain ---------------------------------------------------------------------------------- */

void node_voice_cordoned(NodeVoice *v, usec_t delay_usec, bool claimed) {
        _cleanup_free_ char *text = NULL;
        char delay[24] = "";

        if (delay_usec != USEC_INFINITY)
                (void) snprintf(delay, sizeof(delay), "%" PRIu64, delay_usec);
        text = claimed ? strf("Node %s is cordoned: no new pod comes.", v->node)
                       : strf("Node %s had been cordoned by somebody else: left so, and not ours to undo.",
                              v->node);
        say_full(v, LOG_LEVEL_NOTICE, MESSAGE_NODE_CORDONED, NULL, NULL, delay[0] ? delay : NULL, text);
        tell_node(v, EVENT_NORMAL, "Cordoned", text);
        tell_phase(v, NOTIFY_CORDONED, SIZE_MAX, text);
}

void node_voice_draining(NodeVoice *v, size_t n_pods, usec_t deadline_usec) {
        _cleanup_free_ char *text = NULL;
        char until[RFC3339_MAX] = "no set time";

        if (deadline_usec != USEC_INFINITY)
                rfc3339_format(deadline_usec, until);
        text = strf("Evicting %zu pods of node %s, to be done by %s.", n_pods, v->node, until);
        say_full(v, LOG_LEVEL_NOTICE, MESSAGE_DRAIN_STARTED, NULL, NULL, NULL, text);
        tell_phase(v, NOTIFY_DRAINING, n_pods, text);
}

static char *pod_key(const KubePod *pod) {
        return strf("%s/%s", strempty(pod->object.meta.ns), pod->object.meta.name);
}

void node_voice_pod_evicted(NodeVoice *v, const KubePod *pod) {
        _cleanup_free_ char *key = pod_key(pod), *line = NULL, *text = NULL;

        if (!key || !v->notice)
                return;
        line = strf("Evicted pod %s.", key);
        say_full(v, LOG_LEVEL_INFO, NULL, key, NULL, NULL, line);
        text = strf("%s: node %s (%s notice, %s at %s).", why_of(v->notice), v->node,
                    notice_kind_to_string(v->notice->kind), action_of(v->notice),
                    v->deadline[0] ? v->deadline : "a time not said");
        tell_pod(v, pod, EVENT_NORMAL, "Evicted", text);
}

/* What comes of a pod that is not evicted. */
static const char *outlook(const Notice *n, const DrainBlocker *b, usec_t deadline_usec) {
        if (deadline_usec != USEC_INFINITY)
                return " It is deleted when its time is up.";
        if (b->wait != POD_WAIT_PROTECTED)
                return "";
        return n->by_hand == BY_HAND_NONE ? " vesper-agent --reboot --force goes on all the same."
                                          : " vesper-agent --drain --force goes on all the same.";
}

void node_voice_pod_blocked(NodeVoice *v, const KubePod *pod, const DrainBlocker *b, usec_t deadline_usec) {
        _cleanup_free_ char *key = pod_key(pod), *text = NULL;
        const char *how = pod_wait_remedy(b->wait), *detail = isempty(b->detail) ? NULL : b->detail;
        const char *pdb = pod_wait_is_of_pdb(b->wait) ? detail : NULL;

        if (!key || !how || !v->notice)
                return;
        text = strf("Pod %s cannot be evicted yet (%s%s%s)%s%s%s %s%s", key, pod_wait_to_string(b->wait), detail ? " " : "", strempty(detail),
                    isempty(b->message) ? "." : ": ", b->message, full_stop(b->message), how, outlook(v->notice, b, deadline_usec));
        say_full(v, LOG_LEVEL_WARNING, MESSAGE_POD_EVICTION_BLOCKED, key, pdb, NULL, text);
        tell_node(v, EVENT_WARNING, "DrainBlocked", text);
        tell_phase(v, NOTIFY_BLOCKED, SIZE_MAX, text);
}

/* Logs a warning about a pod and records it as an Event of the Node. text NULL: there was no memory for it. */
static void warn_of_pod(NodeVoice *v, const KubePod *pod, const char *message_id, const char *reason, const char *text) {
        _cleanup_free_ char *key = pod_key(pod);

        if (!key || !text)
                return;
        say_full(v, LOG_LEVEL_WARNING, message_id, key, NULL, NULL, text);
        tell_node(v, EVENT_WARNING, reason, text);
}

void node_voice_pod_stays(NodeVoice *v, const KubePod *pod) {
        _cleanup_free_ char *text = pod_returns_format(pod, v->node);

        warn_of_pod(v, pod, MESSAGE_POD_COMES_BACK, "PodComesBack", text);
}

void node_voice_pod_left_alone(NodeVoice *v, const KubePod *pod) {
        _cleanup_free_ char *text = pod_left_alone_format(pod, v->node);

        warn_of_pod(v, pod, MESSAGE_POD_LEFT_ALONE, "PodLeftAlone", text);
}

void node_voice_pod_deleted(NodeVoice *v, const KubePod *pod, usec_t deadline_usec) {
        _cleanup_free_ char *key = pod_key(pod), *text = NULL;
        char until[RFC3339_MAX];

        if (!key)
                return;
        rfc3339_format(deadline_usec, until);
        text = strf("Deleted pod %s past its disruption budget: node %s has to be empty by %s.", key,
                    v->node, until);
        say_full(v, LOG_LEVEL_WARNING, MESSAGE_POD_DELETED_AT_DEADLINE, key, NULL, NULL, text);
        tell_node(v, EVENT_WARNING, "PodDeletedAtDeadline", text);
        tell_pod(v, pod, EVENT_WARNING, "PodDeletedAtDeadline", text);
}

static char *join_names(char *const *names) {
        StrBuf b = { 0 };
        size_t n = 0;

        for (char *const *i = names; i && *i; i++, n++)
                if (n < NAMES_SHOWN)
                        strbuf_addf(&b, "%s%s", n > 0 ? ", " : "", *i);
        if (n > NAMES_SHOWN)
                strbuf_addf(&b, " and %zu more", n - NAMES_SHOWN);
        return strbuf_steal(&b);
}

void node_voice_volumes(NodeVoice *v, char *const *names) {
        _cleanup_free_ char *list = join_names(names);

        say(v, LOG_LEVEL_INFO, NULL, "The pods are gone; waiting for volumes to be let go: %s.",
            strempty(list));
}

void node_voice_volumes_given_up(NodeVoice *v, char *const *names) {
        _cleanup_free_ char *list = join_names(names);

        say(v, LOG_LEVEL_WARNING, NULL,
            "Not waiting any longer for volumes that are still in use: %s. "
            "Their pods may start late elsewhere.",
            strempty(list));
}

void node_voice_drained(NodeVoice *v, usec_t took_usec) {
        _cleanup_free_ char *text = NULL;
        char took[DURATION_MAX];

        text = took_usec == USEC_INFINITY ? strf("Node %s is drained.", v->node)
                                          : strf("Node %s is drained, %s after its notice.", v->node,
                                                 duration_format(took_usec, took));
        say_full(v, LOG_LEVEL_NOTICE, MESSAGE_NODE_DRAINED, NULL, NULL, NULL, text);
        tell_node(v, EVENT_NORMAL, "Drained", text);
        tell_phase(v, NOTIFY_DRAINED, 0, text);
}

void node_voice_expired(NodeVoice *v, const DrainBlocker *blockers, size_t n) {
        _cleanup_free_ char *list = NULL, *text = NULL;
        StrBuf b = { 0 };

        for (size_t i = 0; i < MIN(n, (size_t) NAMES_SHOWN); i++)
                strbuf_addf(&b, "%s%s/%s (%s%s%s)", i > 0 ? ", " : "", blockers[i].ns, blockers[i].name,
                            pod_wait_to_string(blockers[i].wait), isempty(blockers[i].detail) ? "" : " ", blockers[i].detail);
        if (n > NAMES_SHOWN)
                strbuf_addf(&b, " and %zu more", n - NAMES_SHOWN);
        list = strbuf_steal(&b);
        text = strf("The time for node %s is up with %zu pods still on it: %s.", v->node, n, strempty(list));
        say_full(v, LOG_LEVEL_ERROR, MESSAGE_DRAIN_FAILED, NULL, NULL, NULL, text);
        tell_node(v, EVENT_WARNING, "DrainFailed", text);
        tell_phase(v, NOTIFY_EXPIRED, n, text);
}

/* -- the end of it ------------------------------------------------------------------------------ */

void node_voice_cancelled(NodeVoice *v, const char *why) {
        _cleanup_free_ char *text = strf(
                "The interruption of node %s is over: %s. Undoing what this agent did, and nothing else.",
                v->node, why);

        say_full(v, LOG_LEVEL_NOTICE, MESSAGE_NOTICE_CANCELLED, NULL, NULL, NULL, text);
        tell_node(v, EVENT_NORMAL, "InterruptionCancelled", text);
        tell_phase(v, NOTIFY_CANCELLED, SIZE_MAX, text);
}

void node_voice_overruled(NodeVoice *v) {
        _cleanup_free_ char *text = strf(
                "Somebody made node %s schedulable again during its drain: the drain stops, the node stays open, and this notice is not acted upon again.",
                v->node);

        say_full(v, LOG_LEVEL_WARNING, MESSAGE_NODE_UNCORDONED, NULL, NULL, NULL, text);
        tell_node(v, EVENT_WARNING, "InterruptionCancelled", text);
        tell_phase(v, NOTIFY_RELEASED, SIZE_MAX, text);
}

void node_voice_left_over(NodeVoice *v, const char *why) {
        say(v, LOG_LEVEL_NOTICE, NULL, "Taking the marks of an interruption off node %s: %s.", v->node, why);
}

void node_voice_undone(NodeVoice *v, bool uncordoned) {
        if (uncordoned)
                say(v, LOG_LEVEL_NOTICE, MESSAGE_NODE_UNCORDONED, "Node %s is schedulable again.", v->node);
        else
                say(v, LOG_LEVEL_INFO, NULL, "Nothing of this agent stands on node %s any more.", v->node);
}

void node_voice_ending(NodeVoice *v) {
        static const char text[] = "The machine is going down: from here on nothing is undone, unless that is cancelled.";

        say_full(v, LOG_LEVEL_NOTICE, NULL, NULL, NULL, NULL, text);
        tell_phase(v, NOTIFY_ENDING, SIZE_MAX, text);
}

/* -- the machine's own shutdown ----------------------------------------------------------------- */

void node_voice_shutdown_limits(NodeVoice *v, const PowerLimits *l, const PowerBudget *b, bool refused,
                                bool kubelet_inhibits) {
        char total[DURATION_MAX], delay[DURATION_MAX], job[DURATION_MAX];

        duration_format(b->total_usec, total);
        duration_format(l->inhibit_delay_usec, delay);
        duration_format(l->job_timeout_usec, job);
        if (refused)
                say(v, LOG_LEVEL_ERROR, MESSAGE_SHUTDOWN_LIMITS,
                    "The machine gives a shutdown only %s (logind's InhibitDelayMaxSec=%s), less than [Shutdown] MaxSec=; as TooShort=refuse, node %s is not drained before a shutdown. "
                    "%s",
                    total, delay, v->node, b->remedy);
        else if (b->too_short)
                say(v, LOG_LEVEL_WARNING, MESSAGE_SHUTDOWN_LIMITS,
                    "A shutdown of node %s is delayed for its drain by %s at most, less than [Shutdown] MaxSec= (logind's InhibitDelayMaxSec=%s, JobTimeoutSec=%s of its target%s). "
                    "%s",
                    v->node, total, delay, job,
                    l->stop_extendable ? "" : ", no unit whose stop could be extended", b->remedy);
        else
                say(v, LOG_LEVEL_INFO, MESSAGE_SHUTDOWN_LIMITS,
                    "A shutdown of node %s is delayed for its drain by %s at most (logind's InhibitDelayMaxSec=%s, then the ordered stop, JobTimeoutSec=%s of its target).",
                    v->node, total, delay, job);
        if (kubelet_inhibits)
                say(v, LOG_LEVEL_WARNING, MESSAGE_SHUTDOWN_LIMITS,
                    "The kubelet's own graceful node shutdown is on: at a shutdown it kills pods while vesper evicts them. "
                    "Set shutdownGracePeriod: 0s in the kubelet's configuration.");
}

void node_voice_shutdown_began(NodeVoice *v, const Notice *n, usec_t budget_usec) {
        char text[DURATION_MAX];

        say(v, LOG_LEVEL_NOTICE, MESSAGE_SHUTDOWN_BEGAN,
            "This machine shuts down (%s, said by %s); %s at most for node %s.", action_of(n), n->source,
            duration_format(budget_usec, text), v->node);
}

void node_voice_shutdown_alone(NodeVoice *v, const char *why) {
        say(v, LOG_LEVEL_WARNING, MESSAGE_API_UNREACHABLE,
            "The API server does not answer while this machine shuts down: %s. "
            "Nothing can be evicted without it; what is stopping gets its time, the rest is stopped by systemd in order.",
            strempty(why));
}

void node_voice_shutdown_let_go(NodeVoice *v, const char *why, bool drains, size_t pods_left,
                                usec_t after_usec) {
        char text[DURATION_MAX], left[24] = "not known";

        if (pods_left != SIZE_MAX)
                (void) snprintf(left, sizeof(left), "%zu", pods_left);
        say(v, drains && pods_left > 0 ? LOG_LEVEL_WARNING : LOG_LEVEL_NOTICE, MESSAGE_SHUTDOWN_LET_GO,
            "The shutdown goes on, %s after it began: %s. Pods left on node %s: %s.",
            duration_format(after_usec, text), why, v->node, left);
}

void node_voice_shutdown_cancelled(NodeVoice *v) {
        say(v, LOG_LEVEL_NOTICE, MESSAGE_SHUTDOWN_CANCELLED, "The shutdown of this machine was cancelled.");
}
