/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "announced.h"
#include "event-message.h"
#include "fuzz-draw.h"
#include "string-util.h"
#include "strv.h"

/* Messages of an interruption queue: as text, or good ones that are bent. What comes out is whole and bounded, and a notice of it
 * can be written and read back. */

static const char spot[] =
        "{\"version\":\"0\",\"id\":\"e\",\"detail-type\":\"EC2 Spot Instance Interruption Warning\",\"source\":\"aws.ec2\",\"account\":\"1\","
        "\"time\":\"2026-11-25T09:00:00Z\",\"region\":\"us-east-1\",\"resources\":[],\"detail\":{\"instance-id\":\"i-0abc\","
        "\"instance-action\":\"terminate\"}}";
static const char health[] =
        "{\"id\":\"e\",\"detail-type\":\"AWS Health Event\",\"source\":\"aws.health\",\"account\":\"1\",\"time\":\"2026-11-25T09:00:00Z\","
        "\"region\":\"us-east-1\",\"detail\":{\"service\":\"EC2\",\"eventTypeCategory\":\"scheduledChange\",\"eventTypeCode\":"
        "\"AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED\",\"communicationId\":\"c\",\"startTime\":\"Sat, 05 Jun 2027 15:10:09 GMT\","
        "\"statusCode\":\"upcoming\",\"eventRegion\":\"us-east-1\",\"affectedEntities\":[{\"entityValue\":\"i-0abc\"},"
        "{\"entityValue\":\"i-0abd\"}],\"page\":\"1\",\"totalPages\":\"2\"}}";
static const char hook[] =
        "{\"LifecycleActionToken\":\"t\",\"AutoScalingGroupName\":\"g\",\"LifecycleHookName\":\"h\",\"EC2InstanceId\":\"i-0abc\","
        "\"LifecycleTransition\":\"autoscaling:EC2_INSTANCE_TERMINATING\",\"Time\":\"2026-11-25T09:00:00Z\",\"RequestId\":\"r\"}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The notice stands in the annotation as it was announced, whatever the message's texts are. */
static void check_round_trip(const Notice *n) {
        _cleanup_(announced_list_done) AnnouncedList l = {}, back = {};
        _cleanup_free_ char *text = NULL;
        const Notice *b;
        int r;

        r = announced_list_put(&l, n, ANNOUNCED_STANDS, NULL);
        assert(r == 0);
        text = announced_list_format(&l);
        assert(text);
        r = announced_list_parse(text, &back);
        assert(r == 0 && back.n_items == 1);
        b = back.items[0].notice;
        assert(streq(b->id, n->id) && streq(b->source, n->source) && streq(b->action, n->action));
        assert(b->kind == n->kind && b->certainty == n->certainty);
        assert(b->announced_usec == n->announced_usec && b->until_usec == n->until_usec);
        assert(b->said_usec == n->said_usec && b->not_before_usec == n->not_before_usec);
}

static void check_notice(const EventMessage *m, const char *instance) {
        _cleanup_(notice_freep) Notice *n = NULL;
        int r = event_message_notice(m, instance, &n);

        assert(r == 0 || r == -ENODATA);
        if (r < 0)
                return;
        assert(n->kind >= 0 && !isempty(n->id) && !isempty(n->source) && n->action);
        check_round_trip(n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const char *const templates[] = { spot, health, hook };
        Draw d = { .data = data, .size = size };
        _cleanup_(event_message_done) EventMessage m = { 0 };
        _cleanup_free_ char *text = NULL;
        int r;

        if (draw_is_text(data, size))
                text = memdup_str((const char *) data, size);
        else {
                const char *template = draw_of(&d, templates);

                text = draw_bent_json(&d, template);
        }
        r = event_message_parse(text, draw_is_text(data, size) ? size : strlen(text), &m);
        assert(r == 0 || r == -EBADMSG);
        if (r < 0) {
                assert(!m.id && !m.instances && !m.detail_type && !m.region);
                return 0;
        }
        assert(m.kind >= 0 && m.kind < _EVENT_MESSAGE_KIND_MAX && m.id && m.source && m.detail_type);
        assert(m.region && m.action && m.group && m.hook);
        assert(m.page >= 1 && m.pages >= 1 && strv_length(m.instances) <= EVENT_MESSAGE_INSTANCES_MAX);
        STRV_FOREACH(i, m.instances) {
                assert(startswith(*i, "i-"));
                check_notice(&m, *i);
        }
        return 0;
}
