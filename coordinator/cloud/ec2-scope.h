/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether "EC2 does not show it" means that it is gone. A wrong region or account shows nothing at all, and
 * must never look like an empty one, so not seeing counts only for who has proved to
 * look at the right place: by having seen an instance of ours there with the same credentials. Holds the
 * evidence; decides nothing about anything sent.
 */

#include "ec2-answer.h"
#include "hashmap.h"

#define EC2_SCOPE_SEEN_MAX 4096u

typedef struct Ec2Scope {
        Hashmap *seen;   /* ids of instances that were asked about and shown; the oldest leaves first */
        char *principal; /* to whom they were shown; NULL: nobody yet */
} Ec2Scope;

int ec2_scope_init(Ec2Scope *s);
void ec2_scope_done(Ec2Scope *s); /* a zeroed one is fine */

/* Of the answer about to be noted. Another one than before: all evidence is forgotten. */
void ec2_scope_set_principal(Ec2Scope *s, const char *principal);
/* Shown as answer to a call that only works in the right account and region. */
void ec2_scope_note(Ec2Scope *s, const char *instance_id);
/* Shown by describe: counts only if its zone is told, lies in our region and is the providerID's. */
void ec2_scope_note_described(Ec2Scope *s, const char *region, const Ec2ProviderId *id,
                              const Ec2Instance *shown);

/* For an instance whose providerID was found to lie in our region, or to name no zone. Without a zone only
 * an earlier sight of this very instance says that it belongs here. */
bool ec2_scope_is_proved(const Ec2Scope *s, const Ec2ProviderId *id);
/* For a person: what would prove it. NULL on ENOMEM. */
char *ec2_scope_unproved_message(const char *region, const Ec2ProviderId *id);

/* *ret_message: how the zone that describe shows contradicts the providerID or the region; NULL: it does
 * not. -ENOMEM. */
int ec2_scope_contradiction(const char *region, const Ec2ProviderId *id, const Ec2Instance *shown,
                            char **ret_message);
