/* SPDX-License-Identifier: Apache-2.0 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "alloc-util.h"
#include "http-curl-internal.h"
#include "log.h"

/*
 * One call on an easy handle.
 *
 *      start --> in the multi handle --+-- libcurl is done --------+--> finished, in `ready` --> done
 *        |                             +-- deadline, silence ------+
 *        +-- the guard says no ------------------------------------+
 *
 * `sent` is set in the pre-request callback: the connection stands, and the next thing libcurl does is to
 * write the request. Before it, "the server has not seen it" is certain; after it, only if libcurl says that
 * it could not write.
 */

#define RESPONSE_HEADERS_MAX (32u * 1024)
#define RESPONSE_HEADERS_USUAL 500u
/* Body of an answer other than 2xx to a stream that named no limit. */
#define STREAM_ERROR_BYTES_MAX (64u * 1024)
#define PIECE_BUFFER_KEEP_MAX (32u * 1024)

/* Memory of each call in flight: lists and watches want fewer reads. What may come by HTTP/2 has room for a
 * whole frame: libcurl 7.88 writes past a smaller buffer when answers of several calls come mixed, even if
 * all have the same (4 kB: seen on real machines by tests/node, and by tests/h2 under valgrind). */
#define BUFFER_SMALL 2048L
#define BUFFER_LARGE 16384L

#define KEEPALIVE_IDLE_SEC 10L
#define KEEPALIVE_INTERVAL_SEC 5L
#define TCP_USER_TIMEOUT_URGENT_MSEC 6000u
#define TCP_USER_TIMEOUT_MSEC 15000u
#define MAX_IDLE_AGE_SEC 3600L

/* -- life ----------------------------------------------------------------------------------------------- */

/* libcurl counts how often a call has begun anew, gives up at five, and forgets that only with everything
 * else: a handle that has counted is not kept as it is. */
static bool call_leaves_its_handle(const CurlCall *c) {
        return c->completed && c->n_begun == 1 && (c->plain_url || (c->common && c->error == 0));
}

/* Takes the call out of libcurl. If it was under way, its connection goes too unless others use it: either
 * nobody answers there, and the next call shall not be sent into the same silence; or libcurl has noted that
 * the HTTP/2 stream is to be reset, but with nobody left to drive the connection will not say so. */
static void call_drop_handle(CurlCall *c) {
        if (!c->lane)
                return;

        if (c->sent && !c->completed)
                curl_easy_setopt(c->easy, CURLOPT_FORBID_REUSE, 1L);
        curl_multi_remove_handle(c->lane->multi, c->easy);
        if (!call_leaves_its_handle(c))
                curl_transport_return_handle(c->t, TAKE_PTR(c->easy));
        else if (!c->plain_url) /* else it is kept with the call */
                curl_transport_keep_ready(c->t, TAKE_PTR(c->easy), c, TAKE_PTR(c->headers));
        curl_lane_leave(TAKE_PTR(c->lane), c->https);
}

static void call_stop(CurlCall *c) {
        call_drop_handle(c);
        if (c->deadline)
                timer_disarm(c->deadline);
        if (c->in_ready) {
                list_remove(&c->t->ready, &c->ready);
                c->in_ready = false;
        }
}

void curl_call_free(CurlCall *c) {
        assert(!c->easy);

        timer_free(c->deadline);
        curl_slist_free_all(c->headers);
        curl_slist_free_all(c->connect_to);
        free(c->plain_url);
        curl_url_cleanup(c->plain_parts);
        free(c->body);
        strbuf_done(&c->response_headers);
        strbuf_done(&c->response_body);
        free(c);
}

void curl_call_destroy(CurlCall *c) {
        call_stop(c);
        list_remove(&c->t->calls, &c->calls);
        c->tls = http_tls_unref(c->tls);
        if (c->easy)
                curl_transport_keep_call(c->t, c);
        else
                curl_call_free(c);
}

void curl_call_cancel(HttpCall *call) {
        CurlCall *c = CONTAINER_OF(call, CurlCall, call);

        assert(c->owned && !c->freed);
        if (!c->in_callback) {
                curl_call_destroy(c);
                return;
        }
        call_stop(c);
        c->freed = true;
}

/* The first reason stands. */
static void call_set_error(CurlCall *c, int error, const char *text) {
        if (c->error != 0)
                return;
        c->error = error;
        c->error_text = text;
}

