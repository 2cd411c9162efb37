/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Fixture of tests of an agent that asks for a slot to reboot its machine. The test answers as the coordinator. */

#include <stdlib.h>

#include "agent-rig.h"
#include "cmocka-test.h"

#define S USEC_PER_SEC
#define REQUEST "vesper.sh/shutdown-request"
#define GRANTED "vesper.sh/shutdown-granted"

static inline AgentRig *running_rig(void) {
        AgentRig *r = agent_rig_new();

        agent_rig_add_pods(r, "web", 3);
        agent_rig_start(r);
        agent_rig_run(r, 10 * S);
        assert_true(r->ready);
        return r;
}

static inline void run(AgentRig *r, usec_t usec) {
        usec_t until = virtual_time_now(r->world.time) + usec;

        while (agent_rig_run(r, until - virtual_time_now(r->world.time)))
                ;
}

static inline cJSON *request_of(AgentRig *r) {
        const char *text = agent_rig_annotation(r, REQUEST);

        return text ? cJSON_Parse(text) : NULL;
}

static inline void assert_state(AgentRig *r, const char *expected) {
        char *text = fake_power_get_unit(r->power, "State");

        assert_string_equal(text, expected);
        free(text);
}

static inline void assert_asks(AgentRig *r) {
        assert_non_null(agent_rig_annotation(r, REQUEST));
        assert_state(r, "RebootRequested");
        assert_int_equal(fake_power_phase(r->power), FAKE_POWER_UP);
}

static inline void assert_given_up(AgentRig *r) {
        assert_null(agent_rig_annotation(r, REQUEST));
        assert_state(r, "Idle");
        assert_int_equal(fake_power_phase(r->power), FAKE_POWER_UP);
        assert_false(agent_rig_unschedulable(r));
}

/* As the coordinator answers; in_sec: how long it counts from now. */
static inline void grant(AgentRig *r, const char *id, int in_sec) {
        char until[RFC3339_MAX];

        rfc3339_format(loop_wall(r->world.loop) + (usec_t) ((int64_t) in_sec * (int64_t) S), until);
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE,
                   "{'metadata':{'annotations':{'" GRANTED
                   "':'{\\\"id\\\":\\\"%s\\\",\\\"until\\\":\\\"%s\\\"}'}}}",
                   id, until);
}

static inline char *asked_id(AgentRig *r) {
        cJSON *request = request_of(r);
        char *id;

        assert_non_null(request);
        assert_string_equal(fj_string(request, "kind", NULL), "reboot");
        assert_string_equal(fj_string(request, "bootID", NULL), r->boot_id);
        assert_non_null(fj_string(request, "until", NULL));
        id = strdup(fj_string(request, "id", NULL));
        cJSON_Delete(request);
        return id;
}
