/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Structure-aware fuzzing: the bytes of libFuzzer are decisions. A template (a good Node, answer, file) is
 * bent at the places and in the ways that the bytes draw; bytes that run out bend nothing, so the empty
 * input is the template itself and libFuzzer shrinks towards it. An input that begins with a printable byte
 * or white space is no decisions but a text to be parsed as it stands: so corpora stay readable.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fuzz.h"
#include "macro.h"
#include "time-util.h"

typedef struct Draw {
        const uint8_t *data;
        size_t size;
} Draw;

/* The input is a text, not decisions. */
bool draw_is_text(const uint8_t *data, size_t size);

uint8_t draw_byte(Draw *d); /* 0 when nothing is left */
uint64_t draw_uint64(Draw *d);
size_t draw_below(Draw *d, size_t n); /* 0..n-1 */
bool draw_bool(Draw *d);
/* 0, infinity, around `near`, or anything. */
usec_t draw_usec(Draw *d, usec_t near);
/* At most 40 bytes of the input, without NUL. Free it. */
char *draw_text(Draw *d);
/* An element of the table. */
#define draw_of(d, table) ((table)[draw_below((d), ELEMENTSOF(table))])

/* The template, JSON, with values left out, doubled, replaced by others of their kind or of another. Valid
 * JSON, and no key twice in one object. Free it. */
char *draw_bent_json(Draw *d, const char *json);
/* The template, lines of text, with lines left out, doubled, swapped and damaged. Free it. */
char *draw_bent_lines(Draw *d, const char *text);
/* What is left of the input, cut into pieces: how much of `left` bytes comes next, at least 1. */
size_t draw_piece(Draw *d, size_t left);
