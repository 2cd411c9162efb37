/* SPDX-License-Identifier: Apache-2.0 */
#include "outlook-rule.h"

#include <ctype.h>

#include "marks.h"
#include "string-util.h"

const char *const outlook_word_names[_OUTLOOK_WORD_MAX + 1] = {
        [OUTLOOK_WOULD_GO] = "would_go",
        [OUTLOOK_NOT_DUE] = "not_due",
        [OUTLOOK_BUDGET] = "budget",
        [OUTLOOK_NO_FEASIBLE_SCHEDULE] = "no_feasible_schedule",
        [OUTLOOK_SAME_OR_MORE_EXPENSIVE_REPLACEMENT] = "same_or_more_expensive_replacement",
        [OUTLOOK_POOL_LIMIT] = "pool_limit",
        [OUTLOOK_PDB] = "pdb",
        [OUTLOOK_OPT_OUT] = "opt_out",
        [OUTLOOK_QUIET_PERIOD] = "quiet_period",
        [OUTLOOK_OUTSIDE_WINDOW] = "outside_window",
        [OUTLOOK_PAUSED] = "paused",
        [OUTLOOK_NOT_READY] = "not_ready",
        [OUTLOOK_NOMINATED] = "nominated",
        [OUTLOOK_UNKNOWN] = "unknown",
};

const char *const outlook_method_names[_PLAN_METHOD_MAX + 1] = {
        [PLAN_EXPIRATION] = "expired",
        [PLAN_DRIFT] = "drifted",
        [PLAN_EMPTINESS] = "empty",
        [PLAN_CONSOLIDATION] = "underutilized",
};

/* Of each code its word, and whether people are told by an Event: of what holds a node that they may expect to go, and not of
 * what a pool says, or passes with time. */
static const struct {
        OutlookWord word;
        bool is_told;
} codes[_GATE_CODE_MAX] = {
        [GATE_NOT_MANAGED] = { OUTLOOK_NOT_READY, false },
        [GATE_DELETING] = { OUTLOOK_NOT_READY, false },
        [GATE_NOT_INITIALISED] = { OUTLOOK_NOT_READY, false },
        [GATE_NOMINATED] = { OUTLOOK_NOMINATED, false },
        [GATE_NODE_OPT_OUT] = { OUTLOOK_OPT_OUT, true },
        [GATE_POOL_INVALID] = { OUTLOOK_UNKNOWN, false },
        [GATE_PAUSED] = { OUTLOOK_PAUSED, false },
        [GATE_SNAPSHOT_INCOMPLETE] = { OUTLOOK_UNKNOWN, true },
        [GATE_POD_OPT_OUT] = { OUTLOOK_OPT_OUT, true },
        [GATE_NAKED_POD] = { OUTLOOK_OPT_OUT, true },
        [GATE_MULTI_PDB] = { OUTLOOK_PDB, true },
        [GATE_PDB_IMPOSSIBLE] = { OUTLOOK_PDB, true },
        [GATE_PDB_BLOCKS] = { OUTLOOK_PDB, true },
        [GATE_DISABLED] = { OUTLOOK_NOT_DUE, false },
        [GATE_NOT_EXPIRED] = { OUTLOOK_NOT_DUE, false },
        [GATE_NOT_DRIFTED] = { OUTLOOK_NOT_DUE, false },
        [GATE_NOT_EMPTY] = { OUTLOOK_NOT_DUE, false },
        [GATE_WHEN_EMPTY_ONLY] = { OUTLOOK_NOT_DUE, false },
        [GATE_QUIET_PERIOD] = { OUTLOOK_QUIET_PERIOD, false },
        [GATE_DESTINATION] = { OUTLOOK_NOT_DUE, false },
        [GATE_OUTSIDE_WINDOW] = { OUTLOOK_OUTSIDE_WINDOW, false },
        [GATE_BUDGET] = { OUTLOOK_BUDGET, false },
        [GATE_NODE_BUDGET] = { OUTLOOK_BUDGET, false },
        [GATE_UNMODELLED] = { OUTLOOK_UNKNOWN, true },
        [GATE_PRICE_UNKNOWN] = { OUTLOOK_SAME_OR_MORE_EXPENSIVE_REPLACEMENT, true },
        [GATE_NO_CHEAPER] = { OUTLOOK_SAME_OR_MORE_EXPENSIVE_REPLACEMENT, true },
        [GATE_SPOT_TO_SPOT] = { OUTLOOK_SAME_OR_MORE_EXPENSIVE_REPLACEMENT, true },
        [GATE_SAVINGS_LOW] = { OUTLOOK_SAME_OR_MORE_EXPENSIVE_REPLACEMENT, true },
        [GATE_POOL_LIMIT] = { OUTLOOK_POOL_LIMIT, true },
        [GATE_NOT_PLACED] = { OUTLOOK_NO_FEASIBLE_SCHEDULE, true },
        [GATE_PREFERENCE] = { OUTLOOK_NO_FEASIBLE_SCHEDULE, true },
};

