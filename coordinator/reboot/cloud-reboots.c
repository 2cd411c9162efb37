/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud-reboots.h"

#include "backoff.h"
#include "cloud-reboot-rule.h"
#include "hashmap.h"
#include "log-catalog.h"
#include "log.h"
#include "machine-end.h"
#include "machine-facts.h"
#include "marks.h"
#include "string-util.h"
#include "strv.h"

#define NODE_BYTES_MAX (4u << 20)
#define CALL_TIMEOUT_USEC (5 * USEC_PER_SEC)
/* What was read of the Node lets the call leave for so long. */
#define CONFIRMED_USEC (5 * USEC_PER_SEC)
#define AGAIN_USEC (5 * USEC_PER_SEC)
#define AGAIN_CAP_USEC (2 * USEC_PER_MINUTE)

/* Of one node: who has more in ten minutes each has no agent of ours. */
#define EVENTS_KEPT_MAX 16u

/* What this leader has told the cloud of one node's machine; stays when the request is over. */
typedef struct Told {
        char *node, *uid;
        char *id;        /* of the last request for which the cloud was called */
        usec_t at_usec;  /* loop_now(): then; 0: never yet */
        char **events;   /* that the cloud took, or may have, of the Node of that uid; oldest first */
        bool said;       /* that another request comes too soon */
} Told;

/* One request. */
typedef struct CloudReboot {
        CloudReboots *owner;
        char *node, *uid, *id, *event, *key;
        MachineEnd *machine; /* it is being proved whose it is; never told to end */
        CloudCall *cloud;    /* waits for its place, or is on its way */
        KubeCall *call;      /* the read of the Node, or the mark */
        bool marking;        /* the mark was sent, and nobody said what became of it */
        bool marked;         /* it stands, and is ours: the cloud has not been told yet, or has refused */
        bool over;           /* the cloud took it, or may have */
        usec_t again_usec;   /* loop_now() */
        Backoff backoff;
        char *told;
} CloudReboot;

struct CloudReboots {
        const TerminationContext *context;
        Env *env;
        WorkQueue *queue;
        Hashmap *map;  /* node -> CloudReboot */
        Hashmap *told; /* node -> Told */
};

static void *reboot_free(void *p) {
        CloudReboot *x = p;

        cloud_call_free(x->cloud);
        kube_call_free(x->call);
        machine_end_free(x->machine);
        free(x->node);
        free(x->uid);
        free(x->id);
        free(x->event);
        free(x->key);
        free(x->told);
        return mfree(x);
}

static void forget(CloudReboots *c, const char *node) {
        CloudReboot *x = hashmap_remove(c->map, node);

        if (x)
                reboot_free(x);
}

static usec_t now_of(const CloudReboot *x) {
        return loop_now(x->owner->env->loop);
}

/* -- what the cloud was told before --------------------------------------------------------------------- */

static void *told_free(void *p) {
        Told *t = p;

        free(t->node);
        free(t->uid);
        free(t->id);
        strv_free(t->events);
        return mfree(t);
}

/* Nodes that are gone, and could not be back before their pace allows it. */
static void drop_old_told(CloudReboots *c) {
        Told *t;

        HASHMAP_FOREACH (t, c->told)
                if (loop_now(c->env->loop) >= usec_add(t->at_usec, CLOUD_REBOOT_PACE_USEC) && !cluster_view_node(c->context->view, t->node)) {
                        hashmap_remove(c->told, t->node);
                        told_free(t);
                }
}

/* Of this Node's name; made if it is not there. A Node that was made anew has its own events, and the old one's pace. NULL: ENOMEM. */
static Told *told_of(CloudReboot *x) {
        CloudReboots *c = x->owner;
        Told *t = hashmap_get(c->told, x->node);

        if (t && streq_ptr(t->uid, x->uid))
                return t;
        if (t) {
                if (free_and_strdup(&t->uid, x->uid) < 0)
                        return NULL;
                strv_free(t->events);
                t->events = NULL;
                return t;
        }
        drop_old_told(c);
        t = new0(Told, 1);
        if (!t)
                return NULL;
        if (free_and_strdup(&t->node, x->node) < 0 || free_and_strdup(&t->uid, x->uid) < 0 || hashmap_put(c->told, t->node, t) < 0)
                return told_free(t);
        return t;
}

/* -ENOMEM: it must not leave. */
static int note_call(CloudReboot *x) {
        Told *t = told_of(x);

        if (!t || free_and_strdup(&t->id, x->id) < 0)
                return -ENOMEM;
        t->at_usec = now_of(x);
        t->said = false;
        return 0;
}

