/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-webhook.h"

#include "sim-check-internal.h"
#include "sim-faults.h"
#include "sim-process.h"
#include "sim-seen.h"
#include "sim-trace.h"

/* kubectl waits for ever; nobody waits longer than this for what has been lost. */
#define PATIENCE_USEC (10 * USEC_PER_SEC)

struct SimWebhook {
        HttpTransport transport; /* the API server's: each question goes to a coordinator */
        SimWorld *world;
        HttpTransport *there; /* to "http://coordinator-a", ... */
        HttpTransport *people;
        unsigned n_asked;
        List questions;
};

/* It stays until the end: whoever waited for its answer may not wait any more. */
typedef struct Question {
        ListNode questions;
        SimWebhook *webhook;
        http_done_t done;
        void *userdata;
        SimMachine *machine; /* NULL: none that is left */
        bool begun;          /* its Node, or its claim, is being deleted already */
} Question;

/* -- from the API server to a coordinator ----------------------------------------------------------------- */

static char *origin_of(const SimProcess *p) {
        return MUST(strf("http://%s", p->name));
}

static SimProcess *process_at(const SimWebhook *h, const char *peer) {
        for (unsigned i = 0; i < h->world->options.n_coordinators; i++)
                if (streq(sim_world_coordinator(h->world, i)->name, peer))
                        return sim_world_coordinator(h->world, i);
        return NULL;
}

static void on_question(const HttpRequest *request, const char *peer, HttpFault *ret_fault, void *userdata) {
        const SimWebhook *h = userdata;
        const SimProcess *p = process_at(h, peer);

        (void) sim_faults_on_request(h->world->faults, "api-server", request, "api", ret_fault);
        if (!p->life)
                ret_fault->refuse = true;
        else if (sim_world_now(h->world) < p->life->paused_until_usec)
                ret_fault->lose_request = true;
        sim_trace_add(h->world->trace, "api", "asks %s%s", peer, sim_fault_to_string(ret_fault));
}

static void on_arrival(HttpExchange *x, void *userdata) {
        SimProcess *p = userdata;

        if (p->life) {
                sim_observer_asked(p->world->check->observer, p);
                coordinator_handle_webhook(x, p->life->coordinator);
        } else
                http_reply_text(x, 503, "text/plain", "it has died\n");
}

static bool is_named(const cJSON *o, const char *name) {
        return streq_ptr(fj_string(o, "metadata", "name", NULL), name);
}

static SimMachine *machine_asked_about(const SimWorld *w, const cJSON *review) {
        const char *name = fj_string(review, "request", "name", NULL);
        bool node = streq_ptr(fj_string(review, "request", "resource", "resource", NULL), "nodes");

        for (size_t i = 0; name && i < w->n_machines; i++)
                if (is_named(node ? sim_world_node((SimWorld *) w, i) : sim_world_claim((SimWorld *) w, i), name))
                        return &w->machines[i];
        return NULL;
}

static void on_answer(const HttpResponse *response, void *userdata) {
        const Question *q = userdata;

        if (response->error == 0 && response->status == 200 && strstr(response->body, "\"allowed\":true") && q->machine && !q->begun)
                sim_check_admitted(q->webhook->world->check, q->machine);
        q->done(response, q->userdata);
}

static Question *question_new(SimWebhook *h, const HttpRequest *request, http_done_t done, void *userdata) {
        Question *q = MUST(new0(Question, 1));
        cJSON *review = cJSON_ParseWithLength(request->body, request->body_size);

        *q = (Question){ .webhook = h, .done = done, .userdata = userdata, .machine = machine_asked_about(h->world, review) };
        q->begun = fj_get(review, "request", "oldObject", "metadata", "deletionTimestamp", NULL) ||
                   (q->machine && fj_get(sim_world_node(h->world, (size_t) (q->machine - h->world->machines)), "metadata",
                                         "deletionTimestamp", NULL));
        list_append(&h->questions, &q->questions);
        cJSON_Delete(review);
        return q;
}

static int hook_start(HttpTransport *transport, const HttpRequest *request, http_done_t done, void *userdata, HttpCall **ret) {
        SimWebhook *h = CONTAINER_OF(transport, SimWebhook, transport);
        unsigned n = (unsigned) (sim_world_derive(h->world, "webhook", ++h->n_asked) >> 16) % h->world->options.n_coordinators;
        _cleanup_free_ char *origin = origin_of(sim_world_coordinator(h->world, n));
        _cleanup_free_ char *url = MUST(strf("%s/admission", origin));
        HttpRequest asked = *request;

        asked.url = url;
        asked.tls = NULL;
        return http_call_start(h->there, &asked, on_answer, question_new(h, request, done, userdata), ret);
}

static const HttpTransportOps hook_ops = { .start = hook_start };

void sim_webhook_coordinator_dies(SimWebhook *h, const SimProcess *p) {
        if (h && p->kind == SIM_COORDINATOR) {
                _cleanup_free_ char *origin = origin_of(p);

                http_inproc_break(h->there, origin);
        }
}

/* -- people --------------------------------------------------------------------------------------------- */

static void on_person(const HttpRequest *request, const char *peer, HttpFault *ret_fault, void *userdata) {
        const SimWebhook *h = userdata;

        (void) sim_faults_on_request(h->world->faults, "person", request, peer, ret_fault);
}

