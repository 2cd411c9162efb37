# SPDX-License-Identifier: Apache-2.0
"""vesper as pods from its own chart (chartbed.py): what happens to a node while its agent and its coordinator are two pods more
on it. One installation serves them all, one case after the other."""

import itertools
import re
import subprocess
import time

from chartbed import LABEL, NAMES, NAMESPACE, UPGRADE_TAG, chart_of
from daemons import program
from node import LIMIT, is_ready, wait_for
from rendering import Refused
from world import BUDGETS, CLAIMS, COORDINATOR, FINALIZER, PDBS, POOLS, FewestReady

WARNED = 3  # vesper-agent --check: nothing fails
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
_serial = itertools.count(1)


class Load:
    """Pods of a ReplicaSet on that machine; its budget allows no disruption until let_go()."""
    def __init__(self, bed, node, count=2, held=False, stop_msec=1000):
        self.bed, self.node, self.count = bed, node, count
        self.name = f"{node.name}-load-{next(_serial)}"
        self.names = bed.replicas(self.name, count, node, available=count if held else count - 1, stop_msec=stop_msec)
        self.fewest = FewestReady(bed.admin, self.name)
        self.fewest.start()
        self._traces = None

    def let_go(self):
        self.bed.admin.patch(f"{PDBS}/{self.name}", {"spec": {"minAvailable": self.count - 1}})

    def check(self, evictors):
        """Each pod was evicted by one of these, ended by itself, and the budget was kept. evictors: audit calls, oldest first."""
        for name in self.names:
            trace = self.node.trace(name)
            assert trace and trace.asked, f"{name} never saw SIGTERM: {trace}"
            assert trace.ended, f"{name} was killed before it ended by itself: {trace}"
            assert any(c.is_eviction and c.name == name and c.status == 201 for c in evictors), f"{name} was not evicted"
        self.fewest.__exit__()
        assert self.fewest.fewest >= self.count - 1, \
            f"{self.fewest.fewest} pods of {self.name} were Ready at once, its budget is {self.count - 1}"

    def end(self):
        self.fewest.__exit__()
        self.bed.remove_workloads(self.name)


def _check_outlived(seen, agent):
    """The agent's pod was the same and not on its way out when its machine was ended; of all others none ran any more."""
    name, uid = agent["metadata"]["name"], agent["metadata"]["uid"]
    assert seen.get(name) == ("vesper-agent", uid, "Running", False), \
        f"the agent's pod was {name} {uid}; when its machine was ended there were: {seen}"
    others = {n: what for n, what in seen.items() if n != name and what[2] not in ("Succeeded", "Failed")}
    assert not others, f"pods ran when the machine was ended: {others}"


def chart_installs(bed, figures):
    """the chart: helm install; 2 coordinators and 3 agents run as their pods say, and a deletion is refused by the webhook behind its Service"""
    begin = time.monotonic()
    chart = chart_of(bed)
    figures.add(f"machines, images, release: all Ready after {time.monotonic() - begin:.1f} s")
    coordinators = chart.pods("vesper-coordinator")
    assert len({p["spec"]["nodeName"] for p in coordinators}) == 2, "both coordinators run on one machine"
    for pod in coordinators + chart.pods("vesper-agent"):
        # What the runtime made of it.
        process = chart.process(pod["spec"]["nodeName"], pod)
        uid = "65532" if pod in coordinators else "0"
        assert process["Uid"].split() == [uid] * 4 and int(process["CapEff"], 16) == 0 and int(process["CapBnd"], 16) == 0 and \
            process["NoNewPrivs"] == "1", f"{pod['metadata']['name']} runs with {process}"
        assert sum(c["restartCount"] for c in pod["status"]["containerStatuses"]) == 0, f"restarted: {pod['status']}"
    for name in NAMES:
        assert "vesper-agent" in chart.workers[name].inhibitors(), f"logind of {name} lists no inhibitor of the agent"
        bad = [line for line in chart.said(name, "vesper-agent") if line.get("level") not in ("info", "notice", "debug")]
        assert not bad, f"the agent of {name} warns: {bad}"
    status, table = chart.inside(NAMES[0], chart.agent(NAMES[0]), "/usr/bin/vesper-agent",
                                 f"--set=Kubernetes.NodeName={NAMES[0]}", "--check")
    for line in table.splitlines():
        figures.add(line)
    assert status in (0, WARNED), f"vesper-agent --check in the container: status {status}\n{table}"
    budget = f"{BUDGETS}/chart"
    bed.admin.create(BUDGETS, {"apiVersion": "vesper.sh/v1alpha1", "kind": "NodeDisruptionBudget", "metadata": {"name": "chart"},
                               "spec": {"maxUnavailable": 0, "selector": {"matchLabels": LABEL}}})
    try:
        # Until it has answered: while it is not reached, deletions pass (failurePolicy Ignore). The node stays: a dry run.
        def refused():
            status, answer = bed.admin.request("DELETE", f"/api/v1/nodes/{NAMES[0]}?dryRun=All")
            return status != 200 and answer

        answer = wait_for(refused, lambda: f"a deletion is refused; {chart.described()}", 0.2)
        assert "nodes.vesper.sh" in answer["message"] and "chart" in answer["message"], answer
        figures.add(answer["message"])
    finally:
        bed.admin.delete(budget)


