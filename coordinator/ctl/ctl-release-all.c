/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl-release-all.h"

#include <stdio.h>
#include <stdlib.h>

#include "ctl-fetch.h"
#include "ctl-launch.h"
#include "ctl-marks.h"
#include "ctl-say.h"
#include "marks.h"
#include "pause-mark.h"
#include "termination-marks.h"

/* An API server that has just started refuses everything for a moment, as it has not read the roles yet. */
#define REFUSED_MAX 10u
#define AGAIN_USEC USEC_PER_SEC
/* A Lease that says nothing of its duration; what a renewal may be late; a successor takes a free one sooner. */
#define LEASE_USEC (15 * USEC_PER_SEC)
#define LATE_USEC (5 * USEC_PER_SEC)
#define FREE_USEC (10 * USEC_PER_SEC)
/* Interval at which a complaint that repeats the one before is printed again. */
#define REPEAT_USEC USEC_PER_MINUTE
#define NAMED_MAX 5u
#define WITHOUT_COORDINATOR "vesperctl release --all --without-coordinator --yes"

struct ReleaseAll {
        Ctl *ctl;
        unsigned n_refused; /* times in a row that the API server refused to read the Lease */
        ObjectList pools;
        CtlSnapshot snapshot;
        CtlFetch *fetch;
        KubeCall *call;
        KubeTarget target; /* of the call; its name lives in `name` */
        const char *verb;
        char *name;
        bool paused, deleted_pools, told_of_stripping, told_of_uninstalled, told_of_deleted;
        bool no_pools; /* the cluster does not know NodePools */
        size_t told_nodes, told_claims;
        Timer *timer, *timeout;
        sd_event_source *signals[2];
        char *leader;        /* as the Lease said last; NULL: not seen yet */
        usec_t renewed_usec; /* its renewTime, by whatever clock */
        usec_t moved_usec;   /* loop_now(): when that was another than before */
        char *complaint;     /* that was printed last; NULL: none */
        usec_t complained_usec; /* loop_now() of that */
};

typedef enum Leadership { LEADERSHIP_UNKNOWN, LEADERSHIP_STANDS, LEADERSHIP_NONE } Leadership;

static void ask_pools(ReleaseAll *a);

ReleaseAll *release_all_free(ReleaseAll *a) {
        if (!a)
                return NULL;
        kube_call_free(a->call);
        ctl_fetch_free(a->fetch);
        timer_free(a->timer);
        timer_free(a->timeout);
        for (size_t i = 0; i < ELEMENTSOF(a->signals); i++)
                sd_event_source_disable_unref(a->signals[i]);
        free(a->leader);
        object_list_done(&a->pools);
        ctl_snapshot_done(&a->snapshot);
        free(a->name);
        free(a->complaint);
        free(a);
        return NULL;
}

static void tell_of_pause(const ReleaseAll *a) {
        if (a->paused)
                ctl_complain("removals stay paused: 'vesperctl release --all --yes' goes on, 'vesperctl resume' takes that back");
}

/* What has been done is not taken back. */
static void tell_of_begun(const ReleaseAll *a) {
        if (a->deleted_pools)
                ctl_complain("NodePools have been deleted: coordinators go on letting go of their nodes");
        tell_of_pause(a);
}

static void fail(ReleaseAll *a, int error) {
        ctl_give_up(a->ctl, error);
        tell_of_begun(a);
}

/* Prints what failed. A request that fails each second is reported once a minute. */
static void complain(ReleaseAll *a, const char *text) {
        usec_t now = loop_now(a->ctl->env->loop);

        if (streq_ptr(a->complaint, text) && now - a->complained_usec < REPEAT_USEC)
                return;
        ctl_complain("%s", text);
        (void) free_and_strdup(&a->complaint, text);
        a->complained_usec = now;
}

static void complain_of(ReleaseAll *a, const ApiError *e, const char *verb, const KubeTarget *t) {
        _cleanup_free_ char *text = ctl_explain_error(e, verb, t);

        complain(a, text ? text : "out of memory");
}

static int on_signal(sd_event_source *s, const struct signalfd_siginfo *si, void *userdata) {
        ReleaseAll *a = userdata;

        (void) s;
        (void) si;
        ctl_complain("interrupted");
        tell_of_begun(a);
        ctl_finish(a->ctl, EXIT_INTERRUPTED);
        return 0;
}

