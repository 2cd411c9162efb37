/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-queue.h"

#include <stdlib.h>

#include "coordinator-config.h"
#include "fake-asg.h"
#include "fake-controllers.h"
#include "fake-query.h"
#include "http-inproc.h"
#include "sim-check-internal.h"
#include "sim-process.h"
#include "strv.h"

#define SEC USEC_PER_SEC
#define HOOK "drain"
#define HOOK_USEC (30 * SEC)
#define SPOT_LEAD_USEC (120 * SEC)
/* A scheduled change may begin so long after its time. */
#define WINDOW_USEC (5 * USEC_PER_MINUTE)
/* A foreign instance is nobody's after so long. */
#define UNKNOWN_USEC (2 * USEC_PER_MINUTE)
/* Limit until a message is acted upon. A message from before its node joined has been hidden for 20 s then. */
#define ACT_USEC (30 * SEC)
#define HIDDEN_USEC (20 * SEC)
/* Time after the announced end at which a notice no longer stands on the Node of a machine that lives. */
#define OUTLIVED_USEC (10 * USEC_PER_MINUTE)
#define HOOK_ALONE_USEC (2 * USEC_PER_HOUR) /* for which a group waits without heartbeats */
/* Number of notices that one machine may have at once. */
#define HAS_ROOM_FOR 6u
#define ANNOUNCED "vesper.sh/announced"

typedef struct Message {
        FakeAwsEventKind kind;
        bool is_text;      /* nobody can read it */
        char *body;
        char **instances;
        char *token;       /* of a hook; NULL: of none */
        bool launching;
        bool ends;         /* the claim of a machine that it names is to be deleted, sooner or later */
        bool keeps;        /* the node comes back from it: it is to be drained, sooner or later, and kept */
        bool may_end, may_drain; /* that may be done for it, also where it need not */
        bool is_over;      /* what it tells of was called off */
        bool is_forged;    /* AWS did not send it */
        bool is_moved;     /* another message tells of another time */
        char *change;      /* of a scheduled change: which it is about; NULL: none */
        char *action;      /* as it was told; NULL: none */
        usec_t until_usec; /* wall clock; USEC_INFINITY: not said */
        usec_t sent_usec;
        bool deleted;
} Message;

struct SimQueue {
        SimWorld *world;
        FakeSqs *sqs;
        FakeAutoscaling *groups;
        Message *messages; /* that of id N at N - 1 */
        size_t n, allocated;
        usec_t *claimed_usec; /* by machine: since when its claim is there; 0: it never was */
        FakeAwsEventKind hook_kind;
        bool hook_by_sns;
        bool answering; /* a request completes an action, in this step */
        unsigned n_answered; /* hooks by which a machine went */
        bool drains_unmanaged; /* [Queue] Unmanaged=drain */
        bool has_forger;
        SimBrake *brake;
};

/* -- what is so ---------------------------------------------------------------------------------- */

static const CoordinatorConfig *config_of(const SimQueue *q) {
        return &sim_world_coordinator(q->world, 0)->coordinator_config;
}

/* SIZE_MAX: it is nobody's. */
static size_t machine_of(const SimQueue *q, const char *instance) {
        for (size_t i = 0; i < q->world->n_machines; i++)
                if (streq(q->world->machines[i].instance, instance))
                        return i;
        return SIZE_MAX;
}

static bool is_managed(const SimQueue *q, size_t machine) {
        return machine != SIZE_MAX && !sim_world_is_outside(q->world, machine);
}

/* A node of no pool that is acted upon all the same. */
static bool is_drained(const SimQueue *q, size_t machine) {
        return machine != SIZE_MAX && q->drains_unmanaged && sim_world_is_outside(q->world, machine);
}

static bool concerns(const Message *m, const char *instance) {
        return strv_contains(m->instances, instance);
}

/* Returns the list of notices on a claim or a Node; NULL: none. Free it. */
static cJSON *read_list(const cJSON *o) {
        const char *text = fj_string(o, "metadata", "annotations", ANNOUNCED, NULL);

        return text ? cJSON_Parse(text) : NULL;
}

static usec_t time_of(const cJSON *notice, const char *key) {
        usec_t t;

        return rfc3339_parse(strempty(fj_string(notice, key, NULL)), &t) < 0 ? USEC_INFINITY : t;
}

/* Wall clock: a machine that is Ready then has outlived it; USEC_INFINITY: never. What has no time counts from when it was said. */
static usec_t outlived_usec(const cJSON *notice) {
        usec_t at = time_of(notice, "deadline"), until = time_of(notice, "until");

        if (at == USEC_INFINITY && streq_ptr(fj_string(notice, "kind", NULL), "scale-in"))
                return USEC_INFINITY;
        return usec_add(until != USEC_INFINITY ? MAX(at, until) : at != USEC_INFINITY ? at : time_of(notice, "said"), OUTLIVED_USEC);
}

/* The notice of this id in a list; NULL: none. */
static const cJSON *find_notice(const cJSON *list, const char *id) {
        return fj_find(fj_get(list, "notices", NULL), "id", id);
}

/* -- what a message means ------------------------------------------------------------------------ */

