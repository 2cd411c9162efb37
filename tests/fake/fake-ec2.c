/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "fake-ec2-request.h"
#include "parse-util.h"
#include "string-util.h"
#include "strv.h"

#define MAX_SKEW_USEC (15 * USEC_PER_MINUTE)
#define FILTER_VALUES_MAX 200u
#define IDS_MAX 1000u
#define REQUEST_ID FAKE_AWS_REQUEST_ID

/* -- instances ------------------------------------------------------------------------------ */

static const struct {
        const char *name;
        unsigned code;
} states[] = {
        { "pending", 0 },     { "running", 16 },  { "shutting-down", 32 },
        { "terminated", 48 }, { "stopping", 64 }, { "stopped", 80 },
};

static size_t state_index(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(states); i++)
                if (streq(states[i].name, name))
                        return i;
        assert(false && "a state that EC2 does not have");
        return 0;
}

static const char *instance_state(const FakeEc2 *f, const FakeInstance *i) {
        usec_t now = loop_now(f->front.loop);

        if (i->terminated_usec == USEC_INFINITY)
                return i->state;
        if (now < i->terminated_usec)
                return "shutting-down";
        return now < usec_add(i->terminated_usec, f->visible_usec) ? "terminated" : NULL;
}

static FakeInstance *find(const FakeEc2 *f, const char *id) {
        LIST_FOREACH (i, &f->instances, FakeInstance, instances)
                if (streq(i->id, id))
                        return i;
        return NULL;
}

static bool zone_in_region(const char *zone, const char *region) {
        const char *rest = startswith(zone, region);

        return rest && ((rest[0] >= 'a' && rest[0] <= 'z') || rest[0] == '-');
}

static void tell(FakeEc2 *f, const FakeInstance *i) {
        LIST_FOREACH (w, &f->watches, FakeEc2Watch, watches)
                w->changed(i->id, w->userdata);
}

static void terminate(FakeEc2 *f, FakeInstance *i) {
        if (i->terminated_usec != USEC_INFINITY)
                return;
        i->terminated_usec = usec_add(loop_now(f->front.loop), f->shutting_down_usec);
        tell(f, i);
}

/* Returns the state of the instance as the request sees it; NULL: the request sees no such instance. */
const char *ec2_visible_state(const Ec2Request *r, const FakeInstance *i) {
        return i && zone_in_region(i->zone, r->scope.region) ? instance_state(r->f, i) : NULL;
}

const char *ec2_param(const Ec2Request *r, const char *name) {
        return fake_query_get(&r->params, name);
}

/* -- answers -------------------------------------------------------------------------------- */

void ec2_reply(Ec2Request *r, unsigned status, usec_t retry_after_usec, const char *body) {
        char msec[24];
        HttpHeader extra = { "x-amz-retry-after", msec };

        (void) snprintf(msec, sizeof(msec), "%" PRIu64, retry_after_usec / USEC_PER_MSEC);
        fake_aws_front_reply(&r->f->front, r->x, status, "text/xml;charset=UTF-8",
                             retry_after_usec > 0 ? &extra : NULL, body);
}

static void reply_error_full(Ec2Request *r, unsigned status, const char *code, const char *message,
                             usec_t retry_after_usec) {
        _cleanup_strbuf_ StrBuf b = { 0 };

        strbuf_add(
                &b,
                r->sts ? "<ErrorResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\n  <Error>\n"
                         "    <Type>Sender</Type>\n"
                       : "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Response><Errors><Error>");
        strbuf_addf(&b, "<Code>%s</Code><Message>", code);
        fake_xml_add_escaped(&b, message);
        strbuf_add(&b, "</Message></Error>");
        strbuf_addf(&b,
                    r->sts ? "\n  <RequestId>%s</RequestId>\n</ErrorResponse>\n"
                           : "</Errors><RequestID>%s</RequestID></Response>",
                    REQUEST_ID);
        ec2_reply(r, status, retry_after_usec, strbuf_str(&b));
}

