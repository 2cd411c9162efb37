/* SPDX-License-Identifier: Apache-2.0 */
#include "explain-told.h"

#include "ctl-say.h"
#include "marks.h"

static const char *const told_types[] = { CLAIM_EXPIRED, CLAIM_DRIFTED, CLAIM_EMPTY, CLAIM_CONSOLIDATABLE };

static const Condition *told(const KubeNodeClaim *claim, size_t i) {
        return claim ? kube_node_claim_condition(claim, told_types[i]) : NULL;
}

static bool is_told(const KubeNodeClaim *claim) {
        for (size_t i = 0; i < ELEMENTSOF(told_types); i++)
                if (told(claim, i))
                        return true;
        return false;
}

char *explain_told_text(const ExplainFacts *f) {
        const KubeNodeClaim *claim = explain_claim(f);
        CtlTable t = CTL_TABLE(5);
        _cleanup_strbuf_ StrBuf b = {};
        size_t from;

        if (!is_told(claim))
                return strdup("");
        strbuf_add(&b, "\nWhether it would go though nobody asked, as the coordinator says on NodeClaim ");
        from = b.size;
        strbuf_add(&b, claim->object.meta.name);
        ctl_make_plain(&b, from);
        strbuf_add(&b, " (nothing is removed for that):\n\n");
        ctl_table_add(&t, "CONDITION");
        ctl_table_add(&t, "STATUS");
        ctl_table_add(&t, "FOR");
        ctl_table_add(&t, "REASON");
        ctl_table_add(&t, "WHY");
        for (size_t i = 0; i < ELEMENTSOF(told_types); i++) {
                const Condition *c = told(claim, i);
                _cleanup_strbuf_ StrBuf age = {};

                if (!c)
                        continue;
                if (c->last_transition_usec > 0 && c->last_transition_usec <= f->now_usec)
                        ctl_add_age(&age, f->now_usec - c->last_transition_usec);
                ctl_table_add(&t, c->type);
                ctl_table_add(&t, condition_status_to_string(c->status));
                ctl_table_add(&t, strbuf_str(&age));
                ctl_table_add(&t, c->reason);
                ctl_table_add(&t, c->message);
        }
        ctl_table_print(&t, &b);
        ctl_table_done(&t);
        return strbuf_steal(&b);
}

char *explain_told_json(const ExplainFacts *f) {
        const KubeNodeClaim *claim = explain_claim(f);
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_array(w, NULL);
        for (size_t i = 0; i < ELEMENTSOF(told_types); i++) {
                const Condition *c = told(claim, i);

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
