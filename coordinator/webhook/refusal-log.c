/* SPDX-License-Identifier: Apache-2.0 */
#include "refusal-log.h"

#include <inttypes.h>
#include <string.h>

#include "string-util.h"

#define LINE_INTERVAL_USEC USEC_PER_MINUTE

static const char *const texts[_REFUSAL_MAX] = {
        [HTTP_REFUSED_CONNECTION] = "closed at once, because every connection waits for its answer",
        [HTTP_REFUSED_ADDRESS] = "beyond the number of unanswered requests of one address (HTTP 503)",
        [HTTP_REFUSED_BODIES] = "without room for the body (HTTP 503)",
        [HTTP_REFUSED_SIZE] = "with a body that is too large (HTTP 413)",
        [HTTP_REFUSED_RATE] = "beyond the bytes a second of one address (HTTP 503)",
        [HTTP_REFUSED_HANDSHAKES] = "beyond the new connections a second of one address (closed)",
        [HTTP_REFUSED_SLOW] = "not complete in time (closed)",
        [HTTP_REFUSED_DISPLACED] = "closed in favour of another client",
        [REFUSAL_CERTIFICATE] = "without a certificate of ClientCAFile= (HTTP 401)",
        [REFUSAL_PATH] = "other than POST /admission (HTTP 404 or 405)",
        [REFUSAL_REVIEW] = "without an AdmissionReview (HTTP 400)",
};

static uint64_t address_total(const RefusedAddress *a) {
        uint64_t n = 0;

        for (size_t i = 0; i < _REFUSAL_MAX; i++)
                n += a->n[i];
        return n;
}

/* Copies the text as far as an address can have it. */
static void address_set(RefusedAddress *a, const char *text) {
        size_t n = strspn(text, "0123456789abcdefABCDEF.:");

        *a = (RefusedAddress){ 0 };
        if (text[n] == 0 && n < sizeof(a->text))
                memcpy(a->text, text, n);
}

static RefusedAddress *log_find_address(RefusalLog *l, const char *text) {
        RefusedAddress wanted, *oldest = l->addresses;

        address_set(&wanted, strempty(text));
        for (size_t i = 0; i < l->n_addresses; i++) {
                RefusedAddress *a = l->addresses + i;

                if (streq(a->text, wanted.text))
                        return a;
                if (a->last_usec < oldest->last_usec)
                        oldest = a;
        }
        if (l->n_addresses < REFUSAL_LOG_ADDRESSES_MAX)
                oldest = l->addresses + l->n_addresses++;
        else
                l->n_forgotten += address_total(oldest);
        *oldest = wanted;
        return oldest;
}

static bool is_due(const RefusedAddress *a, usec_t now_usec) {
        uint64_t n_slow = a->n[HTTP_REFUSED_SLOW];

        return now_usec >= a->next_line_usec && (n_slow < address_total(a) || n_slow >= REFUSAL_SLOW_MIN);
}

static char *line_new(const RefusedAddress *a, uint64_t n_forgotten) {
        StrBuf b = { 0 };

        strbuf_addf(&b, "The webhook refused requests from %s: ", isempty(a->text) ? "an unknown address" : a->text);
        for (size_t i = 0, n = 0; i < _REFUSAL_MAX; i++)
                if (a->n[i] > 0)
                        strbuf_addf(&b, "%s%" PRIu64 " %s", n++ > 0 ? ", " : "", a->n[i], texts[i]);
        if (n_forgotten > 0)
                strbuf_addf(&b, "; %" PRIu64 " refusals of other addresses are in no line", n_forgotten);
        strbuf_add(&b, ". If an API server has this address, it applies failurePolicy to deletions among them");
        if (a->n[REFUSAL_CERTIFICATE] > 0)
                strbuf_add(&b, "; give it a certificate for the webhook (kubeConfigFile of its AdmissionConfiguration). "
                               "Otherwise keep the address out with a NetworkPolicy");
        else
                strbuf_add(&b, ". Otherwise keep the address out with a NetworkPolicy, and set [Webhook] ClientCAFile=");
        return strbuf_steal(&b);
}

char *refusal_log_add(RefusalLog *l, const char *address, Refusal why, usec_t now_usec) {
        RefusedAddress *a = log_find_address(l, address);
        usec_t at_usec;
        char *line;

        assert(why < _REFUSAL_MAX);
        /* Slow connections count for a minute: a few of each day are no attack. */
        if (now_usec >= usec_add(a->first_usec, LINE_INTERVAL_USEC) && a->n[HTTP_REFUSED_SLOW] == address_total(a))
                a->n[HTTP_REFUSED_SLOW] = 0;
        if (address_total(a) == 0)
                a->first_usec = now_usec;
        a->n[why]++;
        a->last_usec = now_usec;
        l->lines.burst = l->lines.per_minute = REFUSAL_LINES_PER_MINUTE;
        if (!is_due(a, now_usec) || !token_bucket_take(&l->lines, now_usec, &at_usec))
                return NULL;
        line = line_new(a, l->n_forgotten);
        memset(a->n, 0, sizeof(a->n));
        a->next_line_usec = usec_add(now_usec, LINE_INTERVAL_USEC);
        l->n_forgotten = 0;
        return line;
}
