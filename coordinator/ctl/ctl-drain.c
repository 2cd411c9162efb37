/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl-drain.h"

#include "backoff.h"
#include "ctl-cordon.h"
#include "ctl-say.h"
#include "informer.h"
#include "log.h"

#define CALL_TIMEOUT_USEC (15 * USEC_PER_SEC)
#define CORDON_TRIES 10u
/* A pod whose grace ends at T takes a moment to go; what is left so long after T does not go by itself. */
#define AFTER_DEADLINE_USEC (30 * USEC_PER_SEC)

struct CtlDrain {
        KubeClient *client;
        Env *env;
        CtlEvictions *evictions;
        CtlDrainOptions options;
        CtlDrainHandler handler;
        char *name, *selector; /* of its pods */
        CtlDrainState state;
        usec_t started_usec, ended_usec; /* loop_now(); 0: it goes on */
        char *error;
        KubeNode *node; /* as it was read, or answered to our patch; a reference */
        bool node_is_read, pods_are_listable;
        KubeCall *read, *probe;
        KubeCall *write; /* the cordon; or, once the node is open, what takes our mark off */
        unsigned n_tries; /* of the cordon */
        Backoff backoff;
        Timer *retry, *timeout, *expiry, *end;
        Informer *node_watch, *pods;
        NodeDrain *drain;
        PodReturns *returns;
        DrainBlocker *left; /* copies */
        size_t n_left;
        size_t n_ended;
        bool is_noted; /* what had to be said of the Node */
};

static void ctl_drain_read(CtlDrain *d);

/* -- state ---------------------------------------------------------------------------------------------- */

static void ctl_drain_set_state(CtlDrain *d, CtlDrainState to, const char *why) {
        assert(!ctl_drain_state_is_end(d->state) && d->state != to);
        log_debug(d->env->log, "Drain of node %s: %s -> %s: %s", d->name,
                  ctl_drain_state_to_string(d->state), ctl_drain_state_to_string(to), why);
        d->state = to;
        if (ctl_drain_state_is_end(to)) {
                d->ended_usec = loop_now(d->env->loop);
                timer_disarm(d->retry);
                timer_disarm(d->timeout);
                timer_disarm(d->expiry);
                timer_arm_in(d->end, 0); /* what calls us now is freed there */
        }
        d->handler.on_changed(d, d->handler.userdata);
}

static void on_end(Timer *t, void *userdata) {
        CtlDrain *d = userdata;

        d->read = kube_call_free(d->read);
        d->probe = kube_call_free(d->probe);
        d->write = kube_call_free(d->write);
        d->drain = node_drain_free(d->drain);
        d->node_watch = informer_free(d->node_watch);
        d->pods = informer_free(d->pods);
}

/* text: taken; NULL: there was no memory for it. */
static void ctl_drain_fail(CtlDrain *d, char *text) {
        if (ctl_drain_state_is_end(d->state)) {
                free(text);
                return;
        }
        free(d->error);
        d->error = text;
        ctl_drain_set_state(d, CTL_DRAIN_FAILED, text ? text : "out of memory");
}

static void ctl_drain_fail_errno(CtlDrain *d, int r) {
        ctl_drain_fail(d, strf("%s", strerrordesc_np(-r) ? strerrordesc_np(-r) : "unknown error"));
}

static void on_timeout(Timer *t, void *userdata) {
        ctl_drain_set_state(userdata, CTL_DRAIN_TIMED_OUT, "--timeout");
}

static void on_expired(Timer *t, void *userdata) {
        ctl_drain_set_state(userdata, CTL_DRAIN_EXPIRED, "--deadline");
}

static void ctl_drain_note(CtlDrain *d, StrBuf *text) {
        ctl_make_plain(text, 0);
        if (text->size > 0 && !text->failed)
                d->handler.on_note(d, text->data, d->handler.userdata);
}

/* -- the pods ------------------------------------------------------------------------------------------- */

static void left_free(DrainBlocker *left, size_t n) {
        for (size_t i = 0; i < n; i++) {
                free((char *) left[i].ns);
                free((char *) left[i].name);
                free((char *) left[i].uid);
                free((char *) left[i].detail);
                free((char *) left[i].message);
        }
        free(left);
}

static int blocker_copy(const DrainBlocker *b, DrainBlocker *ret) {
        *ret = *b; /* the reason is static */
        ret->ns = strdup(b->ns);
        ret->name = strdup(b->name);
        ret->uid = strdup(b->uid);
        ret->detail = strdup(b->detail);
        ret->message = strdup(b->message);
        return ret->ns && ret->name && ret->uid && ret->detail && ret->message ? 0 : -ENOMEM;
}

