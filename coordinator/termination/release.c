/* SPDX-License-Identifier: Apache-2.0 */
#include "release.h"

#include "coordinator-metrics.h"
#include "heard-conditions.h"
#include "log-catalog.h"
#include "log.h"
#include "marks.h"
#include "string-util.h"
#include "termination-marks.h"
#include "voluntary-deletes.h"

struct Release {
        const TerminationContext *context;
        WorkQueue *queue;
        ObjectWrites *writes;
};

int release_new(const TerminationContext *context, WorkQueue *queue, ObjectWrites *writes, Release **ret) {
        Release *r;

        assert(context && queue && writes && ret);
        r = new0(Release, 1);
        if (!r)
                return -ENOMEM;
        r->context = context;
        r->queue = queue;
        r->writes = writes;
        *ret = r;
        return 0;
}

Release *release_free(Release *r) {
        free(r);
        return NULL;
}

static void mark_dirty(Release *r, const char *room, const char *name) {
        _cleanup_free_ char *key = strf("%s/%s", room, name);

        if (key)
                (void) work_queue_add(r->queue, key);
        else
                work_queue_note_lost(r->queue);
}

/* The load balancer label and the agent's marks are the agent's where nothing says that we were here. While the
 * taints are unread, vesper cannot remove the out-of-service taint, so ANNOTATION_OUT_OF_SERVICE alone does not
 * call for a release. */
bool release_is_called_for(const KubeNode *n, const KubeNodeClaim *claim) {
        const ObjectMeta *m = &n->object.meta;

        return claim || object_meta_has_finalizer(m, FINALIZER_TERMINATION) ||
               object_meta_annotation(m, ANNOTATION_CORDONED_BY_COORDINATOR) ||
               (object_meta_annotation(m, ANNOTATION_OUT_OF_SERVICE) && !n->has_unread_taints) ||
               object_meta_annotation(m, ANNOTATION_HEARD) ||
               object_meta_annotation(m, ANNOTATION_ANNOUNCED) ||
               kube_node_has_taint(n, TAINT_DISRUPTED, NULL);
}

/* Returns the claim that goes with the Node. NULL: there is none, or it names another Node, which may come
 * back. */
static const KubeNodeClaim *claim_to_release(const KubeNode *n, const KubeNodeClaim *claim) {
        const char *named = claim ? cluster_view_node_named_by(claim) : NULL;

        return named && !streq(named, n->object.meta.name) ? NULL : claim;
}

/* Records that the taints of a Node stay: a patch would replace the whole list, which vesper has not read. */
static void report_unread_taints(Release *r, const KubeNode *n) {
        const char *name = n->object.meta.name;
        EventObject o = event_object(&n->object);

        event_record(r->context->recorder, &o, EVENT_WARNING, "TaintsNotRemoved",
                     "The coordinator released this Node, but does not change its taints, because it has more than 256. "
                     "If vesper's taint is among them: kubectl taint node %s " TAINT_DISRUPTED "- removes it%s. Once the Node has "
                     "256 taints or fewer, the coordinator removes it by itself",
                     name,
                     object_meta_annotation(&n->object.meta, ANNOTATION_OUT_OF_SERVICE)
                             ? ", and for a Node that is in service again also " TAINT_OUT_OF_SERVICE "-"
                             : "");
}

static void on_node_released(const char *name, const ApiError *error, void *userdata) {
        Release *r = userdata;
        const KubeNode *n = cluster_view_node(r->context->view, name);
        bool taints_stay = n && n->has_unread_taints;

        if (error)
                return;
        if (taints_stay)
                report_unread_taints(r, n);
        metrics_add(r->context->metrics, METRIC_RELEASES, 0, 1);
        log_event(r->context->env->log, LOG_LEVEL_INFO, MESSAGE_FINALIZER_REMOVED,
                  LOG_FIELDS({ "NODE", name }),
                  "Node %s was released: no NodePool selects it, or it is annotated " ANNOTATION_UNMANAGED "=true. "
                  "Its finalizer and vesper's marks were removed, its machine goes on%s",
                  name,
                  taints_stay ? ". Its taints stay, because it has more than 256: an Event on the Node says how to remove vesper's"
                              : "");
}

