/* SPDX-License-Identifier: Apache-2.0 */
#include "reboot.h"

#include "json.h"
#include "log-catalog.h"
#include "log.h"
#include "marks.h"
#include "node-marks.h"
#include "resume.h"
#include "string-util.h"

#define RETRY_USEC USEC_PER_SEC
#define CALL_TIMEOUT_USEC (5 * USEC_PER_SEC)
#define LOGIND_TIMEOUT_USEC (10 * USEC_PER_SEC)
/* Said to be done by logind, and the machine still here so long after: it did not. */
#define GONE_USEC USEC_PER_MINUTE
/* Where a step of the clock moves a scheduled shutdown by less, its request stands. */
#define DUE_DIFFERS_USEC (5 * USEC_PER_SEC)
#define GRANT_BYTES_MAX 1024u
/* What is scheduled asks so long before: its slot is nobody else's from then on. */
#define LEAD_USEC (10 * USEC_PER_MINUTE)
/* A request is written anew where its time is as wrong as that. */
#define CLOCK_SLACK_USEC (10 * USEC_PER_SEC)

struct Reboot {
        Env *env;
        const AgentConfig *config;
        KubeClient *client;
        RebootHandler handler;

        RebootState state;
        char *id, *text; /* of the request; NULL: none */
        const char *kind;
        usec_t until_usec;    /* loop_now(): so long it waits */
        usec_t told_usec;     /* ... as it says, by the API server's clock as far as that is known */
        usec_t slot_end_usec; /* HELD, GRANTED: loop_now() when its slot is over */
        bool forced;          /* nothing holds it */
        char *ended;          /* why the last one that was not scheduled did */
        bool unproved;        /* it is granted, and whether that still stands could not be asked */
        bool scheduled;       /* it will begin by itself */
        bool for_repair;      /* nobody but the annotation has asked */
        char *event;          /* it is for that one; NULL: for none */
        bool by_cloud;        /* ... and the coordinator has the cloud reboot the machine */
        bool event_cancelled; /* a person took back the last one that was for an event */
        bool repair_heard;    /* the annotation that stands was heeded */
        const char *due_kind; /* what is on logind's schedule; NULL: nothing */
        usec_t due_usec;
        KubeNode *node; /* a reference */
        KubeCall *call;
        BusSlot *logind;
        Timer *retry, *patience, *due;
};

static void pump(Reboot *r);

RebootState reboot_state(const Reboot *r) {
        return r->state;
}

static void say(Reboot *r, LogLevel level, const char *id, const char *text) {
        log_event(r->env->log, level, id,
                  LOG_FIELDS({ "NODE", r->config->node_name }, { "NOTICE_ID", r->id }), "%s", text);
}

/* What the API server's clock says now, at most: its answer says what it was at some moment after the
 * request had left, cut to its second. 0: it does not tell. */
static usec_t server_clock(const Reboot *r, const KubeReply *reply) {
        usec_t date = http_date(reply->response);

        return date == 0 ? 0 : date + USEC_PER_SEC + usec_sub(loop_now(r->env->loop), reply->started_usec);
}

static void set_state(Reboot *r, RebootState s) {
        r->state = s;
        r->handler.on_changed(r->handler.userdata);
}

bool reboot_is_by_hand(const Reboot *r) {
        return r->state != REBOOT_NONE && !r->scheduled;
}

bool reboot_is_told(const Reboot *r) {
        bool is_due = r->state == REBOOT_NONE && r->due_kind &&
                      loop_wall(r->env->loop) >= usec_sub(r->due_usec, LEAD_USEC);

        return !is_due && r->node &&
               streq_ptr(object_meta_annotation(&r->node->object.meta, ANNOTATION_SHUTDOWN_REQUEST), r->text);
}

const char *reboot_why_ended(const Reboot *r) {
        return r->ended;
}

/* -- the grant ---------------------------------------------------------------------------------- */

