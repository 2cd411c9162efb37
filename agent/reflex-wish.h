/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is to stand on the Node, and in the intent log, while an interruption is in a state of reflex.h. The first act leaves before
 * anything else, so this has to be made without looking anywhere. Pure.
 */

#include "node-report.h"
#include "reflex.h"

/* How far it has got, for a restart: from PLANNED on. */
IntentPhase reflex_phase(ReflexState state);
/* notice: borrowed by what is returned. only_cordon: its pods stay. */
NodeWish reflex_wish(ReflexState state, const Notice *notice, bool only_cordon, size_t pods_left);
