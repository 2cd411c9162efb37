/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "fuzz.h"
#include "json.h"
#include "notify-settings.h"
#include "string-util.h"

static NotifyFacts facts_of(const char *text) {
        return (NotifyFacts){ .phase = NOTIFY_BLOCKED,
                              .reporter = text,
                              .node = text,
                              .node_uid = text,
                              .notice_id = text,
                              .kind = text,
                              .source = text,
                              .action = text,
                              .pods_left = (int64_t) strlen(text),
                              .message = text };
}

/* As a template: refused with a place inside of it, or a body within its bound; without a brace it is the body itself. */
static void check_template(const char *data, size_t size) {
        _cleanup_(notify_template_freep) NotifyTemplate *t = NULL;
        NotifyFacts f = facts_of("x\"\\");
        _cleanup_free_ char *body = NULL;
        const char *reason = NULL;
        size_t at;
        int r;

        r = notify_template_parse(data, size, &t, &reason, &at);
        if (r < 0) {
                assert(r == -EINVAL && reason && at <= size && !t);
                return;
        }
        body = notify_body(t, &f);
        assert(body && strlen(body) <= NOTIFY_BODY_MAX_BYTES && utf8_is_valid(body, strlen(body)));
        if (!memmem(data, size, "{{", 2))
                assert(strlen(body) == size && memcmp(body, data, size) == 0);
}

/* As every value: both bodies stay JSON, and the template's other member stays what it is. */
static void check_values(const char *data, size_t size) {
        static const char text[] = "{\"a\":\"{{node}}{{message}}{{noticeID}}\",\"b\":\"{{phase}}\"}";
        _cleanup_(notify_template_freep) NotifyTemplate *t = NULL;
        _cleanup_free_ char *value = memdup_str(data, size);
        const char *reason;
        NotifyFacts f;
        size_t at;

        assert(value && notify_template_parse(text, strlen(text), &t, &reason, &at) == 0);
        f = facts_of(value);
        for (size_t i = 0; i < 2; i++) {
                _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
                _cleanup_free_ char *body = notify_body(i == 0 ? t : NULL, &f);

                assert(body && strlen(body) <= NOTIFY_BODY_MAX_BYTES);
                assert(json_parse(body, strlen(body), strlen(body), &doc, NULL) == 0);
                assert(streq(json_string_or_null(json_get(json_root(doc), i == 0 ? "b" : "phase")), "blocked"));
        }
}

/* As headers: what is taken can be a header, and is none of ours. */
static void check_headers(const char *data, size_t size) {
        const char *reason = NULL;
        NotifyHeaders h;
        int r;

        r = notify_headers_parse(data, size, &h, &reason);
        assert(r == 0 || (r == -EINVAL && reason && h.n == 0));
        assert(h.n <= NOTIFY_HEADERS_MAX);
        for (size_t i = 0; i < h.n; i++) {
                assert(h.list[i].name[0] && !strpbrk(h.list[i].name, " \t\r\n:") && h.list[i].value[0]);
                assert(!strpbrk(h.list[i].value, "\r\n") && strncasecmp(h.list[i].name, "X-Vesper-", 9) != 0);
        }
        notify_headers_done(&h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_free_ char *url = memdup_str(data, size);

        assert(url);
        check_template((const char *) data, size);
        check_values((const char *) data, size);
        check_headers((const char *) data, size);
        if (!notify_url_fault(url))
                assert(startswith(url, "http") && !strpbrk(url, " \r\n#") && strlen(url) <= NOTIFY_URL_MAX_BYTES);
        return 0;
}
