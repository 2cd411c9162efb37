/* SPDX-License-Identifier: Apache-2.0 */
#include "score-index.h"

#include "alloc-util.h"

int score_index_init(ScoreIndex *x, size_t n_nodes) {
        *x = (ScoreIndex){ .n_blocks = n_nodes / BLOCK_NODES + 1 };
        x->n_words = x->n_blocks / 64 + 1;
        /* Of scores that no node ever has nothing is touched, and so no memory is taken. */
        x->nodes = new0(uint64_t, (SCORE_MAX + 1) * x->n_blocks);
        x->blocks = new0(uint64_t, (SCORE_MAX + 1) * x->n_words);
        return x->nodes && x->blocks ? 0 : -ENOMEM;
}

void score_index_done(ScoreIndex *x) {
        free(x->nodes);
        free(x->blocks);
        *x = (ScoreIndex){};
}

static void add(ScoreIndex *x, uint32_t node, uint32_t score) {
        size_t block = node / BLOCK_NODES;

        x->nodes[score * x->n_blocks + block] |= UINT64_C(1) << (node % BLOCK_NODES);
        x->blocks[score * x->n_words + block / 64] |= UINT64_C(1) << (block % 64);
        x->scores[score / 64] |= UINT64_C(1) << (score % 64);
}

static void drop(ScoreIndex *x, uint32_t node, uint32_t score) {
        size_t block = node / BLOCK_NODES;
        uint64_t *nodes = x->nodes + score * x->n_blocks + block, *blocks = x->blocks + score * x->n_words;

        *nodes &= ~(UINT64_C(1) << (node % BLOCK_NODES));
        if (*nodes != 0)
                return;
        blocks[block / 64] &= ~(UINT64_C(1) << (block % 64));
        for (size_t i = 0; i < x->n_words; i++)
                if (blocks[i] != 0)
                        return;
        x->scores[score / 64] &= ~(UINT64_C(1) << (score % 64));
}

void score_index_move(ScoreIndex *x, uint32_t node, int32_t from, int32_t to) {
        assert(from <= SCORE_MAX && to <= SCORE_MAX);
        if (from == to)
                return;
        if (from != SCORE_NONE)
                drop(x, node, (uint32_t) from);
        if (to != SCORE_NONE)
                add(x, node, (uint32_t) to);
}

int32_t score_index_next(const ScoreIndex *x, int32_t below) {
        int32_t word = below / 64;
        uint64_t scores = below <= 0 ? 0 : x->scores[word] & ((UINT64_C(1) << (below % 64)) - 1);

        while (scores == 0) {
                if (--word < 0)
                        return SCORE_NONE;
                scores = x->scores[word];
        }
        return word * 64 + 63 - __builtin_clzll(scores);
}
