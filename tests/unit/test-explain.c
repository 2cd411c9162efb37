/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "claim-name.h"
#include "cmocka-test.h"
#include "compare-count.h"
#include "expected-file.h"
#include "explain-fetch.h"
#include "explain-told.h"
#include "fake-client.h"
#include "marks.h"
#include "strv.h"

#define NOW_SEC 1800000000 /* 2027-01-15T08:00:00Z */

/* -- pure: objects in, causes out ----------------------------------------------------------------------- */

typedef struct Bench {
        InternPool *pool;
        ExplainFacts facts;
} Bench;

static void bench_init(Bench *b) {
        *b = (Bench){ .facts = { .node_name = "w", .lease_ns = "v", .lease_name = "l", .knows_pods = true, .knows_pdbs = true, .knows_pools = true,
                                 .leader_seen_usec = (NOW_SEC - 2) * USEC_PER_SEC, .lease_usec = 15 * USEC_PER_SEC,
                                 .now_usec = NOW_SEC * USEC_PER_SEC } };
        b->facts.leader = strdup("coordinator-a");
        assert_return_code(intern_pool_new(&b->pool), 0);
}

static void bench_done(Bench *b) {
        explain_facts_done(&b->facts);
        intern_pool_free(b->pool);
}

static char *with_quotes(const char *json) {
        char *text = MUST(strdup(json));

        for (char *p = text; *p; p++)
                *p = *p == '\'' ? '"' : *p == '`' ? '\'' : *p;
        return text;
}

static KubeObject *decode(Bench *b, const KubeKind *kind, const char *json) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_free_ char *text = with_quotes(json);
        KubeObject *o;

        assert_return_code(json_parse(text, strlen(text), 1u << 20, &doc, NULL), 0);
        assert_return_code(kube_object_decode(kind, json_root(doc), b->pool, &o), 0);
        return o;
}

static void put(Bench *b, const KubeKind *kind, const char *json) {
        const struct {
                const KubeKind *kind;
                ObjectList *list;
        } lists[] = {
                { &kube_node_claim_kind, &b->facts.claims }, { &kube_node_pool_kind, &b->facts.pools },
                { &kube_node_budget_kind, &b->facts.budgets }, { &kube_pod_kind, &b->facts.pods },
                { &kube_pdb_kind, &b->facts.pdbs }, { &kube_volume_attachment_kind, &b->facts.volumes },
        };

        if (kind == &kube_node_kind)
                b->facts.node = decode(b, kind, json);
        else if (kind == &kube_namespace_kind)
                b->facts.pause_ns = decode(b, kind, json);
        else if (kind == &kube_webhook_configuration_kind)
                b->facts.webhook = decode(b, kind, json);
        for (size_t i = 0; i < ELEMENTSOF(lists); i++)
                if (lists[i].kind == kind) {
                        ObjectList *l = lists[i].list;

                        assert_return_code(GREEDY_REALLOC(l->items, l->allocated, l->n_items + 1), 0);
                        l->items[l->n_items++] = decode(b, kind, json);
                }
}

/* "BlockedByPDB, (Deadline)": reasons in their order, what holds nothing in parentheses. */
static char *reasons_of(const ExplainCauses *c) {
        StrBuf b = {};

        for (size_t i = 0; i < c->n; i++)
                strbuf_addf(&b, "%s%s%s%s", i > 0 ? ", " : "", c->list[i].holds ? "" : "(", c->list[i].reason, c->list[i].holds ? "" : ")");
        return strbuf_steal(&b);
}

/* Of a Node "w". */
#define OURS "'finalizers':['vesper.sh/termination'],"
#define DELETED "'deletionTimestamp':'2027-01-15T07:50:00Z',"
#define UID "'name':'w','uid':'u'"
#define LABELS ",'labels':{'pool':'a'}"
#define BEGUN ",'annotations':{'vesper.sh/cordoned-by-coordinator':'{}'}"
#define ID "'spec':{'providerID':'aws:///z/i-1'}"
#define READY "'type':'Ready','status':'True','lastTransitionTime':'2027-01-15T06:00:00Z'"
#define SILENT "'type':'Ready','status':'Unknown','lastTransitionTime':'2027-01-15T07:55:00Z'"
#define NODE(meta, condition, conditions) "{'metadata':{" meta UID LABELS "}," ID ",'status':{'conditions':[{" condition "}" conditions "]}}"
#define GOING "{'metadata':{" OURS DELETED UID LABELS BEGUN "}," ID ",'status':{'conditions':[{" READY "}]}}"
#define WAITING NODE(OURS DELETED, READY, "")
#define IN_SERVICE NODE(OURS, READY, "")
#define BLOCKED_BY(reason, message) \
        ",{'type':'vesper.sh/TerminationBlocked','status':'True','reason':'" reason "','message':'" message "','lastTransitionTime':'2027-01-15T07:51:00Z'}"
#define CLAIM(meta, spec, status) \
        "{'metadata':{'name':'nc-1'," meta "'uid':'c'},'spec':{'nodePool':'a','providerID':'aws:///z/i-1'" spec "},'status':{'nodeName':'w'" status "}}"
#define CLAIM_IN(phase) CLAIM(OURS DELETED, "", ",'phase':'" phase "'")
#define POOL(name, meta, status) "{'metadata':{'name':'" name "'" meta "},'spec':{'selector':{'matchLabels':{'pool':'a'}}},'status':{" status "}}"
#define POD(name, meta, status) \
        "{'metadata':{'namespace':'web','name':'" name "','uid':'" name "','labels':{'app':'web'}" meta "},'spec':{'nodeName':'w'},'status':{'phase':'Running'," \
        "'startTime':'2027-01-15T07:30:00Z','conditions':[{'type':'Ready','status':'True'}]" status "}}"
#define OWNED(name, kind) POD(name, ",'ownerReferences':[{'apiVersion':'apps/v1','kind':'" kind "','name':'rs','uid':'r','controller':true}]", "")
#define TOLERATING(name) \
        "{'metadata':{'namespace':'web','name':'" name "','uid':'" name "','labels':{'app':'web'}},'spec':{'nodeName':'w','tolerations':[{'operator':'Exists'}]}," \
        "'status':{'phase':'Running','startTime':'2027-01-15T07:30:00Z','conditions':[{'type':'Ready','status':'True'}]}}"
#define DENIED "{'pod':'web/web-1','reason':'EvictionWebhook','message':'drain.acme.io: it moves.','since':'2027-01-15T07:59:00Z'}"
#define COMES_BACK "{'pod':'web/web-1','reason':'PodComesBack','message':'ReplicaSet rs made it again','since':'2027-01-15T07:59:00Z'}"
#define PDB(name, generation, allowed, healthy, desired, expected) \
        "{'metadata':{'namespace':'web','name':'" name "','generation':" generation "},'spec':{'selector':{'matchLabels':{'app':'web'}}},'status':{" \
        "'observedGeneration':1,'disruptionsAllowed':" allowed ",'currentHealthy':" healthy ",'desiredHealthy':" desired ",'expectedPods':" expected "}}"
#define BUDGET(spec, allowed, charges) \
        "{'metadata':{'name':'one'},'spec':{'selector':{'matchLabels':{'pool':'a'}}," spec "},'status':{'expectedNodes':5,'currentAvailable':4," \
        "'desiredAvailable':4,'disruptionsAllowed':" allowed ",'disruptedNodes':[" charges "]}}"
#define HEARD(phase) HEARD_OF(phase, "2", "2027-01-15T08:01:30Z", "")
#define HEARD_OF(phase, left, deadline, blockers) \
        "{'metadata':{" UID LABELS ",'annotations':{'vesper.sh/heard':'{\\'id\\':\\'x\\',\\'kind\\':\\'spot\\',\\'source\\':\\'sqs\\',\\'action\\':\\'terminate\\'," \
        "\\'phase\\':\\'" phase "\\',\\'podsLeft\\':" left ",\\'deadline\\':\\'" deadline "\\'" blockers "}'}}," ID ",'status':{'conditions':[{" READY "}," \
        "{'type':'DrainInProgress','status':'True','reason':'VesperCoordinator','message':'vesper-coordinator evicts','lastTransitionTime':'2027-01-15T07:59:30Z'}]}}"
