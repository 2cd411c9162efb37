/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot-anonymize.h"

#include "anonymous-names.h"
#include "kube-scheduling.h"
#include "snapshot-object.h"
#include "snapshot-read.h"
#include "string-util.h"

/*
 * Each object is written as a line of the file is, and walked twice: once to collect its names, and once, when all names of
 * all objects have made-up ones, to write it anew and read that. What a member holds its name tells (rules[]). Texts that may be
 * compared with each other are in one set: labels' values, nodes' names and uids are, as a label may be a node's name; keys are;
 * and namespaces are, which sort differently.
 */

typedef enum Meaning {
        PLAIN,       /* is kept */
        NAME,        /* or a list of them */
        ADDRESS,     /* of a host port */
        NAMESPACE,   /* or a list of them */
        CLAIM,       /* the name of a PersistentVolumeClaim */
        KEY,         /* or a list of them */
        VALUE,       /* or a list of them, of the key beside it */
        VALUE_ALONE, /* of a label whose key is not told */
        LABELS,      /* keys with their values */
        RESOURCES,   /* keys with quantities */
        ANNOTATIONS,
        INSIDE,      /* an object, or a list of objects, with members of its own */
        _MEANING_MAX,
} Meaning;

static const struct {
        const char *member;
        Meaning meaning;
} rules[] = {
        /* an object and its metadata */
        { "metadata", INSIDE }, { "spec", INSIDE }, { "status", INSIDE },
        { "name", NAME }, { "namespace", NAMESPACE }, { "uid", NAME }, { "generation", PLAIN },
        { "creationTimestamp", PLAIN }, { "deletionTimestamp", PLAIN }, { "deletionGracePeriodSeconds", PLAIN },
        { "labels", LABELS }, { "annotations", ANNOTATIONS }, { "finalizers", KEY },
        { "ownerReferences", INSIDE }, { "apiVersion", PLAIN }, { "kind", PLAIN }, { "controller", PLAIN },
        /* Pod */
        { "nodeName", NAME }, { "priorityClassName", NAME }, { "priority", PLAIN }, { "schedulerName", NAME },
        { "terminationGracePeriodSeconds", PLAIN },
        { "containers", INSIDE }, { "initContainers", INSIDE }, { "resources", INSIDE }, { "requests", RESOURCES },
        { "overhead", RESOURCES }, { "restartPolicy", PLAIN },
        { "ports", INSIDE }, { "hostPort", PLAIN }, { "hostIP", ADDRESS }, { "protocol", PLAIN },
        { "nodeSelector", LABELS }, { "tolerations", INSIDE }, { "taints", INSIDE }, { "effect", PLAIN },
        { "key", KEY }, { "operator", PLAIN }, { "value", VALUE }, { "values", VALUE }, { "timeAdded", PLAIN },
        { "affinity", INSIDE }, { "nodeAffinity", INSIDE }, { "podAffinity", INSIDE }, { "podAntiAffinity", INSIDE },
        { "requiredDuringSchedulingIgnoredDuringExecution", INSIDE },
        { "preferredDuringSchedulingIgnoredDuringExecution", INSIDE }, { "required", INSIDE },
        { "nodeSelectorTerms", INSIDE }, { "matchExpressions", INSIDE }, { "matchFields", INSIDE },
        { "matchLabels", LABELS }, { "weight", PLAIN }, { "preference", INSIDE }, { "podAffinityTerm", INSIDE },
        { "labelSelector", INSIDE }, { "namespaceSelector", INSIDE }, { "namespaces", NAMESPACE }, { "topologyKey", KEY },
        { "matchLabelKeys", KEY }, { "mismatchLabelKeys", KEY }, { "topologySpreadConstraints", INSIDE },
        { "maxSkew", PLAIN }, { "minDomains", PLAIN }, { "whenUnsatisfiable", PLAIN }, { "nodeAffinityPolicy", PLAIN },
        { "nodeTaintsPolicy", PLAIN }, { "resourceClaims", INSIDE }, { "schedulingGates", INSIDE },
        { "workloadRef", INSIDE }, { "volumes", INSIDE }, { "persistentVolumeClaim", INSIDE }, { "claimName", CLAIM },
        { "ephemeral", INSIDE }, { "rbd", INSIDE }, { "phase", PLAIN }, { "startTime", PLAIN }, { "nominatedNodeName", NAME },
        /* Node */
        { "providerID", NAME }, { "unschedulable", PLAIN }, { "allocatable", RESOURCES }, { "volumesInUse", NAME },
        { "volumesAttached", INSIDE }, { "nodeInfo", INSIDE }, { "kubeletVersion", NAME }, { "osImage", NAME }, { "conditions", INSIDE }, { "type", KEY },
        { "lastTransitionTime", PLAIN },
        /* PodDisruptionBudget and NodeDisruptionBudget */
        { "selector", INSIDE }, { "unhealthyPodEvictionPolicy", PLAIN }, { "disruptionsAllowed", PLAIN },
        { "currentHealthy", PLAIN }, { "desiredHealthy", PLAIN }, { "expectedPods", PLAIN },
        { "observedGeneration", PLAIN }, { "minAvailable", PLAIN }, { "maxUnavailable", PLAIN },
        { "expectedNodes", PLAIN }, { "currentAvailable", PLAIN }, { "desiredAvailable", PLAIN },
        { "disruptedNodes", INSIDE }, { "holder", NAME }, { "heldBefore", NAME }, { "time", PLAIN }, { "until", PLAIN },
        /* storage */
        { "volumeName", NAME }, { "storageClassName", NAME }, { "accessModes", PLAIN }, { "csi", INSIDE },
        { "driver", NAME }, { "volumeHandle", NAME }, { "provisioner", NAME }, { "volumeBindingMode", PLAIN },
        { "allowedTopologies", INSIDE }, { "matchLabelExpressions", INSIDE }, { "drivers", INSIDE }, { "count", PLAIN },
        /* NodePool and NodeClaim */
        { "template", INSIDE }, { "disruption", INSIDE }, { "provider", INSIDE }, { "group", NAME }, { "identity", PLAIN },
        { "terminationGracePeriod", PLAIN }, { "expireAfter", PLAIN }, { "deletionPolicy", PLAIN }, { "nodePool", NAME },
        { "nodeUID", NAME }, { "deadline", PLAIN }, { "podsLeft", PLAIN },
        { "startupTaints", INSIDE }, { "requirements", INSIDE }, { "emptyAfter", PLAIN }, { "expireHardAfter", PLAIN }, { "drift", PLAIN },
        { "consolidation", INSIDE }, { "policy", PLAIN }, { "after", PLAIN }, { "minimumSavings", PLAIN }, { "preferences", PLAIN },
        { "onInterruption", PLAIN }, { "launchTimeout", PLAIN }, { "replaces", NAME }, { "attempt", PLAIN },
        { "token", NAME }, { "like", NAME }, { "since", PLAIN }, { "answer", PLAIN }, { "unresolved", PLAIN },
        { "successor", INSIDE }, { "claim", NAME }, { "made", PLAIN },
        { "nakedPods", PLAIN }, { "maxConcurrent", PLAIN }, { "budgets", INSIDE }, { "nodes", PLAIN }, { "reasons", PLAIN },
        { "schedule", PLAIN }, { "duration", PLAIN }, { "timeZone", PLAIN }, { "windows", INSIDE },
        { "offerings", INSIDE }, { "instanceType", NAME }, { "zone", NAME }, { "capacityType", VALUE_ALONE }, { "price", PLAIN }, { "limits", RESOURCES },
};

