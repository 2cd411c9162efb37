/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <fcntl.h>

#include "admission-exempt.h"
#include "admission-review.h"
#include "adoption.h"
#include "agent-config.h"
#include "alloc-fault.h"
#include "api-error.h"
#include "aws-error.h"
#include "aws-keys.h"
#include "aws-settings.h"
#include "aws-sigv4.h"
#include "budget-text.h"
#include "calendar.h"
#include "cmocka-test.h"
#include "confirmation.h"
#include "coordinator-config.h"
#include "ctl-status.h"
#include "disruption-cheaper.h"
#include "ec2-answer.h"
#include "event-ack-rule.h"
#include "event-message.h"
#include "eviction.h"
#include "exec-credential.h"
#include "explain-outlook.h"
#include "fuzz-objects.h"
#include "heard-conditions.h"
#include "heard-rule.h"
#include "intent-log.h"
#include "kube-protobuf-fixture.h"
#include "kube-protobuf.h"
#include "kubeconfig.h"
#include "kubelet-labels.h"
#include "kubelet-pods.h"
#include "lease-record.h"
#include "node-marks.h"
#include "notice-azure.h"
#include "notice-ec2.h"
#include "notify-settings.h"
#include "pause-mark.h"
#include "plan-show.h"
#include "queue-told.h"
#include "reboot-slots.h"
#include "reboot-taken.h"
#include "snapshot-anonymize.h"
#include "snapshot-file.h"
#include "sqs-answer.h"
#include "sqs-url.h"
#include "status-patch.h"
#include "string-util.h"
#include "strv.h"
#include "termination-marks.h"
#include "watch-frames.h"
#include "watch-lines.h"
#include "xml-reader.h"

/*
 * Every parser and every writer of a text, once for each allocation that it makes, with that one failing: it
 * says -ENOMEM and nothing else, and has freed what it had (which the run under AddressSanitizer sees).
 */

/* -- what is done ------------------------------------------------------------------------------- */

/* 0, or how it failed. Frees everything. */
typedef int (*work_t)(void);

static int done_text(char *text) {
        free(text);
        return text ? 0 : -ENOMEM;
}

static int do_json(void) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        int r;

        r = json_parse(fuzz_node, strlen(fuzz_node), strlen(fuzz_node), &doc, NULL);
        return r < 0 ? r : done_text(json_format(json_root(doc)));
}

static int do_json_without(void) {
        static const JsonOmit list[] = { { "metadata", "managedFields" }, { "status", "images" } };
        const JsonOmits omits = { .list = list, .n_list = ELEMENTSOF(list) };
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        int r;

        r = json_parse_without(fuzz_node, strlen(fuzz_node), strlen(fuzz_node), &omits, &doc, NULL);
        return r < 0 ? r : done_text(json_format(json_root(doc)));
}

static int on_item(const char *item, size_t size, void *userdata) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;

        return json_parse(item, size, size, &doc, NULL);
}

static int do_json_items(void) {
        static const char list[] = "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[{"
                                   "\"a\":1},{\"b\":\"c\\n\"},[2],null]}";
        _cleanup_(json_doc_freep) JsonDoc *rest = NULL;

        return json_split_items(list, strlen(list), sizeof(list), on_item, NULL, &rest, NULL);
}

static int decode(const KubeKind *kind, const char *text) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        int r;

        r = json_parse(text, strlen(text), strlen(text), &doc, NULL);
        if (r >= 0)
                r = intern_pool_new(&pool);
        if (r >= 0)
                r = kube_object_decode(kind, json_root(doc), pool, &o);
        assert_true(r < 0 || (!o->invalid && o->meta.name));
        o = kube_object_unref(o);
        assert_true(!pool || intern_pool_size(pool) == 0);
        return r;
}

static int do_node(void) {
        return decode(&kube_node_kind, fuzz_node);
}
static int do_pod(void) {
        return decode(&kube_pod_kind, fuzz_pod);
}
static int do_scheduled_pod(void) {
        return decode(&kube_scheduled_pod_kind, fuzz_scheduled_pod);
}
static int do_scheduled_node(void) {
        return decode(&kube_scheduled_node_kind, fuzz_scheduled_node);
}
static int do_storage(void) {
        int r;

        r = decode(&kube_volume_kind, fuzz_volume);
        if (r >= 0)
                r = decode(&kube_scheduled_claim_kind, fuzz_scheduled_claim);
        if (r >= 0)
                r = decode(&kube_storage_class_kind, fuzz_storage_class);
        return r < 0 ? r : decode(&kube_csi_node_kind, fuzz_csi_node);
}
static int put_object(Snapshot *s, SnapshotKind kind, const char *text) {
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        int r;

        r = json_parse(text, strlen(text), strlen(text), &doc, NULL);
        if (r >= 0)
                r = kube_object_decode(snapshot_kube_kind(kind), json_root(doc), s->pool, &o);
        return r < 0 ? r : snapshot_put(s, kind, o);
}

/* Made, made anonymous, saved, and read. */
static int save_snapshot(InternPool *pool, char **ret, size_t *ret_size) {
        _cleanup_(snapshot_freep) Snapshot *s = NULL, *made = NULL;
        char fingerprint[SNAPSHOT_FINGERPRINT_SIZE];
        int r;

        r = snapshot_new(pool, FUZZ_NOW, &s);
        if (r >= 0)
                r = put_object(s, SNAPSHOT_PODS, fuzz_scheduled_pod);
        if (r >= 0)
                r = put_object(s, SNAPSHOT_NODES, fuzz_node);
        if (r >= 0)
                r = put_object(s, SNAPSHOT_NODE_POOLS, fuzz_node_pool);
        if (r >= 0)
                r = snapshot_fingerprint(s, fingerprint);
        if (r >= 0)
                r = snapshot_anonymize(s, &made);
        return r < 0 ? r : snapshot_save(made, ret, ret_size);
}

static int do_snapshot(void) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_free_ char *text = NULL, *why = NULL;
        Snapshot *s = NULL;
        size_t size;
        int r;

        r = intern_pool_new(&pool);
        if (r >= 0)
                r = save_snapshot(pool, &text, &size);
        if (r >= 0)
                r = snapshot_load(text, size, pool, &s, &why);
        snapshot_free(s);
        assert_true(!pool || intern_pool_size(pool) == 0);
        return r;
}

static int do_snapshot_list(void) {
        static const char list[] = "{\"kind\":\"NodeList\",\"apiVersion\":\"v1\",\"items\":[{\"metadata\":{\"name\":\"n\"}},{\"kind\":\"Secret\","
                                   "\"apiVersion\":\"v1\"},{\"kind\":\"Secret\",\"apiVersion\":\"v1\"}]}";
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_free_ char *why = NULL, *passed = NULL;
        Snapshot *s = NULL;
        int r;

        r = intern_pool_new(&pool);
        if (r >= 0)
                r = snapshot_load_list(list, strlen(list), FUZZ_NOW, pool, &s, &passed, &why);
        assert_true(r < 0 || passed);
        snapshot_free(s);
        assert_true(!pool || intern_pool_size(pool) == 0);
        return r;
}

/* A refusal needs memory for its sentence. */
static int do_snapshot_refused(void) {
        static const char text[] = "{\"vesperSnapshot\":1,\"taken\":\"2027-01-15T08:00:00Z\",\"kinds\":[],\"objects\":1}\n"
                                   "{\"apiVersion\":\"v1\",\"kind\":\"Secret\"}\n";
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_free_ char *why = NULL;
        Snapshot *s = NULL;
        int r;

        r = intern_pool_new(&pool);
        if (r >= 0)
                r = snapshot_load(text, strlen(text), pool, &s, &why);
        return r == -EBADMSG && why ? 0 : r;
}

