/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent-rig.h"
#include "cmocka-test.h"
#include "string-util.h"
#include "texts.h"

/* Announced reboots that are taken before their time, by whole agents; the test is the coordinator. */

#define S USEC_PER_SEC
#define EVENTS "events/maintenance/scheduled"
#define REQUEST "vesper.sh/shutdown-request"
#define GRANTED "vesper.sh/shutdown-granted"
#define TAKEN "vesper.sh/reboot-taken"
/* Every feed has been looked at anew by then. */
#define LOOKS_USEC (70 * S)
#define EVENT "instance-event-1"

static void run(AgentRig *r, usec_t usec) {
        usec_t until = virtual_time_now(r->world.time) + usec;

        while (agent_rig_run(r, until - virtual_time_now(r->world.time)))
                ;
}

#define ADOPTED "{'metadata':{'finalizers':['vesper.sh/termination'],'labels':{'vesper.sh/nodepool':'p'}}}"

static AgentRig *early_rig_on(const char *node, const char *rule) {
        AgentRig *r = agent_rig_new();

        assert_return_code(free_and_strdup(&r->config.policy_reboot, rule), 0);
        assert_return_code(free_and_strdup(&r->config.policy[NOTICE_MAINTENANCE], "before:1h"), 0);
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "%s", node);
        agent_rig_add_pods(r, "web", 3);
        agent_rig_start(r);
        run(r, 10 * S);
        assert_true(r->ready);
        return r;
}

static AgentRig *early_rig(const char *rule) {
        return early_rig_on(ADOPTED, rule);
}

static void announce(AgentRig *r, const char *id, const char *code, usec_t in_usec) {
        _cleanup_free_ char *body = NULL;
        char at[RFC3339_MAX];

        rfc3339_format(usec_add(loop_wall(r->world.loop), in_usec), at);
        body = strf("[{\"EventId\": \"%s\", \"Code\": \"%s\", \"State\": \"active\", \"NotBefore\": \"%s\"}]", id, code, at);
        fake_imds_set_text(r->imds, EVENTS, body);
}

/* A member of the request, or NULL; free it. */
static char *asked(AgentRig *r, const char *member) {
        const char *text = agent_rig_annotation(r, REQUEST);
        cJSON *o = text ? cJSON_Parse(text) : NULL;
        const char *value = o ? fj_string(o, member, NULL) : NULL;
        char *copy = value ? strdup(value) : NULL;

        cJSON_Delete(o);
        return copy;
}

static void assert_plan(AgentRig *r, bool waits) {
        const cJSON *c = fj_find(fj_get(agent_rig_node(r), "status", "conditions", NULL), "type", "MaintenancePlanned");
        const char *text = c ? fj_string(c, "message", NULL) : NULL;

        assert_non_null(text);
        assert_int_equal(strstr(text, "vesper-agent waits for a slot to reboot this machine early. Without a slot, "
                                "vesper-agent moves") != NULL, waits);
        assert_int_equal(startswith(text, "vesper-agent moves this node's pods away from ") != NULL, !waits);
}

static void assert_asks(AgentRig *r, const char *event, const char *by) {
        _cleanup_free_ char *is = asked(r, "event"), *who = asked(r, "by");

        assert_non_null(is);
        assert_string_equal(is, event);
        assert_true(streq_ptr(who, by));
        assert_plan(r, true);
        assert_false(agent_rig_unschedulable(r)); /* in service until it is granted */
        assert_int_equal(agent_rig_n_pods(r), 3);
}

static void grant(AgentRig *r, int in_sec) {
        _cleanup_free_ char *id = asked(r, "id");
        char until[RFC3339_MAX];

        assert_non_null(id);
        rfc3339_format(loop_wall(r->world.loop) + (usec_t) in_sec * S, until);
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE,
                   "{'metadata':{'annotations':{'" GRANTED "':'{\\\"id\\\":\\\"%s\\\",\\\"until\\\":\\\"%s\\\"}'}}}", id, until);
}

