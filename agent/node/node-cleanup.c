/* SPDX-License-Identifier: Apache-2.0 */
#include "node-cleanup.h"

#include "loop.h"
#include "marks.h"
#include "node-marks.h"
#include "string-util.h"

#define CALL_TIMEOUT_USEC (5 * USEC_PER_SEC)
#define RETRY_USEC (200 * USEC_PER_MSEC)

struct NodeCleanup {
        KubeClient *client;
        Loop *loop;
        char *node;
        node_cleanup_done_t done;
        void *userdata;
        KubeCall *call;
        Timer *deadline, *retry;
        bool found, uncordons, uncordoned;
        int error; /* of the last try, for when the time is over */
        char *message;
};

static void read_node(NodeCleanup *r);

NodeCleanup *node_cleanup_free(NodeCleanup *r) {
        if (!r)
                return NULL;
        kube_call_free(r->call);
        timer_free(r->deadline);
        timer_free(r->retry);
        free(r->node);
        free(r->message);
        return mfree(r);
}

/* The last act of every caller. */
static void finish(NodeCleanup *r, int error) {
        NodeCleanupResult result = { .found = r->found,
                                .uncordoned = r->uncordoned,
                                .error = error,
                                .message = error < 0 ? r->message : NULL };

        timer_disarm(r->deadline);
        timer_disarm(r->retry);
        r->done(&result, r->userdata);
}

/* What the server did not do it may do in a moment. */
static void try_again(NodeCleanup *r, int error, const char *message) {
        r->error = error;
        (void) free_and_strdup(&r->message, message);
        timer_arm(r->retry, usec_add(loop_now(r->loop), RETRY_USEC));
}

static void on_retry(Timer *t, void *userdata) {
        read_node(userdata);
}

static void on_deadline(Timer *t, void *userdata) {
        NodeCleanup *r = userdata;

        r->call = kube_call_free(r->call);
        finish(r, r->error < 0 ? r->error : -ETIMEDOUT);
}

/* True: failed, and dealt with; the caller is to return. */
static bool has_failed(NodeCleanup *r, const KubeReply *reply) {
        const ApiError *e = reply->error;

        if (!e)
                return false;
        if (e->http == 404)
                finish(r, 0); /* no Node, no marks */
        else if (e->http == 401 || e->http == 403) {
                (void) free_and_strdup(&r->message, e->message);
                finish(r, -EACCES);
        } else
                try_again(r, e->http == 409 ? -EBUSY : -ECOMM, e->message);
        return true;
}

static void on_patched(const KubeReply *reply, void *userdata) {
        NodeCleanup *r = userdata;

        r->call = kube_call_free(r->call);
        if (has_failed(r, reply))
                return;
        r->uncordoned = r->uncordoned || r->uncordons;
        read_node(r); /* until nothing is left */
}

static int patch(NodeCleanup *r, KubePatchType type, const char *subresource, const char *body) {
        const KubeTarget target = { .kind = &kube_node_kind, .name = r->node, .subresource = subresource };
        const KubeCallOptions options = { .timeout_usec = CALL_TIMEOUT_USEC };

        r->found = true;
        return body ? kube_patch(r->client, &target, type, body, &options, on_patched, r, &r->call)
                    : -ENOMEM;
}

/* 1: a patch is under way; 0: nothing of ours is left. */
static int take_off(NodeCleanup *r, const KubeNode *n) {
        _cleanup_free_ char *body = NULL;
        int k;

        r->uncordons = false;
        k = node_patch_undo(n, &body, &r->uncordons);
        if (k < 0)
                return k;
        if (k > 0)
                k = patch(r, KUBE_PATCH_MERGE, NULL, body);
        else if (object_meta_annotation(&n->object.meta, ANNOTATION_SHUTDOWN_REQUEST)) {
                body = node_patch_annotation(n, ANNOTATION_SHUTDOWN_REQUEST, NULL);
                k = patch(r, KUBE_PATCH_MERGE, NULL, body);
        } else if (node_conditions(n) != NODE_CONDITIONS_NONE) {
                body = node_patch_conditions(n, NODE_CONDITIONS_NONE, _NOTICE_KIND_INVALID, NULL, loop_wall(r->loop));
                k = patch(r, KUBE_PATCH_STRATEGIC, "status", body);
        } else
                return 0;
        return k < 0 ? k : 1;
}

static void on_read(const KubeReply *reply, void *userdata) {
        NodeCleanup *r = userdata;
        KubeObject *o = NULL;
        int k;

        r->call = kube_call_free(r->call);
        if (has_failed(r, reply))
                return;
        k = reply->object
                    ? kube_object_decode(&kube_node_kind, reply->object, kube_client_pool(r->client), &o)
                    : -EBADMSG;
        if (k >= 0) {
                k = take_off(r, (const KubeNode *) o);
                kube_object_unref(o);
        }
        if (k < 0)
                try_again(r, k, NULL);
        else if (k == 0)
                finish(r, 0);
}

static void read_node(NodeCleanup *r) {
        const KubeTarget target = { .kind = &kube_node_kind, .name = r->node };
        const KubeCallOptions options = { .timeout_usec = CALL_TIMEOUT_USEC };
        int k;

        k = kube_get(r->client, &target, &options, on_read, r, &r->call);
        if (k < 0)
                try_again(r, k, NULL);
}

int node_cleanup_new(KubeClient *c, const char *node, usec_t timeout_usec, node_cleanup_done_t done,
                     void *userdata, NodeCleanup **ret) {
        _cleanup_(node_cleanup_freep) NodeCleanup *r = NULL;
        int k;

        assert(c && node && done && ret);
        r = new0(NodeCleanup, 1);
        if (!r)
                return -ENOMEM;
        r->client = c;
        r->loop = kube_client_env(c)->loop;
        r->done = done;
        r->userdata = userdata;
        r->node = strdup(node);
        if (!r->node)
                return -ENOMEM;
        k = timer_new(r->loop, "node-cleanup-deadline", on_deadline, r, &r->deadline);
        if (k >= 0)
                k = timer_new(r->loop, "node-cleanup-retry", on_retry, r, &r->retry);
        if (k < 0)
                return k;
        timer_arm(r->deadline, usec_add(loop_now(r->loop), timeout_usec));
        read_node(r);
        *ret = TAKE_PTR(r);
        return 0;
}
