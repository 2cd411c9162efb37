/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "agent-rig.h"
#include "awake-check.h"
#include "cmocka-test.h"
#include "hashmap.h"
#include "kubeconfig.h"
#include "page.h"

#define RECORD "intent.json"

/* -- /run -------------------------------------------------------------------------------------- */

static AgentRig *rig_of(StateStore *s) {
        return CONTAINER_OF(s, AgentRig, store);
}

static int disk_read(StateStore *s, const char *name, char **ret, size_t *ret_size) {
        AgentRig *r = rig_of(s);

        assert_string_equal(name, RECORD);
        if (r->disk_unreadable)
                return -EIO;
        if (!r->record)
                return -ENOENT;
        *ret = strdup(r->record);
        *ret_size = strlen(r->record);
        return 0;
}

static int disk_write(StateStore *s, const char *name, const void *data, size_t size) {
        AgentRig *r = rig_of(s);

        assert_string_equal(name, RECORD);
        if (r->dead)
                return -EIO;
        r->n_writes++;
        if (r->disk_error != 0)
                return r->disk_error;
        if (r->n_writes == r->die_at_write)
                r->dead = true;
        if (!r->dead || r->death == RIG_DEATH_AFTER) {
                free(r->record);
                r->record = memdup_str(data, size);
        }
        return r->dead ? -EIO : 0;
}

static void disk_free(StateStore *s) {
}

static const StateStoreOps disk_ops = { disk_read, disk_write, disk_free };

/* -- the process -------------------------------------------------------------------------------- */

static void on_log(LogLevel level, const char *message_id, const char *text, const LogField *fields,
                   size_t n_fields, void *userdata) {
        AgentRig *r = userdata;

        strbuf_addf(&r->lines, "%s %s\n", log_level_to_string(level), text);
        strbuf_addf(&r->events, "%s %s\n", message_id ? message_id : "-", text);
        for (size_t i = 0; i < n_fields; i++)
                if (streq(fields[i].key, "CORDON_DELAY_USEC") && fields[i].value)
                        (void) snprintf(r->cordon_delay, sizeof(r->cordon_delay), "%s", fields[i].value);
}

static void on_notify(const char *text, void *userdata) {
        const char *status = startswith(text, "STATUS=");
        AgentRig *r = userdata;

        if (status) {
                (void) snprintf(r->status, sizeof(r->status), "%s", status);
                strbuf_addf(&r->statuses, "%s\n", status);
        }
        if (streq(text, "READY=1"))
                r->ready = true;
        fake_power_notify(r->power, text);
}

static void on_request(const HttpRequest *request, const char *peer, HttpFault *ret_fault, void *userdata) {
        AgentRig *r = userdata;

        ret_fault->refuse = r->dead;
        ret_fault->no_route = r->no_route && startswith(request->url, FAKE_ORIGIN);
        ret_fault->lose_request = r->lost && strstr(request->url, r->lost);
        ret_fault->request_delay_usec = r->request_delay_usec;
        ret_fault->reply_delay_usec = request->method == HTTP_PATCH ? r->patch_reply_delay_usec : 0;
        if (!r->dead && request->method == HTTP_PATCH)
                strbuf_addf(&r->patches, "%s %.*s\n", request->url, (int) request->body_size,
                            (const char *) request->body);
}

static int rig_store_fd(const char *name, int fd, void *userdata) {
        AgentRig *r = userdata;

        return fake_power_store_fd(name, fd, r->power);
}

static int rig_take_fd(const char *name, void *userdata) {
        AgentRig *r = userdata;

        return fake_power_take_fd(name, r->power);
}

static void rig_forget_fd(const char *name, void *userdata) {
        AgentRig *r = userdata;

        fake_power_forget_fd(name, r->power);
}

static void on_stopped(void *userdata) {
        AgentRig *r = userdata;

        r->stopped = r->dead = true;
        r->left = agent_left(r->agent);
}

static void on_sigterm(void *userdata) {
        AgentRig *r = userdata;

        if (r->agent)
                agent_ask_stop(r->agent, on_stopped, r);
}

static void on_sigkill(void *userdata) {
        AgentRig *r = userdata;

        r->dead = true;
}

static void on_off(void *userdata) {
}

void agent_rig_stop(AgentRig *r) {
        on_sigterm(r);
}

