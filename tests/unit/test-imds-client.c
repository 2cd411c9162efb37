/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmocka-test.h"
#include "http-inproc.h"
#include "imds-client.h"
#include "log.h"
#include "string-util.h"

/*
 * Plays stories on virtual time. A step asks one question. Its words are the answers to the requests that the
 * client sends for it, in their order:
 *
 *      200, 401, ...   an answer with this status; 200 of a GET has a body
 *      token[:TTL]     200 with a new token, which has the number of tokens so far
 *      lost            no answer
 *      route           there is no route to the endpoint
 *      refused         the endpoint refuses the connection
 *
 * The step says which requests these are: method, "4" or "6" for the endpoint, for a GET the token, and the path
 * if it is not "p".
 */

#define ENDPOINT "http://169.254.169.254"
#define OTHER_ENDPOINT "http://[fd00:ec2::254]"
#define T0 (UINT64_C(1800000000) * USEC_PER_SEC)
#define S USEC_PER_SEC
#define M USEC_PER_MINUTE

typedef struct Step {
        usec_t at_usec;       /* from the beginning of the story */
        const char *words;    /* answers */
        const char *sent;     /* requests */
        const char *outcome;  /* "answered", "absent", "failed: ERROR: part of the reason" */
        unsigned generation;  /* afterwards */
        const char *path;     /* NULL: "p" */
        usec_t delay_usec;    /* of each answer */
} Step;

typedef struct World {
        VirtualTime *time;
        Loop *loop;
        Log *log;
        HttpTransport *transport;
        Env env;
        ImdsClient *client;
        const char *words; /* that are left */
        char word[32];     /* of the request under way */
        unsigned n_tokens;
        const char *token; /* body of the next 200 of a PUT; NULL: "token-N" */
        const char *ttl;   /* its header TTL; NULL: none */
        StrBuf sent;
        unsigned n_answers;
        char outcome[256];
        usec_t answered_usec, date_usec;
        usec_t delay_usec;
        const char *next_path; /* asked from the callback */
} World;

static void take_word(World *w) {
        size_t n;

        w->words += strspn(w->words, " ");
        n = strcspn(w->words, " ");
        if (n == 0)
                fail_msg("a request too many: %s", strbuf_str(&w->sent));
        (void) snprintf(w->word, sizeof(w->word), "%.*s", (int) n, w->words);
        w->words += n;
}

static const char *request_token(const HttpRequest *r) {
        const char *token = http_header_find(r->headers, r->n_headers, "X-aws-ec2-metadata-token");

        return token ? strempty(startswith(token, "token-")) : "-";
}

static void on_request(const HttpRequest *r, const char *peer, HttpFault *ret_fault, void *userdata) {
        bool is_other = startswith(r->url, OTHER_ENDPOINT);
        const char *path = strstr(r->url, "/latest/");
        World *w = userdata;

        take_word(w);
        assert_non_null(path);
        path += strlen("/latest/");
        strbuf_addf(&w->sent, "%s%s%s", w->sent.size > 0 ? " " : "", r->method == HTTP_PUT ? "PUT" : "GET", is_other ? "6" : "4");
        if (r->method == HTTP_PUT) {
                assert_string_equal(path, "api/token");
                assert_string_equal(http_header_find(r->headers, r->n_headers, "X-aws-ec2-metadata-token-ttl-seconds"),
                                    "21600");
        } else
                strbuf_addf(&w->sent, ":%s%s%s", request_token(r), streq(path, "p") ? "" : ":", streq(path, "p") ? "" : path);
        ret_fault->reply_delay_usec = w->delay_usec;
        ret_fault->lose_request = streq(w->word, "lost");
        ret_fault->no_route = streq(w->word, "route");
        ret_fault->refuse = streq(w->word, "refused");
}

static void on_exchange(HttpExchange *x, void *userdata) {
        static const HttpHeader date = { "Date", "Fri, 15 Jan 2027 08:00:07 GMT" };
        _cleanup_free_ char *token = NULL;
        World *w = userdata;
        const char *ttl = startswith(w->word, "token");

        if (x->method == HTTP_PUT && ttl) {
                const HttpHeader header = { "X-aws-ec2-metadata-token-ttl-seconds", ttl[0] == ':' ? ttl + 1 : w->ttl };

                token = strf("token-%u", ++w->n_tokens);
                if (w->token) {
                        free(token);
                        token = strdup(w->token);
                }
                x->ops->reply(x, 200, &header, header.value ? 1 : 0, token, strlen(token));
        } else
                x->ops->reply(x, (unsigned) strtoul(w->word, NULL, 10), &date, 1, "body", 4);
}

