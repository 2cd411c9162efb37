/* SPDX-License-Identifier: Apache-2.0 */
#include "launches.h"

#include "adoption.h"
#include "backoff.h"
#include "hashmap.h"
#include "launch-rule.h"
#include "launch-voice.h"
#include "log-catalog.h"
#include "log.h"
#include "marks.h"
#include "parse-util.h"
#include "status-patch.h"
#include "string-util.h"
#include "termination-marks.h"

#define LABEL_ZONE "topology.kubernetes.io/zone"
#define RECORD_TIMEOUT_USEC (5 * USEC_PER_SEC)
/* A recorded request may leave for so long. */
#define RECORDED_USEC (5 * USEC_PER_SEC)
/* A claim that waits for another one to go, or for room in spec.limits, is reconciled so often. */
#define LOOK_AGAIN_USEC (5 * USEC_PER_SEC)
#define WORDS_MAX_BYTES 1024u

static const char *const capacity_labels[] = { "vesper.sh/capacity-type", "karpenter.sh/capacity-type" };

typedef struct Launch {
        Launches *owner;
        char *name, *uid, *key;
        CloudProvider *provider; /* NULL: there is none that can launch */
        CloudCall *call;         /* launch, or find */
        KubeCall *record;        /* the request is being written */
        usec_t find_usec;        /* wall clock: the last find was sent */
        usec_t looked_usec;      /* as LaunchFacts has it */
        bool can_find;           /* find has not been answered as unsupported */
        bool maybe;              /* a request may have launched a machine */
        bool is_answered;        /* the last request: what follows is its answer */
        bool is_final;
        CloudAnswer answer;
        char *words;             /* the cloud's, or NULL */
        char *id;                /* as the cloud has named it */
        bool told_unasked, told_waits;
        usec_t again_usec;       /* wall clock */
        Backoff backoff;
} Launch;

struct Launches {
        const TerminationContext *context;
        WorkQueue *queue;
        Successors *successors;
        Hashmap *map; /* name -> Launch */
};

static void *launch_free(void *p) {
        Launch *x = p;

        cloud_call_free(x->call);
        kube_call_free(x->record);
        free(x->name);
        free(x->uid);
        free(x->key);
        free(x->words);
        free(x->id);
        free(x);
        return NULL;
}

int launches_new(const TerminationContext *context, WorkQueue *queue, Successors *successors, Launches **ret) {
        _cleanup_(launches_freep) Launches *l = NULL;
        int r;

        assert(context && queue && successors && ret);
        l = new0(Launches, 1);
        if (!l)
                return -ENOMEM;
        l->context = context;
        l->queue = queue;
        l->successors = successors;
        r = hashmap_new(HASHMAP_BORROW_KEYS, &l->map);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(l);
        return 0;
}

Launches *launches_free(Launches *l) {
        if (!l)
                return NULL;
        hashmap_free_with(l->map, launch_free);
        free(l);
        return NULL;
}

size_t launches_size(const Launches *l) {
        return hashmap_size(l->map);
}

static void forget(Launches *l, const char *name) {
        Launch *x = hashmap_remove(l->map, name);

        if (x)
                launch_free(x);
}

static usec_t wall_of(const Launches *l) {
        return loop_wall(l->context->env->loop);
}

static void again(Launch *x, usec_t delay_usec) {
        x->again_usec = usec_add(wall_of(x->owner), delay_usec);
        (void) work_queue_add(x->owner->queue, x->key);
}

static const KubeNodeClaim *claim_of(const Launch *x) {
        const KubeNodeClaim *claim = cluster_view_claim(x->owner->context->view, x->name);

        return claim && streq(claim->object.meta.uid, x->uid) ? claim : NULL;
}

/* -- whom it replaces ----------------------------------------------------------------------------------- */

/* Returns the provider of its pool, or of the machine that it replaces. NULL: it cannot launch, or is not
 * known. */
static CloudProvider *provider_of(const Launches *l, const KubeNodeClaim *claim, const KubeNodePool *pool) {
        const CloudRegistry *cloud = l->context->cloud;
        CloudProvider *p = NULL;

        /* A request may have gone to another provider than the one that the pool names now. */
        if (pool && pool->provider_name && !claim->request.token)
                p = cloud_registry_named(cloud, pool->provider_name);
        else if (claim->request.like)
                p = cloud_registry_for(cloud, claim->request.like);
        for (size_t i = 0; i < cloud->n_providers && claim->request.token && !(p && cloud_provider_has(p, CLOUD_LAUNCH)); i++)
                p = cloud->providers[i];
        return p && cloud_provider_has(p, CLOUD_LAUNCH) ? p : NULL;
}

