#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Would the simulation see it? Plants one bug after the other (tests/sim/mutants/*.patch) in a copy of the tree and
plays seeds until one of them shows a violation. A bug that none shows has FAILED, and so has a patch that does not
apply any more. The last line counts. "Worlds: reboots" in a patch's head: of sim-random's other kind. "Test: NAME": no
world shows it, tests/unit/test-NAME has to. "Test: sim-NAME ARGUMENTS": that program of tests/sim has to.

    tests/sim/mutants.py [NAME...]     only these; also those of mutants/unseen, which no early world shows (else: skipped)
    --seeds N                          at most so many each (default 2000)
    --jobs N                           so many programs at a time (default 2)
    --keep DIR                         the copy stays there, built, for the next time
"""

import argparse
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from tree_copy import TOP, TreeCopy, Trouble  # noqa: E402

FOLDER = os.path.join("tests", "sim", "mutants")
UNSEEN = os.path.join(FOLDER, "unseen")
CHUNK = 10  # seeds a program plays before it is asked again
PATIENCE = 120  # seconds of CPU for a chunk: it spins. Not of the clock, which a busy machine lets run out
STANDSTILL = 1200  # seconds of the clock: nothing can be said
VIOLATION = re.compile(r"^seed (\d+): (.*)$", re.MULTILINE)


def names(folder):
    folder = os.path.join(TOP, folder)
    return sorted(n[:-6] for n in os.listdir(folder) if n.endswith(".patch")) if os.path.isdir(folder) else []


class Mutant:
    def __init__(self, name):
        self.name = name
        self.patch = next(os.path.join(TOP, f, name + ".patch") for f in (FOLDER, UNSEEN) if name in names(f))
        with open(self.patch, encoding="utf-8") as f:
            head = f.read().split("\n--- ", 1)[0]
        self.what, _, rest = " ".join(head.split()).partition(" Seen by: ")
        rest, _, self.test = rest.partition(" Test: ")
        self.sees, _, worlds = rest.partition(" Worlds: ")
        self.worlds = ["--" + worlds.strip()] if worlds else []


class Tree(TreeCopy):
    """A copy of the tree, in which one mutant after the other is planted."""

    def patch(self, mutant, back=False):
        command = ["git", "apply", "-p1"] + (["-R"] if back else []) + [mutant.patch]
        done = subprocess.run(command, cwd=self.source, capture_output=True, text=True,
                              env=dict(os.environ, GIT_CEILING_DIRECTORIES=os.path.dirname(self.source)))
        if done.returncode != 0:
            raise Trouble(f"its patch does not apply any more ({(done.stderr.strip() or '?').splitlines()[0]})\n"
                          f"Make the same mistake in the tree as it is now, put 'git diff' under the first lines of\n"
                          f"{os.path.relpath(mutant.patch, TOP)}, and undo it in the tree.")


class Player:
    """One sim-random at work on a chunk of seeds."""

    def __init__(self, tree, worlds, first, count):
        self.first, self.count, self.begin = first, count, time.monotonic()
        self.output = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        self.process = subprocess.Popen(
            [os.path.join(tree.build, "tests", "sim", "sim-random"), *worlds, "--seeds", str(first), str(count), "--go-on"],
            stdout=self.output, stderr=subprocess.STDOUT)
        resource.prlimit(self.process.pid, resource.RLIMIT_CPU, (PATIENCE, PATIENCE + 1))

    def ended(self):
        if self.process.poll() is None and time.monotonic() > self.begin + STANDSTILL:
            raise Trouble(f"seeds {self.first} to {self.first + self.count - 1} came to no end in {STANDSTILL} s: "
                          "a standstill, or a machine too busy to tell")
        return self.process.poll() is not None

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.output.close()

    def found(self):
        """(seed, what it says), or None: nothing so far. It goes on after the first."""
        self.output.seek(0)
        text = self.output.read()
        match = VIOLATION.search(text)
        if match:
            return int(match.group(1)), match.group(2)
        if self.process.poll() in (None, 0):
            return None
        last = text.strip().splitlines()[-1:] or [""]
        if -self.process.returncode == signal.SIGXCPU:
            last = [f"no end after {PATIENCE} s of CPU"]
        return self.first, f"a crash: crash: ended with {self.process.returncode}: {last[0]}"


def play(tree, worlds, seeds):
    """(seed, violation) of the lowest seed that shows one, or None; and how many were played."""
    players, following, played, best = [], 1, 0, None
    try:
        while players or (best is None and following <= seeds):
            while best is None and len(players) < tree.jobs and following <= seeds:
                count = min(CHUNK, seeds + 1 - following)
                players.append(Player(tree, worlds, following, count))
                following += count
            time.sleep(0.02)
            for p in list(players):
                if p not in players:
                    continue
                ended, found = p.ended(), p.found()
                if not ended and not found:
                    continue
                players.remove(p)
                p.stop()
                if not found:
                    played += p.count
                    continue
                played += found[0] - p.first + 1
                if best is None or found[0] < best[0]:
                    best = found
                for later in [q for q in players if q.first > best[0]]:
                    players.remove(later)
                    later.stop()
    finally:
        for p in players:
            p.stop()
    return best, played


def program_of(test):
    name = test.split()[0]
    return f"tests/sim/{name}" if name.startswith("sim-") else f"tests/unit/test-{name}"


def play_test(tree, test):
    """("-", what has failed), or None; and 1."""
    program = program_of(test)
    try:
        done = subprocess.run([os.path.join(tree.build, program)] + test.split()[1:], cwd=tree.source,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=STANDSTILL)
    except subprocess.TimeoutExpired:
        raise Trouble(f"{program} came to no end in {STANDSTILL} s: a standstill, or a machine too busy to tell") from None
    if done.returncode == 0:
        return None, 1
    failed = re.findall(r"^\[  FAILED  \] ([\w-]+)$", done.stdout, re.MULTILINE)
    return ("-", ": ".join([program, ", ".join(sorted(set(failed))) or f"a crash: ended with {done.returncode}"])), 1


def told(found):
    """What a violation is in the table: "INVARIANT: text"; where it was is of no matter, but for a wait in vain."""
    where, _, text = found.partition(": ")
    return f"bound: {where}: {text}" if text.startswith("did not come") else text if text else where


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep")
    options = parser.parse_args()
    for name in options.names:
        if name not in names(FOLDER) + names(UNSEEN):
            parser.error(f"there is no {FOLDER}/{name}.patch")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    directory = options.keep or tempfile.mkdtemp(prefix="vesper-mutants-")
    try:
        return run(Tree(directory, options.jobs), [Mutant(n) for n in options.names or names(FOLDER)], options)
    except Trouble as t:
        print(t)
        print("0 passed, 1 failed, 0 skipped")
        return 1
    finally:
        if not options.keep:
            shutil.rmtree(directory, ignore_errors=True)


def row(*columns):
    print("  ".join(f"{c!s:{w}}" for c, w in zip(columns, (7, 30, 6, 6, 8, 0))).rstrip(), flush=True)


def run_one(tree, mutant, worlds, seeds, test=""):
    """True when it was found (None: the tree as it is, in which nothing may be)."""
    program = program_of(test) if test else "tests/sim/sim-random"
    begin, patched = time.monotonic(), False
    name = mutant.name if mutant else " ".join(["(none)"] + ([test] if test else worlds))
    try:
        if mutant:
            tree.patch(mutant)
            patched = True
        tree.make(program)
        best, played = play_test(tree, test) if test else play(tree, worlds, seeds)
        good = bool(best) if mutant else not best
        row("ok" if good else "FAILED", name, best[0] if best else "-", played,
            f"{time.monotonic() - begin:.1f}", told(best[1]) if best else "no violation")
        if mutant and not good:
            print(f"        ! {mutant.what}\n        ! It was to be seen by: {mutant.sees}")
    except Trouble as t:
        good = False
        row("FAILED", name, "-", 0, f"{time.monotonic() - begin:.1f}", str(t).replace("\n", "\n        ! "))
    finally:
        if patched:
            tree.patch(mutant, back=True)
    return good


def run(tree, mutants, options):
    begin = time.monotonic()
    row("", "mutant", "seed", "played", "seconds", "violation")
    kinds = [k for k in ([], ["--reboots"], ["--events"], ["--notices"], ["--queue"]) if any(m.worlds == k and not m.test for m in mutants)]
    tests = sorted({m.test for m in mutants if m.test})
    passed = sum(run_one(tree, None, worlds, min(options.seeds, 100)) for worlds in kinds)
    passed += sum(run_one(tree, None, [], 1, test) for test in tests)
    total = len(kinds) + len(tests) + len(mutants)
    for mutant in mutants:
        passed += run_one(tree, mutant, mutant.worlds, options.seeds, mutant.test)
    skipped = [] if options.names else names(UNSEEN)
    for name in skipped:
        print(f"skipped {name}: none of the first {options.seeds} worlds shows it ({UNSEEN})")
    print(f"{len(mutants)} mutants in {time.monotonic() - begin:.0f} s")
    print(f"{passed} passed, {total - passed} failed, {len(skipped)} skipped")
    return 0 if passed == total else 1


if __name__ == "__main__":
    sys.exit(main())
