/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-trouble.h"

#include <limits.h>

#include "fake-json.h"
#include "hashmap.h"
#include "list.h"

typedef struct Waiting {
        ListNode waiting;
        FakeTrouble trouble;
        char *operation, *code, *message, *body;
} Waiting;

/* An exchange that nobody will answer, and, if its request is obeyed, the one that the service answers
 * instead. */
typedef struct Held {
        ListNode held;
        FakeTroubles *troubles;
        HttpExchange stand_in;
        bool obeyed;   /* there is a stand-in */
        bool answered; /* and it is over */
} Held;

struct FakeTroubles {
        List waiting, held;
        Waiting *used;
        Hashmap *counts;
        size_t n_requests;
};

FakeTroubleKind fake_trouble_kind_from_string(const char *s) {
        static const char *const names[] = { "fail", "body", "hang", "lose" };

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (streq_ptr(s, names[i]))
                        return (FakeTroubleKind) i;
        return _FAKE_TROUBLE_INVALID;
}

FakeTroubles *fake_troubles_new(void) {
        FakeTroubles *f = MUST(new0(FakeTroubles, 1));
        int r = hashmap_new(0, &f->counts);

        assert(r >= 0);
        return f;
}

static Waiting *waiting_free(Waiting *w) {
        if (!w)
                return NULL;
        free(w->operation);
        free(w->code);
        free(w->message);
        free(w->body);
        return mfree(w);
}

FakeTroubles *fake_troubles_free(FakeTroubles *f) {
        if (!f)
                return NULL;
        assert(f->held.size == 0);
        fake_troubles_clear(f);
        waiting_free(f->used);
        hashmap_free_with(f->counts, mfree);
        return mfree(f);
}

static char *copy(const char *s) {
        return s ? MUST(strdup(s)) : NULL;
}

void fake_troubles_add(FakeTroubles *f, const FakeTrouble *trouble) {
        Waiting *w;

        assert(trouble->kind >= 0 && trouble->kind < _FAKE_TROUBLE_MAX);
        if (trouble->n == 0)
                return;
        w = MUST(new0(Waiting, 1));
        w->trouble = *trouble;
        w->trouble.operation = w->operation = copy(trouble->operation);
        w->trouble.code = w->code = copy(trouble->code);
        w->trouble.message = w->message = copy(trouble->message);
        w->trouble.body = w->body = copy(trouble->body);
        list_append(&f->waiting, &w->waiting);
}

void fake_troubles_clear(FakeTroubles *f) {
        LIST_FOREACH (w, &f->waiting, Waiting, waiting) {
                list_remove(&f->waiting, &w->waiting);
                waiting_free(w);
        }
}

/* -- exchanges without an answer ----------------------------------------------------------------------- */

static void on_held_gone(HttpExchange *x, void *userdata) {
        Held *h = userdata;

        if (h->obeyed && !h->answered && h->stand_in.on_gone)
                h->stand_in.on_gone(&h->stand_in, h->stand_in.userdata);
        list_remove(&h->troubles->held, &h->held);
        free(h);
}

static Held *of_stand_in(HttpExchange *x) {
        return CONTAINER_OF(x, Held, stand_in);
}

static void swallow_reply(HttpExchange *x, unsigned status, const HttpHeader *headers, size_t n_headers,
                          const void *body, size_t body_size) {
        of_stand_in(x)->answered = true;
}

static void swallow_begin(HttpExchange *x, unsigned status, const HttpHeader *headers, size_t n_headers) {
}

static void swallow_data(HttpExchange *x, const void *data, size_t size) {
}

static void swallow_end(HttpExchange *x, bool clean) {
        of_stand_in(x)->answered = true;
}

static const HttpExchangeOps swallow_ops = {
        .reply = swallow_reply,
        .stream_begin = swallow_begin,
        .stream_data = swallow_data,
        .stream_end = swallow_end,
};

static Held *hold(FakeTroubles *f, HttpExchange *x) {
        Held *h = MUST(new0(Held, 1));

        h->troubles = f;
        list_append(&f->held, &h->held);
        x->on_gone = on_held_gone;
        x->userdata = h;
        return h;
}

static HttpExchange *lose(FakeTroubles *f, HttpExchange *x) {
        HttpExchange request = *x;
        Held *h = hold(f, x);

        h->obeyed = true;
        h->stand_in = request;
        h->stand_in.ops = &swallow_ops;
        h->stand_in.on_gone = NULL;
        h->stand_in.userdata = NULL;
        return &h->stand_in;
}

/* -- requests ------------------------------------------------------------------------------------------ */

static void count(FakeTroubles *f, const char *operation) {
        size_t *n = hashmap_get(f->counts, operation);
        int r = 0;

        if (!n) {
                n = MUST(new0(size_t, 1));
                r = hashmap_put(f->counts, operation, n);
        }
        assert(r >= 0);
        (*n)++;
        f->n_requests++;
}

static const FakeTrouble *next(FakeTroubles *f, const char *operation) {
        LIST_FOREACH (w, &f->waiting, Waiting, waiting) {
                if (w->operation && !streq(w->operation, operation))
                        continue;
                if (w->trouble.n == UINT_MAX)
                        return &w->trouble;
                if (--w->trouble.n > 0)
                        return &w->trouble;
                list_remove(&f->waiting, &w->waiting);
                waiting_free(f->used);
                f->used = w;
                return &w->trouble;
        }
        return NULL;
}

const FakeTrouble *fake_troubles_take(FakeTroubles *f, const char *operation, HttpExchange **x) {
        const FakeTrouble *trouble;

        count(f, operation);
        trouble = next(f, operation);
        if (trouble && trouble->kind == FAKE_TROUBLE_HANG) {
                hold(f, *x);
                *x = NULL;
                return NULL;
        }
        if (trouble && trouble->kind == FAKE_TROUBLE_LOSE) {
                *x = lose(f, *x);
                return NULL;
        }
        return trouble;
}

size_t fake_troubles_n_requests(const FakeTroubles *f, const char *operation) {
        const size_t *n = operation ? hashmap_get(f->counts, operation) : &f->n_requests;

        return n ? *n : 0;
}
