/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A small strict pull reader for the XML that AWS's query protocols answer with: elements and text.
 * Attributes are checked and dropped (there is only xmlns), the five entities and numeric references are
 * decoded, one XML declaration may stand first. Refused: DTDs, comments, CDATA, other processing
 * instructions, text beside child elements, invalid UTF-8, control characters, names longer than
 * XML_NAME_MAX, nesting deeper than XML_DEPTH_MAX, anything behind the root element.
 *
 *      xml_reader_open(&x, data, size, max, "Response")
 *      while ((r = xml_reader_child(&x, &name)) > 0)
 *              if (streq(name, "Code")) r = xml_reader_text(&x, &code); else r = xml_reader_skip(&x);
 *      xml_reader_close(&x)
 *
 * A child must be consumed by exactly one of: text, skip, or a loop over its own children that ran to 0. An
 * error sticks: every later call answers it again.
 */

#include <stdbool.h>
#include <stddef.h>

#include "macro.h"

#define XML_DEPTH_MAX 32u
#define XML_NAME_MAX 96u

typedef struct XmlReader {
        const char *data; /* borrowed */
        size_t size;
        size_t at;
        int error;
        bool empty; /* the element just opened was <a/>: its end is still to be told */
        unsigned depth;
        struct {
                size_t start;
                size_t size;
        } open[XML_DEPTH_MAX]; /* names of the open elements, in data */
        char name[XML_NAME_MAX + 1];
} XmlReader;

/* Goes into the root element, whatever its name: *ret_name (may be NULL) is valid until the next call.
 * -E2BIG past max_bytes, -EBADMSG. */
int xml_reader_open(XmlReader *x, const char *data, size_t size, size_t max_bytes, const char **ret_name);
/* 1: inside the next child, *ret_name is valid until the next call; 0: no more, the element is closed;
 * -EBADMSG, -E2BIG. */
int xml_reader_child(XmlReader *x, const char **ret_name);
/* The text of the element just entered, which must have no children; closes it. Never NULL on 0; a text
 * given before in *ret is freed. -EBADMSG, -ENOMEM. */
int xml_reader_text(XmlReader *x, char **ret);
/* Closes the element just entered with all that is in it. */
int xml_reader_skip(XmlReader *x);
/* After the root's children ran to 0: only white space may follow. */
int xml_reader_close(XmlReader *x);
