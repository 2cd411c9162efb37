/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "ctl-drain.h"
#include "ctl-dry-run.h"
#include "ctl-say.h"
#include "ctl-verbs.h"

/*
 * drain NODE...: all nodes at once, on one evictor. Progress goes to standard output: on a terminal a line
 * per node that is rewritten in place, else a line per change; with -o json or yaml nothing but the end.
 * Words about what a person should know go to standard error.
 */

#define DRAW_USEC (100 * USEC_PER_MSEC)
#define REDRAW_USEC USEC_PER_SEC /* ages grow */
#define EXIT_REFUSED 3

typedef struct DrainVerb DrainVerb;

typedef struct DrainedNode {
        DrainVerb *verb;
        const char *name;
        CtlDrain *drain;
        DrainSaid said;
        CtlDryRun *dry_run;
        const DryRunNode *result; /* of the dry run, once there is one */
} DrainedNode;

struct DrainVerb {
        Ctl *ctl;
        CtlDrainOptions options;
        CtlEvictions *evictions;
        DrainedNode *nodes;
        size_t n_nodes;
        bool is_rewritten; /* lines in place */
        unsigned n_drawn;  /* lines above the cursor that are ours */
        Timer *tick;
        sd_event_source *signals[2];
        bool is_over;
};

static void drain_verb_free(void *state) {
        DrainVerb *v = state;

        for (size_t i = 0; i < v->n_nodes; i++) {
                ctl_drain_free(v->nodes[i].drain);
                ctl_dry_run_free(v->nodes[i].dry_run);
        }
        ctl_evictions_free(v->evictions);
        for (size_t i = 0; i < ELEMENTSOF(v->signals); i++)
                sd_event_source_disable_unref(v->signals[i]);
        timer_free(v->tick);
        free(v->nodes);
        free(v);
}

/* -- lines ---------------------------------------------------------------------------------------------- */

/* What is drawn goes, so that something else can be written there. */
static void drain_verb_erase(DrainVerb *v) {
        if (v->n_drawn > 0) {
                fflush(stdout);
                (void) dprintf(STDOUT_FILENO, "\x1b[%uA\r\x1b[J", v->n_drawn); /* plain-output.h */
        }
        v->n_drawn = 0;
}

/* For what goes to standard error, which is not buffered. */
static void drain_verb_make_place(DrainVerb *v) {
        drain_verb_erase(v);
        fflush(stdout);
}

static void drain_verb_draw(DrainVerb *v) {
        usec_t wall = loop_server_wall(v->ctl->env->loop);
        struct winsize size = {};
        _cleanup_strbuf_ StrBuf b = {};

        (void) ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
        for (size_t i = 0; i < v->n_nodes; i++) {
                DrainProgress p = ctl_drain_progress(v->nodes[i].drain);
                size_t from = b.size;

                drain_progress_add_line(&b, &p, wall);
                /* What has ended is not drawn again: it may be as long as it is. */
                if (!v->is_over && size.ws_col > 1)
                        drain_progress_cut(&b, from, size.ws_col - 1u);
                strbuf_add_char(&b, '\n');
        }
        drain_verb_erase(v);
        fputs(strbuf_str(&b), stdout);
        fflush(stdout);
        v->n_drawn = v->is_over ? 0 : (unsigned) v->n_nodes;
}

/* What did not work is said on standard error, whatever the form of the output. */
static bool drain_has_failed(const DrainProgress *p) {
        return ctl_drain_state_is_end(p->state) && p->state != CTL_DRAIN_DRAINED;
}

static void drain_verb_print_news(DrainVerb *v, DrainedNode *n) {
        DrainProgress p = ctl_drain_progress(n->drain);
        _cleanup_strbuf_ StrBuf b = {};

        if (!drain_progress_is_news(&n->said, &p, loop_now(v->ctl->env->loop)))
                return;
        drain_progress_add_line(&b, &p, loop_server_wall(v->ctl->env->loop));
        if (drain_has_failed(&p)) {
                ctl_complain("%s", strbuf_str(&b));
                return;
        }
        printf("%s\n", strbuf_str(&b));
        fflush(stdout);
}