/* Keys with a meaning, whole or, with a star, as they begin. */
static const char *const kept_keys[] = {
        "cpu", "memory", "pods", "nodes", "storage", "ephemeral-storage", "hugepages-*", "attachable-volumes-*", "metadata.name",
        "kubernetes.io/hostname", "kubernetes.io/metadata.name", "kubernetes.io/arch", "kubernetes.io/os",
        "kubernetes.io/pvc-protection", "kubernetes.io/pv-protection",
        "topology.kubernetes.io/zone", "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "node.kubernetes.io/unschedulable",
        "node.kubernetes.io/memory-pressure", "node.kubernetes.io/disk-pressure", "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/network-unavailable", "node.kubernetes.io/out-of-service", "node.kubernetes.io/instance-type",
        "node.kubernetes.io/exclude-from-external-load-balancers", "node.cloudprovider.kubernetes.io/uninitialized",
        "node.cloudprovider.kubernetes.io/shutdown", "node-role.kubernetes.io/control-plane",
        "pod-template-hash", "controller-revision-hash", "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index",
        "scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io",
        "vesper.sh/*", "karpenter.sh/*", "cluster-autoscaler.kubernetes.io/*",
        /* conditions of Kubernetes' own */
        "Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable", "DrainInProgress", "Drained",
        "MaintenancePlanned", "MaintenanceInProgress", "GracefulNodeShutdownInProgress", "Launched", "Registered",
        "Initialized", "VolumesDetached", "InstanceTerminating", "Invalid", "DisruptionAllowed", "Paused",
        "SelectorOpenToKubelets",
};

