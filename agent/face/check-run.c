/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "check.h"
#include "ec2-events.h"
#include "imds-client.h"
#include "kube-kinds.h"
#include "log.h"
#include "notice-sources.h"
#include "string-util.h"
#include "strv.h"

/* Whoever has not answered by then does not. */
#define LIMIT_USEC (6 * USEC_PER_SEC)
#define ANSWER_USEC (5 * USEC_PER_SEC)

/* From ASK_UNIT on, in the order of CheckUnit: is that unit active? */
typedef enum CheckAsk {
        ASK_ACTIVE,
        ASK_AFTER,
        ASK_INHIBITORS,
        ASK_UNIT,
        _ASK_MAX = ASK_UNIT + _CHECK_UNIT_MAX,
} CheckAsk;

typedef struct Check Check;

typedef struct CheckQuestion {
        Check *check;
        CheckAsk which;
        BusSlot *slot;
} CheckQuestion;

#define UNIT_PROPERTY(unit, name) \
        { \
                "org.freedesktop.systemd1", "/org/freedesktop/systemd1/unit/" unit "_2eservice", \
                        "org.freedesktop.DBus.Properties", "Get", "ss", \
                        (const char *const[]){ "org.freedesktop.systemd1.Unit", name }, ANSWER_USEC \
        }
static const BusCall calls[_ASK_MAX] = {
        [ASK_ACTIVE] = UNIT_PROPERTY("vesper_2dagent", "ActiveState"),
        [ASK_AFTER] = UNIT_PROPERTY("vesper_2dagent", "After"),
        [ASK_INHIBITORS] = { "org.freedesktop.login1", "/org/freedesktop/login1",
                             "org.freedesktop.login1.Manager", "ListInhibitors", "", NULL, ANSWER_USEC },
        [ASK_UNIT + CHECK_UNIT_KUBELET] = UNIT_PROPERTY("kubelet", "ActiveState"),
        [ASK_UNIT + CHECK_UNIT_K3S] = UNIT_PROPERTY("k3s", "ActiveState"),
        [ASK_UNIT + CHECK_UNIT_K3S_AGENT] = UNIT_PROPERTY("k3s_2dagent", "ActiveState"),
        [ASK_UNIT + CHECK_UNIT_RKE2_SERVER] = UNIT_PROPERTY("rke2_2dserver", "ActiveState"),
        [ASK_UNIT + CHECK_UNIT_RKE2_AGENT] = UNIT_PROPERTY("rke2_2dagent", "ActiveState"),
        [ASK_UNIT + CHECK_UNIT_K0S_CONTROLLER] = UNIT_PROPERTY("k0scontroller", "ActiveState"),
        [ASK_UNIT + CHECK_UNIT_K0S_WORKER] = UNIT_PROPERTY("k0sworker", "ActiveState"),
        [ASK_UNIT + CHECK_UNIT_MICROK8S] = UNIT_PROPERTY("snap_2emicrok8s_2edaemon_2dkubelite", "ActiveState"),
};

struct Check {
        Env *env;
        KubeClient *client; /* NULL: none */
        CheckFacts facts;
        KubeCall *call;
        NoticeSource *source;
        Power *power;
        CheckKubelet *kubelet;
        CheckQuestion questions[_ASK_MAX];
        Timer *limit, *end;
        unsigned n_open;
        ImdsClient *imds; /* of the Capacity Block; NULL: not on EC2 */
        char *windows;
        char *provider_id; /* of the Node; NULL: not known */
        char *api_error, *metadata_why, *unit_state, *notify_error;
        char **after;
        bool active[_CHECK_UNIT_MAX];
};

static void closed(Check *c) {
        assert(c->n_open > 0);
        if (--c->n_open == 0)
                timer_arm_in(c->end, 0);
}

static void on_end(Timer *t, void *userdata) {
        Check *c = userdata;

        loop_exit(c->env->loop, 0);
}

