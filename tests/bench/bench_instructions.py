# SPDX-License-Identifier: Apache-2.0
"""What an idle second and a pod's change execute, counted by callgrind: the same on a quiet machine and on a loaded one,
and where there are no hardware counters. Without the kernel's part."""

import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import account  # noqa: E402
import fakeworld  # noqa: E402
from fakeworld import FakeWorld, wait  # noqa: E402

IDLE_SECONDS = 30
CHANGES, CHANGES_PER_SECOND = 1000, 50
NODES, PODS = 50, 1500


class Counted:
    """A daemon in the hands of callgrind, which counts only between on() and off()."""
    def __init__(self, daemon, directory):
        self.daemon = daemon
        self._out = os.path.join(directory, f"{daemon.name}.callgrind")
        daemon.argv = [
            "valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={self._out}",
            *daemon.argv
        ]
        daemon.patience = 10

    def _control(self, *arguments):
        done = subprocess.run(["callgrind_control", *arguments, str(self.daemon.pid)], capture_output=True, text=True,
                              check=False, timeout=120)
        assert done.returncode == 0, f"callgrind_control {' '.join(arguments)}: {done.stdout} {done.stderr}"

    def on(self):
        self._control("-i", "on")

    def off(self):
        """Instructions since on()."""
        self._control("-i", "off")
        self._control("-d")
        part = self._out + ".1"
        wait("callgrind's account", lambda: os.path.exists(part), 60)
        with open(part, encoding="ascii", errors="replace") as f:
            found = re.search(r"^totals: (\d+)", f.read(), re.M)
        assert found, f"{part} has no total"
        return int(found[1])


def _idle_agent(directory):
    """Of one second with one poll."""
    with FakeWorld(directory, fakeworld.one_node_world(30)) as fake:
        agent = fake.agent(fakeworld.NODE, fake.metadata_endpoint(fakeworld.INSTANCE))
        counted = Counted(agent, directory)
        with agent:
            agent.wait_line("READY", 240)
            time.sleep(10)
            counted.on()
            begin = time.monotonic()
            time.sleep(IDLE_SECONDS)
            seconds = time.monotonic() - begin
            return counted.off() / seconds


def _settled(pid):
    before = account.read(pid).cpu
    time.sleep(1)
    return account.read(pid).cpu - before < 0.05


def _pod_change(directory):
    """Of one change of a pod of 4 kB that alters nothing which the coordinator keeps."""
    with FakeWorld(directory, fakeworld.many_world(NODES, PODS)) as fake:
        leader = fake.coordinator("leader")
        counted = Counted(leader, directory)
        with leader:
            leader.wait_line("READY", 240)
            wait(f"{NODES} nodes are adopted", lambda: fake.count("patch nodeclaims/status", 200) >= NODES, 240, 0.5)
            wait("nothing is left to do", lambda: _settled(leader.pid), 120, 0)
            counted.on()
            fake.control("/churn", {"perSecond": CHANGES_PER_SECOND, "seconds": CHANGES // CHANGES_PER_SECOND})
            wait(f"{CHANGES} changes", lambda: fake.control("/churn")["done"] >= CHANGES, 240, 0.5)
            wait("the coordinator has taken them in", lambda: _settled(leader.pid), 240, 0)
            return counted.off() / CHANGES


def instructions(ctx):
    assert shutil.which("valgrind") and shutil.which("callgrind_control"), "there is no valgrind"
    figures = {}
    for key, measure in (("idle_second", _idle_agent), ("pod_change", _pod_change)):
        directory = os.path.join(ctx.dir, f"instructions-{key}")
        shutil.rmtree(directory, ignore_errors=True)
        figures[key] = measure(directory)
        shutil.rmtree(directory, ignore_errors=True)
    ctx.table("instructions of our processes (user space, by callgrind)", ("", "instructions"),
              [("agent: an idle second, one poll", round(figures["idle_second"])),
               (f"coordinator: a change of a pod of {fakeworld.pod_bytes()} bytes", round(figures["pod_change"]))])
    ctx.figure("agent: instructions of an idle second", f"{figures['idle_second']:,.0f}")
    ctx.figure("coordinator: instructions of a pod's change", f"{figures['pod_change']:,.0f}")
    ctx.json("instructions", figures)


BENCHES = [
    ("instructions", "what an idle second of the agent and a pod's change at the coordinator execute", instructions),
]
