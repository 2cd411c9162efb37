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
#define GRANT_BYTES_MAX 1024u
/* What is scheduled asks so long before: its slot is nobody else's from then on. */
#define LEAD_USEC (10 * USEC_PER_MINUTE)

struct Reboot {
        Env *env;
        const AgentConfig *config;
        KubeClient *client;
        void (*on_changed)(void *userdata);
        void *userdata;

        RebootState state;
        char *id, *text; /* of the request; NULL: none */
        const char *kind;
        usec_t until_usec;
        bool scheduled;       /* it will begin by itself */
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

static void set_state(Reboot *r, RebootState s) {
        r->state = s;
        r->on_changed(r->userdata);
}

/* -- the grant ---------------------------------------------------------------------------------- */

RebootAnswer reboot_answer(const KubeNode *n, const char *id, usec_t now_usec) {
        const char *text = object_meta_annotation(&n->object.meta, ANNOTATION_SHUTDOWN_GRANTED);
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const char *until;
        usec_t until_usec;

        if (!text || json_parse(text, strlen(text), GRANT_BYTES_MAX, &doc, NULL) < 0)
                return REBOOT_ANSWER_NONE;
        until = json_string_or_null(json_get(json_root(doc), "until"));
        if (!streq_ptr(json_string_or_null(json_get(json_root(doc), "id")), id) || !until ||
            rfc3339_parse(until, &until_usec) < 0)
                return REBOOT_ANSWER_NONE;
        return until_usec > now_usec ? REBOOT_ANSWER_GRANTED : REBOOT_ANSWER_RUN_OUT;
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

static void on_patched(const KubeReply *reply, void *userdata) {
        Reboot *r = userdata;

        r->call = kube_call_free(r->call);
        if (reply->error)
                log_debug(r->env->log, "Failed to write the request for a reboot, trying again: %s",
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
        say(r, LOG_LEVEL_NOTICE, MESSAGE_REBOOT_GRANTED,
            "The coordinator granted the scheduled shutdown of this node; it begins when its time comes.");
        set_state(r, REBOOT_GRANTED);
}

static void take_answer(Reboot *r) {
        switch (reboot_answer(r->node, r->id, loop_wall(r->env->loop))) {
        case REBOOT_ANSWER_NONE:
                break;
        case REBOOT_ANSWER_GRANTED:
                if (r->scheduled)
                        wait_for_schedule(r);
                else
                        reboot_now(r);
                break;
        case REBOOT_ANSWER_RUN_OUT: /* it is not granted twice, and keeps nobody waiting */
                reboot_withdraw(
                        r, "its grant had run out before this agent saw it; is a clock wrong, or was the "
                           "API server away?");
                break;
        }
}

static void pump(Reboot *r) {
        const char *stands;

        if (!r->node || r->call || timer_is_armed(r->retry))
                return;
        stands = object_meta_annotation(&r->node->object.meta, ANNOTATION_SHUTDOWN_REQUEST);
        if (r->state == REBOOT_ASKED && streq_ptr(stands, r->text))
                take_answer(r);
        else
                write_request(r, stands);
}

static void on_retry(Timer *t, void *userdata) {
        pump(userdata);
}

static void on_patience(Timer *t, void *userdata) {
        Reboot *r = userdata;

        reboot_withdraw(r, r->state == REBOOT_ASKED && !r->scheduled
                                   ? "nobody granted it within RebootPatienceSec=; is a vesper-coordinator "
                                     "running that grants reboots?"
                                   : "the machine was to go down, and is still here");
}

void reboot_see_node(Reboot *r, const KubeNode *n) {
        if (r->node)
                kube_object_unref(&r->node->object);
        r->node = (KubeNode *) n;
        if (n)
                kube_object_ref(&r->node->object);
        pump(r);
}

/* -- asked for, taken back ---------------------------------------------------------------------- */

static char *format_request(const Reboot *r, const char *id) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        char until[RFC3339_MAX];

        if (json_writer_new(&w) < 0)
                return NULL;
        rfc3339_format(r->until_usec, until);
        json_open_object(w, NULL);
        json_add_string(w, "id", id);
        json_add_string(w, "bootID", r->env->boot_id);
        json_add_string(w, "kind", r->kind);
        json_add_string(w, "until", until);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

static int ask(Reboot *r, const char *kind, usec_t until_usec) {
        char uuid[UUID_MAX];

        random_uuid(r->env->random, uuid);
        r->kind = kind;
        r->until_usec = until_usec;
        r->id = strdup(uuid);
        r->text = r->id ? format_request(r, r->id) : NULL;
        if (!r->text) {
                r->id = mfree(r->id);
                return -ENOMEM;
        }
        set_state(r, REBOOT_ASKED);
        return 0;
}

int reboot_request(Reboot *r) {
        int k;

        if (r->state != REBOOT_NONE && !r->scheduled)
                return 0;
        if (!r->env->bus)
                return -EOPNOTSUPP;
        reboot_withdraw(r, "it is asked for at once");
        k = ask(r, "reboot", usec_add(loop_wall(r->env->loop), r->config->reboot_patience_usec));
        if (k < 0)
                return k;
        r->scheduled = false;
        say(r, LOG_LEVEL_NOTICE, MESSAGE_REBOOT_REQUESTED,
            "Asked the coordinator for a slot to reboot this node.");
        timer_arm_in(r->patience, r->config->reboot_patience_usec);
        pump(r);
        return 0;
}

void reboot_withdraw(Reboot *r, const char *why) {
        if (r->state == REBOOT_NONE)
                return;
        log_event(r->env->log, LOG_LEVEL_WARNING, MESSAGE_REBOOT_WITHDRAWN,
                  LOG_FIELDS({ "NODE", r->config->node_name }, { "NOTICE_ID", r->id }),
                  "The request to reboot this node is withdrawn: %s", why);
        r->id = mfree(r->id);
        r->text = mfree(r->text);
        r->logind = bus_slot_free(r->logind);
        timer_disarm(r->patience);
        set_state(r, REBOOT_NONE);
        timer_arm_earlier(r->retry, 0);
}

/* -- scheduled ---------------------------------------------------------------------------------- */

static void on_due(Timer *t, void *userdata) {
        Reboot *r = userdata;
        usec_t now = loop_wall(r->env->loop);

        if (r->state != REBOOT_NONE || !r->due_kind || r->due_usec <= now)
                return;
        if (ask(r, r->due_kind, r->due_usec) < 0) {
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

void reboot_machine_ends(Reboot *r) {
        r->due_kind = NULL;
        if (r->state == REBOOT_ASKED)
                say(r, LOG_LEVEL_WARNING, MESSAGE_REBOOT_UNGRANTED,
                    "The shutdown of this machine begins without the slot that was asked for: it waits for "
                    "nobody.");
        if (r->state == REBOOT_NONE || r->state == REBOOT_REBOOTING)
                return;
        timer_arm_in(r->patience, GONE_USEC + r->config->shutdown_max_usec);
        set_state(r, REBOOT_REBOOTING);
}

/* -- new, free ---------------------------------------------------------------------------------- */

int reboot_new(Env *env, const AgentConfig *config, KubeClient *client, void (*on_changed)(void *userdata),
               void *userdata, Reboot **ret) {
        _cleanup_(reboot_freep) Reboot *r = NULL;
        int k;

        assert(env && config && client && on_changed && ret);
        r = new0(Reboot, 1);
        if (!r)
                return -ENOMEM;
        r->env = env;
        r->config = config;
        r->client = client;
        r->on_changed = on_changed;
        r->userdata = userdata;
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
        return mfree(r);
}
