# SPDX-License-Identifier: Apache-2.0
"""What was rendered, applied to a real API server: what it accepts, who may do what, and that this is enough."""

import http.client
import json
import os
import ssl
import time

from cases_node import _wait_polls
from cases_rendered import values_files
from daemons import LIMIT
from metadata import Metadata
from pods import AUTHORITY, PLUGIN, Pod
from rendering import CHART, DISTRIBUTIONS, MANIFESTS, NAMESPACE, Refused, is_hook, one
from world import AWS_KEYS, CLAIMS, COORDINATOR, FINALIZER, POOLS

REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
RULES = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/vesper-coordinator"
DAEMONSET = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/vesper-agent"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
BUDGET = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets/vesper-coordinator"

# (verb, group, resource, subresource, namespace, name)
DANGEROUS = [("*", "*", "*", "", "", "")] + [(verb, "", "secrets", "", ns, "") for verb in ("get", "list", "watch")
                                             for ns in ("", "kube-system", NAMESPACE)] + [
    (verb, "", "nodes", "", "", "") for verb in ("create", "update", "deletecollection", "get")] + [
    (verb, "", "pods", "", "kube-system", "") for verb in ("create", "update", "patch", "deletecollection")] + [
    ("create", "", "pods", sub, "default", "") for sub in ("exec", "attach", "portforward", "binding")] + [
    ("get", "", "nodes", "proxy", "", ""), ("create", "", "nodes", "proxy", "", ""),
    ("update", "", "nodes", "status", "", ""), ("update", "", "pods", "status", "default", ""),
    ("create", "", "serviceaccounts", "token", NAMESPACE, "vesper-coordinator"),
    ("impersonate", "", "users", "", "", ""), ("impersonate", "", "groups", "", "", ""),
    ("get", "", "configmaps", "", "kube-system", ""), ("list", "", "configmaps", "", NAMESPACE, ""),
    ("create", "", "namespaces", "", "", ""), ("delete", "", "namespaces", "", "", ""),
    ("delete", "", "events", "", "default", ""), ("patch", "policy", "poddisruptionbudgets", "", "default", ""),
    ("delete", "policy", "poddisruptionbudgets", "", "default", ""),
    ("delete", "storage.k8s.io", "volumeattachments", "", "", ""),
    ("delete", "", "persistentvolumeclaims", "", "default", ""), ("patch", "", "persistentvolumeclaims", "", "default", ""),
    ("delete", "", "persistentvolumes", "", "", ""), ("patch", "", "persistentvolumes", "", "", ""),
    ("patch", "storage.k8s.io", "csinodes", "", "", ""),
    ("patch", "storage.k8s.io", "volumeattachments", "", "", ""),
    ("patch", "apps", "deployments", "", NAMESPACE, ""), ("delete", "apps", "daemonsets", "", "kube-system", ""),
    ("delete", "vesper.sh", "nodepools", "", "", ""), ("create", "vesper.sh", "nodepools", "", "", ""),
    ("update", "vesper.sh", "nodeclaims", "", "", ""), ("deletecollection", "vesper.sh", "nodeclaims", "", "", ""),
    ("patch", "apiextensions.k8s.io", "customresourcedefinitions", "", "", ""),
    ("create", "certificates.k8s.io", "certificatesigningrequests", "", "", ""),
    ("update", "certificates.k8s.io", "certificatesigningrequests", "approval", "", ""),
    ("create", "admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "", ""),
    ("patch", "admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "", "another"),
    ("create", "", "secrets", "", "kube-system", ""), ("patch", "", "secrets", "", NAMESPACE, "another"),
    ("patch", "", "namespaces", "", "", "")] + [
    (verb, "rbac.authorization.k8s.io", resource, "", "", "") for verb in ("create", "patch", "bind", "escalate")
    for resource in ("clusterroles", "clusterrolebindings")] + [
    ("update", "coordination.k8s.io", "leases", "", "kube-system", "kube-controller-manager"),
    ("update", "coordination.k8s.io", "leases", "", "kube-node-lease", "node-0"),
    ("update", "coordination.k8s.io", "leases", "", NAMESPACE, "another"),
    ("delete", "coordination.k8s.io", "leases", "", NAMESPACE, "vesper-coordinator"),
    ("list", "coordination.k8s.io", "leases", "", NAMESPACE, "")]


def _warned(done):
    return [line for line in done.stderr.splitlines() if "arning" in line]


def _apply(bed, *arguments, stdin=None):
    done = bed.cluster.kubectl("apply", "--server-side", "--force-conflicts", *arguments, stdin=stdin, check=False)
    assert done.returncode == 0, f"kubectl apply {' '.join(arguments)}: {done.stderr}"
    assert not _warned(done), f"kubectl apply {' '.join(arguments)} warns: {_warned(done)}"
    return done.stdout.splitlines()


def _create_hosts(bed):
    """Three nodes, made by the first case that needs them. The scheduler knows them: each has a pod that only it can take."""
    hosts = ["host-0", "host-1", "host-2"]
    if not bed.admin.find(f"/api/v1/nodes/{hosts[0]}"):
        bed.cluster.create_nodes(3, "host", labels={"e2e": "host"})
        for host in hosts:
            bed.cluster.create_pods(None, 1, prefix=f"on-{host}", change=lambda pod, host=host: pod["spec"].update(
                nodeSelector={"kubernetes.io/hostname": host}))
        bed.cluster.wait_for(lambda: all(bed.cluster.pods(host) for host in hosts), LIMIT, "the scheduler uses each node")
    return hosts


def _install(bed):
    """Applies packaging/manifests with the agent of kubeadm, unless an earlier case has."""
    _create_hosts(bed)
    if not bed.admin.find(DAEMONSET):
        _apply(bed, "-k", os.path.join(MANIFESTS, "agent-kubeadm"))
        bed.wait_served()


def dry_run(bed, figures):
    """the API server takes all of it, without a warning: by kustomize and by helm, with each values file"""
    count = len(_apply(bed, "--dry-run=server", "-k", MANIFESTS))
    count += len(_apply(bed, "--dry-run=server", "-f", "-", stdin=bed.tools.template()))
    # A dry run leaves the namespace as it is, where pods of agents would be warned of.
    bed.cluster.kubectl("label", "--overwrite", "namespace", NAMESPACE, *(
        f"pod-security.kubernetes.io/{mode}=privileged" for mode in ("enforce", "audit", "warn")))
    for folder in (f"agent-{d}" for d in DISTRIBUTIONS):
        count += len(_apply(bed, "--dry-run=server", "-k", os.path.join(MANIFESTS, folder)))
    for path in values_files():
        count += len(_apply(bed, "--dry-run=server", "-f", "-", stdin=bed.tools.template(path)))
    figures.add(f"{count} objects accepted")


def releases(bed, figures):
    """helm install, upgrade and uninstall; the CRDs stay, and nothing else"""
    helm, admin = bed.tools.helm, bed.admin
    try:
        helm("install", "vesper", CHART, "--namespace", NAMESPACE)
        raise AssertionError("a chart took over objects that another tool had made")
    except Refused as e:
        assert "vesper-coordinator" in str(e) or "vesper.sh" in str(e), e
    bed.remove_all()
    notes = helm("install", "vesper", CHART, "--namespace", NAMESPACE, "--create-namespace")
    assert "release --all" in notes and "does not" not in notes.split("NOTES")[0], notes
    assert admin.get(DEPLOYMENT)["spec"]["replicas"] == 2
    assert "vesper-uninstall" in helm("get", "hooks", "vesper", "--namespace", NAMESPACE), "installed without its hook"
    bed.wait_served()
    bed.world.pool("kept")
    helm("upgrade", "vesper", CHART, "--namespace", NAMESPACE, "--set", "coordinator.replicas=3,agent.enabled=true")
    assert admin.get(DEPLOYMENT)["spec"]["replicas"] == 3 and admin.find(DAEMONSET), "the upgrade changed nothing"
    # (Nothing runs pods yet: the Job of the hook would wait for ever.)
    helm("uninstall", "vesper", "--namespace", NAMESPACE, "--no-hooks")
    assert not admin.find(DEPLOYMENT) and not admin.find(DAEMONSET) and not admin.find(f"{FLOW}/vesper-coordinator")
    assert admin.find(f"{POOLS}/kept"), "uninstalling took NodePools away"
    admin.delete(f"{POOLS}/kept")
    bed.remove_all()


def pods_are_made(bed, figures):
    """applied: both replicas run in a namespace that allows only restricted pods, on two nodes, under their budget"""
    _create_hosts(bed)
    _apply(bed, "-k", MANIFESTS)
    bed.wait_served()
    bed.cluster.wait_for(lambda: bed.admin.get(DEPLOYMENT)["status"].get("readyReplicas") == 2, LIMIT, "both replicas are Ready")
    pods = bed.admin.get(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
    assert len({p["spec"]["nodeName"] for p in pods}) == 2, [p["spec"]["nodeName"] for p in pods]
    assert all(p["spec"]["priority"] == 2000000000 for p in pods), [p["spec"]["priority"] for p in pods]
    assert all(p["status"]["qosClass"] == "Burstable" for p in pods)
    bed.cluster.wait_for(lambda: bed.admin.get(BUDGET).get("status", {}).get("disruptionsAllowed") == 1, LIMIT,
                         "the budget allows one disruption")
    level = bed.admin.get(f"/api/v1/namespaces/{NAMESPACE}")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
    assert level == "restricted", level


def agents_everywhere(bed, figures):
    """applied: an agent on each node, cordoned and tainted ones too; it survives kubectl's drain of its node"""
    nodes = _create_hosts(bed)
    bed.admin.patch("/api/v1/nodes/host-1", {"spec": {"unschedulable": True, "taints": [
        {"key": "a", "value": "b", "effect": "NoExecute"}, {"key": "vesper.sh/disrupted", "effect": "NoSchedule"}]}})
    _apply(bed, "-k", os.path.join(MANIFESTS, "agent-kubeadm"))

    def placed():
        return {p["spec"].get("nodeName"): p for p in bed.agent_pods() if "deletionTimestamp" not in p["metadata"]}

    bed.cluster.wait_for(lambda: set(placed()) == set(nodes), LIMIT, "an agent's pod on each node")
    before = placed()["host-1"]
    assert before["spec"]["priority"] == 2000001000, before["spec"]["priority"]
    bed.cluster.kubectl("drain", "host-1", "--ignore-daemonsets", "--force", f"--timeout={LIMIT}s")
    assert placed()["host-1"]["metadata"]["uid"] == before["metadata"]["uid"], "its pod is another one after the drain"
    # Level restricted would have none of them.
    done = bed.cluster.kubectl("label", "--overwrite", "--dry-run=server", "namespace", NAMESPACE,
                               "pod-security.kubernetes.io/enforce=restricted", check=False)
    assert "vesper-agent" in done.stderr and "host namespaces" in done.stderr, done.stderr


def _review(client, verb, group, resource, subresource, namespace, name):
    return client.create(REVIEW, {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": {
            "verb": verb, "group": group, "resource": resource, "subresource": subresource, "namespace": namespace,
            "name": name}}})["status"]["allowed"]


def _granted(objects, role="vesper-coordinator"):
    """As DANGEROUS, of the roles of that name that were rendered."""
    found = []
    for o in objects:
        if o["kind"] in ("Role", "ClusterRole") and o["metadata"]["name"] == role:
            for rule in o["rules"]:
                for resource in rule["resources"]:
                    name, _, sub = resource.partition("/")
                    found += [(verb, rule["apiGroups"][0], name, sub, o["metadata"].get("namespace", ""),
                               rule.get("resourceNames", [""])[0]) for verb in rule["verbs"]]
    return found


def permissions(bed, figures):
    """who may do what: what the coordinator is given, and nothing dangerous; the agent's account nothing at all"""
    _install(bed)
    coordinator = bed.account_client("vesper-coordinator")
    granted = _granted(bed.tools.objects(bed.tools.kustomize()))
    lease = [g for g in granted if g[2] == "leases" and g[4:] == (NAMESPACE, "vesper-coordinator")]
    assert len(lease) == 2, f"only {lease} is granted of the Lease"
    refused = [g for g in granted if not _review(coordinator, *g)]
    assert not refused, f"the coordinator may not {refused}"
    allowed = [d for d in DANGEROUS if _review(coordinator, *d)]
    assert not allowed, f"the coordinator may {allowed}"
    rules = bed.account_client("vesper-agent").create(RULES, {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": NAMESPACE}})
    own = [r for r in rules["status"]["resourceRules"]
           if not set(r["apiGroups"]) <= {"authorization.k8s.io", "authentication.k8s.io"}]
    assert not own, f"the agent's ServiceAccount may {own}"
    # The agent itself is the kubelet: its own node, and no other.
    node = bed.cluster.client("system:node:host-0")
    status, answer = node.request("PATCH", "/api/v1/nodes/host-2", {"metadata": {"annotations": {"a": "b"}}})
    assert status == 403, answer
    allowed = [d for d in DANGEROUS[:1] + [("list", "", "secrets", "", "", ""), ("delete", "", "nodes", "", "", "host-2"),
                                           ("patch", "vesper.sh", "nodeclaims", "", "", "")] if _review(node, *d)]
    assert not allowed, f"a node may {allowed}"
    figures.add(f"{len(granted)} granted, {len(DANGEROUS)} refused")


def kubelet_pods_granted(bed, figures):
    """packaging/manifests/kubelet-pods lets a node's credential get nodes/pods, and no more of the kubelet; without it none may"""
    def may(verb, subresource):
        return bed.admin.create(ACCESS, {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
            "user": "system:node:host-0", "groups": ["system:nodes", "system:authenticated"], "resourceAttributes": {
                "verb": verb, "resource": "nodes", "subresource": subresource, "name": "host-0"}}})["status"].get("allowed", False)
    folder = os.path.join(MANIFESTS, "kubelet-pods")
    assert not may("get", "pods"), "it is granted before anybody asked for it"
    _apply(bed, "-k", folder)
    try:
        bed.cluster.wait_for(lambda: may("get", "pods"), LIMIT, "a node may get nodes/pods")
        others = [(verb, sub) for verb, sub in (("create", "pods"), ("get", "proxy"), ("create", "proxy"), ("get", "configz")) if may(verb, sub)]
        assert not others, f"granted besides: {others}"
    finally:
        bed.cluster.kubectl("delete", "-k", folder)


def _schema_of(bed, path, *, token=None, certificate=None):
    """The FlowSchema that the API server put this request into."""
    context = ssl.create_default_context(cafile=bed.cluster.ca)
    if certificate:
        context.load_cert_chain(*certificate)
    connection = http.client.HTTPSConnection("127.0.0.1", bed.cluster.ports["apiserver"], context=context, timeout=30)
    connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
    answer = connection.getresponse()
    answer.read()
    uid = answer.getheader("X-Kubernetes-PF-FlowSchema-UID")
    connection.close()
    names = {o["metadata"]["uid"]: o["metadata"]["name"] for o in bed.admin.get(FLOW)["items"]}
    return names.get(uid)


def flow_control(bed, figures):
    """API priority and fairness puts the coordinator's requests into its own FlowSchemas, and the agent's into the nodes'"""
    _install(bed)
    for name in ("vesper-coordinator", "vesper-coordinator-lease"):
        def stands(name=name):
            conditions = bed.admin.get(f"{FLOW}/{name}").get("status", {}).get("conditions", [])
            return any(c["type"] == "Dangling" and c["status"] == "False" for c in conditions)

        bed.cluster.wait_for(stands, LIMIT, f"FlowSchema {name} has its priority level")
    token = bed.token("vesper-coordinator")
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/vesper-coordinator"
    # The API server takes a while to heed a new one.
    for path, schema in ((lease, "vesper-coordinator-lease"), ("/api/v1/pods", "vesper-coordinator"),
                         ("/api/v1/nodes", "vesper-coordinator"), ("/version", "vesper-coordinator"),
                         ("/apis/vesper.sh/v1alpha1/nodeclaims", "vesper-coordinator")):
        bed.cluster.wait_for(lambda path=path, schema=schema: _schema_of(bed, path, token=token) == schema, LIMIT,
                             f"GET {path} is in FlowSchema {schema}")
    certificate = bed.cluster._pki.issue("system:node:host-0", ["system:nodes"])
    found = _schema_of(bed, "/api/v1/pods?fieldSelector=spec.nodeName%3Dhost-0", certificate=certificate)
    assert found == "system-nodes", f"the agent's requests are in {found}"
    found = _schema_of(bed, "/api/v1/pods", token=bed.token("default"))
    assert found == "service-accounts", f"another account's requests are in {found}"


def _pairs(calls):
    return {(c.verb, c.resource) for c in calls}


def _idle(calls, granted):
    """Of what is granted, what none of these calls was; none of them may have been refused."""
    refused = [c for c in calls if c.status in (401, 403)]
    assert not refused, f"these were refused: {refused}"
    return {(g[0], g[2] + ("/" + g[3] if g[3] else "")) for g in granted} - _pairs(calls)


BUDGETS = "/apis/vesper.sh/v1alpha1/nodedisruptionbudgets"
ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"


def _daemon_with_volume(bed, node, name):
    """A DaemonSet's pod on that node, and a volume of it that is attached there and stays so. What to delete afterwards."""
    labels = {"e2e": name}
    bed.admin.create("/api/v1/persistentvolumes", {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "",
            "csi": {"driver": "e2e.vesper.sh", "volumeHandle": name}, "claimRef": {"namespace": "default", "name": name}}})
    bed.admin.create("/api/v1/namespaces/default/persistentvolumeclaims", {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": name,
            "resources": {"requests": {"storage": "1Gi"}}}})
    bed.admin.create("/apis/apps/v1/namespaces/default/daemonsets", {
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name}, "spec": {
            "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {
                "nodeSelector": {"kubernetes.io/hostname": node}, "containers": [{"name": "main", "image": "test"}],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]}}}})
    bed.cluster.wait_pods(lambda pods: any(p["metadata"]["labels"].get("e2e") == name and p["status"].get("phase") == "Running"
                                           for p in pods), node, LIMIT, f"the pod of DaemonSet {name}")
    bed.admin.create(ATTACHMENTS, {
        "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": name}, "spec": {
            "attacher": "e2e.vesper.sh", "nodeName": node, "source": {"persistentVolumeName": name}}})
    return [f"{ATTACHMENTS}/{name}", f"/apis/apps/v1/namespaces/default/daemonsets/{name}",
            f"/api/v1/namespaces/default/persistentvolumeclaims/{name}", f"/api/v1/persistentvolumes/{name}"]


