/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-ec2-request.h"
#include "string-util.h"
#include "strv.h"

/* -- DescribeInstanceStatus ----------------------------------------------------------------- */

static void add_status(StrBuf *b, const char *element, bool sound) {
        strbuf_addf(b, "            <%s><status>%s</status><details><item><name>reachability</name><status>%s</status>"
                       "</item></details></%s>\n", element, sound ? "ok" : "not-applicable", sound ? "passed" : "failed", element);
}

static void add_instance_status(StrBuf *b, const FakeInstance *i, const char *state) {
        strbuf_addf(b, "        <item>\n            <instanceId>%s</instanceId>\n"
                       "            <availabilityZone>%s</availabilityZone>\n", i->id, i->zone);
        if (i->events.size > 0)
                strbuf_add(b, "            <eventsSet>\n");
        LIST_FOREACH (e, &i->events, FakeEvent, events) {
                char at[RFC3339_MAX];

                rfc3339_format(e->not_before_wall_usec, at);
                strbuf_add(b, "                <item>");
                fake_xml_add_element(b, "instanceEventId", e->id);
                fake_xml_add_element(b, "code", e->code);
                fake_xml_add_element(b, "description", e->description ? e->description : "scheduled by the test");
                fake_xml_add_element(b, "notBefore", at);
                strbuf_add(b, "</item>\n");
        }
        if (i->events.size > 0)
                strbuf_add(b, "            </eventsSet>\n");
        strbuf_add(b, "            ");
        ec2_add_state(b, "instanceState", state);
        strbuf_add(b, "\n");
        add_status(b, "systemStatus", streq(state, "running"));
        add_status(b, "instanceStatus", streq(state, "running"));
        strbuf_add(b, "        </item>\n");
}

static bool has_event_of(const FakeInstance *i, char *const *codes) {
        LIST_FOREACH (e, &i->events, FakeEvent, events)
                if (strv_contains(codes, e->code))
                        return true;
        return false;
}

/* Answers about running instances alone, unless the request asks for all. This call has no filter instance-id. */
void ec2_describe_instance_status(Ec2Request *r) {
        Ec2Selection s = { 0 };
        _cleanup_strbuf_ StrBuf b = { 0 };
        bool all = streq_ptr(ec2_param(r, "IncludeAllInstances"), "true");

        if (ec2_select(r, "event.code", &s) && !ec2_is_dry_run(r)) {
                ec2_open_reply(&b, "DescribeInstanceStatus");
                strbuf_add(&b, "    <instanceStatusSet>\n");
                LIST_FOREACH (i, &r->f->instances, FakeInstance, instances) {
                        const char *state = ec2_visible_state(r, i);

                        if (!state || (s.ids && !strv_contains(s.ids, i->id)) || (!all && !streq(state, "running")))
                                continue;
                        if (s.filtered && !has_event_of(i, s.filter))
                                continue;
                        if (ec2_selection_take(&s))
                                add_instance_status(&b, i, state);
                }
                ec2_selection_close(&s, &b, "instanceStatusSet");
                strbuf_add(&b, "</DescribeInstanceStatusResponse>");
                ec2_reply(r, 200, 0, strbuf_str(&b));
        }
        strv_free(s.ids);
        strv_free(s.filter);
}

/* -- DescribeSpotInstanceRequests ----------------------------------------------------------- */

static const char *spot_request_state(const char *status) {
        if (streq(status, "fulfilled") || startswith(status, "marked-for-"))
                return "active";
        return startswith(status, "instance-stopped-") ? "disabled" : startswith(status, "request-canceled-") ? "cancelled" : "closed";
}

static void add_spot_request(StrBuf *b, const FakeInstance *i) {
        strbuf_addf(b, "        <item>\n            <spotInstanceRequestId>sir-%s</spotInstanceRequestId>\n"
                       "            <spotPrice>0.050000</spotPrice>\n            <type>one-time</type>\n"
                       "            <state>%s</state>\n            <status>", i->id + strlen("i-"), spot_request_state(i->spot_status));
        fake_xml_add_element(b, "code", i->spot_status);
        strbuf_addf(b, "<updateTime>2026-01-01T00:00:00.000Z</updateTime><message>set by the test</message></status>\n"
                       "            <launchSpecification><imageId>ami-0abcdef1234567890</imageId><instanceType>m5.large</instanceType>"
                       "</launchSpecification>\n            <instanceId>%s</instanceId>\n"
                       "            <createTime>2026-01-01T00:00:00.000Z</createTime>\n"
                       "            <launchedAvailabilityZone>%s</launchedAvailabilityZone>\n        </item>\n", i->id, i->zone);
}

/* Each Spot instance has one request. */
void ec2_describe_spot_requests(Ec2Request *r) {
        Ec2Selection s = { 0 };
        _cleanup_strbuf_ StrBuf b = { 0 };

        if (ec2_select(r, "instance-id", &s) && !ec2_is_dry_run(r)) {
                ec2_open_reply(&b, "DescribeSpotInstanceRequests");
                strbuf_add(&b, "    <spotInstanceRequestSet>\n");
                LIST_FOREACH (i, &r->f->instances, FakeInstance, instances) {
                        if (i->spot_status && ec2_visible_state(r, i) && (!s.filtered || strv_contains(s.filter, i->id)) &&
                            ec2_selection_take(&s))
                                add_spot_request(&b, i);
                }
                ec2_selection_close(&s, &b, "spotInstanceRequestSet");
                strbuf_add(&b, "</DescribeSpotInstanceRequestsResponse>");
                ec2_reply(r, 200, 0, strbuf_str(&b));
        }
        strv_free(s.ids);
        strv_free(s.filter);
}

/* -- what tests do -------------------------------------------------------------------------- */

void ec2_event_free(FakeInstance *i, FakeEvent *e) {
        list_remove(&i->events, &e->events);
        free(e->id);
        free(e->code);
        free(e->description);
        free(e);
}

static FakeEvent *find_event(const FakeInstance *i, const char *event) {
        LIST_FOREACH (e, &i->events, FakeEvent, events)
                if (streq(e->id, event))
                        return e;
        return NULL;
}

void fake_ec2_schedule(FakeEc2 *f, const char *id, const char *event, const char *code, usec_t not_before_wall_usec) {
        FakeInstance *i = ec2_must_find(f, id);
        FakeEvent *e = find_event(i, event);

        if (!e) {
                e = new0(FakeEvent, 1);
                assert(e);
                e->id = strdup(event);
                e->code = strdup(code);
                assert(e->id && e->code);
                list_append(&i->events, &e->events);
        }
        e->not_before_wall_usec = not_before_wall_usec;
}

void fake_ec2_describe_event(FakeEc2 *f, const char *id, const char *event, const char *description) {
        FakeEvent *e = find_event(ec2_must_find(f, id), event);
        int r;

        assert(e);
        r = free_and_strdup(&e->description, description);
        assert(r >= 0);
}

bool fake_ec2_has_event(const FakeEc2 *f, const char *id, const char *event) {
        return find_event(ec2_must_find(f, id), event);
}

void fake_ec2_set_spot_status(FakeEc2 *f, const char *id, const char *code) {
        int r = free_and_strdup(&ec2_must_find(f, id)->spot_status, code);

        assert(r >= 0);
}
