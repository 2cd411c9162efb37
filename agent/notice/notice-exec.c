/* SPDX-License-Identifier: Apache-2.0 */
#include "notice-exec.h"

#include "notice-list.h"
#include "string-util.h"
#include "strv.h"

#define FEED "exec"
#define TIMEOUT_USEC (30 * USEC_PER_SEC)
#define OUTPUT_BYTES_MAX 65536u
#define ERROR_BYTES_MAX 200u

typedef struct NoticeExec {
        NoticeSource source;
        Env *env;
        char **command, **environment;
        usec_t poll_usec;
        Timer *timer;
        Backoff backoff;
        Child *child; /* NULL: it does not run */
        NoticeSet known;
} NoticeExec;

static NoticeExec *to_exec(NoticeSource *s) {
        return CONTAINER_OF(s, NoticeExec, source);
}

/* -- the end of a look --------------------------------------------------------------------------- */

static void failed(NoticeExec *e, const char *why) {
        usec_t now = loop_now(e->env->loop);

        timer_arm(e->timer, usec_add(now, notice_source_pause(&e->backoff, e->env->random)));
        notice_source_unknown(&e->source, FEED, why ? why : "out of memory", now);
}

/* The last line, free of what a terminal would obey; free it. */
static char *last_line(const char *errors) {
        _cleanup_free_ char *copy = strdup(errors);
        char *line;

        if (!copy)
                return NULL;
        line = strrchr(strstrip(copy), '\n');
        return str_sanitize(line ? line + 1 : strstrip(copy), ERROR_BYTES_MAX);
}

static char *explain(const NoticeExec *e, const ChildResult *r) {
        _cleanup_free_ char *said = last_line(strempty(r->errors));

        if (r->error == -ETIMEDOUT)
                return strf("%s has not ended within 30 s", e->command[0]);
        if (r->error < 0)
                return strf("%s could not be run: %s", e->command[0], strerrordesc_np(-r->error) ?: "unknown error");
        return strf("%s ended with exit status %d%s%s", e->command[0], r->exit_status, isempty(said) ? "" : ": ", strempty(said));
}

static bool is_blank(const char *s, size_t size) {
        for (size_t i = 0; i < size; i++)
                if (!strchr(" \t\r\n", s[i]))
                        return false;
        return true;
}

static void on_ended(const ChildResult *result, void *userdata) {
        NoticeExec *e = userdata;
        usec_t now = loop_now(e->env->loop);
        _cleanup_free_ char *text = NULL;
        NoticeSet fresh = { 0 };
        const char *why = NULL;
        int r = 0;

        if (result->error < 0 || result->exit_status != 0)
                text = explain(e, result);
        else if (!is_blank(result->output, result->output_size)) {
                r = notice_list_parse(&e->source, e->env->loop, result->output, result->output_size, now, &e->known, &fresh, &why);
                if (r < 0)
                        text = strf("what %s prints is no list of notices: %s", e->command[0], r == -ENOMEM ? "out of memory" : why);
        }
        e->child = child_free(e->child);
        if (r < 0 || text || result->error < 0 || result->exit_status != 0) {
                failed(e, text);
                return;
        }
        backoff_reset(&e->backoff);
        timer_arm(e->timer, usec_add(now, e->poll_usec));
        notice_set_done(&e->known);
        e->known = fresh;
        notice_source_found(&e->source, FEED, e->known.items, e->known.n, now);
}

static void on_timer(Timer *t, void *userdata) {
        NoticeExec *e = userdata;
        const ChildRequest request = {
                .argv = e->command,
                .environment = e->environment,
                .max_output_bytes = OUTPUT_BYTES_MAX,
                .timeout_usec = TIMEOUT_USEC,
        };

        if (!e->child && child_start(e->env->children, &request, on_ended, e, &e->child) < 0)
                failed(e, "out of memory");
}

/* -- NoticeSource -------------------------------------------------------------------------------- */

/* Somewhere within the first interval: what a fleet that was started together asks is not asked in step. */
static void exec_start(NoticeSource *s) {
        NoticeExec *e = to_exec(s);

        timer_arm(e->timer, usec_add(loop_now(e->env->loop), random_below(e->env->random, e->poll_usec)));
}

static void exec_kick(NoticeSource *s) {
        NoticeExec *e = to_exec(s);

        if (e->child || e->backoff.failures == 0)
                return;
        backoff_reset(&e->backoff);
        timer_arm(e->timer, loop_now(e->env->loop));
}

static void exec_free(NoticeSource *s) {
        NoticeExec *e = to_exec(s);

        child_free(e->child);
        timer_free(e->timer);
        notice_set_done(&e->known);
        strv_free(e->command);
        strv_free(e->environment);
        free(e);
}

static const char *const exec_feeds[] = { FEED, NULL };

static void exec_next_wakeup(const NoticeSource *s, Wakeups *w) {
        const NoticeExec *e = CONTAINER_OF(s, NoticeExec, source);

        wakeups_unfinished(w, "poll of", "exec", e->child ? "running" : "waiting",
                           MAX(NOTICE_SOURCE_WAKEUP_USEC, e->poll_usec));
        wakeups_timer(w, e->timer);
        wakeups_await(w, e->child);
}

static const NoticeSourceOps exec_ops = {
        .name = "exec",
        .feeds = exec_feeds,
        .start = exec_start,
        .kick = exec_kick,
        .next_wakeup = exec_next_wakeup,
        .free = exec_free,
};

static int make_environment(NoticeExec *e, const char *node) {
        _cleanup_free_ char *name = strf("VESPER_NODE=%s", strempty(node));
        int r;

        if (!name)
                return -ENOMEM;
        r = strv_extend(&e->environment, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        if (r >= 0)
                r = strv_extend(&e->environment, "LANG=C.UTF-8");
        return r < 0 ? r : strv_extend(&e->environment, name);
}

int notice_exec_new(Env *env, const NoticeExecOptions *o, notice_look_t on_look, void *userdata, NoticeSource **ret) {
        NoticeExec *e;
        int r = 0;

        assert(env && env->children && o && o->command && o->command[0] && o->poll_usec > 0 && on_look && ret);
        e = new0(NoticeExec, 1);
        if (!e)
                return -ENOMEM;
        e->source = (NoticeSource){ .ops = &exec_ops, .on_look = on_look, .userdata = userdata };
        e->env = env;
        e->poll_usec = o->poll_usec;
        e->backoff = NOTICE_SOURCE_BACKOFF(o->poll_usec, NOTICE_SOURCE_SLOWEST_POLLS * o->poll_usec);
        for (char *const *a = o->command; r >= 0 && *a; a++)
                r = strv_extend(&e->command, *a);
        if (r >= 0)
                r = make_environment(e, o->node);
        if (r >= 0)
                r = timer_new(env->loop, "notice-exec", on_timer, e, &e->timer);
        if (r < 0) {
                exec_free(&e->source);
                return r;
        }
        *ret = &e->source;
        return 0;
}
