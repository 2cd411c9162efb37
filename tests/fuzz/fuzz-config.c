/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "config.h"
#include "file-util.h"
#include "fuzz.h"
#include "log-catalog.h"
#include "string-util.h"
#include "time-util.h"

/*
 * What must hold of any file: it is refused with exactly one error that is text on one line, or it is
 * accepted, and then its dump gives the same values and the same dump. Each line is also tried as a setting
 * of the command line.
 */

typedef struct Settings {
        char *name;
        char **zones;
        usec_t poll_usec, any_usec;
        unsigned retries;
        int source;
        bool dry_run;
} Settings;

static const char *const sources[] = { "auto", "ec2", NULL };

static const ConfigItem table[] = {
        { "A", "Name", config_parse_string, config_format_string, offsetof(Settings, name), NULL, "Name." },
        { "A", "Source", config_parse_choice, config_format_choice, offsetof(Settings, source), "ec2",
          "Source.", .choices = sources },
        { "A", "PollSec", config_parse_usec, config_format_usec, offsetof(Settings, poll_usec), "2s",
          "Poll.", .min = USEC_PER_SEC, .max = USEC_PER_MINUTE },
        { "B", "AnySec", config_parse_usec, config_format_usec, offsetof(Settings, any_usec), NULL, "Any." },
        { "B", "Retries", config_parse_unsigned, config_format_unsigned, offsetof(Settings, retries), "3",
          "Retries.", CONFIG_TOLERANT, .min = 1, .max = 10 },
        { "B", "DryRun", config_parse_boolean, config_format_boolean, offsetof(Settings, dry_run), "no", "Dry." },
        { "B", "Zones", config_parse_strv, config_format_strv, offsetof(Settings, zones), "x y", "Zones." },
};

static void on_log(LogLevel level, const char *message_id, const char *text, const LogField *fields,
                   size_t n_fields, void *userdata) {
        unsigned *n_errors = userdata;

        assert(level == LOG_LEVEL_WARNING || level == LOG_LEVEL_ERROR);
        assert(utf8_is_valid(text, strlen(text)));
        assert(!strchr(text, '\n') && !strchr(text, '\x1b'));
        if (level == LOG_LEVEL_ERROR) {
                assert(streq(message_id, MESSAGE_CONFIGURATION_REFUSED));
                (*n_errors)++;
        }
}

/* Loads a file of these bytes, or (data is NULL) with this one setting. */
static int load(const void *data, size_t size, const char *setting, Settings *s) {
        _cleanup_(log_freep) Log *l = NULL;
        const char *settings[] = { setting, NULL };
        _cleanup_close_ int fd = -EBADF;
        unsigned n_errors = 0;
        char path[64];
        int r;

        r = log_new(LOG_TARGET_NULL, LOG_LEVEL_DEBUG, "fuzz", &l);
        assert(r == 0);
        log_set_hook(l, on_log, &n_errors);
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        assert(fd >= 0);
        if (data && write(fd, data, size) != (ssize_t) size)
                abort();
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);

        r = config_load(l, table, ELEMENTSOF(table), path, true, (char *const *) settings, s);
        assert(r == 0 || r == -EINVAL || r == -ERANGE || (r == -E2BIG && size > 1024 * 1024));
        assert(n_errors == (r < 0 ? 1u : 0u));
        return r;
}

static char *dump(const Settings *s) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);
        int r;

        assert(f);
        r = config_dump(f, table, ELEMENTSOF(table), s);
        assert(r == 0);
        (void) fclose(f);
        return text;
}

static void settings_done(Settings *s) {
        config_done(table, ELEMENTSOF(table), s);
}

static void check(const void *data, size_t size, const char *setting) {
        _cleanup_(settings_done) Settings s = { 0 }, again = { 0 };
        _cleanup_free_ char *first = NULL, *second = NULL;
        int r;

        if (load(data, size, setting, &s) < 0)
                return;
        assert(s.poll_usec >= USEC_PER_SEC && s.poll_usec <= USEC_PER_MINUTE);
        assert(s.retries >= 1 && s.retries <= 10);
        assert(s.source == 0 || s.source == 1);

        first = dump(&s);
        r = load(first, strlen(first), NULL, &again);
        assert(r == 0);
        second = dump(&again);
        assert(streq(first, second));
        assert(s.any_usec == again.any_usec && s.poll_usec == again.poll_usec);
        assert(streq_ptr(s.name, again.name));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_free_ char *setting = memdup_str(data, size);

        assert(setting);
        check(data, size, NULL);
        setting[strcspn(setting, "\n")] = 0;
        check(NULL, 0, setting);
        return 0;
}
