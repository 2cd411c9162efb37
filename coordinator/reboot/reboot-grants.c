/* SPDX-License-Identifier: Apache-2.0 */
#include "reboot-grants.h"

#include <stdlib.h>

#include "coordinator-metrics.h"
#include "hashmap.h"
#include "log-catalog.h"
#include "log.h"
#include "marks.h"
#include "parse-util.h"
#include "reboot-slots.h"
#include "string-util.h"

#define SETTLE_USEC (30 * USEC_PER_SEC)
#define PROOF_PAGE 500u
#define PROOF_PAGE_BYTES_MAX (64u << 20)
#define PROOF_TIMEOUT_USEC (30 * USEC_PER_SEC)
/* So many of those that wait hear of each change of those that hold; each hears of the first. */
#define TOLD_MAX 10u
#define NAMES_MAX 3u
/* One that a budget has refused is asked for again after so long, if that did not change before. */
#define BUDGET_AGAIN_USEC USEC_PER_MINUTE
/* A grant that is none of ours may be written again as soon as it is off. */
#define TOO_LONG_TOLD_USEC (10 * USEC_PER_MINUTE)

/* A node that asks, or carries an answer. */
typedef struct Entry {
        RebootCase c;
        char *version; /* of the Node that c was read from */
        char *slot_id; /* of the request that has held a slot, and whose charges have not been released;
                          NULL: none */
        char *told;    /* what its Event said last */
        RebootRequestState told_request_state;
        usec_t asked_usec;    /* loop_now(): when its request was first seen */
        bool goes_last;       /* its last slot ran out, or it carried a grant that is none of ours */
        char *refused;        /* what its budgets say, until then: */
        usec_t refused_until_usec; /* loop_now() */
        usec_t too_long_usec; /* loop_now(): when it was told last that its grant is none of ours; 0: never */
} Entry;

/* A grant that the view may not show yet: on its way, or found in the list. */
typedef struct Unseen {
        char *node, *id;
        char *version;     /* on its way: what it was decided on; found: what it was found in */
        usec_t until_usec; /* found */
} Unseen;

typedef enum Proof { PROOF_NONE, PROOF_ASKED, PROOF_DONE } Proof;

struct RebootGrants {
        const TerminationContext *context;
        Log *log;
        WorkQueue *queue;
        ObjectWrites *writes;
        Hashmap *entries; /* by the Node's name */
        Unseen *sent;     /* NULL: none is on its way */
        BudgetRequest *asked; /* for the node of that name and request; NULL: nobody's budgets are asked */
        char *asked_node, *asked_id;
        bool admitted;    /* they have let it go */
        Hashmap *found;   /* Unseen by the Node's name */
        Proof proof;
        KubeCall *call;
        usec_t settled_usec; /* loop_now() */
        usec_t slot_usec;    /* the longest RebootSlotSec= there was: a reload may have made it shorter */
};

/* Time after which object-writes.h sends a write again if the watch has not shown it. */
#define SEEN_WITHIN_USEC (10 * USEC_PER_MINUTE)

/* -- entries -------------------------------------------------------------------------------------------- */

static void *entry_free(void *p) {
        Entry *e = p;

        reboot_case_done(&e->c);
        free(e->version);
        free(e->slot_id);
        free(e->told);
        free(e->refused);
        return mfree(e);
}

static void *unseen_free(void *p) {
        Unseen *u = p;

        if (!u)
                return NULL;
        free(u->node);
        free(u->id);
        free(u->version);
        return mfree(u);
}

static Unseen *unseen_new(const char *node, const char *id, const char *version, usec_t until_usec) {
        Unseen *u = new0(Unseen, 1);

        if (!u)
                return NULL;
        u->until_usec = until_usec;
        if (free_and_strdup(&u->node, node) < 0 || free_and_strdup(&u->id, id) < 0 ||
            free_and_strdup(&u->version, version) < 0)
                return unseen_free(u);
        return u;
}

static usec_t wall(const RebootGrants *g) {
        return loop_wall(g->context->env->loop);
}

static void reconsider(RebootGrants *g) {
        (void) work_queue_add(g->queue, REBOOT_GRANTS_KEY);
}

static bool is_concerned(const KubeNode *n) {
        return object_meta_annotation(&n->object.meta, ANNOTATION_SHUTDOWN_REQUEST) ||
               object_meta_annotation(&n->object.meta, ANNOTATION_SHUTDOWN_GRANTED);
}

static usec_t longest_slot(RebootGrants *g) {
        g->slot_usec = MAX(g->slot_usec, g->context->config->reboot_slot_usec);
        return g->slot_usec;
}

