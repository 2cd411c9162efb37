/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What an idle agent cannot go below: one GET a second, by libcurl on a connection that is kept, and nothing
 * else; or, without a URL, only the wakeup. Until it is killed. libcurl is spared what it can be: it need
 * not take the URL apart, nor look for old names in its cache, nor ask malloc() for a large buffer; and it
 * waits in the call, without an event loop.
 *
 *      poll-limit [URL]
 */

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

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
        return easy;
}

int main(int argc, char **argv) {
        CURL *easy = argc > 1 ? prepare(argv[1]) : NULL;
        struct timespec next;

        (void) clock_gettime(CLOCK_MONOTONIC, &next);
        for (;;) {
                next.tv_sec++;
                while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL) != 0)
                        ;
                if (easy && curl_easy_perform(easy) != CURLE_OK) {
                        (void) fputs("no answer\n", stderr);
                        return 1;
                }
        }
}
