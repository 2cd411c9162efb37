/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "ctl-marks.h"
#include "ctl-say.h"
#include "ctl-verbs.h"
#include "marks.h"
#include "pod-class.h"

/*
 * force NODE: the annotation vesper.sh/force-deadline on the NodeClaim of a node that is being removed. First it is
 * said what that ends: the pods that are still there, and what they had been promised.
 */

typedef struct ForceVerb {
        Ctl *ctl;
        usec_t delay_usec; /* from now to the deadline */
        usec_t stands_usec; /* wall clock: what the claim has already; USEC_INFINITY: none */
        char *claim;       /* its name */
        KubeTarget target;
        KubeCall *call;
} ForceVerb;

static void force_free(void *state) {
        ForceVerb *v = state;

        kube_call_free(v->call);
        free(v->claim);
        free(v);
}

static const char *node_name(const ForceVerb *v) {
        return v->ctl->args[0];
}

static void on_patched(const KubeReply *reply, void *userdata) {
        ForceVerb *v = userdata;

        if (ctl_complain_of(reply, "patch", &v->target)) {
                ctl_give_up(v->ctl, 0);
                return;
        }
        printf("Nothing on node %s is waited for after that. The Node goes when the cloud says that its machine is gone: 'vesperctl explain %s' says how it stands.\n",
               node_name(v), node_name(v));
        ctl_finish(v->ctl, EXIT_SUCCESS);
}

/* An earlier one that stands there is not put off: the coordinator keeps to the earliest that it has seen, and the next
 * leader to what it reads. */
static void set_deadline(ForceVerb *v, usec_t at_usec) {
        char when[RFC3339_MAX];
        _cleanup_free_ char *body = NULL;
        int r;

        if (v->stands_usec <= at_usec) {
                printf("It stands already, and ends sooner: nothing was changed.\n");
                ctl_finish(v->ctl, EXIT_SUCCESS);
                return;
        }
        rfc3339_format(at_usec, when);
        body = annotations_patch(&(const KeyValue){ ANNOTATION_FORCE_DEADLINE, when }, 1);

        v->target = (KubeTarget){ .kind = &kube_node_claim_kind, .name = v->claim };
        r = !body ? -ENOMEM
                  : kube_patch(v->ctl->client, &v->target, KUBE_PATCH_MERGE, body, NULL, on_patched, v, &v->call);
        if (r < 0)
                ctl_give_up(v->ctl, r);
}

/* One line for each pod that it ends. Returns how many. */
static size_t print_pods(const ForceVerb *v, const ObjectList *pods) {
        usec_t now_usec = loop_server_wall(v->ctl->env->loop);
        size_t n = 0;

        for (size_t i = 0; i < pods->n_items; i++) {
                const KubePod *p = (const KubePod *) pods->items[i];
                const ObjectMeta *m = &p->object.meta;
                const char *key = NULL;
                PodClass class = pod_classify(p, now_usec, &key, NULL);

                if (class == POD_CLASS_STATIC || class == POD_CLASS_DAEMON || class == POD_CLASS_TERMINAL)
                        continue;
                if (n++ == 0)
                        printf("These pods %s deleted without asking their PodDisruptionBudgets:\n",
                               v->ctl->options->yes ? "are" : "would be");
                printf("  %s/%s%s%s", m->ns, m->name, key ? ", opted out of drains by " : "", strempty(key));
                if (class == POD_CLASS_TERMINATING)
                        puts(", which is terminating: it is given no more time than that");
                else if (p->grace_sec > (int64_t) (v->delay_usec / USEC_PER_SEC))
                        printf(", which asks for %lld s to stop, and is not given them\n", (long long) p->grace_sec);
                else
                        putchar('\n');
        }
        return n;
}

static void on_pods(const KubeReply *reply, void *userdata) {
        const KubeTarget target = { .kind = &kube_pod_kind };
        usec_t at_usec = 0;
        ForceVerb *v = userdata;
        char when[RFC3339_MAX];
        ObjectList pods = {};
        int r;

        v->call = kube_call_free(v->call);
        if (ctl_complain_of(reply, "list", &target)) {
                ctl_give_up(v->ctl, 0);
                return;
        }
        r = ctl_take_list(v->ctl->client, reply, target.kind, &pods);
        if (r >= 0) {
                at_usec = usec_add(loop_server_wall(v->ctl->env->loop), v->delay_usec);
                rfc3339_format(at_usec, when);
                printf("%s by %s nothing on node %s is waited for any more.\n", v->ctl->options->yes ? "From now on" : "With --yes,", when,
                       node_name(v));
                if (print_pods(v, &pods) == 0)
                        puts("No pod is left on it that this would end.");
                puts("That goes for volumes, pauses and budgets of nodes, too. What the cloud refuses it does not change.");
        }
        object_list_done(&pods);
        if (r < 0)
                ctl_give_up(v->ctl, r);
        else if (v->ctl->options->yes)
                set_deadline(v, at_usec);
        else {
                ctl_complain("nothing was changed. To do it: vesperctl force %s --deadline=%s --yes", node_name(v),
                             v->ctl->options->deadline ? v->ctl->options->deadline : "0s");
                ctl_give_up(v->ctl, 0);
        }
}

