/* SPDX-License-Identifier: Apache-2.0 */
#include "node-report.h"

#include "backoff.h"
#include "hashmap.h"
#include "log.h"
#include "marks.h"
#include "parse-util.h"
#include "string-util.h"

#define CORDON_TIMEOUT_USEC (2 * USEC_PER_SEC)
#define CALL_TIMEOUT_USEC (5 * USEC_PER_SEC)
#define RETRY_BASE_USEC (100 * USEC_PER_MSEC)
#define CORDON_RETRY_CAP_USEC USEC_PER_SEC /* until the deadline: nothing matters more */
#define RETRY_CAP_USEC (10 * USEC_PER_SEC)
#define RETRY_JITTER_PERMILLE 200u
/* Without a way to the server a retry is in vain until links or routes change (node_report_kick()), which somewhere else nobody
 * here is told of. */
#define NO_ROUTE_USEC (5 * USEC_PER_SEC)
#define SETTLE_USEC (100 * USEC_PER_MSEC)
#define PODS_LEFT_USEC (10 * USEC_PER_SEC)
#define CONFLICTS_AT_ONCE 5u
/* Time for which the informer may show an older Node than an answer did. The report reads the Node each time that it has passed. */
#define INFORMER_LAG_USEC USEC_PER_MINUTE
/* Agents whose watches stall together read their Nodes in turn. */
#define INFORMER_LAG_JITTER_USEC (12 * USEC_PER_SEC)

typedef enum ReportGoal { GOAL_NONE, GOAL_MARK, GOAL_UNMARK } ReportGoal;

typedef enum ReportWrite {
        WRITE_READ,
        WRITE_COMPARE, /* a read because the informer lags; no caller waits for it */
        WRITE_CORDON,
        WRITE_PHASE,
        WRITE_CONDITIONS,
        WRITE_UNDO
} ReportWrite;

/* What the annotation says (or shall say). */
typedef struct ReportText {
        InterruptionPhase phase;
        size_t pods_left;
        usec_t deadline_usec, announced_usec;
        uint64_t notice; /* a hash of what else of it stands there */
} ReportText;

struct NodeReport {
        KubeClient *client;
        Env *env;
        char *node;
        NodeReportHandler handler;
        KubeNode *view; /* a reference */
        ReportGoal goal;

        Notice *notice;
        ReportText wanted, acked, sent;
        DrainConditions wanted_conditions;
        const char *message;
        NoticeKind plan_kind;
        char *plan; /* the message of what is planned; NULL: nothing is */
        bool plan_said; /* by this process */
        bool cordoned, claimed, undone;
        bool released;    /* taken off because a person un-cordoned */
        usec_t sent_usec; /* when W1 left for the first time; 0: not yet */
        usec_t text_usec; /* when the annotation was written last */
        usec_t settle_usec;

        KubeCall *call;
        ReportWrite write;  /* valid while there is a call */
        char *sent_version; /* the resourceVersion that it carries */
        bool uncordons;     /* the undo under way */
        uint64_t told_version; /* resourceVersion of what the informer brought last; 0: none */
        usec_t lags_usec;   /* loop_now(): when the informer fell behind the view, or the Node was read for that; 0: it has not */
        bool stale;         /* a conflict: the view is older than the Node */
        bool wants_read;
        usec_t asked_usec;  /* when the latest request left that was answered with the Node; 0: none was */
        unsigned conflicts; /* in a row */
        bool failing;
        Backoff backoff;
        usec_t retry_usec;
        Timer *timer;
};

static void pump(NodeReport *r);

static void on_timer(Timer *t, void *userdata) {
        pump(userdata);
}

int node_report_new(KubeClient *c, const char *node, const NodeReportHandler *h, NodeReport **ret) {
        _cleanup_(node_report_freep) NodeReport *r = NULL;
        int k;

        assert(c && node && h && h->on_cordoned && h->on_undone && h->on_api && ret);
        r = new0(NodeReport, 1);
        if (!r)
                return -ENOMEM;

        r->client = c;
        r->env = kube_client_env(c);
        r->handler = *h;
        r->backoff = (Backoff){ .base_usec = RETRY_BASE_USEC,
                                .cap_usec = RETRY_CAP_USEC,
                                .jitter_permille = RETRY_JITTER_PERMILLE };
        r->node = strdup(node);
        if (!r->node)
                return -ENOMEM;
        k = timer_new(r->env->loop, "node-report", on_timer, r, &r->timer);
        if (k < 0)
                return k;
        *ret = TAKE_PTR(r);
        return 0;
}

