/* SPDX-License-Identifier: Apache-2.0 */
#include "contract-ask.h"

#include <stdio.h>

#include "eviction.h"
#include "fake-json.h"

/*
 * Validating admission webhooks: what they are asked, and what their answers, or the lack of them, do to a
 * write. Each case has a configuration and a label of its own, so that none is asked about another's
 * objects. An API server learns of a configuration a little after it is written: cases wait until a write is
 * refused.
 */

#define CONFIGS "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
#define JSON "application/json"
#define REFUSE "'allowed':false,'status':{'code':403,'reason':'Forbidden','message':'not yet'}"
#define NODES_RULE \
        "'operations':['*'],'apiGroups':[''],'apiVersions':['v1'],'resources':['nodes','nodes/status']"

/* A webhook of one case, and what it saw last. */
typedef struct Hook {
        Rig *rig;
        const char *name;    /* of the case: configuration, label, objects begin with it */
        const char *verdict; /* members of the response beside the uid */
        const char *uid;     /* != NULL: in place of the one that was asked about */
        unsigned status;
        bool hangs;
        unsigned n_asked;
        cJSON *review;
} Hook;

static void on_gone(HttpExchange *x, void *userdata) {
}

static void on_review(HttpExchange *x, void *userdata) {
        static const HttpHeader headers[] = { { "Content-Type", JSON } };
        _cleanup_cjson_ cJSON *o = NULL, *answer = NULL;
        _cleanup_free_ char *text = NULL;
        Hook *h = userdata;

        o = cJSON_ParseWithLength(x->body, x->body_size);
        /* A controller's write of the same Node, a taint for example, is no concern of the case. */
        if (!startswith(strempty(fj_string(o, "request", "userInfo", "username", NULL)),
                        "system:serviceaccount:kube-system:")) {
                h->n_asked++;
                cJSON_Delete(h->review);
                h->review = cJSON_Duplicate(o, true);
        }
        if (h->hangs) {
                x->on_gone = on_gone;
                return;
        }
        answer = fj_parse(
                "{'apiVersion':'admission.k8s.io/v1','kind':'AdmissionReview','response':{'uid':'%s',%s}}",
                h->uid ? h->uid : strempty(fj_string(o, "request", "uid", NULL)), h->verdict);
        text = fj_print(answer);
        x->ops->reply(x, h->status, headers, ELEMENTSOF(headers), text, strlen(text));
}

#define seen(h, ...) strempty(fj_string((h)->review, "request", __VA_ARGS__, NULL))
#define seen_null(h, key) cJSON_IsNull(fj_get((h)->review, "request", (key), NULL))
#define assert_refused_by_hook(a, h) \
        ({ \
                const char *_m = strempty(answer_string(&(a), "message", NULL)); \
                if (!strstr(_m, "admission webhook \"hook.vesper.test\" denied the request: not yet")) \
                        fail_msg("expected a refusal of the webhook, seen %u %s", (a).status, (a).body); \
        })

/* Calls rig_http() with a body of rig_text(). */
static Answer ask(Rig *r, HttpMethod method, const char *path, const char *type, const char *fmt, ...)
        _printf_(5, 6);

static Answer ask(Rig *r, HttpMethod method, const char *path, const char *type, const char *fmt, ...) {
        _cleanup_free_ char *text = NULL;
        va_list ap;

        va_start(ap, fmt);
        text = rig_text(fmt, ap);
        va_end(ap);
        return rig_http(r, RIG_ADMIN, method, path, text[0] ? type : NULL, text[0] ? text : NULL);
}

static Answer make_node(Hook *h, const char *suffix, const char *query) {
        _cleanup_free_ char *path = strf("/api/v1/nodes%s", query);

        return ask(h->rig, HTTP_POST, path, JSON,
                   "{'apiVersion':'v1','kind':'Node','metadata':{'name':'%s-%s','labels':{'hook':'%s'}}}",
                   h->name, suffix, h->name);
}

