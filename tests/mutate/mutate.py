#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures whether the tests notice a stranger's mistake. Plants one-line mistakes at random places of
agent/, coordinator/ and shared/, one at a time, and runs the tests that reach the place until one fails.

    mutate.py [N] [SEED] [PATH...]   N mistakes (default 40), in these files or folders; SEED is drawn from HEAD by default
    --since COMMITS                  only in lines that the last COMMITS commits changed
    --least M                        more mistakes, until each folder has M; they count in the table of folders alone
    --only FILE:LINE:COLUMN:KIND     only this mistake
    --list                           print the places and end
    --jobs N                         run N programs at a time (default 2)
    --keep DIR                       keep the copy for the next run, in DIR/patches a patch for each mistake, and in
                                     DIR/scratch the output of each test that found one

All mistakes are built into one copy of the tree, each behind a switch. Each unit test and each fixed simulation runs once
without a mistake, which shows the places that it reaches. A mistake is found if a test fails, crashes, or does not end. A
mistake at a place that no test reaches has survived. A leak is no failure here: only the sanitized build of suite unit finds it.

equivalent.txt lists mistakes that change nothing. They count neither as found nor as survived.

The run passes if the tests find 85 % of all mistakes, and 75 % of those in each folder that has 8 or more. The last line counts
these checks.
"""

import argparse
import collections
import concurrent.futures
import difflib
import json
import os
import random
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import places  # noqa: E402
from tree_copy import TOP, TreeCopy, Trouble  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
EQUIVALENT = os.path.join(HERE, "equivalent.txt")
ROOMS = ("agent", "coordinator", "shared")
PLACES_MAX = 65536  # as in mutant.c
FLOOR, ROOM_FLOOR, ROOM_LEAST = 85, 75, 8  # percent of all mistakes; percent in a folder that has at least so many
EQUIVALENT_MOST = 5  # percent of a sample
MEMORY = 8 << 30  # bytes of address space that a test may have
SUITES = ("unit", "sim")  # in this order
NOT_SUITES = {"fuzz", "alloc", "alloc-short", "alloc-long", "random"}
SKIPPED = 77


def read(path):
    with open(path, "rb") as f:
        return f.read()


def git(*arguments):
    return subprocess.run(["git", "-C", TOP, *arguments], check=True, capture_output=True, text=True).stdout


# -- which mistakes ----------------------------------------------------------------------------------------------

def changed_lines(commits):
    """Returns the lines that the last commits changed: file -> set of line numbers. A shorter history counts whole."""
    base = f"HEAD~{commits}"
    if subprocess.run(["git", "-C", TOP, "rev-parse", "-q", "--verify", base], capture_output=True).returncode != 0:
        base = git("hash-object", "-t", "tree", "/dev/null").strip()
    lines, file = collections.defaultdict(set), None
    for line in git("diff", "-U0", "--no-color", base, "--", *ROOMS).splitlines():
        if line.startswith("+++ "):
            file = line[6:]
        found = re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line)
        if found:
            first = int(found[1])
            lines[file].update(range(first, first + int(found[2] or 1)))
    return lines


def find_in_file(file, arguments, tree):
    os.chdir(tree.build)
    path = os.path.join(tree.source, file)
    return places.find(file, read(path), path, arguments)


def find_places(tree, paths, lines):
    """Returns the places of the files in paths (all rooms, if there are none), in lines (file -> set), if not None."""
    with open(os.path.join(tree.build, "compile_commands.json"), encoding="utf-8") as f:
        commands = json.load(f)
    files = {}
    for command in commands:
        file = os.path.relpath(os.path.join(command["directory"], command["file"]), tree.source)
        wanted = not paths or any(file == p or file.startswith(p + "/") for p in paths)
        if file.split("/")[0] in ROOMS and wanted and (lines is None or file in lines) and os.path.exists(os.path.join(TOP, file)):
            files[file] = [w for w in shlex.split(command["command"]) if w.startswith(("-I", "-D", "-std"))]
    with concurrent.futures.ProcessPoolExecutor(tree.jobs) as pool:
        found = pool.map(find_in_file, files.keys(), files.values(), [tree] * len(files), chunksize=4)
        found = [p for of_file in found for p in of_file]
    if lines is not None:
        found = [p for p in found if lines[p.file].intersection(range(p.line, p.last_line + 1))]
    return found


def read_equivalents():
    """Returns the rows of equivalent.txt: (file, source line, mistake) -> reason."""
    with open(EQUIVALENT, encoding="utf-8") as f:
        rows = [line.rstrip("\n").split("\t") for line in f if line.strip() and not line.startswith("#")]
    return {tuple(row[:3]): row[3] for row in rows}


def switch_contents():
    """Returns what the copy needs for its switches, in shared/base: file -> bytes."""
    base = os.path.join("shared", "base")
    meson = os.path.join(base, "meson.build")
    contents = {os.path.join(base, name): read(os.path.join(HERE, name)) for name in ("mutant.c", "mutant.h")}
    contents[meson] = read(os.path.join(TOP, meson)).replace(b"files(\n", b"files(\n    'mutant.c',\n", 1)
    return contents


class Sample:
    """The mistakes of one run: number -> place. The numbers in added are above the count that was asked for."""

    def __init__(self, found, count, seed, least=0):
        self.rest = sorted(found, key=lambda p: (p.file, p.order(), p.kind))
        random.Random(seed).shuffle(self.rest)
        self.rest.reverse()
        self.places, self.sources, self.added = {}, {}, set()
        self.count, self.least, self.following = min(count, len(self.rest), PLACES_MAX - 1), least, 1
        self.fill()

    def add(self, place):
        """Plants a mistake, unless it overlaps another one. Returns whether it did."""
        if self.following >= PLACES_MAX or any(p.file == place.file and p.overlaps(place) for p in self.places.values()):
            return False
        self.places[self.following] = place
        self.following += 1
        return True

    def fill(self):
        while len(self.places) - len(self.added) < self.count and self.rest and self.following < PLACES_MAX:
            self.add(self.rest.pop())
        planted = collections.Counter(p.folder() for p in self.places.values())
        for i in range(len(self.rest) - 1, -1, -1):
            if planted[self.rest[i].folder()] < self.least and self.add(place := self.rest.pop(i)):
                planted[place.folder()] += 1
                self.added.add(self.following - 1)

    def source(self, file):
        if file not in self.sources:
            self.sources[file] = read(os.path.join(TOP, file))
        return self.sources[file]

    def contents(self):
        """Returns the files of the copy that differ from the tree's."""
        by_file = collections.defaultdict(list)
        for number, place in self.places.items():
            by_file[place.file].append((number, place))
        return switch_contents() | {file: places.guard(self.source(file), numbered) for file, numbered in by_file.items()}

    def patch(self, place):
        before = self.source(place.file)
        return "".join(difflib.unified_diff(
            before.decode().splitlines(True), place.mistake(before).decode().splitlines(True), "a/" + place.file, "b/" + place.file))

    def drop_broken(self, output):
        """Drops the places that the compiler refuses, and draws others. Returns the dropped ones."""
        dropped = set()
        for file, line in set(re.findall(r"^\S*?((?:%s)/\S+\.c):(\d+):\d+: error: " % "|".join(ROOMS), output, re.MULTILINE)):
            of_file = {n for n, p in self.places.items() if p.file == file}
            dropped |= {n for n in of_file if self.places[n].line <= int(line) <= self.places[n].last_line} or of_file
        self.added -= dropped
        places = [self.places.pop(n) for n in sorted(dropped)]
        self.fill()
        return places


