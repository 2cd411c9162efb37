# SPDX-License-Identifier: Apache-2.0
"""Deleted nodes: two coordinators with their ServiceAccount, moto or a command as the cloud."""

import base64
import concurrent.futures
import contextlib
import functools
import hashlib
import json
import os
import ssl
import subprocess
import tempfile
import threading
import time

from daemons import LIMIT, procs
from world import BUDGETS, COORDINATOR, LEASE, PDBS, POOLS, WEBHOOKS, FewestReady, WhenGone

EMPTY_NODES = 2


def _evictions(calls, status=None):
    return [c for c in calls if c.is_eviction and (status is None or c.status == status)]


def _check_ended_once(world, instance):
    assert world.ec2.state(instance) in ("shutting-down", "terminated"), world.ec2.state(instance)
    calls = world.ec2log.terminations(instance)
    assert len(calls) == 1 and calls[0].status == 200, calls


def _gone_without_trace(world, node, instance):
    world.cluster.wait_for(lambda: not world.claims(node), LIMIT, f"the end of {node}'s claim")
    _check_ended_once(world, instance)


def deleted_node(world, figures):
    """deleted node: drained with its PDB respected, instance ended, nothing leaked"""
    pool = world.pool(world.unique("work"))
    node, instance = world.node(pool)
    world.replicas(pool, 4, pool)
    world.cluster.create_pods(node, 6, prefix=f"{node}-free", stop=1)
    world.daemon_set(f"{pool}-daemon", pool)
    other, other_instance = world.node(pool)
    world.budget(pool, pool, 3)
    world.cluster.wait_for(lambda: len(world.pods_of(f"{pool}-daemon")) == 2, LIMIT, "the DaemonSet's pods")
    with world.coordinators() as (leader, _):
        world.wait_adopted(node, other)
        mark = world.audit.mark()
        gone = WhenGone(world.admin, node)
        with FewestReady(world.admin, pool) as watched:
            begin = world.delete_node(node)
            took = gone.wait() - begin
        leader.wait_line("NODE_DRAINED", node=node)
        _gone_without_trace(world, node, instance)
        calls = world.calls(mark, COORDINATOR)
        claim_left = [c["metadata"]["name"] for c in world.claims()]
        running = world.running_instances()
    evicted = [c.name for c in _evictions(calls, 201)]
    figures.add(
        f"delete -> Node gone {took:.2f} s with pods that take 1 s to stop; "
        f"evictions obeyed {len(evicted)}, "
        f"refused {len(_evictions(calls, 429))}; fewest Ready of 4 with minAvailable 3: {watched.fewest}")
    assert watched.fewest >= 3, "the PodDisruptionBudget was broken"
    assert len(evicted) == 10 and not [n for n in evicted if "daemon" in n], evicted
    assert not _evictions(calls, 429), "evictions were tried that the budget's status ruled out"
    assert instance not in running and other_instance in running, "an instance was leaked or lost"
    assert len(claim_left) == 1, claim_left
    assert not world.get_node(other)["spec"].get("unschedulable"), "the other node was touched"


def leader_killed(world, figures):
    """leader killed in the middle of a drain: the other takes over and finishes, once"""
    pool = world.pool(world.unique("lead"))
    node, instance = world.node(pool)
    world.replicas(pool, 4, pool)
    world.budget(pool, pool, 3)
    # Cordoned until the leader is dead: the pod that replaces the first stays Pending, and the PDB allows no second eviction.
    other, _ = world.node(pool)
    world.admin.patch(f"/api/v1/nodes/{other}", {"spec": {"unschedulable": True}})
    with world.coordinators() as (leader, standby):
        world.wait_adopted(node, other)
        mark = world.audit.mark()
        with FewestReady(world.admin, pool) as watched:
            world.delete_node(node)
            world.cluster.wait_for(lambda: _evictions(world.audit.since(mark, COORDINATOR), 201),
                                   LIMIT,
                                   "an eviction",
                                   interval=0.005)
            leader.kill()
            killed = time.time()
            world.admin.patch(f"/api/v1/nodes/{other}", {"spec": {"unschedulable": None}})
            taken = standby.wait_line("LEASE_ACQUIRED").time - killed
            world.wait_gone(node)
        calls = _evictions(world.calls(mark, COORDINATOR))
        before = [c for c in calls if c.status == 201 and c.received < killed]
        after = [c for c in calls if c.status == 201 and c.received >= killed]
        # What was under way may have taken effect, but its answer found nobody.
        cut_off = {c.name for c in calls if c.status not in (201, 429)}
        _gone_without_trace(world, node, instance)
        holder = world.admin.get(LEASE)["spec"]["holderIdentity"]
    figures.add(
        f"the other leads {taken:.1f} s after the kill; evictions before {len(before)}, cut off by the kill {len(cut_off)}, "
        f"after {len(after)}; fewest Ready {watched.fewest}; instance ended 1 time")
    assert holder.startswith(standby.identity), holder
    assert before and after, "the leader was not killed in the middle"
    names = [c.name for c in before + after]
    assert len(names) == len(set(names)), names
    assert len(names) + len(cut_off - set(names)) == 4, (names, cut_off)
    assert watched.fewest >= 3, "the PodDisruptionBudget was broken"


def _status_raises(calls, name):
    """The writes by which the budget gave way after it had allowed none."""
    allowed, found = 0, []
    for call in calls:
        if call.resource == "poddisruptionbudgets/status" and call.name == name and call.status == 200:
            now = call.body.get("status", {}).get("disruptionsAllowed", 0)
            if now > 0 and allowed == 0:
                found.append(call)
            allowed = now
    return found