def chart_deletes(bed, figures):
    """the chart: the node of the leading coordinator is deleted: the other one leads, drains and ends it; the agent's pod outlives that"""
    chart = chart_of(bed)
    leader = wait_for(chart.leader, "a coordinator leads", 0.1)
    name = leader["spec"]["nodeName"]
    node, agent = chart.workers[name], chart.agent(name)
    load = Load(bed, node, count=3)
    try:
        mark, since, asked = bed.audit.mark(), time.time(), len(chart.provider.asked)
        bed.admin.delete(f"/api/v1/nodes/{name}")
        seen = chart.wait_ended(name)
        took, successor = time.time() - since, wait_for(chart.leader, "another coordinator leads", 0.1)
        figures.add(f"gone after {took:.1f} s; led by {leader['metadata']['name']}, then by {successor['metadata']['name']}")
        assert successor["metadata"]["uid"] != leader["metadata"]["uid"], "the leader of before is still there"
        _check_outlived(seen, agent)
        calls = bed.calls_of(COORDINATOR, mark)
        load.check(calls)
        assert any(c.is_eviction and c.name == leader["metadata"]["name"] for c in calls), "the leader was not evicted"
        others = [n for n in NAMES if n != name]
        wait_for(lambda: sum(is_ready(p) for p in chart.pods("vesper-coordinator")) == 2, "2 coordinators are Ready")
        assert all(p["spec"]["nodeName"] in others for p in chart.pods("vesper-coordinator") if is_ready(p))
        ended = [n for operation, n in chart.provider.asked[asked:] if operation == "terminate"]
        assert ended == [name], f"machines that the provider was told to end: {ended}"
        assert not any(chart.workers[n].marks() for n in others), "another node is marked"
    finally:
        load.end()


def chart_interrupted(bed, figures):
    """the chart: a spot notice; the DaemonSet's agent drains its node with the kubelet's credential, the coordinator ends the machine"""
    chart = chart_of(bed)
    name = NAMES[1]
    node, agent = chart.workers[name], chart.agent(name)
    load = Load(bed, node, count=3)
    try:
        mark, since = bed.audit.mark(), time.time()
        node.metadata.interrupt()
        seen = chart.wait_ended(name)
        took = time.time() - since
        _check_outlived(seen, agent)
        own = bed.calls(node, mark)
        cordons = [c for c in own if c.verb == "patch" and c.resource == "nodes" and c.status == 200 and
                   c.body.get("spec", {}).get("unschedulable") is True]
        assert len(cordons) == 1, f"cordons by the agent: {cordons}"
        evicted = [c for c in own if c.is_eviction and c.status == 201]
        assert evicted, "the agent has evicted nothing"
        load.check(own + bed.calls_of(COORDINATOR, mark))
        said = {line.name for line in chart.said(name, "vesper-agent", since=since)}
        assert {"NOTICE_SEEN", "NODE_CORDONED", "DRAIN_STARTED", "NODE_DRAINED"} <= said, f"the agent's pod said {said}"
        figures.add(f"cordoned after {cordons[0].received - since:.1f} s, {len(evicted)} pods evicted by the "
                    f"agent, gone after {took:.1f} s")
    finally:
        load.end()


def chart_poweroff(bed, figures):
    """the chart: systemctl poweroff waits by logind's inhibitor until the DaemonSet's agent has drained the node; clean after the boot"""
    chart = chart_of(bed)
    name = NAMES[2]
    node, agent = chart.workers[name], chart.agent(name)
    load = Load(bed, node)
    try:
        mark, since, asked = bed.audit.mark(), time.time(), len(chart.provider.asked)
        node.run("systemctl", "poweroff")
        off = node.wait_off()
        stopped = node.stopping("kubelet.service", since)
        assert stopped, "the journal does not say when the kubelet was stopped"
        own = bed.calls(node, mark)
        load.check(own)
        for pod in load.names:
            assert node.trace(pod).last <= stopped, f"{pod} lived until {node.trace(pod).last}, the kubelet was stopped at {stopped}"
        said = [line.name for line in chart.said(name, "vesper-agent", since=since)]
        for message in ("SHUTDOWN_BEGAN", "NODE_DRAINED", "SHUTDOWN_LET_GO"):
            assert said.count(message) == 1, f"the agent's pod said {message} {said.count(message)} times: {said}"
        figures.add(f"off after {off - since:.1f} s")
        node.power_on()
        node.wait_clean()
        wait_for(lambda: chart.agent(name) and is_ready(chart.agent(name)), "its agent is Ready again", 0.1)
        assert chart.agent(name)["metadata"]["uid"] == agent["metadata"]["uid"], "its agent is another pod after the boot"
        assert "terminate" not in [o for o, n in chart.provider.asked[asked:] if n == name], "a machine that was off was ended"
    finally:
        load.end()


