/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cmocka-test.h"
#include "fake-machines.h"
#include "http-ask.h"

#define FLAVOR "Metadata-Flavor: Google\n"
#define METADATA "Metadata: true\n"
#define GCE "/computeMetadata/v1/instance/"
#define EVENTS "/metadata/scheduledevents?api-version=2020-07-01"

typedef struct Room {
        HttpAsk ask;
        FakeMachines *machines;
        FakeMachine *gce, *azure, *neighbour;
} Room;

static FakeMachine *add(Room *r, const char *json) {
        _cleanup_cjson_ cJSON *o = fj_parse("%s", json);
        const char *why = "";
        FakeMachine *m = fake_machines_add(r->machines, o, &why);

        if (!m)
                fail_msg("%s: %s", json, why);
        return m;
}

static void room_init(Room *r) {
        http_ask_init(&r->ask);
        r->machines = fake_machines_new(r->ask.loop);
        (void) add(r, "{'id':'i-1','zone':'us-east-1a'}");
        r->gce = add(r, "{'id':'vm-g','platform':'gce','gracefulShutdown':true}");
        r->azure = add(r, "{'id':'ss_0','platform':'azure','scaleSet':'ss','instance':'0'}");
        r->neighbour = add(r, "{'id':'ss_1','platform':'azure','scaleSet':'ss','instance':'1'}");
}

static void room_done(Room *r) {
        http_ask_close(&r->ask);
        fake_machines_free(r->machines);
        http_ask_done(&r->ask);
}

static void expect(Room *r, FakeMachine *m, const char *path, unsigned status, const char *body) {
        AskRow row = { path, HTTP_GET, path, m == r->gce ? FLAVOR : METADATA, NULL, status, body };

        http_ask_route(&r->ask, fake_machine_handle, m);
        http_ask_rows(&r->ask, &row, 1);
}

TEST_CASE(test_bad_machines) {
        static const struct {
                const char *json, *why;
        } rows[] = {
                { "{'zone':'a'}", "needs an id" },
                { "{'id':'i-1'}", "two instances" },
                { "{'id':'i-2','platform':'oracle'}", "ec2, gce or azure" },
                { "{'id':'vm-z','platform':'azure','instance':'3'}", "needs a scaleSet" },
        };
        Room r;

        room_init(&r);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_cjson_ cJSON *o = fj_parse("%s", rows[i].json);
                const char *why = NULL;

                assert_null(fake_machines_add(r.machines, o, &why));
                if (!why || !strstr(why, rows[i].why))
                        fail_msg("%s: expected '%s', seen '%s'", rows[i].json, rows[i].why, strempty(why));
        }
        room_done(&r);
}

TEST_CASE(test_notices) {
        static const struct {
                const char *id, *kind, *action;
                bool fine;
        } rows[] = {
                { "i-1", "spot", "stop", true },
                { "i-1", "none", "", true },
                { "i-1", "freeze", "", false },
                { "vm-g", "spot", "", true },
                { "vm-g", "upcoming", "", true },
                { "vm-g", "stop", "", true },
                { "vm-g", "maintenance", "terminate", true },
                { "vm-g", "maintenance", "migrate", true },
                { "vm-g", "maintenance", "stop", false },
                { "vm-g", "reboot", "", false },
                { "ss_0", "spot", "", true },
                { "ss_0", "terminate", "", true },
                { "ss_0", "reboot", "", true },
                { "ss_0", "redeploy", "", true },
                { "ss_0", "freeze", "", true },
                { "ss_0", "stop", "", false },
                { "vm-x", "none", "", false },
        };
        Room r;

        room_init(&r);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                if (fake_machines_notice(r.machines, rows[i].id, rows[i].kind, rows[i].action, 60) !=
                    rows[i].fine)
                        fail_msg("%s %s %s: expected %d", rows[i].id, rows[i].kind, rows[i].action,
                                 rows[i].fine);

        expect(&r, r.gce, GCE "preempted", 200, "TRUE");
        expect(&r, r.gce, GCE "shutdown-details/stop-state", 200, "PENDING_STOP");
        expect(&r, r.gce, GCE "maintenance-event", 200, "NONE"); /* nobody asked before */
        http_ask_run(&r.ask, 60 * USEC_PER_SEC);
        expect(&r, r.gce, GCE "maintenance-event", 200, "MIGRATE_ON_HOST_MAINTENANCE");
        assert_true(fake_machines_notice(r.machines, "vm-g", "none", "", 0));
        expect(&r, r.gce, GCE "preempted", 200, "FALSE");

        /* A neighbour's events are shown, too. */
        expect(&r, r.azure, EVENTS, 200,
               "*\"EventType\":\"Preempt\",\"ResourceType\":\"VirtualMachine\","
               "\"Resources\":[\"ss_0\"]");
        expect(&r, r.neighbour, EVENTS, 200, "*\"Resources\":[\"ss_0\"]");
        assert_true(fake_machines_notice(r.machines, "ss_1", "none", "", 0));
        expect(&r, r.azure, EVENTS, 200, "*\"Events\":[]");
        room_done(&r);
}

TEST_CASE(test_faults) {
        static const struct {
                const char *id, *fault, *why; /* NULL: fine */
        } rows[] = {
                { "vm-x", "{'status':503}", "no such instance" },
                { "vm-g", "{}", "needs one of" },
                { "vm-g", "{'status':503,'hang':true}", "needs one of" },
                { "vm-g", "{'status':200}", "400 to 599" },
                { "vm-g", "{'status':503,'parts':['events']}", "parts" },
                { "vm-g", "{'status':503,'parts':['data'],'count':1}", NULL },
                { "ss_0", "{'body':'','parts':['events'],'count':1}", NULL },
                { "i-1", "{'hang':true,'parts':['token']}", NULL },
                { "i-1", "{'count':0}", NULL },
        };
        Room r;

        room_init(&r);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_cjson_ cJSON *o = fj_parse("%s", rows[i].fault);
                const char *why = fake_machines_fault(r.machines, rows[i].id, o);

                if (rows[i].why ? !why || !strstr(why, rows[i].why) : !!why)
                        fail_msg("%s: expected '%s', seen '%s'", rows[i].fault, strempty(rows[i].why),
                                 strempty(why));
        }
        expect(&r, r.gce, GCE "preempted", 503, NULL);
        expect(&r, r.gce, GCE "preempted", 200, "FALSE");
        expect(&r, r.azure, EVENTS, 200, "");
        expect(&r, r.neighbour, EVENTS, 200, "*\"Events\":[]");
        room_done(&r);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_bad_machines),
                cmocka_unit_test(test_notices),
                cmocka_unit_test(test_faults),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