static const char *capacity_type_of(const KubeNode *n) {
        const char *value = NULL;

        for (size_t i = 0; i < ELEMENTSOF(capacity_labels) && !value; i++)
                value = object_meta_label(&n->object.meta, capacity_labels[i]);
        return value;
}

/* Adds to status.group what the machine is to be like: the machine of the claim before, or what was
 * requested for that one. That claim may be gone when the request leaves. */
static void add_likeness(const Launches *l, const KubeNodeClaim *claim, const KubeNodeClaim *before,
                         JsonWriter *w) {
        const KubeNode *n = launch_node_of(l->context->view, before);
        const char *zone = n ? object_meta_label(&n->object.meta, LABEL_ZONE) : NULL;
        const char *capacity_type = n ? capacity_type_of(n) : NULL;
        bool is_next = claim->attempt > 1;

        json_open_object(w, "group");
        json_add_string(w, "like", is_next ? before->request.like : before->provider_id);
        json_add_string(w, "zone", is_next ? before->request.zone : zone);
        json_add_string(w, "capacityType", is_next ? before->request.capacity_type : capacity_type);
        json_close_object(w);
}

/* Borrowed. */
static CloudLaunch launch_of(const KubeNodeClaim *claim, const KubeNodePool *pool) {
        return (CloudLaunch){ .group = pool->provider_group,
                              .like = claim->request.like,
                              .zone = claim->request.zone,
                              .capacity_type = claim->request.capacity_type };
}

/* Returns the resource of spec.limits that has no room for one machine more; NULL: all have. Borrowed. Only "nodes" can be counted:
 * every other resource has room once the machine that is replaced has gone. */
static const char *limit_that_holds(const Launches *l, const KubeNodeClaim *claim, const KubeNodePool *pool) {
        const KubeNodeClaim *c;
        int64_t n = 0, max;

        for (HashmapIterator it = {}; cluster_view_iterate_claims(l->context->view, &it, &c);)
                n += streq_ptr(c->node_pool, pool->object.meta.name);
        for (size_t i = 0; i < pool->limits.n_items; i++) {
                const KeyValue *limit = pool->limits.items + i;
                bool counts = streq(limit->key, "nodes") && parse_int64(limit->value, &max) >= 0;

                if (counts ? n > max : launch_replaced(l->context->view, claim) != NULL)
                        return limit->key;
        }
        return NULL;
}

/* The claim of the attempt before is gone. */
static bool previous_is_gone(const Launches *l, const KubeNodeClaim *claim) {
        _cleanup_free_ char *previous = NULL;

        if (claim->attempt <= 1)
                return true;
        previous = successor_claim_name(claim->replaces[0], claim->attempt - 1);
        return previous && !cluster_view_claim(l->context->view, previous);
}

static bool may_begin(const Launches *l, const KubeNodeClaim *claim, const KubeNodePool *pool) {
        return !pool->object.invalid && previous_is_gone(l, claim) && !limit_that_holds(l, claim, pool);
}

/* An invalid pool keeps its launches: what it says is not known. */
static bool is_wanted(const KubeNodePool *pool) {
        return pool && pool->object.meta.deletion_usec == 0 &&
               (pool->object.invalid || pool->disruption.on_interruption == ON_INTERRUPTION_REPLACE);
}

/* -- what people are told ------------------------------------------------------------------------------- */

static void say(const Launch *x, const KubeNodeClaim *claim, EventType type, const char *reason, const char *message) {
        launch_say(x->owner->context, claim, type, NULL, reason, message ? message : "out of memory");
}

static void tell_failed(Launch *x) {
        const KubeNodeClaim *claim = claim_of(x);
        _cleanup_free_ char *message = NULL;

        if (!claim || x->answer == CLOUD_ANSWER_ACCEPTED || x->is_final) /* launch_give_up() reports that it is final */
                return;
        message = strf("%s%s%s", launch_failure_text(x->answer), isempty(x->words) ? "" : ": ", strempty(x->words));
        launch_say(x->owner->context, claim, EVENT_WARNING, MESSAGE_LAUNCH_FAILED, launch_failure_reason(x->answer),
                   message ? message : launch_failure_text(x->answer));
}

