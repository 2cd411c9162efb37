/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-azure-metadata.h"
#include "fake-gce-metadata.h"
#include "notice-sources.h"
#include "notices-bench.h"

/* Whole agents, and the machine whose metadata they read: which cloud's it is, and whether it is the Node's. */

TEST_CASE(test_firmware) {
        static const struct {
                FirmwareFacts facts;
                MetadataSource source;
        } rows[] = {
#define S(s) ((char *) (uintptr_t) (s))
                { { .sys_vendor = S("Amazon EC2"), .bios_version = S("1.0") }, METADATA_SOURCE_EC2 },
                { { .sys_vendor = S("Xen"), .bios_version = S("4.11.amazon") }, METADATA_SOURCE_EC2 },
                { { .hypervisor_uuid = S("ec2e1916-9099-7caf-fd21-012345abcdef") }, METADATA_SOURCE_EC2 },
                { { .sys_vendor = S("Google"), .product_name = S("Google Compute Engine") }, METADATA_SOURCE_GCE },
                { { .sys_vendor = S("Google"), .product_name = S("Caroline") }, METADATA_SOURCE_NONE },
                { { .sys_vendor = S("Microsoft Corporation"), .chassis_asset_tag = S("7783-7084-3265-9085-8269-3286-77") },
                  METADATA_SOURCE_AZURE },
                { { .sys_vendor = S("Microsoft Corporation"), .product_name = S("Virtual Machine") }, METADATA_SOURCE_NONE },
                { { .sys_vendor = S("QEMU"), .bios_version = S("1.16.2-debian-1.16.2-1") }, METADATA_SOURCE_NONE },
                { { .sys_vendor = S("Amazon") }, METADATA_SOURCE_NONE },
                { { .hypervisor_uuid = S("00000000-0000-0000-0000-000000000000") }, METADATA_SOURCE_NONE },
                { { 0 }, METADATA_SOURCE_NONE },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                assert_int_equal(metadata_source_of_firmware(&rows[i].facts), rows[i].source);
        assert_int_equal(metadata_source_of_provider_id("aws:///us-east-1a/i-0123456789abcdef0"), METADATA_SOURCE_EC2);
        assert_int_equal(metadata_source_of_provider_id("gce://p/us-central1-a/n1"), METADATA_SOURCE_GCE);
        assert_int_equal(metadata_source_of_provider_id("kind://docker/kind/kind-worker"), METADATA_SOURCE_NONE);
        assert_int_equal(metadata_source_of_provider_id(""), METADATA_SOURCE_NONE);
        assert_int_equal(metadata_source_of_provider_id(NULL), METADATA_SOURCE_NONE);
}

/* Which instance this is, Nitro's firmware says; what is read below a root is what an agent goes by. */
TEST_CASE(test_firmware_instance) {
        static const struct {
                FirmwareFacts facts;
                const char *instance;
        } rows[] = {
                { { .sys_vendor = S("Amazon EC2"), .board_asset_tag = S(RIG_INSTANCE) }, RIG_INSTANCE },
                { { .sys_vendor = S("Amazon EC2"), .board_asset_tag = S("Amazon EC2") }, NULL },
                { { .sys_vendor = S("Amazon EC2") }, NULL },
                { { .sys_vendor = S("QEMU"), .board_asset_tag = S(RIG_INSTANCE) }, NULL },
                { { 0 }, NULL },
        };
        char root[] = "/tmp/test-notices-XXXXXX";
        _cleanup_free_ char *make = NULL, *remove = NULL;
        AgentConfig c = { .detected_instance = "before" };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const char *found = metadata_instance_of_firmware(&rows[i].facts);

                assert_true(streq_ptr(found, rows[i].instance));
        }
        metadata_source_detect("/nonexistent", &c);
        assert_int_equal(c.detected_cloud, METADATA_SOURCE_NONE);
        assert_string_equal(c.detected_instance, "");
        assert_non_null(mkdtemp(root));
        make = strf("mkdir -p %s/sys/class/dmi/id && cd %s/sys/class/dmi/id && echo Amazon EC2 >sys_vendor && echo " RIG_INSTANCE " >board_asset_tag",
                    root, root);
        remove = strf("rm -r %s", root);
        assert_int_equal(system(make), 0);
        metadata_source_detect(root, &c);
        assert_int_equal(system(remove), 0);
        assert_int_equal(c.detected_cloud, METADATA_SOURCE_EC2);
        assert_string_equal(c.detected_instance, RIG_INSTANCE);
}