def chart_upgraded(bed, figures):
    """the chart: helm upgrade to another tag and configuration while a deletion and a notice are being drained: both end well, once"""
    chart = chart_of(bed)
    deleted, noticed, stays = NAMES
    asked = len(chart.provider.asked)
    before = {p["metadata"]["uid"] for p in chart.pods()}
    loads = [Load(bed, chart.workers[n], held=True) for n in (deleted, noticed)]
    try:
        mark, since = bed.audit.mark(), time.time()
        bed.admin.delete(f"/api/v1/nodes/{deleted}")
        chart.workers[noticed].metadata.scale_in()

        def both_are_held():
            claims = chart.claims()
            return all(n in claims and any(b.get("reason") in ("BlockedByPDB", "PDBNeverAllows") for b in claims[n]["status"].get("blockers", []))
                       for n in (deleted, noticed))

        wait_for(both_are_held, lambda: f"both drains wait for budgets: {chart.claims()}", 0.1)
        # With its pod go the lines of the agent of before.
        said = [line.name for line in chart.said(noticed, "vesper-agent", since=since)]
        chart.helm("upgrade", tag=UPGRADE_TAG, level="debug")
        chart.wait_rolled_out()
        upgraded = time.time()

        def of_before():
            return [p["metadata"]["name"] for p in chart.pods() if p["metadata"]["uid"] in before or
                    not p["spec"]["containers"][0]["image"].endswith(":" + UPGRADE_TAG)]

        # A Deployment has come to rest while a pod of before may still be ending.
        wait_for(lambda: not of_before(), lambda: f"no pod of before the upgrade is left: {of_before()}", 0.1)
        pods = chart.pods()
        for load in loads:
            names = {p["metadata"]["name"] for p in bed.pods_of(load.name) if "deletionTimestamp" not in p["metadata"]}
            assert set(load.names) <= names, f"the budget allowed none, and pods of {load.name} were evicted: {names}"
            load.let_go()
        agents = {n: chart.agent(n) for n in (deleted, noticed)}
        for n in (deleted, noticed):
            _check_outlived(chart.wait_ended(n), agents[n])
        took = time.time() - since
        calls = bed.calls_of(COORDINATOR, mark)
        loads[0].check(calls)
        loads[1].check(calls + bed.calls(chart.workers[noticed], mark))
        for n in (deleted, noticed):
            opened = [c for c in calls + bed.calls(chart.workers[n], mark) if c.resource == "nodes" and c.name == n and
                      c.verb == "patch" and c.status == 200 and c.body.get("spec", {}).get("unschedulable", True) is None]
            assert not opened, f"the cordon of {n} was taken back meanwhile: {opened}"
        ended = sorted(n for operation, n in chart.provider.asked[asked:] if operation == "terminate")
        assert ended == [deleted, noticed], f"machines that the provider was told to end: {ended}"
        # The agent that came in the middle has gone on, and begun nothing anew.
        said += [line.name for line in chart.said(noticed, "vesper-agent", pod=agents[noticed]["metadata"]["uid"])]
        assert said.count("NODE_CORDONED") == 1 and said.count("NODE_DRAINED") == 1, f"both agents of {noticed} said {said}"
        assert chart.workers[stays].is_on() and not chart.workers[stays].marks(), f"{stays} is marked"
        figures.add(f"held until {upgraded - since:.1f} s, when all {len(pods)} pods were other ones; gone after {took:.1f} s")
    finally:
        for load in loads:
            load.end()


# What the release makes that is neither kept nor another tool's.
MADE = (("/api/v1", "serviceaccounts"), ("/api/v1", "secrets"), ("/api/v1", "services"), ("/api/v1", "pods"), ("/apis/batch/v1", "jobs"),
        ("/apis/coordination.k8s.io/v1", "leases"), ("/apis/rbac.authorization.k8s.io/v1", "roles"),
        ("/apis/rbac.authorization.k8s.io/v1", "rolebindings"))
