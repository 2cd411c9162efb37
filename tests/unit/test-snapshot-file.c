/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmocka-test.h"
#include "fuzz-objects.h"
#include "snapshot-file.h"
#include "snapshot-object.h"
#include "string-util.h"
#include "strv.h"
#include "texts.h"

static const struct {
        SnapshotKind kind;
        const char *text;
        /* What the file leaves out of it, or writes another way: paths of leaves, and all below them. */
        const char *left_out[12];
} kinds[] = {
        { SNAPSHOT_NODES, fuzz_node,
          { "metadata.resourceVersion", "spec.taints.value", "status.volumesAttached.devicePath", "status.addresses",
            "status.daemonEndpoints", "status.nodeInfo.bootID", "status.nodeInfo.machineID", "status.nodeInfo.systemUUID" } },
        { SNAPSHOT_NODES, fuzz_scheduled_node, {} },
        { SNAPSHOT_PODS, fuzz_pod,
          { "metadata.resourceVersion", "spec.volumes.emptyDir", "spec.tolerations.value",
            "spec.volumes.ephemeral.volumeClaimTemplate" } },
        { SNAPSHOT_PODS, fuzz_scheduled_pod,
          { "spec.containers.name", "spec.containers.ports.containerPort", "spec.initContainers.name",
            "spec.tolerations.tolerationSeconds", "spec.resourceClaims.name", "spec.volumes.ephemeral.volumeClaimTemplate",
            "spec.volumes.rbd.image" } },
        { SNAPSHOT_PDBS, fuzz_pdb, { "metadata.resourceVersion", "spec.selector.matchLabels", "spec.minAvailable" } },
        { SNAPSHOT_VOLUME_CLAIMS, fuzz_scheduled_claim, {} },
        { SNAPSHOT_VOLUMES, fuzz_volume, {} },
        { SNAPSHOT_STORAGE_CLASSES, fuzz_storage_class, {} },
        { SNAPSHOT_CSI_NODES, fuzz_csi_node, { "spec.drivers.nodeID", "spec.drivers.topologyKeys" } },
        { SNAPSHOT_NAMESPACES, fuzz_namespace, {} },
        { SNAPSHOT_NODE_POOLS, fuzz_node_pool, { "metadata.resourceVersion", "spec.selector.matchLabels" } },
        { SNAPSHOT_NODE_CLAIMS, fuzz_node_claim,
          { "metadata.resourceVersion", "spec.systemUUID", "spec.machineID", "status.identity", "status.blockers",
            "status.lastCloudError", "status.group.request", "spec.expireAfter" } },
        { SNAPSHOT_NODE_BUDGETS, fuzz_node_budget, { "metadata.resourceVersion", "spec.selector.matchLabels" } },
};

static KubeObject *decode(SnapshotKind kind, InternPool *pool, const char *text) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        KubeObject *o = NULL;

        assert_return_code(json_parse(text, strlen(text), strlen(text), &doc, NULL), 0);
        assert_return_code(kube_object_decode(snapshot_kube_kind(kind), json_root(doc), pool, &o), 0);
        return o;
}

static void put(Snapshot *s, SnapshotKind kind, const char *text) {
        _cleanup_(kube_object_unrefp) KubeObject *o = decode(kind, s->pool, text);

        assert_return_code(snapshot_put(s, kind, o), 0);
}

static char *line_of(const KubeObject *o) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        char *line;

        assert_return_code(json_writer_new(&w), 0);
        assert_return_code(snapshot_object_write(w, o), 0);
        line = json_writer_steal(w, NULL);
        assert_non_null(line);
        return line;
}

static Snapshot *load_ok(InternPool *pool, const char *text, size_t size) {
        _cleanup_free_ char *why = NULL;
        Snapshot *s = NULL;
        int r = snapshot_load(text, size, pool, &s, &why);

        if (r < 0)
                fail_msg("%s", strempty(why));
        return s;
}

