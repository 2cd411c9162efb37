/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Nodes with their objects at 2027-01-15T08:00:00Z, and the causes that vesperctl explain finds for them. ' stands for ", and ` for '. The file
 * expected/explain-rows.txt has the whole text of each row.
 */

#include "kube-kinds.h"

/* Parts of a Node "w" and of the objects around it. */
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
        ",{'type':'vesper.sh/TerminationBlocked','status':'True','reason':'" reason "','message':'" message \
        "','lastTransitionTime':'2027-01-15T07:51:00Z'}"
#define CLAIM(meta, spec, status) \
        "{'metadata':{'name':'nc-1'," meta "'uid':'c'},'spec':{'nodePool':'a','providerID':'aws:///z/i-1'" spec \
        "},'status':{'nodeName':'w'" status "}}"
#define CLAIM_IN(phase) CLAIM(OURS DELETED, "", ",'phase':'" phase "'")
#define POOL(name, meta, status) "{'metadata':{'name':'" name "'" meta "},'spec':{'selector':{'matchLabels':{'pool':'a'}}},'status':{" status "}}"
#define POD(name, meta, status) \
        "{'metadata':{'namespace':'web','name':'" name "','uid':'" name "','labels':{'app':'web'}" meta \
        "},'spec':{'nodeName':'w'},'status':{'phase':'Running'," \
        "'startTime':'2027-01-15T07:30:00Z','conditions':[{'type':'Ready','status':'True'}]" status "}}"
#define OWNED(name, kind) POD(name, ",'ownerReferences':[{'apiVersion':'apps/v1','kind':'" kind "','name':'rs','uid':'r','controller':true}]", "")
#define TOLERATING(name) \
        "{'metadata':{'namespace':'web','name':'" name "','uid':'" name "','labels':{'app':'web'}}," \
        "'spec':{'nodeName':'w','tolerations':[{'operator':'Exists'}]}," \
        "'status':{'phase':'Running','startTime':'2027-01-15T07:30:00Z','conditions':[{'type':'Ready','status':'True'}]}}"
#define DENIED "{'pod':'web/web-1','reason':'EvictionWebhook','message':'drain.acme.io: it moves.','since':'2027-01-15T07:59:00Z'}"
#define COMES_BACK "{'pod':'web/web-1','reason':'PodComesBack','message':'ReplicaSet rs made it again','since':'2027-01-15T07:59:00Z'}"
#define PDB(name, generation, allowed, healthy, desired, expected) \
        "{'metadata':{'namespace':'web','name':'" name "','generation':" generation "},'spec':{'selector':{'matchLabels':{'app':'web'}}},'status':{" \
        "'observedGeneration':1,'disruptionsAllowed':" allowed ",'currentHealthy':" healthy ",'desiredHealthy':" \
        desired ",'expectedPods':" expected "}}"
#define BUDGET(spec, allowed, charges) \
        "{'metadata':{'name':'one'},'spec':{'selector':{'matchLabels':{'pool':'a'}}," spec "},'status':{'expectedNodes':5,'currentAvailable':4," \
        "'desiredAvailable':4,'disruptionsAllowed':" allowed ",'disruptedNodes':[" charges "]}}"
#define HEARD(phase) HEARD_OF(phase, "2", "2027-01-15T08:01:30Z", "")
#define HEARD_OF(phase, left, deadline, blockers) \
        "{'metadata':{" UID LABELS ",'annotations':{'vesper.sh/heard':'{\\'id\\':\\'x\\',\\'kind\\':\\'spot\\'," \
        "\\'source\\':\\'sqs\\',\\'action\\':\\'terminate\\'," \
        "\\'phase\\':\\'" phase "\\',\\'podsLeft\\':" left ",\\'deadline\\':\\'" deadline "\\'" blockers "}'}}," ID \
        ",'status':{'conditions':[{" READY "}," \
        "{'type':'DrainInProgress','status':'True','reason':'VesperCoordinator'," \
        "'message':'vesper-coordinator evicts','lastTransitionTime':'2027-01-15T07:59:30Z'}]}}"
#define INTERRUPTED(phase, boot) INTERRUPTED_UNTIL(phase, boot, "2027-01-15T08:01:00Z")
#define INTERRUPTED_UNTIL(phase, boot, deadline) \
        "{'metadata':{" UID LABELS ",'annotations':{'vesper.sh/interruption':'{\\'id\\':\\'n1\\'," \
        "\\'kind\\':\\'spot\\',\\'source\\':\\'ec2\\',\\'action\\':\\'terminate\\'," \
        "\\'deadline\\':\\'" deadline "\\',\\'phase\\':\\'" phase "\\',\\'podsLeft\\':4,\\'bootID\\':\\'b1\\'}'}}," ID \
        ",'status':{'nodeInfo':{'bootID':'" boot "'},'conditions':[{" READY "}]}}"
#define DRAINED_BY_HAND(phase) \
        "{'metadata':{" UID LABELS ",'annotations':{'vesper.sh/interruption':'{\\'id\\':\\'m\\'," \
        "\\'kind\\':\\'manual\\',\\'source\\':\\'D-Bus\\',\\'action\\':\\'drain\\'," \
        "\\'byHand\\':\\'drain\\',\\'phase\\':\\'" phase "\\',\\'podsLeft\\':4,\\'bootID\\':\\'b1\\'}'}}," ID \
        ",'status':{'nodeInfo':{'bootID':'b1'},'conditions':[{" READY "}]}}"

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
        const char *claim; /* the NodeClaim that is asked for by its own name; NULL: the Node w is */
} Row;

static const Row causes_table[] = {
        /* -- in service -- */
        { "a pool's, and nothing of it is wrong", { N(IN_SERVICE), C(CLAIM(OURS, "", ",'phase':'Adopted'")), A("") }, "(InService)" },
        { "nobody's", { N(IN_SERVICE) }, "(NotSelected)" },
        { "nobody's, and a pool is empty-handed", { N(NODE("", READY, "")), { &kube_node_pool_kind,
            "{'metadata':{'name':'b'},'spec':{'selector':{}}}" } },
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
            { &kube_webhook_configuration_kind, "{'metadata':{'name':'vesper-nodes'},'webhooks':[{'name':'n',"
              "'failurePolicy':'Ignore','clientConfig':{}}]}" } },
          "(InService), (NoLeader), (Paused), (WaitingForBudget), (WebhookWithoutCA)", .leader = "" },
        { "a webhook that is asked", { N(IN_SERVICE), C(CLAIM(OURS, "", "")), A(""),
            { &kube_webhook_configuration_kind, "{'metadata':{'name':'vesper-nodes'},'webhooks':[{'name':'n',"
              "'failurePolicy':'Fail','clientConfig':{'caBundle':'eA=='}}]}" } },
          "(InService)" },
        { "no budget, and a webhook without CA that fails closed", { N(IN_SERVICE), C(CLAIM(OURS, "", "")), A(""),
            { &kube_webhook_configuration_kind, "{'metadata':{'name':'vesper-nodes'},'webhooks':[{'name':'n','clientConfig':{}}]}" } },
          "(InService), (WebhookWithoutCA)" },