/* -- what is asked -------------------------------------------------------------------------------------- */

static void tell_not_found(Launch *x, const char *words) {
        const KubeNodeClaim *claim = claim_of(x);
        _cleanup_free_ char *shown = str_sanitize(strempty(words), WORDS_MAX_BYTES), *message = launch_find_message(shown);

        if (claim)
                say(x, claim, EVENT_WARNING, "FindFailed", message);
}

static void on_found(const CloudResult *result, void *userdata) {
        Launch *x = userdata;

        if (result->outcome == CLOUD_OK && result->provider_id)
                (void) free_and_strdup(&x->id, result->provider_id);
        else if (result->outcome == CLOUD_OK)
                x->looked_usec = x->find_usec;
        else if (streq_ptr(result->code, CLOUD_UNSUPPORTED))
                x->can_find = false;
        else if (x->maybe)
                tell_not_found(x, result->message);
        else /* the cloud has said already that it launched nothing */
                x->looked_usec = x->find_usec;
        x->call = cloud_call_free(x->call);
        /* A refused request keeps the pause that its answer asked for; a machine that may be there is looked for with growing ones. */
        if (x->maybe || result->outcome != CLOUD_OK)
                again(x, MAX(backoff_next(&x->backoff, x->owner->context->env->random),
                             result->retry_after_usec));
        else
                (void) work_queue_add(x->owner->queue, x->key);
}

static void launch_find(Launch *x, const KubeNodeClaim *claim) {
        const CloudReservation find = { .operation = CLOUD_FIND,
                                        .op_id = claim->request.token,
                                        .pool = claim->node_pool,
                                        .done = on_found,
                                        .userdata = x };

        x->find_usec = wall_of(x->owner);
        if (cloud_reserve(x->provider, &find, &x->call) < 0)
                again(x, USEC_PER_SEC);
}

static void on_launched(const CloudResult *result, void *userdata) {
        Launch *x = userdata;

        x->is_answered = true;
        x->answer = cloud_result_answer(result);
        x->is_final = streq_ptr(result->code, CLOUD_UNSUPPORTED);
        x->maybe = x->maybe || x->answer == CLOUD_ANSWER_UNKNOWN || x->answer == CLOUD_ANSWER_ACCEPTED;
        free(x->words);
        x->words = str_sanitize(strempty(result->message), WORDS_MAX_BYTES);
        if (x->answer == CLOUD_ANSWER_ACCEPTED && result->provider_id)
                (void) free_and_strdup(&x->id, result->provider_id);
        x->call = cloud_call_free(x->call);
        x->record = kube_call_free(x->record); /* refused in its place: the request stands there, and has not left */
        tell_failed(x);
        again(x, MAX(backoff_next(&x->backoff, x->owner->context->env->random), result->retry_after_usec));
}

static void on_recorded(const KubeReply *reply, void *userdata) {
        Launch *x = userdata;
        bool written = !reply->error;

        x->record = kube_call_free(x->record);
        if (written) {
                x->is_answered = false;
                x->looked_usec = 0;
                cloud_call_send(x->call, usec_add(loop_now(x->owner->context->env->loop), RECORDED_USEC));
                return;
        }
        x->call = cloud_call_free(x->call);
        again(x, backoff_next(&x->backoff, x->owner->context->env->random));
}

/* One token for one claim: whatever is asked again launches nothing twice. */
static char *token_of(const KubeNodeClaim *claim) {
        return claim->request.token ? strdup(claim->request.token) : strf("launch-%s", claim->object.meta.uid);
}

static char *record_body(const Launch *x, const KubeNodeClaim *claim) {
        usec_t now = wall_of(x->owner), since = claim->request.since_usec > 0 ? claim->request.since_usec : now;
        JsonWriter *w = status_patch_open(&claim->object);
        _cleanup_free_ char *token = token_of(claim);

        if (!w)
                return NULL;
        json_add_string(w, "phase", CLAIM_PHASE_LAUNCHING);
        json_open_object(w, "group");
        json_add_string(w, "request", "Launch");
        json_add_string(w, "token", token);
        json_add_time(w, "since", since);
        json_add_time(w, "time", now);
        json_add_null(w, "answer");
        json_add_null(w, "message");
        if (x->maybe) /* the answer to this request may hide that an earlier one is open */
                json_add_bool(w, "unresolved", true);
        json_close_object(w);
        return status_patch_close(w);
}

