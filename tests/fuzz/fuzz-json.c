/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "alloc-util.h"
#include "fuzz.h"
#include "json.h"
#include "string-util.h"

/*
 * What must hold of any text: what is accepted can be walked, written, read again and is the same then; our
 * own decoder makes of it what cJSON does, and leaves out what it shall and no more; a list that is split
 * gives the elements that it has as a whole; what is refused is refused with a place inside of the text.
 */

static void check_error(const JsonError *e, size_t size) {
        assert(e->message);
        assert(e->offset <= size);
}

static void assert_equal(const Json *a, const Json *b);

static void assert_children_equal(const Json *a, const Json *b) {
        const Json *y = json_first(b);

        assert(json_size(a) == json_size(b));
        for (const Json *x = json_first(a); x; x = json_next(x), y = json_next(y)) {
                assert(streq_ptr(json_key(x), json_key(y)));
                if (json_is_object(a))
                        assert(json_get(a, json_key(x)) == x);
                assert_equal(x, y);
        }
        assert(!y);
}

static void assert_equal(const Json *a, const Json *b) {
        const char *s, *t;
        int64_t i, k;
        double d, e;
        bool p, q;

        assert(json_is_null(a) == json_is_null(b));
        assert(json_is_object(a) == json_is_object(b));
        assert(json_is_array(a) == json_is_array(b));
        assert(json_string(a, &s) == json_string(b, &t));
        assert(json_double(a, &d) == json_double(b, &e));
        assert(json_int64(a, &i) == json_int64(b, &k));
        assert(json_bool(a, &p) == json_bool(b, &q));
        if (json_is_string(a)) {
                assert(streq(s, t));
                assert(utf8_is_valid(s, strlen(s)));
        }
        if (json_double(a, &d) >= 0)
                assert(d == e);
        if (json_int64(a, &i) >= 0)
                assert(i == k && (double) i == d);
        if (json_bool(a, &p) >= 0)
                assert(p == q);
        assert_children_equal(a, b);
}

static void check_round_trip(const Json *v) {
        _cleanup_(json_doc_freep) JsonDoc *again = NULL;
        _cleanup_free_ char *text = NULL, *second = NULL;

        text = json_format(v);
        assert(text);
        assert(json_parse(text, strlen(text), strlen(text), &again, NULL) == 0);
        assert_equal(v, json_root(again));
        second = json_format(json_root(again));
        assert(second);
        assert(streq(text, second));
}

static const JsonOmit omit_list[] = { { "metadata", "managedFields" }, { "spec", "containers" } };

static bool may_be_left_out(const char *section, const char *key) {
        for (size_t i = 0; i < ELEMENTSOF(omit_list); i++)
                if (streq(section, omit_list[i].section) && streq(key, omit_list[i].key))
                        return true;
        return false;
}

/* Written with escapes, a key is not recognised: then its value is there. */
static void assert_equal_but(const Json *whole, const Json *v) {
        const Json *b = json_first(v);

        assert(json_is_object(whole) == json_is_object(v));
        if (!json_is_object(whole)) {
                assert_equal(whole, v);
                return;
        }
        assert(json_size(whole) == json_size(v));
        for (const Json *a = json_first(whole); a; a = json_next(a), b = json_next(b)) {
                const Json *y = json_first(b);

                assert(streq(json_key(a), json_key(b)) && json_is_object(a) == json_is_object(b));
                if (!json_is_object(a)) {
                        assert_equal(a, b);
                        continue;
                }
                assert(json_size(a) == json_size(b));
                for (const Json *x = json_first(a); x; x = json_next(x), y = json_next(y)) {
                        assert(streq(json_key(x), json_key(y)));
                        if (!json_is_null(y) || json_is_null(x))
                                assert_equal(x, y);
                        else
                                assert((json_is_object(x) || json_is_array(x)) &&
                                       may_be_left_out(json_key(a), json_key(x)));
                }
        }
}

/* d: the text as cJSON reads it, NULL if it was refused. */
static void check_own_decoder(const char *text, size_t size, const JsonDoc *d) {
        const JsonOmits omits = { .list = omit_list, .n_list = ELEMENTSOF(omit_list) };
        _cleanup_(json_doc_freep) JsonDoc *own = NULL, *without = NULL;
        JsonError error = { 0 };
        int r;

        r = json_parse_without(text, size, size, NULL, &own, &error);
        assert(d ? r == 0 : r == -EBADMSG);
        if (d)
                assert_equal(json_root(d), json_root(own));
        else
                check_error(&error, size);

        /* Nobody looks for a key that is there twice inside of what is left out. */
        r = json_parse_without(text, size, size, &omits, &without, &error);
        assert(r == 0 || (r == -EBADMSG && !d));
        if (d)
                assert_equal_but(json_root(d), json_root(without));
        if (r == 0)
                check_round_trip(json_root(without));
}

typedef struct Split {
        const Json *whole; /* the next element, where the text was parsed as a whole too */
        bool compare, damaged;
        size_t n;
} Split;

static int on_item(const char *item, size_t size, void *userdata) {
        _cleanup_(json_doc_freep) JsonDoc *d = NULL;
        JsonError error = { 0 };
        Split *split = userdata;
        int r;

        split->n++;
        r = json_parse(item, size, size, &d, &error);
        if (r < 0) { /* the whole text was checked: only this can be left */
                assert(r == -EBADMSG && streq(error.message, "duplicate key"));
                check_error(&error, size);
                split->damaged = true;
        } else if (split->compare) {
                assert(split->whole);
                assert_equal(json_root(d), split->whole);
        }
        split->whole = json_next(split->whole);
        return 0;
}

/* d: the text as a whole, NULL if it was refused. */
static void check_split(const char *text, size_t size, const JsonDoc *d) {
        _cleanup_(json_doc_freep) JsonDoc *rest = NULL;
        const Json *items = d ? json_get(json_root(d), "items") : NULL;
        Split split = { .whole = json_first(items), .compare = d };
        JsonError error = { 0 };
        int r;

        r = json_split_items(text, size, size, on_item, &split, &rest, &error);
        if (r < 0) {
                assert(r == -EBADMSG && split.n == 0 && !rest);
                check_error(&error, size);
                assert(!d || !json_is_object(json_root(d)) ||
                       (items && !json_is_null(items) && !json_is_array(items)));
                return;
        }
        assert(json_is_object(json_root(rest)));
        assert(json_size(json_get(json_root(rest), "items")) == 0);
        check_round_trip(json_root(rest));
        if (d) {
                assert(!split.damaged && split.n == json_size(items));
                assert(json_size(json_root(rest)) == json_size(json_root(d)));
        } else
                assert(split.damaged);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(json_doc_freep) JsonDoc *d = NULL, *none = NULL;
        const char *text = (const char *) data;
        JsonError error = { 0 };
        int r;

        r = json_parse(text, size, size, &d, &error);
        assert(r == 0 || r == -EBADMSG);
        if (r < 0)
                check_error(&error, size);
        else
                check_round_trip(json_root(d));
        check_own_decoder(text, size, d);
        check_split(text, size, d);
        if (size > 0)
                assert(json_parse(text, size, size - 1, &none, NULL) == -E2BIG);
        return 0;
}
