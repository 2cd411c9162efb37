/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between the files of log/: one finished message, and how each target writes it down. */

#include <stddef.h>
#include <time.h>

#include "log.h"
#include "string-util.h"
#include "time-util.h"

typedef struct LogRecord {
        LogLevel level;
        struct timespec time; /* wall clock */
        const char *identifier;
        const char *message_id; /* or NULL */
        const char *text;       /* redacted */
        const LogField *fields; /* values not yet redacted */
        size_t n_fields;
} LogRecord;

/* For how long its reader may be waited for. */
typedef struct LogPatience {
        usec_t left_usec;
        usec_t waited_usec; /* CLOCK_MONOTONIC: when it last was; 0: never */
} LogPatience;

/* One line each, with its line feed. */
void log_render_text(const LogRecord *record, StrBuf *b);
void log_render_json(const LogRecord *record, StrBuf *b);
/* A native message of the journal. *fd: the connection, or below 0; kept for the next. 0, or a negative
 * errno: it is lost; -EAGAIN: the journal has not taken it while there was patience. */
int log_send_journal(const LogRecord *record, int *fd, LogPatience *p);

/* Until fd takes something: above 0; 0: the patience is at an end; negative errno. What it took is charged.
 */
int log_wait(int fd, LogPatience *p);

/* A copy with secrets masked; NULL on ENOMEM. */
char *log_redacted_copy(const char *text);