/* Two nodes of a pool that may be replaced by a cheaper one, each with a pod that a budget counts; all that is found against
 * the one that stays. The snapshot itself is not of interest. */
static const char plan_list[] =
        "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":["
        "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"a\",\"uid\":\"ua\",\"labels\":{\"pool\":\"p\","
        "\"node.kubernetes.io/instance-type\":\"l\"}},\"status\":{\"allocatable\":{\"cpu\":\"8\",\"pods\":\"10\"},"
        "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}},"
        "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"b\",\"uid\":\"ub\",\"labels\":{\"pool\":\"p\"}},"
        "\"status\":{\"allocatable\":{\"cpu\":\"1\",\"pods\":\"10\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}},"
        "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"c\",\"uid\":\"uc\",\"labels\":{\"pool\":\"p\"}},"
        "\"status\":{\"allocatable\":{\"cpu\":\"1\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}},"
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"x\",\"name\":\"p\",\"labels\":{\"app\":\"p\"}},"
        "\"spec\":{\"nodeName\":\"a\",\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"2\"}}}]},\"status\":{\"phase\":\"Running\"}},"
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"x\",\"name\":\"q\",\"labels\":{\"app\":\"q\"},"
        "\"annotations\":{\"vesper.sh/do-not-evict\":\"true\"}},\"spec\":{\"nodeName\":\"b\",\"containers\":[{\"resources\":{\"requests\":"
        "{\"cpu\":\"1\"}}}]},\"status\":{\"phase\":\"Running\"}},"
        "{\"apiVersion\":\"policy/v1\",\"kind\":\"PodDisruptionBudget\",\"metadata\":{\"namespace\":\"x\",\"name\":\"p\"},\"spec\":"
        "{\"selector\":{\"matchLabels\":{\"app\":\"p\"}}},\"status\":{\"disruptionsAllowed\":1}},"
        "{\"apiVersion\":\"vesper.sh/v1alpha1\",\"kind\":\"NodeDisruptionBudget\",\"metadata\":{\"name\":\"n\"},\"spec\":"
        "{\"maxUnavailable\":2,\"selector\":{\"matchLabels\":{\"pool\":\"p\"}}}},"
        "{\"apiVersion\":\"vesper.sh/v1alpha1\",\"kind\":\"NodePool\",\"metadata\":{\"name\":\"p\"},\"spec\":{\"selector\":{\"matchLabels\":"
        "{\"pool\":\"p\"}},\"disruption\":{\"budgets\":[{\"nodes\":3,\"schedule\":\"@daily\",\"duration\":\"24h\"}],\"emptyAfter\":\"0s\","
        "\"drift\":\"Auto\",\"expireAfter\":\"900000h\",\"consolidation\":{\"policy\":\"WhenUnderutilized\"}},\"offerings\":["
        "{\"instanceType\":\"l\",\"price\":4},{\"instanceType\":\"s\",\"zone\":\"z\",\"price\":1,\"allocatable\":{\"cpu\":\"4\"}}],\"limits\":{\"cpu\":\"99\",\"nodes\":9}}}]}";

static int plan_all(DisruptionScene *s) {
        _cleanup_(disruption_plan_freep) DisruptionPlan *p = NULL;
        _cleanup_free_ char *json = NULL, *table = NULL, *html = NULL;
        int r = disruption_plan_new(s, &p);

        if (r < 0)
                return r;
        assert_int_equal(p->n_steps, 2); /* c is empty, and a is replaced */
        json = plan_json(p, NULL);
        table = json ? plan_table(p, NULL) : NULL;
        html = table ? plan_html(p, NULL) : NULL;
        return html ? 0 : -ENOMEM;
}

static int plan_one(DisruptionScene *s) {
        _cleanup_(node_outlook_done) NodeOutlook o = {};
        _cleanup_free_ char *json = NULL, *text = NULL;
        int r = node_outlook_make(s, "b", &o);

        if (r < 0)
                return r;
        assert_int_equal(o.plan->n_steps, 0);
        json = node_outlook_json(&o, NULL);
        text = json ? node_outlook_text(&o, NULL) : NULL;
        return text ? 0 : -ENOMEM;
}

/* The same, if its pool may have no node more. */
static int find_limit(DisruptionScene *s, uint32_t node) {
        _cleanup_(gate_findings_done) GateFindings f = {};
        const SimulateVerdict none = {};

        s->nodes[node].pool->limits[0].limit = 0;
        gate_add_no_seats(s, node, GOES_ALONE, &none, &f);
        if (f.failed)
                return -ENOMEM;
        assert_true(gate_has(&f, GATE_POOL_LIMIT));
        return 0;
}

/* Whatever fails, no new node is left in the simulator. */
static int find_cheaper(DisruptionScene *s) {
        _cleanup_free_ char *text = NULL;
        const PoolOffering *o;
        uint32_t a;
        int r = simulator_find_node(s->simulator, "a", &a);

        assert_return_code(r, 0);
        r = node_find_cheaper(s, a, &o);
        assert_int_equal(simulator_n_nodes(s->simulator), s->n_nodes);
        if (r < 0)
                return r;
        assert_int_equal(r, 1);
        text = replaced_text(o, scene_price_micros(s, a), 1);
        return text ? find_limit(s, a) : -ENOMEM;
}

static int plan_of(const Snapshot *snapshot) {
        int (*const plans[])(DisruptionScene *s) = { plan_all, plan_one, find_cheaper };
        int r = 0;

        for (size_t i = 0; i < ELEMENTSOF(plans) && r >= 0; i++) {
                _cleanup_(simulator_freep) Simulator *simulator = NULL;
                _cleanup_(disruption_scene_freep) DisruptionScene *s = NULL;

                r = simulator_new(snapshot, &simulator);
                if (r >= 0)
                        r = disruption_scene_new(snapshot, simulator, NULL, &s);
                if (r >= 0)
                        r = plans[i](s);
        }
        return r;
}

static int what_if_of(const Snapshot *snapshot) {
        _cleanup_(simulator_freep) Simulator *simulator = NULL;
        _cleanup_(disruption_scene_freep) DisruptionScene *s = NULL;
        char *names[] = { (char *) "a", (char *) "b" };
        _cleanup_free_ char *json = NULL, *html = NULL;
        GateFindings *others = NULL;
        const char *unknown;
        UpgradePlan u = {};
        WhatIf w = {};
        int r;

        r = simulator_new(snapshot, &simulator);
        if (r >= 0)
                r = disruption_scene_new(snapshot, simulator, NULL, &s);
        if (r >= 0)
                r = disruption_without(s, names, 2, &w, &unknown);
        what_if_done(&w);
        if (r >= 0)
                r = disruption_all_drainable(s, &w, &others);
        if (r >= 0) {
                html = what_if_html(s, &w, others, NULL);
                r = html ? 0 : -ENOMEM;
        }
        for (uint32_t i = 0; others && i < s->n_nodes; i++)
                gate_findings_done(others + i);
        free(others);
        what_if_done(&w);
        if (r >= 0)
                r = disruption_upgrade(s, "p", &u);
        if (r >= 0) {
                json = upgrade_json(s, &u, NULL);
                r = json ? 0 : -ENOMEM;
        }
        upgrade_plan_done(&u);
        return r;
}

static int with_plan_list(int (*work)(const Snapshot *snapshot)) {
        InternPool *pool = NULL;
        char *why = NULL, *passed = NULL;
        Snapshot *s = NULL;
        int r;

        alloc_fault_pause();
        assert_return_code(intern_pool_new(&pool), 0);
        assert_return_code(snapshot_load_list(plan_list, strlen(plan_list), FUZZ_NOW, pool, &s, &passed, &why), 0);
        for (SnapshotKind k = 0; k < _SNAPSHOT_KIND_MAX; k++)
                s->is_known[k] = true;
        alloc_fault_resume();
        r = work(s);
        alloc_fault_pause();
        snapshot_free(s);
        intern_pool_free(pool);
        free(passed);
        alloc_fault_resume();
        return r;
}

static int do_plan(void) {
        return with_plan_list(plan_of);
}

static int do_what_if(void) {
        return with_plan_list(what_if_of);
}

static int do_pdb(void) {
        return decode(&kube_pdb_kind, fuzz_pdb);
}
static int do_volume_attachment(void) {
        return decode(&kube_volume_attachment_kind, fuzz_volume_attachment);
}
static int do_pvc(void) {
        return decode(&kube_pvc_kind, fuzz_pvc);
}
static int do_pod_claims(void) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        PodClaim *claims = NULL;
        size_t n = 0;
        int r;

        r = json_parse(fuzz_pod, strlen(fuzz_pod), strlen(fuzz_pod), &doc, NULL);
        if (r >= 0)
                r = pod_claims_decode(json_root(doc), &claims, &n);
        assert_true(r < 0 || n == 2);
        pod_claims_free(claims, n);
        return r;
}
static int do_node_pool(void) {
        return decode(&kube_node_pool_kind, fuzz_node_pool);
}

