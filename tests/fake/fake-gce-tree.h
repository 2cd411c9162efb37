/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a VM's metadata says, as a tree: of fake-gce-metadata.c, which serves it. Paths are below
 * /computeMetadata/v1/. */

#include "fake-gce-metadata.h"
#include "fake-json.h"

#define FAKE_GCE_STOP_IDLE "UNSPECIFIED"

typedef struct FakeGceTree {
        char *name, *told_name; /* told_name NULL: it is not there */
        char *id, *project_id, *project_number, *zone, *machine_type, *created_by, *cluster_name;
        bool spot, terminates, graceful_shutdown, no_service_account;

        bool preempted;
        char *maintenance;
        cJSON *upcoming; /* NULL: as upcoming_none says */
        FakeGceUpcoming upcoming_none;
        char *stop_state, *stop_requested;
        unsigned stop_max_sec;
} FakeGceTree;

void fake_gce_tree_init(FakeGceTree *t, const FakeGceMetadataOptions *options);
void fake_gce_tree_done(FakeGceTree *t);

/* Objects are directories, but for upcoming-maintenance; the rest are values. */
cJSON *fake_gce_tree_build(const FakeGceTree *t);
/* NULL: not there. A value with a slash behind it is not, a directory without one is. */
const cJSON *fake_gce_tree_find(const cJSON *tree, const char *path);
bool fake_gce_tree_is_directory(const cJSON *node, const char *path);
/* "instance/service-accounts/default/token" */
bool fake_gce_tree_has_account(const FakeGceTree *t, const char *token_path);

/* Each to be freed: names, one a line; the subtree with names in camelCase; values, with their paths if
 * several. */
char *fake_gce_tree_list(const cJSON *node);
char *fake_gce_tree_json(const cJSON *node, const char *path);
char *fake_gce_tree_text(const cJSON *node, const char *path);
