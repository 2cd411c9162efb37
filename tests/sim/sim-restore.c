/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-restore.h"

#include "fake-controllers.h"
#include "sim-check.h"
#include "sim-load.h"
#include "sim-process.h"

#define BUSY_WRITES 1000000u
#define BUMP UINT64_C(1000000000)
#define AWAY_USEC (3 * USEC_PER_SEC)
#define RESTART_USEC (4 * USEC_PER_SEC)
/* From the end of an instance to the deletion of its Node by the cloud's own controller. */
#define CLOUD_CONTROLLER_USEC (45 * USEC_PER_SEC)
/* Watches that hear nothing for five minutes are followed by a list, which may fail, too. */
#define TROUBLE_USEC (7 * USEC_PER_MINUTE)

typedef struct Known {
        bool cordoned_by_admin, opened_by_admin;
        usec_t opened_usec;
} Known;

/* Of a machine, just before it is restored. */
typedef struct Before {
        bool there, goes, claim_goes;
} Before;

struct SimRestore {
        SimWorld *world;
        SimRestoreKind kind;
        FakeBackup *backup;
        Known *known; /* by machine */
        Timer *timer;
};

static bool is_deleting(const cJSON *o) {
        return o && fj_get(o, "metadata", "deletionTimestamp", NULL);
}

static void note_machines(SimRestore *r) {
        for (size_t i = 0; i < r->world->n_machines; i++)
                r->known[i] = (Known){ r->world->machines[i].cordoned_by_admin, r->world->machines[i].opened_by_admin,
                                       r->world->machines[i].opened_usec };
}

/* Its kubelet says what it is, or does not. */
static void tell_machine(SimWorld *w, size_t i) {
        SimMachine *m = &w->machines[i];

        if (!sim_world_node(w, i))
                return;
        fake_merge(w->cluster, FAKE_NODES, NULL, m->node, "{'status':{'nodeInfo':{'bootID':'%s'}}}", m->boot_id);
        if (m->ended && !timer_is_armed(m->deleted))
                timer_arm_in(m->deleted, CLOUD_CONTROLLER_USEC);
}

/* What people had done is undone, and who had deleted a node does so again. */
static void tell_people(SimRestore *r, size_t i, const Before *before) {
        SimMachine *m = &r->world->machines[i];
        const cJSON *node = sim_world_node(r->world, i), *claim = sim_world_claim(r->world, i);

        if (before->claim_goes && claim && !is_deleting(claim))
                sim_load_delete_claim(r->world, i);
        if (!node)
                return;
        if (!before->there)
                m->restored_usec = sim_world_now(r->world);
        m->cordoned_by_admin = r->known[i].cordoned_by_admin;
        m->opening_lost = m->opened_by_admin &&
                          (!r->known[i].opened_by_admin || r->known[i].opened_usec != m->opened_usec);
        m->opened_by_admin = m->opened_by_admin && !m->opening_lost;
        if (before->goes && !is_deleting(node))
                sim_world_delete_node(r->world, i);
}

static void restart_all(SimWorld *w) {
        for (size_t i = 0; i < w->n_processes; i++)
                if (w->processes[i]->life)
                        sim_process_kill(w->processes[i], RESTART_USEC);
}

static void restore(SimRestore *r) {
        SimWorld *w = r->world;
        _cleanup_free_ Before *before = MUST(new0(Before, w->n_machines + 1));

        sim_trace_add(w->trace, "world", "etcd is restored from its backup");
        for (size_t i = 0; i < w->n_machines; i++) {
                before[i].there = sim_world_node(w, i);
                before[i].claim_goes = !sim_world_claim(w, i) || is_deleting(sim_world_claim(w, i));
                before[i].goes = !before[i].there || is_deleting(sim_world_node(w, i)) ||
                                 is_deleting(sim_world_claim(w, i));
        }
        w->was_restored = true;
        sim_check_restoring(w->check);
        sim_check_trouble(w->check, TROUBLE_USEC);
        fake_cluster_restore(w->cluster, r->backup, r->kind == SIM_RESTORE_BUMPED ? BUMP : 0, AWAY_USEC);
        for (size_t i = 0; i < w->n_machines; i++) {
                tell_machine(w, i);
                tell_people(r, i, &before[i]);
        }
        if (r->kind == SIM_RESTORE_RESTARTS)
                restart_all(w);
}

static void on_time(Timer *t, void *userdata) {
        sim_restore_now(userdata);
}

void sim_restore_plan(SimWorld *w, SimRestoreKind kind, usec_t in_usec) {
        SimRestore *r;
        int k;

        if (w->restore)
                return;
        r = w->restore = MUST(new0(SimRestore, 1));
        r->world = w;
        r->kind = kind;
        r->known = MUST(new0(Known, w->n_machines + 1));
        note_machines(r);
        r->backup = fake_store_backup(fake_cluster_store(w->cluster));
        sim_trace_add(w->trace, "world", "a backup of etcd is made");
        if (kind == SIM_RESTORE_PLAIN)
                fake_store_skip(fake_cluster_store(w->cluster), BUSY_WRITES);
        k = timer_new(w->loop, "sim-restore", on_time, w, &r->timer);
        assert(k >= 0);
        timer_arm_in(r->timer, in_usec);
}

void sim_restore_now(SimWorld *w) {
        if (!w->restore)
                return;
        restore(w->restore);
        sim_restore_forget(w);
}

void sim_restore_forget(SimWorld *w) {
        SimRestore *r = TAKE_PTR(w->restore);

        if (!r)
                return;
        timer_free(r->timer);
        fake_backup_free(r->backup);
        free(r->known);
        free(r);
}
