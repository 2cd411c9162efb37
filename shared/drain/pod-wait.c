/* SPDX-License-Identifier: Apache-2.0 */
#include "pod-wait.h"

#include "string-util.h"

typedef enum PodWaitKind { WAIT_TURN, WAIT_PASSES, WAIT_HOLDS } PodWaitKind;

#define RANK_LAST 100u

static const struct {
        const char *name;
        PodWaitKind kind;
        bool of_pdb;
        unsigned rank;
        const char *remedy;
} table[_POD_WAIT_MAX] = {
        [POD_WAIT_TURN] = { "Waiting", WAIT_TURN, false, RANK_LAST, NULL },
        [POD_WAIT_EVICTING] = { "Evicting", WAIT_TURN, false, RANK_LAST, NULL },
        [POD_WAIT_PDB_TURN] = { "WaitingForPDB", WAIT_TURN, true, RANK_LAST, NULL },
        [POD_WAIT_OTHERS] = { "WaitingForOthers", WAIT_TURN, false, RANK_LAST, NULL },
        [POD_WAIT_PROTECTED_OTHERS] = { "WaitingForProtected", WAIT_TURN, false, RANK_LAST, NULL },
        [POD_WAIT_COMES_BACK] = { POD_WAIT_NAME_COMES_BACK, WAIT_TURN, false, RANK_LAST, NULL },
        [POD_WAIT_TERMINATING] = { POD_WAIT_NAME_TERMINATING, WAIT_PASSES, false, 15, NULL },
        [POD_WAIT_FLOW_CONTROL] = { POD_WAIT_NAME_FLOW_CONTROL, WAIT_PASSES, false, 14, NULL },
        [POD_WAIT_SERVER_BUSY] = { POD_WAIT_NAME_SERVER_BUSY, WAIT_PASSES, false, 13, NULL },
        [POD_WAIT_NAMESPACE] = { POD_WAIT_NAME_NAMESPACE, WAIT_PASSES, false, 12, NULL },
        [POD_WAIT_NO_ANSWER] = { POD_WAIT_NAME_NO_ANSWER, WAIT_PASSES, false, 11, NULL },
        [POD_WAIT_PDB_NOT_OBSERVED] = { POD_WAIT_NAME_PDB_NOT_OBSERVED, WAIT_PASSES, true, 10, NULL },
        [POD_WAIT_PDB] = { POD_WAIT_NAME_PDB, WAIT_HOLDS, true, 9,
                           "It is evicted once this budget allows a disruption. More healthy pods elsewhere help, or a lower minAvailable." },
        [POD_WAIT_PDB_NEVER] = { POD_WAIT_NAME_PDB_NEVER, WAIT_HOLDS, true, 8,
                                 "This budget allows no eviction as it stands, and refused the request. Some operators (Strimzi, KubeVirt) use such a budget "
                                 "on purpose: their webhook sees the request, and they move the pod. See that operator's log; vesper asks again every 5 minutes. "
                                 "If no operator owns the pod, ask the owner of the budget." },
        [POD_WAIT_PROTECTED] = { POD_WAIT_NAME_PROTECTED, WAIT_HOLDS, false, 7,
                                 "The pod opted out of drains by this key: the node waits until the pod ends or the key goes." },
        [POD_WAIT_PDB_SYNC_FAILED] = { POD_WAIT_NAME_PDB_SYNC_FAILED, WAIT_HOLDS, true, 6,
                                       "This budget allows nothing, however many pods are healthy, because kube-controller-manager cannot count it. The pod is evicted "
                                       "once the budget allows a disruption. If the pods' controller has no scale subresource, or the pods have no controller, give the "
                                       "budget a minAvailable that is a number." },
        [POD_WAIT_WITHOUT_EFFECT] = { POD_WAIT_NAME_WITHOUT_EFFECT, WAIT_HOLDS, false, 5,
                                      "Its eviction was accepted and nothing happened: an admission webhook may have made it a dry run, and may be moving the pod "
                                      "itself. vesper asks again every 90 seconds. If nothing moves, see whoever runs the webhook." },
        [POD_WAIT_WEBHOOK] = { POD_WAIT_NAME_WEBHOOK, WAIT_HOLDS, false, 4,
                               "This admission webhook answers for its eviction, and may be moving the pod itself. vesper asks again. If nothing moves, see "
                               "whoever runs the webhook." },
        [POD_WAIT_SEVERAL_PDBS] = { POD_WAIT_NAME_SEVERAL_PDBS, WAIT_HOLDS, false, 3,
                                    "More than one PodDisruptionBudget matches it, which the eviction API never lets pass: make them disjoint." },
        [POD_WAIT_DELETE_FAILED] = { POD_WAIT_NAME_DELETE_FAILED, WAIT_HOLDS, false, 2, "The API server does not take the request: its message says why." },
        [POD_WAIT_REFUSED_FOR_GOOD] = { POD_WAIT_NAME_REFUSED_FOR_GOOD, WAIT_HOLDS, false, 1,
                                        "The API server does not take the request: its message says why." },
        [POD_WAIT_FORBIDDEN] = { POD_WAIT_NAME_FORBIDDEN, WAIT_HOLDS, false, 0, "The authorizer or an admission plugin refuses its eviction." },
};

