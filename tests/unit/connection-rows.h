/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which connection gives way to a new one. test-connection-table.c asks the rule, test-http-limits.c a
 * server with clients on loopback.
 *
 * A table has a triplet for each connection, oldest first: ADDRESS PHASE SIZE. Address: a-z, uppercase for
 * the same in IPv6's form; phase: i(dle) r(eceiving) h(andled) s(ent) x (cut); size: a digit.
 */

static const struct ConnectionRow {
        const char *what, *table;
        char newcomer;
        int displaced; /* index of the connection that gives way; -1: none */
} connection_rows[] = {
        { "nobody is there", "", 'a', -1 },
        { "of one address the one that has waited longest", "ai0 ai0 ai0", 'a', 0 },
        { "an incomplete request waits for its client as well", "as0 ar0 ai0", 'a', 0 },
        { "the handler's are left alone", "ah0 ah0 ai0 ar0", 'a', 2 },
        { "all are the handler's, and of the newcomer's address", "ah0 ah0", 'a', -1 },
        { "all of the newcomer's address are the handler's, one of another is not", "ah0 ah0 bi0",
          'a', 2 },
        { "all of the address that has most are the handler's, one of another is not", "bh0 bh0 ci0",
          'a', 2 },
        { "all are the handler's, of another address", "bh0 bh0", 'a', 0 },
        { "of the address that has most", "ai0 bi0 bi0 ci0", 'a', 1 },
        { "the newcomer's own has most", "bi0 ai0 ai0", 'a', 1 },
        { "the newcomer's own has as many as the other", "bi0 ai0", 'a', 1 },
        { "all have one, and the newcomer none", "bi0 ci0 di0", 'a', 0 },
        { "two have two, and the newcomer one", "ai0 bi0 ci0 ci0 bi0", 'a', 1 },
        { "one that was cut has no place any more", "bx0 bi0 ci0 ci0", 'a', 2 },
        { "IPv4 is the same address in IPv6's form", "bi0 ai0 Ai0 bi0 Ai0", 'b', 1 },
};
