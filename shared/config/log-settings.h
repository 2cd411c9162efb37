/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* [Log] Target= and Level=, which every daemon of ours has. */

#include "config.h"
#include "log.h"

typedef struct LogSettings {
        int target; /* index into log_target_choices: a LogTarget, or auto */
        int level;  /* index into log_level_choices */
} LogSettings;

extern const char *const log_target_choices[];
extern const char *const log_level_choices[];

/* The rows of a table, for a LogSettings in `type`. */
#define LOG_SETTINGS_ITEMS(type, member) \
        CONFIG_ITEM(choice, type, "Log", "Target", member.target, "auto", \
                    "auto: text on a terminal, the journal under systemd, else JSON lines.", \
                    .choices = log_target_choices, .flags = CONFIG_RELOADABLE), \
                CONFIG_ITEM(choice, type, "Log", "Level", member.level, "info", \
                            "The least important level that is logged.", .choices = log_level_choices, \
                            .flags = CONFIG_RELOADABLE)

LogTarget log_settings_target(const LogSettings *s);
LogLevel log_settings_level(const LogSettings *s);
