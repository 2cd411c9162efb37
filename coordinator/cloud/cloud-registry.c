/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud-registry.h"

#include "string-util.h"

void cloud_registry_add(CloudRegistry *c, CloudProvider *p) {
        assert(p && c->n_providers < CLOUD_PROVIDERS_MAX);
        c->providers[c->n_providers++] = p;
}

void cloud_registry_done(CloudRegistry *c) {
        for (size_t i = 0; i < c->n_providers; i++)
                cloud_provider_free(c->providers[i]);
        *c = (CloudRegistry){ 0 };
}

CloudProvider *cloud_registry_for(const CloudRegistry *c, const char *provider_id) {
        assert(c->n_providers > 0);
        for (size_t i = 0; i < c->n_providers; i++)
                if (c->providers[i]->ops->owns(c->providers[i], strempty(provider_id)))
                        return c->providers[i];
        return c->providers[0];
}

CloudProvider *cloud_registry_named(const CloudRegistry *c, const char *name) {
        for (size_t i = 0; i < c->n_providers; i++)
                if (streq(c->providers[i]->ops->name, name))
                        return c->providers[i];
        return NULL;
}

char *cloud_registry_names(const CloudRegistry *c) {
        StrBuf b = { 0 };

        for (size_t i = 0; i < c->n_providers; i++)
                strbuf_addf(&b, "%s%s", i > 0 ? " " : "", c->providers[i]->ops->name);
        return strbuf_steal(&b);
}

CloudProvider *cloud_registry_chosen(const CloudRegistry *c, const char *provider_id, const char *name) {
        CloudProvider *named = name ? cloud_registry_named(c, name) : NULL;

        return named && !isempty(provider_id) && named->ops->owns(named, provider_id) ? named
                                                                                       : cloud_registry_for(c, provider_id);
}
