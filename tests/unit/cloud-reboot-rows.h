/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Rows of Nodes that ask for a reboot by the cloud. The test cloud-reboot-rule plays each row with the pure
 * rule. The test reboot-rows shows the Node to a coordinator, and counts what EC2 is told. The rows are of
 * the time CLOUD_ROWS_NOW.
 */

#include "cloud-reboot-rule.h"
#include "marks.h"

#define CLOUD_ROWS_NOW (UINT64_C(1800000000) * USEC_PER_SEC) /* 2027-01-15T08:00:00Z */
#define CLOUD_ROWS_SLOT (30 * USEC_PER_MINUTE)

/* Requests as an annotation has them, inside a JSON text in which ' stands for ". */
#define CLOUD_REQUEST(boot, more) \
        "'" ANNOTATION_SHUTDOWN_REQUEST "':'{\\'id\\':\\'a\\',\\'bootID\\':\\'" boot "\\',\\'kind\\':\\'reboot\\',\\'until\\':\\'2027-01-15T09:00:00Z\\'" more "}'"
#define FOR_EVENT ",\\'event\\':\\'e\\'"
#define BY_CLOUD FOR_EVENT ",\\'by\\':\\'cloud\\'"
#define CLOUD_GRANT(id, until, more) ",'" ANNOTATION_SHUTDOWN_GRANTED "':'{\\'id\\':\\'" id "\\',\\'until\\':\\'" until "\\'" more "}'"
#define TAKEN(ids) ",'" ANNOTATION_REBOOT_TAKEN "':'" ids "'"
#define MARK(id, action, phase, boot) \
        ",'" ANNOTATION_INTERRUPTION "':'{\\'id\\':\\'" id "\\',\\'kind\\':\\'maintenance\\',\\'source\\':\\'ec2\\',\\'action\\':\\'" action \
        "\\',\\'phase\\':\\'" phase "\\',\\'bootID\\':\\'" boot "\\'}'"
#define CLOUD_ASKED CLOUD_REQUEST("b1", BY_CLOUD)
#define CLOUD_GRANTED CLOUD_GRANT("a", "2027-01-15T08:20:00Z", "")
#define DRAINED MARK("e", "reboot", "Drained", "b1")
#define POOLED ",'finalizers':['" FINALIZER_TERMINATION "'],'labels':{'" LABEL_NODE_POOL "':'p'}"
#define CORDONED "'unschedulable':true"

typedef struct CloudRebootRow {
        const char *what, *annotations, *meta, *spec, *boot;
        CloudRebootVerdict verdict;
        const char *why;
} CloudRebootRow;

