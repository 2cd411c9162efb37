/* SPDX-License-Identifier: Apache-2.0 */
#include "policy.h"

#define LONG_NOTICE_USEC (5 * USEC_PER_MINUTE)

static bool kind_drains(NoticeKind k) {
        switch (k) {
        case NOTICE_REBALANCE:
                return false;
        case NOTICE_SPOT:
        case NOTICE_MAINTENANCE:
        case NOTICE_SCALE_IN:
        case NOTICE_CAPACITY_BLOCK:
        case NOTICE_SHUTDOWN:
        case NOTICE_MANUAL:
                return true;
        case _NOTICE_KIND_MAX:
        case _NOTICE_KIND_INVALID:
                break;
        }
        assert(false && "a notice of no kind");
        return false;
}

Plan policy_decide(const Notice *n, const PolicySettings *settings, usec_t now_usec) {
        bool is_long;

        assert(n && settings);
        if (n->certainty == NOTICE_ADVISORY)
                return (Plan){ .why = "it is a recommendation" };
        if (!kind_drains(n->kind))
                return (Plan){ .why = "this kind of notice is only reported" };

        if (n->kind == NOTICE_SHUTDOWN)
                return (Plan){ .drain = true, .why = "the machine waits for it" };

        is_long = usec_sub(n->deadline_usec, now_usec) >= LONG_NOTICE_USEC;
        return (Plan){
                .drain = true,
                .lb_wait_usec = is_long ? settings->lb_wait_usec : 0,
                .why = is_long ? "there is time for load balancers to let go" : "time is short",
        };
}

usec_t policy_drain_deadline(const Notice *n, usec_t claim_deadline_usec, usec_t booted_usec) {
        usec_t deadline = n->deadline_usec;

        /* Both by clocks that are not ours: if T is no earlier than what was announced, the notice says it all. */
        if (claim_deadline_usec > 0 && claim_deadline_usec < notice_announced(n))
                deadline = MIN(deadline, usec_sub(claim_deadline_usec, booted_usec));
        return usec_sub(deadline, POLICY_MARGIN_USEC);
}
