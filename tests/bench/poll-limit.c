/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What an idle agent cannot go below: one GET a second, by libcurl on a connection that is kept, and nothing
 * else; or, without a URL, only the wakeup. Until it is killed.
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
        CURL *easy;

        if (curl_global_init(CURL_GLOBAL_NOTHING) != CURLE_OK || !(easy = curl_easy_init()))
                exit(1);
        curl_easy_setopt(easy, CURLOPT_URL, url);
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
