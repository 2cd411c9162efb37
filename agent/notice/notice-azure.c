/* SPDX-License-Identifier: Apache-2.0 */
#include "notice-azure.h"

#include <strings.h>

#include "azure-vm.h"
#include "http-transport.h"
#include "json.h"
#include "log.h"
#include "string-util.h"
#include "strv.h"

#define FEED "scheduledevents"
#define EVENTS_PATH "/metadata/scheduledevents?api-version=2020-07-01"
#define NAME_PATH "/metadata/instance/compute/name?api-version=2021-12-13&format=text"
#define TIMEOUT_USEC (2 * USEC_PER_SEC)
#define ACKNOWLEDGE_TIMEOUT_USEC (10 * USEC_PER_SEC)
#define FIRST_TIMEOUT_USEC (130 * USEC_PER_SEC)
#define BODY_BYTES_MAX 65536u
#define NAME_BYTES_MAX 80u
#define ID_BYTES_MAX 64u

typedef struct NoticeAzure {
        NoticeSource source;
        Env *env;
        char *endpoint;
        usec_t poll_usec;
        char vm[NAME_BYTES_MAX + 1]; /* "": not known yet */
        bool doubted;                /* it is another machine's than the Node's: asked for anew with the next look */
        usec_t named_usec;           /* when it was asked for last */
        bool answered;               /* scheduled events are on */
        bool told_more;
        HttpCall *call;
        HttpCall *ack; /* an acknowledgement under way */
        notice_acknowledged_t acknowledged;
        void *ack_userdata;
        Timer *timer;
        Backoff backoff;
        usec_t asked_usec;
        bool asking;
        NoticeSet known;
} NoticeAzure;

