/* SPDX-License-Identifier: Apache-2.0 */
#include "repair-brake.h"

#include "alloc-util.h"
#include "hashmap.h"
#include "kube-kinds.h"
#include "string-util.h"

const char *const repair_domain_names[_REPAIR_DOMAIN_MAX] = {
        [REPAIR_DOMAIN_POOL] = "NodePool",
        [REPAIR_DOMAIN_ZONE] = "zone",
        [REPAIR_DOMAIN_CONDITION] = "condition",
};

/* What is proved again and again by one node that comes and goes makes no room without end. */
#define AT_ONCE_MAX ((size_t) 128)

typedef struct Domain {
        char *key; /* "zone/us-east-1a" */
        size_t n_under_way, n_at_once;
        usec_t moved_usec; /* when a repair in it last began or ended */
} Domain;

typedef struct Repair {
        char *uid, *pool;
        char *boot_id;     /* that is to end; NULL: the node is replaced */
        usec_t ready_usec; /* since when it is Ready with another one; USEC_INFINITY: it is not */
        usec_t well_usec;  /* ... and no rule asks for its repair; USEC_INFINITY: one does, or the node is not Ready */
        Domain *domains[_REPAIR_DOMAIN_MAX]; /* NULL: none of that kind */
        usec_t begun_usec;
} Repair;

/* A Node that came while some repair was under way. */
typedef struct Newcomer {
        char *uid, *pool; /* pool NULL: of none yet */
        usec_t came_usec;
        usec_t well_usec; /* since when it is Ready, and no rule asks for its repair; USEC_INFINITY: it is not so */
} Newcomer;

struct RepairBrake {
        Hashmap *domains;   /* by key */
        Hashmap *repairs;   /* by uid of the node; in the order in which they began */
        Hashmap *newcomers; /* by uid */
};

static void *domain_free(void *p) {
        Domain *d = p;

        free(d->key);
        return mfree(d);
}

static void *repair_free(void *p) {
        Repair *r = p;

        free(r->uid);
        free(r->pool);
        free(r->boot_id);
        return mfree(r);
}

static void *newcomer_free(void *p) {
        Newcomer *n = p;

        free(n->uid);
        free(n->pool);
        return mfree(n);
}

int repair_brake_new(RepairBrake **ret) {
        _cleanup_(repair_brake_freep) RepairBrake *b = new0(RepairBrake, 1);

        if (!b || hashmap_new(HASHMAP_BORROW_KEYS, &b->domains) < 0 || hashmap_new(HASHMAP_BORROW_KEYS, &b->repairs) < 0 ||
            hashmap_new(HASHMAP_BORROW_KEYS, &b->newcomers) < 0)
                return -ENOMEM;
        *ret = TAKE_PTR(b);
        return 0;
}

RepairBrake *repair_brake_free(RepairBrake *b) {
        if (!b)
                return NULL;
        hashmap_free_with(b->newcomers, newcomer_free);
        hashmap_free_with(b->repairs, repair_free);
        hashmap_free_with(b->domains, domain_free);
        return mfree(b);
}

/* -- domains -------------------------------------------------------------------------------------------- */

static char *domain_key(RepairDomainKind kind, const char *name) {
        return strf("%s/%s", repair_domain_names[kind], name);
}

bool repair_brake_admits(const RepairBrake *b, const RepairDomains *d, RepairLimit *ret) {
        for (RepairDomainKind kind = 0; kind < _REPAIR_DOMAIN_MAX; kind++) {
                _cleanup_free_ char *key = d->names[kind] ? domain_key(kind, d->names[kind]) : NULL;
                const Domain *domain = key ? hashmap_get(b->domains, key) : NULL;

                if (d->names[kind] && !key) {
                        *ret = (RepairLimit){ .kind = kind };
                        return false;
                }
                if (domain && domain->n_under_way >= domain->n_at_once) {
                        *ret = (RepairLimit){ kind, domain->n_under_way, domain->n_at_once };
                        return false;
                }
        }
        return true;
}

