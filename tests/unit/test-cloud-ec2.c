/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cloud.h"
#include "cmocka-test.h"
#include "ec2-answer.h"
#include "fake-ec2.h"
#include "http-inproc.h"
#include "string-util.h"

#define REGION "eu-west-1"
#define ENDPOINT "https://ec2.eu-west-1.amazonaws.com"
#define KEY "AKIAIOSFODNN7EXAMPLE"
#define SECRET "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
#define START_USEC (UINT64_C(1790000000) * USEC_PER_SEC)
#define CALLS_MAX 300

typedef struct World World;

/* One question and its answer. */
typedef struct Asked {
        World *world;
        CloudCall *call;
        bool answered, keep, undecided;
        usec_t turn_usec; /* when its turn came; 0: not yet */
        CloudOutcome outcome;
        InstanceState state;
        usec_t retry_after_usec, at_usec;
        char code[64];
        char message[400], unproved[400];
        char instance[64], region[64];
        const char *method;
} Asked;

struct World {
        VirtualTime *time;
        Env env;
        FakeEc2 *ec2;
        CloudProvider *provider;
        const char *node; /* that describes ask about */
        const char *key, *secret, *token;
        const char *region_variable;
        bool may_send;
        Asked asked[CALLS_MAX];
        size_t n_asked;
};

static const char *world_getenv(const char *name, void *userdata) {
        World *w = userdata;

        if (streq(name, "AWS_ACCESS_KEY_ID"))
                return w->key;
        if (streq(name, "AWS_SECRET_ACCESS_KEY"))
                return w->secret;
        if (streq(name, "AWS_SESSION_TOKEN"))
                return w->token;
        if (streq(name, "AWS_REGION"))
                return w->region_variable;
        return NULL;
}

static void world_new_provider(World *w, const char *region) {
        const char *message;

        w->provider = cloud_provider_free(w->provider);
        assert_return_code(cloud_provider_new(&w->env,
                                              &(CloudConfig){ .name = "ec2",
                                                              .region = region,
                                                              .getenv = world_getenv,
                                                              .getenv_userdata = w },
                                              &w->provider, &message),
                           0);
}

static int world_setup(void **state) {
        World *w = new0(World, 1);

        *w = (World){ .key = KEY, .secret = SECRET, .may_send = true };
        assert_return_code(virtual_time_new(START_USEC, &w->time), 0);
        assert_return_code(loop_new_virtual(w->time, &w->env.loop), 0);
        assert_return_code(random_new(1, &w->env.random), 0);
        assert_return_code(http_inproc_new(w->env.loop, "test", NULL, &w->env.transport), 0);
        w->ec2 = fake_ec2_new(&(FakeEc2Options){ .loop = w->env.loop,
                                                 .region = REGION,
                                                 .access_key_id = KEY,
                                                 .secret_access_key = SECRET,
                                                 .shutting_down_usec = 30 * USEC_PER_SEC });
        assert_return_code(http_inproc_route(w->env.transport, ENDPOINT, fake_ec2_handle, w->ec2), 0);
        world_new_provider(w, REGION);
        *state = w;
        return 0;
}

static int world_teardown(void **state) {
        World *w = *state;

        for (size_t i = 0; i < w->n_asked; i++)
                cloud_call_free(w->asked[i].call);
        cloud_provider_free(w->provider);
        http_transport_free(w->env.transport);
        fake_ec2_free(w->ec2);
        random_free(w->env.random);
        loop_free(w->env.loop);
        virtual_time_free(w->time);
        free(w);
        return 0;
}

static void on_answer(const CloudResult *result, void *userdata) {
        Asked *a = userdata;

        assert_false(a->answered);
        assert_non_null(result->message);
        a->answered = true;
        a->outcome = result->outcome;
        a->state = result->state;
        a->undecided = result->undecided;
        a->retry_after_usec = result->retry_after_usec;
        a->at_usec = loop_now(a->world->env.loop);
        (void) snprintf(a->code, sizeof(a->code), "%s", strempty(result->code));
        (void) snprintf(a->message, sizeof(a->message), "%s", result->message);
        (void) snprintf(a->unproved, sizeof(a->unproved), "%s", strempty(result->unproved));
        (void) snprintf(a->instance, sizeof(a->instance), "%s", strempty(result->identity.instance_id));
        (void) snprintf(a->region, sizeof(a->region), "%s", strempty(result->identity.region));
        a->method = result->identity.method;
        if (a->state == INSTANCE_UNKNOWN && a->outcome == CLOUD_OK)
                assert_string_not_equal(a->message, ""); /* unknown always says why */
        a->call = cloud_call_free(a->call);
}

static Asked *next_asked(World *w) {
        assert_true(w->n_asked < CALLS_MAX);
        w->asked[w->n_asked].world = w;
        return &w->asked[w->n_asked++];
}

static Asked *describe(World *w, const char *provider_id) {
        Asked *a = next_asked(w);

        assert_return_code(cloud_describe(w->provider, &(CloudMachine){ .provider_id = provider_id, .node = w->node }, on_answer, a, &a->call), 0);
        return a;
}

static bool may_send(void *userdata) {
        return ((World *) userdata)->may_send;
}

static void confirm_now(Asked *a) {
        assert_true(a->turn_usec > 0 && !a->answered);
        cloud_call_send(a->call, USEC_INFINITY);
}

/* Confirmed by a test as soon as it is asked, or later (turn()). */
static void on_asked(void *userdata) {
        Asked *a = userdata;

        a->turn_usec = loop_now(a->world->env.loop);
        if (!a->keep)
                confirm_now(a);
}

static Asked *terminate(World *w, const char *provider_id) {
        Asked *a = next_asked(w);

        assert_return_code(cloud_reserve(w->provider,
                                         &(CloudReservation){ .operation = CLOUD_TERMINATE,
                                                              .machine = &(CloudMachine){ .provider_id = provider_id },
                                                              .op_id = "op-1",
                                                              .pool = "pool-a",
                                                              .guard = { may_send, w },
                                                              .prove = on_asked,
                                                              .done = on_answer,
                                                              .userdata = a },
                                         &a->call),
                           0);
        return a;
}

static Asked *turn(World *w, const char *provider_id) {
        Asked *a = terminate(w, provider_id);

        a->keep = true;
        return a;
}

static void run_for(World *w, usec_t usec) {
        usec_t limit = usec_add(virtual_time_now(w->time), usec);

        while (virtual_time_step(w->time, limit) > 0)
                ;
}

static Asked *answered(World *w, Asked *a) {
        for (usec_t limit = usec_add(virtual_time_now(w->time), USEC_PER_MINUTE); !a->answered;)
                assert_int_equal(virtual_time_step(w->time, limit), 1);
        return a;
}

