/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-control.h"

#include <stdio.h>
#include <stdlib.h>

#include "fake-bulk.h"
#include "strv.h"

/* What requests a fault is meant for (NULL: any), what happens to them, and how often still. */
typedef struct Rule {
        ListNode rules;
        char *verb, *resource, *subresource, *user, *message;
        FakeApiFault fault;
        int64_t left;
} Rule;

struct FakeControl {
        Loop *loop;
        FakeCluster *cluster;
        FakeEc2 *ec2;
        fake_notice_t notice;
        void *userdata;
        FakeChurn *churn;
        fake_metadata_fault_t metadata_fault;
        void *metadata_userdata;
        List rules;
        char **instances;
        fake_cloud_post_t cloud_post;
        void *cloud_userdata;
};

/* What a POST made of its body; NULL text: it went well. */
typedef struct Outcome {
        char *error;
        cJSON *answer; /* NULL: {} */
} Outcome;

static Outcome wrong(const char *fmt, ...) _printf_(1, 2);

static Outcome wrong(const char *fmt, ...) {
        Outcome o = { 0 };
        va_list ap;
        int r;

        va_start(ap, fmt);
        r = vasprintf(&o.error, fmt, ap);
        va_end(ap);
        assert(r >= 0);
        return o;
}

static const Outcome fine = { 0 };

/* -- faults of the API --------------------------------------------------------------------------------- */

static void rule_free(FakeControl *c, Rule *r) {
        list_remove(&c->rules, &r->rules);
        free(r->verb);
        free(r->resource);
        free(r->subresource);
        free(r->user);
        free(r->message);
        free(r);
}

static bool rule_is_for(const Rule *rule, const FakeRequest *r) {
        return (!rule->verb || streq_ptr(rule->verb, fake_verb_to_string(r->verb))) &&
               (!rule->resource || streq_ptr(rule->resource, r->plural)) &&
               (!rule->subresource || streq(rule->subresource, strempty(r->subresource))) &&
               (!rule->user || streq_ptr(rule->user, r->user.name));
}

/* The first that fits. */
static void on_request(const FakeRequest *r, FakeApiFault *ret_fault, void *userdata) {
        FakeControl *c = userdata;

        LIST_FOREACH (rule, &c->rules, Rule, rules) {
                if (rule->left == 0 || !rule_is_for(rule, r))
                        continue;
                if (rule->left > 0)
                        rule->left--;
                *ret_fault = rule->fault;
                return;
        }
}

static char *copy_string(const cJSON *o, const char *key) {
        const char *s = fj_string(o, key, NULL);

        return s ? MUST(strdup(s)) : NULL;
}

static Outcome post_fault(FakeControl *c, const cJSON *o) {
        FakeApiFault fault = {
                .status = (unsigned) fj_int(o, 0, "status", NULL),
                .takes_effect = fj_true(o, "takesEffect", NULL),
                .retry_after_sec = (unsigned) fj_int(o, 0, "retryAfter", NULL),
                .plain = fj_true(o, "plain", NULL),
                .drop = fj_true(o, "drop", NULL),
                .delay_usec = (usec_t) fj_int(o, 0, "delayMsec", NULL) * USEC_PER_MSEC,
        };
        Rule *r;

        if (fault.status == 0 && !fault.drop && fault.delay_usec == 0)
                return wrong("a fault needs status, drop or delayMsec");
        if (fault.status != 0 && (fault.status < 400 || fault.status > 599))
                return wrong("status: 400 to 599");

        r = MUST(new0(Rule, 1));
        r->verb = copy_string(o, "verb");
        r->resource = copy_string(o, "resource");
        r->subresource = copy_string(o, "subresource");
        r->user = copy_string(o, "user");
        r->message = copy_string(o, "message");
        r->fault = fault;
        r->fault.message = r->message;
        r->left = fj_int(o, -1, "count", NULL);
        list_append(&c->rules, &r->rules);
        return fine;
}

static void clear_faults(FakeControl *c) {
        LIST_FOREACH (r, &c->rules, Rule, rules)
                rule_free(c, r);
}

static Outcome post_fault_clear(FakeControl *c, const cJSON *o) {
        clear_faults(c);
        return fine;
}

/* -- the API ------------------------------------------------------------------------------------------- */

static usec_t seconds_from_now(FakeControl *c, const cJSON *o) {
        return usec_add(loop_now(c->loop),
                        (usec_t) MAX(fj_int(o, 0, "seconds", NULL), (int64_t) 0) * USEC_PER_SEC);
}

static Outcome post_log_reset(FakeControl *c, const cJSON *o) {
        fake_api_log_reset(fake_cluster_api(c->cluster));
        return fine;
}

static Outcome post_cut(FakeControl *c, const cJSON *o) {
        fake_api_cut_watches(fake_cluster_api(c->cluster));
        return fine;
}

static Outcome post_stall(FakeControl *c, const cJSON *o) {
        fake_api_stall_watches(fake_cluster_api(c->cluster), seconds_from_now(c, o));
        return fine;
}

