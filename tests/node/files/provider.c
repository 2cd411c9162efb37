/* SPDX-License-Identifier: Apache-2.0 */
/* A provider's command (static: the coordinator's image has no shell): passes the operation, and the request from its
 * standard input, to the bed at PROVIDER_ADDRESS:PROVIDER_PORT, and prints what that answers. */
#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TRY_AGAIN 75

/* Until there is no more. 0: all of it. */
static int pass_on(int from, int to) {
        char data[4096];
        ssize_t n;

        while ((n = read(from, data, sizeof(data))) > 0)
                for (ssize_t done = 0, m; done < n; done += m) {
                        m = write(to, data + done, (size_t) (n - done));
                        if (m <= 0)
                                return -1;
                }
        return n < 0 ? -1 : 0;
}

int main(int argc, char **argv) {
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(PROVIDER_PORT) };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (argc != 2 || inet_pton(AF_INET, PROVIDER_ADDRESS, &a.sin_addr) != 1)
                return 2;
        if (fd < 0 || connect(fd, (struct sockaddr *) &a, sizeof(a)) < 0)
                return TRY_AGAIN;
        if (write(fd, argv[1], strlen(argv[1])) < 0 || write(fd, "\n", 1) < 0 || pass_on(STDIN_FILENO, fd) < 0 ||
            shutdown(fd, SHUT_WR) < 0)
                return TRY_AGAIN;
        return pass_on(fd, STDOUT_FILENO) < 0 ? TRY_AGAIN : 0;
}