RebootAnswer reboot_answer(const KubeNode *n, const char *id, usec_t server_usec, usec_t *ret_until_usec) {
        const char *text = object_meta_annotation(&n->object.meta, ANNOTATION_SHUTDOWN_GRANTED);
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const char *until;

        *ret_until_usec = 0;
        if (!text || json_parse(text, strlen(text), GRANT_BYTES_MAX, &doc, NULL) < 0)
                return REBOOT_ANSWER_NONE;
        until = json_string_or_null(json_get(json_root(doc), "until"));
        if (!streq_ptr(json_string_or_null(json_get(json_root(doc), "id")), id) || !until ||
            rfc3339_parse(until, ret_until_usec) < 0)
                return REBOOT_ANSWER_NONE;
        return *ret_until_usec > usec_add(server_usec, REBOOT_REST_USEC) ? REBOOT_ANSWER_GRANTED
                                                                         : REBOOT_ANSWER_RUN_OUT;
}

static bool grant_is_sent(const KubeNode *n, const char *id) {
        const char *text = object_meta_annotation(&n->object.meta, ANNOTATION_SHUTDOWN_GRANTED);
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        bool sent = false;

        if (!text || json_parse(text, strlen(text), GRANT_BYTES_MAX, &doc, NULL) < 0 ||
            !streq_ptr(json_string_or_null(json_get(json_root(doc), "id")), id))
                return false;
        return json_bool(json_get(json_root(doc), "sent"), &sent) >= 0 && sent;
}

bool reboot_cloud_is_told(const Reboot *r) {
        return r->node && r->event && grant_is_sent(r->node, r->id);
}

static void on_logind(const BusReply *reply, void *userdata) {
        Reboot *r = userdata;

        r->logind = bus_slot_free(r->logind);
        if (reply->error >= 0)
                return;
        log_error_errno(r->env->log, reply->error, "logind does not reboot this machine (%s): %m",
                        reply->error_name);
        reboot_withdraw(r, "logind refused");
}

static void reboot_now(Reboot *r) {
        static const char *const args[] = { "false" };
        static const BusCall call = {
                "org.freedesktop.login1",
                "/org/freedesktop/login1",
                "org.freedesktop.login1.Manager",
                "Reboot",
                "b",
                args,
                LOGIND_TIMEOUT_USEC,
        };

        say(r, LOG_LEVEL_NOTICE, MESSAGE_REBOOT_GRANTED,
            "The coordinator granted the reboot of this node: rebooting now.");
        timer_arm_in(r->patience, GONE_USEC + r->config->shutdown_max_usec);
        set_state(r, REBOOT_REBOOTING);
        if (r->env->bus->ops->call(r->env->bus, &call, on_logind, r, &r->logind) < 0)
                reboot_withdraw(r, "logind cannot be reached");
}

/* -- the request on the Node -------------------------------------------------------------------- */

static char *format_request(const Reboot *r, const char *id, usec_t until_usec) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        char until[RFC3339_MAX];

        if (json_writer_new(&w) < 0)
                return NULL;
        rfc3339_format(until_usec, until);
        json_open_object(w, NULL);
        json_add_string(w, "id", id);
        json_add_string(w, "bootID", r->env->boot_id);
        json_add_string(w, "kind", r->kind);
        json_add_string(w, "until", until);
        if (r->event) {
                json_add_string(w, "event", r->event);
                if (r->by_cloud)
                        json_add_string(w, "by", "cloud");
        }
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

/* Until when it waits the coordinator reads by its own clock: what this node's clock made of it may be long
 * over there. */
static void mend_request(Reboot *r, usec_t server_usec) {
        usec_t until = usec_add(server_usec, usec_sub(r->until_usec, loop_now(r->env->loop)));
        usec_t wrong = MAX(until, r->told_usec) - MIN(until, r->told_usec);
        char *text;

        if (r->state != REBOOT_ASKED || server_usec == 0 || wrong <= CLOCK_SLACK_USEC)
                return;
        text = format_request(r, r->id, until);
        if (text) {
                free(r->text);
                r->text = text;
                r->told_usec = until;
        }
}