static void take_grant_off(AgentRig *r) {
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'metadata':{'annotations':{'" GRANTED "':null}}}");
}

static void assert_drained_for(AgentRig *r, const char *event) {
        const char *text = agent_rig_annotation(r, "vesper.sh/interruption");

        assert_non_null(text);
        assert_non_null(strstr(text, event));
        assert_non_null(strstr(text, "\"Drained\""));
        assert_true(agent_rig_unschedulable(r));
        assert_int_equal(agent_rig_n_pods(r), 0);
}

static void assert_in_service(AgentRig *r) {
        assert_null(agent_rig_annotation(r, REQUEST));
        assert_string_equal(agent_phase(r->agent), "Idle");
        assert_false(agent_rig_unschedulable(r));
        assert_int_equal(fake_power_phase(r->power), FAKE_POWER_UP);
}

/* The whole way of EC2's: asked, marked before anything moves, drained, rebooted by the cloud; the event that stands after that is
 * left to its window. */
TEST_CASE(test_by_cloud) {
        _cleanup_(agent_rig_freep) AgentRig *r = early_rig("early");

        announce(r, EVENT, "system-reboot", 30 * USEC_PER_HOUR);
        run(r, LOOKS_USEC);
        assert_asks(r, EVENT, "cloud");
        assert_true(agent_rig_said(r, ", or until a coordinator lets its machine reboot early; then its pods are moved away."));
        assert_null(agent_rig_annotation(r, TAKEN)); /* nobody has granted it */
        grant(r, 2400);
        run(r, 30 * S);
        assert_string_equal(agent_rig_annotation(r, TAKEN), EVENT);
        run(r, 60 * S);
        assert_drained_for(r, EVENT);
        assert_int_equal(fake_power_phase(r->power), FAKE_POWER_UP); /* that is not the agent's */
        assert_true(agent_rig_said(r, "the coordinator has the cloud reboot its machine now"));

        agent_rig_kill(r);
        agent_rig_reboot(r);
        agent_rig_start(r);
        run(r, 60 * S);
        assert_in_service(r);
        run(r, 8 * USEC_PER_HOUR);
        assert_in_service(r);
        assert_string_equal(agent_rig_annotation(r, TAKEN), EVENT);
        assert_true(agent_rig_said(r, "was taken early once, and is announced all the same"));
        run(r, 21 * USEC_PER_HOUR); /* an hour before its time */
        assert_drained_for(r, EVENT);
        assert_null(agent_rig_annotation(r, REQUEST));
}

/* The watch shows the agent's last report on the drained node before the report itself is answered. */
TEST_CASE(test_late_answer) {
        _cleanup_(agent_rig_freep) AgentRig *r = early_rig("early");

        r->patch_reply_delay_usec = 500 * USEC_PER_MSEC;
        announce(r, EVENT, "system-reboot", 30 * USEC_PER_HOUR);
        run(r, LOOKS_USEC);
        grant(r, 2400);
        for (unsigned i = 0; i < 600 && agent_rig_n_pods(r) > 0; i++)
                run(r, S / 10);
        fake_cluster_set_kubelet(r->cluster, RIG_NODE, false); /* no heartbeat changes the Node after that */
        run(r, 8 * S);
        assert_drained_for(r, EVENT);
        assert_true(agent_rig_said(r, "the coordinator has the cloud reboot its machine now"));
}

TEST_CASE(test_not_wanted) {
        static const struct {
                const char *rule, *code;
        } rows[] = { { NULL, "system-reboot" }, { "before:1h", "system-reboot" }, { "early", "instance-reboot" },
                     { "early", "instance-stop" }, { "early", "system-maintenance" } };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = early_rig(rows[i].rule);

                announce(r, EVENT, rows[i].code, 30 * USEC_PER_HOUR);
                run(r, LOOKS_USEC);
                assert_in_service(r);
                assert_plan(r, false);
                assert_true(agent_rig_said(r, "; then its pods are moved away."));
                assert_false(agent_rig_said(r, "early"));
        }
}