def budget_holds(world, figures):
    """a PDB that never allows: each pod is asked for once and no more; when it gives way, each leaves as soon as its status allows it"""
    pool = world.pool(world.unique("held"))
    node, instance = world.node(pool)
    world.replicas(pool, 6, pool)
    world.node(pool)
    later, _ = world.node(pool)
    world.budget(pool, pool, 6)
    with world.coordinators() as (leader, _):
        world.wait_adopted(node, later)
        mark = world.audit.mark()
        world.delete_node(node)
        leader.wait_line("POD_EVICTION_BLOCKED", node=node)
        world.cluster.wait_for(lambda: len(_evictions(world.calls(mark, COORDINATOR))) >= 6, LIMIT, "a request for each pod")
        world.cluster.wait_for(lambda: f"default/{pool}" in world.ctl("status").stdout, LIMIT, "status names a pod that holds the node")
        status = world.ctl("status")
        world.wait_event(node, "DrainBlocked", pool)
        # The coordinator considers the pods again when the PDB or a pod changes. Then it removes a node that is deleted later.
        for path in f"{PDBS}/{pool}", f"/api/v1/namespaces/default/pods/{world.pods_of(pool)[0]['metadata']['name']}":
            world.admin.patch(path, {"metadata": {"annotations": {"e2e": "changed"}}})
        world.delete_node(later)
        world.wait_gone(later)
        refused = _evictions(world.calls(mark, COORDINATOR))
        assert len(world.pods_of(pool)) == 6
        mark = world.audit.mark()
        world.admin.patch(f"{PDBS}/{pool}", {"spec": {"minAvailable": 5}})
        world.wait_gone(node)
        calls = world.calls(mark)
        _gone_without_trace(world, node, instance)
    sent = _evictions([c for c in calls if c.user == COORDINATOR])
    delays = []
    for call in _status_raises(calls, pool):
        following = [e.received for e in sent if e.received >= call.received]
        if following:
            delays.append((following[0] - call.answered) * 1000)
    figures.add(f"PDB status allows one -> next eviction arrives: {' '.join(f'{d:.1f}' for d in delays)} ms")
    figures.add(f"eviction calls before: {len(refused)}; refused after it gave way: {len(_evictions(sent, 429))}")
    assert len(refused) == 6 and len({c.name for c in refused}) == 6, refused
    assert status.returncode == 0 and node in status.stdout and "Draining" in status.stdout, status
    assert f"default/{pool}" in status.stdout, status.stdout
    assert len(_evictions(sent, 201)) == 6, sent


def empty_node(world, figures):
    """empty nodes, whose provider answers at once: gone, and each machine ended once"""
    pool = world.pool(world.unique("empty"))
    nodes = [world.node(pool, f"metal://rack/{pool}-{i}")[0] for i in range(EMPTY_NODES)]
    took = []
    with world.coordinators(provider="exec") as (leader, _):
        world.wait_adopted(*nodes)
        for node in nodes:
            gone = WhenGone(world.admin, node)
            begin = time.time()
            world.delete_node(node)
            took.append(gone.wait() - begin)
            leader.wait_line("NODE_DRAINED", node=node)
        world.cluster.wait_for(lambda: not world.claims(), LIMIT, "the end of the claims")
    with open(world.path("calls"), encoding="utf-8") as f:
        ended = [line.split()[1] for line in f if line.startswith("terminate") and f"_{pool}-" in line]
    figures.add(f"delete -> Node gone: {' '.join(f'{t:.3f}' for t in took)} s")
    assert sorted(ended) == sorted(f"metal___rack_{pool}-{i}" for i in range(EMPTY_NODES)), ended


