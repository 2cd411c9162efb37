# SPDX-License-Identifier: Apache-2.0
"""The daemons on a real control plane, beside the API server's own limit and `kubectl drain`."""

import contextlib
import statistics
import time

import account
from cases_cluster import _status_raises
from cases_launch import Replaced
from cases_node import Interruption, is_cordon
from clusterbed import (CLIENTS, COORDINATOR, HELD, KUBELET, MOST, Bed, Gone, Limit, Meter, calls_by_kind, evictions,
                        exponent, median)
from world import FINALIZER, PDBS

HOLD_SEC = 60
WORKLOAD = 20  # pods of one workload, where each has its PDB
POLL_SEC = 2  # the agent's, as shipped
LB_WAIT_SEC = 10
METER_SEC = 0.25  # of a crowd: each look costs the machine a millisecond


def bed(ctx):
    return ctx.shared("cluster", Bed)


def _calls(ctx, title, calls, per):
    kinds = calls_by_kind(calls)
    ctx.table(title, ("call", "number", f"per {per[0]}"), [(k, n, n / per[1]) for k, n in kinds.items()])
    return kinds


def _growth(ctx, what, sizes, columns):
    """Exponents of growth over the sizes; what grows faster than linearly is marked."""
    rows = []
    for name, values in columns.items():
        b = exponent(sizes, values)
        word = "-" if b is None else "faster than linearly" if b > 1.1 else "no faster than linearly"
        rows.append((name, b, word))
    ctx.table(f"growth with {what}, {' -> '.join(map(str, sizes))}: cost ~ size ^ exponent",
              ("cost", "exponent", ""), rows)
    return {name: b for name, b, _ in rows}


COST = ("CPU s", "switches", "RSS kB", "anonymous kB")


def _cost(meters):
    """The columns of COST: medians of what was spent, the most of memory."""
    return (median(m.spent.cpu for m in meters), median(m.spent.voluntary + m.spent.involuntary for m in meters),
            max(m.peak.rss_kb for m in meters), max(m.peak.anonymous_kb for m in meters))


def _cost_figures(meters):
    return dict(zip(("cpu_seconds", "switches", "rss_kb", "anonymous_kb"), _cost(meters)))


# -- the agent


class _Interrupted:
    """Several interruptions of a node with so many pods."""
    def __init__(self, ctx, pods, runs):
        self.runs, self.meters = [], []
        for i in range(runs):
            meters = []
            # The shipped poll, in place of the second that e2e takes; notices spread over it.
            run = Interruption(bed(ctx), pods, lambda pid, m=meters: m.append(Meter(pid)) or m[-1],
                               after_sec=POLL_SEC * (i + 0.5) / runs, poll_sec=POLL_SEC)
            self.runs.append(run)
            self.meters += meters
            bed(ctx).clean()

    def of(self, value):
        return median(value(r) for r in self.runs)

    @property
    def cpu(self):
        return median(m.spent.cpu for m in self.meters)

    @property
    def switches(self):
        return median(m.spent.voluntary + m.spent.involuntary for m in self.meters)

    def row(self):
        return (self.runs[0].pods, self.of(lambda r: r.cordon[0].answered - r.visible),
                self.of(lambda r: int(r.cordoned["cordon_delay_usec"]) / 1000),
                self.of(lambda r: r.last_eviction), self.cpu, self.switches,
                max(m.peak.rss_kb for m in self.meters), max(m.peak.anonymous_kb for m in self.meters),
                max(m.peak.pss_kb for m in self.meters), self.of(lambda r: len(r.calls)))


