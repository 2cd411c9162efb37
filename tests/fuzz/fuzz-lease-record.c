/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "fuzz-objects.h"
#include "lease-record.h"
#include "string-util.h"

/* Any Lease: refused, or read so that the body of the next PUT carries our claim, all that we do not know,
 * and the resourceVersion it was read with; and that body is read back as what was claimed. */

static int parse(const char *text, size_t size, LeaseRecord *ret) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        int r;

        if (json_parse(text, size, size, &doc, NULL) < 0)
                return -EINVAL;
        r = lease_record_parse(json_root(doc), ret);
        assert(r == 0 || r == -EINVAL);
        return r;
}

static void check_foreign_kept(const char *before, const char *after) {
        _cleanup_(json_doc_freep) JsonDoc *a = NULL, *b = NULL;
        _cleanup_free_ char *x = NULL, *y = NULL;

        assert(json_parse(before, strlen(before), strlen(before), &a, NULL) == 0);
        assert(json_parse(after, strlen(after), strlen(after), &b, NULL) == 0);
        x = json_format(json_get(json_root(a), "metadata"));
        y = json_format(json_get(json_root(b), "metadata"));
        assert(x && y && streq(x, y));
        JSON_FOREACH (field, json_get(json_root(a), "spec"))
                assert(json_get(json_path(json_root(b), "spec", NULL), json_key(field)));
}

static void check(const char *text, size_t size, const LeaseClaim *claim) {
        _cleanup_(lease_record_done) LeaseRecord r = { 0 }, back = { 0 };
        _cleanup_free_ char *body = NULL;

        if (parse(text, size, &r) < 0) {
                assert(!r.holder && !r.spec && !r.object);
                return;
        }
        assert(r.holder && r.spec && r.object);
        assert(r.duration_usec <= (usec_t) INT32_MAX * USEC_PER_SEC);
        body = lease_body_update(&r, claim);
        assert(body);
        assert(parse(body, strlen(body), &back) == 0);
        assert(streq(back.holder, claim->holder));
        assert(back.duration_usec == (usec_t) claim->duration_sec * USEC_PER_SEC);
        assert(back.transitions == claim->transitions);
        check_foreign_kept(r.object, body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        LeaseClaim claim = {
                .holder = "host_2", .duration_sec = 15, .transitions = 5, .now_wall_usec = FUZZ_NOW
        };
        Draw d = { data, size };
        _cleanup_free_ char *text = NULL, *body = NULL;

        if (draw_is_text(data, size)) {
                check((const char *) data, size, &claim);
                return 0;
        }
        claim.holder = draw_bool(&d) ? "" : "host_3";
        claim.keep_acquired = draw_bool(&d);
        claim.transitions = (int64_t) draw_below(&d, 1000);
        claim.now_wall_usec = usec_add(FUZZ_NOW, draw_byte(&d) * USEC_PER_SEC);
        text = draw_bent_json(&d, fuzz_lease);
        check(text, strlen(text), &claim);

        body = lease_body_create("ns", "name", &claim);
        assert(body && strstr(body, claim.holder));
        return 0;
}