void ec2_reply_error(Ec2Request *r, unsigned status, const char *code, const char *message) {
        reply_error_full(r, status, code, message, 0);
}

void ec2_open_reply(StrBuf *b, const char *action) {
        strbuf_addf(b,
                    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                    "<%sResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">\n"
                    "    <requestId>" REQUEST_ID "</requestId>\n",
                    action);
}

void ec2_add_state(StrBuf *b, const char *element, const char *state) {
        strbuf_addf(b, "<%s><code>%u</code><name>%s</name></%s>", element, states[state_index(state)].code,
                    state, element);
}

/* -- DescribeInstances ---------------------------------------------------------------------- */

static void add_reservation(const Ec2Request *r, StrBuf *b, const FakeInstance *i, const char *state) {
        strbuf_addf(
                b,
                "        <item>\n            <reservationId>r-0123456789abcdef0</reservationId>\n"
                "            <ownerId>%s</ownerId>\n            <groupSet/>\n            <instancesSet>\n"
                "                <item>\n                    <instanceId>%s</instanceId>\n"
                "                    <imageId>ami-0abcdef1234567890</imageId>\n                    ",
                r->f->front.account, i->id);
        ec2_add_state(b, "instanceState", state);
        strbuf_addf(
                b,
                "\n                    <privateDnsName>%s</privateDnsName>\n"
                "                    <dnsName/>\n                    <reason>%s</reason>\n"
                "                    <amiLaunchIndex>0</amiLaunchIndex>\n                    "
                "<productCodes/>\n"
                "                    <instanceType>m5.large</instanceType>\n"
                "                    <launchTime>2026-01-01T00:00:00.000Z</launchTime>\n"
                "                    <placement>\n                        "
                "<availabilityZone>%s</availabilityZone>\n"
                "                        <groupName/>\n                        <tenancy>default</tenancy>\n"
                "                    </placement>\n",
                i->terminated_usec != USEC_INFINITY ? ""
                : i->name                           ? i->name
                                                    : "ip-10-0-0-1.ec2.internal",
                i->terminated_usec == USEC_INFINITY ? "" : "User initiated (2026-01-01 00:00:00 GMT)",
                i->zone);
        if (i->terminated_usec != USEC_INFINITY)
                strbuf_add(b, "                    <stateReason><code>Client.UserInitiatedShutdown</code>"
                              "<message>Client.UserInitiatedShutdown: User &amp; "
                              "friends</message></stateReason>\n");
        strbuf_add(b, "                    <tagSet>\n                        <item><key>Name</key><value>a "
                      "&lt;node&gt;</value></item>\n");
        if (i->group) {
                strbuf_add(b, "                        <item><key>aws:autoscaling:groupName</key>");
                fake_xml_add_element(b, "value", i->group);
                strbuf_add(b, "</item>\n");
        }
        if (i->node_tag) {
                strbuf_add(b, "                        <item><key>vesper.sh/node</key>");
                fake_xml_add_element(b, "value", i->node_tag);
                strbuf_add(b, "</item>\n");
        }
        LIST_FOREACH (t, &i->tags, FakeTag, tags) {
                strbuf_add(b, "                        <item>");
                fake_xml_add_element(b, "key", t->key);
                fake_xml_add_element(b, "value", t->value);
                strbuf_add(b, "</item>\n");
        }
        strbuf_add(b, "                    </tagSet>\n                </item>\n            "
                      "</instancesSet>\n"
                      "        </item>\n");
}

static bool is_instance_id(const char *s) {
        return startswith(s, "i-") && strlen(s) > 2 && strspn(s + 2, "0123456789abcdef") == strlen(s + 2);
}

