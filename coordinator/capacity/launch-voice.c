/* SPDX-License-Identifier: Apache-2.0 */
#include "launch-voice.h"

#include <inttypes.h>

#include "log-catalog.h"
#include "log.h"
#include "string-util.h"
#include "successors.h"

static const struct {
        const char *reason, *text;
} failures[_CLOUD_ANSWER_MAX] = {
        [CLOUD_ANSWER_UNKNOWN] = { "LaunchUnknown", "It is not known whether the cloud launched the machine. "
                                                    "Asking again launches no second one" },
        [CLOUD_ANSWER_LATER] = { "LaunchFailed", "The cloud did not launch the machine now. vesper asks again" },
        [CLOUD_ANSWER_NO_CAPACITY] = { "NoCapacity", "The cloud has no capacity for the machine now. vesper asks again" },
        [CLOUD_ANSWER_AT_MINIMUM] = { "LaunchFailed", "The cloud did not launch the machine now. vesper asks again" },
        [CLOUD_ANSWER_REFUSED] = { "LaunchRefused", "The cloud refused to launch the machine. vesper asks again" },
};

const char *launch_failure_reason(CloudAnswer answer) {
        return failures[answer].reason;
}

const char *launch_failure_text(CloudAnswer answer) {
        return failures[answer].text;
}

const char launch_unknown_text[] =
        "A request may have launched a machine, and the provider cannot be asked for it (operation find). Look at the provider for the "
        "token in status.group: vesper ends no such machine";

char *launch_find_message(const char *words) {
        return strf("The cloud may have launched the machine, and does not say whether it has: %s. vesper asks again, and keeps this "
                    "NodeClaim until the cloud answers",
                    isempty(words) ? "it gives no reason" : words);
}

char *launch_limit_message(const KubeNodeClaim *claim, const char *resource) {
        return strf("spec.limits of NodePool %s have no room for one machine more (%s). vesper asks for the machine when there is room",
                    claim->node_pool, resource);
}

char *launch_no_provider_message(const KubeNodeClaim *claim) {
        return strf("A request may have launched a machine, and this coordinator has no provider that can be asked for it. Configure the "
                    "provider again, or look there for token %s and take the finalizer off",
                    strempty(claim->request.token));
}

char *launch_timeout_message(const KubeNodeClaim *claim, bool is_replaced, usec_t timeout_usec) {
        _cleanup_free_ char *next = NULL;

        if (!is_replaced)
                next = strdup("no other: its NodePool does not replace machines");
        else if (claim->attempt < SUCCESSOR_ATTEMPTS_MAX)
                next = strf("attempt %" PRIi64 " of %d", claim->attempt + 1, SUCCESSOR_ATTEMPTS_MAX);
        else
                next = strf("no other after %d attempts", SUCCESSOR_ATTEMPTS_MAX);
        return strf("Machine %s was launched, and is no node that takes pods %" PRIu64 " minutes later: vesper ends it, and asks for %s",
                    claim->provider_id, timeout_usec / USEC_PER_MINUTE, strempty(next));
}

const KubeNodeClaim *launch_replaced(const ClusterView *view, const KubeNodeClaim *claim) {
        return cluster_view_claim(view, claim->replaces[0]);
}

const KubeNode *launch_node_of(const ClusterView *view, const KubeNodeClaim *claim) {
        return claim && claim->node_name ? cluster_view_node(view, claim->node_name) : NULL;
}

void launch_say(const TerminationContext *context, const KubeNodeClaim *claim, EventType type, const char *message_id,
                const char *reason, const char *message) {
        const KubeNode *n = launch_node_of(context->view, launch_replaced(context->view, claim));
        const char *name = claim->object.meta.name, *node = n ? n->object.meta.name : "";
        EventObject of_claim = event_object(&claim->object);

        if (message_id)
                log_event(context->env->log, LOG_LEVEL_WARNING, message_id,
                          LOG_FIELDS({ "NODECLAIM", name }, { "NODE", node }, { "REASON", reason }), "NodeClaim %s%s%s: %s", name,
                          *node ? ", in the place of node " : "", node, message);
        else if (type == EVENT_WARNING)
                log_warning(context->env->log, "NodeClaim %s%s%s: %s", name, *node ? ", in the place of node " : "", node, message);
        event_record(context->recorder, &of_claim, type, reason, "%s", message);
        if (n) {
                EventObject of_node = event_object(&n->object);

                event_record(context->recorder, &of_node, type, reason, "Its successor, NodeClaim %s: %s", name, message);
        }
}