static void ask_pods(ForceVerb *v) {
        const KubeTarget target = { .kind = &kube_pod_kind };
        _cleanup_free_ char *selector = strf("spec.nodeName=%s", node_name(v));
        const KubeListOptions list = { .field_selector = selector };
        int r = !selector ? -ENOMEM : kube_list(v->ctl->client, &target, &list, NULL, on_pods, v, &v->call);

        if (r < 0)
                ctl_give_up(v->ctl, r);
}

/* The claim that is being deleted comes first: another may name the same Node from an earlier life. */
static const KubeNodeClaim *find_claim(const ObjectList *claims, const char *node) {
        const KubeNodeClaim *found = NULL;

        for (size_t i = 0; i < claims->n_items; i++) {
                const KubeNodeClaim *c = (const KubeNodeClaim *) claims->items[i];

                if (streq_ptr(c->node_name, node) && (!found || c->object.meta.deletion_usec > 0))
                        found = c;
        }
        return found;
}

static void on_node(const KubeReply *reply, void *userdata) {
        ForceVerb *v = userdata;

        v->call = kube_call_free(v->call);
        if (!reply->error)
                ctl_complain("no NodeClaim names node %s: vesper does not manage it, and there is nothing to force. 'vesperctl explain %s' says why",
                             node_name(v), node_name(v));
        else if (reply->error->http == 404)
                ctl_complain("there is no node '%s', and no NodeClaim of it", node_name(v));
        else {
                ctl_complain("no NodeClaim names node %s", node_name(v));
                (void) ctl_complain_of(reply, "get", &v->target);
        }
        ctl_give_up(v->ctl, 0);
}

/* Is it one that is not managed, or none at all? */
static void ask_node(ForceVerb *v) {
        int r;

        v->target = (KubeTarget){ .kind = &kube_node_kind, .name = node_name(v) };
        r = kube_get(v->ctl->client, &v->target, NULL, on_node, v, &v->call);
        if (r < 0)
                ctl_give_up(v->ctl, r);
}

static void on_claims(const KubeReply *reply, void *userdata) {
        const KubeTarget target = { .kind = &kube_node_claim_kind };
        const KubeNodeClaim *claim;
        ForceVerb *v = userdata;
        ObjectList claims = {};
        bool is_named;
        int r;

        v->call = kube_call_free(v->call);
        if (ctl_complain_of(reply, "list", &target)) {
                ctl_give_up(v->ctl, 0);
                return;
        }
        r = ctl_take_list(v->ctl->client, reply, target.kind, &claims);
        claim = r < 0 ? NULL : find_claim(&claims, node_name(v));
        is_named = claim;
        if (claim && claim->object.meta.deletion_usec == 0)
                ctl_complain("node %s is not being removed: 'kubectl delete node %s' first", node_name(v),
                             node_name(v));
        else if (claim) {
                v->stands_usec = claim->force_deadline_usec;
                v->claim = strdup(claim->object.meta.name);
                r = v->claim ? 0 : -ENOMEM;
        }
        object_list_done(&claims);
        if (v->claim)
                ask_pods(v);
        else if (r >= 0 && !is_named)
                ask_node(v);
        else
                ctl_give_up(v->ctl, r);
}

static int force_start(Ctl *ctl, void **ret) {
        const KubeTarget target = { .kind = &kube_node_claim_kind };
        const char *deadline = ctl->options->deadline;
        ForceVerb *v;

        v = new0(ForceVerb, 1);
        if (!v)
                return -ENOMEM;
        *ret = v;
        v->ctl = ctl;
        if (deadline && duration_parse_go(deadline, &v->delay_usec) < 0)
                return ctl_complain("--deadline=%s: not a duration such as 10m or 90s", deadline);
        return kube_list(ctl->client, &target, NULL, NULL, on_claims, v, &v->call);
}

static const char *const force_options[] = { "deadline", "yes", NULL };

const CtlVerb verb_force = {
        .name = "force",
        .arguments = "NODE",
        .summary = "End a removal that is stuck, now or by --deadline, whatever is left on the node",
        .text = "For a node that is being deleted, and waits for a PodDisruptionBudget, a protected pod, a volume or a budget of nodes. "
                "Says which pods that ends; with --yes it annotates the NodeClaim with vesper.sh/force-deadline. What that has begun is not undone by taking it off. "
                "Needs: list of nodeclaims and pods, get of nodes, patch of nodeclaims.",
        .example = "vesperctl force worker-7 --deadline=5m --yes",
        .min_args = 1,
        .max_args = 1,
        .outputs = CTL_OUTPUTS_TEXT,
        .options = force_options,
        .start = force_start,
        .free = force_free,
};
