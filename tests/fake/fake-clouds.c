/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-clouds.h"

#include "fake-aws-event.h"
#include "strv.h"

struct FakeClouds {
        Loop *loop;
        Random *random;
        FakeEc2 *ec2;
        FakeEc2Watch watch;
        FakeAutoscaling *autoscaling;
        FakeSqs *sqs;
        FakeGce *gce;
        FakeAzure *azure;
        char **listening; /* queues that hear events */
        char *region;
};

static const char *text(const cJSON *o, const char *key) {
        return fj_string(o, key, NULL);
}

static usec_t milliseconds(const cJSON *o, const char *key) {
        return (usec_t) MAX(fj_int(o, 0, key, NULL), (int64_t) 0) * USEC_PER_MSEC;
}

static usec_t seconds(const cJSON *o, const char *key) {
        return (usec_t) MAX(fj_int(o, 0, key, NULL), (int64_t) 0) * USEC_PER_SEC;
}

/* -- events -------------------------------------------------------------------------------------------- */

static void broadcast(FakeClouds *c, const FakeAwsEvent *e) {
        _cleanup_free_ char *body = fake_aws_event(e);

        STRV_FOREACH (queue, c->listening)
                fake_sqs_send(c->sqs, *queue, body);
}

static void on_asg_event(const FakeAsgEvent *e, void *userdata) {
        FakeClouds *c = userdata;

        if (e->kind != FAKE_ASG_LIFECYCLE_ACTION)
                return;
        broadcast(c, &(FakeAwsEvent) { .kind = e->launching ? FAKE_AWS_EVENT_LAUNCH_ACTION
                                                            : FAKE_AWS_EVENT_TERMINATE_ACTION,
                                       .region = c->region,
                                       .wall_usec = loop_wall(c->loop),
                                       .instance = e->instance,
                                       .group = e->group,
                                       .hook = e->hook,
                                       .token = e->token });
}

static void on_ec2_change(const char *id, void *userdata) {
        FakeClouds *c = userdata;
        const char *state = fake_ec2_state(c->ec2, id);

        broadcast(c, &(FakeAwsEvent) { .kind = FAKE_AWS_EVENT_STATE,
                                       .region = c->region,
                                       .wall_usec = loop_wall(c->loop),
                                       .instance = id,
                                       .action = state ? state : "terminated" });
}

/* -- the world ----------------------------------------------------------------------------------------- */

static const char *load_groups(FakeClouds *c, const cJSON *world) {
        const cJSON *o, *h;

        cJSON_ArrayForEach (o, fj_member(world, "autoscalingGroups")) {
                const char *name = text(o, "name"), *zones = text(o, "zones");
                FakeAsgGroup group = {
                        .name = name,
                        .zones = zones ? zones : "us-east-1a",
                        .min = (unsigned) fj_int(o, 0, "min", NULL),
                        .max = (unsigned) fj_int(o, 100000, "max", NULL),
                        .cooldown_usec = seconds(o, "cooldownSec"),
                        .rebalances = fj_true(o, "rebalances", NULL),
                };

                if (!name || fake_autoscaling_has_group(c->autoscaling, name))
                        return "an Auto Scaling group has no name of its own";
                fake_autoscaling_add_group(c->autoscaling, &group);
                cJSON_ArrayForEach (h, fj_member(o, "hooks")) {
                        if (!text(h, "name"))
                                return "a lifecycle hook has no name";
                        fake_autoscaling_add_hook(
                                c->autoscaling, name,
                                &(FakeAsgHook) { .name = text(h, "name"),
                                                 .launching = fj_true(h, "launching", NULL),
                                                 .heartbeat_usec = seconds(h, "heartbeatSec"),
                                                 .abandon = fj_true(h, "abandon", NULL) });
                }
        }
        return NULL;
}

