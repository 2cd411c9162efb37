/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-sqs.h"

#include <inttypes.h>

#include "fake-json.h"
#include "fake-sqs-queue.h"
#include "strv.h"

#define MAX_SKEW_USEC (5 * USEC_PER_MINUTE)
#define CONTENT_TYPE "application/x-amz-json-1.0"
#define TARGET "AmazonSQS."
#define VISIBILITY_MAX_SEC 43200
#define WAIT_MAX_SEC 20
#define DELAY_MAX_SEC 900
#define RECEIVE_MAX 10
#define BATCH_MAX 10
#define BODY_MAX_BYTES (1024u * 1024)
#define IN_FLIGHT_MAX 120000u

struct FakeSqs {
        FakeAwsFront front;
        size_t max_in_flight;
        List queues;
};

typedef struct Request {
        FakeSqs *f;
        HttpExchange *x;
        cJSON *body;
        SqsQueue *queue;
        bool failed; /* the error was sent */
} Request;

/* A receive that waits for something to come. */
typedef struct Poll {
        ListNode polls;
        FakeSqs *f;
        SqsQueue *queue;
        HttpExchange *x;
        Timer *deadline;
        int64_t max;
        usec_t visibility_usec;
        bool count, sent, first;
} Poll;

/* -- answers ------------------------------------------------------------------------------------------- */

/* Errors: the modelled name behind its namespace, and what the query protocol would have called it. */
static const struct {
        const char *type, *space, *legacy;
} errors[] = {
        { "QueueDoesNotExist", "com.amazonaws.sqs", "AWS.SimpleQueueService.NonExistentQueue" },
        { "ReceiptHandleIsInvalid", "com.amazonaws.sqs", "ReceiptHandleIsInvalid" },
        { "MessageNotInflight", "com.amazonaws.sqs", "AWS.SimpleQueueService.MessageNotInflight" },
        { "OverLimit", "com.amazonaws.sqs", "OverLimit" },
        { "RequestThrottled", "com.amazonaws.sqs", "RequestThrottled" },
        { "InvalidAddress", "com.amazonaws.sqs", "InvalidAddress" },
        { "InvalidSecurity", "com.amazonaws.sqs", "InvalidSecurity" },
        { "InvalidAttributeName", "com.amazonaws.sqs", "InvalidAttributeName" },
        { "InvalidMessageContents", "com.amazonaws.sqs", "InvalidMessageContents" },
        { "KmsAccessDenied", "com.amazonaws.sqs", "KMS.AccessDeniedException" },
        { "KmsDisabled", "com.amazonaws.sqs", "KMS.DisabledException" },
        { "KmsThrottled", "com.amazonaws.sqs", "KMS.ThrottlingException" },
        { "EmptyBatchRequest", "com.amazonaws.sqs", "AWS.SimpleQueueService.EmptyBatchRequest" },
        { "TooManyEntriesInBatchRequest", "com.amazonaws.sqs",
          "AWS.SimpleQueueService.TooManyEntriesInBatchRequest" },
        { "BatchEntryIdsNotDistinct", "com.amazonaws.sqs",
          "AWS.SimpleQueueService.BatchEntryIdsNotDistinct" },
        { "InvalidBatchEntryId", "com.amazonaws.sqs", "AWS.SimpleQueueService.InvalidBatchEntryId" },
        { "InvalidParameterValueException", "com.amazon.coral.service", "InvalidParameterValue" },
        { "MissingRequiredParameterException", "com.amazon.coral.service", "MissingParameter" },
};