/* A firmware that says nothing: by the Node, once that is known. */
TEST_CASE(test_auto) {
        _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();

        r->config.metadata_source = METADATA_SOURCE_AUTO;
        r->config.detected_cloud = METADATA_SOURCE_NONE;
        agent_rig_start(r);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_true(agent_rig_said(r, "This is a machine of EC2 by the providerID of its node: its notices are read."));
        agent_rig_notice(r, 120 * USEC_PER_SEC);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_string_equal(agent_phase(r->agent), "Drained");
}

TEST_CASE(test_auto_bare_metal) {
        _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();

        r->config.metadata_source = METADATA_SOURCE_AUTO;
        r->config.detected_cloud = METADATA_SOURCE_NONE;
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'providerID':'kind://docker/kind/n1'}}");
        agent_rig_start(r);
        agent_rig_run(r, 20 * USEC_PER_SEC);
        assert_true(agent_rig_said(r, "no metadata service is read"));
        assert_int_equal(fake_imds_n_gets(r->imds), 0);
}

#define OTHER_INSTANCE "i-0fedcba9876543210"

/* Metadata that answers for another machine takes this one out of service for nothing, and says so once; by the right machine's it
 * is acted upon again. */
TEST_CASE(test_foreign_metadata) {
        _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();

        agent_rig_add_pods(r, "web", 3);
        fake_imds_set_instance_id(r->imds, OTHER_INSTANCE);
        agent_rig_notice(r, 120 * USEC_PER_SEC);
        announce(r, "instance-event-1", "instance-stop", USEC_PER_HOUR / 2);
        agent_rig_start(r);
        agent_rig_run(r, 5 * USEC_PER_MINUTE);
        assert_in_service(r);
        assert_null(agent_rig_condition(r, "MaintenancePlanned"));
        assert_int_equal(n_said(r, "speaks for another machine: for " OTHER_INSTANCE), 1);
        assert_true(agent_rig_has_event(r, "Node", "ForeignMetadata"));
        assert_int_equal(n_said(r, "no usable answer"), 0);

        fake_imds_clear_action(r->imds);
        fake_imds_set_text(r->imds, EVENTS, "[]");
        fake_imds_set_instance_id(r->imds, RIG_INSTANCE);
        fake_imds_revoke(r->imds);
        agent_rig_run(r, 2 * USEC_PER_MINUTE);
        assert_true(agent_rig_said(r, "Source ec2 answers again."));

        /* In the middle of its life, and with a notice in the first answer: another machine's takes none of this one's tokens. */
        fake_imds_set_instance_id(r->imds, OTHER_INSTANCE);
        fake_imds_revoke(r->imds);
        agent_rig_notice(r, 120 * USEC_PER_SEC);
        fake_imds_set_text(r->imds, FAKE_IMDS_LIFECYCLE, "Terminated");
        agent_rig_run(r, 30 * USEC_PER_SEC);
        assert_in_service(r);
        assert_int_equal(n_said(r, "speaks for another machine: for " OTHER_INSTANCE), 2);

        fake_imds_set_instance_id(r->imds, RIG_INSTANCE);
        fake_imds_revoke(r->imds);
        agent_rig_run(r, 20 * USEC_PER_SEC);
        assert_string_equal(agent_phase(r->agent), "Drained");

        /* A notice of the machine's own metadata stands while the metadata of another machine answers. */
        fake_imds_set_instance_id(r->imds, OTHER_INSTANCE);
        fake_imds_revoke(r->imds);
        fake_imds_set_text(r->imds, EVENTS, "[]");
        fake_imds_clear_action(r->imds);
        agent_rig_run(r, 20 * USEC_PER_MINUTE);
        assert_string_equal(agent_phase(r->agent), "Drained");
        assert_int_equal(n_said(r, "speaks for another machine: for " OTHER_INSTANCE), 3);
}

