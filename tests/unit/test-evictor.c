/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cmocka-test.h"
#include "evictor.h"
#include "kube-rig.h"

#define MSEC USEC_PER_MSEC
#define ANSWER_USEC (80 * MSEC) /* what an eviction takes */
#define WISHES_MAX 700u

#define BLOCKED \
        "{\"kind\":\"Status\",\"reason\":\"TooManyRequests\",\"message\":\"Cannot evict pod as it would " \
        "violate the pod's " \
        "disruption budget.\",\"details\":{\"causes\":[{\"reason\":\"DisruptionBudget\",\"message\":\"The " \
        "disruption budget " \
        "web needs 1 healthy pods and has 1 currently\"}]}}"
#define SEVERAL \
        "{\"kind\":\"Status\",\"reason\":\"InternalError\",\"message\":\"This pod has more than one " \
        "PodDisruptionBudget, which " \
        "the eviction subresource does not support.\"}"
#define HOOKED \
        "{\"kind\":\"Status\",\"reason\":\"TooManyRequests\",\"message\":\"admission webhook \\\"vm.example.com\\\" denied " \
        "the request: it is being moved\"}"
#define CREATED "{\"kind\":\"Status\",\"status\":\"Success\"}"

typedef struct Answer {
        unsigned status;
        const char *body, *retry_after;
        bool lost; /* no answer ever */
} Answer;

/* An API server that knows evictions only, and what it saw. */
typedef struct Bench {
        VirtualTime *time;
        RigHost *host;
        Evictor *evictor;
        Answer now; /* to every eviction that arrives, */
        size_t troubled; /* but that of this pod: */
        Answer trouble;
        usec_t latency_usec;
        unsigned in_flight, peak, n_requests;
        usec_t at_usec[4096]; /* when each arrived, since the start */
        char last_path[128];
        char *last_body;

        Eviction *wishes[WISHES_MAX];
        EvictorAdmission *admissions[WISHES_MAX];
        size_t n_admitted;
        EvictionReport reports[WISHES_MAX]; /* the last of each wish; texts are gone */
        unsigned n_reports[WISHES_MAX];
        bool drop_when_told;
        usec_t start_usec;
        KubeCall *patches[24]; /* other writes, never answered */
} Bench;

static void on_gone(HttpExchange *x, void *userdata) {
}

static const Answer *answer_to(const Bench *b, const char *path) {
        char of_troubled[64];

        snprintf(of_troubled, sizeof(of_troubled), "/web-%zu/", b->troubled);
        return strstr(path, of_troubled) ? &b->trouble : &b->now;
}

static void on_exchange(HttpExchange *x, void *userdata) {
        Bench *b = userdata;
        HttpHeader h[2] = { { "Content-Type", "application/json" } };
        const Answer *a = answer_to(b, x->path);
        size_t n = 1;

        if (x->method == HTTP_PATCH) {
                x->on_gone = on_gone;
                return;
        }
        assert_int_equal(x->method, HTTP_POST);
        b->at_usec[b->n_requests++ % ELEMENTSOF(b->at_usec)] = virtual_time_now(b->time) - b->start_usec;
        snprintf(b->last_path, sizeof(b->last_path), "%s", x->path);
        free(b->last_body);
        b->last_body = memdup_str(x->body, x->body_size);
        if (a->lost) {
                x->on_gone = on_gone;
                return;
        }
        if (a->retry_after)
                h[n++] = (HttpHeader){ "Retry-After", a->retry_after };
        x->ops->reply(x, a->status, h, n, a->body, strlen(a->body));
}

/* Answers take their time, so that several are under way together. */
static void on_fault(const HttpRequest *request, const char *peer, HttpFault *ret_fault, void *userdata) {
        Bench *b = userdata;

        ret_fault->reply_delay_usec = b->latency_usec;
        b->in_flight++;
        b->peak = MAX(b->peak, b->in_flight);
}

static Bench *bench_new(const EvictorOptions *o) {
        Bench *b = new0(Bench, 1);
        HttpInprocHooks hooks = { .on_request = on_fault, .userdata = b };

        assert_non_null(b);
        b->now = (Answer){ 201, CREATED, NULL, false };
        b->troubled = SIZE_MAX;
        b->latency_usec = ANSWER_USEC;
        assert_return_code(virtual_time_new(RIG_START_WALL, &b->time), 0);
        b->start_usec = virtual_time_now(b->time);
        b->host = rig_host_new(b->time, 7, &hooks, on_exchange, b);
        assert_return_code(evictor_new(b->host->client, o, &b->evictor), 0);
        return b;
}

static Bench *bench_free(Bench *b) {
        for (size_t i = 0; i < ELEMENTSOF(b->wishes); i++)
                eviction_free(b->wishes[i]);
        for (size_t i = 0; i < ELEMENTSOF(b->admissions); i++)
                evictor_admission_end(b->admissions[i], NULL);
        for (size_t i = 0; i < ELEMENTSOF(b->patches); i++)
                kube_call_free(b->patches[i]);
        evictor_free(b->evictor);
        rig_host_free(b->host);
        virtual_time_free(b->time);
        free(b->last_body);
        return mfree(b);
}
DEFINE_FREEP(Bench, bench_free);

static void run_for(Bench *b, usec_t usec) {
        rig_run_until(b->time, virtual_time_now(b->time) + usec);
}

static void on_report(Eviction *e, const EvictionReport *report, void *userdata) {
        Bench *b = userdata;

        b->in_flight--;
        for (size_t i = 0; i < ELEMENTSOF(b->wishes); i++)
                if (b->wishes[i] == e) {
                        b->reports[i] = *report;
                        b->reports[i].by = b->reports[i].message = NULL;
                        b->n_reports[i]++;
                        if (b->drop_when_told)
                                b->wishes[i] = eviction_free(b->wishes[i]);
                        return;
                }
        assert_true(false);
}

static void wish(Bench *b, size_t i, const char *pdb) {
        char name[32], uid[32];
        KubePod pod = { .object.meta = { .ns = "shop", .name = name, .uid = uid } };

        snprintf(name, sizeof(name), "web-%zu", i);
        snprintf(uid, sizeof(uid), "uid-%zu", i);
        assert_return_code(evictor_add(b->evictor, &pod, -1, pdb, on_report, b, &b->wishes[i]), 0);
}

static size_t n_accepted(const Bench *b) {
        return (size_t) evictor_stats(b->evictor).answers[EVICTION_ACCEPTED];
}

/* -- without PDB ---------------------------------------------------------------------------------------- */