static void send_error(FakeSqs *f, HttpExchange *x, unsigned status, const char *type, const char *message) {
        const char *space = "com.amazon.coral.service", *legacy = type;
        _cleanup_free_ char *full = NULL, *header = NULL, *text = NULL;
        _cleanup_cjson_ cJSON *o = MUST(cJSON_CreateObject());

        for (size_t i = 0; i < ELEMENTSOF(errors); i++)
                if (streq(errors[i].type, type)) {
                        space = errors[i].space;
                        legacy = errors[i].legacy;
                }
        full = MUST(strf("%s#%s", space, type));
        header = MUST(strf("%s;%s", legacy, status >= 500 ? "Receiver" : "Sender"));
        fj_set_string(o, "__type", full);
        fj_set_string(o, "message", message);
        text = fj_print(o);
        fake_aws_front_reply(&f->front, x, status, CONTENT_TYPE,
                             &(HttpHeader) { "x-amzn-query-error", header }, text);
}

_printf_(3, 4) static void refuse(Request *r, const char *type, const char *fmt, ...) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        va_list ap;

        if (r->failed)
                return;
        va_start(ap, fmt);
        strbuf_addv(&b, fmt, ap);
        va_end(ap);
        send_error(r->f, r->x, 400, type, strbuf_str(&b));
        r->failed = true;
}

/* NULL: 200 with nothing in it. */
static void reply(FakeSqs *f, HttpExchange *x, const cJSON *o) {
        _cleanup_free_ char *text = o ? fj_print(o) : NULL;

        fake_aws_front_reply(&f->front, x, 200, CONTENT_TYPE, NULL, strempty(text));
}

/* -- members of a request ------------------------------------------------------------------------------ */

static int64_t take_int(Request *r, const char *name, int64_t min, int64_t max, int64_t otherwise) {
        const cJSON *v = fj_member(r->body, name);
        int64_t n = fj_int(r->body, otherwise, name, NULL);

        if (v && !cJSON_IsNumber(v))
                refuse(r, "SerializationException", "%s is no number", name);
        else if (v && (n < min || n > max))
                refuse(r, "InvalidParameterValueException",
                       "Value %" PRId64 " for parameter %s is invalid. Reason: Must be >= %" PRId64
                       " and <= %" PRId64 ", if provided.",
                       n, name, min, max);
        return n;
}

static const char *take_string(Request *r, const char *name, bool required) {
        const cJSON *v = fj_member(r->body, name);

        if (v && !cJSON_IsString(v))
                refuse(r, "SerializationException", "%s is no string", name);
        else if (required && (!v || !*v->valuestring))
                refuse(r, "MissingRequiredParameterException", "The request must contain the parameter %s.",
                       name);
        return r->failed || !v ? NULL : v->valuestring;
}

/* "http://HOST/ACCOUNT/NAME": the host must be ours, the rest must be a queue. */
static SqsQueue *take_queue(Request *r) {
        const char *url = take_string(r, "QueueUrl", true);
        const char *host = http_header_find(r->x->headers, r->x->n_headers, "Host");
        _cleanup_strv_free_ char **parts = NULL;
        int k;

        if (!url)
                return NULL;
        k = strv_split(url, "/", &parts);
        assert(k >= 0);
        if (strv_length(parts) != 4 || (!streq(parts[0], "http:") && !streq(parts[0], "https:")) ||
            !streq(parts[1], strempty(host))) {
                refuse(r, "InvalidAddress", "The address %s is not valid for this endpoint.", url);
                return NULL;
        }
        LIST_FOREACH (q, &r->f->queues, SqsQueue, queues)
                if (streq(q->name, parts[3]) && streq(r->f->front.account, parts[2]))
                        return q;
        refuse(r, "QueueDoesNotExist", "The specified queue does not exist.");
        return NULL;
}

static bool wants(const Request *r, const char *attribute) {
        static const char *const lists[] = { "MessageSystemAttributeNames", "AttributeNames" };

        for (size_t i = 0; i < ELEMENTSOF(lists); i++) {
                const cJSON *names = fj_member(r->body, lists[i]);

                if (fj_array_has(names, attribute) || fj_array_has(names, "All"))
                        return true;
        }
        return false;
}

/* -- receiving ----------------------------------------------------------------------------------------- */