/* Memory short: what was known stays. */
static void ctl_drain_copy_left(CtlDrain *d) {
        const DrainBlocker *list;
        DrainBlocker *copy;
        size_t n;

        list = node_drain_blockers(d->drain, &n);
        copy = new0(DrainBlocker, n + 1);
        if (!copy)
                return;
        for (size_t i = 0; i < n; i++)
                if (blocker_copy(list + i, copy + i) < 0) {
                        left_free(copy, i + 1);
                        return;
                }
        left_free(d->left, d->n_left);
        d->left = copy;
        d->n_left = n;
}

static void on_drain_changed(NodeDrain *drain, void *userdata) {
        CtlDrain *d = userdata;

        if (ctl_drain_state_is_end(d->state))
                return;
        ctl_drain_copy_left(d);
        if (node_drain_state(drain) == NODE_DRAIN_DRAINED)
                ctl_drain_set_state(d, CTL_DRAIN_DRAINED, "proved");
        else if (d->state == CTL_DRAIN_LISTING)
                ctl_drain_set_state(d, CTL_DRAIN_DRAINING, "pods and budgets are known");
        else
                d->handler.on_changed(d, d->handler.userdata);
}

static void on_drain_pod(NodeDrain *drain, DrainPodEvent e, const KubePod *pod, const DrainBlocker *blocker,
                         const EvictionReport *report, void *userdata) {
        CtlDrain *d = userdata;

        if (e == DRAIN_POD_EVICTED || e == DRAIN_POD_DELETED)
                d->n_ended++;
        else if (e == DRAIN_POD_STAYS || e == DRAIN_POD_LEFT_ALONE) {
                _cleanup_free_ char *text = e == DRAIN_POD_STAYS ? pod_returns_format(pod, d->name)
                                                                 : pod_left_alone_format(pod, d->name);

                if (text)
                        d->handler.on_note(d, text, d->handler.userdata);
        }
}

static const KubePdb *on_pdb_of(const KubePod *pod, void *userdata) {
        return ctl_evictions_pdb_of(((CtlDrain *) userdata)->evictions, pod);
}

static bool on_iterate(HashmapIterator *it, const KubePod **ret, void *userdata) {
        KubeObject *o;

        if (!informer_iterate(((CtlDrain *) userdata)->pods, it, &o))
                return false;
        *ret = (const KubePod *) o;
        return true;
}

static void ctl_drain_begin(CtlDrain *d) {
        usec_t deadline = usec_add(d->started_usec, d->options.deadline_usec);
        const NodeDrainOptions options = { .node = d->name,
                                           .rules = { .returns = d->returns,
                                                      .deadline_usec = deadline == USEC_INFINITY
                                                                               ? USEC_INFINITY
                                                                               : loop_to_server_wall(d->env->loop, deadline),
                                                      .protected_policy = d->options.protected_policy } };
        const NodeDrainHandler handler = { .on_changed = on_drain_changed,
                                           .on_pod = on_drain_pod,
                                           .pdb_of = on_pdb_of,
                                           .iterate = on_iterate,
                                           .userdata = d };
        int r;

        if (d->state != CTL_DRAIN_LISTING || d->drain || d->write || !informer_synced(d->pods) ||
            !ctl_evictions_are_ready(d->evictions))
                return;
        r = node_drain_new(d->client, ctl_evictions_evictor(d->evictions), &options, &handler, &d->drain);
        if (r < 0) {
                ctl_drain_fail_errno(d, r);
                return;
        }
        /* The drain's first result has the number of pods, and begins CTL_DRAIN_DRAINING. */
        node_drain_wake(d->drain);
}

void ctl_drain_see_budgets(CtlDrain *d) {
        if (d->drain)
                node_drain_wake(d->drain);
        else
                ctl_drain_begin(d);
}

static void on_pod_event(Informer *i, InformerEvent e, KubeObject *old, KubeObject *new, void *userdata) {
        CtlDrain *d = userdata;

        if (!d->drain)
                return;
        switch (e) {
        case INFORMER_ADDED:
                node_drain_pod_seen(d->drain, (KubePod *) new);
                break;
        case INFORMER_MODIFIED:
                node_drain_pod_changed(d->drain, (KubePod *) new);
                break;
        case INFORMER_DELETED:
                node_drain_pod_gone(d->drain, (KubePod *) old);
                break;
        }
}

static void on_pods_synced(Informer *i, void *userdata) {
        ctl_drain_begin(userdata);
}

