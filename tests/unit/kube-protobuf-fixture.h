/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What kube-apiserver v1.34 has sent, byte by byte: the same questions of tests/contract/contract-protobuf.c
 * go to a real one. Each has a NUL behind it that was not sent. */

/* clang-format off: made by a program */
/* GET /api/v1/pods?limit=2: web-1, which has everything that is read, and web-2 with almost nothing */
static const char fixture_page[] =
        "k8s\000\012\015\012\002v1\022\007PodList\022\274\024\012\011\012\000\022\003204\032\000\022\365"
        "\015\012\276\012\012\005web-1\022\000\032\003web\"\000*$6465578e-7cc1-4ed3-85a2-d87636d5a39c2\0032"
        "038\001B\010\010\376\263\212\330\006\020\000Z\012\012\003app\022\003webZ\011\012\005empty\022\000b"
        "\034\012\026vesper.sh/do-not-evict\022\002nob\006\012\001x\022\001yjB\012\012ReplicaSet\032\003web"
        "\"$11111111-2222-3333-4444-555555555555*\007apps/v10\001r\020test.vesper.sh/a\212\001\366\006\012"
        "\007capture\022\006Update\032\002v1\"\010\010\376\263\212\330\006\020\0002\010FieldsV1:\310\006"
        "\012\305\006{\"f:metadata\":{\"f:annotations\":{\".\":{},\"f:vesper.sh/do-not-evict\":{},\"f:x\":{"
        "}},\"f:finalizers\":{\".\":{},\"v:\\\"test.vesper.sh/a\\\"\":{}},\"f:labels\":{\".\":{},\"f:app\":"
        "{},\"f:empty\":{}},\"f:ownerReferences\":{\".\":{},\"k:{\\\"uid\\\":\\\"11111111-2222-3333-4444-55"
        "5555555555\\\"}\":{}}},\"f:spec\":{\"f:automountServiceAccountToken\":{},\"f:containers\":{\"k:{\\"
        "\"name\\\":\\\"c\\\"}\":{\".\":{},\"f:image\":{},\"f:imagePullPolicy\":{},\"f:name\":{},\"f:resour"
        "ces\":{},\"f:terminationMessagePath\":{},\"f:terminationMessagePolicy\":{}}},\"f:dnsPolicy\":{},\""
        "f:enableServiceLinks\":{},\"f:nodeName\":{},\"f:restartPolicy\":{},\"f:schedulerName\":{},\"f:secu"
        "rityContext\":{},\"f:terminationGracePeriodSeconds\":{},\"f:tolerations\":{},\"f:volumes\":{\".\":"
        "{},\"k:{\\\"name\\\":\\\"e\\\"}\":{\".\":{},\"f:emptyDir\":{},\"f:name\":{}},\"k:{\\\"name\\\":\\"
        "\"p\\\"}\":{\".\":{},\"f:name\":{},\"f:persistentVolumeClaim\":{\".\":{},\"f:claimName\":{}}}}}}B"
        "\000\212\001\346\001\012\007capture\022\006Update\032\002v1\"\010\010\376\263\212\330\006\020\0002"
        "\010FieldsV1:\262\001\012\257\001{\"f:status\":{\"f:conditions\":{\".\":{},\"k:{\\\"type\\\":\\\"R"
        "eady\\\"}\":{\".\":{},\"f:lastProbeTime\":{},\"f:lastTransitionTime\":{},\"f:status\":{},\"f:type"
        "\":{}}},\"f:phase\":{},\"f:startTime\":{}}}B\006status\022\350\002\012\011\012\001e\022\004\022"
        "\002\012\000\012\014\012\001p\022\007R\005\012\001c\020\000\0228\012\001c\022\001i*\000B\000j\024/"
        "dev/termination-logr\006Always\200\001\000\210\001\000\220\001\000\242\001\004File\032\006Always Z"
        "2\014ClusterFirstB\007defaultJ\007defaultR\002n1X\000`\000h\000r\000\202\001\000\212\001\000\232"
        "\001\021default-scheduler\250\001\000\262\001+\012\023vesper.sh/disrupted\022\006Exists\032\000\""
        "\012NoSchedule\262\0016\012\034node.kubernetes.io/not-ready\022\006Exists\032\000\"\011NoExecute("
        "\254\002\262\0018\012\036node.kubernetes.io/unreachable\022\006Exists\032\000\"\011NoExecute(\254"
        "\002\302\001\000\310\001\000\360\001\001\372\001\024PreemptLowerPriority\032G\012\007Running\022"
        "\027\012\005Ready\022\004True\032\000\"\000*\0002\0008\000\032\000\"\000*\0002\000:\010\010\365"
        "\207\247\332\006\020\000J\012BestEffortZ\000r\000\210\001\000\022\266\006\012\353\003\012\005web-2"
        "\022\000\032\003web\"\000*$de9a57df-c8af-4c02-ae1d-c94802659e122\0032048\001B\010\010\376\263\212"
        "\330\006\020\000\212\001\240\003\012\007capture\022\006Update\032\002v1\"\010\010\376\263\212\330"
        "\006\020\0002\010FieldsV1:\362\002\012\357\002{\"f:spec\":{\"f:automountServiceAccountToken\":{},"
        "\"f:containers\":{\"k:{\\\"name\\\":\\\"c\\\"}\":{\".\":{},\"f:image\":{},\"f:imagePullPolicy\":{}"
        ",\"f:name\":{},\"f:resources\":{},\"f:terminationMessagePath\":{},\"f:terminationMessagePolicy\":{"
        "}}},\"f:dnsPolicy\":{},\"f:enableServiceLinks\":{},\"f:restartPolicy\":{},\"f:schedulerName\":{},"
        "\"f:securityContext\":{},\"f:terminationGracePeriodSeconds\":{}}}B\000\022\237\002\0228\012\001c"
        "\022\001i*\000B\000j\024/dev/termination-logr\006Always\200\001\000\210\001\000\220\001\000\242"
        "\001\004File\032\006Always \0362\014ClusterFirstB\007defaultJ\007defaultR\000X\000`\000h\000r\000"
        "\202\001\000\212\001\000\232\001\021default-scheduler\250\001\000\262\0016\012\034node.kubernetes."
        "io/not-ready\022\006Exists\032\000\"\011NoExecute(\254\002\262\0018\012\036node.kubernetes.io/unre"
        "achable\022\006Exists\032\000\"\011NoExecute(\254\002\302\001\000\310\001\000\360\001\001\372\001"
        "\024PreemptLowerPriority\032$\012\007Pending\032\000\"\000*\0002\000J\012BestEffortZ\000r\000\210"
        "\001\000\032\000\"\000";

