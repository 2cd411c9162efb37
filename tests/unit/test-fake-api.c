/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmocka-test.h"
#include "fake-client.h"

#define MERGE "application/merge-patch+json"
#define STRATEGIC "application/strategic-merge-patch+json"
#define JSONPATCH "application/json-patch+json"
#define NODE_A "CN=system:node:a,O=system:nodes"
#define POD "{'metadata':{'name':'p','labels':{'app':'x'}},'spec':{'containers':[{'name':'c','image':'i'}]}}"

#define PODS "/api/v1/namespaces/default/pods"
#define NODES "/api/v1/nodes"
#define LEASES "/apis/coordination.k8s.io/v1/namespaces/default/leases"
#define CLAIMS "/apis/vesper.sh/v1alpha1/nodeclaims"
#define PDBS "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
#define EVICTION(name) \
        "{'apiVersion':'policy/v1','kind':'Eviction','metadata':{'name':'" name "','namespace':'default'}}"

/* A world where nothing moves by itself. */
static void quiet(FakeWorld *w) {
        fake_world_init(w, &(FakeClusterOptions){ .controllers_off = FAKE_CONTROLLERS_ALL });
}

/* "metadata.name" in the answer; "" if absent. Numbers and booleans as their text. */
static char *pick(const cJSON *json, const char *path) {
        _cleanup_free_ char *copy = MUST(strdup(path));
        const cJSON *at = json;
        char *rest = copy, *part;

        while (at && (part = strsep(&rest, "."))) {
                if (cJSON_IsArray(at))
                        at = cJSON_GetArrayItem(at, atoi(part));
                else
                        at = fj_member(at, part);
        }
        if (cJSON_IsString(at))
                return MUST(strdup(at->valuestring));
        return at ? fj_print(at) : MUST(strdup(""));
}

typedef struct Row {
        const char *what, *identity;
        HttpMethod method;
        const char *path, *type, *body;
        unsigned status;
        const char *where, *expected; /* a member of the answer, and what it is; NULL: nothing is asked */
} Row;

static void run_row(FakeWorld *w, const Row *row) {
        _cleanup_free_ char *body = row->body ? strdup(row->body) : NULL, *found = NULL;
        _cleanup_answer_ FakeAnswer a = { 0 };

        for (char *p = body; p && *p; p++)
                if (*p == '\'')
                        *p = '"';
        print_message("  %s\n", row->what);
        a = fake_call(w, row->identity ? row->identity : FAKE_ADMIN, row->method, row->path, row->type,
                      body);
        if (a.status != row->status)
                print_message("%s\n", a.body);
        assert_int_equal(a.error, 0);
        assert_int_equal(a.status, row->status);
        if (!row->where)
                return;
        found = pick(a.json, row->where);
        if (!strstr(found, row->expected) || (row->expected[0] == 0 && found[0]))
                fail_msg("%s is '%s', not '%s' in %s", row->where, found, row->expected, a.body);
}

static void run_rows(FakeWorld *w, const Row *rows, size_t n) {
        for (size_t i = 0; i < n; i++)
                run_row(w, &rows[i]);
}

/* -- verbs --------------------------------------------------------------------------------------------- */

TEST_CASE(test_create_and_get) {
        static const Row rows[] = {
                { "health asks for nobody", "", HTTP_GET, "/readyz", NULL, NULL, 200, NULL, NULL },
                { "the version", NULL, HTTP_GET, "/version", NULL, NULL, 200, "minor", "34" },
                { "an unknown resource", NULL, HTTP_GET, "/api/v1/nothing", NULL, NULL, 404, "message",
                  "the server could not find the requested resource" },
                { "an unknown group", NULL, HTTP_GET, "/apis/nothing/v1/x", NULL, NULL, 404, "message", "" },
                { "a pod gets defaults", NULL, HTTP_POST, PODS, NULL, POD, 201,
                  "spec.terminationGracePeriodSeconds", "30" },
                { "and is Pending", NULL, HTTP_GET, PODS "/p", NULL, NULL, 200, "status.phase", "Pending" },
                { "with kind in front", NULL, HTTP_GET, PODS "/p", NULL, NULL, 200, "kind", "Pod" },
                { "a second one of that name", NULL, HTTP_POST, PODS, NULL, POD, 409, "reason",
                  "AlreadyExists" },
                { "a generated name", NULL, HTTP_POST, PODS, NULL,
                  "{'metadata':{'generateName':'g-'},'spec':{'containers':[{'name':'c','image':'i'}]}}", 201,
                  "metadata.name", "g-" },
                { "no containers", NULL, HTTP_POST, PODS, NULL, "{'metadata':{'name':'q'},'spec':{}}", 422,
                  "details.causes.0.field", "spec.containers" },
                { "a bad name", NULL, HTTP_POST, NODES, NULL, "{'metadata':{'name':'A_b'}}", 422, "message",
                  "metadata.name: Invalid value: \"A_b\"" },
                { "not JSON", NULL, HTTP_POST, PODS, NULL, "{", 400, "reason", "BadRequest" },
                { "a form", NULL, HTTP_POST, PODS, "application/x-www-form-urlencoded", "a=b", 415, "reason",
                  "UnsupportedMediaType" },
                { "another kind", NULL, HTTP_POST, PODS, NULL, "{'kind':'Node','metadata':{'name':'q'}}",
                  400, NULL, NULL },
                { "another version", NULL, HTTP_POST, PODS, NULL,
                  "{'apiVersion':'v2','metadata':{'name':'q'}}", 400, "message",
                  "no kind \"Pod\" is registered for version \"v2\"" },
                { "another namespace", NULL, HTTP_POST, PODS, NULL,
                  "{'metadata':{'name':'q','namespace':'other'},'spec':{'containers':[{'name':'c','image':'"
                  "i'}]}}",
                  400, "message", "namespace of the provided object" },
                { "a namespace that is not there", NULL, HTTP_POST, "/api/v1/namespaces/none/pods", NULL,
                  POD, 404, "message", "namespaces \"none\" not found" },
                { "without namespace", NULL, HTTP_POST, "/api/v1/pods", NULL, POD, 405, "reason",
                  "MethodNotAllowed" },
                { "PUT of a collection", NULL, HTTP_PUT, PODS, NULL, POD, 405, NULL, NULL },
                { "a label that is none", NULL, HTTP_POST, NODES, NULL,
                  "{'metadata':{'name':'n','labels':{'a':'b c'}}}", 422, "details.causes.0.field",
                  "metadata.labels" },
                { "an annotation that is a number", NULL, HTTP_POST, NODES, NULL,
                  "{'metadata':{'name':'n','annotations':{'a':1}}}", 400, NULL, NULL },
                { "a dry run", NULL, HTTP_POST, NODES "?dryRun=All", NULL, "{'metadata':{'name':'n'}}", 201,
                  "metadata.name", "n" },
                { "left nothing", NULL, HTTP_GET, NODES "/n", NULL, NULL, 404, "message",
                  "nodes \"n\" not found" },
                { "a dry run that is none", NULL, HTTP_POST, NODES "?dryRun=yes", NULL,
                  "{'metadata':{'name':'n'}}", 422, "details.kind", "CreateOptions" },
                { "a custom object without kind", NULL, HTTP_POST, CLAIMS, NULL, "{'metadata':{'name':'c'}}",
                  400, NULL, NULL },
                { "an Event on a Node outside default", NULL, HTTP_POST,
                  "/api/v1/namespaces/kube-system/events", NULL,
                  "{'metadata':{'name':'e'},'involvedObject':{'kind':'Node','name':'n'}}", 422, "message",
                  "does not match event.namespace" },
                { "an Event on a Node in default", NULL, HTTP_POST, "/api/v1/namespaces/default/events",
                  NULL, "{'metadata':{'name':'e'},'involvedObject':{'kind':'Node','name':'n'}}", 201,
                  "metadata.name", "e" },
        };
        FakeWorld w;

        quiet(&w);
        run_rows(&w, rows, ELEMENTSOF(rows));
        fake_world_done(&w);
}

