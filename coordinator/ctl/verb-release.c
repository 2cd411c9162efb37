/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "ctl-marks.h"
#include "ctl-release-all.h"
#include "ctl-say.h"
#include "ctl-verbs.h"
#include "marks.h"

/*
 * release NODE...: the annotation vesper.sh/unmanaged, by which the coordinator lets go of the node and no NodePool
 * adopts it again; then the Node is read until nothing of the coordinator's is left on it. release --all is
 * ctl-release-all.c's.
 */

#define LOOK_USEC (500 * USEC_PER_MSEC)
#define PATIENCE_USEC (30 * USEC_PER_SEC)

typedef struct ReleaseVerb {
        Ctl *ctl;
        ReleaseAll *all;
        size_t at; /* of the arguments */
        bool failed;
        bool annotated;
        usec_t until_usec; /* loop_now() */
        Timer *timer;
        KubeCall *call;
} ReleaseVerb;

static void release_free(void *state) {
        ReleaseVerb *v = state;

        release_all_free(v->all);
        kube_call_free(v->call);
        timer_free(v->timer);
        free(v);
}

static KubeTarget node_target(const ReleaseVerb *v) {
        return (KubeTarget){ .kind = &kube_node_kind, .name = v->ctl->args[v->at] };
}

static void read_node(ReleaseVerb *v);

static void go_on_with_next(ReleaseVerb *v) {
        v->annotated = false;
        v->at++;
        if (v->at < v->ctl->n_args)
                read_node(v);
        else
                ctl_finish(v->ctl, v->failed ? EXIT_FAILURE : EXIT_SUCCESS);
}

static void wait_for_coordinator(ReleaseVerb *v) {
        v->annotated = true;
        v->until_usec = usec_add(loop_now(v->ctl->env->loop), PATIENCE_USEC);
}

static void on_annotated(const KubeReply *reply, void *userdata) {
        ReleaseVerb *v = userdata;
        KubeTarget target = node_target(v);

        v->call = kube_call_free(v->call);
        if (ctl_complain_of(reply, "patch", &target)) {
                v->failed = true;
                go_on_with_next(v);
                return;
        }
        wait_for_coordinator(v);
        read_node(v);
}

static void annotate(ReleaseVerb *v) {
        _cleanup_free_ char *body = annotations_patch(&(const KeyValue){ ANNOTATION_UNMANAGED, "true" }, 1);
        KubeTarget target = node_target(v);
        int r;

        r = !body ? -ENOMEM
                  : kube_patch(v->ctl->client, &target, KUBE_PATCH_MERGE, body, NULL, on_annotated, v, &v->call);
        if (r < 0)
                ctl_give_up(v->ctl, r);
}

static bool is_held(const KubeNode *n) {
        return object_meta_has_finalizer(&n->object.meta, FINALIZER_TERMINATION) ||
               object_meta_annotation(&n->object.meta, ANNOTATION_CORDONED_BY_COORDINATOR) ||
               object_meta_annotation(&n->object.meta, ANNOTATION_OUT_OF_SERVICE) ||
               object_meta_annotation(&n->object.meta, ANNOTATION_HEARD) || object_meta_annotation(&n->object.meta, ANNOTATION_ANNOUNCED) ||
               kube_node_has_taint(n, TAINT_DISRUPTED, NULL);
}

static void judge_node(ReleaseVerb *v, const KubeNode *n) {
        const char *name = n->object.meta.name;

        if (!v->annotated && kube_node_is_unmanaged(n))
                wait_for_coordinator(v);
        if (n->object.meta.deletion_usec > 0) {
                ctl_complain("node %s is being deleted, which cannot be taken back: its machine is ended when nothing holds that any more. See 'vesperctl explain %s'",
                             name, name);
                v->failed = true;
        } else if (!v->annotated) {
                annotate(v);
                return;
        } else if (!is_held(n))
                printf("Node %s is released: its machine goes on, and no NodePool adopts it until "
                       "'kubectl annotate node %s " ANNOTATION_UNMANAGED "-'.\n",
                       name, name);
        else if (loop_now(v->ctl->env->loop) < v->until_usec) {
                timer_arm_in(v->timer, LOOK_USEC);
                return;
        } else {
                ctl_complain("node %s is annotated, and the coordinator has not let go of it yet: does one lead? See 'vesperctl status'",
                             name);
                v->failed = true;
        }
        go_on_with_next(v);
}

