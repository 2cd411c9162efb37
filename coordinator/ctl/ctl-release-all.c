/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl-release-all.h"

#include <stdio.h>
#include <stdlib.h>

#include "ctl-fetch.h"
#include "ctl-marks.h"
#include "ctl-say.h"
#include "marks.h"
#include "termination-marks.h"

#define AGAIN_USEC USEC_PER_SEC

struct ReleaseAll {
        Ctl *ctl;
        ObjectList pools;
        CtlSnapshot snapshot;
        CtlFetch *fetch;
        KubeCall *call;
        KubeTarget target; /* of the call; its name lives in `name` */
        const char *verb;
        char *name;
        bool paused, told_of_stripping;
        size_t told_nodes, told_claims;
        Timer *timer;
};

static void ask_pools(ReleaseAll *a);

ReleaseAll *release_all_free(ReleaseAll *a) {
        if (!a)
                return NULL;
        kube_call_free(a->call);
        ctl_fetch_free(a->fetch);
        timer_free(a->timer);
        object_list_done(&a->pools);
        ctl_snapshot_done(&a->snapshot);
        free(a->name);
        free(a);
        return NULL;
}

static void fail(ReleaseAll *a, int error) {
        if (error < 0)
                ctl_complain("failed to ask the API server: %s", strerrordesc_np(-error) ?: "unknown error");
        if (a->paused)
                ctl_complain("removals stay paused: 'vesperctl release --all --yes' goes on, 'vesperctl resume' takes that back");
        ctl_finish(a->ctl, EXIT_FAILURE);
}

/* -- one write ------------------------------------------------------------------------------------------ */

/* Whatever came of it, the next list says what is left; what can never work ends the verb. */
static void on_written(const KubeReply *reply, void *userdata) {
        ReleaseAll *a = userdata;
        unsigned http = reply->error ? reply->error->http : 200;

        a->call = kube_call_free(a->call);
        if (http == 401 || http == 403 || http == 422) {
                (void) ctl_complain_of(reply, a->verb, &a->target);
                fail(a, 0);
                return;
        }
        if (http >= 300 && http != 404 && http != 409) {
                (void) ctl_complain_of(reply, a->verb, &a->target);
                timer_arm_in(a->timer, AGAIN_USEC);
                return;
        }
        ask_pools(a);
}

static int aim_at(ReleaseAll *a, const char *verb, const KubeKind *kind, const char *name) {
        int r = free_and_strdup(&a->name, name);

        a->verb = verb;
        a->target = (KubeTarget){ .kind = kind, .name = a->name };
        return r;
}

static void patch(ReleaseAll *a, const KubeKind *kind, const char *name, const char *body) {
        int r = body ? aim_at(a, "patch", kind, name) : -ENOMEM;

        if (r >= 0)
                r = kube_patch(a->ctl->client, &a->target, KUBE_PATCH_MERGE, body, NULL, on_written, a, &a->call);
        if (r < 0)
                fail(a, r);
}

static void delete(ReleaseAll *a, const KubeObject *o) {
        const KubeDeleteOptions options = { .uid = o->meta.uid, .grace_sec = -1 };
        int r = aim_at(a, "delete", o->kind, o->meta.name);

        if (r >= 0)
                r = kube_delete(a->ctl->client, &a->target, &options, NULL, on_written, a, &a->call);
        if (r < 0)
                fail(a, r);
}

/* -- what is left --------------------------------------------------------------------------------------- */

/* Pools that are not being deleted yet. True: something was written, and all is listed again. */
static bool delete_a_pool(ReleaseAll *a) {
        for (size_t i = 0; i < a->pools.n_items; i++) {
                const KubeNodePool *p = (const KubeNodePool *) a->pools.items[i];

                if (p->deletion_policy != DELETION_POLICY_RELEASE)
                        patch(a, &kube_node_pool_kind, p->object.meta.name, "{\"spec\":{\"deletionPolicy\":\"Release\"}}");
                else if (p->object.meta.deletion_usec == 0) {
                        printf("Deleting NodePool %s: its nodes and machines stay.\n", p->object.meta.name);
                        delete(a, &p->object);
                } else
                        continue;
                return true;
        }
        return false;
}

