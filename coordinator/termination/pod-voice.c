/* SPDX-License-Identifier: Apache-2.0 */
#include "pod-voice.h"

#include <inttypes.h>

#include "log-catalog.h"
#include "log.h"
#include "string-util.h"
#include "token-bucket.h"

char *pod_voice_blocked(const TerminationContext *c, const EventObject *node, const KubePod *pod, const DrainBlocker *b,
                        usec_t deadline_usec, const char *no_deadline) {
        const char *remedy = pod_wait_remedy(b->wait), *reason = pod_wait_to_string(b->wait);
        _cleanup_free_ char *name = strf("%s/%s", b->ns, b->name), *until = NULL;
        char when[RFC3339_MAX], *text;

        if (!name)
                return NULL;
        if (deadline_usec != USEC_INFINITY) {
                rfc3339_format(usec_sub(deadline_usec, drain_grace(pod->grace_sec)), when);
                until = strf(" It is deleted at %s, if it is still there then", when);
        }
        text = strf("pod %s (%s%s%s)%s%s%s%s%s%s", name, reason, isempty(b->detail) ? "" : " ", b->detail, isempty(b->message) ? "." : ": ",
                    b->message, full_stop(b->message), remedy ? " " : "", strempty(remedy), until ?: strempty(no_deadline));
        log_event(c->env->log, LOG_LEVEL_WARNING, MESSAGE_POD_EVICTION_BLOCKED,
                  LOG_FIELDS({ "NODE", node->name }, { "POD", name }, { "REASON", reason },
                             { "PDB", pod_wait_is_of_pdb(b->wait) ? b->detail : NULL }),
                  "Node %s waits for %s", node->name, strempty(text));
        event_record(c->recorder, node, EVENT_WARNING, "DrainBlocked", "This node waits for %s", strempty(text));
        return text;
}

void pod_voice_evicted(const TerminationContext *c, const KubePod *pod, const char *node, bool deleted) {
        EventObject o = event_object(&pod->object);
        usec_t at;

        if (!token_bucket_take(c->eviction_events, loop_now(c->env->loop), &at))
                return;
        event_record(c->recorder, &o, EVENT_NORMAL, "Evicted",
                     deleted ? "Evicted by vesper: node %s is being deleted"
                             : "Evicted by vesper: the interruption queue announced an interruption of node %s",
                     node);
}

void pod_voice_deleted(const TerminationContext *c, const EventObject *node, const KubePod *pod, usec_t deadline_usec, bool is_heard) {
        _cleanup_free_ char *name = strf("%s/%s", pod->object.meta.ns, pod->object.meta.name);
        EventObject o = event_object(&pod->object);
        char when[RFC3339_MAX] = "";

        if (deadline_usec != USEC_INFINITY)
                rfc3339_format(deadline_usec, when);
        log_event(c->env->log, LOG_LEVEL_WARNING, MESSAGE_POD_DELETED_AT_DEADLINE,
                  LOG_FIELDS({ "NODE", node->name }, { "POD", name }, { "DEADLINE", when }),
                  "Deleted pod %s of node %s without asking its PodDisruptionBudget: its grace of %" PRIi64
                  " s would not have fitted before %s",
                  strempty(name), node->name, pod->grace_sec, when);
        event_record(c->recorder, &o, EVENT_WARNING, "PodDeletedAtDeadline",
                     is_heard ? "The machine of node %s may be gone from %s on: with a grace of %" PRIi64 " s this pod could not wait for an eviction any longer"
                              : "Node %s goes at %s: with a grace of %" PRIi64 " s this pod could not wait for an eviction any longer",
                     node->name, when, pod->grace_sec);
}

void pod_voice_stays(const TerminationContext *c, const EventObject *node, const KubePod *pod) {
        _cleanup_free_ char *name = strf("%s/%s", pod->object.meta.ns, pod->object.meta.name), *text = pod_returns_format(pod, node->name);

        log_event(c->env->log, LOG_LEVEL_WARNING, MESSAGE_POD_COMES_BACK, LOG_FIELDS({ "NODE", node->name }, { "POD", name }), "%s",
                  strempty(text));
        event_record(c->recorder, node, EVENT_WARNING, "PodComesBack", "%s", strempty(text));
}

void pod_voice_left_alone(const TerminationContext *c, const EventObject *node, const KubePod *pod) {
        _cleanup_free_ char *name = strf("%s/%s", pod->object.meta.ns, pod->object.meta.name);
        _cleanup_free_ char *text = pod_left_alone_format(pod, node->name);

        log_event(c->env->log, LOG_LEVEL_WARNING, MESSAGE_POD_LEFT_ALONE,
                  LOG_FIELDS({ "NODE", node->name }, { "POD", name }), "%s", strempty(text));
        event_record(c->recorder, node, EVENT_WARNING, "PodLeftAlone", "%s", strempty(text));
}
