/* SPDX-License-Identifier: Apache-2.0 */
#include "out-of-service-rule.h"

#include "macro.h"

static bool is_proved(const OutOfServiceFacts *f) {
        return f->proof != OUT_OF_SERVICE_UNPROVED &&
               f->now_usec <= usec_add(f->asked_usec, OUT_OF_SERVICE_PROOF_USEC);
}

OutOfServiceStep out_of_service_decide(const OutOfServiceFacts *f, usec_t *ret_until_usec) {
        usec_t due = usec_add(f->silent_usec, OUT_OF_SERVICE_SILENT_USEC);

        *ret_until_usec = USEC_INFINITY;
        if (f->ready)
                return f->marked ? OUT_OF_SERVICE_UNTAINT : OUT_OF_SERVICE_LEAVE;
        /* Marked, and not tainted: a person took the taint off, and has the last word until the node is Ready. */
        if (!f->managed || f->tainted || f->marked || f->shared || !f->holds || !f->view_stands || f->asking)
                return OUT_OF_SERVICE_LEAVE;
        if (f->now_usec >= due && is_proved(f))
                return OUT_OF_SERVICE_TAINT;
        due = MAX(due, f->next_ask_usec);
        if (f->now_usec >= due)
                return OUT_OF_SERVICE_ASK;
        *ret_until_usec = due;
        return OUT_OF_SERVICE_WAIT;
}
