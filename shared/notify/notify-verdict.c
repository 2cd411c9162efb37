/* SPDX-License-Identifier: Apache-2.0 */
#include "notify-verdict.h"

#include <errno.h>
#include <stddef.h>

#include "macro.h"

NotifyVerdict notify_judge(int error, unsigned status) {
        if (error != 0)
                return NOTIFY_RETRY;
        if (status >= 200 && status < 300)
                return NOTIFY_SENT;
        switch (status) {
        case 400:
        case 405:
        case 410:
        case 413:
        case 415:
        case 422:
                return NOTIFY_REFUSED;
        default:
                return NOTIFY_RETRY;
        }
}

const char *notify_error_text(int error) {
        switch (error) {
        case 0:
                return NULL;
        case -ETIMEDOUT:
                return "it does not answer in time ([Notify] TimeoutSec=)";
        case -ECONNREFUSED:
                return "nobody listens there";
        case -ECONNRESET:
                return "the connection broke";
        case -EHOSTUNREACH:
                return "its name cannot be resolved, or no route leads there";
        case -EKEYREJECTED:
                return "its certificate is not one that is trusted for that name ([Notify] CAFile=)";
        case -EPROTO:
                return "what it answers is no HTTP";
        case -EMSGSIZE:
                return "its answer is too long";
        case -ENOMEM:
                return "out of memory";
        default:
                return "the request failed";
        }
}

usec_t notify_patience(usec_t wall_now_usec, usec_t deadline_usec) {
        usec_t left = deadline_usec == 0 ? USEC_INFINITY : usec_sub(deadline_usec, wall_now_usec);

        return MAX(NOTIFY_NEWS_MIN_USEC, MIN(left, NOTIFY_NEWS_MAX_USEC));
}