static const char *load_queues(FakeClouds *c, const cJSON *world) {
        const cJSON *o;

        cJSON_ArrayForEach (o, fj_member(world, "queues")) {
                const char *name = text(o, "name");
                int r = 0;

                if (!name || fake_sqs_has_queue(c->sqs, name))
                        return "a queue has no name of its own";
                fake_sqs_add_queue(c->sqs, &(FakeSqsQueue) { .name = name,
                                                          .visibility_usec = seconds(o, "visibilitySec"),
                                                          .retention_usec = seconds(o, "retentionSec"),
                                                          .wait_usec = seconds(o, "waitSec") });
                if (fj_true(o, "events", NULL))
                        r = strv_extend(&c->listening, name);
                assert(r >= 0);
        }
        return NULL;
}

static const char *load_sets(FakeClouds *c, const cJSON *world) {
        const cJSON *o;

        cJSON_ArrayForEach (o, fj_get(world, "gce", "groups", NULL)) {
                const char *name = text(o, "name"), *scope = text(o, "scope");

                if (!name || fake_gce_has_group(c->gce, name) || !scope ||
                    !fake_gce_has_scope(c->gce, scope))
                        return "a managed instance group needs a name of its own, and as scope zones/Z or "
                               "regions/R";
                fake_gce_add_group(c->gce, scope, name);
        }
        cJSON_ArrayForEach (o, fj_get(world, "azure", "scaleSets", NULL)) {
                if (!cJSON_IsString(o) || fake_azure_has_set(c->azure, o->valuestring))
                        return "a scale set has no name of its own";
                fake_azure_add_set(c->azure, o->valuestring);
        }
        return NULL;
}

static const char *load_instance(FakeClouds *c, const cJSON *o) {
        const char *id = text(o, "id"), *platform = text(o, "platform"), *group = text(o, "group"),
                   *zone = text(o, "zone");

        if (!id)
                return "an instance needs an id";
        if (!platform || streq(platform, "ec2")) {
                if (!group)
                        return NULL;
                if (!fake_autoscaling_has_group(c->autoscaling, group))
                        return "an instance is of an Auto Scaling group that is not there";
                if (!fake_autoscaling_has_room(c->autoscaling, group))
                        return "an Auto Scaling group has more instances than its max";
                fake_autoscaling_attach(c->autoscaling, group, id);
        } else if (streq(platform, "gce")) {
                _cleanup_free_ char *scope = MUST(strf("zones/%s", zone ? zone : "us-central1-a"));

                if (!fake_gce_has_scope(c->gce, scope))
                        return "an instance of GCE is in a zone that is not there";
                if (group && !fake_gce_has_group(c->gce, group))
                        return "an instance is of a managed instance group that is not there";
                fake_gce_run(c->gce, scope + strlen("zones/"), id, group);
        } else if (streq(platform, "azure")) {
                const char *set = text(o, "scaleSet"), *member = text(o, "instance");

                if (!set)
                        fake_azure_run(c->azure, id, text(o, "flexibleSet"));
                else if (!member)
                        return "a member of a scale set needs an instance id";
                else {
                        if (!fake_azure_has_set(c->azure, set))
                                fake_azure_add_set(c->azure, set);
                        fake_azure_run_member(c->azure, set, member);
                }
        }
        return NULL;
}

static const char *load(FakeClouds *c, const cJSON *world) {
        const char *why;
        const cJSON *o;

        if ((why = load_groups(c, world)) || (why = load_queues(c, world)) || (why = load_sets(c, world)))
                return why;
        cJSON_ArrayForEach (o, fj_member(world, "instances"))
                if ((why = load_instance(c, o)))
                        return why;
        return NULL;
}

/* -- life ---------------------------------------------------------------------------------------------- */

