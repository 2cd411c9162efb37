/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "awake-check.h"
#include "ca-bundle.h"
#include "certificate-keeper.h"
#include "cmocka-test.h"
#include "fake-client.h"
#include "fake-date.h"
#include "http-inproc.h"
#include "kubeconfig.h"
#include "log.h"
#include "string-util.h"
#include "strv.h"

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
        Log *log;
        Env env;
        CertificateKeeper *keeper;
        CaBundle *bundle;
        unsigned n_changed;
} Replica;

typedef struct Bench {
        FakeWorld w;
        Replica replicas[N];
        usec_t ahead_usec; /* how far the replicas' wall clock is ahead of the API server's */
        size_t leader;     /* the replica that leads; N: none */
        StrBuf trace;      /* writes and log lines of the round */
        usec_t first_write_usec; /* first write of the round; 0: none yet */
        unsigned n_reads;  /* reads of the round */
        const struct Round *round; /* the round that is played; NULL: none */
        size_t n_answered;
        char *trusted[N];  /* bundle and certificate that assert_trusted() has checked last */
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

static const char *role(const Bench *b, size_t i);

static void on_log(LogLevel level, const char *message_id, const char *text, const LogField *fields, size_t n_fields, void *userdata) {
        Replica *r = userdata;

        strbuf_addf(&r->bench->trace, "%s: %s\n", role(r->bench, (size_t) (r - r->bench->replicas)), text);
}

static void replica_start(Bench *b, size_t i) {
        _cleanup_free_ char *identity = strf("CN=%zu,O=system:masters", i);
        Replica *r = b->replicas + i;
        CertificateKeeperOptions o = { .ns = NS, .name = SECRET, .names = names, .changed = on_set, .userdata = r };
        _cleanup_(kubeconfig_freep) KubeConfig *config = NULL;
        _cleanup_free_ char *message = NULL;

        *r = (Replica){ .bench = b };
        assert_return_code(random_new(i + 1, &r->random), 0);
        assert_return_code(http_inproc_new(b->w.loop, identity, NULL, &r->transport), 0);
        assert_return_code(http_inproc_route(r->transport, FAKE_ORIGIN, fake_cluster_handle, b->w.cluster), 0);
        assert_return_code(log_new(LOG_TARGET_NULL, LOG_LEVEL_INFO, "c", &r->log), 0);
        log_set_hook(r->log, on_log, r);
        r->env = (Env){ .loop = b->w.loop, .random = r->random, .log = r->log, .transport = r->transport, .version = "0" };
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
        log_free(r->log);
}

static void lead(Bench *b, size_t i) {
        b->leader = i;
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
                replica_stop(b->replicas + i), free(b->trusted[i]);
        fake_world_done(&b->w);
        strbuf_done(&b->trace);
}

static const cJSON *secret(Bench *b) {
        return fake_get(b->w.cluster, FAKE_SECRETS, NS, SECRET);
}

static const char *bundle_of(Bench *b, int i) {
        const cJSON *list = fj_get(fake_get(b->w.cluster, FAKE_WEBHOOKS, NULL, CONFIG), "webhooks", NULL);

        return fj_string(cJSON_GetArrayItem(list, i), "clientConfig", "caBundle", NULL);
}

static void check_awake(const Bench *b) {
        for (size_t i = 0; i < N; i++) {
                const Replica *r = b->replicas + i;

                if (!r->keeper)
                        continue;
                (void) assert_awake(b->w.loop, certificate_keeper_next_wakeup, r->keeper);
                (void) assert_awake(b->w.loop, ca_bundle_next_wakeup, r->bundle);
        }
}

/* Plays the time in parts, so that a short sleep is seen, too. */
static void run(Bench *b, usec_t usec) {
        for (usec_t left = usec, part; left > 0; left -= part) {
                part = MIN(left, left > usec - USEC_PER_SEC ? USEC_PER_SEC / 10 : USEC_PER_MINUTE);
                fake_world_run(&b->w, part);
                check_awake(b);
        }
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
        run(&b, 70 * USEC_PER_MINUTE);
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

/* -- rounds --------------------------------------------------------------------------------------------- */

typedef struct Answer {
        FakeResourceId id;
        FakeApiFault fault;
        bool to_lists; /* else to writes */
} Answer;

/* An act, and its expected results within an hour. */
typedef struct Round {
        const char *what;
        void (*happens)(Bench *b);
        const char *trace;
        unsigned n_changed; /* how often each replica shows another certificate or bundle */
        Answer answer;      /* to the first two writes, or lists, of that kind */
        unsigned hours;     /* 0: 1 */
        bool by_any;        /* each replica may be the first to write */
} Round;

static const char *role(const Bench *b, size_t i) {
        return b->round && b->round->by_any ? "replica" : i == b->leader ? "leader" : "other";
}

static void on_request(const FakeRequest *r, FakeApiFault *ret_fault, void *userdata) {
        static const char *const verbs[_FAKE_VERB_MAX] = { [FAKE_CREATE] = "creates", [FAKE_PATCH] = "patches" };
        Bench *b = userdata;

        b->n_reads += r->verb == FAKE_GET || r->verb == FAKE_LIST;
        if (b->round->answer.id == r->resource->id && (b->round->answer.to_lists ? r->verb == FAKE_LIST : verbs[r->verb] != NULL) &&
            b->n_answered++ < 2)
                *ret_fault = b->round->answer.fault;
        if (!verbs[r->verb])
                return;
        if (b->first_write_usec == 0)
                b->first_write_usec = loop_now(b->w.loop);
        strbuf_addf(&b->trace, "%s %s %s after %llu s\n", role(b, (size_t) atoi(r->user.name)), verbs[r->verb], r->plural,
                    (unsigned long long) ((loop_now(b->w.loop) - b->first_write_usec) / USEC_PER_SEC));
}

static void wait_for_age(Bench *b, unsigned days) {
        loop_virtual_step_wall(b->w.loop, (int64_t) (days * DAY));
}

static void two_thirds(Bench *b) {
        wait_for_age(b, 61);
}

static void less_than_two_thirds(Bench *b) {
        wait_for_age(b, 20);
}

static void ca_two_thirds(Bench *b) {
        wait_for_age(b, 488);
}

static void ca_expires(Bench *b) {
        wait_for_age(b, 731);
}

static void delete_secret(Bench *b) {
        assert_true(fake_remove(b->w.cluster, FAKE_SECRETS, NS, SECRET));
}

static void spoil_secret(Bench *b) {
        fake_merge(b->w.cluster, FAKE_SECRETS, NS, SECRET, "{'data':{'tls.crt':'Z2FyYmFnZQ=='}}");
}

static void blank_secret(Bench *b) {
        fake_merge(b->w.cluster, FAKE_SECRETS, NS, SECRET, "{'data':null}");
}

static void label_secret(Bench *b) {
        fake_merge(b->w.cluster, FAKE_SECRETS, NS, SECRET, "{'metadata':{'labels':{'x':'%llu'}}}", (unsigned long long) loop_now(b->w.loop));
}

static void take_bundle_out(Bench *b) {
        fake_merge(b->w.cluster, FAKE_WEBHOOKS, NULL, CONFIG,
                   "{'webhooks':[{'name':'a.vesper.sh','clientConfig':{'url':'https://a/b','caBundle':'%s'},'sideEffects':'None',"
                   "'admissionReviewVersions':['v1']},{'name':'b.vesper.sh','clientConfig':{'url':'https://a/b'},'sideEffects':'None',"
                   "'admissionReviewVersions':['v1']}]}",
                   bundle_of(b, 0));
}

/* Renews the certificate, as a replica outside of this test does. */
static void renew_elsewhere(Bench *b) {
        CertificateSet s = { 0 };

        assert_return_code(certificate_plan_apply(CERTIFICATE_SIGN, certificate_keeper_set(b->replicas[0].keeper), names,
                                                  loop_wall(b->w.loop), &s), 0);
        fake_merge(b->w.cluster, FAKE_SECRETS, NS, SECRET, "{'data':null}");
        put_secret(b, &s);
        certificate_set_done(&s);
}

static void change_leader(Bench *b) {
        size_t old = b->leader;

        certificate_keeper_lead(b->replicas[old].keeper, NULL);
        ca_bundle_lead(b->replicas[old].bundle, NULL);
        lead(b, 1 - old);
}

static void change_leader_in_time(Bench *b) {
        change_leader(b);
        two_thirds(b);
}

static void restart_late(Bench *b) {
        size_t leader = b->leader;

        for (size_t i = 0; i < N; i++)
                replica_stop(b->replicas + i);
        wait_for_age(b, 100);
        for (size_t i = 0; i < N; i++)
                replica_start(b, i);
        lead(b, leader);
}

static void break_watches(Bench *b) {
        fake_api_cut_watches(fake_cluster_api(b->w.cluster));
}

#define WAS(what) "The webhook's certificate in Secret " NS "/" SECRET " was " what "\n"

#define CONFIGS "validatingwebhookconfigurations"
#define PATCHES(resource, sec) "leader patches " resource " after " sec " s\n"
#define CREATES "replica creates secrets after 0 s\n"
#define RENEWED PATCHES("secrets", "0") "leader: " WAS("renewed")
#define WRITTEN "leader: The webhook's CA was written into ValidatingWebhookConfiguration " CONFIG "\n"
#define NOT_RENEWED(why) \
        "leader: Failed to write Secret " NS "/" SECRET " with the webhook's certificate, retrying: " \
        why "\n"
#define NOT_WRITTEN(why) \
        "leader: Failed to write the webhook's CA into ValidatingWebhookConfiguration " CONFIG ", retrying: " why \
        ". Without its caBundle the API server trusts no answer of the webhook, and its failurePolicy decides\n"
#define NOT_READ NOT_READ_CONFIG NOT_READ_CONFIG NOT_READ_SECRET NOT_READ_SECRET
#define NOT_READ_CONFIG \
        "replica: Failed to read ValidatingWebhookConfiguration " CONFIG ", retrying: The watch of " CONFIGS " failed: The connection broke" \
        ". Without its caBundle the API server trusts no answer of the webhook, and its failurePolicy decides\n"
#define NOT_READ_SECRET \
        "replica: Failed to read Secret " NS "/" SECRET " with the webhook's certificate, retrying: The watch of secrets failed: The connection broke\n"

#define RENEWED_LATER(why, second, third) \
        PATCHES("secrets", "0") why PATCHES("secrets", second) PATCHES("secrets", third) "leader: " WAS("renewed")
#define WRITTEN_LATER(why, second, third) \
        PATCHES(CONFIGS, "0") why PATCHES(CONFIGS, second) PATCHES(CONFIGS, third) WRITTEN

static const Round rounds[] = {
        { "somebody labels the Secret", label_secret, "", 0 },
        { "less than two thirds of its life", less_than_two_thirds, "", 0 },
        { "two thirds of its life", two_thirds, RENEWED, 1 },
        { "another leader", change_leader, "", 0 },
        { "another leader, and two thirds of its life", change_leader_in_time, RENEWED, 1 },
        { "the Secret is deleted", delete_secret, CREATES CREATES "replica: " WAS("made"), 0, .by_any = true },
        { "the watches break", break_watches, NOT_READ, 0, .by_any = true },
        { "garbage in the Secret", spoil_secret,
          "leader: Secret " NS "/" SECRET " is of no use as the webhook's certificate: tls.crt is no certificate. It is put back as it was\n"
          PATCHES("secrets", "0") "leader: " WAS("replaced"), 0 },
        { "a blank Secret", blank_secret, "replica patches secrets after 0 s\nreplica patches secrets after 0 s\nreplica: " WAS("made"), 0, .by_any = true },
        { "a caBundle is taken out", take_bundle_out, PATCHES(CONFIGS, "0") WRITTEN, 0 },
        { "somebody else renews it", renew_elsewhere, "", 1 },
        { "both replicas were away while it expired", restart_late, RENEWED, 1 },
        { "two thirds of the CA's life", ca_two_thirds,
          RENEWED PATCHES("secrets", "0") "leader: " WAS("given a new CA, which signs nothing yet") PATCHES(CONFIGS, "0") WRITTEN
          PATCHES("secrets", "3600") "leader: " WAS("renewed") PATCHES("secrets", "90000") "leader: " WAS("freed of its old CA")
          PATCHES(CONFIGS, "90000") WRITTEN, 4, .hours = 26 },
        { "the CA expires", ca_expires,
          "leader: Secret " NS "/" SECRET " is of no use as the webhook's certificate: the CA has expired. It is replaced\n"
          PATCHES("secrets", "0") "leader: " WAS("replaced") PATCHES(CONFIGS, "0") WRITTEN, 1 },
};

static int compare_texts(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

/* Sorts the lines, because the two replicas may act in either order. */
static char *sorted_lines(const char *text) {
        _cleanup_strv_free_ char **lines = NULL;
        char *sorted;

        assert_return_code(strv_split(text, "\n", &lines), 0);
        qsort(lines, strv_length(lines), sizeof(*lines), compare_texts);
        sorted = strv_join(lines, "\n");
        return MUST(sorted);
}

static void assert_trace(const Bench *b, const Round *r) {
        _cleanup_free_ char *seen = r->by_any ? sorted_lines(strbuf_str(&b->trace)) : MUST(strdup(strbuf_str(&b->trace)));
        _cleanup_free_ char *expected = r->by_any ? sorted_lines(r->trace) : MUST(strdup(r->trace));

        assert_string_equal(seen, expected);
}

/* Checks that the API server trusts the certificate of each replica. OpenSSL needs a third of a millisecond
 * for each pair, so an unchanged pair is not checked twice. */
static void assert_trusted(Bench *b) {
        for (size_t i = 0; i < N; i++) {
                Replica *r = b->replicas + i;
                const char *known = bundle_of(b, 0), *certificate, *second;
                _cleanup_free_ char *pair = NULL;
                size_t size;
                void *pem;

                if (!r->keeper)
                        continue;
                certificate = certificate_keeper_set(r->keeper)->certificate;
                pair = MUST(strf("%s%s", known, certificate));
                if (streq_ptr(pair, b->trusted[i]))
                        continue;
                assert_return_code(base64_decode(known, strlen(known), &pem, &size), 0);
                second = strstr((char *) pem + 1, "-----BEGIN");
                assert_true(certificate_is_signed_by(certificate, pem) ||
                            certificate_is_signed_by(certificate, second));
                free(pem);
                free(b->trusted[i]);
                b->trusted[i] = TAKE_PTR(pair);
        }
}

static void play_round(Bench *b, const Round *r) {
        unsigned hours = r->hours ?: 1;

        b->round = r;
        strbuf_done(&b->trace);
        b->n_reads = b->first_write_usec = b->n_answered = 0;
        for (size_t k = 0; k < N; k++)
                b->replicas[k].n_changed = 0;
        if (r->happens)
                r->happens(b);
        for (unsigned i = 0; i < 6 * hours; i++) {
                run(b, 10 * USEC_PER_MINUTE + 10 * USEC_PER_SEC);
                if (r->happens != ca_expires)
                        assert_trusted(b);
        }
        assert_trace(b, r);
        for (size_t k = 0; k < N; k++)
                assert_int_equal(b->replicas[k].n_changed, r->n_changed);
        /* Each replica reads once an hour, for the API server's time. A replica that starts also reads both
         * objects. */
        assert_in_range(b->n_reads, 2 * hours - 2, 2 * hours + (r->happens == restart_late ? 6 : 2));
        assert_settled(b, true);
}

static const Round answers[] = {
        { "a renewal: 403", two_thirds,
          RENEWED_LATER(NOT_RENEWED("forbidden by a fault of the test"), "5", "10"), 1,
          { FAKE_SECRETS, { .status = 403 } } },
        { "a renewal: 404", two_thirds,
          RENEWED_LATER(NOT_RENEWED("the server could not find the requested resource"), "5", "10"), 1,
          { FAKE_SECRETS, { .status = 404 } } },
        { "a renewal: 409", two_thirds,
          RENEWED_LATER("", "5", "10"), 1,
          { FAKE_SECRETS, { .status = 409 } } },
        { "a renewal: 422", two_thirds,
          RENEWED_LATER(NOT_RENEWED("fault of the test"), "5", "10"), 1,
          { FAKE_SECRETS, { .status = 422 } } },
        { "a renewal: 429", two_thirds,
          RENEWED_LATER(NOT_RENEWED("the server has received too many requests and has asked us to try again later"), "7", "14"), 1,
          { FAKE_SECRETS, { .status = 429, .retry_after_sec = 7 } } },
        { "a renewal: 500", two_thirds,
          RENEWED_LATER(NOT_RENEWED("Internal error occurred: etcdserver: leader changed"), "5", "10"), 1,
          { FAKE_SECRETS, { .status = 500 } } },
        { "a renewal: 503", two_thirds,
          RENEWED_LATER(NOT_RENEWED("the server is currently unable to handle the request"), "5", "10"), 1,
          { FAKE_SECRETS, { .status = 503 } } },
        { "a renewal: no answer", two_thirds,
          RENEWED_LATER(NOT_RENEWED("No answer in time"), "15", "30"), 1,
          { FAKE_SECRETS, { .delay_usec = USEC_PER_HOUR } } },
        { "a renewal: a broken connection", two_thirds,
          RENEWED_LATER(NOT_RENEWED("The connection broke"), "5", "10"), 1,
          { FAKE_SECRETS, { .drop = true } } },
        { "a caBundle: 403", take_bundle_out,
          WRITTEN_LATER(NOT_WRITTEN("forbidden by a fault of the test"), "5", "10"), 0,
          { FAKE_WEBHOOKS, { .status = 403 } } },
        { "a caBundle: 404", take_bundle_out,
          WRITTEN_LATER(NOT_WRITTEN("the server could not find the requested resource"), "5", "10"), 0,
          { FAKE_WEBHOOKS, { .status = 404 } } },
        { "a caBundle: 409", take_bundle_out,
          WRITTEN_LATER("", "5", "10"), 0,
          { FAKE_WEBHOOKS, { .status = 409 } } },
        { "a caBundle: 422", take_bundle_out,
          WRITTEN_LATER("", "5", "10"), 0,
          { FAKE_WEBHOOKS, { .status = 422 } } },
        { "a caBundle: 429", take_bundle_out,
          WRITTEN_LATER(NOT_WRITTEN("the server has received too many requests and has asked us to try again later"), "7", "14"), 0,
          { FAKE_WEBHOOKS, { .status = 429, .retry_after_sec = 7 } } },
        { "a caBundle: 500", take_bundle_out,
          WRITTEN_LATER(NOT_WRITTEN("Internal error occurred: etcdserver: leader changed"), "5", "10"), 0,
          { FAKE_WEBHOOKS, { .status = 500 } } },
        { "a caBundle: 503", take_bundle_out,
          WRITTEN_LATER(NOT_WRITTEN("the server is currently unable to handle the request"), "5", "10"), 0,
          { FAKE_WEBHOOKS, { .status = 503 } } },
        { "a caBundle: no answer", take_bundle_out,
          WRITTEN_LATER(NOT_WRITTEN("No answer in time"), "15", "30"), 0,
          { FAKE_WEBHOOKS, { .delay_usec = USEC_PER_HOUR } } },
        { "a caBundle: a broken connection", take_bundle_out,
          WRITTEN_LATER(NOT_WRITTEN("The connection broke"), "5", "10"), 0,
          { FAKE_WEBHOOKS, { .drop = true } } },
        { "the time: a broken connection", two_thirds,
          "leader: Failed to read Secret " NS "/" SECRET
          " with the webhook's certificate, retrying: The connection broke\n" RENEWED, 1,
          { FAKE_SECRETS, { .drop = true }, .to_lists = true } },
        { "a renewal: its answer is lost", two_thirds,
          PATCHES("secrets", "0") NOT_RENEWED("The connection broke"), 1,
          { FAKE_SECRETS, { .drop = true, .takes_effect = true } } },
        { "a caBundle: the answer is lost", take_bundle_out,
          PATCHES(CONFIGS, "0") NOT_WRITTEN("The connection broke"), 0,
          { FAKE_WEBHOOKS, { .drop = true, .takes_effect = true } } },
};

/* Each round ends as without the other answer, only later. */
TEST_CASE(test_answers) {
        for (size_t i = 0; i < ELEMENTSOF(answers); i++) {
                Bench b;

                print_message("  %s\n", answers[i].what);
                begin(&b, true);
                replica_stop(b.replicas + 1);
                b.replicas[1] = (Replica){ 0 };
                run(&b, USEC_PER_MINUTE);
                b.round = answers + i;
                b.replicas[0].n_changed = b.first_write_usec = 0;
                strbuf_done(&b.trace);
                fake_api_set_fault(fake_cluster_api(b.w.cluster), on_request, &b);
                answers[i].happens(&b);
                run(&b, 61 * USEC_PER_MINUTE);
                assert_trace(&b, answers + i);
                assert_int_equal(b.replicas[0].n_changed, answers[i].n_changed);
                assert_trusted(&b);
                assert_true(ca_bundle_stands(b.replicas[0].bundle));
                fake_api_set_fault(fake_cluster_api(b.w.cluster), NULL, NULL);
                end(&b);
        }
}

/* The second round is like the first. */
TEST_CASE(test_rounds) {
        for (size_t i = 0; i < ELEMENTSOF(rounds); i++) {
                Bench b;

                print_message("  %s\n", rounds[i].what);
                begin(&b, true);
                run(&b, USEC_PER_MINUTE);
                fake_api_set_fault(fake_cluster_api(b.w.cluster), on_request, &b);
                for (size_t k = 0; k < 2; k++)
                        play_round(&b, rounds + i);
                fake_api_set_fault(fake_cluster_api(b.w.cluster), NULL, NULL);
                end(&b);
        }
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

        print_message("  the renewal is due, and waits for a leader\n");
        certificate_keeper_lead(b.replicas[1].keeper, NULL);
        ca_bundle_lead(b.replicas[1].bundle, NULL);
        two_thirds(&b);
        run(&b, 70 * USEC_PER_MINUTE);
        assert_int_equal(fake_api_count(fake_cluster_api(b.w.cluster), FAKE_PATCH, FAKE_SECRETS, NULL), 0);
        lead(&b, 0);
        run(&b, 10 * USEC_PER_SEC);
        assert_int_equal(fake_api_count(fake_cluster_api(b.w.cluster), FAKE_PATCH, FAKE_SECRETS, NULL), 1);
        assert_settled(&b, true);
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
                cmocka_unit_test(test_not_registered),
                cmocka_unit_test(test_clock_ahead),
                cmocka_unit_test(test_rounds), cmocka_unit_test(test_answers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