/* The place is ours. */
static void on_place(void *userdata) {
        Launch *x = userdata;
        const TerminationContext *context = x->owner->context;
        const KubeTarget target = { .kind = &kube_node_claim_kind, .name = x->name, .subresource = "status" };
        const KubeCallOptions options = { .timeout_usec = RECORD_TIMEOUT_USEC, .guard = context->guard };
        const KubeNodeClaim *claim = claim_of(x);
        const KubeNodePool *pool = claim ? cluster_view_pool(context->view, strempty(claim->node_pool)) : NULL;
        _cleanup_free_ char *body = NULL;

        if (x->record)
                return;
        if (claim && claim->object.meta.deletion_usec == 0 && is_wanted(pool) &&
            (claim->request.token || may_begin(x->owner, claim, pool)))
                body = record_body(x, claim);
        if (body && kube_patch(context->client, &target, KUBE_PATCH_MERGE, body, &options, on_recorded, x, &x->record) >= 0)
                return;
        x->call = cloud_call_free(x->call);
        again(x, USEC_PER_SEC);
}

static void launch_request(Launch *x, const KubeNodeClaim *claim, const KubeNodePool *pool) {
        _cleanup_free_ char *token = token_of(claim);
        const CloudReservation launch = { .operation = CLOUD_LAUNCH,
                                          .op_id = token,
                                          .pool = claim->node_pool,
                                          .launch = launch_of(claim, pool),
                                          .guard = x->owner->context->guard,
                                          .prove = on_place,
                                          .done = on_launched,
                                          .userdata = x };

        if (!token || cloud_reserve(x->provider, &launch, &x->call) < 0)
                again(x, USEC_PER_SEC);
}

/* -- what is written ------------------------------------------------------------------------------------ */

/* Closes the two objects that are open in json (NULL: there is no memory), and sends that. Returns true if it is sent. */
static bool write_patch(Launches *l, const ObjectWrite *w, JsonWriter *json) {
        _cleanup_free_ char *body = json ? status_patch_close(json) : NULL;

        if (!body) {
                (void) work_queue_retry(l->queue, w->reconcile_key);
                return false;
        }
        return object_writes_patch(l->context->writes, w, KUBE_PATCH_MERGE, body) > 0;
}

/* Returns true if the machine that the cloud has named was there before it was asked for: another claim has it, or its Node is
 * older than the request. */
static bool is_an_old_machine(const Launch *x, const KubeNodeClaim *claim) {
        const ClusterView *view = x->owner->context->view;
        const KubeNode *n = cluster_view_node_of_provider_id(view, x->id, NULL);
        usec_t since = usec_sub(claim->request.since_usec, USEC_PER_MINUTE); /* clocks differ */
        const KubeNodeClaim *other;

        if (n && n->object.meta.creation_usec < since)
                return true;
        for (HashmapIterator it = {}; cluster_view_iterate_claims(view, &it, &other);)
                if (other != claim && streq_ptr(other->provider_id, x->id) &&
                    (other->replaces || other->object.meta.creation_usec < since))
                        return true;
        return false;
}

static void launch_take(Launch *x, const KubeNodeClaim *claim) {
        ObjectWrite w = { .what = "name the machine of",
                          .target = { .kind = &kube_node_claim_kind, .name = x->name },
                          .state = claim->object.meta.resource_version,
                          .reconcile_key = x->key,
                          .urgent = true,
                          .rank = KUBE_RANK_FOLLOWS };
        JsonWriter *json = NULL;

        if (json_writer_new(&json) >= 0) {
                json_open_object(json, NULL);
                json_open_object(json, "metadata");
                json_add_string(json, "resourceVersion", claim->object.meta.resource_version);
                json_close_object(json);
                json_open_object(json, "spec");
                json_add_string(json, "providerID", x->id);
        }
        (void) write_patch(x->owner, &w, json);
}

/* The command mixes machines up: what it says of this one counts as a refusal. */
static void refuse_machine(Launch *x, const KubeNodeClaim *claim) {
        free(x->words);
        x->words = strf("the provider named machine %.256s, which is another's already", x->id);
        x->id = mfree(x->id);
        if (x->find_usec >= claim->request.time_usec) /* find saw no machine of this claim */
                x->looked_usec = x->find_usec;
        x->is_answered = true;
        x->answer = CLOUD_ANSWER_REFUSED;
        tell_failed(x);
        again(x, backoff_next(&x->backoff, x->owner->context->env->random));
}

