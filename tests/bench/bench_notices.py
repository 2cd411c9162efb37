# SPDX-License-Identifier: Apache-2.0
"""Every notice: how soon an agent answers each source's, many at once, and the interruption queue, against the fake cluster."""

import contextlib
import http.client
import json
import os
import statistics
import subprocess
import sys
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import account  # noqa: E402
import fakeworld  # noqa: E402
from bench_fake import fresh_directory  # noqa: E402
from daemons import build_directory, seconds  # noqa: E402
from fakeworld import FakeWorld, wait  # noqa: E402
from metadata import Metadata  # noqa: E402
from relay import Relay  # noqa: E402

CORDON_MS = 20
TOLD_SEC = 3
NODES = 50
PODS_PER_NODE = 10
QUEUE = "notices"
ABOUT_NODES, OTHERS = 300, 14700
NAMED_NODES, MESSAGES = 1000, 15000
BARE_DELETIONS = 40  # at once
CALLS_PER_POD, LEAD_SEC = 1.5, 120
BESIDE_LIBCURL = 1.5
BESIDE_BARE = 1.2
LATE_MS = 10  # of each answer of a queue that is not on this machine
BARE_PROCESSES = (1, 2)  # the second is as [Queue] Polls= is at first
CLAIMS = "/apis/vesper.sh/v1alpha1/nodeclaims"
SUBSCRIPTION = "8d10da13-8125-4ba9-a717-bf7490507b3d"
AZURE_VM = f"azure:///subscriptions/{SUBSCRIPTION}/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/"


# -- one notice of each source ------------------------------------------------------------------------------


class Source:
    """A machine of one cloud, and one notice of its metadata service. told(): when that was answered."""
    def __init__(self, name, platform, provider_id, settings, marker, notice):
        self.name = name
        self.platform = platform
        self.provider_id = provider_id
        self.settings = settings
        self.marker = marker
        self.notice = notice  # of the fake's control; None: Metadata or a file says it

    def machine(self, name):
        return {
            "ec2": {"zone": fakeworld.ZONE},
            "gce": {"zone": "us-central1-a", "spot": True},
            "azure": {"zone": "1", "location": "westeurope", "subscription": SUBSCRIPTION, "resourceGroup": "rg", "spot": True}
        }[self.platform] | {"id": name, "platform": self.platform, "node": name}


SOURCES = (
    Source("EC2, spot", "ec2", "aws:///us-east-1a/", {"Metadata.Source": "ec2"}, b'"action"',
           {"kind": "spot", "action": "terminate", "seconds": 120}),
    Source("EC2, scheduled event", "ec2", "aws:///us-east-1a/", {"Metadata.Source": "ec2"}, b'"EventId"', None),
    Source("GCE, preemption", "gce", "gce://fake-project/us-central1-a/", {"Metadata.Source": "gce"}, b"TRUE", {"kind": "spot"}),
    Source("Azure, Preempt", "azure", AZURE_VM, {"Metadata.Source": "azure"}, b'"Preempt"', {"kind": "spot", "seconds": 30}),
    Source("file", "ec2", "aws:///us-east-1a/", {"Metadata.Source": "none", "File.PollSec": "1s"}, None, None)
)
EVENTS = SOURCES[1]  # asked for at the start and then each minute: announced before the agent starts
FILE = SOURCES[-1]


def _node(number):
    """Of node_template(), without its boot id: an interruption of another boot is over, and the agents here are this machine's."""
    node = json.loads(json.dumps(fakeworld.node_template()).replace("%i", number))
    del node["status"]["nodeInfo"]["bootID"]
    return node


def _node_of(name, provider_id):
    node = _node(name)
    node["metadata"]["name"], node["spec"]["providerID"] = name, provider_id
    return node


def _instance(source, i):
    return f"{'i-' if source.platform == 'ec2' else 'vm-'}{SOURCES.index(source):04x}{i:04x}"


