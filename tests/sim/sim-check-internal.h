/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of sim-check share. */

#include "sim-check.h"

#define SIM_FINALIZER "vesper.sh/termination"
/* Deadlines are told in whole seconds, and daemons keep a margin of two before them. */
#define SIM_SLACK_USEC (4 * USEC_PER_SEC)
/* A request that crawls gets there within this. */
#define CRAWL_USEC (6 * USEC_PER_SEC)

/* A pod that a request of ours ends, in this step. */
typedef struct SimGoing {
        char *ns, *name, *node;
        cJSON *labels;
        bool was_ready, forced;
} SimGoing;

/* What the check knows of a machine beside what stands in the store. */
typedef struct SimSeen {
        usec_t noticed_usec;  /* since when the notice stands; 0: none does */
        usec_t deleted_usec;  /* since when its Node is being deleted; 0: it is not */
        usec_t deadline_usec; /* wall clock, as deadline_of() gave it last, and since when */
        usec_t restored_deadline_usec; /* what sim_check_deadline() was when etcd was restored: a daemon may know it; 0: none */
        usec_t deadline_since_usec;
        usec_t said_usec, copied_usec; /* when the deadlines that stand on its Node were written: the agent's, and T */
        usec_t announced_usec; /* since when its Node tells of an end for good; 0: it does not */
        usec_t told_usec;      /* the last time it was seen to */
        usec_t interrupted_usec; /* the last time its Node told of an end, for good or not, of the boot it is of */
        usec_t opened_usec; /* since when a person's un-cordon stands */
        usec_t shared_usec; /* the last time that several Nodes were seen to say that they are it */
        usec_t volumes_usec; /* when the number of its volumes changed last, or its last pod left */
        size_t n_volumes;
        bool left_unmanaged; /* its Node has gone while a person kept it from vesper: its instance is nobody's to end */
        char *taken; /* uid of the Node of which a coordinator took hold while it was available; NULL: none */
        char *admitted; /* uid of the Node whose deletion a webhook let pass while it was available; NULL: none */
        usec_t admitted_usec; /* when; wall clock */
        usec_t ready_usec; /* when its Ready changed last */
        char *drained; /* "id/bootID" of the notice that it was last said to be drained for */
        usec_t ill_usec; /* since when its Node shows SIM_ILLNESS; 0: it does not */
        usec_t booted_usec; /* when its Node showed another boot for the first time in this illness; 0: it has not */
        usec_t well_usec; /* since when its Node does not show SIM_ILLNESS any more; 0: it does, or never did */
        char *repairer;  /* the coordinator, in one leadership, that asked for its reboot last; NULL: none has */
        usec_t repairer_usec; /* when that was */
        char *repairer_boot;  /* the boot id that a coordinator named in this illness, or in one that ended less than five minutes before */
        unsigned marked_boot; /* n_boots of the boot that an annotation of its Node asked to end last; 0: none has */
        usec_t marked_usec;   /* when that annotation stood there last */
} SimSeen;

/* One consistent list of a node's pods, as it was answered to one process. */
typedef struct SimProof {
        size_t left; /* pods to wait for that were in it */
        usec_t at_usec;
} SimProof;

/* What one process asked for last about one pod, or one machine. */
typedef struct SimAsked {
        usec_t sent_usec;   /* when it left; an earlier one if that may arrive after it */
        usec_t answer_usec; /* when its answer comes */
        usec_t last_usec;   /* when it left */
        bool last_unsure;   /* its answer is late, lost or a lie */
        usec_t unsure_usec; /* when the last one before it left of which that is so; 0: none */
} SimAsked;

struct SimCheck {
        SimWorld *world;
        char *violation;
        Hashmap *told;       /* by identity of the life and what it is about */
        Hashmap *rates;      /* by process, and by process and object */
        Hashmap *lease_sent; /* usec_t: when the last renewal of this user left */
        Hashmap *proofs;     /* SimProof, by user and node */
        Hashmap *asked;      /* SimAsked, by user and "ns/name" of the pod, or instance */
        Hashmap *bound;      /* usec_t: since when this pod has its node, by uid */
        Hashmap *requested;  /* Requested of sim-check-calls.c, by user, life and uid of a pod */
        Hashmap *closed;     /* usec_t: since when this PDB allows nothing, by "ns/name" */
        Hashmap *ended;      /* uint8_t: its containers have ended, by uid of the pod */
        Hashmap *adopted;    /* uint8_t: this claim had the finalizer and named its Node, by uid */
        FakeContainerWatch containers;
        Hashmap *opted;      /* usec_t: since when its opt-out is as it is, by uid of the pod */
        SimSeen *seen;       /* by machine */
        Hashmap *tokens;     /* SimToken, by op id of a launch */
        Hashmap *successions; /* SimSuccession, by name of the NodeClaim that is replaced */
        usec_t pool_changed_usec; /* when the pool was deleted, or said anything but Replace, last; 0: never */
        struct SimObserver *observer; /* sim-seen.h */
        usec_t restored_usec; /* when etcd was restored last; 0: never */
        usec_t kept_usec;    /* when coordinators are looked at next for what they keep */
        usec_t deleted_usec; /* the last time that a Node or NodeClaim was being deleted, or left */
        usec_t lease_end_usec;
        usec_t lost_usec; /* the last time that a pod was lost, or deleted, without a word to its budget */
        usec_t trouble_usec; /* until then promises about time are not held */
        usec_t promise_usec; /* when sim_check_promise() was called */
        usec_t list_asked_usec;    /* when time's own promises are looked at again */
        SimGoing *going;
        size_t n_going, going_allocated;
        uint64_t n_requests, n_evictions, n_evicted;
};