static bool launch_can_find(const Launch *x) {
        return x->can_find && x->provider && cloud_provider_has(x->provider, CLOUD_FIND);
}

/* Nothing was launched: nobody waits for it. */
static void launch_release(Launch *x, const KubeNodeClaim *claim) {
        ObjectWrite w = { .what = "release",
                          .target = { .kind = &kube_node_claim_kind, .name = x->name },
                          .state = claim->object.meta.resource_version,
                          .reconcile_key = x->key };
        _cleanup_free_ char *body = NULL;
        int r = termination_finalizer_patch(&claim->object, &body);

        if (r < 0)
                (void) work_queue_retry(x->owner->queue, x->key);
        else if (r > 0 && object_writes_patch(x->owner->context->writes, &w, KUBE_PATCH_MERGE, body) > 0) {
                log_event(x->owner->context->env->log, LOG_LEVEL_INFO, MESSAGE_FINALIZER_REMOVED, LOG_FIELDS({ "NODECLAIM", x->name }),
                          "NodeClaim %s is being deleted, and no machine was launched for it: removing its finalizer", x->name);
                if (x->maybe && !launch_can_find(x))
                        say(x, claim, EVENT_WARNING, "MachineUnknown", launch_unknown_text);
                else
                        say(x, claim, EVENT_NORMAL, "NothingLaunched", "No machine was launched for it");
        }
}

/* True: it is sent. */
static bool delete_claim(Launches *l, const KubeNodeClaim *claim, const char *key) {
        ObjectWrite w = { .what = "delete",
                          .target = { .kind = &kube_node_claim_kind, .name = claim->object.meta.name },
                          .state = claim->object.meta.uid,
                          .reconcile_key = key };

        return object_writes_delete(l->context->writes, &w, claim->object.meta.uid, NULL) > 0;
}

static void launch_give_up(Launch *x, const KubeNodeClaim *claim, bool is_wanted) {
        _cleanup_free_ char *message = NULL;

        if (x->is_final)
                message = strf("The provider cannot launch machines: %s", strempty(x->words));
        else if (!is_wanted)
                message = strdup("vesper does not ask for the machine any more: its NodePool is gone, has onInterruption: None, or has no "
                                 "provider that can launch");
        else if (!claim->request.token)
                message = strdup("vesper does not ask for the machine any more: the one before is gone, and spec.limits of its NodePool have no room");
        else
                message = strf("The cloud named no machine within 15 minutes, and vesper asks for it no more%s: %s",
                               x->maybe && launch_can_find(x) ? ". A request may have launched one all the same: vesper looks for it for 10 minutes, and ends it" : "",
                               isempty(x->words) ? "the cloud did not say why" : x->words);
        if (delete_claim(x->owner, claim, x->key))
                say(x, claim, EVENT_WARNING, "LaunchGivenUp", message);
}

/* The view may only not have caught up. */
static void say_unasked(Launch *x, const KubeNodeClaim *claim) {
        usec_t due = usec_add(claim->object.meta.creation_usec, USEC_PER_MINUTE);

        if (wall_of(x->owner) >= due && !x->told_unasked) {
                x->told_unasked = true;
                say(x, claim, EVENT_WARNING, "NotAsked",
                    "No NodeClaim names this one as its successor: no machine is launched for it. vesper makes such claims itself. Delete it");
        }
        (void) work_queue_add_at(x->owner->queue, x->key, usec_add(loop_now(x->owner->context->env->loop), LOOK_AGAIN_USEC));
}

static Condition launching_condition(const Launch *x) {
        return (Condition){ .type = CLAIM_LAUNCHED,
                            .status = CONDITION_FALSE,
                            .reason = "Launching",
                            .message = "A machine is asked for" };
}

static Condition failing_condition(const Launch *x) {
        bool failing = x->answer != CLOUD_ANSWER_ACCEPTED;

        return (Condition){ .type = CLAIM_LAUNCH_FAILING,
                            .status = failing ? CONDITION_TRUE : CONDITION_FALSE,
                            .reason = failing ? launch_failure_reason(x->answer) : "Accepted",
                            .message = failing ? x->words : NULL };
}