/* A watch of pods: ADDED, MODIFIED, DELETED */
static const char fixture_frames[] =
        "\000\000\003Y\012\005ADDED\022\317\006\012\314\006k8s\000\012\011\012\002v1\022\003Pod\022\266\006"
        "\012\353\003\012\005web-2\022\000\032\003web\"\000*$de9a57df-c8af-4c02-ae1d-c94802659e122\0032048"
        "\001B\010\010\376\263\212\330\006\020\000\212\001\240\003\012\007capture\022\006Update\032\002v1\""
        "\010\010\376\263\212\330\006\020\0002\010FieldsV1:\362\002\012\357\002{\"f:spec\":{\"f:automountSe"
        "rviceAccountToken\":{},\"f:containers\":{\"k:{\\\"name\\\":\\\"c\\\"}\":{\".\":{},\"f:image\":{},"
        "\"f:imagePullPolicy\":{},\"f:name\":{},\"f:resources\":{},\"f:terminationMessagePath\":{},\"f:term"
        "inationMessagePolicy\":{}}},\"f:dnsPolicy\":{},\"f:enableServiceLinks\":{},\"f:restartPolicy\":{},"
        "\"f:schedulerName\":{},\"f:securityContext\":{},\"f:terminationGracePeriodSeconds\":{}}}B\000\022"
        "\237\002\0228\012\001c\022\001i*\000B\000j\024/dev/termination-logr\006Always\200\001\000\210\001"
        "\000\220\001\000\242\001\004File\032\006Always \0362\014ClusterFirstB\007defaultJ\007defaultR\000X"
        "\000`\000h\000r\000\202\001\000\212\001\000\232\001\021default-scheduler\250\001\000\262\0016\012"
        "\034node.kubernetes.io/not-ready\022\006Exists\032\000\"\011NoExecute(\254\002\262\0018\012\036nod"
        "e.kubernetes.io/unreachable\022\006Exists\032\000\"\011NoExecute(\254\002\302\001\000\310\001\000"
        "\360\001\001\372\001\024PreemptLowerPriority\032$\012\007Pending\032\000\"\000*\0002\000J\012BestE"
        "ffortZ\000r\000\210\001\000\032\000\"\000\000\000\003h\012\010MODIFIED\022\333\006\012\330\006k8s"
        "\000\012\011\012\002v1\022\003Pod\022\302\006\012\367\003\012\005web-2\022\000\032\003web\"\000*$d"
        "e9a57df-c8af-4c02-ae1d-c94802659e122\0032078\002B\010\010\376\263\212\330\006\020\000J\010\010\376"
        "\263\212\330\006\020\000P\000\212\001\240\003\012\007capture\022\006Update\032\002v1\"\010\010\376"
        "\263\212\330\006\020\0002\010FieldsV1:\362\002\012\357\002{\"f:spec\":{\"f:automountServiceAccount"
        "Token\":{},\"f:containers\":{\"k:{\\\"name\\\":\\\"c\\\"}\":{\".\":{},\"f:image\":{},\"f:imagePull"
        "Policy\":{},\"f:name\":{},\"f:resources\":{},\"f:terminationMessagePath\":{},\"f:terminationMessag"
        "ePolicy\":{}}},\"f:dnsPolicy\":{},\"f:enableServiceLinks\":{},\"f:restartPolicy\":{},\"f:scheduler"
        "Name\":{},\"f:securityContext\":{},\"f:terminationGracePeriodSeconds\":{}}}B\000\022\237\002\0228"
        "\012\001c\022\001i*\000B\000j\024/dev/termination-logr\006Always\200\001\000\210\001\000\220\001"
        "\000\242\001\004File\032\006Always \0362\014ClusterFirstB\007defaultJ\007defaultR\000X\000`\000h"
        "\000r\000\202\001\000\212\001\000\232\001\021default-scheduler\250\001\000\262\0016\012\034node.ku"
        "bernetes.io/not-ready\022\006Exists\032\000\"\011NoExecute(\254\002\262\0018\012\036node.kubernete"
        "s.io/unreachable\022\006Exists\032\000\"\011NoExecute(\254\002\302\001\000\310\001\000\360\001\001"
        "\372\001\024PreemptLowerPriority\032$\012\007Pending\032\000\"\000*\0002\000J\012BestEffortZ\000r"
        "\000\210\001\000\032\000\"\000\000\000\003g\012\007DELETED\022\333\006\012\330\006k8s\000\012\011"
        "\012\002v1\022\003Pod\022\302\006\012\367\003\012\005web-2\022\000\032\003web\"\000*$de9a57df-c8af"
        "-4c02-ae1d-c94802659e122\0032088\002B\010\010\376\263\212\330\006\020\000J\010\010\376\263\212\330"
        "\006\020\000P\000\212\001\240\003\012\007capture\022\006Update\032\002v1\"\010\010\376\263\212\330"
        "\006\020\0002\010FieldsV1:\362\002\012\357\002{\"f:spec\":{\"f:automountServiceAccountToken\":{},"
        "\"f:containers\":{\"k:{\\\"name\\\":\\\"c\\\"}\":{\".\":{},\"f:image\":{},\"f:imagePullPolicy\":{}"
        ",\"f:name\":{},\"f:resources\":{},\"f:terminationMessagePath\":{},\"f:terminationMessagePolicy\":{"
        "}}},\"f:dnsPolicy\":{},\"f:enableServiceLinks\":{},\"f:restartPolicy\":{},\"f:schedulerName\":{},"
        "\"f:securityContext\":{},\"f:terminationGracePeriodSeconds\":{}}}B\000\022\237\002\0228\012\001c"
        "\022\001i*\000B\000j\024/dev/termination-logr\006Always\200\001\000\210\001\000\220\001\000\242"
        "\001\004File\032\006Always \0362\014ClusterFirstB\007defaultJ\007defaultR\000X\000`\000h\000r\000"
        "\202\001\000\212\001\000\232\001\021default-scheduler\250\001\000\262\0016\012\034node.kubernetes."
        "io/not-ready\022\006Exists\032\000\"\011NoExecute(\254\002\262\0018\012\036node.kubernetes.io/unre"
        "achable\022\006Exists\032\000\"\011NoExecute(\254\002\302\001\000\310\001\000\360\001\001\372\001"
        "\024PreemptLowerPriority\032$\012\007Pending\032\000\"\000*\0002\000J\012BestEffortZ\000r\000\210"
        "\001\000\032\000\"\000";

