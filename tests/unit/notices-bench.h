/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Fixture of tests of whole agents whose machines get notices. */

#include "agent-rig.h"
#include "cmocka-test.h"
#include "string-util.h"
#include "texts.h"

#define EVENTS "events/maintenance/scheduled"
/* Every feed has been looked at anew by then. */
#define LOOKS_USEC (70 * USEC_PER_SEC)

static inline AgentRig *policy_rig(NoticeKind kind, const char *rule) {
        AgentRig *r = agent_rig_new();

        assert_return_code(free_and_strdup(&r->config.policy[kind], rule), 0);
        agent_rig_add_pods(r, "web", 3);
        agent_rig_start(r);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        return r;
}

static inline size_t n_said(AgentRig *r, const char *part) {
        return text_count(strempty(r->lines.data), part);
}

static inline void announce(AgentRig *r, const char *id, const char *code, usec_t in_usec) {
        _cleanup_free_ char *body = NULL;
        char at[RFC3339_MAX];

        rfc3339_format(usec_add(loop_wall(r->world.loop), in_usec), at);
        body = strf("[{\"EventId\": \"%s\", \"Code\": \"%s\", \"State\": \"active\", \"NotBefore\": \"%s\"}]", id, code, at);
        fake_imds_set_text(r->imds, EVENTS, body);
}

static inline void assert_in_service(AgentRig *r) {
        assert_string_equal(agent_phase(r->agent), "Idle");
        assert_false(agent_rig_unschedulable(r));
        assert_int_equal(agent_rig_n_pods(r), 3);
}
