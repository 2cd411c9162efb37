/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-ec2.h"

#include <inttypes.h>
#include <stdio.h>

#include "fake-aws-auth.h"
#include "hashmap.h"
#include "list.h"
#include "parse-util.h"
#include "string-util.h"
#include "strv.h"

#define MAX_SKEW_USEC (15 * USEC_PER_MINUTE)
#define FILTER_VALUES_MAX 200u
#define IDS_MAX 1000u
#define ACCOUNT "123456789012"
#define REQUEST_ID "59dbff89-35bd-4eac-99ed-be587EXAMPLE"

typedef struct FakeInstance {
        ListNode instances;
        char *id;
        char *zone;
        const char *state;      /* until terminated */
        usec_t terminated_usec; /* the end of shutting-down; USEC_INFINITY: nobody asked for it */
        bool protected;
        size_t n_terminations;
} FakeInstance;

typedef struct Fault {
        unsigned n;
        unsigned status;
        unsigned retry_after_msec;
        char *code;
        char *message;
        char *body;
} Fault;

struct FakeEc2 {
        Loop *loop;
        char *region;
        char *account;
        char *access_key_id, *secret, *session_token;
        char *expired_code;
        usec_t shutting_down_usec, visible_usec;
        int64_t skew_usec;
        size_t page_size;
        uint64_t next_id;
        List instances;
        Fault fault;
        Hashmap *counts; /* action -> counter */
        size_t n_refused, last_n_ids;
};

/* One request: its parameters, decoded, in order. */
typedef struct Params {
        char **names;
        char **values;
} Params;

typedef struct Request {
        FakeEc2 *f;
        HttpExchange *x;
        Params params;
        char region[64];
        bool sts;
} Request;

static void fault_clear(Fault *t) {
        free(t->code);
        free(t->message);
        free(t->body);
        *t = (Fault){ 0 };
}

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
        usec_t now = loop_now(f->loop);

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

/* What a request sees of it: NULL if nothing. */
static const char *visible_state(const Request *r, const FakeInstance *i) {
        return i && zone_in_region(i->zone, r->region) ? instance_state(r->f, i) : NULL;
}

/* -- parameters ----------------------------------------------------------------------------- */

static char *form_decode(const char *s, size_t size) {
        StrBuf b = { 0 };

        for (size_t i = 0; i < size; i++) {
                unsigned c;

                if (s[i] == '+')
                        strbuf_add_char(&b, ' ');
                else if (s[i] == '%' && i + 2 < size && sscanf(s + i + 1, "%2x", &c) == 1) {
                        strbuf_add_char(&b, (char) c);
                        i += 2;
                } else
                        strbuf_add_char(&b, s[i]);
        }
        return strbuf_steal(&b);
}

static bool params_parse(const HttpExchange *x, Params *p) {
        _cleanup_free_ char *body = memdup_str(x->body ? x->body : "", x->body_size);
        _cleanup_strv_free_ char **parts = NULL;

        assert(strv_split(body, "&", &parts) >= 0);
        STRV_FOREACH (part, parts) {
                size_t n = strcspn(*part, "=");
                _cleanup_free_ char *name = form_decode(*part, n), *value = NULL;

                value = (*part)[n] ? form_decode(*part + n + 1, strlen(*part + n + 1)) : strdup("");
                if (strv_contains(p->names, name))
                        return false;
                assert(strv_extend(&p->names, name) >= 0 && strv_extend(&p->values, value) >= 0);
        }
        return true;
}

static const char *param(const Request *r, const char *name) {
        for (size_t i = 0; r->params.names && r->params.names[i]; i++)
                if (streq(r->params.names[i], name))
                        return r->params.values[i];
        return NULL;
}

/* prefix.1, prefix.2, ... Owned. */
static char **param_list(const Request *r, const char *prefix) {
        char **l = NULL;

        for (unsigned n = 1;; n++) {
                _cleanup_free_ char *name = strf("%s.%u", prefix, n);
                const char *value = param(r, name);

                if (!value)
                        return l;
                assert(strv_extend(&l, value) >= 0);
        }
}

/* -- answers -------------------------------------------------------------------------------- */

