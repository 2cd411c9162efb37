/* SPDX-License-Identifier: Apache-2.0 */

/* The texts of EC2's metadata besides spot/instance-action: the first byte chooses the path, the rest is its body. */

#include "ec2-events.h"
#include "string-util.h"

#define EVENTS_MAX 4u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void events(const char *body, size_t size) {
        const char *why = NULL;
        ScheduledEvent *found;
        size_t n;
        bool more;
        int r;

        r = ec2_events_parse(body, size, EVENTS_MAX, &found, &n, &more, &why);
        assert(r == 0 || (r == -EBADMSG && why && n == 0 && !found));
        assert(n <= EVENTS_MAX && (!more || n == EVENTS_MAX));
        for (size_t i = 0; i < n; i++) {
                assert(!isempty(found[i].id) && strlen(found[i].id) <= 128);
                for (size_t k = 0; k < i; k++)
                        assert(!streq(found[i].id, found[k].id));
        }
        scheduled_events_free(found, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const char *why = NULL, *body;
        usec_t at;
        bool goes = false;

        if (size == 0)
                return 0;
        body = (const char *) data + 1;
        size--;
        if (data[0] == 't') {
                assert(ec2_capacity_end_parse(body, size, &at, &why) == 0 || why);
                return 0;
        }
        switch (data[0] % 3) {
        case 0:
                events(body, size);
                break;
        case 1:
                assert(ec2_rebalance_parse(body, size, &at, &why) == 0 || why);
                break;
        default:
                assert(ec2_lifecycle_parse(body, size, &goes, &why) == 0 || (why && !goes));
        }
        return 0;
}
