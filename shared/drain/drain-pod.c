/* SPDX-License-Identifier: Apache-2.0 */
#include "node-drain-internal.h"

#include "log.h"
#include "string-util.h"

/* One pod of a drain: why it is still there, and what is done to it. */

/* Time until an eviction is asked for again after the API server said that the pod is gone (404), or that another pod has its name (409),
 * while the pod still stands in view. The watch's DELETED event ends the wait at once, so this delays no drain. It bounds how long the drain
 * takes a wrong answer for the truth. */
#define VANISHED_USEC (5 * USEC_PER_SEC)
/* A pod that is held for long is named again, but not at each turn of its PDB. */
#define HELD_AGAIN_USEC (10 * USEC_PER_MINUTE)
/* What goes within moments is not told that it is held. */
#define HELD_TELL_USEC (5 * USEC_PER_SEC)
/* So often in a row a DELETE may meet a pod that has changed since it was looked at; the next one goes on
 * the word of the look just made. */
#define CONFLICTS_MAX 3u
/* So long a look counts for an eviction with less than the pod's own grace: what it may cost a pod that
 * somebody deletes in between. */
#define LOOKED_USEC (2 * USEC_PER_SEC)

/* A pod that has no deletionTimestamp so long after its eviction was accepted is looked at; if it has none then, the eviction was
 * without effect, and it is asked for again. */
#define EFFECT_USEC (5 * USEC_PER_SEC)
#define WITHOUT_EFFECT_USEC (90 * USEC_PER_SEC)
/* The answer to the condition DisruptionTarget is waited for no longer. */
#define MARK_USEC (5 * USEC_PER_SEC)
#define DISRUPTION_TARGET "DisruptionTarget"

/* A delete that was accepted, and is not seen after so long, was lost, as when etcd was restored from a backup: no watch is
 * that late. */
#define LOST_USEC (10 * USEC_PER_MINUTE)

void drain_pod_forget_fresh(DrainPod *dp) {
        if (dp->fresh)
                kube_object_unref(&dp->fresh->object);
        dp->fresh = NULL;
}

void *drain_pod_free(void *p) {
        DrainPod *dp = p;

        if (dp->has_left)
                eviction_detach(dp->eviction);
        else
                eviction_free(dp->eviction);
        kube_call_free(dp->mark_call);
        kube_call_free(dp->delete_call);
        evictor_admission_end(dp->admission, NULL);
        kube_object_unref(&dp->pod->object);
        drain_pod_forget_fresh(dp);
        free(dp->sent_version);
        free(dp->deleted_version);
        free(dp->detail);
        free(dp->message);
        free(dp);
        return NULL;
}

/* -- why a pod is still there --------------------------------------------------------------------------- */

DrainBlocker drain_pod_blocker(const DrainPod *dp) {
        const ObjectMeta *m = &dp->pod->object.meta;

        return (DrainBlocker){
                .ns = strempty(m->ns),
                .name = m->name,
                .uid = m->uid,
                .wait = dp->wait,
                .detail = strempty(dp->detail),
                .message = strempty(dp->message),
                .since_usec = dp->since_usec,
                .end_usec = m->deletion_usec,
        };
}

void drain_pod_tell(DrainPod *dp, DrainPodEvent e, const EvictionReport *report) {
        NodeDrain *d = dp->drain;
        DrainBlocker b = drain_pod_blocker(dp);

        if (d->rules.returns && (e == DRAIN_POD_EVICTED || e == DRAIN_POD_DELETED))
                pod_returns_note_ended(d->rules.returns, dp->pod);
        if (d->handler.on_pod)
                d->handler.on_pod(d, e, dp->pod, &b, report, d->handler.userdata);
}

bool drain_pod_awaits_answer(const DrainPod *dp) {
        return dp->eviction && eviction_is_under_way(dp->eviction);
}

void drain_pod_tell_gone(DrainPod *dp) {
        drain_pod_tell(dp, DRAIN_POD_GONE, NULL);
        drain_pod_free(dp);
}