static usec_t cloud_wall(const FakeEc2 *f) {
        return (usec_t) ((int64_t) loop_wall(f->loop) + f->skew_usec);
}

static void reply(Request *r, unsigned status, unsigned retry_after_msec, const char *body) {
        time_t now = (time_t) (cloud_wall(r->f) / USEC_PER_SEC);
        char date[64], msec[16];
        struct tm tm;
        HttpHeader headers[] = {
                { "Content-Type", "text/xml;charset=UTF-8" },
                { "x-amzn-RequestId", REQUEST_ID },
                { "Date", date },
                { "x-amz-retry-after", msec },
        };

        gmtime_r(&now, &tm);
        assert(strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &tm) > 0);
        (void) snprintf(msec, sizeof(msec), "%u", retry_after_msec);
        r->x->ops->reply(r->x, status, headers, retry_after_msec > 0 ? 4 : 3, body, strlen(body));
}

static void add_escaped(StrBuf *b, const char *s) {
        for (; *s; s++)
                if (*s == '<')
                        strbuf_add(b, "&lt;");
                else if (*s == '>')
                        strbuf_add(b, "&gt;");
                else if (*s == '&')
                        strbuf_add(b, "&amp;");
                else
                        strbuf_add_char(b, *s);
}

static void reply_error_full(Request *r, unsigned status, const char *code, const char *message,
                             unsigned retry_after_msec) {
        _cleanup_strbuf_ StrBuf b = { 0 };

        strbuf_add(
                &b,
                r->sts ? "<ErrorResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\n  <Error>\n"
                         "    <Type>Sender</Type>\n"
                       : "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Response><Errors><Error>");
        strbuf_addf(&b, "<Code>%s</Code><Message>", code);
        add_escaped(&b, message);
        strbuf_add(&b, "</Message></Error>");
        strbuf_addf(&b,
                    r->sts ? "\n  <RequestId>%s</RequestId>\n</ErrorResponse>\n"
                           : "</Errors><RequestID>%s</RequestID></Response>",
                    REQUEST_ID);
        reply(r, status, retry_after_msec, strbuf_str(&b));
}

static void reply_error(Request *r, unsigned status, const char *code, const char *message) {
        reply_error_full(r, status, code, message, 0);
}

static void open_reply(StrBuf *b, const char *action) {
        strbuf_addf(b,
                    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                    "<%sResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">\n"
                    "    <requestId>" REQUEST_ID "</requestId>\n",
                    action);
}

static void add_state(StrBuf *b, const char *element, const char *state) {
        strbuf_addf(b, "<%s><code>%u</code><name>%s</name></%s>", element, states[state_index(state)].code,
                    state, element);
}

/* -- DescribeInstances ---------------------------------------------------------------------- */

static void add_reservation(const Request *r, StrBuf *b, const FakeInstance *i, const char *state) {
        strbuf_addf(
                b,
                "        <item>\n            <reservationId>r-0123456789abcdef0</reservationId>\n"
                "            <ownerId>%s</ownerId>\n            <groupSet/>\n            <instancesSet>\n"
                "                <item>\n                    <instanceId>%s</instanceId>\n"
                "                    <imageId>ami-0abcdef1234567890</imageId>\n                    ",
                r->f->account, i->id);
        add_state(b, "instanceState", state);
        strbuf_addf(
                b,
                "\n                    <privateDnsName>ip-10-0-0-1.ec2.internal</privateDnsName>\n"
                "                    <dnsName/>\n                    <reason>%s</reason>\n"
                "                    <amiLaunchIndex>0</amiLaunchIndex>\n                    "
                "<productCodes/>\n"
                "                    <instanceType>m5.large</instanceType>\n"
                "                    <launchTime>2026-01-01T00:00:00.000Z</launchTime>\n"
                "                    <placement>\n                        "
                "<availabilityZone>%s</availabilityZone>\n"
                "                        <groupName/>\n                        <tenancy>default</tenancy>\n"
                "                    </placement>\n",
                i->terminated_usec == USEC_INFINITY ? "" : "User initiated (2026-01-01 00:00:00 GMT)",
                i->zone);
        if (i->terminated_usec != USEC_INFINITY)
                strbuf_add(b, "                    <stateReason><code>Client.UserInitiatedShutdown</code>"
                              "<message>Client.UserInitiatedShutdown: User &amp; "
                              "friends</message></stateReason>\n");
        strbuf_add(b, "                    <tagSet>\n                        <item><key>Name</key><value>a "
                      "&lt;node&gt;</value>"
                      "</item>\n                    </tagSet>\n                </item>\n            "
                      "</instancesSet>\n"
                      "        </item>\n");
}

