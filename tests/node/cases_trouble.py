# SPDX-License-Identifier: Apache-2.0
"""What goes wrong while a node is drained: kills, power cuts, networks, other hands on the machine."""

import os
import shutil
import signal
import time

import system
from node import wait_for
from shutdowns import Shutdown, Workload


def _cordons(calls):
    return [c for c in calls if c.verb == "patch" and c.resource == "nodes" and c.status == 200 and
            c.body.get("spec", {}).get("unschedulable") is True]


def _evicted(calls):
    return [c.name for c in calls if c.is_eviction and c.status == 201]


def _kill(node):
    pid = node.agent_pid()
    if pid:
        os.kill(pid, signal.SIGKILL)
    return pid


def _wait_evicting(bed, node, mark):
    wait_for(lambda: _evicted(bed.calls(node, mark)), f"a pod of {node.name} is evicted", 0.01)


def _wait_drained(node, work):
    def gone():
        return not [p for p in node.pods() if p["metadata"]["name"] in work.names]

    wait_for(gone, f"all pods of {node.name} are gone", 0.1)


def _ended(node):
    """The announced end comes: the machine loses its power, and is started again."""
    node.metadata.calm()
    node.cut_power()
    node.power_on()
    node.wait_clean()


def spot(bed, node, figures):
    """a spot notice of the metadata service at its real address: drained, each container with its grace; clean after the boot"""
    work = Workload(bed, node, budget=True)
    mark, since = bed.audit.mark(), time.time()
    node.metadata.interrupt()
    drained = node.wait_said("NODE_DRAINED", since)
    work.check_ends()
    assert work.end_watch() >= 1, "the budget was not kept"
    calls = bed.calls(node, mark)
    assert len(_cordons(calls)) == 1, f"cordons: {_cordons(calls)}"
    assert sorted(_evicted(calls)) == sorted(work.names), f"evicted {_evicted(calls)}, expected {sorted(work.names)}"
    _ended(node)
    figures.add(drained.text)


def killed_in_phases(bed, node, figures):
    """SIGKILL of the agent as soon as it cordoned, while it evicts, and when all is drained: one cordon, one eviction each"""
    work = Workload(bed, node, count=3, hold=True)
    mark, killed = bed.audit.mark(), []
    node.metadata.scale_in()
    wait_for(node.is_cordoned, "the node is cordoned", 0.005)
    killed.append(_kill(node))
    _wait_evicting(bed, node, mark)
    wait_for(lambda: node.agent_pid() not in (None, *killed), "the agent runs again", 0.05)
    killed.append(_kill(node))
    work.release()
    _wait_drained(node, work)
    wait_for(lambda: node.condition("Drained") == "True", "the node's condition Drained is True", 0.05)
    killed.append(_kill(node))
    wait_for(lambda: node.agent_pid() not in (None, *killed), "the agent runs again", 0.05)
    wait_for(node.agent_is_connected, "the agent's watches stand", 0.05)
    assert None not in killed, f"killed {killed}: an agent was not there"
    work.check_ends()
    calls = bed.calls(node, mark)
    evicted = _evicted(calls)
    assert len(_cordons(calls)) == 1, f"cordons: {_cordons(calls)}"
    assert len(evicted) == len(set(evicted)), f"a pod was evicted twice: {evicted}"
    _ended(node)
    figures.add(f"agents killed: {len(killed)}, cordons 1, evictions {len(evicted)}")


def killed_in_shutdown(bed, node, figures):
    """SIGKILL of the agent while logind waits for it: the shutdown waits on, and the next agent drains"""
    work = Workload(bed, node, count=3, hold=True)
    killed = []

    def tell():
        mark = bed.audit.mark()
        node.run("systemctl", "poweroff")
        _wait_evicting(bed, node, mark)
        killed.append(_kill(node))
        work.release()

    down = Shutdown(bed, node, tell, work)
    assert killed[0], "there was no agent to kill"
    units = {u: node.stopping(u, down.began) for u in ("kubelet.service", "containerd.service")}
    work.check_ends(before=units)
    assert len(_cordons(down.calls())) == 1, f"cordons: {_cordons(down.calls())}"
    assert node.said("NODE_DRAINED", down.began), f"nobody said that the node is drained:\n{node.explained(down.began)}"
    down.back()
    figures.add(f"off after {down.seconds:.1f} s")


