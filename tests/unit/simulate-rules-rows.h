/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The table of test-simulate-rules.c. ' stands for ". */

#include <stdbool.h>

typedef struct Rule {
        const char *what;
        const char *pod;     /* members of spec of p; NULL: one container that asks for one CPU */
        const char *a;       /* labels of node a beside its hostname; NULL: zone=1 */
        const char *labels;  /* the same of b */
        const char *spec;    /* members of b's spec */
        const char *allocatable; /* more of b's status.allocatable, with a comma before */
        const char *attached;    /* b's status.volumesAttached */
        const char *q;       /* members of metadata of pod q, which runs on b; NULL: there is none */
        const char *q_spec;  /* members of spec of q; NULL: as of p */
        const char *objects;
        const char *unknown; /* kind that was not read; NULL: all were */
        bool q_on_a;         /* q runs on a */
        bool wish;           /* preferences are respected */
        const char *want;
} Rule;

#define RULE_CPU(cpu) "'containers':[{'name':'c','resources':{'requests':{'cpu':'" cpu "'}}}]"
#define ASKS(requests) "'containers':[{'name':'c','resources':{'requests':{" requests "}}}]"
#define CONTAINER(cpu) "{'name':'c','resources':{'requests':{'cpu':'" cpu "'}}}"
#define SIDECAR(cpu) "{'name':'s','restartPolicy':'Always','resources':{'requests':{'cpu':'" cpu "'}}}"
#define OF_X "'namespace':'x','labels':{'app':'q'}"

#define PORT(more) "'containers':[{'name':'c','ports':[{'containerPort':1,'hostPort':80" more "}]}]"
#define PORT_OF(kind, more) "'" kind "':[{'name':'i'" more ",'ports':[{'containerPort':1,'hostPort':80}]}]"

#define TOLERATES(t) RULE_CPU("1") ",'tolerations':[{" t "}]"
#define TAINT(t) "'taints':[{" t "}]"
#define KV "'key':'k','value':'v','effect':'NoSchedule'"

#define REQUIRED_NODE(terms) \
        RULE_CPU("1") ",'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[" terms "]}}}"
#define LABEL_TERM(key, op, values) "{'matchExpressions':[{'key':'" key "','operator':'" op "','values':[" values "]}]}"
#define NAME_TERM(op, values) "{'matchFields':[{'key':'metadata.name','operator':'" op "','values':[" values "]}]}"
#define PREFERRED_NODE(term) \
        RULE_CPU("1") ",'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':1,'preference':" term "}]}}"

#define POD_TERM(more, app) "{'topologyKey':'zone'," more "'labelSelector':{'matchLabels':{'app':'" app "'}}}"
#define NEAR(term) RULE_CPU("1") ",'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[" term "]}}"
#define APART(term) RULE_CPU("1") ",'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[" term "]}}"
#define RATHER(kind, term) \
        RULE_CPU("1") ",'affinity':{'" kind "':{'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':1,'podAffinityTerm':" term "}]}}"
#define NAMESPACE(name, label) "{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'" name "','labels':{'team':'" label "'}}}"
#define TEAM(name) "'namespaceSelector':{'matchLabels':{'team':'" name "'}},"

#define SPREADS(more) \
        RULE_CPU("1") ",'topologySpreadConstraints':[{'topologyKey':'zone','maxSkew':1,'labelSelector':{'matchLabels':{'app':'p'}}" more "}]"
#define HARD ",'whenUnsatisfiable':'DoNotSchedule'"
#define SOFT ",'whenUnsatisfiable':'ScheduleAnyway'"

#define MOUNTS RULE_CPU("1") ",'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'k'}}]"
#define MOUNTS_TWO \
        RULE_CPU("1") ",'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'k'}},{'name':'w','persistentVolumeClaim':{'claimName':'l'}}]"
#define PVC(name, meta, spec) \
        "{'apiVersion':'v1','kind':'PersistentVolumeClaim','metadata':{'name':'" name "','namespace':'x'" meta "},'spec':{" spec "}}"
#define PV(name, meta, spec) "{'apiVersion':'v1','kind':'PersistentVolume','metadata':{'name':'" name "'" meta "},'spec':{" spec "}}"
#define BOUND PVC("k", "", "'volumeName':'pv'")
#define CSI(driver, handle) "'csi':{'driver':'" driver "','volumeHandle':'" handle "'}"
#define ONLY(key, value) "'nodeAffinity':{'required':{'nodeSelectorTerms':[" LABEL_TERM(key, "In", "'" value "'") "]}}"
#define CLASS(provisioner, more) \
        "{'apiVersion':'storage.k8s.io/v1','kind':'StorageClass','metadata':{'name':'s'},'provisioner':'" provisioner "'" more "}"
#define WAITS ",'volumeBindingMode':'WaitForFirstConsumer'"
#define UNBOUND PVC("k", "", "'storageClassName':'s'")
#define TOPOLOGY(key, value) ",'allowedTopologies':[{'matchLabelExpressions':[{'key':'" key "','values':['" value "']}]}]"
#define LIMIT(driver, n) \
        "{'apiVersion':'storage.k8s.io/v1','kind':'CSINode','metadata':{'name':'b'},'spec':{'drivers':[{'name':'" driver \
        "','nodeID':'i','allocatable':{'count':" n "}}]}}"
#define ZONE_LABEL "topology.kubernetes.io/zone"
#define REGION_LABEL "topology.kubernetes.io/region"
#define BETA_ZONE_LABEL "failure-domain.beta.kubernetes.io/zone"