/* What its claim says that the queue announced, where somebody may act upon it after this claim. NULL: nothing. Borrowed. */
static const char *announced_to_keep(const Release *r, const KubeNode *n, const KubeNodeClaim *claim) {
        const KubeNodePool *pool, *other;

        if (!claim || claim->object.meta.deletion_usec > 0 || kube_node_is_unmanaged(n) ||
            (r->context->config->queue_unmanaged != QUEUE_UNMANAGED_DRAIN && cluster_view_pool_of_node(r->context->view, n, &pool, &other) == POOL_MATCH_NONE))
                return NULL;
        return object_meta_annotation(&claim->object.meta, ANNOTATION_ANNOUNCED);
}

/* Nobody acts from here on upon what the queue announced of a node that no pool selects. */
static void tell_opened(Release *r, const KubeNode *n, const KubeNodeClaim *claim) {
        const Announced *first = claim ? announced_list_open(&claim->announced) : NULL;
        _cleanup_free_ char *announced = first && !announced_to_keep(r, n, claim) ? heard_announced_text(first->notice) : NULL;
        EventObject o = event_object(&n->object);

        if (announced)
                event_record(r->context->recorder, &o, EVENT_WARNING, "InterruptionNotActedUpon",
                             "No NodePool manages this node any more, and so vesper does nothing for what the interruption queue announced: %s. If vesper had cordoned the "
                             "node for that, it is open again. To drain it: vesperctl drain %s",
                             announced, n->object.meta.name);
}

void release_node(Release *r, const KubeNode *n, const KubeNodeClaim *claim) {
        _cleanup_free_ char *body = NULL, *key = strf("node/%s", n->object.meta.name);
        ObjectWrite w = { .what = "release",
                          .target = { .kind = &kube_node_kind, .name = n->object.meta.name },
                          .state = n->object.meta.resource_version,
                          .reconcile_key = key,
                          .written = on_node_released,
                          .userdata = r };
        int k;

        claim = claim_to_release(n, claim);
        if (!release_is_called_for(n, claim))
                return;
        if (!key) {
                work_queue_note_lost(r->queue);
                return;
        }
        k = termination_release_patch(n, announced_to_keep(r, n, claim), &body);
        if (k < 0)
                (void) work_queue_retry(r->queue, key);
        else if (k > 0 && object_writes_patch(r->writes, &w, KUBE_PATCH_MERGE, body) > 0)
                tell_opened(r, n, claim);
        else if (k == 0 && claim)
                release_claim(r, claim, key);
}

bool release_is_unfinished(const Release *r, const KubeNode *n, const KubeNodeClaim *claim) {
        _cleanup_free_ char *body = NULL;

        claim = claim_to_release(n, claim);
        return claim || (release_is_called_for(n, NULL) &&
                         termination_release_patch(n, announced_to_keep(r, n, NULL), &body) > 0);
}

void release_claim(Release *r, const KubeNodeClaim *claim, const char *reconcile_key) {
        const ObjectMeta *m = &claim->object.meta;
        ObjectWrite w = { .what = "release",
                          .target = { .kind = &kube_node_claim_kind, .name = m->name },
                          .state = m->resource_version,
                          .reconcile_key = reconcile_key };
        _cleanup_free_ char *body = NULL;
        int k;

        k = termination_finalizer_patch(&claim->object, &body);
        if (k < 0)
                (void) work_queue_retry(r->queue, reconcile_key);
        else if (k > 0)
                (void) object_writes_patch(r->writes, &w, KUBE_PATCH_MERGE, body);
        else if (m->deletion_usec == 0)
                (void) object_writes_delete(r->writes, &w, m->uid, m->resource_version);
}

/* -- pools ---------------------------------------------------------------------------------------------- */