/* Until the API server knows the configuration. */
static void wait_known(Hook *h) {
        usec_t until = usec_add(loop_now(rig_env(h->rig, RIG_ADMIN)->loop), RIG_PATIENCE_USEC);

        h->verdict = REFUSE;
        h->hangs = false;
        for (;;) {
                _cleanup_answer_ Answer a = make_node(h, "probe", "?dryRun=All");

                if (a.status == 403)
                        break;
                if (loop_now(rig_env(h->rig, RIG_ADMIN)->loop) >= until)
                        fail_msg("The API server does not call the webhook: %u %s", a.status, a.body);
                rig_sleep(h->rig, 100 * USEC_PER_MSEC);
        }
        h->n_asked = 0;
        h->verdict = "'allowed':true";
}

/* more: members of the webhook; "" for none. */
static void hook_init(Hook *h, Rig *r, const char *name, const char *rule, const char *more) {
        const char *url, *ca;
        _cleanup_answer_ Answer a = { 0 };

        *h = (Hook){ .rig = r, .name = name, .status = 200 };
        rig_serve_webhook(r, on_review, h, &url, &ca);
        a = ask(r, HTTP_POST, CONFIGS, JSON,
                "{'apiVersion':'admissionregistration.k8s.io/"
                "v1','kind':'ValidatingWebhookConfiguration','metadata':"
                "{'name':'%s'},'webhooks':[{'name':'hook.vesper.test','clientConfig':{'url':'%s/"
                "ask','caBundle':'%s'},"
                "'rules':[{%s}],'sideEffects':'None','admissionReviewVersions':['v1'],'objectSelector':"
                "{'matchLabels':{'hook':'%s'}}%s%s}]}",
                name, url, ca, rule, name, more[0] ? "," : "", more);
        assert_answer(a, 201, NULL);
        wait_known(h);
}

static void hook_done(Hook *h) {
        _cleanup_free_ char *path = strf(CONFIGS "/%s", h->name);
        _cleanup_answer_ Answer a = ask(h->rig, HTTP_DELETE, path, NULL, "%s", "");

        assert_answer(a, 200, NULL);
        cJSON_Delete(h->review);
        /* What is still asked has nobody to answer it. */
        h->review = NULL;
}

/* -- questions ------------------------------------------------------------------------------------ */

TEST_CASE(test_admission_create) {
        _cleanup_answer_ Answer a = { 0 };
        Hook h;

        hook_init(&h, *state, "hook-create", NODES_RULE, "");
        a = make_node(&h, "a", "");
        assert_answer(a, 201, NULL);
        assert_int_equal(h.n_asked, 1);
        assert_string_equal(fj_string(h.review, "apiVersion", NULL), "admission.k8s.io/v1");
        assert_string_equal(seen(&h, "operation"), "CREATE");
        assert_string_equal(seen(&h, "kind", "kind"), "Node");
        assert_string_equal(seen(&h, "resource", "resource"), "nodes");
        assert_string_equal(seen(&h, "requestResource", "resource"), "nodes");
        assert_string_equal(seen(&h, "name"), "hook-create-a");
        assert_string_equal(seen(&h, "namespace"), "");
        assert_string_equal(seen(&h, "object", "kind"), "Node");
        assert_string_equal(seen(&h, "object", "apiVersion"), "v1");
        assert_string_equal(seen(&h, "object", "metadata", "uid"), answer_uid(&a));
        assert_string_equal(seen(&h, "options", "kind"), "CreateOptions");
        assert_string_equal(seen(&h, "options", "apiVersion"), "meta.k8s.io/v1");
        assert_true(seen_null(&h, "oldObject"));
        assert_true(cJSON_IsFalse(fj_get(h.review, "request", "dryRun", NULL)));
        hook_done(&h);
}