static int do_repair_reason(void) {
        return decode(&kube_node_pool_kind,
                      "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"repair\":[{\"condition\":\"Ready\",\"status\":\"NotTrue\","
                      "\"reason\":\"^Kube(let)?\",\"action\":\"Replace\"}]}}");
}
static int do_node_budget(void) {
        return decode(&kube_node_budget_kind, fuzz_node_budget);
}
static int do_node_claim(void) {
        return decode(&kube_node_claim_kind, fuzz_node_claim);
}

/* Something in it cannot be understood: the sentence about it needs memory, too. */
static int do_invalid_pod(void) {
        static const char pod[] = "{\"metadata\":{\"name\":\"p\",\"namespace\":\"d\"},\"spec\":{"
                                  "\"priority\":\"x\"},\"status\":{\"startTime\":\"never\"}}";
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        int r;

        r = json_parse(pod, strlen(pod), strlen(pod), &doc, NULL);
        if (r >= 0)
                r = intern_pool_new(&pool);
        if (r >= 0)
                r = kube_object_decode(&kube_pod_kind, json_root(doc), pool, &o);
        assert_true(r < 0 || o->invalid); /* never taken for good */
        o = kube_object_unref(o);
        return r;
}

static const char kubeconfig[] = "apiVersion: v1\nkind: Config\ncurrent-context: c1\nclusters:\n- name: "
                                 "k1\n  cluster: {server: 'https://10.0.0.1:6443', "
                                 "certificate-authority: ca.crt, tls-server-name: x}\ncontexts:\n- name: "
                                 "c1\n  context: {cluster: k1, user: u1, namespace: d}\n"
                                 "users:\n- name: u1\n  user:\n    client-certificate-data: Zm9v\n    "
                                 "client-key-data: YmFy\n    exec:\n      apiVersion: "
                                 "client.authentication.k8s.io/v1\n      command: aws\n      args: [eks, "
                                 "get-token]\n      env: [{name: A, value: b}]\n"
                                 "      provideClusterInfo: true\n      installHint: get it\n";

static int parse_kubeconfig(const char *text) {
        _cleanup_(kubeconfig_freep) KubeConfig *c = NULL, *copy = NULL;
        _cleanup_free_ char *message = NULL;
        int r;

        r = kubeconfig_parse(text, strlen(text), "/etc", &c, &message);
        return r < 0 ? r : kubeconfig_copy(c, &copy);
}

static int do_kubeconfig(void) {
        return parse_kubeconfig(kubeconfig);
}

static int do_exec_credential(void) {
        static const char text[] =
                "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/"
                "v1\",\"status\":{\"token\":\"t\",\"expirationTimestamp\":\"2027-01-15T08:14:00Z\"}}";
        _cleanup_(exec_credential_done) ExecCredential e = { 0 };
        _cleanup_free_ char *message = NULL;

        return exec_credential_parse(text, strlen(text), "client.authentication.k8s.io/v1", &e, &message);
}

static int do_exec_environment(void) {
        char *inherited[] = { (char *) "HOME=/root", (char *) "AWS_PROFILE=x", (char *) "LANG=C", NULL };
        _cleanup_(kubeconfig_freep) KubeConfig *c = NULL;
        _cleanup_free_ char *message = NULL;
        char **environment = NULL;
        int r;

        r = kubeconfig_parse(kubeconfig, strlen(kubeconfig), "/etc", &c, &message);
        if (r >= 0)
                r = exec_environment(c, inherited, "ca", 2, &environment);
        for (char **e = environment; r >= 0 && *e; e++)
                free(*e);
        if (r >= 0)
                free(environment);
        return r;
}

static const char refused[] =
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"Cannot evict "
        "pod\",\"reason\":\"TooManyRequests\",\"details\":{\"causes\":"
        "[{\"reason\":\"DisruptionBudget\",\"message\":\"The disruption budget web needs 3 healthy pods and "
        "has 3 currently\",\"field\":\"f\"}],\"retryAfterSeconds\":10},\"code\":429}";

static int do_api_error(void) {
        ApiError e = { 0 };
        int r;

        r = api_error_from_body(429, refused, strlen(refused), 0, &e);
        assert_true(r < 0 || (e.message && e.n_causes == 1));
        api_error_done(&e);
        return r;
}

static int do_intent_record(void) {
        static const char text[] =
                "{\"version\":1,\"bootID\":\"b1\",\"notices\":[{\"id\":\"i\",\"kind\":\"spot\",\"source\":"
                "\"ec2\",\"action\":\"stop\",\"deadline\":\"2027-01-15T08:02:00Z\",\"phase\":\"Draining\"},"
                "{\"id\":\"m\",\"kind\":\"maintenance\",\"source\":\"ec2\",\"phase\":\"Released\"}]}";
        _cleanup_(intent_record_done) IntentRecord record = { 0 };
        int r;

        r = intent_record_parse(text, strlen(text), &record);
        return r < 0 ? r : done_text(intent_record_format(&record));
}

static int do_interruption(void) {
        static const char text[] =
                "{\"id\":\"i\",\"kind\":\"spot\",\"source\":\"ec2\",\"action\":\"stop\",\"deadline\":\"2027-"
                "01-15T08:02:00Z\",\"byHand\":\"force\",\"phase\":\"Draining\",\"podsLeft\":3,\"bootID\":\"b\"}";
        _cleanup_(interruption_freep) Interruption *i = NULL;
        _cleanup_(notice_freep) Notice *copy = NULL;
        bool changed;
        int r;

        r = interruption_parse(text, &i);
        if (r >= 0)
                r = notice_copy(i->notice, &copy);
        if (r >= 0) {
                _cleanup_free_ char *action = TAKE_PTR(copy->action);

                r = notice_merge(copy, i->notice, &changed);
                assert_true(r < 0 || (changed && streq(copy->action, action)));
        }
        return r < 0 ? r : done_text(interruption_format(i->notice, i->phase, 3, i->boot_id));
}

