/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "string-util.h"
#include "time-util.h"

/* What must hold of any text: a time that is read can be written and read again to the same microsecond;
 * a time span reads back from its form for people to no more than it was, and to within a second. */

#define YEAR_10000 (UINT64_C(253402300800) * USEC_PER_SEC)

static void check_wall(usec_t usec) {
        char text[RFC3339_MAX];
        usec_t again;
        int r;

        assert(usec < YEAR_10000);
        rfc3339_format_micro(usec, text);
        r = rfc3339_parse(text, &again);
        assert(r == 0 && again == usec);
        rfc3339_format(usec, text);
        r = rfc3339_parse(text, &again);
        assert(r == 0 && again == usec - usec % USEC_PER_SEC);
        iso8601_basic_format(usec, text);
        assert(strlen(text) == strlen("20261121T050300Z"));
}

static void check_duration(int r, usec_t usec) {
        char text[DURATION_MAX];
        usec_t again;

        assert(r == 0 || r == -EINVAL || r == -ERANGE);
        if (r < 0)
                return;
        duration_format(usec, text);
        r = duration_parse(text, &again);
        assert(r == 0);
        if (usec == USEC_INFINITY)
                assert(again == USEC_INFINITY);
        else
                assert(again <= usec && usec - again < USEC_PER_SEC);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_free_ char *text = memdup_str(data, size);
        usec_t usec = 0;
        int r;

        assert(text);
        r = rfc3339_parse(text, &usec);
        assert(r == 0 || r == -EINVAL);
        if (r == 0)
                check_wall(usec);
        r = http_date_parse(text, &usec);
        assert(r == 0 || r == -EINVAL);
        if (r == 0)
                check_wall(usec);

        r = duration_parse_go(text, &usec);
        check_duration(r, usec);
        if (r == 0)
                assert(usec != USEC_INFINITY);
        r = duration_parse(text, &usec);
        check_duration(r, usec);
        return 0;
}