#define ASKS(more, boot, others) \
        "{'metadata':{" UID ",'annotations':{'vesper.sh/shutdown-request':'{\\'id\\':\\'r\\',\\'bootID\\':\\'b1\\'," \
        "\\'kind\\':\\'reboot\\',\\'until\\':\\'2027-01-15T09:00:00Z\\'" more "}'" others "}}," \
        "'status':{'nodeInfo':{'bootID':'" boot "'},'conditions':[{" READY "}]}}"
#define SLOT(until, more) ",'vesper.sh/shutdown-granted':'{\\'id\\':\\'r\\',\\'until\\':\\'" until "\\'" more "}'"
#define EARLY ",\\'event\\':\\'instance-event-7\\'"
#define EARLY_DRAIN(phase) \
        ",'vesper.sh/interruption':'{\\'id\\':\\'instance-event-7\\',\\'kind\\':\\'maintenance\\'," \
        "\\'source\\':\\'ec2\\',\\'action\\':\\'reboot\\',\\'deadline\\':\\'2027-01-16T14:00:00Z\\'," \
        "\\'phase\\':\\'" phase "\\',\\'podsLeft\\':2,\\'bootID\\':\\'b1\\'}'"
#define IN_A_SLOT SLOT("2027-01-15T08:04:00Z", "")
        { "it waits for a slot to reboot", { N(ASKS("", "b1", "")) }, "(NotSelected), WaitingForRebootSlot" },
        { "it waits no longer", { N(ASKS("", "b2", "")) }, "(NotSelected)" },
        { "it has a slot to reboot", { N(ASKS("", "b1", IN_A_SLOT)) }, "(NotSelected), (RebootSlotGranted)" },
        { "it has rebooted in its slot", { N(ASKS("", "b2", IN_A_SLOT)) }, "(NotSelected)" },
        { "its slot ends at this moment", { N(ASKS("", "b1", SLOT("2027-01-15T08:00:00Z", ""))) }, "(NotSelected), (RebootSlotExpired)" },
        { "its slot is over", { N(ASKS("", "b1", SLOT("2027-01-15T07:57:00Z", ""))) }, "(NotSelected), (RebootSlotExpired)" },
        { "it reboots early, by itself", { N(ASKS(EARLY, "b1", IN_A_SLOT)) }, "(NotSelected), (RebootSlotGranted)" },
        { "it reboots early, by the cloud, and drains", { N(ASKS(EARLY ",\\'by\\':\\'cloud\\'", "b1",
            IN_A_SLOT EARLY_DRAIN("Draining"))) }, "AgentDrains, (RebootSlotGranted)" },
        { "it reboots early, by the cloud, and is drained",
          { N(ASKS(EARLY ",\\'by\\':\\'cloud\\'", "b1", SLOT("2027-01-15T08:04:00Z", ","
            "\\'sent\\':true") EARLY_DRAIN("Drained"))) },
          "(NotSelected), (DrainedByAgent), (RebootSlotGranted)" },
        { "it drains without a slot for that", { N(ASKS(EARLY, "b1", EARLY_DRAIN("Draining"))) }, "AgentDrains" },
#define PLANNED(reason, message) \
        ",{'type':'MaintenancePlanned','status':'True','reason':'" reason "','message':'" message "','lastTransitionTime':'2027-01-15T07:57:00Z'}"
        { "a person scheduled a reboot", { N(NODE("", READY, PLANNED("NodeShutdown", "vesper-agent waits for the "
            "reboot of this machine"))) }, "(NotSelected), (Planned)" },
        { "the coordinator reports a plan: the announcement itself is not there",
          { N(NODE("", READY, PLANNED("VesperCoordinator", "vesper-coordinator acts"))) }, "(NotSelected)" },
        { "a plan that ended", { N(NODE("", READY, ",{'type':'MaintenancePlanned','status':'False',"
            "'reason':'NodeShutdown','message':'no more'}")) }, "(NotSelected)" },
        /* -- machines that are off -- */
#define OFF_SERVICE ",'annotations':{'vesper.sh/out-of-service':'2027-01-15T07:56:00Z'}"
        { "its kubelet is silent", { N(NODE(OURS, SILENT, "")), C(CLAIM(OURS, "", ",'phase':'Adopted'")), A("") }, "(InService), (NotReady)" },
        { "its kubelet reports why it is not Ready",
          { N(NODE(OURS, "'type':'Ready','status':'False','lastTransitionTime':'2027-01-15T07:59:00Z'", "")), C(CLAIM(OURS, "", "")), A("") },
          "(InService), (NotReady)" },
        { "its machine is off", { N("{'metadata':{" OURS UID LABELS OFF_SERVICE "}," ID ",'status':{'conditions':[{"
            SILENT "}]}}"), C(CLAIM(OURS, "", ",'phase':'Adopted'")), A("") },
          "(InService), (OutOfService)" },
        { "its machine is off, and it is removed", { N("{'metadata':{" OURS DELETED UID LABELS OFF_SERVICE "}," ID ","
            "'status':{'conditions':[{" SILENT "}]}}"), C(CLAIM_IN("Draining")), A("") },
          "(InProgress)" },
        /* -- before its drain -- */
        { "its pool is paused", { N(WAITING), C(CLAIM_IN("Paused")), { &kube_node_pool_kind, POOL("a", ",'annotations':{'vesper.sh/paused':'true'}",
            "'conditions':[{'type':'Paused','status':'True','reason':'PoolPaused','lastTransitionTime':'2027-01-15T07:40:00Z'}]") } },
          "Paused" NO_DEADLINE },
        { "all are paused", { N(WAITING), C(CLAIM_IN("Paused")), A(""), { &kube_namespace_kind,
            "{'metadata':{'name':'v','annotations':{'vesper.sh/paused':'true'}}}" } },
          "Paused" NO_DEADLINE },
        { "and it is recorded who did that", { N(WAITING), C(CLAIM_IN("Paused")), A(""), { &kube_namespace_kind,
            "{'metadata':{'name':'v','annotations':{'vesper.sh/paused':'true',"
          "'vesper.sh/paused-by':'{\\'by\\':\\'root@host\\',\\'command\\':\\'release --all\\',\\'since\\':\\'2027-01-15T07:40:00Z\\'}'}}}" } },
          "Paused" NO_DEADLINE },
        { "removals begin one by one", { N(NODE(OURS DELETED, READY, BLOCKED_BY("Paused", "Removals were paused, "
            "and begin one by one now. 7 of them wait"))), C(CLAIM_IN("Paused")), A("") },
          "Paused" NO_DEADLINE },
        { "a pause does not stop what has begun", { N(GOING), C(CLAIM_IN("Draining")), { &kube_node_pool_kind,
            POOL("a", ",'annotations':{'vesper.sh/paused':'true'}", "") } },
          "(InProgress)" },
        { "nor one that is not Ready", { N(NODE(OURS DELETED, SILENT, "")), C(CLAIM_IN("Checking")),
            { &kube_node_pool_kind, POOL("a", ",'annotations':{'vesper.sh/paused':'true'}", "") } },
          "(InProgress)" },
        { "a budget of nodes that is used up", { N(WAITING), C(CLAIM_IN("WaitingForBudget")), A(""),
            { &kube_node_budget_kind, BUDGET("'maxUnavailable':1", "0", "{'name':'w2','uid':'u2'}") } },
          "WaitingForBudget" NO_DEADLINE },
        { "of a percentage", { N(WAITING), C(CLAIM_IN("WaitingForBudget")), A(""), { &kube_node_budget_kind,
            BUDGET("'minAvailable':'80%'", "0", "") } },
          "WaitingForBudget" NO_DEADLINE },
        { "of a number that must stay", { N(WAITING), C(CLAIM_IN("WaitingForBudget")), A(""),
                                            { &kube_node_budget_kind, BUDGET("'minAvailable':3", "0", "") } },
          "WaitingForBudget" NO_DEADLINE },
