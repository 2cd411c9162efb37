/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef HAVE_CALLGRIND
#include <valgrind/callgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#endif

#include "admission-review.h"
#include "alloc-count.h"
#include "api-error.h"
#include "cmocka-test.h"
#include "compare-count.h"
#include "confirmation.h"
#include "ec2-events.h"
#include "event-message.h"
#include "exec-credential.h"
#include "fake-protobuf.h"
#include "file-util.h"
#include "fuzz-objects.h"
#include "grown-json.h"
#include "intent-log.h"
#include "kube-protobuf.h"
#include "kubeconfig.h"
#include "kubelet-pods.h"
#include "lease-record.h"
#include "notice-azure.h"
#include "notice-list.h"
#include "outlook-feed.h"
#include "simulator.h"
#include "snapshot-file.h"
#include "sqs-answer.h"
#include "string-util.h"
#include "strv.h"
#include "timeline.h"

/*
 * Bounds the cost of reading each list, map and text of each input that somebody else makes: objects of the
 * API server (in JSON and in protobuf), reviews of the webhook, answers of metadata services and of AWS,
 * messages of the queue, files.
 *
 *      twice as large      at most 2.2 times the allocations and the bytes asked for, and 2.5 times the texts compared (sorting)
 *      while it is read    at most READING_MAX times its size
 *      kept afterwards     at most KEPT_MAX times its size
 *
 * Under callgrind the instructions are held to the first bound instead, which also finds a loop that allocates nothing; with
 * --milliseconds the program prints how long the slowest inputs of the largest size take.
 */

/* Above DECODE_COPY_BYTES_MAX, below which a pod is copied once and above which it is copied three times. */
#define SMALL_BYTES (80u * 1024u)
#define LARGE_BYTES (2 * SMALL_BYTES)
/* Twice of this is below DECODE_COPY_BYTES_MAX: both sizes are copied the same number of times. */
#define CALLGRIND_SMALL_BYTES (30u * 1024u)
/* etcd refuses a request above this size, and so the API server an object. */
#define LARGEST_BYTES ((size_t) 1536 * 1024)
#define RATIO_MAX 2.2
#define COMPARED_RATIO_MAX 2.5
/* A value of cJSON takes 64 bytes, and the shortest one in a list ("0,") has 2: that alone is 32 times. */
#define READING_MAX 40
/* libyaml has a token, an event and a mark for each value besides, and a simulator has fixed parts. A kubeconfig is the
 * administrator's own file, of at most 1 MiB. */
#define READING_MORE_MAX 80
#define KEPT_MAX 4
/* Fixed parts, so that one more allocation of a small answer is no growth. */
#define N_FREE 64u
#define BYTES_FREE 4096u
/* In YAML the keys of a map are compared each with each, up to 1,000 of them; a list of SMALL_BYTES compared so would be a hundred
 * times this. */
#define COMPARED_FREE 600000u

/* -- readers -------------------------------------------------------------------------------------------- */

typedef struct Kept {
        InternPool *pool;
        KubeObject *object;
        AdmissionReview review;
        EventMessage message;
        SqsMessages messages;
        ScheduledEvent *events;
        size_t n_events;
        NoticeSet notices;
        IntentRecord intents;
        ApiError error;
        ExecCredential credential;
        KubeConfig *kubeconfig;
        LeaseRecord lease;
        Timeline timeline;
        Snapshot *snapshot;
        char **names;
        char *text, *other_text;
} Kept;

typedef struct Reader {
        const char *name;
        const char *template;
        void (*read)(const struct Reader *reader, const char *data, size_t size, Kept *k); /* of a kind: NULL */
        const KubeKind *kind;
        ConfirmationQuestion question; /* of read_confirmation() */
} Reader;

static void kept_done(Kept *k) {
        kube_object_unref(k->object);
        admission_review_done(&k->review);
        event_message_done(&k->message);
        sqs_messages_done(&k->messages);
        scheduled_events_free(k->events, k->n_events);
        notice_set_done(&k->notices);
        intent_record_done(&k->intents);
        api_error_done(&k->error);
        exec_credential_done(&k->credential);
        kubeconfig_free(k->kubeconfig);
        lease_record_done(&k->lease);
        timeline_done(&k->timeline);
        snapshot_free(k->snapshot);
        strv_free(k->names);
        free(k->text);
        free(k->other_text);
        intern_pool_free(k->pool);
        *k = (Kept){ 0 };
}

