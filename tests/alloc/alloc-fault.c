/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc-fault.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <regex.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "macro.h"

#if HAS_ASAN
#define REAL(name) __interceptor_##name
#else
#define REAL(name) __libc_##name
#endif

#define PLACES_MAX 200000u
/* The allocator's own frames and five or six of callers: enough to tell one use of strdup() from another. */
#define PLACE_DEPTH 8

/* The sanitizer itself asks for memory before it is ready to be asked about any. */
#define _early_ __attribute__((no_sanitize("address"), no_sanitize("undefined")))

void *REAL(malloc)(size_t size);
void *REAL(calloc)(size_t n, size_t size);
void *REAL(realloc)(void *p, size_t size);

/* The only state: malloc() has no argument for it. */
static struct {
        bool armed, fired;
        pthread_t owner; /* who armed it: a sanitizer's own beginning of a thread asks for memory, too */
        unsigned pauses;
        size_t n_seen, fails_at;
        uint64_t places[PLACES_MAX];
} fault;

void alloc_fault_arm(size_t n) {
        assert(!fault.armed && fault.pauses == 0);
        fault.fails_at = n;
        fault.n_seen = 0;
        fault.fired = false;
        fault.owner = pthread_self();
        fault.armed = true;
}

size_t alloc_fault_disarm(void) {
        assert(fault.armed && fault.pauses == 0);
        fault.armed = false;
        return fault.n_seen;
}

bool alloc_fault_fired(void) {
        return fault.fired;
}

uint64_t alloc_fault_place(size_t n) {
        assert(n > 0 && n <= PLACES_MAX);
        return fault.places[n - 1];
}

void alloc_fault_pause(void) {
        fault.pauses++;
}

void alloc_fault_resume(void) {
        assert(fault.pauses > 0);
        fault.pauses--;
}

/* For whoever looks for what swallowed it: addresses for addr2line. */
static void show_caller(void) {
        void *frames[24];

        if (!getenv("VESPER_ALLOC_TRACE"))
                return;
        fault.pauses++;
        backtrace_symbols_fd(frames, backtrace(frames, 24), 2);
        fault.pauses--;
}

/* LeakSanitizer, where there is one, takes what the loader keeps for a leak. */
extern void __lsan_disable(void) __attribute__((weak));
extern void __lsan_enable(void) __attribute__((weak));

static void note_place(void) {
        void *frames[PLACE_DEPTH];
        uint64_t place = 0;
        int n;

        fault.pauses++; /* the first backtrace() loads a library */
        if (__lsan_disable)
                __lsan_disable();
        n = backtrace(frames, PLACE_DEPTH);
        if (__lsan_enable)
                __lsan_enable();
        fault.pauses--;
        for (int i = 0; i < n; i++)
                place = (place ^ (uintptr_t) frames[i]) * UINT64_C(0x9e3779b97f4a7c15);
        assert(fault.n_seen <= PLACES_MAX);
        fault.places[fault.n_seen - 1] = place;
}

_early_ static bool fails_now(void) {
        if (!fault.armed || fault.pauses > 0 || !pthread_equal(pthread_self(), fault.owner))
                return false;
        fault.n_seen++;
        if (fault.fails_at == 0)
                note_place();
        if (fault.n_seen != fault.fails_at)
                return false;
        fault.fired = true;
        show_caller();
        errno = ENOMEM;
        return true;
}

/* -- in front of libc --------------------------------------------------------------------------- */

_early_ void *malloc(size_t size) {
        return fails_now() ? NULL : REAL(malloc)(size);
}

_early_ void *calloc(size_t n, size_t size) {
        return fails_now() ? NULL : REAL(calloc)(n, size);
}

_early_ void *realloc(void *p, size_t size) {
        return fails_now() ? NULL : REAL(realloc)(p, size);
}

/* A sanitizer has its own that does not ask our malloc(). */
char *strndup(const char *s, size_t max) {
        size_t n = strnlen(s, max);
        char *copy = malloc(n + 1);

        if (!copy)
                return NULL;
        memcpy(copy, s, n);
        copy[n] = 0;
        return copy;
}

char *strdup(const char *s) {
        return strndup(s, SIZE_MAX);
}

/* glibc's own forgets parts of a pattern when memory ends in the middle of one: that is
 * not ours to mend, and none of its allocations fails here. */
int regcomp(regex_t *pattern, const char *text, int flags) {
        int (*real)(regex_t *, const char *, int) = (int (*)(regex_t *, const char *, int)) (uintptr_t) dlsym(RTLD_NEXT, "regcomp");
        int r;

        assert(real);
        alloc_fault_pause();
        r = real(pattern, text, flags);
        alloc_fault_resume();
        return r;
}
