/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl-status.h"
#include "explain-scene.h"
#include "heard-conditions.h"
#include "marks.h"

static void say_in_service(Explain *x, ExplainCause *c) {
        explain_cause_say(x->causes, c, "Node %s is not being removed.", x->f->node_name);
}

static void explain_unmanaged(Explain *x) {
        ExplainCause *c = explain_add_for_node(x, false, "Unmanaged", 0);

        say_in_service(x, c);
        explain_cause_say(x->causes, c,
                          "Its annotation " ANNOTATION_UNMANAGED " keeps it from every NodePool: whoever deletes it ends no machine%s.",
                          explain_is_ours(x) ? ", once the coordinator has taken its finalizer off" : "");
        explain_cause_set_command(x->causes, c, "kubectl annotate node %s " ANNOTATION_UNMANAGED "-",
                                  x->f->node_name);
        explain_cause_advise(x->causes, c, "A NodePool that selects it adopts it then.");
}

/* -- notices that a person overruled ---------------------------------------------------------------------- */

/* who: subject and verb of the sentence. */
static void add_overruled(Explain *x, const char *who, const Notice *notice) {
        _cleanup_free_ char *announced = heard_announced_text(notice);
        ExplainCause *c = explain_add_for_node(x, false, "InterruptionOverruled", 0);

        if (!announced) {
                x->causes->failed = true;
                return;
        }
        explain_cause_say(x->causes, c,
                          "%s %s. Somebody opened the node, so vesper does not act upon that: the machine may go under its pods.",
                          who, announced);
        explain_cause_set_command(x->causes, c, "vesperctl drain %s", x->f->node_name);
        explain_cause_advise(x->causes, c,
                             "It cordons the node and evicts its pods, as their PodDisruptionBudgets allow; the machine is left to its cloud.");
}

static bool is_to_come(const Explain *x, const Notice *notice) {
        return notice_announced(notice) > x->f->now_usec;
}

/* Returns the notice of the node's agent that a person overruled, while its time is to come. NULL: there is none. */
static const Notice *overruled_by_agent(const Explain *x) {
        const Interruption *i = kube_node_interruption(x->node);

        return i && interruption_is_overruled(i) && is_to_come(x, i->notice) ? i->notice : NULL;
}

void explain_overruled(Explain *x) {
        for (size_t i = 0; i < x->announced.n_items; i++)
                if (x->announced.items[i].state == ANNOUNCED_OVERRULED && is_to_come(x, x->announced.items[i].notice)) {
                        add_overruled(x, "The interruption queue announced", x->announced.items[i].notice);
                        return;
                }
        if (overruled_by_agent(x))
                add_overruled(x, "Its agent reported", overruled_by_agent(x));
}

/* -- who manages the node --------------------------------------------------------------------------------- */

/* Returns true if vesper does something about the node although no NodePool manages it. */
static bool is_attended(const Explain *x) {
        return x->heard || x->interruption || announced_list_open(&x->announced) || overruled_by_agent(x) || explain_plan(x) ||
               explain_asks_for_slot(x);
}

static void explain_not_selected(Explain *x) {
        ExplainCause *c = explain_add_for_node(x, false, "NotSelected", 0);
        size_t n_invalid = 0;

        say_in_service(x, c);
        explain_cause_say(x->causes, c,
                          !x->f->knows_pools ? "Which NodePool manages it is not known."
                          : is_attended(x) ? "No NodePool selects it."
                                           : "No NodePool selects it, so vesper does nothing about it.");
        for (size_t i = 0; i < x->f->pools.n_items; i++) {
                const KubeNodePool *p = (const KubeNodePool *) x->f->pools.items[i];

                if ((p->object.invalid || selector_is_empty(p->selector)) && n_invalid++ == 0)
                        explain_cause_say(x->causes, c, "NodePool %s selects nothing: %s.",
                                          p->object.meta.name, p->object.invalid ?: "its selector is empty");
        }
        explain_cause_count(c, "nodePools", (int64_t) x->f->pools.n_items);
        if (x->f->knows_pools)
                explain_cause_advise(x->causes, c,
                                     "'kubectl get nodepools.vesper.sh -o wide' shows what they select, "
                                     "'kubectl get node %s --show-labels' what it has.",
                                     x->f->node_name);
}

