/* SPDX-License-Identifier: Apache-2.0 */
/* What those who call make of it: the evictor and the informer, whole, against faults that strike many
 * requests. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "cmocka-test.h"
#include "evictor.h"
#include "h2-rig.h"
#include "informer.h"

#define PODS 24u

/* -- evictions ------------------------------------------------------------------------------------------ */

typedef struct Wishes {
        H2World *world;
        Eviction *slots[PODS];
        char names[PODS][8], uids[PODS][8];
        unsigned n_final, n_accepted, n_no_answer;
} Wishes;

static void on_report(Eviction *e, const EvictionReport *report, void *userdata) {
        Wishes *x = userdata;

        x->n_no_answer += report->answer == EVICTION_NO_ANSWER;
        if (!eviction_answer_is_final(report->answer))
                return;
        x->n_final++;
        x->n_accepted += report->answer == EVICTION_ACCEPTED;
}

static bool all_final(void *userdata) {
        return ((Wishes *) userdata)->n_final == PODS;
}

/* Wishes for all of them at once, and waits until each has its answer. */
static void evict_all(H2World *w, Wishes *x) {
        Evictor *e;

        *x = (Wishes){ .world = w };
        assert_return_code(evictor_new(w->client, NULL, &e), 0);
        for (unsigned i = 0; i < PODS; i++) {
                KubePod pod = { .object.meta = { .ns = "a", .name = x->names[i], .uid = x->uids[i] } };

                (void) snprintf(x->names[i], sizeof(x->names[i]), "p%u", i);
                (void) snprintf(x->uids[i], sizeof(x->uids[i]), "u%u", i);
                assert_return_code(evictor_add(e, &pod, -1, NULL, on_report, x, x->slots + i), 0);
        }
        h2_run_until(w, all_final, x, "a final answer to each eviction");
        print_message("  %u pods: %u requests sent, %u without an answer\n", PODS,
                      (unsigned) evictor_stats(e).sent, x->n_no_answer);
        assert_int_equal(x->n_accepted, PODS);
        assert_int_equal(evictor_stats(e).sent,
                         PODS + x->n_no_answer); /* once more for each that was lost */
        for (unsigned i = 0; i < PODS; i++)
                eviction_free(x->slots[i]);
        evictor_free(e);
}

static H2Count count_pod(const H2World *w, unsigned i) {
        char what[80];

        (void) snprintf(what, sizeof(what), "POST /api/v1/namespaces/a/pods/p%u/eviction", i);
        return h2_count(w, what);
}

/* Each eviction takes effect, and no answer says so: each is asked for once more, not oftener. */
TEST_CASE(evictions_lost_after_the_effect) {
        static const H2Fault ways[] = { H2_RESET_AFTER, H2_CUT_BODY };

        for (size_t way = 0; way < ELEMENTSOF(ways); way++) {
                _cleanup_(h2_world_freep) H2World *w = h2_world_new(state, NULL);
                Wishes x;

                w->fault = ways[way];
                w->fault_times = PODS;
                evict_all(w, &x);
                assert_int_equal(x.n_no_answer, PODS);
                for (unsigned i = 0; i < PODS; i++)
                        assert_int_equal(count_pod(w, i).effects, 2);
                assert_int_equal(h2_server_stats(w->server).requests, 2 * PODS);
        }
}

/* The connection breaks with all of them in flight. */
TEST_CASE(evictions_on_a_connection_that_breaks) {
        _cleanup_(h2_world_freep) H2World *w = h2_world_new(state, NULL);
        Wishes x;

        w->fault = H2_RST_AFTER;
        w->fault_times = 1;
        evict_all(w, &x);
        assert_in_range(x.n_no_answer, 1, PODS);
        for (unsigned i = 0; i < PODS; i++)
                assert_in_range(count_pod(w, i).requests, 1, 2);
}

/* Some of the first burst are refused for the sake of the limit; in the end each took effect exactly once.
 */
TEST_CASE(evictions_where_few_streams_are_allowed) {
        _cleanup_(h2_world_freep) H2World *w =
                h2_world_new(state, &(H2ServerOptions){ .max_concurrent_streams = 4 });
        Wishes x;

        evict_all(w, &x);
        for (unsigned i = 0; i < PODS; i++) {
                assert_int_equal(count_pod(w, i).requests, 1);
                assert_int_equal(count_pod(w, i).effects, 1);
        }
        assert_in_range(h2_server_stats(w->server).most_streams, 1, 4);
}