TEST_CASE(test_together) {
        _cleanup_(bench_freep) Bench *b = bench_new(NULL);

        for (size_t i = 0; i < 60; i++)
                wish(b, i, NULL);
        assert_int_equal(b->n_requests, 0);
        run_for(b, MSEC);
        assert_int_equal(b->n_requests, 60);
        assert_int_equal(b->peak, 60);
        assert_int_equal(evictor_stats(b->evictor).in_flight, 60);
        run_for(b, ANSWER_USEC);
        assert_int_equal(n_accepted(b), 60);
        assert_int_equal(b->n_reports[59], 1);
        assert_int_equal(b->reports[59].answer, EVICTION_ACCEPTED);
        assert_int_equal(b->reports[59].attempts, 1);
        assert_int_equal(b->reports[59].finished_usec - b->reports[59].started_usec, ANSWER_USEC);

        print_message("  with the uid as precondition, and the pod's own grace\n");
        assert_string_equal(b->last_path, "/api/v1/namespaces/shop/pods/web-59/eviction");
        assert_non_null(strstr(b->last_body, "\"uid\":\"uid-59\""));
        assert_null(strstr(b->last_body, "gracePeriodSeconds"));
}

TEST_CASE(test_window_and_rate) {
        _cleanup_(bench_freep) Bench *b =
                bench_new(&(EvictorOptions){ .window_start = 20, .window_max = 40 });
        _cleanup_(bench_freep) Bench *c = bench_new(NULL);

        for (size_t i = 0; i < 300; i++)
                wish(b, i, NULL);
        run_for(b, MSEC);
        assert_int_equal(b->n_requests, 20);
        run_for(b, 10 * USEC_PER_SEC);
        assert_int_equal(n_accepted(b), 300);
        assert_true(b->peak > 20 && b->peak <= 40);
        assert_in_range(evictor_stats(b->evictor).window, 25, 40);

        print_message("  what the window holds at once, then 500 a second\n");
        for (size_t i = 0; i < 600; i++)
                wish(c, i, NULL);
        run_for(c, MSEC);
        assert_int_equal(c->n_requests, 160);
        run_for(c, 500 * MSEC);
        assert_in_range(c->n_requests, 395, 418);
        run_for(c, USEC_PER_SEC);
        assert_int_equal(n_accepted(c), 600);
}

static void cordon(Bench *b, size_t n) {
        const KubeTarget target = { .kind = &kube_node_kind, .name = "node-1" };

        for (size_t i = 0; i < n; i++)
                assert_return_code(kube_patch(b->host->client, &target, KUBE_PATCH_MERGE, "{}", NULL, NULL,
                                              NULL, &b->patches[i]),
                                   0);
}

TEST_CASE(test_cordons_have_their_part) {
        _cleanup_(bench_freep) Bench *b =
                bench_new(&(EvictorOptions){ .window_start = 20, .window_max = 20 });
        _cleanup_(bench_freep) Bench *c =
                bench_new(&(EvictorOptions){ .window_start = 20, .window_max = 20 });

        cordon(b, 5);
        for (size_t i = 0; i < 60; i++)
                wish(b, i, NULL);
        run_for(b, MSEC);
        assert_int_equal(b->n_requests, 15);
        run_for(b, ANSWER_USEC);
        assert_int_equal(b->n_requests, 30);

        print_message("  those have ended\n");
        for (size_t i = 0; i < 5; i++)
                b->patches[i] = kube_call_free(b->patches[i]);
        run_for(b, ANSWER_USEC);
        assert_int_equal(b->n_requests, 50);

        print_message("  however many there are, evictions go on\n");
        cordon(c, 24);
        for (size_t i = 0; i < 60; i++)
                wish(c, i, NULL);
        run_for(c, MSEC);
        assert_int_equal(c->n_requests, 8);
        run_for(c, 10 * ANSWER_USEC);
        assert_int_equal(n_accepted(c), 60);
}

TEST_CASE(test_flow_control) {
        _cleanup_(bench_freep) Bench *b = bench_new(NULL);

        b->now = (Answer){ 429, "Too many requests\n", "3", false };
        for (size_t i = 0; i < 50; i++)
                wish(b, i, NULL);
        run_for(b, 100 * MSEC);
        assert_int_equal(b->n_requests, 50);
        assert_int_equal(b->reports[0].answer, EVICTION_FLOW_CONTROL);
        assert_int_equal(evictor_stats(b->evictor).window, 80); /* one burst of bad news counts once */

        print_message("  nothing leaves before the server said\n");
        b->now = (Answer){ 201, CREATED, NULL, false };
        wish(b, 50, NULL);
        run_for(b, 2900 * MSEC);
        assert_int_equal(b->n_requests, 50);
        run_for(b, 500 * MSEC);
        assert_int_equal(n_accepted(b), 51);
}

/* One that is below what others shrink to stays as it is, and does not grow by bad news. */
/* Of many under way nobody waits for a single answer: the loop wakes up less often, and as often as before
 * when they become few, whichever way they do. */
TEST_CASE(test_crowd) {
        _cleanup_(bench_freep) Bench *b = bench_new(NULL);
        Loop *l = kube_client_env(b->host->client)->loop;

        loop_set_pace(l, 50, 20 * MSEC);
        for (size_t i = 0; i < 79; i++)
                wish(b, i, NULL);
        run_for(b, MSEC);
        assert_int_equal(evictor_stats(b->evictor).in_flight, 79);
        assert_int_equal(loop_pace(l), 20 * MSEC);
        for (size_t i = 79; i < 120; i++)
                wish(b, i, NULL);
        run_for(b, MSEC);
        assert_int_equal(evictor_stats(b->evictor).in_flight, 120);
        assert_int_equal(loop_pace(l), 60 * MSEC);
        run_for(b, ANSWER_USEC);
        assert_int_equal(n_accepted(b), 120);
        assert_int_equal(loop_pace(l), 20 * MSEC);

        print_message("  withdrawn\n");
        b->now.lost = true;
        for (size_t i = 120; i < 220; i++)
                wish(b, i, NULL);
        run_for(b, MSEC);
        assert_int_equal(loop_pace(l), 60 * MSEC);
        for (size_t i = 120; i < 220; i++)
                b->wishes[i] = eviction_free(b->wishes[i]);
        assert_int_equal(loop_pace(l), 20 * MSEC);
}

TEST_CASE(test_narrow_window) {
        _cleanup_(bench_freep) Bench *b = bench_new(&(EvictorOptions){ .window_start = 3, .window_max = 3 });

        b->now = (Answer){ 429, "Too many requests\n", "3", false };
        for (size_t i = 0; i < 20; i++)
                wish(b, i, NULL);
        run_for(b, 2 * USEC_PER_SEC);
        assert_int_equal(b->n_requests, 3);
        b->now = (Answer){ 201, CREATED, NULL, false };
        run_for(b, 3 * USEC_PER_SEC);
        assert_int_equal(n_accepted(b), 20);
        assert_int_equal(b->peak, 3);
        assert_int_equal(evictor_stats(b->evictor).window, 3);
}