static Domain *domain_take(RepairBrake *b, RepairDomainKind kind, const char *name, usec_t now_usec) {
        _cleanup_free_ char *key = domain_key(kind, name);
        Domain *d = key ? hashmap_get(b->domains, key) : NULL;

        if (!key || d)
                return d;
        d = new0(Domain, 1);
        if (!d)
                return NULL;
        *d = (Domain){ .key = TAKE_PTR(key), .n_at_once = 1, .moved_usec = now_usec };
        if (hashmap_put(b->domains, d->key, d) < 0)
                return domain_free(d);
        return d;
}

/* Calm, or never used for want of memory. */
static usec_t forget_calm_domains(RepairBrake *b, usec_t now_usec) {
        usec_t next = USEC_INFINITY;
        Domain *d;

        HASHMAP_FOREACH (d, b->domains) {
                usec_t calm = usec_add(d->moved_usec, REPAIR_CALM_USEC);

                if (d->n_under_way > 0)
                        continue;
                if (now_usec < calm)
                        next = MIN(next, calm);
                else {
                        hashmap_remove(b->domains, d->key);
                        domain_free(d);
                }
        }
        return next;
}

/* -- repairs -------------------------------------------------------------------------------------------- */

/* Removes a repair, and frees its place in each of its domains. */
static void repair_drop(RepairBrake *b, Repair *r) {
        hashmap_remove(b->repairs, r->uid);
        for (RepairDomainKind kind = 0; kind < _REPAIR_DOMAIN_MAX; kind++)
                if (r->domains[kind])
                        r->domains[kind]->n_under_way--;
        repair_free(r);
        if (hashmap_size(b->repairs) > 0)
                return;
        for (Newcomer *n; (n = hashmap_first(b->newcomers, NULL));) {
                hashmap_remove(b->newcomers, n->uid);
                newcomer_free(n);
        }
}

bool repair_brake_has(const RepairBrake *b, const char *node_uid) {
        return hashmap_contains(b->repairs, node_uid);
}

int repair_brake_begin(RepairBrake *b, const char *node_uid, const char *boot_id, const RepairDomains *d, usec_t now_usec) {
        Repair *r = hashmap_get(b->repairs, node_uid);

        if (r && streq_ptr(r->boot_id, boot_id))
                return -EEXIST;
        if (r)
                repair_drop(b, r);
        r = new0(Repair, 1);
        if (!r)
                return -ENOMEM;
        r->begun_usec = now_usec;
        r->ready_usec = r->well_usec = USEC_INFINITY;
        for (RepairDomainKind kind = 0; kind < _REPAIR_DOMAIN_MAX; kind++) {
                if (!d->names[kind])
                        continue;
                r->domains[kind] = domain_take(b, kind, d->names[kind], now_usec);
                if (!r->domains[kind]) {
                        repair_free(r);
                        return -ENOMEM;
                }
        }
        if (free_and_strdup(&r->uid, node_uid) < 0 || free_and_strdup(&r->pool, strempty(d->names[REPAIR_DOMAIN_POOL])) < 0 ||
            free_and_strdup(&r->boot_id, boot_id) < 0 || hashmap_put(b->repairs, r->uid, r) < 0) {
                repair_free(r);
                return -ENOMEM;
        }
        for (RepairDomainKind kind = 0; kind < _REPAIR_DOMAIN_MAX; kind++)
                if (r->domains[kind]) {
                        r->domains[kind]->n_under_way++;
                        r->domains[kind]->moved_usec = now_usec;
                }
        return 0;
}

static void repair_end(RepairBrake *b, Repair *r, bool proved, usec_t now_usec, repair_ended_t ended, void *userdata) {
        for (RepairDomainKind kind = 0; kind < _REPAIR_DOMAIN_MAX; kind++)
                if (r->domains[kind]) {
                        r->domains[kind]->n_at_once = proved ? MIN(r->domains[kind]->n_at_once + 1, AT_ONCE_MAX) : 1;
                        r->domains[kind]->moved_usec = now_usec;
                }
        ended(r->uid, proved, userdata);
        repair_drop(b, r);
}

void repair_brake_cancel(RepairBrake *b, const char *node_uid) {
        Repair *r = hashmap_get(b->repairs, node_uid);

        if (r)
                repair_drop(b, r);
}

size_t repair_brake_n_under_way(const RepairBrake *b) {
        return hashmap_size(b->repairs);
}

/* -- their proof ---------------------------------------------------------------------------------------- */

