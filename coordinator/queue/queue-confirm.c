/* SPDX-License-Identifier: Apache-2.0 */
#include "queue-confirm.h"

#include "aws-settings.h"
#include "backoff.h"
#include "confirmation-client.h"
#include "ec2-answer.h"
#include "list.h"
#include "log.h"
#include "queue-facts.h"
#include "queue-told.h"
#include "queue-voice.h"
#include "string-util.h"
#include "strv.h"

/* Notices that are written at the same time are asked about together. */
#define TOGETHER_USEC (200 * USEC_PER_MSEC)
#define ROUND_BASE_USEC (5 * USEC_PER_SEC)
#define ROUND_CAP_USEC USEC_PER_MINUTE
/* Time for which an answer counts for further notices of the machine: a flood of them must not hold again what AWS confirms. */
#define REMEMBERED_USEC (5 * USEC_PER_MINUTE)
#define REMEMBERED_MAX 20000u
#define JITTER_PERMILLE 200u

/* Maximum length of an instance's id: Auto Scaling refuses a whole request for one that is longer. */
#define INSTANCE_ID_BYTES_MAX 19u
/* Maximum number of batches of CONFIRMATION_EVENTS in one round and region: each of them reads the events of the whole region. */
#define EVENTS_BATCHES_MAX 4u

/* Order of the questions: those that show an interruption earliest come first. */
static const ConfirmationQuestion order[_CONFIRMATION_QUESTION_MAX] = {
        CONFIRMATION_SPOT_REQUEST,
        CONFIRMATION_GROUP,
        CONFIRMATION_EVENTS,
        CONFIRMATION_INSTANCE_STATE,
};

typedef struct Region {
        char *name;
        ConfirmationClient *client;
} Region;

/* A machine of this round. */
typedef struct Machine {
        char *instance;
        size_t region; /* index */
} Machine;

/* A patch that takes the state Held off notices. */
typedef struct ConfirmWrite {
        ListNode writes;
        QueueConfirm *owner;
        char *uid;
        char *node;     /* NULL: the object has no Node */
        Notice *notice; /* the first of the notices */
        const char *words;
        KubeCall *call;
} ConfirmWrite;

/* An answer of the last REMEMBERED_USEC. */
typedef struct Remembered {
        char *instance;
        Confirmed answer; /* instance: of this struct */
        usec_t until_usec; /* loop_now() */
} Remembered;

struct QueueConfirm {
        const QueueWorkerOptions *o;
        QueueMemory *memory;
        queue_confirm_written_t written;
        void *userdata;
        Region *regions; /* the first is the queue's */
        size_t n_regions;
        char **configured; /* [Queue] Regions= that regions was made from */
        Timer *round_timer;
        Backoff backoff;
        Machine *machines; /* of the round; NULL: no round is on */
        size_t n_machines;
        size_t question, region, at; /* where the round is: index of order, of regions, of machines */
        size_t n_batches;            /* of this question and region */
        size_t events_at, events_end; /* index of machines where CONFIRMATION_EVENTS begins, in this round and in the next one */
        usec_t pause_usec; /* before the next round, as AWS asks; at most ROUND_CAP_USEC */
        bool is_dirty; /* a notice was held since the round began */
        char *batch[CONFIRMATION_BATCH_MAX + 1]; /* of the call, borrowed of machines */
        ConfirmationCall *call;
        List writes;
        Hashmap *remembered; /* instance -> Remembered, the oldest first */
        bool fails[_CONFIRMATION_QUESTION_MAX]; /* the last answer was an error, and the log says so */
};

static void round_continue(QueueConfirm *c);
static void remember(QueueConfirm *c, const Confirmed *answer);

/* -- the notices ---------------------------------------------------------------------------------------- */

/* Returns true if the answer confirms the notice: AWS takes at least as much from the machine, and not later. Only a scheduled change is for later than now. */
static bool confirms_notice(const Confirmed *answer, const Notice *n, usec_t wall_usec) {
        usec_t at = n->kind == NOTICE_MAINTENANCE && notice_announced(n) != USEC_INFINITY ? notice_announced(n) : wall_usec;

        return notice_rank(n) <= answer->rank && answer->from_usec <= usec_add(at, ANNOUNCED_OUTLIVED_USEC);
}

