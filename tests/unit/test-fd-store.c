/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmocka-test.h"
#include "fd-store.h"
#include "string-util.h"

/* The service manager is a socket of the test's: NOTIFY_SOCKET for what is put there, LISTEN_FDS for what is handed back. */

typedef struct Manager {
        char folder[40];
        char *path;
        int fd;
} Manager;

static void manager_start(Manager *m) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        *m = (Manager){ .folder = "/tmp/vesper-notify-XXXXXX" };
        assert_non_null(mkdtemp(m->folder));
        m->path = strf("%s/notify", m->folder);
        assert_non_null(m->path);
        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s", m->path);
        m->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        assert_return_code(m->fd, errno);
        assert_return_code(bind(m->fd, (struct sockaddr *) &address, sizeof(address)), errno);
        assert_return_code(setenv("NOTIFY_SOCKET", m->path, 1), errno);
}

static void manager_stop(Manager *m) {
        assert_return_code(unsetenv("NOTIFY_SOCKET"), errno);
        (void) close(m->fd);
        (void) unlink(m->path);
        (void) rmdir(m->folder);
        free(m->path);
}

/* The next message that is no BARRIER=; *ret_fd: what came with it, or -1. False: there is none. */
static bool manager_hears(Manager *m, char *text, size_t size, int *ret_fd) {
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(sizeof(int))];
        } control;
        struct iovec iov = { text, size - 1 };
        struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
        ssize_t n = recvmsg(m->fd, &msg, MSG_CMSG_CLOEXEC);

        *ret_fd = -1;
        if (n < 0)
                return false;
        text[n] = 0;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
                if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
                        memcpy(ret_fd, CMSG_DATA(c), sizeof(int));
        return true;
}

static bool is_same_file(int a, int b) {
        struct stat x, y;

        assert_return_code(fstat(a, &x), errno);
        assert_return_code(fstat(b, &y), errno);
        return x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* A copy goes to the manager under its name, to stay there though its other end hangs up; and is dropped by name. */
TEST_CASE(test_put_and_forget) {
        FdStore s = { 0 };
        char text[200];
        int fds[2], got;
        Manager m;

        manager_start(&m);
        assert_return_code(pipe(fds), errno);
        assert_return_code(fd_store_put("inhibitor", fds[1], &s), 0);
        assert_true(manager_hears(&m, text, sizeof(text), &got));
        assert_string_equal(text, "FDSTORE=1\nFDNAME=inhibitor\nFDPOLL=0");
        assert_true(got >= 0);
        assert_true(is_same_file(got, fds[1]));
        (void) close(got);

        fd_store_forget("inhibitor", &s);
        assert_true(manager_hears(&m, text, sizeof(text), &got));
        assert_string_equal(text, "FDSTOREREMOVE=1\nFDNAME=inhibitor");
        assert_int_equal(got, -1);
        assert_false(manager_hears(&m, text, sizeof(text), &got));
        (void) close(fds[0]);
        (void) close(fds[1]);
        manager_stop(&m);
}

/* Nobody listens, or nobody is there any more. */
TEST_CASE(test_no_manager) {
        FdStore s = { 0 };

        assert_return_code(unsetenv("NOTIFY_SOCKET"), errno);
        assert_int_equal(fd_store_put("inhibitor", STDERR_FILENO, &s), -EOPNOTSUPP);
        fd_store_forget("inhibitor", &s);
        assert_return_code(setenv("NOTIFY_SOCKET", "/nonexistent/notify", 1), errno);
        assert_true(fd_store_put("inhibitor", STDERR_FILENO, &s) < 0);
        assert_return_code(unsetenv("NOTIFY_SOCKET"), errno);
}

/* -- what was found at the start ---------------------------------------------------------------- */

/* In a process of its own, whose descriptors 3 and up the manager has set: the step that failed, or 0. */
static int take(const char *names, int n, int inhibitor) {
        FdStore s = { 0 };
        char pid[24], count[24];
        int fd;

        for (int i = 0; i < n; i++)
                if (i != 1 ? open("/dev/null", O_RDONLY) != 3 + i : dup2(inhibitor, 3 + i) != 3 + i)
                        return 1;
        (void) snprintf(pid, sizeof(pid), "%d", (int) getpid());
        (void) snprintf(count, sizeof(count), "%d", n);
        if (n > 0 && (setenv("LISTEN_PID", pid, 1) < 0 || setenv("LISTEN_FDS", count, 1) < 0 ||
                      setenv("LISTEN_FDNAMES", names, 1) < 0))
                return 2;
        if (fd_store_init(&s) < 0)
                return 3;
        if (getenv("LISTEN_FDS"))
                return 4; /* no child of ours may take them for its own */
        if (fd_store_take("inhibitor", &s) != (n > 1 ? 4 : -ENOENT))
                return 5;
        if (n > 1 && (fcntl(4, F_GETFD) & FD_CLOEXEC) == 0)
                return 6;
        if (fd_store_take("inhibitor", &s) != -ENOENT)
                return 7; /* handed out once */
        if (fd_store_take("another", &s) != -ENOENT)
                return 8;
        fd_store_done(&s);
        /* What nobody took is closed; what was taken is its taker's. */
        if (n > 0 && (fcntl(3, F_GETFD) >= 0 || errno != EBADF))
                return 9;
        if (n > 1 && fcntl(4, F_GETFD) < 0)
                return 10;
        fd = fd_store_take("inhibitor", &s);
        return fd == -ENOENT ? 0 : 11;
}

TEST_CASE(test_take) {
        static const struct {
                const char *names;
                int n;
        } rows[] = { { "stored:inhibitor", 2 }, { "stored:inhibitor:inhibitor2", 3 }, { "stored", 1 }, { "", 0 } };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                int status = 0;
                pid_t pid;

                print_message("'%s'\n", rows[i].names);
                (void) fflush(NULL);
                pid = fork();
                assert_true(pid >= 0);
                if (pid == 0) {
                        int inhibitor;

                        (void) close_range(3, 1000, 0);
                        inhibitor = open("/dev/zero", O_RDONLY);
                        if (dup2(inhibitor, 900) != 900)
                                _exit(100);
                        (void) close(inhibitor);
                        exit(take(rows[i].names, rows[i].n, 900)); /* so that the lines it has executed are counted */
                }
                assert_int_equal(waitpid(pid, &status, 0), pid);
                assert_true(WIFEXITED(status));
                assert_int_equal(WEXITSTATUS(status), 0);
        }
}

/* Meant for somebody else: nothing is taken. */
TEST_CASE(test_of_another) {
        FdStore s = { 0 };

        assert_return_code(setenv("LISTEN_PID", "1", 1), errno);
        assert_return_code(setenv("LISTEN_FDS", "1", 1), errno);
        assert_return_code(setenv("LISTEN_FDNAMES", "inhibitor", 1), errno);
        assert_int_equal(fd_store_init(&s), 0);
        assert_int_equal(fd_store_take("inhibitor", &s), -ENOENT);
        fd_store_done(&s);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_put_and_forget),
                cmocka_unit_test(test_no_manager),
                cmocka_unit_test(test_take),
                cmocka_unit_test(test_of_another),
        };

        return cmocka_run_group_tests_name("fd-store", tests, NULL, NULL);
}
