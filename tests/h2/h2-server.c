/* SPDX-License-Identifier: Apache-2.0 */
#include "h2-server.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "alloc-util.h"

/*
 *      socket --recv--> rbio --SSL_read--> nghttp2 --callbacks--> streams --> on_request
 *      socket <--send-- out <-- wbio <--SSL_write-- nghttp2 <--submit_*-- h2_stream_*(), h2_connection_*()
 *
 * TLS works on memory, so that the socket is ours to hold, to reset or to leave alone. connection_progress()
 * is the only place that moves bytes and that frees a connection; while it runs, the verbs only note what is
 * wanted.
 */

#define OUT_MAX (256u * 1024) /* no more is asked of nghttp2 while so much waits for the socket */
#define MAX_STREAMS_DEFAULT 250u
#define UPLOAD_WINDOW_DEFAULT 65535u

struct H2Connection {
        H2Server *server;
        ListNode connections;
        unsigned number;
        int fd;
        sd_event_source *io;
        SSL *ssl;
        BIO *rbio, *wbio; /* the SSL's */
        nghttp2_session *session;
        Timer *delay;
        List streams;
        StrBuf out;
        size_t out_at;
        int32_t last_stream_id;
        H2Close how;
        bool held, frozen, busy, closing, dead;
};

struct H2Server {
        Loop *loop;
        H2ServerOptions options;
        SSL_CTX *tls;
        nghttp2_session_callbacks *callbacks;
        int fd;
        uint16_t port;
        sd_event_source *io;
        List connections;
        unsigned n_freeze;
        h2_request_t on_request;
        void *userdata;
        H2ServerStats stats;
};

static void must(bool ok, const char *what) {
        if (ok)
                return;
        (void) fprintf(stderr, "h2-server: %s failed: %m\n", what);
        abort();
}

/* -- life ----------------------------------------------------------------------------------------------- */

static void stream_free(H2Stream *s) {
        list_remove(&s->connection->streams, &s->streams);
        free(s->method);
        free(s->path);
        strbuf_done(&s->body);
        strbuf_done(&s->out);
        free(s);
}

static void connection_free(H2Connection *c) {
        struct linger now = { .l_onoff = 1 };

        c->busy = true; /* nothing of this may come back to us */
        nghttp2_session_del(c->session);
        while (c->streams.first)
                stream_free(LIST_ENTRY(c->streams.first, H2Stream, streams));
        sd_event_source_disable_unref(c->io);
        timer_free(c->delay);
        SSL_free(c->ssl);
        if (c->how == H2_CLOSE_RST)
                (void) setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        (void) close(c->fd);
        strbuf_done(&c->out);
        list_remove(&c->server->connections, &c->connections);
        c->server->stats.open--;
        free(c);
}

/* -- bytes ---------------------------------------------------------------------------------------------- */

static void connection_receive(H2Connection *c) {
        char buffer[16384];
        ssize_t n;

        while ((n = recv(c->fd, buffer, sizeof(buffer), MSG_DONTWAIT)) > 0)
                must(BIO_write(c->rbio, buffer, (int) n) == n, "BIO_write");
        if (n == 0 || (n < 0 && errno != EAGAIN))
                c->dead = true;
}

static void connection_begin(H2Connection *c) {
        const H2ServerOptions *o = &c->server->options;
        const nghttp2_settings_entry settings[] = {
                { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, o->max_concurrent_streams },
                { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, o->upload_window },
        };

        must(nghttp2_session_server_new(&c->session, c->server->callbacks, c) == 0,
             "nghttp2_session_server_new");
        must(nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings, ELEMENTSOF(settings)) == 0,
             "nghttp2_submit_settings");
}

static void connection_take_in(H2Connection *c) {
        uint8_t buffer[16384];
        int n;

        if (!c->session) {
                n = SSL_do_handshake(c->ssl);
                if (n != 1) {
                        if (SSL_get_error(c->ssl, n) != SSL_ERROR_WANT_READ)
                                c->dead = true;
                        return;
                }
                connection_begin(c);
        }

        while ((n = SSL_read(c->ssl, buffer, sizeof(buffer))) > 0)
                if (nghttp2_session_mem_recv(c->session, buffer, (size_t) n) < 0)
                        c->dead = true;
        if (SSL_get_error(c->ssl, n) != SSL_ERROR_WANT_READ)
                c->dead = true;
}