def _sources_world(runs):
    nodes = [(_instance(s, i), s) for s in SOURCES for i in range(runs)]
    return {
        "objects": [_node_of(name, s.provider_id + name) for name, s in nodes],
        "instances": [s.machine(name) for name, s in nodes],
    }


def _cordons(fake):
    """Node -> when the API server took the agent's cordon: its first patch of the Node."""
    found = {}
    for call in fake.control("/log"):
        name = call["path"].rpartition("/")[2]
        if call["verb"] == "patch" and call["path"] == f"/api/v1/nodes/{name}" and call["user"] == f"system:node:{name}":
            found.setdefault(name, seconds(call["time"]))
    return found


@contextlib.contextmanager
def _announced(fake, source, name, agent):
    """The agent runs and its source has told; a function that says when it had been told."""
    with contextlib.ExitStack() as stack:
        if source is FILE:
            path = fake.path(f"notices-{name}.json")
            stack.enter_context(agent(**{"File.Path": path})).wait_line("READY", 20)
            with open(f"{path}.new", "w", encoding="utf-8") as f:
                json.dump({"id": "ups-1", "kind": "spot", "action": "terminate"}, f)
            os.rename(f"{path}.new", path)
            # The kernel notes the first read after that by its clock's last tick, some ms early.
            yield lambda: os.stat(path).st_atime
            return
        if source is EVENTS:
            metadata = stack.enter_context(Metadata(name))
            metadata.event("instance-event-1", "system-reboot", 1800)
            upstream = metadata.endpoint
        else:
            upstream = fake.metadata_endpoint(name)
        relay = stack.enter_context(Relay(upstream, source.marker))
        stack.enter_context(agent(**{"Metadata.Endpoint": relay.endpoint})).wait_line("READY", 20)
        if source.notice:
            time.sleep(1.3)  # it asks each second, or waits for news
            fake.control("/notice", {"instance": name, **source.notice})
        yield lambda: relay.told


def _delay(fake, source, name):
    """(ms from the answer until the cordon has reached the API server, ms by the agent's own word)."""
    daemons = []

    def agent(**settings):
        daemons.append(fake.agent(name, "http://127.0.0.1:1", **source.settings, **settings))
        return daemons[0]

    with _announced(fake, source, name, agent) as told:
        line = daemons[0].wait_line("NODE_CORDONED", 30)
        cordoned = _cordons(fake)[name]
        own = line.get("cordon_delay_usec")
        assert told(), f"{source.name}: a cordon without an answer"
        delay = 1000 * (cordoned - told())
    assert delay > 0, f"{source.name}: the cordon came {-delay:.1f} ms before the notice was told"
    return delay, None if own is None else int(own) / 1000


def sources(ctx):
    rows, figures = [], {}
    with FakeWorld(fresh_directory(ctx, "notice-sources"), _sources_world(ctx.light_runs)) as fake:
        for source in SOURCES:
            seen = [_delay(fake, source, _instance(source, i)) for i in range(ctx.light_runs)]
            delays, own = [d for d, _ in seen], [o for _, o in seen if o is not None]
            rows.append((source.name, statistics.median(delays), max(delays), statistics.median(own) if own else None))
            figures[source.name] = delays
    ctx.table("a notice is answered -> the cordon is at the API server, ms",
              ("source", "median", "most", "median by the agent's own word, until it leaves"), rows)
    for name, median, _, _ in rows:
        ctx.bar(f"{name}: notice answered -> cordon", median, CORDON_MS, "ms")
    ctx.json("notice-sources", {"ms": figures})


# -- fifty at once ------------------------------------------------------------------------------------------


class Sender:
    """Messages by the fake's control, on one connection."""
    def __init__(self, fake):
        self._connection = http.client.HTTPConnection(urllib.parse.urlsplit(fake.control_endpoint).netloc, timeout=60)

    def send(self, what, body):
        self._connection.request("POST", what, json.dumps(body))
        answer = self._connection.getresponse()
        text = answer.read()
        assert answer.status == 200, text


