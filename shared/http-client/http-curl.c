/* SPDX-License-Identifier: Apache-2.0 */
#include "http-curl.h"

#include <poll.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc-util.h"
#include "http-curl-internal.h"
#include "log.h"

/*
 * libcurl's multi interface in sd-event. One multi handle per lane, so that neither a flood of evictions nor
 * a stalled watch can hold up a lease; within a lane, HTTP/2 puts all calls to one server on few
 * connections. Who asks every second has a lane without other connections, because libcurl looks, once a
 * second, at each idle one of the lane in which a call begins.
 *
 * No callback of ours runs inside libcurl: it forbids adding and removing handles there, and callers do just
 * that. What libcurl brings is noted in the call, the call put into `ready`, and dispatched when libcurl has
 * returned. The one exception is a guard, whose worth is that nothing comes between it and the request; it
 * may not touch the transport.
 *
 * Traps of libcurl up to 7.88 (Debian 12) that are dealt with here and in http-curl-call.c, but for one:
 *
 * - A request on a kept connection that dies is sent again, silently: refused in the pre-request callback,
 *   unless the first try has certainly not left.
 * - An answer that is cut off in its headers counts as whole: we look for their end.
 * - A call given up leaves its HTTP/2 connection in the cache, silent or with the stream open: FORBID_REUSE.
 *   It is passed over while other calls use the connection, so that under steady load a dead one would take
 *   every new call: after a call without an answer the lane gets a new multi handle (curl_lane_retire()).
 * - An idle HTTP/2 connection that the server has closed by FIN is taken for alive, and the next request is
 *   lost there: connection_hang_up_dead().
 * - The end of an HTTP/2 answer is not noticed if it comes with the last of its bytes, without a
 *   Content-Length, and the read was another call's: until something else comes on the connection, or the
 *   deadline. Not dealt with (reading again does not help, and curl_easy_upkeep() sends no PING of a multi
 *   handle), for kube-apiserver says the length of what is small, and ends the rest by an empty frame, which
 *   is noticed (tests/h2/test-h2-buffers.c). A proxy before it may not.
 * - CAINFO_BLOB does not displace the built-in CAPATH, so that every public CA would be trusted beside ours.
 * - With both CAINFO and CAPATH built in, the system's bundle is parsed anew for each connection.
 * - CONNECTTIMEOUT runs while a call waits for a connection slot: our own deadline is used instead.
 * - Proxies of the environment are used unless told otherwise; POST asks "Expect: 100-continue" and invents
 * a Content-Type.
 */

#define MAX_CONNECTIONS_BULK 4
#define MAX_CONNECTIONS_URGENT 2
#define MAX_CONCURRENT_STREAMS 100 /* what kube-apiserver grants (250 before CVE-2023-44487) */
#define MAX_IDLE_CONNECTIONS 32
#define REST_BURST 10u
/* A server that cannot get rid of what it has to tell ends a watch that keeps it waiting. */
#define REST_BYTES_MAX (128u * 1024)

/* A socket that libcurl waits at, or did. One of a connection lives as long as that, and stays watched while
 * libcurl has no need of it: a poll of every second would only add it and take it away again. */
typedef struct CurlSocket {
        ListNode sockets;
        CurlLane *lane;
        int fd;
        ino_t inode; /* a number of a file that is ours no more must not be acted upon */
        bool is_connection;
        bool in_use;      /* libcurl waits for something there, or will */
        bool rests;       /* it is not read for a moment, whatever comes */
        uint32_t events;  /* to be waited for */
        uint32_t watched; /* of them, what `source` brings; 0: none, and the source may be NULL */
        sd_event_source *source;
} CurlSocket;

/* -- dispatch ----------------------------------------------------------------------------------------- */

static void transport_destroy(CurlTransport *t);
static void transport_sweep(CurlTransport *t);

void curl_transport_make_ready(CurlTransport *t, CurlCall *c) {
        if (c->in_ready)
                return;

        c->in_ready = true;
        list_append(&t->ready, &c->ready);
        if (!t->dispatching)
                timer_arm_in(t->ready_timer, 0);
}

/* What becomes ready meanwhile waits for the next iteration: a caller who starts anew on each failure must
 * not keep us here for ever. */
