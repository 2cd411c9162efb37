/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "queue-rig.h"

#define EC2_ORIGIN "https://ec2.us-east-1.amazonaws.com"
#define GROUPS_ORIGIN "https://autoscaling.us-east-1.amazonaws.com"

void queue_rig_init(QueueRig *q) {
        *q = (QueueRig){ .rig = coordinator_rig_new() };
        q->sqs = fake_sqs_new(
                &(FakeSqsOptions){ .aws = { .loop = q->rig->w.loop, .region = "us-east-1", .max_skew_usec = USEC_PER_HOUR } });
        fake_sqs_add_queue(q->sqs, &(FakeSqsQueue){ .name = "q" });
        q->rig->queue_handler = fake_sqs_handle;
        q->rig->queue = q->sqs;
}

void queue_rig_route_ec2(QueueRig *q) {
        assert_return_code(http_inproc_route(q->rig->coordinators[0]->transport, EC2_ORIGIN, fake_ec2_handle, q->rig->ec2), 0);
}

void queue_rig_done(QueueRig *q) {
        for (size_t i = 0; i < ELEMENTSOF(q->rig->coordinators); i++)
                rig_kill(q->rig, i); /* who polls goes before the queue */
        fake_autoscaling_free(q->groups);
        fake_sqs_free(q->sqs);
        coordinator_rig_free(q->rig);
}

void queue_rig_send(QueueRig *q, FakeAwsEvent event) {
        _cleanup_free_ char *body = NULL;

        event.wall_usec = loop_wall(q->rig->w.loop);
        body = fake_aws_event(&event);
        fake_sqs_send(q->sqs, "q", body);
}

/* -- groups --------------------------------------------------------------------------------------------- */

static void on_group_event(const FakeAsgEvent *e, void *userdata) {
        if (e->kind != FAKE_ASG_LIFECYCLE_ACTION)
                return;
        queue_rig_send(userdata, (FakeAwsEvent){ .kind = e->launching ? FAKE_AWS_EVENT_LAUNCH_ACTION : FAKE_AWS_EVENT_TERMINATE_ACTION,
                                                 .instance = e->instance,
                                                 .group = e->group,
                                                 .hook = e->hook,
                                                 .token = e->token });
}

void queue_rig_add_group(QueueRig *q, const char *instance) {
        q->groups = fake_autoscaling_new(&(FakeAutoscalingOptions){ .aws = { .loop = q->rig->w.loop, .region = "us-east-1" },
                                                                    .ec2 = q->rig->ec2,
                                                                    .on_event = on_group_event,
                                                                    .userdata = q });
        fake_autoscaling_add_group(q->groups, &(FakeAsgGroup){ .name = "g", .zones = ZONE, .max = 3 });
        fake_autoscaling_add_hook(q->groups, "g",
                                  &(FakeAsgHook){ .name = "drain",
                                                  .heartbeat_usec = q->hook_usec > 0 ? q->hook_usec
                                                                                     : 30 * USEC_PER_SEC,
                                                  .abandon = true });
        fake_autoscaling_attach(q->groups, "g", instance);
        assert_return_code(http_inproc_route(q->rig->coordinators[0]->transport, GROUPS_ORIGIN, fake_autoscaling_handle, q->groups), 0);
}

static void on_let_go(const HttpResponse *response, void *userdata) {
        assert_int_equal(response->status, 200);
}

void queue_rig_group_lets_go(QueueRig *q, const char *instance) {
        static const HttpHeader headers[] = { { "Host", "autoscaling.us-east-1.amazonaws.com" },
                                              { "Content-Type", "application/x-www-form-urlencoded; charset=utf-8" } };
        _cleanup_free_ char *form = strf("Action=TerminateInstanceInAutoScalingGroup&Version=2011-01-01&InstanceId=%s&"
                                         "ShouldDecrementDesiredCapacity=true",
                                         instance);
        const HttpRequest request = { .method = HTTP_POST,
                                      .url = GROUPS_ORIGIN "/",
                                      .headers = headers,
                                      .n_headers = ELEMENTSOF(headers),
                                      .body = form,
                                      .body_size = strlen(form),
                                      .lane = HTTP_LANE_BULK,
                                      .timeout_usec = USEC_PER_MINUTE,
                                      .max_response_bytes = 1u << 16 };

        assert_return_code(http_call_start(q->rig->coordinators[0]->transport, &request, on_let_go, NULL, NULL), 0);
}