static void set_msec(cJSON *o, const char *key, usec_t wall_usec) {
        _cleanup_free_ char *text = MUST(strf("%" PRIu64, wall_usec / USEC_PER_MSEC));

        fj_set_string(o, key, text);
}

static cJSON *message_json(const Poll *p, const SqsMessage *m) {
        _cleanup_free_ char *handle = sqs_message_handle(p->queue, m), *count = NULL;
        cJSON *o = MUST(cJSON_CreateObject());

        fj_set_string(o, "MessageId", m->id);
        fj_set_string(o, "ReceiptHandle", handle);
        fj_set_string(o, "MD5OfBody", m->md5);
        fj_set_string(o, "Body", m->body);
        if (p->sent)
                set_msec(fj_object(o, "Attributes"), "SentTimestamp", m->sent_wall_usec);
        if (p->first)
                set_msec(fj_object(o, "Attributes"), "ApproximateFirstReceiveTimestamp",
                         m->first_receive_wall_usec);
        if (p->count) {
                count = MUST(strf("%" PRIu64, m->n_receives));
                fj_set_string(fj_object(o, "Attributes"), "ApproximateReceiveCount", count);
        }
        return o;
}

static size_t n_in_flight(const SqsQueue *q) {
        size_t n = 0;

        LIST_FOREACH (m, &q->messages, SqsMessage, messages)
                n += sqs_message_in_flight(q, m);
        return n;
}

/* What there is for this poll now; "Messages" is absent if that is nothing. */
static cJSON *receive(const Poll *p) {
        cJSON *o = MUST(cJSON_CreateObject());

        for (int64_t n = 0; n < p->max; n++) {
                const SqsMessage *m = sqs_queue_receive(p->queue, p->visibility_usec);

                if (!m)
                        break;
                cJSON_AddItemToArray(fj_array(o, "Messages"), message_json(p, m));
        }
        return o;
}

static void poll_free(Poll *p) {
        list_remove(&p->queue->polls, &p->polls);
        timer_free(p->deadline);
        free(p);
}

static void poll_answer(Poll *p, const cJSON *o) {
        HttpExchange *x = p->x;
        FakeSqs *f = p->f;

        poll_free(p);
        reply(f, x, o);
}

static void on_visible(SqsQueue *q) {
        LIST_FOREACH (p, &q->polls, Poll, polls) {
                _cleanup_cjson_ cJSON *o = receive(p);

                if (!fj_member(o, "Messages"))
                        break;
                poll_answer(p, o);
        }
        sqs_queue_run(q);
}

static void on_poll_deadline(Timer *t, void *userdata) {
        _cleanup_cjson_ cJSON *o = MUST(cJSON_CreateObject());

        poll_answer(userdata, o);
}

static void on_poll_gone(HttpExchange *x, void *userdata) {
        poll_free(userdata);
}

static void poll_start(const Poll *from, usec_t wait_usec) {
        Poll *p = MUST(memdup(from, sizeof(*from)));
        int r = timer_new(p->f->front.loop, "fake-sqs-poll", on_poll_deadline, p, &p->deadline);

        assert(r >= 0);
        list_append(&p->queue->polls, &p->polls);
        p->x->on_gone = on_poll_gone;
        p->x->userdata = p;
        timer_arm_in(p->deadline, wait_usec);
        sqs_queue_run(p->queue);
}

