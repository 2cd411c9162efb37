/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * options.c: a command line, and its --help, from one table: getopt_long(3). packaging/man/options.py makes
 * the manual page of what --help says.
 */

#include <stddef.h>
#include <stdio.h>

#include "macro.h"

typedef enum OptionKind {
        OPTION_FLAG,    /* bool: true */
        OPTION_STRING,  /* const char *, of argv */
        OPTION_STRINGS, /* char **: one more each time; strv_free() is the caller's */
        OPTION_HELP,
        OPTION_VERSION,
} OptionKind;

typedef struct OptionItem {
        const char *name;  /* without the dashes */
        char letter;       /* 0: none */
        const char *value; /* as --help names it; NULL: the option takes none */
        OptionKind kind;
        size_t offset; /* in the program's struct */
        const char *help;
} OptionItem;

typedef struct OptionTable {
        const char *program;
        const char *usage; /* behind the program's name */
        const char *about; /* what the program does, above the options */
        const OptionItem *items;
        size_t n_items;
} OptionTable;

#define OPTIONS_HELP { .name = "help", .letter = 'h', .kind = OPTION_HELP, .help = "Show this help" }
#define OPTIONS_VERSION { .name = "version", .kind = OPTION_VERSION, .help = "Show the version" }

/* Reads argv into target. 1: go on, and *ret_first is the index of the first argument that is no option; 0:
 * there is nothing left to do, --help or --version is answered; -EINVAL, -ENOMEM: said what is wrong. */
int options_parse(const OptionTable *t, int argc, char **argv, void *target, int *ret_first);
void options_print_help(const OptionTable *t, FILE *f);
