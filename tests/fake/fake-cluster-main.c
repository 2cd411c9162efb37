/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-event.h>

#include "fake-bulk.h"
#include "fake-clouds.h"
#include "fake-cluster.h"
#include "fake-control.h"
#include "fake-files.h"
#include "fake-machines.h"
#include "file-util.h"
#include "http-curl.h"
#include "http-server.h"
#include "parse-util.h"

/*
 * fake-cluster: the fake cluster's real face, for the demo, end to end tests and anybody who is curious.
 *
 * The world file is a JSON list of objects, or
 *
 *      { "objects": [...],
 *        "many": [{"count": 5000, "object": {...}}],
 *        "instances": [{"id": "i-1", "zone": "us-east-1a", "node": "a"}, {"id": "vm-a", "platform": "gce"}],
 *        "manyInstances": {"count": 5000, "zone": "us-east-1a", "node": "node-"},
 *        "identities": [{"name": "coordinator", "identity": "CN=USER,O=GROUP"}],
 *        "allow": [{"subject": "USER", "verbs": "*", "group": "*", "resources": "*"}] }    besides "namespace", "names": "a,b"
 *
 * "many" is as fake_load_many() has it. "manyInstances" are i-00000000, i-00000001 and so on; they
 * have no metadata service; "node" is the Node's name, here before their six digits, and stands in the tag vesper.sh/node;
 * and nodes that "many" made no kubeconfig. An instance is EC2's, or what its
 * platform says (fake-machines.h, also for its other keys). Groups, queues and the other clouds: fake-clouds.h.
 *
 * Admission webhooks of the world are called by HTTPS at their URLs.
 *
 * DIR gets kubeconfig-admin, kubeconfig-node-NAME of each node of the world, kubeconfig-NAME of each
 * identity, and, when all is ready, endpoints.json:
 *
 *      {"api": URL, "ec2": URL, "autoscaling": URL, "sqs": URL, "gce": URL, "azure": URL, "control": URL,
 *       "metadata": {"i-1": URL, "vm-a": URL}}
 */

#define BODY_MAX_BYTES (4u << 20)
#define WORLD_MAX_BYTES (64u << 20)

typedef struct Arguments {
        const char *dir, *world, *cert, *key, *ca, *client_ca, *region, *access_key_id, *secret_access_key;
        uint64_t api_port, ec2_port, control_port, seed, shutting_down_sec, pod_start_msec, heartbeat_sec,
                json_only;
} Arguments;

/* What one instance sees at its link-local address. */
typedef struct Metadata {
        ListNode metadata;
        char *instance;
        HttpServer *server;
} Metadata;

typedef struct Process {
        Arguments args;
        Loop *loop;
        Random *random;
        FakeCluster *cluster;
        FakeEc2 *ec2;
        FakeControl *control;
        HttpServer *api_server, *ec2_server, *control_server;
        FakeClouds *clouds;
        HttpServer *cloud_servers[_FAKE_CLOUD_MAX];
        FakeMachines *machines;
        HttpTransport *webhooks;
        List metadata;
        char *api_url;
} Process;

static const char usage[] =
        "Usage: fake-cluster --dir DIR [OPTION...]\n"
        "\n"
        "A fake Kubernetes cluster, fakes of EC2, Auto Scaling, SQS, GCE and Azure, and instance metadata\n"
        "as of EC2, GCE and Azure, on loopback, until SIGTERM.\n"
        "\n"
        "      --dir DIR               where kubeconfigs and endpoints.json go\n"
        "      --world FILE            JSON: objects, instances, identities\n"
        "      --cert FILE --key FILE  HTTPS for the API server\n"
        "      --ca FILE               what clients are to trust (default: --cert)\n"
        "      --client-ca FILE        whose client certificates name their users\n"
        "      --api-port PORT         default: any; so too --ec2-port, --control-port\n"
        "      --region REGION         of EC2 (default us-east-1)\n"
        "      --access-key-id ID --secret-access-key KEY\n"
        "                              what EC2 asks for (default: no signature)\n"
        "      --terminate-sec N       a terminated instance is shutting down so long (default 1)\n"
        "      --pod-start-msec N      a bound pod runs after so long (default 50)\n"
        "      --heartbeat-sec N       kubelets renew their Leases so often (default 10; 0: never)\n"
        "      --json-only 1           the API server does not speak protobuf\n"
        "      --seed N                of all that is random (default: the system's)\n";