static bool confirms(const Confirmed *answer, const Announced *a, usec_t wall_usec) {
        return a->state == ANNOUNCED_HELD && confirms_notice(answer, a->notice, wall_usec);
}

/* *ret_first: the first notice that the answer confirms, borrowed from *ret. -ENOENT: it confirms none; -ENOMEM. */
static int list_let_go(const AnnouncedList *l, const Confirmed *answer, usec_t wall_usec, AnnouncedList *ret, const Announced **ret_first) {
        int r = announced_list_copy(l, ret);

        *ret_first = NULL;
        for (size_t i = 0; i < ret->n_items; i++)
                if (confirms(answer, ret->items + i, wall_usec)) {
                        ret->items[i].state = ANNOUNCED_STANDS;
                        *ret_first = *ret_first ?: ret->items + i;
                }
        return r < 0 ? r : *ret_first ? 0 : -ENOENT;
}

/* -- writes --------------------------------------------------------------------------------------------- */

/* Frees the write. Returns the uid of its object; free it. */
static char *write_free(ConfirmWrite *w) {
        char *uid = w->uid;

        kube_call_free(w->call);
        notice_free(w->notice);
        free(w->node);
        free(w);
        return uid;
}

/* Ends and frees the write. Returns the uid of its object; free it. */
static char *write_end(ConfirmWrite *w) {
        queue_memory_end_write(w->owner->memory, w->uid);
        list_remove(&w->owner->writes, &w->writes);
        return write_free(w);
}

static void on_written(const KubeReply *reply, void *userdata) {
        ConfirmWrite *w = userdata;
        QueueConfirm *c = w->owner;
        const KubeNode *n = w->node ? cluster_view_node(c->o->view, w->node) : NULL;
        _cleanup_free_ char *uid = NULL;

        if (!reply->error && n)
                queue_voice_confirmed(c->o, n, w->notice, w->words);
        if (reply->error) {
                log_info(c->o->env->log, "Failed to write that AWS confirms a notice of an object with uid %s, asking AWS again: %s", w->uid,
                         strempty(reply->error->message));
                if (reply->error->http == 409) /* the object changed after it was read */
                        queue_confirm_note_held(c);
        }
        uid = write_end(w);
        c->written(uid, c->userdata);
}

/* NULL on ENOMEM. */
static ConfirmWrite *write_new(QueueConfirm *c, const KubeObject *o, const KubeNode *n, const Notice *notice, const Confirmed *answer) {
        ConfirmWrite *w = new0(ConfirmWrite, 1);

        if (!w)
                return NULL;
        w->owner = c;
        w->words = answer->words;
        if (free_and_strdup(&w->uid, o->meta.uid) >= 0 && (!n || free_and_strdup(&w->node, n->object.meta.name) >= 0) && notice_copy(notice, &w->notice) >= 0)
                return w;
        free(write_free(w));
        return NULL;
}

/* If another write on the object is under way, or for lack of memory, nothing is written: the next round asks again. */
static void write_let_go(QueueConfirm *c, const KubeObject *o, const KubeNode *n, const AnnouncedList *l, const Confirmed *answer) {
        const KubeTarget target = { .kind = o->kind, .name = o->meta.name };
        const KubeCallOptions options = { .guard = c->o->guard, .object_unread = true };
        _cleanup_(announced_list_done) AnnouncedList next = {};
        _cleanup_free_ char *body = NULL;
        const Announced *first;
        ConfirmWrite *w;

        if (list_let_go(l, answer, loop_wall(c->o->env->loop), &next, &first) < 0)
                return;
        body = queue_told_list_body(o, &next);
        w = body ? write_new(c, o, n, first->notice, answer) : NULL;
        if (!w)
                return;
        if (queue_memory_begin_write(c->memory, w->uid) <= 0) {
                free(write_free(w));
                return;
        }
        list_append(&c->writes, &w->writes);
        if (kube_patch(c->o->client, &target, KUBE_PATCH_MERGE, body, &options, on_written, w, &w->call) < 0)
                free(write_end(w));
}

