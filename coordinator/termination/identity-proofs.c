/* SPDX-License-Identifier: Apache-2.0 */
#include "identity-proofs.h"

#include "backoff.h"
#include "machine-facts.h"
#include "string-util.h"

/* So long the claim's first status waits, to be written with the answer. */
#define SOON_USEC (5 * USEC_PER_SEC)
#define METHOD_PROVIDER_ID "ProviderID"

/* One Node. */
typedef struct NodeProof {
        IdentityProofs *proofs;
        char *node, *uid, *key, *pool;
        bool trusted; /* its pool takes providerIDs for proof */
        IdentityProofState state;
        char *instance_id, *region, *message;
        const char *method, *reason; /* static */
        usec_t begun_usec, again_usec; /* loop_now() */
        CloudCall *call;
        Backoff backoff;
} NodeProof;

struct IdentityProofs {
        const TerminationContext *context;
        WorkQueue *queue;
        Hashmap *map; /* node -> NodeProof */
};

static void *node_proof_free(void *userdata) {
        NodeProof *x = userdata;

        cloud_call_free(x->call);
        free(x->node);
        free(x->uid);
        free(x->key);
        free(x->pool);
        free(x->instance_id);
        free(x->region);
        free(x->message);
        free(x);
        return NULL;
}

int identity_proofs_new(const TerminationContext *context, WorkQueue *queue, IdentityProofs **ret) {
        _cleanup_(identity_proofs_freep) IdentityProofs *p = NULL;
        int r;

        assert(context && queue && ret);
        p = new0(IdentityProofs, 1);
        if (!p)
                return -ENOMEM;
        p->context = context;
        p->queue = queue;
        r = hashmap_new(HASHMAP_BORROW_KEYS, &p->map);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(p);
        return 0;
}

IdentityProofs *identity_proofs_free(IdentityProofs *p) {
        if (!p)
                return NULL;
        hashmap_free_with(p->map, node_proof_free);
        free(p);
        return NULL;
}

void identity_proofs_forget(IdentityProofs *p, const char *node) {
        NodeProof *x = hashmap_remove(p->map, node);

        if (x)
                node_proof_free(x);
}

static int node_proof_new(IdentityProofs *p, const KubeNode *n, const KubeNodePool *pool, const char *key,
                          NodeProof **ret) {
        NodeProof *x = new0(NodeProof, 1);
        int r;

        if (!x)
                return -ENOMEM;
        x->proofs = p;
        x->trusted = pool && pool->trusts_provider_ids;
        x->begun_usec = loop_now(p->context->env->loop);
        x->state = IDENTITY_PROOF_PENDING;
        x->backoff = (Backoff){ .base_usec = 5 * USEC_PER_SEC,
                                .cap_usec = 10 * USEC_PER_MINUTE,
                                .jitter_permille = 200 };
        if (free_and_strdup(&x->node, n->object.meta.name) < 0 ||
            free_and_strdup(&x->uid, n->object.meta.uid) < 0 || free_and_strdup(&x->key, key) < 0 ||
            free_and_strdup(&x->pool, pool ? pool->object.meta.name : NULL) < 0)
                r = -ENOMEM;
        else
                r = hashmap_put(p->map, x->node, x);
        if (r < 0) {
                node_proof_free(x);
                return r;
        }
        *ret = x;
        return 0;
}

/* -- the answer ----------------------------------------------------------------------------------------- */

static void node_proof_set_unproved(NodeProof *x, const char *reason, const char *message) {
        free(x->message);
        x->message = machine_unproved_message(message, x->pool);
        x->reason = reason;
        x->state = x->message ? IDENTITY_PROOF_UNPROVED : IDENTITY_PROOF_PENDING;
}

static void node_proof_set_proved(NodeProof *x, const CloudIdentity *i, const char *method) {
        x->method = method;
        x->state = IDENTITY_PROOF_PROVED;
        if (free_and_strdup(&x->instance_id, i->instance_id) < 0 ||
            free_and_strdup(&x->region, i->region) < 0)
                x->state = IDENTITY_PROOF_PENDING;
}

