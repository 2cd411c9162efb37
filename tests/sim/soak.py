#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random worlds for as long as wanted, in two processes; one line for each range of seeds in a log, from which it goes
on the next time. A seed that shows a violation is told by a line of its own, and does not stop it. All kinds of worlds
take turns: a range of the usual ones, then one of sim-random --reboots, --events, --notices, --queue, --repairs and --launches, each with
its own count of seeds.

    tests/sim/soak.py SIM-RANDOM LOG SECONDS [FROM_SEED]      FROM_SEED: where all of them begin
"""

import re
import subprocess
import sys
import time

JOBS = 2
RANGE = 200  # seeds of one line
# The worlds, and how their lines in the log begin.
KINDS = (([], ""), *(([f"--{kind}"], f"{kind}, ") for kind in ("reboots", "events", "notices", "queue", "repairs", "launches")))
LAST = re.compile(rf"^({'|'.join(label for _, label in KINDS[1:])})?seeds (\d+)\.\.(\d+):", re.MULTILINE)
PART = re.compile(
    r"(\d+) worlds, (\d+) violations, ([\d.]+) virtual hours, (\d+) steps, (\d+) requests, (\d+) evictions,"
)


def resume(text):
    """Of the log's text, the next seed of each kind, behind its last range (the first of all is 1), and the place in
    KINDS of whose turn it is."""
    seeds, turn = [1] * len(KINDS), 0
    for m in LAST.finditer(text):
        kind = [label for _, label in KINDS].index(m.group(1) or "")
        seeds[kind], turn = int(m.group(3)) + 1, (kind + 1) % len(KINDS)
    return seeds, turn


def read(log):
    try:
        with open(log, encoding="utf-8") as f:
            return f.read()
    except FileNotFoundError:
        return ""


def play(program, kind, first, count):
    """Each process takes each JOBS-th seed. The sums, and the lines about violations."""
    worlds, label = KINDS[kind]
    started = time.monotonic()
    jobs = [
        subprocess.Popen(
            [program, *worlds, "--seeds", str(first + i), str(count - i), "--stride", str(JOBS), "--go-on"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for i in range(JOBS)
    ]
    sums, found = [0] * 6, []
    for job in jobs:
        out = job.communicate()[0]
        part = PART.search(out)
        found += [label + line for line in out.splitlines() if line.startswith("seed ")]
        if not part or job.returncode not in (0, 1):
            found.append(f"{label}seed {first}..{first + count - 1}: a process ended with {job.returncode}")
            continue
        sums = [a + float(b) for a, b in zip(sums, part.groups())]
    return sums, found, time.monotonic() - started


def main():
    if len(sys.argv) not in (4, 5):
        print(__doc__, file=sys.stderr)
        return 2
    program, log, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    seeds, turn = ([int(sys.argv[4])] * len(KINDS), 0) if len(sys.argv) == 5 else resume(read(log))
    end, total = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        seed = seeds[turn]
        (worlds, violations, hours, steps, requests, evictions), found, took = play(program, turn, seed, RANGE)
        violations = max(violations, len(found))
        line = (
            f"{KINDS[turn][1]}seeds {seed}..{seed + RANGE - 1}: {worlds:.0f} worlds, {violations:.0f} violations, {hours:.1f} virtual hours, "
            f"{steps:.0f} steps, {requests:.0f} requests, {evictions:.0f} evictions, {took:.1f} s, "
            f"{worlds / took:.1f} seeds/s"
        )
        with open(log, "a", encoding="utf-8") as f:
            print("\n".join([*found, line]), file=f)
        print("\n".join([*found, line]), flush=True)
        seeds[turn], turn = seed + RANGE, (turn + 1) % len(KINDS)
        total += violations
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
