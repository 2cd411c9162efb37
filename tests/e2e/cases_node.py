# SPDX-License-Identifier: Apache-2.0
"""An interrupted node: the agent alone, with the credential of its kubelet."""

import contextlib
import json
import os
import time

from daemons import LIMIT, POLL
from metadata import LIFECYCLE, NOTICE, OTHER_FEEDS
from world import answered_at

PODS = 30


def _user(node):
    return f"system:node:{node}"


def is_cordon(call):
    return call.verb == "patch" and call.resource == "nodes" and call.body.get("spec",
                                                                               {}).get("unschedulable")


def _interruption(node):
    return json.loads(node["metadata"]["annotations"]["vesper.sh/interruption"])


def _polls(metadata):
    return sum(r.path == NOTICE for r in metadata.log())


def _wait_polls(metadata, count):
    """Waits until the metadata service was asked count times for the spot notice."""
    deadline = time.monotonic() + LIMIT
    while _polls(metadata) < count:
        assert time.monotonic() < deadline, f"the metadata service was not asked {count} times: {metadata.log()}"
        time.sleep(POLL)


def _wait_more_polls(metadata, count):
    """Waits for count more polls. The agent has acted on the answers to all of them but the last."""
    _wait_polls(metadata, _polls(metadata) + count)


class Interruption:
    """One interruption of a node with that many pods, and what it took. meter(pid): a context manager around the drain. after_sec:
    seconds from a poll to the notice. poll_sec, settings: of the agent."""
    def __init__(self, world, pods=PODS, meter=None, after_sec=0, poll_sec=1, **settings):
        self.world = world
        self.pods = pods
        self.node, _ = world.node(world.unique("spot"), "aws:///us-east-1a/i-0123456789abcdef0")
        world.cluster.create_pods(self.node, pods, prefix=self.node)
        world.cluster.wait_running(pods, self.node)
        with world.metadata() as metadata, world.agent(self.node, metadata, **{"Metadata.PollSec": f"{poll_sec}s"}, **settings) as agent:
            agent.wait_line("READY")
            _wait_polls(metadata, 4)
            mark = world.audit.mark()
            with meter(agent.pid) if meter else contextlib.nullcontext():
                time.sleep(after_sec)
                self.visible = time.time()
                metadata.interrupt()
                self.drained = agent.wait_line("NODE_DRAINED")
                world.wait_condition(self.node, "Drained")
            world.wait_condition(self.node, "DrainInProgress", "False")
            world.wait_event(self.node, "SpotInterruption")
            _wait_more_polls(metadata, 2)
            self.memory = agent.memory()
            self.cordoned = agent.wait_line("NODE_CORDONED")
            self.requests = metadata.log()
            self.status = agent.stop()
            self.polled_sec = time.time() - agent.started
        self.calls = world.calls(mark, _user(self.node))
        self._check()
        self._check_polls(poll_sec)

    def _check(self):
        node = self.world.get_node(self.node)
        assert node["spec"].get("unschedulable") is True, "the node is not cordoned"
        assert _interruption(node)["phase"] == "Drained", node["metadata"]["annotations"]
        assert not self.world.cluster.pods(self.node), "pods are left"
        assert self.status == 0, f"the agent ended with status {self.status}"

        self.cordon = [c for c in self.calls if is_cordon(c)]
        assert len(self.cordon) == 1 and self.cordon[0].status == 200, self.cordon
        evictions = [c for c in self.calls if c.is_eviction]
        assert sorted(c.name for c in evictions) == sorted(
            f"{self.node}-{i:04d}" for i in range(self.pods)), evictions
        assert all(c.status == 201 for c in evictions), [c for c in evictions if c.status != 201]
        self.last_eviction = answered_at(evictions) - self.cordon[0].answered
        self.writes = [c for c in self.calls if c.is_write and not c.is_eviction and c.resource != "events"]

    def _check_polls(self, poll_sec):
        """Checks that the agent asks for at most one other feed between two polls, and polls once in poll_sec. The polls are counted
        from the start of the agent to its end. A slow machine can only make them fewer."""
        first = next(i for i, r in enumerate(self.requests) if r.path == NOTICE)
        steady = self.requests[first:]
        for before, now in zip(steady, steady[1:]):
            assert NOTICE in (before.path, now.path), f"more than two metadata requests a poll: {before}, {now}"
        others = {r.path for r in steady} - {NOTICE, *OTHER_FEEDS}
        assert not others, f"asked for besides: {others}"
        self.polls = sum(r.path == NOTICE for r in steady)
        most = int(self.polled_sec / poll_sec) + 2
        assert self.polls <= most, f"{self.polls} polls in {self.polled_sec:.1f} s at PollSec={poll_sec}s, {most} at most"