TEST_CASE(test_admission_update) {
        _cleanup_answer_ Answer made = { 0 }, a = { 0 }, b = { 0 };
        Hook h;

        hook_init(&h, *state, "hook-update", NODES_RULE, "");
        made = make_node(&h, "a", "");
        assert_answer(made, 201, NULL);
        a = rig_merge(h.rig, RIG_ADMIN, NODE("hook-update-a"), "{'spec':{'unschedulable':true}}");
        assert_answer(a, 200, NULL);
        assert_int_equal(h.n_asked, 2);
        assert_string_equal(seen(&h, "operation"), "UPDATE");
        assert_string_equal(seen(&h, "subResource"), "");
        assert_string_equal(seen(&h, "options", "kind"), "UpdateOptions"); /* of a patch, too */
        assert_true(fj_true(h.review, "request", "object", "spec", "unschedulable", NULL));
        assert_false(fj_true(h.review, "request", "oldObject", "spec", "unschedulable", NULL));
        assert_string_equal(seen(&h, "oldObject", "metadata", "resourceVersion"), answer_version(&made));

        b = rig_patch(h.rig, RIG_ADMIN, NODE_STATUS("hook-update-a"), KUBE_PATCH_STRATEGIC,
                      "{'status':{'conditions':[{'type':'Drained','status':'True'}]}}");
        assert_answer(b, 200, NULL);
        assert_int_equal(h.n_asked, 3);
        assert_string_equal(seen(&h, "subResource"), "status");
        assert_string_equal(seen(&h, "name"), "hook-update-a");

        /* A write that changes nothing is asked about, too. */
        answer_done(&a);
        a = rig_merge(h.rig, RIG_ADMIN, NODE("hook-update-a"), "{'spec':{'unschedulable':true}}");
        assert_answer(a, 200, NULL);
        assert_int_equal(h.n_asked, 4);
        hook_done(&h);
}

TEST_CASE(test_admission_delete) {
        _cleanup_answer_ Answer made = { 0 }, a = { 0 }, b = { 0 }, c = { 0 };
        KubeDeleteOptions options = { .grace_sec = -1 };
        Hook h;

        hook_init(&h, *state, "hook-delete",
                  "'operations':['CREATE','DELETE'],'apiGroups':[''],'apiVersions':['*'],'resources':['"
                  "nodes']",
                  "");
        made = make_node(&h, "a", "");
        assert_answer(made, 201, NULL);
        h.verdict = REFUSE;
        options.uid = answer_uid(&made);
        a = rig_delete(h.rig, RIG_ADMIN, NODE("hook-delete-a"), &options);
        assert_answer(a, 403, "Forbidden");
        assert_refused_by_hook(a, &h);
        assert_string_equal(seen(&h, "operation"), "DELETE");
        assert_string_equal(seen(&h, "name"), "hook-delete-a");
        assert_true(seen_null(&h, "object"));
        assert_string_equal(seen(&h, "oldObject", "metadata", "uid"), answer_uid(&made));
        assert_string_equal(seen(&h, "oldObject", "kind"), "Node");
        assert_string_equal(seen(&h, "options", "kind"), "DeleteOptions");
        assert_string_equal(seen(&h, "options", "apiVersion"), "meta.k8s.io/v1");
        assert_string_equal(seen(&h, "options", "preconditions", "uid"), answer_uid(&made));
        assert_true(seen(&h, "userInfo", "username")[0]);
        assert_true(fj_array_has(fj_get(h.review, "request", "userInfo", "groups", NULL), "system:masters"));
        assert_true(fj_array_has(fj_get(h.review, "request", "userInfo", "groups", NULL),
                                 "system:authenticated"));

        /* A precondition that fails comes first. */
        h.n_asked = 0;
        options.uid = "00000000-0000-0000-0000-000000000000";
        b = rig_delete(h.rig, RIG_ADMIN, NODE("hook-delete-a"), &options);
        assert_answer(b, 409, "Conflict");
        assert_int_equal(h.n_asked, 0);

        h.verdict = "'allowed':true";
        c = rig_delete(h.rig, RIG_ADMIN, NODE("hook-delete-a"), NULL);
        assert_answer(c, 200, NULL);
        assert_int_equal(h.n_asked, 1);
        hook_done(&h);
}

