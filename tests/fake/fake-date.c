/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-date.h"

#include "macro.h"

void fake_date_format(usec_t wall_usec, char ret[FAKE_DATE_MAX]) {
        time_t now = (time_t) (wall_usec / USEC_PER_SEC);
        struct tm tm;
        size_t size;

        gmtime_r(&now, &tm);
        size = strftime(ret, FAKE_DATE_MAX, "%a, %d %b %Y %H:%M:%S GMT", &tm);
        assert(size > 0);
}