/* A new request comes behind those that wait; so does one whose node has given its slot back, by whatever way. */
static void entry_note_position(const RebootGrants *g, Entry *e, const RebootCase *now) {
        bool waited = e->c.request_state == REBOOT_REQUEST_WAITING && streq_ptr(e->c.id, now->id);

        if (now->request_state == REBOOT_REQUEST_WAITING && !waited)
                e->asked_usec = loop_now(g->context->env->loop);
        if (now->request_state == REBOOT_REQUEST_EXPIRED || now->is_too_long)
                e->goes_last = true;
        else if (now->request_state == REBOOT_REQUEST_OVER && e->c.request_state == REBOOT_REQUEST_HOLDS_SLOT)
                e->goes_last = false;
}

/* Releases the charges of a slot when another request, or none, has it. */
static int entry_note_slot(RebootGrants *g, Entry *e, const KubeNode *n, const RebootCase *now) {
        bool holds = now->request_state == REBOOT_REQUEST_HOLDS_SLOT;

        if (e->slot_id && !(holds && streq(e->slot_id, now->id))) {
                budget_ledger_release(g->context->ledger, n->object.meta.uid, e->slot_id);
                e->slot_id = mfree(e->slot_id);
        }
        return holds ? free_and_strdup(&e->slot_id, now->id) : 0;
}

static int entry_read(RebootGrants *g, Entry *e, const KubeNode *n) {
        RebootCase c;
        int r;

        r = reboot_case_read(n, wall(g), longest_slot(g), &c);
        if (r < 0)
                return r;
        entry_note_position(g, e, &c);
        r = entry_note_slot(g, e, n, &c);
        reboot_case_done(&e->c);
        e->c = c;
        return r < 0 ? r : free_and_strdup(&e->version, n->object.meta.resource_version);
}

static int entry_new(RebootGrants *g, const char *name, Entry **ret) {
        Entry *e = new0(Entry, 1);
        int r;

        r = e ? hashmap_put(g->entries, name, e) : -ENOMEM;
        if (r < 0) {
                free(e);
                return r;
        }
        *ret = e;
        return 0;
}

static void say_freed(RebootGrants *g, const char *node, const char *why) {
        log_event(g->log, LOG_LEVEL_INFO, MESSAGE_REBOOT_SLOT_FREED, LOG_FIELDS({ "NODE", node }),
                  "The slot of node %s to reboot is free again: %s", node, why);
}

static void drop_entry(RebootGrants *g, const char *name, Entry *e, const char *why) {
        if (e->c.request_state == REBOOT_REQUEST_HOLDS_SLOT)
                say_freed(g, name, why);
        hashmap_remove(g->entries, name);
        entry_free(e);
}

void reboot_grants_see_node(RebootGrants *g, const char *name, const KubeNode *n) {
        Entry *e = hashmap_get(g->entries, name);
        int r = 0;

        if (!e && (!n || !is_concerned(n)))
                return;
        if (e && n && streq_ptr(e->version, n->object.meta.resource_version))
                return;
        reconsider(g);
        if (!n) {
                drop_entry(g, name, e, "the Node is gone");
                return;
        }
        if (!e)
                r = entry_new(g, name, &e);
        if (r >= 0)
                r = entry_read(g, e, n);
        if (r < 0) /* nobody would look at it again: the queue's owner starts anew */
                work_queue_note_lost(g->queue);
}

/* -- what the view does not show yet -------------------------------------------------------------------- */

static bool entry_holds(const RebootGrants *g, const char *node) {
        const Entry *e = hashmap_get(g->entries, node);

        return e && e->c.request_state == REBOOT_REQUEST_HOLDS_SLOT;
}

/* The view may have a Node whose event has not come to us yet. A grant that it shows must count as an entry before it ceases to
 * count as unseen. */
static void catch_up(RebootGrants *g, const Unseen *u) {
        reboot_grants_see_node(g, u->node, cluster_view_node(g->context->view, u->node));
}

/* The view has what stood in the list, or what came after. */
static bool view_has(const RebootGrants *g, const Unseen *u) {
        const KubeNode *n = cluster_view_node(g->context->view, u->node);
        uint64_t seen, found;

        return n && parse_uint64(n->object.meta.resource_version, &seen) >= 0 &&
               parse_uint64(u->version, &found) >= 0 && seen >= found;
}

static void drop_found(RebootGrants *g) {
        Unseen *u;

        HASHMAP_FOREACH (u, g->found) {
                catch_up(g, u);
                if (u->until_usec <= wall(g) || view_has(g, u)) {
                        hashmap_remove(g->found, u->node);
                        unseen_free(u);
                }
        }
}