static void on_patched(const KubeReply *reply, void *userdata) {
        Reboot *r = userdata;

        mend_request(r, server_clock(r, reply));
        r->call = kube_call_free(r->call);
        if (reply->error)
                log_debug(r->env->log, "Failed to write the request for a reboot, retrying: %s",
                          reply->error->message);
        timer_arm_in(r->retry, RETRY_USEC); /* the informer brings what became of it */
}

/* Is what stands there, and is not ours, over? */
static bool is_left_over(const Reboot *r, const char *stands) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const char *boot_id = NULL;

        if (json_parse(stands, strlen(stands), GRANT_BYTES_MAX, &doc, NULL) >= 0)
                boot_id = json_string_or_null(json_get(json_root(doc), "bootID"));
        /* Of an earlier boot: the slot is kept until the node is Ready again. */
        return !boot_id || boot_id_equal(boot_id, r->env->boot_id) ||
               (kube_node_is_ready(r->node) && boot_id_equal(r->node->boot_id, r->env->boot_id));
}

static void write_request(Reboot *r, const char *stands) {
        const KubeTarget target = { .kind = &kube_node_kind, .name = r->config->node_name };
        const KubeCallOptions options = { .lane = HTTP_LANE_URGENT, .timeout_usec = CALL_TIMEOUT_USEC };
        _cleanup_free_ char *body = NULL;

        if (streq_ptr(stands, r->text) || (!r->text && !is_left_over(r, stands)))
                return;
        body = node_patch_annotation(r->node, ANNOTATION_SHUTDOWN_REQUEST, r->text);
        if (!body ||
            kube_patch(r->client, &target, KUBE_PATCH_MERGE, body, &options, on_patched, r, &r->call) < 0)
                timer_arm_in(r->retry, RETRY_USEC);
}

/* It reboots by itself, at its time. */
static void wait_for_schedule(Reboot *r) {
        say(r, LOG_LEVEL_NOTICE, NULL,
            "The coordinator granted the scheduled shutdown of this node; it begins when its time comes.");
        set_state(r, REBOOT_GRANTED);
}

/* Its owner has the node drained, and rebooted. */
static void take_slot(Reboot *r) {
        log_event(r->env->log, LOG_LEVEL_NOTICE, MESSAGE_REBOOT_GRANTED,
                  LOG_FIELDS({ "NODE", r->config->node_name }, { "NOTICE_ID", r->event }),
                  "The coordinator granted the reboot of this node that was announced as %s: draining the node now; then its machine is rebooted.",
                  r->event);
        timer_arm(r->patience, usec_sub(r->slot_end_usec, REBOOT_REST_USEC));
        set_state(r, REBOOT_TAKEN);
}

/* So that what comes of it is known before its slot is another's. */
static void hold(Reboot *r, const char *what) {
        timer_arm(r->patience, usec_sub(r->slot_end_usec, REBOOT_REST_USEC));
        if (r->state == REBOOT_HELD)
                return;
        log_event(r->env->log, LOG_LEVEL_WARNING, MESSAGE_REBOOT_HELD,
                  LOG_FIELDS({ "NODE", r->config->node_name }, { "NOTICE_ID", r->id }),
                  "The coordinator granted the reboot of this node, which waits for %s: no pod is evicted before. "
                  "It goes on when such pods are gone; vesper-agent --reboot --force goes on at once.",
                  what ? what : "a pod that opted out");
        set_state(r, REBOOT_HELD);
}

static void run_out(Reboot *r, usec_t until_usec, usec_t server_usec) {
        _cleanup_free_ char *why = NULL;
        char until[RFC3339_MAX], now[RFC3339_MAX];

        rfc3339_format(until_usec, until);
        rfc3339_format(server_usec, now);
        why = strf(
                "its slot is over (it ends at %s, and the API server's clock says %s): this agent heard of it too late, or [Budget] RebootSlotSec= of the coordinator is too little",
                until, now);
        reboot_withdraw(r, why ? why : "its slot is over");
}

