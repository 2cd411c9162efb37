# SPDX-License-Identifier: Apache-2.0
"""The machine stays: nothing that happens to units, and no shutdown that was cancelled, takes the node out of service."""

import os
import signal
import time

from node import wait_for
from shutdowns import Workload

RESTARTS = 100
_STARTED = "39f53479d3a045ac8e11786248231fbf"  # systemd: a unit was started


def _inhibitor(node):
    """The number of the agent's one inhibitor, as soon as logind has it."""
    found = wait_for(lambda: node.inhibitors().get("vesper-agent"), "logind has the agent's inhibitor")
    assert len(found) == 1, f"the agent has {len(found)} inhibitors"
    return found[0]


def _untouched(bed, node, mark, names):
    # An Event that is counted up was said before.
    writes = [c for c in bed.calls(node, mark) if c.is_write and (c.verb, c.resource) != ("patch", "events")]
    assert not writes, f"the agent wrote: {writes}"
    assert not node.marks(), f"marks on the node: {node.marks()}"
    left = {p["metadata"]["name"] for p in node.pods() if "deletionTimestamp" not in p["metadata"]}
    assert set(names) <= left, f"pods are gone: {set(names) - left}"


def restarts(bed, node, figures):
    """systemctl restart vesper-agent, 100 times: no cordon, no eviction, and logind has its inhibitor at every instant"""
    names = node.create_pods(2, "stay")
    inhibitor, mark, since = _inhibitor(node), bed.audit.mark(), time.time()
    for i in range(RESTARTS):
        node.run("systemctl", "restart", "vesper-agent")
        assert _inhibitor(node) == inhibitor, f"after restart {i + 1} it is another inhibitor: the first one was lost"
    starts = [line for line in node.journal("UNIT=vesper-agent.service", since=since) if line.get("MESSAGE_ID") == _STARTED]
    figures.add(f"{RESTARTS} restarts in {time.time() - since:.1f} s, one inhibitor")
    assert len(starts) == RESTARTS, f"systemd tells of {len(starts)} starts, expected {RESTARTS}"
    _untouched(bed, node, mark, names)


def reloaded(bed, node, figures):
    """systemctl reload vesper-agent: the same process takes what changed, refuses what is wrong, and keeps its inhibitor"""
    names = node.create_pods(2, "stay")
    inhibitor, mark, before = _inhibitor(node), bed.audit.mark(), node.agent_pid()
    path = "/etc/vesper/agent.conf.d/99-reload.conf"
    for text, message, words in (("[Log]\nLevel=debug\n", "CONFIGURATION_RELOADED", "took [Log] Level=debug (was info)"),
                                 ("[Log]\nLevel=loud\n", "CONFIGURATION_KEPT", "What was in force stays"),
                                 (None, "CONFIGURATION_RELOADED", "took [Log] Level=info (was debug)")):
        if text is None:
            os.remove(node.at(path))
        else:
            node.write(path, text)
        since = time.time()
        code, said = node.status("systemctl", "reload", "vesper-agent")
        assert code == 0, f"systemctl reload: status {code}: {said}\n{node.explained(since)}"
        line = node.wait_said(message, since)
        assert words in line.text, f"'{words}' is not in: {line.text}"
    assert node.show("vesper-agent", "ActiveState") == "active", "a reload has ended it"
    assert node.agent_pid() == before, "it is another process"
    assert _inhibitor(node) == inhibitor, "it is another inhibitor: the first one was lost"
    _untouched(bed, node, mark, names)


def stopped_units(bed, node, figures):
    """vesper-agent stopped and started, killed; kubelet and containerd restarted: nothing is drained"""
    names = node.create_pods(2, "stay")
    mark = bed.audit.mark()
    for act in (("stop", "vesper-agent"), ("start", "vesper-agent"), ("kill", "--signal=SIGKILL", "vesper-agent"),
                ("restart", "kubelet"), ("restart", "containerd"), ("daemon-reload", )):
        node.run("systemctl", *act)
    wait_for(lambda: node.show("vesper-agent", "ActiveState") == "active", "vesper-agent is active again", 0.2)
    wait_for(lambda: node.condition("Ready") == "True", "the node is Ready", 0.2)
    # The agent that runs now knows its Node and its pods: it would have begun a drain.
    wait_for(node.agent_is_connected, "the agent's watches stand", 0.1)
    _untouched(bed, node, mark, names)
    figures.add(f"restarts by systemd: {node.show('vesper-agent', 'NRestarts')}")


def killed_holds(bed, node, figures):
    """the agent killed while nothing is on: logind keeps its inhibitor until it is back"""
    inhibitor, before = _inhibitor(node), node.agent_pid()
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: node.agent_pid() not in (None, before), "another agent runs", 0.1)
    wait_for(node.agent_is_connected, "the agent's watches stand", 0.1)
    assert _inhibitor(node) == inhibitor, "it is another inhibitor: the first one was lost"
    figures.add(f"inhibitor {inhibitor} before and after")