static void expect(const Asked *a, CloudOutcome outcome, InstanceState state, const char *message_part) {
        if (a->outcome != outcome || a->state != state || !strstr(a->message, message_part))
                print_error("%s, %s: %s\n", cloud_outcome_to_string(a->outcome),
                            instance_state_to_string(a->state), a->message);
        assert_int_equal(a->outcome, outcome);
        assert_int_equal(a->state, state);
        assert_non_null(strstr(a->message, message_part));
        if (!*message_part)
                assert_string_equal(a->message, "");
}

#define A "aws:///eu-west-1a/i-0a"
#define B "aws:///eu-west-1b/i-0b"

/* -- providerID and error table ------------------------------------------------------------- */

TEST_CASE(test_provider_ids) {
        static const struct {
                const char *provider_id, *zone, *instance_id; /* NULL: refused */
        } rows[] = {
                { "aws:///eu-west-1a/i-0123456789abcdef0", "eu-west-1a", "i-0123456789abcdef0" },
                { "aws:///us-east-1-bos-1a/i-01", "us-east-1-bos-1a", "i-01" },
                { "aws:////i-0123", "", "i-0123" },
                { "i-0123", "", "i-0123" },
                { "aws:///eu-west-1a/fargate-10.0.0.1", NULL, NULL },
                { "aws:///eu-west-1a/i-0123/x", NULL, NULL },
                { "aws:///eu-west-1a/i-", NULL, NULL },
                { "aws:///eu-west-1a/i-xyz", NULL, NULL },
                { "aws:///eu-west-1a/i-0123 ", NULL, NULL },
                { "aws:///EU/i-0123", NULL, NULL },
                { "aws:///i-0123", NULL, NULL },
                { "aws://eu-west-1a/i-0123", NULL, NULL },
                { "gce://project/zone/name", NULL, NULL },
                { "", NULL, NULL },
        };
        World *w = *state;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Ec2ProviderId id;
                int r = ec2_provider_id_parse(rows[i].provider_id, &id);

                print_message("'%s'\n", rows[i].provider_id);
                assert_int_equal(r, rows[i].zone ? 0 : -EINVAL);
                assert_int_equal(w->provider->ops->owns(w->provider, rows[i].provider_id), r >= 0);
                if (r < 0)
                        continue;
                assert_string_equal(id.zone, rows[i].zone);
                assert_string_equal(id.instance_id, rows[i].instance_id);
        }
}

/* Errors of terminate as the table of EC2's reference has them. */
TEST_CASE(test_errors) {
        static const struct {
                unsigned status;
                const char *code;
                CloudOutcome outcome;
                bool undecided; /* of terminate */
        } rows[] = {
                { 400, "InvalidInstanceID.Malformed", CLOUD_INVALID },
                { 400, "InvalidInstanceID.NotLinkable", CLOUD_INVALID },
                { 400, "InvalidParameterCombination", CLOUD_INVALID },
                { 400, "IncorrectInstanceState", CLOUD_RETRY },
                { 400, "OperationNotPermitted", CLOUD_PROTECTED },
                { 403, "UnauthorizedOperation", CLOUD_DENIED },
                { 403, "SomethingNew", CLOUD_DENIED },
                { 503, "RequestLimitExceeded", CLOUD_RETRY },
                { 503, "EC2ThrottledException", CLOUD_RETRY },
                { 400, "Throttling", CLOUD_RETRY },
                { 429, "SomethingNew", CLOUD_RETRY },
                { 500, "InternalError", CLOUD_RETRY, true },
                { 503, "Unavailable", CLOUD_RETRY, true },
                { 400, "SomethingNew", CLOUD_RETRY, true },
        };
        World *w = *state;

        (void) fake_ec2_run(w->ec2, "i-0a", "eu-west-1a");
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Asked *t, *d;

                print_message("%u %s\n", rows[i].status, rows[i].code);
                fake_ec2_fail(w->ec2, 2, rows[i].status, rows[i].code, "Because.");
                t = answered(w, terminate(w, A));
                expect(t, rows[i].outcome, INSTANCE_UNKNOWN, ": Because.");
                assert_string_equal(t->code, rows[i].code);
                assert_int_equal(t->undecided, rows[i].undecided);
                d = answered(w, describe(w, A));
                expect(d, rows[i].outcome, INSTANCE_UNKNOWN, ": Because.");
        }
        assert_string_equal(fake_ec2_state(w->ec2, "i-0a"), "running");
}

/* -- describe ------------------------------------------------------------------------------- */

TEST_CASE(test_describe_states) {
        static const struct {
                const char *ec2;
                InstanceState state;
        } rows[] = {
                { "pending", INSTANCE_PRESENT },  { "running", INSTANCE_PRESENT },
                { "stopping", INSTANCE_PRESENT }, { "stopped", INSTANCE_OFF },
                { "terminated", INSTANCE_GONE },
        };
        World *w = *state;

        (void) fake_ec2_run(w->ec2, "i-0a", "eu-west-1a");
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                print_message("%s\n", rows[i].ec2);
                fake_ec2_set_state(w->ec2, "i-0a", rows[i].ec2);
                expect(answered(w, describe(w, A)), CLOUD_OK, rows[i].state, "");
                expect(answered(w, describe(w, "i-0a")), CLOUD_OK, rows[i].state, "");
        }
}