/* The last answer. True: it stands in the claim. */
static bool answer_stands(Launch *x, const KubeNodeClaim *claim) {
        const char *answer = cloud_answer_names[x->answer];
        ObjectWrite w = { .what = "write the answer of the cloud to",
                          .target = { .kind = &kube_node_claim_kind, .name = x->name, .subresource = "status" },
                          .state = claim->object.meta.resource_version,
                          .reconcile_key = x->key };
        Condition conditions[] = { launching_condition(x), failing_condition(x) };
        JsonWriter *json;

        if (!x->is_answered || !claim->request.token ||
            (streq_ptr(claim->request.answer, answer) && streq(strempty(claim->request.message), strempty(x->words))))
                return true;
        json = status_patch_open(&claim->object);
        if (json) {
                for (size_t i = 0; i < ELEMENTSOF(conditions); i++)
                        conditions[i].last_transition_usec = wall_of(x->owner);
                json_open_object(json, "group");
                json_add_string(json, "answer", answer);
                json_add_string(json, "message", isempty(x->words) ? NULL : x->words);
                json_close_object(json);
                status_patch_add_conditions(json, &claim->object, conditions, ELEMENTSOF(conditions), 0, NULL);
        }
        (void) write_patch(x->owner, &w, json);
        return false;
}

/* -- a claim without a machine -------------------------------------------------------------------------- */

/* Takes over the state that an earlier leader has written into the claim. */
static void launch_resume(Launch *x, const KubeNodeClaim *claim) {
        x->maybe = claim_request_is_open(&claim->request);
        x->answer = CLOUD_ANSWER_UNKNOWN;
        (void) free_and_strdup(&x->words, claim->request.message);
}

static int launch_new(Launches *l, const KubeNodeClaim *claim, const char *key, Launch **ret) {
        Launch *x = new0(Launch, 1);
        int r;

        if (!x)
                return -ENOMEM;
        x->owner = l;
        x->can_find = true;
        x->backoff = (Backoff){ .base_usec = 2 * USEC_PER_SEC, .cap_usec = USEC_PER_MINUTE, .jitter_permille = 200 };
        launch_resume(x, claim);
        if (free_and_strdup(&x->name, claim->object.meta.name) < 0 || free_and_strdup(&x->uid, claim->object.meta.uid) < 0 ||
            free_and_strdup(&x->key, key) < 0)
                r = -ENOMEM;
        else
                r = hashmap_put(l->map, x->name, x);
        if (r < 0) {
                launch_free(x);
                return r;
        }
        *ret = x;
        return 0;
}

static LaunchFacts facts_of(const Launch *x, const KubeNodeClaim *claim, const KubeNodePool *pool) {
        const ClaimRequest *r = &claim->request;

        return (LaunchFacts){
                .deleting = claim->object.meta.deletion_usec > 0,
                .is_wanted = x->provider && is_wanted(pool),
                .lacks_provider = !x->provider,
                .may_begin = pool && may_begin(x->owner, claim, pool),
                .is_stale = !launch_replaced(x->owner->context->view, claim) &&
                            wall_of(x->owner) >= usec_add(claim->object.meta.creation_usec, LAUNCH_ASKED_USEC),
                .is_asked = r->token,
                .maybe = x->maybe,
                .can_find = launch_can_find(x),
                .is_final = x->is_answered && x->is_final,
                .looked_usec = x->looked_usec,
                .has_id = x->id,
                .is_accepted = x->is_answered ? x->answer == CLOUD_ANSWER_ACCEPTED
                                              : streq_ptr(r->answer, cloud_answer_names[CLOUD_ANSWER_ACCEPTED]),
                .since_usec = r->since_usec,
                .time_usec = r->time_usec,
                .now_usec = wall_of(x->owner),
                .again_usec = x->again_usec,
        };
}

/* Says once what the claim waits for, where no Event has said so. */
static void tell_waits(Launch *x, const KubeNodeClaim *claim, const KubeNodePool *pool, const LaunchFacts *facts) {
        const char *limit = !facts->is_asked && pool && previous_is_gone(x->owner, claim) ? limit_that_holds(x->owner, claim, pool)
                                                                                            : NULL;
        _cleanup_free_ char *message = NULL;

        if (x->told_waits || (!limit && !(facts->deleting && facts->lacks_provider)))
                return;
        x->told_waits = true;
        message = limit ? launch_limit_message(claim, limit) : launch_no_provider_message(claim);
        say(x, claim, EVENT_WARNING, limit ? "WaitingForLimits" : "FindFailed", message);
}

