/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "cloud-engine.h"
#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "kubeconfig.h"
#include "marks.h"
#include "page.h"
#include "rig-rounds.h"

#define EC2_ORIGIN "http://ec2"
#define USER "vesper-coordinator"
#define KEY_ID "AKIAIOSFODNN7EXAMPLE"
#define SECRET "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"

/* -- the toy cloud -------------------------------------------------------------------------------------- */

typedef struct ToyProvider {
        CloudEngine engine;
        CoordinatorRig *rig;
        Loop *loop;
        Timer *turns;
} ToyProvider;

typedef struct ToyBatch {
        CloudBatch batch;
        Timer *timer;
} ToyBatch;

static ToyProvider *toy_of(const CloudEngine *e) {
        return CONTAINER_OF(e, ToyProvider, engine);
}

static bool terminates(const CloudRequest *r) {
        return r->call.operation == CLOUD_TERMINATE;
}

char *rig_instance(const char *node) {
        return MUST(strf("i-0%016llx", (unsigned long long) hash64(node, strlen(node))));
}

static char *provider_id_of(const char *node) {
        _cleanup_free_ char *instance = rig_instance(node);

        return MUST(strf("aws:///" ZONE "/%s", instance));
}

/* The launch of that op id; a new one has no machine yet. */
static ToyLaunch *toy_launch(ToyCloud *cloud, const char *op_id) {
        ToyLaunch *x = hashmap_get(cloud->launched, op_id);

        if (!x) {
                x = MUST(new0(ToyLaunch, 1));
                assert_return_code(hashmap_put(cloud->launched, op_id, x), 0);
        }
        return x;
}

static void toy_bring_machine(CoordinatorRig *r, ToyLaunch *x, const char *like) {
        ToyMachine *m = hashmap_get(r->toy.machines, like);
        _cleanup_free_ char *node = NULL, *id = NULL;

        if (x->machine) /* the same op id again */
                return;
        assert_non_null(m);
        node = MUST(strf("%s-%u", m->node, ++m->n_successors));
        id = provider_id_of(node);
        r->toy.n_launched++;
        x->machine = rig_add_machine(r, id, node);
        x->seen_usec = usec_add(virtual_time_now(r->w.time), r->toy.seen_after_usec);
}

static CloudResult toy_answer_launch(CoordinatorRig *r, const CloudReservation *o) {
        static const struct {
                bool comes, names;
                CloudResult result;
        } answers[_TOY_LAUNCH_ANSWER_MAX] = {
                [TOY_NAMED] = { true, true, { .outcome = CLOUD_OK } },
                [TOY_ACCEPTED] = { true, false, { .outcome = CLOUD_OK } },
                [TOY_LOST] = { false, false, { .outcome = CLOUD_OK } },
                [TOY_UNKNOWN_DONE] = { true, false,
                                       { .outcome = CLOUD_RETRY, .undecided = true,
                                         .message = "the connection broke" } },
                [TOY_UNKNOWN] = { false, false, { .outcome = CLOUD_RETRY, .undecided = true,
                                                  .message = "the connection broke" } },
                [TOY_LATER] = { false, false, { .outcome = CLOUD_RETRY, .message = "throttled" } },
                [TOY_NO_CAPACITY] = { false, false,
                                      { .outcome = CLOUD_NO_CAPACITY,
                                        .message = "no such machine is left" } },
                [TOY_REFUSED] = { false, false, { .outcome = CLOUD_DENIED, .message = "not authorized" } },
                [TOY_UNSUPPORTED] = { false, false,
                                      { .outcome = CLOUD_INVALID, .code = CLOUD_UNSUPPORTED,
                                        .message = "no launch here" } },
        };
        ToyCloud *cloud = &r->toy;
        ToyLaunchAnswer answer = cloud->n_launch_answers > 0 ? cloud->launch_answers[0] : TOY_NAMED;
        ToyLaunch *x = toy_launch(cloud, o->op_id);
        CloudResult result = answers[answer].result;

        cloud->n_launches++;
        if (cloud->n_launch_answers > 0)
                memmove(cloud->launch_answers, cloud->launch_answers + 1,
                        --cloud->n_launch_answers * sizeof(answer));
        free(cloud->launch_text);
        cloud->launch_text = MUST(strf("%s|%s|%s|%s", strempty(o->launch.group), strempty(o->launch.like),
                                       strempty(o->launch.zone), strempty(o->launch.capacity_type)));
        if (answers[answer].comes)
                toy_bring_machine(r, x, o->launch.like);
        if (answers[answer].names)
                result.provider_id = x->machine->provider_id;
        if (cloud->misnamed && result.outcome == CLOUD_OK)
                result.provider_id = cloud->misnamed;
        return result;
}

