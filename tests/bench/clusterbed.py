# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks on the real control plane stand on: e2e's world, many pods at once, bare clients beside
us, and accounts of who asked the API server for what."""

import collections
import contextlib
import json
import math
import os
import shutil
import statistics
import subprocess
import threading
import time

import account
from daemons import build_directory, procs, program
from world import COORDINATOR, FINALIZER, World

# As many calls under way as the evictor has (evictor.h): what a bare client does with these is what we are measured by.
HELD = {
    "160 x HTTP/1.1": ["--http1", "--connections", "160", "--streams", "1"],
    "HTTP/2 2 x 80": ["--connections", "2", "--streams", "80"],
    "HTTP/2 4 x 40": ["--connections", "4", "--streams", "40"],
}
# The API server's own limit is the best of these. HTTP/2: connections x streams.
MOST = "HTTP/2 4 x 100"
CLIENTS = {
    "100 x HTTP/1.1": ["--http1", "--connections", "100", "--streams", "1"],
    "HTTP/2 1 x 250": ["--connections", "1", "--streams", "250"],
    MOST: ["--connections", "4", "--streams", "100"],
}
# As many at once as kubectl, asked by a few people, would; one connection.
DELETES = ["--connections", "1", "--streams", "16"]
GONE_POLL_SEC = 0.5
PROVIDER = "answer-at-once"
KUBELET = "test:kwok"  # who takes pods off the API that have ended


class Meter:
    """What a process costs between `with` and its end; kept in `spent` and `peak`."""
    def __init__(self, pid, interval=0.05):
        self._pid = pid
        self._sampler = account.Sampler(pid, interval)
        self.spent = None

    def __enter__(self):
        self._before = account.read(self._pid)
        self._sampler.__enter__()
        return self

    def __exit__(self, *_):
        self._sampler.__exit__()
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            self.spent = account.read(self._pid) - self._before

    @property
    def peak(self):
        return self._sampler.peak


class Gone(threading.Thread):
    """Watches Nodes; `times` has when each of the named ones was gone."""
    def __init__(self, client, names):
        super().__init__(daemon=True)
        self._client = client
        self._left = set(names)
        self._version = client.get("/api/v1/nodes?limit=1")["metadata"]["resourceVersion"]
        self.times = {}
        self.start()

    def run(self):
        for event in self._client.watch("/api/v1/nodes", self._version, 300):
            meta = event["object"].get("metadata", {})
            if event["type"] == "DELETED" and meta["name"] in self._left:
                self.times[meta["name"]] = time.time()
                self._left.discard(meta["name"])
                if not self._left:
                    return

    def wait(self, timeout=240):
        self.join(timeout)
        assert not self._left, f"{len(self._left)} nodes did not go within {timeout} s: {sorted(self._left)[:5]}"
        return max(self.times.values())


class Shares(account.Watcher):
    """Who had the processors, between any two moments of its life: the bed's processes by name, our own, and all
    others. A look is one system call a process, and knows of threads that ended."""
    OURS, OTHERS = "the benchmark", "others on this machine"

    def __init__(self, pids, interval=0.1):
        super().__init__(interval)
        # clock_getcpuclockid(3): the CPU time clock of another process
        self._clocks = {name: ~pid << 3 | 2 for name, pid in pids.items()} | {self.OURS: time.CLOCK_PROCESS_CPUTIME_ID}
        self._looks = []

    def look(self):
        spent = {}
        for name, clock in self._clocks.items():
            with contextlib.suppress(OSError):  # it has ended
                spent[name] = time.clock_gettime(clock)
        with open("/proc/stat", encoding="ascii") as f:
            user, nice, system, _, _, irq, softirq, *_ = map(int, f.readline().split()[1:])
        spent[self.OTHERS] = (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")
        self._looks.append((time.time(), spent))
        return True

    def _at(self, moment):
        """What each had spent then, from the looks before and after."""
        after = next((i for i, (when, _) in enumerate(self._looks) if when >= moment), len(self._looks) - 1)
        (t0, a), (t1, b) = self._looks[max(after - 1, 0)], self._looks[after]
        part = (moment - t0) / (t1 - t0) if t1 > t0 else 1
        return {name: a.get(name, b[name]) + min(max(part, 0), 1) * (b[name] - a.get(name, b[name])) for name in b}

    def between(self, begin, end, **more):
        """CPU seconds by name. more: of a child of ours that has come and gone."""
        before, after = self._at(begin), self._at(end)
        spent = {name: after[name] - before[name] for name in after if name in before} | more
        spent[self.OTHERS] = max(0.0, spent[self.OTHERS] - sum(v for n, v in spent.items() if n != self.OTHERS))
        return spent


class Bed(World):
    """A world without a cloud: machines end at once."""
    def __init__(self, directory):
        os.makedirs(directory, exist_ok=True)
        super().__init__(directory, moto=False)

    def _install(self):
        super()._install()
        # In the place of e2e's shell script, whose processes would be measured along.
        os.unlink(self.path("exec-provider"))
        shutil.copy2(os.path.join(build_directory(), "tests", "bench", PROVIDER), self.path("exec-provider"))
        os.makedirs(self.path("ended"), exist_ok=True)
        # A ServiceAccount as the coordinator's is one: flow control treats both alike.
        self._limit_account = self.cluster.service_account("bench-limit", "vesper-system",
                                                           cluster_role="cluster-admin")

    # -- load

    def nodes(self, count, pool):
        return self.cluster.create_nodes(count, self.unique(pool), None, {"e2e": pool}, change=_give_machine)

    def fill(self, nodes, per_node, prefix, per_workload=None):
        """So many pods on each of the nodes, spread; their names. per_workload: the label app changes after
        so many."""
        spread = iter(range(len(nodes) * per_node))

        def change(pod):
            i = next(spread)
            pod["spec"]["nodeName"] = nodes[i % len(nodes)]
            if per_workload:
                pod["metadata"]["labels"]["app"] = f"{prefix}-{i // per_workload}"

        names = self.cluster.create_pods(None, len(nodes) * per_node, prefix=prefix, change=change)
        self.cluster.wait_running(len(names), nodes[0] if len(nodes) == 1 else None, 180)
        return names

    def generous_budgets(self, prefix, count):
        """One per workload, that allows everything."""
        path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
        self.admin.bulk(("POST", path, {
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": f"{prefix}-{i}"},
            "spec": {"minAvailable": 0, "selector": {"matchLabels": {"app": f"{prefix}-{i}"}}}
        }) for i in range(count))

        def counted():
            items = self.admin.get(path)["items"]
            return sum(i.get("status", {}).get("disruptionsAllowed", 0) > 0 for i in items
                       if i["metadata"]["name"].startswith(prefix)) == count

        self.cluster.wait_for(counted, 60, f"the status of {count} PDBs", interval=0.2)

    def remove_budgets(self):
        self.admin.delete("/apis/policy/v1/namespaces/default/poddisruptionbudgets")

    def remove_nodes(self, names):
        self.admin.bulk(("DELETE", f"/api/v1/nodes/{n}", None) for n in names)

    def delete_nodes(self, names):
        """The same by a client as light as the one that evicts in bare(), for where it is measured what follows. What
        it printed."""
        certificate, key = self.cluster.certificate("admin")
        result = self._bare_client(names, "--cert", certificate, "--key", key, *DELETES)
        assert result["deleted"] == len(names) and result["failed"] == 0, result
        return result

    def wait_nodes_gone(self, names, timeout=240):
        """One question for one of them now and then, so that nothing is taken from those who work on it."""
        deadline = time.monotonic() + timeout
        for name in reversed(names):
            while self.admin.find(f"/api/v1/nodes/{name}"):
                assert time.monotonic() < deadline, f"node {name} did not go within {timeout} s"
                time.sleep(GONE_POLL_SEC)

    def wait_all_adopted(self, names, timeout=60):
        wanted = set(names)

        def adopted():
            items = self.admin.get("/api/v1/nodes")["items"]
            return wanted <= {n["metadata"]["name"] for n in items
                              if FINALIZER in n["metadata"].get("finalizers", [])} and \
                wanted <= {c.get("status", {}).get("nodeName") for c in self.claims()}

        self.cluster.wait_for(adopted, timeout, f"{len(wanted)} nodes are adopted", interval=0.2)

    def quiet(self, extra=(), busy=0.15, patience=20):
        """Until the control plane has nothing to do: less than that part of a core for half a second."""
        pids = [p.pid for p in self.cluster.processes.values() if p.alive()] + list(extra)
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            before = [account.read(pid).cpu for pid in pids]
            time.sleep(0.5)
            if sum(account.read(pid).cpu for pid in pids) - sum(before) < busy * 0.5:
                return True
        return False

    # -- beside us

    def shares(self, leader=None):
        """Of the control plane and of each coordinator."""
        pids = {name: p.pid for name, p in self.cluster.processes.items() if p.alive()}
        return Shares(pids | {"the leader" if d is leader else f"standby {d.name}": d.pid
                              for d in self.daemons if d.alive()})

    def bare(self, client, pods):
        """Evicts those pods by a bare client; what evict-limit printed."""
        token = self._limit_account.replace(".yaml", ".token")
        result = self._bare_client([f"default/{p}" for p in pods], "--token", token, *(CLIENTS | HELD)[client])
        assert result["evicted"] == len(pods) and result["failed"] == 0, result
        return result

    def _bare_client(self, lines, *arguments):
        done = subprocess.run([
            os.path.join(build_directory(), "tests", "bench", "evict-limit"), "--server", self.cluster.url,
            "--ca", self.cluster.ca, *arguments
        ], input="".join(f"{line}\n" for line in lines), capture_output=True, text=True, check=False,
                              timeout=300)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def kubectl_drain(self, node):
        """When it began; seconds, CPU seconds, and the most memory it had in kB."""
        return self._drain([os.path.join(self.cluster.binaries, "kubectl"), "drain", node, "--force", "--ignore-daemonsets"])

    def vesperctl_drain(self, node):
        return self._drain([program("vesperctl"), "drain", node])

    def _drain(self, command):
        began, begin = time.time(), time.monotonic()
        child = procs.spawn(command, env={
            "PATH": "/usr/bin:/bin", "HOME": self.directory, "KUBECONFIG": self.cluster.kubeconfig()
        }, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with account.Sampler(child.pid) as sampler:
            _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode == 0, f"{' '.join(command)} ended with status {child.returncode}"
        return {"began": began, "seconds": time.monotonic() - begin, "cpu_seconds": usage.ru_utime + usage.ru_stime,
                "rss_kb": usage.ru_maxrss, "anonymous_kb": sampler.peak.anonymous_kb}

    @contextlib.contextmanager
    def leader(self, replicas=2, **settings):
        """The leading one of so many coordinators; machines end at once."""
        with self.coordinators(replicas, provider="exec", **settings) as (first, *_):
            yield first


def _give_machine(node):
    node["spec"]["providerID"] = f"metal://bench/{node['metadata']['name']}"


# -- figures


class Limit:
    """What bare clients needed for so many pods in this run; `best` is the limit. shares: of each in its last run."""
    def __init__(self, pods):
        self.pods = pods
        self.runs = collections.defaultdict(list)
        self.shares = {}

    def add(self, client, result, shares):
        self.runs[client].append(result)
        self.shares[client] = shares

    def seconds(self, client):
        return statistics.median(r["seconds"] for r in self.runs[client])

    def cpu_seconds(self, client):
        return [r["cpu_seconds"] for r in self.runs[client]]

    @property
    def client(self):
        return min(self.runs, key=self.seconds)

    @property
    def best(self):
        return self.seconds(self.client)

    def rows(self):
        return [(client, len(runs), self.seconds(client), self.pods / self.seconds(client),
                 statistics.median(r["cpu_seconds"] for r in runs), sum(r["refused"] for r in runs),
                 statistics.median(r["loop_ms"] for r in runs))
                for client, runs in self.runs.items()]

    HEADER = ("bare client", "runs", "s", "a second", "CPU s", "refused", "a loop before it ms")


def median(values):
    values = list(values)
    return statistics.median(values) if values else None


def calls_by_kind(calls):
    """{"create pods/eviction": 30, ...}, most first."""
    counted = collections.Counter(f"{c.verb} {c.resource}" for c in calls)
    return dict(counted.most_common())


def exponent(sizes, values):
    """b of values ~ sizes^b, by least squares over the logarithms; None where a value is nothing."""
    if len(sizes) < 2 or any(not v or v <= 0 for v in values):
        return None
    x, y = [math.log(s) for s in sizes], [math.log(v) for v in values]
    mx, my = statistics.mean(x), statistics.mean(y)
    return sum((a - mx) * (b - my) for a, b in zip(x, y)) / sum((a - mx)**2 for a in x)


def evictions(calls, status=None):
    return [c for c in calls if c.is_eviction and (status is None or c.status == status)]


__all__ = [
    "Bed", "CLIENTS", "COORDINATOR", "Gone", "HELD", "KUBELET", "Limit", "MOST", "Meter", "calls_by_kind", "evictions", "exponent", "median"
]