static void call_finish(CurlCall *c) {
        c->finished = true;
        c->finished_usec = loop_now(c->t->loop);
        call_drop_handle(c);
        timer_disarm(c->deadline);
        curl_transport_make_ready(c->t, c);
}

/* -- deadline and silence ----------------------------------------------------------------------------- */

/* How long it may say nothing; 0: as long as it likes. */
static usec_t call_silence(const CurlCall *c) {
        return c->heard || c->answer_usec == 0 ? c->stall_usec : c->answer_usec;
}

/* Bytes that come do not move the timer: it looks when it fires. */
static void call_arm_deadline(CurlCall *c) {
        usec_t at = c->deadline_usec;

        if (call_silence(c) > 0)
                at = MIN(at, usec_add(c->last_byte_usec, call_silence(c)));
        timer_arm(c->deadline, at);
}

/* What it may be silent for from here on may be less. */
static void call_note_heard(CurlCall *c) {
        if (c->heard)
                return;
        c->heard = true;
        if (c->answer_usec > 0)
                call_arm_deadline(c);
}

static void on_deadline(Timer *timer, void *userdata) {
        CurlCall *c = userdata;
        usec_t now = loop_now(c->t->loop);
        bool stalled = call_silence(c) > 0 && now >= usec_add(c->last_byte_usec, call_silence(c));

        if (now < c->deadline_usec && !stalled) {
                call_arm_deadline(c);
                return;
        }

        call_set_error(c, -ETIMEDOUT,
                       !c->sent   ? "No connection in time"
                       : !stalled ? "No answer in time"
                       : c->heard ? "The stream fell silent"
                                  : "No answer began in time");
        if (c->sent && c->https)
                curl_lane_retire(c->lane);
        call_finish(c);
        curl_transport_dispatch(c->t);
}

/* -- what libcurl calls ------------------------------------------------------------------------------- */

/* libcurl notes this time when the request has been handed to the connection, so that before it not even a
 * part of the request can have been of effect. */
static bool call_has_left(CurlCall *c) {
        curl_off_t usec = 0;

        return c->sent && curl_easy_getinfo(c->easy, CURLINFO_PRETRANSFER_TIME_T, &usec) == CURLE_OK &&
               usec > 0;
}

/* Comes again when libcurl starts anew because a connection that it had kept turned out to be dead. */
static int on_prerequest(void *userdata, char *remote, char *local, int remote_port, int local_port) {
        CurlCall *c = userdata;

        c->n_begun++;
        if (call_has_left(c)) {
                call_set_error(c, -ECONNRESET, "The connection died before the answer");
                return CURL_PREREQFUNC_ABORT;
        }
        if (c->guard.may_send && !c->guard.may_send(c->guard.userdata)) {
                c->sent = false;
                call_set_error(c, -ESTALE, "Not sent: the guard refused it");
                return CURL_PREREQFUNC_ABORT;
        }

        c->sent = true;
        c->started_usec = c->last_byte_usec = loop_now(c->t->loop);
        return CURL_PREREQFUNC_OK;
}

/* A peer that vanished without a word is noticed by unacknowledged bytes, keepalive probes included. */
static void lane_limit_silence(const CurlLane *lane, int fd) {
        unsigned msec =
                lane->lane == HTTP_LANE_URGENT ? TCP_USER_TIMEOUT_URGENT_MSEC : TCP_USER_TIMEOUT_MSEC;

        if (setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &msec, sizeof(msec)) < 0)
                log_debug_errno(lane->t->log, errno, "Failed to set TCP_USER_TIMEOUT, ignoring: %m");
}

static int on_new_socket(void *userdata, curl_socket_t fd, curlsocktype purpose) {
        CurlLane *lane = userdata;

        if (lane->lane != HTTP_LANE_METADATA) /* call_set_tcp() */
                lane_limit_silence(lane, fd);
        return curl_lane_add_connection(lane, fd) < 0 ? CURL_SOCKOPT_ERROR : CURL_SOCKOPT_OK;
}

static int on_close_socket(void *userdata, curl_socket_t fd) {
        return curl_lane_close_connection(userdata, fd);
}

static bool is_white(char ch) {
        return ch == ' ' || ch == '\t' || ch == '\r' || ch == '\n';
}

