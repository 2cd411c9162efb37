/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl-dry-run.h"

#include "ctl-cordon.h"
#include "ctl-marks.h"
#include "ctl-say.h"
#include "eviction.h"

#define AT_ONCE 16u
#define CALL_TIMEOUT_USEC (30 * USEC_PER_SEC)

static const struct {
        const char *name, *words;
} verdicts[_DRY_RUN_VERDICT_MAX] = {
        [DRY_RUN_GOES] = { "Evicted", "would be evicted" },
        [DRY_RUN_IS_GOING] = { "Terminating", "is going already" },
        [DRY_RUN_LEFT_ALONE] = { "LeftAlone", "left alone" },
        [DRY_RUN_PROTECTED] = { "Protected", "waited for" },
        [DRY_RUN_REFUSED] = { "Refused", "refused now" },
};

const char *dry_run_verdict_to_string(DryRunVerdict v) {
        return v >= 0 && v < _DRY_RUN_VERDICT_MAX ? verdicts[v].name : NULL;
}

/* -- what is said --------------------------------------------------------------------------------------- */

bool dry_run_node_would_drain(const DryRunNode *n) {
        if (n->error || n->cordon_is_refused)
                return false;
        for (size_t i = 0; i < n->n_pods; i++)
                if (n->pods[i].verdict == DRY_RUN_REFUSED || n->pods[i].verdict == DRY_RUN_PROTECTED)
                        return false;
        return true;
}

void dry_run_node_add_table(StrBuf *b, const DryRunNode *n) {
        static const char *const titles[] = { "POD", "VERDICT", "WHY", "MESSAGE" };
        CtlTable t = CTL_TABLE(ELEMENTSOF(titles));
        size_t from = b->size;

        assert(!n->error);
        strbuf_addf(b, "Node %s: %s", n->name, n->cordon);
        ctl_make_plain(b, from);
        strbuf_add_char(b, '\n');
        for (size_t i = 0; i < ELEMENTSOF(titles); i++)
                ctl_table_add(&t, titles[i]);
        for (size_t i = 0; i < n->n_pods; i++) {
                const DryRunPod *p = n->pods + i;

                ctl_table_addf(&t, "%s/%s", p->ns, p->name);
                ctl_table_add(&t, verdicts[p->verdict].words);
                ctl_table_addf(&t, "%s%s%s", p->reason, p->by ? " " : "", strempty(p->by));
                ctl_table_add(&t, p->message);
        }
        if (n->n_pods > 0)
                ctl_table_print(&t, b);
        b->failed |= t.failed;
        ctl_table_done(&t);
}

char *dry_run_json(const DryRunNode *const *nodes, size_t n) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_array(w, NULL);
        for (size_t i = 0; i < n; i++) {
                const DryRunNode *d = nodes[i];

                json_open_object(w, NULL);
                json_add_string(w, "node", d->name);
                json_add_bool(w, "wouldDrain", dry_run_node_would_drain(d));
                json_add_string(w, "error", d->error);
                json_add_string(w, "cordon", d->cordon);
                json_open_array(w, "pods");
                for (size_t k = 0; k < d->n_pods; k++) {
                        const DryRunPod *p = d->pods + k;

                        json_open_object(w, NULL);
                        json_addf(w, "pod", "%s/%s", p->ns, p->name);
                        json_add_string(w, "verdict", verdicts[p->verdict].name);
                        json_add_string(w, "reason", p->reason[0] ? p->reason : NULL);
                        if (p->by)
                                json_add_string(w, p->by_kind, p->by);
                        json_add_string(w, "message", p->message);
                        json_close_object(w);
                }
                json_close_array(w);
                json_close_object(w);
        }
        json_close_array(w);
        return json_writer_steal(w, NULL);
}

/* -- asking --------------------------------------------------------------------------------------------- */