static void receive_message(Request *r) {
        SqsQueue *q = r->queue;
        Poll poll = {
                .f = r->f,
                .queue = q,
                .x = r->x,
                .max = take_int(r, "MaxNumberOfMessages", 1, RECEIVE_MAX, 1),
                .count = wants(r, "ApproximateReceiveCount"),
                .sent = wants(r, "SentTimestamp"),
                .first = wants(r, "ApproximateFirstReceiveTimestamp"),
        };
        int64_t wait =
                take_int(r, "WaitTimeSeconds", 0, WAIT_MAX_SEC, (int64_t) (q->wait_usec / USEC_PER_SEC));
        int64_t visibility = take_int(r, "VisibilityTimeout", 0, VISIBILITY_MAX_SEC,
                                      (int64_t) (q->visibility_usec / USEC_PER_SEC));
        _cleanup_cjson_ cJSON *o = NULL;

        if (r->failed)
                return;
        poll.visibility_usec = (usec_t) visibility * USEC_PER_SEC;
        if (q->messages.size >= r->f->max_in_flight && n_in_flight(q) >= r->f->max_in_flight)
                return refuse(r, "OverLimit", "Too many messages in flight");
        o = receive(&poll);
        if (fj_member(o, "Messages") || wait == 0)
                reply(r->f, r->x, o);
        else
                poll_start(&poll, (usec_t) wait * USEC_PER_SEC);
}

/* -- deleting, hiding ---------------------------------------------------------------------------------- */

/* NULL: it went well, also if there was nothing to delete. */
static const char *delete_by(Request *r, const char *handle) {
        bool known;
        SqsMessage *m = sqs_queue_find(r->queue, handle, &known);

        if (!known)
                return "ReceiptHandleIsInvalid";
        if (m && r->queue->on_delete)
                r->queue->on_delete(m->id, r->queue->on_delete_userdata);
        if (m)
                sqs_queue_drop(r->queue, m);
        return NULL;
}

static void delete_message(Request *r) {
        const char *handle = take_string(r, "ReceiptHandle", true);

        if (!handle)
                return;
        if (delete_by(r, handle))
                return refuse(r, "ReceiptHandleIsInvalid",
                              "The input receipt handle \"%s\" is not a valid receipt handle.", handle);
        reply(r->f, r->x, NULL);
}

/* False: the error was sent. */
static bool check_batch(Request *r, const cJSON *entries) {
        const cJSON *e, *other;

        if (!cJSON_IsArray(entries) || cJSON_GetArraySize(entries) == 0)
                refuse(r, "EmptyBatchRequest",
                       "There should be at least one entry in the request.");
        else if (cJSON_GetArraySize(entries) > BATCH_MAX)
                refuse(r, "TooManyEntriesInBatchRequest",
                       "Maximum number of entries per request are 10. You have sent %d.",
                       cJSON_GetArraySize(entries));
        cJSON_ArrayForEach (e, entries) {
                const char *id = fj_string(e, "Id", NULL);

                if (!id || !fj_string(e, "ReceiptHandle", NULL))
                        refuse(r, "MissingRequiredParameterException",
                               "An entry needs Id and ReceiptHandle.");
                else if (!*id || strlen(id) > 80)
                        refuse(r, "InvalidBatchEntryId",
                               "A batch entry id can only contain alphanumeric characters, hyphens and "
                               "underscores. It can "
                               "be at most 80 letters long.");
                for (other = e->next; id && other; other = other->next)
                        if (streq_ptr(id, fj_string(other, "Id", NULL)))
                                refuse(r, "BatchEntryIdsNotDistinct", "Id %s repeated.", id);
        }
        return !r->failed;
}

static cJSON *batch_item(const cJSON *entry, const char *error, const char *text) {
        cJSON *item = MUST(cJSON_CreateObject());

        fj_set_string(item, "Id", fj_string(entry, "Id", NULL));
        if (error) {
                fj_set_string(item, "Code", error);
                fj_set_string(item, "Message", strempty(text));
                fj_set_bool(item, "SenderFault", true);
        }
        return item;
}

static void delete_batch(Request *r) {
        const cJSON *entries = fj_member(r->body, "Entries"), *e;
        _cleanup_cjson_ cJSON *o = NULL;

        if (!check_batch(r, entries))
                return;
        o = MUST(cJSON_CreateObject());
        cJSON_ArrayForEach (e, entries) {
                const char *error = delete_by(r, fj_string(e, "ReceiptHandle", NULL));

                cJSON_AddItemToArray(fj_array(o, error ? "Failed" : "Successful"),
                                     batch_item(e, error, "The input receipt handle is invalid."));
        }
        reply(r->f, r->x, o);
}