/* -- the Node, while its pods go ------------------------------------------------------------------------ */

static void ctl_drain_take_node(CtlDrain *d, KubeObject *o) {
        kube_object_ref(o);
        if (d->node)
                kube_object_unref(&d->node->object);
        d->node = (KubeNode *) o;
}

/* One try: the node is open either way. */
static void on_unmarked(const KubeReply *reply, void *userdata) {
        CtlDrain *d = userdata;

        d->write = kube_call_free(d->write);
        if (!ctl_drain_state_is_end(d->state))
                ctl_drain_set_state(d, CTL_DRAIN_OPENED, "the Node is schedulable");
}

/* A person has the last word on a cordon: nothing more is evicted, and our mark goes. */
static void ctl_drain_obey(CtlDrain *d) {
        const KubeTarget target = { .kind = &kube_node_kind, .name = d->name };
        const KubeCallOptions call = { .timeout_usec = CALL_TIMEOUT_USEC };
        _cleanup_free_ char *body = NULL;

        d->drain = node_drain_free(d->drain);
        if (d->write)
                return;
        if (ctl_uncordon_plan(d->node, false) == UNCORDON_UNMARKS)
                body = ctl_uncordon_patch(d->node, UNCORDON_UNMARKS);
        if (!body ||
            kube_patch(d->client, &target, KUBE_PATCH_MERGE, body, &call, on_unmarked, d, &d->write) < 0)
                ctl_drain_set_state(d, CTL_DRAIN_OPENED, "the Node is schedulable");
}

static void on_node_event(Informer *i, InformerEvent e, KubeObject *old, KubeObject *new, void *userdata) {
        CtlDrain *d = userdata;

        if (ctl_drain_state_is_end(d->state))
                return;
        if (e == INFORMER_DELETED || !streq_ptr(new->meta.uid, d->node->object.meta.uid)) {
                ctl_drain_set_state(d, CTL_DRAIN_GONE, "the Node was deleted");
                return;
        }
        ctl_drain_take_node(d, new);
        if (!d->node->unschedulable)
                ctl_drain_obey(d);
}

/* The watch of the Node is a help, without which the drain goes on. */
static void on_node_health(Informer *i, bool connected, const char *why, void *userdata) {
        CtlDrain *d = userdata;
        _cleanup_strbuf_ StrBuf text = {};

        if (connected || informer_synced(i))
                return;
        strbuf_addf(&text, "node '%s' cannot be watched, so whoever opens it has to stop this command: %s",
                    d->name, why);
        ctl_drain_note(d, &text);
}

/* Begun beside the cordon: whatever is bound to the node until that holds, the watch brings. */
static int ctl_drain_watch_pods(CtlDrain *d) {
        const InformerOptions options = { .field_selector = d->selector };
        const InformerHandler handler = { .on_event = on_pod_event,
                                          .on_synced = on_pods_synced,
                                          .userdata = d };

        return d->pods ? 0 : informer_new(d->client, &kube_pod_kind, &options, &handler, &d->pods);
}

static void ctl_drain_go_on_cordoned(CtlDrain *d) {
        _cleanup_free_ char *by_name = strf("metadata.name=%s", d->name);
        const InformerOptions options = { .field_selector = by_name };
        const InformerHandler handler = { .on_event = on_node_event,
                                          .on_health = on_node_health,
                                          .userdata = d };
        int r = -ENOMEM;

        if (by_name)
                r = informer_new(d->client, &kube_node_kind, &options, &handler, &d->node_watch);
        if (r < 0) {
                ctl_drain_fail_errno(d, r);
                return;
        }
        ctl_drain_set_state(d, CTL_DRAIN_LISTING, "cordoned");
        ctl_drain_begin(d);
}

/* -- the cordon ----------------------------------------------------------------------------------------- */

/* Returns true if a retry may succeed. The caller reads the Node again before it. */
static bool is_worth_another_try(const ApiError *e) {
        return e->http == 409 || e->http == 0 || e->http == 429 || e->http >= 500;
}

/* Schedules another read of the Node. Returns false if no retry helps, or all retries are used up. */
static bool ctl_drain_retry(CtlDrain *d, const ApiError *e) {
        usec_t delay = 0;

        if (!is_worth_another_try(e) || ++d->n_tries >= CORDON_TRIES)
                return false;
        if (e->http != 409 || d->n_tries >= 3)
                delay = backoff_next(&d->backoff, d->env->random);
        timer_arm_in(d->retry, MAX(delay, e->retry_after_usec));
        return true;
}

