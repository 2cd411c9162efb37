/* SPDX-License-Identifier: Apache-2.0 */
#include "kube-call.h"

/*
 *      WAITING --no crowd, or its turn----------+
 *                                               v
 *      HELD ---credential---------------------> SENT ---answer, failure---> done
 *        ^                                       | ^
 *        +---401, first time---------------------+ +--- GET or LIST on a connection that died, first time
 *
 * Whatever way it takes, it ends by its own deadline, which begins when it does not wait any more. A call
 * that nobody holds (detached) is freed before its `done`, so that `done` may do anything, free the client
 * included.
 */

#define DEFAULT_TIMEOUT_USEC (10 * USEC_PER_SEC)
#define DEFAULT_RESPONSE_BYTES_MAX (4u * 1024 * 1024)
/* A watch has no time-out of its own; so long it waits for a credential. */
#define WATCH_HOLD_USEC (150 * USEC_PER_SEC)
/* An API server begins to answer a watch at once. Priority and fairness may let it wait for 15 s before that,
 * a cache that is behind for 3 s more. */
#define WATCH_ANSWER_USEC (19 * USEC_PER_SEC)
/* So many calls at once are what the API server is busy with: each call beside them makes one of them
 * later. */
#define CROWD 16u
/* It serves no more of them sooner, and each is 20 kB of libcurl's. */
#define TOGETHER_MAX 32u
/* So long a crowd is let pass; most are gone by then. */
#define PATIENCE_USEC (10 * USEC_PER_SEC)

/* After each change of what is under way or waits. */
static void note_crowd(KubeClient *c) {
        size_t ahead = kube_client_under_way(c) + c->waiting[KUBE_RANK_FOLLOWS].size;

        c->crowd_usec = ahead < CROWD ? USEC_INFINITY : MIN(c->crowd_usec, loop_now(c->env->loop));
}

/* When the next call of that rank may go, as things are; USEC_INFINITY: one of them must end first. */
static usec_t turn_comes(const KubeClient *c, KubeRank rank) {
        if (rank != KUBE_RANK_TELLS || c->crowd_usec == USEC_INFINITY)
                return c->n_under_way[rank] < TOGETHER_MAX ? 0 : USEC_INFINITY;
        return c->n_under_way[rank] == 0 ? usec_add(c->crowd_usec, PATIENCE_USEC) : USEC_INFINITY;
}

static void plan_turns(KubeClient *c) {
        for (KubeRank rank = KUBE_RANK_FOLLOWS; rank < _KUBE_RANK_MAX; rank++)
                if (c->waiting[rank].size > 0)
                        timer_arm_earlier(c->turn, turn_comes(c, rank));
}

/* Of the first rank, what the API server has to write. A Lease is alone, and never part of a crowd. */
static bool call_counts(const KubeCall *c) {
        return c->options.rank != KUBE_RANK_FIRST || c->verb == KUBE_VERB_EVICT ||
               c->verb == KUBE_VERB_PATCH || c->verb == KUBE_VERB_CREATE || c->verb == KUBE_VERB_DELETE;
}

static void call_count(KubeCall *c) {
        KubeClient *client = c->client;
        usec_t now = loop_now(client->env->loop);
        KubeRank rank = c->options.rank;

        list_append(&client->calls, &c->calls);
        c->waiting = rank != KUBE_RANK_FIRST &&
                     (client->waiting[rank].size > 0 || turn_comes(client, rank) > now);
        if (c->waiting)
                list_append(&client->waiting[rank], &c->waits);
        else if (call_counts(c))
                client->n_under_way[rank]++;
        note_crowd(client);
        plan_turns(client);
}

static void call_uncount(KubeCall *c) {
        KubeClient *client = c->client;
        KubeRank rank = c->options.rank;

        list_remove(&client->calls, &c->calls);
        if (c->waiting)
                list_remove(&client->waiting[rank], &c->waits);
        else if (call_counts(c))
                client->n_under_way[rank]--;
        note_crowd(client);
        plan_turns(client);
}

static KubeCall *call_destroy(KubeCall *c) {
        call_uncount(c);
        http_call_free(c->http);
        timer_free(c->hold);
        watch_lines_done(&c->lines);
        watch_frames_done(&c->frames);
        free(c->url);
        free(c->body);
        free(c);
        return NULL;
}

KubeCall *kube_call_free(KubeCall *c) {
        if (!c)
                return NULL;

        /* Inside its own event the stream above us is still at work: it is told to end, and cleans up. */
        if (c->in_event) {
                c->detached = true;
                c->done = NULL;
                c->on_event = NULL;
                return NULL;
        }
        return call_destroy(c);
}

