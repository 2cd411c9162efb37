/* SPDX-License-Identifier: Apache-2.0 */
/* Requests: how many, who leads, what is asked for twice; and what the cloud is told. */
#include "sim-check-internal.h"

#include <inttypes.h>

#include "fake-controllers.h"
#include "fake-selector.h"
#include "sim-exec.h"
#include "sim-process.h"
#include "sim-queue.h"
#include "sim-seen.h"

/* From an answer that was given to its arrival, where nothing is slow. */
#define ANSWER_USEC (200 * USEC_PER_MSEC)
/* A view follows the store within this, where nothing is in the way. */
#define VIEW_USEC (5 * USEC_PER_SEC)
/* Evictions of one pod behind a budget that allows nothing as it stands, in so long a time. */
#define REQUESTS_USEC (5 * USEC_PER_MINUTE)
#define REQUESTS_MAX 4u
/* After a silence, what happened in it is told within this. */
#define NEWS_USEC (200 * USEC_PER_MSEC)
/* Volumes that do not move for so long are given up. */
#define VOLUMES_USEC (2 * USEC_PER_MINUTE)

/* A machine is told to end within this of the list that showed its node empty. */
#define PROOF_USEC (6 * USEC_PER_SEC)
/* ... or, where its answer was late, so long after that came. */
#define PROOF_CAME_USEC (2 * USEC_PER_SEC)

/* Who leads asks for his Lease each two seconds, and another one waits until it has run out. */
#define LEASE_USEC (17 * USEC_PER_SEC)

/* Watches from before etcd was restored are followed by a list after five minutes. */
#define REHEARD_USEC (7 * USEC_PER_MINUTE)

/* What a command accepted is looked after for so long before it is asked for again. */
#define LOOKED_AFTER_USEC USEC_PER_MINUTE

#define UID_SIZE 40

/* What one life of a process was told about one thing it asked for. */
typedef struct Told {
        bool clean;       /* the answer to the last request comes */
        usec_t done_usec; /* that request was carried out; 0: no */
        char uid[UID_SIZE]; /* of the pod it was about */
        usec_t accepted_usec; /* a command took it, and did not say that it is done; 0: no */
} Told;

typedef struct Rate {
        usec_t second;
        unsigned n;
} Rate;

/* -- how many ---------------------------------------------------------------------------------- */

/* Of the pod that it is meant for; "": none. Whoever sends it may know less than the store does. */
static void uid_meant(const HttpRequest *request, char ret[static UID_SIZE]) {
        static const char key[] = "\"uid\":\"";
        const char *at = request && request->body
                                 ? memmem(request->body, request->body_size, key, strlen(key))
                                 : NULL;
        size_t left = at ? request->body_size - (size_t) (at + strlen(key) - (const char *) request->body) : 0;

        snprintf(ret, UID_SIZE, "%.*s", (int) MIN(left, (size_t) UID_SIZE - 1), at ? at + strlen(key) : "");
        ret[strcspn(ret, "\"")] = '\0';
}

static unsigned count_in_second(SimCheck *c, const char *key) {
        Rate *rate = sim_check_entry(c->rates, key, sizeof(Rate));
        usec_t second = sim_world_now(c->world) / USEC_PER_SEC;

        if (rate->second != second)
                *rate = (Rate){ .second = second };
        return ++rate->n;
}

static void check_rate(SimCheck *c, const SimLife *life, const HttpRequest *request) {
        const char *name = life->process->name, *method = http_method_to_string(request->method);
        /* Of a list of one node's pods that node is the object. */
        const char *selector = strempty(strstr(request->url, "fieldSelector="));
        _cleanup_free_ char *same = NULL;
        char uid[UID_SIZE]; /* another pod of the same name is another object */

        uid_meant(request, uid);
        same = MUST(strf("%s %s %.*s %.*s %s", name, method, (int) strcspn(request->url, "?"), request->url,
                         (int) strcspn(selector, "&"), selector, uid));
        if (count_in_second(c, name) > SIM_CHECK_PER_SECOND)
                sim_check_broken(c, "storm", "%s sends more than %u requests in a second", name,
                                 SIM_CHECK_PER_SECOND);
        /* What is made is another object each time. */
        if ((request->method != HTTP_POST || endswith(request->url, "/eviction")) &&
            count_in_second(c, same) > SIM_CHECK_SAME_PER_SECOND)
                sim_check_broken(c, "storm", "%s sends %s %s more than %u times in a second", name, method,
                                 request->url, SIM_CHECK_SAME_PER_SECOND);
}