static bool is_for_people(const DrainVerb *v) {
        return v->ctl->output == CTL_OUTPUT_TABLE;
}

static void on_tick(Timer *t, void *userdata) {
        DrainVerb *v = userdata;

        if (v->is_over)
                return;
        if (v->is_rewritten)
                drain_verb_draw(v);
        else
                for (size_t i = 0; i < v->n_nodes; i++)
                        drain_verb_print_news(v, v->nodes + i);
        timer_arm_in(t, REDRAW_USEC);
}

static void print_json(const DrainVerb *v, const char *json) {
        _cleanup_free_ char *text = json ? ctl_format_json(json, v->ctl->output == CTL_OUTPUT_YAML) : NULL;

        if (text)
                fputs(text, stdout);
        else
                ctl_complain("out of memory");
}

static void drain_verb_print_json(DrainVerb *v) {
        _cleanup_free_ DrainProgress *list = new0(DrainProgress, v->n_nodes);
        _cleanup_free_ char *json = NULL;

        for (size_t i = 0; list && i < v->n_nodes; i++)
                list[i] = ctl_drain_progress(v->nodes[i].drain);
        json = list ? drain_progress_json(list, v->n_nodes) : NULL;
        print_json(v, json);
}

static void drain_verb_complain(const DrainVerb *v) {
        for (size_t i = 0; i < v->n_nodes; i++) {
                DrainProgress p = ctl_drain_progress(v->nodes[i].drain);
                _cleanup_strbuf_ StrBuf b = {};

                if (!drain_has_failed(&p))
                        continue;
                drain_progress_add_line(&b, &p, loop_server_wall(v->ctl->env->loop));
                ctl_complain("%s", strbuf_str(&b));
        }
}

/* -- what becomes of the nodes -------------------------------------------------------------------------- */

static void drain_verb_finish(DrainVerb *v) {
        bool is_done = true;

        for (size_t i = 0; i < v->n_nodes; i++)
                is_done &= ctl_drain_progress(v->nodes[i].drain).state == CTL_DRAIN_DRAINED;
        v->is_over = true;
        if (!is_for_people(v)) {
                drain_verb_print_json(v);
                drain_verb_complain(v);
        }
        else if (v->is_rewritten)
                drain_verb_draw(v);
        ctl_finish(v->ctl, is_done ? EXIT_SUCCESS : EXIT_FAILURE);
}

static void on_drain_changed(CtlDrain *d, void *userdata) {
        DrainedNode *n = userdata;
        DrainVerb *v = n->verb;

        if (v->is_over)
                return;
        if (is_for_people(v) && !v->is_rewritten)
                drain_verb_print_news(v, n);
        else if (v->is_rewritten)
                timer_arm_earlier(v->tick, usec_add(loop_now(v->ctl->env->loop), DRAW_USEC));
        for (size_t i = 0; i < v->n_nodes; i++)
                if (!ctl_drain_state_is_end(ctl_drain_progress(v->nodes[i].drain).state))
                        return;
        drain_verb_finish(v);
}

static void on_drain_note(CtlDrain *d, const char *text, void *userdata) {
        DrainedNode *n = userdata;

        drain_verb_make_place(n->verb);
        ctl_complain("%s", text);
}

static void on_budgets_changed(void *userdata) {
        DrainVerb *v = userdata;

        for (size_t i = 0; i < v->n_nodes; i++)
                if (v->nodes[i].drain)
                        ctl_drain_see_budgets(v->nodes[i].drain);
}

static void on_budgets_ready(const char *why_not, void *userdata) {
        DrainVerb *v = userdata;

        if (why_not) {
                drain_verb_make_place(v);
                ctl_complain("%s. Without that, evictions are tried one after the other, and refused ones again later",
                             why_not);
        }
        on_budgets_changed(v);
}

