/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * reload.c: reads the configuration again while the daemon runs, on SIGHUP and when a mounted ConfigMap or
 * Secret has changed.
 *
 *      files --config_load()--> fresh --finish()--> config_take() --> apply(), credential() --> one line in
 * the log |                |
 *                 +----------------+--> wrong: said with file, line and key; what was in force stays
 *
 * What the table marks CONFIG_RELOADABLE is taken over; what differs otherwise is named in that line, until
 * a restart applies it. The service manager is told by RELOADING=1 and READY=1 (sd_notify(3)), so that
 * "systemctl reload" returns when it is done.
 *
 * Kubernetes replaces a mounted volume's files by exchanging the symlink ..data in its folder, all files at
 * once; that link is looked at every 10 s, and what could not be read then is tried again for a minute. (inotify instances are few on a node, and the kubelet itself
 * takes a minute to bring a change.) A folder without such a link is not watched: a file that a person edits
 * is read when that person says so.
 */

#include "config.h"
#include "env.h"

typedef struct Reload Reload;

/* Borrowed, all of it, for the life of the Reload. */
typedef struct ReloadOptions {
        Env *env;                /* loop, log, notify */
        const ConfigItem *table; /* table to settings: as config_load() had them at the start */
        size_t n_table;
        const char *path;
        bool required;
        char *const *settings;
        void *config; /* what is in force */
        size_t config_size;
        const char *credential_path; /* a file whose folder is watched as well; NULL: none */
        /* Completes and checks what was read, as after the first loading; says what is wrong. NULL: nothing
         * to do. */
        int (*finish)(void *fresh, void *userdata);
        /* Values of `config` have changed: for what does not read them each time. */
        void (*apply)(void *userdata);
        /* Read again: for files that the configuration names, whether its values have changed or not. NULL: none. */
        void (*files)(void *userdata);
        /* Reads the credential again. Says in *ret_text, for the line in the log, what is in use now or,
         * negative, why not what is there. NULL: there is none. */
        int (*credential)(char **ret_text, void *userdata);
        void *userdata;
} ReloadOptions;

int reload_new(const ReloadOptions *o, Reload **ret);
Reload *reload_free(Reload *r);
DEFINE_FREEP(Reload, reload_free);

/* Now; returns when it is done. why: "SIGHUP". */
void reload_now(Reload *r, const char *why);