/* -- who leads --------------------------------------------------------------------------------- */

/* Whoever is asked by the API server charges what he lets go. */
static bool charges_for_webhook(const HttpRequest *request) {
        return strstr(request->url, "/nodedisruptionbudgets/") && request->body &&
               memmem(request->body, request->body_size, "\"holder\":\"person\"",
                      strlen("\"holder\":\"person\""));
}

/* Reads, the Lease itself, Events, and a webhook's charges are not guarded. */
static bool is_guarded(const HttpRequest *request, const char *peer) {
        if (endswith(peer, ".amazonaws.com")) /* the queue, and Auto Scaling */
                return true;
        if (streq(peer, SIM_EXEC_PEER))
                return startswith(request->url, SIM_EXEC "/terminate/");
        if (streq(peer, "ec2.sim"))
                return request->body && memmem(request->body, request->body_size, "TerminateInstances", 18);
        return streq(peer, "api") && request->method != HTTP_GET && !strstr(request->url, "/leases") &&
               !strstr(request->url, "/events") && !charges_for_webhook(request);
}

static void check_lease(SimCheck *c, const SimLife *life, const HttpRequest *request) {
        const cJSON *lease = fake_get(c->world->cluster, FAKE_LEASES, "vesper-system", "vesper-coordinator");
        const char *holder = strempty(fj_string(lease, "spec", "holderIdentity", NULL));

        if (sim_check_is_just_restored(c, LEASE_USEC))
                return;
        if (!streq(holder, life->identity))
                sim_check_broken(c, "leader", "%s sends %s %s while %s leads", life->identity,
                                 http_method_to_string(request->method), request->url, holder);
        else if (loop_now(life->loop) >= c->lease_end_usec)
                sim_check_broken(c, "leader", "%s sends %s %s after its lease, which ended %" PRIu64 " ms ago",
                                 life->identity, http_method_to_string(request->method), request->url,
                                 (loop_now(life->loop) - c->lease_end_usec) / USEC_PER_MSEC);
}

void sim_check_lease_written(SimCheck *c, const cJSON *old, const cJSON *new) {
        const char *holder = strempty(fj_string(new, "spec", "holderIdentity", NULL));
        const char *before = strempty(fj_string(old, "spec", "holderIdentity", NULL));
        usec_t now = sim_world_now(c->world);
        const usec_t *sent;

        if (!sim_check_actor(c) || !streq_ptr(fj_string(new, "metadata", "namespace", NULL), "vesper-system"))
                return;
        /* Whoever held it may think so until it has run out, as counted from when he asked for it. */
        if (*before && *holder && !streq(before, holder) && now < c->lease_end_usec &&
            !sim_check_is_just_restored(c, LEASE_USEC))
                sim_check_broken(c, "leader", "%s takes the Lease, which is %s's for another %" PRIu64 " ms", holder,
                                 before, (c->lease_end_usec - now) / USEC_PER_MSEC);
        sent = hashmap_get(c->lease_sent, c->world->request->user);
        if (sent)
                c->lease_end_usec =
                        *sent + (usec_t) fj_int(new, 0, "spec", "leaseDurationSeconds", NULL) * USEC_PER_SEC;
}

/* Who says that he leads has a Lease that lasts; one that woke up late may need a moment to see that it does not. */
void sim_check_leaders(SimCheck *c) {
        const cJSON *lease = NULL;
        usec_t now = sim_world_now(c->world);

        for (size_t i = c->world->options.n_agents; i < c->world->n_processes; i++) {
                const SimLife *life = c->world->processes[i]->life;

                if (!life || !life->leads || sim_check_is_just_restored(c, LEASE_USEC) || now < life->paused_until_usec + USEC_PER_MSEC)
                        continue;
                if (!lease)
                        lease = fake_get(c->world->cluster, FAKE_LEASES, "vesper-system", "vesper-coordinator");
                if (!streq_ptr(fj_string(lease, "spec", "holderIdentity", NULL), life->identity) ||
                    now > c->lease_end_usec + USEC_PER_MSEC)
                        sim_check_broken(c, "leader", "%s says that it leads, and its lease ended %" PRIu64 " ms ago",
                                         life->identity, usec_sub(now, c->lease_end_usec) / USEC_PER_MSEC);
        }
}

/* -- what is asked for twice ------------------------------------------------------------------- */

/* Who was told: one life; of a coordinator during one leadership. */
static char *told_key(const SimLife *life, const char *what) {
        return MUST(strf("%s/%u/%u %s", life->process->user, life->number, life->term, what));
}

