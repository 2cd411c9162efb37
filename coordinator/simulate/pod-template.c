/* SPDX-License-Identifier: Apache-2.0 */
#include "pod-template.h"

#include <string.h>

#include "alloc-util.h"
#include "string-util.h"

#define TEXT_BYTES_MAX (1u << 20)
#define RULES_MAX 64u /* that bind a pod to others: what each of them costs grows with the cluster */
#define PORTS_MAX 256u /* of the host, each compared with all those of each node */
#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"
#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"
#define EFFECT_NO_SCHEDULE "NoSchedule"
#define EFFECT_NO_EXECUTE "NoExecute"

typedef struct TemplateParser {
        PodTemplate *template;
        InternPool *pool;
        ResourceTable *resources;
        ReadLabels *read_labels;
} TemplateParser;

/* -- small texts ---------------------------------------------------------------------------------------- */

/* *ret stays NULL if it is absent or empty. */
static int take_text(const Json *v, InternPool *pool, const char **ret) {
        const char *s;
        int r = json_string(v, &s);

        if (r == -ENODATA || (r >= 0 && *s == 0))
                return 0;
        if (r < 0)
                return r;
        *ret = intern(pool, s);
        return *ret ? 0 : -ENOMEM;
}

static int take_number(const Json *v, int64_t fallback, int64_t *ret) {
        int r = json_int64(v, ret);

        if (r != -ENODATA)
                return r;
        *ret = fallback;
        return 0;
}

static int take_map(const Json *v, InternPool *pool, KeyValues *ret) {
        if (!v || json_is_null(v) || json_size(v) == 0)
                return 0;
        if (!json_is_object(v))
                return -EINVAL;
        ret->items = new0(KeyValue, json_size(v));
        if (!ret->items)
                return -ENOMEM;
        JSON_FOREACH (i, v) {
                const char *s;
                int r = json_string(i, &s) < 0 ? -EINVAL : key_values_add(ret, pool, json_key(i), s);

                if (r < 0)
                        return r;
        }
        key_values_sort(ret);
        return 0;
}

/* -- requests ------------------------------------------------------------------------------------------- */

typedef struct Amounts {
        int64_t of[RESOURCES_MAX];
} Amounts;

static int amount_parse(const Json *v, const char *resource, int64_t *ret) {
        _cleanup_free_ char *number = json_is_number(v) ? json_format(v) : NULL;
        const char *s = number ?: json_string_or_null(v);
        int r = s ? quantity_parse(s, streq(resource, "cpu"), QUANTITY_ROUND_UP, ret) : -EINVAL;

        if (r == -ERANGE && *s != '-') { /* more than can be counted */
                *ret = AMOUNT_MAX;
                return 0;
        }
        *ret = r < 0 ? 0 : MIN(*ret, AMOUNT_MAX);
        return r;
}

static int add(int64_t *to, int64_t amount) {
        return __builtin_add_overflow(*to, amount, to) ? -ERANGE : 0;
}

