/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmocka-test.h"
#include "log-catalog.h"
#include "reload.h"
#include "string-util.h"

#define START_WALL (UINT64_C(1800000000) * USEC_PER_SEC)

typedef struct Settings {
        char *name;
        usec_t wait_usec;
        unsigned reboots;
} Settings;

static const ConfigItem table[] = {
        { "Lease", "Name", config_parse_string, config_format_string, offsetof(Settings, name), "l",
          "A name." },
        { "Drain", "WaitSec", config_parse_usec, config_format_usec, offsetof(Settings, wait_usec), "0s",
          "A time.", CONFIG_RELOADABLE, .max = USEC_PER_HOUR },
        { "Budget", "Reboots", config_parse_unsigned, config_format_unsigned, offsetof(Settings, reboots),
          "1", "A number.", CONFIG_RELOADABLE, .max = 10 },
};

/* -- a folder, a daemon on virtual time ----------------------------------------------------------------- */

typedef struct World {
        char folder[64];
        char *file;
        VirtualTime *time;
        Env env;
        Settings config;
        Reload *reload;
        StrBuf said; /* level, message id's name, text, FOLDER as DIR */
        StrBuf told; /* to the service manager */
        unsigned n_applied, n_credential, n_files;
        int credential, finish; /* what these answer */
} World;

static const char *name_of(const char *message_id) {
        return streq_ptr(message_id, MESSAGE_CONFIGURATION_RELOADED)  ? "reloaded "
               : streq_ptr(message_id, MESSAGE_CONFIGURATION_KEPT)    ? "kept "
               : streq_ptr(message_id, MESSAGE_CONFIGURATION_REFUSED) ? "refused "
                                                                      : "";
}

static void on_log(LogLevel level, const char *message_id, const char *text, const LogField *fields,
                   size_t n_fields, void *userdata) {
        World *w = userdata;
        const char *at = strstr(text, w->folder);

        strbuf_addf(&w->said, "%s %s%.*s%s%s\n", log_level_to_string(level), name_of(message_id),
                    (int) (at ? (size_t) (at - text) : strlen(text)), text, at ? "DIR" : "",
                    at ? at + strlen(w->folder) : "");
}

static void on_notify(const char *text, void *userdata) {
        strbuf_addf(&((World *) userdata)->told, "%s ", text);
}

static int on_finish(void *fresh, void *userdata) {
        World *w = userdata;

        assert_non_null(((Settings *) fresh)->name);
        if (w->finish < 0)
                log_error(w->env.log, "It does not fit together");
        return w->finish;
}

static void on_apply(void *userdata) {
        World *w = userdata;

        w->n_applied++;
        log_set_level(w->env.log, w->config.reboots == 0 ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO);
}

static void on_files(void *userdata) {
        World *w = userdata;

        w->n_files++;
}

static int on_credential(char **ret_text, void *userdata) {
        World *w = userdata;

        w->n_credential++;
        *ret_text = strdup(w->credential < 0 ? "credential as before" : "credential read again");
        return w->credential;
}

static void put(const char *path, const char *text) {
        FILE *f = fopen(path, "we");

        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(fclose(f), 0);
}

static World *world_new(void) {
        World *w = new0(World, 1);

        assert_non_null(w);
        strcpy(w->folder, "/tmp/test-reload-XXXXXX");
        assert_non_null(mkdtemp(w->folder));
        w->file = strf("%s/d.conf", w->folder);
        assert_return_code(virtual_time_new(START_WALL, &w->time), 0);
        assert_return_code(loop_new_virtual(w->time, &w->env.loop), 0);
        assert_return_code(log_new(LOG_TARGET_NULL, LOG_LEVEL_INFO, "t", &w->env.log), 0);
        log_set_hook(w->env.log, on_log, w);
        w->env.notify = on_notify;
        w->env.notify_userdata = w;
        return w;
}

static World *world_free(World *w) {
        _cleanup_free_ char *command = strf("rm -rf %s", w->folder);

        reload_free(w->reload);
        config_done(table, ELEMENTSOF(table), &w->config);
        log_free(w->env.log);
        loop_free(w->env.loop);
        virtual_time_free(w->time);
        strbuf_done(&w->said);
        strbuf_done(&w->told);
        assert_int_equal(system(command), 0);
        free(w->file);
        return mfree(w);
}
DEFINE_FREEP(World, world_free);

