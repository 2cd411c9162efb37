/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "ctl-marks.h"
#include "ctl-say.h"
#include "ctl-verbs.h"
#include "marks.h"
#include "pause-mark.h"

/*
 * pause and resume: the annotation vesper.sh/paused on NodePools, or on the namespace of the coordinator's Lease; then
 * the removals that are under way, which a pause does not stop.
 */

#define COMMAND "pause" /* in the record of a pause */

typedef struct PauseVerb {
        Ctl *ctl;
        bool pauses;   /* false: resumes */
        size_t next;   /* of the arguments */
        bool failed;
        KubeTarget target; /* object that is read, then patched */
        KubeCall *call;
} PauseVerb;

static void pause_free(void *state) {
        PauseVerb *v = state;

        kube_call_free(v->call);
        free(v);
}

static bool is_concerned(const PauseVerb *v, const KubeNodeClaim *c) {
        if (v->ctl->n_args == 0)
                return true;
        for (size_t i = 0; i < v->ctl->n_args; i++)
                if (streq_ptr(c->node_pool, v->ctl->args[i]))
                        return true;
        return false;
}

static void print_running(const PauseVerb *v, const ObjectList *claims) {
        size_t n = 0;

        for (size_t i = 0; i < claims->n_items; i++) {
                const KubeNodeClaim *c = (const KubeNodeClaim *) claims->items[i];
                _cleanup_strbuf_ StrBuf line = {};

                if (!ctl_removal_is_running(c) || !is_concerned(v, c))
                        continue;
                if (n++ == 0)
                        puts("Under way, and not stopped by it:");
                strbuf_addf(&line, "  node %s, %s", strempty(c->node_name), c->phase);
                if (c->pods_left >= 0)
                        strbuf_addf(&line, ", %lld pods left", (long long) c->pods_left);
                ctl_make_plain(&line, 0);
                puts(strbuf_str(&line));
        }
        if (n == 0)
                puts("No removal is under way.");
}

static void on_claims(const KubeReply *reply, void *userdata) {
        const KubeTarget target = { .kind = &kube_node_claim_kind };
        PauseVerb *v = userdata;
        ObjectList claims = {};

        if (ctl_complain_of(reply, "list", &target))
                ctl_complain("which removals are under way is not known");
        else if (ctl_take_list(v->ctl->client, reply, target.kind, &claims) < 0)
                ctl_complain("the list of NodeClaims cannot be understood: which removals are under way is not known");
        else
                print_running(v, &claims);
        object_list_done(&claims);
        ctl_finish(v->ctl, v->failed ? EXIT_FAILURE : EXIT_SUCCESS);
}

static int read_next(PauseVerb *v);

static void go_on(PauseVerb *v) {
        if (read_next(v) < 0)
                ctl_finish(v->ctl, EXIT_FAILURE);
}

static void print_done(const PauseVerb *v) {
        if (v->target.kind == &kube_namespace_kind)
                puts(v->pauses ? "New removals of all nodes wait until 'vesperctl resume'. Not held: interruptions, nodes that are not Ready, removals whose deadline is near, reboots."
                               : "Removals begin again, those that have piled up one by one. NodePools that are paused themselves stay so.");
        else if (v->pauses)
                printf("New removals of nodes of NodePool %s wait until 'vesperctl resume %s'. "
                       "Not held: interruptions, nodes that are not Ready, removals whose deadline is near, reboots.\n",
                       v->target.name, v->target.name);
        else
                printf("Removals of nodes of NodePool %s begin again, those that have piled up one by one.\n",
                       v->target.name);
}

static void on_patched(const KubeReply *reply, void *userdata) {
        PauseVerb *v = userdata;

        v->call = kube_call_free(v->call);
        if (ctl_complain_of(reply, "patch", &v->target))
                v->failed = true;
        else
                print_done(v);
        go_on(v);
}

static void patch_target(PauseVerb *v) {
        _cleanup_free_ char *body = v->pauses ? ctl_pause_patch(v->ctl, COMMAND) : pause_mark_lift_patch();
        int r = -ENOMEM;

        if (body)
                r = kube_patch(v->ctl->client, &v->target, KUBE_PATCH_MERGE, body, NULL, on_patched, v, &v->call);
        if (r < 0)
                ctl_finish(v->ctl, EXIT_FAILURE);
}

/* Prints that a patch would change nothing, and returns true. A pause without a record, and one that
 * 'vesperctl release --all' has set, get a new record: returns false. -ENOMEM. */
