/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One YAML document as a small tree, built from libyaml's events and bounded: depth, aliases, tags and
 * duplicate keys are refused, so that a few bytes can never become many. Every node knows its line. Texts
 * are erased when the tree is freed: kubeconfigs hold secrets. Private to kube/.
 */

#include <stdbool.h>
#include <stddef.h>

#include "macro.h"

#define YAML_DEPTH_MAX 32u
#define YAML_KEYS_MAX 1000u /* in one map: they are searched one by one */

typedef enum YamlType { YAML_SCALAR, YAML_LIST, YAML_MAP } YamlType;

typedef struct YamlTree YamlTree;
struct YamlTree {
        YamlType type;
        size_t line; /* from 1 */
        char *key;   /* inside a map */
        char *text;  /* of a scalar */
        size_t text_size;
        bool plain;                    /* a scalar without quotes: null and true may be meant */
        YamlTree *first, *last, *next; /* children of a list or map; siblings */
        size_t n_children;
};

/* -EBADMSG with a sentence without the file's name and the line it is about; -ENOMEM. An empty document is
 * an empty map. */
int yaml_tree_parse(const char *data, size_t size, YamlTree **ret, size_t *reterr_line,
                    char **reterr_message);
YamlTree *yaml_tree_free(YamlTree *t);
DEFINE_FREEP(YamlTree, yaml_tree_free);

/* NULL if `t` is NULL or no map, if there is no such key, or if its value is null. */
const YamlTree *yaml_tree_get(const YamlTree *t, const char *key);
bool yaml_tree_is_null(const YamlTree *t);
