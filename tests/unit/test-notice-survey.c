/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent-rig.h"
#include "cmocka-test.h"
#include "fake-azure-events.h"
#include "fake-azure-metadata.h"
#include "fake-gce-metadata.h"
#include "http-inproc.h"
#include "notice-survey.h"
#include "string-util.h"

/* vesper-agent --notices, in the process of an agent that polls nothing itself. */

#define OTHER "http://other.metadata"
#define EVENTS "events/maintenance/scheduled"

static AgentRig *quiet_rig(void) {
        AgentRig *r = agent_rig_new();

        r->config.metadata_source = METADATA_SOURCE_NONE;
        agent_rig_start(r);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        fake_api_log_reset(fake_cluster_api(r->cluster));
        return r;
}

static void on_done(void *userdata) {
        ++*(unsigned *) userdata;
}

/* The whole text, for people or in JSON; free it. */
static char *survey(AgentRig *r, const AgentConfig *config, bool with_client, bool json, bool whole) {
        NoticeSurvey *s;
        char *text = NULL;
        unsigned n = 0;
        size_t size;
        FILE *f;

        assert_return_code(notice_survey_new(&r->env, config, with_client ? r->client : NULL, on_done, &n, &s), 0);
        agent_rig_run(r, 40 * USEC_PER_SEC);
        assert_int_equal(n, 1);
        assert_int_equal(notice_survey_is_whole(s), whole);
        f = open_memstream(&text, &size);
        assert_non_null(f);
        if (json)
                assert_return_code(notice_survey_print_json(s, f), 0);
        else
                notice_survey_print(s, f);
        assert_int_equal(fclose(f), 0);
        print_message("%s", text);
        notice_survey_free(s);
        return text;
}

static void assert_says(const char *text, const char *part) {
        if (!strstr(text, part))
                fail_msg("it does not say '%s':\n%s", part, text);
}

static AgentConfig config_of(const AgentRig *r, MetadataSource source) {
        AgentConfig c = r->config;

        c.metadata_source = source;
        c.detected_cloud = METADATA_SOURCE_NONE;
        return c;
}

#define ALL_KINDS(would) \
        "ec2   spot/instance-action                 1 announced\n" \
        "ec2   autoscaling/target-lifecycle-state   1 announced\n" \
        "ec2   events/recommendations/rebalance     1 announced\n" \
        "ec2   events/maintenance/scheduled         1 announced\n" \
        "ec2   tags/instance/vesper.sh:capacity-block-end none\n" \
        "file  file                                 1 announced\n" \
        "\n" \
        "spot i-0123456789abcdef0-terminate-00000000000000000000000000000001 (ec2)\n" \
        "        action      terminate\n" \
        "        deadline    2026-01-01T00:02:10Z\n" \
        "        vesper      " would "drain now (time is short)\n" \
        "scale-in i-0123456789abcdef0-scale-in-00000000000000000000000000000001 (ec2)\n" \
        "        action      terminate\n" \
        "        deadline    not said\n" \
        "        vesper      " would "cordon now, for 2h ([Policy] says that its pods stay)\n" \
        "rebalance i-0123456789abcdef0-rebalance-2026-10-26T08:22:00Z (ec2)\n" \
        "        action      rebalance, as advice\n" \
        "        deadline    not said\n" \
        "        vesper      report ([Policy] says that this kind of notice is only reported)\n" \
        "maintenance instance-event-1 (ec2)\n" \
        "        action      reboot\n" \
        "        not before  2026-01-01T05:00:10Z\n" \
        "        deadline    2026-01-01T05:00:10Z\n" \
        "        vesper      " would "drain from 2026-01-01T04:00:10Z on (its time has not come)\n" \
        "maintenance door-open (file)\n" \
        "        action      look, as advice\n" \
        "        deadline    not said\n" \
        "        vesper      report (it is a recommendation)\n"