/* GET /api/v1/nodes: n1 */
static const char fixture_nodes[] =
        "k8s\000\012\016\012\002v1\022\010NodeList\022\260\006\012\011\012\000\022\003211\032\000\022\242"
        "\006\012\344\004\012\002n1\022\000\032\000\"\000*$d98743f0-4d31-497a-88fe-8bb7a64918b92\0032118"
        "\000B\010\010\206\264\212\330\006\020\000Z\011\012\004pool\022\001ab\020\012\013vesper.sh/x\022"
        "\0011\212\001\315\001\012\007capture\022\006Update\032\002v1\"\010\010\206\264\212\330\006\020\000"
        "2\010FieldsV1:\237\001\012\234\001{\"f:metadata\":{\"f:annotations\":{\".\":{},\"f:vesper.sh/x\":{"
        "}},\"f:labels\":{\".\":{},\"f:pool\":{}}},\"f:spec\":{\"f:providerID\":{},\"f:taints\":{},\"f:unsc"
        "hedulable\":{}}}B\000\212\001\261\002\012\007capture\022\006Update\032\002v1\"\010\010\206\264\212"
        "\330\006\020\0002\010FieldsV1:\375\001\012\372\001{\"f:status\":{\"f:conditions\":{\".\":{},\"k:{"
        "\\\"type\\\":\\\"Ready\\\"}\":{\".\":{},\"f:lastHeartbeatTime\":{},\"f:lastTransitionTime\":{},\"f"
        ":message\":{},\"f:reason\":{},\"f:status\":{},\"f:type\":{}}},\"f:nodeInfo\":{\"f:bootID\":{}},\"f"
        ":volumesAttached\":{},\"f:volumesInUse\":{}}}B\006status\022c\012\000\022\000\032\014aws:///a/i-1 "
        "\001*\037\012\003gpu\022\003yes\032\011NoExecute\"\010\010\304\243\247\332\006\020\000*,\012\034no"
        "de.kubernetes.io/not-ready\022\000\032\012NoSchedule\032T\032\000\"'\012\005Ready\022\004True\032"
        "\010\010\360\207\247\332\006\020\000\"\010\010\360\207\247\332\006\020\000*\001r2\001m2\004\012"
        "\002\010\000:\026\012\000\022\000\032\002b1\"\000*\0002\000:\000B\000J\000R\000J\001vR\006\012\001"
        "v\022\001d\032\000\"\000";

