/* SPDX-License-Identifier: Apache-2.0 */
/* The fake writes byte by byte what a real API server has sent of the same objects. */

#include "cmocka-test.h"
#include "fake-json.h"
#include "fake-protobuf.h"
#include "json-protobuf.h"
#include "kube-kinds.h"
#include "kube-protobuf-fixture.h"
#include "kube-protobuf-json.h"

static void assert_bytes(const StrBuf *b, const char *expected, size_t size) {
        size_t same = 0;

        while (same < MIN(b->size, size) && b->data[same] == expected[same])
                same++;
        if (same < size || b->size != size)
                fail_msg("%zu bytes for %zu, the same up to %zu", b->size, size, same);
}

TEST_CASE(test_lists) {
        static const struct {
                FakeResourceId id;
                const char *json, *bytes;
                size_t size;
        } rows[] = {
                { FAKE_PODS, json_page, fixture_page, FIXTURE_SIZE(fixture_page) },
                { FAKE_NODES, json_nodes, fixture_nodes, FIXTURE_SIZE(fixture_nodes) },
                { FAKE_PDBS, json_pdbs, fixture_pdbs, FIXTURE_SIZE(fixture_pdbs) },
                { FAKE_VOLUMEATTACHMENTS, json_attachments, fixture_attachments,
                  FIXTURE_SIZE(fixture_attachments) },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_cjson_ cJSON *list = MUST(cJSON_Parse(rows[i].json));
                const FakeResource *r = fake_resource(rows[i].id);
                _cleanup_strbuf_ StrBuf items = { 0 }, b = { 0 };
                const cJSON *o;

                print_message("%s\n", r->plural);
                cJSON_ArrayForEach (o, fj_get(list, "items", NULL)) {
                        _cleanup_strbuf_ StrBuf message = { 0 };

                        fake_protobuf_add_message(&message, r, o, false);
                        fake_protobuf_add_item(&items, message.data, message.size);
                }
                fake_protobuf_add_list(&b, r, fj_get(list, "metadata", NULL), &items);
                assert_bytes(&b, rows[i].bytes, rows[i].size);
        }
}

TEST_CASE(test_events) {
        _cleanup_cjson_ cJSON *events = MUST(cJSON_Parse(json_frames));
        const FakeResource *r = fake_resource(FAKE_PODS);
        _cleanup_strbuf_ StrBuf b = { 0 };
        const cJSON *e;

        cJSON_ArrayForEach (e, events) {
                _cleanup_strbuf_ StrBuf message = { 0 };

                fake_protobuf_add_message(&message, r, fj_get(e, "object", NULL), false);
                fake_protobuf_add_event(&b, fj_string(e, "type", NULL), r, message.data, message.size,
                                        false);
        }
        assert_bytes(&b, fixture_frames, FIXTURE_SIZE(fixture_frames));
}

TEST_CASE(test_status) {
        _cleanup_cjson_ cJSON *status = MUST(cJSON_Parse(json_status));
        _cleanup_strbuf_ StrBuf b = { 0 };

        fake_protobuf_add_status(&b, status);
        assert_bytes(&b, fixture_status, FIXTURE_SIZE(fixture_status));
}

static char *read_back(const cJSON *pod, bool strange, size_t *ret_size) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_strbuf_ StrBuf message = { 0 };

        fake_protobuf_add_message(&message, fake_resource(FAKE_PODS), pod, strange);
        *ret_size = message.size;
        assert_return_code(json_from_protobuf(message.data, message.size, SIZE_MAX, kube_own_pod_kind.shape,
                                              &doc, NULL),
                           0);
        return MUST(json_format(json_root(doc)));
}

/* What a later API has more is passed over. */
TEST_CASE(test_strange) {
        _cleanup_cjson_ cJSON *list = MUST(cJSON_Parse(json_page));
        const cJSON *pod = cJSON_GetArrayItem(fj_get(list, "items", NULL), 0);
        _cleanup_free_ char *plain = NULL, *strange = NULL;
        size_t plain_size, strange_size;

        plain = read_back(pod, false, &plain_size);
        strange = read_back(pod, true, &strange_size);
        assert_true(strange_size > plain_size + 500);
        assert_string_equal(plain, strange);
}

/* Whoever wrote to a real server is noted in the object. */
TEST_CASE(test_managed_fields) {
        _cleanup_cjson_ cJSON *pod = fj_parse("{'metadata':{'name':'p'}}");
        _cleanup_strbuf_ StrBuf message = { 0 };

        fake_protobuf_add_message(&message, fake_resource(FAKE_PODS), pod, false);
        assert_non_null(memmem(message.data, message.size, "FieldsV1", 8));
}

TEST_CASE(test_what_is_asked_for) {
        static const struct {
                const char *accept;
                bool protobuf;
        } rows[] = {
                { NULL, false },
                { "", false },
                { "*/*", false },
                { "application/json", false },
                { "application/vnd.kubernetes.protobuf", true },
                { "application/vnd.kubernetes.protobuf, application/json", true },
                { "application/vnd.kubernetes.protobuf;stream=watch,application/json", true },
                { "application/json, application/vnd.kubernetes.protobuf", false },
                { "text/plain, application/vnd.kubernetes.protobuf", true },
                { "application/vnd.kubernetes.protobuffer", false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                HttpHeader header = { "Accept", rows[i].accept };
                HttpExchange x = { .headers = &header, .n_headers = rows[i].accept ? 1 : 0 };

                print_message("'%s'\n", strempty(rows[i].accept));
                assert_int_equal(fake_protobuf_is_asked(&x), rows[i].protobuf);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lists),          cmocka_unit_test(test_events),
                cmocka_unit_test(test_status),         cmocka_unit_test(test_strange),
                cmocka_unit_test(test_managed_fields), cmocka_unit_test(test_what_is_asked_for),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
