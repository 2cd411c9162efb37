/* SPDX-License-Identifier: Apache-2.0 */
#include "out-of-service.h"

#include "backoff.h"
#include "hashmap.h"
#include "log-catalog.h"
#include "log.h"
#include "machine-look.h"
#include "marks.h"
#include "out-of-service-rule.h"
#include "pod-class.h"
#include "string-util.h"
#include "termination-marks.h"

#define ASK_CAP_USEC (5 * USEC_PER_MINUTE)

/* One Node of ours that is not Ready. */
typedef struct Silence {
        OutOfService *owner;
        char *node, *uid, *key;
        usec_t silent_usec, asked_usec, next_ask_usec; /* of OutOfServiceFacts */
        OutOfServiceProof proof;
        MachineEnd *machine; /* the question under way (machine-look.h); NULL: none is */
        Backoff backoff;
        /* The machine was being terminated at the last reconcile, so no describe is sent. */
        bool is_ending;
} Silence;

struct OutOfService {
        const TerminationContext *context;
        Env *env;
        WorkQueue *queue;
        ObjectWrites *writes;
        Hashmap *map; /* node -> Silence */
        bool view_stands;
};

static void *silence_free(void *p) {
        Silence *x = p;

        machine_end_free(x->machine);
        free(x->node);
        free(x->uid);
        free(x->key);
        free(x);
        return NULL;
}

int out_of_service_new(const TerminationContext *context, WorkQueue *queue, ObjectWrites *writes,
                       OutOfService **ret) {
        _cleanup_(out_of_service_freep) OutOfService *o = NULL;
        int r;

        assert(context && queue && writes && ret);
        o = new0(OutOfService, 1);
        if (!o)
                return -ENOMEM;
        o->context = context;
        o->env = context->env;
        o->queue = queue;
        o->writes = writes;
        o->view_stands = true;
        r = hashmap_new(HASHMAP_BORROW_KEYS, &o->map);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(o);
        return 0;
}

OutOfService *out_of_service_free(OutOfService *o) {
        if (!o)
                return NULL;
        hashmap_free_with(o->map, silence_free);
        free(o);
        return NULL;
}

static void silence_forget(OutOfService *o, const char *node) {
        Silence *x = hashmap_remove(o->map, node);

        if (x)
                silence_free(x);
}

void out_of_service_view_changed(OutOfService *o, bool stands) {
        Silence *x;

        o->view_stands = stands;
        HASHMAP_FOREACH (x, o->map) {
                x->silent_usec = loop_now(o->env->loop);
                (void) work_queue_add(o->queue, x->key);
        }
}

static int silence_new(OutOfService *o, const KubeNode *n, const char *key, Silence **ret) {
        Silence *x = new0(Silence, 1);
        int r;

        if (!x)
                return -ENOMEM;
        x->owner = o;
        x->silent_usec = loop_now(o->env->loop);
        x->backoff = (Backoff){ .base_usec = OUT_OF_SERVICE_ASK_USEC,
                                .cap_usec = ASK_CAP_USEC,
                                .jitter_permille = 200 };
        if (free_and_strdup(&x->node, n->object.meta.name) < 0 ||
            free_and_strdup(&x->uid, n->object.meta.uid) < 0 || free_and_strdup(&x->key, key) < 0)
                r = -ENOMEM;
        else
                r = hashmap_put(o->map, x->node, x);
        if (r < 0) {
                silence_free(x);
                return r;
        }
        *ret = x;
        return 0;
}

/* -- what the provider says ----------------------------------------------------------------------------- */

static void on_machine(MachineEnd *m, void *userdata) {
        Silence *x = userdata;

        (void) work_queue_add(x->owner->queue, x->key);
}

static int ask_provider(Silence *x, const KubeNode *n) {
        usec_t pause = backoff_next(&x->backoff, x->owner->env->random);
        int r;

        x->proof = OUT_OF_SERVICE_UNPROVED;
        x->asked_usec = loop_now(x->owner->env->loop);
        x->next_ask_usec = usec_add(x->asked_usec, MAX(pause, OUT_OF_SERVICE_ASK_USEC));
        r = machine_look_ask(x->owner->context, n, on_machine, x, &x->machine);
        if (r < 0)
                return r;
        return work_queue_add_at(x->owner->queue, x->key, x->next_ask_usec);
}