#define KEY_OF_NAMESPACE "kubernetes.io/metadata.name"

typedef struct Walk {
        AnonymousNames names, namespaces, keys;
        Hashmap *numeric_keys; /* keys that Gt or Lt looks at */
        Hashmap *ephemeral;    /* "namespace/claim" of an ephemeral volume: how long the name of its pod is */
        bool collecting;
        JsonWriter *w; /* of the object that is being written */
        int error;     /* the first one sticks */
        SnapshotKind kind;
        const char *ns;
} Walk;

static void note_error(Walk *w, int r) {
        if (w->error >= 0 && r < 0)
                w->error = r;
}

/* -- one text ------------------------------------------------------------------------------------------- */

static const char *rename_in(Walk *w, AnonymousNames *a, const char *text) {
        if (w->collecting) {
                note_error(w, anonymous_names_add(a, text));
                return text;
        }
        return anonymous_names_get(a, text) ?: "";
}

static const char *rename_name(Walk *w, const char *text) {
        return *text ? rename_in(w, &w->names, text) : text;
}

/* Of a host port: one address, or all. */
static const char *rename_address(Walk *w, const char *text) {
        return streq(text, "0.0.0.0") || streq(text, "::") ? text : rename_name(w, text);
}

static bool key_is_kept(const char *key) {
        for (size_t i = 0; i < ELEMENTSOF(kept_keys); i++) {
                const char *star = endswith(kept_keys[i], "*");
                size_t n = strlen(kept_keys[i]) - 1;

                if (star ? strncmp(key, kept_keys[i], n) == 0 : streq(key, kept_keys[i]))
                        return true;
        }
        return false;
}

static const char *rename_key(Walk *w, const char *key) {
        return *key == 0 || key_is_kept(key) ? key : rename_in(w, &w->keys, key);
}

static bool is_whole_number(const char *s) {
        s += *s == '-' || *s == '+';
        return *s && s[strspn(s, "0123456789")] == 0;
}

static bool is_flag(const char *s) {
        return *s == 0 || streq(s, "true") || streq(s, "false");
}

/* What machines are paid by: spot capacity is never replaced by spot capacity. */
static bool is_capacity_type(const char *s) {
        return streq(s, "spot") || streq(s, "on-demand") || streq(s, "SPOT") || streq(s, "ON_DEMAND");
}

/* A label of a volume may name several zones, with "__" between them. NULL: no memory. */
static char *rename_zones(Walk *w, const char *zones) {
        _cleanup_strbuf_ StrBuf b = { 0 };

        for (const char *p = zones;;) {
                const char *end = strstr(p, "__");
                _cleanup_free_ char *zone = end ? memdup_str(p, (size_t) (end - p)) : strdup(p);

                if (!zone)
                        return NULL;
                strbuf_add(&b, rename_name(w, zone));
                if (!end)
                        return strbuf_steal(&b);
                strbuf_add(&b, "__");
                p = end + 2;
        }
}

/* Of a label or taint with that key (original); NULL: there is none. Free it; NULL: no memory. */
static char *rename_value(Walk *w, const char *key, const char *value) {
        const char *made;

        if (is_flag(value) || is_capacity_type(value) || (key && is_whole_number(value) && hashmap_contains(w->numeric_keys, key)))
                made = value;
        else if (streq_ptr(key, KEY_OF_NAMESPACE))
                made = rename_in(w, &w->namespaces, value);
        else if (strstr(value, "__"))
                return rename_zones(w, value);
        else
                made = rename_name(w, value);
        return strdup(made);
}