/* Returns the action of the message: "terminate", "stop", "reboot", ...; NULL: none. */
static const char *action_of(const FakeAwsEvent *e) {
        static const char *const codes[][2] = {
                { "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED", "terminate" },
                { "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED", "stop" },
        };
        const char *code = e->action ? e->action : codes[0][0];

        switch (e->kind) {
        case FAKE_AWS_EVENT_TERMINATE_ACTION:
        case FAKE_AWS_EVENT_HOOK:
                return "terminate";
        case FAKE_AWS_EVENT_SPOT:
                return e->action ? e->action : "terminate";
        case FAKE_AWS_EVENT_STATE:
                return streq_ptr(e->action, "stopping") ? "stop" : streq_ptr(e->action, "shutting-down") ? "terminate" : NULL;
        case FAKE_AWS_EVENT_HEALTH:
                for (size_t i = 0; i < ELEMENTSOF(codes); i++)
                        if (streq(code, codes[i][0]))
                                return codes[i][1];
                return "reboot";
        case FAKE_AWS_EVENT_REBALANCE:
        case FAKE_AWS_EVENT_RESERVATION:
        case FAKE_AWS_EVENT_BLOCK:
        case FAKE_AWS_EVENT_LAUNCH_ACTION:
        case FAKE_AWS_EVENT_HOOK_TEST:
        case _FAKE_AWS_EVENT_MAX:
        case _FAKE_AWS_EVENT_INVALID:
                break;
        }
        return NULL;
}

/* By [Interruption] Delete=. The state of an instance is news while its node is Ready, and may come too late for that. */
static void judge(const SimQueue *q, const FakeAwsEvent *e, Message *m) {
        int deletes = config_of(q)->interruption_delete;
        const char *action = action_of(e);

        if (!action || deletes == INTERRUPTION_DELETE_NEVER || streq_ptr(e->status, "closed"))
                return;
        m->may_drain = true;
        m->may_end = streq(action, "terminate") || deletes == INTERRUPTION_DELETE_ALWAYS;
        m->ends = m->may_end && e->kind != FAKE_AWS_EVENT_STATE;
        m->keeps = !m->may_end && e->kind != FAKE_AWS_EVENT_STATE;
}

static usec_t until_of(const FakeAwsEvent *e) {
        if (e->kind == FAKE_AWS_EVENT_HEALTH)
                return e->until_wall_usec;
        return e->kind == FAKE_AWS_EVENT_SPOT && !streq_ptr(e->action, "hibernate") ? usec_add(e->wall_usec, SPOT_LEAD_USEC) : USEC_INFINITY;
}

static Message *message_add(SimQueue *q, const char *body) {
        _cleanup_free_ char *text = MUST(strdup(body)); /* it may be of one that moves now */
        Message *m;
        int r = GREEDY_REALLOC(q->messages, q->allocated, q->n + 1);

        assert(r >= 0);
        m = &q->messages[q->n++];
        *m = (Message){ .sent_usec = sim_world_now(q->world), .until_usec = USEC_INFINITY };
        m->body = TAKE_PTR(text);
        (void) fake_sqs_send(q->sqs, SIM_QUEUE, m->body);
        return m;
}

/* The time that it names binds whoever has heard of it. Where there is a forger, it binds once a notice stands (sim-brake.c). */
static void bind_machines(SimQueue *q, const Message *m) {
        STRV_FOREACH (instance, m->instances) {
                size_t i = machine_of(q, *instance);

                if (!m->may_drain || !(is_managed(q, i) || is_drained(q, i)))
                        continue;
                sim_brake_note_sent(q->brake, i);
                if (!q->has_forger)
                        q->world->machines[i].deadline_usec = MIN(q->world->machines[i].deadline_usec, m->until_usec);
        }
}

static void send(SimQueue *q, const FakeAwsEvent *event, bool by_sns, bool is_forged) {
        FakeAwsEvent e = *event;
        _cleanup_free_ char *id = MUST(strf("00000000-0000-4000-8000-%012zu", q->n + 1)), *body = NULL;
        Message *m;
        int r;

        e.wall_usec = sim_world_wall(q->world) / SEC * SEC; /* as it is told */
        e.until_wall_usec = e.until_wall_usec / SEC * SEC;
        e.id = id;
        e.communication = e.communication ? e.communication : id;
        e.window_usec = WINDOW_USEC;
        body = by_sns ? fake_aws_event_by_sns(&e) : fake_aws_event(&e);
        m = message_add(q, body);
        m->kind = e.kind;
        m->is_forged = is_forged;
        m->launching = e.kind == FAKE_AWS_EVENT_LAUNCH_ACTION;
        judge(q, &e, m);
        m->until_usec = until_of(&e);
        m->token = e.token ? MUST(strdup(e.token)) : NULL;
        m->action = e.action ? MUST(strdup(e.action)) : NULL;
        m->change = e.kind == FAKE_AWS_EVENT_HEALTH ? MUST(strdup(e.communication)) : NULL;
        r = strv_extend(&m->instances, e.instance);
        for (char *const *other = e.others; r >= 0 && other && *other; other++)
                r = strv_extend(&m->instances, *other);
        assert(r >= 0);
        sim_trace_add(q->world->trace, "queue", "message %zu%s%s: %s", q->n, is_forged ? ", which is false" : "",
                      m->ends ? ", which ends" : m->keeps ? ", which comes back" : "", body);
        for (size_t k = 0; m->change && k + 1 < q->n; k++)
                if (streq_ptr(q->messages[k].change, m->change) && q->messages[k].until_usec != m->until_usec)
                        q->messages[k].is_moved = true;
        bind_machines(q, m);
        if (!is_forged)
                sim_brake_show(q->brake, q->n, &e);
}

