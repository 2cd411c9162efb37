/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * notice-exec.c: notices (notice-list.h) that a command prints, for what no file can tell: a BMC, a ticket system, the state
 * of a UPS. It is run each poll, one at a time, and may take half a minute.
 *
 *      exit status 0, and nothing printed   positively none
 *      exit status 0, and a list            these
 *      anything else                        unknown, with the last line of its standard error; backs off with jitter, never
 *                                           slower than 8 x the poll interval
 *
 * It runs in the agent's sandbox, as root without capabilities, with a cleared environment: PATH, LANG, VESPER_NODE.
 */

#include "notice-source.h"

typedef struct NoticeExecOptions {
        char *const *command; /* argv; [0] is absolute */
        const char *node;     /* VESPER_NODE */
        usec_t poll_usec;
} NoticeExecOptions;

int notice_exec_new(Env *env, const NoticeExecOptions *o, notice_look_t on_look, void *userdata, NoticeSource **ret);
