/* SPDX-License-Identifier: Apache-2.0 */
#include "kube-request.h"

static void add_segment(StrBuf *b, const char *s) {
        _cleanup_free_ char *encoded = url_encode(s, false);

        strbuf_add_char(b, '/');
        if (encoded)
                strbuf_add(b, encoded);
        else
                b->failed = true;
}

/* Of a path: url_encode() leaves dots as they are, and these two would climb. */
static bool segment_is_valid(const char *s) {
        return !isempty(s) && !streq(s, ".") && !streq(s, "..");
}

int kube_request_url(StrBuf *b, const char *server, const KubeTarget *t) {
        const KubeKind *k;

        assert(b);
        assert(server);
        assert(t);
        assert(t->kind);

        k = t->kind;
        if ((t->name && !segment_is_valid(t->name)) || (t->ns && !segment_is_valid(t->ns)))
                return -EINVAL;
        if ((t->subresource && !t->name) || (t->name && k->namespaced && !t->ns))
                return -EINVAL;

        strbuf_add(b, server);
        strbuf_add(b, isempty(k->group) ? "/api" : "/apis");
        if (!isempty(k->group))
                add_segment(b, k->group);
        add_segment(b, k->version);
        if (k->namespaced && t->ns) {
                strbuf_add(b, "/namespaces");
                add_segment(b, t->ns);
        }
        add_segment(b, k->plural);
        if (t->name)
                add_segment(b, t->name);
        if (t->subresource)
                add_segment(b, t->subresource);
        return b->failed ? -ENOMEM : 0;
}

void kube_request_query(StrBuf *b, const char *key, const char *value) {
        _cleanup_free_ char *encoded = NULL;

        if (!value)
                return;
        encoded = url_encode(value, false);
        if (!encoded) {
                b->failed = true;
                return;
        }
        strbuf_add_char(b, strchr(strbuf_str(b), '?') ? '&' : '?');
        strbuf_add(b, key);
        strbuf_add_char(b, '=');
        strbuf_add(b, encoded);
}

/* The members of metav1.DeleteOptions into an open object. */
static void add_delete_options(JsonWriter *w, const KubeDeleteOptions *d) {
        if (d->grace_sec >= 0)
                json_add_int64(w, "gracePeriodSeconds", d->grace_sec);
        if (d->uid || d->resource_version) {
                json_open_object(w, "preconditions");
                json_add_string(w, "uid", d->uid);
                json_add_string(w, "resourceVersion", d->resource_version);
                json_close_object(w);
        }
        json_add_string(w, "propagationPolicy", d->propagation);
        if (d->dry_run) {
                json_open_array(w, "dryRun");
                json_add_string(w, NULL, "All");
                json_close_array(w);
        }
}

char *kube_request_delete_body(const KubeDeleteOptions *d) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        assert(d);
        if (json_writer_new(&w) < 0)
                return NULL;

        json_open_object(w, NULL);
        json_add_string(w, "apiVersion", "v1");
        json_add_string(w, "kind", "DeleteOptions");
        add_delete_options(w, d);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

char *kube_request_eviction_body(const char *ns, const char *name, const char *uid, int64_t grace_sec) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        const KubeDeleteOptions d = { .uid = uid, .grace_sec = grace_sec };

        if (json_writer_new(&w) < 0)
                return NULL;

        json_open_object(w, NULL);
        json_add_string(w, "apiVersion", "policy/v1");
        json_add_string(w, "kind", "Eviction");
        json_open_object(w, "metadata");
        json_add_string(w, "name", name);
        json_add_string(w, "namespace", ns);
        json_close_object(w);
        json_open_object(w, "deleteOptions");
        add_delete_options(w, &d);
        json_close_object(w);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}
