/* SPDX-License-Identifier: Apache-2.0 */
#include "kube-decode.h"
#include "kube-scheduling.h"
#include "marks.h"
#include "string-util.h"

/* Types of a Node whose message is ours to read again; the kubelet's are long and nobody decides by them. */
static const char *const types_with_message[] = {
        CONDITION_DRAIN_IN_PROGRESS,
        CONDITION_DRAINED,
        CONDITION_MAINTENANCE_PLANNED,
        CONDITION_MAINTENANCE_IN_PROGRESS,
        CONDITION_GRACEFUL_SHUTDOWN,
};

static const char *const status_table[] = {
        [CONDITION_UNKNOWN] = "Unknown",
        [CONDITION_FALSE] = "False",
        [CONDITION_TRUE] = "True",
};

const char *condition_status_to_string(ConditionStatus s) {
        return (size_t) s < ELEMENTSOF(status_table) ? status_table[s] : "Unknown";
}

ConditionStatus condition_status_from_string(const char *s) {
        if (streq_ptr(s, "True"))
                return CONDITION_TRUE;
        if (streq_ptr(s, "False"))
                return CONDITION_FALSE;
        return CONDITION_UNKNOWN;
}

static bool message_wanted(const char *type) {
        if (startswith(type, VESPER_GROUP "/"))
                return true;
        for (size_t i = 0; i < ELEMENTSOF(types_with_message); i++)
                if (streq(type, types_with_message[i]))
                        return true;
        return false;
}

/* 0 or -EINVAL; absent and null leave *ret NULL. */
static int optional_string(const Json *v, const char **ret) {
        int r = json_string(v, ret);

        return r == -ENODATA ? 0 : r;
}

static int condition_decode(const Json *v, bool is_written_back, InternPool *pool, Condition *c) {
        const char *type = NULL, *status = NULL, *reason = NULL, *message = NULL, *since = NULL;

        if (json_string(json_get(v, "type"), &type) < 0 || isempty(type) ||
            optional_string(json_get(v, "status"), &status) < 0 ||
            optional_string(json_get(v, "reason"), &reason) < 0 ||
            optional_string(json_get(v, "message"), &message) < 0 ||
            optional_string(json_get(v, "lastTransitionTime"), &since) < 0)
                return -EINVAL;

        c->status = condition_status_from_string(status);
        if (since && rfc3339_parse(since, &c->last_transition_usec) < 0)
                return -EINVAL;
        if (is_written_back) {
                int r = json_int64(json_get(v, "observedGeneration"), &c->observed_generation);

                if (r < 0 && r != -ENODATA)
                        return -EINVAL;
        }
        c->type = intern(pool, type);
        c->reason = intern(pool, strempty(reason));
        if (!c->type || !c->reason)
                return -ENOMEM;
        if (!message || (!is_written_back && !message_wanted(type)))
                return 0;
        c->message = strdup(message);
        return c->message ? 0 : -ENOMEM;
}

int conditions_decode(const Json *array, bool is_written_back, InternPool *pool, Condition **ret,
                      size_t *ret_n) {
        Condition *list;
        size_t n = 0;

        assert(pool);
        assert(ret);
        assert(ret_n);

        *ret = NULL;
        *ret_n = 0;
        if (!array || json_is_null(array))
                return 0;
        if (!json_is_array(array))
                return -EINVAL;
        if (json_size(array) == 0)
                return 0;
        if (json_size(array) > DECODE_LIST_MAX)
                return -E2BIG;

        list = new0(Condition, json_size(array));
        if (!list)
                return -ENOMEM;

        JSON_FOREACH (v, array) {
                int r = condition_decode(v, is_written_back, pool, list + n++);

                if (r < 0) {
                        conditions_free(list, n, pool);
                        return r;
                }
        }
        *ret = list;
        *ret_n = n;
        return 0;
}

void conditions_free(Condition *c, size_t n, InternPool *pool) {
        for (size_t i = 0; i < n; i++) {
                intern_unref(pool, c[i].type);
                intern_unref(pool, c[i].reason);
                free((char *) c[i].message);
        }
        free(c);
}

const Condition *condition_find(const Condition *list, size_t n, const char *type) {
        for (size_t i = 0; i < n; i++)
                if (streq(list[i].type, type))
                        return list + i;
        return NULL;
}

const Condition *kube_object_conditions(const KubeObject *o, size_t *ret_n) {
        const Condition *list = NULL;

        *ret_n = 0;
        if (o->kind == &kube_node_kind || o->kind == &kube_scheduled_node_kind) {
                list = ((const KubeNode *) o)->conditions;
                *ret_n = ((const KubeNode *) o)->n_conditions;
        } else if (o->kind == &kube_node_claim_kind) {
                list = ((const KubeNodeClaim *) o)->conditions;
                *ret_n = ((const KubeNodeClaim *) o)->n_conditions;
        } else if (o->kind == &kube_node_pool_kind) {
                list = ((const KubeNodePool *) o)->conditions;
                *ret_n = ((const KubeNodePool *) o)->n_conditions;
        } else if (o->kind == &kube_node_budget_kind) {
                list = ((const KubeNodeBudget *) o)->conditions;
                *ret_n = ((const KubeNodeBudget *) o)->n_conditions;
        }
        return list;
}

bool condition_is_said(const KubeObject *o, const Condition *c) {
        size_t n;
        const Condition *list = kube_object_conditions(o, &n), *said = condition_find(list, n, c->type);

        return said && said->status == c->status && streq_ptr(said->reason, c->reason) &&
               streq(strempty(said->message), strempty(c->message));
}

static const char *const types_with_cause[] = { CONDITION_MAINTENANCE_PLANNED, CONDITION_MAINTENANCE_IN_PROGRESS,
                                                CONDITION_GRACEFUL_SHUTDOWN };

bool condition_tells_cause(const char *type) {
        for (size_t i = 0; i < ELEMENTSOF(types_with_cause); i++)
                if (streq(type, types_with_cause[i]))
                        return true;
        return false;
}

static bool is_of(const Condition *c, const char *reason, const char *daemon) {
        return c && (streq_ptr(c->reason, reason) || (condition_tells_cause(c->type) && startswith(strempty(c->message), daemon)));
}

bool condition_is_of_agent(const Condition *c) {
        return is_of(c, CONDITION_REASON_AGENT, "vesper-agent");
}

bool condition_is_of_coordinator(const Condition *c) {
        return is_of(c, CONDITION_REASON_COORDINATOR, "vesper-coordinator");
}

usec_t condition_since(const Condition *old, ConditionStatus status, usec_t wall_now_usec) {
        return old && old->status == status && old->last_transition_usec > 0 ? old->last_transition_usec
                                                                             : wall_now_usec;
}

void condition_write(JsonWriter *w, const Condition *c, usec_t heartbeat_usec, int64_t generation) {
        json_open_object(w, NULL);
        json_add_string(w, "type", c->type);
        json_add_string(w, "status", condition_status_to_string(c->status));
        json_add_string(w, "reason", c->reason);
        json_add_string(w, "message", c->message);
        json_add_time(w, "lastHeartbeatTime", heartbeat_usec);
        json_add_time(w, "lastTransitionTime", c->last_transition_usec);
        if (generation > 0)
                json_add_int64(w, "observedGeneration", generation);
        json_close_object(w);
}