TEST_CASE(test_slow_server) {
        _cleanup_(bench_freep) Bench *b = bench_new(NULL);

        b->latency_usec = 3 * USEC_PER_SEC;
        for (size_t i = 0; i < 200; i++)
                wish(b, i, NULL);
        run_for(b, 20 * USEC_PER_SEC);
        assert_int_equal(n_accepted(b), 200);
        assert_true(evictor_stats(b->evictor).window < 160);
}

TEST_CASE(test_no_answer) {
        _cleanup_(bench_freep) Bench *b = bench_new(NULL);

        b->now.lost = true;
        wish(b, 0, NULL);
        run_for(b, 29 * USEC_PER_SEC);
        assert_int_equal(b->n_reports[0], 0);
        run_for(b, 2 * USEC_PER_SEC);
        assert_int_equal(b->reports[0].answer, EVICTION_NO_ANSWER);
        assert_int_equal(b->n_requests, 2);

        print_message("  the path is back: the backoff ends\n");
        run_for(b, 29400 * MSEC);
        assert_int_equal(b->n_reports[0], 2);
        b->now = (Answer){ 201, CREATED, NULL, false };
        evictor_kick(b->evictor);
        run_for(b, 100 * MSEC);
        assert_int_equal(b->reports[0].answer, EVICTION_ACCEPTED);
        evictor_kick(b->evictor);
        run_for(b, USEC_PER_MINUTE);
        assert_int_equal(b->n_requests, 3);
}

TEST_CASE(test_errors_are_tried_again) {
        static const struct {
                const char *what;
                Answer answer;
                EvictionAnswer expected;
                unsigned min, max; /* requests in a minute */
        } rows[] = {
                { "not allowed: slowly", { 403, "{}", NULL, false }, EVICTION_FORBIDDEN, 6, 13 },
                { "a busy server: with backoff", { 503, "{}", NULL, false }, EVICTION_SERVER_BUSY, 9, 14 },
                { "a busy server that says when", { 503, "{}", "20", false }, EVICTION_SERVER_BUSY, 3, 4 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(bench_freep) Bench *b = bench_new(NULL);

                print_message("  %s\n", rows[i].what);
                b->now = rows[i].answer;
                wish(b, 0, NULL);
                run_for(b, USEC_PER_MINUTE);
                assert_int_equal(b->reports[0].answer, rows[i].expected);
                assert_in_range(b->n_requests, rows[i].min, rows[i].max);
                b->now = (Answer){ 201, CREATED, NULL, false };
                run_for(b, USEC_PER_MINUTE);
                assert_int_equal(b->reports[0].answer, EVICTION_ACCEPTED);
        }
}

TEST_CASE(test_final_answers) {
        static const struct {
                unsigned status;
                EvictionAnswer expected;
        } rows[] = { { 404, EVICTION_GONE }, { 409, EVICTION_REPLACED }, { 200, EVICTION_ACCEPTED } };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(bench_freep) Bench *b = bench_new(NULL);

                b->now = (Answer){ rows[i].status, "{}", NULL, false };
                wish(b, 0, "web");
                run_for(b, USEC_PER_MINUTE);
                assert_int_equal(b->reports[0].answer, rows[i].expected);
                assert_int_equal(b->n_requests, 1);
        }
}

/* -- a PDB that somebody watches ------------------------------------------------------------------------ */

TEST_CASE(test_gate) {
        _cleanup_(bench_freep) Bench *b = bench_new(NULL);
        usec_t opened;

        print_message("  none allowed: no request in a minute\n");
        assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 0), 0);
        for (size_t i = 0; i < 200; i++)
                wish(b, i, "web");
        wish(b, 200, "other");
        run_for(b, USEC_PER_MINUTE);
        assert_int_equal(b->n_requests, 1);
        assert_int_equal(b->n_reports[200], 1);

        print_message("  it gives way: the next leaves at once, and only one\n");
        opened = virtual_time_now(b->time) - b->start_usec;
        assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 1), 0);
        run_for(b, USEC_PER_SEC);
        assert_int_equal(b->n_requests, 2);
        assert_true(b->at_usec[1] - opened < 50 * MSEC);
        assert_int_equal(b->n_reports[0], 1);
        run_for(b, 2 * USEC_PER_SEC);
        assert_int_equal(b->n_requests, 2);

        print_message("  another PDB of that name is another queue\n");
        assert_return_code(evictor_set_allowed(b->evictor, "elsewhere", "web", 5), 0);
        run_for(b, USEC_PER_SEC);
        assert_int_equal(b->n_requests, 2);

        print_message("  the PDB goes: one at a time, without a gate\n");
        evictor_forget_pdb(b->evictor, "shop", "web");
        b->peak = b->in_flight = 0;
        run_for(b, 30 * USEC_PER_SEC);
        assert_int_equal(n_accepted(b), 201);
        assert_int_equal(b->peak, 1);
}

TEST_CASE(test_serial) {
        _cleanup_(bench_freep) Bench *b = bench_new(NULL);

        assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 5), 0);
        for (size_t i = 0; i < 10; i++)
                wish(b, i, "web");
        run_for(b, 4 * USEC_PER_SEC);
        assert_int_equal(b->n_requests, 5); /* what the status said is used up, and no more is asked for */
        assert_int_equal(b->peak, 1);
        assert_int_equal(b->at_usec[1] - b->at_usec[0], ANSWER_USEC);
}

/* The status may show an eviction before its own answer is here. */
TEST_CASE(test_status_before_answer) {
        _cleanup_(bench_freep) Bench *b = bench_new(NULL);

        assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 2), 0);
        for (size_t i = 0; i < 3; i++)
                wish(b, i, "web");
        run_for(b, ANSWER_USEC / 2);
        assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 1), 0);
        run_for(b, USEC_PER_SEC);
        assert_int_equal(b->n_requests, 2);

        print_message("  a status that does not show it yet is counted down\n");
        assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 1), 0);
        run_for(b, ANSWER_USEC / 2);
        assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 1), 0);
        wish(b, 3, "web");
        run_for(b, USEC_PER_SEC);
        assert_int_equal(b->n_requests, 3);
}

