/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube-scheduler's VolumeBinding, VolumeZone, VolumeRestrictions and NodeVolumeLimits, of claims of pods that run or ran: a
 * bound volume has to be usable on the node (its node affinity, its labels of zone and region); a claim that is not bound
 * yet is made for the node if its class waits for that, within the class' allowed topologies; ReadWriteOncePod is one pod's. A
 * node attaches so many volumes of a driver as its CSINode says. Where kube-scheduler would look for an existing volume
 * for a claim, or trust a class that does not wait, the answer here is no; so it is where a driver might have no room left, and of
 * disks from before CSI.
 */
#include "alloc-util.h"
#include "simulator-internal.h"
#include "string-util.h"
#include "strv.h"

#define LABEL_ZONE "topology.kubernetes.io/zone"
#define LABEL_REGION "topology.kubernetes.io/region"
#define LABEL_ZONE_BETA "failure-domain.beta.kubernetes.io/zone"
#define LABEL_REGION_BETA "failure-domain.beta.kubernetes.io/region"
#define AFFINITY_BYTES_MAX (1u << 20)
/* Attachments of one node that are counted: several times what any driver allows on a node, so the node is
 * full with them. */
#define ATTACHMENTS_MAX 4096u

/* -- where a volume can be used --------------------------------------------------------------------------- */

static int take_terms(Simulator *s, SimulatorVolume *v, const char *text, bool of_class) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const Json *root;
        int r;

        if (!text)
                return 0;
        v->has_affinity = true;
        r = json_parse(text, strlen(text), AFFINITY_BYTES_MAX, &doc, NULL);
        root = r >= 0 ? json_root(doc) : NULL;
        if (r >= 0)
                r = of_class ? node_terms_parse_topologies(root, s->pool, &v->affinity)
                             : node_terms_parse(json_get(root, "nodeSelectorTerms"), s->pool, &v->affinity);
        if (r >= 0 || r == -ENOMEM)
                return r;
        v->is_unusable = true; /* nobody can say where */
        return 0;
}

static int intern_label(Simulator *s, const KubeObject *o, const char *key, const char *beta, const char **ret) {
        const char *value = object_meta_label(&o->meta, key) ?: object_meta_label(&o->meta, beta);

        if (!value)
                return 0;
        *ret = intern(s->pool, value);
        return *ret ? 0 : -ENOMEM;
}

/* Drivers that make a volume for any node of its topology: they publish no CSIStorageCapacity, which would say how much is left. Of
 * others nobody here knows whether a node has room for one more. */
static bool is_made_anywhere(const char *provisioner) {
        static const char *const drivers[] = { "ebs.csi.aws.com",   "efs.csi.aws.com",     "pd.csi.storage.gke.io",
                                               "disk.csi.azure.com", "file.csi.azure.com", "filestore.csi.storage.gke.io",
                                               "cinder.csi.openstack.org" };

        for (size_t i = 0; i < ELEMENTSOF(drivers); i++)
                if (streq_ptr(provisioner, drivers[i]))
                        return true;
        return false;
}

/* A disk of a cloud from before CSI: where it counts, and in which zone it is, is translated by rules that are not here. */
static bool is_before_csi(const Simulator *s, const KubeVolume *pv) {
        const KubeStorageClass *class = pv->csi_driver || !pv->storage_class
                                                ? NULL
                                                : (const KubeStorageClass *) snapshot_get(s->snapshot, SNAPSHOT_STORAGE_CLASSES,
                                                                                          pv->storage_class);

        return class && class->provisioner && startswith(class->provisioner, "kubernetes.io/") &&
               !streq(class->provisioner, "kubernetes.io/no-provisioner");
}

static int take_bound(Simulator *s, SimulatorVolume *v, const KubeVolume *pv) {
        int r = take_terms(s, v, pv->node_affinity, false);

        if (r >= 0)
                r = intern_label(s, &pv->object, LABEL_ZONE, LABEL_ZONE_BETA, &v->zone);
        if (r >= 0)
                r = intern_label(s, &pv->object, LABEL_REGION, LABEL_REGION_BETA, &v->region);
        v->is_unusable |= is_before_csi(s, pv);
        if (r < 0 || !pv->csi_driver)
                return r;
        v->driver = intern(s->pool, pv->csi_driver);
        v->handle = intern(s->pool, strempty(pv->csi_handle));
        return v->driver && v->handle ? 0 : -ENOMEM;
}

