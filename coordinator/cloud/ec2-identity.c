/* SPDX-License-Identifier: Apache-2.0 */
#include "ec2-identity.h"

#include "string-util.h"

static bool first_label_is(const char *name, const char *label) {
        const char *rest = startswith(name, label);

        return rest && (*rest == 0 || *rest == '.');
}

const char *ec2_identity_method(const Ec2Instance *shown, const char *node) {
        if (isempty(node))
                return NULL;
        if (streq_ptr(shown->private_dns_name, node))
                return "PrivateDNSName";
        if (first_label_is(node, shown->instance_id))
                return "InstanceID";
        return streq_ptr(shown->node_tag, node) ? "Tag" : NULL;
}

char *ec2_identity_unproved_message(const Ec2Instance *shown, const char *node) {
        _cleanup_strbuf_ StrBuf b = { 0 };

        if (isempty(node))
                return strf("EC2 shows instance %s, but the name of its Node is not known", shown->instance_id);
        strbuf_addf(&b, "Nothing at EC2 says that instance %s is node %s: ", shown->instance_id, node);
        if (isempty(shown->private_dns_name))
                strbuf_add(&b, "it has no private DNS name");
        else
                strbuf_addf(&b, "its private DNS name is %s", shown->private_dns_name);
        if (shown->node_tag)
                strbuf_addf(&b, ", and its tag " EC2_NODE_TAG " is '%s'", shown->node_tag);
        else
                strbuf_add(&b, ", and it has no tag " EC2_NODE_TAG);
        strbuf_addf(&b, ". If it is, tag it " EC2_NODE_TAG "=%s", node);
        return strbuf_steal(&b);
}
