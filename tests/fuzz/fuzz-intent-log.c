/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "intent-log.h"
#include "string-util.h"

/* What is found on the disk of a machine that went down in the middle of anything. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(intent_record_done) IntentRecord r = { 0 }, back = { 0 };
        _cleanup_free_ char *text = NULL, *again = NULL;

        if (intent_record_parse((const char *) data, size, &r) < 0)
                return 0;
        assert(r.n_items <= INTENTS_MAX);
        text = intent_record_format(&r);
        assert(text);
        assert(intent_record_parse(text, strlen(text), &back) == 0);
        assert(back.n_items == r.n_items && streq(back.boot_id, r.boot_id));
        again = intent_record_format(&back);
        assert(again && streq(text, again));
        return 0;
}
