# SPDX-License-Identifier: Apache-2.0
"""What is rendered, before any of it is applied."""

import json
import os
import re
import subprocess

from daemons import program
from rendering import CHART, DISTRIBUTIONS, NAMESPACE, Refused, configuration, is_hook, normal, one, pod_of, same

VALUES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "values")
# Keys of the daemons that a pod's own surroundings decide, and values may not.
NOT_VALUES = {
    "coordinator": {"Kubernetes.Kubeconfig", "Lease.Namespace", "Lease.Identity"},
    "agent": {"Kubernetes.NodeName", "Agent.RuntimeDirectory"},
}


def values_files():
    return [os.path.join(VALUES, name) for name in sorted(os.listdir(VALUES))]


def lint(bed, figures):
    """helm lint finds nothing, with the defaults and with each values file"""
    for values in [[]] + [["-f", path] for path in values_files()]:
        said = bed.tools.helm("lint", "--strict", CHART, *values)
        assert "[WARNING]" not in said and "[ERROR]" not in said, said
    figures.add(f"{len(values_files())} values files")


def no_drift(bed, figures):
    """helm and kustomize render the same objects, for the coordinator alone and with an agent of each kind"""
    count = 0
    for folder, values in [(".", [])] + [
        (f"agent-{d}", [f'agent={{"enabled": true, "distribution": "{d}"}}']) for d in DISTRIBUTIONS
    ]:
        ours = normal(bed.tools.objects(bed.tools.kustomize(folder)))
        charts = normal(bed.tools.objects(bed.tools.template(*values)))
        different = same(ours, charts)
        assert not different, f"packaging/manifests/{folder} (first) and the chart (second):\n" + "\n".join(different[:20])
        count += len(ours)
    figures.add(f"{count} objects compared")


def whole(bed, figures):
    """exactly the kinds that are meant, no Secret among them, and nobody may do everything"""
    objects = bed.tools.objects(bed.tools.kustomize("agent-kubeadm"))
    kinds = sorted(o["kind"] for o in objects)
    wanted = sorted(["CustomResourceDefinition"] * 3 + ["ConfigMap"] * 2 + ["ServiceAccount"] * 2 + ["FlowSchema"] * 2 + [
        "Namespace", "ClusterRole", "ClusterRole", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Deployment", "DaemonSet",
        "PodDisruptionBudget", "NetworkPolicy", "Service", "ValidatingWebhookConfiguration"
    ])
    assert kinds == wanted, f"{kinds} are rendered, {wanted} are meant"
    for o in objects:
        for rule in o.get("rules", []) if o["kind"] in ("Role", "ClusterRole") else []:
            assert "*" not in rule["verbs"] + rule["resources"] + rule["apiGroups"], f"{o['kind']} {o['metadata']['name']}: {rule}"
        if o["kind"].endswith("Binding"):
            names = [s["name"] for s in o["subjects"]]
            assert names == ["vesper-coordinator"], f"{o['kind']} {o['metadata']['name']} binds {names}"


def reasons(bed, figures):
    """each permission has its reason beside it"""
    for name, least in ("rbac.yaml", 20), ("people.yaml", 10), ("uninstall.yaml", 6), ("kubelet-pods.yaml", 1):
        with open(os.path.join(CHART, "files", name), encoding="utf-8") as f:
            lines = f.read().splitlines()
        rules = [i for i, line in enumerate(lines) if line.startswith("- {apiGroups")]
        assert len(rules) >= least, rules
        # The Lease's two stand under one; so do those of people that go together.
        together = "leases" if name == "rbac.yaml" else "- {"
        bare = [lines[i] for i in rules if not lines[i - 1].startswith("#")
                and not (together in lines[i] and lines[i - 1].startswith("- {"))]
        assert not bare, f"{name}: no reason stands above {bare}"