TEST_CASE(test_update) {
        static const Row rows[] = {
                { "a new Lease by PUT", NULL, HTTP_PUT, LEASES "/l", NULL,
                  "{'metadata':{'name':'l'},'spec':{'holderIdentity':'a'}}", 201, "spec.holderIdentity",
                  "a" },
                { "without resourceVersion", NULL, HTTP_PUT, LEASES "/l", NULL, "{'metadata':{'name':'l'}}",
                  422, "message",
                  "leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: 0: "
                  "must be" },
                { "with a stale one", NULL, HTTP_PUT, LEASES "/l", NULL,
                  "{'metadata':{'name':'l','resourceVersion':'1'}}", 409, "message",
                  "Operation cannot be fulfilled on leases.coordination.k8s.io \"l\": the object has been "
                  "modified" },
                { "with a foreign uid", NULL, HTTP_PUT, LEASES "/l", NULL,
                  "{'metadata':{'name':'l','uid':'x'}}", 409, "message",
                  "Precondition failed: UID in precondition: x" },
                { "under another name", NULL, HTTP_PUT, LEASES "/l", NULL, "{'metadata':{'name':'m'}}", 400,
                  NULL, NULL },
                { "a time without microseconds", NULL, HTTP_PUT, LEASES "/l", NULL,
                  "{'metadata':{'name':'l'},'spec':{'renewTime':'2026-01-01T00:00:00Z'}}", 400, NULL, NULL },
                { "a time with them", NULL, HTTP_PUT, LEASES "/m", NULL,
                  "{'metadata':{'name':'m'},'spec':{'renewTime':'2026-01-01T00:00:00.000000Z'}}", 201, NULL,
                  NULL },
                { "a node that is not there", NULL, HTTP_PUT, NODES "/n", NULL, "{'metadata':{'name':'n'}}",
                  404, NULL, NULL },
        };
        _cleanup_answer_ FakeAnswer got = { 0 }, put = { 0 }, again = { 0 };
        _cleanup_free_ char *body = NULL;
        FakeWorld w;

        quiet(&w);
        run_rows(&w, rows, ELEMENTSOF(rows));

        print_message("  compare and swap: once\n");
        got = fake_ask(&w, HTTP_GET, LEASES "/l", NULL, NULL);
        fj_set_string(fj_object(got.json, "spec"), "holderIdentity", "b");
        body = fj_print(got.json);
        put = fake_call(&w, FAKE_ADMIN, HTTP_PUT, LEASES "/l", NULL, body);
        again = fake_call(&w, FAKE_ADMIN, HTTP_PUT, LEASES "/l", NULL, body);
        assert_int_equal(put.status, 200);
        assert_int_equal(again.status, 409);
        fake_world_done(&w);
}

TEST_CASE(test_patches) {
        static const Row rows[] = {
                { "merge: cordon, annotate, label at once", NULL, HTTP_PATCH, NODES "/a", MERGE,
                  "{'metadata':{'annotations':{'vesper.sh/"
                  "x':'1'},'labels':{'l':'1'}},'spec':{'unschedulable':true}}",
                  200, "spec.unschedulable", "true" },
                { "the same again changes nothing", NULL, HTTP_PATCH, NODES "/a", MERGE,
                  "{'spec':{'unschedulable':true}}", 200, "metadata.annotations", "vesper.sh/x" },
                { "null removes", NULL, HTTP_PATCH, NODES "/a", MERGE,
                  "{'metadata':{'annotations':{'vesper.sh/x':null}}}", 200, "metadata.annotations", "" },
                { "a stale resourceVersion", NULL, HTTP_PATCH, NODES "/a", MERGE,
                  "{'metadata':{'resourceVersion':'1'}}", 409, "reason", "Conflict" },
                { "and on its status", NULL, HTTP_PATCH, NODES "/a/status", MERGE,
                  "{'metadata':{'resourceVersion':'1'}}", 409, "reason", "Conflict" },
                { "a foreign uid is invalid, no conflict", NULL, HTTP_PATCH, NODES "/a", MERGE,
                  "{'metadata':{'uid':'x'}}", 422, "message",
                  "metadata.uid: Invalid value: \"x\": field is immutable" },
                { "another name", NULL, HTTP_PATCH, NODES "/a", MERGE, "{'metadata':{'name':'b'}}", 400,
                  NULL, NULL },
                { "a providerID that changes", NULL, HTTP_PATCH, NODES "/a", MERGE,
                  "{'spec':{'providerID':'x'}}", 422, "message",
                  "node updates may not change providerID except from" },
                { "of nothing", NULL, HTTP_PATCH, NODES "/none", MERGE, "{}", 404, NULL, NULL },
                { "of no known type", NULL, HTTP_PATCH, NODES "/a", "application/json", "{}", 415, "message",
                  "415: Unsupported Media Type" },
                { "JSON patch: test of what is there", NULL, HTTP_PATCH, NODES "/a", JSONPATCH,
                  "[{'op':'test','path':'/spec/unschedulable','value':null},"
                  "{'op':'add','path':'/spec/unschedulable','value':true}]",
                  422, "reason", "Invalid" },
                { "un-cordon leaves nothing", NULL, HTTP_PATCH, NODES "/a", MERGE,
                  "{'spec':{'unschedulable':false}}", 200, "spec.unschedulable", "" },
                { "JSON patch: test of what is not there", NULL, HTTP_PATCH, NODES "/a", JSONPATCH,
                  "[{'op':'test','path':'/spec/unschedulable','value':null},"
                  "{'op':'add','path':'/spec/unschedulable','value':true}]",
                  200, "spec.unschedulable", "true" },
                { "escaped keys", NULL, HTTP_PATCH, NODES "/a", JSONPATCH,
                  "[{'op':'replace','path':'/metadata/labels/l','value':'2'},"
                  "{'op':'add','path':'/metadata/labels/vesper.sh~1pool','value':'p'}]",
                  200, "metadata.labels", "\"vesper.sh/pool\":\"p\"" },
                { "removing what is not there", NULL, HTTP_PATCH, NODES "/a", JSONPATCH,
                  "[{'op':'remove','path':'/metadata/labels/none'}]", 422, NULL, NULL },
                { "strategic: a condition beside the others", NULL, HTTP_PATCH, NODES "/a/status", STRATEGIC,
                  "{'status':{'conditions':[{'type':'DrainInProgress','status':'True'}]}}", 200,
                  "status.conditions.0.type", "DrainInProgress" },
                { "strategic: changed in place", NULL, HTTP_PATCH, NODES "/a/status", STRATEGIC,
                  "{'status':{'$setElementOrder/conditions':[{'type':'Ready'},{'type':'DrainInProgress'}],"
                  "'conditions':[{'type':'DrainInProgress','status':'False'}]}}",
                  200, "status.conditions.1.status", "False" },
                { "times that are not there are null", NULL, HTTP_GET, NODES "/a", NULL, NULL, 200,
                  "status.conditions.1.lastHeartbeatTime", "null" },
                { "strategic: deleted", NULL, HTTP_PATCH, NODES "/a/status", STRATEGIC,
                  "{'status':{'conditions':[{'$patch':'delete','type':'DrainInProgress'}]}}", 200,
                  "status.conditions.1.type", "" },
                { "strategic: finalizers are a set", NULL, HTTP_PATCH, NODES "/a", STRATEGIC,
                  "{'metadata':{'finalizers':['vesper.sh/termination']}}", 200, "metadata.finalizers",
                  "[\"vesper.sh/termination\",\"example.com/other\"]" },
                { "a finalizer without domain", NULL, HTTP_PATCH, NODES "/a", MERGE,
                  "{'metadata':{'finalizers':['x']}}", 422, "message",
                  "metadata.finalizers[0]: Invalid value: \"x\": name is neither a standard finalizer" },
                { "strategic: one word out", NULL, HTTP_PATCH, NODES "/a", STRATEGIC,
                  "{'metadata':{'$deleteFromPrimitiveList/finalizers':['example.com/other']}}", 200,
                  "metadata.finalizers", "[\"vesper.sh/termination\"]" },
                { "strategic: taints are replaced", NULL, HTTP_PATCH, NODES "/a", STRATEGIC,
                  "{'spec':{'taints':[{'key':'k','effect':'NoSchedule'}]}}", 200, "spec.taints",
                  "[{\"key\":\"k\",\"effect\":\"NoSchedule\"}]" },
                { "a taint of no effect", NULL, HTTP_PATCH, NODES "/a", STRATEGIC,
                  "{'spec':{'taints':[{'key':'k','effect':'Never'}]}}", 422, NULL, NULL },
                { "the status of a node through the node", NULL, HTTP_PATCH, NODES "/a", MERGE,
                  "{'status':{'phase':'x'}}", 200, "status.phase", "" },
                { "the spec of a node through its status", NULL, HTTP_PATCH, NODES "/a/status", MERGE,
                  "{'spec':{'unschedulable':null}}", 200, "spec.unschedulable", "true" },
                { "a pod's spec is fixed", NULL, HTTP_PATCH, PODS "/p", MERGE, "{'spec':{'nodeName':'b'}}",
                  422, "message", "pod updates may not change fields other than" },
                { "strategic on a custom object", NULL, HTTP_PATCH, CLAIMS "/c", STRATEGIC, "{}", 415, NULL,
                  NULL },
                { "a custom object's spec counts", NULL, HTTP_PATCH, CLAIMS "/c", MERGE, "{'spec':{'x':1}}",
                  200, "metadata.generation", "2" },
                { "its status does not", NULL, HTTP_PATCH, CLAIMS "/c/status", MERGE,
                  "{'metadata':{'labels':{'l':'1'}},'spec':{'x':2},'status':{'phase':'Draining'}}", 200,
                  "metadata.generation", "2" },
                { "and touches only the status", NULL, HTTP_GET, CLAIMS "/c", NULL, NULL, 200, "spec",
                  "{\"x\":1}" },
                { "which the object's own writes leave alone", NULL, HTTP_PATCH, CLAIMS "/c", MERGE,
                  "{'status':{'phase':'Other'}}", 200, "status.phase", "Draining" },
        };
        FakeWorld w;

        quiet(&w);
        fake_add_node(w.cluster, "a", NULL, "i-1", NULL);
        fake_merge(w.cluster, FAKE_NODES, NULL, "a", "{'metadata':{'finalizers':['example.com/other']}}");
        fake_add_pod(w.cluster, &(FakePod){ .name = "p", .node = "a" });
        fake_put(w.cluster, FAKE_NODECLAIMS, fj_parse("{'metadata':{'name':'c'},'spec':{}}"));
        run_rows(&w, rows, ELEMENTSOF(rows));
        fake_world_done(&w);
}