void curl_transport_dispatch(CurlTransport *t) {
        assert(!t->dispatching);

        t->dispatching = true;
        for (size_t n = t->ready.size; n > 0 && t->ready.first; n--) {
                CurlCall *c = LIST_ENTRY(t->ready.first, CurlCall, ready);

                list_remove(&t->ready, &c->ready);
                c->in_ready = false;
                curl_call_deliver(c);
        }
        t->dispatching = false;

        if (t->dead) {
                transport_destroy(t);
                return;
        }
        if (t->ready.first)
                timer_arm_in(t->ready_timer, 0);
        else
                timer_disarm(t->ready_timer);
        transport_sweep(t);
}

static void on_ready_timer(Timer *timer, void *userdata) {
        curl_transport_dispatch(userdata);
}

/* -- sockets ------------------------------------------------------------------------------------------ */

static int on_io(sd_event_source *source, int fd, uint32_t events, void *userdata);

static CurlSocket *socket_new(CurlLane *lane, int fd) {
        CurlSocket *s;

        s = new0(CurlSocket, 1);
        if (!s)
                return NULL;
        s->lane = lane;
        s->fd = fd;
        s->in_use = true;
        list_append(&lane->sockets, &s->sockets);
        return s;
}

static void socket_free(CurlSocket *s) {
        list_remove(&s->lane->sockets, &s->sockets);
        sd_event_source_disable_unref(s->source);
        free(s);
}

static CurlSocket *lane_find_socket(CurlLane *lane, int fd) {
        LIST_FOREACH (s, &lane->sockets, CurlSocket, sockets)
                if (s->fd == fd)
                        return s;
        return NULL;
}

static bool socket_is_open(const CurlSocket *s) {
        struct stat st;

        return fstat(s->fd, &st) >= 0 && st.st_ino == s->inode;
}

static int socket_set_source(CurlSocket *s, uint32_t events) {
        int r = 0;

        if (s->watched == events)
                return 0;
        if (events == 0)
                r = sd_event_source_set_enabled(s->source, SD_EVENT_OFF);
        else if (s->source) {
                r = sd_event_source_set_io_events(s->source, events);
                if (r >= 0 && s->watched == 0)
                        r = sd_event_source_set_enabled(s->source, SD_EVENT_ON);
        } else {
                r = sd_event_add_io(loop_sd_event(s->lane->t->loop), &s->source, s->fd, events, on_io, s);
                if (r >= 0)
                        (void) sd_event_source_set_description(s->source, "http-curl");
        }
        if (r >= 0)
                s->watched = events;
        return r;
}

static int socket_watch(CurlSocket *s, uint32_t events) {
        int r = socket_set_source(s, s->rests ? events & ~(uint32_t) EPOLLIN : events);

        if (r >= 0)
                s->events = events;
        return r;
}

/* libcurl closes what never was connected without a word, and may think that we still watch that number. */
int curl_lane_add_connection(CurlLane *lane, int fd) {
        CurlSocket *s, *before = lane_find_socket(lane, fd);
        uint32_t events = before ? before->events : 0;
        struct stat st;

        if (before)
                socket_free(before);
        if (fstat(fd, &st) < 0)
                return -errno;
        s = socket_new(lane, fd);
        if (!s)
                return -ENOMEM;
        s->inode = st.st_ino;
        s->is_connection = true;
        return events ? socket_watch(s, events) : 0;
}

int curl_lane_close_connection(CurlLane *lane, int fd) {
        CurlSocket *s = lane_find_socket(lane, fd);

        if (s)
                socket_free(s);
        return close(fd);
}

/* Ends our direction, too, of an idle connection that the peer has ended: that is a sign which libcurl heeds
 * before it uses it again. */
static bool connection_hang_up_dead(CurlSocket *s) {
        struct pollfd p = { .fd = s->fd, .events = POLLRDHUP };

        if (poll(&p, 1, 0) <= 0 || !(p.revents & (POLLRDHUP | POLLERR | POLLHUP)))
                return false;
        if (socket_is_open(s))
                (void) shutdown(s->fd, SHUT_RDWR);
        return true;
}

static void lane_hang_up_dead(CurlLane *lane) {
        LIST_FOREACH (s, &lane->sockets, CurlSocket, sockets)
                if (s->is_connection && !s->in_use)
                        (void) connection_hang_up_dead(s);
}

/* Its end, or what a server says unasked (a PING, settings): libcurl reads that when it has use for it. */
static void socket_heard_idle(CurlSocket *s) {
        bool dead = s->is_connection && connection_hang_up_dead(s);
        int r;

        r = socket_watch(s, dead || s->events == EPOLLRDHUP ? 0 : EPOLLRDHUP);
        if (r < 0)
                log_debug_errno(s->lane->t->log, r, "Failed to ignore a connection, ignoring: %m");
}