def _webhook(bed, objects, port):
    """Registered as the chart has it, but for the Service, which nothing here serves: the leader writes its CA into it, and puts
    back what somebody spoils in its Secret. What to delete afterwards."""
    config = one(objects, "ValidatingWebhookConfiguration")
    config["webhooks"][0]["clientConfig"] = {"url": f"https://127.0.0.1:{port}/admission"}
    config["webhooks"][0]["failurePolicy"] = "Fail"
    path, secret = f"{WEBHOOKS}/{config['metadata']['name']}", f"/api/v1/namespaces/{NAMESPACE}/secrets/vesper-webhook"
    if bed.admin.find(path):
        bed.admin.delete(path)  # an earlier case has applied it
    bed.admin.create(WEBHOOKS, config)
    bed.cluster.wait_for(lambda: "caBundle" in bed.admin.get(path)["webhooks"][0]["clientConfig"], LIMIT, "the caBundle")
    kept = bed.admin.get(secret)["data"]
    bed.admin.patch(secret, {"data": {"tls.crt": "Z2FyYmFnZQ=="}})
    bed.cluster.wait_for(lambda: bed.admin.get(secret)["data"] == kept, LIMIT, "the Secret is put back as it was")
    return [path, secret]


def _uninstall(bed, objects, pool, figures):
    """What helm runs before it uninstalls, beside the coordinator: with the rights of its own account, each of which it uses, it
    leaves no pool, no claim and no mark. Nodes and claims of people are let go of, too."""
    admin, world, name = bed.admin, bed.world, "vesper-uninstall"
    begin = time.monotonic()
    rights = [o for o in objects if is_hook(o) and o["kind"] != "Job"]
    for o in rights:
        _apply(bed, "-f", "-", stdin=json.dumps(o))
    try:
        own, _ = world.node("own")
        for claim, machine in (("own", admin.get(f"/api/v1/nodes/{own}")["spec"]["providerID"]), ("of-nothing", "aws:///us-east-1a/i-none")):
            admin.create(CLAIMS, {"apiVersion": "vesper.sh/v1alpha1", "kind": "NodeClaim", "metadata": {"name": claim},
                                  "spec": {"providerID": machine}})
        world.wait_adopted(own)
        admin.patch(f"{POOLS}/{pool}", {"spec": {"deletionPolicy": "Delete"}})
        mark = world.audit.mark()
        job = Pod(bed, objects, "Job", name, api=(bed.cluster.ports["apiserver"], bed.cluster.ca, bed.token(name)))
        with job.daemon as running:
            assert running.popen.wait(2 * LIMIT) == 0, f"the Job's container failed: {running.tail()}"
        left = [f"{path}/{o['metadata']['name']}" for path in (POOLS, CLAIMS) for o in admin.get(path)["items"]]
        assert not left, f"left: {left}"
        assert FINALIZER not in admin.get(f"/api/v1/nodes/{own}")["metadata"].get("finalizers", []), "the node of a person's claim is held"
        calls = world.calls(mark, f"system:serviceaccount:{NAMESPACE}:{name}")
        idle = _idle(calls, _granted(objects, name))
        assert not idle, f"permissions that the Job did not use: {sorted(idle)}"
        figures.add(f"before an uninstallation: {len(calls)} requests of {len(_pairs(calls))} kinds, none refused; {time.monotonic() - begin:.1f} s")
    finally:
        for o in rights:
            bed.cluster.kubectl("delete", "-f", "-", stdin=json.dumps(o))


