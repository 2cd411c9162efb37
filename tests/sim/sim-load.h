/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What befalls the pods and machines of a simulated world by other hands than ours: people, kubelets,
 * clouds. Pods are named by a number, counted around among those of the namespace default. */

#include "sim-world.h"

/* False: there is none. */
bool sim_load_delete_pod(SimWorld *w, uint64_t n, bool forced);
/* All that are left on a machine. */
void sim_load_delete_pods_of(SimWorld *w, size_t machine);
bool sim_load_finish_pod(SimWorld *w, uint64_t n);
bool sim_load_protect_pod(SimWorld *w, uint64_t n, unsigned opt_out);
/* A webhook answers all evictions of this workload's pods (not of those that come later): fake-api.h,
 * FAKE_EVICTION_WEBHOOK. */
void sim_load_hook_pods(SimWorld *w, uint64_t workload, const char *answer);
/* Of all pods that are protected, or that a webhook answers for. */
void sim_load_unprotect_pods(SimWorld *w);

/* The machine stops at once, with all that runs there; it comes back in so long (USEC_INFINITY: never). */
void sim_load_crash(SimWorld *w, size_t machine, usec_t away_usec);
/* The same, and the cloud says until then that it is stopped. */
void sim_load_switch_off(SimWorld *w, size_t machine, usec_t away_usec);
/* Only its kubelet. */
void sim_load_stop_kubelet(SimWorld *w, size_t machine, usec_t away_usec);
/* The cloud takes the machine in so long; the Node is deleted a while later by who sees that. */
void sim_load_take(SimWorld *w, size_t machine, usec_t in_usec);
/* The notice that stands is told with another time. */
void sim_load_delete_claim(SimWorld *w, size_t machine);
/* Another Node says that it is this machine, and has the finalizer: one that was taken over under a new name. Whoever is
 * to find out which is right closes it. */
void sim_load_add_twin(SimWorld *w, size_t machine);
void sim_load_delete_twin(SimWorld *w, size_t machine);
/* People take away, past all finalizers, those that are wrong. */
void sim_load_remove_twins(SimWorld *w);
/* A person's annotations: of the pool, or of the namespace, vesper.sh/paused; of a Node vesper.sh/unmanaged; of the claim of
 * a node that is being removed vesper.sh/force-deadline, in so many seconds. */
void sim_load_pause(SimWorld *w, bool all, bool paused);
void sim_load_unmanage(SimWorld *w, size_t machine, bool unmanaged);
void sim_load_force(SimWorld *w, size_t machine, unsigned in_sec);
void sim_load_take_annotations_off(SimWorld *w);
/* It has crashed for good, and its Node is removed past all finalizers. */
/* A person's second claim of a machine whose first is acted on; and its deletion, where it is not acted on itself. */
void sim_load_add_rival(SimWorld *w, size_t machine);
void sim_load_delete_rival(SimWorld *w, size_t machine);
void sim_load_remove_idle_claims(SimWorld *w);
void sim_load_tear_node(SimWorld *w, size_t machine);
/* Nobody is away any more but those that are so for good. */
void sim_load_all_come_back(SimWorld *w);
