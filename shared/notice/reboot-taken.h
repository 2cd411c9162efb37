/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * reboot-taken.c: the annotation vesper.sh/reboot-taken of a Node (marks.h), in its only parser and writer: ids of announced
 * reboots that were taken early. An event whose id stands there is never the cause of another early reboot: where the first
 * one has not ended it, it is left to its own time. Pure.
 */

#include <stdbool.h>

#define REBOOT_TAKEN_MAX 16u
#define REBOOT_TAKEN_BYTES_MAX 8192u

/* text: of the annotation; NULL: there is none. One that is too long to be read has every id: nothing more is taken early. */
bool reboot_taken_has(const char *text, const char *id);

/* May this id be forgotten: does nothing announce it any more? */
typedef bool (*reboot_taken_over_t)(const char *id, void *userdata);
/* The annotation with that id as the last one; where there are REBOOT_TAKEN_MAX already, one that is over makes room. *ret is
 * the caller's. -ENOSPC: all of them still stand, or the annotation cannot be read; -EINVAL: no id; -ENOMEM. */
int reboot_taken_add(const char *text, const char *id, reboot_taken_over_t is_over, void *userdata, char **ret);
