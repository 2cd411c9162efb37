/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmocka-test.h"
#include "file-util.h"
#include "http-face.h"
#include "loopback-client.h"
#include "string-util.h"

#define CONNECTIONS 32u /* of metrics and of health */
#define CLIENTS_MAX 256u
#define PATIENCE_USEC USEC_PER_MINUTE /* only ends a test that hangs */
#define REQUEST "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"

static void handler(HttpExchange *x, void *userdata) {
        http_reply_text(x, 200, "text/plain", "ok\n");
}

/* -- clients, each on a connection of its own ------------------------------------------------------------
 */

static int client_new(const HttpServer *s, unsigned host) {
        return loopback_client_new(http_server_port(s), host);
}

static void run_for(Loop *l, usec_t usec) {
        usec_t end = loop_now(l) + usec;

        while (loop_now(l) < end)
                assert_true(loop_iterate(l, MIN(usec_sub(end, loop_now(l)), 20 * USEC_PER_MSEC)) >= 0);
}

/* Returns true if the server answers the request of that client; false if it closes the connection. */
static bool probe_is_answered(Loop *l, int fd) {
        usec_t end = loop_now(l) + PATIENCE_USEC;
        char answer[512] = "";

        while (loop_now(l) < end && !loopback_client_is_closed(fd)) {
                ssize_t n = recv(fd, answer, sizeof(answer) - 1, 0);

                if (n > 0 && startswith(answer, "HTTP/1.1 200"))
                        return true;
                assert_true(loop_iterate(l, 10 * USEC_PER_MSEC) >= 0);
        }
        return false;
}

static int probe_new(const HttpServer *s, unsigned host) {
        int fd = client_new(s, host);

        assert_int_equal(send(fd, REQUEST, strlen(REQUEST), MSG_NOSIGNAL), strlen(REQUEST));
        return fd;
}

static bool probe(Loop *l, const HttpServer *s, unsigned host) {
        _cleanup_close_ int fd = probe_new(s, host);

        return probe_is_answered(l, fd);
}

typedef struct Crowd {
        int fds[CLIENTS_MAX];
        size_t n;
} Crowd;

static void crowd_done(Crowd *c) {
        for (size_t i = 0; i < c->n; i++)
                (void) close(c->fds[i]);
        c->n = 0;
}

static void crowd_add(Crowd *c, Loop *l, const HttpServer *s, unsigned host, size_t n) {
        for (size_t i = 0; i < n; i++) {
                assert_true(c->n < CLIENTS_MAX);
                c->fds[c->n++] = client_new(s, host);
                run_for(l, USEC_PER_MSEC);
        }
}

static size_t crowd_open(const Crowd *c) {
        size_t n = 0;

        for (size_t i = 0; i < c->n; i++)
                n += !loopback_client_is_closed(c->fds[i]);
        return n;
}

/* Waits until n connections of the crowd are open, and checks for 50 ms that no more close. */
static void crowd_expect_open(const Crowd *c, Loop *l, size_t n) {
        usec_t limit = loop_now(l) + PATIENCE_USEC;

        while (crowd_open(c) > n && loop_now(l) < limit)
                run_for(l, USEC_PER_MSEC);
        run_for(l, 50 * USEC_PER_MSEC);
        assert_int_equal(crowd_open(c), n);
}

/* A network with nothing but loopback, so that what listens on every address is heard by nobody else. False:
 * this machine lets us make none. */
static bool own_network(void) {
        struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
        _cleanup_close_ int fd = -EBADF;

        if (unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
                return false;
        fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        return fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &lo) >= 0;
}

/* -- tests ---------------------------------------------------------------------------------------------- */

/* Clients of one address, or of several, hold all connections of a server and say nothing. */
TEST_CASE(test_held_by_silent_clients) {
        _cleanup_(loop_freep) Loop *l = NULL;

        assert_return_code(loop_new(&l), 0);
        for (HttpFace face = 0; face < HTTP_FACE_WEBHOOK; face++)
                for (unsigned n_hosts = 1; n_hosts <= 8; n_hosts *= 8) {
                        _cleanup_(crowd_done) Crowd crowd = { .n = 0 };
                        HttpServer *server = NULL;

                        print_message("  %s, of %u addresses\n",
                                      face == HTTP_FACE_METRICS ? "metrics" : "health", n_hosts);
                        assert_return_code(http_face_new(l, face, ":0", "127.0.0.1", handler, NULL, &server),
                                           0);
                        for (unsigned host = 0; host < n_hosts; host++)
                                crowd_add(&crowd, l, server, 2 + host, CONNECTIONS / n_hosts);
                        crowd_expect_open(&crowd, l, CONNECTIONS);
                        for (unsigned i = 0; i < 20; i++)
                                assert_true(probe(l, server, 1 + i % 2));
                        /* The first probe took a place, and each later one that of the probe before. */
                        assert_in_range(crowd_open(&crowd), CONNECTIONS - 20, CONNECTIONS - 1);
                        http_server_free(server);
                }
}