static char *save(const Snapshot *s, size_t *ret_size) {
        char *text = NULL;

        assert_return_code(snapshot_save(s, &text, ret_size), 0);
        assert_int_equal(strlen(text), *ret_size);
        return text;
}

static int setup(void **state) {
        return intern_pool_new((InternPool **) state);
}

static int teardown(void **state) {
        assert_int_equal(intern_pool_size(*state), 0);
        intern_pool_free(*state);
        return 0;
}

/* -- objects -------------------------------------------------------------------------------------------- */

static void collect_leaves(const Json *v, const char *path, char ***ret) {
        if (json_size(v) == 0) {
                if (!strv_contains(*ret, path))
                        assert_return_code(strv_extend(ret, path), 0);
                return;
        }
        JSON_FOREACH (i, v) {
                _cleanup_free_ char *below = json_is_array(v) ? strdup(path)
                                             : *path          ? strf("%s.%s", path, json_key(i))
                                                              : strdup(json_key(i));

                assert_non_null(below);
                collect_leaves(i, below, ret);
        }
}

static char **leaves_of(const char *text) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        char **leaves = NULL;

        assert_return_code(json_parse(text, strlen(text), strlen(text), &doc, NULL), 0);
        collect_leaves(json_root(doc), "", &leaves);
        return leaves;
}

static bool is_left_out(const char *path, const char *const *left_out) {
        for (size_t i = 0; left_out[i]; i++) {
                const char *rest = startswith(path, left_out[i]);

                if (rest && (*rest == 0 || *rest == '.'))
                        return true;
        }
        return false;
}

/* Of objects that have every field that a decoder reads, the file has all but what is named here. */
TEST_CASE(test_nothing_is_forgotten) {
        for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
                _cleanup_(kube_object_unrefp) KubeObject *o = decode(kinds[i].kind, *state, kinds[i].text);
                _cleanup_free_ char *line = line_of(o);
                _cleanup_strv_free_ char **there = leaves_of(kinds[i].text), **written = leaves_of(line);

                STRV_FOREACH (s, there) {
                        bool listed = is_left_out(*s, kinds[i].left_out);

                        if (!strv_contains(written, *s) && !listed)
                                fail_msg("%s: %s is not written: %s", o->kind->kind, *s, line);
                        if (strv_contains(written, *s) && listed && !streq(*s, "spec.taints.value") && !streq(*s, "spec.tolerations.value"))
                                fail_msg("%s: %s is written, and is to be left out", o->kind->kind, *s);
                }
        }
}