static const char *uid_of(const cJSON *o) {
        return strempty(fj_string(o, "metadata", "uid", NULL));
}

/* A removal follows the drain of a node that was to be kept, and a watch that is mute shows it none of what that has evicted. */
static bool may_be_anothers_drain(const SimCheck *c, const char *what) {
        return c->world->queue && strstr(what, "/eviction") && !sim_check_was_calm(c, USEC_PER_MINUTE);
}

/* One life asks for one thing again: why, if it knows that it is done? request: about a pod, else NULL. */
static void check_again(SimCheck *c, const SimLife *life, const char *what, bool clean,
                        const HttpRequest *request) {
        _cleanup_free_ char *key = told_key(life, what);
        Told *told = sim_check_entry(c->told, key, sizeof(Told)), now = { .clean = clean };
        bool another;

        uid_meant(request, now.uid);
        another = !streq(now.uid, told->uid); /* the next one of its name */
        if (told->done_usec > 0 && told->clean && sim_world_now(c->world) > told->done_usec + ANSWER_USEC &&
            !life->was_paused && !another && !may_be_anothers_drain(c, what))
                sim_check_broken(c, "repeats", "%s asks again for what it knows to be done: %s",
                                 life->process->name, what);
        if (told->accepted_usec > 0 && told->clean &&
            sim_world_now(c->world) < told->accepted_usec + LOOKED_AFTER_USEC)
                sim_check_broken(
                        c, "repeats",
                        "%s asks again for what was accepted, before it has looked for a minute: %s",
                        life->process->name, what);
        *told = now;
}

/* The present life of whoever asked was answered: it is done. */
static void note_done(SimCheck *c, const SimProcess *p, const char *what) {
        _cleanup_free_ char *key = p->life ? told_key(p->life, what) : NULL;
        Told *told = key ? hashmap_get(c->told, key) : NULL;

        if (told)
                told->done_usec = sim_world_now(c->world);
}

/* -- evictions --------------------------------------------------------------------------------- */

/* The pod of ".../namespaces/NS/pods/NAME/eviction". */
static const cJSON *pod_in(const SimCheck *c, const char *url) {
        const char *ns = strstr(url, "/namespaces/"), *name = strstr(url, "/pods/");
        _cleanup_free_ char *a = NULL, *b = NULL;

        if (!ns || !name)
                return NULL;
        ns += strlen("/namespaces/");
        name += strlen("/pods/");
        a = MUST(strndup(ns, strcspn(ns, "/")));
        b = MUST(strndup(name, strcspn(name, "/?")));
        return fake_get(c->world->cluster, FAKE_PODS, a, b);
}

/* Requests for one pod behind a budget that allows nothing as it stands. */
typedef struct Requested {
        usec_t since_usec;
        unsigned n;
} Requested;

/* Such a pod is asked for once in five minutes; a few times more where an answer was lost, or its drain began anew. */
static bool is_request(SimCheck *c, const SimLife *life, const cJSON *pdb, const cJSON *pod) {
        _cleanup_free_ char *key = NULL;
        Requested *r;

        if (fj_int(pdb, 0, "status", "expectedPods", NULL) <= 0 ||
            fj_int(pdb, 0, "status", "desiredHealthy", NULL) < fj_int(pdb, 0, "status", "expectedPods", NULL))
                return false;
        key = MUST(strf("%s %u %u %s", life->process->user, life->number, life->term, fj_string(pod, "metadata", "uid", NULL)));
        r = sim_check_entry(c->requested, key, sizeof(Requested));
        if (sim_world_now(c->world) >= usec_add(r->since_usec, REQUESTS_USEC))
                *r = (Requested){ .since_usec = sim_world_now(c->world) };
        return ++r->n <= REQUESTS_MAX;
}

