#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The real programs against a real control plane. Every case prints what it measured; the last line counts.

    tests/e2e/run.py [PATTERN...]     only the cases whose function or sentence has one of these in it
    tests/e2e/run.py --list           their names
    VESPER_BUILD=DIR                  where the programs were built (default: build/)
    VESPER_E2E_KEEP=DIR               keep logs and configurations there
"""

import contextlib
import os
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import cases_checked  # noqa: E402
import cases_cluster  # noqa: E402
import cases_command  # noqa: E402
import cases_faces  # noqa: E402
import cases_node  # noqa: E402
from daemons import procs, program, temporary_directory  # noqa: E402
from world import Figures, World  # noqa: E402

CASES = cases_command.CASES + cases_node.CASES + cases_cluster.CASES + cases_faces.CASES + \
    cases_checked.CASES


def run_case(case, world):
    """True when it passed."""
    figures, begin, trouble = Figures(), time.monotonic(), None
    try:
        case(world, figures)
    except Exception as e:
        where = traceback.extract_tb(e.__traceback__)
        spots = " < ".join(f"{os.path.basename(f.filename)}:{f.lineno}" for f in reversed(where))
        trouble = f"{type(e).__name__}: {e}\n({spots})"
    print(f"{'FAILED ' if trouble else 'ok     '} e2e: {case.__doc__} ({time.monotonic() - begin:.1f} s)")
    for line in figures.shown:
        print(f"          {line}")
    if trouble:
        for line in trouble.splitlines():
            print(f"        ! {line}")
        for daemon in world.daemons[-3:]:
            for line in daemon.tail().splitlines():
                print(f"        | {line}")
    sys.stdout.flush()
    return trouble is None


def run(cases, directory):
    passed = 0
    with World(directory) as world:
        print(f"control plane, kwok and moto up after {world.cluster.seconds['start']:.1f} s", flush=True)
        for case in cases:
            passed += run_case(case, world)
            world.clean()
    return passed


def main():
    procs.exit_on_signals()
    arguments = sys.argv[1:]
    if arguments == ["--list"]:
        for case in CASES:
            print(f"{case.__name__:24} {case.__doc__}")
        return 0
    cases = [c for c in CASES if not arguments or any(a in c.__name__ or a in c.__doc__ for a in arguments)]
    for name in ("vesper-agent", "vesper-coordinator", "vesperctl"):
        if not os.access(program(name), os.X_OK):
            print(f"{program(name)} has not been built")
            print(f"0 passed, {len(cases)} failed, 0 skipped")
            return 1

    kept = os.environ.get("VESPER_E2E_KEEP")
    if kept:
        os.makedirs(kept, exist_ok=True)
        place = contextlib.nullcontext(os.path.abspath(kept))
    else:
        place = temporary_directory("vesper-e2e")
    with place as directory:
        passed = run(cases, directory)
    print(f"{passed} passed, {len(cases) - passed} failed, 0 skipped")
    return 0 if passed == len(cases) else 1


if __name__ == "__main__":
    sys.exit(main())