static bool is_instance_id(const char *s) {
        return startswith(s, "i-") && strlen(s) > 2 && strspn(s + 2, "0123456789abcdef") == strlen(s + 2);
}

/* False: the error was sent. One unknown id fails the whole request. */
static bool check_ids(Request *r, char *const *ids) {
        _cleanup_free_ char *message = NULL;

        STRV_FOREACH (id, ids) {
                if (!is_instance_id(*id)) {
                        message = strf("Invalid id: \"%s\"", *id);
                        reply_error(r, 400, "InvalidInstanceID.Malformed", message);
                        return false;
                }
                if (!visible_state(r, find(r->f, *id))) {
                        message = strf("The instance ID '%s' does not exist", *id);
                        reply_error(r, 400, "InvalidInstanceID.NotFound", message);
                        return false;
                }
        }
        return true;
}

typedef struct Selection {
        char **ids;    /* by InstanceId.N */
        char **filter; /* values of the filter instance-id */
        uint64_t first, max;
} Selection;

/* False: the error was sent. */
static bool select_instances(Request *r, Selection *s) {
        const char *max = param(r, "MaxResults"), *token = param(r, "NextToken"),
                   *filter = param(r, "Filter.1.Name");

        s->ids = param_list(r, "InstanceId");
        s->filter = param_list(r, "Filter.1.Value");
        s->max = r->f->page_size > 0 ? r->f->page_size : UINT64_MAX;
        r->f->last_n_ids = strv_length(s->ids) + strv_length(s->filter);
        if (filter && (!streq(filter, "instance-id") || param(r, "Filter.2.Name"))) {
                reply_error(r, 400, "InvalidParameterValue", "The filter is invalid");
                return false;
        }
        if (strv_length(s->filter) > FILTER_VALUES_MAX) {
                reply_error(r, 400, "FilterLimitExceeded",
                            "The maximum number of filter values specified on a single call is 200");
                return false;
        }
        if (max && s->ids) {
                reply_error(r, 400, "InvalidParameterCombination",
                            "The parameter instancesSet cannot be used with the parameter maxResults");
                return false;
        }
        if (max && parse_uint64_range(max, 5, 1000, &s->max) < 0) {
                reply_error(r, 400, "InvalidParameterValue",
                            "Value out of range for parameter maxResults. Expecting 5 - 1000");
                return false;
        }
        if (token && (!startswith(token, "page+") || parse_uint64(token + 5, &s->first) < 0)) {
                reply_error(r, 400, "InvalidParameterValue", "Unable to parse pagination token");
                return false;
        }
        return check_ids(r, s->ids);
}

static void describe_instances(Request *r) {
        Selection s = { 0 };
        _cleanup_strbuf_ StrBuf b = { 0 };
        uint64_t n = 0;
        bool more = false;

        if (select_instances(r, &s)) {
                open_reply(&b, "DescribeInstances");
                strbuf_add(&b, "    <reservationSet>\n");
                LIST_FOREACH (i, &r->f->instances, FakeInstance, instances) {
                        const char *state = visible_state(r, i);

                        if (!state || (s.ids && !strv_contains(s.ids, i->id)))
                                continue;
                        if (param(r, "Filter.1.Name") && !strv_contains(s.filter, i->id))
                                continue;
                        n++;
                        if (n > s.first && n <= usec_add(s.first, s.max))
                                add_reservation(r, &b, i, state);
                        else if (n > s.first)
                                more = true;
                }
                strbuf_add(&b, "    </reservationSet>\n");
                if (more)
                        strbuf_addf(&b, "    <nextToken>page+%" PRIu64 "</nextToken>\n", s.first + s.max);
                strbuf_add(&b, "</DescribeInstancesResponse>");
                reply(r, 200, 0, strbuf_str(&b));
        }
        strv_free(s.ids);
        strv_free(s.filter);
}

