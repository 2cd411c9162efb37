/* SPDX-License-Identifier: Apache-2.0 */
#include "explain-told.h"

#include "ctl-say.h"
#include "marks.h"

/* The conditions in the order in which they are printed, and NULL. */
static const char *const told_types[] = { CLAIM_EXPIRED, CLAIM_DRIFTED, CLAIM_EMPTY, CLAIM_CONSOLIDATABLE, NULL };

static const Condition *told(const KubeNodeClaim *claim, const char *type) {
        return claim ? kube_node_claim_condition(claim, type) : NULL;
}

static void add_condition(CtlTable *t, const Condition *c, usec_t now_usec) {
        _cleanup_strbuf_ StrBuf age = {};

        if (c->last_transition_usec > 0 && c->last_transition_usec <= now_usec)
                ctl_add_age(&age, now_usec - c->last_transition_usec);
        ctl_table_add(t, c->type);
        ctl_table_add(t, condition_status_to_string(c->status));
        ctl_table_add(t, strbuf_str(&age));
        ctl_table_add(t, c->reason);
        ctl_table_add(t, c->message);
}

char *explain_told_text(const ExplainFacts *f) {
        static const char *const heads[] = { "CONDITION", "STATUS", "FOR", "REASON", "WHY" };
        const KubeNodeClaim *claim = explain_claim(f);
        _cleanup_(ctl_table_done) CtlTable t = CTL_TABLE(ELEMENTSOF(heads));
        _cleanup_strbuf_ StrBuf b = {};
        bool is_told = false;
        size_t from;

        for (size_t i = 0; i < ELEMENTSOF(heads); i++)
                ctl_table_add(&t, heads[i]);
        for (const char *const *type = told_types; *type; type++)
                if (told(claim, *type)) {
                        add_condition(&t, told(claim, *type), f->now_usec);
                        is_told = true;
                }
        if (!is_told)
                return strdup("");
        strbuf_add(&b, "\nWhether it would go though nobody asked, as the coordinator says on NodeClaim ");
        from = b.size;
        strbuf_add(&b, claim->object.meta.name);
        ctl_make_plain(&b, from);
        strbuf_add(&b, " (nothing is removed for that):\n\n");
        ctl_table_print(&t, &b);
        return strbuf_steal(&b);
}

char *explain_told_json(const ExplainFacts *f) {
        const KubeNodeClaim *claim = explain_claim(f);
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_array(w, NULL);
        for (const char *const *type = told_types; *type; type++) {
                const Condition *c = told(claim, *type);

                if (!c)
                        continue;
                json_open_object(w, NULL);
                json_add_string(w, "type", c->type);
                json_add_string(w, "status", condition_status_to_string(c->status));
                json_add_string(w, "reason", c->reason);
                json_add_string(w, "message", c->message);
                if (c->last_transition_usec > 0)
                        json_add_time(w, "since", c->last_transition_usec);
                json_close_object(w);
        }
        json_close_array(w);
        return json_writer_steal(w, NULL);
}