/* Whose it is: EC2's own record leads to the Node's name, or nothing does. */
TEST_CASE(test_identity) {
        static const struct {
                const char *what, *node, *dns, *tag, *state;
                const char *method, *unproved; /* method NULL: a part of the sentence */
        } rows[] = {
                { "its private DNS name", "ip-10-0-0-7.eu-west-1.compute.internal",
                  "ip-10-0-0-7.eu-west-1.compute.internal", NULL, "running", "PrivateDNSName", NULL },
                { "stopped has one, too", "ip-10-0-0-7.ec2.internal", "ip-10-0-0-7.ec2.internal", NULL, "stopped",
                  "PrivateDNSName", NULL },
                { "the name begins with its id", "i-0a.eu-west-1.compute.internal", "x", NULL, "running",
                  "InstanceID", NULL },
                { "the name is its id", "i-0a", "x", NULL, "running", "InstanceID", NULL },
                { "with a longer id", "i-0a1.eu-west-1.compute.internal", "x", NULL, "running", NULL,
                  "its private DNS name is x, and it has no tag vesper.sh/node" },
                { "a tag", "worker-7", "x", "worker-7", "running", "Tag", NULL },
                { "a tag of another", "worker-7", "x", "worker-8", "running", NULL,
                  "its tag vesper.sh/node is 'worker-8'. If it is, tag it vesper.sh/node=worker-7" },
                { "an empty tag", "worker-7", "x", "", "running", NULL, "its tag vesper.sh/node is ''" },
                { "a part of the name", "ip-10-0-0-7", "ip-10-0-0-7.ec2.internal", NULL, "running", NULL,
                  "its private DNS name is ip-10-0-0-7.ec2.internal" },
                { "ended: the name is gone", "ip-10-0-0-7.ec2.internal", "ip-10-0-0-7.ec2.internal", NULL,
                  "terminated", NULL, "it has no private DNS name" },
                { "ended: the tag is still there", "worker-7", "x", "worker-7", "terminated", "Tag", NULL },
                { "of no Node that is known", NULL, "x", "worker-7", "running", NULL, "name of its Node is not known" },
                { "a text that would break a line", "worker-7", "x", "a\nb", "running", NULL, "'a?b'" },
        };
        World *w = *state;

        (void) fake_ec2_run(w->ec2, "i-0a", "eu-west-1a");
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Asked *a;

                print_message("%s\n", rows[i].what);
                w->node = rows[i].node;
                fake_ec2_set_private_dns_name(w->ec2, "i-0a", rows[i].dns);
                fake_ec2_set_node_tag(w->ec2, "i-0a", rows[i].tag);
                fake_ec2_set_state(w->ec2, "i-0a", rows[i].state);
                a = answered(w, describe(w, A));
                assert_int_equal(a->outcome, CLOUD_OK);
                assert_string_equal(a->instance, "i-0a");
                assert_string_equal(a->region, "eu-west-1");
                assert_string_equal(strempty(a->method), strempty(rows[i].method));
                if (rows[i].unproved && !strstr(a->unproved, rows[i].unproved))
                        fail_msg("%s", a->unproved);
                assert_int_equal(*a->unproved == 0, rows[i].method != NULL);
        }

        print_message("not there: nothing is proved, and which it would be is told\n");
        w->node = "worker-7";
        fake_ec2_forget(w->ec2, "i-0a");
        (void) fake_ec2_run(w->ec2, "i-0b", "eu-west-1b");
        (void) answered(w, describe(w, B));
        assert_int_equal(answered(w, describe(w, A))->state, INSTANCE_NOT_FOUND);
        assert_null(w->asked[w->n_asked - 1].method);
        assert_string_equal(w->asked[w->n_asked - 1].instance, "i-0a");

        print_message("in a zone that contradicts the providerID: not even a name counts\n");
        fake_ec2_set_node_tag(w->ec2, "i-0b", "worker-7");
        assert_int_equal(answered(w, describe(w, "aws:///eu-west-1c/i-0b"))->state, INSTANCE_UNKNOWN);
        assert_null(w->asked[w->n_asked - 1].method);
}

/* The life of an instance that we end: never doubly terminated, and gone twice over. */
TEST_CASE(test_terminate_life) {
        World *w = *state;

        (void) fake_ec2_run(w->ec2, "i-0a", "eu-west-1a");
        expect(answered(w, describe(w, A)), CLOUD_OK, INSTANCE_PRESENT, "");
        expect(answered(w, terminate(w, A)), CLOUD_OK, INSTANCE_TERMINATING, "");
        expect(answered(w, describe(w, A)), CLOUD_OK, INSTANCE_TERMINATING, "");
        expect(answered(w, terminate(w, A)), CLOUD_OK, INSTANCE_TERMINATING, "");
        run_for(w, 30 * USEC_PER_SEC);
        expect(answered(w, describe(w, A)), CLOUD_OK, INSTANCE_GONE, "");
        expect(answered(w, terminate(w, A)), CLOUD_OK, INSTANCE_GONE, "");
        run_for(w, 2 * USEC_PER_HOUR);
        assert_null(fake_ec2_state(w->ec2, "i-0a"));
        expect(answered(w, describe(w, A)), CLOUD_OK, INSTANCE_NOT_FOUND, "");
        expect(answered(w, terminate(w, A)), CLOUD_OK, INSTANCE_NOT_FOUND, "");
        assert_int_equal(fake_ec2_n_alive(w->ec2), 0);
}

TEST_CASE(test_not_found_needs_proof) {
        World *w = *state;

        (void) fake_ec2_run(w->ec2, "i-0b", "eu-west-1b");

        /* Nothing of ours was ever seen here. */
        expect(answered(w, describe(w, A)), CLOUD_OK, INSTANCE_UNKNOWN, "have seen another instance");
        expect(answered(w, terminate(w, A)), CLOUD_DENIED, INSTANCE_UNKNOWN,
               "check the provider's region and account");

        /* A sibling is visible: now its absence says something. */
        expect(answered(w, describe(w, B)), CLOUD_OK, INSTANCE_PRESENT, "");
        expect(answered(w, describe(w, A)), CLOUD_OK, INSTANCE_NOT_FOUND, "");
        expect(answered(w, terminate(w, A)), CLOUD_OK, INSTANCE_NOT_FOUND, "");

        /* Without a zone it may live anywhere: only an earlier sight of itself counts. */
        expect(answered(w, describe(w, "i-0a")), CLOUD_OK, INSTANCE_UNKNOWN, "names no zone");
        expect(answered(w, describe(w, "aws:////i-0b")), CLOUD_OK, INSTANCE_PRESENT, "");
        fake_ec2_forget(w->ec2, "i-0b");
        expect(answered(w, describe(w, "aws:////i-0b")), CLOUD_OK, INSTANCE_NOT_FOUND, "");
}

/* Asked in one breath, the sibling in the same answer is proof enough, whatever the order. */
TEST_CASE(test_proof_in_the_same_answer) {
        World *w = *state;
        Asked *a, *b;

        (void) fake_ec2_run(w->ec2, "i-0b", "eu-west-1b");
        a = describe(w, A);
        b = describe(w, B);
        expect(answered(w, a), CLOUD_OK, INSTANCE_NOT_FOUND, "");
        expect(answered(w, b), CLOUD_OK, INSTANCE_PRESENT, "");
        assert_int_equal(fake_ec2_n_requests(w->ec2, "DescribeInstances"), 1);
}

static const char *next_of(const CloudProvider *p, size_t n, void *userdata) {
        const char *const *ids = userdata;

        for (size_t i = 0; ids[i]; i++)
                if (i == n)
                        return ids[i];
        return NULL;
}