void sim_queue_send(SimQueue *q, const FakeAwsEvent *event, bool by_sns) {
        send(q, event, by_sns, false);
}

void sim_queue_forge(SimQueue *q, const FakeAwsEvent *event) {
        send(q, event, false, true);
}

void sim_queue_forge_times(SimQueue *q, size_t n, usec_t in_usec) {
        for (size_t k = q->n; k-- > 0 && n > 0;) {
                const Message *m = &q->messages[k];
                _cleanup_free_ char *change = NULL, *action = NULL, *instance = NULL;

                if (!m->is_forged || !m->change || m->is_moved)
                        continue;
                change = MUST(strdup(m->change));
                action = MUST(strdup(m->action));
                instance = MUST(strdup(m->instances[0]));
                sim_queue_forge(q, &(FakeAwsEvent){ .kind = FAKE_AWS_EVENT_HEALTH, .instance = instance, .action = action, .communication = change,
                                                    .until_wall_usec = sim_world_wall(q->world) + in_usec });
                n--;
        }
}

void sim_queue_expect_forger(SimQueue *q) {
        q->has_forger = true;
}

void sim_queue_call_off(SimQueue *q) {
        const Message *m = NULL;
        FakeAwsEvent e = { .kind = FAKE_AWS_EVENT_HEALTH, .status = "closed" };
        _cleanup_strv_free_ char **instances = NULL;
        _cleanup_free_ char *change = NULL, *action = NULL;

        for (size_t k = q->n; k-- > 0 && !m;)
                if (q->messages[k].change && !q->messages[k].is_over && !q->messages[k].is_forged)
                        m = &q->messages[k];
        if (!m)
                return;
        instances = MUST(strv_copy(m->instances));
        e.communication = change = MUST(strdup(m->change));
        e.action = action = m->action ? MUST(strdup(m->action)) : NULL;
        e.until_wall_usec = m->until_usec;
        e.instance = instances[0];
        e.others = instances + 1;
        for (size_t k = 0; k < q->n; k++)
                if (streq_ptr(q->messages[k].change, change))
                        q->messages[k].is_over = true;
        STRV_FOREACH (instance, instances)
                sim_brake_call_off(q->brake, *instance, change);
        sim_queue_send(q, &e, false);
        q->messages[q->n - 1].is_over = true;
}

void sim_queue_send_text(SimQueue *q, const char *text) {
        message_add(q, text)->is_text = true;
        sim_trace_add(q->world->trace, "queue", "message %zu cannot be read: %s", q->n, text);
}

void sim_queue_repeat(SimQueue *q) {
        Message *m, *last;

        if (q->n == 0)
                return;
        m = message_add(q, q->messages[q->n - 1].body);
        last = m - 1;
        m->kind = last->kind;
        m->is_text = last->is_text;
        m->launching = last->launching;
        m->ends = last->ends;
        m->keeps = last->keeps;
        m->may_end = last->may_end;
        m->may_drain = last->may_drain;
        m->is_over = last->is_over;
        m->is_moved = last->is_moved;
        m->is_forged = last->is_forged;
        m->change = last->change ? MUST(strdup(last->change)) : NULL;
        m->action = last->action ? MUST(strdup(last->action)) : NULL;
        m->until_usec = last->until_usec;
        m->token = last->token ? MUST(strdup(last->token)) : NULL;
        m->instances = last->instances ? MUST(strv_copy(last->instances)) : NULL;
        sim_trace_add(q->world->trace, "queue", "message %zu is the one before once more", q->n);
}

bool sim_queue_calls_for_end(const SimQueue *q, size_t machine) {
        usec_t soon = usec_add(sim_world_wall(q->world), config_of(q)->interruption_before_usec);

        for (size_t k = 0; k < q->n; k++)
                if (q->messages[k].may_end && is_managed(q, machine) && concerns(&q->messages[k], q->world->machines[machine].instance) &&
                    (!q->messages[k].change || q->messages[k].until_usec <= soon))
                        return true;
        return false;
}

bool sim_queue_calls_for_drain(const SimQueue *q, size_t machine) {
        for (size_t k = 0; k < q->n; k++)
                if (q->messages[k].may_drain && (is_managed(q, machine) || is_drained(q, machine)) &&
                    concerns(&q->messages[k], q->world->machines[machine].instance))
                        return true;
        return false;
}

/* A message called something off, which is remembered. */
static bool is_called_off(const SimQueue *q, size_t machine) {
        for (size_t k = 0; k < q->n; k++)
                if (q->messages[k].is_over && concerns(&q->messages[k], q->world->machines[machine].instance))
                        return true;
        return false;
}

bool sim_queue_has_room(const SimQueue *q, const char *instance) {
        usec_t wall = sim_world_wall(q->world), now = sim_world_now(q->world), past = WINDOW_USEC + OUTLIVED_USEC + ACT_USEC;
        unsigned n = 0;

        for (size_t k = 0; k < q->n; k++) {
                const Message *m = &q->messages[k];

                n += m->may_drain && concerns(m, instance) &&
                     (m->until_usec == USEC_INFINITY ? now < usec_add(m->sent_usec, past) : wall < usec_add(m->until_usec, past));
        }
        return n < HAS_ROOM_FOR;
}

