/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz-objects.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "string-util.h"

const char fuzz_reboot_node[] =
        "{\"metadata\":{\"name\":\"n1\",\"uid\":\"u-1\",\"resourceVersion\":\"7\",\"annotations\":{"
        "\"vesper.sh/shutdown-request\":\"{\\\"id\\\":\\\"r1\\\",\\\"bootID\\\":\\\"b1\\\",\\\"kind\\\":"
        "\\\"reboot\\\",\\\"until\\\":\\\"2027-01-15T08:30:00Z\\\"}\","
        "\"vesper.sh/shutdown-granted\":\"{\\\"id\\\":\\\"r1\\\",\\\"until\\\":"
        "\\\"2027-01-15T08:10:00Z\\\"}\","
        "\"vesper.sh/interruption\":\"{\\\"action\\\":\\\"terminate\\\",\\\"phase\\\":\\\"Released\\\"}\"}},"
        "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],"
        "\"nodeInfo\":{\"bootID\":\"b1\"}}}";

const char fuzz_node[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\",\"uid\":\"u-1\","
        "\"resourceVersion\":\"7\",\"generation\":1,"
        "\"creationTimestamp\":\"2027-01-01T00:00:00Z\",\"deletionTimestamp\":\"2027-01-15T07:59:00Z\","
        "\"deletionGracePeriodSeconds\":0,"
        "\"labels\":{\"pool\":\"a\",\"node.kubernetes.io/exclude-from-external-load-balancers\":\"vesper\"},"
        "\"annotations\":{\"vesper.sh/"
        "cordoned-by-agent\":\"{\\\"bootID\\\":\\\"b1\\\",\\\"why\\\":\\\"spot\\\"}\","
        "\"vesper.sh/cordoned-by-coordinator\":\"{\\\"why\\\":\\\"deleted\\\"}\",\"vesper.sh/"
        "deadline\":\"2027-01-15T08:10:00Z\","
        "\"vesper.sh/"
        "interruption\":\"{\\\"id\\\":\\\"i-1-terminate-b1\\\",\\\"kind\\\":\\\"spot\\\",\\\"source\\\":"
        "\\\"ec2\\\",\\\"action\\\":\\\"terminate\\\","
        "\\\"notBefore\\\":\\\"2027-01-15T08:01:00Z\\\",\\\"deadline\\\":\\\"2027-01-15T08:02:00Z\\\","
        "\\\"phase\\\":\\\"Draining\\\",\\\"podsLeft\\\":3,\\\"bootID\\\":\\\"b1\\\"}\"},"
        "\"finalizers\":[\"vesper.sh/termination\",\"other/one\"],"
        "\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"X\",\"name\":\"x\",\"uid\":\"u\","
        "\"controller\":true}]},"
        "\"spec\":{\"providerID\":\"aws:///eu-west-1a/i-0123456789abcdef0\",\"unschedulable\":true,"
        "\"taints\":[{\"key\":\"node.kubernetes.io/"
        "unschedulable\",\"effect\":\"NoSchedule\",\"timeAdded\":\"2027-01-15T07:59:00Z\"},"
        "{\"key\":\"vesper.sh/"
        "disrupted\",\"value\":\"\",\"effect\":\"NoSchedule\"},{\"key\":\"gpu\",\"value\":\"yes\","
        "\"effect\":\"NoExecute\"}]},"
        "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"KubeletReady\","
        "\"lastTransitionTime\":\"2027-01-15T07:00:00Z\"},"
        "{\"type\":\"DrainInProgress\",\"status\":\"True\",\"reason\":\"VesperAgent\",\"message\":\"spot\","
        "\"lastTransitionTime\":\"2027-01-15T07:59:00Z\"},"
        "{\"type\":\"Drained\",\"status\":\"False\",\"reason\":\"VesperAgent\"},"
        "{\"type\":\"vesper.sh/"
        "TerminationBlocked\",\"status\":\"True\",\"reason\":\"CloudDenied\",\"message\":\"no "
        "permission\"}],"
        "\"volumesInUse\":[\"kubernetes.io/csi/ebs^vol-1\"],\"volumesAttached\":[{\"name\":\"kubernetes.io/"
        "csi/ebs^vol-1\",\"devicePath\":\"\"}],"
        "\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"10.0.0.7\"}],"
        "\"daemonEndpoints\":{\"kubeletEndpoint\":{\"Port\":10250}},"
        "\"nodeInfo\":{\"bootID\":\"b1\",\"machineID\":\"m1\",\"systemUUID\":\"s1\",\"kubeletVersion\":\"v1\",\"osImage\":\"o\"}}}";

const char fuzz_pod[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"web-1\",\"namespace\":\"default\","
        "\"uid\":\"u-2\",\"resourceVersion\":\"8\","
        "\"creationTimestamp\":\"2027-01-15T07:00:00Z\",\"deletionTimestamp\":\"2027-01-15T08:01:30Z\","
        "\"deletionGracePeriodSeconds\":90,"
        "\"labels\":{\"app\":\"web\",\"karpenter.sh/do-not-evict\":\"no\"},"
        "\"annotations\":{\"karpenter.sh/do-not-disrupt\":\"2h\",\"vesper.sh/"
        "do-not-evict\":\"no\",\"cluster-autoscaler.kubernetes.io/safe-to-evict\":\"true\"},"
        "\"ownerReferences\":[{\"apiVersion\":\"apps/"
        "v1\",\"kind\":\"ReplicaSet\",\"name\":\"web\",\"uid\":\"u-3\",\"controller\":true}],\"finalizers\":"
        "[\"x/y\"]},"
        "\"spec\":{\"volumes\":[{\"name\":\"d\",\"persistentVolumeClaim\":{\"claimName\":\"data-web-1\"}},{"
        "\"name\":"
        "\"c\",\"ephemeral\":{\"volumeClaimTemplate\":{}}},{\"name\":\"e\",\"emptyDir\":{}}],"
        "\"nodeName\":\"n1\",\"priorityClassName\":\"high\",\"priority\":1000,"
        "\"terminationGracePeriodSeconds\":90,"
        "\"tolerations\":[{\"key\":\"node.kubernetes.io/"
        "unschedulable\",\"operator\":\"Exists\",\"effect\":\"NoSchedule\"},{\"operator\":\"Exists\"},"
        "{\"key\":\"vesper.sh/disrupted\",\"operator\":\"Equal\",\"value\":\"\"}]},"
        "\"status\":{\"phase\":\"Running\",\"startTime\":\"2027-01-15T07:00:05Z\",\"conditions\":[{\"type\":"
        "\"Ready\",\"status\":\"True\"}]}}";

const char fuzz_pdb[] = "{\"apiVersion\":\"policy/"
                        "v1\",\"kind\":\"PodDisruptionBudget\",\"metadata\":{\"name\":\"web\",\"namespace\":"
                        "\"default\",\"uid\":\"u-4\",\"resourceVersion\":\"9\",\"generation\":3},"
                        "\"spec\":{\"minAvailable\":1,\"unhealthyPodEvictionPolicy\":\"AlwaysAllow\","
                        "\"selector\":{\"matchLabels\":{\"app\":\"web\"},"
                        "\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"In\",\"values\":[\"web\","
                        "\"db\"]},{\"key\":\"zone\",\"operator\":\"DoesNotExist\"},"
                        "{\"key\":\"app\",\"operator\":\"Exists\"},{\"key\":\"app\",\"operator\":\"NotIn\","
                        "\"values\":[\"x\"]}]}},"
                        "\"status\":{\"disruptionsAllowed\":1,\"currentHealthy\":3,\"desiredHealthy\":2,"
                        "\"expectedPods\":3,\"observedGeneration\":3}}";

const char fuzz_lease[] =
        "{\"apiVersion\":\"coordination.k8s.io/"
        "v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"vesper-coordinator\",\"namespace\":\"vesper-"
        "system\","
        "\"uid\":\"u-5\",\"resourceVersion\":\"10\",\"managedFields\":[{\"manager\":\"m\"}]},\"spec\":{"
        "\"holderIdentity\":\"host_1\",\"leaseDurationSeconds\":15,"
        "\"acquireTime\":\"2027-01-15T07:00:00.000000Z\",\"renewTime\":\"2027-01-15T07:59:58.123456Z\","
        "\"leaseTransitions\":4,\"strategy\":\"x\",\"preferredHolder\":\"y\"}}";

const char fuzz_volume_attachment[] =
        "{\"apiVersion\":\"storage.k8s.io/"
        "v1\",\"kind\":\"VolumeAttachment\",\"metadata\":{\"name\":\"csi-1\",\"uid\":\"u-6\","
        "\"resourceVersion\":\"11\"},"
        "\"spec\":{\"attacher\":\"ebs.csi.aws.com\",\"nodeName\":\"n1\",\"source\":{"
        "\"persistentVolumeName\":\"pv-1\"}},\"status\":{\"attached\":true}}";

const char fuzz_pvc[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"p-c\","
        "\"namespace\":"
        "\"d\",\"uid\":\"u-9\",\"resourceVersion\":\"13\",\"ownerReferences\":[{\"apiVersion\":\"v1\","
        "\"kind\":"
        "\"Pod\",\"name\":\"p\",\"uid\":\"u-3\",\"controller\":true}]},\"spec\":{\"volumeName\":\"pv-1\"}}";

const char fuzz_node_pool[] =
        "{\"apiVersion\":\"vesper.sh/"
        "v1alpha1\",\"kind\":\"NodePool\",\"metadata\":{\"name\":\"a\",\"uid\":\"u-7\",\"resourceVersion\":"
        "\"12\",\"finalizers\":[\"vesper.sh/termination\"]},"
        "\"spec\":{\"selector\":{\"matchLabels\":{\"pool\":\"a\"}},\"template\":{\"terminationGracePeriod\":"
        "\"10m\",\"labels\":{\"b\":\"2\",\"a\":\"1\"},\"annotations\":{\"vesper.sh/x\":\"y\"},"
        "\"taints\":[{\"key\":\"gpu\",\"effect\":\"NoSchedule\"}],"
        "\"startupTaints\":[{\"key\":\"cni\",\"value\":\"v\",\"effect\":\"NoExecute\"}],"
        "\"requirements\":[{\"key\":\"arch\",\"operator\":\"In\",\"values\":[\"arm64\"]},{\"key\":\"n\",\"operator\":\"Gt\","
        "\"values\":[\"4\"]}],\"nodeInfo\":{\"kubeletVersion\":\"v1.34.4\",\"osImage\":\"Debian GNU/Linux 12\"}},"
        "\"disruption\":{\"emptyAfter\":\"5m\",\"expireAfter\":\"720h\",\"expireHardAfter\":\"800h\",\"drift\":\"Auto\","
        "\"consolidation\":{\"policy\":\"WhenEmpty\",\"after\":\"10m\",\"minimumSavings\":\"15%\",\"preferences\":\"Ignore\"},"
        "\"nakedPods\":\"Block\",\"maxConcurrent\":3,\"onInterruption\":\"Replace\",\"launchTimeout\":\"7m\",\"budgets\":[{\"nodes\":\"20%\",\"reasons\":[\"Empty\"],"
        "\"schedule\":\"0 8 * * 1-5\",\"duration\":\"10h\",\"timeZone\":\"Europe/Berlin\"}],"
        "\"windows\":[{\"schedule\":\"@daily\",\"duration\":\"4h\"}]},"
        "\"offerings\":[{\"instanceType\":\"m\",\"zone\":\"z1\",\"capacityType\":\"spot\",\"price\":0.25,"
        "\"allocatable\":{\"cpu\":\"3900m\",\"pods\":110},\"group\":\"g\"}],\"limits\":{\"cpu\":\"96\",\"nodes\":12},\"weight\":7,"
        "\"provider\":{\"name\":\"ec2\",\"group\":\"g\",\"identity\":\"ProviderID\"},\"deletionPolicy\":\"Delete\","
        "\"repair\":[{\"condition\":\"Ready\",\"status\":\"NotTrue\",\"after\":\"15m\","
        "\"action\":\"Replace\"}]},"
        "\"status\":{\"conditions\":[{\"type\":\"Conflicting\",\"status\":\"True\",\"reason\":\"x\","
        "\"message\":\"y\"}]}}";

const char fuzz_secret[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"vesper-webhook\",\"namespace\":\"vesper-system\","
        "\"uid\":\"u-10\",\"resourceVersion\":\"15\"},\"data\":{\"ca.crt\":\"Y2EuY3J0\",\"ca.key\":\"Y2Eua2V5\","
        "\"tls.crt\":\"dGxzLmNydA==\",\"tls.key\":\"dGxzLmtleQ==\"},\"type\":\"Opaque\"}";

const char fuzz_webhooks[] =
        "{\"metadata\":{\"name\":\"vesper-nodes\",\"uid\":\"u-11\",\"resourceVersion\":\"16\",\"generation\":1},\"webhooks\":["
        "{\"name\":\"nodes.vesper.sh\",\"clientConfig\":{\"caBundle\":\"Y2EuY3J0\",\"service\":{\"name\":\"vesper-webhook\"}}},"
        "{\"name\":\"other.vesper.sh\",\"clientConfig\":{\"url\":\"https://a/b\"}}]}";

const char fuzz_scheduled_pod[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"web-1\",\"namespace\":\"default"
        "\",\"uid\":\"u-20\",\"labels\":{\"app\":\"web\",\"tier\":\"front\"},\"annotations\":{\"controlle"
        "r.kubernetes.io/pod-deletion-cost\":\"-7\",\"vesper.sh/do-not-evict\":\"true\"}},\"spec\":{\"nod"
        "eName\":\"n1\",\"priority\":1000,\"schedulerName\":\"own-scheduler\",\"containers\":[{\"name\":"
        "\"a\",\"resources\":{\"requests\":{\"cpu\":\"500m\",\"memory\":\"1Gi\"}},\"ports\":[{\"container"
        "Port\":80,\"hostPort\":8080,\"hostIP\":\"10.0.0.7\",\"protocol\":\"TCP\"}]},{\"name\":\"b\"}],\""
        "initContainers\":[{\"name\":\"i\",\"restartPolicy\":\"Always\",\"resources\":{\"requests\":{\"cp"
        "u\":\"50m\"}}}],\"resources\":{\"requests\":{\"cpu\":\"1\"}},\"overhead\":{\"memory\":\"120Mi\"}"
        ",\"nodeSelector\":{\"disk\":\"ssd\"},\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingI"
        "gnoredDuringExecution\":{\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"gen\",\"operat"
        "or\":\"Gt\",\"values\":[\"3\"]}],\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"NotI"
        "n\",\"values\":[\"n9\"]}]}]},\"preferredDuringSchedulingIgnoredDuringExecution\":[{\"weight\":10"
        ",\"preference\":{\"matchExpressions\":[{\"key\":\"zone\",\"operator\":\"Exists\"}]}}]},\"podAffi"
        "nity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{\"labelSelector\":{\"matchLabels\":"
        "{\"app\":\"db\"}},\"namespaces\":[\"data\"],\"topologyKey\":\"topology.kubernetes.io/zone\"}],\""
        "preferredDuringSchedulingIgnoredDuringExecution\":[{\"weight\":5,\"podAffinityTerm\":{\"labelSel"
        "ector\":{},\"topologyKey\":\"kubernetes.io/hostname\",\"namespaceSelector\":{}}}]},\"podAntiAffi"
        "nity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{\"labelSelector\":{\"matchExpressio"
        "ns\":[{\"key\":\"app\",\"operator\":\"In\",\"values\":[\"web\"]}]},\"topologyKey\":\"kubernetes."
        "io/hostname\",\"matchLabelKeys\":[\"tier\"],\"mismatchLabelKeys\":[\"x\"]}]}},\"tolerations\":[{"
        "\"key\":\"gpu\",\"operator\":\"Equal\",\"value\":\"yes\",\"effect\":\"NoExecute\",\"tolerationSe"
        "conds\":300},{\"operator\":\"Exists\"}],\"topologySpreadConstraints\":[{\"maxSkew\":1,\"topology"
        "Key\":\"topology.kubernetes.io/zone\",\"whenUnsatisfiable\":\"DoNotSchedule\",\"labelSelector\":"
        "{\"matchLabels\":{\"app\":\"web\"}},\"minDomains\":3,\"nodeAffinityPolicy\":\"Honor\",\"nodeTain"
        "tsPolicy\":\"Ignore\",\"matchLabelKeys\":[\"pod-template-hash\"]}],\"resourceClaims\":[{\"name\""
        ":\"gpu\"}],\"volumes\":[{\"name\":\"d\",\"persistentVolumeClaim\":{\"claimName\":\"data-web-1\"}"
        "},{\"name\":\"c\",\"ephemeral\":{\"volumeClaimTemplate\":{}}},{\"name\":\"r\",\"rbd\":{\"image\""
        ":\"x\"}}]},\"status\":{\"phase\":\"Running\",\"nominatedNodeName\":\"n2\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"Tr"
        "ue\"}]}}";

const char fuzz_scheduled_node[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\",\"uid\":\"u-21\",\"labels"
        "\":{\"topology.kubernetes.io/zone\":\"a\",\"gen\":\"4\"},\"annotations\":{\"karpenter.sh/do-not-"
        "disrupt\":\"true\"}},\"spec\":{\"providerID\":\"aws:///eu-west-1a/i-0123456789abcdef0\",\"taints"
        "\":[{\"key\":\"gpu\",\"value\":\"yes\",\"effect\":\"NoSchedule\"}]},\"status\":{\"allocatable\":"
        "{\"cpu\":\"3920m\",\"memory\":\"15Gi\",\"pods\":\"110\",\"ephemeral-storage\":\"95551679124\",\""
        "example.com/fpga\":\"2\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}";

const char fuzz_volume[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":\"pv-1\",\"uid\":\"u"
        "-22\",\"labels\":{\"topology.kubernetes.io/zone\":\"a\"}},\"spec\":{\"storageClassName\":\"gp3\""
        ",\"csi\":{\"driver\":\"ebs.csi.aws.com\",\"volumeHandle\":\"vol-1\"},\"nodeAffinity\":{\"require"
        "d\":{\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"topology.ebs.csi.aws.com/zone\",\""
        "operator\":\"In\",\"values\":[\"a\"]}]}]}}}}";

const char fuzz_scheduled_claim[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"data-web-1\","
        "\"namespace\":\"default\",\"uid\":\"u-23\"},\"spec\":{\"volumeName\":\"pv-1\",\"storageClassName"
        "\":\"gp3\",\"accessModes\":[\"ReadWriteOncePod\"]}}";

const char fuzz_storage_class[] =
        "{\"apiVersion\":\"storage.k8s.io/v1\",\"kind\":\"StorageClass\",\"metadata\":{\"name\":\"gp3\","
        "\"uid\":\"u-24\"},\"provisioner\":\"ebs.csi.aws.com\",\"volumeBindingMode\":\"WaitForFirstConsum"
        "er\",\"allowedTopologies\":[{\"matchLabelExpressions\":[{\"key\":\"topology.kubernetes.io/zone\""
        ",\"values\":[\"a\",\"b\"]}]}]}";

const char fuzz_csi_node[] =
        "{\"apiVersion\":\"storage.k8s.io/v1\",\"kind\":\"CSINode\",\"metadata\":{\"name\":\"n1\",\"uid\""
        ":\"u-25\"},\"spec\":{\"drivers\":[{\"name\":\"ebs.csi.aws.com\",\"nodeID\":\"i-0\",\"topologyKey"
        "s\":[\"topology.ebs.csi.aws.com/zone\"],\"allocatable\":{\"count\":25}},{\"name\":\"efs.csi.aws."
        "com\",\"nodeID\":\"i-0\"}]}}";

const char fuzz_namespace[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"data\",\"uid\":\"u-26\","
        "\"labels\":{\"kubernetes.io/metadata.name\":\"data\"}}}";

const char fuzz_node_budget[] =
        "{\"apiVersion\":\"vesper.sh/v1alpha1\",\"kind\":\"NodeDisruptionBudget\",\"metadata\":{\"name\":\"web\",\"uid\":\"u-9\","
        "\"resourceVersion\":\"14\",\"generation\":2},"
        "\"spec\":{\"minAvailable\":\"80%\",\"selector\":{\"matchLabels\":{\"pool\":\"a\"}}},"
        "\"status\":{\"expectedNodes\":5,\"currentAvailable\":4,\"desiredAvailable\":4,\"disruptionsAllowed\":0,"
        "\"observedGeneration\":2,\"disruptedNodes\":[{\"name\":\"n1\",\"uid\":\"u-1\",\"time\":\"2027-01-15T07:59:00Z\","
        "\"kind\":\"DELETE\",\"holder\":\"alice\",\"heldBefore\":\"slot-1\",\"until\":\"2027-01-15T08:01:00Z\"},"
        "{\"name\":\"n2\",\"uid\":\"u-2\",\"time\":\"2027-01-15T07:59:00Z\",\"kind\":\"Deletion\",\"holder\":\"webhook\"}],"
        "\"conditions\":[{\"type\":\"DisruptionAllowed\",\"status\":\"False\",\"reason\":\"InsufficientNodes\"}]}}";

const char fuzz_node_claim[] =
        "{\"apiVersion\":\"vesper.sh/"
        "v1alpha1\",\"kind\":\"NodeClaim\",\"metadata\":{\"name\":\"nc-0011223344556677\",\"uid\":\"u-8\","
        "\"resourceVersion\":\"13\","
        "\"deletionTimestamp\":\"2027-01-15T07:59:00Z\",\"finalizers\":[\"vesper.sh/termination\"]},"
        "\"spec\":{\"nodePool\":\"a\",\"providerID\":\"aws:///eu-west-1a/"
        "i-0123456789abcdef0\",\"nodeName\":\"n1\",\"systemUUID\":\"s1\",\"machineID\":\"m1\",\"replaces\":[\"nc-1\"],\"attempt\":2,"
        "\"terminationGracePeriod\":\"10m\",\"expireAfter\":\"Never\"},"
        "\"status\":{\"identity\":{\"instanceID\":\"i-0123456789abcdef0\",\"region\":\"eu-west-1\","
        "\"method\":\"Tag\"},\"nodeName\":\"n1\",\"nodeUID\":\"u-1\",\"phase\":\"Draining\",\"deadline\":\"2027-01-"
        "15T08:09:00Z\",\"lastCloudError\":\"denied\",\"podsLeft\":2,\"group\":{\"request\":\"Launch\",\"token\":\"launch-u-8\","
        "\"like\":\"aws:///z/i-1\",\"zone\":\"z\",\"capacityType\":\"spot\",\"since\":\"2027-01-15T07:00:00Z\","
        "\"time\":\"2027-01-15T07:01:00Z\",\"answer\":\"later\",\"message\":\"throttled\",\"unresolved\":true},"
        "\"successor\":{\"claim\":\"nc-3\",\"made\":true},"
        "\"blockers\":[{\"pod\":\"default/web-1\",\"reason\":\"BlockedByPDB\",\"pdb\":\"default/"
        "web\",\"message\":\"needs 3\",\"since\":\"2027-01-15T07:59:30Z\"}],"
        "\"conditions\":[{\"type\":\"Launched\",\"status\":\"True\",\"reason\":\"Adopted\",\"message\":"
        "\"m\",\"lastTransitionTime\":\"2027-01-15T07:00:00Z\"},"
        "{\"type\":\"Drained\",\"status\":\"False\"}]}}";

KubeObject *fuzz_object(const KubeKind *kind, const char *text, size_t size, InternPool *pool) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        KubeObject *o = NULL;
        int r;

        if (json_parse(text, size, size, &doc, NULL) < 0)
                return NULL;
        r = kube_object_decode(kind, json_root(doc), pool, &o);
        assert(r == 0 || r == -EINVAL);
        assert((r == 0) == (o != NULL));
        return o;
}

KubeObject *fuzz_draw_object(Draw *d, const KubeKind *kind, const char *template, InternPool *pool) {
        _cleanup_free_ char *text = draw_bent_json(d, template);

        return fuzz_object(kind, text, strlen(text), pool);
}

/* -- RFC 7386 ----------------------------------------------------------------------------------- */

static void merge(JsonWriter *w, const char *key, const Json *target, const Json *patch) {
        if (!json_is_object(patch)) {
                json_add_value(w, key, patch);
                return;
        }
        json_open_object(w, key);
        if (json_is_object(target))
                JSON_FOREACH (child, target) {
                        const Json *change = json_get(patch, json_key(child));

                        if (!change)
                                json_add_value(w, json_key(child), child);
                        else if (!json_is_null(change))
                                merge(w, json_key(child), child, change);
                }
        JSON_FOREACH (change, patch)
                if (!json_is_null(change) && !json_get(target, json_key(change)))
                        merge(w, json_key(change), NULL, change);
        json_close_object(w);
}

KubeObject *fuzz_patched(const KubeObject *o, const char *object_text, const char *patch, char **ret_text) {
        _cleanup_(json_doc_freep) JsonDoc *object = NULL, *change = NULL;
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        _cleanup_free_ char *text = NULL;
        KubeObject *patched;
        int r;

        r = json_parse(object_text, strlen(object_text), strlen(object_text), &object, NULL);
        assert(r >= 0);
        r = json_parse(patch, strlen(patch), strlen(patch), &change, NULL);
        assert(r >= 0);
        assert(json_is_object(json_root(change)));
        r = json_writer_new(&w);
        assert(r >= 0);
        merge(w, NULL, json_root(object), json_root(change));
        text = json_writer_steal(w, NULL);
        assert(text);
        patched = fuzz_object(o->kind, text, strlen(text), o->pool);
        if (ret_text)
                *ret_text = TAKE_PTR(text);
        return patched;
}
