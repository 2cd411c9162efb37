/* SPDX-License-Identifier: Apache-2.0 */
#include "listen-address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "file-util.h"
#include "parse-util.h"
#include "string-util.h"

/* Connections that wait to be accepted. */
#define LISTEN_BACKLOG 512

int listen_address_parse(const char *s, const char *default_address, char **ret_address,
                         uint16_t *ret_port) {
        const char *colon = strrchr(s, ':'), *begin = s, *end = colon;
        uint64_t port;
        char *address;

        if (!colon || parse_uint64_range(colon + 1, 0, UINT16_MAX, &port) < 0)
                return -EINVAL;
        if (*s == '[') {
                begin = s + 1;
                end = colon - 1;
                if (end < begin || *end != ']')
                        return -EINVAL;
        } else if (memchr(s, ':', (size_t) (colon - s)))
                return -EINVAL; /* an IPv6 address without brackets */

        address = end == begin ? strdup(default_address) : memdup_str(begin, (size_t) (end - begin));
        if (!address)
                return -ENOMEM;
        *ret_address = address;
        *ret_port = (uint16_t) port;
        return 0;
}

bool listen_address_is_loopback(const char *address) {
        struct in6_addr in6;
        struct in_addr in;

        if (inet_pton(AF_INET, address, &in) == 1)
                return ntohl(in.s_addr) >> 24 == IN_LOOPBACKNET;
        return inet_pton(AF_INET6, address, &in6) == 1 && IN6_IS_ADDR_LOOPBACK(&in6);
}

const char *listen_address_unix_path(const char *s) {
        const char *path = startswith(s, "unix:");

        return path && path[0] == '/' && strlen(path) < sizeof(((struct sockaddr_un *) NULL)->sun_path)
                       ? path
                       : NULL;
}

int listen_unix(const char *path) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        _cleanup_close_ int fd = -EBADF;
        struct stat st;

        assert(path && strlen(path) < sizeof(address.sun_path));
        strcpy(address.sun_path, path);
        if (lstat(path, &st) >= 0) {
                if (!S_ISSOCK(st.st_mode))
                        return -EEXIST;
                (void) unlink(path);
        }
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || bind(fd, (const struct sockaddr *) &address, sizeof(address)) < 0 ||
            listen(fd, SOMAXCONN) < 0)
                return -errno;
        return TAKE_FD(fd);
}

static int listen_at(const char *address, uint16_t port) {
        _cleanup_close_ int fd = -EBADF;
        struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
        struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
        struct sockaddr *sa = (struct sockaddr *) &in;
        socklen_t size = sizeof(in);
        int one = 1, both = 0;

        if (inet_pton(AF_INET6, address, &in6.sin6_addr) == 1) {
                sa = (struct sockaddr *) &in6;
                size = sizeof(in6);
        } else if (inet_pton(AF_INET, address, &in.sin_addr) != 1)
                return -EINVAL;

        fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        /* "::" must accept IPv4, too, whatever net.ipv6.bindv6only is. */
        if (sa == (struct sockaddr *) &in6 &&
            setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &both, sizeof(both)) < 0)
                return -errno;
        if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 || bind(fd, sa, size) < 0 ||
            listen(fd, LISTEN_BACKLOG) < 0)
                return -errno;
        return TAKE_FD(fd);
}

int listen_tcp(const char *address, uint16_t port) {
        int fd;

        if (!streq(address, "*"))
                return listen_at(address, port);
        fd = listen_at("::", port);
        return fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL ? listen_at("0.0.0.0", port) : fd;
}

uint16_t listen_port(int fd) {
        union {
                struct sockaddr sa;
                struct sockaddr_in in;
                struct sockaddr_in6 in6;
        } u = { 0 };
        socklen_t size = sizeof(u);

        if (getsockname(fd, &u.sa, &size) < 0)
                return 0;
        if (u.sa.sa_family == AF_INET)
                return ntohs(u.in.sin_port);
        return u.sa.sa_family == AF_INET6 ? ntohs(u.in6.sin6_port) : 0;
}
