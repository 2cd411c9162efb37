/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet-labels.h"

#include "string-util.h"

#define NAMED_MAX 3u /* a key has at most 317 bytes */

/* Returns true if the prefix of the key, the part before its '/', is domain or a subdomain of it. */
static bool key_is_in_domain(const char *key, const char *domain) {
        const char *slash = strchr(key, '/');
        size_t size = slash ? (size_t) (slash - key) : 0, n = strlen(domain);

        if (size < n || strncmp(slash - n, domain, n) != 0)
                return false;
        return size == n || key[size - n - 1] == '.';
}

bool label_key_is_protected_from_kubelets(const char *key) {
        static const char *const kubelet_keys[] = {
                "kubernetes.io/hostname",
                "kubernetes.io/os",
                "kubernetes.io/arch",
                "beta.kubernetes.io/os",
                "beta.kubernetes.io/arch",
                "beta.kubernetes.io/instance-type",
                "topology.kubernetes.io/zone",
                "topology.kubernetes.io/region",
                "failure-domain.beta.kubernetes.io/zone",
                "failure-domain.beta.kubernetes.io/region",
        };

        assert(key);
        if (key_is_in_domain(key, "node-restriction.kubernetes.io"))
                return true;
        if (!key_is_in_domain(key, "kubernetes.io") && !key_is_in_domain(key, "k8s.io"))
                return false;
        if (key_is_in_domain(key, "kubelet.kubernetes.io") || key_is_in_domain(key, "node.kubernetes.io"))
                return false;
        for (size_t i = 0; i < ELEMENTSOF(kubelet_keys); i++)
                if (streq(key, kubelet_keys[i]))
                        return false;
        return true;
}

int selector_kubelet_labels(const Selector *s, char **ret) {
        _cleanup_(hashmap_freep) Hashmap *keys = NULL;
        _cleanup_strbuf_ StrBuf b = {};
        const char *key;
        size_t n = 0;
        int r;

        assert(ret);
        *ret = NULL;
        if (selector_is_empty(s))
                return 0;
        r = hashmap_new(0, &keys);
        if (r >= 0)
                r = selector_gather_keys(s, keys);
        if (r < 0)
                return r;
        for (HashmapIterator it = {}; hashmap_iterate(keys, &it, &key, NULL);)
                if (!label_key_is_protected_from_kubelets(key) && n++ < NAMED_MAX)
                        strbuf_addf(&b, "%s%s", n > 1 ? ", " : "", key);
        if (n > NAMED_MAX)
                strbuf_addf(&b, " and %zu more", n - NAMED_MAX);
        if (n == 0)
                return 0;
        *ret = strbuf_steal(&b);
        return *ret ? 0 : -ENOMEM;
}