/* The daemon starts, with what the files say now. */
static void start(World *w, const char *credential_path) {
        const ReloadOptions o = {
                .env = &w->env,
                .table = table,
                .n_table = ELEMENTSOF(table),
                .path = w->file,
                .config = &w->config,
                .config_size = sizeof(w->config),
                .credential_path = credential_path,
                .finish = on_finish,
                .apply = on_apply,
                .credential = on_credential,
                .files = on_files,
                .userdata = w,
        };

        assert_return_code(
                config_load(w->env.log, table, ELEMENTSOF(table), w->file, false, NULL, &w->config), 0);
        assert_return_code(reload_new(&o, &w->reload), 0);
}

static void run_for(World *w, usec_t usec) {
        usec_t end = virtual_time_now(w->time) + usec;

        while (virtual_time_step(w->time, end) > 0)
                ;
}

static void assert_said(World *w, const char *expected) {
        assert_string_equal(strbuf_str(&w->said), expected);
        strbuf_truncate(&w->said, 0);
}

static void assert_told(World *w, const char *expected) {
        assert_string_equal(strbuf_str(&w->told), expected);
        strbuf_truncate(&w->told, 0);
}

/* -- SIGHUP --------------------------------------------------------------------------------------------- */

/* One after the other in the same process. */
TEST_CASE(test_rounds) {
        static const struct {
                const char *what, *text;
                usec_t wait_usec;
                unsigned reboots;
                bool applied;
                const char *said;
        } rows[] = {
                { "nothing changed", "", 0, 1, false,
                  "notice reloaded Configuration read again (SIGHUP): it is the same; credential read "
                  "again\n" },
                { "one is taken", "[Drain]\nWaitSec=5s\n", 5, 1, true,
                  "notice reloaded Configuration read again (SIGHUP): took [Drain] WaitSec=5s (was 0s); "
                  "credential read again\n" },
                { "one is wrong: nothing of it is taken", "[Budget]\nReboots=3\n[Drain]\nWaitSec=soon\n", 5,
                  1, false,
                  "error refused DIR/d.conf:4: [Drain] WaitSec=soon: expected a time span between 0s and "
                  "1h\n"
                  "error kept Configuration not read again (SIGHUP): the line before this one says what is "
                  "wrong. What was in force stays\n" },
                { "it is mended, and another name wants a restart",
                  "[Budget]\nReboots=3\n[Drain]\nWaitSec=5s\n[Lease]\nName=m\n", 5, 3, true,
                  "notice reloaded Configuration read again (SIGHUP): took [Budget] Reboots=3 (was 1); "
                  "restart to "
                  "apply [Lease] Name=m (was l); credential read again\n" },
                { "which stays to be said", "[Budget]\nReboots=3\n[Drain]\nWaitSec=5s\n[Lease]\nName=m\n", 5,
                  3, false,
                  "notice reloaded Configuration read again (SIGHUP): nothing was taken; restart to apply "
                  "[Lease] Name=m (was l); credential read again\n" },
                { "what is not a setting is said, and no reason to stop", "[Budget]\nReboot=4\nReboots=4\n",
                  0, 4, true,
                  "warning DIR/d.conf:2: Unknown key 'Reboot' in section [Budget], ignoring\n"
                  "notice reloaded Configuration read again (SIGHUP): took [Drain] WaitSec=0s (was 5s), "
                  "[Budget] Reboots=4 (was 3); credential read again\n" },
        };
        _cleanup_(world_freep) World *w = world_new();
        unsigned n_applied = 0;

        start(w, NULL);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                print_message("%s\n", rows[i].what);
                put(w->file, rows[i].text);
                run_for(w, USEC_PER_HOUR);
                assert_said(w, ""); /* of itself it reads nothing */
                reload_now(w->reload, "SIGHUP");
                assert_said(w, rows[i].said);
                assert_told(w, "RELOADING=1 READY=1 ");
                assert_int_equal(w->config.wait_usec, rows[i].wait_usec * USEC_PER_SEC);
                assert_int_equal(w->config.reboots, rows[i].reboots);
                assert_string_equal(w->config.name, "l");
                n_applied += rows[i].applied;
                assert_int_equal(w->n_applied, n_applied);
        }
        assert_int_equal(w->n_credential, ELEMENTSOF(rows) - 1);
        assert_int_equal(w->n_files, ELEMENTSOF(rows) - 1); /* whether values have changed or not */
}