void drain_pod_tell_unanswered(DrainPod *dp) {
        if (dp->delete_call && !dp->ended)
                drain_pod_tell(dp, DRAIN_POD_DELETED, NULL);
        else if (drain_pod_awaits_answer(dp))
                drain_pod_tell(dp, DRAIN_POD_EVICTED, NULL);
}

/* True if it is a new one. Memory short: it stands without its detail. */
static bool drain_pod_set_wait(DrainPod *dp, PodWait wait, const char *detail, const char *message) {
        if (dp->wait == wait && streq(strempty(dp->detail), strempty(detail)))
                return false;
        dp->wait = wait;
        (void) free_and_strdup(&dp->detail, detail);
        (void) free_and_strdup(&dp->message, message);
        dp->since_usec = loop_server_wall(dp->drain->env->loop);
        dp->drain->changed = true;
        return true;
}

/* What a webhook says of a pod changes while it moves it: that stands in the status, and is not told anew. */
static void drain_pod_set_words(DrainPod *dp, const char *message) {
        if (streq(strempty(dp->message), message))
                return;
        (void) free_and_strdup(&dp->message, message);
        dp->drain->changed = true;
}

/* -- acting on one pod ---------------------------------------------------------------------------------- */

/* The newest that is known of it. */
const KubePod *drain_pod_known(const DrainPod *dp) {
        return dp->fresh ? dp->fresh : dp->pod;
}

/* Too late to look again, and with a second to ask for nothing is lost by a wrong word. */
static bool is_last_call(const NodeDrain *d) {
        return loop_server_wall(d->env->loop) >= usec_sub(d->rules.deadline_usec, USEC_PER_SEC);
}

/* Until a look has shown it as it is now. */
static void drain_pod_await_list(DrainPod *dp) {
        NodeDrain *d = dp->drain;

        if (dp->look == LOOK_NONE)
                dp->look = LOOK_WANTED;
        timer_arm_earlier(d->timer,
                          loop_from_server_wall(d->env->loop, usec_sub(d->rules.deadline_usec, USEC_PER_SEC)));
}

/* An eviction takes no version as precondition: a budget would be charged before it is refused. */
static bool drain_pod_was_listed(const DrainPod *dp) {
        return dp->listed_usec > 0 &&
               loop_now(dp->drain->env->loop) < usec_add(dp->listed_usec, LOOKED_USEC);
}

/* Whatever the answer is, nothing more is wished for a pod that has left. */
static void drain_pod_take_late_answer(DrainPod *dp, const EvictionReport *report) {
        list_remove(&dp->drain->left, &dp->left_node);
        if (report->answer == EVICTION_ACCEPTED)
                drain_pod_tell(dp, DRAIN_POD_EVICTED, report);
        drain_pod_tell_gone(dp);
}

/* The PDB that the API server would ask about the pod, borrowed; NULL: none, or nobody knows. */
static const KubePdb *drain_pod_pdb(const DrainPod *dp) {
        const NodeDrain *d = dp->drain;

        return d->handler.pdb_of ? d->handler.pdb_of(dp->pod, d->handler.userdata) : NULL;
}

/* Why the pod stays after this answer. A budget that cannot be counted says so itself: its condition goes into *message. */
static PodWait drain_pod_wait_of(const DrainPod *dp, const EvictionReport *report, const char **ret_message) {
        PodWait wait = pod_wait_of_answer(report->answer);
        const KubePdb *pdb = pod_wait_is_of_pdb(wait) ? drain_pod_pdb(dp) : NULL;

        *ret_message = pdb && pdb->sync_failed ? pdb->sync_failed : report->message;
        return pdb && pdb->sync_failed ? POD_WAIT_PDB_SYNC_FAILED : wait;
}