static CloudResult toy_answer_find(CoordinatorRig *r, const char *op_id) {
        const ToyLaunch *x = hashmap_get(r->toy.launched, op_id);
        bool is_unsupported = r->toy.find_outcome == CLOUD_INVALID;
        bool seen = x && x->machine && x->machine->state == INSTANCE_PRESENT &&
                    virtual_time_now(r->w.time) >= x->seen_usec;

        r->toy.n_finds++;
        if (r->toy.find_outcome != CLOUD_OK)
                return (CloudResult){ .outcome = r->toy.find_outcome,
                                      .code = is_unsupported ? CLOUD_UNSUPPORTED : NULL,
                                      .message = "the cloud is in a bad mood" };
        return (CloudResult){ .outcome = CLOUD_OK,
                              .provider_id = r->toy.misnamed ? r->toy.misnamed
                                             : seen          ? x->machine->provider_id
                                                             : NULL };
}

static const CloudProviderOps toy_other_ops[_TOY_OTHER_MAX];

static CloudResult toy_answer(const CloudRequest *r) {
        CoordinatorRig *rig = toy_of(cloud_request_engine(r))->rig;
        ToyCloud *cloud = &rig->toy;
        ToyMachine *m = hashmap_get(cloud->machines, r->machine->provider_id);

        if (r->call.operation == CLOUD_FIND || r->call.operation == CLOUD_LAUNCH)
                cloud->n_other += cloud_request_engine(r)->provider.ops == toy_other_ops + TOY_OTHER_LAUNCHES;
        if (r->call.operation == CLOUD_FIND)
                return toy_answer_find(rig, r->reservation.op_id);
        if (r->call.operation == CLOUD_LAUNCH)
                return toy_answer_launch(rig, &r->reservation);
        if (r->call.operation == CLOUD_LIST) {
                cloud->n_listed++;
                return cloud->list;
        }
        if (terminates(r) && !r->guard.may_send(r->guard.userdata))
                return (CloudResult){ .outcome = CLOUD_RETRY, .message = "lease lost" };
        if (!m)
                return (CloudResult){ .outcome = CLOUD_OK,
                                      .state = INSTANCE_UNKNOWN,
                                      .message = "nobody knows it" };
        if (!terminates(r)) {
                m->n_described++;
                if (cloud->describe_outcome != CLOUD_OK)
                        return (CloudResult){ .outcome = cloud->describe_outcome,
                                              .message = "the cloud is in a bad mood" };
                return (CloudResult){ .outcome = CLOUD_OK,
                                      .state = m->state,
                                      .message = "",
                                      .identity = { .instance_id = m->provider_id,
                                                    .region = "toy-1",
                                                    .method = streq_ptr(r->machine->node, m->node) ? "Toy" : NULL },
                                      .unproved = "the toy knows it by another name" };
        }
        m->n_terminated++;
        if (m->outcome != CLOUD_OK)
                return (CloudResult){ .outcome = m->outcome, .message = "it does not want to" };
        if (m->state == INSTANCE_PRESENT)
                m->state = m->after;
        return (CloudResult){ .outcome = CLOUD_OK, .state = m->state, .message = "" };
}

