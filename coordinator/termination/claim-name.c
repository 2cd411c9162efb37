/* SPDX-License-Identifier: Apache-2.0 */
#include "claim-name.h"

#include "hashmap.h"
#include "string-util.h"

char *claim_name(const char *pool, const char *provider_id, const char *node_uid) {
        _cleanup_free_ char *text = strf("%s\n%s\n%s", pool, provider_id, node_uid);

        return text ? strf("nc-%016llx", (unsigned long long) hash64(text, strlen(text))) : NULL;
}