/* What was evicted was done, and used nothing of its PDB: no status comes, and the others go on. */
TEST_CASE(test_no_status_comes) {
        _cleanup_(bench_freep) Bench *b = bench_new(NULL);

        assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 1), 0);
        for (size_t i = 0; i < 3; i++)
                wish(b, i, "web");
        run_for(b, 4 * USEC_PER_SEC);
        assert_int_equal(b->n_requests, 1);
        run_for(b, 2 * USEC_PER_SEC);
        assert_int_equal(b->n_requests, 2);

        print_message("  a status that does come is heard at once\n");
        assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 1), 0);
        run_for(b, USEC_PER_SEC);
        assert_int_equal(b->n_requests, 3);
        assert_int_equal(n_accepted(b), 3);

        print_message("  and one that says no, too\n");
        wish(b, 3, "web");
        run_for(b, USEC_PER_SEC);
        assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 0), 0);
        run_for(b, USEC_PER_MINUTE);
        assert_int_equal(b->n_requests, 3);
}

TEST_CASE(test_gate_closes) {
        _cleanup_(bench_freep) Bench *b = bench_new(NULL);

        print_message("  refused though the status said yes: asked again later\n");
        b->now = (Answer){ 429, BLOCKED, NULL, false };
        assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 1), 0);
        wish(b, 0, "web");
        wish(b, 1, "web");
        run_for(b, 100 * MSEC);
        assert_int_equal(b->n_requests, 1);
        assert_int_equal(b->reports[0].answer, EVICTION_BLOCKED_BY_PDB);

        print_message("  until the status says no: then nothing, also no second try that was due\n");
        assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 0), 0);
        run_for(b, USEC_PER_MINUTE);
        assert_int_equal(b->n_requests, 1);

        print_message("  and in order when it gives way\n");
        b->now = (Answer){ 201, CREATED, NULL, false };
        assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 1), 0);
        run_for(b, USEC_PER_SEC);
        assert_int_equal(b->reports[0].answer, EVICTION_ACCEPTED);
        assert_int_equal(b->n_reports[1], 0);

        print_message("  a wish that waits for the window is called back, too\n");
        b->now = (Answer){ 429, "slow down\n", "5", false };
        assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 1), 0);
        run_for(b, USEC_PER_SEC);
        assert_int_equal(b->n_requests, 3);
        assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 0), 0);
        run_for(b, USEC_PER_MINUTE);
        assert_int_equal(b->n_requests, 3);
}

/* The eviction that is under way while its PDB closes is told to come again later by flow control. */
TEST_CASE(test_gate_closes_under_way) {
        _cleanup_(bench_freep) Bench *b = bench_new(NULL);

        b->now = (Answer){ 429, "slow down\n", "2", false };
        assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 1), 0);
        wish(b, 0, "web");
        wish(b, 1, "web");
        run_for(b, 40 * MSEC); /* of the 80 that an answer takes */
        assert_int_equal(b->n_requests, 1);
        assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 0), 0);
        run_for(b, USEC_PER_MINUTE);
        assert_int_equal(b->reports[0].answer, EVICTION_FLOW_CONTROL);
        assert_int_equal(b->n_requests, 1);
        assert_true(eviction_is_held(b->wishes[0]));

        print_message("  it is still the first\n");
        b->now = (Answer){ 201, CREATED, NULL, false };
        assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 1), 0);
        run_for(b, USEC_PER_SEC);
        assert_int_equal(b->reports[0].answer, EVICTION_ACCEPTED);
        assert_int_equal(b->n_reports[1], 0);
}

/* -- a PDB that nobody watches -------------------------------------------------------------------------- */

TEST_CASE(test_probe) {
        _cleanup_(bench_freep) Bench *b = bench_new(NULL);
        unsigned before;

        b->now = (Answer){ 429, BLOCKED, NULL, false };
        for (size_t i = 0; i < 20; i++)
                wish(b, i, NULL);
        run_for(b, 100 * MSEC);
        assert_int_equal(b->n_requests, 20); /* nobody knew */

        print_message("  they share a PDB: one asks for all, ever more slowly\n");
        run_for(b, USEC_PER_MINUTE);
        assert_in_range(b->n_requests, 26, 34);
        before = b->n_requests;
        b->peak = b->in_flight = 0;
        b->now = (Answer){ 201, CREATED, NULL, false };
        run_for(b, 30 * USEC_PER_SEC);
        assert_int_equal(n_accepted(b), 20);
        assert_int_equal(b->n_requests, before + 20);
        assert_int_equal(b->peak, 1);
}

/* Refused though its status said yes, it rests; a status that says yes again ends that. */
TEST_CASE(test_status_ends_a_rest) {
        _cleanup_(bench_freep) Bench *b = bench_new(NULL);

        b->now = (Answer){ 429, BLOCKED, NULL, false };
        assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 1), 0);
        wish(b, 0, "web");
        run_for(b, 100 * MSEC);
        assert_int_equal(b->n_requests, 1);
        b->now = (Answer){ 201, CREATED, NULL, false };
        assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 1), 0);
        run_for(b, ANSWER_USEC + MSEC);
        assert_int_equal(n_accepted(b), 1);
}

/* One pod's own trouble lets the next of its PDB go, whoever watches that PDB; and the pod comes back. */
TEST_CASE(test_own_trouble) {
        static const struct {
                const char *what;
                Answer answer;
                EvictionAnswer expected;
                usec_t after_usec; /* its answer, or its end without one */
        } rows[] = {
                { "not allowed", { 403, "{}", NULL, false }, EVICTION_FORBIDDEN, ANSWER_USEC },
                { "a webhook fails", { 500, "{}", NULL, false }, EVICTION_SERVER_BUSY, ANSWER_USEC },
                { "busy, and says until when", { 503, "{}", "20", false }, EVICTION_SERVER_BUSY, ANSWER_USEC },
                { "no answer", { .lost = true }, EVICTION_NO_ANSWER, 30 * USEC_PER_SEC },
                { "several PDBs", { 500, SEVERAL, NULL, false }, EVICTION_SEVERAL_PDBS, ANSWER_USEC },
                { "a webhook answers", { 429, HOOKED, "20", false }, EVICTION_WEBHOOK, ANSWER_USEC },
        };

        for (size_t i = 0; i < 2 * ELEMENTSOF(rows); i++) {
                _cleanup_(bench_freep) Bench *b = bench_new(NULL);
                bool watched = i % 2;

                print_message("  %s, the PDB %s\n", rows[i / 2].what, watched ? "watched" : "not");
                b->troubled = 0;
                b->trouble = rows[i / 2].answer;
                if (watched)
                        assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 9), 0);
                for (size_t k = 0; k < 4; k++)
                        wish(b, k, "web");
                run_for(b, rows[i / 2].after_usec + 3 * ANSWER_USEC + MSEC);
                assert_int_equal(b->reports[0].answer, rows[i / 2].expected);
                assert_int_equal(n_accepted(b), 3);
                b->trouble = (Answer){ 201, CREATED, NULL, false };
                run_for(b, 6 * USEC_PER_MINUTE);
                assert_int_equal(n_accepted(b), 4);
        }
}