/* A coordinator sees the budgets: what is known to be refused is not asked for. */
static void check_gate(SimCheck *c, const SimLife *life, const cJSON *pod) {
        const cJSON *pdb;
        unsigned n = 0;

        /* One that is not ready may go where none may that is: its budget has not counted it. */
        if (!pod || life->was_paused || !sim_check_was_calm(c, VIEW_USEC) ||
            !fake_condition_is(pod, "Ready", "True"))
                return;
        FAKE_FOREACH (pdb, c->world->cluster, FAKE_PDBS, fj_string(pod, "metadata", "namespace", NULL))
                n += fake_object_selector_matches(fj_get(pdb, "spec", "selector", NULL),
                                                  fj_get(pod, "metadata", "labels", NULL));
        /* With several, the answer is 500 whatever they allow: that is not known from them. */
        if (n != 1)
                return;
        FAKE_FOREACH (pdb, c->world->cluster, FAKE_PDBS, fj_string(pod, "metadata", "namespace", NULL)) {
                _cleanup_free_ char *key = fake_object_key(pdb);
                const usec_t *since = hashmap_get(c->closed, key);

                if (since && *since > 0 && sim_world_now(c->world) > *since + VIEW_USEC &&
                    fake_object_selector_matches(fj_get(pdb, "spec", "selector", NULL),
                                                 fj_get(pod, "metadata", "labels", NULL)) &&
                    !is_request(c, life, pdb, pod))
                        sim_check_broken(c, "gate", "%s evicts pod %s, and its budget %s has allowed nothing for %" PRIu64
                                         " ms",
                                         life->process->name, fj_string(pod, "metadata", "name", NULL), key,
                                         (sim_world_now(c->world) - *since) / USEC_PER_MSEC);
        }
}

/* As evictor.h and agent.c have it. */
#define WINDOW 160u
#define AGENT_WINDOW 40u

static void check_window(SimCheck *c, const SimLife *life) {
        unsigned given = c->world->options.evictions_at_once;
        unsigned window = life->process->kind == SIM_AGENT ? AGENT_WINDOW : given > 0 ? given : WINDOW;

        if (life->n_evictions > window)
                sim_check_broken(c, "window", "%s has %u evictions under way, and may have %u",
                                 life->process->name, life->n_evictions, window);
}

static void check_eviction(SimCheck *c, const SimLife *life, const HttpRequest *request, bool clean) {
        const cJSON *pod = pod_in(c, request->url);

        c->n_evictions++;
        check_window(c, life);
        check_again(c, life, request->url + strlen(SIM_API), clean, request);
        if (life->process->kind == SIM_COORDINATOR)
                check_gate(c, life, pod);
}

/* An agent ends no pod on the word of a Node older than this, and sends at once what it has decided. */
#define NODE_USEC (15 * USEC_PER_SEC + 200 * USEC_PER_MSEC)

/* Whatever is in the way of its watches: before it asks for the end of a pod it has read its Node of late. */
static void check_opened(SimCheck *c, const SimLife *life, const char *pod) {
        const SimMachine *m = life->process->machine;
        usec_t now = sim_world_now(c->world), opened = m ? c->seen[sim_check_index(c, m)].opened_usec : 0;

        if (m && m->opened_by_admin && !life->was_paused && opened > 0 && now > opened + NODE_USEC &&
            !sim_check_is_deleting(sim_world_node(c->world, sim_check_index(c, m))))
                sim_check_broken(c, "cordon", "%s asks for the end of pod %s of %s, which a person opened %" PRIu64
                                 " ms ago",
                                 life->process->name, pod, m->node, (now - opened) / USEC_PER_MSEC);
}

/* -- when it was asked ------------------------------------------------------------------------ */

static void note_asked(SimCheck *c, const SimLife *life, const char *what, bool clean, usec_t delay_usec) {
        _cleanup_free_ char *key = MUST(strf("%s %s", life->process->user, what));
        SimAsked *asked = sim_check_entry(c->asked, key, sizeof(SimAsked));
        usec_t now = sim_world_now(c->world);

        if (!asked->last_unsure || now >= asked->sent_usec + CRAWL_USEC)
                asked->sent_usec = now;
        if (asked->last_unsure)
                asked->unsure_usec = asked->last_usec;
        asked->last_usec = now;
        asked->answer_usec = now + delay_usec;
        asked->last_unsure = !clean;
}

SimAsked sim_check_asked(const SimCheck *c, const char *what) {
        _cleanup_free_ char *key = MUST(strf("%s %s", sim_check_actor(c)->user, what));
        const SimAsked *asked = hashmap_get(c->asked, key);

        return asked ? *asked : (SimAsked){ 0 };
}

void sim_check_note_lie(SimCheck *c) {
        const SimRequest *r = c->world->request;
        _cleanup_free_ char *key = MUST(strf("%s %s/%s", r->user, strempty(r->ns), strempty(r->name)));
        SimAsked *asked = hashmap_get(c->asked, key);

        if (asked)
                asked->last_unsure = true;
}