/* -- rest ---------------------------------------------------------------------------------------------- */

/* What cannot be watched again for want of memory must not fall silent for that. */
static void lane_end_rest(CurlLane *lane) {
        LIST_FOREACH (s, &lane->sockets, CurlSocket, sockets) {
                if (!s->rests)
                        continue;
                s->rests = false;
                if (socket_watch(s, s->events) < 0) {
                        s->rests = true;
                        timer_arm_in(lane->rested, lane->t->rest_usec);
                }
        }
}

static void on_rested(Timer *timer, void *userdata) {
        CurlLane *lane = userdata;

        (void) token_bucket_take(&lane->reads, loop_now(lane->t->loop), NULL);
        lane_end_rest(lane);
}

/* It has been read, to the end: libcurl from 7.88 on reads until nothing is left, or asks for more at once
 * (test-h2-rests). The next reading is taken now, so that none is tried for nothing. */
static void lane_rest(CurlLane *lane, int fd) {
        CurlSocket *s;
        usec_t at;

        if (!lane->coalesced || lane->t->is_immediate || lane->n_bytes > REST_BYTES_MAX ||
            token_bucket_take(&lane->reads, loop_now(lane->t->loop), &at))
                return;
        s = lane_find_socket(lane, fd); /* libcurl may have closed it */
        if (!s || !s->is_connection)
                return;
        s->rests = true;
        if (socket_watch(s, s->events) < 0)
                s->rests = false;
        else if (!timer_is_armed(lane->rested))
                timer_arm(lane->rested, at);
}

static void lane_read_now(CurlLane *lane) {
        if (!lane->coalesced)
                return;
        timer_disarm(lane->rested);
        lane_end_rest(lane);
}

static void curl_transport_set_immediate(HttpTransport *transport, bool is_immediate) {
        CurlTransport *t = CONTAINER_OF(transport, CurlTransport, transport);

        t->is_immediate = is_immediate;
        if (!is_immediate)
                return;
        if (t->coalesced)
                lane_read_now(t->coalesced);
        LIST_FOREACH (lane, &t->retired, CurlLane, retired)
                lane_read_now(lane);
}

/* -- one lane ----------------------------------------------------------------------------------------- */

/* No callback of a caller. */
static void lane_turn(CurlLane *lane, curl_socket_t fd, int events) {
        CurlTransport *t = lane->t;
        CURLMsg *m;
        int n;

        if (fd == CURL_SOCKET_TIMEOUT &&
            lane->n_https > 0) /* calls begin so; of HTTP/1 libcurl looks itself */
                lane_hang_up_dead(lane);
        if (curl_multi_socket_action(lane->multi, fd, events, &n) != CURLM_OK)
                log_debug(t->log, "libcurl refused an event, ignoring");

        while ((m = curl_multi_info_read(lane->multi, &n))) {
                CURLcode result = m->data.result;
                char *c = NULL;

                if (m->msg != CURLMSG_DONE)
                        continue;
                curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &c);
                curl_call_complete((CurlCall *) (void *) c, result); /* m is gone now */
        }
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        CurlSocket *s = userdata;
        CurlLane *lane = s->lane;
        int what = 0;

        if (!s->in_use) {
                socket_heard_idle(s);
                return 0;
        }
        if (events & EPOLLIN)
                what |= CURL_CSELECT_IN;
        if (events & EPOLLOUT)
                what |= CURL_CSELECT_OUT;
        if (events & (EPOLLERR | EPOLLHUP))
                what |= CURL_CSELECT_ERR;
        lane->n_bytes = 0;
        lane_turn(lane, fd, what);
        lane_rest(lane, fd);
        curl_transport_dispatch(lane->t);
        return 0;
}

static void on_lane_timer(Timer *timer, void *userdata) {
        CurlLane *lane = userdata;

        lane_turn(lane, CURL_SOCKET_TIMEOUT, 0);
        curl_transport_dispatch(lane->t);
}

static int on_curl_timer(CURLM *multi, long timeout_msec, void *userdata) {
        CurlLane *lane = userdata;

        if (timeout_msec < 0)
                timer_disarm(lane->timer);
        else
                timer_arm_in(lane->timer, (usec_t) timeout_msec * USEC_PER_MSEC);
        return 0;
}