/* Sends a body of zeros, and returns the status of the answer; 0: the server closed the connection. */
static unsigned review(Loop *l, const HttpServer *s, unsigned host, size_t bytes) {
        static const char zeros[64u << 10];
        _cleanup_close_ int fd = client_new(s, host);
        usec_t end = loop_now(l) + PATIENCE_USEC;
        char text[512] = "";

        (void) snprintf(text, sizeof(text), "POST /admission HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\n\r\n", bytes);
        assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
        memset(text, 0, sizeof(text));
        while (loop_now(l) < end && !loopback_client_is_closed(fd)) {
                ssize_t n = bytes > 0 ? send(fd, zeros, MIN(bytes, sizeof(zeros)), MSG_DONTWAIT | MSG_NOSIGNAL) : 0;

                bytes -= n > 0 ? (size_t) n : 0;
                if (recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT) > 0)
                        return (unsigned) strtoul(text + strlen("HTTP/1.1 "), NULL, 10);
                assert_true(loop_iterate(l, n > 0 ? 0 : USEC_PER_MSEC) >= 0);
        }
        return 0;
}

static void announce(Loop *l, const HttpServer *s, unsigned host, size_t bytes) {
        _cleanup_close_ int fd = client_new(s, host);
        char text[128];

        (void) snprintf(text, sizeof(text), "POST /admission HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\n\r\n", bytes);
        assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
        assert_true(probe(l, s, 99)); /* the server has read the headers before it answers what comes later */
}

/* A burst of large reviews of one address is answered, and so are the small ones behind it. A body that is announced and never comes costs the address
 * nothing, for it may be the API server's. test-http-limits.c has the rates themselves. */
