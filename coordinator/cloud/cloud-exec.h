/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Provider "exec": any machine that a command can end: bare metal, a private cloud, a script around one's
 * own tools.
 *
 *      COMMAND describe        COMMAND terminate
 *
 * Standard input is one JSON object, and then it ends; opId and pool only for terminate, pool if known:
 *
 *      { "version": 1, "op": "describe" | "terminate", "opId": "...", "pool": "...", "providerID": "..." }
 *
 * opId is the same for every repetition of one termination: a call that comes twice must do its work once.
 *
 * Standard output, at most 1 MiB, is one JSON object; fields that are not needed may be left out, unknown
 * ones are ignored; "error" may also be a string, the message:
 *
 *      { "state": "present" | "terminating" | "gone" | "unknown",
 *        "error": { "code": "protected" | "denied" | "invalid" | ..., "message": "for a person" },
 *        "retryAfter": SECONDS }
 *
 *      describe   must give a state. "gone" is final: the machine does not exist and cannot come back. A
 *                 command that does not know the machine must be sure that it looked in the right place
 *                 before it says so, else "unknown". What is shut off but may be started again is
 *                 "present".
 *      terminate  without "error": accepted, or there was nothing to end. Not before describe says "gone"
 *                 is the node removed.
 *
 * Exit status 0: answered (also with "error"). 75 (EX_TEMPFAIL): not now, ask again; output as above, or
 * none. Anything else: failed; the last line of standard error becomes the message, and it is tried again
 * slowly. "error" without one of the three codes is tried again like 75.
 *
 * A run may take 60 seconds; then its process group is killed. At most 16 run at a time, the others wait in
 * order; a turn (cloud_turn()) keeps one of the 16 places for its terminate, at most 12 do so at a time. The
 * environment is empty but for PATH (default
 * /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin), HOME, and LANG (default C.UTF-8): secrets
 * belong into files that the command reads.
 */

#include "cloud.h"

#define CLOUD_EXEC_RUNNING_MAX 16u
#define CLOUD_EXEC_TURNS_MAX 12u /* looks go on, whatever those who have their turn wait for */

int cloud_exec_new(Env *env, const CloudConfig *config, CloudProvider **ret, const char **reterr_message);
