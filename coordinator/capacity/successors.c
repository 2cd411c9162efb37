/* SPDX-License-Identifier: Apache-2.0 */
#include "successors.h"

#include <inttypes.h>

#include "claim-body.h"
#include "hashmap.h"
#include "interruption-due.h"
#include "log-catalog.h"
#include "log.h"
#include "marks.h"
#include "status-patch.h"
#include "string-util.h"

/* Maximum time for which the end of a new machine waits for the claim of the next attempt. */
#define NEXT_STANDS_USEC USEC_PER_MINUTE
/* ... and so long after its deletion at the least, whoever leads. */
#define KEPT_USEC (10 * USEC_PER_MINUTE)

struct Successors {
        const TerminationContext *context;
        WorkQueue *queue;
        usec_t born_usec; /* loop_now() */
};

int successors_new(const TerminationContext *context, WorkQueue *queue, Successors **ret) {
        Successors *s;

        assert(context && queue && ret);
        s = new0(Successors, 1);
        if (!s)
                return -ENOMEM;
        s->context = context;
        s->queue = queue;
        s->born_usec = loop_now(context->env->loop);
        *ret = s;
        return 0;
}

Successors *successors_free(Successors *s) {
        free(s);
        return NULL;
}

/* -- the claim ------------------------------------------------------------------------------------------ */

char *successor_claim_name(const char *replaced, int64_t attempt) {
        _cleanup_free_ char *text = strf("successor\n%s\n%" PRId64, replaced, attempt);

        return text ? strf("nc-%016llx", (unsigned long long) hash64(text, strlen(text))) : NULL;
}

char *successor_claim_body(const KubeNodePool *pool, const char *name, const char *replaced, int64_t attempt) {
        JsonWriter *w = claim_body_open(pool, name);

        if (!w)
                return NULL;
        json_open_array(w, "replaces");
        json_add_string(w, NULL, replaced);
        json_close_array(w);
        json_add_int64(w, "attempt", attempt);
        return claim_body_close(w, pool);
}

static void make_claim(Successors *s, const KubeNodePool *pool, const char *name, const char *replaced, int64_t attempt,
                       const char *key) {
        _cleanup_free_ char *body = successor_claim_body(pool, name, replaced, attempt);
        ObjectWrite w = { .what = "create",
                          .target = { .kind = &kube_node_claim_kind, .name = name },
                          .state = replaced,
                          .reconcile_key = key,
                          .also_fine = "AlreadyExists",
                          .urgent = true,
                          .rank = KUBE_RANK_FOLLOWS };

        if (!body)
                (void) work_queue_retry(s->queue, key);
        else
                (void) object_writes_create(s->context->writes, &w, body);
}

/* -- the one that goes ---------------------------------------------------------------------------------- */

/* NULL: it has no pool that could replace it. */
static const KubeNodePool *pool_that_replaces(const Successors *s, const KubeNodeClaim *claim) {
        const KubeNodePool *pool = cluster_view_pool(s->context->view, strempty(claim->node_pool));
        const CloudProvider *p = pool ? cloud_registry_chosen(s->context->cloud, claim->provider_id, pool->provider_name) : NULL;

        return pool && pool->object.meta.deletion_usec == 0 && !pool->object.invalid && cloud_provider_has(p, CLOUD_LAUNCH) &&
                               pool->disruption.on_interruption == ON_INTERRUPTION_REPLACE
                       ? pool
                       : NULL;
}