static void connection_send(H2Connection *c) {
        char buffer[16384];
        ssize_t n;

        while ((n = BIO_read(c->wbio, buffer, sizeof(buffer))) > 0)
                strbuf_add_n(&c->out, buffer, (size_t) n);
        while (c->out_at < c->out.size) {
                n = send(c->fd, c->out.data + c->out_at, c->out.size - c->out_at,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
                if (n < 0) {
                        c->dead |= errno != EAGAIN;
                        return;
                }
                c->out_at += (size_t) n;
        }
        strbuf_truncate(&c->out, 0);
        c->out_at = 0;
}

/* nghttp2 would send a reset before the data that was given to it earlier. */
static bool connection_submit_resets(H2Connection *c) {
        bool any = false;

        LIST_FOREACH (s, &c->streams, H2Stream, streams)
                if (s->resets && s->out_at == s->out.size && s->filler == 0) {
                        s->resets = false;
                        any = true;
                        must(nghttp2_submit_rst_stream(c->session, NGHTTP2_FLAG_NONE, s->id,
                                                       s->reset_code) == 0,
                             "nghttp2_submit_rst_stream");
                }
        return any;
}

/* True: nothing is left to say. */
static bool connection_give_out(H2Connection *c) {
        const uint8_t *data;
        ssize_t n;

        if (c->held && c->session)
                return false;

        connection_send(c);
        while (c->session && !c->dead && c->out.size - c->out_at < OUT_MAX) {
                n = nghttp2_session_mem_send(c->session, &data);
                if (n <= 0 && connection_submit_resets(c))
                        continue;
                if (n <= 0)
                        break;
                must(SSL_write(c->ssl, data, (int) n) == n, "SSL_write");
                connection_send(c);
        }
        if (c->session && !nghttp2_session_want_read(c->session) && !nghttp2_session_want_write(c->session))
                c->closing = true;
        return c->out.size == 0;
}

static void connection_shut(H2Connection *c) {
        if (!c->dead && c->how == H2_CLOSE_NOTIFY && c->session) {
                (void) SSL_shutdown(c->ssl);
                connection_send(c);
        }
        connection_free(c);
}

static void connection_progress(H2Connection *c) {
        bool said;

        if (c->busy || c->frozen)
                return;

        c->busy = true;
        connection_receive(c);
        connection_take_in(c);
        said = connection_give_out(c);
        c->busy = false;
        ERR_clear_error();

        if (c->dead || (c->closing && (said || c->how == H2_CLOSE_RST)))
                connection_shut(c);
        else
                (void) sd_event_source_set_io_events(c->io,
                                                     EPOLLIN | (c->out.size > 0 ? (uint32_t) EPOLLOUT : 0));
}

static int on_connection_io(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        connection_progress(userdata);
        return 0;
}

static void on_delay_over(Timer *t, void *userdata) {
        H2Connection *c = userdata;

        c->held = false;
        connection_progress(c);
}

/* -- what nghttp2 calls --------------------------------------------------------------------------------- */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *userdata) {
        H2Connection *c = userdata;
        H2Stream *s;

        if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
                return 0;

        s = new0(H2Stream, 1);
        must(s, "malloc");
        s->connection = c;
        s->id = c->last_stream_id = frame->hd.stream_id;
        list_append(&c->streams, &s->streams);
        c->server->stats.most_streams = MAX(c->server->stats.most_streams, (unsigned) c->streams.size);
        nghttp2_session_set_stream_user_data(session, s->id, s);
        return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *userdata) {
        H2Stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
        char **field = NULL;

        if (s && streq((const char *) name, ":method"))
                field = &s->method;
        else if (s && streq((const char *) name, ":path"))
                field = &s->path;
        if (field && !*field)
                must((*field = memdup_str(value, value_size)), "malloc");
        return 0;
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                         size_t size, void *userdata) {
        H2Stream *s = nghttp2_session_get_stream_user_data(session, id);

        if (s)
                strbuf_add_n(&s->body, (const char *) data, size);
        return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *userdata) {
        H2Connection *c = userdata;
        H2ServerStats *stats = &c->server->stats;
        H2Stream *s;

        switch (frame->hd.type) {
        case NGHTTP2_RST_STREAM:
                stats->client_resets++;
                return 0;
        case NGHTTP2_PING:
                if (frame->hd.flags & NGHTTP2_FLAG_ACK)
                        stats->pongs++;
                return 0;
        case NGHTTP2_HEADERS:
        case NGHTTP2_DATA:
                break;
        default:
                return 0;
        }
        if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
                return 0;
        s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
        if (s) {
                s->number = ++stats->requests;
                c->server->on_request(s, c->server->userdata);
        }
        return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t error_code, void *userdata) {
        H2Stream *s = nghttp2_session_get_stream_user_data(session, id);

        if (s)
                stream_free(s);
        return 0;
}