static int print_unchanged(const PauseVerb *v, const ObjectMeta *meta) {
        bool is_pool = v->target.kind == &kube_node_pool_kind;
        const char *of = is_pool ? " of nodes of NodePool " : "", *name = is_pool ? v->target.name : "";
        _cleanup_(pause_mark_done) PauseMark mark = {};
        _cleanup_free_ char *text = NULL;
        int r;

        if (!v->pauses) {
                if (object_meta_annotation(meta, ANNOTATION_PAUSED) || object_meta_annotation(meta, ANNOTATION_PAUSED_BY))
                        return false;
                if (is_pool)
                        printf("NodePool %s has no pause of its own: nothing was changed. 'vesperctl status' shows a pause of all nodes.\n", name);
                else
                        puts("No pause of all nodes stands: nothing was changed. NodePools that are paused themselves stay so.");
                return true;
        }
        r = pause_mark_read(meta, &mark);
        if (r < 0 || !streq_ptr(mark.command, COMMAND))
                return r;
        text = pause_mark_text(&mark);
        printf("Removals%s%s were paused already%s: nothing was changed.\n", of, name, strempty(text));
        return true;
}

static void on_read(const KubeReply *reply, void *userdata) {
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
        PauseVerb *v = userdata;
        int r = false;

        v->call = kube_call_free(v->call);
        if (reply->error && reply->error->http != 403) {
                (void) ctl_complain_of(reply, "get", &v->target);
                v->failed = true;
                go_on(v);
                return;
        }
        if (!reply->error) /* a user who may not read the object may still pause */
                r = kube_object_decode(v->target.kind, reply->object, kube_client_pool(v->ctl->client), &o);
        if (o)
                r = print_unchanged(v, &o->meta);
        if (r < 0)
                ctl_give_up(v->ctl, r);
        else if (r > 0)
                go_on(v);
        else
                patch_target(v);
}

static int list_claims(PauseVerb *v) {
        const KubeTarget target = { .kind = &kube_node_claim_kind };

        if (!v->pauses || v->failed) {
                ctl_finish(v->ctl, v->failed ? EXIT_FAILURE : EXIT_SUCCESS);
                return 0;
        }
        return kube_list(v->ctl->client, &target, NULL, NULL, on_claims, v, &v->call);
}

/* Reads the next object that is to have the annotation, or not. After the last one, lists what is under way. */
static int read_next(PauseVerb *v) {
        bool all = v->ctl->n_args == 0;

        if (v->next >= MAX(v->ctl->n_args, (size_t) 1))
                return list_claims(v);
        v->target = all ? (KubeTarget){ .kind = &kube_namespace_kind, .name = v->ctl->options->lease_ns }
                        : (KubeTarget){ .kind = &kube_node_pool_kind, .name = v->ctl->args[v->next] };
        v->next++;
        return kube_get(v->ctl->client, &v->target, NULL, on_read, v, &v->call);
}

static int pause_begin(Ctl *ctl, bool pauses, void **ret) {
        PauseVerb *v = new0(PauseVerb, 1);

        if (!v)
                return -ENOMEM;
        *ret = v;
        v->ctl = ctl;
        v->pauses = pauses;
        return read_next(v);
}

static int pause_start(Ctl *ctl, void **ret) {
        return pause_begin(ctl, true, ret);
}

static int resume_start(Ctl *ctl, void **ret) {
        return pause_begin(ctl, false, ret);
}

const CtlVerb verb_pause = {
        .name = "pause",
        .arguments = "[POOL...]",
        .summary = "Let no new removal begin, of these NodePools or of all",
        .text = "Sets the annotation vesper.sh/paused on the NodePools, or on the coordinator's namespace for all of them, and beside it "
                "vesper.sh/paused-by, which records who did that, and when: 'vesperctl status' and 'vesperctl explain' show it. "
                "A pause that already stands keeps its record. "
                "Removals that are under way go on, and are named. Interruptions, nodes that are not Ready, removals whose deadline is near, and reboots are not held. "
                "Needs: get and patch of nodepools (or of that namespace), list of nodeclaims.",
        .example = "vesperctl pause",
        .max_args = UINT_MAX,
        .outputs = CTL_OUTPUTS_TEXT,
        .start = pause_start,
        .free = pause_free,
};

const CtlVerb verb_resume = {
        .name = "resume",
        .arguments = "[POOL...]",
        .summary = "Let removals begin again after a pause",
        .text = "Removes the annotation vesper.sh/paused from the NodePools, or from the coordinator's namespace, including a "
                "pause that an interrupted 'vesperctl release --all' left. Waiting removals begin in the order of deletion: "
                "one removal in the first minute, and twice as many in each minute after one that went well. "
                "Needs: get and patch of nodepools (or of that namespace).",
        .example = "vesperctl resume",
        .max_args = UINT_MAX,
        .outputs = CTL_OUTPUTS_TEXT,
        .start = resume_start,
        .free = pause_free,
};
