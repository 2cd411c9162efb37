/* SPDX-License-Identifier: Apache-2.0 */
#include "reload.h"

#include <limits.h>
#include <unistd.h>

#include "log-catalog.h"
#include "log.h"
#include "string-util.h"

#define WATCH_USEC (10 * USEC_PER_SEC)
/* What could not be read is tried again at so many looks. */
#define RETRIES_MAX 6u

struct Reload {
        ReloadOptions o;
        Timer *timer;
        char *mounted; /* mounted_state() of what was read last; NULL: nothing is mounted */
        bool unread;   /* something of it could not be read, for a reason that may pass */
        unsigned n_retries;
};

/* -- mounted volumes ------------------------------------------------------------------------------------ */

/* Adds where FOLDER/..data points to. True: there is such a link. */
static bool add_mounted(StrBuf *b, const char *folder) {
        _cleanup_free_ char *link = strf("%s/..data", folder);
        char target[PATH_MAX];
        ssize_t n = link ? readlink(link, target, sizeof(target)) : -1;

        if (n >= 0)
                strbuf_add_n(b, target, (size_t) n);
        strbuf_add_char(b, '\n');
        return n >= 0;
}

static bool add_mounted_folder_of(StrBuf *b, const char *path) {
        const char *slash = path ? strrchr(path, '/') : NULL;
        _cleanup_free_ char *folder = slash ? memdup_str(path, (size_t) (slash - path)) : NULL;

        return folder && add_mounted(b, folder);
}

/* Not what was read, and is wrong. */
static bool may_pass(int error) {
        return error == -ENOMEM || error == -EMFILE || error == -ENFILE || error == -EIO;
}

/* One text for what is mounted now; NULL: nothing is, or out of memory. */
static char *mounted_state(const Reload *r) {
        _cleanup_free_ char *drop_ins = r->o.path ? strf("%s.d", r->o.path) : NULL;
        _cleanup_strbuf_ StrBuf b = { 0 };
        bool mounted;

        mounted = add_mounted_folder_of(&b, r->o.path);
        mounted |= drop_ins && add_mounted(&b, drop_ins);
        mounted |= add_mounted_folder_of(&b, r->o.credential_path);
        return mounted ? strbuf_steal(&b) : NULL;
}

static void on_watch(Timer *t, void *userdata) {
        _cleanup_free_ char *now = NULL;
        Reload *r = userdata;

        now = mounted_state(r);
        if (now && !streq_ptr(now, r->mounted)) {
                r->n_retries = 0;
                reload_now(r, "a mounted file changed");
        } else if (r->unread && r->n_retries++ < RETRIES_MAX)
                reload_now(r, "it could not be read before");
        timer_arm_in(r->timer, WATCH_USEC);
}

/* -- one reload ----------------------------------------------------------------------------------------- */

static void tell_manager(const Reload *r, const char *text) {
        const Env *env = r->o.env;

        if (env->notify)
                env->notify(text, env->notify_userdata);
}

/* Loads into fresh, which is zeroed. */
static int read_again(Reload *r, void *fresh, char **ret_taken, char **ret_left) {
        int k;

        k = config_load(r->o.env->log, r->o.table, r->o.n_table, r->o.path, r->o.required, r->o.settings,
                        fresh);
        if (k >= 0 && r->o.finish)
                k = r->o.finish(fresh, r->o.userdata);
        return k < 0 ? k : config_take(r->o.table, r->o.n_table, r->o.config, fresh, ret_taken, ret_left);
}

static void say_done(const Reload *r, const char *why, const char *taken, const char *left, int error,
                     const char *credential) {
        LogLevel level = error < 0 ? LOG_LEVEL_WARNING : LOG_LEVEL_NOTICE;
        const char *semicolon = credential ? "; " : "", *more = strempty(credential);
        Log *log = r->o.env->log;

        if (taken && left)
                log_event(log, level, MESSAGE_CONFIGURATION_RELOADED, NULL, 0,
                          "Configuration read again (%s): took %s; restart to apply %s%s%s", why, taken, left, semicolon, more);
        else if (taken)
                log_event(log, level, MESSAGE_CONFIGURATION_RELOADED, NULL, 0, "Configuration read again (%s): took %s%s%s",
                          why, taken, semicolon, more);
        else if (left)
                log_event(log, level, MESSAGE_CONFIGURATION_RELOADED, NULL, 0,
                          "Configuration read again (%s): nothing was taken; restart to apply %s%s%s", why, left, semicolon,
                          more);
        else
                log_event(log, level, MESSAGE_CONFIGURATION_RELOADED, NULL, 0,
                          "Configuration read again (%s): it is the same%s%s", why, semicolon, more);
}

/* 0, or why the credential was not read. */
static int apply(Reload *r, const char *why, const char *taken, const char *left) {
        bool visible = log_enabled(r->o.env->log, LOG_LEVEL_NOTICE);
        _cleanup_free_ char *credential = NULL;
        int error = 0;

        if (r->o.credential)
                error = r->o.credential(&credential, r->o.userdata);
        /* The log itself may become quieter by it, or louder. */
        if (visible)
                say_done(r, why, taken, left, error, credential);
        if (taken)
                r->o.apply(r->o.userdata);
        if (r->o.files)
                r->o.files(r->o.userdata);
        if (!visible)
                say_done(r, why, taken, left, error, credential);
        return error;
}

void reload_now(Reload *r, const char *why) {
        _cleanup_free_ char *taken = NULL, *left = NULL, *mounted = NULL;
        _cleanup_free_ void *fresh = NULL;
        int k;

        assert(r && why);
        tell_manager(r, "RELOADING=1");
        mounted = mounted_state(
                r); /* before anything is read: what changes meanwhile shows at the next look */
        if (mounted) {
                free(r->mounted);
                r->mounted = TAKE_PTR(mounted);
        }
        fresh = calloc(1, r->o.config_size);
        k = fresh ? read_again(r, fresh, &taken, &left) : -ENOMEM;
        if (k < 0)
                log_full(r->o.env->log, LOG_LEVEL_ERROR, k, MESSAGE_CONFIGURATION_KEPT, NULL, 0,
                         "Configuration not read again (%s): %s. What was in force stays", why,
                         k == -ENOMEM ? "out of memory" : "the line before this one says what is wrong");
        else
                k = apply(r, why, taken, left);
        r->unread = may_pass(k);
        if (fresh)
                config_done(r->o.table, r->o.n_table, fresh);
        tell_manager(r, "READY=1");
}

/* -- new, free ------------------------------------------------------------------------------------------ */

int reload_new(const ReloadOptions *o, Reload **ret) {
        _cleanup_(reload_freep) Reload *r = NULL;
        int k;

        assert(o && o->env && o->table && o->config && o->config_size > 0 && o->apply && ret);
        r = new0(Reload, 1);
        if (!r)
                return -ENOMEM;
        r->o = *o;
        k = timer_new(o->env->loop, "reload", on_watch, r, &r->timer);
        if (k < 0)
                return k;
        r->mounted = mounted_state(r);
        if (r->mounted)
                timer_arm_in(r->timer, WATCH_USEC);
        *ret = TAKE_PTR(r);
        return 0;
}

Reload *reload_free(Reload *r) {
        if (!r)
                return NULL;
        timer_free(r->timer);
        free(r->mounted);
        return mfree(r);
}