def interrupted_node(ctx):
    sizes = (10, 30, 100)
    seen = {n: _Interrupted(ctx, n, ctx.runs) for n in sizes}
    ctx.table(
        f"one node interrupted, agent alone, PollSec={POLL_SEC}s (medians; memory is the most of all runs)",
        ("pods", "notice -> cordon s", "reply -> cordon leaves ms", "cordon -> last eviction s", "CPU s",
         "switches", "RSS kB", "anonymous kB", "Pss kB", "calls"), [s.row() for s in seen.values()])
    kinds = _calls(ctx, "calls of the agent for 100 pods, first run", seen[100].runs[0].calls, ("pod", 100))
    growth = _growth(ctx, "pods on the node", sizes, {
        "cordon -> last eviction": [seen[n].of(lambda r: r.last_eviction) for n in sizes],
        "CPU": [seen[n].cpu for n in sizes], "calls": [seen[n].of(lambda r: len(r.calls)) for n in sizes]
    })
    ctx.figure("agent: notice visible -> node cordoned, polls every 2 s, mean of all runs, spread over the poll",
               f"{statistics.mean(r.cordon[0].answered - r.visible for s in seen.values() for r in s.runs):.2f} s")
    ctx.bar("agent: metadata's answer -> cordon patch leaves",
            median(int(r.cordoned["cordon_delay_usec"]) / 1000 for s in seen.values() for r in s.runs), 20, "ms")
    ctx.bar("agent: cordon -> last of 30 evictions answered", seen[30].of(lambda r: r.last_eviction), 0.25, "s")
    ctx.figure("agent: cordon -> last of 100 evictions answered",
               f"{seen[100].of(lambda r: r.last_eviction):.2f} s")
    ctx.bar("agent, draining 100 pods: anonymous memory", max(m.peak.anonymous_kb for m in seen[100].meters),
            4 * 1024, "kB")
    ctx.bar("agent, draining 100 pods: Pss", max(m.peak.pss_kb for m in seen[100].meters), 12 * 1024, "kB")
    ctx.json("interrupted-node", {
        "pods": {str(n): {
            "cordon_seconds": [r.cordon[0].answered - r.visible for r in s.runs],
            "last_eviction_seconds": [r.last_eviction for r in s.runs],
            "cpu_seconds": [m.spent.cpu for m in s.meters], "rss_kb": [m.peak.rss_kb for m in s.meters],
            "anonymous_kb": [m.peak.anonymous_kb for m in s.meters], "calls": [len(r.calls) for r in s.runs]
        } for n, s in seen.items()}, "calls_100": kinds, "growth": growth
    })


# -- the agent and the coordinator


SUCCESSOR_PODS = 10


def _answered_notice(b, on_interruption):
    """One interruption. Seconds from the metadata's answer until the cordon has come to the API server, and until the command of
    provider exec runs with "launch" (None: it never does)."""
    r = Replaced(b, "bench", onInterruption=on_interruption)
    with contextlib.ExitStack() as stack:
        stack.enter_context(r.coordinators())
        b.fill([r.node], SUCCESSOR_PODS, r.pool)
        mark = b.audit.mark()
        r.interrupt(stack)
        delay = int(r.agent.wait_line("NODE_CORDONED")["cordon_delay_usec"]) / 1e6
        r.wait_old_gone()
        cordon = next(c for c in b.calls(mark, f"system:node:{r.node}") if is_cordon(c))
        launches = r.machines.calls("launch")
    b.clean()
    answered = cordon.received - delay
    return cordon.received - answered, launches[0]["time"] - answered if launches else None


def successor(ctx):
    seen = {"None": [], "Replace": []}
    for _ in range(ctx.light_runs):
        for on_interruption, runs in seen.items():
            runs.append(_answered_notice(bed(ctx), on_interruption))
    cordons = {name: [cordon for cordon, _ in runs] for name, runs in seen.items()}
    launches = [launch for _, launch in seen["Replace"]]
    assert None not in launches and not any(launch for _, launch in seen["None"]), seen
    ctx.table(f"one node of {SUCCESSOR_PODS} pods interrupted, from the metadata's answer, ms",
              ("onInterruption", "until", "runs", "median", "most"),
              [(name, what, len(values), statistics.median(values) * 1000, max(values) * 1000)
               for name, what, values in (*((n, "the cordon is at the API server", c) for n, c in cordons.items()),
                                          ("Replace", "the command runs with launch", launches))])
    ctx.bar("a notice answered -> launch requested, the slowest run", max(launches), 1, "s")
    ctx.figure("... median; the cordon with and without a successor, medians",
               f"{statistics.median(launches) * 1000:.0f} ms; " +
               ", ".join(f"{statistics.median(cordons[n]) * 1000:.1f} ms" for n in ("Replace", "None")))
    ctx.json("successor", {"launch_seconds": launches, "cordon_seconds": cordons})


