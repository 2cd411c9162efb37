# SPDX-License-Identifier: Apache-2.0
"""One whole run of each daemon in the hands of valgrind, and of its build with ASan and UBSan: no error, no
leak, no descriptor left open at the end. What they measure does not count: they are many times slower."""

import contextlib
import os
import re

from daemons import LIMIT, build_directory
from metadata import NOTICE

ERROR_STATUS = 99
PODS = 10
VALGRIND_PATIENCE = 15
SANITIZER_PATIENCE = 4


class Valgrind:
    """Memory errors, definite and indirect leaks, descriptors."""
    name = "valgrind"

    def __init__(self, world, name):
        self._log = world.path(f"valgrind-{name}.log")

    def wrap(self, daemon):
        daemon.argv = [
            "valgrind", "--quiet", "--leak-check=full", "--show-leak-kinds=definite,indirect",
            "--errors-for-leak-kinds=definite,indirect", f"--error-exitcode={ERROR_STATUS}", "--track-fds=yes",
            "--num-callers=25", f"--log-file={self._log}", *daemon.argv
        ]
        daemon.patience = VALGRIND_PATIENCE
        return daemon

    def complaints(self):
        """What it said but for descriptors that we gave the process."""
        with open(self._log, encoding="utf-8", errors="replace") as f:
            lines = [re.sub(r"^==\d+== ?", "", line.rstrip()) for line in f]
        left, open_one = [], []
        for line in lines + [""]:
            if re.match(r"Open (file descriptor|AF_)", line):
                open_one = [line]
            elif open_one and line:
                open_one.append(line)
            elif open_one:
                left += [] if any("<inherited from parent>" in text for text in open_one) else open_one
                open_one = []
            elif line and not line.startswith("FILE DESCRIPTORS:"):
                left.append(line)
        return left


class Sanitizers:
    """The build that `bash tests/run.sh unit` makes beside the plain one."""
    name = "ASan and UBSan"

    def __init__(self, world, name):
        self._prefix = world.path(f"sanitizer-{name}")

    def wrap(self, daemon):
        plain, sanitized = build_directory(), build_directory() + "-san"
        daemon.argv[0] = daemon.argv[0].replace(plain, sanitized, 1)
        assert os.access(daemon.argv[0], os.X_OK), \
            f"{daemon.argv[0]} has not been built: bash tests/run.sh e2e does it"
        common = f"log_path={self._prefix}:exitcode={ERROR_STATUS}"
        daemon.environment.update({
            "ASAN_OPTIONS": f"{common}:detect_leaks=1:detect_stack_use_after_return=1",
            "UBSAN_OPTIONS": f"{common}:halt_on_error=1:print_stacktrace=1", "LSAN_OPTIONS": common
        })
        daemon.patience = SANITIZER_PATIENCE
        return daemon

    def complaints(self):
        folder, found = os.path.dirname(self._prefix), []
        for name in sorted(os.listdir(folder)):
            if name.startswith(os.path.basename(self._prefix) + "."):
                with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as f:
                    found += f.read().splitlines()
        return found


@contextlib.contextmanager
def _checked(world, figures, kind, daemon):
    """Runs it; at the end it must have said nothing against us."""
    checker = kind(world, daemon.name)
    with checker.wrap(daemon) as running:
        yield running
        status = running.stop()
    complaints = checker.complaints()
    figures.add(f"{checker.name}: exit status {status}, {len(complaints)} lines of complaint")
    assert not complaints, "\n".join(complaints[:60])
    assert status == 0, f"{daemon.name} ended with status {status} under {checker.name}\n{daemon.tail()}"


def _interrupt(world, figures, kind):
    node, _ = world.node(world.unique("checked"), "aws:///us-east-1a/i-0123456789abcdef0")
    world.cluster.create_pods(node, PODS, prefix=node)
    world.cluster.wait_running(PODS, node)
    with world.metadata() as metadata, \
            _checked(world, figures, kind, world.agent(node, metadata)) as agent:
        agent.wait_line("READY")
        metadata.interrupt(after=600)
        agent.wait_line("NODE_DRAINED")
        world.wait_condition(node, "Drained")
        asked = sum(r.path == NOTICE for r in metadata.log())
        world.cluster.wait_for(lambda: sum(r.path == NOTICE for r in metadata.log()) > asked + 1, LIMIT,
                               "the agent looks at its metadata after the drain")
    assert not world.cluster.pods(node), "pods are left"


def _delete(world, figures, kind):
    pool = world.pool(world.unique("checked"))
    node, instance = world.node(pool)
    world.replicas(pool, 4, pool)
    world.cluster.create_pods(node, PODS, prefix=f"{node}-free")
    world.node(pool)
    world.budget(pool, pool, 3)
    with _checked(world, figures, kind, world.coordinator("checked")) as coordinator:
        coordinator.wait_line("LEASE_ACQUIRED")
        world.wait_adopted(node)
        world.delete_node(node)
        world.wait_gone(node)
        world.cluster.wait_for(lambda: not world.claims(node), LIMIT, f"the end of {node}'s claim")
    assert world.ec2.state(instance) in ("shutting-down", "terminated"), world.ec2.state(instance)


def valgrind_agent(world, figures):
    """an interrupted node, the agent under valgrind: no error, no leak, no descriptor left"""
    _interrupt(world, figures, Valgrind)


def valgrind_coordinator(world, figures):
    """a deleted node, the coordinator under valgrind: no error, no leak, no descriptor left"""
    _delete(world, figures, Valgrind)


def sanitized_agent(world, figures):
    """an interrupted node, the agent built with ASan and UBSan: no error, no leak"""
    _interrupt(world, figures, Sanitizers)


def sanitized_coordinator(world, figures):
    """a deleted node, the coordinator built with ASan and UBSan: no error, no leak"""
    _delete(world, figures, Sanitizers)


CASES = [valgrind_agent, valgrind_coordinator, sanitized_agent, sanitized_coordinator]
