/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "alloc-util.h"

static inline bool streq(const char *a, const char *b) {
        return strcmp(a, b) == 0;
}
/* NULL equals NULL and nothing else. */
static inline bool streq_ptr(const char *a, const char *b) {
        return a && b ? strcmp(a, b) == 0 : a == b;
}
static inline bool isempty(const char *s) {
        return !s || s[0] == 0;
}
static inline const char *strempty(const char *s) {
        return s ? s : "";
}
/* Compares two const char * elements by strcmp(), for qsort() and bsearch(). */
int compare_strings(const void *a, const void *b);
/* Behind the prefix, or NULL. */
const char *startswith(const char *s, const char *prefix);
const char *endswith(const char *s, const char *suffix);
/* Returns the full stop that the text lacks as a sentence: "." or "". Empty text is no sentence. */
const char *full_stop(const char *text);
/* Without leading and trailing white space, in place. */
char *strstrip(char *s);
/* *dst becomes a copy of src (NULL clears). 0 or -ENOMEM, then *dst is unchanged. */
int free_and_strdup(char **dst, const char *src);
/* Valid UTF-8, without overlong forms, surrogates or anything past U+10FFFF. */
bool utf8_is_valid(const char *s, size_t size);
/* Number of bytes, 1 to 4, of the sequence at s, of which size bytes are there. 0: it is not valid, or
 * not complete. */
size_t utf8_sequence_size(const char *s, size_t size);
uint32_t utf8_code_point(const char *s, size_t n); /* n: what utf8_sequence_size() returned, not 0 */
#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD, in the place of what is no text */
/* DNS-1123 subdomain as Kubernetes has it for names: 1..253 of [a-z0-9.-], labels begin and end alphanumeric. */
bool dns1123_subdomain_is_valid(const char *s);
/* Is this UTF-8 sequence of n bytes a control character (C0, C1, DEL), a line or paragraph separator, or one that changes
 * the order in which text is read? */
bool utf8_is_control(const char *s, size_t n);
/* Control characters become '?', each of their bytes, at most max_bytes (cut on a UTF-8 border, "..." appended): for text that came
 * from outside and goes into a log or an Event. NULL on ENOMEM. */
char *str_sanitize(const char *s, size_t max_bytes);

/* A growing string. Zero-initialised is empty; an allocation failure sticks and strbuf_steal() reports it, so that the
 * calls between need no check. */
typedef struct StrBuf {
        char *data; /* NUL-terminated once anything was added */
        size_t size;
        size_t allocated;
        bool failed;
} StrBuf;

/* Room for so many bytes more, in one step: for who knows what is to come. */
void strbuf_make_room(StrBuf *b, size_t n);
void strbuf_add(StrBuf *b, const char *s);
void strbuf_add_n(StrBuf *b, const char *s, size_t n);
void strbuf_add_char(StrBuf *b, char c);
void strbuf_addf(StrBuf *b, const char *fmt, ...) _printf_(2, 3);
void strbuf_addv(StrBuf *b, const char *fmt, va_list ap) _printf_(2, 0);
void strbuf_truncate(StrBuf *b, size_t size);
/* The string ("" if nothing was added), owned by the caller; the buffer is empty afterwards. NULL: out of memory. */
char *strbuf_steal(StrBuf *b);
static inline const char *strbuf_str(const StrBuf *b) {
        return b->data ? b->data : "";
}
void strbuf_done(StrBuf *b);
#define _cleanup_strbuf_ _cleanup_(strbuf_done)

/* Formats into a new string; NULL on ENOMEM. */
char *strf(const char *fmt, ...) _printf_(1, 2);
/* Percent-encodes everything but RFC 3986 unreserved characters (and '/' if keep_slash). NULL on ENOMEM. */
char *url_encode(const char *s, bool keep_slash);

/* Lower-case hex of size bytes, NUL-terminated, into ret (2 * size + 1 bytes). */
void hex_encode(const void *data, size_t size, char *ret);
/* Strict RFC 4648 base64 with padding, white space skipped. -EBADMSG, -ENOMEM. *ret has a NUL behind it. */
int base64_decode(const char *s, size_t size, void **ret, size_t *ret_size);
char *base64_encode(const void *data, size_t size);