bool sim_queue_is_awaited(const SimQueue *q, usec_t within_usec) {
        usec_t wall = sim_world_wall(q->world), until;

        for (size_t k = 0; k < q->n; k++) {
                until = q->messages[k].until_usec;
                if (q->messages[k].may_drain && !q->messages[k].is_over && until > wall && until <= usec_add(wall, within_usec))
                        return true;
        }
        return false;
}

bool sim_queue_waits(const SimQueue *q, size_t machine) {
        const cJSON *claim = sim_world_claim(q->world, machine), *notice;
        cJSON *list = read_list(claim ? claim : sim_world_node(q->world, machine));
        bool waits = false;

        cJSON_ArrayForEach (notice, fj_get(list, "notices", NULL))
                waits = waits || sim_world_wall(q->world) < usec_add(outlived_usec(notice), ACT_USEC);
        cJSON_Delete(list);
        return waits && !sim_world_annotation(q->world, machine, "vesper.sh/heard");
}

unsigned sim_queue_n_answered(const SimQueue *q) {
        return q->n_answered;
}

/* -- a message is deleted ------------------------------------------------------------------------ */

static bool action_stands(const SimQueue *q, const char *instance, const char *token) {
        const AsgMember *member = asg_find_member(q->groups, instance);

        if (member && token)
                LIST_FOREACH (a, &member->actions, AsgAction, actions)
                        if (streq(a->token, token))
                                return true;
        return false;
}

/* The first time that any message did. */
static usec_t named_usec(const SimQueue *q, const char *instance) {
        for (size_t k = 0; k < q->n; k++)
                if (concerns(&q->messages[k], instance))
                        return q->messages[k].sent_usec;
        return USEC_INFINITY;
}

static bool is_outlived(const SimQueue *q, const Message *m) {
        bool is_hook = m->kind == FAKE_AWS_EVENT_LAUNCH_ACTION || m->kind == FAKE_AWS_EVENT_TERMINATE_ACTION;

        return sim_world_wall(q->world) >= usec_add(m->until_usec, OUTLIVED_USEC) ||
               (is_hook && sim_world_now(q->world) >= usec_add(m->sent_usec, HOOK_ALONE_USEC));
}

static void check_foreign(SimQueue *q, size_t k, const char *instance) {
        const Message *m = &q->messages[k];
        const char *state = fake_ec2_state(q->world->ec2, instance);

        if (!config_of(q)->queue_shared && is_outlived(q, m))
                return;
        if (config_of(q)->queue_shared)
                sim_check_broken(q->world->check, "queue", "message %zu is deleted, which may be somebody else's: %s is nobody's here", k + 1,
                                 instance);
        else if ((m->ends || m->launching) && sim_check_instance_alive(q->world->check, instance))
                sim_check_broken(q->world->check, "queue", "message %zu is deleted, and %s is %s, nobody's yet", k + 1, instance, state);
        else if ((m->ends || m->launching) && !state && sim_world_now(q->world) < usec_add(named_usec(q, instance), UNKNOWN_USEC))
                sim_check_broken(q->world->check, "queue", "message %zu is deleted, and %s is unknown for no more than %d s", k + 1, instance,
                                 (int) ((sim_world_now(q->world) - named_usec(q, instance)) / SEC));
}

/* Returns what this message told of the instance, as the list has it; NULL: it does not. Borrowed. */
static const cJSON *notice_of(const Message *m, size_t number, const cJSON *list, const char *instance) {
        _cleanup_free_ char *id = MUST(strf("%012zu", number));
        const cJSON *notice;

        cJSON_ArrayForEach (notice, fj_get(list, "notices", NULL)) {
                const char *seen = strempty(fj_string(notice, "id", NULL));

                if (endswith(seen, instance) &&
                    (strstr(seen, m->change ? m->change : id) || (m->token && streq_ptr(fj_string(notice, "kind", NULL), "scale-in"))))
                        return notice;
        }
        return NULL;
}

static bool is_told(const Message *m, size_t number, const cJSON *o, const char *instance) {
        cJSON *list = read_list(o);
        bool told = notice_of(m, number, list, instance);

        cJSON_Delete(list);
        return told;
}

/* k: the first of those that are the same message. */
static size_t first_of(const SimQueue *q, size_t k) {
        size_t i = 0;

        while (!streq(q->messages[i].body, q->messages[k].body))
                i++;
        return i;
}

/* The notice is written on a claim, or on a Node without one, or there is no need of that any more. */
static void check_written(SimQueue *q, size_t k, size_t machine) {
        const Message *m = &q->messages[k];
        const SimMachine *of = &q->world->machines[machine];
        const cJSON *claim = sim_world_claim(q->world, machine), *o = is_managed(q, machine) ? claim : sim_world_node(q->world, machine);

        if ((!m->ends && !m->keeps) || m->is_over || is_outlived(q, m) || !sim_check_instance_alive(q->world->check, of->instance) ||
            (!is_managed(q, machine) && !o))
                return;
        if (m->ends && action_stands(q, of->instance, m->token))
                sim_check_broken(q->world->check, "hook", "message %zu of %s is deleted, and its group has not been answered", k + 1, of->node);
        else if (!o)
                sim_check_broken(q->world->check, "queue", "message %zu is deleted, which tells of %s, and no claim says so: it has none", k + 1,
                                 of->node);
        else if (!sim_check_is_deleting(claim) && !is_told(m, first_of(q, k) + 1, o, of->instance))
                sim_check_broken(q->world->check, "queue", "message %zu is deleted, which tells of %s, and its %s does not say so", k + 1, of->node,
                                 is_managed(q, machine) ? "claim" : "Node");
}

