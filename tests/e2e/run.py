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
import cases_ctl  # noqa: E402
import cases_explain  # noqa: E402
import cases_faces  # noqa: E402
import cases_grace  # noqa: E402
import cases_node  # noqa: E402
import cases_notify  # noqa: E402
import cases_outlook  # noqa: E402
import cases_queue  # noqa: E402
import cases_reboot  # noqa: E402
import cases_reload  # noqa: E402
import cases_simulate  # noqa: E402
from daemons import procs, program, temporary_directory  # noqa: E402
from world import BarMissed, Figures, World  # noqa: E402

ATTEMPTS = 3
CASES = cases_command.CASES + cases_ctl.CASES + cases_node.CASES + cases_cluster.CASES + cases_queue.CASES + cases_reboot.CASES + \
    cases_reload.CASES + cases_faces.CASES + cases_grace.CASES + cases_explain.CASES + cases_notify.CASES + cases_checked.CASES + \
    cases_simulate.CASES + cases_outlook.CASES


def play(case, world, last):
    """Whether it passed; None: it has to be played again, since only a bar was missed, as a moment of a busy machine
    may do, and this was not the last try."""
    figures, begin, trouble, word = Figures(), time.monotonic(), None, "ok     "
    try:
        case(world, figures)
    except Exception as e:
        where = traceback.extract_tb(e.__traceback__)
        spots = " < ".join(f"{os.path.basename(f.filename)}:{f.lineno}" for f in reversed(where))
        trouble = f"{type(e).__name__}: {e}\n({spots})"
        word = "again  " if isinstance(e, BarMissed) and not last else "FAILED "
    print(f"{word} e2e: {case.__doc__} ({time.monotonic() - begin:.1f} s)")
    for line in figures.shown:
        print(f"          {line}")
    for line in (trouble or "").splitlines():
        print(f"        ! {line}")
    if word == "FAILED ":
        for daemon in world.daemons[-3:]:
            for line in daemon.tail().splitlines():
                print(f"        | {line}")
    sys.stdout.flush()
    world.clean()
    return {"ok     ": True, "FAILED ": False, "again  ": None}[word]


def run_case(case, world):
    """True when it passed."""
    for attempt in range(1, ATTEMPTS + 1):
        passed = play(case, world, attempt == ATTEMPTS)
        if passed is not None:
            break
    return passed


def run(cases, directory):
    passed = 0
    with World(directory) as world:
        print(f"control plane, kwok and moto up after {world.cluster.seconds['start']:.1f} s", flush=True)
        for case in cases:
            passed += run_case(case, world)
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