#define BUDGET_OF(spec, expected, available, desired) \
        "{'metadata':{'name':'one'},'spec':{'selector':{'matchLabels':{'pool':'a'}}," spec \
        "},'status':{'expectedNodes':" expected ",'currentAvailable':" available "," \
        "'desiredAvailable':" desired ",'disruptionsAllowed':0,'disruptedNodes':[" CHARGES "]}}"
#define CHARGE(name) "{'name':'" name "','uid':'" name "'}"
#define CHARGES CHARGE("w2") "," CHARGE("w3") "," CHARGE("w4") "," CHARGE("w5") "," CHARGE("w6")
        { "more are unavailable than may be", { N(WAITING), C(CLAIM_IN("WaitingForBudget")), A(""),
            { &kube_node_budget_kind, BUDGET_OF("'maxUnavailable':2", "11", "6", "9") } },
          "WaitingForBudget" NO_DEADLINE },
        { "fewer are unavailable than may be", { N(WAITING), C(CLAIM_IN("WaitingForBudget")), A(""),
            { &kube_node_budget_kind, BUDGET_OF("'maxUnavailable':7", "11", "6", "4") } },
          "WaitingForBudget" NO_DEADLINE },
        { "fewer are available than must be", { N(WAITING), C(CLAIM_IN("WaitingForBudget")), A(""),
            { &kube_node_budget_kind, BUDGET_OF("'minAvailable':9", "11", "6", "9") } },
          "WaitingForBudget" NO_DEADLINE },
        { "of a node in service, which is counted as available", { N(IN_SERVICE), C(CLAIM(OURS, "", "")), A(""),
            { &kube_node_budget_kind, BUDGET_OF("'minAvailable':9", "11", "6", "9") } },
          "(InService), (WaitingForBudget)" },
        { "none is available", { N(IN_SERVICE), C(CLAIM(OURS, "", "")), A(""), { &kube_node_budget_kind,
            BUDGET_OF("'minAvailable':1", "3", "0", "1") } },
          "(InService), (WaitingForBudget)" },
