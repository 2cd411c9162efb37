/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What emptying an SQS queue cannot go below: messages are received ten at a time and deleted unread, by so many processes at
 * once, each on its own connection, until a poll that does not wait brings none. libcurl signs (AWS_ACCESS_KEY_ID,
 * AWS_SECRET_ACCESS_KEY).
 *
 *      queue-limit QUEUE_URL REGION PROCESSES
 *
 * Prints how many messages were deleted.
 */

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BATCH 10
#define ANSWER_MAX_BYTES (1u << 20)
#define HANDLE "\"ReceiptHandle\":\""

typedef struct Answer {
        char bytes[ANSWER_MAX_BYTES];
        size_t size;
} Answer;

typedef struct Client {
        CURL *easy;
        struct curl_slist *receive, *delete;
        const char *queue;
        Answer answer;
        char body[1u << 16];
} Client;

static size_t take(char *bytes, size_t size, size_t n, void *userdata) {
        Answer *a = userdata;

        if (size * n >= sizeof a->bytes - a->size)
                return 0;
        memcpy(a->bytes + a->size, bytes, size * n);
        a->size += size * n;
        a->bytes[a->size] = 0;
        return size * n;
}

static struct curl_slist *headers(const char *target) {
        struct curl_slist *list = curl_slist_append(NULL, "Content-Type: application/x-amz-json-1.0");

        return curl_slist_append(list, target);
}

static void client_open(Client *c, const char *queue, const char *region) {
        static char provider[128], user[256];
        const char *id = getenv("AWS_ACCESS_KEY_ID"), *key = getenv("AWS_SECRET_ACCESS_KEY");
        const char *path = strstr(queue, "://");
        static char endpoint[1024];

        path = path ? strchr(path + 3, '/') : NULL;
        if (!path || !id || !key || curl_global_init(CURL_GLOBAL_NOTHING) != CURLE_OK || !(c->easy = curl_easy_init()))
                exit(2);
        (void) snprintf(endpoint, sizeof endpoint, "%.*s/", (int) (path - queue), queue);
        (void) snprintf(provider, sizeof provider, "aws:amz:%s:sqs", region);
        (void) snprintf(user, sizeof user, "%s:%s", id, key);
        c->queue = queue;
        c->receive = headers("X-Amz-Target: AmazonSQS.ReceiveMessage");
        c->delete = headers("X-Amz-Target: AmazonSQS.DeleteMessageBatch");
        curl_easy_setopt(c->easy, CURLOPT_URL, endpoint);
        curl_easy_setopt(c->easy, CURLOPT_AWS_SIGV4, provider);
        curl_easy_setopt(c->easy, CURLOPT_USERPWD, user);
        curl_easy_setopt(c->easy, CURLOPT_WRITEFUNCTION, take);
        curl_easy_setopt(c->easy, CURLOPT_WRITEDATA, &c->answer);
        curl_easy_setopt(c->easy, CURLOPT_NOPROXY, "*");
        curl_easy_setopt(c->easy, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(c->easy, CURLOPT_POSTFIELDS, c->body);
}

static void client_call(Client *c, struct curl_slist *how) {
        long status = 0;
        CURLcode r;

        c->answer.size = 0;
        c->answer.bytes[0] = 0;
        curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, how);
        curl_easy_setopt(c->easy, CURLOPT_POSTFIELDSIZE, (long) strlen(c->body));
        r = curl_easy_perform(c->easy);
        curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
        if (r != CURLE_OK || status != 200) {
                (void) fprintf(stderr, "queue-limit: %s, status %ld: %s\n", curl_easy_strerror(r), status, c->answer.bytes);
                exit(1);
        }
}

/* How many messages there were; *c->body asks for their deletion. */
static unsigned client_receive(Client *c) {
        const char *at = c->answer.bytes;
        unsigned n = 0;
        size_t used;

        (void) snprintf(c->body, sizeof c->body,
                        "{\"QueueUrl\":\"%s\",\"MaxNumberOfMessages\":%d,\"VisibilityTimeout\":60,\"WaitTimeSeconds\":0}",
                        c->queue, BATCH);
        client_call(c, c->receive);
        used = (size_t) snprintf(c->body, sizeof c->body, "{\"QueueUrl\":\"%s\",\"Entries\":[", c->queue);
        for (; (at = strstr(at, HANDLE)) && n < BATCH; n++) {
                int length = (int) strcspn(at += strlen(HANDLE), "\"");

                used += (size_t) snprintf(c->body + used, sizeof c->body - used, "%s{\"Id\":\"%u\",\"ReceiptHandle\":\"%.*s\"}",
                                          n > 0 ? "," : "", n, length, at);
                if (used + 8 >= sizeof c->body)
                        exit(1);
        }
        (void) snprintf(c->body + used, sizeof c->body - used, "]}");
        return n;
}

static unsigned drain(const char *queue, const char *region) {
        static Client c;
        unsigned n, all = 0;

        client_open(&c, queue, region);
        while ((n = client_receive(&c)) > 0) {
                client_call(&c, c.delete);
                if (strstr(c.answer.bytes, "\"Failed\":[{"))
                        exit(1);
                all += n;
        }
        return all;
}

int main(int argc, char **argv) {
        unsigned all = 0, n, processes = argc == 4 ? (unsigned) atoi(argv[3]) : 0;
        int status, ends[2];

        if (processes < 1 || processes > 16 || pipe(ends) < 0) {
                (void) fputs("Usage: queue-limit QUEUE_URL REGION PROCESSES\n", stderr);
                return 2;
        }
        for (unsigned i = 0; i < processes; i++) {
                pid_t pid = fork();

                if (pid < 0)
                        return 1;
                if (pid == 0) {
                        n = drain(argv[1], argv[2]);
                        _exit(write(ends[1], &n, sizeof n) == sizeof n ? 0 : 1);
                }
        }
        for (unsigned i = 0; i < processes; i++)
                if (wait(&status) < 0 || status != 0 || read(ends[0], &n, sizeof n) != sizeof n)
                        return 1;
                else
                        all += n;
        (void) printf("%u\n", all);
        return 0;
}
