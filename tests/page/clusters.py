# SPDX-License-Identifier: Apache-2.0
"""Made-up clusters for pages: what `kubectl get ... -A -o json` would print of them, with a pool that consolidates, one that lets
nodes expire, and nodes that no pool has. The same numbers give the same cluster."""

import json
import random

OLD = "2026-01-01T00:00:00Z"
SHAPES = {"m5.large": ("2", "8Gi", 0.107), "m5.xlarge": ("4", "16Gi", 0.214), "m5.2xlarge": ("8", "32Gi", 0.428)}
# Half-full nodes of "web" consolidate, nodes of "batch" expire when they are a month old, "db" asks for nothing.
POOLS = ("web", "web", "web", "batch", "db", None)


def node(name, pool, shape, created=OLD):
    cpu, memory, _ = SHAPES[shape]
    labels = {"node.kubernetes.io/instance-type": shape, "topology.kubernetes.io/zone": "eu-west-1a", **({"pool": pool} if pool else {})}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": f"u-{name}", "creationTimestamp": created, "labels": labels},
            "spec": {"providerID": f"aws:///eu-west-1a/{name}"},
            "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": "110"},
                       "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": created}]}}


def pod(name, where, app, cpu, memory, **more):
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": "shop", "name": name, "uid": f"p-{name}", "creationTimestamp": OLD, "labels": {"app": app},
                         "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": f"o-{app}", "controller": True}],
                         **more},
            "spec": {"nodeName": where, "terminationGracePeriodSeconds": 30,
                     "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]},
            "status": {"phase": "Running", "startTime": OLD, "conditions": [{"type": "Ready", "status": "True"}]}}


def pdb(app, allowed):
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"namespace": "shop", "name": app},
            "spec": {"selector": {"matchLabels": {"app": app}}},
            "status": {"disruptionsAllowed": allowed, "currentHealthy": 4, "desiredHealthy": 4 - allowed, "expectedPods": 4}}


def pool(name, disruption):
    return {"apiVersion": "vesper.sh/v1alpha1", "kind": "NodePool", "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": {"pool": name}}, "disruption": disruption,
                     "offerings": [{"instanceType": t, "zone": "eu-west-1a", "price": price,
                                    "allocatable": {"cpu": cpu, "memory": memory, "pods": "110"}}
                                   for t, (cpu, memory, price) in SHAPES.items()]}}


def pools():
    return [pool("web", {"budgets": [], "emptyAfter": "5m", "consolidation": {"policy": "WhenUnderutilized"}}),
            pool("batch", {"budgets": [{"nodes": "20%"}], "expireAfter": "720h"}), pool("db", {"budgets": []})]


def small():
    """Of each kind one: empty, half full, expired, one that a pod keeps, one that a PDB keeps, one of no pool."""
    items = [node("ip-10-0-1-11", "web", "m5.xlarge"), node("ip-10-0-1-12", "web", "m5.xlarge"), node("ip-10-0-1-13", "web", "m5.xlarge"),
             node("ip-10-0-1-14", "web", "m5.xlarge"), node("ip-10-0-2-21", "batch", "m5.large"), node("ip-10-0-2-22", "batch", "m5.large"),
             node("ip-10-0-3-31", "db", "m5.2xlarge"), node("admin-1", None, "m5.large")]
    items += [pod(f"cart-{i}", "ip-10-0-1-12", "cart", "300m", "1Gi") for i in range(3)]
    items += [pod(f"search-{i}", "ip-10-0-1-13", "search", "700m", "3Gi") for i in range(4)]
    items += [pod("report-1", "ip-10-0-1-14", "report", "500m", "2Gi", annotations={"vesper.sh/do-not-evict": "true"})]
    items += [pod("mail-1", "ip-10-0-2-21", "mail", "400m", "1Gi"), pod("mail-2", "ip-10-0-2-22", "mail", "400m", "1Gi")]
    items += [pod("orders-1", "ip-10-0-3-31", "orders", "3", "12Gi"), pod("tools-1", "admin-1", "tools", "250m", "512Mi")]
    return items + [pdb("cart", 2), pdb("orders", 0)] + pools()