/* Nothing was seen yet: another Node's instance is asked about in the same request. */
TEST_CASE(test_witness) {
        static const char *const witnesses[] = { A, "rack:7", "aws:///us-east-1a/i-0c", "aws:///eu-west-1b/i-0d", B, NULL },
                                 *const itself[] = { A, NULL };
        World *w = *state;

        (void) fake_ec2_run(w->ec2, "i-0b", "eu-west-1b");
        cloud_provider_set_witness(w->provider, next_of, (void *) witnesses);
        print_message("  the first that it may ask about is not shown\n");
        expect(answered(w, describe(w, A)), CLOUD_OK, INSTANCE_UNKNOWN, "have seen another instance");
        assert_int_equal(fake_ec2_last_n_ids(w->ec2), 2);
        print_message("  without a zone no other instance proves anything\n");
        expect(answered(w, describe(w, "i-0a")), CLOUD_OK, INSTANCE_UNKNOWN, "names no zone");
        assert_int_equal(fake_ec2_last_n_ids(w->ec2), 1);
        print_message("  the second is\n");
        expect(answered(w, describe(w, A)), CLOUD_OK, INSTANCE_NOT_FOUND, "");
        assert_int_equal(fake_ec2_last_n_ids(w->ec2), 2);
        print_message("  and from then on none is needed\n");
        expect(answered(w, describe(w, A)), CLOUD_OK, INSTANCE_NOT_FOUND, "");
        assert_int_equal(fake_ec2_last_n_ids(w->ec2), 1);
        assert_int_equal(fake_ec2_n_requests(w->ec2, "DescribeInstances"), 4);

        print_message("  no instance is a witness for itself\n");
        world_new_provider(w, REGION);
        cloud_provider_set_witness(w->provider, next_of, (void *) itself);
        expect(answered(w, describe(w, A)), CLOUD_OK, INSTANCE_UNKNOWN, "have seen another instance");
        assert_int_equal(fake_ec2_last_n_ids(w->ec2), 1);
        cloud_provider_set_witness(w->provider, NULL, NULL);
        expect(answered(w, describe(w, A)), CLOUD_OK, INSTANCE_UNKNOWN, "have seen another instance");
}

/* The region is wrong: there are instances, but none is ours, and nothing may be taken for gone. */
TEST_CASE(test_wrong_region) {
        World *w = *state;
        FakeEc2 *us;

        us = fake_ec2_new(&(FakeEc2Options){ .loop = w->env.loop,
                                             .region = "us-east-1",
                                             .access_key_id = KEY,
                                             .secret_access_key = SECRET });
        assert_return_code(http_inproc_route(w->env.transport, "https://ec2.us-east-1.amazonaws.com",
                                             fake_ec2_handle, us),
                           0);
        (void) fake_ec2_run(w->ec2, "i-0a", "eu-west-1a");
        (void) fake_ec2_run(us, "i-0c", "us-east-1a");
        world_new_provider(w, "us-east-1");

        expect(answered(w, describe(w, A)), CLOUD_INVALID, INSTANCE_UNKNOWN, "outside region us-east-1");
        expect(answered(w, terminate(w, A)), CLOUD_INVALID, INSTANCE_UNKNOWN, "outside region us-east-1");
        expect(answered(w, describe(w, "i-0a")), CLOUD_OK, INSTANCE_UNKNOWN, "names no zone");
        expect(answered(w, describe(w, "aws:///us-east-1a/i-0c")), CLOUD_OK, INSTANCE_PRESENT, "");
        expect(answered(w, describe(w, A)), CLOUD_INVALID, INSTANCE_UNKNOWN, "outside region us-east-1");
        expect(answered(w, describe(w, "i-0a")), CLOUD_OK, INSTANCE_UNKNOWN, "names no zone");
        expect(answered(w, terminate(w, "i-0a")), CLOUD_DENIED, INSTANCE_UNKNOWN, "names no zone");
        assert_string_equal(fake_ec2_state(w->ec2, "i-0a"), "running");

        w->provider = cloud_provider_free(w->provider);
        run_for(w, USEC_PER_SEC);
        fake_ec2_free(us);
}

/* The endpoint is another region's than the one we sign for: refused, not empty. */
TEST_CASE(test_foreign_endpoint) {
        World *w = *state;
        Asked *a;

        assert_return_code(http_inproc_route(w->env.transport, "https://ec2.eu-central-1.amazonaws.com",
                                             fake_ec2_handle, w->ec2),
                           0);
        world_new_provider(w, "eu-central-1");
        a = answered(w, describe(w, "aws:///eu-central-1a/i-0a"));
        expect(a, CLOUD_DENIED, INSTANCE_UNKNOWN, "should be scoped to a valid region");
}

/* A reply that contradicts the providerID is no proof of anything. */
TEST_CASE(test_zone_contradiction) {
        World *w = *state;

        (void) fake_ec2_run(w->ec2, "i-0a", "eu-west-1c");
        fake_ec2_set_state(w->ec2, "i-0a", "terminated");
        expect(answered(w, describe(w, A)), CLOUD_OK, INSTANCE_UNKNOWN,
               "contradicts the providerID's zone eu-west-1a");
        expect(answered(w, describe(w, B)), CLOUD_OK, INSTANCE_UNKNOWN, "have seen another instance");
}

/* Answers with status 200 that say nothing. */
TEST_CASE(test_garbage) {
        static const char *const bodies[] = {
                "",
                "<html><body>Sign in to the hotel's network</body></html>",
                "<DescribeInstancesResponse/>",
                "<DescribeInstancesResponse><reservationSet/>",
                "<DescribeInstancesResponse><reservationSet><item><instancesSet><item/></instancesSet></"
                "item>"
                "</reservationSet></DescribeInstancesResponse>",
                "<TerminateInstancesResponse><instancesSet/></TerminateInstancesResponse>",
                "{\"reservationSet\":[]}",
        };
        World *w = *state;

        (void) fake_ec2_run(w->ec2, "i-0b", "eu-west-1b");
        expect(answered(w, describe(w, B)), CLOUD_OK, INSTANCE_PRESENT, "");
        for (size_t i = 0; i < ELEMENTSOF(bodies); i++) {
                print_message("%s\n", bodies[i]);
                fake_ec2_garble(w->ec2, 2, bodies[i]);
                expect(answered(w, describe(w, B)), CLOUD_RETRY, INSTANCE_UNKNOWN, "could not be read");
                expect(answered(w, terminate(w, B)), CLOUD_RETRY, INSTANCE_UNKNOWN, "could not be read");
        }
        fake_ec2_garble(w->ec2, 1,
                        "<DescribeInstancesResponse><reservationSet><item><instancesSet><item><instanceId>i-"
                        "0b</instanceId>"
                        "<instanceState><name>quantum</name></instanceState></item></instancesSet></item></"
                        "reservationSet>"
                        "</DescribeInstancesResponse>");
        expect(answered(w, describe(w, B)), CLOUD_OK, INSTANCE_UNKNOWN, "not known here");
}

