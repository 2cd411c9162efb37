# SPDX-License-Identifier: Apache-2.0
"""What the coordinator says of nodes that would go though nobody asked, against the real API server, its PodDisruptionBudgets
and CRDs. It removes none of them."""

from daemons import LIMIT
from world import PDBS, POOLS

PODS = 4


def _says(world, node, kind):
    """Status, reason and message of that condition of its NodeClaim; None: there is none."""
    conditions = {c["type"]: c for claim in world.claims(node) for c in claim["status"].get("conditions", [])}
    found = conditions.get(kind)
    return found and (found["status"], found["reason"], found["message"])


def _wait(world, node, kind, status, reason):
    seen = []

    def is_so():
        seen[:] = [_says(world, node, kind)]
        return seen[0] if seen[0] and seen[0][:2] == (status, reason) else None

    try:
        return world.cluster.wait_for(is_so, LIMIT, f"{kind} of {node} to be {status}, {reason}")
    except Exception as e:
        raise AssertionError(f"{e}; it says {seen}") from e


def _block(world, name):
    """A PodDisruptionBudget that has no room now: its pods are one more than it wants, and that one has no node."""
    world.admin.patch(f"/apis/apps/v1/namespaces/default/replicasets/{name}", {"spec": {
        "replicas": PODS + 1, "template": {"spec": {"nodeSelector": {"e2e": "nowhere"}}}}})
    world.cluster.wait_for(lambda: len(world.pods_of(name)) == PODS + 1, LIMIT, "one pod more")
    world.budget(name, name, PODS)
    world.cluster.wait_for(lambda: world.admin.get(f"{PDBS}/{name}")["status"].get("expectedPods") == PODS + 1, LIMIT,
                           f"PDB {name} to count {PODS + 1} pods")


def _node_for_sale(world):
    """One whose pod has no place but on a new node, of which its pool has a cheaper one."""
    name = world.unique("forsale")
    world.pool(name)
    node = world.node(name)[0]
    world.admin.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {"node.kubernetes.io/instance-type": "m5.large"}}})
    world.replicas(name, 1, name)
    world.admin.patch(f"{POOLS}/{name}", {"spec": {
        "disruption": {"consolidation": {"policy": "WhenUnderutilized"}, "budgets": []}, "limits": {"cpu": "1k", "nodes": 2}, "offerings": [
            {"instanceType": "m5.large", "price": 4}, {"instanceType": "m6i.large", "price": 1.5, "allocatable": {"cpu": 4, "memory": "8Gi"}}]}})
    return name, node


def nodes_would_go(world, figures):
    """nodes that would go though nobody asked: their claims say so, one for a cheaper node; one is promised to a pending pod; a PDB without room, and an Event; limits"""
    with world.coordinators(count=1):  # first, for it judges nothing in its first minute
        name = world.unique("outlook")
        world.pool(name)
        nodes = [world.node(name)[0] for _ in range(2)]
        world.replicas(name, PODS, name)
        other_pool, dear = _node_for_sale(world)
        world.wait_adopted(*nodes, dear)
        busy = min(p["spec"]["nodeName"] for p in world.pods_of(name))
        assert _says(world, busy, "Consolidatable") is None
        world.admin.patch(f"{POOLS}/{name}", {"spec": {"disruption": {"consolidation": {"policy": "WhenUnderutilized"}, "budgets": []}}})
        _, _, message = _wait(world, busy, "Consolidatable", "True", "WouldGo")
        assert message.endswith("on other nodes"), message
        assert _says(world, busy, "Empty")[:2] == ("False", "NotEmpty")
        assert _says(world, busy, "Initialized")[0] == "True", "what others say of it is gone"

        _, _, message = _wait(world, dear, "Consolidatable", "True", "WouldGo")
        assert message == "its pods fit on other nodes and one new m6i.large, which saves 2.5 of its 4", message

        world.admin.patch(f"{POOLS}/{other_pool}", {"spec": {"limits": {"nodes": 1}}})
        # kube-scheduler leaves alone a pod that names another scheduler.
        waiting = world.cluster.create_pods(None, prefix=f"{name}-waits", change=lambda pod: pod["spec"].update(schedulerName="nobody"))[0]
        promised = next(n for n in nodes if n != busy)
        world.admin.patch(f"/api/v1/namespaces/default/pods/{waiting}/status", {"status": {"nominatedNodeName": promised}})
        _block(world, name)
        _, _, message = _wait(world, busy, "Consolidatable", "False", "PdbBlocks")
        assert message == f"pdb default/{name} prevents pod evictions", message
        _, _, message = _wait(world, promised, "Consolidatable", "False", "Nominated")
        assert message == f"it is promised to pending pod default/{waiting} (status.nominatedNodeName)", message
        world.admin.delete(f"/api/v1/namespaces/default/pods/{waiting}")
        event = world.wait_event(busy, "Unconsolidatable")
        assert (event["type"], event["message"]) == ("Normal", f"pdb default/{name} prevents pod evictions (PDB_BLOCKS)"), event
        _, _, message = _wait(world, dear, "Consolidatable", "False", "PoolLimit")
        assert message.endswith("may have 1 node (spec.limits) and has 1, this one included. Raise spec.limits.nodes to at least 2"), message
        simulated = world.ctl("explain", dear, "--simulate")
        assert simulated.returncode == 0 and "POOL_LIMIT" in simulated.stdout, simulated
        said = world.ctl("explain", busy)
        assert said.returncode == 0 and "PdbBlocks" in said.stdout, said

        world.admin.patch(f"{POOLS}/{name}", {"spec": {"disruption": None}})
        world.admin.patch(f"{POOLS}/{other_pool}", {"spec": {"disruption": None}})
        world.cluster.wait_for(lambda: not _says(world, busy, "Consolidatable"), LIMIT, f"Consolidatable of {busy} to go")
        assert all(world.get_node(n) and not world.get_node(n)["spec"].get("unschedulable") for n in nodes), "a node was touched"
        assert len(world.ready(name)) == PODS


CASES = [nodes_would_go]