static bool name_is_valid(const char *s, size_t n) {
        return n > 0 && n <= NAME_BYTES_MAX &&
               strspn(s, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.") == n;
}

/* -- the document -------------------------------------------------------------------------------- */

static const struct {
        const char *type;
        NoticeKind kind;
        const char *action;
        bool advisory;
} event_types[] = {
        { "Preempt", NOTICE_SPOT, "stop", false },          { "Terminate", NOTICE_SCALE_IN, "terminate", false },
        { "Reboot", NOTICE_MAINTENANCE, "reboot", false },  { "Redeploy", NOTICE_MAINTENANCE, "redeploy", false },
        { "Freeze", NOTICE_MAINTENANCE, "freeze", true },
};

static bool id_is_valid(const char *id) {
        size_t n = strlen(id);

        return n > 0 && n <= ID_BYTES_MAX && strspn(id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_") == n;
}

static bool names(const Json *resources, const char *vm) {
        JSON_FOREACH (r, resources) {
                const char *name = json_string_or_null(r);

                if (name && strcasecmp(name, vm) == 0)
                        return true;
        }
        return false;
}

static bool names_others(const Json *resources, const char *vm) {
        JSON_FOREACH (r, resources) {
                const char *name = json_string_or_null(r);

                if (!name || strcasecmp(name, vm) != 0)
                        return true;
        }
        return false;
}

/* What cannot be a name of a VM, or is one too many, stands for machines of which nobody knows. */
static int read_resources(const Json *resources, char ***ret) {
        _cleanup_strv_free_ char **l = NULL;
        bool unknown = json_size(resources) >= NOTICE_RESOURCES_MAX;

        JSON_FOREACH (r, resources) {
                const char *name = json_string_or_null(r);

                if (!name || !name_is_valid(name, strlen(name)))
                        unknown = true;
                else if (strv_length(l) < NOTICE_RESOURCES_MAX - 1 && strv_extend(&l, name) < 0)
                        return -ENOMEM;
        }
        if (unknown && strv_extend(&l, NOTICE_RESOURCES_TOO_MANY) < 0)
                return -ENOMEM;
        *ret = TAKE_PTR(l);
        return 0;
}

/* userdata: the name of this VM. */
static int read_event(const Json *o, const void *userdata, ScheduledEvent *ret, const char **reterr_why) {
        const char *id = json_string_or_null(json_get(o, "EventId")), *type = json_string_or_null(json_get(o, "EventType"));
        const char *status = json_string_or_null(json_get(o, "EventStatus"));
        const char *not_before = json_string_or_null(json_get(o, "NotBefore"));
        const Json *resources = json_get(o, "Resources");

        *reterr_why = "the document has an event without id, type, status or resources that can be read";
        if (!id || !id_is_valid(id) || !type || !status || !json_is_array(resources))
                return -EBADMSG;
        if (!names(resources, userdata))
                return 0;
        *reterr_why = "the document has an event of this VM without a NotBefore that can be read";
        if (!streq(status, "Started") && (!not_before || http_date_parse(not_before, &ret->not_before_usec) < 0))
                return -EBADMSG;
        ret->kind = NOTICE_MAINTENANCE;
        ret->action = "maintenance";
        ret->advisory = true;
        for (size_t i = 0; i < ELEMENTSOF(event_types); i++)
                if (streq(type, event_types[i].type)) {
                        ret->kind = event_types[i].kind;
                        ret->action = event_types[i].action;
                        ret->advisory = event_types[i].advisory;
                }
        if (names_others(resources, userdata)) {
                if (read_resources(resources, &ret->resources) < 0)
                        return -ENOMEM;
        } else if (streq(type, "Reboot"))
                ret->early = NOTICE_EARLY_ACK;
        ret->id = strdup(id);
        if (ret->id)
                return 1;
        ret->resources = strv_free(ret->resources);
        return -ENOMEM;
}

int azure_events_parse(const char *body, size_t size, const char *vm, size_t max, ScheduledEvent **ret, size_t *ret_n, bool *ret_more,
                       const char **reterr_why) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const Json *list;
        int r;

        *ret = NULL;
        *ret_n = 0;
        *ret_more = false;
        *reterr_why = size == 0 ? "the document is empty" : "the document is no JSON";
        r = json_parse(body, size, BODY_BYTES_MAX, &doc, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        list = json_get(json_root(doc), "Events");
        *reterr_why = "the document has no list of events";
        return json_is_array(list) ? scheduled_events_read(list, max, read_event, vm, ret, ret_n, ret_more, reterr_why) : -EBADMSG;
}

/* -- the end of a look --------------------------------------------------------------------------- */

static void plan_next(NoticeAzure *s, usec_t at_usec) {
        s->asking = false;
        timer_arm(s->timer, MAX(at_usec, loop_now(s->env->loop)));
}

static void look_failed(NoticeAzure *s, const char *why, usec_t answered_usec) {
        plan_next(s, usec_add(loop_now(s->env->loop), notice_source_pause(&s->backoff, s->env->random)));
        notice_source_unknown(&s->source, FEED, why ? why : "out of memory", answered_usec);
}

/* 0, or negative with *reterr_why. */
static int take_document(NoticeAzure *s, const HttpResponse *r, const char **reterr_why) {
        NoticeSet fresh = { 0 };
        ScheduledEvent *events;
        size_t n;
        bool more;
        int k;

        k = azure_events_parse(r->body, r->body_size, s->vm, NOTICES_OF_FEED_MAX, &events, &n, &more, reterr_why);
        if (k < 0)
                return k;
        k = scheduled_events_announce(&s->source, s->env->loop, events, n, http_date(r), r->finished_usec, &s->known, &fresh);
        scheduled_events_free(events, n);
        if (k < 0)
                return k;
        if (more && !s->told_more)
                log_warning(s->env->log, "Azure has scheduled more events for this VM than are looked at: the first %u are.",
                            NOTICES_OF_FEED_MAX);
        s->told_more = more;
        notice_set_done(&s->known);
        s->known = fresh;
        return 0;
}

static char *explain(const HttpResponse *r) {
        if (r->error < 0)
                return strf("no answer: %s", r->error_text);
        return r->status == 429 ? strdup("HTTP 429: somebody on this machine asks the metadata service too often")
                                : strf("HTTP %u", r->status);
}

static void on_document(const HttpResponse *r, void *userdata) {
        _cleanup_free_ char *said = NULL;
        const char *why = NULL;
        NoticeAzure *s = userdata;
        int k;

        if (r->error < 0 || r->status != 200) {
                said = explain(r);
                look_failed(s, said, r->finished_usec);
                return;
        }
        k = take_document(s, r, &why);
        if (k < 0) {
                look_failed(s, k == -ENOMEM ? NULL : why, r->finished_usec);
                return;
        }
        s->answered = true;
        backoff_reset(&s->backoff);
        plan_next(s, usec_add(s->asked_usec, s->poll_usec));
        notice_source_found(&s->source, FEED, s->known.items, s->known.n, r->finished_usec);
}

/* -- the questions ------------------------------------------------------------------------------- */

static void ask(NoticeAzure *s, const char *path, usec_t timeout_usec, http_done_t done) {
        _cleanup_free_ char *url = strf("%s%s", s->endpoint, path);
        const HttpHeader header = { "Metadata", "true" };
        const HttpRequest request = {
                .method = HTTP_GET,
                .url = url,
                .headers = &header,
                .n_headers = 1,
                .lane = HTTP_LANE_METADATA,
                .timeout_usec = timeout_usec,
                .max_response_bytes = BODY_BYTES_MAX,
        };

        s->call = http_call_free(s->call);
        if (!url || http_call_start(s->env->transport, &request, done, s, &s->call) < 0)
                look_failed(s, NULL, loop_now(s->env->loop));
}

static void ask_document(NoticeAzure *s) {
        ask(s, EVENTS_PATH, s->answered ? TIMEOUT_USEC : FIRST_TIMEOUT_USEC, on_document);
}

static void on_name(const HttpResponse *r, void *userdata) {
        _cleanup_free_ char *said = NULL;
        NoticeAzure *s = userdata;

        if (r->error < 0 || r->status != 200)
                said = explain(r);
        else if (!name_is_valid(r->body, r->body_size))
                said = strdup("this is no metadata service of Azure: compute/name gives no name of a VM");
        if (said || r->error < 0 || r->status != 200 || !name_is_valid(r->body, r->body_size)) {
                look_failed(s, said, r->finished_usec);
                return;
        }
        if (strlen(s->vm) == r->body_size && memcmp(s->vm, r->body, r->body_size) == 0) {
                ask_document(s);
                return;
        }
        memcpy(s->vm, r->body, r->body_size);
        s->vm[r->body_size] = 0;
        notice_set_done(&s->known); /* of the VM that it was before */
        s->answered = false;
        log_info(s->env->log,
                 "Asking for the scheduled events of VM %s, which switches them on for it: the first answer may take two minutes.",
                 s->vm);
        ask_document(s);
}

static void on_timer(Timer *t, void *userdata) {
        NoticeAzure *s = userdata;

        s->asking = true;
        s->asked_usec = loop_now(s->env->loop);
        if (s->vm[0] == 0 || s->doubted) {
                s->doubted = false;
                s->named_usec = s->asked_usec;
                ask(s, NAME_PATH, TIMEOUT_USEC, on_name);
        } else
                ask_document(s);
}

/* -- NoticeSource -------------------------------------------------------------------------------- */

static NoticeAzure *to_azure(NoticeSource *s) {
        return CONTAINER_OF(s, NoticeAzure, source);
}

static void azure_start(NoticeSource *source) {
        NoticeAzure *s = to_azure(source);

        timer_arm_in(s->timer, random_below(s->env->random, s->poll_usec));
}

static void azure_kick(NoticeSource *source) {
        NoticeAzure *s = to_azure(source);

        if (s->asking || s->backoff.failures == 0)
                return;
        backoff_reset(&s->backoff);
        plan_next(s, 0);
}

/* -- the acknowledgement ------------------------------------------------------------------------- */

static void on_acknowledged(const HttpResponse *r, void *userdata) {
        _cleanup_free_ char *said = NULL;
        NoticeAzure *s = userdata;
        bool failed = r->error < 0 || r->status / 100 != 2;

        if (failed)
                said = explain(r);
        s->ack = http_call_free(s->ack);
        s->acknowledged(failed ? (said ? said : "out of memory") : NULL, s->ack_userdata);
}

static int azure_acknowledge(NoticeSource *source, const char *id, notice_acknowledged_t done, void *userdata) {
        NoticeAzure *s = to_azure(source);
        _cleanup_free_ char *url = strf("%s%s", s->endpoint, EVENTS_PATH);
        _cleanup_free_ char *body = strf("{\"StartRequests\":[{\"EventId\":\"%s\"}]}", id);
        const HttpHeader headers[] = { { "Metadata", "true" }, { "Content-Type", "application/json" } };
        const HttpRequest request = {
                .method = HTTP_POST,
                .url = url,
                .headers = headers,
                .n_headers = ELEMENTSOF(headers),
                .body = body,
                .body_size = body ? strlen(body) : 0,
                .lane = HTTP_LANE_METADATA,
                .timeout_usec = ACKNOWLEDGE_TIMEOUT_USEC,
                .max_response_bytes = BODY_BYTES_MAX,
        };

        if (!id_is_valid(id))
                return -EINVAL;
        if (!url || !body)
                return -ENOMEM;
        s->ack = http_call_free(s->ack);
        s->acknowledged = done;
        s->ack_userdata = userdata;
        return http_call_start(s->env->transport, &request, on_acknowledged, s, &s->ack);
}

static NoticeIdentity azure_identity(const NoticeSource *source, const char *provider_id, const char **ret_name) {
        const NoticeAzure *s = CONTAINER_OF(source, NoticeAzure, source);
        char name[AZURE_VM_NAME_MAX + 1];

        *ret_name = s->vm;
        if (s->vm[0] == 0 || !azure_vm_name(provider_id, name))
                return NOTICE_IDENTITY_UNKNOWN;
        return strcasecmp(name, s->vm) == 0 ? NOTICE_IDENTITY_SAME : NOTICE_IDENTITY_OTHER;
}

static void azure_ask_identity(NoticeSource *source) {
        NoticeAzure *s = to_azure(source);

        s->doubted = loop_now(s->env->loop) >= usec_add(s->named_usec, NOTICE_SOURCE_IDENTITY_USEC);
}

static void azure_free(NoticeSource *source) {
        NoticeAzure *s = to_azure(source);

        http_call_free(s->call);
        http_call_free(s->ack);
        timer_free(s->timer);
        notice_set_done(&s->known);
        free(s->endpoint);
        free(s);
}

static const char *const azure_feeds[] = { FEED, NULL };

static bool azure_acknowledges(const NoticeSource *source) {
        return CONTAINER_OF(source, NoticeAzure, source)->ack;
}

static void azure_next_wakeup(const NoticeSource *source, Wakeups *w) {
        const NoticeAzure *s = CONTAINER_OF(source, NoticeAzure, source);

        wakeups_unfinished(w, "poll of", "azure", s->asking ? "asking" : "waiting",
                           MAX(NOTICE_SOURCE_WAKEUP_USEC, s->poll_usec));
        wakeups_timer(w, s->timer);
        wakeups_await(w, s->asking && s->call);
}

static const NoticeSourceOps azure_ops = {
        .name = "azure",
        .feeds = azure_feeds,
        .start = azure_start,
        .kick = azure_kick,
        .identity = azure_identity,
        .ask_identity = azure_ask_identity,
        .may_cancel = notice_source_cloud_may_cancel,
        .acknowledge = azure_acknowledge,
        .acknowledges = azure_acknowledges,
        .next_wakeup = azure_next_wakeup,
        .free = azure_free,
};

int notice_azure_new(Env *env, const NoticeAzureOptions *o, notice_look_t on_look, void *userdata, NoticeSource **ret) {
        NoticeAzure *s;
        int r;

        assert(env && o && o->endpoint && o->poll_usec > 0 && on_look && ret);
        s = new0(NoticeAzure, 1);
        if (!s)
                return -ENOMEM;
        s->source = (NoticeSource){ .ops = &azure_ops, .on_look = on_look, .userdata = userdata };
        s->env = env;
        s->poll_usec = o->poll_usec;
        s->backoff = NOTICE_SOURCE_BACKOFF(o->poll_usec, NOTICE_SOURCE_SLOWEST_POLLS * o->poll_usec);
        s->endpoint = strdup(o->endpoint);
        r = s->endpoint ? timer_new(env->loop, "notice-azure", on_timer, s, &s->timer) : -ENOMEM;
        if (r < 0) {
                azure_free(&s->source);
                return r;
        }
        *ret = &s->source;
        return 0;
}