void sim_queue_note_deleted(SimQueue *q, size_t message) {
        Message *m = &q->messages[message - 1];

        sim_trace_add(q->world->trace, "queue", "message %zu is deleted", message);
        m->deleted = true;
        if (m->is_text)
                sim_check_broken(q->world->check, "queue", "message %zu is deleted, and nobody could read it", message);
        STRV_FOREACH (instance, m->instances) {
                size_t i = machine_of(q, *instance);

                if (i == SIZE_MAX)
                        check_foreign(q, message - 1, *instance);
                else if (is_managed(q, i) || is_drained(q, i))
                        check_written(q, message - 1, i);
        }
}

/* "fc3e6a53-5c5e-4b1c-9d1e-000000000007" */
static void on_delete(const char *id, void *userdata) {
        const char *number = strrchr(id, '-');

        sim_queue_note_deleted(userdata, strtoul(number + 1, NULL, 16));
}

/* -- what is done about it ----------------------------------------------------------------------- */

/* None of those that stand is lost, but by time: in these worlds no machine boots anew. */
static void check_list(SimQueue *q, const cJSON *old, const cJSON *new, size_t machine) {
        cJSON *was = read_list(old), *is = read_list(new);
        const cJSON *notice;

        cJSON_ArrayForEach (notice, fj_get(was, "notices", NULL))
                if (!find_notice(is, strempty(fj_string(notice, "id", NULL))) && sim_world_wall(q->world) < outlived_usec(notice))
                        sim_check_broken(q->world->check, "queue", "%s forgets %s of %s", q->world->request->user,
                                         strempty(fj_string(notice, "id", NULL)), q->world->machines[machine].node);
        cJSON_Delete(was);
        cJSON_Delete(is);
}

void sim_queue_claim_changed(SimQueue *q, const cJSON *old, const cJSON *new) {
        const char *id = fj_string(new, "spec", "providerID", NULL), *slash = id ? strrchr(id, '/') : NULL;
        size_t i = slash ? machine_of(q, slash + 1) : SIZE_MAX;

        if (i == SIZE_MAX || !sim_check_actor(q->world->check))
                return;
        if (fj_string(new, "metadata", "annotations", ANNOUNCED, NULL) && !fj_string(old, "metadata", "annotations", ANNOUNCED, NULL) &&
            !sim_queue_calls_for_drain(q, i) && !is_called_off(q, i))
                sim_check_broken(q->world->check, "queue", "%s writes on the claim of %s what nobody announced",
                                 q->world->request->user, q->world->machines[i].node);
        check_list(q, old, new, i);
}

/* From when on its claim is to be deleted for that, as far as people and terms go; USEC_INFINITY: not yet. */
static usec_t due_usec(const SimQueue *q, const Message *m, size_t machine) {
        usec_t tgp = q->world->options.tgp_sec * SEC, now = sim_world_now(q->world), wall = sim_world_wall(q->world);
        usec_t before = m->change ? config_of(q)->interruption_before_usec : USEC_INFINITY, ahead = tgp == 0 || m->keeps ? before : MIN(tgp, before);
        usec_t begin = m->until_usec == USEC_INFINITY ? 0 : usec_sub(m->until_usec, ahead);
        usec_t known = q->claimed_usec[machine];

        if (known == 0 || begin > wall)
                return USEC_INFINITY;
        known = known > m->sent_usec ? usec_add(known, HIDDEN_USEC) : m->sent_usec;
        return begin > 0 ? MAX(known, usec_sub(now, wall - begin)) : known;
}

/* Neither time nor another message has answered it. */
static bool is_open(const SimQueue *q, const Message *m, size_t machine) {
        return !m->is_over && !m->is_moved && !is_outlived(q, m) && sim_check_instance_alive(q->world->check, q->world->machines[machine].instance);
}

/* A held notice closes its Node in time, as one that stands. */
static void check_held(SimQueue *q, size_t k, size_t machine, usec_t due) {
        const Message *m = &q->messages[k];
        const SimMachine *of = &q->world->machines[machine];
        const cJSON *node = sim_world_node(q->world, machine);
        usec_t now = sim_world_now(q->world);

        if (m->ends && is_open(q, m, machine) && node && !of->opened_usec && !sim_check_is_deleting(node) && now > usec_add(due, ACT_USEC) &&
            now < usec_add(due, 2 * ACT_USEC) && !sim_world_unschedulable(q->world, machine) && sim_check_was_calm(q->world->check, 2 * ACT_USEC))
                sim_check_broken(q->world->check, "brake", "message %zu of %s is held, and has been there for %d s: its Node is open", k + 1,
                                 of->node, (int) ((now - due) / SEC));
}

