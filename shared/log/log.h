/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * log/: one sink per process: the journal (native fields), JSON lines or text on stderr. Functions of shared/ log at debug
 * only; daemons say what happened to which node, why, what comes next and what to do. Every operator-visible event has a
 * MESSAGE_ID in log-catalog.h. Never logged: tokens, user-data, signed headers: callers hand in no secret; as a second net
 * log_redact() masks bearer tokens, AWS signatures and X-Amz-Security-Token in any message.
 *
 * Who reads a log may hang, as the disk that it writes to does: the journal, or the container runtime at the other end of a pipe.
 * Logging waits for it 200 ms in all, however slowly it reads, and again only after 10 s in which it was not waited for; after a loss
 * not at all until it takes something again. What is lost is counted, and the log says how much that was. So a line takes 200 ms at
 * most, and any 10 s of lines take no more. (Standard error that several processes write to may take longer: log.c.)
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "macro.h"

typedef struct Log Log;

typedef enum LogLevel { /* syslog's numbers */
        LOG_LEVEL_ERROR = 3,
        LOG_LEVEL_WARNING = 4,
        LOG_LEVEL_NOTICE = 5,
        LOG_LEVEL_INFO = 6,
        LOG_LEVEL_DEBUG = 7,
} LogLevel;

typedef enum LogTarget {
        LOG_TARGET_JOURNAL,
        LOG_TARGET_JSON,
        LOG_TARGET_TEXT,
        LOG_TARGET_NULL,
        _LOG_TARGET_MAX,
        _LOG_TARGET_INVALID = -EINVAL,
} LogTarget;

/* A field of the journal: upper-case key ("NODE"), value NULL = left out. */
typedef struct LogField {
        const char *key;
        const char *value;
} LogField;

/* Where a line goes instead of the target: simulation traces, tests. `text` is the finished message. */
typedef void (*log_hook_t)(LogLevel level, const char *message_id, const char *text, const LogField *fields, size_t n_fields,
                           void *userdata);

/* identifier: "vesper-agent". -ENOMEM. */
int log_new(LogTarget target, LogLevel max_level, const char *identifier, Log **ret);
Log *log_free(Log *l);
DEFINE_FREEP(Log, log_free);
void log_set_hook(Log *l, log_hook_t hook, void *userdata);
void log_set_level(Log *l, LogLevel max_level);
void log_set_target(Log *l, LogTarget target);
/* By what standard error is: a terminal: text; the stream that systemd connected to the journal: journal; else JSON. */
LogTarget log_target_auto(void);
const char *log_target_to_string(LogTarget t);
LogTarget log_target_from_string(const char *s);
const char *log_level_to_string(LogLevel l);
int log_level_from_string(const char *s); /* -EINVAL */

bool log_enabled(const Log *l, LogLevel level); /* a NULL log is silent */

/* Returns -abs(error), so that `return log_error_errno(l, r, "...: %m")` stands in one line; %m is that error. */
int log_full(Log *l, LogLevel level, int error, const char *message_id, const LogField *fields, size_t n_fields,
             const char *fmt, ...) _printf_(7, 8);

#define LOG_FIELDS(...) \
        (const LogField[]){ __VA_ARGS__ }, sizeof((const LogField[]){ __VA_ARGS__ }) / sizeof(LogField)

#define log_full_cond(l, level, error, ...) \
        ({ \
                Log *_l = (l); \
                int _e = (error); \
                log_enabled(_l, level) ? log_full(_l, level, _e, NULL, NULL, 0, __VA_ARGS__) : -(_e < 0 ? -_e : _e); \
        })

#define log_debug(l, ...) ((void) log_full_cond(l, LOG_LEVEL_DEBUG, 0, __VA_ARGS__))
#define log_info(l, ...) ((void) log_full_cond(l, LOG_LEVEL_INFO, 0, __VA_ARGS__))
#define log_notice(l, ...) ((void) log_full_cond(l, LOG_LEVEL_NOTICE, 0, __VA_ARGS__))
#define log_warning(l, ...) ((void) log_full_cond(l, LOG_LEVEL_WARNING, 0, __VA_ARGS__))
#define log_error(l, ...) ((void) log_full_cond(l, LOG_LEVEL_ERROR, 0, __VA_ARGS__))
#define log_debug_errno(l, error, ...) log_full_cond(l, LOG_LEVEL_DEBUG, error, __VA_ARGS__)
#define log_warning_errno(l, error, ...) log_full_cond(l, LOG_LEVEL_WARNING, error, __VA_ARGS__)
#define log_error_errno(l, error, ...) log_full_cond(l, LOG_LEVEL_ERROR, error, __VA_ARGS__)

/* With fields and a message id: log_event(l, LOG_LEVEL_INFO, MESSAGE_DRAINED, LOG_FIELDS({ "NODE", n }), "...", ...); */
#define log_event(l, level, message_id, ...) ((void) log_full(l, level, 0, message_id, __VA_ARGS__))

/* Masks what looks like a secret, in place. */
void log_redact(char *text);