def _play(world, name, body):
    """A provider's command, put in the place of the one that answers at once; the lines that it writes to `calls`."""
    path = world.path(name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(body.format(calls=world.path(f"{name}.calls")))
    os.chmod(path, 0o700)
    return path, world.path(f"{name}.calls")


_ACCEPTS = """#!/bin/sh
# Accepts, says no more than that, and takes its time.
read -r request
[ "$1" != list ] || {{ echo '{{"error":{{"code":"unsupported"}}}}'; exit; }}
echo "$1 $(date +%s) $request" >>{calls}
case $1 in
terminate) echo '{{}}' ;;
*) if [ "$(grep -c ^describe {calls})" -lt 3 ]; then echo '{{"state":"present"}}'; else echo '{{"state":"gone"}}'; fi ;;
esac
"""


def accepting_provider(world, figures):
    """a command whose terminate answers {}: asked for the machine until it is gone, ended once; a node without providerID"""
    command, calls = _play(world, "accepting-provider", _ACCEPTS)
    pool = world.pool(world.unique("accepts"))
    node, _ = world.node(pool, "")
    with world.coordinators(provider="exec", command=command) as (leader, _):
        world.wait_adopted(node)
        claim = world.claims(node)[0]
        begin = time.monotonic()
        world.delete_node(node)
        leader.wait_line("NODE_DRAINED", node=node)
        world.wait_gone(node)
        took = time.monotonic() - begin
        world.cluster.wait_for(lambda: not world.claims(node), LIMIT, "the end of the claim")
    assert claim["spec"]["providerID"] == f"exec://{node}", claim["spec"]
    with open(calls, encoding="utf-8") as f:
        lines = [line.split(" ", 2) for line in f]
    requests = [json.loads(line[2]) for line in lines]
    assert [line[0] for line in lines] == ["terminate", "describe", "describe", "describe"], lines
    assert all(r["node"]["name"] == node and r["providerID"] == f"exec://{node}" for r in requests), requests
    assert {a["type"] for a in requests[0]["node"]["addresses"]} >= {"Hostname"}, requests[0]
    figures.add(f"accepted, then asked {len(lines) - 1} times in {took:.1f} s")


def another_machine(world, figures):
    """a Node that names another's instance: drained, and that instance goes on, until its pool believes it"""
    pool = world.pool(world.unique("liar"))
    victim = world.ec2.create_instance()
    node, _ = world.node(pool, f"aws:///us-east-1a/{victim}")
    with world.coordinators():
        world.wait_adopted(node)
        world.delete_node(node)
        blocked = world.wait_condition(node, "vesper.sh/TerminationBlocked")
        assert blocked["reason"] == "IdentityUnproved" and victim in blocked["message"], blocked
        claim = world.claims(node)[0]
        told = next(c for c in claim["status"]["conditions"] if c["type"] == "vesper.sh/IdentityProved")
        assert told["status"] == "False" and "identity" not in claim["status"], claim["status"]
        world.wait_event(node, "IdentityUnproved")
        assert world.ec2.state(victim) == "running"
        world.admin.patch(f"{POOLS}/{pool}", {"spec": {"provider": {"identity": "ProviderID"}}})
        world.wait_gone(node)
        world.cluster.wait_for(lambda: not world.claims(node), LIMIT, "the end of the claim")
    assert world.ec2.state(victim) in ("shutting-down", "terminated")
    figures.add(f'"{blocked["message"]}"')


def wrong_region(world, figures):
    """wrong region at EC2: the node stays, and its condition names the region; the right one ends it"""
    pool = world.pool(world.unique("region"))
    zoned, zoned_instance = world.node(pool)
    bare_instance = world.ec2.create_instance()
    bare, _ = world.node(pool, f"aws:////{bare_instance}")
    world.ec2.tag_node(bare_instance, bare)
    own_instance = world.ec2.create_instance(region="eu-west-1")
    own, _ = world.node(pool, f"aws:///eu-west-1a/{own_instance}")
    world.ec2.tag_node(own_instance, own, region="eu-west-1")
    with world.coordinators(region="eu-west-1"):
        world.wait_adopted(zoned, bare, own)
        world.delete_node(zoned)
        world.delete_node(bare)
        messages = [
            world.wait_condition(n, "vesper.sh/TerminationBlocked")["message"] for n in (zoned, bare)
        ]
        # A node of that region is deleted later, and goes.
        world.delete_node(own)
        world.wait_gone(own)
        world.cluster.wait_for(lambda: not world.claims(own), LIMIT, "the end of the claim")
        assert world.get_node(zoned) and world.get_node(bare), "a node was let go"
        world.wait_event(zoned, "TerminationBlocked")
    figures.add("; ".join(f'"{m}"' for m in messages))
    assert all("eu-west-1" in m for m in messages), messages
    assert len(world.claims()) == 2
    for instance in (zoned_instance, bare_instance):
        assert world.ec2.state(instance) == "running", world.ec2.state(instance)
    with world.coordinators():
        world.wait_gone(zoned)
        world.wait_gone(bare)
        for node, instance in ((zoned, zoned_instance), (bare, bare_instance)):
            world.cluster.wait_for(lambda n=node: not world.claims(n), LIMIT, "the end of the claim")
            assert world.ec2.state(instance) in ("shutting-down", "terminated")


def termination_protection(world, figures):
    """termination protection: the node stays and says why; lifted later, it ends"""
    pool = world.pool(world.unique("protect"))
    node, instance = world.node(pool)
    world.ec2.set_termination_protection(instance)
    with world.coordinators():
        world.wait_adopted(node)
        world.delete_node(node)
        blocked = world.wait_condition(node, "vesper.sh/TerminationBlocked")
        assert world.get_node(node) and world.ec2.state(instance) == "running"
        world.ec2.set_termination_protection(instance, False)
        lifted = time.monotonic()
        world.wait_gone(node)
        took = time.monotonic() - lifted
        world.cluster.wait_for(lambda: not world.claims(node), LIMIT, "the end of the claim")
    figures.add(f'{blocked["reason"]}: "{blocked["message"]}"; lifted -> gone {took:.0f} s')
    assert blocked["reason"] == "TerminationProtected" and instance in blocked["message"], blocked
    assert world.ec2.state(instance) in ("shutting-down", "terminated")
    obeyed = [c for c in world.ec2log.terminations(instance) if c.status == 200]
    assert len(obeyed) == 1, obeyed


def apiserver_away(world, figures):
    """API server away for seconds in the middle of two drains: both go on when it is back"""
    pool = world.pool(world.unique("away"))
    deleted, instance = world.node(pool)
    spot, _ = world.node(world.unique("away-spot"), "aws:///us-east-1a/i-0123456789abcdef0")
    for node in (deleted, spot):
        world.cluster.create_pods(node, 8, prefix=f"{node}-pod", stop=5)
        world.cluster.wait_running(8, node)
    mark = world.audit.mark()
    with world.coordinators() as (leader, _), world.metadata() as metadata, world.agent(spot,
                                                                                        metadata) as agent:
        agent.wait_line("READY")
        world.wait_adopted(deleted)
        world.delete_node(deleted)
        metadata.interrupt()
        leader.wait_line("DRAIN_STARTED", node=deleted)
        agent.wait_line("DRAIN_STARTED")
        said = {d: len(d.lines()) for d in (leader, agent)}
        world.cluster.stop_process("kube-apiserver")
        begin = time.monotonic()
        for daemon in leader, agent:
            world.cluster.wait_for(lambda d=daemon: any("retrying" in line.text for line in d.lines()[said[d]:]), LIMIT,
                                   f"{daemon.name} misses the API server")
        world.cluster.start_process("kube-apiserver")
        away = time.monotonic() - begin
        agent.wait_line("NODE_DRAINED")
        world.wait_condition(spot, "Drained")
        world.wait_gone(deleted)
        _gone_without_trace(world, deleted, instance)
        calls = world.calls(mark, f"system:node:{spot}")
        heard = [line.text for line in agent.lines() if line.text.startswith("Evicted pod ")]
    cordons = [c for c in calls if c.resource == "nodes" and c.body.get("spec", {}).get("unschedulable")]
    names = [c.name for c in _evictions(calls, 201)]
    figures.add(f"away {away:.1f} s; back -> both drained {time.monotonic() - begin - away:.1f} s; cordons "
                f"{len(cordons)}, evictions obeyed {len(names)} of 8")
    assert len(cordons) == 1, cordons
    # One whose answer the API server took along is asked again; what was answered is not.
    assert len(heard) == len(set(heard)), heard
    assert len(heard) == len(set(names)) == 8, (heard, names)
    assert not world.cluster.pods(spot)


def agent_and_coordinator(world, figures):
    """a spot notice on a node that is deleted meanwhile: no pod evicted twice, the instance ended once"""
    pool = world.pool(world.unique("both"))
    node, instance = world.node(pool)
    world.cluster.create_pods(node, 20, prefix=f"{node}-pod", stop=2)
    world.cluster.wait_running(20, node)
    mark = world.audit.mark()
    with world.coordinators(), world.metadata(instance) as metadata, world.agent(node, metadata) as agent:
        agent.wait_line("READY")
        world.wait_adopted(node)
        metadata.interrupt()
        agent.wait_line("DRAIN_STARTED")
        world.delete_node(node)
        world.wait_gone(node)
        _gone_without_trace(world, node, instance)
        calls = world.calls(mark)
        assert agent.alive(), agent.tail()
    mine = [c for c in calls if c.user in (COORDINATOR, f"system:node:{node}")]
    counts = {
        "agent": len(_evictions([c for c in mine if c.user != COORDINATOR])), "coordinator": len(
            _evictions([c for c in mine if c.user == COORDINATOR]))
    }
    figures.add(f"evictions by {counts}")
    assert sorted(c.name for c in _evictions(mine, 201)) == sorted(f"{node}-pod-{i:04d}" for i in range(20))


def node_budget(world, figures):
    """a NodeDisruptionBudget of one: of three nodes that are deleted together one is drained at a time, over a leader's death"""
    pool = world.pool(world.unique("ndb"))
    nodes = [world.node(pool) for _ in range(4)]
    for node, _ in nodes:
        world.cluster.create_pods(node, 2, prefix=f"{node}-pod", stop="never")
    path = f"{BUDGETS}/{pool}"

    def all_gone():
        for pod in world.cluster.pods():
            if "deletionTimestamp" in pod["metadata"]:
                world.admin.request("DELETE", f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})
        return not any(world.get_node(node) for node in going)

    world.admin.create(BUDGETS, {"apiVersion": "vesper.sh/v1alpha1", "kind": "NodeDisruptionBudget", "metadata": {"name": pool},
                                 "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"e2e": pool}}}})
    with world.coordinators() as (leader, _):
        world.wait_adopted(*(node for node, _ in nodes))
        world.cluster.wait_for(lambda: world.admin.get(path).get("status", {}).get("disruptionsAllowed") == 1, LIMIT,
                               "the status of the budget")
        status = world.admin.get(path)["status"]
        mark = world.audit.mark()
        going = [node for node, _ in nodes[:3]]
        for node in going:
            world.delete_node(node)
        world.cluster.wait_for(lambda: len([n for n in going if _waits_for_budget(world, n)]) == 2, LIMIT, "two that wait")
        held = next(n for n in going if _waits_for_budget(world, n))
        shown = world.ctl("status").stdout
        leader.kill()
        world.cluster.wait_for(all_gone, 4 * LIMIT, "the end of all three, the pods of each of which end once they were evicted")
        for node, instance in nodes[:3]:
            _gone_without_trace(world, node, instance)
        calls = world.calls(mark, COORDINATOR)
        world.admin.delete(path)
    order = [c.name.rsplit("-pod-", 1)[0] for c in _evictions(calls, 201)]
    turns = [n for i, n in enumerate(order) if i == 0 or n != order[i - 1]]
    figures.add(f"evictions in {len(turns)} turns of {len(going)} nodes; status before: {status['expectedNodes']} nodes, "
                f"{status['disruptionsAllowed']} allowed")
    assert status["expectedNodes"] == 4 and status["currentAvailable"] == 4, status
    assert len(order) == 6 and len(turns) == 3, order
    assert held in shown and "WaitingForBudget" in shown and pool in shown, shown


def _set_ready(world, node, status, reason, beats=False):
    """Condition Ready; with beats as a kubelet writes it, whose heartbeat moves."""
    ready = {"type": "Ready", "status": status, "reason": reason, "message": "e2e"}
    if beats:
        ready["lastHeartbeatTime"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    world.admin.patch(f"/api/v1/nodes/{node}/status", {"status": {"conditions": [ready]}},
                      "application/strategic-merge-patch+json")


def repair(world, figures):
    """a node that is not Ready for longer than its pool allows is deleted and its machine ended; one with a person's veto stays, and one that is cordoned"""
    pool = world.unique("repair")
    world.admin.create(POOLS, {
        "apiVersion": "vesper.sh/v1alpha1", "kind": "NodePool", "metadata": {"name": pool},
        "spec": {"selector": {"matchLabels": {"e2e": pool}},
                 "repair": [{"condition": "Ready", "status": "NotTrue", "reason": "^Network", "action": "None"},
                            {"condition": "Ready", "status": "NotTrue", "after": "4s", "action": "Replace"}]}
    })
    instances = world.ec2.create_instances(5)
    vetoed, excepted, beacon, cordoned, broken = world.cluster.create_nodes(5, pool, instances, {"e2e": pool}, kwok=False)

    def held():
        conditions = world.admin.get(f"{POOLS}/{pool}").get("status", {}).get("conditions", [])
        return next((c for c in conditions if c["type"] == "RepairHeld" and c["status"] == "True"), None)

    world.admin.patch(f"/api/v1/nodes/{vetoed}", {"metadata": {"annotations": {"vesper.sh/do-not-repair": "true"}}})
    with world.coordinators():
        world.wait_adopted(vetoed, excepted, beacon, cordoned, broken)
        mark = world.audit.mark()
        begun = time.monotonic()
        # The node that has been due for longest is repaired first, and no other one meanwhile. The one that may be repaired comes last.
        for node, reason in (vetoed, "KubeletNotReady"), (excepted, "NetworkPluginNotReady"), (cordoned, "KubeletNotReady"), (
                broken, "KubeletNotReady"):
            _set_ready(world, node, "False", reason)
        no_heartbeat = world.cluster.wait_for(held, LIMIT, "the pool says that a repair is held")
        assert not world.get_node(broken)["metadata"].get("deletionTimestamp"), "deleted while no heartbeat moves"
        world.admin.patch(f"/api/v1/nodes/{cordoned}", {"spec": {"unschedulable": True}})
        deadline = time.monotonic() + LIMIT
        while world.get_node(broken):
            assert time.monotonic() < deadline, world.admin.get(f"{POOLS}/{pool}")
            _set_ready(world, beacon, "True", "KubeletReady", beats=True)
            time.sleep(1)  # the period of the heartbeats
        took = time.monotonic() - begun
        _gone_without_trace(world, broken, instances[-1])
        deletes = [c for c in world.calls(mark, COORDINATOR) if c.resource == "nodes" and c.verb == "delete"]
        event = world.wait_event(broken, "NodeRepair")
        world.wait_event(broken, "NodeRepairAnnounced")
        for_person = held()
        for node, instance in zip((vetoed, excepted, beacon, cordoned), instances):
            assert not world.get_node(node)["metadata"].get("deletionTimestamp"), node
            assert world.ec2.state(instance) in ("pending", "running"), node
    figures.add(f"gone {took:.1f} s after it was not Ready; {event['message']}")
    assert no_heartbeat["reason"] == "ViewNotHealthy", no_heartbeat
    assert for_person["reason"] == "Cordoned" and cordoned in for_person["message"], for_person
    assert [c.name for c in deletes] == [broken], deletes


_SWITCH = """#!/bin/sh
# A machine that is off for as long as the file beside this one is there.
read -r request
state=present
[ ! -e {calls}.off ] || state=off
echo "$1 $state $request" >>{calls}
printf '{{"state":"%s"}}\\n' $state
"""


def machine_off(world, figures):
    """a machine that is off, whose Node stays: tainted out-of-service once that is proved, its hung pod goes; Ready again, the taint goes"""
    command, calls = _play(world, "switch-provider", _SWITCH)
    pool = world.pool(world.unique("off"))
    node, running = world.cluster.create_nodes(2, pool, labels={"e2e": pool}, kwok=False)
    pods = [world.cluster.create_pods(n, 1, prefix=n)[0] for n in (node, running)]

    def is_tainted(name):
        taints = [t for t in world.get_node(name)["spec"].get("taints", []) if t["key"] == "node.kubernetes.io/out-of-service"]
        assert all(t["value"] == "nodeshutdown" and t["effect"] == "NoExecute" for t in taints), taints
        return bool(taints)

    def questions():
        """(operation, state that was answered, providerID) of each call of the provider."""
        if not os.path.exists(calls):
            return []
        with open(calls, encoding="utf-8") as f:
            lines = [line.split(" ", 2) for line in f]
        return [(operation, state, json.loads(request).get("providerID")) for operation, state, request in lines]

    with world.coordinators(provider="exec", command=command) as (leader, _):
        world.wait_adopted(node, running)
        mark = world.audit.mark()
        begun = time.monotonic()
        for name, pod in zip((node, running), pods):
            _set_ready(world, name, "Unknown", "NodeStatusUnknown")
            world.admin.delete(f"/api/v1/namespaces/default/pods/{pod}")
        # The first question about each is answered with "present". The next ones are due a minute later.
        world.cluster.wait_for(lambda: len({q[2] for q in questions() if q[0] == "describe"}) == 2, 2 * LIMIT, "a question about each")
        asked = time.monotonic() - begun
        assert not is_tainted(node) and not is_tainted(running), "tainted without proof"
        assert len(world.cluster.pods()) == 2, "a pod went that hangs"
        off = time.time()
        with open(f"{calls}.off", "w", encoding="utf-8"):
            pass
        _set_ready(world, running, "True", "KubeletReady", beats=True)
        world.cluster.wait_for(lambda: is_tainted(node), 4 * LIMIT, "the taint")
        tainted = time.monotonic() - begun
        world.cluster.wait_for(lambda: not world.cluster.pods(node), 2 * LIMIT, "the end of the pod")
        gone = time.monotonic() - begun - tainted
        leader.wait_line("NODE_OUT_OF_SERVICE", node=node)
        assert not is_tainted(running), "the node that is Ready was tainted"
        assert "vesper.sh/termination" in world.get_node(node)["metadata"]["finalizers"], "off was taken for gone"
        _set_ready(world, node, "True", "KubeletReady", beats=True)
        world.cluster.wait_for(lambda: not is_tainted(node), LIMIT, "the end of the taint")
        leader.wait_line("NODE_BACK_IN_SERVICE", node=node)
        left = world.get_node(node)["metadata"].get("annotations", {})
        taints = [c for c in world.calls(mark, COORDINATOR) if c.verb == "patch" and "out-of-service" in json.dumps(c.body)]
    figures.add(f"asked {asked:.0f} s after it was not Ready, tainted {tainted:.0f} s after, the pod gone {gone:.0f} s later; "
                f"{len(questions())} questions")
    assert asked >= 59, asked
    assert {q[0] for q in questions()} - {"list"} == {"describe"}, questions()
    assert taints and all(c.name == node and c.received > off for c in taints), f"tainted without proof: {taints}"
    assert "vesper.sh/out-of-service" not in left, left


def _register(world, pool, ports, *, name=None, policy="Ignore", ca="", conditions=()):
    """Registers one webhook for each replica; each gets half of the pool's nodes. Waits until the API server calls them. ca: the CA
    bundle; None: the leader writes it. conditions: matchConditions of the webhooks."""
    if ca is not None:
        with open(world.cluster.ca, "rb") as f:
            ca = base64.b64encode(f.read()).decode()
    hooks = [{
        "name": f"half-{i}.nodes.vesper.sh", "failurePolicy": policy, "sideEffects": "NoneOnDryRun", "timeoutSeconds": 30,
        "matchConditions": list(conditions), "admissionReviewVersions": ["v1"], "objectSelector": {"matchLabels": {"e2e": pool, "half": str(i)}},
        "clientConfig": {"url": f"https://127.0.0.1:{port}/admission"} | ({"caBundle": ca} if ca else {}),
        "rules": [{"operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["nodes"]}]}
        for i, port in enumerate(ports)]
    # One more webhook, which has no server. The API server takes up all webhooks of an object at once. From then on it refuses each
    # request that it would send to this one.
    mark = {"e2e-registered": world.unique(pool)}
    hooks.append({
        "name": "nobody.vesper.sh", "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "objectSelector": {"matchLabels": mark}, "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]})
    world.admin.create(WEBHOOKS, {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
                                  "metadata": {"name": name or pool}, "webhooks": hooks})
    path = f"{WEBHOOKS}/{name or pool}"
    if ca is None:
        world.cluster.wait_for(lambda: all("caBundle" in h["clientConfig"] for h in world.admin.get(path)["webhooks"]), LIMIT, "the caBundle")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": pool, "labels": mark}}

    def asked():
        # kube-apiserver 1.34 can keep an old version of the object for ever, if a request comes while it takes up a new one
        # (validating_webhook_manager.go stores what it read after the update has cleared the cache). Another change mends that.
        world.admin.patch(path, {"metadata": {"annotations": {"e2e-read": world.unique(pool)}}})
        return world.admin.request("POST", "/api/v1/namespaces/default/configmaps?dryRun=All", body)[0] == 500

    world.cluster.wait_for(asked, LIMIT, "the API server calls the webhooks", interval=0.1)


def _delete_all(world, nodes):
    """All at once: the names of those that were let go, and the messages of the others."""
    with concurrent.futures.ThreadPoolExecutor(len(nodes)) as pool:
        answers = list(pool.map(lambda n: world.admin.request("DELETE", f"/api/v1/nodes/{n}"), nodes))
    passed = [n for n, (status, _) in zip(nodes, answers) if status == 200]
    refused = [body for status, body in answers if status != 200]
    assert all(body["code"] == 429 and "retryAfterSeconds" not in body.get("details", {}) for body in refused), refused
    return passed, [body["message"] for body in refused]


def node_webhook(world, figures):
    """12 nodes deleted at once through two replicas' webhooks under maxUnavailable: 3: exactly 3 pass; repeated, all go in waves"""
    pool = world.pool(world.unique("hook"))
    nodes = world.nodes(pool, 12)
    for i, node in enumerate(nodes):
        world.admin.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {"half": str(i % 2)}}})
    path = f"{BUDGETS}/{pool}"
    world.admin.create(BUDGETS, {"apiVersion": "vesper.sh/v1alpha1", "kind": "NodeDisruptionBudget", "metadata": {"name": pool},
                                 "spec": {"maxUnavailable": 3, "selector": {"matchLabels": {"e2e": pool}}}})
    certificate, key = world.cluster.certificate("webhook", names=("IP:127.0.0.1",))
    reserved = procs.Ports()
    ports = [reserved.take(), reserved.take()]
    settings = {"Webhook.CertificateFile": certificate, "Webhook.KeyFile": key}
    with contextlib.ExitStack() as stack:
        replicas = [stack.enter_context(world.coordinator(name, **settings, **{"Webhook.Listen": f"127.0.0.1:{port}"}))
                    for name, port in zip("ab", ports)]
        for replica in replicas:
            replica.wait_line("READY")
        world.wait_adopted(*nodes)
        world.cluster.wait_for(lambda: world.admin.get(path).get("status", {}).get("disruptionsAllowed") == 3, LIMIT,
                               "the status of the budget")
        # Pods that hold them: what passes stays, while the others are refused.
        held = [p for n in nodes for p in world.cluster.create_pods(n, 1, prefix=f"{n}-stays", stop="never")]
        _register(world, pool, ports)
        mark = world.audit.mark()
        begun = time.monotonic()
        passed, messages = _delete_all(world, nodes)
        took = time.monotonic() - begun
        patches = [c for c in world.calls(mark, COORDINATOR) if c.resource == "nodedisruptionbudgets/status"]
        assert len(passed) == 3, (passed, messages)
        assert all(f"NodeDisruptionBudget {pool} allows no disruption of node" in m for m in messages), messages
        charged = sorted(d["name"] for d in world.admin.get(path)["status"]["disruptedNodes"])
        assert charged == sorted(passed), charged
        # All deletions are repeated. At most three nodes are out of service at once. A deletion that failurePolicy admits while
        # the leader is away waits, undrained, for the budget.
        for pod in held:
            world.admin.request("DELETE", f"/api/v1/namespaces/default/pods/{pod}", {"gracePeriodSeconds": 0})
        leader = next(r for r in replicas if r.named("LEASE_ACQUIRED"))
        waves, most, left, deadline = 0, 0, [n for n in nodes if n not in passed], time.monotonic() + 4 * LIMIT
        while left and time.monotonic() < deadline:
            going, _ = _delete_all(world, left)
            waves += bool(going)
            there = world.admin.get(f"/api/v1/nodes?labelSelector=e2e%3D{pool}")["items"]
            most = max(most, sum(any(t["key"] == "vesper.sh/disrupted" for t in n["spec"].get("taints", [])) for n in there))
            left = [n for n in left if n not in going]
            if waves == 2:
                leader.stop()
            time.sleep(0.5)  # between two attempts of the person who deletes
        for node in nodes:
            world.wait_gone(node, timeout=4 * LIMIT)
        world.admin.delete(f"{WEBHOOKS}/{pool}")
        world.admin.delete(path)
    reserved.release()
    figures.add(f"the first 12 answered within {took:.2f} s: 3 passed, {len(messages)} refused, {len(patches)} patches of the budget; "
                f"then {waves} waves, at most {most} taken out of service at once")
    assert not left, left
    assert most <= 3, most


def _signed_anew(world, secret):
    """The Secret with another certificate, signed by the CA that is in it: as if it had been renewed."""
    data = {k: base64.b64decode(v) for k, v in world.admin.get(secret)["data"].items()}
    folder = tempfile.mkdtemp(dir=world.cluster.directory)
    for name, text in data.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(text)
    with open(os.path.join(folder, "names"), "w", encoding="utf-8") as f:
        f.write("subjectAltName=IP:127.0.0.1,DNS:vesper-webhook.vesper-system.svc")
    openssl = functools.partial(subprocess.run, cwd=folder, check=True, capture_output=True)
    openssl(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "new.key",
             "-out", "new.csr", "-subj", "/CN=renewed"])
    openssl(["openssl", "x509", "-req", "-in", "new.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "30",
             "-extfile", "names", "-out", "new.crt"])
    encoded = {}
    for key, name in (("tls.crt", "new.crt"), ("tls.key", "new.key")):
        with open(os.path.join(folder, name), "rb") as f:
            encoded[key] = base64.b64encode(f.read()).decode()
    world.admin.patch(secret, {"data": encoded})


def _serial(port):
    """None: nobody listens."""
    try:
        pem = ssl.get_server_certificate(("127.0.0.1", port))
    except ConnectionRefusedError:
        return None
    return hashlib.sha256(pem.encode()).hexdigest()


def webhook_certificate(world, figures):
    """its own certificate, from nothing, under failurePolicy Fail; another one while nodes are deleted, and none fails; a Secret deleted"""
    pool = world.pool(world.unique("cert"))
    nodes = world.nodes(pool, 20)
    for node in nodes:
        world.admin.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {"half": "0"}}})
    secret, config = "/api/v1/namespaces/vesper-system/secrets/vesper-webhook", f"{WEBHOOKS}/vesper-nodes"
    reserved = procs.Ports()
    ports = [reserved.take(), reserved.take()]
    with contextlib.ExitStack() as stack:
        replicas = [stack.enter_context(world.coordinator(name, **{
            "Webhook.Listen": f"127.0.0.1:{port}", "Webhook.CertificateSecret": "vesper-webhook", "Webhook.Names": "127.0.0.1"}))
                    for name, port in zip("ab", ports)]
        for replica in replicas:
            replica.wait_line("READY")
        world.wait_adopted(*nodes)
        begun = time.monotonic()
        _register(world, pool, ports, name="vesper-nodes", policy="Fail", ca=None)
        known = time.monotonic() - begun
        world.cluster.wait_for(lambda: all(_serial(port) for port in ports), LIMIT, "both replicas listen")
        # Dry runs ask as deletions do. Nothing but a failed handshake can refuse one: no budget selects these nodes.
        dry_run = lambda: world.admin.request("DELETE", f"/api/v1/nodes/{nodes[0]}?dryRun=All")
        world.cluster.wait_for(lambda: dry_run()[0] == 200, LIMIT, "the API server knows the caBundle")
        before = [_serial(port) for port in ports]
        assert before[0] == before[1], "the replicas show different certificates"
        changed = threading.Event()

        def ask_until_changed():
            found = []
            while not changed.is_set():
                found.append(dry_run())
            return found

        with concurrent.futures.ThreadPoolExecutor(2) as threads:
            asked = [threads.submit(ask_until_changed) for _ in range(2)]
            try:
                _signed_anew(world, secret)
                world.cluster.wait_for(lambda: all(_serial(p) not in (None, before[0]) for p in ports), LIMIT,
                                       "both replicas show the other certificate")
            finally:
                changed.set()
        answers = [answer for a in asked for answer in a.result()] + [dry_run() for _ in range(20)]
        passed, messages = _delete_all(world, nodes[:10])
        after = [_serial(port) for port in ports]
        kept_data = world.admin.get(secret)["data"]
        world.admin.delete(secret)
        world.cluster.wait_for(lambda: (world.admin.find(secret) or {}).get("data") == kept_data, LIMIT, "the Secret is made again as it was")
        again, refused = _delete_all(world, nodes[10:])
        kept = [_serial(port) for port in ports]
        for node in nodes:
            world.wait_gone(node, timeout=4 * LIMIT)
        world.admin.delete(config)
    world.admin.delete(secret)
    reserved.release()
    failed = [body for status, body in answers if status != 200]
    figures.add(f"the CA was known {known:.1f} s after the webhook was registered; {len(answers)} dry runs through the change, {len(failed)} failed; "
                f"{len(passed) + len(again)} of 20 deletions passed")
    assert not failed, failed[:3]
    assert len(passed) == 10 and len(again) == 10, (messages, refused)
    assert after == kept and after[0] == after[1], (after, kept)


