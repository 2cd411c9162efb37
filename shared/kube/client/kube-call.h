/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The life of one call, between the verbs (kube-client.c) and the transport. Private to kube/.
 *
 * What comes after a call that got no HTTP answer (http-transport.h says when that is). "Lost": -ECONNRESET; "silent":
 * -ETIMEDOUT at the call's own deadline. Each verb below is harmless when it takes effect twice, so that nobody has to know
 * whether the first did. tests/h2/test-h2-verbs.c plays every verb against every fault.
 *
 *                      lost                     silent, or lost again        then
 *   GET, LIST          once more, at once,      told to the caller           informer: the same page again, with backoff
 *                      within the deadline
 *   WATCH              told                     told, after stall_usec       informer: from the last resourceVersion it has
 *                                               (150 s)                      seen; backoff when lost, at once when silent
 *   PATCH with         told                     told (cordon 2 s, agent's    agent: again with backoff; a 409 says that ours or
 *   resourceVersion                             others 5 s, else 10 s)       another's landed: read, decide anew. coordinator:
 *                                                                            the node is reconciled anew, from its object
 *   PATCH without      told                     told                         again with backoff: it sets the same values
 *   POST eviction      told                     told (30 s)                  evictor: again with backoff; the uid in it makes the
 *                                                                            second find the same pod, going (2xx), or 404, 409
 *   POST Event         told                     told (10 s)                  event sender: again with backoff, a few times; its
 *                                                                            name is its own, so a 409 is success
 *   DELETE with uid    told                     told                         again with backoff: 404 or 409 is success
 *   PUT Lease          told                     told (half of the renew      elector: reads the lease first; the resourceVersion
 *                                               deadline)                    in it keeps a late one from harm
 */

#include "kube-client.h"
#include "kube-protobuf.h"
#include "list.h"
#include "string-util.h"
#include "watch-frames.h"
#include "watch-lines.h"

typedef struct KubeWarmth {
        KubeClient *client;
        HttpLane lane;
        usec_t interval_usec;
        Timer *timer; /* NULL: nobody asked */
} KubeWarmth;

/* Headers: a user, its uid, its groups. */
#define KUBE_IMPERSONATION_MAX (2 + KUBE_GROUPS_MAX)

struct KubeClient {
        Env *env;
        KubeAuth *auth;
        KubeAuthListener listener;
        char *server, *field_manager, *user_agent;
        HttpHeader impersonation[KUBE_IMPERSONATION_MAX]; /* values are owned */
        size_t n_impersonation;
        usec_t limit_usec; /* of each call but watches; 0: as the call says */
        InternPool *pool;
        List calls;
        List waiting[_KUBE_RANK_MAX];       /* calls of the later ranks, not yet sent */
        size_t n_under_way[_KUBE_RANK_MAX]; /* sent or held, not yet ended; of the first rank only writes */
        usec_t crowd_usec;                  /* since when a crowd stands; USEC_INFINITY: none does */
        Timer *turn;
        KubeWarmth warm[_HTTP_LANE_MAX];
        uint64_t n_requests[_KUBE_VERB_MAX];
        kube_path_fn path_fn; /* NULL: nobody wants to know */
        void *path_userdata;
        bool has_no_path;    /* the last that could tell found none */
        usec_t no_path_usec; /* when that was told */
};

struct KubeCall {
        KubeClient *client;
        ListNode calls, waits;
        KubeVerb verb;
        HttpMethod method;
        KubeCallOptions options; /* no zeroes any more */
        usec_t stall_usec;       /* watches */
        bool coalesced;            /* watches */
        usec_t deadline_usec;    /* of everything but giving way: holding, sending, sending again */
        char *url, *body;
        const char *content_type; /* static; NULL without a body */

        kube_done_t done;
        kube_watch_event_t on_event;
        JsonOmits omits;            /* of a watch's events */
        const ProtobufShape *shape; /* protobuf was asked for, and this is read of it; or NULL */
        bool protobuf;              /* and it came */
        void *userdata;
        WatchLines lines;
        WatchFrames frames;

        HttpCall *http;
        Timer *hold; /* made when it is first held */
        bool held;   /* until the credential comes */
        bool waiting; /* for its turn */
        int hold_error;
        bool detached; /* nobody else will free it */
        bool in_event;
        bool credential_refreshed;  /* after a 401 */
        bool dialled_again; /* after a dead connection */
};

/* What distinguishes the verbs. */
typedef struct KubeCallPlan {
        KubeVerb verb;
        HttpMethod method;
        const char *body, *content_type;
        KubeCallOptions options;
        usec_t stall_usec;
        bool coalesced; /* HttpRequest.coalesced */
        kube_watch_event_t on_event;
        JsonOmits omits; /* of a watch's events */
        const ProtobufShape *shape; /* lists and watches: asks for protobuf; NULL: for JSON */
} KubeCallPlan;

/* Takes the URL out of `url`. */
int kube_call_start(KubeClient *c, const KubeCallPlan *plan, StrBuf *url, kube_done_t done, void *userdata,
                    KubeCall **ret);
/* The credential is there, or its look is over: a held call goes out. */
void kube_call_send_held(KubeCall *c);
/* Sends what gave way, as far as it may go now. */
void kube_call_on_admission(Timer *t, void *client);
