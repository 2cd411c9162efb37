/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-asg.h"

#include <inttypes.h>
#include <stdio.h>

#include "fake-json.h"
#include "strv.h"

/*
 *      Pending --hooks--> Pending:Wait --> InService --> Terminating:Wait --> Terminating:Proceed --> (no
 * member) |                         (or Terminating, without hooks)
 *                              +-- abandoned ----------------^
 */

/* "Overall limit min(48 h, 100 x HeartbeatTimeout)" */
#define HOOK_LIMIT_USEC (48 * USEC_PER_HOUR)
#define HOOK_LIMIT_HEARTBEATS 100u

AsgGroup *asg_find_group(const FakeAutoscaling *f, const char *name) {
        LIST_FOREACH (g, &f->groups, AsgGroup, groups)
                if (streq_ptr(g->name, name))
                        return g;
        return NULL;
}

AsgMember *asg_find_member(const FakeAutoscaling *f, const char *instance) {
        LIST_FOREACH (g, &f->groups, AsgGroup, groups)
                LIST_FOREACH (m, &g->members, AsgMember, members)
                        if (streq_ptr(m->id, instance))
                                return m;
        return NULL;
}

bool asg_is_ending(const AsgMember *m) {
        return startswith(m->state, "Terminat") || startswith(m->state, "Warmed:Terminat");
}

bool asg_is_active(const AsgMember *m) {
        return startswith(m->state, "Pending") || streq(m->state, "InService");
}

size_t asg_n_active(const AsgGroup *g) {
        size_t n = 0;

        LIST_FOREACH (m, &g->members, AsgMember, members)
                n += asg_is_active(m);
        return n;
}

void asg_new_id(FakeAutoscaling *f, char ret[ASG_TOKEN_MAX]) {
        (void) snprintf(ret, ASG_TOKEN_MAX, "71514b9d-6a40-4b26-8523-%012" PRIx64,
                        ++f->n_ids & UINT64_C(0xffffffffffff));
}

static void tell(FakeAutoscaling *f, FakeAsgEvent event) {
        if (f->on_event)
                f->on_event(&event, f->userdata);
}

/* -- members ------------------------------------------------------------------------------------------- */

AsgMember *asg_add_member(FakeAutoscaling *f, AsgGroup *g, const char *instance, const char *state) {
        AsgMember *m = MUST(new0(AsgMember, 1));

        m->group = g;
        m->id = MUST(strdup(instance));
        m->state = MUST(strdup(state));
        m->in_service_usec = m->check_usec = USEC_INFINITY;
        list_append(&g->members, &m->members);
        fake_ec2_set_group(f->ec2, instance, g->name);
        return m;
}

void asg_set_state(AsgMember *m, const char *state) {
        int r = free_and_strdup(&m->state, state);

        assert(r >= 0);
}

static void action_free(AsgMember *m, AsgAction *a) {
        list_remove(&m->actions, &a->actions);
        free(a);
}

static void member_free(AsgMember *m) {
        LIST_FOREACH (a, &m->actions, AsgAction, actions)
                action_free(m, a);
        list_remove(&m->group->members, &m->members);
        free(m->id);
        free(m->state);
        free(m);
}

void asg_remove_member(FakeAutoscaling *f, AsgMember *m) {
        fake_ec2_set_group(f->ec2, m->id, NULL);
        member_free(m);
}

void asg_group_free(FakeAutoscaling *f, AsgGroup *g) {
        LIST_FOREACH (l, &g->launches, AsgLaunch, launches) {
                list_remove(&g->launches, &l->launches);
                free(l->token);
                free(l->zone);
                strv_free(l->ids);
                free(l);
        }
        LIST_FOREACH (m, &g->members, AsgMember, members)
                member_free(m);
        LIST_FOREACH (h, &g->hooks, AsgHook, hooks) {
                free(h->name);
                free(h);
        }
        list_remove(&f->groups, &g->groups);
        strv_free(g->zones);
        free(g->name);
        free(g);
}

/* -- hooks --------------------------------------------------------------------------------------------- */

/* All hooks of that kind take hold at once; false if there are none. */
static bool open_actions(FakeAutoscaling *f, AsgMember *m, bool launching) {
        usec_t now = loop_now(f->front.loop);
        bool any = false;

        LIST_FOREACH (h, &m->group->hooks, AsgHook, hooks) {
                AsgAction *a;

                if (h->launching != launching)
                        continue;
                a = MUST(new0(AsgAction, 1));
                a->hook = h;
                a->deadline_usec = usec_add(now, h->heartbeat_usec);
                a->limit_usec =
                        usec_add(now, MIN(HOOK_LIMIT_USEC, HOOK_LIMIT_HEARTBEATS * h->heartbeat_usec));
                asg_new_id(f, a->token);
                list_append(&m->actions, &a->actions);
                any = true;
        }
        if (any)
                asg_set_state(m, launching ? "Pending:Wait" : "Terminating:Wait");
        LIST_FOREACH (a, &m->actions, AsgAction, actions)
                tell(f, (FakeAsgEvent) { .kind = FAKE_ASG_LIFECYCLE_ACTION,
                                         .group = m->group->name,
                                         .instance = m->id,
                                         .hook = a->hook->name,
                                         .token = a->token,
                                         .launching = launching });
        return any;
}