static bool is_valid(PodWait w) {
        return w >= 0 && w < _POD_WAIT_MAX;
}

const char *pod_wait_to_string(PodWait w) {
        return is_valid(w) ? table[w].name : NULL;
}

PodWait pod_wait_from_string(const char *s) {
        for (PodWait w = 0; s && w < _POD_WAIT_MAX; w++)
                if (streq(s, table[w].name))
                        return w;
        return _POD_WAIT_INVALID;
}

PodWait pod_wait_of_answer(EvictionAnswer a) {
        switch (a) {
        case EVICTION_ACCEPTED:
        case EVICTION_GONE:
        case EVICTION_REPLACED:
                return POD_WAIT_TERMINATING;
        case EVICTION_BLOCKED_BY_PDB:
                return POD_WAIT_PDB;
        case EVICTION_PDB_NOT_OBSERVED:
                return POD_WAIT_PDB_NOT_OBSERVED;
        case EVICTION_PDB_NEVER_ALLOWS:
                return POD_WAIT_PDB_NEVER;
        case EVICTION_FLOW_CONTROL:
                return POD_WAIT_FLOW_CONTROL;
        case EVICTION_SEVERAL_PDBS:
                return POD_WAIT_SEVERAL_PDBS;
        case EVICTION_NAMESPACE_TERMINATING:
                return POD_WAIT_NAMESPACE;
        case EVICTION_WEBHOOK:
                return POD_WAIT_WEBHOOK;
        case EVICTION_FORBIDDEN:
                return POD_WAIT_FORBIDDEN;
        case EVICTION_SERVER_BUSY:
                return POD_WAIT_SERVER_BUSY;
        case EVICTION_NO_ANSWER:
                return POD_WAIT_NO_ANSWER;
        case EVICTION_REFUSED_FOR_GOOD:
                return POD_WAIT_REFUSED_FOR_GOOD;
        case _EVICTION_ANSWER_MAX:
        case _EVICTION_ANSWER_INVALID:
                break;
        }
        return _POD_WAIT_INVALID;
}

bool pod_wait_is_turn(PodWait w) {
        return is_valid(w) && table[w].kind == WAIT_TURN;
}

bool pod_wait_passes(PodWait w) {
        return is_valid(w) && table[w].kind != WAIT_HOLDS;
}

unsigned pod_wait_rank(PodWait w) {
        return is_valid(w) ? table[w].rank : RANK_LAST;
}

const char *pod_wait_remedy(PodWait w) {
        return is_valid(w) ? table[w].remedy : NULL;
}

bool pod_wait_is_of_pdb(PodWait w) {
        return is_valid(w) && table[w].of_pdb;
}