static void on_eviction(Eviction *w, const EvictionReport *report, void *userdata) {
        DrainPod *dp = userdata;

        if (dp->has_left) {
                drain_pod_take_late_answer(dp, report);
                return;
        }
        if (report->answer == EVICTION_ACCEPTED) {
                dp->evicted = true;
                dp->accepted_usec = loop_now(dp->drain->env->loop);
                (void) drain_pod_set_wait(dp, POD_WAIT_TERMINATING, NULL, NULL);
                drain_pod_tell(dp, DRAIN_POD_EVICTED, report);
                node_drain_tell_later(dp->drain);
                return;
        }
        if (eviction_answer_is_final(report->answer))
                dp->vanished_usec = loop_now(dp->drain->env->loop);
        else {
                dp->refused |=
                        report->answer != EVICTION_NO_ANSWER && report->answer != EVICTION_FLOW_CONTROL;
                const char *message;
                PodWait wait = drain_pod_wait_of(dp, report, &message);

                if (drain_pod_set_wait(dp, wait, report->by, message))
                        drain_pod_tell(dp, DRAIN_POD_BLOCKED, report);
                else if (report->answer == EVICTION_WEBHOOK)
                        drain_pod_set_words(dp, report->message);
        }
        node_drain_wake(dp->drain);
}

/* Behind a closed gate nothing is asked, and so nothing answers that it is blocked: say it here, if it
 * lasts. */
static void drain_pod_note_held(DrainPod *dp, const KubePdb *pdb) {
        NodeDrain *d = dp->drain;
        usec_t now = loop_now(d->env->loop), at;

        if (!eviction_is_held(dp->eviction))
                return;
        (void) drain_pod_set_wait(dp, POD_WAIT_PDB, pdb ? pdb->object.meta.name : NULL, "the PodDisruptionBudget allows no disruption now");
        at = dp->held_told_usec > 0 ? usec_add(dp->held_told_usec, HELD_AGAIN_USEC)
                                    : loop_from_server_wall(d->env->loop, usec_add(dp->since_usec, HELD_TELL_USEC));
        if (now < at) {
                timer_arm_earlier(d->timer, at);
                return;
        }
        dp->held_told_usec = now;
        timer_arm_earlier(d->timer, usec_add(now, HELD_AGAIN_USEC));
        drain_pod_tell(dp, DRAIN_POD_BLOCKED, NULL);
}

/* Its delete has been accepted, and is still to be seen. */
static bool drain_pod_delete_is_accepted(DrainPod *dp) {
        usec_t lost = usec_add(dp->accepted_usec, LOST_USEC);

        if (!streq_ptr(dp->deleted_version, drain_pod_known(dp)->object.meta.resource_version))
                return false;
        if (loop_now(dp->drain->env->loop) < lost) {
                timer_arm_earlier(dp->drain->timer, lost);
                return true;
        }
        dp->deleted_version = mfree(dp->deleted_version);
        return false;
}

/* Its eviction has been accepted, and the pod is still to be seen going. An admission webhook can turn an eviction into a dry run: the
 * API server accepts it, and the pod stays. */
static bool drain_pod_eviction_is_accepted(DrainPod *dp) {
        NodeDrain *d = dp->drain;
        usec_t now = loop_now(d->env->loop), seen = usec_add(dp->accepted_usec, EFFECT_USEC), again = usec_add(dp->accepted_usec, WITHOUT_EFFECT_USEC);

        if (!dp->evicted)
                return false;
        if (is_last_call(d))
                return true;
        if (now < seen)
                timer_arm_earlier(d->timer, seen);
        else if (dp->listed_usec < seen)
                drain_pod_await_list(dp); /* the watch may lie behind */
        else if (now < again) {
                dp->refused = true; /* as good as: near T it is deleted */
                if (drain_pod_set_wait(dp, POD_WAIT_WITHOUT_EFFECT, NULL, NULL))
                        drain_pod_tell(dp, DRAIN_POD_BLOCKED, NULL);
                timer_arm_earlier(d->timer, again);
        } else {
                dp->evicted = false;
                dp->eviction = eviction_free(dp->eviction);
        }
        return dp->evicted;
}

