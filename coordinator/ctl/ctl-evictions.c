/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl-evictions.h"

#include "ctl-say.h"
#include "hashmap.h"
#include "informer.h"
#include "log.h"

#define PROBE_TIMEOUT_USEC (10 * USEC_PER_SEC)

struct CtlEvictions {
        KubeClient *client;
        CtlEvictionsHandler handler;
        Evictor *evictor;
        KubeCall *probe; /* may they be listed at all? An informer would try for ever */
        Informer *pdbs;
        Hashmap *by_ns; /* namespace -> Hashmap of name -> KubePdb, borrowed from the informer */
        bool is_ready;
};

/* -- by namespace --------------------------------------------------------------------------------------- */

static int ctl_evictions_index(CtlEvictions *e, KubeObject *pdb) {
        Hashmap *inner = hashmap_get(e->by_ns, pdb->meta.ns);
        int r;

        if (!inner) {
                _cleanup_(hashmap_freep) Hashmap *made = NULL;

                r = hashmap_new(0, &made);
                if (r < 0)
                        return r;
                r = hashmap_put(e->by_ns, pdb->meta.ns, made);
                if (r < 0)
                        return r;
                inner = TAKE_PTR(made);
        }
        return hashmap_replace(inner, pdb->meta.name, pdb, NULL);
}

static void ctl_evictions_forget(CtlEvictions *e, const KubeObject *pdb) {
        (void) hashmap_remove(hashmap_get(e->by_ns, pdb->meta.ns), pdb->meta.name);
        evictor_forget_pdb(e->evictor, pdb->meta.ns, pdb->meta.name);
}

static void *inner_free(void *p) {
        return hashmap_free(p);
}

const KubePdb *ctl_evictions_pdb_of(const CtlEvictions *e, const KubePod *pod) {
        const KubePdb *found = NULL;
        KubePdb *pdb;

        HASHMAP_FOREACH (pdb, (const Hashmap *) hashmap_get(e->by_ns, strempty(pod->object.meta.ns))) {
                if (!kube_pdb_matches(pdb, pod))
                        continue;
                if (found)
                        return NULL;
                found = pdb;
        }
        return found && !kube_pdb_passes_by(found, pod) ? found : NULL;
}

/* -- what the API server says --------------------------------------------------------------------------- */

/* Of one that cannot be read the API server, who reads it himself, knows what it allows: its pods ask. */
static void ctl_evictions_take(CtlEvictions *e, KubeObject *o) {
        int r = ctl_evictions_index(e, o);

        if (r >= 0 && !o->invalid)
                r = evictor_set_allowed(e->evictor, o->meta.ns, o->meta.name,
                                        kube_pdb_allowed((KubePdb *) o));
        if (r >= 0 && !o->invalid)
                evictor_set_never(e->evictor, o->meta.ns, o->meta.name, kube_pdb_never_allows((KubePdb *) o));
        if (r < 0 || o->invalid)
                ctl_evictions_forget(e, o);
}

static void on_pdb(Informer *i, InformerEvent event, KubeObject *old, KubeObject *new, void *userdata) {
        CtlEvictions *e = userdata;

        if (new)
                ctl_evictions_take(e, new);
        else
                ctl_evictions_forget(e, old);
        if (old && new && old->meta.generation == new->meta.generation &&
            kube_pdb_lets_unready_pass((KubePdb *) old) == kube_pdb_lets_unready_pass((KubePdb *) new))
                return;
        evictor_pdb_edited(e->evictor, (new ? new : old)->meta.ns);
        if (e->is_ready)
                e->handler.on_budgets_changed(e->handler.userdata);
}

static void on_pdbs_synced(Informer *i, void *userdata) {
        CtlEvictions *e = userdata;

        e->is_ready = true;
        e->handler.on_ready(NULL, e->handler.userdata);
}

static void on_probed(const KubeReply *reply, void *userdata) {
        const KubeTarget target = { .kind = &kube_pdb_kind };
        const InformerHandler handler = { .on_event = on_pdb,
                                          .on_synced = on_pdbs_synced,
                                          .userdata = userdata };
        CtlEvictions *e = userdata;
        _cleanup_free_ char *text = NULL;
        int r = -EACCES;

        if (reply->error)
                text = ctl_explain_error(reply->error, "list, watch", &target);
        else
                r = informer_new(e->client, &kube_pdb_kind, NULL, &handler, &e->pdbs);
        e->probe = kube_call_free(e->probe);
        if (r >= 0)
                return;
        e->is_ready = true;
        e->handler.on_ready(text ? text : "out of memory", e->handler.userdata);
}

/* -- life ----------------------------------------------------------------------------------------------- */

int ctl_evictions_new(KubeClient *c, const CtlEvictionsHandler *h, CtlEvictions **ret) {
        _cleanup_(ctl_evictions_freep) CtlEvictions *e = NULL;
        const KubeTarget target = { .kind = &kube_pdb_kind };
        const KubeListOptions one = { .limit = 1 };
        const KubeCallOptions call = { .timeout_usec = PROBE_TIMEOUT_USEC };
        int r;

        assert(c && h && h->on_ready && h->on_budgets_changed && ret);
        e = new0(CtlEvictions, 1);
        if (!e)
                return -ENOMEM;
        e->client = c;
        e->handler = *h;
        r = hashmap_new(0, &e->by_ns);
        if (r < 0)
                return r;
        r = evictor_new(c, NULL, &e->evictor);
        if (r < 0)
                return r;
        r = kube_list(c, &target, &one, &call, on_probed, e, &e->probe);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(e);
        return 0;
}

CtlEvictions *ctl_evictions_free(CtlEvictions *e) {
        if (!e)
                return NULL;
        kube_call_free(e->probe);
        informer_free(e->pdbs);
        evictor_free(e->evictor);
        hashmap_free_with(e->by_ns, inner_free);
        return mfree(e);
}

bool ctl_evictions_are_ready(const CtlEvictions *e) {
        return e->is_ready;
}

Evictor *ctl_evictions_evictor(const CtlEvictions *e) {
        return e->evictor;
}