static void on_toy_timer(Timer *t, void *userdata) {
        ToyBatch *b = userdata;
        CloudRequest *r = cloud_batch_first(&b->batch);

        b->batch.answering = true;
        cloud_request_finish(r, toy_answer(r));
        cloud_batch_free(&b->batch);
}

static int toy_send(CloudBatch *batch) {
        ToyProvider *toy = toy_of(batch->engine);
        ToyBatch *b = CONTAINER_OF(batch, ToyBatch, batch);
        const CloudRequest *r = cloud_batch_first(batch);

        if (r->call.operation == CLOUD_LAUNCH)
                assert_true(r->guard.may_send(r->guard.userdata));
        if (terminates(r)) {
                ToyMachine *m = hashmap_get(toy->rig->toy.machines, r->machine->provider_id);
                const char *pool = r->reservation.pool;

                assert_true(isempty(pool) || streq(pool, POOL) || streq(pool, "racks")); /* empty: the claim has gone */
                if (m)
                        assert_return_code(free_and_strdup(&m->op_id, r->reservation.op_id), 0);
        }
        assert_return_code(timer_new(toy->loop, "toy", on_toy_timer, b, &b->timer), 0);
        if (!toy->rig->toy.silent)
                timer_arm_in(b->timer, toy->rig->toy.latency_usec);
        return 0;
}

static void toy_batch_done(CloudBatch *b) {
        timer_free(CONTAINER_OF(b, ToyBatch, batch)->timer);
}

static bool toy_refuses(const CloudRequest *r, char **ret_message) {
        return false;
}

static void on_toy_turns(Timer *t, void *userdata) {
        ToyProvider *toy = userdata;
        CloudOutcome outcome = toy->rig->toy.turn_outcome;

        toy->turns = timer_free(toy->turns);
        if (outcome != CLOUD_OK)
                cloud_engine_refuse_waiting(&toy->engine, true, outcome, "the cloud is out of turns");
        cloud_engine_give_places(&toy->engine);
}

static void toy_prepare_turns(CloudEngine *e) {
        ToyProvider *toy = toy_of(e);

        if (toy->turns)
                return;
        toy->rig->toy.n_turns++;
        assert_return_code(timer_new(toy->loop, "toy-turns", on_toy_turns, toy, &toy->turns), 0);
        timer_arm_in(toy->turns, toy->rig->toy.turn_usec);
}

static const CloudEngineOps toy_engine_ops = {
        .batch_bytes = sizeof(ToyBatch),
        .describes_at_once = 1,
        .refuses = toy_refuses,
        .prepare = toy_prepare_turns,
        .send = toy_send,
        .batch_done = toy_batch_done,
};

static bool toy_owns(const CloudProvider *p, const char *provider_id) {
        return startswith(provider_id, "aws:///") != NULL;
}

static void toy_free(CloudProvider *p) {
        ToyProvider *toy = CONTAINER_OF(p, ToyProvider, engine.provider);

        timer_free(toy->turns);
        cloud_engine_done(&toy->engine);
        free(toy);
}

static const CloudProviderOps toy_ops = {
        .name = "ec2",
        .owns = toy_owns,
        .proves_identity = true,
        .free = toy_free,
};

/* As provider exec, the only one that launches: it proves no identities. */
#define TOY_LAUNCHING_OPS(more) \
        { .name = "ec2", .owns = toy_owns, .operations = 1u << CLOUD_LAUNCH | (more), .free = toy_free }

static const CloudProviderOps toy_launching_ops = TOY_LAUNCHING_OPS(1u << CLOUD_FIND);
static const CloudProviderOps toy_blind_ops = TOY_LAUNCHING_OPS(0u); /* no find */

static bool toy_exec_owns(const CloudProvider *p, const char *provider_id) {
        return !isempty(provider_id);
}