/* False: the error was sent. One unknown id fails the whole request. */
static bool check_ids(Ec2Request *r, char *const *ids) {
        _cleanup_free_ char *message = NULL;

        STRV_FOREACH (id, ids) {
                if (!is_instance_id(*id)) {
                        message = strf("Invalid id: \"%s\"", *id);
                        ec2_reply_error(r, 400, "InvalidInstanceID.Malformed", message);
                        return false;
                }
                if (!ec2_visible_state(r, find(r->f, *id))) {
                        message = strf("The instance ID '%s' does not exist", *id);
                        ec2_reply_error(r, 400, "InvalidInstanceID.NotFound", message);
                        return false;
                }
        }
        return true;
}

bool ec2_select(Ec2Request *r, const char *filter, Ec2Selection *s) {
        const char *max = ec2_param(r, "MaxResults"), *token = ec2_param(r, "NextToken"),
                   *by = ec2_param(r, "Filter.1.Name");

        s->ids = fake_query_list(&r->params, "InstanceId");
        s->filter = fake_query_list(&r->params, "Filter.1.Value");
        s->max = r->f->page_size > 0 ? r->f->page_size : UINT64_MAX;
        r->f->last_n_ids = strv_length(s->ids) + strv_length(s->filter);
        s->filtered = by;
        if (by && (!streq(by, filter) || ec2_param(r, "Filter.2.Name"))) {
                ec2_reply_error(r, 400, "InvalidParameterValue", "The filter is invalid");
                return false;
        }
        if (strv_length(s->filter) > FILTER_VALUES_MAX) {
                ec2_reply_error(r, 400, "FilterLimitExceeded",
                            "The maximum number of filter values specified on a single call is 200");
                return false;
        }
        if (max && s->ids) {
                ec2_reply_error(r, 400, "InvalidParameterCombination",
                            "The parameter instancesSet cannot be used with the parameter maxResults");
                return false;
        }
        if (max && parse_uint64_range(max, 5, 1000, &s->max) < 0) {
                ec2_reply_error(r, 400, "InvalidParameterValue",
                            "Value out of range for parameter maxResults. Expecting 5 - 1000");
                return false;
        }
        if (token && (!startswith(token, "page+") || parse_uint64(token + 5, &s->first) < 0)) {
                ec2_reply_error(r, 400, "InvalidParameterValue", "Unable to parse pagination token");
                return false;
        }
        return check_ids(r, s->ids);
}

bool ec2_selection_take(Ec2Selection *s) {
        s->n++;
        return s->n > s->first && s->n <= usec_add(s->first, s->max);
}

void ec2_selection_close(const Ec2Selection *s, StrBuf *b, const char *set) {
        uint64_t end = usec_add(s->first, s->max);

        strbuf_addf(b, "    </%s>\n", set);
        if (s->n > end)
                strbuf_addf(b, "    <nextToken>page+%" PRIu64 "</nextToken>\n", end);
}

static void describe_instances(Ec2Request *r) {
        Ec2Selection s = { 0 };
        _cleanup_strbuf_ StrBuf b = { 0 };

        if (ec2_select(r, "instance-id", &s)) {
                ec2_open_reply(&b, "DescribeInstances");
                strbuf_add(&b, "    <reservationSet>\n");
                LIST_FOREACH (i, &r->f->instances, FakeInstance, instances) {
                        const char *state = ec2_visible_state(r, i);

                        if (!state || (s.ids && !strv_contains(s.ids, i->id)))
                                continue;
                        if (s.filtered && !strv_contains(s.filter, i->id))
                                continue;
                        if (ec2_selection_take(&s))
                                add_reservation(r, &b, i, state);
                }
                ec2_selection_close(&s, &b, "reservationSet");
                strbuf_add(&b, "</DescribeInstancesResponse>");
                ec2_reply(r, 200, 0, strbuf_str(&b));
        }
        strv_free(s.ids);
        strv_free(s.filter);
}

/* -- TerminateInstances --------------------------------------------------------------------- */

static bool zone_has_protected(Ec2Request *r, char *const *ids, const char *zone) {
        STRV_FOREACH (id, ids) {
                const FakeInstance *i = find(r->f, *id);

                if (i->protected && streq(i->zone, zone))
                        return true;
        }
        return false;
}

