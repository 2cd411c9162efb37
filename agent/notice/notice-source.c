/* SPDX-License-Identifier: Apache-2.0 */
#include "notice-source.h"

NoticeSource *notice_source_free(NoticeSource *s) {
        if (s)
                s->ops->free(s);
        return NULL;
}
