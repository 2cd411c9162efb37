# SPDX-License-Identifier: Apache-2.0
"""How soon the webhook answers the deletion of a Node: 5,000 nodes, 50 NodeDisruptionBudgets, two replicas.

Each review asks a replica over a connection that is kept, as an API server's are. The limit is the same review of a Node that no
budget selects: read, judged and answered, with nothing to charge."""

import concurrent.futures
import contextlib
import http.client
import json
import math
import os
import ssl
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import bench_fake  # noqa: E402
import fakeworld  # noqa: E402
from daemons import procs  # noqa: E402
from fakeworld import FakeWorld, wait  # noqa: E402

NODES, BUDGETS, AT_ONCE, ROUNDS, ALONE = 5000, 50, 50, 20, 200
PAUSE_SEC = 0.05  # between deletions by themselves: more in a row meet the pace of the coordinators' loop
PATH = "/apis/vesper.sh/v1alpha1/nodedisruptionbudgets"


def _world():
    node = fakeworld.node_template()
    node["metadata"]["labels"]["group"] = "g-%g"
    world = fakeworld.many_world(NODES, 0)
    world["many"] = [{"count": NODES, "per": NODES // BUDGETS, "object": node}]
    world["objects"] += [{
        "apiVersion": "vesper.sh/v1alpha1", "kind": "NodeDisruptionBudget", "metadata": {"name": f"b-{i:02}"},
        "spec": {"maxUnavailable": "100%", "selector": {"matchLabels": {"group": f"g-{i:06}"}}}
    } for i in range(BUDGETS)]
    return world


def _review(node, selected=True):
    """Not selected: of a Node of the same size that the coordinators do not know."""
    meta = node["metadata"]
    old = node if selected else dict(node, metadata=dict(meta, name=f"not-{meta['name']}", uid=f"not-{meta['uid']}"[:36], labels={}))
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": meta["uid"], "operation": "DELETE", "resource": {"group": "", "version": "v1", "resource": "nodes"},
        "kind": {"group": "", "version": "v1", "kind": "Node"}, "name": old["metadata"]["name"],
        "userInfo": {"username": "somebody"}, "oldObject": old}}).encode()


class Reviewers:
    """AT_ONCE connections, half of them to each replica."""
    def __init__(self, ports, ca):
        context = ssl.create_default_context(cafile=ca)
        self._connections = [http.client.HTTPSConnection("127.0.0.1", ports[i % 2], context=context, timeout=10) for i in range(AT_ONCE)]
        for c in self._connections:
            c.connect()
        self._pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)

    def close(self):
        self._pool.shutdown()
        for c in self._connections:
            c.close()

    def _ask(self, i, body):
        c = self._connections[i]
        begun = time.monotonic()
        c.request("POST", "/admission", body=body, headers={"Content-Type": "application/json"})
        response = c.getresponse()
        answer = response.read()
        took = time.monotonic() - begun
        assert response.status == 200, (response.status, answer[:500])
        said = json.loads(answer)["response"]
        return took, None if said["allowed"] else said["status"]["message"]

    def one_by_one(self, bodies):
        answers = []
        for i, body in enumerate(bodies):
            time.sleep(PAUSE_SEC)
            answers.append(self._ask(i % AT_ONCE, body))
        return answers

    def at_once(self, bodies):
        """In rounds of AT_ONCE, each of which begins together."""
        answers = []
        for begin in range(0, len(bodies), AT_ONCE):
            barrier = threading.Barrier(AT_ONCE)

            def ask(i, start=begin, together=barrier):
                together.wait()
                return self._ask(i, bodies[start + i])
            answers += self._pool.map(ask, range(AT_ONCE))
        return answers


def _figures(name, answers, figures):
    refused = [message for _, message in answers if message]
    assert not refused, f"{name}: {len(refused)} of {len(answers)} were refused, as {refused[0]}"
    times = sorted(t * 1000 for t, _ in answers)
    figures[name] = {"p50_ms": times[len(times) // 2], "p99_ms": times[math.ceil(len(times) * 0.99) - 1], "most_ms": times[-1]}
    return [name, *figures[name].values()]


def webhook(ctx):
    """Reviews of 5,000 nodes under 50 budgets, one by one, and 50 at once, by two replicas."""
    ports, figures, rows = procs.Ports(), {}, []
    with FakeWorld(bench_fake.fresh_directory(ctx, "webhook"), _world()) as fake, contextlib.ExitStack() as stack:
        certificate, key = fake.issue("webhook", names=("IP:127.0.0.1",))
        listen = [ports.take(), ports.take()]
        for i, port in enumerate(listen):
            d = stack.enter_context(fake.coordinator(f"c{i}", **{"Webhook.CertificateFile": certificate, "Webhook.KeyFile": key,
                                                                  "Webhook.Listen": f"127.0.0.1:{port}"}))
            d.wait_line("READY", 120)
        wait("all nodes adopted", lambda: len(fake.client.get("/apis/vesper.sh/v1alpha1/nodeclaims")["items"]) == NODES, 240, 1)
        wait("the status of each budget", lambda: all(b.get("status", {}).get("disruptionsAllowed") == NODES // BUDGETS
                                                      for b in fake.client.get(PATH)["items"]), 120, 0.5)
        nodes = fake.client.get("/api/v1/nodes")["items"]
        spread = [nodes[(i * (NODES // BUDGETS)) % NODES + i // BUDGETS] for i in range(2 * ROUNDS * AT_ONCE)]
        reviewers = Reviewers(listen, fake.ca)
        stack.callback(reviewers.close)
        n = ROUNDS * AT_ONCE
        alone = spread[:ALONE]
        rows.append(_figures("one by one, nothing to charge: the limit", reviewers.one_by_one([_review(o, False) for o in alone]), figures))
        rows.append(_figures("one by one", reviewers.one_by_one([_review(o) for o in alone]), figures))
        rows.append(_figures(f"{AT_ONCE} at once, nothing to charge: the limit", reviewers.at_once([_review(o, False) for o in spread[:n]]), figures))
        rows.append(_figures(f"{AT_ONCE} at once, one of each budget", reviewers.at_once([_review(o) for o in spread[n:]]), figures))
        last = nodes[-AT_ONCE:]
        rows.append(_figures(f"{AT_ONCE} at once, all of one budget", reviewers.at_once([_review(o) for o in last]), figures))
    ports.release()
    ctx.table(f"the webhook's answers, in milliseconds, to {ALONE}, {n:,}, and {AT_ONCE} deletions", ("", "p50", "p99", "most"), rows)
    ctx.json("webhook", figures)
    ctx.bar("a deletion by itself: p99", figures["one by one"]["p99_ms"], 10, "ms")
    ctx.bar("the longest of all", max(f["most_ms"] for f in figures.values()), 3000, "ms")


BENCHES = [("webhook", "the webhook's answer at 5,000 nodes and 50 NodeDisruptionBudgets, by two replicas", webhook)]
