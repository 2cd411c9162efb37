/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The options of vesperctl: those that all verbs take, and those that a verb says it takes. */

#include "ctl.h"
#include "options.h"

#define CTL_ITEMS_MAX 48u

/* The verb's own first (v NULL: none), then the common ones. How many. */
size_t ctl_items(const CtlVerb *v, OptionItem ret[CTL_ITEMS_MAX]);
size_t ctl_all_items(OptionItem ret[CTL_ITEMS_MAX]);