static void note_taken(CloudReboot *x) {
        Told *t = told_of(x);

        if (!t || strv_contains(t->events, x->event))
                return;
        if (strv_length(t->events) >= EVENTS_KEPT_MAX) {
                free(t->events[0]);
                memmove(t->events, t->events + 1, EVENTS_KEPT_MAX * sizeof(char *)); /* with the NULL */
        }
        (void) strv_extend(&t->events, x->event);
}

static int case_of(const CloudReboots *c, const KubeNode *n, RebootCase *ret) {
        return reboot_case_read(n, loop_wall(c->env->loop), c->context->config->reboot_slot_usec, ret);
}

/* -- telling -------------------------------------------------------------------------------------------- */

static void tell(CloudReboot *x, bool failed, const char *message_id, const char *reason, const char *text) {
        const CloudReboots *c = x->owner;
        const KubeNode *n = cluster_view_node(c->context->view, x->node);
        EventObject o;

        if (streq_ptr(x->told, text))
                return;
        (void) free_and_strdup(&x->told, text);
        log_event(c->env->log, failed ? LOG_LEVEL_WARNING : LOG_LEVEL_NOTICE, message_id,
                  LOG_FIELDS({ "NODE", x->node }, { "NOTICE_ID", x->event }, { "REASON", reason }), "Node %s: %s", x->node, text);
        if (!n)
                return;
        o = event_object(&n->object);
        event_record(c->context->recorder, &o, failed ? EVENT_WARNING : EVENT_NORMAL, reason, "%s", text);
}

static void tell_failed(CloudReboot *x, const char *why) {
        _cleanup_free_ char *text = strf("Is drained for the announced reboot %s, which is taken early, and the cloud does not reboot its machine: %s. "
                                         "The cloud is told again while the node has its slot",
                                         x->event, why);

        tell(x, true, MESSAGE_REBOOT_BY_CLOUD_FAILED, "MachineNotRebooted", text ? text : "out of memory");
}

/* -- attempts ------------------------------------------------------------------------------------------- */

static void end_attempt(CloudReboot *x, usec_t pause_usec) {
        x->cloud = cloud_call_free(x->cloud);
        x->call = kube_call_free(x->call);
        x->machine = machine_end_free(x->machine);
        x->again_usec = usec_add(now_of(x), pause_usec);
        (void) work_queue_add_at(x->owner->queue, x->key, x->again_usec);
}

static void attempt_failed(CloudReboot *x, const char *why, usec_t at_least_usec) {
        tell_failed(x, why);
        end_attempt(x, MAX(at_least_usec, backoff_next(&x->backoff, x->owner->env->random)));
}

static void on_rebooted(const CloudResult *result, void *userdata) {
        _cleanup_free_ char *text = NULL, *why = NULL;
        CloudReboot *x = userdata;

        if (result->outcome == CLOUD_OK) {
                text = strf("Is drained for the announced reboot %s, which is taken early: the cloud was told to reboot its machine now", x->event);
                tell(x, false, MESSAGE_REBOOT_BY_CLOUD, "MachineRebooted", text ? text : "out of memory");
        } else if (result->undecided) {
                text = strf("Is drained for the announced reboot %s, and the cloud was told to reboot its machine; nobody knows whether it took that (%s), "
                            "so it is not told again. If the machine stays up its agent puts the node back into service",
                            x->event, result->message);
                tell(x, true, MESSAGE_REBOOT_BY_CLOUD_FAILED, "MachineNotRebooted", text ? text : "out of memory");
        } else {
                why = strdup(result->message);
                attempt_failed(x, why ? why : "out of memory", result->retry_after_usec);
                return;
        }
        note_taken(x);
        x->over = true;
        x->cloud = cloud_call_free(x->cloud);
}

static void send_now(CloudReboot *x) {
        x->marked = true;
        x->marking = false;
        if (note_call(x) < 0) {
                end_attempt(x, AGAIN_USEC);
                return;
        }
        cloud_call_send(x->cloud, usec_add(now_of(x), CONFIRMED_USEC));
}

static void on_marked(const KubeReply *reply, void *userdata) {
        CloudReboot *x = userdata;
        bool written = !reply->error;

        /* Refused, it is not there; not answered, it may be. */
        x->marking = reply->error && reply->error->http == 0 && reply->error->maybe_sent;
        x->call = kube_call_free(x->call);
        if (written)
                send_now(x);
        else
                end_attempt(x, AGAIN_USEC);
}

