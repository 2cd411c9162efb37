/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-machines.h"

#include <limits.h>

#include "fake-azure-metadata.h"
#include "fake-gce-metadata.h"
#include "fake-imds.h"
#include "hashmap.h"
#include "list.h"

#define MIGRATION_USEC (10 * USEC_PER_SEC)
#define WINDOW_USEC (4 * USEC_PER_HOUR)

typedef struct Part {
        const char *name;
        unsigned bit;
} Part;

/* What the clouds have in common. */
typedef struct PlatformOps {
        const char *name;
        void *(*new)(FakeMachines *m, const cJSON *o);
        void (*free)(void *metadata);
        http_handler_t handle;
        bool (*notice)(FakeMachine *m, const char *kind, const char *action, usec_t lead_usec);
        void (*fault)(void *metadata, unsigned parts, unsigned n, unsigned status, const char *body);
        Part parts[4];
} PlatformOps;

struct FakeMachine {
        ListNode machines;
        FakeMachines *all;
        const PlatformOps *ops;
        char *id;
        void *metadata;
        FakeAzureEvents *events; /* of its scale set, or its own */
};

struct FakeMachines {
        Loop *loop;
        List machines;
        Hashmap *azure_events; /* by scale set, or "/NAME" of a machine without one */
};

/* -- EC2 ----------------------------------------------------------------------------------------------- */

static void *ec2_new(FakeMachines *m, const cJSON *o) {
        FakeImds *imds = MUST(fake_imds_new(m->loop, fj_string(o, "id", NULL)));

        if (fj_true(o, "keepsConnections", NULL))
                fake_imds_keep_connections(imds);
        return imds;
}

static void ec2_free(void *imds) {
        fake_imds_free(imds);
}

static bool ec2_notice(FakeMachine *m, const char *kind, const char *action, usec_t lead_usec) {
        if (streq(kind, "none"))
                fake_imds_clear_action(m->metadata);
        else if (streq(kind, "spot"))
                fake_imds_set_action(m->metadata, action, usec_add(loop_wall(m->all->loop), lead_usec));
        else
                return false;
        return true;
}

static void ec2_fault(void *imds, unsigned parts, unsigned n, unsigned status, const char *body) {
        if (body)
                fake_imds_garble(imds, parts, n, body);
        else if (status == 0)
                fake_imds_hang(imds, parts, n);
        else
                fake_imds_fail(imds, parts, n, status);
}

/* -- GCE ----------------------------------------------------------------------------------------------- */

static void *gce_new(FakeMachines *m, const cJSON *o) {
        return fake_gce_metadata_new(m->loop,
                                     &(FakeGceMetadataOptions){
                                             .name = fj_string(o, "id", NULL),
                                             .id = fj_string(o, "machineId", NULL),
                                             .project_id = fj_string(o, "projectId", NULL),
                                             .project_number = fj_string(o, "projectNumber", NULL),
                                             .zone = fj_string(o, "zone", NULL),
                                             .machine_type = fj_string(o, "machineType", NULL),
                                             .created_by = fj_string(o, "createdBy", NULL),
                                             .cluster_name = fj_string(o, "clusterName", NULL),
                                             .spot = fj_true(o, "spot", NULL),
                                             .terminates = fj_true(o, "terminates", NULL),
                                             .gpu = fj_true(o, "gpu", NULL),
                                             .graceful_shutdown = fj_true(o, "gracefulShutdown", NULL),
                                             .no_service_account = fj_true(o, "noServiceAccount", NULL),
                                     });
}

static void gce_free(void *gce) {
        fake_gce_metadata_free(gce);
}

static bool gce_notice(FakeMachine *m, const char *kind, const char *action, usec_t lead_usec) {
        usec_t at_wall_usec = usec_add(loop_wall(m->all->loop), lead_usec);
        FakeGceMetadata *gce = m->metadata;

        if (streq(kind, "none"))
                fake_gce_metadata_withdraw(gce);
        else if (streq(kind, "spot"))
                fake_gce_metadata_set_preempted(gce, true);
        else if (streq(kind, "upcoming"))
                fake_gce_metadata_set_upcoming(gce, "SCHEDULED", "PENDING", at_wall_usec,
                                               usec_add(at_wall_usec, WINDOW_USEC), true);
        else if (streq(kind, "stop"))
                fake_gce_metadata_set_stop_state(gce, "PENDING_STOP", (unsigned) (lead_usec / USEC_PER_SEC));
        else if (streq(kind, "maintenance") && streq(action, "migrate"))
                (void) fake_gce_metadata_migrate(gce, "MIGRATE_ON_HOST_MAINTENANCE", lead_usec,
                                                 MIGRATION_USEC);
        else if (streq(kind, "maintenance") && streq(action, "terminate"))
                (void) fake_gce_metadata_migrate(gce, "TERMINATE_ON_HOST_MAINTENANCE", lead_usec,
                                                 USEC_INFINITY);
        else
                return false;
        return true;
}