static void check_acted(SimQueue *q, size_t k, size_t machine) {
        const Message *m = &q->messages[k];
        const SimMachine *of = &q->world->machines[machine];
        const cJSON *claim = sim_world_claim(q->world, machine);
        usec_t now = sim_world_now(q->world), unheld = due_usec(q, m, machine), due;
        size_t number = first_of(q, k) + 1;
        cJSON *list = read_list(claim);
        const cJSON *notice = notice_of(m, number, list, of->instance);

        due = sim_brake_due_usec(q->brake, number, machine, notice, unheld);
        if (due != unheld && streq_ptr(fj_string(notice, "state", NULL), "Held"))
                check_held(q, k, machine, unheld);
        cJSON_Delete(list);
        if (m->ends && is_open(q, m, machine) && due != USEC_INFINITY && claim && !sim_check_is_deleting(claim) && now > usec_add(due, ACT_USEC) &&
            sim_check_was_calm(q->world->check, ACT_USEC))
                sim_check_broken(q->world->check, "queue", "message %zu ends %s, and has been there for %d s: its claim stays", k + 1, of->node,
                                 (int) ((now - due) / SEC));
}

/* Closed in time, and kept, unless a person has opened it. None boots anew in these worlds; what is outlived opens again. */
static void check_kept(SimQueue *q, size_t k, size_t machine) {
        const Message *m = &q->messages[k];
        const SimMachine *of = &q->world->machines[machine];
        const cJSON *node = sim_world_node(q->world, machine);
        usec_t due = due_usec(q, m, machine), now = sim_world_now(q->world);

        if (m->keeps && !of->opened_usec && is_open(q, m, machine) && due != USEC_INFINITY && node && !sim_check_is_deleting(node) && now > usec_add(due, ACT_USEC) && now < usec_add(due, 2 * ACT_USEC) &&
            !sim_world_unschedulable(q->world, machine) && sim_check_was_calm(q->world->check, 2 * ACT_USEC))
                sim_check_broken(q->world->check, "queue", "message %zu calls for a drain of %s, and has been there for %d s: its Node is open", k + 1,
                                 of->node, (int) ((now - due) / SEC));
}

/* Closed in time, unless a person has opened it; and when its own time is over, nothing goes on. */
static void check_closed(SimQueue *q, size_t k, size_t machine) {
        const Message *m = &q->messages[k];
        const SimMachine *of = &q->world->machines[machine];
        const cJSON *node = sim_world_node(q->world, machine);
        usec_t now = sim_world_now(q->world), wall = sim_world_wall(q->world);
        usec_t begin = m->until_usec == USEC_INFINITY || !m->change ? 0 : usec_sub(m->until_usec, config_of(q)->interruption_before_usec);
        usec_t since = usec_sub(now, MAX(m->sent_usec, begin > wall ? USEC_INFINITY : usec_sub(now, wall - begin)));
        const char *told = sim_world_annotation(q->world, machine, "vesper.sh/heard");

        if (sim_world_claim(q->world, machine))
                sim_check_broken(q->world->check, "queue", "%s has a claim, and no pool wants it", of->node);
        if (of->opened_usec || (!m->ends && !m->keeps) || !node || !is_open(q, m, machine))
                return;
        if (since > ACT_USEC && since < 2 * ACT_USEC && !sim_world_unschedulable(q->world, machine) &&
            sim_check_was_calm(q->world->check, ACT_USEC))
                sim_check_broken(q->world->check, "queue", "message %zu tells of %s, and has been there for %d s: its Node is open", k + 1, of->node,
                                 (int) (since / SEC));
        if (wall > usec_add(m->until_usec, (m->change ? WINDOW_USEC : 0) + ACT_USEC) && since > ACT_USEC && sim_check_was_calm(q->world->check, 2 * ACT_USEC) &&
            told && strstr(told, "\"phase\":\"Draining\"") && sim_world_pods_alive(q->world, machine) > 0 && q->world->machines[machine].deadline_usec == m->until_usec)
                sim_check_broken(q->world->check, "late", "the time of %s has passed, and its drain goes on", of->node);
}

void sim_queue_look(SimQueue *q) {
        SimWorld *w = q->world;

        sim_brake_look(q->brake);
        for (size_t i = 0; i < w->n_machines; i++)
                if (q->claimed_usec[i] == 0 && sim_world_node(w, i) &&
                    fj_array_has(fj_get(sim_world_claim(w, i), "metadata", "finalizers", NULL), SIM_FINALIZER))
                        q->claimed_usec[i] = sim_world_now(w);
        for (size_t k = 0; k < q->n; k++)
                STRV_FOREACH (instance, q->messages[k].instances)
                        if (is_managed(q, machine_of(q, *instance))) {
                                check_acted(q, k, machine_of(q, *instance));
                                check_kept(q, k, machine_of(q, *instance));
                        } else if (is_drained(q, machine_of(q, *instance)))
                                check_closed(q, k, machine_of(q, *instance));
}

/* -- hooks --------------------------------------------------------------------------------------- */

static const Message *message_of_action(const SimQueue *q, const FakeQuery *form) {
        const char *token = fake_query_get(form, "LifecycleActionToken"), *instance = fake_query_get(form, "InstanceId");

        for (size_t k = q->n; k-- > 0;)
                if (token ? streq_ptr(q->messages[k].token, token) : q->messages[k].token && concerns(&q->messages[k], strempty(instance)))
                        return &q->messages[k];
        return NULL;
}

