/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "ctl-say.h"
#include "ctl-verbs.h"
#include "explain-fetch.h"
#include "explain-outlook.h"
#include "explain-told.h"
#include "snapshot-fetch.h"
#include "string-util.h"
#include "strv.h"

#define EXIT_HELD 3

typedef struct ExplainVerb {
        Ctl *ctl;
        ExplainFetch *fetch;
        char *node;               /* NULL: there is none */
        SnapshotFetch *snapshot;  /* with --simulate: once the causes are known */
        char *json, *text;        /* of the causes: what is printed first */
        int status;
} ExplainVerb;

static void explain_free(void *state) {
        ExplainVerb *v = state;

        explain_fetch_free(v->fetch);
        snapshot_fetch_free(v->snapshot);
        free(v->node);
        free(v->json);
        free(v->text);
        free(v);
}

/* The causes, then what the coordinator says of the node's going though nobody asked. */
static void write_facts(ExplainVerb *v, const ExplainFacts *facts, const ExplainCauses *causes) {
        bool is_text = v->ctl->output == CTL_OUTPUT_TABLE;
        _cleanup_free_ char *held = is_text ? explain_text(facts, causes) : explain_json(facts, causes),
                            *told = is_text ? explain_told_text(facts) : explain_told_json(facts);

        if (!held || !told)
                return;
        if (is_text)
                v->text = strf("%s%s", held, told);
        else
                v->json = strf("%.*s,\"outlook\":%s}", (int) strlen(held) - 1, held, told);
}

/* The exit status. */
static int find_causes(ExplainVerb *v, const ExplainFacts *facts) {
        _cleanup_(explain_causes_done) ExplainCauses causes = {};
        int r;

        r = explain_make(facts, &causes);
        if (r == -ENOENT)
                ctl_complain(facts->claim_name ? "there is no NodeClaim '%s'%s" : "there is no node '%s', and no NodeClaim of it%s",
                             facts->claim_name ?: facts->node_name, facts->unknown ? " that you may read" : "");
        if (r < 0)
                return EXIT_FAILURE;
        write_facts(v, facts, &causes);
        if (!v->text && !v->json)
                return EXIT_FAILURE;
        return explain_causes_first(&causes) ? EXIT_HELD : EXIT_SUCCESS;
}

/* The causes, with what a simulation says behind them; either text may be NULL. */
static int print_all(const ExplainVerb *v, const char *outlook_json, const char *outlook_text) {
        _cleanup_free_ char *json = NULL, *text = NULL;

        if (v->text)
                text = strf("%s%s", v->text, strempty(outlook_text));
        else {
                json = outlook_json ? strf("%.*s,\"voluntary\":%s}", (int) strlen(v->json) - 1, v->json, outlook_json) : strdup(v->json);
                text = json ? ctl_format_json(json, v->ctl->output == CTL_OUTPUT_YAML) : NULL;
        }
        if (!text || fputs(text, stdout) < 0 || fflush(stdout) < 0)
                return EXIT_FAILURE;
        return v->status;
}

/* -- with --simulate ------------------------------------------------------------------------------------ */

static int print_outlook(const ExplainVerb *v, const Snapshot *snapshot, char *const *unknown) {
        const SceneOptions options = { .lease_ns = v->ctl->options->lease_ns };
        _cleanup_(simulator_freep) Simulator *simulator = NULL;
        _cleanup_(disruption_scene_freep) DisruptionScene *s = NULL;
        _cleanup_(node_outlook_done) NodeOutlook o = {};
        _cleanup_free_ char *json = NULL, *text = NULL;
        int r;

        r = simulator_new(snapshot, &simulator);
        if (r >= 0)
                r = disruption_scene_new(snapshot, simulator, &options, &s);
        if (r >= 0)
                r = node_outlook_make(s, v->node, &o);
        if (r == -ENOENT)
                ctl_complain("nothing is simulated: there is no node '%s' (any more)", v->node);
        else if (r == -ENODATA) {
                STRV_FOREACH(i, unknown)
                        ctl_complain("%s", *i);
                ctl_complain("nothing is simulated: this needs the lists of nodes and of pods");
        } else if (r < 0)
                return EXIT_FAILURE;
        else {
                json = v->json ? node_outlook_json(&o, unknown) : NULL;
                text = v->text ? node_outlook_text(&o, unknown) : NULL;
                if (!json && !text)
                        return EXIT_FAILURE;
        }
        return print_all(v, json, text);
}