/* Nothing more is sent from here on; what is under way is not waited for. */
static int on_signal(sd_event_source *s, const struct signalfd_siginfo *si, void *userdata) {
        DrainVerb *v = userdata;

        if (v->is_over)
                return 0;
        v->is_over = true;
        drain_verb_make_place(v);
        for (size_t i = 0; i < v->n_nodes; i++) {
                DrainProgress p = ctl_drain_progress(v->nodes[i].drain);
                _cleanup_strbuf_ StrBuf b = {};

                drain_progress_add_stopped(&b, &p);
                fprintf(stderr, "%s\n", strbuf_str(&b));
        }
        if (!is_for_people(v))
                drain_verb_print_json(v);
        for (size_t i = 0; i < v->n_nodes; i++)
                v->nodes[i].drain = ctl_drain_free(v->nodes[i].drain);
        ctl_finish(v->ctl, EXIT_INTERRUPTED);
        return 0;
}

/* -- the beginning -------------------------------------------------------------------------------------- */

static int begin_drains(DrainVerb *v) {
        const CtlEvictionsHandler on_budgets = { .on_ready = on_budgets_ready,
                                                 .on_budgets_changed = on_budgets_changed,
                                                 .userdata = v };
        struct winsize size = {};
        int r;

        v->is_rewritten = is_for_people(v) && isatty(STDOUT_FILENO) &&
                          ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) >= 0 && v->n_nodes < size.ws_row;
        r = timer_new(v->ctl->env->loop, "progress", on_tick, v, &v->tick);
        if (r >= 0)
                r = ctl_watch_signals(v->ctl, v->signals, on_signal, v);
        if (r >= 0)
                r = ctl_evictions_new(v->ctl->client, &on_budgets, &v->evictions);
        for (size_t i = 0; r >= 0 && i < v->n_nodes; i++) {
                const CtlDrainHandler handler = { .on_changed = on_drain_changed,
                                                  .on_note = on_drain_note,
                                                  .userdata = v->nodes + i };

                r = ctl_drain_new(v->ctl->client, v->evictions, v->nodes[i].name, &v->options, &handler,
                                  &v->nodes[i].drain);
        }
        if (r >= 0 && is_for_people(v))
                timer_arm_in(v->tick, v->is_rewritten ? 0 : REDRAW_USEC);
        return r;
}

static void on_dry_run_done(CtlDryRun *d, const DryRunNode *result, void *userdata) {
        DrainedNode *n = userdata;
        DrainVerb *v = n->verb;
        _cleanup_free_ const DryRunNode **list = NULL;
        _cleanup_strbuf_ StrBuf b = {};
        int status = EXIT_SUCCESS;

        n->result = result;
        for (size_t i = 0; i < v->n_nodes; i++)
                if (!v->nodes[i].result)
                        return;
        list = new0(const DryRunNode *, v->n_nodes);
        for (size_t i = 0; list && i < v->n_nodes; i++) {
                list[i] = v->nodes[i].result;
                if (list[i]->error) {
                        ctl_complain("node %s: %s", list[i]->name, list[i]->error);
                        status = EXIT_FAILURE;
                        continue; /* the table has nothing of it */
                }
                if (status == EXIT_SUCCESS && !dry_run_node_would_drain(list[i]))
                        status = EXIT_REFUSED;
                if (b.size > 0)
                        strbuf_add_char(&b, '\n');
                dry_run_node_add_table(&b, list[i]);
        }
        if (is_for_people(v))
                fputs(strbuf_str(&b), stdout);
        else {
                _cleanup_free_ char *json = list ? dry_run_json(list, v->n_nodes) : NULL;

                print_json(v, json);
        }
        ctl_finish(v->ctl, list && !b.failed ? status : EXIT_FAILURE);
}

static int begin_dry_runs(DrainVerb *v) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < v->n_nodes; i++)
                r = ctl_dry_run_new(v->ctl->client, v->nodes[i].name, v->options.protected_policy,
                                    on_dry_run_done, v->nodes + i, &v->nodes[i].dry_run);
        return r;
}

