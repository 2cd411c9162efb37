/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "ctl-say.h"
#include "ctl-verbs.h"
#include "daemon.h"
#include "parse-util.h"
#include "plan-show.h"
#include "snapshot-fetch.h"
#include "snapshot-input.h"
#include "strv.h"

#define EXIT_CANNOT 3
#define ADDED_MAX 1000u

typedef struct PlanVerb {
        Ctl *ctl;
        SnapshotFetch *fetch;
} PlanVerb;

static void plan_free(void *state) {
        PlanVerb *v = state;

        snapshot_fetch_free(v->fetch);
        free(v);
}

/* -- what is asked -------------------------------------------------------------------------------------- */

/* "SHAPE:N", or "SHAPE" for one. */
static int add_nodes(DisruptionScene *s, const char *with) {
        const char *colon = strrchr(with, ':');
        _cleanup_free_ char *shape = colon ? memdup_str(with, (size_t) (colon - with)) : strdup(with);
        uint64_t n = 1;
        int r;

        if (!shape)
                return -ENOMEM;
        if (colon && parse_uint64_range(colon + 1, 1, ADDED_MAX, &n) < 0)
                return ctl_complain("--with %s: behind the colon stands how many, from 1 to %u", with, ADDED_MAX);
        r = disruption_add_nodes(s, shape, (unsigned) n);
        if (r == -ENOENT)
                return ctl_complain("--with %s: '%s' is neither a node, nor the instance type of a node or of an offering of a NodePool that has one",
                                    with, shape);
        if (r < 0)
                return r == -ENOMEM ? r : ctl_complain("--with %s: such nodes cannot be simulated%s", with, r == -E2BIG ? ": they are too many" : "");
        return 0;
}

/* text: JSON, or already in the form that is asked for; NULL: out of memory. The exit status. */
static int print_text(const Ctl *ctl, const char *text, int status) {
        bool is_data = ctl->output == CTL_OUTPUT_JSON || ctl->output == CTL_OUTPUT_YAML;
        _cleanup_free_ char *data = text && is_data ? ctl_format_json(text, ctl->output == CTL_OUTPUT_YAML) : NULL;

        if (is_data)
                text = data;
        if (!text)
                return ctl_complain("out of memory"), EXIT_FAILURE;
        if (fputs(text, stdout) < 0 || fflush(stdout) < 0)
                return EXIT_FAILURE;
        return status;
}

static int show_what_if(const Ctl *ctl, const DisruptionScene *s, const WhatIf *w, const GateFindings *others, char *const *notes) {
        _cleanup_free_ char *text = ctl->output == CTL_OUTPUT_TABLE  ? what_if_table(s, w, others, notes)
                                    : ctl->output == CTL_OUTPUT_HTML ? what_if_html(s, w, others, notes)
                                                                     : what_if_json(s, w, others, notes);

        return print_text(ctl, text, w->fits && !w->has_objections && w->n_nodes > 0 ? EXIT_SUCCESS : EXIT_CANNOT);
}

static int run_without(const Ctl *ctl, DisruptionScene *s, char *const *notes) {
        _cleanup_strv_free_ char **names = NULL;
        const char *unknown = NULL;
        WhatIf w = {};
        int r;

        r = strv_split(ctl->options->without, ",", &names);
        if (r >= 0 && strv_length(names) == 0)
                return ctl_complain("--without needs names of nodes, with commas between them"), EXIT_USAGE;
        if (r >= 0)
                r = disruption_without(s, names, strv_length(names), &w, &unknown);
        if (r == -ENOENT)
                return ctl_complain("there is no node '%s'", unknown), EXIT_FAILURE;
        if (r < 0)
                return ctl_complain("out of memory"), EXIT_FAILURE;
        r = show_what_if(ctl, s, &w, NULL, notes);
        what_if_done(&w);
        return r;
}