static int do_instance_action(void) {
        static const char text[] = "{\"action\":\"terminate\",\"time\":\"2027-01-15T08:02:00Z\"}";
        _cleanup_free_ char *action = NULL;
        const char *why;
        usec_t time;

        return notice_ec2_parse(text, strlen(text), &action, &time, &why);
}

static int do_lease(void) {
        static const LeaseClaim claim = { .holder = "b",
                                          .duration_sec = 15,
                                          .transitions = 5,
                                          .now_wall_usec = FUZZ_NOW,
                                          .keep_acquired = true };
        _cleanup_(lease_record_done) LeaseRecord record = { 0 };
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        int r;

        r = json_parse(fuzz_lease, strlen(fuzz_lease), strlen(fuzz_lease), &doc, NULL);
        if (r >= 0)
                r = lease_record_parse(json_root(doc), &record);
        if (r >= 0)
                r = done_text(lease_body_update(&record, &claim));
        return r < 0 ? r : done_text(lease_body_create("ns", "name", &claim));
}

static int on_line(const char *line, size_t size, void *userdata) {
        return 0;
}

static int on_frame(const char *frame, size_t size, void *userdata) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const char *type;

        return kube_protobuf_event(frame, size, kube_pod_kind.shape, &type, &doc);
}

static int do_watch_frames(void) {
        size_t half = FIXTURE_SIZE(fixture_frames) / 2;
        WatchFrames w = { 0 };
        int r;

        r = watch_frames_feed(&w, fixture_frames, half, on_frame, NULL);
        if (r >= 0)
                r = watch_frames_feed(&w, fixture_frames + half, FIXTURE_SIZE(fixture_frames) - half,
                                      on_frame, NULL);
        watch_frames_done(&w);
        return r;
}

static int on_protobuf_item(const char *item, size_t size, void *userdata) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;

        return json_from_protobuf(item, size, size, kube_own_pod_kind.shape, &doc, NULL);
}

static int do_protobuf_items(void) {
        _cleanup_(json_doc_freep) JsonDoc *rest = NULL;

        return kube_protobuf_split_items(fixture_page, FIXTURE_SIZE(fixture_page), SIZE_MAX, &kube_pod_kind,
                                         on_protobuf_item, NULL, &rest, NULL);
}

/* More labels than are compared each with each. */
static int do_protobuf_labels(void) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        char labels[30 * 5];

        for (size_t i = 0; i < 30; i++)
                memcpy(labels + 5 * i, (const char[]){ 0x5a, 3, 0x0a, 1, (char) ('A' + i) }, 5);
        return json_from_protobuf(labels, sizeof(labels), sizeof(labels), &kube_shape_meta, &doc, NULL);
}

static int do_protobuf_status(void) {
        ApiError e = { 0 };
        int r = api_error_from_body(404, fixture_status, FIXTURE_SIZE(fixture_status), 0, &e);

        api_error_done(&e);
        return r;
}

static int do_watch_lines(void) {
        WatchLines w = { 0 };
        int r;

        r = watch_lines_feed(&w, "{\"a\":1}\n{\"b\"", 12, on_line, NULL);
        if (r >= 0)
                r = watch_lines_feed(&w, ":2}\n", 4, on_line, NULL);
        watch_lines_done(&w);
        return r;
}

static int load_config(const ConfigItem *table, size_t n_table, void *settings) {
        char *more[] = { (char *) "Log.Level=debug", (char *) "Metrics.Listen=:9101", NULL };
        _cleanup_(log_freep) Log *l = NULL;
        char buffer[512];
        FILE *f;
        int r;

        r = log_new(LOG_TARGET_NULL, LOG_LEVEL_INFO, "test", &l);
        if (r >= 0)
                r = config_load(l, table, n_table, NULL, false, more, settings);
        if (r < 0)
                return r;

        /* --dump-config writes to a stream that has its buffer, too. */
        alloc_fault_pause();
        f = fopen("/dev/null", "we");
        assert_non_null(f);
        assert_int_equal(setvbuf(f, buffer, _IOFBF, sizeof(buffer)), 0);
        alloc_fault_resume();
        r = config_dump(f, table, n_table, settings);
        (void) fclose(f);
        return r;
}

/* A reload: all of it, or nothing. */
static int do_config_take(void) {
        char *more[] = { (char *) "Log.Level=debug", (char *) "Lease.Name=other", NULL };
        _cleanup_free_ char *taken = NULL, *left = NULL;
        CoordinatorConfig c = { 0 }, fresh = { 0 };
        int r;

        r = config_load(NULL, coordinator_config_table, coordinator_config_table_size, NULL, false, NULL,
                        &c);
        if (r >= 0)
                r = config_load(NULL, coordinator_config_table, coordinator_config_table_size, NULL, false,
                                more, &fresh);
        if (r >= 0) {
                int level = c.log.level;

                r = config_take(coordinator_config_table, coordinator_config_table_size, &c, &fresh, &taken,
                                &left);
                assert_int_equal(c.log.level == level, r < 0);
        }
        config_done(coordinator_config_table, coordinator_config_table_size, &c);
        config_done(coordinator_config_table, coordinator_config_table_size, &fresh);
        return r;
}

static int do_agent_config(void) {
        char *environment[] = { (char *) "AWS_EC2_METADATA_SERVICE_ENDPOINT=http://h/", NULL };
        _cleanup_(agent_config_done) AgentConfig c = { 0 };
        _cleanup_(log_freep) Log *l = NULL;
        PolicySettings policy = { 0 };
        int r;

        r = load_config(agent_config_table, agent_config_table_size, &c);
        if (r >= 0)
                r = log_new(LOG_TARGET_NULL, LOG_LEVEL_INFO, "test", &l);
        if (r >= 0)
                r = free_and_strdup(&c.policy[NOTICE_MAINTENANCE], "window:0 3 * * sat UTC/2h before:90min");
        if (r >= 0)
                r = agent_config_finish(&c, l, environment);
        if (r >= 0)
                r = agent_config_policy(&c, &policy);
        policy_settings_done(&policy);
        return r;
}

static int do_coordinator_config(void) {
        CoordinatorConfig c = { 0 };
        int r;

        r = load_config(coordinator_config_table, coordinator_config_table_size, &c);
        config_done(coordinator_config_table, coordinator_config_table_size, &c);
        return r;
}