static const KubeNode *node_named(const CtlSnapshot *s, const char *name) {
        for (size_t i = 0; name && i < s->nodes.n_items; i++)
                if (streq(s->nodes.items[i]->meta.name, name))
                        return (const KubeNode *) s->nodes.items[i];
        return NULL;
}

/* Claims that people have made, which no pool's deletion takes along. True as above. */
static bool let_go_by_annotation(ReleaseAll *a) {
        _cleanup_free_ char *body = ctl_annotation_body(ANNOTATION_UNMANAGED, "true");

        for (size_t i = 0; i < a->snapshot.claims.n_items; i++) {
                const KubeNodeClaim *c = (const KubeNodeClaim *) a->snapshot.claims.items[i];
                const KubeNode *n = node_named(&a->snapshot, c->node_name);

                if (!kube_node_claim_is_standalone(c) || c->object.meta.deletion_usec > 0)
                        continue;
                if (!object_meta_has_finalizer(&c->object.meta, FINALIZER_TERMINATION))
                        delete(a, &c->object);
                else if (n && n->object.meta.deletion_usec == 0 && !kube_node_is_unmanaged(n)) {
                        printf("Node %s was adopted by NodeClaim %s, which a person has made: annotating it " ANNOTATION_UNMANAGED
                               ", so that it stays.\n",
                               n->object.meta.name, c->object.meta.name);
                        patch(a, &kube_node_kind, n->object.meta.name, body);
                } else
                        continue;
                return true;
        }
        return false;
}

static bool somebody_leads(const CtlSnapshot *s) {
        return !isempty(s->leader) &&
               (s->leader_seen_usec == 0 || usec_add(s->leader_seen_usec, s->lease_usec) >= s->now_usec);
}

static bool strip_a_node(ReleaseAll *a) {
        for (size_t i = 0; i < a->snapshot.nodes.n_items; i++) {
                const KubeNode *n = (const KubeNode *) a->snapshot.nodes.items[i];
                _cleanup_free_ char *body = NULL;
                int r = termination_release_patch(n, &body);

                if (r == 0)
                        continue;
                if (n->object.meta.deletion_usec > 0)
                        printf("Node %s is being deleted: it goes, and its machine %s goes on. End it yourself.\n",
                               n->object.meta.name, n->provider_id ? n->provider_id : "(without providerID)");
                patch(a, &kube_node_kind, n->object.meta.name, body);
                return true;
        }
        return false;
}

static bool strip_an_object(ReleaseAll *a, const ObjectList *list, bool deletes) {
        for (size_t i = 0; i < list->n_items; i++) {
                const KubeObject *o = list->items[i];
                _cleanup_free_ char *body = NULL;

                if (termination_finalizer_patch(o, &body) != 0)
                        patch(a, o->kind, o->meta.name, body);
                else if (deletes && o->meta.deletion_usec == 0)
                        delete(a, o);
                else
                        continue;
                return true;
        }
        return false;
}

static bool strip(ReleaseAll *a) {
        if (!a->told_of_stripping) {
                puts("No coordinator leads: taking off what it would take off.");
                a->told_of_stripping = true;
        }
        return strip_a_node(a) || strip_an_object(a, &a->snapshot.claims, true) ||
               strip_an_object(a, &a->pools, false);
}

static size_t count_nodes_left(const CtlSnapshot *s) {
        size_t left = 0;

        for (size_t i = 0; i < s->nodes.n_items; i++) {
                _cleanup_free_ char *body = NULL;

                left += termination_release_patch((const KubeNode *) s->nodes.items[i], &body) != 0;
        }
        return left;
}

static void on_resumed(const KubeReply *reply, void *userdata) {
        ReleaseAll *a = userdata;

        a->call = kube_call_free(a->call);
        if (reply->error && reply->error->http != 404)
                (void) ctl_complain_of(reply, a->verb, &a->target);
        puts("Nothing of vesper's is left on any node. Agents that still run keep to notices and shutdowns of their own nodes.");
        ctl_finish(a->ctl, EXIT_SUCCESS);
}