static void submit_trailers(H2Stream *s) {
        static const uint8_t name[] = "x-checked", value[] = "yes";
        const nghttp2_nv trailer = { (uint8_t *) name, (uint8_t *) value, sizeof(name) - 1,
                                     sizeof(value) - 1, NGHTTP2_NV_FLAG_NONE };

        must(nghttp2_submit_trailer(s->connection->session, s->id, &trailer, 1) == 0,
             "nghttp2_submit_trailer");
}

static ssize_t on_read_body(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t size,
                            uint32_t *flags, nghttp2_data_source *source, void *userdata) {
        H2Stream *s = source->ptr;
        size_t n = MIN(size, s->out.size - s->out_at);

        if (n > 0) {
                memcpy(buffer, s->out.data + s->out_at, n);
                s->out_at += n;
        } else if (s->filler > 0) {
                n = (size_t) MIN((uint64_t) size, s->filler);
                memset(buffer, 'x', n);
                s->filler -= n;
        }

        if (s->out_at < s->out.size || s->filler > 0)
                return (ssize_t) n;
        strbuf_truncate(&s->out, 0);
        s->out_at = 0;
        if (s->ended && s->ends_apart && n > 0)
                return (ssize_t) n; /* asked again: then there is nothing but the end */
        if (s->ended) {
                *flags |= NGHTTP2_DATA_FLAG_EOF;
                if (s->with_trailers) {
                        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
                        submit_trailers(s);
                }
        } else if (n == 0)
                return NGHTTP2_ERR_DEFERRED;
        return (ssize_t) n;
}

/* -- one answer ----------------------------------------------------------------------------------------- */

static nghttp2_nv nv(const char *name, const char *value) {
        return (nghttp2_nv){ (uint8_t *) name, (uint8_t *) value, strlen(name), strlen(value),
                             NGHTTP2_NV_FLAG_NONE };
}

void h2_stream_begin(H2Stream *s, unsigned status, int64_t content_length, const char *extra_name,
                     const char *extra_value) {
        const nghttp2_data_provider body = { .source.ptr = s, .read_callback = on_read_body };
        char code[16], length[32];
        nghttp2_nv headers[4];
        size_t n = 0;

        assert(!s->begun);
        s->begun = true;
        (void) snprintf(code, sizeof(code), "%u", status);
        (void) snprintf(length, sizeof(length), "%" PRIi64, content_length);
        headers[n++] = nv(":status", code);
        headers[n++] = nv("content-type", "application/json");
        if (content_length >= 0)
                headers[n++] = nv("content-length", length);
        if (extra_name)
                headers[n++] = nv(extra_name, extra_value);
        must(nghttp2_submit_response(s->connection->session, s->id, headers, n, &body) == 0,
             "nghttp2_submit_response");
        connection_progress(s->connection);
}

static void stream_resume(H2Stream *s) {
        (void) nghttp2_session_resume_data(s->connection->session, s->id); /* an error: it was not waiting */
        connection_progress(s->connection);
}

void h2_stream_data(H2Stream *s, const char *text) {
        strbuf_add(&s->out, text);
        stream_resume(s);
}

void h2_stream_fill(H2Stream *s, uint64_t n_bytes) {
        s->filler += n_bytes;
        stream_resume(s);
}