/* -- a watch -------------------------------------------------------------------------------------------- */

typedef struct Watched {
        unsigned n_watches;
        char from[8][16];
        StrBuf events;
        unsigned n_events;
} Watched;

#define LINE(type, name, version) \
        "{\"type\":\"" type \
        "\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"namespace\":\"a\"," \
        "\"name\":\"" name "\",\"uid\":\"u-" name "\",\"resourceVersion\":\"" version "\"}," \
        "\"spec\":{\"containers\":[]},\"status\":{}}}\n"

/* Every watch ends in another way, some in the middle of a line. */
static bool answer_watch(H2Stream *s, void *userdata) {
        Watched *x = userdata;
        const char *from = strstr(s->path, "resourceVersion=");
        unsigned n;

        if (!strstr(s->path, "watch=true"))
                return false;
        assert_true(from && x->n_watches < ELEMENTSOF(x->from));
        n = x->n_watches++;
        (void) snprintf(x->from[n], sizeof(x->from[n]), "%.*s", (int) strcspn(from + 16, "&"), from + 16);
        h2_stream_begin(s, 200, -1, NULL, NULL);
        switch (n) {
        case 0:
                h2_stream_data(s, LINE("ADDED", "one", "8") "{\"type\":\"ADDED\",\"obj");
                h2_stream_reset(s, NGHTTP2_INTERNAL_ERROR);
                break;
        case 1:
                h2_stream_data(s, LINE("ADDED", "two", "9"));
                h2_connection_close(s->connection, H2_CLOSE_FIN);
                break;
        case 2:
                h2_stream_data(s, LINE("MODIFIED", "one", "10") "{\"type\":");
                h2_connection_goaway(s->connection, -1, NGHTTP2_NO_ERROR);
                h2_connection_close(s->connection, H2_CLOSE_NOTIFY);
                break;
        case 3:
                h2_stream_data(s, LINE("DELETED", "two", "11"));
                h2_stream_end(s, true);
                break;
        default:
                h2_stream_data(s, LINE("ADDED", "three", "12"));
                break;
        }
        return true;
}

static void on_event(Informer *i, InformerEvent e, KubeObject *old, KubeObject *new, void *userdata) {
        static const char letters[] = {
                [INFORMER_ADDED] = '+', [INFORMER_MODIFIED] = '~', [INFORMER_DELETED] = '-'
        };
        Watched *x = userdata;

        strbuf_addf(&x->events, "%c%s ", letters[e], (new ?: old)->meta.name);
        x->n_events++;
}

static bool has_all(void *userdata) {
        return ((Watched *) userdata)->n_events >= 5;
}

/* Nothing is missed, nothing comes twice, and nothing is listed again. */
TEST_CASE(a_watch_goes_on_where_it_broke) {
        static const char *const from[] = { "7", "8", "9", "10", "11" };
        _cleanup_(h2_world_freep) H2World *w = h2_world_new(state, NULL);
        Watched x = { 0 };
        const InformerHandler handler = { .on_event = on_event, .userdata = &x };
        Informer *i;

        w->on_request = answer_watch;
        w->userdata = &x;
        assert_return_code(informer_new(w->client, &kube_pod_kind, NULL, &handler, &i), 0);
        h2_run_until(w, has_all, &x, "five events of five watches");
        assert_string_equal(strbuf_str(&x.events), "+one +two ~one -two +three ");
        for (unsigned n = 0; n < ELEMENTSOF(from); n++)
                assert_string_equal(x.from[n], from[n]);
        assert_int_equal(h2_count(w, "GET /api/v1/pods").requests, 1 + ELEMENTSOF(from));
        assert_true(informer_connected(i));
        informer_free(i);
        strbuf_done(&x.events);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(evictions_lost_after_the_effect),
                cmocka_unit_test(evictions_on_a_connection_that_breaks),
                cmocka_unit_test(evictions_where_few_streams_are_allowed),
                cmocka_unit_test(a_watch_goes_on_where_it_broke),
        };
        return cmocka_run_group_tests_name("h2-callers", tests, h2_certificates_new, h2_certificates_free);
}
