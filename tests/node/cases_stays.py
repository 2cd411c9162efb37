# SPDX-License-Identifier: Apache-2.0
"""The machine stays: nothing that happens to units, and no shutdown that was cancelled, takes the node out of service."""

import os
import signal
import threading
import time

from node import wait_for
from shutdowns import PATIENCE, Workload

RESTARTS = 100
_STARTED = "39f53479d3a045ac8e11786248231fbf"  # systemd: a unit was started


class InhibitorWatch(threading.Thread):
    """Looks all the time at whether logind has the agent's inhibitor."""
    def __init__(self, node):
        super().__init__(daemon=True)
        self.node = node
        self.samples = self.missed = 0
        self.gap = 0.0  # the longest time between two looks
        self._end = threading.Event()

    def run(self):
        last = time.monotonic()
        while not self._end.is_set():
            # A file is replaced by its newer self: only a second look makes sure.
            there = any("vesper-agent" in self.node.inhibitors() for _ in range(2))
            self.samples += 1
            self.missed += not there
            now = time.monotonic()
            self.gap, last = max(self.gap, now - last), now
            time.sleep(0.001)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self.join(10)


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
    wait_for(lambda: "vesper-agent" in node.inhibitors(), 20, "logind has the agent's inhibitor")
    mark, since = bed.audit.mark(), time.time()
    with InhibitorWatch(node) as watch:
        node.run("sh", "-c", f"for i in $(seq {RESTARTS}); do systemctl restart vesper-agent || exit 1; done", timeout=900)
    starts = [line for line in node.journal("UNIT=vesper-agent.service", since=since) if line.get("MESSAGE_ID") == _STARTED]
    figures.add(f"{RESTARTS} restarts in {time.time() - since:.1f} s; inhibitor looked at {watch.samples} times, "
                f"longest pause {watch.gap * 1000:.0f} ms, missing {watch.missed} times")
    assert len(starts) == RESTARTS, f"systemd tells of {len(starts)} starts, expected {RESTARTS}"
    assert watch.samples >= 5 * RESTARTS, f"only {watch.samples} looks at the inhibitor"
    assert watch.missed == 0, f"the inhibitor was missing at {watch.missed} of {watch.samples} looks"
    assert list(node.inhibitors()).count("vesper-agent") == 1, node.inhibitors()
    _untouched(bed, node, mark, names)


def reloaded(bed, node, figures):
    """systemctl reload vesper-agent: the same process takes what changed, refuses what is wrong, and keeps its inhibitor"""
    names = node.create_pods(2, "stay")
    wait_for(lambda: "vesper-agent" in node.inhibitors(), 20, "logind has the agent's inhibitor")
    mark, before, path = bed.audit.mark(), node.agent_pid(), "/etc/vesper/agent.conf.d/99-reload.conf"
    with InhibitorWatch(node) as watch:
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
    assert watch.missed == 0, f"the inhibitor was missing at {watch.missed} of {watch.samples} looks"
    _untouched(bed, node, mark, names)


def stopped_units(bed, node, figures):
    """vesper-agent stopped and started, killed; kubelet and containerd restarted: nothing is drained"""
    names = node.create_pods(2, "stay")
    mark = bed.audit.mark()
    for act in (("stop", "vesper-agent"), ("start", "vesper-agent"), ("kill", "--signal=SIGKILL", "vesper-agent"),
                ("restart", "kubelet"), ("restart", "containerd"), ("daemon-reload", )):
        node.run("systemctl", *act)
    wait_for(lambda: node.show("vesper-agent", "ActiveState") == "active", PATIENCE, "vesper-agent is active again", 0.2)
    wait_for(lambda: node.condition("Ready") == "True", PATIENCE, "the node is Ready", 0.2)
    time.sleep(2)  # what should not come has no event to wait for
    _untouched(bed, node, mark, names)
    figures.add(f"restarts by systemd: {node.show('vesper-agent', 'NRestarts')}")