void h2_stream_end(H2Stream *s, bool with_trailers) {
        s->ended = true;
        s->with_trailers = with_trailers;
        stream_resume(s);
}

void h2_stream_respond(H2Stream *s, unsigned status, const char *body) {
        strbuf_add(&s->out, body);
        s->ended = true;
        h2_stream_begin(s, status, (int64_t) strlen(body), NULL, NULL);
}

void h2_stream_inform(H2Stream *s, unsigned status) {
        char code[16];
        nghttp2_nv header;

        (void) snprintf(code, sizeof(code), "%u", status);
        header = nv(":status", code);
        must(nghttp2_submit_headers(s->connection->session, NGHTTP2_FLAG_NONE, s->id, NULL, &header, 1,
                                    NULL) == 0,
             "nghttp2_submit_headers");
        connection_progress(s->connection);
}

void h2_stream_reset(H2Stream *s, uint32_t error_code) {
        s->resets = true;
        s->reset_code = error_code;
        connection_progress(s->connection);
}

/* -- one connection ------------------------------------------------------------------------------------- */

unsigned h2_connection_number(const H2Connection *c) {
        return c->number;
}

void h2_connection_goaway(H2Connection *c, int32_t last_stream_id, uint32_t error_code) {
        must(nghttp2_submit_goaway(c->session, NGHTTP2_FLAG_NONE,
                                   last_stream_id < 0 ? c->last_stream_id : last_stream_id, error_code, NULL,
                                   0) == 0,
             "nghttp2_submit_goaway");
        connection_progress(c);
}

void h2_connection_close(H2Connection *c, H2Close how) {
        c->how = how;
        c->closing = true;
        connection_progress(c);
}

void h2_connection_freeze(H2Connection *c) {
        c->frozen = true;
        (void) sd_event_source_set_enabled(c->io, SD_EVENT_OFF);
}

void h2_connection_thaw(H2Connection *c) {
        c->frozen = false;
        (void) sd_event_source_set_enabled(c->io, SD_EVENT_ON);
        connection_progress(c);
}

void h2_connection_ping(H2Connection *c) {
        must(nghttp2_submit_ping(c->session, NGHTTP2_FLAG_NONE, NULL) == 0, "nghttp2_submit_ping");
        connection_progress(c);
}

void h2_connection_set_max_streams(H2Connection *c, uint32_t max) {
        const nghttp2_settings_entry setting = { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, max };

        must(nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, &setting, 1) == 0,
             "nghttp2_submit_settings");
        connection_progress(c);
}

static int on_accept(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        H2Server *server = userdata;
        H2Connection *c;
        int client, yes = 1;

        client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (client < 0)
                return 0; /* gone already */
        (void) setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));

        c = new0(H2Connection, 1);
        must(c, "malloc");
        c->server = server;
        c->fd = client;
        c->number = ++server->stats.accepted;
        server->stats.open++;
        list_append(&server->connections, &c->connections);
        must((c->ssl = SSL_new(server->tls)), "SSL_new");
        must((c->rbio = BIO_new(BIO_s_mem())) && (c->wbio = BIO_new(BIO_s_mem())), "BIO_new");
        SSL_set_bio(c->ssl, c->rbio, c->wbio);
        SSL_set_accept_state(c->ssl);
        must(sd_event_add_io(loop_sd_event(server->loop), &c->io, client, EPOLLIN, on_connection_io, c) >= 0,
             "sd_event_add_io");
        if (server->n_freeze > 0) {
                server->n_freeze--;
                h2_connection_freeze(c);
        }
        if (server->options.settings_delay_usec > 0) {
                c->held = true;
                must(timer_new(server->loop, "h2-server", on_delay_over, c, &c->delay) >= 0, "timer_new");
                timer_arm_in(c->delay, server->options.settings_delay_usec);
        }
        return 0;
}

/* -- the server ----------------------------------------------------------------------------------------- */

