/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "json.h"
#include "notify-message.h"
#include "notify-verdict.h"
#include "string-util.h"

#define S USEC_PER_SEC
#define NOW (UINT64_C(1800000000) * S)

static NotifyFacts some_facts(void) {
        return (NotifyFacts){ .phase = NOTIFY_DRAINING,
                              .reporter = "vesper-agent",
                              .node = "n1",
                              .node_uid = "u1",
                              .notice_id = "i-1/terminate/b",
                              .kind = "spot",
                              .source = "ec2",
                              .action = "terminate",
                              .deadline_usec = NOW + 120 * S,
                              .time_usec = NOW,
                              .pods_left = 3,
                              .message = "Evicting \"3\" pods." };
}

TEST_CASE(test_default_body) {
        NotifyFacts f = some_facts();
        _cleanup_free_ char *body = notify_body(NULL, &f), *least = NULL, *expected = NULL;
        char key[NOTIFY_KEY_MAX];

        assert_return_code(notify_key(&f, key), 0);
        expected = strf("{\"version\":1,\"key\":\"%s\",\"phase\":\"draining\",\"node\":\"n1\",\"nodeUID\":\"u1\","
                        "\"noticeID\":\"i-1/terminate/b\",\"kind\":\"spot\",\"source\":\"ec2\",\"action\":\"terminate\","
                        "\"deadline\":\"2027-01-15T08:02:00Z\",\"time\":\"2027-01-15T08:00:00Z\",\"podsLeft\":3,"
                        "\"message\":\"Evicting \\\"3\\\" pods.\",\"reporter\":\"vesper-agent\"}",
                        key);
        assert_string_equal(body, expected);

        f = (NotifyFacts){ .phase = NOTIFY_ENDED, .node = "n", .deadline_usec = USEC_INFINITY, .pods_left = -1 };
        least = notify_body(NULL, &f);
        assert_non_null(strstr(least, "\"phase\":\"ended\",\"node\":\"n\"}"));
}

/* Of node, notice and phase, and nothing else. */
TEST_CASE(test_key) {
        NotifyFacts f = some_facts(), other = f;
        char a[NOTIFY_KEY_MAX], b[NOTIFY_KEY_MAX];

        assert_return_code(notify_key(&f, a), 0);
        assert_int_equal(strlen(a), 32);
        other.pods_left = 0;
        other.time_usec += S;
        other.reporter = "vesper-coordinator";
        other.message = other.node = other.deadline_usec ? "x" : "y";
        assert_return_code(notify_key(&other, b), 0);
        assert_string_equal(a, b);
        for (unsigned i = 0; i < 4; i++) {
                other = f;
                if (i == 0)
                        other.phase = NOTIFY_DRAINED;
                else if (i == 1)
                        other.notice_id = "i-2";
                else if (i == 2)
                        other.node_uid = "u2";
                else {
                        other.node_uid = "u1i-1/"; /* the same bytes, cut elsewhere */
                        other.notice_id = "terminate/b";
                }
                assert_return_code(notify_key(&other, b), 0);
                assert_string_not_equal(a, b);
        }
}

TEST_CASE(test_template) {
        static const struct {
                const char *text, *body; /* body NULL: refused */
                const char *reason;
                size_t at;
        } rows[] = {
                { "hello", "hello", NULL, 0 },
                { "{{node}}", "n1", NULL, 0 },
                { "{\"text\":\"{{node}}: {{phase}} ({{message}})\"}", "{\"text\":\"n1: draining (Evicting \\\"3\\\" pods.)\"}", NULL, 0 },
                { "{{kind}}{{source}} {{action}} {{podsLeft}}", "spotec2 terminate 3", NULL, 0 },
                { "{{deadline}} {{time}}", "2027-01-15T08:02:00Z 2027-01-15T08:00:00Z", NULL, 0 },
                { "{{nodeUID}} {{noticeID}} {{reporter}}", "u1 i-1/terminate/b vesper-agent", NULL, 0 },
                { "{{{{node}} { } }} {{{{{{phase}}", "{{node}} { } }} {{draining", NULL, 0 },
                { "a {b} {\"c\":{\"d\":1}}", "a {b} {\"c\":{\"d\":1}}", NULL, 0 },
                { "{{node}}}", "n1}", NULL, 0 },
                { "", NULL, "empty", 0 },
                { "x {{", NULL, "not closed", 2 },
                { "{{node}} {{phase", NULL, "not closed", 9 },
                { "{{phase }}", NULL, "no placeholder", 0 },
                { "ab{{Node}}", NULL, "no placeholder", 2 },
                { "{{{node}}", NULL, "no placeholder", 0 },
                { "{{}}", NULL, "no placeholder", 0 },
                { "{{node}}\xff", NULL, "UTF-8", 0 },
        };
        NotifyFacts f = some_facts();

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(notify_template_freep) NotifyTemplate *t = NULL;
                _cleanup_free_ char *body = NULL;
                const char *reason = NULL;
                size_t at;
                int r;

                print_message("%s\n", rows[i].text);
                r = notify_template_parse(rows[i].text, strlen(rows[i].text), &t, &reason, &at);
                if (!rows[i].body) {
                        assert_int_equal(r, -EINVAL);
                        assert_non_null(strstr(reason, rows[i].reason));
                        assert_int_equal(at, rows[i].at);
                        continue;
                }
                assert_return_code(r, 0);
                body = notify_body(t, &f);
                assert_string_equal(body, rows[i].body);
        }
}

