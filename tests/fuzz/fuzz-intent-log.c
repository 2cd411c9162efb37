/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz-draw.h"
#include "intent-log.h"
#include "string-util.h"

static const char template[] =
        "{\"version\":1,\"bootID\":\"b1\",\"notices\":[{\"id\":\"i-1-terminate-b1\",\"kind\":\"spot\","
        "\"source\":\"ec2\","
        "\"action\":\"terminate\",\"deadline\":\"2027-01-15T08:02:00Z\",\"phase\":\"Draining\","
        "\"since\":\"2027-01-15T08:00:01Z\"},{\"id\":\"m\",\"kind\":\"maintenance\",\"source\":\"ec2\","
        "\"notBefore\":\"2027-01-16T08:02:00Z\",\"advisory\":true,\"phase\":\"Released\"}]}";

/* What is found on the disk of a machine that went down in the middle of anything. A record that was torn is
 * read as nothing, never as less than was written. */
static void check(const char *data, size_t size) {
        _cleanup_(intent_record_done) IntentRecord r = { 0 }, back = { 0 };
        _cleanup_free_ char *text = NULL, *again = NULL;

        if (intent_record_parse(data, size, &r) < 0)
                return;
        assert(r.n_items <= INTENTS_MAX);
        text = intent_record_format(&r);
        assert(text);
        assert(intent_record_parse(text, strlen(text), &back) == 0);
        assert(back.n_items == r.n_items && streq(back.boot_id, r.boot_id));
        again = intent_record_format(&back);
        assert(again && streq(text, again));
        for (size_t cut = 0; cut < strlen(text); cut += 1 + cut / 8) {
                _cleanup_(intent_record_done) IntentRecord torn = { 0 };

                assert(intent_record_parse(text, cut, &torn) < 0);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Draw d = { data, size };
        _cleanup_free_ char *bent = NULL;

        if (draw_is_text(data, size))
                check((const char *) data, size);
        else {
                bent = draw_bent_json(&d, template);
                check(bent, strlen(bent));
        }
        return 0;
}
