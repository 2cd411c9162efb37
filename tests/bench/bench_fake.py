# SPDX-License-Identifier: Apache-2.0
"""The daemons against the fake cluster, which is a process of its own: what size costs, and what idling does.

The fake answers faster than any API server; what is measured here is ours: memory, CPU, calls."""

import collections
import contextlib
import json
import math
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import account  # noqa: E402
import fakeworld  # noqa: E402
import table  # noqa: E402
from daemons import build_directory, procs, program  # noqa: E402
from fakeworld import FakeWorld, wait  # noqa: E402

SIZES = ((500, 15000), (1000, 30000), (5000, 150000))
LARGEST = SIZES[-1]
RATES = (200, 2000)  # pod changes a second: one for each wakeup, and ten
GONE_SEC = 900  # generous: the fake has one core, and much to do for each pod that goes
DELETED = 200
STATUS_RUNS = 5
WIDE = ("/api/v1/nodes", "/api/v1/pods", "/apis/vesper.sh/v1alpha1/nodeclaims", "/apis/policy/v1/poddisruptionbudgets",
        "/apis/storage.k8s.io/v1/volumeattachments")  # lists that have one for each node, or more
LIBCURL = "libcurl alone, a GET a second"  # of the limits of an idle agent
POOLS = "/apis/vesper.sh/v1alpha1/nodepools"
MB = 1024


def fresh_directory(ctx, name):
    path = os.path.join(ctx.dir, name)
    shutil.rmtree(path, ignore_errors=True)
    return path


def _all_gone(client, left):
    """Takes from the end of `left` the nodes that are gone; asks for no more than one that is there."""
    while left and client.find(f"/api/v1/nodes/{left[-1]}") is None:
        left.pop()
    return not left


# -- one size ----------------------------------------------------------------------------------------------