/* -- the end -------------------------------------------------------------------------------------------- */

static void call_deliver(KubeCall *c, const KubeReply *reply) {
        kube_done_t done = c->done;
        void *userdata = c->userdata;

        if (c->detached)
                call_destroy(c);
        if (done)
                done(reply, userdata);
        /* The call may be gone. */
}

/* When there is no memory to say what went wrong. */
static void call_deliver_error(KubeCall *c, int r, ApiError *e, KubeReply *reply) {
        char text[] = "out of memory";
        const ApiError short_of_memory = { .error = -ENOMEM, .maybe_sent = true, .message = text };

        reply->error = r < 0 ? &short_of_memory : e;
        call_deliver(c, reply);
        api_error_done(e);
}

static bool body_is_raw(const KubeCall *c) {
        return c->verb == KUBE_VERB_LIST || c->verb == KUBE_VERB_WATCH;
}

static bool headers_say_protobuf(const HttpHeader *headers, size_t n_headers) {
        return kube_type_is_protobuf(http_header_find(headers, n_headers, "Content-Type"));
}

static void call_finish(KubeCall *c, const HttpResponse *response) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        KubeReply reply = {
                .status = response->status,
                .body = strempty(response->body),
                .body_size = response->body_size,
                .protobuf = c->protobuf,
                .started_usec = response->started_usec,
                .finished_usec = response->finished_usec,
                .response = response,
        };
        /* A 5xx may be of a proxy before the API server, whose clock is another. */
        usec_t date = response->error < 0 || response->status >= 500 ? 0 : http_date(response);
        ApiError e = { 0 };
        JsonError where;
        int r;

        if (date > 0)
                loop_note_server_clock(c->client->env->loop, date, response->started_usec, response->finished_usec);
        if (response->error < 0) {
                r = api_error_from_transport(response->error, response->error_text, response->maybe_sent,
                                             &e);
                call_deliver_error(c, r, &e, &reply);
                return;
        }
        if (response->status < 200 || response->status >= 300) {
                r = api_error_from_body(response->status, response->body, response->body_size,
                                        http_retry_after(response, loop_wall(c->client->env->loop)), &e);
                call_deliver_error(c, r, &e, &reply);
                return;
        }
        /* Of a stream its headers have told. */
        if (c->shape && !c->protobuf)
                c->protobuf = headers_say_protobuf(response->headers, response->n_headers);
        reply.protobuf = c->protobuf;
        if (!body_is_raw(c) && response->body_size > 0) {
                r = c->options.object_unread
                            ? json_check(response->body, response->body_size, response->body_size, &where)
                            : json_parse_without(response->body, response->body_size, response->body_size,
                                                 NULL, &doc, &where);
                if (r < 0) {
                        _cleanup_free_ char *text =
                                r == -EBADMSG ? strf("the answer is no JSON: %s", where.message) : NULL;

                        r = api_error_from_transport(r, text, true, &e);
                        call_deliver_error(c, r, &e, &reply);
                        return;
                }
                reply.object = doc ? json_root(doc) : NULL;
        }
        call_deliver(c, &reply);
}

/* Ended by us, before a request left (again). */
static void call_fail(KubeCall *c, int error, const char *text) {
        usec_t now = loop_now(c->client->env->loop);
        const HttpResponse response = {
                .error = error,
                .error_text = text,
                .body = "",
                .started_usec = now,
                .finished_usec = now,
        };

        call_finish(c, &response);
}

/* -- watch ---------------------------------------------------------------------------------------------- */

static int on_line(const char *line, size_t size, void *userdata) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        KubeCall *c = userdata;
        const Json *object;
        const char *type;
        int r;

        r = json_parse_without(line, size, WATCH_LINE_BYTES_MAX, &c->omits, &doc, NULL);
        if (r < 0)
                return r;
        object = json_get(json_root(doc), "object");
        if (json_string(json_get(json_root(doc), "type"), &type) < 0 || !json_is_object(object))
                return -EBADMSG;

        r = c->on_event(type, object, c->userdata);
        return c->on_event ? r : -ECANCELED;
}

static int on_frame(const char *frame, size_t size, void *userdata) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        KubeCall *c = userdata;
        const char *type;
        int r;

        r = kube_protobuf_event(frame, size, c->shape, &type, &doc);
        if (r < 0)
                return r;
        r = c->on_event(type, json_root(doc), c->userdata);
        return c->on_event ? r : -ECANCELED;
}

