/* SPDX-License-Identifier: Apache-2.0 */
#include "lifecycle-hook.h"

#include "aws-query.h"
#include "string-util.h"

#define TOKEN_BYTES 36u

struct HookClient {
        AwsQuery *query;
        size_t n_calls;
};

struct HookCall {
        HookClient *client;
        hook_done_t done;
        void *userdata;
        const char *action; /* static */
        AwsQueryCall *query;
};

int hook_client_new(Env *env, SqsClient *sqs, HookClient **ret) {
        _cleanup_(hook_client_freep) HookClient *c = new0(HookClient, 1);
        int r;

        assert(env && sqs && ret);
        if (!c)
                return -ENOMEM;
        r = aws_query_new(env, sqs_client_credentials(sqs), "autoscaling", sqs_client_region(sqs),
                          sqs_client_settings(sqs)->endpoint_autoscaling, &c->query);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

HookClient *hook_client_free(HookClient *c) {
        if (!c)
                return NULL;
        assert(c->n_calls == 0);
        aws_query_free(c->query);
        return mfree(c);
}

HookCall *hook_call_free(HookCall *c) {
        if (!c)
                return NULL;
        c->client->n_calls--;
        aws_query_call_free(c->query);
        return mfree(c);
}

/* "<CompleteLifecycleActionResponse ...": what stands between may answer 200 with a page of its own. */
static bool is_answer(const AwsQueryResult *a, const char *action) {
        _cleanup_free_ char *tag = strf("<%sResponse", action);

        return tag && a->body && memmem(a->body, a->body_size, tag, strlen(tag));
}

/* Auto Scaling answers with ValidationError to an action that is over, and to a group, hook or instance that
 * does not exist. The same request never succeeds later: an action that has ended does not begin again. */
static HookOutcome outcome_of(const AwsQueryResult *a, const char *action) {
        if (a->error < 0)
                return a->credentials_failed ? HOOK_DENIED : HOOK_RETRY;
        if (a->status / 100 == 2)
                return is_answer(a, action) ? HOOK_OK : HOOK_RETRY;
        if (streq_ptr(a->code, "ValidationError"))
                return HOOK_OVER;
        if (a->status == 401 || a->status == 403 || startswith(strempty(a->code), "AccessDenied"))
                return HOOK_DENIED;
        return HOOK_RETRY;
}

static void on_answered(const AwsQueryResult *a, void *userdata) {
        HookCall *c = userdata;
        HookOutcome outcome = outcome_of(a, c->action);

        c->done(outcome, isempty(a->message) ? "the answer is not Auto Scaling's" : a->message, c->userdata);
}

/* "&NAME=VALUE" */
static void add(StrBuf *form, const char *name, const char *value) {
        _cleanup_free_ char *encoded = url_encode(value, false);

        form->failed = form->failed || !encoded;
        strbuf_addf(form, "&%s=%s", name, strempty(encoded));
}

static int call_start(HookClient *client, const char *action, const char *form, const HttpGuard *guard, hook_done_t done,
                      void *userdata, HookCall **ret) {
        _cleanup_(hook_call_freep) HookCall *c = new0(HookCall, 1);
        int r;

        if (!c)
                return -ENOMEM;
        client->n_calls++;
        c->client = client;
        c->done = done;
        c->userdata = userdata;
        c->action = action;
        r = aws_query_start(client->query, form, guard, on_answered, c, &c->query);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

static int action_start(HookClient *c, const char *action, const char *result, const EventMessage *m,
                        const char *instance, const HttpGuard *guard, hook_done_t done, void *userdata,
                        HookCall **ret) {
        _cleanup_strbuf_ StrBuf form = { 0 };

        assert(c && m && instance && done && ret);
        strbuf_addf(&form, "Action=%s&Version=2011-01-01", action);
        add(&form, "AutoScalingGroupName", m->group);
        add(&form, "LifecycleHookName", m->hook);
        if (result)
                add(&form, "LifecycleActionResult", result);
        if (strlen(m->token) == TOKEN_BYTES)
                add(&form, "LifecycleActionToken", m->token);
        else
                add(&form, "InstanceId", instance);
        return form.failed ? -ENOMEM : call_start(c, action, strbuf_str(&form), guard, done, userdata, ret);
}

int hook_heartbeat(HookClient *c, const EventMessage *m, const char *instance, const HttpGuard *guard,
                   hook_done_t done, void *userdata, HookCall **ret) {
        return action_start(c, "RecordLifecycleActionHeartbeat", NULL, m, instance, guard, done, userdata,
                            ret);
}

int hook_continue(HookClient *c, const EventMessage *m, const char *instance, const HttpGuard *guard,
                  hook_done_t done, void *userdata, HookCall **ret) {
        return action_start(c, "CompleteLifecycleAction", "CONTINUE", m, instance, guard, done, userdata,
                            ret);
}