static InternPool *pool_of(Kept *k) {
        if (!k->pool)
                assert_return_code(intern_pool_new(&k->pool), 0);
        return k->pool;
}

static void decode(const KubeKind *kind, const JsonDoc *doc, Kept *k) {
        int r = kube_object_decode(kind, json_root(doc), pool_of(k), &k->object);

        assert_true(r == 0 || r == -EINVAL);
}

static void read_json(const Reader *reader, const char *data, size_t size, Kept *k) {
        const JsonOmits omits = { .list = reader->kind->unread, .n_list = reader->kind->n_unread };
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;

        if (json_parse_without(data, size, size, &omits, &doc, NULL) >= 0)
                decode(reader->kind, doc, k);
}

static void read_protobuf(const Reader *reader, const char *data, size_t size, Kept *k) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;

        if (json_from_protobuf(data, size, size, reader->kind->shape, &doc, NULL) >= 0)
                decode(reader->kind, doc, k);
}

static void read_review(const Reader *reader, const char *data, size_t size, Kept *k) {
        (void) admission_review_parse(data, size, pool_of(k), &k->review, &k->text);
}

static void read_event_message(const Reader *reader, const char *data, size_t size, Kept *k) {
        (void) event_message_parse(data, size, &k->message);
}

static void read_sqs(const Reader *reader, const char *data, size_t size, Kept *k) {
        (void) sqs_messages_parse(data, size, &k->messages);
}

/* Reads an answer of AWS in XML. The instances that are asked about are those of the first copies. */
static void read_confirmation(const Reader *reader, const char *data, size_t size, Kept *k) {
        char ids[CONFIRMATION_BATCH_MAX][16] = { "i-0abc" }, *instances[CONFIRMATION_BATCH_MAX + 1] = { ids[0] };
        Confirmations found = { 0 };

        for (size_t i = 1; i < CONFIRMATION_BATCH_MAX; i++) {
                (void) snprintf(ids[i], sizeof(ids[i]), "i-0abc%zu", i);
                instances[i] = ids[i];
        }
        (void) confirmation_parse(reader->question, instances, data, size, &found, &k->text);
}

static void read_azure(const Reader *reader, const char *data, size_t size, Kept *k) {
        const char *why;
        bool more;

        (void) azure_events_parse(data, size, "vm-a", 16, &k->events, &k->n_events, &more, &why);
}

static void read_ec2_events(const Reader *reader, const char *data, size_t size, Kept *k) {
        const char *why;
        bool more;

        (void) ec2_events_parse(data, size, 16, &k->events, &k->n_events, &more, &why);
}

static void read_notices(const Reader *reader, const char *data, size_t size, Kept *k) {
        static const NoticeSourceOps ops = { .name = "file" };
        const NoticeSource source = { .ops = &ops };
        NoticeSet known = { 0 };
        VirtualTime *time;
        const char *why;
        Loop *loop;

        assert_return_code(virtual_time_new(FUZZ_NOW, &time), 0);
        assert_return_code(loop_new_virtual(time, &loop), 0);
        (void) notice_list_parse(&source, loop, data, size, 0, &known, &k->notices, &why);
        loop_free(loop);
        virtual_time_free(time);
}

static void read_intents(const Reader *reader, const char *data, size_t size, Kept *k) {
        (void) intent_record_parse(data, size, &k->intents);
}

static void read_kubelet_pods(const Reader *reader, const char *data, size_t size, Kept *k) {
        (void) kubelet_pods_parse(data, size, &k->names);
}

static void read_status(const Reader *reader, const char *data, size_t size, Kept *k) {
        assert_return_code(api_error_from_body(429, data, size, 0, &k->error), 0);
}

static void read_credential(const Reader *reader, const char *data, size_t size, Kept *k) {
        (void) exec_credential_parse(data, size, "client.authentication.k8s.io/v1", &k->credential, &k->text);
}

static void read_kubeconfig(const Reader *reader, const char *data, size_t size, Kept *k) {
        (void) kubeconfig_parse(data, size, "/etc", &k->kubeconfig, &k->text);
}

static void read_lease(const Reader *reader, const char *data, size_t size, Kept *k) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;

        if (json_parse(data, size, size, &doc, NULL) >= 0)
                (void) lease_record_parse(json_root(doc), &k->lease);
}