def kubelet_pods(bed, figures):
    """by a folder of its own, or a value, and not otherwise: nodes may get nodes/pods, and nothing else; helm and kustomize agree"""
    ours = bed.tools.objects(bed.tools.kustomize("kubelet-pods"))
    names = {(o["kind"], o["metadata"]["name"]) for o in ours}
    assert names == {("ClusterRole", "vesper-kubelet-pods"), ("ClusterRoleBinding", "vesper-kubelet-pods")}, names
    assert one(ours, "ClusterRole")["rules"] == [{"apiGroups": [""], "resources": ["nodes/pods"], "verbs": ["get"]}], ours
    subject, = one(ours, "ClusterRoleBinding")["subjects"]
    assert (subject["kind"], subject["name"]) == ("Group", "system:nodes"), subject
    charts = [o for o in bed.tools.objects(bed.tools.template("kubeletPods.grant=true")) if o["metadata"]["name"] == "vesper-kubelet-pods"]
    different = same(normal(ours), normal(charts))
    assert not different, "\n".join(different)
    for text in bed.tools.kustomize("agent-kubeadm"), bed.tools.template("agent.enabled=true"):
        assert "nodes/pods" not in text, "a permission that nobody asked for is granted"


def values(bed, figures):
    """values reach the objects: images, an identity of the cloud, a command of one's own, an agent where nobody knows"""
    tools = bed.tools
    objects = tools.objects(tools.template(os.path.join(VALUES, "eks.yaml"), namespace="elsewhere"))
    deployment = one(objects, "Deployment")
    container = pod_of(deployment)["containers"][0]
    assert container["image"] == "registry.example/team/vesper-coordinator:1.2.3", container["image"]
    assert {"name": "AWS_REGION", "value": "eu-central-1"} in container["env"], container["env"]
    assert {"name": "notify", "mountPath": "/etc/vesper-notify", "readOnly": True} in container["volumeMounts"], container["volumeMounts"]
    assert {"name": "notify", "secret": {"secretName": "vesper-notify"}} in pod_of(deployment)["volumes"], pod_of(deployment)["volumes"]
    objects_of_agent = tools.objects(tools.template("agent.enabled=true", 'agent.notifySecret="told"'))
    volumes = pod_of(one(objects_of_agent, "DaemonSet"))["volumes"]
    assert {"name": "notify", "secret": {"secretName": "told"}} in volumes, volumes
    account = one(objects, "ServiceAccount", "vesper-coordinator")
    assert account["metadata"]["annotations"] == {"eks.amazonaws.com/role-arn": "arn:aws:iam::111122223333:role/vesper"}, account
    for o in objects:
        assert o["metadata"].get("namespace") in (None, "elsewhere"), f"{o['kind']} is in {o['metadata']['namespace']}"
        for subject in o.get("subjects", []):
            assert subject["namespace"] == "elsewhere", subject
    schemas = [o for o in objects if o["kind"] == "FlowSchema"]
    subjects = {s["serviceAccount"]["namespace"] for o in schemas for r in o["spec"]["rules"] for s in r["subjects"]}
    assert len(schemas) == 2 and subjects == {"elsewhere"}, subjects
    assert not any(NAMESPACE in json.dumps(o["spec"]) for o in schemas), schemas

    objects = tools.objects(tools.template(os.path.join(VALUES, "bare-metal.yaml")))
    conf = configuration(one(objects, "ConfigMap", "vesper-coordinator-conf")["data"]["coordinator.conf"])
    assert conf["Provider"] == {"Name": "exec", "Command": "/opt/provider/end-machine"}, conf
    pod = pod_of(one(objects, "Deployment"))
    assert [m["mountPath"] for m in pod["containers"][0]["volumeMounts"]] == ["/etc/vesper", "/opt/provider"], pod
    assert not [o for o in objects if o["kind"] in ("CustomResourceDefinition", "FlowSchema")], "these were not wanted"
    pod = pod_of(one(objects, "DaemonSet"))
    paths = {v["hostPath"]["path"]: v["hostPath"]["type"] for v in pod["volumes"] if v["name"].startswith("credential-")}
    assert paths == {"/srv/kubelet/config": "File", "/srv/kubelet/pki": "Directory"}, paths
    assert "--set=Kubernetes.Kubeconfig=/srv/kubelet/config" in pod["containers"][0]["args"], pod["containers"][0]["args"]
    conf = configuration(one(objects, "ConfigMap", "vesper-agent-conf")["data"]["agent.conf"])
    assert conf["Metadata"] == {"Source": "none"} and conf["Shutdown"] == {"MaxSec": "5min"}, conf

    # Only the port of the metrics is open to anybody, and that of the webhook to all; the probes ask at none of them.
    for given, peers in (((), 1), (("networkPolicy.metricsFrom=[]",), 0)):
        objects = tools.objects(tools.template(*given))
        policy, container = one(objects, "NetworkPolicy")["spec"], pod_of(one(objects, "Deployment"))["containers"][0]
        opened = [(port["port"], peer) for rule in policy["ingress"] for port in rule["ports"] for peer in rule.get("from", [])]
        everybodys = [port["port"] for rule in policy["ingress"] if not rule.get("from") for port in rule["ports"]]
        assert policy["policyTypes"] == ["Ingress"] and [port for port, _ in opened] == ["metrics"] * peers, policy
        assert everybodys == ["webhook"], f"a rule without peers lets everybody in: {policy}"
        probes = {container[kind]["httpGet"]["port"] for kind in ("livenessProbe", "readinessProbe")}
        assert probes == {"health"}, f"the probes ask at {probes}"
        selected = one(objects, "Deployment")["spec"]["template"]["metadata"]["labels"]
        assert policy["podSelector"]["matchLabels"].items() <= selected.items(), (policy, selected)
    peer = {"ipBlock": {"cidr": "192.0.2.10/32"}}
    policy = one(tools.objects(tools.template(f"networkPolicy.webhookFrom=[{json.dumps(peer)}]")), "NetworkPolicy")["spec"]
    assert [rule["from"] for rule in policy["ingress"] if rule["ports"][0]["port"] == "webhook"] == [[peer]], policy
    assert not [o for o in tools.objects(tools.template("networkPolicy.create=false")) if o["kind"] == "NetworkPolicy"]

    digest = "sha256:" + "ab" * 32
    pod = pod_of(one(tools.objects(tools.template(f'coordinator.image={{"repository": "c", "digest": "{digest}"}}')), "Deployment"))
    assert pod["containers"][0]["image"] == f"c@{digest}", pod["containers"][0]["image"]


