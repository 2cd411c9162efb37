/* SPDX-License-Identifier: Apache-2.0 */
#include "heard-voice.h"

#include <inttypes.h>

#include "heard-conditions.h"
#include "log-catalog.h"
#include "log.h"
#include "marks.h"
#include "pod-names.h"
#include "pod-voice.h"
#include "removal-notify.h"
#include "string-util.h"

#define NAMED_MAX 5u

void heard_voice_done(HeardVoice *v) {
        v->notice = notice_free(v->notice);
        v->left = mfree(v->left);
}

void heard_voice_set(HeardVoice *v, const Notice *notice, bool is_held) {
        v->is_held = is_held;
        if (v->notice && !streq(v->notice->id, notice->id)) {
                v->told_phase = 0;
                v->is_draining = false;
        }
        v->notice = notice_free(v->notice);
        (void) notice_copy(notice, &v->notice);
}

static void tell_receiver(HeardVoice *v, const KubeNode *n, NotifyPhase phase, const char *text) {
        const TerminationContext *c = v->context;

        if (!c->notify || !v->notice || !text || (v->told_phase & (1u << phase)) ||
            (c->config->notify_agents_tell && removal_notify_is_agents(n, phase, v->is_draining)))
                return;
        v->told_phase |= 1u << phase;
        notify_sender_tell(c->notify, &(NotifyFacts){ .phase = phase,
                                                      .node = n->object.meta.name,
                                                      .node_uid = n->object.meta.uid,
                                                      .notice_id = v->notice->id,
                                                      .kind = notice_kind_to_string(v->notice->kind),
                                                      .source = v->notice->source,
                                                      .action = v->notice->action,
                                                      .deadline_usec = notice_announced(v->notice),
                                                      .pods_left = phase == NOTIFY_DRAINED ? 0 : -1,
                                                      .message = text });
}

/* -- the node ------------------------------------------------------------------------------------------- */

static const struct {
        LogLevel level;
        const char *message_id;
        EventType type;
        const char *reason; /* of the Event; NULL: as end_event_reasons[] */
        NotifyPhase phase;
        const char *text;   /* behind "Node NAME"; NULL: as text_of() */
} steps[_HEARD_STEP_MAX] = {
        [HEARD_STEP_CORDONED] = { LOG_LEVEL_NOTICE, MESSAGE_NODE_CORDONED, EVENT_NORMAL, "Cordoned", NOTIFY_NOTICED, NULL },
        [HEARD_STEP_DRAINED] = { LOG_LEVEL_NOTICE, MESSAGE_NODE_DRAINED, EVENT_NORMAL, "Drained", NOTIFY_DRAINED,
                                 "is drained for what the interruption queue announced: no pod is left to wait for. Its machine is left to its cloud" },
        [HEARD_STEP_EXPIRED] = { LOG_LEVEL_WARNING, MESSAGE_DRAIN_FAILED, EVENT_WARNING, "DeadlinePassed", NOTIFY_EXPIRED,
                                 "has reached the time that the interruption queue announced: nothing more is done. Pods left, which the machine takes along: " },
        [HEARD_STEP_ENDED] = { LOG_LEVEL_NOTICE, MESSAGE_NODE_UNCORDONED, EVENT_NORMAL, NULL, NOTIFY_CANCELLED, NULL },
};

static const char *const end_event_reasons[_HEARD_END_MAX] = {
        [HEARD_END_OUTLIVED] = "InterruptionOutlived",
        [HEARD_END_BOOTED] = "InterruptionOutlived",
        [HEARD_END_CALLED_OFF] = "InterruptionCalledOff",
        [HEARD_END_OVERRULED] = "InterruptionOverruled",
        [HEARD_END_MOVED] = "InterruptionMoved",
        [HEARD_END_EXEMPT] = "InterruptionNotActedUpon",
};

static char *cordoned_text(const HeardVoice *v, const char *node) {
        _cleanup_free_ char *announced = v->notice ? heard_announced_text(v->notice) : NULL;

        if (v->is_held)
                return strf("is cordoned, and its pods are evicted under their PodDisruptionBudgets: the interruption queue alone announced %s, "
                            "and the brake of the queue holds that. Until AWS, the node's agent or a person confirms the notice, vesper does not delete "
                            "pods at the announced time and does not end the machine. 'vesperctl let-go %s' shows what follows if you confirm it, "
                            "'vesperctl undrain %s' stops the drain",
                            announced ?: "a change of its machine", node, node);
        return strf("is cordoned and is now being drained: the interruption queue announced %s. For that, vesper does not end the machine. "
                    "'vesperctl undrain %s' stops the drain",
                    announced ?: "a change of its machine", node);
}

/* Returns why the drain has ended. Adds that vesper's cordon is off, or, where a person has overruled a scale-in, that the hook is not answered. */
static char *ended_text(const HeardVoice *v) {
        const char *more = "";

        if (v->why != HEARD_END_OVERRULED)
                more = ". vesper has taken its own cordon off; a cordon of anybody else's stays";
        else if (v->notice && v->notice->kind == NOTICE_SCALE_IN)
                more = ". The hook of its Auto Scaling group is not answered any more: the group ends the machine "
                       "when the hook's time is over";
        return strf("is no longer drained: %s%s", heard_end_text(v->why), more);
}

