/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The life of one call, between the verbs (kube-client.c) and the transport. Private to kube/. */

#include "kube-client.h"
#include "list.h"
#include "string-util.h"
#include "watch-lines.h"

typedef struct KubeWarmth {
        KubeClient *client;
        HttpLane lane;
        usec_t interval_usec;
        Timer *timer; /* NULL: nobody asked */
} KubeWarmth;

struct KubeClient {
        Env *env;
        KubeAuth *auth;
        KubeAuthListener listener;
        char *server, *field_manager, *user_agent;
        InternPool *pool;
        List calls;
        KubeWarmth warm[_HTTP_LANE_MAX];
        uint64_t n_requests[_KUBE_VERB_MAX];
};

struct KubeCall {
        KubeClient *client;
        ListNode calls;
        KubeVerb verb;
        HttpMethod method;
        KubeCallOptions options; /* no zeroes any more */
        usec_t stall_usec;       /* watches */
        usec_t deadline_usec;    /* of everything: holding, sending, sending again */
        char *url, *body;
        const char *content_type; /* static; NULL without a body */

        kube_done_t done;
        kube_watch_event_t on_event;
        JsonOmits omits; /* of a watch's events */
        void *userdata;
        WatchLines lines;

        HttpCall *http;
        Timer *hold; /* made when it is first held */
        bool held;   /* until the credential comes */
        int hold_error;
        bool detached; /* nobody else will free it */
        bool in_event;
        bool looked_again;  /* after a 401 */
        bool dialled_again; /* after a dead connection */
};

/* What distinguishes the verbs. */
typedef struct KubeCallPlan {
        KubeVerb verb;
        HttpMethod method;
        const char *body, *content_type;
        KubeCallOptions options;
        usec_t stall_usec;
        kube_watch_event_t on_event;
        JsonOmits omits; /* of a watch's events */
} KubeCallPlan;

/* Takes the URL out of `url`. */
int kube_call_start(KubeClient *c, const KubeCallPlan *plan, StrBuf *url, kube_done_t done, void *userdata,
                    KubeCall **ret);
/* The credential is there, or its look is over: a held call goes out. */
void kube_call_release(KubeCall *c);