TEST_CASE(test_delete_and_finalizers) {
        static const Row rows[] = {
                { "a wrong uid", NULL, HTTP_DELETE, NODES "/a", NULL, "{'preconditions':{'uid':'x'}}", 409,
                  "message",
                  "Operation cannot be fulfilled on Node \"a\": the UID in the precondition (x) does not "
                  "match" },
                { "a wrong version", NULL, HTTP_DELETE, NODES "/a", NULL,
                  "{'preconditions':{'resourceVersion':'1'}}", 409, "details.kind", "Node" },
                { "a dry run", NULL, HTTP_DELETE, NODES "/a", NULL, "{'dryRun':['All']}", 200, NULL, NULL },
                { "a finalizer holds it", NULL, HTTP_DELETE, NODES "/a", NULL, NULL, 200,
                  "metadata.deletionGracePeriodSeconds", "0" },
                { "it is still there", NULL, HTTP_GET, NODES "/a", NULL, NULL, 200,
                  "metadata.deletionTimestamp", "2026-01-01T00:00:0" },
                { "deleting it again is fine", NULL, HTTP_DELETE, NODES "/a", NULL, NULL, 200, NULL, NULL },
                { "no new finalizer now", NULL, HTTP_PATCH, NODES "/a", MERGE,
                  "{'metadata':{'finalizers':['vesper.sh/termination','vesper.sh/more']}}", 422, "message",
                  "no new finalizers can be added if the object is being deleted" },
                { "the last one off", NULL, HTTP_PATCH, NODES "/a", MERGE,
                  "{'metadata':{'finalizers':null}}", 200, NULL, NULL },
                { "it is gone", NULL, HTTP_GET, NODES "/a", NULL, NULL, 404, NULL, NULL },
                { "without finalizers: a Status", NULL, HTTP_DELETE, NODES "/b", NULL, NULL, 200,
                  "details.kind", "nodes" },
                { "a claim's generation counts its deletion", NULL, HTTP_DELETE, CLAIMS "/c", NULL, NULL,
                  200, "metadata.generation", "2" },
                { "propagation that is none", NULL, HTTP_DELETE, CLAIMS "/c", NULL,
                  "{'propagationPolicy':'Now'}", 422, "details.kind", "DeleteOptions" },
                { "a pod has its grace", NULL, HTTP_DELETE, PODS "/p", NULL, NULL, 200,
                  "metadata.deletionGracePeriodSeconds", "30" },
                { "which cannot be lengthened", NULL, HTTP_DELETE, PODS "/p", NULL,
                  "{'gracePeriodSeconds':60}", 200, "metadata.deletionGracePeriodSeconds", "30" },
                { "but shortened", NULL, HTTP_DELETE, PODS "/p", NULL, "{'gracePeriodSeconds':5}", 200,
                  "metadata.deletionGracePeriodSeconds", "5" },
                { "to nothing", NULL, HTTP_DELETE, PODS "/p?gracePeriodSeconds=0", NULL, NULL, 200, "kind",
                  "Pod" },
                { "then it is gone", NULL, HTTP_GET, PODS "/p", NULL, NULL, 404, NULL, NULL },
                { "an unbound pod goes at once", NULL, HTTP_DELETE, PODS "/unbound", NULL, NULL, 200, NULL,
                  NULL },
                { "then it is gone too", NULL, HTTP_GET, PODS "/unbound", NULL, NULL, 404, NULL, NULL },
                { "a default namespace stays", NULL, HTTP_DELETE, "/api/v1/namespaces/default", NULL, NULL,
                  403, NULL, NULL },
                { "another goes in two steps", NULL, HTTP_DELETE, "/api/v1/namespaces/other", NULL, NULL,
                  200, "status.phase", "Terminating" },
                { "and takes nothing new", NULL, HTTP_POST, "/api/v1/namespaces/other/pods", NULL, POD, 403,
                  "details.causes.0.reason", "NamespaceTerminating" },
        };
        FakeWorld w;

        quiet(&w);
        fake_add_node(w.cluster, "a", NULL, NULL, NULL);
        fake_merge(w.cluster, FAKE_NODES, NULL, "a",
                   "{'metadata':{'finalizers':['vesper.sh/termination']}}");
        fake_add_node(w.cluster, "b", NULL, NULL, NULL);
        fake_add_pod(w.cluster, &(FakePod){ .name = "p", .node = "b" });
        fake_add_pod(w.cluster, &(FakePod){ .name = "unbound" });
        fake_put(w.cluster, FAKE_NODECLAIMS,
                 fj_parse("{'metadata':{'name':'c','finalizers':['vesper.sh/x']},'spec':{}}"));
        fake_put(w.cluster, FAKE_NAMESPACES,
                 fj_parse("{'metadata':{'name':'other'},'spec':{'finalizers':['kubernetes']},"
                          "'status':{'phase':'Active'}}"));
        run_rows(&w, rows, ELEMENTSOF(rows));
        fake_world_done(&w);
}