static void check_answer(SimQueue *q, const FakeQuery *form, const SimProcess *by) {
        const Message *m = message_of_action(q, form);
        size_t i = m ? machine_of(q, m->instances[0]) : SIZE_MAX;
        const SimMachine *of = i != SIZE_MAX ? &q->world->machines[i] : NULL;

        if (!streq_ptr(fake_query_get(form, "LifecycleActionResult"), "CONTINUE"))
                sim_check_broken(q->world->check, "hook", "the hook of %s is answered with %s", of ? of->node : "an instance that is nobody's",
                                 strempty(fake_query_get(form, "LifecycleActionResult")));
        else if (!of)
                sim_check_broken(q->world->check, "hook", "a hook is answered that nobody told of, or of an instance that is nobody's");
        else if (m->launching && sim_check_instance_alive(q->world->check, of->instance) &&
                 !fake_condition_is(sim_world_node(q->world, i), "Ready", "True"))
                sim_check_broken(q->world->check, "hook", "its group is told that %s is there, which is not Ready", of->node);
        else if (!m->launching && sim_check_instance_alive(q->world->check, of->instance) && !m->ends)
                sim_check_broken(q->world->check, "hook", "the group of %s is told to go on, and claims are not deleted for that", of->node);
        else if (!m->launching && sim_check_instance_alive(q->world->check, of->instance) && sim_world_pods_alive(q->world, i) > 0 &&
                 sim_world_wall(q->world) < sim_check_deadline(q->world->check, of))
                sim_check_broken(q->world->check, "hook", "the group of %s is told to go on, and %zu pods are left there", of->node,
                                 sim_world_pods_alive(q->world, i));
        if (of && !m->launching && sim_check_instance_alive(q->world->check, of->instance))
                sim_brake_acted(q->brake, i, by, "answers the hook of");
}

static void handle_groups(HttpExchange *x, void *userdata) {
        SimQueue *q = userdata;
        _cleanup_query_ FakeQuery form = { 0 };

        sim_trace_add(q->world->trace, "cloud", "Auto Scaling is asked %.*s", (int) x->body_size, (const char *) x->body);
        fake_query_init_form(&form, x);
        if (streq_ptr(fake_query_get(&form, "Action"), "CompleteLifecycleAction")) {
                check_answer(q, &form, sim_check_process_of(q->world, x->client_identity));
                q->answering = true;
        }
        fake_autoscaling_handle(x, q->groups);
        q->answering = false;
}

/* The time of the hook ran out, although a leader was to send heartbeats. */
static void check_run_out(SimQueue *q, size_t machine) {
        SimWorld *w = q->world;

        if (!q->answering && (sim_queue_calls_for_end(q, machine) || sim_queue_calls_for_drain(q, machine)) && sim_world_leader(w) && sim_world_pods_alive(w, machine) > 0 &&
            sim_check_was_calm(w->check, HOOK_USEC + ACT_USEC))
                sim_check_broken(w->check, "hook", "the group of %s goes on by itself, and %zu pods are left there: nobody has asked it to wait",
                                 w->machines[machine].node, sim_world_pods_alive(w, machine));
        q->n_answered += q->answering;
        sim_world_machine_ends(w, machine, 0);
}

static void on_group_event(const FakeAsgEvent *e, void *userdata) {
        SimQueue *q = userdata;
        size_t i = machine_of(q, e->instance);

        if (e->kind == FAKE_ASG_LIFECYCLE_ACTION)
                sim_queue_send(q,
                               &(FakeAwsEvent){ .kind = q->hook_kind,
                                                .instance = e->instance,
                                                .group = e->group,
                                                .hook = e->hook,
                                                .token = e->token },
                               q->hook_by_sns);
        else if (e->kind == FAKE_ASG_TERMINATED && i != SIZE_MAX)
                check_run_out(q, i);
}

bool sim_queue_scale_in(SimQueue *q, size_t machine, FakeAwsEventKind kind, bool by_sns) {
        AsgMember *member = asg_find_member(q->groups, q->world->machines[machine].instance);

        if (!member || asg_is_ending(member))
                return false;
        sim_trace_add(q->world->trace, "cloud", "the group lets go of %s", q->world->machines[machine].node);
        q->hook_kind = kind;
        q->hook_by_sns = by_sns;
        member->group->desired--;
        asg_terminate(q->groups, member);
        asg_run(q->groups);
        return true;
}

/* -- when all is over ---------------------------------------------------------------------------- */

/* A Node of no pool whose machine is gone, and which nobody deletes here: what is announced for later waits for either to change. */
static bool is_left_behind(const SimQueue *q, size_t machine) {
        return is_drained(q, machine) && sim_world_node(q->world, machine) && !sim_world_instance_alive(q->world, machine);
}

/* Somebody else may want it, or the instance may still join. */
static bool may_stay(const SimQueue *q, const Message *m) {
        if (m->is_text || config_of(q)->queue_shared)
                return true;
        STRV_FOREACH (instance, m->instances)
                if (is_left_behind(q, machine_of(q, *instance)))
                        return true;
        STRV_FOREACH (instance, m->instances)
                if (machine_of(q, *instance) == SIZE_MAX && (m->ends || m->launching) && sim_check_instance_alive(q->world->check, *instance))
                        return true;
        return false;
}