/* What is read of a line is written as that line. */
/* Objects as a file has them: what is read of a line is written as the same line again. Each row has a value that no other row has. */
TEST_CASE(test_lines_are_kept) {
        static const struct {
                SnapshotKind kind;
                const char *line; /* ' stands for " */
        } rows[] = {
#define POD(spec, status) "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p','namespace':'x'},'spec':{" spec "},'status':{" status "}}"
                { SNAPSHOT_PODS, POD("'nodeName':'n'", "'phase':'Succeeded'") },
                { SNAPSHOT_PODS, POD("'nodeName':'n'", "'phase':'Failed'") },
                { SNAPSHOT_PODS, POD("'nodeName':'n'", "'phase':'Running'") },
                { SNAPSHOT_PODS, POD("", "'phase':'Pending'") },
                { SNAPSHOT_PODS, POD("'nodeName':'n'", "'phase':'Running','conditions':[{'type':'Ready','status':'True'}]") },
                { SNAPSHOT_PODS, POD("'nodeName':'n'", "'phase':'Running','conditions':[{'type':'PodResizeInProgress','status':'True'}]") },
                { SNAPSHOT_PODS, POD("", "'phase':'Pending','nominatedNodeName':'n'") },
                { SNAPSHOT_PODS, POD("'schedulingGates':[{}]", "'phase':'Pending'") },
                { SNAPSHOT_PODS, POD("'nodeName':'n','terminationGracePeriodSeconds':31", "'phase':'Running'") },
                { SNAPSHOT_PODS, POD("'nodeName':'n','priority':5", "'phase':'Running'") },
                { SNAPSHOT_PODS, POD("'nodeName':'n','priority':-5", "'phase':'Running'") },
                { SNAPSHOT_PODS, POD("'nodeName':'n','schedulerName':'mine'", "'phase':'Running'") },
                { SNAPSHOT_NODE_CLAIMS,
                  "{'apiVersion':'vesper.sh/v1alpha1','kind':'NodeClaim','metadata':{'name':'c'},"
                  "'spec':{'nodePool':'a','providerID':'x','nodeName':'made','terminationGracePeriod':"
                  "'3600s','expireAfter':'2592000s'},'status':{'nodeName':'n','nodeUID':'u','phase':'Adopted',"
                  "'deadline':'2027-01-15T08:00:00Z','podsLeft':0}}" },
                { SNAPSHOT_NODE_CLAIMS, "{'apiVersion':'vesper.sh/v1alpha1','kind':'NodeClaim',"
                  "'metadata':{'name':'c'},'spec':{},'status':{'podsLeft':3}}" },
                { SNAPSHOT_NODE_BUDGETS,
                  "{'apiVersion':'vesper.sh/v1alpha1','kind':'NodeDisruptionBudget','metadata':{'name':'b'},"
                  "'spec':{'selector':{},'minAvailable':3},'status':{"
                  "'expectedNodes':1,'currentAvailable':2,'desiredAvailable':3,'disruptionsAllowed':4,'observedGeneration':5}}" },
                { SNAPSHOT_NODE_BUDGETS,
                  "{'apiVersion':'vesper.sh/v1alpha1','kind':'NodeDisruptionBudget','metadata':{'name':'b'},"
                  "'spec':{'selector':{},'maxUnavailable':'30%'},'status':{"
                  "'expectedNodes':1,'currentAvailable':2,'desiredAvailable':3,'disruptionsAllowed':4}}" },
        };
        unsigned n_wrong = 0;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
                _cleanup_free_ char *text = strdup(rows[i].line), *line = NULL;

                assert_non_null(text);
                o = decode(rows[i].kind, *state, text_quote(text));
                line = line_of(o);
                if (!streq(line, text)) {
                        print_error("want: %s\ngot:  %s\n", text, line);
                        n_wrong++;
                }
        }
        assert_int_equal(n_wrong, 0);
}

TEST_CASE(test_lines_read_back) {
        for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
                _cleanup_(kube_object_unrefp) KubeObject *o = decode(kinds[i].kind, *state, kinds[i].text), *again = NULL;
                _cleanup_free_ char *line = line_of(o), *other = NULL;

                again = decode(kinds[i].kind, *state, line);
                assert_null(again->invalid);
                other = line_of(again);
                assert_string_equal(line, other);
                if (o->kind == &kube_scheduled_pod_kind) {
                        const KubeScheduledPod *a = (const KubeScheduledPod *) o, *b = (const KubeScheduledPod *) again;

                        assert_string_equal(a->scheduling, b->scheduling);
                        assert_true(kube_pod_says_same(&a->pod, &b->pod));
                }
                if (o->kind == &kube_pdb_kind) {
                        const KubePdb *a = (const KubePdb *) o, *b = (const KubePdb *) again;

                        assert_int_equal(kube_pdb_allowed(a), kube_pdb_allowed(b));
                        assert_int_equal(kube_pdb_lets_unready_pass(a), kube_pdb_lets_unready_pass(b));
                }
                if (o->kind == &kube_scheduled_node_kind)
                        assert_true(key_values_are_same(&((KubeScheduledNode *) o)->allocatable,
                                                        &((KubeScheduledNode *) again)->allocatable));
        }
}