/* Of each object that the selector picks, without a name in the question. */
TEST_CASE(test_admission_deletecollection) {
        _cleanup_answer_ Answer a = { 0 }, b = { 0 }, c = { 0 }, gone = { 0 };
        Hook h;

        hook_init(&h, *state, "hook-many", NODES_RULE, "");
        a = make_node(&h, "a", "");
        b = make_node(&h, "b", "");
        h.n_asked = 0;
        c = ask(h.rig, HTTP_DELETE, "/api/v1/nodes?labelSelector=hook%3Dhook-many", NULL, "%s", "");
        assert_answer(c, 200, NULL);
        assert_int_equal(h.n_asked, 2);
        assert_string_equal(seen(&h, "operation"), "DELETE");
        assert_string_equal(seen(&h, "name"), "");
        assert_true(startswith(seen(&h, "oldObject", "metadata", "name"), "hook-many-"));
        gone = rig_get(h.rig, RIG_ADMIN, NODE("hook-many-a"));
        assert_answer(gone, 404, "NotFound");
        hook_done(&h);
}

TEST_CASE(test_admission_dry_run) {
        _cleanup_answer_ Answer made = { 0 }, a = { 0 }, now = { 0 };
        Hook h;

        hook_init(&h, *state, "hook-dry", NODES_RULE, "");
        made = make_node(&h, "a", "");
        assert_answer(made, 201, NULL);
        a = ask(h.rig, HTTP_DELETE, "/api/v1/nodes/hook-dry-a", JSON,
                "{'kind':'DeleteOptions','apiVersion':'v1','dryRun':['All']}");
        assert_answer(a, 200, NULL);
        assert_int_equal(h.n_asked, 2);
        assert_true(fj_true(h.review, "request", "dryRun", NULL));
        assert_true(fj_array_has(fj_get(h.review, "request", "options", "dryRun", NULL), "All"));
        now = rig_get(h.rig, RIG_ADMIN, NODE("hook-dry-a"));
        assert_answer(now, 200, NULL);
        assert_string_equal(answer_version(&now), answer_version(&made));
        hook_done(&h);
}

static Answer evict_labelled(Rig *r) {
        return ask(r, HTTP_POST, "/api/v1/namespaces/hook-evict/pods/p/eviction", JSON,
                   "{'apiVersion':'policy/v1','kind':'Eviction','metadata':{'name':'p','namespace':'hook-evict',"
                   "'labels':{'hook':'hook-evict'}}}");
}

/* Whatever status a webhook takes, and where it cannot be called, drain/eviction.h reads who answered, and his words. */
static void check_eviction_is_of_hook(Hook *h, const char *verdict, unsigned status, const char *words) {
        _cleanup_answer_ Answer a = { 0 };
        _cleanup_(api_error_done) ApiError error = { 0 };
        _cleanup_free_ char *by = NULL;

        h->verdict = verdict;
        h->status = status;
        a = evict_labelled(h->rig);
        assert_return_code(api_error_from_body(a.status, a.body, strlen(a.body), 0, &error), 0);
        assert_string_equal(eviction_answer_to_string(eviction_classify(&error, &by)),
                            eviction_answer_to_string(EVICTION_WEBHOOK));
        assert_string_equal(by, "hook.vesper.test");
        if (!startswith(eviction_words(&error), words))
                fail_msg("expected the words \"%s\", seen %u %s", words, a.status, a.body);
        h->status = 200;
}