#define INTERRUPTED(phase, boot) INTERRUPTED_UNTIL(phase, boot, "2027-01-15T08:01:00Z")
#define INTERRUPTED_UNTIL(phase, boot, deadline) \
        "{'metadata':{" UID LABELS ",'annotations':{'vesper.sh/interruption':'{\\'id\\':\\'n1\\',\\'kind\\':\\'spot\\',\\'source\\':\\'ec2\\',\\'action\\':\\'terminate\\'," \
        "\\'deadline\\':\\'" deadline "\\',\\'phase\\':\\'" phase "\\',\\'podsLeft\\':4,\\'bootID\\':\\'b1\\'}'}}," ID \
        ",'status':{'nodeInfo':{'bootID':'" boot "'},'conditions':[{" READY "}]}}"
#define DRAINED_BY_HAND(phase) \
        "{'metadata':{" UID LABELS ",'annotations':{'vesper.sh/interruption':'{\\'id\\':\\'m\\',\\'kind\\':\\'manual\\',\\'source\\':\\'D-Bus\\',\\'action\\':\\'drain\\'," \
        "\\'byHand\\':\\'drain\\',\\'phase\\':\\'" phase "\\',\\'podsLeft\\':4,\\'bootID\\':\\'b1\\'}'}}," ID ",'status':{'nodeInfo':{'bootID':'b1'},'conditions':[{" READY "}]}}"

typedef struct Object {
        const KubeKind *kind;
        const char *json;
} Object;

#define N(json) { &kube_node_kind, json }
#define C(json) { &kube_node_claim_kind, json }
#define P(json) { &kube_pod_kind, json }
#define A(status) { &kube_node_pool_kind, POOL("a", "", status) }
#define GOES N(GOING), C(CLAIM_IN("Draining")), A("")
#define NO_DEADLINE ", (NoDeadline)"

typedef struct Row {
        const char *what;
        Object objects[7];
        const char *reasons;
        const char *leader; /* NULL: somebody */
        int unknown_pods;
} Row;