/* -- eviction ------------------------------------------------------------------------------------------ */

static void set_budget(FakeWorld *w, int allowed) {
        fake_merge(w->cluster, FAKE_PDBS, "default", "web",
                   "{'status':{'observedGeneration':1,'disruptionsAllowed':%d,'desiredHealthy':3,'"
                   "currentHealthy':%d,"
                   "'expectedPods':4}}",
                   allowed, 3 + allowed);
}

TEST_CASE(test_eviction) {
        static const Row rows[] = {
                { "a pod without budget", NULL, HTTP_POST, PODS "/free/eviction", NULL, EVICTION("free"),
                  201, "status", "Success" },
                { "is marked", NULL, HTTP_GET, PODS "/free", NULL, NULL, 200, "status.conditions.1.reason",
                  "EvictionByEvictionAPI" },
                { "and again: it is going already", NULL, HTTP_POST, PODS "/free/eviction", NULL,
                  EVICTION("free"), 201, "code", "201" },
                { "one that is gone", NULL, HTTP_POST, PODS "/none/eviction", NULL, EVICTION("none"), 404,
                  "message", "pods \"none\" not found" },
                { "another name in the body", NULL, HTTP_POST, PODS "/free/eviction", NULL,
                  EVICTION("web-1"), 400, "message", "name in URL does not match name in Eviction object" },
                { "a wrong uid", NULL, HTTP_POST, PODS "/plain/eviction", NULL,
                  "{'metadata':{'name':'plain'},'deleteOptions':{'preconditions':{'uid':'x'}}}", 409,
                  "message", "Operation cannot be fulfilled on Pod \"plain\": the UID in the precondition" },
                { "a dry run", NULL, HTTP_POST, PODS "/plain/eviction", NULL,
                  "{'metadata':{'name':'plain'},'deleteOptions':{'dryRun':['All']}}", 201, NULL, NULL },
                { "left it alone", NULL, HTTP_GET, PODS "/plain", NULL, NULL, 200,
                  "metadata.deletionTimestamp", "" },
                { "a cap on the grace", NULL, HTTP_POST, PODS "/plain/eviction", NULL,
                  "{'metadata':{'name':'plain'},'deleteOptions':{'gracePeriodSeconds':7}}", 201, NULL,
                  NULL },
                { "is kept", NULL, HTTP_GET, PODS "/plain", NULL, NULL, 200,
                  "metadata.deletionGracePeriodSeconds", "7" },
                { "within the budget", NULL, HTTP_POST, PODS "/web-1/eviction", NULL, EVICTION("web-1"), 201,
                  NULL, NULL },
                { "which is charged", NULL, HTTP_GET, PDBS "/web", NULL, NULL, 200,
                  "status.disruptionsAllowed", "0" },
                { "by name", NULL, HTTP_GET, PDBS "/web", NULL, NULL, 200, "status.disruptedPods", "web-1" },
                { "beyond the budget", NULL, HTTP_POST, PODS "/web-2/eviction", NULL, EVICTION("web-2"), 429,
                  "message", "Cannot evict pod as it would violate the pod's disruption budget." },
                { "with its name and numbers", NULL, HTTP_POST, PODS "/web-2/eviction", NULL,
                  EVICTION("web-2"), 429, "details.causes.0.message",
                  "The disruption budget web needs 3 healthy pods and has 4 currently" },
                { "and its cause", NULL, HTTP_POST, PODS "/web-2/eviction", NULL, EVICTION("web-2"), 429,
                  "details.causes.0.reason", "DisruptionBudget" },
                { "an unready pod while the budget is whole", NULL, HTTP_POST, PODS "/web-sick/eviction",
                  NULL, EVICTION("web-sick"), 201, NULL, NULL },
                { "a pending one", NULL, HTTP_POST, PODS "/web-new/eviction", NULL, EVICTION("web-new"), 201,
                  NULL, NULL },
                { "several budgets", NULL, HTTP_POST, PODS "/two/eviction", NULL, EVICTION("two"), 500,
                  "message", "This pod has more than one PodDisruptionBudget" },
                { "which has no reason", NULL, HTTP_POST, PODS "/two/eviction", NULL, EVICTION("two"), 500,
                  "reason", "" },
                { "GET of it", NULL, HTTP_GET, PODS "/two/eviction", NULL, NULL, 405, NULL, NULL },
        };
        static const Row unobserved = { "a budget nobody has looked at",
                                        NULL,
                                        HTTP_POST,
                                        PODS "/web-2/eviction",
                                        NULL,
                                        EVICTION("web-2"),
                                        429,
                                        "details.retryAfterSeconds",
                                        "10" };
        _cleanup_answer_ FakeAnswer a = { 0 };
        FakeWorld w;

        quiet(&w);
        fake_add_node(w.cluster, "a", NULL, NULL, NULL);
        fake_add_pdb(w.cluster, NULL, "web", "web", true, "3");
        fake_add_pdb(w.cluster, NULL, "two-a", "two", true, "1");
        fake_add_pdb(w.cluster, NULL, "two-b", "two", true, "1");
        fake_add_pod(w.cluster, &(FakePod){ .name = "free", .node = "a" });
        fake_add_pod(w.cluster, &(FakePod){ .name = "plain", .node = "a" });
        fake_add_pod(w.cluster, &(FakePod){ .name = "web-1", .node = "a", .app = "web" });
        fake_add_pod(w.cluster, &(FakePod){ .name = "web-2", .node = "a", .app = "web" });
        fake_add_pod(w.cluster,
                     &(FakePod){ .name = "web-sick", .node = "a", .app = "web", .unready = true });
        fake_add_pod(w.cluster, &(FakePod){ .name = "web-new", .node = "a", .app = "web", .pending = true });
        fake_add_pod(w.cluster, &(FakePod){ .name = "two", .node = "a", .app = "two" });
        set_budget(&w, 1);
        run_rows(&w, rows, ELEMENTSOF(rows));

        fake_merge(w.cluster, FAKE_PDBS, "default", "web", "{'spec':{'minAvailable':2}}");
        run_row(&w, &unobserved);
        a = fake_ask(&w, HTTP_POST, PODS "/web-2/eviction", NULL, EVICTION("web-2"));
        assert_int_equal(a.retry_after_sec, 10);
        fake_world_done(&w);
}

/* -- who may what -------------------------------------------------------------------------------------- */