static int fail(int r, const char *what) {
        fprintf(stderr, "fake-cluster: %s: %s\n", what, strerror(-r));
        return r;
}

/* -- arguments ----------------------------------------------------------------------------------------- */

enum {
        ARG_DIR = 256,
        ARG_WORLD,
        ARG_CERT,
        ARG_KEY,
        ARG_CA,
        ARG_CLIENT_CA,
        ARG_REGION,
        ARG_ACCESS_KEY_ID,
        ARG_SECRET_ACCESS_KEY,
        _ARG_NUMBERS,
        ARG_API_PORT = _ARG_NUMBERS,
        ARG_EC2_PORT,
        ARG_CONTROL_PORT,
        ARG_SEED,
        ARG_TERMINATE_SEC,
        ARG_POD_START_MSEC,
        ARG_HEARTBEAT_SEC,
        ARG_JSON_ONLY,
        _ARG_MAX,
};

/* Where the value of an option goes, and the largest number it may be. */
static int take_argument(Arguments *a, int option, const char *value) {
        const char **const texts[] = { &a->dir,
                                       &a->world,
                                       &a->cert,
                                       &a->key,
                                       &a->ca,
                                       &a->client_ca,
                                       &a->region,
                                       &a->access_key_id,
                                       &a->secret_access_key };
        struct {
                uint64_t *number, max;
        } numbers[] = { { &a->api_port, 65535 },          { &a->ec2_port, 65535 },
                        { &a->control_port, 65535 },      { &a->seed, UINT64_MAX },
                        { &a->shutting_down_sec, 86400 }, { &a->pod_start_msec, 3600000 },
                        { &a->heartbeat_sec, 3600 },      { &a->json_only, 1 } };

        if (option < ARG_DIR || option >= _ARG_MAX)
                return -EINVAL;
        if (option < _ARG_NUMBERS) {
                *texts[option - ARG_DIR] = value;
                return 0;
        }
        return parse_uint64_range(value, 0, numbers[option - _ARG_NUMBERS].max,
                                  numbers[option - _ARG_NUMBERS].number);
}

static int parse_arguments(int argc, char **argv, Arguments *a) {
        static const struct option options[] = {
                { "dir", required_argument, NULL, ARG_DIR },
                { "world", required_argument, NULL, ARG_WORLD },
                { "cert", required_argument, NULL, ARG_CERT },
                { "key", required_argument, NULL, ARG_KEY },
                { "ca", required_argument, NULL, ARG_CA },
                { "client-ca", required_argument, NULL, ARG_CLIENT_CA },
                { "region", required_argument, NULL, ARG_REGION },
                { "access-key-id", required_argument, NULL, ARG_ACCESS_KEY_ID },
                { "secret-access-key", required_argument, NULL, ARG_SECRET_ACCESS_KEY },
                { "api-port", required_argument, NULL, ARG_API_PORT },
                { "ec2-port", required_argument, NULL, ARG_EC2_PORT },
                { "control-port", required_argument, NULL, ARG_CONTROL_PORT },
                { "seed", required_argument, NULL, ARG_SEED },
                { "terminate-sec", required_argument, NULL, ARG_TERMINATE_SEC },
                { "pod-start-msec", required_argument, NULL, ARG_POD_START_MSEC },
                { "heartbeat-sec", required_argument, NULL, ARG_HEARTBEAT_SEC },
                { "json-only", required_argument, NULL, ARG_JSON_ONLY },
                { NULL, 0, NULL, 0 },
        };
        int c;

        *a = (Arguments){ 
                .region = "us-east-1", .shutting_down_sec = 1, .pod_start_msec = 50, .heartbeat_sec = 10
        };
        while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0)
                if (take_argument(a, c, optarg) < 0) {
                        fputs(usage, stderr);
                        return -EINVAL;
                }
        if (optind != argc || !a->dir || !a->cert != !a->key) {
                fputs(usage, stderr);
                return -EINVAL;
        }
        return 0;
}

/* -- servers ------------------------------------------------------------------------------------------- */

static int read_pem(const char *path, char **ret) {
        size_t size;
        int r = path ? read_file(path, 1u << 20, ret, &size) : 0;

        return r < 0 ? fail(r, path) : 0;
}

