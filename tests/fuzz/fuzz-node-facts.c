/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "check-kubelet.h"
#include "containers.h"
#include "fuzz.h"
#include "string-util.h"

/* What other daemons of a machine say of it: the kubelet its configuration, PID 1 where a process runs. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_free_ char *text = memdup_str(data, size), *uid = NULL;
        KubeletShutdown s = kubelet_shutdown_in((const char *) data, size);

        assert(text);
        assert(s <= KUBELET_SHUTDOWN_ON);
        assert(containers_pod_of_cgroup(text, &uid) == 0);
        if (uid) {
                assert(*uid && !strpbrk(uid, "/_"));
                assert(strstr(text, "-pod") && strstr(text, ".slice"));
        }
        return 0;
}