static void on_headers(const HttpHeader *headers, size_t n_headers, void *userdata) {
        KubeCall *c = userdata;

        c->protobuf = c->shape && headers_say_protobuf(headers, n_headers);
}

static int on_data(const void *data, size_t size, void *userdata) {
        KubeCall *c = userdata;
        int r;

        if (!c->on_event)
                return -ECANCELED;
        c->in_event = true;
        r = c->protobuf ? watch_frames_feed(&c->frames, data, size, on_frame, c)
                        : watch_lines_feed(&c->lines, data, size, on_line, c);
        c->in_event = false;
        return r;
}

/* -- sending -------------------------------------------------------------------------------------------- */

static void on_response(const HttpResponse *response, void *userdata);

static void on_hold_over(Timer *t, void *userdata) {
        _cleanup_free_ char *text = NULL;
        KubeCall *c = userdata;
        const char *problem = kube_auth_problem(c->client->auth);

        c->held = false;
        if (c->hold_error < 0) {
                call_fail(c, c->hold_error, NULL);
                return;
        }
        text = strf("no credential came in time%s%s", problem ? ": " : "", strempty(problem));
        call_fail(c, -ETIMEDOUT, text);
}

static int call_hold(KubeCall *c) {
        Loop *loop = c->client->env->loop;
        int r;

        if (!c->hold) {
                r = timer_new(loop, "kube call without credential", on_hold_over, c, &c->hold);
                if (r < 0)
                        return r;
        }
        c->held = true;
        timer_arm(c->hold, c->deadline_usec != USEC_INFINITY ? c->deadline_usec
                                                             : usec_add(loop_now(loop), WATCH_HOLD_USEC));
        return 0;
}

static void keep_lane_warm(KubeClient *c, HttpLane lane) {
        if (c->warm[lane].timer)
                timer_arm_in(c->warm[lane].timer, c->warm[lane].interval_usec);
}

static int call_send(KubeCall *c) {
        KubeClient *client = c->client;
        HttpHeader headers[4 + KUBE_IMPERSONATION_MAX];
        const char *authorization = NULL;
        HttpTls *tls = NULL;
        HttpRequest q = {
                .method = c->method,
                .url = c->url,
                .headers = headers,
                .body = c->body,
                .body_size = c->body ? strlen(c->body) : 0,
                .lane = c->options.lane,
                .coalesced = c->coalesced,
                .stall_usec = c->stall_usec,
                .answer_usec = c->verb == KUBE_VERB_WATCH ? WATCH_ANSWER_USEC : 0,
                .max_response_bytes = c->options.max_response_bytes,
                .guard = c->options.guard,
                .on_data = c->verb == KUBE_VERB_WATCH ? on_data : NULL,
                .on_headers = on_headers,
        };
        int r;

        if (!kube_auth_get(client->auth, &tls, &authorization))
                return call_hold(c);

        q.tls = tls;
        q.timeout_usec = c->deadline_usec == USEC_INFINITY
                                 ? USEC_INFINITY
                                 : MAX(usec_sub(c->deadline_usec, loop_now(client->env->loop)), (usec_t) 1);
        headers[q.n_headers++] =
                (HttpHeader){ "Accept", c->shape ? KUBE_ACCEPT_PROTOBUF : "application/json" };
        headers[q.n_headers++] = (HttpHeader){ "User-Agent", client->user_agent };
        if (c->content_type)
                headers[q.n_headers++] = (HttpHeader){ "Content-Type", c->content_type };
        if (authorization)
                headers[q.n_headers++] = (HttpHeader){ "Authorization", authorization };
        for (size_t i = 0; i < client->n_impersonation; i++)
                headers[q.n_headers++] = client->impersonation[i];

        r = http_call_start(client->env->transport, &q, on_response, c, &c->http);
        if (r < 0)
                return r;
        client->n_requests[c->verb]++;
        keep_lane_warm(client, c->options.lane);
        return 0;
}

void kube_call_send_held(KubeCall *c) {
        const char *authorization;
        HttpTls *tls;
        int r;

        if (!c->held || !kube_auth_get(c->client->auth, &tls, &authorization))
                return;

        c->held = false;
        timer_disarm(c->hold);
        r = call_send(c);
        if (r < 0) {
                c->hold_error = r;
                timer_arm_in(c->hold, 0);
        }
}

