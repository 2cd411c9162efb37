/* SPDX-License-Identifier: Apache-2.0 */
#include "node-webhook.h"

#include <inttypes.h>

#include "admission-exempt.h"
#include "admission-review.h"
#include "env.h"
#include "hashmap.h"
#include "interruption.h"
#include "list.h"
#include "log.h"
#include "marks.h"
#include "refusal-log.h"
#include "string-util.h"
#include "token-bucket.h"

/* The API server waits 3 s (timeoutSeconds of its configuration). */
#define ANSWER_USEC (2500 * USEC_PER_MSEC)
/* Maximum length of a user's name in the log. */
#define USER_TEXT_BYTES_MAX 128u
#define LINES_BURST 50u
#define LINES_PER_MINUTE 60u
#define UNSEEN_LINES_PER_MINUTE 1u
#define ADOPT_USEC (2 * USEC_PER_MINUTE)
/* Nodes that are waited for so; of more than that the first are forgotten, and asked to wait anew. */
#define UNADOPTED_MAX 1024u

const char *const webhook_answer_names[_WEBHOOK_ANSWER_MAX + 1] = {
        [WEBHOOK_ALLOWED] = "allowed",       [WEBHOOK_REFUSED] = "refused", [WEBHOOK_EXEMPT] = "exempt",
        [WEBHOOK_UNADOPTED] = "unadopted",   [WEBHOOK_UNSEEN] = "unseen",   [WEBHOOK_UNKNOWN] = "unknown",
        [WEBHOOK_UNREADABLE] = "unreadable",
};

const char *const webhook_refusal_names[_HTTP_REFUSAL_MAX + 1] = {
        [HTTP_REFUSED_CONNECTION] = "connection", [HTTP_REFUSED_ADDRESS] = "address",
        [HTTP_REFUSED_BODIES] = "bodies",         [HTTP_REFUSED_SIZE] = "size",
        [HTTP_REFUSED_RATE] = "rate",             [HTTP_REFUSED_HANDSHAKES] = "handshakes",
        [HTTP_REFUSED_SLOW] = "slow",             [HTTP_REFUSED_DISPLACED] = "displaced",
};

struct NodeWebhook {
        KubeClient *client;
        Env *env;
        const ClusterView *view;
        BudgetLedger *ledger;
        char *own_account;
        char *const *exempt;
        bool known_alone;
        List open; /* of Question */
        Hashmap *unadopted; /* uid of a Node -> FirstTry */
        TokenBucket lines; /* of the log: who asks is told in any case */
        uint64_t answers[_WEBHOOK_ANSWER_MAX];
        uint64_t refused[_HTTP_REFUSAL_MAX]; /* by the listener */
        RefusalLog refusals;
        TokenBucket unseen_lines;
        uint64_t unseen_logged; /* WEBHOOK_UNSEEN answers that the log has counted */
};

typedef struct FirstTry {
        usec_t at_usec; /* loop_now() */
} FirstTry;

/* One that waits for the ledger. */
typedef struct Question {
        NodeWebhook *webhook;
        HttpExchange *exchange;
        BudgetRequest *request;
        char *uid, *what, *user; /* of the review; "Node n1"; who asks */
        char *holder;            /* of the charge */
        ListNode in_open;
} Question;

static Question *question_free(Question *q) {
        if (!q)
                return NULL;
        budget_request_free(q->request);
        if (q->exchange)
                list_remove(&q->webhook->open, &q->in_open);
        free(q->uid);
        free(q->what);
        free(q->user);
        free(q->holder);
        return mfree(q);
}
DEFINE_FREEP(Question, question_free);

/* -- answers -------------------------------------------------------------------------------------------- */

/* Takes the body; NULL: no memory for it. */
static void reply(NodeWebhook *w, HttpExchange *x, WebhookAnswer answer, char *body) {
        _cleanup_free_ char *owned = body;

        w->answers[answer]++;
        if (owned)
                http_reply_text(x, 200, "application/json", owned);
        else
                http_reply_text(x, 500, "text/plain", "out of memory\n");
}