static void on_snapshot(const char *message, Snapshot *snapshot, char *const *unknown, void *userdata) {
        ExplainVerb *v = userdata;
        int status;

        if (message) {
                ctl_complain("nothing is simulated: %s", message);
                status = print_all(v, NULL, NULL);
        } else
                status = print_outlook(v, snapshot, unknown);
        snapshot_free(snapshot);
        ctl_finish(v->ctl, status);
}

static void on_fetched(const char *message, ExplainFacts *facts, void *userdata) {
        ExplainVerb *v = userdata;

        v->status = EXIT_FAILURE;
        if (message)
                ctl_complain("%s", message);
        else
                v->status = find_causes(v, facts);
        if (!message && facts->node_name) {
                v->node = strdup(facts->node_name);
                v->status = v->node ? v->status : EXIT_FAILURE;
        }
        explain_facts_done(facts);
        if (v->status != EXIT_FAILURE && v->ctl->options->simulate && !v->node)
                ctl_complain("nothing is simulated: the NodeClaim has no Node");
        else if (v->status != EXIT_FAILURE && v->ctl->options->simulate) {
                if (snapshot_fetch_new(v->ctl->client, &(SnapshotFetchOptions){ .progress = ctl_shows_progress() }, on_snapshot, v,
                                       &v->snapshot) >= 0)
                        return;
                v->status = EXIT_FAILURE;
        }
        ctl_finish(v->ctl, v->status == EXIT_FAILURE ? EXIT_FAILURE : print_all(v, NULL, NULL));
}

static int explain_start(Ctl *ctl, void **ret) {
        ExplainVerb *v = new0(ExplainVerb, 1);

        if (!v)
                return -ENOMEM;
        *ret = v;
        v->ctl = ctl;
        return explain_fetch_new(ctl->client, ctl->args[0], ctl->options->lease_ns, ctl->options->lease_name, on_fetched, v, &v->fetch);
}

static const char *const explain_options[] = { "simulate", NULL };

const CtlVerb verb_explain = {
        .name = "explain",
        .arguments = "NODE",
        .takes_claims = true,
        .summary = "What holds this node now, since when, and what would free it",
        .text = "Names each cause, the first that has to be solved first: the object, its figures, since when, and a command line that would change it; what that breaks is said with it. "
                "Of a node that is not being removed it says which NodePool manages it, or why none does, and what would hold its removal; "
                "of one whose machine gets a successor, which NodeClaim takes its place and how far that is; "
                "of one that the coordinator drains for its interruption queue though no NodePool selects it, what holds that drain. Changes nothing, and asks no coordinator. "
                "nodeclaim/NAME explains a NodeClaim by its own name, even one whose machine the cloud has not launched yet; a plain NAME is a Node, else a NodeClaim. "
                "Needs: get of the node; list of pods, PodDisruptionBudgets, nodepools and nodedisruptionbudgets, get and list of nodeclaims, get of the Lease and its namespace, "
                "of the webhook's configuration and Service, list of volumeattachments. What may not be read is named at the end, and the rest is told.\n\n"
                "With --simulate it reads what 'vesperctl plan' reads, and says, too, whether the node by itself would go if nobody asked for it, or else each thing that keeps it, "
                "by method (which others go before it says 'vesperctl plan'); and of each of its pods how many nodes would take it, which comes nearest to that, and what it lacks.",
        .example = "vesperctl explain worker-7",
        .statuses = "3 something holds the node",
        .min_args = 1,
        .max_args = 1,
        .outputs = CTL_OUTPUTS_DATA,
        .options = explain_options,
        .start = explain_start,
        .free = explain_free,
};