/* Returns true if a coordinator asks for the end of this boot, of a node that a NodePool has adopted. */
static bool is_asked_for_repair(const Reboot *r, const KubeNode *n) {
        return r->config->repair_reboots && boot_id_equal(object_meta_annotation(&n->object.meta, ANNOTATION_REBOOT_FOR_REPAIR), r->env->boot_id) &&
               object_meta_has_finalizer(&n->object.meta, FINALIZER_TERMINATION) && object_meta_label(&n->object.meta, LABEL_NODE_POOL);
}

static void drop_repair(Reboot *r) {
        reboot_cancel(r, "the coordinator does not ask for it any more, to repair this node; the Events of this Node say why");
}

static void take_proof(Reboot *r, const KubeNode *n, usec_t server_usec) {
        _cleanup_free_ char *what = NULL;
        usec_t until;

        switch (reboot_answer(n, r->id, server_usec, &until)) {
        case REBOOT_ANSWER_NONE: /* not any more: the informer will bring it */
                break;
        case REBOOT_ANSWER_GRANTED:
                r->slot_end_usec = usec_add(loop_now(r->env->loop), usec_sub(until, server_usec));
                if (r->for_repair && !is_asked_for_repair(r, n)) /* taken off a moment ago: the informer does not know yet */
                        drop_repair(r);
                else if (r->scheduled)
                        wait_for_schedule(r);
                else if (!r->forced && r->handler.is_held(&what, r->handler.userdata))
                        hold(r, what);
                else if (r->event)
                        take_slot(r);
                else
                        reboot_now(r);
                break;
        case REBOOT_ANSWER_RUN_OUT: /* it is not granted twice, and keeps nobody waiting */
                run_out(r, until, server_usec);
                break;
        }
}

/* As the informer knows. */
static bool is_granted(const Reboot *r) {
        usec_t until;

        return (r->state == REBOOT_ASKED || r->state == REBOOT_HELD || r->state == REBOOT_TAKEN) && r->node &&
               reboot_answer(r->node, r->id, 0, &until) != REBOOT_ANSWER_NONE;
}

/* Once for each request. */
static void say_unproved(Reboot *r, const char *why) {
        if (!r->unproved)
                log_event(
                        r->env->log, LOG_LEVEL_WARNING, MESSAGE_REBOOT_UNPROVED,
                        LOG_FIELDS({ "NODE", r->config->node_name }, { "NOTICE_ID", r->id }),
                        "The coordinator granted this node a slot, and the API server does not say whether it still stands; asking again, and waiting: %s",
                        why);
        r->unproved = true;
}

static void on_proof(const KubeReply *reply, void *userdata) {
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
        Reboot *r = userdata;
        usec_t server_usec = server_clock(r, reply);
        int k = 0;

        r->call = kube_call_free(r->call);
        timer_arm_in(r->retry, RETRY_USEC);
        if (!reply->error)
                k = kube_object_decode(&kube_node_kind, reply->object, kube_client_pool(r->client), &o);
        if (!is_granted(r) || r->state == REBOOT_TAKEN) /* withdrawn meanwhile, and perhaps asked for anew */
                return;
        if (reply->error || k < 0)
                say_unproved(r, reply->error ? reply->error->message : strerror(-k));
        else if (server_usec == 0)
                reboot_withdraw(r, "the API server's answers do not tell its time (the header Date): nobody knows whether its slot is over; does a proxy take it off?");
        else
                take_proof(r, (const KubeNode *) o, server_usec);
}

/* Its view may be old, and its clock wrong. */
static void ask_proof(Reboot *r) {
        const KubeTarget target = { .kind = &kube_node_kind, .name = r->config->node_name };
        const KubeCallOptions options = { .lane = HTTP_LANE_URGENT, .timeout_usec = CALL_TIMEOUT_USEC };

        if (kube_get(r->client, &target, &options, on_proof, r, &r->call) < 0)
                timer_arm_in(r->retry, RETRY_USEC);
}