static void confirm_machine(QueueConfirm *c, const Confirmed *answer) {
        QueueFound found = queue_find(c->o->view, answer->instance);

        remember(c, answer);
        if (found.claim)
                write_let_go(c, &found.claim->object, found.node, &found.claim->announced, answer);
        if (found.node)
                write_let_go(c, &found.node->object, found.node, &found.node->announced, answer);
}

/* -- answers that count for further notices --------------------------------------------------------------- */

static void *remembered_free(void *p) {
        Remembered *m = p;

        free(m->instance);
        return mfree(m);
}

/* Drops what is over, and the oldest if there are too many. */
static void remembered_make_room(QueueConfirm *c) {
        for (Remembered *m; (m = hashmap_first(c->remembered, NULL));) {
                if (loop_now(c->o->env->loop) < m->until_usec && hashmap_size(c->remembered) < REMEMBERED_MAX)
                        return;
                (void) hashmap_remove(c->remembered, m->instance);
                remembered_free(m);
        }
}

/* Keeps the gravest answer about each machine. Without memory nothing is kept: further notices are asked about. */
static void remember(QueueConfirm *c, const Confirmed *answer) {
        Remembered *m = hashmap_get(c->remembered, answer->instance);

        if (m && m->answer.rank > answer->rank)
                return;
        if (m) {
                (void) hashmap_remove(c->remembered, m->instance);
                remembered_free(m);
        }
        remembered_make_room(c);
        m = new0(Remembered, 1);
        if (!m)
                return;
        m->answer = *answer;
        m->until_usec = usec_add(loop_now(c->o->env->loop), REMEMBERED_USEC);
        m->answer.instance = m->instance = strdup(answer->instance);
        if (!m->instance || hashmap_put(c->remembered, m->instance, m) < 0)
                remembered_free(m);
}

bool queue_confirm_knows(const QueueConfirm *c, const char *instance, const Notice *n) {
        const Remembered *m = hashmap_get(c->remembered, instance);

        return m && loop_now(c->o->env->loop) < m->until_usec && confirms_notice(&m->answer, n, loop_wall(c->o->env->loop));
}

/* -- a round -------------------------------------------------------------------------------------------- */

static void round_end(QueueConfirm *c) {
        usec_t next = c->is_dirty ? TOGETHER_USEC : backoff_next(&c->backoff, c->o->env->random);

        for (size_t i = 0; i < c->n_machines; i++)
                free(c->machines[i].instance);
        c->events_at = c->events_end < c->n_machines ? c->events_end : 0;
        c->machines = mfree(c->machines);
        c->n_machines = c->question = c->region = c->at = c->n_batches = 0;
        c->is_dirty = false;
        timer_arm_in(c->round_timer, MAX(next, c->pause_usec));
        c->pause_usec = 0;
}

/* A machine in a zone that belongs to none of the regions counts as one of the queue's region. */
static size_t region_of(const QueueConfirm *c, const char *zone) {
        for (size_t i = 0; i < c->n_regions; i++)
                if (streq(zone, c->regions[i].name) || aws_zone_is_in_region(zone, c->regions[i].name))
                        return i;
        return 0;
}

static void regions_done(QueueConfirm *c) {
        for (size_t i = 0; i < c->n_regions; i++) {
                confirmation_client_free(c->regions[i].client);
                free(c->regions[i].name);
        }
        c->regions = mfree(c->regions);
        c->n_regions = 0;
        c->configured = strv_free(c->configured);
}