#undef CHARGES
#define CHARGES CHARGE("w2") "," CHARGE("w3") "," CHARGE("w4") "," CHARGE("w5") "," CHARGE("w6") "," CHARGE("w7") "," CHARGE("w8")
        { "it has admitted more than are named", { N(WAITING), C(CLAIM_IN("WaitingForBudget")), A(""),
            { &kube_node_budget_kind, BUDGET_OF("'maxUnavailable':7", "11", "4", "4") } },
          "WaitingForBudget" NO_DEADLINE },
        { "as the coordinator says it", { N(NODE(OURS DELETED, READY, BLOCKED_BY("WaitingForBudget",
            "NodeDisruptionBudget one allows no disruption"))), C(CLAIM_IN("WaitingForBudget")), A(""),
                                          { &kube_node_budget_kind, BUDGET("'maxUnavailable':1", "0", "") } },
          "WaitingForBudget" NO_DEADLINE },
        { "one that may not be read", { N(NODE(OURS DELETED, READY, BLOCKED_BY("WaitingForBudget",
            "NodeDisruptionBudget one allows no disruption"))), C(CLAIM_IN("WaitingForBudget")), A("") },
          "WaitingForBudget" NO_DEADLINE },
        { "it was charged", { N(WAITING), C(CLAIM_IN("Checking")), A(""), { &kube_node_budget_kind,
            BUDGET("'maxUnavailable':1", "0", "{'name':'w','uid':'u'}") } }, "(InProgress)" },
        { "nobody leads", { GOES }, "NoLeader" NO_DEADLINE, .leader = "" },
        /* -- pods -- */
        { "a PDB without room", { GOES, P(POD("web-1", "", "")), { &kube_pdb_kind, PDB("web", "1", "0", "3", "3",
            "4") } }, "BlockedByPDB" NO_DEADLINE },
        { "since when the coordinator says so", { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Draining',"
            "'blockers':[{'pod':'web/web-1','reason':'BlockedByPDB','pdb':'web/web',"
            "'since':'2027-01-15T07:59:00Z'}]")),
            A(""), P(POD("web-1", "", "")), { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "4") } },
          "BlockedByPDB" NO_DEADLINE },
        { "it came back too often, without a toleration: its PDB is not blamed",
          { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Draining','blockers':[" COMES_BACK "]")), A(""),
            P(OWNED("web-1", "ReplicaSet")), { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "4") } },
          "(PodComesBack), (InProgress)" },
        { "the same, while the cloud does not end the machine",
          { N(NODE(OURS DELETED, READY, BLOCKED_BY("CloudDenied", "no"))),
            C(CLAIM(OURS DELETED, "", ",'phase':'Terminating','blockers':[" COMES_BACK "]")), A(""),
            P(OWNED("web-1", "ReplicaSet")) },
          "CloudDenied" NO_DEADLINE ", (PodComesBack)" },
        { "it came back too often, and is on its way out after its grace: not waited for",
          { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Draining','blockers':[" COMES_BACK "]")), A(""),
            P(POD("web-1", ",'deletionTimestamp':'2027-01-15T07:50:00Z','finalizers':['x.io/f']", "")) },
          "(PodComesBack), (InProgress)" },
        { "it tolerates the cordon, and the claim does not say that it came back", { GOES, P(TOLERATING("web-1")),
            { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "4") } },
          "BlockedByPDB" NO_DEADLINE },
        { "it tolerates the cordon, and came back too often",
          { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Draining','blockers':[" COMES_BACK "]")), A(""), P(TOLERATING("web-1")) },
          "(PodComesBack), (InProgress)" },
        { "a PDB with room", { GOES, P(POD("web-1", "", "")), { &kube_pdb_kind, PDB("web", "1", "1", "4", "3", "4") } }, "(InProgress)" },
        { "maxUnavailable 0", { GOES, P(POD("web-1", "", "")), { &kube_pdb_kind, PDB("web", "1", "0", "3", "3",
            "3") } }, "PDBNeverAllows" NO_DEADLINE },
        { "maxUnavailable 0, and a webhook denies the eviction",
          { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Draining','blockers':[" DENIED "]")), A(""),
            P(POD("web-1", "", "")), { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "3") } },
          "PDBNeverAllows, EvictionWebhook" NO_DEADLINE },
        { "a webhook denies the eviction", { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Draining',"
            "'blockers':[" DENIED "]")), A(""), P(POD("web-1", "", "")) },
          "EvictionWebhook" NO_DEADLINE },
        { "a PDB without room, and a webhook denies the eviction: that says nothing of the PDB",
          { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Draining','blockers':[" DENIED "]")), A(""),
            P(POD("web-1", "", "")), { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "4") } },
          "BlockedByPDB, EvictionWebhook" NO_DEADLINE },
        { "minAvailable 1 of one pod", { GOES, P(POD("web-1", "", "")),
            { &kube_pdb_kind, PDB("web", "1", "0", "1", "1", "1") } }, "PDBNeverAllows" NO_DEADLINE },
        { "a PDB that needs more pods than there are", { GOES, P(POD("web-1", "", "")),
            { &kube_pdb_kind, PDB("web", "1", "0", "1", "5", "4") } }, "PDBNeverAllows" NO_DEADLINE },
        { "a PDB that cannot be counted", { GOES, P(POD("web-1", "", "")),
            { &kube_pdb_kind, "{'metadata':{'namespace':'web','name':'web','generation':1},"
            "'spec':{'selector':{'matchLabels':{'app':'web'}}},'status':{"
                                "'observedGeneration':1,'disruptionsAllowed':0,"
                                "'conditions':[{'type':'DisruptionAllowed','status':'False','reason':'SyncFailed',"
                                "'message':'foos.acme.io does not implement the scale subresource'}]}}" } },
          "PDBSyncFailed" NO_DEADLINE },
        { "a PDB that was not counted yet", { GOES, P(POD("web-1", "", "")),
            { &kube_pdb_kind, PDB("web", "2", "1", "3", "2", "3") } }, "PDBNotObserved" NO_DEADLINE },
        { "a pod that it does not protect: Pending", { GOES, P("{'metadata':{'namespace':'web','name':'p',"
            "'labels':{'app':'web'}},'spec':{'nodeName':'w'},'status':{'phase':'Pending'}}"),
            { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "3") } }, "(InProgress)" },
        { "several PDBs, whatever they allow", { GOES, P(POD("web-1", "", "")),
            { &kube_pdb_kind, PDB("web", "1", "1", "3", "2", "3") }, { &kube_pdb_kind, PDB("web2", "1", "1", "3", "2",
            "3") } },
          "SeveralPDBs" NO_DEADLINE },
        { "opted out: vesper.sh/do-not-evict", { GOES, P(POD("web-1", ","
            "'annotations':{'vesper.sh/do-not-evict':'true'}", "")) }, "Protected" NO_DEADLINE },
        { "opted out: karpenter.sh/do-not-evict", { GOES, P(POD("web-1", ","
            "'annotations':{'karpenter.sh/do-not-evict':'true'}", "")) }, "Protected" NO_DEADLINE },
        { "opted out: karpenter.sh/do-not-disrupt", { GOES,
            P(POD("web-1", ",'annotations':{'karpenter.sh/do-not-disrupt':'true'}", "")) }, "Protected" NO_DEADLINE },
        { "opted out: safe-to-evict", { GOES, P(POD("web-1", ","
            "'annotations':{'cluster-autoscaler.kubernetes.io/safe-to-evict':'false'}", "")) },
          "Protected" NO_DEADLINE },
        { "opted out by a label", { GOES, P("{'metadata':{'namespace':'web','name':'p',"
            "'labels':{'vesper.sh/do-not-evict':'true'}},'spec':{'nodeName':'w'},'status':{'phase':'Running'}}") },
          "Protected" NO_DEADLINE },
        { "opted out for a time", { GOES, P(POD("web-1", ",'annotations':{'karpenter.sh/do-not-disrupt':'2h'}", "")) }, "Protected" NO_DEADLINE },
        { "for a time that is over", { GOES, P(POD("web-1", ",'annotations':{'karpenter.sh/do-not-disrupt':'10m'}", "")) }, "(InProgress)" },
        { "opted out, and evicted all the same by policy",
          { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Draining','blockers':[{'pod':'web/web-1',"
            "'reason':'Evicting'}]")), A(""),
            P(POD("web-1", ",'annotations':{'vesper.sh/do-not-evict':'true'}", "")) }, "(InProgress)" },
        { "a kubelet that is silent", { N(NODE(OURS DELETED, SILENT, "")), C(CLAIM_IN("Draining")), A(""),
            P(POD("web-1", ",'deletionTimestamp':'2027-01-15T07:59:30Z','deletionGracePeriodSeconds':30", "")) },
          "Terminating" NO_DEADLINE },
        { "a finalizer on a pod", { GOES, P(POD("web-1", ",'finalizers':['x.io/f'],"
            "'deletionTimestamp':'2027-01-15T07:59:30Z','deletionGracePeriodSeconds':30", "")) },
          "Terminating" NO_DEADLINE },
        { "a kubelet that is silent while the grace goes on", { N(NODE(OURS DELETED, SILENT, "")), C(CLAIM_IN("Draining")), A(""),
            P(POD("web-1", ",'deletionTimestamp':'2027-01-15T08:00:20Z','deletionGracePeriodSeconds':30", "")) },
          "Terminating" NO_DEADLINE },
        { "a finalizer that a shell would read", { GOES, P(POD("web-1", ",'finalizers':['x`;reboot;`'],"
            "'deletionTimestamp':'2027-01-15T07:59:30Z','deletionGracePeriodSeconds':30", "")) },
          "Terminating" NO_DEADLINE },
        { "a pod that has its grace", { GOES, P(POD("web-1", ",'deletionTimestamp':'2027-01-15T08:00:20Z',"
            "'deletionGracePeriodSeconds':30", "")) }, "(InProgress)" },
        { "a kubelet that reports, and ends nothing", { GOES,
            P(POD("web-1", ",'deletionTimestamp':'2027-01-15T07:58:00Z','deletionGracePeriodSeconds':30", "")) },
          "Terminating" NO_DEADLINE },
        { "of a DaemonSet: not waited for", { GOES, P("{'metadata':{'namespace':'web','name':'d',"
            "'labels':{'app':'web'},'ownerReferences':[{'apiVersion':'apps/v1','kind':'DaemonSet','name':'d',"
            "'uid':'d',"
            "'controller':true}]},'spec':{'nodeName':'w'},'status':{'phase':'Running'}}"),
            { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "3") } }, "(InProgress)" },
        { "what no object says but the coordinator", { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Draining',"
            "'blockers':[{'pod':'web/web-1','reason':'Forbidden','message':'no','since':'2027-01-15T07:59:00Z'}]")),
            A(""), P(POD("web-1", "", "")) }, "Forbidden" NO_DEADLINE },
        { "of a pod that is gone since", { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Draining',"
            "'blockers':[{'pod':'web/web-1','reason':'Forbidden','message':'no'}]")), A("") }, "(InProgress)" },
        { "pods that may not be read", { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Draining',"
            "'blockers':[{'pod':'web/web-1','reason':'BlockedByPDB','pdb':'web/web',"
            "'since':'2027-01-15T07:59:00Z'}]")), A("") },
          "BlockedByPDB" NO_DEADLINE, .unknown_pods = 1 },
        { "load balancers", { N(GOING), C(CLAIM_IN("LoadBalancers")), A("") }, "LoadBalancers" NO_DEADLINE },
        { "its agent drains it", { N(INTERRUPTED("Draining", "b1")) }, "AgentDrains" },
        { "a person on the machine drains it", { N(DRAINED_BY_HAND("Draining")) }, "AgentDrains" },
        { "a person on the machine has drained it", { N(DRAINED_BY_HAND("Drained")) }, "(NotSelected), (DrainedByAgent)" },
        { "its agent has drained it", { N(INTERRUPTED("Drained", "b1")) }, "(NotSelected), (DrainedByAgent)" },
        { "its agent has drained it before another boot", { N(INTERRUPTED("Drained", "b2")) }, "(NotSelected)" },
        { "held by a PDB, for which its agent needs no leader", { N(INTERRUPTED("Draining", "b1")),
            P(POD("web-1", "", "")), { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "4") } },
          "BlockedByPDB, AgentDrains", .leader = "" },
        { "whom an opted-out pod does not hold", { N(INTERRUPTED("Draining", "b1")),
            P(POD("web-1", ",'annotations':{'vesper.sh/do-not-evict':'true'}", "")) }, "AgentDrains" },
        { "its agent overruled", { N(INTERRUPTED("Released", "b1")) }, "(InterruptionOverruled), (NotSelected)" },
        { "its agent overruled, in an earlier boot", { N(INTERRUPTED("Released", "b2")) }, "(NotSelected)" },
        { "its agent overruled, and that time is over", { N(INTERRUPTED_UNTIL("Released", "b1", "2027-01-15T08:00:00Z")) }, "(NotSelected)" },
        { "an agent of an earlier boot", { N(INTERRUPTED("Draining", "b2")) }, "(NotSelected)" },
        { "drained for the queue", { N(HEARD("Draining")) }, "QueueDrains" },
        { "drained for the queue, as the coordinator says", { N(HEARD_OF("Draining", "1", "2027-01-15T08:01:30Z", ","
            "\\'blockedBy\\':[{\\'pod\\':\\'web/a\\',\\'reason\\':\\'Protected\\',\\'detail\\':\\'k\\'}]")) },
          "QueueDrains" },
        { "drained for the queue, of one pod", { N(HEARD_OF("Draining", "1", "2027-01-15T08:01:30Z", "")) }, "QueueDrains" },
        { "drained for the queue, and a pod of it comes back",
          { N(HEARD_OF("Draining", "0", "2027-01-15T08:01:30Z", ",\\'blockedBy\\':[{\\'pod\\':\\'web/web-1\\',"
            "\\'reason\\':\\'PodComesBack\\'}]")), P(POD("web-1", "", "")),
            { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "4") } },
          "QueueDrains, (PodComesBack)" },
        { "drained for the queue, held by a PDB", { N(HEARD("Draining")), P(POD("web-1", "", "")),
            { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "4") } },
          "BlockedByPDB, (QueueDrains)" },
        { "drained for the queue, whom an opted-out pod does not hold",
          { N(HEARD("Draining")), P(POD("web-1", ",'annotations':{'vesper.sh/do-not-evict':'true'}", "")) }, "QueueDrains" },
        { "drained for the queue, and nobody leads", { N(HEARD("Draining")) }, "NoLeader, (QueueDrains)",
          .leader = "" },
        { "drained for the queue at last", { N(HEARD("Drained")) }, "(NotSelected), (DrainedForQueue)" },
