/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-gce-model.h"

#include <inttypes.h>
#include <regex.h>

#include "strv.h"

bool gce_zone_exists(const FakeGce *f, const char *zone) {
        return strv_contains(f->zones, zone);
}

bool gce_scope_has_zone(const char *scope, const char *zone) {
        const char *in = startswith(scope, "zones/"), *region = startswith(scope, "regions/");
        const char *rest = region ? startswith(zone, region) : NULL;

        return in ? streq(in, zone) : rest && rest[0] == '-' && strlen(rest) == 2;
}

bool gce_scope_exists(const FakeGce *f, const char *scope) {
        STRV_FOREACH (zone, f->zones)
                if (gce_scope_has_zone(scope, *zone))
                        return true;
        return false;
}

static usec_t now(const FakeGce *f) {
        return loop_now(f->rest.loop);
}

/* -- instances ----------------------------------------------------------------------------------------- */

GceInstance *gce_find_instance(const FakeGce *f, const char *zone, const char *name) {
        LIST_FOREACH (i, &f->instances, GceInstance, instances)
                if (streq(i->zone, zone) && streq(i->name, name))
                        return i;
        return NULL;
}

bool gce_is_ending(const GceInstance *i) {
        return i->gone_usec != USEC_INFINITY;
}

const char *gce_instance_status(const FakeGce *f, const GceInstance *i) {
        usec_t at = now(f);

        if (at < i->created_usec || at >= i->gone_usec)
                return NULL;
        if (gce_is_ending(i))
                return at < i->stopping_usec ? "PENDING_STOP" : "STOPPING";
        return at < i->running_usec ? "PROVISIONING" : i->status;
}

GceInstance *gce_add_instance(FakeGce *f, const char *zone, const char *name, GceGroup *group) {
        GceInstance *i = MUST(new0(GceInstance, 1));

        i->zone = MUST(strdup(zone));
        i->name = MUST(strdup(name));
        i->status = MUST(strdup("RUNNING"));
        i->labels = MUST(cJSON_CreateObject());
        i->id = UINT64_C(4820001000000000000) + ++f->n_ids;
        i->group = group;
        i->created_usec = i->running_usec = now(f);
        i->stopping_usec = i->gone_usec = USEC_INFINITY;
        list_append(&f->instances, &i->instances);
        return i;
}

void gce_instance_free(FakeGce *f, GceInstance *i) {
        list_remove(&f->instances, &i->instances);
        cJSON_Delete(i->labels);
        free(i->zone);
        free(i->name);
        free(i->status);
        free(i);
}

usec_t gce_delete_instance(FakeGce *f, GceInstance *i, bool graceful) {
        bool stopped = streq(i->status, "TERMINATED") || streq(i->status, "STOPPED");

        if (!gce_is_ending(i)) {
                i->stopping_usec = usec_add(now(f), graceful && !stopped ? i->graceful_usec : 0);
                i->gone_usec = usec_add(i->stopping_usec, f->delete_usec);
        }
        return i->gone_usec;
}

/* The same name, another machine. */
static void come_back(FakeGce *f, GceInstance *i) {
        int r = free_and_strdup(&i->status, "RUNNING");

        assert(r >= 0);
        i->id = UINT64_C(4820001000000000000) + ++f->n_ids;
        i->created_usec = usec_add(i->gone_usec, f->recreate_usec);
        i->running_usec = usec_add(i->created_usec, f->provision_usec);
        i->stopping_usec = i->gone_usec = USEC_INFINITY;
        i->protected = false;
        i->again = true;
}

void gce_advance(FakeGce *f) {
        LIST_FOREACH (i, &f->instances, GceInstance, instances) {
                if (i->gone_usec > now(f))
                        continue;
                if (i->group && !i->removed)
                        come_back(f, i);
                else
                        gce_instance_free(f, i);
        }
}

/* -- filters -------------------------------------------------------------------------------------------- */

static bool full_match(const char *pattern, const char *text) {
        _cleanup_free_ char *whole = MUST(strf("^(%s)$", pattern));
        regex_t re;
        bool match;

        if (regcomp(&re, whole, REG_EXTENDED | REG_NOSUB) != 0)
                return false;
        match = regexec(&re, text, 0, NULL, 0) == 0;
        regfree(&re);
        return match;
}

/* One "key op value". 1: it fits, 0: it does not, < 0: nothing that is understood here. */
static int term_fits(const FakeGce *f, const GceInstance *i, char *term) {
        static const struct {
                const char *text;
                bool negated, regex;
        } operators[] = {
                { "!=", true, false }, { " ne ", true, true }, { " eq ", false, true }, { "=", false, false }
        };
        const char *label, *field;

        term = strstrip(term);
        if (term[0] == '(' && endswith(term, ")")) {
                term[strlen(term) - 1] = 0;
                term++;
        }
        for (size_t n = 0; n < ELEMENTSOF(operators); n++) {
                char *at = strstr(term, operators[n].text), *key, *value;
                bool equal;

                if (!at)
                        continue;
                *at = 0;
                key = strstrip(term);
                value = strstrip(at + strlen(operators[n].text));
                if (value[0] == '"' && strlen(value) > 1 && endswith(value, "\"")) {
                        value[strlen(value) - 1] = 0;
                        value++;
                }
                label = startswith(key, "labels.");
                field = streq(key, "name")     ? i->name
                        : streq(key, "status") ? gce_instance_status(f, i)
                        : label                ? strempty(fj_string(i->labels, label, NULL))
                                               : NULL;
                if (!field)
                        return -EINVAL;
                equal = operators[n].regex ? full_match(value, field) : streq(value, field);
                return equal != operators[n].negated;
        }
        return -EINVAL;
}