TEST_CASE(test_template_bounds) {
        _cleanup_strbuf_ StrBuf b = { 0 }, large = { 0 };
        _cleanup_(notify_template_freep) NotifyTemplate *t = NULL;
        const char *reason;
        size_t at;

        for (unsigned i = 0; i < NOTIFY_TEMPLATE_FIELDS_MAX; i++)
                strbuf_add(&b, "{{node}}");
        assert_return_code(notify_template_parse(strbuf_str(&b), b.size, &t, &reason, &at), 0);
        t = notify_template_free(t);
        strbuf_add(&b, "{{node}}");
        assert_int_equal(notify_template_parse(strbuf_str(&b), b.size, &t, &reason, &at), -EINVAL);
        assert_non_null(strstr(reason, "32"));
        for (unsigned i = 0; i < NOTIFY_TEMPLATE_MAX_BYTES; i++)
                strbuf_add_char(&large, 'x');
        assert_return_code(notify_template_parse(strbuf_str(&large), large.size, &t, &reason, &at), 0);
        t = notify_template_free(t);
        strbuf_add_char(&large, 'x');
        assert_int_equal(notify_template_parse(strbuf_str(&large), large.size, &t, &reason, &at), -EINVAL);
        assert_int_equal(notify_template_parse("a\0b", 3, &t, &reason, &at), -EINVAL);
}

/* Text from a cloud or a pod's author stays inside of its quotes, and has an end. */
TEST_CASE(test_hostile_values) {
        static const char text[] = "{\"t\":\"{{message}}\",\"n\":\"{{node}}\"}";
        _cleanup_(notify_template_freep) NotifyTemplate *t = NULL;
        _cleanup_strbuf_ StrBuf quotes = { 0 };
        const char *reason;
        size_t at;

        for (unsigned i = 0; i < 100000; i++)
                strbuf_add(&quotes, "\"\\");
        assert_return_code(notify_template_parse(text, strlen(text), &t, &reason, &at), 0);
        for (unsigned i = 0; i < 3; i++) {
                static const char *const values[] = { "\",\"node\":\"evil", "a\nb\x01\x1b[31m\xff\xfe{{node}}", NULL };
                NotifyFacts f = some_facts();
                _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
                _cleanup_free_ char *body = NULL;

                f.message = values[i] ?: strbuf_str(&quotes);
                body = notify_body(t, &f);
                assert_in_range(strlen(body), 1, NOTIFY_BODY_MAX_BYTES);
                assert_return_code(json_parse(body, strlen(body), strlen(body), &doc, NULL), 0);
                assert_string_equal(json_string_or_null(json_get(json_root(doc), "n")), "n1");
                assert_null(json_get(json_root(doc), "node"));
        }
}

/* No one in a chat is called, and no link is hidden, by text from a cloud; the default body has it all. */
TEST_CASE(test_markup) {
        static const char text[] = "{{noticeID}}|{{source}}|{{action}}|{{message}}|<!here>";
        _cleanup_(notify_template_freep) NotifyTemplate *t = NULL;
        _cleanup_free_ char *body = NULL, *plain = NULL;
        NotifyFacts f = some_facts();
        const char *reason;
        size_t at;

        f.notice_id = "<!channel> &amp; @here";
        f.source = "[free](https://example.com)";
        f.action = "`x` <https://example.com|y>";
        f.message = "[Policy] says <@U1>.";
        assert_return_code(notify_template_parse(text, strlen(text), &t, &reason, &at), 0);
        body = notify_body(t, &f);
        assert_string_equal(body, "?!channel? ?amp; ?here|(free)(https://example.com)|?x? ?https://example.com|y?|(Policy) says ??U1?.|<!here>");
        plain = notify_body(NULL, &f);
        assert_non_null(strstr(plain, "\"noticeID\":\"<!channel> &amp; @here\",\"kind\":\"spot\",\"source\":\"[free](https://example.com)\""));
}