def by_hand(bed, node, figures):
    """systemctl start vesper-drain returns when the node is drained, stop undoes; the agent tells it on D-Bus"""
    work = Workload(bed, node, budget=True)
    since, mark = time.time(), bed.audit.mark()
    code, said = node.status("systemctl", "start", "vesper-drain")
    assert code == 0, f"systemctl start vesper-drain: status {code}: {said}\n{node.explained(since)}"
    work.check_ends()
    # A pod whose containers have ended holds nothing; its kubelet may still be about to remove the object.
    left = [(p["metadata"]["name"], p["status"]["phase"]) for p in node.pods()
            if p["metadata"]["name"] in work.names and p["status"]["phase"] not in ("Succeeded", "Failed")]
    assert not left, f"it returned, and pods are left: {left}"
    assert node.is_cordoned(), "the node is not cordoned"
    assert work.end_watch() >= 1, "the budget was not kept"
    state = node.run("busctl", "get-property", "sh.vesper.Agent1", "/sh/vesper/Agent1", "sh.vesper.Agent1", "State").strip()
    assert state == 's "Drained"', f"State on D-Bus is {state}"
    # Anybody may look, only root may act.
    code, said = node.status("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "busctl", "get-property",
                             "sh.vesper.Agent1", "/sh/vesper/Agent1", "sh.vesper.Agent1", "PodsLeft")
    assert (code, said.strip()) == (0, "t 0"), f"PodsLeft for a user: status {code}: {said}"
    code, said = node.status("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "busctl", "call",
                             "sh.vesper.Agent1", "/sh/vesper/Agent1", "sh.vesper.Agent1", "CancelDrain")
    assert code != 0 and "denied" in said.lower(), f"CancelDrain by a user: status {code}: {said}"
    assert node.is_cordoned(), "a user has undone the drain"
    code, said = node.status("systemctl", "stop", "vesper-drain")
    assert code == 0, f"systemctl stop vesper-drain: status {code}: {said}"
    node.wait_clean()
    evicted = [c for c in bed.calls(node, mark) if c.is_eviction and c.status == 201]
    figures.add(f"{len(evicted)} pods evicted; drained {node.said('NODE_DRAINED', since)[0].text.split(',')[-1].strip()}")


def held_by_a_pod(bed, node, figures):
    """vesper-drain and a reboot wait for a do-not-evict pod and name it; stopping one leaves the other; --force goes on"""
    names = node.create_pods(2, "held", labels={"vesper.sh/do-not-evict": "true"})
    since = time.time()

    def says(unit, word):
        text = node.show(unit, "StatusText")
        return word in text and any(n in text for n in names) and "vesper.sh/do-not-evict" in text

    node.run("systemctl", "start", "--no-block", "vesper-drain")
    wait_for(lambda: says("vesper-drain", "Draining"), lambda: "vesper-drain names the pod, but its status is "
             f"{node.show('vesper-drain', 'StatusText')!r}\n{node.explained(since)}")
    assert node.show("vesper-drain", "ActiveState") == "activating"
    node.run("systemctl", "start", "--no-block", "vesper-reboot")
    wait_for(lambda: "Requested" in node.show("vesper-reboot", "StatusText"), "vesper-reboot has asked")
    node.run("systemctl", "stop", "vesper-reboot")
    wait_for(lambda: "vesper.sh/shutdown-request" not in node.marks(), "the request is withdrawn")
    assert node.is_cordoned() and node.show("vesper-drain", "ActiveState") == "activating", "stopping vesper-reboot ended the drain"
    # Stopped while it waits: there is no ExecStop= for what has not begun.
    node.run("systemctl", "stop", "vesper-drain")
    node.wait_clean()
    left = {p["metadata"]["name"] for p in node.pods() if "deletionTimestamp" not in p["metadata"]}
    assert set(names) <= left, f"pods are gone: {set(names) - left}"
    node.run("systemctl", "start", "--no-block", "vesper-drain")
    wait_for(lambda: says("vesper-drain", "Draining"), "it waits again")
    code, said = node.status("vesper-agent", "--drain", "--force")
    assert code == 0, f"vesper-agent --drain --force: status {code}: {said}\n{node.explained(since)}"
    wait_for(lambda: node.show("vesper-drain", "ActiveState") == "active", "the unit that waited is active, too")
    left = {p["metadata"]["name"] for p in node.pods() if p["status"]["phase"] not in ("Succeeded", "Failed")}
    assert not set(names) & left, f"forced, and pods are left: {set(names) & left}"
    node.run("systemctl", "stop", "vesper-drain")
    node.wait_clean()
    figures.add("2 pods held, then evicted")


def cancelled(bed, node, figures):
    """a shutdown that is scheduled and cancelled (shutdown +9, shutdown -c): the node is as it was"""
    names = node.create_pods(2, "stay")
    # The agent asks for a slot from 10 minutes before the time. It reads logind's schedule at its start, and then every 30 s.
    node.run("shutdown", "-r", "+9")
    node.run("systemctl", "restart", "vesper-agent")
    wait_for(lambda: "vesper.sh/shutdown-request" in node.marks(), "the agent asks for a slot", 0.1)
    node.run("shutdown", "-c")
    node.wait_clean()
    left = {p["metadata"]["name"] for p in node.pods() if "deletionTimestamp" not in p["metadata"]}
    assert set(names) <= left, f"pods are gone: {set(names) - left}"
    figures.add("pods evicted: 0")


# The coordinator of two_reboots would grant these requests and stop before it removes the grants.
held_by_a_pod.slots = cancelled.slots = True
CASES = [restarts, reloaded, stopped_units, killed_holds, by_hand, held_by_a_pod, cancelled]
