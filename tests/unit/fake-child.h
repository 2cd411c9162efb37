/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A ChildRunner that runs nothing: each start takes the next answer of a script and gives it after a while
 * of the loop's time. */

#include "child-runner.h"
#include "list.h"

typedef struct FakeChildAnswer {
        usec_t after_usec;
        int start_error; /* child_start() itself fails */
        int error, exit_status;
        const char *output, *errors; /* NULL: "" */
} FakeChildAnswer;

typedef struct FakeChildren {
        ChildRunner runner;
        Loop *loop;
        FakeChildAnswer answers[96];
        size_t n_answers;
        size_t n_started; /* also the next answer; past the last one a child never ends */
        List children;
        char *argv;         /* of the last one, joined by spaces */
        char *input;        /* standard input of the last one */
        char **environment; /* of the last one */
        usec_t timeout_usec;
} FakeChildren;

FakeChildren *fake_children_new(Loop *l);
FakeChildren *fake_children_free(FakeChildren *f);
DEFINE_FREEP(FakeChildren, fake_children_free);
void fake_children_answer(FakeChildren *f, FakeChildAnswer answer);
/* The value in the environment of the last one; NULL if absent. */
const char *fake_children_env(const FakeChildren *f, const char *name);