static char *text_of(const HeardVoice *v, HeardStep step, const char *node) {
        if (step == HEARD_STEP_CORDONED)
                return cordoned_text(v, node);
        if (step == HEARD_STEP_ENDED)
                return ended_text(v);
        if (step == HEARD_STEP_DRAINED && v->is_held)
                return strf("is drained for what the interruption queue alone announced: no pod is left to wait for. The brake of the queue holds the notice, "
                            "and the machine stays until AWS, the node's agent or a person confirms it (vesperctl let-go %s)",
                            node);
        return strf("%s%s", steps[step].text, step == HEARD_STEP_EXPIRED ? strempty(v->left) : "");
}

static void tell_step(HeardVoice *v, const KubeNode *n, HeardStep step) {
        const char *name = n->object.meta.name;
        _cleanup_free_ char *said = text_of(v, step, name), *text = strf("Node %s %s.", name, strempty(said));
        EventObject o = event_object(&n->object);

        log_event(v->context->env->log, steps[step].level, steps[step].message_id, LOG_FIELDS({ "NODE", name }), "Node %s %s", name, strempty(said));
        event_record(v->context->recorder, &o, steps[step].type, step == HEARD_STEP_ENDED ? end_event_reasons[v->why] : steps[step].reason,
                     "This node %s", strempty(said));
        tell_receiver(v, n, step == HEARD_STEP_ENDED && v->why == HEARD_END_OVERRULED ? NOTIFY_RELEASED : steps[step].phase, text);
        if (step == HEARD_STEP_CORDONED) /* both at once, as the same patch says both */
                tell_receiver(v, n, NOTIFY_CORDONED, text);
}

void heard_voice_let_go(HeardVoice *v, const KubeNode *n, const Notice *notice, bool by_agent) {
        const char *name = n->object.meta.name, *why = by_agent ? "its agent reports it, too" : "a person let it go (" ANNOTATION_LET_GO ")";
        _cleanup_free_ char *announced = heard_announced_text(notice);
        EventObject o = event_object(&n->object);

        log_event(v->context->env->log, LOG_LEVEL_NOTICE, MESSAGE_INTERRUPTION_LET_GO, LOG_FIELDS({ "NODE", name }),
                  "The brake of the queue no longer holds what the interruption queue announced for node %s, %s: %s", name, strempty(announced), why);
        event_record(v->context->recorder, &o, EVENT_NORMAL, "InterruptionLetGo",
                     "The brake of the queue no longer holds what the interruption queue announced, %s: %s. vesper now acts upon it ([Interruption] Delete=; without "
                     "NodeClaim [Queue] Unmanaged=)",
                     strempty(announced), why);
}

void heard_voice_left(HeardVoice *v, const DrainBlocker *b, size_t n) {
        _cleanup_strbuf_ StrBuf text = { 0 };

        (void) pod_names_add(&text, b, n, NAMED_MAX, false);
        (void) free_and_strdup(&v->left, strbuf_str(&text));
}

void heard_voice_writing(HeardVoice *v, HeardStep step) {
        v->step = step;
}

void heard_voice_written(HeardVoice *v, const KubeNode *n, bool done) {
        if (done && v->step != HEARD_STEP_PROGRESS)
                tell_step(v, n, v->step);
}

void heard_voice_draining(HeardVoice *v, const KubeNode *n) {
        _cleanup_free_ char *text = NULL;

        if (v->is_draining)
                return;
        v->is_draining = true;
        log_event(v->context->env->log, LOG_LEVEL_INFO, MESSAGE_DRAIN_STARTED, LOG_FIELDS({ "NODE", n->object.meta.name }),
                  "Draining node %s for what the interruption queue announced", n->object.meta.name);
        text = strf("Node %s is being drained: its pods are evicted.", n->object.meta.name);
        tell_receiver(v, n, NOTIFY_DRAINING, text);
}

/* -- pods ----------------------------------------------------------------------------------------------- */

static void tell_blocked(HeardVoice *v, const KubeNode *n, const KubePod *pod, const DrainBlocker *b, usec_t deadline_usec) {
        EventObject o = event_object(&n->object);
        _cleanup_free_ char *text = pod_voice_blocked(v->context, &o, pod, b, deadline_usec, NULL);

        tell_receiver(v, n, NOTIFY_BLOCKED, text);
}

static void tell_deleted(HeardVoice *v, const KubeNode *n, const KubePod *pod, usec_t deadline_usec) {
        EventObject o = event_object(&n->object);

        pod_voice_deleted(v->context, &o, pod, deadline_usec, true);
}

static void tell_stays(HeardVoice *v, const KubeNode *n, const KubePod *pod) {
        EventObject o = event_object(&n->object);

        pod_voice_stays(v->context, &o, pod);
}

static void tell_left_alone(HeardVoice *v, const KubeNode *n, const KubePod *pod) {
        EventObject o = event_object(&n->object);

        pod_voice_left_alone(v->context, &o, pod);
}

void heard_voice_pod(HeardVoice *v, const KubeNode *n, DrainPodEvent e, const KubePod *pod, const DrainBlocker *blocker,
                     usec_t deadline_usec) {
        switch (e) {
        case DRAIN_POD_BLOCKED:
                tell_blocked(v, n, pod, blocker, deadline_usec);
                return;
        case DRAIN_POD_DELETED:
                tell_deleted(v, n, pod, deadline_usec);
                return;
        case DRAIN_POD_EVICTED:
                pod_voice_evicted(v->context, pod, n->object.meta.name, false);
                return;
        case DRAIN_POD_STAYS:
                tell_stays(v, n, pod);
                return;
        case DRAIN_POD_LEFT_ALONE:
                tell_left_alone(v, n, pod);
                return;
        case DRAIN_POD_GONE:
                return;
        }
}