/* Of a claim that is not bound, or of one that its pod's successor will have anew. */
static int take_unbound(Simulator *s, SimulatorVolume *v, const KubeScheduledClaim *claim) {
        const KubeStorageClass *class = claim->storage_class ? (const KubeStorageClass *) snapshot_get(
                                                                       s->snapshot, SNAPSHOT_STORAGE_CLASSES,
                                                                       claim->storage_class)
                                                             : NULL;

        if (!class || !class->waits_for_consumer || class->object.invalid ||
            !is_made_anywhere(class->provisioner)) {
                v->is_unusable = true;
                return 0;
        }
        v->driver = class->provisioner ? intern(s->pool, class->provisioner) : NULL;
        return take_terms(s, v, class->allowed_topologies, true);
}

static int take_claim(Simulator *s, SimulatorVolume *v, const char *key, bool ephemeral) {
        const KubeScheduledClaim *claim =
                (const KubeScheduledClaim *) snapshot_get(s->snapshot, SNAPSHOT_VOLUME_CLAIMS, key);
        const KubeVolume *pv;

        if (!claim || claim->claim.object.invalid || (claim->claim.object.meta.deletion_usec > 0 && !ephemeral)) {
                v->is_unusable = true;
                return 0;
        }
        v->is_for_one = claim->one_pod_only;
        if (ephemeral || !claim->claim.volume_name)
                return take_unbound(s, v, claim);
        pv = (const KubeVolume *) snapshot_get(s->snapshot, SNAPSHOT_VOLUMES, claim->claim.volume_name);
        if (!pv || pv->object.invalid) {
                v->is_unusable = true;
                return 0;
        }
        return take_bound(s, v, pv);
}

/* -- the volumes of all pods ------------------------------------------------------------------------------ */

static int find_or_add_volume(Simulator *s, const char *ns, const PodClaim *claim, uint32_t *ret) {
        _cleanup_free_ char *key = strf("%s/%s", ns, claim->name);
        uintptr_t number;
        int r;

        if (!key)
                return -ENOMEM;
        number = (uintptr_t) hashmap_get(s->volume_numbers, key);
        if (number > 0) {
                *ret = (uint32_t) (number - 1);
                return 0;
        }
        r = GREEDY_REALLOC(s->volumes, s->volumes_allocated, (size_t) s->n_volumes + 1);
        if (r < 0)
                return r;
        s->volumes[s->n_volumes] = (SimulatorVolume){};
        *ret = s->n_volumes++;
        r = hashmap_put(s->volume_numbers, key, (void *) (uintptr_t) s->n_volumes);
        return r < 0 ? r : take_claim(s, s->volumes + *ret, key, claim->ephemeral);
}

static bool knows_volumes(const Simulator *s) {
        const bool *known = s->snapshot->is_known;

        return known[SNAPSHOT_VOLUME_CLAIMS] && known[SNAPSHOT_VOLUMES] && known[SNAPSHOT_STORAGE_CLASSES] &&
               known[SNAPSHOT_CSI_NODES];
}

int simulator_load_volumes_of(Simulator *s, uint32_t pod) {
        SimulatorPod *p = s->pods + pod;
        const KubeScheduledPod *o = p->object;

        if (o->n_claims == 0)
                return 0;
        if (!knows_volumes(s)) {
                if (p->unmodelled == POD_MODELLED)
                        p->unmodelled = POD_SNAPSHOT_INCOMPLETE;
                return 0;
        }
        p->volumes = new0(uint32_t, o->n_claims);
        if (!p->volumes)
                return -ENOMEM;
        for (size_t i = 0; i < o->n_claims; i++) {
                int r;

                if (p->is_vanished && o->claims[i].ephemeral) /* its successor brings its own */
                        continue;
                r = find_or_add_volume(s, o->pod.object.meta.ns, o->claims + i, p->volumes + p->n_volumes);
                if (r < 0)
                        return r;
                s->volumes[p->volumes[p->n_volumes]].n_users++;
                p->n_volumes++;
        }
        return 0;
}