def _waits_for_budget(world, node):
    conditions = world.get_node(node)["status"].get("conditions", [])
    return any(c["type"] == "vesper.sh/TerminationBlocked" and c["status"] == "True" and c["reason"] == "WaitingForBudget"
               for c in conditions)


def _node_budget(world, pool, most):
    world.admin.create(BUDGETS, {"apiVersion": "vesper.sh/v1alpha1", "kind": "NodeDisruptionBudget", "metadata": {"name": pool},
                                 "spec": {"maxUnavailable": most, "selector": {"matchLabels": {"e2e": pool}}}})
    world.cluster.wait_for(lambda: world.admin.get(f"{BUDGETS}/{pool}").get("status", {}).get("disruptionsAllowed") == most, LIMIT,
                           "the status of the budget")


def _two_webhooks(world, stack):
    """Two replicas that serve the webhook, not started yet, and their ports."""
    certificate, key = world.cluster.certificate("webhook", names=("IP:127.0.0.1",))
    reserved = procs.Ports()
    stack.callback(reserved.release)
    ports = [reserved.take(), reserved.take()]
    replicas = [world.coordinator(name, "exec", **{"Webhook.CertificateFile": certificate, "Webhook.KeyFile": key,
                                                   "Webhook.Listen": f"127.0.0.1:{port}"}) for name, port in zip("ab", ports)]
    return replicas, ports


