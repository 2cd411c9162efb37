/* SPDX-License-Identifier: Apache-2.0 */
/* A thousand connections that end in every way: neither file descriptors nor memory may grow. */
#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "cmocka-test.h"
#include "file-util.h"
#include "h2-rig.h"
#include "informer.h"
#include "kube-kinds.h"

#define RECONNECTS 1000u
#define WARM_UP 100u
/* Bytes in use, both ends of every connection together; a leak of a hundred bytes a connection is more. */
#define GROWTH_MAX_BYTES (90u * 1024)
/* Connections that have ended and that one side or the other has not looked at yet. */
#define FDS_IN_PASSING 8u

/* -- what this process holds ---------------------------------------------------------------------------- */

typedef struct Holdings {
        unsigned n_fds;
        size_t bytes; /* by malloc; 0 under a sanitizer, which keeps what was freed */
        unsigned long anonymous_kb;
} Holdings;

static unsigned count_fds(void) {
        DIR *d = opendir("/proc/self/fd");
        unsigned n = 0;

        assert_non_null(d);
        for (const struct dirent *e = readdir(d); e; e = readdir(d))
                n += e->d_name[0] != '.';
        (void) closedir(d);
        return n - 1; /* the folder itself */
}

static unsigned long read_anonymous_kb(void) {
        FILE *f = fopen("/proc/self/status", "re");
        unsigned long kb = 0;
        char line[256];

        assert_non_null(f);
        while (fgets(line, sizeof(line), f))
                if (strncmp(line, "RssAnon:", 8) == 0)
                        kb = strtoul(line + 8, NULL, 10);
        (void) fclose(f);
        return kb;
}

static Holdings look(void) {
        Holdings h = { .n_fds = count_fds(), .anonymous_kb = read_anonymous_kb() };

#if !HAS_ASAN
        h.bytes = mallinfo2().uordblks;
#endif
        return h;
}

static void compare(const char *what, Holdings before, Holdings after) {
        print_message("  %s: file descriptors %u -> %u, bytes in use %zu -> %zu, anonymous %lu -> %lu kB\n",
                      what, before.n_fds, after.n_fds, before.bytes, after.bytes, before.anonymous_kb,
                      after.anonymous_kb);
        if (after.n_fds > before.n_fds + FDS_IN_PASSING)
                fail_msg("%s: %u file descriptors after %u connections, %u after %u", what, before.n_fds,
                         WARM_UP, after.n_fds, RECONNECTS);
        if (after.bytes > before.bytes + GROWTH_MAX_BYTES)
                fail_msg("%s: %zu bytes after %u connections, %zu after %u", what, before.bytes, WARM_UP,
                         after.bytes, RECONNECTS);
}

/* -- the transport -------------------------------------------------------------------------------------- */

TEST_CASE(calls_reconnect) {
        static const H2Fault ways[] = { H2_ANSWER_THEN_FIN, H2_GOAWAY_BELOW,   H2_GOAWAY_ABOVE,
                                        H2_NOTIFY_BEFORE,   H2_FIN_AFTER,      H2_RST_AFTER,
                                        H2_CUT_BODY_FIN,    H2_REFUSED_STREAM, H2_GOAWAY_CALM,
                                        H2_FROZEN };
        unsigned fds_at_first = count_fds();
        H2World *w = h2_world_new(state, NULL);
        Holdings warm = { 0 };

        for (unsigned i = 0; h2_server_stats(w->server).accepted < RECONNECTS; i++) {
                H2Fault way = ways[i % ELEMENTSOF(ways)];
                H2Call c;

                if (i > 2 * RECONNECTS)
                        fail_msg("only %u connections after %u calls", h2_server_stats(w->server).accepted,
                                 i);
                if (warm.n_fds == 0 && h2_server_stats(w->server).accepted >= WARM_UP) {
                        h2_run_until_quiet(w);
                        warm = look();
                }
                w->fault = way;
                w->fault_times = 1;
                h2_call_start(w, &c, "/x",
                              (HttpRequest){ .method = i % 2 == 0 ? HTTP_GET : HTTP_POST,
                                             .lane = (HttpLane) (i % _HTTP_LANE_MAX),
                                             .timeout_usec = way == H2_FROZEN ? 10 * USEC_PER_MSEC : 0 });
                h2_call_finish(&c);
                /* A stream that nobody answers would hold its socket at the server for ever. */
                for (unsigned n = w->last_connection;
                     way == H2_FROZEN && n <= h2_server_stats(w->server).accepted; n++)
                        if (h2_server_connection(w->server, n))
                                h2_connection_thaw(h2_server_connection(w->server, n));
        }
        h2_run_until_quiet(w);
        assert_int_not_equal(warm.n_fds, 0);
        compare("calls", warm, look());
        h2_world_free(w);
        assert_int_equal(count_fds(), fds_at_first);
}

