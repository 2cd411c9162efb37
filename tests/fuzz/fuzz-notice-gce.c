/* SPDX-License-Identifier: Apache-2.0 */

/* instance/upcoming-maintenance of Compute Engine: a window, none, or refused with a reason. */

#include "notice-gce.h"
#include "string-util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        usec_t begin = USEC_INFINITY;
        const char *why = NULL;
        int r;

        r = notice_gce_parse_upcoming((const char *) data, size, &begin, &why);
        assert(r == 1 || r == 0 || r == -EBADMSG);
        assert(r != 1 || begin != USEC_INFINITY);
        assert(r >= 0 || why);
        return 0;
}