/* The first one stays. what: the invariant, as sim-check.h names it. */
void sim_check_broken(SimCheck *c, const char *what, const char *fmt, ...) _printf_(3, 4);
/* The same, with the object that breaks the invariant before the text. */
void sim_check_broken_by(SimCheck *c, const char *what, const char *by, const char *fmt, va_list ap) _printf_(4, 0);
/* Of a map from texts to values of this size, made zeroed. */
void *sim_check_entry(Hashmap *m, const char *key, size_t size);
/* The daemon whose request is handled in this step; NULL: it is somebody else's doing. */
SimProcess *sim_check_actor(const SimCheck *c);
size_t sim_check_index(const SimCheck *c, const SimMachine *m);
bool sim_check_instance_alive(const SimCheck *c, const char *id);
/* When this machine's pods have to be gone (wall clock): what the cloud announced, or what its claim's
 * deletion and the pool's grace period give. USEC_INFINITY: never. */
usec_t sim_check_deadline(const SimCheck *c, const SimMachine *m);
/* Nothing has gone wrong for at least so long: whoever had to do something had his chance. */
bool sim_check_was_calm(const SimCheck *c, usec_t usec);
bool sim_check_is_deleting(const cJSON *o);

/* A notice was given, and left with the boot that saw it. */
static inline bool sim_check_was_rebooted(const SimMachine *m) {
        return !m->noticed && m->noticed_boot > 0 && m->n_boots > m->noticed_boot;
}

/* etcd was restored, and this is as long as nobody can know. */
bool sim_check_is_just_restored(const SimCheck *c, usec_t usec);
/* sim-check-calls.c: as of who is handled in this step; zeroed if it asked for nothing. */
SimAsked sim_check_asked(const SimCheck *c, const char *what);
/* sim-check-pods.c */
void sim_check_pod(SimCheck *c, const cJSON *old, const cJSON *new);
void sim_check_pod_gone(SimCheck *c, const cJSON *pod);
void sim_check_budgets(SimCheck *c);
void sim_check_going_clear(SimCheck *c);
bool sim_check_pod_is_daemon(const cJSON *pod); /* or static: nobody waits for it */
/* sim-check-nodes.c */
void sim_check_node_gone(SimCheck *c, const cJSON *old);
void sim_check_charges(SimCheck *c, const cJSON *old, const cJSON *new); /* of a NodeDisruptionBudget */
/* It is Ready, and the taint out-of-service is left on it. */
void sim_check_back_in_service(SimCheck *c, size_t i);
void sim_check_node(SimCheck *c, const cJSON *old, const cJSON *new);
/* Its agent says there, as whoever reads that one version can tell, that the machine ends; no person
 * overruled it. */
bool sim_check_tells_of_end(const cJSON *node);
/* Checks invariant brake, in worlds with an interruption queue. */
void sim_check_brake(SimCheck *c, const FakeChange *change, const cJSON *old, const cJSON *new);
void sim_check_finalizer(SimCheck *c, const FakeChange *change, const cJSON *old, const cJSON *new);
/* Notes whether the NodeClaim is adopted. */
void sim_check_adopted(SimCheck *c, const cJSON *claim);
void sim_check_chosen(SimCheck *c, const FakeChange *change, const cJSON *old, const cJSON *new);
/* Of a NodeClaim. */
void sim_check_doubt(SimCheck *c, const cJSON *old, const cJSON *new);
/* sim-check-calls.c */
/* The daemon that a request's client certificate names; NULL: none. */
SimProcess *sim_check_process_of(SimWorld *w, const char *identity);
/* Nodes that say that they are this machine. */
unsigned sim_check_nodes_of(SimCheck *c, const SimMachine *m);
void sim_check_lease_written(SimCheck *c, const cJSON *old, const cJSON *new);
void sim_check_leaders(SimCheck *c);
void sim_check_answered(SimCheck *c, unsigned status);
/* sim-check-launches.c: in worlds with machines to launch. */
void sim_check_launches_changed(SimCheck *c, const FakeChange *change, const cJSON *old, const cJSON *new);
bool sim_check_is_new_claim(const cJSON *claim); /* its machine has not become a node that takes pods */
void sim_check_launches_rest(SimCheck *c);
void sim_check_launches_free(SimCheck *c);
/* sim-check-time.c */
/* Its Node tells of an end for good of this boot of its machine, and no person has overruled it. */
bool sim_check_is_announced(SimCheck *c, size_t i);
void sim_check_look(SimCheck *c);