static void on_deleted(const HttpResponse *response, void *userdata) {
        const SimWebhook *h = userdata;

        if (response->error < 0)
                sim_trace_add(h->world->trace, "person", "gets no answer: %s", response->error_text);
        else
                sim_trace_add(h->world->trace, "person", "is answered %u %s", response->status, response->status == 200 ? "" : response->body);
}

void sim_webhook_delete(SimWebhook *h, size_t machine, bool claim) {
        const cJSON *o = claim ? sim_world_claim(h->world, machine) : sim_world_node(h->world, machine);
        const char *name = fj_string(o, "metadata", "name", NULL);
        _cleanup_free_ char *url = NULL;
        int r;

        if (!name)
                return;
        url = MUST(strf(SIM_API "%s/%s", claim ? "/apis/vesper.sh/v1alpha1/nodeclaims" : "/api/v1/nodes", name));
        sim_trace_add(h->world->trace, "person", "deletes %s %s", claim ? "NodeClaim" : "Node", name);
        r = http_call_start(h->people,
                            &(HttpRequest){ .method = HTTP_DELETE,
                                            .url = url,
                                            .lane = HTTP_LANE_BULK,
                                            .timeout_usec = PATIENCE_USEC,
                                            .max_response_bytes = 1u << 20 },
                            on_deleted, h, NULL);
        assert(r >= 0);
}

static void on_asked(const HttpResponse *response, void *userdata) {
        const SimWebhook *h = userdata;

        sim_trace_add(h->world->trace, "person", "deletes nothing: %s",
                      response->error < 0 ? response->error_text : response->body);
}

void sim_webhook_ask(SimWebhook *h, size_t machine) {
        const cJSON *node = sim_world_node(h->world, machine);
        const char *name = fj_string(node, "metadata", "name", NULL);
        _cleanup_free_ char *object = node ? MUST(cJSON_PrintUnformatted(node)) : NULL, *body = NULL;
        int r;

        if (!node)
                return;
        body = MUST(strf(
                "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{\"uid\":\"u\",\"name\":\"%s\","
                "\"operation\":\"DELETE\",\"resource\":{\"group\":\"\",\"version\":\"v1\",\"resource\":\"nodes\"},"
                "\"userInfo\":{\"username\":\"person\"},\"oldObject\":%s}}",
                name, object));
        sim_trace_add(h->world->trace, "person", "is about to delete Node %s", name);
        r = http_call_start(&h->transport,
                            &(HttpRequest) { .method = HTTP_POST,
                                             .url = "https://webhook.sim/admission",
                                             .body = body,
                                             .body_size = strlen(body),
                                             .lane = HTTP_LANE_BULK,
                                             .timeout_usec = 3 * USEC_PER_SEC,
                                             .max_response_bytes = 1u << 20 },
                            on_asked, h, NULL);
        assert(r >= 0);
}

/* -- life ----------------------------------------------------------------------------------------------- */

static void put_configuration(SimWorld *w) {
        fake_put(w->cluster, FAKE_WEBHOOKS,
                 fj_parse("{'metadata':{'name':'vesper-nodes'},'webhooks':[{'name':'nodes.vesper.sh','rules':[{'operations':['DELETE'],"
                          "'apiGroups':['','vesper.sh'],'apiVersions':['*'],'resources':['nodes','nodeclaims']}],"
                          "'clientConfig':{'url':'https://webhook.sim/admission','caBundle':'c2lt'},'sideEffects':'NoneOnDryRun','timeoutSeconds':3,"
                          "'failurePolicy':'Ignore','admissionReviewVersions':['v1']}]}"));
}

SimWebhook *sim_webhook_new(SimWorld *w) {
        SimWebhook *h = MUST(new0(SimWebhook, 1));
        HttpInprocHooks questions = { .on_request = on_question, .userdata = h }, deletions = { .on_request = on_person, .userdata = h };
        int r;

        h->transport.ops = &hook_ops;
        h->world = w;
        r = http_inproc_new(w->loop, NULL, &questions, &h->there);
        assert(r >= 0);
        for (unsigned i = 0; i < w->options.n_coordinators; i++) {
                _cleanup_free_ char *origin = origin_of(sim_world_coordinator(w, i));

                r = http_inproc_route(h->there, origin, on_arrival, sim_world_coordinator(w, i));
                assert(r >= 0);
        }
        r = http_inproc_new(w->loop, "CN=person,O=system:masters", &deletions, &h->people);
        assert(r >= 0);
        r = http_inproc_route(h->people, SIM_API, fake_cluster_handle, w->cluster);
        assert(r >= 0);
        /* As matchConditions let vesper's own deletions pass unasked. */
        fake_api_set_webhook_transport(fake_cluster_api(w->cluster), &h->transport);
        fake_api_spare_from_webhooks(fake_cluster_api(w->cluster), "coordinator-");
        put_configuration(w);
        return h;
}

SimWebhook *sim_webhook_free(SimWebhook *h) {
        if (!h)
                return NULL;
        http_transport_free(h->there);
        http_transport_free(h->people);
        LIST_FOREACH (q, &h->questions, Question, questions)
                free(q);
        return mfree(h);
}