int gce_filter_fits(const FakeGce *f, const GceInstance *i, const char *filter) {
        _cleanup_free_ char *copy = MUST(strdup(strempty(filter)));
        char *rest = copy;

        while (rest && *strstrip(rest)) {
                char *next = strstr(rest, " AND ");
                int k;

                if (next)
                        *next = 0;
                k = term_fits(f, i, rest);
                if (k <= 0)
                        return k;
                rest = next ? next + 5 : NULL;
        }
        return 1;
}

/* -- groups -------------------------------------------------------------------------------------------- */

GceGroup *gce_find_group(const FakeGce *f, const char *scope, const char *name) {
        LIST_FOREACH (g, &f->groups, GceGroup, groups)
                if (streq(g->name, name) && (!scope || streq(g->scope, scope)))
                        return g;
        return NULL;
}

static const char *zone_for(const FakeGce *f, const GceGroup *g, size_t n) {
        const char *fit = NULL;

        STRV_FOREACH (zone, f->zones)
                if (gce_scope_has_zone(g->scope, *zone)) {
                        fit = *zone;
                        if (n-- == 0)
                                break;
                }
        return MUST(fit);
}

void gce_group_fill(FakeGce *f, GceGroup *g) {
        size_t n = 0;

        LIST_FOREACH (i, &f->instances, GceInstance, instances)
                n += i->group == g && !i->removed;
        LIST_FOREACH (i, &f->instances, GceInstance, instances) {
                if (n <= g->size)
                        break;
                if (i->group != g || i->removed)
                        continue;
                i->removed = true;
                gce_delete_instance(f, i, true);
                n--;
        }
        for (; n < g->size; n++) {
                _cleanup_free_ char *name = MUST(strf("%s-%04x", g->name, ++g->n_made));
                GceInstance *i = gce_add_instance(f, zone_for(f, g, n % 3), name, g);

                i->running_usec = usec_add(i->created_usec, f->provision_usec);
        }
}

/* -- operations ---------------------------------------------------------------------------------------- */

GceOperation *gce_find_request(const FakeGce *f, const char *request_id) {
        LIST_FOREACH (o, &f->operations, GceOperation, operations)
                if (request_id && streq_ptr(o->request_id, request_id))
                        return o;
        return NULL;
}

GceOperation *gce_find_operation(const FakeGce *f, const char *scope, const char *name) {
        LIST_FOREACH (o, &f->operations, GceOperation, operations)
                if (streq(o->scope, scope) && streq(o->name, name))
                        return o;
        return NULL;
}

GceOperation *gce_add_operation(FakeGce *f, const char *scope, const char *type, const char *target,
                                uint64_t target_id, const char *request_id, usec_t done_usec) {
        GceOperation *o = MUST(new0(GceOperation, 1));

        o->id = UINT64_C(7310002000000000000) + ++f->n_ids;
        o->name = MUST(strf("operation-1790000000000-%012" PRIx64 "-c0ffee00-5eed0001", f->n_ids));
        o->scope = MUST(strdup(scope));
        o->type = MUST(strdup(type));
        o->target = MUST(strdup(target));
        o->target_id = target_id;
        o->request_id = request_id ? MUST(strdup(request_id)) : NULL;
        o->inserted_wall_usec = loop_wall(f->rest.loop);
        o->running_usec = usec_add(now(f), f->accept_usec);
        o->done_usec = MAX(done_usec, o->running_usec);
        list_append(&f->operations, &o->operations);
        return o;
}

bool gce_operation_fails(FakeGce *f, GceOperation *o) {
        if (f->n_failing == 0)
                return false;
        f->n_failing--;
        o->http_status = f->failing_status;
        o->code = MUST(strdup(f->failing_code));
        o->message = MUST(strdup(f->failing_message));
        o->done_usec = o->running_usec;
        return true;
}

void gce_operation_free(FakeGce *f, GceOperation *o) {
        list_remove(&f->operations, &o->operations);
        free(o->name);
        free(o->scope);
        free(o->type);
        free(o->target);
        free(o->request_id);
        free(o->code);
        free(o->message);
        free(o);
}

/* -- what tests do ------------------------------------------------------------------------------------- */

static usec_t or_else(usec_t usec, usec_t otherwise) {
        return usec > 0 ? usec : otherwise;
}