/* Obeys for all in zones where none is protected; returns the id of the first protected one, or NULL. */
static const char *terminate_all(Ec2Request *r, char *const *ids, StrBuf *b) {
        const char *protected_id = NULL;

        STRV_FOREACH (id, ids) {
                FakeInstance *i = find(r->f, *id);
                const char *before = instance_state(r->f, i);

                if (zone_has_protected(r, ids, i->zone)) {
                        if (!protected_id && i->protected)
                                protected_id = i->id;
                        continue;
                }
                i->n_terminations++;
                terminate(r->f, i);
                strbuf_addf(b, "        <item><instanceId>%s</instanceId>", i->id);
                ec2_add_state(b, "currentState", instance_state(r->f, i));
                ec2_add_state(b, "previousState", before);
                strbuf_add(b, "</item>\n");
        }
        return protected_id;
}

static void terminate_instances(Ec2Request *r) {
        _cleanup_strv_free_ char **ids = fake_query_list(&r->params, "InstanceId");
        _cleanup_free_ char *message = NULL;
        _cleanup_strbuf_ StrBuf b = { 0 };
        const char *protected_id;

        if (strv_length(ids) == 0 || strv_length(ids) > IDS_MAX)
                return ec2_reply_error(r, 400, "MissingParameter",
                                   "The request must contain the parameter InstanceId");
        if (!check_ids(r, ids))
                return;
        if (streq_ptr(ec2_param(r, "DryRun"), "true"))
                return ec2_reply_error(r, 412, "DryRunOperation",
                                   "Request would have succeeded, but DryRun flag is set.");

        ec2_open_reply(&b, "TerminateInstances");
        strbuf_add(&b, "    <instancesSet>\n");
        protected_id = terminate_all(r, ids, &b);
        if (protected_id) {
                message = strf("The instance '%s' may not be terminated. Modify its 'disableApiTermination' "
                               "instance "
                               "attribute and try again.",
                               protected_id);
                return ec2_reply_error(r, 400, "OperationNotPermitted", message);
        }
        strbuf_add(&b, "    </instancesSet>\n</TerminateInstancesResponse>");
        ec2_reply(r, 200, 0, strbuf_str(&b));
}

/* True: the request was answered. */
bool ec2_is_dry_run(Ec2Request *r) {
        if (!streq_ptr(ec2_param(r, "DryRun"), "true"))
                return false;
        ec2_reply_error(r, 412, "DryRunOperation", "Request would have succeeded, but DryRun flag is set.");
        return true;
}

static void reply_true(Ec2Request *r, const char *action) {
        _cleanup_strbuf_ StrBuf b = { 0 };

        ec2_open_reply(&b, action);
        strbuf_addf(&b, "    <return>true</return>\n</%sResponse>", action);
        ec2_reply(r, 200, 0, strbuf_str(&b));
}

/* -- RebootInstances ------------------------------------------------------------------------ */

/* In place, or by moving to another host: that ends what was scheduled for it. */
static void reboot(FakeEc2 *f, FakeInstance *i) {
        i->n_reboots++;
        if (!i->stays)
                LIST_FOREACH (e, &i->events, FakeEvent, events)
                        if (streq(e->code, "system-reboot"))
                                ec2_event_free(i, e);
        if (f->rebooted)
                f->rebooted(i->id, f->reboot_userdata);
}