static void gce_fault(void *gce, unsigned parts, unsigned n, unsigned status, const char *body) {
        if (body)
                fake_gce_metadata_garble(gce, parts, n, body);
        else if (status == 0)
                fake_gce_metadata_hang(gce, parts, n);
        else
                fake_gce_metadata_fail(gce, parts, n, status);
}

/* -- Azure --------------------------------------------------------------------------------------------- */

static FakeAzureEvents *azure_events(FakeMachines *m, const cJSON *o) {
        const char *set = fj_string(o, "scaleSet", NULL);
        _cleanup_free_ char *key = MUST(set ? strdup(set) : strf("/%s", fj_string(o, "id", NULL)));
        FakeAzureEvents *events = hashmap_get(m->azure_events, key);
        int r;

        if (events)
                return events;
        events = fake_azure_events_new(m->loop);
        r = hashmap_put(m->azure_events, key, events);
        assert(r >= 0);
        return events;
}

static void *azure_new(FakeMachines *m, const cJSON *o) {
        return fake_azure_metadata_new(
                m->loop, azure_events(m, o),
                &(FakeAzureMetadataOptions){
                        .name = fj_string(o, "id", NULL),
                        .subscription_id = fj_string(o, "subscription", NULL),
                        .resource_group = fj_string(o, "resourceGroup", NULL),
                        .location = fj_string(o, "location", NULL),
                        .zone = fj_string(o, "zone", NULL),
                        .scale_set = fj_string(o, "scaleSet", NULL),
                        .instance = fj_string(o, "instance", NULL),
                        .spot = fj_true(o, "spot", NULL),
                        .no_system_identity = fj_true(o, "noIdentity", NULL),
                        .first_call_usec =
                                (usec_t) MAX(fj_int(o, 0, "firstCallSeconds", NULL), (int64_t) 0) *
                                USEC_PER_SEC,
                        .watch_usec =
                                (usec_t) MAX(fj_int(o, 0, "watchSeconds", NULL), (int64_t) 0) * USEC_PER_SEC,
                });
}

static void azure_free(void *azure) {
        fake_azure_metadata_free(azure);
}

static bool azure_notice(FakeMachine *m, const char *kind, const char *action, usec_t lead_usec) {
        static const struct {
                const char *kind, *type;
                int64_t duration_sec;
        } types[] = {
                { "spot", "Preempt", -1 },      { "terminate", "Terminate", -1 }, { "reboot", "Reboot", -1 },
                { "redeploy", "Redeploy", -1 }, { "freeze", "Freeze", 9 },
        };

        if (streq(kind, "none")) {
                fake_azure_events_clear(m->events);
                return true;
        }
        for (size_t i = 0; i < ELEMENTSOF(types); i++)
                if (streq(types[i].kind, kind)) {
                        (void) fake_azure_events_add(
                                m->events, &(FakeAzureEvent){ .type = types[i].type,
                                                              .resources = m->id,
                                                              .duration_sec = types[i].duration_sec,
                                                              .lead_usec = lead_usec });
                        return true;
                }
        return false;
}

static void azure_fault(void *azure, unsigned parts, unsigned n, unsigned status, const char *body) {
        if (body)
                fake_azure_metadata_garble(azure, parts, n, body);
        else if (status == 0)
                fake_azure_metadata_hang(azure, parts, n);
        else
                fake_azure_metadata_fail(azure, parts, n, status);
}

/* -- all of them --------------------------------------------------------------------------------------- */

static const PlatformOps platforms[] = {
        { "ec2",
          ec2_new,
          ec2_free,
          fake_imds_handle,
          ec2_notice,
          ec2_fault,
          { { "token", FAKE_IMDS_TOKEN }, { "data", FAKE_IMDS_DATA } } },
        { "gce",
          gce_new,
          gce_free,
          fake_gce_metadata_handle,
          gce_notice,
          gce_fault,
          { { "token", FAKE_GCE_TOKEN }, { "data", FAKE_GCE_DATA } } },
        { "azure",
          azure_new,
          azure_free,
          fake_azure_metadata_handle,
          azure_notice,
          azure_fault,
          { { "instance", FAKE_AZURE_INSTANCE },
            { "events", FAKE_AZURE_EVENTS },
            { "identity", FAKE_AZURE_IDENTITY } } },
};

