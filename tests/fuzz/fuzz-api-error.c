/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "api-error.h"
#include "fuzz.h"
#include "string-util.h"

static void check_text(const char *s) {
        if (!s)
                return;
        assert(strlen(s) <= 1024);
        assert(utf8_is_valid(s, strlen(s)));
        for (; *s; s++)
                assert((unsigned char) *s >= ' ' && *s != 0x7f);
}

/* The first byte picks a status; the rest is the body. Whatever it is, a person gets a sentence. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const unsigned statuses[] = {
                300, 400, 401, 403, 404, 409, 410, 422, 429, 500, 502, 503, 504
        };
        _cleanup_(api_error_done) ApiError e = { 0 };
        ApiWebhook hook;
        unsigned http;

        if (size == 0)
                return 0;
        http = statuses[data[0] % ELEMENTSOF(statuses)];
        assert(api_error_from_body(http, (const char *) data + 1, size - 1, USEC_PER_SEC, &e) == 0);
        assert(e.http == http && e.error == 0);
        assert(!isempty(e.message));
        assert(e.retry_after_usec >= USEC_PER_SEC && e.retry_after_usec <= API_RETRY_AFTER_MAX_USEC);
        assert(e.n_causes <= API_ERROR_CAUSES_MAX);
        assert(api_error_to_errno(&e) < 0);
        check_text(e.message);
        if (api_error_is_of_webhook(&e, &hook)) {
                assert(hook.name > e.message && hook.name_size > 0 && hook.name_size <= 253);
                assert(strcspn(hook.name, "\"") == hook.name_size);
                assert(hook.words > hook.name + hook.name_size && *hook.words);
                assert(hook.words < e.message + strlen(e.message));
        }
        check_text(e.reason);
        for (size_t i = 0; i < e.n_causes; i++) {
                check_text(e.causes[i].reason);
                check_text(e.causes[i].message);
                check_text(e.causes[i].field);
        }
        return 0;
}