static void reboot_instances(Ec2Request *r) {
        _cleanup_strv_free_ char **ids = fake_query_list(&r->params, "InstanceId");
        _cleanup_free_ char *message = NULL;

        if (strv_length(ids) == 0 || strv_length(ids) > IDS_MAX)
                return ec2_reply_error(r, 400, "MissingParameter",
                                   "The request must contain the parameter InstanceId");
        if (!check_ids(r, ids) || ec2_is_dry_run(r))
                return;
        STRV_FOREACH (id, ids) {
                const char *state = instance_state(r->f, find(r->f, *id));

                if (streq(state, "running") || streq(state, "shutting-down") || streq(state, "terminated"))
                        continue;
                message = strf("This instance '%s' is not in a state from which it can be rebooted.", *id);
                return ec2_reply_error(r, 400, "IncorrectInstanceState", message);
        }
        STRV_FOREACH (id, ids)
                if (streq(instance_state(r->f, find(r->f, *id)), "running")) /* of one that ends it is ignored */
                        reboot(r->f, find(r->f, *id));
        reply_true(r, "RebootInstances");
}

/* -- CreateTags ----------------------------------------------------------------------------- */

static void tag_free(FakeInstance *i, FakeTag *t) {
        list_remove(&i->tags, &t->tags);
        free(t->key);
        free(t->value);
        free(t);
}

static void set_tag(FakeInstance *i, const char *key, const char *value) {
        FakeTag *t = NULL;
        int r;

        if (streq(key, "vesper.sh/node")) {
                r = free_and_strdup(&i->node_tag, value);
                assert(r >= 0);
                return;
        }
        LIST_FOREACH (known, &i->tags, FakeTag, tags)
                if (streq(known->key, key))
                        t = known;
        if (!t) {
                t = new0(FakeTag, 1);
                assert(t);
                list_append(&i->tags, &t->tags);
        }
        r = free_and_strdup(&t->key, key);
        if (r >= 0)
                r = free_and_strdup(&t->value, value);
        assert(r >= 0);
}

/* Key and Value of Tag.N; NULL, and the error was sent, or (*ret_value NULL) there are no more. */
static const char *take_tag(Ec2Request *r, size_t n, const char **ret_value) {
        _cleanup_free_ char *key_name = strf("Tag.%zu.Key", n), *value_name = strf("Tag.%zu.Value", n);

        assert(key_name && value_name);
        *ret_value = ec2_param(r, value_name) ? ec2_param(r, value_name) : "";
        return ec2_param(r, key_name);
}

static void create_tags(Ec2Request *r) {
        _cleanup_strv_free_ char **ids = fake_query_list(&r->params, "ResourceId");
        const char *key, *value;
        size_t n;

        if (strv_length(ids) == 0 || strv_length(ids) > IDS_MAX || !take_tag(r, 1, &value))
                return ec2_reply_error(r, 400, "MissingParameter",
                                   "The request must contain the parameter ResourceId and a tag");
        if (!check_ids(r, ids) || ec2_is_dry_run(r))
                return;
        for (n = 1; (key = take_tag(r, n, &value)); n++) {
                if (startswith(key, "aws:"))
                        return ec2_reply_error(r, 400, "InvalidParameterValue",
                                           "Tag keys starting with 'aws:' are reserved for internal use");
                if (strlen(key) > 127 || strlen(value) > 255)
                        return ec2_reply_error(r, 400, "InvalidParameterValue", "Tag key or value is too long");
        }
        if (n > 51)
                return ec2_reply_error(r, 400, "TagLimitExceeded", "The maximum number of Tags for a resource has been reached.");
        STRV_FOREACH (id, ids)
                for (n = 1; (key = take_tag(r, n, &value)); n++)
                        set_tag(find(r->f, *id), key, value);
        reply_true(r, "CreateTags");
}

static void get_caller_identity(Ec2Request *r) {
        _cleanup_free_ char *body = NULL;

        body = strf(
                "<GetCallerIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\n"
                "  <GetCallerIdentityResult>\n    <Arn>arn:aws:iam::%s:user/vesper</Arn>\n"
                "    <UserId>AIDAEXAMPLE</UserId>\n    <Account>%s</Account>\n  </GetCallerIdentityResult>\n"
                "  <ResponseMetadata>\n    <RequestId>" REQUEST_ID "</RequestId>\n  </ResponseMetadata>\n"
                "</GetCallerIdentityResponse>\n",
                r->f->front.account, r->f->front.account);
        ec2_reply(r, 200, 0, body);
}

