#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""meson-results.py BUILD LABEL FAILED: prints what the last `meson test -C BUILD` found, and counts it.

Prints a line for each test, then the end of the output of each test that failed, with the command that plays it again. Writes the
whole output to a file in the folder FAILED. The last line is "N passed, N failed, N skipped". A run without a test has failed.
"""

import json
import os
import sys

SHOWN = 60  # lines of a failed test's output


def failed(test, build, label, folder):
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


def main():
    build, label, folder = sys.argv[1:]
    with open(os.path.join(build, "meson-logs", "testlog.json"), encoding="utf-8") as f:
        tests = [json.loads(line) for line in f]
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for test in tests:
        test["name"] = test["name"].rsplit(" / ", 1)[-1]
        kind = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}.get(test["result"], "failed")
        counts[kind] += 1
        if kind == "failed":
            failed(test, build, label, folder)
        else:
            print(f"{'ok' if kind == 'passed' else kind:7} {label}: {test['name']} ({test['duration']:.1f} s)")
    if not tests:
        counts["failed"] = 1
        print(f"FAILED  {label}: no test ran")
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