static Outcome post_away(FakeControl *c, const cJSON *o) {
        fake_api_away_until(fake_cluster_api(c->cluster), seconds_from_now(c, o));
        return fine;
}

static Outcome post_compact(FakeControl *c, const cJSON *o) {
        fake_cluster_compact(c->cluster);
        return fine;
}

static Outcome post_kubelet(FakeControl *c, const cJSON *o) {
        const char *node = fj_string(o, "node", NULL);

        if (!node || !fake_get(c->cluster, FAKE_NODES, NULL, node))
                return wrong("node: there is none of that name");
        fake_cluster_set_kubelet(c->cluster, node, fj_true(o, "running", NULL));
        return fine;
}

static Outcome post_load(FakeControl *c, const cJSON *o) {
        int n = fake_load(c->cluster, o);

        if (n < 0)
                return wrong("an item is of no kind that is served here, or has no name");
        return (Outcome){ .answer = fj_parse("{'loaded':%d}", n) };
}

static Outcome post_many(FakeControl *c, const cJSON *o) {
        int n = fake_load_many(c->cluster, o);

        if (n < 0)
                return wrong("object: of a kind that is served here, with a name; count, per, among: numbers");
        return (Outcome){ .answer = fj_parse("{'loaded':%d}", n) };
}

static Outcome post_churn(FakeControl *c, const cJSON *o) {
        int64_t rate = fj_int(o, 0, "perSecond", NULL), seconds = fj_int(o, 0, "seconds", NULL);

        if (rate < 1 || rate > 100000 || seconds < 1 || seconds > 86400)
                return wrong("perSecond: 1 to 100000; seconds: 1 to 86400");
        fake_churn_start(c->churn, (uint64_t) rate, (usec_t) seconds * USEC_PER_SEC);
        return fine;
}

/* -- the cloud ----------------------------------------------------------------------------------------- */

static Outcome post_throttle(FakeControl *c, const cJSON *o) {
        fake_ec2_throttle(c->ec2, (unsigned) fj_int(o, 1, "count", NULL),
                          (unsigned) fj_int(o, 0, "retryAfterMsec", NULL));
        return fine;
}

static Outcome post_ec2_fail(FakeControl *c, const cJSON *o) {
        const char *code = fj_string(o, "code", NULL), *message = fj_string(o, "message", NULL);

        fake_ec2_fail(c->ec2, (unsigned) fj_int(o, 1, "count", NULL),
                      (unsigned) fj_int(o, 500, "status", NULL), code ? code : "InternalError",
                      message ? message : "An internal error has occurred");
        return fine;
}

static Outcome post_ec2_state(FakeControl *c, const cJSON *o) {
        const char *id = fj_string(o, "instance", NULL), *state = fj_string(o, "state", NULL);

        if (!id || !state || !strv_contains(c->instances, id))
                return wrong("instance: there is none of that id, or no state");
        fake_ec2_set_state(c->ec2, id, state);
        return fine;
}

static Outcome post_notice(FakeControl *c, const cJSON *o) {
        const char *id = fj_string(o, "instance", NULL), *kind = fj_string(o, "kind", NULL);
        const char *action = fj_string(o, "action", NULL);

        if (fj_int(o, 120, "seconds", NULL) < 0)
                return wrong("seconds: from now on");
        if (!id || !c->notice(id, kind ? kind : "spot", action ? action : "terminate",
                              fj_int(o, 120, "seconds", NULL), c->userdata))
                return wrong("there is no such instance, or no such kind of notice");
        return fine;
}

static Outcome post_metadata_fault(FakeControl *c, const cJSON *o) {
        const char *id = fj_string(o, "instance", NULL), *why;

        if (!c->metadata_fault)
                return wrong("no instance has metadata here");
        if (!id)
                return wrong("instance: which one");
        why = c->metadata_fault(id, o, c->metadata_userdata);
        return why ? wrong("%s", why) : fine;
}

static Outcome post_cloud(FakeControl *c, const char *path, const cJSON *o) {
        Outcome outcome = { 0 };
        const char *why;

        if (!c->cloud_post)
                return wrong("that cloud is not there");
        why = c->cloud_post(path, o, &outcome.answer, c->cloud_userdata);
        return why ? wrong("%s", why) : outcome;
}

static Outcome post_exit(FakeControl *c, const cJSON *o) {
        loop_exit(c->loop, 0);
        return fine;
}

/* -- requests ------------------------------------------------------------------------------------------ */

static cJSON *list_instances(FakeControl *c) {
        cJSON *o = MUST(cJSON_CreateObject());

        STRV_FOREACH (id, c->instances) {
                const char *state = fake_ec2_state(c->ec2, *id);

                if (state)
                        fj_set_string(o, *id, state);
        }
        return o;
}

static cJSON *list_objects(FakeControl *c, const char *query) {
        const char *plural = startswith(strempty(query), "resource=");
        cJSON *array = MUST(cJSON_CreateArray());

        for (FakeResourceId id = 0; plural && id < _FAKE_RESOURCE_MAX; id++) {
                const FakeResource *r = fake_resource(id);

                for (size_t i = 0; streq(r->plural, plural) && i < fake_count(c->cluster, id); i++) {
                        _cleanup_free_ char *text =
                                fake_version_print(r, fake_store_at(fake_cluster_store(c->cluster), id, i));

                        cJSON_AddItemToArray(array, MUST(cJSON_Parse(text)));
                }
        }
        return array;
}