/* -- a request ------------------------------------------------------------------------------ */

typedef struct Action {
        const char *name;
        bool sts;
        const char *version;
        const char *params[8];
        void (*act)(Ec2Request *r);
} Action;

static const Action actions[] = {
        { "DescribeInstances",
          false,
          "2016-11-15",
          { "Action", "Version", "InstanceId.", "Filter.", "MaxResults", "NextToken", "DryRun" },
          describe_instances },
        { "TerminateInstances",
          false,
          "2016-11-15",
          { "Action", "Version", "InstanceId.", "DryRun", "Force", "SkipOsShutdown" },
          terminate_instances },
        { "RebootInstances", false, "2016-11-15", { "Action", "Version", "InstanceId.", "DryRun" }, reboot_instances },
        { "DescribeInstanceStatus",
          false,
          "2016-11-15",
          { "Action", "Version", "InstanceId.", "Filter.", "MaxResults", "NextToken", "DryRun", "IncludeAllInstances" },
          ec2_describe_instance_status },
        { "DescribeSpotInstanceRequests",
          false,
          "2016-11-15",
          { "Action", "Version", "SpotInstanceRequestId.", "Filter.", "MaxResults", "NextToken", "DryRun" },
          ec2_describe_spot_requests },
        { "CreateTags", false, "2016-11-15", { "Action", "Version", "ResourceId.", "Tag.", "DryRun" }, create_tags },
        { "GetCallerIdentity", true, "2011-06-15", { "Action", "Version" }, get_caller_identity },
};

static const Action *find_action(const Ec2Request *r) {
        const char *name = ec2_param(r, "Action");

        for (size_t i = 0; i < ELEMENTSOF(actions); i++)
                if (streq_ptr(name, actions[i].name) && actions[i].sts == r->sts)
                        return &actions[i];
        return NULL;
}

/* False: refused, and the error was sent. */
static bool authenticate(Ec2Request *r) {
        static const char *const services[] = { "ec2", "sts", NULL };
        FakeAwsRefusal refusal;
        bool admitted = fake_aws_front_admit(&r->f->front, r->x, services, &r->scope, &refusal);

        r->sts = streq(r->scope.service, "sts");
        if (!admitted)
                ec2_reply_error(r, refusal.status, refusal.code, refusal.message);
        return admitted;
}

/* True: nothing is left to be done. */
static bool play_trouble(Ec2Request *r, const char *action) {
        const FakeTrouble *t = fake_troubles_take(r->f->front.troubles, action, &r->x);

        if (t && t->kind == FAKE_TROUBLE_BODY)
                ec2_reply(r, t->status, 0, t->body);
        else if (t)
                reply_error_full(r, t->status, t->code, t->message, t->retry_after_usec);
        return t || !r->x;
}

static void handle(Ec2Request *r) {
        const char *type = http_header_find(r->x->headers, r->x->n_headers, "Content-Type"), *unknown;
        const Action *a;

        if (r->x->method != HTTP_POST || !streq(r->x->path, "/") || *r->x->query || !type ||
            !startswith(type, "application/x-www-form-urlencoded"))
                return ec2_reply_error(r, 400, "InvalidRequest", "Only POST / with a form is played here.");
        if (!authenticate(r))
                return;
        fake_query_init_form(&r->params, r->x);
        if (r->params.repeated)
                return ec2_reply_error(r, 400, "MalformedQueryString", "A parameter was given twice.");
        a = find_action(r);
        if (!a || !streq_ptr(ec2_param(r, "Version"), a->version))
                return ec2_reply_error(r, 400, "InvalidAction",
                                   "The action is not valid for this web service and version.");
        if (play_trouble(r, a->name))
                return;
        unknown = fake_query_unknown(&r->params, a->params, ELEMENTSOF(a->params));
        if (unknown)
                return ec2_reply_error(r, 400, "UnknownParameter", unknown);
        a->act(r);
}