static void on_node(const KubeReply *reply, void *userdata) {
        Check *c = userdata;
        KubeObject *o;

        c->call = kube_call_free(c->call);
        c->facts.api_http = reply->error ? (int) reply->error->http : 200;
        c->facts.api_no_route = reply->error && reply->error->error == -EHOSTUNREACH;
        if (reply->error && free_and_strdup(&c->api_error, reply->error->message) >= 0)
                c->facts.api_error = c->api_error;
        if (reply->object &&
            kube_object_decode(&kube_node_kind, reply->object, kube_client_pool(c->client), &o) >= 0) {
                c->facts.node_ready = kube_node_is_ready((const KubeNode *) o);
                (void) free_and_strdup(&c->provider_id, ((const KubeNode *) o)->provider_id);
                kube_object_unref(o);
        }
        closed(c);
}

static void on_look(NoticeSource *s, const NoticeLook *look, void *userdata) {
        Check *c = userdata;
        bool first = !c->facts.metadata_polled;

        c->facts.metadata_polled = true;
        c->facts.look = look->result;
        if (look->why && free_and_strdup(&c->metadata_why, look->why) >= 0)
                c->facts.metadata_why = c->metadata_why;
        if (first)
                closed(c);
}

static void on_block_end(const ImdsAnswer *answer, void *userdata) {
        Check *c = userdata;
        const char *why;
        usec_t end_usec;

        c->facts.knows_block_end =
                answer->outcome == IMDS_ANSWERED && ec2_capacity_end_parse(answer->body, answer->size, &end_usec, &why) >= 0;
        closed(c);
}

static void on_life_cycle(const ImdsAnswer *answer, void *userdata) {
        Check *c = userdata;

        c->facts.in_capacity_block = answer->outcome == IMDS_ANSWERED && startswith(answer->body, "capacity-block");
        if (!c->facts.in_capacity_block ||
            imds_client_get(c->imds, "meta-data/tags/instance/vesper.sh:capacity-block-end", on_block_end, c) < 0)
                closed(c);
}

/* Beside the source, which asks for the same tag, and not at once. */
static int ask_life_cycle(Check *c, const AgentConfig *config) {
        int r;

        r = notice_sources_imds(c->env, config, &c->imds);
        if (r >= 0)
                r = imds_client_get(c->imds, "meta-data/instance-life-cycle", on_life_cycle, c);
        if (r >= 0)
                c->n_open++;
        return r;
}

static void on_kubelet(void *userdata) {
        closed(userdata);
}

static void on_state(Power *p, PowerState s, void *userdata) {
}

static void on_limits(Power *p, const PowerLimits *l, bool kubelet_inhibits, void *userdata) {
        Check *c = userdata;

        if (c->facts.limits_known)
                return;
        c->facts.limits_known = true;
        c->facts.limits = *l;
        /* Asked by hand, for the unit; the stop of a pod nobody extends. */
        c->facts.limits.stop_extendable = !c->facts.in_pod;
        c->facts.kubelet_inhibits = kubelet_inhibits;
        closed(c);
}

static void take_reply(Check *c, CheckAsk which, char *const *values) {
        const char *first = values ? values[0] : NULL;

        if (which >= ASK_UNIT)
                c->active[which - ASK_UNIT] = streq_ptr(first, "active");
        else if (which == ASK_ACTIVE) {
                if (first && free_and_strdup(&c->unit_state, first) >= 0)
                        c->facts.unit_state = c->unit_state;
        } else if (which == ASK_INHIBITORS)
                c->facts.inhibited = strv_contains(values, "vesper-agent");
        else
                for (char *const *unit = values; unit && *unit; unit++)
                        (void) strv_extend(&c->after, *unit);
        c->facts.after_kubelet = check_after_kubelet(c->after, c->active);
}