MADE_FOR_ALL = ("/apis/rbac.authorization.k8s.io/v1/clusterroles", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
                "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", WEBHOOKS)


def _left(chart, names):
    """What is left of vesper's on objects that are not its own, and its own objects but for CRDs."""
    bed, found = chart.bed, []
    for name in names:
        node = bed.admin.get(f"/api/v1/nodes/{name}")
        del node["metadata"]["managedFields"]  # who wrote, and once wrote, what
        text = str((node["metadata"], node["spec"], node["status"]["conditions"]))
        found += [f"{name}: {what}" for what in re.findall(r"vesper\.sh/[\w-]+", text) + chart.workers[name].marks()]
        assert FINALIZER not in node["metadata"].get("finalizers", []), node["metadata"]
    for path in (CLAIMS, POOLS, BUDGETS):
        found += [f"{path}: {o['metadata']['name']}" for o in bed.admin.get(path)["items"]]
    paths = [f"{group}/namespaces/{NAMESPACE}/{kind}" for group, kind in MADE] + list(MADE_FOR_ALL)
    return found + [f"{path}/{o['metadata']['name']}" for path in paths for o in bed.admin.get(path)["items"]
                    if "vesper" in o["metadata"]["name"]]


def _ctl(bed, *arguments):
    done = subprocess.run([program("vesperctl"), "--kubeconfig", bed.cluster.kubeconfig(), *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=LIMIT)
    assert done.returncode == 0, f"vesperctl {' '.join(arguments)}: status {done.returncode}: {done.stdout}"


def chart_uninstall_refused(bed, figures):
    """the chart: helm uninstall while a removal is held: the hook refuses it, and nothing is changed"""
    chart = chart_of(bed)
    held = NAMES[2]
    _ctl(bed, "pause")
    bed.admin.delete(f"/api/v1/nodes/{held}")
    wait_for(lambda: bed.admin.get(f"/api/v1/nodes/{held}")["metadata"].get("deletionTimestamp"), f"{held} is being deleted")
    before = {p["metadata"]["uid"] for p in chart.pods()}
    begin = time.monotonic()
    try:
        chart.tools.helm("uninstall", "vesper", "--namespace", NAMESPACE)
        raise AssertionError("helm uninstalled while a removal was held")
    except Refused as e:
        figures.add(f"refused after {time.monotonic() - begin:.1f} s: {str(e).strip().splitlines()[-1]}")
    said = "\n".join(line.text for name in NAMES for line in chart.said(name, "vesper-uninstall"))
    assert f"Node {held} is being deleted" in said and "nothing was changed" in said, said
    left = {p["metadata"]["uid"] for p in chart.pods() if p["status"]["phase"] == "Running" and is_ready(p)}
    assert before <= left, f"refused, and of {len(before)} pods {len(before & left)} run"
    _ctl(bed, "resume")
    chart.wait_ended(held)


def chart_uninstalled(bed, figures):
    """the chart: helm uninstall, by its hook: nothing is left, nodes are deleted at once, machines go on"""
    chart = chart_of(bed)
    begin, since = time.monotonic(), time.time()
    chart.uninstall()
    figures.add(f"uninstalled after {time.monotonic() - begin:.1f} s")
    # All pods are on Nodes that exist: the kubelets end them. (Those of a deleted Node wait for kube-controller-manager's garbage
    # collector, up to 80 s: it lists pods every 20 s, and deletes those without a Node 40 s after it first saw them.)
    wait_for(lambda: not chart.pods(), lambda: f"no pod of the release is left: {chart.described()}", 0.1)
    figures.add(f"its last pod gone after {time.monotonic() - begin:.1f} s")
    said = [line.text for w in chart.workers.values() for line in w.journal("-u", "containerd", since=since)]
    stopped, killed = ([text for text in said if what in text] for what in ("Stop container", "Kill container"))
    assert stopped and not killed, f"{len(stopped)} containers got SIGTERM; containerd killed after their grace: {killed}"
    assert not _left(chart, NAMES), f"left: {_left(chart, NAMES)}"
    assert bed.admin.request("GET", POOLS)[0] == 200, "the CRDs are gone"
    worker, asked = chart.workers[NAMES[0]], len(chart.provider.asked)
    bed.admin.delete(f"/api/v1/nodes/{worker.name}")
    assert worker.object() is None, "a deleted node waits for somebody"
    assert worker.is_on() and len(chart.provider.asked) == asked, "its machine was ended"


CASES = [chart_installs, chart_deletes, chart_interrupted, chart_poweroff, chart_upgraded, chart_uninstall_refused, chart_uninstalled]
for _case in CASES:
    _case.machines = 0
    _case.alone = True
    _case.bed = "pods"
    _case.helm = True
