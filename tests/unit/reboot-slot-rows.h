/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Rows of a request to reboot and the answer to it, as they stand on a Node. The test reboot-slots reads
 * each row with the pure functions. The test reboot-rows shows the Node to a coordinator, and reads from it
 * what the coordinator answers. The rows are of the time REBOOT_ROWS_NOW.
 */

#include "marks.h"
#include "reboot-slots.h"

#define REBOOT_ROWS_NOW (UINT64_C(1800000000) * USEC_PER_SEC) /* 2027-01-15T08:00:00Z */
#define SOON "2027-01-15T08:10:00Z"
#define SLOT (30 * USEC_PER_MINUTE)
#define PAST "2027-01-15T07:59:59Z"

/* Requests and grants as annotations have them, inside a JSON text in which ' stands for ". */
#define REQUEST(boot, kind, until) \
        "'" ANNOTATION_SHUTDOWN_REQUEST "':'{\\'id\\':\\'a\\',\\'bootID\\':\\'" boot \
        "\\',\\'kind\\':\\'" kind "\\',\\'until\\':\\'" until "\\'}'"
#define REQUEST_OF(id, event) \
        "'" ANNOTATION_SHUTDOWN_REQUEST "':'{\\'id\\':\\'" id "\\',\\'bootID\\':\\'b1\\',\\'kind\\':\\'reboot\\',\\'until\\':\\'" SOON \
        "\\',\\'event\\':\\'" event "\\'}'"
#define BYTES_64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define BYTES_128 BYTES_64 BYTES_64
#define BYTES_256 BYTES_128 BYTES_128
#define BYTES_1024 BYTES_256 BYTES_256 BYTES_256 BYTES_256
#define GRANT(id, until) \
        "'" ANNOTATION_SHUTDOWN_GRANTED "':'{\\'id\\':\\'" id "\\',\\'until\\':\\'" until "\\'}'"
#define ASKED REQUEST("b1", "reboot", SOON)
#define READY "'conditions':[{'type':'Ready','status':'True'}],"
#define BOOT(id) "'nodeInfo':{'bootID':'" id "'}"

/* The annotation of a spot notice in this phase. */
static const char spot[] =
        ",'" ANNOTATION_INTERRUPTION
        "':'{\\'id\\':\\'s\\',\\'action\\':\\'terminate\\',\\'phase\\':\\'%s\\'}'";

typedef struct RebootStandRow {
        const char *what, *annotations, *meta, *status;
        const char *interruption; /* phase of a spot notice; NULL: there is none */
        RebootRequestState stand;
        bool stale;
} RebootStandRow;

