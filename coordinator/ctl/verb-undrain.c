/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "ctl-cordon.h"
#include "ctl-marks.h"
#include "ctl-say.h"
#include "ctl-verbs.h"

/* undrain NODE...: one node after the other is read, decided about (ctl-cordon.h), and patched on the
 * condition that it is still as it was read. */

#define TRIES 10u

typedef struct UndrainVerb {
        Ctl *ctl;
        size_t at; /* of the arguments */
        unsigned n_tries;
        UncordonPlan plan;
        bool failed;
        KubeCall *call;
} UndrainVerb;

static void undrain_read(UndrainVerb *v);

static void undrain_free(void *state) {
        UndrainVerb *v = state;

        kube_call_free(v->call);
        free(v);
}

static KubeTarget node_target(const UndrainVerb *v) {
        return (KubeTarget){ .kind = &kube_node_kind, .name = v->ctl->args[v->at] };
}

static void undrain_next(UndrainVerb *v, bool failed) {
        v->failed |= failed;
        v->n_tries = 0;
        v->at++;
        if (v->at < v->ctl->n_args)
                undrain_read(v);
        else
                ctl_finish(v->ctl, v->failed ? EXIT_FAILURE : EXIT_SUCCESS);
}

static void undrain_fail_errno(UndrainVerb *v, int r) {
        ctl_complain("node '%s': %s", v->ctl->args[v->at], strerrordesc_np(-r) ?: "unknown error");
        undrain_next(v, true);
}

static void say_done(const UndrainVerb *v) {
        const char *name = v->ctl->args[v->at];

        if (v->plan == UNCORDON_LEAVES)
                printf("Node %s stays cordoned by another part of vesper, which opens it by itself; vesperctl's mark is off.\n", name);
        else if (v->plan == UNCORDON_UNMARKS)
                printf("Node %s was schedulable already; the mark of vesperctl drain is off.\n", name);
        else
                printf("Node %s is schedulable again.\n", name);
}

static void on_patched(const KubeReply *reply, void *userdata) {
        UndrainVerb *v = userdata;
        KubeTarget target = node_target(v);
        bool is_old = reply->error && reply->error->http == 409 && ++v->n_tries < TRIES, failed;

        if (is_old) {
                v->call = kube_call_free(v->call);
                undrain_read(v);
                return;
        }
        failed = ctl_complain_of(reply, "patch", &target);
        v->call = kube_call_free(v->call);
        if (!failed)
                say_done(v);
        undrain_next(v, failed);
}

static void complain_of_foreign(const KubeNode *n) {
        _cleanup_strbuf_ StrBuf b = {};

        ctl_add_whose_cordon(&b, n);
        ctl_make_plain(&b, 0);
        ctl_complain("%s: it stays as it is. 'vesperctl undrain %s --yes' opens it all the same",
                     strbuf_str(&b), n->object.meta.name);
}

static void undrain_decide(UndrainVerb *v, const KubeNode *n) {
        KubeTarget target = node_target(v);
        _cleanup_free_ char *body = NULL;
        int r;

        v->plan = ctl_uncordon_plan(n, v->ctl->options->yes);
        switch (v->plan) {
        case UNCORDON_IS_OPEN:
                printf("Node %s is schedulable.\n", target.name);
                undrain_next(v, false);
                return;
        case UNCORDON_IS_DELETED:
                ctl_complain("node '%s' is being deleted: it stays as it is", target.name);
                undrain_next(v, true);
                return;
        case UNCORDON_IS_FOREIGN:
                complain_of_foreign(n);
                undrain_next(v, true);
                return;
        case UNCORDON_OPENS:
        case UNCORDON_LEAVES:
        case UNCORDON_UNMARKS:
                break;
        case _UNCORDON_PLAN_MAX:
                assert(false && "no plan for a cordon");
        }
        body = ctl_uncordon_patch(n, v->plan);
        r = !body ? -ENOMEM
                  : kube_patch(v->ctl->client, &target, KUBE_PATCH_MERGE, body, NULL, on_patched, v,
                               &v->call);
        if (r < 0)
                undrain_fail_errno(v, r);
}

static void on_node(const KubeReply *reply, void *userdata) {
        UndrainVerb *v = userdata;
        KubeTarget target = node_target(v);
        KubeObject *o = NULL;
        bool failed;
        int r = 0;

        failed = ctl_complain_of(reply, "get", &target);
        if (!failed)
                r = kube_object_decode(&kube_node_kind, reply->object, kube_client_pool(v->ctl->client), &o);
        v->call = kube_call_free(v->call);
        if (failed)
                undrain_next(v, true);
        else if (r < 0)
                undrain_fail_errno(v, r);
        else {
                undrain_decide(v, (const KubeNode *) o);
                kube_object_unref(o);
        }
}

static void undrain_read(UndrainVerb *v) {
        KubeTarget target = node_target(v);
        int r = kube_get(v->ctl->client, &target, NULL, on_node, v, &v->call);

        if (r < 0)
                undrain_fail_errno(v, r);
}

static int undrain_start(Ctl *ctl, void **ret) {
        UndrainVerb *v = new0(UndrainVerb, 1);

        if (!v)
                return -ENOMEM;
        v->ctl = ctl;
        *ret = v;
        undrain_read(v);
        return 0;
}

static const char *const undrain_options[] = { "yes", NULL };

const CtlVerb verb_undrain = {
        .name = "undrain",
        .arguments = "NODE...",
        .summary = "Open the nodes that 'vesperctl drain' has cordoned",
        .text = "Takes back the cordon of 'vesperctl drain', and stops a drain that is still under way. A node that vesper's agent or coordinator has cordoned as well stays cordoned until they open it. "
                "Takes back, too, the coordinator's cordon of a node that is drained for the interruption queue and kept: its drain stops. "
                "A cordon of somebody else's is named and left alone, unless --yes says that it is to go: "
                "an agent or coordinator then takes it for overruled. A node that is being deleted is left as it is. "
                "Needs: get and patch of nodes.",
        .example = "vesperctl undrain worker-7",
        .min_args = 1,
        .max_args = UINT_MAX,
        .outputs = CTL_OUTPUTS_TEXT,
        .options = undrain_options,
        .start = undrain_start,
        .free = undrain_free,
};