/* What stands between answers with no code of EC2's. */
TEST_CASE(test_no_code) {
        World *w = *state;

        (void) fake_ec2_run(w->ec2, "i-0a", "eu-west-1a");
        fake_ec2_fail(w->ec2, 1, 502, "a b", "");
        expect(answered(w, describe(w, A)), CLOUD_RETRY, INSTANCE_UNKNOWN, "HTTP 502");
        fake_ec2_garble(
                w->ec2, 1,
                "<DescribeInstancesResponse><reservationSet><item><instancesSet><item><instanceId>i-0a"
                "</instanceId><instanceState><name>running</name></instanceState></item><item>"
                "<instanceId>i-0a</instanceId><instanceState><name>terminated</name></instanceState>"
                "</item></instancesSet></item></reservationSet><nextToken></nextToken>"
                "</DescribeInstancesResponse>");
        print_message("of two that contradict each other, not the one that is gone\n");
        expect(answered(w, describe(w, A)), CLOUD_OK, INSTANCE_PRESENT, "");
}

/* 250 questions for 240 instances in one iteration: three requests. */
TEST_CASE(test_coalescing) {
        World *w = *state;
        char id[64];

        for (unsigned i = 0; i < 250; i++) {
                if (i < 240) {
                        (void) snprintf(id, sizeof(id), "i-%08x", i);
                        (void) fake_ec2_run(w->ec2, id, "eu-west-1a");
                }
                (void) snprintf(id, sizeof(id), "aws:///eu-west-1a/i-%08x", i < 240 ? i : 479 - i);
                describe(w, id);
        }
        run_for(w, USEC_PER_SEC);
        for (size_t i = 0; i < w->n_asked; i++)
                expect(&w->asked[i], CLOUD_OK, INSTANCE_PRESENT, "");
        assert_int_equal(fake_ec2_n_requests(w->ec2, "DescribeInstances"), 3);
        assert_int_equal(fake_ec2_last_n_ids(w->ec2), 40);
}

TEST_CASE(test_pages) {
        World *w = *state;
        char id[64];

        fake_ec2_set_page_size(w->ec2, 7);
        for (unsigned i = 0; i < 30; i++) {
                (void) snprintf(id, sizeof(id), "i-%08x", i);
                (void) fake_ec2_run(w->ec2, id, "eu-west-1a");
                (void) snprintf(id, sizeof(id), "aws:///eu-west-1a/i-%08x", i);
                describe(w, id);
        }
        run_for(w, USEC_PER_SEC);
        for (size_t i = 0; i < w->n_asked; i++)
                expect(&w->asked[i], CLOUD_OK, INSTANCE_PRESENT, "");
        assert_int_equal(fake_ec2_n_requests(w->ec2, "DescribeInstances"), 5);

        /* More pages than an answer can have: nothing that was not in them is taken for gone. */
        fake_ec2_set_page_size(w->ec2, 1);
        for (unsigned i = 0; i < 30; i++) {
                (void) snprintf(id, sizeof(id), "aws:///eu-west-1a/i-%08x", i);
                describe(w, id);
        }
        run_for(w, USEC_PER_SEC);
        for (size_t i = 30; i < w->n_asked; i++)
                expect(&w->asked[i], CLOUD_RETRY, INSTANCE_UNKNOWN, "could not be read");
}

/* -- terminate ------------------------------------------------------------------------------ */

TEST_CASE(test_protection) {
        World *w = *state;
        Asked *a;

        (void) fake_ec2_run(w->ec2, "i-0a", "eu-west-1a");
        fake_ec2_protect(w->ec2, "i-0a", true);
        a = answered(w, terminate(w, A));
        expect(a, CLOUD_PROTECTED, INSTANCE_UNKNOWN, "disableApiTermination");
        assert_string_equal(a->code, "OperationNotPermitted");
        fake_ec2_protect(w->ec2, "i-0a", false);
        expect(answered(w, terminate(w, A)), CLOUD_OK, INSTANCE_TERMINATING, "");
}

TEST_CASE(test_throttling) {
        World *w = *state;
        Asked *a;

        (void) fake_ec2_run(w->ec2, "i-0a", "eu-west-1a");
        fake_ec2_throttle(w->ec2, 2, 1500);
        a = answered(w, terminate(w, A));
        expect(a, CLOUD_RETRY, INSTANCE_UNKNOWN, "RequestLimitExceeded");
        assert_int_equal(a->retry_after_usec, 1500 * USEC_PER_MSEC);
        a = answered(w, describe(w, A));
        expect(a, CLOUD_RETRY, INSTANCE_UNKNOWN, "RequestLimitExceeded");
        assert_int_equal(a->retry_after_usec, 1500 * USEC_PER_MSEC);
        fake_ec2_throttle(w->ec2, 1, 0);
        assert_int_equal(answered(w, describe(w, A))->retry_after_usec, 0);
        expect(answered(w, terminate(w, A)), CLOUD_OK, INSTANCE_TERMINATING, "");
}

static Asked *new_machine(World *w, unsigned i, Asked *(*ask)(World *w, const char *provider_id)) {
        char id[64];

        (void) snprintf(id, sizeof(id), "i-%08x", i);
        (void) fake_ec2_run(w->ec2, id, "eu-west-1a");
        (void) snprintf(id, sizeof(id), "aws:///eu-west-1a/i-%08x", i);
        return ask(w, id);
}

/* 100 at once, then five a second. */
TEST_CASE(test_terminate_rate) {
        World *w = *state;
        char id[64];
        usec_t last = 0;

        for (unsigned i = 0; i < 120; i++)
                (void) new_machine(w, i, terminate);
        run_for(w, 100 * USEC_PER_MSEC);
        assert_int_equal(fake_ec2_n_requests(w->ec2, "TerminateInstances"), 100);
        run_for(w, USEC_PER_SEC);
        assert_int_equal(fake_ec2_n_requests(w->ec2, "TerminateInstances"), 105);
        run_for(w, 10 * USEC_PER_SEC);
        assert_int_equal(fake_ec2_n_alive(w->ec2), 0);
        for (size_t i = 0; i < w->n_asked; i++) {
                expect(&w->asked[i], CLOUD_OK, INSTANCE_TERMINATING, "");
                assert_true(w->asked[i].at_usec >= last);
                last = w->asked[i].at_usec;
                (void) snprintf(id, sizeof(id), "i-%08zx", i);
                assert_int_equal(fake_ec2_n_terminations(w->ec2, id), 1);
        }
}

static size_t n_turns(const World *w) {
        size_t n = 0;

        for (size_t i = 0; i < w->n_asked; i++)
                n += w->asked[i].turn_usec > 0;
        return n;
}

/* A turn costs nothing until it is used, and who holds one keeps no more than that one from the others: over
 * any time there are no more terminates than EC2 takes, and no fewer. */
