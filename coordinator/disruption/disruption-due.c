/* SPDX-License-Identifier: Apache-2.0 */
#include "disruption-due.h"

#include "disruption-drift.h"
#include "marks.h"
#include "string-util.h"

#define JITTER_MAX_USEC USEC_PER_DAY

static void add_time(StrBuf *b, usec_t wall_usec) {
        char time[RFC3339_MAX];

        rfc3339_format(wall_usec, time);
        strbuf_add(b, time);
}

/* -- expiration ----------------------------------------------------------------------------------------- */

usec_t node_expires_usec(const DisruptionScene *s, uint32_t node) {
        const DisruptionNode *n = s->nodes + node;
        usec_t ttl = n->pool ? n->pool->pool->disruption.expire_after_usec : USEC_INFINITY, jitter;
        const char *uid = strempty(scene_node(s, node)->object.meta.uid);

        if (ttl == USEC_INFINITY)
                return USEC_INFINITY;
        jitter = MIN(ttl / 10, JITTER_MAX_USEC);
        if (jitter > 0)
                ttl -= hash64(uid, strlen(uid)) % jitter;
        return usec_add(n->created_usec, ttl);
}

usec_t node_expires_hard_usec(const DisruptionScene *s, uint32_t node) {
        const DisruptionNode *n = s->nodes + node;

        return n->pool ? usec_add(n->created_usec, n->pool->pool->disruption.expire_hard_after_usec) : USEC_INFINITY;
}

int node_due_by_expiry(const DisruptionScene *s, uint32_t node, NodeDue *ret, GateFindings *f) {
        usec_t at = node_expires_usec(s, node), hard = node_expires_hard_usec(s, node);
        bool by_force = hard <= s->now_usec;
        _cleanup_strbuf_ StrBuf b = {};

        if (at == USEC_INFINITY && !by_force) {
                gate_add(f, GATE_DISABLED, NULL, USEC_INFINITY, strdup("spec.disruption.expireAfter of its pool is not set"));
                return f->failed ? -ENOMEM : 0;
        }
        if (at > s->now_usec && !by_force) {
                strbuf_add(&b, "it expires at ");
                add_time(&b, at);
                gate_add(f, GATE_NOT_EXPIRED, NULL, at, strbuf_steal(&b));
                return f->failed ? -ENOMEM : 0;
        }
        strbuf_add(&b, by_force ? "past its hard deadline since " : "expired since ");
        add_time(&b, by_force ? hard : at);
        *ret = (NodeDue){ .since_usec = MIN(at, hard), .by_force = by_force, .why = strbuf_steal(&b) };
        return ret->why ? 1 : -ENOMEM;
}

/* -- drift ---------------------------------------------------------------------------------------------- */

int node_due_by_drift(const DisruptionScene *s, uint32_t node, NodeDue *ret, GateFindings *f) {
        const DisruptionNode *n = s->nodes + node;
        const Condition *marked = n->claim ? kube_node_claim_condition(n->claim, CLAIM_DRIFTED) : NULL;
        char *why = NULL;
        int r;

        if (!n->pool->pool->disruption.drift) {
                gate_add(f, GATE_DISABLED, NULL, USEC_INFINITY, strdup("spec.disruption.drift of its pool is not Auto"));
                return f->failed ? -ENOMEM : 0;
        }
        r = node_drift(simulator_node(s->simulator, node), n->claim, n->pool->pool, &why);
        if (r < 0)
                return r;
        if (!why) {
                gate_add(f, GATE_NOT_DRIFTED, NULL, USEC_INFINITY, strdup("it is as its pool says"));
                return f->failed ? -ENOMEM : 0;
        }
        *ret = (NodeDue){ .since_usec = marked && marked->status == CONDITION_TRUE ? marked->last_transition_usec : n->created_usec,
                          .why = why };
        return 1;
}

/* -- emptiness ------------------------------------------------------------------------------------------ */