static void on_answer(const ImdsAnswer *answer, void *userdata) {
        World *w = userdata;
        const char *path = TAKE_PTR(w->next_path);

        assert_false(imds_client_is_asked(w->client));
        w->n_answers++;
        w->answered_usec = answer->answered_usec;
        w->date_usec = answer->date_usec;
        assert_int_equal(answer->outcome == IMDS_FAILED, answer->why != NULL);
        assert_int_equal(answer->outcome == IMDS_FAILED, answer->error < 0);
        assert_int_equal(answer->outcome == IMDS_ANSWERED, answer->body && streq(answer->body, "body") && answer->size == 4);
        (void) snprintf(w->outcome, sizeof(w->outcome), answer->outcome == IMDS_FAILED ? "failed: %s: %s" : "%s",
                        answer->outcome == IMDS_ANSWERED ? "answered" : answer->outcome == IMDS_ABSENT ? "absent"
                                                                      : strerrorname_np(-answer->error),
                        strempty(answer->why));
        if (path)
                assert_return_code(imds_client_get(w->client, path, on_answer, w), 0);
}

static World *world_new(bool other, bool allow_v1) {
        World *w = new0(World, 1);

        assert_non_null(w);
        assert_return_code(virtual_time_new(T0, &w->time), 0);
        assert_return_code(loop_new_virtual(w->time, &w->loop), 0);
        assert_return_code(log_new(LOG_TARGET_NULL, LOG_LEVEL_INFO, "test", &w->log), 0);
        assert_return_code(http_inproc_new(w->loop, NULL, &(HttpInprocHooks){ .on_request = on_request, .userdata = w },
                                           &w->transport), 0);
        assert_return_code(http_inproc_route(w->transport, ENDPOINT, on_exchange, w), 0);
        assert_return_code(http_inproc_route(w->transport, OTHER_ENDPOINT, on_exchange, w), 0);
        w->env = (Env){ .loop = w->loop, .log = w->log, .transport = w->transport };
        assert_return_code(imds_client_new(&w->env, ENDPOINT, &w->client), 0);
        if (other)
                assert_return_code(imds_client_set_other_endpoint(w->client, OTHER_ENDPOINT), 0);
        if (allow_v1)
                imds_client_allow_v1(w->client);
        assert_false(imds_client_is_asked(w->client));
        return w;
}

static World *world_free(World *w) {
        imds_client_free(w->client);
        http_transport_free(w->transport);
        log_free(w->log);
        loop_free(w->loop);
        virtual_time_free(w->time);
        strbuf_done(&w->sent);
        free(w);
        return NULL;
}
DEFINE_FREEP(World, world_free);

static void ask(World *w, const char *path, const char *words) {
        strbuf_truncate(&w->sent, 0);
        w->words = words;
        w->n_answers = 0;
        assert_return_code(imds_client_get(w->client, path, on_answer, w), 0);
        assert_int_equal(w->n_answers, 0); /* never inside the call */
        assert_true(imds_client_is_asked(w->client));
}

static void run_until(World *w, usec_t until_usec) {
        while (virtual_time_step(w->time, until_usec) > 0)
                ;
}

static void await(World *w) {
        usec_t begin = loop_now(w->loop);

        while (w->n_answers == 0)
                assert_int_equal(virtual_time_step(w->time, begin + M), 1);
        assert_int_equal(w->n_answers, 1);
        assert_int_equal(w->answered_usec, loop_now(w->loop));
}

static void play_step(World *w, usec_t begin_usec, const Step *s) {
        print_message("    %.6f s: %s\n", (double) s->at_usec / USEC_PER_SEC, s->words);
        run_until(w, begin_usec + s->at_usec);
        assert_int_equal(loop_now(w->loop), begin_usec + s->at_usec);
        w->delay_usec = s->delay_usec;
        ask(w, s->path ? s->path : "p", s->words);
        await(w);
        assert_string_equal(strbuf_str(&w->sent), s->sent);
        assert_string_equal(w->words, "");
        if (!startswith(w->outcome, s->outcome))
                fail_msg("expected %s, seen %s", s->outcome, w->outcome);
        assert_int_equal(imds_client_token_generation(w->client), s->generation);
}

#define STORY(...) ((const Step[]){ __VA_ARGS__, { 0 } })

