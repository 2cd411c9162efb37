# SPDX-License-Identifier: Apache-2.0
"""What it costs to know whether nodes could go, and to plan which: 5,000 nodes and 150,000 pods, made up; times are of CPU, in one thread.
And how good a plan is: how few nodes a fragmented cluster is left with."""

import json
import os
import statistics
import subprocess

from daemons import build_directory

SHAPES = (("roomy", 65), ("full", 95))
NODES, PODS, OWNERS = 5000, 150000, 1500


def _run(name, *arguments):
    done = subprocess.run([os.path.join(build_directory(), "tests", "simulate", name), *map(str, arguments)],
                          capture_output=True, text=True, check=True, timeout=300)
    return json.loads(done.stdout)


def simulate(context):
    rows = []
    for name, fill in SHAPES:
        runs = [_run("simulate-bench", NODES, PODS, OWNERS, fill) for _ in range(context.runs)]

        def middle(pick):
            return statistics.median(pick(r) for r in runs)

        singles = middle(lambda r: min(r["singlesMs"]))
        limit = middle(lambda r: r["limitMs"])
        rows.append((name, f"{fill} %", runs[0]["mayGo"], singles, limit, runs[0]["goneTogether"], middle(lambda r: r["togetherMs"]),
                     middle(lambda r: r["madeMs"]), middle(lambda r: r["changeUs"]), middle(lambda r: r["newOwnerMs"]),
                     runs[0]["snapshotMB"], runs[0]["simulatorMB"]))
        context.bar(f"{name}: every node by itself", singles, 250, "ms")
        context.bar(f"{name}: one after the other, kept", middle(lambda r: r["togetherMs"]), 1000, "ms")
        context.bar(f"{name}: a pod's change", middle(lambda r: r["changeUs"]), 50, "us")
        context.bar(f"{name}: simulator, made anew", middle(lambda r: r["madeMs"]), 1000, "ms")
        context.figure(f"{name}: every node by itself, beside one comparison of every node with every pod",
                       f"{singles / limit:.2f} x ({singles:.0f} and {limit:.0f} ms)")
    context.table(f"{NODES} nodes, {PODS} pods of {OWNERS} owners",
                  ("cluster", "CPU asked", "may go", "each ms", "limit ms", "together", "ms", "made ms", "change us", "new owner ms",
                   "snapshot MB", "simulator MB"), rows)


def plan(context):
    """Beyond reading: objects are read, and the simulator is made, which `simulate` measures."""
    rows = []
    for name, fill in SHAPES:
        for budgets in ("default", "[]"):
            runs = [_run("plan-bench", NODES, PODS, OWNERS, fill, budgets) for _ in range(context.runs)]

            def middle(pick):
                return statistics.median(pick(r) for r in runs)

            what = f"{name}, budgets {'of 10 %' if budgets == 'default' else 'none'}"
            whole = middle(lambda r: r["sceneMs"] + r["planMs"])
            rows.append((what, f"{fill} %", sum(runs[0]["gone"].values()), runs[0]["replacements"], runs[0]["moves"], whole,
                         middle(lambda r: r["jsonMs"]), middle(lambda r: r["explainMs"]), middle(lambda r: r["explainMostMs"])))
            context.bar(f"{what}: the plan", whole, 1000, "ms")
            context.bar(f"{what}: explain --simulate of one node, the slowest of five", middle(lambda r: r["explainMostMs"]), 50, "ms")
            assert len({r["digest"] for r in runs}) == 1, runs
    context.table(f"{NODES} nodes, {PODS} pods of {OWNERS} owners, three pools with every method on", (
        "cluster", "CPU asked", "nodes that go", "replacements", "moves", "plan ms", "as JSON ms", "explain ms", "most ms"), rows)


def outlook(context):
    """A round of what the coordinator says of each node by itself, beside the plan of the same cluster; nine of each pool's ten offerings
    are smaller nodes that cost less. Of the full clusters no node takes the pods of a quarter, and most offerings are tried in vain."""
    rows = []
    for fill in (65, 85, 95):
        runs = [_run("plan-bench", NODES, PODS, OWNERS, fill, "[]", 10) for _ in range(context.runs)]

        def middle(pick):
            return statistics.median(pick(r) for r in runs)

        whole, most = middle(lambda r: r["roundMs"]), middle(lambda r: r["judgeMostMs"])
        rows.append((f"{fill} %", runs[0]["consolidatable"], runs[0]["unconsolidatable"], whole, most, middle(lambda r: r["sceneMs"] + r["planMs"])))
        context.bar(f"{fill} %: every node judged once", whole, 3000, "ms")
        context.bar(f"{fill} %: the node that takes longest", most, 25, "ms")
    context.table(f"{NODES} nodes, {PODS} pods of {OWNERS} owners, three pools with every method on and ten offerings", (
        "CPU asked", "would go", "would not", "round ms", "most ms", "the plan ms"), rows)


def packing(context):
    """Each choice as one set; of a plain cluster nothing but room decides, so bin packing's lower bound is near."""
    rows = []
    for name in ("plain", "mixed"):
        runs = [_run("packing-bench", name, seed) for seed in range(1, 6)]

        def worst(key):
            return max(r[key] / r["lowerBound"] for r in runs)

        rows.extend((name, r["nodes"], r["pods"], r["lowerBound"], r["packedSet"], r["bothSet"], r["anyOrderSet"]) for r in runs)
        if name == "plain":
            context.bar("plain: nodes left beside the lower bound, by packing alone", worst("packedSet"), 1.1, "x")
            context.bar("plain: ... by packing and spreading", worst("bothSet"), 1.2, "x")
        else:
            context.figure("mixed: nodes left beside the lower bound, by packing; and spreading", f"{worst('packedSet'):.2f} x; {worst('bothSet'):.2f} x")
        context.figure(f"{name}: ... and in an adverse order, which is the verdict", f"{worst('anyOrderSet'):.2f} x")
    context.table("200 nodes of which pods ask for 35 %, each for an eighth of a node at most, and two DaemonSets: nodes that remain", (
        "cluster", "nodes", "pods", "lower bound", "packed", "and spread", "and adverse"), rows)


BENCHES = [("simulate", "could these nodes go: 5,000 nodes, 150,000 pods", simulate),
           ("plan", "which nodes would go unasked: 5,000 nodes, 150,000 pods", plan),
           ("outlook", "what the coordinator says of each node: 5,000 nodes, 150,000 pods, ten offerings", outlook),
           ("packing", "how few nodes a fragmented cluster is left with", packing)]