static const Rule rules[] = {
        /* requests: what a pod asks for, of 4 CPUs, 8Gi and 3 pods */
        { .what = "all of it", .pod = ASKS("'cpu':'4','memory':'8Gi'"), .want = "fits" },
        { .what = "a thousandth more", .pod = ASKS("'cpu':'4001m'"), .want = "resources" },
        { .what = "a part of a thousandth is rounded up", .pod = ASKS("'cpu':'4000100u'"),
          .want = "resources" },
        { .what = "more memory", .pod = ASKS("'memory':'8193Mi'"), .want = "resources" },
        { .what = "a byte more", .pod = ASKS("'memory':'8589934593'"), .want = "resources" },
        { .what = "a number", .pod = ASKS("'cpu':4"), .want = "fits" },
        { .what = "a larger number", .pod = ASKS("'cpu':5"), .want = "resources" },
        { .what = "not an amount", .pod = ASKS("'cpu':'much'"), .want = "UNREADABLE" },
        { .what = "more than can be counted", .pod = ASKS("'memory':'99999999999999999999'"),
          .want = "resources" },
        { .what = "none of what the node does not have", .pod = ASKS("'example.com/gpu':'0'"),
          .want = "fits" },
        { .what = "one of what the node does not have", .pod = ASKS("'example.com/gpu':'1'"),
          .want = "resources" },
        { .what = "one of one that the node has", .pod = ASKS("'example.com/gpu':'1'"),
          .allocatable = ",'example.com/gpu':'1'", .want = "fits" },
        { .what = "two of one that the node has", .pod = ASKS("'example.com/gpu':'2'"),
          .allocatable = ",'example.com/gpu':'1'", .want = "resources" },
        { .what = "two containers", .pod = "'containers':[" CONTAINER("1500m") "," CONTAINER("2500m") "]",
          .want = "fits" },
        { .what = "two containers, more",
          .pod = "'containers':[" CONTAINER("1500m") "," CONTAINER("2501m") "]", .want = "resources" },
        { .what = "an init container beside none",
          .pod = "'containers':[" CONTAINER("3") "],'initContainers':[" CONTAINER("4") "]", .want = "fits" },
        { .what = "a larger init container",
          .pod = "'containers':[" CONTAINER("3") "],'initContainers':[" CONTAINER("4001m") "]",
          .want = "resources" },
        { .what = "two init containers, one after the other",
          .pod = "'containers':[" CONTAINER("1") "],'initContainers':[" CONTAINER("4") "," CONTAINER("4")
                  "]", .want = "fits" },
        { .what = "a sidecar after an init container",
          .pod = "'containers':[" CONTAINER("1") "],'initContainers':[" CONTAINER("3") "," SIDECAR("2") "]",
          .want = "fits" },
        { .what = "a sidecar before an init container",
          .pod = "'containers':[" CONTAINER("1") "],'initContainers':[" SIDECAR("2") "," CONTAINER("3") "]",
          .want = "resources" },
        { .what = "two sidecars before an init container",
          .pod = "'containers':[" CONTAINER("0") "],'initContainers':[" SIDECAR("1") "," SIDECAR("1") ","
                  CONTAINER("2") "]", .want = "fits" },
        { .what = "two sidecars before a larger one",
          .pod = "'containers':[" CONTAINER("0") "],'initContainers':[" SIDECAR("1") "," SIDECAR("1") ","
                  CONTAINER("2001m") "]", .want = "resources" },
        { .what = "a sidecar beside the containers",
          .pod = "'containers':[" CONTAINER("2") "],'initContainers':[" SIDECAR("2") "]", .want = "fits" },
        { .what = "a larger sidecar beside the containers",
          .pod = "'containers':[" CONTAINER("2") "],'initContainers':[" SIDECAR("2001m") "]",
          .want = "resources" },
        { .what = "the pod's own request is less",
          .pod = RULE_CPU("9") ",'resources':{'requests':{'cpu':'4'}}", .want = "fits" },
        { .what = "the pod's own request is more",
          .pod = RULE_CPU("1") ",'resources':{'requests':{'cpu':'4001m'}}", .want = "resources" },
        { .what = "the pod's own request is for memory",
          .pod = RULE_CPU("4001m") ",'resources':{'requests':{'memory':'1Gi'}}", .want = "resources" },
        { .what = "overhead", .pod = RULE_CPU("3") ",'overhead':{'cpu':'1'}", .want = "fits" },
        { .what = "more overhead", .pod = RULE_CPU("3") ",'overhead':{'cpu':'1001m'}", .want = "resources" },
        { .what = "overhead beside the pod's own request",
          .pod = RULE_CPU("1") ",'resources':{'requests':{'cpu':'3'}},'overhead':{'cpu':'1001m'}",
          .want = "resources" },
        { .what = "what another pod has left", .pod = RULE_CPU("3"), .q = OF_X, .want = "fits" },
        { .what = "more than another pod has left", .pod = RULE_CPU("3001m"), .q = OF_X,
          .want = "resources" },
        { .what = "two that go, for both of which there is room", .pod = RULE_CPU("3"), .q = OF_X,
          .q_on_a = true, .want = "fits" },

        /* host ports */
        { .what = "a port that another pod has", .pod = PORT(""), .q = OF_X, .q_spec = PORT(""),
          .want = "host port" },
        { .what = "another protocol", .pod = PORT(",'protocol':'UDP'"), .q = OF_X, .q_spec = PORT(""),
          .want = "fits" },
        { .what = "the protocol that is the default", .pod = PORT(",'protocol':'TCP'"), .q = OF_X,
          .q_spec = PORT(""), .want = "host port" },
        { .what = "one address", .pod = PORT(",'hostIP':'10.0.0.1'"), .q = OF_X,
          .q_spec = PORT(",'hostIP':'10.0.0.1'"), .want = "host port" },
        { .what = "two addresses", .pod = PORT(",'hostIP':'10.0.0.1'"), .q = OF_X,
          .q_spec = PORT(",'hostIP':'10.0.0.2'"), .want = "fits" },
        { .what = "an address, and all", .pod = PORT(",'hostIP':'10.0.0.1'"), .q = OF_X, .q_spec = PORT(""),
          .want = "host port" },
        { .what = "all, and an address", .pod = PORT(""), .q = OF_X, .q_spec = PORT(",'hostIP':'10.0.0.1'"),
          .want = "host port" },
        { .what = "0.0.0.0 is all", .pod = PORT(",'hostIP':'0.0.0.0'"), .q = OF_X,
          .q_spec = PORT(",'hostIP':'10.0.0.2'"), .want = "host port" },
        { .what = ":: is all", .pod = PORT(",'hostIP':'::'"), .q = OF_X,
          .q_spec = PORT(",'hostIP':'10.0.0.2'"), .want = "host port" },
        { .what = "another port", .pod = PORT(""), .q = OF_X,
          .q_spec = "'containers':[{'name':'c','ports':[{'containerPort':1,'hostPort':81}]}]",
          .want = "fits" },
        { .what = "the second of two ports",
          .pod = "'containers':[{'name':'c','ports':[{'containerPort':1,'hostPort':81},{'containerPort':2,'hostPort':80}]}]",
          .q = OF_X, .q_spec = PORT(""), .want = "host port" },
        { .what = "a port that no host has",
          .pod = "'containers':[{'name':'c','ports':[{'containerPort':80}]}]", .q = OF_X,
          .q_spec = "'containers':[{'name':'c','ports':[{'containerPort':80}]}]", .want = "fits" },
        { .what = "a sidecar's port",
          .pod = RULE_CPU("1") "," PORT_OF("initContainers", ",'restartPolicy':'Always'"), .q = OF_X,
          .q_spec = PORT(""), .want = "host port" },
        { .what = "an init container's port is free again",
          .pod = RULE_CPU("1") "," PORT_OF("initContainers", ""), .q = OF_X, .q_spec = PORT(""),
          .want = "fits" },
        { .what = "a port of a pod that goes as well", .pod = PORT(""), .q = OF_X, .q_spec = PORT(""),
          .q_on_a = true, .want = "host port" },

        /* taints */
        { .what = "a taint", .spec = TAINT(KV), .want = "taint" },
        { .what = "a taint that evicts", .spec = TAINT("'key':'k','effect':'NoExecute'"), .want = "taint" },
        { .what = "a taint that prefers", .spec = TAINT("'key':'k','effect':'PreferNoSchedule'"),
          .want = "fits" },
        { .what = "tolerated", .pod = TOLERATES(KV), .spec = TAINT(KV), .want = "fits" },
        { .what = "another value", .pod = TOLERATES("'key':'k','value':'w','effect':'NoSchedule'"),
          .spec = TAINT(KV), .want = "taint" },
        { .what = "no value", .pod = TOLERATES("'key':'k','effect':'NoSchedule'"), .spec = TAINT(KV),
          .want = "taint" },
        { .what = "no value of either", .pod = TOLERATES("'key':'k'"),
          .spec = TAINT("'key':'k','effect':'NoSchedule'"), .want = "fits" },
        { .what = "another key", .pod = TOLERATES("'key':'l','value':'v','effect':'NoSchedule'"),
          .spec = TAINT(KV), .want = "taint" },
        { .what = "another effect", .pod = TOLERATES("'key':'k','value':'v','effect':'NoExecute'"),
          .spec = TAINT(KV), .want = "taint" },
        { .what = "any effect", .pod = TOLERATES("'key':'k','value':'v'"), .spec = TAINT(KV),
          .want = "fits" },
        { .what = "any value", .pod = TOLERATES("'key':'k','operator':'Exists'"), .spec = TAINT(KV),
          .want = "fits" },
        { .what = "any value of another key", .pod = TOLERATES("'key':'l','operator':'Exists'"),
          .spec = TAINT(KV), .want = "taint" },
        { .what = "any key", .pod = TOLERATES("'operator':'Exists'"), .spec = TAINT(KV), .want = "fits" },
        { .what = "no key, and the same value", .pod = TOLERATES("'value':''"), .spec = TAINT("'key':'k','effect':'NoSchedule'"),
          .want = "taint" },
        { .what = "any key of another effect", .pod = TOLERATES("'operator':'Exists','effect':'NoExecute'"),
          .spec = TAINT(KV), .want = "taint" },
        { .what = "one of two taints", .pod = TOLERATES(KV),
          .spec = "'taints':[{" KV "},{'key':'l','effect':'NoSchedule'}]", .want = "taint" },
        { .what = "both of two taints",
          .pod = RULE_CPU("1") ",'tolerations':[{" KV "},{'key':'l','operator':'Exists'}]",
          .spec = "'taints':[{" KV "},{'key':'l','effect':'NoSchedule'}]", .want = "fits" },
        { .what = "a cordoned node, tolerated or not", .pod = TOLERATES("'operator':'Exists'"),
          .spec = "'unschedulable':true", .want = "not a destination" },

        /* labels of nodes */
        { .what = "a label", .pod = RULE_CPU("1") ",'nodeSelector':{'zone':'1'}", .want = "fits" },
        { .what = "another value of a label", .pod = RULE_CPU("1") ",'nodeSelector':{'zone':'2'}",
          .want = "node affinity" },
        { .what = "a label that the node lacks",
          .pod = RULE_CPU("1") ",'nodeSelector':{'zone':'1','disk':'ssd'}", .want = "node affinity" },
        { .what = "In", .pod = REQUIRED_NODE(LABEL_TERM("zone", "In", "'2','1'")), .want = "fits" },
        { .what = "In, and it is not", .pod = REQUIRED_NODE(LABEL_TERM("zone", "In", "'2','3'")),
          .want = "node affinity" },
        { .what = "In, of a label that the node lacks",
          .pod = REQUIRED_NODE(LABEL_TERM("disk", "In", "'2'")), .want = "node affinity" },
        { .what = "NotIn", .pod = REQUIRED_NODE(LABEL_TERM("zone", "NotIn", "'2'")), .want = "fits" },
        { .what = "NotIn, and it is", .pod = REQUIRED_NODE(LABEL_TERM("zone", "NotIn", "'2','1'")),
          .want = "node affinity" },
        { .what = "NotIn, of a label that the node lacks",
          .pod = REQUIRED_NODE(LABEL_TERM("disk", "NotIn", "'1'")), .want = "fits" },
        { .what = "Exists", .pod = REQUIRED_NODE(LABEL_TERM("zone", "Exists", "")), .want = "fits" },
        { .what = "Exists, and it does not", .pod = REQUIRED_NODE(LABEL_TERM("disk", "Exists", "")),
          .want = "node affinity" },
        { .what = "DoesNotExist", .pod = REQUIRED_NODE(LABEL_TERM("disk", "DoesNotExist", "")),
          .want = "fits" },
        { .what = "DoesNotExist, and it does", .pod = REQUIRED_NODE(LABEL_TERM("zone", "DoesNotExist", "")),
          .want = "node affinity" },
        { .what = "Gt", .pod = REQUIRED_NODE(LABEL_TERM("zone", "Gt", "'0'")), .want = "fits" },
        { .what = "Gt the same", .pod = REQUIRED_NODE(LABEL_TERM("zone", "Gt", "'1'")),
          .want = "node affinity" },
        { .what = "Gt, of a label that the node lacks",
          .pod = REQUIRED_NODE(LABEL_TERM("disk", "Gt", "'0'")), .want = "node affinity" },
        { .what = "Gt, of a label that is no number",
          .pod = REQUIRED_NODE(LABEL_TERM("kubernetes.io/hostname", "Gt", "'0'")), .want = "node affinity" },
        { .what = "Lt", .pod = REQUIRED_NODE(LABEL_TERM("zone", "Lt", "'2'")), .want = "fits" },
        { .what = "Lt the same", .pod = REQUIRED_NODE(LABEL_TERM("zone", "Lt", "'1'")),
          .want = "node affinity" },
        { .what = "Lt, of a label that the node lacks",
          .pod = REQUIRED_NODE(LABEL_TERM("disk", "Lt", "'2'")), .want = "node affinity" },
        { .what = "Lt, of a label that is no number",
          .pod = REQUIRED_NODE(LABEL_TERM("kubernetes.io/hostname", "Lt", "'2'")), .want = "node affinity" },
        { .what = "Gt no number", .pod = REQUIRED_NODE(LABEL_TERM("zone", "Gt", "'none'")),
          .want = "node affinity" },
        { .what = "Gt two numbers", .pod = REQUIRED_NODE(LABEL_TERM("zone", "Gt", "'0','0'")),
          .want = "UNREADABLE" },
        { .what = "In nothing", .pod = REQUIRED_NODE(LABEL_TERM("zone", "In", "")), .want = "UNREADABLE" },
        { .what = "NotIn nothing", .pod = REQUIRED_NODE(LABEL_TERM("zone", "NotIn", "")),
          .want = "UNREADABLE" },
        { .what = "Exists with a value", .pod = REQUIRED_NODE(LABEL_TERM("zone", "Exists", "'1'")),
          .want = "UNREADABLE" },
        { .what = "DoesNotExist with a value",
          .pod = REQUIRED_NODE(LABEL_TERM("disk", "DoesNotExist", "'1'")), .want = "UNREADABLE" },
        { .what = "an operator that nobody knows", .pod = REQUIRED_NODE(LABEL_TERM("zone", "Near", "'1'")),
          .want = "UNREADABLE" },
        { .what = "no key", .pod = REQUIRED_NODE(LABEL_TERM("", "In", "'1'")), .want = "UNREADABLE" },
        { .what = "a value that no label has", .pod = REQUIRED_NODE(LABEL_TERM("zone", "NotIn", "'/'")),
          .want = "node affinity" },
        { .what = "a value that is no text", .pod = REQUIRED_NODE(LABEL_TERM("zone", "In", "1")),
          .want = "UNREADABLE" },
        { .what = "values that are no list",
          .pod = REQUIRED_NODE("{'matchExpressions':[{'key':'zone','operator':'In','values':'1'}]}"),
          .want = "UNREADABLE" },
        { .what = "the node by its name", .pod = REQUIRED_NODE(NAME_TERM("In", "'b'")), .want = "fits" },
        { .what = "another node by its name", .pod = REQUIRED_NODE(NAME_TERM("In", "'c'")),
          .want = "node affinity" },
        { .what = "any node but one", .pod = REQUIRED_NODE(NAME_TERM("NotIn", "'b'")),
          .want = "node affinity" },
        { .what = "any node but another", .pod = REQUIRED_NODE(NAME_TERM("NotIn", "'c'")), .want = "fits" },
        { .what = "two names", .pod = REQUIRED_NODE(NAME_TERM("In", "'b','c'")), .want = "UNREADABLE" },
        { .what = "a name that exists", .pod = REQUIRED_NODE(NAME_TERM("Exists", "")),
          .want = "UNREADABLE" },
        { .what = "a name greater than one", .pod = REQUIRED_NODE(NAME_TERM("Gt", "'1'")),
          .want = "UNREADABLE" },
        { .what = "another field",
          .pod = REQUIRED_NODE("{'matchFields':[{'key':'spec.x','operator':'In','values':['b']}]}"),
          .want = "UNREADABLE" },
        { .what = "no term", .pod = REQUIRED_NODE(""), .want = "UNREADABLE" },
        { .what = "a term of nothing", .pod = REQUIRED_NODE("{}"), .want = "node affinity" },
        { .what = "the second of two terms",
          .pod = REQUIRED_NODE(NAME_TERM("In", "'c'") "," LABEL_TERM("zone", "In", "'1'")), .want = "fits" },
        { .what = "a label, and a term",
          .pod = "'nodeSelector':{'disk':'ssd'}," REQUIRED_NODE(LABEL_TERM("zone", "In", "'1'")),
          .want = "node affinity" },

        /* pods of a domain: q runs on b */
        { .what = "near q", .pod = NEAR(POD_TERM("", "q")), .q = OF_X, .want = "fits" },
        { .what = "near nobody", .pod = NEAR(POD_TERM("", "q")), .want = "pod affinity" },
        { .what = "near q, on a node outside of every zone", .pod = NEAR(POD_TERM("", "q")), .q = OF_X,
          .labels = "'x':'y'", .want = "pod affinity" },
        { .what = "near q of another namespace", .pod = NEAR(POD_TERM("", "q")),
          .q = "'namespace':'y','labels':{'app':'q'}", .want = "pod affinity" },
        { .what = "near q of a named namespace", .pod = NEAR(POD_TERM("'namespaces':['y'],", "q")),
          .q = "'namespace':'y','labels':{'app':'q'}", .want = "fits" },
        { .what = "near q of a namespace that is not named",
          .pod = NEAR(POD_TERM("'namespaces':['y'],", "q")), .q = OF_X, .want = "pod affinity" },
        { .what = "near q of any namespace", .pod = NEAR(POD_TERM("'namespaceSelector':{},", "q")),
          .q = "'namespace':'y','labels':{'app':'q'}", .want = "fits" },
        { .what = "near q of a selected namespace", .pod = NEAR(POD_TERM(TEAM("t"), "q")),
          .q = "'namespace':'y','labels':{'app':'q'}",
          .objects = NAMESPACE("x", "u") "," NAMESPACE("y", "t"), .want = "fits" },
        { .what = "near q of another namespace than the selected", .pod = NEAR(POD_TERM(TEAM("t"), "q")),
          .q = "'namespace':'y','labels':{'app':'q'}",
          .objects = NAMESPACE("x", "t") "," NAMESPACE("y", "u"), .want = "pod affinity" },
        { .what = "near q of a selected namespace, and none was read", .pod = NEAR(POD_TERM(TEAM("t"), "q")),
          .q = "'namespace':'y','labels':{'app':'q'}", .unknown = "namespaces",
          .want = "SNAPSHOT_INCOMPLETE" },
        { .what = "near q of a named namespace, and none was read",
          .pod = NEAR(POD_TERM("'namespaces':['y'],", "q")), .q = "'namespace':'y','labels':{'app':'q'}",
          .unknown = "namespaces", .want = "fits" },
        { .what = "rather near q of a selected namespace, and none was read",
          .pod = RATHER("podAffinity", POD_TERM(TEAM("t"), "q")), .q = OF_X, .unknown = "namespaces",
          .want = "SNAPSHOT_INCOMPLETE" },
        { .what = "apart from q", .pod = APART(POD_TERM("", "q")), .q = OF_X, .want = "pod anti-affinity" },
        { .what = "apart from q in another zone", .pod = APART(POD_TERM("", "q")), .q = OF_X,
          .a = "'zone':'2'", .want = "pod anti-affinity" },
        { .what = "apart from nobody", .pod = APART(POD_TERM("", "q")),
          .q = "'namespace':'x','labels':{'app':'r'}", .want = "fits" },
        { .what = "apart from q of another namespace", .pod = APART(POD_TERM("", "q")),
          .q = "'namespace':'y','labels':{'app':'q'}", .want = "fits" },
        { .what = "q keeps apart from p", .q = OF_X, .q_spec = APART(POD_TERM("", "p")),
          .want = "pod anti-affinity" },
        { .what = "q keeps apart from another", .q = OF_X, .q_spec = APART(POD_TERM("", "r")),
          .want = "fits" },
        { .what = "q of another namespace keeps apart from its own",
          .q = "'namespace':'y','labels':{'app':'q'}", .q_spec = APART(POD_TERM("", "p")), .want = "fits" },
        { .what = "q of another namespace keeps apart from p's", .q = "'namespace':'y','labels':{'app':'q'}",
          .q_spec = APART(POD_TERM("'namespaces':['x'],", "p")), .want = "pod anti-affinity" },
        { .what = "q keeps apart, on a node outside of every zone", .q = OF_X,
          .q_spec = APART(POD_TERM("", "p")), .labels = "'x':'y'", .want = "fits" },
        { .what = "near its own kind, which nobody is yet", .pod = NEAR(POD_TERM("", "p")), .want = "fits" },
        { .what = "near its own kind, which is elsewhere",
          .pod = NEAR("{'topologyKey':'kubernetes.io/hostname','labelSelector':{'matchLabels':{'app':'p'}}}"),
          .q = "'namespace':'x','labels':{'app':'p'}", .want = "fits" },
        { .what = "a term without a key", .pod = NEAR("{'labelSelector':{'matchLabels':{'app':'q'}}}"),
          .q = OF_X, .want = "UNREADABLE" },

        /* spread: p has left zone 1 with node a, where that is a's */
        { .what = "spread, and another of its kind is there", .pod = SPREADS(HARD), .a = "'zone':'2'",
          .q = "'namespace':'x','labels':{'app':'p'}", .want = "topology spread" },
        { .what = "spread by two",
          .pod = RULE_CPU("1")
                  ",'topologySpreadConstraints':[{'topologyKey':'zone','maxSkew':2,'labelSelector':{'matchLabels':{'app':'p'}}"
                  HARD "}]", .a = "'zone':'2'", .q = "'namespace':'x','labels':{'app':'p'}",
          .want = "fits" },
        { .what = "spread anyway", .pod = SPREADS(SOFT), .a = "'zone':'2'",
          .q = "'namespace':'x','labels':{'app':'p'}", .want = "fits" },
        { .what = "spread, unless it says otherwise", .pod = SPREADS(""), .a = "'zone':'2'",
          .q = "'namespace':'x','labels':{'app':'p'}", .want = "topology spread" },
        { .what = "spread, and another kind is there", .pod = SPREADS(HARD), .a = "'zone':'2'", .q = OF_X,
          .want = "fits" },
        { .what = "spread, and another namespace is there", .pod = SPREADS(HARD), .a = "'zone':'2'",
          .q = "'namespace':'y','labels':{'app':'p'}", .want = "fits" },
        { .what = "spread over zones, and the node is in none", .pod = SPREADS(HARD), .labels = "'x':'y'",
          .want = "topology spread" },
        { .what = "spread by a revision that is another", .pod = SPREADS(HARD ",'matchLabelKeys':['rev']"),
          .a = "'zone':'2'", .q = "'namespace':'x','labels':{'app':'p','rev':'2'}", .want = "fits" },
        { .what = "spread by a revision that is the same", .pod = SPREADS(HARD ",'matchLabelKeys':['rev']"),
          .a = "'zone':'2'", .q = "'namespace':'x','labels':{'app':'p','rev':'1'}",
          .want = "topology spread" },
        { .what = "spread by a label that it does not have",
          .pod = SPREADS(HARD ",'matchLabelKeys':['none']"), .a = "'zone':'2'",
          .q = "'namespace':'x','labels':{'app':'p','none':'2'}", .want = "topology spread" },
        { .what = "spread, and a domain is outside of its affinity",
          .pod = "'nodeSelector':{'zone':'1'}," SPREADS(HARD), .a = "'zone':'2'",
          .q = "'namespace':'x','labels':{'app':'p'}", .want = "fits" },
        { .what = "spread, and its affinity is ignored",
          .pod = "'nodeSelector':{'zone':'1'}," SPREADS(HARD ",'nodeAffinityPolicy':'Ignore'"),
          .a = "'zone':'2'", .q = "'namespace':'x','labels':{'app':'p'}", .want = "topology spread" },
        { .what = "spread over more domains than there are", .pod = SPREADS(HARD ",'minDomains':3"),
          .q = "'namespace':'x','labels':{'app':'p'}", .want = "topology spread" },
        { .what = "spread over one domain", .pod = SPREADS(HARD ",'minDomains':1"),
          .q = "'namespace':'x','labels':{'app':'p'}", .want = "fits" },
        { .what = "a constraint without a key",
          .pod = RULE_CPU("1") ",'topologySpreadConstraints':[{'maxSkew':1" HARD "}]",
          .want = "UNREADABLE" },

        /* preferences that hold on a */
        { .what = "prefers a label that b lacks", .pod = PREFERRED_NODE(LABEL_TERM("disk", "Exists", "")),
          .a = "'zone':'1','disk':'ssd'", .wish = true, .want = "preference" },
        { .what = "prefers a label that both have", .pod = PREFERRED_NODE(LABEL_TERM("zone", "Exists", "")),
          .wish = true, .want = "fits" },
        { .what = "prefers a label that neither has",
          .pod = PREFERRED_NODE(LABEL_TERM("disk", "Exists", "")), .wish = true, .want = "fits" },
        { .what = "prefers a label that only b has", .pod = PREFERRED_NODE(LABEL_TERM("disk", "Exists", "")),
          .labels = "'disk':'ssd'", .wish = true, .want = "fits" },
        { .what = "prefers to spread, and b has its kind", .pod = SPREADS(SOFT), .a = "'zone':'2'",
          .q = "'namespace':'x','labels':{'app':'p'}", .wish = true, .want = "preference" },
        { .what = "prefers to spread, and b has another kind", .pod = SPREADS(SOFT), .a = "'zone':'2'",
          .q = OF_X, .wish = true, .want = "fits" },
        { .what = "prefers to spread, and b is in no zone", .pod = SPREADS(SOFT), .labels = "'x':'y'",
          .wish = true, .want = "preference" },
        { .what = "prefers to be near q, which goes, too", .pod = RATHER("podAffinity", POD_TERM("", "q")),
          .a = "'zone':'2'", .q = OF_X, .q_on_a = true, .wish = true, .want = "fits" },
        { .what = "prefers to be near q, which is in one zone with both",
          .pod = RATHER("podAffinity", POD_TERM("", "q")), .q = OF_X, .wish = true, .want = "fits" },
        { .what = "prefers to be near q, and a was not", .pod = RATHER("podAffinity", POD_TERM("", "q")),
          .a = "'zone':'2'", .q = OF_X, .wish = true, .want = "fits" },
        { .what = "prefers to be near a pod of a, and no longer can",
          .pod = RATHER("podAffinity", POD_TERM("", "q")), .labels = "'x':'y'", .q = OF_X, .q_on_a = true,
          .wish = true, .want = "preference" },
        { .what = "prefers to be apart from q", .pod = RATHER("podAntiAffinity", POD_TERM("", "q")),
          .a = "'zone':'2'", .q = OF_X, .wish = true, .want = "preference" },
        { .what = "prefers to be apart from q, and never was",
          .pod = RATHER("podAntiAffinity", POD_TERM("", "q")), .q = OF_X, .wish = true, .want = "fits" },
        { .what = "the second preference, of two kinds",
          .pod = RULE_CPU("1")
                  ",'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':1,'preference':"
                  LABEL_TERM("zone", "Exists", "")
                  "}]},'podAntiAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':1,'podAffinityTerm':"
                  POD_TERM("", "q") "}]}}", .a = "'zone':'2'", .q = OF_X, .wish = true,
          .want = "preference" },
        { .what = "the second preference of one kind",
          .pod = RULE_CPU("1")
                  ",'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':1,'preference':"
                  LABEL_TERM("zone", "Exists", "") "},{'weight':1,'preference':"
                  LABEL_TERM("disk", "Exists", "") "}]}}", .a = "'zone':'1','disk':'ssd'", .wish = true,
          .want = "preference" },

        /* volumes */
        { .what = "a claim that is not there", .pod = MOUNTS, .want = "volume" },
        { .what = "claims that were not read", .pod = MOUNTS,
          .objects = BOUND "," PV("pv", "", CSI("d", "h")), .unknown = "persistentvolumeclaims",
          .want = "SNAPSHOT_INCOMPLETE" },
        { .what = "volumes that were not read", .pod = MOUNTS, .objects = BOUND,
          .unknown = "persistentvolumes", .want = "SNAPSHOT_INCOMPLETE" },
        { .what = "classes that were not read", .pod = MOUNTS,
          .objects = BOUND "," PV("pv", "", CSI("d", "h")), .unknown = "storageclasses",
          .want = "SNAPSHOT_INCOMPLETE" },
        { .what = "limits that were not read", .pod = MOUNTS,
          .objects = BOUND "," PV("pv", "", CSI("d", "h")), .unknown = "csinodes",
          .want = "SNAPSHOT_INCOMPLETE" },
        { .what = "a volume that any node can have", .pod = MOUNTS,
          .objects = BOUND "," PV("pv", "", CSI("d", "h")), .want = "fits" },
        { .what = "a volume that is not there", .pod = MOUNTS, .objects = BOUND, .want = "volume" },
        { .what = "a claim that is being deleted", .pod = MOUNTS,
          .objects = PVC("k", ",'deletionTimestamp':'2026-01-01T00:00:00Z'", "'volumeName':'pv'") ","
                  PV("pv", "", CSI("d", "h")), .want = "volume" },
        { .what = "a volume of this node's kind", .pod = MOUNTS,
          .objects = BOUND "," PV("pv", "", CSI("d", "h") "," ONLY("zone", "1")), .want = "fits" },
        { .what = "a volume of another node's kind", .pod = MOUNTS,
          .objects = BOUND "," PV("pv", "", CSI("d", "h") "," ONLY("zone", "2")), .want = "volume" },
        { .what = "a volume of a kind that nobody can read", .pod = MOUNTS,
          .objects = BOUND ","
                  PV("pv", "", CSI("d", "h") ",'nodeAffinity':{'required':{'nodeSelectorTerms':[" LABEL_TERM("zone", "Near", "'1'") "]}}"),
          .want = "volume" },
        { .what = "a volume in the node's zone", .pod = MOUNTS, .labels = "'" ZONE_LABEL "':'z'",
          .objects = BOUND "," PV("pv", ",'labels':{'" ZONE_LABEL "':'z'}", CSI("d", "h")), .want = "fits" },
        { .what = "a volume in another zone", .pod = MOUNTS, .labels = "'" ZONE_LABEL "':'z2'",
          .objects = BOUND "," PV("pv", ",'labels':{'" ZONE_LABEL "':'z'}", CSI("d", "h")),
          .want = "volume" },
        { .what = "a volume in one of two zones", .pod = MOUNTS, .labels = "'" ZONE_LABEL "':'z'",
          .objects = BOUND "," PV("pv", ",'labels':{'" ZONE_LABEL "':'y__z'}", CSI("d", "h")),
          .want = "fits" },
        { .what = "a volume in two other zones", .pod = MOUNTS, .labels = "'" ZONE_LABEL "':'z'",
          .objects = BOUND "," PV("pv", ",'labels':{'" ZONE_LABEL "':'y__zz'}", CSI("d", "h")),
          .want = "volume" },
        { .what = "a volume in the first of two zones", .pod = MOUNTS, .labels = "'" ZONE_LABEL "':'y'",
          .objects = BOUND "," PV("pv", ",'labels':{'" ZONE_LABEL "':'y__zz'}", CSI("d", "h")),
          .want = "fits" },
        { .what = "a volume in a zone, a node in none", .pod = MOUNTS,
          .objects = BOUND "," PV("pv", ",'labels':{'" ZONE_LABEL "':'z'}", CSI("d", "h")), .want = "fits" },
        { .what = "a volume in a zone, a node in a region alone", .pod = MOUNTS,
          .labels = "'" REGION_LABEL "':'r'",
          .objects = BOUND "," PV("pv", ",'labels':{'" ZONE_LABEL "':'z'}", CSI("d", "h")),
          .want = "volume" },
        { .what = "a volume in the node's region", .pod = MOUNTS, .labels = "'" REGION_LABEL "':'r'",
          .objects = BOUND "," PV("pv", ",'labels':{'" REGION_LABEL "':'r'}", CSI("d", "h")),
          .want = "fits" },
        { .what = "a volume in another region", .pod = MOUNTS, .labels = "'" REGION_LABEL "':'r'",
          .objects = BOUND "," PV("pv", ",'labels':{'" REGION_LABEL "':'s'}", CSI("d", "h")),
          .want = "volume" },
        { .what = "a volume in a region, a node in a zone alone", .pod = MOUNTS,
          .labels = "'" ZONE_LABEL "':'z'",
          .objects = BOUND "," PV("pv", ",'labels':{'" REGION_LABEL "':'s'}", CSI("d", "h")),
          .want = "volume" },
        { .what = "the older label of a zone", .pod = MOUNTS, .labels = "'" ZONE_LABEL "':'z'",
          .objects = BOUND "," PV("pv", ",'labels':{'" BETA_ZONE_LABEL "':'y'}", CSI("d", "h")),
          .want = "volume" },
        { .what = "the older label of the node", .pod = MOUNTS, .labels = "'" BETA_ZONE_LABEL "':'y'",
          .objects = BOUND "," PV("pv", ",'labels':{'" ZONE_LABEL "':'z'}", CSI("d", "h")),
          .want = "volume" },
        { .what = "a disk from before CSI", .pod = MOUNTS,
          .objects = BOUND "," PV("pv", "", "'storageClassName':'s'") "," CLASS("kubernetes.io/aws-ebs", ""),
          .want = "volume" },
        { .what = "a local volume", .pod = MOUNTS,
          .objects = BOUND "," PV("pv", "", "'storageClassName':'s'") ","
                  CLASS("kubernetes.io/no-provisioner", ""), .want = "fits" },
        { .what = "a volume of somebody's provisioner", .pod = MOUNTS,
          .objects = BOUND "," PV("pv", "", "'storageClassName':'s'") "," CLASS("nfs", ""), .want = "fits" },
        { .what = "a volume of CSI with a class from before", .pod = MOUNTS,
          .objects = BOUND "," PV("pv", "", CSI("d", "h") ",'storageClassName':'s'") ","
                  CLASS("kubernetes.io/aws-ebs", ""), .want = "fits" },
        { .what = "made for the node", .pod = MOUNTS, .objects = UNBOUND "," CLASS("ebs.csi.aws.com", WAITS),
          .want = "fits" },
        { .what = "made at once", .pod = MOUNTS, .objects = UNBOUND "," CLASS("ebs.csi.aws.com", ""),
          .want = "volume" },
        { .what = "made by a driver whose room nobody knows", .pod = MOUNTS,
          .objects = UNBOUND "," CLASS("lvm.example.com", WAITS), .want = "volume" },
        { .what = "of a class that is not there", .pod = MOUNTS, .objects = UNBOUND, .want = "volume" },
        { .what = "of no class", .pod = MOUNTS, .objects = PVC("k", "", ""), .want = "volume" },
        { .what = "made in the node's topology", .pod = MOUNTS,
          .objects = UNBOUND "," CLASS("ebs.csi.aws.com", WAITS TOPOLOGY("zone", "1")), .want = "fits" },
        { .what = "made in another topology", .pod = MOUNTS,
          .objects = UNBOUND "," CLASS("ebs.csi.aws.com", WAITS TOPOLOGY("zone", "2")), .want = "volume" },
        { .what = "made in a topology without a key", .pod = MOUNTS,
          .objects = UNBOUND "," CLASS("ebs.csi.aws.com", WAITS TOPOLOGY("", "1")), .want = "volume" },
        { .what = "made in a topology of nothing", .pod = MOUNTS,
          .objects = UNBOUND ","
                  CLASS("ebs.csi.aws.com", WAITS ",'allowedTopologies':[{'matchLabelExpressions':[]}]"),
          .want = "volume" },
        { .what = "a volume for one pod", .pod = MOUNTS,
          .objects = PVC("k", "", "'volumeName':'pv','accessModes':['ReadWriteOncePod']") ","
                  PV("pv", "", CSI("d", "h")), .want = "fits" },
        { .what = "a volume for one pod, and two mount it", .pod = MOUNTS, .q = OF_X, .q_spec = MOUNTS,
          .objects = PVC("k", "", "'volumeName':'pv','accessModes':['ReadWriteOncePod']") ","
                  PV("pv", "", CSI("d", "h")), .want = "volume" },
        { .what = "a volume that two pods mount", .pod = MOUNTS, .q = OF_X, .q_spec = MOUNTS,
          .objects = BOUND "," PV("pv", "", CSI("d", "h")) "," LIMIT("d", "1"), .want = "fits" },

        /* volumes that a node may have */
#define TWO_VOLUMES BOUND "," PV("pv", "", CSI("d", "h")) "," PVC("l", "", "'volumeName':'pw'") "," PV("pw", "", CSI("d", "i"))
        { .what = "one of one", .pod = MOUNTS,
          .objects = BOUND "," PV("pv", "", CSI("d", "h")) "," LIMIT("d", "1"), .want = "fits" },
        { .what = "one of none", .pod = MOUNTS,
          .objects = BOUND "," PV("pv", "", CSI("d", "h")) "," LIMIT("d", "0"), .want = "volume limit" },
        { .what = "one of another driver", .pod = MOUNTS,
          .objects = BOUND "," PV("pv", "", CSI("d", "h")) "," LIMIT("e", "0"), .want = "fits" },
        { .what = "two of two", .pod = MOUNTS_TWO, .objects = TWO_VOLUMES "," LIMIT("d", "2"),
          .want = "fits" },
        { .what = "two of one", .pod = MOUNTS_TWO, .objects = TWO_VOLUMES "," LIMIT("d", "1"),
          .want = "volume limit" },
        { .what = "one beside another pod's, of two", .pod = MOUNTS, .q = OF_X,
          .q_spec = RULE_CPU("1") ",'volumes':[{'name':'w','persistentVolumeClaim':{'claimName':'l'}}]",
          .objects = TWO_VOLUMES "," LIMIT("d", "2"), .want = "fits" },
        { .what = "one beside another pod's, of one", .pod = MOUNTS, .q = OF_X,
          .q_spec = RULE_CPU("1") ",'volumes':[{'name':'w','persistentVolumeClaim':{'claimName':'l'}}]",
          .objects = TWO_VOLUMES "," LIMIT("d", "1"), .want = "volume limit" },
        { .what = "two, one of which another pod has, of two", .pod = MOUNTS_TWO, .q = OF_X,
          .q_spec = MOUNTS, .objects = TWO_VOLUMES "," LIMIT("d", "2"), .want = "fits" },
        { .what = "one beside one that is still attached, of one", .pod = MOUNTS,
          .attached = "{'name':'kubernetes.io/csi/d^old'}",
          .objects = BOUND "," PV("pv", "", CSI("d", "h")) "," LIMIT("d", "1"), .want = "volume limit" },
        { .what = "one beside one that is still attached, of two", .pod = MOUNTS,
          .attached = "{'name':'kubernetes.io/csi/d^old'}",
          .objects = BOUND "," PV("pv", "", CSI("d", "h")) "," LIMIT("d", "2"), .want = "fits" },
        { .what = "one beside two that are still attached, of two", .pod = MOUNTS,
          .attached = "{'name':'kubernetes.io/csi/d^old'},{'name':'kubernetes.io/csi/d^older'}",
          .objects = BOUND "," PV("pv", "", CSI("d", "h")) "," LIMIT("d", "2"), .want = "volume limit" },
        { .what = "one beside one of another driver that is still attached", .pod = MOUNTS,
          .attached = "{'name':'kubernetes.io/csi/dd^old'}",
          .objects = BOUND "," PV("pv", "", CSI("d", "h")) "," LIMIT("d", "1"), .want = "fits" },
        { .what = "an attachment that is no CSI's", .pod = MOUNTS,
          .attached = "{'name':'kubernetes.io/aws-ebs/d^old'}",
          .objects = BOUND "," PV("pv", "", CSI("d", "h")) "," LIMIT("d", "1"), .want = "fits" },
        { .what = "another pod's, which is attached", .pod = MOUNTS, .q = OF_X,
          .q_spec = RULE_CPU("1") ",'volumes':[{'name':'w','persistentVolumeClaim':{'claimName':'l'}}]",
          .attached = "{'name':'kubernetes.io/csi/d^i'}", .objects = TWO_VOLUMES "," LIMIT("d", "2"),
          .want = "fits" },
        { .what = "another pod's, and one more that is attached", .pod = MOUNTS, .q = OF_X,
          .q_spec = RULE_CPU("1") ",'volumes':[{'name':'w','persistentVolumeClaim':{'claimName':'l'}}]",
          .attached = "{'name':'kubernetes.io/csi/d^j'}", .objects = TWO_VOLUMES "," LIMIT("d", "2"),
          .want = "volume limit" },
        { .what = "made for the node, which has room for none", .pod = MOUNTS,
          .objects = UNBOUND "," CLASS("ebs.csi.aws.com", WAITS) "," LIMIT("ebs.csi.aws.com", "0"),
          .want = "volume limit" },

        /* pods that are not modelled */
        { .what = "a scheduler of its own", .pod = RULE_CPU("1") ",'schedulerName':'mine'",
          .want = "FOREIGN_SCHEDULER" },
        { .what = "the scheduler by its name", .pod = RULE_CPU("1") ",'schedulerName':'default-scheduler'",
          .want = "fits" },
        { .what = "resource claims",
          .pod = RULE_CPU("1") ",'resourceClaims':[{'name':'r','resourceClaimName':'r'}]",
          .want = "RESOURCE_CLAIMS" },
        { .what = "a disk that is no PersistentVolume",
          .pod = RULE_CPU("1") ",'volumes':[{'name':'v','awsElasticBlockStore':{'volumeID':'v'}}]",
          .want = "DISK_INSIDE" },
        { .what = "a volume that every node has",
          .pod = RULE_CPU("1")
                  ",'volumes':[{'name':'v','emptyDir':{}},{'name':'w','configMap':{'name':'m'}}]",
          .want = "fits" },
};
