/* SPDX-License-Identifier: Apache-2.0 */
#include "heard-conditions.h"

#include "marks.h"
#include "pod-names.h"
#include "string-util.h"

#define HELD_TOLD_MAX 3u      /* pods that a condition names */
#define ANNOUNCED_TOLD_MAX 3u /* and notices */

/* What stands before its figures, and before those pods. */
#define FIGURES "; "
#define WAITS_FOR ", and it waits for "

enum { PLANNED, IN_PROGRESS, DRAIN, DRAINED };

static const char *const types[HEARD_CONDITIONS] = {
        [PLANNED] = CONDITION_MAINTENANCE_PLANNED,
        [IN_PROGRESS] = CONDITION_MAINTENANCE_IN_PROGRESS,
        [DRAIN] = CONDITION_DRAIN_IN_PROGRESS,
        [DRAINED] = CONDITION_DRAINED,
};

typedef enum Says {
        KEEPS, /* as it is */
        ENDS,  /* False, where the coordinator has said True */
        DENIES,
        AFFIRMS,
} Says;

static const struct {
        Says types[HEARD_CONDITIONS];
        const char *text; /* behind "vesper-coordinator "; what was announced follows */
} rows[_HEARD_SAY_MAX] = {
        [HEARD_SAY_NOTHING] = { { KEEPS, KEEPS, KEEPS, KEEPS }, "" },
        [HEARD_SAY_PLANNED] = { { AFFIRMS, ENDS, ENDS, ENDS },
                                "waits, before it drains this node, until load balancers have let go of it" },
        [HEARD_SAY_LATER] = { { AFFIRMS, ENDS, ENDS, ENDS }, "acts when that comes near ([Interruption] BeforeSec=)" },
        [HEARD_SAY_BEHIND_AGENT] = { { AFFIRMS, ENDS, ENDS, ENDS },
                                     "waits, before it drains this node, until its agent, which drains it now, makes no more progress" },
        [HEARD_SAY_HANDED_OVER] = { { AFFIRMS, ENDS, ENDS, ENDS },
                                    "no longer drains this node by itself: a NodePool selects it now, or its NodeClaim is deleted so that the node is removed" },
        [HEARD_SAY_DRAINING] = { { ENDS, AFFIRMS, AFFIRMS, ENDS }, "evicts this node's pods, and does not end its machine for that" },
        [HEARD_SAY_DRAINED] = { { ENDS, AFFIRMS, ENDS, AFFIRMS }, "has drained this node, and does not end its machine for that" },
        [HEARD_SAY_EXPIRED] = { { ENDS, AFFIRMS, ENDS, DENIES }, "stopped draining this node, as the announced time has passed" },
        [HEARD_SAY_OVERRULED] = { { ENDS, ENDS, ENDS, ENDS },
                                  "stopped draining this node: somebody made it schedulable, and vesper does not act again on what was due by then" },
        [HEARD_SAY_OVER] = { { ENDS, ENDS, ENDS, ENDS },
                             "drains this node no more" },
        [HEARD_SAY_AGENTS] = { { ENDS, KEEPS, KEEPS, KEEPS }, "leaves this node to its agent, which drains it" },
};

const char *heard_condition_type(size_t i) {
        assert(i < HEARD_CONDITIONS);
        return types[i];
}

bool heard_conditions_are_agents(const KubeNode *n) {
        return condition_is_of_agent(kube_node_condition(n, CONDITION_DRAIN_IN_PROGRESS)) ||
               condition_is_of_agent(kube_node_condition(n, CONDITION_DRAINED));
}

bool heard_condition_is_free(const KubeNode *n, const char *type) {
        const Condition *c = kube_node_condition(n, type);

        if (!c || condition_is_of_coordinator(c))
                return true;
        return !condition_is_of_agent(c) && !(condition_tells_cause(type) && c->status == CONDITION_TRUE);
}

bool heard_conditions_stand(const KubeNode *n) {
        for (size_t i = 0; i < HEARD_CONDITIONS; i++) {
                const Condition *c = kube_node_condition(n, types[i]);

                if (condition_is_of_coordinator(c) && c->status == CONDITION_TRUE)
                        return true;
        }
        return false;
}

static const char *what_of(const Notice *notice) {
        if (notice_ends_for_good(notice) || (!notice_ends_machine(notice) && notice->kind != NOTICE_MAINTENANCE))
                return "the end";
        return notice_ends_machine(notice) ? "a stop" : "a change";
}

char *heard_announced_text(const Notice *notice) {
        _cleanup_free_ char *action = str_sanitize(strempty(notice->action), NOTICE_WORD_BYTES_MAX);
        char when[RFC3339_MAX] = "";

        if (!action)
                return NULL;
        if (notice_announced(notice) != USEC_INFINITY)
                rfc3339_format(notice_announced(notice), when);
        return strf("%s of its machine (%s%s%s)%s%s", what_of(notice), notice_kind_to_string(notice->kind) ?: "unknown",
                    *action ? ", " : "", action, *when ? " by " : "", when);
}

static const char *what_is_done(const Notice *notice, const InterruptionDelete *deletes) {
        if (!deletes)
                return "";
        return interruption_delete_counts(*deletes, notice) ? ", for which the NodeClaim is deleted and the machine ended"
                                                            : ", for which the node is drained and kept";
}