/* The claim of an ephemeral volume is called after its pod and the volume, and has to be afterwards. Free it; NULL: no memory. */
static char *rename_claim(Walk *w, const char *name) {
        _cleanup_free_ char *key = strf("%s/%s", strempty(w->ns), name), *pod = NULL;
        size_t n;

        if (!key)
                return NULL;
        n = (size_t) hashmap_get(w->ephemeral, key);
        if (w->collecting || n == 0)
                return strdup(rename_name(w, name));
        pod = memdup_str(name, n);
        return pod ? strf("%s-%s", rename_name(w, pod), rename_name(w, name + n + 1)) : NULL;
}

static void add_owned(Walk *w, const char *key, char *text) {
        if (!text)
                note_error(w, -ENOMEM);
        else
                json_add_string(w->w, key, text);
        free(text);
}

/* -- annotations ---------------------------------------------------------------------------------------- */

static bool is_told(const char *s) {
        usec_t t;

        return is_flag(s) || is_whole_number(s) || duration_parse_go(s, &t) >= 0 || rfc3339_parse(s, &t) >= 0;
}

/* A mark of vesper's that is JSON: what tells of a machine or a person is replaced. */
static char *rename_mark(Walk *w, const Json *mark) {
        static const char *const plain[] = { "kind", "action", "phase", "source" };
        _cleanup_(json_writer_freep) JsonWriter *out = NULL;
        int r = json_writer_new(&out);

        if (r < 0)
                return NULL;
        json_open_object(out, NULL);
        JSON_FOREACH (i, mark) {
                const char *text = json_string_or_null(i);
                bool keep = !text || is_told(text);

                for (size_t k = 0; k < ELEMENTSOF(plain); k++)
                        keep |= streq(json_key(i), plain[k]);
                if (text)
                        json_add_string(out, json_key(i), keep ? text : rename_name(w, text));
                else if (!json_is_object(i) && !json_is_array(i))
                        json_add_value(out, json_key(i), i);
        }
        json_close_object(out);
        return json_writer_steal(out, NULL);
}

static char *rename_annotation(Walk *w, const char *value) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        int r;

        if (is_told(value))
                return strdup(value);
        r = *value == '{' ? json_parse(value, strlen(value), SIZE_MAX, &doc, NULL) : -EBADMSG;
        if (r == -ENOMEM)
                return NULL;
        return r >= 0 ? rename_mark(w, json_root(doc)) : strdup(rename_name(w, value));
}

static void write_annotations(Walk *w, const char *member, const Json *v) {
        json_open_object(w->w, member);
        JSON_FOREACH (i, v)
                add_owned(w, json_key(i), rename_annotation(w, strempty(json_string_or_null(i))));
        json_close_object(w->w);
}

/* -- an object ------------------------------------------------------------------------------------------ */

static void write_map(Walk *w, const char *member, const Json *v, Meaning meaning) {
        json_open_object(w->w, member);
        JSON_FOREACH (i, v) {
                const char *value = strempty(json_string_or_null(i));

                if (meaning == RESOURCES)
                        json_add_string(w->w, rename_key(w, json_key(i)), value);
                else
                        add_owned(w, rename_key(w, json_key(i)), rename_value(w, json_key(i), value));
        }
        json_close_object(w->w);
}

static void write_text(Walk *w, const char *member, const char *text, Meaning meaning, const char *key) {
        switch (meaning) {
        case NAME:
                json_add_string(w->w, member, rename_name(w, text));
                return;
        case ADDRESS:
                json_add_string(w->w, member, rename_address(w, text));
                return;
        case NAMESPACE:
                json_add_string(w->w, member, *text ? rename_in(w, &w->namespaces, text) : text);
                return;
        case CLAIM:
                add_owned(w, member, rename_claim(w, text));
                return;
        case KEY:
                json_add_string(w->w, member, rename_key(w, text));
                return;
        case VALUE:
                add_owned(w, member, rename_value(w, key, text));
                return;
        case VALUE_ALONE:
                add_owned(w, member, rename_value(w, NULL, text));
                return;
        case PLAIN:
        case LABELS:
        case RESOURCES:
        case ANNOTATIONS:
        case INSIDE:
        case _MEANING_MAX:
                break;
        }
        json_add_string(w->w, member, text);
}

