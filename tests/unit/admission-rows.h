/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The tables of the rules of the webhook. test-admission-review.c and test-admission-exempt.c ask the rules;
 * test-admission-rows.c asks the webhook of a coordinator. */

#include "admission-review.h"

/* JSON in which ' stands for ". */
#define REVIEW(request) "{'apiVersion':'admission.k8s.io/v1','kind':'AdmissionReview','request':" request "}"
#define NODES \
        "'kind':{'group':'','version':'v1','kind':'Node'},'resource':{'group':'','version':'v1','resource':'nodes'}"
#define CLAIMS \
        "'kind':{'group':'vesper.sh','version':'v1alpha1','kind':'NodeClaim'}," \
        "'resource':{'group':'vesper.sh','version':'v1alpha1','resource':'nodeclaims'}"
#define NODE \
        "{'apiVersion':'v1','kind':'Node','metadata':{'name':'n1','uid':'node-uid','labels':{'pool':'a'}}}"
#define CLAIM \
        "{'apiVersion':'vesper.sh/v1alpha1','kind':'NodeClaim','metadata':{'name':'c1','uid':'claim-uid'}}"

static const struct AdmissionRequestRow {
        const char *what, *body;
        AdmissionSubject subject;
        const char *object, *username;
        bool dry_run;
} admission_requests[] = {
        { "a Node",
          REVIEW("{'uid':'u'," NODES
                 ",'name':'n1','operation':'DELETE','userInfo':{'username':'alice','groups':['dev',"
                 "'system:authenticated']},'object':null,'oldObject':" NODE ",'dryRun':false,'options':{}}"),
          ADMISSION_NODE_DELETE, "node-uid", "alice", false },
        { "a NodeClaim", REVIEW("{'uid':'u'," CLAIMS ",'operation':'DELETE','oldObject':" CLAIM "}"),
          ADMISSION_CLAIM_DELETE, "claim-uid", "", false },
        { "one Node of many: no name in the request",
          REVIEW("{'uid':'u'," NODES
                 ",'operation':'DELETE','userInfo':{'username':'alice'},'oldObject':" NODE "}"),
          ADMISSION_NODE_DELETE, "node-uid", "alice", false },
        { "a dry run",
          REVIEW("{'uid':'u'," NODES ",'operation':'DELETE','dryRun':true,'oldObject':" NODE "}"),
          ADMISSION_NODE_DELETE, "node-uid", "", true },
        { "a Node with a field that cannot be read",
          REVIEW("{'uid':'u'," NODES
                 ",'operation':'DELETE','oldObject':{'metadata':{'name':'n1','uid':'node-uid'},"
                 "'spec':{'unschedulable':7}}}"),
          ADMISSION_NODE_DELETE, "node-uid", "", false },
        { "another operation",
          REVIEW("{'uid':'u'," NODES ",'operation':'UPDATE','object':" NODE ",'oldObject':" NODE "}"),
          ADMISSION_OTHER, NULL, "", false },
        { "another operation, without an object", REVIEW("{'uid':'u'," NODES ",'operation':'CONNECT'}"),
          ADMISSION_OTHER, NULL, "", false },
        { "a subresource",
          REVIEW("{'uid':'u'," NODES ",'operation':'DELETE','subResource':'status','oldObject':" NODE "}"),
          ADMISSION_OTHER, NULL, "", false },
        { "another kind",
          REVIEW("{'uid':'u','resource':{'group':'','version':'v1','resource':'pods'},'operation':'DELETE','oldObject':{}}"),
          ADMISSION_OTHER, NULL, "", false },
        { "somebody else's nodes",
          REVIEW("{'uid':'u','resource':{'group':'example.org','version':'v1','resource':'nodes'},'operation':'DELETE'}"),
          ADMISSION_OTHER, NULL, "", false },
        { "Karpenter's NodeClaim",
          REVIEW("{'uid':'u','resource':{'group':'karpenter.sh','version':'v1','resource':'nodeclaims'},'operation':'DELETE'}"),
          ADMISSION_OTHER, NULL, "", false },
};

