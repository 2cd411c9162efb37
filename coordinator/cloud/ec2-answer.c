/* SPDX-License-Identifier: Apache-2.0 */
#include "ec2-answer.h"

#include <strings.h>

#include "string-util.h"
#include "xml-reader.h"

#define REPLY_MAX_BYTES (8u * 1024u * 1024u)
#define INSTANCES_MAX 10000u

/* -- providerID ----------------------------------------------------------------------------- */

static bool is_instance_id(const char *s) {
        size_t n = strlen(s);

        return n > 2 && n <= EC2_NAME_MAX && s[0] == 'i' && s[1] == '-' &&
               strspn(s + 2, "0123456789abcdef") == n - 2;
}

int ec2_provider_id_parse(const char *provider_id, Ec2ProviderId *ret) {
        const char *rest, *slash;
        size_t n;

        assert(provider_id && ret);
        *ret = (Ec2ProviderId){ 0 };
        rest = startswith(provider_id, "aws:///");
        if (rest) {
                slash = strchr(rest, '/');
                n = slash ? (size_t) (slash - rest) : 0;
                if (!slash || n > EC2_NAME_MAX || strspn(rest, "abcdefghijklmnopqrstuvwxyz0123456789-") != n)
                        return -EINVAL;
                memcpy(ret->zone, rest, n);
                rest = slash + 1;
        } else
                rest = provider_id;

        if (!is_instance_id(rest))
                return -EINVAL;
        memcpy(ret->instance_id, rest, strlen(rest));
        return 0;
}

/* -- replies -------------------------------------------------------------------------------- */

static InstanceState state_from_name(const char *name) {
        static const struct {
                const char *name;
                InstanceState state;
        } states[] = {
                { "pending", INSTANCE_PRESENT },           { "running", INSTANCE_PRESENT },
                { "stopping", INSTANCE_PRESENT },          { "stopped", INSTANCE_OFF },    
                { "shutting-down", INSTANCE_TERMINATING }, { "terminated", INSTANCE_GONE },
        };

        for (size_t i = 0; i < ELEMENTSOF(states); i++)
                if (streq_ptr(name, states[i].name))
                        return states[i].state;
        return INSTANCE_UNKNOWN;
}

/* The text of the one child that is wanted; the others are passed over. *ret stays NULL if it is not there.
 */
static int parse_only(XmlReader *x, const char *wanted, char **ret) {
        const char *name;
        int r;

        while ((r = xml_reader_child(x, &name)) > 0) {
                r = streq(name, wanted) ? xml_reader_text(x, ret) : xml_reader_skip(x);
                if (r < 0)
                        return r;
        }
        return r;
}

static void instance_done(Ec2Instance *i) {
        free(i->instance_id);
        free(i->zone);
        free(i->private_dns_name);
        free(i->node_tag);
}

/* An <item> of the tag set: *ret, if it is the Node's. */
static int parse_tag(XmlReader *x, char **ret) {
        _cleanup_free_ char *key = NULL, *value = NULL;
        const char *name;
        int r;

        while ((r = xml_reader_child(x, &name)) > 0) {
                if (streq(name, "key"))
                        r = xml_reader_text(x, &key);
                else if (streq(name, "value"))
                        r = xml_reader_text(x, &value);
                else
                        r = xml_reader_skip(x);
                if (r < 0)
                        return r;
        }
        if (r < 0 || !streq_ptr(key, EC2_NODE_TAG))
                return r;
        if (!value || *ret)
                return -EBADMSG; /* a key is there once, and says something */
        *ret = TAKE_PTR(value);
        return 0;
}

static int parse_tags(XmlReader *x, char **ret) {
        const char *name;
        int r;

        while ((r = xml_reader_child(x, &name)) > 0) {
                r = streq(name, "item") ? parse_tag(x, ret) : xml_reader_skip(x);
                if (r < 0)
                        return r;
        }
        return r;
}