static void read_timeline(const Reader *reader, const char *data, size_t size, Kept *k) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;

        assert_return_code(timeline_init(&k->timeline, "n"), 0);
        assert_return_code(timeline_take_log_line(&k->timeline, data, size), 0);
        if (json_parse(data, size, size, &doc, NULL) < 0)
                return;
        assert_return_code(timeline_take_object(&k->timeline, json_root(doc)), 0);
        assert_return_code(timeline_take_event(&k->timeline, json_root(doc)), 0);
}

static void read_list(const Reader *reader, const char *data, size_t size, Kept *k) {
        (void) snapshot_load_list(data, size, FUZZ_NOW, pool_of(k), &k->snapshot, &k->other_text, &k->text);
}

/* Reads an update of a Node: compares it with its older state, and simulates it. */
static void read_update(const Reader *reader, const char *data, size_t size, Kept *k) {
        static const JsonOmit unread[] = { { "metadata", "managedFields" } };
        const JsonOmits omits = { .list = unread, .n_list = ELEMENTSOF(unread) };
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL, *drivers = NULL;
        _cleanup_(kube_object_unrefp) KubeObject *old = NULL, *csi = NULL;
        _cleanup_(simulator_freep) Simulator *simulator = NULL;

        if (json_parse_without(data, size, size, &omits, &doc, NULL) < 0 ||
            kube_object_decode(&kube_scheduled_node_kind, json_root(doc), pool_of(k), &old) < 0)
                return;
        decode(&kube_scheduled_node_kind, doc, k);
        assert_true(node_judged_same((KubeScheduledNode *) old, (KubeScheduledNode *) k->object));
        assert_return_code(json_parse(fuzz_csi_node, strlen(fuzz_csi_node), SIZE_MAX, &drivers, NULL), 0);
        assert_return_code(kube_object_decode(&kube_csi_node_kind, json_root(drivers), pool_of(k), &csi), 0);
        assert_return_code(snapshot_new(pool_of(k), FUZZ_NOW, &k->snapshot), 0);
        assert_return_code(snapshot_put(k->snapshot, SNAPSHOT_NODES, k->object), 0);
        assert_return_code(snapshot_put(k->snapshot, SNAPSHOT_CSI_NODES, csi), 0);
        assert_return_code(simulator_new(k->snapshot, &simulator), 0);
        k->snapshot = snapshot_free(k->snapshot);
}

#define REVIEW(group, resource) \
        "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{\"uid\":\"u\",\"resource\":{\"group\":\"" \
        group "\",\"version\":\"v1\",\"resource\":\"" resource "\"},\"name\":\"n1\",\"operation\":\"DELETE\",\"userInfo\":{" \
        "\"username\":\"alice\",\"groups\":[\"dev\",\"ops\"],\"extra\":{\"a\":[\"b\"]}},\"object\":null,\"dryRun\":false," \
        "\"options\":{\"kind\":\"DeleteOptions\"},\"oldObject\":%s}}"

static const char health[] =
        "{\"id\":\"e\",\"detail-type\":\"AWS Health Event\",\"source\":\"aws.health\",\"account\":\"1\",\"region\":\"r\","
        "\"time\":\"2027-01-15T08:00:00Z\",\"resources\":[\"i-0abc\"],\"detail\":{\"eventArn\":\"arn:aws:health:r::event/EC2/X/Y\","
        "\"service\":\"EC2\",\"eventTypeCode\":\"AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED\",\"eventTypeCategory\":"
        "\"scheduledChange\",\"startTime\":\"Fri, 15 Jan 2027 09:00:00 GMT\",\"eventDescription\":[{\"language\":\"en\","
        "\"latestDescription\":\"d\"}],\"affectedEntities\":[{\"entityValue\":\"i-0abc\"}]}}";
static const char spot[] =
        "{\"id\":\"e\",\"detail-type\":\"EC2 Spot Instance Interruption Warning\",\"source\":\"aws.ec2\",\"time\":"
        "\"2027-01-15T08:00:00Z\",\"resources\":[\"arn:aws:ec2:r:1:instance/i-0abc\"],\"detail\":{\"instance-id\":\"i-0abc\","
        "\"instance-action\":\"terminate\"}}";
static const char hook[] =
        "{\"LifecycleHookName\":\"h\",\"AccountId\":\"1\",\"RequestId\":\"r\",\"LifecycleTransition\":"
        "\"autoscaling:EC2_INSTANCE_TERMINATING\",\"AutoScalingGroupName\":\"g\",\"EC2InstanceId\":\"i-0abc\","
        "\"LifecycleActionToken\":\"t\",\"Time\":\"2027-01-15T08:00:00Z\"}";