static void mark(CloudReboot *x, const KubeNode *n, const RebootCase *c) {
        const KubeTarget target = { .kind = &kube_node_kind, .name = x->node };
        const KubeCallOptions options = { .timeout_usec = CALL_TIMEOUT_USEC, .guard = x->owner->context->guard };
        _cleanup_free_ char *body = reboot_sent_patch(n, c->id, c->granted_until_usec);

        x->marking = body && kube_patch(x->owner->context->client, &target, KUBE_PATCH_MERGE, body, &options, on_marked, x, &x->call) >= 0;
        if (!x->marking)
                end_attempt(x, AGAIN_USEC);
}

typedef struct Reading {
        const CloudReboot *of;
        KubeObject *node; /* NULL: it is not there */
} Reading;

static int on_read_item(const char *item, size_t size, void *userdata) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        Reading *reading = userdata;
        int r;

        if (reading->node)
                return -EBADMSG;
        r = json_parse(item, size, size, &doc, NULL);
        if (r < 0)
                return r;
        r = kube_object_decode(&kube_node_kind, json_root(doc), kube_client_pool(reading->of->owner->context->client), &reading->node);
        if (r >= 0 && !streq_ptr(reading->node->meta.name, reading->of->node))
                return -EBADMSG;
        return r;
}

/* By a consistent list of this one Node, in its place. */
static void on_read(const KubeReply *reply, void *userdata) {
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
        _cleanup_(reboot_case_done) RebootCase c = { 0 };
        _cleanup_(json_doc_freep) JsonDoc *rest = NULL;
        CloudRebootVerdict verdict = CLOUD_REBOOT_NONE;
        CloudReboot *x = userdata;
        Reading reading = { .of = x };
        const KubeNode *n;
        const char *why;
        int r = reply->error ? api_error_to_errno(reply->error) : 0;

        if (r >= 0)
                r = json_split_items(reply->body, reply->body_size, NODE_BYTES_MAX, on_read_item, &reading, &rest, NULL);
        x->call = kube_call_free(x->call);
        o = reading.node;
        n = (const KubeNode *) o;
        if (r >= 0)
                r = n ? case_of(x->owner, n, &c) : -ENOENT;
        if (r >= 0 && streq_ptr(c.id, x->id))
                verdict = cloud_reboot_judge(n, &c, loop_wall(x->owner->env->loop), &why);
        if (r >= 0 && verdict == CLOUD_REBOOT_DUE)
                mark(x, n, &c);
        else if (r >= 0 && verdict == CLOUD_REBOOT_SENT && (x->marked || x->marking))
                send_now(x);
        else
                end_attempt(x, AGAIN_USEC);
}

static void on_asked(void *userdata) {
        CloudReboot *x = userdata;
        const KubeTarget target = { .kind = &kube_node_kind };
        const KubeCallOptions options = { .timeout_usec = CALL_TIMEOUT_USEC };
        _cleanup_free_ char *selector = strf("metadata.name=%s", x->node);
        const KubeListOptions list = { .field_selector = selector };

        if (!selector || kube_list(x->owner->context->client, &target, &list, &options, on_read, x, &x->call) < 0)
                end_attempt(x, AGAIN_USEC);
}

static void reserve(CloudReboot *x, const MachineFacts *facts, const char *pool) {
        const CloudReservation reservation = { .operation = CLOUD_REBOOT,
                                               .machine = &facts->machine,
                                               .op_id = x->id,
                                               .pool = pool,
                                               .guard = x->owner->context->guard,
                                               .prove = on_asked,
                                               .done = on_rebooted,
                                               .userdata = x };
        int r;

        r = cloud_reserve(facts->provider, &reservation, &x->cloud);
        if (r == -EOPNOTSUPP)
                attempt_failed(x, "its provider cannot reboot machines", 0);
        else if (r < 0)
                end_attempt(x, AGAIN_USEC);
}

/* -- whose machine -------------------------------------------------------------------------------------- */

static void on_machine(MachineEnd *m, void *userdata) {
        CloudReboot *x = userdata;

        (void) work_queue_add(x->owner->queue, x->key);
}

