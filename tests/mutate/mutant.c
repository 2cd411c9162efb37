/* SPDX-License-Identifier: Apache-2.0 */

/*
 * VESPER_MUTANT=NUMBER turns one planted mistake on. VESPER_MUTANTS_REACHED=FILE names a file with one byte
 * for each place: a program sets the byte of each place that it reaches. The mapping is shared, so a program
 * that dies has marked its places, too.
 */

#include "mutant.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PLACES_MAX 65536 /* as in mutate.py */

static unsigned char unnamed[PLACES_MAX];

unsigned char *mutant_reached = unnamed;
int mutant_planted;

__attribute__((constructor(101))) static void mutant_begin(void) {
        const char *number = getenv("VESPER_MUTANT"), *path = getenv("VESPER_MUTANTS_REACHED");
        void *map;
        int fd;

        if (number)
                mutant_planted = atoi(number);
        if (!path)
                return;
        fd = open(path, O_RDWR | O_CLOEXEC);
        if (fd < 0)
                abort();
        map = mmap(NULL, PLACES_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED)
                abort();
        close(fd);
        mutant_reached = map;
}
