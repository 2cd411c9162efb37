/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl-fetch.h"

#include "ctl-marks.h"
#include "ctl-say.h"
#include "string-util.h"

#define PAGE 500u
#define CALL_TIMEOUT_USEC (30 * USEC_PER_SEC)

typedef struct ListFetch {
        CtlFetch *fetch;
        const KubeKind *kind;
        ObjectList *list;
        KubeCall *call;
} ListFetch;

struct CtlFetch {
        KubeClient *client;
        CtlSnapshot snapshot;
        ListFetch nodes, claims;
        KubeCall *lease;
        unsigned pending;
        int error;
        char *message;
        ctl_fetched_t done;
        void *userdata;
};

static void on_page(const KubeReply *reply, void *userdata);

CtlFetch *ctl_fetch_free(CtlFetch *f) {
        if (!f)
                return NULL;
        kube_call_free(f->nodes.call);
        kube_call_free(f->claims.call);
        kube_call_free(f->lease);
        ctl_snapshot_done(&f->snapshot);
        free(f->message);
        free(f);
        return NULL;
}

/* The done callback may free the fetch: last act of every caller. */
static void one_is_over(CtlFetch *f) {
        CtlSnapshot snapshot;

        if (--f->pending > 0)
                return;
        snapshot = f->snapshot;
        f->snapshot = (CtlSnapshot){};
        snapshot.now_usec = loop_wall(kube_client_env(f->client)->loop);
        f->done(f->error, f->message, &snapshot, f->userdata);
}

/* The first failure is told. */
static void note_failure(CtlFetch *f, int error, char *message) {
        if (f->error < 0) {
                free(message);
                return;
        }
        f->error = error;
        free(f->message);
        f->message = message;
}

static int list_page(ListFetch *l, const char *token) {
        KubeTarget target = { .kind = l->kind };
        KubeListOptions list = { .limit = PAGE, .continue_token = token };
        KubeCallOptions call = { .timeout_usec = CALL_TIMEOUT_USEC, .lane = HTTP_LANE_BULK };

        return kube_list(l->fetch->client, &target, &list, &call, on_page, l, &l->call);
}

static void on_page(const KubeReply *reply, void *userdata) {
        ListFetch *l = userdata;
        _cleanup_free_ char *token = NULL;
        int r;

        l->call = kube_call_free(l->call);
        if (reply->error) {
                const KubeTarget target = { .kind = l->kind };

                note_failure(l->fetch, api_error_to_errno(reply->error),
                             ctl_explain_error(reply->error, "list", &target));
                one_is_over(l->fetch);
                return;
        }
        r = ctl_take_page(l->fetch->client, reply, l->kind, l->list, &token);
        if (r >= 0 && token)
                r = list_page(l, token);
        if (r < 0)
                note_failure(l->fetch, r, strf("the list of %s cannot be understood", l->kind->plural));
        if (r < 0 || !token)
                one_is_over(l->fetch);
}

static void on_lease(const KubeReply *reply, void *userdata) {
        CtlFetch *f = userdata;
        const Json *spec = json_get(reply->object, "spec");
        const char *renewed = json_string_or_null(json_get(spec, "renewTime"));
        int64_t seconds = 0;

        f->lease = kube_call_free(f->lease);
        if (reply->error && reply->error->http == 404)
                f->snapshot.leader = strdup("");
        else if (reply->error && !f->message)
                f->message = strf("who leads is not known: %s", reply->error->message);
        else if (!reply->error) {
                f->snapshot.leader = strdup(strempty(json_string_or_null(json_get(spec, "holderIdentity"))));
                if (renewed)
                        (void) rfc3339_parse(renewed, &f->snapshot.leader_seen_usec);
                if (json_int64(json_get(spec, "leaseDurationSeconds"), &seconds) >= 0 && seconds > 0)
                        f->snapshot.lease_usec = usec_add(0, (usec_t) seconds * USEC_PER_SEC);
        }
        one_is_over(f);
}

int ctl_fetch_new(KubeClient *c, const char *lease_ns, const char *lease_name, ctl_fetched_t done,
                  void *userdata, CtlFetch **ret) {
        _cleanup_(ctl_fetch_freep) CtlFetch *f = NULL;
        KubeTarget lease = { .kind = &kube_lease_kind, .ns = lease_ns, .name = lease_name };
        int r;

        assert(c && lease_ns && lease_name && done && ret);
        f = new0(CtlFetch, 1);
        if (!f)
                return -ENOMEM;
        f->client = c;
        f->done = done;
        f->userdata = userdata;
        f->pending = 3;
        f->nodes = (ListFetch){ .fetch = f, .kind = &kube_node_kind, .list = &f->snapshot.nodes };
        f->claims = (ListFetch){ .fetch = f, .kind = &kube_node_claim_kind, .list = &f->snapshot.claims };
        r = list_page(&f->nodes, NULL);
        if (r < 0)
                return r;
        r = list_page(&f->claims, NULL);
        if (r < 0)
                return r;
        r = kube_get(c, &lease, NULL, on_lease, f, &f->lease);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(f);
        return 0;
}