/* One pod that is to be asked about. */
typedef struct DryRunAsk {
        CtlDryRun *run;
        DryRunPod *pod;
        char *uid;
        KubeCall *call;
} DryRunAsk;

struct CtlDryRun {
        KubeClient *client;
        ProtectedPolicy policy;
        ctl_dry_run_done_t done;
        void *userdata;
        DryRunNode result;
        KubeCall *call; /* the Node, its pods, the cordon: one after the other */
        DryRunAsk *asks;
        size_t n_asks, next, n_under_way;
        KubeNode *node;
        Timer *finish; /* so that no call ends inside its own callback */
};

static void dry_run_pod_done(DryRunPod *p) {
        free(p->ns);
        free(p->name);
        free(p->by);
        free(p->message);
}

CtlDryRun *ctl_dry_run_free(CtlDryRun *d) {
        if (!d)
                return NULL;
        kube_call_free(d->call);
        for (size_t i = 0; i < d->n_asks; i++) {
                kube_call_free(d->asks[i].call);
                free(d->asks[i].uid);
        }
        free(d->asks);
        for (size_t i = 0; i < d->result.n_pods; i++)
                dry_run_pod_done(d->result.pods + i);
        free(d->result.pods);
        free(d->result.name);
        free(d->result.error);
        free(d->result.cordon);
        if (d->node)
                kube_object_unref(&d->node->object);
        timer_free(d->finish);
        return mfree(d);
}

static void on_finish(Timer *t, void *userdata) {
        CtlDryRun *d = userdata;

        d->done(d, &d->result, d->userdata);
}

/* text: taken. */
static void dry_run_fail(CtlDryRun *d, char *text) {
        d->result.error = text ? text : strdup("out of memory");
        timer_arm_in(d->finish, 0);
}

static void dry_run_fail_errno(CtlDryRun *d, int r) {
        dry_run_fail(d, strf("%s", strerrordesc_np(-r) ? strerrordesc_np(-r) : "unknown error"));
}

static KubeTarget node_target(const CtlDryRun *d) {
        return (KubeTarget){ .kind = &kube_node_kind, .name = d->result.name };
}

static void dry_run_ask_more(CtlDryRun *d);

/* Of a budget the cause has the numbers. */
static const char *refusal_words(EvictionAnswer a, const ApiError *e) {
        bool has_numbers = a == EVICTION_BLOCKED_BY_PDB && e->n_causes > 0 && !isempty(e->causes[0].message);

        return has_numbers ? e->causes[0].message : eviction_words(e);
}

static void on_eviction_answered(const KubeReply *reply, void *userdata) {
        DryRunAsk *ask = userdata;
        CtlDryRun *d = ask->run;
        DryRunPod *p = ask->pod;
        EvictionAnswer a = eviction_classify(reply->error, &p->by);

        d->n_under_way--;
        if (a == EVICTION_ACCEPTED || a == EVICTION_GONE)
                p->verdict = a == EVICTION_GONE ? DRY_RUN_IS_GOING : DRY_RUN_GOES;
        else {
                p->verdict = DRY_RUN_REFUSED;
                p->reason = eviction_answer_to_string(a);
                p->by_kind = a == EVICTION_WEBHOOK ? "webhook" : "budget";
                p->message = strdup(refusal_words(a, reply->error));
        }
        ask->call = kube_call_free(ask->call);
        dry_run_ask_more(d);
}

static int dry_run_ask_one(CtlDryRun *d, DryRunAsk *ask) {
        const KubeCallOptions call = { .lane = HTTP_LANE_BULK,
                                       .timeout_usec = CALL_TIMEOUT_USEC,
                                       .dry_run = true,
                                       .object_unread = true };

        return kube_evict(d->client, ask->pod->ns, ask->pod->name, ask->uid, -1, &call, on_eviction_answered,
                          ask, &ask->call);
}