/* Returns true if the last report on a planned notice says that the machine may reboot early. */
static bool is_promised(AgentRig *r) {
        const char *last = NULL;

        for (const char *p = strbuf_str(&r->lines); (p = strstr(p, " stays in service until ")); p++)
                last = p;
        assert_non_null(last);
        last = strchr(last, ',');
        return last && startswith(last, ", or until a coordinator lets its machine reboot early; "
                                        "then its pods are moved away.");
}

static void refuse_by_person(AgentRig *r) {
        assert_int_equal(fake_power_call_unit(r->power, "CancelReboot"), 0);
}

static void refuse_by_patience(AgentRig *r) {
        run(r, r->config.reboot_patience_usec);
}

/* The agent promises an early reboot only if it asks for one, at once or after six hours. If `before` is set, EC2
 * calls the event off after it and announces the event again, so that the agent reports its plan again. */
TEST_CASE(test_promise) {
        static const struct {
                const char *what, *node;
                void (*before)(AgentRig *r);
                bool promised, asks_now, asks_later;
        } rows[] = {
                { "adopted", ADOPTED, NULL, true, true, true },
                { "no pool has adopted the node", "{}", NULL, false, false, false },
                { "taken early once",
                  "{'metadata':{'finalizers':['vesper.sh/termination'],'labels':{'vesper.sh/nodepool':'p'},"
                  "'annotations':{'vesper.sh/reboot-taken':'" EVENT "'}}}",
                  NULL, false, false, false },
                { "a person took it back", ADOPTED, refuse_by_person, false, false, false },
                { "nobody granted it in time", ADOPTED, refuse_by_patience, true, false, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = early_rig_on(rows[i].node, "early");

                print_message("%s\n", rows[i].what);
                announce(r, EVENT, "system-reboot", 30 * USEC_PER_HOUR);
                run(r, LOOKS_USEC);
                if (rows[i].before) {
                        assert_true(is_promised(r));
                        rows[i].before(r);
                        fake_imds_set_text(r->imds, EVENTS, "[]");
                        run(r, LOOKS_USEC);
                        announce(r, EVENT, "system-reboot", 29 * USEC_PER_HOUR);
                        run(r, LOOKS_USEC);
                }
                assert_int_equal(is_promised(r), rows[i].promised);
                assert_int_equal(agent_rig_annotation(r, REQUEST) != NULL, rows[i].asks_now);
                run(r, 6 * USEC_PER_HOUR + (rows[i].asks_now ? r->config.reboot_patience_usec : 0));
                assert_int_equal(agent_rig_annotation(r, REQUEST) != NULL, rows[i].asks_later);
        }
}

/* Reboot= alone: a rule of its own. */
TEST_CASE(test_own_rule) {
        _cleanup_(agent_rig_freep) AgentRig *r = early_rig("now");

        announce(r, EVENT, "system-reboot", 30 * USEC_PER_HOUR);
        run(r, LOOKS_USEC + 60 * S);
        assert_drained_for(r, EVENT);
        assert_null(agent_rig_annotation(r, REQUEST));
}

/* The cloud does nothing: undone after ten minutes, and never asked for again. */
TEST_CASE(test_cloud_does_nothing) {
        _cleanup_(agent_rig_freep) AgentRig *r = early_rig("early");

        announce(r, EVENT, "system-reboot", 30 * USEC_PER_HOUR);
        run(r, LOOKS_USEC);
        grant(r, 2400);
        run(r, 300 * S);
        assert_drained_for(r, EVENT);
        run(r, 660 * S);
        assert_in_service(r);
        run(r, 10 * USEC_PER_HOUR);
        assert_in_service(r);
        run(r, 19 * USEC_PER_HOUR);
        assert_drained_for(r, EVENT);
}

/* Before it is granted nothing has happened, so it is asked for again; not at once. */
TEST_CASE(test_nobody_grants) {
        _cleanup_(agent_rig_freep) AgentRig *r = early_rig("early");

        announce(r, EVENT, "system-reboot", 30 * USEC_PER_HOUR);
        run(r, LOOKS_USEC);
        run(r, r->config.reboot_patience_usec);
        assert_in_service(r);
        assert_plan(r, false);
        assert_null(agent_rig_annotation(r, TAKEN));
        run(r, 5 * USEC_PER_HOUR);
        assert_in_service(r);
        run(r, USEC_PER_HOUR + LOOKS_USEC);
        assert_asks(r, EVENT, "cloud");
}

/* Two that nobody grants: each is asked for once in six hours, and none takes the other's turn from the list. */
TEST_CASE(test_two_left) {
        _cleanup_(agent_rig_freep) AgentRig *r = early_rig("early");
        _cleanup_free_ char *body = NULL, *first = NULL, *second = NULL;
        char at[RFC3339_MAX];
        unsigned n_asked = 0;

        rfc3339_format(usec_add(loop_wall(r->world.loop), 60 * USEC_PER_HOUR), at);
        body = strf("[{\"EventId\": \"instance-event-1\", \"Code\": \"system-reboot\", \"State\": \"active\", \"NotBefore\": \"%s\"},"
                    "{\"EventId\": \"instance-event-2\", \"Code\": \"system-reboot\", \"State\": \"active\", \"NotBefore\": \"%s\"}]",
                    at, at);
        fake_imds_set_text(r->imds, EVENTS, body);
        run(r, LOOKS_USEC);
        first = asked(r, "event");
        assert_non_null(first);
        run(r, r->config.reboot_patience_usec);
        second = asked(r, "event");
        assert_non_null(second);
        assert_string_not_equal(first, second);
        run(r, r->config.reboot_patience_usec + LOOKS_USEC);
        assert_in_service(r);
        for (usec_t t = 0; t < 4 * USEC_PER_HOUR; t += USEC_PER_MINUTE) {
                run(r, USEC_PER_MINUTE);
                n_asked += agent_rig_annotation(r, REQUEST) ? 1 : 0;
        }
        assert_int_equal(n_asked, 0);
        run(r, 2 * USEC_PER_HOUR);
        assert_non_null(agent_rig_annotation(r, REQUEST));
}

#define KEPT 16u /* LEFT_MAX of early.c */

/* Announces so many reboots, the first of them first. */
static void announce_many(AgentRig *r, unsigned n) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        char at[RFC3339_MAX];

        rfc3339_format(usec_add(loop_wall(r->world.loop), 60 * USEC_PER_HOUR), at);
        for (unsigned i = 0; i < n; i++)
                strbuf_addf(&b, "%s{\"EventId\": \"instance-event-%02u\", \"Code\": \"system-reboot\", \"State\": \"active\", \"NotBefore\": \"%s\"}",
                            i == 0 ? "[" : ", ", i, at);
        strbuf_add(&b, "]");
        fake_imds_set_text(r->imds, EVENTS, strbuf_str(&b));
}