FakeClouds *fake_clouds_new(const FakeCloudsOptions *o, const cJSON *world, const char **ret_why) {
        FakeClouds *c = MUST(new0(FakeClouds, 1));
        const cJSON *gce, *azure, *scaling;

        world = cJSON_IsObject(world) ? world : NULL;
        scaling = fj_get(world, "autoscaling", NULL);
        gce = fj_get(world, "gce", NULL);
        azure = fj_get(world, "azure", NULL);
        c->loop = o->loop;
        c->random = o->random;
        c->ec2 = o->ec2;
        c->region = o->aws.region ? MUST(strdup(o->aws.region)) : NULL;
        c->autoscaling = fake_autoscaling_new(
                &(FakeAutoscalingOptions){ .aws = o->aws,
                                           .ec2 = o->ec2,
                                           .health_check_usec = milliseconds(scaling, "healthCheckMsec"),
                                           .replace_usec = milliseconds(scaling, "replaceMsec"),
                                           .launch_usec = milliseconds(scaling, "launchMsec"),
                                           .on_event = on_asg_event,
                                           .userdata = c });
        c->sqs = fake_sqs_new(&(FakeSqsOptions) { .aws = o->aws });
        c->gce = fake_gce_new(&(FakeGceOptions) { .loop = o->loop,
                                                  .project = text(gce, "project"),
                                                  .zones = text(gce, "zones"),
                                                  .token = text(gce, "token") });
        c->azure = fake_azure_new(&(FakeAzureOptions) { .loop = o->loop,
                                                        .subscription = text(azure, "subscription"),
                                                        .group = text(azure, "group"),
                                                        .location = text(azure, "location"),
                                                        .token = text(azure, "token") });
        c->watch = (FakeEc2Watch) { .changed = on_ec2_change, .userdata = c };
        fake_ec2_watch(c->ec2, &c->watch);
        *ret_why = load(c, world);
        return *ret_why ? fake_clouds_free(c) : c;
}

FakeClouds *fake_clouds_free(FakeClouds *c) {
        if (!c)
                return NULL;
        fake_ec2_unwatch(c->ec2, &c->watch);
        fake_autoscaling_free(c->autoscaling);
        fake_sqs_free(c->sqs);
        fake_gce_free(c->gce);
        fake_azure_free(c->azure);
        strv_free(c->listening);
        free(c->region);
        return mfree(c);
}

static const struct {
        const char *name;
        http_handler_t handler;
} services[_FAKE_CLOUD_MAX] = {
        [FAKE_CLOUD_AUTOSCALING] = { "autoscaling", fake_autoscaling_handle },
        [FAKE_CLOUD_SQS] = { "sqs", fake_sqs_handle },
        [FAKE_CLOUD_GCE] = { "gce", fake_gce_handle },
        [FAKE_CLOUD_AZURE] = { "azure", fake_azure_handle },
};

const char *fake_cloud_name(FakeCloudId id) {
        return services[id].name;
}

http_handler_t fake_cloud_handler(FakeCloudId id) {
        return services[id].handler;
}

void *fake_clouds_userdata(FakeClouds *c, FakeCloudId id) {
        void *const all[_FAKE_CLOUD_MAX] = { c->autoscaling, c->sqs, c->gce, c->azure };

        return all[id];
}

FakeAzure *fake_clouds_azure(FakeClouds *c) {
        return c->azure;
}

/* -- what tests ask for -------------------------------------------------------------------------------- */

/* How a cloud says that it is too much. */
static const struct {
        const char *name;
        unsigned status;
        const char *throttle;
} clouds[] = {
        { "ec2", 503, "RequestLimitExceeded" }, { "autoscaling", 400, "Throttling" },
        { "sqs", 400, "RequestThrottled" },     { "gce", 403, "rateLimitExceeded" },
        { "azure", 429, "TooManyRequests" },
};

static FakeTroubles *troubles(FakeClouds *c, size_t cloud) {
        switch (cloud) {
        case 0:
                return fake_ec2_troubles(c->ec2);
        case 1:
                return fake_autoscaling_troubles(c->autoscaling);
        case 2:
                return fake_sqs_troubles(c->sqs);
        case 3:
                return fake_gce_rest(c->gce)->troubles;
        default:
                return fake_azure_rest(c->azure)->troubles;
        }
}