def coordinator_pod(bed, figures):
    """the coordinator as the chart runs it, from its image: its permissions suffice for a node's whole life, and none is idle"""
    _install(bed)
    world, pool, webhook = bed.world, "chart", bed.port()
    env = json.dumps([{"name": k, "value": v} for k, v in AWS_KEYS.items()])
    objects = bed.tools.objects(bed.tools.template(
        f'coordinator.config.Provider={{"Name": "ec2", "Endpoint": "{world.ec2log.endpoint}", "Region": "{world.ec2.region}"}}',
        f'coordinator.config.Metrics={{"Listen": ":{bed.port()}"}}',
        f'coordinator.config.Webhook={{"Listen": ":{webhook}", "CertificateSecret": "vesper-webhook", "Names": "127.0.0.1"}}',
        f'coordinator.config.Health={{"Listen": ":{bed.port()}"}}', f"coordinator.env={env}", "uninstall.always=true"))
    api = (bed.cluster.ports["apiserver"], bed.cluster.ca, bed.token("vesper-coordinator"))
    mark = world.audit.mark()
    world.pool(pool, "1h")
    # The coordinator judges no node in its first minute, which passes during the rest of this case.
    bed.admin.patch(f"{POOLS}/{pool}", {"spec": {"disruption": {"consolidation": {"policy": "WhenUnderutilized"}}}})
    node, instance = world.node(pool)
    forced, forced_instance = world.node(pool)
    kept, kept_instance = world.node(pool)
    world.replicas(pool, 4, pool)
    world.budget(pool, pool, 3)
    bed.admin.create(BUDGETS, {"apiVersion": "vesper.sh/v1alpha1", "kind": "NodeDisruptionBudget", "metadata": {"name": pool},
                               "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"kubernetes.io/hostname": node}}}})
    pod = Pod(bed, objects, "Deployment", "vesper-coordinator", api=api)
    with pod.daemon as daemon:
        daemon.wait_line("READY")
        world.wait_adopted(node, forced, kept)
        ports = {p["name"]: p["containerPort"] for p in pod.container["ports"]}
        for probe in (pod.container[kind]["httpGet"] for kind in ("livenessProbe", "readinessProbe")):
            assert probe["port"] == "health", probe
            bed.probe(ports["health"], probe["path"])
        bed.probe(ports["metrics"], "/metrics")
        registered = _webhook(bed, objects, webhook)
        made = _daemon_with_volume(bed, node, "stays")
        # A node that somebody deletes, with a budget, and with the volume of a pod that stays, which nobody waits for; its claim
        # follows it. What takes no second is not told in its conditions.
        stuck, = bed.cluster.create_pods(node, 1, prefix="stuck", stop="never")
        world.delete_node(node)
        world.wait_condition(node, "DrainInProgress", timeout=LIMIT)
        charged = bed.admin.get(f"{BUDGETS}/{pool}")["status"]
        assert [d["name"] for d in charged["disruptedNodes"]] == [node], f"its budget says {charged}"
        begun = time.monotonic()
        bed.admin.delete(f"/api/v1/namespaces/default/pods/{stuck}", {"gracePeriodSeconds": 0})
        world.wait_gone(node)
        # A removal waits for the volumes of other pods until nothing has changed about them for two minutes.
        assert time.monotonic() - begun < 60, "the volume of a pod that stays was waited for"
        assert bed.admin.find(made[0]), "its volume was detached"
        for path in made + [f"{BUDGETS}/{pool}"]:
            bed.admin.delete(path)
        # A claim with a deadline that has come: a pod is deleted, not evicted.
        world.cluster.create_pods(forced, 1, prefix="slow", grace=7200)
        bed.admin.delete(f"/apis/vesper.sh/v1alpha1/nodeclaims/{world.claims(forced)[0]['metadata']['name']}")
        world.wait_gone(forced)
        # The claim of the last one tells whether it would go though nobody asked. Then the pool goes, and that node stays.
        claim = f"/apis/vesper.sh/v1alpha1/nodeclaims/{world.claims(kept)[0]['metadata']['name']}"
        bed.cluster.wait_for(lambda: any(c["type"] == "Consolidatable" for c in bed.admin.get(claim)["status"]["conditions"]), LIMIT,
                             "the claim of the last node says whether it would go")
        _uninstall(bed, objects, pool, figures)
        assert FINALIZER not in bed.admin.get(f"/api/v1/nodes/{kept}")["metadata"].get("finalizers", []), "a finalizer was left"
        for gone, its in ((node, instance), (forced, forced_instance)):
            assert world.ec2.state(its) in ("shutting-down", "terminated"), f"the instance of {gone} is {world.ec2.state(its)}"
        assert world.ec2.state(kept_instance) == "running", world.ec2.state(kept_instance)
        for path in registered:
            bed.admin.delete(path)
        peak = pod.peak_memory()
        capabilities = pod.capabilities()
    assert not any(capabilities.values()), f"it had capabilities: {capabilities}"
    assert peak <= pod.memory_request, f"{peak} bytes were resident, {pod.memory_request} are requested"
    calls = world.calls(mark, COORDINATOR)
    idle = _idle(calls, _granted(bed.tools.objects(bed.tools.kustomize())))
    # A repeated Event is patched: nothing repeats here; contract has it. A budget is read where another replica was faster.
    assert idle <= {("patch", "events"), ("get", "nodedisruptionbudgets")}, f"permissions that nothing used: {sorted(idle)}"
    figures.add(f"{len(calls)} requests of {len(_pairs(calls))} kinds, none refused; {peak / 1e6:.1f} MB resident at most, "
                f"{pod.memory_request / 1e6:.0f} MB requested")


def agent_pods(bed, figures):
    """the agent as the chart runs it, from its image: it finds the credential where each distribution has it, and is Ready"""
    _install(bed)
    for distribution in DISTRIBUTIONS:
        name = f"{distribution}-node"
        bed.world.cluster.create_nodes(1, name, labels={"e2e": distribution})
        bed.agent(distribution, f"{name}-0", "none", lambda pod: pod.daemon.wait_line("READY"))


def agent_plugin(bed, figures):
    """a kubeconfig that names a static program of the node: mounted beside it, the agent's pod runs it, and is Ready"""
    _install(bed)
    bed.world.cluster.create_nodes(1, "plugin-node", labels={"e2e": "plugin"})
    credential = [{"path": "/var/lib/kubelet/kubeconfig"}, {"path": AUTHORITY}, {"path": PLUGIN}]
    mark = bed.world.audit.mark()
    bed.agent("other", "plugin-node-0", "none", lambda pod: pod.daemon.wait_line("READY"), credential)
    calls = bed.world.calls(mark, "system:node:plugin-node-0")
    assert calls and all(c.status < 400 for c in calls), calls


def agent_drains(bed, figures):
    """that agent drains its node: the kubelet's credential is enough, its own pod stays, what it keeps is on the node's disk"""
    _install(bed)
    world = bed.world
    node, _ = world.node("agent", "aws:///us-east-1a/i-0123456789abcdef0")
    world.cluster.create_pods(node, 30, prefix="work")
    world.cluster.wait_running(30, node)
    bed.cluster.wait_for(lambda: any(p["spec"].get("nodeName") == node for p in bed.agent_pods()), LIMIT, "the DaemonSet's pod")
    own = next(p["metadata"]["uid"] for p in bed.agent_pods() if p["spec"].get("nodeName") == node)
    with Metadata("i-0123456789abcdef0") as metadata:

        def interrupted(pod):
            pod.daemon.wait_line("READY")
            _wait_polls(metadata, 2)
            mark = world.audit.mark()
            metadata.interrupt()
            pod.daemon.wait_line("NODE_DRAINED")
            world.wait_condition(node, "Drained")
            left = bed.cluster.pods(node)
            assert [p["metadata"]["uid"] for p in left] == [own], [p["metadata"]["name"] for p in left]
            capabilities = pod.capabilities()
            assert not any(capabilities.values()), f"it has capabilities: {capabilities}"
            calls = world.calls(mark, f"system:node:{node}")
            refused = [c for c in calls if c.status in (401, 403)]
            assert not refused, f"these were refused: {refused}"
            peak = pod.peak_memory()
            assert peak <= pod.memory_request, f"{peak} bytes were resident, {pod.memory_request} are requested"
            figures.add(f"{peak / 1e6:.1f} MB resident at most, {pod.memory_request / 1e6:.0f} MB requested")

        host = bed.agent("kubeadm", node, metadata.endpoint, interrupted)
    assert os.listdir(host + "/run/vesper-agent"), "nothing was written to the node's /run/vesper-agent"


CASES = (dry_run, releases, pods_are_made, agents_everywhere, permissions, kubelet_pods_granted, flow_control, coordinator_pod, agent_pods, agent_plugin,
         agent_drains)
ROOT = (coordinator_pod, agent_pods, agent_plugin, agent_drains)