#define TOLD(kind, action, more) "{\\'id\\':\\'" kind "\\',\\'kind\\':\\'" kind "\\',\\'source\\':\\'sqs\\',\\'action\\':\\'" action "\\'" more "}"
#define OVERRULED_BY(at) TOLD("spot", "terminate", ",\\'deadline\\':\\'" at "\\',\\'state\\':\\'Overruled\\'")
#define REBOOT_TOLD TOLD("maintenance", "reboot", ",\\'deadline\\':\\'2027-01-16T08:00:00Z\\'")
#define RETIREMENT_TOLD "{\\'id\\':\\'r\\',\\'kind\\':\\'maintenance\\',\\'source\\':\\'sqs\\'," \
        "\\'action\\':\\'terminate\\',\\'deadline\\':\\'2027-01-17T08:00:00Z\\'}"
#define LIST(notices) "'annotations':{'vesper.sh/announced':'{\\'notices\\':[" notices "]}'}"
#define OPENED(notices) "{'metadata':{" UID "," LIST(notices) "}," ID ",'status':{'nodeInfo':{'bootID':'b1'}}}"
        { "opened in spite of the queue", { N(OPENED(OVERRULED_BY("2027-01-15T08:01:30Z"))) }, "(InterruptionOverruled), (NotSelected)" },
        { "the same, of a pool", { N(IN_SERVICE), C(CLAIM(OURS LIST(OVERRULED_BY("2027-01-15T08:01:30Z")) ",", "", ",'phase':'Adopted'")), A("") },
          "(InterruptionOverruled), (InService)" },
        { "opened, and that time is over", { N(OPENED(OVERRULED_BY("2027-01-15T07:59:00Z"))) }, "(NotSelected)" },
        { "opened, and no time was announced", { N(OPENED(TOLD("scale-in", "terminate", ","
            "\\'state\\':\\'Overruled\\'"))) }, "(InterruptionOverruled), (NotSelected)" },
        { "two changes are to come", { N(OPENED(REBOOT_TOLD "," RETIREMENT_TOLD)) }, "(NotSelected), (Announced)" },
        { "two changes are to come, of a pool", { N(IN_SERVICE),
            C(CLAIM(OURS LIST(REBOOT_TOLD "," RETIREMENT_TOLD) ",", "", ",'phase':'Adopted'")), A("") },
          "(InService), (Announced)" },