static void reply_unknown(NodeWebhook *w, HttpExchange *x, const char *why) {
        w->answers[WEBHOOK_UNKNOWN]++;
        http_reply_text(x, 503, "text/plain", why);
}

static void on_ledger(BudgetAnswer a, const char *message, void *userdata) {
        _cleanup_(question_freep) Question *q = userdata;
        NodeWebhook *w = q->webhook;
        HttpExchange *x = q->exchange;
        _cleanup_free_ char *text = message ? strdup(message) : NULL;
        usec_t at;

        list_remove(&w->open, &q->in_open);
        q->exchange = NULL;
        switch (a) {
        case BUDGET_ADMITTED:
                reply(w, x, WEBHOOK_ALLOWED, admission_allow(q->uid, NULL, 0));
                return;
        case BUDGET_REFUSED:
                if (token_bucket_take(&w->lines, loop_now(w->env->loop), &at))
                        log_info(w->env->log, "Refused %s the deletion of %s: %s", q->user, q->what, strempty(text));
                reply(w, x, WEBHOOK_REFUSED, admission_refuse(q->uid, strempty(text)));
                return;
        case BUDGET_UNKNOWN:
        case _BUDGET_ANSWER_MAX:
                break;
        }
        if (token_bucket_take(&w->lines, loop_now(w->env->loop), &at))
                log_warning(w->env->log, "The deletion of %s by %s is left to the webhook's failurePolicy: %s", q->what, q->user, strempty(text));
        reply_unknown(w, x, strempty(text));
}

/* The charge, if there is one already, stands for its time. */
static void on_gone(HttpExchange *x, void *userdata) {
        question_free(userdata);
}

/* -- what is asked about -------------------------------------------------------------------------------- */

/* The Node whose machine a claim stands for; NULL: there is none. */
static const KubeNode *node_of_claim(const NodeWebhook *w, const KubeNodeClaim *c) {
        const char *name = cluster_view_node_named_by(c);
        const KubeNode *n = name ? cluster_view_node(w->view, name) : NULL;

        if (kube_node_claim_is_standalone(c) && !kube_node_claim_is_adopted(c))
                return NULL; /* it goes, and its Node stays */

        return n && (!c->node_uid || streq(c->node_uid, n->object.meta.uid)) ? n : NULL;
}

/* Returns the view's Node with name and uid of the review, or NULL. The review's own labels and conditions
 * may be made up. */
static const KubeNode *node_of_review(const NodeWebhook *w, const AdmissionReview *r) {
        const KubeNode *n = cluster_view_node(w->view, r->object->meta.name);

        return n && streq(n->object.meta.uid, r->object->meta.uid) ? n : NULL;
}

/* NULL: nothing that a budget counts. */
static const KubeNode *node_asked_about(const NodeWebhook *w, const AdmissionReview *r) {
        const KubeNode *n = r->subject == ADMISSION_NODE_DELETE ? node_of_review(w, r)
                            : r->subject == ADMISSION_CLAIM_DELETE
                                    ? node_of_claim(w, (const KubeNodeClaim *) r->object)
                                    : NULL;

        /* What is being deleted already was asked about before. */
        return n && n->object.meta.deletion_usec == 0 ? n : NULL;
}

/* Returns true if the review is about a Node that the view does not have yet, as far as its version says. */
static bool is_unseen(const NodeWebhook *w, const AdmissionReview *r) {
        return r->subject == ADMISSION_NODE_DELETE && !node_of_review(w, r) &&
               admission_may_be_newer(r->object->meta.resource_version, cluster_view_nodes_version(w->view));
}

static bool is_exempt(const NodeWebhook *w, const AdmissionReview *r) {
        /* The coordinator's own deletions are charged by the coordinator, before the request or before the
         * drain. */
        return streq(r->username, w->own_account) || admission_exempt_reason(r->username, w->exempt);
}

