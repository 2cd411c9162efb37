/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "fuzz-objects.h"
#include "reboot-slots.h"
#include "string-util.h"

/*
 * What any Node says of the reboot that it asks for: whatever stands there, it stands somewhere; one that
 * waits holds after the patch that grants it, and a stale grant is gone after the patch that takes it off.
 */

static void check_next(const RebootCase *c, usec_t now) {
        usec_t next = reboot_case_next(c);

        assert((c->id != NULL) == (c->request_state != REBOOT_REQUEST_NONE && c->request_state != REBOOT_REQUEST_INVALID));
        assert(!c->is_stale || c->is_answered);
        assert(!c->by_cloud || c->event);
        assert(!c->is_sent || c->granted_until_usec > 0);
        assert((c->boot_id != NULL) == (c->id != NULL));
        if (c->request_state == REBOOT_REQUEST_HOLDS_SLOT || c->request_state == REBOOT_REQUEST_WAITING)
                assert(next > now && next != USEC_INFINITY);
}

/* The same Node after that patch. */
static void check_patched(const KubeNode *n, const char *text, const char *id, usec_t until, usec_t now,
                          RebootCase *ret) {
        _cleanup_free_ char *body = reboot_grant_patch(n, id, until), *next = NULL;
        KubeObject *o;
        int r;

        assert(body);
        o = fuzz_patched(&n->object, text, body, &next);
        assert(o);
        r = reboot_case_read((const KubeNode *) o, now, USEC_PER_HOUR, ret);
        assert(r == 0);
        kube_object_unref(o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        Draw d = { data, size };
        usec_t now = draw_usec(&d, FUZZ_NOW);
        RebootCase c, after;
        KubeObject *o;
        char *text;

        assert(intern_pool_new(&pool) >= 0);
        text = draw_bent_json(&d, fuzz_reboot_node);
        o = fuzz_object(&kube_node_kind, text, strlen(text), pool);
        if (o) {
                int r = reboot_case_read((const KubeNode *) o, now, USEC_PER_HOUR, &c);

                assert(r == 0);
                check_next(&c, now);
                /* A time is told in whole seconds, up to the year 9999. */
                if (c.request_state == REBOOT_REQUEST_WAITING && now < UINT64_C(250000000000) * USEC_PER_SEC) {
                        check_patched((const KubeNode *) o, text, c.id, now + 2 * USEC_PER_SEC, now, &after);
                        assert(after.request_state == REBOOT_REQUEST_HOLDS_SLOT && streq(after.id, c.id));
                        reboot_case_done(&after);
                }
                if (c.is_stale) {
                        check_patched((const KubeNode *) o, text, NULL, 0, now, &after);
                        assert(!after.is_answered && !after.is_stale && after.request_state == c.request_state);
                        reboot_case_done(&after);
                }
                reboot_case_done(&c);
        }
        kube_object_unref(o);
        assert(intern_pool_size(pool) == 0);
        free(text);
        return 0;
}
