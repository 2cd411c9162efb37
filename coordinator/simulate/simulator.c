/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc-util.h"
#include "marks.h"
#include "simulator-internal.h"
#include "string-util.h"

/* Nodes that may be added by simulator_add_node(). */
#define NEW_NODES_MAX 1024u

static const char *const reason_table[_FIT_REASON_MAX] = {
        [FIT_OK] = "fits",
        [FIT_NOT_A_DESTINATION] = "not a destination",
        [FIT_TAINT] = "taint",
        [FIT_NODE_AFFINITY] = "node affinity",
        [FIT_RESOURCES] = "resources",
        [FIT_PORTS] = "host port",
        [FIT_VOLUME] = "volume",
        [FIT_VOLUME_LIMIT] = "volume limit",
        [FIT_SPREAD] = "topology spread",
        [FIT_AFFINITY] = "pod affinity",
        [FIT_ANTI_AFFINITY] = "pod anti-affinity",
        [FIT_PREFERENCE] = "preference",
};

static const char *const unmodelled_table[_POD_UNMODELLED_MAX] = {
        [POD_MODELLED] = "MODELLED",
        [POD_RESOURCE_CLAIMS] = "RESOURCE_CLAIMS",
        [POD_SCHEDULING_GATES] = "SCHEDULING_GATES",
        [POD_GROUP] = "POD_GROUP",
        [POD_FOREIGN_SCHEDULER] = "FOREIGN_SCHEDULER",
        [POD_DISK_INSIDE] = "DISK_INSIDE",
        [POD_UNREADABLE] = "UNREADABLE",
        [POD_SNAPSHOT_INCOMPLETE] = "SNAPSHOT_INCOMPLETE",
        [POD_TOO_MANY_RULES] = "TOO_MANY_RULES",
        [POD_RULES_OVER_MAX] = "MORE_THAN_64_RULES",
        [POD_PORTS_OVER_MAX] = "MORE_THAN_256_HOST_PORTS",
};

static const char *const unmodelled_texts[_POD_UNMODELLED_MAX] = {
        [POD_RESOURCE_CLAIMS] = "it has resource claims (dynamic resource allocation)",
        [POD_SCHEDULING_GATES] = "it has scheduling gates",
        [POD_GROUP] = "it belongs to a group of pods that are placed together",
        [POD_FOREIGN_SCHEDULER] = "another scheduler places it (schedulerName)",
        [POD_DISK_INSIDE] = "it mounts a disk that is no PersistentVolume",
        [POD_UNREADABLE] = "a field of it that the scheduler reads cannot be understood",
        [POD_SNAPSHOT_INCOMPLETE] = "it needs objects of a kind that was not read",
        [POD_TOO_MANY_RULES] = "its namespace has " TOO_MANY_RULES_TEXT,
        [POD_RULES_OVER_MAX] = "more than 64 rules bind it to other pods",
        [POD_PORTS_OVER_MAX] = "it has more than 256 host ports",
};

const char *fit_reason_to_string(FitReason r) {
        return reason_table[r];
}

const char *pod_unmodelled_to_string(PodUnmodelled u) {
        return unmodelled_table[u];
}

const char *pod_unmodelled_text(PodUnmodelled u) {
        return unmodelled_texts[u];
}

/* -- labels that are asked for ------------------------------------------------------------------------------ */

static bool may_have_rules(const char *scheduling) {
        return strstr(scheduling, "\"podAffinity\"") || strstr(scheduling, "\"podAntiAffinity\"") || strstr(scheduling, "\"topologySpreadConstraints\"");
}

static int read_rules_of(Simulator *s, Hashmap *seen, const char *scheduling) {
        PodTemplate *t;
        int r;

        if (!may_have_rules(scheduling) || hashmap_contains(seen, scheduling))
                return 0;
        r = hashmap_put(seen, scheduling, NULL);
        if (r >= 0)
                r = pod_template_parse(scheduling, s->pool, &s->resources, s->read_labels, &t);
        if (r >= 0)
                pod_template_free(t, s->pool);
        return r;
}

/* -- templates ------------------------------------------------------------------------------------------ */

