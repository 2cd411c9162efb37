/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl-status.h"

#include "claim-status.h"
#include "ctl-held.h"
#include "ctl-launch.h"
#include "ctl-say.h"
#include "hashmap.h"
#include "heard-conditions.h"
#include "interruption.h"
#include "marks.h"
#include "pod-names.h"
#include "reboot-slots.h"
#include "string-util.h"

/* Age at which a wait that should end by itself is shown in HELD-BY. */
#define PASSING_USEC USEC_PER_MINUTE

void object_list_done(ObjectList *l) {
        for (size_t i = 0; i < l->n_items; i++)
                kube_object_unref(l->items[i]);
        free(l->items);
        *l = (ObjectList){};
}

void ctl_snapshot_done(CtlSnapshot *s) {
        object_list_done(&s->nodes);
        object_list_done(&s->claims);
        free(s->leader);
        free(s->unknown);
        free(s->pause_unknown);
        pause_mark_done(&s->pause);
        *s = (CtlSnapshot){};
}

static void status_row_done(StatusRow *row) {
        for (size_t i = 0; row->told && i < row->n_blockers; i++) {
                free(row->told[i].pod);
                free(row->told[i].reason);
                free(row->told[i].pdb);
                free(row->told[i].message);
        }
        free(row->told);
        free(row->asked);
        free(row->phase);
}

void status_rows_done(StatusRows *r) {
        for (size_t i = 0; i < r->n_rows; i++)
                status_row_done(r->rows + i);
        free(r->rows);
        *r = (StatusRows){};
}

/* -- rows ----------------------------------------------------------------------------------------------- */

typedef struct ClaimEntry {
        const KubeNodeClaim *claim;
        struct ClaimEntry *next_of_node; /* another claim that names the same Node */
        bool has_node;
} ClaimEntry;

/* The claims of a snapshot by the Node that they name and by providerID: a cluster has thousands of both. */
typedef struct ClaimIndex {
        ClaimEntry *entries;
        size_t n_entries;
        Hashmap *of_node; /* node name -> the first ClaimEntry that names it */
        Hashmap *of_id;   /* providerID -> the last ClaimEntry that has it */
} ClaimIndex;

static void claim_index_done(ClaimIndex *x) {
        free(x->entries);
        hashmap_free(x->of_node);
        hashmap_free(x->of_id);
}

/* Of no Node, though it names one: the coordinator does not act on it. */
static const Condition *not_adopted(const KubeNodeClaim *c) {
        const Condition *k = kube_node_claim_condition(c, CLAIM_NOT_ADOPTED);

        return k && k->status == CONDITION_TRUE ? k : NULL;
}

static int claim_index_put(ClaimIndex *x, ClaimEntry *e) {
        void *next = NULL;
        int r;

        if (!e->claim->provider_id || not_adopted(e->claim))
                return 0;
        r = hashmap_put(x->of_id, e->claim->provider_id, e);
        if (r < 0 && r != -EEXIST)
                return r;
        if (!e->claim->node_name)
                return 0;
        r = hashmap_replace(x->of_node, e->claim->node_name, e, &next);
        e->next_of_node = next;
        return r;
}