static void pump_held(Reboot *r) {
        _cleanup_free_ char *what = NULL;

        if (!is_granted(r)) {
                say(r, LOG_LEVEL_WARNING, MESSAGE_REBOOT_REQUESTED,
                    "The slot of this node was taken back: waiting for another one.");
                timer_arm(r->patience, r->until_usec);
                set_state(r, REBOOT_ASKED);
        } else if (!r->forced && r->handler.is_held(&what, r->handler.userdata))
                timer_arm_in(r->retry, RETRY_USEC);
        else
                ask_proof(r);
}

static void pump(Reboot *r) {
        const char *stands;

        if (!r->node || r->call || timer_is_armed(r->retry))
                return;
        stands = object_meta_annotation(&r->node->object.meta, ANNOTATION_SHUTDOWN_REQUEST);
        if (!streq_ptr(stands, r->text))
                write_request(r, stands);
        else if (r->state == REBOOT_HELD)
                pump_held(r);
        else if (r->state == REBOOT_TAKEN) {
                if (!is_granted(r))
                        reboot_withdraw(r, "its slot was taken off before the machine was rebooted");
        } else if (is_granted(r))
                ask_proof(r);
}

static void on_retry(Timer *t, void *userdata) {
        pump(userdata);
}

static const char *why_over(const Reboot *r) {
        if (r->state == REBOOT_HELD)
                return "its slot is over";
        if (r->state == REBOOT_TAKEN)
                return "its slot is over, and the machine was not rebooted in it";
        if (r->state != REBOOT_ASKED || r->scheduled)
                return "the machine was to go down, and is still here";
        if (r->unproved)
                return "it was granted, and the API server did not say within RebootPatienceSec= that this still stands";
        return "nobody granted it within RebootPatienceSec=. The Events of this Node say why, if a vesper-coordinator runs that grants reboots";
}

static void on_patience(Timer *t, void *userdata) {
        _cleanup_free_ char *why = NULL, *what = NULL;
        Reboot *r = userdata;

        if (r->state == REBOOT_HELD && r->handler.is_held(&what, r->handler.userdata) && what)
                why = strf("its slot is over, and it still waited for %s. Nothing was evicted. "
                           "Ask again when such pods are gone, or with --force",
                           what);
        reboot_withdraw(r, why ? why : why_over(r));
}

static void hear_repair(Reboot *r) {
        int k;

        if (!r->node)
                return;
        if (!is_asked_for_repair(r, r->node)) {
                if (r->for_repair && (r->state == REBOOT_ASKED || r->state == REBOOT_HELD))
                        drop_repair(r);
                r->repair_heard = false;
                return;
        }
        if (r->repair_heard)
                return;
        r->repair_heard = true;
        if (reboot_is_by_hand(r)) /* it is on its way, and its owner's to take back */
                return;
        log_event(r->env->log, LOG_LEVEL_NOTICE, MESSAGE_REBOOT_REQUESTED, LOG_FIELDS({ "NODE", r->config->node_name }),
                  "The coordinator has asked for a reboot of this node, as its NodePool has it repaired so (spec.repair).");
        k = reboot_request(r, false);
        r->for_repair = k >= 0;
        if (k < 0)
                log_warning_errno(r->env->log, k, "Failed to ask for the reboot by which this node is to be repaired, leaving it: %m");
}

void reboot_see_node(Reboot *r, const KubeNode *n) {
        if (r->node)
                kube_object_unref(&r->node->object);
        r->node = (KubeNode *) n;
        if (n)
                kube_object_ref(&r->node->object);
        hear_repair(r);
        pump(r);
}

/* -- asked for, taken back ---------------------------------------------------------------------- */

static int ask(Reboot *r, const char *kind, usec_t until_usec) {
        char uuid[UUID_MAX];

        random_uuid(r->env->random, uuid);
        r->kind = kind;
        r->until_usec = until_usec;
        r->told_usec = loop_to_wall(r->env->loop, until_usec);
        r->unproved = false;
        r->id = strdup(uuid);
        r->text = r->id ? format_request(r, r->id, r->told_usec) : NULL;
        if (!r->text) {
                r->id = mfree(r->id);
                return -ENOMEM;
        }
        set_state(r, REBOOT_ASKED);
        return 0;
}