/* The file expected/explain-rows.txt has the whole text of each row. */
static const Row causes_table[] = {
        /* -- in service -- */
        { "a pool's, and nothing of it is wrong", { N(IN_SERVICE), C(CLAIM(OURS, "", ",'phase':'Adopted'")), A("") }, "(InService)" },
        { "nobody's", { N(IN_SERVICE) }, "(NotSelected)" },
        { "nobody's, and a pool is empty-handed", { N(NODE("", READY, "")), { &kube_node_pool_kind, "{'metadata':{'name':'b'},'spec':{'selector':{}}}" } },
          "(NotSelected)" },
        { "kept from all pools", { N("{'metadata':{" UID LABELS ",'annotations':{'vesper.sh/unmanaged':'true'}}}"), A("") }, "(Unmanaged)" },
        { "two pools", { N(NODE("", READY, "")), A(""), { &kube_node_pool_kind, POOL("b", "", "") } }, "(Conflicting)" },
        { "a pool that says why not",
          { N(NODE("", READY, "")), A("'conditions':[{'type':'NodesNotAdopted','status':'True','reason':'ForeignMachine','message':'cannot end it',"
                                      "'lastTransitionTime':'2027-01-15T07:59:00Z'}]") },
          "(ForeignMachine)" },
        { "no providerID yet", { N("{'metadata':{" UID LABELS "}}"), A("") }, "(NotAdoptedYet)" },
        { "its removal would be held by all that there is",
          { N(IN_SERVICE), C(CLAIM(OURS, "", "")), { &kube_node_pool_kind, POOL("a", ",'annotations':{'vesper.sh/paused':'true'}", "") },
            { &kube_node_budget_kind, BUDGET("'maxUnavailable':1", "0", "") },
            { &kube_webhook_configuration_kind, "{'metadata':{'name':'vesper-nodes'},'webhooks':[{'name':'n','failurePolicy':'Ignore','clientConfig':{}}]}" } },
          "(InService), (NoLeader), (Paused), (WaitingForBudget), (WebhookWithoutCA)", .leader = "" },
        { "a webhook that is asked", { N(IN_SERVICE), C(CLAIM(OURS, "", "")), A(""),
            { &kube_webhook_configuration_kind, "{'metadata':{'name':'vesper-nodes'},'webhooks':[{'name':'n','failurePolicy':'Fail','clientConfig':{'caBundle':'eA=='}}]}" } },
          "(InService)" },
        { "no budget, and a webhook without CA that fails closed", { N(IN_SERVICE), C(CLAIM(OURS, "", "")), A(""),
            { &kube_webhook_configuration_kind, "{'metadata':{'name':'vesper-nodes'},'webhooks':[{'name':'n','clientConfig':{}}]}" } },
          "(InService), (WebhookWithoutCA)" },
#define ASKS(more, boot, others) \
        "{'metadata':{" UID ",'annotations':{'vesper.sh/shutdown-request':'{\\'id\\':\\'r\\',\\'bootID\\':\\'b1\\',\\'kind\\':\\'reboot\\',\\'until\\':\\'2027-01-15T09:00:00Z\\'" more "}'" others "}}," \
        "'status':{'nodeInfo':{'bootID':'" boot "'},'conditions':[{" READY "}]}}"
#define SLOT(until, more) ",'vesper.sh/shutdown-granted':'{\\'id\\':\\'r\\',\\'until\\':\\'" until "\\'" more "}'"
#define EARLY ",\\'event\\':\\'instance-event-7\\'"
#define EARLY_DRAIN(phase) \
        ",'vesper.sh/interruption':'{\\'id\\':\\'instance-event-7\\',\\'kind\\':\\'maintenance\\',\\'source\\':\\'ec2\\',\\'action\\':\\'reboot\\',\\'deadline\\':\\'2027-01-16T14:00:00Z\\'," \
        "\\'phase\\':\\'" phase "\\',\\'podsLeft\\':2,\\'bootID\\':\\'b1\\'}'"
#define IN_A_SLOT SLOT("2027-01-15T08:04:00Z", "")
        { "it waits for a slot to reboot", { N(ASKS("", "b1", "")) }, "(NotSelected), WaitingForRebootSlot" },
        { "it waits no longer", { N(ASKS("", "b2", "")) }, "(NotSelected)" },
        { "it has a slot to reboot", { N(ASKS("", "b1", IN_A_SLOT)) }, "(NotSelected), (RebootSlotGranted)" },
        { "it has rebooted in its slot", { N(ASKS("", "b2", IN_A_SLOT)) }, "(NotSelected)" },
        { "its slot ends at this moment", { N(ASKS("", "b1", SLOT("2027-01-15T08:00:00Z", ""))) }, "(NotSelected), (RebootSlotExpired)" },
        { "its slot is over", { N(ASKS("", "b1", SLOT("2027-01-15T07:57:00Z", ""))) }, "(NotSelected), (RebootSlotExpired)" },
        { "it reboots early, by itself", { N(ASKS(EARLY, "b1", IN_A_SLOT)) }, "(NotSelected), (RebootSlotGranted)" },
        { "it reboots early, by the cloud, and drains", { N(ASKS(EARLY ",\\'by\\':\\'cloud\\'", "b1", IN_A_SLOT EARLY_DRAIN("Draining"))) }, "AgentDrains, (RebootSlotGranted)" },
        { "it reboots early, by the cloud, and is drained", { N(ASKS(EARLY ",\\'by\\':\\'cloud\\'", "b1", SLOT("2027-01-15T08:04:00Z", ",\\'sent\\':true") EARLY_DRAIN("Drained"))) },
          "(NotSelected), (DrainedByAgent), (RebootSlotGranted)" },
        { "it drains without a slot for that", { N(ASKS(EARLY, "b1", EARLY_DRAIN("Draining"))) }, "AgentDrains" },
#define PLANNED(reason, message) \
        ",{'type':'MaintenancePlanned','status':'True','reason':'" reason "','message':'" message "','lastTransitionTime':'2027-01-15T07:57:00Z'}"
        { "a person scheduled a reboot", { N(NODE("", READY, PLANNED("NodeShutdown", "vesper-agent waits for the reboot of this machine"))) }, "(NotSelected), (Planned)" },
        { "the coordinator reports a plan: the announcement itself is not there", { N(NODE("", READY, PLANNED("VesperCoordinator", "vesper-coordinator acts"))) }, "(NotSelected)" },
        { "a plan that ended", { N(NODE("", READY, ",{'type':'MaintenancePlanned','status':'False','reason':'NodeShutdown','message':'no more'}")) }, "(NotSelected)" },
        /* -- machines that are off -- */
#define OFF_SERVICE ",'annotations':{'vesper.sh/out-of-service':'2027-01-15T07:56:00Z'}"
        { "its kubelet is silent", { N(NODE(OURS, SILENT, "")), C(CLAIM(OURS, "", ",'phase':'Adopted'")), A("") }, "(InService), (NotReady)" },
        { "its kubelet reports why it is not Ready",
          { N(NODE(OURS, "'type':'Ready','status':'False','lastTransitionTime':'2027-01-15T07:59:00Z'", "")), C(CLAIM(OURS, "", "")), A("") },
          "(InService), (NotReady)" },
        { "its machine is off", { N("{'metadata':{" OURS UID LABELS OFF_SERVICE "}," ID ",'status':{'conditions':[{" SILENT "}]}}"), C(CLAIM(OURS, "", ",'phase':'Adopted'")), A("") },
          "(InService), (OutOfService)" },
        { "its machine is off, and it is removed", { N("{'metadata':{" OURS DELETED UID LABELS OFF_SERVICE "}," ID ",'status':{'conditions':[{" SILENT "}]}}"), C(CLAIM_IN("Draining")), A("") },
          "(InProgress)" },
        /* -- before its drain -- */
        { "its pool is paused", { N(WAITING), C(CLAIM_IN("Paused")), { &kube_node_pool_kind, POOL("a", ",'annotations':{'vesper.sh/paused':'true'}",
            "'conditions':[{'type':'Paused','status':'True','reason':'PoolPaused','lastTransitionTime':'2027-01-15T07:40:00Z'}]") } },
          "Paused" NO_DEADLINE },
        { "all are paused", { N(WAITING), C(CLAIM_IN("Paused")), A(""), { &kube_namespace_kind, "{'metadata':{'name':'v','annotations':{'vesper.sh/paused':'true'}}}" } },
          "Paused" NO_DEADLINE },
        { "and it is recorded who did that", { N(WAITING), C(CLAIM_IN("Paused")), A(""), { &kube_namespace_kind, "{'metadata':{'name':'v','annotations':{'vesper.sh/paused':'true',"
          "'vesper.sh/paused-by':'{\\'by\\':\\'root@host\\',\\'command\\':\\'release --all\\',\\'since\\':\\'2027-01-15T07:40:00Z\\'}'}}}" } },
          "Paused" NO_DEADLINE },
        { "removals begin one by one", { N(NODE(OURS DELETED, READY, BLOCKED_BY("Paused", "Removals were paused, and begin one by one now. 7 of them wait"))), C(CLAIM_IN("Paused")), A("") },
          "Paused" NO_DEADLINE },
        { "a pause does not stop what has begun", { N(GOING), C(CLAIM_IN("Draining")), { &kube_node_pool_kind, POOL("a", ",'annotations':{'vesper.sh/paused':'true'}", "") } },
          "(InProgress)" },
        { "nor one that is not Ready", { N(NODE(OURS DELETED, SILENT, "")), C(CLAIM_IN("Checking")), { &kube_node_pool_kind, POOL("a", ",'annotations':{'vesper.sh/paused':'true'}", "") } },
          "(InProgress)" },
        { "a budget of nodes that is used up", { N(WAITING), C(CLAIM_IN("WaitingForBudget")), A(""), { &kube_node_budget_kind, BUDGET("'maxUnavailable':1", "0", "{'name':'w2','uid':'u2'}") } },
          "WaitingForBudget" NO_DEADLINE },
        { "of a percentage", { N(WAITING), C(CLAIM_IN("WaitingForBudget")), A(""), { &kube_node_budget_kind, BUDGET("'minAvailable':'80%'", "0", "") } },
          "WaitingForBudget" NO_DEADLINE },
        { "of a number that must stay", { N(WAITING), C(CLAIM_IN("WaitingForBudget")), A(""),
                                            { &kube_node_budget_kind, BUDGET("'minAvailable':3", "0", "") } },
          "WaitingForBudget" NO_DEADLINE },
#define BUDGET_OF(spec, expected, available, desired) \
        "{'metadata':{'name':'one'},'spec':{'selector':{'matchLabels':{'pool':'a'}}," spec "},'status':{'expectedNodes':" expected ",'currentAvailable':" available "," \
        "'desiredAvailable':" desired ",'disruptionsAllowed':0,'disruptedNodes':[" CHARGES "]}}"
#define CHARGE(name) "{'name':'" name "','uid':'" name "'}"
#define CHARGES CHARGE("w2") "," CHARGE("w3") "," CHARGE("w4") "," CHARGE("w5") "," CHARGE("w6")
        { "more are unavailable than may be", { N(WAITING), C(CLAIM_IN("WaitingForBudget")), A(""), { &kube_node_budget_kind, BUDGET_OF("'maxUnavailable':2", "11", "6", "9") } },
          "WaitingForBudget" NO_DEADLINE },
        { "fewer are unavailable than may be", { N(WAITING), C(CLAIM_IN("WaitingForBudget")), A(""), { &kube_node_budget_kind, BUDGET_OF("'maxUnavailable':7", "11", "6", "4") } },
          "WaitingForBudget" NO_DEADLINE },
        { "fewer are available than must be", { N(WAITING), C(CLAIM_IN("WaitingForBudget")), A(""), { &kube_node_budget_kind, BUDGET_OF("'minAvailable':9", "11", "6", "9") } },
          "WaitingForBudget" NO_DEADLINE },
        { "of a node in service, which is counted as available", { N(IN_SERVICE), C(CLAIM(OURS, "", "")), A(""), { &kube_node_budget_kind, BUDGET_OF("'minAvailable':9", "11", "6", "9") } },
          "(InService), (WaitingForBudget)" },
        { "none is available", { N(IN_SERVICE), C(CLAIM(OURS, "", "")), A(""), { &kube_node_budget_kind, BUDGET_OF("'minAvailable':1", "3", "0", "1") } },
          "(InService), (WaitingForBudget)" },
#undef CHARGES
#define CHARGES CHARGE("w2") "," CHARGE("w3") "," CHARGE("w4") "," CHARGE("w5") "," CHARGE("w6") "," CHARGE("w7") "," CHARGE("w8")
        { "it has admitted more than are named", { N(WAITING), C(CLAIM_IN("WaitingForBudget")), A(""), { &kube_node_budget_kind, BUDGET_OF("'maxUnavailable':7", "11", "4", "4") } },
          "WaitingForBudget" NO_DEADLINE },
        { "as the coordinator says it", { N(NODE(OURS DELETED, READY, BLOCKED_BY("WaitingForBudget", "NodeDisruptionBudget one allows no disruption"))), C(CLAIM_IN("WaitingForBudget")), A(""),
                                          { &kube_node_budget_kind, BUDGET("'maxUnavailable':1", "0", "") } },
          "WaitingForBudget" NO_DEADLINE },
        { "one that may not be read", { N(NODE(OURS DELETED, READY, BLOCKED_BY("WaitingForBudget", "NodeDisruptionBudget one allows no disruption"))), C(CLAIM_IN("WaitingForBudget")), A("") },
          "WaitingForBudget" NO_DEADLINE },
        { "it was charged", { N(WAITING), C(CLAIM_IN("Checking")), A(""), { &kube_node_budget_kind, BUDGET("'maxUnavailable':1", "0", "{'name':'w','uid':'u'}") } }, "(InProgress)" },
        { "nobody leads", { GOES }, "NoLeader" NO_DEADLINE, .leader = "" },
        /* -- pods -- */
        { "a PDB without room", { GOES, P(POD("web-1", "", "")), { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "4") } }, "BlockedByPDB" NO_DEADLINE },
        { "since when the coordinator says so", { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Draining','blockers':[{'pod':'web/web-1','reason':'BlockedByPDB','pdb':'web/web','since':'2027-01-15T07:59:00Z'}]")),
            A(""), P(POD("web-1", "", "")), { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "4") } },
          "BlockedByPDB" NO_DEADLINE },
        { "it came back too often, without a toleration: its PDB is not blamed",
          { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Draining','blockers':[" COMES_BACK "]")), A(""), P(OWNED("web-1", "ReplicaSet")), { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "4") } },
          "(PodComesBack), (InProgress)" },
        { "the same, while the cloud does not end the machine",
          { N(NODE(OURS DELETED, READY, BLOCKED_BY("CloudDenied", "no"))), C(CLAIM(OURS DELETED, "", ",'phase':'Terminating','blockers':[" COMES_BACK "]")), A(""), P(OWNED("web-1", "ReplicaSet")) },
          "CloudDenied" NO_DEADLINE ", (PodComesBack)" },
        { "it came back too often, and is on its way out after its grace: not waited for",
          { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Draining','blockers':[" COMES_BACK "]")), A(""), P(POD("web-1", ",'deletionTimestamp':'2027-01-15T07:50:00Z','finalizers':['x.io/f']", "")) },
          "(PodComesBack), (InProgress)" },
        { "it tolerates the cordon, and the claim does not say that it came back", { GOES, P(TOLERATING("web-1")), { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "4") } },
          "BlockedByPDB" NO_DEADLINE },
        { "it tolerates the cordon, and came back too often",
          { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Draining','blockers':[" COMES_BACK "]")), A(""), P(TOLERATING("web-1")) },
          "(PodComesBack), (InProgress)" },
        { "a PDB with room", { GOES, P(POD("web-1", "", "")), { &kube_pdb_kind, PDB("web", "1", "1", "4", "3", "4") } }, "(InProgress)" },
        { "maxUnavailable 0", { GOES, P(POD("web-1", "", "")), { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "3") } }, "PDBNeverAllows" NO_DEADLINE },
        { "maxUnavailable 0, and a webhook denies the eviction",
          { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Draining','blockers':[" DENIED "]")), A(""), P(POD("web-1", "", "")), { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "3") } },
          "PDBNeverAllows, EvictionWebhook" NO_DEADLINE },
        { "a webhook denies the eviction", { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Draining','blockers':[" DENIED "]")), A(""), P(POD("web-1", "", "")) },
          "EvictionWebhook" NO_DEADLINE },
        { "a PDB without room, and a webhook denies the eviction: that says nothing of the PDB",
          { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Draining','blockers':[" DENIED "]")), A(""), P(POD("web-1", "", "")), { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "4") } },
          "BlockedByPDB, EvictionWebhook" NO_DEADLINE },
        { "minAvailable 1 of one pod", { GOES, P(POD("web-1", "", "")), { &kube_pdb_kind, PDB("web", "1", "0", "1", "1", "1") } }, "PDBNeverAllows" NO_DEADLINE },
        { "a PDB that cannot be counted", { GOES, P(POD("web-1", "", "")), { &kube_pdb_kind, "{'metadata':{'namespace':'web','name':'web','generation':1},'spec':{'selector':{'matchLabels':{'app':'web'}}},'status':{"
                                "'observedGeneration':1,'disruptionsAllowed':0,'conditions':[{'type':'DisruptionAllowed','status':'False','reason':'SyncFailed','message':'foos.acme.io does not implement the scale subresource'}]}}" } },
          "PDBSyncFailed" NO_DEADLINE },
        { "a PDB that was not counted yet", { GOES, P(POD("web-1", "", "")), { &kube_pdb_kind, PDB("web", "2", "1", "3", "2", "3") } }, "PDBNotObserved" NO_DEADLINE },
        { "a pod that it does not protect: Pending", { GOES, P("{'metadata':{'namespace':'web','name':'p','labels':{'app':'web'}},'spec':{'nodeName':'w'},'status':{'phase':'Pending'}}"),
            { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "3") } }, "(InProgress)" },
        { "several PDBs, whatever they allow", { GOES, P(POD("web-1", "", "")), { &kube_pdb_kind, PDB("web", "1", "1", "3", "2", "3") }, { &kube_pdb_kind, PDB("web2", "1", "1", "3", "2", "3") } },
          "SeveralPDBs" NO_DEADLINE },
        { "opted out: vesper.sh/do-not-evict", { GOES, P(POD("web-1", ",'annotations':{'vesper.sh/do-not-evict':'true'}", "")) }, "Protected" NO_DEADLINE },
        { "opted out: karpenter.sh/do-not-evict", { GOES, P(POD("web-1", ",'annotations':{'karpenter.sh/do-not-evict':'true'}", "")) }, "Protected" NO_DEADLINE },
        { "opted out: karpenter.sh/do-not-disrupt", { GOES, P(POD("web-1", ",'annotations':{'karpenter.sh/do-not-disrupt':'true'}", "")) }, "Protected" NO_DEADLINE },
        { "opted out: safe-to-evict", { GOES, P(POD("web-1", ",'annotations':{'cluster-autoscaler.kubernetes.io/safe-to-evict':'false'}", "")) }, "Protected" NO_DEADLINE },
        { "opted out by a label", { GOES, P("{'metadata':{'namespace':'web','name':'p','labels':{'vesper.sh/do-not-evict':'true'}},'spec':{'nodeName':'w'},'status':{'phase':'Running'}}") },
          "Protected" NO_DEADLINE },
        { "opted out for a time", { GOES, P(POD("web-1", ",'annotations':{'karpenter.sh/do-not-disrupt':'2h'}", "")) }, "Protected" NO_DEADLINE },
        { "for a time that is over", { GOES, P(POD("web-1", ",'annotations':{'karpenter.sh/do-not-disrupt':'10m'}", "")) }, "(InProgress)" },
        { "opted out, and evicted all the same by policy", { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Draining','blockers':[{'pod':'web/web-1','reason':'Evicting'}]")), A(""),
            P(POD("web-1", ",'annotations':{'vesper.sh/do-not-evict':'true'}", "")) }, "(InProgress)" },
        { "a kubelet that is silent", { N(NODE(OURS DELETED, SILENT, "")), C(CLAIM_IN("Draining")), A(""),
            P(POD("web-1", ",'deletionTimestamp':'2027-01-15T07:59:30Z','deletionGracePeriodSeconds':30", "")) },
          "Terminating" NO_DEADLINE },
        { "a finalizer on a pod", { GOES, P(POD("web-1", ",'finalizers':['x.io/f'],'deletionTimestamp':'2027-01-15T07:59:30Z','deletionGracePeriodSeconds':30", "")) }, "Terminating" NO_DEADLINE },
        { "a kubelet that is silent while the grace goes on", { N(NODE(OURS DELETED, SILENT, "")), C(CLAIM_IN("Draining")), A(""),
            P(POD("web-1", ",'deletionTimestamp':'2027-01-15T08:00:20Z','deletionGracePeriodSeconds':30", "")) },
          "Terminating" NO_DEADLINE },
        { "a finalizer that a shell would read", { GOES, P(POD("web-1", ",'finalizers':['x`;reboot;`'],'deletionTimestamp':'2027-01-15T07:59:30Z','deletionGracePeriodSeconds':30", "")) },
          "Terminating" NO_DEADLINE },
        { "a pod that has its grace", { GOES, P(POD("web-1", ",'deletionTimestamp':'2027-01-15T08:00:20Z','deletionGracePeriodSeconds':30", "")) }, "(InProgress)" },
        { "a kubelet that reports, and ends nothing", { GOES, P(POD("web-1", ",'deletionTimestamp':'2027-01-15T07:58:00Z','deletionGracePeriodSeconds':30", "")) }, "Terminating" NO_DEADLINE },
        { "of a DaemonSet: not waited for", { GOES, P("{'metadata':{'namespace':'web','name':'d','labels':{'app':'web'},'ownerReferences':[{'apiVersion':'apps/v1','kind':'DaemonSet','name':'d','uid':'d',"
            "'controller':true}]},'spec':{'nodeName':'w'},'status':{'phase':'Running'}}"), { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "3") } }, "(InProgress)" },
        { "what no object says but the coordinator", { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Draining','blockers':[{'pod':'web/web-1','reason':'Forbidden','message':'no','since':'2027-01-15T07:59:00Z'}]")),
            A(""), P(POD("web-1", "", "")) }, "Forbidden" NO_DEADLINE },
        { "of a pod that is gone since", { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Draining','blockers':[{'pod':'web/web-1','reason':'Forbidden','message':'no'}]")), A("") }, "(InProgress)" },
        { "pods that may not be read", { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Draining','blockers':[{'pod':'web/web-1','reason':'BlockedByPDB','pdb':'web/web','since':'2027-01-15T07:59:00Z'}]")), A("") },
          "BlockedByPDB" NO_DEADLINE, .unknown_pods = 1 },
        { "load balancers", { N(GOING), C(CLAIM_IN("LoadBalancers")), A("") }, "LoadBalancers" NO_DEADLINE },
        { "its agent drains it", { N(INTERRUPTED("Draining", "b1")) }, "AgentDrains" },
        { "a person on the machine drains it", { N(DRAINED_BY_HAND("Draining")) }, "AgentDrains" },
        { "a person on the machine has drained it", { N(DRAINED_BY_HAND("Drained")) }, "(NotSelected), (DrainedByAgent)" },
        { "its agent has drained it", { N(INTERRUPTED("Drained", "b1")) }, "(NotSelected), (DrainedByAgent)" },
        { "its agent has drained it before another boot", { N(INTERRUPTED("Drained", "b2")) }, "(NotSelected)" },
        { "held by a PDB, for which its agent needs no leader", { N(INTERRUPTED("Draining", "b1")), P(POD("web-1", "", "")), { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "4") } },
          "BlockedByPDB, AgentDrains", .leader = "" },
        { "whom an opted-out pod does not hold", { N(INTERRUPTED("Draining", "b1")), P(POD("web-1", ",'annotations':{'vesper.sh/do-not-evict':'true'}", "")) }, "AgentDrains" },
        { "its agent overruled", { N(INTERRUPTED("Released", "b1")) }, "(InterruptionOverruled), (NotSelected)" },
        { "its agent overruled, in an earlier boot", { N(INTERRUPTED("Released", "b2")) }, "(NotSelected)" },
        { "its agent overruled, and that time is over", { N(INTERRUPTED_UNTIL("Released", "b1", "2027-01-15T08:00:00Z")) }, "(NotSelected)" },
        { "an agent of an earlier boot", { N(INTERRUPTED("Draining", "b2")) }, "(NotSelected)" },
        { "drained for the queue", { N(HEARD("Draining")) }, "QueueDrains" },
        { "drained for the queue, as the coordinator says", { N(HEARD_OF("Draining", "1", "2027-01-15T08:01:30Z", ",\\'blockedBy\\':[{\\'pod\\':\\'web/a\\',\\'reason\\':\\'Protected\\',\\'detail\\':\\'k\\'}]")) },
          "QueueDrains" },
        { "drained for the queue, of one pod", { N(HEARD_OF("Draining", "1", "2027-01-15T08:01:30Z", "")) }, "QueueDrains" },
        { "drained for the queue, and a pod of it comes back", { N(HEARD_OF("Draining", "0", "2027-01-15T08:01:30Z", ",\\'blockedBy\\':[{\\'pod\\':\\'web/web-1\\',\\'reason\\':\\'PodComesBack\\'}]")), P(POD("web-1", "", "")),
            { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "4") } },
          "QueueDrains, (PodComesBack)" },
        { "drained for the queue, held by a PDB", { N(HEARD("Draining")), P(POD("web-1", "", "")), { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "4") } },
          "BlockedByPDB, (QueueDrains)" },
        { "drained for the queue, whom an opted-out pod does not hold",
          { N(HEARD("Draining")), P(POD("web-1", ",'annotations':{'vesper.sh/do-not-evict':'true'}", "")) }, "QueueDrains" },
        { "drained for the queue, and nobody leads", { N(HEARD("Draining")) }, "NoLeader, (QueueDrains)",
          .leader = "" },
        { "drained for the queue at last", { N(HEARD("Drained")) }, "(NotSelected), (DrainedForQueue)" },
#define TOLD(kind, action, more) "{\\'id\\':\\'" kind "\\',\\'kind\\':\\'" kind "\\',\\'source\\':\\'sqs\\',\\'action\\':\\'" action "\\'" more "}"
#define OVERRULED_BY(at) TOLD("spot", "terminate", ",\\'deadline\\':\\'" at "\\',\\'state\\':\\'Overruled\\'")
#define REBOOT_TOLD TOLD("maintenance", "reboot", ",\\'deadline\\':\\'2027-01-16T08:00:00Z\\'")
#define RETIREMENT_TOLD "{\\'id\\':\\'r\\',\\'kind\\':\\'maintenance\\',\\'source\\':\\'sqs\\',\\'action\\':\\'terminate\\',\\'deadline\\':\\'2027-01-17T08:00:00Z\\'}"
#define LIST(notices) "'annotations':{'vesper.sh/announced':'{\\'notices\\':[" notices "]}'}"
#define OPENED(notices) "{'metadata':{" UID "," LIST(notices) "}," ID ",'status':{'nodeInfo':{'bootID':'b1'}}}"
        { "opened in spite of the queue", { N(OPENED(OVERRULED_BY("2027-01-15T08:01:30Z"))) }, "(InterruptionOverruled), (NotSelected)" },
        { "the same, of a pool", { N(IN_SERVICE), C(CLAIM(OURS LIST(OVERRULED_BY("2027-01-15T08:01:30Z")) ",", "", ",'phase':'Adopted'")), A("") },
          "(InterruptionOverruled), (InService)" },
        { "opened, and that time is over", { N(OPENED(OVERRULED_BY("2027-01-15T07:59:00Z"))) }, "(NotSelected)" },
        { "opened, and no time was announced", { N(OPENED(TOLD("scale-in", "terminate", ",\\'state\\':\\'Overruled\\'"))) }, "(InterruptionOverruled), (NotSelected)" },
        { "two changes are to come", { N(OPENED(REBOOT_TOLD "," RETIREMENT_TOLD)) }, "(NotSelected), (Announced)" },
        { "two changes are to come, of a pool", { N(IN_SERVICE), C(CLAIM(OURS LIST(REBOOT_TOLD "," RETIREMENT_TOLD) ",", "", ",'phase':'Adopted'")), A("") },
          "(InService), (Announced)" },
#define HELD_TOLD "{\\'id\\':\\'x\\',\\'kind\\':\\'spot\\',\\'source\\':\\'sqs\\',\\'action\\':\\'terminate\\',\\'deadline\\':\\'2027-01-15T08:01:30Z\\'," \
        "\\'received\\':\\'2027-01-15T07:59:30Z\\',\\'state\\':\\'Held\\'}"
#define HELD_CLAIM(more) C(CLAIM(OURS "'annotations':{'vesper.sh/announced':'{\\'notices\\':[" HELD_TOLD "]}'" more "},", "", ",'phase':'Adopted'"))
        { "held by the brake", { N(IN_SERVICE), HELD_CLAIM(""), A("") }, "(InService), QueueBrake" },
        { "held by the brake, and let go", { N(IN_SERVICE), HELD_CLAIM(",'vesper.sh/let-go':'2027-01-15T07:59:30Z'"), A("") }, "(InService), (QueueBrake)" },
        { "held by the brake, and drained", { N(HEARD_OF("Draining", "1", "2027-01-15T08:01:30Z", ",\\'blockedBy\\':[{\\'pod\\':\\'web/a\\',\\'reason\\':\\'Protected\\',\\'detail\\':\\'k\\'}]")),
            HELD_CLAIM(""), A("") }, "QueueBrake" },
        { "held by the brake, and a PDB holds the drain", { N(HEARD("Draining")), HELD_CLAIM(""), A(""), P(POD("web-1", "", "")), { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "4") } },
          "BlockedByPDB, QueueBrake" },
        { "held by the brake, and an opted-out pod holds the drain", { N(HEARD("Draining")), HELD_CLAIM(""), A(""), P(POD("web-1", ",'annotations':{'vesper.sh/do-not-evict':'true'}", "")) },
          "Protected, QueueBrake" },
        { "held by the brake, and drained at last", { N(HEARD("Drained")), HELD_CLAIM(""), A("") }, "(NotAdoptedYet), QueueBrake" },
        { "held by the brake, and being removed", { N(GOING), C(CLAIM(OURS DELETED LIST(HELD_TOLD) ",", "", ",'phase':'Draining'")), A("") }, "(InProgress)" },
        { "held by the brake, without a pool", { N(OPENED(HELD_TOLD)) }, "(NotSelected), QueueBrake" },
        { "that a pool selects by now", { N(HEARD("Draining")), A("") }, "(NotAdoptedYet)" },
        /* -- behind the drain -- */
        { "a volume", { N(GOING), C(CLAIM_IN("Volumes")), A(""), { &kube_volume_attachment_kind, "{'metadata':{'name':'csi-1'},'spec':{'nodeName':'w','source':{'persistentVolumeName':'pv-1'}},'status':{'attached':true}}" },
            { &kube_volume_attachment_kind, "{'metadata':{'name':'csi-2'},'spec':{'nodeName':'w2','source':{'persistentVolumeName':'pv-2'}},'status':{'attached':true}}" } },
          "VolumesAttached" NO_DEADLINE },
        { "volumes that may not be read", { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Volumes','blockers':[{'reason':'VolumesAttached','message':'2 volumes are','since':'2027-01-15T07:59:00Z'}]")), A("") },
          "VolumesAttached" NO_DEADLINE },
        { "volumes of which the node alone knows", { N("{'metadata':{" OURS DELETED UID LABELS BEGUN "}," ID ",'status':{'volumesAttached':[{'name':'v','devicePath':''}],'conditions':[{" READY "}]}}"),
            C(CLAIM_IN("Volumes")), A("") }, "VolumesAttached" NO_DEADLINE },
        { "no volume is left", { N(GOING), C(CLAIM_IN("Volumes")), A("") }, "(InProgress)" },
#define MACHINE(reason, message) { N(NODE(OURS DELETED, READY, BLOCKED_BY(reason, message))), C(CLAIM_IN("Terminating")), A("") }
        { "denied", MACHINE("CloudDenied", "ec2:TerminateInstances"), "CloudDenied" NO_DEADLINE },
        { "throttled", MACHINE("CloudUnavailable", "RequestLimitExceeded"), "CloudUnavailable" NO_DEADLINE },
        { "protected", MACHINE("TerminationProtected", "no"), "TerminationProtected" NO_DEADLINE },
        { "unknown", MACHINE("CloudUnknown", "not found"), "CloudUnknown" NO_DEADLINE },
        { "refused", MACHINE("CloudRefused", "bad"), "CloudRefused" NO_DEADLINE },
        { "shared", MACHINE("MachineShared", "w2"), "MachineShared" NO_DEADLINE },
        { "missing", MACHINE("MachineMissing", "not there"), "MachineMissing" NO_DEADLINE },
        { "no proof that no pod is left", MACHINE("DrainUnproved", "no list"), "DrainUnproved" NO_DEADLINE },
        { "another's, by name", MACHINE("MachineOfAnother", "it names w2"), "MachineOfAnother" NO_DEADLINE },
        { "identity unproved", MACHINE("IdentityUnproved", "no tag"), "IdentityUnproved" NO_DEADLINE },
        { "identity that is not proved, before it matters", { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Draining','conditions':[{'type':'vesper.sh/IdentityProved','status':'False','reason':'NotProved',"
            "'message':'no tag'}]")), A(""), P(POD("web-1", "", "")), { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "4") } },
          "BlockedByPDB, (IdentityUnproved)" NO_DEADLINE },
        { "what the claim keeps of the cloud", { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Terminating','lastCloudError':'CloudDenied: it may not'")), A("") }, "CloudDenied" NO_DEADLINE },
        { "a foreign finalizer that holds nothing yet", { N(NODE("'finalizers':['x.io/f','vesper.sh/termination']," DELETED, READY, "")), C(CLAIM_IN("Draining")), A("") },
          "(ForeignFinalizer), (InProgress)" },
        { "a foreign finalizer, and ours is off", { N(NODE("'finalizers':['x.io/f','y.io/g']," DELETED, READY, "")) }, "ForeignFinalizer, ForeignFinalizer" },
        { "its Node is gone", { C(CLAIM(OURS, "", ",'phase':'Adopted','lastCloudError':'CloudUnknown: nobody knows'")) }, "CloudUnknown, (NodeAbsent)" },
        { "its Node is gone, and nothing is wrong", { C(CLAIM(OURS, "", "")) }, "NodeAbsent" },
        { "only its claim is left, kept by another", { C(CLAIM("'finalizers':['x.io/f']," DELETED, "", "")) }, "ForeignFinalizer" },
        /* -- deadlines -- */
        { "a deadline far away", { N(GOING), C(CLAIM(OURS DELETED, ",'terminationGracePeriod':'24h'", ",'phase':'Draining'")), A(""), P(POD("web-1", "", "")), { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "4") } },
          "BlockedByPDB, (Deadline)" },
        { "a deadline that lets all go on", { N(WAITING), C(CLAIM(OURS DELETED, ",'terminationGracePeriod':'1m'", ",'phase':'Terminating','lastCloudError':'CloudDenied: no'")),
            { &kube_node_pool_kind, POOL("a", ",'annotations':{'vesper.sh/paused':'true'}", "") } }, "CloudDenied, (DeadlinePassed)" },
        /* -- several -- */
        { "all at once, in their order",
          { N("{'metadata':{'finalizers':['x.io/f','vesper.sh/termination']," DELETED UID LABELS "}," ID ",'status':{'conditions':[{" READY "}]}}"), C(CLAIM(OURS DELETED, ",'terminationGracePeriod':'24h'", ",'phase':'Paused'")),
            { &kube_node_pool_kind, POOL("a", ",'annotations':{'vesper.sh/paused':'true'}", "") }, { &kube_node_budget_kind, BUDGET("'maxUnavailable':1", "0", "") },
            P(POD("web-1", ",'annotations':{'vesper.sh/do-not-evict':'true'}", "")), P(POD("web-2", "", "")), { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "4") } },
          "NoLeader, Paused, WaitingForBudget, Protected, BlockedByPDB, (ForeignFinalizer), (Deadline)", .leader = "" },
};

