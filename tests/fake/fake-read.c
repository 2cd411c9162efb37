/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include "fake-handlers.h"
#include "fake-protobuf.h"
#include "parse-util.h"

/*
 * get and list. A list in pages keeps to the version of its first page: the continue token is
 * base64url({"v":"meta.k8s.io/v1","rv":N,"start":"ns/name\0"}), as apiserver/pkg/storage/continue.go writes
 * it.
 */

#define TOO_OLD_TO_CONTINUE \
        "The provided continue parameter is too old to display a consistent list result. You can start a " \
        "new list without " \
        "the continue parameter, or use the continue token in this response to retrieve the remainder of " \
        "the results. " \
        "Continuing with the provided token results in an inconsistent list - objects that were created, " \
        "modified, or " \
        "deleted between the time the first chunk was returned and now may show up in the list."

typedef struct Page {
        uint64_t rv;       /* of the whole list */
        uint64_t limit;    /* 0: no paging */
        char *start;       /* keys from here on; NULL: from the first */
        bool inconsistent; /* continued after a 410: as of now */
        bool past;         /* rv is in the past: from a snapshot */
} Page;

char *fake_object_print(const FakeResource *r, const cJSON *object) {
        _cleanup_free_ char *text = fj_print(object);

        return MUST(strf("{\"kind\":\"%s\",\"apiVersion\":\"%s\"%s%s", r->kind, fake_resource_api_version(r),
                         streq(text, "{}") ? "" : ",", text + 1));
}

void fake_handle_get(FakeApi *a, const FakeRequest *r, FakeReply *reply) {
        FakeVersion *v = fake_store_version(a->store, r->resource->id, r->ns, r->name);

        if (!v)
                fake_reply_not_found(reply, r->resource, r->name);
        else
                fake_reply_text(reply, 200, fake_version_print(r->resource, v));
}

bool fake_selectors_of(const FakeRequest *r, FakeSelector *ret_labels, FakeSelector *ret_fields,
                       FakeReply *reply) {
        const char *labels = fake_request_query(r, "labelSelector"),
                   *fields = fake_request_query(r, "fieldSelector");
        _cleanup_free_ char *error = NULL;

        if (labels && !fake_label_selector_parse(labels, ret_labels, &error))
                return fake_reply_bad_request(reply, "%s", error);
        if (fields && !fake_field_selector_parse(r->resource, fields, ret_fields, &error)) {
                fake_selector_done(ret_labels);
                return fake_reply_bad_request(reply, "%s", error);
        }
        return true;
}

/* -- continue tokens ----------------------------------------------------------------------------------- */

static char *token_make(uint64_t rv, bool inconsistent, const char *last_key) {
        _cleanup_free_ char *text = NULL;
        char *token;
        size_t n;

        if (inconsistent)
                text = MUST(strf("{\"v\":\"meta.k8s.io/v1\",\"rv\":-1,\"start\":\"%s\\u0000\"}", last_key));
        else
                text = MUST(strf("{\"v\":\"meta.k8s.io/v1\",\"rv\":%" PRIu64 ",\"start\":\"%s\\u0000\"}", rv,
                                 last_key));
        token = MUST(base64_encode(text, strlen(text)));
        for (char *p = token; *p; p++)
                *p = *p == '+' ? '-' : *p == '/' ? '_' : *p;
        for (n = strlen(token); n > 0 && token[n - 1] == '='; n--)
                token[n - 1] = 0;
        return token;
}

