/* SPDX-License-Identifier: Apache-2.0 */
/* kube-scheduler's NodePorts: a host port is taken by protocol, port and address; one without an address takes them all. */
#include "alloc-util.h"
#include "simulator-internal.h"
#include "string-util.h"

static bool ports_clash(const HostPort *a, const HostPort *b) {
        return a->port == b->port && streq(a->protocol, b->protocol) && (!a->ip || !b->ip || streq(a->ip, b->ip));
}

FitReason fit_ports(const Simulator *s, const PodTemplate *t, uint32_t node) {
        const SimulatorNode *n = s->nodes + node;

        for (size_t i = 0; i < t->n_ports; i++)
                for (size_t k = 0; k < n->n_ports; k++)
                        if (ports_clash(t->ports + i, n->ports[k].port))
                                return FIT_PORTS;
        return FIT_OK;
}

int simulator_count_ports(Simulator *s, uint32_t pod, uint32_t node, int direction) {
        const PodTemplate *t = template_of(s, pod);
        SimulatorNode *n = s->nodes + node;
        size_t kept = 0;
        int r;

        if (t->n_ports == 0)
                return 0;
        if (direction > 0) {
                r = GREEDY_REALLOC(n->ports, n->ports_allocated, n->n_ports + t->n_ports);
                if (r < 0)
                        return r;
                for (size_t i = 0; i < t->n_ports; i++)
                        n->ports[n->n_ports++] = (PortUse){ t->ports + i, pod };
                return 0;
        }
        for (size_t i = 0; i < n->n_ports; i++)
                if (n->ports[i].pod != pod)
                        n->ports[kept++] = n->ports[i];
        n->n_ports = kept;
        return 0;
}
