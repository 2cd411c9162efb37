/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>

#include "config.h"
#include "string-util.h"

static int dump_item(FILE *f, const ConfigItem *item, const void *place) {
        _cleanup_free_ char *value = item->format(item, place);

        if (!value)
                return -ENOMEM;

        fprintf(f, "# %s", item->help);
        if (!isempty(item->default_value) && !(item->flags & CONFIG_SECRET))
                fprintf(f, " Default: %s", item->default_value);
        fputc('\n', f);

        if (item->flags & CONFIG_SECRET && value[0] != 0)
                fprintf(f, "# %s=(set)\n", item->key);
        else {
                /* A list adds to its default unless it is emptied first. */
                if (item->parse == config_parse_strv && value[0] != 0)
                        fprintf(f, "%s=\n", item->key);
                fprintf(f, "%s=%s\n", item->key, value);
        }
        return 0;
}

int config_dump(FILE *f, const ConfigItem *table, size_t n_table, const void *target) {
        const char *section = NULL;

        assert(f);
        for (size_t i = 0; i < n_table; i++) {
                int r;

                if (!section || !streq(section, table[i].section)) {
                        fprintf(f, "%s[%s]\n", section ? "\n" : "", table[i].section);
                        section = table[i].section;
                }
                r = dump_item(f, table + i, (const char *) target + table[i].offset);
                if (r < 0)
                        return r;
        }
        if (fflush(f) != 0)
                return -errno;
        return ferror(f) ? -EIO : 0;
}
