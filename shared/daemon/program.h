/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * program.c: what the main() of every daemon of ours does alike:
 *
 *      options_parse() > program_configure() > kube_process_...() > program_run()
 */

#include "config.h"
#include "daemon.h"
#include "kube-process.h"
#include "log-settings.h"
#include "options.h"
#include "reload.h"

typedef struct ProgramSpec {
        const OptionTable *options;
        const char *config_path; /* unless --config names another: this one need not exist */
        const ConfigItem *table;
        size_t n_table, config_size;
        /* Completes and checks what was read, at the start and at each reload; says what is wrong. NULL:
         * nothing to do. */
        int (*finish)(void *config, Log *log, void *userdata);
        void (*on_stop)(int signal, void *userdata); /* SIGTERM, SIGINT */
        /* Values of the configuration have changed, by a reload: for what does not read them each time. The
         * log has them. */
        void (*on_apply)(void *userdata);
        /* Read again: files that the configuration names are to be read as well. NULL: it names none. */
        void (*on_files)(void *userdata);
} ProgramSpec;

typedef struct ProgramOptions {
        const char *config_path; /* NULL: the spec's */
        char **settings;
        bool dump_config;
} ProgramOptions;

/* The rows of an option table for a ProgramOptions in `type`. */
#define PROGRAM_OPTIONS(type, member, default_path) \
        { .name = "config", \
          .letter = 'c', \
          .value = "FILE", \
          .kind = OPTION_STRING, \
          .offset = offsetof(type, member.config_path), \
          .help = "Read FILE and FILE.d/*.conf instead of " default_path }, \
                { .name = "set", \
                  .letter = 's', \
                  .value = "SECTION.KEY=VALUE", \
                  .kind = OPTION_STRINGS, \
                  .offset = offsetof(type, member.settings), \
                  .help = "Set one value, over what the files say; may be given several times" }, \
                { .name = "dump-config", \
                  .kind = OPTION_FLAG, \
                  .offset = offsetof(type, member.dump_config), \
                  .help = "Print the configuration in force, each key with its explanation, and exit" }

/* Begins with what is borrowed for its life, the rest zeroed; program_done(). */
typedef struct Program {
        const ProgramSpec *spec;
        ProgramOptions *options;
        void *config;                    /* config_size bytes, zeroed; program_done() frees what it holds */
        const LogSettings *log_settings; /* in config */
        void *userdata;
        bool terse; /* somebody waits for it and reads: warnings alone are logged, as text */

        Log *log;
        KubeProcess kube;
        Reload *reload;
        DaemonSignals signals;
} Program;

/* Reads the configuration, and opens the log as that says. 1: go on; 0: --dump-config is answered; negative:
 * said why not. */
int program_configure(Program *p);
/* With kube's loop and client: from now on SIGTERM and SIGINT are told by on_stop(), and SIGHUP and a change
 * of mounted files read configuration and credential again. Says what is wrong. */
int program_watch(Program *p);
void program_done(Program *p);
