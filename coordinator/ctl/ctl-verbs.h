/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The verbs of vesperctl, each in its verb-NAME.c. */

#include "ctl.h"

extern const CtlVerb verb_status, verb_explain, verb_drain, verb_undrain, verb_pause, verb_resume, verb_release, verb_force, verb_let_go,
        verb_timeline, verb_plan, verb_snapshot;

/* "table, json or yaml": those of a verb, for people. */
#define CTL_OUTPUTS_TEXT (1u << CTL_OUTPUT_TABLE)
#define CTL_OUTPUTS_DATA (1u << CTL_OUTPUT_TABLE | 1u << CTL_OUTPUT_JSON | 1u << CTL_OUTPUT_YAML)