static void forget_view(NodeReport *r) {
        if (r->view)
                kube_object_unref(&r->view->object);
        r->view = NULL;
}

NodeReport *node_report_free(NodeReport *r) {
        if (!r)
                return NULL;
        kube_call_free(r->call);
        timer_free(r->timer);
        notice_free(r->notice);
        forget_view(r);
        free(r->plan);
        free(r->sent_version);
        free(r->node);
        return mfree(r);
}

const KubeNode *node_report_view(const NodeReport *r) {
        return r->view;
}

static bool has_to_do(const NodeReport *r) {
        return r->goal != GOAL_NONE || r->plan_said;
}

static bool is_read(ReportWrite write) {
        return write == WRITE_READ || write == WRITE_COMPARE;
}

/* -- the view ----------------------------------------------------------------------------------- */

/* Answers and the watch overtake each other; versions of one kind can be compared as numbers. */
static bool version_is_older(const char *a, const char *b) {
        uint64_t x, y;

        return parse_uint64(strempty(a), &x) >= 0 && parse_uint64(strempty(b), &y) >= 0 && x < y;
}

static bool is_older(const KubeNode *a, const KubeNode *b) {
        return streq_ptr(a->object.meta.uid, b->object.meta.uid) &&
               version_is_older(a->object.meta.resource_version, b->object.meta.resource_version);
}

/* Nothing of what we said stands on a Node that is made anew. */
static void forget_said(NodeReport *r) {
        r->cordoned = false;
        r->acked = (ReportText){ 0 };
}

/* What was said there is there no more, nor does it say that a person took it back: etcd was restored from a
 * backup. */
static bool marks_are_lost(const NodeReport *r, const KubeNode *n) {
        return r->goal == GOAL_MARK && r->cordoned && !node_has_marks(n);
}

static void set_view(NodeReport *r, KubeNode *n) {
        bool other = r->view && !streq_ptr(r->view->object.meta.uid, n->object.meta.uid);

        kube_object_ref(&n->object);
        forget_view(r);
        r->view = n;
        r->stale = false;
        if (other || marks_are_lost(r, n))
                forget_said(r);
}

static void take_view(NodeReport *r, KubeNode *n) {
        if (r->view != n && !(r->view && is_older(n, r->view)))
                set_view(r, n);
}

bool node_report_is_cordoned(const NodeReport *r) {
        return r->cordoned || !r->view;
}

bool node_report_is_fresh(const NodeReport *r, usec_t max_age_usec) {
        return !r->view ||
               (r->asked_usec > 0 && loop_now(r->env->loop) < usec_add(r->asked_usec, max_age_usec));
}

void node_report_read(NodeReport *r) {
        if (r->wants_read)
                return;
        r->wants_read = true;
        pump(r);
}

/* An informer that goes back has listed anew: etcd was restored, with the Node as it was. */
static bool informer_went_back(NodeReport *r, const KubeNode *n) {
        uint64_t before = r->told_version;

        if (parse_uint64(strempty(n->object.meta.resource_version), &r->told_version) < 0)
                r->told_version = 0;
        return r->told_version < before;
}

/* Notes since when the informer is behind the view: the watch is late, or etcd was restored to a version that the informer had seen. Then
 * the informer never went back, and never reaches the version of the view. */
static void note_informer_lag(NodeReport *r) {
        uint64_t version;

        if (!r->view || r->told_version == 0 || parse_uint64(strempty(r->view->object.meta.resource_version), &version) < 0 ||
            version <= r->told_version) {
                r->lags_usec = 0;
                return;
        }
        if (r->lags_usec == 0)
                r->lags_usec = usec_add(loop_now(r->env->loop), random_below(r->env->random, INFORMER_LAG_JITTER_USEC));
        timer_arm_earlier(r->timer, usec_add(r->lags_usec, INFORMER_LAG_USEC));
}

