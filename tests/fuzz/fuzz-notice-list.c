/* SPDX-License-Identifier: Apache-2.0 */

/* A file of notices, or what a command prints: whatever it is, it is refused with a reason, or makes notices that others can read. */

#include "interruption.h"
#include "notice-list.h"
#include "string-util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the agent writes about it on its Node is read back. */
static void check(const Notice *n) {
        _cleanup_free_ char *text = interruption_format(n, INTERRUPTION_DRAINING, 1, "b");
        _cleanup_(interruption_freep) Interruption *i = NULL;

        assert(text && interruption_parse(text, &i) == 0);
        assert(streq(i->notice->id, n->id) && streq_ptr(i->notice->action, n->action) && i->notice->kind == n->kind);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const NoticeSourceOps ops = { .name = "file" };
        const NoticeSource source = { .ops = &ops };
        NoticeSet known = { 0 }, first = { 0 }, second = { 0 };
        const char *why = NULL;
        VirtualTime *time;
        Loop *loop;

        assert(virtual_time_new(UINT64_C(1800000000) * USEC_PER_SEC, &time) == 0);
        assert(loop_new_virtual(time, &loop) == 0);
        if (notice_list_parse(&source, loop, (const char *) data, size, 0, &known, &first, &why) < 0)
                assert(why && first.n == 0);
        for (size_t i = 0; i < first.n; i++) {
                check(first.items[i]);
                for (size_t k = 0; k < i; k++)
                        assert(!streq(first.items[i]->id, first.items[k]->id));
        }
        /* The same text an hour later says the same: nothing moves. */
        if (first.n > 0) {
                assert(notice_list_parse(&source, loop, (const char *) data, size, USEC_PER_HOUR, &first, &second, &why) == 0);
                for (size_t i = 0; i < first.n; i++)
                        assert(first.items[i]->deadline_usec == second.items[i]->deadline_usec);
        }
        notice_set_done(&first);
        notice_set_done(&second);
        loop_free(loop);
        virtual_time_free(time);
        return 0;
}