static int parse_options(DrainVerb *v) {
        static const char *const policies[] = { [PROTECTED_WAIT] = "wait",
                                                [PROTECTED_OTHERS] = "others",
                                                [PROTECTED_IGNORE] = "ignore" };
        const CtlOptions *o = v->ctl->options;
        size_t policy = PROTECTED_WAIT;
        int r;

        v->options.timeout_usec = v->options.deadline_usec = USEC_INFINITY;
        if (o->dry_run && o->deadline)
                return ctl_complain("--dry-run asks about evictions, and --deadline does without them at its end: leave one away");
        r = ctl_duration_option("timeout", o->timeout, &v->options.timeout_usec);
        if (r >= 0)
                r = ctl_duration_option("deadline", o->deadline, &v->options.deadline_usec);
        if (r < 0)
                return r;
        if (o->protected_policy)
                for (policy = 0; policy < ELEMENTSOF(policies); policy++)
                        if (streq(policies[policy], o->protected_policy))
                                break;
        if (policy == ELEMENTSOF(policies))
                return ctl_complain("--protected=%s: it is wait, others or ignore", o->protected_policy);
        v->options.protected_policy = (ProtectedPolicy) policy;
        return 0;
}

/* A name given twice is one node. */
static int take_names(DrainVerb *v) {
        v->nodes = new0(DrainedNode, v->ctl->n_args);
        if (!v->nodes)
                return -ENOMEM;
        for (size_t i = 0; i < v->ctl->n_args; i++) {
                bool is_known = false;

                for (size_t k = 0; k < v->n_nodes; k++)
                        is_known |= streq(v->nodes[k].name, v->ctl->args[i]);
                if (!is_known)
                        v->nodes[v->n_nodes++] = (DrainedNode){ .verb = v, .name = v->ctl->args[i] };
        }
        return 0;
}

static int drain_start(Ctl *ctl, void **ret) {
        DrainVerb *v = new0(DrainVerb, 1);
        int r;

        if (!v)
                return -ENOMEM;
        *ret = v;
        v->ctl = ctl;
        r = parse_options(v);
        if (r >= 0)
                r = take_names(v);
        if (r < 0)
                return r;
        return ctl->options->dry_run ? begin_dry_runs(v) : begin_drains(v);
}

static const char *const drain_options[] = { "deadline", "dry-run", "protected", "timeout", NULL };

const CtlVerb verb_drain = {
        .name = "drain",
        .arguments = "NODE...",
        .summary = "Cordon nodes and evict their pods, until the API server proves that none is left",
        .text = "Works in any cluster, with your own credential; neither vesper's coordinator nor its CRDs are needed. "
                "The cordon is marked by the annotation vesper.sh/cordoned-by-vesperctl, so that 'vesperctl undrain' can take it back; "
                "one that was there before stays afterwards. Pods are evicted together, all nodes at once, and those of one PodDisruptionBudget one after the other, "
                "as its status allows; critical pods go last. Pods of DaemonSets, static and finished pods stay and are not waited for. "
                "While a pod has opted out of drains (vesper.sh/do-not-evict=true, karpenter.sh/do-not-disrupt=true, cluster-autoscaler's safe-to-evict=false), nothing is evicted; "
                "--protected=others evicts the others meanwhile, --protected=ignore all. "
                "Without an option it waits for ever. --timeout gives up after so long, evicts nothing more, and leaves the node cordoned. "
                "--deadline has the node empty by then: each pod is deleted its grace before that, whatever its budget or its do-not-evict says, so that BUDGETS ARE BROKEN; "
                "a pod that is left 30 seconds later is named. "
                "It asks no NodeDisruptionBudget, and no pause of vesper's holds it: drain as few nodes at once as your budgets allow. "
                "Whoever makes the node schedulable meanwhile stops the drain. Ctrl-C stops it at once, and says what state each node is left in. "
                "--dry-run changes nothing: the API server is asked about the cordon and each eviction by itself, with its budgets and webhooks. "
                "Needs: get, list, watch and patch of nodes; list and watch of pods; create of pods/eviction; with --deadline delete of pods; "
                "list and watch of poddisruptionbudgets, without which refused evictions are tried again and again.",
        .example = "vesperctl drain worker-7 worker-8 --timeout=30m",
        .statuses = "3 --dry-run: not all pods would go now; 130 interrupted",
        .min_args = 1,
        .max_args = UINT_MAX,
        .outputs = CTL_OUTPUTS_DATA,
        .options = drain_options,
        .start = drain_start,
        .free = drain_verb_free,
};