static void on_reply(const BusReply *reply, void *userdata) {
        CheckQuestion *q = userdata;
        Check *c = q->check;

        q->slot = bus_slot_free(q->slot);
        if (reply->error == 0)
                take_reply(c, q->which, reply->values);
        closed(c);
}

static void ask_bus(Check *c) {
        for (CheckAsk a = 0; a < _ASK_MAX; a++) {
                CheckQuestion *q = &c->questions[a];

                *q = (CheckQuestion){ .check = c, .which = a };
                if (c->env->bus->ops->call(c->env->bus, &calls[a], on_reply, q, &q->slot) >= 0)
                        c->n_open++;
        }
}

static int start(Check *c, const AgentConfig *config, KubeAuth *auth) {
        const KubeTarget target = { .kind = &kube_node_kind, .name = config->node_name };
        const KubeCallOptions options = { .lane = HTTP_LANE_URGENT, .timeout_usec = ANSWER_USEC };
        const NoticeSourcesOptions sources = {
                .env = c->env, .config = config, .cloud = metadata_source_known(config), .on_look = on_look, .userdata = c
        };
        size_t n_sources = 0;
        const PowerHandler handler = { on_state, on_limits, c };
        int r;

        if (c->client) {
                r = kube_get(c->client, &target, &options, on_node, c, &c->call);
                if (r < 0)
                        return r;
                c->n_open++;
        }
        if (c->facts.metadata_wanted) {
                r = notice_sources_make(&sources, &c->source, &n_sources);
                if (r < 0)
                        return r;
                c->n_open++;
                c->source->ops->start(c->source);
        }
        if (c->facts.metadata_wanted && sources.cloud == METADATA_SOURCE_EC2) {
                r = ask_life_cycle(c, config);
                if (r < 0)
                        return r;
        }
        r = check_kubelet_new(c->env, auth, config->node_name, &c->facts.kubelet, on_kubelet, c,
                              &c->kubelet);
        if (r < 0)
                return r;
        c->n_open++;
        if (c->env->bus) {
                r = power_new(c->env, &handler, &c->power);
                if (r < 0)
                        return r;
                c->n_open++;
                ask_bus(c);
                power_start(c->power);
        }
        return 0;
}

static bool has_dropin(const char *scope) {
        static const char *const places[] = { "/etc/systemd/system", "/usr/lib/systemd/system",
                                              "/lib/systemd/system" };

        for (size_t i = 0; i < ELEMENTSOF(places); i++) {
                _cleanup_free_ char *path = strf("%s/%s.d/50-vesper.conf", places[i], scope);

                if (path && access(path, R_OK) >= 0)
                        return true;
        }
        return false;
}

static void say_window(const Loop *loop, const PolicyRule *rule, const char *of, StrBuf *b) {
        char next[RFC3339_MAX], span[DURATION_MAX];

        if (rule->verb != POLICY_WINDOW)
                return;
        rfc3339_format(calendar_next(&rule->calendar, loop_wall(loop)), next);
        strbuf_addf(b, "%s%s: %s, the next from %s for %s", b->size > 0 ? "; " : "", of,
                    calendar_active(&rule->calendar, rule->window_usec, loop_wall(loop)) ? "open now" : "not open now", next,
                    duration_format(rule->window_usec, span));
}

/* When each window of [Policy] opens next; free it. */
static int say_windows(const Loop *loop, const AgentConfig *config, char **ret) {
        PolicySettings policy;
        StrBuf b = { 0 };
        int r;

        r = agent_config_policy(config, &policy);
        if (r < 0)
                return r;
        for (size_t i = 0; i < _NOTICE_KIND_MAX; i++)
                say_window(loop, &policy.rules[i], notice_kind_to_string((NoticeKind) i), &b);
        if (policy.has_reboot)
                say_window(loop, &policy.reboot, "reboot", &b);
        policy_settings_done(&policy);
        if (b.size == 0 && !b.failed)
                return 0;
        *ret = strbuf_steal(&b);
        return *ret ? 0 : -ENOMEM;
}

