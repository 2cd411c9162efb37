/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "fuzz.h"
#include "log.h"
#include "string-util.h"

/* What must hold of any message: masking makes nothing longer, and a second time finds nothing more. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_free_ char *text = memdup_str(data, size), *once = NULL;
        size_t before;

        assert(text);
        before = strlen(text);
        log_redact(text);
        assert(strlen(text) <= before);
        once = strdup(text);
        assert(once);
        log_redact(text);
        assert(streq(text, once));
        return 0;
}
