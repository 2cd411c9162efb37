/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "announced.h"
#include "fuzz.h"
#include "node-marks.h"
#include "notice-ec2.h"
#include "string-util.h"

/* What outsiders write about the end of a machine: the body of spot/instance-action, and the annotations
 * vesper.sh/interruption and vesper.sh/announced. */

static void check_action(const uint8_t *data, size_t size) {
        _cleanup_free_ char *action = NULL;
        const char *why = NULL;
        usec_t time = 0, left;
        Ec2ClockVerdict verdict;
        int r;

        r = notice_ec2_parse((const char *) data, size, &action, &time, &why);
        assert(r == 0 || r == -EBADMSG);
        assert((r == 0) == (why == NULL));
        if (r < 0)
                return;
        left = notice_ec2_left(action, time, 1000 * USEC_PER_SEC, &verdict);
        assert(left > 0 && left <= 120 * USEC_PER_SEC);
}

static void check_annotation(const char *text) {
        _cleanup_(interruption_freep) Interruption *i = NULL, *back = NULL;
        _cleanup_free_ char *formatted = NULL, *again = NULL;

        if (interruption_parse(text, &i) < 0)
                return;
        if (i->pods_left < 0)
                i->pods_left = 0;
        if (i->phase == INTERRUPTION_LATER) /* a text that this version does not write */
                i->phase = INTERRUPTION_PHASE_NONE;
        formatted = interruption_format_held(i->notice, i->phase, (size_t) i->pods_left, i->boot_id, i->blockers, i->n_blockers);
        assert(formatted);
        assert(interruption_parse(formatted, &back) == 0);
        assert(streq(i->notice->id, back->notice->id) && i->phase == back->phase &&
               i->pods_left == back->pods_left && i->n_blockers == back->n_blockers && i->notice->by_hand == back->notice->by_hand);
        again = interruption_format_held(back->notice, back->phase, (size_t) back->pods_left, back->boot_id, back->blockers, back->n_blockers);
        assert(again && streq(formatted, again));
        assert(boot_id_equal(i->boot_id, back->boot_id));
}

static void check_announced(const char *text) {
        _cleanup_(announced_list_done) AnnouncedList l = {}, back = {};
        _cleanup_free_ char *formatted = NULL, *again = NULL;

        if (announced_list_parse(text, &l) < 0) {
                assert(l.n_items == 0);
                return;
        }
        assert(l.n_items <= ANNOUNCED_MAX);
        formatted = announced_list_format(&l);
        assert(formatted && announced_list_parse(formatted, &back) == 0);
        again = announced_list_format(&back);
        assert(again && streq(formatted, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_free_ char *text = memdup_str(data, size);

        assert(text);
        check_action(data, size);
        check_annotation(text);
        check_announced(text);
        (void) ec2_instance_id_is_valid((const char *) data, size);
        return 0;
}