int reboot_request(Reboot *r, bool force) {
        int k;

        if (r->state == REBOOT_REBOOTING)
                return 0;
        if (r->event)
                reboot_withdraw(r, "a person asks for one now");
        if (reboot_is_by_hand(r)) {
                r->forced |= force;
                r->for_repair = false; /* a person wants it, too */
                return 0;
        }
        if (!r->env->bus)
                return -EOPNOTSUPP;
        reboot_withdraw(r, "it is asked for at once");
        k = ask(r, "reboot", usec_add(loop_now(r->env->loop), r->config->reboot_patience_usec));
        if (k < 0)
                return k;
        r->scheduled = false;
        r->for_repair = false;
        r->forced = force;
        say(r, LOG_LEVEL_NOTICE, MESSAGE_REBOOT_REQUESTED,
            "Asked the coordinator for a slot to reboot this node.");
        timer_arm_in(r->patience, r->config->reboot_patience_usec);
        pump(r);
        return 0;
}

int reboot_request_early(Reboot *r, const char *event, bool by_cloud) {
        int k;

        if (r->state != REBOOT_NONE || r->due_kind)
                return -EBUSY;
        if (!r->env->bus && !by_cloud)
                return -EOPNOTSUPP;
        k = free_and_strdup(&r->event, event);
        r->by_cloud = by_cloud;
        r->scheduled = r->for_repair = r->forced = r->event_cancelled = false;
        if (k >= 0)
                k = ask(r, "reboot", usec_add(loop_now(r->env->loop), r->config->reboot_patience_usec));
        if (k < 0) {
                r->event = mfree(r->event);
                return k;
        }
        log_event(r->env->log, LOG_LEVEL_NOTICE, MESSAGE_REBOOT_REQUESTED,
                  LOG_FIELDS({ "NODE", r->config->node_name }, { "NOTICE_ID", r->event }),
                  "Asked the coordinator for a slot to take the announced reboot %s before its time ([Policy] Reboot=early).", r->event);
        timer_arm_in(r->patience, r->config->reboot_patience_usec);
        pump(r);
        return 0;
}

/* The request that stands, if it is of this boot, for that event, and granted: and as far as `told` and its grant say, the cloud is told. */
static int read_told(const Reboot *r, const KubeNode *n, const char *event, bool told, char **ret_id, bool *ret_by_cloud) {
        const char *text = object_meta_annotation(&n->object.meta, ANNOTATION_SHUTDOWN_REQUEST);
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const char *id;
        usec_t until;

        if (!text || json_parse(text, strlen(text), GRANT_BYTES_MAX, &doc, NULL) < 0)
                return 0;
        id = json_string_or_null(json_get(json_root(doc), "id"));
        *ret_by_cloud = streq_ptr(json_string_or_null(json_get(json_root(doc), "by")), "cloud");
        if (!id || !boot_id_equal(json_string_or_null(json_get(json_root(doc), "bootID")), r->env->boot_id) ||
            !streq_ptr(json_string_or_null(json_get(json_root(doc), "event")), event) ||
            reboot_answer(n, id, 0, &until) == REBOOT_ANSWER_NONE || !(*ret_by_cloud ? grant_is_sent(n, id) : told))
                return 0;
        *ret_id = strdup(id);
        return *ret_id ? 1 : -ENOMEM;
}

int reboot_take_over(Reboot *r, const KubeNode *n, const char *event, bool told, usec_t for_usec) {
        _cleanup_free_ char *id = NULL, *text = NULL, *of = NULL;
        bool by_cloud;
        int k;

        if (r->state != REBOOT_NONE)
                return 0;
        k = read_told(r, n, event, told, &id, &by_cloud);
        if (k <= 0)
                return k;
        text = strdup(object_meta_annotation(&n->object.meta, ANNOTATION_SHUTDOWN_REQUEST));
        of = strdup(event);
        if (!text || !of)
                return -ENOMEM;
        r->id = TAKE_PTR(id);
        r->text = TAKE_PTR(text);
        r->event = TAKE_PTR(of);
        r->by_cloud = by_cloud;
        r->kind = "reboot";
        r->scheduled = r->for_repair = r->forced = r->event_cancelled = r->unproved = false;
        log_event(r->env->log, LOG_LEVEL_NOTICE, MESSAGE_REBOOT_GRANTED,
                  LOG_FIELDS({ "NODE", r->config->node_name }, { "NOTICE_ID", r->event }),
                  "This agent was started anew after this node was drained for the announced reboot %s, and the cloud may have been told to reboot its machine: the node stays drained until that happens, for ten minutes at most.",
                  r->event);
        timer_arm_in(r->patience, for_usec);
        set_state(r, REBOOT_TAKEN);
        return 1;
}