static const char sqs[] =
        "{\"Messages\":[{\"MessageId\":\"m\",\"ReceiptHandle\":\"r\",\"Body\":\"b\",\"Attributes\":{\"SentTimestamp\":\"1800000000000\","
        "\"ApproximateReceiveCount\":\"1\"}}]}";
static const char describe_instances[] =
        "{\"requestId\":\"r\",\"reservationSet\":[{\"ownerId\":\"1\",\"instancesSet\":[{\"instanceId\":\"i-0abc\",\"instanceState\":"
        "{\"code\":\"32\",\"name\":\"shutting-down\"},\"tagSet\":[{\"key\":\"k\",\"value\":\"v\"}]}]}],\"nextToken\":\"t\"}";
static const char describe_spot_requests[] =
        "{\"requestId\":\"r\",\"spotInstanceRequestSet\":[{\"spotInstanceRequestId\":\"sir-1\",\"instanceId\":\"i-0abc\",\"status\":"
        "{\"code\":\"marked-for-termination\",\"message\":\"m\"}}],\"nextToken\":\"t\"}";
static const char describe_status[] =
        "{\"requestId\":\"r\",\"instanceStatusSet\":[{\"instanceId\":\"i-0abc\",\"eventsSet\":[{\"code\":\"instance-stop\","
        "\"description\":\"d\",\"notBefore\":\"2027-01-15T08:00:00Z\"}],\"systemStatus\":{\"status\":\"ok\"}}],\"nextToken\":\"t\"}";
static const char describe_members[] =
        "{\"DescribeAutoScalingInstancesResult\":{\"AutoScalingInstances\":[{\"InstanceId\":\"i-0abc\",\"LifecycleState\":"
        "\"Terminating:Wait\",\"AutoScalingGroupName\":\"g\"}],\"NextToken\":\"t\"},\"ResponseMetadata\":{\"RequestId\":\"r\"}}";
static const char azure[] =
        "{\"DocumentIncarnation\":1,\"Events\":[{\"EventId\":\"E\",\"EventType\":\"Redeploy\",\"EventStatus\":\"Scheduled\","
        "\"ResourceType\":\"VirtualMachine\",\"NotBefore\":\"Mon, 19 Sep 2016 18:29:47 GMT\",\"Resources\":[\"vm-a\",\"vm-b\"]}]}";
static const char ec2_events[] =
        "[{\"NotBefore\":\"21 Jan 2027 09:00:43 GMT\",\"Code\":\"system-reboot\",\"Description\":\"d\",\"EventId\":"
        "\"instance-event-0d59937288b749b32\",\"NotAfter\":\"21 Jan 2027 09:17:23 GMT\",\"State\":\"active\"}]";
static const char notices[] =
        "[{\"id\":\"window-17\",\"kind\":\"maintenance\",\"action\":\"reboot\",\"deadline\":\"2027-01-21T09:00:00Z\"}]";
static const char intents[] =
        "{\"version\":1,\"bootID\":\"b1\",\"notices\":[{\"id\":\"i\",\"kind\":\"spot\",\"source\":\"ec2\",\"action\":\"stop\","
        "\"deadline\":\"2027-01-15T08:02:00Z\",\"phase\":\"Draining\",\"resources\":[\"a\"]}]}";
static const char kubelet_pods[] =
        "{\"kind\":\"PodList\",\"items\":[{\"metadata\":{\"name\":\"p\",\"uid\":\"a\"},\"spec\":{\"containers\":[{\"name\":\"c\"}]}}]}";
static const char status[] =
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"Cannot evict pod\",\"reason\":"
        "\"TooManyRequests\",\"details\":{\"causes\":[{\"reason\":\"DisruptionBudget\",\"message\":\"The disruption budget web needs 3 "
        "healthy pods and has 3 currently\",\"field\":\"f\"}],\"retryAfterSeconds\":10},\"code\":429}";
static const char credential[] =
        "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{\"token\":\"t\","
        "\"clientCertificateData\":\"c\",\"clientKeyData\":\"k\",\"expirationTimestamp\":\"2027-01-15T08:14:00Z\"}}";
