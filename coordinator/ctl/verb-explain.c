/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "ctl-say.h"
#include "ctl-verbs.h"
#include "explain-fetch.h"

#define EXIT_HELD 3

typedef struct ExplainVerb {
        Ctl *ctl;
        ExplainFetch *fetch;
} ExplainVerb;

static void explain_free(void *state) {
        ExplainVerb *v = state;

        explain_fetch_free(v->fetch);
        free(v);
}

/* The exit status. */
static int print_causes(const Ctl *ctl, const ExplainFacts *facts) {
        _cleanup_(explain_causes_done) ExplainCauses causes = {};
        _cleanup_free_ char *json = NULL, *text = NULL;
        int r;

        r = explain_make(facts, &causes);
        if (r == -ENOENT)
                ctl_complain("there is no node '%s', and no NodeClaim of it%s", facts->node_name,
                             facts->unknown ? " that you may read" : "");
        if (r < 0)
                return EXIT_FAILURE;
        if (ctl->output == CTL_OUTPUT_TABLE)
                text = explain_text(facts, &causes);
        else {
                json = explain_json(facts, &causes);
                text = json ? ctl_format_json(json, ctl->output == CTL_OUTPUT_YAML) : NULL;
        }
        if (!text || fputs(text, stdout) < 0 || fflush(stdout) < 0)
                return EXIT_FAILURE;
        return explain_causes_first(&causes) ? EXIT_HELD : EXIT_SUCCESS;
}

static void on_fetched(const char *message, ExplainFacts *facts, void *userdata) {
        ExplainVerb *v = userdata;
        int status = EXIT_FAILURE;

        if (message)
                ctl_complain("%s", message);
        else
                status = print_causes(v->ctl, facts);
        explain_facts_done(facts);
        ctl_finish(v->ctl, status);
}

static int explain_start(Ctl *ctl, void **ret) {
        ExplainVerb *v = new0(ExplainVerb, 1);

        if (!v)
                return -ENOMEM;
        *ret = v;
        v->ctl = ctl;
        return explain_fetch_new(ctl->client, ctl->args[0], ctl->options->lease_ns, ctl->options->lease_name, on_fetched, v, &v->fetch);
}

const CtlVerb verb_explain = {
        .name = "explain",
        .arguments = "NODE",
        .summary = "What holds this node now, since when, and what would free it",
        .text = "Names each cause, the first that has to be solved first: the object, its figures, since when, and a command line that would change it; what that breaks is said with it. "
                "Of a node that is not being removed it says which NodePool manages it, or why none does, and what would hold its removal. Changes nothing, and asks no coordinator. "
                "Needs: get of the node; list of pods, PodDisruptionBudgets, nodepools and nodedisruptionbudgets, get and list of nodeclaims, get of the Lease and its namespace, "
                "of the webhook's configuration and Service, list of volumeattachments. What may not be read is named at the end, and the rest is told.",
        .example = "vesperctl explain worker-7",
        .statuses = "3 something holds the node",
        .min_args = 1,
        .max_args = 1,
        .outputs = CTL_OUTPUTS_DATA,
        .start = explain_start,
        .free = explain_free,
};