static bool write_files;

/* Returns what people read, and below it the figures and the times that only JSON has. */
static char *account_of(const ExplainFacts *f, const ExplainCauses *c) {
        _cleanup_free_ char *text = MUST(explain_text(f, c));
        StrBuf b = {};

        strbuf_add(&b, text);
        for (size_t i = 0; i < c->n; i++) {
                const ExplainCause *cause = c->list + i;
                char since[RFC3339_MAX] = "-";

                if (cause->since_usec > 0)
                        rfc3339_format(cause->since_usec, since);
                strbuf_addf(&b, "= %s since %s", cause->reason, since);
                for (size_t k = 0; k < cause->n_figures; k++)
                        strbuf_addf(&b, " %s=%lld", cause->figures[k].name, (long long) cause->figures[k].value);
                strbuf_add_char(&b, '\n');
        }
        return MUST(strbuf_steal(&b));
}

static char *account_of_row(const Row *row) {
        _cleanup_(explain_causes_done) ExplainCauses causes = {};
        _cleanup_free_ char *json = NULL, *reasons = NULL;
        char *text;
        Bench b;

        bench_init(&b);
        for (size_t k = 0; k < ELEMENTSOF(row->objects) && row->objects[k].kind; k++)
                put(&b, row->objects[k].kind, row->objects[k].json);
        if (row->leader)
                assert_return_code(free_and_strdup(&b.facts.leader, row->leader), 0);
        b.facts.knows_pods = !row->unknown_pods;
        assert_return_code(explain_make(&b.facts, &causes), 0);
        reasons = reasons_of(&causes);
        assert_string_equal(reasons, row->reasons);
        json = MUST(explain_json(&b.facts, &causes));
        for (size_t k = 0; k < causes.n; k++)
                assert_non_null(strstr(json, causes.list[k].message));
        text = account_of(&b.facts, &causes);
        bench_done(&b);
        return text;
}

