/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-process.h"

#include "config.h"
#include "log-catalog.h"
#include "sim-account.h"
#include "sim-check.h"
#include "sim-exec.h"
#include "sim-power.h"
#include "sim-queue.h"
#include "sim-webhook.h"

/* -- making ------------------------------------------------------------------------------------ */

static void on_restart(Timer *t, void *userdata) {
        sim_process_start(userdata);
}

static SimProcess *process_new(SimWorld *w, SimProcessKind kind) {
        SimProcess *p = MUST(new0(SimProcess, 1));
        int r = timer_new(w->loop, "sim-restart", on_restart, p, &p->restart);

        assert(r >= 0);
        p->world = w;
        p->kind = kind;
        p->disk = sim_disk_new();
        return p;
}

SimProcess *sim_process_new_agent(SimWorld *w, SimMachine *machine) {
        SimProcess *p = process_new(w, SIM_AGENT);
        _cleanup_free_ char *node = MUST(strf("Kubernetes.NodeName=%s", machine->node));
        char *settings[] = { node, NULL };
        int r = config_load(NULL, agent_config_table, agent_config_table_size, NULL, false, settings,
                            &p->agent_config);

        assert(r >= 0);
        p->machine = machine;
        p->name = MUST(strf("agent-%s", machine->node));
        p->user = MUST(strf("system:node:%s", machine->node));
        machine->agent = p;
        return p;
}

SimProcess *sim_process_new_coordinator(SimWorld *w, unsigned index) {
        SimProcess *p = process_new(w, SIM_COORDINATOR);
        int r = config_load(NULL, coordinator_config_table, coordinator_config_table_size, NULL, false, NULL,
                            &p->coordinator_config);

        assert(r >= 0);
        if (w->options.leave_interrupted)
                p->coordinator_config.interruption_delete = INTERRUPTION_DELETE_NEVER;
        p->coordinator_config.evictions_at_once = w->options.evictions_at_once;
        p->coordinator_config.evictions_per_second = w->options.evictions_per_second;
        if (w->options.max_reboots > 0)
                p->coordinator_config.max_concurrent_reboots = w->options.max_reboots;
        p->name = MUST(strf("coordinator-%c", 'a' + (int) index));
        p->user = MUST(strdup(p->name));
        return p;
}

SimProcess *sim_process_free(SimProcess *p) {
        if (!p)
                return NULL;
        assert(!p->life);
        timer_free(p->restart);
        sim_disk_free(p->disk);
        agent_config_done(&p->agent_config);
        config_done(coordinator_config_table, coordinator_config_table_size, &p->coordinator_config);
        free(p->name);
        free(p->user);
        return mfree(p);
}

/* -- what a life is told and asked ------------------------------------------------------------- */

static void on_log(LogLevel level, const char *message_id, const char *text, const LogField *fields,
                   size_t n_fields, void *userdata) {
        SimLife *l = userdata;
        _cleanup_strbuf_ StrBuf b = { 0 };

        for (size_t i = 0; i < n_fields; i++)
                if (fields[i].value)
                        strbuf_addf(&b, " %s=%s", fields[i].key, fields[i].value);
        if (streq_ptr(message_id, MESSAGE_LEASE_ACQUIRED))
                l->leads = true;
        if (streq_ptr(message_id, MESSAGE_LEASE_LOST)) {
                l->term++;
                l->leads = false;
        }
        sim_trace_add(l->process->world->trace, l->process->name, "<%d> %s%s", (int) level, text,
                      strbuf_str(&b));
        sim_account_log(l->process->world->account, l->process, level, text);
}

static void on_notify(const char *text, void *userdata) {
        SimLife *l = userdata;

        if (strstr(text, "READY=1"))
                l->ready = true;
        if (l->process->machine && l->process->machine->power)
                sim_power_notify(l->process->machine->power, text);
        sim_trace_add(l->process->world->trace, l->process->name, "notify %s", text);
        sim_account_notify(l->process->world->account, l->process, text);
}

