/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "marks.h"

/* A machine waits for the volumes of pods that were drained, and for no others: those of DaemonSet pods
 * never detach. */

static const char *phase(CoordinatorRig *r, const char *node) {
        return strempty(fj_string(rig_claim(r, node), "status", "phase", NULL));
}

static void add_claim(CoordinatorRig *r, const char *name, const char *pv, const char *owner_uid) {
        _cleanup_free_ char *owner =
                owner_uid ? MUST(strf("'ownerReferences':[{'apiVersion':'v1','kind':'Pod','name':'agent',"
                                      "'uid':'%s','controller':true}],",
                                      owner_uid))
                          : MUST(strdup(""));

        fake_put(r->cluster, FAKE_PVCS,
                 fj_parse("{'metadata':{'namespace':'default',%s'name':'%s'},'spec':{'volumeName':'%s'},"
                          "'status':{'phase':'Bound'}}",
                          owner, name, pv));
}

/* volumes: JSON of spec.volumes, with ' for ". The fake attaches claims by their own name. */
static void add_pod(CoordinatorRig *r, const char *name, bool daemon, const char *volumes) {
        fake_add_pod(r->cluster, &(FakePod){ .name = name,
                                             .node = "n0",
                                             .owner_kind = daemon ? "DaemonSet" : NULL,
                                             .owner = daemon ? "agents" : NULL,
                                             .stop_sec = 1 });
        fake_merge(r->cluster, FAKE_PODS, "default", name, "{'spec':{'volumes':%s}}", volumes);
}

static void attach(CoordinatorRig *r, const char *name, const char *source) {
        fake_put(r->cluster, FAKE_VOLUMEATTACHMENTS,
                 fj_parse("{'metadata':{'name':'%s'},'spec':{'attacher':'x','nodeName':'n0','source':{%s}},"
                          "'status':{'attached':true}}",
                          name, source));
}

static const char *uid_of(CoordinatorRig *r, const char *pod) {
        return fj_string(fake_get(r->cluster, FAKE_PODS, "default", pod), "metadata", "uid", NULL);
}

#define SCRATCH "[{'name':'s','persistentVolumeClaim':{'claimName':'scratch'}}]"

static void of_daemon(CoordinatorRig *r) {
        add_claim(r, "scratch", "scratch", NULL);
        add_pod(r, "agent", true, SCRATCH);
}

static void of_daemon_named_otherwise(CoordinatorRig *r) {
        add_claim(r, "scratch", "pvc-1", NULL);
        add_pod(r, "agent", true, "[{'name':'e','emptyDir':{}}]");
        fake_merge(r->cluster, FAKE_PODS, "default", "agent",
                   "{'spec':{'volumes':[{'name':'x','hostPath':{'path':'/'}},{'name':'s',"
                   "'persistentVolumeClaim':{'claimName':'scratch'}}]}}");
        rig_run(r, 100 * MSEC);
        fake_remove(r->cluster, FAKE_VOLUMEATTACHMENTS, NULL, "va-n0-scratch");
        attach(r, "a", "'persistentVolumeName':'pvc-1'");
}

static void ephemeral(CoordinatorRig *r) {
        add_pod(r, "agent", true, "[{'name':'cache','ephemeral':{'volumeClaimTemplate':{'spec':{}}}}]");
        add_claim(r, "agent-cache", "pvc-2", uid_of(r, "agent"));
        attach(r, "a", "'persistentVolumeName':'pvc-2'");
}

static void ephemeral_of_another(CoordinatorRig *r) {
        add_pod(r, "agent", true, "[{'name':'cache','ephemeral':{'volumeClaimTemplate':{'spec':{}}}}]");
        add_claim(r, "agent-cache", "pvc-2", "somebody-else");
        attach(r, "a", "'persistentVolumeName':'pvc-2'");
}

static void shared(CoordinatorRig *r) {
        of_daemon(r);
        add_pod(r, "web", false, SCRATCH);
}

static void of_completed(CoordinatorRig *r) {
        add_claim(r, "scratch", "pvc-1", NULL);
        add_pod(r, "job", false, SCRATCH);
        rig_run(r, 100 * MSEC);
        fake_remove(r->cluster, FAKE_VOLUMEATTACHMENTS, NULL, "va-n0-scratch");
        fake_merge(r->cluster, FAKE_PODS, "default", "job", "{'status':{'phase':'Succeeded'}}");
        attach(r, "a", "'persistentVolumeName':'pvc-1'");
}

