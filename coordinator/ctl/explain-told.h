/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The voluntary half of `vesperctl explain` without --simulate: whether this node would go if nobody asked for it, as the
 * coordinator says in conditions of its NodeClaim. Pure.
 */

#include "explain.h"

/* "" if no condition says anything of that, as its NodePool does not ask for it. For the caller to free; NULL on ENOMEM. */
char *explain_told_text(const ExplainFacts *f);
/* [{"type": ...}, ...] */
char *explain_told_json(const ExplainFacts *f);