TEST_CASE(test_rows) {
        _cleanup_free_ char *path = expected_file_path("expected/explain-rows.txt");
        _cleanup_strbuf_ StrBuf all = {};

        for (size_t i = 0; i < ELEMENTSOF(causes_table); i++) {
                _cleanup_free_ char *text = NULL;

                print_message("  %s\n", causes_table[i].what);
                text = account_of_row(causes_table + i);
                strbuf_addf(&all, "%s# %s\n%s", i > 0 ? "\n" : "", causes_table[i].what, text);
        }
        if (!path)
                skip();
        expected_file_compare(path, strbuf_str(&all), write_files);
}

/* A maximal node with its PDBs, pools and budgets needs at most a million comparisons. */
TEST_CASE(test_work) {
        _cleanup_(explain_causes_done) ExplainCauses causes = {};
        _cleanup_free_ char *text = NULL;
        size_t before, spent;
        Bench b;

        bench_init(&b);
        put(&b, &kube_node_kind, GOING);
        put(&b, &kube_node_claim_kind, CLAIM_IN("Draining"));
        for (int i = 0; i < 250; i++) {
                _cleanup_free_ char *pod = strf("{'metadata':{'namespace':'web','name':'p%d','labels':{'app':'a%d'}},'spec':{'nodeName':'w'},"
                                                "'status':{'phase':'Running','conditions':[{'type':'Ready','status':'True'}]}}", i, i % 100);

                put(&b, &kube_pod_kind, pod);
        }
        for (int i = 0; i < 100; i++) {
                _cleanup_free_ char *pdb = strf("{'metadata':{'namespace':'web','name':'a%d'},'spec':{'selector':{'matchLabels':{'app':'a%d'}}},'status':{"
                                                "'disruptionsAllowed':0,'currentHealthy':3,'desiredHealthy':3,'expectedPods':4}}", i, i);
                _cleanup_free_ char *pool = strf("{'metadata':{'name':'pool%d'},'spec':{'selector':{'matchLabels':{'pool':'%d'}}}}", i, i);
                _cleanup_free_ char *budget = strf("{'metadata':{'name':'b%d'},'spec':{'maxUnavailable':1,'selector':{'matchLabels':{'pool':'%d'}}}}", i, i);

                put(&b, &kube_pdb_kind, pdb);
                put(&b, &kube_node_pool_kind, pool);
                put(&b, &kube_node_budget_kind, budget);
        }
        before = n_compared();
        assert_return_code(explain_make(&b.facts, &causes), 0);
        text = explain_text(&b.facts, &causes);
        spent = n_compared() - before;
        print_message("  %zu comparisons\n", spent);
        assert_in_range(spent, 1, 1000000);
        assert_int_equal(causes.n, 101);
        bench_done(&b);
}