static void end_now(FakeAutoscaling *f, AsgMember *m, const char *state) {
        LIST_FOREACH (a, &m->actions, AsgAction, actions)
                action_free(m, a);
        asg_set_state(m, state);
        m->check_usec = USEC_INFINITY;
        if (fake_ec2_state(f->ec2, m->id))
                fake_ec2_terminate(f->ec2, m->id);
        tell(f, (FakeAsgEvent) { .kind = FAKE_ASG_TERMINATED, .group = m->group->name, .instance = m->id });
}

void asg_terminate(FakeAutoscaling *f, AsgMember *m) {
        if (asg_is_ending(m))
                return;
        LIST_FOREACH (a, &m->actions, AsgAction, actions)
                action_free(m, a);
        m->group->last_activity_usec = loop_now(f->front.loop);
        m->check_usec = m->in_service_usec = USEC_INFINITY;
        if (!open_actions(f, m, false))
                end_now(f, m, "Terminating");
}

static void in_service(FakeAutoscaling *f, AsgMember *m) {
        asg_set_state(m, "InService");
        asg_on_ec2_change(m->id, f);
        tell(f, (FakeAsgEvent) { .kind = FAKE_ASG_LAUNCHED, .group = m->group->name, .instance = m->id });
}

/* A terminating instance ends either way; abandoning only skips the other hooks. */
void asg_complete(FakeAutoscaling *f, AsgMember *m, AsgAction *a, bool abandon) {
        bool launching = a->hook->launching;

        action_free(m, a);
        if (m->actions.size > 0 && !abandon)
                return;
        if (!launching)
                end_now(f, m, "Terminating:Proceed");
        else if (abandon)
                asg_terminate(f, m);
        else
                in_service(f, m);
}

static bool is_suspended(const AsgGroup *g, AsgProcess p) {
        return g->suspended & (1u << p);
}

/* -- time ---------------------------------------------------------------------------------------------- */

static bool has_ended(FakeAutoscaling *f, const AsgMember *m) {
        const char *state = fake_ec2_state(f->ec2, m->id);

        return !state || streq(state, "terminated");
}

void asg_on_ec2_change(const char *instance, void *fake_autoscaling) {
        FakeAutoscaling *f = fake_autoscaling;
        AsgMember *m = asg_find_member(f, instance);
        const char *state = fake_ec2_state(f->ec2, instance);
        bool sound = state && (streq(state, "running") || streq(state, "pending"));

        if (!m || !streq(m->state, "InService"))
                return;
        if (sound)
                m->check_usec = USEC_INFINITY;
        else
                m->check_usec = MIN(m->check_usec, usec_add(loop_now(f->front.loop), f->health_check_usec));
        timer_arm_earlier(f->timer, m->check_usec);
}

static usec_t action_due(const AsgAction *a) {
        return MIN(a->deadline_usec, a->limit_usec);
}

static void run_actions(FakeAutoscaling *f, AsgMember *m, usec_t now) {
        AsgAction *due = NULL;

        do {
                due = NULL;
                LIST_FOREACH (a, &m->actions, AsgAction, actions)
                        if (action_due(a) <= now)
                                due = a;
                if (due)
                        asg_complete(f, m, due, due->hook->abandon);
        } while (due);
}

static void run_member(FakeAutoscaling *f, AsgMember *m, usec_t now) {
        run_actions(f, m, now);
        if (m->in_service_usec <= now) {
                m->in_service_usec = USEC_INFINITY;
                if (streq_ptr(fake_ec2_state(f->ec2, m->id), "pending"))
                        fake_ec2_set_state(f->ec2, m->id, "running");
                if (!open_actions(f, m, true))
                        in_service(f, m);
        }
        if (m->check_usec <= now && (is_suspended(m->group, ASG_PROCESS_HEALTH_CHECK) || is_suspended(m->group, ASG_PROCESS_REPLACE_UNHEALTHY)))
                m->check_usec = usec_add(now, f->health_check_usec);
        else if (m->check_usec <= now)
                asg_terminate(f, m);
        if (asg_is_ending(m) && m->actions.size == 0 && has_ended(f, m))
                member_free(m);
}

static size_t n_in_zone(FakeAutoscaling *f, const AsgGroup *g, const char *zone) {
        size_t n = 0;

        LIST_FOREACH (m, &g->members, AsgMember, members)
                n += asg_is_active(m) && streq_ptr(fake_ec2_zone(f->ec2, m->id), zone);
        return n;
}