/* Its precondition is the version that it was decided on: once the view has another one it has landed, or
 * never will. A Node that is gone takes it along. */
static void drop_sent(RebootGrants *g) {
        const KubeNode *n;

        if (!g->sent)
                return;
        catch_up(g, g->sent);
        n = cluster_view_node(g->context->view, g->sent->node);
        if (!n || !streq(n->object.meta.resource_version, g->sent->version))
                g->sent = unseen_free(g->sent);
}

static size_t count_held(const RebootGrants *g) {
        size_t n = g->sent != NULL;
        const Entry *e;
        const Unseen *u;

        HASHMAP_FOREACH (e, g->entries)
                n += e->c.request_state == REBOOT_REQUEST_HOLDS_SLOT;
        HASHMAP_FOREACH (u, g->found)
                n += !entry_holds(g, u->node);
        return n;
}

void reboot_grants_count(const RebootGrants *g, size_t *ret_held, size_t *ret_waiting) {
        const Entry *e;

        *ret_held = count_held(g);
        *ret_waiting = 0;
        HASHMAP_FOREACH (e, g->entries)
                *ret_waiting += e->c.request_state == REBOOT_REQUEST_WAITING;
}

/* -- the proof ------------------------------------------------------------------------------------------ */

static void proof_failed(RebootGrants *g, int error) {
        log_debug_errno(g->log, error,
                        "Failed to list the nodes before the first grant of a reboot, retrying: %m");
        g->proof = PROOF_NONE;
        (void) work_queue_retry(g->queue, REBOOT_GRANTS_KEY);
}

static int note_found(RebootGrants *g, const RebootCase *c, const char *version) {
        Unseen *u;
        int r;

        if (c->request_state != REBOOT_REQUEST_HOLDS_SLOT || hashmap_contains(g->found, c->node))
                return 0;
        u = unseen_new(c->node, c->id, version, c->granted_until_usec);
        r = u ? hashmap_put(g->found, u->node, u) : -ENOMEM;
        if (r < 0)
                unseen_free(u);
        return r;
}

/* What cannot be read is no grant that an agent could read. */
static int on_proof_item(const char *item, size_t size, void *userdata) {
        static const char mark[] = "shutdown-granted"; /* no encoder writes a letter as an escape */
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
        _cleanup_(reboot_case_done) RebootCase c = { 0 };
        RebootGrants *g = userdata;
        int r;

        if (!memmem(item, size, mark, sizeof(mark) - 1))
                return 0;
        r = json_parse(item, size, size, &doc, NULL);
        if (r >= 0)
                r = kube_object_decode(&kube_node_kind, json_root(doc), kube_client_pool(g->context->client),
                                       &o);
        if (r >= 0)
                r = reboot_case_read((const KubeNode *) o, wall(g), longest_slot(g), &c);
        if (r >= 0)
                r = note_found(g, &c, o->meta.resource_version);
        return r == -ENOMEM ? r : 0;
}

static void ask_proof(RebootGrants *g, const char *continue_token);

static void on_proof(const KubeReply *reply, void *userdata) {
        RebootGrants *g = userdata;
        _cleanup_(json_doc_freep) JsonDoc *rest = NULL;
        _cleanup_free_ char *next = NULL;
        int r = reply->error ? api_error_to_errno(reply->error) : 0;

        if (r >= 0)
                r = json_split_items(reply->body, reply->body_size, PROOF_PAGE_BYTES_MAX, on_proof_item, g,
                                     &rest, NULL);
        if (r >= 0)
                r = free_and_strdup(&next, json_string_or_null(json_path(json_root(rest), "metadata",
                                                                         "continue", NULL)));
        g->call = kube_call_free(g->call);
        if (r < 0)
                proof_failed(g, r);
        else if (!isempty(next))
                ask_proof(g, next);
        else {
                g->proof = PROOF_DONE;
                work_queue_forget(g->queue, REBOOT_GRANTS_KEY);
                reconsider(g);
        }
}

static void ask_proof(RebootGrants *g, const char *continue_token) {
        const KubeTarget all = { .kind = &kube_node_kind };
        const KubeListOptions list = { .limit = PROOF_PAGE, .continue_token = continue_token };
        const KubeCallOptions call = { .lane = HTTP_LANE_BULK, .timeout_usec = PROOF_TIMEOUT_USEC };
        int r;

        g->proof = PROOF_ASKED;
        r = kube_list(g->context->client, &all, &list, &call, on_proof, g, &g->call);
        if (r < 0)
                proof_failed(g, r);
}