TEST_CASE(test_what_does_not_fit_together) {
        _cleanup_(world_freep) World *w = world_new();

        start(w, NULL);
        put(w->file, "[Budget]\nReboots=3\n");
        w->finish = -EINVAL;
        reload_now(w->reload, "SIGHUP");
        assert_said(
                w, "error It does not fit together\n"
                   "error kept Configuration not read again (SIGHUP): the line before this one says what is "
                   "wrong. What was in force stays\n");
        assert_int_equal(w->config.reboots, 1);
        assert_int_equal(w->n_applied + w->n_credential, 0);
        assert_told(w, "RELOADING=1 READY=1 ");

        w->finish = 0;
        reload_now(w->reload, "SIGHUP");
        assert_int_equal(w->config.reboots, 3);
}

TEST_CASE(test_credential_that_cannot_be_read) {
        _cleanup_(world_freep) World *w = world_new();

        start(w, NULL);
        w->credential = -ENOENT;
        reload_now(w->reload, "SIGHUP");
        assert_said(w, "warning reloaded Configuration read again (SIGHUP): it is the same; credential as "
                       "before\n");
}

/* The log becomes quiet by what the line is about, and loud again. */
TEST_CASE(test_line_is_seen) {
        _cleanup_(world_freep) World *w = world_new();

        start(w, NULL);
        put(w->file, "[Budget]\nReboots=0\n");
        reload_now(w->reload, "SIGHUP");
        assert_said(w, "notice reloaded Configuration read again (SIGHUP): took [Budget] Reboots=0 (was 1); "
                       "credential read again\n");
        put(w->file, "[Budget]\nReboots=2\n");
        reload_now(w->reload, "SIGHUP");
        assert_said(w, "notice reloaded Configuration read again (SIGHUP): took [Budget] Reboots=2 (was 0); "
                       "credential read again\n");
}

/* -- mounted volumes ------------------------------------------------------------------------------------ */

/* As the kubelet does (pkg/volume/util/atomic_writer.go): another folder, to which ..data is turned; the
 * files are symlinks through it. */
static void mount_volume(const char *folder, const char *name, const char *version, const char *text) {
        _cleanup_free_ char *fresh = strf("%s/..%s", folder, version), *file = strf("%s/%s", fresh, name);
        _cleanup_free_ char *data = strf("%s/..data", folder), *turned = strf("%s/..data_tmp", folder);
        _cleanup_free_ char *face = strf("%s/%s", folder, name), *target = strf("..data/%s", name);

        (void) mkdir(folder, 0700);
        assert_return_code(mkdir(fresh, 0700), errno);
        put(file, text);
        assert_return_code(symlink(strrchr(fresh, '/') + 1, turned), errno);
        assert_return_code(rename(turned, data), errno);
        assert_true(symlink(target, face) >= 0 || errno == EEXIST);
}