static bool toy_owns_nothing(const CloudProvider *p, const char *provider_id) {
        return false;
}

static const CloudProviderOps toy_other_ops[_TOY_OTHER_MAX] = {
        [TOY_OTHER_OWNS] = { .name = "exec", .owns = toy_exec_owns, .free = toy_free },
        [TOY_OTHER_LAUNCHES] = { .name = "exec",
                                 .owns = toy_owns_nothing,
                                 .operations = 1u << CLOUD_LAUNCH | 1u << CLOUD_FIND,
                                 .free = toy_free },
};

static const CloudProviderOps toy_exec_ops = {
        .name = "exec",
        .owns = toy_exec_owns,
        .takes_names = true,
        .free = toy_free,
};

static const CloudProviderOps toy_listing_ops = {
        .name = "exec",
        .owns = toy_exec_owns,
        .takes_names = true,
        .operations = 1u << CLOUD_LIST,
        .free = toy_free,
};

static void *toy_machine_free(void *p) {
        ToyMachine *m = p;

        free(m->provider_id);
        free(m->node);
        free(m->op_id);
        free(m);
        return NULL;
}

/* -- the cluster ---------------------------------------------------------------------------------------- */

/* packaging/manifests/coordinator/rbac.yaml */
static void allow(FakeAuthz *a) {
        fake_authz_allow(a, USER, "list,watch,patch,delete", "", "nodes", NULL);
        fake_authz_allow_named(a, USER, "list,watch", "", "namespaces", NULL, "vesper-system");
        fake_authz_allow(a, USER, "patch", "", "nodes/status", NULL);
        fake_authz_allow(a, USER, "list,watch,delete", "", "pods", NULL);
        fake_authz_allow(a, USER, "create", "", "pods/eviction", NULL);
        fake_authz_allow(a, USER, "patch", "", "pods/status", NULL);
        fake_authz_allow(a, USER, "create,patch", "", "events", NULL);
        fake_authz_allow(a, USER, "list,watch", "policy", "poddisruptionbudgets", NULL);
        fake_authz_allow(a, USER, "list,watch", "storage.k8s.io", "volumeattachments", NULL);
        fake_authz_allow(a, USER, "get", "", "persistentvolumeclaims", NULL);
        fake_authz_allow(a, USER, "list,watch", "", "persistentvolumeclaims,persistentvolumes,namespaces", NULL);
        fake_authz_allow(a, USER, "list,watch", "storage.k8s.io", "storageclasses,csinodes", NULL);
        fake_authz_allow(a, USER, "list,watch,create,patch,delete", "vesper.sh", "nodeclaims", NULL);
        fake_authz_allow(a, USER, "patch", "vesper.sh", "nodeclaims/status", NULL);
        fake_authz_allow(a, USER, "list,watch,patch", "vesper.sh", "nodepools", NULL);
        fake_authz_allow(a, USER, "patch", "vesper.sh", "nodepools/status,nodedisruptionbudgets/status", NULL);
        fake_authz_allow(a, USER, "get,list,watch", "vesper.sh", "nodedisruptionbudgets", NULL);
        fake_authz_allow(a, USER, "create,get,update", "coordination.k8s.io", "leases", "vesper-system");
}

CoordinatorRig *coordinator_rig_new(void) {
        CoordinatorRig *r = MUST(new0(CoordinatorRig, 1));

        fake_world_init(&r->w, NULL);
        r->cluster = r->w.cluster;
        r->api = fake_cluster_api(r->cluster);
        allow(fake_cluster_authz(r->cluster));
        fake_put(r->cluster, FAKE_NAMESPACES,
                 fj_parse("{'metadata':{'name':'vesper-system'},'status':{'phase':'Active'}}"));
        assert_return_code(hashmap_new(0, &r->toy.machines), 0);
        assert_return_code(hashmap_new(0, &r->toy.launched), 0);
        r->toy.latency_usec = 5 * MSEC;
        return r;
}