def interrupted_node(world, figures):
    """interrupted node with 30 pods: cordoned at once, all evicted together, reported Drained"""
    run = Interruption(world)
    figures.add(f"metadata reply -> cordon patch leaves: {int(run.cordoned['cordon_delay_usec']) / 1000:.2f} ms")
    figures.add(f"cordon -> last of 30 evictions answered: {run.last_eviction:.3f} s")
    figures.at_most("agent, anonymous memory", run.memory["Anonymous"], 4 * 1024, "kB")
    figures.at_most("agent, Pss", run.memory["Pss"], 12 * 1024, "kB")
    figures.add(f"agent, RSS: {run.memory['Rss']} kB")
    figures.add(f"{run.polls} polls in {run.polled_sec:.1f} s at PollSec=1s")
    # A write that comes between that of another controller and the watch of the Node is refused with 409, and sent again.
    obeyed = [c for c in run.writes if c.status != 409]
    figures.add(f"writes: {obeyed}, refused with 409: {len(run.writes) - len(obeyed)}")
    assert len(obeyed) <= 5, obeyed


def agent_killed(world, figures):
    """agent killed in the middle of a drain and started again: cordons once, drains once"""
    pool = world.unique("crash")
    node, _ = world.node(pool, "aws:///us-east-1a/i-0123456789abcdef0")
    world.cluster.create_pods(node, 10, prefix=f"{node}-free", stop=2)
    world.cluster.create_pods(node, 1, prefix=f"{node}-held", labels={"app": pool})
    world.cluster.wait_running(11, node)
    world.budget(pool, pool, 1)
    mark = world.audit.mark()
    with world.metadata() as metadata, world.agent(node, metadata) as agent:
        agent.wait_line("READY")
        metadata.interrupt()
        agent.wait_line("POD_EVICTION_BLOCKED")
        agent.kill()
        assert world.cluster.pods(node), "the drain was already over"
        agent.start()
        agent.wait_line("READY")
        _wait_more_polls(metadata, 3)
        world.admin.delete(f"/apis/policy/v1/namespaces/default/poddisruptionbudgets/{pool}")
        agent.wait_line("NODE_DRAINED")
        world.wait_condition(node, "Drained")
        world.cluster.wait_for(lambda: _interruption(world.get_node(node))["phase"] == "Drained", LIMIT,
                               f"phase Drained in the annotation of {node}")
        # The agent dies again when all is done, and does nothing after its start.
        _wait_more_polls(metadata, 3)
        agent.kill()
        world.calls(mark)  # by now the API server has read all that the agent sent
        killed = time.time()
        agent.start()
        _wait_more_polls(metadata, 4)
        calls = world.calls(mark, _user(node))
        after = [c for c in calls if c.received > killed and c.is_write and c.resource != "events"]
        agent.stop()
    cordons = [c for c in calls if is_cordon(c)]
    evicted = [c.name for c in calls if c.is_eviction and c.status == 201]
    # What was under way at the kill may have taken effect, but its answer found nobody: 504 in the log.
    cut_off = {c.name for c in calls if c.is_eviction and c.status not in (201, 429)} - set(evicted)
    deleted = [c for c in calls if c.verb == "delete" and c.resource == "pods"]
    figures.add(f"cordon patches {len(cordons)}, evictions of 11 pods: answered {len(evicted)}, cut off by the kill "
                f"{len(cut_off)}; writes after a restart with all done: {len(after)}")
    assert len(cordons) == 1, cordons
    assert len(evicted) == len(set(evicted)), evicted
    assert len(evicted) + len(cut_off) == 11, (evicted, cut_off)
    assert not deleted, deleted
    assert not after, after
    assert _interruption(world.get_node(node))["phase"] == "Drained"