TEST_CASE(test_turns) {
        World *w = *state;

        for (unsigned i = 0; i < 130; i++)
                (void) new_machine(w, i, turn);
        run_for(w, 4 * USEC_PER_SEC);
        assert_int_equal(n_turns(w), 100); /* more than the bucket holds could not be sent at once */
        assert_int_equal(fake_ec2_n_requests(w->ec2, "TerminateInstances"), 0);

        /* All that are held are sent at once; what they used comes back with time. */
        for (size_t i = 0; i < 50; i++)
                confirm_now(&w->asked[i]);
        run_for(w, 100 * USEC_PER_MSEC);
        assert_int_equal(fake_ec2_n_requests(w->ec2, "TerminateInstances"), 50);
        assert_int_equal(n_turns(w), 100);
        run_for(w, USEC_PER_SEC);
        assert_int_equal(n_turns(w), 105);

        /* Given back, before it came and after: the next have theirs at once. */
        for (size_t i = 50; i < 60; i++)
                w->asked[i].call = cloud_call_free(w->asked[i].call);
        w->asked[129].call = cloud_call_free(w->asked[129].call);
        run_for(w, 50 * USEC_PER_MSEC);
        assert_int_equal(n_turns(w), 115);
        run_for(w, 3500 * USEC_PER_MSEC);
        assert_int_equal(n_turns(w), 129);
        for (size_t i = 60; i < 129; i++)
                confirm_now(&w->asked[i]);
        run_for(w, USEC_PER_MINUTE);
        assert_int_equal(fake_ec2_n_requests(w->ec2, "TerminateInstances"), 119);
        assert_int_equal(fake_ec2_n_alive(w->ec2), 11);
}

TEST_CASE(test_guard) {
        World *w = *state;
        Asked *a;

        (void) fake_ec2_run(w->ec2, "i-0a", "eu-west-1a");
        w->may_send = false;
        expect(answered(w, terminate(w, A)), CLOUD_RETRY, INSTANCE_UNKNOWN, "lease lost");

        /* Lost on each step from the turn to the wire: keys, then the request that waits to leave. */
        for (unsigned steps = 0; steps < 2; steps++) {
                w->may_send = true;
                a = turn(w, A);
                run_for(w, USEC_PER_SEC);
                confirm_now(a);
                for (unsigned i = 0; i < steps; i++)
                        assert_int_equal(virtual_time_step(w->time, USEC_INFINITY), 1);
                assert_false(a->answered);
                w->may_send = false;
                expect(answered(w, a), CLOUD_RETRY, INSTANCE_UNKNOWN, "lease lost");
        }
        assert_string_equal(fake_ec2_state(w->ec2, "i-0a"), "running");
        assert_int_equal(fake_ec2_n_requests(w->ec2, "TerminateInstances"), 0);
}

/* Its owner is asked once more before a request leaves again: here because EC2 refuses the clock of the first. */
TEST_CASE(test_confirmed_at_each_resend) {
        World *w = *state;

        (void) fake_ec2_run(w->ec2, "i-0a", "eu-west-1a");
        for (unsigned confirmed = 0; confirmed < 2; confirmed++) {
                Asked *a = turn(w, A);
                unsigned n = fake_ec2_n_refused(w->ec2);

                fake_ec2_set_skew(w->ec2, (confirmed ? 3 : -3) * (int64_t) USEC_PER_HOUR);
                run_for(w, USEC_PER_SEC);
                confirm_now(a);
                while (fake_ec2_n_refused(w->ec2) == n)
                        assert_int_equal(virtual_time_step(w->time, USEC_INFINITY), 1);
                if (!confirmed)
                        (void) cloud_call_hold(a->call);
                if (confirmed)
                        expect(answered(w, a), CLOUD_OK, INSTANCE_TERMINATING, "");
                else
                        expect(answered(w, a), CLOUD_RETRY, INSTANCE_UNKNOWN, "took too long");
                assert_string_equal(fake_ec2_state(w->ec2, "i-0a"), confirmed ? "shutting-down" : "running");
        }
}

/* -- identity and clock --------------------------------------------------------------------- */

TEST_CASE(test_clock_skew) {
        World *w = *state;

        (void) fake_ec2_run(w->ec2, "i-0a", "eu-west-1a");
        fake_ec2_set_skew(w->ec2, 3 * (int64_t) USEC_PER_HOUR);
        expect(answered(w, describe(w, A)), CLOUD_OK, INSTANCE_PRESENT, "");
        assert_int_equal(fake_ec2_n_refused(w->ec2), 1);
        expect(answered(w, terminate(w, A)), CLOUD_OK, INSTANCE_TERMINATING, "");
        assert_int_equal(fake_ec2_n_refused(w->ec2), 1); /* the offset is kept */

        fake_ec2_set_skew(w->ec2, -2 * (int64_t) USEC_PER_HOUR);
        expect(answered(w, describe(w, A)), CLOUD_OK, INSTANCE_TERMINATING, "");
        assert_int_equal(fake_ec2_n_refused(w->ec2), 2);
}

/* Keys of the environment cannot be renewed: one more try, then a person must act. */
TEST_CASE(test_expired_keys) {
        World *w = *state;

        (void) fake_ec2_run(w->ec2, "i-0a", "eu-west-1a");
        fake_ec2_expire_keys(w->ec2, "ExpiredToken");
        expect(answered(w, terminate(w, A)), CLOUD_DENIED, INSTANCE_UNKNOWN, "ExpiredToken");
        assert_int_equal(fake_ec2_n_refused(w->ec2), 2);
        fake_ec2_set_keys(w->ec2, KEY, SECRET, NULL);
        expect(answered(w, terminate(w, A)), CLOUD_OK, INSTANCE_TERMINATING, "");
}

TEST_CASE(test_session_token) {
        World *w = *state;

        (void) fake_ec2_run(w->ec2, "i-0a", "eu-west-1a");
        fake_ec2_set_keys(w->ec2, KEY, SECRET, "FwoGZXIvYXdzEXAMPLE+/=");
        expect(answered(w, describe(w, A)), CLOUD_DENIED, INSTANCE_UNKNOWN, "AuthFailure");
        w->token = "FwoGZXIvYXdzEXAMPLE+/=";
        world_new_provider(w, REGION);
        expect(answered(w, describe(w, A)), CLOUD_OK, INSTANCE_PRESENT, "");
}