static void forget_old_tries(NodeWebhook *w, usec_t now_usec) {
        const char *uid;
        void *t;

        for (HashmapIterator it = {}; hashmap_iterate(w->unadopted, &it, &uid, &t);)
                if (now_usec >= usec_add(((FirstTry *) t)->at_usec, 2 * ADOPT_USEC)) {
                        hashmap_remove(w->unadopted, uid);
                        free(t);
                }
}

/* A pool selects it, and nothing of ours is on it yet: for so long its deletion can wait. */
static bool is_to_be_adopted(NodeWebhook *w, const KubeNode *n, bool dry_run) {
        const KubeNode *known = cluster_view_node(w->view, n->object.meta.name);
        usec_t now = loop_now(w->env->loop);
        FirstTry *t;

        /* One that is not in view was made up, or has not been seen long enough to be adopted: its name alone would fill the
         * list. */
        if (!known || !streq(known->object.meta.uid, n->object.meta.uid) ||
            object_meta_has_finalizer(&n->object.meta, FINALIZER_TERMINATION) ||
            cluster_view_pool_of_node(w->view, n, NULL, NULL) == POOL_MATCH_NONE)
                return false;
        t = hashmap_get(w->unadopted, n->object.meta.uid);
        if (t)
                return now < usec_add(t->at_usec, ADOPT_USEC);
        forget_old_tries(w, now);
        if (dry_run || hashmap_size(w->unadopted) >= UNADOPTED_MAX)
                return dry_run;
        t = new0(FirstTry, 1);
        if (!t)
                return false;
        t->at_usec = now;
        if (hashmap_put(w->unadopted, n->object.meta.uid, t) < 0) {
                free(t);
                return false;
        }
        return true;
}

/* -- a request ------------------------------------------------------------------------------------------ */

static int question_new(NodeWebhook *w, HttpExchange *x, const AdmissionReview *r, Question **ret) {
        _cleanup_(question_freep) Question *q = new0(Question, 1);

        if (!q)
                return -ENOMEM;
        q->webhook = w;
        q->what = strf("%s %s", r->object->kind->kind, r->object->meta.name);
        if (!q->what || free_and_strdup(&q->uid, r->uid) < 0)
                return -ENOMEM;
        q->user = str_sanitize(isempty(r->username) ? "nobody" : r->username, USER_TEXT_BYTES_MAX);
        /* Users whose names differ only beyond the maximum, or in control characters, count as one holder.
         * They delete the same node. */
        q->holder =
                str_sanitize(isempty(r->username) ? "nobody" : r->username, NODE_CHARGE_HOLDER_BYTES_MAX);
        if (!q->user || !q->holder)
                return -ENOMEM;
        *ret = TAKE_PTR(q);
        return 0;
}

static void ask_ledger(NodeWebhook *w, HttpExchange *x, const AdmissionReview *r, const KubeNode *n) {
        _cleanup_(question_freep) Question *q = NULL;
        const KubeNodeClaim *claim = cluster_view_claim_of_node(w->view, n);
        BudgetAsk ask = { .node = n,
                          .kind = NODE_CHARGE_DELETE,
                          .timeout_usec = ANSWER_USEC,
                          .dry_run = r->dry_run,
                          .claim_is_deleting = claim && claim->object.meta.deletion_usec > 0 };
        int k = question_new(w, x, r, &q);

        if (k >= 0) {
                ask.holder = q->holder;
                k = budget_ledger_ask(w->ledger, &ask, on_ledger, q, &q->request);
        }
        if (k < 0) {
                reply_unknown(w, x, "out of memory\n");
                return;
        }
        q->exchange = x;
        x->on_gone = on_gone;
        x->userdata = q;
        list_append(&w->open, &q->in_open);
        TAKE_PTR(q);
}

