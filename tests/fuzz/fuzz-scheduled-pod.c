/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "fuzz-objects.h"
#include "string-util.h"

/*
 * A pod as kube-scheduler looks at it: its text is JSON with the members that are promised, in their order; and the same pod
 * with the members of each of its objects in another order is the same to it.
 */

static const char *const members[] = { "ns",       "labels",      "priority",     "scheduler", "containers",  "init",
                                       "podRequests", "overhead", "nodeSelector", "affinity",  "tolerations",
                                       "topologySpreadConstraints", "unmodelled" };

static void check_text(const char *text, bool whole) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        size_t at = 0;

        assert(json_parse(text, strlen(text), strlen(text), &doc, NULL) >= 0);
        assert(json_is_object(json_root(doc)));
        JSON_FOREACH (i, json_root(doc)) {
                while (at < ELEMENTSOF(members) && !streq(members[at], json_key(i)))
                        at++;
                assert(at < ELEMENTSOF(members));
                at++;
                assert(!whole || !(json_is_object(i) || json_is_array(i)) || json_size(i) > 0);
        }
}

static void add_backwards(JsonWriter *w, const char *key, const Json *v) {
        size_t n = json_size(v), k;

        if (json_is_array(v)) {
                json_open_array(w, key);
                JSON_FOREACH (i, v)
                        add_backwards(w, NULL, i);
                json_close_array(w);
        } else if (json_is_object(v)) {
                json_open_object(w, key);
                while (n > 0) {
                        k = 0;
                        JSON_FOREACH (i, v)
                                if (++k == n)
                                        add_backwards(w, json_key(i), i);
                        n--;
                }
                json_close_object(w);
        } else
                json_add_value(w, key, v);
}

static char *backwards(const char *data, size_t size) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;

        assert(json_parse(data, size, size, &doc, NULL) >= 0 && json_writer_new(&w) >= 0);
        add_backwards(w, NULL, json_root(doc));
        return json_writer_steal(w, NULL);
}

static void check(const char *data, size_t size) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_free_ char *other_text = NULL;
        KubeObject *o, *other = NULL;

        assert(intern_pool_new(&pool) >= 0);
        o = fuzz_object(&kube_scheduled_pod_kind, data, size, pool);
        if (o) {
                const KubeScheduledPod *a = (const KubeScheduledPod *) o, *b;

                other_text = backwards(data, size);
                assert(other_text);
                other = fuzz_object(&kube_scheduled_pod_kind, other_text, strlen(other_text), pool);
                b = (const KubeScheduledPod *) other;
                assert(b && a->scheduling && !o->invalid == !other->invalid);
                check_text(a->scheduling, !o->invalid);
                assert(o->invalid || a->scheduling == b->scheduling);
                assert(o->invalid || kube_pod_says_same(&a->pod, &b->pod));
        }
        kube_object_unref(o);
        kube_object_unref(other);
        assert(intern_pool_size(pool) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Draw d = { data, size };
        _cleanup_free_ char *bent = NULL;

        if (draw_is_text(data, size))
                check((const char *) data, size);
        else {
                bent = draw_bent_json(&d, fuzz_scheduled_pod);
                check(bent, strlen(bent));
        }
        return 0;
}