TEST_CASE(test_large_reviews) {
        static const struct {
                const char *what, *listen;
                bool succeeded, limited;
        } rows[] = {
                { "any address", "*:0", false, true },
                { "loopback is one address for everybody", "127.0.0.1:0", false, false },
                { "loopback, with another certificate", "127.0.0.1:0", true, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(loop_freep) Loop *l = NULL;
                HttpServer *server = NULL, *old = NULL;

                print_message("  %s\n", rows[i].what);
                assert_return_code(loop_new(&l), 0);
                assert_return_code(http_face_new(l, HTTP_FACE_WEBHOOK, rows[i].listen, "*", handler, NULL, &server), 0);
                if (rows[i].succeeded) {
                        old = server;
                        assert_return_code(http_face_succeed(l, HTTP_FACE_WEBHOOK, old, &(HttpFaceTls){ 0 }, handler, NULL, &server), 0);
                }
                for (unsigned k = 0; k < 20; k++)
                        announce(l, server, 2, 3u << 20);
                assert_int_equal(http_server_max_requests_per_address(server) > 0, rows[i].limited);
                for (unsigned k = 0; k < (rows[i].limited ? 5u : 20u); k++)
                        assert_int_equal(review(l, server, 2, 3u << 20), 200);
                for (unsigned k = 0; k < 100; k++)
                        assert_int_equal(review(l, server, 2, 10u << 10), 200);
                http_server_free(server);
                http_server_free(old);
        }
}

/* Many more connections than there may be come all at once, before and behind that of a probe. */
TEST_CASE(test_held_by_a_flood) {
        _cleanup_(loop_freep) Loop *l = NULL;

        assert_return_code(loop_new(&l), 0);
        for (unsigned n_hosts = 1; n_hosts <= 200; n_hosts *= 200) {
                _cleanup_(crowd_done) Crowd crowd = { .n = 0 };
                HttpServer *health = NULL;

                print_message("  of %u addresses\n", n_hosts);
                assert_return_code(
                        http_face_new(l, HTTP_FACE_HEALTH, ":0", "127.0.0.1", handler, NULL, &health), 0);
                for (unsigned round = 0; round < 5; round++) {
                        _cleanup_close_ int fd = -EBADF;

                        for (unsigned i = 0; i < 200; i++) {
                                if (i == 100)
                                        fd = probe_new(health, 1);
                                crowd.fds[crowd.n++] = client_new(health, 2 + i % n_hosts);
                        }
                        assert_true(probe_is_answered(l, fd));
                        run_for(l, 20 * USEC_PER_MSEC);
                        crowd_done(&crowd);
                }
                http_server_free(health);
        }
}

/* All leave in one moment, and nothing else happens there. */
TEST_CASE(test_all_leave) {
        _cleanup_(loop_freep) Loop *l = NULL;

        assert_return_code(loop_new(&l), 0);
        for (HttpFace face = 0; face < _HTTP_FACE_MAX; face++) {
                HttpServer *server = NULL;

                assert_return_code(http_face_new(l, face, ":0", "127.0.0.1", handler, NULL, &server), 0);
                for (unsigned round = 0; round < 3; round++) {
                        Crowd crowd = { .n = 0 };

                        crowd_add(&crowd, l, server, 1, CONNECTIONS + round);
                        run_for(l, 50 * USEC_PER_MSEC);
                        crowd_done(&crowd);
                        run_for(l, 50 * USEC_PER_MSEC);
                        assert_true(probe(l, server, 1));
                }
                http_server_free(server);
        }
}

/* Is it answered at [::1]? */
static bool probe_ipv6(Loop *l, const HttpServer *s) {
        struct sockaddr_in6 to = { .sin6_family = AF_INET6,
                                   .sin6_addr = IN6ADDR_LOOPBACK_INIT,
                                   .sin6_port = htons(http_server_port(s)) };
        _cleanup_close_ int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
        usec_t end = loop_now(l) + PATIENCE_USEC;
        char answer[512] = "";

        if (fd < 0 || connect(fd, (struct sockaddr *) &to, sizeof(to)) < 0)
                return false;
        assert_return_code(fcntl(fd, F_SETFL, O_NONBLOCK), errno);
        (void) send(fd, REQUEST, strlen(REQUEST), MSG_NOSIGNAL);
        while (loop_now(l) < end && !loopback_client_is_closed(fd)) {
                if (recv(fd, answer, sizeof(answer) - 1, 0) > 0 && startswith(answer, "HTTP/1.1 200"))
                        return true;
                assert_true(loop_iterate(l, 10 * USEC_PER_MSEC) >= 0);
        }
        return false;
}

/* A kernel without IPv6, as this process sees it from now on. */
static void deny_ipv6(void) {
        const struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        const struct sock_fprog program = { ELEMENTSOF(code), (struct sock_filter *) code };

        assert_return_code(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), errno);
        assert_return_code(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), errno);
}

/* 0: answered at both, or at IPv4 alone where there is nothing else. */
static int serve_all(const char *listen, bool no_ipv6) {
        HttpServer *s = NULL;
        Loop *l = NULL;
        int r;

        if (no_ipv6)
                deny_ipv6();
        r = loop_new(&l);
        if (r >= 0)
                r = http_face_new(l, HTTP_FACE_HEALTH, listen, "*", handler, NULL, &s);
        if (r < 0)
                return 1;
        if (!probe(l, s, 1))
                return 2;
        return !no_ipv6 && !probe_ipv6(l, s) ? 3 : 0;
}

/* A pod's addresses are of either kind, or of both, and some kernels have no IPv6. */
TEST_CASE(test_every_address) {
        static const char *const listens[] = { ":0", "*:0", "[::]:0" };

        if (!own_network())
                skip();
        for (size_t i = 0; i < ELEMENTSOF(listens); i++)
                for (unsigned no_ipv6 = 0; no_ipv6 <= (i < 2); no_ipv6++) {
                        int status;
                        pid_t pid;

                        print_message("  %s, no IPv6: %u\n", listens[i], no_ipv6);
                        pid = fork();
                        assert_return_code(pid, errno);
                        if (pid == 0)
                                _exit(serve_all(listens[i], no_ipv6));
                        assert_return_code(waitpid(pid, &status, 0), errno);
                        assert_true(WIFEXITED(status));
                        assert_int_equal(WEXITSTATUS(status), 0);
                }
}

typedef struct Seen {
        unsigned n_headers, n_refused;
        HttpRefusal why;
} Seen;

static unsigned on_headers(const HttpExchange *x, void *userdata, const char **ret_text) {
        ((Seen *) userdata)->n_headers++;
        return 0;
}

