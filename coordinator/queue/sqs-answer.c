/* SPDX-License-Identifier: Apache-2.0 */
#include "sqs-answer.h"

#include <limits.h>

#include "json.h"
#include "parse-util.h"
#include "string-util.h"

#define ID_MAX_BYTES 128u
#define RECEIPT_MAX_BYTES 4096u
#define SENT_MAX_MSEC (UINT64_C(1) << 43) /* in the 23rd century */

static_assert(SQS_ANSWER_MAX_BYTES >= 6 * SQS_BODY_MAX_BYTES + 64 * 1024,
              "One message of any size fits into an answer");

void sqs_message_done(SqsMessage *m) {
        free(m->id);
        free(m->receipt);
        free(m->body);
        *m = (SqsMessage){ 0 };
}

void sqs_messages_done(SqsMessages *m) {
        for (size_t i = 0; i < m->n; i++)
                sqs_message_done(m->at + i);
        m->n = 0;
}

/* Values of attributes are strings. One that is none of ours, or cannot be read, is as good as not told. */
static uint64_t read_number(const Json *attributes, const char *name, uint64_t max) {
        const char *text = json_string_or_null(json_get(attributes, name));
        uint64_t n;

        return text && parse_uint64_range(text, 0, max, &n) >= 0 ? n : 0;
}

static int read_message(const Json *o, SqsMessage *m) {
        static const JsonField fields[] = {
                { "MessageId", json_parse_strdup, offsetof(SqsMessage, id), true },
                { "ReceiptHandle", json_parse_strdup, offsetof(SqsMessage, receipt), true },
                { "Body", json_parse_strdup, offsetof(SqsMessage, body), true },
        };
        const Json *attributes = json_get(o, "Attributes");
        int r;

        r = json_dispatch(o, fields, ELEMENTSOF(fields), m, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        if (isempty(m->id) || strlen(m->id) > ID_MAX_BYTES || isempty(m->receipt) ||
            strlen(m->receipt) > RECEIPT_MAX_BYTES)
                return -EBADMSG;
        m->sent_usec = read_number(attributes, "SentTimestamp", SENT_MAX_MSEC) * USEC_PER_MSEC;
        m->receives = (unsigned) read_number(attributes, "ApproximateReceiveCount", UINT_MAX);
        return 0;
}

static int parse_answer(const char *data, size_t size, JsonDoc **ret) {
        int r = json_parse(data, size, SQS_ANSWER_MAX_BYTES, ret, NULL);

        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        return json_is_object(json_root(*ret)) ? 0 : -EBADMSG;
}

static bool is_list(const Json *v) {
        return !v || json_is_null(v) || json_is_array(v);
}

int sqs_messages_parse(const char *data, size_t size, SqsMessages *ret) {
        _cleanup_(sqs_messages_done) SqsMessages found = { 0 };
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const Json *list;
        int r;

        assert(data && ret);
        *ret = (SqsMessages){ 0 };
        r = parse_answer(data, size, &doc);
        if (r < 0)
                return r;
        list = json_get(json_root(doc), "Messages");
        if (!is_list(list) || json_size(list) > SQS_BATCH_MAX)
                return -EBADMSG;
        JSON_FOREACH (o, list) {
                r = read_message(o, found.at + found.n++);
                if (r < 0)
                        return r;
        }
        *ret = found;
        found = (SqsMessages){ 0 };
        return 0;
}

unsigned sqs_batch_next(unsigned asked, size_t answer_bytes) {
        size_t with_room = SQS_ANSWER_MAX_BYTES / (asked + 1) * asked / 2;

        assert(asked >= 1 && asked <= SQS_BATCH_MAX);
        if (answer_bytes == SIZE_MAX)
                return MAX(asked / 2, 1u);
        return answer_bytes <= with_room ? MIN(asked + 1, SQS_BATCH_MAX) : asked;
}

int sqs_failures_parse(const char *data, size_t size, size_t n, unsigned *ret_failed) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const Json *list;
        unsigned failed;
        int r;

        assert(data && n <= SQS_BATCH_MAX && ret_failed);
        *ret_failed = failed = (1u << n) - 1;
        r = parse_answer(data, size, &doc);
        if (r < 0)
                return r;
        list = json_get(json_root(doc), "Successful");
        if (!is_list(list))
                return -EBADMSG;
        JSON_FOREACH (o, list) {
                const char *id = json_string_or_null(json_get(o, "Id"));
                uint64_t i;

                if (!id || parse_uint64_range(id, 0, SQS_BATCH_MAX - 1, &i) < 0)
                        return -EBADMSG;
                failed &= ~(1u << i);
        }
        *ret_failed = failed;
        return 0;
}
