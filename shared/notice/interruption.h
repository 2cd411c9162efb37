/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * interruption.c: the annotation vesper.sh/interruption of a Node (marks.h), in its only parser and writer. The node's
 * agent writes it and continues by it after a restart; the coordinator takes T from it and leaves the drain to an agent
 * that moves; vesperctl shows it. It is the node's own word, and bounded as such. On a NodeClaim it is the coordinator's:
 * what its interruption queue told. On a Node without NodeClaim the queue's word is an annotation of its own, vesper.sh/heard.
 */

#include "kube-kinds.h"
#include "notice.h"

/* A person un-cordoned the node: this notice is not acted upon again. */
#define INTERRUPTION_RELEASED "Released"

typedef struct Interruption {
        Notice *notice;    /* never NULL */
        char *phase;       /* "Planned", "Cordoned", "Draining", "Volumes", "Drained", "Ending", "Cancelled", "Released"; "": not said */
        int64_t pods_left; /* -1: not said */
        char *boot_id;     /* of the boot in which it was written; "": not said */
} Interruption;

/* 0; -EBADMSG: it cannot be read, as if there were none; -ENOMEM. On failure *ret is empty. */
int interruption_parse(const char *text, Interruption *ret);
/* That of the Node, if it is of the boot that its kubelet reports: a machine that has been started anew is not bound by
 * what was announced to it before. -ENODATA: there is none; else as above. */
int interruption_of_node(const KubeNode *n, Interruption *ret);
/* What the coordinator's queue has heard of the machine of this claim: a Notice alone, without phase and boot id, for which
 * the claim is deleted; it is never taken back. -ENODATA: nothing; else as above. */
int interruption_of_claim(const KubeNodeClaim *c, Interruption *ret);
/* What the coordinator's queue has heard of the machine of this Node (ANNOTATION_HEARD), of whatever boot. -ENODATA: nothing; else
 * as above. */
int interruption_heard_of_node(const KubeNode *n, Interruption *ret);
/* It was written in another boot than the one that the Node's kubelet reports. */
bool interruption_is_of_other_boot(const Interruption *i, const KubeNode *n);
/* NULL on ENOMEM. */
char *interruption_format(const Notice *n, const char *phase, size_t pods_left, const char *boot_id);
char *interruption_format_of_claim(const Notice *n); /* a Notice alone: interruption_of_claim() */
void interruption_done(Interruption *i);

/* All is there that an agent of this version writes. */
bool interruption_is_complete(const Interruption *i);
/* Withdrawn, or overruled by a person: nothing goes on. */
bool interruption_is_over(const Interruption *i);
bool interruption_is_overruled(const Interruption *i);
/* Its drain is under way: begun, and neither done nor over. */
bool interruption_is_draining(const Interruption *i);
/* Its drain has ended: nothing was left, or its time was over. */
bool interruption_has_drained(const Interruption *i);
