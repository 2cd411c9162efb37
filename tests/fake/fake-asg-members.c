/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-asg-request.h"

#include "parse-util.h"
#include "strv.h"

#define IDS_MAX 20u
#define PROTECT_MAX 50u
#define LAUNCH_MAX 10u
#define CLIENT_TOKEN_MAX 64u

const char *const asg_process_names[_ASG_PROCESS_MAX] = {
        [ASG_PROCESS_LAUNCH] = "Launch",
        [ASG_PROCESS_TERMINATE] = "Terminate",
        [ASG_PROCESS_ADD_TO_LOAD_BALANCER] = "AddToLoadBalancer",
        [ASG_PROCESS_ALARM_NOTIFICATION] = "AlarmNotification",
        [ASG_PROCESS_AZ_REBALANCE] = "AZRebalance",
        [ASG_PROCESS_HEALTH_CHECK] = "HealthCheck",
        [ASG_PROCESS_INSTANCE_REFRESH] = "InstanceRefresh",
        [ASG_PROCESS_REPLACE_UNHEALTHY] = "ReplaceUnhealthy",
        [ASG_PROCESS_SCHEDULED_ACTIONS] = "ScheduledActions",
};

/* -- members that are named ---------------------------------------------------------------------------- */

/* All of this group and in that state, or the error was sent; NULL then. state NULL: InService or Standby. */
static char **take_members(AsgRequest *r, const AsgGroup *g, size_t max, const char *state) {
        char **ids = fake_query_list(&r->params, "InstanceIds.member");

        if (strv_length(ids) == 0 || strv_length(ids) > max) {
                asg_reply_invalid(r, "The number of instance ids must be between 1 and %zu", max);
                return strv_free(ids);
        }
        STRV_FOREACH (id, ids) {
                const AsgMember *m = asg_find_member(r->f, *id);

                if (!m || m->group != g) {
                        asg_reply_invalid(r, "The instance %s is not part of Auto Scaling group %s.", *id, g->name);
                        return strv_free(ids);
                }
                if (state ? !streq(m->state, state) : !streq(m->state, "InService") && !streq(m->state, "Standby")) {
                        asg_reply_invalid(r, "The instance %s is not in %s.", *id, state ? state : "InService or Standby");
                        return strv_free(ids);
                }
        }
        return ids;
}

/* Each by one, of those that count against it; false: the error was sent. */
static bool may_decrement(AsgRequest *r, const AsgGroup *g, size_t n) {
        if (g->desired >= g->min + n)
                return true;
        asg_reply_invalid(r, "AutoScalingGroup %s has min-size=%u, max-size=%u, and desired-size=%u. To place into standby or detach %zu "
                             "instances, please update the AutoScalingGroup sizes appropriately.",
                          g->name, g->min, g->max, g->desired, n);
        return false;
}

static size_t n_counted(AsgRequest *r, char *const *ids) {
        size_t n = 0;

        STRV_FOREACH (id, ids)
                n += asg_is_active(asg_find_member(r->f, *id));
        return n;
}

static void reply_activities(AsgRequest *r, const AsgGroup *g, char *const *ids, const char *what) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        char id[ASG_TOKEN_MAX], now[RFC3339_MAX];

        rfc3339_format(fake_aws_front_wall(&r->f->front), now);
        strbuf_add(&b, "<Activities>");
        STRV_FOREACH (instance, ids) {
                asg_new_id(r->f, id);
                strbuf_addf(&b, "<member><ActivityId>%s</ActivityId>", id);
                fake_xml_add_element(&b, "AutoScalingGroupName", g->name);
                strbuf_addf(&b,
                            "<Description>%s: %s</Description><Cause>At %s instance %s was chosen by a user request.</Cause>"
                            "<StartTime>%s</StartTime><StatusCode>InProgress</StatusCode><Progress>50</Progress><Details>{}</Details></member>",
                            what, *instance, now, *instance, now);
        }
        strbuf_add(&b, "</Activities>");
        asg_reply(r, strbuf_str(&b));
}