/* Rules that are not looked at say nothing about preferences either. */
static uint32_t count_preferences(const PodTemplate *t) {
        size_t n = t->preferred.n_items + t->preferred_affinity.n_items + t->preferred_anti_affinity.n_items;

        for (size_t i = 0; i < t->n_spread; i++)
                n += !t->spread[i].is_hard;
        return t->rules_are_unread ? 0 : (uint32_t) n;
}

static int add_template(Simulator *s, const char *text, const char *ns, uint32_t *ret) {
        size_t n_read = read_labels_size(s->read_labels);
        SimulatorTemplate *t;
        int r = GREEDY_REALLOC(s->templates, s->templates_allocated, (size_t) s->n_templates + 1);

        if (r < 0)
                return r;
        t = s->templates + s->n_templates;
        *t = (SimulatorTemplate){ .n_refusing = -1 };
        r = pod_template_parse(text, s->pool, &s->resources, s->read_labels, &t->parsed);
        if (r < 0)
                return r;
        if (!t->parsed->ns)
                t->parsed->ns = intern(s->pool, strempty(ns));
        if (!t->parsed->ns) {
                pod_template_free(t->parsed, s->pool);
                return -ENOMEM;
        }
        t->asks_for_name = node_terms_ask_for_name(&t->parsed->required);
        t->n_preferences = count_preferences(t->parsed);
        s->is_too_coarse |= read_labels_size(s->read_labels) > n_read;
        *ret = s->n_templates++;
        return hashmap_put(s->template_numbers, t->parsed->text, (void *) (uintptr_t) s->n_templates);
}

/* When the simulator is made, all rules have been read. */
static bool is_first_of_namespace(const Simulator *s, const KubeScheduledPod *pod) {
        for (uint32_t i = 0; i < s->n_templates; i++)
                if (s->templates[i].parsed->ns == pod->pod.object.meta.ns) /* both are interned */
                        return false;
        return s->n_first_templates > 0 && pod->scheduling;
}

/* Its namespace has no pods that its rules could tell apart, and that count as one kind; other namespaces may. */
static int read_rules_of_first(Simulator *s, const KubeScheduledPod *pod) {
        _cleanup_(hashmap_freep) Hashmap *seen = NULL;
        size_t n_read = read_labels_size_of_all(s->read_labels);
        int r = hashmap_new(HASHMAP_BORROW_KEYS, &seen);

        if (r >= 0)
                r = read_rules_of(s, seen, pod->scheduling);
        s->is_too_coarse |= read_labels_size_of_all(s->read_labels) > n_read;
        return r;
}

static char *template_text_of(Simulator *s, const KubeScheduledPod *pod) {
        char *text = pod_template_text(pod, s->read_labels);

        if (!text || hashmap_contains(s->template_numbers, text) || !is_first_of_namespace(s, pod))
                return text;
        free(text);
        return read_rules_of_first(s, pod) < 0 ? NULL : pod_template_text(pod, s->read_labels);
}

/* Texts and labels are interned, and pods of one owner follow one another: most are as the one before. */
static bool is_as_before(const Simulator *s, uint32_t pod) {
        const KubeScheduledPod *a = s->pods[pod].object, *b = pod > 0 ? s->pods[pod - 1].object : NULL;

        return b && a->scheduling == b->scheduling && key_values_are_same(&a->pod.object.meta.labels, &b->pod.object.meta.labels);
}

static int find_or_add_template(Simulator *s, uint32_t pod, uint32_t *ret) {
        _cleanup_free_ char *text = NULL;
        uintptr_t number;

        if (is_as_before(s, pod)) {
                *ret = s->pods[pod - 1].template;
                return 0;
        }
        text = template_text_of(s, s->pods[pod].object);
        if (!text)
                return -ENOMEM;
        number = (uintptr_t) hashmap_get(s->template_numbers, text);
        if (number == 0)
                return add_template(s, text, s->pods[pod].object->pod.object.meta.ns, ret);
        *ret = (uint32_t) (number - 1);
        return 0;
}

static int read_rules_of_all(Simulator *s, Hashmap *seen, KubeObject *const *pods, size_t n) {
        const char *last = NULL;
        int r = 0;

        for (size_t i = 0; i < n && r >= 0; i++) {
                const char *scheduling = ((const KubeScheduledPod *) pods[i])->scheduling;

                if (scheduling && scheduling != last)
                        r = read_rules_of(s, seen, scheduling);
                last = scheduling;
        }
        return r;
}