static void not_bound(CoordinatorRig *r) {
        of_daemon(r);
        fake_merge(r->cluster, FAKE_PVCS, "default", "scratch", "{'spec':{'volumeName':null}}");
}

static void gone(CoordinatorRig *r) {
        of_daemon(r);
        fake_remove(r->cluster, FAKE_PVCS, "default", "scratch");
}

static void of_another_namespace(CoordinatorRig *r) {
        of_daemon(r);
        fake_remove(r->cluster, FAKE_PVCS, "default", "scratch");
        fake_put(r->cluster, FAKE_PVCS,
                 fj_parse("{'metadata':{'namespace':'other','name':'scratch'},'spec':{'volumeName':'scratch'"
                          "}}"));
}

static void in_line(CoordinatorRig *r) {
        attach(r, "a", "'inlineVolumeSpec':{'csi':{'driver':'x'}}");
}

static void of_nobody(CoordinatorRig *r) {
        of_daemon(r);
        attach(r, "a", "'persistentVolumeName':'pvc-9'");
}

TEST_CASE(test_what_is_waited_for) {
        static const struct {
                const char *what;
                void (*set_up)(CoordinatorRig *r);
                bool waited;
        } rows[] = {
                { "a DaemonSet pod's claim", of_daemon, false },
                { "the same, beside volumes of other kinds", of_daemon_named_otherwise, false },
                { "its ephemeral volume", ephemeral, false },
                { "a claim of that name that is another pod's", ephemeral_of_another, true },
                { "a claim that it shares with a pod that was drained", shared, false },
                { "a pod's that has completed", of_completed, true },
                { "a claim that is not bound", not_bound, true },
                { "a claim that is gone", gone, true },
                { "a claim of that name elsewhere", of_another_namespace, true },
                { "a volume without a claim", in_line, true },
                { "one that no pod claims, beside a DaemonSet pod's", of_nobody, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s: %s\n", rows[i].what, rows[i].waited ? "two minutes" : "none");
                rig_begin(r, 1, NULL);
                rows[i].set_up(r);
                rig_run(r, 2 * USEC_PER_SEC);
                assert_true(fake_count(r->cluster, FAKE_VOLUMEATTACHMENTS) > 0);
                rig_delete_node(r, "n0");
                if (!rows[i].waited) {
                        assert_true(rig_wait_gone(r, "n0", 8 * USEC_PER_SEC));
                        continue;
                }
                rig_run(r, 110 * USEC_PER_SEC);
                assert_string_equal(phase(r, "n0"), "Volumes");
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
                assert_true(rig_wait_gone(r, "n0", 20 * USEC_PER_SEC));
        }
}

/* Those of pods that were drained are waited for as ever, beside them. */
TEST_CASE(test_drained_beside_staying) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, NULL);
        of_daemon(r);
        attach(r, "data", "'persistentVolumeName':'pvc-data'");
        rig_run(r, 2 * USEC_PER_SEC);
        rig_delete_node(r, "n0");
        rig_run(r, 90 * USEC_PER_SEC);
        assert_string_equal(phase(r, "n0"), "Volumes");
        fake_remove(r->cluster, FAKE_VOLUMEATTACHMENTS, NULL, "data");
        assert_true(rig_wait_gone(r, "n0", 500 * MSEC));
        assert_non_null(fake_get(r->cluster, FAKE_VOLUMEATTACHMENTS, NULL, "va-n0-scratch"));
}

typedef struct Trouble {
        FakeResourceId id;
        FakeVerb verb;
        unsigned status, left; /* so many requests; 0 left: none */
        bool late;             /* no answer, for long */
        unsigned n;
} Trouble;

static void on_request(const FakeRequest *request, FakeApiFault *ret_fault, void *userdata) {
        Trouble *t = userdata;

        if (request->verb != t->verb || !request->resource || request->resource->id != t->id ||
            (t->id == FAKE_PODS && isempty(request->ns) && !request->name && t->n++ < 1))
                return;
        if (t->left == 0)
                return;
        t->left--;
        ret_fault->status = t->status;
        if (t->late)
                ret_fault->delay_usec = USEC_PER_HOUR;
}