/* NULL: done; else its error, and *ret_text says more. */
static const char *change_by(Request *r, const char *handle, int64_t sec, char **ret_text) {
        usec_t now = loop_now(r->f->front.loop);
        SqsMessage *m;
        bool known;

        m = sqs_queue_find(r->queue, handle, &known);
        if (!known) {
                *ret_text = MUST(strf("The input receipt handle \"%s\" is not a valid receipt handle.", handle));
                return "ReceiptHandleIsInvalid";
        }
        if (!m) {
                *ret_text = MUST(strf("Value %s for parameter ReceiptHandle is invalid. Reason: Message does not exist or is "
                                      "not available for visibility timeout change.",
                                      handle));
                return "InvalidParameterValueException";
        }
        if (!sqs_message_in_flight(r->queue, m)) {
                *ret_text = MUST(strf("The message referred to is not in flight."));
                return "MessageNotInflight";
        }
        if (now + (usec_t) sec * USEC_PER_SEC > m->received_usec + VISIBILITY_MAX_SEC * USEC_PER_SEC) {
                *ret_text = MUST(strf("Value %" PRId64 " for parameter VisibilityTimeout is invalid. Reason: Total "
                                      "VisibilityTimeout for the message is beyond the limit [43200 seconds].",
                                      sec));
                return "InvalidParameterValueException";
        }
        m->visible_usec = now + (usec_t) sec * USEC_PER_SEC;
        sqs_queue_run(r->queue);
        return NULL;
}

static void change_visibility(Request *r) {
        const char *handle = take_string(r, "ReceiptHandle", true), *error;
        int64_t sec = take_int(r, "VisibilityTimeout", 0, VISIBILITY_MAX_SEC, -1);
        _cleanup_free_ char *text = NULL;

        if (sec < 0)
                refuse(r, "MissingRequiredParameterException",
                       "The request must contain the parameter VisibilityTimeout.");
        if (r->failed)
                return;
        error = change_by(r, handle, sec, &text);
        if (error)
                return refuse(r, error, "%s", text);
        reply(r->f, r->x, NULL);
}

static void change_batch(Request *r) {
        const cJSON *entries = fj_member(r->body, "Entries"), *e;
        _cleanup_cjson_ cJSON *o = NULL;

        if (!check_batch(r, entries))
                return;
        o = MUST(cJSON_CreateObject());
        cJSON_ArrayForEach (e, entries) {
                int64_t sec = fj_int(e, -1, "VisibilityTimeout", NULL);
                _cleanup_free_ char *text = NULL;
                const char *error = sec < 0 || sec > VISIBILITY_MAX_SEC
                                            ? "InvalidParameterValueException"
                                            : change_by(r, fj_string(e, "ReceiptHandle", NULL), sec, &text);

                cJSON_AddItemToArray(fj_array(o, error ? "Failed" : "Successful"), batch_item(e, error, text));
        }
        reply(r->f, r->x, o);
}

/* -- queues, sending ----------------------------------------------------------------------------------- */

static void get_queue_url(Request *r) {
        const char *name = take_string(r, "QueueName", true);
        const char *account = take_string(r, "QueueOwnerAWSAccountId", false);
        const char *host = http_header_find(r->x->headers, r->x->n_headers, "Host");
        _cleanup_cjson_ cJSON *o = NULL;
        _cleanup_free_ char *url = NULL;

        if (r->failed)
                return;
        if (!fake_sqs_has_queue(r->f, name) || (account && !streq(account, r->f->front.account)))
                return refuse(r, "QueueDoesNotExist", "The specified queue does not exist.");
        /* The face is not known here; loopback ports are the real servers', which speak plain HTTP. */
        url = MUST(strf("%s://%s/%s/%s", startswith(strempty(host), "127.0.0.1") ? "http" : "https",
                        strempty(host), r->f->front.account, name));
        o = MUST(cJSON_CreateObject());
        fj_set_string(o, "QueueUrl", url);
        reply(r->f, r->x, o);
}

