/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * notice/: where the end of a machine is announced. One source per file behind NoticeSource; all give a
 * Notice, or say that there is positively none, or that they do not know. Only "positively none" may ever
 * cancel.
 */

#include "env.h"
#include "notice.h"

typedef enum NoticePollResult {
        NOTICE_POLL_NOTICE,
        NOTICE_POLL_NONE,    /* positively: asked the right instance, and there is no notice */
        NOTICE_POLL_UNKNOWN, /* time-out, 401, 403, 429, 5xx, garbage: changes nothing */
} NoticePollResult;

/* notice: borrowed; NULL unless NOTICE_POLL_NOTICE. why: for people, on UNKNOWN. answered_usec: loop_now()
 * when the answer that decided arrived. */
typedef void (*notice_poll_t)(NoticePollResult look, const Notice *notice, const char *why, usec_t answered_usec,
                              void *userdata);

typedef struct NoticeSource NoticeSource;

typedef struct NoticeSourceOps {
        const char *name;
        void (*start)(NoticeSource *s); /* begins to look; each look is reported */
        void (*kick)(NoticeSource *s);  /* the network came back: look now if backing off */
        /* May "none" cancel this notice now? Pure in (notice, time). */
        bool (*may_cancel)(const NoticeSource *s, const Notice *n, usec_t now_usec);
        void (*free)(NoticeSource *s);
} NoticeSourceOps;

struct NoticeSource {
        const NoticeSourceOps *ops;
        notice_poll_t on_poll;
        void *userdata;
};

NoticeSource *notice_source_free(NoticeSource *s);
DEFINE_FREEP(NoticeSource, notice_source_free);