/* An eviction is a create of pods/eviction; the delete that it does is not asked about. */
TEST_CASE(test_admission_evict) {
        _cleanup_answer_ Answer a = { 0 }, b = { 0 };
        _cleanup_free_ char *uid = NULL;
        Hook h;

        rig_make_namespace(*state, "hook-evict");
        /* The object of an eviction is the Eviction: its labels are what the selector sees. */
        hook_init(&h, *state, "hook-evict",
                  "'operations':['*'],'apiGroups':['','policy'],'apiVersions':['*'],'resources':['nodes','"
                  "pods/*']",
                  "'matchPolicy':'Equivalent'");
        uid = rig_make_pod(*state, "hook-evict", "p", NULL, "hook-evict");
        h.n_asked = 0;
        h.verdict = REFUSE;
        a = evict_labelled(h.rig);
        assert_answer(a, 403, "Forbidden");
        assert_refused_by_hook(a, &h);
        assert_string_equal(seen(&h, "operation"), "CREATE");
        assert_string_equal(seen(&h, "subResource"), "eviction");
        assert_string_equal(seen(&h, "resource", "resource"), "pods");
        assert_string_equal(seen(&h, "kind", "kind"), "Eviction");
        assert_string_equal(seen(&h, "kind", "group"), "policy");
        assert_string_equal(seen(&h, "object", "kind"), "Eviction");
        assert_string_equal(seen(&h, "namespace"), "hook-evict");
        assert_string_equal(seen(&h, "name"), "p");

        check_eviction_is_of_hook(&h, REFUSE, 200, "not yet");
        check_eviction_is_of_hook(&h, "'allowed':false,'status':{'code':429,'reason':'TooManyRequests','message':'moving'}",
                                  200, "moving");
        check_eviction_is_of_hook(&h, "'allowed':false,'status':{'code':409,'reason':'Conflict','message':'moving'}", 200,
                                  "moving");
        check_eviction_is_of_hook(&h, "'allowed':false,'status':{'code':500,'message':'broken'}", 200, "broken");
        check_eviction_is_of_hook(&h, "'allowed':false", 200, "denied the request without explanation");
        check_eviction_is_of_hook(&h, "'allowed':true", 503, "");

        h.n_asked = 0;
        h.verdict = "'allowed':true";
        b = evict_labelled(h.rig);
        assert_answer(b, 201, NULL);
        assert_int_equal(h.n_asked, 1);
        hook_done(&h);
}

/* -- answers -------------------------------------------------------------------------------------- */

TEST_CASE(test_admission_refusals) {
        static const struct {
                const char *verdict;
                unsigned status;
                const char *reason, *message;
        } rows[] = {
                { "'allowed':false", 400, NULL,
                  "admission webhook \"hook.vesper.test\" denied the request without "
                  "explanation" },
                { "'allowed':false,'status':{'message':'no room'}", 400, NULL,
                  "admission webhook \"hook.vesper.test\" denied the request: no room" },
                { "'allowed':false,'status':{'reason':'Forbidden'}", 400, "Forbidden",
                  "admission webhook \"hook.vesper.test\" denied the request: Forbidden" },
                { "'allowed':false,'status':{'code':429,'reason':'TooManyRequests','message':'no room'}",
                  429, "TooManyRequests",
                  "admission webhook \"hook.vesper.test\" denied the request: no room" },
                { "'allowed':false,'status':{'code':200,'status':'Success'}", 400, NULL,
                  "admission webhook \"hook.vesper.test\" denied the request without explanation" },
        };
        Hook h;

        hook_init(&h, *state, "hook-no", NODES_RULE, "");
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_answer_ Answer a = { 0 }, b = { 0 };

                print_message("  %s\n", rows[i].verdict);
                h.verdict = rows[i].verdict;
                a = make_node(&h, "a", "");
                assert_answer(a, rows[i].status, rows[i].reason);
                assert_string_equal(strempty(answer_string(&a, "message", NULL)), rows[i].message);
                assert_string_equal(strempty(answer_string(&a, "status", NULL)), "Failure");
                assert_int_equal(answer_int(&a, "code", NULL), rows[i].status);
                b = rig_get(h.rig, RIG_ADMIN, NODE("hook-no-a"));
                assert_answer(b, 404, "NotFound");
        }
        hook_done(&h);
}

