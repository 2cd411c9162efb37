/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Child processes: exec plugins of a kubeconfig, providers by command. A seam. Input goes to stdin, output comes back
 * whole; secrets therefore never stand in an argument list. The child runs in its own process group, which is killed
 * when the slot is dropped or the time is up.
 */

#include <stdbool.h>
#include <stddef.h>

#include "loop.h"

typedef struct ChildRunner ChildRunner;
typedef struct Child Child;

typedef struct ChildRequest {
        char *const *argv;       /* argv[0]: absolute, or looked up in the PATH of `environment` */
        char *const *environment;/* complete: nothing is inherited */
        const void *input;
        size_t input_size;
        size_t max_output_bytes; /* of stdout; stderr is kept to its last 4 KiB */
        usec_t timeout_usec;
} ChildRequest;

typedef struct ChildResult {
        int error;          /* 0: it ran and exited; -ETIMEDOUT, -E2BIG (too much output), -ECHILD (killed by a signal), or
                             * the errno of starting it */
        int exit_status;    /* when error == 0 */
        const char *output; /* NUL-terminated; borrowed for the callback */
        size_t output_size;
        const char *errors; /* the end of stderr */
} ChildResult;

typedef void (*child_done_t)(const ChildResult *result, void *userdata);

typedef struct ChildRunnerOps {
        int (*start)(ChildRunner *r, const ChildRequest *request, child_done_t done, void *userdata, Child **ret);
        void (*cancel)(Child *c);
        void (*free)(ChildRunner *r);
} ChildRunnerOps;

struct ChildRunner {
        const ChildRunnerOps *ops;
};
struct Child {
        ChildRunner *runner;
};

int child_runner_new(Loop *l, ChildRunner **ret);
ChildRunner *child_runner_free(ChildRunner *r);
DEFINE_FREEP(ChildRunner, child_runner_free);

/* Everything of the request is copied. `done` comes once, from the loop, never inside this call, and not at all once the
 * slot was freed. The slot may be freed inside `done`. */
static inline int child_start(ChildRunner *r, const ChildRequest *request, child_done_t done, void *userdata, Child **ret) {
        return r->ops->start(r, request, done, userdata, ret);
}
static inline Child *child_free(Child *c) {
        if (c)
                c->runner->ops->cancel(c);
        return NULL;
}
DEFINE_FREEP(Child, child_free);
