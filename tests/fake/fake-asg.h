/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between fake-asg.c (groups, members and hooks as time goes by) and fake-autoscaling.c (the API). */

#include "fake-autoscaling.h"
#include "list.h"

#define ASG_TOKEN_MAX 37

typedef struct AsgGroup AsgGroup;

typedef struct AsgHook {
        ListNode hooks;
        char *name;
        bool launching, abandon;
        usec_t heartbeat_usec;
} AsgHook;

/* A hook holds a member. */
typedef struct AsgAction {
        ListNode actions;
        AsgHook *hook;
        char token[ASG_TOKEN_MAX];
        usec_t deadline_usec; /* the heartbeat's */
        usec_t limit_usec;    /* whatever heartbeats come */
} AsgAction;

typedef struct AsgMember {
        ListNode members;
        AsgGroup *group;
        char *id, *state;
        bool protected;
        usec_t in_service_usec; /* Pending until then */
        usec_t check_usec;      /* of the health check that will find it ended; USEC_INFINITY: none needed */
        List actions;
} AsgMember;

/* What SuspendProcesses takes from a group; those without machinery here are only remembered. */
typedef enum AsgProcess {
        ASG_PROCESS_LAUNCH,
        ASG_PROCESS_TERMINATE,
        ASG_PROCESS_ADD_TO_LOAD_BALANCER,
        ASG_PROCESS_ALARM_NOTIFICATION,
        ASG_PROCESS_AZ_REBALANCE,
        ASG_PROCESS_HEALTH_CHECK,
        ASG_PROCESS_INSTANCE_REFRESH,
        ASG_PROCESS_REPLACE_UNHEALTHY,
        ASG_PROCESS_SCHEDULED_ACTIONS,
        _ASG_PROCESS_MAX,
} AsgProcess;

extern const char *const asg_process_names[_ASG_PROCESS_MAX];

/* Of LaunchInstances, by its ClientToken. */
typedef struct AsgLaunch {
        ListNode launches;
        char *token, *zone, **ids;
        unsigned n;
} AsgLaunch;

struct AsgGroup {
        ListNode groups;
        char *name;
        char **zones;
        unsigned min, desired, max;
        usec_t cooldown_usec, last_activity_usec, launch_usec, created_wall_usec;
        bool rebalances;
        unsigned suspended; /* bits of AsgProcess */
        List hooks, members, launches;
};

struct FakeAutoscaling {
        FakeAwsFront front;
        FakeEc2 *ec2;
        FakeEc2Watch watch;
        usec_t health_check_usec, replace_usec, launch_usec;
        void (*on_event)(const FakeAsgEvent *event, void *userdata);
        void *userdata;
        Timer *timer;
        uint64_t n_ids;
        List groups;
};

AsgGroup *asg_find_group(const FakeAutoscaling *f, const char *name);
AsgMember *asg_find_member(const FakeAutoscaling *f, const char *instance);
bool asg_is_ending(const AsgMember *m); /* Terminating..., Terminated */
bool asg_is_active(const AsgMember *m); /* counts against what is desired */
size_t asg_n_active(const AsgGroup *g);

AsgMember *asg_add_member(FakeAutoscaling *f, AsgGroup *g, const char *instance, const char *state);
/* Its instance lives on, of no group. */
void asg_remove_member(FakeAutoscaling *f, AsgMember *m);
/* So many in that zone, at once; the group wants as many more. */
const AsgLaunch *asg_launch(FakeAutoscaling *f, AsgGroup *g, const char *zone, unsigned n, const char *token);
void asg_set_state(AsgMember *m, const char *state);
/* Its hooks first; ends at once if there are none. Nothing if it is ending. */
void asg_terminate(FakeAutoscaling *f, AsgMember *m);
/* The hook lets go; may free nothing but the action. */
void asg_complete(FakeAutoscaling *f, AsgMember *m, AsgAction *a, bool abandon);
/* Everything that is due happens; the timer is set for the next. */
void asg_run(FakeAutoscaling *f);
/* Watches EC2. */
void asg_on_ec2_change(const char *instance, void *fake_autoscaling);
void asg_group_free(FakeAutoscaling *f, AsgGroup *g);
/* 36 characters, never the same. */
void asg_new_id(FakeAutoscaling *f, char ret[ASG_TOKEN_MAX]);