#define SECRETS \
        "{\"metadata\":{\"name\":\"p\",\"namespace\":\"d\",\"annotations\":{\"token\":\"HIDE1\"},\"managedFields\":[{\"manager\":" \
        "\"HIDE2\"}]},\"spec\":{\"serviceAccountName\":\"HIDE3\",\"containers\":[{\"name\":\"HIDE4\",\"image\":\"HIDE5\",\"args\":" \
        "[\"HIDE6\"],\"env\":[{\"name\":\"A\",\"value\":\"HIDE7\"}],\"resources\":{\"requests\":{\"cpu\":\"1\"}}}],\"volumes\":" \
        "[{\"name\":\"s\",\"secret\":{\"secretName\":\"HIDE8\"}}]},\"status\":{\"podIP\":\"HIDE9\",\"message\":\"HIDE0\"}}"

TEST_CASE(test_no_secrets) {
        _cleanup_(kube_object_unrefp) KubeObject *o = decode(SNAPSHOT_PODS, *state, SECRETS);
        _cleanup_free_ char *line = line_of(o);

        assert_null(strstr(line, "HIDE"));
        assert_non_null(strstr(line, "\"cpu\":\"1\""));
}

/* What could not be read stays so. */
TEST_CASE(test_unreadable) {
        static const char text[] = "{\"metadata\":{\"name\":\"p\",\"namespace\":\"d\"},\"spec\":{\"priority\":\"high\",\"nodeName\":\"n\"}}";
        _cleanup_(snapshot_freep) Snapshot *s = NULL, *again = NULL;
        _cleanup_free_ char *saved = NULL;
        size_t size;

        assert_return_code(snapshot_new(*state, 0, &s), 0);
        put(s, SNAPSHOT_PODS, text);
        saved = save(s, &size);
        again = load_ok(*state, saved, size);
        assert_string_equal(snapshot_get(again, SNAPSHOT_PODS, "d/p")->invalid, "spec.priority is no integer");
}

/* -- files ---------------------------------------------------------------------------------------------- */

static Snapshot *make_snapshot(InternPool *pool, usec_t taken_usec, bool backwards) {
        Snapshot *s = NULL;

        assert_return_code(snapshot_new(pool, taken_usec, &s), 0);
        for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
                size_t k = backwards ? ELEMENTSOF(kinds) - 1 - i : i;

                if (kinds[k].text != fuzz_node && kinds[k].text != fuzz_pod) /* of the same name as others */
                        put(s, kinds[k].kind, kinds[k].text);
        }
        for (int i = 0; i < 5; i++) {
                _cleanup_free_ char *text = strf("{\"metadata\":{\"name\":\"node-%d\",\"uid\":\"u\"}}", backwards ? 4 - i : i);

                put(s, SNAPSHOT_NODES, text);
        }
        return s;
}

TEST_CASE(test_save_and_load) {
        _cleanup_(snapshot_freep) Snapshot *s = make_snapshot(*state, UINT64_C(1800000000) * USEC_PER_SEC, false), *again = NULL;
        _cleanup_free_ char *text = NULL, *other = NULL, *fingerprint_member = NULL;
        char fingerprint[SNAPSHOT_FINGERPRINT_SIZE];
        size_t size, other_size;

        s->is_known[SNAPSHOT_PDBS] = true;
        text = save(s, &size);
        assert_true(snapshot_is_file(text, size));
        assert_non_null(startswith(text, "{\"vesperSnapshot\":1,\"taken\":\"2027-01-15T08:00:00Z\",\"kinds\":[\"Node\",\"Pod\","));
        again = load_ok(*state, text, size);
        assert_int_equal(again->taken_usec, s->taken_usec);
        for (SnapshotKind k = 0; k < _SNAPSHOT_KIND_MAX; k++) {
                assert_int_equal(hashmap_size(again->objects[k]), hashmap_size(s->objects[k]));
                assert_int_equal(again->is_known[k], s->is_known[k]);
        }
        other = save(again, &other_size);
        assert_string_equal(text, other);
        assert_return_code(snapshot_fingerprint(s, fingerprint), 0);
        fingerprint_member = strf(",\"fingerprint\":\"%s\"}\n", fingerprint);
        assert_non_null(strstr(text, fingerprint_member));
        assert_ptr_equal(strstr(text, fingerprint_member) + strlen(fingerprint_member) - 1, strchr(text, '\n')); /* of the first line */
}