static int on_alpn(SSL *ssl, const unsigned char **ret, unsigned char *ret_size,
                   const unsigned char *offered, unsigned offered_size, void *userdata) {
        return nghttp2_select_next_protocol((unsigned char **) ret, ret_size, offered, offered_size) == 1
                       ? SSL_TLSEXT_ERR_OK
                       : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static SSL_CTX *tls_new(const H2ServerOptions *o) {
        SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
        BIO *cert = BIO_new_mem_buf(o->cert_pem, -1), *key = BIO_new_mem_buf(o->key_pem, -1);
        X509 *x = PEM_read_bio_X509(cert, NULL, NULL, NULL);
        EVP_PKEY *k = PEM_read_bio_PrivateKey(key, NULL, NULL, NULL);

        must(tls && x && k, "reading the certificate");
        must(SSL_CTX_use_certificate(tls, x) == 1 && SSL_CTX_use_PrivateKey(tls, k) == 1,
             "using the certificate");
        SSL_CTX_set_alpn_select_cb(tls, on_alpn, NULL);
        (void) SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_OFF);
        X509_free(x);
        EVP_PKEY_free(k);
        BIO_free(cert);
        BIO_free(key);
        return tls;
}

static nghttp2_session_callbacks *callbacks_new(void) {
        nghttp2_session_callbacks *c;

        must(nghttp2_session_callbacks_new(&c) == 0, "nghttp2_session_callbacks_new");
        nghttp2_session_callbacks_set_on_begin_headers_callback(c, on_begin_headers);
        nghttp2_session_callbacks_set_on_header_callback(c, on_header);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data_chunk);
        nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame);
        nghttp2_session_callbacks_set_on_stream_close_callback(c, on_stream_close);
        return c;
}

static void server_listen(H2Server *s) {
        struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof(in);

        s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        must(s->fd >= 0, "socket");
        must(bind(s->fd, (struct sockaddr *) &in, size) == 0, "bind");
        must(getsockname(s->fd, (struct sockaddr *) &in, &size) == 0, "getsockname");
        must(listen(s->fd, 64) == 0, "listen");
        s->port = ntohs(in.sin_port);
        must(sd_event_add_io(loop_sd_event(s->loop), &s->io, s->fd, EPOLLIN, on_accept, s) >= 0,
             "sd_event_add_io");
}

H2Server *h2_server_new(Loop *l, const H2ServerOptions *o, h2_request_t on_request, void *userdata) {
        H2Server *s = new0(H2Server, 1);

        must(s, "malloc");
        s->loop = l;
        s->options = *o;
        if (s->options.max_concurrent_streams == 0)
                s->options.max_concurrent_streams = MAX_STREAMS_DEFAULT;
        if (s->options.upload_window == 0)
                s->options.upload_window = UPLOAD_WINDOW_DEFAULT;
        s->on_request = on_request;
        s->userdata = userdata;
        s->tls = tls_new(o);
        s->options.cert_pem = s->options.key_pem = NULL; /* borrowed for now only */
        s->callbacks = callbacks_new();
        server_listen(s);
        return s;
}

H2Server *h2_server_free(H2Server *s) {
        if (!s)
                return NULL;
        while (s->connections.first)
                connection_free(LIST_ENTRY(s->connections.first, H2Connection, connections));
        sd_event_source_disable_unref(s->io);
        (void) close(s->fd);
        SSL_CTX_free(s->tls);
        nghttp2_session_callbacks_del(s->callbacks);
        return mfree(s);
}

uint16_t h2_server_port(const H2Server *s) {
        return s->port;
}

H2ServerStats h2_server_stats(const H2Server *s) {
        return s->stats;
}

H2Stream *h2_server_find(H2Server *s, unsigned number) {
        LIST_FOREACH (c, &s->connections, H2Connection, connections)
                LIST_FOREACH (stream, &c->streams, H2Stream, streams)
                        if (stream->number == number)
                                return stream;
        return NULL;
}

H2Connection *h2_server_connection(H2Server *s, unsigned number) {
        LIST_FOREACH (c, &s->connections, H2Connection, connections)
                if (c->number == number)
                        return c;
        return NULL;
}

void h2_server_set_max_streams(H2Server *s, uint32_t max) {
        s->options.max_concurrent_streams = max;
}

void h2_server_set_delay(H2Server *s, usec_t settings_delay_usec) {
        s->options.settings_delay_usec = settings_delay_usec;
}

void h2_server_freeze_next(H2Server *s, unsigned n) {
        s->n_freeze = n;
}
