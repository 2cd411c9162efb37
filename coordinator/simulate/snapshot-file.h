/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A snapshot as bytes, for whoever keeps one in a file or is sent one. Reading and writing the file is the caller's.
 *
 * The form is lines of JSON. The first one says what it is:
 *
 *      {"vesperSnapshot":1,"taken":"2027-01-15T08:00:00Z","kinds":["Node","Pod"],"objects":2,"fingerprint":"0123..."}
 *
 * its format, when it was taken, which kinds are known (of others nobody has looked whether there are any) and how many objects
 * follow, so that a file that was cut off is told; and the fingerprint, for people who compare files: it is not read. Then comes one object a line, in the order of the kinds of snapshot.h and
 * by key, as snapshot-object.h writes it. Equal snapshots give equal lines.
 */

#include "snapshot.h"

#define SNAPSHOT_FORMAT 1
#define SNAPSHOT_BYTES_MAX ((size_t) 2 << 30)  /* 150,000 pods are about 100 MB */
#define SNAPSHOT_LINE_BYTES_MAX ((size_t) 8 << 20) /* of an object; etcd keeps none of more than 2 MB */

/* -ENOMEM. The text ends with a newline. */
int snapshot_save(const Snapshot *s, char **ret, size_t *ret_size);

/* Begins it as such a file does? */
bool snapshot_is_file(const char *data, size_t size);
/* -EBADMSG: *reterr says what is wrong and in which line, for people, to be freed; -ENOMEM. */
int snapshot_load(const char *data, size_t size, InternPool *pool, Snapshot **ret, char **reterr);

/* What `kubectl get nodes,pods,... -o json` prints: a list of objects in any order. Kinds that a snapshot has none of are
 * passed over: *ret_passed_over names them in a sentence, NULL if there are none. Of a kind that did not come it is not known
 * whether there are objects. The time is the caller's: a list has none. Errors as above. */
int snapshot_load_list(const char *data, size_t size, usec_t taken_usec, InternPool *pool, Snapshot **ret,
                       char **ret_passed_over, char **reterr);

/* 32 hex digits: whether two snapshots say the same of a cluster, when they were taken apart. What differs where nothing else
 * does is in no line: resourceVersions, heartbeats. A fingerprint: nobody is protected by it from one who looks for two
 * snapshots that have the same. -ENOMEM. */
#define SNAPSHOT_FINGERPRINT_SIZE 33
int snapshot_fingerprint(const Snapshot *s, char ret[static SNAPSHOT_FINGERPRINT_SIZE]);
