/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake-handlers.h"
#include "parse-util.h"

/* What was asked of the API server: the newest requests whole, all of them as counts. */

#define LOG_LIMIT_DEFAULT 100000u

static void entry_done(FakeLogEntry *e) {
        free(e->user);
        free(e->method);
        free(e->path);
        free(e->query);
        free(e->subresource);
        *e = (FakeLogEntry){ 0 };
}

static char *counter_key(const char *verb, const char *resource, const char *subresource, unsigned status) {
        return MUST(
                strf("%s %s%s%s %u", verb, resource, subresource ? "/" : "", strempty(subresource), status));
}

static void count(FakeApi *a, const FakeRequest *r, const FakeLogEntry *e) {
        const char *verb = r->is_resource ? strempty(fake_verb_to_string(e->verb)) : r->method;
        const char *what = e->resource ? e->resource->plural : r->is_resource ? r->plural : e->path;
        _cleanup_free_ char *key = counter_key(verb, what, e->subresource, e->status);
        uint64_t *n = hashmap_get(a->counters, key);
        int k;

        if (!n) {
                n = MUST(new0(uint64_t, 1));
                k = hashmap_put(a->counters, key, n);
                assert(k >= 0);
        }
        (*n)++;
}

void fake_log_begin(FakeApi *a, const FakeRequest *r, FakeLogEntry *ret) {
        *ret = (FakeLogEntry){
                .at_usec = loop_now(a->loop),
                .method = MUST(strdup(r->method)),
                .path = MUST(strdup(r->x->path)),
                .query = MUST(strdup(strempty(r->x->query))),
                .verb = r->verb,
                .resource = r->resource,
                .subresource = r->subresource ? MUST(strdup(r->subresource)) : NULL,
        };
}

void fake_log_drop(FakeLogEntry *entry) {
        entry_done(entry);
}

/* Takes what is in the entry. */
void fake_log_end(FakeApi *a, const FakeRequest *r, FakeLogEntry *entry, unsigned status) {
        size_t limit = a->options.log_limit > 0 ? a->options.log_limit : LOG_LIMIT_DEFAULT, drop;
        int k;

        entry->status = status;
        entry->user = MUST(strdup(r->user.name ? r->user.name : "system:anonymous"));
        count(a, r, entry);

        if (a->n_log >= limit) {
                drop = a->n_log - limit / 2;
                for (size_t i = 0; i < drop; i++)
                        entry_done(&a->log[i]);
                memmove(a->log, a->log + drop, (a->n_log - drop) * sizeof(FakeLogEntry));
                a->n_log -= drop;
        }
        k = GREEDY_REALLOC(a->log, a->log_allocated, a->n_log + 1);
        assert(k >= 0);
        a->log[a->n_log++] = *entry;
        *entry = (FakeLogEntry){ 0 };
}

size_t fake_api_log_size(const FakeApi *a) {
        return a->n_log;
}

const FakeLogEntry *fake_api_log_at(const FakeApi *a, size_t i) {
        return i < a->n_log ? &a->log[i] : NULL;
}

void fake_api_log_reset(FakeApi *a) {
        uint64_t *n;

        for (size_t i = 0; i < a->n_log; i++)
                entry_done(&a->log[i]);
        a->n_log = 0;
        HASHMAP_FOREACH (n, a->counters)
                free(n);
        hashmap_clear(a->counters);
}

uint64_t fake_api_count_status(const FakeApi *a, FakeVerb verb, FakeResourceId id, const char *subresource,
                               unsigned status) {
        _cleanup_free_ char *exact =
                counter_key(fake_verb_to_string(verb), fake_resource(id)->plural, subresource, status);
        size_t prefix = (size_t) (strrchr(exact, ' ') - exact) + 1;
        HashmapIterator it = { 0 };
        uint64_t sum = 0;
        const char *key;
        void *n;

        while (hashmap_iterate(a->counters, &it, &key, &n))
                if (status != 0 ? streq(key, exact) : strncmp(key, exact, prefix) == 0)
                        sum += *(uint64_t *) n;
        return sum;
}

uint64_t fake_api_count(const FakeApi *a, FakeVerb verb, FakeResourceId id, const char *subresource) {
        return fake_api_count_status(a, verb, id, subresource, 0);
}

uint64_t fake_api_count_all(const FakeApi *a) {
        uint64_t sum = 0, *n;

        HASHMAP_FOREACH (n, a->counters)
                sum += *n;
        return sum;
}

cJSON *fake_api_log_json(const FakeApi *a) {
        cJSON *array = MUST(cJSON_CreateArray());

        for (size_t i = 0; i < a->n_log; i++) {
                const FakeLogEntry *e = &a->log[i];
                cJSON *o = MUST(cJSON_CreateObject());
                char time[RFC3339_MAX];

                rfc3339_format_micro(loop_to_wall(a->loop, e->at_usec), time);
                fj_set_string(o, "time", time);
                fj_set_string(o, "user", e->user);
                fj_set_string(o, "verb", strempty(fake_verb_to_string(e->verb)));
                fj_set_string(o, "method", e->method);
                fj_set_string(o, "path", e->path);
                fj_set_string(o, "query", e->query);
                fj_set_int(o, "status", e->status);
                cJSON_AddItemToArray(array, o);
        }
        return array;
}

cJSON *fake_api_counters_json(const FakeApi *a) {
        cJSON *o = MUST(cJSON_CreateObject());
        HashmapIterator it = { 0 };
        const char *key;
        void *n;

        while (hashmap_iterate(a->counters, &it, &key, &n))
                fj_set_int(o, key, (int64_t) * (uint64_t *) n);
        return o;
}
