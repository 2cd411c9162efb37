# SPDX-License-Identifier: Apache-2.0
"""What a process costs, read from /proc: memory, CPU seconds, context switches, threads, descriptors.

    before = account.read(pid)
    with account.Sampler(pid) as sampler:
        ...
    after = account.read(pid)
    spent = after - before        # Spent: seconds, cpu, voluntary, involuntary, growth of memory
    sampler.peak.anonymous_kb
"""

import dataclasses
import os
import re
import shutil
import signal
import subprocess
import threading
import time

_TICK = os.sysconf("SC_CLK_TCK")


@dataclasses.dataclass(frozen=True)
class Reading:
    time: float  # monotonic, seconds
    cpu: float  # seconds, user and system, of all its threads that live
    voluntary: int  # context switches: it waited
    involuntary: int  # it was made to wait
    rss_kb: int
    anonymous_kb: int
    pss_kb: int
    peak_rss_kb: int  # since its start, as the kernel knows it
    threads: int
    fds: int

    def __sub__(self, before):
        return Spent(self.time - before.time, self.cpu - before.cpu, self.voluntary - before.voluntary,
                     self.involuntary - before.involuntary, self.rss_kb - before.rss_kb,
                     self.anonymous_kb - before.anonymous_kb, self.fds - before.fds)


@dataclasses.dataclass(frozen=True)
class Spent:
    seconds: float
    cpu: float
    voluntary: int
    involuntary: int
    rss_kb: int  # growth, as are the next two
    anonymous_kb: int
    fds: int

    @property
    def percent(self):
        """Of one core."""
        return 100 * self.cpu / self.seconds if self.seconds > 0 else 0.0


@dataclasses.dataclass(frozen=True)
class Peak:
    rss_kb: int = 0
    anonymous_kb: int = 0
    pss_kb: int = 0
    fds: int = 0

    def with_reading(self, r):
        return Peak(max(self.rss_kb, r.rss_kb), max(self.anonymous_kb, r.anonymous_kb),
                    max(self.pss_kb, r.pss_kb), max(self.fds, r.fds))


def _text(path):
    with open(path, encoding="ascii", errors="replace") as f:
        return f.read()


def _field(text, name):
    found = re.search(rf"^{name}:\s+(\d+)", text, re.M)
    return int(found[1]) if found else 0


def _cpu(pid, tasks):
    """The scheduler's nanoseconds; where it keeps none, ticks of a hundredth of a second."""
    try:
        spent = sum(int(_text(f"/proc/{pid}/task/{t}/schedstat").split()[0]) for t in tasks) / 1e9
    except (FileNotFoundError, ProcessLookupError):
        spent = 0.0
    fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    ticks = (int(fields[11]) + int(fields[12])) / _TICK
    return spent if spent > 0 and ticks - spent < 0.1 else ticks  # ticks alone know of threads that ended


def read(pid):
    """Throws ProcessLookupError or FileNotFoundError if there is no such process."""
    tasks = os.listdir(f"/proc/{pid}/task")
    status = _text(f"/proc/{pid}/status")
    rollup = _text(f"/proc/{pid}/smaps_rollup")
    if not rollup:
        raise ProcessLookupError(f"process {pid} has ended")
    switches = [status if len(tasks) == 1 else _text(f"/proc/{pid}/task/{t}/status") for t in tasks]
    return Reading(time=time.monotonic(),
                   cpu=_cpu(pid, tasks),
                   voluntary=sum(_field(s, "voluntary_ctxt_switches") for s in switches),
                   involuntary=sum(_field(s, "nonvoluntary_ctxt_switches") for s in switches),
                   rss_kb=_field(rollup, "Rss"),
                   anonymous_kb=_field(rollup, "Anonymous"),
                   pss_kb=_field(rollup, "Pss"),
                   peak_rss_kb=_field(status, "VmHWM"),
                   threads=_field(status, "Threads"),
                   fds=len(os.listdir(f"/proc/{pid}/fd")))


def loop_ms():
    """What a fixed loop of ours needs: how fast this processor is at the moment. On a machine that others share it may change
    by half from one minute to the next, and runs that met different speeds say little beside each other."""
    begin, x = time.thread_time(), 0
    for i in range(1_000_000):
        x += i * i % 7
    return (time.thread_time() - begin) * 1000


class Instructions:
    """Counts what a process executes, by perf where the machine has the counters (few virtual ones do):

        with Instructions(pid) as counted: ...
        counted.user, counted.all      # None: not countable here
    """
    EVENTS = "instructions:u,instructions"

    def __init__(self, pid):
        self.user = self.all = None
        self._pid = pid
        self._perf = None

    def __enter__(self):
        if shutil.which("perf"):
            self._perf = subprocess.Popen(["perf", "stat", "-x", ",", "-e", self.EVENTS, "-p", str(self._pid)],
                                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            time.sleep(0.3)  # it attaches
        return self

    def __exit__(self, *_):
        if not self._perf:
            return
        self._perf.send_signal(signal.SIGINT)
        try:
            text = self._perf.communicate(timeout=20)[1]
        except subprocess.TimeoutExpired:
            self._perf.kill()
            text = self._perf.communicate()[1]
        by_event = {event: int(count)
                    for count, event in re.findall(r"^(\d+),[^,]*,(instructions(?::u)?),", text, re.M)}
        self.user, self.all = by_event.get("instructions:u"), by_event.get("instructions")


class Watcher(threading.Thread):
    """look() at the beginning, every `interval` seconds, and at the end of its context; one that answers False is the
    last but for that."""
    def __init__(self, interval):
        super().__init__(daemon=True)
        self._interval = interval
        self._end = threading.Event()

    def look(self):
        raise NotImplementedError

    def run(self):
        while not self._end.wait(self._interval):
            if not self.look():
                return

    def __enter__(self):
        self.look()
        self.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self.join(5)
        self.look()


class Sampler(Watcher):
    """Reads a process; `peak` is the most that was seen. A process that ends ends it."""
    def __init__(self, pid, interval=0.05):
        super().__init__(interval)
        self.peak = Peak()
        self.readings = 0
        self._pid = pid

    def look(self):
        try:
            self.peak = self.peak.with_reading(read(self._pid))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            return False
        self.readings += 1
        return True
