#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Suite node: real machines (systemd-nspawn) with our package in a real cluster. Prints each case and what it measured.
The last line is: N passed, N failed, N skipped.

    tests/node/run.py                  all cases but those that measure
    tests/node/run.py --all            also the cases that measure
    tests/node/run.py --promises       only the cases that tests/promises.py names
    tests/node/run.py [PATTERN...]     only the cases of these names, or whose function or sentence has one of these in it
    tests/node/run.py --prepare ...    no case: make what is cached for them (a Debian, the control plane, helm, our package)
    tests/node/run.py --list           their names
    tests/node/run.py --shell          a bed with node 1, and a shell in its namespaces
    VESPER_NODE_WORKERS=N              maximum number of machines per bed (default 3)
    VESPER_NODE_IDLE_SEC=N             seconds of each of the three measurements of `idle`
                                       (default: 40 in a run of everything, 200 if named)

Below build/node/log: `journalctl -u vesper-agent -x` of the machines of each case that passed. Below build/failed/node: the
journals and the logs of each case that failed."""

import collections
import concurrent.futures
import contextlib
import fcntl
import json
import os
import queue
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = HERE, os.path.dirname(HERE)

import bed as bedding  # noqa: E402
import cases_bars  # noqa: E402
import cases_bed  # noqa: E402
import cases_chart  # noqa: E402
import cases_shutdown  # noqa: E402
import cases_slots  # noqa: E402
import cases_stays  # noqa: E402
import cases_tour  # noqa: E402
import cases_trouble  # noqa: E402
import chartbed  # noqa: E402
import promises  # noqa: E402
import system  # noqa: E402
from node import wait_for  # noqa: E402
from daemons import build_directory, procs  # noqa: E402
from world import Figures  # noqa: E402

# The tour first, while its machines are all there are; the long ones early, so that none is alone at the end.
CASES = (cases_tour.CASES + cases_chart.CASES + cases_bars.CASES + cases_slots.CASES + cases_bed.CASES + cases_stays.CASES +
         cases_trouble.CASES + cases_shutdown.CASES)
TOOLS = ("systemd-nspawn", "debootstrap", "dpkg-buildpackage", "dh", "unshare", "nsenter", "ip", "journalctl", "gcc", "mount")
NAME = "vesper-node"
TAIL = 50  # log lines of each daemon that are printed when a case fails


# -- what a machine must have


def lacking():
    """None, or why nothing can be tried here."""
    if os.geteuid() != 0:
        return "only root can start machines"
    missing = [t for t in TOOLS if not shutil.which(t)]
    if missing:
        return f"not installed: {', '.join(missing)}"
    if os.path.exists("/sys/fs/cgroup/cgroup.controllers") or not bedding.hierarchies():
        return "no cgroup hierarchies of version 1 in /sys/fs/cgroup: the bed was made for those"
    for top in bedding.hierarchies():
        if not os.access(top, os.W_OK):
            return f"{top} cannot be written"
    return bedding.namespaces_work()


# -- running


class Runner:
    def __init__(self, bed, logs):
        self.bed = bed
        self.logs = logs
        self.numbers = queue.Queue()
        self.counts = {"ok": 0, "FAILED": 0, "skipped": 0}
        self.hangs = 0
        self._print = threading.Lock()
        self._take = threading.Lock()
        self._slots = threading.Lock()

    def run(self, cases):
        workers = int(os.environ.get("VESPER_NODE_WORKERS", "3"))
        for number in range(1, workers + 1):
            self.numbers.put(number)
        # Plays the cases with `alone` first, one at a time.
        for case in (c for c in cases if getattr(c, "alone", False)):
            self._case(case)
        chartbed.put_away(self.bed)
        # More threads than machines: a case may wait until another returns its machines.
        with concurrent.futures.ThreadPoolExecutor(2 * workers) as pool:
            for done in [pool.submit(self._case, c) for c in cases if not getattr(c, "alone", False)]:
                done.result()

    def _case(self, case):
        with self._slots if getattr(case, "slots", False) else contextlib.nullcontext():
            # One case at a time takes machines, or two that want two each could wait for each other for ever.
            with self._take:
                numbers = [self.numbers.get() for _ in range(getattr(case, "machines", 1))]
            try:
                self._play(case, numbers)
            finally:
                for number in numbers:
                    self.numbers.put(number)

    def _play(self, case, numbers):
        begin, since, figures, trouble, kind = time.monotonic(), time.time(), Figures(), None, "ok"
        try:
            machines = [self._machine(number, case) for number in numbers]
            begin, since = time.monotonic(), time.time()
            for node in machines:
                node.began = since
            case(self.bed, *machines, figures)
            for node in machines:
                assert not node.crashes(since), f"the agent of {node.name} crashed: {node.crashes(since)}"
        except system.Unavailable as e:
            kind, trouble = "skipped", str(e)
        except Exception as e:
            where = traceback.extract_tb(e.__traceback__)
            spots = " < ".join(f"{os.path.basename(f.filename)}:{f.lineno}" for f in reversed(where))
            kind, trouble = "FAILED", f"{type(e).__name__}: {e}\n({spots})"
        took = time.monotonic() - begin
        # A case with machines = 0 makes its own, and nothing else runs in its bed.
        machines = [self.bed.nodes[n] for n in numbers if n in self.bed.nodes] if numbers else list(self.bed.machines.values())
        tails = self._keep_artefacts(case, machines, since, trouble) if kind == "FAILED" else []
        if numbers and kind == "ok":
            self._keep_explained(case, machines, since)
        self._report(case, kind, took, figures, trouble, tails)
        try:
            getattr(case, "put_away", lambda bed: None)(self.bed)
        except Exception as e:  # pylint: disable=broad-except
            self.counts["FAILED"] += 1
            print(f"FAILED  node: {case.__name__} left something that cannot be removed\n        ! {e!r}", flush=True)
        with contextlib.suppress(Exception):
            self._clean([m for m in machines if m.number in numbers], kind)

    def _machine(self, number, case):
        """A machine that is Ready, with nothing on it, whose agent has got over what cases elsewhere did to the control plane."""
        node = self.bed.node(number, getattr(case, "layers", "vesper"), fresh=getattr(case, "fresh", False))
        wait_for(lambda: node.show("vesper-agent.service", "ActiveState") == "active",
                 f"vesper-agent is active on {node.name}", 0.1)
        node.wait_ready()
        node.wait_clean()
        wait_for(node.agent_is_connected, f"the watches of {node.name}'s agent stand", 0.1)
        return node

    def _clean(self, machines, kind):
        """Removes what the case left on its machines, for the next case."""
        for node in machines:
            self.hangs += node.hangs
            node.hangs = 0
            try:
                self.bed.remove_workloads(node.name + "-")
                keep = kind == "ok" and not node.changed and node.is_on() and not node.marks()
                if keep:
                    node.forget_traces()
            except Exception as e:  # pylint: disable=broad-except
                print(f"        {node.name} could not be made clean, and is thrown away: {e}", flush=True)
                keep = False
            if not keep:
                self.bed.discard(node)

    def _keep_explained(self, case, machines, since):
        """`journalctl -u vesper-agent -x` of a case that passed."""
        with open(os.path.join(self.logs, case.__name__ + ".log"), "w", encoding="utf-8") as f:
            f.write(f"{case.__name__}: {case.__doc__}\n")
            for node in machines:
                f.write(f"==== {node.name}: journalctl -u vesper-agent -x\n{node.explained(since - 5)}\n")

    def _keep_artefacts(self, case, machines, since, trouble):
        """Copies the logs of a case that failed into a folder; the last lines of the agents' and the coordinators'."""
        folder = os.path.join(failed_directory(), case.__name__)
        os.makedirs(folder, exist_ok=True)
        files, logs = {"failure": f"{case.__name__}: {case.__doc__}\n{trouble}\n"}, {}
        for node in machines:
            with contextlib.suppress(Exception):
                files[node.name + ".journal"] = node.journal_text(since - 5)
                files[node.name + ".console"] = node.console()
                logs.update(node.logs())
        for name, path in self.bed.logs.items():
            with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as f:
                logs[name] = f.read()
        for name, text in {**files, **logs}.items():
            with open(os.path.join(folder, name + ".log"), "w", encoding="utf-8") as f:
                f.write(text)
        lines = []
        for name, text in logs.items():
            lines += [f"-- {name}, the last {TAIL} lines", *text.splitlines()[-TAIL:]]
        return [f"again: VESPER_BUILD={shlex.quote(build_directory())} python3 tests/node/run.py {case.__name__}",
                f"artefacts: {folder}", *lines]

    def _report(self, case, kind, took, figures, trouble, tails):
        with self._print:
            self.counts[kind] += 1
            print(f"{kind:7} node: {case.__name__}: {case.__doc__} ({took:.1f} s)")
            for line in figures.shown:
                print(f"          {line}")
            for line in (trouble or "").splitlines():
                print(f"        ! {line}")
            for line in tails[:-2]:
                print(f"        | {line}")
            print(*tails[-2:], sep="\n", end="\n" if tails else "")
            sys.stdout.flush()


def log_directory():
    return os.path.join(build_directory(), "node", "log")


def failed_directory():
    return os.path.join(build_directory(), "failed", "node")


def inside(folder, arguments):
    """Plays the cases of one bed, in namespaces of its own. Writes how many passed into the folder."""
    procs.exit_on_signals()
    begin = time.monotonic()
    with bedding.Bed(folder, os.path.basename(folder)) as bed:
        if arguments == ["--shell"]:
            node = bed.node(1)
            print(f"PID 1 of {node.name}: {node.pid1}; nsenter -t {node.pid1} -m -u -i -n -p -C bash")
            print(f"export KUBECONFIG={bed.cluster.kubeconfig()} PATH=$PATH:{bed.cluster.binaries}")
            return subprocess.call(["bash"])
        print(f"a control plane and layers after {time.monotonic() - begin:.1f} s", flush=True)
        runner = Runner(bed, log_directory())
        runner.run([c for name in arguments for c in CASES if c.__name__ == name])
    if runner.hangs:
        print(f"the bed's own hang (an empty scope that stops by its time-out): {runner.hangs}", flush=True)
    with open(os.path.join(folder, "counts"), "w", encoding="ascii") as f:
        json.dump(runner.counts, f)
    return 0


def chosen(arguments):
    """The cases of a command line. ValueError: it asks for one that does not exist."""
    names = {c.__name__ for c in CASES}
    patterns = [a for a in arguments if not a.startswith("--")]
    if unknown := [a for a in arguments if a.startswith("--") and a not in ("--all", "--promises", "--prepare", "--shell")]:
        raise ValueError(f"no such option: {' '.join(unknown)}")
    if "--promises" in arguments:
        if unknown := [n for n in promises.chosen("node") if n not in names]:
            raise ValueError(f"tests/promises.py names cases that suite node does not have: {', '.join(unknown)}")
        return [c for c in CASES if c.__name__ in promises.chosen("node")]
    if unknown := [p for p in patterns if not any(p in c.__name__ or p in c.__doc__ for c in CASES)]:
        raise ValueError(f"no case has this in its name or sentence: {', '.join(unknown)}")
    # The name of a case means that case alone.
    found = [c for c in CASES if any(p == c.__name__ if p in names else p in c.__name__ or p in c.__doc__ for p in patterns) or
             (not patterns and ("--all" in arguments or not getattr(c, "long", False)))]
    if patterns:
        os.environ.setdefault("VESPER_NODE_IDLE_SEC", str(cases_bars.IDLE_NAMED_SEC))
    return found


def remove_left(parent):
    """What a run that was killed has left: nobody holds its lock."""
    for entry in os.listdir(parent):
        path = os.path.join(parent, entry)
        if not re.fullmatch(NAME + r"-\w+", entry) or os.lstat(path).st_uid != os.getuid():
            continue
        with contextlib.suppress(OSError), open(os.path.join(path, "lock"), "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(path)


def remove(folder):
    """Removes the cgroups and the folder of a run.

    Retries for 20 s: a cgroup cannot be removed before its last process has ended."""
    groups = [os.path.join(top, os.path.basename(folder)) for top in bedding.hierarchies()]
    deadline = time.monotonic() + 20
    while any(map(os.path.isdir, groups + [folder])) and time.monotonic() < deadline:
        for group in groups:
            bedding.remove_cgroup(group)
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.05)


def _start(arguments):
    """(folder, its lock, process) of a run in a bed of its own."""
    folder = tempfile.mkdtemp(prefix=NAME + "-")
    lock = open(os.path.join(folder, "lock"), "wb")
    fcntl.flock(lock, fcntl.LOCK_EX)
    # All processes of the run end with the first process of its process namespace. The first process is a shell, because a
    # shell reaps orphaned processes: one process of a machine that nobody reaps keeps the machine from ending.
    return folder, lock, procs.spawn(["unshare", "-n", "-m", "-p", "-f", "--mount-proc", "--kill-child=SIGKILL", "sh", "-c",
                                      '"$@"; exit $?', "sh", sys.executable, os.path.abspath(__file__), "--inside", folder,
                                      *arguments])


def outside(lines):
    """Runs beds beside each other, one for each of these command lines. How many cases passed, failed, were skipped."""
    counts, running = collections.Counter(), []
    try:
        for line in lines:
            running.append(_start(line))
        for folder, _, child in running:
            status = child.wait()
            try:
                with open(os.path.join(folder, "counts"), encoding="ascii") as f:
                    counts.update(json.load(f))
            except OSError:
                print(f"FAILED  node: a bed ended with status {status} before it had played all of its cases")
                counts["FAILED"] += 1
    finally:
        for folder, lock, child in running:
            child.kill()
            child.wait()
            remove(folder)
            lock.close()
    return counts


def play(cases):
    """0, or 1 if a case failed."""
    for folder in (log_directory(), failed_directory()):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
    beds = {}
    for case in cases:
        beds.setdefault(getattr(case, "bed", "machines"), []).append(case.__name__)
    counts = collections.Counter()
    # A case that measures wants the whole machine: then one bed runs after the other.
    for lines in [[line] for line in beds.values()] if any(getattr(c, "long", False) for c in cases) else [list(beds.values())]:
        counts.update(outside(lines))
    print(f"{counts['ok']} passed, {counts['FAILED']} failed, {counts['skipped']} skipped")
    return 1 if counts["FAILED"] else 0


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--inside"]:
        return inside(arguments[1], arguments[2:])
    if arguments == ["--list"]:
        for case in CASES:
            print(f"{case.__name__:24} {case.__doc__}")
        return 0
    try:
        cases = chosen(arguments)
    except ValueError as e:
        print(f"tests/node/run.py: {e}", file=sys.stderr)
        return 2
    procs.exit_on_signals()
    why, preparing = lacking(), "--prepare" in arguments
    try:
        if not why:  # There is no way to the outside from the namespaces: the cache is filled here.
            system.prepare(newer=any(getattr(c, "layers", None) == "newer" for c in cases),
                           helm=any(getattr(c, "helm", False) for c in cases))
    except system.Unavailable as e:
        why = str(e)
        if preparing:
            print(f"the machines of suite node cannot be prepared: {why}", file=sys.stderr)
            return 1
    if why:
        print(f"skipped {len(cases)} cases of node: {why}")
        print(f"0 passed, 0 failed, {len(cases)} skipped")
        return 0
    if preparing:
        return 0
    remove_left(tempfile.gettempdir())
    if arguments == ["--shell"]:
        outside([arguments])
        return 0
    return play(cases)


if __name__ == "__main__":
    sys.exit(main())
