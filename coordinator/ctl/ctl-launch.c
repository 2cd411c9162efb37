/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl-launch.h"

#include "launch-rule.h"
#include "marks.h"
#include "string-util.h"

static const char *const state_names[_LAUNCH_STATE_MAX] = {
        [LAUNCH_STATE_NOT_ASKED] = "NotAsked",
        [LAUNCH_STATE_ASKED] = "Launching",
        [LAUNCH_STATE_NO_CAPACITY] = "NoCapacity",
        [LAUNCH_STATE_FAILED] = "LaunchFailed",
        [LAUNCH_STATE_UNKNOWN] = "LaunchUnknown",
        [LAUNCH_STATE_REFUSED] = "LaunchRefused",
        [LAUNCH_STATE_LAUNCHED] = "Launched",
        [LAUNCH_STATE_REGISTERED] = "Registered",
        [LAUNCH_STATE_READY] = "Ready",
        [LAUNCH_STATE_DELETED] = "BeingDeleted",
};

const char *launch_state_to_string(LaunchState s) {
        return s < _LAUNCH_STATE_MAX ? state_names[s] : NULL;
}

/* Returns the state that follows from the last answer. A word of a later version counts as no answer. */
static LaunchState state_of_answer(const char *answer) {
        static const LaunchState states[_CLOUD_ANSWER_MAX] = {
                [CLOUD_ANSWER_ACCEPTED] = LAUNCH_STATE_ASKED,
                [CLOUD_ANSWER_UNKNOWN] = LAUNCH_STATE_UNKNOWN,
                [CLOUD_ANSWER_LATER] = LAUNCH_STATE_FAILED,
                [CLOUD_ANSWER_NO_CAPACITY] = LAUNCH_STATE_NO_CAPACITY,
                [CLOUD_ANSWER_AT_MINIMUM] = LAUNCH_STATE_FAILED,
                [CLOUD_ANSWER_REFUSED] = LAUNCH_STATE_REFUSED,
        };

        for (size_t i = 0; answer && i < ELEMENTSOF(states); i++)
                if (streq(answer, cloud_answer_names[i]))
                        return states[i];
        return LAUNCH_STATE_ASKED;
}

LaunchState launch_state(const KubeNodeClaim *claim) {
        if (!kube_node_claim_is_new(claim))
                return LAUNCH_STATE_READY;
        if (claim->object.meta.deletion_usec > 0)
                return LAUNCH_STATE_DELETED;
        if (claim->node_name)
                return LAUNCH_STATE_REGISTERED;
        if (claim->provider_id)
                return LAUNCH_STATE_LAUNCHED;
        return claim->request.token ? state_of_answer(claim->request.answer) : LAUNCH_STATE_NOT_ASKED;
}

bool launch_is_without_node(const KubeNodeClaim *claim) {
        return kube_node_claim_is_new(claim) && !claim->node_name;
}

char *launch_request_text(const KubeNodeClaim *claim) {
        const ClaimRequest *r = &claim->request;
        StrBuf b = {};

        strbuf_add(&b, "a machine");
        if (r->like)
                strbuf_addf(&b, " like %s", r->like);
        if (r->zone)
                strbuf_addf(&b, ", zone %s", r->zone);
        if (r->capacity_type)
                strbuf_addf(&b, ", capacity type %s", r->capacity_type);
        return strbuf_steal(&b);
}

usec_t launch_asked_until(const KubeNodeClaim *claim) {
        if (claim->provider_id || claim->request.since_usec == 0)
                return USEC_INFINITY;
        return usec_add(claim->request.since_usec, LAUNCH_ASKED_USEC);
}