static CheckFacts known_facts(const Env *env, const AgentConfig *config, const char *kube_error) {
        return (CheckFacts){
                .kubeconfig = agent_config_find_kubeconfig(config),
                .kube_error = kube_error,
                .node = config->node_name,
                .api_http = -1,
                .metadata_wanted = metadata_source_known(config) != METADATA_SOURCE_NONE,
                .allows_imdsv1 = config->allow_imdsv1 && metadata_source_known(config) == METADATA_SOURCE_EC2,
                .metadata_auto = config->metadata_source == METADATA_SOURCE_AUTO,
                .in_pod = !isempty(getenv("KUBERNETES_SERVICE_HOST")), /* of each pod, by its kubelet */
                .bus = env->bus,
                .shutdown_drain = config->shutdown_drain,
                .refuse = config->shutdown_too_short == SHUTDOWN_TOO_SHORT_REFUSE,
                .shutdown_max_usec = config->shutdown_max_usec,
                .scope_dropins = has_dropin("cri-containerd-.scope") && has_dropin("crio-.scope") &&
                                 has_dropin("docker-.scope"),
        };
}

/* Asked by hand, for the unit: its credentials lie where systemd has put them. */
static int check_notify(Check *c, const AgentConfig *config) {
        const char *credentials = getenv("CREDENTIALS_DIRECTORY") ?: "/run/credentials/vesper-agent.service";
        NotifyPlan plan;
        int r;

        c->facts.notify_wanted = config->notify.url || config->notify.url_file;
        r = notify_plan_load(&config->notify, credentials, &plan, &c->notify_error);
        if (r < 0 && !c->notify_error)
                return r;
        c->facts.notify_error = c->notify_error;
        notify_plan_done(&plan);
        return 0;
}

static void check_done(Check *c) {
        kube_call_free(c->call);
        notice_source_free(c->source);
        imds_client_free(c->imds);
        free(c->windows);
        power_free(c->power);
        check_kubelet_free(c->kubelet);
        kubelet_facts_done(&c->facts.kubelet);
        for (CheckAsk a = 0; a < _ASK_MAX; a++)
                bus_slot_free(c->questions[a].slot);
        timer_free(c->limit);
        timer_free(c->end);
        free(c->provider_id);
        free(c->api_error);
        free(c->metadata_why);
        free(c->unit_state);
        free(c->notify_error);
        strv_free(c->after);
}

int check_run(Env *env, const AgentConfig *config, const KubeConfig *kubeconfig, KubeClient *client,
              KubeAuth *auth, const char *kube_error, CheckTable *ret) {
        _cleanup_(check_done)
                Check c = { .env = env, .client = client, .facts = known_facts(env, config, kube_error) };
        int r;

        *ret = (CheckTable){ 0 };
        if (kubeconfig)
                c.facts.kube_risk = kubeconfig_risk(kubeconfig, &c.facts.kube_remedy);
        r = say_windows(env->loop, config, &c.windows);
        c.facts.windows = c.windows;
        if (r >= 0)
                r = check_notify(&c, config);
        if (r >= 0)
                r = timer_new(env->loop, "check-limit", on_end, &c, &c.limit);
        if (r >= 0)
                r = timer_new(env->loop, "check-end", on_end, &c, &c.end);
        if (r >= 0)
                r = start(&c, config, auth);
        if (r < 0)
                return r;
        timer_arm_in(c.n_open > 0 ? c.limit : c.end, c.n_open > 0 ? LIMIT_USEC : 0);
        r = loop_run(env->loop);
        if (r < 0)
                return r;
        if (c.call) {
                c.facts.api_http = 0;
                c.facts.api_error = "nothing within 5 s";
        }
        if (c.source) {
                c.facts.identity = notice_source_identity(c.source, c.provider_id, &c.facts.machine);
                c.facts.provider_id = c.provider_id;
        }
        return check_judge(&c.facts, ret);
}
