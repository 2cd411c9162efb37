/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "time-util.h"

/* The header Date (IMF-fixdate), as every server here sends it. */
#define FAKE_DATE_MAX 64
void fake_date_format(usec_t wall_usec, char ret[FAKE_DATE_MAX]);
