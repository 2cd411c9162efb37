/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "config-internal.h"
#include "file-util.h"
#include "log-catalog.h"
#include "string-util.h"
#include "strv.h"

#define FILE_MAX_BYTES (1024u * 1024u)

/* What of a value is repeated in a message. */
#define SHOWN_MAX_BYTES 200u

typedef struct Loader {
        Log *log;
        const ConfigItem *table;
        size_t n_table;
        void *target;
        const char *file; /* NULL: --set */
        unsigned line;
} Loader;

/* -- what is said --------------------------------------------------------------------------------------- */

static int loader_log(const Loader *l, LogLevel level, int error, const char *text) {
        const char *id = level == LOG_LEVEL_ERROR ? MESSAGE_CONFIGURATION_REFUSED : NULL;
        char line[sizeof("4294967295")];

        if (!l->file)
                return log_full(l->log, level, error, id, NULL, 0, "--set: %s", text);
        (void) snprintf(line, sizeof(line), "%u", l->line);
        return log_full(l->log, level, error, id,
                        LOG_FIELDS({ "CONFIG_FILE", l->file }, { "CONFIG_LINE", line }), "%s:%u: %s",
                        l->file, l->line, text);
}

/* Takes `text`; NULL is a lack of memory. */
static void loader_warn(const Loader *l, char *text) {
        _cleanup_free_ char *owned = text;

        (void) loader_log(l, LOG_LEVEL_WARNING, 0, owned ? owned : "Something is wrong here, ignoring");
}

static int loader_refuse(const Loader *l, int error, char *text) {
        _cleanup_free_ char *owned = text;

        return owned ? loader_log(l, LOG_LEVEL_ERROR, error, owned) : -ENOMEM;
}

static int loader_refuse_file(const Loader *l, const char *path, int error) {
        return log_full(l->log, LOG_LEVEL_ERROR, error, MESSAGE_CONFIGURATION_REFUSED,
                        LOG_FIELDS({ "CONFIG_FILE", path }), "Failed to read configuration '%s': %m", path);
}

/* -- one value ------------------------------------------------------------------------------------------ */

static bool section_is_known(const Loader *l, const char *section) {
        for (size_t i = 0; i < l->n_table; i++)
                if (streq(l->table[i].section, section))
                        return true;
        return false;
}

static const ConfigItem *find_item(const Loader *l, const char *section, const char *key) {
        for (size_t i = 0; i < l->n_table; i++)
                if (streq(l->table[i].section, section) && streq(l->table[i].key, key))
                        return l->table + i;
        return NULL;
}

/* "[Agent] PollSec=soon: expected a time span between 1s and 1min" */
static char *describe_bad_value(const ConfigItem *item, const char *value, const char *phrase,
                                const char *tail) {
        _cleanup_free_ char *shown = NULL, *expected = NULL;

        shown = str_sanitize(item->flags & CONFIG_SECRET ? "(hidden)" : value, SHOWN_MAX_BYTES);
        expected = config_describe_expected(item, phrase);
        if (!shown || !expected)
                return NULL;
        return strf("[%s] %s=%s: expected %s%s", item->section, item->key, shown, expected, tail);
}

static bool has_control_character(const char *s) {
        for (; *s; s++)
                if (((unsigned char) *s < 0x20 && *s != '\t') || *s == 0x7f)
                        return true;
        return false;
}

static int assign(const Loader *l, const ConfigItem *item, const char *value) {
        const char *phrase = NULL;
        int r;

        if (has_control_character(value)) {
                phrase = "a value without control characters";
                r = -EINVAL;
        } else
                r = item->parse(item, value, (char *) l->target + item->offset, &phrase);
        if (r >= 0)
                return 0;
        if (r != -EINVAL && r != -ERANGE)
                return r;

        if (item->flags & CONFIG_TOLERANT) {
                loader_warn(l, describe_bad_value(item, value, phrase, ", ignoring"));
                return 0;
        }
        return loader_refuse(l, r, describe_bad_value(item, value, phrase, ""));
}

static void apply_unknown(const Loader *l, const char *section, const char *key) {
        _cleanup_free_ char *shown_section = str_sanitize(section, SHOWN_MAX_BYTES);
        _cleanup_free_ char *shown_key = str_sanitize(key, SHOWN_MAX_BYTES);

        if (section_is_known(l, section))
                loader_warn(
                        l, strf("Unknown key '%s' in section [%s], ignoring", strempty(shown_key), section));
        else
                loader_warn(l, strf("Unknown section [%s], ignoring", strempty(shown_section)));
}