static int start_server(Process *p, uint64_t port, http_handler_t handler, void *userdata, bool https,
                        HttpServer **ret) {
        _cleanup_free_ char *cert = NULL, *key = NULL, *client_ca = NULL;
        HttpServerOptions options = {
                .address = "127.0.0.1",
                .port = (uint16_t) port,
                .listen_fd = -EBADF,
                .max_body_bytes = BODY_MAX_BYTES,
                .max_connections = 1000,
                .idle_timeout_usec = USEC_INFINITY,
        };
        int r;

        if (https && p->args.cert) {
                if ((r = read_pem(p->args.cert, &cert)) < 0 || (r = read_pem(p->args.key, &key)) < 0 ||
                    (r = read_pem(p->args.client_ca, &client_ca)) < 0)
                        return r;
                options.cert_pem = cert;
                options.key_pem = key;
                options.client_ca_pem = client_ca;
        }
        r = http_server_new(p->loop, &options, handler, userdata, ret);
        return r < 0 ? fail(r, "cannot listen") : 0;
}

static char *url_of(const HttpServer *s, bool https) {
        return MUST(strf("%s://127.0.0.1:%u", https ? "https" : "http", http_server_port(s)));
}

static int start_servers(Process *p) {
        int r;

        if ((r = start_server(p, p->args.api_port, fake_cluster_handle, p->cluster, true, &p->api_server)) <
                    0 ||
            (r = start_server(p, p->args.ec2_port, fake_ec2_handle, p->ec2, false, &p->ec2_server)) < 0 ||
            (r = start_server(p, p->args.control_port, fake_control_handle, p->control, false,
                              &p->control_server)) < 0)
                return r;
        p->api_url = url_of(p->api_server, p->args.cert);
        return 0;
}

/* -- the world ----------------------------------------------------------------------------------------- */

static int add_identity(Process *p, const char *name, const char *identity, const char *token) {
        const char *ca = p->args.cert ? (p->args.ca ? p->args.ca : p->args.cert) : NULL;
        char made[UUID_MAX];
        int r;

        random_uuid(p->random, made);
        fake_authz_add_token(fake_cluster_authz(p->cluster), token ? token : made, identity);
        r = fake_write_kubeconfig(p->args.dir, name, p->api_url, ca, token ? token : made);
        return r < 0 ? fail(r, p->args.dir) : 0;
}

static int add_identities(Process *p, const cJSON *world) {
        const cJSON *o;
        int r = add_identity(p, "admin", "CN=admin,O=system:masters", NULL);

        cJSON_ArrayForEach (o, fj_get(world, "identities", NULL)) {
                const char *name = fj_string(o, "name", NULL), *identity = fj_string(o, "identity", NULL);

                if (!name || !identity)
                        return fail(-EINVAL, "an identity needs name and identity");
                if (r >= 0)
                        r = add_identity(p, name, identity, fj_string(o, "token", NULL));
        }
        cJSON_ArrayForEach (o, fj_get(world, "allow", NULL))
                fake_authz_allow_named(fake_cluster_authz(p->cluster), strempty(fj_string(o, "subject", NULL)),
                                       strempty(fj_string(o, "verbs", NULL)), strempty(fj_string(o, "group", NULL)),
                                       strempty(fj_string(o, "resources", NULL)), fj_string(o, "namespace", NULL),
                                       fj_string(o, "names", NULL));
        FAKE_FOREACH (o, p->cluster, FAKE_NODES, NULL) {
                const char *node = fj_string(o, "metadata", "name", NULL);
                _cleanup_free_ char *name = MUST(strf("node-%s", node));
                _cleanup_free_ char *identity = MUST(strf("CN=system:node:%s,O=system:nodes", node));

                if (r >= 0)
                        r = add_identity(p, name, identity, NULL);
        }
        return r;
}

static int add_metadata(Process *p, const char *instance, FakeMachine *machine) {
        Metadata *m = MUST(new0(Metadata, 1));

        m->instance = MUST(strdup(instance));
        list_append(&p->metadata, &m->metadata);
        return start_server(p, 0, fake_machine_handle, machine, false, &m->server);
}

static bool on_notice(const char *instance, const char *kind, const char *action, int64_t seconds,
                      void *userdata) {
        Process *p = userdata;

        return fake_machines_notice(p->machines, instance, kind, action, seconds);
}

static const char *on_metadata_fault(const char *instance, const cJSON *fault, void *userdata) {
        Process *p = userdata;

        return fake_machines_fault(p->machines, instance, fault);
}

