# SPDX-License-Identifier: Apache-2.0
"""Reboots under a budget, and those that repair a node: what the coordinator answers. The agents' side is played, annotation
for annotation; the programs themselves do it in tests/sim/sim-reboot.c and on the real nodes of tests/node."""

import contextlib
import datetime
import json
import time

from apiclient import STRATEGIC_PATCH  # in tests/cluster, whose path daemons.py has set
from cases_faces import listen_address, page_when
from daemons import LIMIT
from world import COORDINATOR, POOLS, seconds

REQUEST = "vesper.sh/shutdown-request"
GRANTED = "vesper.sh/shutdown-granted"
FOR_REPAIR = "vesper.sh/reboot-for-repair"
REBOOTED = "vesper.sh/rebooted-for-repair"
SLOT_SEC = 60
ILLNESS = "KernelDeadlock"


def _annotate(world, node, key, value):
    world.admin.patch(f"/api/v1/nodes/{node}",
                      {"metadata": {"annotations": {key: json.dumps(value) if value else None}}})


def _ask(world, node, patience=3600):
    until = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=patience)
    _annotate(world, node, REQUEST, {
        "id": f"{node}-asks", "bootID": f"{node}-1", "kind": "reboot",
        "until": until.strftime("%Y-%m-%dT%H:%M:%SZ")
    })


def _grant(world, node):
    """The grant that stands on the Node and is of its request, or None."""
    annotations = world.get_node(node)["metadata"].get("annotations", {})
    asked, granted = (json.loads(annotations.get(key, "{}")) for key in (REQUEST, GRANTED))
    return granted if granted and granted["id"] == asked.get("id") else None


def _holders(world, nodes):
    return [n for n in nodes if _grant(world, n) and seconds(_grant(world, n)["until"]) > time.time()]


def _nodes(world, count):
    prefix = world.unique("reboot")
    nodes = world.cluster.create_nodes(count, prefix)
    for n in nodes:
        world.set_boot(n, f"{n}-1")
    return nodes


def reboot_slots(world, figures):
    """two nodes ask for a reboot at once: one is granted, then, when it is back, the other; over a change of leaders"""
    first, second = _nodes(world, 2)
    settings = {"provider": "exec", "Budget.RebootSlotSec": f"{SLOT_SEC * 10}s"}
    with world.coordinators(**settings) as (leader, other):
        mark = world.audit.mark()
        asked = time.monotonic()
        _ask(world, first, 3000)
        _ask(world, second, 3600)
        world.cluster.wait_for(lambda: _holders(world, [first, second]), LIMIT, "a grant")
        figures.add(f"asked of a leader that has just begun -> granted {time.monotonic() - asked:.1f} s")
        assert _holders(world, [first, second]) == [first], "the one with less patience is first"
        leader.wait_line("REBOOT_SLOT_GRANTED", node=first)
        leader.wait_line("REBOOT_SLOT_WAITS", node=second)
        world.wait_event(first, "RebootGranted")
        world.wait_event(second, "RebootWaits", first)  # The Event names the first node, which holds the slot.

        # The leader dies while the node is away; whoever leads next goes by what stands on the Nodes.
        leader.kill()
        other.wait_line("LEASE_ACQUIRED")
        other.wait_line("REBOOT_SLOT_WAITS", node=second)
        assert _holders(world, [first, second]) == [first], "the slot did not survive the leader"
        assert not _grant(world, second), f"{second} was granted while {first} is not back"
        world.set_boot(first, f"{first}-2")
        world.cluster.wait_for(lambda: _grant(world, second), LIMIT, f"the grant of {second}")
        other.wait_line("REBOOT_SLOT_FREED", node=first)

        # The agents take their requests off; nothing is left then.
        for n in (first, second):
            _annotate(world, n, REQUEST, None)
        world.cluster.wait_for(
            lambda: not any(GRANTED in world.get_node(n)["metadata"].get("annotations", {})
                            for n in (first, second)), LIMIT, "the grants are taken off")
        patches = [c for c in world.calls(mark, COORDINATOR) if c.verb == "patch" and c.resource == "nodes"]
    figures.add(f"patches of two Nodes by the coordinators: {len(patches)}")
    assert len(patches) <= 6, patches
    assert all(c.status in (200, 409) for c in patches), patches


