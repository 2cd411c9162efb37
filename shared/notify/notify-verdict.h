/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What an answer means for a message, and for how long it is tried. Pure. */

#include "time-util.h"

typedef enum NotifyVerdict {
        NOTIFY_SENT,    /* 2xx */
        NOTIFY_RETRY,   /* no answer, or one that another try may change */
        NOTIFY_REFUSED, /* the receiver does not want this message: 400, 405, 410, 413, 415, 422 */
} NotifyVerdict;

/* error: HttpResponse.error; status counts where that is 0. A redirect is not followed: the URL may be corrected
 * meanwhile, so it is tried again, as 401, 403 and 404 are. */
NotifyVerdict notify_judge(int error, unsigned status);
/* For logs, of an answer that is not SENT: static, and without anything of the URL. NULL: the status says it all. */
const char *notify_error_text(int error);

/* A message is news for as long as the machine may live, but a minute at least and an hour at most. */
#define NOTIFY_NEWS_MIN_USEC USEC_PER_MINUTE
#define NOTIFY_NEWS_MAX_USEC USEC_PER_HOUR
/* Both clocks are the wall's; deadline 0 or USEC_INFINITY: not said. Returns how long from now. */
usec_t notify_patience(usec_t wall_now_usec, usec_t deadline_usec);
