#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""targets.py BUILD SUITE... [--but SUITE...]: prints what ninja has to make so that `meson test -C BUILD` can run the tests of
these suites which are of no suite behind --but. Without a SUITE, nothing is printed."""

import json
import os
import sys


def read(build, name):
    with open(os.path.join(build, "meson-info", f"intro-{name}.json"), encoding="utf-8") as f:
        return json.load(f)


def main():
    build, *suites = sys.argv[1:]
    suites, but = suites[:suites.index("--but")], set(suites[suites.index("--but") + 1:]) if "--but" in suites else set()
    files = {t["id"]: t["filename"] for t in read(build, "targets")}
    wanted = set()
    for test in read(build, "tests"):
        of = {s.split(":")[-1] for s in test["suite"]}
        if of & set(suites) and not of & but:
            wanted.update(path for target in test["depends"] for path in files[target])
    print(*sorted(os.path.relpath(path, build) for path in wanted))
    return 0


if __name__ == "__main__":
    sys.exit(main())
