/* SPDX-License-Identifier: Apache-2.0 */
#include "reboot-taken.h"

#include "string-util.h"
#include "strv.h"

static bool is_readable(const char *text) {
        return !text || strnlen(text, REBOOT_TAKEN_BYTES_MAX + 1) <= REBOOT_TAKEN_BYTES_MAX;
}

bool reboot_taken_has(const char *text, const char *id) {
        size_t size = strlen(id);

        if (!is_readable(text))
                return true;
        for (const char *at = strempty(text); *at;) {
                size_t n = strcspn(at, " ");

                if (n == size && strncmp(at, id, n) == 0)
                        return true;
                at += n;
                at += strspn(at, " ");
        }
        return false;
}

/* The first that is over is left out; false: none is. */
static bool make_room(char **ids, reboot_taken_over_t is_over, void *userdata) {
        size_t n = strv_length(ids);

        for (size_t i = 0; i < n; i++)
                if (is_over(ids[i], userdata)) {
                        free(ids[i]);
                        memmove(ids + i, ids + i + 1, (n - i) * sizeof(char *));
                        return true;
                }
        return false;
}

int reboot_taken_add(const char *text, const char *id, reboot_taken_over_t is_over, void *userdata, char **ret) {
        _cleanup_strv_free_ char **ids = NULL;
        int r;

        assert(id && is_over && ret);
        *ret = NULL;
        if (!is_readable(text))
                return -ENOSPC;
        if (isempty(id) || strchr(id, ' '))
                return -EINVAL;
        r = strv_split(strempty(text), " ", &ids);
        if (r < 0)
                return r;
        while (strv_length(ids) >= REBOOT_TAKEN_MAX)
                if (!make_room(ids, is_over, userdata))
                        return -ENOSPC;
        if (!strv_contains(ids, id)) {
                r = strv_extend(&ids, id);
                if (r < 0)
                        return r;
        }
        *ret = strv_join(ids, " ");
        if (!*ret)
                return -ENOMEM;
        if (strlen(*ret) <= REBOOT_TAKEN_BYTES_MAX)
                return 0;
        *ret = mfree(*ret);
        return -ENOSPC;
}