int repair_brake_see_node(RepairBrake *b, const char *node_uid, bool came, const char *pool, bool well, usec_t now_usec) {
        Newcomer *n = hashmap_get(b->newcomers, node_uid);

        if (!n && (!came || hashmap_size(b->repairs) == 0))
                return 0;
        if (!n) {
                n = new0(Newcomer, 1);
                if (!n)
                        return -ENOMEM;
                n->came_usec = now_usec;
                n->well_usec = USEC_INFINITY;
                if (free_and_strdup(&n->uid, node_uid) < 0 || hashmap_put(b->newcomers, n->uid, n) < 0) {
                        newcomer_free(n);
                        return -ENOMEM;
                }
        }
        if (!well)
                n->well_usec = USEC_INFINITY;
        else if (n->well_usec == USEC_INFINITY)
                n->well_usec = now_usec;
        return streq_ptr(n->pool, pool) ? 0 : free_and_strdup(&n->pool, pool);
}

void repair_brake_see_rebooted(RepairBrake *b, const char *node_uid, const char *boot_id, bool ready, bool ails, usec_t now_usec) {
        Repair *r = hashmap_get(b->repairs, node_uid);

        if (!r || !r->boot_id)
                return;
        if (!ready || !boot_id || boot_id_equal(boot_id, r->boot_id))
                r->ready_usec = USEC_INFINITY;
        else if (r->ready_usec == USEC_INFINITY)
                r->ready_usec = now_usec;
        if (r->ready_usec == USEC_INFINITY || ails)
                r->well_usec = USEC_INFINITY;
        else if (r->well_usec == USEC_INFINITY)
                r->well_usec = now_usec;
}

void repair_brake_forget_node(RepairBrake *b, const char *node_uid) {
        Newcomer *n = hashmap_remove(b->newcomers, node_uid);

        if (n)
                newcomer_free(n);
}

/* The oldest of this pool that the newcomer may be the successor of. */
static Repair *repair_succeeded_by(const RepairBrake *b, const Newcomer *n) {
        Repair *r;

        HASHMAP_FOREACH (r, b->repairs)
                if (!r->boot_id && streq_ptr(r->pool, n->pool) && r->begun_usec <= n->came_usec)
                        return r;
        return NULL;
}

static usec_t end_proved(RepairBrake *b, usec_t now_usec, repair_ended_t ended, void *userdata) {
        usec_t next = USEC_INFINITY;
        Newcomer *n;

        HASHMAP_FOREACH (n, b->newcomers) {
                usec_t proof = usec_add(n->well_usec, REPAIR_PROOF_USEC);
                Repair *r = repair_succeeded_by(b, n);

                if (n->well_usec == USEC_INFINITY || !r)
                        continue;
                if (now_usec < proof) {
                        next = MIN(next, proof);
                        continue;
                }
                repair_brake_forget_node(b, n->uid);
                repair_end(b, r, true, now_usec, ended, userdata);
                if (hashmap_size(b->repairs) == 0)
                        return USEC_INFINITY; /* and no newcomer is left */
        }
        return next;
}

void repair_brake_fail(RepairBrake *b, const char *node_uid, usec_t now_usec, repair_ended_t ended, void *userdata) {
        Repair *r = hashmap_get(b->repairs, node_uid);

        if (r)
                repair_end(b, r, false, now_usec, ended, userdata);
}

usec_t repair_brake_step(RepairBrake *b, usec_t now_usec, repair_ended_t ended, void *userdata) {
        usec_t next = end_proved(b, now_usec, ended, userdata);
        Repair *r;

        HASHMAP_FOREACH (r, b->repairs) {
                usec_t failed = usec_add(r->begun_usec, REPAIR_FAILED_USEC);
                usec_t proof = usec_add(r->well_usec, REPAIR_PROOF_USEC);
                usec_t ends = MIN(failed, proof);

                if (r->well_usec == USEC_INFINITY) /* a reboot in vain */
                        ends = MIN(ends, usec_add(r->ready_usec, REPAIR_PROOF_USEC));

                if (now_usec < ends)
                        next = MIN(next, ends);
                else
                        repair_end(b, r, now_usec >= proof, now_usec, ended, userdata);
        }
        return MIN(next, forget_calm_domains(b, now_usec));
}