TEST_CASE(test_empty) {
        _cleanup_(snapshot_freep) Snapshot *s = NULL, *again = NULL;
        _cleanup_free_ char *text = NULL, *line = NULL;
        char fingerprint[SNAPSHOT_FINGERPRINT_SIZE];
        size_t size;

        assert_return_code(snapshot_new(*state, 0, &s), 0);
        s->is_known[SNAPSHOT_PODS] = true;
        text = save(s, &size);
        assert_return_code(snapshot_fingerprint(s, fingerprint), 0);
        line = strf("{\"vesperSnapshot\":1,\"taken\":\"1970-01-01T00:00:00Z\",\"kinds\":[\"Pod\"],\"objects\":0,\"fingerprint\":\"%s\"}\n", fingerprint);
        assert_string_equal(text, line);
        again = load_ok(*state, text, size);
        assert_true(again->is_known[SNAPSHOT_PODS] && !again->is_known[SNAPSHOT_NODES]);
}

TEST_CASE(test_fingerprint) {
        _cleanup_(snapshot_freep) Snapshot *a = make_snapshot(*state, 7, false), *b = make_snapshot(*state, 8 * USEC_PER_DAY, true);
        char first[SNAPSHOT_FINGERPRINT_SIZE], second[SNAPSHOT_FINGERPRINT_SIZE];

        assert_return_code(snapshot_fingerprint(a, first), 0);
        assert_return_code(snapshot_fingerprint(b, second), 0);
        assert_int_equal(strlen(first), 32);
        assert_string_equal(first, second); /* another time, another order */
        assert_true(memcmp(first, first + 16, 16) != 0);

        /* of another version, with another heartbeat */
        put(b, SNAPSHOT_NODES, "{\"metadata\":{\"name\":\"node-0\",\"uid\":\"u\",\"resourceVersion\":\"77\"}}");
        assert_return_code(snapshot_fingerprint(b, second), 0);
        assert_string_equal(first, second);

        put(b, SNAPSHOT_NODES, "{\"metadata\":{\"name\":\"node-0\",\"uid\":\"v\"}}");
        assert_return_code(snapshot_fingerprint(b, second), 0);
        assert_string_not_equal(first, second);

        /* whether somebody has looked counts */
        put(b, SNAPSHOT_NODES, "{\"metadata\":{\"name\":\"node-0\",\"uid\":\"u\"}}");
        b->is_known[SNAPSHOT_PDBS] = false;
        assert_return_code(snapshot_fingerprint(b, second), 0);
        assert_string_not_equal(first, second);
}

/* For ever the same: it is written down beside what was decided. */
TEST_CASE(test_fingerprint_is_stable) {
        _cleanup_(snapshot_freep) Snapshot *s = NULL;
        char text[SNAPSHOT_FINGERPRINT_SIZE];

        assert_return_code(snapshot_new(*state, 0, &s), 0);
        put(s, SNAPSHOT_NAMESPACES, "{\"metadata\":{\"name\":\"a\"}}");
        assert_return_code(snapshot_fingerprint(s, text), 0);
        assert_string_equal(text, "2416813dedd27286f59492864b83cff0");
}

#define HEAD(objects) "{\"vesperSnapshot\":1,\"taken\":\"2027-01-15T08:00:00Z\",\"kinds\":[\"Node\"],\"objects\":" #objects "}\n"
#define NODE_LINE "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\"}}\n"

