/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-fault.h"

#include <limits.h>

#include "fake-json.h"

typedef struct Hanging {
        ListNode hanging;
        FakeFault *fault;
} Hanging;

void fake_fault_set(FakeFault *f, unsigned parts, unsigned n, unsigned status, const char *body) {
        char *copy = body ? MUST(strdup(body)) : NULL;

        free(f->body);
        f->parts = parts;
        f->n = n;
        f->status = status;
        f->body = copy;
}

void fake_fault_done(FakeFault *f) {
        assert(f->hanging.size == 0);
        free(f->body);
        *f = (FakeFault){ 0 };
}

static void on_gone(HttpExchange *x, void *userdata) {
        Hanging *h = userdata;

        list_remove(&h->fault->hanging, &h->hanging);
        free(h);
}

void fake_fault_hang(FakeFault *f, HttpExchange *x) {
        Hanging *h = MUST(new0(Hanging, 1));

        h->fault = f;
        list_append(&f->hanging, &h->hanging);
        x->on_gone = on_gone;
        x->userdata = h;
}

FakeFate fake_fault_meet(FakeFault *f, HttpExchange *x, unsigned part, unsigned *ret_status,
                         const char **ret_body) {
        if (f->n == 0 || !(f->parts & part))
                return FAKE_FATE_SERVED;
        if (f->n != UINT_MAX)
                f->n--;
        *ret_status = f->status;
        *ret_body = f->body;
        if (f->status == 0) {
                fake_fault_hang(f, x);
                return FAKE_FATE_HANGS;
        }
        return f->body ? FAKE_FATE_GARBLED : FAKE_FATE_FAILS;
}