def _grant_text(world, node):
    return world.get_node(node)["metadata"].get("annotations", {}).get(GRANTED, "")


def early_reboot(world, figures):
    """a system-reboot that EC2 announces for tomorrow is taken early: slot, drain, RebootInstances once; the next leader tells EC2 nothing"""
    event = "instance-event-0d59937288b749b32"
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
        boot_id = f.read().strip()
    pool = world.pool(world.unique("early"))
    node, instance = world.node(pool)
    second, third = _nodes(world, 2)
    world.set_boot(node, boot_id)
    world.cluster.create_pods(node, 5, prefix=node)
    world.cluster.wait_running(5, node)
    rebooted = lambda: [c for c in world.ec2log.calls if c.action == "RebootInstances" and instance in c.instances]
    with world.coordinators(**{"Budget.MaxConcurrentReboots": "2"}) as (leader, other), world.metadata(instance) as metadata:
        world.wait_adopted(node)
        metadata.event(event, "system-reboot", 30 * 3600)
        with world.agent(node, metadata, **{"Policy.Reboot": "early", "Drain.LoadBalancerWaitSec": "0"}) as agent:
            asked = time.monotonic()
            agent.wait_line("REBOOT_REQUESTED", node=node)
            assert not world.get_node(node)["spec"].get("unschedulable"), "it was cordoned before it was granted"
            leader.wait_line("REBOOT_SLOT_GRANTED", node=node)
            world.wait_condition(node, "Drained")
            assert not world.cluster.pods(node), "pods are left"
            world.cluster.wait_for(rebooted, LIMIT, "the call of EC2")
            figures.add(f"agent started -> EC2 told to reboot {instance}: {time.monotonic() - asked:.1f} s, half a minute of it for the new leader")
            leader.wait_line("REBOOT_BY_CLOUD", node=node)
            assert [c.status for c in rebooted()] == [200], rebooted()
            annotations = world.get_node(node)["metadata"]["annotations"]
            assert annotations["vesper.sh/reboot-taken"] == event, annotations
            assert '"sent":true' in _grant_text(world, node), annotations
            world.wait_event(node, "MachineRebooted")

            # The next leader finds the mark, while the machine still shows its old boot. It has settled when it grants a slot.
            leader.kill()
            other.wait_line("LEASE_ACQUIRED")
            _ask(world, second)
            world.cluster.wait_for(lambda: _grant(world, second), LIMIT, "the second slot is granted")
            assert len(rebooted()) == 1, rebooted()
            assert agent.alive(), agent.tail()
            agent.kill()  # the machine goes down
        _ask(world, third)
        world.set_boot(node, f"{node}-2")
        world.cluster.wait_for(lambda: _grant(world, third), LIMIT, "the first slot is free again, and granted")
        world.cluster.wait_for(lambda: not _grant_text(world, node), LIMIT, "the first grant is taken off")
        assert len(rebooted()) == 1, rebooted()


