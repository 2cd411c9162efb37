/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "ca-bundle.h"
#include "certificate-keeper.h"
#include "cmocka-test.h"
#include "fake-client.h"
#include "fake-date.h"
#include "http-inproc.h"
#include "kubeconfig.h"
#include "string-util.h"

#define NS "vesper-system"
#define SECRET "vesper-webhook"
#define CONFIG "vesper-nodes"
#define N 2u
#define DAY USEC_PER_DAY

/* Replicas of a coordinator that have nothing but the certificate of their webhook. */
typedef struct Replica {
        struct Bench *bench;
        Random *random;
        HttpTransport *transport;
        KubeAuth *auth;
        KubeClient *client;
        Env env;
        CertificateKeeper *keeper;
        CaBundle *bundle;
        unsigned n_changed;
} Replica;

typedef struct Bench {
        FakeWorld w;
        Replica replicas[N];
        usec_t ahead_usec; /* the replicas' wall clock, of the API server's */
} Bench;

static char *names[] = { (char *) "vesper-webhook.vesper-system.svc", NULL };

static bool always(void *userdata) {
        return true;
}

static const HttpGuard guard = { .may_send = always };

/* What is shown is trusted: by the caBundle that the API server has, or it has none of ours. */
static void on_set(void *userdata) {
        Replica *r = userdata;
        const CertificateSet *s = certificate_keeper_set(r->keeper);

        r->n_changed++;
        assert_true(certificate_set_serves(s, NULL, loop_wall(r->bench->w.loop) - r->bench->ahead_usec));
        assert_return_code(ca_bundle_set(r->bundle, s->bundle), 0);
}

static void on_bundle(void *userdata) {
        Replica *r = userdata;

        if (r->keeper)
                certificate_keeper_set_bundle_stands(r->keeper, ca_bundle_stands(r->bundle));
}

static void replica_start(Bench *b, size_t i) {
        Replica *r = b->replicas + i;
        CertificateKeeperOptions o = { .ns = NS, .name = SECRET, .names = names, .changed = on_set, .userdata = r };
        _cleanup_(kubeconfig_freep) KubeConfig *config = NULL;
        _cleanup_free_ char *message = NULL;

        *r = (Replica){ .bench = b };
        assert_return_code(random_new(i + 1, &r->random), 0);
        assert_return_code(http_inproc_new(b->w.loop, FAKE_ADMIN, NULL, &r->transport), 0);
        assert_return_code(http_inproc_route(r->transport, FAKE_ORIGIN, fake_cluster_handle, b->w.cluster), 0);
        r->env = (Env){ .loop = b->w.loop, .random = r->random, .transport = r->transport, .version = "0" };
        assert_return_code(kubeconfig_plain(FAKE_ORIGIN, &config), 0);
        assert_return_code(kube_auth_new(b->w.loop, NULL, NULL, config, NULL, NULL, &r->auth, &message), 0);
        assert_return_code(kube_client_new(&r->env, r->auth, FAKE_ORIGIN, "test", &r->client), 0);
        assert_return_code(ca_bundle_new(r->client, CONFIG, on_bundle, r, &r->bundle), 0);
        assert_return_code(certificate_keeper_new(r->client, &o, &r->keeper), 0);
}

static void replica_stop(Replica *r) {
        certificate_keeper_free(r->keeper);
        ca_bundle_free(r->bundle);
        kube_client_free(r->client);
        kube_auth_free(r->auth);
        http_transport_free(r->transport);
        random_free(r->random);
}

static void lead(Bench *b, size_t i) {
        certificate_keeper_lead(b->replicas[i].keeper, &guard);
        ca_bundle_lead(b->replicas[i].bundle, &guard);
}

static void begin(Bench *b, bool registered) {
        static const FakeClusterOptions quiet = { .controllers_off = FAKE_CONTROLLERS_ALL };

        *b = (Bench){ 0 };
        fake_world_init(&b->w, &quiet);
        fake_put(b->w.cluster, FAKE_NAMESPACES, fj_parse("{'metadata':{'name':'" NS "'}}"));
        if (registered)
                fake_put(b->w.cluster, FAKE_WEBHOOKS,
                         fj_parse("{'metadata':{'name':'" CONFIG "'},'webhooks':[{'name':'a.vesper.sh','clientConfig':{'service':{"
                                  "'name':'vesper-webhook','namespace':'" NS "'}},'sideEffects':'None','admissionReviewVersions':['v1']},"
                                  "{'name':'b.vesper.sh','clientConfig':{'url':'https://a/b'},'sideEffects':'None',"
                                  "'admissionReviewVersions':['v1']}]}"));
        for (size_t i = 0; i < N; i++)
                replica_start(b, i);
        lead(b, 0);
}