def load_balancer_wait(ctx):
    """The one benchmark with LB_WAIT on: the coordinator's, since a spot notice never leaves the agent the five
    minutes from which on it waits."""
    run = _Deleted(ctx, 1, 30, **{"Drain.LoadBalancerWaitSec": f"{LB_WAIT_SEC}s"})
    waited, took = run.first_eviction - run.cordoned, run.last_eviction - run.first_eviction
    ctx.table(f"one node of 30 pods deleted, LoadBalancerWaitSec={LB_WAIT_SEC}s",
              ("DELETE -> cordoned s", "cordon -> first eviction s", "first -> last eviction s", "calls", *COST),
              [(run.cordoned, waited, took, len(run.calls), *_cost([run.meter]))])
    ctx.bar(f"LB_WAIT of {LB_WAIT_SEC} s on: cordon -> first eviction", waited, LB_WAIT_SEC + 0.25, "s")
    ctx.figure(f"LB_WAIT of {LB_WAIT_SEC} s on: first -> last of 30 evictions", f"{took:.2f} s")
    assert waited >= LB_WAIT_SEC - 0.05, f"the first eviction left {waited:.2f} s after the cordon"
    kinds = _calls(ctx, "calls of the coordinator", run.calls, ("pod", run.pods))
    ctx.json("load-balancer-wait", {"first_eviction_seconds": waited, "drain_seconds": took, "calls": kinds,
                                    **_cost_figures([run.meter])})


# -- the coordinator


def _twice_without_reason(calls, leader):
    """Pods whose eviction was sent again though the one before was obeyed, or with no word in the log."""
    named = {line.get("pod") for line in leader.named("POD_EVICTION_BLOCKED")}
    bad, last = [], {}
    for call in evictions(calls):
        before = last.get(call.name)
        if before and (before.status == 201 or f"default/{call.name}" not in named):
            bad.append(f"{call.name}: {before.status}, then {call.status}")
        last[call.name] = call
    return bad


def _takes_finalizer_off(call):
    """The last act on a Node: it is gone when that is answered."""
    finalizers = call.body.get("metadata", {}).get("finalizers", [FINALIZER])
    return (call.verb, call.resource, call.status) == ("patch", "nodes", 200) and FINALIZER not in (finalizers or [])


def _takes_pod_off(call):
    return (call.user, call.verb, call.resource, call.status) == (KUBELET, "delete", "pods", 200)