def killed_holds(bed, node, figures):
    """the agent killed while nothing is on: logind keeps its inhibitor until it is back"""
    wait_for(lambda: "vesper-agent" in node.inhibitors(), 20, "logind has the agent's inhibitor")
    before = node.agent_pid()
    with InhibitorWatch(node) as watch:
        os.kill(before, signal.SIGKILL)
        wait_for(lambda: node.agent_pid() not in (None, before), PATIENCE, "another agent runs", 0.1)
        wait_for(lambda: node.show("vesper-agent", "ActiveState") == "active", PATIENCE, "vesper-agent is active again", 0.1)
        time.sleep(0.5)
    figures.add(f"inhibitor looked at {watch.samples} times, missing {watch.missed} times")
    assert watch.missed == 0, f"the inhibitor was missing at {watch.missed} of {watch.samples} looks"
    assert list(node.inhibitors()).count("vesper-agent") == 1, node.inhibitors()


def by_hand(bed, node, figures):
    """systemctl start vesper-drain returns when the node is drained, stop undoes; the agent tells it on D-Bus"""
    work = Workload(bed, node, budget=True)
    since, mark = time.time(), bed.audit.mark()
    code, said = node.status("systemctl", "start", "vesper-drain")
    assert code == 0, f"systemctl start vesper-drain: status {code}: {said}\n{node.explained(since)}"
    work.check_ends()
    # A pod whose containers have ended holds nothing; its kubelet may still be about to remove the object.
    left = [(p["metadata"]["name"], p["status"]["phase"]) for p in node.pods()
            if p["metadata"]["name"] in work.least and p["status"]["phase"] not in ("Succeeded", "Failed")]
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
    node.wait_clean(PATIENCE)
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
    wait_for(lambda: says("vesper-drain", "Draining"), PATIENCE + 40, lambda: "vesper-drain names the pod, but its status is "
             f"{node.show('vesper-drain', 'StatusText')!r}\n{node.explained(since)}")
    assert node.show("vesper-drain", "ActiveState") == "activating"
    node.run("systemctl", "start", "--no-block", "vesper-reboot")
    wait_for(lambda: "Requested" in node.show("vesper-reboot", "StatusText"), PATIENCE, "vesper-reboot has asked")
    node.run("systemctl", "stop", "vesper-reboot")
    wait_for(lambda: "vesper.sh/shutdown-request" not in node.marks(), PATIENCE, "the request is withdrawn")
    assert node.is_cordoned() and node.show("vesper-drain", "ActiveState") == "activating", "stopping vesper-reboot ended the drain"
    # Stopped while it waits: there is no ExecStop= for what has not begun.
    node.run("systemctl", "stop", "vesper-drain")
    node.wait_clean(PATIENCE)
    left = {p["metadata"]["name"] for p in node.pods() if "deletionTimestamp" not in p["metadata"]}
    assert set(names) <= left, f"pods are gone: {set(names) - left}"
    node.run("systemctl", "start", "--no-block", "vesper-drain")
    wait_for(lambda: says("vesper-drain", "Draining"), PATIENCE + 40, "it waits again")
    code, said = node.status("vesper-agent", "--drain", "--force")
    assert code == 0, f"vesper-agent --drain --force: status {code}: {said}\n{node.explained(since)}"
    wait_for(lambda: node.show("vesper-drain", "ActiveState") == "active", PATIENCE, "the unit that waited is active, too")
    left = {p["metadata"]["name"] for p in node.pods() if p["status"]["phase"] not in ("Succeeded", "Failed")}
    assert not set(names) & left, f"forced, and pods are left: {set(names) & left}"
    node.run("systemctl", "stop", "vesper-drain")
    node.wait_clean(PATIENCE)
    figures.add("2 pods held, then evicted")


def cancelled(bed, node, figures):
    """a shutdown that is scheduled and cancelled (shutdown +5, shutdown -c): the node is as it was"""
    names = node.create_pods(2, "stay")
    node.run("shutdown", "-r", "+5")
    time.sleep(1)
    node.run("shutdown", "-c")
    node.wait_clean(PATIENCE)
    left = {p["metadata"]["name"] for p in node.pods() if "deletionTimestamp" not in p["metadata"]}
    assert set(names) <= left, f"pods are gone: {set(names) - left}"
    figures.add("pods evicted: 0")


CASES = [restarts, reloaded, stopped_units, killed_holds, by_hand, held_by_a_pod, cancelled]