static void get_attributes(Request *r) {
        const SqsQueue *q = r->queue;
        size_t visible = 0, hidden = 0, delayed = 0;
        _cleanup_free_ char *arn = NULL;
        _cleanup_cjson_ cJSON *o = MUST(cJSON_CreateObject());
        const cJSON *names = fj_member(r->body, "AttributeNames"), *e;

        LIST_FOREACH (m, &q->messages, SqsMessage, messages) {
                hidden += sqs_message_in_flight(q, m);
                delayed += sqs_message_delayed(q, m);
        }
        visible = q->messages.size - hidden - delayed;
        arn = MUST(strf("arn:aws:sqs:%s:%s:%s", strempty(r->f->front.region), r->f->front.account, q->name));
        const struct {
                const char *name;
                uint64_t number;
                const char *text;
        } all[] = {
                { "ApproximateNumberOfMessages", visible, NULL },
                { "ApproximateNumberOfMessagesNotVisible", hidden, NULL },
                { "ApproximateNumberOfMessagesDelayed", delayed, NULL },
                { "CreatedTimestamp", q->created_wall_usec / USEC_PER_SEC, NULL },
                { "DelaySeconds", 0, NULL },
                { "LastModifiedTimestamp", q->created_wall_usec / USEC_PER_SEC, NULL },
                { "MaximumMessageSize", BODY_MAX_BYTES, NULL },
                { "MessageRetentionPeriod", q->retention_usec / USEC_PER_SEC, NULL },
                { "QueueArn", 0, arn },
                { "ReceiveMessageWaitTimeSeconds", q->wait_usec / USEC_PER_SEC, NULL },
                { "VisibilityTimeout", q->visibility_usec / USEC_PER_SEC, NULL },
        };

        cJSON_ArrayForEach (e, names) {
                bool known = cJSON_IsString(e) && streq(e->valuestring, "All");

                for (size_t i = 0; i < ELEMENTSOF(all) && !known; i++)
                        known = cJSON_IsString(e) && streq(e->valuestring, all[i].name);
                if (!known)
                        return refuse(r, "InvalidAttributeName", "Unknown Attribute %s.",
                                      cJSON_IsString(e) ? e->valuestring : "");
        }
        for (size_t i = 0; i < ELEMENTSOF(all); i++) {
                _cleanup_free_ char *number = MUST(strf("%" PRIu64, all[i].number));

                if (fj_array_has(names, "All") || fj_array_has(names, all[i].name))
                        fj_set_string(fj_object(o, "Attributes"), all[i].name,
                                      all[i].text ? all[i].text : number);
        }
        reply(r->f, r->x, o);
}

static void send_message(Request *r) {
        const char *body = take_string(r, "MessageBody", true);
        int64_t delay = take_int(r, "DelaySeconds", 0, DELAY_MAX_SEC, 0);
        _cleanup_cjson_ cJSON *o = NULL;
        const SqsMessage *m;

        if (r->failed)
                return;
        if (strlen(body) > BODY_MAX_BYTES)
                return refuse(
                        r, "InvalidParameterValueException",
                        "One or more parameters are invalid. Reason: Message must be shorter than %u bytes.",
                        BODY_MAX_BYTES);
        m = sqs_queue_send(r->queue, body, (usec_t) delay * USEC_PER_SEC);
        o = MUST(cJSON_CreateObject());
        fj_set_string(o, "MD5OfMessageBody", m->md5);
        fj_set_string(o, "MessageId", m->id);
        reply(r->f, r->x, o);
}