def killed_in_stop(bed, node, figures):
    """SIGKILL of the agent in the ordered stop (past logind): off, containers are asked to end; clean after the boot"""
    work = Workload(bed, node, count=2, deaf_grace=0, hold=True)

    def tell():
        mark = bed.audit.mark()
        os.kill(node.pid1, signal.SIGRTMIN + 4)
        _wait_evicting(bed, node, mark)
        assert _kill(node), "there was no agent to kill"
        work.release()

    down = Shutdown(bed, node, tell, work)
    for trace in work.traces().values():
        assert trace.asked, f"{trace.name} never saw SIGTERM"
    down.back()
    figures.add(f"off after {down.seconds:.1f} s; pods had " + " ".join(f"{t.had:.1f}" for t in work.traces().values()) + " s")


def power_cut(bed, node, figures):
    """the power is cut in the middle of a drain before a shutdown: clean after the boot"""
    work = Workload(bed, node, count=3, hold=True)
    mark, since = bed.audit.mark(), time.time()
    node.run("systemctl", "poweroff")
    _wait_evicting(bed, node, mark)
    node.cut_power()
    assert node.is_cordoned(), "the drain had not begun"
    work.release()
    node.power_on()
    node.wait_clean()
    figures.add(f"evicted before the cut: {len(_evicted(bed.calls(node, mark)))} of {len(work.names)}; "
                f"clean {time.time() - since:.1f} s after the shutdown began")


def power_cut_spot(bed, node, figures):
    """the power is cut in the middle of a drain for a spot notice: clean after the boot, as the notice is of another machine now"""
    work = Workload(bed, node, count=3, hold=True)
    mark = bed.audit.mark()
    node.metadata.interrupt()
    _wait_evicting(bed, node, mark)
    node.cut_power()
    work.release()
    _ended(node)


# In the next two cases the drain cannot begin. "Off soon" means: before LIMIT. An agent that kept its inhibitor would make the
# machine wait twice as long (InhibitDelayMaxSec=10min).
def cable_cut(bed, node, figures):
    """poweroff of a machine without network: not drained, containers are asked to end, off soon; clean after the boot"""
    work = Workload(bed, node, count=2, deaf_grace=0)

    def tell():
        bed.network.cut(node.name)
        node.run("systemctl", "poweroff")

    try:
        down = Shutdown(bed, node, tell, work)
    finally:
        bed.network.cut(node.name, away=False)
    for trace in work.traces().values():
        assert trace.ended, f"{trace.name} did not end by itself after SIGTERM: {trace}"
    down.back()
    figures.add(f"off after {down.seconds:.1f} s")


def api_stopped(bed, node, figures):
    """poweroff while the API server is stopped: containers are asked to end, off soon; clean after the boot"""
    work = Workload(bed, node, count=2, deaf_grace=0)

    def tell():
        bed.cluster.stop_process("kube-apiserver")
        node.run("systemctl", "poweroff")

    try:
        down = Shutdown(bed, node, tell, work)
    finally:
        bed.cluster.start_process("kube-apiserver")
    for trace in work.traces().values():
        assert trace.ended, f"{trace.name} did not end by itself after SIGTERM: {trace}"
    down.back()
    figures.add(f"off after {down.seconds:.1f} s")


api_stopped.alone = True


def kubelet_restarted(bed, node, figures):
    """the kubelet is restarted in the middle of a drain: the drain ends all the same, each container with its grace"""
    work = Workload(bed, node, count=3, hold=True)
    mark, since = bed.audit.mark(), time.time()
    node.metadata.scale_in()
    _wait_evicting(bed, node, mark)
    node.run("systemctl", "restart", "kubelet")
    work.release()
    node.wait_said("NODE_DRAINED", since)
    work.check_ends()
    _ended(node)
    figures.add(node.said("NODE_DRAINED", since)[0].text)


