/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * config/: INI files with drop-ins, from one table per daemon. The table is the parser, the --dump-config output and the
 * reference: each key has its section, name, parser, place in the daemon's struct, default and one sentence.
 *
 * Sources, later ones win: defaults of the table; FILE; FILE.d/ *.conf in name order; --set Section.Key=VALUE in order. A list
 * key given empty is emptied. An unknown section or key warns and is ignored; a bad value of a key that is not
 * CONFIG_TOLERANT refuses: the error names file, line, key, the value and what would be valid.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "log.h"
#include "macro.h"

typedef struct ConfigItem ConfigItem;

/* Parses `value` into `target`; 0, -EINVAL/-ERANGE with *reterr_expected a static phrase ("a time span"; config_load()
 * puts the item's bounds or choices behind it), -ENOMEM. Must be able to overwrite an earlier value. */
typedef int (*config_parse_t)(const ConfigItem *item, const char *value, void *target, const char **reterr_expected);
/* The present value as text for --dump-config; NULL on ENOMEM. */
typedef char *(*config_format_t)(const ConfigItem *item, const void *target);

/* What config_parse_choices() has read. */
#define CONFIG_CHOICES_MAX 8u
typedef struct ConfigChoices {
        size_t n;
        int at[CONFIG_CHOICES_MAX]; /* each an index into choices */
} ConfigChoices;

typedef enum ConfigFlags {
        CONFIG_TOLERANT = 1 << 0,   /* a bad value warns and keeps what was there */
        CONFIG_SECRET = 1 << 1,     /* --dump-config shows "(set)", errors hide the value */
        CONFIG_RELOADABLE = 1 << 2, /* config_take() takes it: whoever uses it reads it each time */
} ConfigFlags;

struct ConfigItem {
        const char *section, *key;
        config_parse_t parse;
        config_format_t format;
        size_t offset;              /* in the daemon's struct */
        const char *default_value;  /* parsed at start; NULL: leave zeroed */
        const char *help;
        ConfigFlags flags;
        uint64_t min, max;          /* for numbers and times (usec); both 0: no bounds */
        const char *const *choices; /* for enums: NULL-terminated */
};

/* A row of a table over the struct `type`, whose `field` is read by config_parse_KIND(). Behind help come further
 * members: .min and .max, .choices, .flags. */
#define CONFIG_ITEM(kind, type, section_name, key_name, field, default_text, help_text, ...) \
        { \
                .section = section_name, .key = key_name, .parse = config_parse_##kind, \
                .format = config_format_##kind, .offset = offsetof(type, field), \
                .default_value = default_text, .help = help_text, __VA_ARGS__ \
        }

/* path may be NULL (defaults and settings only); a missing FILE is fine unless `required`. `settings`: NULL-terminated
 * "Section.Key=VALUE". Logs warnings and the one error that refuses. 0 or a negative errno. `target` comes zeroed; on
 * failure it holds what was read so far: config_done() it. So a reload loads into a new struct and swaps. */
int config_load(Log *l, const ConfigItem *table, size_t n_table, const char *path, bool required, char *const *settings,
                void *target);
/* After a reload: takes over those values of `fresh` that are CONFIG_RELOADABLE and differ, in exchange for
 * the old ones: config_done() both. Says what differed, for people: *ret_taken what was taken ("[Log]
 * Level=debug (was info), ..."), *ret_left what was not. NULL: nothing; the caller frees them. -ENOMEM:
 * nothing was taken. */
int config_take(const ConfigItem *table, size_t n_table, void *config, void *fresh, char **ret_taken,
                char **ret_left);
/* INI text that config_load() would read back to the same values (but for secrets, which stand in a comment), each key with
 * its help and its default. */
int config_dump(FILE *f, const ConfigItem *table, size_t n_table, const void *target);
/* Copies the file at template_path to f; in the place of a line that reads @KEYS@ comes the table, as
 *      conf    an INI file that changes nothing: each key commented out, at its default, with its help
 *      man     the keys of a manual page, in man(7)
 * target_size: of the daemon's struct. -EINVAL: no such form, or a template without that line. */
int config_reference(FILE *f, const char *form, const char *template_path, const ConfigItem *table, size_t n_table,
                     size_t target_size);
/* The main() of a program that does this: PROGRAM conf|man TEMPLATE. An exit status. */
int config_reference_main(int argc, char **argv, const ConfigItem *table, size_t n_table, size_t target_size);
/* Frees what string parsers allocated. */
void config_done(const ConfigItem *table, size_t n_table, void *target);

int config_parse_string(const ConfigItem *i, const char *v, void *t, const char **e);   /* char *; empty = NULL */
int config_parse_boolean(const ConfigItem *i, const char *v, void *t, const char **e);     /* bool */
int config_parse_usec(const ConfigItem *i, const char *v, void *t, const char **e);     /* usec_t */
int config_parse_unsigned(const ConfigItem *i, const char *v, void *t, const char **e); /* unsigned */
int config_parse_choice(const ConfigItem *i, const char *v, void *t, const char **e);   /* int: index into choices */
/* ConfigChoices: one or more words, in their order, none twice; they take the place of an earlier value. */
int config_parse_choices(const ConfigItem *i, const char *v, void *t, const char **e);
int config_parse_strv(const ConfigItem *i, const char *v, void *t, const char **e);     /* char **; words are appended */
char *config_format_string(const ConfigItem *i, const void *t);
char *config_format_boolean(const ConfigItem *i, const void *t);
char *config_format_usec(const ConfigItem *i, const void *t);
char *config_format_unsigned(const ConfigItem *i, const void *t);
char *config_format_choice(const ConfigItem *i, const void *t);
char *config_format_choices(const ConfigItem *i, const void *t);
char *config_format_strv(const ConfigItem *i, const void *t);
