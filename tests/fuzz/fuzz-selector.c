/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>

#include "fuzz-draw.h"
#include "kube-object.h"
#include "selector.h"
#include "string-util.h"

static const char template[] = "{\"matchLabels\":{\"app\":\"web\"},\"matchExpressions\":[{\"key\":\"zone\","
                               "\"operator\":\"In\",\"values\":[\"a\",\"b\"]},"
                               "{\"key\":\"app\",\"operator\":\"NotIn\",\"values\":[\"db\"]},{\"key\":"
                               "\"zone\",\"operator\":\"Exists\"},"
                               "{\"key\":\"gpu\",\"operator\":\"DoesNotExist\"}]}";

/* What selects is never refused later; an empty selector selects all or nothing; nothing stays interned. */
static void check(const char *data, size_t size) {
        static const KeyValue items[] = { { "app", "web" }, { "zone", "a" } };
        static const KeyValues labels = { (KeyValue *) items, ELEMENTSOF(items) }, none = { 0 };
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        Selector *s = NULL;
        int r;

        if (json_parse(data, size, size, &doc, NULL) < 0)
                return;
        assert(intern_pool_new(&pool) >= 0);
        r = selector_parse(json_root(doc), pool, &s);
        assert(r == 0 || r == -EINVAL);
        assert((r == 0) == (s != NULL));
        if (s && selector_is_empty(s)) {
                assert(selector_matches(s, &labels) == selector_matches(s, &none));
                assert(selector_matches(s, &none) == !json_is_null(json_root(doc)));
        } else if (s)
                (void) selector_matches(s, &labels);
        selector_free(s);
        assert(intern_pool_size(pool) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Draw d = { data, size };
        _cleanup_free_ char *bent = NULL;

        if (draw_is_text(data, size))
                check((const char *) data, size);
        else {
                bent = draw_bent_json(&d, template);
                check(bent, strlen(bent));
        }
        return 0;
}
