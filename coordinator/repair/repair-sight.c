/* SPDX-License-Identifier: Apache-2.0 */
#include "repair-sight.h"

#include "alloc-util.h"
#include "marks.h"
#include "string-util.h"

/* A rule that the node has matched, by its text: the pool may be another object by now, with the same rules. */
typedef struct Match {
        char *condition, *reason; /* reason: of the rule; NULL: any */
        RepairStatus status;
        usec_t since_usec;
        usec_t booted_usec; /* when the node showed another boot for the first time since; 0: it has not */
} Match;

struct RepairSight {
        char *uid;
        char *boot_id; /* the last that the node has shown; NULL: none */
        usec_t born_usec;
        Match *matches;
        size_t n_matches, n_allocated;
        bool rebooted; /* for what it shows */
};

static void match_done(Match *m) {
        free(m->condition);
        free(m->reason);
}

int repair_sight_new(const char *node_uid, usec_t born_usec, RepairSight **ret) {
        _cleanup_(repair_sight_freep) RepairSight *s = new0(RepairSight, 1);

        if (!s || free_and_strdup(&s->uid, node_uid) < 0)
                return -ENOMEM;
        s->born_usec = born_usec;
        *ret = TAKE_PTR(s);
        return 0;
}

RepairSight *repair_sight_free(RepairSight *s) {
        if (!s)
                return NULL;
        for (size_t i = 0; i < s->n_matches; i++)
                match_done(s->matches + i);
        free(s->matches);
        free(s->boot_id);
        free(s->uid);
        return mfree(s);
}

const char *repair_sight_uid(const RepairSight *s) {
        return s->uid;
}

static bool status_matches(const KubeNode *n, const char *condition, RepairStatus status) {
        const Condition *c = kube_node_condition(n, condition);
        ConditionStatus s = c ? c->status : CONDITION_UNKNOWN;

        if (!c && !streq(condition, "Ready"))
                return false;
        switch (status) {
        case REPAIR_STATUS_NOT_TRUE:
                return s != CONDITION_TRUE;
        case REPAIR_STATUS_TRUE:
                return s == CONDITION_TRUE;
        case REPAIR_STATUS_FALSE:
                return s == CONDITION_FALSE;
        case REPAIR_STATUS_UNKNOWN:
                return s == CONDITION_UNKNOWN;
        case _REPAIR_STATUS_MAX:
                break;
        }
        return false;
}

/* A search for which there is no memory has found nothing: nothing is done then. */
static bool rule_matches(const RepairRule *r, const KubeNode *n) {
        const Condition *c = kube_node_condition(n, r->condition);

        return status_matches(n, r->condition, r->status) &&
               (!r->reason || (r->reason_pattern && regexec(r->reason_pattern, c ? strempty(c->reason) : "", 0, NULL, 0) == 0));
}

bool repair_rules_match(const KubeNodePool *pool, const KubeNode *n) {
        for (size_t i = 0; i < pool->n_repair; i++)
                if (rule_matches(pool->repair + i, n))
                        return true;
        return false;
}

bool repair_rules_ask(const KubeNodePool *pool, const KubeNode *n) {
        for (size_t i = 0; i < pool->n_repair; i++)
                if (pool->repair[i].action != REPAIR_ACTION_NONE && rule_matches(pool->repair + i, n))
                        return true;
        return false;
}

static Match *find_match(const RepairSight *s, const RepairRule *r) {
        for (size_t i = 0; i < s->n_matches; i++)
                if (streq(s->matches[i].condition, r->condition) && streq_ptr(s->matches[i].reason, r->reason) &&
                    s->matches[i].status == r->status)
                        return s->matches + i;
        return NULL;
}

static int begin_match(RepairSight *s, const RepairRule *r, usec_t now_usec) {
        Match m = { .status = r->status, .since_usec = now_usec };

        if (find_match(s, r))
                return 0;
        if (free_and_strdup(&m.condition, r->condition) < 0 || (r->reason && free_and_strdup(&m.reason, r->reason) < 0) ||
            GREEDY_REALLOC(s->matches, s->n_allocated, s->n_matches + 1) < 0) {
                match_done(&m);
                return -ENOMEM;
        }
        s->matches[s->n_matches++] = m;
        return 0;
}

static void end_matches(RepairSight *s, const KubeNode *n) {
        for (size_t i = 0; i < s->n_matches;)
                if (status_matches(n, s->matches[i].condition, s->matches[i].status))
                        i++;
                else {
                        match_done(s->matches + i);
                        s->matches[i] = s->matches[--s->n_matches];
                }
}

