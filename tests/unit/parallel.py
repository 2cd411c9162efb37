# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of a module at the same time: most of their time they wait for programs."""

import concurrent.futures
import shlex
import sys
import time
import unittest

WORKERS = 8
# Seconds. Only ends what hangs: no test may depend on the speed of the machine.
LIMIT = 300


def _flat(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from _flat(test)
        else:
            yield test


def _run(test):
    """The test's result, and how long it took."""
    result, begin = unittest.TestResult(), time.monotonic()
    test.run(result)
    return result, time.monotonic() - begin


def main():
    """Runs each test of __main__, or those named after `--`. Exits with 1 if one fails, or if there is none."""
    names = sys.argv[sys.argv.index("--") + 1:] if "--" in sys.argv else []
    module, loader = sys.modules["__main__"], unittest.defaultTestLoader
    tests = list(_flat(loader.loadTestsFromNames(names, module) if names else loader.loadTestsFromModule(module)))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for test, (result, seconds) in zip(tests, pool.map(_run, tests)):
            name = test.id().partition(".")[2]
            word = "ok" if result.wasSuccessful() else "FAILED"
            print(f"{'skipped' if result.skipped else word:8}{name} ({seconds:.1f} s)", *(why for _, why in result.skipped))
            for which, text in result.errors + result.failures:
                print(f"{which}\n{text}")
            failed += not result.wasSuccessful()
    print(f"{len(tests)} tests, {failed} failed")
    if failed:
        print("To run one of them alone:", shlex.join([a for a in sys.argv if a not in ("--", *names)]), "-- CLASS.TEST")
    sys.exit(failed > 0 or not tests)