static int apply_defaults(const Loader *l) {
        for (size_t i = 0; i < l->n_table; i++) {
                const ConfigItem *item = l->table + i;
                const char *phrase = NULL;
                int r;

                if (!item->default_value)
                        continue;
                r = item->parse(item, item->default_value, (char *) l->target + item->offset, &phrase);
                assert(r >= 0 || r == -ENOMEM);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* -- files ---------------------------------------------------------------------------------------------- */

/* "[Section]" in `line`, which is cut; *section points into it, or is NULL for one we do not know. */
static int parse_section(const Loader *l, char *line, const char **section) {
        size_t n = strlen(line);

        if (line[n - 1] != ']' || n == 2)
                return loader_refuse(l, -EINVAL, strdup("Expected [SECTION]"));
        line[n - 1] = 0;
        *section = line + 1;
        if (!section_is_known(l, *section)) {
                apply_unknown(l, *section, "");
                *section = "";
        }
        return 0;
}

/* Whole line without its line feed, NUL-terminated. *section: the present one, NULL before the first, ""
 * for one that is passed over. */
static int parse_line(const Loader *l, char *line, size_t size, const char **section) {
        const ConfigItem *item;
        char *equals, *key;

        if (memchr(line, 0, size) || !utf8_is_valid(line, size))
                return loader_refuse(l, -EINVAL, strdup("This is no text: a NUL or invalid UTF-8"));
        line = strstrip(line);
        if (line[0] == 0 || line[0] == '#' || line[0] == ';')
                return 0;
        if (line[0] == '[')
                return parse_section(l, line, section);

        equals = strchr(line, '=');
        if (!equals || equals == line)
                return loader_refuse(l, -EINVAL, strdup("Expected KEY=VALUE, [SECTION] or # for a comment"));
        if (!*section)
                return loader_refuse(l, -EINVAL, strdup("Expected [SECTION] before the first KEY=VALUE"));
        if (isempty(*section))
                return 0;

        *equals = 0;
        key = strstrip(line);
        item = find_item(l, *section, key);
        if (!item) {
                apply_unknown(l, *section, key);
                return 0;
        }
        return assign(l, item, strstrip(equals + 1));
}

static int load_file(const Loader *loader, const char *path, bool required) {
        _cleanup_free_ char *text = NULL;
        const char *section = NULL;
        Loader l = *loader;
        size_t size;
        int r;

        r = read_file(path, FILE_MAX_BYTES, &text, &size);
        if (r == -ENOENT && !required)
                return 0;
        if (r < 0)
                return loader_refuse_file(loader, path, r);

        l.file = path;
        for (char *line = text, *end = text + size; line < end;) {
                char *feed = memchr(line, '\n', (size_t) (end - line));
                size_t n = (size_t) ((feed ? feed : end) - line);

                line[n] = 0;
                l.line++;
                r = parse_line(&l, line, n, &section);
                if (r < 0)
                        return r;
                line += n + 1;
        }
        return 0;
}

static int is_drop_in(const struct dirent *d) {
        return d->d_name[0] != '.' && endswith(d->d_name, ".conf");
}

/* Not alphasort(), which asks the locale. */
static int compare_names(const struct dirent **a, const struct dirent **b) {
        return strcmp((*a)->d_name, (*b)->d_name);
}

static int load_drop_ins(const Loader *l, const char *path) {
        _cleanup_free_ char *folder = strf("%s.d", path);
        struct dirent **entries = NULL;
        int n, r = 0;

        if (!folder)
                return -ENOMEM;
        n = scandir(folder, &entries, is_drop_in, compare_names);
        if (n < 0)
                return errno == ENOENT ? 0 : loader_refuse_file(l, folder, -errno);

        for (int i = 0; i < n; i++) {
                _cleanup_free_ char *file = strf("%s/%s", folder, entries[i]->d_name);

                if (r >= 0)
                        r = file ? load_file(l, file, true) : -ENOMEM;
                free(entries[i]);
        }
        free(entries);
        return r;
}

/* -- the command line ----------------------------------------------------------------------------------- */

/* "Section.Key=VALUE" */
static int load_setting(const Loader *l, const char *setting) {
        _cleanup_free_ char *copy = strdup(setting);
        const ConfigItem *item;
        char *equals, *dot;

        if (!copy)
                return -ENOMEM;
        equals = strchr(copy, '=');
        if (equals)
                *equals = 0;
        dot = strchr(copy, '.');
        if (!equals || !dot || dot == copy || dot[1] == 0) {
                _cleanup_free_ char *shown =
                        str_sanitize(copy, SHOWN_MAX_BYTES); /* no value: it may be a secret */

                return loader_refuse(l, -EINVAL, strf("%s: expected Section.Key=VALUE", strempty(shown)));
        }
        if (!utf8_is_valid(setting, strlen(setting)))
                return loader_refuse(l, -EINVAL, strdup("with invalid UTF-8: expected Section.Key=VALUE"));

        *dot = 0;
        item = find_item(l, copy, dot + 1);
        if (!item) {
                apply_unknown(l, copy, dot + 1);
                return 0;
        }
        return assign(l, item, strstrip(equals + 1));
}

int config_load(Log *l, const ConfigItem *table, size_t n_table, const char *path, bool required,
                char *const *settings, void *target) {
        Loader loader = { .log = l, .table = table, .n_table = n_table, .target = target };
        int r;

        assert(table || n_table == 0);
        assert(target);

        r = apply_defaults(&loader);
        if (r >= 0 && path)
                r = load_file(&loader, path, required);
        if (r >= 0 && path)
                r = load_drop_ins(&loader, path);
        STRV_FOREACH (setting, settings)
                if (r >= 0)
                        r = load_setting(&loader, *setting);
        return r;
}