static void dry_run_ask_more(CtlDryRun *d) {
        if (d->result.error)
                return;
        while (d->next < d->n_asks && d->n_under_way < AT_ONCE) {
                int r = dry_run_ask_one(d, d->asks + d->next);

                if (r < 0) {
                        dry_run_fail_errno(d, r);
                        return;
                }
                d->next++;
                d->n_under_way++;
        }
        if (d->n_under_way == 0)
                timer_arm_in(d->finish, 0);
}

/* -- which pods are asked about ------------------------------------------------------------------------- */

static const char *left_alone_why(PodClass c, const KubePod *pod) {
        if (c == POD_CLASS_STATIC)
                return pod_static_doubt(pod) ? "marked as a static pod" : "static pod";
        return c == POD_CLASS_DAEMON ? "DaemonSet" : "finished";
}

/* True: the API server is to be asked. */
static bool dry_run_judge(const CtlDryRun *d, const KubePod *pod, DryRunPod *ret) {
        const char *key = NULL;
        PodClass c = pod_classify(pod, loop_wall(kube_client_env(d->client)->loop), &key, NULL);

        ret->reason = "";
        switch (c) {
        case POD_CLASS_STATIC:
        case POD_CLASS_DAEMON:
        case POD_CLASS_TERMINAL:
                ret->verdict = DRY_RUN_LEFT_ALONE;
                ret->reason = left_alone_why(c, pod);
                return false;
        case POD_CLASS_TERMINATING:
                ret->verdict = DRY_RUN_IS_GOING;
                return false;
        case POD_CLASS_PROTECTED:
                if (d->policy == PROTECTED_IGNORE)
                        return true;
                ret->verdict = DRY_RUN_PROTECTED;
                ret->reason = key;
                return false;
        case POD_CLASS_ORDINARY:
                return true;
        case _POD_CLASS_MAX:
        case _POD_CLASS_INVALID:
                break;
        }
        assert(false && "a pod of no class");
        return false;
}

static int dry_run_add_pod(CtlDryRun *d, const KubePod *pod) {
        DryRunPod *p = d->result.pods + d->result.n_pods++;
        DryRunAsk *ask = d->asks + d->n_asks;

        p->ns = strdup(strempty(pod->object.meta.ns));
        p->name = strdup(pod->object.meta.name);
        if (!p->ns || !p->name)
                return -ENOMEM;
        if (!dry_run_judge(d, pod, p))
                return 0;
        *ask = (DryRunAsk){ .run = d, .pod = p, .uid = strdup(strempty(pod->object.meta.uid)) };
        d->n_asks++;
        return ask->uid ? 0 : -ENOMEM;
}

static int dry_run_take_pods(CtlDryRun *d, const KubeReply *reply) {
        ObjectList list = {};
        int r;

        r = ctl_take_list(d->client, reply, &kube_pod_kind, &list);
        if (r >= 0) {
                d->result.pods = new0(DryRunPod, list.n_items + 1);
                d->asks = new0(DryRunAsk, list.n_items + 1);
                r = d->result.pods && d->asks ? 0 : -ENOMEM;
        }
        for (size_t i = 0; r >= 0 && i < list.n_items; i++)
                r = dry_run_add_pod(d, (const KubePod *) list.items[i]);
        object_list_done(&list);
        return r;
}

/* -- the Node ------------------------------------------------------------------------------------------- */

static void on_pods(const KubeReply *reply, void *userdata) {
        const KubeTarget target = { .kind = &kube_pod_kind };
        CtlDryRun *d = userdata;
        int r;

        if (reply->error)
                dry_run_fail(d, ctl_explain_error(reply->error, "list", &target));
        else {
                r = dry_run_take_pods(d, reply);
                if (r < 0)
                        dry_run_fail_errno(d, r);
        }
        d->call = kube_call_free(d->call);
        dry_run_ask_more(d);
}