/* The instance lives on, of no group. */
void asg_detach_instances(AsgRequest *r) {
        AsgGroup *g = asg_take_group(r);
        _cleanup_strv_free_ char **ids = NULL;
        bool decrement;
        size_t n;

        if (!g || !asg_take_bool(r, "ShouldDecrementDesiredCapacity", true, &decrement))
                return;
        ids = take_members(r, g, IDS_MAX, NULL);
        if (!ids)
                return;
        n = n_counted(r, ids);
        if (decrement && !may_decrement(r, g, n))
                return;
        if (decrement)
                g->desired -= (unsigned) n;
        STRV_FOREACH (id, ids)
                asg_remove_member(r->f, asg_find_member(r->f, *id));
        reply_activities(r, g, ids, "Detaching EC2 instance");
}

/* It stays a member, and counts no more. */
void asg_enter_standby(AsgRequest *r) {
        AsgGroup *g = asg_take_group(r);
        _cleanup_strv_free_ char **ids = NULL;
        bool decrement;

        if (!g || !asg_take_bool(r, "ShouldDecrementDesiredCapacity", true, &decrement))
                return;
        ids = take_members(r, g, IDS_MAX, "InService");
        if (!ids || (decrement && !may_decrement(r, g, strv_length(ids))))
                return;
        if (decrement)
                g->desired -= (unsigned) strv_length(ids);
        STRV_FOREACH (id, ids) {
                AsgMember *m = asg_find_member(r->f, *id);

                m->check_usec = USEC_INFINITY;
                asg_set_state(m, "Standby");
        }
        reply_activities(r, g, ids, "Moving EC2 instance to Standby");
}

/* It counts again: the group wants as many more. */
void asg_exit_standby(AsgRequest *r) {
        AsgGroup *g = asg_take_group(r);
        _cleanup_strv_free_ char **ids = g ? take_members(r, g, IDS_MAX, "Standby") : NULL;

        if (!ids)
                return;
        if (g->desired + strv_length(ids) > g->max)
                return asg_reply_invalid(r, "AutoScalingGroup %s has max-size=%u and desired-size=%u: there is no room for %zu more.", g->name,
                                         g->max, g->desired, strv_length(ids));
        g->desired += (unsigned) strv_length(ids);
        STRV_FOREACH (id, ids) {
                asg_set_state(asg_find_member(r->f, *id), "InService");
                asg_on_ec2_change(*id, r->f);
        }
        reply_activities(r, g, ids, "Moving EC2 instance out of Standby");
}

void asg_set_instance_protection(AsgRequest *r) {
        AsgGroup *g = asg_take_group(r);
        _cleanup_strv_free_ char **ids = NULL;
        bool protect;

        if (!g || !asg_take_bool(r, "ProtectedFromScaleIn", true, &protect))
                return;
        ids = take_members(r, g, PROTECT_MAX, "InService");
        STRV_FOREACH (id, ids)
                asg_find_member(r->f, *id)->protected = protect;
        if (ids)
                asg_reply(r, "");
}

/* -- processes ----------------------------------------------------------------------------------------- */

/* False: the error was sent. None named: all of them. */
static bool take_processes(AsgRequest *r, unsigned *ret) {
        _cleanup_strv_free_ char **names = fake_query_list(&r->params, "ScalingProcesses.member");

        *ret = names ? 0 : (1u << _ASG_PROCESS_MAX) - 1;
        STRV_FOREACH (name, names) {
                AsgProcess i = 0;

                while (i < _ASG_PROCESS_MAX && !streq(asg_process_names[i], *name))
                        i++;
                if (i == _ASG_PROCESS_MAX) {
                        asg_reply_invalid(r, "'%s' is not a valid scaling process.", *name);
                        return false;
                }
                *ret |= 1u << i;
        }
        return true;
}

