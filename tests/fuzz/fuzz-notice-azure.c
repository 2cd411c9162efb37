/* SPDX-License-Identifier: Apache-2.0 */

/* The document of Azure's scheduled events: refused with a reason, or events of this VM, no two of one id. */

#include "notice-azure.h"
#include "string-util.h"
#include "strv.h"

#define EVENTS_MAX 4u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const char *why = NULL;
        ScheduledEvent *events;
        size_t n;
        bool more;
        int r;

        r = azure_events_parse((const char *) data, size, "pool_7", EVENTS_MAX, &events, &n, &more, &why);
        assert(r == 0 || (r == -EBADMSG && why && n == 0 && !events));
        assert(n <= EVENTS_MAX && (!more || n == EVENTS_MAX));
        for (size_t i = 0; i < n; i++) {
                assert(!isempty(events[i].id) && events[i].action && notice_kind_to_string(events[i].kind));
                /* What names others, too, is never taken early, and its names fit into an annotation. */
                assert(!events[i].resources || (strv_length(events[i].resources) <= NOTICE_RESOURCES_MAX && events[i].early == NOTICE_EARLY_NEVER));
                for (size_t k = 0; k < i; k++)
                        assert(!streq(events[i].id, events[k].id));
        }
        scheduled_events_free(events, n);
        return 0;
}
