/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "ctl-fetch.h"
#include "ctl-held.h"
#include "ctl-marks.h"
#include "ctl-verbs.h"
#include "marks.h"
#include "string-util.h"
#include "strv.h"

/*
 * let-go NODE... and let-go --all: the annotation vesper.sh/let-go on the NodeClaim, or on a Node without one. The verb first prints what
 * the brake of the interruption queue holds, and what letting go means. The time that it writes is the one at which the last notice that
 * it has printed was received: a notice that comes later stays held.
 */

typedef struct LetGoVerb {
        Ctl *ctl;
        CtlFetch *fetch;
        CtlSnapshot snapshot;
        StatusRows rows;
        size_t next; /* of the rows */
        size_t n_patched;
        bool failed;
        KubeTarget target; /* of the patch under way */
        KubeCall *call;
} LetGoVerb;

static void let_go_free(void *state) {
        LetGoVerb *v = state;

        ctl_fetch_free(v->fetch);
        kube_call_free(v->call);
        status_rows_done(&v->rows);
        ctl_snapshot_done(&v->snapshot);
        free(v);
}

static HeldNotices held_of(const StatusRow *row) {
        return held_notices(row->kube_node, row->kube_claim);
}

/* "Node worker-7"; "NodeClaim pool-1x2y", if its Node is gone. NULL on ENOMEM; free it. */
static char *name_of(const StatusRow *row) {
        return strf("%s %s", row->node ? "Node" : "NodeClaim", strempty(row->node ?: row->claim));
}

static void patch_next(LetGoVerb *v);

static void on_patched(const KubeReply *reply, void *userdata) {
        LetGoVerb *v = userdata;
        const StatusRow *row = v->rows.rows + v->next - 1;

        if (ctl_complain_of(reply, "patch", &v->target))
                v->failed = true;
        else {
                v->n_patched++;
                if (row->node)
                        ctl_print(stdout, "The held notices of Node %s count as confirmed. 'vesperctl explain %s' shows what follows.", row->node, row->node);
                else
                        ctl_print(stdout, "The held notices of NodeClaim %s count as confirmed.", strempty(row->claim));
        }
        v->call = kube_call_free(v->call);
        patch_next(v);
}

static void finish_patches(LetGoVerb *v) {
        const char *leader = v->snapshot.leader;

        if (v->n_patched > 0 && leader)
                puts(isempty(leader) ? "No coordinator leads: nothing happens until one does."
                                     : "The leading coordinator acts on that now.");
        ctl_finish(v->ctl, v->failed ? EXIT_FAILURE : EXIT_SUCCESS);
}

static void patch_next(LetGoVerb *v) {
        while (v->next < v->rows.n_rows) {
                const HeldNotices h = held_of(v->rows.rows + v->next++);
                _cleanup_free_ char *body = NULL;
                int r;

                if (held_state(&h) != HELD_HELD)
                        continue;
                body = held_let_go_patch(&h);
                v->target = (KubeTarget){ .kind = h.object->kind, .name = h.object->meta.name };
                r = !body ? -ENOMEM : kube_patch(v->ctl->client, &v->target, KUBE_PATCH_MERGE, body, NULL, on_patched, v, &v->call);
                if (r < 0)
                        ctl_give_up(v->ctl, r);
                return;
        }
        finish_patches(v);
}

/* Prints a line for each row that holds something; for a node that was named, also if it holds nothing. Returns how many a patch would let
 * go, or -ENOMEM. */
static int print_held(const LetGoVerb *v) {
        int n = 0;

        for (size_t i = 0; i < v->rows.n_rows; i++) {
                const HeldNotices h = held_of(v->rows.rows + i);
                _cleanup_free_ char *name = NULL, *line = NULL;

                n += held_state(&h) == HELD_HELD;
                if (v->ctl->options->all && held_state(&h) == HELD_NOTHING)
                        continue;
                name = name_of(v->rows.rows + i);
                line = name ? held_line(&h, name) : NULL;
                if (!line)
                        return -ENOMEM;
                ctl_print(stdout, "%s", line);
        }
        return n;
}

static void print_and_patch(LetGoVerb *v) {
        bool all = v->ctl->options->all;
        _cleanup_free_ char *names = NULL;
        int n = print_held(v);

        if (n < 0)
                ctl_give_up(v->ctl, n);
        else if (n == 0) {
                if (all)
                        puts("No notice waits to be let go.");
                ctl_finish(v->ctl, EXIT_SUCCESS);
        } else if (v->ctl->options->yes)
                patch_next(v);
        else {
                printf("The brake of the queue holds %s, because " HELD_BECAUSE ".\n", n == 1 ? "that" : "these");
                names = all ? strdup("--all") : strv_join(v->ctl->args, " ");
                ctl_complain("nothing was changed. To do it: vesperctl let-go %s --yes", strempty(names));
                ctl_give_up(v->ctl, 0);
        }
}

static void on_fetched(int error, const char *message, CtlSnapshot *snapshot, void *userdata) {
        LetGoVerb *v = userdata;

        if (message)
                ctl_complain("%s", message);
        v->fetch = ctl_fetch_free(v->fetch); /* and the message with it */
        v->snapshot = *snapshot;
        if (error < 0) {
                ctl_give_up(v->ctl, 0);
                return;
        }
        error = status_rows_make(&v->snapshot, &v->rows);
        if (error < 0)
                ctl_give_up(v->ctl, error);
        else
                print_and_patch(v);
}

static int let_go_start(Ctl *ctl, void **ret) {
        const CtlFetchOptions options = {
                .lease_ns = ctl->options->lease_ns,
                .lease_name = ctl->options->lease_name,
                .nodes = ctl->options->all ? NULL : ctl->args,
                .n_nodes = ctl->n_args,
                .claims_may_be_uninstalled = true,
        };
        LetGoVerb *v;

        if (ctl->options->all == (ctl->n_args > 0))
                return ctl_complain("let-go needs names of nodes, or --all. See 'vesperctl let-go --help'");
        v = new0(LetGoVerb, 1);
        if (!v)
                return -ENOMEM;
        *ret = v;
        v->ctl = ctl;
        return ctl_fetch_new(ctl->client, &options, on_fetched, v, &v->fetch);
}

static const char *const let_go_options[] = { "all", "yes", NULL };

const CtlVerb verb_let_go = {
        .name = "let-go",
        .arguments = "NODE...",
        .summary = "Confirm notices of the interruption queue that its brake holds",
        .text = "The coordinator's brake of the queue holds further notices if " HELD_BECAUSE ". The coordinator cordons and drains the node of a held notice "
                "as PodDisruptionBudgets allow, and does not end its machine. A held notice counts once the node's agent reports the same notice, EC2 or Auto Scaling "
                "confirms it, or this command confirms it.\n\n"
                "The command prints for each node what was announced, when it was received, and what follows from confirming it. --all takes every node. "
                "With --yes it sets the annotation vesper.sh/let-go on the NodeClaim, or on a Node without NodeClaim, to the time at which the last of the printed notices was "
                "received: notices that are received later stay held. The coordinator acts on the annotation at once. Removing the annotation undoes nothing. "
                "Needs: get of nodes and nodeclaims and list of nodeclaims (--all: list of both), get of the Lease and of the coordinator's namespace, patch of nodeclaims and nodes.",
        .example = "vesperctl let-go worker-7 --yes",
        .max_args = UINT_MAX,
        .outputs = CTL_OUTPUTS_TEXT,
        .options = let_go_options,
        .start = let_go_start,
        .free = let_go_free,
};