/* Returns the events that are asked for meanwhile, in their order, "00 01 02 ". */
static void note_asked(AgentRig *r, usec_t usec, StrBuf *ret) {
        _cleanup_free_ char *last = NULL;

        for (usec_t t = 0; t < usec; t += 10 * S) {
                _cleanup_free_ char *event = NULL;

                run(r, 10 * S);
                event = asked(r, "event");
                if (event && !streq_ptr(event, last))
                        strbuf_addf(ret, "%s ", event + strlen("instance-event-"));
                free(last);
                last = TAKE_PTR(event);
        }
}

/* Reboots that nobody grants are asked for one after the other. As many as are kept are not asked for again; of one more, the first
 * is forgotten, and asked for again. An event that is over makes room before. */
TEST_CASE(test_many_left) {
        static const struct {
                unsigned n;
                const char *asked;
        } rows[] = {
                { KEPT, "00 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 " },
                { KEPT + 1, "00 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 00 01 02 " },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();
                _cleanup_strbuf_ StrBuf b = { 0 };

                r->config.reboot_patience_usec = 3 * USEC_PER_MINUTE;
                assert_return_code(free_and_strdup(&r->config.policy_reboot, "early"), 0);
                assert_return_code(free_and_strdup(&r->config.policy[NOTICE_MAINTENANCE], "before:1h"), 0);
                fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, ADOPTED);
                agent_rig_start(r);
                run(r, 10 * S);
                announce_many(r, rows[i].n);
                note_asked(r, USEC_PER_HOUR, &b);
                print_message("%s\n", strbuf_str(&b));
                assert_string_equal(strbuf_str(&b), rows[i].asked);
        }
}