static const char *emptiest_zone(FakeAutoscaling *f, const AsgGroup *g) {
        const char *best = g->zones[0];

        STRV_FOREACH (zone, g->zones)
                if (n_in_zone(f, g, *zone) < n_in_zone(f, g, best))
                        best = *zone;
        return best;
}

static const char *fullest_zone(FakeAutoscaling *f, const AsgGroup *g) {
        const char *best = g->zones[0];

        STRV_FOREACH (zone, g->zones)
                if (n_in_zone(f, g, *zone) > n_in_zone(f, g, best))
                        best = *zone;
        return best;
}

/* The group's own choice: the oldest in the fullest zone that is not protected. NULL: none. */
static AsgMember *victim(FakeAutoscaling *f, const AsgGroup *g) {
        const char *zone = fullest_zone(f, g);

        LIST_FOREACH (m, &g->members, AsgMember, members)
                if (asg_is_active(m) && !m->protected && streq_ptr(fake_ec2_zone(f->ec2, m->id), zone))
                        return m;
        LIST_FOREACH (m, &g->members, AsgMember, members)
                if (asg_is_active(m) && !m->protected)
                        return m;
        return NULL;
}

static const char *launch_in(FakeAutoscaling *f, AsgGroup *g, const char *zone, usec_t now) {
        const char *id = fake_ec2_run(f->ec2, NULL, zone);
        AsgMember *m = asg_add_member(f, g, id, "Pending");

        fake_ec2_set_state(f->ec2, id, "pending");
        m->in_service_usec = usec_add(now, f->launch_usec);
        g->last_activity_usec = now;
        return id;
}

static void launch(FakeAutoscaling *f, AsgGroup *g, usec_t now) {
        (void) launch_in(f, g, emptiest_zone(f, g), now);
}

const AsgLaunch *asg_launch(FakeAutoscaling *f, AsgGroup *g, const char *zone, unsigned n, const char *token) {
        AsgLaunch *l = MUST(new0(AsgLaunch, 1));

        l->token = MUST(strdup(token));
        l->zone = MUST(strdup(zone));
        l->n = n;
        g->desired += n;
        for (unsigned i = 0; i < n; i++) {
                int r = strv_extend(&l->ids, launch_in(f, g, zone, loop_now(f->front.loop)));

                assert(r >= 0);
        }
        list_append(&g->launches, &l->launches);
        return l;
}

static void rebalance(FakeAutoscaling *f, AsgGroup *g, usec_t now) {
        size_t most = n_in_zone(f, g, fullest_zone(f, g)), least = n_in_zone(f, g, emptiest_zone(f, g));
        AsgMember *m = g->rebalances && !is_suspended(g, ASG_PROCESS_AZ_REBALANCE) && most > least + 1 ? victim(f, g) : NULL;

        if (!m)
                return;
        launch(f, g, now);
        asg_terminate(f, m);
}

static void run_group(FakeAutoscaling *f, AsgGroup *g, usec_t now) {
        size_t active = asg_n_active(g);

        while (active > g->desired && !is_suspended(g, ASG_PROCESS_TERMINATE)) {
                AsgMember *m = victim(f, g);

                if (!m)
                        break;
                asg_terminate(f, m);
                active--;
        }
        if (active >= g->desired) {
                g->launch_usec = USEC_INFINITY;
                rebalance(f, g, now);
                return;
        }
        if (g->launch_usec == USEC_INFINITY)
                g->launch_usec = usec_add(now, f->replace_usec);
        if (g->launch_usec > now)
                return;
        if (is_suspended(g, ASG_PROCESS_LAUNCH)) {
                g->launch_usec = usec_add(now, f->replace_usec);
                return;
        }
        for (; active < g->desired; active++)
                launch(f, g, now);
        g->launch_usec = USEC_INFINITY;
}

static usec_t next_due(const FakeAutoscaling *f) {
        usec_t due = USEC_INFINITY;

        LIST_FOREACH (g, &f->groups, AsgGroup, groups) {
                due = MIN(due, g->launch_usec);
                LIST_FOREACH (m, &g->members, AsgMember, members) {
                        due = MIN(due, m->in_service_usec);
                        due = MIN(due, m->check_usec);
                        LIST_FOREACH (a, &m->actions, AsgAction, actions)
                                due = MIN(due, action_due(a));
                }
        }
        return due;
}

void asg_run(FakeAutoscaling *f) {
        usec_t now = loop_now(f->front.loop);

        LIST_FOREACH (g, &f->groups, AsgGroup, groups) {
                LIST_FOREACH (m, &g->members, AsgMember, members)
                        run_member(f, m, now);
                run_group(f, g, now);
        }
        timer_arm(f->timer, next_due(f));
}