FakeGce *fake_gce_new(const FakeGceOptions *o) {
        FakeGce *f = MUST(new0(FakeGce, 1));
        int r;

        fake_rest_init(&f->rest, o->loop, o->token);
        f->project = MUST(strdup(o->project ? o->project : "vesper-test"));
        r = strv_split(o->zones ? o->zones : "us-central1-a us-central1-b us-central1-c", " ", &f->zones);
        assert(r >= 0);
        f->accept_usec = or_else(o->accept_usec, USEC_PER_SEC);
        f->delete_usec = or_else(o->delete_usec, 30 * USEC_PER_SEC);
        f->recreate_usec = or_else(o->recreate_usec, 20 * USEC_PER_SEC);
        f->provision_usec = or_else(o->provision_usec, 10 * USEC_PER_SEC);
        f->wait_usec = or_else(o->wait_usec, 120 * USEC_PER_SEC);
        return f;
}

FakeGce *fake_gce_free(FakeGce *f) {
        if (!f)
                return NULL;
        assert(f->waits.size == 0);
        LIST_FOREACH (i, &f->instances, GceInstance, instances)
                gce_instance_free(f, i);
        LIST_FOREACH (o, &f->operations, GceOperation, operations)
                gce_operation_free(f, o);
        LIST_FOREACH (g, &f->groups, GceGroup, groups) {
                free(g->scope);
                free(g->name);
                free(g);
        }
        fake_rest_done(&f->rest);
        strv_free(f->zones);
        free(f->project);
        free(f->failing_code);
        free(f->failing_message);
        return mfree(f);
}

void fake_gce_add_group(FakeGce *f, const char *scope, const char *name) {
        GceGroup *g = MUST(new0(GceGroup, 1));

        assert(gce_scope_exists(f, scope) && !gce_find_group(f, NULL, name));
        g->scope = MUST(strdup(scope));
        g->name = MUST(strdup(name));
        g->id = UINT64_C(5550001000000000000) + ++f->n_ids;
        list_append(&f->groups, &g->groups);
}

void fake_gce_run(FakeGce *f, const char *zone, const char *name, const char *group) {
        GceGroup *g = group ? MUST(gce_find_group(f, NULL, group)) : NULL;

        assert(gce_zone_exists(f, zone) && !gce_find_instance(f, zone, name));
        assert(!g || gce_scope_has_zone(g->scope, zone));
        gce_add_instance(f, zone, name, g);
        if (g)
                g->size++;
}

static GceInstance *must_instance(FakeGce *f, const char *zone, const char *name) {
        gce_advance(f);
        return MUST(gce_find_instance(f, zone, name));
}

void fake_gce_set_status(FakeGce *f, const char *zone, const char *name, const char *status) {
        int r = free_and_strdup(&must_instance(f, zone, name)->status, status);

        assert(r >= 0);
}

void fake_gce_protect(FakeGce *f, const char *zone, const char *name, bool protect) {
        must_instance(f, zone, name)->protected = protect;
}

void fake_gce_set_label(FakeGce *f, const char *zone, const char *name, const char *key, const char *value) {
        fj_set_string(must_instance(f, zone, name)->labels, key, value);
}

void fake_gce_set_graceful(FakeGce *f, const char *zone, const char *name, usec_t graceful_usec) {
        must_instance(f, zone, name)->graceful_usec = graceful_usec;
}

const char *fake_gce_status(FakeGce *f, const char *zone, const char *name) {
        const GceInstance *i;

        gce_advance(f);
        i = gce_find_instance(f, zone, name);
        return i ? gce_instance_status(f, i) : NULL;
}

unsigned fake_gce_target_size(FakeGce *f, const char *group) {
        return MUST(gce_find_group(f, NULL, group))->size;
}

bool fake_gce_has_scope(const FakeGce *f, const char *scope) {
        return gce_scope_exists(f, scope);
}

bool fake_gce_has_group(const FakeGce *f, const char *group) {
        return gce_find_group(f, NULL, group);
}

size_t fake_gce_n_alive(FakeGce *f) {
        size_t n = 0;

        gce_advance(f);
        LIST_FOREACH (i, &f->instances, GceInstance, instances)
                n += !gce_is_ending(i);
        return n;
}

void fake_gce_fail_operations(FakeGce *f, unsigned n, unsigned http_status, const char *code,
                              const char *message) {
        int r = free_and_strdup(&f->failing_code, code);

        assert(r >= 0);
        r = free_and_strdup(&f->failing_message, message);
        assert(r >= 0);
        f->n_failing = n;
        f->failing_status = http_status;
}

FakeRest *fake_gce_rest(FakeGce *f) {
        return &f->rest;
}

void fake_gce_throttle(FakeGce *f, unsigned n, unsigned status) {
        fake_troubles_add(f->rest.troubles, &(FakeTrouble) { .kind = FAKE_TROUBLE_FAIL,
                                                             .n = n,
                                                             .status = status,
                                                             .code = "rateLimitExceeded",
                                                             .message = "Rate Limit Exceeded" });
}