def agent_stopped(world, figures):
    """agent stopped by SIGTERM: ends cleanly, never drains, and takes nothing back"""
    pool = world.unique("stop")
    node, _ = world.node(pool, "aws:///us-east-1a/i-0123456789abcdef0")
    world.cluster.create_pods(node, 3, prefix=f"{node}-free")
    world.cluster.create_pods(node, 1, prefix=f"{node}-held", labels={"app": pool})
    world.cluster.wait_running(4, node)
    world.budget(pool, pool, 1)
    with world.metadata() as metadata:
        mark = world.audit.mark()
        agent = world.agent(node, metadata).start()
        agent.wait_line("READY")
        _wait_polls(metadata, 2)
        begin = time.monotonic()
        status = agent.stop()
        writes = [c for c in world.calls(mark, _user(node)) if c.is_write]
        figures.add(f"idle: exit status {status} after {(time.monotonic() - begin) * 1000:.0f} ms, writes {len(writes)}")
        assert status == 0, agent.tail()
        assert not writes, writes
        assert len(world.cluster.pods(node)) == 4, "it drained"

        metadata.interrupt()
        agent.start()
        agent.wait_line("POD_EVICTION_BLOCKED")
        begin = time.monotonic()
        status = agent.stop()
        figures.add(f"in a drain: exit status {status} after {(time.monotonic() - begin) * 1000:.0f} ms")
        assert status == 0, agent.tail()
        # A request that was under way at its end is answered with 504, since nobody waits for the answer.
        world.calls(mark)  # by now the API server has read all that the agent sent
        ended = time.time()
        late = [c for c in world.calls(mark, _user(node)) if c.received > ended and c.status != 504]
        assert not late, f"calls after its end: {late}"
        assert world.get_node(node)["spec"].get("unschedulable") is True, "it took its cordon back"
        assert len(world.pods_of(pool)) == 1


def person_uncordons(world, figures):
    """a person un-cordons a node in its drain: the drain stops, the node stays open"""
    pool = world.unique("person")
    node, _ = world.node(pool, "aws:///us-east-1a/i-0123456789abcdef0")
    world.cluster.create_pods(node, 1, prefix=f"{node}-held", labels={"app": pool})
    world.cluster.wait_running(1, node)
    world.budget(pool, pool, 1)
    with world.metadata() as metadata, world.agent(node, metadata) as agent:
        agent.wait_line("READY")
        metadata.interrupt()
        agent.wait_line("POD_EVICTION_BLOCKED")
        world.cluster.kubectl("uncordon", node)
        world.cluster.wait_for(
            lambda: "vesper.sh/cordoned-by-agent" not in world.get_node(node)["metadata"].get(
                "annotations", {}), LIMIT, "the agent's mark is gone")
        world.admin.delete(f"/apis/policy/v1/namespaces/default/poddisruptionbudgets/{pool}")
        _wait_more_polls(metadata, 4)
        assert agent.alive(), agent.tail()
    assert not world.get_node(node)["spec"].get("unschedulable"), "it was cordoned again"
    assert len(world.pods_of(pool)) == 1, "it was drained in spite of that"
    figures.add("pods evicted after that: 0")


def foreign_metadata(world, figures):
    """metadata that answers for another machine: nothing is drained, one warning; the right one's is acted upon"""
    node, _ = world.node(world.unique("foreign"), "aws:///us-east-1a/i-0123456789abcdef0")
    world.cluster.create_pods(node, 3, prefix=node)
    world.cluster.wait_running(3, node)
    with world.metadata() as metadata, world.agent(node, metadata) as agent:
        agent.wait_line("READY")
        _wait_polls(metadata, 2)
        metadata.answer_for("i-0fedcba9876543210")
        metadata.interrupt()
        agent.wait_line("FOREIGN_METADATA")
        _wait_more_polls(metadata, 3)
        assert not world.get_node(node)["spec"].get("unschedulable"), "cordoned for another machine's notice"
        assert len(world.cluster.pods(node)) == 3 and len(agent.named("FOREIGN_METADATA")) == 1
        metadata.answer_for("i-0123456789abcdef0")
        line = agent.wait_line("NODE_CORDONED")
        world.wait_condition(node, "Drained")
        figures.add(f"the right machine's: answer -> cordon leaves, its id asked for in between: {int(line['cordon_delay_usec']) / 1000:.2f} ms")
    assert not world.cluster.pods(node), "pods are left"