static void prove_machine(CloudReboot *x, const MachineFacts *facts, const KubeNodeClaim *claim, const KubeNodePool *pool) {
        const MachineEndOptions o = { .provider = facts->provider,
                                      .guard = x->owner->context->guard,
                                      .machine = &facts->machine,
                                      .op_id = "describe",
                                      .identity = claim ? &claim->identity : NULL,
                                      .born_usec = facts->born_usec,
                                      .changed = on_machine,
                                      .userdata = x };

        if (machine_end_new(x->owner->env, &o, &x->machine) < 0) {
                end_attempt(x, AGAIN_USEC);
                return;
        }
        machine_end_trust(x->machine, pool && pool->trusts_provider_ids);
        machine_end_describe(x->machine);
}

/* NULL: it is this Node's, and runs. */
static const char *why_not_proved(const CloudReboot *x) {
        const char *reason, *problem;

        if (machine_end_state(x->machine) == MACHINE_PRESENT && !machine_end_is_off(x->machine) && machine_end_is_proved_anew(x->machine))
                return NULL;
        problem = machine_end_problem(x->machine, &reason);
        return problem ? problem : "it is not proved that the machine is this node's, and runs";
}

/* NULL: this claim's machine is this Node's, as far as the API server knows. */
static const char *why_not_of_node(const CloudReboot *x, const KubeNode *n, const KubeNodeClaim *claim) {
        bool several = false;

        if (!claim || isempty(claim->provider_id))
                return "nothing names its machine";
        if (!streq_ptr(claim->node_name, n->object.meta.name))
                return "its NodeClaim does not name this Node in its status";
        (void) cluster_view_node_of_provider_id(x->owner->context->view, claim->provider_id, &several);
        return several ? "several Nodes name its machine" : NULL;
}

/* True: the cloud is not called for this request now, or not at all. */
static bool was_told_before(CloudReboot *x) {
        Told *t = told_of(x);
        usec_t until_usec = t && t->at_usec > 0 ? usec_add(t->at_usec, CLOUD_REBOOT_PACE_USEC) : 0;
        _cleanup_free_ char *text = NULL;

        if (!t) {
                end_attempt(x, AGAIN_USEC);
                return true;
        }
        if (streq_ptr(t->id, x->id))
                return false;
        if (strv_contains(t->events, x->event)) {
                x->over = true;
                text = strf("Asks for the announced reboot %s once more: the cloud was told to reboot its machine for that, and is not told a second time", x->event);
        } else if (now_of(x) < until_usec) {
                end_attempt(x, until_usec - now_of(x));
                text = strf("Is drained for the announced reboot %s: the cloud was told to reboot its machine less than ten minutes ago, and is told again when these are over, "
                            "if the node has its slot then",
                            x->event);
        } else
                return false;
        if (!t->said)
                tell(x, true, MESSAGE_REBOOT_BY_CLOUD_FAILED, "MachineNotRebooted", text ? text : "out of memory");
        t->said = true;
        return true;
}

static void proceed(CloudReboot *x, const KubeNode *n) {
        const TerminationContext *context = x->owner->context;
        const KubeNodeClaim *claim = cluster_view_claim_of_node(context->view, n);
        const KubeNodePool *pool = claim ? cluster_view_pool(context->view, strempty(claim->node_pool)) : NULL;
        const char *not_of_node = why_not_of_node(x, n, claim);
        _cleanup_free_ char *why = NULL;
        MachineFacts facts;

        if (x->over || x->call || x->cloud)
                return;
        if (now_of(x) < x->again_usec) {
                (void) work_queue_add_at(x->owner->queue, x->key, x->again_usec);
                return;
        }
        if (was_told_before(x))
                return;
        if (not_of_node || !machine_facts_fill(&facts, context->cloud, n, claim, pool ? pool->provider_name : NULL)) {
                attempt_failed(x, not_of_node ? not_of_node : "nothing names its machine", 0);
                return;
        }
        if (!x->machine) {
                prove_machine(x, &facts, claim, pool);
                return;
        }
        if (!machine_end_has_answered(x->machine))
                return;
        if (why_not_proved(x)) {
                why = strdup(why_not_proved(x));
                attempt_failed(x, why ? why : "out of memory", 0);
                return;
        }
        x->machine = machine_end_free(x->machine);
        reserve(x, &facts, pool ? pool->object.meta.name : NULL);
}

/* -- one node ------------------------------------------------------------------------------------------- */

