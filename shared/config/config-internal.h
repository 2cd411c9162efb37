/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between the files of config/. */

#include "config.h"

/* "a time span between 1s and 1min", "one of a, b": phrase with the item's bounds or choices. NULL on
 * ENOMEM. */
char *config_describe_expected(const ConfigItem *item, const char *phrase);
/* Of the item's place in the daemon's struct. */
size_t config_value_size(const ConfigItem *item);