/* Its window drains the node as any other's does, also where it was taken early once, and keeps it so when the window is over. */
TEST_CASE(test_window) {
        _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();
        bool was = false;

        assert_return_code(free_and_strdup(&r->config.policy_reboot, "early"), 0);
        assert_return_code(free_and_strdup(&r->config.policy[NOTICE_MAINTENANCE], "window:0 */6 * * */1h"), 0);
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE,
                   "{'metadata':{'finalizers':['vesper.sh/termination'],'labels':{'vesper.sh/nodepool':'p'},"
                   "'annotations':{'vesper.sh/reboot-taken':'" EVENT "'}}}");
        agent_rig_add_pods(r, "web", 3);
        agent_rig_start(r);
        run(r, 10 * S);
        announce(r, EVENT, "system-reboot", 100 * USEC_PER_HOUR);
        for (usec_t t = 0; t < 13 * USEC_PER_HOUR; t += 5 * USEC_PER_MINUTE) {
                run(r, 5 * USEC_PER_MINUTE);
                if (was)
                        assert_true(agent_rig_unschedulable(r)); /* once begun */
                was = agent_rig_unschedulable(r);
        }
        assert_true(was);
        assert_false(agent_rig_said(r, "the agent was started anew"));
}

TEST_CASE(test_taken_back) {
        _cleanup_(agent_rig_freep) AgentRig *r = early_rig("early");

        announce(r, EVENT, "system-reboot", 30 * USEC_PER_HOUR);
        run(r, LOOKS_USEC);
        assert_int_equal(fake_power_call_unit(r->power, "CancelReboot"), 0);
        run(r, 12 * USEC_PER_HOUR);
        assert_in_service(r); /* by a person: for good */
        announce(r, "instance-event-0", "system-reboot", 30 * USEC_PER_HOUR);
        run(r, LOOKS_USEC);
        assert_int_equal(fake_power_call_unit(r->power, "CancelReboot"), 0);
        announce(r, EVENT, "system-reboot", 30 * USEC_PER_HOUR);
        run(r, 2 * USEC_PER_HOUR);
        assert_in_service(r); /* ... of each that was taken back */

        announce(r, "instance-event-2", "system-reboot", 30 * USEC_PER_HOUR);
        run(r, LOOKS_USEC);
        grant(r, 2400);
        run(r, 120 * S);
        assert_drained_for(r, "instance-event-2");
        take_grant_off(r);
        run(r, 30 * S);
        assert_in_service(r);

        announce(r, "instance-event-3", "system-reboot", 30 * USEC_PER_HOUR);
        run(r, LOOKS_USEC);
        grant(r, 2400);
        run(r, 120 * S);
        fake_imds_set_text(r->imds, EVENTS, "[]"); /* called off */
        run(r, LOOKS_USEC);
        assert_in_service(r);
}

/* Announced, asked for, granted, drained; and the coordinator has said that the cloud is told. */
static void be_told(AgentRig *r) {
        _cleanup_free_ char *id = NULL;
        char until[RFC3339_MAX];

        announce(r, EVENT, "system-reboot", 30 * USEC_PER_HOUR);
        run(r, LOOKS_USEC);
        id = asked(r, "id");
        grant(r, 2400);
        run(r, 120 * S);
        assert_drained_for(r, EVENT);
        rfc3339_format(loop_wall(r->world.loop) + 2000 * S, until);
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE,
                   "{'metadata':{'annotations':{'" GRANTED "':'{\\\"id\\\":\\\"%s\\\",\\\"until\\\":\\\"%s\\\",\\\"sent\\\":true}'}}}", id, until);
}