/* status.successor. name: NULL: none any more. Returns true if the write is sent. */
static bool write_successor(Successors *s, const KubeNodeClaim *claim, const char *name, bool made,
                            const char *key) {
        ObjectWrite w = { .what = made ? "note that it was made, the successor of" : "note the successor of",
                          .target = { .kind = &kube_node_claim_kind, .name = claim->object.meta.name, .subresource = "status" },
                          .state = claim->object.meta.resource_version,
                          .reconcile_key = key,
                          .urgent = !made,
                          .rank = KUBE_RANK_FOLLOWS };
        JsonWriter *json = status_patch_open(&claim->object);
        _cleanup_free_ char *body = NULL;

        if (json) {
                if (name) {
                        json_open_object(json, "successor");
                        json_add_string(json, "claim", name);
                        json_add_bool(json, "made", made);
                        json_close_object(json);
                } else
                        json_add_null(json, "successor");
                body = status_patch_close(json);
        }
        if (!body)
                (void) work_queue_retry(s->queue, key);
        return body && object_writes_patch(s->context->writes, &w, KUBE_PATCH_MERGE, body) > 0;
}

static void tell(Successors *s, const KubeNodeClaim *claim, const char *name) {
        const KubeNode *n = claim->node_name ? cluster_view_node(s->context->view, claim->node_name) : NULL;
        EventObject of_claim = event_object(&claim->object);

        log_event(s->context->env->log, LOG_LEVEL_INFO, MESSAGE_SUCCESSOR_ASKED,
                  LOG_FIELDS({ "NODE", claim->node_name }, { "NODECLAIM", name }),
                  "The machine of %s %s goes: asking for a new one in its place, as NodeClaim %s",
                  claim->node_name ? "node" : "NodeClaim",
                  claim->node_name ? claim->node_name : claim->object.meta.name, name);
        event_record(s->context->recorder, &of_claim, EVENT_NORMAL, "SuccessorAsked",
                     "Its machine goes: a new one is asked for in its place, as NodeClaim %s", name);
        if (n) {
                EventObject of_node = event_object(&n->object);

                event_record(s->context->recorder, &of_node, EVENT_NORMAL, "SuccessorAsked",
                             "The machine goes: a new one is asked for in its place, as NodeClaim %s", name);
        }
}

/* Returns the claim that the successor replaces, and the number of the attempt. */
static const char *next_of(const KubeNodeClaim *claim, int64_t *ret_attempt) {
        *ret_attempt = kube_node_claim_is_new(claim) ? claim->attempt + 1 : 1;
        return kube_node_claim_is_new(claim) ? claim->replaces[0] : claim->object.meta.name;
}

static void see_wished(Successors *s, const KubeNodeClaim *claim, const char *key) {
        const KubeNodeClaim *next = cluster_view_claim(s->context->view, claim->successor);
        const KubeNodePool *pool = pool_that_replaces(s, claim);
        const char *replaced;
        int64_t attempt;

        if (next && next->phase) { /* acknowledged: launches.c needs this claim no more */
                if (write_successor(s, claim, claim->successor, true, key))
                        tell(s, claim, claim->successor);
                return;
        }
        if (!next && pool) {
                replaced = next_of(claim, &attempt);
                make_claim(s, pool, claim->successor, replaced, attempt, key);
        }
        if (next || pool)
                (void) work_queue_add_at(s->queue, key, usec_add(loop_now(s->context->env->loop), USEC_PER_SEC));
}

bool successors_wish(Successors *s, const KubeNodeClaim *claim, const char *key) {
        _cleanup_free_ char *name = NULL;
        const char *replaced;
        int64_t attempt;

        if (claim->successor || kube_node_claim_is_standalone(claim) || !pool_that_replaces(s, claim))
                return true;
        replaced = next_of(claim, &attempt);
        if (attempt > SUCCESSOR_ATTEMPTS_MAX)
                return true;
        name = successor_claim_name(replaced, attempt);
        if (name)
                (void) write_successor(s, claim, name, false, key);
        else
                (void) work_queue_retry(s->queue, key);
        return false;
}

/* The node was to be repaired, and is well before anybody has deleted it. */
static void withdraw_wish(Successors *s, const KubeNodeClaim *claim, const char *key) {
        const KubeNode *n = claim->node_name ? cluster_view_node(s->context->view, claim->node_name) : NULL;

        if (n && n->object.meta.deletion_usec == 0 && kube_node_is_ready(n))
                (void) write_successor(s, claim, NULL, false, key);
}