static int make_client(AgentRig *r) {
        _cleanup_(kubeconfig_freep) KubeConfig *config = NULL;
        _cleanup_free_ char *message = NULL;
        int k;

        r->env = (Env){
                .loop = r->loop,
                .random = r->random,
                .log = r->log,
                .transport = r->transport,
                .state = &r->store,
                .bus = r->bus,
                .store_fd = rig_store_fd,
                .take_stored_fd = rig_take_fd,
                .forget_fd = rig_forget_fd,
                .stop_extendable = true,
                .netlink = &r->netlink.netlink,
                .notify = on_notify,
                .notify_userdata = r,
                .boot_id = r->boot_id,
                .version = "0",
        };
        k = kubeconfig_plain(FAKE_ORIGIN, &config);
        if (k >= 0)
                k = kube_auth_new(r->loop, r->log, NULL, config, NULL, NULL, &r->auth, &message);
        return k < 0 ? k : kube_client_new(&r->env, r->auth, FAKE_ORIGIN, "vesper-agent", &r->client);
}

static int make_process(AgentRig *r) {
        const HttpInprocHooks hooks = { .on_request = on_request, .userdata = r };
        char kubelet[sizeof("https://127.0.0.1:4294967295")];
        int k;

        (void) snprintf(kubelet, sizeof(kubelet), "https://127.0.0.1:%u", r->kubelet_port > 0 ? r->kubelet_port : 10250);
        k = loop_new_virtual(r->world.time, &r->loop);
        if (k >= 0 && !r->no_bus)
                r->bus = fake_power_bus(r->power, r->loop);
        if (k >= 0)
                k = random_new(r->lives, &r->random);
        if (k >= 0)
                k = log_new(LOG_TARGET_NULL, LOG_LEVEL_INFO, "agent", &r->log);
        if (k < 0)
                return k;
        log_set_hook(r->log, on_log, r);
        k = http_inproc_new(r->loop, RIG_USER, &hooks, &r->transport);
        if (k >= 0)
                k = http_inproc_route(r->transport, FAKE_ORIGIN, fake_cluster_handle, r->cluster);
        if (k >= 0)
                k = http_inproc_route(r->transport, AGENT_METADATA_ENDPOINT, r->metadata ? r->metadata : fake_imds_handle,
                                      r->metadata ? r->metadata_userdata : r->imds);
        if (k >= 0 && r->serves_running_pods)
                k = http_inproc_route(r->transport, kubelet, fake_running_pods_handle, &r->running_pods);
        return k < 0 ? k : make_client(r);
}

int agent_rig_try_start(AgentRig *r) {
        int k;

        assert_null(r->agent);
        r->lives++;
        r->dead = r->ready = r->stopped = false;
        fake_power_unit_started(r->power);
        k = make_process(r);
        if (k >= 0)
                k = agent_new(&r->env, &r->config, r->client, &r->agent);
        if (k >= 0)
                k = agent_start(r->agent);
        if (k < 0)
                agent_rig_kill(r);
        return k;
}

void agent_rig_start(AgentRig *r) {
        assert_return_code(agent_rig_try_start(r), 0);
}

void agent_rig_kill(AgentRig *r) {
        if (r->loop)
                fake_power_unit_ended(r->power, true);
        r->agent = agent_free(r->agent);
        r->bus = bus_free(r->bus);
        r->client = kube_client_free(r->client);
        r->auth = kube_auth_free(r->auth);
        r->transport = http_transport_free(r->transport);
        r->log = log_free(r->log);
        r->random = random_free(r->random);
        r->loop = loop_free(r->loop);
}

bool agent_rig_run(AgentRig *r, usec_t usec) {
        usec_t until = usec_add(virtual_time_now(r->world.time), usec);

        while (virtual_time_step(r->world.time, until) > 0)
                if (r->agent && r->dead) {
                        agent_rig_kill(r);
                        return true;
                }
        if (r->agent)
                (void) assert_awake(r->loop, agent_next_wakeup, r->agent);
        return false;
}

/* -- the world ---------------------------------------------------------------------------------- */

AgentRig *agent_rig_new(void) {
        AgentRig *r = new0(AgentRig, 1);

        assert_non_null(r);
        fake_world_init(&r->world, &(FakeClusterOptions){ 0 });
        r->cluster = r->world.cluster;
        r->running_pods = (FakeRunningPods){ .cluster = r->cluster, .node = RIG_NODE };
        r->imds = fake_imds_new(r->world.loop, RIG_INSTANCE);
        r->store.ops = &disk_ops;
        r->power = fake_power_new(r->world.loop, &(FakePowerHooks){ on_sigterm, on_sigkill, on_off, NULL, NULL, r });
        fake_power_set_pods(r->power, r->cluster, RIG_NODE);
        fake_netlink_init(&r->netlink);
        r->config = (AgentConfig){
                .node_name = strdup(RIG_NODE),
                .poll_usec = 2 * USEC_PER_SEC,
                .lb_wait_usec = 30 * USEC_PER_SEC,
                .shutdown_drain = true,
                .reboot_patience_usec = USEC_PER_HOUR,
                .repair_reboots = true,
                .shutdown_max_usec = 10 * USEC_PER_MINUTE,
        };
        fake_add_node(r->cluster, RIG_NODE, NULL, RIG_INSTANCE, NULL);
        fake_add_node(r->cluster, "n2", NULL, NULL, NULL);
        agent_rig_reboot(r);
        fake_api_log_reset(fake_cluster_api(r->cluster));
        return r;
}

