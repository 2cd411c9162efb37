/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "string-util.h"
#include "strv.h"

#define HELP_COLUMNS 110u
#define HELP_NAMES_MAX 30u /* a longer option has its explanation on the next line */
/* getopt_long(3) answers with this and the place in the table. */
#define FIRST_ANSWER 256

/* -- help ----------------------------------------------------------------------------------------------- */

static int names_of(const OptionItem *i, char *text, size_t size) {
        return snprintf(text, size, "  %c%c --%s%s%s", i->letter ? '-' : ' ', i->letter ? i->letter : ' ',
                        i->name, i->value ? "=" : "", strempty(i->value));
}

/* text in lines that begin at `column`; the cursor stands there. */
static void print_wrapped(FILE *f, const char *text, size_t column) {
        size_t at = column;

        while (*text) {
                size_t n = strcspn(text, " ");

                if (at > column && at + 1 + n > HELP_COLUMNS) {
                        fprintf(f, "\n%*s", (int) column, "");
                        at = column;
                }
                at += (size_t) fprintf(f, "%s%.*s", at > column ? " " : "", (int) n, text);
                text += n + strspn(text + n, " ");
        }
        fputc('\n', f);
}

/* Lines that fit stay as they are. */
static void print_about(FILE *f, const char *text) {
        while (*text) {
                size_t n = strcspn(text, "\n");
                _cleanup_free_ char *line = memdup_str(text, n);

                if (line && n > HELP_COLUMNS)
                        print_wrapped(f, line, 0);
                else
                        fprintf(f, "%.*s\n", (int) n, text);
                text += n + (text[n] == '\n');
        }
}

void options_print_help(const OptionTable *t, FILE *f) {
        char names[128];
        size_t widest = 0;

        for (size_t i = 0; i < t->n_items; i++) {
                size_t n = (size_t) names_of(&t->items[i], names, sizeof(names));

                if (n > widest && n <= HELP_NAMES_MAX)
                        widest = n;
        }
        fprintf(f, "%s %s\n\n", t->program, t->usage);
        print_about(f, t->about);
        fputs("\nOptions:\n", f);
        for (size_t i = 0; i < t->n_items; i++) {
                size_t n = (size_t) names_of(&t->items[i], names, sizeof(names));

                fputs(names, f);
                if (n > widest) {
                        fputc('\n', f);
                        n = 0;
                }
                fprintf(f, "%*s", (int) (widest + 2 - n), "");
                print_wrapped(f, t->items[i].help, widest + 2);
        }
}

/* -- the command line ----------------------------------------------------------------------------------- */

static int take(const OptionItem *i, const char *value, void *target) {
        void *place = (char *) target + i->offset;

        switch (i->kind) {
        case OPTION_FLAG:
                *(bool *) place = true;
                return 1;
        case OPTION_STRING:
                *(const char **) place = value;
                return 1;
        case OPTION_STRINGS:
                return strv_extend(place, value) < 0 ? -ENOMEM : 1;
        case OPTION_HELP:
        case OPTION_VERSION:
                return 0;
        }
        return -EINVAL;
}

static int parse(const OptionTable *t, const struct option *longs, const char *letters, int argc,
                 char **argv, void *target) {
        int o, r;

        while ((o = getopt_long(argc, argv, letters, longs, NULL)) >= 0) {
                const OptionItem *i = NULL;

                for (size_t k = 0; k < t->n_items && !i; k++)
                        if (o == FIRST_ANSWER + (int) k || (o == t->items[k].letter && o != 0))
                                i = &t->items[k];
                if (!i) { /* getopt said why */
                        fprintf(stderr, "Try '%s --help'.\n", t->program);
                        return -EINVAL;
                }
                r = take(i, optarg, target);
                if (r == 0 && i->kind == OPTION_HELP)
                        options_print_help(t, stdout);
                else if (r == 0)
                        printf("%s %s\n", t->program, VESPER_VERSION);
                if (r <= 0)
                        return r;
        }
        return 1;
}

int options_parse(const OptionTable *t, int argc, char **argv, void *target, int *ret_first) {
        _cleanup_free_ struct option *longs = calloc(t->n_items + 1, sizeof(struct option));
        _cleanup_strbuf_ StrBuf letters = {};
        int r;

        assert(t && argv && target && ret_first);
        if (!longs)
                return -ENOMEM;
        for (size_t i = 0; i < t->n_items; i++) {
                const OptionItem *o = &t->items[i];

                longs[i] = (struct option) { .name = o->name,
                                             .has_arg = o->value ? required_argument : no_argument,
                                             .val = FIRST_ANSWER + (int) i };
                if (o->letter)
                        strbuf_addf(&letters, "%c%s", o->letter, o->value ? ":" : "");
        }
        if (letters.failed)
                return -ENOMEM;
        optind = 0; /* from the start, whatever was read before in this process */
        r = parse(t, longs, strbuf_str(&letters), argc, argv, target);
        *ret_first = optind;
        return r;
}
