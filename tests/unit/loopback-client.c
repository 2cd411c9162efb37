/* SPDX-License-Identifier: Apache-2.0 */
#include "loopback-client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "cmocka-test.h"

int loopback_client_new(uint16_t port, unsigned host) {
        struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr.s_addr = htonl((127u << 24) + host) };
        struct sockaddr_in to = { .sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons(port) };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_return_code(bind(fd, (struct sockaddr *) &from, sizeof(from)), errno);
        assert_return_code(connect(fd, (struct sockaddr *) &to, sizeof(to)), errno);
        assert_return_code(fcntl(fd, F_SETFL, O_NONBLOCK), errno);
        return fd;
}

bool loopback_client_is_closed(int fd) {
        char byte;
        ssize_t n = recv(fd, &byte, 1, MSG_PEEK);

        return n == 0 || (n < 0 && errno != EAGAIN);
}