const char *reboot_event(const Reboot *r) {
        return r->event;
}

bool reboot_event_was_cancelled(const Reboot *r) {
        return r->event_cancelled;
}

void reboot_go_on(Reboot *r) {
        assert(r->state == REBOOT_TAKEN);
        if (loop_now(r->env->loop) < usec_sub(r->slot_end_usec, REBOOT_REST_USEC))
                reboot_now(r);
}

void reboot_withdraw(Reboot *r, const char *why) {
        if (r->state == REBOOT_NONE)
                return;
        log_event(r->env->log, LOG_LEVEL_WARNING, MESSAGE_REBOOT_WITHDRAWN,
                  LOG_FIELDS({ "NODE", r->config->node_name }, { "NOTICE_ID", r->id }),
                  "The request to reboot this node is withdrawn: %s", why);
        if (!r->scheduled && !r->event)
                (void) free_and_strdup(&r->ended, why);
        r->id = mfree(r->id);
        r->text = mfree(r->text);
        r->event = mfree(r->event);
        r->logind = bus_slot_free(r->logind);
        timer_disarm(r->patience);
        set_state(r, REBOOT_NONE);
        timer_arm_earlier(r->retry, 0);
}

void reboot_cancel(Reboot *r, const char *why) {
        bool for_event = r->event;

        if (!reboot_is_by_hand(r) || r->state == REBOOT_REBOOTING)
                return;
        r->event_cancelled = for_event;
        reboot_withdraw(r, why);
        reboot_see_schedule(r, r->due_kind, r->due_usec); /* it asks for its own again */
}

/* -- scheduled ---------------------------------------------------------------------------------- */

static void on_due(Timer *t, void *userdata) {
        Reboot *r = userdata;
        usec_t now = loop_wall(r->env->loop);

        if (r->state != REBOOT_NONE || !r->due_kind || r->due_usec <= now)
                return;
        if (ask(r, r->due_kind, loop_from_wall(r->env->loop, r->due_usec)) < 0) {
                timer_arm_in(r->due, RETRY_USEC);
                return;
        }
        r->scheduled = true;
        say(r, LOG_LEVEL_NOTICE, MESSAGE_REBOOT_REQUESTED,
            "A shutdown of this machine is scheduled: asked the coordinator for its slot.");
        timer_arm_in(r->patience, usec_add(usec_sub(r->due_usec, now), GONE_USEC));
        pump(r);
}

void reboot_see_schedule(Reboot *r, const char *kind, usec_t at_usec) {
        r->due_kind = kind;
        r->due_usec = at_usec;
        timer_disarm(r->due);
        if (r->scheduled && (r->state == REBOOT_ASKED || r->state == REBOOT_GRANTED))
                reboot_withdraw(r, kind ? "the shutdown is scheduled for another time"
                                        : "the scheduled shutdown was cancelled");
        if (kind)
                timer_arm(r->due, loop_from_wall(r->env->loop, usec_sub(at_usec, LEAD_USEC)));
}

/* logind goes by the wall clock. */
void reboot_clock_was_set(Reboot *r) {
        usec_t at_usec = loop_from_wall(r->env->loop, r->due_usec);

        if (!r->due_kind)
                return;
        if (r->scheduled && r->state != REBOOT_NONE &&
            MAX(at_usec, r->until_usec) - MIN(at_usec, r->until_usec) < DUE_DIFFERS_USEC)
                return;
        reboot_see_schedule(r, r->due_kind, r->due_usec);
}