static bool response_takes_header(CurlCall *c, const char *line, size_t size) {
        const char *colon = memchr(line, ':', size), *value, *end = line + size;

        if (line[0] == '\r' || line[0] == '\n')
                c->headers_ended = true;
        if (!colon || colon == line || is_white(line[0]))
                return true; /* the empty line, or nothing we know */
        if (memchr(line, 0, size))
                return false;

        for (value = colon + 1; value < end && is_white(*value);)
                value++;
        while (end > value && is_white(end[-1]))
                end--;
        if (c->n_response_headers == 0)
                strbuf_make_room(&c->response_headers, RESPONSE_HEADERS_USUAL);
        strbuf_add_n(&c->response_headers, line, (size_t) (colon - line));
        strbuf_add_char(&c->response_headers, 0);
        strbuf_add_n(&c->response_headers, value, (size_t) (end - value));
        strbuf_add_char(&c->response_headers, 0);
        c->n_response_headers++;
        return true;
}

static size_t on_header(char *line, size_t one, size_t size, void *userdata) {
        CurlCall *c = userdata;

        c->last_byte_usec = loop_now(c->t->loop);
        call_note_heard(c);
        if (size >= 5 && memcmp(line, "HTTP/", 5) == 0) { /* after 100 Continue there comes another */
                strbuf_truncate(&c->response_headers, 0);
                c->n_response_headers = 0;
                c->headers_ended = false;
                return size;
        }
        if (c->response_headers.size + size > RESPONSE_HEADERS_MAX) {
                call_set_error(c, -EMSGSIZE, "The headers of the answer are larger than allowed");
                return 0;
        }
        if (!response_takes_header(c, line, size)) {
                call_set_error(c, -EPROTO, "A header of the answer is not text");
                return 0;
        }
        return size;
}

/* The body of this answer is for on_data. */
static bool call_is_stream(const CurlCall *c) {
        long status = (long) c->status;

        if (!c->on_data)
                return false;
        if (c->easy)
                curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
        return status / 100 == 2;
}

/* More memory would be asked for, or nothing more of it is wanted: libcurl gives up when we take less than
 * it gave. */
static size_t on_body(char *data, size_t one, size_t size, void *userdata) {
        CurlCall *c = userdata;

        c->last_byte_usec = loop_now(c->t->loop);
        c->lane->n_bytes += size;
        if (call_is_stream(c))
                curl_transport_make_ready(c->t, c);
        else if (size > c->max_body_bytes - c->response_body.size) {
                call_set_error(c, -EMSGSIZE, "The answer is larger than allowed");
                return 0;
        }

        strbuf_add_n(&c->response_body, data, size);
        if (c->response_body.failed) {
                call_set_error(c, -ENOMEM, "Out of memory");
                return 0;
        }
        return size;
}

/* -- setting up --------------------------------------------------------------------------------------- */

static void call_set_functions(CurlCall *c) {
        curl_easy_setopt(c->easy, CURLOPT_PREREQFUNCTION, on_prerequest);
        curl_easy_setopt(c->easy, CURLOPT_HEADERFUNCTION, on_header);
        curl_easy_setopt(c->easy, CURLOPT_WRITEFUNCTION, on_body);
        curl_easy_setopt(c->easy, CURLOPT_SOCKOPTFUNCTION, on_new_socket);
        curl_easy_setopt(c->easy, CURLOPT_CLOSESOCKETFUNCTION, on_close_socket);
}

/* Of a handle that comes from another call, too. */
static void call_set_userdata(CurlCall *c) {
        curl_easy_setopt(c->easy, CURLOPT_PRIVATE, c);
        curl_easy_setopt(c->easy, CURLOPT_ERRORBUFFER, c->curl_text);
        curl_easy_setopt(c->easy, CURLOPT_PREREQDATA, c);
        curl_easy_setopt(c->easy, CURLOPT_HEADERDATA, c);
        curl_easy_setopt(c->easy, CURLOPT_WRITEDATA, c);
}

static void call_set_lane(CurlCall *c) {
        if (c->handles_lane == c->lane)
                return;
        curl_easy_setopt(c->easy, CURLOPT_SOCKOPTDATA, c->lane);
        curl_easy_setopt(c->easy, CURLOPT_CLOSESOCKETDATA, c->lane);
        c->handles_lane = c->lane;
}