void node_report_see(NodeReport *r, const KubeNode *node) {
        if (!node) {
                forget_view(r);
                forget_said(r);
                r->told_version = 0;
                note_informer_lag(r);
                return;
        }
        if (informer_went_back(r, node))
                set_view(r, (KubeNode *) node);
        else
                take_view(r, (KubeNode *) node);
        note_informer_lag(r);
        if (has_to_do(r))
                timer_arm_earlier(r->timer, r->retry_usec);
}

void node_report_listed(NodeReport *r, const KubeNode *node, const char *version) {
        if (!r->view || r->view == node || version_is_older(version, r->view->object.meta.resource_version))
                return;
        set_view(r, (KubeNode *) node);
        note_informer_lag(r);
        if (has_to_do(r))
                timer_arm_earlier(r->timer, r->retry_usec);
}

static void take_object(NodeReport *r, ReportWrite write, const Json *object) {
        KubeObject *o;

        if (!object || kube_object_decode(&kube_node_kind, object, kube_client_pool(r->client), &o) < 0)
                return;
        /* A read is right even where its version is smaller than one that was seen or sent before: etcd was restored. */
        if (write == WRITE_COMPARE && r->lags_usec == 0)
                ; /* the watch has caught up meanwhile, and may show what is newer */
        else if (is_read(write))
                set_view(r, (KubeNode *) o);
        else
                take_view(r, (KubeNode *) o);
        note_informer_lag(r);
        kube_object_unref(o);
}

/* -- answers ------------------------------------------------------------------------------------ */

static void acknowledge_cordon(NodeReport *r, bool claimed) {
        r->cordoned = true;
        r->claimed = claimed;
        r->acked = r->sent;
        r->text_usec = loop_now(r->env->loop);
        r->settle_usec = usec_add(r->text_usec, SETTLE_USEC);
        r->handler.on_cordoned(r, r->sent_usec, claimed, r->handler.userdata);
}

static void on_success(NodeReport *r, ReportWrite write) {
        /* It says nothing of the writes, which may go on to be refused. */
        if (is_read(write))
                return;
        backoff_reset(&r->backoff);
        r->retry_usec = 0;
        r->conflicts = 0;
        if (r->failing) {
                r->failing = false;
                r->handler.on_api(r, NULL, false, r->handler.userdata);
        }
        switch (write) {
        case WRITE_CORDON:
                acknowledge_cordon(r, r->claimed);
                break;
        case WRITE_PHASE:
                r->acked = r->sent;
                r->text_usec = loop_now(r->env->loop);
                break;
        case WRITE_UNDO:
                r->undone = true;
                r->handler.on_undone(r, r->uncordons, r->handler.userdata);
                break;
        case WRITE_READ:
        case WRITE_COMPARE:
        case WRITE_CONDITIONS:
                break;
        }
}

static bool is_urgent(const NodeReport *r) {
        return r->goal == GOAL_MARK && !r->cordoned && loop_now(r->env->loop) < r->notice->deadline_usec;
}

/* The first few go out again at once, with whatever Node is newer. */
static void on_conflict(NodeReport *r) {
        r->stale = r->view && streq_ptr(r->view->object.meta.resource_version, r->sent_version);
        r->backoff.cap_usec = is_urgent(r) ? CORDON_RETRY_CAP_USEC : RETRY_CAP_USEC;
        if (++r->conflicts > CONFLICTS_AT_ONCE)
                r->retry_usec = usec_add(loop_now(r->env->loop), backoff_next(&r->backoff, r->env->random));
}

static void on_failure(NodeReport *r, const ApiError *error) {
        bool urgent = is_urgent(r);
        usec_t delay, asked = error->retry_after_usec;
        bool first = !r->failing;

        r->failing = true;
        r->backoff.cap_usec = urgent ? CORDON_RETRY_CAP_USEC : RETRY_CAP_USEC;
        delay = backoff_next(&r->backoff, r->env->random);
        if (error->error == -EHOSTUNREACH && !urgent)
                delay = NO_ROUTE_USEC;
        r->retry_usec = usec_add(loop_now(r->env->loop),
                                 MAX(delay, urgent ? MIN(asked, CORDON_RETRY_CAP_USEC) : asked));
        r->handler.on_api(r, error, first, r->handler.userdata);
}

/* A write that was taken was decided on the newest Node: it is as good as a read for whoever waits for one.
 */