def _noticed_world(queue, nodes=NODES):
    numbers = [f"{i:06d}" for i in range(nodes)]
    namespaces = -(-nodes * PODS_PER_NODE // fakeworld.PODS_PER_NAMESPACE)
    return {
        "objects": [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "vesper-system"}}, *map(_node, numbers), fakeworld.pool()
        ], "instances": [{"id": f"i-00{n}", "zone": fakeworld.ZONE, "node": f"node-{n}"} for n in numbers],
        "many": [{"count": namespaces, "object": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-%i"}}},
                 {"count": nodes * PODS_PER_NODE, "per": fakeworld.PODS_PER_NAMESPACE, "among": nodes,
                  "object": fakeworld.pod_template()}],
        **({"queues": [{"name": QUEUE}]} if queue else {})
    }


def _instances():
    return [f"i-00{i:06d}" for i in range(NODES)]


def _adopted(fake):
    return sum("vesper.sh/termination" in n["metadata"].get("finalizers", []) for n in fake.client.get("/api/v1/nodes")["items"])


def _deleted_claims(fake):
    """When each NodeClaim was deleted by the coordinator, in order."""
    return sorted(seconds(c["time"]) for c in fake.control("/log")
                  if c["verb"] == "delete" and c["path"].startswith(CLAIMS + "/") and c["status"] == 200)


def _announced_ends(fake, path):
    """Objects (Nodes, or NodeClaims) whose annotation tells of an interruption by a spot notice, with its deadline."""
    texts = (o["metadata"].get("annotations", {}).get("vesper.sh/interruption") for o in fake.client.get(path)["items"])
    notices = [json.loads(t) for t in texts if t]
    for notice in notices:
        assert notice["kind"] == "spot" and notice["action"] == "terminate" and notice["deadline"], notice
    return len(notices)


def _wait_deleted(fake, begin, path):
    """From begin until the last of all claims was deleted; objects at path have said why."""
    wait("an object tells of its end", lambda: _announced_ends(fake, path), 60)
    return wait(f"{NODES} claims are deleted", lambda: len(d := _deleted_claims(fake)) >= NODES and d, 60, 0.2)[NODES - 1] - begin


def _fifty_by_agents(ctx):
    with FakeWorld(fresh_directory(ctx, "notice-fifty-agents"), _noticed_world(False)) as fake, \
            fakeworld.leading(fake), contextlib.ExitStack() as stack:
        agents = [stack.enter_context(fake.agent(f"node-{i[4:]}", fake.metadata_endpoint(i))) for i in _instances()]
        for agent in agents:
            agent.wait_line("READY", 60)
        wait(f"{NODES} nodes are adopted", lambda: _adopted(fake) == NODES, 60, 0.2)
        time.sleep(3)  # first looks are over
        fake.reset_counters()
        sender, begin = Sender(fake), time.time()
        for instance in _instances():
            sender.send("/notice", {"instance": instance, "kind": "spot", "action": "terminate", "seconds": 120})
        sent = time.time() - begin
        deleted = _wait_deleted(fake, begin, "/api/v1/nodes")
        cordoned = sorted(_cordons(fake).values())
        assert len(cordoned) == NODES, f"{len(cordoned)} of {NODES} agents have cordoned their node"
        own = [int(a.wait_line("NODE_CORDONED", 10)["cordon_delay_usec"]) / 1000 for a in agents]
    return sent, cordoned[-1] - begin, deleted, statistics.median(own), max(own)