CoordinatorRig *coordinator_rig_free(CoordinatorRig *r) {
        if (!r)
                return NULL;
        for (size_t i = 0; i < ELEMENTSOF(r->coordinators); i++)
                rig_kill(r, i);
        hashmap_free_with(r->toy.launched, mfree);
        hashmap_free_with(r->toy.machines, toy_machine_free);
        free(r->toy.launch_text);
        fake_ec2_free(r->ec2);
        config_done(coordinator_config_table, coordinator_config_table_size, &r->config);
        fake_world_done(&r->w);
        return mfree(r);
}

static void on_asleep(const char *text, void *userdata) {
        fail_msg("coordinator %c is asleep: %s", *(const char *) userdata, text);
}

/* Fails if an unfinished thing of a coordinator has nothing that wakes it (wakeup.h). */
static void check_awake(CoordinatorRig *r) {
        for (size_t i = 0; i < ELEMENTSOF(r->coordinators); i++) {
                RigCoordinator *c = r->coordinators[i];
                Wakeups w;

                if (!c || !c->coordinator)
                        continue;
                wakeups_begin(&w, c->loop, on_asleep, &c->name);
                coordinator_next_wakeup(c->coordinator, &w);
                wakeups_end(&w);
        }
}

void rig_run(CoordinatorRig *r, usec_t usec) {
        fake_world_run(&r->w, usec);
        check_awake(r);
}

/* -- coordinators --------------------------------------------------------------------------------------- */

static void on_log(LogLevel level, const char *message_id, const char *text, const LogField *fields,
                   size_t n_fields, void *userdata) {
        RigCoordinator *c = userdata;

        strbuf_addf(&c->said, "%s\n", text);
        if (c->rig->notes && level <= LOG_LEVEL_INFO)
                rig_note_log(c->rig, text);
        if (getenv("TEST_TRACE"))
                fprintf(stderr, "%10.3f %c <%d> %s\n", (double) loop_now(c->loop) / 1e6 - 1000, c->name,
                        (int) level, text);
}

static void on_notify(const char *text, void *userdata) {
        strbuf_addf(&((RigCoordinator *) userdata)->told, "%s\n", text);
}

static const char *on_getenv(const char *name, void *userdata) {
        return streq(name, "AWS_ACCESS_KEY_ID")       ? KEY_ID
               : streq(name, "AWS_SECRET_ACCESS_KEY") ? SECRET
                                                      : NULL;
}

static void add_toy(RigCoordinator *c, const CloudProviderOps *ops) {
        ToyProvider *toy = MUST(new0(ToyProvider, 1));

        toy->rig = c->rig;
        toy->loop = c->loop;
        assert_return_code(cloud_engine_init(&toy->engine, &c->env, ops, &toy_engine_ops), 0);
        cloud_registry_add(&c->cloud, &toy->engine.provider);
}

static void make_provider(RigCoordinator *c) {
        CoordinatorRig *r = c->rig;
        CloudConfig config = { .name = "ec2",
                               .endpoint = EC2_ORIGIN,
                               .getenv = on_getenv,
                               .region = r->ec2_region ? r->ec2_region : "us-east-1" };
        const char *message = NULL;
        const CloudProviderOps *ops = r->toy.lists      ? &toy_listing_ops
                                      : r->toy.is_exec  ? &toy_exec_ops
                                      : r->toy.no_find  ? &toy_blind_ops
                                      : r->toy.launches ? &toy_launching_ops
                                                        : &toy_ops;

        if (r->use_ec2) {
                assert_return_code(http_inproc_route(c->transport, EC2_ORIGIN, fake_ec2_handle, r->ec2), 0);
                assert_return_code(cloud_provider_new(&c->env, &config, &c->provider, &message), 0);
                cloud_registry_add(&c->cloud, c->provider);
                if (!r->toy.is_exec)
                        return;
        }
        if (r->toy.other != TOY_ALONE)
                add_toy(c, &toy_other_ops[r->toy.other]);
        add_toy(c, ops);
        c->provider = c->cloud.providers[0];
}