static int gather_read_labels(Simulator *s, KubeObject *const *pods, size_t n, const AwaitedPods *awaited) {
        _cleanup_(hashmap_freep) Hashmap *seen = NULL;
        const KubePdb *pdb;
        int r = hashmap_new(HASHMAP_BORROW_KEYS, &seen);

        if (r >= 0)
                r = read_labels_new(&s->read_labels);
        HASHMAP_FOREACH (pdb, s->snapshot->objects[SNAPSHOT_PDBS])
                if (r >= 0)
                        r = read_labels_gather(s->read_labels, strempty(pdb->object.meta.ns), pdb->selector);
        if (r >= 0)
                r = read_rules_of_all(s, seen, pods, n);
        return r < 0 ? r : read_rules_of_all(s, seen, awaited->pods, awaited->n);
}

static void template_done(SimulatorTemplate *t, InternPool *pool) {
        pod_template_free(t->parsed, pool);
        free(t->counted);
        free(t->spread);
        free(t->affinity);
        free(t->anti_affinity);
        free(t->soft_spread);
        free(t->soft_affinity);
        free(t->soft_anti_affinity);
        free(t->inverse);
        free(t->verdicts);
        free(t->mask);
}

/* -- nodes ---------------------------------------------------------------------------------------------- */

static int reserve_nodes(Simulator *s, size_t n) {
        size_t blocks = n / BLOCK_NODES + 1;

        s->nodes = new0(SimulatorNode, n);
        s->score = new0(int32_t, n);
        s->block_cpu = new0(int64_t, blocks);
        s->block_memory = new0(int64_t, blocks);
        s->block_has_changed = new0(bool, blocks);
        s->nodes_allocated = n;
        if (!s->nodes || !s->score || !s->block_cpu || !s->block_memory || !s->block_has_changed)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                s->score[i] = SCORE_NONE;
        return score_index_init(&s->by_score, n);
}

int simulator_name_node(Simulator *s, uint32_t number, const char *name) {
        s->nodes[number].name = intern(s->pool, name);
        return s->nodes[number].name ? hashmap_put(s->node_numbers, name, (void *) ((uintptr_t) number + 1)) : -ENOMEM;
}

/* Returns true if the node's pods go, whoever evicts them, and no others should come. An interruption that cannot be read counts. */
static bool is_leaving(const KubeNode *n) {
        return n->object.meta.deletion_usec > 0 || n->interruption_is_unreadable || kube_node_standing_interruption(n) ||
               kube_node_standing_heard(n);
}

static int load_nodes(Simulator *s) {
        _cleanup_free_ KubeObject **objects = NULL;
        size_t n = 0;
        int r = snapshot_sorted(s->snapshot, SNAPSHOT_NODES, &objects, &n);

        if (r >= 0)
                r = hashmap_new(0, &s->node_numbers);
        if (r >= 0)
                r = reserve_nodes(s, n + NEW_NODES_MAX);
        for (size_t i = 0; i < n && r >= 0; i++) {
                SimulatorNode *node = s->nodes + i;

                node->object = (const KubeScheduledNode *) objects[i];
                node->labels = objects[i]->meta.labels;
                node->first_pod = NOWHERE;
                node->is_leaving = is_leaving(&node->object->node);
                node->takes_pods = node->object->is_initialized && !node->object->node.unschedulable && !node->is_leaving;
                s->n_first_nodes = ++s->n_nodes;
                r = simulator_name_node(s, (uint32_t) i, objects[i]->meta.name);
        }
        return r;
}

/* Of what cannot be read there is none. */
static int64_t quantity_of(const char *text, uint32_t resource) {
        int64_t amount;

        return quantity_parse(text, resource == RESOURCE_CPU, QUANTITY_ROUND_DOWN, &amount) < 0 ? 0 : MIN(amount, AMOUNT_MAX);
}

