/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl-held.h"

#include "heard-conditions.h"
#include "marks.h"
#include "string-util.h"

/* Maximum number of notices that a text names. */
#define NAMED_MAX 3u

HeldNotices held_notices(const KubeNode *node, const KubeNodeClaim *claim) {
        if (claim)
                return (HeldNotices){ .object = &claim->object, .announced = &claim->announced, .let_go_usec = claim->let_go_usec, .provider_id = claim->provider_id };
        if (node)
                return (HeldNotices){ .object = &node->object, .announced = &node->announced, .let_go_usec = node->let_go_usec, .provider_id = node->provider_id };
        return (HeldNotices){};
}

const Announced *held_first(const HeldNotices *h, AnnouncedState state) {
        return h->announced ? announced_list_first(h->announced, state) : NULL;
}

usec_t held_received_usec(const HeldNotices *h) {
        usec_t last = 0;

        for (size_t i = 0; h->announced && i < h->announced->n_items; i++)
                if (h->announced->items[i].state == ANNOUNCED_HELD)
                        last = MAX(last, h->announced->items[i].notice->received_usec);
        return held_first(h, ANNOUNCED_HELD) ? MAX(last, USEC_PER_SEC) : 0;
}

HeldState held_state(const HeldNotices *h) {
        HeldState state = HELD_NOTHING;

        for (size_t i = 0; h->announced && i < h->announced->n_items; i++) {
                const Announced *a = h->announced->items + i;

                if (a->state == ANNOUNCED_HELD && !announced_is_let_go(a, h->let_go_usec))
                        return HELD_HELD;
                if (a->state == ANNOUNCED_HELD)
                        state = HELD_LET_GO;
        }
        return state;
}

char *held_text(const HeldNotices *h) {
        _cleanup_strbuf_ StrBuf b = {};
        size_t n = 0;

        for (size_t i = 0; h->announced && i < h->announced->n_items; i++) {
                const Announced *a = h->announced->items + i;
                _cleanup_free_ char *one = NULL;
                char when[RFC3339_MAX];

                if (a->state != ANNOUNCED_HELD || n++ >= NAMED_MAX)
                        continue;
                one = heard_announced_text(a->notice);
                b.failed = b.failed || !one;
                strbuf_addf(&b, "%s%s", n > 1 ? "; " : "", strempty(one));
                if (a->notice->received_usec == 0)
                        continue;
                rfc3339_format(a->notice->received_usec, when);
                strbuf_addf(&b, ", received at %s", when);
        }
        if (n > NAMED_MAX)
                strbuf_addf(&b, "; and %zu more (annotation " ANNOTATION_ANNOUNCED ")", n - NAMED_MAX);
        return strbuf_steal(&b);
}

/* -- the line ------------------------------------------------------------------------------------------- */

static void add_nothing(StrBuf *b, const HeldNotices *h) {
        _cleanup_free_ char *announced = h->announced ? heard_announced_list_text(h->announced, NULL, NULL) : strdup("");

        b->failed = b->failed || !announced;
        strbuf_add(b, "the brake of the interruption queue holds nothing of it.");
        if (!isempty(announced))
                strbuf_addf(b, " The queue announced %s. The brake does not hold these notices.", announced);
}

/* Returns true if vesper, once the notices are let go, ends the machine. */
static bool ends_machine(const HeldNotices *h) {
        for (size_t i = 0; i < h->announced->n_items; i++)
                if (h->announced->items[i].state == ANNOUNCED_HELD && notice_ends_for_good(h->announced->items[i].notice))
                        return h->object->kind == &kube_node_claim_kind;
        return false;
}

/* Returns the first time among the held notices; USEC_INFINITY: none has one. */
static usec_t first_end_usec(const HeldNotices *h) {
        usec_t first = USEC_INFINITY;

        for (size_t i = 0; i < h->announced->n_items; i++)
                if (h->announced->items[i].state == ANNOUNCED_HELD)
                        first = MIN(first, notice_announced(h->announced->items[i].notice));
        return first;
}

/* The line says which machine it is, so that its reader can ask the cloud about that. */
static void add_machine(StrBuf *b, const HeldNotices *h) {
        if (h->provider_id)
                strbuf_addf(b, " (machine %s)", h->provider_id);
}

static void add_consequence(StrBuf *b, const HeldNotices *h) {
        bool ends = ends_machine(h), is_deleted = h->object->meta.deletion_usec > 0;
        usec_t end = first_end_usec(h);
        char when[RFC3339_MAX];

        strbuf_add(b, is_deleted ? ". The node is being removed. Once the notice is let go, vesper " : ". Once it is let go, vesper ");
        if (ends && !is_deleted)
                strbuf_add(b, "deletes its NodeClaim, ");
        if (end != USEC_INFINITY) {
                rfc3339_format(end, when);
                strbuf_addf(b, "gives its pods until %s at most, whatever their PodDisruptionBudgets allow", when);
        } else
                strbuf_add(b, ends ? "drains the node" : "goes on with the drain");
        strbuf_add(b, !ends ? ". It leaves the machine to its cloud." : end != USEC_INFINITY ? ", and ends its machine." : " and ends its machine.");
}

char *held_line(const HeldNotices *h, const char *name) {
        _cleanup_free_ char *announced = held_text(h);
        _cleanup_strbuf_ StrBuf b = {};

        b.failed = !announced;
        strbuf_add(&b, name);
        if (held_state(h) == HELD_HELD)
                add_machine(&b, h);
        strbuf_add(&b, ": ");
        switch (held_state(h)) {
        case HELD_NOTHING:
                add_nothing(&b, h);
                break;
        case HELD_HELD:
                strbuf_addf(&b, "the interruption queue announced %s", strempty(announced));
                add_consequence(&b, h);
                break;
        case HELD_LET_GO:
                strbuf_add(&b, "somebody has let it go already (annotation " ANNOTATION_LET_GO "). The leading coordinator acts on that.");
                break;
        }
        return strbuf_steal(&b);
}

char *held_let_go_patch(const HeldNotices *h) {
        char when[RFC3339_MAX];

        rfc3339_format(held_received_usec(h), when);
        return annotations_patch(&(const KeyValue){ ANNOTATION_LET_GO, when }, 1);
}