void reboot_machine_ends(Reboot *r) {
        r->due_kind = NULL;
        if (r->state == REBOOT_ASKED)
                say(r, LOG_LEVEL_WARNING, MESSAGE_REBOOT_UNGRANTED,
                    "The shutdown of this machine begins without the slot that was asked for: it waits for nobody.");
        if (r->state == REBOOT_GRANTED && r->slot_end_usec <= loop_now(r->env->loop))
                say(r, LOG_LEVEL_WARNING, MESSAGE_REBOOT_UNGRANTED,
                    "The shutdown of this machine begins after its slot was over: it waits for nobody.");
        if (r->state == REBOOT_NONE || r->state == REBOOT_REBOOTING)
                return;
        timer_arm_in(r->patience, GONE_USEC + r->config->shutdown_max_usec);
        set_state(r, REBOOT_REBOOTING);
}

/* -- new, free ---------------------------------------------------------------------------------- */

int reboot_new(Env *env, const AgentConfig *config, KubeClient *client, const RebootHandler *h, Reboot **ret) {
        _cleanup_(reboot_freep) Reboot *r = NULL;
        int k;

        assert(env && config && client && h && h->on_changed && h->is_held && ret);
        r = new0(Reboot, 1);
        if (!r)
                return -ENOMEM;
        r->env = env;
        r->config = config;
        r->client = client;
        r->handler = *h;
        k = timer_new(env->loop, "reboot-retry", on_retry, r, &r->retry);
        if (k >= 0)
                k = timer_new(env->loop, "reboot-patience", on_patience, r, &r->patience);
        if (k >= 0)
                k = timer_new(env->loop, "reboot-due", on_due, r, &r->due);
        if (k < 0)
                return k;
        *ret = TAKE_PTR(r);
        return 0;
}

Reboot *reboot_free(Reboot *r) {
        if (!r)
                return NULL;
        kube_call_free(r->call);
        bus_slot_free(r->logind);
        timer_free(r->retry);
        timer_free(r->patience);
        timer_free(r->due);
        if (r->node)
                kube_object_unref(&r->node->object);
        free(r->id);
        free(r->text);
        free(r->event);
        free(r->ended);
        return mfree(r);
}

/* -- tests -------------------------------------------------------------------------------------- */

static const char *const state_names[_REBOOT_STATE_MAX] = {
        [REBOOT_NONE] = "none", [REBOOT_ASKED] = "asked", [REBOOT_HELD] = "held",
        [REBOOT_GRANTED] = "granted", [REBOOT_TAKEN] = "taken", [REBOOT_REBOOTING] = "rebooting",
};

/* Returns true if the agent has a call to make for its request: the request on the Node differs from the
 * wanted one, the grant is to be checked, or the drain's result holds the reboot. */
static bool has_call_to_make(const Reboot *r) {
        const char *stands = r->node ? object_meta_annotation(&r->node->object.meta,
                                                              ANNOTATION_SHUTDOWN_REQUEST) : NULL;

        if (!r->node)
                return false;
        if (!streq_ptr(stands, r->text))
                return r->text || is_left_over(r, stands);
        return r->state == REBOOT_HELD || (r->state == REBOOT_ASKED && is_granted(r));
}

void reboot_next_wakeup(const Reboot *r, Wakeups *w) {
        if (has_call_to_make(r)) {
                wakeups_unfinished(w, "request for a reboot", strempty(r->id), state_names[r->state],
                                   REBOOT_WAKEUP_USEC);
                wakeups_timer(w, r->retry);
                wakeups_await(w, r->call);
        }
        if (r->state != REBOOT_NONE) {
                wakeups_unfinished(w, "patience of the request", strempty(r->id), state_names[r->state],
                                   USEC_INFINITY);
                wakeups_timer(w, r->patience);
        } else if (r->due_kind && r->due_usec > loop_wall(r->env->loop)) {
                wakeups_unfinished(w, "scheduled", r->due_kind, "a slot is to be asked for", USEC_INFINITY);
                wakeups_timer(w, r->due);
        }
}