static int ctl_drain_decode_node(CtlDrain *d, const KubeReply *reply) {
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
        int r;

        r = kube_object_decode(&kube_node_kind, reply->object, kube_client_pool(d->client), &o);
        if (r >= 0)
                ctl_drain_take_node(d, o);
        return r;
}

static void on_cordoned(const KubeReply *reply, void *userdata) {
        const KubeTarget target = { .kind = &kube_node_kind, .name = ((CtlDrain *) userdata)->name };
        CtlDrain *d = userdata;
        char *text;
        int r;

        if (!reply->error) {
                r = ctl_drain_decode_node(d, reply);
                d->write = kube_call_free(d->write);
                if (r < 0)
                        ctl_drain_fail_errno(d, r);
                else
                        ctl_drain_go_on_cordoned(d);
                return;
        }
        if (ctl_drain_retry(d, reply->error)) {
                d->write = kube_call_free(d->write);
                return;
        }
        text = ctl_explain_error(reply->error, "patch", &target);
        d->write = kube_call_free(d->write);
        ctl_drain_fail(d, text);
}

static void on_retry(Timer *t, void *userdata) {
        ctl_drain_read(userdata);
}

static void ctl_drain_note_others(CtlDrain *d) {
        _cleanup_strbuf_ StrBuf drains = {}, cordon = {};

        if (d->is_noted)
                return;
        d->is_noted = true;
        if (ctl_add_who_drains(&drains, d->node)) {
                strbuf_add(&drains, "; this command takes part, and each pod is evicted once");
                ctl_drain_note(d, &drains);
        }
        if (cordon_owner(d->node) == CORDON_OF_STRANGER) {
                ctl_add_whose_cordon(&cordon, d->node);
                strbuf_addf(&cordon, ": it is drained all the same, and 'vesperctl undrain %s' will not open it",
                            d->name);
                ctl_drain_note(d, &cordon);
        }
}

static void ctl_drain_cordon(CtlDrain *d) {
        const KubeTarget target = { .kind = &kube_node_kind, .name = d->name };
        const KubeCallOptions call = { .timeout_usec = CALL_TIMEOUT_USEC };
        _cleanup_free_ char *body = NULL;
        int r;

        ctl_drain_note_others(d);
        if (d->state == CTL_DRAIN_READING)
                ctl_drain_set_state(d, CTL_DRAIN_CORDONING, "read");
        r = ctl_drain_watch_pods(d);
        if (r >= 0)
                r = ctl_cordon_patch(d->node, &body);
        if (r > 0)
                r = kube_patch(d->client, &target, KUBE_PATCH_MERGE, body, &call, on_cordoned, d, &d->write);
        else if (r == 0)
                ctl_drain_go_on_cordoned(d);
        if (r < 0)
                ctl_drain_fail_errno(d, r);
}

/* -- reading -------------------------------------------------------------------------------------------- */

static void ctl_drain_go_on(CtlDrain *d) {
        if (d->node_is_read && d->pods_are_listable && !ctl_drain_state_is_end(d->state))
                ctl_drain_cordon(d);
}

static void on_read(const KubeReply *reply, void *userdata) {
        const KubeTarget target = { .kind = &kube_node_kind, .name = ((CtlDrain *) userdata)->name };
        CtlDrain *d = userdata;
        char *text = NULL;
        int r = 0;

        /* No retry before the API server has answered once: the kubeconfig may name the wrong one. */
        if (reply->error && (reply->error->http > 0 || d->state != CTL_DRAIN_READING) &&
            !ctl_drain_state_is_end(d->state) && ctl_drain_retry(d, reply->error)) {
                d->read = kube_call_free(d->read);
                return;
        }
        if (reply->error)
                text = ctl_explain_error(reply->error, "get", &target);
        else
                r = ctl_drain_decode_node(d, reply);
        d->node_is_read = !reply->error && r >= 0;
        if (reply->error)
                ctl_drain_fail(d, text);
        else if (r < 0)
                ctl_drain_fail_errno(d, r);
        d->read = kube_call_free(d->read);
        ctl_drain_go_on(d);
}

static void ctl_drain_read(CtlDrain *d) {
        const KubeTarget target = { .kind = &kube_node_kind, .name = d->name };
        const KubeCallOptions call = { .timeout_usec = CALL_TIMEOUT_USEC };
        int r;

        d->node_is_read = false;
        r = kube_get(d->client, &target, &call, on_read, d, &d->read);
        if (r < 0)
                ctl_drain_fail_errno(d, r);
}

