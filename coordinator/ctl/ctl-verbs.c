/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl-verbs.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "ctl-say.h"
#include "string-util.h"

const CtlVerb *const ctl_verbs[] = {
        &verb_status, &verb_explain, &verb_drain, &verb_undrain, &verb_pause, &verb_resume, &verb_release, &verb_force,
        &verb_let_go, &verb_timeline, &verb_plan, &verb_snapshot, NULL,
};

const CtlVerb *ctl_verb_find(const char *name) {
        for (const CtlVerb *const *v = ctl_verbs; *v; v++)
                if (streq((*v)->name, name))
                        return *v;
        return NULL;
}

bool ctl_verb_takes(const CtlVerb *v, const char *option) {
        for (const char *const *o = v->options; o && *o; o++)
                if (streq(*o, option))
                        return true;
        return false;
}

static const char *const output_names[_CTL_OUTPUT_MAX] = {
        [CTL_OUTPUT_TABLE] = "table",
        [CTL_OUTPUT_JSON] = "json",
        [CTL_OUTPUT_YAML] = "yaml",
        [CTL_OUTPUT_SVG] = "svg",
        [CTL_OUTPUT_HTML] = "html",
};

const char *ctl_output_to_string(CtlOutput o) {
        return o >= 0 && o < _CTL_OUTPUT_MAX ? output_names[o] : NULL;
}

CtlOutput ctl_output_from_string(const char *s) {
        for (CtlOutput o = 0; o < _CTL_OUTPUT_MAX; o++)
                if (streq_ptr(s, output_names[o]))
                        return o;
        return _CTL_OUTPUT_INVALID;
}

void ctl_finish(Ctl *ctl, int status) {
        ctl->status = status;
        loop_exit(ctl->env->loop, 0);
}

void ctl_give_up(Ctl *ctl, int error) {
        if (error < 0)
                ctl_complain("failed to ask the API server: %s", strerrordesc_np(-error) ?: "unknown error");
        ctl_finish(ctl, EXIT_FAILURE);
}

int ctl_watch_signals(Ctl *ctl, sd_event_source *ret_sources[2], sd_event_signal_handler_t handler, void *userdata) {
        static const int numbers[] = { SIGINT, SIGTERM };
        sd_event *e = loop_sd_event(ctl->env->loop);
        sigset_t set;
        int r = 0;

        if (!e)
                return 0;
        sigemptyset(&set);
        for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
                sigaddset(&set, numbers[i]);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return -errno;
        for (size_t i = 0; i < ELEMENTSOF(numbers) && r >= 0; i++)
                r = sd_event_add_signal(e, ret_sources + i, numbers[i], handler, userdata);
        return r;
}

bool ctl_shows_progress(void) {
        return isatty(STDERR_FILENO);
}

static void print_line(FILE *f, const char *before, const char *fmt, va_list ap) _printf_(3, 0);

static void print_line(FILE *f, const char *before, const char *fmt, va_list ap) {
        _cleanup_strbuf_ StrBuf line = {};

        strbuf_addv(&line, fmt, ap);
        ctl_make_plain(&line, 0);
        fprintf(f, "%s%s\n", before, line.failed ? "out of memory" : strbuf_str(&line));
}

void ctl_print(FILE *f, const char *fmt, ...) {
        va_list ap;

        va_start(ap, fmt);
        print_line(f, "", fmt, ap);
        va_end(ap);
}

int ctl_complain(const char *fmt, ...) {
        va_list ap;

        va_start(ap, fmt);
        print_line(stderr, "vesperctl: ", fmt, ap);
        va_end(ap);
        return -EINVAL;
}

int ctl_duration_option(const char *option, const char *text, usec_t *ret) {
        usec_t d;

        if (!text)
                return 0;
        if (duration_parse_go(text, &d) < 0 || d == 0)
                return ctl_complain("--%s=%s: it is a duration such as 90s, 10m or 1h30m", option, text);
        *ret = d;
        return 0;
}