/* The same behind each other: who comes back has the others of its PDB before it, and one at a time leaves. */
TEST_CASE(test_trouble_comes_back) {
        _cleanup_(bench_freep) Bench *b = bench_new(NULL);

        assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 300), 0);
        b->troubled = 0;
        b->trouble = (Answer){ 503, "{}", NULL, false };
        for (size_t i = 0; i < 200; i++)
                wish(b, i, "web");
        run_for(b, 8 * USEC_PER_SEC);
        assert_in_range(b->n_reports[0], 1, 1); /* its backoff is long over: 100 of 200 have gone */
        run_for(b, 9 * USEC_PER_SEC);
        assert_int_equal(n_accepted(b), 199);
        assert_int_equal(b->peak, 1);
        assert_true(b->n_reports[0] > 1);
}

/* A webhook answers, which may move the pod itself. */
TEST_CASE(test_webhook) {
        _cleanup_(bench_freep) Bench *b = bench_new(NULL);
        unsigned before;

        print_message("  asked again ever more slowly, half a minute apart in the end\n");
        b->now = (Answer){ 429, HOOKED, NULL, false };
        wish(b, 0, NULL);
        run_for(b, USEC_PER_MINUTE);
        assert_int_equal(b->reports[0].answer, EVICTION_WEBHOOK);
        assert_in_range(b->n_requests, 5, 7);
        before = b->n_requests;
        run_for(b, 10 * USEC_PER_MINUTE);
        assert_in_range(b->n_requests - before, 17, 25);

        print_message("  it is no flow control: nothing is closed, nor is the window smaller\n");
        assert_int_equal(evictor_stats(b->evictor).window, 160);
        b->now = (Answer){ 201, CREATED, NULL, false };
        wish(b, 1, NULL);
        run_for(b, ANSWER_USEC + MSEC);
        assert_int_equal(n_accepted(b), 1);

        print_message("  a Retry-After of a day is not waited for\n");
        b->now = (Answer){ 403, HOOKED, "86400", false };
        wish(b, 2, NULL);
        run_for(b, USEC_PER_SEC);
        b->now = (Answer){ 201, CREATED, NULL, false };
        run_for(b, 40 * USEC_PER_SEC);
        assert_int_equal(n_accepted(b), 3);
}

/* The pod changes: asked again, but not at each change. */
TEST_CASE(test_webhook_pod_changed) {
        _cleanup_(bench_freep) Bench *b = bench_new(NULL);
        unsigned before;

        b->now = (Answer){ 403, HOOKED, NULL, false };
        wish(b, 0, NULL);
        run_for(b, 5 * USEC_PER_MINUTE);
        before = b->n_requests;
        for (unsigned i = 0; i < 60; i++) {
                eviction_pod_changed(b->wishes[0]);
                run_for(b, USEC_PER_SEC);
        }
        assert_in_range(b->n_requests - before, 11, 13);
        run_for(b, 12 * USEC_PER_SEC);
        b->now = (Answer){ 201, CREATED, NULL, false };
        eviction_pod_changed(b->wishes[0]);
        run_for(b, 2 * ANSWER_USEC);
        assert_int_equal(n_accepted(b), 1);

        print_message("  what rests for another reason is not woken\n");
        b->now = (Answer){ 403, "{}", NULL, false };
        wish(b, 1, NULL);
        run_for(b, USEC_PER_SEC);
        before = b->n_requests;
        eviction_pod_changed(b->wishes[1]);
        run_for(b, USEC_PER_SEC);
        assert_int_equal(b->n_requests, before);
}

/* A PDB that allows nothing as it stands: each pod is asked for once, and again after five minutes, whoever answers. */
TEST_CASE(test_never) {
        static const struct {
                const char *what;
                Answer answer;
                EvictionAnswer expected;
        } rows[] = {
                { "its PDB refuses", { 429, BLOCKED, NULL, false }, EVICTION_PDB_NEVER_ALLOWS },
                { "a webhook denies it", { 403, HOOKED, NULL, false }, EVICTION_WEBHOOK },
        };

        for (size_t k = 0; k < ELEMENTSOF(rows); k++) {
                _cleanup_(bench_freep) Bench *b = bench_new(NULL);

                print_message("  %s\n", rows[k].what);
                b->now = rows[k].answer;
                assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 0), 0);
                for (size_t i = 0; i < 3; i++)
                        wish(b, i, "web");
                run_for(b, USEC_PER_MINUTE);
                assert_int_equal(b->n_requests, 0); /* it may allow one again: its gate is closed */
                evictor_set_never(b->evictor, "shop", "web", true);
                run_for(b, 2 * USEC_PER_SEC);
                assert_int_equal(b->n_requests, 0); /* a moment between two pods may look like that */
                run_for(b, 4 * USEC_PER_MINUTE);
                assert_int_equal(b->n_requests, 3);
                assert_int_equal(evictor_stats(b->evictor).answers[rows[k].expected], 3);
                for (size_t i = 0; i < 3; i++) {
                        assert_int_equal(b->reports[i].answer, rows[k].expected);
                        assert_true(eviction_is_request(b->wishes[i]));
                        eviction_pod_changed(b->wishes[i]);
                }
                run_for(b, 55 * USEC_PER_SEC);
                assert_int_equal(b->n_requests, 3);
                run_for(b, 10 * USEC_PER_SEC);
                assert_int_equal(b->n_requests, 6);

                print_message("  a pod that comes later is asked for at once\n");
                wish(b, 3, "web");
                run_for(b, 2 * ANSWER_USEC);
                assert_int_equal(b->n_requests, 7);

                print_message("  it gives way: one after the other, as its status says\n");
                b->now = (Answer){ 201, CREATED, NULL, false };
                assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 1), 0);
                evictor_set_never(b->evictor, "shop", "web", false);
                run_for(b, 3 * ANSWER_USEC);
                assert_int_equal(n_accepted(b), 1);
                assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 0), 0);
                run_for(b, USEC_PER_MINUTE);
                assert_int_equal(n_accepted(b), 1);
                assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 3), 0);
                run_for(b, USEC_PER_MINUTE);
                assert_int_equal(n_accepted(b), 4);
                assert_int_equal(b->n_requests, 11);
        }
}