# -- tests -------------------------------------------------------------------------------------------------------

class Test:
    def __init__(self, name, suite, command, env, workdir, needs):
        self.name, self.suite, self.command, self.env, self.workdir, self.needs = name, suite, command, env, workdir, needs
        self.seconds, self.reached = 0.0, b""

    def limit(self):
        return 5 * self.seconds + 10


class Run:
    """One test program that runs once, with its children."""

    lock, groups, stopped = threading.Lock(), set(), False

    def __init__(self, test, scratch, limit, **env):
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(dir=scratch) as folder, open(os.path.join(folder, "output"), "w+b") as output:
            if Run.stopped:
                raise Trouble("the run was stopped")
            process = subprocess.Popen(test.command, cwd=test.workdir, start_new_session=True, stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=subprocess.STDOUT,
                                       env={**os.environ, "MALLOC_PERTURB_": "165", **test.env, "TMPDIR": folder, **env})
            with Run.lock:
                Run.groups.add(process.pid)
                if Run.stopped:
                    Run.kill(process.pid)
            resource.prlimit(process.pid, resource.RLIMIT_AS, (MEMORY, MEMORY))
            timer = threading.Timer(limit, Run.kill, [process.pid])
            timer.start()
            _, status, usage = os.wait4(process.pid, 0)
            timer.cancel()
            process.returncode = self.code = os.waitstatus_to_exitcode(status)
            Run.kill(process.pid)
            with Run.lock:
                Run.groups.discard(process.pid)
            self.seconds, self.cpu = time.monotonic() - begin, usage.ru_utime + usage.ru_stime
            output.seek(0)
            self.output = output.read().decode(errors="replace")
        self.hung = self.code == -signal.SIGKILL and self.seconds >= limit

    @staticmethod
    def kill(group):
        try:
            os.killpg(group, signal.SIGKILL)
        except ProcessLookupError:
            pass

    @staticmethod
    def stop(number=0, _frame=None):
        """Ends all tests, and the program if a signal asks for that."""
        with Run.lock:
            Run.stopped = True
            for group in Run.groups:
                Run.kill(group)
        if number:
            sys.exit(128 + number)

    def why(self):
        """Returns how the test failed, in a few words."""
        if self.hung:
            return f"no end after {self.seconds:.0f} s"
        failed = re.findall(r"^\[  FAILED  \] (?!.*test\(s\))(.+)$", self.output, re.MULTILINE)
        if failed:
            return failed[0]
        if self.code < 0:
            return " ".join([signal.Signals(-self.code).name] + re.findall(r"Assertion `.*' failed", self.output)[-1:])
        return f"status {self.code}: {(self.output.strip().splitlines() or [''])[-1][:100]}"