/* While the cloud is being told an event that is called off changes nothing: the call cannot be taken back. */
TEST_CASE(test_told) {
        _cleanup_(agent_rig_freep) AgentRig *r = early_rig("early");

        be_told(r);
        fake_imds_set_text(r->imds, EVENTS, "[]");
        run(r, 300 * S);
        assert_drained_for(r, EVENT);
        run(r, 400 * S);
        assert_in_service(r); /* it did not come to pass */
}

/* What a person un-cordons stays so. */
TEST_CASE(test_opened) {
        _cleanup_(agent_rig_freep) AgentRig *r = early_rig("early");

        announce(r, EVENT, "system-reboot", 30 * USEC_PER_HOUR);
        run(r, LOOKS_USEC);
        grant(r, 2400);
        run(r, 120 * S);
        assert_drained_for(r, EVENT);
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'unschedulable':false}}");
        run(r, 60 * S);
        assert_in_service(r);
        run(r, 10 * USEC_PER_HOUR);
        assert_in_service(r);
}

/* An agent that begins in the middle leaves nobody drained for days. */
TEST_CASE(test_restart) {
        static const usec_t when[] = { 500 * USEC_PER_MSEC, 2 * S, 5 * S, 120 * S };

        for (size_t i = 0; i < ELEMENTSOF(when); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = early_rig("early");

                announce(r, EVENT, "system-reboot", 30 * USEC_PER_HOUR);
                run(r, LOOKS_USEC);
                grant(r, 2400);
                run(r, when[i]);
                agent_rig_kill(r);
                run(r, 3 * S);
                agent_rig_start(r);
                run(r, 2 * USEC_PER_HOUR);
                if (agent_rig_annotation(r, TAKEN))
                        assert_in_service(r);
                else
                        assert_asks(r, EVENT, "cloud"); /* it had not begun */
        }
}

/* ... but for one whose machine the cloud may reboot at any moment: no pod comes in between, and after ten minutes they do. */
TEST_CASE(test_restart_told) {
        for (int called_off = 0; called_off < 2; called_off++) {
                _cleanup_(agent_rig_freep) AgentRig *r = early_rig("early");

                be_told(r);
                run(r, 5 * S);
                agent_rig_kill(r);
                if (called_off)
                        fake_imds_set_text(r->imds, EVENTS, "[]");
                run(r, 3 * S);
                agent_rig_start(r);
                for (unsigned i = 0; i < 9; i++) {
                        run(r, USEC_PER_MINUTE);
                        assert_drained_for(r, EVENT);
                        assert_non_null(agent_rig_annotation(r, REQUEST));
                }
                run(r, 2 * USEC_PER_MINUTE);
                assert_in_service(r); /* it did not come to pass */
        }
}

/* Pods that opted out are waited for, in service to the others. */
TEST_CASE(test_held) {
        _cleanup_(agent_rig_freep) AgentRig *r = early_rig("early");

        fake_merge(r->cluster, FAKE_PODS, "default", "web-0", "{'metadata':{'annotations':{'vesper.sh/do-not-evict':'true'}}}");
        announce(r, EVENT, "system-reboot", 30 * USEC_PER_HOUR);
        run(r, LOOKS_USEC);
        grant(r, 2400);
        run(r, 300 * S);
        assert_true(agent_rig_unschedulable(r));
        assert_int_equal(agent_rig_n_pods(r), 3);
        assert_null(agent_rig_annotation(r, TAKEN));
        fake_merge(r->cluster, FAKE_PODS, "default", "web-0", "{'metadata':{'annotations':{'vesper.sh/do-not-evict':null}}}");
        run(r, 120 * S);
        assert_drained_for(r, EVENT);
}