/* The key after which to go on, without the NUL that cJSON cannot hold. */
static bool token_read(const char *token, Page *ret) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        _cleanup_free_ void *text = NULL;
        _cleanup_cjson_ cJSON *json = NULL;
        const char *start, *nul;
        int64_t rv;
        size_t size;

        strbuf_add(&b, token);
        for (char *p = b.data; p && *p; p++)
                *p = *p == '-' ? '+' : *p == '_' ? '/' : *p;
        while (b.size % 4 != 0)
                strbuf_add_char(&b, '=');
        if (base64_decode(strbuf_str(&b), b.size, &text, &size) < 0)
                return false;

        /* "\u0000" ends a C string where the key ends: just what is wanted. */
        nul = strstr(text, "\\u0000");
        if (!nul)
                return false;
        memmove((char *) nul, nul + 6, strlen(nul + 6) + 1);
        json = cJSON_Parse(text);
        start = fj_string(json, "start", NULL);
        rv = fj_int(json, 0, "rv", NULL);
        if (!streq_ptr(fj_string(json, "v", NULL), "meta.k8s.io/v1") || isempty(start) || rv == 0)
                return false;

        ret->start = MUST(strdup(start));
        ret->inconsistent = rv < 0;
        ret->rv = rv < 0 ? 0 : (uint64_t) rv;
        return true;
}

/* -- list ---------------------------------------------------------------------------------------------- */

static bool too_large(uint64_t rv, uint64_t current, FakeReply *reply) {
        fake_reply_failure(reply, 504, "Timeout",
                           "Timeout: Too large resource version: %" PRIu64 ", current: %" PRIu64, rv,
                           current);
        fake_reply_add_cause(reply, "ResourceVersionTooLarge", "Too large resource version", NULL);
        fake_reply_set_retry_after(reply, 1);
        return false;
}

/* 422 on the list options themselves. */
static bool options_forbidden(FakeReply *reply, const char *field, const char *detail) {
        _cleanup_errors_ FakeErrors e = { 0 };

        fake_errors_add(&e, FAKE_ERROR_FORBIDDEN, NULL, detail, "%s", field);
        return fake_errors_reply_as(&e, "ListOptions.meta.k8s.io", "", reply);
}