/* Whoever may write an annotation, a name or a status must not reach the terminal or the shell of whoever reads. */
TEST_CASE(test_plain) {
        _cleanup_(explain_causes_done) ExplainCauses causes = {};
        _cleanup_free_ char *text = NULL;
        Bench b;

        bench_init(&b);
        put(&b, &kube_node_kind, NODE(OURS DELETED, READY, BLOCKED_BY("Cloud\\u001bDenied", "no\\u001b[2J\\nmore")));
        put(&b, &kube_node_claim_kind, CLAIM_IN("Terminating"));
        assert_return_code(strv_extend(&b.facts.unknown, "who\rleads"), 0);
        assert_return_code(explain_make(&b.facts, &causes), 0);
        text = explain_text(&b.facts, &causes);
        assert_non_null(strstr(text, "no?[2J?more"));
        assert_non_null(strstr(text, "\nNot known:\n   who?leads\n"));
        assert_null(strpbrk(text, "\x1b\r"));
        bench_done(&b);

        assert_true(explain_is_word("csi.aws.com/node-1"));
        assert_false(explain_is_word("a b") || explain_is_word("a'b") || explain_is_word("") || explain_is_word("-a") || explain_is_word("$x") || explain_is_word(NULL));
}

/* More than a few pods of one sort are counted. */
TEST_CASE(test_many) {
        _cleanup_(explain_causes_done) ExplainCauses causes = {};
        Bench b;

        bench_init(&b);
        put(&b, &kube_node_kind, GOING);
        put(&b, &kube_node_claim_kind, CLAIM_IN("Draining"));
        for (int i = 0; i < 12; i++)
                put(&b, &kube_pod_kind, POD("p", ",'annotations':{'vesper.sh/do-not-evict':'true'}", ""));
        assert_return_code(explain_make(&b.facts, &causes), 0);
        assert_int_equal(causes.n, 7);
        assert_string_equal(causes.list[5].message, "7 more pods of this node opted out of drains.");
        bench_done(&b);
}