/* True: whoever holds a slot is known. */
static bool is_sure(RebootGrants *g) {
        usec_t now = loop_now(g->context->env->loop);

        if (g->proof == PROOF_DONE)
                return true;
        if (now < g->settled_usec)
                (void) work_queue_add_at(g->queue, REBOOT_GRANTS_KEY, g->settled_usec);
        else if (g->proof == PROOF_NONE)
                ask_proof(g, NULL);
        return false;
}

/* -- writing -------------------------------------------------------------------------------------------- */

static int patch(RebootGrants *g, const KubeNode *n, const char *what, const char *id, usec_t until_usec) {
        _cleanup_free_ char *body = reboot_grant_patch(n, id, until_usec);
        ObjectWrite w = { .what = what,
                          .target = { .kind = &kube_node_kind, .name = n->object.meta.name },
                          .state = n->object.meta.resource_version,
                          .reconcile_key = REBOOT_GRANTS_KEY };

        if (body)
                return object_writes_patch(g->writes, &w, KUBE_PATCH_MERGE, body);
        (void) work_queue_retry(g->queue, REBOOT_GRANTS_KEY);
        return -ENOMEM;
}

static void tell_too_long(RebootGrants *g, Entry *e, const KubeNode *n) {
        EventObject o = event_object(&n->object);
        usec_t now = loop_now(g->context->env->loop);

        if (e->too_long_usec > 0 && now < usec_add(e->too_long_usec, TOO_LONG_TOLD_USEC))
                return;
        e->too_long_usec = now;
        log_event(g->log, LOG_LEVEL_WARNING, MESSAGE_REBOOT_GRANT_TOO_LONG, LOG_FIELDS({ "NODE", e->c.node }),
                  "Node %s carries a grant to reboot that lasts longer than any slot does: no coordinator wrote it. "
                  "It is taken off, and holds no slot. Find out who may write this Node",
                  e->c.node);
        event_record(g->context->recorder, &o, EVENT_WARNING, "RebootGrantTooLong",
                     "The annotation " ANNOTATION_SHUTDOWN_GRANTED " lasts longer than any slot does, so no coordinator wrote it: it is taken off, and holds no slot. "
                                                                   "Find out who may write this Node");
}

static void take_stale_off(RebootGrants *g) {
        Entry *e;

        HASHMAP_FOREACH (e, g->entries) {
                const KubeNode *n = e->c.is_stale ? cluster_view_node(g->context->view, e->c.node) : NULL;

                if (!n || !streq(n->object.meta.resource_version, e->version))
                        continue;
                if (patch(g, n, "take a stale grant off", NULL, 0) > 0 && e->c.is_too_long)
                        tell_too_long(g, e, n);
        }
}

static int send_grant(RebootGrants *g, const KubeNode *n, const char *id) {
        usec_t until = usec_add(wall(g), g->context->config->reboot_slot_usec);

        return patch(g, n, "grant a reboot", id, until);
}

static void grant(RebootGrants *g, const Entry *e) {
        const KubeNode *n = cluster_view_node(g->context->view, e->c.node);

        /* Behind its event, or a stale grant is just being taken off it. */
        if (!n || !streq(n->object.meta.resource_version, e->version) || e->c.is_stale)
                return;
        g->sent = unseen_new(e->c.node, e->c.id, e->version, 0);
        if (!g->sent)
                (void) work_queue_retry(g->queue, REBOOT_GRANTS_KEY);
        else if (send_grant(g, n, e->c.id) <= 0)
                g->sent = unseen_free(g->sent); /* nothing has left */
}

/* While it is refused, or nobody knows: the same again, on the same version, until the view has another one.
 */
static void grant_again(RebootGrants *g) {
        (void) send_grant(g, cluster_view_node(g->context->view, g->sent->node), g->sent->id);
}

/* -- budgets of nodes ----------------------------------------------------------------------------------- */

static void ask_nobody(RebootGrants *g) {
        g->asked = budget_request_free(g->asked);
        g->asked_node = mfree(g->asked_node);
        g->asked_id = mfree(g->asked_id);
        g->admitted = false;
}

static void on_budgets(BudgetAnswer a, const char *message, void *userdata) {
        RebootGrants *g = userdata;
        Entry *e = hashmap_get(g->entries, g->asked_node);
        usec_t again = usec_add(loop_now(g->context->env->loop), a == BUDGET_UNKNOWN ? USEC_PER_SEC : BUDGET_AGAIN_USEC);

        g->admitted = a == BUDGET_ADMITTED;
        if (!g->admitted && e) {
                (void) free_and_strdup(&e->refused, message);
                e->refused_until_usec = again;
        }
        if (g->admitted)
                g->asked = budget_request_free(g->asked);
        else
                ask_nobody(g); /* the message goes with it */
        reconsider(g);
}