size_t rig_turns_held(const CoordinatorRig *r) {
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTSOF(r->coordinators); i++)
                if (r->coordinators[i])
                        n += CONTAINER_OF(r->coordinators[i]->provider, ToyProvider, engine.provider)->engine.yours.size;
        return n;
}

static void make_client(RigCoordinator *c, unsigned seed) {
        _cleanup_(kubeconfig_freep) KubeConfig *config = NULL;
        _cleanup_free_ char *message = NULL;

        assert_return_code(loop_new_virtual(c->rig->w.time, &c->loop), 0);
        assert_return_code(random_new(seed, &c->random), 0);
        assert_return_code(log_new(LOG_TARGET_NULL, getenv("TEST_TRACE") ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO,
                                   "c", &c->log),
                           0);
        log_set_hook(c->log, on_log, c);
        assert_return_code(http_inproc_new(c->loop, "CN=" USER ",O=system:authenticated", &c->rig->hooks,
                                           &c->transport),
                           0);
        assert_return_code(
                http_inproc_route(c->transport, FAKE_ORIGIN, fake_cluster_handle, c->rig->cluster), 0);
        c->env = (Env){ .loop = c->loop,
                        .random = c->random,
                        .log = c->log,
                        .transport = c->transport,
                        .notify = on_notify,
                        .notify_userdata = c,
                        .version = "0" };
        assert_return_code(kubeconfig_plain(FAKE_ORIGIN, &config), 0);
        assert_return_code(kube_auth_new(c->loop, c->log, NULL, config, NULL, NULL, &c->auth, &message), 0);
        assert_return_code(kube_client_new(&c->env, c->auth, FAKE_ORIGIN, "vesper-coordinator", &c->client),
                           0);
}

static void make_queue(RigCoordinator *c) {
        const SqsConfig config = { .url = RIG_QUEUE, .getenv = on_getenv };
        const char *message;

        if (!c->rig->queue_handler)
                return;
        assert_return_code(http_inproc_route(c->transport, RIG_QUEUE_ORIGIN, c->rig->queue_handler, c->rig->queue), 0);
        assert_return_code(sqs_client_new(&c->env, &config, &c->queue, &message), 0);
}

void rig_make(CoordinatorRig *r, size_t i) {
        RigCoordinator *c = MUST(new0(RigCoordinator, 1));

        assert_null(r->coordinators[i]);
        if (!r->config.lease_name)
                assert_return_code(config_load(NULL, coordinator_config_table, coordinator_config_table_size,
                                               NULL, false, r->settings, &r->config),
                                   0);
        c->rig = r;
        c->name = (char) ('a' + i);
        make_client(c, ++r->n_started);
        make_provider(c);
        make_queue(c);
        c->identity = r->config.lease_identity ? MUST(coordinator_identity(&r->config, c->random))
                                               : MUST(strf("%c-%u", c->name, r->n_started));
        r->coordinators[i] = c;
}

int rig_try_start(CoordinatorRig *r, size_t i) {
        RigCoordinator *c = r->coordinators[i];
        int k;

        k = coordinator_new(&c->env, &r->config, c->client, &c->cloud, c->identity, &c->coordinator);
        if (k >= 0 && c->queue)
                coordinator_set_queue(c->coordinator, c->queue);
        if (k >= 0)
                k = coordinator_start(c->coordinator);
        if (k < 0)
                rig_kill(r, i);
        return k;
}

void rig_start(CoordinatorRig *r, size_t i) {
        rig_make(r, i);
        assert_return_code(rig_try_start(r, i), 0);
}