static void on_answered(NodeReport *r, ReportWrite write) {
        if (!is_read(write) && !r->wants_read)
                return;
        r->wants_read = false;
        if (r->handler.on_read)
                r->handler.on_read(r, r->handler.userdata);
}

static void on_reply(const KubeReply *reply, void *userdata) {
        NodeReport *r = userdata;
        ReportWrite write = r->write;

        r->call = kube_call_free(r->call);
        if (write == WRITE_CORDON && r->sent_usec == 0)
                r->sent_usec = reply->started_usec;
        if (!reply->error) {
                take_object(r, write, reply->object);
                r->asked_usec = reply->started_usec;
                on_success(r, write);
                on_answered(r, write);
        } else if (reply->error->http == 404 && is_read(write)) {
                node_report_see(r, NULL); /* the informer will bring the next one */
                on_answered(r, write);
        } else if (write == WRITE_COMPARE) {
                log_debug(r->env->log, "Failed to read node %s, whose watch is behind, retrying in a minute: %s", r->node,
                          strempty(reply->error->message));
        } else if (reply->error->http == 409) {
                on_conflict(r);
                r->handler.on_api(r, reply->error, false, r->handler.userdata);
        } else
                on_failure(r, reply->error);
        timer_arm_earlier(r->timer, r->retry_usec);
        if (r->goal == GOAL_MARK && r->handler.on_done && node_report_is_done(r))
                r->handler.on_done(r, r->handler.userdata);
}

/* -- sending ------------------------------------------------------------------------------------ */

static void send(NodeReport *r, ReportWrite write, KubePatchType type, const char *subresource,
                 const char *body) {
        KubeTarget target = { .kind = &kube_node_kind, .name = r->node, .subresource = subresource };
        KubeCallOptions options = {
                .lane = HTTP_LANE_URGENT,
                .timeout_usec = write == WRITE_CORDON ? CORDON_TIMEOUT_USEC : CALL_TIMEOUT_USEC,
        };
        int k = -ENOMEM;

        if (free_and_strdup(&r->sent_version, r->view->object.meta.resource_version) < 0)
                k = -ENOMEM;
        else if (is_read(write))
                k = kube_get(r->client, &target, &options, on_reply, r, &r->call);
        else if (body)
                k = kube_patch(r->client, &target, type, body, &options, on_reply, r, &r->call);
        if (k < 0) {
                log_debug_errno(r->env->log, k, "Failed to send a report on node %s, retrying: %m",
                                r->node);
                r->retry_usec = usec_add(loop_now(r->env->loop), RETRY_BASE_USEC);
                timer_arm_earlier(r->timer, r->retry_usec);
                return;
        }
        r->write = write;
}

static void read_node(NodeReport *r) {
        send(r, WRITE_READ, KUBE_PATCH_MERGE, NULL, NULL);
}

static char *format_text(NodeReport *r) {
        r->sent = r->wanted;
        return interruption_format(r->notice, r->wanted.phase, r->wanted.pods_left, r->env->boot_id);
}

static void send_cordon(NodeReport *r) {
        _cleanup_free_ char *text = format_text(r), *body = NULL, *why = NULL;
        const char *found = object_meta_annotation(&r->view->object.meta, ANNOTATION_INTERRUPTION);

        if (text && streq_ptr(found, text) && r->view->unschedulable) {
                /* An earlier try has landed, its answer was lost. */
                acknowledge_cordon(r, !node_is_cordoned_by_stranger(r->view));
                timer_arm_earlier(r->timer, 0);
                return;
        }
        if (!r->view->unschedulable && node_is_marked_with(r->view, r->notice->id, r->env->boot_id)) {
                /* The same, and a person has un-cordoned since: that is for the owner to see. */
                acknowledge_cordon(r, false);
                timer_arm_earlier(r->timer, 0);
                return;
        }
        why = strf("%s notice of %s: %s", notice_kind_to_string(r->notice->kind), r->notice->source,
                   r->notice->action ? r->notice->action : "ends");
        if (text && why)
                body = node_patch_mark(r->view, text, r->env->boot_id, why, &r->claimed);
        send(r, WRITE_CORDON, KUBE_PATCH_MERGE, NULL, body);
}

static void send_phase(NodeReport *r) {
        _cleanup_free_ char *text = format_text(r),
                            *body = text ? node_patch_interruption(r->view, text) : NULL;

        send(r, WRITE_PHASE, KUBE_PATCH_MERGE, NULL, body);
}