/* One that waited to be written to would bring that at once; or it was not connected yet, and is closed. */
static void socket_remove(CurlSocket *s) {
        s->in_use = false;
        if (!s->is_connection || ((s->events & EPOLLOUT) && !socket_is_open(s)))
                socket_free(s);
        else if (s->events & EPOLLOUT)
                (void) socket_watch(s, EPOLLIN);
}

/* Failing here would make libcurl give up the whole lane; the one call will run into its deadline instead.
 */
static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *userdata, void *assigned) {
        CurlLane *lane = userdata;
        CurlSocket *s = lane_find_socket(lane, fd);
        uint32_t events = 0;
        int r;

        if (what == CURL_POLL_REMOVE) {
                if (s)
                        socket_remove(s);
                return 0;
        }

        if (what & CURL_POLL_IN)
                events |= EPOLLIN;
        if (what & CURL_POLL_OUT)
                events |= EPOLLOUT;
        if (!s) /* not a connection's: the resolver's */
                s = socket_new(lane, fd);
        r = s ? socket_watch(s, events) : -ENOMEM;
        if (s)
                s->in_use = true;
        if (r < 0)
                log_debug_errno(lane->t->log, r, "Failed to watch a connection, ignoring: %m");
        return 0;
}

/* A watch holds its connection for minutes: where the server speaks only HTTP/1.1, each needs one of its
 * own. */
static long lane_max_connections(const CurlLane *lane) {
        switch (lane->lane) {
        case HTTP_LANE_URGENT:
        case HTTP_LANE_METADATA:
        case HTTP_LANE_NOTIFY:
                return lane->t->max_connections_per_host > 0 ? (long) lane->t->max_connections_per_host
                                                             : MAX_CONNECTIONS_URGENT;
        case HTTP_LANE_BULK:
                return lane->t->max_connections_per_host > 0 ? (long) lane->t->max_connections_per_host
                                                             : MAX_CONNECTIONS_BULK;
        case HTTP_LANE_WATCH:
        case _HTTP_LANE_MAX:
                break;
        }
        return 0; /* no limit */
}

static long lane_max_streams(const CurlLane *lane) {
        return lane->lane == HTTP_LANE_BULK && lane->t->max_bulk_streams > 0
                       ? (long) lane->t->max_bulk_streams
                       : MAX_CONCURRENT_STREAMS;
}

static CurlLane *lane_free(CurlLane *lane) {
        if (lane->multi)
                curl_multi_cleanup(lane->multi);
        while (lane->sockets.first)
                socket_free(LIST_ENTRY(lane->sockets.first, CurlSocket, sockets));
        timer_free(lane->timer);
        timer_free(lane->rested);
        free(lane);
        return NULL;
}

