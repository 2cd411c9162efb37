/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-schema.h"

#include <regex.h>
#include <stdlib.h>

#include "string-util.h"
#include "time-util.h"

#define INT_OR_STRING "x-kubernetes-int-or-string"
#define RULES "x-kubernetes-validations"

/* -- pruning and defaults ------------------------------------------------------------------------------ */

static void prune(const cJSON *schema, cJSON *v);

static void prune_object(const cJSON *schema, cJSON *o) {
        const cJSON *properties = fj_member(schema, "properties"),
                    *more = fj_member(schema, "additionalProperties"), *p;
        cJSON *child, *next;

        cJSON_ArrayForEach (p, properties)
                if (fj_member(p, "default") && !fj_member(o, p->string))
                        fj_set_copy(o, p->string, fj_member(p, "default"));
        for (child = o->child; child; child = next) {
                const cJSON *of = fj_member(properties, child->string);

                next = child->next;
                if (!of && !more)
                        cJSON_Delete(cJSON_DetachItemViaPointer(o, child));
                else
                        prune(of ? of : more, child);
        }
}

static void prune(const cJSON *schema, cJSON *v) {
        cJSON *child;

        /* metadata is {type: object} and not pruned. */
        if (cJSON_IsObject(v) &&
            (fj_member(schema, "properties") || fj_member(schema, "additionalProperties")))
                prune_object(schema, v);
        else if (cJSON_IsArray(v))
                cJSON_ArrayForEach (child, v)
                        prune(fj_member(schema, "items"), child);
}

void fake_schema_prune(const cJSON *schema, cJSON *object) {
        prune(schema, object);
}

/* -- rules in CEL: each text that our CRDs have, in C ----------------------------------------------------
 */

static bool has(const cJSON *o, const char *key) {
        return fj_member(o, key);
}

static bool matches(const char *text, const char *pattern) {
        regex_t regex;
        bool match;

        if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) != 0)
                assert(false && "a pattern that is none");
        match = regexec(&regex, text, 0, NULL, 0) == 0;
        regfree(&regex);
        return match;
}

static bool same_grace(const cJSON *self, const cJSON *old) {
        return fj_equal(fj_member(self, "terminationGracePeriod"), fj_member(old, "terminationGracePeriod"));
}

static bool unchanged(const cJSON *self, const cJSON *old) {
        return fj_equal(self, old);
}

static bool one_of_min_and_max(const cJSON *self, const cJSON *old) {
        return has(self, "minAvailable") != has(self, "maxUnavailable");
}

static bool number_or_percentage(const cJSON *self, const cJSON *old) {
        return cJSON_IsNumber(self) ? self->valuedouble >= 0
                                    : matches(self->valuestring, "^(100|[0-9]{1,2})%$");
}

static bool selects_something(const cJSON *self, const cJSON *old) {
        return cJSON_GetArraySize(fj_member(self, "matchLabels")) > 0 ||
               cJSON_GetArraySize(fj_member(self, "matchExpressions")) > 0;
}

static bool values_as_the_operator_wants(const cJSON *self, const cJSON *old) {
        const char *operator= fj_string(self, "operator", NULL);
        bool some = cJSON_GetArraySize(fj_member(self, "values")) > 0;

        return streq(operator, "In") || streq(operator, "NotIn") ? some : !some;
}

static bool operator_is(const cJSON *self, const char *one, const char *other) {
        const char *operator= strempty(fj_string(self, "operator", NULL));

        return streq(operator, one) || streq(operator, other);
}

static bool lists_have_values(const cJSON *self, const cJSON *old) {
        return !operator_is(self, "In", "NotIn") || cJSON_GetArraySize(fj_member(self, "values")) > 0;
}

static bool existence_has_no_values(const cJSON *self, const cJSON *old) {
        return !operator_is(self, "Exists", "DoesNotExist") || cJSON_GetArraySize(fj_member(self, "values")) == 0;
}

static bool comparisons_have_a_number(const cJSON *self, const cJSON *old) {
        const cJSON *values = fj_member(self, "values");

        return !operator_is(self, "Gt", "Lt") ||
               (cJSON_GetArraySize(values) == 1 && matches(values->child->valuestring, "^-?[0-9]+$"));
}

static bool hard_expiry_is_beside_expiry(const cJSON *self, const cJSON *old) {
        return !has(self, "expireHardAfter") || has(self, "expireAfter");
}

static bool schedule_has_a_duration(const cJSON *self, const cJSON *old) {
        return has(self, "schedule") == has(self, "duration");
}

static bool zone_is_of_a_schedule(const cJSON *self, const cJSON *old) {
        return !has(self, "timeZone") || has(self, "schedule");
}

static bool pool_neither_comes_nor_goes(const cJSON *self, const cJSON *old) {
        return has(self, "nodePool") == has(old, "nodePool");
}

static bool machine_is_named_or_asked_for(const cJSON *self, const cJSON *old) {
        return has(self, "providerID") || has(self, "replaces");
}

