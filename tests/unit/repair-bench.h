/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Fixture of tests of repairs: nodes n0, n1, ... of one pool, and a node "beacon" whose heartbeats show that
 * the API server hears kubelets. */

#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "marks.h"
#include "page.h"

#define M USEC_PER_MINUTE
#define BEACON "beacon" /* node of no pool, in another zone */
#define SEEN (M)        /* a kubelet's silence shows in its Node after 40 s */

static inline void set_heartbeat(CoordinatorRig *r, const char *node) {
        char now[RFC3339_MAX];

        rfc3339_format(loop_wall(r->w.loop), now);
        fake_merge(r->cluster, FAKE_NODES, NULL, node,
                   "{'status':{'conditions':[{'type':'Ready','status':'True','reason':'KubeletReady','message':"
                   "'kubelet is posting ready status','lastHeartbeatTime':'%s'}]}}",
                   now);
}

/* Runs the world, and renews the beacon's heartbeat each minute. */
static inline void run(CoordinatorRig *r, usec_t usec) {
        for (; usec > 0; usec -= MIN(usec, M)) {
                set_heartbeat(r, BEACON);
                rig_run(r, MIN(usec, M));
        }
}

static inline CoordinatorRig *new_rig(unsigned n_nodes) {
        CoordinatorRig *r = coordinator_rig_new();

        fake_add_node(r->cluster, BEACON, "us-east-1b", "i-beacon", NULL);
        rig_begin(r, n_nodes, NULL);
        for (unsigned i = 0; i < n_nodes; i++) {
                _cleanup_free_ char *name = strf("n%u", i);

                rig_machine(r, name)->after = INSTANCE_GONE;
        }
        return r;
}

static inline void silence(CoordinatorRig *r, unsigned from, unsigned to) {
        for (unsigned i = from; i < to; i++) {
                _cleanup_free_ char *name = strf("n%u", i);

                fake_cluster_set_kubelet(r->cluster, name, false);
        }
}

static inline void succeed(CoordinatorRig *r, unsigned from, unsigned to) {
        for (unsigned i = from; i < to; i++) {
                _cleanup_free_ char *name = strf("s%u", i);

                rig_add_node(r, name);
        }
}

/* Returns the number of the nodes n0, n1, ... that are being deleted or gone. */
static inline unsigned n_repaired(CoordinatorRig *r, unsigned n_nodes) {
        unsigned n = 0;

        for (unsigned i = 0; i < n_nodes; i++) {
                _cleanup_free_ char *name = strf("n%u", i);
                const cJSON *node = rig_node(r, name);

                n += !node || fj_string(node, "metadata", "deletionTimestamp", NULL);
        }
        return n;
}

static inline bool is_repaired(CoordinatorRig *r, const char *name) {
        return !rig_node(r, name) || fj_string(rig_node(r, name), "metadata", "deletionTimestamp", NULL);
}

static inline const char *held(CoordinatorRig *r) {
        const cJSON *pool = fake_get(r->cluster, FAKE_NODEPOOLS, NULL, POOL);

        return streq_ptr(rig_condition(pool, POOL_REPAIR_HELD), "True") ? rig_condition_reason(pool, POOL_REPAIR_HELD) : "";
}

static inline bool metrics_say(CoordinatorRig *r, const char *line) {
        _cleanup_page_ Page p = page_ask(coordinator_handle, rig_leader(r)->coordinator, HTTP_GET, "/metrics");

        return strstr(p.body, line) != NULL;
}

static inline void set_rules(CoordinatorRig *r, const char *rules) {
        int64_t generation = fj_int(fake_get(r->cluster, FAKE_NODEPOOLS, NULL, POOL), 0, "metadata", "generation", NULL);

        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL, "{'metadata':{'generation':%lld},'spec':{'repair':%s}}",
                   (long long) generation + 1, rules);
        run(r, 2 * USEC_PER_SEC);
}

static inline const char *mark_of(CoordinatorRig *r, const char *name) {
        return fj_string(rig_node(r, name), "metadata", "annotations", ANNOTATION_REBOOT_FOR_REPAIR, NULL);
}

static inline void set_deadlock(CoordinatorRig *r, const char *name, const char *status) {
        fake_merge(r->cluster, FAKE_NODES, NULL, name,
                   "{'status':{'conditions':[{'type':'Ready','status':'True','reason':'KubeletReady','message':'kubelet is posting ready "
                   "status'},{'type':'KernelDeadlock','status':'%s'}]}}",
                   status);
}

static inline void set_boot(CoordinatorRig *r, const char *name, const char *boot_id) {
        fake_merge(r->cluster, FAKE_NODES, NULL, name, "{'status':{'nodeInfo':{'bootID':'%s'}}}", boot_id);
}

#define REBOOT_RULES \
        "[{'condition':'KernelDeadlock','status':'True','after':'1m','action':'Reboot'}," \
        "{'condition':'KernelDeadlock','status':'True','after':'2m','action':'Replace'}]"

static inline const char *record_of(CoordinatorRig *r, const char *node) {
        return fj_string(rig_claim(r, node), "metadata", "annotations", ANNOTATION_REBOOTED_FOR_REPAIR, NULL);
}

static inline void set_request(CoordinatorRig *r, const char *node) {
        fake_merge(r->cluster, FAKE_NODES, NULL, node,
                   "{'metadata':{'annotations':{'" ANNOTATION_SHUTDOWN_REQUEST
                   "':'{\\\"id\\\":\\\"r\\\",\\\"bootID\\\":\\\"b0\\\",\\\"kind\\\":\\\"reboot\\\","
                   "\\\"until\\\":\\\"2037-01-15T08:00:00Z\\\"}'}}}");
}