/* A pod that is deleted leaves no trace: without a claim that says so it may have been emptied later than objects show. */
static void add_empty_since(StrBuf *b, const DisruptionNode *n) {
        strbuf_add(b, "empty since ");
        add_time(b, n->empty_since_usec);
        if (!n->is_empty_since_known)
                strbuf_add(b, " or later");
}

/* That something that moves is on it, or was until too lately. */
static void gate_empty_since(const DisruptionScene *s, uint32_t node, usec_t after_usec, GateFindings *f) {
        const DisruptionNode *n = s->nodes + node;
        usec_t due = usec_add(n->empty_since_usec, after_usec);
        _cleanup_strbuf_ StrBuf b = {};

        if (n->n_moving > 0) {
                gate_add(f, GATE_NOT_EMPTY, NULL, USEC_INFINITY,
                         strf("it runs %zu pod%s that would have to move", n->n_moving, n->n_moving == 1 ? "" : "s"));
                return;
        }
        if (due <= s->now_usec)
                return;
        strbuf_add(&b, "it has been ");
        add_empty_since(&b, n);
        strbuf_add(&b, ", and may go at ");
        add_time(&b, due);
        gate_add(f, GATE_QUIET_PERIOD, NULL, due, strbuf_steal(&b));
}

char *empty_since_text(const DisruptionScene *s, uint32_t node) {
        _cleanup_strbuf_ StrBuf b = {};

        add_empty_since(&b, s->nodes + node);
        return strbuf_steal(&b);
}

void gate_emptiness(const DisruptionScene *s, uint32_t node, GateFindings *f) {
        usec_t after = s->nodes[node].pool->pool->disruption.empty_after_usec;

        if (after == USEC_INFINITY) {
                gate_add(f, GATE_DISABLED, NULL, USEC_INFINITY, strdup("spec.disruption.emptyAfter of its pool is not set"));
                return;
        }
        gate_node(s, node, s->nodes[node].n_moving == 0 ? GATE_FOR_GOOD : 0, f);
        gate_empty_since(s, node, after, f);
}

/* -- consolidation -------------------------------------------------------------------------------------- */

char *pods_fit_text(const DisruptionScene *s, uint32_t node) {
        size_t n = s->nodes[node].n_moving;

        return strf("its %zu pod%s fit%s on other nodes", n, n == 1 ? "" : "s", n == 1 ? "s" : "");
}

static void gate_quiet(const DisruptionScene *s, uint32_t node, usec_t after_usec, GateFindings *f) {
        const DisruptionNode *n = s->nodes + node;
        usec_t due = usec_add(n->quiet_since_usec, after_usec);
        _cleanup_strbuf_ StrBuf b = {};

        if (due <= s->now_usec)
                return;
        strbuf_add(&b, "its pods changed, as far as is known, or it became Ready, at ");
        add_time(&b, n->quiet_since_usec);
        strbuf_add(&b, ": it may go at ");
        add_time(&b, due);
        gate_add(f, GATE_QUIET_PERIOD, NULL, due, strbuf_steal(&b));
}

void gate_consolidation(const DisruptionScene *s, uint32_t node, GateFindings *f) {
        const DisruptionNode *n = s->nodes + node;
        const PoolDisruption *d = &n->pool->pool->disruption;

        if (d->consolidation == CONSOLIDATION_NEVER) {
                gate_add(f, GATE_DISABLED, NULL, USEC_INFINITY,
                         strdup("spec.disruption.consolidation.policy of its pool is not set"));
                return;
        }
        gate_node(s, node, GATE_FOR_CONSOLIDATION | GATE_FOR_GOOD, f);
        if (n->n_moving > 0 && d->consolidation == CONSOLIDATION_WHEN_EMPTY)
                gate_add(f, GATE_WHEN_EMPTY_ONLY, NULL, USEC_INFINITY,
                         strf("its pool consolidates empty nodes only, and it runs %zu pod%s that would have to move", n->n_moving,
                              n->n_moving == 1 ? "" : "s"));
        if (n->n_moving == 0)
                gate_empty_since(s, node, d->consolidate_after_usec, f);
        else
                gate_quiet(s, node, d->consolidate_after_usec, f);
}
