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