class Size:
    """What one size of cluster costs, step by step; `figures` has it all."""
    def __init__(self, fake, nodes, pods, steady_seconds, brief=False):
        self.fake = fake
        self.nodes = nodes
        self.pods = pods
        self.steady_seconds = steady_seconds
        self.brief = brief  # only what `growth` asks for
        self.calls = {}  # what -> {"verb resource": number}
        self.figures = {"nodes": nodes, "pods": pods, "fake_load_s": fake.load_seconds}

    def run(self):
        with self._synced("leader", "first") as leader:
            leader.wait_line("LEASE_ACQUIRED", 60)
            with self._synced("standby", "standby") as standby:
                if not self.brief:
                    self._changes(leader, standby, "bare", RATES[0])
                self._adopt(leader)
                self._status()
                if not self.brief:
                    self._of_one_node()
                for rate in RATES[:1] if self.brief else RATES:
                    self._changes(leader, standby, "adopted", rate)
                if not self.brief:
                    self._ask(leader)
                    self._changes(leader, standby, "asked", RATES[0])
                    self._disrupt(None)
                self._delete(leader, standby)
            if not self.brief:
                with self._synced("late", "late"):
                    pass
        return self.figures

    def _note(self, what):
        """Minutes pass here: who watches sees where it stands."""
        print(f"        {self.nodes:,} nodes: {what}", flush=True)

    def _synced(self, name, prefix):
        """A coordinator from its start until its view is complete."""
        daemon = self.fake.coordinator(name)
        fake, begin = account.read(self.fake.pid), time.monotonic()
        daemon.start()
        try:
            with account.Sampler(daemon.pid) as sampler:
                daemon.wait_line("READY", 240)
                took = time.monotonic() - begin
                after = account.read(daemon.pid)
        except BaseException:
            daemon.stop()
            raise
        self.figures.update({
            f"{prefix}_fake_cpu_s": (account.read(self.fake.pid) - fake).cpu,
            f"{prefix}_switches": after.voluntary + after.involuntary, f"{prefix}_synced_s": took, f"{prefix}_cpu_s": after.cpu, f"{prefix}_rss_mb": after.rss_kb / MB,
            f"{prefix}_anonymous_mb": after.anonymous_kb / MB,
            f"{prefix}_peak_rss_mb": max(sampler.peak.rss_kb, after.peak_rss_kb) / MB
        })
        self._note(f"{name} synced in {took:.1f} s, {after.cpu:.1f} s of CPU")
        return daemon

    def _changes(self, leader, standby, state, rate):
        """A stream of pod changes, less what quiet costs; until both have taken it all in."""
        daemons, state = (leader, standby), state if rate == RATES[0] else f"{state}_{rate}"
        time.sleep(1)
        quiet = self._spend(daemons, 3)
        before = [account.read(d.pid) for d in daemons]
        with account.Instructions(leader.pid) as counted:
            self.fake.control("/churn", {"perSecond": rate, "seconds": self.steady_seconds})
            time.sleep(self.steady_seconds)
            done = self._churn_end(daemons, quiet)
        for role, d, begin, q in zip(("leader", "standby"), daemons, before, quiet):
            b = account.read(d.pid) - begin
            cost = (b.cpu - q.cpu * b.seconds / q.seconds) / done
            # A pod of 4 kB is not decrypted and read in less.
            assert cost > 3e-6, f"{d.name} spent {b.cpu:.3f} s on {done} changes: it has not seen them"
            self.figures[f"{state}_{role}_change_us"] = cost * 1e6
            self.figures[f"{state}_{role}_wakeups_per_change"] = b.voluntary / done
            self.figures[f"{state}_{role}_quiet_percent"] = q.percent
            self.figures[f"{state}_{role}_growth_kb"] = b.anonymous_kb
        self.figures[f"{state}_changes"] = done
        self._note(f"{done} pod changes at {rate} a second, {self.figures[f'{state}_leader_change_us']:.0f} us each")
        self.figures[f"{state}_leader_change_instructions"] = counted.all and counted.all / done
        for role, daemon in zip(("leader", "standby"), daemons):
            r = account.read(daemon.pid)
            self.figures[f"{state}_{role}_rss_mb"] = r.rss_kb / MB
            self.figures[f"{state}_{role}_anonymous_mb"] = r.anonymous_kb / MB

    def _churn_end(self, daemons, quiet):
        """Until the fake has made its last change and the daemons idle again; the number of changes."""
        deadline, done = time.monotonic() + 120, -1
        while True:
            before, done = done, self.fake.control("/churn")["done"]
            spent = self._spend(daemons, 1)
            if done == before and all(s.cpu < 0.005 + 3 * q.cpu / q.seconds for s, q in zip(spent, quiet)):
                return done
            assert time.monotonic() < deadline, f"the fake made {done} changes, and quiet never came"

    @staticmethod
    def _spend(daemons, seconds):
        before = [account.read(d.pid) for d in daemons]
        time.sleep(seconds)
        return [account.read(d.pid) - b for d, b in zip(daemons, before)]

    def _adopt(self, leader):
        """A fresh installation: a NodePool comes that selects every node."""
        self.fake.reset_counters()
        before, begin, rates, last = account.read(leader.pid), time.monotonic(), [], (time.monotonic(), 0)
        with account.Sampler(leader.pid) as sampler:
            self.fake.client.create(POOLS, fakeworld.pool())
            while self.fake.count("patch nodeclaims/status", 200) < self.nodes:
                assert time.monotonic() - begin < GONE_SEC, f"adoption did not come to its end within {GONE_SEC} s"
                time.sleep(0.25)
                now, writes = time.monotonic(), self._writes()
                rates.append((writes - last[1]) / (now - last[0]))
                last = (now, writes)
        took, spent = time.monotonic() - begin, account.read(leader.pid) - before
        time.sleep(1.5)  # its own echo, and the pool's status
        writes = self._writes()
        self.calls["adoption"] = self._calls()
        self._note(f"all adopted in {took:.1f} s, {spent.cpu:.1f} s of CPU")
        self.figures.update({
            "adopt_switches": spent.voluntary + spent.involuntary, "adopt_s": took, "adopt_cpu_s": spent.cpu, "adopt_cpu_per_node_ms": spent.cpu / self.nodes * 1e3,
            "adopt_nodes_per_s": self.nodes / took, "adopt_writes": writes, "adopt_writes_per_node": writes / self.nodes,
            "adopt_writes_per_s": writes / took, "adopt_writes_per_s_most": max(rates),
            "adopt_peak_anonymous_mb": sampler.peak.anonymous_kb / MB
        })

    def _disrupt(self, disruption):
        """What the pool says of nodes that nobody has asked to go."""
        self.fake.client.patch(f"{POOLS}/{fakeworld.pool()['metadata']['name']}", {"spec": {"disruption": disruption}})

    def _ask(self, leader):
        """The pool asks which of its nodes would go: until the first claims say so, all have been judged."""
        self.fake.reset_counters()
        before, begin = account.read(leader.pid), time.monotonic()
        self._disrupt({"consolidation": {"policy": "WhenUnderutilized"}})
        while self.fake.count("patch nodeclaims/status", 200) == 0:
            assert time.monotonic() - begin < GONE_SEC, f"no claim said within {GONE_SEC} s whether its node would go"
            time.sleep(0.05)
        took, spent = time.monotonic() - begin, account.read(leader.pid) - before
        self.figures.update({"ask_s": took, "ask_cpu_s": spent.cpu})
        self._note(f"all judged in {took:.1f} s, {spent.cpu:.1f} s of CPU")

    def _status(self):
        """vesperctl status of all that is adopted."""
        seconds, cpu, rss, said = _timed([program("vesperctl"), "--kubeconfig", self.fake.path("kubeconfig-coordinator"), "status"])
        assert said.count(" Adopted ") == self.nodes, f"{said.count(' Adopted ')} of {self.nodes} nodes are adopted, it says"
        self._note(f"vesperctl status in {seconds:.2f} s, {cpu:.2f} s of CPU")
        self.figures.update({"status_s": seconds, "status_cpu_s": cpu, "status_peak_rss_mb": rss / MB})

    def _of_one_node(self):
        """status and explain of one node, beside what curl takes to read the same."""
        certificate, key = self.fake.person
        config, name = self.fake.path("kubeconfig-person"), "node-000000"
        with open(config, "w", encoding="utf-8") as f:
            json.dump({"current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}],
                       "clusters": [{"name": "c", "cluster": {"server": self.fake.api, "certificate-authority": self.fake.ca}}],
                       "users": [{"name": "u", "user": {"client-certificate": certificate, "client-key": key}}]}, f)
        curl = ["curl", "--silent", "--show-error", "--cacert", self.fake.ca, "--cert", certificate, "--key", key, "--write-out",
                "%{size_download}\n"]
        for verb in ("status", "explain"):
            self.fake.reset_counters()
            seconds, cpu, rss, said = _timed([program("vesperctl"), "--kubeconfig", config, verb, name])
            assert name in said, f"vesperctl {verb} {name} says: {said}"
            read = self.fake.reads("admin")
            assert read and len(read) % STATUS_RUNS == 0, f"{len(read)} reads by {STATUS_RUNS} runs of {verb}"
            once = sorted(read)[::STATUS_RUNS]
            wide = [p for p in once if p.partition("?")[0] in WIDE and "fieldSelector" not in p]
            assert not wide, f"{verb} of one node reads {wide}"
            bare_seconds, bare_cpu, _, sizes = _timed(curl + [a for path in once for a in ("-o", "/dev/null", self.fake.api + path)])
            size = sum(map(int, sizes.split()))
            self._note(f"vesperctl {verb} {name} in {seconds * 1e3:.0f} ms, {cpu * 1e3:.0f} ms of CPU: {len(once)} requests, {size / 1e3:.0f} kB; "
                       f"curl of the same {bare_seconds * 1e3:.0f} ms, {bare_cpu * 1e3:.0f} ms of CPU")
            self.figures.update({
                f"{verb}_one_ms": seconds * 1e3, f"{verb}_one_cpu_ms": cpu * 1e3, f"{verb}_one_peak_rss_mb": rss / MB,
                f"{verb}_one_requests": len(once), f"{verb}_one_kb": size / 1e3, f"{verb}_one_curl_ms": bare_seconds * 1e3,
                f"{verb}_one_curl_cpu_ms": bare_cpu * 1e3, f"{verb}_one_beyond_cpu_ms": (cpu - bare_cpu) * 1e3
            })

    def _calls(self):
        """Of all, without the kubelets' and the leader's Leases, and our own looks at nodes: {"patch nodes": 15, ...}, most
        first."""
        calls = collections.Counter()
        for key, n in self.fake.counters().items():
            verb, resource = key.split()[:2]
            if resource != "leases" and (verb, resource) != ("get", "nodes"):
                calls[f"{verb} {resource}"] += n
        return dict(calls.most_common())

    def _writes(self):
        return sum(n for key, n in self.fake.counters().items()
                   if key.split()[0] in ("create", "patch", "update", "delete") and " leases" not in key)

    def _delete(self, leader, standby):
        """Nodes here and there are deleted at once; from the first deletion until all are gone."""
        count = min(DELETED, self.nodes // 2)
        names = [f"node-{i * (self.nodes // count):06d}" for i in range(count)]
        self.fake.reset_counters()
        before, idle, fake = (account.read(pid) for pid in (leader.pid, standby.pid, self.fake.pid))
        with account.Sampler(leader.pid) as sampler:
            begin = time.monotonic()
            for name in names:
                self.fake.client.delete(f"/api/v1/nodes/{name}")
            left = list(names)
            wait(f"{count} deleted nodes go", lambda: _all_gone(self.fake.client, left), GONE_SEC, 0.1)
            took = time.monotonic() - begin
        wait(f"{count} claims go", lambda: self._claims_gone(names), GONE_SEC, 2)
        spent, watched = account.read(leader.pid) - before, account.read(standby.pid) - idle
        theirs = account.read(self.fake.pid) - fake
        evicted = self.fake.count("create pods/eviction", 201)
        tried = self.fake.count("create pods/eviction")
        self.calls["deletion"] = self._calls()
        self._note(f"{count} deleted nodes gone in {took:.1f} s, {spent.cpu:.1f} s of CPU")
        self.figures.update({
            "delete_switches": spent.voluntary + spent.involuntary, "delete_nodes": count, "delete_s": took, "delete_cpu_s": spent.cpu,
            "delete_standby_cpu_s": watched.cpu, "delete_fake_cpu_s": theirs.cpu, "delete_evictions": evicted,
            "delete_evictions_refused": tried - evicted,
            "delete_cpu_per_eviction_us": spent.cpu / max(evicted, 1) * 1e6,
            "delete_peak_rss_mb": sampler.peak.rss_kb / MB,
            "delete_peak_anonymous_mb": sampler.peak.anonymous_kb / MB,
            "delete_growth_anonymous_mb": spent.anonymous_kb / MB
        })
        expected = sum(self.pods // self.nodes + (i * (self.nodes // count) < self.pods % self.nodes)
                       for i in range(count))
        assert evicted == expected, f"{evicted} pods were evicted from {count} nodes, {expected} stood there"

    def _claims_gone(self, names):
        claims = self.fake.client.get("/apis/vesper.sh/v1alpha1/nodeclaims")["items"]
        gone = set(names)
        return not any(c.get("status", {}).get("nodeName") in gone for c in claims)


def _timed(command):
    """Some runs of it: the medians of seconds, of seconds of CPU and of peak kB, and what the last has printed."""
    taken = []
    for _ in range(STATUS_RUNS):
        begin = time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            said = child.stdout.read()
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        taken.append((time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss))
        assert child.returncode == 0, f"{' '.join(command[:5])} ... ended with {child.returncode}"
    return *(statistics.median(t[i] for t in taken) for i in range(3)), said


def _measure(ctx, nodes, pods, steady_seconds, brief=False):
    directory = fresh_directory(ctx, f"fake-{nodes}-{pods}")
    with FakeWorld(directory, fakeworld.many_world(nodes, pods, with_pool=False)) as fake:
        size = Size(fake, nodes, pods, steady_seconds, brief)
        size.run()
    shutil.rmtree(directory, ignore_errors=True)
    return size


def _exponent(xs, ys):
    """n of y ~ x^n, by least squares; None where there is nothing to see."""
    points = [(math.log(x), math.log(y)) for x, y in zip(xs, ys) if x > 0 and y and y > 0]
    if len(points) < 2:
        return None
    mx, my = (statistics.mean(p[i] for p in points) for i in (0, 1))
    spread = sum((x - mx)**2 for x, _ in points)
    return sum((x - mx) * (y - my) for x, y in points) / spread if spread else None


STEPS = (
    ("start to synced, s", "first_synced_s"),
    ("  CPU, s", "first_cpu_s"),
    ("  CPU of the fake, s", "first_fake_cpu_s"),
    ("  RSS, MB", "first_rss_mb"),
    ("  anonymous, MB", "first_anonymous_mb"),
    ("  peak RSS, MB", "first_peak_rss_mb"),
    ("  context switches", "first_switches"),
    ("the same of the standby, s", "standby_synced_s"),
    ("started when all is adopted, s", "late_synced_s"),
    ("  RSS, MB", "late_rss_mb"),
    ("one pod change, leader, us", "bare_leader_change_us"),
    ("one pod change, standby, us", "bare_standby_change_us"),
    ("one pod change, adopted, leader, us", "adopted_leader_change_us"),
    ("  wakeups", "adopted_leader_wakeups_per_change"),
    ("  instructions", "adopted_leader_change_instructions"),
    ("one pod change, adopted, standby, us", "adopted_standby_change_us"),
    (f"the same at {RATES[1]:,} a second, leader, us", f"adopted_{RATES[1]}_leader_change_us"),
    ("  wakeups", f"adopted_{RATES[1]}_leader_wakeups_per_change"),
    ("  instructions", f"adopted_{RATES[1]}_leader_change_instructions"),
    ("quiet, adopted, leader, % of a core", "adopted_leader_quiet_percent"),
    ("adopted: RSS of the leader, MB", "adopted_leader_rss_mb"),
    ("  anonymous, MB", "adopted_leader_anonymous_mb"),
    ("  RSS of the standby, MB", "adopted_standby_rss_mb"),
    ("a pool asks which nodes would go: all judged, s", "ask_s"),
    ("  CPU, s", "ask_cpu_s"),
    ("  RSS of the leader, MB", "asked_leader_rss_mb"),
    ("  one pod change, leader, us", "asked_leader_change_us"),
    ("adoption of all nodes, s", "adopt_s"),
    ("  CPU, s", "adopt_cpu_s"),
    ("  nodes a second", "adopt_nodes_per_s"),
    ("  writes at the API server", "adopt_writes"),
    ("  writes a node", "adopt_writes_per_node"),
    ("  writes a second, on average", "adopt_writes_per_s"),
    ("  writes a second, at most", "adopt_writes_per_s_most"),
    ("  peak anonymous, MB", "adopt_peak_anonymous_mb"),
    ("  context switches", "adopt_switches"),
    ("vesperctl status, s", "status_s"),
    ("  CPU, s", "status_cpu_s"),
    ("  peak RSS, MB", "status_peak_rss_mb"),
    ("vesperctl status NODE, ms", "status_one_ms"),
    ("  CPU, ms", "status_one_cpu_ms"),
    ("  CPU of curl for the same, ms", "status_one_curl_cpu_ms"),
    ("  requests", "status_one_requests"),
    ("  kB read", "status_one_kb"),
    ("vesperctl explain NODE, ms", "explain_one_ms"),
    ("  curl for the same, ms", "explain_one_curl_ms"),
    ("  CPU, ms", "explain_one_cpu_ms"),
    ("  CPU of curl for the same, ms", "explain_one_curl_cpu_ms"),
    ("  requests", "explain_one_requests"),
    ("  kB read", "explain_one_kb"),
    ("  peak RSS, MB", "explain_one_peak_rss_mb"),
    ("nodes deleted at once", "delete_nodes"),
    ("  until all are gone, s", "delete_s"),
    ("  CPU, s", "delete_cpu_s"),
    ("  CPU of the standby, s", "delete_standby_cpu_s"),
    ("  CPU of the fake, which has one core, s", "delete_fake_cpu_s"),
    ("  evictions obeyed", "delete_evictions"),
    ("  evictions refused", "delete_evictions_refused"),
    ("  CPU an eviction, us", "delete_cpu_per_eviction_us"),
    ("  peak RSS, MB", "delete_peak_rss_mb"),
    ("  peak anonymous, MB", "delete_peak_anonymous_mb"),
    ("  context switches", "delete_switches"),
)


def scale(ctx):
    """500 to 5,000 nodes with 30 pods each."""
    measured = [_measure(ctx, nodes, pods, 15 if (nodes, pods) == LARGEST else 8) for nodes, pods in SIZES]
    found = [m.figures for m in measured]
    header = ["", *(f"{n:,} nodes, {p:,} pods" for n, p in SIZES), "grows as n^"]
    sizes = [f["nodes"] for f in found]
    rows = [[what, *(f[key] for f in found), _exponent(sizes, [f[key] for f in found])]
            for what, key in STEPS]
    ctx.table(f"coordinator, pods of {fakeworld.pod_bytes()} bytes, {RATES[0]} changes a second", header, rows)
    for what, nodes in (("adoption", LARGEST[0]), ("deletion", DELETED)):
        ctx.table(f"calls by the largest {what} (Leases left out; pools and deletions of nodes are ours)",
                  ("call", "number", "per node"),
                  [(k, n, n / nodes) for k, n in measured[-1].calls[what].items()])
    ctx.json("fake-scale", {"sizes": found, "calls": measured[-1].calls})
    largest = found[-1]
    rss = max(largest[key] for key in ("first_rss_mb", "adopted_leader_rss_mb", "adopted_standby_rss_mb",
                                       "late_rss_mb"))
    ctx.bar("5,000 nodes, 150,000 pods: RSS, the larger of leader and standby", rss, 200, "MB")
    ctx.bar("5,000 nodes, 150,000 pods, and a pool that asks which would go: RSS", largest["asked_leader_rss_mb"], 260, "MB")
    ctx.bar("5,000 nodes, 150,000 pods, and a pool that asks: a pod's change", largest["asked_leader_change_us"], 50, "us")
    ctx.bar("5,000 nodes, 150,000 pods: start to synced", largest["first_synced_s"], 20, "s")
    ctx.bar("5,000 nodes, 150,000 pods: the same with all adopted", largest["late_synced_s"], 20, "s")
    ctx.bar("5,000 nodes, 150,000 pods: vesperctl status", largest["status_s"], 1.5, "s")
    ctx.bar("the same: CPU of vesperctl explain NODE beyond that of curl", largest["explain_one_beyond_cpu_ms"], 50, "ms")
    ctx.bar(f"a pod's change at {RATES[0]} a second, leader", largest["adopted_leader_change_us"], 50, "us")
    ctx.bar(f"a pod's change at {RATES[0]} a second, standby", largest["adopted_standby_change_us"], 50, "us")
    ctx.bar(f"a pod's change at {RATES[1]:,} a second, leader", largest[f"adopted_{RATES[1]}_leader_change_us"],
            50, "us")


GROWTH = (("CPU until synced, s", "first_cpu_s"), ("anonymous, MB", "first_anonymous_mb"),
          ("one pod change, us", "adopted_leader_change_us"), ("adoption: CPU, s", "adopt_cpu_s"),
          ("vesperctl status: CPU, s", "status_cpu_s"),
          ("deletion: CPU an eviction, us", "delete_cpu_per_eviction_us"),
          ("deletion: peak anonymous, MB", "delete_peak_anonymous_mb"))


def growth(ctx):
    """Three sizes each way: what grows faster than what causes it."""
    middle = (500, 10000)
    by_nodes = ((250, 10000), middle, (1000, 10000))
    by_pods = ((500, 5000), middle, (500, 20000))
    found = {size: _measure(ctx, *size, 5, brief=True).figures for size in dict.fromkeys(by_nodes + by_pods)}
    lines = []
    for what, sizes, i in (("nodes, 10,000 pods", by_nodes, 0), ("pods, 500 nodes", by_pods, 1)):
        rows, xs = [], [size[i] for size in sizes]
        for title, key in GROWTH:
            ys = [found[size][key] for size in sizes]
            rows.append([title, *ys, _exponent(xs, ys)])
        ctx.table(f"by {what}", ["", *(f"{x:,}" for x in xs), "grows as n^"], rows)
        lines.append({"by": what.split(",")[0], "sizes": xs,
                      **{key: [found[size][key] for size in sizes] for _, key in GROWTH}})
        worst = max(row[-1] or 0 for row in rows)
        ctx.bar(f"steepest growth by {what.split(',')[0]}", worst, 1.15, "(exponent)")
    ctx.json("fake-growth", {"by": lines})


# -- the idle agent ----------------------------------------------------------------------------------------


def _syscalls(pid, seconds):
    """{name: count} of so many seconds, or None without strace."""
    if not shutil.which("strace"):
        return None
    with subprocess.Popen(["strace", "-f", "-c", "-p", str(pid)], stderr=subprocess.PIPE,
                          text=True) as tracer:
        time.sleep(seconds)
        tracer.send_signal(signal.SIGINT)
        text = tracer.communicate(timeout=20)[1]
    found = re.findall(r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?(\w+)$", text, re.M)
    calls = {name: int(count) for count, name in found if name != "total"}
    assert calls, f"strace told nothing: {text}"
    return calls


@contextlib.contextmanager
def _limits(url, kept):
    """{what: process} of those that do as little as can be done for a poll a second. kept: is the connection?"""
    program = os.path.join(build_directory(), "tests", "bench", "poll-limit")
    parts = urllib.parse.urlsplit(url)
    bare = [] if kept else [("a bare socket, a connection a second", [parts.hostname, str(parts.port), parts.path])]
    limits = {what: procs.spawn([program, *arguments])
              for what, arguments in [(LIBCURL, [url]), *bare, ("a wakeup a second", [])]}
    try:
        yield limits
        assert all(p.poll() is None for p in limits.values()), "a bare client ended"
    finally:
        for p in limits.values():
            p.kill()
            p.wait()


def _per_second(count, spent):
    return "-" if count is None else table.number(count / spent.seconds)


@contextlib.contextmanager
def _idle_world(ctx, name, kept=False):
    """The fake, an agent that has settled, and the limits beside it."""
    with FakeWorld(fresh_directory(ctx, name), fakeworld.one_node_world(30, keeps_connections=kept)) as fake, \
            fake.agent(fakeworld.NODE, fake.metadata_endpoint(fakeworld.INSTANCE)) as agent, \
            _limits(fake.metadata_endpoint(fakeworld.INSTANCE) + "/latest/meta-data/", kept) as limits:
        agent.wait_line("READY", 20)
        time.sleep(10)  # connections, first looks, the heap's shape
        yield fake, agent, limits


def _idle(ctx, name, seconds):
    with _idle_world(ctx, name) as (fake, agent, limits):
        fake.reset_counters()
        begin, with_readings = account.read(agent.pid), []
        bare = {what: account.read(p.pid) for what, p in limits.items()}
        with account.Sampler(agent.pid, 5) as sampler, account.Instructions(agent.pid) as counted:
            for _ in range(4):
                time.sleep(seconds / 4)
                with_readings.append(account.read(agent.pid))
        end = with_readings[-1]
        bare = {what: (account.read(p.pid) - bare[what]).percent for what, p in limits.items()}
        spent, calls = end - begin, fake.counters()
        traced = _syscalls(agent.pid, 20)
        assert agent.alive(), agent.tail()
        notice_lines = [line.text for line in agent.lines() if line.get("level") in ("warning", "error")]
        assert not notice_lines, notice_lines
    growth_kb = [r.anonymous_kb - begin.anonymous_kb for r in with_readings]
    rows = [
        ["CPU, % of a core", spent.percent], *(["  " + what, percent] for what, percent in bare.items()), ["CPU a poll, us", spent.cpu / spent.seconds * 1e6],
        ["instructions a second (user, all)", f"{_per_second(counted.user, spent)}, "
         f"{_per_second(counted.all, spent)}"],
        ["wakeups a second (voluntary context switches)", spent.voluntary / spent.seconds],
        ["involuntary context switches", spent.involuntary], ["RSS, kB", end.rss_kb],
        ["anonymous, kB", end.anonymous_kb], ["Pss, kB", end.pss_kb], ["peak RSS, kB", sampler.peak.rss_kb],
        ["growth of anonymous, kB, after each quarter", " ".join(str(g) for g in growth_kb)],
        ["descriptors, threads", f"{end.fds}, {end.threads}"],
        ["calls at the API server", ", ".join(f"{k}: {v}" for k, v in calls.items()) or "none"]
    ]
    if traced:
        rows.append(["system calls a second", sum(traced.values()) / 20])
        rows.append(["  which", ", ".join(f"{k} {v / 20:.1f}" for k, v in
                                          sorted(traced.items(), key=lambda kv: -kv[1])[:8])])
    ctx.table(f"agent, idle for {seconds} s: 30 pods, watches open, a look at the metadata every second, each on a new connection",
              ["", "measured"], rows)
    ctx.json(name, {
        "seconds": spent.seconds, "cpu_percent": spent.percent, "limits_percent": bare, "wakeups_per_s": spent.voluntary / spent.seconds,
        "rss_kb": end.rss_kb, "anonymous_kb": end.anonymous_kb, "pss_kb": end.pss_kb,
        "growth_kb": growth_kb, "fds": end.fds,
        "syscalls_per_s": sum(traced.values()) / 20 if traced else None,
        "user_instructions_per_s": counted.user and counted.user / spent.seconds,
        "instructions_per_s": counted.all and counted.all / spent.seconds
    })
    ctx.bar("idle agent, 1 s polls: CPU, beside libcurl alone", spent.percent / bare[LIBCURL], 1.5, "times")
    ctx.bar(f"idle agent: growth of anonymous memory in {seconds} s", max(growth_kb[-1], 0), 64, "kB")


def _idle_kept(ctx, name, seconds):
    """The same where the metadata service keeps the connection: EC2's ends each with its answer."""
    with _idle_world(ctx, name, kept=True) as (_, agent, limits):
        before = {pid: account.read(pid) for pid in (agent.pid, *(p.pid for p in limits.values()))}
        time.sleep(seconds)
        percent = [(account.read(pid) - reading).percent for pid, reading in before.items()]
    ctx.figure("... where the metadata service keeps the connection",
               ", ".join(f"{what} {p:.4f} %" for what, p in zip(("agent", *limits), percent)))
    ctx.json(name, {"seconds": seconds, "cpu_percent": percent[0], "limits_percent": dict(zip(limits, percent[1:]))})


def agent_idle(ctx):
    """A minute, and one more where connections are kept."""
    _idle(ctx, "agent-idle", 60)
    _idle_kept(ctx, "agent-idle-kept", 60)


def agent_idle_long(ctx):
    """Ten minutes; only when asked for by its whole name."""
    _idle(ctx, "agent-idle-long", 600)


agent_idle_long.only_when_named = True

BENCHES = [
    ("fake-scale", "coordinators in clusters of 500 to 5,000 nodes: start, steady state, adoption, deletion",
     scale),
    ("fake-growth", "how the coordinator's cost grows with nodes and with pods", growth),
    ("agent-idle", "the agent with nothing to do, for a minute", agent_idle),
    ("agent-idle-long", "the agent with nothing to do, for ten minutes (only by this name)", agent_idle_long),
]