#define HELD_TOLD "{\\'id\\':\\'x\\',\\'kind\\':\\'spot\\',\\'source\\':\\'sqs\\',\\'action\\':\\'terminate\\'," \
        "\\'deadline\\':\\'2027-01-15T08:01:30Z\\'," \
        "\\'received\\':\\'2027-01-15T07:59:30Z\\',\\'state\\':\\'Held\\'}"
#define HELD_CLAIM(more) C(CLAIM(OURS "'annotations':{'vesper.sh/announced':'{\\'notices\\':[" HELD_TOLD "]}'" more "},", "", ",'phase':'Adopted'"))
        { "held by the brake", { N(IN_SERVICE), HELD_CLAIM(""), A("") }, "(InService), QueueBrake" },
        { "held by the brake, and let go", { N(IN_SERVICE), HELD_CLAIM(",'vesper.sh/let-go':'2027-01-15T07:59:30Z'"),
            A("") }, "(InService), (QueueBrake)" },
        { "held by the brake, and drained", { N(HEARD_OF("Draining", "1", "2027-01-15T08:01:30Z", ","
            "\\'blockedBy\\':[{\\'pod\\':\\'web/a\\',\\'reason\\':\\'Protected\\',\\'detail\\':\\'k\\'}]")),
            HELD_CLAIM(""), A("") }, "QueueBrake" },
        { "held by the brake, and a PDB holds the drain", { N(HEARD("Draining")), HELD_CLAIM(""), A(""),
            P(POD("web-1", "", "")), { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "4") } },
          "BlockedByPDB, QueueBrake" },
        { "held by the brake, and an opted-out pod holds the drain", { N(HEARD("Draining")), HELD_CLAIM(""), A(""),
            P(POD("web-1", ",'annotations':{'vesper.sh/do-not-evict':'true'}", "")) },
          "Protected, QueueBrake" },
        { "held by the brake, and drained at last", { N(HEARD("Drained")), HELD_CLAIM(""), A("") }, "(NotAdoptedYet), QueueBrake" },
        { "held by the brake, and being removed", { N(GOING), C(CLAIM(OURS DELETED LIST(HELD_TOLD) ",", "", ","
            "'phase':'Draining'")), A("") }, "(InProgress)" },
        { "held by the brake, without a pool", { N(OPENED(HELD_TOLD)) }, "(NotSelected), QueueBrake" },
        { "that a pool selects by now", { N(HEARD("Draining")), A("") }, "(NotAdoptedYet)" },
        /* -- several pods -- */