/* -- TerminateInstances --------------------------------------------------------------------- */

static bool zone_has_protected(Request *r, char *const *ids, const char *zone) {
        STRV_FOREACH (id, ids) {
                const FakeInstance *i = find(r->f, *id);

                if (i->protected && streq(i->zone, zone))
                        return true;
        }
        return false;
}

/* Obeys for all in zones where none is protected; returns the id of the first protected one, or NULL. */
static const char *terminate_all(Request *r, char *const *ids, StrBuf *b) {
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
                if (i->terminated_usec == USEC_INFINITY)
                        i->terminated_usec = usec_add(loop_now(r->f->loop), r->f->shutting_down_usec);
                strbuf_addf(b, "        <item><instanceId>%s</instanceId>", i->id);
                add_state(b, "currentState", instance_state(r->f, i));
                add_state(b, "previousState", before);
                strbuf_add(b, "</item>\n");
        }
        return protected_id;
}

static void terminate_instances(Request *r) {
        _cleanup_strv_free_ char **ids = param_list(r, "InstanceId");
        _cleanup_free_ char *message = NULL;
        _cleanup_strbuf_ StrBuf b = { 0 };
        const char *protected_id;

        if (strv_length(ids) == 0 || strv_length(ids) > IDS_MAX)
                return reply_error(r, 400, "MissingParameter",
                                   "The request must contain the parameter InstanceId");
        if (!check_ids(r, ids))
                return;
        if (streq_ptr(param(r, "DryRun"), "true"))
                return reply_error(r, 412, "DryRunOperation",
                                   "Request would have succeeded, but DryRun flag is set.");

        open_reply(&b, "TerminateInstances");
        strbuf_add(&b, "    <instancesSet>\n");
        protected_id = terminate_all(r, ids, &b);
        if (protected_id) {
                message = strf("The instance '%s' may not be terminated. Modify its 'disableApiTermination' "
                               "instance "
                               "attribute and try again.",
                               protected_id);
                return reply_error(r, 400, "OperationNotPermitted", message);
        }
        strbuf_add(&b, "    </instancesSet>\n</TerminateInstancesResponse>");
        reply(r, 200, 0, strbuf_str(&b));
}

static void get_caller_identity(Request *r) {
        _cleanup_free_ char *body = NULL;

        body = strf(
                "<GetCallerIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\n"
                "  <GetCallerIdentityResult>\n    <Arn>arn:aws:iam::%s:user/vesper</Arn>\n"
                "    <UserId>AIDAEXAMPLE</UserId>\n    <Account>%s</Account>\n  </GetCallerIdentityResult>\n"
                "  <ResponseMetadata>\n    <RequestId>" REQUEST_ID "</RequestId>\n  </ResponseMetadata>\n"
                "</GetCallerIdentityResponse>\n",
                r->f->account, r->f->account);
        reply(r, 200, 0, body);
}

/* -- a request ------------------------------------------------------------------------------ */

typedef struct Action {
        const char *name;
        bool sts;
        const char *version;
        const char *params[5]; /* prefixes of those that are known besides Action and Version */
        void (*act)(Request *r);
} Action;

static const Action actions[] = {
        { "DescribeInstances",
          false,
          "2016-11-15",
          { "InstanceId.", "Filter.", "MaxResults", "NextToken", "DryRun" },
          describe_instances },
        { "TerminateInstances", false, "2016-11-15", { "InstanceId.", "DryRun" }, terminate_instances },
        { "GetCallerIdentity", true, "2011-06-15", { NULL }, get_caller_identity },
};

static const Action *find_action(const Request *r) {
        const char *name = param(r, "Action");

        for (size_t i = 0; i < ELEMENTSOF(actions); i++)
                if (streq_ptr(name, actions[i].name) && actions[i].sts == r->sts)
                        return &actions[i];
        return NULL;
}

static const char *unknown_param(const Request *r, const Action *a) {
        STRV_FOREACH (name, r->params.names) {
                bool known = streq(*name, "Action") || streq(*name, "Version");

                for (size_t i = 0; i < ELEMENTSOF(a->params) && a->params[i]; i++)
                        known = known || startswith(*name, a->params[i]);
                if (!known)
                        return *name;
        }
        return NULL;
}

