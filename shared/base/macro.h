/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * base/: strings, maps, lists, typed parsing, time. Knows nothing of Kubernetes, does no I/O but reading a file whole,
 * and is called by every other room. This header holds the few macros that the rest of the tree is written in.
 */

#include <assert.h>
#include <errno.h>
#include <stddef.h>

/* 1 in a program that AddressSanitizer instruments: its allocator is not libc's. gcc defines
 * __SANITIZE_ADDRESS__, clang has a feature test. */
#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#define HAS_ASAN __has_feature(address_sanitizer)
#else
#define HAS_ASAN 0
#endif

#define ELEMENTSOF(x) (sizeof(x) / sizeof((x)[0]))
#define CONTAINER_OF(ptr, type, member) ((type *) (void *) ((char *) (ptr) - offsetof(type, member)))

#define MIN(a, b) \
        ({ \
                __typeof__(a) _min_a = (a); \
                __typeof__(b) _min_b = (b); \
                _min_a < _min_b ? _min_a : _min_b; \
        })
#define MAX(a, b) \
        ({ \
                __typeof__(a) _max_a = (a); \
                __typeof__(b) _max_b = (b); \
                _max_a > _max_b ? _max_a : _max_b; \
        })

/* Run f(&variable) when the variable leaves its scope. */
#define _cleanup_(f) __attribute__((cleanup(f)))
#define _printf_(fmt, args) __attribute__((format(printf, fmt, args)))
#define _unused_ __attribute__((unused))
#define _must_check_ __attribute__((warn_unused_result))

/* Hand a pointer (or descriptor) over in one line: the variable is emptied, the value returned. */
#define TAKE_PTR(p) \
        ({ \
                __typeof__(p) *_take_pp = &(p); \
                __typeof__(p) _take_p = *_take_pp; \
                *_take_pp = NULL; \
                _take_p; \
        })
#define SWAP(a, b) \
        do { \
                typeof(a) _swap = (a); \
                (a) = (b); \
                (b) = _swap; \
        } while (0)
#define TAKE_FD(fd) \
        ({ \
                int *_take_fdp = &(fd); \
                int _take_fd = *_take_fdp; \
                *_take_fdp = -EBADF; \
                _take_fd; \
        })

/* x_freep(X **) for _cleanup_, from X *x_free(X *). */
#define DEFINE_FREEP(type, free_func) \
        static inline void free_func##p(type **p) { \
                if (*p) \
                        *p = free_func(*p); \
        } \
        struct _freep_needs_semicolon_##free_func
