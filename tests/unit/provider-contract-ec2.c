/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cmocka-test.h"
#include "fake-ec2.h"
#include "http-inproc.h"
#include "provider-contract.h"
#include "string-util.h"

#define REGION "eu-west-1"
#define ENDPOINT "https://ec2.eu-west-1.amazonaws.com"
#define KEY "AKIAIOSFODNN7EXAMPLE"
#define SECRET "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
#define MACHINES_MAX 128u

typedef struct Ec2UnderTest {
        ProviderUnderTest put;
        Env *env;
        FakeEc2 *ec2;
        char provider_ids[MACHINES_MAX][64]; /* by number */
        bool held[MACHINES_MAX];
        unsigned n_held; /* calls that were held */
} Ec2UnderTest;

static Ec2UnderTest *under_test(const ProviderUnderTest *p) {
        return CONTAINER_OF(p, Ec2UnderTest, put);
}

static const char *instance_id(unsigned n, char buffer[32]) {
        (void) snprintf(buffer, 32, "i-%08x", n);
        return buffer;
}

static const char *action_of(CloudOperation o) {
        return o == CLOUD_DESCRIBE    ? "DescribeInstances"
               : o == CLOUD_TERMINATE ? "TerminateInstances"
               : o == CLOUD_REBOOT    ? "RebootInstances"
                                      : "none";
}

static const char *on_getenv(const char *name, void *userdata) {
        return streq(name, "AWS_ACCESS_KEY_ID") ? KEY : streq(name, "AWS_SECRET_ACCESS_KEY") ? SECRET : NULL;
}

/* Stands before the fake of EC2 and keeps what is held from it. */
static void handle(HttpExchange *x, void *userdata) {
        _cleanup_free_ char *body = memdup_str(x->body, x->body_size);
        Ec2UnderTest *t = userdata;

        assert_non_null(body);
        for (unsigned n = 0; n < MACHINES_MAX; n++) {
                char id[32];

                if (t->held[n] && strstr(body, "Action=TerminateInstances") &&
                    strstr(body, instance_id(n, id))) {
                        t->n_held++;
                        return;
                }
        }
        fake_ec2_handle(x, t->ec2);
}

static ProviderUnderTest *ec2_new(Env *env) {
        Ec2UnderTest *t = new0(Ec2UnderTest, 1);
        const char *message;

        t->put.ops = &contract_ec2;
        t->env = env;
        assert_return_code(http_inproc_new(env->loop, "contract", NULL, &env->transport), 0);
        t->ec2 = fake_ec2_new(&(FakeEc2Options) { .loop = env->loop,
                                                  .region = REGION,
                                                  .access_key_id = KEY,
                                                  .secret_access_key = SECRET,
                                                  .shutting_down_usec = 30 * USEC_PER_SEC });
        assert_return_code(http_inproc_route(env->transport, ENDPOINT, handle, t), 0);
        assert_return_code(
                cloud_provider_new(env,
                                   &(CloudConfig) { .name = "ec2", .region = REGION, .getenv = on_getenv },
                                   &t->put.provider, &message),
                0);
        return &t->put;
}

static ProviderUnderTest *ec2_free(ProviderUnderTest *p) {
        Ec2UnderTest *t = under_test(p);

        cloud_provider_free(p->provider);
        t->env->transport = http_transport_free(t->env->transport);
        fake_ec2_free(t->ec2);
        free(t);
        return NULL;
}

static const char *ec2_run(ProviderUnderTest *p, unsigned n) {
        Ec2UnderTest *t = under_test(p);
        char id[32], node[32];

        assert_true(n < MACHINES_MAX);
        (void) fake_ec2_run(t->ec2, instance_id(n, id), REGION "a");
        (void) snprintf(node, sizeof(node), "node-%u", n);
        fake_ec2_set_node_tag(t->ec2, id, node);
        (void) snprintf(t->provider_ids[n], sizeof(t->provider_ids[n]), "aws:///" REGION "a/%s", id);
        return t->provider_ids[n];
}

static void ec2_set_state(ProviderUnderTest *p, unsigned n, InstanceState state) {
        Ec2UnderTest *t = under_test(p);
        char id[32];

        instance_id(n, id);
        if (state == INSTANCE_TERMINATING)
                fake_ec2_terminate(t->ec2, id);
        else
                fake_ec2_set_state(t->ec2, id,
                                   state == INSTANCE_OFF    ? "stopped"
                                   : state == INSTANCE_GONE ? "terminated"
                                                            : "running");
}

static void ec2_fault(ProviderUnderTest *p, CloudOperation o, ContractFault fault, unsigned calls) {
        fake_troubles_add(
                fake_ec2_troubles(under_test(p)->ec2),
                &(FakeTrouble) { .kind = fault == CONTRACT_LOST ? FAKE_TROUBLE_LOSE : FAKE_TROUBLE_FAIL,
                                 .operation = action_of(o),
                                 .n = calls,
                                 .status = 503,
                                 .code = "Unavailable",
                                 .message = "The server is overloaded." });
}

static void ec2_hold_end(ProviderUnderTest *p, unsigned n, bool hold) {
        under_test(p)->held[n] = hold;
}

static unsigned ec2_calls(const ProviderUnderTest *p, CloudOperation o) {
        Ec2UnderTest *t = under_test(p);

        return (unsigned) fake_ec2_n_requests(t->ec2, action_of(o)) + (o == CLOUD_TERMINATE ? t->n_held : 0);
}

static size_t ec2_n_alive(ProviderUnderTest *p) {
        return fake_ec2_n_alive(under_test(p)->ec2);
}

const ProviderUnderTestOps contract_ec2 = {
        .name = "ec2",
        .faults = 1u << CONTRACT_UNAVAILABLE | 1u << CONTRACT_LOST,
        .new = ec2_new,
        .free = ec2_free,
        .run = ec2_run,
        .set_state = ec2_set_state,
        .fault = ec2_fault,
        .hold_end = ec2_hold_end,
        .calls = ec2_calls,
        .n_alive = ec2_n_alive,
};
