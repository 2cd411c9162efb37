/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * plain-output.c: standard output and standard error of a program that prints what others wrote: texts of
 * the API server, of other machines, of a cloud. Any of these may hold sequences that a terminal obeys.
 * While a PlainOutput is in force, stdio passes no control character but line feed and tab, nothing that
 * changes the direction of reading, and nothing that is not UTF-8.
 *
 * A program that wants to move the cursor itself calls fflush() and then writes to the descriptor.
 */

#include <stdio.h>

#include "string-util.h"

typedef enum PlainOutputForm {
        PLAIN_OUTPUT_TEXT, /* '?' in the place of each such character */
        PLAIN_OUTPUT_JSON, /* \u009b in its place: for strings of JSON, and of YAML in double quotes */
} PlainOutputForm;

typedef struct PlainOutput {
        FILE **stream; /* &stdout or &stderr, which is `file` while this is in force; NULL: not in force */
        FILE *file, *before;
        int fd;
        PlainOutputForm form;
        char rest[4]; /* the beginning of a character whose end has not been printed yet */
        size_t n_rest;
} PlainOutput;

/* Replaces *stream by a stream that filters and writes to fd. stream: &stdout or &stderr. o must not move
 * until plain_output_end(). 0 or -ENOMEM. */
int plain_output_begin(PlainOutput *o, FILE **stream, int fd);
/* Sets the form of what is printed from now on. */
void plain_output_set_form(PlainOutput *o, PlainOutputForm form);
/* Prints what is buffered, and puts the stream back. Returns 0, or the negative errno of what could not
 * be written. Does nothing if o is not in force. */
int plain_output_end(PlainOutput *o);
