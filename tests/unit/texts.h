/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Texts that tests write and read. */

#include <string.h>

/* Returns the number of places at which the text contains the part, and that do not overlap. */
static inline unsigned text_count(const char *text, const char *part) {
        unsigned n = 0;

        for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
                n++;
        return n;
}

/* Replaces each ' by ", for JSON in C sources. Returns the text. */
static inline char *text_quote(char *text) {
        for (char *at = text; (at = strchr(at, '\'')); at++)
                *at = '"';
        return text;
}
