/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz-draw.h"
#include "kubelet-pods.h"
#include "string-util.h"
#include "strv.h"

/* What a kubelet answers at /runningpods/: a text that stands for itself, or a good answer that is bent. A failure gives
 * no uid at all, because a list that was read in part would make the other pods look ended. */

static const char answer[] =
        "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":["
        "{\"metadata\":{\"name\":\"web-0\",\"namespace\":\"default\",\"uid\":\"0b1f7b1e-2b0c\",\"creationTimestamp\":null},"
        "\"spec\":{\"containers\":[{\"name\":\"app\",\"image\":\"example.com/app:1\",\"resources\":{}}]},\"status\":{}},"
        "{\"metadata\":{\"name\":\"web-1\",\"namespace\":\"default\",\"uid\":\"77aa\"},\"spec\":{\"containers\":null},\"status\":{}}]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Draw draw = { data, size };
        _cleanup_free_ char *text = draw_is_text(data, size) ? memdup_str(data, size) : draw_bent_json(&draw, answer);
        _cleanup_strv_free_ char **uids = NULL;
        int r;

        assert(text);
        r = kubelet_pods_parse(text, strlen(text), &uids);
        assert(r == 0 || ((r == -EBADMSG || r == -E2BIG) && !uids));
        assert(strv_length(uids) <= KUBELET_PODS_MAX);
        STRV_FOREACH(uid, uids)
                assert(!isempty(*uid));
        if (size == 0)
                assert(strv_length(uids) == 1 && streq(uids[0], "0b1f7b1e-2b0c"));
        return 0;
}