TEST_CASE(test_refused) {
        static const struct {
                const char *text, *why;
        } rows[] = {
                { "", "the file is empty" },
                { "\n", "line 1 is no JSON: " },
                { "{}\n", "line 1 is not the beginning of a snapshot" },
                { "[]\n", "line 1 is not the beginning of a snapshot" },
                { "{\"vesperSnapshot\":0}\n", "line 1 is not the beginning of a snapshot" },
                { "{\"vesperSnapshot\":\"1\"}\n", "line 1 is not the beginning of a snapshot" },
                { "{\"vesperSnapshot\":2,\"all\":\"new\"}\nnew\n",
                  "the snapshot has format 2, and this vesper reads formats up to 1: read it with the version that has written it, or a later one" },
                { "{\"vesperSnapshot\":1,\"taken\":\"today\",\"kinds\":[],\"objects\":0}\n", "line 1 does not say when the snapshot was taken" },
                { "{\"vesperSnapshot\":1,\"taken\":\"2027-01-15T08:00:00Z\",\"kinds\":[]}\n", "line 1 does not say how many objects follow" },
                { "{\"vesperSnapshot\":1,\"taken\":\"2027-01-15T08:00:00Z\",\"objects\":0}\n", "line 1 does not say which kinds are known" },
                { HEAD(2) NODE_LINE, "line 1 announces 2 objects, and 1 follow: the file was cut off or changed" },
                { HEAD(0) NODE_LINE, "line 1 announces 0 objects, and 1 follow: the file was cut off or changed" },
                { HEAD(-1), "line 1 announces -1 objects, and 0 follow" },
                { HEAD(1) "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\"}}", "line 2 does not end: the file was cut off" },
                { HEAD(1) "{\"apiVersion\":\"v1\",\"kind\":\n", "line 2 is no JSON: " },
                { HEAD(2) NODE_LINE "\n", "line 3 is no JSON: " },
                { HEAD(1) "{\"kind\":\"Node\"}\n", "line 2 is no object with apiVersion and kind" },
                { HEAD(1) "7\n", "line 2 is no object with apiVersion and kind" },
                { HEAD(1) "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"s\"}}\n", "line 2: a snapshot has no objects of kind Secret" },
                { HEAD(1) "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{}}\n", "line 2: a Node without a name" },
                { HEAD(2) NODE_LINE NODE_LINE, "line 3: Node n1 is there twice" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *why = NULL;
                Snapshot *s = NULL;

                assert_int_equal(snapshot_load(rows[i].text, strlen(rows[i].text), *state, &s, &why), -EBADMSG);
                assert_null(s);
                if (!startswith(strempty(why), rows[i].why))
                        fail_msg("%s: expected '%s', got '%s'", rows[i].text, rows[i].why, strempty(why));
        }
}

/* What a later vesper may add to this format. */
TEST_CASE(test_later_members) {
        static const char text[] = "{\"vesperSnapshot\":1,\"taken\":\"2027-01-15T08:00:00Z\",\"kinds\":[\"Node\",\"Later\"],\"objects\":1,\"new\":7}\n"
                                   "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\"},\"new\":{}}\n";
        _cleanup_(snapshot_freep) Snapshot *s = load_ok(*state, text, strlen(text));

        assert_non_null(snapshot_get(s, SNAPSHOT_NODES, "n1"));
}

/* -- kubectl's list ------------------------------------------------------------------------------------- */

TEST_CASE(test_list) {
        static const char text[] =
                "{\n  \"apiVersion\": \"v1\",\n  \"items\": [\n"
                "    {\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"p\", \"namespace\": \"d\"}},\n"
                "    {\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"metadata\": {\"name\": \"s\", \"namespace\": \"d\"}},\n"
                "    {\"apiVersion\": \"v1\", \"kind\": \"Node\", \"metadata\": {\"name\": \"n\"}},\n"
                "    {\"apiVersion\": \"policy/v1beta1\", \"kind\": \"PodDisruptionBudget\", \"metadata\": {\"name\": \"b\", \"namespace\": \"d\"}},\n"
                "    {\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"metadata\": {\"name\": \"t\", \"namespace\": \"d\"}},\n"
                "    {\"apiVersion\": \"storage.k8s.io/v1\", \"kind\": \"CSINode\", \"metadata\": {\"name\": \"n\"}}\n"
                "  ],\n  \"kind\": \"List\",\n  \"metadata\": {\"resourceVersion\": \"\"}\n}\n";
        _cleanup_(snapshot_freep) Snapshot *s = NULL;
        _cleanup_free_ char *passed = NULL, *why = NULL;

        assert_false(snapshot_is_file(text, strlen(text)));
        assert_return_code(snapshot_load_list(text, strlen(text), 7, *state, &s, &passed, &why), 0);
        assert_null(why);
        assert_string_equal(passed, "These objects were passed over, for a snapshot has none of their kinds: 2 of Secret (v1), "
                                    "1 of PodDisruptionBudget (policy/v1beta1).");
        assert_int_equal(s->taken_usec, 7);
        assert_non_null(snapshot_get(s, SNAPSHOT_PODS, "d/p"));
        assert_non_null(snapshot_get(s, SNAPSHOT_NODES, "n"));
        for (SnapshotKind k = 0; k < _SNAPSHOT_KIND_MAX; k++)
                assert_int_equal(s->is_known[k], k == SNAPSHOT_PODS || k == SNAPSHOT_NODES || k == SNAPSHOT_CSI_NODES);
}

/* As the API server itself says it: the items do not name their kind. */
TEST_CASE(test_typed_list) {
        static const char text[] = "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[{\"metadata\":{\"name\":\"p\",\"namespace\":\"d\"}}]}";
        _cleanup_(snapshot_freep) Snapshot *s = NULL;
        _cleanup_free_ char *passed = NULL, *why = NULL;

        assert_return_code(snapshot_load_list(text, strlen(text), 7, *state, &s, &passed, &why), 0);
        assert_null(passed);
        assert_non_null(snapshot_get(s, SNAPSHOT_PODS, "d/p"));
}

TEST_CASE(test_list_refused) {
        static const struct {
                const char *text, *why;
        } rows[] = {
                { "", "this is neither a snapshot nor a list of objects as kubectl prints it with -o json: " },
                { "apiVersion: v1\nkind: List\n", "this is neither a snapshot nor a list of objects as kubectl prints it with -o json: " },
                { "{\"items\":[]}", "this is neither a snapshot nor a list of objects as kubectl prints it with -o json" },
                { "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}", "this is neither a snapshot nor a list of objects as kubectl prints it with -o json" },
                { "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[{\"metadata\":{}}]}", "object 1 of the list has no apiVersion and kind" },
                { "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"a\":1,\"a\":2}]}",
                  "object 1 of the list cannot be read: duplicate key" },
                { "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n\"}},"
                  "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}]}",
                  "object 2 of the list: a Pod without a name" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *why = NULL, *passed = NULL;
                Snapshot *s = NULL;

                assert_int_equal(snapshot_load_list(rows[i].text, strlen(rows[i].text), 0, *state, &s, &passed, &why), -EBADMSG);
                assert_true(!s && !passed);
                if (!startswith(strempty(why), rows[i].why))
                        fail_msg("%s: expected '%s', got '%s'", rows[i].text, rows[i].why, strempty(why));
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_nothing_is_forgotten, setup, teardown),
                cmocka_unit_test_setup_teardown(test_lines_are_kept, setup, teardown),
                cmocka_unit_test_setup_teardown(test_lines_read_back, setup, teardown),
                cmocka_unit_test_setup_teardown(test_no_secrets, setup, teardown),
                cmocka_unit_test_setup_teardown(test_unreadable, setup, teardown),
                cmocka_unit_test_setup_teardown(test_save_and_load, setup, teardown),
                cmocka_unit_test_setup_teardown(test_empty, setup, teardown),
                cmocka_unit_test_setup_teardown(test_fingerprint, setup, teardown),
                cmocka_unit_test_setup_teardown(test_fingerprint_is_stable, setup, teardown),
                cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(test_later_members, setup, teardown),
                cmocka_unit_test_setup_teardown(test_list, setup, teardown),
                cmocka_unit_test_setup_teardown(test_typed_list, setup, teardown),
                cmocka_unit_test_setup_teardown(test_list_refused, setup, teardown),
        };

        return cmocka_run_group_tests_name("snapshot-file", tests, NULL, NULL);
}