/* The next one whose turn it is, or NULL. */
static KubeCall *take_turn(KubeClient *client) {
        usec_t now = loop_now(client->env->loop);

        for (KubeRank rank = KUBE_RANK_FOLLOWS; rank < _KUBE_RANK_MAX; rank++) {
                KubeCall *c = LIST_ENTRY(client->waiting[rank].first, KubeCall, waits);

                if (!c || turn_comes(client, rank) > now)
                        continue;
                list_remove(&client->waiting[rank], &c->waits);
                c->waiting = false;
                client->n_under_way[rank]++;
                note_crowd(client);
                return c;
        }
        return NULL;
}

static void call_renew_body(KubeCall *c) {
        char *body = c->options.body_now && c->body ? c->options.body_now(c->userdata) : NULL;

        if (!body)
                return;
        free(c->body);
        c->body = body;
}

void kube_call_on_admission(Timer *t, void *userdata) {
        KubeClient *client = userdata;
        KubeCall *c;
        int r;

        while ((c = take_turn(client))) {
                c->deadline_usec = usec_add(loop_now(client->env->loop), c->options.timeout_usec);
                call_renew_body(c);
                r = call_send(c);
                if (r >= 0)
                        continue;
                timer_arm_in(t, 0);
                call_fail(c, r, NULL); /* may free the client */
                return;
        }
        plan_turns(client);
}

/* 0: it goes on, -errno: it could not; 1: nothing to repeat. */
static int call_repeat(KubeCall *c, const HttpResponse *response) {
        bool unauthorized = response->error == 0 && response->status == 401;
        bool died = response->error == -ECONNRESET && c->method == HTTP_GET && c->verb != KUBE_VERB_WATCH;

        if (loop_now(c->client->env->loop) >= c->deadline_usec)
                return 1;
        if (unauthorized && !c->credential_refreshed) {
                c->credential_refreshed = true;
                c->http = http_call_free(c->http);
                return kube_auth_rejected(c->client->auth) ? call_hold(c) : call_send(c);
        }
        if (died && !c->dialled_again) {
                c->dialled_again = true;
                c->http = http_call_free(c->http);
                return call_send(c);
        }
        return 1;
}

/* Other failures say nothing of the way: a request that was not sent, an answer that did not come. Nor does the end of a watch
 * that began before. */
static void note_path(KubeClient *c, const HttpResponse *response) {
        bool lost = response->error == -EHOSTUNREACH;

        if ((response->error < 0 && !lost) || lost == c->has_no_path)
                return;
        if (!lost && response->started_usec < c->no_path_usec)
                return;
        c->has_no_path = lost;
        c->no_path_usec = response->finished_usec;
        if (c->path_fn)
                c->path_fn(!lost, c->path_userdata);
}

static void on_response(const HttpResponse *response, void *userdata) {
        KubeCall *c = userdata;

        note_path(c->client, response);

        /* Where the repeat itself fails, the first answer is the one to tell. */
        if (c->on_event || c->verb != KUBE_VERB_WATCH)
                if (call_repeat(c, response) == 0)
                        return;
        call_finish(c, response);
}

int kube_call_start(KubeClient *c, const KubeCallPlan *plan, StrBuf *url, kube_done_t done, void *userdata,
                    KubeCall **ret) {
        KubeCall *call;
        int r;

        assert(c);
        assert(!plan->body == !plan->content_type);

        call = new0(KubeCall, 1);
        if (!call)
                return -ENOMEM;

        *call = (KubeCall){
                .client = c,
                .verb = plan->verb,
                .method = plan->method,
                .options = plan->options,
                .stall_usec = plan->stall_usec,
                .coalesced = plan->coalesced,
                .content_type = plan->content_type,
                .done = done,
                .on_event = plan->on_event,
                .omits = plan->omits,
                .shape = plan->shape,
                .userdata = userdata,
                .detached = !ret,
        };
        if (c->limit_usec > 0 && plan->verb != KUBE_VERB_WATCH)
                call->options.timeout_usec = c->limit_usec;
        else if (call->options.timeout_usec == 0)
                call->options.timeout_usec = DEFAULT_TIMEOUT_USEC;
        if (call->options.max_response_bytes == 0)
                call->options.max_response_bytes = DEFAULT_RESPONSE_BYTES_MAX;
        call->deadline_usec = usec_add(loop_now(c->env->loop), call->options.timeout_usec);
        call_count(call);

        call->url = strbuf_steal(url);
        r = call->url ? free_and_strdup(&call->body, plan->body) : -ENOMEM;
        if (r >= 0 && !call->waiting)
                r = call_send(call);
        if (r < 0) {
                call_destroy(call);
                return r;
        }
        if (ret)
                *ret = call;
        return 0;
}