/* Of ".../namespaces/NS/pods/NAME[/eviction]", DELETE or POST; NULL: it ends no pod. */
static char *pod_ended_by(const HttpRequest *request) {
        const char *ns = strstr(request->url, "/namespaces/"), *name = strstr(request->url, "/pods/");

        if (!ns || !name || (request->method != HTTP_DELETE && !endswith(request->url, "/eviction")))
                return NULL;
        ns += strlen("/namespaces/");
        name += strlen("/pods/");
        return MUST(strf("%.*s/%.*s", (int) strcspn(ns, "/"), ns, (int) strcspn(name, "/?"), name));
}

/* A list of one node's pods, as proofs and looks ask for it: "pods of NODE"; NULL: it is none. */
static char *pods_listed_by(const HttpRequest *request) {
        static const char selector[] = "spec.nodeName";
        const char *node = strstr(request->url, selector);

        if (request->method != HTTP_GET || !strstr(request->url, "/api/v1/pods?") || !node || strstr(request->url, "watch="))
                return NULL;
        node += strlen(selector);
        node += startswith(node, "%3D") ? 3 : 1;
        return MUST(strf("pods of %.*s", (int) strcspn(node, "&"), node));
}

/* -- what it must not hit ---------------------------------------------------------------------- */

static bool body_has(const HttpRequest *request, const char *word) {
        return request->body && memmem(request->body, request->body_size, word, strlen(word));
}

/* What was decided on one version of a Node, or about one pod, must not land on another. */
static void check_precondition(SimCheck *c, const SimLife *life, const HttpRequest *request) {
        const char *path = request->url + strlen(SIM_API), *name = life->process->name;
        bool pod = strstr(path, "/pods/") && (request->method == HTTP_DELETE ||
                                              (request->method == HTTP_POST && endswith(path, "/eviction")));

        if (pod && !body_has(request, "\"uid\":\""))
                sim_check_broken(c, "precondition", "%s sends %s %s without the uid of its pod", name,
                                 http_method_to_string(request->method), path);
        if (request->method == HTTP_PATCH && startswith(path, "/api/v1/nodes/") &&
            !body_has(request, "\"resourceVersion\":\"") &&
            !(strstr(path, "/status") && body_has(request, "\"uid\":\"")))
                sim_check_broken(c, "precondition", "%s patches %s without the version it was decided on", name, path);
}

/* -- each request as it is sent ---------------------------------------------------------------- */

/* Of a command's request, which is about the machine of that Node alone, whatever its id says. */
static bool names_node(const void *body, size_t size, const char *node) {
        _cleanup_free_ char *id = MUST(strf("\"exec://%s\"", node)),
                            *name = MUST(strf("\"name\":\"%s\"", node));

        return memmem(body, size, id, strlen(id)) && (memmem(body, size, name, strlen(name)) ||
                                                      !memmem(body, size, "\"name\":", strlen("\"name\":")));
}

/* The first machine that a request to the cloud names; terminations name one each. */
static const SimMachine *machine_in(const SimCheck *c, const void *body, size_t size) {
        for (size_t i = 0; body && i < c->world->n_machines; i++) {
                const SimMachine *m = &c->world->machines[i];

                if (c->world->options.exec ? names_node(body, size, m->node)
                                           : memmem(body, size, m->instance, strlen(m->instance)) != NULL)
                        return m;
        }
        return NULL;
}

/* It is not T that ends it; p: whose word that is, NULL: nobody's of ours. */
static bool ends_early(const SimCheck *c, const SimProcess *p, const SimMachine *m) {
        usec_t end = sim_check_deadline(c, m);

        return (!p || sim_process_knows_time(p)) &&
               (end == USEC_INFINITY || sim_world_wall(c->world) + SIM_SLACK_USEC < end);
}

/* A cloud may refuse for hours, and others may come first: whoever asks has looked a moment ago. */
static void check_fresh(SimCheck *c, const SimLife *life, const SimMachine *m) {
        _cleanup_free_ char *key = MUST(strf("%s %s", life->process->user, m->node));
        _cleanup_free_ char *list = MUST(strf("%s pods of %s", life->process->user, m->node));
        const SimProof *proof = hashmap_get(c->proofs, key);
        const SimAsked *asked = hashmap_get(c->asked, list);
        usec_t until;

        if (m->ended || !proof) /* and its claim may be gone, with its T */
                return;
        until = MAX(proof->at_usec + PROOF_USEC, asked ? asked->answer_usec + PROOF_CAME_USEC : 0);
        if (asked) /* it may have come with the end of a partition */
                until = MAX(until, life->process->cut_usec + PROOF_CAME_USEC);
        if (!life->was_paused && sim_world_node(c->world, sim_check_index(c, m)) &&
            ends_early(c, life->process, m) && sim_world_now(c->world) > until)
                sim_check_broken(c, "ended", "%s asks for the end of %s by a list of the pods of %s that is %" PRIu64
                                 " s old", life->process->name, m->instance, m->node,
                                 (sim_world_now(c->world) - proof->at_usec) / USEC_PER_SEC);
}