void asg_suspend_processes(AsgRequest *r) {
        AsgGroup *g = asg_take_group(r);
        unsigned processes;

        if (!g || !take_processes(r, &processes))
                return;
        g->suspended |= processes;
        asg_reply(r, NULL);
}

void asg_resume_processes(AsgRequest *r) {
        AsgGroup *g = asg_take_group(r);
        unsigned processes;

        if (!g || !take_processes(r, &processes))
                return;
        g->suspended &= ~processes;
        asg_reply(r, NULL);
}

/* -- launches ------------------------------------------------------------------------------------------ */

static void reply_launched(AsgRequest *r, const AsgGroup *g, const AsgLaunch *l) {
        _cleanup_strbuf_ StrBuf b = { 0 };

        fake_xml_add_element(&b, "AutoScalingGroupName", g->name);
        fake_xml_add_element(&b, "ClientToken", l->token);
        strbuf_add(&b, "<Instances><member><InstanceType>m5.large</InstanceType><MarketType>on-demand</MarketType>");
        fake_xml_add_element(&b, "AvailabilityZone", l->zone);
        strbuf_add(&b, "<InstanceIds>");
        STRV_FOREACH (id, l->ids)
                fake_xml_add_element(&b, "member", *id);
        strbuf_add(&b, "</InstanceIds></member></Instances><Errors/>");
        asg_reply(r, strbuf_str(&b));
}

/* NULL: the error was sent. */
static const char *take_zone(AsgRequest *r, const AsgGroup *g, char *const *zones) {
        if (strv_length(zones) > 1 || (!zones && strv_length(g->zones) > 1)) {
                asg_reply_invalid(r, "Exactly one Availability Zone must be given for Auto Scaling group %s.", g->name);
                return NULL;
        }
        if (zones && !strv_contains(g->zones, zones[0])) {
                asg_reply_invalid(r, "The Availability Zone %s is not one of Auto Scaling group %s.", zones[0], g->name);
                return NULL;
        }
        return zones ? zones[0] : g->zones[0];
}

static const AsgLaunch *find_launch(const AsgGroup *g, const char *token) {
        LIST_FOREACH (l, &g->launches, AsgLaunch, launches)
                if (streq(l->token, token))
                        return l;
        return NULL;
}

/* At once, and the group wants as many more. The same token again is the same launch, and launches nothing. */
void asg_launch_instances(AsgRequest *r) {
        AsgGroup *g = asg_take_group(r);
        const char *text = g ? asg_take_string(r, "RequestedCapacity") : NULL;
        const char *token = text ? asg_take_string(r, "ClientToken") : NULL, *zone;
        _cleanup_strv_free_ char **zones = fake_query_list(&r->params, "AvailabilityZones.member");
        const AsgLaunch *known;
        uint64_t n;

        if (!token)
                return;
        if (parse_uint64_range(text, 1, LAUNCH_MAX, &n) < 0 || strlen(token) > CLIENT_TOKEN_MAX)
                return asg_reply_invalid(r, "RequestedCapacity must be between 1 and %u, and ClientToken at most %u characters.", LAUNCH_MAX,
                                         CLIENT_TOKEN_MAX);
        zone = take_zone(r, g, zones);
        if (!zone)
                return;
        known = find_launch(g, token);
        if (known && (known->n != n || !streq(known->zone, zone)))
                return asg_reply_mismatch(r, "The ClientToken was used before with other parameters.");
        if (known)
                return reply_launched(r, g, known);
        if (g->suspended & (1u << ASG_PROCESS_LAUNCH))
                return asg_reply_invalid(r, "The process Launch of Auto Scaling group %s is suspended.", g->name);
        if (g->desired + n > g->max)
                return asg_reply_invalid(r, "AutoScalingGroup %s has max-size=%u and desired-size=%u: there is no room for %zu more.", g->name,
                                         g->max, g->desired, (size_t) n);
        reply_launched(r, g, asg_launch(r->f, g, zone, (unsigned) n, token));
}