/* A Node that was registered by an earlier machine of its name. What the firmware says settles it; without it nothing does. */
TEST_CASE(test_foreign_provider_id) {
        static const struct {
                const char *firmware;
                const char *phase;
        } rows[] = {
                { OTHER_INSTANCE, "Drained" },
                { RIG_INSTANCE, "Idle" },
                { "", "Idle" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                AgentRig *r = agent_rig_new();
                bool own = streq(rows[i].phase, "Drained");

                (void) snprintf(r->config.detected_instance, sizeof(r->config.detected_instance), "%s", rows[i].firmware);
                fake_imds_set_instance_id(r->imds, OTHER_INSTANCE);
                agent_rig_add_pods(r, "web", 3);
                agent_rig_start(r);
                agent_rig_run(r, USEC_PER_MINUTE);
                agent_rig_notice(r, 120 * USEC_PER_SEC);
                agent_rig_run(r, 30 * USEC_PER_SEC);
                assert_string_equal(agent_phase(r->agent), rows[i].phase);
                assert_int_equal(n_said(r, "its providerID is that of another machine: aws:///"), own);
                assert_int_equal(agent_rig_has_event(r, "Node", "ForeignProviderID"), own);
                assert_int_equal(agent_rig_has_event(r, "Node", "ForeignMetadata"), !own);
                assert_true(agent_rig_said(r, "kubectl delete node n1"));
                agent_rig_free(r);
        }
}

#define GCE_ID "4520031799277581759"
#define GCE_OTHER_ID "1111111111111111111"

/* Metadata that answered for another VM at the start, and has a preemption of it: asked anew while that lasts, also by a server that
 * does not answer that at once; when it is this VM's, what it announces is acted upon. */
TEST_CASE(test_named_anew_gce) {
        AgentRig *r = agent_rig_new();
        FakeGceMetadata *gce = fake_gce_metadata_new(r->world.loop, &(FakeGceMetadataOptions){ .name = "n2", .id = GCE_OTHER_ID });
        size_t gets;

        r->metadata = fake_gce_metadata_handle;
        r->metadata_userdata = gce;
        r->config.metadata_source = METADATA_SOURCE_GCE;
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'providerID':'gce://p/us-central1-a/n1'}}");
        fake_gce_metadata_set_preempted(gce, true);
        agent_rig_add_pods(r, "web", 3);
        agent_rig_start(r);
        agent_rig_run(r, 5 * USEC_PER_MINUTE);
        assert_in_service(r);
        assert_int_equal(n_said(r, "speaks for another machine: for n2"), 1);
        gets = fake_gce_metadata_n_gets(gce);
        agent_rig_run(r, 130 * USEC_PER_MINUTE);
        assert_in_service(r);
        assert_int_equal(n_said(r, "speaks for another machine: for n2"), 3); /* every hour */
        assert_in_range(fake_gce_metadata_n_gets(gce) - gets, 130 * 4, 130 * 6 + 10); /* the feeds, and two a minute */

        /* An id alone changes nothing; neither does a question without an answer. */
        fake_gce_metadata_set_name(gce, NULL);
        fake_gce_metadata_set_id(gce, GCE_ID);
        agent_rig_run(r, 5 * USEC_PER_MINUTE);
        assert_in_service(r);
        fake_gce_metadata_set_name(gce, "n1");
        agent_rig_run(r, 3 * USEC_PER_MINUTE);
        assert_true(agent_rig_said(r, "Source gce answers again."));
        assert_string_equal(agent_phase(r->agent), "Drained");
        assert_non_null(strstr(agent_rig_annotation(r, "vesper.sh/interruption"), GCE_ID "-preempted-"));
        agent_rig_kill(r);
        fake_gce_metadata_free(gce);
        agent_rig_free(r);
}

/* Metadata that did not tell its name at the agent's start, and has a preemption, which is acted upon: no time is to be lost. Once its name is
 * told, and is another VM's, the node is back in service, without a restart of the agent. */
TEST_CASE(test_named_late_gce) {
        AgentRig *r = agent_rig_new();
        FakeGceMetadata *gce = fake_gce_metadata_new(r->world.loop, &(FakeGceMetadataOptions){ .name = "n2", .id = GCE_OTHER_ID });

        r->metadata = fake_gce_metadata_handle;
        r->metadata_userdata = gce;
        r->config.metadata_source = METADATA_SOURCE_GCE;
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'providerID':'gce://p/us-central1-a/n1'}}");
        fake_gce_metadata_set_name(gce, NULL);
        agent_rig_add_pods(r, "web", 3);
        agent_rig_start(r);
        agent_rig_run(r, 5 * USEC_PER_MINUTE);
        fake_gce_metadata_set_preempted(gce, true);
        agent_rig_run(r, 20 * USEC_PER_SEC);
        assert_string_equal(agent_phase(r->agent), "Drained");
        agent_rig_run(r, 5 * USEC_PER_MINUTE);
        assert_string_equal(agent_phase(r->agent), "Drained");
        fake_gce_metadata_set_name(gce, "n2");
        agent_rig_run(r, 90 * USEC_PER_SEC);
        assert_int_equal(n_said(r, "speaks for another machine: for n2"), 1);
        agent_rig_run(r, 10 * USEC_PER_MINUTE);
        assert_string_equal(agent_phase(r->agent), "Idle");
        assert_false(agent_rig_unschedulable(r));
        agent_rig_kill(r);
        fake_gce_metadata_free(gce);
        agent_rig_free(r);
}