static int add_instances(Process *p, const cJSON *world) {
        const cJSON *o;
        int r;

        cJSON_ArrayForEach (o, fj_get(world, "instances", NULL)) {
                const char *id = fj_string(o, "id", NULL), *zone = fj_string(o, "zone", NULL), *why;
                FakeMachine *machine = fake_machines_add(p->machines, o, &why);

                if (!machine)
                        return fail(-EINVAL, why);
                if (streq(fake_machine_platform(machine), "ec2")) {
                        fake_ec2_run(p->ec2, id, zone ? zone : "us-east-1a");
                        fake_ec2_set_node_tag(p->ec2, id, fj_string(o, "node", NULL));
                        fake_control_add_instance(p->control, id);
                }
                r = add_metadata(p, id, machine);
                if (r < 0)
                        return r;
        }
        return 0;
}

static const char *on_cloud_post(const char *path, const cJSON *o, cJSON **ret_answer, void *userdata) {
        Process *p = userdata;

        return fake_clouds_post(p->clouds, path, o, ret_answer);
}

/* With EC2's instances there. */
static int add_clouds(Process *p, const cJSON *world) {
        FakeCloudsOptions options = {
                .loop = p->loop,
                .random = p->random,
                .ec2 = p->ec2,
                .aws = { .loop = p->loop,
                         .region = p->args.region,
                         .access_key_id = p->args.access_key_id,
                         .secret_access_key = p->args.secret_access_key },
        };
        _cleanup_free_ char *azure = NULL;
        const char *why;

        p->clouds = fake_clouds_new(&options, world, &why);
        if (!p->clouds)
                return fail(-EINVAL, why);
        for (FakeCloudId id = 0; id < _FAKE_CLOUD_MAX; id++) {
                int r = start_server(p, 0, fake_cloud_handler(id), fake_clouds_userdata(p->clouds, id), false,
                                     &p->cloud_servers[id]);

                if (r < 0)
                        return r;
        }
        azure = url_of(p->cloud_servers[FAKE_CLOUD_AZURE], false);
        fake_azure_set_base_url(fake_clouds_azure(p->clouds), azure);
        fake_control_set_clouds(p->control, on_cloud_post, p);
        return 0;
}

/* After the identities of nodes were made. */
static int add_many(Process *p, const cJSON *world) {
        int64_t count = fj_int(world, 0, "manyInstances", "count", NULL);
        const char *zone = fj_string(world, "manyInstances", "zone", NULL),
                   *node = fj_string(world, "manyInstances", "node", NULL);
        const cJSON *o;

        for (int64_t i = 0; i < count; i++) {
                _cleanup_free_ char *id = MUST(strf("i-00%06lld", (long long) i));
                _cleanup_free_ char *name = node ? MUST(strf("%s%06lld", node, (long long) i)) : NULL;

                fake_ec2_run(p->ec2, id, zone ? zone : "us-east-1a");
                fake_ec2_set_node_tag(p->ec2, id, name);
                fake_control_add_instance(p->control, id);
        }
        cJSON_ArrayForEach (o, fj_get(world, "many", NULL))
                if (fake_load_many(p->cluster, o) < 0)
                        return fail(-EINVAL, "'many' of no kind that is served here, or without a name");
        return 0;
}

static int load_world(Process *p) {
        _cleanup_cjson_ cJSON *world = NULL;
        _cleanup_free_ char *text = NULL;
        const cJSON *objects;
        size_t size;
        int r;

        if (p->args.world) {
                r = read_file(p->args.world, WORLD_MAX_BYTES, &text, &size);
                if (r < 0)
                        return fail(r, p->args.world);
                world = cJSON_ParseWithOpts(text, NULL, true);
                if (!world)
                        return fail(-EBADMSG, p->args.world);
        }
        objects = cJSON_IsArray(world) ? world : fj_get(world, "objects", NULL);
        if (objects && fake_load(p->cluster, objects) < 0)
                return fail(-EINVAL,
                            "an object of the world is of no kind that is served here, or has no name");
        if ((r = add_instances(p, world)) < 0 || (r = add_clouds(p, world)) < 0 ||
            (r = add_identities(p, world)) < 0)
                return r;
        return add_many(p, world);
}