static int run_all_drainable(const Ctl *ctl, DisruptionScene *s, char *const *notes) {
        GateFindings *others = NULL;
        WhatIf w = {};
        int r;

        if (disruption_all_drainable(s, &w, &others) < 0)
                return ctl_complain("out of memory"), EXIT_FAILURE;
        r = show_what_if(ctl, s, &w, others, notes);
        for (uint32_t i = 0; i < s->n_nodes; i++)
                gate_findings_done(others + i);
        free(others);
        what_if_done(&w);
        return r;
}

static int run_upgrade(const Ctl *ctl, DisruptionScene *s, char *const *notes) {
        _cleanup_free_ char *text = NULL;
        UpgradePlan u = {};
        int r;

        r = disruption_upgrade(s, ctl->options->upgrade, &u);
        if (r == -ENOENT)
                return ctl_complain("there is no NodePool '%s'", ctl->options->upgrade), EXIT_FAILURE;
        if (r == -EBADMSG)
                return ctl_complain("NodePool %s cannot be understood: its condition Invalid says why", ctl->options->upgrade), EXIT_FAILURE;
        if (r < 0)
                return ctl_complain("out of memory"), EXIT_FAILURE;
        text = ctl->output == CTL_OUTPUT_TABLE ? upgrade_table(s, &u, notes) : upgrade_json(s, &u, notes);
        r = print_text(ctl, text, u.n_blocked > 0 || u.is_endless ? EXIT_CANNOT : EXIT_SUCCESS);
        upgrade_plan_done(&u);
        return r;
}

static int run_methods(const Ctl *ctl, DisruptionScene *s, char *const *notes) {
        _cleanup_(disruption_plan_freep) DisruptionPlan *p = NULL;
        _cleanup_free_ char *text = NULL;

        if (disruption_plan_new(s, &p) < 0)
                return ctl_complain("out of memory"), EXIT_FAILURE;
        text = ctl->output == CTL_OUTPUT_TABLE  ? plan_table(p, notes)
               : ctl->output == CTL_OUTPUT_HTML ? plan_html(p, notes)
                                                : plan_json(p, notes);
        return print_text(ctl, text, EXIT_SUCCESS);
}

static int add_left_out(const Simulator *s, char ***notes) {
        _cleanup_free_ char *text = NULL, *note = NULL;
        int r = simulator_left_out_text(s, &text);

        if (r < 0 || !text)
                return r;
        note = strf(LEFT_OUT_NOTE, text);
        return note ? strv_extend(notes, note) : -ENOMEM;
}

/* The exit status. */
static int plan_of(const Ctl *ctl, const Snapshot *snapshot, char *const *unknown) {
        const SceneOptions options = { .lease_ns = ctl->options->lease_ns };
        _cleanup_(simulator_freep) Simulator *simulator = NULL;
        _cleanup_(disruption_scene_freep) DisruptionScene *s = NULL;
        _cleanup_strv_free_ char **notes = strv_copy(unknown);
        int r;

        r = simulator_new(snapshot, &simulator);
        if (r >= 0)
                r = disruption_scene_new(snapshot, simulator, &options, &s);
        if (r == -ENODATA) {
                STRV_FOREACH(i, unknown)
                        ctl_complain("%s", *i);
                return ctl_complain("without nodes and pods nothing can be planned"), EXIT_FAILURE;
        }
        if (r >= 0)
                r = notes ? add_left_out(simulator, &notes) : -ENOMEM;
        if (r < 0)
                return ctl_complain("out of memory"), EXIT_FAILURE;
        STRV_FOREACH(with, ctl->options->with) {
                r = add_nodes(s, *with);
                if (r < 0)
                        return r == -ENOMEM ? (ctl_complain("out of memory"), EXIT_FAILURE) : EXIT_FAILURE;
        }
        if (ctl->options->without)
                return run_without(ctl, s, notes);
        if (ctl->options->all_drainable)
                return run_all_drainable(ctl, s, notes);
        if (ctl->options->upgrade)
                return run_upgrade(ctl, s, notes);
        return run_methods(ctl, s, notes);
}

/* -- where it comes from -------------------------------------------------------------------------------- */