/* NULL: not found. */
static cJSON *get(FakeControl *c, const HttpExchange *x) {
        if (streq(x->path, "/log"))
                return fake_api_log_json(fake_cluster_api(c->cluster));
        if (streq(x->path, "/counters"))
                return fake_api_counters_json(fake_cluster_api(c->cluster));
        if (streq(x->path, "/objects"))
                return list_objects(c, x->query);
        if (streq(x->path, "/churn"))
                return fj_parse("{'done':%llu}", (unsigned long long) fake_churn_done(c->churn));
        if (streq(x->path, "/instances") && c->ec2)
                return list_instances(c);
        return NULL;
}

static const struct {
        const char *path;
        Outcome (*post)(FakeControl *c, const cJSON *o);
        bool cloud, metadata; /* needs these */
} posts[] = {
        { "/log/reset", post_log_reset, false, false },
        { "/watches/cut", post_cut, false, false },
        { "/watches/stall", post_stall, false, false },
        { "/api/away", post_away, false, false },
        { "/compact", post_compact, false, false },
        { "/fault", post_fault, false, false },
        { "/fault/clear", post_fault_clear, false, false },
        { "/kubelet", post_kubelet, false, false },
        { "/load", post_load, false, false },
        { "/many", post_many, false, false },
        { "/churn", post_churn, false, false },
        { "/ec2/throttle", post_throttle, true, false },
        { "/ec2/fail", post_ec2_fail, true, false },
        { "/ec2/state", post_ec2_state, true, false },
        { "/notice", post_notice, false, true },
        { "/metadata/fault", post_metadata_fault, false, false },
        { "/exit", post_exit, false, false },
};

static Outcome post(FakeControl *c, const HttpExchange *x) {
        _cleanup_cjson_ cJSON *body =
                x->body_size > 0 ? cJSON_ParseWithLength(x->body, x->body_size) : MUST(cJSON_CreateObject());

        if (!body)
                return wrong("the body is no JSON");
        if (startswith(x->path, "/cloud/"))
                return post_cloud(c, x->path, body);
        for (size_t i = 0; i < ELEMENTSOF(posts); i++) {
                if (!streq(x->path, posts[i].path))
                        continue;
                if ((posts[i].cloud && !c->ec2) || (posts[i].metadata && !c->notice))
                        return wrong("that cloud is not there");
                return posts[i].post(c, body);
        }
        return wrong("no such command");
}

static void answer(HttpExchange *x, unsigned status, const cJSON *json) {
        static const HttpHeader headers[] = { { "Content-Type", "application/json" } };
        _cleanup_free_ char *text = fj_print(json);

        x->ops->reply(x, status, headers, ELEMENTSOF(headers), text, strlen(text));
}

void fake_control_handle(HttpExchange *x, void *control) {
        FakeControl *c = control;
        _cleanup_cjson_ cJSON *json = NULL;
        Outcome o = { 0 };

        if (x->method == HTTP_GET) {
                json = get(c, x);
                if (!json)
                        o = wrong("nothing is there");
        } else if (x->method == HTTP_POST) {
                o = post(c, x);
                json = o.answer ? o.answer : MUST(cJSON_CreateObject());
        } else
                o = wrong("GET or POST");

        if (o.error) {
                cJSON_Delete(json);
                json = MUST(cJSON_CreateObject());
                fj_set_string(json, "error", o.error);
                free(o.error);
                answer(x, 400, json);
        } else
                answer(x, 200, json);
}

/* -- life ---------------------------------------------------------------------------------------------- */

FakeControl *fake_control_new(Loop *loop, FakeCluster *cluster, FakeEc2 *ec2, fake_notice_t notice,
                              void *userdata) {
        FakeControl *c = MUST(new0(FakeControl, 1));

        *c = (FakeControl){
                .loop = loop, .cluster = cluster, .ec2 = ec2, .notice = notice, .userdata = userdata
        };
        c->churn = fake_churn_new(cluster);
        fake_api_set_fault(fake_cluster_api(cluster), on_request, c);
        return c;
}

FakeControl *fake_control_free(FakeControl *c) {
        if (!c)
                return NULL;

        fake_api_set_fault(fake_cluster_api(c->cluster), NULL, NULL);
        clear_faults(c);
        fake_churn_free(c->churn);
        strv_free(c->instances);
        return mfree(c);
}

void fake_control_add_instance(FakeControl *c, const char *id) {
        int r = strv_extend(&c->instances, id);

        assert(r >= 0);
}

void fake_control_set_clouds(FakeControl *c, fake_cloud_post_t cloud_post, void *userdata) {
        c->cloud_post = cloud_post;
        c->cloud_userdata = userdata;
}

void fake_control_set_metadata_fault(FakeControl *c, fake_metadata_fault_t fault, void *userdata) {
        c->metadata_fault = fault;
        c->metadata_userdata = userdata;
}
