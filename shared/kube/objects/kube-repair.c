/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "kube-decode.h"
#include "string-util.h"

/* What the CRD takes. */
#define RULES_MAX 16u
#define REASON_BYTES_MAX 128u
/* Of a reason's pattern: neither bounds nor back references, with which a short pattern can take all memory, or hours. */
#define REASON_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_,:.*+?|()^$[]-"
#define AFTER_DEFAULT_USEC (15 * USEC_PER_MINUTE)

static const char *const status_names[_REPAIR_STATUS_MAX] = {
        [REPAIR_STATUS_NOT_TRUE] = "NotTrue",
        [REPAIR_STATUS_TRUE] = "True",
        [REPAIR_STATUS_FALSE] = "False",
        [REPAIR_STATUS_UNKNOWN] = "Unknown",
};

static const char *const action_names[_REPAIR_ACTION_MAX] = {
        [REPAIR_ACTION_REPLACE] = "Replace",
        [REPAIR_ACTION_REBOOT] = "Reboot",
        [REPAIR_ACTION_NONE] = "None",
};

/* The index of the text; a text that is none of them, or absent, makes the object invalid. */
static size_t decode_choice(Decoder *d, const Json *v, const char *path, const char *const *names, size_t n_names) {
        _cleanup_free_ char *s = NULL;

        decode_string(d, v, path, &s);
        for (size_t i = 0; s && i < n_names; i++)
                if (streq(s, names[i]))
                        return i;
        decoder_invalid(d, "%s is none of its choices", path);
        return 0;
}

static void decode_reason(Decoder *d, const Json *v, RepairRule *r) {
        regex_t *pattern;
        int error;

        decode_string(d, v, "spec.repair.reason", &r->reason);
        if (!r->reason)
                return;
        if (strlen(r->reason) > REASON_BYTES_MAX || r->reason[strspn(r->reason, REASON_LETTERS)]) {
                decoder_invalid(d, "spec.repair.reason has more than %u bytes, or others than %s", REASON_BYTES_MAX, REASON_LETTERS);
                return;
        }
        pattern = new0(regex_t, 1);
        error = pattern ? regcomp(pattern, r->reason, REG_EXTENDED | REG_NOSUB) : REG_ESPACE;
        if (error == 0) {
                r->reason_pattern = pattern;
                return;
        }
        free(pattern);
        if (error == REG_ESPACE)
                d->failed = true;
        else
                decoder_invalid(d, "spec.repair.reason: '%s' is no extended regular expression", r->reason);
}

static void decode_rule(Decoder *d, const Json *v, RepairRule *r) {
        r->after_usec = AFTER_DEFAULT_USEC;
        decode_string(d, json_get(v, "condition"), "spec.repair.condition", &r->condition);
        if (isempty(r->condition))
                decoder_invalid(d, "spec.repair.condition is missing");
        r->status = (RepairStatus) decode_choice(d, json_get(v, "status"), "spec.repair.status", status_names,
                                                 ELEMENTSOF(status_names));
        decode_reason(d, json_get(v, "reason"), r);
        decode_duration(d, json_get(v, "after"), "spec.repair.after", false, &r->after_usec);
        r->action = (RepairAction) decode_choice(d, json_get(v, "action"), "spec.repair.action", action_names,
                                                 ELEMENTSOF(action_names));
}

static void default_rule(Decoder *d, RepairRule *r) {
        *r = (RepairRule){ .condition = strdup("Ready"),
                           .status = REPAIR_STATUS_NOT_TRUE,
                           .after_usec = AFTER_DEFAULT_USEC,
                           .action = REPAIR_ACTION_REPLACE };
        d->failed = d->failed || !r->condition;
}

void decode_repair(Decoder *d, const Json *v, RepairRule **ret, size_t *ret_n) {
        bool is_set = v && !json_is_null(v);
        const Json *list = decode_array(d, v, "spec.repair");
        size_t n = is_set ? json_size(list) : 1;

        if (n > RULES_MAX) {
                decoder_invalid(d, "spec.repair has more than %u rules", RULES_MAX);
                return;
        }
        if (n == 0)
                return;
        *ret = new0(RepairRule, n);
        if (!*ret) {
                d->failed = true;
                return;
        }
        if (!is_set)
                default_rule(d, *ret + (*ret_n)++);
        else
                JSON_FOREACH(i, list)
                        decode_rule(d, i, *ret + (*ret_n)++);
}

void repair_rules_free(RepairRule *rules, size_t n) {
        for (size_t i = 0; i < n; i++) {
                free(rules[i].condition);
                free(rules[i].reason);
                if (rules[i].reason_pattern)
                        regfree(rules[i].reason_pattern);
                free(rules[i].reason_pattern);
        }
        free(rules);
}

void repair_rules_write(const RepairRule *rules, size_t n, JsonWriter *w, const char *key) {
        json_open_array(w, key);
        for (size_t i = 0; i < n; i++) {
                json_open_object(w, NULL);
                json_add_string(w, "condition", rules[i].condition);
                json_add_string(w, "status", status_names[rules[i].status]);
                json_add_string(w, "reason", rules[i].reason);
                json_addf(w, "after", "%" PRIu64 "s", rules[i].after_usec / USEC_PER_SEC);
                json_add_string(w, "action", action_names[rules[i].action]);
                json_close_object(w);
        }
        json_close_array(w);
}