static const RebootStandRow reboot_stand_rows[] = {
        { "nothing", "", "", BOOT("b1"), NULL, REBOOT_REQUEST_NONE, false },
        { "a request", ASKED, "", READY BOOT("b1"), NULL, REBOOT_REQUEST_WAITING, false },
        { "... to power off", REQUEST("b1", "poweroff", SOON), "", BOOT("b1"), NULL,
          REBOOT_REQUEST_WAITING, false },
        { "... of a node that is not Ready", ASKED, "", BOOT("b1"), NULL, REBOOT_REQUEST_WAITING,
          false },
        { "... whose boot nobody has reported", ASKED, "", "", NULL, REBOOT_REQUEST_WAITING, false },
        { "... or with nothing in it", ASKED, "", READY BOOT(""), NULL, REBOOT_REQUEST_WAITING, false },
        { "... the same boot, written otherwise", REQUEST("B-1", "reboot", SOON), "", BOOT("b1"),
          NULL, REBOOT_REQUEST_WAITING, false },
        { "... whose patience is over", REQUEST("b1", "reboot", PAST), "", BOOT("b1"), NULL,
          REBOOT_REQUEST_OVER, false },
        { "... of another boot", ASKED, "", READY BOOT("b2"), NULL, REBOOT_REQUEST_OVER, false },
        { "... to do something else", REQUEST("b1", "explode", SOON), "", BOOT("b1"), NULL,
          REBOOT_REQUEST_INVALID, false },
        { "... of no boot", REQUEST("", "reboot", SOON), "", BOOT("b1"), NULL, REBOOT_REQUEST_INVALID,
          false },
        { "... without a time", REQUEST("b1", "reboot", "tomorrow"), "", BOOT("b1"), NULL,
          REBOOT_REQUEST_INVALID, false },
        { "... that is no JSON", "'" ANNOTATION_SHUTDOWN_REQUEST "':'yes'", "", BOOT("b1"), NULL,
          REBOOT_REQUEST_INVALID, false },
        { "... with an id that is too long", REQUEST_OF(BYTES_128 "x", "e"), "", BOOT("b1"), NULL, REBOOT_REQUEST_INVALID,
          false },
        { "... with the longest event", REQUEST_OF("a", BYTES_256), "", BOOT("b1"), NULL, REBOOT_REQUEST_WAITING, false },
        { "... with an event that is too long", REQUEST_OF("a", BYTES_256 "x"), "", BOOT("b1"), NULL,
          REBOOT_REQUEST_INVALID, false },
        { "... of more than 4096 bytes", REQUEST_OF("a", BYTES_1024 BYTES_1024 BYTES_1024 BYTES_1024), "", BOOT("b1"), NULL,
          REBOOT_REQUEST_INVALID, false },
        { "... of a node that is being deleted", ASKED,
          ",'deletionTimestamp':'2027-01-15T07:00:00Z'", BOOT("b1"), NULL, REBOOT_REQUEST_LEAVING,
          false },
        { "... whose machine ends", ASKED, "", BOOT("b1"), "Draining", REBOOT_REQUEST_LEAVING, false },
        { "... whose machine was said to end, until a person overruled it", ASKED, "", BOOT("b1"),
          "Released", REBOOT_REQUEST_WAITING, false },
        { "... whose patience ends in this moment", REQUEST("b1", "reboot", "2027-01-15T08:00:00Z"), "",
          BOOT("b1"), NULL, REBOOT_REQUEST_OVER, false },
        { "granted until this moment", ASKED "," GRANT("a", "2027-01-15T08:00:00Z"), "", BOOT("b1"), NULL,
          REBOOT_REQUEST_EXPIRED, false },
        { "granted", ASKED "," GRANT("a", SOON), "", READY BOOT("b1"), NULL, REBOOT_REQUEST_HOLDS_SLOT,
          false },
        { "granted, and waits no longer: it has begun",
          REQUEST("b1", "reboot", PAST) "," GRANT("a", SOON), "", BOOT("b1"), NULL,
          REBOOT_REQUEST_HOLDS_SLOT, false },
        { "granted, and deleted since", ASKED "," GRANT("a", SOON),
          ",'deletionTimestamp':'2027-01-15T07:00:00Z'", BOOT("b1"), NULL, REBOOT_REQUEST_HOLDS_SLOT,
          false },
        { "granted, and up again, but not Ready", ASKED "," GRANT("a", SOON), "", BOOT("b2"), NULL,
          REBOOT_REQUEST_HOLDS_SLOT, false },
        { "granted, and back", ASKED "," GRANT("a", SOON), "", READY BOOT("b2"), NULL,
          REBOOT_REQUEST_OVER, true },
        { "granted, and not back in time", ASKED "," GRANT("a", PAST), "", BOOT("b1"), NULL,
          REBOOT_REQUEST_EXPIRED, false },
        { "granted, and withdrawn", GRANT("a", SOON), "", BOOT("b1"), NULL, REBOOT_REQUEST_NONE,
          true },
        { "asked anew, with the answer to the last one", ASKED "," GRANT("z", SOON), "", BOOT("b1"),
          NULL, REBOOT_REQUEST_WAITING, true },
        { "an answer that cannot be read", ASKED ",'" ANNOTATION_SHUTDOWN_GRANTED "':'yes'", "",
          BOOT("b1"), NULL, REBOOT_REQUEST_WAITING, true },
        { "an answer without an id", ASKED "," GRANT("", SOON), "", BOOT("b1"), NULL,
          REBOOT_REQUEST_WAITING, true },
};

/* Interruptions by action and phase. The coordinator refuses a slot only while the interruption ends the
 * machine. */
typedef struct RebootInterruptionRow {
        const char *action, *phase;
        RebootRequestState stand;
} RebootInterruptionRow;

static const RebootInterruptionRow reboot_interruption_rows[] = {
        { "terminate", "Cordoned", REBOOT_REQUEST_LEAVING }, { "stop", "Drained", REBOOT_REQUEST_LEAVING },
        { "none", "Cordoned", REBOOT_REQUEST_WAITING },        { "reboot", "Draining", REBOOT_REQUEST_WAITING },
        { "terminate", "Released", REBOOT_REQUEST_WAITING },
};

/* A grant that ends later than any slot can was not written by the coordinator. */
typedef struct RebootTooLongRow {
        const char *until;
        RebootRequestState stand;
        bool too_long;
} RebootTooLongRow;

static const RebootTooLongRow reboot_too_long_rows[] = {
        { "2027-01-15T08:30:00Z", REBOOT_REQUEST_HOLDS_SLOT, false },
        /* Granted by the clock of another leader. */
        { "2027-01-15T08:35:00Z", REBOOT_REQUEST_HOLDS_SLOT, false },
        { "2027-01-15T08:35:01Z", REBOOT_REQUEST_WAITING, true },
        { "2099-01-01T00:00:00Z", REBOOT_REQUEST_WAITING, true },
};