static int claim_index_make(ClaimIndex *x, const ObjectList *claims) {
        int r;

        r = hashmap_new(HASHMAP_BORROW_KEYS, &x->of_node);
        if (r < 0)
                return r;
        r = hashmap_new(HASHMAP_BORROW_KEYS, &x->of_id);
        if (r < 0 || claims->n_items == 0)
                return r;
        x->entries = new0(ClaimEntry, claims->n_items);
        if (!x->entries)
                return -ENOMEM;
        x->n_entries = claims->n_items;
        for (size_t i = claims->n_items; i > 0; i--) {
                x->entries[i - 1].claim = (const KubeNodeClaim *) claims->items[i - 1];
                r = claim_index_put(x, &x->entries[i - 1]);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* It names its machine by this Node, or has its providerID and names it by none. */
static bool is_machine_of(const KubeNodeClaim *c, const KubeNode *n) {
        const char *name = machine_id_node_name(c->provider_id);

        return name ? streq(name, n->object.meta.name) : streq_ptr(c->provider_id, n->provider_id);
}

/* The claim of this Node, which has one from now on: the one that names it, else one of its machine. */
static const KubeNodeClaim *claim_of(ClaimIndex *x, const KubeNode *n) {
        ClaimEntry *e;

        for (e = hashmap_get(x->of_node, n->object.meta.name); e; e = e->next_of_node)
                if (is_machine_of(e->claim, n))
                        break;
        if (!e && n->provider_id)
                e = hashmap_get(x->of_id, n->provider_id);
        if (e && !is_machine_of(e->claim, n))
                e = NULL;
        if (!e && n->named_id)
                e = hashmap_get(x->of_id, n->named_id);
        if (!e)
                return NULL;
        e->has_node = true;
        return e->claim;
}

static bool is_waited_for(const ClaimBlocker *b) {
        return !streq_ptr(b->reason, POD_WAIT_NAME_COMES_BACK);
}

/* Returns true if the wait ends without a person, and is not known to last longer than such a wait should. */
static bool passes_soon(const ClaimBlocker *b, usec_t now_usec) {
        PodWait wait = pod_wait_from_string(b->reason);

        return pod_wait_passes(wait) && (pod_wait_is_turn(wait) || b->since_usec == 0 || now_usec < usec_add(b->since_usec, PASSING_USEC));
}

/* Returns the first that somebody may have to do something about, else the first whose wait should be over; NULL: nothing holds the node. */
static const ClaimBlocker *holder_of(const KubeNodeClaim *c, usec_t now_usec) {
        const ClaimBlocker *late = NULL;

        for (size_t i = 0; i < c->n_blockers; i++)
                if (!pod_wait_passes(pod_wait_from_string(c->blockers[i].reason)))
                        return c->blockers + i;
                else if (!late && !passes_soon(c->blockers + i, now_usec))
                        late = c->blockers + i;
        return late;
}

/* What holds it: a pod, or the cloud. */
static void describe_claim(StatusRow *row, const KubeNodeClaim *c, usec_t now_usec) {
        const ClaimBlocker *b = holder_of(c, now_usec);

        row->blockers = c->blockers;
        row->n_blockers = c->n_blockers;
        row->claim = c->object.meta.name;
        row->pool = c->node_pool;
        row->pods_left = c->pods_left;
        if (c->object.meta.deletion_usec > 0)
                row->since_usec = c->object.meta.deletion_usec;
        if (c->deadline_usec > 0)
                row->deadline_usec = c->deadline_usec;
        else if (c->object.meta.deletion_usec > 0 && c->termination_grace_usec != USEC_INFINITY)
                row->deadline_usec = usec_add(c->object.meta.deletion_usec, c->termination_grace_usec);

        if (b) {
                row->pod = b->pod;
                row->reason = b->reason;
                row->pdb = b->pdb;
                row->message = b->message;
                row->since_usec = b->since_usec ? b->since_usec : row->since_usec;
        } else if (c->last_cloud_error) {
                row->reason = "Cloud";
                row->message = c->last_cloud_error;
        } else if (not_adopted(c)) {
                row->reason = not_adopted(c)->reason;
                row->message = not_adopted(c)->message;
        }
        row->no_deadline_ever =
                c->object.meta.deletion_usec > 0 && c->termination_grace_usec == USEC_INFINITY &&
                row->deadline_usec == USEC_INFINITY && row->pod && !pod_wait_passes(pod_wait_from_string(row->reason));
}

static void describe_blocked(StatusRow *row, const KubeNode *n) {
        const Condition *c = kube_node_condition(n, CONDITION_TERMINATION_BLOCKED);

        if (!c || c->status != CONDITION_TRUE || row->pod)
                return;
        row->reason = c->reason;
        row->message = c->message;
        row->since_usec = c->last_transition_usec ? c->last_transition_usec : row->since_usec;
}

/* As claim-status.c writes a blocker: the detail is a PDB's name, or for people. */
static int take_blocker(ClaimBlocker *to, const InterruptionBlocker *from) {
        PodWait wait = pod_wait_from_string(from->reason);

        to->pod = strdup(from->pod);
        to->reason = strdup(from->reason);
        if (!isempty(from->detail) && pod_wait_is_of_pdb(wait))
                to->pdb = strf("%.*s/%s", (int) (strchr(from->pod, '/') - from->pod), from->pod, from->detail);
        else if (!isempty(from->detail))
                to->message = strdup(from->detail);
        return to->pod && to->reason && (to->pdb || to->message || isempty(from->detail)) ? 0 : -ENOMEM;
}

/* The pods that hold the coordinator's drain. */
static int take_blockers(StatusRow *row, const Interruption *i) {
        int r = 0;

        if (!i || i->n_blockers == 0 || row->n_blockers > 0 || streq(i->blockers->reason, POD_WAIT_NAME_COMES_BACK))
                return 0;
        row->told = new0(ClaimBlocker, i->n_blockers);
        if (!row->told)
                return -ENOMEM;
        row->blockers = row->told;
        while (r >= 0 && row->n_blockers < i->n_blockers) {
                r = take_blocker(row->told + row->n_blockers, i->blockers + row->n_blockers);
                row->n_blockers++;
        }
        if (r < 0)
                return r;
        row->pod = row->told->pod;
        row->reason = row->told->reason;
        row->pdb = row->told->pdb;
        return 0;
}

/* Kept, and drained for what the interruption queue told: what the coordinator says of that while it goes on. -ENOMEM. */
static int describe_heard(StatusRow *row, const KubeNode *n) {
        static const char *const types[] = { CONDITION_DRAIN_IN_PROGRESS, CONDITION_MAINTENANCE_PLANNED };

        for (size_t i = 0; i < ELEMENTSOF(types) && !row->reason; i++) {
                const Condition *c = kube_node_condition(n, types[i]);

                if (!condition_is_of_coordinator(c) || c->status != CONDITION_TRUE)
                        continue;
                row->reason = HELD_BY_QUEUE_DRAIN;
                row->message = c->message;
                row->since_usec = c->last_transition_usec;
                return take_blockers(row, n->heard);
        }
        return 0;
}

/* Returns the time that a notice of the queue gives the node; a held one gives none. */
static usec_t queue_deadline(const StatusRow *row, const Notice *notice) {
        const HeldNotices h = held_notices(row->kube_node, row->kube_claim);
        const Announced *a = announced_list_find(h.announced, notice->id);

        return a && a->state == ANNOUNCED_HELD ? USEC_INFINITY : notice_announced(notice);
}

/* Shows how far the drain is that the Node reports: the agent's, or the coordinator's for its interruption queue. i NULL: unreadable. */
static int describe_interruption(StatusRow *row, const Interruption *i, bool is_queue) {
        const char *phase = i ? interruption_phase_to_string(i->phase) : NULL;

        if (i) {
                if (interruption_is_overruled(i) && row->phase)
                        return 0;
                if (row->pods_left < 0 && !interruption_is_over(i))
                        row->pods_left = i->pods_left;
                if (i->phase != INTERRUPTION_CANCELLED)
                        row->deadline_usec = MIN(row->deadline_usec, is_queue ? queue_deadline(row, i->notice) : notice_announced(i->notice));
        }
        if (row->phase && !streq(row->phase, "Adopted"))
                return 0; /* the coordinator takes part: its word is the newer */
        free(row->phase);
        row->phase = strf("%s%s (%s)", row->is_held && is_queue ? "Held, " : "", isempty(phase) ? "Interrupted" : phase, is_queue ? "queue" : "agent");
        return row->phase ? 0 : -ENOMEM;
}

static bool tells_of_drain(const KubeNode *n) {
        return object_meta_annotation(&n->object.meta, ANNOTATION_INTERRUPTION) || object_meta_annotation(&n->object.meta, ANNOTATION_HEARD) ||
               announced_list_open(&n->announced);
}

/* -- reboots, plans, and machines that are off -------------------------------------------------------------- */

static const char *reboot_phase(RebootRequestState s) {
        switch (s) {
        case REBOOT_REQUEST_WAITING:
                return REBOOT_SLOT_WAITING;
        case REBOOT_REQUEST_HOLDS_SLOT:
                return REBOOT_SLOT_GRANTED;
        case REBOOT_REQUEST_EXPIRED:
                return REBOOT_SLOT_EXPIRED;
        case REBOOT_REQUEST_NONE:
        case REBOOT_REQUEST_INVALID:
        case REBOOT_REQUEST_OVER:
        case REBOOT_REQUEST_LEAVING:
        case _REBOOT_REQUEST_STATE_MAX:
                break;
        }
        return NULL;
}

static const Condition *plan_of(const KubeNode *n) {
        const Condition *k = kube_node_condition(n, CONDITION_MAINTENANCE_PLANNED);

        return k && k->status == CONDITION_TRUE && !condition_is_of_coordinator(k) && !kube_node_standing_interruption(n) ? k : NULL;
}

/* Shows the slot that the agent asks for or holds, unless a drain or a removal is shown already. */
static int describe_reboot(StatusRow *row, const RebootCase *c) {
        const char *phase = reboot_phase(c->request_state);

        if (!phase)
                return 0;
        /* An announced reboot that is taken early comes before the time that the cloud gave. */
        if (c->request_state == REBOOT_REQUEST_HOLDS_SLOT && c->event)
                row->deadline_usec = MIN(row->deadline_usec, c->granted_until_usec);
        if (row->phase && !streq(row->phase, "Adopted"))
                return 0;
        if (c->request_state == REBOOT_REQUEST_EXPIRED)
                row->since_usec = c->granted_until_usec;
        return free_and_strdup(&row->phase, phase);
}

/* Shows that the coordinator has found the machine off, or a plan of the agent, where nothing else is shown. */
static int describe_machine(StatusRow *row, const KubeNode *n) {
        const char *off = object_meta_annotation(&n->object.meta, ANNOTATION_OUT_OF_SERVICE);

        if (row->phase && !streq(row->phase, "Adopted"))
                return 0;
        if (off) {
                (void) rfc3339_parse(off, &row->since_usec);
                return free_and_strdup(&row->phase, NODE_OUT_OF_SERVICE);
        }
        row->plan = plan_of(n);
        return row->plan && !row->phase ? free_and_strdup(&row->phase, "Planned (agent)") : 0;
}

static bool is_attended(const KubeNode *n, const RebootCase *c) {
        return tells_of_drain(n) || reboot_phase(c->request_state) || plan_of(n) ||
                object_meta_annotation(&n->object.meta, ANNOTATION_OUT_OF_SERVICE);
}

static bool is_managed(const KubeNode *n, const KubeNodeClaim *c, const RebootCase *reboot) {
        return c || object_meta_has_finalizer(&n->object.meta, FINALIZER_TERMINATION) || is_attended(n, reboot);
}

static int set_phase(StatusRow *row, const KubeNode *n, const KubeNodeClaim *c, const RebootCase *reboot) {
        const char *phase = "Adopting";

        if (n && !is_managed(n, c, reboot))
                phase = "Unmanaged";
        else if (!n && c && launch_is_without_node(c))
                phase = isempty(c->phase) ? CLAIM_PHASE_LAUNCHING : c->phase;
        else if (!n)
                phase = c && not_adopted(c) ? CLAIM_PHASE_NOT_ADOPTED : "NodeAbsent";
        else if (c && !isempty(c->phase))
                phase = c->phase;
        else if (!c && is_attended(n, reboot))
                return 0; /* the Node itself has more to show */
        row->phase = strdup(phase);
        return row->phase ? 0 : -ENOMEM;
}

/* Shows the earliest time of the notices that are not held. No drain has begun. */
static int describe_announced(StatusRow *row, const KubeNodeClaim *c) {
        const HeldNotices h = held_notices(row->kube_node, c);
        const Announced *first = held_first(&h, ANNOUNCED_STANDS);

        if ((!first && !row->is_held) || (c && c->object.meta.deletion_usec > 0))
                return 0;
        if (first)
                row->deadline_usec = MIN(row->deadline_usec, notice_announced(first->notice));
        if (row->phase && !(row->is_held && streq(row->phase, "Adopted")))
                return 0;
        return free_and_strdup(&row->phase, row->is_held ? "Held (queue)" : "Planned (queue)");
}

static bool is_held(const KubeNode *n, const KubeNodeClaim *c) {
        const HeldNotices h = held_notices(n, c);

        return held_state(&h) != HELD_NOTHING && h.object->meta.deletion_usec == 0;
}

static int describe_node(StatusRow *row, const KubeNode *n, const KubeNodeClaim *c, const RebootCase *reboot) {
        bool is_heard = object_meta_annotation(&n->object.meta, ANNOTATION_HEARD);
        const Interruption *agents = kube_node_interruption(n);
        int r = 0;

        describe_blocked(row, n);
        if (agents || n->interruption_is_unreadable)
                r = describe_interruption(row, agents, false);
        if (r >= 0 && !is_heard)
                r = describe_announced(row, c);
        else if (r >= 0 && (!row->phase || streq(row->phase, "Adopted"))) {
                r = describe_heard(row, n);
                if (r >= 0)
                        r = describe_interruption(row, n->heard, true);
        }
        if (r >= 0)
                r = describe_reboot(row, reboot);
        if (r >= 0)
                r = describe_machine(row, n);
        if (r >= 0 && !row->phase) /* a notice that was withdrawn, or of an earlier boot */
                r = free_and_strdup(&row->phase, object_meta_has_finalizer(&n->object.meta, FINALIZER_TERMINATION) ? "Adopting" : "Unmanaged");
        return r;
}

/* Shows a machine that vesper asks for, or that has no Node yet: what is asked, since when, and why it is not there. -ENOMEM. */
static int describe_launch(StatusRow *row, const KubeNodeClaim *c) {
        LaunchState state = launch_state(c);
        _cleanup_free_ char *what = launch_request_text(c);

        row->asked = what ? strf("%s, in the place of NodeClaim %s, attempt %lld", what, c->replaces[0], (long long) c->attempt) : NULL;
        if (!row->asked)
                return -ENOMEM;
        if (state != LAUNCH_STATE_DELETED) {
                row->since_usec = c->request.since_usec;
                row->deadline_usec = launch_asked_until(c);
        }
        if (!row->reason && state != LAUNCH_STATE_ASKED && state != LAUNCH_STATE_LAUNCHED) {
                row->reason = launch_state_to_string(state);
                row->message = c->request.message;
        }
        return 0;
}

static int add_row(StatusRows *r, const KubeNode *n, const KubeNodeClaim *c, const RebootCase *reboot, usec_t now_usec) {
        StatusRow *row;
        int k;

        k = GREEDY_REALLOC(r->rows, r->allocated, r->n_rows + 1);
        if (k < 0)
                return k;
        row = r->rows + r->n_rows++;
        *row = (StatusRow){ .kube_node = n,
                            .kube_claim = c,
                            .is_held = is_held(n, c),
                            .node = n ? n->object.meta.name : NULL,
                            .pods_left = -1,
                            .deadline_usec = USEC_INFINITY };
        if (c)
                describe_claim(row, c, now_usec);
        if (c && launch_is_without_node(c))
                k = describe_launch(row, c);
        if (k >= 0)
                k = set_phase(row, n, c, reboot);
        return k < 0 || !n ? k : describe_node(row, n, c, reboot);
}

static int by_node(const void *a, const void *b) {
        const StatusRow *x = a, *y = b;
        int k = strcmp(strempty(x->node), strempty(y->node));

        return k != 0 ? k : strcmp(strempty(x->claim), strempty(y->claim));
}

static int make_rows(StatusRows *r, ClaimIndex *x, const ObjectList *nodes, bool named, usec_t now_usec) {
        int k;

        for (size_t i = 0; i < nodes->n_items; i++) {
                const KubeNode *n = (const KubeNode *) nodes->items[i];
                const KubeNodeClaim *c = claim_of(x, n);
                _cleanup_(reboot_case_done) RebootCase reboot = {};

                k = reboot_case_read(n, now_usec, USEC_PER_DAY, &reboot);
                if (k >= 0 && (named || is_managed(n, c, &reboot)))
                        k = add_row(r, n, c, &reboot, now_usec);
                if (k < 0)
                        return k;
        }
        for (size_t i = 0; !named && i < x->n_entries; i++) {
                if (x->entries[i].has_node)
                        continue;
                k = add_row(r, NULL, x->entries[i].claim, NULL, now_usec);
                if (k < 0)
                        return k;
        }
        return 0;
}

int status_rows_make(const CtlSnapshot *s, StatusRows *ret) {
        _cleanup_(claim_index_done) ClaimIndex index = {};
        int r;

        assert(s && ret);
        *ret = (StatusRows){};
        r = claim_index_make(&index, &s->claims);
        if (r >= 0)
                r = make_rows(ret, &index, &s->nodes, s->named, s->now_usec);
        if (r < 0) {
                status_rows_done(ret);
                return r;
        }
        if (ret->n_rows > 0)
                qsort(ret->rows, ret->n_rows, sizeof(StatusRow), by_node);
        return 0;
}

/* -- the table ------------------------------------------------------------------------------------------ */

enum { NODE, POOL, PHASE, PODS_LEFT, HELD_BY, SINCE, DEADLINE, N_COLUMNS };

static const char *const column_names[N_COLUMNS] = {
        [NODE] = "NODE",       [POOL] = "POOL",   [PHASE] = "PHASE",       [PODS_LEFT] = "PODS-LEFT",
        [HELD_BY] = "HELD-BY", [SINCE] = "SINCE", [DEADLINE] = "DEADLINE",
};

static void add_cell(StrBuf *b, const StatusRow *row, usec_t now_usec, unsigned column) {
        if (column == NODE)
                strbuf_addf(b, row->node ? "%s" : "(%s)", row->node ? row->node : row->claim);
        else if (column == POOL)
                strbuf_add(b, strempty(row->pool));
        else if (column == PHASE)
                strbuf_add(b, strempty(row->phase));
        else if (column == PODS_LEFT && row->pods_left >= 0)
                strbuf_addf(b, "%lld", (long long) row->pods_left);
        else if (column == HELD_BY && row->pod)
                strbuf_addf(b, "%s (%s%s%s)", row->pod, strempty(row->reason), row->pdb ? " " : "",
                            strempty(row->pdb));
        else if (column == HELD_BY)
                strbuf_add(b, strempty(row->reason));
        else if (column == SINCE && row->since_usec > 0)
                ctl_add_age(b, usec_sub(now_usec, row->since_usec));
        else if (column == DEADLINE && row->deadline_usec != USEC_INFINITY) {
                bool ahead = row->deadline_usec > now_usec;

                strbuf_add(b, ahead ? "in " : "");
                ctl_add_age(b, ahead ? row->deadline_usec - now_usec : now_usec - row->deadline_usec);
                strbuf_add(b, ahead ? "" : " ago");
        }
}

static void add_rows(StrBuf *b, const StatusRows *r, usec_t now_usec) {
        _cleanup_(ctl_table_done) CtlTable t = CTL_TABLE(N_COLUMNS);

        for (unsigned c = 0; c < N_COLUMNS; c++)
                ctl_table_add(&t, column_names[c]);
        for (size_t i = 0; i < r->n_rows; i++)
                for (unsigned c = 0; c < N_COLUMNS; c++) {
                        _cleanup_strbuf_ StrBuf cell = {};

                        add_cell(&cell, r->rows + i, now_usec, c);
                        t.failed = t.failed || cell.failed;
                        ctl_table_add(&t, strbuf_str(&cell));
                }
        ctl_table_print(&t, b);
}

static bool leader_expired(const CtlSnapshot *s) {
        return !isempty(s->leader) && s->leader_seen_usec > 0 && usec_add(s->leader_seen_usec, s->lease_usec) < s->now_usec;
}

static void add_leader(StrBuf *b, const CtlSnapshot *s) {
        size_t before = b->size;

        if (!s->leader)
                return;
        if (isempty(s->leader))
                strbuf_add(b, "Leader: nobody. Is vesper-coordinator running?");
        else if (leader_expired(s)) {
                strbuf_addf(b, "Leader: nobody; last seen was %s, ", s->leader);
                ctl_add_age(b, s->now_usec - s->leader_seen_usec);
                strbuf_add(b, " ago. Is vesper-coordinator running?");
        } else
                strbuf_addf(b, "Leader: %s", s->leader);
        ctl_make_plain(b, before);
        strbuf_add_char(b, '\n');
}

/* Adds a line about a pause of all removals: since when, by whom, how to lift it. */
static void add_pause(StrBuf *b, const CtlSnapshot *s) {
        _cleanup_free_ char *text = NULL;
        size_t before = b->size;

        if (!s->pause.is_paused)
                return;
        text = pause_mark_text(&s->pause);
        b->failed = b->failed || !text;
        strbuf_addf(b, "Paused: no removal of a node begins%s", strempty(text));
        if (s->pause.since_usec > 0) {
                strbuf_add(b, ", ");
                ctl_add_age(b, usec_sub(s->now_usec, s->pause.since_usec));
                strbuf_add(b, " ago");
        }
        /* The record may be older than the pause: kubectl can lift one and set another without touching it. */
        strbuf_add(b, startswith(strempty(s->pause.command), "release")
                              ? ". If that release does not run any more, 'vesperctl resume' lifts the pause."
                              : ". 'vesperctl resume' lifts the pause.");
        ctl_make_plain(b, before);
        strbuf_add_char(b, '\n');
}

/* Adds a line about nodes whose notices the brake of the interruption queue holds: why, what happens, how to let them go. */
static void add_held(StrBuf *b, const StatusRows *r) {
        size_t n = 0;

        for (size_t i = 0; i < r->n_rows; i++)
                n += r->rows[i].is_held;
        if (n > 0)
                strbuf_addf(b, "Held: %zu node%s, because " HELD_BECAUSE ". %s cordoned and drained as PodDisruptionBudgets allow, and no machine is ended. "
                               "'vesperctl let-go --all' shows what was announced. If AWS takes these machines, --yes confirms the notices. If the notices are false, "
                               "close the queue to their sender, then run 'vesperctl undrain NODE...'.\n",
                            n, n == 1 ? "" : "s", n == 1 ? "It is" : "They are");
}

static void add_note(StrBuf *b, const char *fmt, ...) _printf_(2, 3);
static void add_note(StrBuf *b, const char *fmt, ...) {
        size_t before;
        va_list ap;

        strbuf_add_char(b, '\n');
        before = b->size;
        va_start(ap, fmt);
        strbuf_addv(b, fmt, ap);
        va_end(ap);
        ctl_make_plain(b, before);
        strbuf_add_char(b, '\n');
}

/* What the columns have no room for, and what to do. */
static void add_notes(StrBuf *b, const StatusRows *r) {
        for (size_t i = 0; i < r->n_rows; i++) {
                const StatusRow *row = r->rows + i;

                if (row->no_deadline_ever && isempty(row->pool))
                        add_note(b,
                                 "%s waits for pod %s for ever: terminationGracePeriod is unset on NodeClaim %s. "
                                 "Take its do-not-evict key off, give its budget room, or delete the pod.",
                                 row->node ? row->node : row->claim, row->pod, row->claim);
                else if (row->no_deadline_ever)
                        add_note(b,
                                 "%s waits for pod %s for ever: terminationGracePeriod is unset on NodeClaim %s, and on NodePool %s for new ones. "
                                 "'vesperctl explain %s' says what would free it.",
                                 row->node ? row->node : row->claim, row->pod, row->claim,
                                 strempty(row->pool), row->node ? row->node : row->claim);
                if (row->plan && !isempty(row->plan->message))
                        add_note(b, "%s: planned: %s", row->node, row->plan->message);
                if (row->asked)
                        add_note(b, "%s: %s. 'vesperctl explain nodeclaim/%s' says what follows.", row->claim, row->asked, row->claim);
                if (!isempty(row->message))
                        add_note(b, "%s: %s: %s", row->node ? row->node : row->claim, strempty(row->reason),
                                 row->message);
        }
}

/* Of named nodes: every pod that holds one, and what holds the pod. */
static void add_blockers(StrBuf *b, const StatusRows *r, usec_t now_usec) {
        for (size_t i = 0; i < r->n_rows; i++) {
                for (size_t k = 0; k < r->rows[i].n_blockers; k++) {
                        const ClaimBlocker *blocker = r->rows[i].blockers + k;
                        size_t before = b->size;

                        strbuf_addf(b, "%s%s %s%s%s: %s%s%s", k == 0 ? "\n" : "", strempty(r->rows[i].node),
                                    !is_waited_for(blocker) ? "does not wait" : "waits", blocker->pod ? " for " : "", strempty(blocker->pod), strempty(blocker->reason),
                                    blocker->pdb ? " " : "", strempty(blocker->pdb));
                        if (blocker->since_usec > 0) {
                                strbuf_add(b, " for ");
                                ctl_add_age(b, usec_sub(now_usec, blocker->since_usec));
                        }
                        ctl_make_plain(b, before + (k == 0));
                        strbuf_add_char(b, '\n');
                }
        }
}

char *status_rows_table(const StatusRows *r, const CtlSnapshot *s) {
        StrBuf b = {};

        add_leader(&b, s);
        add_pause(&b, s);
        add_held(&b, r);
        if (s->unknown && r->n_rows == 0)
                strbuf_add(&b, "No node is interrupted.\n");
        else if (r->n_rows == 0)
                strbuf_add(&b, "No node is managed: no NodePool selects one, or none was adopted yet. "
                               "'kubectl describe nodepools.vesper.sh' says why.\n");
        else {
                add_rows(&b, r, s->now_usec);
                add_notes(&b, r);
                if (s->named)
                        add_blockers(&b, r, s->now_usec);
        }
        if (s->unknown)
                add_note(&b, "%s", s->unknown);
        if (s->pause_unknown)
                add_note(&b, "%s", s->pause_unknown);
        return strbuf_steal(&b);
}

/* -- JSON ----------------------------------------------------------------------------------------------- */

static void add_blockers_json(JsonWriter *w, const StatusRow *row) {
        json_open_array(w, "blockers");
        for (size_t i = 0; i < row->n_blockers; i++) {
                const ClaimBlocker *b = row->blockers + i;

                json_open_object(w, NULL);
                json_add_string(w, "pod", b->pod);
                json_add_string(w, "reason", b->reason);
                json_add_string(w, "pdb", b->pdb);
                json_add_string(w, "message", b->message);
                json_add_time(w, "since", b->since_usec);
                json_close_object(w);
        }
        json_close_array(w);
}

static void add_row_json(JsonWriter *w, const StatusRow *row, bool named) {
        json_open_object(w, NULL);
        json_add_string(w, "node", row->node);
        json_add_string(w, "nodeClaim", row->claim);
        json_add_string(w, "nodePool", row->pool);
        json_add_string(w, "phase", row->phase);
        json_add_string(w, "asked", row->asked);
        json_add_string(w, "successor", row->kube_claim ? row->kube_claim->successor : NULL);
        if (row->pods_left >= 0)
                json_add_int64(w, "podsLeft", row->pods_left);
        if (row->pod || row->reason) {
                json_open_object(w, "heldBy");
                json_add_string(w, "pod", row->pod);
                json_add_string(w, "reason", row->reason);
                json_add_string(w, "pdb", row->pdb);
                json_add_string(w, "message", row->message);
                json_close_object(w);
        }
        json_add_string(w, "planned", row->plan ? row->plan->message : NULL);
        json_add_time(w, "since", row->since_usec);
        json_add_time(w, "deadline", row->deadline_usec);
        json_add_bool(w, "waitsForEver", row->no_deadline_ever);
        if (row->is_held)
                json_add_bool(w, "held", true);
        if (named)
                add_blockers_json(w, row);
        json_close_object(w);
}

/* Machines that are no nodes yet; nothing where there are none. */
static void add_launches_json(JsonWriter *w, const StatusRows *r) {
        size_t n = 0;

        for (size_t i = 0; i < r->n_rows; i++) {
                if (!r->rows[i].asked)
                        continue;
                if (n++ == 0)
                        json_open_array(w, "launches");
                add_row_json(w, r->rows + i, false);
        }
        if (n > 0)
                json_close_array(w);
}

static void add_pause_json(JsonWriter *w, const PauseMark *m) {
        if (!m->is_paused)
                return;
        json_open_object(w, "paused");
        json_add_string(w, "by", m->by);
        json_add_string(w, "command", m->command);
        json_add_time(w, "since", m->since_usec);
        json_close_object(w);
}

char *status_rows_json(const StatusRows *r, const CtlSnapshot *s) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_object(w, NULL);
        json_add_string(w, "leader", leader_expired(s) ? "" : s->leader);
        if (leader_expired(s))
                json_add_string(w, "lastLeader", s->leader);
        add_pause_json(w, &s->pause);
        json_add_string(w, "pauseUnknown", s->pause_unknown);
        json_open_array(w, "nodes");
        for (size_t i = 0; i < r->n_rows; i++)
                if (!r->rows[i].asked)
                        add_row_json(w, r->rows + i, s->named);
        json_close_array(w);
        add_launches_json(w, r);
        if (s->unknown)
                json_add_string(w, "unknown", s->unknown);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}
