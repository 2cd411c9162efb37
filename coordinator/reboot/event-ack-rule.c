/* SPDX-License-Identifier: Apache-2.0 */
#include "event-ack-rule.h"

#include <strings.h>

#include "marks.h"
#include "string-util.h"
#include "strv.h"

void event_ack_node_read(const KubeNode *n, EventAckNode *ret) {
        const Interruption *i = kube_node_standing_interruption(n);

        *ret = (EventAckNode){
                .node = n->object.meta.name,
                .ack_ok = object_meta_annotation(&n->object.meta, ANNOTATION_ACK_OK),
        };
        (void) azure_vm_name(n->provider_id, ret->machine);
        if (!i || isempty(i->notice->id))
                return;
        ret->event = i->notice->id;
        ret->resources = i->notice->resources;
        ret->announced_usec = i->notice->announced_usec;
        ret->is_drained = i->phase == INTERRUPTION_DRAINED && !isempty(i->boot_id) && boot_id_equal(i->boot_id, n->boot_id) && n->unschedulable;
}

/* All that any agent has seen the event name. -ENOMEM. */
static int add_names(const EventAckNode *nodes, size_t n, const char *event, char ***ret) {
        _cleanup_strv_free_ char **names = NULL;

        for (size_t i = 0; i < n; i++) {
                if (!streq_ptr(nodes[i].event, event))
                        continue;
                STRV_FOREACH (name, nodes[i].resources)
                        if (!strv_contains(names, *name) && strv_extend(&names, *name) < 0)
                                return -ENOMEM;
        }
        *ret = TAKE_PTR(names);
        return 0;
}

static int refuse(char **ret_why, char *why) {
        *ret_why = why;
        return why ? 0 : -ENOMEM;
}

static int judge_machine(const EventAckNode *nodes, size_t n, const char *event, const char *name, char **ret_why) {
        bool known = false;

        for (size_t i = 0; i < n; i++) {
                if (nodes[i].machine[0] == 0 || strcasecmp(nodes[i].machine, name) != 0)
                        continue;
                known = true;
                if (!streq_ptr(nodes[i].event, event) || !nodes[i].is_drained)
                        return refuse(ret_why, strf("node %s (machine %s) is not drained for it", nodes[i].node, name));
        }
        if (known)
                return 1;
        if (streq(name, NOTICE_RESOURCES_TOO_MANY))
                return refuse(ret_why, strdup("it names more machines than are looked at"));
        return refuse(ret_why, strf("machine %s, which it names, is no node of this cluster", name));
}

int event_ack_may(const EventAckNode *nodes, size_t n, const char *event, char **ret_why) {
        _cleanup_strv_free_ char **names = NULL;
        int r;

        assert(event && ret_why);
        *ret_why = NULL;
        r = add_names(nodes, n, event, &names);
        if (r < 0)
                return r;
        if (!names)
                return refuse(ret_why, strdup("no agent says which machines it names"));
        STRV_FOREACH (name, names) {
                r = judge_machine(nodes, n, event, *name, ret_why);
                if (r <= 0)
                        return r;
        }
        return 1;
}
