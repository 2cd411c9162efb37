/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "alloc-util.h"
#include "ctl-verbs.h"
#include "snapshot-anonymize.h"
#include "snapshot-fetch.h"
#include "snapshot-file.h"
#include "strv.h"

typedef struct SnapshotVerb {
        Ctl *ctl;
        SnapshotFetch *fetch;
} SnapshotVerb;

static void snapshot_verb_free(void *state) {
        SnapshotVerb *v = state;

        snapshot_fetch_free(v->fetch);
        free(v);
}

static int print_snapshot(const Ctl *ctl, const Snapshot *snapshot) {
        _cleanup_(snapshot_freep) Snapshot *anonymous = NULL;
        _cleanup_free_ char *text = NULL;
        size_t size;
        int r = ctl->options->anonymize ? snapshot_anonymize(snapshot, &anonymous) : 0;

        if (r >= 0)
                r = snapshot_save(anonymous ?: snapshot, &text, &size);
        if (r < 0)
                return ctl_complain("out of memory"), EXIT_FAILURE;
        if (fwrite(text, 1, size, stdout) != size || fflush(stdout) < 0)
                return ctl_complain("the snapshot could not be written: %m"), EXIT_FAILURE;
        return EXIT_SUCCESS;
}

static void on_fetched(const char *message, Snapshot *snapshot, char *const *unknown, void *userdata) {
        SnapshotVerb *v = userdata;
        int status = EXIT_FAILURE;

        STRV_FOREACH(i, unknown)
                ctl_complain("%s", *i);
        if (message)
                ctl_complain("%s", message);
        else if (!snapshot->is_known[SNAPSHOT_NODES])
                ctl_complain("without nodes there is no snapshot: nothing is printed");
        else
                status = print_snapshot(v->ctl, snapshot);
        snapshot_free(snapshot);
        ctl_finish(v->ctl, status);
}

static int snapshot_start(Ctl *ctl, void **ret) {
        SnapshotVerb *v = new0(SnapshotVerb, 1);

        if (!v)
                return -ENOMEM;
        *ret = v;
        v->ctl = ctl;
        return snapshot_fetch_new(ctl->client, &(SnapshotFetchOptions){ .progress = ctl_shows_progress() }, on_fetched, v, &v->fetch);
}

static const char *const snapshot_options[] = { "anonymize", NULL };

const CtlVerb verb_snapshot = {
        .name = "snapshot",
        .summary = "Prints the objects that plans are made of, for a file",
        .text = "Reads what 'vesperctl plan' reads, and prints it as lines of JSON, of which 'vesperctl plan --snapshot FILE' makes the same plan whenever and wherever "
                "it is asked. No environment, arguments or images of containers are in it, and of annotations only those that say something about removals. "
                "Its first line has a fingerprint: equal ones say the same of a cluster, whenever they were taken. "
                "With --anonymize made-up names stand for those of nodes, pods, namespaces and so on, everywhere the same, so that it can be shown to others. "
                "What may not be read is named on standard error, and unknown to whoever reads the snapshot; without nodes there is none. Needs what 'vesperctl plan' needs.",
        .example = "vesperctl snapshot > cluster.json",
        .outputs = CTL_OUTPUTS_TEXT,
        .options = snapshot_options,
        .start = snapshot_start,
        .free = snapshot_verb_free,
};