#define BLOCKED_POD(name, at) "{'pod':'web/" name "','reason':'BlockedByPDB','pdb':'web/web','since':'2027-01-15T" at "Z'}"
        { "a PDB holds three pods, the second for the longest time",
          { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Draining','blockers':[" BLOCKED_POD("web-1", "07:59:00")
              "," BLOCKED_POD("web-2", "07:57:00") "," BLOCKED_POD("web-3", "07:58:00") "]")),
            A(""), P(POD("web-1", "", "")), P(POD("web-2", "", "")), P(POD("web-3", "", "")),
                    { &kube_pdb_kind, PDB("web", "1", "0", "6", "4", "9") } },
          "BlockedByPDB" NO_DEADLINE },
        { "more are missing than a PDB allows", { GOES, P(POD("web-1", "", "")),
            { &kube_pdb_kind, PDB("web", "1", "0", "2", "3", "5") } }, "BlockedByPDB" NO_DEADLINE },
        { "none of its pods is healthy", { GOES, P(POD("web-1", "", "")),
            { &kube_pdb_kind, PDB("web", "1", "0", "0", "1", "2") } }, "BlockedByPDB" NO_DEADLINE },
        { "more are healthy than are expected", { GOES, P(POD("web-1", "", "")),
            { &kube_pdb_kind, PDB("web", "1", "0", "6", "3", "4") } }, "BlockedByPDB" NO_DEADLINE },
        { "two PDBs hold one pod each",
          { GOES, P(POD("web-1", "", "")), P("{'metadata':{'namespace':'db','name':'db-1','uid':'d',"
              "'labels':{'app':'db'}},'spec':{'nodeName':'w'},'status':{'phase':'Running',"
              "'conditions':[{'type':'Ready','status':'True'}]}}"),
            { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "4") },
            { &kube_pdb_kind, "{'metadata':{'namespace':'db','name':'db','generation':1},'spec':{'selector':{'matchLabels':{'app':'db'}}},'status':{"
                              "'observedGeneration':1,'disruptionsAllowed':0,'currentHealthy':2,'desiredHealthy':2,'expectedPods':2}}" } },
          "PDBNeverAllows, BlockedByPDB" NO_DEADLINE },
        { "pods are left and nothing holds the node", { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Draining',"
            "'podsLeft':3")), A("") }, "(InProgress)" },
        { "one pod is left", { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Draining','podsLeft':1")), A("") }, "(InProgress)" },
        { "no pod is left", { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Terminating','podsLeft':0")), A("") }, "(InProgress)" },
#define CREATED ",'creationTimestamp':'2027-01-15T07:20:00Z'"
#define DAEMON(api) POD("d-1", CREATED ",'ownerReferences':[{'apiVersion':'" api "','kind':'DaemonSet','name':'d','uid':'ds','controller':true}]", "")
        { "a daemon pod of another API", { N(IN_SERVICE), C(CLAIM(OURS, "", "")), A(""),
            P(DAEMON("apps.kruise.io/v1alpha1")) }, "(InService), (PodLeftAlone)" },
        { "a daemon pod", { N(IN_SERVICE), C(CLAIM(OURS, "", "")), A(""), P(DAEMON("apps/v1")) }, "(InService)" },
#define STATIC(meta) P(POD("d-1", CREATED ",'ownerReferences':[{'apiVersion':'v1','kind':'Node','name':'w','uid':'u','controller':true}]" meta, ""))
        { "a static pod", { N(IN_SERVICE), C(CLAIM(OURS, "", "")), A(""),
            STATIC(",'annotations':{'kubernetes.io/config.mirror':'x'}") }, "(InService)" },
        { "a pod of a Node that is no mirror", { N(IN_SERVICE), C(CLAIM(OURS, "", "")), A(""), STATIC("") }, "(InService), (PodLeftAlone)" },
        { "a pod that reports to be static", { N(IN_SERVICE), C(CLAIM(OURS, "", "")), A(""),
            P(POD("d-1", CREATED ",'annotations':{'kubernetes.io/config.mirror':'x'}", "")) },
          "(InService), (PodLeftAlone)" },
        /* -- behind the drain -- */
        { "a volume", { N(GOING), C(CLAIM_IN("Volumes")), A(""), { &kube_volume_attachment_kind,
            "{'metadata':{'name':'csi-1'},'spec':{'nodeName':'w','source':{'persistentVolumeName':'pv-1'}},"
            "'status':{'attached':true}}" },
            { &kube_volume_attachment_kind, "{'metadata':{'name':'csi-2'},'spec':{'nodeName':'w2',"
              "'source':{'persistentVolumeName':'pv-2'}},'status':{'attached':true}}" } },
          "VolumesAttached" NO_DEADLINE },
        { "volumes that may not be read", { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Volumes',"
            "'blockers':[{'reason':'VolumesAttached','message':'2 volumes are','since':'2027-01-15T07:59:00Z'}]")),
            A("") },
          "VolumesAttached" NO_DEADLINE },
        { "volumes of which the node alone knows", { N("{'metadata':{" OURS DELETED UID LABELS BEGUN "}," ID ","
            "'status':{'volumesAttached':[{'name':'v','devicePath':''}],'conditions':[{" READY "}]}}"),
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
        { "identity that is not proved, before it matters",
          { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Draining',"
            "'conditions':[{'type':'vesper.sh/IdentityProved','status':'False','reason':'NotProved',"
            "'message':'no tag'}]")), A(""), P(POD("web-1", "", "")), { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "4") } },
          "BlockedByPDB, (IdentityUnproved)" NO_DEADLINE },
        { "what the claim keeps of the cloud", { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Terminating',"
            "'lastCloudError':'CloudDenied: it may not'")), A("") }, "CloudDenied" NO_DEADLINE },
        { "a foreign finalizer that holds nothing yet", { N(NODE("'finalizers':['x.io/f',"
            "'vesper.sh/termination']," DELETED, READY, "")), C(CLAIM_IN("Draining")), A("") },
          "(ForeignFinalizer), (InProgress)" },
        { "a foreign finalizer, and ours is off", { N(NODE("'finalizers':['x.io/f','y.io/g']," DELETED, READY, "")) },
          "ForeignFinalizer, ForeignFinalizer" },
        { "its Node is gone", { C(CLAIM(OURS, "", ",'phase':'Adopted','lastCloudError':'CloudUnknown: "
            "nobody knows'")) }, "CloudUnknown, (NodeAbsent)" },
        { "its Node is gone, and nothing is wrong", { C(CLAIM(OURS, "", "")) }, "NodeAbsent" },
        { "only its claim is left, kept by another", { C(CLAIM("'finalizers':['x.io/f']," DELETED, "", "")) }, "ForeignFinalizer" },
        /* -- deadlines -- */
        { "a deadline far away", { N(GOING), C(CLAIM(OURS DELETED, ",'terminationGracePeriod':'24h'", ","
            "'phase':'Draining'")), A(""), P(POD("web-1", "", "")), { &kube_pdb_kind, PDB("web", "1", "0", "3", "3",
            "4") } },
          "BlockedByPDB, (Deadline)" },
        { "a deadline that lets all go on", { N(WAITING), C(CLAIM(OURS DELETED, ",'terminationGracePeriod':'1m'", ","
            "'phase':'Terminating','lastCloudError':'CloudDenied: no'")),
            { &kube_node_pool_kind, POOL("a", ",'annotations':{'vesper.sh/paused':'true'}", "") } }, "CloudDenied, (DeadlinePassed)" },
        /* -- several -- */
        { "all at once, in their order",
          { N("{'metadata':{'finalizers':['x.io/f','vesper.sh/termination']," DELETED UID LABELS "}," ID ","
              "'status':{'conditions':[{" READY "}]}}"), C(CLAIM(OURS DELETED, ",'terminationGracePeriod':'24h'",
              ",'phase':'Paused'")),
            { &kube_node_pool_kind, POOL("a", ",'annotations':{'vesper.sh/paused':'true'}", "") },
              { &kube_node_budget_kind, BUDGET("'maxUnavailable':1", "0", "") },
            P(POD("web-1", ",'annotations':{'vesper.sh/do-not-evict':'true'}", "")), P(POD("web-2", "", "")),
                    { &kube_pdb_kind, PDB("web", "1", "0", "3", "3", "4") } },
          "NoLeader, Paused, WaitingForBudget, Protected, BlockedByPDB, (ForeignFinalizer), (Deadline)", .leader = "" },
        /* -- machines that vesper asks for -- */
#define NEW_CLAIM_OF(meta, spec, status) C("{'metadata':{'name':'nc-2'," meta "'uid':'s'},'spec':{'nodePool':'a','replaces':['nc-1']" spec "},'status':{" status "}}")
#define NEW_CLAIM(spec, status) NEW_CLAIM_OF(OURS, spec, status)
#define REQUEST(more) "'group':{'request':'Launch','token':'t','like':'aws:///z/i-1','zone':'z','capacityType':'spot'," \
        "'since':'2027-01-15T07:52:00Z','time':'2027-01-15T07:58:00Z'" more "}"
#define MACHINE_ID ",'providerID':'aws:///z/i-2'"
#define REPLACED(made) N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Draining','successor':{'claim':'nc-2','made':" made "}"))
#define NEW_POOL(spec) { &kube_node_pool_kind, "{'metadata':{'name':'a'},'spec':{'selector':{'matchLabels':{'pool':'a'}}," \
        "'disruption':{'onInterruption':'Replace'}," spec "}}" }
#define NEW_NODE(taints, ready) N("{'metadata':{'name':'w2','uid':'u2','finalizers':['vesper.sh/termination']},'spec':{'providerID':'aws:///z/i-2','taints':[" taints "]}," \
        "'status':{'conditions':[{'type':'Ready','status':'" ready "','lastTransitionTime':'2027-01-15T07:59:00Z'}]}}")