void sim_check_sent(SimCheck *c, const SimLife *life, const HttpRequest *request, const char *peer,
                    bool clean, usec_t delay_usec) {
        bool coordinator = life->process->kind == SIM_COORDINATOR;

        sim_observer_sent(c->observer, life, request, peer, clean);
        if (streq(peer, "api")) {
                _cleanup_free_ char *pod = pod_ended_by(request), *listed = pods_listed_by(request);

                if (listed)
                        note_asked(c, life, listed, clean, delay_usec);
                if (pod) {
                        note_asked(c, life, pod, clean, delay_usec);
                        check_opened(c, life, pod);
                }
                c->n_requests++;
                check_rate(c, life, request);
                check_precondition(c, life, request);
        }
        if (coordinator && is_guarded(request, peer))
                check_lease(c, life, request);
        if (coordinator && strstr(request->url, "/leases"))
                *(usec_t *) sim_check_entry(c->lease_sent, life->process->user, sizeof(usec_t)) =
                        sim_world_now(c->world);
        if (endswith(request->url, "/eviction"))
                check_eviction(c, life, request, clean);
        if (!streq(peer, "api") && !endswith(peer, ".amazonaws.com") && is_guarded(request, peer)) {
                const SimMachine *m = machine_in(c, request->body, request->body_size);

                if (m) {
                        note_asked(c, life, m->instance, clean, delay_usec);
                        check_again(c, life, m->instance, clean, NULL);
                        check_fresh(c, life, m);
                }
        }
}

/* -- the cloud --------------------------------------------------------------------------------- */

SimProcess *sim_check_process_of(SimWorld *w, const char *identity) {
        for (size_t i = 0; i < w->n_processes; i++) {
                _cleanup_free_ char *known = MUST(strf("CN=%s,O=vesper", w->processes[i]->user));

                if (streq_ptr(identity, known))
                        return w->processes[i];
        }
        return NULL;
}

/* Volumes are known by their watch alone: no list of those of one node can be asked for. What was not heard of is news for
 * a moment after. */
static bool volumes_are_news(const SimCheck *c, const SimSeen *seen) {
        usec_t heard = fake_api_unheard_until(fake_cluster_api(c->world->cluster), FAKE_VOLUMEATTACHMENTS);

        return seen->volumes_usec < heard && sim_world_now(c->world) < usec_add(heard, NEWS_USEC);
}

static void check_volumes(SimCheck *c, const SimMachine *m, const SimSeen *seen) {
        usec_t now = sim_world_now(c->world), since = MAX(seen->volumes_usec, seen->deleted_usec);

        if (volumes_are_news(c, seen))
                return;
        if (seen->n_volumes > 0 && now + USEC_PER_SEC < since + VOLUMES_USEC)
                sim_check_broken(c, "ended", "%s is ended with %zu volumes attached to %s, which moved %" PRIu64 " s ago",
                                 m->instance, seen->n_volumes, m->node, (now - since) / USEC_PER_SEC);
}

/* Whoever ends it has seen for himself that nothing is left: an agent's word is no proof. */
static void check_looked(SimCheck *c, const SimProcess *p, const SimMachine *m) {
        _cleanup_free_ char *key = MUST(strf("%s %s", p->user, m->node));
        const SimProof *proof = hashmap_get(c->proofs, key);

        if (!proof || proof->left > 0)
                sim_check_broken(c, "ended", "%s ends %s without having seen by a consistent list that no pod is left on %s",
                                 p->user, m->instance, m->node);
}

/* It was restored with its node when that had been seen empty. */
static bool is_back(const SimCheck *c, usec_t bound_usec, usec_t sent_usec) {
        return c->restored_usec > 0 && bound_usec == c->restored_usec && sent_usec < usec_add(bound_usec, PROOF_USEC);
}