static void explain_conflict(Explain *x) {
        const char *other = x->other->object.meta.name;
        ExplainCause *c = explain_add(x, false, POOL_CONFLICT, &kube_node_pool_kind, other, 0);

        say_in_service(x, c);
        explain_cause_say(x->causes, c, "NodePools %s and %s both select it, and so neither adopts it.",
                          x->pool->object.meta.name, other);
        explain_cause_set_command(x->causes, c, "kubectl edit nodepools.vesper.sh %s", other);
        explain_cause_advise(x->causes, c,
                             "Change its selector so that it leaves this node to the other; nodes that it no longer selects are let go.");
}

/* Selected by one pool, and no claim or finalizer is there. */
static void explain_not_adopted(Explain *x) {
        const char *pool = x->pool->object.meta.name;
        const Condition *k = kube_node_pool_condition(x->pool, POOL_NOT_ADOPTED);
        bool told = k && k->status == CONDITION_TRUE;
        ExplainCause *c = explain_add(x, false, told ? strempty(k->reason) : "NotAdoptedYet", &kube_node_pool_kind, pool,
                              told ? k->last_transition_usec : 0);

        say_in_service(x, c);
        explain_cause_say(x->causes, c, "NodePool %s selects it, and it is not adopted%s%s%s.", pool, told ? ". What the pool says: " : " yet",
                          told ? strempty(k->message) : "",
                          !told && !x->node->provider_id ? ": it has no spec.providerID, which a provider other than exec needs" : "");
        explain_cause_advise(x->causes, c,
                             told ? "Mend what the pool says; it is adopted as soon as that is no longer so." :
                                     "Adoption is a matter of seconds while a coordinator leads.");
}

static void explain_managed(Explain *x) {
        ExplainCause *c = explain_add(x, false, "InService", &kube_node_pool_kind,
                                      strempty(x->claim->node_pool), 0);

        say_in_service(x, c);
        explain_cause_say(x->causes, c,
                          "NodePool %s manages it by NodeClaim %s: whoever deletes the Node has it drained and its machine ended.",
                          strempty(x->claim->node_pool), x->claim->object.meta.name);
}

void explain_service(Explain *x) {
        if (kube_node_is_unmanaged(x->node))
                explain_unmanaged(x);
        else if (x->claim && explain_is_ours(x))
                explain_managed(x);
        else if (x->other)
                explain_conflict(x);
        else if (x->pool)
                explain_not_adopted(x);
        else
                explain_not_selected(x);
}

/* -- reboots ---------------------------------------------------------------------------------------------- */

bool explain_asks_for_slot(const Explain *x) {
        return x->reboot.request_state == REBOOT_REQUEST_WAITING || x->reboot.request_state == REBOOT_REQUEST_HOLDS_SLOT ||
               x->reboot.request_state == REBOOT_REQUEST_EXPIRED;
}

/* Returns true while a reboot that the cloud announced for later is taken early, in a slot. */
bool explain_reboots_early(const Explain *x) {
        return x->reboot.request_state == REBOOT_REQUEST_HOLDS_SLOT && x->reboot.event;
}

static void add_waiting_for_slot(Explain *x) {
        ExplainCause *c = explain_add_for_node(x, true, REBOOT_SLOT_WAITING, 0);
        char until[RFC3339_MAX];

        rfc3339_format(x->reboot.until_usec, until);
        explain_cause_say(x->causes, c, "Its agent asks for a slot to reboot, and waits for it until %s.", until);
        explain_cause_advise(x->causes, c,
                             "A slot is free when a node that reboots is Ready again; "
                             "[Budget] MaxConcurrentReboots= in coordinator.conf says how many there are, and "
                             "NodeDisruptionBudgets must have room, too. Until then it is not rebooted, and stays in service.");
}

