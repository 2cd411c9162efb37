/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "alloc-util.h"
#include "config-internal.h"
#include "file-util.h"
#include "string-util.h"

#define TEMPLATE_MAX_BYTES (256u * 1024u)
#define PLACE "@KEYS@\n"
#define RELOADABLE "A reload takes a change of it over."

/* What the parser of this item takes, in its own words: it is asked for something that it refuses. NULL in
 * *ret: anything. */
static int describe_value(const ConfigItem *item, void *scratch, char **ret) {
        const char *phrase = NULL;
        int r;

        r = item->parse(item, "\001", (char *) scratch + item->offset, &phrase);
        config_done(item, 1, scratch);
        if (r == -ENOMEM)
                return r;
        *ret = NULL;
        if (r >= 0)
                return 0;
        *ret = config_describe_expected(item, phrase);
        return *ret ? 0 : -ENOMEM;
}

/* The default, or what its absence means; `scratch` is zeroed. */
static char *format_default(const ConfigItem *item, const void *scratch) {
        if (item->flags & CONFIG_SECRET)
                return strdup("");
        return item->default_value ? strdup(item->default_value)
                                   : item->format(item, (const char *) scratch + item->offset);
}

static int print_conf(FILE *f, const ConfigItem *item, const char *value, const void *scratch) {
        _cleanup_free_ char *default_value = format_default(item, scratch);

        if (!default_value)
                return -ENOMEM;
        fprintf(f, "\n# %s\n", item->help);
        if (value)
                fprintf(f, "# Takes %s.\n", value);
        if (item->flags & CONFIG_RELOADABLE)
                fputs("# " RELOADABLE "\n", f);
        /* A list adds to its default unless it is emptied first. */
        if (item->parse == config_parse_strv && !isempty(default_value))
                fprintf(f, "#%s=\n", item->key);
        fprintf(f, "#%s=%s\n", item->key, default_value);
        return 0;
}

/* As text that man(7) shows as it stands. */
static void print_roff(FILE *f, const char *text) {
        if (text[0] == '.' || text[0] == '\'')
                fputs("\\&", f);
        for (; *text; text++)
                if (*text == '\\')
                        fputs("\\e", f);
                else if (*text == '-')
                        fputs("\\-", f);
                else
                        fputc(*text, f);
}

static void print_man(FILE *f, const ConfigItem *item, const char *value) {
        fprintf(f, ".TP\n.B %s=\n", item->key);
        print_roff(f, item->help);
        fputc('\n', f);
        if (value) {
                fputs("Takes ", f);
                print_roff(f, value);
                fputs(".\n", f);
        }
        if (!isempty(item->default_value) && !(item->flags & CONFIG_SECRET)) {
                fputs("Default: ", f);
                print_roff(f, item->default_value);
                fputs(".\n", f);
        }
        if (item->flags & CONFIG_RELOADABLE)
                fputs(RELOADABLE "\n", f);
}

static int print_keys(FILE *f, bool man, const ConfigItem *table, size_t n_table, size_t target_size) {
        _cleanup_free_ void *scratch = calloc(1, target_size);
        const char *section = NULL;

        if (!scratch)
                return -ENOMEM;
        for (size_t i = 0; i < n_table; i++) {
                _cleanup_free_ char *value = NULL;
                int r;

                r = describe_value(table + i, scratch, &value);
                if (r < 0)
                        return r;
                if (!section || !streq(section, table[i].section)) {
                        section = table[i].section;
                        fprintf(f, man ? ".SS [%s]\n" : "\n[%s]\n", section);
                }
                if (man)
                        print_man(f, table + i, value);
                else if ((r = print_conf(f, table + i, value, scratch)) < 0)
                        return r;
                memset(scratch, 0, target_size);
        }
        return 0;
}

int config_reference(FILE *f, const char *form, const char *template_path, const ConfigItem *table,
                     size_t n_table, size_t target_size) {
        _cleanup_free_ char *text = NULL;
        bool man = streq(form, "man");
        const char *place;
        size_t size;
        int r;

        assert(f && template_path && table);
        if (!man && !streq(form, "conf"))
                return -EINVAL;
        r = read_file(template_path, TEMPLATE_MAX_BYTES, &text, &size);
        if (r < 0)
                return r;
        place = strstr(text, PLACE);
        if (!place || (place > text && place[-1] != '\n'))
                return -EINVAL;

        fwrite(text, 1, (size_t) (place - text), f);
        r = print_keys(f, man, table, n_table, target_size);
        if (r < 0)
                return r;
        fputs(place + strlen(PLACE), f);
        if (fflush(f) != 0)
                return -errno;
        return ferror(f) ? -EIO : 0;
}

int config_reference_main(int argc, char **argv, const ConfigItem *table, size_t n_table,
                          size_t target_size) {
        int r;

        if (argc != 3) {
                fprintf(stderr, "usage: %s conf|man TEMPLATE\n", argv[0]);
                return EXIT_FAILURE;
        }
        r = config_reference(stdout, argv[1], argv[2], table, n_table, target_size);
        if (r >= 0)
                return EXIT_SUCCESS;
        fprintf(stderr, "%s: failed to make '%s' out of %s (which needs a line that reads @KEYS@): %s\n",
                argv[0], argv[1], argv[2], strerror(-r));
        return EXIT_FAILURE;
}
