/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmocka-test.h"
#include "file-util.h"
#include "log-catalog.h"
#include "log.h"
#include "string-util.h"
#include "time-util.h"

/* -- standard error, caught ----------------------------------------------------------------------------- */

typedef struct Capture {
        int saved_fd, read_fd;
} Capture;

static Capture capture_begin(void) {
        Capture c;
        int fds[2];

        assert_return_code(pipe2(fds, O_CLOEXEC | O_NONBLOCK), errno);
        c.read_fd = fds[0];
        c.saved_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
        assert_return_code(c.saved_fd, errno);
        assert_return_code(dup2(fds[1], STDERR_FILENO), errno);
        close(fds[1]);
        return c;
}

static void capture_end(Capture c, char *ret, size_t size) {
        ssize_t n;

        assert_return_code(dup2(c.saved_fd, STDERR_FILENO), errno);
        n = read(c.read_fd, ret, size - 1);
        ret[n > 0 ? n : 0] = 0;
        close(c.saved_fd);
        close(c.read_fd);
}

TEST_CASE(test_text) {
        static const struct {
                const char *what, *message;
                LogField fields[3];
                const char *expected; /* behind the time of day */
        } rows[] = {
                { "a message", "Drained", { { 0 } }, " warning Drained\n" },
                { "with fields",
                  "Drained",
                  { { "NODE", "n1" }, { "POD", "a/b" } },
                  " warning Drained (NODE=n1 POD=a/b)\n" },
                { "a field without a value is left out",
                  "Drained",
                  { { "NODE", NULL }, { "POD", "a/b" } },
                  " warning Drained (POD=a/b)\n" },
                { "no line starts inside a message",
                  "x\n00:00:00.000 error   forged\x1b[0m",
                  { { 0 } },
                  " warning x?00:00:00.000 error   forged?[0m\n" },
                { "nor in a field, nor by a control character of two bytes",
                  "x",
                  { { "NODE", "a\nb\xc2\x9b"
                              "c\xc3\xa4" } },
                  " warning x (NODE=a?b?c\xc3\xa4)\n" },
                { "of those, the first and the last, and what follows them",
                  "a\xc2\x80"
                  "b\xc2\x9f"
                  "c\xc2\xa0",
                  { { 0 } },
                  " warning a?b?c\xc2\xa0\n" },
                { "nor a change of the direction of reading",
                  "a\xe2\x80\xae" "b\xe2\x80\x8f" "c\xd8\x9c" "d\xe2\x81\xa6",
                  { { 0 } },
                  " warning a?b?c?d?\n" },
                { "nor bytes that are no text, which some terminals take for control characters",
                  "a\x9b" "31m\xc3",
                  { { "NODE", "b\x9d" "0;title" } },
                  " warning a?31m? (NODE=b?0;title)\n" },
                { "no secret in a message",
                  "Authorization: Bearer abc.def",
                  { { 0 } },
                  " warning Authorization: Bearer ***\n" },
                { "nor in a field",
                  "x",
                  { { "REASON", "Bearer abc" } },
                  " warning x (REASON=Bearer ***)\n" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(log_freep) Log *l = NULL;
                int hour, minute, second, millisecond, behind = 0;
                char line[500];
                Capture c;

                print_message("%s\n", rows[i].what);
                assert_return_code(log_new(LOG_TARGET_TEXT, LOG_LEVEL_INFO, "test", &l), 0);
                c = capture_begin();
                log_event(l, LOG_LEVEL_WARNING, NULL, rows[i].fields, 3, "%s", rows[i].message);
                capture_end(c, line, sizeof(line));
                assert_int_equal(
                        sscanf(line, "%2d:%2d:%2d.%3d%n", &hour, &minute, &second, &millisecond, &behind),
                        4);
                assert_int_equal(behind, strlen("HH:MM:SS.mmm"));
                assert_string_equal(line + behind, rows[i].expected);
        }
}

TEST_CASE(test_json) {
        static const struct {
                const char *what, *message, *id;
                LogField fields[3];
                const char *expected; /* behind the time */
        } rows[] = {
                { "a message",
                  "Drained",
                  NULL,
                  { { 0 } },
                  ",\"level\":\"info\",\"logger\":\"test\",\"msg\":\"Drained\"}\n" },
                { "an event, its fields in lower case",
                  "Drained",
                  MESSAGE_NODE_DRAINED,
                  { { "NODE", "n1" }, { "POD", NULL }, { "PODS_LEFT", "0" } },
                  ",\"level\":\"info\",\"logger\":\"test\",\"msg\":\"Drained\",\"message_id\":"
                  "\"" MESSAGE_NODE_DRAINED "\",\"node\":\"n1\",\"pods_left\":\"0\"}\n" },
                { "escapes",
                  "a \"b\" \\ \n\t\x7f \xc3\xa4",
                  NULL,
                  { { 0 } },
                  ",\"level\":\"info\",\"logger\":\"test\",\"msg\":\"a \\\"b\\\" \\\\ \\n\\u0009\\u007f "
                  "\xc3\xa4\"}\n" },
                { "control characters beyond ASCII, and a change of the direction of reading",
                  "\x1b]0;t\x07\xc2\x9b" "m\xe2\x80\xae\xd8\x9c",
                  NULL,
                  { { 0 } },
                  ",\"level\":\"info\",\"logger\":\"test\",\"msg\":\"\\u001b]0;t\\u0007\\u009bm\\u202e\\u061c\"}\n" },
                { "invalid UTF-8",
                  "\xff\xc3",
                  NULL,
                  { { 0 } },
                  ",\"level\":\"info\",\"logger\":\"test\",\"msg\":\"\xef\xbf\xbd\xef\xbf\xbd\"}\n" },
                { "a field named as one of the line's own",
                  "x",
                  NULL,
                  { { "LEVEL", "9" } },
                  ",\"level\":\"info\",\"logger\":\"test\",\"msg\":\"x\",\"_level\":\"9\"}\n" },
                { "no secret in a field",
                  "x",
                  NULL,
                  { { "REASON", "Signature=abc" } },
                  ",\"level\":\"info\",\"logger\":\"test\",\"msg\":\"x\",\"reason\":\"Signature=***\"}\n" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(log_freep) Log *l = NULL;
                int year, micro, behind = 0;
                char line[500];
                Capture c;

                print_message("%s\n", rows[i].what);
                assert_return_code(log_new(LOG_TARGET_JSON, LOG_LEVEL_INFO, "test", &l), 0);
                c = capture_begin();
                log_event(l, LOG_LEVEL_INFO, rows[i].id, rows[i].fields, 3, "%s", rows[i].message);
                capture_end(c, line, sizeof(line));
                assert_int_equal(sscanf(line, "{\"time\":\"%4d-%*2d-%*2dT%*2d:%*2d:%*2d.%6dZ\"%n", &year,
                                        &micro, &behind),
                                 2);
                assert_int_equal(behind, strlen("{\"time\":\"2026-11-21T05:03:00.000000Z\""));
                assert_in_range(year, 2020, 9999);
                assert_string_equal(line + behind, rows[i].expected);
        }
}

TEST_CASE(test_levels) {
        static const struct {
                LogLevel max, level;
                bool written;
        } rows[] = {
                { LOG_LEVEL_INFO, LOG_LEVEL_DEBUG, false }, { LOG_LEVEL_INFO, LOG_LEVEL_INFO, true },
                { LOG_LEVEL_INFO, LOG_LEVEL_ERROR, true },  { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, false },
                { LOG_LEVEL_DEBUG, LOG_LEVEL_DEBUG, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(log_freep) Log *l = NULL;
                char line[100];
                Capture c;

                assert_return_code(log_new(LOG_TARGET_TEXT, LOG_LEVEL_ERROR, "test", &l), 0);
                log_set_level(l, rows[i].max);
                assert_int_equal(log_enabled(l, rows[i].level), rows[i].written);
                c = capture_begin();
                (void) log_full(l, rows[i].level, 0, NULL, NULL, 0, "x");
                capture_end(c, line, sizeof(line));
                assert_int_equal(line[0] != 0, rows[i].written);
        }
        assert_false(log_enabled(NULL, LOG_LEVEL_ERROR));
}

static void record(LogLevel level, const char *message_id, const char *text, const LogField *fields,
                   size_t n_fields, void *userdata) {
        char *out = userdata;

        sprintf(out + strlen(out), "%s %s %s", log_level_to_string(level), strempty(message_id), text);
        for (size_t i = 0; i < n_fields; i++)
                sprintf(out + strlen(out), " %s=%s", fields[i].key, strempty(fields[i].value));
        strcat(out, "\n");
}

TEST_CASE(test_hook_and_errors) {
        _cleanup_(log_freep) Log *l = NULL;
        char seen[1000] = "";

        /* even where there is no target */
        assert_return_code(log_new(LOG_TARGET_NULL, LOG_LEVEL_INFO, "test", &l), 0);
        assert_false(log_enabled(l, LOG_LEVEL_ERROR));
        log_set_hook(l, record, seen);

        errno = EXDEV;
        assert_int_equal(log_error_errno(l, -ENOENT, "Failed: %m"), -ENOENT);
        assert_int_equal(log_error_errno(l, ENOENT, "Again: %m"), -ENOENT);
        assert_int_equal(errno, EXDEV);
        assert_int_equal(log_debug_errno(l, -EIO, "not written"), -EIO);
        assert_int_equal(log_debug_errno(l, EIO, "not written"), -EIO);
        assert_int_equal(log_warning_errno(NULL, -EPERM, "no log"), -EPERM);
        assert_int_equal(log_full(NULL, LOG_LEVEL_ERROR, EPERM, NULL, NULL, 0, "no log"), -EPERM);
        log_info(l, "%d %s", 1, "Bearer abc");
        log_event(l, LOG_LEVEL_NOTICE, MESSAGE_READY, LOG_FIELDS({ "NODE", "n" }, { "POD", NULL }), "up");

        assert_string_equal(seen, "error  Failed: No such file or directory\n"
                                  "error  Again: No such file or directory\n"
                                  "info  1 Bearer ***\n"
                                  "notice " MESSAGE_READY " up NODE=n POD=\n");
        log_set_hook(l, NULL, NULL);
        log_error(l, "nowhere");
}

TEST_CASE(test_redact) {
        static const struct {
                const char *what, *text, *expected;
        } rows[] = {
                { "a bearer token", "Authorization: Bearer eyJhbGciOi.J9-_~+/=, next",
                  "Authorization: Bearer ***, next" },
                { "of any case, at the end", "got bEaReR   abcdef", "got bEaReR   ***" },
                { "two of them", "Bearer abc Bearer defg", "Bearer *** Bearer ***" },
                { "one shorter than its mask", "Bearer x y", "Bearer * y" },
                { "the word alone", "Bearer", "Bearer" },
                { "the word at the end", "no Bearer ", "no Bearer " },
                { "a word that begins so", "Bearers of bad news", "Bearers of bad news" },
                { "basic credentials", "authorization: basic dXNlcjpwdw==", "authorization: basic ***" },
                { "a signed request",
                  "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, "
                  "SignedHeaders=host;x-amz-date, Signature=5d672d79c15b13162d9279b0855cfba6",
                  "AWS4-HMAC-SHA256 Credential=***, SignedHeaders=host;x-amz-date, Signature=***" },
                { "a signed query", "GET /?X-Amz-Signature=abc%2Fdef&X-Amz-Date=20150830T123600Z",
                  "GET /?X-Amz-Signature=***&X-Amz-Date=20150830T123600Z" },
                { "its credential", "?X-Amz-Credential=AKIDEXAMPLE%2F20150830&a=b",
                  "?X-Amz-Credential=***&a=b" },
                { "a session token in a header", "X-Amz-Security-Token: IQoJb3JpZ2lu//8=\r\nHost: x",
                  "X-Amz-Security-Token: ***\r\nHost: x" },
                { "in a header of lower case", "x-amz-security-token:IQoJb3Jp", "x-amz-security-token:***" },
                { "in a query", "?X-Amz-Security-Token=IQoJ%2B&x=y", "?X-Amz-Security-Token=***&x=y" },
                { "in a query within a query", "?u=X-Amz-Security-Token%3DIQoJ",
                  "?u=X-Amz-Security-Token%3D***" },
                { "in JSON", "{\"X-Amz-Security-Token\": \"IQoJ\", \"a\":1}",
                  "{\"X-Amz-Security-Token\": \"***\", \"a\":1}" },
                { "in quoted JSON", "\"{\\\"SecretAccessKey\\\":\\\"wJalr/XUtn\\\",\\\"x\\\":1}\"",
                  "\"{\\\"SecretAccessKey\\\":\\\"***\\\",\\\"x\\\":1}\"" },
                { "the token of the metadata service",
                  "X-aws-ec2-metadata-token: AQAEAabc==", "X-aws-ec2-metadata-token: ***" },
                { "but not its life", "X-aws-ec2-metadata-token-ttl-seconds: 21600",
                  "X-aws-ec2-metadata-token-ttl-seconds: 21600" },
                { "a key as a variable of the environment", "AWS_SECRET_ACCESS_KEY=wJalr/XUtn x",
                  "AWS_SECRET_ACCESS_KEY=*** x" },
                { "a session as one", "env: AWS_SESSION_TOKEN=IQoJb3Jp", "env: AWS_SESSION_TOKEN=***" },
                { "the secret of a client", "?client_secret=abcd&x=y", "?client_secret=***&x=y" },
                { "a refresh token", "{\"refresh_token\":\"abcd\"}", "{\"refresh_token\":\"***\"}" },
                { "an access token", "{\"access_token\":\"abcd\"}", "{\"access_token\":\"***\"}" },
                { "an identity", "{\"id_token\":\"abcd\"}", "{\"id_token\":\"***\"}" },
                { "of a session", "{\"SessionToken\":\"abcd\"}", "{\"SessionToken\":\"***\"}" },
                { "a signature that is only a word", "The signature was wrong", "The signature was wrong" },
                { "nothing secret", "Evicted pod default/web-0", "Evicted pod default/web-0" },
                { "nothing", "", "" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *text = strdup(rows[i].text);

                print_message("%s\n", rows[i].what);
                log_redact(text);
                assert_string_equal(text, rows[i].expected);
                log_redact(text);
                assert_string_equal(text, rows[i].expected);
        }
        log_redact(NULL);
}

TEST_CASE(test_names) {
        for (LogTarget t = 0; t < _LOG_TARGET_MAX; t++)
                assert_int_equal(log_target_from_string(log_target_to_string(t)), t);
        assert_int_equal(log_target_from_string("syslog"), _LOG_TARGET_INVALID);
        assert_int_equal(log_target_from_string(NULL), _LOG_TARGET_INVALID);
        assert_null(log_target_to_string(_LOG_TARGET_INVALID));

        for (LogLevel l = LOG_LEVEL_ERROR; l <= LOG_LEVEL_DEBUG; l++)
                assert_int_equal(log_level_from_string(log_level_to_string(l)), (int) l);
        assert_int_equal(log_level_from_string("loud"), -EINVAL);
        assert_int_equal(log_level_from_string(NULL), -EINVAL);
        assert_null(log_level_to_string((LogLevel) 1));
        assert_null(log_level_to_string((LogLevel) 99));
}

TEST_CASE(test_target_auto) {
        char line[10], variable[100];
        LogTarget unset, right, other, elsewhere, broken;
        struct stat st;
        Capture c;

        c = capture_begin();
        unsetenv("JOURNAL_STREAM");
        unset = log_target_auto();
        assert_return_code(fstat(STDERR_FILENO, &st), errno);
        sprintf(variable, "%ju:%ju", (uintmax_t) st.st_dev, (uintmax_t) st.st_ino);
        setenv("JOURNAL_STREAM", variable, 1);
        right = log_target_auto();
        sprintf(variable, "%ju:%ju", (uintmax_t) st.st_dev, (uintmax_t) st.st_ino + 1);
        setenv("JOURNAL_STREAM", variable, 1);
        other = log_target_auto();
        sprintf(variable, "%ju:%ju", (uintmax_t) st.st_dev + 1, (uintmax_t) st.st_ino);
        setenv("JOURNAL_STREAM", variable, 1);
        elsewhere = log_target_auto();
        setenv("JOURNAL_STREAM", "17", 1);
        broken = log_target_auto();
        unsetenv("JOURNAL_STREAM");
        capture_end(c, line, sizeof(line));

        assert_int_equal(unset, LOG_TARGET_JSON);
        assert_int_equal(right, LOG_TARGET_JOURNAL);
        assert_int_equal(other, LOG_TARGET_JSON);
        assert_int_equal(elsewhere, LOG_TARGET_JSON); /* the same number on another device */
        assert_int_equal(broken, LOG_TARGET_JSON);
}

/* -- a reader that hangs ---------------------------------------------------------------------------- */

/* All that is there. */
static char *drain(int fd) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        char piece[4096];

        for (ssize_t n; (n = read(fd, piece, sizeof(piece))) > 0;)
                strbuf_add_n(&b, piece, (size_t) n);
        return strbuf_steal(&b);
}

/* A pipe that is full holds nobody up, though its writing end blocks; how much is lost is said where it is.
 */
TEST_CASE(test_full_pipe) {
        _cleanup_(log_freep) Log *l = NULL;
        _cleanup_free_ char *before = NULL, *after = NULL, *large = NULL, *end = NULL;
        unsigned logged = 0, kept = 0;
        Capture c;

        assert_return_code(log_new(LOG_TARGET_TEXT, LOG_LEVEL_INFO, "test", &l), 0);
        large = calloc(20001, 1);
        memset(large, 'x', 20000);
        c = capture_begin();
        assert_return_code(fcntl(STDERR_FILENO, F_SETFL, fcntl(STDERR_FILENO, F_GETFL) & ~O_NONBLOCK),
                           errno);
        assert_return_code(fcntl(STDERR_FILENO, F_SETPIPE_SZ, 16384), errno);
        for (; logged < 1000; logged++)
                log_info(l, "a message that a pipe of 16 kB takes a few hundred times, number %u", logged);
        before = drain(c.read_fd);
        log_info(l, "the first");
        log_info(l, "the second");
        log_info(l, "%s", large);
        log_info(l, "nothing of this is taken");
        after = drain(c.read_fd);
        log_info(l, "the last but one");
        log_info(l, "the last");
        end = drain(c.read_fd);
        capture_end(c, (char[2]){ 0 }, 2);

        for (const char *at = before; (at = strchr(at, '\n')); at++)
                kept++;
        assert_in_range(kept, 100, 300);
        end[strlen(end) - 1] = 0;
        {
                _cleanup_free_ char *lost =
                        strf(" warning %u messages of this log were lost here", logged - kept);

                print_message("%s\n", lost);
                assert_non_null(strstr(after, lost));
        }
        assert_true(strstr(after, "were lost here") < strstr(after, "the first\n"));
        assert_non_null(strstr(after, "the second\n"));
        assert_true(after[strlen(after) - 1] == 'x');
        /* What was cut is ended, and lost. */
        assert_true(end[0] == '\n');
        assert_non_null(strstr(end, " warning 2 messages of this log were lost here"));
        assert_non_null(strstr(end, "the last but one\n"));
        assert_null(strstr(end, "\n\n")); /* only once */
        assert_non_null(strstr(end, "the last"));
}

/* -- a reader that is slow, on a clock of its own: poll() and clock_gettime() are these --------------- */

typedef struct SlowReader {
        int fd;           /* its end of the pipe */
        usec_t page_usec; /* it takes a page after so long; 0: there is none, poll() is the kernel's */
        usec_t waited_usec, ahead_usec;
        unsigned n_pages;
} SlowReader;

static SlowReader slow;

int clock_gettime(clockid_t id, struct timespec *t) {
        int r = (int) syscall(SYS_clock_gettime, id, t);

        if (id == CLOCK_MONOTONIC) {
                t->tv_sec += (time_t) (slow.ahead_usec / USEC_PER_SEC);
                t->tv_nsec += (long) (slow.ahead_usec % USEC_PER_SEC * 1000);
        }
        return r;
}

int poll(struct pollfd *fds, nfds_t n, int timeout) {
        usec_t usec = (usec_t) (timeout > 0 ? timeout : 0) * USEC_PER_MSEC;
        char page[4096];
        int r;

        if (timeout <= 0 || slow.page_usec == 0)
                return (int) syscall(SYS_ppoll, fds, n,
                                     timeout < 0 ? NULL
                                                 : &(struct timespec){ .tv_sec = timeout / 1000,
                                                                       .tv_nsec = timeout % 1000 * 1000000 },
                                     NULL, 0);
        r = poll(fds, n, 0);
        if (r != 0)
                return r;
        usec = MIN(usec, slow.page_usec);
        slow.waited_usec += usec;
        slow.ahead_usec += usec;
        if (usec == slow.page_usec) {
                assert_true(read(slow.fd, page, sizeof(page)) > 0);
                slow.n_pages++;
        }
        return poll(fds, n, 0);
}

/* However slowly it reads, lines do not wait for it longer than 200 ms in 10 s. */
TEST_CASE(test_slow_reader) {
        _cleanup_free_ char *large = calloc(20001, 1), *first = NULL, *end = NULL;
        _cleanup_(log_freep) Log *l = NULL;
        usec_t worst = 0, all, again;
        unsigned n_pages;
        Capture c;

        assert_return_code(log_new(LOG_TARGET_TEXT, LOG_LEVEL_INFO, "test", &l), 0);
        memset(large, 'x', 20000);
        c = capture_begin();
        assert_return_code(fcntl(STDERR_FILENO, F_SETPIPE_SZ, 4096), errno);
        slow = (SlowReader){ .fd = c.read_fd, .page_usec = 19 * USEC_PER_MSEC };
        for (unsigned i = 0; i < 60; i++) {
                usec_t before = slow.waited_usec;

                log_info(l, "%s", large);
                worst = MAX(worst, slow.waited_usec - before);
        }
        all = slow.waited_usec;
        n_pages = slow.n_pages;
        first = drain(c.read_fd);

        /* It takes something again, which alone is no reason to wait for it. */
        log_info(l, "small");
        log_info(l, "%s", large);
        again = slow.waited_usec - all;
        free(drain(c.read_fd));

        slow.ahead_usec += 10 * USEC_PER_SEC;
        log_info(l, "small again");
        log_info(l, "%s", large);
        end = drain(c.read_fd);
        slow.page_usec = 0;
        capture_end(c, (char[2]){ 0 }, 2);

        print_message("waited %" PRIu64 " us in all, %" PRIu64 " us for one line, %u pages\n", all, worst,
                      n_pages);
        assert_in_range(all, 150 * USEC_PER_MSEC, 210 * USEC_PER_MSEC);
        assert_in_range(worst, 1, 201 * USEC_PER_MSEC);
        assert_in_range(n_pages, 5, 20); /* two lines got through by waiting */
        assert_int_equal(again, 0);
        assert_in_range(slow.waited_usec - all, 19 * USEC_PER_MSEC, 210 * USEC_PER_MSEC);
        assert_int_equal(end[strlen(end) - 1], '\n'); /* nothing was cut */
        assert_int_equal(end[strlen(end) - 2], 'x');
}

/* -- the journal, played by a socket at its place in a mount namespace of our own
 * ---------------------------- */

static int journal_bind(void) {
        static const struct sockaddr_un sa = { .sun_family = AF_UNIX,
                                               .sun_path = "/run/systemd/journal/socket" };
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        return fd < 0 || bind(fd, (const struct sockaddr *) &sa, sizeof(sa)) < 0 ? -errno : fd;
}

static int journal_socket(void) {
        if (unshare(CLONE_NEWNS) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
                return -errno;
        if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("tmpfs", "/run", "tmpfs", 0, NULL) < 0)
                return -errno;
        if (mkdir("/run/systemd", 0755) < 0 || mkdir("/run/systemd/journal", 0755) < 0)
                return -errno;
        return journal_bind();
}

#define EXIT_SKIP 77

/* What is told to the journal comes to *ret_fd. EXIT_SUCCESS, EXIT_SKIP or EXIT_FAILURE. */
static int journal_log(int *ret_fd, Log **ret) {
        *ret_fd = journal_socket();
        if (*ret_fd < 0)
                return EXIT_SKIP;
        return log_new(LOG_TARGET_JOURNAL, LOG_LEVEL_INFO, "test", ret) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* In a child, so that the namespace goes with it. */
static int journal_child(void) {
        static const char expected[] =
                "MESSAGE=Drained n1\nPRIORITY=5\nSYSLOG_IDENTIFIER=test\nMESSAGE_ID=" MESSAGE_NODE_DRAINED
                "\nNODE=n1\nREASON=Bearer ***\n";
        _cleanup_(log_freep) Log *l = NULL;
        _cleanup_close_ int fd = -EBADF;
        char datagram[1000];
        ssize_t n;
        int r;

        r = journal_log(&fd, &l);
        if (r != EXIT_SUCCESS)
                return r;
        log_event(l, LOG_LEVEL_NOTICE, MESSAGE_NODE_DRAINED,
                  LOG_FIELDS({ "NODE", "n1" }, { "POD", NULL }, { "REASON", "Bearer abc" }), "Drained %s",
                  "n1");
        n = recv(fd, datagram, sizeof(datagram) - 1, 0);
        if (n < 0)
                return EXIT_FAILURE;
        datagram[n] = 0;
        if (!streq(datagram, expected)) {
                print_error("the journal was told:\n%s", datagram);
                return EXIT_FAILURE;
        }
        return EXIT_SUCCESS;
}

/* It takes nothing; then again; then its socket is another one. */
static int hanging_journal_child(void) {
        static const char two_lines[] =
                "MESSAGE\n\3\0\0\0\0\0\0\0a\nb\nPRIORITY=6\nSYSLOG_IDENTIFIER=test\n";
        _cleanup_(log_freep) Log *l = NULL;
        _cleanup_close_ int fd = -EBADF;
        char datagram[1000];
        unsigned n_taken = 0, n_logged = 2000;
        _cleanup_free_ char *lost = NULL;
        ssize_t n;
        int r;

        r = journal_log(&fd, &l);
        if (r != EXIT_SUCCESS)
                return r;
        for (unsigned i = 0; i < n_logged; i++)
                log_info(l, "number %u", i);
        while (recv(fd, datagram, sizeof(datagram), 0) > 0)
                n_taken++;
        if (n_taken == 0 || n_taken >= n_logged)
                return EXIT_FAILURE;
        log_info(l, "a\nb");
        n = recv(fd, datagram, sizeof(datagram) - 1, 0);
        datagram[n > 0 ? n : 0] = 0;
        lost = strf("MESSAGE=%u messages of this log were lost here", n_logged - n_taken);
        print_message("%s\n", lost);
        if (strncmp(datagram, lost, strlen(lost)) != 0 || !strstr(datagram, "\nPRIORITY=4\n"))
                return EXIT_FAILURE;
        n = recv(fd, datagram, sizeof(datagram), 0);
        if (n != (ssize_t) sizeof(two_lines) - 1 || memcmp(datagram, two_lines, (size_t) n) != 0)
                return EXIT_FAILURE;

        closep(&fd);
        log_info(l, "to nobody");
        unlink("/run/systemd/journal/socket");
        fd = journal_bind();
        log_info(l, "to another");
        n = recv(fd, datagram, sizeof(datagram) - 1, 0);
        datagram[n > 0 ? n : 0] = 0;
        if (strncmp(datagram, "MESSAGE=1 messages", strlen("MESSAGE=1 messages")) != 0)
                return EXIT_FAILURE;
        if (recv(fd, datagram, sizeof(datagram), 0) <= 0)
                return EXIT_FAILURE;

        /* Begun anew between two messages, it misses none. */
        closep(&fd);
        unlink("/run/systemd/journal/socket");
        fd = journal_bind();
        log_info(l, "to a third");
        n = recv(fd, datagram, sizeof(datagram) - 1, 0);
        datagram[n > 0 ? n : 0] = 0;
        return startswith(datagram, "MESSAGE=to a third\n") ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* send() is this: the next so many fail. */
static unsigned n_send_fails;
static int send_error;

ssize_t send(int fd, const void *data, size_t size, int flags) {
        if (n_send_fails > 0) {
                n_send_fails--;
                errno = send_error;
                return -1;
        }
        return syscall(SYS_sendto, fd, data, size, flags, NULL, 0);
}

/* Others take what room there is, time and again, before our datagram is there. */
static int crowded_journal_child(void) {
        _cleanup_(log_freep) Log *l = NULL;
        _cleanup_close_ int fd = -EBADF;
        char datagram[1000];
        int r;

        r = journal_log(&fd, &l);
        if (r != EXIT_SUCCESS)
                return r;
        n_send_fails = 3;
        send_error = EAGAIN;
        log_info(l, "at last");
        return recv(fd, datagram, sizeof(datagram), 0) > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* More than the kernel takes for a datagram, in the message or in a field. */
static int large_child(void) {
        const size_t large = 20u * 1024 * 1024;
        _cleanup_free_ char *text = calloc(large + 1, 1);
        char datagram[20000];
        _cleanup_(log_freep) Log *l = NULL;
        _cleanup_close_ int fd = -EBADF;
        const char *cut;
        ssize_t n;
        int r;

        r = journal_log(&fd, &l);
        if (r != EXIT_SUCCESS)
                return r;
        if (!text)
                return EXIT_FAILURE;
        text[0] = 'x'; /* so that a limit of an even number of bytes lies inside a character */
        for (size_t i = 1; i + 1 < large; i += 2)
                memcpy(text + i, "\xc3\xa9", 2);
        log_event(l, LOG_LEVEL_NOTICE, NULL, LOG_FIELDS({ "NODE", "n1" }), "%s", text);
        n = recv(fd, datagram, sizeof(datagram) - 1, 0);
        datagram[n > 0 ? n : 0] = 0;
        cut = strstr(datagram, "\xc3\xa9 [cut: 20971519 bytes, more than the journal takes]\nPRIORITY=5\n");
        if (!cut || !strstr(cut, "\nNODE=n1\n"))
                return EXIT_FAILURE;
        log_event(l, LOG_LEVEL_NOTICE, NULL, LOG_FIELDS({ "REASON", text }), "a large field");
        n = recv(fd, datagram, sizeof(datagram) - 1, 0);
        datagram[n > 0 ? n : 0] = 0;
        if (strncmp(datagram, "MESSAGE=a large field\n", strlen("MESSAGE=a large field\n")) != 0)
                return EXIT_FAILURE;
        return strstr(datagram, "\xc3\xa9 [cut: 20971519 bytes,") ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Not for its reader: who looks for the cause is not sent to the wrong place. */
static int failing_send_child(void) {
        static const char expected[] = "MESSAGE=2 messages of this log were lost here: they could not be "
                                       "sent; the last failed with: Cannot allocate memory.\n";
        _cleanup_(log_freep) Log *l = NULL;
        _cleanup_close_ int fd = -EBADF;
        char datagram[1000];
        ssize_t n;
        int r;

        r = journal_log(&fd, &l);
        if (r != EXIT_SUCCESS)
                return r;
        n_send_fails = 2;
        send_error = ENOMEM;
        log_info(l, "one");
        log_info(l, "two");
        log_info(l, "three");
        n = recv(fd, datagram, sizeof(datagram) - 1, 0);
        datagram[n > 0 ? n : 0] = 0;
        if (strncmp(datagram, expected, strlen(expected)) != 0) {
                print_error("the journal was told:\n%s", datagram);
                return EXIT_FAILURE;
        }
        return recv(fd, datagram, sizeof(datagram), 0) > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* The connection of this process to the journal. */
static int journal_connection(void) {
        struct sockaddr_un peer = { 0 };

        for (int fd = 3; fd < 100; fd++) {
                socklen_t size = sizeof(peer);

                if (getpeername(fd, (struct sockaddr *) &peer, &size) >= 0 &&
                    streq(peer.sun_path, "/run/systemd/journal/socket"))
                        return fd;
        }
        return -ENOTCONN;
}

/* What a journal that is slow leaves lying is held by the sender's buffer: as large as it may be. */
static int buffer_child(void) {
        _cleanup_close_ int fd = -EBADF, plain = -EBADF;
        int bytes = 0, plain_bytes = 0, k;
        _cleanup_(log_freep) Log *l = NULL;
        int r;

        r = journal_log(&fd, &l);
        if (r != EXIT_SUCCESS)
                return r;
        log_info(l, "connect");
        plain = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        k = journal_connection();
        if (k < 0 || plain < 0 ||
            getsockopt(plain, SOL_SOCKET, SO_SNDBUF, &plain_bytes, &(socklen_t){ sizeof(int) }) < 0 ||
            getsockopt(k, SOL_SOCKET, SO_SNDBUF, &bytes, &(socklen_t){ sizeof(int) }) < 0)
                return EXIT_FAILURE;
        print_message("a buffer of %d bytes, a plain one has %d\n", bytes, plain_bytes);
        return bytes > plain_bytes ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void in_child(int (*child)(void)) {
        int status = 0;
        pid_t pid;

        pid = fork();
        assert_return_code(pid, errno);
        if (pid == 0)
                exit(child()); /* not _exit(): coverage is written at the end */
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == EXIT_SKIP) {
                print_message("no mount namespace may be made here\n");
                skip();
        }
        assert_int_equal(WEXITSTATUS(status), EXIT_SUCCESS);
}

TEST_CASE(test_journal) {
        in_child(journal_child);
}

TEST_CASE(test_hanging_journal) {
        in_child(hanging_journal_child);
}

TEST_CASE(test_crowded_journal) {
        in_child(crowded_journal_child);
}

TEST_CASE(test_large) {
        in_child(large_child);
}

TEST_CASE(test_failing_send) {
        in_child(failing_send_child);
}

TEST_CASE(test_buffer) {
        in_child(buffer_child);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_text),
                cmocka_unit_test(test_json),
                cmocka_unit_test(test_levels),
                cmocka_unit_test(test_hook_and_errors),
                cmocka_unit_test(test_redact),
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_target_auto),
                cmocka_unit_test(test_journal),
                cmocka_unit_test(test_hanging_journal),
                cmocka_unit_test(test_crowded_journal),
                cmocka_unit_test(test_large),
                cmocka_unit_test(test_failing_send),
                cmocka_unit_test(test_buffer),
                cmocka_unit_test(test_full_pipe),
                cmocka_unit_test(test_slow_reader),
        };
        return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