static int write_endpoints(Process *p) {
        _cleanup_free_ char *ec2 = url_of(p->ec2_server, false), *control = url_of(p->control_server, false),
                            *text = NULL;
        _cleanup_cjson_ cJSON *o =
                fj_parse("{'api':'%s','ec2':'%s','control':'%s'}", p->api_url, ec2, control);
        int r;

        for (FakeCloudId id = 0; id < _FAKE_CLOUD_MAX; id++) {
                _cleanup_free_ char *url = url_of(p->cloud_servers[id], false);

                fj_set_string(o, fake_cloud_name(id), url);
        }
        LIST_FOREACH (m, &p->metadata, Metadata, metadata) {
                _cleanup_free_ char *url = url_of(m->server, false);

                fj_set_string(fj_object(o, "metadata"), m->instance, url);
        }
        text = fj_print(o);
        r = fake_write_file(p->args.dir, "endpoints.json", text);
        if (r < 0)
                return fail(r, p->args.dir);
        puts(text);
        fflush(stdout);
        return 0;
}

/* -- life ---------------------------------------------------------------------------------------------- */

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata) {
        loop_exit(userdata, 0);
        return 0;
}

static int catch_signals(Process *p) {
        static const int signals[] = { SIGTERM, SIGINT };
        sigset_t set;
        int r;

        (void) signal(SIGPIPE, SIG_IGN);
        sigemptyset(&set);
        for (size_t i = 0; i < ELEMENTSOF(signals); i++)
                sigaddset(&set, signals[i]);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return fail(-errno, "signals");
        for (size_t i = 0; i < ELEMENTSOF(signals); i++) {
                r = sd_event_add_signal(loop_sd_event(p->loop), NULL, signals[i], on_signal, p->loop);
                if (r < 0)
                        return fail(r, "signals");
        }
        return 0;
}

static int start(Process *p) {
        FakeClusterOptions options = {
                .api = { .encoding = p->args.json_only ? FAKE_ENCODING_JSON : FAKE_ENCODING_PROTOBUF },
                .heartbeat_usec = p->args.heartbeat_sec * USEC_PER_SEC,
                .pod_start_usec = p->args.pod_start_msec * USEC_PER_MSEC,
        };
        FakeEc2Options ec2 = {
                .region = p->args.region,
                .access_key_id = p->args.access_key_id,
                .secret_access_key = p->args.secret_access_key,
                .shutting_down_usec = p->args.shutting_down_sec * USEC_PER_SEC,
        };
        int r = loop_new(&p->loop);

        if (r >= 0)
                r = p->args.seed > 0 ? random_new(p->args.seed, &p->random)
                                     : random_new_from_system(&p->random);
        if (r < 0)
                return fail(r, "cannot start");
        ec2.loop = p->loop;
        p->cluster = fake_cluster_new(p->loop, p->random, &options);
        p->ec2 = MUST(fake_ec2_new(&ec2));
        r = http_curl_new(p->loop, NULL, &(HttpCurlOptions){ .user_agent = "fake-cluster" }, &p->webhooks);
        if (r < 0)
                return fail(r, "cannot call webhooks");
        fake_api_set_webhook_transport(fake_cluster_api(p->cluster), p->webhooks);
        p->machines = fake_machines_new(p->loop);
        p->control = fake_control_new(p->loop, p->cluster, p->ec2, on_notice, p);
        fake_control_set_metadata_fault(p->control, on_metadata_fault, p);

        if ((r = catch_signals(p)) < 0 || (r = start_servers(p)) < 0 || (r = load_world(p)) < 0)
                return r;
        return write_endpoints(p);
}

static void stop(Process *p) {
        http_server_free(p->api_server);
        http_server_free(p->ec2_server);
        http_server_free(p->control_server);
        for (FakeCloudId id = 0; id < _FAKE_CLOUD_MAX; id++)
                http_server_free(p->cloud_servers[id]);
        LIST_FOREACH (m, &p->metadata, Metadata, metadata) {
                http_server_free(m->server);
                free(m->instance);
                free(m);
        }
        fake_machines_free(p->machines);
        fake_control_free(p->control);
        fake_cluster_free(p->cluster);
        http_transport_free(p->webhooks);
        fake_clouds_free(p->clouds);
        fake_ec2_free(p->ec2);
        random_free(p->random);
        loop_free(p->loop);
        free(p->api_url);
}

int main(int argc, char **argv) {
        Process p = { 0 };
        int r;

        if (parse_arguments(argc, argv, &p.args) < 0)
                return 2;
        r = start(&p);
        if (r >= 0)
                r = loop_run(p.loop);
        stop(&p);
        return r < 0 ? 1 : 0;
}