/* -- a request ----------------------------------------------------------------------------------------- */

static const struct Operation {
        const char *name;
        bool queue; /* by its URL */
        const char *members[7];
        void (*act)(Request *r);
} operations[] = {
        { "GetQueueUrl", false, { "QueueName", "QueueOwnerAWSAccountId" }, get_queue_url },
        { "GetQueueAttributes", true, { "QueueUrl", "AttributeNames" }, get_attributes },
        { "SendMessage", true, { "QueueUrl", "MessageBody", "DelaySeconds" }, send_message },
        { "ReceiveMessage",
          true,
          { "QueueUrl", "MaxNumberOfMessages", "WaitTimeSeconds", "VisibilityTimeout",
            "MessageSystemAttributeNames", "AttributeNames", "MessageAttributeNames" },
          receive_message },
        { "DeleteMessage", true, { "QueueUrl", "ReceiptHandle" }, delete_message },
        { "DeleteMessageBatch", true, { "QueueUrl", "Entries" }, delete_batch },
        { "ChangeMessageVisibility",
          true,
          { "QueueUrl", "ReceiptHandle", "VisibilityTimeout" },
          change_visibility },
        { "ChangeMessageVisibilityBatch", true, { "QueueUrl", "Entries" }, change_batch },
};

static const struct Operation *find_operation(const HttpExchange *x) {
        const char *target = http_header_find(x->headers, x->n_headers, "X-Amz-Target");
        const char *type = http_header_find(x->headers, x->n_headers, "Content-Type");
        const char *name = target ? startswith(target, TARGET) : NULL;

        if (x->method != HTTP_POST || !streq(x->path, "/") || *x->query || !streq_ptr(type, CONTENT_TYPE))
                return NULL;
        for (size_t i = 0; i < ELEMENTSOF(operations); i++)
                if (streq_ptr(name, operations[i].name))
                        return &operations[i];
        return NULL;
}

static bool members_are_known(Request *r, const struct Operation *o) {
        const cJSON *m;

        if (!cJSON_IsObject(r->body)) {
                refuse(r, "SerializationException", "The body is no JSON object");
                return false;
        }
        cJSON_ArrayForEach (m, r->body) {
                bool known = false;

                for (size_t i = 0; i < ELEMENTSOF(o->members) && o->members[i]; i++)
                        known = known || streq(m->string, o->members[i]);
                if (!known)
                        refuse(r, "SerializationException", "%s has no member %s", o->name, m->string);
        }
        return !r->failed;
}

/* True: the request is answered, or never will be. */
static bool play_trouble(Request *r, const char *operation) {
        const FakeTrouble *t = fake_troubles_take(r->f->front.troubles, operation, &r->x);

        if (t && t->kind == FAKE_TROUBLE_BODY)
                fake_aws_front_reply(&r->f->front, r->x, t->status, CONTENT_TYPE, NULL, t->body);
        else if (t)
                send_error(r->f, r->x, t->status, t->code, t->message);
        return t || !r->x;
}

static void handle(Request *r) {
        static const char *const services[] = { "sqs", NULL };
        const struct Operation *o = find_operation(r->x);
        FakeAwsRefusal refusal;
        FakeAwsScope scope;

        if (!fake_aws_front_admit(&r->f->front, r->x, services, &scope, &refusal)) {
                fake_aws_refusal_as_json(&refusal);
                return send_error(r->f, r->x, refusal.status, refusal.code, refusal.message);
        }
        if (!o)
                return refuse(r, "UnknownOperationException",
                              "No such operation, or not POST / with " CONTENT_TYPE);
        if (play_trouble(r, o->name) || !members_are_known(r, o))
                return;
        if (o->queue) {
                r->queue = take_queue(r);
                if (!r->queue)
                        return;
                sqs_queue_run(r->queue);
        }
        o->act(r);
}

