#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The benchmarks: each prints tables, its bars and one JSON line; the last line counts bars.

    tests/bench/run.py [NAME...]     only those whose name has one of these in it
    tests/bench/run.py --list        names, and what they measure
    tests/bench/run.py --defaults    the rates and windows of this build
    --all                            also those that take too long for every day (ten minutes of an idle agent)
    --runs N                         so many runs of each (default: 3 of the heavy ones, 5 of the light ones)
    --markdown FILE                  the figures as a table in Markdown, as README has it
    VESPER_BUILD=DIR                 where the programs were built (default: build/)
    VESPER_BENCH_KEEP=DIR            keep logs there

A benchmark is a function of one argument, Context, and stands in the list BENCHES of a bench_*.py here:
(name, what it measures, function). Rates and windows of the daemons are the shipped ones, and are printed.
"""

import argparse
import contextlib
import glob
import importlib
import os
import platform
import re
import subprocess
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
for _path in (os.path.join(TOP, "tests", "cluster"), os.path.join(TOP, "tests", "e2e"), HERE):
    sys.path.insert(0, _path)

import table  # noqa: E402
from daemons import procs, program, temporary_directory  # noqa: E402

# The rates and windows that decide how fast we are: where they are defined, and under which names.
DEFAULTS = {
    "agent/agent.c": ("WINDOW", ),
    "shared/drain/node-drain.c": ("TOGETHER_USEC", "TELL_USEC"),
    "shared/drain/eviction-window.c": ("SIZE", "SIZE_MIN", "PER_SECOND", "SLOW_USEC", "FLOW_CONTROL_USEC", "CROWD"),
    "shared/drain/evictor.c": ("CROWD_STRETCH", ),
    "shared/http-client/http-curl.c": ("MAX_CONNECTIONS_BULK", "MAX_CONNECTIONS_URGENT",
                                       "MAX_CONCURRENT_STREAMS", "REST_BURST", "REST_BYTES_MAX"),
    "shared/kube/client/kube-call.c": ("CROWD", "TOGETHER_MAX", "PATIENCE_USEC"),
    "shared/kube/events/event-sender.c": ("IN_FLIGHT_MAX", "PER_SECOND", "QUEUE_MAX"),
    "shared/kube/events/event-recorder.c": ("SPAM_BURST", "SPAM_PER_MINUTE"),
    "shared/kube/election/leader-elector.c": ("LEASE_DEFAULT_USEC", "RENEW_DEADLINE_DEFAULT_USEC",
                                     "RETRY_DEFAULT_USEC"),
    "coordinator/coordinator-main.c": ("WAKEUPS_BURST", "WAKEUP_USEC", "CONNECTIONS", "BULK_STREAMS", "REST_USEC"),
    "coordinator/leading.c": ("POOL_STATUS_USEC", "PROGRESS_BURST",
                              "PROGRESS_PER_MINUTE", "EVICTION_EVENTS_BURST", "EVICTION_EVENTS_PER_MINUTE", "DRAINED_EVENTS_BURST",
                              "DRAINED_EVENTS_PER_MINUTE"),
    "coordinator/termination/removals.c": ("TOGETHER_USEC", "OURS_TOGETHER_USEC", "IMMEDIATE_USEC"),
    "coordinator/termination/termination-report.c": ("TOGETHER_USEC", ),
    "coordinator/termination/late-status.c": ("SETTLE_USEC", "PROGRESS_USEC", "HOLD_USEC"),
    "coordinator/cloud/cloud.h": ("CLOUD_PLACE_USEC",),
    "coordinator/cloud/cloud-exec.h": ("CLOUD_EXEC_RUNNING_MAX", "CLOUD_EXEC_CHANGES_MAX"),
}
CONFIGURED = re.compile(r"^#? ?(\w*(?:Sec|Wait|Second|Minute|Burst)\w*|Protected)=(.*)$", re.M)


class Context:
    """What a benchmark gets. Everything it says is printed at once; bars and figures come again in the
    summary."""
    def __init__(self, runs, directory, stack):
        self.runs = runs or 3
        self.light_runs = runs or 5
        self.dir = directory
        self.bars = []  # (benchmark, what, value, limit, unit, held)
        self.figures = []  # (benchmark, what, text)
        self.times = []  # (benchmark, seconds)
        self.bench = None
        self._stack = stack
        self._shared = {}  # name -> (what, the stack that leaves it)
        self._made = 0

    def table(self, title, header, rows):
        print(table.table(title, header, rows), flush=True)

    def json(self, name, figures):
        print(table.json_line(name, figures), flush=True)

    def bar(self, what, value, limit, unit):
        """At most `limit`. Missing it makes the whole run fail."""
        held, text = table.bar(what, value, limit, unit)
        self.bars.append((self.bench, what, value, limit, unit, held))
        print(text, flush=True)
        return held

    def figure(self, what, text):
        """Belongs into the summary, and has no bar."""
        self.figures.append((self.bench, what, text))
        print(f"        {what}: {text}", flush=True)

    def shared(self, name, make):
        """What several benchmarks stand on: made by make(DIRECTORY), entered at the first use, left at the end of all."""
        if name not in self._shared:
            stack = self._stack.enter_context(contextlib.ExitStack())
            self._made += 1
            made = stack.enter_context(make(os.path.join(self.dir, f"{name}-{self._made}")))
            self._shared[name] = (made, stack)
        return self._shared[name][0]

    def drop_shared(self):
        """A benchmark failed in the middle: nobody knows what it left there. The next one makes its own."""
        for name, (_, stack) in self._shared.items():
            try:
                stack.close()
            except Exception as e:  # what it was is in pieces already
                print(f"        leaving {name}: {e}", flush=True)
        self._shared.clear()


# -- what it ran on


def _read(path):
    with contextlib.suppress(OSError):
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    return ""


def machine():
    model = re.search(r"^model name\s*: (.*)", _read("/proc/cpuinfo"), re.M)
    memory = re.search(r"MemTotal: +(\d+)", _read("/proc/meminfo"))
    cores = len(os.sched_getaffinity(0))
    return (f"{cores} core{'s' if cores != 1 else ''}"
            f"{' (' + ' '.join(model[1].split()) + ')' if model else ''}, "
            f"{int(memory[1]) / 1048576:.0f} GB, Linux {platform.release()}")


def versions():
    kubernetes = re.search(r"k8s.io/kubernetes (v[\d.]+)", _read(os.path.join(TOP, "tests/cluster/go.mod")))
    etcd = re.search(r"go.etcd.io/etcd/server/v3 (v[\d.]+)", _read(os.path.join(TOP, "tests/cluster/go.mod")))
    kwok = re.search(r"sigs.k8s.io/kwok (v[\d.]+)", _read(os.path.join(TOP, "tests/cluster/kwok/go.mod")))
    ours = subprocess.run([program("vesper-coordinator"), "--version"], capture_output=True, text=True,
                          check=False).stdout.strip()
    curl = subprocess.run(["pkg-config", "--modversion", "libcurl"], capture_output=True, text=True,
                          check=False).stdout.strip()
    return ", ".join([ours] + [f"{name} {found[1]}" for name, found in
                               (("Kubernetes", kubernetes), ("etcd", etcd), ("kwok", kwok)) if found] +
                     ([f"libcurl {curl}"] if curl else []))


def defaults():
    """Of rates and windows: ["evictor: WINDOW_START 100, ...", ...]. One that is gone is an error here."""
    lines = []
    for path, names in DEFAULTS.items():
        text = _read(os.path.join(TOP, path))
        found = []
        for name in names:
            value = re.search(rf"^#define {name} (.*?)(?: */\*.*)?$", text, re.M)
            if not value:
                raise SystemExit(f"{path} defines no {name}: the table DEFAULTS of {__file__} is out of date")
            found.append(f"{name} {value[1].strip()}")
        lines.append(f"{os.path.basename(path)}: {', '.join(found)}")
    for name in ("vesper-agent", "vesper-coordinator"):
        dumped = subprocess.run([program(name), "--dump-config"], capture_output=True, text=True, check=True)
        found = [f"{key}={value}" for key, value in CONFIGURED.findall(dumped.stdout)]
        lines.append(f"{name}: {', '.join(found)}")
    return lines


def print_head():
    print(f"machine:  {machine()}; load {_read('/proc/loadavg').split()[0]} at the start")
    print(f"versions: {versions()}")
    for i, line in enumerate(defaults()):
        print(f"{'defaults:' if i == 0 else '         '} {line}")
    print(flush=True)


# -- the run


def load():
    benches = []
    for path in sorted(glob.glob(os.path.join(HERE, "bench_*.py"))):
        benches += importlib.import_module(os.path.basename(path)[:-len(".py")]).BENCHES
    return benches


def is_wanted(bench, names, everything):
    """One whose function has the attribute only_when_named takes too long for every day."""
    name, _, function = bench
    if getattr(function, "only_when_named", False) and not (everything and not names):
        return name in names
    return not names or any(n in name for n in names)


def run_one(context, name, description, function):
    """True when it came to its end; bars are counted elsewhere."""
    print(f"== {name}: {description}", flush=True)
    context.bench, begin = name, time.monotonic()
    try:
        function(context)
    except Exception:
        print(f"FAILED  {name} did not come to its end", flush=True)
        traceback.print_exc(file=sys.stdout)
        context.drop_shared()
        return False
    finally:
        context.times.append((name, time.monotonic() - begin))
        print(f"({name}: {context.times[-1][1]:.0f} s; load {_read('/proc/loadavg').split()[0]})\n", flush=True)
    return True


def print_times(context):
    rows = [(name, round(seconds)) for name, seconds in context.times]
    print(table.table("times", ("benchmark", "s"), rows + [("all", sum(s for _, s in rows))]), flush=True)


def markdown(context, arguments):
    """The summary as README shows it."""
    command = " ".join(["bash tests/run.sh bench", *arguments])
    lines = [f"`{command}`, {machine()}; {versions()}:", "", "| | measured | bar |", "|---|---|---|"]
    for bench in dict.fromkeys(b for b, *_ in context.bars + context.figures):
        for _, what, value, limit, unit, held in (b for b in context.bars if b[0] == bench):
            shown = "-" if value is None else table.number(value)
            lines.append(f"| {what} | {shown} {unit}{'' if held else ' (missed)'} | "
                         f"<= {table.number(limit)} {unit} |")
        for _, what, text in (f for f in context.figures if f[0] == bench):
            lines.append(f"| {what} | {text} | |")
    return "\n".join(lines) + "\n"


def parse_arguments():
    parser = argparse.ArgumentParser(description="Runs the benchmarks.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a part of a benchmark's name")
    parser.add_argument("--list", action="store_true", help="names, and what they measure")
    parser.add_argument("--defaults", action="store_true", help="the rates and windows of this build")
    parser.add_argument("--all", action="store_true", help="also those that take long")
    parser.add_argument("--runs", type=int, default=0, metavar="N", help="so many runs of each")
    parser.add_argument("--markdown", metavar="FILE", help="write the figures there as a table")
    return parser.parse_args()


def main():
    procs.exit_on_signals()
    options = parse_arguments()
    benches = load()
    if options.defaults:
        print("\n".join(defaults()))
        return 0
    if options.list:
        for name, description, _ in benches:
            print(f"{name:24} {description}")
        return 0
    for name in options.names:
        if not any(name in bench[0] for bench in benches):
            print(f"no benchmark has '{name}' in its name; --list shows them")
            return 2
    benches = [b for b in benches if is_wanted(b, options.names, options.all)]

    print_head()
    kept = os.environ.get("VESPER_BENCH_KEEP")
    if kept:
        os.makedirs(kept, exist_ok=True)
    with contextlib.ExitStack() as stack:
        place = os.path.abspath(kept) if kept else stack.enter_context(temporary_directory("vesper-bench"))
        context = Context(options.runs, place, stack)
        ended = [run_one(context, *bench) for bench in benches]
        print_times(context)

    if options.markdown:
        with open(options.markdown, "w", encoding="utf-8") as f:
            f.write(markdown(context, options.names))
    print("bars:")
    for bench, what, value, limit, unit, _ in context.bars:
        print(f"  {table.bar(what, value, limit, unit)[1]} ({bench})")
    missed = sum(not b[-1] for b in context.bars) + ended.count(False)
    print(f"{len(context.bars) + ended.count(False) - missed} passed, {missed} failed, 0 skipped")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