static int load_room(Simulator *s) {
        for (uint32_t i = 0; i < s->n_nodes; i++) {
                const KeyValues *a = &s->nodes[i].object->allocatable;

                for (size_t k = 0; k < a->n_items; k++) {
                        uint32_t resource;
                        int r = resource_table_number(&s->resources, a->items[k].key, &resource);

                        if (r < 0 && r != -E2BIG)
                                return r;
                }
        }
        /* Of all resources that there may be once pods come that ask for others: what is not touched is no memory. */
        s->free = new0(int64_t, RESOURCES_MAX * s->nodes_allocated);
        s->allocatable = new0(int64_t, RESOURCES_MAX * s->nodes_allocated);
        if (!s->free || !s->allocatable)
                return -ENOMEM;
        for (uint32_t i = 0; i < s->n_nodes; i++) {
                const KeyValues *a = &s->nodes[i].object->allocatable;

                for (size_t k = 0; k < a->n_items; k++) {
                        uint32_t resource;

                        if (resource_table_find(&s->resources, a->items[k].key, &resource) >= 0)
                                s->free[resource * s->nodes_allocated + i] =
                                        s->allocatable[resource * s->nodes_allocated + i] =
                                                quantity_of(a->items[k].value, resource);
                }
                simulator_score_node(s, i);
        }
        return 0;
}

/* -- pods ----------------------------------------------------------------------------------------------- */

static bool pod_is_terminal(const KubePod *p) {
        return p->phase == POD_SUCCEEDED || p->phase == POD_FAILED;
}

static bool is_of_stateful_set(const ObjectMeta *m) {
        const OwnerRef *o = object_meta_controller(m);

        return o && streq_ptr(o->kind, "StatefulSet") && startswith(strempty(o->api_version), "apps/");
}

static int add_home_pod(Simulator *s, uint32_t node, uint32_t pod) {
        SimulatorNode *n = s->nodes + node;
        int r = GREEDY_REALLOC(n->home_pods, n->home_pods_allocated, n->n_home_pods + 1);

        if (r < 0)
                return r;
        n->home_pods[n->n_home_pods++] = pod;
        return 0;
}

static uint64_t uid_head(const char *uid) {
        uint64_t head = 0;

        for (size_t i = 0, n = strnlen(uid, sizeof(head)); i < sizeof(head); i++)
                head = head << 8 | (i < n ? (uint8_t) uid[i] : 0);
        return head;
}

/* A node that takes no pods keeps no promise: kube-scheduler looks for another one. */
static uint32_t promised_node(const Simulator *s, const KubeScheduledPod *object) {
        uint32_t node;

        if (!object->nominated_node || object->pod.node_name || object->pod.object.meta.deletion_usec > 0 || pod_is_terminal(&object->pod) ||
            simulator_find_node(s, object->nominated_node, &node) < 0 || !s->nodes[node].takes_pods)
                return NOWHERE;
        return node;
}

int simulator_fill_pod(Simulator *s, uint32_t number, const KubeScheduledPod *object, bool is_vanished) {
        const KubePod *pod = &object->pod;
        const ObjectMeta *m = &pod->object.meta;
        SimulatorPod *p = s->pods + number;
        uint32_t home = NOWHERE;
        int r;

        *p = (SimulatorPod){ .object = object, .is_vanished = is_vanished, .node = NOWHERE, .next = NOWHERE, .previous = NOWHERE, .promised = NOWHERE };
        p->creation_usec = m->creation_usec;
        p->uid_head = uid_head(strempty(m->uid));
        p->is_terminating = m->deletion_usec > 0 && !is_vanished;
        p->moves = !pod_is_terminal(pod) && !pod->is_daemon && !pod->is_static &&
                   (!p->is_terminating || is_of_stateful_set(m));
        if (pod->node_name && !pod_is_terminal(pod) && !is_vanished)
                (void) simulator_find_node(s, pod->node_name, &home);
        p->home = home;
        if (!is_vanished)
                p->promised = promised_node(s, object);
        r = home == NOWHERE ? 0 : add_home_pod(s, home, number);
        if (r >= 0)
                r = find_or_add_template(s, number, &p->template);
        if (r < 0)
                return r;
        p->unsettles = object->is_resizing || simulator_judge_pod(s, number) == POD_UNREADABLE;
        if (home != NOWHERE)
                s->nodes[home].n_unsettled += p->unsettles;
        return 0;
}

PodUnmodelled simulator_judge_pod(const Simulator *s, uint32_t pod) {
        return s->pods[pod].object->pod.object.invalid ? POD_UNREADABLE : template_of(s, pod)->unmodelled;
}

