# SPDX-License-Identifier: Apache-2.0
"""Reboots under a budget: what the coordinator answers. The agents' side is played, annotation for annotation; the
programs themselves do it in tests/sim/sim-reboot.c and on the real nodes of tests/node."""

import datetime
import json
import time

from daemons import LIMIT
from world import COORDINATOR, seconds

REQUEST = "vesper.sh/shutdown-request"
GRANTED = "vesper.sh/shutdown-granted"
SLOT_SEC = 60


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


CASES = [reboot_slots, early_reboot]