def _fifty_by_queue(ctx):
    with FakeWorld(fresh_directory(ctx, "notice-fifty-queue"), _noticed_world(True)) as fake, \
            fakeworld.leading(fake, **{"Queue.Url": fake.queue_url(QUEUE)}):
        wait(f"{NODES} nodes are adopted", lambda: _adopted(fake) == NODES, 60, 0.2)
        time.sleep(3)
        fake.reset_counters()
        sender, begin = Sender(fake), time.time()
        for instance in _instances():
            sender.send("/cloud/event", {"queue": QUEUE, "kind": "spot", "instance": instance})
        sent = time.time() - begin
        return sent, _wait_deleted(fake, begin, CLAIMS)


def fifty(ctx):
    sent, cordoned, deleted, own, most = _fifty_by_agents(ctx)
    assert sent <= 1, f"the {NODES} notices took {sent:.1f} s to be put there"
    by_queue = [_fifty_by_queue(ctx) for _ in range(ctx.runs)]
    heard = statistics.median(d for _, d in by_queue)
    assert all(s <= 1 for s, _ in by_queue), by_queue
    ctx.table(f"{NODES} spot notices at once, {PODS_PER_NODE} pods on each node; from the first of them, s",
              ("by", "last notice there", "last node cordoned", "last claim deleted"),
              [(f"{NODES} agents, PollSec=1s", sent, cordoned, deleted)] +
              [("the queue alone", s, None, d) for s, d in by_queue])
    ctx.bar(f"{NODES} spot notices seen by {NODES} agents that look once a second: first notice -> last cordon", cordoned, TOLD_SEC, "s")
    ctx.bar("... last NodeClaim deleted", deleted, TOLD_SEC, "s")
    ctx.figure("... answer -> cordon leaves, median and most of the fifty", f"{own:.1f} ms, {most:.1f} ms")
    ctx.bar(f"{NODES} spot notices by the queue alone: first sent -> last NodeClaim deleted", heard, TOLD_SEC, "s")
    ctx.json("notice-fifty", {"agents": {"sent": sent, "cordoned": cordoned, "deleted": deleted}, "queue": by_queue})


# -- a full queue -------------------------------------------------------------------------------------------


