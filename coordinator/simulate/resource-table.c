/* SPDX-License-Identifier: Apache-2.0 */
#include "pod-template.h"
#include "string-util.h"

static const char *const fixed[_RESOURCE_FIXED_MAX] = {
        [RESOURCE_CPU] = "cpu",
        [RESOURCE_MEMORY] = "memory",
        [RESOURCE_EPHEMERAL_STORAGE] = "ephemeral-storage",
        [RESOURCE_PODS] = "pods",
};

int resource_table_init(ResourceTable *t, InternPool *pool) {
        *t = (ResourceTable){ .pool = pool };
        for (size_t i = 0; i < _RESOURCE_FIXED_MAX; i++) {
                uint32_t number;
                int r = resource_table_number(t, fixed[i], &number);

                if (r < 0)
                        return r;
        }
        return 0;
}

void resource_table_done(ResourceTable *t) {
        for (uint32_t i = 0; i < t->n; i++)
                intern_unref(t->pool, t->names[i]);
        t->n = 0;
}

int resource_table_find(const ResourceTable *t, const char *name, uint32_t *ret) {
        for (uint32_t i = 0; i < t->n; i++)
                if (streq(t->names[i], name)) {
                        *ret = i;
                        return 0;
                }
        return -ENOENT;
}

int resource_table_number(ResourceTable *t, const char *name, uint32_t *ret) {
        if (resource_table_find(t, name, ret) >= 0)
                return 0;
        if (t->n == RESOURCES_MAX)
                return -E2BIG;
        t->names[t->n] = intern(t->pool, name);
        if (!t->names[t->n])
                return -ENOMEM;
        *ret = t->n++;
        return 0;
}