static int check_options(const Ctl *ctl) {
        const CtlOptions *o = ctl->options;

        if (!!o->without + o->all_drainable + !!o->upgrade > 1)
                return ctl_complain("--without, --all-drainable and --upgrade ask for different things: one at a time");
        if (o->complete && strv_length(o->snapshots) == 0)
                return ctl_complain("--complete is about what files do not have: it stands with --snapshot");
        if (o->upgrade && ctl->output == CTL_OUTPUT_HTML)
                return ctl_complain("-o html shows the plan, --without and --all-drainable; of --upgrade it is one of: table, json, yaml");
        return 0;
}

static int plan_offline(Ctl *ctl) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_(snapshot_freep) Snapshot *snapshot = NULL;
        _cleanup_strv_free_ char **notes = NULL;
        int r;

        r = check_options(ctl);
        if (r < 0 || strv_length(ctl->options->snapshots) == 0)
                return r;
        r = intern_pool_new(&pool);
        if (r >= 0)
                r = snapshot_input(ctl->options->snapshots,
                                  &(SnapshotInputOptions){ .now_usec = ctl->started_wall_usec, .is_complete = ctl->options->complete },
                                  pool, &snapshot, &notes);
        ctl->status = r < 0 ? EXIT_FAILURE : plan_of(ctl, snapshot, notes);
        return 1;
}

static void on_fetched(const char *message, Snapshot *snapshot, char *const *unknown, void *userdata) {
        PlanVerb *v = userdata;
        int status = EXIT_FAILURE;

        if (message)
                ctl_complain("%s", message);
        else
                status = plan_of(v->ctl, snapshot, unknown);
        snapshot_free(snapshot);
        ctl_finish(v->ctl, status);
}

static int plan_start(Ctl *ctl, void **ret) {
        PlanVerb *v = new0(PlanVerb, 1);

        if (!v)
                return -ENOMEM;
        *ret = v;
        v->ctl = ctl;
        return snapshot_fetch_new(ctl->client, &(SnapshotFetchOptions){ .progress = ctl_shows_progress() }, on_fetched, v, &v->fetch);
}

static const char *const plan_options[] = { "snapshot", "complete", "without", "with", "all-drainable", "upgrade", NULL };

const CtlVerb verb_plan = {
        .name = "plan",
        .summary = "Which nodes would be removed that nobody has asked to be removed, and what keeps the others",
        .text = "Goes by spec.disruption, spec.template and spec.offerings of NodePools (vesper(7), PLANNING): which nodes expiration, drift, emptiness and consolidation "
                "would remove now, in which order and why, where their pods would find a place by kube-scheduler's rules, in how many waves PodDisruptionBudgets "
                "let them go; and of every other node what keeps it, as a code and a sentence. Changes nothing: this release carries no such removal out.\n\n"
                "With --without it says whether these nodes could go together, whoever's they are; with --all-drainable which nodes could; with --upgrade how "
                "long it takes to replace each node of a pool, and what would hold that up. --with adds nodes first that do not exist.\n\n"
                "Needs: list of nodes, pods, PodDisruptionBudgets, PersistentVolumeClaims and PersistentVolumes, storageclasses, csinodes, namespaces, nodepools, "
                "nodeclaims and nodedisruptionbudgets; ClusterRole vesper-viewer has it. Of what may not be read it says so, and keeps what depends on it. With "
                "--snapshot it needs no cluster: a file of 'vesperctl snapshot', or what 'kubectl get nodes,pods,poddisruptionbudgets,persistentvolumeclaims,"
                "persistentvolumes,storageclasses,csinodes,nodepools,... -A -o json' prints. The same snapshot gives the same plan, to the last byte.\n\n"
                "-o html makes one page for a browser, that needs nothing beside itself: how full each node is before and after, where pods go, and why "
                "the others stay. Of a large cluster it says what it leaves out; -o json has everything.",
        .example = "vesperctl plan --without worker-3,worker-4",
        .statuses = "3 they could not go, or something would hold the upgrade up",
        .outputs = CTL_OUTPUTS_DATA | 1u << CTL_OUTPUT_HTML,
        .options = plan_options,
        .offline = plan_offline,
        .start = plan_start,
        .free = plan_free,
};
