# SPDX-License-Identifier: Apache-2.0
"""What it costs to know whether nodes could go: 5,000 nodes and 150,000 pods, made up; times are of CPU, in one thread."""

import json
import os
import statistics
import subprocess

from daemons import build_directory

SHAPES = (("roomy", 65), ("full", 95))
NODES, PODS, OWNERS = 5000, 150000, 1500


def _measure(fill):
    done = subprocess.run([os.path.join(build_directory(), "tests", "simulate", "simulate-bench"), str(NODES), str(PODS), str(OWNERS), str(fill)],
                          capture_output=True, text=True, check=True, timeout=300)
    return json.loads(done.stdout)


def simulate(context):
    rows = []
    for name, fill in SHAPES:
        runs = [_measure(fill) for _ in range(context.runs)]

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


BENCHES = [("simulate", "could these nodes go: 5,000 nodes, 150,000 pods", simulate)]