/* A zone from a file of its own. */
static int do_calendar(void) {
        static const uint8_t head[44 + 10] = { 'T', 'Z', 'i', 'f', '2', [39] = 1, [43] = 4 };
        static const char rule[] = "\nCET-1CEST,M3.5.0,M10.5.0/3\n";
        char folder[] = "/tmp/vesper-zones-XXXXXX";
        const char *expected;
        Calendar c = { 0 };
        int dir, file, r;

        assert_non_null(mkdtemp(folder));
        dir = open(folder, O_DIRECTORY | O_CLOEXEC);
        file = openat(dir, "Berlin", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_int_equal(write(file, head, sizeof(head)), sizeof(head));
        assert_int_equal(write(file, head, sizeof(head)), sizeof(head));
        assert_int_equal(write(file, rule, strlen(rule)), strlen(rule));
        r = calendar_parse_zoned("0 3 * * * Berlin", folder, &c, &expected);
        calendar_done(&c);
        assert_return_code(unlinkat(dir, "Berlin", 0), errno);
        assert_return_code(rmdir(folder), errno);
        (void) close(file);
        (void) close(dir);
        return r;
}

static const char described[] =
        "<DescribeInstancesResponse><reservationSet><item><instancesSet><item><instanceId>i-"
        "0123456789abcdef0</instanceId><instanceState><name>running</name>"
        "</instanceState><placement><availabilityZone>eu-west-1a</availabilityZone></placement><privateDnsName>n1</privateDnsName>"
        "<tagSet><item><key>vesper.sh/node</key><value>n1</value></item></tagSet></item></"
        "instancesSet></item></reservationSet><nextToken>n&amp;1</nextToken></DescribeInstancesResponse>";

static int do_ec2_describe(void) {
        _cleanup_(ec2_instances_done) Ec2Instances list = { 0 };

        return ec2_instances_parse_describe(described, strlen(described), &list);
}

static int do_ec2_terminate(void) {
        static const char text[] = "<TerminateInstancesResponse><instancesSet><item><instanceId>i-"
                                   "0123456789abcdef0</instanceId><currentState><name>shutting-down</name></"
                                   "currentState></item></instancesSet></TerminateInstancesResponse>";
        _cleanup_(ec2_instances_done) Ec2Instances list = { 0 };

        return ec2_instances_parse_terminate(text, strlen(text), &list);
}

static int do_ec2_reboot(void) {
        static const char text[] = "<RebootInstancesResponse><requestId>r</requestId><return>true</return></RebootInstancesResponse>";

        return ec2_reboot_parse(text, strlen(text));
}

static bool is_over(const char *id, void *userdata) {
        return streq(id, "e3");
}

/* Full, and one of them makes room. */
static int do_reboot_taken(void) {
        char *text = NULL;
        int r = reboot_taken_add("e1 e2 e3 e4 e5 e6 e7 e8 e9 e10 e11 e12 e13 e14 e15 e16", "e17", is_over, NULL, &text);

        return r < 0 ? r : done_text(text);
}

static int do_event_ack(void) {
        static char a[] = "vm-a", b[] = "vm-b", *names[] = { a, b, NULL };
        static const EventAckNode nodes[] = { { "n1", "vm-a", "e", names, true, NULL }, { "n2", "vm-b", "e", names, false, NULL } };
        _cleanup_free_ char *why = NULL;
        int r = event_ack_may(nodes, ELEMENTSOF(nodes), "e", &why);

        return r < 0 ? r : done_text(TAKE_PTR(why));
}

static int do_azure_events(void) {
        static const char text[] = "{\"Events\":[{\"EventId\":\"E\",\"EventType\":\"Redeploy\",\"EventStatus\":\"Scheduled\","
                                   "\"NotBefore\":\"Mon, 19 Sep 2016 18:29:47 GMT\",\"Resources\":[\"vm-a\",\"vm-b\"]}]}";
        ScheduledEvent *events;
        const char *why;
        size_t n;
        bool more;
        int r = azure_events_parse(text, strlen(text), "vm-a", 4, &events, &n, &more, &why);

        scheduled_events_free(events, r < 0 ? 0 : n);
        return r;
}

static int do_aws_error(void) {
        static const char text[] =
                "<Response><Errors><Error><Code>OperationNotPermitted</Code><Message>It may not. Encoded "
                "authorization failure message: abc</Message></Error></Errors></Response>";
        AwsError e = { 0 };
        int r;

        r = aws_error_parse(text, strlen(text), &e);
        assert_true(r < 0 || (e.code && e.message));
        aws_error_done(&e);
        return r;
}

static int do_sqs(void) {
        static const char error[] = "{\"__type\":\"a#B\",\"message\":\"m\"}",
                          found[] = "{\"Messages\":[{\"MessageId\":\"m\",\"ReceiptHandle\":\"r\",\"Body\":\"b\"}]}",
                          batch[] = "{\"Successful\":[{\"Id\":\"0\"}]}";
        _cleanup_(sqs_messages_done) SqsMessages messages = { 0 };
        _cleanup_(sqs_url_done) SqsUrl url = { 0 };
        AwsError e = { 0 };
        const char *why;
        unsigned failed;
        int r;

        r = aws_error_parse_json(error, strlen(error), &e);
        aws_error_done(&e);
        if (r >= 0)
                r = sqs_messages_parse(found, strlen(found), &messages);
        if (r >= 0)
                r = sqs_failures_parse(batch, strlen(batch), 1, &failed);
        return r < 0 ? r : sqs_url_parse("https://sqs.eu-west-1.amazonaws.com/1/q", &url, &why);
}

/* A page that cannot be read for lack of memory leaves what the pages before it have confirmed. */
static int do_confirmation(void) {
        static const char text[] = "<DescribeInstanceStatusResponse><instanceStatusSet><item><instanceId>i-0a</instanceId><eventsSet><item>"
                                   "<code>instance-stop</code><description>d</description><notBefore>2027-01-21T09:00:43.000Z</notBefore></item></eventsSet></item></instanceStatusSet>"
                                   "<nextToken>t</nextToken></DescribeInstanceStatusResponse>";
        static char *const instances[] = { (char *) "i-0a", NULL };
        Confirmations found = { .at = { { .instance = instances[0], .rank = 0, .from_usec = 1, .words = "a page before" } }, .n = 1 };
        _cleanup_free_ char *token = NULL, *form = NULL;
        int r;

        r = confirmation_parse(CONFIRMATION_EVENTS, instances, text, strlen(text), &found, &token);
        assert_int_equal(found.n, r < 0 ? 1 : 2);
        assert_int_equal(found.at[found.n - 1].rank, r < 0 ? 0 : 1);
        if (r < 0)
                return r;
        form = confirmation_form(CONFIRMATION_GROUP, instances, token);
        return form ? 0 : -ENOMEM;
}

static int do_kubelet_pods(void) {
        static const char text[] = "{\"kind\":\"PodList\",\"items\":[{\"metadata\":{\"uid\":\"a\"},\"spec\":{\"containers\":[{}]}},"
                                   "{\"metadata\":{\"uid\":\"b\"},\"spec\":{\"containers\":[{}]}}]}";
        _cleanup_strv_free_ char **uids = NULL;
        int r;

        r = kubelet_pods_parse(text, strlen(text), &uids);
        assert_true(r < 0 ? !uids : strv_length(uids) == 2);
        return r;
}

static int do_notify_template(void) {
        static const char text[] = "{\"text\":\"{{node}} {{phase}} {{deadline}} {{podsLeft}} {{key}} {{{{ {{message}}\"}";
        const NotifyFacts f = { .phase = NOTIFY_DRAINED, .node = "n", .node_uid = "u", .notice_id = "i", .message = "m\"" };
        _cleanup_(notify_template_freep) NotifyTemplate *t = NULL;
        const char *reason;
        size_t at;
        int r;

        r = notify_template_parse(text, strlen(text), &t, &reason, &at);
        if (r >= 0)
                r = done_text(notify_body(t, &f));
        return r < 0 ? r : done_text(notify_body(NULL, &f));
}

static int do_notify_headers(void) {
        static const char text[] = "Authorization: Bearer x\nX-A: b\n";
        const char *reason = NULL;
        NotifyHeaders h;
        int r;

        r = notify_headers_parse(text, strlen(text), &h, &reason);
        notify_headers_done(&h);
        return r;
}

static int do_notify_plan(void) {
        const NotifySettings s = { .url = (char *) "https://a/b", .template_text = (char *) "{{node}}" };
        NotifyPlan p;
        char *text;
        int r;

        r = notify_plan_load(&s, NULL, &p, &text);
        free(text);
        notify_plan_done(&p);
        return r;
}

static int do_event_message(void) {
        static const char text[] = "{\"id\":\"e\",\"detail-type\":\"EC2 Spot Instance Interruption Warning\",\"source\":\"aws.ec2\","
                                   "\"time\":\"2026-11-25T09:00:00Z\",\"detail\":{\"instance-id\":\"i-0abc\",\"instance-action\":"
                                   "\"terminate\"}}";
        _cleanup_(event_message_done) EventMessage m = { 0 };
        _cleanup_(notice_freep) Notice *n = NULL;
        int r = event_message_parse(text, strlen(text), &m);

        return r < 0 ? r : event_message_notice(&m, "i-0abc", &n);
}

static int do_aws_profile(void) {
        _cleanup_(aws_keys_done) AwsKeys k = { 0 };

        return aws_keys_parse_profile(
                "[default]\naws_access_key_id=A\naws_secret_access_key=s\naws_session_token=t\n", "default",
                &k);
}

static int do_aws_json(void) {
        static const char text[] =
                "{\"Code\":\"Success\",\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"s\",\"Token\":\"t\","
                "\"Expiration\":\"2027-01-15T14:00:00Z\",\"AccountId\":\"1\"}";
        _cleanup_(aws_keys_done) AwsKeys k = { 0 };
        _cleanup_free_ char *message = NULL;

        return aws_keys_parse_json(text, strlen(text), &k, &message);
}

static int do_aws_sts(void) {
        static const char text[] = "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><"
                                   "Credentials><AccessKeyId>A</AccessKeyId><SecretAccessKey>s</"
                                   "SecretAccessKey><SessionToken>t</SessionToken>"
                                   "<Expiration>2027-01-15T14:00:00Z</Expiration></Credentials></"
                                   "AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>";
        _cleanup_(aws_keys_done) AwsKeys k = { 0 };

        return aws_keys_parse_sts(text, strlen(text), &k);
}

static const char *any_value(const char *name, void *userdata) {
        return streq(name, "AWS_EC2_METADATA_SERVICE_ENDPOINT") ? NULL : "x";
}

static int do_aws_settings(void) {
        _cleanup_(aws_endpoint_done) AwsEndpoint of_region = { 0 }, given = { 0 };
        _cleanup_(aws_settings_freep) AwsSettings *s = NULL;
        int r;

        r = aws_settings_new(any_value, NULL, &s);
        if (r >= 0)
                r = aws_endpoint_for("ec2", "eu-west-1", &of_region);
        return r < 0 ? r : aws_endpoint_parse("http://h:80/", &given);
}

static int do_signature(void) {
        static const HttpHeader headers[] = { { "Host", "h" }, { "Content-Type", "text/plain;  x" } };
        static const SigV4Request request = {
                .method = HTTP_POST,
                .path = "/",
                .query = "a=%20b&c",
                .headers = headers,
                .n_headers = 2,
                .body = "x",
                .body_size = 1,
                .region = "r",
                .service = "s",
                .access_key_id = "A",
                .secret_access_key = "k",
                .session_token = "t",
                .wall_usec = FUZZ_NOW,
        };
        static char first[512];
        _cleanup_(sigv4_headers_done) SigV4Headers h = { 0 };
        int r;

        r = sigv4_sign(&request, &h);
        if (r < 0)
                return r;
        if (!first[0])
                (void) snprintf(first, sizeof(first), "%s", h.authorization);
        assert_string_equal(h.authorization, first); /* a wrong one would be worse than none */
        return 0;
}

static int do_texts(void) {
        static const HttpHeader headers[] = { { "A", "b" } };
        _cleanup_free_ HttpHeader *copy = NULL;
        _cleanup_free_ void *bytes = NULL;
        size_t size;
        int r;

        r = http_headers_copy(headers, 1, &copy);
        if (r >= 0)
                r = base64_decode("Zm9v", 4, &bytes, &size);
        if (r >= 0)
                r = done_text(base64_encode("foo", 3));
        if (r >= 0)
                r = done_text(url_encode("a b", false));
        if (r >= 0)
                r = done_text(str_sanitize("a\nb and so on", 8));
        return r < 0 ? r : done_text(strf("%s%200d", "x", 7));
}

/* -- bodies ------------------------------------------------------------------------------------- */

static int with_object(const KubeKind *kind, const char *text, int (*work)(const KubeObject *o)) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
        int r;

        alloc_fault_pause();
        assert_return_code(json_parse(text, strlen(text), strlen(text), &doc, NULL), 0);
        assert_return_code(intern_pool_new(&pool), 0);
        assert_return_code(kube_object_decode(kind, json_root(doc), pool, &o), 0);
        alloc_fault_resume();
        r = work(o);
        o = kube_object_unref(o);
        return r;
}