/* -- an informer's watch -------------------------------------------------------------------------------- */

typedef struct Watched {
        H2World *world;
        unsigned n_watches, n_lost, goal;
        bool gone_wrong;
} Watched;

#define BOOKMARK \
        "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\"," \
        "\"metadata\":{\"resourceVersion\":\"8\"}}}\n"

/* Sends a bookmark, an end, and the end of the connection. Now and then it breaks in the middle: that is waited
 * out by the informer. */
static bool answer_watch(H2Stream *s, void *userdata) {
        Watched *x = userdata;
        unsigned n;

        if (!strstr(s->path, "watch=true"))
                return false;
        n = ++x->n_watches;
        if (n % 250 == 0) {
                x->n_lost++;
                h2_connection_close(s->connection, n % 500 == 0 ? H2_CLOSE_RST : H2_CLOSE_FIN);
                return true;
        }
        h2_stream_begin(s, 200, -1, NULL, NULL);
        h2_stream_data(s, BOOKMARK);
        h2_stream_end(s, false);
        if (n % 3 == 0)
                h2_connection_goaway(s->connection, -1, NGHTTP2_NO_ERROR);
        h2_connection_close(s->connection, n % 3 == 1 ? H2_CLOSE_FIN : H2_CLOSE_NOTIFY);
        return true;
}

static void on_event(Informer *i, InformerEvent e, KubeObject *old, KubeObject *new, void *userdata) {
        ((Watched *) userdata)->gone_wrong = true; /* the list was empty, and stays so */
}

static bool is_there(void *userdata) {
        const Watched *x = userdata;

        return x->n_watches >= x->goal;
}

TEST_CASE(a_watch_reconnects) {
        unsigned fds_at_first = count_fds();
        H2World *w = h2_world_new(state, NULL);
        Watched x = { .world = w };
        const InformerHandler handler = { .on_event = on_event, .userdata = &x };
        Informer *i;
        Holdings warm = { 0 };

        w->on_request = answer_watch;
        w->userdata = &x;
        assert_return_code(informer_new(w->client, &kube_pod_kind, NULL, &handler, &i), 0);
        for (x.goal = WARM_UP; x.goal <= RECONNECTS; x.goal += WARM_UP) {
                h2_run_until(w, is_there, &x, "a hundred more watches");
                if (x.goal == WARM_UP)
                        warm = look();
        }
        compare("watch", warm, look());
        assert_false(x.gone_wrong);
        assert_true(informer_synced(i));
        assert_in_range(h2_server_stats(w->server).accepted, RECONNECTS, RECONNECTS + 2 + 2 * x.n_lost);
        assert_int_equal(h2_count(w, "GET /api/v1/pods").requests, x.n_watches + 1); /* one list, ever */
        informer_free(i);
        h2_world_free(w);
        assert_int_equal(count_fds(), fds_at_first);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(calls_reconnect),
                cmocka_unit_test(a_watch_reconnects),
        };
        return cmocka_run_group_tests_name("h2-reconnect", tests, h2_certificates_new, h2_certificates_free);
}
