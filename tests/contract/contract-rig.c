/* SPDX-License-Identifier: Apache-2.0 */
#include "contract-rig.h"

#include <stdio.h>


#include "contract-manifests.h"
#include "fake-cluster.h"
#include "http-curl.h"
#include "http-inproc.h"
#include "http-server.h"
#include "random.h"
#include "string-util.h"
#include "tls-fixture.h"

#define FAKE_SERVER "http://fake"
#define START_WALL_USEC (UINT64_C(1800000000) * USEC_PER_SEC)
#define FAKE_WEBHOOK "https://webhook.contract"
#define CONTROL_TIMEOUT_USEC (120 * USEC_PER_SEC)

typedef struct Person {
        HttpTransport *transport; /* fake: one each, for it carries the identity */
        KubeAuth *auth;
        KubeClient *client;
        Env env;
} Person;

struct Rig {
        bool fake, held;
        char *server, *held_server, *control;
        Loop *loop;
        Random *random;
        Person people[_RIG_WHO_MAX];

        VirtualTime *time; /* fake */
        Loop *server_loop;
        Random *server_random;
        FakeCluster *cluster;

        HttpTransport *transport; /* real: shared */

        /* The webhook that the API server calls. */
        http_handler_t webhook;
        void *webhook_userdata;
        TestCert *webhook_ca, *webhook_cert;
        char *webhook_url, *webhook_ca_bundle;
        HttpTransport *webhook_transport; /* fake: the API server's */
        HttpServer *webhook_server;       /* real */
};

static const char *const identities[_RIG_WHO_MAX] = {
        [RIG_ADMIN] = "CN=admin,O=system:masters",
        [RIG_NODE] = "CN=system:node:" RIG_NODE_NAME ",O=system:nodes",
        [RIG_OTHER_NODE] = "CN=system:node:" RIG_OTHER_NODE_NAME ",O=system:nodes",
        [RIG_COORDINATOR] =
                "CN=system:serviceaccount:vesper-system:vesper-coordinator,O=system:serviceaccounts,"
                "O=system:serviceaccounts:vesper-system",
        [RIG_STRANGER] = "CN=stranger",
        [RIG_NOBODY] = NULL,
        [RIG_HELD] = "CN=held,O=system:masters",
};

/* -- making one ----------------------------------------------------------------------------------- */

static int person_open(Rig *r, RigWho who, HttpTransport *transport, const KubeConfig *config) {
        const char *server = who == RIG_HELD && r->held_server ? r->held_server : r->server;
        Person *p = r->people + who;
        _cleanup_free_ char *message = NULL;
        int k;

        p->env = (Env){
                .loop = r->loop,
                .random = r->random,
                .transport = transport,
                .version = "0",
        };
        k = kube_auth_new(r->loop, NULL, NULL, config, NULL, NULL, &p->auth, &message);
        if (k < 0)
                return fprintf(stderr, "Credential: %s\n", strempty(message)), k;
        return kube_client_new(&p->env, p->auth, server, "vesper-contract", &p->client);
}

static void refuse_while_held(const HttpRequest *request, const char *peer, HttpFault *ret_fault,
                              void *userdata) {
        ret_fault->refuse = ((Rig *) userdata)->held;
}

static int open_fake_person(Rig *r, RigWho who) {
        _cleanup_(kubeconfig_freep) KubeConfig *config = NULL;
        HttpInprocHooks hooks = { .on_request = who == RIG_HELD ? refuse_while_held : NULL, .userdata = r };
        Person *p = r->people + who;
        int k;

        k = http_inproc_new(r->loop, identities[who], &hooks, &p->transport);
        if (k >= 0)
                k = http_inproc_route(p->transport, FAKE_SERVER, fake_cluster_handle, r->cluster);
        if (k >= 0)
                k = kubeconfig_plain(FAKE_SERVER, &config);
        if (k >= 0 && who == RIG_NOBODY)
                k = free_and_strdup(&config->token, "not-a-token");
        return k < 0 ? k : person_open(r, who, p->transport, config);
}

static int open_fake(Rig *r, const RigOptions *o) {
        static const FakeClusterOptions options = {
                .api = { .no_progress = true }, /* as the etcd of tests/cluster */
                .controllers_off = FAKE_CONTROLLERS_ALL,
        };
        int k;

        r->server = strdup(FAKE_SERVER);
        if (!r->server)
                return -ENOMEM;
        k = virtual_time_new(START_WALL_USEC, &r->time);
        if (k >= 0)
                k = loop_new_virtual(r->time, &r->server_loop);
        if (k >= 0)
                k = loop_new_virtual(r->time, &r->loop);
        if (k >= 0)
                k = random_new(1, &r->server_random);
        if (k < 0)
                return k;

        r->cluster = fake_cluster_new(r->server_loop, r->server_random, &options);
        k = contract_manifests_apply(o->manifests, r->cluster);
        for (RigWho who = 0; k >= 0 && who < _RIG_WHO_MAX; who++)
                k = open_fake_person(r, who);
        return k;
}

