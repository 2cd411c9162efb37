#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random worlds for as long as wanted, in two processes; one line for each range of seeds in a log, from which it goes
on the next time. A seed that shows a violation is told by a line of its own, and does not stop it.

    tests/sim/soak.py SIM-RANDOM LOG SECONDS [FROM_SEED]
"""

import re
import subprocess
import sys
import time

JOBS = 2
RANGE = 200  # seeds of one line
LAST = re.compile(r"^seeds (\d+)\.\.(\d+):", re.MULTILINE)
PART = re.compile(
    r"(\d+) worlds, (\d+) violations, ([\d.]+) virtual hours, (\d+) steps, (\d+) requests, (\d+) evictions,"
)


def next_seed(log):
    """Behind the last range of the log; the first one of all is 1."""
    try:
        with open(log, encoding="utf-8") as f:
            ends = [int(m.group(2)) for m in LAST.finditer(f.read())]
    except FileNotFoundError:
        ends = []
    return ends[-1] + 1 if ends else 1


def play(program, first, count):
    """Each process takes each JOBS-th seed. The sums, and the lines about violations."""
    started = time.monotonic()
    jobs = [
        subprocess.Popen(
            [program, "--seeds", str(first + i), str(count - i), "--stride", str(JOBS), "--go-on"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for i in range(JOBS)
    ]
    sums, found = [0] * 6, []
    for job in jobs:
        out = job.communicate()[0]
        part = PART.search(out)
        found += [line for line in out.splitlines() if line.startswith("seed ")]
        if not part or job.returncode not in (0, 1):
            found.append(f"seed {first}..{first + count - 1}: a process ended with {job.returncode}")
            continue
        sums = [a + float(b) for a, b in zip(sums, part.groups())]
    return sums, found, time.monotonic() - started


def main():
    if len(sys.argv) not in (4, 5):
        print(__doc__, file=sys.stderr)
        return 2
    program, log, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    seed = int(sys.argv[4]) if len(sys.argv) == 5 else next_seed(log)
    end, total = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        (worlds, violations, hours, steps, requests, evictions), found, took = play(program, seed, RANGE)
        violations = max(violations, len(found))
        line = (
            f"seeds {seed}..{seed + RANGE - 1}: {worlds:.0f} worlds, {violations:.0f} violations, {hours:.1f} virtual hours, "
            f"{steps:.0f} steps, {requests:.0f} requests, {evictions:.0f} evictions, {took:.1f} s, "
            f"{worlds / took:.1f} seeds/s"
        )
        with open(log, "a", encoding="utf-8") as f:
            print("\n".join([*found, line]), file=f)
        print("\n".join([*found, line]), flush=True)
        seed += RANGE
        total += violations
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