/* Those that came while the request was on its way could not be known. */
static size_t pods_left(const SimCheck *c, const SimProcess *p, const SimMachine *m) {
        _cleanup_free_ char *key = p ? MUST(strf("%s %s", p->user, m->instance)) : NULL;
        const SimAsked *asked = key ? hashmap_get(c->asked, key) : NULL;
        size_t left = sim_world_pods_alive(c->world, sim_check_index(c, m));
        const cJSON *pod;

        if (!asked || left == 0)
                return left;
        FAKE_FOREACH (pod, c->world->cluster, FAKE_PODS, NULL) {
                const usec_t *since = hashmap_get(c->bound, uid_of(pod));

                if (left > 0 && since && (*since > asked->sent_usec || is_back(c, *since, asked->sent_usec)) && !fake_pod_is_terminal(pod) &&
                    !sim_check_pod_is_daemon(pod) &&
                    streq_ptr(fj_string(pod, "spec", "nodeName", NULL), m->node))
                        left--;
        }
        return left;
}

/* A second Node of this machine is news for so long where watches are slow, and may be unheard for a watch's silence. */
#define TWIN_USEC (5 * USEC_PER_SEC)
#define TWIN_UNHEARD_USEC (150 * USEC_PER_SEC)

unsigned sim_check_nodes_of(SimCheck *c, const SimMachine *m) {
        _cleanup_free_ char *id = NULL;
        const cJSON *node;
        unsigned n = 0;

        /* An id that names a Node is that Node's, whoever else has it. */
        if (m->twin_usec == 0 || c->world->options.exec)
                return sim_world_node(c->world, sim_check_index(c, m)) ? 1 : 0;
        id = sim_world_provider_id(c->world, m);
        FAKE_FOREACH (node, c->world->cluster, FAKE_NODES, NULL)
                n += streq_ptr(fj_string(node, "spec", "providerID", NULL), id);
        return n;
}

static bool twin_stays(SimCheck *c, const SimMachine *m) {
        _cleanup_free_ char *id = sim_world_provider_id(c->world, m);
        const cJSON *node;

        FAKE_FOREACH (node, c->world->cluster, FAKE_NODES, NULL)
                if (streq_ptr(fj_string(node, "spec", "providerID", NULL), id) && !sim_check_is_deleting(node))
                        return true;
        return false;
}

/* It is one of them at most, and nobody can tell whose pods it would take; but where all of them are to go. */
static void check_twins(SimCheck *c, const SimProcess *p, const SimMachine *m) {
        _cleanup_free_ char *key = p ? MUST(strf("%s %s", p->user, m->instance)) : NULL;
        const SimAsked *asked = key ? hashmap_get(c->asked, key) : NULL;
        usec_t known = m->twin_usec + (sim_check_was_calm(c, TWIN_USEC) ? TWIN_USEC : TWIN_UNHEARD_USEC);

        if (m->twin_usec > 0 && asked && asked->sent_usec > known && sim_check_nodes_of(c, m) > 1 && twin_stays(c, m))
                sim_check_broken(c, "ended", "%s ends %s, and several Nodes say that they are that machine", p->user,
                                 m->instance);
}

/* Its Node had gone before etcd was restored: that it is back is not told by a watch from before. */
static bool is_unheard(const SimCheck *c, const SimMachine *m) {
        return m->restored_usec > 0 && sim_world_now(c->world) < m->restored_usec + REHEARD_USEC;
}

/* An instance was told to end. */
static void check_end(SimCheck *c, const SimProcess *p, const SimMachine *m) {
        const cJSON *node = sim_world_node(c->world, sim_check_index(c, m)),
                    *claim = sim_world_claim(c->world, sim_check_index(c, m));
        bool early = ends_early(c, p, m) && !is_unheard(c, m);
        size_t left = pods_left(c, p, m);

        if (node && !sim_check_is_deleting(node))
                sim_check_broken(c, "ended", "%s is ended, but node %s is not being deleted", m->instance, m->node);
        if (!node && !sim_check_is_deleting(claim))
                sim_check_broken(c, "ended", "%s is ended, but neither its node nor its claim is being deleted",
                                 m->instance);
        if (node && p && early)
                check_looked(c, p, m);
        check_twins(c, p, m);
        if (left > 0 && early)
                sim_check_broken(c, "ended", "%s is ended with %zu pods left on %s", m->instance, left, m->node);
        if (node && early)
                check_volumes(c, m, &c->seen[sim_check_index(c, m)]);
}

