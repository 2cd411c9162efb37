/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Good objects of each kind that vesper reads, with every field that it reads: what fuzz-draw.h bends. */

#include "fuzz-draw.h"
#include "kube-scheduling.h"

extern const char fuzz_node[], fuzz_pod[], fuzz_pdb[], fuzz_lease[], fuzz_volume_attachment[], fuzz_pvc[],
        fuzz_node_pool[], fuzz_node_claim[], fuzz_node_budget[], fuzz_secret[], fuzz_webhooks[];
/* As kube-scheduler looks at them. */
extern const char fuzz_scheduled_pod[], fuzz_scheduled_node[], fuzz_volume[], fuzz_scheduled_claim[],
        fuzz_storage_class[], fuzz_csi_node[], fuzz_namespace[];
/* A Node whose request for a reboot is granted. */
extern const char fuzz_reboot_node[];

/* 2027-01-15T08:00:00Z, in whose neighbourhood all of them live. */
#define FUZZ_NOW (UINT64_C(1800000000) * USEC_PER_SEC)

/* The template bent and decoded; NULL if that was refused. */
KubeObject *fuzz_draw_object(Draw *d, const KubeKind *kind, const char *template, InternPool *pool);
/* Decodes a text. NULL: it was refused. */
KubeObject *fuzz_object(const KubeKind *kind, const char *text, size_t size, InternPool *pool);
/* The object after this merge patch (RFC 7386) of it. Asserts that the patch is JSON. NULL: refused. */
KubeObject *fuzz_patched(const KubeObject *o, const char *object_text, const char *patch, char **ret_text);