/* reference: what the kubelet's credential may do, measured on 1.34.4. */
TEST_CASE(test_kubelet) {
        static const Row rows[] = {
                { "nobody", "", HTTP_GET, NODES "/a", NULL, NULL, 401, "message", "Unauthorized" },
                { "reads itself", NODE_A, HTTP_GET, NODES "/a", NULL, NULL, 200, NULL, NULL },
                { "not another", NODE_A, HTTP_GET, NODES "/b", NULL, NULL, 403, "message",
                  "nodes \"b\" is forbidden: User \"system:node:a\" cannot get resource \"nodes\" in API "
                  "group \"\" at the "
                  "cluster scope: node 'a' cannot read 'b', only its own Node object" },
                { "not all", NODE_A, HTTP_GET, NODES, NULL, NULL, 403, "message", "cannot read all nodes" },
                { "itself by selector", NODE_A, HTTP_GET, NODES "?fieldSelector=metadata.name%3Da", NULL,
                  NULL, 200, NULL, NULL },
                { "cordons, annotates and labels itself", NODE_A, HTTP_PATCH, NODES "/a", MERGE,
                  "{'metadata':{'annotations':{'vesper.sh/x':'1'},'labels':{'example.com/l':'1',"
                  "'node.kubernetes.io/"
                  "exclude-from-external-load-balancers':'vesper'}},'spec':{'unschedulable':true}}",
                  200, NULL, NULL },
                { "no label of Kubernetes' own", NODE_A, HTTP_PATCH, NODES "/a", MERGE,
                  "{'metadata':{'labels':{'foo.k8s.io/l':'1'}}}", 403, "message",
                  "nodes \"a\" is forbidden: is not allowed to modify labels: foo.k8s.io/l" },
                { "no restricted label", NODE_A, HTTP_PATCH, NODES "/a", MERGE,
                  "{'metadata':{'labels':{'node-restriction.kubernetes.io/x':'1'}}}", 403, NULL, NULL },
                { "a stale version: 409", NODE_A, HTTP_PATCH, NODES "/a", MERGE,
                  "{'metadata':{'resourceVersion':'1'}}", 409, NULL, NULL },
                { "no taints", NODE_A, HTTP_PATCH, NODES "/a", MERGE,
                  "{'spec':{'taints':[{'key':'k','effect':'NoSchedule'}]}}", 403, "message",
                  "node \"a\" is not allowed to modify taints" },
                { "no other node", NODE_A, HTTP_PATCH, NODES "/b", MERGE, "{'spec':{'unschedulable':true}}",
                  403, "message", "node \"a\" is not allowed to modify node \"b\"" },
                { "its conditions", NODE_A, HTTP_PATCH, NODES "/a/status", STRATEGIC,
                  "{'status':{'conditions':[{'type':'Drained','status':'True'}]}}", 200, NULL, NULL },
                { "its own finalizer", NODE_A, HTTP_PATCH, NODES "/a", MERGE,
                  "{'metadata':{'finalizers':null}}", 200, NULL, NULL },
                { "does not delete itself", NODE_A, HTTP_DELETE, NODES "/a", NULL, NULL, 403, NULL, NULL },
                { "its pods", NODE_A, HTTP_GET, "/api/v1/pods?fieldSelector=spec.nodeName%3Da", NULL, NULL,
                  200, "items.0.metadata.name", "mine" },
                { "no other list", NODE_A, HTTP_GET, "/api/v1/pods", NULL, NULL, 403, "message",
                  "can only list/watch pods with spec.nodeName field selector" },
                { "one of its pods", NODE_A, HTTP_GET, PODS "/mine", NULL, NULL, 200, NULL, NULL },
                { "no other pod", NODE_A, HTTP_GET, PODS "/theirs", NULL, NULL, 403, "message",
                  "no relationship found" },
                { "evicts its pod", NODE_A, HTTP_POST, PODS "/mine/eviction", NULL,
                  "{'metadata':{'name':'mine'},'deleteOptions':{'gracePeriodSeconds':3}}", 201, NULL, NULL },
                { "not another's", NODE_A, HTTP_POST, PODS "/theirs/eviction", NULL, EVICTION("theirs"), 403,
                  "message", "node a can only evict pods with spec.nodeName set to itself" },
                { "one that is gone", NODE_A, HTTP_POST, PODS "/none/eviction", NULL, EVICTION("none"), 404,
                  NULL, NULL },
                { "deletes its pod", NODE_A, HTTP_DELETE, PODS "/mine", NULL, "{'gracePeriodSeconds':0}",
                  200, NULL, NULL },
                { "not another's pod", NODE_A, HTTP_DELETE, PODS "/theirs", NULL, NULL, 403, NULL, NULL },
                { "no pod's labels", NODE_A, HTTP_PATCH, PODS "/theirs", MERGE, "{}", 403, NULL, NULL },
                { "writes Events", NODE_A, HTTP_POST, "/api/v1/namespaces/default/events", NULL,
                  "{'metadata':{'name':'e'},'involvedObject':{'kind':'Node','name':'a'}}", 201, NULL, NULL },
                { "not the other kind", NODE_A, HTTP_POST,
                  "/apis/events.k8s.io/v1/namespaces/default/events", NULL, "{}", 403, NULL, NULL },
                { "no budgets", NODE_A, HTTP_GET, PDBS, NULL, NULL, 403, "message",
                  "poddisruptionbudgets.policy is forbidden: User \"system:node:a\" cannot list resource "
                  "\"poddisruptionbudgets\" in API group \"policy\" in the namespace \"default\"" },
                { "no Lease but its own", NODE_A, HTTP_GET, LEASES "/l", NULL, NULL, 403, "message",
                  "can only access leases in the \"kube-node-lease\" system namespace" },
                { "its own Lease", NODE_A, HTTP_PUT,
                  "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/a", NULL,
                  "{'metadata':{'name':'a'}}", 201, NULL, NULL },
                { "no list of volume attachments", NODE_A, HTTP_GET,
                  "/apis/storage.k8s.io/v1/volumeattachments", NULL, NULL, 403, "message",
                  "can only get individual resources of this type" },
                { "no custom objects", NODE_A, HTTP_GET, CLAIMS, NULL, NULL, 403, NULL, NULL },
        };
        FakeWorld w;

        quiet(&w);
        fake_add_node(w.cluster, "a", NULL, NULL, NULL);
        fake_add_node(w.cluster, "b", NULL, NULL, NULL);
        fake_merge(w.cluster, FAKE_NODES, NULL, "a",
                   "{'metadata':{'finalizers':['vesper.sh/termination']}}");
        fake_add_pod(w.cluster, &(FakePod){ .name = "mine", .node = "a" });
        fake_add_pod(w.cluster, &(FakePod){ .name = "theirs", .node = "b" });
        run_rows(&w, rows, ELEMENTSOF(rows));
        fake_world_done(&w);
}