/* What is wrong with the object itself comes before, what only the store knows after. */
TEST_CASE(test_admission_order) {
        _cleanup_answer_ Answer made = { 0 }, invalid = { 0 }, stale = { 0 }, exists = { 0 }, absent = { 0 };
        Hook h;

        hook_init(&h, *state, "hook-order", NODES_RULE, "");
        made = make_node(&h, "a", "");
        assert_answer(made, 201, NULL);
        h.n_asked = 0;
        invalid = rig_merge(h.rig, RIG_ADMIN, NODE("hook-order-a"),
                            "{'spec':{'taints':[{'key':'a','effect':'No'}]}}");
        assert_answer(invalid, 422, "Invalid");
        stale = rig_merge(h.rig, RIG_ADMIN, NODE("hook-order-a"), "{'metadata':{'resourceVersion':'1'}}");
        assert_answer(stale, 409, "Conflict");
        absent = rig_delete(h.rig, RIG_ADMIN, NODE("hook-order-z"), NULL);
        assert_answer(absent, 404, "NotFound");
        assert_int_equal(h.n_asked, 0);
        exists = make_node(&h, "a", "");
        assert_answer(exists, 409, "AlreadyExists");
        assert_int_equal(h.n_asked, 1);
        h.verdict = REFUSE;
        answer_done(&exists);
        exists = make_node(&h, "a", "");
        assert_answer(exists, 403, "Forbidden");
        hook_done(&h);
}

/* A delete that shortens nothing is not asked about; one that holds an object by a finalizer is, each time.
 */
TEST_CASE(test_admission_delete_again) {
        _cleanup_answer_ Answer made = { 0 }, pod = { 0 }, finalizer = { 0 };
        KubeDeleteOptions grace = { .grace_sec = 30 };
        _cleanup_free_ char *uid = NULL;
        Hook h;

        rig_make_namespace(*state, "hook-again");
        hook_init(&h, *state, "hook-again",
                  "'operations':['CREATE','DELETE'],'apiGroups':[''],'apiVersions':['v1'],'resources':['"
                  "nodes','pods']",
                  "");
        made = make_node(&h, "a", "");
        assert_answer(made, 201, NULL);
        finalizer = rig_merge(h.rig, RIG_ADMIN, NODE("hook-again-a"),
                              "{'metadata':{'finalizers':['vesper.test/hold']}}");
        assert_answer(finalizer, 200, NULL);
        uid = rig_make_pod(h.rig, "hook-again", "p", "hook-again-a", "x");
        pod = rig_merge(h.rig, RIG_ADMIN, POD("hook-again", "p"),
                        "{'metadata':{'labels':{'hook':'hook-again'}}}");
        assert_answer(pod, 200, NULL);

        h.n_asked = 0;
        for (unsigned i = 0; i < 2; i++) {
                _cleanup_answer_ Answer a = rig_delete(h.rig, RIG_ADMIN, NODE("hook-again-a"), NULL);

                assert_answer(a, 200, NULL);
                assert_int_equal(h.n_asked, i + 1);
        }
        h.n_asked = 0;
        for (unsigned i = 0; i < 2; i++) {
                _cleanup_answer_ Answer a = rig_delete(h.rig, RIG_ADMIN, POD("hook-again", "p"), &grace);

                assert_answer(a, 200, NULL);
                assert_int_equal(h.n_asked, 1); /* the second time it is going already */
        }
        grace.grace_sec = 0;
        answer_done(&pod);
        pod = rig_delete(h.rig, RIG_ADMIN, POD("hook-again", "p"), &grace);
        assert_answer(pod, 200, NULL);
        /* The real one asks three times: when it shortens the grace, and again, from its cache and afresh,
         * when it removes the pod. A webhook may not count questions. */
        assert_true(h.n_asked >= 2);
        hook_done(&h);
}

/* A webhook sees what a kubelet asks, as that kubelet, and nothing of what NodeRestriction refuses before.
 */
