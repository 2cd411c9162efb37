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

struct Reboot {
        Env *env;
        const AgentConfig *config;
        KubeClient *client;
        void (*on_changed)(void *userdata);
        void *userdata;

        RebootState state;
        char *id, *text; /* of the request; NULL: none */
        usec_t until_usec;
        KubeNode *node; /* a reference */
        KubeCall *call;
        BusSlot *logind;
        Timer *retry, *patience;
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

bool reboot_is_granted(const KubeNode *n, const char *id, usec_t now_usec) {
        const char *text = object_meta_annotation(&n->object.meta, ANNOTATION_SHUTDOWN_GRANTED);
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const char *until;
        usec_t until_usec;

        if (!text || json_parse(text, strlen(text), GRANT_BYTES_MAX, &doc, NULL) < 0)
                return false;
        until = json_string_or_null(json_get(json_root(doc), "until"));
        return streq_ptr(json_string_or_null(json_get(json_root(doc), "id")), id) && until &&
               rfc3339_parse(until, &until_usec) >= 0 && until_usec > now_usec;
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

static void pump(Reboot *r) {
        const char *stands;

        if (!r->node || r->call || timer_is_armed(r->retry))
                return;
        stands = object_meta_annotation(&r->node->object.meta, ANNOTATION_SHUTDOWN_REQUEST);
        if (r->state == REBOOT_ASKED && streq_ptr(stands, r->text) &&
            reboot_is_granted(r->node, r->id, loop_wall(r->env->loop)))
                reboot_now(r);
        else
                write_request(r, stands);
}

static void on_retry(Timer *t, void *userdata) {
        pump(userdata);
}

static void on_patience(Timer *t, void *userdata) {
        Reboot *r = userdata;

        reboot_withdraw(r, r->state == REBOOT_ASKED
                                   ? "nobody granted it within RebootPatienceSec=; is a vesper-coordinator "
                                     "running that grants reboots?"
                                   : "the machine was told to reboot, and is still here");
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
        json_add_string(w, "kind", "reboot");
        json_add_string(w, "until", until);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

int reboot_request(Reboot *r) {
        char uuid[UUID_MAX];

        if (r->state != REBOOT_NONE)
                return 0;
        if (!r->env->bus)
                return -EOPNOTSUPP;
        random_uuid(r->env->random, uuid);
        r->until_usec = usec_add(loop_wall(r->env->loop), r->config->reboot_patience_usec);
        r->id = strdup(uuid);
        r->text = r->id ? format_request(r, r->id) : NULL;
        if (!r->text) {
                r->id = mfree(r->id);
                return -ENOMEM;
        }
        say(r, LOG_LEVEL_NOTICE, MESSAGE_REBOOT_REQUESTED,
            "Asked the coordinator for a slot to reboot this node.");
        timer_arm_in(r->patience, r->config->reboot_patience_usec);
        set_state(r, REBOOT_ASKED);
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
        if (r->node)
                kube_object_unref(&r->node->object);
        free(r->id);
        free(r->text);
        return mfree(r);
}