class _Deleted:
    """Nodes with pods, deleted at once: what one coordinator needs from the first DELETE on."""
    def __init__(self, ctx, nodes, per_node, budgets=False, **settings):
        b = bed(ctx)
        pool = b.pool(b.unique("bench"))
        self.pods = nodes * per_node
        with b.leader(**settings) as leader:
            names = b.nodes(nodes, pool)
            b.wait_all_adopted(names, 120)
            b.fill(names, per_node, pool, WORKLOAD if budgets else None)
            if budgets:
                b.generous_budgets(pool, -(-self.pods // WORKLOAD))
            b.quiet([leader.pid])
            self._measure(b, names, leader)
        b.clean()

    def _measure(self, b, names, leader):
        self.loop_ms = account.loop_ms()
        mark = b.audit.mark()
        with Meter(leader.pid, METER_SEC if self.pods > 100 else 0.1) as meter, b.shares(leader) as shares:
            deleted = b.delete_nodes(names)
            begin = deleted["began"]
            b.wait_nodes_gone(names)
            b.quiet([leader.pid])
        time.sleep(0.2)
        self.meter = meter
        everybody = b.audit.since(mark)
        self.calls = [c for c in everybody if c.user == COORDINATOR and c.resource != "leases"]
        sent = evictions(self.calls)
        obeyed = evictions(self.calls, 201)
        assert len({c.name for c in obeyed}) == self.pods, \
            f"{len({c.name for c in obeyed})} of {self.pods} pods were evicted"
        self.cordoned = min(c.answered for c in self.calls if c.verb == "patch" and c.resource == "nodes") - begin
        self.first_eviction = min(c.received for c in sent) - begin
        self.last_eviction = max(c.answered for c in obeyed) - begin
        self.last_pod_gone = max(c.answered for c in everybody if _takes_pod_off(c)) - begin
        self.last_gone = max(c.answered for c in self.calls if _takes_finalizer_off(c)) - begin
        self.shares = shares.between(begin, begin + self.last_eviction,
                                     **{"the client that deletes": deleted["cpu_seconds"]})
        self.latency = median(c.answered - c.received for c in obeyed)
        self.sent, self.refused = len(sent), len(evictions(self.calls, 429))
        self.twice = _twice_without_reason(self.calls, leader)
        assert leader.alive(), leader.tail()


def _measure_limit(b, limit, clients, nodes, per_node, budgets=False):
    """Adds what those bare clients need for such pods; no daemon of ours runs meanwhile."""
    names = b.nodes(nodes, b.unique("limit"))
    for client in clients:
        prefix = b.unique("bare")
        pods = b.fill(names, per_node, prefix, WORKLOAD if budgets else None)
        if budgets:
            b.generous_budgets(prefix, -(-len(pods) // WORKLOAD))
        b.quiet()
        loop_ms = account.loop_ms()
        with b.shares() as shares:
            result = b.bare(client, pods) | {"loop_ms": loop_ms}
        limit.add(client, result, shares.between(result["began"], result["began"] + result["seconds"],
                                                 **{"the client that evicts": result["cpu_seconds"]}))
        b.cluster.wait_no_pods(timeout=120)
        if budgets:
            b.remove_budgets()
    b.remove_nodes(names)


def _row(title, runs, limit):
    last = median(r.last_eviction for r in runs)
    return (title, len(runs), median(r.first_eviction for r in runs), last, last / limit.best if limit else None,
            median(r.last_pod_gone for r in runs), median(r.last_gone for r in runs),
            median(r.latency * 1000 for r in runs),
            median(r.meter.spent.cpu for r in runs),
            median(r.meter.spent.voluntary + r.meter.spent.involuntary for r in runs),
            max(r.meter.peak.rss_kb for r in runs), max(r.meter.peak.anonymous_kb for r in runs),
            median(len(r.calls) for r in runs), max(r.sent - r.pods for r in runs), max(r.refused for r in runs),
            median(r.loop_ms for r in runs))


HEADER = ("nodes x pods", "runs", "first eviction s", "last eviction s", "/ limit", "last pod gone s",
          "last node gone s", "one eviction ms", "CPU s", "switches", "RSS kB", "anonymous kB", "calls", "evictions too many", "refused",
          "a loop before it ms")


def _figures(r):
    return {"first_eviction_seconds": r.first_eviction, "last_eviction_seconds": r.last_eviction,
            "last_pod_gone_seconds": r.last_pod_gone, "last_gone_seconds": r.last_gone, "cpu_seconds": r.meter.spent.cpu, "rss_kb": r.meter.peak.rss_kb,
            "anonymous_kb": r.meter.peak.anonymous_kb,
            "switches": r.meter.spent.voluntary + r.meter.spent.involuntary, "evictions": r.sent, "refused": r.refused,
            "calls": len(r.calls), "loop_ms": r.loop_ms}


def _twice_bar(ctx, what, runs):
    for line in [t for r in runs for t in r.twice][:5]:
        print(f"        evicted twice: {line}")
    ctx.bar(f"{what}: evictions sent twice without a reason", sum(len(r.twice) for r in runs), 0, "pods")


DRAIN_COST = ("s", "CPU s", "RSS kB", "anonymous kB")


def _drain_cost(drained):
    return tuple(drained[k] for k in ("seconds", "cpu_seconds", "rss_kb", "anonymous_kb"))


def ctl_drain(ctx):
    """vesperctl drain of a node with 100 pods; bare clients and kubectl drain beside it."""
    b, limit, runs, pods = bed(ctx), Limit(100), [], 100
    for _ in range(ctx.light_runs):
        _measure_limit(b, limit, CLIENTS, 1, pods)
        name = b.unique("ctl")
        node = b.nodes(1, name)[0]
        b.fill([node], pods, name)
        b.quiet()
        mark = b.audit.mark()
        drained = b.vesperctl_drain(node)
        time.sleep(0.2)
        calls = evictions(b.audit.since(mark))
        cordoned = next(c.answered for c in b.audit.since(mark) if c.verb == "patch" and c.resource == "nodes" and c.name == node)
        assert len({c.name for c in calls if c.status == 201}) == pods, f"{len(calls)} evictions"
        runs.append(drained | {"cordoned": cordoned - drained["began"], "first": min(c.received for c in calls) - drained["began"],
                               "last": max(c.answered for c in calls) - drained["began"],
                               "too_many": len(calls) - pods})
        b.clean()
    node = b.nodes(1, b.unique("kubectl"))[0]
    b.fill([node], pods, b.unique("kubectl"))
    b.quiet()
    kubectl = b.kubectl_drain(node)
    b.clean()

    last, alone = median(r["last"] for r in runs), median(r["last"] - r["cordoned"] for r in runs)
    ctx.table("the API server's own limit for 100 pods", Limit.HEADER, limit.rows())
    ctx.table("drains of 100 pods by a person", ("by", "cordoned s", "first eviction s", "last eviction s", *DRAIN_COST),
              [("vesperctl", r["cordoned"], r["first"], r["last"], *_drain_cost(r)) for r in runs] +
              [("kubectl", None, None, None, *_drain_cost(kubectl))])
    # The bare client's connections are open when its time begins.
    ctx.bar("100 pods, vesperctl drain: cordon -> last eviction answered, beside the limit", alone / limit.best, 1.2, "x")
    ctx.bar("evictions sent twice", sum(r["too_many"] for r in runs), 0, "pods")
    ctx.figure("the same", f"{alone:.2f} s, from the start of the process {last:.2f} s; ended after "
                           f"{median(r['seconds'] for r in runs):.2f} s; the limit {limit.best:.2f} s "
                           f"({limit.client}); kubectl drain {kubectl['seconds']:.1f} s")
    ctx.json("ctl-drain", {"limit": {c: [r["seconds"] for r in rs] for c, rs in limit.runs.items()}, "runs": runs,
                           "kubectl": kubectl})


def central_drain(ctx):
    """One node deleted; 10, 30 and 100 pods."""
    b, limit, seen = bed(ctx), Limit(100), {}
    for _ in range(ctx.light_runs):
        _measure_limit(b, limit, CLIENTS, 1, 100)
        seen.setdefault(100, []).append(_Deleted(ctx, 1, 100))
    for pods in (10, 30):
        seen[pods] = [_Deleted(ctx, 1, pods) for _ in range(ctx.runs)]
    node = b.nodes(1, b.unique("kubectl"))[0]
    b.fill([node], 100, b.unique("kubectl"))
    b.quiet()
    kubectl = b.kubectl_drain(node)
    b.clean()

    runs, sizes = seen[100], (10, 30, 100)
    ctx.table("the API server's own limit for 100 pods", Limit.HEADER, limit.rows())
    ctx.table("one node deleted, coordinator (medians; memory is the most of all runs)", HEADER,
              [_row(f"1 x {n}", seen[n], limit if n == 100 else None) for n in sizes])
    ctx.table("kubectl drain, 100 pods", DRAIN_COST, [_drain_cost(kubectl)])
    kinds = _calls(ctx, "calls of the coordinator for 100 pods, first run", runs[0].calls, ("pod", 100))
    growth = _growth(ctx, "pods on the node", sizes, {
        "last eviction": [median(r.last_eviction for r in seen[n]) for n in sizes],
        "CPU": [median(r.meter.spent.cpu for r in seen[n]) for n in sizes],
        "calls": [median(len(r.calls) for r in seen[n]) for n in sizes]
    })
    last = median(r.last_eviction for r in runs)
    ctx.bar("100 pods of one deleted node: DELETE -> last eviction answered, beside the limit", last / limit.best,
            1.2, "x")
    ctx.figure("the same", f"{last:.2f} s; the limit {limit.best:.2f} s ({limit.client})")
    ctx.figure("kubectl drain, 100 pods", f"{kubectl['seconds']:.1f} s, RSS {kubectl['rss_kb'] // 1024} MB")
    _twice_bar(ctx, "100 pods of one deleted node", runs)
    ctx.json("central-drain", {
        "limit": {c: [r["seconds"] for r in rs] for c, rs in limit.runs.items()},
        "pods": {str(n): [_figures(r) for r in rs] for n, rs in seen.items()}, "calls_100": kinds,
        "kubectl": kubectl, "growth": growth
    })


def _shares(ctx, title, limit, run):
    """CPU seconds of both, beside each other: what is not the limit's."""
    bare = limit.shares[limit.client]
    names = sorted(bare.keys() | run.shares.keys(), key=lambda n: -run.shares.get(n, 0))
    rows = [(n, bare.get(n, 0), run.shares.get(n, 0), run.shares.get(n, 0) - bare.get(n, 0)) for n in names]
    rows.append(("all", *(sum(r[i] for r in rows) for i in (1, 2, 3))))
    ctx.table(title, ("CPU s", "the limit", "ours", "more"), rows)


PAIRS = 5
LAST_RATIO, CPU_RATIO, GONE_RATIO = 1.4, 2, 1.3


def _many(ctx, nodes, per_node, name, more=None):
    """Beside a bare client that is held to our window, and the fastest that is not; once more with a PDB per workload.
    more(runs without PDBs): what else there is to tell, and to add to the JSON line."""
    b, title, pods = bed(ctx), f"{nodes} x {per_node}", nodes * per_node
    trial, limit, fastest, limited, runs = Limit(pods), Limit(pods), Limit(pods), Limit(pods), []
    # The best of them by its median, and once more beside each of ours: the best of all tries would be its luck along
    # with it, and the first try of all meets a server that has just begun.
    for _ in range(ctx.runs):
        _measure_limit(b, trial, HELD, nodes, per_node)
    for i in range(max(ctx.runs, PAIRS) if ctx.runs > 1 else 1):
        _measure_limit(b, limit, [trial.client], nodes, per_node)
        runs.append(_Deleted(ctx, nodes, per_node))
        if i < ctx.runs:
            _measure_limit(b, fastest, [MOST], nodes, per_node)
    _measure_limit(b, limited, [limit.client], nodes, per_node, budgets=True)
    budgets = _Deleted(ctx, nodes, per_node, budgets=True)

    ctx.table(f"bare clients for {pods} pods with as many calls under way as ours, which of them is the best",
              Limit.HEADER, trial.rows())
    ctx.table(f"the best of them for {pods} pods, beside each run of ours", Limit.HEADER, limit.rows())
    ctx.table("... with many more under way", Limit.HEADER, fastest.rows())
    ctx.table(f"... with a PDB per {WORKLOAD} pods", Limit.HEADER, limited.rows())
    ctx.table("nodes deleted at once, coordinator (medians; memory is the most of all runs)", HEADER,
              [_row(title, runs, limit), _row(f"{title}, PDBs", [budgets], limited)])
    _shares(ctx, f"who had the processors, {title}: until the last eviction was answered, last run", limit, runs[-1])
    kinds = _calls(ctx, f"calls of the coordinator for {title}, first run", runs[0].calls, ("node", nodes))
    last = median(r.last_eviction for r in runs)
    ctx.bar(f"{title} pods deleted at once: first DELETE -> last eviction answered, beside a bare client held to 160",
            last / limit.best, LAST_RATIO, "x")
    ctx.figure("the same", f"{last:.2f} s, last pod gone {median(r.last_pod_gone for r in runs):.2f} s, last node gone "
               f"{median(r.last_gone for r in runs):.2f} s; the bare client {limit.best:.2f} s ({limit.client}), with 400 "
               f"under way {fastest.best:.2f} s ({fastest.client})")
    ctx.bar(f"{title} pods deleted at once: CPU beside that client's, pair by pair",
            median(r.meter.spent.cpu / c for r, c in zip(runs, limit.cpu_seconds(limit.client))), CPU_RATIO, "x")
    ctx.bar(f"{title} pods deleted at once: last node gone, beside the last eviction",
            median(r.last_gone / r.last_eviction for r in runs), GONE_RATIO, "x")
    ctx.figure(f"the same with a PDB per {WORKLOAD} pods, which are evicted one by one",
               f"{budgets.last_eviction:.2f} s; the bare client {limited.best:.2f} s")
    _twice_bar(ctx, title, runs + [budgets])
    ctx.json(name, {
        "trial": {c: [r["seconds"] for r in rs] for c, rs in trial.runs.items()},
        "limit": {c: [r["seconds"] for r in rs] for c, rs in limit.runs.items()},
        "limit_cpu_seconds": {c: limit.cpu_seconds(c) for c in limit.runs},
        "fastest": {c: [r["seconds"] for r in rs] for c, rs in fastest.runs.items()},
        "limit_loop_ms": {c: [r["loop_ms"] for r in rs] for c, rs in limit.runs.items()},
        "limit_pdbs": {c: [r["seconds"] for r in rs] for c, rs in limited.runs.items()},
        "runs": [_figures(r) for r in runs], "pdbs": _figures(budgets), "calls": kinds, **(more(runs) if more else {})
    })


def nodes_50(ctx):
    _many(ctx, 50, 20, "nodes-50x20")


def nodes_200(ctx):
    _many(ctx, 200, 15, "nodes-200x15", lambda runs: _nodes_growth(ctx, runs))


def _nodes_growth(ctx, runs):
    ctx.figure("200 x 15: CPU of the coordinator", f"{median(r.meter.spent.cpu for r in runs):.2f} s")
    ctx.bar("200 x 15: anonymous memory of the coordinator",
            max(r.meter.peak.anonymous_kb for r in runs) / 1024, 15, "MB")
    # The smaller ones twice: they are there for the exponents alone.
    seen = {n: [_Deleted(ctx, n, 15) for _ in range(min(ctx.runs, 2))] for n in (10, 50)} | {200: runs}
    sizes = (10, 50, 200)
    ctx.table("nodes x 15 pods deleted at once", HEADER, [_row(f"{n} x 15", seen[n], None) for n in sizes])
    growth = _growth(ctx, "nodes x 15 pods", sizes, {
        "last eviction": [median(r.last_eviction for r in seen[n]) for n in sizes],
        "last node gone": [median(r.last_gone for r in seen[n]) for n in sizes],
        "CPU": [median(r.meter.spent.cpu for r in seen[n]) for n in sizes],
        "calls": [median(len(r.calls) for r in seen[n]) for n in sizes]
    })
    return {"growth": growth, "smaller": {str(n): [_figures(r) for r in seen[n]] for n in (10, 50)}}


BURST_NODES = 500


def burst(ctx):
    """500 nodes deleted at once, with 1 and with 5 pods each; beside a bare client with as many calls under way."""
    b, rows = bed(ctx), []
    for per_node in (1, 5):
        limit = Limit(BURST_NODES * per_node)
        _measure_limit(b, limit, ["HTTP/2 2 x 80"], BURST_NODES, per_node)
        # As shipped, 200 machines end at once, and then one each second.
        run = _Deleted(ctx, BURST_NODES, per_node, **{"Provider.TerminationsBurst": BURST_NODES})
        rows.append((f"{BURST_NODES} x {per_node}", run.last_eviction, limit.best, run.last_eviction / limit.best, run.last_gone,
                     run.sent / run.pods))
        ctx.bar(f"{BURST_NODES} x {per_node} pods: evictions sent per pod", run.sent / run.pods, 1, "")
        _twice_bar(ctx, f"{BURST_NODES} x {per_node} pods", [run])
    header = ("nodes x pods", "last eviction s", "bare client s", "/ bare client", "last node gone s", "evictions per pod")
    ctx.table("nodes deleted at once", header, rows)
    ctx.json("burst", {row[0]: dict(zip(header[1:], row[1:])) for row in rows})


def budget_blocked(ctx):
    """200 pods behind one PDB that allows none for a minute, as one more of its pods has no place; then it allows all."""
    b, pods = bed(ctx), 200
    pool = b.pool(b.unique("held"))
    with b.leader() as leader:
        names = b.nodes(1, pool)
        b.wait_all_adopted(names)
        b.fill(names, pods, pool)

        def displace(pod):
            pod["metadata"]["labels"]["app"] = pool
            pod["spec"]["nodeSelector"] = {"bench": "nowhere"}

        b.cluster.create_pods(None, 1, prefix=f"{pool}-displaced", change=displace)
        b.budget(pool, pool, pods)
        b.cluster.wait_for(lambda: (lambda s: (s["currentHealthy"], s["expectedPods"]))(b.admin.get(f"{PDBS}/{pool}")["status"]) == (pods, pods + 1), 20,
                           "all pods are counted by the PDB")
        b.quiet([leader.pid])
        mark, gone, deleted = b.audit.mark(), Gone(b.admin, names), time.monotonic()
        b.remove_nodes(names)
        b.cluster.wait_for(lambda: any(r["reason"] == "BlockedByPDB" for c in b.claims(names[0]) for r in c["status"].get("blockers", [])),
                           what="the NodeClaim names the PDB", interval=0.01)
        told = time.monotonic() - deleted
        leader.wait_line("POD_EVICTION_BLOCKED", node=names[0])
        with Meter(leader.pid, 0.5) as held:
            time.sleep(HOLD_SEC)
        asked = evictions(b.audit.since(mark, COORDINATOR))
        mark = b.audit.mark()
        with Meter(leader.pid) as freed:
            b.admin.patch(f"{PDBS}/{pool}", {"spec": {"minAvailable": 0}})
            gone.wait()
        time.sleep(0.2)
        calls = b.audit.since(mark)
    b.clean()
    raised = _status_raises(calls, pool)[0].answered
    sent = evictions([c for c in calls if c.user == COORDINATOR])
    delay = (min(c.received for c in sent) - raised) * 1000
    last = max(c.answered for c in sent) - raised
    ctx.table(f"{pods} pods behind a PDB that allows none for {HOLD_SEC} s, then all",
              ("eviction calls held", "CPU held s", "allowed -> next eviction ms", "-> last of them s",
               "refused", *(f"{c} freed" for c in COST)),
              [(len(asked), held.spent.cpu, delay, last, len(evictions(sent, 429)), *_cost([freed]))])
    kinds = _calls(ctx, "calls of the coordinator from then on",
                   [c for c in calls if c.user == COORDINATOR and c.resource != "leases"], ("pod", pods))
    ctx.bar(f"{pods} pods behind a PDB that allows none: DELETE -> the NodeClaim names it", told, 1, "s")
    ctx.bar(f"{pods} pods behind a PDB that allows none, {HOLD_SEC} s: eviction calls", len(asked), 0, "calls")
    ctx.bar("that PDB gives way -> next eviction arrives", delay, 50, "ms")
    ctx.figure("... -> last of 200, one by one", f"{last:.1f} s")
    ctx.json("budget-blocked", {"told_seconds": told, "calls_held": len(asked), "cpu_held_seconds": held.spent.cpu, "delay_ms": delay,
                                "last_seconds": last, "cpu_freed_seconds": freed.spent.cpu, "calls": kinds,
                                "rss_kb": freed.peak.rss_kb, "anonymous_kb": freed.peak.anonymous_kb})


def empty_node(ctx):
    b = bed(ctx)
    pool, took = b.pool(b.unique("empty")), []
    with b.leader() as leader:
        names = b.nodes(ctx.light_runs, pool)
        b.wait_all_adopted(names)
        mark = b.audit.mark()
        with Meter(leader.pid) as meter:
            for name in names:
                b.quiet([leader.pid], patience=5)
                gone, begin = Gone(b.admin, [name]), time.time()
                b.remove_nodes([name])
                took.append(gone.wait() - begin)
            b.quiet([leader.pid], patience=5)
        calls = [c for c in b.audit.since(mark, COORDINATOR) if c.resource != "leases"]
    b.clean()
    ctx.table(f"{len(names)} empty nodes, one after the other", ("DELETE -> gone s, each", *COST),
              [(" ".join(f"{t:.3f}" for t in took), *_cost([meter]))])
    _calls(ctx, f"calls of the coordinator for {len(names)} empty nodes", calls, ("node", len(names)))
    ctx.bar("an empty node, machine ends at once: DELETE -> gone", median(took), 0.3, "s")
    ctx.json("empty-node", {"seconds": took, "calls": calls_by_kind(calls), **_cost_figures([meter])})


def takeover(ctx):
    """The leader dies by SIGKILL with a node in its hands."""
    b, leads, acts, meters = bed(ctx), [], [], []
    for _ in range(ctx.runs):
        pool = b.pool(b.unique("lead"))
        with b.coordinators(2, provider="exec") as (leader, standby):
            names = b.nodes(1, pool)
            b.wait_all_adopted(names)
            b.fill(names, 5, pool)
            leader.kill()
            killed, mark = time.time(), b.audit.mark()
            gone = Gone(b.admin, names)
            with Meter(standby.pid) as meter:
                b.remove_nodes(names)
                leads.append(standby.wait_line("LEASE_ACQUIRED", 60).time - killed)
                gone.wait()
                time.sleep(0.2)
            meters.append(meter)
            calls = [c for c in b.audit.since(mark, COORDINATOR) if c.is_write and c.resource != "leases"]
            acts.append(calls[0].received - killed)
        b.clean()
    ctx.table("SIGKILL of the leader (LeaseDuration 15 s, retries every 2 s)",
              ("run", "-> the other leads s", "-> its first write s", "in between ms", *COST),
              [(i + 1, lead, act, (act - lead) * 1000, *_cost([m]))
               for i, (lead, act, m) in enumerate(zip(leads, acts, meters))])
    kinds = _calls(ctx, "writes of the other, last run", calls, ("node", 1))
    ctx.bar("leader killed -> first act of the other, worst", max(acts), 15 + 2 * 4.4, "s")
    ctx.bar("lease taken -> first act, median", median(a - l for a, l in zip(acts, leads)) * 1000, 50, "ms")
    ctx.json("takeover", {"leads_seconds": leads, "first_act_seconds": acts, "calls": kinds,
                          **_cost_figures(meters)})


BENCHES = [
    ("interrupted-node", "a spot notice on a node of 10, 30, 100 pods: the agent alone", interrupted_node),
    ("successor", "a spot notice, with and without a successor: how soon the node is cordoned and a machine is launched", successor),
    ("load-balancer-wait", "a node of 30 pods is deleted with LoadBalancerWaitSec on", load_balancer_wait),
    ("empty-node", "an empty node is deleted: how soon it is gone", empty_node),
    ("central-drain", "a node of 10, 30, 100 pods is deleted; bare clients and kubectl drain beside it", central_drain),
    ("ctl-drain-100", "vesperctl drain of a node of 100 pods; bare clients and kubectl drain beside it", ctl_drain),
    ("nodes-50x20", "50 nodes of 20 pods deleted at once, without and with PDBs; bare clients", nodes_50),
    ("nodes-200x15", "200 nodes of 15 pods deleted at once, without and with PDBs; 10 and 50", nodes_200),
    ("nodes-500", "500 nodes of 1 and of 5 pods deleted at once; a bare client", burst),
    ("budget-blocked", "200 pods behind a PDB that allows none for 60 s, then all", budget_blocked),
    ("takeover", "the leader is killed: how soon the other acts", takeover),
]
