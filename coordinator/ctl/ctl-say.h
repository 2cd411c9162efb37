/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Words and shapes that all verbs share. Pure. */

#include "kube-client.h"
#include "string-util.h"

/* What did not work, why, and what would help: "you may not patch nodes ...: a ClusterRole with ... would allow it".
 * verb: RBAC's ("get", "list", "patch", "delete", "create"); name NULL: of all. For the caller to free, or NULL. */
char *ctl_explain_error(const ApiError *e, const char *verb, const KubeTarget *t);

/* "12s", "5m", "3h", "2d": as kubectl shows an age. */
void ctl_add_age(StrBuf *b, usec_t usec);

/* Anybody who may write an annotation or a status writes into what we print: nothing of b from `from` on moves a
 * terminal's cursor, or begins a line. */
void ctl_make_plain(StrBuf *b, size_t from);

/* A table whose columns are as wide as their widest cell. Cells are copied, and made plain; an empty one is "-". */
typedef struct CtlTable {
        size_t n_columns;
        char **cells;
        size_t n_cells, allocated;
        bool failed;
} CtlTable;

#define CTL_TABLE(columns) { .n_columns = (columns) }
void ctl_table_add(CtlTable *t, const char *cell); /* NULL: empty */
void ctl_table_addf(CtlTable *t, const char *fmt, ...) _printf_(2, 3);
void ctl_table_print(const CtlTable *t, StrBuf *b);
void ctl_table_done(CtlTable *t);

/* The same value as YAML, two spaces a level, strings in double quotes where anything else could be read into them. */
void ctl_yaml(StrBuf *b, const Json *value);

/* json, which our writer has made, in the form that output asks for: JSON or YAML; with a line's end. NULL on ENOMEM. */
char *ctl_format_json(const char *json, bool yaml);
