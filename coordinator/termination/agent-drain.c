/* SPDX-License-Identifier: Apache-2.0 */
#include "agent-drain.h"

#include "hashmap.h"
#include "marks.h"
#include "string-util.h"

#define AGENT_SILENCE_USEC (15 * USEC_PER_SEC)

static bool says_that_it_drains(const KubeNode *n) {
        const Interruption *i = kube_node_interruption(n);

        return i && interruption_is_draining(i);
}

bool agent_drain_moves(AgentDrain *a, const KubeNode *n, uint64_t pods, usec_t now_usec,
                       usec_t *ret_until_usec) {
        const char *text = strempty(object_meta_annotation(&n->object.meta, ANNOTATION_INTERRUPTION));
        uint64_t h = pods + hash64(text, strlen(text));

        if (!says_that_it_drains(n))
                return false;
        if (h != a->fingerprint) {
                a->fingerprint = h;
                a->moved_usec = now_usec;
        }
        *ret_until_usec = usec_add(a->moved_usec, AGENT_SILENCE_USEC);
        return now_usec < *ret_until_usec;
}