class Repair:
    """Three nodes of one NodePool, and two coordinators with metrics. The pool's first rule says Reboot, its second Replace after the
    same time: a node is replaced at once if its coordinator takes its reboot for useless. The third node is never ill. The case moves
    its heartbeat, without which the coordinator repairs no node."""
    def __init__(self, world, stack):
        self.world, self.pool = world, world.unique("for-repair")
        world.admin.create(POOLS, {
            "apiVersion": "vesper.sh/v1alpha1", "kind": "NodePool", "metadata": {"name": self.pool},
            "spec": {"selector": {"matchLabels": {"e2e": self.pool}},
                     "repair": [{"condition": ILLNESS, "status": "True", "after": "4s", "action": action}
                                for action in ("Reboot", "Replace")]}
        })
        self.instances = world.ec2.create_instances(3)
        self.ill, self.second, self.beacon = world.cluster.create_nodes(3, self.pool, self.instances, {"e2e": self.pool}, kwok=False)
        for n in (self.ill, self.second):
            world.set_boot(n, f"{n}-1")
        listens = [stack.enter_context(listen_address()) for _ in range(2)]
        daemons = [stack.enter_context(world.coordinator(f"repair-{i}", **{"Metrics.Listen": at})) for i, at in enumerate(listens)]
        for d in daemons:
            d.wait_line("READY")
        world.cluster.wait_for(lambda: any(d.named("LEASE_ACQUIRED") for d in daemons), LIMIT, "one leads")
        order = (0, 1) if daemons[0].named("LEASE_ACQUIRED") else (1, 0)
        self.leader, self.other = [daemons[i] for i in order]
        self.leader_page, self.other_page = [f"http://{listens[i]}" for i in order]
        world.wait_adopted(self.ill, self.second, self.beacon)

    def set_condition(self, node, kind, status, **more):
        self.world.admin.patch(f"/api/v1/nodes/{node}/status",
                               {"status": {"conditions": [{"type": kind, "status": status, "reason": "E2e", "message": "e2e", **more}]}},
                               STRATEGIC_PATCH)

    def asked(self, node):
        """Returns the boot id that the coordinator asks the agent to end, or None."""
        return self.world.get_node(node)["metadata"].get("annotations", {}).get(FOR_REPAIR)

    def recorded(self, node):
        """Returns the boot id that the node was asked to end, as its claim says, or None."""
        claim, = self.world.claims(node)
        return claim["metadata"].get("annotations", {}).get(REBOOTED)

    def wait_beating(self, condition, timeout, what):
        """Waits as wait_for() does, and moves the heartbeat of the third node meanwhile."""
        def holds():
            self.set_condition(self.beacon, "Ready", "True", lastHeartbeatTime=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
            return condition()

        return self.world.cluster.wait_for(holds, timeout, what, interval=1)

    def held(self):
        """Returns the pool's condition RepairHeld while it is True, else None."""
        conditions = self.world.admin.get(f"{POOLS}/{self.pool}").get("status", {}).get("conditions", [])
        return next((c for c in conditions if c["type"] == "RepairHeld" and c["status"] == "True"), None)


def _counted(page):
    counted = {o: page.value("vesper_coordinator_repairs_total", outcome=o) for o in ("begun", "proved", "failed")}
    return counted | {"under way": page.value("vesper_coordinator_repairs_under_way")}


def _reboot_for_repair(repair, leader):
    """Plays the agent, which asks for a slot, and the kubelet after the reboot; then the condition ends."""
    world, ill = repair.world, repair.ill
    _ask(world, ill)
    leader.wait_line("REBOOT_SLOT_GRANTED", node=ill)
    world.cluster.wait_for(lambda: _grant(world, ill), LIMIT, "the grant")
    assert repair.asked(ill) == f"{ill}-1", "taken off before the node has booted"
    assert repair.recorded(ill) == f"{ill}-1", "the claim does not say so"
    world.set_boot(ill, f"{ill}-2")
    world.cluster.wait_for(lambda: repair.asked(ill) is None, LIMIT, "the annotation is taken off, whose boot is over")
    repair.set_condition(ill, ILLNESS, "False")
    _annotate(world, ill, REQUEST, None)
    world.cluster.wait_for(lambda: not _grant_text(world, ill), LIMIT, "the grant is taken off")


def _writes_of_one_repair(repair, mark):
    """Asserts that no node is being replaced, and that the node is not asked to reboot again. Returns each write of the annotation:
    node and boot id, or None where the coordinator took it off."""
    world = repair.world
    assert repair.asked(repair.ill) is None, "it is asked to reboot again"
    for node, instance in zip((repair.ill, repair.second, repair.beacon), repair.instances):
        assert not world.get_node(node)["metadata"].get("deletionTimestamp"), f"{node} is replaced"
        assert world.ec2.state(instance) in ("pending", "running"), node
    calls = world.calls(mark, COORDINATOR)
    assert not [c for c in calls if c.resource in ("nodes", "nodeclaims") and c.verb == "delete"], calls
    return [(c.name, c.body["metadata"]["annotations"][FOR_REPAIR]) for c in calls
            if c.resource == "nodes" and c.verb == "patch" and c.status == 200 and FOR_REPAIR in c.body.get("metadata", {}).get("annotations", {})]


def repair_by_reboot(world, figures):
    """a node whose pool has it repaired by a reboot is asked for its boot, granted a slot and rebooted once, over a change of leaders, and not replaced"""
    with contextlib.ExitStack() as stack:
        repair = Repair(world, stack)
        ill, other, mark = repair.ill, repair.other, world.audit.mark()
        begun = time.monotonic()
        repair.set_condition(ill, ILLNESS, "True")
        repair.wait_beating(lambda: repair.asked(ill), LIMIT, "the annotation")
        figures.add(f"ill -> asked to reboot {time.monotonic() - begun:.1f} s, 4 s of it by the rule")
        assert repair.asked(ill) == f"{ill}-1", "another boot than the one that is ill"
        assert not world.get_node(ill)["spec"].get("unschedulable"), "it was cordoned before it was granted a slot"
        repair.leader.wait_line("REPAIR_REBOOT_ASKED", node=ill, reason=ILLNESS)
        world.wait_event(ill, "NodeRepair", "Asking its agent to reboot it", ILLNESS)

        # The next leader takes the annotation off, waits for as long as the rule says, and asks for the end of the same boot.
        repair.leader.kill()
        other.wait_line("LEASE_ACQUIRED")
        repair.wait_beating(lambda: other.named("REPAIR_REBOOT_ASKED", node=ill), LIMIT, "the next leader asks for the reboot")
        world.cluster.wait_for(lambda: repair.asked(ill) == f"{ill}-1", LIMIT, "the annotation of the next leader")
        _reboot_for_repair(repair, other)

        # The pool holds the second node once its rule's time is over. The first node would have been asked again, or replaced, before.
        repair.set_condition(repair.second, ILLNESS, "True")
        held = repair.wait_beating(repair.held, LIMIT, "the second node is held")
        assert held["reason"] == "SlowStart" and repair.second in held["message"], held
        page_when(repair.other_page, _counted, {"begun": 1, "proved": 0, "failed": 0, "under way": 1})
        writes = _writes_of_one_repair(repair, mark)
    figures.add(f"its annotation, as it was written: {[boot for _, boot in writes]}")
    assert writes == [(ill, boot) for boot in (f"{ill}-1", None, f"{ill}-1", None)], writes


def repair_by_reboot_proved(world, figures):
    """five minutes Ready after its reboot, a repair is proved: it is counted, and the next node of the pool is asked to reboot"""
    with contextlib.ExitStack() as stack:
        repair = Repair(world, stack)
        ill, mark = repair.ill, world.audit.mark()
        repair.set_condition(ill, ILLNESS, "True")
        repair.wait_beating(lambda: repair.asked(ill), LIMIT, "the annotation")
        _reboot_for_repair(repair, repair.leader)
        begun = time.monotonic()
        repair.set_condition(repair.second, ILLNESS, "True")
        repair.wait_beating(lambda: repair.asked(repair.second), 3 * LIMIT, "the second node is asked to reboot")
        figures.add(f"booted -> proved {time.monotonic() - begun:.1f} s, five minutes of it by the coordinator's rule")
        page_when(repair.leader_page, _counted, {"begun": 2, "proved": 1, "failed": 0, "under way": 1})
        world.cluster.wait_for(lambda: repair.recorded(ill) is None, LIMIT, "the claim of a node that is well says nothing of its reboot")
        writes = _writes_of_one_repair(repair, mark)
    assert writes == [(ill, f"{ill}-1"), (ill, None), (repair.second, f"{repair.second}-1")], writes


CASES = [reboot_slots, early_reboot, repair_by_reboot, repair_by_reboot_proved]