static void on_refused(HttpRefusal why, const char *address, void *userdata) {
        Seen *seen = userdata;

        seen->n_refused++;
        seen->why = why;
}

/* A server with another certificate takes the socket over; without one that can be read the old server goes on. Both
 * report what they refuse. */
TEST_CASE(test_succeeded) {
        const HttpFaceTls hooks = { .on_headers = on_headers, .on_refused = on_refused };
        const HttpFaceTls bad = { .certificate = "x", .key = "x" };
        HttpServer *old = NULL, *server = NULL;
        Seen seen[2] = { 0 };
        Loop *l = NULL;
        int fd;

        assert_return_code(loop_new(&l), 0);
        assert_return_code(http_face_new_tls(l, HTTP_FACE_WEBHOOK, ":0", "127.0.0.1", &hooks, handler, &seen[0], &old), 0);
        assert_int_equal(review(l, old, 2, (3u << 20) + 1), 413);
        assert_int_equal(http_face_succeed(l, HTTP_FACE_WEBHOOK, old, &bad, handler, &seen[1], &server), -EIO);
        assert_null(server);
        fd = http_server_dup_socket(old);
        assert_return_code(fd, errno);
        (void) close(fd);
        assert_return_code(http_face_succeed(l, HTTP_FACE_WEBHOOK, old, &hooks, handler, &seen[1], &server), 0);
        assert_int_equal(http_server_dup_socket(old), -EBADF);
        assert_int_equal(review(l, server, 2, (3u << 20) + 1), 413);
        for (unsigned i = 0; i < 2; i++) {
                assert_int_equal(seen[i].n_headers, 1);
                assert_int_equal(seen[i].n_refused, 1);
                assert_int_equal(seen[i].why, HTTP_REFUSED_SIZE);
        }
        http_server_free(server);
        http_server_free(old);
        loop_free(l);
}

TEST_CASE(test_no_address) {
        _cleanup_(loop_freep) Loop *l = NULL;
        HttpServer *s = NULL;

        assert_return_code(loop_new(&l), 0);
        assert_int_equal(http_face_new(l, HTTP_FACE_METRICS, "no port", "127.0.0.1", handler, NULL, &s),
                         -EINVAL);
        assert_int_equal(
                http_face_new(l, HTTP_FACE_METRICS, "192.0.2.1:9101", "127.0.0.1", handler, NULL, &s),
                -EADDRNOTAVAIL);
        assert_null(s);
}

/* Only its owner reaches what is served at a path; there are no addresses there, and no limit of one. */
TEST_CASE(test_path) {
        char folder[] = "/tmp/vesper-unix-XXXXXX";
        _cleanup_free_ char *path = NULL, *listen = NULL;
        struct sockaddr_un to = { .sun_family = AF_UNIX };
        _cleanup_(crowd_done) Crowd crowd = { .n = 0 };
        HttpServer *server = NULL;
        mode_t mask = umask(0077);
        Loop *l = NULL;
        struct stat st;

        assert_non_null(mkdtemp(folder));
        path = strf("%s/metrics", folder);
        listen = strf("unix:%s", path);
        assert_return_code(loop_new(&l), 0);
        assert_return_code(http_face_new(l, HTTP_FACE_METRICS, listen, "127.0.0.1", handler, NULL, &server),
                           0);
        assert_return_code(stat(path, &st), errno);
        assert_true(S_ISSOCK(st.st_mode));
        assert_int_equal(st.st_mode & 0077, 0); /* connecting takes write permission */
        strcpy(to.sun_path, path);
        for (; crowd.n < 10; crowd.n++) {
                crowd.fds[crowd.n] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
                assert_return_code(connect(crowd.fds[crowd.n], (struct sockaddr *) &to, sizeof(to)), errno);
        }
        run_for(l, 50 * USEC_PER_MSEC);
        assert_int_equal(crowd_open(&crowd), 10);
        http_server_free(server);
        loop_free(l);
        unlink(path);
        assert_return_code(rmdir(folder), errno);
        (void) umask(mask);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_held_by_silent_clients),
                cmocka_unit_test(test_large_reviews),
                cmocka_unit_test(test_held_by_a_flood),
                cmocka_unit_test(test_all_leave),
                cmocka_unit_test(test_every_address),
                cmocka_unit_test(test_succeeded),
                cmocka_unit_test(test_no_address),
                cmocka_unit_test(test_path),
        };

        return cmocka_run_group_tests_name("http-face", tests, NULL, NULL);
}