/* True: none of them holds it. Else they are asked, one node at a time. */
static bool budgets_admit(RebootGrants *g, const Entry *e) {
        const KubeNode *n = cluster_view_node(g->context->view, e->c.node);
        const BudgetAsk ask = { .node = n,
                                .kind = NODE_CHARGE_REBOOT,
                                .holder = e->c.id,
                                .as_leader = true,
                                .for_usec = g->context->config->reboot_slot_usec };

        if (!n || !budget_ledger_concerns(g->context->ledger, &ask))
                return true;
        if (streq_ptr(g->asked_node, e->c.node) && streq_ptr(g->asked_id, e->c.id))
                return g->admitted;
        ask_nobody(g);
        if (free_and_strdup(&g->asked_node, e->c.node) < 0 || free_and_strdup(&g->asked_id, e->c.id) < 0 ||
            budget_ledger_ask(g->context->ledger, &ask, on_budgets, g, &g->asked) < 0) {
                ask_nobody(g);
                (void) work_queue_retry(g->queue, REBOOT_GRANTS_KEY);
        }
        return false;
}

/* Whose turn it is, those left out that a budget has refused of late. NULL: nobody's. */
static const Entry *first_admissible(const RebootGrants *g, Entry *const *waiting, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (loop_now(g->context->env->loop) >= waiting[i]->refused_until_usec)
                        return waiting[i];
        return NULL;
}

bool reboot_grants_has_slot(const RebootGrants *g, const char *node, const char *id) {
        const Entry *e = hashmap_get(g->entries, node);
        const Unseen *found = hashmap_get(g->found, node);

        return (e && e->c.request_state == REBOOT_REQUEST_HOLDS_SLOT && streq(e->c.id, id)) ||
               (found && streq(found->id, id)) ||
               (g->sent && streq(g->sent->node, node) && streq(g->sent->id, id)) ||
               (streq_ptr(g->asked_node, node) && streq_ptr(g->asked_id, id));
}

void reboot_grants_budgets_changed(RebootGrants *g) {
        Entry *e;

        if (hashmap_size(g->entries) == 0)
                return;
        HASHMAP_FOREACH (e, g->entries)
                e->refused_until_usec = 0;
        reconsider(g);
}

/* -- telling -------------------------------------------------------------------------------------------- */

static void add_name(StrBuf *b, size_t i, const char *name) {
        if (i < NAMES_MAX)
                strbuf_addf(b, "%s%s", i > 0 ? ", " : "", name);
}

static void add_rest(StrBuf *b, size_t n) {
        if (n > NAMES_MAX)
                strbuf_addf(b, " and %zu more", n - NAMES_MAX);
}

/* Adds "n1 until 2026-11-21T05:03:00Z, n2 until ...". Returns the number of nodes that hold a slot. */
static size_t list_holders(const RebootGrants *g, StrBuf *b) {
        size_t i = 0;
        const Entry *e;
        const Unseen *u;

        HASHMAP_FOREACH (e, g->entries) {
                _cleanup_free_ char *text = NULL;
                char until[RFC3339_MAX];

                if (e->c.request_state != REBOOT_REQUEST_HOLDS_SLOT)
                        continue;
                rfc3339_format(e->c.granted_until_usec, until);
                text = strf("%s until %s at most", e->c.node, until);
                add_name(b, i++, strempty(text));
        }
        HASHMAP_FOREACH (u, g->found)
                if (!entry_holds(g, u->node))
                        add_name(b, i++, u->node);
        if (g->sent)
                add_name(b, i++, g->sent->node);
        add_rest(b, i);
        return i;
}

static const char waits_for_list[] = "Waits for a slot to reboot; the coordinator lists all Nodes first, to see which slots are in use";

/* Adds the reason why nodes wait for a slot. Adds nothing while only the NodeDisruptionBudgets have yet to
 * admit one: their answer is reported when it comes. */
static void why_waits(const RebootGrants *g, StrBuf *b) {
        unsigned max = g->context->config->max_concurrent_reboots;
        _cleanup_strbuf_ StrBuf holders = {};
        size_t n_holders = list_holders(g, &holders);

        if (max == 0)
                strbuf_addf(b,
                            "Waits for a slot to reboot: [Budget] MaxConcurrentReboots=0 of the coordinator grants none");
        else if (n_holders >= max)
                strbuf_addf(b, "Waits for a slot to reboot; there are %u, and they are held by %s", max,
                            strbuf_str(&holders));
        else if (g->proof != PROOF_DONE)
                strbuf_add(b, waits_for_list);
}