/* ELEMENTSOF(clouds): none. */
static size_t find_cloud(const cJSON *o) {
        size_t i = 0;

        while (i < ELEMENTSOF(clouds) && !streq_ptr(text(o, "cloud"), clouds[i].name))
                i++;
        return i;
}

static const char *post_fault(FakeClouds *c, const cJSON *o, cJSON **ret) {
        bool throttle = streq_ptr(text(o, "kind"), "throttle");
        size_t cloud = find_cloud(o);
        const char *code = text(o, "code"), *message = text(o, "message"), *body = text(o, "body");
        FakeTrouble t = {
                .kind = throttle ? FAKE_TROUBLE_FAIL : fake_trouble_kind_from_string(text(o, "kind")),
                .operation = text(o, "operation"),
                .n = (unsigned) fj_int(o, 1, "count", NULL),
                .message = message ? message : "asked for by the test",
                .body = body ? body : "",
                .retry_after_usec = (usec_t) fj_int(o, 0, "retryAfterMsec", NULL) * USEC_PER_MSEC,
        };

        if (cloud == ELEMENTSOF(clouds))
                return "cloud: ec2, autoscaling, sqs, gce or azure";
        if (t.kind < 0)
                return "kind: fail, throttle, body, hang or lose";
        t.status = (unsigned) fj_int(o,
                                     throttle                      ? clouds[cloud].status
                                     : t.kind == FAKE_TROUBLE_BODY ? 200
                                                                   : 500,
                                     "status", NULL);
        t.code = code ? code : throttle ? clouds[cloud].throttle : "InternalError";
        if (t.status < 200 || t.status > 599)
                return "status: 200 to 599";
        fake_troubles_add(troubles(c, cloud), &t);
        return NULL;
}

static const char *post_fault_clear(FakeClouds *c, const cJSON *o, cJSON **ret) {
        size_t cloud = find_cloud(o);

        if (cloud == ELEMENTSOF(clouds))
                return "cloud: ec2, autoscaling, sqs, gce or azure";
        fake_troubles_clear(troubles(c, cloud));
        return NULL;
}

static const char *post_counts(FakeClouds *c, const cJSON *o, cJSON **ret) {
        size_t cloud = find_cloud(o);

        if (cloud == ELEMENTSOF(clouds))
                return "cloud: ec2, autoscaling, sqs, gce or azure";
        *ret = fj_parse("{'requests':%zu}",
                        fake_troubles_n_requests(troubles(c, cloud), text(o, "operation")));
        return NULL;
}

static const char *take_queue(FakeClouds *c, const cJSON *o) {
        const char *queue = text(o, "queue");

        return queue && fake_sqs_has_queue(c->sqs, queue) ? queue : NULL;
}

#define NO_QUEUE "queue: there is none of that name"

static const char *post_event(FakeClouds *c, const cJSON *o, cJSON **ret) {
        const char *queue = take_queue(c, o);
        _cleanup_free_ char *body = NULL;
        char id[UUID_MAX];
        FakeAwsEvent e = {
                .kind = fake_aws_event_kind_from_string(text(o, "kind")),
                .id = id,
                .region = c->region,
                .wall_usec = loop_wall(c->loop),
                .until_wall_usec = usec_add(loop_wall(c->loop), seconds(o, "seconds")),
                .instance = text(o, "instance"),
                .action = text(o, "action"),
                .group = text(o, "group"),
                .hook = text(o, "hook"),
                .token = text(o, "token"),
                .status = text(o, "status"),
                .communication = text(o, "communication"),
                .page = (unsigned) fj_int(o, 0, "page", NULL),
                .pages = (unsigned) fj_int(o, 0, "pages", NULL),
        };

        if (!queue)
                return NO_QUEUE;
        if (e.kind < 0)
                return "kind: spot, rebalance, state, reservation, block, health, terminate-action, "
                       "launch-action, hook or "
                       "hook-test";
        random_uuid(c->random, id);
        body = fj_true(o, "sns", NULL) ? fake_aws_event_by_sns(&e) : fake_aws_event(&e);
        fake_sqs_send(c->sqs, queue, body);
        return NULL;
}