static void uncordon(AgentRig *r) {
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'unschedulable':false}}");
}

static void call_off(AgentRig *r) {
        fake_imds_set_text(r->imds, EVENTS, "[]");
}

/* Once the slot is granted, or the event is called off, no condition says that the agent waits for a slot. No write
 * of a condition is in the way of the mark. */
TEST_CASE(test_condition_after_grant) {
        static const struct {
                const char *what;
                bool held, refused;
                usec_t after_usec; /* from the grant on */
                void (*act)(AgentRig *r);
        } rows[] = {
                { "it drains", .held = false },
                { "a person un-cordons the drained node", .after_usec = 120 * S, .act = uncordon },
                { "EC2 calls off the event of a drained node", .after_usec = 120 * S, .act = call_off },
                { "pods that opted out hold the reboot", .held = true },
                { "... and a person un-cordons the node", .held = true, .after_usec = 40 * S, .act = uncordon },
                { "... and EC2 calls off the event", .held = true, .after_usec = 40 * S, .act = call_off },
                { "EC2 calls off the event before the grant arrives", .act = call_off },
                { "EC2 calls off the event, and nobody grants it", .refused = true, .act = call_off },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = early_rig("early");

                print_message("%s\n", rows[i].what);
                if (rows[i].held)
                        fake_merge(r->cluster, FAKE_PODS, "default", "web-0",
                                   "{'metadata':{'annotations':{'vesper.sh/do-not-evict':'true'}}}");
                announce(r, EVENT, "system-reboot", 30 * USEC_PER_HOUR);
                run(r, LOOKS_USEC);
                assert_plan(r, true);
                strbuf_truncate(&r->patches, 0);
                if (!rows[i].refused)
                        grant(r, 2400);
                run(r, rows[i].after_usec);
                if (rows[i].act)
                        rows[i].act(r);
                run(r, LOOKS_USEC);
                assert_null(strstr(strbuf_str(&r->patches), "waits for a slot"));
                assert_int_equal(text_count(strbuf_str(&r->patches), "reboot-taken"),
                                 rows[i].held || rows[i].refused ? 0 : 1);
        }
}

/* A slot does not stop EC2 from stopping the instance: the condition reports the stop alone. */
TEST_CASE(test_condition_of_another_event) {
        _cleanup_(agent_rig_freep) AgentRig *r = early_rig("early");
        char stop[RFC3339_MAX], reboot[RFC3339_MAX];
        _cleanup_free_ char *body = NULL, *event = NULL;

        rfc3339_format(usec_add(loop_wall(r->world.loop), 20 * USEC_PER_HOUR), stop);
        rfc3339_format(usec_add(loop_wall(r->world.loop), 30 * USEC_PER_HOUR), reboot);
        body = strf("[{\"EventId\": \"instance-event-7\", \"Code\": \"instance-stop\", \"State\": \"active\", "
                    "\"NotBefore\": \"%s\"},"
                    "{\"EventId\": \"" EVENT "\", \"Code\": \"system-reboot\", \"State\": \"active\", "
                    "\"NotBefore\": \"%s\"}]",
                    stop, reboot);
        fake_imds_set_text(r->imds, EVENTS, body);
        run(r, LOOKS_USEC);
        event = asked(r, "event");
        assert_true(streq_ptr(event, EVENT));
        assert_plan(r, false);
        assert_null(strstr(strbuf_str(&r->patches), "waits for a slot"));
        assert_non_null(strstr(strbuf_str(&r->patches), "ec2 announces stop of this machine"));
}

/* [Policy] does not move the pods at any time: the condition reports the slot alone. */
TEST_CASE(test_condition_without_time) {
        _cleanup_(agent_rig_freep) AgentRig *r = early_rig("early");

        assert_return_code(free_and_strdup(&r->config.policy[NOTICE_MAINTENANCE], "report"), 0);
        agent_reconfigured(r->agent);
        announce(r, EVENT, "system-reboot", 30 * USEC_PER_HOUR);
        run(r, LOOKS_USEC);
        assert_non_null(strstr(strbuf_str(&r->patches), "vesper-agent waits for a slot to take the reboot of this "
                                                        "machine that is announced before its time"));
        assert_null(strstr(strbuf_str(&r->patches), "moves this node's pods"));
}

