/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "alloc-util.h"
#include "file-util.h"
#include "log-internal.h"
#include "macro.h"

/*
 * The journal's native protocol (https://systemd.io/JOURNAL_NATIVE_PROTOCOL), one datagram a message. Not by
 * sd_journal_sendv(): its socket blocks. A journal whose disk hangs takes nothing any more, its queue fills
 * with what the whole machine says, and then everybody who logs stands still with it.
 */

#define CONNECTIONS 2u
#define BUFFER_BYTES (8 * 1024 * 1024) /* what sd_journal_sendv() has, too */
#define CUT_BYTES 4096u

/* "KEY=value", or, of more than one line, the key, the size in 64 bits of little endian, the value. Above
 * `max` bytes it is cut, between characters, and says so. */
static void add_field(StrBuf *b, const char *key, const char *value, size_t max) {
        _cleanup_free_ char *cut = NULL;
        uint64_t size = strlen(value);

        if (size > max) {
                size_t kept = max;

                while (kept > 0 && ((unsigned char) value[kept] & 0xc0) == 0x80)
                        kept--;
                cut = strf("%.*s [cut: %" PRIu64 " bytes, more than the journal takes]", (int) kept, value,
                           size);
                if (!cut) {
                        b->failed = true;
                        return;
                }
                value = cut;
                size = strlen(cut);
        }
        strbuf_add(b, key);
        if (!strchr(value, '\n'))
                strbuf_add_char(b, '=');
        else {
                strbuf_add_char(b, '\n');
                for (unsigned i = 0; i < sizeof(size); i++)
                        strbuf_add_char(b, (char) (size >> 8 * i & 0xff));
        }
        strbuf_add_n(b, value, size);
        strbuf_add_char(b, '\n');
}

/* Lack of memory loses this field only. */
static void add_redacted(StrBuf *b, const LogField *f, size_t max) {
        _cleanup_free_ char *value = log_redacted_copy(f->value);

        if (value)
                add_field(b, f->key, value, max);
}

/* Of a line of 400 bytes the kernel charges 1280, and a plain buffer is full of 166. More than the limit for
 * everybody (net.core.wmem_max) takes CAP_NET_ADMIN. */
static void enlarge_buffer(int fd) {
        static const int bytes = BUFFER_BYTES;

        if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) < 0)
                (void) setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

static int connect_journal(int *ret) {
        static const struct sockaddr_un journal = { .sun_family = AF_UNIX,
                                                    .sun_path = "/run/systemd/journal/socket" };
        _cleanup_close_ int fd = -EBADF;

        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || connect(fd, (const struct sockaddr *) &journal, sizeof(journal)) < 0)
                return -errno;
        enlarge_buffer(fd);
        *ret = TAKE_FD(fd);
        return 0;
}

static int send_datagram(int *fd, const StrBuf *b, LogPatience *p) {
        unsigned n_connected = 0;
        int r;

        if (b->failed)
                return -ENOMEM;
        for (;;) {
                if (*fd < 0) {
                        r = connect_journal(fd);
                        if (r < 0)
                                return r;
                        n_connected++;
                }
                if (send(*fd, b->data, b->size, MSG_NOSIGNAL) >= 0)
                        return 0;
                r = -errno;
                if (r == -ECONNREFUSED || r == -ENOTCONN || r == -ECONNRESET || r == -EPIPE) {
                        closep(fd); /* its socket was made anew */
                        if (n_connected == CONNECTIONS)
                                return r;
                } else if (r == -EAGAIN) {
                        if (log_wait(*fd, p) == 0)
                                return r;
                } else if (r != -EINTR)
                        return r;
        }
}

static int send_record(const LogRecord *record, int *fd, LogPatience *p, size_t max) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        char priority[] = { (char) ('0' + (int) record->level), 0 };

        add_field(&b, "MESSAGE", record->text, max);
        add_field(&b, "PRIORITY", priority, max);
        add_field(&b, "SYSLOG_IDENTIFIER", record->identifier, max);
        if (record->message_id)
                add_field(&b, "MESSAGE_ID", record->message_id, max);
        for (size_t i = 0; i < record->n_fields; i++)
                if (record->fields[i].value)
                        add_redacted(&b, record->fields + i, max);
        return send_datagram(fd, &b, p);
}

int log_send_journal(const LogRecord *record, int *fd, LogPatience *p) {
        int r = send_record(record, fd, p, SIZE_MAX);

        /* No datagram may be so large, or the kernel has no memory for one. */
        if (r == -EMSGSIZE || r == -ENOBUFS)
                r = send_record(record, fd, p, CUT_BYTES);
        return r;
}