/* What is asked of the machine's own metadata fits one segment, and is answered within two seconds or not at
 * all; and the service may end each connection with its answer (EC2's does), so that each look would pay for
 * what it never has use of. */
static void call_set_tcp(CurlCall *c, HttpLane lane) {
        bool lasting = lane != HTTP_LANE_METADATA;

        curl_easy_setopt(c->easy, CURLOPT_TCP_NODELAY, lasting ? 1L : 0L);
        if (!lasting)
                return;
        curl_easy_setopt(c->easy, CURLOPT_TCP_KEEPALIVE, 1L);
        curl_easy_setopt(c->easy, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_IDLE_SEC);
        curl_easy_setopt(c->easy, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_INTERVAL_SEC);
}

static void call_set_transfer(CurlCall *c, const HttpRequest *q) {
        bool large = c->https || q->on_data || q->max_response_bytes > CURL_SMALL_RESPONSE_MAX;

        curl_easy_setopt(c->easy, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(c->easy, CURLOPT_QUICK_EXIT, 1L);
        curl_easy_setopt(c->easy, CURLOPT_PROTOCOLS_STR, "http,https");
        curl_easy_setopt(c->easy, CURLOPT_FOLLOWLOCATION, 0L);
        curl_easy_setopt(c->easy, CURLOPT_PATH_AS_IS, 1L);
        curl_easy_setopt(c->easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
        curl_easy_setopt(c->easy, CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_2TLS);
        curl_easy_setopt(c->easy, CURLOPT_BUFFERSIZE, large ? BUFFER_LARGE : BUFFER_SMALL);
        curl_easy_setopt(c->easy, CURLOPT_UPLOAD_BUFFERSIZE, BUFFER_LARGE);
        curl_easy_setopt(c->easy, CURLOPT_MAXAGE_CONN, MAX_IDLE_AGE_SEC);
        call_set_tcp(c, q->lane);
        if (c->t->user_agent)
                curl_easy_setopt(c->easy, CURLOPT_USERAGENT, c->t->user_agent);
        if (!q->use_proxy)
                curl_easy_setopt(c->easy, CURLOPT_NOPROXY, "*");
}

static int call_set_options(CurlCall *c, const HttpRequest *q) {
        int r;

        r = curl_call_set_headers(c, q);
        if (r >= 0)
                r = curl_request_is_plain(q) ? curl_call_set_plain_url(c, q) : curl_call_set_url(c, q);
        if (r < 0)
                return r;

        if (c->https)
                curl_call_set_tls(c);
        call_set_functions(c);
        curl_call_set_method(c, q);
        call_set_transfer(c, q);
        curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, c->headers);
        return 0;
}

static int call_set_up(CurlCall *c, const HttpRequest *q) {
        bool kept = !!c->easy, again;
        CurlLane *lane;
        int r;

        r = curl_lane_open(c->t, q, &lane);
        if (r < 0)
                return r;
        c->common = curl_request_is_common(q);
        if (c->common)
                c->easy = curl_transport_take_ready(c->t, q, &c->headers);
        again = !!c->easy;
        if (!again)
                c->easy = curl_transport_take_handle(c->t);
        if (!c->easy)
                return -ENOMEM;
        c->lane = lane;
        c->https = !!startswith(q->url, "https://");
        curl_lane_enter(lane, c->https);
        call_set_lane(c);
        if (kept)
                return 0;
        call_set_userdata(c);
        if (again) {
                curl_call_set_body(c, q);
                return curl_call_set_url(c, q);
        }

        return call_set_options(c, q);
}

static int call_begin(CurlCall *c, const HttpRequest *q) {
        int r = 0;

        if (!c->deadline)
                r = timer_new(c->t->loop, "http-curl-deadline", on_deadline, c, &c->deadline);
        if (r < 0)
                return r;
        if (c->has_body) {
                c->body = memdup_str(q->body, q->body_size);
                if (!c->body)
                        return -ENOMEM;
        }
        r = call_set_up(c, q);
        if (r < 0)
                return r;

        if (c->guard.may_send && !c->guard.may_send(c->guard.userdata)) {
                call_set_error(c, -ESTALE, "Not sent: the guard refused it");
                call_finish(c);
                return 0;
        }
        if (curl_multi_add_handle(c->lane->multi, c->easy) != CURLM_OK)
                return -ENOMEM;
        call_arm_deadline(c);
        return 0;
}

static void buffer_use_again(StrBuf *b) {
        if (b->failed || b->allocated > PIECE_BUFFER_KEEP_MAX)
                strbuf_done(b);
        else
                strbuf_truncate(b, 0);
}

/* As new, or one that asked this before: all of that but its question is as new. */
static CurlCall *call_new(CurlTransport *t, const HttpRequest *q) {
        CurlCall *c = curl_request_is_plain(q) ? curl_transport_take_kept(t, q) : NULL;

        if (!c)
                return new0(CurlCall, 1);
        buffer_use_again(&c->response_headers);
        buffer_use_again(&c->response_body);
        *c = (CurlCall){ .easy = c->easy,
                         .handles_lane = c->handles_lane,
                         .plain_url = c->plain_url,
                         .plain_parts = c->plain_parts,
                         .headers = c->headers,
                         .deadline = c->deadline,
                         .response_headers = c->response_headers,
                         .response_body = c->response_body };
        return c;
}

int curl_call_start(HttpTransport *transport, const HttpRequest *q, http_done_t done, void *userdata,
                    HttpCall **ret) {
        CurlTransport *t = CONTAINER_OF(transport, CurlTransport, transport);
        usec_t now = loop_now(t->loop);
        CurlCall *c;
        int r;

        assert(!t->dead);
        c = call_new(t, q);
        if (!c)
                return -ENOMEM;

        c->call.transport = transport;
        c->t = t;
        list_append(&t->calls, &c->calls);
        c->owned = !!ret;
        c->guard = q->guard;
        c->tls = http_tls_ref(q->tls);
        c->method = q->method;
        c->has_body = curl_request_has_body(q);
        c->done = done;
        c->on_data = q->on_data;
        c->on_headers = q->on_headers;
        c->userdata = userdata;
        c->deadline_usec = usec_add(now, q->timeout_usec);
        c->stall_usec = q->stall_usec;
        c->answer_usec = q->answer_usec;
        c->last_byte_usec = c->started_usec = now;
        c->max_body_bytes = q->max_response_bytes > 0 ? q->max_response_bytes : STREAM_ERROR_BYTES_MAX;

        r = call_begin(c, q);
        if (r < 0) {
                curl_call_destroy(c);
                return r;
        }
        if (ret)
                *ret = &c->call;
        return 0;
}

/* -- the end ------------------------------------------------------------------------------------------ */

static int errno_of_connect(long os_error) {
        switch (os_error) {
        case ECONNREFUSED:
        case ECONNRESET:
        case ETIMEDOUT:
                return (int) -os_error;
        default: /* ENETUNREACH, EADDRNOTAVAIL, EACCES of a packet filter, ... */
                return -EHOSTUNREACH;
        }
}

/* A handshake fails because the peer went away, or because it speaks something else; only the text tells. */
static int errno_of_handshake(const char *text) {
        return strstr(text, "SSL routines") && !strstr(text, "unexpected eof") ? -EPROTO : -ECONNRESET;
}

static int errno_of_result(CurlCall *c, CURLcode result) {
        long os_error = 0;

        switch ((int) result) {
        case CURLE_OK:
                return 0;
        case CURLE_OPERATION_TIMEDOUT:
                return -ETIMEDOUT;
        case CURLE_COULDNT_CONNECT:
                curl_easy_getinfo(c->easy, CURLINFO_OS_ERRNO, &os_error);
                return errno_of_connect(os_error);
        case CURLE_COULDNT_RESOLVE_HOST:
        case CURLE_COULDNT_RESOLVE_PROXY:
                return -EHOSTUNREACH;
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_SSL_CERTPROBLEM:
        case CURLE_SSL_CACERT_BADFILE:
        case CURLE_SSL_ISSUER_ERROR:
        case CURLE_SSL_INVALIDCERTSTATUS:
        case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
        case CURLE_SSL_CLIENTCERT:
                return -EKEYREJECTED;
        case CURLE_SSL_CONNECT_ERROR:
                return errno_of_handshake(c->curl_text);
        case CURLE_WEIRD_SERVER_REPLY:
        case CURLE_UNSUPPORTED_PROTOCOL: /* HTTP/0.9 */
        case CURLE_BAD_CONTENT_ENCODING:
        case CURLE_URL_MALFORMAT:
                return -EPROTO;
        case CURLE_OUT_OF_MEMORY:
                return -ENOMEM;
        default:
                return -ECONNRESET;
        }
}

static unsigned http_version_of(CURL *easy) {
        long version = CURL_HTTP_VERSION_NONE;

        curl_easy_getinfo(easy, CURLINFO_HTTP_VERSION, &version);
        switch (version) {
        case CURL_HTTP_VERSION_1_0:
                return 10;
        case CURL_HTTP_VERSION_1_1:
                return 11;
        case CURL_HTTP_VERSION_2_0:
                return 20;
        case CURL_HTTP_VERSION_3:
                return 30;
        default:
                return 0;
        }
}

void curl_call_complete(CurlCall *c, CURLcode result) {
        long status = 0;
        int error;

        c->completed = true;
        c->sent = call_has_left(c);
        curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
        c->status = (unsigned) status;
        c->http_version = http_version_of(c->easy);
        error = errno_of_result(c, result);
        if (error < 0) /* unless a callback of ours has said why */
                call_set_error(c, error, c->curl_text[0] != 0 ? c->curl_text : curl_easy_strerror(result));
        else if (!c->headers_ended)
                call_set_error(c, -ECONNRESET, "The connection died in the headers of the answer");
        call_finish(c);
}

static int call_split_headers(CurlCall *c, HttpHeader **ret) {
        HttpHeader *headers;
        const char *p = c->response_headers.data;

        *ret = NULL;
        if (c->response_headers.failed)
                return -ENOMEM;
        if (c->n_response_headers == 0)
                return 0;
        headers = new0(HttpHeader, c->n_response_headers);
        if (!headers)
                return -ENOMEM;

        for (size_t i = 0; i < c->n_response_headers; i++) {
                headers[i].name = p;
                headers[i].value = p + strlen(p) + 1;
                p = headers[i].value + strlen(headers[i].value) + 1;
        }
        *ret = headers;
        return 0;
}

static void call_tell_done(CurlCall *c) {
        _cleanup_free_ HttpHeader *headers = NULL;
        HttpResponse response = {
                .error_text = "",
                .body = "",
                .started_usec = c->started_usec,
                .finished_usec = c->finished_usec,
        };

        if (c->error == 0 && call_split_headers(c, &headers) < 0)
                call_set_error(c, -ENOMEM, "Out of memory");
        if (c->error < 0) {
                response.error = c->error;
                response.error_text = c->error_text;
                response.maybe_sent = c->sent;
                log_debug_errno(c->t->log, c->error, "HTTP call failed: %s: %m", c->error_text);
        } else {
                response.status = c->status;
                response.http_version = c->http_version;
                response.headers = headers;
                response.n_headers = c->n_response_headers;
                response.body = strbuf_str(&c->response_body);
                response.body_size = c->response_body.size;
        }
        c->done(&response, c->userdata);
}

static int call_tell_headers(CurlCall *c) {
        _cleanup_free_ HttpHeader *headers = NULL;
        int r;

        if (!c->on_headers)
                return 0;
        r = call_split_headers(c, &headers);
        if (r < 0)
                return r;
        c->on_headers(headers, c->n_response_headers, c->userdata);
        c->on_headers = NULL;
        return 0;
}

static void call_tell_data(CurlCall *c) {
        StrBuf piece = c->response_body;
        int r;

        c->response_body = (StrBuf){ 0 };
        r = call_tell_headers(c);
        if (r >= 0)
                r = c->on_data(piece.data, piece.size, c->userdata);
        if (piece.allocated <= PIECE_BUFFER_KEEP_MAX && !c->freed) {
                strbuf_truncate(&piece, 0);
                c->response_body = piece;
        } else
                strbuf_done(&piece);

        if (r < 0 && !c->freed) {
                c->error = 0; /* whatever else was found: this is what the owner expects to read */
                call_set_error(c, r, "The receiver of the stream ended it");
                c->finished = true;
                c->finished_usec = loop_now(c->t->loop);
        }
}

void curl_call_deliver(CurlCall *c) {
        c->in_callback = true;
        if (c->response_body.size > 0 && call_is_stream(c))
                call_tell_data(c);
        if (c->finished && !c->freed) {
                call_stop(c);
                call_tell_done(c);
        }
        c->in_callback = false;

        if (c->freed || (c->finished && !c->owned))
                curl_call_destroy(c);
}