char *heard_announced_list_text(const AnnouncedList *l, const Notice *except, const InterruptionDelete *deletes) {
        _cleanup_strbuf_ StrBuf text = {};
        size_t n = 0;

        for (size_t i = 0; i < l->n_items; i++) {
                const Notice *notice = l->items[i].notice;
                _cleanup_free_ char *one = NULL;

                if (l->items[i].state != ANNOUNCED_STANDS || (except && streq(except->id, notice->id)) || n++ >= ANNOUNCED_TOLD_MAX)
                        continue;
                one = heard_announced_text(notice);
                strbuf_addf(&text, "%s%s%s", n > 1 ? ", and then " : "", strempty(one), what_is_done(notice, deletes));
                text.failed = text.failed || !one;
        }
        if (n > ANNOUNCED_TOLD_MAX)
                strbuf_addf(&text, ", and %zu more (annotation " ANNOTATION_ANNOUNCED ")", n - ANNOUNCED_TOLD_MAX);
        return strbuf_steal(&text);
}

const char *heard_end_text(HeardEnd e) {
        static const char *const texts[_HEARD_END_MAX] = {
                [HEARD_END_OUTLIVED] = "it has outlived by ten minutes what the interruption queue announced",
                [HEARD_END_BOOTED] = "its machine has booted anew since the interruption queue announced that",
                [HEARD_END_CALLED_OFF] = "AWS called off what the interruption queue announced, or says that it is over",
                [HEARD_END_OVERRULED] = "somebody made it schedulable, and vesper does not act again on what the interruption queue announced",
                [HEARD_END_MOVED] = "what the interruption queue announced comes later now",
                [HEARD_END_EXEMPT] = "[Interruption] Delete=, [Queue] Unmanaged= or its annotation " ANNOTATION_UNMANAGED " says that it is not drained for what the "
                                       "interruption queue announced",
        };

        return texts[e];
}

/* For which the node is drained, or is to be; "": nothing stands. NULL: no memory. */
static char *first_announced(const HeardWords *words) {
        const Announced *first = announced_list_open(words->announced);

        return first ? heard_announced_text(first->notice) : strdup("");
}

/* Only DrainInProgress and Drained tell figures: the others change with what is said alone. */
static char *message_of(HeardSay say, size_t type, const HeardWords *words) {
        bool ends = say == HEARD_SAY_OVER || say == HEARD_SAY_OVERRULED || say == HEARD_SAY_AGENTS;
        const char *how_far = type == DRAIN || type == DRAINED ? words->how_far : NULL;
        _cleanup_free_ char *announced = ends                     ? strdup("")
                                         : say == HEARD_SAY_LATER ? heard_announced_list_text(words->announced, NULL, &words->deletes)
                                                                  : first_announced(words);

        if (!announced)
                return NULL;
        if (say == HEARD_SAY_OVER && words->why)
                return strf("vesper-coordinator %s: %s", rows[say].text, words->why);
        return strf("vesper-coordinator %s%s%s%s%s", rows[say].text, isempty(announced) ? "" : ": the interruption queue announced ", announced,
                    isempty(how_far) ? "" : FIGURES, strempty(how_far));
}

static const char *reason_of(size_t type, const HeardWords *words) {
        const Announced *first = announced_list_open(words->announced);

        if (condition_tells_cause(types[type]) && first && first->notice->kind == NOTICE_MAINTENANCE)
                return CONDITION_REASON_WINDOW;
        return CONDITION_REASON_COORDINATOR;
}

/* A leader that comes later knows no figures of the drain: what stands there is the better text. */
static bool is_told_already(HeardSay say, size_t type, ConditionStatus status, const Condition *said, const HeardWords *words) {
        return condition_is_of_coordinator(said) && said->status == status && isempty(words->how_far) &&
               (say == HEARD_SAY_DRAINED || say == HEARD_SAY_EXPIRED) && type == DRAINED;
}

char *heard_pods_left_text(size_t n_left, const DrainBlocker *b, size_t n) {
        _cleanup_strbuf_ StrBuf text = {}, held = {};

        strbuf_addf(&text, "%zu pod%s left", n_left, n_left == 1 ? " is" : "s are");
        if (pod_names_add(&held, b, n, HELD_TOLD_MAX, true) > 0)
                strbuf_addf(&text, WAITS_FOR "%s", strbuf_str(&held));
        text.failed = text.failed || held.failed;
        return strbuf_steal(&text);
}

char *heard_drained_text(usec_t begun_usec, usec_t drained_usec, size_t n_evicted, size_t n_deleted) {
        _cleanup_strbuf_ StrBuf text = {};
        char since[RFC3339_MAX], took[DURATION_MAX];

        rfc3339_format(begun_usec, since);
        strbuf_addf(&text, "no pod is left to wait for, %s after this leader began to drain it at %s: %zu evicted",
                    duration_format(usec_sub(drained_usec, begun_usec), took), since, n_evicted);
        if (n_deleted > 0)
                strbuf_addf(&text, ", %zu deleted without asking their PodDisruptionBudgets", n_deleted);
        return strbuf_steal(&text);
}

int heard_condition(HeardSay say, size_t type, const Condition *said, const HeardWords *words, Condition *ret, char **ret_message) {
        Says says = rows[say].types[type];
        ConditionStatus status = says == AFFIRMS ? CONDITION_TRUE : CONDITION_FALSE;
        _cleanup_free_ char *message = NULL;

        assert(words && ret && ret_message);
        if (says == KEEPS || (says == ENDS && (!condition_is_of_coordinator(said) || said->status != CONDITION_TRUE)) ||
            is_told_already(say, type, status, said, words))
                return 0;
        message = message_of(say, type, words);
        if (!message)
                return -ENOMEM;
        *ret = (Condition){ .type = types[type], .status = status, .reason = reason_of(type, words), .message = message };
        if (said && said->status == status && streq_ptr(said->reason, ret->reason) && streq_ptr(said->message, message))
                return 0;
        *ret_message = TAKE_PTR(message);
        return 1;
}