/* Notes the first boot of the node since it matched a rule: the reboot may have ended what the condition still shows. A second boot
 * changes nothing, so that a machine that boots again and again is repaired. */
static int note_boot(RepairSight *s, const KubeNode *n, usec_t now_usec) {
        if (!n->boot_id || (s->boot_id && boot_id_equal(s->boot_id, n->boot_id)))
                return 0;
        for (size_t i = 0; s->boot_id && i < s->n_matches; i++)
                if (s->matches[i].booted_usec == 0)
                        s->matches[i].booted_usec = now_usec;
        return free_and_strdup(&s->boot_id, n->boot_id);
}

static RepairVerdict verdict_of(const RepairSight *s, const RepairRule *r, const Match *m) {
        usec_t since = r->action == REPAIR_ACTION_REBOOT ? MAX(m->since_usec, m->booted_usec) : m->since_usec;
        usec_t due = usec_add(since, r->after_usec);

        if (!streq(r->condition, "Ready") || r->status == REPAIR_STATUS_TRUE || s->born_usec >= m->since_usec)
                return (RepairVerdict){ r, m->since_usec, due };
        return (RepairVerdict){ r, s->born_usec,
                                MIN(due, MAX(usec_add(s->born_usec, r->after_usec), usec_add(since, REPAIR_SIGHT_USEC))) };
}

static bool is_passed_over(const RepairSight *s, const RepairRule *r) {
        return s->rebooted && r->action == REPAIR_ACTION_REBOOT;
}

/* The rules before this one have no word about its condition now. */
static bool is_first_of_its_condition(const RepairSight *s, const KubeNodePool *pool, size_t rule, const KubeNode *n) {
        for (size_t i = 0; i < rule; i++)
                if (!is_passed_over(s, pool->repair + i) && streq(pool->repair[i].condition, pool->repair[rule].condition) && rule_matches(pool->repair + i, n))
                        return false;
        return true;
}

int repair_sight_look(RepairSight *s, const KubeNodePool *pool, const KubeNode *n, usec_t now_usec, RepairVerdict *ret) {
        RepairVerdict first = { .due_usec = USEC_INFINITY };

        end_matches(s, n);
        if (note_boot(s, n, now_usec) < 0)
                return -ENOMEM;
        if (kube_node_is_ready(n))
                s->born_usec = USEC_INFINITY;
        for (size_t i = 0; i < pool->n_repair; i++) {
                const RepairRule *r = pool->repair + i;
                RepairVerdict v;

                if (!rule_matches(r, n))
                        continue;
                if (begin_match(s, r, now_usec) < 0)
                        return -ENOMEM;
                if (r->action == REPAIR_ACTION_NONE || is_passed_over(s, r) || !is_first_of_its_condition(s, pool, i, n))
                        continue;
                v = verdict_of(s, r, find_match(s, r));
                if (!first.rule || v.due_usec < first.due_usec)
                        first = v;
        }
        *ret = first;
        return first.rule ? REPAIR_SIGHT_DUE : s->n_matches > 0 ? REPAIR_SIGHT_REMEMBERS : REPAIR_SIGHT_CLEAR;
}

void repair_sight_set_rebooted(RepairSight *s, bool rebooted) {
        s->rebooted = rebooted;
}

bool repair_sight_ails(const RepairSight *s, const KubeNodePool *pool) {
        for (size_t i = 0; i < pool->n_repair; i++)
                if (pool->repair[i].action != REPAIR_ACTION_NONE && find_match(s, pool->repair + i))
                        return true;
        return false;
}

static bool is_set(const KubeNode *n, const char *annotation) {
        const char *value = object_meta_annotation(&n->object.meta, annotation);

        return value && !streq(value, "false");
}

bool repair_is_vetoed(const KubeNode *n) {
        return is_set(n, ANNOTATION_DO_NOT_REPAIR) || is_set(n, ANNOTATION_KARPENTER_DO_NOT_REPAIR) || kube_node_is_unmanaged(n);
}

bool repair_is_cordoned_by_a_person(const KubeNode *n) {
        const ObjectMeta *m = &n->object.meta;

        return n->unschedulable && (object_meta_annotation(m, ANNOTATION_CORDONED_BY_VESPERCTL) ||
                                    (!object_meta_annotation(m, ANNOTATION_CORDONED_BY_AGENT) &&
                                     !object_meta_annotation(m, ANNOTATION_CORDONED_BY_COORDINATOR)));
}