void fake_ec2_handle(HttpExchange *x, void *fake_ec2) {
        Ec2Request r = { .f = fake_ec2, .x = x };

        handle(&r);
        fake_query_done(&r.params);
}

/* -- what tests do -------------------------------------------------------------------------- */

FakeEc2 *fake_ec2_new(const FakeEc2Options *o) {
        FakeEc2 *f = new0(FakeEc2, 1);

        assert(f);
        fake_aws_front_init(&f->front, &(FakeAwsFrontOptions){ .loop = o->loop,
                                                               .region = o->region,
                                                               .account = o->account,
                                                               .access_key_id = o->access_key_id,
                                                               .secret_access_key = o->secret_access_key,
                                                               .session_token = o->session_token,
                                                               .max_skew_usec = MAX_SKEW_USEC });
        f->shutting_down_usec = o->shutting_down_usec;
        f->visible_usec = o->visible_usec > 0 ? o->visible_usec : USEC_PER_HOUR;
        return f;
}

static void instance_free(FakeEc2 *f, FakeInstance *i) {
        list_remove(&f->instances, &i->instances);
        LIST_FOREACH (t, &i->tags, FakeTag, tags)
                tag_free(i, t);
        LIST_FOREACH (e, &i->events, FakeEvent, events)
                ec2_event_free(i, e);
        free(i->id);
        free(i->zone);
        free(i->group);
        free(i->name);
        free(i->node_tag);
        free(i->spot_status);
        free(i);
}

FakeEc2 *fake_ec2_free(FakeEc2 *f) {
        if (!f)
                return NULL;
        LIST_FOREACH (i, &f->instances, FakeInstance, instances)
                instance_free(f, i);
        fake_aws_front_done(&f->front);
        free(f);
        return NULL;
}

const char *fake_ec2_run(FakeEc2 *f, const char *id, const char *zone) {
        FakeInstance *i = new0(FakeInstance, 1);

        assert(i && zone && (!id || (is_instance_id(id) && !find(f, id))));
        i->id = id ? strdup(id) : strf("i-%016" PRIx64, ++f->next_id);
        i->zone = strdup(zone);
        assert(i->id && i->zone);
        i->state = "running";
        i->terminated_usec = USEC_INFINITY;
        list_append(&f->instances, &i->instances);
        return i->id;
}

FakeInstance *ec2_must_find(const FakeEc2 *f, const char *id) {
        FakeInstance *i = find(f, id);

        assert(i);
        return i;
}

void fake_ec2_watch(FakeEc2 *f, FakeEc2Watch *w) {
        list_append(&f->watches, &w->watches);
}

void fake_ec2_unwatch(FakeEc2 *f, FakeEc2Watch *w) {
        list_remove(&f->watches, &w->watches);
}

void fake_ec2_set_state(FakeEc2 *f, const char *id, const char *state) {
        FakeInstance *i = ec2_must_find(f, id);

        if (streq(state, "terminated"))
                i->terminated_usec = loop_now(f->front.loop);
        else {
                assert(!streq(state, "shutting-down"));
                i->terminated_usec = USEC_INFINITY;
                i->state = states[state_index(state)].name;
        }
        tell(f, i);
}

void fake_ec2_terminate(FakeEc2 *f, const char *id) {
        terminate(f, ec2_must_find(f, id));
}

void fake_ec2_protect(FakeEc2 *f, const char *id, bool protect) {
        ec2_must_find(f, id)->protected = protect;
}

void fake_ec2_set_group(FakeEc2 *f, const char *id, const char *group) {
        int r = free_and_strdup(&ec2_must_find(f, id)->group, group);

        assert(r >= 0);
}

void fake_ec2_set_private_dns_name(FakeEc2 *f, const char *id, const char *name) {
        int r = free_and_strdup(&ec2_must_find(f, id)->name, name);

        assert(r >= 0);
}