static int load_pods(Simulator *s, const AwaitedPods *awaited) {
        _cleanup_free_ KubeObject **objects = NULL;
        size_t n = 0;
        int r = snapshot_sorted(s->snapshot, SNAPSHOT_PODS, &objects, &n);

        if (r >= 0)
                r = hashmap_new(HASHMAP_BORROW_KEYS, &s->template_numbers);
        if (r >= 0)
                r = gather_read_labels(s, objects, n, awaited);
        if (r >= 0)
                r = GREEDY_REALLOC(s->pods, s->pods_allocated, n + awaited->n + 1);
        for (size_t i = 0; i < n && r >= 0; i++)
                r = simulator_fill_pod(s, s->n_pods++, (const KubeScheduledPod *) objects[i], false);
        for (size_t i = 0; i < awaited->n && r >= 0; i++)
                r = simulator_fill_pod(s, s->n_pods++, (const KubeScheduledPod *) awaited->pods[i], true);
        return r;
}

static void judge_pods(Simulator *s) {
        for (uint32_t i = 0; i < s->n_pods; i++)
                s->pods[i].unmodelled = simulator_judge_pod(s, i);
}

/* -- a pod comes to a node, or goes --------------------------------------------------------------------- */

static void link_pod(Simulator *s, uint32_t pod, uint32_t node) {
        SimulatorNode *n = s->nodes + node;

        s->pods[pod].node = node;
        s->pods[pod].previous = NOWHERE;
        s->pods[pod].next = n->first_pod;
        if (n->first_pod != NOWHERE)
                s->pods[n->first_pod].previous = pod;
        n->first_pod = pod;
}

static void unlink_pod(Simulator *s, uint32_t pod) {
        SimulatorPod *p = s->pods + pod;

        if (p->previous == NOWHERE)
                s->nodes[p->node].first_pod = p->next;
        else
                s->pods[p->previous].next = p->next;
        if (p->next != NOWHERE)
                s->pods[p->next].previous = p->previous;
        p->node = NOWHERE;
}

int simulator_bring_pod(Simulator *s, uint32_t pod, uint32_t node) {
        int r = simulator_count_ports(s, pod, node, 1);

        if (r < 0)
                return r;
        r = simulator_count_volumes(s, pod, node, 1);
        if (r < 0) {
                (void) simulator_count_ports(s, pod, node, -1);
                return r;
        }
        simulator_count_room(s, pod, node, 1);
        simulator_count_domains(s, pod, node, 1);
        link_pod(s, pod, node);
        return 0;
}

void simulator_drop_pod(Simulator *s, uint32_t pod) {
        uint32_t node = s->pods[pod].node;

        unlink_pod(s, pod);
        simulator_count_domains(s, pod, node, -1);
        simulator_count_room(s, pod, node, -1);
        (void) simulator_count_volumes(s, pod, node, -1);
        (void) simulator_count_ports(s, pod, node, -1);
}