static const struct AdmissionUnreadableRow {
        const char *body, *message;
} admission_unreadable[] = {
        { "", "cannot be read" },
        { "nodes", "at byte 0" },
        { "[]", "it is no AdmissionReview of admission.k8s.io/v1" },
        { "{'apiVersion':'admission.k8s.io/v1beta1','kind':'AdmissionReview','request':{'uid':'u'}}",
          "it is no AdmissionReview of admission.k8s.io/v1" },
        { "{'apiVersion':'admission.k8s.io/v1','kind':'Status'}", "it is no AdmissionReview" },
        { "{'apiVersion':'admission.k8s.io/v1','kind':'AdmissionReview'}", "request is missing" },
        { REVIEW("null"), "request is no object" },
        { REVIEW("{}"), "request.uid is missing" },
        { REVIEW("{'uid':7}"), "request.uid is no string" },
        { REVIEW("{'uid':'a','uid':'b'}"), "at byte" },
        { REVIEW("{'uid':'u','operation':'DELETE'}"), "request.resource is missing" },
        { REVIEW("{'uid':'u'," NODES ",'operation':['DELETE'],'oldObject':" NODE "}"),
          "request.operation is no string" },
        { REVIEW("{'uid':'u'," NODES ",'operation':'DELETE','dryRun':'true','oldObject':" NODE "}"),
          "request.dryRun is neither true nor false" },
        { REVIEW("{'uid':'u'," NODES ",'operation':'DELETE'}"), "request.oldObject is missing" },
        { REVIEW("{'uid':'u'," NODES ",'operation':'DELETE','oldObject':null}"),
          "request.oldObject is no object" },
        { REVIEW("{'uid':'u'," NODES ",'operation':'DELETE','oldObject':{'metadata':{'uid':'x'}}}"),
          "request.oldObject is no Node of v1 with a name" },
        { REVIEW("{'uid':'u'," NODES ",'operation':'DELETE','oldObject':" CLAIM "}"),
          "request.oldObject is no Node of v1 with a name" },
        { REVIEW("{'uid':'u'," CLAIMS ",'operation':'DELETE','oldObject':" NODE "}"),
          "request.oldObject is no NodeClaim of vesper.sh/v1alpha1 with a name" },
        { REVIEW("{'uid':'u'," NODES ",'operation':'DELETE','oldObject':{'metadata':{'name':'n1'}}}"),
          "request.oldObject.metadata.uid is missing" },
        { REVIEW("{'uid':'u'," NODES ",'operation':'DELETE','userInfo':'alice','oldObject':" NODE "}"),
          "request.userInfo is no object" },
        { REVIEW("{'uid':'u'," NODES ",'operation':'DELETE','userInfo':{'groups':'dev'},'oldObject':" NODE
                 "}"),
          "request.userInfo.groups is no array" },
        { REVIEW("{'uid':'u'," NODES
                 ",'operation':'DELETE','userInfo':{'groups':['dev',1]},'oldObject':" NODE "}"),
          "request.userInfo.groups is no string" },
};

#define ADMISSION_OURS "system:serviceaccount:vesper-system:vesper-coordinator"

/* Exempt users as configured, NULL-terminated. The last name has every character that CEL or RE2 treats
 * specially. */
static char *const admission_configured[] = {
        (char *) "system:serviceaccount:ops:*", (char *) "oidc:*@robots.example.org", (char *) "d*e*f",
        (char *) "*\\.+?()|[]{}^$\"'x",         (char *) "a\\.+?()|[]{}^$\"'z",       NULL
};

static const struct AdmissionUserRow {
        const char *username;
        bool always, if_configured;
} admission_users[] = {
        { "system:serviceaccount:kube-system:node-controller", true, true },
        { "system:serviceaccount:kube-system:cloud-controller-manager", true, true },
        { "system:serviceaccount:kube-system:hcloud-cloud-controller-manager", true, true },
        { "system:serviceaccount:kube-system:cloud-controller-manager-2", false, false },
        { "system:serviceaccount:default:cloud-controller-manager", false, false },
        { "system:cloud-controller-manager", true, true },
        { "k3s-cloud-controller-manager", true, true },
        { "eks:cloud-controller-manager", true, true },
        { "eks:node-manager", false, false }, /* drains; deletes no Node */
        { "system:gcp-controller-manager", true, true },
        { "system:serviceaccount:capi-system:capi-manager", true, true },
        { "system:serviceaccount:karpenter:karpenter", true, true },
        { "system:serviceaccount:kube-system:karpenter", true, true },
        { "system:serviceaccount:kube-system:generic-garbage-collector", false, false },
        { "system:serviceaccount:kube-system:node-controller2", false, false },
        { "xsystem:serviceaccount:kube-system:node-controller", false, false },
        { "system:node:n1", false, false },
        { ADMISSION_OURS, false, false },
        { "kubernetes-admin", false, false },
        { "", false, false },
        { "system:serviceaccount:ops:cleaner", false, true },
        { "system:serviceaccount:ops2:cleaner", false, false },
        { "oidc:reaper@robots.example.org", false, true },
        { "oidc:alice@example.org", false, false },
        { "oidc:reaper@robotsxexample.org", false, false },
        { "def", false, true },
        { "d-e-e-f", false, true },
        { "d-f", false, false },
        { "defg", false, false },
        { "\\.+?()|[]{}^$\"'x", false, true },
        { "many\\.+?()|[]{}^$\"'x", false, true },
        { "many\\.+?()|[]{}^$\"'y", false, false },
        { "a\\.+?()|[]{}^$\"'z", false, true },
        { "a\\x+?()|[]{}^$\"'z", false, false },
};