def upgraded(bed, node, figures):
    """the package is upgraded in the middle of a drain: the new agent goes on, with one cordon and one eviction each"""
    node.changed = True
    work = Workload(bed, node, count=3, hold=True)
    shutil.copy(system.newer_package(node.folder), node.at("/root/newer.deb"))
    wait_for(lambda: "vesper-agent" in node.inhibitors(), "logind has the agent's inhibitor")
    mark, since, before = bed.audit.mark(), time.time(), node.agent_pid()
    node.metadata.scale_in()
    _wait_evicting(bed, node, mark)
    said = node.run("dpkg", "--force-confold", "-i", "/root/newer.deb")
    assert node.agent_pid() not in (None, before), f"the upgrade did not restart the agent:\n{said}"
    work.release()
    _wait_drained(node, work)
    wait_for(lambda: node.condition("Drained") == "True", "the node's condition Drained is True", 0.05)
    work.check_ends()
    calls = bed.calls(node, mark)
    evicted = _evicted(calls)
    assert len(_cordons(calls)) == 1, f"cordons: {_cordons(calls)}"
    assert sorted(evicted) == sorted(work.names), f"evicted {evicted}, expected each of {sorted(work.names)} once"
    assert "vesper-agent" in node.inhibitors(), "logind lost the agent's inhibitor"
    _ended(node)
    figures.add(f"{len(node.said('READY', since))} start, 1 cordon, {len(evicted)} evictions")


def kubelet_graceful(bed, node, figures):
    """the kubelet's own graceful shutdown is on: --check says so and what to set; a poweroff is over in time all the same"""
    node.changed = True
    # Somebody lets nodes read their kubelet's configuration. (The kubelet remembers a refusal for 30 s: before the first look.)
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    bed.admin.create(rbac + "/clusterroles", {"metadata": {"name": "configz"}, "rules": [
        {"apiGroups": [""], "resources": ["nodes/configz"], "verbs": ["get"]}]})
    bed.admin.create(rbac + "/clusterrolebindings", {
        "metadata": {"name": "configz"}, "subjects": [{"kind": "Group", "name": "system:nodes", "apiGroup":
                                                       "rbac.authorization.k8s.io"}],
        "roleRef": {"kind": "ClusterRole", "name": "configz", "apiGroup": "rbac.authorization.k8s.io"}})
    try:
        _kubelet_graceful(bed, node, figures)
    finally:
        for kind in ("clusterrolebindings", "clusterroles"):
            bed.admin.request("DELETE", f"{rbac}/{kind}/configz")


def _kubelet_graceful(bed, node, figures):
    with open(node.at("/var/lib/kubelet/config.yaml"), "a", encoding="utf-8") as f:
        f.write("shutdownGracePeriod: 10s\nshutdownGracePeriodCriticalPods: 2s\n")
    node.run("systemctl", "restart", "kubelet")
    wait_for(lambda: "kubelet" in node.inhibitors(), "the kubelet holds an inhibitor", 0.1)
    code, table = node.status("vesper-agent", "--check")
    assert code == 3 and "shutdownGracePeriod" in table, f"--check: status {code}, expected 3 and the key to set:\n{table}"
    assert "its /configz says" in table, f"--check was allowed to read /configz, and did not:\n{table}"
    wait_for(lambda: node.condition("Ready") == "True", "the node is Ready", 0.1)
    work = Workload(bed, node, deaf_grace=0)
    down = Shutdown(bed, node, lambda: node.run("systemctl", "poweroff"), work)
    work.check_ends()
    down.back()
    figures.add(f"off after {down.seconds:.1f} s")


CASES = [
    spot, killed_in_phases, killed_in_shutdown, killed_in_stop, power_cut, power_cut_spot, cable_cut, api_stopped,
    kubelet_restarted, upgraded, kubelet_graceful
]