static void delete_claim(Release *r, const KubeNodeClaim *claim, const char *reconcile_key) {
        const ObjectMeta *m = &claim->object.meta;
        ObjectWrite w = { .what = "delete",
                          .target = { .kind = &kube_node_claim_kind, .name = m->name },
                          .state = m->uid,
                          .reconcile_key = reconcile_key };

        if (m->deletion_usec == 0)
                (void) object_writes_delete(r->writes, &w, m->uid, NULL);
}

/* The Node that lets go of this claim; NULL: there is none. */
static const KubeNode *node_to_release(const ClusterView *v, const KubeNodeClaim *claim) {
        const char *named = cluster_view_node_named_by(claim);
        const KubeNode *n = named ? cluster_view_node(v, named)
                                  : cluster_view_node_of_provider_id(v, strempty(claim->provider_id), NULL);

        return n && cluster_view_claim_of_node(v, n) == claim ? n : NULL;
}

static void part_with_claim(Release *r, const KubeNodePool *pool, const KubeNodeClaim *claim,
                            const char *pool_key) {
        const KubeNode *n = node_to_release(r->context->view, claim);

        if (!n && kube_node_claim_is_new(claim)) /* its machine has never been a node of the pool */
                delete_claim(r, claim, pool_key);
        else if (pool->deletion_policy == DELETION_POLICY_DELETE && !(n && kube_node_is_unmanaged(n))) {
                if (!n || n->object.meta.deletion_usec > 0 ||
                    voluntary_delete_is_admitted(r->context->deletes, n, pool, "its NodePool is deleted with deletionPolicy Delete", pool_key))
                        delete_claim(r, claim, pool_key);
        } else if (claim->object.meta.deletion_usec > 0)
                return; /* its node is being removed already: it goes its way */
        else if (n)
                mark_dirty(r, "node", n->object.meta.name); /* its pool matches nothing any more */
        else
                release_claim(r, claim, pool_key);
}

/* Nodes whose claim is gone but that still carry something of ours. */
static size_t part_with_bare_nodes(Release *r, const KubeNodePool *pool) {
        const KubeNode *n;
        size_t left = 0;

        if (selector_is_empty(pool->selector))
                return 0;
        for (HashmapIterator it = {}; cluster_view_iterate_nodes(r->context->view, &it, &n);) {
                if (!selector_matches(pool->selector, &n->object.meta.labels) ||
                    n->object.meta.deletion_usec > 0 || cluster_view_claim_of_node(r->context->view, n) ||
                    cluster_view_pool_of_node(r->context->view, n, NULL, NULL) != POOL_MATCH_NONE ||
                    !release_is_called_for(n, NULL))
                        continue;
                mark_dirty(r, "node", n->object.meta.name);
                left++;
        }
        return left;
}

void release_pool(Release *r, const KubeNodePool *pool) {
        const ObjectMeta *m = &pool->object.meta;
        _cleanup_free_ char *body = NULL, *key = strf("pool/%s", m->name);
        ObjectWrite w = { .what = "release",
                          .target = { .kind = &kube_node_pool_kind, .name = m->name },
                          .state = m->resource_version,
                          .reconcile_key = key };
        const KubeNodeClaim *claim;
        size_t left = 0;
        int k;

        assert(m->deletion_usec > 0);
        if (!object_meta_has_finalizer(m, FINALIZER_TERMINATION))
                return;
        if (!key) {
                work_queue_note_lost(r->queue);
                return;
        }
        for (HashmapIterator it = {}; cluster_view_iterate_claims(r->context->view, &it, &claim);)
                if (streq_ptr(claim->node_pool, m->name)) {
                        part_with_claim(r, pool, claim, key);
                        left++;
                }
        left += part_with_bare_nodes(r, pool);

        /* Every change of a claim marks its pool; a node's does not, so look again. */
        if (left > 0) {
                (void) work_queue_add_at(r->queue, key,
                                         usec_add(loop_now(r->context->env->loop), USEC_PER_SEC));
                return;
        }
        k = termination_finalizer_patch(&pool->object, &body);
        if (k < 0)
                (void) work_queue_retry(r->queue, key);
        else if (k > 0)
                (void) object_writes_patch(r->writes, &w, KUBE_PATCH_MERGE, body);
}