TEST_CASE(test_admission_node_credential) {
        _cleanup_answer_ Answer there = { 0 }, made = { 0 }, own = { 0 }, other = { 0 };
        Hook h;

        hook_init(&h, *state, "hook-kubelet",
                  "'operations':['CREATE','UPDATE'],'apiGroups':[''],'apiVersions':['v1'],'resources':['"
                  "nodes']",
                  "");
        there = rig_get(h.rig, RIG_ADMIN, NODE(RIG_NODE_NAME));
        if (there.status == 404) /* the only case that is run, maybe */
                rig_make_node(h.rig, RIG_NODE_NAME);
        made = rig_merge(h.rig, RIG_ADMIN, NODE(RIG_NODE_NAME),
                         "{'metadata':{'labels':{'hook':'hook-kubelet'}}}");
        assert_answer(made, 200, NULL);
        h.n_asked = 0;
        own = rig_merge(h.rig, RIG_NODE, NODE(RIG_NODE_NAME), "{'metadata':{'annotations':{'hook':'yes'}}}");
        assert_answer(own, 200, NULL);
        assert_int_equal(h.n_asked, 1);
        assert_string_equal(seen(&h, "userInfo", "username"), "system:node:" RIG_NODE_NAME);
        assert_true(fj_array_has(fj_get(h.review, "request", "userInfo", "groups", NULL), "system:nodes"));
        other = rig_merge(h.rig, RIG_OTHER_NODE, NODE(RIG_NODE_NAME),
                          "{'metadata':{'annotations':{'hook':'no'}}}");
        assert_answer(other, 403, "Forbidden");
        assert_int_equal(h.n_asked, 1);
        hook_done(&h);
}

/* No usable answer: a 500 where the policy says Fail. */
TEST_CASE(test_admission_fail) {
        Hook h;

        hook_init(&h, *state, "hook-fail", NODES_RULE, "'failurePolicy':'Fail','timeoutSeconds':1");
        for (unsigned i = 0; i < 3; i++) {
                _cleanup_answer_ Answer a = { 0 };
                const char *message;
                usec_t began;

                h.status = i == 0 ? 500 : 200;
                h.uid = i == 1 ? "another" : NULL;
                h.hangs = i == 2;
                began = loop_now(rig_env(h.rig, RIG_ADMIN)->loop);
                a = make_node(&h, "a", "");
                assert_answer(a, 500, "InternalError");
                message = strempty(answer_string(&a, "message", NULL));
                if (!startswith(message,
                                "Internal error occurred: failed calling webhook \"hook.vesper.test\": "))
                        fail_msg("expected a webhook that could not be called, seen %s", a.body);
                if (i == 1 && !strstr(message, "expected response.uid="))
                        fail_msg("expected a complaint about the uid, seen %s", message);
                if (i == 2) {
                        assert_true(loop_now(rig_env(h.rig, RIG_ADMIN)->loop) - began >=
                                    900 * USEC_PER_MSEC);
                        if (!strstr(message, "deadline exceeded"))
                                fail_msg("expected a time-out, seen %s", message);
                }
        }
        h.hangs = false;
        hook_done(&h);
}

TEST_CASE(test_admission_ignore) {
        Hook h;

        hook_init(&h, *state, "hook-ignore", NODES_RULE, "'failurePolicy':'Ignore','timeoutSeconds':1");
        for (unsigned i = 0; i < 3; i++) {
                static const char *const names[] = { "a", "b", "c" };
                _cleanup_answer_ Answer a = { 0 };

                h.status = i == 0 ? 500 : 200;
                h.uid = i == 1 ? "another" : NULL;
                h.hangs = i == 2;
                a = make_node(&h, names[i], "");
                assert_answer(a, 201, NULL);
                assert_int_equal(h.n_asked, i + 1);
        }
        h.hangs = false;
        h.verdict = REFUSE; /* an answer counts */
        {
                _cleanup_answer_ Answer a = make_node(&h, "d", "");

                assert_answer(a, 403, "Forbidden");
                assert_refused_by_hook(a, &h);
        }
        hook_done(&h);
}

/* -- the configuration ---------------------------------------------------------------------------- */