static void tell(RebootGrants *g, Entry *e, EventType type, const char *reason, const char *text) {
        const KubeNode *n = cluster_view_node(g->context->view, e->c.node);
        EventObject o;

        if (!n || streq_ptr(e->told, text))
                return;
        (void) free_and_strdup(&e->told, text);
        o = event_object(&n->object);
        event_record(g->context->recorder, &o, type, reason, "%s", text);
}

static void tell_granted(RebootGrants *g, Entry *e, Entry *const *waiting, size_t n_waiting) {
        _cleanup_strbuf_ StrBuf names = {};
        char until[RFC3339_MAX];
        _cleanup_free_ char *text = NULL;

        rfc3339_format(e->c.granted_until_usec, until);
        for (size_t i = 0; i < n_waiting; i++)
                add_name(&names, i, waiting[i]->c.node);
        add_rest(&names, n_waiting);
        metrics_add(g->context->metrics, METRIC_REBOOTS_GRANTED, 0, 1);
        log_event(g->log, LOG_LEVEL_NOTICE, MESSAGE_REBOOT_SLOT_GRANTED,
                  LOG_FIELDS({ "NODE", e->c.node }, { "NOTICE_ID", e->c.id }, { "DEADLINE", until }),
                  "Node %s may reboot now; its slot is kept until it is Ready again, until %s at most. "
                  "Waiting: %s",
                  e->c.node, until, n_waiting > 0 ? strbuf_str(&names) : "none");
        text = strf("May reboot now; the slot is kept until the node is Ready again, until %s at most",
                    until);
        if (text)
                tell(g, e, EVENT_NORMAL, "RebootGranted", text);
}

static void tell_expired(RebootGrants *g, Entry *e) {
        log_event(g->log, LOG_LEVEL_WARNING, MESSAGE_REBOOT_SLOT_EXPIRED,
                  LOG_FIELDS({ "NODE", e->c.node }, { "NOTICE_ID", e->c.id }),
                  "Node %s was granted a reboot and was not Ready again in time: its slot is given to the next",
                  e->c.node);
        tell(g, e, EVENT_WARNING, "RebootSlotExpired",
             "Was granted a reboot and was not Ready again in time: its slot is given to the next. "
             "If it has not rebooted, ask again: systemctl restart vesper-reboot");
}

/* Reports why the node waits. The first list of all Nodes is over soon, so the log gets the reason after it
 * as well, and the reason "lists all Nodes first" never replaces another one. */
static void tell_waits(RebootGrants *g, Entry *e, const char *why) {
        if (e->told && streq(why, waits_for_list))
                return;
        if (!e->told || streq(e->told, waits_for_list))
                log_event(g->log, LOG_LEVEL_INFO, MESSAGE_REBOOT_SLOT_WAITS,
                          LOG_FIELDS({ "NODE", e->c.node }, { "NOTICE_ID", e->c.id }), "Node %s: %s",
                          e->c.node, why);
        tell(g, e, EVENT_NORMAL, "RebootWaits", why);
}

/* What has changed with one that does not wait. */
static void tell_stand(RebootGrants *g, Entry *e, Entry *const *waiting, size_t n_waiting) {
        bool held = e->told_request_state == REBOOT_REQUEST_HOLDS_SLOT, same = e->told_request_state == e->c.request_state;

        e->told_request_state = e->c.request_state;
        if (same)
                return;
        switch (e->c.request_state) {
        case REBOOT_REQUEST_HOLDS_SLOT:
                tell_granted(g, e, waiting, n_waiting);
                return;
        case REBOOT_REQUEST_EXPIRED:
                tell_expired(g, e);
                return;
        case REBOOT_REQUEST_LEAVING:
                tell(g, e, EVENT_WARNING, "RebootNotGranted",
                     "Asks for a slot to reboot and gets none: the Node is being deleted, or its machine is announced to end");
                break;
        case REBOOT_REQUEST_INVALID:
                tell(g, e, EVENT_WARNING, "RebootNotGranted",
                     "The annotation " ANNOTATION_SHUTDOWN_REQUEST
                     " cannot be read: id, bootID, kind (reboot or poweroff) and until (RFC 3339) are needed");
                break;
        case REBOOT_REQUEST_OVER:
        case REBOOT_REQUEST_NONE:
        case REBOOT_REQUEST_WAITING:
        case _REBOOT_REQUEST_STATE_MAX:
                break;
        }
        if (held)
                say_freed(g, e->c.node,
                          e->c.request_state == REBOOT_REQUEST_OVER ? "it is Ready after its reboot"
                                                          : "the request was taken back");
}

