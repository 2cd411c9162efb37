/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Random worlds whose pool replaces interrupted machines: provider exec, whose command launches machines
 * (sim-stock.h), in some worlds without find. Machines get spot notices and scale-ins, and kubelets stop,
 * while commands fail, answers get lost, coordinators die between two calls or pause, and the API server
 * misbehaves. A person deletes a new claim now and then. In some worlds the pool is deleted, or stops to
 * replace machines. Then the faults stop, and each machine that the pool had to replace must have a successor
 * (invariant `launch` of sim-check.h).
 */

#include "sim-plan.h"

/* As sim_plan_play(). */
void sim_launches_play(uint64_t seed, bool report, bool trace, SimOutcome *ret);