/* -- fetching ------------------------------------------------------------------------------------------- */

typedef struct Fetched {
        bool done;
        char *message, *reasons, *unknown, *account;
        int result;
        bool knows_pdbs;
} Fetched;

static void on_fetched(const char *message, ExplainFacts *facts, void *userdata) {
        _cleanup_(explain_causes_done) ExplainCauses causes = {};
        Fetched *f = userdata;

        assert_false(f->done);
        f->done = true;
        f->message = message ? strdup(message) : NULL;
        if (!message) {
                f->result = explain_make(facts, &causes);
                f->reasons = reasons_of(&causes);
                f->unknown = strv_join(facts->unknown, "\n");
                f->knows_pdbs = facts->knows_pdbs;
                f->account = account_of(facts, &causes);
        }
        explain_facts_done(facts);
}

/* What was asked for, in its order: "get nodes, list pods". */
static void on_request(const FakeRequest *r, FakeApiFault *fault, void *userdata) {
        static const char *const verbs[] = { [FAKE_GET] = "get", [FAKE_LIST] = "list" };
        StrBuf *b = userdata;

        assert_true(r->verb == FAKE_GET || r->verb == FAKE_LIST); /* it changes nothing */
        if (r->resource && r->resource->id == FAKE_PODS)
                assert_non_null(startswith(fake_request_query(r, "fieldSelector"), "spec.nodeName=n"));
        strbuf_addf(b, "%s%s %s", b->size > 0 ? ", " : "", verbs[r->verb], r->plural);
}

static void fetch_in(FakeWorld *w, const char *identity, const char *node, Fetched *fetched) {
        _cleanup_(kubeconfig_freep) KubeConfig *config = NULL;
        _cleanup_free_ char *trouble = NULL;
        HttpTransport *transport;
        ExplainFetch *fetch;
        KubeClient *client;
        KubeAuth *auth;
        Env env;

        assert_return_code(http_inproc_new(w->loop, identity, NULL, &transport), 0);
        assert_return_code(http_inproc_route(transport, FAKE_ORIGIN, fake_cluster_handle, w->cluster), 0);
        env = (Env){ .loop = w->loop, .random = w->random, .transport = transport, .version = "0" };
        assert_return_code(kubeconfig_plain(FAKE_ORIGIN, &config), 0);
        assert_return_code(kube_auth_new(w->loop, NULL, NULL, config, NULL, NULL, &auth, &trouble), 0);
        assert_return_code(kube_client_new(&env, auth, FAKE_ORIGIN, "t", &client), 0);
        assert_return_code(explain_fetch_new(client, node, "v", "l", on_fetched, fetched, &fetch), 0);
        fake_world_run(w, USEC_PER_SEC / 2);
        assert_true(fetched->done);
        explain_fetch_free(fetch);
        kube_client_free(client);
        kube_auth_free(auth);
        http_transport_free(transport);
}

static void fetched_done(Fetched *f) {
        free(f->message);
        free(f->reasons);
        free(f->unknown);
        free(f->account);
}

#define FIRST "get nodes, list pods, list nodepools, list nodedisruptionbudgets, get leases, get namespaces, get validatingwebhookconfigurations"

static void fill(FakeCluster *c, const char *node_uid, bool named) {
        _cleanup_free_ char *name = claim_name("web", "aws:///us-east-1a/n7", node_uid);

        fake_put(c, FAKE_NAMESPACES, fj_parse("{'metadata':{'name':'v'},'status':{'phase':'Active'}}"));
        fake_put(c, FAKE_LEASES, fj_parse("{'metadata':{'name':'l','namespace':'v'},'spec':{'holderIdentity':'somebody','leaseDurationSeconds':15,"
                                          "'renewTime':'2090-01-01T00:00:00.000000Z'}}"));
        fake_put(c, FAKE_NODECLAIMS, fj_parse("{'metadata':{'name':'%s','finalizers':['vesper.sh/termination']},'spec':{'nodePool':'web','providerID':'aws:///us-east-1a/n7'},"
                                              "'status':{'nodeName':'n7','phase':'Adopted'}}", named ? name : "nc-before"));
        fake_put(c, FAKE_WEBHOOKS, fj_parse("{'metadata':{'name':'vesper-nodes'},'webhooks':[{'name':'a.b.c','failurePolicy':'Fail','clientConfig':{'caBundle':'eA==',"
                                            "'service':{'namespace':'v','name':'s'}},'sideEffects':'None','admissionReviewVersions':['v1']}]}"));
        fake_add_nodepool(c, "web", NULL, NULL);
        fake_add_pod(c, &(FakePod){ .name = "p", .node = "n7", .app = "web" });
}