static void launch_step(Launch *x, const KubeNodeClaim *claim) {
        const KubeNodePool *pool = cluster_view_pool(x->owner->context->view, strempty(claim->node_pool));
        Loop *loop = x->owner->context->env->loop;
        LaunchFacts facts;
        usec_t at;

        if (!x->provider)
                x->provider = provider_of(x->owner, claim, pool);
        facts = facts_of(x, claim, pool);
        switch (launch_act(&facts, &at)) {
        case LAUNCH_WAIT:
                tell_waits(x, claim, pool, &facts);
                at = at == USEC_INFINITY ? usec_add(loop_now(loop), LOOK_AGAIN_USEC) : loop_from_wall(loop, at);
                (void) work_queue_add_at(x->owner->queue, x->key, at);
                return;
        case LAUNCH_REQUEST:
                launch_request(x, claim, pool);
                return;
        case LAUNCH_FIND:
                launch_find(x, claim);
                return;
        case LAUNCH_TAKE:
                if (is_an_old_machine(x, claim))
                        refuse_machine(x, claim);
                else
                        launch_take(x, claim);
                return;
        case LAUNCH_GIVE_UP:
                launch_give_up(x, claim, facts.is_wanted);
                return;
        case LAUNCH_RELEASE:
                launch_release(x, claim);
                return;
        case _LAUNCH_ACT_MAX:
                break;
        }
        assert(false && "a launch without an act");
}

/* Without it the claim of a machine could go before the machine. */
static bool put_finalizer(Launch *x, const KubeNodeClaim *claim) {
        ObjectWrite w = { .what = "put the finalizer on",
                          .target = { .kind = &kube_node_claim_kind, .name = x->name },
                          .state = claim->object.meta.resource_version,
                          .reconcile_key = x->key };
        _cleanup_free_ char *body = NULL;

        if (termination_add_finalizer_patch(&claim->object, &body) <= 0)
                (void) work_queue_retry(x->owner->queue, x->key);
        else
                (void) object_writes_patch(x->owner->context->writes, &w, KUBE_PATCH_MERGE, body);
        return false;
}

/* The claim is vesper's own: its phase says so. The phase, and what the machine is to be like, are written
 * while the claim that it follows is there and names it. */
static bool is_acknowledged(Launch *x, const KubeNodeClaim *claim) {
        ObjectWrite w = { .what = "acknowledge",
                          .target = { .kind = &kube_node_claim_kind, .name = x->name, .subresource = "status" },
                          .state = claim->object.meta.resource_version,
                          .reconcile_key = x->key,
                          .urgent = true,
                          .rank = KUBE_RANK_FOLLOWS };
        const KubeNodeClaim *before = successor_named_by(x->owner->context->view, claim);
        JsonWriter *json;

        if (claim->object.meta.deletion_usec > 0)
                return true;
        if (!object_meta_has_finalizer(&claim->object.meta, FINALIZER_TERMINATION))
                return put_finalizer(x, claim);
        if (streq_ptr(claim->phase, CLAIM_PHASE_LAUNCHING))
                return true;
        if (!before) {
                say_unasked(x, claim);
                return false;
        }
        json = status_patch_open(&claim->object);
        if (json) {
                json_add_string(json, "phase", CLAIM_PHASE_LAUNCHING);
                add_likeness(x->owner, claim, before, json);
        }
        (void) write_patch(x->owner, &w, json);
        return false;
}

static void reconcile_nameless(Launches *l, const KubeNodeClaim *claim, const char *key) {
        Launch *x = hashmap_get(l->map, claim->object.meta.name);

        if (x && !streq(x->uid, claim->object.meta.uid)) {
                forget(l, claim->object.meta.name);
                x = NULL;
        }
        if (!x && launch_new(l, claim, key, &x) < 0) {
                (void) work_queue_retry(l->queue, key);
                return;
        }
        /* A request under way is waited for, whatever the claim says now: its answer may name a machine. */
        if (!x->call && !x->record && is_acknowledged(x, claim) && answer_stands(x, claim))
                launch_step(x, claim);
}

