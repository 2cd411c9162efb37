/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The table of the log of refusals. test-refusal-log.c asks the rule; test-admission-rows.c asks the
 * webhook. */

#include "refusal-log.h"

static const struct RefusalRow {
        const char *what, *address;
        Refusal why;
        unsigned n, at_sec;
        const char *line; /* part of the line of the last of these n refusals; NULL: none */
} refusal_rows[] = {
        { "the first refusal of an address", "10.0.0.1", REFUSAL_CERTIFICATE, 1, 0,
          "refused requests from 10.0.0.1: 1 without a certificate of ClientCAFile= (HTTP 401). If an API server" },
        { "more within the minute", "10.0.0.1", REFUSAL_CERTIFICATE, 500, 30, NULL },
        { "another reason within the minute", "10.0.0.1", HTTP_REFUSED_SIZE, 2, 59, NULL },
        { "another address has a line of its own", "2001:db8::1", REFUSAL_PATH, 1, 59,
          "from 2001:db8::1: 1 other than POST /admission (HTTP 404 or 405). If an API server" },
        { "a minute later the line has all", "10.0.0.1", HTTP_REFUSED_SIZE, 1, 60,
          "from 10.0.0.1: 3 with a body that is too large (HTTP 413), 500 without a certificate" },
        { "they are counted once", "10.0.0.1", HTTP_REFUSED_BODIES, 1, 120,
          "from 10.0.0.1: 1 without room for the body (HTTP 503). If" },
        { "a few slow ones", "10.0.0.2", HTTP_REFUSED_SLOW, REFUSAL_SLOW_MIN - 1, 130, NULL },
        { "are forgotten after a minute", "10.0.0.2", HTTP_REFUSED_SLOW, REFUSAL_SLOW_MIN - 1, 190, NULL },
        { "many slow ones", "10.0.0.2", HTTP_REFUSED_SLOW, 1, 249,
          "from 10.0.0.2: 10 not complete in time" },
        { "a slow one beside another reason", "10.0.0.3", HTTP_REFUSED_SLOW, 1, 250, NULL },
        { "", "10.0.0.3", HTTP_REFUSED_ADDRESS, 1, 251,
          "1 beyond the number of unanswered requests of one address (HTTP 503), 1 not" },
        { "no address", NULL, REFUSAL_REVIEW, 1, 300,
          "from an unknown address: 1 without an AdmissionReview (HTTP 400)" },
        { "no address, but a text", "\x1b]0;t\x07", REFUSAL_REVIEW, 1, 360, "from an unknown address: 1 w" },
};