TEST_CASE(test_named_anew_azure) {
        AgentRig *r = agent_rig_new();
        FakeAzureEvents *events = fake_azure_events_new(r->world.loop);
        FakeAzureMetadata *azure = fake_azure_metadata_new(r->world.loop, events, &(FakeAzureMetadataOptions){ .name = "n2" });
        size_t n;

        r->metadata = fake_azure_metadata_handle;
        r->metadata_userdata = azure;
        r->config.metadata_source = METADATA_SOURCE_AZURE;
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE,
                   "{'spec':{'providerID':'azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/n1'}}");
        fake_azure_events_add(events, &(FakeAzureEvent){ .type = "Terminate", .resources = "n2", .lead_usec = USEC_PER_HOUR });
        agent_rig_add_pods(r, "web", 3);
        agent_rig_start(r);
        agent_rig_run(r, 5 * USEC_PER_MINUTE);
        assert_in_service(r);
        assert_int_equal(n_said(r, "speaks for another machine: for n2"), 1);
        assert_int_equal(n_said(r, "Asking for the scheduled events of VM"), 1);
        n = fake_azure_metadata_n_requests(azure);
        agent_rig_run(r, 10 * USEC_PER_MINUTE);
        assert_in_range(fake_azure_metadata_n_requests(azure) - n, 300, 320); /* a poll of 2 s, and once a minute */

        fake_azure_metadata_set_name(azure, NULL);
        agent_rig_run(r, 5 * USEC_PER_MINUTE);
        assert_in_service(r);
        fake_azure_metadata_set_name(azure, "n1");
        fake_azure_events_add(events, &(FakeAzureEvent){ .type = "Terminate", .resources = "n1", .lead_usec = USEC_PER_HOUR });
        agent_rig_run(r, 3 * USEC_PER_MINUTE);
        assert_true(agent_rig_said(r, "Source azure answers again."));
        assert_string_equal(agent_phase(r->agent), "Drained");
        agent_rig_kill(r);
        fake_azure_metadata_free(azure);
        fake_azure_events_free(events);
        agent_rig_free(r);
}

/* A Node without a providerID names no machine: metadata is believed. When it gets one that is another machine's, what was begun
 * for that is undone, also by an agent that was started in between; with its own it goes on. */
TEST_CASE(test_provider_id_comes_late) {
        static const struct {
                const char *id, *phase;
                bool restart;
        } rows[] = {
                { RIG_INSTANCE, "Drained", false },
                { OTHER_INSTANCE, "Idle", false },
                { RIG_INSTANCE, "Drained", true },
                { OTHER_INSTANCE, "Idle", true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                AgentRig *r = agent_rig_new();

                fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'providerID':null}}");
                agent_rig_add_pods(r, "web", 3);
                agent_rig_start(r);
                agent_rig_run(r, 10 * USEC_PER_SEC);
                agent_rig_notice(r, 120 * USEC_PER_SEC);
                agent_rig_run(r, 10 * USEC_PER_SEC);
                assert_string_equal(agent_phase(r->agent), "Drained");
                if (rows[i].restart)
                        agent_rig_kill(r);
                fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'providerID':'aws:///us-east-1a/%s'}}", rows[i].id);
                if (rows[i].restart)
                        agent_rig_start(r);
                agent_rig_run(r, USEC_PER_MINUTE);
                assert_string_equal(agent_phase(r->agent), rows[i].phase);
                assert_int_equal(agent_rig_unschedulable(r), streq(rows[i].phase, "Drained"));
                agent_rig_free(r);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_firmware),
                cmocka_unit_test(test_firmware_instance),
                cmocka_unit_test(test_auto),
                cmocka_unit_test(test_auto_bare_metal),
                cmocka_unit_test(test_foreign_metadata),
                cmocka_unit_test(test_foreign_provider_id),
                cmocka_unit_test(test_named_anew_gce),
                cmocka_unit_test(test_named_late_gce),
                cmocka_unit_test(test_named_anew_azure),
                cmocka_unit_test(test_provider_id_comes_late),
        };

        return cmocka_run_group_tests_name("notices-machine", tests, NULL, NULL);
}
