/* SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include "strv.h"

static const char *config_path(const Program *p) {
        return p->options->config_path ? p->options->config_path : p->spec->config_path;
}

static int finish(Program *p, void *config) {
        return p->spec->finish ? p->spec->finish(config, p->log, p->userdata) : 0;
}

/* What is wrong with the configuration is logged to where the default says, as what it says is not known
 * yet. */
int program_configure(Program *p) {
        const ProgramSpec *s = p->spec;
        const char *name = s->options->program;
        int r;

        r = log_new(log_target_auto(), LOG_LEVEL_INFO, name, &p->log);
        if (r < 0)
                return r;
        r = config_load(p->log, s->table, s->n_table, config_path(p), p->options->config_path != NULL,
                        p->options->settings, p->config);
        if (r >= 0)
                r = finish(p, p->config);
        if (r < 0)
                return r;
        if (p->options->dump_config)
                return config_dump(stdout, s->table, s->n_table, p->config);
        p->log = log_free(p->log);
        r = p->terse ? log_new(LOG_TARGET_TEXT, LOG_LEVEL_WARNING, name, &p->log)
                     : log_new(log_settings_target(p->log_settings), log_settings_level(p->log_settings),
                               name, &p->log);
        return r < 0 ? r : 1;
}

/* -- running -------------------------------------------------------------------------------------------- */

static void on_stop(int signal, void *userdata) {
        Program *p = userdata;

        p->spec->on_stop(signal, p->userdata);
}

static void on_reload(void *userdata) {
        Program *p = userdata;

        reload_now(p->reload, "SIGHUP");
}

static int on_finish(void *fresh, void *userdata) {
        return finish(userdata, fresh);
}

static void on_apply(void *userdata) {
        Program *p = userdata;

        log_set_target(p->log, log_settings_target(p->log_settings));
        log_set_level(p->log, log_settings_level(p->log_settings));
        p->spec->on_apply(p->userdata);
}

static void on_files(void *userdata) {
        Program *p = userdata;

        if (p->spec->on_files)
                p->spec->on_files(p->userdata);
}

static int on_credential(char **ret_text, void *userdata) {
        Program *p = userdata;

        return kube_process_reload(&p->kube, ret_text);
}

int program_watch(Program *p) {
        const ReloadOptions o = {
                .env = &p->kube.env,
                .table = p->spec->table,
                .n_table = p->spec->n_table,
                .path = config_path(p),
                .required = p->options->config_path != NULL,
                .settings = p->options->settings,
                .config = p->config,
                .config_size = p->spec->config_size,
                .credential_path = p->kube.paths ? p->kube.paths[0] : NULL,
                .finish = on_finish,
                .apply = on_apply,
                .files = on_files,
                .credential = on_credential,
                .userdata = p,
        };
        int r;

        r = reload_new(&o, &p->reload);
        if (r < 0)
                return log_error_errno(p->log, r, "Failed to set up reloading of the configuration: %m");
        p->signals = (DaemonSignals) { .on_stop = on_stop, .on_reload = on_reload, .userdata = p };
        return daemon_watch_signals(p->kube.env.loop, p->log, &p->signals);
}

void program_done(Program *p) {
        reload_free(p->reload);
        kube_process_done(&p->kube);
        config_done(p->spec->table, p->spec->n_table, p->config);
        log_free(p->log);
        strv_free(p->options->settings);
}