static void end(Bench *b) {
        for (size_t i = 0; i < N; i++)
                replica_stop(b->replicas + i);
        fake_world_done(&b->w);
}

static const cJSON *secret(Bench *b) {
        return fake_get(b->w.cluster, FAKE_SECRETS, NS, SECRET);
}

static const char *bundle_of(Bench *b, int i) {
        const cJSON *list = fj_get(fake_get(b->w.cluster, FAKE_WEBHOOKS, NULL, CONFIG), "webhooks", NULL);

        return fj_string(cJSON_GetArrayItem(list, i), "clientConfig", "caBundle", NULL);
}

static void run(Bench *b, usec_t usec) {
        fake_world_run(&b->w, usec);
}

/* Both show the same, and the API server trusts it. */
static void assert_settled(Bench *b, bool registered) {
        const CertificateSet *one = certificate_keeper_set(b->replicas[0].keeper), *other = certificate_keeper_set(b->replicas[1].keeper);

        assert_non_null(one);
        assert_non_null(other);
        assert_true(certificate_set_equal(one, other));
        for (int i = 0; registered && i < 2; i++) {
                _cleanup_free_ char *encoded = base64_encode(one->bundle, strlen(one->bundle));

                assert_string_equal(bundle_of(b, i), encoded);
        }
        assert_true(ca_bundle_stands(b->replicas[0].bundle));
}

TEST_CASE(test_two_at_once) {
        Bench b;

        begin(&b, true);
        run(&b, 10 * USEC_PER_SEC);
        assert_settled(&b, true);
        assert_int_equal(fake_api_count_status(fake_cluster_api(b.w.cluster), FAKE_CREATE, FAKE_SECRETS, NULL, 201), 1);
        assert_int_equal(fake_api_count(fake_cluster_api(b.w.cluster), FAKE_PATCH, FAKE_WEBHOOKS, NULL), 1);
        assert_int_equal(b.replicas[0].n_changed, 1);
        assert_int_equal(b.replicas[1].n_changed, 1);

        print_message("  somebody takes the caBundle out of one of them\n");
        fake_merge(b.w.cluster, FAKE_WEBHOOKS, NULL, CONFIG,
                   "{'webhooks':[{'name':'a.vesper.sh','clientConfig':{'url':'https://a/b'},'sideEffects':'None',"
                   "'admissionReviewVersions':['v1']},{'name':'b.vesper.sh','clientConfig':{'url':'https://a/b'},'sideEffects':'None',"
                   "'admissionReviewVersions':['v1']}]}");
        run(&b, 10 * USEC_PER_SEC);
        assert_settled(&b, true);
        end(&b);
}

/* The answers to what both want to write first come last: the second replica's Secret, and the caBundle beside
 * somebody's edit. */
static void late(const FakeRequest *r, FakeApiFault *fault, void *userdata) {
        unsigned *n_creates = userdata;

        if (r->resource && r->resource->id == FAKE_SECRETS && r->verb == FAKE_CREATE)
                fault->delay_usec = (*n_creates)++ * USEC_PER_SEC;
        if (r->resource && r->resource->id == FAKE_WEBHOOKS && r->verb == FAKE_PATCH)
                fault->delay_usec = USEC_PER_SEC;
}

/* What the watch told while a write was under way is not forgotten when the write is refused. */
TEST_CASE(test_refused_late) {
        unsigned n_creates = 0;
        Bench b;

        begin(&b, true);
        fake_api_set_fault(fake_cluster_api(b.w.cluster), late, &n_creates);
        run(&b, 500 * USEC_PER_MSEC);
        fake_merge(b.w.cluster, FAKE_WEBHOOKS, NULL, CONFIG, "{'metadata':{'labels':{'edited':'meanwhile'}}}");
        run(&b, 2 * USEC_PER_SEC);
        assert_int_equal(n_creates, N);
        assert_int_equal(fake_api_count_status(fake_cluster_api(b.w.cluster), FAKE_CREATE, FAKE_SECRETS, NULL, 409), 1);
        assert_int_equal(fake_api_count(fake_cluster_api(b.w.cluster), FAKE_PATCH, FAKE_WEBHOOKS, NULL), 2);
        assert_settled(&b, true);
        end(&b);
}