/* A body, or -ENOMEM. */
static int done_body(int r, char *body) {
        assert_true(r < 0 || body);
        free(body);
        return r < 0 ? r : 0;
}

static int agent_bodies(const KubeObject *o) {
        const KubeNode *n = (const KubeNode *) o;
        char *body = NULL;
        bool flag;
        int r;

        r = done_text(node_patch_mark(n, "{}", "b", "why", &flag));
        if (r >= 0)
                r = done_text(node_patch_interruption(n, "{}"));
        if (r >= 0)
                r = done_text(node_patch_conditions(n, NODE_CONDITIONS_DRAINED, NOTICE_SHUTDOWN, "m", FUZZ_NOW));
        if (r >= 0) {
                r = node_patch_undo(n, &body, &flag);
                r = done_body(r, body);
        }
        if (r >= 0) {
                body = NULL;
                r = node_patch_overruled(n, &body);
                r = done_body(r, body);
        }
        if (r >= 0) {
                body = NULL;
                r = node_marks_boot_id(n, &body);
                free(body);
        }
        return r;
}

static int do_agent_bodies(void) {
        return with_object(&kube_node_kind, fuzz_node, agent_bodies);
}

static char *conditions_patch(const KubeObject *o, const Condition *conditions, size_t n) {
        JsonWriter *w = status_patch_open_of_version(o);

        if (!w)
                return NULL;
        status_patch_add_conditions(w, o, conditions, n, 0, NULL);
        return status_patch_close(w);
}

static int coordinator_bodies(const KubeObject *o) {
        static const Condition marks[] = { { "T", "R", "m", CONDITION_TRUE, FUZZ_NOW } };
        const KubeNode *n = (const KubeNode *) o;
        char *body = NULL;
        int r;

        r = termination_cordon_patch(n, "why", FUZZ_NOW, &body);
        r = done_body(r, body);
        if (r >= 0) {
                body = NULL;
                r = termination_release_patch(n, NULL, &body);
                r = done_body(r, body);
        }
        if (r >= 0) {
                body = NULL;
                r = termination_heard_patch(n, "{}", HEARD_CORDON_PUT, &body);
                r = done_body(r, body);
        }
        if (r >= 0) {
                body = NULL;
                r = termination_finalizer_patch(o, &body);
                r = done_body(r, body);
        }
        if (r >= 0) {
                body = NULL;
                r = termination_out_of_service_patch(n, FUZZ_NOW, &body);
                r = done_body(r, body);
        }
        if (r >= 0)
                r = done_text(conditions_patch(o, marks, ELEMENTSOF(marks)));
        return r;
}

