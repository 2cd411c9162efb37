/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Keys of pods' labels that rules and PodDisruptionBudgets ask for: pods that differ in others only are one kind. Most rules are about pods of
 * their own namespace, and what these ask for tells no pods of another apart: else one pod of a tenant could make each pod of every namespace a
 * kind of its own.
 */

#include "hashmap.h"
#include "selector.h"

typedef struct ReadLabels ReadLabels;

int read_labels_new(ReadLabels **ret);
ReadLabels *read_labels_free(ReadLabels *l);
DEFINE_FREEP(ReadLabels, read_labels_free);

/* Of a rule about pods of that namespace; ns NULL: of any. -ENOMEM. */
int read_labels_gather(ReadLabels *l, const char *ns, const Selector *selector);
int read_labels_add(ReadLabels *l, const char *ns, const char *key); /* ns not NULL */
/* Keys that are asked for of pods of that namespace alone; NULL: none are. Borrowed until others are added. */
const Hashmap *read_labels_own(const ReadLabels *l, const char *ns);
/* Does anybody ask for it, of pods of the namespace whose own these are? */
bool read_labels_has(const ReadLabels *l, const Hashmap *own, const char *key);
/* Would read_labels_gather() add nothing? */
bool read_labels_has_all(const ReadLabels *l, const char *ns, const Selector *selector);
/* Each grows with what is added that was not asked for: of any namespace, or of all namespaces. */
size_t read_labels_size(const ReadLabels *l);
size_t read_labels_size_of_all(const ReadLabels *l);
