#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""coverage.py BUILD [--uncovered [PART...] | --argued FILE]: what the tests that ran in BUILD (meson setup -Db_coverage=true)
have executed of the daemons' rooms, by gcov: lines and functions per room and file. --uncovered lists each stretch
of lines that none of them reached, of files whose names contain a PART. --argued fails when FILE does not say of a
stretch why it is not reached, or says so of one that is. A line of FILE:

    agent/agent.c | on_link | the first line of the stretch, as it stands there | why no test reaches it
"""

import collections
import json
import pathlib
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
ROOMS = ("agent", "coordinator", "shared/kube", "shared/drain")


class File:
    def __init__(self):
        self.lines = collections.Counter()      # line -> executions
        self.functions = collections.Counter()  # name -> executions
        self.owner = {}                         # line -> name of its function

    def share(self):
        return sum(1 for n in self.lines.values() if n > 0), len(self.lines)

    def gaps(self):
        """Stretches of lines that were not executed; lines without code do not end one."""
        start = last = None
        for line in sorted(self.lines):
            if self.lines[line] == 0:
                start, last = start or line, line
            elif start:
                yield start, last
                start = None
        if start:
            yield start, last


def read(build):
    files = collections.defaultdict(File)
    objects = [str(p) for room in ROOMS for p in sorted((build / room).rglob("*.gcda"))]
    if not objects:
        sys.exit(f"{build}: no coverage data of {', '.join(ROOMS)}: was it set up with -Db_coverage=true, and have tests run?")
    for i in range(0, len(objects), 40):
        out = subprocess.run(["gcov", "--json-format", "--stdout", *objects[i:i + 40]], cwd=build, check=True,
                             capture_output=True, text=True).stdout
        for text in filter(str.strip, out.splitlines()):
            for entry in json.loads(text)["files"]:
                path = (build / entry["file"]).resolve()
                if not path.is_relative_to(TOP) or path.suffix != ".c":
                    continue
                f = files[str(path.relative_to(TOP))]
                for line in entry["lines"]:
                    f.lines[line["line_number"]] += line["count"]
                    f.owner[line["line_number"]] = line.get("function_name", "")
                for function in entry["functions"]:
                    f.functions[function["name"]] += function["execution_count"]
    return {name: f for name, f in files.items() if name.startswith(tuple(room + "/" for room in ROOMS))}


def percent(hit, all_):
    return f"{100 * hit / all_:5.1f} %" if all_ else "      -"


def table(files):
    for room in ROOMS:
        inside = {n: f for n, f in sorted(files.items()) if n.startswith(room + "/")}
        hit = sum(f.share()[0] for f in inside.values())
        count = sum(f.share()[1] for f in inside.values())
        print(f"{percent(hit, count)}  {hit:6d} of {count:6d} lines  {room}/")
        for name, f in inside.items():
            silent = [n for n, executions in f.functions.items() if executions == 0]
            note = f"  never called: {', '.join(silent)}" if silent else ""
            print(f"{percent(*f.share())}  {f.share()[0]:6d} of {f.share()[1]:6d}           {name}{note}")
    hit = sum(f.share()[0] for f in files.values())
    count = sum(f.share()[1] for f in files.values())
    print(f"{percent(hit, count)}  {hit:6d} of {count:6d} lines  in all")


def uncovered(files, names):
    for name, f in sorted(files.items()):
        if names and not any(n in name for n in names):
            continue
        text = (TOP / name).read_text(encoding="utf-8").splitlines()
        for start, end in f.gaps():
            print(f"{name}:{start}" + (f"-{end}" if end > start else ""))
            for line in range(start, end + 1):
                print(f"    {'#' if f.lines.get(line, 1) == 0 else ' '} {text[line - 1]}")


def read_argued(path):
    entries = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split(" | ")]
        if len(fields) != 4 or not all(fields):
            sys.exit(f"{path}:{number}: not FILE | FUNCTION | LINE | WHY")
        entries[tuple(fields[:3])] = number
    return entries


def check_argued(files, path):
    entries = read_argued(path)
    unused = dict(entries)
    silent = 0
    for name, f in sorted(files.items()):
        text = (TOP / name).read_text(encoding="utf-8").splitlines()
        for start, _ in f.gaps():
            key = name, f.owner[start], text[start - 1].strip()
            unused.pop(key, None)
            if key not in entries:
                silent += 1
                print(f"{name}:{start}: no test reaches this, and {path.name} does not say why: {' | '.join(key)}")
    for key, number in unused.items():
        print(f"{path.name}:{number}: a test reaches this now, or it is gone; take the line out: {' | '.join(key)}")
    return silent == 0 and not unused


def main():
    mode = sys.argv[2] if len(sys.argv) > 2 else None
    if len(sys.argv) < 2 or mode not in (None, "--uncovered", "--argued") or (mode == "--argued" and len(sys.argv) != 4):
        sys.exit(__doc__)
    files = read(pathlib.Path(sys.argv[1]).resolve())
    if mode == "--uncovered":
        uncovered(files, sys.argv[3:])
    elif mode == "--argued":
        sys.exit(0 if check_argued(files, pathlib.Path(sys.argv[3])) else 1)
    else:
        table(files)


if __name__ == "__main__":
    main()