static FakeMachine *find(const FakeMachines *m, const char *id) {
        LIST_FOREACH (machine, &m->machines, FakeMachine, machines)
                if (streq(machine->id, id))
                        return machine;
        return NULL;
}

FakeMachine *fake_machines_add(FakeMachines *m, const cJSON *o, const char **ret_why) {
        const char *id = fj_string(o, "id", NULL), *platform = fj_string(o, "platform", NULL);
        const PlatformOps *ops = NULL;
        FakeMachine *machine;

        for (size_t i = 0; i < ELEMENTSOF(platforms); i++)
                if (streq(platforms[i].name, platform ? platform : "ec2"))
                        ops = &platforms[i];
        if (isempty(id))
                *ret_why = "an instance needs an id";
        else if (find(m, id))
                *ret_why = "two instances have one id";
        else if (!ops)
                *ret_why = "the platform of an instance is ec2, gce or azure";
        else if (fj_string(o, "instance", NULL) && !fj_string(o, "scaleSet", NULL))
                *ret_why = "a number of an instance needs a scaleSet";
        else {
                machine = MUST(new0(FakeMachine, 1));
                machine->all = m;
                machine->ops = ops;
                machine->id = MUST(strdup(id));
                machine->metadata = ops->new (m, o);
                if (streq(ops->name, "azure"))
                        machine->events = azure_events(m, o);
                list_append(&m->machines, &machine->machines);
                return machine;
        }
        return NULL;
}

bool fake_machines_notice(FakeMachines *m, const char *id, const char *kind, const char *action,
                          int64_t seconds) {
        FakeMachine *machine = find(m, id);

        assert(seconds >= 0);
        return machine && machine->ops->notice(machine, kind, action, (usec_t) seconds * USEC_PER_SEC);
}

/* 0: one of them is none of this platform. */
static unsigned parts_of(const PlatformOps *ops, const cJSON *names) {
        unsigned all = 0, wanted = 0;
        const cJSON *name;

        for (size_t i = 0; i < ELEMENTSOF(ops->parts) && ops->parts[i].name; i++)
                all |= ops->parts[i].bit;
        if (!names)
                return all;
        cJSON_ArrayForEach (name, names) {
                unsigned bit = 0;

                for (size_t i = 0; i < ELEMENTSOF(ops->parts) && ops->parts[i].name; i++)
                        if (streq_ptr(ops->parts[i].name, name->valuestring))
                                bit = ops->parts[i].bit;
                if (bit == 0)
                        return 0;
                wanted |= bit;
        }
        return wanted;
}

const char *fake_machines_fault(FakeMachines *m, const char *id, const cJSON *o) {
        int64_t status = fj_int(o, 0, "status", NULL), count = fj_int(o, -1, "count", NULL);
        const char *body = fj_string(o, "body", NULL);
        bool hang = fj_true(o, "hang", NULL);
        FakeMachine *machine = find(m, id);
        unsigned parts;

        if (!machine)
                return "there is no such instance";
        parts = parts_of(machine->ops, fj_get(o, "parts", NULL));
        if (parts == 0)
                return "parts: one of them its metadata does not have";
        if ((status != 0) + hang + !!body != (count == 0 ? 0 : 1))
                return "a fault needs one of status, hang and body, its end (count 0) none";
        if (status != 0 && (status < 400 || status > 599))
                return "status: 400 to 599";
        machine->ops->fault(machine->metadata, parts, count < 0 ? UINT_MAX : (unsigned) count,
                            (unsigned) status, body);
        return NULL;
}

const char *fake_machine_platform(const FakeMachine *m) {
        return m->ops->name;
}

void fake_machine_handle(HttpExchange *x, void *machine) {
        FakeMachine *m = machine;

        m->ops->handle(x, m->metadata);
}

/* -- life ---------------------------------------------------------------------------------------------- */

FakeMachines *fake_machines_new(Loop *loop) {
        FakeMachines *m = MUST(new0(FakeMachines, 1));
        int r = hashmap_new(0, &m->azure_events);

        assert(r >= 0);
        m->loop = loop;
        return m;
}

static void *free_events(void *events) {
        return fake_azure_events_free(events);
}

FakeMachines *fake_machines_free(FakeMachines *m) {
        if (!m)
                return NULL;
        LIST_FOREACH (machine, &m->machines, FakeMachine, machines) {
                machine->ops->free(machine->metadata);
                free(machine->id);
                free(machine);
        }
        hashmap_free_with(m->azure_events, free_events);
        return mfree(m);
}