static void send_conditions_of(NodeReport *r, DrainConditions wanted, NoticeKind kind, const char *message) {
        _cleanup_free_ char *body = node_patch_conditions(r->view, wanted, kind, message, loop_wall(r->env->loop));

        send(r, WRITE_CONDITIONS, KUBE_PATCH_STRATEGIC, "status", body);
}

static void send_conditions(NodeReport *r, DrainConditions wanted) {
        send_conditions_of(r, wanted, r->notice ? r->notice->kind : _NOTICE_KIND_INVALID, r->message);
}

/* -- what is missing ---------------------------------------------------------------------------- */

/* When the annotation is to be written; USEC_INFINITY: it is right. */
static usec_t phase_due(const NodeReport *r) {
        if (r->wanted.phase != r->acked.phase || r->wanted.deadline_usec != r->acked.deadline_usec ||
            r->wanted.announced_usec != r->acked.announced_usec || r->wanted.notice != r->acked.notice)
                return 0;
        return r->wanted.pods_left != r->acked.pods_left ? usec_add(r->text_usec, PODS_LEFT_USEC)
                                                         : USEC_INFINITY;
}

/* Until the node controller has set the taint that follows from the cordon, a write of ours would only
 * collide with it. */
static bool is_settling(NodeReport *r, usec_t now) {
        if (now >= r->settle_usec || kube_node_has_taint(r->view, TAINT_UNSCHEDULABLE, NULL))
                return false;
        timer_arm_earlier(r->timer, r->settle_usec);
        return true;
}

/* Returns true if the Node has the wanted conditions with the message of this notice. The types alone do not
 * show that: a plan, or a notice that this one has replaced, has conditions of the same types. */
static bool conditions_stand(const NodeReport *r) {
        const Condition *c = node_own_condition(r->view, r->wanted_conditions == NODE_CONDITIONS_PLANNED ? CONDITION_MAINTENANCE_PLANNED
                                                                                                         : CONDITION_DRAIN_IN_PROGRESS);

        return node_conditions_stand(r->view, r->wanted_conditions, r->notice->kind) &&
               (!c || streq(strempty(c->message), strempty(r->message)));
}

static void pump_mark(NodeReport *r, usec_t now) {
        if (!r->cordoned) {
                send_cordon(r);
                return;
        }
        if (is_settling(r, now))
                return;

        if ((r->wanted_conditions == NODE_CONDITIONS_PLANNED || r->wanted_conditions == NODE_CONDITIONS_DRAINING) &&
            !conditions_stand(r))
                send_conditions(r, r->wanted_conditions);
        else if (phase_due(r) <= now)
                send_phase(r);
        else if (r->wanted_conditions == NODE_CONDITIONS_DRAINED && !conditions_stand(r))
                send_conditions(r, r->wanted_conditions);
        else if (phase_due(r) != USEC_INFINITY)
                timer_arm_earlier(r->timer, phase_due(r));
}

static void pump_unmark(NodeReport *r) {
        _cleanup_free_ char *body = NULL;
        int k;

        if (!r->undone) {
                r->uncordons = false;
                k = r->released ? node_patch_overruled(r->view, &body)
                                : node_patch_undo(r->view, &body, &r->uncordons);
                if (k != 0) {
                        send(r, WRITE_UNDO, KUBE_PATCH_MERGE, NULL, body);
                        return;
                }
                r->undone = true;
                r->handler.on_undone(r, false, r->handler.userdata);
        }
        if (r->goal != GOAL_UNMARK)
                return;
        if (node_conditions(r->view) != NODE_CONDITIONS_NONE)
                send_conditions(r, NODE_CONDITIONS_NONE);
        else
                r->goal = GOAL_NONE;
}

/* What it has told of a plan in this life; what an earlier one has left is for resume.h to undo. */
static void pump_plan(NodeReport *r) {
        const Condition *said = node_own_condition(r->view, CONDITION_MAINTENANCE_PLANNED);

        if (node_conditions(r->view) > NODE_CONDITIONS_PLANNED)
                return;
        if (!r->plan && !said)
                r->plan_said = false;
        else if (!r->plan)
                send_conditions_of(r, NODE_CONDITIONS_NONE, _NOTICE_KIND_INVALID, NULL);
        else if (said ? !streq_ptr(said->message, r->plan)
                      : !node_conditions_stand(r->view, NODE_CONDITIONS_PLANNED, r->plan_kind))
                send_conditions_of(r, NODE_CONDITIONS_PLANNED, r->plan_kind, r->plan);
}