static void drain_pod_evict(DrainPod *dp, int64_t grace_sec) {
        NodeDrain *d = dp->drain;
        const KubePdb *pdb = drain_pod_pdb(dp);
        const char *name = pdb ? pdb->object.meta.name : NULL;
        int r;

        if (drain_pod_delete_is_accepted(dp) || drain_pod_eviction_is_accepted(dp))
                return;
        if (grace_sec >= 0 && !is_last_call(d) && !drain_pod_was_listed(dp)) {
                if (dp->eviction && !eviction_is_under_way(dp->eviction))
                        dp->eviction = eviction_free(dp->eviction);
                drain_pod_await_list(dp);
                return;
        }
        if (dp->vanished_usec > 0) {
                /* The watch will say so, too; if it does not, somebody was wrong. */
                usec_t again = usec_add(dp->vanished_usec, VANISHED_USEC);

                if (loop_now(d->env->loop) < again) {
                        timer_arm_earlier(d->timer, again);
                        return;
                }
                dp->vanished_usec = 0;
                dp->eviction = eviction_free(dp->eviction);
        }
        if (dp->eviction) {
                eviction_set_grace(dp->eviction, grace_sec);
                if (d->handler.pdb_of)
                        (void) eviction_set_pdb(dp->eviction, name);
                drain_pod_note_held(dp, pdb);
                return;
        }
        (void) drain_pod_set_wait(dp, name ? POD_WAIT_PDB_TURN : POD_WAIT_EVICTING, name, NULL);
        r = evictor_add(d->evictor, dp->pod, grace_sec, name, on_eviction, dp, &dp->eviction);
        if (r >= 0)
                drain_pod_note_held(dp, pdb);
        else {
                log_debug_errno(d->env->log, r,
                                "Failed to ask for the eviction of pod %s/%s, retrying: %m",
                                dp->pod->object.meta.ns, dp->pod->object.meta.name);
                timer_arm_earlier(d->timer, usec_add(loop_now(d->env->loop), USEC_PER_SEC));
        }
}

void drain_pod_note_deleted(DrainPod *dp) {
        free(dp->deleted_version);
        dp->deleted_version = TAKE_PTR(dp->sent_version);
        dp->accepted_usec = loop_now(dp->drain->env->loop);
        dp->n_conflicts = 0;
        backoff_reset(&dp->delete_backoff);
        (void) drain_pod_set_wait(dp, POD_WAIT_TERMINATING, NULL, NULL);
}

static void drain_pod_delete_later(DrainPod *dp, const ApiError *error) {
        NodeDrain *d = dp->drain;
        usec_t delay = MAX(backoff_next(&dp->delete_backoff, d->env->random), error->retry_after_usec);

        dp->delete_retry_usec = usec_add(loop_now(d->env->loop), delay);
        if (dp->ended || (dp->look != LOOK_NONE && dp->n_conflicts <= CONFLICTS_MAX))
                return;
        if (drain_pod_set_wait(dp, POD_WAIT_DELETE_FAILED, NULL, error->message))
                drain_pod_tell(dp, DRAIN_POD_BLOCKED, NULL);
}

static void on_deleted(const KubeReply *reply, void *userdata) {
        DrainPod *dp = userdata;
        NodeDrain *d = dp->drain;

        dp->delete_call = kube_call_free(dp->delete_call);
        dp->admission = evictor_admission_end(dp->admission, reply);
        if (!reply->error || reply->error->http == 404) {
                drain_pod_note_deleted(dp);
                if (!reply->error && !dp->ended)
                        drain_pod_tell(dp, DRAIN_POD_DELETED, NULL);
        } else if (reply->error->http == 409) {
                /* Changed since, or another pod of this name: a look tells. */
                dp->look = LOOK_WANTED;
                drain_pod_forget_fresh(dp);
                dp->n_conflicts++;
                if (dp->sent_blindly)
                        drain_pod_delete_later(dp, reply->error);
        } else
                drain_pod_delete_later(dp, reply->error);
        node_drain_act_at_once(d);
}