/* GET /apis/policy/v1/poddisruptionbudgets: web */
static const char fixture_pdbs[] =
        "k8s\000\012$\012\011policy/v1\022\027PodDisruptionBudgetList\022\354\003\012\011\012\000\022\00321"
        "3\032\000\022\336\003\012\225\003\012\003web\022\000\032\003web\"\000*$f5bcff28-7683-4663-81e2-c35"
        "5d76a49752\0032138\001B\010\010\206\264\212\330\006\020\000\212\001\210\001\012\007capture\022\006"
        "Update\032\011policy/v1\"\010\010\206\264\212\330\006\020\0002\010FieldsV1:T\012R{\"f:spec\":{\"f:"
        "minAvailable\":{},\"f:selector\":{},\"f:unhealthyPodEvictionPolicy\":{}}}B\000\212\001\300\001\012"
        "\007capture\022\006Update\032\011policy/v1\"\010\010\206\264\212\330\006\020\0002\010FieldsV1:\205"
        "\001\012\202\001{\"f:status\":{\"f:currentHealthy\":{},\"f:desiredHealthy\":{},\"f:disruptionsAllo"
        "wed\":{},\"f:expectedPods\":{},\"f:observedGeneration\":{}}}B\006status\0228\012\011\010\001\020"
        "\000\032\00350%\022\036\012\012\012\003app\022\003web\022\020\012\003app\022\002In\032\003web\032"
        "\000\"\013AlwaysAllow\032\012\010\001\030\001 \003(\0020\003\032\000\"\000";

/* GET /apis/storage.k8s.io/v1/volumeattachments: va */
static const char fixture_attachments[] =
        "k8s\000\012)\012\021storage.k8s.io/v1\022\024VolumeAttachmentList\022\355\002\012\011\012\000\022"
        "\003215\032\000\022\337\002\012\275\002\012\002va\022\000\032\000\"\000*$2ca2a95e-4ba7-43d9-9f3f-9"
        "e44fc73199d2\0032158\000B\010\010\206\264\212\330\006\020\000\212\001\223\001\012\007capture\022"
        "\006Update\032\021storage.k8s.io/v1\"\010\010\206\264\212\330\006\020\0002\010FieldsV1:W\012U{\"f:"
        "spec\":{\"f:attacher\":{},\"f:nodeName\":{},\"f:source\":{\"f:persistentVolumeName\":{}}}}B\000"
        "\212\001b\012\007capture\022\006Update\032\021storage.k8s.io/v1\"\010\010\206\264\212\330\006\020"
        "\0002\010FieldsV1: \012\036{\"f:status\":{\"f:attached\":{}}}B\006status\022\031\012\013csi.exampl"
        "e\022\006\012\004pv-1\032\002n1\032\002\010\001\032\000\"\000";

/* GET /api/v1/namespaces/web/pods/none: 404 */
static const char fixture_status[] =
        "k8s\000\012\014\012\002v1\022\006Status\022I\012\006\012\000\022\000\032\000\022\007Failure\032"
        "\025pods \"none\" not found\"\010NotFound*\022\012\004none\022\000\032\004pods(\0002\0000\224\003"
        "\032\000\"\000";
/* clang-format on */

#define FIXTURE_SIZE(f) (sizeof(f) - 1)