static void tell_all(RebootGrants *g, Entry *const *waiting, size_t n_waiting) {
        _cleanup_strbuf_ StrBuf why = {};
        Entry *e;

        HASHMAP_FOREACH (e, g->entries)
                tell_stand(g, e, waiting, n_waiting);
        if (n_waiting == 0)
                return;
        why_waits(g, &why);
        for (size_t i = 0; i < n_waiting && !why.failed; i++) {
                bool refused = waiting[i]->refused_until_usec > loop_now(g->context->env->loop);
                _cleanup_free_ char *budget = refused ? strf("Waits for a slot to reboot: %s", strempty(waiting[i]->refused)) : NULL;
                const char *text = budget ? budget : strbuf_str(&why);

                if (!isempty(text) && (!waiting[i]->told || i < TOLD_MAX))
                        tell_waits(g, waiting[i], text);
        }
}

/* -- the decision --------------------------------------------------------------------------------------- */

/* Time alone changes some; the next such moment. */
static void reread(RebootGrants *g) {
        usec_t now = wall(g), next = USEC_INFINITY;
        Entry *e;

        HASHMAP_FOREACH (e, g->entries) {
                const KubeNode *n = cluster_view_node(g->context->view, e->c.node);

                if (n && reboot_case_next(&e->c) <= now && entry_read(g, e, n) < 0)
                        (void) work_queue_retry(g->queue, REBOOT_GRANTS_KEY);
                if (reboot_case_next(&e->c) > now)
                        next = MIN(next, reboot_case_next(&e->c));
        }
        if (next != USEC_INFINITY)
                (void) work_queue_add_at(g->queue, REBOOT_GRANTS_KEY,
                                         loop_from_wall(g->context->env->loop, next));
}

static int by_request_time(const void *a, const void *b) {
        const Entry *x = *(Entry *const *) a, *y = *(Entry *const *) b;

        if (x->goes_last != y->goes_last)
                return x->goes_last ? 1 : -1;
        if (x->asked_usec != y->asked_usec)
                return x->asked_usec < y->asked_usec ? -1 : 1;
        return reboot_case_order(&x->c, &y->c);
}

/* In the order of their turns. -ENOMEM. */
static int list_waiting(RebootGrants *g, Entry ***ret, size_t *ret_n) {
        size_t n = 0, size = hashmap_size(g->entries);
        Entry **waiting = new0(Entry *, MAX(size, 1u)), *e;

        if (!waiting)
                return -ENOMEM;
        HASHMAP_FOREACH (e, g->entries)
                if (e->c.request_state == REBOOT_REQUEST_WAITING && !(g->sent && streq(g->sent->node, e->c.node)))
                        waiting[n++] = e;
        qsort(waiting, n, sizeof(*waiting), by_request_time);
        *ret = waiting;
        *ret_n = n;
        return 0;
}

/* They are nothing to us any more; but that a Node goes last is known while its Node is there. */
static void forget_unconcerned(RebootGrants *g) {
        Entry *e;

        HASHMAP_FOREACH (e, g->entries)
                if (e->c.request_state == REBOOT_REQUEST_NONE && !e->c.is_answered && !e->goes_last) {
                        hashmap_remove(g->entries, e->c.node);
                        entry_free(e);
                }
}

/* Schedules the next request to the budgets for nodes that a budget has refused. The queue keeps only the
 * earliest of several times, so each pass sets the time anew. */
static void ask_again(RebootGrants *g, Entry *const *waiting, size_t n) {
        usec_t now = loop_now(g->context->env->loop), next = USEC_INFINITY;

        for (size_t i = 0; i < n; i++)
                if (waiting[i]->refused_until_usec > now)
                        next = MIN(next, waiting[i]->refused_until_usec);
        if (next != USEC_INFINITY)
                (void) work_queue_add_at(g->queue, REBOOT_GRANTS_KEY, next);
}