static bool machine_keeps_its_name(const cJSON *self, const cJSON *old) {
        return has(self, "providerID") || !has(old, "providerID");
}

static bool replaces_neither_comes_nor_goes(const cJSON *self, const cJSON *old) {
        return has(self, "replaces") == has(old, "replaces") && has(self, "attempt") == has(old, "attempt");
}

static bool whole_duration(const cJSON *self, const cJSON *old) {
        return cJSON_IsString(self) && matches(self->valuestring, "^([0-9]+(s|m|h))+$");
}

static const struct {
        const char *text;
        bool transition; /* names oldSelf: not asked of what is new */
        bool (*holds)(const cJSON *self, const cJSON *old);
} rules[] = {
        { "has(self.terminationGracePeriod) == has(oldSelf.terminationGracePeriod) && "
          "(!has(self.terminationGracePeriod) || self.terminationGracePeriod == "
          "oldSelf.terminationGracePeriod)",
          true, same_grace },
        { "self == oldSelf", true, unchanged },
        { "has(self.nodePool) == has(oldSelf.nodePool)", true, pool_neither_comes_nor_goes },
        { "has(self.providerID) || has(self.replaces)", false, machine_is_named_or_asked_for },
        { "has(self.providerID) || !has(oldSelf.providerID)", true, machine_keeps_its_name },
        { "has(self.replaces) == has(oldSelf.replaces) && has(self.attempt) == has(oldSelf.attempt)", true,
          replaces_neither_comes_nor_goes },
        { "self.matches('^([0-9]+(s|m|h))+$')", false, whole_duration },
        { "has(self.minAvailable) != has(self.maxUnavailable)", false, one_of_min_and_max },
        { "type(self) == int ? self >= 0 : self.matches('^(100|[0-9]{1,2})%$')", false,
          number_or_percentage },
        { "(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && "
          "size(self.matchExpressions) > 0)",
          false, selects_something },
        { "self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 : !has(self.values) "
          "|| "
          "size(self.values) == 0",
          false, values_as_the_operator_wants },
        { "self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 : true", false, lists_have_values },
        { "self.operator in ['Exists', 'DoesNotExist'] ? !has(self.values) || size(self.values) == 0 : true", false,
          existence_has_no_values },
        { "self.operator in ['Gt', 'Lt'] ? has(self.values) && size(self.values) == 1 && self.values[0].matches('^-?[0-9]+$') : true",
          false, comparisons_have_a_number },
        { "!has(self.expireHardAfter) || has(self.expireAfter)", false, hard_expiry_is_beside_expiry },
        { "has(self.schedule) == has(self.duration)", false, schedule_has_a_duration },
        { "!has(self.timeZone) || has(self.schedule)", false, zone_is_of_a_schedule },
};

static void check_rule(const cJSON *rule, const cJSON *new, const cJSON *old, const char *path,
                       FakeErrors *e) {
        const char *text = strempty(fj_string(rule, "rule", NULL));
        size_t i;

        for (i = 0; i < ELEMENTSOF(rules) && !streq(rules[i].text, text); i++)
                ;
        assert(i < ELEMENTSOF(rules) && "a CEL rule of a CRD that fake-schema.c does not know");
        if ((rules[i].transition && !old) || rules[i].holds(new, old))
                return;
        fake_errors_add(e, FAKE_ERROR_INVALID, cJSON_IsObject(new) ? "\"object\"" : "\"string\"",
                        fj_string(rule, "message", NULL), "%s", path);
}

/* -- validation ---------------------------------------------------------------------------------------- */

static void check(const cJSON *schema, const cJSON *new, const cJSON *old, const char *path, FakeErrors *e);

static bool type_fits(const cJSON *schema, const cJSON *v) {
        const char *type = fj_string(schema, "type", NULL);

        if (fj_true(schema, INT_OR_STRING, NULL))
                return cJSON_IsString(v) ||
                       (cJSON_IsNumber(v) && v->valuedouble == (double) (int64_t) v->valuedouble);
        assert(type);
        if (streq(type, "object"))
                return cJSON_IsObject(v);
        if (streq(type, "array"))
                return cJSON_IsArray(v);
        if (streq(type, "string"))
                return cJSON_IsString(v);
        if (streq(type, "boolean"))
                return cJSON_IsBool(v);
        if (streq(type, "integer"))
                return cJSON_IsNumber(v) && v->valuedouble == (double) (int64_t) v->valuedouble;
        assert(streq(type, "number"));
        return cJSON_IsNumber(v);
}