static int region_add(QueueConfirm *c, const char *name) {
        const CoordinatorConfig *config = c->o->config;
        Region *g = c->regions + c->n_regions;
        const char *endpoint;
        int r;

        for (size_t i = 0; i < c->n_regions; i++)
                if (streq(c->regions[i].name, name))
                        return 0;
        /* [Provider] Endpoint= applies to the region of provider ec2; without [Provider] Region= that is the queue's. */
        endpoint = streq(name, isempty(config->provider_region) ? sqs_client_region(c->o->sqs) : config->provider_region) ? config->provider_endpoint : NULL;
        r = confirmation_client_new(c->o->env, c->o->sqs, name, endpoint, &g->client);
        if (r == -EINVAL) {
                log_warning(c->o->env->log, "Failed to ask AWS about notices in region '%s' ([Queue] Regions=), ignoring: the region or the endpoint is not valid",
                            name);
                return 0;
        }
        if (r < 0)
                return r;
        g->name = strdup(name);
        if (!g->name) {
                g->client = confirmation_client_free(g->client);
                return -ENOMEM;
        }
        c->n_regions++;
        return 0;
}

/* Makes a client for the queue's region and for each of [Queue] Regions=, which a reload may change. While no call is under way. */
static int regions_update(QueueConfirm *c) {
        char *const *wanted = c->o->config->queue_regions;
        int r;

        if (c->regions && strv_equal(c->configured, wanted))
                return 0;
        regions_done(c);
        c->regions = new0(Region, 1 + strv_length(wanted));
        c->configured = strv_copy(wanted);
        r = c->regions && (c->configured || strv_length(wanted) == 0) ? region_add(c, sqs_client_region(c->o->sqs)) : -ENOMEM;
        for (size_t i = 0; r >= 0 && i < strv_length(wanted); i++)
                r = region_add(c, wanted[i]);
        if (r < 0)
                regions_done(c); /* the next round tries again */
        return r;
}

static int round_add(QueueConfirm *c, size_t *allocated, const char *provider_id, const AnnouncedList *l) {
        Ec2ProviderId id;
        Machine m;

        if (!announced_list_first(l, ANNOUNCED_HELD) || !provider_id || ec2_provider_id_parse(provider_id, &id) < 0 ||
            strlen(id.instance_id) > INSTANCE_ID_BYTES_MAX)
                return 0;
        m = (Machine){ .region = region_of(c, id.zone), .instance = strdup(id.instance_id) };
        if (!m.instance || GREEDY_REALLOC(c->machines, *allocated, c->n_machines + 1) < 0) {
                free(m.instance);
                return -ENOMEM;
        }
        c->machines[c->n_machines++] = m;
        return 0;
}

/* Returns true if the coordinator acts on what stands on the Node itself. A kubelet can write that of its own Node. */
static bool node_counts(const QueueConfirm *c, const KubeNode *n) {
        return c->o->config->queue_unmanaged == QUEUE_UNMANAGED_DRAIN && !queue_claim_that_counts(cluster_view_claim_of_node(c->o->view, n));
}

static void on_round_due(Timer *t, void *userdata) {
        QueueConfirm *c = userdata;
        const KubeNodeClaim *claim;
        const KubeNode *n;
        size_t allocated = 0;
        int r;

        if (c->call)
                return; /* round_end() arms the timer */
        r = regions_update(c);
        for (HashmapIterator it = {}; r >= 0 && cluster_view_iterate_claims(c->o->view, &it, &claim);)
                r = round_add(c, &allocated, claim->provider_id, &claim->announced);
        for (HashmapIterator it = {}; r >= 0 && cluster_view_iterate_nodes(c->o->view, &it, &n);)
                r = node_counts(c, n) ? round_add(c, &allocated, n->provider_id, &n->announced) : 0;
        c->events_end = SIZE_MAX;
        round_continue(c); /* after -ENOMEM: about the machines found so far */
}

/* Fills the batch with the next machines of this region. Returns how many. */
static size_t round_fill(QueueConfirm *c) {
        bool is_events = order[c->question] == CONFIRMATION_EVENTS;
        size_t n = 0;

        if (is_events && c->n_batches == 0)
                c->at = c->events_at;
        if (is_events && c->n_batches >= EVENTS_BATCHES_MAX)
                return 0;
        for (; c->at < c->n_machines && n < CONFIRMATION_BATCH_MAX; c->at++)
                if (c->machines[c->at].region == c->region)
                        c->batch[n++] = c->machines[c->at].instance;
        c->batch[n] = NULL;
        c->n_batches++;
        return n;
}