static void note_answer(Silence *x) {
        if (!x->machine || !machine_end_has_answered(x->machine))
                return;
        switch (machine_look_read(x->machine)) {
        case MACHINE_LOOK_OFF:
                x->proof = OUT_OF_SERVICE_OFF;
                break;
        case MACHINE_LOOK_GONE:
                x->proof = OUT_OF_SERVICE_GONE;
                break;
        case MACHINE_LOOK_RUNS:
        case MACHINE_LOOK_UNKNOWN:
                x->proof = OUT_OF_SERVICE_UNPROVED;
                break;
        }
        x->machine = machine_end_free(x->machine);
}

/* -- the taint ------------------------------------------------------------------------------------------ */

static void tell_of_taint(OutOfService *o, const char *node, bool put, const char *text) {
        const char *reason = put ? "OutOfService" : "BackInService";
        const KubeNode *n = cluster_view_node(o->context->view, node);

        log_event(o->env->log, LOG_LEVEL_INFO,
                  put ? MESSAGE_NODE_OUT_OF_SERVICE : MESSAGE_NODE_BACK_IN_SERVICE,
                  LOG_FIELDS({ "NODE", node }, { "REASON", reason }), "Node %s is %s service. %s", node,
                  put ? "out of" : "back in", text);
        if (n) {
                EventObject object = event_object(&n->object);

                event_record(o->context->recorder, &object, put ? EVENT_WARNING : EVENT_NORMAL, reason, "%s",
                             text);
        }
}

static const char says_off[] =
        "It is not Ready, and the provider says that its machine is off. "
        "It was tainted " TAINT_OUT_OF_SERVICE ", so that Kubernetes removes its pods and detaches its volumes. "
        "Start the machine, and the taint is taken off once the node is Ready";
static const char says_gone[] =
        "It is not Ready, and the provider says that its machine is gone. "
        "It was tainted " TAINT_OUT_OF_SERVICE ", so that Kubernetes removes its pods and detaches its volumes";
static const char says_back[] =
        "It is Ready again. The taint " TAINT_OUT_OF_SERVICE " of vesper's is off, and it may take pods";

static void on_tainted(const char *name, const ApiError *error, void *userdata) {
        OutOfService *o = userdata;
        const Silence *x = hashmap_get(o->map, name);

        if (!error)
                tell_of_taint(o, name, true, x && x->proof == OUT_OF_SERVICE_GONE ? says_gone : says_off);
}

static void on_untainted(const char *name, const ApiError *error, void *userdata) {
        if (!error)
                tell_of_taint(userdata, name, false, says_back);
}

static void write_taint(OutOfService *o, const KubeNode *n, bool put, const char *key) {
        ObjectWrite w = { .what = put ? "put the taint " TAINT_OUT_OF_SERVICE " on"
                                      : "take the taint " TAINT_OUT_OF_SERVICE " off",
                          .target = { .kind = &kube_node_kind, .name = n->object.meta.name },
                          .state = n->object.meta.resource_version,
                          .reconcile_key = key,
                          .written = put ? on_tainted : on_untainted,
                          .userdata = o };
        _cleanup_free_ char *body = NULL;
        int r;

        r = put ? termination_out_of_service_patch(n, loop_wall(o->env->loop), &body)
                : termination_in_service_patch(n, &body);
        if (r < 0)
                (void) work_queue_retry(o->queue, key);
        else if (r > 0)
                (void) object_writes_patch(o->writes, &w, KUBE_PATCH_MERGE, body);
}

/* -- one node ------------------------------------------------------------------------------------------- */