#define INITIALIZED "'nodeName':'w2','conditions':[{'type':'Initialized','status':'True'}]"
        { "a successor that is not created", { REPLACED("false"), A("") }, "(InProgress), (Successor)" },
        { "a successor that has gone", { REPLACED("true"), A("") }, "(InProgress), (SuccessorGone)" },
        { "a successor that waits for the attempt before",
          { N(GOING), C(CLAIM(OURS DELETED, "", ",'phase':'Draining','successor':{'claim':'nc-0','made':true}")), A(""),
            C("{'metadata':{'name':'nc-0'," OURS DELETED "'uid':'f'},'spec':{'nodePool':'a','replaces':['nc-1'],'attempt':1},'status':{'successor':{'claim':'nc-2'}}}"),
            NEW_CLAIM(",'attempt':2", "'phase':'Launching'") }, "(InProgress), (Successor)" },
        { "a successor that waits for limits", { REPLACED("true"), NEW_POOL("'limits':{'nodes':'3'}"), NEW_CLAIM("", "'phase':'Launching'") }, "(InProgress), (Successor)" },
        { "a successor without an answer", { REPLACED("true"), A(""), NEW_CLAIM("", REQUEST("")) }, "(InProgress), (Successor)" },
        { "a successor that the cloud accepted", { REPLACED("true"), A(""), NEW_CLAIM("", REQUEST(",'answer':'accepted','unresolved':true")) },
          "(InProgress), (Successor)" },
        { "a successor without capacity", { REPLACED("true"), A(""), NEW_CLAIM("", REQUEST(",'answer':'noCapacity','message':'none in z'")) },
          "(InProgress), (Successor)" },
        { "a successor that failed", { REPLACED("true"), A(""), NEW_CLAIM("", REQUEST(",'answer':'later','message':'throttled'")) },
          "(InProgress), (Successor)" },
        { "a successor that is refused without a word", { REPLACED("true"), A(""), NEW_CLAIM("", REQUEST(",'answer':'refused'")) },
          "(InProgress), (Successor)" },
        { "a successor that may be there", { REPLACED("true"), A(""), NEW_CLAIM("", REQUEST(",'answer':'unknown','message':'timed out','unresolved':true")) },
          "(InProgress), (Successor)" },
        { "a successor that is launched", { REPLACED("true"), A(""), NEW_CLAIM(MACHINE_ID, REQUEST(",'answer':'accepted'")) }, "(InProgress), (Successor)" },
        { "a successor that is not Ready, with taints",
          { REPLACED("true"), NEW_POOL("'template':{'startupTaints':[{'key':'x.io/agent','effect':'NoSchedule'}]}"),
            NEW_CLAIM(MACHINE_ID ",'attempt':3", "'nodeName':'w2'," REQUEST("")),
            NEW_NODE("{'key':'x.io/agent','effect':'NoExecute'},{'key':'x.io/agent','effect':'NoSchedule'},{'key':'readiness.k8s.io/net','effect':'NoSchedule'}", "False") },
          "(InProgress), (Successor)" },
        { "a successor that takes pods", { REPLACED("true"), A(""), NEW_CLAIM(MACHINE_ID, INITIALIZED), NEW_NODE("", "True") }, "(InProgress), (Successor)" },
        { "a successor that is being deleted", { REPLACED("true"), A(""), NEW_CLAIM_OF(OURS DELETED, "", REQUEST("")) }, "(InProgress), (Successor)" },
        { "by its own name: not asked", { NEW_CLAIM("", "'phase':'Launching','group':{'like':'aws:///z/i-1','zone':'z'}"), NEW_POOL("'weight':1") }, "NotAsked", .claim = "nc-2" },
        { "by its own name: not asked yet, and named", { REPLACED("false"), NEW_CLAIM("", ""), A("") }, "NotAsked", .claim = "nc-2" },
        { "by its own name: a claim that no other names", { NEW_CLAIM("", ""), A("") }, "NotAsked", .claim = "nc-2" },
        { "by its own name: the next attempt is asked for",
          { NEW_CLAIM_OF(OURS DELETED, MACHINE_ID, "'phase':'Launched','successor':{'claim':'nc-3','made':true}"), A(""),
            C("{'metadata':{'name':'nc-3'," OURS "'uid':'t'},'spec':{'nodePool':'a','replaces':['nc-1'],'attempt':2},'status':{'phase':'Launching'}}") },
          "BeingDeleted, (Successor)", .claim = "nc-2" },
        { "by its own name: no capacity, and nobody leads", { NEW_CLAIM("", REQUEST(",'answer':'noCapacity','message':'none in z'")), A("") }, "NoLeader, NoCapacity",
          .leader = "", .claim = "nc-2" },
        { "by its own name: beside the node that goes", { REPLACED("true"), A(""), NEW_CLAIM("", REQUEST("")) }, "Launching", .claim = "nc-2" },
        { "by its own name: launched",
          { NEW_CLAIM(MACHINE_ID, REQUEST("")), { &kube_node_pool_kind, "{'metadata':{'name':'a'},'spec':{'selector':{'matchLabels':{'pool':'a'}},"
            "'disruption':{'onInterruption':'Replace','launchTimeout':'30m'}}}" } }, "Launched", .claim = "nc-2" },
        { "by its own name: launched, and its machine is being ended", { NEW_CLAIM_OF(OURS DELETED, MACHINE_ID, ""), A("") }, "BeingDeleted", .claim = "nc-2" },
        { "by its own name: deleted before a request", { NEW_CLAIM_OF(OURS DELETED, "", ""), A("") }, "BeingDeleted", .claim = "nc-2" },
        { "by its own name: kept by another", { NEW_CLAIM_OF("'finalizers':['x.io/f']," DELETED, "", ""), A("") }, "ForeignFinalizer", .claim = "nc-2" },
        { "by its own name: registered", { NEW_NODE("", "False"), NEW_CLAIM(MACHINE_ID, "'nodeName':'w2'," REQUEST("")), A("") },
          "(InService), (NotReady), Registered", .claim = "nc-2" },
        { "by its own name: it takes pods", { NEW_NODE("", "True"), NEW_CLAIM(MACHINE_ID, INITIALIZED), A("") }, "(InService), (Replaces)", .claim = "nc-2" },
        { "by its own name: a claim of a Node", { N(IN_SERVICE), C(CLAIM(OURS, "", ",'phase':'Adopted'")), A("") }, "(InService)", .claim = "nc-1" },
        { "by its own name: a person's, without a Node",
          { C("{'metadata':{'name':'nc-1','uid':'c'},'spec':{'providerID':'aws:///z/i-1'},'status':{'phase':'NotAdopted','conditions':[{'type':'vesper.sh/NotAdopted',"
              "'status':'True','reason':'NoSuchNode','message':'No Node has that providerID','lastTransitionTime':'2027-01-15T07:59:00Z'}]}}") },
          "NoSuchNode", .claim = "nc-1" },
        { "by its own name: a person's, and nothing is known", { C("{'metadata':{'name':'nc-1','uid':'c'},'spec':{'providerID':'aws:///z/i-1'}}") },
          "NotAdoptedYet", .claim = "nc-1" },
};