/* Of a pod that somebody has deleted meanwhile the API server counts a shortened grace from that moment:
 * what was reckoned from now would be over. So it goes only to the pod as we know it; but for one that needs
 * none any more, whose status its kubelet is just writing. */
static const char *delete_precondition(const DrainPod *dp, int64_t grace_sec) {
        if (grace_sec <= 0 || is_last_call(dp->drain) || (dp->n_conflicts >= CONFLICTS_MAX && dp->fresh))
                return NULL;
        return drain_pod_known(dp)->object.meta.resource_version;
}

/* -- the condition DisruptionTarget ---------------------------------------------------------------------- */

/* The pod with the condition is another state of it, and newer than the view. */
static void drain_pod_take_marked(DrainPod *dp, const Json *object) {
        KubeObject *o = NULL;

        if (!object || kube_object_decode(dp->pod->object.kind, object, kube_client_pool(dp->drain->client), &o) < 0)
                return;
        drain_pod_forget_fresh(dp);
        dp->fresh = (KubePod *) o;
}

static void on_marked(const KubeReply *reply, void *userdata) {
        DrainPod *dp = userdata;
        NodeDrain *d = dp->drain;

        if (reply->error)
                log_debug(d->env->log, "Failed to set condition " DISRUPTION_TARGET " of pod %s/%s, deleting it without: %s",
                          dp->pod->object.meta.ns, dp->pod->object.meta.name, strempty(reply->error->message));
        else
                drain_pod_take_marked(dp, reply->object);
        dp->mark_call = kube_call_free(dp->mark_call);
        node_drain_act_at_once(d);
}

static char *mark_body(const DrainPod *dp) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_object(w, NULL);
        json_open_object(w, "metadata");
        json_add_string(w, "uid", dp->pod->object.meta.uid);
        json_close_object(w);
        json_open_object(w, "status");
        json_open_array(w, "conditions");
        json_open_object(w, NULL);
        json_add_string(w, "type", DISRUPTION_TARGET);
        json_add_string(w, "status", "True");
        json_add_string(w, "reason", "DeletionByVesper");
        json_add_string(w, "message", "vesper deletes this pod without asking its PodDisruptionBudgets: its grace would not fit before the deadline of its node");
        json_add_time(w, "lastTransitionTime", loop_server_wall(dp->drain->env->loop));
        json_close_object(w);
        json_close_array(w);
        json_close_object(w);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

/* A pod that is to be deleted first gets the condition DisruptionTarget, as an evicted one does (KEP-3329): a Job's podFailurePolicy
 * goes by it. True: its answer is waited for. Where it fails, or no time is left, the pod is deleted without. */
static bool drain_pod_awaits_mark(DrainPod *dp) {
        NodeDrain *d = dp->drain;
        const ObjectMeta *m = &dp->pod->object.meta;
        KubeTarget target = { .kind = dp->pod->object.kind, .ns = m->ns, .name = m->name, .subresource = "status" };
        KubeCallOptions call = { .lane = HTTP_LANE_BULK, .guard = d->guard, .timeout_usec = MARK_USEC };
        _cleanup_free_ char *body = NULL;

        if (is_last_call(d) || dp->ended || drain_pod_known(dp)->object.meta.deletion_usec > 0)
                return false;
        if (dp->is_marked)
                return dp->mark_call;
        body = mark_body(dp);
        dp->is_marked = body && kube_patch(d->client, &target, KUBE_PATCH_STRATEGIC, body, &call, on_marked, dp, &dp->mark_call) >= 0;
        return dp->is_marked;
}

/* The plan is made anew: what is left until T has become less meanwhile. */
static void on_admitted(EvictorAdmission *a, void *userdata) {
        DrainPod *dp = userdata;

        node_drain_act_at_once(dp->drain);
}