/* -- a claim with a machine ----------------------------------------------------------------------------- */

/* adoption.c may write the status of the same claim at the same time: this write has a name of its own, so
 * neither waits for the other. */
static void write_launched(Launches *l, const KubeNodeClaim *claim, const char *key) {
        ObjectWrite w = { .what = "note the launch of the machine of",
                          .target = { .kind = &kube_node_claim_kind, .name = claim->object.meta.name, .subresource = "status" },
                          .state = claim->object.meta.resource_version,
                          .reconcile_key = key };
        Condition conditions[] = {
                { .type = CLAIM_LAUNCHED, .status = CONDITION_TRUE, .reason = "Launched", .message = "The cloud has named the machine" },
                { .type = CLAIM_LAUNCH_FAILING, .status = CONDITION_FALSE, .reason = "Launched" },
        };
        JsonWriter *json = status_patch_open(&claim->object);

        if (json) {
                for (size_t i = 0; i < ELEMENTSOF(conditions); i++)
                        conditions[i].last_transition_usec = wall_of(l);
                if (!claim->node_name)
                        json_add_string(json, "phase", CLAIM_PHASE_LAUNCHED);
                status_patch_add_conditions(json, &claim->object, conditions, ELEMENTSOF(conditions), 0, NULL);
        }
        if (write_patch(l, &w, json))
                log_event(l->context->env->log, LOG_LEVEL_INFO, MESSAGE_MACHINE_LAUNCHED,
                          LOG_FIELDS({ "NODECLAIM", claim->object.meta.name }, { "PROVIDER_ID", claim->provider_id }),
                          "NodeClaim %s: its machine %s is launched", claim->object.meta.name, claim->provider_id);
}

/* Has it become a node that takes pods in time? */
static void see_timeout(Launches *l, const KubeNodeClaim *claim, const char *key) {
        const KubeNodePool *pool = cluster_view_pool(l->context->view, strempty(claim->node_pool));
        usec_t timeout = pool ? pool->disruption.launch_timeout_usec : LAUNCH_TIMEOUT_USEC;
        usec_t due = usec_add(claim->request.time_usec, timeout);
        const KubeNode *n = cluster_view_node_of_provider_id(l->context->view, claim->provider_id, NULL);
        _cleanup_free_ char *message = NULL;

        if (claim->request.time_usec == 0 || (n && adoption_is_initialized(l->context->view, claim, n)))
                return;
        if (wall_of(l) < due) {
                (void) work_queue_add_at(l->queue, key, loop_from_wall(l->context->env->loop, due));
                return;
        }
        if (!delete_claim(l, claim, key))
                return;
        message = launch_timeout_message(claim, is_wanted(pool), timeout);
        launch_say(l->context, claim, EVENT_WARNING, NULL, "LaunchTimeout", message ? message : "out of memory");
}

static bool is_noted_launched(const KubeNodeClaim *claim) {
        const Condition *launched = kube_node_claim_condition(claim, CLAIM_LAUNCHED);

        return launched && launched->status == CONDITION_TRUE;
}

bool launches_reconcile_claim(Launches *l, const char *name, const KubeNodeClaim *claim, const char *key) {
        if (!claim || !claim->replaces) {
                forget(l, name);
                return false;
        }
        if (!claim->provider_id) {
                reconcile_nameless(l, claim, key);
                return true;
        }
        forget(l, name);
        if (claim->request.token && claim->object.meta.deletion_usec == 0 && !is_noted_launched(claim))
                write_launched(l, claim, key);
        if (!kube_node_claim_is_new(claim) || !claim->request.token) /* a person may write spec, and not status.group */
                return false;
        if (claim->object.meta.deletion_usec > 0)
                return !successors_next_stands(l->successors, claim);
        see_timeout(l, claim, key);
        return false;
}

/* -- tests ---------------------------------------------------------------------------------------------- */

void launches_next_wakeup(const Launches *l, Wakeups *w) {
        const Launch *x;

        HASHMAP_FOREACH (x, l->map) {
                wakeups_unfinished(w, "launch", x->name, "no machine yet", LAUNCHES_WAKEUP_USEC);
                wakeups_key(w, l->queue, x->key);
                wakeups_await(w, x->call || x->record);
                wakeups_await(w, object_writes_are_under_way(l->context->writes, &kube_node_claim_kind, NULL, x->name));
        }
}