static int reboot_new(CloudReboots *c, const KubeNode *n, const RebootCase *of, const char *key, CloudReboot **ret) {
        CloudReboot *x = new0(CloudReboot, 1);
        int r;

        if (!x)
                return -ENOMEM;
        x->owner = c;
        x->backoff = (Backoff){ .base_usec = AGAIN_USEC, .cap_usec = AGAIN_CAP_USEC, .jitter_permille = 200 };
        r = free_and_strdup(&x->node, n->object.meta.name);
        if (r >= 0)
                r = free_and_strdup(&x->uid, n->object.meta.uid);
        if (r >= 0)
                r = free_and_strdup(&x->id, of->id);
        if (r >= 0)
                r = free_and_strdup(&x->event, of->event);
        if (r >= 0)
                r = free_and_strdup(&x->key, key);
        if (r >= 0)
                r = hashmap_put(c->map, x->node, x);
        if (r < 0) {
                reboot_free(x);
                return r;
        }
        *ret = x;
        return 0;
}

void cloud_reboots_see_node(CloudReboots *c, const char *name, const KubeNode *n, const char *key) {
        _cleanup_(reboot_case_done) RebootCase of = { 0 };
        CloudRebootVerdict verdict = CLOUD_REBOOT_NONE;
        CloudReboot *x = hashmap_get(c->map, name);
        const char *why;
        int r = 0;

        if (!x && (!n || !object_meta_annotation(&n->object.meta, ANNOTATION_SHUTDOWN_REQUEST)))
                return;
        if (n)
                r = case_of(c, n, &of);
        if (r >= 0 && n)
                verdict = cloud_reboot_judge(n, &of, loop_wall(c->env->loop), &why);
        if (r < 0) {
                (void) work_queue_retry(c->queue, key);
                return;
        }
        if (x && (verdict == CLOUD_REBOOT_NONE || !streq(x->id, of.id))) {
                forget(c, name);
                x = NULL;
        }
        switch (verdict) {
        case CLOUD_REBOOT_NONE:
                return;
        case CLOUD_REBOOT_WAITS: /* what has not left this host yet reads the Node once more */
                if (x && x->cloud)
                        (void) cloud_call_hold(x->cloud);
                return;
        case CLOUD_REBOOT_SENT:
                if (x)
                        proceed(x, n);
                return;
        case CLOUD_REBOOT_DUE:
                if (!x && reboot_new(c, n, &of, key, &x) < 0)
                        (void) work_queue_retry(c->queue, key);
                else
                        proceed(x, n);
                return;
        }
}

int cloud_reboots_new(const TerminationContext *context, WorkQueue *queue, CloudReboots **ret) {
        _cleanup_(cloud_reboots_freep) CloudReboots *c = NULL;
        int r;

        assert(context && queue && ret);
        c = new0(CloudReboots, 1);
        if (!c)
                return -ENOMEM;
        c->context = context;
        c->env = context->env;
        c->queue = queue;
        r = hashmap_new(HASHMAP_BORROW_KEYS, &c->map);
        if (r >= 0)
                r = hashmap_new(HASHMAP_BORROW_KEYS, &c->told);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

CloudReboots *cloud_reboots_free(CloudReboots *c) {
        if (!c)
                return NULL;
        hashmap_free_with(c->map, reboot_free);
        hashmap_free_with(c->told, told_free);
        return mfree(c);
}

/* Returns true if the coordinator is to ask the cloud for the reboot now. False: the Node has to change
 * first, which the watch shows. */
static bool reboot_has_next_wakeup(const CloudReboot *x) {
        const KubeNode *n = cluster_view_node(x->owner->context->view, x->node);
        _cleanup_(reboot_case_done) RebootCase of = { 0 };
        CloudRebootVerdict verdict;
        const char *why;

        if (x->over || !n || case_of(x->owner, n, &of) < 0)
                return false;
        verdict = cloud_reboot_judge(n, &of, loop_wall(x->owner->env->loop), &why);
        return verdict == CLOUD_REBOOT_DUE || verdict == CLOUD_REBOOT_SENT;
}

void cloud_reboots_next_wakeup(const CloudReboots *c, Wakeups *w) {
        const CloudReboot *x;

        HASHMAP_FOREACH (x, c->map) {
                if (!reboot_has_next_wakeup(x))
                        continue;
                wakeups_unfinished(w, "reboot by the cloud of node", x->node,
                                   x->marking ? "marking" : x->marked ? "marked" : "",
                                   MAX(CLOUD_REBOOT_WAKEUP_USEC, usec_sub(x->again_usec, now_of(x))));
                wakeups_key(w, c->queue, x->key);
                wakeups_await(w, x->cloud || x->call || (x->machine && machine_end_will_report(x->machine)));
                if (x->machine)
                        machine_end_next_wakeup(x->machine, w);
        }
}
