/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "config-internal.h"
#include "string-util.h"

/* Of a value, what a line of a log shows. */
#define SHOWN_MAX_BYTES 200u

/* "[Log] Level=debug (was info)" behind what is there. */
static int describe_change(StrBuf *b, const ConfigItem *item, const char *before, const char *after) {
        _cleanup_free_ char *shown_before = str_sanitize(before, SHOWN_MAX_BYTES);
        _cleanup_free_ char *shown_after = str_sanitize(after, SHOWN_MAX_BYTES);

        if (!shown_before || !shown_after)
                return -ENOMEM;
        strbuf_addf(b, "%s[%s] %s=", b->size > 0 ? ", " : "", item->section, item->key);
        if (item->flags & CONFIG_SECRET)
                strbuf_add(b, "(hidden)");
        else
                strbuf_addf(b, "%s (was %s)", shown_after, isempty(shown_before) ? "unset" : shown_before);
        return b->failed ? -ENOMEM : 0;
}

/* 1: the two differ, and it has been said; 0: they do not. */
static int compare(const ConfigItem *item, const void *config, const void *fresh, StrBuf *taken,
                   StrBuf *left) {
        _cleanup_free_ char *before = item->format(item, (const char *) config + item->offset);
        _cleanup_free_ char *after = item->format(item, (const char *) fresh + item->offset);
        int r;

        if (!before || !after)
                return -ENOMEM;
        if (streq(before, after))
                return 0;
        r = describe_change(item->flags & CONFIG_RELOADABLE ? taken : left, item, before, after);
        return r < 0 ? r : 1;
}

static void swap_values(const ConfigItem *item, void *a, void *b) {
        char *x = (char *) a + item->offset, *y = (char *) b + item->offset;

        for (size_t i = 0; i < config_value_size(item); i++) {
                char kept = x[i];

                x[i] = y[i];
                y[i] = kept;
        }
}

int config_take(const ConfigItem *table, size_t n_table, void *config, void *fresh, char **ret_taken,
                char **ret_left) {
        _cleanup_strbuf_ StrBuf taken = { 0 }, left = { 0 };

        assert(config && fresh && ret_taken && ret_left);
        for (size_t i = 0; i < n_table; i++) {
                int r = compare(table + i, config, fresh, &taken, &left);

                if (r < 0)
                        return r;
        }

        /* From here on nothing can fail. Values that are equal may change places, too. */
        for (size_t i = 0; i < n_table; i++)
                if (table[i].flags & CONFIG_RELOADABLE)
                        swap_values(table + i, config, fresh);
        *ret_taken = taken.size > 0 ? strbuf_steal(&taken) : NULL;
        *ret_left = left.size > 0 ? strbuf_steal(&left) : NULL;
        return 0;
}