static bool check_list_options(const FakeRequest *r, FakeReply *reply) {
        const char *match = fake_request_query(r, "resourceVersionMatch");

        if (isempty(match))
                return true;
        if (isempty(fake_request_query(r, "resourceVersion")))
                return options_forbidden(
                        reply, "resourceVersionMatch",
                        "resourceVersionMatch is forbidden unless resourceVersion is provided");
        if (!isempty(fake_request_query(r, "continue")))
                return options_forbidden(reply, "resourceVersionMatch",
                                         "resourceVersionMatch is forbidden when continue is provided");
        if (streq(match, "Exact") && streq(fake_request_query(r, "resourceVersion"), "0"))
                return options_forbidden(
                        reply, "resourceVersionMatch",
                        "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
        return true;
}

static bool page_continue(FakeApi *a, const FakeRequest *r, const char *token, Page *p, FakeReply *reply) {
        const char *rv = fake_request_query(r, "resourceVersion");

        if (!isempty(rv) && !streq(rv, "0"))
                return fake_reply_bad_request(
                        reply, "specifying resource version is not allowed when using continue");
        if (!token_read(token, p))
                return fake_reply_bad_request(reply, "invalid continue token: continue key is not valid");
        if (p->inconsistent) {
                p->rv = fake_store_rv(a->store);
                return true;
        }
        p->past = true;
        if (p->rv > fake_store_rv(a->store))
                return too_large(p->rv, fake_store_rv(a->store), reply);
        if (p->rv < fake_store_compacted(a->store, r->resource->id)) {
                _cleanup_free_ char *again = token_make(0, true, p->start);

                fake_reply_expired(reply, "%s", TOO_OLD_TO_CONTINUE);
                fj_set_string(fj_object(reply->status, "metadata"), "continue", again);
                return false;
        }
        return true;
}

/* Where and when to read. */
static bool page_of(FakeApi *a, const FakeRequest *r, Page *p, FakeReply *reply) {
        const char *limit = fake_request_query(r, "limit"), *token = fake_request_query(r, "continue");
        const char *text = fake_request_query(r, "resourceVersion");
        uint64_t now = fake_store_rv(a->store), rv = 0;

        if (!isempty(limit) && parse_uint64(limit, &p->limit) < 0)
                return fake_reply_bad_request(reply, "strconv.ParseInt: parsing \"%s\": invalid syntax",
                                              limit);
        if (!check_list_options(r, reply))
                return false;
        if (!isempty(token))
                return page_continue(a, r, token, p, reply);

        p->rv = now;
        if (isempty(text))
                return true;
        if (parse_uint64(text, &rv) < 0)
                return fake_reply_bad_request(
                        reply,
                        "invalid resource version: resourceVersion: Invalid value: \"%s\": "
                        "strconv.ParseUint: parsing \"%s\": invalid syntax",
                        text, text);
        if (rv == 0) {
                p->limit = 0; /* the watch cache answers, and knows no pages */
                return true;
        }
        if (rv > now)
                return too_large(rv, now, reply);
        if (streq_ptr(fake_request_query(r, "resourceVersionMatch"), "Exact")) {
                if (rv < fake_store_compacted(a->store, r->resource->id))
                        return fake_reply_expired(reply,
                                                  "The resourceVersion for the provided list is too old.");
                p->rv = rv;
                p->past = true;
        }
        return true;
}

static bool in_namespace(const FakeRequest *r, const cJSON *object) {
        return !r->ns || !r->resource->namespaced ||
               streq_ptr(fj_string(object, "metadata", "namespace", NULL), r->ns);
}

static void add_item(StrBuf *b, const FakeRequest *r, FakeVersion *v, bool first) {
        _cleanup_free_ char *printed = NULL;
        const char *message;
        size_t size;

        if (r->protobuf) {
                message = fake_version_message(r->resource, v, &size);
                fake_protobuf_add_item(b, message, size);
                return;
        }

        if (!first)
                strbuf_add_char(b, ',');
        if (r->resource->custom) {
                printed = fake_version_print(r->resource, v);
                strbuf_add(b, printed);
        } else
                strbuf_add(b, fake_version_text(v));
}

static void finish_json(const FakeRequest *r, const cJSON *meta, const StrBuf *items, FakeReply *reply) {
        _cleanup_free_ char *printed = fj_print(meta);
        _cleanup_strbuf_ StrBuf b = { 0 };

        strbuf_addf(&b, "{\"kind\":\"%sList\",\"apiVersion\":\"%s\",\"metadata\":%s,\"items\":[",
                    r->resource->kind, fake_resource_api_version(r->resource), printed);
        strbuf_add_n(&b, strbuf_str(items), items->size);
        strbuf_add(&b, "]}");
        fake_reply_text(reply, 200, strbuf_steal(&b));
}

static void finish_protobuf(const FakeRequest *r, const cJSON *meta, const StrBuf *items, FakeReply *reply) {
        StrBuf b = { 0 };

        fake_protobuf_add_list(&b, r->resource, meta, items);
        fake_reply_protobuf(reply, 200, &b);
}

/* What a page says about the rest. */
static void finish(const FakeRequest *r, const Page *p, const StrBuf *items, const char *last_key,
                   uint64_t left, bool filtered, FakeReply *reply) {
        _cleanup_cjson_ cJSON *meta = fj_parse("{'resourceVersion':'%" PRIu64 "'}", p->rv);
        _cleanup_free_ char *token = last_key ? token_make(p->rv, false, last_key) : NULL;

        if (token)
                fj_set_string(meta, "continue", token);
        if (token && !filtered)
                fj_set_int(meta, "remainingItemCount", (int64_t) left);
        if (r->protobuf)
                finish_protobuf(r, meta, items, reply);
        else
                finish_json(r, meta, items, reply);
}

/* What a list walks over: what is there now, or what was there then, or on one node. */
typedef struct Source {
        const FakeStore *store;
        FakeResourceId id;
        FakeVersion **picked; /* NULL: all that is there now */
        size_t n;
} Source;

static FakeVersion *source_at(const Source *s, size_t i) {
        return s->picked ? s->picked[i] : fake_store_at(s->store, s->id, i);
}

/* The first to look at: keys are in order, so a page begins behind the last key of the one before. */
static size_t source_begin(const Source *s, const FakeRequest *r, const Page *p) {
        size_t low =
                r->ns && r->resource->namespaced && !s->picked ? fake_store_first(s->store, s->id, r->ns) : 0;
        size_t high = s->n;

        while (p->start && low < high) {
                size_t mid = low + (high - low) / 2;
                _cleanup_free_ char *key = fake_object_key(source_at(s, mid)->json);

                if (strcmp(key, p->start) <= 0)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low;
}

static void list(const Source *s, const FakeRequest *r, const Page *p, const FakeSelector *labels,
                 const FakeSelector *fields, FakeReply *reply) {
        bool filtered = labels->n_items + fields->n_items > 0;
        _cleanup_strbuf_ StrBuf items = { 0 };
        _cleanup_free_ char *last = NULL;
        uint64_t taken = 0, left = 0;

        for (size_t i = source_begin(s, r, p); i < s->n; i++) {
                FakeVersion *v = source_at(s, i);

                if (!in_namespace(r, v->json)) {
                        if (!s->picked)
                                break;
                        continue;
                }
                if ((labels->n_items > 0 &&
                     !fake_label_selector_matches(labels, fj_get(v->json, "metadata", "labels", NULL))) ||
                    !fake_field_selector_matches(fields, v->json))
                        continue;
                if (p->limit > 0 && taken == p->limit) {
                        left++;
                        if (filtered) /* how many more is not told then */
                                break;
                        if (!r->ns || !r->resource->namespaced) {
                                left = s->n - i;
                                break;
                        }
                        continue;
                }
                add_item(&items, r, v, taken++ == 0);
                if (p->limit > 0 && taken == p->limit)
                        last = fake_object_key(v->json);
        }
        finish(r, p, &items, left > 0 ? last : NULL, left, filtered, reply);
}

/* One node's pods, picked from among all; NULL: not asked for so. */
static FakeVersion **pick_node_pods(FakeApi *a, const FakeRequest *r, const FakeSelector *fields, size_t *ret_n) {
        const char *node = r->resource->id == FAKE_PODS ? fake_field_selector_exact(fields, "spec.nodeName") : NULL;
        FakeVersion **picked = NULL;
        size_t allocated = 0;

        *ret_n = 0;
        if (isempty(node))
                return NULL;
        do {
                int k = GREEDY_REALLOC(picked, allocated, *ret_n + 1);

                assert(k >= 0);
                picked[*ret_n] = fake_version_ref(fake_store_node_pod(a->store, node, *ret_n));
        } while (picked[*ret_n] && ++*ret_n);
        return picked;
}

static void list_at(FakeApi *a, const FakeRequest *r, const Page *p, const FakeSelector *labels,
                    const FakeSelector *fields, FakeReply *reply) {
        Source s = { .store = a->store,
                     .id = r->resource->id,
                     .n = fake_store_size(a->store, r->resource->id) };
        FakeVersion **picked;
        size_t n;

        if (p->past && fake_store_change(a->store, s.id, fake_store_changes_after(a->store, s.id, p->rv)))
                s.picked = fake_store_snapshot(a->store, s.id, p->rv, &s.n);
        else if ((picked = pick_node_pods(a, r, fields, &n))) {
                s.picked = picked;
                s.n = n;
        }
        list(&s, r, p, labels, fields, reply);
        if (s.picked)
                fake_versions_free(s.picked, s.n);
}

void fake_handle_list(FakeApi *a, const FakeRequest *r, FakeReply *reply) {
        FakeSelector labels = { 0 }, fields = { 0 };
        Page p = { 0 };

        if (fake_selectors_of(r, &labels, &fields, reply) && page_of(a, r, &p, reply))
                list_at(a, r, &p, &labels, &fields, reply);
        free(p.start);
        fake_selector_done(&labels);
        fake_selector_done(&fields);
}