static void on_request(const HttpRequest *request, const char *peer, HttpFault *ret_fault, void *userdata) {
        SimLife *l = userdata;
        SimWorld *w = l->process->world;
        bool clean = sim_faults_on_request(w->faults, l->process->name, request, peer, ret_fault);

        l->n_requests++;
        if (sim_account_request(w->account, l->process, request, ret_fault))
                clean = false;
        sim_trace_add(w->trace, l->process->name, "sends %s %s%s", http_method_to_string(request->method),
                      request->url + strlen("http://"), sim_fault_to_string(ret_fault));
        ret_fault->watched = endswith(request->url, "/eviction");
        l->n_evictions += ret_fault->watched;
        sim_check_sent(w->check, l, request, peer, clean,
                       ret_fault->request_delay_usec + ret_fault->reply_delay_usec);
}

static void on_eviction_over(void *userdata) {
        SimLife *l = userdata;

        l->n_evictions--;
}

static SimDiskFate on_write(const char *name, void *userdata) {
        SimLife *l = userdata;
        SimProcess *p = l->process;
        SimDiskFate fate = SIM_DISK_OK;

        l->n_writes++;
        if (p->kill.write > 0 && l->n_writes == p->kill.write) {
                fate = p->kill.fate;
                l->dying = true;
        } else if (p->failing_writes > 0) {
                p->failing_writes--;
                fate = SIM_DISK_FAIL;
        }
        sim_trace_add(p->world->trace, p->name, "writes %s: fate %d", name, (int) fate);
        return fate;
}