/* False: refused, and the error was sent. */
static bool authenticate(Request *r) {
        FakeEc2 *f = r->f;
        FakeAwsKeys keys = { f->access_key_id, f->secret, f->session_token };
        FakeAwsRefusal refusal = { 0 };
        FakeAwsScope scope = { 0 };
        bool scoped = fake_aws_scope(r->x, &scope);

        r->sts = scoped && streq(scope.service, "sts");
        (void) snprintf(r->region, sizeof(r->region), "%s", f->region ? f->region : scope.region);
        if (!f->access_key_id)
                return true;

        if (scoped && f->region && !streq(scope.region, f->region)) {
                refusal = (FakeAwsRefusal){ .status = 403, .code = "SignatureDoesNotMatch" };
                (void) snprintf(refusal.message, sizeof(refusal.message),
                                "Credential should be scoped to a valid region, not '%s'. ", scope.region);
        } else if (scoped && !r->sts && !streq(scope.service, "ec2")) {
                refusal = (FakeAwsRefusal){ .status = 403, .code = "SignatureDoesNotMatch" };
                (void) snprintf(refusal.message, sizeof(refusal.message),
                                "Credential should be scoped to correct service: 'ec2'. ");
        } else if (fake_aws_verify(r->x, &keys, cloud_wall(f), MAX_SKEW_USEC, &refusal)) {
                if (!f->expired_code)
                        return true;
                refusal = (FakeAwsRefusal){ .status = 400, .code = f->expired_code };
                (void) snprintf(refusal.message, sizeof(refusal.message),
                                "The security token included in the request is expired");
        }
        f->n_refused++;
        reply_error(r, refusal.status, refusal.code, refusal.message);
        return false;
}

/* True: a fault was played. */
static bool play_fault(Request *r) {
        Fault *t = &r->f->fault;

        if (t->n == 0)
                return false;
        t->n--;
        if (t->body)
                reply(r, t->status, 0, t->body);
        else
                reply_error_full(r, t->status, t->code, t->message, t->retry_after_msec);
        return true;
}

static void count(FakeEc2 *f, const char *action) {
        size_t *n = hashmap_get(f->counts, action);

        if (!n) {
                n = new0(size_t, 1);
                assert(n && hashmap_put(f->counts, action, n) >= 0);
        }
        (*n)++;
}

static void handle(Request *r) {
        const char *type = http_header_find(r->x->headers, r->x->n_headers, "Content-Type");
        const Action *a;

        if (r->x->method != HTTP_POST || !streq(r->x->path, "/") || *r->x->query || !type ||
            !startswith(type, "application/x-www-form-urlencoded"))
                return reply_error(r, 400, "InvalidRequest", "Only POST / with a form is played here.");
        if (!authenticate(r))
                return;
        if (!params_parse(r->x, &r->params))
                return reply_error(r, 400, "MalformedQueryString", "A parameter was given twice.");
        a = find_action(r);
        if (!a || !streq_ptr(param(r, "Version"), a->version))
                return reply_error(r, 400, "InvalidAction",
                                   "The action is not valid for this web service and version.");
        count(r->f, a->name);
        if (play_fault(r))
                return;
        if (unknown_param(r, a))
                return reply_error(r, 400, "UnknownParameter", unknown_param(r, a));
        a->act(r);
}

void fake_ec2_handle(HttpExchange *x, void *fake_ec2) {
        Request r = { .f = fake_ec2, .x = x };

        handle(&r);
        strv_free(r.params.names);
        strv_free(r.params.values);
}

/* -- what tests do -------------------------------------------------------------------------- */

static char *copy(const char *s) {
        char *t = s ? strdup(s) : NULL;

        assert(t || !s);
        return t;
}

FakeEc2 *fake_ec2_new(const FakeEc2Options *o) {
        FakeEc2 *f = new0(FakeEc2, 1);

        assert(f && o->loop && (o->access_key_id || o->region));
        f->loop = o->loop;
        f->region = copy(o->region);
        f->account = copy(o->account ? o->account : ACCOUNT);
        f->access_key_id = copy(o->access_key_id);
        f->secret = copy(o->secret_access_key);
        f->session_token = copy(o->session_token);
        f->shutting_down_usec = o->shutting_down_usec;
        f->visible_usec = o->visible_usec > 0 ? o->visible_usec : USEC_PER_HOUR;
        assert(hashmap_new(0, &f->counts) >= 0);
        return f;
}