/* Between the end of a pod and the making of its successor as many have to be healthy as there are. */
TEST_CASE(test_never_for_a_moment) {
        _cleanup_(bench_freep) Bench *b = bench_new(NULL);

        b->now = (Answer){ 429, BLOCKED, NULL, false };
        assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 0), 0);
        wish(b, 0, "web");
        for (unsigned i = 0; i < 20; i++) {
                evictor_set_never(b->evictor, "shop", "web", i % 2 == 0);
                run_for(b, 4 * USEC_PER_SEC);
        }
        assert_int_equal(b->n_requests, 0);
        evictor_set_never(b->evictor, "shop", "web", true);
        evictor_forget_pdb(b->evictor, "shop", "web"); /* nobody watches it any more: probes, with backoff */
        run_for(b, USEC_PER_SEC);
        assert_in_range(b->n_requests, 1, 3);
        assert_int_equal(b->reports[0].answer, EVICTION_BLOCKED_BY_PDB);
}

/* A webhook that takes its time, as when it cannot be called, is asked beside the others of the PDB, but not behind
 * a closed gate. */
TEST_CASE(test_slow_webhook) {
        _cleanup_(bench_freep) Bench *b = bench_new(NULL);

        b->now = (Answer){ 403, HOOKED, NULL, false };
        assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 99), 0);
        wish(b, 0, "web");
        run_for(b, 2 * ANSWER_USEC);
        b->latency_usec = 10 * USEC_PER_SEC;
        while (b->in_flight == 0)
                run_for(b, MSEC);
        b->latency_usec = ANSWER_USEC;
        b->now = (Answer){ 201, CREATED, NULL, false };
        b->troubled = 0;
        b->trouble = (Answer){ 403, HOOKED, NULL, false };
        for (size_t i = 1; i < 9; i++)
                wish(b, i, "web");
        run_for(b, 9 * ANSWER_USEC);
        assert_int_equal(n_accepted(b), 8);
        assert_int_equal(b->in_flight, 1);
        assert_int_equal(evictor_stats(b->evictor).window, 160);

        print_message("  its PDB allows nothing: it is not asked\n");
        run_for(b, 10 * USEC_PER_SEC);
        assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 0), 0);
        run_for(b, USEC_PER_MINUTE);
        b->n_requests = 0;
        run_for(b, 5 * USEC_PER_MINUTE);
        assert_int_equal(b->n_requests, 0);
        assert_true(eviction_is_held(b->wishes[0]));
        b->trouble = (Answer){ 201, CREATED, NULL, false };
        assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 1), 0);
        run_for(b, 2 * ANSWER_USEC);
        assert_int_equal(n_accepted(b), 9);
}

/* An eviction that cannot work until somebody edits. */
TEST_CASE(test_several_pdbs) {
        _cleanup_(bench_freep) Bench *b = bench_new(NULL);

        b->now = (Answer){ 500, SEVERAL, NULL, false };
        wish(b, 0, NULL);
        run_for(b, 299 * USEC_PER_SEC);
        assert_int_equal(b->n_requests, 1);
        run_for(b, 2 * USEC_PER_SEC);
        assert_int_equal(b->n_requests, 2);

        print_message("  an edit elsewhere, a status, a path that comes back: none of these helps\n");
        evictor_pdb_edited(b->evictor, "elsewhere");
        assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 1), 0);
        evictor_kick(b->evictor);
        run_for(b, USEC_PER_SEC);
        assert_int_equal(b->n_requests, 2);

        print_message("  an edit, in vain; and one more\n");
        evictor_pdb_edited(b->evictor, "shop");
        run_for(b, 200 * USEC_PER_SEC);
        assert_int_equal(b->n_requests, 3);
        eviction_pod_edited(b->wishes[0]);
        run_for(b, 299 * USEC_PER_SEC);
        assert_int_equal(b->n_requests, 4);
        b->now = (Answer){ 201, CREATED, NULL, false };
        evictor_pdb_edited(b->evictor, "shop");
        run_for(b, ANSWER_USEC + MSEC);
        assert_int_equal(n_accepted(b), 1);

        print_message("  what rests for another reason is not woken\n");
        b->now = (Answer){ 403, "{}", NULL, false };
        wish(b, 1, NULL);
        run_for(b, USEC_PER_SEC);
        eviction_pod_edited(b->wishes[1]);
        evictor_pdb_edited(b->evictor, "shop");
        run_for(b, USEC_PER_SEC);
        assert_int_equal(b->n_requests, 6);
}

/* The pod is seen gone while its eviction is under way, and then the process ends. */
TEST_CASE(test_freed_before_an_answer) {
        _cleanup_(bench_freep) Bench *b = bench_new(NULL);

        wish(b, 0, NULL);
        run_for(b, ANSWER_USEC / 2);
        assert_true(eviction_is_under_way(b->wishes[0]));
        b->wishes[0] = eviction_detach(b->wishes[0]);
        b->evictor = evictor_free(b->evictor);
        run_for(b, USEC_PER_SEC);
        assert_int_equal(b->n_reports[0], 0);
}

/* One that nobody waits for any more keeps its place in the window until it is answered. */
TEST_CASE(test_detached_keeps_its_place) {
        _cleanup_(bench_freep) Bench *b = bench_new(&(EvictorOptions){ .window_start = 2, .window_max = 2 });

        for (size_t i = 0; i < 3; i++)
                wish(b, i, NULL);
        run_for(b, ANSWER_USEC / 2);
        assert_int_equal(b->n_requests, 2);
        for (size_t i = 0; i < 2; i++)
                b->wishes[i] = eviction_detach(b->wishes[i]);
        run_for(b, ANSWER_USEC / 4);
        assert_int_equal(b->n_requests, 2);
        run_for(b, ANSWER_USEC);
        assert_int_equal(b->n_requests, 3);
}

/* No answer, and the network comes back: at once, but one of a PDB at a time. */
TEST_CASE(test_kick) {
        _cleanup_(bench_freep) Bench *b = bench_new(NULL);
        unsigned before;

        b->now = (Answer){ .lost = true };
        assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 5), 0);
        for (size_t i = 0; i < 2; i++)
                wish(b, i, i < 1 ? "web" : NULL);
        run_for(b, 3 * USEC_PER_MINUTE);
        for (size_t i = 0; evictor_stats(b->evictor).in_flight > 0; i++) { /* until each waits for some seconds */
                assert_true(i < 10 * 60 * 60);
                run_for(b, 100 * MSEC);
        }
        before = b->n_requests;
        b->now = (Answer){ 201, CREATED, NULL, false };
        evictor_kick(b->evictor);
        wish(b, 2, "web");
        run_for(b, ANSWER_USEC / 2);
        assert_int_equal(b->n_requests, before + 2);
        run_for(b, 3 * ANSWER_USEC);
        assert_int_equal(n_accepted(b), 3);
}