static const char *get_environment(const char *name, void *userdata) {
        static const char *const table[][2] = {
                { "AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE" },
                { "AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY" },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                if (streq(table[i][0], name))
                        return table[i][1];
        return NULL;
}

/* -- a life ------------------------------------------------------------------------------------ */

/* Answers for the kubelet of the machine. */
static void on_healthz(HttpExchange *x, void *userdata) {
        bool is_ill = timer_is_armed(((SimMachine *) userdata)->kubelet);

        http_reply_text(x, is_ill ? 500 : 200, "text/plain", is_ill ? "[-]syncloop failed" : "ok");
}

static void life_make_io(SimLife *l) {
        HttpInprocHooks hooks = { .on_request = on_request, .on_over = on_eviction_over, .userdata = l };
        SimProcess *p = l->process;
        SimWorld *w = p->world;
        _cleanup_free_ char *identity =
                MUST(strf("CN=%s,O=%s", p->user, p->kind == SIM_AGENT ? "system:nodes" : "vesper"));
        int r;

        r = loop_new_virtual(w->time, &l->loop);
        assert(r >= 0);
        loop_virtual_step_wall(l->loop, p->clock_off_usec);
        r = random_new(sim_world_derive(w, p->name, l->number), &l->random);
        assert(r >= 0);
        if (w->options.latency == SIM_LATENCY_EVEN)
                random_stop_jitter(l->random);
        r = log_new(LOG_TARGET_NULL, LOG_LEVEL_INFO, p->name, &l->log);
        assert(r >= 0);
        log_set_hook(l->log, on_log, l);
        r = http_inproc_new(l->loop, identity, &hooks, &l->transport);
        assert(r >= 0);
        r = http_inproc_route(l->transport, SIM_API, fake_cluster_handle, w->cluster);
        assert(r >= 0);
        r = p->kind == SIM_AGENT
                    ? http_inproc_route(l->transport, SIM_IMDS, p->machine->metadata ? p->machine->metadata : fake_imds_handle,
                                        p->machine->metadata ? p->machine->metadata_userdata : p->machine->imds)
                    : http_inproc_route(l->transport, SIM_EC2, sim_check_handle_ec2, w);
        assert(r >= 0);
        if (p->kind == SIM_AGENT)
                l->state = sim_state_store_new(p->disk, on_write, l);
        if (p->kind == SIM_AGENT && w->options.healthz)
                r = http_inproc_route(l->transport, "http://127.0.0.1:10248", on_healthz, p->machine);
        assert(r >= 0);
}

static void life_make_client(SimLife *l) {
        _cleanup_(kubeconfig_freep) KubeConfig *config = NULL;
        char *message = NULL;
        int r;

        l->env = (Env){
                .loop = l->loop,
                .random = l->random,
                .log = l->log,
                .transport = l->transport,
                .state = l->state,
                .notify = on_notify,
                .notify_userdata = l,
                .boot_id = l->process->machine ? l->process->machine->boot_id : "",
                .version = VESPER_VERSION,
        };
        if (l->process->machine && l->process->machine->power)
                sim_power_equip(l->process->machine->power, l);
        r = kubeconfig_plain(SIM_API, &config);
        assert(r >= 0);
        r = kube_auth_new(l->loop, l->log, NULL, config, NULL, NULL, &l->auth, &message);
        assert(r >= 0);
        r = kube_client_new(&l->env, l->auth, SIM_API,
                            l->process->kind == SIM_AGENT ? "vesper-agent" : "vesper-coordinator",
                            &l->client);
        assert(r >= 0);
}

static void life_start_agent(SimLife *l) {
        int r = agent_new(&l->env, &l->process->agent_config, l->client, &l->agent);

        assert(r >= 0);
        r = agent_start(l->agent);
        assert(r >= 0);
}

/* NULL: the world has none. */
static SqsClient *life_make_queue(SimLife *l) {
        const SqsConfig config = { .url = SIM_QUEUE_URL, .getenv = get_environment };
        SimQueue *q = l->process->world->queue;
        const char *message;
        SqsClient *client;
        int r;

        if (!q)
                return NULL;
        sim_queue_route(q, l->transport);
        r = sqs_client_new(&l->env, &config, &client, &message);
        assert(r >= 0);
        return client;
}

static void life_start_coordinator(SimLife *l) {
        SimWorld *w = l->process->world;
        CloudConfig config = {
                .name = w->options.exec ? "exec" : "ec2",
                .command = w->options.exec ? SIM_EXEC_COMMAND : NULL,
                .endpoint = SIM_EC2,
                .region = w->options.cloud_region ? w->options.cloud_region : "us-east-1",
                .getenv = get_environment,
                .terminations_at_once = w->options.terminations_per_minute > 0 ? 1 : 0,
                .terminations_per_minute = w->options.terminations_per_minute,
        };
        const char *message = NULL;
        CloudProvider *provider;
        int r;

        l->identity = MUST(strf("%s_%u", l->process->name, l->number));
        if (w->options.exec)
                l->env.children = l->children = sim_exec_new(l);
        r = cloud_provider_new(&l->env, &config, &provider, &message);
        assert(r >= 0);
        cloud_registry_add(&l->cloud, provider);
        r = coordinator_new(&l->env, &l->process->coordinator_config, l->client, &l->cloud, l->identity,
                            &l->coordinator);
        assert(r >= 0);
        l->queue = life_make_queue(l);
        if (l->queue)
                coordinator_set_queue(l->coordinator, l->queue);
        r = coordinator_start(l->coordinator);
        assert(r >= 0);
}

void sim_process_start(SimProcess *p) {
        SimLife *l;

        assert(!p->life);
        timer_disarm(p->restart);
        l = MUST(new0(SimLife, 1));
        l->process = p;
        l->number = ++p->n_lives;
        p->life = l;
        sim_trace_add(p->world->trace, p->name, "starts, life %u", l->number);
        life_make_io(l);
        life_make_client(l);
        if (p->kind == SIM_AGENT)
                life_start_agent(l);
        else
                life_start_coordinator(l);
}

void sim_process_kill(SimProcess *p, usec_t restart_usec) {
        SimLife *l = TAKE_PTR(p->life);

        timer_disarm(p->restart);
        if (restart_usec != USEC_INFINITY)
                timer_arm_in(p->restart, restart_usec);
        if (!l)
                return;
        sim_trace_add(p->world->trace, p->name, "is killed in step %llu", (unsigned long long) l->n_steps);
        p->kill = (SimKill){ 0 };
        p->pause_step = 0;
        l->agent = agent_free(l->agent);
        if (p->machine && p->machine->power)
                sim_power_unequip(p->machine->power, l);
        sim_webhook_coordinator_dies(p->world->webhook, p);
        l->coordinator = coordinator_free(l->coordinator);
        l->queue = sqs_client_free(l->queue);
        cloud_registry_done(&l->cloud);
        l->children = child_runner_free(l->children);
        l->client = kube_client_free(l->client);
        l->auth = kube_auth_free(l->auth);
        l->state = state_store_free(l->state);
        http_inproc_cut_streams(l->transport);
        list_append(&p->world->corpses, &l->corpses);
}

SimLife *sim_life_free(SimLife *l) {
        http_transport_free(l->transport);
        log_free(l->log);
        random_free(l->random);
        loop_free(l->loop);
        free(l->identity);
        return mfree(l);
}

void sim_process_plan_kill(SimProcess *p, const SimKill *kill) {
        p->kill = *kill;
}

void sim_process_pause(SimProcess *p, usec_t usec) {
        sim_trace_add(p->world->trace, p->name, "is paused");
        p->life->was_paused = true;
        p->life->paused_until_usec = MAX(p->life->paused_until_usec, sim_world_now(p->world) + usec);
        loop_virtual_pause(p->life->loop, sim_world_now(p->world) + usec);
}

void sim_process_plan_pause(SimProcess *p, uint64_t after_steps, usec_t usec) {
        p->pause_step = p->life->n_steps + after_steps;
        p->pause_usec = usec;
}

void sim_process_cut_streams(SimProcess *p) {
        p->cut_usec = MAX(p->cut_usec, sim_world_now(p->world));
        if (p->life)
                http_inproc_cut_streams(p->life->transport);
}

void sim_process_hold(SimProcess *p, const char *origin, usec_t usec) {
        p->cut_usec = MAX(p->cut_usec, sim_world_now(p->world) + usec);
        if (p->life)
                http_inproc_hold(p->life->transport, origin, sim_world_now(p->world) + usec);
}

void sim_process_set_clock(SimProcess *p, int64_t off_usec) {
        if (p->clock_off_usec != 0)
                p->clock_wrong_usec = sim_world_now(p->world);
        if (p->life)
                loop_virtual_step_wall(p->life->loop, off_usec - p->clock_off_usec);
        p->clock_off_usec = off_usec;
        if (off_usec > 0)
                p->clock_ahead_usec = MAX(p->clock_ahead_usec, (usec_t) off_usec);
}

void sim_process_set_text(char **to, const char *text) {
        int r = free_and_strdup(to, text);

        assert(r >= 0);
}

bool sim_process_knows_time(const SimProcess *p) {
        bool is_right = p->clock_off_usec == 0 &&
                        (p->clock_wrong_usec == 0 || sim_world_now(p->world) > p->clock_wrong_usec + SIM_CLOCK_TRUST_USEC);

        return p->kind == SIM_COORDINATOR || is_right; /* coordinators go by the API server's clock */
}

void sim_process_after_step(SimProcess *p) {
        SimLife *l = p->life;

        l->n_steps++;
        if (l->dying || (p->kill.step > 0 && l->n_steps == p->kill.step))
                sim_process_kill(p, p->kill.restart_usec);
        else if (p->pause_step > 0 && l->n_steps == p->pause_step) {
                p->pause_step = 0;
                sim_process_pause(p, p->pause_usec);
        }
}