def _fill(fake):
    """Of each node six: a spot notice, a recommendation, four changes of state that end nothing. One in fifty of the others
    repeats a spot notice; the rest are changes of state and recommendations of instances that are no nodes here."""
    sender, about, repeats = Sender(fake), 0, 0
    kinds = ({"kind": "spot"}, {"kind": "rebalance"}, *({"kind": "state", "action": "running"}, ) * 4)
    every = (ABOUT_NODES + OTHERS) // ABOUT_NODES
    for i in range(ABOUT_NODES + OTHERS):
        if i % every == 0:
            event = {"instance": _instances()[about // len(kinds)], **kinds[about % len(kinds)]}
            about += 1
        elif i % every == 1:
            event = {"instance": _instances()[repeats % NODES], "kind": "spot"}
            repeats += 1
        else:
            event = {"instance": f"i-ff{i:06d}", **({"kind": "rebalance"} if i % 2 else {"kind": "state", "action": "running"})}
        sender.send("/cloud/event", {"queue": QUEUE, **event})
    assert about == ABOUT_NODES and repeats == ABOUT_NODES


def _requests(fake, operation):
    return fake.control("/cloud/counts", {"cloud": "sqs", "operation": operation})["requests"]


class Emptied:
    """From the first ReceiveMessage until the queue is empty, and what it took."""
    def __init__(self, fake, pid):
        wait("the queue is asked", lambda: _requests(fake, "ReceiveMessage"), 60, 0.002)
        begin, before, server = time.monotonic(), account.read(pid()), account.read(fake.pid)
        wait("the queue is empty", lambda: fake.queue_left(QUEUE) == 0, 120, 0.02)
        self.seconds = time.monotonic() - begin
        spent = account.read(pid()) - before
        self.cpu, self.wakeups = spent.cpu, spent.voluntary
        self.server_cpu = (account.read(fake.pid) - server).cpu
        self.calls = {o: _requests(fake, o) for o in ("ReceiveMessage", "DeleteMessageBatch", "ChangeMessageVisibilityBatch")}


@contextlib.contextmanager
def _queue_url(fake, late_ms):
    """Where the queue is reached, each answer so late."""
    url = fake.queue_url(QUEUE)
    if late_ms == 0:
        yield url
        return
    parts = urllib.parse.urlsplit(url)
    with Relay(url, late_sec=late_ms / 1000) as relay:
        yield relay.endpoint + parts.path


def _by_coordinator(ctx, late_ms):
    """Nodes are adopted first; the queue is full when the coordinator that hears it starts."""
    with FakeWorld(fresh_directory(ctx, "notice-queue"), _noticed_world(True)) as fake, _queue_url(fake, late_ms) as url:
        with fakeworld.leading(fake):
            wait(f"{NODES} nodes are adopted", lambda: _adopted(fake) == NODES, 60, 0.2)
        _fill(fake)
        fake.reset_counters()
        with fake.coordinator("c0", **{"Queue.Url": url}) as daemon:
            found = Emptied(fake, lambda: daemon.pid)
            deleted = wait(f"{NODES} claims are deleted", lambda: len(d := _deleted_claims(fake)) >= NODES and d, 60, 0.2)
            assert len(deleted) == NODES, f"{len(deleted)} deletions for {NODES} nodes"
            assert found.calls["ReceiveMessage"] >= (ABOUT_NODES + OTHERS) / 10, found.calls
    return found


def _by_bare_client(ctx, late_ms, processes):
    with FakeWorld(fresh_directory(ctx, "notice-queue-bare"), _noticed_world(True)) as fake, _queue_url(fake, late_ms) as url:
        _fill(fake)
        with subprocess.Popen([os.path.join(build_directory(), "tests", "bench", "queue-limit"), url,
                               fakeworld.ZONE[:-1], str(processes)], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, **fakeworld.AWS_KEYS}) as client:
            found = Emptied(fake, os.getpid)
            said = client.communicate(timeout=60)[0]
            assert client.returncode == 0 and int(said) == ABOUT_NODES + OTHERS, f"the bare client deleted {said}"
    return found


def _compare(ctx, late_ms):
    """What a table and the bars need, of one distance of the queue."""
    ours, bare = [], {n: [] for n in BARE_PROCESSES}
    for _ in range(ctx.runs):  # in turns: others share this machine
        ours.append(_by_coordinator(ctx, late_ms))
        for n, runs in bare.items():
            runs.append(_by_bare_client(ctx, late_ms, n))
    where = f"each answer {late_ms} ms late" if late_ms else "on the same machine"
    rows = [("coordinator", r.seconds, r.cpu, r.wakeups, r.server_cpu, *r.calls.values()) for r in ours]
    rows += [(f"bare client, {n} at once", r.seconds, None, None, r.server_cpu, *r.calls.values()) for n in bare for r in bare[n]]
    ctx.table(f"{ABOUT_NODES + OTHERS:,} messages, {ABOUT_NODES} of them about {NODES} nodes, {where}: first receive -> queue empty",
              ("by", "s", "CPU, s", "wakeups", "CPU of the fake, s", "ReceiveMessage", "DeleteMessageBatch", "ChangeMessageVisibilityBatch"),
              rows)
    took = statistics.median(r.seconds for r in ours)
    bare = {n: statistics.median(r.seconds for r in runs) for n, runs in bare.items()}
    ctx.bar(f"a queue of 15,000 messages, {where}: emptied, beside a bare client with as many polls", took / bare[2], BESIDE_BARE, "times")
    ctx.figure("... seconds, the bare client's with one and two; CPU of the coordinator; wakeups a second",
               f"{took:.2f}, {bare[1]:.2f}, {bare[2]:.2f}; {statistics.median(r.cpu for r in ours):.2f} s; "
               f"{statistics.median(r.wakeups / r.seconds for r in ours):.0f}")
    return {"coordinator": [r.seconds for r in ours], "bare": bare}


# -- a queue that names a thousand nodes -----------------------------------------------------------------------


def _fill_named(fake):
    """A spot notice of each node, among changes of state and recommendations of instances that are no nodes here."""
    sender, every = Sender(fake), MESSAGES // NAMED_NODES
    for i in range(MESSAGES):
        if i % every == 0:
            event = {"instance": f"i-00{i // every:06d}", "kind": "spot"}
        else:
            event = {"instance": f"i-ff{i:06d}", **({"kind": "rebalance"} if i % 2 else {"kind": "state", "action": "running"})}
        sender.send("/cloud/event", {"queue": QUEUE, **event})


def _adopt_all(fake):
    with fakeworld.leading(fake):
        wait(f"{NAMED_NODES} nodes are adopted", lambda: _adopted(fake) == NAMED_NODES, 180, 1)


def _named_by_coordinator(ctx, late_ms):
    """Seconds from the first receive until the queue is empty, and until the last claim is deleted."""
    with FakeWorld(fresh_directory(ctx, "notice-named"), _noticed_world(True, NAMED_NODES)) as fake, _queue_url(fake, late_ms) as url:
        _adopt_all(fake)
        _fill_named(fake)
        fake.reset_counters()
        with fake.coordinator("c0", **{"Queue.Url": url}) as daemon:
            wait("the queue is asked", lambda: _requests(fake, "ReceiveMessage"), 60, 0.002)
            begin, before = time.time(), account.read(daemon.pid)
            wait("the queue is empty", lambda: fake.queue_left(QUEUE) == 0, 120, 0.05)
            empty = time.time() - begin
            wait(f"{NAMED_NODES} claims are deleted", lambda: fake.count("delete nodeclaims", 200) >= NAMED_NODES, 120, 0.05)
            cpu = (account.read(daemon.pid) - before).cpu
            return empty, _deleted_claims(fake)[NAMED_NODES - 1] - begin, cpu


def _named_by_bare_clients(ctx, late_ms):
    """The same work by who does nothing else: seconds to receive and delete the messages, and to delete the claims."""
    with FakeWorld(fresh_directory(ctx, "notice-named-bare"), _noticed_world(True, NAMED_NODES)) as fake, _queue_url(fake, late_ms) as url:
        _adopt_all(fake)
        claims = [f"{CLAIMS}/{c['metadata']['name']}" for c in fake.client.get(CLAIMS)["items"]]
        assert len(claims) == NAMED_NODES, f"{len(claims)} claims"
        _fill_named(fake)
        with subprocess.Popen([os.path.join(build_directory(), "tests", "bench", "queue-limit"), url,
                               fakeworld.ZONE[:-1], str(BARE_PROCESSES[-1])], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, **fakeworld.AWS_KEYS}) as client:
            found = Emptied(fake, os.getpid)
            assert int(client.communicate(timeout=60)[0]) == MESSAGES and client.returncode == 0
        return found.seconds, fake.delete_bare(claims, BARE_DELETIONS)


