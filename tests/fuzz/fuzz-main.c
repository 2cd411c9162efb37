/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "alloc-util.h"
#include "file-util.h"
#include "fuzz.h"
#include "string-util.h"

/* In the place of libFuzzer: replays the files, and the files of the folders, that are named on the
 * command line. */

#define INPUT_MAX_BYTES (16u * 1024u * 1024u)

static int replay_file(const char *path) {
        _cleanup_free_ char *text = NULL;
        _cleanup_free_ uint8_t *exact = NULL;
        size_t size;
        int r;

        r = read_file(path, INPUT_MAX_BYTES, &text, &size);
        if (r < 0) {
                fprintf(stderr, "Failed to read %s: %s\n", path, strerror(-r));
                return r;
        }
        /* No byte more than there is, so that a sanitizer sees a read past the end. */
        exact = malloc(size > 0 ? size : 1);
        if (!exact)
                return -ENOMEM;
        memcpy(exact, text, size);
        printf("%s\n", path);
        fflush(stdout);
        (void) LLVMFuzzerTestOneInput(exact, size);
        return 1;
}

static int is_input(const struct dirent *d) {
        return d->d_name[0] != '.';
}

static int replay_folder(const char *path) {
        struct dirent **entries = NULL;
        int n, r = 0, count = 0;

        n = scandir(path, &entries, is_input, alphasort);
        if (n < 0)
                return -errno;
        for (int i = 0; i < n; i++) {
                _cleanup_free_ char *file = strf("%s/%s", path, entries[i]->d_name);

                if (r >= 0)
                        r = file ? replay_file(file) : -ENOMEM;
                if (r > 0)
                        count++;
                free(entries[i]);
        }
        free(entries);
        return r < 0 ? r : count;
}

int main(int argc, char *argv[]) {
        int count = 0;

        for (int i = 1; i < argc; i++) {
                struct stat st;
                int r;

                r = stat(argv[i], &st) < 0 ? -errno
                    : S_ISDIR(st.st_mode)  ? replay_folder(argv[i])
                                           : replay_file(argv[i]);
                if (r < 0) {
                        fprintf(stderr, "%s: %s\n", argv[i], strerror(-r));
                        return EXIT_FAILURE;
                }
                count += r;
        }
        if (count == 0) {
                fprintf(stderr, "Nothing was replayed: name files or folders of inputs.\n");
                return EXIT_FAILURE;
        }
        printf("%d inputs replayed\n", count);
        return EXIT_SUCCESS;
}