void sim_check_handle_ec2(HttpExchange *x, void *world) {
        SimWorld *w = world;
        const SimProcess *p = sim_check_process_of(w, x->client_identity);
        const SimMachine *m = machine_in(w->check, x->body, x->body_size);
        size_t before = m ? fake_ec2_n_terminations(w->ec2, m->instance) : 0;
        bool alive = m && sim_check_instance_alive(w->check, m->instance);

        sim_trace_add(w->trace, "cloud", "%s asks %.*s", p ? p->name : "somebody", (int) x->body_size,
                      (const char *) x->body);
        fake_ec2_handle(x, w->ec2);
        if (!m || fake_ec2_n_terminations(w->ec2, m->instance) == before)
                return;
        sim_trace_add(w->trace, "cloud", "ends %s", m->instance);
        if (w->queue && alive)
                sim_brake_acted(sim_queue_brake(w->queue), sim_check_index(w->check, m), p, "ends");
        /* What its cloud has ended already is ended by nobody else: a leader that slept may ask for it. */
        if (before == 0 && alive) {
                check_end(w->check, p, m);
                sim_world_machine_ends(w, sim_check_index(w->check, m),
                                       w->options.shutting_down_sec * USEC_PER_SEC);
        }
        if (p)
                note_done(w->check, p, m->instance);
}

void sim_check_exec_ends(SimCheck *c, const SimProcess *p, const SimMachine *m) {
        SimWorld *w = c->world;

        sim_trace_add(w->trace, "cloud", "the command of %s ends %s", p->name, m->instance);
        if (!sim_check_instance_alive(c, m->instance))
                return;
        fake_ec2_terminate(w->ec2, m->instance);
        check_end(c, p, m);
        sim_world_machine_ends(w, sim_check_index(c, m), w->options.shutting_down_sec * USEC_PER_SEC);
}

static Told *told_end(SimCheck *c, const SimProcess *p, const SimMachine *m) {
        _cleanup_free_ char *key = p->life ? told_key(p->life, m->instance) : NULL;

        return key ? hashmap_get(c->told, key) : NULL;
}

void sim_check_exec_accepted(SimCheck *c, const SimProcess *p, const SimMachine *m, bool says_end) {
        Told *told = told_end(c, p, m);

        if (told && says_end)
                told->done_usec = sim_world_now(c->world);
        else if (told)
                told->accepted_usec = sim_world_now(c->world);
}

void sim_check_exec_saw_end(SimCheck *c, const SimProcess *p, const SimMachine *m, bool clean) {
        Told *told = told_end(c, p, m);

        if (told && told->accepted_usec > 0 && clean)
                told->done_usec = sim_world_now(c->world);
}

/* -- answers ----------------------------------------------------------------------------------- */

static void note_eviction(SimCheck *c, const SimRequest *r) {
        _cleanup_free_ char *what = NULL;
        SimProcess *p = sim_check_actor(c);

        if (!p || !streq_ptr(r->subresource, "eviction"))
                return;
        c->n_evicted++;
        what = MUST(strf("/api/v1/namespaces/%s/pods/%s/eviction", r->ns, r->name));
        note_done(c, p, what);
}

void sim_check_note_proof(SimCheck *c, const char *who, size_t left) {
        *(SimProof *) sim_check_entry(c->proofs, who, sizeof(SimProof)) =
                (SimProof){ .left = left, .at_usec = sim_world_now(c->world) };
}

/* A list of a node's pods as the drain asks for it: at once, and of no version that was. */
static void note_proof(SimCheck *c) {
        FakeApi *api = fake_cluster_api(c->world->cluster);
        const FakeLogEntry *e = fake_api_log_at(api, fake_api_log_size(api) - 1);
        const char *selector = e && streq(e->path, "/api/v1/pods") ? strstr(e->query, "spec.nodeName") : NULL;
        _cleanup_free_ char *key = NULL;
        const char *node;
        SimMachine *m;

        if (!selector || e->verb != FAKE_LIST || strstr(e->query, "watch=") || strstr(e->query, "limit=") ||
            strstr(e->query, "resourceVersion="))
                return;
        node = selector + strlen("spec.nodeName");
        node += startswith(node, "%3D") ? 3 : 1;
        key = MUST(strf("%s %.*s", e->user, (int) strcspn(node, "&"), node));
        m = sim_world_machine_of(c->world, strrchr(key, ' ') + 1);
        if (m)
                sim_check_note_proof(c, key, sim_world_pods_alive(c->world, sim_check_index(c, m)));
}

void sim_check_answered(SimCheck *c, unsigned status) {
        if (status / 100 != 2 || !c->world->request)
                return;
        note_eviction(c, c->world->request);
        if (sim_check_actor(c))
                note_proof(c);
}