static void lane_set_up(CurlLane *lane) {
        curl_multi_setopt(lane->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket);
        curl_multi_setopt(lane->multi, CURLMOPT_SOCKETDATA, lane);
        curl_multi_setopt(lane->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
        curl_multi_setopt(lane->multi, CURLMOPT_TIMERDATA, lane);
        curl_multi_setopt(lane->multi, CURLMOPT_PIPELINING, (long) CURLPIPE_MULTIPLEX);
        curl_multi_setopt(lane->multi, CURLMOPT_MAX_CONCURRENT_STREAMS, lane_max_streams(lane));
        curl_multi_setopt(lane->multi, CURLMOPT_MAX_HOST_CONNECTIONS, lane_max_connections(lane));
        curl_multi_setopt(lane->multi, CURLMOPT_MAXCONNECTS, (long) MAX_IDLE_CONNECTIONS);
}

static int lane_make_coalesced(CurlLane *lane) {
        usec_t rest_usec = lane->t->rest_usec;

        lane->coalesced = true;
        lane->reads = (TokenBucket){ .burst = REST_BURST, .per_minute = USEC_PER_MINUTE / rest_usec };
        return timer_new(lane->t->loop, "http-curl-rest", on_rested, lane, &lane->rested);
}

static int lane_new(CurlTransport *t, HttpLane which, bool coalesced, CurlLane **ret) {
        CurlLane *lane;
        int r;

        lane = new0(CurlLane, 1);
        if (!lane)
                return -ENOMEM;
        lane->t = t;
        lane->lane = which;
        r = timer_new(t->loop, "http-curl-lane", on_lane_timer, lane, &lane->timer);
        if (r >= 0 && coalesced)
                r = lane_make_coalesced(lane);
        if (r >= 0) {
                lane->multi = curl_multi_init();
                r = lane->multi ? 0 : -ENOMEM;
        }
        if (r < 0) {
                lane_free(lane);
                return r;
        }
        lane_set_up(lane);
        *ret = lane;
        return 0;
}

static CurlLane **lane_place(CurlTransport *t, HttpLane which, bool coalesced) {
        return coalesced ? &t->coalesced : t->lanes + which;
}

int curl_lane_open(CurlTransport *t, const HttpRequest *q, CurlLane **ret) {
        bool coalesced = q->coalesced && q->lane == HTTP_LANE_WATCH && t->rest_usec > 0;
        CurlLane **place = lane_place(t, q->lane, coalesced);
        int r;

        if (!*place) {
                r = lane_new(t, q->lane, coalesced, place);
                if (r < 0)
                        return r;
        }
        *ret = *place;
        return 0;
}

void curl_lane_retire(CurlLane *lane) {
        CurlTransport *t = lane->t;

        if (lane->is_retired)
                return;

        lane->is_retired = true;
        *lane_place(t, lane->lane, lane->coalesced) = NULL;
        list_append(&t->retired, &lane->retired);
}

void curl_lane_enter(CurlLane *lane, bool https) {
        lane->n_calls++;
        lane->n_https += https;
}

void curl_lane_leave(CurlLane *lane, bool https) {
        assert(lane->n_calls > 0);
        assert(lane->n_https >= https);

        lane->n_calls--;
        lane->n_https -= https;
        /* Not here: libcurl, or who told it to act on this lane, may be on the stack. */
        if (lane->is_retired && lane->n_calls == 0 && !lane->t->dispatching)
                timer_arm_in(lane->t->ready_timer, 0);
}

static void transport_sweep(CurlTransport *t) {
        LIST_FOREACH (lane, &t->retired, CurlLane, retired)
                if (lane->n_calls == 0) {
                        list_remove(&t->retired, &lane->retired);
                        lane_free(lane);
                }
}

/* -- the transport ------------------------------------------------------------------------------------ */

static void transport_destroy(CurlTransport *t) {
        LIST_FOREACH (c, &t->calls, CurlCall, calls) {
                assert(!c->owned);
                curl_call_destroy(c);
        }
        curl_transport_free_handles(t);
        transport_sweep(t);
        for (size_t i = 0; i < ELEMENTSOF(t->lanes); i++)
                if (t->lanes[i])
                        lane_free(t->lanes[i]);
        if (t->coalesced)
                lane_free(t->coalesced);
        timer_free(t->ready_timer);
        free(t->user_agent);
        free(t);
        curl_global_cleanup();
}

static void curl_transport_free(HttpTransport *transport) {
        CurlTransport *t = CONTAINER_OF(transport, CurlTransport, transport);

        if (t->dispatching)
                t->dead = true; /* the call whose callback is on the stack still needs it */
        else
                transport_destroy(t);
}

static const HttpTransportOps curl_ops = {
        .start = curl_call_start,
        .cancel = curl_call_cancel,
        .set_immediate = curl_transport_set_immediate,
        .free = curl_transport_free,
};

int http_curl_new(Loop *l, Log *log, const HttpCurlOptions *options, HttpTransport **ret) {
        CurlTransport *t;
        int r;

        assert(l && loop_sd_event(l));
        assert(ret);
        if (curl_global_init(CURL_GLOBAL_ALL) != CURLE_OK)
                return -ENOMEM;

        t = new0(CurlTransport, 1);
        if (!t) {
                curl_global_cleanup();
                return -ENOMEM;
        }
        t->transport.ops = &curl_ops;
        t->loop = l;
        t->log = log;
        if (options) {
                t->max_connections_per_host = options->max_connections_per_host;
                t->max_bulk_streams = options->max_bulk_streams;
                t->keep_tls_buffers = options->keep_tls_buffers;
                t->rest_usec = options->rest_usec;
                assert(t->rest_usec <= USEC_PER_MINUTE);
        }
        r = free_and_strdup(&t->user_agent, options ? options->user_agent : NULL);
        if (r >= 0)
                r = timer_new(l, "http-curl-ready", on_ready_timer, t, &t->ready_timer);
        if (r < 0) {
                transport_destroy(t);
                return r;
        }
        *ret = &t->transport;
        return 0;
}