TEST_CASE(test_admission_config) {
#define HOOK(more) "{'name':'hook.vesper.test','clientConfig':{'url':'https://127.0.0.1:1/'}," more "}"
#define REST "'sideEffects':'None','admissionReviewVersions':['v1']"
        static const struct {
                const char *webhooks, *field; /* that is refused */
        } rows[] = {
                { HOOK("'admissionReviewVersions':['v1']"), "webhooks[0].sideEffects" },
                { HOOK("'sideEffects':'Some','admissionReviewVersions':['v1']"), "webhooks[0].sideEffects" },
                { HOOK("'sideEffects':'None'"), "webhooks[0].admissionReviewVersions" },
                { HOOK(REST ",'timeoutSeconds':31"), "webhooks[0].timeoutSeconds" },
                { HOOK(REST ",'failurePolicy':'Maybe'"), "webhooks[0].failurePolicy" },
                { HOOK(REST ",'rules':[{'operations':['*'],'apiGroups':['*'],'apiVersions':['*']}]"),
                  "webhooks[0].rules[0].resources" },
                { "{'name':'hook','clientConfig':{'url':'https://127.0.0.1:1/'}," REST "}",
                  "webhooks[0].name" },
                { "{'name':'a.b.c','clientConfig':{'url':'http://127.0.0.1:1/'}," REST "}",
                  "webhooks[0].clientConfig.url" },
                { "{'name':'a.b.c','clientConfig':{}," REST "}", "webhooks[0].clientConfig" },
        };
        _cleanup_answer_ Answer made = { 0 }, gone = { 0 };
        Rig *r = *state;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_answer_ Answer a =
                        ask(r, HTTP_POST, CONFIGS, JSON,
                            "{'metadata':{'name':'hook-config'},'webhooks':[%s]}", rows[i].webhooks);

                print_message("  %s\n", rows[i].field);
                assert_answer(a, 422, "Invalid");
                assert_non_null(
                        json_find(json_path(a.json, "details", "causes", NULL), "field", rows[i].field));
        }
        made = ask(r, HTTP_POST, CONFIGS, JSON, "{'metadata':{'name':'hook-config'},'webhooks':[%s]}",
                   HOOK(REST ",'rules':[{'operations':['DELETE'],'apiGroups':[''],'apiVersions':['v9'],"
                             "'resources':['nodes']}]"));
        assert_answer(made, 201, NULL);
        assert_int_equal(answer_int(&made, "metadata", "generation", NULL), 1);
        {
                _cleanup_cjson_ cJSON *o = cJSON_Parse(made.body);
                const cJSON *w = cJSON_GetArrayItem(fj_get(o, "webhooks", NULL), 0);

                assert_string_equal(strempty(fj_string(w, "failurePolicy", NULL)), "Fail");
                assert_string_equal(strempty(fj_string(w, "matchPolicy", NULL)), "Equivalent");
                assert_int_equal(fj_int(w, 0, "timeoutSeconds", NULL), 10);
                assert_string_equal(
                        strempty(fj_string(cJSON_GetArrayItem(fj_get(w, "rules", NULL), 0), "scope", NULL)),
                        "*");
                assert_true(cJSON_IsObject(fj_get(w, "namespaceSelector", NULL)));
        }
        gone = ask(r, HTTP_DELETE, CONFIGS "/hook-config", NULL, "%s", "");
        assert_answer(gone, 200, NULL);
}

static const struct CMUnitTest cases[] = {
        cmocka_unit_test(test_admission_config),
        cmocka_unit_test(test_admission_create),
        cmocka_unit_test(test_admission_update),
        cmocka_unit_test(test_admission_delete),
        cmocka_unit_test(test_admission_deletecollection),
        cmocka_unit_test(test_admission_dry_run),
        cmocka_unit_test(test_admission_evict),
        cmocka_unit_test(test_admission_refusals),
        cmocka_unit_test(test_admission_order),
        cmocka_unit_test(test_admission_delete_again),
        cmocka_unit_test(test_admission_node_credential),
        cmocka_unit_test(test_admission_fail),
        cmocka_unit_test(test_admission_ignore),
};

CONTRACT_SUITE(admission, cases);