static int open_real_person(Rig *r, RigWho who, const char *path) {
        _cleanup_(kubeconfig_freep) KubeConfig *config = NULL;
        _cleanup_free_ char *message = NULL;
        int k;

        k = kubeconfig_load(path, &config, &message);
        if (k < 0)
                return fprintf(stderr, "%s: %s\n", path, strempty(message)), k;
        return person_open(r, who, r->transport, config);
}

static int open_real(Rig *r, const RigOptions *o) {
        static const HttpCurlOptions options = { .user_agent = "vesper-contract" };
        int k;

        r->server = strdup(o->server);
        r->held_server = strdup(o->held_server);
        r->control = strdup(o->control);
        if (!r->server || !r->held_server || !r->control)
                return -ENOMEM;
        k = loop_new(&r->loop);
        if (k >= 0)
                k = http_curl_new(r->loop, NULL, &options, &r->transport);
        for (RigWho who = 0; k >= 0 && who < _RIG_WHO_MAX; who++)
                k = open_real_person(r, who, o->kubeconfigs[who == RIG_HELD ? RIG_ADMIN : who]);
        return k;
}

Rig *rig_new(const RigOptions *o) {
        _cleanup_(rig_freep) Rig *r = new0(Rig, 1);
        int k;

        if (!r)
                return NULL;
        r->fake = o->fake;
        k = random_new(2, &r->random);
        if (k >= 0)
                k = o->fake ? open_fake(r, o) : open_real(r, o);
        if (k < 0) {
                fprintf(stderr, "The contract has no %s cluster: %s\n", o->fake ? "fake" : "real",
                        strerrordesc_np(-k));
                return NULL;
        }
        return TAKE_PTR(r);
}

Rig *rig_free(Rig *r) {
        if (!r)
                return NULL;
        for (RigWho who = 0; who < _RIG_WHO_MAX; who++) {
                kube_client_free(r->people[who].client);
                kube_auth_free(r->people[who].auth);
                http_transport_free(r->people[who].transport);
        }
        http_transport_free(r->transport);
        http_server_free(r->webhook_server);
        fake_cluster_free(r->cluster);
        http_transport_free(r->webhook_transport);
        test_cert_freep(&r->webhook_cert);
        test_cert_freep(&r->webhook_ca);
        free(r->webhook_url);
        free(r->webhook_ca_bundle);
        random_free(r->server_random);
        random_free(r->random);
        loop_free(r->server_loop);
        loop_free(r->loop);
        virtual_time_free(r->time);
        free(r->server);
        free(r->held_server);
        free(r->control);
        return mfree(r);
}

/* -- using it ------------------------------------------------------------------------------------- */

bool rig_is_fake(const Rig *r) {
        return r->fake;
}

usec_t rig_wall(Rig *r) {
        return loop_wall(r->loop);
}

KubeClient *rig_client(Rig *r, RigWho who) {
        return r->people[who].client;
}

Env *rig_env(Rig *r, RigWho who) {
        return &r->people[who].env;
}

const char *rig_server(const Rig *r) {
        return r->server;
}

void rig_credential(Rig *r, RigWho who, HttpTls **ret_tls, const char **ret_authorization) {
        assert_true(kube_auth_get(r->people[who].auth, ret_tls, ret_authorization));
}

/* -- webhooks ------------------------------------------------------------------------------------- */

static void on_webhook(HttpExchange *x, void *userdata) {
        Rig *r = userdata;

        r->webhook(x, r->webhook_userdata);
}

static void open_fake_webhook(Rig *r) {
        assert_return_code(http_inproc_new(r->server_loop, NULL, NULL, &r->webhook_transport), 0);
        assert_return_code(http_inproc_route(r->webhook_transport, FAKE_WEBHOOK, on_webhook, r), 0);
        fake_api_set_webhook_transport(fake_cluster_api(r->cluster), r->webhook_transport);
        r->webhook_url = strdup(FAKE_WEBHOOK);
}

static void open_real_webhook(Rig *r) {
        HttpServerOptions o = {
                .address = "127.0.0.1",
                .listen_fd = -EBADF,
                .cert_pem = r->webhook_cert->cert_pem,
                .key_pem = r->webhook_cert->key_pem,
                .max_body_bytes = 4u << 20,
        };

        assert_return_code(http_server_new(r->loop, &o, on_webhook, r, &r->webhook_server), 0);
        r->webhook_url = strf("https://127.0.0.1:%u", http_server_port(r->webhook_server));
}