static void pump_goal(NodeReport *r, usec_t now) {
        if (now < r->retry_usec) {
                timer_arm_earlier(r->timer, r->retry_usec);
                return;
        }
        if (!r->view)
                return; /* there is no Node; the informer will bring it */
        if (r->stale || r->wants_read)
                read_node(r);
        else if (r->goal == GOAL_MARK)
                pump_mark(r, now);
        else if (r->goal == GOAL_UNMARK)
                pump_unmark(r);
        if (r->goal == GOAL_NONE && !r->call && r->plan_said)
                pump_plan(r);
}

/* Reads the Node if the informer has been behind the view for INFORMER_LAG_USEC. */
static void pump_compare(NodeReport *r, usec_t now) {
        if (r->lags_usec == 0)
                return;
        if (now >= usec_add(r->lags_usec, INFORMER_LAG_USEC)) {
                r->lags_usec = usec_add(now, random_below(r->env->random, INFORMER_LAG_JITTER_USEC));
                send(r, WRITE_COMPARE, KUBE_PATCH_MERGE, NULL, NULL);
        }
        timer_arm_earlier(r->timer, usec_add(r->lags_usec, INFORMER_LAG_USEC));
}

static void pump(NodeReport *r) {
        usec_t now = loop_now(r->env->loop);

        if (!r->call && has_to_do(r))
                pump_goal(r, now);
        if (!r->call && !is_urgent(r))
                pump_compare(r, now);
}

/* -- what shall stand there --------------------------------------------------------------------- */

static uint64_t hash_notice(const Notice *n) {
        const uint64_t parts[] = { hash64(n->id, strlen(n->id)),
                                   hash64(strempty(n->action), strlen(strempty(n->action))),
                                   (uint64_t) n->by_hand };

        return hash64(parts, sizeof(parts));
}

static int take_wish(NodeReport *r, const NodeWish *w) {
        _cleanup_(notice_freep) Notice *copy = NULL;
        int k;

        assert(w->notice && w->phase != INTERRUPTION_PHASE_NONE);
        k = notice_copy(w->notice, &copy);
        if (k >= 0) {
                notice_free(r->notice);
                r->notice = TAKE_PTR(copy);
        } else if (r->goal == GOAL_MARK && r->notice && streq(r->notice->id, w->notice->id)) {
                /* What changes while it is reported needs no memory: only the action may be an older one. */
                r->notice->deadline_usec = w->notice->deadline_usec;
                r->notice->announced_usec = w->notice->announced_usec;
                r->notice->estimated = w->notice->estimated;
                r->notice->not_before_usec = w->notice->not_before_usec;
                r->notice->by_hand = w->notice->by_hand;
        } else
                return k;
        r->wanted = (ReportText){ .phase = w->phase,
                                  .pods_left = w->pods_left,
                                  .deadline_usec = w->notice->deadline_usec,
                                  .announced_usec = notice_announced(w->notice),
                                  .notice = hash_notice(r->notice) };
        r->wanted_conditions = w->conditions;
        r->message = w->message;
        return 0;
}

/* What is under way was for the other goal. */
static void change_goal(NodeReport *r, ReportGoal goal) {
        r->call = kube_call_free(r->call);
        r->goal = goal;
        r->cordoned = r->undone = r->released = r->wants_read = false;
        r->acked = (ReportText){ 0 };
        r->sent_usec = r->settle_usec = r->retry_usec = 0;
        r->conflicts = 0;
        backoff_reset(&r->backoff);
}

int node_report_mark(NodeReport *r, const NodeWish *w) {
        int k;

        k = take_wish(r, w);
        if (k < 0)
                return k;
        if (r->goal == GOAL_MARK) {
                timer_arm_earlier(r->timer, r->retry_usec);
                return 0;
        }
        change_goal(r, GOAL_MARK);
        pump(r);
        return 0;
}