static const Notice queue_notice = { .id = (char *) "e", .kind = NOTICE_SPOT, .source = (char *) "sqs", .action = (char *) "terminate" };

static int queue_told(const KubeObject *o) {
        const KubeNode *n = (const KubeNode *) o;
        const HeardFacts facts = { .announced = &n->announced, .boot_id = "b", .drains_unmanaged = true, .wall_usec = FUZZ_NOW };
        _cleanup_(announced_list_done) AnnouncedList next = {};
        int r;

        assert_int_equal(n->announced.n_items, 2);
        r = heard_rewrite(&facts, &next);
        if (r < 0)
                return r;
        assert_int_equal(next.n_items, 2);
        r = done_text(queue_told_body(o, &n->announced, &queue_notice, true, n));
        return r < 0 ? r : done_text(queue_told_body(o, &n->announced, &queue_notice, false, NULL));
}

static int do_queue_told(void) {
        static const char text[] =
                "{\"metadata\":{\"name\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"7\",\"annotations\":{\"vesper.sh/announced\":"
                "\"{\\\"notices\\\":[{\\\"id\\\":\\\"e\\\",\\\"kind\\\":\\\"scale-in\\\",\\\"bootID\\\":\\\"b\\\"},"
                "{\\\"id\\\":\\\"f\\\",\\\"kind\\\":\\\"scale-in\\\",\\\"state\\\":\\\"CalledOff\\\"}]}\"}}}";

        return with_object(&kube_node_kind, text, queue_told);
}

static int do_heard_condition(void) {
        const DrainBlocker blockers[] = { { .ns = "n", .name = "p", .wait = POD_WAIT_PDB, .detail = "b" } };
        Announced announced = { .notice = (Notice *) &queue_notice };
        const AnnouncedList list = { &announced, 1 };
        const HeardWords words = { .announced = &list, .how_far = "1 pod is left" };
        char *message = NULL;
        Condition c;
        int r = heard_condition(HEARD_SAY_DRAINING, 2, NULL, &words, &c, &message);

        r = r < 0 ? r : done_text(message);
        if (r >= 0)
                r = done_text(heard_pods_left_text(1, blockers, ELEMENTSOF(blockers)));
        return r < 0 ? r : done_text(heard_drained_text(FUZZ_NOW, FUZZ_NOW, 1, 1));
}

static int do_coordinator_bodies(void) {
        return with_object(&kube_node_kind, fuzz_node, coordinator_bodies);
}

static const KubeNode *claimed_node;

static int claim_body(const KubeObject *o) {
        return done_text(adoption_claim_body((const KubeNodePool *) o, claimed_node));
}

static int with_node(const KubeObject *o) {
        claimed_node = (const KubeNode *) o;
        return with_object(&kube_node_pool_kind, fuzz_node_pool, claim_body);
}

static int do_claim_body(void) {
        return with_object(&kube_node_kind, fuzz_node, with_node);
}

static int status_of(const KubeObject *claim) {
        KubeObject *nodes[] = { (KubeObject *) claimed_node }, *claims[] = { (KubeObject *) claim };
        const CtlSnapshot s = { .nodes = { nodes, 1, 1 },
                                .claims = { claims, 1, 1 },
                                .leader = (char *) "a",
                                .now_usec = FUZZ_NOW };
        _cleanup_(status_rows_done) StatusRows rows = { 0 };
        int r;

        r = status_rows_make(&s, &rows);
        if (r >= 0)
                r = done_text(status_rows_table(&rows, &s));
        return r < 0 ? r : done_text(status_rows_json(&rows, &s));
}

static int status_with_node(const KubeObject *o) {
        claimed_node = (const KubeNode *) o;
        return with_object(&kube_node_claim_kind, fuzz_node_claim, status_of);
}

/* A Node without claim that is drained for the interruption queue. */
static int status_of_heard(const KubeObject *node) {
        KubeObject *nodes[] = { (KubeObject *) node };
        const CtlSnapshot s = { .nodes = { nodes, 1, 1 }, .named = true, .now_usec = FUZZ_NOW };
        _cleanup_(status_rows_done) StatusRows rows = { 0 };
        int r = status_rows_make(&s, &rows);

        if (r < 0)
                return r;
        assert_int_equal(rows.rows[0].n_blockers, 2);
        assert_string_equal(rows.rows[0].pdb, "n/b");
        assert_string_equal(rows.rows[0].blockers[1].message, "k");
        return 0;
}

static int do_ctl_status_heard(void) {
        static const char text[] =
                "{\"metadata\":{\"name\":\"n\",\"annotations\":{\"vesper.sh/heard\":\"{\\\"id\\\":\\\"e\\\",\\\"phase\\\":\\\"Draining\\\","
                "\\\"blockedBy\\\":[{\\\"pod\\\":\\\"n/p\\\",\\\"reason\\\":\\\"BlockedByPDB\\\",\\\"detail\\\":\\\"b\\\"},"
                "{\\\"pod\\\":\\\"n/q\\\",\\\"reason\\\":\\\"Protected\\\",\\\"detail\\\":\\\"k\\\"}]}\"}},"
                "\"status\":{\"conditions\":[{\"type\":\"DrainInProgress\",\"status\":\"True\",\"reason\":\"VesperCoordinator\","
                "\"message\":\"m\"}]}}";

        return with_object(&kube_node_kind, text, status_of_heard);
}

static int do_ctl_status(void) {
        return with_object(&kube_node_kind, fuzz_node, status_with_node);
}

static int reboot_of(const KubeObject *o) {
        RebootCase c = { 0 };
        int r;

        r = reboot_case_read((const KubeNode *) o, FUZZ_NOW, USEC_PER_HOUR, &c);
        if (r >= 0)
                r = done_text(reboot_grant_patch((const KubeNode *) o, c.id, FUZZ_NOW));
        reboot_case_done(&c);
        return r;
}

static int do_admission_review(void) {
        static const char *const warnings[] = { "said once", "said twice" };
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_free_ char *text = NULL, *message = NULL;
        AdmissionReview review;
        int r;

        alloc_fault_pause();
        text = strf("{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{\"uid\":\"u\","
                    "\"operation\":\"DELETE\",\"resource\":{\"group\":\"\",\"version\":\"v1\",\"resource\":\"nodes\"},"
                    "\"userInfo\":{\"username\":\"alice\",\"groups\":[\"dev\"]},\"oldObject\":%s}}",
                    fuzz_node);
        assert_return_code(intern_pool_new(&pool), 0);
        alloc_fault_resume();
        r = admission_review_parse(text, strlen(text), pool, &review, &message);
        if (r >= 0)
                r = done_text(admission_allow(review.uid, warnings, ELEMENTSOF(warnings)));
        if (r >= 0)
                r = done_text(admission_refuse(review.uid, "no room"));
        if (r >= 0)
                r = done_text(admission_unavailable(review.uid, "not seen yet"));
        admission_review_done(&review);
        return r;
}
static int do_match_condition(void) {
        static char *users[] = { (char *) "alice", (char *) "oidc:*@example.org", NULL };
        int r = done_text(admission_own_account("vesper-system"));

        return r < 0 ? r : done_text(admission_match_condition(users));
}
static int do_pause_mark(void) {
        static char text[] = "{\"by\":\"a@b\",\"command\":\"pause\",\"since\":\"2027-01-15T08:00:00Z\"}";
        static KeyValue annotations[] = { { .key = "vesper.sh/paused", .value = "true" },
                                          { .key = "vesper.sh/paused-by", .value = text } };
        const ObjectMeta meta = { .annotations = { .items = annotations, .n_items = ELEMENTSOF(annotations) } };
        PauseMark m;
        char *said;
        int r;

        r = done_text(pause_mark_set_patch("a@b", "pause", FUZZ_NOW));
        if (r >= 0)
                r = done_text(pause_mark_lift_patch());
        if (r >= 0)
                r = pause_mark_read(&meta, &m);
        if (r < 0)
                return r;
        said = pause_mark_text(&m);
        assert_true(!said || strstr(said, "set by a@b with 'vesperctl pause' at 2027"));
        pause_mark_done(&m);
        return done_text(said);
}