static const char all_kinds[] = ALL_KINDS("");
static const char all_kinds_dry[] = ALL_KINDS("would ") "[Agent] DryRun=yes: none of it is done.\n";
static const char all_kinds_json[] =
        "{\"dryRun\":true,\"feeds\":[{\"source\":\"ec2\",\"feed\":\"spot/instance-action\","
        "\"answer\":\"announced\"},"
        "{\"source\":\"ec2\",\"feed\":\"autoscaling/target-lifecycle-state\","
        "\"answer\":\"announced\"},"
        "{\"source\":\"ec2\",\"feed\":\"events/recommendations/rebalance\","
        "\"answer\":\"announced\"},"
        "{\"source\":\"ec2\",\"feed\":\"events/maintenance/scheduled\",\"answer\":\"announced\"},"
        "{\"source\":\"ec2\",\"feed\":\"tags/instance/vesper.sh:capacity-block-end\","
        "\"answer\":\"none\"},"
        "{\"source\":\"file\",\"feed\":\"file\",\"answer\":\"announced\"}],"
        "\"notices\":[{\"kind\":\"spot\","
        "\"id\":\"i-0123456789abcdef0-terminate-00000000000000000000000000000001\","
        "\"source\":\"ec2\",\"action\":\"terminate\",\"deadline\":\"2026-01-01T00:02:10Z\","
        "\"advisory\":false,\"plan\":\"drain\",\"reason\":\"time is short\"},"
        "{\"kind\":\"scale-in\","
        "\"id\":\"i-0123456789abcdef0-scale-in-00000000000000000000000000000001\","
        "\"source\":\"ec2\",\"action\":\"terminate\",\"advisory\":false,\"plan\":\"cordon\","
        "\"until\":\"2026-01-01T02:01:30Z\",\"reason\":\"[Policy] says that its pods stay\"},"
        "{\"kind\":\"rebalance\",\"id\":\"i-0123456789abcdef0-rebalance-2026-10-26T08:22:00Z\","
        "\"source\":\"ec2\",\"action\":\"rebalance\",\"advisory\":true,\"plan\":\"report\","
        "\"reason\":\"[Policy] says that this kind of notice is only reported\"},"
        "{\"kind\":\"maintenance\",\"id\":\"instance-event-1\",\"source\":\"ec2\","
        "\"action\":\"reboot\",\"notBefore\":\"2026-01-01T05:00:10Z\","
        "\"deadline\":\"2026-01-01T05:00:10Z\",\"advisory\":false,\"plan\":\"drain\","
        "\"begin\":\"2026-01-01T04:00:10Z\",\"reason\":\"its time has not come\"},"
        "{\"kind\":\"maintenance\",\"id\":\"door-open\",\"source\":\"file\",\"action\":\"look\","
        "\"advisory\":true,\"plan\":\"report\",\"reason\":\"it is a recommendation\"}]}\n";

/* All feeds of EC2, and a file: what stands, and what becomes of it. Nobody is told anything. */
TEST_CASE(test_all_kinds) {
        _cleanup_(agent_rig_freep) AgentRig *r = quiet_rig();
        AgentConfig c = config_of(r, METADATA_SOURCE_EC2);
        char path[] = "/tmp/vesper-notices-XXXXXX", at[RFC3339_MAX];
        const char *advice = "[{\"id\": \"door-open\", \"kind\": \"door\", \"action\": \"look\"}]";
        _cleanup_free_ char *body = NULL, *text = NULL, *json = NULL, *dry = NULL, *writes = NULL;
        usec_t now = loop_wall(r->loop);
        int fd = mkstemp(path);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, advice, strlen(advice)), strlen(advice));
        assert_int_equal(fchmod(fd, 0600), 0);
        rfc3339_format(now + 5 * USEC_PER_HOUR, at);
        body = strf("[{\"EventId\": \"instance-event-1\", \"Code\": \"system-reboot\", \"State\": \"active\", \"NotBefore\": \"%s\"}]", at);
        fake_imds_set_text(r->imds, EVENTS, body);
        fake_imds_set_text(r->imds, "autoscaling/target-lifecycle-state", "Terminated");
        fake_imds_set_text(r->imds, "events/recommendations/rebalance", "{\"noticeTime\": \"2026-10-26T08:22:00Z\"}");
        agent_rig_notice(r, 120 * USEC_PER_SEC);
        c.file_path = path;
        c.policy[NOTICE_MAINTENANCE] = (char *) "before:1h";
        c.policy[NOTICE_REBALANCE] = (char *) "report";
        c.policy[NOTICE_SCALE_IN] = (char *) "cordon:2h";

        text = survey(r, &c, false, false, true);
        assert_string_equal(text, all_kinds);
        c.dry_run = true;
        json = survey(r, &c, false, true, true);
        assert_string_equal(json, all_kinds_json);
        dry = survey(r, &c, false, false, true);
        assert_string_equal(dry, all_kinds_dry);

        writes = agent_rig_writes(r);
        assert_string_equal(writes, "");
        assert_false(agent_rig_unschedulable(r));
        assert_false(agent_rig_has_event(r, "Node", "InterruptionPlanned"));
        (void) close(fd);
        assert_int_equal(unlink(path), 0);
}

TEST_CASE(test_none) {
        _cleanup_(agent_rig_freep) AgentRig *r = quiet_rig();
        AgentConfig c = config_of(r, METADATA_SOURCE_EC2), none = config_of(r, METADATA_SOURCE_NONE);
        _cleanup_free_ char *text = survey(r, &c, false, false, true), *nowhere = survey(r, &none, false, false, true);

        assert_says(text, "ec2   events/maintenance/scheduled         none\n");
        assert_says(text, "\nNothing is announced.\n");
        assert_says(nowhere, "No source of notices is configured");
}