OutlookWord outlook_word(GateCode code) {
        return code == _GATE_CODE_INVALID ? OUTLOOK_WOULD_GO : codes[code].word;
}

const char *outlook_condition_type(PlanMethod m) {
        static const char *const types[_PLAN_METHOD_MAX] = {
                [PLAN_EXPIRATION] = CLAIM_EXPIRED,
                [PLAN_DRIFT] = CLAIM_DRIFTED,
                [PLAN_EMPTINESS] = CLAIM_EMPTY,
                [PLAN_CONSOLIDATION] = CLAIM_CONSOLIDATABLE,
        };

        return types[m];
}

void outlook_reason(GateCode code, char ret[static OUTLOOK_REASON_MAX]) {
        const char *name = code == _GATE_CODE_INVALID ? "WOULD_GO" : gate_code_to_string(code);
        bool begins = true;
        size_t n = 0;

        for (; *name && n + 1 < OUTLOOK_REASON_MAX; name++) {
                if (*name != '_')
                        ret[n++] = begins ? *name : (char) tolower((unsigned char) *name);
                begins = *name == '_';
        }
        ret[n] = 0;
}

/* -- memos ---------------------------------------------------------------------------------------------- */

int node_memo_new(const char *node, const char *uid, usec_t now_usec, NodeMemo **ret) {
        _cleanup_(node_memo_freep) NodeMemo *m = new0(NodeMemo, 1);

        if (!m)
                return -ENOMEM;
        m->node = strdup(node);
        m->uid = strdup(uid);
        m->told_usec = now_usec;
        if (!m->node || !m->uid)
                return -ENOMEM;
        *ret = TAKE_PTR(m);
        return 0;
}

NodeMemo *node_memo_free(NodeMemo *m) {
        if (!m)
                return NULL;
        node_judgement_done(&m->judgement);
        free(m->node);
        free(m->uid);
        return mfree(m);
}

bool node_memo_would_go(const NodeMemo *m) {
        for (PlanMethod i = 0; i < _PLAN_METHOD_MAX; i++) {
                const MethodOutlook *o = m->judgement.methods + i;

                if (o->is_asked && o->holds && o->code == _GATE_CODE_INVALID)
                        return true;
        }
        return false;
}

static usec_t whole_seconds(usec_t usec) {
        return usec - usec % USEC_PER_SEC;
}

usec_t node_memo_empty_since(NodeMemo *m, const KubeNodeClaim *claim, usec_t wall_usec) {
        const Condition *said = kube_node_claim_condition(claim, CLAIM_EMPTY);
        const MethodOutlook *before = m->judgement.methods + PLAN_EMPTINESS;
        bool is_said = said && said->status == CONDITION_TRUE && said->last_transition_usec > 0;
        usec_t since = is_said                          ? said->last_transition_usec
                       : before->is_asked && before->holds ? m->since_usec[PLAN_EMPTINESS]
                                                        : wall_usec;

        if (m->was_occupied || m->occupied_usec > wall_usec) /* that clock may be set back */
                m->occupied_usec = whole_seconds(wall_usec);
        m->was_occupied = false;
        m->begins_anew = is_said && since < m->occupied_usec;
        return since < m->occupied_usec ? wall_usec : since;
}

static int begin_emptiness_anew(const NodeMemo *m, MethodOutlook *now) {
        char *text;

        if (!m->begins_anew || !now->is_asked || !now->holds)
                return 0;
        text = strdup("a pod has come and gone since it was last found empty: its time begins anew");
        if (!text)
                return -ENOMEM;
        free(now->text);
        *now = (MethodOutlook){ .is_asked = true, .code = GATE_NOT_EMPTY, .text = text, .until_usec = 0 };
        return 0;
}

