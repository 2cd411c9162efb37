/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Text inside a page of HTML that is well-formed XML as well, or inside an SVG. Pure. */

#include "string-util.h"

/* As text of an element, or of an attribute in double quotes. Control characters, what is no UTF-8, and the two characters
 * that XML forbids are each a '?'. At most max_columns characters, then an ellipsis. */
void markup_add_text(StrBuf *b, const char *s, size_t max_columns);
/* The same of what is formatted. */
void markup_add_textf(StrBuf *b, size_t max_columns, const char *fmt, ...) _printf_(3, 4);