TEST_CASE(test_stories) {
        const struct {
                const char *what;
                bool other, allow_v1;
                const Step *steps;
        } rows[] = {
                { "a token is renewed at half its life", false, false,
                  STORY({ 0, "token:1000 200", "PUT4 GET4:1", "answered", 1 },
                        { 500 * S - 1, "200", "GET4:1", "answered", 1 },
                        { 500 * S, "token:1000 200", "PUT4 GET4:2", "answered", 2 },
                        { 1000 * S - 1, "200", "GET4:2", "answered", 2 },
                        { 1000 * S, "token 200", "PUT4 GET4:3", "answered", 3 }) },
                { "a renewal that fails is tried again after a minute, while the old token is good", false, false,
                  STORY({ 0, "token:1000 200", "PUT4 GET4:1", "answered", 1 },
                        { 500 * S, "503 200", "PUT4 GET4:1", "answered", 1 },
                        { 560 * S - 1, "200", "GET4:1", "answered", 1 },
                        { 560 * S, "lost 200", "PUT4 GET4:1", "answered", 1 },
                        { 622 * S - 1, "404", "GET4:1", "absent", 1 }, /* the lost answer took 2 s */
                        { 1000 * S - 1, "403 200", "PUT4 GET4:1", "answered", 1 },
                        { 1000 * S, "503", "PUT4", "failed: EREMOTEIO: no session token: HTTP 503", 1 },
                        { 1001 * S, "token 200", "PUT4 GET4:2", "answered", 2 }) },
                { "the old token ends while it is renewed", false, false,
                  STORY({ 0, "token:1000 200", "PUT4 GET4:1", "answered", 1 },
                        { 999 * S, "503", "PUT4", "failed: EREMOTEIO: no session token: HTTP 503", 1, NULL, S }) },
                { "a token lives from when it was asked for", false, false,
                  STORY({ 0, "token:1000 200", "PUT4 GET4:1", "answered", 1, NULL, S },
                        { 500 * S, "token 200", "PUT4 GET4:2", "answered", 2 }) },
                { "a token is refused once in a question", false, false,
                  STORY({ 0, "token 200", "PUT4 GET4:1", "answered", 1 },
                        { S, "401 token 200", "GET4:1 PUT4 GET4:2", "answered", 2 },
                        { 2 * S, "401 token 401", "GET4:2 PUT4 GET4:3", "failed: EREMOTEIO: HTTP 401 in spite of", 3 },
                        { 3 * S, "401 token 404", "GET4:3 PUT4 GET4:4", "absent", 4 },
                        { 4 * S, "401 503", "GET4:4 PUT4", "failed: EREMOTEIO: no session token: HTTP 503", 4 },
                        { 5 * S, "token 200", "PUT4 GET4:5", "answered", 5 }) },
                { "version 1 for ten minutes", false, true,
                  STORY({ 0, "404 200", "PUT4 GET4:-", "answered", 1 },
                        { 10 * M - 1, "200", "GET4:-", "answered", 1 },
                        { 10 * M, "403 404", "PUT4 GET4:-", "absent", 2 },
                        { 20 * M, "token:1000 200", "PUT4 GET4:1", "answered", 3 },
                        { 20 * M + 500 * S, "404 200", "PUT4 GET4:1", "answered", 3 },
                        { 20 * M + 1000 * S, "404 200", "PUT4 GET4:-", "answered", 4 }) },
                { "version 2 is required again", false, true,
                  STORY({ 0, "405 200", "PUT4 GET4:-", "answered", 1 },
                        { S, "401 token 200", "GET4:- PUT4 GET4:1", "answered", 2 },
                        { 2 * S, "200", "GET4:1", "answered", 2 },
                        { 3 * S, "401 404 200", "GET4:1 PUT4 GET4:-", "answered", 3 },
                        { 4 * S, "401 503", "GET4:- PUT4", "failed: EREMOTEIO", 3 },
                        { 5 * S, "token 200", "PUT4 GET4:2", "answered", 4 }) },
                { "each path has its answer", false, false,
                  STORY({ 0, "token 200", "PUT4 GET4:1", "answered", 1 },
                        { S, "200", "GET4:1:q", "answered", 1, "q" },
                        { 2 * S, "200", "GET4:1", "answered", 1 }) },
                { "no other endpoint", false, false,
                  STORY({ 0, "route", "PUT4", "failed: EHOSTUNREACH: no session token: ", 0 },
                        { S, "token 200", "PUT4 GET4:1", "answered", 1 },
                        { 2 * S, "route", "GET4:1", "failed: EHOSTUNREACH: no answer: ", 1 }) },
                { "the other endpoint, while it answers", true, false,
                  STORY({ 0, "route token 200", "PUT4 PUT6 GET6:1", "answered", 1 },
                        { S, "200", "GET6:1", "answered", 1 },
                        { 2 * S, "404", "GET6:1:q", "absent", 1, "q" },
                        { 3 * S, "500", "GET6:1:q", "failed: EREMOTEIO: HTTP 500", 1, "q" },
                        { 4 * S, "lost", "GET6:1:q", "failed: ETIMEDOUT: no answer: ", 1, "q" },
                        { 10 * S, "token 200", "PUT4 GET4:2:q", "answered", 2, "q" },
                        { 11 * S, "route token 200", "GET4:2:q PUT6 GET6:3:q", "answered", 3, "q" },
                        { 12 * S, "route token 200", "GET6:3 PUT4 GET4:4", "answered", 4 },
                        { 13 * S, "lost", "GET4:4", "failed: ETIMEDOUT: no answer: ", 4 },
                        { 20 * S, "200", "GET4:4", "answered", 4 }) },
                { "neither endpoint has a route", true, false,
                  STORY({ 0, "route route", "PUT4 PUT6", "failed: EHOSTUNREACH", 0 },
                        { S, "route refused", "PUT4 PUT6", "failed: ECONNREFUSED", 0 },
                        { 2 * S, "refused", "PUT4", "failed: ECONNREFUSED", 0 },
                        { 3 * S, "token route 503", "PUT4 GET4:1 PUT6", "failed: EREMOTEIO", 1 }) },
                { "the other endpoint proves itself by its own token", true, true,
                  STORY({ 0, "token 200", "PUT4 GET4:1", "answered", 1 },
                        { S, "route 503", "GET4:1 PUT6", "failed: EREMOTEIO: no session token: HTTP 503", 1 },
                        { 2 * S, "404 200", "PUT6 GET6:-", "answered", 2 },
                        { 3 * S, "route 503", "GET6:- PUT4", "failed: EREMOTEIO", 2 },
                        { 4 * S, "token 200", "PUT4 GET4:2", "answered", 3 }) },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_new(rows[i].other, rows[i].allow_v1);
                usec_t begin = loop_now(w->loop);

                print_message("  %s\n", rows[i].what);
                for (const Step *s = rows[i].steps; s->words; s++)
                        play_step(w, begin, s);
        }
}

