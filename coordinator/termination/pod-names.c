/* SPDX-License-Identifier: Apache-2.0 */
#include "pod-names.h"

size_t pod_names_add(StrBuf *to, const DrainBlocker *b, size_t n, size_t at_most, bool held) {
        size_t n_there = 0;

        for (size_t i = 0; i < n; i++) {
                if ((held && !pod_wait_remedy(b[i].wait)) || n_there++ >= at_most)
                        continue;
                strbuf_addf(to, "%s%s/%s (%s%s%s)", n_there == 1 ? "" : ", ", b[i].ns, b[i].name, pod_wait_to_string(b[i].wait),
                            isempty(b[i].detail) ? "" : " ", strempty(b[i].detail));
        }
        if (n_there > at_most)
                strbuf_addf(to, " and %zu more", n_there - at_most);
        return n_there;
}

bool pod_names_take(const char **text, PodNamed *ret) {
        const char *ns = *text, *slash = strchr(ns, '/'), *open = slash ? strstr(slash, " (") : NULL, *end = open ? strchr(open, ')') : NULL;
        const char *reason, *space;

        if (!end)
                return false;
        reason = open + 2;
        space = memchr(reason, ' ', (size_t) (end - reason));
        *ret = (PodNamed){ .ns = ns,
                           .ns_size = (size_t) (slash - ns),
                           .name = slash + 1,
                           .name_size = (size_t) (open - slash - 1),
                           .reason = reason,
                           .reason_size = (size_t) ((space ?: end) - reason),
                           .detail = space ? space + 1 : end,
                           .detail_size = space ? (size_t) (end - space - 1) : 0 };
        if (ret->ns_size == 0 || ret->name_size == 0 || ret->reason_size == 0 || memchr(ns, ' ', (size_t) (open - ns)))
                return false;
        *text = startswith(end + 1, ", ") ?: end + 1;
        return true;
}