def read_info(build, name):
    with open(os.path.join(build, "meson-info", f"intro-{name}.json"), encoding="utf-8") as f:
        return json.load(f)


def read_tests(build):
    """Returns the tests of suites unit and sim that are programs of the build, or scripts that run some, and that draw nothing at
    random."""
    made = {path: t["type"] for t in read_info(build, "targets") for path in t["filename"]}
    tests = []
    for entry in read_info(build, "tests"):
        suites = {s.split(":")[-1] for s in entry["suite"]}
        suite = next((s for s in SUITES if s in suites), None)
        folder = entry["workdir"] or build
        needs = [path for path in (os.path.join(folder, word) for word in entry["cmd"]) if path in made]
        if suite and not suites & NOT_SUITES and "executable" in [made[path] for path in needs]:
            tests.append(Test(entry["name"], suite, entry["cmd"], entry["env"], folder, needs))
    return tests


class Player:
    """Builds the copy, and runs its tests."""

    def __init__(self, tree, sample, jobs, scratch):
        self.tree, self.sample, self.jobs, self.scratch = tree, sample, jobs, scratch
        self.tests = read_tests(tree.build)

    def build(self):
        # A test names the programs that it starts in its environment.
        named = {path for t in self.tests for path in (*t.needs, *t.env.values()) if path.startswith(self.tree.build + os.sep)}
        targets = sorted(os.path.relpath(path, self.tree.build) for path in named)
        while True:
            done = subprocess.run(["ninja", "-C", self.tree.build, f"-j{self.jobs}", "-k0", *targets], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
            if done.returncode == 0:
                return
            dropped = self.sample.drop_broken(done.stdout)
            if not dropped:
                raise Trouble("the copy does not build:\n" + "\n".join(done.stdout.splitlines()[-25:]))
            for place in dropped:
                print(f"another one for {place.id()}, which does not compile behind a switch: {shorten(place.what)}")
            self.tree.update(self.sample.contents())

    def measure(self, test):
        """Runs a test without a mistake: its time, and the places that it reaches."""
        path = os.path.join(self.scratch, f"{test.suite}-{test.name}.reached")
        with open(path, "wb") as f:
            f.truncate(PLACES_MAX)
        run = Run(test, self.scratch, 1200, VESPER_MUTANTS_REACHED=path)
        test.seconds, test.reached = run.seconds, read(path)
        return run

    def measure_all(self, pool):
        tests = sorted(self.tests, key=lambda t: SUITES.index(t.suite), reverse=True)  # simulations are the longest
        runs = dict(zip(tests, pool.map(self.measure, tests)))
        failed = [(t, r) for t, r in runs.items() if r.code not in (0, SKIPPED)]
        if failed:
            raise Trouble("".join(f"{t.suite}/{t.name} fails without a mistake ({r.why()})\n" + "".join(
                f"        | {line}\n" for line in r.output.splitlines()[-20:]) for t, r in failed))
        self.tests = [t for t in tests if runs[t].code == 0]
        return sum(r.cpu for r in runs.values())

    def play(self, number):
        """Returns (the test that found the mistake or None, how, number of tests that reach it, CPU seconds)."""
        reaching = sorted((t for t in self.tests if t.reached[number]), key=lambda t: (SUITES.index(t.suite), t.seconds))
        cpu = 0.0
        for test in reaching:
            run = Run(test, self.scratch, test.limit(), VESPER_MUTANT=str(number))
            cpu += run.cpu
            if run.code != 0:
                name = self.sample.places[number].file_name() + ".log"
                with open(os.path.join(self.scratch, name), "w", encoding="utf-8") as f:
                    f.write(run.output)
                return test, run.why(), len(reaching), cpu
        return None, "", len(reaching), cpu


# -- the report --------------------------------------------------------------------------------------------------

def shorten(text, most=100):
    return text if len(text) <= most else text[:most - 3] + "..."


def print_table(title, rows):
    """rows: name, and for each mistake under it whether it was found."""
    print(f"\n{title:32}  planted  found  percent")
    for name, results in sorted(rows.items()):
        print(f"{name:32}  {len(results):7}  {sum(results):5}  {percent(results):6.0f}%")


def percent(results):
    return 100 * sum(results) / len(results) if results else 100


def check(good, text):
    print(f"{'ok     ' if good else 'FAILED '} mutate: {text}")
    return bool(good)


def play_all(player, pool, equivalents):
    """Plays each mistake and prints what became of it. Returns number -> found, of those that are not equivalent."""
    sample, results, cpu = player.sample, {}, 0.0
    futures = {}
    for number, place in sample.places.items():
        reason = equivalents.get((place.file, place.text, place.what))
        if reason:
            print(f"same      {place.id()}  {shorten(place.what)}\n            {reason}")
        else:
            futures[pool.submit(player.play, number)] = number
    for future in concurrent.futures.as_completed(futures):
        number = futures[future]
        place, (test, why, reaching, seconds) = sample.places[number], future.result()
        cpu += seconds
        results[number] = test is not None
        how = f"{test.suite}/{test.name}: {why}" if test else f"{reaching} tests reach it" if reaching else "reached by no test"
        print(f"{'found   ' if test else 'SURVIVED'}  {place.id()}  {shorten(place.what)}\n            {how}", flush=True)
    return results, cpu


def print_survivors(sample, results):
    lost = [sample.places[n] for n in sorted(results) if not results[n]]
    for place in sorted(lost, key=lambda p: (p.file, p.start)):
        print(f"\nsurvivor {place.id()}")
        changed = [line for line in sample.patch(place).splitlines()[2:] if line[:1] in "+-"]
        print("\n".join("    " + line for line in changed))
        print(f"    command: python3 tests/mutate/mutate.py --only {place.id()}")


def report(sample, results, checked):
    by_room, by_kind = collections.defaultdict(list), collections.defaultdict(list)
    for number, found in results.items():
        place = sample.places[number]
        by_room[place.folder()].append(found)
        by_kind[place.kind].append(found)
    print_survivors(sample, results)
    print_table("folder", by_room)
    print_table("kind", by_kind)
    every, same = [found for n, found in results.items() if n not in sample.added], len(sample.places) - len(results)
    added = [found for n, found in results.items() if n in sample.added]
    print(f"\n{len(sample.places) - len(sample.added)} mistakes: {sum(every)} found, {len(every) - sum(every)} survived, {same} change nothing"
          + (f"; {len(added)} more in small folders: {sum(added)} found" if added else ""))
    if not checked:
        return [all(every)]
    good = [check(percent(every) >= FLOOR, f"{percent(every):.0f} % of all mistakes are found (floor {FLOOR} %)")]
    good.append(check(same <= max(2, len(sample.places) * EQUIVALENT_MOST / 100),
                      f"{same} of {len(sample.places)} mistakes change nothing (at most 2, or {EQUIVALENT_MOST} %)"))
    for room, found in sorted(by_room.items()):
        if len(found) >= ROOM_LEAST:
            good.append(check(percent(found) >= ROOM_FLOOR, f"{percent(found):.0f} % are found in {room} (floor {ROOM_FLOOR} %)"))
    return good


def write_patches(sample, folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for place in sample.places.values():
        with open(os.path.join(folder, place.file_name() + ".patch"), "w", encoding="utf-8") as f:
            f.write(sample.patch(place))


def choose(options, tree):
    lines = changed_lines(options.since) if options.since else None
    paths = [options.only.split(":")[0]] if options.only else [p.rstrip("/") for p in options.paths]
    found = find_places(tree, paths, lines)
    if options.only:
        found = [p for p in found if p.id() == options.only]
    if not found:
        raise Trouble("no place for a mistake was found")
    print(f"{len(found)} places for a mistake, seed {options.seed}", flush=True)
    return Sample(found, options.count, options.seed, options.least), found


def run(options, directory):
    begin, scratch = time.monotonic(), os.path.join(directory, "scratch")
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch)
    # Without debug information ccache knows a file of the tree in each copy, and programs are linked sooner.
    tree = TreeCopy(directory, options.jobs, ["-Ddebug=false"], switch_contents())
    sample, found = choose(options, tree)
    if options.list:
        print("\n".join(f"{p.id()}  {p.what}" for p in found))
        return [True]
    tree.update(sample.contents())
    player = Player(tree, sample, options.jobs, scratch)
    player.build()
    write_patches(sample, os.path.join(directory, "patches"))
    built = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        cpu = player.measure_all(pool)
        measured = time.monotonic()
        print(f"{len(player.tests)} tests pass without a mistake. Seconds: {built - begin:.0f} to build, "
              f"{measured - built:.0f} to run them ({cpu:.0f} of CPU)", flush=True)
        results, cpu = play_all(player, pool, read_equivalents())
    good = report(sample, results, not options.only)
    each, end = max(1, len(results)), time.monotonic()
    print(f"{end - begin:.0f} s in all; {(end - measured) / each:.1f} s and {cpu / each:.1f} s of CPU for a mistake")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arguments", nargs="*", metavar="[N] [SEED] [PATH...]")
    parser.add_argument("--since", type=int, metavar="COMMITS")
    parser.add_argument("--least", type=int, default=0, metavar="M")
    parser.add_argument("--only", metavar="FILE:LINE:COLUMN:KIND")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", metavar="DIR")
    options = parser.parse_args()
    numbers = []
    while options.arguments and options.arguments[0].isdigit() and len(numbers) < 2:
        numbers.append(int(options.arguments.pop(0)))
    options.paths = options.arguments
    options.count = numbers[0] if numbers else 40
    options.seed = numbers[1] if len(numbers) > 1 else int(git("rev-parse", "HEAD")[:8], 16)
    for path in options.paths:
        if not os.path.exists(os.path.join(TOP, path)):
            parser.error(f"there is no {path}")
    signal.signal(signal.SIGTERM, Run.stop)
    signal.signal(signal.SIGINT, Run.stop)
    directory = os.path.abspath(options.keep or tempfile.mkdtemp(prefix="vesper-mutate-"))
    try:
        good = run(options, directory)
        print(f"{sum(good)} passed, {len(good) - sum(good)} failed, 0 skipped")
        return 0 if all(good) else 1
    except Trouble as t:
        print(f"FAILED  mutate: {t}\n0 passed, 1 failed, 0 skipped")
        return 1
    finally:
        Run.stop()
        if not options.keep:
            shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