static int do_kubelet_labels(void) {
        static const char text[] = "{\"matchLabels\":{\"a\":\"1\",\"b\":\"2\",\"c\":\"3\",\"d\":\"4\"}}";
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        Selector *s = NULL;
        char *names = NULL;
        int r;

        r = json_parse(text, strlen(text), sizeof(text), &doc, NULL);
        if (r >= 0)
                r = intern_pool_new(&pool);
        if (r >= 0)
                r = selector_parse(json_root(doc), pool, &s);
        if (r >= 0)
                r = selector_kubelet_labels(s, &names);
        selector_free(s);
        assert_true(r < 0 || streq(names, "a, b, c and 1 more"));
        return r < 0 ? r : done_text(names);
}

static int do_budget_text(void) {
        const KubeNodeBudget b = { .object.meta.name = (char *) "web", .min_available = { NODE_AMOUNT_PERCENT, 80 } };
        const BudgetUsers users = { .list = { { "n1", "is being deleted", FUZZ_NOW } }, .n = 1, .n_all = 1 };
        BudgetFigures f = budget_figures(&b, 5, 4);
        const NodeCharge c = { .kind = NODE_CHARGE_DELETE,
                               .holder = (char *) "alice",
                               .time_usec = FUZZ_NOW };
        int r = done_text(budget_text_refusal(&b, &f, &users, "n2", false));

        return r < 0 ? r : done_text(budget_text_held(&b, &c, "n2"));
}
static int do_admission_unreadable(void) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_free_ char *message = NULL;
        AdmissionReview review;
        int r;

        alloc_fault_pause();
        assert_return_code(intern_pool_new(&pool), 0);
        alloc_fault_resume();
        r = admission_review_parse("{}", 2, pool, &review, &message);
        return r == -EBADMSG && message ? 0 : r;
}
static int do_reboot(void) {
        return with_object(&kube_node_kind, fuzz_reboot_node, reboot_of);
}

/* -- the sweep ---------------------------------------------------------------------------------- */

static const struct {
        const char *name;
        work_t work;
        bool library; /* one that does not say that it was memory, and can do without some */
} rows[] = {
        { "JSON", do_json },
        { "JSON without parts of it", do_json_without },
        { "items of a list", do_json_items },
        { "Node", do_node },
        { "Pod", do_pod },
        { "Pod, invalid", do_invalid_pod },
        { "Pod, as scheduled", do_scheduled_pod },
        { "Node, as scheduled", do_scheduled_node },
        { "storage, as scheduled", do_storage },
        { "snapshot, anonymized", do_snapshot, true }, /* a map that shrinks can do without */
        { "plan, and one node's part in it", do_plan },
        { "what would be if nodes went", do_what_if },
        { "snapshot of a list", do_snapshot_list },
        { "snapshot, refused", do_snapshot_refused },
        { "PodDisruptionBudget", do_pdb },
        { "VolumeAttachment", do_volume_attachment },
        { "PersistentVolumeClaim", do_pvc },
        { "a pod's claims", do_pod_claims },
        { "NodePool", do_node_pool },
        { "NodePool, pattern", do_repair_reason, true },
        { "NodeDisruptionBudget", do_node_budget },
        { "NodeClaim", do_node_claim },
        { "Lease", do_lease },
        { "kubeconfig", do_kubeconfig },
        { "exec plugin's answer", do_exec_credential },
        { "exec plugin's environment", do_exec_environment },
        { "Status", do_api_error },
        { "watch lines", do_watch_lines },
        { "watch frames", do_watch_frames },
        { "protobuf, list", do_protobuf_items },
        { "protobuf, labels", do_protobuf_labels },
        { "protobuf, Status", do_protobuf_status },
        { "intent record", do_intent_record },
        { "interruption, notice", do_interruption },
        { "spot/instance-action", do_instance_action },
        { "agent.conf", do_agent_config },
        { "coordinator.conf", do_coordinator_config },
        { "a reload", do_config_take },
        { "a calendar, and its zone", do_calendar },
        { "DescribeInstances", do_ec2_describe },
        { "TerminateInstances", do_ec2_terminate },
        { "RebootInstances", do_ec2_reboot },
        { "reboots that were taken", do_reboot_taken },
        { "an event's nodes", do_event_ack },
        { "scheduled events of Azure", do_azure_events },
        { "AWS error", do_aws_error },
        { "SQS", do_sqs },
        { "confirmation of a notice", do_confirmation },
        { "pods of a kubelet", do_kubelet_pods },
        { "message of a queue", do_event_message },
        { "[Notify] template, bodies", do_notify_template, true },
        { "[Notify] headers", do_notify_headers },
        { "[Notify] plan", do_notify_plan },
        { "AWS profile", do_aws_profile },
        { "AWS role", do_aws_json },
        { "AWS web identity", do_aws_sts },
        { "AWS settings", do_aws_settings },
        { "AWS signature", do_signature, true },
        { "texts", do_texts },
        { "agent's patches", do_agent_bodies },
        { "coordinator's patches", do_coordinator_bodies },
        { "condition of a heard drain", do_heard_condition },
        { "what the queue told", do_queue_told },
        { "NodeClaim's body", do_claim_body },
        { "request for a reboot, and its grant", do_reboot },
        { "admission review, answers", do_admission_review },
        { "admission review, refused", do_admission_unreadable },
        { "webhook's match condition", do_match_condition },
        { "refusal of a budget", do_budget_text },
        { "who pauses removals", do_pause_mark },
        { "labels that a kubelet may set", do_kubelet_labels },
        { "vesperctl status", do_ctl_status },
        { "vesperctl status of a heard drain", do_ctl_status_heard },
};

TEST_CASE(test_sweep) {
        size_t total = 0;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                size_t n = 1;
                int r;

                r = rows[i].work(); /* what libraries make once and keep is made now */
                if (r < 0)
                        fail_msg("%s: expected to succeed with memory, failed with %s", rows[i].name,
                                 strerror(-r));
                for (;; n++) {
                        alloc_fault_arm(n);
                        r = rows[i].work();
                        (void) alloc_fault_disarm();
                        if (!alloc_fault_fired())
                                break;
                        if (r != -ENOMEM && !(rows[i].library && (r == 0 || r == -EIO)))
                                fail_msg("%s, allocation %zu failing: expected -ENOMEM, got %d",
                                         rows[i].name, n, r);
                }
                assert_return_code(r, 0);
                assert_true(n > 1);
                print_message("%-26s %4zu allocations, each failed once\n", rows[i].name, n - 1);
                total += n - 1;
        }
        print_message("%zu in all\n", total);
}

int main(void) {
        static const struct CMUnitTest tests[] = { cmocka_unit_test(test_sweep) };

        return cmocka_run_group_tests_name("alloc-parsers", tests, NULL, NULL);
}