/* A new machine that goes before its node takes pods is followed by the next attempt, whatever it goes for; but not one that was
 * found after its claim was deleted. */
static bool is_launched(const KubeNodeClaim *claim) {
        return claim->request.token && (claim->node_name || streq_ptr(claim->phase, CLAIM_PHASE_LAUNCHED));
}

static bool has_successor(const Successors *s, const KubeNodeClaim *claim) {
        const KubeNode *n = claim->node_name ? cluster_view_node(s->context->view, claim->node_name) : NULL;

        if (claim->object.meta.deletion_usec == 0)
                return false;
        return kube_node_claim_is_new(claim) ? is_launched(claim) : n && interruption_due(s->context->config, n, claim).replaces;
}

void successors_see_claim(Successors *s, const KubeNodeClaim *claim, const char *key) {
        if (claim->successor && !claim->successor_is_made && claim->object.meta.deletion_usec == 0)
                withdraw_wish(s, claim, key);
        else if (claim->successor && !claim->successor_is_made)
                see_wished(s, claim, key);
        else if (!claim->successor && has_successor(s, claim))
                (void) successors_wish(s, claim, key);
}

bool successors_keep(const Successors *s, const KubeNodeClaim *claim) {
        /* A claim that cannot be made (a webhook, a quota, a name that is taken) keeps no other for ever. */
        if (loop_wall(s->context->env->loop) >= usec_add(claim->object.meta.deletion_usec, KEPT_USEC) &&
            loop_now(s->context->env->loop) >= usec_add(s->born_usec, NEXT_STANDS_USEC))
                return false;
        if (kube_node_claim_is_new(claim))
                return !successors_next_stands(s, claim);
        if (claim->successor_is_made || kube_node_claim_is_standalone(claim) || !pool_that_replaces(s, claim))
                return false;
        return claim->successor || has_successor(s, claim);
}

bool successors_next_stands(const Successors *s, const KubeNodeClaim *claim) {
        usec_t due = usec_add(claim->object.meta.deletion_usec, NEXT_STANDS_USEC);

        return claim->successor_is_made || !has_successor(s, claim) || claim->attempt >= SUCCESSOR_ATTEMPTS_MAX ||
               !pool_that_replaces(s, claim) || loop_wall(s->context->env->loop) >= due;
}

const KubeNodeClaim *successor_named_by(const ClusterView *view, const KubeNodeClaim *claim) {
        _cleanup_free_ char *previous = claim->attempt > 1 ? successor_claim_name(claim->replaces[0], claim->attempt - 1) : NULL;
        const char *name = claim->attempt > 1 ? previous : claim->replaces[0];
        const KubeNodeClaim *before = name ? cluster_view_claim(view, name) : NULL;

        return before && streq_ptr(before->successor, claim->object.meta.name) && streq_ptr(before->node_pool, claim->node_pool) ? before : NULL;
}

/* -- tests ---------------------------------------------------------------------------------------------- */

void successors_next_wakeup(const Successors *s, Wakeups *w) {
        const KubeNodeClaim *claim;

        for (HashmapIterator it = {}; cluster_view_iterate_claims(s->context->view, &it, &claim);) {
                _cleanup_free_ char *key = NULL;

                if (claim->object.meta.deletion_usec == 0 || !successors_keep(s, claim))
                        continue;
                key = strf("claim/%s", claim->object.meta.name);
                wakeups_unfinished(w, "successor", claim->object.meta.name, "not made yet", OBJECT_WRITES_WAKEUP_USEC);
                wakeups_key(w, s->queue, key);
                wakeups_await(w, object_writes_are_under_way(s->context->writes, &kube_node_claim_kind, NULL, claim->object.meta.name) ||
                                     (claim->successor && object_writes_are_under_way(s->context->writes, &kube_node_claim_kind, NULL, claim->successor)));
        }
}
