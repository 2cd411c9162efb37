/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-child.h"

#include "string-util.h"
#include "strv.h"

typedef struct FakeChild {
        Child child;
        ListNode children;
        FakeChildren *f;
        FakeChildAnswer answer;
        Timer *timer;
        child_done_t done;
        void *userdata;
} FakeChild;

static void on_over(Timer *t, void *userdata) {
        FakeChild *c = userdata;
        const ChildResult result = {
                .error = c->answer.error,
                .exit_status = c->answer.exit_status,
                .output = strempty(c->answer.output),
                .output_size = strlen(strempty(c->answer.output)),
                .errors = strempty(c->answer.errors),
        };

        c->done(&result, c->userdata);
}

static int fake_start(ChildRunner *r, const ChildRequest *request, child_done_t done, void *userdata,
                      Child **ret) {
        FakeChildren *f = CONTAINER_OF(r, FakeChildren, runner);
        FakeChildAnswer answer = { .after_usec = USEC_INFINITY };
        FakeChild *c;

        if (f->n_started < f->n_answers)
                answer = f->answers[f->n_started];
        f->n_started++;
        free(f->argv);
        f->argv = strv_join(request->argv, " ");
        free(f->input);
        f->input = request->input ? strndup(request->input, request->input_size) : NULL;
        strv_free(f->environment);
        f->environment = strv_copy(request->environment);
        f->timeout_usec = request->timeout_usec;
        if (answer.start_error < 0)
                return answer.start_error;

        c = new0(FakeChild, 1);
        assert(c);
        c->child.runner = r;
        c->f = f;
        c->answer = answer;
        c->done = done;
        c->userdata = userdata;
        list_append(&f->children, &c->children);
        assert(timer_new(f->loop, "fake child", on_over, c, &c->timer) >= 0);
        if (answer.after_usec != USEC_INFINITY)
                timer_arm_in(c->timer, answer.after_usec);
        *ret = &c->child;
        return 0;
}

static void fake_cancel(Child *child) {
        FakeChild *c = CONTAINER_OF(child, FakeChild, child);

        list_remove(&c->f->children, &c->children);
        timer_free(c->timer);
        free(c);
}

static void fake_free(ChildRunner *r) {
        FakeChildren *f = CONTAINER_OF(r, FakeChildren, runner);

        assert(f->children.size == 0);
        free(f->argv);
        free(f->input);
        strv_free(f->environment);
        free(f);
}

static const ChildRunnerOps fake_ops = {
        .start = fake_start,
        .cancel = fake_cancel,
        .free = fake_free,
};

FakeChildren *fake_children_new(Loop *l) {
        FakeChildren *f = new0(FakeChildren, 1);

        assert(f);
        f->runner.ops = &fake_ops;
        f->loop = l;
        return f;
}

FakeChildren *fake_children_free(FakeChildren *f) {
        if (f)
                fake_free(&f->runner);
        return NULL;
}

void fake_children_answer(FakeChildren *f, FakeChildAnswer answer) {
        assert(f->n_answers < ELEMENTSOF(f->answers));
        f->answers[f->n_answers++] = answer;
}

const char *fake_children_env(const FakeChildren *f, const char *name) {
        size_t n = strlen(name);

        STRV_FOREACH (i, f->environment)
                if (strncmp(*i, name, n) == 0 && (*i)[n] == '=')
                        return *i + n + 1;
        return NULL;
}
