/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A provider for the benchmarks (coordinator/cloud/cloud-exec.h): a machine is there until it was ended, and
 * every question is answered at once, so that what is measured is not the cloud. What it ended stays ended:
 * files in the folder "ended" beside the program's name as it was called.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define KEY "\"providerID\""

/* The value of providerID as a file name; requests come from our own writer and need no more than this. */
static int machine_of(const char *request, char *ret, size_t size) {
        const char *p = strstr(request, KEY), *end;
        size_t n = 0;

        p = p ? strchr(p + strlen(KEY), '"') : NULL;
        end = p ? strchr(p + 1, '"') : NULL;
        if (!end)
                return -EINVAL;
        for (p++; p < end && n + 1 < size; p++)
                ret[n++] = *p == '/' || *p == ':' ? '_' : *p;
        ret[n] = 0;
        return 0;
}

int main(int argc, char **argv) {
        char request[4096], machine[256], path[4096];
        const char *slash = strrchr(argv[0], '/');
        ssize_t n = 0, got;

        while ((got = read(STDIN_FILENO, request + n, sizeof(request) - 1 - (size_t) n)) > 0)
                n += got;
        request[n] = 0;
        if (argc != 2 || !slash || machine_of(request, machine, sizeof(machine)) < 0) {
                fprintf(stderr, "answer-at-once: what is asked of which machine?\n");
                return 1;
        }
        snprintf(path, sizeof(path), "%.*s/ended/%s", (int) (slash - argv[0]), argv[0], machine);
        if (strcmp(argv[1], "terminate") == 0) {
                int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

                if (fd < 0) {
                        fprintf(stderr, "answer-at-once: %s: %s\n", path, strerror(errno));
                        return 1;
                }
                close(fd);
        }
        puts(access(path, F_OK) == 0 ? "{\"state\":\"gone\"}" : "{\"state\":\"present\"}");
        return 0;
}