def hooks(bed, figures):
    """what helm makes before it uninstalls: one Job from the coordinator's image, its account and rights, all taken away again; by a value none"""
    digest = "sha256:" + "ab" * 32
    tools = bed.tools
    objects = tools.objects(tools.template(f'coordinator.image={{"repository": "c", "digest": "{digest}"}}', "uninstall.timeoutSeconds=77", "uninstall.always=true",
                                           'coordinator.nodeSelector={"a": "b"}', 'image.pullSecrets=[{"name": "s"}]', namespace="elsewhere"))
    found = {o["kind"]: o for o in objects if is_hook(o)}
    assert sorted(found) == ["ClusterRole", "ClusterRoleBinding", "Job", "Role", "RoleBinding", "ServiceAccount"], sorted(found)
    for kind, o in found.items():
        marks = o["metadata"]["annotations"]
        assert o["metadata"]["name"] == "vesper-uninstall" and marks["helm.sh/hook"] == "pre-delete", o["metadata"]
        assert set(marks["helm.sh/hook-delete-policy"].split(",")) == {"before-hook-creation", "hook-succeeded"}, marks
        assert int(marks["helm.sh/hook-weight"]) == (0 if kind == "Job" else -1), f"{kind}: {marks}"
        for rule in o.get("rules", []):
            assert "*" not in rule["verbs"] + rule["resources"] + rule["apiGroups"], f"{kind}: {rule}"
        for subject in o.get("subjects", []):
            assert (subject["name"], subject["namespace"]) == ("vesper-uninstall", "elsewhere"), subject
    job = found["Job"]["spec"]
    pod = pod_of(found["Job"])
    assert job["activeDeadlineSeconds"] == 77 and pod["restartPolicy"] == "Never" and job["backoffLimit"] < 6, job
    assert pod["serviceAccountName"] == "vesper-uninstall" and pod["nodeSelector"]["a"] == "b" and pod["imagePullSecrets"], pod
    assert pod["containers"][0]["image"] == f"c@{digest}" and pod["containers"][0]["command"] == ["/usr/bin/vesperctl"], pod
    assert pod["containers"][0]["args"][:4] == ["release", "--all", "--yes", "--timeout=57s"], pod["containers"][0]["args"]
    # Rendered without a cluster it would be applied with all else, and run at once.
    for values in ((), ("uninstall.release=false", "uninstall.always=true")):
        assert not [o["kind"] for o in tools.objects(tools.template(*values)) if is_hook(o)], values
    # What the coordinators write is the release's; but for a Secret that a person has named.
    for given, kinds in (((), {"Lease", "Secret"}), (('coordinator.config.Webhook.CertificateSecret="own"', ), {"Lease"})):
        own = {o["kind"]: o for o in tools.objects(tools.template(*given)) if o["kind"] in ("Lease", "Secret")}
        assert own.keys() == kinds and not any(k in o for o in own.values() for k in ("data", "spec")), own