/* What has not answered may announce more: it says so, and is in the exit status. A feed that did answer counts. */
TEST_CASE(test_unknown) {
        _cleanup_(agent_rig_freep) AgentRig *r = quiet_rig();
        AgentConfig c = config_of(r, METADATA_SOURCE_EC2);
        _cleanup_free_ char *text = NULL, *json = NULL, *garbled = NULL;

        fake_imds_set_text(r->imds, EVENTS, "{}");
        garbled = survey(r, &c, false, false, false);
        assert_says(garbled, "ec2   spot/instance-action                 none\n");
        assert_says(garbled, "ec2   events/maintenance/scheduled         unknown: ");
        assert_says(garbled, "\nNothing is known to be announced.\n");
        fake_imds_hang(r->imds, FAKE_IMDS_ALL, UINT_MAX);
        text = survey(r, &c, false, false, false);
        assert_says(text, "spot/instance-action                 unknown: ");
        assert_says(text, "events/maintenance/scheduled         unknown: nothing in time\n");
        json = survey(r, &c, false, true, false);
        assert_says(json, "\"answer\":\"unknown\",\"message\":\"nothing in time\"}");
}

/* The firmware names no cloud: the Node's providerID does. */
TEST_CASE(test_auto) {
        _cleanup_(agent_rig_freep) AgentRig *r = quiet_rig();
        AgentConfig c = config_of(r, METADATA_SOURCE_AUTO);
        _cleanup_free_ char *text = NULL, *without = NULL, *away = NULL;

        agent_rig_notice(r, 120 * USEC_PER_SEC);
        text = survey(r, &c, true, false, true);
        assert_says(text, "node  providerID                           read\n");
        assert_says(text, "ec2   spot/instance-action                 1 announced\n");
        without = survey(r, &c, false, false, false);
        assert_says(without, "providerID                           unknown: there is no credential");
        r->lost = "/api/v1/nodes/n1";
        away = survey(r, &c, true, false, false);
        assert_says(away, "providerID                           unknown: ");
}

/* Metadata of another machine than the Node's: nothing of it is shown as if it were acted upon. */
TEST_CASE(test_foreign) {
        _cleanup_(agent_rig_freep) AgentRig *r = quiet_rig();
        AgentConfig c = config_of(r, METADATA_SOURCE_EC2);
        _cleanup_free_ char *text = NULL, *json = NULL, *own = NULL, *by_firmware = NULL;

        agent_rig_notice(r, 120 * USEC_PER_SEC);
        own = survey(r, &c, true, false, true);
        assert_says(own, "ec2   spot/instance-action                 1 announced\n");
        assert_null(strstr(own, "providerID"));
        fake_imds_set_instance_id(r->imds, "i-0fedcba9876543210");
        text = survey(r, &c, true, false, false);
        assert_says(text, "spot/instance-action                 unknown: it speaks for another machine (i-0fedcba9876543210), and nothing that it announces is acted upon");
        assert_says(text, "\nNothing is known to be announced.\n");
        json = survey(r, &c, true, true, false);
        assert_says(json, "\"feed\":\"spot/instance-action\",\"answer\":\"unknown\",\"message\":\"it speaks for another machine");
        assert_says(json, "\"notices\":[]");
        (void) snprintf(c.detected_instance, sizeof(c.detected_instance), "i-0fedcba9876543210");
        by_firmware = survey(r, &c, true, false, true);
        assert_says(by_firmware, "1 announced\n");
}

/* Each source names its feeds, and reports no other. */
TEST_CASE(test_other_clouds) {
        AgentRig *r = quiet_rig();
        AgentConfig gce = config_of(r, METADATA_SOURCE_GCE), azure = config_of(r, METADATA_SOURCE_AZURE);
        FakeGceMetadata *google = fake_gce_metadata_new(r->world.loop, &(FakeGceMetadataOptions){ .name = "vm" });
        FakeAzureEvents *events = fake_azure_events_new(r->world.loop);
        FakeAzureMetadata *microsoft = fake_azure_metadata_new(r->world.loop, events, &(FakeAzureMetadataOptions){ .name = "vm" });
        char *text;

        assert_return_code(http_inproc_route(r->transport, OTHER, fake_gce_metadata_handle, google), 0);
        assert_return_code(http_inproc_route(r->transport, "http://azure.metadata", fake_azure_metadata_handle, microsoft), 0);
        gce.metadata_endpoint = (char *) OTHER;
        azure.metadata_endpoint = (char *) "http://azure.metadata";
        text = survey(r, &gce, false, false, true);
        assert_says(text, "gce   instance/shutdown-details/stop-state none\n");
        free(text);
        text = survey(r, &azure, false, false, true);
        assert_says(text, "azure scheduledevents                      none\n");
        free(text);
        agent_rig_kill(r);
        fake_gce_metadata_free(google);
        fake_azure_metadata_free(microsoft);
        fake_azure_events_free(events);
        agent_rig_free(r);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_all_kinds), cmocka_unit_test(test_none),         cmocka_unit_test(test_unknown),
                cmocka_unit_test(test_auto),      cmocka_unit_test(test_other_clouds), cmocka_unit_test(test_foreign),
        };
        return cmocka_run_group_tests_name("notice-survey", tests, NULL, NULL);
}