/* Why the deletion of a node that no pool has adopted yet has to wait. NULL on ENOMEM. */
static char *unadopted_text(const NodeWebhook *w, const KubeNode *n) {
        const KubeNodePool *pool, *other;

        if (cluster_view_pool_of_node(w->view, n, &pool, &other) == POOL_MATCH_SEVERAL)
                return strf("NodePools %s and %s both select node %s, so neither adopts it. Deleted now, it would leave its machine behind, which "
                            "nobody would end. Change the selector of one of them, or delete the node again after two minutes: then vesper "
                            "lets it go, and you have to end the machine yourself",
                            pool->object.meta.name, other->object.meta.name, n->object.meta.name);
        return strf("Node %s is about to be adopted by its NodePool. Deleted before, it would leave its machine behind, which "
                    "nobody would end. Delete it again in a few seconds; after two minutes it is let go in any case, and the "
                    "NodePool's conditions say why it is not adopted",
                    n->object.meta.name);
}

/* Logs, once a minute, that this replica has refused deletions of Nodes that it has not seen. A replica
 * whose watch has stopped refuses the deletion of every new Node. */
static void log_unseen(NodeWebhook *w, const AdmissionReview *r) {
        const char *seen = cluster_view_nodes_version(w->view);
        _cleanup_free_ char *user = NULL, *version = NULL;
        usec_t at;

        if (!token_bucket_take(&w->unseen_lines, loop_now(w->env->loop), &at))
                return;
        user = str_sanitize(isempty(r->username) ? "nobody" : r->username, USER_TEXT_BYTES_MAX);
        version = str_sanitize(strempty(r->object->meta.resource_version), USER_TEXT_BYTES_MAX);
        log_warning(w->env->log,
                    "Refused %s the deletion of Node %s with HTTP 503: this replica has not seen the Node. Its view of the "
                    "Nodes is at resourceVersion '%s', and the Node in the review has '%s'. Deletions refused for this "
                    "reason since the last such line: %" PRIu64 ". If this line repeats, the view is out of date: check "
                    "the connection of this replica to the API server, or restart the replica",
                    strempty(user), r->object->meta.name, strempty(seen), strempty(version),
                    w->answers[WEBHOOK_UNSEEN] - w->unseen_logged);
        w->unseen_logged = w->answers[WEBHOOK_UNSEEN];
}

static void answer(NodeWebhook *w, HttpExchange *x, const AdmissionReview *r) {
        const KubeNode *n = node_asked_about(w, r);

        if (r->subject == ADMISSION_OTHER || r->object->meta.deletion_usec > 0 || is_exempt(w, r)) {
                reply(w, x, WEBHOOK_EXEMPT, admission_allow(r->uid, NULL, 0));
                return;
        }
        if (!cluster_view_synced(w->view)) {
                reply_unknown(w, x, "the view of the cluster is not complete yet\n");
                return;
        }
        if (is_unseen(w, r)) {
                _cleanup_free_ char *text = strf(
                        "vesper has not seen Node %s yet, which may be newer than its view of the cluster. "
                        "Delete it again in a few seconds",
                        r->object->meta.name);

                reply(w, x, WEBHOOK_UNSEEN, text ? admission_unavailable(r->uid, text) : NULL);
                log_unseen(w, r);
                return;
        }
        if (!n || budget_node_is_ending(n)) {
                reply(w, x, WEBHOOK_EXEMPT, admission_allow(r->uid, NULL, 0));
                return;
        }
        if (r->subject == ADMISSION_NODE_DELETE && is_to_be_adopted(w, n, r->dry_run)) {
                _cleanup_free_ char *text = unadopted_text(w, n);

                reply(w, x, WEBHOOK_UNADOPTED, text ? admission_refuse(r->uid, text) : NULL);
                return;
        }
        ask_ledger(w, x, r, n);
}