TEST_CASE(test_sign) {
        char s[NOTIFY_SIGNATURE_MAX], other[NOTIFY_SIGNATURE_MAX];

        /* printf '1800000000.{}' | openssl dgst -sha256 -hmac key */
        assert_return_code(notify_sign("key", 3, 1800000000, "{}", s), 0);
        assert_string_equal(s, "sha256=7321475872b03ff21bdc2dfd86ea2d99ec29c479fbe4a77aa6acf4509505493f");
        assert_return_code(notify_sign("key", 3, 1800000001, "{}", other), 0);
        assert_string_not_equal(s, other);
        assert_return_code(notify_sign("kez", 3, 1800000000, "{}", other), 0);
        assert_string_not_equal(s, other);
}

TEST_CASE(test_phases) {
        for (NotifyPhase p = 0; p < _NOTIFY_PHASE_MAX; p++) {
                assert_non_null(notify_phase_names[p]);
                assert_int_equal(notify_phase_from_string(notify_phase_names[p]), p);
        }
        assert_null(notify_phase_names[_NOTIFY_PHASE_MAX]);
        assert_true(notify_phase_from_string("Drained") < 0);
        for (size_t i = 0; notify_fields[i]; i++)
                assert_true(notify_fields[i][0] != 0);
}

TEST_CASE(test_verdict) {
        static const struct {
                int error;
                unsigned status;
                NotifyVerdict verdict;
        } rows[] = {
                { 0, 200, NOTIFY_SENT },          { 0, 202, NOTIFY_SENT },    { 0, 204, NOTIFY_SENT },    { 0, 299, NOTIFY_SENT },
                { 0, 301, NOTIFY_RETRY },         { 0, 400, NOTIFY_REFUSED }, { 0, 401, NOTIFY_RETRY },   { 0, 403, NOTIFY_RETRY },
                { 0, 404, NOTIFY_RETRY },         { 0, 405, NOTIFY_REFUSED }, { 0, 408, NOTIFY_RETRY },   { 0, 410, NOTIFY_REFUSED },
                { 0, 413, NOTIFY_REFUSED },       { 0, 422, NOTIFY_REFUSED }, { 0, 429, NOTIFY_RETRY },   { 0, 500, NOTIFY_RETRY },
                { 0, 503, NOTIFY_RETRY },         { -ETIMEDOUT, 0, NOTIFY_RETRY }, { -EKEYREJECTED, 0, NOTIFY_RETRY },
                { -ECONNRESET, 200, NOTIFY_RETRY },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                if (notify_judge(rows[i].error, rows[i].status) != rows[i].verdict)
                        fail_msg("%d, HTTP %u: expected %d", rows[i].error, rows[i].status, (int) rows[i].verdict);
        assert_null(notify_error_text(0));
        assert_non_null(strstr(notify_error_text(-EKEYREJECTED), "CAFile="));
}

TEST_CASE(test_patience) {
        static const struct {
                usec_t deadline, expected;
        } rows[] = {
                { 0, NOTIFY_NEWS_MAX_USEC },           { USEC_INFINITY, NOTIFY_NEWS_MAX_USEC },
                { NOW - 10 * S, NOTIFY_NEWS_MIN_USEC }, { NOW + 10 * S, NOTIFY_NEWS_MIN_USEC },
                { NOW + 120 * S, 120 * S },             { NOW + 2 * USEC_PER_HOUR, NOTIFY_NEWS_MAX_USEC },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                assert_int_equal(notify_patience(NOW, rows[i].deadline), rows[i].expected);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_default_body),    cmocka_unit_test(test_key),            cmocka_unit_test(test_template),
                cmocka_unit_test(test_template_bounds), cmocka_unit_test(test_markup), cmocka_unit_test(test_hostile_values), cmocka_unit_test(test_sign),
                cmocka_unit_test(test_phases),          cmocka_unit_test(test_verdict),        cmocka_unit_test(test_patience),
        };

        return cmocka_run_group_tests_name("notify-message", tests, NULL, NULL);
}