TEST_CASE(test_allowed_users) {
        static const char who[] = "CN=system:serviceaccount:vesper:coordinator,O=system:serviceaccounts";
        static const Row rows[] = {
                { "what was allowed", who, HTTP_GET, NODES, NULL, NULL, 200, NULL, NULL },
                { "what was not", who, HTTP_DELETE, NODES "/a", NULL, NULL, 403, "message",
                  "User \"system:serviceaccount:vesper:coordinator\" cannot delete resource \"nodes\"" },
                { "a subresource is another thing", who, HTTP_PATCH, NODES "/a/status", MERGE, "{}", 403,
                  "message", "\"nodes/status\"" },
                { "in its namespace", who, HTTP_PUT, LEASES "/l", NULL, "{'metadata':{'name':'l'}}", 201,
                  NULL, NULL },
                { "not in another", who, HTTP_GET,
                  "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/l", NULL, NULL, 403, NULL,
                  NULL },
        };
        FakeAuthz *authz;
        FakeWorld w;

        quiet(&w);
        fake_add_node(w.cluster, "a", NULL, NULL, NULL);
        authz = fake_cluster_authz(w.cluster);
        fake_authz_allow(authz, "system:serviceaccount:vesper:coordinator", "get,list,watch", "", "nodes",
                         NULL);
        fake_authz_allow(authz, "system:serviceaccounts", "*", "coordination.k8s.io", "leases", "default");
        run_rows(&w, rows, ELEMENTSOF(rows));
        fake_world_done(&w);
}

/* -- lists --------------------------------------------------------------------------------------------- */

static void add_pods(FakeWorld *w, int n) {
        for (int i = 0; i < n; i++) {
                char name[16];

                snprintf(name, sizeof(name), "p-%02d", i);
                fake_add_pod(w->cluster, &(FakePod){ .name = name,
                                                     .node = i % 2 ? "a" : "b",
                                                     .app = i < 3 ? "few" : "many" });
        }
}

TEST_CASE(test_list_selectors) {
        static const struct {
                const char *what, *query;
                unsigned status;
                int n;
        } rows[] = {
                { "everything", "", 200, 10 },
                { "one node's", "?fieldSelector=spec.nodeName%3Da", 200, 5 },
                { "all but one node's", "?fieldSelector=spec.nodeName!%3Da", 200, 5 },
                { "one by name", "?fieldSelector=metadata.name%3D%3Dp-03", 200, 1 },
                { "by phase and node", "?fieldSelector=status.phase%3DRunning%2Cspec.nodeName%3Db", 200, 5 },
                { "by label", "?labelSelector=app%3Dfew", 200, 3 },
                { "by label not", "?labelSelector=app!%3Dfew", 200, 7 },
                { "by set", "?labelSelector=app%20in%20(few%2Cnone)", 200, 3 },
                { "by set not", "?labelSelector=app+notin+(few)", 200, 7 },
                { "label there", "?labelSelector=app", 200, 10 },
                { "label not there", "?labelSelector=!app", 200, 0 },
                { "both kinds", "?labelSelector=app%3Dfew&fieldSelector=spec.nodeName%3Db", 200, 2 },
                { "an unknown field", "?fieldSelector=spec.foo%3Da", 400, -1 },
                { "nonsense", "?labelSelector=a%20in%20b", 400, -1 },
                { "a version that is none", "?resourceVersion=x", 400, -1 },
                { "a version of the future", "?resourceVersion=999999", 504, -1 },
        };
        FakeWorld w;

        quiet(&w);
        add_pods(&w, 10);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *path = strf("/api/v1/pods%s", rows[i].query);
                _cleanup_answer_ FakeAnswer a = { 0 };

                print_message("  %s\n", rows[i].what);
                a = fake_ask(&w, HTTP_GET, path, NULL, NULL);
                assert_int_equal(a.status, rows[i].status);
                if (rows[i].n >= 0)
                        assert_int_equal(cJSON_GetArraySize(fj_get(a.json, "items", NULL)), rows[i].n);
        }
        fake_world_done(&w);
}

TEST_CASE(test_pages) {
        _cleanup_answer_ FakeAnswer first = { 0 }, second = { 0 }, third = { 0 }, late = { 0 },
                                    cached = { 0 };
        _cleanup_free_ char *next = NULL, *last = NULL, *again = NULL;
        FakeWorld w;

        quiet(&w);
        add_pods(&w, 10);
        first = fake_ask(&w, HTTP_GET, "/api/v1/pods?limit=4", NULL, NULL);
        assert_int_equal(cJSON_GetArraySize(fj_get(first.json, "items", NULL)), 4);
        assert_int_equal(fj_int(first.json, 0, "metadata", "remainingItemCount", NULL), 6);

        print_message("  what changes between the pages is not seen\n");
        fake_remove(w.cluster, FAKE_PODS, "default", "p-05");
        fake_merge(w.cluster, FAKE_PODS, "default", "p-06", "{'metadata':{'labels':{'app':'new'}}}");
        fake_add_pod(w.cluster, &(FakePod){ .name = "p-055", .node = "a" });
        next = strf("/api/v1/pods?limit=4&continue=%s", fj_string(first.json, "metadata", "continue", NULL));
        second = fake_ask(&w, HTTP_GET, next, NULL, NULL);
        assert_int_equal(second.status, 200);
        assert_int_equal(cJSON_GetArraySize(fj_get(second.json, "items", NULL)), 4);
        assert_string_equal(
                fj_string(fj_get(second.json, "items", NULL)->child->next, "metadata", "name", NULL),
                "p-05");
        assert_string_equal(fj_string(fj_get(second.json, "items", NULL)->child->next->next, "metadata",
                                      "labels", "app", NULL),
                            "many");
        assert_string_equal(fj_string(second.json, "metadata", "resourceVersion", NULL),
                            fj_string(first.json, "metadata", "resourceVersion", NULL));

        last = strf("/api/v1/pods?limit=4&continue=%s",
                    fj_string(second.json, "metadata", "continue", NULL));
        third = fake_ask(&w, HTTP_GET, last, NULL, NULL);
        assert_int_equal(cJSON_GetArraySize(fj_get(third.json, "items", NULL)), 2);
        assert_null(fj_string(third.json, "metadata", "continue", NULL));

        print_message("  a compacted page: 410 with a token to go on regardless\n");
        fake_cluster_compact(w.cluster);
        late = fake_ask(&w, HTTP_GET, last, NULL, NULL);
        assert_int_equal(late.status, 410);
        assert_string_equal(fj_string(late.json, "reason", NULL), "Expired");
        again = strf("/api/v1/pods?limit=4&continue=%s", fj_string(late.json, "metadata", "continue", NULL));
        fake_answer_done(&third);
        third = fake_ask(&w, HTTP_GET, again, NULL, NULL);
        assert_int_equal(third.status, 200);

        print_message("  the watch cache knows no pages\n");
        cached = fake_ask(&w, HTTP_GET, "/api/v1/pods?limit=4&resourceVersion=0", NULL, NULL);
        assert_int_equal(cJSON_GetArraySize(fj_get(cached.json, "items", NULL)), 10);
        fake_world_done(&w);
}

/* -- watches ------------------------------------------------------------------------------------------- */

static void expect(FakeTail *t, FakeWorld *w, const char *expected) {
        _cleanup_free_ char *came = NULL;

        fake_world_run(w, 10 * USEC_PER_MSEC);
        came = fake_tail_take(t);
        assert_string_equal(came, expected);
}