/* Nothing to send with, nobody to send to. */
TEST_CASE(test_no_way) {
        World *w = *state;

        world_new_provider(w, "us-west-2"); /* no such route */
        expect(answered(w, describe(w, "aws:///us-west-2a/i-0a")), CLOUD_RETRY, INSTANCE_UNKNOWN,
               "DescribeInstances failed");
        w->key = NULL;
        world_new_provider(w, REGION);
        expect(answered(w, describe(w, A)), CLOUD_DENIED, INSTANCE_UNKNOWN, "Only one of AWS_ACCESS_KEY_ID");
        w->secret = NULL;
        world_new_provider(w, REGION);
        expect(answered(w, describe(w, A)), CLOUD_RETRY, INSTANCE_UNKNOWN,
               "No AWS credentials are configured");
        expect(answered(w, describe(w, "gce://a/b/c")), CLOUD_INVALID, INSTANCE_UNKNOWN,
               "no providerID of an EC2 instance");
        expect(answered(w, terminate(w, "x\ny")), CLOUD_INVALID, INSTANCE_UNKNOWN, "'x?y' is no providerID");
}

/* -- region --------------------------------------------------------------------------------- */

typedef struct Imds {
        const char *region, *keys;
        unsigned n_requests;
} Imds;

static void imds_handle(HttpExchange *x, void *userdata) {
        Imds *m = userdata;
        const char *body = "";
        unsigned status = 404;

        m->n_requests++;
        if (x->method == HTTP_PUT && streq(x->path, "/latest/api/token")) {
                status = 200;
                body = "TOKEN==";
        } else if (!streq_ptr(http_header_find(x->headers, x->n_headers, "X-aws-ec2-metadata-token"),
                              "TOKEN=="))
                status = 401;
        else if (m->region && streq(x->path, "/latest/meta-data/placement/region")) {
                status = 200;
                body = m->region;
        } else if (m->keys && streq(x->path, "/latest/meta-data/iam/security-credentials/")) {
                status = 200;
                body = "role";
        } else if (m->keys && streq(x->path, "/latest/meta-data/iam/security-credentials/role")) {
                status = 200;
                body = m->keys;
        }
        x->ops->reply(x, status, NULL, 0, body, strlen(body));
}

TEST_CASE(test_region_from_metadata) {
        World *w = *state;
        Imds m = { 0 };
        Asked *a, *b;

        (void) fake_ec2_run(w->ec2, "i-0a", "eu-west-1a");
        assert_return_code(http_inproc_route(w->env.transport, "http://169.254.169.254", imds_handle, &m),
                           0);
        world_new_provider(w, NULL);
        expect(answered(w, describe(w, A)), CLOUD_RETRY, INSTANCE_UNKNOWN, "region is not known");
        m.region = "not a region";
        expect(answered(w, describe(w, A)), CLOUD_RETRY, INSTANCE_UNKNOWN, "instance metadata gave none");

        m = (Imds){ .region = REGION "\n" };
        a = describe(w, A);
        b = terminate(w, A);
        expect(answered(w, a), CLOUD_OK, INSTANCE_PRESENT, "");
        expect(answered(w, b), CLOUD_OK, INSTANCE_TERMINATING, "");
        assert_int_equal(m.n_requests, 1); /* the token of before still holds; asked once for both */

        w->region_variable = REGION;
        world_new_provider(w, NULL);
        expect(answered(w, describe(w, A)), CLOUD_OK, INSTANCE_TERMINATING, "");
        assert_int_equal(m.n_requests, 1);
}

/* Whatever has to be found out before a request can leave is found out before the turn. */
TEST_CASE(test_turn_waits_for_keys) {
        World *w = *state;
        Imds m = { .region = REGION,
                   .keys = "{\"Code\":\"Success\",\"AccessKeyId\":\"" KEY "\",\"SecretAccessKey\":\"" SECRET
                           "\",\"Token\":\"T\",\"Expiration\":\"2100-01-01T00:00:00Z\"}" };
        usec_t slow;
        Asked *a, *b;

        (void) fake_ec2_run(w->ec2, "i-0a", "eu-west-1a");
        (void) fake_ec2_run(w->ec2, "i-0b", "eu-west-1b");
        fake_ec2_set_keys(w->ec2, KEY, SECRET, "T");
        assert_return_code(http_inproc_route(w->env.transport, "http://169.254.169.254", imds_handle, &m),
                           0);

        w->secret = NULL;
        world_new_provider(w, NULL);
        expect(answered(w, turn(w, A)), CLOUD_DENIED, INSTANCE_UNKNOWN, "Only one of AWS_ACCESS_KEY_ID");

        w->key = NULL;
        world_new_provider(w, NULL);
        slow = usec_add(virtual_time_now(w->time), USEC_PER_SEC);
        http_inproc_hold(w->env.transport, "http://169.254.169.254", slow);
        a = turn(w, A);
        b = turn(w, B);
        run_for(w, 10 * USEC_PER_SEC);
        assert_true(a->turn_usec >= slow && a->turn_usec == b->turn_usec);
        confirm_now(a);
        slow = virtual_time_now(w->time);
        expect(answered(w, a), CLOUD_OK, INSTANCE_TERMINATING, "");
        assert_true(a->at_usec == slow);

        /* Not by one who has slept over it. */
        w->may_send = false;
        confirm_now(b);
        expect(answered(w, b), CLOUD_RETRY, INSTANCE_UNKNOWN, "lease lost");
        assert_int_equal(fake_ec2_n_requests(w->ec2, "TerminateInstances"), 1);

        /* Dropped while keys are awaited: nobody is left to tell. */
        world_new_provider(w, NULL);
        http_inproc_hold(w->env.transport, "http://169.254.169.254",
                         usec_add(virtual_time_now(w->time), USEC_PER_SEC));
        a = turn(w, A);
        run_for(w, USEC_PER_SEC / 2);
        a->call = cloud_call_free(a->call);
        run_for(w, 2 * USEC_PER_SEC);
        assert_true(a->turn_usec == 0);
}

static const char *table_getenv(const char *name, void *userdata) {
        for (const char *const *p = userdata; *p; p += 2)
                if (streq(p[0], name))
                        return p[1];
        return NULL;
}