static void add_slot(Explain *x) {
        ExplainCause *c = explain_add_for_node(x, false, REBOOT_SLOT_GRANTED, 0);
        char until[RFC3339_MAX];

        rfc3339_format(x->reboot.granted_until_usec, until);
        explain_cause_say(x->causes, c, "The coordinator granted the node a slot to reboot, until %s at most.", until);
        if (x->reboot.event)
                explain_cause_say(x->causes, c, "The announced reboot %s is taken early.", x->reboot.event);
        if (x->reboot.by_cloud)
                explain_cause_say(x->causes, c, x->reboot.is_sent ? "The coordinator has the cloud reboot the machine now."
                                                                  : "The coordinator has the cloud reboot the machine once the node is drained.");
        explain_cause_advise(x->causes, c,
                             "The slot is free again when the node is Ready after its reboot, when its agent "
                             "withdraws the request, or when the slot's time is over. "
                             "If the node is not cordoned, its agent may wait for a pod that opted out of drains: "
                             "see 'journalctl -u vesper-agent' on it.");
}

static void add_expired_slot(Explain *x) {
        ExplainCause *c = explain_add_for_node(x, false, REBOOT_SLOT_EXPIRED, x->reboot.granted_until_usec);

        explain_cause_say(x->causes, c, "The node had a slot to reboot, and is not Ready after a reboot: another node may reboot now.");
        explain_cause_set_command(x->causes, c, "kubectl describe node %s", x->f->node_name);
        explain_cause_advise(x->causes, c, "It shows whether the node is Ready and what its agent reports. "
                             "If the machine does not come back, see its console.");
}

void explain_reboot(Explain *x) {
        if (x->reboot.request_state == REBOOT_REQUEST_WAITING)
                add_waiting_for_slot(x);
        else if (x->reboot.request_state == REBOOT_REQUEST_HOLDS_SLOT)
                add_slot(x);
        else if (x->reboot.request_state == REBOOT_REQUEST_EXPIRED)
                add_expired_slot(x);
}

/* -- what is planned, and machines that are off ----------------------------------------------------------- */

const Condition *explain_plan(const Explain *x) {
        const Condition *k = kube_node_condition(x->node, CONDITION_MAINTENANCE_PLANNED);

        return k && k->status == CONDITION_TRUE && !condition_is_of_coordinator(k) && !isempty(k->message) && !x->interruption &&
                               !explain_asks_for_slot(x)
                       ? k
                       : NULL;
}

void explain_planned(Explain *x) {
        const Condition *k = explain_plan(x);
        ExplainCause *c;

        if (!k)
                return;
        c = explain_add_for_node(x, false, "Planned", k->last_transition_usec);
        explain_cause_say(x->causes, c, "Its condition " CONDITION_MAINTENANCE_PLANNED " reports (%s):", strempty(k->reason));
        explain_say_sentence(x, c, k->message);
        explain_cause_set_command(x->causes, c, "vesperctl drain %s", x->f->node_name);
        explain_cause_advise(x->causes, c, "That drains the node now.");
}

static void add_out_of_service(Explain *x, const char *mark) {
        usec_t since_usec = 0;
        ExplainCause *c;

        (void) rfc3339_parse(mark, &since_usec);
        c = explain_add_for_node(x, false, NODE_OUT_OF_SERVICE, since_usec);
        explain_cause_say(x->causes, c,
                          "Node %s was not Ready, and its cloud said that the machine was off or gone. "
                          "The coordinator put the taint " TAINT_OUT_OF_SERVICE
                          " on the node, so that Kubernetes removes its pods and detaches its volumes.",
                          x->f->node_name);
        explain_cause_advise(x->causes, c,
                             "Start the machine: the coordinator takes the taint off once the node is Ready. "
                             "If the machine does not come back, delete the Node.");
}

static void add_not_ready(Explain *x, const Condition *ready) {
        ExplainCause *c = explain_add_for_node(x, false, "NotReady", ready->last_transition_usec);

        explain_cause_say(x->causes, c,
                          ready->status == CONDITION_FALSE ? "Node %s is not Ready: its kubelet reports a problem."
                                                           : "Node %s is not Ready: its kubelet does not report.",
                          x->f->node_name);
        explain_cause_set_command(x->causes, c, "kubectl describe node %s", x->f->node_name);
}

void explain_kubelet(Explain *x) {
        const char *mark = object_meta_annotation(&x->node->object.meta, ANNOTATION_OUT_OF_SERVICE);
        const Condition *ready = kube_node_condition(x->node, "Ready");

        if (mark)
                add_out_of_service(x, mark);
        else if (ready && ready->status != CONDITION_TRUE)
                add_not_ready(x, ready);
}