def large(n_nodes, pods_per_node, seed=7):
    """Names as clouds give them; nodes from empty to full."""
    draw = random.Random(seed)
    items = []
    for i in range(n_nodes):
        where = POOLS[draw.randrange(len(POOLS))]
        shape = draw.choice(list(SHAPES))
        name = f"ip-10-{i // 250 % 250}-{i // 250}-{i % 250}.eu-west-1.compute.internal"
        young = "2026-11-01T00:00:00Z" if draw.random() < 0.7 else OLD
        items.append(node(name, where, shape, young))
        room = float(SHAPES[shape][0]) * draw.choice((0, 0.3, 0.6, 0.8, 0.9, 0.95))
        for k in range(pods_per_node):
            cpu = draw.choice((0.1, 0.25, 0.5, 1.0))
            if cpu > room:
                break
            room -= cpu
            app = f"app-{draw.randrange(40)}"
            more = {"annotations": {"vesper.sh/do-not-evict": "true"}} if draw.random() < 0.01 else {}
            items.append(pod(f"{app}-{i:04d}{k:02d}-x7k2p", name, app, f"{int(cpu * 1000)}m", f"{int(cpu * 3000)}Mi", **more))
    return items + [pdb(f"app-{i}", i % 3) for i in range(12)] + pools()


def expired(n):
    """Nodes that have all expired: a step for each, and no price is known of any. One of no pool has room for all pods."""
    items = [node(f"old-{i:03d}", "batch", "m5.large") for i in range(n)] + [node("big", None, "m5.2xlarge")]
    items += [pod(f"mail-{i}", f"old-{i:03d}", "mail", "10m", "10Mi") for i in range(n)]
    unpriced = pool("batch", {"budgets": [], "expireAfter": "720h"})
    del unpriced["spec"]["offerings"]
    return items + [unpriced]


def full():
    """Two nodes, one of which has expired: the pod of neither has room on the other."""
    return [node("full", "db", "m5.large"), node("old", "batch", "m5.large"), pod("orders-1", "full", "orders", "1500m", "1Gi"),
            pod("mail-1", "old", "mail", "1500m", "1Gi")] + pools()


# Bytes that a page must not take for its own.
HOSTILE = "<b onload=\"x\">&amp;'\u0001\u001b[1m\u202e\ufffe]]>--><script>alert(1)</script>"


def hostile():
    """Names that no API server would take, but a file may have, and texts that it would."""
    items = [node("a" + HOSTILE, "web", "m5.large"), node("b" + HOSTILE, "web", "m5.xlarge"),
             node("c" + HOSTILE, "web", "m5.xlarge"), node("d" + HOSTILE, None, "m5.xlarge")]
    items += [pod("p1" + HOSTILE, "a" + HOSTILE, "p" + HOSTILE, "100m", "1Gi"), pod("p2" + HOSTILE, "b" + HOSTILE, "q", "2", "1Gi"),
              pod("p3" + HOSTILE, "c" + HOSTILE, "p" + HOSTILE, "100m", "1Gi", annotations={"vesper.sh/do-not-evict": "true", "any": HOSTILE})]
    return items + [pdb("p" + HOSTILE, 0), {**pool("web", {"budgets": [], "consolidation": {"policy": "WhenUnderutilized"}}),
                                            "metadata": {"name": "web" + HOSTILE}}]


KINDS = ("Node", "Pod", "PodDisruptionBudget", "PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CSINode", "Namespace", "NodePool",
         "NodeClaim", "NodeDisruptionBudget")


def snapshot(items, taken="2026-11-25T08:00:00Z"):
    """The same as a file of `vesperctl snapshot`: it has a time of its own, so that its plan is the same whenever it is made."""
    ordered = sorted(items, key=lambda o: (KINDS.index(o["kind"]), o["metadata"].get("namespace", ""), o["metadata"]["name"]))
    head = {"vesperSnapshot": 1, "taken": taken, "kinds": list(KINDS), "objects": len(items)}
    return "".join(json.dumps(o, separators=(",", ":")) + "\n" for o in (head, *ordered))