TEST_CASE(test_moving_between_pdbs) {
        _cleanup_(bench_freep) Bench *b = bench_new(NULL);

        assert_return_code(evictor_set_allowed(b->evictor, "shop", "web", 0), 0);
        assert_return_code(evictor_set_allowed(b->evictor, "shop", "api", 1), 0);
        wish(b, 0, "web");
        run_for(b, USEC_PER_SEC);
        assert_int_equal(b->n_requests, 0);
        assert_return_code(eviction_set_pdb(b->wishes[0], "api"), 0);
        run_for(b, USEC_PER_SEC);
        assert_int_equal(n_accepted(b), 1);

        print_message("  no PDB matches it any more\n");
        wish(b, 1, "web");
        assert_return_code(eviction_set_pdb(b->wishes[1], NULL), 0);
        run_for(b, USEC_PER_SEC);
        assert_int_equal(n_accepted(b), 2);

        print_message("  we think so, and the API server does not: no hammering\n");
        b->now = (Answer){ 429, BLOCKED, NULL, false };
        wish(b, 2, NULL);
        for (size_t i = 0; i < 600; i++) {
                run_for(b, 100 * MSEC);
                assert_return_code(eviction_set_pdb(b->wishes[2], NULL), 0);
        }
        assert_in_range(b->n_requests, 6, 16);
}

/* -- slots ---------------------------------------------------------------------------------------------- */

TEST_CASE(test_dropping) {
        _cleanup_(bench_freep) Bench *b = bench_new(&(EvictorOptions){ .window_start = 2 });

        print_message("  in flight, ready, queued, and behind a closed gate\n");
        assert_return_code(evictor_set_allowed(b->evictor, "shop", "shut", 0), 0);
        for (size_t i = 0; i < 5; i++)
                wish(b, i, NULL);
        for (size_t i = 5; i < 8; i++)
                wish(b, i, "web");
        wish(b, 8, "shut");
        run_for(b, MSEC);
        assert_int_equal(b->n_requests, 2);
        for (size_t i = 0; i < 9; i++)
                if (i != 4 && i != 6)
                        b->wishes[i] = eviction_free(b->wishes[i]);
        run_for(b, USEC_PER_SEC);
        assert_int_equal(b->n_requests, 4);
        assert_int_equal(b->n_reports[4], 1);
        assert_int_equal(b->n_reports[6], 1);
        assert_int_equal(evictor_stats(b->evictor).in_flight, 0);

        print_message("  sleeping, and the next of its PDB takes over\n");
        b->now = (Answer){ 429, BLOCKED, NULL, false };
        wish(b, 10, "web");
        wish(b, 11, "web");
        run_for(b, 100 * MSEC);
        assert_int_equal(b->n_reports[10], 1);
        b->wishes[10] = eviction_free(b->wishes[10]);
        b->now = (Answer){ 201, CREATED, NULL, false };
        run_for(b, 100 * MSEC);
        assert_int_equal(b->reports[11].answer, EVICTION_ACCEPTED);

        print_message("  from inside its report\n");
        b->drop_when_told = true;
        b->now = (Answer){ 503, "{}", NULL, false };
        wish(b, 12, "web");
        wish(b, 13, NULL);
        run_for(b, USEC_PER_MINUTE);
        assert_null(b->wishes[12]);
        assert_null(b->wishes[13]);
        assert_int_equal(b->n_requests, 8);
}

TEST_CASE(test_grace) {
        _cleanup_(bench_freep) Bench *b = bench_new(NULL);

        b->now = (Answer){ 503, "{}", NULL, false };
        wish(b, 0, NULL);
        run_for(b, 100 * MSEC);
        assert_null(strstr(b->last_body, "gracePeriodSeconds"));
        eviction_set_grace(b->wishes[0], 7);
        run_for(b, USEC_PER_SEC);
        assert_non_null(strstr(b->last_body, "\"gracePeriodSeconds\":7"));
}

static bool never(void *userdata) {
        return false;
}

TEST_CASE(test_guard) {
        _cleanup_(bench_freep) Bench *b = bench_new(&(EvictorOptions){ .guard = { never, NULL } });

        wish(b, 0, NULL);
        run_for(b, USEC_PER_MINUTE);
        assert_int_equal(b->n_requests, 0);
}

static bool is_true(void *userdata) {
        return *(bool *) userdata;
}

/* Without permit nothing leaves and nothing is counted as tried; with it, all at once. */
TEST_CASE(test_permit) {
        bool given = false;
        _cleanup_(bench_freep) Bench *b = bench_new(&(EvictorOptions){ .permit = { is_true, &given } });

        for (size_t i = 0; i < 3; i++)
                wish(b, i, NULL);
        run_for(b, USEC_PER_MINUTE);
        assert_int_equal(b->n_requests, 0);
        assert_int_equal(evictor_stats(b->evictor).waiting, 3);
        assert_false(evictor_has_permit(b->evictor));
        evictor_go_on(b->evictor);
        run_for(b, USEC_PER_SEC);
        assert_int_equal(b->n_requests, 0);

        given = true;
        evictor_go_on(b->evictor);
        run_for(b, USEC_PER_SEC);
        assert_int_equal(b->n_requests, 3);
        assert_int_equal(n_accepted(b), 3);
        assert_int_equal(b->reports[0].attempts, 1);
        for (size_t i = 0; i < 3; i++)
                assert_true(b->at_usec[i] < 62 * USEC_PER_SEC);
}

/* -- what lets the next one go -------------------------------------------------------------------------- */

