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