FakeEc2 *fake_ec2_free(FakeEc2 *f) {
        if (!f)
                return NULL;
        LIST_FOREACH (i, &f->instances, FakeInstance, instances) {
                free(i->id);
                free(i->zone);
                free(i);
        }
        hashmap_free_with(f->counts, mfree);
        fault_clear(&f->fault);
        free(f->region);
        free(f->account);
        free(f->access_key_id);
        free(f->secret);
        free(f->session_token);
        free(f->expired_code);
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

static FakeInstance *must_find(const FakeEc2 *f, const char *id) {
        FakeInstance *i = find(f, id);

        assert(i);
        return i;
}

void fake_ec2_set_state(FakeEc2 *f, const char *id, const char *state) {
        FakeInstance *i = must_find(f, id);

        if (streq(state, "terminated")) {
                i->terminated_usec = loop_now(f->loop);
                return;
        }
        assert(!streq(state, "shutting-down"));
        i->terminated_usec = USEC_INFINITY;
        i->state = states[state_index(state)].name;
}

void fake_ec2_protect(FakeEc2 *f, const char *id, bool protect) {
        must_find(f, id)->protected = protect;
}

void fake_ec2_forget(FakeEc2 *f, const char *id) {
        FakeInstance *i = must_find(f, id);

        list_remove(&f->instances, &i->instances);
        free(i->id);
        free(i->zone);
        free(i);
}

const char *fake_ec2_state(FakeEc2 *f, const char *id) {
        const FakeInstance *i = find(f, id);

        return i ? instance_state(f, i) : NULL;
}

size_t fake_ec2_n_alive(FakeEc2 *f) {
        size_t n = 0;

        LIST_FOREACH (i, &f->instances, FakeInstance, instances)
                n += i->terminated_usec == USEC_INFINITY;
        return n;
}

void fake_ec2_throttle(FakeEc2 *f, unsigned n, unsigned retry_after_msec) {
        fake_ec2_fail(f, n, 503, "RequestLimitExceeded", "Request limit exceeded.");
        f->fault.retry_after_msec = retry_after_msec;
}

void fake_ec2_fail(FakeEc2 *f, unsigned n, unsigned status, const char *code, const char *message) {
        fault_clear(&f->fault);
        f->fault = (Fault){ .n = n, .status = status, .code = copy(code), .message = copy(message) };
}

void fake_ec2_garble(FakeEc2 *f, unsigned n, const char *body) {
        fault_clear(&f->fault);
        f->fault = (Fault){ .n = n, .status = 200, .body = copy(body) };
}

void fake_ec2_set_keys(FakeEc2 *f, const char *access_key_id, const char *secret,
                       const char *session_token) {
        assert(free_and_strdup(&f->access_key_id, access_key_id) >= 0);
        assert(free_and_strdup(&f->secret, secret) >= 0);
        assert(free_and_strdup(&f->session_token, session_token) >= 0);
        f->expired_code = mfree(f->expired_code);
}

void fake_ec2_expire_keys(FakeEc2 *f, const char *code) {
        assert(free_and_strdup(&f->expired_code, code) >= 0);
}

void fake_ec2_set_skew(FakeEc2 *f, int64_t skew_usec) {
        f->skew_usec = skew_usec;
}

void fake_ec2_set_page_size(FakeEc2 *f, size_t n) {
        f->page_size = n;
}

size_t fake_ec2_n_requests(const FakeEc2 *f, const char *action) {
        const size_t *n = hashmap_get(f->counts, action);

        return n ? *n : 0;
}

size_t fake_ec2_n_refused(const FakeEc2 *f) {
        return f->n_refused;
}

size_t fake_ec2_n_terminations(const FakeEc2 *f, const char *id) {
        const FakeInstance *i = find(f, id);

        return i ? i->n_terminations : 0;
}

size_t fake_ec2_last_n_ids(const FakeEc2 *f) {
        return f->last_n_ids;
}