void fake_ec2_set_node_tag(FakeEc2 *f, const char *id, const char *node) {
        int r = free_and_strdup(&ec2_must_find(f, id)->node_tag, node);

        assert(r >= 0);
}

void fake_ec2_set_reboot_migration(FakeEc2 *f, const char *id, bool on) {
        ec2_must_find(f, id)->stays = !on;
}

void fake_ec2_on_reboot(FakeEc2 *f, void (*rebooted)(const char *id, void *userdata), void *userdata) {
        f->rebooted = rebooted;
        f->reboot_userdata = userdata;
}

size_t fake_ec2_n_reboots(const FakeEc2 *f, const char *id) {
        const FakeInstance *i = find(f, id);

        return i ? i->n_reboots : 0;
}

void fake_ec2_forget(FakeEc2 *f, const char *id) {
        instance_free(f, ec2_must_find(f, id));
}

const char *fake_ec2_state(FakeEc2 *f, const char *id) {
        const FakeInstance *i = find(f, id);

        return i ? instance_state(f, i) : NULL;
}

const char *fake_ec2_zone(FakeEc2 *f, const char *id) {
        const FakeInstance *i = find(f, id);

        return i ? i->zone : NULL;
}

size_t fake_ec2_n_alive(FakeEc2 *f) {
        size_t n = 0;

        LIST_FOREACH (i, &f->instances, FakeInstance, instances)
                n += i->terminated_usec == USEC_INFINITY;
        return n;
}

FakeTroubles *fake_ec2_troubles(FakeEc2 *f) {
        return f->front.troubles;
}

static void only_trouble(FakeEc2 *f, const FakeTrouble *trouble) {
        fake_troubles_clear(f->front.troubles);
        fake_troubles_add(f->front.troubles, trouble);
}

void fake_ec2_throttle(FakeEc2 *f, unsigned n, unsigned retry_after_msec) {
        only_trouble(f, &(FakeTrouble){ .kind = FAKE_TROUBLE_FAIL,
                                    .n = n,
                                    .status = 503,
                                    .code = "RequestLimitExceeded",
                                    .message = "Request limit exceeded.",
                                    .retry_after_usec = retry_after_msec * USEC_PER_MSEC });
}

void fake_ec2_fail(FakeEc2 *f, unsigned n, unsigned status, const char *code, const char *message) {
        only_trouble(f, &(FakeTrouble){ .kind = FAKE_TROUBLE_FAIL,
                                    .n = n,
                                    .status = status,
                                    .code = code,
                                    .message = message });
}

void fake_ec2_garble(FakeEc2 *f, unsigned n, const char *body) {
        only_trouble(f, &(FakeTrouble){ .kind = FAKE_TROUBLE_BODY, .n = n, .status = 200, .body = body });
}

void fake_ec2_set_keys(FakeEc2 *f, const char *access_key_id, const char *secret,
                       const char *session_token) {
        fake_aws_front_set_keys(&f->front, access_key_id, secret, session_token);
}

void fake_ec2_expire_keys(FakeEc2 *f, const char *code) {
        fake_aws_front_expire_keys(&f->front, code);
}

void fake_ec2_set_skew(FakeEc2 *f, int64_t skew_usec) {
        f->front.skew_usec = skew_usec;
}

void fake_ec2_set_page_size(FakeEc2 *f, size_t n) {
        f->page_size = n;
}

size_t fake_ec2_n_requests(const FakeEc2 *f, const char *action) {
        return fake_troubles_n_requests(f->front.troubles, action);
}

size_t fake_ec2_n_refused(const FakeEc2 *f) {
        return f->front.n_refused;
}

size_t fake_ec2_n_terminations(const FakeEc2 *f, const char *id) {
        const FakeInstance *i = find(f, id);

        return i ? i->n_terminations : 0;
}

size_t fake_ec2_last_n_ids(const FakeEc2 *f) {
        return f->last_n_ids;
}