/* Checks the conditions of a drain for the queue: no drain is under way, and a drained node stays cordoned and empty. */
static void check_conditions_left(SimQueue *q, size_t machine) {
        SimWorld *w = q->world;
        const char *node = w->machines[machine].node;
        size_t left = sim_world_pods_on(w, machine) - sim_world_pods_going(w, machine); /* on a dead machine those stay */

        if (sim_world_condition(w, machine, "DrainInProgress", "True"))
                sim_check_broken(w->check, "told", "%s says that it is being drained, where nothing goes on", node);
        if (!sim_world_condition(w, machine, "Drained", "True"))
                return;
        if (!sim_world_unschedulable(w, machine))
                sim_check_broken(w->check, "told", "%s says that it is drained, and is open", node);
        if (left > 0)
                sim_check_broken(w->check, "told", "%s says that it is drained, and %zu pods are to be evicted there", node, left);
}

void sim_queue_check_left(SimQueue *q) {
        for (size_t i = 0; i < q->world->n_machines; i++)
                if (sim_world_is_outside(q->world, i))
                        check_conditions_left(q, i);
        for (size_t k = 0; k < q->n; k++)
                if (!q->messages[k].deleted && !may_stay(q, &q->messages[k]))
                        sim_check_broken(q->world->check, "queue", "message %zu is left in the queue, where nothing goes on", k + 1);
}

/* -- life ---------------------------------------------------------------------------------------- */

static void handle_sqs(HttpExchange *x, void *userdata) {
        SimQueue *q = userdata;
        const char *target = http_header_find(x->headers, x->n_headers, "X-Amz-Target");

        sim_trace_add(q->world->trace, "cloud", "SQS is asked for %s", strempty(target));
        fake_sqs_handle(x, q->sqs);
}

/* All that its pool has, and no others, which nobody would drain. */
static void make_group(SimQueue *q) {
        SimWorld *w = q->world;

        q->groups = fake_autoscaling_new(&(FakeAutoscalingOptions){
                .aws = { .loop = w->loop, .region = "us-east-1" }, .ec2 = w->ec2, .on_event = on_group_event, .userdata = q });
        q->hook_kind = FAKE_AWS_EVENT_TERMINATE_ACTION;
        fake_autoscaling_add_group(q->groups, &(FakeAsgGroup){ .name = SIM_GROUP, .zones = SIM_ZONE, .max = (unsigned) w->n_machines + 1 });
        fake_autoscaling_add_hook(q->groups, SIM_GROUP, &(FakeAsgHook){ .name = HOOK, .heartbeat_usec = HOOK_USEC, .abandon = true });
        asg_find_group(q->groups, SIM_GROUP)->suspended = 1u << ASG_PROCESS_LAUNCH | 1u << ASG_PROCESS_REPLACE_UNHEALTHY;
        for (size_t i = 0; i + w->options.n_late < w->n_machines; i++)
                if (!sim_world_is_outside(w, i))
                        fake_autoscaling_attach(q->groups, SIM_GROUP, w->machines[i].instance);
}

void sim_queue_drain_unmanaged(SimQueue *q) {
        SimWorld *w = q->world;

        q->drains_unmanaged = true;
        for (size_t i = 0; i + w->options.n_late < w->n_machines; i++)
                if (sim_world_is_outside(w, i))
                        fake_autoscaling_attach(q->groups, SIM_GROUP, w->machines[i].instance);
}

SimQueue *sim_queue_new(SimWorld *w) {
        SimQueue *q = MUST(new0(SimQueue, 1));

        q->world = w;
        q->brake = sim_brake_new(w);
        q->claimed_usec = MUST(new0(usec_t, w->n_machines + 1));
        q->sqs = fake_sqs_new(&(FakeSqsOptions){ .aws = { .loop = w->loop, .region = "us-east-1" } });
        fake_sqs_add_queue(q->sqs, &(FakeSqsQueue){ .name = SIM_QUEUE });
        fake_sqs_on_delete(q->sqs, SIM_QUEUE, on_delete, q);
        make_group(q);
        return q;
}

SimQueue *sim_queue_free(SimQueue *q) {
        if (!q)
                return NULL;
        for (size_t k = 0; k < q->n; k++) {
                free(q->messages[k].body);
                free(q->messages[k].token);
                free(q->messages[k].change);
                free(q->messages[k].action);
                strv_free(q->messages[k].instances);
        }
        free(q->messages);
        free(q->claimed_usec);
        sim_brake_free(q->brake);
        fake_autoscaling_free(q->groups);
        fake_sqs_free(q->sqs);
        return mfree(q);
}

void sim_queue_route(SimQueue *q, HttpTransport *transport) {
        int r = http_inproc_route(transport, "https://sqs.us-east-1.amazonaws.com", handle_sqs, q);

        if (r >= 0)
                r = http_inproc_route(transport, SIM_GROUPS, handle_groups, q);
        if (r >= 0)
                r = http_inproc_route(transport, SIM_CONFIRMS, sim_check_handle_ec2, q->world);
        assert(r >= 0);
}

FakeSqs *sim_queue_sqs(SimQueue *q) {
        return q->sqs;
}

SimBrake *sim_queue_brake(SimQueue *q) {
        return q->brake;
}

FakeAutoscaling *sim_queue_groups(SimQueue *q) {
        return q->groups;
}