void rig_kill(CoordinatorRig *r, size_t i) {
        RigCoordinator *c = TAKE_PTR(r->coordinators[i]);

        if (!c)
                return;
        coordinator_free(c->coordinator);
        sqs_client_free(c->queue);
        cloud_registry_done(&c->cloud);
        kube_client_free(c->client);
        kube_auth_free(c->auth);
        http_transport_free(c->transport);
        log_free(c->log);
        random_free(c->random);
        loop_free(c->loop);
        strbuf_done(&c->said);
        strbuf_done(&c->told);
        free(c->identity);
        free(c);
}

static void on_stopped(void *userdata) {
        *(bool *) userdata = true;
}

void rig_stop(CoordinatorRig *r, size_t i) {
        bool stopped = false;
        unsigned n = 0;

        coordinator_stop(r->coordinators[i]->coordinator, on_stopped, &stopped);
        while (!stopped) {
                assert_true(n++ < 300);
                rig_run(r, 10 * MSEC);
        }
        rig_kill(r, i);
}

RigCoordinator *rig_leader(CoordinatorRig *r) {
        for (size_t i = 0; i < ELEMENTSOF(r->coordinators); i++)
                if (r->coordinators[i] && coordinator_is_leader(r->coordinators[i]->coordinator))
                        return r->coordinators[i];
        return NULL;
}

/* -- nodes ---------------------------------------------------------------------------------------------- */

ToyMachine *rig_machine(CoordinatorRig *r, const char *node) {
        _cleanup_free_ char *id = provider_id_of(node);

        return hashmap_get(r->toy.machines, id);
}

ToyMachine *rig_add_machine(CoordinatorRig *r, const char *provider_id, const char *node) {
        ToyMachine *m = MUST(new0(ToyMachine, 1));

        m->provider_id = MUST(strdup(provider_id));
        m->node = MUST(strdup(node));
        m->state = INSTANCE_PRESENT;
        m->after = INSTANCE_TERMINATING;
        assert_return_code(hashmap_put(r->toy.machines, provider_id, m), 0);
        return m;
}

void rig_add_node(CoordinatorRig *r, const char *name) {
        _cleanup_free_ char *id = provider_id_of(name), *instance = rig_instance(name);
        FakeEc2Options o = { .loop = r->w.loop, .access_key_id = KEY_ID, .secret_access_key = SECRET };

        (void) rig_add_machine(r, id, name);
        if (!r->ec2)
                r->ec2 = fake_ec2_new(&o);
        if (r->use_ec2) {
                fake_ec2_run(r->ec2, instance, ZONE);
                fake_ec2_set_private_dns_name(r->ec2, instance, name);
        }
        fake_add_node(r->cluster, name, ZONE, instance, POOL);
}

void rig_join(CoordinatorRig *r, const char *name) {
        _cleanup_free_ char *instance = rig_instance(name);

        assert_non_null(rig_machine(r, name));
        fake_add_node(r->cluster, name, ZONE, instance, POOL);
}

void rig_begin(CoordinatorRig *r, unsigned n_nodes, const char *tgp) {
        /* A describe proves whose machine it is. */
        bool proves = !r->use_ec2 && !r->toy.is_exec && !r->toy.launches;

        fake_add_nodepool(r->cluster, POOL, tgp, NULL);
        for (unsigned i = 0; i < n_nodes; i++) {
                char name[16];

                snprintf(name, sizeof(name), "n%u", i);
                rig_add_node(r, name);
        }
        rig_start(r, 0);
        rig_run(r, 3 * USEC_PER_SEC);
        for (unsigned i = 0; i < n_nodes; i++) {
                char name[16];

                snprintf(name, sizeof(name), "n%u", i);
                assert_true(rig_is_adopted(r, name));
                assert_in_range(rig_machine(r, name)->n_described, proves ? 1 : 0, 1);
                rig_machine(r, name)->n_described = 0; /* to prove whose it is */
        }
}