void rig_serve_webhook(Rig *r, http_handler_t handler, void *userdata, const char **ret_url,
                       const char **ret_ca_bundle) {
        r->webhook = handler;
        r->webhook_userdata = userdata;
        if (!r->webhook_url) {
                r->webhook_ca = test_cert_new(NULL, NULL, "contract-webhook-ca", NULL);
                r->webhook_cert = test_cert_new(r->webhook_ca, NULL, "webhook", "IP:127.0.0.1");
                r->webhook_ca_bundle =
                        base64_encode(r->webhook_ca->cert_pem, strlen(r->webhook_ca->cert_pem));
                if (r->fake)
                        open_fake_webhook(r);
                else
                        open_real_webhook(r);
                assert_non_null(r->webhook_url);
                assert_non_null(r->webhook_ca_bundle);
        }
        *ret_url = r->webhook_url;
        *ret_ca_bundle = r->webhook_ca_bundle;
}

/* -- time ----------------------------------------------------------------------------------------- */

/* One event, or none up to until_usec. */
static void rig_step(Rig *r, usec_t until_usec) {
        if (r->fake)
                (void) virtual_time_step(r->time, until_usec);
        else
                assert_return_code(
                        loop_iterate(r->loop, usec_sub(until_usec, loop_now(r->loop))), 0);
}

static bool never(void *userdata) {
        return false;
}

bool rig_wait(Rig *r, bool (*condition)(void *userdata), void *userdata, usec_t timeout_usec) {
        usec_t until = usec_add(loop_now(r->loop), timeout_usec);

        while (!condition(userdata)) {
                if (loop_now(r->loop) >= until)
                        return false;
                rig_step(r, until);
        }
        return true;
}

usec_t rig_limit(const Rig *r, usec_t usec) {
        return r->fake ? usec : RIG_PATIENCE_USEC;
}

void rig_sleep(Rig *r, usec_t usec) {
        (void) rig_wait(r, never, NULL, usec);
}

/* -- faults --------------------------------------------------------------------------------------- */

typedef struct Control {
        bool done;
        int error;
        unsigned status;
} Control;

static void on_control(const HttpResponse *response, void *userdata) {
        Control *c = userdata;

        *c = (Control){ .done = true, .error = response->error, .status = response->status };
}

static bool control_done(void *userdata) {
        return ((Control *) userdata)->done;
}

static void control(Rig *r, const char *what) {
        _cleanup_free_ char *url = strf("%s/%s", r->control, what);
        _cleanup_(http_call_freep) HttpCall *call = NULL;
        HttpRequest request = {
                .method = HTTP_POST,
                .url = url,
                .timeout_usec = CONTROL_TIMEOUT_USEC,
                .max_response_bytes = 4096,
        };
        Control c = { 0 };

        assert_non_null(url);
        assert_return_code(http_call_start(r->transport, &request, on_control, &c, &call), 0);
        (void) rig_wait(r, control_done, &c, CONTROL_TIMEOUT_USEC);
        assert_int_equal(c.error, 0);
        assert_int_equal(c.status, 200);
}

static void on_settled(const KubeReply *reply, void *userdata) {
        Control *c = userdata;

        c->done = true;
        c->status = reply->status;
}

/* Each reset has been sent when control() returns; a busy kernel may still deliver it a little later. A case
 * would lose a write that it sends meanwhile, for no write is sent again by itself (kube-call.h). A read is,
 * so that the connections of both lanes are good after one. */
static void settle(Rig *r) {
        const KubeTarget nothing = { .kind = &kube_node_kind, .name = "no-such-node" };

        for (HttpLane lane = HTTP_LANE_URGENT; lane <= HTTP_LANE_BULK; lane++) {
                const KubeCallOptions options = { .lane = lane, .timeout_usec = CONTROL_TIMEOUT_USEC };
                _cleanup_(kube_call_freep) KubeCall *call = NULL;
                Control c = { 0 };

                assert_return_code(
                        kube_get(rig_client(r, RIG_ADMIN), &nothing, &options, on_settled, &c, &call), 0);
                (void) rig_wait(r, control_done, &c, CONTROL_TIMEOUT_USEC);
                assert_int_equal(c.status, 404);
        }
}

void rig_compact(Rig *r) {
        if (r->fake) {
                fake_cluster_compact(r->cluster);
                return;
        }
        control(r, "compact");
        settle(r);
}

void rig_cut(Rig *r) {
        if (r->fake) {
                fake_api_cut_watches(fake_cluster_api(r->cluster));
                return;
        }
        control(r, "cut");
        settle(r);
}

void rig_hold(Rig *r, bool hold) {
        r->held = hold;
        if (!r->fake)
                control(r, hold ? "hold" : "release");
        else if (hold)
                http_inproc_cut_streams(r->people[RIG_HELD].transport);
}
