#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Answers for run.sh what meson's own commands do not say.

    meson-tests.py targets BUILD SUITE... [--but SUITE...]    prints the ninja targets of the tests that are in one of the suites
                                                              and in none of those after --but
    meson-tests.py results BUILD LABEL FAILED STATUS          prints each result of the last `meson test -C BUILD`, which exited
                                                              with STATUS

Below a test that failed, `results` prints the end of its output and the command that runs it again. The whole output goes to a
file in the folder FAILED. The last line is "N passed, N failed, N skipped". A run without a test, or one that meson did not
finish, counts as a failure.
"""

import json
import os
import sys

SHOWN = 60  # last lines of a failed test's output


def read(build, name):
    with open(os.path.join(build, "meson-info", f"intro-{name}.json"), encoding="utf-8") as f:
        return json.load(f)


def targets(build, *suites):
    but = set(suites[suites.index("--but") + 1:]) if "--but" in suites else set()
    wanted = set(suites) - but
    files = {t["id"]: t["filename"] for t in read(build, "targets")}
    found = set()
    for test in read(build, "tests"):
        of = {s.split(":")[-1] for s in test["suite"]}
        if of & wanted and not of & but:
            found.update(path for target in test["depends"] for path in files[target])
    print(*sorted(os.path.relpath(path, build) for path in found))
    return 0


def show_failed(test, build, label, folder):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, test["name"] + ".log")
    text = test.get("stdout", "") + test.get("stderr", "")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    print(f"FAILED  {label}: {test['name']} ({test['result']}, {test['duration']:.1f} s)")
    for line in text.splitlines()[-SHOWN:]:
        print(f"        | {line}")
    print(f"        again: meson test -C {os.path.relpath(build)} --no-rebuild -v {test['name']}")
    print(f"        artefacts: {path}")


def results(build, label, folder, status):
    counts, log = {"passed": 0, "failed": 0, "skipped": 0}, os.path.join(build, "meson-logs", "testlog.json")
    tests = []
    if os.path.exists(log):
        with open(log, encoding="utf-8") as f:
            tests = [json.loads(line) for line in f]
    for test in tests:
        test["name"] = test["name"].rsplit(" / ", 1)[-1]
        kind = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}.get(test["result"], "failed")
        counts[kind] += 1
        if kind == "failed":
            show_failed(test, build, label, folder)
        else:
            print(f"{'ok' if kind == 'passed' else kind:7} {label}: {test['name']} ({test['duration']:.1f} s)")
    if not tests or (status != "0" and not counts["failed"]):
        counts["failed"] += 1
        print(f"FAILED  {label}: meson test ended with status {status} after {len(tests)} tests")
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit({"targets": targets, "results": results}[sys.argv[1]](*sys.argv[2:]))
