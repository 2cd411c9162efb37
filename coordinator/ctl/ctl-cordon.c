/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl-cordon.h"

#include "interruption.h"
#include "marks.h"

#define WHY "vesperctl drain"

static bool has_mark(const KubeNode *n, const char *key) {
        return object_meta_annotation(&n->object.meta, key);
}

CordonOwner cordon_owner(const KubeNode *n) {
        if (!n->unschedulable)
                return CORDON_OF_NOBODY;
        if (has_mark(n, ANNOTATION_CORDONED_BY_VESPERCTL))
                return CORDON_OF_VESPERCTL;
        if (has_mark(n, ANNOTATION_CORDONED_BY_AGENT))
                return CORDON_OF_AGENT;
        return has_mark(n, ANNOTATION_CORDONED_BY_COORDINATOR) ? CORDON_OF_COORDINATOR : CORDON_OF_STRANGER;
}

/* {"metadata":{"resourceVersion":...,"annotations":{ and left open. */
static JsonWriter *begin_patch(const KubeNode *n) {
        JsonWriter *w;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_object(w, NULL);
        json_open_object(w, "metadata");
        json_add_string(w, "resourceVersion", n->object.meta.resource_version);
        json_open_object(w, "annotations");
        return w;
}

int ctl_cordon_patch(const KubeNode *n, char **ret_body) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        CordonOwner owner;

        assert(n && ret_body);
        owner = cordon_owner(n);
        if (owner == CORDON_OF_VESPERCTL || owner == CORDON_OF_STRANGER)
                return 0;
        w = begin_patch(n);
        if (!w)
                return -ENOMEM;
        json_add_string(w, ANNOTATION_CORDONED_BY_VESPERCTL, "{\"why\":\"" WHY "\"}");
        json_close_object(w);
        json_close_object(w);
        json_open_object(w, "spec");
        json_add_bool(w, "unschedulable", true);
        json_close_object(w);
        json_close_object(w);
        *ret_body = json_writer_steal(w, NULL);
        return *ret_body ? 1 : -ENOMEM;
}

/* The coordinator's cordon is for what its interruption queue told of a Node that is kept: a person's to open. */
static bool is_for_queue(const KubeNode *n) {
        return has_mark(n, ANNOTATION_HEARD);
}

UncordonPlan ctl_uncordon_plan(const KubeNode *n, bool anyway) {
        CordonOwner owner = cordon_owner(n);

        if (n->object.meta.deletion_usec > 0)
                return UNCORDON_IS_DELETED;
        if (owner == CORDON_OF_NOBODY)
                return has_mark(n, ANNOTATION_CORDONED_BY_VESPERCTL) ? UNCORDON_UNMARKS : UNCORDON_IS_OPEN;
        if (anyway)
                return UNCORDON_OPENS;
        if (owner == CORDON_OF_COORDINATOR && is_for_queue(n))
                return UNCORDON_OPENS;
        if (owner != CORDON_OF_VESPERCTL)
                return UNCORDON_IS_FOREIGN;
        return has_mark(n, ANNOTATION_CORDONED_BY_AGENT) || (has_mark(n, ANNOTATION_CORDONED_BY_COORDINATOR) && !is_for_queue(n))
                       ? UNCORDON_LEAVES
                       : UNCORDON_OPENS;
}

char *ctl_uncordon_patch(const KubeNode *n, UncordonPlan plan) {
        _cleanup_(json_writer_freep) JsonWriter *w = begin_patch(n);

        assert(plan < UNCORDON_IS_OPEN);
        if (!w)
                return NULL;
        if (has_mark(n, ANNOTATION_CORDONED_BY_VESPERCTL))
                json_add_null(w, ANNOTATION_CORDONED_BY_VESPERCTL);
        json_close_object(w);
        json_close_object(w);
        if (plan == UNCORDON_OPENS) {
                json_open_object(w, "spec");
                json_add_null(w, "unschedulable");
                json_close_object(w);
        }
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

bool ctl_add_who_drains(StrBuf *b, const KubeNode *n) {
        const Interruption *i = kube_node_standing_interruption(n);

        if (n->object.meta.deletion_usec > 0) {
                strbuf_addf(b, "node '%s' is being deleted%s", n->object.meta.name,
                            object_meta_has_finalizer(&n->object.meta, FINALIZER_TERMINATION)
                                    ? ": vesper-coordinator drains it, too, and ends its machine"
                                    : "");
                return true;
        }
        if (!i)
                return false;
        strbuf_addf(b, "vesper-agent drains node '%s', too: a notice of kind '%s' announces the end of its machine",
                    n->object.meta.name, notice_kind_to_string(i->notice->kind));
        return true;
}

void ctl_add_whose_cordon(StrBuf *b, const KubeNode *n) {
        static const char *const owners[_CORDON_OWNER_MAX] = {
                [CORDON_OF_AGENT] = "vesper-agent",
                [CORDON_OF_COORDINATOR] = "vesper-coordinator",
        };
        const char *owner = owners[cordon_owner(n)];

        strbuf_addf(b, "node '%s' was cordoned %s%s, not by vesperctl drain", n->object.meta.name,
                    owner ? "by " : "by somebody who left no mark (kubectl cordon, an autoscaler)",
                    strempty(owner));
}
