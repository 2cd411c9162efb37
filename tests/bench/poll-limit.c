/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What an idle agent cannot go below: a look at its metadata service a second, or every POLL_LIMIT_SEC of
 * the environment, behind it at most one more in the place of the feeds that are looked at every 4 s, 10 s, minute and five
 * minutes (agent/notice/notice-ec2.h; none with POLL_LIMIT_ALONE: other clouds have one), and nothing else. POLL_LIMIT_HEADER:
 * what libcurl sends besides. Until it is killed.
 *
 *      poll-limit                   only the wakeup
 *      poll-limit URL               by libcurl, which is spared what it can be: it need not take the URL
 *                                   apart, nor look for old names in its cache, nor ask malloc() for a large
 *                                   buffer; and it waits in the call, without an event loop
 *      poll-limit HOST PORT PATH    by a bare socket, each look on a new one: what the kernel takes for
 *                                   connect, send, recv until the other end closes, and close. No program
 *                                   that asks a service which ends its connections can do with less.
 */

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static size_t drop(char *bytes, size_t size, size_t n, void *userdata) {
        (void) bytes;
        (void) userdata;
        return size * n;
}

static CURL *prepare(const char *url) {
        CURLU *parts;
        CURL *easy;

        if (curl_global_init(CURL_GLOBAL_NOTHING) != CURLE_OK || !(easy = curl_easy_init()) ||
            !(parts = curl_url()) || curl_url_set(parts, CURLUPART_URL, url, 0) != CURLUE_OK)
                exit(1);
        curl_easy_setopt(easy, CURLOPT_CURLU, parts);
        curl_easy_setopt(easy, CURLOPT_DNS_CACHE_TIMEOUT, -1L);
        curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 1024L);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, drop);
        curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        if (getenv("POLL_LIMIT_HEADER"))
                curl_easy_setopt(easy, CURLOPT_HTTPHEADER, curl_slist_append(NULL, getenv("POLL_LIMIT_HEADER")));
        return easy;
}

static bool look_by_libcurl(CURL *easy) {
        return curl_easy_perform(easy) == CURLE_OK;
}

/* Was it answered? */
static bool look_by_socket(const struct sockaddr_in *to, const char *request, size_t length) {
        char answer[4096];
        ssize_t n, all = 0;
        int fd;

        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return false;
        if (connect(fd, (const struct sockaddr *) to, sizeof *to) == 0 &&
            send(fd, request, length, MSG_NOSIGNAL) == (ssize_t) length)
                while ((n = recv(fd, answer, sizeof answer, 0)) > 0)
                        all += n;
        (void) close(fd);
        return all > 0;
}

/* Is one of the slower feeds due? The most overdue has been looked at then. */
static bool other_is_due(time_t now_sec) {
        static const time_t interval_sec[] = { 4, 10, 60, 300 };
        static time_t due_sec[4];
        size_t found = 0;

        for (size_t i = 1; i < 4; i++)
                if (due_sec[i] < due_sec[found])
                        found = i;
        if (due_sec[found] > now_sec)
                return false;
        due_sec[found] = now_sec + interval_sec[found];
        return true;
}

int main(int argc, char **argv) {
        CURL *easy = argc == 2 ? prepare(argv[1]) : NULL;
        const char *every = getenv("POLL_LIMIT_SEC");
        time_t interval_sec = every ? atoi(every) : 1;
        bool alone = getenv("POLL_LIMIT_ALONE");
        struct sockaddr_in to = { .sin_family = AF_INET };
        char request[512];
        struct timespec next;
        int length = 0;

        if (interval_sec < 1)
                return 2;
        if (argc == 4) {
                to.sin_port = htons((in_port_t) atoi(argv[2]));
                length = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: %s:%s\r\n\r\n", argv[3],
                                  argv[1], argv[2]);
                if (inet_pton(AF_INET, argv[1], &to.sin_addr) != 1 || length >= (int) sizeof request)
                        return 2;
        }
        (void) clock_gettime(CLOCK_MONOTONIC, &next);
        for (;;) {
                next.tv_sec += interval_sec;
                while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL) != 0)
                        ;
                for (int looks = !alone && other_is_due(next.tv_sec) ? 2 : 1; looks > 0; looks--)
                        if ((easy && !look_by_libcurl(easy)) ||
                            (length > 0 && !look_by_socket(&to, request, (size_t) length))) {
                                (void) fputs("no answer\n", stderr);
                                return 1;
                        }
        }
}