static const CloudRebootRow cloud_reboot_rows[] = {
        { "all is so", CLOUD_ASKED CLOUD_GRANTED TAKEN("e") DRAINED, POOLED, CORDONED, "b1", CLOUD_REBOOT_DUE, NULL },
        { "of several taken", CLOUD_ASKED CLOUD_GRANTED TAKEN("d e f") DRAINED, POOLED, CORDONED, "b1", CLOUD_REBOOT_DUE, NULL },
        { "no request", "'a':'b'" CLOUD_GRANTED TAKEN("e") DRAINED, POOLED, CORDONED, "b1", CLOUD_REBOOT_NONE, NULL },
        { "a request by hand", CLOUD_REQUEST("b1", "") CLOUD_GRANTED TAKEN("e") DRAINED, POOLED, CORDONED, "b1", CLOUD_REBOOT_NONE, NULL },
        { "the agent reboots it", CLOUD_REQUEST("b1", FOR_EVENT) CLOUD_GRANTED TAKEN("e") DRAINED, POOLED, CORDONED, "b1", CLOUD_REBOOT_NONE, NULL },
        { "for no event", CLOUD_REQUEST("b1", ",\\'by\\':\\'cloud\\'") CLOUD_GRANTED TAKEN("e") DRAINED, POOLED, CORDONED, "b1", CLOUD_REBOOT_NONE,
          NULL },
        { "not granted", CLOUD_ASKED TAKEN("e") DRAINED, POOLED, CORDONED, "b1", CLOUD_REBOOT_NONE, NULL },
        { "another is granted", CLOUD_ASKED CLOUD_GRANT("b", "2027-01-15T08:20:00Z", "") TAKEN("e") DRAINED, POOLED, CORDONED, "b1",
          CLOUD_REBOOT_NONE, NULL },
        { "granted for ever", CLOUD_ASKED CLOUD_GRANT("a", "2028-01-15T08:20:00Z", "") TAKEN("e") DRAINED, POOLED, CORDONED, "b1", CLOUD_REBOOT_NONE,
          NULL },
        { "its slot is over", CLOUD_ASKED CLOUD_GRANT("a", "2027-01-15T07:59:00Z", "") TAKEN("e") DRAINED, POOLED, CORDONED, "b1", CLOUD_REBOOT_NONE,
          NULL },
        { "its slot is nearly over", CLOUD_ASKED CLOUD_GRANT("a", "2027-01-15T08:01:00Z", "") TAKEN("e") DRAINED, POOLED, CORDONED, "b1",
          CLOUD_REBOOT_WAITS, "nearly over" },
        { "it has rebooted", CLOUD_ASKED CLOUD_GRANTED TAKEN("e") DRAINED, POOLED, CORDONED, "b2", CLOUD_REBOOT_NONE, NULL },
        { "no boot is known", CLOUD_ASKED CLOUD_GRANTED TAKEN("e") DRAINED, POOLED, CORDONED, "", CLOUD_REBOOT_NONE, NULL },
        { "not noted", CLOUD_ASKED CLOUD_GRANTED DRAINED, POOLED, CORDONED, "b1", CLOUD_REBOOT_WAITS, "has not noted" },
        { "another is noted", CLOUD_ASKED CLOUD_GRANTED TAKEN("ee") DRAINED, POOLED, CORDONED, "b1", CLOUD_REBOOT_WAITS, "has not noted" },
        { "no pool", CLOUD_ASKED CLOUD_GRANTED TAKEN("e") DRAINED, "", CORDONED, "b1", CLOUD_REBOOT_WAITS, "no NodePool" },
        { "being deleted", CLOUD_ASKED CLOUD_GRANTED TAKEN("e") DRAINED, POOLED ",'deletionTimestamp':'2027-01-15T08:00:00Z'", CORDONED, "b1",
          CLOUD_REBOOT_WAITS, "being deleted" },
        { "nothing is said of a drain", CLOUD_ASKED CLOUD_GRANTED TAKEN("e"), POOLED, CORDONED, "b1", CLOUD_REBOOT_WAITS, "drained" },
        { "it drains", CLOUD_ASKED CLOUD_GRANTED TAKEN("e") MARK("e", "reboot", "Draining", "b1"), POOLED, CORDONED, "b1", CLOUD_REBOOT_WAITS,
          "drained" },
        { "drained for another", CLOUD_ASKED CLOUD_GRANTED TAKEN("e") MARK("f", "reboot", "Drained", "b1"), POOLED, CORDONED, "b1",
          CLOUD_REBOOT_WAITS, "drained" },
        { "drained for a stop", CLOUD_ASKED CLOUD_GRANTED TAKEN("e") MARK("e", "stop", "Drained", "b1"), POOLED, CORDONED, "b1", CLOUD_REBOOT_WAITS,
          "drained" },
        { "drained in another boot", CLOUD_ASKED CLOUD_GRANTED TAKEN("e") MARK("e", "reboot", "Drained", "b0"), POOLED, CORDONED, "b1",
          CLOUD_REBOOT_WAITS, "drained" },
        { "a person un-cordoned", CLOUD_ASKED CLOUD_GRANTED TAKEN("e") DRAINED, POOLED, "", "b1", CLOUD_REBOOT_WAITS, "drained" },
        { "the cloud is being told", CLOUD_ASKED CLOUD_GRANT("a", "2027-01-15T08:20:00Z", ",\\'sent\\':true") TAKEN("e") DRAINED, POOLED, CORDONED,
          "b1", CLOUD_REBOOT_SENT, NULL },
        { "another was told", CLOUD_ASKED CLOUD_GRANT("b", "2027-01-15T08:20:00Z", ",\\'sent\\':true") TAKEN("e") DRAINED, POOLED, CORDONED, "b1",
          CLOUD_REBOOT_NONE, NULL },
};