TEST_CASE(test_fetch) {
        static const struct {
                const char *what, *node, *resources; /* that may be read; NULL: all */
                bool other_claim;
                const char *reasons, *unknown[3], *message, *requests;
        } rows[] = {
                { "all is well", "n7", NULL, false, "(InService), (WebhookWithoutService)", {}, NULL, FIRST ", get nodeclaims, list poddisruptionbudgets, get services" },
                { "a claim of before", "n7", NULL, true, "(InService), (WebhookWithoutService)", {}, NULL,
                  FIRST ", get nodeclaims, list poddisruptionbudgets, get services, list nodeclaims" },
                { "no such node", "n9999", NULL, false, "", {}, NULL, NULL },
                { "nothing but the node", "n7", "nodes", false, "(NotSelected)",
                  { "which pods hold it is not known, because you may not list pods", "which NodePool manages it is not known", "its NodeClaim is not known, because you may not list nodeclaims" }, NULL, NULL },
                { "not even that", "n7", "pods", false, NULL, {}, "you may not get Node 'n7'", NULL },
                { "no Lease", "n7", "nodes,pods,nodepools,nodedisruptionbudgets,namespaces,validatingwebhookconfigurations,nodeclaims,poddisruptionbudgets,services", false,
                  "(InService), (WebhookWithoutService)", { "who leads is not known, because you may not get Lease 'v/l'" }, NULL, NULL },
                { "no PDBs", "n7", "nodes,pods,nodepools,nodedisruptionbudgets,namespaces,validatingwebhookconfigurations,nodeclaims,leases,services", false,
                  "(InService), (WebhookWithoutService)", { "which PodDisruptionBudgets hold its pods is not known, because you may not list poddisruptionbudgets in namespace 'default'" }, NULL, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *identity = strf("CN=p,O=%s", rows[i].resources ? "people" : "system:masters");
                _cleanup_strbuf_ StrBuf requests = {};
                Fetched fetched = {};
                FakeWorld w;

                print_message("  %s\n", rows[i].what);
                fake_world_init(&w, NULL);
                for (int n = 0; n < 50; n++) {
                        char name[16];

                        snprintf(name, sizeof(name), "n%d", n);
                        fake_add_node(w.cluster, name, NULL, name, "web");
                }
                fake_merge(w.cluster, FAKE_NODES, NULL, "n7", "{'metadata':{'finalizers':['vesper.sh/termination']}}");
                fill(w.cluster, fj_string(fake_get(w.cluster, FAKE_NODES, NULL, "n7"), "metadata", "uid", NULL), !rows[i].other_claim);
                if (rows[i].resources)
                        fake_authz_allow(fake_cluster_authz(w.cluster), "people", "get,list", "*", rows[i].resources, NULL);
                fake_api_set_fault(fake_cluster_api(w.cluster), on_request, &requests);

                fetch_in(&w, identity, rows[i].node, &fetched);
                assert_true(rows[i].message ? fetched.message && strstr(fetched.message, rows[i].message) : !fetched.message);
                if (rows[i].reasons)
                        assert_string_equal(fetched.reasons, rows[i].reasons);
                for (size_t k = 0; k < 3 && rows[i].unknown[k]; k++)
                        assert_non_null(strstr(fetched.unknown, rows[i].unknown[k]));
                if (!rows[i].message && !rows[i].unknown[0])
                        assert_string_equal(fetched.unknown, "");
                if (rows[i].requests)
                        assert_string_equal(strbuf_str(&requests), rows[i].requests);
                if (rows[i].reasons)
                        assert_int_equal(fetched.knows_pdbs, !strstr(fetched.unknown, "PodDisruptionBudgets"));
                assert_int_equal(fetched.result, streq(rows[i].node, "n7") ? 0 : -ENOENT);

                fetched_done(&fetched);
                fake_world_done(&w);
        }
}

/* -- the rows, with the objects in a cluster ------------------------------------------------------------- */

static void no_pods(const FakeRequest *r, FakeApiFault *fault, void *userdata) {
        if (r->resource && r->resource->id == FAKE_PODS)
                fault->status = 403;
}

/* Adds the DaemonSet that owns a pod, which the rows do not list. */
static void put_owner(FakeCluster *c, const cJSON *pod) {
        const cJSON *owner = cJSON_GetArrayItem(fj_get(pod, "metadata", "ownerReferences", NULL), 0);

        if (streq_ptr(fj_string(owner, "kind", NULL), "DaemonSet"))
                fake_put(c, FAKE_DAEMONSETS,
                         fj_parse("{'metadata':{'name':'%s','namespace':'web','uid':'%s'}}", fj_string(owner, "name", NULL),
                                  fj_string(owner, "uid", NULL)));
}

/* Gives the NodeClaim its exact name if the Node lacks the finalizer: then the fetch looks for no other name. */
static void name_claim(FakeCluster *c, cJSON *claim, char **ret_name) {
        const cJSON *node = fake_get(c, FAKE_NODES, NULL, "w");

        if (!node || fj_array_has(fj_get(node, "metadata", "finalizers", NULL), FINALIZER_TERMINATION))
                return;
        *ret_name = MUST(claim_name("a", "aws:///z/i-1", "u"));
        fj_set_string(fj_object(claim, "metadata"), "name", *ret_name);
}

static void put_row(FakeCluster *c, const Row *row, char **ret_claim) {
        char renewed[RFC3339_MAX];

        rfc3339_format((NOW_SEC - 2) * USEC_PER_SEC, renewed);
        fake_put(c, FAKE_NAMESPACES, fj_parse("{'metadata':{'name':'v'}}"));
        fake_put(c, FAKE_LEASES,
                 fj_parse("{'metadata':{'name':'l','namespace':'v'},'spec':{'holderIdentity':'%s','leaseDurationSeconds':15,'renewTime':'%s'}}",
                          row->leader ?: "coordinator-a", renewed));
        for (size_t k = 0; k < ELEMENTSOF(row->objects) && row->objects[k].kind; k++) {
                const KubeKind *kind = row->objects[k].kind;
                _cleanup_free_ char *text = with_quotes(row->objects[k].json);
                cJSON *object = MUST(cJSON_Parse(text));

                put_owner(c, object);
                if (kind == &kube_node_claim_kind)
                        name_claim(c, object, ret_claim);
                fake_put(c, fake_resource_find(kind->group, kind->version, kind->plural)->id, object);
        }
        if (row->unknown_pods)
                fake_api_set_fault(fake_cluster_api(c), no_pods, NULL);
}

static char *replace(const char *text, const char *from, const char *to) {
        StrBuf b = {};

        for (const char *at; (at = strstr(text, from)); text = at + strlen(from)) {
                strbuf_add_n(&b, text, (size_t) (at - text));
                strbuf_add(&b, to);
        }
        strbuf_add(&b, text);
        return MUST(strbuf_steal(&b));
}

TEST_CASE(test_rows_fetched) {
        static const FakeClusterOptions quiet = { .controllers_off = FAKE_CONTROLLERS_ALL };

        for (size_t i = 0; i < ELEMENTSOF(causes_table); i++) {
                _cleanup_free_ char *expected = account_of_row(causes_table + i), *claim = NULL, *seen = NULL;
                Fetched fetched = {};
                FakeWorld w;

                print_message("  %s\n", causes_table[i].what);
                fake_world_init(&w, &quiet);
                loop_virtual_step_wall(w.loop, (int64_t) (NOW_SEC * USEC_PER_SEC) - (int64_t) loop_wall(w.loop));
                put_row(w.cluster, causes_table + i, &claim);
                fetch_in(&w, "CN=p,O=system:masters", "w", &fetched);
                assert_null(fetched.message);
                assert_string_equal(fetched.reasons, causes_table[i].reasons);
                assert_int_equal(fetched.unknown[0] != 0, causes_table[i].unknown_pods);
                seen = replace(fetched.account, claim ?: "nc-1", "nc-1");
                if (!causes_table[i].unknown_pods)
                        assert_string_equal(seen, expected);
                fetched_done(&fetched);
                fake_world_done(&w);
        }
}

/* What the coordinator says of a node in service; nothing where it says nothing. */
TEST_CASE(test_told) {
#define SAYS ",'conditions':[{'type':'Launched','status':'True','reason':'Adopted'},"                                              \
             "{'type':'Consolidatable','status':'False','reason':'PdbBlocks','message':'pdb web/web \\u001b[2Jprevents pod evictions'," \
             "'lastTransitionTime':'2027-01-15T07:55:00Z'},{'type':'Empty','status':'False','reason':'NotEmpty','message':'it runs 2 pods'}]"
        static const struct {
                const char *claim, *text, *json;
        } rows[] = {
                { NULL, "", "[]" },
                { CLAIM(OURS, "", ""), "", "[]" },
                { CLAIM(OURS, "", SAYS),
                  "\nWhether it would go though nobody asked, as the coordinator says on NodeClaim nc-1 (nothing is removed for that):\n\n"
                  "CONDITION        STATUS   FOR   REASON      WHY\n"
                  "Empty            False    -     NotEmpty    it runs 2 pods\n"
                  "Consolidatable   False    5m    PdbBlocks   pdb web/web ?[2Jprevents pod evictions\n",
                  "[{\"type\":\"Empty\",\"status\":\"False\",\"reason\":\"NotEmpty\",\"message\":\"it runs 2 pods\"},"
                  "{\"type\":\"Consolidatable\",\"status\":\"False\",\"reason\":\"PdbBlocks\",\"message\":\"pdb web/web \\u001b[2Jprevents pod evictions\","
                  "\"since\":\"2027-01-15T07:55:00Z\"}]" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *text = NULL, *json = NULL;
                Bench b;

                bench_init(&b);
                put(&b, &kube_node_kind, IN_SERVICE);
                if (rows[i].claim)
                        put(&b, &kube_node_claim_kind, rows[i].claim);
                text = explain_told_text(&b.facts);
                json = explain_told_json(&b.facts);
                assert_string_equal(text, rows[i].text);
                assert_string_equal(json, rows[i].json);
                bench_done(&b);
        }
}

int main(int argc, char **argv) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rows), cmocka_unit_test(test_work), cmocka_unit_test(test_plain), cmocka_unit_test(test_many),
                cmocka_unit_test(test_fetch), cmocka_unit_test(test_rows_fetched), cmocka_unit_test(test_told),
        };

        write_files = expected_file_is_written(argc, argv);
        return cmocka_run_group_tests_name("explain", tests, NULL, NULL);
}