TEST_CASE(test_mounted) {
        _cleanup_(world_freep) World *w = world_new();

        mount_volume(w->folder, "d.conf", "1", "[Budget]\nReboots=2\n");
        start(w, NULL);
        assert_int_equal(w->config.reboots, 2);
        run_for(w, USEC_PER_HOUR);
        assert_said(w, "");

        print_message("  a change is taken within 10 s, once\n");
        mount_volume(w->folder, "d.conf", "2", "[Budget]\nReboots=3\n");
        run_for(w, 10 * USEC_PER_SEC);
        assert_said(
                w,
                "notice reloaded Configuration read again (a mounted file changed): took [Budget] Reboots=3 "
                "(was 2); credential read again\n");
        assert_told(w, "RELOADING=1 READY=1 ");
        run_for(w, USEC_PER_HOUR);
        assert_said(w, "");

        print_message("  so is the next\n");
        mount_volume(w->folder, "d.conf", "3", "[Budget]\nReboots=4\n");
        run_for(w, 10 * USEC_PER_SEC);
        assert_int_equal(w->config.reboots, 4);
        strbuf_truncate(&w->said, 0);

        print_message("  one that is wrong is said once, and the next is taken\n");
        mount_volume(w->folder, "d.conf", "4", "[Budget]\nReboots=40\n");
        run_for(w, USEC_PER_HOUR);
        assert_said(
                w,
                "error refused DIR/d.conf:2: [Budget] Reboots=40: expected a whole number between 0 and 10\n"
                "error kept Configuration not read again (a mounted file changed): the line before this "
                "one says what is wrong. What was in force stays\n");
        assert_int_equal(w->config.reboots, 4);
        mount_volume(w->folder, "d.conf", "5", "[Budget]\nReboots=5\n");
        run_for(w, 10 * USEC_PER_SEC);
        assert_int_equal(w->config.reboots, 5);
        strbuf_truncate(&w->said, 0);

        print_message("  what SIGHUP has read is not read again\n");
        mount_volume(w->folder, "d.conf", "6", "[Budget]\nReboots=6\n");
        reload_now(w->reload, "SIGHUP");
        assert_int_equal(w->config.reboots, 6);
        strbuf_truncate(&w->said, 0);
        run_for(w, USEC_PER_HOUR);
        assert_said(w, "");
}

/* What changed and could not be read is tried again, not for ever; what was read and is wrong is not. */
TEST_CASE(test_mounted_unreadable) {
        _cleanup_(world_freep) World *w = world_new();

        mount_volume(w->folder, "d.conf", "1", "");
        start(w, NULL);
        mount_volume(w->folder, "d.conf", "2", "[Budget]\nReboots=3\n");
        w->credential = -EMFILE;
        run_for(w, 15 * USEC_PER_SEC);
        assert_int_equal(w->n_credential, 1);
        w->credential = 0;
        strbuf_truncate(&w->said, 0);
        run_for(w, USEC_PER_HOUR);
        assert_said(w, "notice reloaded Configuration read again (it could not be read before): it is the same; "
                       "credential read again\n");

        print_message("  for good\n");
        mount_volume(w->folder, "d.conf", "3", "[Budget]\nReboots=4\n");
        w->credential = -EMFILE;
        run_for(w, USEC_PER_HOUR);
        assert_int_equal(w->n_credential, 2 + 7);
        w->credential = -EINVAL;
        mount_volume(w->folder, "d.conf", "4", "[Budget]\nReboots=5\n");
        run_for(w, USEC_PER_HOUR);
        assert_int_equal(w->n_credential, 2 + 7 + 1);
}

TEST_CASE(test_mounted_elsewhere) {
        _cleanup_(world_freep) World *w = world_new();
        _cleanup_free_ char *drop_ins = strf("%s.d", w->file), *secret = strf("%s/secret", w->folder);
        _cleanup_free_ char *credential = strf("%s/kubeconfig", secret);

        mount_volume(drop_ins, "10-a.conf", "1", "[Budget]\nReboots=2\n");
        mount_volume(secret, "kubeconfig", "1", "a");
        start(w, credential);
        assert_int_equal(w->config.reboots, 2);

        print_message("  in the folder of drop-ins\n");
        mount_volume(drop_ins, "10-a.conf", "2", "[Budget]\nReboots=3\n");
        run_for(w, 10 * USEC_PER_SEC);
        assert_int_equal(w->config.reboots, 3);
        assert_int_equal(w->n_credential, 1);

        print_message("  where the credential lies\n");
        mount_volume(secret, "kubeconfig", "2", "b");
        run_for(w, 10 * USEC_PER_SEC);
        assert_int_equal(w->n_credential, 2);
        run_for(w, USEC_PER_HOUR);
        assert_int_equal(w->n_credential, 2);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rounds),
                cmocka_unit_test(test_what_does_not_fit_together),
                cmocka_unit_test(test_credential_that_cannot_be_read),
                cmocka_unit_test(test_line_is_seen),
                cmocka_unit_test(test_mounted),
                cmocka_unit_test(test_mounted_unreadable),
                cmocka_unit_test(test_mounted_elsewhere),
        };

        return cmocka_run_group_tests_name("reload", tests, NULL, NULL);
}