/* What passes by itself says nothing about the Node. */
static void node_proof_judge(NodeProof *x, const CloudResult *result) {
        bool exists = result->state == INSTANCE_PRESENT || result->state == INSTANCE_OFF;

        x->state = IDENTITY_PROOF_PENDING;
        switch (result->outcome) {
        case CLOUD_OK:
                if (result->state == INSTANCE_UNKNOWN)
                        node_proof_set_unproved(x, "CloudUnknown", result->message);
                else if (exists && result->identity.method)
                        node_proof_set_proved(x, &result->identity, result->identity.method);
                else if (exists && x->trusted)
                        node_proof_set_proved(x, &result->identity, METHOD_PROVIDER_ID);
                else if (exists)
                        node_proof_set_unproved(x, "NotProved", result->unproved);
                return;
        case CLOUD_RETRY:
                return;
        case CLOUD_PROTECTED:
        case CLOUD_DENIED:
                node_proof_set_unproved(x, "CloudDenied", result->message);
                return;
        case CLOUD_INVALID:
                node_proof_set_unproved(x, "CloudRefused", result->message);
                return;
        case CLOUD_NO_CAPACITY:
        case CLOUD_AT_MINIMUM:
        case _CLOUD_OUTCOME_MAX:
                break;
        }
        assert(false && "a describe with another operation's outcome");
}

static void node_proof_ask_later(NodeProof *x, usec_t retry_after_usec) {
        const Env *env = x->proofs->context->env;
        usec_t delay = backoff_next(&x->backoff, env->random);

        x->again_usec = usec_add(loop_now(env->loop), MAX(delay, retry_after_usec));
}

static void on_described(const CloudResult *result, void *userdata) {
        NodeProof *x = userdata;

        node_proof_judge(x, result);
        if (x->state != IDENTITY_PROOF_PROVED)
                node_proof_ask_later(x, result->retry_after_usec);
        x->call = cloud_call_free(x->call);
        (void) work_queue_add(x->proofs->queue, x->key);
}

/* -- the question --------------------------------------------------------------------------------------- */

static void node_proof_describe(NodeProof *x, const MachineFacts *facts) {
        if (x->call || x->state == IDENTITY_PROOF_PROVED || isempty(facts->machine.provider_id))
                return;
        if (loop_now(x->proofs->context->env->loop) >= x->again_usec) {
                if (cloud_describe(facts->provider, &facts->machine, on_described, x, &x->call) >= 0)
                        return;
                node_proof_ask_later(x, 0);
        }
        (void) work_queue_add_at(x->proofs->queue, x->key, x->again_usec);
}

static bool identity_is_kept(const KubeNodeClaim *claim, bool trusted) {
        return claim && claim->identity.method && claim->identity.instance_id &&
               (trusted || !streq(claim->identity.method, METHOD_PROVIDER_ID));
}

static IdentityProof node_proof_tell(const NodeProof *x) {
        usec_t until = usec_add(x->begun_usec, SOON_USEC);
        bool pending = x->state == IDENTITY_PROOF_PENDING;
        IdentityProof told = { .state = x->state,
                               .soon = pending && x->call &&
                                       loop_now(x->proofs->context->env->loop) < until,
                               .instance_id = x->instance_id,
                               .region = x->region,
                               .method = x->method,
                               .reason = x->reason,
                               .message = x->message };

        if (told.soon)
                (void) work_queue_add_at(x->proofs->queue, x->key, until);
        return told;
}

IdentityProof identity_proofs_ask(IdentityProofs *p, const KubeNode *n, const KubeNodeClaim *claim,
                                  const KubeNodePool *pool, const char *key) {
        bool trusted = pool && pool->trusts_provider_ids;
        MachineFacts facts;
        NodeProof *x;

        (void) machine_facts_fill(&facts, p->context->cloud, n, claim, pool ? pool->provider_name : NULL);
        if (!facts.provider->ops->proves_identity || identity_is_kept(claim, trusted)) {
                identity_proofs_forget(p, n->object.meta.name);
                return (IdentityProof){ .state = IDENTITY_PROOF_NONE };
        }
        x = hashmap_get(p->map, n->object.meta.name);
        if (x && (!streq(x->uid, n->object.meta.uid) || x->trusted != trusted)) {
                identity_proofs_forget(p, n->object.meta.name);
                x = NULL;
        }
        if (!x) {
                if (node_proof_new(p, n, pool, key, &x) < 0) {
                        (void) work_queue_retry(p->queue, key);
                        return (IdentityProof){ .state = IDENTITY_PROOF_PENDING };
                }
        }
        node_proof_describe(x, &facts);
        return node_proof_tell(x);
}

void identity_proofs_next_wakeup(const IdentityProofs *p, Wakeups *w) {
        const NodeProof *x;

        HASHMAP_FOREACH (x, p->map) {
                if (x->state == IDENTITY_PROOF_PROVED ||
                    (!x->call && x->again_usec == 0)) /* no describe is to be sent yet */
                        continue;
                wakeups_unfinished(w, "proof of node", x->node,
                                   x->state == IDENTITY_PROOF_UNPROVED ? "unproved" : "pending",
                                   MAX(IDENTITY_PROOF_WAKEUP_USEC, usec_sub(x->again_usec, w->now_usec)));
                wakeups_key(w, p->queue, x->key);
                wakeups_await(w, x->call);
        }
}