static int bring_all_home(Simulator *s) {
        for (uint32_t i = 0; i < s->n_pods; i++) {
                uint32_t seat = simulator_first_seat(s->pods + i);
                int r = seat == NOWHERE ? 0 : simulator_bring_pod(s, i, seat);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* -- new and free --------------------------------------------------------------------------------------- */

static int simulator_load(Simulator *s, const AwaitedPods *awaited) {
        int r = resource_table_init(&s->resources, s->pool);

        if (r >= 0)
                r = load_nodes(s);
        if (r >= 0)
                r = load_pods(s, awaited);
        if (r >= 0)
                r = load_room(s);
        if (r >= 0)
                r = simulator_classify_nodes(s);
        if (r >= 0)
                r = simulator_make_groups(s);
        if (r < 0)
                return r;
        s->n_first_templates = s->n_templates;
        judge_pods(s);
        r = simulator_load_volumes(s);
        if (r >= 0)
                r = bring_all_home(s);
        return r < 0 ? r : simulator_load_attachments(s);
}

bool simulator_is_too_coarse(const Simulator *s) {
        const KubePdb *pdb;

        HASHMAP_FOREACH (pdb, s->snapshot->objects[SNAPSHOT_PDBS])
                if (!read_labels_has_all(s->read_labels, strempty(pdb->object.meta.ns), pdb->selector))
                        return true;
        return false;
}

int simulator_new_within(const Snapshot *snapshot, const AwaitedPods *awaited, const SimulatorBounds *bounds, Simulator **ret) {
        Simulator *s = new0(Simulator, 1);
        int r;

        if (!s)
                return -ENOMEM;
        s->snapshot = snapshot;
        s->pool = snapshot->pool;
        s->bounds = *bounds;
        s->search_work_max = simulator_search_work;
        r = simulator_load(s, awaited);
        if (r < 0) {
                simulator_free(s);
                return r;
        }
        assert(!s->is_too_coarse);
        *ret = s;
        return 0;
}

int simulator_new(const Snapshot *snapshot, Simulator **ret) {
        static const AwaitedPods nobody = {};

        return simulator_new_within(snapshot, &nobody, &simulator_bounds, ret);
}

void simulator_node_done(SimulatorNode *n, InternPool *pool) {
        intern_unref(pool, n->name);
        if (n->owns_labels)
                key_values_done(&n->labels, pool);
        free(n->ports);
        free(n->volumes);
        free(n->home_pods);
}

static void volume_done(SimulatorVolume *v, InternPool *pool) {
        intern_unref(pool, v->driver);
        intern_unref(pool, v->handle);
        intern_unref(pool, v->zone);
        intern_unref(pool, v->region);
        node_terms_done(&v->affinity, pool);
}

Simulator *simulator_free(Simulator *s) {
        if (!s)
                return NULL;

        for (uint32_t i = 0; i < s->n_nodes; i++)
                simulator_node_done(s->nodes + i, s->pool);
        free(s->nodes);
        hashmap_free(s->node_numbers);
        free(s->free);
        free(s->allocatable);
        free(s->score);
        free(s->block_cpu);
        free(s->block_memory);
        free(s->block_has_changed);
        score_index_done(&s->by_score);
        hashmap_free(s->asked_labels);
        hashmap_free(s->classes);
        hashmap_free(s->template_numbers);
        read_labels_free(s->read_labels);
        for (uint32_t i = 0; i < s->n_pods; i++)
                free(s->pods[i].volumes);
        free(s->pods);
        for (uint32_t i = 0; i < s->n_templates; i++)
                template_done(s->templates + i, s->pool);
        free(s->templates);
        for (uint32_t i = 0; i < s->n_volumes; i++)
                volume_done(s->volumes + i, s->pool);
        free(s->volumes);
        hashmap_free(s->volume_numbers);
        simulator_groups_done(s);
        free(s->competitors);
        free(s->log);
        resource_table_done(&s->resources);
        return mfree(s);
}

/* -- what there is -------------------------------------------------------------------------------------- */

uint32_t simulator_n_nodes(const Simulator *s) {
        return s->n_nodes;
}

const KubeScheduledNode *simulator_node(const Simulator *s, uint32_t node) {
        return s->nodes[node].object;
}

const char *simulator_node_name(const Simulator *s, uint32_t node) {
        return s->nodes[node].name;
}

int simulator_find_node(const Simulator *s, const char *name, uint32_t *ret) {
        uintptr_t number = (uintptr_t) hashmap_get(s->node_numbers, name);

        if (number == 0)
                return -ENOENT;
        *ret = (uint32_t) (number - 1);
        return 0;
}

uint32_t simulator_n_pods(const Simulator *s) {
        return s->n_pods;
}

const KubeScheduledPod *simulator_pod(const Simulator *s, uint32_t pod) {
        return s->pods[pod].object;
}

const uint32_t *simulator_pods_of(const Simulator *s, uint32_t node, size_t *ret_n) {
        *ret_n = s->nodes[node].n_home_pods;
        return s->nodes[node].home_pods;
}

bool simulator_pod_runs(const Simulator *s, uint32_t pod) {
        return s->pods[pod].home != NOWHERE;
}

int simulator_find_running(const Simulator *s, const KubeScheduledPod *object, uint32_t *ret) {
        uint32_t node;
        int r = object->pod.node_name ? simulator_find_node(s, object->pod.node_name, &node) : -ENOENT;

        if (r < 0)
                return r;
        for (size_t i = 0; i < s->nodes[node].n_home_pods; i++)
                if (s->pods[s->nodes[node].home_pods[i]].object == object) {
                        *ret = s->nodes[node].home_pods[i];
                        return 0;
                }
        return -ENOENT;
}

bool simulator_pod_moves(const Simulator *s, uint32_t pod) {
        return s->pods[pod].moves;
}

PodUnmodelled simulator_pod_unmodelled(const Simulator *s, uint32_t pod) {
        return s->pods[pod].unmodelled;
}

const char *const *simulator_left_out(const Simulator *s, size_t *ret_n) {
        *ret_n = s->n_left_out;
        return s->left_out;
}

uint32_t simulator_template_of(const Simulator *s, uint32_t pod) {
        return s->pods[pod].template;
}

uint32_t simulator_n_templates(const Simulator *s) {
        return s->n_templates;
}

uint32_t simulator_node_of(const Simulator *s, uint32_t pod) {
        return s->pods[pod].node;
}

uint32_t simulator_home_of(const Simulator *s, uint32_t pod) {
        return s->pods[pod].home;
}

static int64_t amount_of(const Simulator *s, const int64_t *table, uint32_t node, const char *resource) {
        uint32_t number;

        return resource_table_find(&s->resources, resource, &number) < 0 ? 0 : table[number * s->nodes_allocated + node];
}

int64_t simulator_free_room(const Simulator *s, uint32_t node, const char *resource) {
        return amount_of(s, s->free, node, resource);
}

int64_t simulator_allocatable(const Simulator *s, uint32_t node, const char *resource) {
        return amount_of(s, s->allocatable, node, resource);
}

int64_t simulator_request(const Simulator *s, uint32_t pod, const char *resource) {
        uint32_t number;

        return resource_table_find(&s->resources, resource, &number) < 0 ? 0 : pod_template_request(template_of(s, pod), number);
}

/* -- changes, and taking them back ---------------------------------------------------------------------- */

SimulatorMark simulator_mark(const Simulator *s) {
        return s->n_log;
}

static int log_reserve(Simulator *s) {
        return GREEDY_REALLOC(s->log, s->log_allocated, s->n_log + 1);
}

int simulator_take_off(Simulator *s, uint32_t pod) {
        SimulatorPod *p = s->pods + pod;
        int r = log_reserve(s);

        if (r < 0 || p->node == NOWHERE)
                return r;
        s->log[s->n_log++] = (UndoEntry){ UNDO_TAKE_OFF, p->is_successor, pod, p->node };
        simulator_drop_pod(s, pod);
        p->is_successor = true;
        return 0;
}

int simulator_place(Simulator *s, uint32_t pod, uint32_t node) {
        int r = log_reserve(s);

        assert(s->pods[pod].node == NOWHERE);
        if (r >= 0)
                r = simulator_bring_pod(s, pod, node);
        if (r >= 0)
                s->log[s->n_log++] = (UndoEntry){ UNDO_PLACE, false, pod, node };
        return r;
}

static void set_removed(Simulator *s, uint32_t node, bool removed) {
        s->nodes[node].is_removed = removed;
        simulator_count_ghost(s, node, removed ? 1 : -1);
        simulator_score_node(s, node);
}

int simulator_remove_node(Simulator *s, uint32_t node) {
        SimulatorNode *n = s->nodes + node;
        SimulatorMark mark = simulator_mark(s);
        uint32_t next;
        int r = 0;

        assert(!n->is_removed);
        for (uint32_t i = n->first_pod; i != NOWHERE && r >= 0; i = next) {
                next = s->pods[i].next;
                if (s->pods[i].moves)
                        r = simulator_take_off(s, i);
        }
        if (r >= 0)
                r = log_reserve(s);
        if (r < 0) {
                simulator_undo(s, mark);
                return r;
        }
        s->log[s->n_log++] = (UndoEntry){ .kind = UNDO_REMOVE, .node = node };
        set_removed(s, node, true);
        return 0;
}

void simulator_undo(Simulator *s, SimulatorMark mark) {
        while (s->n_log > mark) {
                const UndoEntry *e = s->log + --s->n_log;
                int r = 0;

                switch (e->kind) {
                case UNDO_PLACE:
                        simulator_drop_pod(s, e->pod);
                        break;
                case UNDO_TAKE_OFF:
                        s->pods[e->pod].is_successor = e->was_successor;
                        r = simulator_bring_pod(s, e->pod, e->node);
                        break;
                case UNDO_REMOVE:
                        set_removed(s, e->node, false);
                        break;
                }
                assert(r >= 0); /* what was there has its room */
                (void) r;
        }
}
