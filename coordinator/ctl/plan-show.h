/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What `vesperctl plan` prints: a plan, or what would be if nodes went, as JSON, as a table or as a page. Pure. Of one snapshot the same
 * bytes each time; the digest at the end is of all that goes before it.
 */

#include "disruption-plan.h"
#include "string-util.h"

/* Each: for the caller to free; NULL on ENOMEM. unknown: sentences about kinds that were not read, or NULL. */
char *plan_json(const DisruptionPlan *p, char *const *unknown);
char *plan_table(const DisruptionPlan *p, char *const *unknown);
char *plan_html(const DisruptionPlan *p, char *const *unknown);
char *what_if_json(const DisruptionScene *s, const WhatIf *w, const GateFindings *lacks_of_others, char *const *unknown);
char *what_if_table(const DisruptionScene *s, const WhatIf *w, const GateFindings *lacks_of_others, char *const *unknown);
char *what_if_html(const DisruptionScene *s, const WhatIf *w, const GateFindings *lacks_of_others, char *const *unknown);
char *upgrade_json(const DisruptionScene *s, const UpgradePlan *u, char *const *unknown);
char *upgrade_table(const DisruptionScene *s, const UpgradePlan *u, char *const *unknown);

/* Where a pod comes from: a node's name; "(pending)"; "c (leaving)", of one that waits for a place elsewhere. */
void plan_add_from(StrBuf *b, const DisruptionScene *s, const PlanMove *m);
/* "about 30s", "longer than can be told". */
void plan_add_about(StrBuf *b, usec_t usec);
/* Shared with explain. */
void json_add_notes(JsonWriter *w, char *const *unknown);
void json_add_findings(JsonWriter *w, const char *key, const GateFindings *f);