static void resume(ReleaseAll *a) {
        _cleanup_free_ char *body = ctl_annotation_body(ANNOTATION_PAUSED, NULL);
        int r = body ? aim_at(a, "patch", &kube_namespace_kind, a->ctl->options->lease_ns) : -ENOMEM;

        if (r >= 0)
                r = kube_patch(a->ctl->client, &a->target, KUBE_PATCH_MERGE, body, NULL, on_resumed, a, &a->call);
        if (r < 0)
                fail(a, r);
}

static void judge(ReleaseAll *a) {
        size_t nodes = count_nodes_left(&a->snapshot), claims = a->snapshot.claims.n_items;

        if (delete_a_pool(a))
                return;
        if (nodes == 0 && claims == 0 && a->pools.n_items == 0) {
                resume(a);
                return;
        }
        if (nodes != a->told_nodes || claims != a->told_claims)
                printf("%zu nodes and %zu NodeClaims are left.\n", nodes, claims);
        fflush(stdout);
        a->told_nodes = nodes;
        a->told_claims = claims;
        if (somebody_leads(&a->snapshot) && let_go_by_annotation(a))
                return;
        if (somebody_leads(&a->snapshot) || !strip(a))
                timer_arm_in(a->timer, AGAIN_USEC);
}

/* -- lists ---------------------------------------------------------------------------------------------- */

static void on_fetched(int error, const char *message, CtlSnapshot *snapshot, void *userdata) {
        ReleaseAll *a = userdata;

        a->fetch = ctl_fetch_free(a->fetch);
        ctl_snapshot_done(&a->snapshot);
        a->snapshot = *snapshot;
        if (message)
                ctl_complain("%s", message);
        /* Whether a coordinator leads has to be known: what it does must not be done beside it. */
        if (error < 0 || !a->snapshot.leader)
                fail(a, 0);
        else
                judge(a);
}

static void on_pools(const KubeReply *reply, void *userdata) {
        const KubeTarget target = { .kind = &kube_node_pool_kind };
        const CtlOptions *o;
        ReleaseAll *a = userdata;
        int r;

        a->call = kube_call_free(a->call);
        object_list_done(&a->pools);
        if (ctl_complain_of(reply, "list", &target)) {
                fail(a, 0);
                return;
        }
        o = a->ctl->options;
        r = ctl_take_list(a->ctl->client, reply, target.kind, &a->pools);
        if (r >= 0)
                r = ctl_fetch_new(a->ctl->client, o->lease_ns, o->lease_name, on_fetched, a, &a->fetch);
        if (r < 0)
                fail(a, r);
}

static void ask_pools(ReleaseAll *a) {
        const KubeTarget target = { .kind = &kube_node_pool_kind };
        int r = kube_list(a->ctl->client, &target, NULL, NULL, on_pools, a, &a->call);

        if (r < 0)
                fail(a, r);
}

static void on_timer(Timer *t, void *userdata) {
        (void) t;
        ask_pools(userdata);
}

static void on_paused(const KubeReply *reply, void *userdata) {
        ReleaseAll *a = userdata;

        a->call = kube_call_free(a->call);
        /* Without the namespace nobody leads, and nothing can be paused. */
        if (reply->error && reply->error->http != 404) {
                (void) ctl_complain_of(reply, a->verb, &a->target);
                fail(a, 0);
                return;
        }
        a->paused = !reply->error;
        ask_pools(a);
}

int release_all_new(Ctl *ctl, ReleaseAll **ret) {
        _cleanup_(release_all_freep) ReleaseAll *a = new0(ReleaseAll, 1);
        _cleanup_free_ char *body = ctl_annotation_body(ANNOTATION_PAUSED, "true");
        int r;

        if (!a || !body)
                return -ENOMEM;
        a->ctl = ctl;
        r = timer_new(ctl->env->loop, "release", on_timer, a, &a->timer);
        if (r >= 0)
                r = aim_at(a, "patch", &kube_namespace_kind, ctl->options->lease_ns);
        if (r >= 0)
                r = kube_patch(ctl->client, &a->target, KUBE_PATCH_MERGE, body, NULL, on_paused, a, &a->call);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(a);
        return 0;
}