static void on_node(const KubeReply *reply, void *userdata) {
        ReleaseVerb *v = userdata;
        KubeTarget target = node_target(v);
        KubeObject *o = NULL;
        int r;

        v->call = kube_call_free(v->call);
        if (reply->error && reply->error->http == 404 && v->annotated) {
                printf("Node %s is gone.\n", target.name);
                go_on_with_next(v);
                return;
        }
        if (ctl_complain_of(reply, "get", &target)) {
                v->failed = true;
                go_on_with_next(v);
                return;
        }
        r = kube_object_decode(&kube_node_kind, reply->object, kube_client_pool(v->ctl->client), &o);
        if (r < 0) {
                ctl_give_up(v->ctl, r);
                return;
        }
        judge_node(v, (const KubeNode *) o);
        kube_object_unref(o);
}

static void read_node(ReleaseVerb *v) {
        KubeTarget target = node_target(v);
        int r = kube_get(v->ctl->client, &target, NULL, on_node, v, &v->call);

        if (r < 0)
                ctl_give_up(v->ctl, r);
}

static void on_timer(Timer *t, void *userdata) {
        (void) t;
        read_node(userdata);
}

static int release_start(Ctl *ctl, void **ret) {
        ReleaseVerb *v;
        int r;

        if (ctl->options->all == (ctl->n_args > 0))
                return ctl_complain("release needs names of nodes, or --all. See 'vesperctl release --help'");
        if (ctl->options->without_coordinator && !ctl->options->all)
                return ctl_complain("--without-coordinator goes with --all");
        if (ctl->options->timeout && !ctl->options->all)
                return ctl_complain("--timeout goes with --all");
        if (ctl->options->all && !ctl->options->yes)
                return ctl_complain("release --all deletes every NodePool, with deletionPolicy Release: all nodes and machines stay, and vesper no longer "
                                    "removes any. If that is what you want, say --yes");
        v = new0(ReleaseVerb, 1);
        if (!v)
                return -ENOMEM;
        *ret = v;
        v->ctl = ctl;
        if (ctl->options->all)
                return release_all_new(ctl, &v->all);
        r = timer_new(ctl->env->loop, "release", on_timer, v, &v->timer);
        if (r >= 0)
                read_node(v);
        return r;
}

static const char *const release_options[] = { "all", "timeout", "without-coordinator", "yes", NULL };

const CtlVerb verb_release = {
        .name = "release",
        .statuses = "130 interrupted",
        .arguments = "NODE...",
        .summary = "Have the coordinator let go of nodes: their machines go on",
        .text = "Annotates the nodes with vesper.sh/unmanaged=true and waits until the coordinator has taken off what it had put there. "
                "A node that is being deleted is not released: its removal goes on. "
                "--all does it for good, as before an uninstallation: it pauses all removals, deletes every NodePool with deletionPolicy Release, and waits until no finalizer, "
                "NodeClaim, label or mark of the coordinator is left; removals that have begun are ended first. "
                "A NodeClaim whose machine has no Node yet is deleted, not released: its machine is ended, and the claim is named while it stays. If --timeout ends or the command is killed, nothing is undone: the pause stays, "
                "'vesperctl status' shows it, a later release --all takes it over, and 'vesperctl resume' lifts it. Before the Helm chart is uninstalled its hook runs that. With --without-coordinator, once no coordinator has led for a while, "
                "it takes them off itself; then it frees even nodes that are being deleted, "
                "names their machines, which go on, and leaves it to you to end them. "
                "In a cluster without vesper's CustomResourceDefinitions there are no NodePools and NodeClaims to delete: it takes marks and finalizers off the nodes itself, "
                "and of nodes that are being deleted only with --without-coordinator. "
                "Needs: get and patch of nodes; --all besides: list, patch and delete of nodepools and nodeclaims, list of nodes, get of the Lease, get and patch of the coordinator's namespace.",
        .example = "vesperctl release worker-7",
        .max_args = UINT_MAX,
        .outputs = CTL_OUTPUTS_TEXT,
        .options = release_options,
        .start = release_start,
        .free = release_free,
};
