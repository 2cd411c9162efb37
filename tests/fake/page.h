/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "http-message.h"

/* What an HTTP handler answers to one request that it answers at once. */
typedef struct Page {
        unsigned status;
        char *type, *body;
} Page;

Page page_ask(http_handler_t handler, void *userdata, HttpMethod method, const char *path);
/* Of metrics: this family's values, over all of its labels. */
double page_sum(const Page *p, const char *family);
void page_done(Page *p);
#define _cleanup_page_ _cleanup_(page_done)