TEST_CASE(test_watch) {
        _cleanup_tail_ FakeTail all = { 0 }, labelled = { 0 }, later = { 0 };
        _cleanup_free_ char *path = NULL;
        FakeWorld w;

        quiet(&w);
        fake_add_pod(w.cluster, &(FakePod){ .name = "p", .node = "a", .app = "x" });
        fake_tail_start(&all, &w, FAKE_ADMIN, "/api/v1/pods?watch=1");
        fake_tail_start(&labelled, &w, FAKE_ADMIN,
                        "/api/v1/pods?watch=true&resourceVersion=0&labelSelector=app%3Dx");
        expect(&all, &w, "ADDED p");
        expect(&labelled, &w, "ADDED p");
        path = strf("/api/v1/pods?watch=1&resourceVersion=%" PRIu64,
                    fake_store_rv(fake_cluster_store(w.cluster)));

        print_message("  out of a selector is DELETED, into it ADDED\n");
        fake_merge(w.cluster, FAKE_PODS, "default", "p", "{'metadata':{'labels':{'app':'y'}}}");
        expect(&all, &w, "MODIFIED p");
        expect(&labelled, &w, "DELETED p");
        fake_merge(w.cluster, FAKE_PODS, "default", "p", "{'metadata':{'labels':{'app':'x'}}}");
        expect(&labelled, &w, "ADDED p");
        fake_merge(w.cluster, FAKE_PODS, "default", "p", "{'metadata':{'labels':{'app':'x'}}}");
        expect(&labelled, &w, "");

        print_message("  grace 0: changed, then gone\n");
        fake_delete(w.cluster, FAKE_PODS, "default", "p", 0);
        expect(&labelled, &w, "MODIFIED p, DELETED p");

        print_message("  from a version: all that came after it\n");
        fake_tail_start(&later, &w, FAKE_ADMIN, path);
        expect(&later, &w, "MODIFIED p, MODIFIED p, MODIFIED p, DELETED p");
        assert_int_equal(fake_api_n_watches(fake_cluster_api(w.cluster)), 3);
        fake_tail_done(&all);
        fake_world_run(&w, 1);
        assert_int_equal(fake_api_n_watches(fake_cluster_api(w.cluster)), 2);

        fake_tail_done(&labelled);
        fake_tail_done(&later);
        fake_world_done(&w);
}

TEST_CASE(test_watch_expired) {
        _cleanup_tail_ FakeTail old = { 0 }, stalled = { 0 }, other = { 0 }, pods = { 0 };
        FakeWorld w;

        quiet(&w);
        fake_add_node(w.cluster, "a", NULL, NULL, NULL);
        fake_tail_start(&stalled, &w, FAKE_ADMIN, NODES "?watch=1");
        expect(&stalled, &w, "ADDED a");

        print_message("  no byte while stalled, nothing lost afterwards\n");
        fake_api_stall_watches(fake_cluster_api(w.cluster), loop_now(w.loop) + USEC_PER_SEC);
        fake_add_node(w.cluster, "b", NULL, NULL, NULL);
        expect(&stalled, &w, "");
        fake_world_run(&w, USEC_PER_SEC);
        expect(&stalled, &w, "ADDED b");

        print_message("  one user's, nobody else's\n");
        fake_tail_start(&other, &w, "CN=other,O=system:masters", NODES "?watch=1");
        expect(&other, &w, "ADDED a, ADDED b");
        fake_api_deafen(fake_cluster_api(w.cluster), "admin", loop_now(w.loop) + USEC_PER_SEC);
        fake_add_node(w.cluster, "b2", NULL, NULL, NULL);
        expect(&other, &w, "ADDED b2");
        expect(&stalled, &w, "");
        fake_world_run(&w, USEC_PER_SEC);
        expect(&stalled, &w, "ADDED b2");

        print_message("  one kind's, and no other's\n");
        fake_tail_start(&pods, &w, FAKE_ADMIN, "/api/v1/pods?watch=1");
        fake_api_mute(fake_cluster_api(w.cluster), FAKE_NODES, loop_now(w.loop) + USEC_PER_SEC);
        fake_add_node(w.cluster, "b3", NULL, NULL, NULL);
        fake_add_pod(w.cluster, &(FakePod){ .name = "p", .node = "b3" });
        expect(&pods, &w, "ADDED p");
        expect(&stalled, &w, "");
        fake_world_run(&w, USEC_PER_SEC);
        expect(&stalled, &w, "ADDED b3");

        print_message("  fallen behind a compaction\n");
        fake_api_stall_watches(fake_cluster_api(w.cluster), loop_now(w.loop) + USEC_PER_SEC);
        fake_add_node(w.cluster, "c", NULL, NULL, NULL);
        fake_cluster_compact(w.cluster);
        fake_world_run(&w, 2 * USEC_PER_SEC);
        expect(&stalled, &w, "ERROR 410");
        assert_true(stalled.done);
        assert_int_equal(stalled.error, 0);

        print_message("  begun too late: 200, then the error\n");
        fake_tail_start(&old, &w, FAKE_ADMIN, NODES "?watch=1&resourceVersion=2");
        expect(&old, &w, "ERROR 410");
        assert_true(old.done);

        fake_tail_done(&other);
        fake_tail_done(&old);
        fake_tail_done(&stalled);
        fake_tail_done(&pods);
        fake_world_done(&w);
}

TEST_CASE(test_watch_ends) {
        _cleanup_tail_ FakeTail timed = { 0 }, cut = { 0 };
        _cleanup_free_ char *bookmark = NULL, *expected = NULL;
        FakeWorld w;

        quiet(&w);
        fake_tail_start(&timed, &w, FAKE_ADMIN, NODES "?watch=1&timeoutSeconds=90&allowWatchBookmarks=true");
        fake_tail_start(&cut, &w, FAKE_ADMIN, NODES "?watch=1");
        fake_world_run(&w, 59 * USEC_PER_SEC);
        assert_non_null(strstr(strbuf_str(&timed.bytes), "k8s.io/initial-events-end"));
        strbuf_truncate(&timed.bytes, 0);
        fake_world_run(&w, 2 * USEC_PER_SEC);
        bookmark = fake_tail_take(&timed);
        expected = strf("BOOKMARK %" PRIu64, fake_store_rv(fake_cluster_store(w.cluster)));
        assert_string_equal(bookmark, expected);

        fake_api_cut_watches(fake_cluster_api(w.cluster));
        fake_world_run(&w, USEC_PER_SEC);
        assert_true(cut.done && timed.done);
        assert_int_equal(cut.error, -ECONNRESET);

        print_message("  a bookmark two seconds before the end, which is clean\n");
        fake_tail_done(&timed);
        fake_tail_start(&timed, &w, FAKE_ADMIN, NODES "?watch=1&timeoutSeconds=10&allowWatchBookmarks=1");
        fake_world_run(&w, 9 * USEC_PER_SEC);
        assert_false(timed.done);
        assert_true(timed.bytes.size > 0);
        fake_world_run(&w, 2 * USEC_PER_SEC);
        assert_true(timed.done);
        assert_int_equal(timed.error, 0);

        fake_tail_done(&timed);
        fake_tail_done(&cut);
        fake_world_done(&w);
}

/* -- faults and the log -------------------------------------------------------------------------------- */

static void lie(const FakeRequest *r, FakeApiFault *f, void *userdata) {
        if (r->verb != FAKE_PATCH)
                return;
        *f = *(FakeApiFault *) userdata;
}