/* Nobody leads: there is a certificate all the same, and no caBundle. */
TEST_CASE(test_without_leader) {
        Bench b;

        begin(&b, true);
        certificate_keeper_lead(b.replicas[0].keeper, NULL);
        ca_bundle_lead(b.replicas[0].bundle, NULL);
        run(&b, 10 * USEC_PER_SEC);
        assert_non_null(certificate_keeper_set(b.replicas[0].keeper));
        assert_non_null(certificate_keeper_set(b.replicas[1].keeper));
        assert_null(bundle_of(&b, 0));
        lead(&b, 1);
        run(&b, 10 * USEC_PER_SEC);
        assert_non_null(bundle_of(&b, 0));
        end(&b);
}

/* The chart makes the Secret blank: that is as if there were none, for a replica that does not lead, too. */
TEST_CASE(test_blank) {
        Bench b;

        for (unsigned leads = 0; leads < 2; leads++) {
                begin(&b, true);
                fake_put(b.w.cluster, FAKE_SECRETS,
                         fj_parse("{'metadata':{'name':'" SECRET "','namespace':'" NS "','labels':{'a':'b'}},'type':'Opaque'}"));
                if (!leads)
                        certificate_keeper_lead(b.replicas[0].keeper, NULL);
                run(&b, 10 * USEC_PER_SEC);
                assert_non_null(certificate_keeper_set(b.replicas[0].keeper));
                assert_non_null(fj_get(secret(&b), "data", "tls.key", NULL));
                assert_string_equal(fj_string(secret(&b), "metadata", "labels", "a", NULL), "b");
                assert_settled(&b, true);
                end(&b);
        }
}

/* What was lost is put back as it was: nobody shows another certificate. */
TEST_CASE(test_lost) {
        Bench b;

        begin(&b, true);
        run(&b, 10 * USEC_PER_SEC);
        print_message("  deleted\n");
        assert_true(fake_remove(b.w.cluster, FAKE_SECRETS, NS, SECRET));
        run(&b, 20 * USEC_PER_SEC);
        assert_non_null(secret(&b));
        assert_settled(&b, true);
        print_message("  garbage\n");
        fake_merge(b.w.cluster, FAKE_SECRETS, NS, SECRET, "{'data':{'tls.crt':'Z2FyYmFnZQ==','ca.key':null}}");
        run(&b, 20 * USEC_PER_SEC);
        assert_settled(&b, true);
        assert_string_not_equal(fj_string(secret(&b), "data", "tls.crt", NULL), "Z2FyYmFnZQ==");
        assert_int_equal(b.replicas[0].n_changed, 1);
        assert_int_equal(b.replicas[1].n_changed, 1);

        print_message("  garbage, and whoever starts knows nothing else\n");
        fake_merge(b.w.cluster, FAKE_SECRETS, NS, SECRET, "{'data':{'ca.crt':'%%'}}");
        for (size_t i = 0; i < N; i++) {
                replica_stop(b.replicas + i);
                replica_start(&b, i);
        }
        lead(&b, 1);
        run(&b, 20 * USEC_PER_SEC);
        assert_settled(&b, true);
        end(&b);
}

static void put_secret(Bench *b, const CertificateSet *s) {
        _cleanup_free_ char *bundle = base64_encode(s->bundle, strlen(s->bundle)), *ca_key = base64_encode(s->ca_key, strlen(s->ca_key)),
                            *certificate = base64_encode(s->certificate, strlen(s->certificate)),
                            *key = base64_encode(s->key, strlen(s->key));

        fake_put(b->w.cluster, FAKE_SECRETS,
                 fj_parse("{'metadata':{'name':'" SECRET "','namespace':'" NS
                          "'},'data':{'ca.crt':'%s','ca.key':'%s','tls.crt':'%s','tls.key':'%s'}}",
                          bundle, ca_key, certificate, key));
}

/* A CA of sixteen months: another one comes before it, signs after an hour, and is alone after a day; at no time is a
 * certificate shown that the API server does not trust. */
