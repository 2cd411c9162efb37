/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aws-error.h"
#include "fuzz-draw.h"
#include "sqs-answer.h"
#include "sqs-url.h"
#include "string-util.h"

/*
 * What SQS answers, and the URL of a queue: a text that stands for itself, or a good answer that is bent. Whatever comes
 * out is whole and bounded; of a batch nothing counts as done that the answer does not name.
 */

static const char messages[] =
        "{\"Messages\":[{\"MessageId\":\"5f\",\"ReceiptHandle\":\"AQEB\",\"MD5OfBody\":\"0\",\"Body\":\"{}\",\"Attributes\":"
        "{\"SentTimestamp\":\"1790000000000\",\"ApproximateReceiveCount\":\"1\"}},{\"MessageId\":\"60\",\"ReceiptHandle\":\"AQEC\","
        "\"Body\":\"x\"}]}";
static const char batch[] = "{\"Successful\":[{\"Id\":\"0\"},{\"Id\":\"1\"}],\"Failed\":[{\"Id\":\"2\",\"Code\":\"InternalError\","
                            "\"SenderFault\":false,\"Message\":\"m\"}]}";
static const char error[] = "{\"__type\":\"com.amazonaws.sqs#QueueDoesNotExist\",\"message\":\"The specified queue does not exist.\"}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_messages(const char *text, size_t size) {
        SqsMessages m;
        int r = sqs_messages_parse(text, size, &m);

        assert(r == 0 || r == -EBADMSG);
        assert(m.n <= SQS_BATCH_MAX && (r == 0 || m.n == 0));
        for (size_t i = 0; i < m.n; i++)
                assert(!isempty(m.at[i].id) && !isempty(m.at[i].receipt) && m.at[i].body);
        sqs_messages_done(&m);
}

static void check_batch(const char *text, size_t size) {
        unsigned failed;
        int r = sqs_failures_parse(text, size, 3, &failed);

        assert((r == 0 && failed < 8) || (r == -EBADMSG && failed == 7));
}

static void check_error(const char *text, size_t size) {
        AwsError e = { 0 };
        int r = aws_error_parse_json(text, size, &e);

        assert((r == 0 && !isempty(e.code) && e.message && !strchr(e.code, '#')) || (r == -EBADMSG && !e.code));
        aws_error_done(&e);
}

static void check_url(const char *text) {
        SqsUrl u = { 0 }, again = { 0 };
        const char *why = NULL;
        int r = sqs_url_parse(text, &u, &why);

        assert(r == 0 || (r == -EINVAL && why && !u.url));
        if (r == 0) {
                assert(!isempty(u.name) && startswith(u.url, u.endpoint) && streq(u.url, text));
                assert(sqs_url_parse(u.url, &again, &why) == 0 && streq_ptr(u.region, again.region));
        }
        sqs_url_done(&u);
        sqs_url_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Draw d = { .data = data, .size = size };
        _cleanup_free_ char *text = draw_is_text(data, size) ? memdup_str((const char *) data, size) : NULL;
        size_t n = size;

        if (!text) {
                static const char *const templates[] = { messages, batch, error };
                const char *template = draw_of(&d, templates);

                text = draw_bent_json(&d, template);
                n = strlen(text);
        }
        check_messages(text, n);
        check_batch(text, n);
        check_error(text, n);
        check_url(text);
        return 0;
}