void fake_sqs_handle(HttpExchange *x, void *fake_sqs) {
        Request r = { .f = fake_sqs, .x = x };

        r.body = cJSON_ParseWithLength(x->body ? x->body : "", x->body_size);
        handle(&r);
        cJSON_Delete(r.body);
}

/* -- what tests do ------------------------------------------------------------------------------------- */

FakeSqs *fake_sqs_new(const FakeSqsOptions *o) {
        FakeSqs *f = MUST(new0(FakeSqs, 1));
        FakeAwsFrontOptions aws = o->aws;

        aws.max_skew_usec = MAX_SKEW_USEC;
        fake_aws_front_init(&f->front, &aws);
        f->max_in_flight = o->max_in_flight > 0 ? o->max_in_flight : IN_FLIGHT_MAX;
        return f;
}

FakeSqs *fake_sqs_free(FakeSqs *f) {
        if (!f)
                return NULL;
        LIST_FOREACH (q, &f->queues, SqsQueue, queues) {
                list_remove(&f->queues, &q->queues);
                sqs_queue_free(q);
        }
        fake_aws_front_done(&f->front);
        return mfree(f);
}

static SqsQueue *find_queue(const FakeSqs *f, const char *name) {
        LIST_FOREACH (q, &f->queues, SqsQueue, queues)
                if (streq(q->name, name))
                        return q;
        return NULL;
}

void fake_sqs_add_queue(FakeSqs *f, const FakeSqsQueue *o) {
        SqsQueue *q = sqs_queue_new(f->front.loop, o->name);

        assert(!find_queue(f, o->name));
        q->visibility_usec = o->visibility_usec > 0 ? o->visibility_usec : 30 * USEC_PER_SEC;
        q->retention_usec = o->retention_usec > 0 ? o->retention_usec : 4 * USEC_PER_DAY;
        q->wait_usec = o->wait_usec;
        q->on_visible = on_visible;
        list_append(&f->queues, &q->queues);
}

bool fake_sqs_has_queue(const FakeSqs *f, const char *queue) {
        return find_queue(f, queue);
}

const char *fake_sqs_send(FakeSqs *f, const char *queue, const char *body) {
        return sqs_queue_send(MUST(find_queue(f, queue)), body, 0)->id;
}

void fake_sqs_on_delete(FakeSqs *f, const char *queue, void (*deleted)(const char *id, void *userdata), void *userdata) {
        SqsQueue *q = MUST(find_queue(f, queue));

        q->on_delete = deleted;
        q->on_delete_userdata = userdata;
}

void fake_sqs_duplicate(FakeSqs *f, const char *queue, unsigned n) {
        MUST(find_queue(f, queue))->n_duplicates = n;
}

void fake_sqs_shuffle(FakeSqs *f, const char *queue, Random *random) {
        MUST(find_queue(f, queue))->random = random;
}

size_t fake_sqs_n_messages(FakeSqs *f, const char *queue) {
        SqsQueue *q = MUST(find_queue(f, queue));

        sqs_queue_run(q);
        return q->messages.size;
}

size_t fake_sqs_n_in_flight(FakeSqs *f, const char *queue) {
        SqsQueue *q = MUST(find_queue(f, queue));

        sqs_queue_run(q);
        return n_in_flight(q);
}

size_t fake_sqs_n_waiting(const FakeSqs *f, const char *queue) {
        return MUST(find_queue(f, queue))->polls.size;
}

FakeTroubles *fake_sqs_troubles(FakeSqs *f) {
        return f->front.troubles;
}

FakeAwsFront *fake_sqs_front(FakeSqs *f) {
        return &f->front;
}

void fake_sqs_throttle(FakeSqs *f, unsigned n) {
        fake_troubles_add(f->front.troubles, &(FakeTrouble) { .kind = FAKE_TROUBLE_FAIL,
                                                              .n = n,
                                                              .status = 400,
                                                              .code = "RequestThrottled",
                                                              .message = "Rate exceeded" });
}