def webhook(bed, figures):
    """the webhook: fail closed as an overlay and by a value, its CA left to the leader, and users who are exempt"""
    tools = bed.tools
    configured = [(tools.kustomize("."), "Ignore"), (tools.kustomize("webhook-fail"), "Fail"),
                  (tools.template('coordinator.webhook.failurePolicy="Fail"'), "Fail")]
    for text, wanted in configured:
        objects = tools.objects(text)
        hook, = one(objects, "ValidatingWebhookConfiguration")["webhooks"]
        assert hook["failurePolicy"] == wanted and "caBundle" not in hook["clientConfig"], hook
        service, port = one(objects, "Service"), hook["clientConfig"]["service"]
        assert service["metadata"]["name"] == port["name"] and service["spec"]["ports"][0]["port"] == port["port"], service
        container = pod_of(one(objects, "Deployment"))["containers"][0]
        assert service["spec"]["ports"][0]["targetPort"] in [p["name"] for p in container["ports"]], container["ports"]
    objects = tools.objects(tools.template('coordinator.config.Webhook={"Listen": ":9443", "CertificateSecret": "own", '
                                           '"Exempt": "robot *-bot system:serviceaccount:a:b"}'))
    conditions = one(objects, "ValidatingWebhookConfiguration")["webhooks"][0]["matchConditions"]
    assert conditions[-1]["expression"] == '!(request.userInfo.username in ["robot", "system:serviceaccount:a:b"])', conditions
    objects = tools.objects(tools.template(namespace="elsewhere"))
    conditions = one(objects, "ValidatingWebhookConfiguration")["webhooks"][0]["matchConditions"]
    own = 'request.userInfo.username != "system:serviceaccount:elsewhere:vesper-coordinator"'
    assert [c["expression"] for c in conditions if c["name"] == "not-the-coordinator"] == [own], conditions
    kinds = {o["kind"] for o in tools.objects(tools.template("coordinator.webhook.create=false"))}
    assert not kinds & {"Service", "ValidatingWebhookConfiguration"}, kinds
    figures.add("3 renderings")


def restarts(bed, figures):
    """another configuration makes other pods, by helm and by kustomize"""
    def checksum(*values):
        deployment = one(bed.tools.objects(bed.tools.template(*values)), "Deployment")
        return deployment["spec"]["template"]["metadata"]["annotations"]["checksum/config"]

    assert checksum() == checksum(), "the same values, and another checksum"
    assert checksum() != checksum('coordinator.config.Drain={"Protected": "others"}'), "other values, and the same checksum"
    objects = bed.tools.objects(bed.tools.kustomize())
    name = one(objects, "ConfigMap")["metadata"]["name"]
    assert re.fullmatch("vesper-coordinator-conf-[a-z0-9]{10}", name), name
    used = pod_of(one(objects, "Deployment"))["volumes"][0]["configMap"]["name"]
    assert used == name, f"the pod mounts {used}, the ConfigMap is {name}"