AgentRig *agent_rig_free(AgentRig *r) {
        if (!r)
                return NULL;
        agent_rig_kill(r);
        r->power = fake_power_free(r->power);
        fake_imds_free(r->imds);
        fake_world_done(&r->world);
        agent_config_done(&r->config);
        free(r->record);
        free(r->running_pods.body);
        strbuf_done(&r->lines);
        strbuf_done(&r->events);
        strbuf_done(&r->patches);
        strbuf_done(&r->statuses);
        return mfree(r);
}

void agent_rig_reboot(AgentRig *r) {
        (void) snprintf(r->boot_id, sizeof(r->boot_id), "%032x", ++r->boots);
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'status':{'nodeInfo':{'bootID':'%s'}}}",
                   r->boot_id);
        r->record = mfree(r->record); /* /run is empty */
}

void agent_rig_add_pods(AgentRig *r, const char *app, unsigned n) {
        for (unsigned i = 0; i < n; i++) {
                _cleanup_free_ char *name = strf("%s-%u", app, i);

                fake_add_pod(r->cluster,
                             &(FakePod){ .name = name, .node = RIG_NODE, .app = app, .stop_sec = 3 });
        }
}

size_t agent_rig_n_pods(AgentRig *r) {
        const cJSON *pod;
        size_t n = 0;

        FAKE_FOREACH (pod, r->cluster, FAKE_PODS, NULL)
                n += streq_ptr(fj_string(pod, "spec", "nodeName", NULL), RIG_NODE);
        return n;
}

void agent_rig_notice(AgentRig *r, usec_t lead_usec) {
        fake_imds_set_action(r->imds, "terminate", usec_add(loop_wall(r->world.loop), lead_usec));
}

/* -- looking ------------------------------------------------------------------------------------ */

const cJSON *agent_rig_node(AgentRig *r) {
        return fake_get(r->cluster, FAKE_NODES, NULL, RIG_NODE);
}

const char *agent_rig_annotation(AgentRig *r, const char *key) {
        return fj_string(agent_rig_node(r), "metadata", "annotations", key, NULL);
}

char *agent_rig_phase(AgentRig *r) {
        const char *text = agent_rig_annotation(r, "vesper.sh/interruption"), *phase;
        _cleanup_cjson_ cJSON *json = text ? cJSON_Parse(text) : NULL;

        phase = fj_string(json, "phase", NULL);
        return phase ? strdup(phase) : NULL;
}

bool agent_rig_unschedulable(AgentRig *r) {
        return fj_true(agent_rig_node(r), "spec", "unschedulable", NULL);
}

const char *agent_rig_condition(AgentRig *r, const char *type) {
        const cJSON *c = fj_find(fj_get(agent_rig_node(r), "status", "conditions", NULL), "type", type);

        return c ? fj_string(c, "status", NULL) : NULL;
}

char *agent_rig_writes(AgentRig *r) {
        const FakeApi *api = fake_cluster_api(r->cluster);
        const FakeLogEntry *e;
        StrBuf b = { 0 };

        for (size_t i = 0; (e = fake_api_log_at(api, i)); i++) {
                bool read = e->verb == FAKE_GET || e->verb == FAKE_LIST || e->verb == FAKE_WATCH;

                if (read || !streq_ptr(e->user, "system:node:" RIG_NODE) || !e->resource ||
                    e->resource->id != FAKE_NODES)
                        continue;
                strbuf_addf(&b, "%s%s %s %u", b.size > 0 ? "; " : "", e->method, e->path, e->status);
        }
        return strbuf_steal(&b);
}

bool agent_rig_has_event(AgentRig *r, const char *kind, const char *reason) {
        const cJSON *e;

        FAKE_FOREACH (e, r->cluster, FAKE_EVENTS, NULL)
                if (streq_ptr(fj_string(e, "involvedObject", "kind", NULL), kind) &&
                    streq_ptr(fj_string(e, "reason", NULL), reason))
                        return true;
        return false;
}

bool agent_rig_said(AgentRig *r, const char *part) {
        return strstr(strbuf_str(&r->lines), part);
}

double agent_rig_metric(AgentRig *r, const char *family) {
        _cleanup_page_ Page p = page_ask(agent_handle_metrics, r->agent, HTTP_GET, "/metrics");

        return page_sum(&p, family);
}
