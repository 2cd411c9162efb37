# SPDX-License-Identifier: Apache-2.0
"""How much of the machine's processors a test is given while others want them, too."""

import os
import statistics
import subprocess
import sys

from daemons import procs

_CPU = 0.1
_COUNT = f"""
import time
begin, used = time.monotonic(), time.process_time()
while time.process_time() - used < {_CPU}:
    pass
print((time.monotonic() - begin) / {_CPU})
"""


def shared():
    """1 where the processors are ours alone; 3 where a process that only computes gets a third of one. Each
    processor has such a process for a moment; for use while nothing of ours is at work."""
    counters = [
        procs.spawn([sys.executable, "-I", "-S", "-c", _COUNT], stdout=subprocess.PIPE, text=True)
        for _ in os.sched_getaffinity(0)
    ]
    return max(1.0, statistics.mean(float(c.communicate()[0]) for c in counters))