int node_memo_take(NodeMemo *m, NodeJudgement *j, usec_t wall_usec) {
        MethodOutlook *emptiness = j->methods + PLAN_EMPTINESS;
        int r;

        if (emptiness->is_asked && !emptiness->holds)
                m->occupied_usec = whole_seconds(wall_usec);
        r = begin_emptiness_anew(m, emptiness);
        if (r < 0)
                return r;
        if (emptiness->holds && m->since_usec[PLAN_EMPTINESS] < m->occupied_usec)
                m->since_usec[PLAN_EMPTINESS] = 0;
        for (PlanMethod i = 0; i < _PLAN_METHOD_MAX; i++) {
                const MethodOutlook *before = m->judgement.methods + i, *now = j->methods + i;

                if (!now->is_asked)
                        m->since_usec[i] = 0;
                else if (m->since_usec[i] == 0 || before->holds != now->holds)
                        m->since_usec[i] = wall_usec;
        }
        node_judgement_done(&m->judgement);
        m->judgement = *j;
        *j = (NodeJudgement){};
        if (!node_memo_would_go(m))
                m->candidate_since_usec = 0;
        else if (m->candidate_since_usec == 0)
                m->candidate_since_usec = wall_usec;
        return 0;
}

/* -- conditions ----------------------------------------------------------------------------------------- */

void outlook_wish_done(OutlookWish *w) {
        for (size_t i = 0; i < ELEMENTSOF(w->messages); i++)
                free(w->messages[i]);
        *w = (OutlookWish){};
}

/* 1: status or reason is another; 0: nothing but the message, or nothing. */
static int add_wish(const NodeMemo *m, PlanMethod method, const Condition *said, OutlookWish *w, bool *ret_message) {
        const MethodOutlook *o = m->judgement.methods + method;
        size_t n = w->n_conditions;
        Condition *c = w->conditions + n;

        outlook_reason(o->code, w->reasons[n]);
        w->messages[n] = str_sanitize(o->text, OUTLOOK_MESSAGE_MAX);
        if (!w->messages[n])
                return -ENOMEM;
        *c = (Condition){ .type = outlook_condition_type(method),
                          .status = o->holds ? CONDITION_TRUE : CONDITION_FALSE,
                          .reason = w->reasons[n],
                          .message = w->messages[n],
                          .last_transition_usec = m->since_usec[method] };
        w->n_conditions++;
        *ret_message = *ret_message || !said || !streq_ptr(said->message, c->message);
        return !said || said->status != c->status || !streq_ptr(said->reason, c->reason);
}

int outlook_wish(const KubeNodeClaim *claim, const NodeMemo *m, usec_t now_usec, OutlookWish *ret) {
        bool is_another = false, has_message = false;
        size_t n_dropped = 0;

        *ret = (OutlookWish){};
        for (PlanMethod i = 0; i < _PLAN_METHOD_MAX; i++) {
                const Condition *said = kube_node_claim_condition(claim, outlook_condition_type(i));
                int r = 0;

                if (m && m->judgement.methods[i].is_asked)
                        r = add_wish(m, i, said, ret, &has_message);
                else if (said) {
                        ret->dropped[n_dropped++] = outlook_condition_type(i);
                        r = 1;
                }
                if (r < 0) {
                        outlook_wish_done(ret);
                        return r;
                }
                is_another = is_another || r > 0;
        }
        if (is_another)
                return OUTLOOK_WRITE_NOW;
        if (!has_message)
                return OUTLOOK_WRITE_NOTHING;
        return usec_add(m->told_usec, OUTLOOK_MESSAGE_USEC) <= now_usec ? OUTLOOK_WRITE_NOW : OUTLOOK_WRITE_LATER;
}

/* -- Events --------------------------------------------------------------------------------------------- */

char *outlook_event(NodeMemo *m, const KubeNodeClaim *claim, usec_t now_usec) {
        const MethodOutlook *o = m->judgement.methods + PLAN_CONSOLIDATION;
        const Condition *said = kube_node_claim_condition(claim, CLAIM_CONSOLIDATABLE);
        char reason[OUTLOOK_REASON_MAX];
        usec_t *told;
        char *text;

        if (!o->is_asked || o->code == _GATE_CODE_INVALID || !codes[o->code].is_told)
                return NULL;
        told = m->event_usec + o->code;
        outlook_reason(o->code, reason);
        if (*told == 0 && said && streq_ptr(said->reason, reason)) {
                *told = MAX(now_usec, (usec_t) 1);
                return NULL;
        }
        if (*told > 0 && now_usec < usec_add(*told, OUTLOOK_EVENT_USEC))
                return NULL;
        text = strf("%s (%s)", o->text, gate_code_to_string(o->code));
        if (text)
                *told = MAX(now_usec, (usec_t) 1);
        return text;
}