def _start(stack, replicas):
    for replica in replicas:
        stack.enter_context(replica)
    for replica in replicas:
        replica.wait_line("READY")


def _halves(world, nodes):
    for i, node in enumerate(nodes):
        world.admin.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {"half": str(i % 2)}}})


def _taken(world, pool, nodes):
    """How many of these, the pool's, are taken out of service now."""
    there = world.admin.get(f"/api/v1/nodes?labelSelector=e2e%3D{pool}")["items"]
    return sum(any(t["key"] == "vesper.sh/disrupted" for t in n["spec"].get("taints", [])) for n in there
               if n["metadata"]["name"] in nodes)


def webhook_killed(world, figures):
    """50 nodes deleted at once under maxUnavailable: 3, a replica killed meanwhile; then 15 of them by DELETECOLLECTION, in waves"""
    pool = world.pool(world.unique("killed"))
    nodes = world.cluster.create_nodes(50, world.unique(pool), labels={"e2e": pool})
    _halves(world, nodes)
    with contextlib.ExitStack() as stack:
        replicas, ports = _two_webhooks(world, stack)
        _start(stack, replicas[:1])
        replicas[0].wait_line("LEASE_ACQUIRED")
        _start(stack, replicas[1:])  # this one is killed; other cases kill the leader
        world.wait_adopted(*nodes)
        _node_budget(world, pool, 3)
        held = [p for n in nodes for p in world.cluster.create_pods(n, 1, prefix=f"{n}-stays", stop="never")]
        _register(world, pool, ports, policy="Fail")
        with concurrent.futures.ThreadPoolExecutor(len(nodes)) as threads:
            asked = [threads.submit(world.admin.request, "DELETE", f"/api/v1/nodes/{n}") for n in nodes]
            next(concurrent.futures.as_completed(asked))
            replicas[1].kill()
            answers = [a.result() for a in asked]
        passed = [n for n, (status, _) in zip(nodes, answers) if status == 200]
        lost = [i for i, (status, _) in enumerate(answers) if status not in (200, 429)]
        charges = world.admin.get(f"{BUDGETS}/{pool}")["status"]["disruptedNodes"]
        charged = [c["name"] for c in charges]
        figures.add(f"{len(passed)} passed, {len(lost)} found no replica, {len(charged)} charged")
        assert all(i % 2 == 1 for i in lost), "the replica that lives has not answered"
        assert all("failed calling webhook" in answers[i][1]["message"] for i in lost), [answers[i] for i in lost]
        assert len(passed) <= 3 and set(passed) <= set(charged), (passed, charged)
        assert len(charged) == len(set(charged)) == 3, charged  # what was charged for an answer that was lost stands
        # The rest goes by one request for all of them, that ends with the first refusal.
        _start(stack, [replicas[1]])
        for pod in held:
            world.admin.request("DELETE", f"/api/v1/namespaces/default/pods/{pod}", {"gracePeriodSeconds": 0})
        wave = [n for n in nodes if n not in charged][:15]
        for node in wave:
            world.admin.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {"wave": pool}}})
        begun, asked, most = time.monotonic(), 0, 0
        while any(world.get_node(n) for n in wave) and time.monotonic() < begun + LIMIT:
            status, body = world.admin.request("DELETE", f"/api/v1/nodes?labelSelector=wave%3D{pool}")
            assert status == 200 or (status == 429 and "allows no disruption" in body["message"]), (status, body)
            asked += 1
            most = max(most, _taken(world, pool, nodes))
            time.sleep(0.3)  # between two attempts of the person who deletes
        left = [n for n in wave if world.get_node(n)]
        figures.add(f"15 nodes by {asked} DELETECOLLECTIONs in {time.monotonic() - begun:.1f} s, at most {most} taken out of service at once")
        world.admin.delete(f"{WEBHOOKS}/{pool}")
        world.admin.delete(f"{BUDGETS}/{pool}")
    assert not left, left
    assert most <= 3, most