/* A graver notice goes first, and the slot back. */
TEST_CASE(test_spot_comes) {
        _cleanup_(agent_rig_freep) AgentRig *r = early_rig("early");

        announce(r, EVENT, "system-reboot", 30 * USEC_PER_HOUR);
        run(r, LOOKS_USEC);
        grant(r, 2400);
        run(r, 120 * S);
        agent_rig_notice(r, 120 * S);
        run(r, 20 * S);
        assert_null(agent_rig_annotation(r, REQUEST));
        assert_true(agent_rig_unschedulable(r));
        assert_non_null(strstr(agent_rig_annotation(r, "vesper.sh/interruption"), "\"spot\""));
}

/* A notice of the machine's owners: by the machine's own reboot, once for each id. */
TEST_CASE(test_by_machine) {
        char folder[] = "/tmp/test-early-XXXXXX";
        AgentRig *r = agent_rig_new();
        _cleanup_free_ char *path = NULL;
        char at[RFC3339_MAX];
        FILE *f;

        assert_non_null(mkdtemp(folder));
        path = strf("%s/notices.json", folder);
        f = fopen(path, "we");
        assert_non_null(f);
        rfc3339_format(usec_add(loop_wall(r->world.loop), 30 * USEC_PER_HOUR), at);
        assert_true(fprintf(f, "{\"id\":\"kernel-7\",\"action\":\"reboot\",\"deadline\":\"%s\"}", at) > 0);
        assert_int_equal(fclose(f), 0);
        assert_return_code(free_and_strdup(&r->config.policy_reboot, "early"), 0);
        assert_return_code(free_and_strdup(&r->config.policy[NOTICE_MAINTENANCE], "before:1h"), 0);
        assert_return_code(free_and_strdup(&r->config.file_path, path), 0);
        r->config.file_poll_usec = 2 * S;
        agent_rig_add_pods(r, "web", 3);
        agent_rig_start(r);
        run(r, 10 * S);
        assert_asks(r, "kernel-7", NULL);
        grant(r, 2400);
        run(r, 120 * S);
        assert_drained_for(r, "kernel-7");
        assert_int_not_equal(fake_power_phase(r->power), FAKE_POWER_UP);
        assert_string_equal(agent_rig_annotation(r, TAKEN), "kernel-7");

        agent_rig_kill(r);
        agent_rig_reboot(r);
        fake_power_boot(r->power);
        agent_rig_start(r);
        run(r, 12 * USEC_PER_HOUR);
        assert_in_service(r); /* whoever wrote it has not taken it off: no second reboot */
        agent_rig_free(r);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(rmdir(folder), 0);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_by_cloud), cmocka_unit_test(test_late_answer),
                        cmocka_unit_test(test_not_wanted), cmocka_unit_test(test_promise),
                cmocka_unit_test(test_own_rule),
                cmocka_unit_test(test_cloud_does_nothing), cmocka_unit_test(test_nobody_grants),
                        cmocka_unit_test(test_two_left), cmocka_unit_test(test_many_left),
                cmocka_unit_test(test_window), cmocka_unit_test(test_taken_back),
                cmocka_unit_test(test_told), cmocka_unit_test(test_opened),     cmocka_unit_test(test_restart), cmocka_unit_test(test_restart_told), cmocka_unit_test(test_held),
                cmocka_unit_test(test_condition_after_grant), cmocka_unit_test(test_condition_of_another_event),
                cmocka_unit_test(test_condition_without_time),
                cmocka_unit_test(test_spot_comes), cmocka_unit_test(test_by_machine),
        };

        return cmocka_run_group_tests_name("early", tests, NULL, NULL);
}