/* What cannot be read is waited for; what may be read in a moment is asked for again. */
TEST_CASE(test_reads_that_fail) {
        static const struct {
                const char *what;
                Trouble trouble;
                const char *tgp;
                unsigned at_least_sec, at_most_sec;
                const char *warning;
        } rows[] = {
                { "the claim, for a moment", { FAKE_PVCS, FAKE_GET, 500, 2, false, 0 }, NULL, 1, 30, NULL },
                { "the pods, for a moment", { FAKE_PODS, FAKE_LIST, 503, 2, false, 0 }, NULL, 1, 30, NULL },
                { "the claim is forbidden",
                  { FAKE_PVCS, FAKE_GET, 403, 1000, false, 0 },
                  NULL,
                  110,
                  130,
                  "may not read PersistentVolumeClaim default/scratch" },
                { "the claim, for long",
                  { FAKE_PVCS, FAKE_GET, 500, 1000, false, 0 },
                  NULL,
                  110,
                  130,
                  NULL },
                { "no answer, and a deadline",
                  { FAKE_PVCS, FAKE_GET, 0, 1000, true, 0 },
                  "60s",
                  50,
                  65,
                  NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                Trouble trouble = rows[i].trouble;

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 1, rows[i].tgp);
                of_daemon(r);
                rig_run(r, 2 * USEC_PER_SEC);
                fake_api_set_fault(r->api, on_request, &trouble);
                rig_delete_node(r, "n0");
                rig_run(r, rows[i].at_least_sec * USEC_PER_SEC);
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
                assert_true(
                        rig_wait_gone(r, "n0", (rows[i].at_most_sec - rows[i].at_least_sec) * USEC_PER_SEC));
                if (rows[i].warning)
                        assert_non_null(strstr(strbuf_str(&r->coordinators[0]->said), rows[i].warning));
                assert_true(fake_api_count(r->api, FAKE_GET, FAKE_PVCS, NULL) <= 20);
        }
}

/* Nothing is asked where nothing is attached, and each claim once, however many pods mount it. */
TEST_CASE(test_cost) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        uint64_t lists;

        rig_begin(r, 2, NULL);
        for (unsigned i = 0; i < 5; i++) {
                char name[8];

                snprintf(name, sizeof(name), "a%u", i);
                add_pod(r, name, true, SCRATCH);
        }
        add_claim(r, "scratch", "scratch", NULL);
        rig_run(r, 2 * USEC_PER_SEC);
        lists = fake_api_count(r->api, FAKE_LIST, FAKE_PODS, NULL);
        rig_delete_node(r, "n1");
        assert_true(rig_wait_gone(r, "n1", 5 * USEC_PER_SEC));
        assert_int_equal(fake_api_count(r->api, FAKE_GET, FAKE_PVCS, NULL), 0);
        assert_int_equal(fake_api_count(r->api, FAKE_LIST, FAKE_PODS, NULL), lists + 1);
        rig_delete_node(r, "n0");
        assert_true(rig_wait_gone(r, "n0", 5 * USEC_PER_SEC));
        assert_int_equal(fake_api_count(r->api, FAKE_GET, FAKE_PVCS, NULL), 1);
}

/* A pod that comes while volumes are waited for is drained, and the volumes are looked at anew. */
TEST_CASE(test_second_round) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, NULL);
        of_daemon(r);
        attach(r, "data", "'persistentVolumeName':'pvc-data'");
        rig_run(r, 2 * USEC_PER_SEC);
        rig_delete_node(r, "n0");
        rig_run(r, 5 * USEC_PER_SEC);
        assert_string_equal(phase(r, "n0"), "Volumes");
        add_claim(r, "more", "more", NULL);
        add_pod(r, "late", false, "[]");
        add_pod(r, "agent2", true, "[{'name':'s','persistentVolumeClaim':{'claimName':'more'}}]");
        rig_run(r, 5 * USEC_PER_SEC);
        assert_null(fake_get(r->cluster, FAKE_PODS, "default", "late"));
        fake_remove(r->cluster, FAKE_VOLUMEATTACHMENTS, NULL, "data");
        assert_true(rig_wait_gone(r, "n0", 5 * USEC_PER_SEC));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_is_waited_for), cmocka_unit_test(test_drained_beside_staying),
                cmocka_unit_test(test_reads_that_fail),    cmocka_unit_test(test_cost),
                cmocka_unit_test(test_second_round),
        };
        return cmocka_run_group_tests_name("staying-volumes", tests, NULL, NULL);
}
