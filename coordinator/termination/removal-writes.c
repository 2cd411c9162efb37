/* SPDX-License-Identifier: Apache-2.0 */
#include "removal-writes.h"

#include "marks.h"
#include "string-util.h"
#include "strv.h"
#include "termination-marks.h"

#define LAST_WORD_USEC (10 * USEC_PER_SEC)
/* Maximum time for which a claim whose machine has gone waits for its successor. */
#define SUCCESSOR_USEC USEC_PER_MINUTE

#define CORDON "cordon and taint"
#define FINALIZE "take the finalizer off"

int removal_writes_init(RemovalWrites *w) {
        w->key = strf("node/%s", w->node);
        return w->key ? 0 : -ENOMEM;
}

void removal_writes_done(RemovalWrites *w) {
        w->key = mfree(w->key);
}

KubeRank removal_writes_rank(usec_t deadline_usec) {
        return deadline_usec == USEC_INFINITY ? KUBE_RANK_FOLLOWS : KUBE_RANK_FIRST;
}

static ObjectWrite write_on(const RemovalWrites *w, const char *what, const KubeObject *o) {
        return (ObjectWrite){ .what = what,
                              .target = { .kind = o->kind, .name = o->meta.name },
                              .state = o->meta.resource_version,
                              .reconcile_key = w->key,
                              .urgent = true };
}

/* -- its beginning -------------------------------------------------------------------------------------- */

void removal_writes_cordon(RemovalWrites *w, const KubeNode *n, const char *body) {
        ObjectWrite o = write_on(w, CORDON, &n->object);

        (void) object_writes_patch(w->context->writes, &o, KUBE_PATCH_MERGE, body);
}

bool removal_writes_cordon_fails(RemovalWrites *w, const KubeNode *n) {
        ObjectWrite o = write_on(w, CORDON, &n->object);

        return object_writes_failing(w->context->writes, &o);
}

/* The other half of the cascade. */
void removal_writes_delete_claim(RemovalWrites *w, const KubeNodeClaim *claim, KubeRank rank) {
        ObjectWrite o = write_on(w, "delete", &claim->object);

        if (claim->object.meta.deletion_usec > 0)
                return;
        o.state = claim->object.meta.uid; /* of it there may be versions from before still to be seen */
        /* T begins with the claim's deletion. */
        o.rank = claim->termination_grace_usec == USEC_INFINITY ? rank : KUBE_RANK_FIRST;
        (void) object_writes_delete(w->context->writes, &o, claim->object.meta.uid, NULL);
}

/* -- its end -------------------------------------------------------------------------------------------- */

bool removal_writes_is_anothers(const KubeObject *o) {
        return strv_length(o->meta.finalizers) >
               (object_meta_has_finalizer(&o->meta, FINALIZER_TERMINATION) ? 1u : 0u);
}

/* True: it is off. */
static bool finalize(RemovalWrites *w, const KubeObject *object, KubeRank rank) {
        ObjectWrite o = write_on(w, FINALIZE, object);
        _cleanup_free_ char *body = NULL;
        int r = termination_finalizer_patch(object, &body);

        o.rank = rank;
        if (r > 0)
                (void) object_writes_patch(w->context->writes, &o, KUBE_PATCH_MERGE, body);
        return r == 0;
}

/* For so long a claim that somebody else keeps is waited for. */
static bool last_word_is_told(const RemovalWrites *w, const KubeNodeClaim *claim, const ClaimStatus *status) {
        usec_t now = loop_now(w->context->env->loop);

        if (!claim || !status || !removal_writes_is_anothers(&claim->object) || claim_status_is_told(status) ||
            now >= usec_add(w->finishing_usec, LAST_WORD_USEC))
                return true;
        w->context->requeue(w->node, usec_add(now, USEC_PER_SEC), w->context->userdata);
        return false;
}

/* Only this claim says that it is to have a successor, that the one named in status.successor is vesper's own,
 * and what that machine is to be like. */
static bool successor_is_awaited(const RemovalWrites *w, const KubeNodeClaim *claim) {
        usec_t now = loop_now(w->context->env->loop);

        if (!w->context->keeps_claim(claim, w->context->userdata) ||
            now >= usec_add(w->finishing_usec, SUCCESSOR_USEC))
                return false;
        w->context->requeue(w->node, usec_add(now, USEC_PER_SEC), w->context->userdata);
        return true;
}

bool removal_writes_finish(RemovalWrites *w, const KubeNode *n, const KubeNodeClaim *claim, const ClaimStatus *status, KubeRank rank) {
        bool node_is_off = true, is_awaited;

        /* Its deletion is still to be seen. If the Node has left before that, etcd was restored from a backup, and orphan.c
         * has the claim. */
        if (claim && claim->object.meta.deletion_usec == 0)
                return !n;
        is_awaited = claim && successor_is_awaited(w, claim);
        if (is_awaited && !claim->successor)
                return false; /* the notice on the Node says that there is to be one */
        if (claim && !is_awaited)
                (void) finalize(w, &claim->object, rank);
        if (n)
                node_is_off = finalize(w, &n->object, rank);
        return node_is_off && (!claim || !object_meta_has_finalizer(&claim->object.meta, FINALIZER_TERMINATION)) &&
               last_word_is_told(w, claim, status);
}