NODE_CONTROLLER = "system:serviceaccount:kube-system:node-controller"


def webhook_away(world, figures):
    """who is exempt is not refused; no replica: Fail refuses the others, Ignore lets them pass, and they go in turn afterwards"""
    pool = world.pool(world.unique("away"))
    nodes = world.cluster.create_nodes(5, world.unique(pool), labels={"e2e": pool})
    _halves(world, nodes)
    controller = world.cluster.client(NODE_CONTROLLER, ["system:masters"])
    exempt = {"name": "not-exempt", "expression": f'!(request.userInfo.username in ["{NODE_CONTROLLER}"])'}

    def delete(client, node):
        status, body = client.request("DELETE", f"/api/v1/nodes/{node}")
        return status, body.get("message", "")

    with contextlib.ExitStack() as stack:
        replicas, ports = _two_webhooks(world, stack)
        _start(stack, replicas)
        world.wait_adopted(*nodes)
        _node_budget(world, pool, 1)
        held = [p for n in nodes for p in world.cluster.create_pods(n, 1, prefix=f"{n}-stays", stop="never")]
        _register(world, pool, ports, policy="Fail", conditions=[exempt])
        assert delete(world.admin, nodes[0])[0] == 200
        used_up = delete(world.admin, nodes[1])
        assert used_up[0] == 429 and "allows no disruption" in used_up[1], used_up
        assert delete(controller, nodes[1])[0] == 200
        for replica in replicas:
            replica.kill()
        failed = delete(world.admin, nodes[2])
        assert failed[0] == 500 and "failed calling webhook" in failed[1], failed
        assert delete(controller, nodes[2])[0] == 200
        world.admin.delete(f"{WEBHOOKS}/{pool}")
        _register(world, pool, ports, policy="Ignore", conditions=[exempt])
        last = nodes[3:]
        assert [delete(world.admin, n)[0] for n in last] == [200, 200]
        _start(stack, replicas)
        for node in last:
            world.cluster.wait_for(lambda n=node: _waits_for_budget(world, n), LIMIT, f"{node} waits for its budget")
        assert _taken(world, pool, last) == 0
        begun, most = time.monotonic(), 0
        for pod in held:
            world.admin.request("DELETE", f"/api/v1/namespaces/default/pods/{pod}", {"gracePeriodSeconds": 0})
        while any(world.get_node(n) for n in nodes) and time.monotonic() < begun + LIMIT:
            most = max(most, _taken(world, pool, last))
        left = [n for n in nodes if world.get_node(n)]
        figures.add(f"all gone {time.monotonic() - begun:.1f} s later, at most {most} of the two at once; refused by Fail with: {failed[1]}")
        world.admin.delete(f"{WEBHOOKS}/{pool}")
        world.admin.delete(f"{BUDGETS}/{pool}")
    assert not left, left
    assert most <= 1, most


CASES = [
    node_webhook, webhook_killed, webhook_away, webhook_certificate, node_budget, repair, machine_off, deleted_node, empty_node,
    accepting_provider, budget_holds, leader_killed, another_machine, wrong_region, termination_protection, apiserver_away,
    agent_and_coordinator
]