static void dry_run_list_pods(CtlDryRun *d) {
        _cleanup_free_ char *selector = strf("spec.nodeName=%s", d->result.name);
        const KubeTarget target = { .kind = &kube_pod_kind };
        const KubeListOptions list = { .field_selector = selector };
        const KubeCallOptions call = { .lane = HTTP_LANE_BULK, .timeout_usec = CALL_TIMEOUT_USEC };
        int r = selector ? kube_list(d->client, &target, &list, &call, on_pods, d, &d->call) : -ENOMEM;

        if (r < 0)
                dry_run_fail_errno(d, r);
}

/* Takes the text. */
static void dry_run_note_cordon(CtlDryRun *d, char *text, bool is_refused) {
        d->result.cordon = text;
        d->result.cordon_is_refused = is_refused;
        if (text)
                dry_run_list_pods(d);
        else
                dry_run_fail_errno(d, -ENOMEM);
}

static void on_cordon_answered(const KubeReply *reply, void *userdata) {
        CtlDryRun *d = userdata;
        KubeTarget target = node_target(d);
        char *text = reply->error ? ctl_explain_error(reply->error, "patch", &target)
                                  : strdup(d->node->unschedulable ? "is cordoned by vesper, and would be marked as vesperctl's, too"
                                                                  : "would be cordoned");
        bool is_refused = reply->error;

        d->call = kube_call_free(d->call);
        dry_run_note_cordon(d, text, is_refused);
}

static void dry_run_cordon(CtlDryRun *d) {
        const KubeCallOptions call = { .timeout_usec = CALL_TIMEOUT_USEC, .dry_run = true };
        KubeTarget target = node_target(d);
        _cleanup_free_ char *body = NULL;
        int r;

        r = ctl_cordon_patch(d->node, &body);
        if (r > 0)
                r = kube_patch(d->client, &target, KUBE_PATCH_MERGE, body, &call, on_cordon_answered, d,
                               &d->call);
        else if (r == 0)
                dry_run_note_cordon(d,
                                    strdup(cordon_owner(d->node) == CORDON_OF_VESPERCTL
                                                   ? "is cordoned by vesperctl drain already"
                                                   : "is cordoned already, not by vesper, and would stay so"),
                                    false);
        if (r < 0)
                dry_run_fail_errno(d, r);
}

static void on_node(const KubeReply *reply, void *userdata) {
        CtlDryRun *d = userdata;
        KubeTarget target = node_target(d);
        KubeObject *o = NULL;
        int r;

        if (reply->error) {
                dry_run_fail(d, ctl_explain_error(reply->error, "get", &target));
                d->call = kube_call_free(d->call);
                return;
        }
        r = kube_object_decode(&kube_node_kind, reply->object, kube_client_pool(d->client), &o);
        d->call = kube_call_free(d->call);
        if (r < 0) {
                dry_run_fail_errno(d, r);
                return;
        }
        d->node = (KubeNode *) o;
        dry_run_cordon(d);
}

int ctl_dry_run_new(KubeClient *c, const char *node, ProtectedPolicy policy, ctl_dry_run_done_t done,
                    void *userdata, CtlDryRun **ret) {
        _cleanup_(ctl_dry_run_freep) CtlDryRun *d = NULL;
        const KubeCallOptions call = { .timeout_usec = CALL_TIMEOUT_USEC };
        KubeTarget target;
        int r;

        assert(c && node && done && ret);
        d = new0(CtlDryRun, 1);
        if (!d)
                return -ENOMEM;
        d->client = c;
        d->policy = policy;
        d->done = done;
        d->userdata = userdata;
        d->result.name = strdup(node);
        if (!d->result.name)
                return -ENOMEM;
        r = timer_new(kube_client_env(c)->loop, "dry run", on_finish, d, &d->finish);
        if (r < 0)
                return r;
        target = node_target(d);
        r = kube_get(c, &target, &call, on_node, d, &d->call);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(d);
        return 0;
}