static void write_members(Walk *w, const Json *o, const char *parent);

/* key: beside it, NULL if there is none. name: of the member; an element of a list has none of its own. */
static void write_any(Walk *w, const char *member, const Json *v, Meaning meaning, const char *key, const char *name) {
        if (json_is_array(v)) {
                json_open_array(w->w, member);
                JSON_FOREACH (i, v)
                        write_any(w, NULL, i, meaning, key, name);
                json_close_array(w->w);
        } else if (json_is_object(v) && (meaning == LABELS || meaning == RESOURCES))
                write_map(w, member, v, meaning);
        else if (json_is_object(v) && meaning == ANNOTATIONS)
                write_annotations(w, member, v);
        else if (json_is_object(v)) {
                json_open_object(w->w, member);
                write_members(w, v, name);
                json_close_object(w->w);
        } else if (json_is_string(v))
                write_text(w, member, json_string_or_null(v), meaning, key);
        else
                json_add_value(w->w, member, v);
}

/* _MEANING_MAX: it is left out. */
static Meaning meaning_of(const Walk *w, const char *member, const char *parent) {
        if (streq(member, "name") && streq(parent, "metadata") && w->kind == SNAPSHOT_NAMESPACES)
                return NAMESPACE;
        if (streq(member, "name") && streq(parent, "metadata") && w->kind == SNAPSHOT_VOLUME_CLAIMS)
                return CLAIM;
        if (streq(member, "allocatable") && w->kind == SNAPSHOT_CSI_NODES)
                return INSIDE;
        if (streq(member, "apiVersion") || streq(member, "kind"))
                return PLAIN;
        if (streq(member, "status") && streq(parent, "conditions"))
                return PLAIN;
        for (size_t i = 0; i < ELEMENTSOF(rules); i++)
                if (streq(member, rules[i].member))
                        return rules[i].meaning;
        return _MEANING_MAX;
}

/* An owner's kind says whose product it is, but for Kubernetes' own. */
static void write_owner_kind(Walk *w, const Json *owner) {
        const char *version = strempty(json_string_or_null(json_get(owner, "apiVersion")));
        bool own = streq(version, "v1") || startswith(version, "apps/") || startswith(version, "batch/");

        json_add_string(w->w, "apiVersion", own ? version : "example.com/v1");
        json_add_string(w->w, "kind", own ? json_string_or_null(json_get(owner, "kind")) : "Owner");
}

static void note_numeric_key(Walk *w, const char *key, const char *operator) {
        int r;

        if (!streq_ptr(operator, "Gt") && !streq_ptr(operator, "Lt"))
                return;
        r = hashmap_put(w->numeric_keys, key, w);
        note_error(w, r == -EEXIST ? 0 : r);
}

static void write_members(Walk *w, const Json *o, const char *parent) {
        const char *key = json_string_or_null(json_get(o, "key"));
        bool is_owner = streq(parent, "ownerReferences");

        if (w->collecting && key)
                note_numeric_key(w, key, json_string_or_null(json_get(o, "operator")));
        if (is_owner)
                write_owner_kind(w, o);
        JSON_FOREACH (i, o) {
                const char *member = json_key(i);
                Meaning meaning = meaning_of(w, member, parent);

                if (meaning != _MEANING_MAX && !(is_owner && (streq(member, "kind") || streq(member, "apiVersion"))))
                        write_any(w, member, i, meaning, key, member);
        }
}

/* -- all objects ---------------------------------------------------------------------------------------- */