def nonsense(bed, figures):
    """nonsense is refused, and the message names the value"""
    rows = (
        ('coordinator.replicas=0', "/coordinator/replicas"),
        ('coordinator.replicas="two"', "/coordinator/replicas"),
        ('coordinator.replica=2', "'replica' not allowed"),
        ('coordinator.config.Provider.Name="gcp"', "/coordinator/config/Provider/Name"),
        ('coordinator.config.Provider={"Name": "exec"}', "Command"),
        ('coordinator.config.Provider={"Name": "exec", "Command": "end-machine"}', "/coordinator/config/Provider/Command"),
        ('coordinator.config.Povider={"Name": "ec2"}', "'Povider' not allowed"),
        ('coordinator.config.Drain={"Protected": "never"}', "/coordinator/config/Drain/Protected"),
        ('coordinator.config.Drain={"LoadBalancerWaitSec": "soon"}', "/coordinator/config/Drain/LoadBalancerWaitSec"),
        ('coordinator.config.Metrics.Listen="127.0.0.1:9102"', "/coordinator/config/Metrics/Listen"),
        ('coordinator.config.Health.Listen="127.0.0.1:9103"', "/coordinator/config/Health/Listen"),
        ('coordinator.config.Health=null', "Health"),
        ('networkPolicy.create="yes"', "/networkPolicy/create"),
        ('networkPolicy.from=[]', "'from' not allowed"),
        ('coordinator.config.Provider.Region="a\\nName=exec"', "/coordinator/config/Provider/Region"),
        ('coordinator.image.digest="sha256:1"', "/coordinator/image/digest"),
        ('coordinator.resources.limits={"memory": "much"}', "/coordinator/resources/limits/memory"),
        ('agent.enabled="yes"', "/agent/enabled"),
        ('agent={"enabled": true, "distribution": "gke"}', "/agent/distribution"),
        ('agent={"enabled": true, "distribution": "other"}', "needs agent.credential"),
        ('agent.credential=[{"path": "kubelet.conf"}]', "/agent/credential/0/path"),
        ('agent.config.Metrics.Listen="0.0.0.0:9101"', "/agent/config/Metrics/Listen"),
        ('agent.config.Health.Listen="0.0.0.0:9104"', "/agent/config/Health/Listen"),
        ('agent.config.Metadata={"PollSec": "often"}', "/agent/config/Metadata/PollSec"),
        ('agent.maxUnavailable="0%"', "/agent/maxUnavailable"),
        ('image.pullPolicy="Sometimes"', "/image/pullPolicy"),
        ('webhook={"enabled": true}', "'webhook' not allowed"),
        ('uninstall.release="yes"', "/uninstall/release"),
        ('kubeletPods.grant="yes"', "/kubeletPods/grant"),
        ('uninstall.timeoutSeconds=30', "/uninstall/timeoutSeconds"),
        ('coordinator.webhook.failurePolicy="Warn"', "/coordinator/webhook/failurePolicy"),
        ('coordinator.config.Webhook=null', "needs coordinator.config.Webhook.Listen"),
    )
    for given, wanted in rows:
        try:
            bed.tools.template(given)
        except Refused as e:
            said = str(e).replace(".", "/") if wanted.startswith("/") else str(e)
            assert wanted in said, f"{given}: the message does not say {wanted}:\n{e}"
        else:
            raise AssertionError(f"{given} was rendered")
    figures.add(f"{len(rows)} values refused")


def _keys_of(binary):
    dump = subprocess.run([program(binary), "--dump-config"], capture_output=True, text=True, check=True).stdout
    return {f"{section}.{key}" for section, keys in configuration(dump).items() for key in keys}


def keys(bed, figures):
    """values know each key that the daemons know, and the daemons read each file that is rendered"""
    with open(os.path.join(CHART, "values.schema.json"), encoding="utf-8") as f:
        schema = json.load(f)["properties"]
    for name in ("coordinator", "agent"):
        sections = schema[name]["properties"]["config"]["properties"]
        known = {f"{section}.{key}" for section, s in sections.items() for key in s["properties"]}
        real = _keys_of(f"vesper-{name}") - NOT_VALUES[name]
        assert known == real, f"{name}: only values.schema.json knows {known - real}, only the daemon {real - known}"
    for values_of in [[]] + [[path] for path in values_files()]:
        enabled = [] if values_of else ['agent.enabled=true']
        for o in bed.tools.objects(bed.tools.template(*values_of, *enabled)):
            if o["kind"] == "ConfigMap":
                (file, text), = o["data"].items()
                path = bed.write(file, text)
                done = subprocess.run([program("vesper-" + file.removesuffix(".conf")), "--config", path, "--dump-config"],
                                      capture_output=True, text=True, check=False)
                assert done.returncode == 0 and not done.stderr, f"{file} of {values_of}:\n{text}\n{done.stderr}"
                wanted, dumped = configuration(text), configuration(done.stdout)
                for section, pairs in wanted.items():
                    for key in pairs:
                        assert key in dumped[section], f"{file}: {section}.{key} is not in the daemon's dump"


CASES = (lint, no_drift, whole, reasons, kubelet_pods, values, hooks, webhook, restarts, nonsense, keys)