void reboot_grants_reconcile(RebootGrants *g) {
        _cleanup_free_ Entry **waiting = NULL;
        const Entry *first;
        size_t n = 0, k = 0;

        reread(g);
        drop_found(g);
        drop_sent(g);
        take_stale_off(g);
        if (list_waiting(g, &waiting, &n) < 0) {
                (void) work_queue_retry(g->queue, REBOOT_GRANTS_KEY);
                return;
        }
        if (g->sent)
                grant_again(g);
        else if (n > 0 && count_held(g) < g->context->config->max_concurrent_reboots && is_sure(g)) {
                first = first_admissible(g, waiting, n);
                if (first && budgets_admit(g, first))
                        grant(g, first);
        }
        if (g->sent)
                ask_nobody(g);
        for (size_t i = 0; i < n; i++) /* but who was granted it just now */
                if (!(g->sent && streq(g->sent->node, waiting[i]->c.node)))
                        waiting[k++] = waiting[i];
        tell_all(g, waiting, k);
        ask_again(g, waiting, k);
        forget_unconcerned(g);
}

/* -- new, free ------------------------------------------------------------------------------------------ */

/* What another leader has told. */
static void hush(RebootGrants *g) {
        Entry *e;

        HASHMAP_FOREACH (e, g->entries)
                if (e->c.request_state == REBOOT_REQUEST_HOLDS_SLOT || e->c.request_state == REBOOT_REQUEST_EXPIRED)
                        e->told_request_state = e->c.request_state;
}

int reboot_grants_new(const TerminationContext *context, WorkQueue *queue, ObjectWrites *writes,
                      RebootGrants **ret) {
        _cleanup_(reboot_grants_freep) RebootGrants *g = NULL;
        const KubeNode *n;
        int r;

        assert(context && queue && writes && ret);
        g = new0(RebootGrants, 1);
        if (!g)
                return -ENOMEM;
        g->context = context;
        g->log = context->env->log;
        g->queue = queue;
        g->writes = writes;
        g->settled_usec = usec_add(loop_now(context->env->loop), SETTLE_USEC);
        r = hashmap_new(0, &g->entries);
        if (r >= 0)
                r = hashmap_new(0, &g->found);
        if (r < 0)
                return r;
        for (HashmapIterator it = {}; cluster_view_iterate_nodes(context->view, &it, &n);)
                reboot_grants_see_node(g, n->object.meta.name, n);
        hush(g);
        *ret = TAKE_PTR(g);
        return 0;
}

RebootGrants *reboot_grants_free(RebootGrants *g) {
        if (!g)
                return NULL;
        kube_call_free(g->call);
        ask_nobody(g);
        hashmap_free_with(g->entries, entry_free);
        hashmap_free_with(g->found, unseen_free);
        unseen_free(g->sent);
        return mfree(g);
}

/* -- tests ---------------------------------------------------------------------------------------------- */

/* Returns true if the next grant waits for a newer version of a waiting Node: a write to the Node is under
 * way, the watch has a newer version than the entry, or a stale grant is to be removed first. */
static bool line_has_next_wakeup(const RebootGrants *g) {
        const Entry *e;

        HASHMAP_FOREACH (e, g->entries) {
                const KubeNode *n = cluster_view_node(g->context->view, e->c.node);

                if (e->c.request_state == REBOOT_REQUEST_WAITING &&
                    (!n || !streq(n->object.meta.resource_version, e->version) || e->c.is_stale ||
                     object_writes_are_under_way(g->writes, &kube_node_kind, NULL, e->c.node)))
                        return true;
        }
        return false;
}

void reboot_grants_next_wakeup(const RebootGrants *g, Wakeups *w) {
        bool is_free = !g->sent && count_held(g) < g->context->config->max_concurrent_reboots;
        bool is_awaited = g->call || g->asked || line_has_next_wakeup(g);
        const Entry *e;

        HASHMAP_FOREACH (e, g->entries) {
                if (e->c.request_state == REBOOT_REQUEST_WAITING && is_free) {
                        wakeups_unfinished(w, "reboot slot of node", e->c.node,
                                           e->refused ? "refused" : "waits", REBOOT_GRANTS_WAKEUP_USEC);
                        wakeups_key(w, g->queue, REBOOT_GRANTS_KEY);
                        wakeups_await(w, is_awaited);
                }
                if (reboot_case_next(&e->c) != USEC_INFINITY) {
                        wakeups_unfinished(w, "end of the reboot slot of node", e->c.node, "",
                                           USEC_INFINITY);
                        wakeups_key(w, g->queue, REBOOT_GRANTS_KEY);
                }
        }
        if (!g->sent)
                return;
        wakeups_unfinished(w, "grant of node", g->sent->node, "sent", SEEN_WITHIN_USEC);
        wakeups_key(w, g->queue, REBOOT_GRANTS_KEY);
        wakeups_await(w, object_writes_are_under_way(g->writes, &kube_node_kind, NULL, g->sent->node));
}