/* An <item> of describe ("instanceState") or terminate ("currentState"). */
static int parse_instance(XmlReader *x, const char *state_name, Ec2Instances *list) {
        _cleanup_free_ char *state = NULL;
        _cleanup_(instance_done) Ec2Instance i = { 0 };
        const char *name;
        int r;

        while ((r = xml_reader_child(x, &name)) > 0) {
                if (streq(name, "instanceId"))
                        r = xml_reader_text(x, &i.instance_id);
                else if (streq(name, state_name))
                        r = parse_only(x, "name", &state);
                else if (streq(name, "placement"))
                        r = parse_only(x, "availabilityZone", &i.zone);
                else if (streq(name, "privateDnsName"))
                        r = xml_reader_text(x, &i.private_dns_name);
                else if (streq(name, "tagSet"))
                        r = parse_tags(x, &i.node_tag);
                else
                        r = xml_reader_skip(x);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;
        if (!i.instance_id || !is_instance_id(i.instance_id) || list->n_items >= INSTANCES_MAX)
                return -EBADMSG;

        r = GREEDY_REALLOC(list->items, list->allocated, list->n_items + 1);
        if (r < 0)
                return r;
        i.state = state_from_name(state);
        list->items[list->n_items++] = i;
        i = (Ec2Instance){ 0 };
        return 0;
}

static int parse_instances_set(XmlReader *x, const char *state_name, Ec2Instances *list) {
        const char *name;
        int r;

        while ((r = xml_reader_child(x, &name)) > 0) {
                r = streq(name, "item") ? parse_instance(x, state_name, list) : xml_reader_skip(x);
                if (r < 0)
                        return r;
        }
        return r;
}

static int parse_reservation(XmlReader *x, Ec2Instances *list) {
        const char *name;
        int r;

        while ((r = xml_reader_child(x, &name)) > 0) {
                r = streq(name, "instancesSet") ? parse_instances_set(x, "instanceState", list)
                                                : xml_reader_skip(x);
                if (r < 0)
                        return r;
        }
        return r;
}

static int parse_reservation_set(XmlReader *x, Ec2Instances *list) {
        const char *name;
        int r;

        while ((r = xml_reader_child(x, &name)) > 0) {
                r = streq(name, "item") ? parse_reservation(x, list) : xml_reader_skip(x);
                if (r < 0)
                        return r;
        }
        return r;
}

/* root, and in it `set`, which must be there: an empty document is no empty set. */
static int parse_reply(const char *data, size_t size, const char *root, const char *set,
                       Ec2Instances *list) {
        bool describe = streq(set, "reservationSet"), seen = false;
        const char *name;
        XmlReader x;
        int r;

        list->next_token = mfree(list->next_token);
        r = xml_reader_open(&x, data, size, REPLY_MAX_BYTES, &name);
        if (r >= 0 && !streq(name, root))
                r = -EBADMSG;
        while (r >= 0 && (r = xml_reader_child(&x, &name)) > 0) {
                if (streq(name, set)) {
                        seen = true;
                        r = describe ? parse_reservation_set(&x, list)
                                     : parse_instances_set(&x, "currentState", list);
                } else if (streq(name, "nextToken"))
                        r = xml_reader_text(&x, &list->next_token);
                else
                        r = xml_reader_skip(&x);
        }
        if (r >= 0)
                r = xml_reader_close(&x);
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        if (list->next_token && !*list->next_token)
                list->next_token = mfree(list->next_token);
        return seen ? 0 : -EBADMSG;
}

int ec2_instances_parse_describe(const char *data, size_t size, Ec2Instances *list) {
        return parse_reply(data, size, "DescribeInstancesResponse", "reservationSet", list);
}

int ec2_instances_parse_terminate(const char *data, size_t size, Ec2Instances *list) {
        return parse_reply(data, size, "TerminateInstancesResponse", "instancesSet", list);
}

int ec2_reboot_parse(const char *data, size_t size) {
        _cleanup_free_ char *text = NULL;
        const char *name;
        XmlReader x;
        int r;

        r = xml_reader_open(&x, data, size, REPLY_MAX_BYTES, &name);
        if (r >= 0 && !streq(name, "RebootInstancesResponse"))
                r = -EBADMSG;
        if (r >= 0)
                r = parse_only(&x, "return", &text);
        if (r >= 0)
                r = xml_reader_close(&x);
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        return !text || strcasecmp(text, "true") == 0 ? 0 : -EBADMSG;
}

void ec2_instances_done(Ec2Instances *list) {
        for (size_t i = 0; i < list->n_items; i++)
                instance_done(&list->items[i]);
        free(list->items);
        free(list->next_token);
        *list = (Ec2Instances){ 0 };
}

const Ec2Instance *ec2_instances_find(const Ec2Instances *list, const char *instance_id) {
        const Ec2Instance *found = NULL;

        for (size_t i = 0; i < list->n_items; i++)
                if (streq(list->items[i].instance_id, instance_id) &&
                    (!found || list->items[i].state < found->state))
                        found = &list->items[i];
        return found;
}

/* -- errors --------------------------------------------------------------------------------- */

Ec2Fault ec2_fault_from(const char *code, unsigned http_status) {
        static const struct {
                const char *code;
                Ec2Fault fault;
        } faults[] = {
                { "InvalidInstanceID.NotFound", EC2_FAULT_NOT_FOUND },
                { "InvalidInstanceID.Malformed", EC2_FAULT_INVALID },
                { "InvalidInstanceID", EC2_FAULT_INVALID },
                { "InvalidInstanceID.NotLinkable", EC2_FAULT_INVALID },
                { "InvalidParameterCombination", EC2_FAULT_INVALID },
                { "IncorrectInstanceState", EC2_FAULT_STATE },
                { "IncorrectState", EC2_FAULT_STATE },
                { "OperationNotPermitted", EC2_FAULT_PROTECTED },
                { "UnauthorizedOperation", EC2_FAULT_DENIED },
                { "AccessDenied", EC2_FAULT_DENIED },
                { "AccessDeniedException", EC2_FAULT_DENIED },
                { "AuthFailure", EC2_FAULT_DENIED },
                { "Blocked", EC2_FAULT_DENIED },
                { "ExpiredToken", EC2_FAULT_DENIED },
                { "ExpiredTokenException", EC2_FAULT_DENIED },
                { "InvalidClientTokenId", EC2_FAULT_DENIED },
                { "InvalidSignatureException", EC2_FAULT_DENIED },
                { "MissingAuthenticationToken", EC2_FAULT_DENIED },
                { "OptInRequired", EC2_FAULT_DENIED },
                { "PendingVerification", EC2_FAULT_DENIED },
                { "RequestExpired", EC2_FAULT_DENIED },
                { "RequestTimeTooSkewed", EC2_FAULT_DENIED },
                { "SignatureDoesNotMatch", EC2_FAULT_DENIED },
                { "BandwidthLimitExceeded", EC2_FAULT_THROTTLED },
                { "EC2ThrottledException", EC2_FAULT_THROTTLED },
                { "PriorRequestNotComplete", EC2_FAULT_THROTTLED },
                { "RequestLimitExceeded", EC2_FAULT_THROTTLED },
                { "RequestThrottled", EC2_FAULT_THROTTLED },
                { "RequestThrottledException", EC2_FAULT_THROTTLED },
                { "SlowDown", EC2_FAULT_THROTTLED },
                { "ThrottledException", EC2_FAULT_THROTTLED },
                { "Throttling", EC2_FAULT_THROTTLED },
                { "ThrottlingException", EC2_FAULT_THROTTLED },
                { "TooManyRequestsException", EC2_FAULT_THROTTLED },
                { "InternalError", EC2_FAULT_PASSING },
                { "InternalFailure", EC2_FAULT_PASSING },
                { "ServiceUnavailable", EC2_FAULT_PASSING },
                { "Unavailable", EC2_FAULT_PASSING },
        };

        for (size_t i = 0; code && i < ELEMENTSOF(faults); i++)
                if (streq(code, faults[i].code))
                        return faults[i].fault;
        if (http_status == 429)
                return EC2_FAULT_THROTTLED;
        if (http_status == 401 || http_status == 403)
                return EC2_FAULT_DENIED;
        return EC2_FAULT_PASSING;
}