TEST_CASE(test_new_ca) {
        CertificateSet old = { 0 }, s = { 0 };
        usec_t now, until;
        Bench b;

        begin(&b, true);
        for (size_t i = 0; i < N; i++)
                replica_stop(b.replicas + i);
        now = loop_wall(b.w.loop);
        assert_return_code(certificate_plan_apply(CERTIFICATE_MAKE, NULL, names, now - 490 * DAY, &old), 0);
        assert_return_code(certificate_plan_apply(CERTIFICATE_SIGN, &old, names, now - 10 * DAY, &s), 0);
        put_secret(&b, &s);
        for (size_t i = 0; i < N; i++)
                replica_start(&b, i);
        lead(&b, 0);
        run(&b, USEC_PER_MINUTE);
        assert_string_equal(certificate_keeper_set(b.replicas[1].keeper)->certificate, s.certificate);
        assert_string_not_equal(certificate_keeper_set(b.replicas[1].keeper)->bundle, s.bundle);
        until = loop_now(b.w.loop) + 27 * USEC_PER_HOUR;
        while (loop_now(b.w.loop) < until) {
                run(&b, 10 * USEC_PER_MINUTE);
                for (size_t i = 0; i < N; i++) {
                        const CertificateSet *shown = certificate_keeper_set(b.replicas[i].keeper);
                        const char *second;
                        size_t size;
                        void *known;

                        assert_return_code(base64_decode(bundle_of(&b, 0), strlen(bundle_of(&b, 0)), &known, &size), 0);
                        second = strstr((char *) known + 1, "-----BEGIN");
                        assert_true(certificate_is_signed_by(shown->certificate, known) ||
                                    certificate_is_signed_by(shown->certificate, second));
                        free(known);
                }
        }
        assert_settled(&b, true);
        assert_false(certificate_is_signed_by(certificate_keeper_set(b.replicas[1].keeper)->certificate, old.bundle));
        assert_null(strstr(certificate_keeper_set(b.replicas[1].keeper)->bundle + 1, "-----BEGIN"));
        assert_int_equal(b.replicas[1].n_changed, 4); /* as found, with two CAs, signed anew, with one */
        certificate_set_done(&old);
        certificate_set_done(&s);
        end(&b);
}

/* Both start anew, and know nothing but the Secret. */
static void restart(Bench *b) {
        for (size_t i = 0; i < N; i++) {
                replica_stop(b->replicas + i);
                replica_start(b, i);
        }
        lead(b, 1);
        run(b, 20 * USEC_PER_SEC);
        assert_settled(b, true);
}

static char *shown(Bench *b) {
        return MUST(strdup(certificate_keeper_set(b->replicas[1].keeper)->certificate));
}

/* A clock that is set three years ahead, in the middle and from the start; the API server's is right. */
TEST_CASE(test_clock_ahead) {
        _cleanup_free_ char *before = NULL, *made = NULL;
        char date[FAKE_DATE_MAX];
        CertificateTimes t;
        usec_t right;
        Bench b;

        begin(&b, true);
        run(&b, 10 * USEC_PER_SEC);
        before = shown(&b);
        right = loop_wall(b.w.loop);
        fake_date_format(right, date);
        fake_api_set_date(fake_cluster_api(b.w.cluster), date);
        b.ahead_usec = 1100 * DAY;
        loop_virtual_step_wall(b.w.loop, (int64_t) b.ahead_usec);
        run(&b, 3 * USEC_PER_HOUR);
        assert_settled(&b, true);
        restart(&b);
        assert_string_equal(certificate_keeper_set(b.replicas[1].keeper)->certificate, before);

        print_message("  what is made then begins by the API server's clock\n");
        for (size_t i = 0; i < N; i++)
                replica_stop(b.replicas + i);
        assert_true(fake_remove(b.w.cluster, FAKE_SECRETS, NS, SECRET));
        for (size_t i = 0; i < N; i++)
                replica_start(&b, i);
        restart(&b);
        made = shown(&b);
        assert_string_not_equal(made, before);
        assert_true(certificate_times(made, &t));
        assert_in_range(t.made_usec, right - USEC_PER_MINUTE, right + USEC_PER_MINUTE);

        print_message("  an API server that tells no time: nothing is of an age\n");
        fake_api_set_date(fake_cluster_api(b.w.cluster), "");
        restart(&b);
        assert_string_equal(certificate_keeper_set(b.replicas[1].keeper)->certificate, made);

        print_message("  both clocks agree: it has expired\n");
        fake_api_set_date(fake_cluster_api(b.w.cluster), NULL);
        b.ahead_usec = 0;
        restart(&b);
        assert_true(certificate_times(certificate_keeper_set(b.replicas[1].keeper)->certificate, &t));
        assert_true(t.made_usec > right + 1000 * DAY);
        end(&b);
}

TEST_CASE(test_not_registered) {
        Bench b;

        begin(&b, false);
        run(&b, USEC_PER_MINUTE);
        assert_settled(&b, false);
        end(&b);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_two_at_once), cmocka_unit_test(test_without_leader), cmocka_unit_test(test_lost),
                cmocka_unit_test(test_refused_late),
                cmocka_unit_test(test_blank),
                cmocka_unit_test(test_not_registered), cmocka_unit_test(test_new_ca),
                cmocka_unit_test(test_clock_ahead),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