def named(ctx):
    ours, bare = [], []
    for _ in range(ctx.light_runs):
        ours.append(_named_by_coordinator(ctx, LATE_MS))
        bare.append(_named_by_bare_clients(ctx, LATE_MS))
    ctx.table(f"{MESSAGES:,} messages, {NAMED_NODES:,} of them spot notices of as many nodes, each answer of the queue {LATE_MS} ms late; s",
              ("by", "queue empty", "last claim deleted", "CPU"),
              [("coordinator", *o) for o in ours] + [("bare clients, one after the other", r, r + d, None) for r, d in bare])
    took, limit = statistics.median(max(e, d) for e, d, _ in ours), statistics.median(r + d for r, d in bare)
    ctx.bar(f"{MESSAGES:,} messages that name {NAMED_NODES:,} nodes: emptied and all claims deleted, beside bare clients", took / limit,
            BESIDE_BARE, "times")
    ctx.json("notice-named", {"coordinator": ours, "bare": bare})


def full_queue(ctx):
    ctx.json("notice-queue", {f"late_{ms}_ms": _compare(ctx, ms) for ms in (LATE_MS, 0)})


# -- a fleet that is noticed at once ---------------------------------------------------------------------------


def fleet(ctx):
    """Whole agents on the virtual clock (tests/sim/sim-fleet.c): it takes minutes, and no figure depends on how many."""
    done = subprocess.run([os.path.join(build_directory(), "tests", "sim", "sim-fleet")], capture_output=True, text=True, check=False,
                          timeout=3600)
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
    found = {key: float(value) for key, value in (line.split() for line in done.stdout.splitlines())}
    what = f"{found['nodes']:.0f} agents noticed within a second, {found['pods']:.0f} pods under one PDB without room"
    ctx.bar(f"{what}: evictions asked a pod in {found['held_sec']:.0f} s", found["calls_per_pod"], CALLS_PER_POD, "calls")
    ctx.bar("... room after that: all drained, after the notices", found["drained_sec"], LEAD_SEC, "s")
    ctx.figure("... requests of all kinds, a node, until there is room", f"{found['requests_per_node']:.1f}")
    ctx.json("notice-fleet", found)


