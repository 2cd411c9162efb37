/* SPDX-License-Identifier: Apache-2.0 */
#include "node-volumes.h"

#define SILENCE_USEC (2 * USEC_PER_MINUTE)

void node_volumes_begin(NodeVolumes *v, usec_t now_usec) {
        *v = (NodeVolumes){ .moved_usec = now_usec };
}

void node_volumes_done(NodeVolumes *v) {
        v->staying = staying_volumes_free(v->staying);
}

usec_t node_volumes_update(NodeVolumes *v, const ClusterView *view, const char *node, usec_t now_usec) {
        const KubeVolumeAttachment *attached;
        size_t n = 0;

        v->n_staying = 0;
        for (HashmapIterator it = {}; cluster_view_iterate_volumes(view, node, &it, &attached);)
                if (v->staying && staying_volumes_has(v->staying, attached->pv_name))
                        v->n_staying++;
                else
                        n++;
        if (n != v->n_waited) {
                v->n_waited = n;
                v->moved_usec = now_usec;
        }
        return n > 0 ? usec_add(v->moved_usec, SILENCE_USEC) : now_usec;
}
