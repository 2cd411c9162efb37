/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ctl-fetch.h"
#include "ctl-say.h"
#include "ctl-verbs.h"

/* With --watch all is read again: after two seconds, and never so often that reading takes more than a tenth of
 * the time, for a cluster may be large. */
#define WATCH_USEC (2 * USEC_PER_SEC)
#define WATCH_TIMES 10u
#define CLEAR_SCREEN "\033[H\033[2J"

typedef struct StatusVerb {
        Ctl *ctl;
        CtlFetch *fetch;
        Timer *again; /* NULL without --watch */
        usec_t asked_usec;
        char *shown; /* as JSON: what was printed last */
} StatusVerb;

static void status_free(void *state) {
        StatusVerb *v = state;

        ctl_fetch_free(v->fetch);
        timer_free(v->again);
        free(v->shown);
        free(v);
}

/* 1: printed; 0: a pipe has it already. */
static int print_status(StatusVerb *v, const CtlSnapshot *s) {
        _cleanup_(status_rows_done) StatusRows rows = {};
        _cleanup_free_ char *json = NULL, *text = NULL;
        bool terminal = v->again && isatty(STDOUT_FILENO);
        int r;

        r = status_rows_make(s, &rows);
        if (r < 0)
                return r;
        json = status_rows_json(&rows, s);
        if (!json)
                return -ENOMEM;
        if (!terminal && streq_ptr(json, v->shown))
                return 0;
        text = v->ctl->output == CTL_OUTPUT_TABLE ? status_rows_table(&rows, s)
                                                  : ctl_format_json(json, v->ctl->output == CTL_OUTPUT_YAML);
        if (!text)
                return -ENOMEM;
        if (terminal)
                (void) dprintf(STDOUT_FILENO, CLEAR_SCREEN); /* plain-output.h. Nothing is buffered. */
        else if (v->shown)
                fputs(v->ctl->output == CTL_OUTPUT_YAML ? "---\n" : "\n", stdout);
        fputs(text, stdout);
        free(v->shown);
        v->shown = TAKE_PTR(json);
        return fflush(stdout) < 0 ? -EIO : 1;
}

static void on_fetched(int error, const char *message, CtlSnapshot *snapshot, void *userdata) {
        StatusVerb *v = userdata;
        usec_t now_usec = loop_now(v->ctl->env->loop);

        if (message)
                ctl_complain("%s", message);
        v->fetch = ctl_fetch_free(v->fetch); /* and the message with it */
        if (error >= 0)
                error = print_status(v, snapshot);
        ctl_snapshot_done(snapshot);
        if (!v->again || error == -EIO) {
                ctl_finish(v->ctl, error < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
                return;
        }
        timer_arm_in(v->again, MAX(WATCH_USEC, WATCH_TIMES * (now_usec - v->asked_usec)));
}

static int fetch(StatusVerb *v) {
        const CtlFetchOptions options = {
                .lease_ns = v->ctl->options->lease_ns,
                .lease_name = v->ctl->options->lease_name,
                .nodes = v->ctl->n_args > 0 ? v->ctl->args : NULL,
                .n_nodes = v->ctl->n_args,
                .claims_optional = true,
        };

        v->asked_usec = loop_now(v->ctl->env->loop);
        return ctl_fetch_new(v->ctl->client, &options, on_fetched, v, &v->fetch);
}

static void on_again(Timer *t, void *userdata) {
        StatusVerb *v = userdata;

        (void) t;
        if (fetch(v) < 0)
                ctl_finish(v->ctl, EXIT_FAILURE);
}

static int status_start(Ctl *ctl, void **ret) {
        StatusVerb *v = new0(StatusVerb, 1);
        int r;

        if (!v)
                return -ENOMEM;
        *ret = v;
        v->ctl = ctl;
        if (ctl->options->watch) {
                r = timer_new(ctl->env->loop, "status again", on_again, v, &v->again);
                if (r < 0)
                        return r;
        }
        return fetch(v);
}

static const char *const status_options[] = { "watch", NULL };

const CtlVerb verb_status = {
        .name = "status",
        .arguments = "[NODE...]",
        .max_args = UINT_MAX,
        .summary = "Which nodes are managed or interrupted, how far each is, and what holds it",
        .text = "Reads Nodes, NodeClaims, the coordinator's Lease and its namespace; changes nothing. If all removals are paused, a line above the table says who has set the pause, when, and how to lift it. Notes below the table "
                "complete columns that are too narrow, and say what to do. HELD-BY names a pod that is being "
                "deleted, or whose eviction the API server put off, "
                "only after a minute. It never names a pod that waits for its turn. A node that is neither removed "
                "nor drained can show these phases: WaitingForRebootSlot, "
                "RebootSlotGranted or RebootSlotExpired (its slot to reboot), Planned (a plan of its agent), or "
                "OutOfService (its cloud reports the machine as off or gone). "
                "A NodeClaim whose machine is no node yet has a row of its own, with its name in parentheses and the phase Launching or Launched: HELD-BY says why the machine is not there, "
                "DEADLINE until when it is asked for. JSON lists these in launches, not in nodes.\n\n"
                "For named nodes, the state is shown whether or not they are managed, with each pod that holds them; "
                "for these nothing is read but the Nodes, their NodeClaims, the Lease and its namespace. Where NodeClaims are not installed, or may not be "
                "read, what vesper-agents say on their Nodes is shown. "
                "Needs: list of nodes and nodeclaims (of nodes that are named get, and get of nodeclaims besides), get of the Lease and of the coordinator's namespace.",
        .example = "vesperctl status --watch",
        .outputs = CTL_OUTPUTS_DATA,
        .options = status_options,
        .start = status_start,
        .free = status_free,
};