/* The outcome of each answer to a PUT, with and without version 1, and to the GET after it. */
TEST_CASE(test_answers) {
        static const struct {
                const char *word;
                bool refused; /* a PUT: version 1 may be asked */
                const char *put, *get;
        } rows[] = {
                { "200", false, NULL, "answered" },
                { "400", false, "failed: EREMOTEIO: no session token: HTTP 400", "failed: EREMOTEIO: HTTP 400" },
                { "401", false, "failed: EREMOTEIO: no session token: HTTP 401", NULL },
                { "403", true, "failed: EREMOTEIO: no session token: the metadata service refuses (403)",
                  "failed: EREMOTEIO: HTTP 403: the metadata service is switched off" },
                { "404", true, "failed: EREMOTEIO: no session token: HTTP 404: this is not", "absent" },
                { "405", true, "failed: EREMOTEIO: no session token: HTTP 405: this is not", "failed: EREMOTEIO: HTTP 405" },
                { "429", false, "failed: EREMOTEIO: no session token: HTTP 429",
                  "failed: EREMOTEIO: HTTP 429: the metadata service is throttling" },
                { "500", false, "failed: EREMOTEIO: no session token: HTTP 500", "failed: EREMOTEIO: HTTP 500" },
                { "503", false, "failed: EREMOTEIO: no session token: HTTP 503",
                  "failed: EREMOTEIO: HTTP 503: the metadata service is throttling" },
                { "lost", true, "failed: ETIMEDOUT: the metadata service did not answer the request for a session token",
                  "failed: ETIMEDOUT: no answer: " },
                { "refused", false, "failed: ECONNREFUSED: no session token: ", "failed: ECONNREFUSED: no answer: " },
                { "route", false, "failed: EHOSTUNREACH: no session token: ", "failed: EHOSTUNREACH: no answer: " },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                for (unsigned allow = 0; allow < 2; allow++) {
                        _cleanup_(world_freep) World *w = world_new(false, allow);
                        _cleanup_free_ char *words = strf("%s 404", rows[i].word), *get = strf("token %s", rows[i].word);
                        bool without = allow && rows[i].refused;

                        print_message("  %s, version 1 %s\n", rows[i].word, allow ? "allowed" : "not allowed");
                        if (rows[i].put)
                                play_step(w, loop_now(w->loop),
                                          &(Step){ 0, without ? words : rows[i].word, without ? "PUT4 GET4:-" : "PUT4",
                                                   without ? "absent" : rows[i].put, without });
                        if (rows[i].get && !without)
                                play_step(w, loop_now(w->loop), &(Step){ 0, get, "PUT4 GET4:1", rows[i].get, 1 });
                        assert_int_equal(w->date_usec, rows[i].get && !without && rows[i].word[0] <= '9' ? T0 + 7 * S :
                                         without && rows[i].put ? T0 + 7 * S : 0);
                }
}

/* A TTL that the server may not grant counts as the one that was asked for. */
TEST_CASE(test_ttl) {
        static const struct {
                const char *ttl;
                usec_t half_usec;
        } rows[] = {
                { NULL, 10800 * S }, { "1", S / 2 },          { "2", S },          { "0", 10800 * S },
                { "x", 10800 * S },  { "21599", 21599 * S / 2 }, { "21600", 10800 * S }, { "21602", 10800 * S },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_new(false, false);
                usec_t begin = loop_now(w->loop);

                print_message("  %s\n", rows[i].ttl ? rows[i].ttl : "no header");
                w->ttl = rows[i].ttl;
                play_step(w, begin, &(Step){ 0, "token 200", "PUT4 GET4:1", "answered", 1 });
                play_step(w, begin, &(Step){ rows[i].half_usec - 1, "200", "GET4:1", "answered", 1 });
                play_step(w, begin, &(Step){ rows[i].half_usec, "token 200", "PUT4 GET4:2", "answered", 2 });
        }
}

TEST_CASE(test_token_text) {
        static const struct {
                const char *what, *token; /* token NULL: n letters */
                size_t n;
                bool is_valid;
        } rows[] = {
                { "one letter", "x", 0, true },        { "the first printable one", "!", 0, true },
                { "the last printable one", "~", 0, true }, { "nothing", "", 0, false },
                { "a blank", "a b", 0, false },        { "a line", "a\n", 0, false },
                { "DEL", "a\x7f", 0, false },          { "not ASCII", "\xc3\xa4", 0, false },
                { "the longest", NULL, 1024, true },   { "too long", NULL, 1025, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_new(false, false);
                char letters[2000] = "";

                print_message("  %s\n", rows[i].what);
                memset(letters, 'x', rows[i].n);
                w->token = rows[i].token ? rows[i].token : letters;
                ask(w, "p", "token 200");
                await(w);
                assert_string_equal(strbuf_str(&w->sent), rows[i].is_valid ? "PUT4 GET4:" : "PUT4");
                if (!rows[i].is_valid)
                        assert_string_equal(w->outcome, "failed: EREMOTEIO: no session token: what came is none");
        }
}

/* Another question drops the one under way, and `done` of that one never comes. */
TEST_CASE(test_dropped) {
        _cleanup_(world_freep) World *w = world_new(false, false);

        ask(w, "p", "token 200");
        ask(w, "q", "token 200");
        await(w);
        assert_string_equal(strbuf_str(&w->sent), "PUT4 GET4:1:q");
        run_until(w, T0 + M);
        assert_int_equal(w->n_answers, 1);
}

/* The callback asks the next question. */
TEST_CASE(test_next_question) {
        _cleanup_(world_freep) World *w = world_new(false, false);

        ask(w, "p", "token 200 200");
        w->next_path = "q";
        await(w);
        assert_true(imds_client_is_asked(w->client));
        w->n_answers = 0;
        await(w);
        assert_string_equal(strbuf_str(&w->sent), "PUT4 GET4:1 GET4:1:q");
        assert_string_equal(w->outcome, "answered");
        assert_false(imds_client_is_asked(w->client));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_stories),    cmocka_unit_test(test_answers),
                cmocka_unit_test(test_ttl),        cmocka_unit_test(test_token_text),
                cmocka_unit_test(test_dropped),    cmocka_unit_test(test_next_question),
        };

        return cmocka_run_group_tests_name("imds-client", tests, NULL, NULL);
}
