/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Nodes by their score (how free they are), so that the freest come first without a look at the others: of each score the nodes that
 * have it, as bits, a word for each block of 64 nodes; and, for few of them have any, which of these words are not 0.
 */

#include <stddef.h>
#include <stdint.h>

/* Nodes whose bits are one word. */
#define BLOCK_NODES 64u
/* Permille of CPU and of memory together. */
#define SCORE_MAX 2000
#define SCORE_NONE (-1) /* the node takes nothing: it is not in the index */

typedef struct ScoreIndex {
        size_t n_blocks, n_words; /* words of `nodes` and of `blocks` for each score */
        uint64_t *nodes;          /* [score * n_blocks + block]: a bit per node */
        uint64_t *blocks;         /* [score * n_words + block / 64]: a bit per word of `nodes` that is not 0 */
        uint64_t scores[SCORE_MAX / 64 + 1]; /* a bit per score that a node has */
} ScoreIndex;

int score_index_init(ScoreIndex *x, size_t n_nodes); /* -ENOMEM */
void score_index_done(ScoreIndex *x);
/* Either may be SCORE_NONE. */
void score_index_move(ScoreIndex *x, uint32_t node, int32_t from, int32_t to);
/* The highest score below `below` that a node has; SCORE_NONE: none. */
int32_t score_index_next(const ScoreIndex *x, int32_t below);