fleet.only_when_named = True


# -- an idle agent of another cloud ----------------------------------------------------------------------------


def _azure_limit(url):
    return subprocess.Popen([os.path.join(build_directory(), "tests", "bench", "poll-limit"), url],
                            env={**os.environ, "POLL_LIMIT_ALONE": "1", "POLL_LIMIT_HEADER": "Metadata: true"})


def idle_azure(ctx):
    """Azure's one feed, each second. EC2's five are bench agent-idle's; Compute Engine's four wait for a minute each."""
    source = next(s for s in SOURCES if s.platform == "azure")
    name, seconds, rows = _instance(source, 0), 60, []
    world = {"objects": [_node_of(name, source.provider_id + name)], "instances": [source.machine(name)]}
    with FakeWorld(fresh_directory(ctx, "notice-idle-azure"), world) as fake, \
            fake.agent(name, fake.metadata_endpoint(name), **source.settings) as agent, \
            _azure_limit(fake.metadata_endpoint(name) + "/metadata/scheduledevents?api-version=2020-07-01") as bare:
        try:
            agent.wait_line("READY", 20)
            time.sleep(10)
            for _ in range(ctx.light_runs):
                before = account.read(agent.pid), account.read(bare.pid)
                time.sleep(seconds / ctx.light_runs)
                rows.append([(account.read(p) - b).percent for p, b in zip((agent.pid, bare.pid), before)])
            assert bare.poll() is None and agent.alive(), "one of them ended"
        finally:
            bare.kill()
    ours, limit = (statistics.mean(r[i] for r in rows) for i in (0, 1))
    ctx.table("an idle agent on Azure, one poll a second: CPU, % of a core", ("agent", "libcurl alone"), rows)
    ctx.bar("agent idle on Azure, one poll a second: CPU beside libcurl alone", ours / limit, BESIDE_LIBCURL, "times")
    ctx.json("notice-idle-azure", {"agent": ours, "libcurl": limit})


BENCHES = [
    ("notice-sources", "a notice of each source: its answer -> the cordon", sources),
    ("notice-fifty", "fifty spot notices at once, by agents and by the queue alone", fifty),
    ("notice-named", "15,000 messages that name 1,000 nodes, beside bare clients", named),
    ("notice-fleet", "a thousand agents noticed within a second, simulated (only by this name)", fleet),
    ("notice-idle-azure", "the agent with nothing to do on Azure", idle_azure),
    ("notice-queue", "a queue of 15,000 messages, beside a bare client", full_queue),
]