/* In each row one wish is left that waits for one thing, and nothing else happens. */
TEST_CASE(test_one_cause) {
        static const struct {
                const char *what;
                const char *pdb; /* of the two before it */
                bool freed;      /* those two; else: answered, and nobody waits for them */
        } rows[] = {
                { "all under way are withdrawn", NULL, true },
                { "all under way of PDBs are withdrawn", "web", true },
                { "all under way are answered", NULL, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(bench_freep) Bench *b =
                        bench_new(&(EvictorOptions){ .window_start = 2, .window_max = 2 });

                print_message("  %s\n", rows[i].what);
                b->now.lost = rows[i].freed;
                wish(b, 0, rows[i].pdb);
                wish(b, 1, rows[i].pdb ? "api" : NULL);
                wish(b, 2, NULL);
                run_for(b, MSEC);
                assert_int_equal(b->n_requests, 2);
                b->now.lost = false;
                for (size_t k = 0; k < 2; k++)
                        b->wishes[k] = rows[i].freed ? eviction_free(b->wishes[k])
                                                     : eviction_detach(b->wishes[k]);
                run_for(b, 2 * ANSWER_USEC + MSEC);
                assert_int_equal(b->n_reports[2], 1);
                assert_int_equal(b->reports[2].answer, EVICTION_ACCEPTED);
        }
}

/* -- what else ends pods -------------------------------------------------------------------------------- */

static void on_admitted(EvictorAdmission *a, void *userdata) {
        Bench *b = userdata;

        b->n_admitted++;
}

static void admit(Bench *b, size_t begin, size_t end) {
        for (size_t i = begin; i < end; i++)
                assert_return_code(evictor_admit(b->evictor, on_admitted, b, &b->admissions[i]), 0);
}

/* So many that were given end, as the answer says. */
static void end_admissions(Bench *b, size_t n, const KubeReply *reply) {
        for (size_t i = 0; n > 0 && i < ELEMENTSOF(b->admissions); i++)
                if (b->admissions[i] && evictor_admission_is_given(b->admissions[i])) {
                        b->admissions[i] = evictor_admission_end(b->admissions[i], reply);
                        n--;
                }
        assert_int_equal(n, 0);
}

TEST_CASE(test_admissions) {
        _cleanup_(bench_freep) Bench *b = bench_new(&(EvictorOptions){ .window_start = 3, .window_max = 3 });

        admit(b, 0, 5);
        assert_int_equal(b->n_admitted, 0); /* never inside */
        run_for(b, MSEC);
        assert_int_equal(b->n_admitted, 3);
        run_for(b, USEC_PER_MINUTE);
        assert_int_equal(b->n_admitted, 3);

        print_message("  evictions take none of their places\n");
        b->now.lost = true;
        for (size_t i = 0; i < 5; i++)
                wish(b, i, NULL);
        run_for(b, MSEC);
        assert_int_equal(b->n_requests, 3);
        end_admissions(b, 1, NULL);
        run_for(b, MSEC);
        assert_int_equal(b->n_admitted, 4);

        print_message("  one that waits is withdrawn: its place in the list is the next one's\n");
        admit(b, 5, 7);
        b->admissions[4] = evictor_admission_end(b->admissions[4], NULL);
        end_admissions(b, 3, NULL);
        run_for(b, MSEC);
        assert_int_equal(b->n_admitted, 6);
}

TEST_CASE(test_admissions_and_rate) {
        _cleanup_(bench_freep) Bench *b = bench_new(NULL);
        Loop *l = kube_client_env(b->host->client)->loop;

        loop_set_pace(l, 50, 20 * MSEC);
        for (size_t i = 0; i < 100; i++)
                wish(b, i, NULL);
        admit(b, 0, 70);
        run_for(b, MSEC);
        print_message("  they are first, and what is left of the rate is the evictions'\n");
        assert_int_equal(b->n_admitted, 70);
        assert_int_equal(b->n_requests, 166 - 140); /* each admission is two requests */
        assert_int_equal(loop_pace(l), 60 * MSEC);
        run_for(b, 50 * MSEC);
        assert_in_range(b->n_requests, 166 - 140 + 24, 166 - 140 + 26);
        end_admissions(b, 70, NULL);
        run_for(b, USEC_PER_SEC);
        assert_int_equal(n_accepted(b), 100);
        assert_int_equal(loop_pace(l), 20 * MSEC);
}

/* 429 without a budget's name says the same to whatever leaves. */
TEST_CASE(test_admissions_and_flow_control) {
        _cleanup_(bench_freep) Bench *b = bench_new(NULL);
        const ApiError busy = { .http = 429, .retry_after_usec = 3 * USEC_PER_SEC };
        const KubeReply refused = { .error = &busy }, deleted = {};

        admit(b, 0, 1);
        run_for(b, MSEC);
        end_admissions(b, 1, &refused);
        assert_int_equal(evictor_stats(b->evictor).window, 80);
        admit(b, 1, 2);
        wish(b, 0, NULL);
        run_for(b, 2900 * MSEC);
        assert_int_equal(b->n_admitted, 1);
        assert_int_equal(b->n_requests, 0);
        run_for(b, 200 * MSEC);
        assert_int_equal(b->n_admitted, 2);
        assert_int_equal(n_accepted(b), 1);
        end_admissions(b, 1, &deleted);
        assert_int_equal(evictor_stats(b->evictor).window, 80);
}

TEST_CASE(test_admissions_and_permit) {
        bool given = false;
        _cleanup_(bench_freep) Bench *b = bench_new(&(EvictorOptions){ .permit = { is_true, &given } });

        admit(b, 0, 1);
        run_for(b, USEC_PER_MINUTE);
        assert_int_equal(b->n_admitted, 0);
        given = true;
        evictor_go_on(b->evictor);
        run_for(b, MSEC);
        assert_int_equal(b->n_admitted, 1);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_together),
                cmocka_unit_test(test_window_and_rate),
                cmocka_unit_test(test_cordons_have_their_part),
                cmocka_unit_test(test_flow_control),
                cmocka_unit_test(test_crowd),
                cmocka_unit_test(test_narrow_window),
                cmocka_unit_test(test_slow_server),
                cmocka_unit_test(test_no_answer),
                cmocka_unit_test(test_errors_are_tried_again),
                cmocka_unit_test(test_final_answers),
                cmocka_unit_test(test_gate),
                cmocka_unit_test(test_serial),
                cmocka_unit_test(test_status_before_answer),
                cmocka_unit_test(test_no_status_comes),
                cmocka_unit_test(test_gate_closes),
                cmocka_unit_test(test_gate_closes_under_way),
                cmocka_unit_test(test_probe),
                cmocka_unit_test(test_moving_between_pdbs),
                cmocka_unit_test(test_status_ends_a_rest),
                cmocka_unit_test(test_own_trouble),
                cmocka_unit_test(test_trouble_comes_back),
                cmocka_unit_test(test_webhook),
                cmocka_unit_test(test_webhook_pod_changed),
                cmocka_unit_test(test_never),
                cmocka_unit_test(test_never_for_a_moment),
                cmocka_unit_test(test_slow_webhook),
                cmocka_unit_test(test_several_pdbs),
                cmocka_unit_test(test_kick),
                cmocka_unit_test(test_freed_before_an_answer), cmocka_unit_test(test_detached_keeps_its_place),
                cmocka_unit_test(test_dropping),
                cmocka_unit_test(test_grace),
                cmocka_unit_test(test_guard),
                cmocka_unit_test(test_permit),
                cmocka_unit_test(test_one_cause),
                cmocka_unit_test(test_admissions),
                cmocka_unit_test(test_admissions_and_rate),
                cmocka_unit_test(test_admissions_and_flow_control),
                cmocka_unit_test(test_admissions_and_permit),
        };
        return cmocka_run_group_tests_name("evictor", tests, NULL, NULL);
}
