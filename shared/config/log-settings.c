/* SPDX-License-Identifier: Apache-2.0 */
#include "log-settings.h"

const char *const log_target_choices[] = { "journal", "json", "text", "null", "auto", NULL };
const char *const log_level_choices[] = { "error", "warning", "notice", "info", "debug", NULL };

LogTarget log_settings_target(const LogSettings *s) {
        return s->target >= _LOG_TARGET_MAX ? log_target_auto() : (LogTarget) s->target;
}

LogLevel log_settings_level(const LogSettings *s) {
        return (LogLevel) (LOG_LEVEL_ERROR + s->level);
}
