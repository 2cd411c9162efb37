/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fuzz-draw.h"
#include "kube-scheduling.h"
#include "string-util.h"

/* Rounded up is rounded down, or one more; thousandths are a thousand times as many; what was read is read again as it is
 * written; and a refusal does not depend on how it is rounded, but at the very end of what int64_t holds. */
static void check(const char *s) {
        int64_t up = -1, down = -1, up_thousandths = -1, down_thousandths = -1, again;
        int r = quantity_parse(s, false, QUANTITY_ROUND_UP, &up);
        int q = quantity_parse(s, false, QUANTITY_ROUND_DOWN, &down);
        int t = quantity_parse(s, true, QUANTITY_ROUND_UP, &up_thousandths);
        int u = quantity_parse(s, true, QUANTITY_ROUND_DOWN, &down_thousandths);
        char text[32];

        assert(r == 0 || r == -EINVAL || r == -ERANGE);
        assert((r == -EINVAL) == (q == -EINVAL) && (r == -EINVAL) == (t == -EINVAL));
        assert(r == q || (r == -ERANGE && q == 0 && down == INT64_MAX));
        assert(t == u || (t == -ERANGE && u == 0 && down_thousandths == INT64_MAX));
        if (r < 0)
                return;
        assert(down >= 0 && (up == down || up == down + 1));
        if (u == 0)
                assert(down_thousandths / 1000 == down);
        if (t == 0)
                assert(up_thousandths == down_thousandths || up_thousandths == down_thousandths + 1);
        snprintf(text, sizeof(text), "%" PRId64, up);
        assert(quantity_parse(text, false, QUANTITY_ROUND_DOWN, &again) == 0 && again == up);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_free_ char *text = memdup_str(data, size);

        assert(text);
        check(text);
        return 0;
}