void rig_delete_node(CoordinatorRig *r, const char *name) {
        _cleanup_free_ char *path = MUST(strf("/api/v1/nodes/%s", name));
        _cleanup_answer_ FakeAnswer a = fake_ask(&r->w, HTTP_DELETE, path, NULL, NULL);

        assert_int_equal(a.status, 200);
}

const cJSON *rig_node(CoordinatorRig *r, const char *name) {
        return fake_get(r->cluster, FAKE_NODES, NULL, name);
}

const cJSON *rig_claim(CoordinatorRig *r, const char *node) {
        _cleanup_free_ char *id = provider_id_of(node);
        const cJSON *found = NULL, *claim;

        FAKE_FOREACH (claim, r->cluster, FAKE_NODECLAIMS, NULL)
                if (streq_ptr(fj_string(claim, "spec", "providerID", NULL), id))
                        found = claim;
        return found;
}

bool rig_has_finalizer(const cJSON *object) {
        return fj_array_has(fj_get(object, "metadata", "finalizers", NULL), FINALIZER_TERMINATION);
}

bool rig_is_adopted(CoordinatorRig *r, const char *node) {
        const cJSON *claim = rig_claim(r, node);

        return claim && rig_has_finalizer(claim) && rig_has_finalizer(rig_node(r, node)) &&
               streq_ptr(fj_string(claim, "status", "phase", NULL), "Adopted");
}

bool rig_wait_gone(CoordinatorRig *r, const char *node, usec_t at_most_usec) {
        usec_t until = usec_add(virtual_time_now(r->w.time), at_most_usec);

        while (rig_node(r, node) || rig_claim(r, node)) {
                if (virtual_time_now(r->w.time) >= until)
                        return false;
                if (virtual_time_step(r->w.time, until) == 0)
                        return !rig_node(r, node) && !rig_claim(r, node);
        }
        return true;
}

static bool is_event_of(const cJSON *e, const char *name, const char *reason) {
        return streq_ptr(fj_string(e, "involvedObject", "name", NULL), name) &&
               streq_ptr(fj_string(e, "reason", NULL), reason);
}

static const cJSON *find_event(CoordinatorRig *r, const char *name, const char *reason, const char *text) {
        const cJSON *e;

        FAKE_FOREACH (e, r->cluster, FAKE_EVENTS, NULL)
                if (is_event_of(e, name, reason) &&
                    (!text || strstr(strempty(fj_string(e, "message", NULL)), text)))
                        return e;
        return NULL;
}

bool rig_has_event(CoordinatorRig *r, const char *name, const char *reason) {
        return find_event(r, name, reason, NULL);
}

bool rig_event_says(CoordinatorRig *r, const char *name, const char *reason, const char *text) {
        return find_event(r, name, reason, text);
}

int64_t rig_n_events(CoordinatorRig *r, const char *name, const char *reason) {
        const cJSON *e;
        int64_t n = 0;

        FAKE_FOREACH (e, r->cluster, FAKE_EVENTS, NULL)
                if (is_event_of(e, name, reason))
                        n += fj_int(e, 1, "count", NULL);
        return n;
}

double rig_metric(const RigCoordinator *c, const char *family) {
        _cleanup_page_ Page p = page_ask(coordinator_handle, c->coordinator, HTTP_GET, "/metrics");

        return page_sum(&p, family);
}

const char *rig_condition(const cJSON *object, const char *type) {
        return fj_string(fj_find(fj_get(object, "status", "conditions", NULL), "type", type), "status",
                         NULL);
}

const char *rig_condition_reason(const cJSON *object, const char *type) {
        return fj_string(fj_find(fj_get(object, "status", "conditions", NULL), "type", type), "reason",
                         NULL);
}

uint64_t rig_evictions(CoordinatorRig *r, unsigned status) {
        return fake_api_count_status(r->api, FAKE_CREATE, FAKE_PODS, "eviction", status);
}