static void report_answer(QueueConfirm *c, ConfirmationQuestion q, const ConfirmationResult *result) {
        bool fails = result->outcome != CONFIRMATION_OK;

        if (fails && !c->fails[q])
                queue_voice_unconfirmed(c->o, confirmation_permission(q), result->message, result->outcome == CONFIRMATION_DENIED);
        c->fails[q] = fails;
}

static void round_next_region(QueueConfirm *c) {
        if (order[c->question] == CONFIRMATION_EVENTS)
                c->events_end = MIN(c->events_end, c->at);
        c->at = c->n_batches = 0;
        if (++c->region < c->n_regions)
                return;
        c->region = 0;
        c->question++;
}

static void on_answered(const ConfirmationResult *result, void *userdata) {
        QueueConfirm *c = userdata;
        bool failed = result->outcome != CONFIRMATION_OK;

        c->pause_usec = MAX(c->pause_usec, MIN(result->retry_after_usec, ROUND_CAP_USEC));
        report_answer(c, order[c->question], result);
        for (size_t i = 0; i < result->n_confirmed; i++)
                confirm_machine(c, result->confirmed + i);
        c->call = confirmation_call_free(c->call);
        if (failed) /* the same question would fail for the next batch, too */
                round_next_region(c);
        round_continue(c);
}

static void round_continue(QueueConfirm *c) {
        for (; c->question < ELEMENTSOF(order) && c->n_regions > 0; round_next_region(c))
                while (round_fill(c) > 0)
                        if (confirmation_ask(c->regions[c->region].client, order[c->question], c->batch, &c->o->guard, on_answered, c, &c->call) >= 0)
                                return;
        round_end(c);
}

void queue_confirm_note_held(QueueConfirm *c) {
        backoff_reset(&c->backoff);
        if (c->call)
                c->is_dirty = true;
        else
                timer_arm_earlier(c->round_timer, usec_add(loop_now(c->o->env->loop), TOGETHER_USEC));
}

/* -- life ----------------------------------------------------------------------------------------------- */

int queue_confirm_new(const QueueWorkerOptions *o, QueueMemory *memory, queue_confirm_written_t written, void *userdata, QueueConfirm **ret) {
        _cleanup_(queue_confirm_freep) QueueConfirm *c = new0(QueueConfirm, 1);
        int r;

        assert(o && memory && written && ret);
        if (!c)
                return -ENOMEM;
        *c = (QueueConfirm){ .o = o,
                             .memory = memory,
                             .written = written,
                             .userdata = userdata,
                             .backoff = { .base_usec = ROUND_BASE_USEC, .cap_usec = ROUND_CAP_USEC, .jitter_permille = JITTER_PERMILLE } };
        r = hashmap_new(HASHMAP_BORROW_KEYS, &c->remembered);
        if (r >= 0)
                r = timer_new(o->env->loop, "queue-confirm", on_round_due, c, &c->round_timer);
        if (r < 0)
                return r;
        timer_arm_in(c->round_timer, 0);
        *ret = TAKE_PTR(c);
        return 0;
}

QueueConfirm *queue_confirm_free(QueueConfirm *c) {
        if (!c)
                return NULL;
        confirmation_call_free(c->call);
        LIST_FOREACH (w, &c->writes, ConfirmWrite, writes)
                free(write_end(w));
        for (size_t i = 0; i < c->n_machines; i++)
                free(c->machines[i].instance);
        free(c->machines);
        regions_done(c);
        hashmap_free_with(c->remembered, remembered_free);
        timer_free(c->round_timer);
        return mfree(c);
}

void queue_confirm_next_wakeup(const QueueConfirm *c, Wakeups *w) {
        wakeups_unfinished(w, "confirmation of", "held notices", c->machines ? "a round" : "between rounds",
                           QUEUE_CONFIRM_WAKEUP_USEC);
        wakeups_timer(w, c->round_timer);
        wakeups_await(w, c->call);
}