/* JSON is YAML. */
static const char kubeconfig[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"Config\",\"current-context\":\"c1\",\"clusters\":[{\"name\":\"k1\",\"cluster\":{\"server\":"
        "\"https://10.0.0.1:6443\",\"certificate-authority\":\"ca.crt\"}}],\"contexts\":[{\"name\":\"c1\",\"context\":{\"cluster\":"
        "\"k1\",\"user\":\"u1\",\"namespace\":\"d\"}}],\"users\":[{\"name\":\"u1\",\"user\":{\"exec\":{\"apiVersion\":"
        "\"client.authentication.k8s.io/v1\",\"command\":\"aws\",\"args\":[\"eks\",\"get-token\"],\"env\":[{\"name\":\"A\",\"value\":"
        "\"b\"}],\"installHint\":\"get it\"}}}]}";
static const char log_line[] =
        "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\",\"creationTimestamp\":\"2027-01-01T00:00:00Z\",\"managedFields\":"
        "[{\"manager\":\"k\",\"operation\":\"Update\",\"time\":\"2027-01-15T08:00:02Z\"}]},\"status\":{\"conditions\":"
        "[{\"type\":\"Drained\",\"status\":\"True\",\"lastTransitionTime\":\"2027-01-15T08:00:03Z\"}]},"
        "\"involvedObject\":{\"kind\":\"Pod\",\"namespace\":\"w\",\"name\":\"p\"},\"reason\":\"R\",\"message\":\"<m>&\","
        "\"firstTimestamp\":\"2027-01-15T08:00:01Z\",\"lastTimestamp\":\"2027-01-15T08:00:05Z\",\"count\":3,"
        "\"time\":\"2027-01-15T08:00:00.500000Z\",\"msg\":\"x\",\"node\":\"n\",\"__REALTIME_TIMESTAMP\":\"1800000000600000\"}";

static const Reader readers[] = {
        { "Node", fuzz_node, NULL, &kube_node_kind },
        { "Node, as scheduled", fuzz_scheduled_node, NULL, &kube_scheduled_node_kind },
        { "Node with a reboot", fuzz_reboot_node, NULL, &kube_node_kind },
        { "Pod", fuzz_pod, NULL, &kube_pod_kind },
        { "Pod of the own node", fuzz_pod, NULL, &kube_own_pod_kind },
        { "Pod, as scheduled", fuzz_scheduled_pod, NULL, &kube_scheduled_pod_kind },
        { "PodDisruptionBudget", fuzz_pdb, NULL, &kube_pdb_kind },
        { "Lease", fuzz_lease, NULL, &kube_lease_kind },
        { "VolumeAttachment", fuzz_volume_attachment, NULL, &kube_volume_attachment_kind },
        { "PersistentVolumeClaim", fuzz_scheduled_claim, NULL, &kube_scheduled_claim_kind },
        { "PersistentVolume", fuzz_volume, NULL, &kube_volume_kind },
        { "StorageClass", fuzz_storage_class, NULL, &kube_storage_class_kind },
        { "CSINode", fuzz_csi_node, NULL, &kube_csi_node_kind },
        { "Namespace", fuzz_namespace, NULL, &kube_namespace_kind },
        { "NodePool", fuzz_node_pool, NULL, &kube_node_pool_kind },
        { "NodeClaim", fuzz_node_claim, NULL, &kube_node_claim_kind },
        { "NodeDisruptionBudget", fuzz_node_budget, NULL, &kube_node_budget_kind },
        { "Secret", fuzz_secret, NULL, &kube_certificate_secret_kind },
        { "webhooks", fuzz_webhooks, NULL, &kube_webhook_configuration_kind },
        { "update of a Node", fuzz_node, read_update },
        { "review of a Node", fuzz_node, read_review },
        { "review of a NodeClaim", fuzz_node_claim, read_review },
        { "list for a snapshot", fuzz_scheduled_pod, read_list },
        { "spot interruption", spot, read_event_message },
        { "AWS Health", health, read_event_message },
        { "lifecycle hook", hook, read_event_message },
        { "messages of SQS", sqs, read_sqs },
        { "instances of EC2", describe_instances, read_confirmation, .question = CONFIRMATION_INSTANCE_STATE },
        { "Spot requests of EC2", describe_spot_requests, read_confirmation, .question = CONFIRMATION_SPOT_REQUEST },
        { "status of instances of EC2", describe_status, read_confirmation, .question = CONFIRMATION_EVENTS },
        { "instances of Auto Scaling", describe_members, read_confirmation, .question = CONFIRMATION_GROUP },
        { "scheduled events of Azure", azure, read_azure },
        { "scheduled events of EC2", ec2_events, read_ec2_events },
        { "file of notices", notices, read_notices },
        { "intent log", intents, read_intents },
        { "pods of a kubelet", kubelet_pods, read_kubelet_pods },
        { "Status", status, read_status },
        { "exec plugin's credential", credential, read_credential },
        { "kubeconfig", kubeconfig, read_kubeconfig },
        { "Lease record", fuzz_lease, read_lease },
        { "line of a log", log_line, read_timeline },
};

/* The template with what stands around it; free it. */
static char *wrapped(const Reader *reader) {
        if (reader->read == read_review)
                return reader->template == fuzz_node ? strf(REVIEW("", "nodes"), reader->template)
                                                     : strf(REVIEW("vesper.sh", "nodeclaims"), reader->template);
        if (reader->read == read_list)
                return strf("{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[%s]}", reader->template);
        return strdup(reader->template);
}

/* -- cost ----------------------------------------------------------------------------------------------- */

typedef struct Cost {
        size_t size; /* of the input */
        AllocCount heap;
        size_t n_compared;
        uint64_t instructions; /* 0: not counted */
        double milliseconds;
} Cost;

typedef void (*read_t)(const Reader *reader, const char *data, size_t size, Kept *k);

#ifdef HAVE_CALLGRIND
/* Callgrind counts into files alone: VESPER_CALLGRIND is its --callgrind-out-file. The test does not switch
 * the instrumentation on and off, because callgrind translates the whole program anew each time. */
static uint64_t counted_instructions(unsigned number) {
        _cleanup_free_ char *path = strf("%s.%u", strempty(getenv("VESPER_CALLGRIND")), number), *text = NULL;
        const char *total;
        size_t size;

        assert_non_null(path);
        assert_return_code(read_file(path, 64u << 20, &text, &size), 0);
        assert_return_code(remove(path), 0);
        total = strstr(text, "\ntotals: ");
        assert_non_null(total);
        return strtoull(total + strlen("\ntotals: "), NULL, 10);
}
#endif

static double milliseconds_since(const struct timespec *begin) {
        struct timespec end;

        (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
        return (double) (end.tv_sec - begin->tv_sec) * 1e3 + (double) (end.tv_nsec - begin->tv_nsec) / 1e6;
}

static Cost cost_of(const Reader *reader, read_t read, const char *data, size_t size) {
        Cost c = { .size = size };
        struct timespec begin;
        Kept k = { 0 };

        (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
#ifdef HAVE_CALLGRIND
        static unsigned n_dumps;

        CALLGRIND_ZERO_STATS;
        CALLGRIND_TOGGLE_COLLECT;
        read(reader, data, size, &k);
        CALLGRIND_TOGGLE_COLLECT;
        CALLGRIND_DUMP_STATS;
        if (RUNNING_ON_VALGRIND) {
                c.instructions = counted_instructions(++n_dumps);
                kept_done(&k);
                return c;
        }
        kept_done(&k);
#endif
        (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
        c.n_compared = n_compared();
        alloc_count_begin();
        read(reader, data, size, &k);
        c.heap = alloc_count_end();
        c.n_compared = n_compared() - c.n_compared;
        c.milliseconds = milliseconds_since(&begin);
        kept_done(&k);
        return c;
}

/* -- the bounds ----------------------------------------------------------------------------------------- */

typedef struct Tally {
        size_t n_inputs, n_failed;
} Tally;

static void complain(Tally *t, const char *input, const char *what, double is, double max) {
        t->n_failed++;
        print_error("%s: %s: %.2f, at most %.2f\n", input, what, is, max);
}

static void hold_ratio(Tally *t, const char *input, const char *what, uint64_t small, uint64_t large, uint64_t of_nothing, double max) {
        double ratio = (double) large / (double) (small + of_nothing);

        if (ratio > max)
                complain(t, input, what, ratio, max);
}

static void hold_multiple(Tally *t, const char *input, const char *what, size_t bytes, const Cost *c, unsigned max) {
        if (bytes > max * c->size + BYTES_FREE)
                complain(t, input, what, (double) bytes / (double) c->size, max);
}

static void hold(Tally *t, const char *input, unsigned reading_max, const Cost *small, const Cost *large) {
        t->n_inputs++;
        if (large->instructions > 0) {
                hold_ratio(t, input, "instructions of twice the size", small->instructions, large->instructions, 0, RATIO_MAX);
                return;
        }
        hold_ratio(t, input, "allocations of twice the size", small->heap.n, large->heap.n, N_FREE, RATIO_MAX);
        hold_ratio(t, input, "bytes asked for with twice the size", small->heap.requested, large->heap.requested, BYTES_FREE, RATIO_MAX);
        hold_ratio(t, input, "texts compared with twice the size", small->n_compared, large->n_compared, COMPARED_FREE, COMPARED_RATIO_MAX);
        hold_multiple(t, input, "times its size while it is read", large->heap.peak, large, reading_max);
        hold_multiple(t, input, "times its size kept", large->heap.live, large, KEPT_MAX);
}

/* -- all inputs ----------------------------------------------------------------------------------------- */

/* The same object in protobuf; false: it has no message. */
static bool to_protobuf(const KubeKind *kind, const char *json, StrBuf *ret) {
        cJSON *object = cJSON_Parse(json);
        const FakeResource *r = fake_resource_find(kind->group, kind->version, kind->plural);

        if (object && r && fake_protobuf_has(r))
                fake_protobuf_add_message(ret, r, object, false);
        cJSON_Delete(object);
        return ret->size > 0;
}

/* Adds an element for each member of an object, and one named item or member, as AWS has them, for each element of a list. */
static void add_element(StrBuf *xml, const char *name, const char *of_list, const Json *v) {
        strbuf_addf(xml, "<%s>", name);
        if (json_is_object(v) || json_is_array(v))
                JSON_FOREACH (i, v)
                        add_element(xml, json_is_object(v) ? json_key(i) : of_list, of_list, i);
        else
                strbuf_add(xml, strempty(json_string_or_null(v)));
        strbuf_addf(xml, "</%s>", name);
}

/* The same answer in XML. */
static void to_xml(ConfirmationQuestion q, const char *json, StrBuf *ret) {
        _cleanup_free_ char *root = strf("%sResponse", strchr(confirmation_permission(q), ':') + 1);
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;

        assert_non_null(root);
        assert_return_code(json_parse(json, strlen(json), SIZE_MAX, &doc, NULL), 0);
        add_element(ret, root, q == CONFIRMATION_GROUP ? "member" : "item", json_root(doc));
}

/* A way in which a template grows. */
typedef struct Input {
        const Reader *reader;
        read_t read;
        const char *template;
        size_t place;
        Growth growth;
        char *name; /* for people */
} Input;

/* Writes the input as its reader takes it; false: protobuf has no such place, or the kind has no protobuf. */
static bool input_make(const Input *i, size_t bytes, StrBuf *ret) {
        _cleanup_free_ char *path = NULL, *json = grown_json(i->template, i->place, i->growth, bytes, &path);

        assert_non_null(json);
        strbuf_done(ret);
        if (i->read == read_protobuf)
                return to_protobuf(i->reader->kind, json, ret) && ret->size > bytes / 4;
        if (i->read == read_confirmation)
                to_xml(i->reader->question, json, ret);
        else
                strbuf_add(ret, json);
        assert_false(ret->failed);
        return true;
}

static Cost input_cost(const Input *i, const StrBuf *text) {
        return cost_of(i->reader, i->read, text->data, text->size);
}

typedef void (*visit_t)(const Input *i, void *userdata);

/* Loops are the same for what was JSON and for what was protobuf once it is a tree: protobuf has one growth of each kind. Callgrind
 * takes fifty times as long. */
static bool growth_counts(Growth g, bool protobuf) {
        bool typical = g == GROW_DISTINCT || g == GROW_EMPTY_TEXTS || g == GROW_MEMBERS || g == GROW_TEXT;

        return typical || (!protobuf && !RUNNING_ON_VALGRIND);
}

static void visit_growth(const Reader *reader, const char *template, size_t place, Growth g, visit_t visit, void *userdata,
                         bool *ret_there) {
        const read_t reads[] = { reader->read ? reader->read : read_json, reader->kind && reader->kind->shape ? read_protobuf : NULL };
        _cleanup_free_ char *path = NULL, *json = grown_json(template, place, g, 1, &path);

        *ret_there = path != NULL;
        for (size_t k = 0; json && k < ELEMENTSOF(reads); k++) {
                bool protobuf = reads[k] == read_protobuf;
                _cleanup_free_ char *name =
                        strf("%s%s, %s at '%s'", reader->name, protobuf ? ", protobuf" : "", growth_to_string(g), path);

                assert_non_null(name);
                if (reads[k] && growth_counts(g, protobuf))
                        visit(&(Input){ reader, reads[k], template, place, g, name }, userdata);
        }
}

static void visit_all(visit_t visit, void *userdata) {
        const char *only = getenv("VESPER_INPUT"); /* the name of a reader */

        for (size_t i = 0; i < ELEMENTSOF(readers); i++) {
                _cleanup_free_ char *template = wrapped(readers + i);
                bool there = true;

                assert_non_null(template);
                if (only && !streq(only, readers[i].name))
                        continue;
                for (size_t place = 0; there; place++)
                        for (Growth g = 0; g < _GROWTH_MAX && there; g++)
                                visit_growth(readers + i, template, place, g, visit, userdata, &there);
        }
}

/* Under callgrind the inputs are smaller, so that the check takes less than three minutes of CPU time. A
 * kubeconfig keeps its size: the keys of a small map in YAML are compared each with each. */
static void visit_hold(const Input *i, void *userdata) {
        _cleanup_strbuf_ StrBuf small = { 0 }, large = { 0 };
        size_t bytes = RUNNING_ON_VALGRIND && i->read != read_kubeconfig ? CALLGRIND_SMALL_BYTES : SMALL_BYTES;
        Cost s, l;

        if (!input_make(i, bytes, &small) || !input_make(i, 2 * bytes, &large))
                return;
        s = input_cost(i, &small);
        l = input_cost(i, &large);
        hold(userdata, i->name, i->read == read_kubeconfig || i->read == read_update ? READING_MORE_MAX : READING_MAX, &s, &l);
}

TEST_CASE(test_every_input) {
        Tally t = { 0 };

        if (!alloc_count_works())
                skip();
        visit_all(visit_hold, &t);
        print_message("%zu inputs, %zu of them beyond a bound\n", t.n_inputs, t.n_failed);
        assert_int_equal(t.n_failed, 0);
        assert_true(t.n_inputs > 1000 || getenv("VESPER_INPUT"));
}

/* -- the benchmark -------------------------------------------------------------------------------------- */

typedef struct Slowest {
        char *name; /* NULL: none yet */
        Cost cost;
} Slowest;

/* userdata: one for each reader. */
static void visit_time(const Input *i, void *userdata) {
        /* Objects have etcd's limit; other readers have smaller ones of their own, and refuse what is larger at once. */
        static const size_t sizes[] = { LARGEST_BYTES, 1000u << 10, 250u << 10, 60u << 10 };
        Slowest *s = (Slowest *) userdata + (i->reader - readers);

        for (size_t k = 0; k < (i->reader->kind ? 1 : ELEMENTSOF(sizes)); k++) {
                size_t bytes = i->read == read_review && k == 0 ? ADMISSION_BODY_BYTES_MAX - 2 * strlen(i->template) : sizes[k];
                _cleanup_strbuf_ StrBuf text = { 0 };
                Cost c;

                if (!input_make(i, bytes, &text))
                        return;
                /* Protobuf may be larger than its JSON: the limit is that of the protobuf. */
                if (i->read == read_protobuf && text.size > LARGEST_BYTES && !input_make(i, sizes[k] * LARGEST_BYTES / text.size, &text))
                        return;
                c = input_cost(i, &text);
                if (s->name && c.milliseconds <= s->cost.milliseconds)
                        continue;
                free(s->name);
                *s = (Slowest){ strdup(i->name), c };
                assert_non_null(s->name);
        }
}

/* Prints a line of JSON for each reader. */
static int print_milliseconds(void) {
        Slowest slowest[ELEMENTSOF(readers)] = { 0 };

        visit_all(visit_time, slowest);
        for (size_t i = 0; i < ELEMENTSOF(readers); i++) {
                const Cost *c = &slowest[i].cost;

                if (slowest[i].name)
                        printf("{\"input\":\"%s\",\"ms\":%.1f,\"bytes\":%zu,\"peak\":%zu,\"kept\":%zu}\n", slowest[i].name, c->milliseconds,
                               c->size, c->heap.peak, c->heap.live);
                free(slowest[i].name);
        }
        return EXIT_SUCCESS;
}

int main(int argc, char *argv[]) {
        static const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_input) };

        if (argc > 1 && streq(argv[1], "--milliseconds"))
                return print_milliseconds();
        return cmocka_run_group_tests_name("input-cost", tests, NULL, NULL);
}