/* Returns true if a retry may succeed. http: status of the answer; 0: no answer. */
static bool is_passing(unsigned http) {
        return http == 0 || http == 409 || http == 429 || http >= 500;
}

/* -- one write ------------------------------------------------------------------------------------------ */

/* Whatever came of it, the next list says what is left; what can never work ends the verb. */
static void on_written(const KubeReply *reply, void *userdata) {
        ReleaseAll *a = userdata;
        unsigned http = reply->error ? reply->error->http : 200;

        a->call = kube_call_free(a->call);
        if (http == 401 || http == 403 || http == 422) {
                complain_of(a, reply->error, a->verb, &a->target);
                fail(a, 0);
                return;
        }
        if (http >= 300 && http != 404 && http != 409) {
                complain_of(a, reply->error, a->verb, &a->target);
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
                        ctl_print(stdout, "Deleting NodePool %s: its nodes and machines stay.",
                                  p->object.meta.name);
                        a->deleted_pools = true;
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

static bool is_drained_for_queue(const KubeNode *n) {
        return object_meta_annotation(&n->object.meta, ANNOTATION_HEARD) || object_meta_annotation(&n->object.meta, ANNOTATION_ANNOUNCED);
}

/* Nodes that are drained for the interruption queue, or will be, and claims that people have made: no pool's deletion takes them along. True as
 * above. */
static bool let_go_by_annotation(ReleaseAll *a) {
        _cleanup_free_ char *body = annotations_patch(&(const KeyValue){ ANNOTATION_UNMANAGED, "true" }, 1);

        for (size_t i = 0; i < a->snapshot.nodes.n_items; i++) {
                const KubeNode *n = (const KubeNode *) a->snapshot.nodes.items[i];

                if (!is_drained_for_queue(n) || n->object.meta.deletion_usec > 0 || kube_node_is_unmanaged(n))
                        continue;
                ctl_print(stdout,
                          "The interruption queue announced something for Node %s: annotating it "
                          ANNOTATION_UNMANAGED ", so that vesper does nothing for that.",
                          n->object.meta.name);
                patch(a, &kube_node_kind, n->object.meta.name, body);
                return true;
        }
        for (size_t i = 0; i < a->snapshot.claims.n_items; i++) {
                const KubeNodeClaim *c = (const KubeNodeClaim *) a->snapshot.claims.items[i];
                const KubeNode *n = node_named(&a->snapshot, c->node_name);

                if (!kube_node_claim_is_standalone(c) || c->object.meta.deletion_usec > 0)
                        continue;
                if (!object_meta_has_finalizer(&c->object.meta, FINALIZER_TERMINATION))
                        delete(a, &c->object);
                else if (n && n->object.meta.deletion_usec == 0 && !kube_node_is_unmanaged(n)) {
                        ctl_print(stdout,
                                  "Node %s was adopted by NodeClaim %s, which a person has made: annotating it "
                                  ANNOTATION_UNMANAGED ", so that it stays.",
                                  n->object.meta.name, c->object.meta.name);
                        patch(a, &kube_node_kind, n->object.meta.name, body);
                } else
                        continue;
                return true;
        }
        return false;
}

/* Prints how many of n objects are not named. noun: "node". */
static void print_more(size_t n, const char *noun, FILE *f) {
        if (n > NAMED_MAX)
                ctl_print(f, "%zu more %s%s likewise.", n - NAMED_MAX, noun, n - NAMED_MAX == 1 ? " waits" : "s wait");
}

/* -- machines that are no nodes yet ----------------------------------------------------------------------- */

/* Deletes a claim whose machine has no Node: released, nobody would know of the machine. True as above. */
static bool delete_a_launch(ReleaseAll *a) {
        for (size_t i = 0; i < a->snapshot.claims.n_items; i++) {
                const KubeNodeClaim *c = (const KubeNodeClaim *) a->snapshot.claims.items[i];

                if (!launch_is_without_node(c) || c->object.meta.deletion_usec > 0)
                        continue;
                ctl_print(stdout, "Deleting NodeClaim %s, which has no Node yet: the coordinator ends the machine that was launched for it, if any.",
                          c->object.meta.name);
                delete(a, &c->object);
                return true;
        }
        return false;
}

static void tell_launch(const KubeNodeClaim *c, FILE *f) {
        if (c->provider_id)
                ctl_print(f, "NodeClaim %s is being deleted, and its machine %s is not gone yet.", c->object.meta.name, c->provider_id);
        else if (c->request.token)
                ctl_print(f, "NodeClaim %s is being deleted, and the coordinator looks for the machine that request %s may have launched.",
                          c->object.meta.name, c->request.token);
        else
                ctl_print(f, "NodeClaim %s is being deleted, and no machine was asked for.", c->object.meta.name);
}

/* Names the claims without a Node that are left. */
static void tell_launches(const ReleaseAll *a, FILE *f) {
        size_t n = 0;

        for (size_t i = 0; i < a->snapshot.claims.n_items; i++) {
                const KubeNodeClaim *c = (const KubeNodeClaim *) a->snapshot.claims.items[i];

                if (launch_is_without_node(c) && c->object.meta.deletion_usec > 0 && n++ < NAMED_MAX)
                        tell_launch(c, f);
        }
        print_more(n, "NodeClaim", f);
}

static Leadership see_leader(ReleaseAll *a) {
        const CtlSnapshot *s = &a->snapshot;
        usec_t now = loop_now(a->ctl->env->loop), lease = s->lease_usec > 0 ? s->lease_usec : LEASE_USEC;
        bool is_first = !a->leader;

        if (is_first || !streq(a->leader, s->leader) || a->renewed_usec != s->leader_seen_usec) {
                a->moved_usec = now;
                a->renewed_usec = s->leader_seen_usec;
                if (free_and_strdup(&a->leader, s->leader) < 0)
                        return LEADERSHIP_UNKNOWN;
                return is_first || isempty(s->leader) ? LEADERSHIP_UNKNOWN : LEADERSHIP_STANDS;
        }
        if (now - a->moved_usec < (isempty(s->leader) ? FREE_USEC : usec_add(lease, LATE_USEC)))
                return LEADERSHIP_UNKNOWN;
        return LEADERSHIP_NONE;
}

/* Does its removal wait for something that the pause would keep from coming? */
static bool is_held(const KubeNodeClaim *c) {
        return c->object.meta.deletion_usec > 0 && !ctl_removal_is_running(c) && !streq_ptr(c->phase, "NotAdopted") && !launch_is_without_node(c);
}

static void tell_held_node(const KubeNodeClaim *c, FILE *f) {
        const char *node = strempty(c->node_name);

        if (streq_ptr(c->phase, "Paused"))
                ctl_print(f,
                          "Node %s is being deleted, and its removal is paused, maybe by an earlier try: "
                          "'vesperctl resume' has it go on.",
                          node);
        else
                ctl_print(f,
                        "Node %s is being deleted, and its removal waits (%s). 'vesperctl force %s' ends its machine; to keep the machine, "
                        "stop the coordinators and run this again with --without-coordinator.",
                        node, isempty(c->phase) ? "not begun" : c->phase, node);
}

/* Names them. How many. */
static size_t tell_held(const ReleaseAll *a, FILE *f) {
        size_t n = 0;

        for (size_t i = 0; i < a->snapshot.claims.n_items; i++) {
                const KubeNodeClaim *c = (const KubeNodeClaim *) a->snapshot.claims.items[i];

                if (is_held(c) && n++ < NAMED_MAX)
                        tell_held_node(c, f);
        }
        print_more(n, "node", f);
        return n;
}

/* Without our finalizer it would go, and its machine would go on. */
static bool is_held_by_us(const KubeNode *n) {
        return n->object.meta.deletion_usec > 0 && object_meta_has_finalizer(&n->object.meta, FINALIZER_TERMINATION);
}

static bool strip_a_node(ReleaseAll *a) {
        for (size_t i = 0; i < a->snapshot.nodes.n_items; i++) {
                const KubeNode *n = (const KubeNode *) a->snapshot.nodes.items[i];
                _cleanup_free_ char *body = NULL;
                int r = termination_release_patch(n, NULL, &body);

                if (r == 0 || (is_held_by_us(n) && !a->ctl->options->without_coordinator))
                        continue;
                if (n->object.meta.deletion_usec > 0)
                        ctl_print(stdout,
                                  "Node %s is being deleted: it goes, and its machine %s goes on. End it yourself.",
                                  n->object.meta.name, n->provider_id ? n->provider_id : "(without providerID)");
                patch(a, &kube_node_kind, n->object.meta.name, body);
                return true;
        }
        return false;
}

/* Names the machine of a claim without a Node, which nobody ends once the claim has gone. */
static void tell_lost_machine(const KubeObject *o) {
        const KubeNodeClaim *c = o->kind == &kube_node_claim_kind ? (const KubeNodeClaim *) o : NULL;

        if (!c || !launch_is_without_node(c))
                return;
        if (c->provider_id)
                ctl_print(stdout, "NodeClaim %s has no Node: it goes, and its machine %s goes on. End it yourself.", c->object.meta.name, c->provider_id);
        else if (c->request.token)
                ctl_print(stdout, "NodeClaim %s has no Node: it goes, and request %s may have launched a machine. Look for it, and end it yourself.",
                          c->object.meta.name, c->request.token);
}

static bool strip_an_object(ReleaseAll *a, const ObjectList *list, bool deletes) {
        for (size_t i = 0; i < list->n_items; i++) {
                const KubeObject *o = list->items[i];
                _cleanup_free_ char *body = NULL;

                if (termination_finalizer_patch(o, &body) != 0) {
                        tell_lost_machine(o);
                        patch(a, o->kind, o->meta.name, body);
                }
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
                puts("No coordinator leads: taking off what one would take off.");
                a->told_of_stripping = true;
        }
        return strip_a_node(a) || strip_an_object(a, &a->snapshot.claims, true) ||
               strip_an_object(a, &a->pools, false);
}

/* Neither kind is there: no coordinator that starts now would ever have a whole view, and do anything. */
static bool is_uninstalled(const ReleaseAll *a) {
        return a->no_pools && a->snapshot.no_claims;
}

static void tell_uninstalled(ReleaseAll *a) {
        if (!a->told_of_uninstalled && is_uninstalled(a))
                puts("This cluster does not know NodePools and NodeClaims (vesper's CustomResourceDefinitions are not installed): there are none to "
                     "delete.");
        a->told_of_uninstalled = a->told_of_uninstalled || is_uninstalled(a);
}

/* Nodes that nobody but a coordinator, or a person with --without-coordinator, lets go: each by name, with its machine. */
static void tell_deleted(const ReleaseAll *a, bool is_led, FILE *f) {
        size_t n = 0;

        for (size_t i = 0; i < a->snapshot.nodes.n_items; i++) {
                const KubeNode *node = (const KubeNode *) a->snapshot.nodes.items[i];

                if (!is_held_by_us(node) || n++ >= NAMED_MAX)
                        continue;
                ctl_print(f, is_led ? "Waiting for node %s, which is being deleted, and its machine %s."
                                  : "Node %s is being deleted, and no coordinator leads that would end its machine %s.",
                        node->object.meta.name, node->provider_id ?: "(without providerID)");
        }
        print_more(n, "node", f);
}

/* In the place of a coordinator, but for nodes that are being deleted: one that still leads may be about to end their machines, and where none
 * does somebody has to say that the machines may go on. */
static void strip_uninstalled(ReleaseAll *a, Leadership leads) {
        if (strip_a_node(a))
                return;
        if (leads == LEADERSHIP_NONE) {
                tell_deleted(a, false, stderr);
                ctl_complain("'" WITHOUT_COORDINATOR "' lets what is being deleted go; the machines go on, and cost, until you end them");
                fail(a, 0);
                return;
        }
        if (!a->told_of_deleted) {
                tell_deleted(a, true, stdout);
                puts("If no coordinator ends that, stop all coordinators and say '" WITHOUT_COORDINATOR "': the machines go on then, and cost, until "
                     "you end them.");
        }
        fflush(stdout);
        a->told_of_deleted = true;
        timer_arm_in(a->timer, AGAIN_USEC);
}

static size_t count_nodes_left(const CtlSnapshot *s) {
        size_t left = 0;

        for (size_t i = 0; i < s->nodes.n_items; i++) {
                _cleanup_free_ char *body = NULL;

                left += termination_release_patch((const KubeNode *) s->nodes.items[i], NULL, &body) != 0;
        }
        return left;
}

static char *left_text(size_t nodes, size_t claims) {
        return strf("%zu node%s and %zu NodeClaim%s are left", nodes, nodes == 1 ? "" : "s", claims, claims == 1 ? "" : "s");
}

static void on_resumed(const KubeReply *reply, void *userdata) {
        ReleaseAll *a = userdata;

        a->call = kube_call_free(a->call);
        if (reply->error && reply->error->http != 404)
                complain_of(a, reply->error, a->verb, &a->target);
        if (reply->error && is_passing(reply->error->http)) {
                timer_arm_in(a->timer, AGAIN_USEC);
                return;
        }
        if (reply->error && reply->error->http != 404) {
                fail(a, 0);
                return;
        }
        puts("Nothing of vesper's is left on any node. Agents that still run keep to notices and shutdowns of their own nodes.");
        ctl_finish(a->ctl, EXIT_SUCCESS);
}

static void resume(ReleaseAll *a) {
        _cleanup_free_ char *body = pause_mark_lift_patch();
        int r = body ? aim_at(a, "patch", &kube_namespace_kind, a->ctl->options->lease_ns) : -ENOMEM;

        if (r >= 0)
                r = kube_patch(a->ctl->client, &a->target, KUBE_PATCH_MERGE, body, NULL, on_resumed, a, &a->call);
        if (r < 0)
                fail(a, r);
}

static void on_paused(const KubeReply *reply, void *userdata) {
        ReleaseAll *a = userdata;

        a->call = kube_call_free(a->call);
        /* Without the namespace nobody leads, and nothing can be paused. */
        if (reply->error && reply->error->http != 404) {
                complain_of(a, reply->error, a->verb, &a->target);
                fail(a, 0);
                return;
        }
        a->paused = true;
        ask_pools(a);
}

/* Prints who set the pause that this release takes over, for example an interrupted release. */
static void tell_of_earlier_pause(const ReleaseAll *a) {
        _cleanup_free_ char *text = pause_mark_text(&a->snapshot.pause);

        if (a->snapshot.pause.is_paused)
                ctl_print(stdout,
                          "Removals were paused already%s. This release takes the pause over, and lifts it at its end.",
                          strempty(text));
}

static void pause_all(ReleaseAll *a) {
        _cleanup_free_ char *body = ctl_pause_patch(a->ctl, "release --all");
        int r = body ? aim_at(a, "patch", &kube_namespace_kind, a->ctl->options->lease_ns) : -ENOMEM;

        tell_of_earlier_pause(a);
        if (r >= 0)
                r = kube_patch(a->ctl->client, &a->target, KUBE_PATCH_MERGE, body, NULL, on_paused, a, &a->call);
        if (r < 0)
                fail(a, r);
}

/* Nothing has been changed yet. */
static void begin(ReleaseAll *a, Leadership leads) {
        bool without = a->ctl->options->without_coordinator;

        if (is_uninstalled(a) && !without)
                pause_all(a);
        else if (leads == LEADERSHIP_UNKNOWN)
                timer_arm_in(a->timer, AGAIN_USEC);
        else if (without && leads == LEADERSHIP_STANDS) {
                ctl_complain("coordinator %s leads: stop all coordinators first, or leave --without-coordinator away", a->leader);
                fail(a, 0);
        } else if (!without && leads == LEADERSHIP_NONE) {
                ctl_complain("no coordinator leads that would let go of the nodes: start one, or run this "
                             "again with --without-coordinator");
                fail(a, 0);
        } else if (!without && tell_held(a, stderr) > 0) {
                ctl_complain("nothing was changed");
                fail(a, 0);
        } else
                pause_all(a);
}

static void judge(ReleaseAll *a) {
        Leadership leads = see_leader(a);
        bool without = a->ctl->options->without_coordinator;
        size_t nodes = count_nodes_left(&a->snapshot), claims = a->snapshot.claims.n_items;

        tell_uninstalled(a);
        if (nodes == 0 && claims == 0 && a->pools.n_items == 0) {
                resume(a); /* an earlier try may have paused */
                return;
        }
        if (!a->paused) {
                begin(a, leads);
                return;
        }
        if (without && leads == LEADERSHIP_STANDS) {
                ctl_complain("coordinator %s leads now: it would do what is done here, too", a->leader);
                fail(a, 0);
                return;
        }
        if (delete_a_pool(a))
                return;
        if (nodes != a->told_nodes || claims != a->told_claims) {
                _cleanup_free_ char *left = left_text(nodes, claims);

                ctl_print(stdout, "%s.", strempty(left));
                if (!without) {
                        (void) tell_held(a, stdout);
                        tell_launches(a, stdout);
                }
        }
        fflush(stdout);
        a->told_nodes = nodes;
        a->told_claims = claims;
        if (!without && is_uninstalled(a)) {
                strip_uninstalled(a, leads);
                return;
        }
        if (!without && (delete_a_launch(a) || let_go_by_annotation(a)))
                return;
        if (!without || !strip(a))
                timer_arm_in(a->timer, AGAIN_USEC);
}

/* -- lists ---------------------------------------------------------------------------------------------- */

static bool may_pass(int error) {
        return error != -EACCES && error != -ENOENT && error != -EINVAL && error != -ENOMEM &&
               error != -EBADMSG;
}

static void on_fetched(int error, const char *message, CtlSnapshot *snapshot, void *userdata) {
        ReleaseAll *a = userdata;

        if (message)
                complain(a, message);
        a->fetch = ctl_fetch_free(a->fetch); /* and the message with it */
        ctl_snapshot_done(&a->snapshot);
        a->snapshot = *snapshot;
        /* Whether a coordinator leads has to be known: what it does must not be done beside it. */
        if (error < 0 || a->snapshot.leader || !a->snapshot.leader_refused)
                a->n_refused = 0;
        if (error >= 0 && a->snapshot.leader)
                judge(a);
        else if (a->paused && may_pass(error) && ++a->n_refused < REFUSED_MAX)
                timer_arm_in(a->timer, AGAIN_USEC);
        else
                fail(a, 0);
}

static void on_pools(const KubeReply *reply, void *userdata) {
        const KubeTarget target = { .kind = &kube_node_pool_kind };
        const CtlOptions *o;
        ReleaseAll *a = userdata;
        int r;

        a->call = kube_call_free(a->call);
        object_list_done(&a->pools);
        a->no_pools = reply->error && reply->error->http == 404;
        if (reply->error && !a->no_pools) {
                complain_of(a, reply->error, "list", &target);
                if (a->paused && is_passing(reply->error->http))
                        timer_arm_in(a->timer, AGAIN_USEC);
                else
                        fail(a, 0);
                return;
        }
        o = a->ctl->options;
        r = a->no_pools ? 0 : ctl_take_list(a->ctl->client, reply, target.kind, &a->pools);
        if (r >= 0)
                r = ctl_fetch_new(a->ctl->client,
                                  &(CtlFetchOptions){
                                          .lease_ns = o->lease_ns, .lease_name = o->lease_name, .claims_may_be_uninstalled = true },
                                  on_fetched, a, &a->fetch);
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

static void on_timeout(Timer *t, void *userdata) {
        ReleaseAll *a = userdata;
        _cleanup_free_ char *left = left_text(count_nodes_left(&a->snapshot), a->snapshot.claims.n_items);

        (void) t;
        ctl_complain("gave up, --timeout is over: %s", strempty(left));
        tell_launches(a, stderr);
        fail(a, 0);
}

int release_all_new(Ctl *ctl, ReleaseAll **ret) {
        _cleanup_(release_all_freep) ReleaseAll *a = new0(ReleaseAll, 1);
        usec_t timeout = USEC_INFINITY;
        int r;

        if (!a)
                return -ENOMEM;
        a->ctl = ctl;
        r = ctl_duration_option("timeout", ctl->options->timeout, &timeout);
        if (r >= 0)
                r = timer_new(ctl->env->loop, "release", on_timer, a, &a->timer);
        if (r >= 0)
                r = timer_new(ctl->env->loop, "release-timeout", on_timeout, a, &a->timeout);
        if (r >= 0)
                r = ctl_watch_signals(ctl, a->signals, on_signal, a);
        if (r < 0)
                return r;
        if (timeout != USEC_INFINITY)
                timer_arm_in(a->timeout, timeout);
        ask_pools(a);
        *ret = TAKE_PTR(a);
        return 0;
}