static bool holds_anything(const OutOfService *o, const char *node) {
        usec_t wall = loop_wall(o->env->loop);
        const KubeVolumeAttachment *volume;
        const KubePod *pod;

        for (HashmapIterator it = {}; cluster_view_iterate_pods(o->context->view, node, &it, &pod);) {
                PodClass class = pod_classify(pod, wall, NULL, NULL);

                if (class == POD_CLASS_TERMINATING || class == POD_CLASS_PROTECTED ||
                    class == POD_CLASS_ORDINARY)
                        return true;
        }
        for (HashmapIterator it = {}; cluster_view_iterate_volumes(o->context->view, node, &it, &volume);)
                if (volume->attached)
                        return true;
        return false;
}

static OutOfServiceFacts gather_facts(const OutOfService *o, const KubeNode *n, const Silence *x, bool ending) {
        OutOfServiceFacts f = {
                .managed = object_meta_has_finalizer(&n->object.meta, FINALIZER_TERMINATION),
                .ready = kube_node_is_ready(n),
                .tainted = kube_node_has_taint(n, TAINT_OUT_OF_SERVICE, NULL),
                .marked = object_meta_annotation(&n->object.meta, ANNOTATION_OUT_OF_SERVICE),
                .view_stands = o->view_stands,
                .now_usec = loop_now(o->env->loop),
        };

        if (f.ready || !x)
                return f;
        if (n->provider_id)
                (void) cluster_view_node_of_provider_id(o->context->view, n->provider_id, &f.shared);
        f.holds = !ending && holds_anything(o, n->object.meta.name);
        f.asking = x->machine;
        f.proof = x->proof;
        f.silent_usec = x->silent_usec;
        f.asked_usec = x->asked_usec;
        f.next_ask_usec = x->next_ask_usec;
        return f;
}

void out_of_service_see_node(OutOfService *o, const char *name, const KubeNode *n, bool ending, const char *key) {
        Silence *x = hashmap_get(o->map, name);
        OutOfServiceFacts f;
        usec_t until;

        if (x && (!n || kube_node_is_ready(n) || !streq(x->uid, n->object.meta.uid) ||
                  !object_meta_has_finalizer(&n->object.meta, FINALIZER_TERMINATION))) {
                silence_forget(o, name);
                x = NULL;
        }
        if (!n)
                return;
        if (!x && !kube_node_is_ready(n) &&
            object_meta_has_finalizer(&n->object.meta, FINALIZER_TERMINATION) &&
            silence_new(o, n, key, &x) < 0) {
                (void) work_queue_retry(o->queue, key);
                return;
        }
        if (x) {
                note_answer(x);
                x->is_ending = ending;
        }
        f = gather_facts(o, n, x, ending);
        switch (out_of_service_decide(&f, &until)) {
        case OUT_OF_SERVICE_LEAVE:
                return;
        case OUT_OF_SERVICE_WAIT:
                (void) work_queue_add_at(o->queue, key, until);
                return;
        case OUT_OF_SERVICE_ASK:
                if (ask_provider(x, n) < 0)
                        (void) work_queue_retry(o->queue, key);
                return;
        case OUT_OF_SERVICE_TAINT:
                write_taint(o, n, true, key);
                return;
        case OUT_OF_SERVICE_UNTAINT:
                write_taint(o, n, false, key);
                return;
        }
}

void out_of_service_next_wakeup(const OutOfService *o, Wakeups *w) {
        const Silence *x;

        HASHMAP_FOREACH (x, o->map) {
                const KubeNode *n = cluster_view_node(o->context->view, x->node);
                OutOfServiceFacts f;
                usec_t until;

                if (x->machine)
                        machine_end_next_wakeup(x->machine, w);
                if (!n || kube_node_is_ready(n))
                        continue;
                f = gather_facts(o, n, x, x->is_ending);
                if (out_of_service_decide(&f, &until) == OUT_OF_SERVICE_LEAVE)
                        continue;
                wakeups_unfinished(w, "silent node", x->node, x->machine ? "the provider is asked" : "",
                                   OUT_OF_SERVICE_WAKEUP_USEC);
                wakeups_key(w, o->queue, x->key);
                wakeups_await(w, x->machine && machine_end_will_report(x->machine));
                wakeups_await(w, object_writes_are_under_way(o->writes, &kube_node_kind, NULL, x->node));
        }
}