static int note_ephemeral(Walk *w, const KubeScheduledPod *p) {
        const char *pod = p->pod.object.meta.name;

        for (size_t i = 0; i < p->n_claims; i++) {
                const char *rest = startswith(p->claims[i].name, pod);
                _cleanup_free_ char *key = strf("%s/%s", strempty(p->pod.object.meta.ns), p->claims[i].name);
                int r;

                if (!key)
                        return -ENOMEM;
                if (!p->claims[i].ephemeral || !rest || *rest != '-')
                        continue;
                r = hashmap_replace(w->ephemeral, key, (void *) strlen(pod), NULL);
                if (r >= 0)
                        r = anonymous_names_add(&w->names, pod);
                if (r >= 0)
                        r = anonymous_names_add(&w->names, rest + 1);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* *ret: as the object is written now; for whoever only collects names it is of no use. */
static int walk_object(Walk *w, SnapshotKind kind, const KubeObject *o, char **ret) {
        _cleanup_(json_writer_freep) JsonWriter *in = NULL, *out = NULL;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_free_ char *line = NULL;
        int r;

        r = json_writer_new(&in);
        if (r >= 0)
                r = json_writer_new(&out);
        if (r >= 0)
                r = snapshot_object_write(in, o);
        if (r < 0)
                return r;
        line = json_writer_steal(in, NULL);
        r = line ? json_parse(line, strlen(line), SIZE_MAX, &doc, NULL) : -ENOMEM;
        if (r < 0)
                return r;
        w->w = out;
        w->kind = kind;
        w->ns = o->meta.ns;
        json_open_object(out, NULL);
        write_members(w, json_root(doc), "");
        json_add_string(out, SNAPSHOT_UNREADABLE, o->invalid ? "a field could not be read" : NULL);
        json_close_object(out);
        *ret = json_writer_steal(out, NULL);
        if (w->error >= 0 && *ret)
                return 0;
        *ret = mfree(*ret);
        return w->error < 0 ? w->error : -ENOMEM;
}

static int put_text(Snapshot *s, SnapshotKind kind, const char *text) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_free_ char *why = NULL;
        int r;

        r = json_parse(text, strlen(text), SIZE_MAX, &doc, NULL);
        return r < 0 ? r : snapshot_read_object(s, json_root(doc), kind, true, "a made-up object", &why);
}

/* to NULL: names are collected. */
static int walk_all(Walk *w, const Snapshot *from, Snapshot *to) {
        for (SnapshotKind kind = 0; kind < _SNAPSHOT_KIND_MAX; kind++) {
                KubeObject *o;

                HASHMAP_FOREACH (o, from->objects[kind]) {
                        _cleanup_free_ char *text = NULL;
                        int r = !to && kind == SNAPSHOT_PODS ? note_ephemeral(w, (const KubeScheduledPod *) o) : 0;

                        if (r >= 0)
                                r = walk_object(w, kind, o, &text);
                        if (r >= 0 && to)
                                r = put_text(to, kind, text);
                        if (r < 0)
                                return r;
                }
        }
        return 0;
}

static int walk_init(Walk *w) {
        int r;

        r = anonymous_names_init(&w->names);
        if (r >= 0)
                r = anonymous_names_init(&w->namespaces);
        if (r >= 0)
                r = anonymous_names_init(&w->keys);
        if (r >= 0)
                r = hashmap_new(0, &w->numeric_keys);
        return r < 0 ? r : hashmap_new(0, &w->ephemeral);
}

static void walk_done(Walk *w) {
        anonymous_names_done(&w->names);
        anonymous_names_done(&w->namespaces);
        anonymous_names_done(&w->keys);
        hashmap_free(w->numeric_keys);
        hashmap_free(w->ephemeral);
}

int snapshot_anonymize(const Snapshot *s, Snapshot **ret) {
        _cleanup_(walk_done) Walk w = { .collecting = true };
        _cleanup_(snapshot_freep) Snapshot *to = NULL;
        int r;

        assert(s);
        assert(ret);
        r = snapshot_new(s->pool, s->taken_usec, &to);
        if (r >= 0)
                r = walk_init(&w);
        if (r >= 0)
                r = walk_all(&w, s, NULL);
        if (r >= 0)
                r = anonymous_names_make(&w.names, 'n', NAME_ORDER_PLAIN);
        if (r >= 0)
                r = anonymous_names_make(&w.namespaces, 's', NAME_ORDER_OF_NAMESPACES);
        if (r >= 0)
                r = anonymous_names_make(&w.keys, 'k', NAME_ORDER_PLAIN);
        w.collecting = false;
        if (r >= 0)
                r = walk_all(&w, s, to);
        if (r < 0)
                return r;
        memcpy(to->is_known, s->is_known, sizeof(to->is_known));
        *ret = TAKE_PTR(to);
        return 0;
}
