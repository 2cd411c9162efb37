/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * notice-file.c: a file of notices (notice-list.h), for bare metal and whatever else can write one: a UPS on battery, a
 * maintenance window. It is looked at each poll; whoever changes it renames a new one over it.
 *
 *      not there                            positively none
 *      read, and it is a list of notices    these
 *      anything else                        unknown: it cannot be read, or what it says. Nothing that is known is cancelled
 *
 * Who may write it has the node drained: it has to be a regular file of root (or of the agent's own user), and nobody else
 * may write it. What it announces is over as soon as it does not say so any more.
 */

#include "notice-source.h"

typedef struct NoticeFileOptions {
        const char *path; /* absolute */
        usec_t poll_usec;
} NoticeFileOptions;

int notice_file_new(Env *env, const NoticeFileOptions *o, notice_look_t on_look, void *userdata, NoticeSource **ret);