def _back_in_service(world, node):
    world.cluster.wait_for(lambda: not world.get_node(node)["spec"].get("unschedulable"), LIMIT, f"{node} is schedulable again")
    world.cluster.wait_for(lambda: "vesper.sh/interruption" not in world.get_node(node)["metadata"].get("annotations", {}), LIMIT,
                           f"the notice to go from {node}")


def other_notices(world, figures):
    """a scheduled event in three hours is planned and told; a group that lets go of the instance drains it now, and is called off"""
    node, _ = world.node(world.unique("others"), "aws:///us-east-1a/i-0123456789abcdef0")
    world.cluster.create_pods(node, 5, prefix=node)
    world.cluster.wait_running(5, node)
    with world.metadata() as metadata:
        metadata.event("instance-event-0d59937288b749b32", "system-reboot", 3 * 3600)
        with world.agent(node, metadata) as agent:
            world.wait_condition(node, "MaintenancePlanned")
            world.wait_event(node, "InterruptionPlanned")
            assert not world.get_node(node)["spec"].get("unschedulable") and len(world.cluster.pods(node)) == 5, "it did not wait"
            seen = time.time()
            metadata.says(LIFECYCLE, "Terminated")
            world.wait_condition(node, "Drained")
            figures.add(f"drained {time.time() - seen:.1f} s after the group let go of it, at PollSec=1s")
            assert _interruption(world.get_node(node))["kind"] == "scale-in", _interruption(world.get_node(node))
            assert not world.cluster.pods(node), "pods are left"
            metadata.says(LIFECYCLE, "InService")
            _back_in_service(world, node)
            world.wait_condition(node, "MaintenancePlanned")
            assert agent.stop() == 0


_UPSC = """#!/bin/sh
case $2 in ups.status) cat {folder}/status ;; *) echo 600 ;; esac
"""


def notices_of_ones_own(world, figures):
    """a machine of no cloud: a file of notices and a UPS (packaging/examples/notices/ups) take the node out of service, and back"""
    node, _ = world.node(world.unique("metal"), None)
    folder = world.path(f"notices-{node}")
    os.makedirs(folder)

    def write(name, text, mode=0o644):
        with open(os.path.join(folder, name + ".new"), "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(f.name, mode)
        os.rename(f.name, os.path.join(folder, name))

    write("upsc", _UPSC.format(folder=folder), 0o755)
    write("status", "OL CHRG\n")
    ups = os.path.join(os.path.dirname(__file__), "..", "..", "packaging", "examples", "notices", "ups")
    with world.metadata() as metadata, world.agent(
            node, metadata, **{"Metadata.Source": "none", "File.Path": f"{folder}/notices.json", "File.PollSec": "1s",
                               "Command.Run": f"{os.path.abspath(ups)} ups@localhost {folder}/upsc", "Command.PollSec": "1s",
                               "Drain.LoadBalancerWaitSec": "0"}) as agent:
        agent.wait_line("READY")
        for name, begin, end in (
            ("window-17", lambda: write("notices.json", json.dumps({"id": "window-17", "action": "reboot"})),
             lambda: os.unlink(os.path.join(folder, "notices.json"))),
            ("ups-on-battery", lambda: write("status", "OB DISCHRG\n"), lambda: write("status", "OL\n"))):
            world.cluster.create_pods(node, 3, prefix=world.unique(node))
            world.cluster.wait_running(3, node)
            seen = time.time()
            begin()
            world.wait_condition(node, "Drained")
            figures.add(f"{name}: drained {time.time() - seen:.1f} s after it was announced")
            assert _interruption(world.get_node(node))["id"] == name, _interruption(world.get_node(node))
            assert not world.cluster.pods(node), "pods are left"
            end()
            _back_in_service(world, node)
        assert not metadata.log(), "a metadata service was asked"
        assert agent.stop() == 0


CASES = [interrupted_node, agent_killed, agent_stopped, person_uncordons, foreign_metadata, other_notices, notices_of_ones_own]
