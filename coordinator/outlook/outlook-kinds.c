/* SPDX-License-Identifier: Apache-2.0 */
#include "outlook-kinds.h"

#include "informer.h"
#include "log.h"
#include "string-util.h"

/* A watch that was lost for less is taken to come back: what it brought last still stands. */
#define LOST_USEC (2 * USEC_PER_MINUTE)
/* So long the first list of a kind may take before the others are judged without it. */
#define LIST_USEC USEC_PER_MINUTE

typedef struct OutlookKind {
        OutlookKinds *owner;
        SnapshotKind kind;
        Informer *informer;
        bool is_lost;
        char *why;         /* while it is lost */
        bool is_told;      /* that it is not known */
        usec_t since_usec; /* loop_now(): since when it is lost, or awaited */
} OutlookKind;

static const SnapshotKind kinds[] = {
        SNAPSHOT_VOLUME_CLAIMS, SNAPSHOT_VOLUMES, SNAPSHOT_STORAGE_CLASSES, SNAPSHOT_CSI_NODES, SNAPSHOT_NAMESPACES,
};

struct OutlookKinds {
        Env *env;
        OutlookKind kinds[ELEMENTSOF(kinds)];
        void (*changed)(void *userdata);
        void *userdata;
};

/* Every minute somebody annotates a namespace. */
static bool says_same(const KubeObject *a, const KubeObject *b) {
        return a->kind == &kube_namespace_kind && a->meta.deletion_usec == b->meta.deletion_usec &&
               key_values_are_same(&a->meta.labels, &b->meta.labels);
}

static void on_event(Informer *i, InformerEvent e, KubeObject *old, KubeObject *new, void *userdata) {
        OutlookKinds *k = ((OutlookKind *) userdata)->owner;

        if (!old || !new || !says_same(old, new))
                k->changed(k->userdata);
}

static void on_synced(Informer *i, void *userdata) {
        OutlookKinds *k = ((OutlookKind *) userdata)->owner;

        k->changed(k->userdata);
}

static void tell_unknown(OutlookKind *x) {
        const KubeKind *kind = snapshot_kube_kind(x->kind);

        if (x->is_told)
                return;
        x->is_told = true;
        log_warning(x->owner->env->log,
                    "Whether nodes would go though nobody asked is judged without %s, retrying: %s. Of a node whose pods need them NodeClaims say "
                    "SnapshotIncomplete. If it is a permission that is missing, it is list and watch of %s%s%s for the coordinator",
                    kind->plural, x->why ? x->why : "their first list has not come", kind->plural, isempty(kind->group) ? "" : ".", kind->group);
}

static void on_health(Informer *i, bool connected, const char *why, void *userdata) {
        OutlookKind *x = userdata;
        OutlookKinds *k = x->owner;

        x->is_lost = !connected;
        x->since_usec = loop_now(k->env->loop);
        x->is_told = x->is_told && !connected;
        (void) free_and_strdup(&x->why, connected ? NULL : why);
        k->changed(k->userdata);
}

int outlook_kinds_new(KubeClient *c, void (*changed)(void *userdata), void *userdata, OutlookKinds **ret) {
        _cleanup_(outlook_kinds_freep) OutlookKinds *k = new0(OutlookKinds, 1);

        if (!k)
                return -ENOMEM;
        k->env = kube_client_env(c);
        k->changed = changed;
        k->userdata = userdata;
        for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
                OutlookKind *x = k->kinds + i;
                InformerHandler h = { .on_event = on_event, .on_synced = on_synced, .on_health = on_health, .userdata = x };
                int r;

                *x = (OutlookKind){ .owner = k, .kind = kinds[i], .since_usec = loop_now(k->env->loop) };
                r = informer_new(c, snapshot_kube_kind(kinds[i]), NULL, &h, &x->informer);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(k);
        return 0;
}

OutlookKinds *outlook_kinds_free(OutlookKinds *k) {
        if (!k)
                return NULL;
        for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
                informer_free(k->kinds[i].informer);
        for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
                free(k->kinds[i].why);
        return mfree(k);
}

/* USEC_INFINITY: it is settled; else when it is. */
static usec_t settles_usec(const OutlookKind *x) {
        usec_t at = USEC_INFINITY;

        if (!informer_synced(x->informer))
                at = x->is_lost ? USEC_INFINITY : usec_add(x->since_usec, LIST_USEC);
        else if (x->is_lost)
                at = usec_add(x->since_usec, LOST_USEC);
        return at > loop_now(x->owner->env->loop) ? at : USEC_INFINITY;
}

bool outlook_kinds_settled(const OutlookKinds *k, usec_t *ret_at_usec) {
        usec_t at = 0;

        for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
                usec_t settles = settles_usec(k->kinds + i);

                if (settles != USEC_INFINITY)
                        at = MAX(at, settles);
        }
        *ret_at_usec = at;
        return at == 0;
}

int outlook_kinds_put(OutlookKinds *k, Snapshot *s) {
        for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
                OutlookKind *x = k->kinds + i;
                KubeObject *o;

                s->is_known[x->kind] = informer_synced(x->informer) && !x->is_lost;
                if (!s->is_known[x->kind]) {
                        tell_unknown(x);
                        continue;
                }
                INFORMER_FOREACH(o, x->informer) {
                        int r = snapshot_put(s, x->kind, o);

                        if (r < 0)
                                return r;
                }
        }
        return 0;
}
