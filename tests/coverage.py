#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""coverage.py BUILD [--uncovered [PART...]]: what the tests that ran in BUILD (meson setup -Db_coverage=true) have
executed of what users run, by gcov: lines and functions per room (a folder) and file, main() included. Fails when a
room is below its floor. --uncovered lists each stretch of lines that none of them reached instead, of files whose
names contain a PART.
"""

import collections
import json
import pathlib
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
PARTS = ("agent", "coordinator", "shared")
FLOOR = 95  # percent of the lines of a room
# Rooms with a floor of their own: percent, and why it is that.
FLOORS = {
    "coordinator/ctl": (90, "what verbs say of an API server that fails in the middle"),
    "coordinator/repair": (92, "want of memory"),
    "coordinator/webhook": (90, "want of memory, and connections that outlive a certificate by minutes"),
}


class File:
    def __init__(self):
        self.lines = collections.Counter()      # line -> executions
        self.functions = collections.Counter()  # name -> executions

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
    if not any(build.rglob("*.gcda")):
        sys.exit(f"{build}: no coverage data: was it set up with -Db_coverage=true, and have tests run?")
    # Not the .gcda: a program that no test has started has none, and counts. Without its .o it is of a file that has gone.
    objects = [str(p) for part in PARTS for p in sorted((build / part).rglob("*.gcno")) if p.with_suffix(".o").exists()]
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
                for function in entry["functions"]:
                    f.functions[function["name"]] += function["execution_count"]
    return {name: f for name, f in files.items() if name.startswith(tuple(part + "/" for part in PARTS))}


def percent(hit, all_):
    return f"{100 * hit / all_:5.1f} %" if all_ else "      -"


def count(files):
    return sum(f.share()[0] for f in files), sum(f.share()[1] for f in files)


def room_of(name):
    return str(pathlib.PurePath(name).parent)


def print_files(files):
    for name, f in sorted(files.items()):
        silent = [n for n, executions in f.functions.items() if executions == 0]
        note = f"  never called: {', '.join(silent)}" if silent else ""
        print(f"{percent(*f.share())}  {f.share()[0]:6d} of {f.share()[1]:6d}  {name}{note}")


def print_rooms(files):
    """The table of rooms; whether each stands at its floor or above."""
    rooms = collections.defaultdict(list)
    for name, f in files.items():
        rooms[room_of(name)].append(f)
    good = True
    for room, inside in sorted(rooms.items()):
        hit, all_ = count(inside)
        floor, why = FLOORS.get(room, (FLOOR, ""))
        low = 100 * hit < floor * all_
        good = good and not low
        print(f"{percent(hit, all_)}  {hit:6d} of {all_:6d}  floor {floor} %  {room}" + (f" ({why})" if why else "") +
              ("  BELOW ITS FLOOR" if low else ""))
    for room in FLOORS.keys() - rooms.keys():
        good = False
        print(f"{room}: a floor of its own, and no such room")
    print(f"{percent(*count(files.values()))}  {'%6d of %6d' % count(files.values())}  in all")
    return good


def uncovered(files, names):
    for name, f in sorted(files.items()):
        if names and not any(n in name for n in names):
            continue
        text = (TOP / name).read_text(encoding="utf-8").splitlines()
        for start, end in f.gaps():
            print(f"{name}:{start}" + (f"-{end}" if end > start else ""))
            for line in range(start, end + 1):
                print(f"    {'#' if f.lines.get(line, 1) == 0 else ' '} {text[line - 1]}")


def main():
    mode = sys.argv[2] if len(sys.argv) > 2 else None
    if len(sys.argv) < 2 or mode not in (None, "--uncovered"):
        sys.exit(__doc__)
    files = read(pathlib.Path(sys.argv[1]).resolve())
    if mode == "--uncovered":
        uncovered(files, sys.argv[3:])
        return
    print_files(files)
    print()
    if not print_rooms(files):
        sys.exit("a room is below its floor: coverage.py BUILD --uncovered ROOM shows which lines no test reaches")


if __name__ == "__main__":
    main()