static void check_string(const cJSON *schema, const char *s, const char *path, FakeErrors *e) {
        const char *pattern = fj_string(schema, "pattern", NULL),
                   *format = fj_string(schema, "format", NULL);
        _cleanup_free_ char *shown = MUST(strf("\"%s\"", s));
        int64_t max = fj_int(schema, INT64_MAX, "maxLength", NULL);
        usec_t t;

        if (pattern && !matches(s, pattern))
                fake_errors_add(e, FAKE_ERROR_INVALID, shown, "should match the pattern of its schema", "%s",
                                path);
        if (streq_ptr(format, "date-time") && rfc3339_parse(s, &t) < 0)
                fake_errors_add(e, FAKE_ERROR_INVALID, shown, "must be of type date-time", "%s", path);
        if ((int64_t) strlen(s) < fj_int(schema, 0, "minLength", NULL))
                fake_errors_add(e, FAKE_ERROR_INVALID, shown, "should be at least 1 chars long", "%s", path);
        if ((int64_t) strlen(s) > max)
                fake_errors_add(e, FAKE_ERROR_TOO_LONG, NULL, "may not be that long", "%s", path);
        if (fj_member(schema, "enum") && !fj_array_has(fj_member(schema, "enum"), s))
                fake_errors_add(e, FAKE_ERROR_NOT_SUPPORTED, shown,
                                "supported values are those of its schema", "%s", path);
}

static void check_number(const cJSON *schema, double value, const char *path, FakeErrors *e) {
        const cJSON *least = fj_member(schema, "minimum"), *most = fj_member(schema, "maximum");
        _cleanup_free_ char *shown = MUST(strf("%g", value));

        if (least && value < least->valuedouble)
                fake_errors_add(e, FAKE_ERROR_INVALID, shown, "should be greater than or equal to its minimum", "%s", path);
        if (most && value > most->valuedouble)
                fake_errors_add(e, FAKE_ERROR_INVALID, shown, "should be less than or equal to its maximum", "%s", path);
}

static void check_object(const cJSON *schema, const cJSON *new, const cJSON *old, const char *path,
                         FakeErrors *e) {
        const cJSON *v, *properties = fj_member(schema, "properties"),
                        *more = fj_member(schema, "additionalProperties");
        const char *dot = *path ? "." : "";

        cJSON_ArrayForEach (v, fj_member(schema, "required"))
                if (!fj_member(new, v->valuestring))
                        fake_errors_add(e, FAKE_ERROR_REQUIRED, NULL, NULL, "%s%s%s", path, dot,
                                        v->valuestring);
        if (cJSON_GetArraySize(new) > fj_int(schema, INT64_MAX, "maxProperties", NULL))
                fake_errors_add(e, FAKE_ERROR_TOO_LONG, NULL, "has too many properties", "%s", path);
        cJSON_ArrayForEach (v, new) {
                const cJSON *of = fj_member(properties, v->string);
                _cleanup_free_ char *sub = MUST(strf("%s%s%s", path, dot, v->string));

                if (of || more)
                        check(of ? of : more, v, fj_member(old, v->string), sub, e);
        }
}

/* The only key that our lists of type map have is `type`: two elements of the same are none. */
static void check_array(const cJSON *schema, const cJSON *new, const char *path, FakeErrors *e) {
        bool map = streq_ptr(fj_string(schema, "x-kubernetes-list-type", NULL), "map");
        const cJSON *v;
        int i = 0;

        if (cJSON_GetArraySize(new) > fj_int(schema, INT64_MAX, "maxItems", NULL))
                fake_errors_add(e, FAKE_ERROR_TOO_LONG, NULL, "must have fewer items", "%s", path);
        if (cJSON_GetArraySize(new) < fj_int(schema, 0, "minItems", NULL))
                fake_errors_add(e, FAKE_ERROR_INVALID, "[]", "should have at least 1 items", "%s", path);
        cJSON_ArrayForEach (v, new) {
                _cleanup_free_ char *sub = MUST(strf("%s[%d]", path, i++));

                if (map && fj_find(new, "type", fj_string(v, "type", NULL)) != v)
                        fake_errors_add(e, FAKE_ERROR_DUPLICATE, "{}", NULL, "%s", sub);
                check(fj_member(schema, "items"), v, NULL, sub, e);
        }
}

static void check(const cJSON *schema, const cJSON *new, const cJSON *old, const char *path, FakeErrors *e) {
        const cJSON *rule;
        int before = cJSON_GetArraySize(e->causes);

        if (!type_fits(schema, new)) {
                fake_errors_add(e, FAKE_ERROR_INVALID, "\"...\"", "is of another type than its schema says",
                                "%s", path);
                return;
        }
        if (cJSON_IsString(new))
                check_string(schema, new->valuestring, path, e);
        else if (cJSON_IsNumber(new))
                check_number(schema, new->valuedouble, path, e);
        else if (cJSON_IsObject(new))
                check_object(schema, new, old, path, e);
        else if (cJSON_IsArray(new))
                check_array(schema, new, path, e);
        /* Rules are only asked about what has the form that they expect. */
        if (cJSON_GetArraySize(e->causes) == before)
                cJSON_ArrayForEach (rule, fj_member(schema, RULES))
                        check_rule(rule, new, old, path, e);
}

void fake_schema_validate(const cJSON *schema, const cJSON *new, const cJSON *old, FakeErrors *e) {
        check(schema, new, old, "", e);
}