void simulator_forget_volumes_of(Simulator *s, uint32_t pod) {
        SimulatorPod *p = s->pods + pod;

        for (uint32_t i = 0; i < p->n_volumes; i++)
                s->volumes[p->volumes[i]].n_users--;
        p->volumes = mfree(p->volumes);
        p->n_volumes = 0;
}

int simulator_load_volumes(Simulator *s) {
        int r = hashmap_new(0, &s->volume_numbers);

        for (uint32_t i = 0; i < s->n_pods && r >= 0; i++)
                r = simulator_load_volumes_of(s, i);
        for (uint32_t i = 0; i < s->n_nodes; i++)
                s->nodes[i].csi = (const KubeCsiNode *) snapshot_get(s->snapshot, SNAPSHOT_CSI_NODES, s->nodes[i].name);
        return r;
}

/* -- on a node -------------------------------------------------------------------------------------------- */

static VolumeUse *find_use(const SimulatorNode *n, uint32_t volume) {
        for (size_t i = 0; i < n->n_volumes; i++)
                if (n->volumes[i].volume == volume)
                        return n->volumes + i;
        return NULL;
}

int simulator_count_volumes(Simulator *s, uint32_t pod, uint32_t node, int direction) {
        const SimulatorPod *p = s->pods + pod;
        SimulatorNode *n = s->nodes + node;
        int r = direction > 0 && p->n_volumes > 0 ? GREEDY_REALLOC(n->volumes, n->volumes_allocated, n->n_volumes + p->n_volumes) : 0;

        if (r < 0) /* of none of them */
                return r;
        for (uint32_t i = 0; i < p->n_volumes; i++) {
                VolumeUse *use = find_use(n, p->volumes[i]);

                if (direction < 0) {
                        assert(use);
                        if (--use->n_pods == 0)
                                *use = n->volumes[--n->n_volumes];
                } else if (use)
                        use->n_pods++;
                else
                        n->volumes[n->n_volumes++] = (VolumeUse){ p->volumes[i], 1 };
        }
        return 0;
}

/* "kubernetes.io/csi/DRIVER^HANDLE", of a Node's status.volumesAttached. *ret_driver: its bytes; NULL: another kind of volume. */
static const char *attached_handle(const char *name, const char **ret_driver, size_t *ret_size) {
        const char *driver = startswith(name, "kubernetes.io/csi/"), *end = driver ? strchr(driver, '^') : NULL;

        *ret_driver = driver;
        *ret_size = end ? (size_t) (end - driver) : 0;
        return end ? end + 1 : NULL;
}

/* n_mounted: number of the node's volumes that pods mount; they come first. Volumes from attachments come
 * behind them and are not searched, since a kubelet can name any number of these. */
static bool is_mounted(const Simulator *s, const SimulatorNode *n, size_t n_mounted, const char *driver,
                       size_t size, const char *handle) {
        for (size_t i = 0; i < n_mounted; i++) {
                const SimulatorVolume *v = s->volumes + n->volumes[i].volume;

                if (v->driver && strlen(v->driver) == size && strncmp(v->driver, driver, size) == 0 && streq_ptr(v->handle, handle))
                        return true;
        }
        return false;
}

static int add_attachment(Simulator *s, SimulatorNode *n, const char *driver, size_t size) {
        int r = GREEDY_REALLOC(s->volumes, s->volumes_allocated, (size_t) s->n_volumes + 1);

        if (r >= 0)
                r = GREEDY_REALLOC(n->volumes, n->volumes_allocated, n->n_volumes + 1);
        if (r < 0)
                return r;
        s->volumes[s->n_volumes] = (SimulatorVolume){ .driver = intern_n(s->pool, driver, size) };
        if (!s->volumes[s->n_volumes].driver)
                return -ENOMEM;
        n->volumes[n->n_volumes++] = (VolumeUse){ s->n_volumes++, 1 };
        return 0;
}

