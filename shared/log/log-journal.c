/* SPDX-License-Identifier: Apache-2.0 */
#define SD_JOURNAL_SUPPRESS_LOCATION /* it would always be this file */
#include <sys/uio.h>

#include <systemd/sd-journal.h>

#include "alloc-util.h"
#include "log-internal.h"
#include "macro.h"

/* What every message has: MESSAGE, PRIORITY, SYSLOG_IDENTIFIER, MESSAGE_ID. */
#define N_OWN_FIELDS 4u

static void free_iovecs(struct iovec *v, size_t n) {
        if (v)
                for (size_t i = 0; i < n; i++)
                        free(v[i].iov_base);
        free(v);
}

/* Takes `text`, an assignment "KEY=value"; NULL is a lack of memory and loses this field only. */
static void add_assignment(struct iovec *v, size_t *n, char *text) {
        if (text)
                v[(*n)++] = (struct iovec){ .iov_base = text, .iov_len = strlen(text) };
}

static char *field_assignment(const LogField *f) {
        _cleanup_free_ char *value = log_redacted_copy(f->value);

        return value ? strf("%s=%s", f->key, value) : NULL;
}

void log_send_journal(const LogRecord *record) {
        struct iovec *v;
        size_t n = 0;

        v = new0(struct iovec, N_OWN_FIELDS + record->n_fields);
        if (!v)
                return;
        add_assignment(v, &n, strf("MESSAGE=%s", record->text));
        add_assignment(v, &n, strf("PRIORITY=%d", (int) record->level));
        add_assignment(v, &n, strf("SYSLOG_IDENTIFIER=%s", record->identifier));
        if (record->message_id)
                add_assignment(v, &n, strf("MESSAGE_ID=%s", record->message_id));
        for (size_t i = 0; i < record->n_fields; i++)
                if (record->fields[i].value)
                        add_assignment(v, &n, field_assignment(record->fields + i));
        (void) sd_journal_sendv(v, (int) n);
        free_iovecs(v, n);
}