/* An informer would try for ever what is not permitted. */
static void on_probed(const KubeReply *reply, void *userdata) {
        const KubeTarget target = { .kind = &kube_pod_kind };
        CtlDrain *d = userdata;

        if (reply->error)
                ctl_drain_fail(d, ctl_explain_error(reply->error, "list, watch", &target));
        else
                d->pods_are_listable = true;
        d->probe = kube_call_free(d->probe);
        ctl_drain_go_on(d);
}

/* -- life ----------------------------------------------------------------------------------------------- */

static int ctl_drain_init(CtlDrain *d, const char *node) {
        int r;

        r = free_and_strdup(&d->name, node);
        if (r < 0)
                return r;
        d->selector = strf("spec.nodeName=%s", node);
        if (!d->selector)
                return -ENOMEM;
        r = timer_new(d->env->loop, "drain: another try", on_retry, d, &d->retry);
        if (r < 0)
                return r;
        r = timer_new(d->env->loop, "drain: time-out", on_timeout, d, &d->timeout);
        if (r < 0)
                return r;
        r = timer_new(d->env->loop, "drain: deadline", on_expired, d, &d->expiry);
        if (r < 0)
                return r;
        return timer_new(d->env->loop, "drain: end", on_end, d, &d->end);
}

static int ctl_drain_ask(CtlDrain *d) {
        const KubeTarget pods = { .kind = &kube_pod_kind };
        const KubeListOptions one = { .limit = 1, .field_selector = d->selector };
        const KubeTarget node = { .kind = &kube_node_kind, .name = d->name };
        const KubeCallOptions call = { .timeout_usec = CALL_TIMEOUT_USEC },
                              bulk = { .lane = HTTP_LANE_BULK, .timeout_usec = CALL_TIMEOUT_USEC };
        int r;

        r = kube_list(d->client, &pods, &one, &bulk, on_probed, d, &d->probe);
        return r < 0 ? r : kube_get(d->client, &node, &call, on_read, d, &d->read);
}

int ctl_drain_new(KubeClient *c, CtlEvictions *evictions, const char *node, const CtlDrainOptions *o,
                  const CtlDrainHandler *h, CtlDrain **ret) {
        _cleanup_(ctl_drain_freep) CtlDrain *d = NULL;
        int r;

        assert(c && evictions && node && o && h && h->on_changed && h->on_note && ret);
        d = new0(CtlDrain, 1);
        if (!d)
                return -ENOMEM;
        d->client = c;
        d->env = kube_client_env(c);
        d->evictions = evictions;
        d->options = *o;
        d->handler = *h;
        d->started_usec = loop_now(d->env->loop);
        d->backoff = (Backoff){ .base_usec = 100 * USEC_PER_MSEC,
                                .cap_usec = 2 * USEC_PER_SEC,
                                .jitter_permille = 200 };
        r = ctl_drain_init(d, node);
        if (r >= 0)
                r = pod_returns_new(&d->returns);
        if (r < 0)
                return r;
        timer_arm(d->timeout, usec_add(d->started_usec, o->timeout_usec));
        timer_arm(d->expiry, usec_add(usec_add(d->started_usec, o->deadline_usec), AFTER_DEADLINE_USEC));
        r = ctl_drain_ask(d);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(d);
        return 0;
}

CtlDrain *ctl_drain_free(CtlDrain *d) {
        if (!d)
                return NULL;
        kube_call_free(d->read);
        kube_call_free(d->probe);
        kube_call_free(d->write);
        node_drain_free(d->drain);
        pod_returns_free(d->returns);
        informer_free(d->node_watch);
        informer_free(d->pods);
        timer_free(d->retry);
        timer_free(d->timeout);
        timer_free(d->expiry);
        timer_free(d->end);
        if (d->node)
                kube_object_unref(&d->node->object);
        left_free(d->left, d->n_left);
        free(d->error);
        free(d->selector);
        free(d->name);
        return mfree(d);
}

DrainProgress ctl_drain_progress(const CtlDrain *d) {
        usec_t until = d->ended_usec > 0 ? d->ended_usec : loop_now(d->env->loop);

        return (DrainProgress){
                .node = d->name,
                .state = d->state,
                .is_cordoned = d->node && d->node->unschedulable,
                .is_ours = d->node && cordon_owner(d->node) == CORDON_OF_VESPERCTL,
                .n_ended = d->n_ended,
                .left = d->left,
                .n_left = d->n_left,
                .took_usec = usec_sub(until, d->started_usec),
                .error = d->error,
        };
}