/* Has it a place for its delete? If not, it asks for one. */
static bool drain_pod_is_admitted(DrainPod *dp) {
        NodeDrain *d = dp->drain;

        dp->wants_admission = true;
        if (dp->admission)
                return evictor_admission_is_given(dp->admission);
        if (evictor_admit(d->evictor, on_admitted, dp, &dp->admission) < 0)
                timer_arm_earlier(d->timer, usec_add(loop_now(d->env->loop), USEC_PER_SEC));
        return false;
}

static void drain_pod_delete(DrainPod *dp, int64_t grace_sec) {
        NodeDrain *d = dp->drain;
        const ObjectMeta *m = &drain_pod_known(dp)->object.meta;
        KubeTarget target = { .kind = &kube_pod_kind, .ns = m->ns, .name = m->name };
        KubeDeleteOptions options = { .uid = m->uid,
                                      .resource_version = delete_precondition(dp, grace_sec),
                                      .grace_sec = grace_sec };
        KubeCallOptions call = { .lane = HTTP_LANE_BULK, .guard = d->guard };
        usec_t now = loop_now(d->env->loop);

        dp->eviction = eviction_free(dp->eviction);
        if (dp->delete_call || drain_pod_delete_is_accepted(dp))
                return; /* under way, or done and not yet in view */
        if (dp->look != LOOK_NONE && !is_last_call(d)) {
                drain_pod_await_list(dp);
                return;
        }
        if (now < dp->delete_retry_usec) {
                timer_arm_earlier(d->timer, dp->delete_retry_usec);
                return;
        }
        if (!evictor_has_permit(d->evictor) || !drain_pod_is_admitted(dp))
                return; /* whoever gives it wakes us */
        if (drain_pod_awaits_mark(dp))
                return;
        dp->sent_blindly = !options.resource_version;
        if (free_and_strdup(&dp->sent_version, m->resource_version) < 0 ||
            kube_delete(d->client, &target, &options, &call, on_deleted, dp, &dp->delete_call) < 0) {
                dp->wants_admission = false;
                timer_arm_earlier(d->timer, usec_add(now, USEC_PER_SEC));
        }
}

static void drain_pod_hold(DrainPod *dp, const PodPlan *p) {
        dp->drain->any_held = true;
        dp->eviction = eviction_free(dp->eviction);
        if (p->pod_class == POD_CLASS_PROTECTED) {
                if (drain_pod_set_wait(dp, POD_WAIT_PROTECTED, p->protected_by, NULL))
                        drain_pod_tell(dp, DRAIN_POD_BLOCKED, NULL);
        } else if (pod_is_critical(dp->pod))
                (void) drain_pod_set_wait(dp, POD_WAIT_OTHERS, NULL, NULL);
        else
                (void) drain_pod_set_wait(dp, POD_WAIT_PROTECTED_OTHERS, NULL, NULL);
}

/* With no grace at all: nothing runs that it could be for. Its kubelet does the same in a moment; so a
 * refusal is no news. */
static bool drain_pod_finish(DrainPod *dp, usec_t wall_now) {
        NodeDrain *d = dp->drain;

        if (!d->handler.has_ended || !drain_may_finish(drain_pod_known(dp), wall_now) ||
            !d->handler.has_ended(drain_pod_known(dp), d->handler.userdata))
                return false;
        dp->ended = true;
        drain_pod_delete(dp, 0);
        return true;
}

/* drain_plan_due(), but for one that is on its way out. */
static usec_t drain_pod_due(const DrainPod *dp, const PodPlan *p, usec_t wall_now) {
        if (p->action == POD_ACTION_EVICT && dp->evicted && dp->wait != POD_WAIT_WITHOUT_EFFECT)
                return USEC_INFINITY;
        return drain_plan_due(drain_pod_known(dp), p, &dp->drain->rules, wall_now);
}