/* What stands there already need not be written again. */
static void take_standing_text(NodeReport *r) {
        const Interruption *i = r->view ? node_interruption(r->view) : NULL;

        r->text_usec = loop_now(r->env->loop);
        if (!i || i->phase != r->wanted.phase || i->pods_left < 0)
                return;
        r->acked = (ReportText){ .phase = r->wanted.phase,
                                 .pods_left = (size_t) i->pods_left,
                                 .deadline_usec = i->notice->deadline_usec,
                                 .announced_usec = notice_announced(i->notice),
                                 .notice = hash_notice(i->notice) };
}

int node_report_resume(NodeReport *r, const NodeWish *w) {
        int k;

        k = take_wish(r, w);
        if (k < 0)
                return k;
        change_goal(r, GOAL_MARK);
        r->cordoned = true;
        take_standing_text(r);
        timer_arm_earlier(r->timer, 0);
        return 0;
}

int node_report_plan(NodeReport *r, NoticeKind kind, const char *text) {
        char *plan = text ? strf("vesper-agent%s", text) : NULL;

        if (text && !plan)
                return -ENOMEM;
        free(r->plan);
        r->plan = plan;
        r->plan_kind = kind;
        r->plan_said |= plan != NULL;
        if (has_to_do(r))
                timer_arm_earlier(r->timer, r->retry_usec);
        return 0;
}

void node_report_unmark(NodeReport *r) {
        if (r->goal == GOAL_UNMARK)
                return;
        change_goal(r, GOAL_UNMARK);
        timer_arm_earlier(r->timer, 0);
}

void node_report_overruled(NodeReport *r) {
        node_report_unmark(r);
        r->released = true;
}

void node_report_kick(NodeReport *r) {
        if (!has_to_do(r) || r->call)
                return;
        backoff_reset(&r->backoff);
        r->retry_usec = 0;
        timer_arm_earlier(r->timer, 0);
}

bool node_report_is_done(const NodeReport *r) {
        if (r->goal == GOAL_NONE)
                return true;
        return r->goal == GOAL_MARK && r->cordoned && !r->call && r->view && phase_due(r) == USEC_INFINITY &&
               (r->wanted_conditions == NODE_CONDITIONS_NONE || conditions_stand(r));
}

/* -- tests -------------------------------------------------------------------------------------- */

static bool plan_is_right(const NodeReport *r) {
        const Condition *said = node_own_condition(r->view, CONDITION_MAINTENANCE_PLANNED);

        if (node_conditions(r->view) > NODE_CONDITIONS_PLANNED)
                return true; /* the drain's conditions come first */
        return r->plan ? said && streq_ptr(said->message, r->plan) : !said;
}

/* Returns the state of the read or write of the Node that is due, or NULL. Nothing is due while there is no
 * Node: the informer reports its creation. */
static const char *what_is_due(const NodeReport *r) {
        if (!r->view)
                return NULL;
        if (r->wants_read || (r->stale && has_to_do(r)))
                return "to be read";
        if (r->goal == GOAL_UNMARK)
                return r->undone ? "conditions to be taken off" : "marks to be taken off";
        if (r->goal == GOAL_MARK && (!r->cordoned || phase_due(r) != USEC_INFINITY))
                return r->cordoned ? "annotation to be written" : "to be cordoned";
        if (r->goal == GOAL_MARK && r->wanted_conditions != NODE_CONDITIONS_NONE && !conditions_stand(r))
                return "conditions to be written";
        return r->goal == GOAL_NONE && r->plan_said && !plan_is_right(r) ? "plan to be written" : NULL;
}

void node_report_next_wakeup(const NodeReport *r, Wakeups *w) {
        const char *due = what_is_due(r);

        if (due) {
                wakeups_unfinished(w, "Node", r->node, due,
                                   MAX(NODE_REPORT_WAKEUP_USEC, usec_sub(r->retry_usec, w->now_usec)));
                wakeups_timer(w, r->timer);
                wakeups_await(w, r->call);
        }
        if (r->lags_usec == 0)
                return;
        wakeups_unfinished(w, "Node", r->node, "its watch is behind",
                           INFORMER_LAG_USEC + INFORMER_LAG_JITTER_USEC);
        wakeups_timer(w, r->timer);
        wakeups_await(w, r->call);
}

bool node_report_reads(const NodeReport *r) {
        return r->wants_read || r->call;
}