static void log_refusal(NodeWebhook *w, const char *address, Refusal why) {
        _cleanup_free_ char *line = refusal_log_add(&w->refusals, address, why, loop_now(w->env->loop));

        if (line)
                log_warning(w->env->log, "%s", line);
}

unsigned node_webhook_check_headers(const HttpExchange *x, void *webhook, const char **ret_text) {
        NodeWebhook *w = webhook;

        if (!streq(x->path, "/admission")) {
                log_refusal(w, x->client_address, REFUSAL_PATH);
                *ret_text = "not found\n";
                return 404;
        }
        if (x->method != HTTP_POST) {
                log_refusal(w, x->client_address, REFUSAL_PATH);
                *ret_text = "method not allowed\n";
                return 405;
        }
        if (w->known_alone && !x->client_identity) {
                w->answers[WEBHOOK_UNREADABLE]++;
                log_refusal(w, x->client_address, REFUSAL_CERTIFICATE);
                *ret_text = "a client certificate is needed\n";
                return 401;
        }
        return 0;
}

void node_webhook_handle(HttpExchange *x, void *webhook) {
        NodeWebhook *w = webhook;
        _cleanup_(admission_review_done) AdmissionReview r = { 0 };
        _cleanup_free_ char *message = NULL;
        const char *text;
        unsigned status = node_webhook_check_headers(x, w, &text);
        int k;

        if (status > 0) {
                http_reply_text(x, status, "text/plain", text);
                return;
        }
        k = admission_review_parse(x->body ? x->body : "", x->body_size, kube_client_pool(w->client), &r, &message);
        if (k == -ENOMEM) {
                reply_unknown(w, x, "out of memory\n");
                return;
        }
        if (k < 0) {
                w->answers[WEBHOOK_UNREADABLE]++;
                log_refusal(w, x->client_address, REFUSAL_REVIEW);
                log_debug(w->env->log, "A request to the webhook is no AdmissionReview: %s", strempty(message));
                http_reply_text(x, 400, "text/plain", strempty(message));
                return;
        }
        answer(w, x, &r);
}

const uint64_t *node_webhook_answers(const NodeWebhook *w) {
        return w->answers;
}

void node_webhook_count_refusal(HttpRefusal why, const char *address, void *webhook) {
        NodeWebhook *w = webhook;

        w->refused[why]++;
        log_refusal(w, address, why);
}

const uint64_t *node_webhook_refusals(const NodeWebhook *w) {
        return w->refused;
}

int node_webhook_new(KubeClient *c, const ClusterView *v, BudgetLedger *l, const char *ns,
                     char *const *exempt, bool known_alone, NodeWebhook **ret) {
        NodeWebhook *w;

        assert(c && v && l && ns && ret);
        w = new0(NodeWebhook, 1);
        if (!w)
                return -ENOMEM;
        w->client = c;
        w->env = kube_client_env(c);
        w->view = v;
        w->ledger = l;
        w->exempt = exempt;
        w->known_alone = known_alone;
        w->lines = (TokenBucket){ .burst = LINES_BURST, .per_minute = LINES_PER_MINUTE };
        w->unseen_lines = (TokenBucket){ .burst = 1, .per_minute = UNSEEN_LINES_PER_MINUTE };
        w->own_account = admission_own_account(ns);
        if (!w->own_account || hashmap_new(0, &w->unadopted) < 0) {
                node_webhook_free(w);
                return -ENOMEM;
        }
        *ret = w;
        return 0;
}

NodeWebhook *node_webhook_free(NodeWebhook *w) {
        if (!w)
                return NULL;
        assert(w->open.size == 0);
        hashmap_free_with(w->unadopted, mfree);
        free(w->own_account);
        return mfree(w);
}

void node_webhook_next_wakeup(const NodeWebhook *n, Wakeups *w) {
        LIST_FOREACH (q, &n->open, Question, in_open) {
                wakeups_unfinished(w, "review of", q->what, "waits for the ledger", ANSWER_USEC);
                wakeups_await(w, q->request);
        }
}
