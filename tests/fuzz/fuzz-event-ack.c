/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>
#include <strings.h>

#include "event-ack-rule.h"
#include "fuzz-objects.h"
#include "marks.h"
#include "reboot-taken.h"
#include "string-util.h"

/*
 * What any Node says of a cloud's event, and of reboots that were taken early: a machine's name is short and has no slash; who is
 * drained has an event, in the boot that the Node shows, and is cordoned; an event of this Node alone is not to be acknowledged for
 * what else it names; and an id that was noted is found, beside all that were there.
 */

static const char template[] =
        "{\"metadata\":{\"name\":\"n1\",\"uid\":\"u\",\"annotations\":{\"" ANNOTATION_INTERRUPTION "\":\"{\\\"id\\\":\\\"E\\\","
        "\\\"kind\\\":\\\"maintenance\\\",\\\"action\\\":\\\"redeploy\\\",\\\"phase\\\":\\\"Drained\\\",\\\"bootID\\\":\\\"b1\\\","
        "\\\"resources\\\":[\\\"pool_1\\\",\\\"pool_2\\\"]}\",\"" ANNOTATION_REBOOT_TAKEN "\":\"e1 e2\",\"" ANNOTATION_ACK_OK "\":\"E\"}},"
        "\"spec\":{\"unschedulable\":true,\"providerID\":\"azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/"
        "virtualMachineScaleSets/pool/virtualMachines/1\"},\"status\":{\"nodeInfo\":{\"bootID\":\"b1\"}}}";

static bool never_over(const char *id, void *userdata) {
        return false;
}

static void check_taken(const char *text) {
        _cleanup_free_ char *next = NULL;
        int r = reboot_taken_add(text, "new", never_over, NULL, &next);

        assert(r == 0 || r == -ENOSPC);
        assert((next != NULL) == (r == 0));
        if (next) {
                assert(strlen(next) <= REBOOT_TAKEN_BYTES_MAX && reboot_taken_has(next, "new"));
                assert(!reboot_taken_has(text, "e1") || reboot_taken_has(next, "e1"));
        }
}

static void check_node(const KubeNode *n) {
        _cleanup_free_ char *why = NULL;
        EventAckNode read;
        int r;

        event_ack_node_read(n, &read);
        assert(strlen(read.machine) <= AZURE_VM_NAME_MAX && !strchr(read.machine, '/'));
        assert(!read.is_drained || (read.event && n->unschedulable && boot_id_equal(n->interruption->boot_id, n->boot_id)));
        check_taken(object_meta_annotation(&n->object.meta, ANNOTATION_REBOOT_TAKEN));
        if (!read.event)
                return;
        r = event_ack_may(&read, 1, read.event, &why);
        assert(r >= 0 && (r > 0) == (why == NULL));
        if (r > 0)
                for (char *const *name = read.resources; *name; name++)
                        assert(read.is_drained && strcasecmp(*name, read.machine) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        Draw d = { data, size };
        KubeObject *o;
        char *text;

        assert(intern_pool_new(&pool) >= 0);
        text = draw_bent_json(&d, template);
        o = fuzz_object(&kube_node_kind, text, strlen(text), pool);
        if (o) {
                check_node((const KubeNode *) o);
                kube_object_unref(o);
        }
        free(text);
        return 0;
}