/* Still attached, or by somebody else: it takes a place all the same. */
int simulator_load_attachments(Simulator *s) {
        for (uint32_t i = 0; i < s->n_nodes; i++) {
                SimulatorNode *n = s->nodes + i;
                size_t n_mounted = n->n_volumes, n_added = 0;

                STRV_FOREACH (name, n->object->node.volumes_attached) {
                        const char *driver, *handle;
                        size_t size;
                        int r;

                        handle = attached_handle(*name, &driver, &size);
                        if (!handle || !n->csi || is_mounted(s, n, n_mounted, driver, size, handle))
                                continue;
                        if (n_added++ == ATTACHMENTS_MAX)
                                break;
                        r = add_attachment(s, n, driver, size);
                        if (r < 0)
                                return r;
                }
        }
        return 0;
}

/* -- the filters ------------------------------------------------------------------------------------------ */

/* wanted: one value, or several with "__" between them. */
static bool zone_has(const char *wanted, const char *value) {
        size_t size = strlen(value);

        for (const char *p = wanted; p; p = strstr(p, "__")) {
                const char *end;

                if (p != wanted)
                        p += 2;
                end = strstr(p, "__");
                if ((end ? (size_t) (end - p) : strlen(p)) == size && strncmp(p, value, size) == 0)
                        return true;
        }
        return false;
}

/* A node without any label of zone or region is in none, and takes every volume. */
static bool zones_fit(const SimulatorVolume *v, const SimulatorNode *n) {
        const char *zone = key_values_get(&n->labels, LABEL_ZONE) ?: key_values_get(&n->labels, LABEL_ZONE_BETA);
        const char *region = key_values_get(&n->labels, LABEL_REGION) ?: key_values_get(&n->labels, LABEL_REGION_BETA);

        if (!zone && !region)
                return true;
        return (!v->zone || (zone && zone_has(v->zone, zone))) && (!v->region || (region && zone_has(v->region, region)));
}

static bool is_usable(const SimulatorVolume *v, const SimulatorNode *n) {
        return !v->is_unusable && !(v->is_for_one && v->n_users > 1) && (!v->has_affinity || node_terms_match(&v->affinity, &n->labels, n->name)) &&
               zones_fit(v, n);
}

static int64_t limit_of(const KubeCsiNode *csi, const char *driver) {
        for (size_t i = 0; i < csi->n_drivers; i++)
                if (streq_ptr(csi->drivers[i].driver, driver))
                        return csi->drivers[i].volumes;
        return -1;
}

/* Each driver is asked about once: with the first of the pod's volumes that it has. */
static bool is_first_of_driver(const Simulator *s, const SimulatorPod *p, uint32_t place) {
        for (uint32_t i = 0; i < place; i++)
                if (s->volumes[p->volumes[i]].driver == s->volumes[p->volumes[place]].driver)
                        return false;
        return true;
}

static bool is_within_limit(const Simulator *s, const SimulatorPod *p, const SimulatorNode *n, uint32_t place) {
        const char *driver = s->volumes[p->volumes[place]].driver;
        int64_t limit = driver ? limit_of(n->csi, driver) : -1, attached = 0;

        if (limit < 0 || !is_first_of_driver(s, p, place))
                return true;
        for (size_t i = 0; i < n->n_volumes; i++)
                attached += s->volumes[n->volumes[i].volume].driver == driver;
        for (uint32_t i = 0; i < p->n_volumes; i++)
                attached += s->volumes[p->volumes[i]].driver == driver && !find_use(n, p->volumes[i]);
        return attached <= limit;
}

FitReason fit_volumes(const Simulator *s, uint32_t pod, uint32_t node) {
        const SimulatorPod *p = s->pods + pod;
        const SimulatorNode *n = s->nodes + node;

        for (uint32_t i = 0; i < p->n_volumes; i++)
                if (!is_usable(s->volumes + p->volumes[i], n))
                        return FIT_VOLUME;
        for (uint32_t i = 0; n->csi && i < p->n_volumes; i++)
                if (!is_within_limit(s, p, n, i))
                        return FIT_VOLUME_LIMIT;
        return FIT_OK;
}