static const char *post_message(FakeClouds *c, const cJSON *o, cJSON **ret) {
        const char *queue = take_queue(c, o), *body = text(o, "body");

        if (!queue || !body)
                return queue ? "body: a text" : NO_QUEUE;
        fake_sqs_send(c->sqs, queue, body);
        return NULL;
}

static const char *post_duplicate(FakeClouds *c, const cJSON *o, cJSON **ret) {
        const char *queue = take_queue(c, o);

        if (!queue)
                return NO_QUEUE;
        fake_sqs_duplicate(c->sqs, queue, (unsigned) fj_int(o, 1, "count", NULL));
        return NULL;
}

static const char *post_queue(FakeClouds *c, const cJSON *o, cJSON **ret) {
        const char *queue = take_queue(c, o);

        if (!queue)
                return NO_QUEUE;
        *ret = MUST(cJSON_CreateObject());
        fj_set_int(*ret, "messages", (int64_t) fake_sqs_n_messages(c->sqs, queue));
        return NULL;
}

static const char *post_shuffle(FakeClouds *c, const cJSON *o, cJSON **ret) {
        const char *queue = take_queue(c, o);

        if (!queue)
                return NO_QUEUE;
        fake_sqs_shuffle(c->sqs, queue, c->random);
        return NULL;
}

static const char *post_state(FakeClouds *c, const cJSON *o, cJSON **ret) {
        const char *cloud = text(o, "cloud"), *id = text(o, "instance"), *state = text(o, "state"),
                   *zone = text(o, "zone"), *set = text(o, "scaleSet");

        if (!id || !state)
                return "instance and state are needed";
        if (streq_ptr(cloud, "gce")) {
                if (!zone || !fake_gce_status(c->gce, zone, id))
                        return "there is no such instance of GCE in that zone";
                fake_gce_set_status(c->gce, zone, id, state);
        } else if (streq_ptr(cloud, "azure")) {
                if ((set && !fake_azure_has_set(c->azure, set)) || !fake_azure_state(c->azure, set, id))
                        return "there is no such machine at Azure";
                fake_azure_set_power(c->azure, set, id, state);
        } else
                return "cloud: gce or azure";
        return NULL;
}

static const char *post_lifecycle(FakeClouds *c, const cJSON *o, cJSON **ret) {
        const char *id = text(o, "instance"), *state;

        if (!id)
                return "instance: which one";
        state = fake_autoscaling_lifecycle(c->autoscaling, id);
        *ret = MUST(cJSON_CreateObject());
        fj_set(*ret, "state", state ? cJSON_CreateString(state) : cJSON_CreateNull());
        return NULL;
}

const char *fake_clouds_post(FakeClouds *c, const char *path, const cJSON *o, cJSON **ret_answer) {
        static const struct {
                const char *path;
                const char *(*post)(FakeClouds *c, const cJSON *o, cJSON **ret);
        } posts[] = {
                { "/cloud/fault", post_fault },         { "/cloud/fault/clear", post_fault_clear },
                { "/cloud/event", post_event },         { "/cloud/message", post_message },
                { "/cloud/duplicate", post_duplicate }, { "/cloud/shuffle", post_shuffle },
                { "/cloud/state", post_state },         { "/cloud/lifecycle", post_lifecycle },
                { "/cloud/counts", post_counts },       { "/cloud/queue", post_queue },
        };

        *ret_answer = NULL;
        for (size_t i = 0; i < ELEMENTSOF(posts); i++)
                if (streq(path, posts[i].path))
                        return posts[i].post(c, o, ret_answer);
        return "no such command";
}