TEST_CASE(test_faults) {
        FakeApiFault fault = { .status = 504, .takes_effect = true };
        _cleanup_answer_ FakeAnswer a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };
        FakeApi *api;
        usec_t before;
        FakeWorld w;

        quiet(&w);
        api = fake_cluster_api(w.cluster);
        fake_add_node(w.cluster, "a", NULL, NULL, NULL);
        fake_api_set_fault(api, lie, &fault);

        print_message("  an answer that lies\n");
        a = fake_ask(&w, HTTP_PATCH, NODES "/a", MERGE, "{'spec':{'unschedulable':true}}");
        assert_int_equal(a.status, 504);
        assert_true(fj_true(fake_get(w.cluster, FAKE_NODES, NULL, "a"), "spec", "unschedulable", NULL));

        print_message("  flow control\n");
        fault = (FakeApiFault){ .status = 429, .retry_after_sec = 3, .plain = true };
        b = fake_ask(&w, HTTP_PATCH, NODES "/a", MERGE, "{'spec':{'unschedulable':false}}");
        assert_int_equal(b.status, 429);
        assert_int_equal(b.retry_after_sec, 3);
        assert_null(b.json);
        assert_true(fj_true(fake_get(w.cluster, FAKE_NODES, NULL, "a"), "spec", "unschedulable", NULL));

        print_message("  a slow server\n");
        fault = (FakeApiFault){ .delay_usec = 5 * USEC_PER_SEC };
        before = loop_now(w.loop);
        c = fake_ask(&w, HTTP_PATCH, NODES "/a", MERGE, "{}");
        assert_int_equal(c.status, 200);
        assert_int_equal(loop_now(w.loop) - before, 5 * USEC_PER_SEC);

        print_message("  one that is away\n");
        fake_api_away_until(api, loop_now(w.loop) + USEC_PER_SEC);
        d = fake_ask(&w, HTTP_GET, NODES "/a", NULL, NULL);
        assert_int_equal(d.error, -ECONNRESET);
        fake_world_run(&w, USEC_PER_SEC);
        fake_answer_done(&d);
        d = fake_ask(&w, HTTP_GET, NODES "/a", NULL, NULL);
        assert_int_equal(d.status, 200);

        print_message("  all of it was counted\n");
        assert_int_equal(fake_api_count(api, FAKE_PATCH, FAKE_NODES, NULL), 3);
        assert_int_equal(fake_api_count_status(api, FAKE_PATCH, FAKE_NODES, NULL, 429), 1);
        assert_int_equal(fake_api_count(api, FAKE_GET, FAKE_NODES, NULL), 1);
        assert_int_equal(fake_api_log_size(api), 4);
        assert_string_equal(fake_api_log_at(api, 0)->user, "admin");
        fake_world_done(&w);
}

/* -- pods by node and by owner -------------------------------------------------------------------------- */

/* "ns/name ns/name " of a list's items, in order. */
static char *list_names(FakeWorld *w, const char *path) {
        _cleanup_answer_ FakeAnswer a = fake_ask(w, HTTP_GET, path, NULL, NULL);
        StrBuf b = { 0 };
        const cJSON *o;

        assert_int_equal(a.status, 200);
        cJSON_ArrayForEach (o, fj_get(a.json, "items", NULL))
                strbuf_addf(&b, "%s/%s ", fj_string(o, "metadata", "namespace", NULL),
                            fj_string(o, "metadata", "name", NULL));
        strbuf_add(&b, "");
        return MUST(strbuf_steal(&b));
}

/* The same by walking over everything. */
static char *walk_names(FakeWorld *w, const char *node, const char *uid) {
        StrBuf b = { 0 };
        const cJSON *o;

        FAKE_FOREACH (o, w->cluster, FAKE_PODS, NULL)
                if (node ? streq_ptr(fj_string(o, "spec", "nodeName", NULL), node)
                         : fj_find(fj_get(o, "metadata", "ownerReferences", NULL), "uid", uid) != NULL)
                        strbuf_addf(&b, "%s/%s ", fj_string(o, "metadata", "namespace", NULL),
                                    fj_string(o, "metadata", "name", NULL));
        strbuf_add(&b, "");
        return MUST(strbuf_steal(&b));
}

static char *owned_names(FakeWorld *w, const char *uid) {
        StrBuf b = { 0 };
        const cJSON *o;

        for (size_t i = 0;
             (o = fake_version_json(fake_store_owned_pod(fake_cluster_store(w->cluster), uid, i))); i++)
                strbuf_addf(&b, "%s/%s ", fj_string(o, "metadata", "namespace", NULL),
                            fj_string(o, "metadata", "name", NULL));
        strbuf_add(&b, "");
        return MUST(strbuf_steal(&b));
}

static void check_indexes(FakeWorld *w) {
        static const char *const nodes[] = { "a", "b", "none" }, *const uids[] = { "u0", "u1", "none" };

        for (size_t i = 0; i < ELEMENTSOF(nodes); i++) {
                _cleanup_free_ char *path =
                        MUST(strf("/api/v1/pods?fieldSelector=spec.nodeName%%3D%s", nodes[i]));
                _cleanup_free_ char *listed = list_names(w, path), *walked = walk_names(w, nodes[i], NULL);
                _cleanup_free_ char *owned = owned_names(w, uids[i]), *held = walk_names(w, NULL, uids[i]);

                assert_string_equal(listed, walked);
                assert_string_equal(owned, held);
        }
}

/* A pod of that number, on one of the nodes or none, of one of the owners (twice the same), both or none. */
static cJSON *drawn_pod(Random *random, unsigned number) {
        static const char *const nodes[] = { "", "a", "b" };
        static const char *const owners[] = { "", "{'uid':'u0'}", "{'uid':'u1'},{'uid':'u1'}",
                                              "{'uid':'u0'},{'uid':'u1'}" };

        return fj_parse("{'metadata':{'name':'p%u','namespace':'%s','ownerReferences':[%s]},'spec':{'"
                        "nodeName':'%s'}}",
                        number, number % 2 ? "default" : "kube-system", owners[random_below(random, 4)],
                        nodes[random_below(random, 3)]);
}

TEST_CASE(test_pods_by_node) {
        Random *random = NULL;
        FakeStore *store;
        FakeWorld w;

        quiet(&w);
        store = fake_cluster_store(w.cluster);
        assert_int_equal(random_new(7, &random), 0);
        for (unsigned step = 0; step < 300; step++) {
                unsigned number = (unsigned) random_below(random, 12);
                _cleanup_free_ char *name = MUST(strf("p%u", number));
                const char *ns = number % 2 ? "default" : "kube-system";

                if (!fake_store_get(store, FAKE_PODS, ns, name))
                        fake_store_create(store, FAKE_PODS, drawn_pod(random, number));
                else if (random_below(random, 3) == 0)
                        assert_true(fake_store_delete(store, FAKE_PODS, ns, name));
                else
                        fake_store_update(store, FAKE_PODS, drawn_pod(random, number));
                check_indexes(&w);
        }
        {
                _cleanup_free_ char *one = list_names(&w, PODS "?fieldSelector=spec.nodeName%3Da");
                _cleanup_free_ char *all = walk_names(&w, "a", NULL);

                print_message("  of all on node a (%s) those of one namespace: %s\n", all, one);
                assert_non_null(strstr(all, "kube-system/"));
                assert_non_null(strstr(all, "default/"));
                assert_non_null(strstr(one, "default/"));
                assert_null(strstr(one, "kube-system/"));
        }
        random_free(random);
        fake_world_done(&w);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_create_and_get), cmocka_unit_test(test_update),
                cmocka_unit_test(test_patches),        cmocka_unit_test(test_delete_and_finalizers),
                cmocka_unit_test(test_eviction),       cmocka_unit_test(test_kubelet),
                cmocka_unit_test(test_allowed_users),  cmocka_unit_test(test_list_selectors),
                cmocka_unit_test(test_pages),          cmocka_unit_test(test_watch),
                cmocka_unit_test(test_watch_expired),  cmocka_unit_test(test_watch_ends),
                cmocka_unit_test(test_faults),         cmocka_unit_test(test_pods_by_node),
        };
        return cmocka_run_group_tests_name("fake-api", tests, NULL, NULL);
}