TEST_CASE(test_configuration) {
        static const struct {
                const char *what;
                CloudConfig config;
                const char *variables[5];
                const char *message; /* NULL: fine */
        } rows[] = {
                { "a region", { .name = "ec2", .region = "eu-west-1" }, { NULL }, NULL },
                { "metadata will say", { .name = "ec2" }, { NULL }, NULL },
                { "no metadata, no region",
                  { .name = "ec2" },
                  { "AWS_EC2_METADATA_DISABLED", "TRUE" },
                  "no AWS region" },
                { "no region, but one in the environment",
                  { .name = "ec2" },
                  { "AWS_EC2_METADATA_DISABLED", "true", "AWS_DEFAULT_REGION", "eu-west-1" },
                  NULL },
                { "a zone for a region", { .name = "ec2", .region = "EU west" }, { NULL }, "eu-central-1" },
                { "an endpoint", { .name = "ec2", .endpoint = "http://127.0.0.1:5000/" }, { NULL }, NULL },
                { "an endpoint with a path",
                  { .name = "ec2", .endpoint = "http://h/x" },
                  { NULL },
                  "endpoint" },
                { "an endpoint with a bad port",
                  { .name = "ec2", .endpoint = "http://h:0" },
                  { NULL },
                  "endpoint" },
                { "an endpoint with a user",
                  { .name = "ec2", .endpoint = "http://u@h" },
                  { NULL },
                  "endpoint" },
                { "an endpoint of another kind",
                  { .name = "ec2", .endpoint = "ftp://h" },
                  { NULL },
                  "endpoint" },
                { "a bad endpoint in the environment",
                  { .name = "ec2" },
                  { "AWS_ENDPOINT_URL", "h" },
                  "endpoint" },
                { "its own comes first",
                  { .name = "ec2", .region = "eu-west-1" },
                  { "AWS_ENDPOINT_URL", "http://h", "AWS_ENDPOINT_URL_EC2", "" },
                  NULL },
                { "a bad metadata endpoint",
                  { .name = "ec2" },
                  { "AWS_EC2_METADATA_SERVICE_ENDPOINT", "h" },
                  "AWS_EC2_METADATA" },
                { "another provider", { .name = "gcp" }, { NULL }, "no such provider" },
                { "no provider", { .name = NULL }, { NULL }, "no such provider" },
        };
        World *w = *state;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(cloud_provider_freep) CloudProvider *p = NULL;
                CloudConfig config = rows[i].config;
                const char *message = NULL;
                int r;

                print_message("%s\n", rows[i].what);
                config.getenv = table_getenv;
                config.getenv_userdata = (void *) rows[i].variables;
                r = cloud_provider_new(&w->env, &config, &p, &message);
                assert_int_equal(r, rows[i].message ? -EINVAL : 0);
                if (rows[i].message)
                        assert_non_null(strstr(message, rows[i].message));
        }
}

/* -- slots ---------------------------------------------------------------------------------- */

static void free_both(const CloudResult *result, void *userdata) {
        Asked *a = userdata;

        a->answered = true;
        a[0].call = cloud_call_free(a[0].call);
        a[1].call = cloud_call_free(a[1].call);
}

TEST_CASE(test_cancel) {
        World *w = *state;
        Asked *a, *b;

        (void) fake_ec2_run(w->ec2, "i-0a", "eu-west-1a");
        (void) fake_ec2_run(w->ec2, "i-0b", "eu-west-1b");

        /* Before, and in every step of, the way. */
        for (unsigned steps = 0; steps < 6; steps++) {
                a = describe(w, A);
                b = describe(w, B);
                for (unsigned i = 0; i < steps; i++)
                        (void) virtual_time_step(w->time, USEC_INFINITY);
                a->call = cloud_call_free(a->call);
                run_for(w, USEC_PER_SEC);
                assert_true(b->answered);
                b = describe(w, B);
                for (unsigned i = 0; i < steps; i++)
                        (void) virtual_time_step(w->time, USEC_INFINITY);
                b->call = cloud_call_free(b->call);
                b = terminate(w, B);
                for (unsigned i = 0; i < steps && i < 3; i++)
                        (void) virtual_time_step(w->time, USEC_INFINITY);
                b->call = cloud_call_free(b->call);
                run_for(w, USEC_PER_SEC);
        }

        /* One callback frees the other one's call: that one is not heard of again. */
        a = next_asked(w);
        b = next_asked(w);
        assert_return_code(cloud_describe(w->provider, &(CloudMachine){ .provider_id = A }, free_both, a, &a->call), 0);
        assert_return_code(cloud_describe(w->provider, &(CloudMachine){ .provider_id = A }, free_both, b, &b->call), 0);
        run_for(w, USEC_PER_SEC);
        assert_true(a->answered);
        assert_false(b->answered);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_provider_ids, world_setup, world_teardown),
                cmocka_unit_test_setup_teardown(test_errors, world_setup, world_teardown),
                cmocka_unit_test_setup_teardown(test_describe_states, world_setup, world_teardown),
                cmocka_unit_test_setup_teardown(test_identity, world_setup, world_teardown),
                cmocka_unit_test_setup_teardown(test_terminate_life, world_setup, world_teardown),
                cmocka_unit_test_setup_teardown(test_not_found_needs_proof, world_setup, world_teardown),
                cmocka_unit_test_setup_teardown(test_proof_in_the_same_answer, world_setup, world_teardown),
                cmocka_unit_test_setup_teardown(test_witness, world_setup, world_teardown),
                cmocka_unit_test_setup_teardown(test_wrong_region, world_setup, world_teardown),
                cmocka_unit_test_setup_teardown(test_foreign_endpoint, world_setup, world_teardown),
                cmocka_unit_test_setup_teardown(test_zone_contradiction, world_setup, world_teardown),
                cmocka_unit_test_setup_teardown(test_garbage, world_setup, world_teardown),
                cmocka_unit_test_setup_teardown(test_no_code, world_setup, world_teardown),
                cmocka_unit_test_setup_teardown(test_coalescing, world_setup, world_teardown),
                cmocka_unit_test_setup_teardown(test_pages, world_setup, world_teardown),
                cmocka_unit_test_setup_teardown(test_protection, world_setup, world_teardown),
                cmocka_unit_test_setup_teardown(test_throttling, world_setup, world_teardown),
                cmocka_unit_test_setup_teardown(test_terminate_rate, world_setup, world_teardown),
                cmocka_unit_test_setup_teardown(test_turns, world_setup, world_teardown),
                cmocka_unit_test_setup_teardown(test_turn_waits_for_keys, world_setup, world_teardown),
                cmocka_unit_test_setup_teardown(test_guard, world_setup, world_teardown),
                cmocka_unit_test_setup_teardown(test_confirmed_at_each_resend, world_setup, world_teardown),
                cmocka_unit_test_setup_teardown(test_clock_skew, world_setup, world_teardown),
                cmocka_unit_test_setup_teardown(test_expired_keys, world_setup, world_teardown),
                cmocka_unit_test_setup_teardown(test_session_token, world_setup, world_teardown),
                cmocka_unit_test_setup_teardown(test_no_way, world_setup, world_teardown),
                cmocka_unit_test_setup_teardown(test_region_from_metadata, world_setup, world_teardown),
                cmocka_unit_test_setup_teardown(test_configuration, world_setup, world_teardown),
                cmocka_unit_test_setup_teardown(test_cancel, world_setup, world_teardown),
        };
        return cmocka_run_group_tests_name("cloud-ec2", tests, NULL, NULL);
}