/* Adds what an object of resources and quantities asks for, or puts it in the place of what stands there. */
static int take_requests(TemplateParser *p, const Json *requests, bool replace, Amounts *to) {
        if (requests && !json_is_null(requests) && !json_is_object(requests))
                return -EINVAL;
        JSON_FOREACH (v, requests) {
                uint32_t resource;
                int64_t amount;
                int r = amount_parse(v, json_key(v), &amount);

                if (r < 0)
                        return r;
                if (amount == 0 && resource_table_find(p->resources, json_key(v), &resource) < 0)
                        continue; /* nobody has asked for any */
                r = resource_table_number(p->resources, json_key(v), &resource);
                if (r < 0)
                        return r;
                if (replace)
                        to->of[resource] = 0;
                r = add(&to->of[resource], amount);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int add_all(Amounts *to, const Amounts *more) {
        for (size_t i = 0; i < RESOURCES_MAX; i++) {
                int r = add(&to->of[i], more->of[i]);

                if (r < 0)
                        return r;
        }
        return 0;
}

static void raise_to(Amounts *to, const Amounts *least) {
        for (size_t i = 0; i < RESOURCES_MAX; i++)
                to->of[i] = MAX(to->of[i], least->of[i]);
}

static bool is_sidecar(const Json *container) {
        bool always = false;

        (void) json_bool(json_get(container, "always"), &always);
        return always;
}

/*
 * Of k8s.io/component-helpers/resource, PodRequests(): what the containers ask for together, or what an init container does
 * together with the sidecars that were started before it, whichever is more, resource by resource; what the pod as a whole
 * asks for takes its place; and the overhead.
 */
static int sum_requests(TemplateParser *p, const Json *text, Amounts *ret) {
        Amounts sidecars = {}, at_most = {};
        int r;

        *ret = (Amounts){};
        JSON_FOREACH (c, json_get(text, "containers")) {
                r = take_requests(p, json_get(c, "requests"), false, ret);
                if (r < 0)
                        return r;
        }
        JSON_FOREACH (c, json_get(text, "init")) {
                Amounts now = {};

                r = take_requests(p, json_get(c, "requests"), false, &now);
                if (r >= 0 && is_sidecar(c))
                        r = add_all(ret, &now);
                if (r >= 0)
                        r = add_all(&now, &sidecars);
                if (r < 0)
                        return r;
                if (is_sidecar(c))
                        sidecars = now;
                raise_to(&at_most, &now);
        }
        raise_to(ret, &at_most);
        r = take_requests(p, json_get(text, "podRequests"), true, ret);
        return r < 0 ? r : take_requests(p, json_get(text, "overhead"), false, ret);
}

static int take_all_requests(TemplateParser *p, const Json *text) {
        _cleanup_free_ Amounts *sum = new0(Amounts, 1);
        PodTemplate *t = p->template;
        size_t n = 0;
        int r;

        if (!sum)
                return -ENOMEM;
        r = sum_requests(p, text, sum);
        if (r < 0)
                return r;
        for (size_t i = 0; i < RESOURCES_MAX; i++)
                n += sum->of[i] > 0;
        if (n == 0)
                return 0;
        t->requests = new0(ResourceAmount, n);
        if (!t->requests)
                return -ENOMEM;
        for (uint32_t i = 0; i < RESOURCES_MAX; i++)
                if (sum->of[i] > 0)
                        t->requests[t->n_requests++] = (ResourceAmount){ i, MIN(sum->of[i], AMOUNT_MAX) };
        return 0;
}

int64_t pod_template_request(const PodTemplate *t, uint32_t resource) {
        for (size_t i = 0; i < t->n_requests && t->requests[i].resource <= resource; i++)
                if (t->requests[i].resource == resource)
                        return t->requests[i].amount;
        return 0;
}

/* -- ports, tolerations --------------------------------------------------------------------------------- */

static int take_port(TemplateParser *p, const Json *v) {
        HostPort *port = p->template->ports + p->template->n_ports++;
        const char *ip = json_string_or_null(json_get(v, "hostIP"));
        const char *protocol = json_string_or_null(json_get(v, "protocol"));

        if (json_int64(json_get(v, "hostPort"), &port->port) < 0)
                return -EINVAL;
        port->protocol = intern(p->pool, isempty(protocol) ? "TCP" : protocol);
        if (!isempty(ip) && !streq(ip, "0.0.0.0") && !streq(ip, "::")) {
                port->ip = intern(p->pool, ip);
                if (!port->ip)
                        return -ENOMEM;
        }
        return port->protocol ? 0 : -ENOMEM;
}

/* Of containers and of sidecars: an init container that ends gives its ports back before the pod runs. */
static int take_ports(TemplateParser *p, const Json *text) {
        const Json *const lists[] = { json_get(text, "containers"), json_get(text, "init") };
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTSOF(lists); i++)
                JSON_FOREACH (c, lists[i])
                        n += i == 0 || is_sidecar(c) ? json_size(json_get(c, "ports")) : 0;
        if (n == 0)
                return 0;
        if (n > PORTS_MAX && p->template->unmodelled == POD_MODELLED)
                p->template->unmodelled = POD_PORTS_OVER_MAX; /* they are taken all the same */
        p->template->ports = new0(HostPort, n);
        if (!p->template->ports)
                return -ENOMEM;
        for (size_t i = 0; i < ELEMENTSOF(lists); i++)
                JSON_FOREACH (c, lists[i]) {
                        if (i == 1 && !is_sidecar(c))
                                continue;
                        JSON_FOREACH (v, json_get(c, "ports")) {
                                int r = take_port(p, v);

                                if (r < 0)
                                        return r;
                        }
                }
        return 0;
}

static int take_tolerations(TemplateParser *p, const Json *list) {
        PodTemplate *t = p->template;
        int r = 0;

        if (json_size(list) == 0)
                return 0;
        t->tolerations = new0(Toleration, json_size(list));
        if (!t->tolerations)
                return -ENOMEM;
        JSON_FOREACH (v, list) {
                Toleration *one = t->tolerations + t->n_tolerations++;

                one->exists = streq_ptr(json_string_or_null(json_get(v, "operator")), "Exists");
                r = take_text(json_get(v, "key"), p->pool, &one->key);
                if (r >= 0)
                        r = take_text(json_get(v, "value"), p->pool, &one->value);
                if (r >= 0)
                        r = take_text(json_get(v, "effect"), p->pool, &one->effect);
                if (r < 0)
                        return r;
        }
        return 0;
}

bool pod_template_tolerates(const PodTemplate *t, const char *key, const char *value, const char *effect) {
        for (size_t i = 0; i < t->n_tolerations; i++) {
                const Toleration *one = t->tolerations + i;

                if ((one->effect && !streq(one->effect, effect)) || (one->key && !streq(one->key, key)))
                        continue;
                if (one->exists || (one->key && streq(strempty(one->value), strempty(value))))
                        return true;
        }
        return false;
}

bool pod_template_tolerates_all(const PodTemplate *t, const Taint *taints, size_t n_taints) {
        for (size_t i = 0; i < n_taints; i++) {
                const Taint *taint = taints + i;

                if ((streq_ptr(taint->effect, EFFECT_NO_SCHEDULE) || streq_ptr(taint->effect, EFFECT_NO_EXECUTE)) &&
                    !pod_template_tolerates(t, strempty(taint->key), taint->value, taint->effect))
                        return false;
        }
        return true;
}

/* -- affinity to nodes ---------------------------------------------------------------------------------- */

static int take_node_affinity(TemplateParser *p, const Json *affinity) {
        const Json *required = json_path(affinity, REQUIRED, NULL),
                   *preferred = json_get(affinity, PREFERRED);
        PodTemplate *t = p->template;
        int r;

        if (required && !json_is_null(required)) {
                t->has_required = true;
                r = node_terms_parse(json_get(required, "nodeSelectorTerms"), p->pool, &t->required);
                if (r < 0)
                        return r;
        }
        if (json_size(preferred) == 0)
                return 0;
        t->preferred.items = new0(NodeTerm, json_size(preferred));
        if (!t->preferred.items)
                return -ENOMEM;
        JSON_FOREACH (v, preferred) {
                r = node_term_parse(json_get(v, "preference"), p->pool, t->preferred.items + t->preferred.n_items++);
                if (r < 0)
                        return r;
        }
        return 0;
}

bool pod_template_matches_node(const PodTemplate *t, const KeyValues *labels, const char *name) {
        for (size_t i = 0; i < t->node_selector.n_items; i++) {
                const KeyValue *want = t->node_selector.items + i;

                if (!streq_ptr(key_values_get(labels, want->key), want->value))
                        return false;
        }
        return !t->has_required || node_terms_match(&t->required, labels, name);
}

/* -- topology spread ------------------------------------------------------------------------------------ */

static int take_match_keys(TemplateParser *p, const Json *keys, KeyValues *ret) {
        if (json_size(keys) == 0)
                return 0;
        ret->items = new0(KeyValue, json_size(keys));
        if (!ret->items)
                return -ENOMEM;
        JSON_FOREACH (v, keys) {
                const char *key = json_string_or_null(v), *value = key ? key_values_get(&p->template->labels, key) : NULL;
                int r = key ? read_labels_add(p->read_labels, p->template->ns, key) : -EINVAL;

                if (r >= 0 && value)
                        r = key_values_add(ret, p->pool, key, value);
                if (r < 0) /* a key that the pod does not have is passed over */
                        return r;
        }
        return 0;
}

static int take_spread_rule(TemplateParser *p, const Json *v) {
        SpreadRule *rule = p->template->spread + p->template->n_spread++;
        const char *when = json_string_or_null(json_get(v, "whenUnsatisfiable"));
        int r;

        rule->is_hard = !streq_ptr(when, "ScheduleAnyway");
        rule->honors_affinity = !streq_ptr(json_string_or_null(json_get(v, "nodeAffinityPolicy")), "Ignore");
        rule->honors_taints = streq_ptr(json_string_or_null(json_get(v, "nodeTaintsPolicy")), "Honor");
        r = take_text(json_get(v, "topologyKey"), p->pool, &rule->key);
        if (r >= 0 && !rule->key)
                r = -EINVAL;
        if (r >= 0)
                r = take_number(json_get(v, "maxSkew"), 1, &rule->max_skew);
        if (r >= 0)
                r = take_number(json_get(v, "minDomains"), 1, &rule->min_domains);
        if (r >= 0)
                r = selector_parse(json_get(v, "labelSelector"), p->pool, &rule->selector);
        if (r >= 0)
                r = read_labels_gather(p->read_labels, p->template->ns, rule->selector);
        return r < 0 ? r : take_match_keys(p, json_get(v, "matchLabelKeys"), &rule->also);
}

static int take_spread(TemplateParser *p, const Json *list) {
        if (json_size(list) == 0)
                return 0;
        p->template->spread = new0(SpreadRule, json_size(list));
        if (!p->template->spread)
                return -ENOMEM;
        JSON_FOREACH (v, list) {
                int r = take_spread_rule(p, v);

                if (r < 0)
                        return r;
        }
        return 0;
}

static bool spread_rule_matches(const SpreadRule *rule, const PodTemplate *pod) {
        if (!selector_matches(rule->selector, &pod->labels))
                return false;
        for (size_t i = 0; i < rule->also.n_items; i++)
                if (!streq_ptr(key_values_get(&pod->labels, rule->also.items[i].key), rule->also.items[i].value))
                        return false;
        return true;
}

bool spread_rule_counts(const SpreadRule *rule, const PodTemplate *of, const PodTemplate *pod) {
        return of->ns == pod->ns && (rule->also.n_items > 0 || !selector_is_empty(rule->selector)) &&
               spread_rule_matches(rule, pod);
}

bool spread_rule_counts_itself(const SpreadRule *rule, const PodTemplate *of) {
        return spread_rule_matches(rule, of);
}

/* -- affinity to pods ----------------------------------------------------------------------------------- */

static int take_namespaces(TemplateParser *p, const Json *v, PodTerm *t) {
        const Json *names = json_get(v, "namespaces"), *selector = json_get(v, "namespaceSelector");
        bool by_selector = selector && !json_is_null(selector);
        size_t n = json_size(names);
        int r = by_selector ? selector_parse(selector, p->pool, &t->namespace_selector) : 0;

        if (r < 0)
                return r;
        t->namespaces = new0(const char *, n + 1);
        if (!t->namespaces)
                return -ENOMEM;
        JSON_FOREACH (i, names) {
                const char *s = json_string_or_null(i);

                if (!s)
                        return -EINVAL;
                t->namespaces[t->n_namespaces] = intern(p->pool, s);
                if (!t->namespaces[t->n_namespaces])
                        return -ENOMEM;
                t->n_namespaces++;
        }
        if (n > 0 || by_selector)
                return 0;
        t->namespaces[0] = intern(p->pool, p->template->ns); /* its own */
        if (!t->namespaces[0])
                return -ENOMEM;
        t->n_namespaces = 1;
        return 0;
}

static int take_pod_term(TemplateParser *p, const Json *v, PodTerm *t) {
        int r = take_text(json_get(v, "topologyKey"), p->pool, &t->key);
        bool reaches_out;

        if (r >= 0 && !t->key)
                r = -EINVAL;
        if (r >= 0)
                r = selector_parse(json_get(v, "labelSelector"), p->pool, &t->selector);
        if (r >= 0)
                r = take_namespaces(p, v, t);
        if (r < 0)
                return r;
        reaches_out = pod_term_reaches_out(t, p->template->ns);
        p->template->reaches_out |= reaches_out;
        return read_labels_gather(p->read_labels, reaches_out ? NULL : p->template->ns, t->selector);
}

/* Preferred terms have a weight around them. */
static int take_pod_terms(TemplateParser *p, const Json *list, bool weighted, PodTerms *ret) {
        if (json_size(list) == 0)
                return 0;
        ret->items = new0(PodTerm, json_size(list));
        if (!ret->items)
                return -ENOMEM;
        JSON_FOREACH (v, list) {
                int r = take_pod_term(p, weighted ? json_get(v, "podAffinityTerm") : v, ret->items + ret->n_items++);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int take_pod_affinity(TemplateParser *p, const Json *affinity, PodTerms *required, PodTerms *preferred) {
        int r = take_pod_terms(p, json_get(affinity, REQUIRED), false, required);

        return r < 0 ? r : take_pod_terms(p, json_get(affinity, PREFERRED), true, preferred);
}

bool pod_term_is_ambiguous(const PodTerm *term) {
        static const KeyValues none = {};

        return term->namespace_selector && !selector_is_empty(term->namespace_selector) &&
               selector_matches(term->namespace_selector, &none);
}

bool pod_term_reaches_out(const PodTerm *term, const char *ns) {
        for (size_t i = 0; i < term->n_namespaces; i++)
                if (term->namespaces[i] != ns)
                        return true;
        return term->namespace_selector;
}

bool pod_term_matches(const PodTerm *term, const PodTemplate *pod, const KeyValues *namespace_labels, bool broadly) {
        bool in_namespace = false;

        for (size_t i = 0; i < term->n_namespaces; i++)
                in_namespace |= term->namespaces[i] == pod->ns;
        if (!in_namespace && term->namespace_selector)
                in_namespace = namespace_labels ? selector_matches(term->namespace_selector, namespace_labels) ||
                                                          (broadly && pod_term_is_ambiguous(term))
                                                : broadly || selector_is_empty(term->namespace_selector);
        return in_namespace && selector_matches(term->selector, &pod->labels);
}

static void pod_terms_done(PodTerms *t, InternPool *pool) {
        for (size_t i = 0; i < t->n_items; i++) {
                PodTerm *one = t->items + i;

                intern_unref(pool, one->key);
                selector_free(one->selector);
                selector_free(one->namespace_selector);
                for (size_t k = 0; k < one->n_namespaces; k++)
                        intern_unref(pool, one->namespaces[k]);
                free(one->namespaces);
        }
        free(t->items);
        *t = (PodTerms){};
}

/* -- rules that are not looked at ------------------------------------------------------------------------- */

static size_t count_rules(const Json *text) {
        static const char *const kinds[] = { "podAffinity", "podAntiAffinity" };
        size_t n = json_size(json_get(text, "topologySpreadConstraints"));

        for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
                n += json_size(json_path(text, "affinity", kinds[i], REQUIRED, NULL)) + json_size(json_path(text, "affinity", kinds[i], PREFERRED, NULL));
        return n;
}

static int add_key(TemplateParser *p, const char *key) {
        PodTerms *terms = &p->template->anti_affinity;

        terms->items[terms->n_items].key = intern(p->pool, key);
        if (!terms->items[terms->n_items].key)
                return -ENOMEM;
        terms->n_items++;
        return 0;
}

/* On which domains the pod may keep others away, whoever they are: by the keys of its required anti-affinity. Where one cannot be read, by those
 * that almost all rules have. text NULL: it is no JSON. */
static int take_keys(TemplateParser *p, const Json *text, const char *raw) {
        static const char *const usual[] = { "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region" };
        const Json *list = json_path(text, "affinity", "podAntiAffinity", REQUIRED, NULL);
        PodTerms *terms = &p->template->anti_affinity;
        bool lacks_keys = !text && strstr(raw, "\"podAntiAffinity\"");
        int r = 0;

        p->template->rules_are_unread = true;
        pod_terms_done(terms, p->pool);
        if (json_size(list) == 0 && !lacks_keys)
                return 0;
        terms->items = new0(PodTerm, json_size(list) + ELEMENTSOF(usual));
        if (!terms->items)
                return -ENOMEM;
        JSON_FOREACH (v, list) {
                const char *key = json_string_or_null(json_get(v, "topologyKey"));

                lacks_keys |= isempty(key);
                if (r >= 0 && !isempty(key))
                        r = add_key(p, key);
        }
        for (size_t i = 0; i < ELEMENTSOF(usual) && lacks_keys && r >= 0; i++)
                r = add_key(p, usual[i]);
        return r;
}

/* -- the whole ------------------------------------------------------------------------------------------ */

static const struct {
        const char *word;
        PodUnmodelled unmodelled;
} words[] = {
        { "resourceClaims", POD_RESOURCE_CLAIMS },
        { "schedulingGates", POD_SCHEDULING_GATES },
        { "podGroup", POD_GROUP },
        { "disk", POD_DISK_INSIDE },
};

static int take_unmodelled(PodTemplate *t, const Json *text) {
        if (json_get(text, "scheduler"))
                t->unmodelled = POD_FOREIGN_SCHEDULER;
        JSON_FOREACH (v, json_get(text, "unmodelled")) {
                const char *word = json_string_or_null(v);
                bool known = false;

                for (size_t i = 0; i < ELEMENTSOF(words); i++)
                        if (streq_ptr(word, words[i].word)) {
                                t->unmodelled = words[i].unmodelled;
                                known = true;
                        }
                if (!known)
                        return -EINVAL;
        }
        return 0;
}

static int take_template(TemplateParser *p, const Json *text) {
        PodTemplate *t = p->template;
        const Json *affinity = json_get(text, "affinity");
        int r = take_text(json_get(text, "ns"), p->pool, &t->ns);

        if (r >= 0 && !t->ns)
                r = -EINVAL;
        if (r >= 0)
                r = take_unmodelled(t, text);
        if (r >= 0)
                r = take_number(json_get(text, "priority"), 0, &t->priority);
        if (r >= 0)
                r = take_map(json_get(text, "nodeSelector"), p->pool, &t->node_selector);
        if (r >= 0)
                r = take_all_requests(p, text);
        if (r >= 0)
                r = take_ports(p, text);
        if (r >= 0)
                r = take_tolerations(p, json_get(text, "tolerations"));
        if (r >= 0)
                r = take_node_affinity(p, json_get(affinity, "nodeAffinity"));
        if (r >= 0 && count_rules(text) > RULES_MAX) {
                if (t->unmodelled == POD_MODELLED)
                        t->unmodelled = POD_RULES_OVER_MAX;
                return take_keys(p, text, NULL);
        }
        if (r >= 0)
                r = take_spread(p, json_get(text, "topologySpreadConstraints"));
        if (r >= 0)
                r = take_pod_affinity(p, json_get(affinity, "podAffinity"), &t->affinity, &t->preferred_affinity);
        if (r >= 0)
                r = take_pod_affinity(p, json_get(affinity, "podAntiAffinity"), &t->anti_affinity,
                                      &t->preferred_anti_affinity);
        return r;
}

char *pod_template_text(const KubeScheduledPod *pod, const ReadLabels *read_labels) {
        const KeyValues *labels = &pod->pod.object.meta.labels;
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        const Hashmap *own = read_labels_own(read_labels, strempty(pod->pod.object.meta.ns));
        _cleanup_free_ char *second = NULL;

        for (size_t i = 0; i < labels->n_items; i++) {
                if (!read_labels_has(read_labels, own, labels->items[i].key))
                        continue;
                if (!w) {
                        if (json_writer_new(&w) < 0)
                                return NULL;
                        json_open_object(w, NULL);
                }
                json_add_string(w, labels->items[i].key, labels->items[i].value);
        }
        if (!w)
                return strdup(strempty(pod->scheduling));
        json_close_object(w);
        second = json_writer_steal(w, NULL);
        return second ? strf("%s\n%s", strempty(pod->scheduling), second) : NULL;
}

/* JSON as we write it has no newline. */
static int take_lines(TemplateParser *p, const char *text) {
        _cleanup_(json_doc_freep) JsonDoc *first = NULL, *second = NULL;
        const char *newline = strchrnul(text, '\n');
        int r = *newline ? json_parse(newline + 1, strlen(newline + 1), TEXT_BYTES_MAX, &second, NULL) : 0;

        if (r >= 0 && second)
                r = take_map(json_root(second), p->pool, &p->template->labels);
        if (r >= 0)
                r = json_parse(text, (size_t) (newline - text), TEXT_BYTES_MAX, &first, NULL);
        if (r >= 0)
                r = take_template(p, json_root(first));
        if (r >= 0 || r == -ENOMEM)
                return r;
        p->template->unmodelled = POD_UNREADABLE;
        return take_keys(p, first ? json_root(first) : NULL, text);
}

int pod_template_parse(const char *text, InternPool *pool, ResourceTable *resources, ReadLabels *read_labels, PodTemplate **ret) {
        TemplateParser p = { .pool = pool, .resources = resources, .read_labels = read_labels };
        int r;

        p.template = new0(PodTemplate, 1);
        if (!p.template)
                return -ENOMEM;
        p.template->text = intern(pool, text);
        r = p.template->text ? take_lines(&p, text) : -ENOMEM;
        if (r < 0) {
                pod_template_free(p.template, pool);
                return r;
        }
        *ret = p.template;
        return 0;
}

PodTemplate *pod_template_free(PodTemplate *t, InternPool *pool) {
        if (!t)
                return NULL;

        intern_unref(pool, t->text);
        intern_unref(pool, t->ns);
        key_values_done(&t->labels, pool);
        key_values_done(&t->node_selector, pool);
        free(t->requests);
        for (size_t i = 0; i < t->n_ports; i++) {
                intern_unref(pool, t->ports[i].protocol);
                intern_unref(pool, t->ports[i].ip);
        }
        free(t->ports);
        for (size_t i = 0; i < t->n_tolerations; i++) {
                intern_unref(pool, t->tolerations[i].key);
                intern_unref(pool, t->tolerations[i].value);
                intern_unref(pool, t->tolerations[i].effect);
        }
        free(t->tolerations);
        node_terms_done(&t->required, pool);
        node_terms_done(&t->preferred, pool);
        for (size_t i = 0; i < t->n_spread; i++) {
                intern_unref(pool, t->spread[i].key);
                selector_free(t->spread[i].selector);
                key_values_done(&t->spread[i].also, pool);
        }
        free(t->spread);
        pod_terms_done(&t->affinity, pool);
        pod_terms_done(&t->anti_affinity, pool);
        pod_terms_done(&t->preferred_affinity, pool);
        pod_terms_done(&t->preferred_anti_affinity, pool);
        free(t);
        return NULL;
}