/* Whoever looks after the pod should hear it while something can be done. */
static void drain_pod_tell_due(DrainPod *dp, const PodPlan *p, usec_t wall_now) {
        NodeDrain *d = dp->drain;
        usec_t due = drain_pod_due(dp, p, wall_now), now = loop_now(d->env->loop), at;

        if (!d->handler.on_due || due == USEC_INFINITY)
                return;
        at = drain_plan_warn_at(dp->met_usec, loop_from_server_wall(d->env->loop, due));
        if (now < at)
                timer_arm_earlier(d->timer, at);
        else if (!d->handler.on_due(d, drain_pod_known(dp), due, d->handler.userdata))
                timer_arm_earlier(d->timer, usec_add(now, DRAIN_WARN_AGAIN_USEC));
}

bool drain_pod_is_awaited(const DrainPod *dp) {
        if (dp->eviction)
                return dp->evicted || dp->vanished_usec > 0;
        return dp->wait != POD_WAIT_OTHERS;
}

static void drain_pod_follow_plan(DrainPod *dp, const PodPlan *p) {
        switch (p->action) {
        case POD_ACTION_NONE:
                break;
        case POD_ACTION_WAIT:
                /* Often the watch is faster than the answer that it comes from. */
                if (dp->eviction && !eviction_is_under_way(dp->eviction))
                        dp->eviction = eviction_free(dp->eviction);
                (void) drain_pod_set_wait(dp, POD_WAIT_TERMINATING, NULL, NULL);
                break;
        case POD_ACTION_HOLD:
                drain_pod_hold(dp, p);
                break;
        case POD_ACTION_EVICT:
                drain_pod_evict(dp, p->grace_sec);
                break;
        case POD_ACTION_DELETE:
                drain_pod_delete(dp, p->grace_sec);
                break;
        case _POD_ACTION_MAX:
                assert(false && "a plan without an action");
        }
}

void drain_pod_act(DrainPod *dp, const PodPlan *p, usec_t wall_now) {
        dp->wants_admission = dp->delete_call;
        if (!drain_pod_finish(dp, wall_now)) {
                drain_pod_tell_due(dp, p, wall_now);
                drain_pod_follow_plan(dp, p);
        }
        if (!dp->wants_admission)
                dp->admission = evictor_admission_end(dp->admission, NULL);
}

/* -- tests ---------------------------------------------------------------------------------------------- */

/* Returns true if the watch will show the next change of this pod, or of the pods that it is held for. If the
 * watch or a list has shown that the pod is terminating, the watch will show its end. POD_WAIT_TERMINATING alone
 * does not count: a pod whose eviction or delete was accepted, or that a list did not show any more, has a timer
 * until the watch agrees. */
static bool drain_pod_is_watched(const DrainPod *dp) {
        return drain_pod_known(dp)->object.meta.deletion_usec > 0 || dp->wait == POD_WAIT_PROTECTED ||
               dp->wait == POD_WAIT_OTHERS || dp->wait == POD_WAIT_PROTECTED_OTHERS;
}

void drain_pod_next_wakeup(const DrainPod *dp, Wakeups *w) {
        const NodeDrain *d = dp->drain;

        wakeups_unfinished(w, "pod to evict", dp->pod->object.meta.name, pod_wait_to_string(dp->wait),
                           NODE_DRAIN_WAKEUP_USEC);
        wakeups_timer(w, d->timer);
        wakeups_await(w, drain_pod_is_watched(dp) || dp->delete_call || dp->mark_call);
        /* LOOK_WANTED: the drain lists pods already, and starts the next list when that one is answered. */
        wakeups_await(w, dp->look != LOOK_NONE && d->look);
        /* evictor_next_wakeup() reports the eviction */
        wakeups_await(w, dp->eviction && !dp->evicted && dp->vanished_usec == 0);
        wakeups_await(w, dp->wants_admission && !dp->delete_call && dp->admission &&
                      !evictor_admission_is_given(dp->admission));
        wakeups_await(w, !evictor_has_permit(d->evictor));
}
