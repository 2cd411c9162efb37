# SPDX-License-Identifier: Apache-2.0
"""Plays the cases of the suites e2e and manifests, prints each with its figures, and keeps the logs of each that fails.

A case is a function (bed, figures) whose docstring is its sentence. It passes unless it raises an exception. No case is retried.
"""

import json
import os
import shlex
import shutil
import sys
import time
import traceback

from daemons import TOP, build_directory, procs, program, temporary_directory

sys.path.append(os.path.join(TOP, "tests"))

import promises  # noqa: E402
from world import Figures  # noqa: E402

OBJECTS = ("/api/v1/nodes", "/api/v1/pods", "/api/v1/events", "/apis/vesper.sh/v1alpha1/nodeclaims")
LOG_LINES = 50  # of each daemon of a case that failed


class Suite:
    """name: the folder below tests/. cases: all of them, in their order. make_bed(directory): a context manager whose value is
    the first argument of each case; its attribute `world` is a World. skip(case): why this machine cannot play the case, or None."""
    def __init__(self, name, cases, make_bed, skip=lambda case: None):
        self.name, self.cases, self.make_bed, self.skip = name, cases, make_bed, skip
        self.failed_directory = os.path.join(build_directory(), "failed", name)

    def main(self, usage):
        procs.exit_on_signals()
        arguments = sys.argv[1:]
        if arguments == ["--help"]:
            print(usage)
            return 0
        if arguments == ["--list"]:
            for case in self.cases:
                print(f"{case.__name__:24} {case.__doc__}")
            return 0
        try:
            cases = self._chosen(arguments)
        except ValueError as e:
            print(f"{e}; --list shows the cases", file=sys.stderr)
            return 2
        missing = [p for p in map(program, ("vesper-agent", "vesper-coordinator", "vesperctl")) if not os.access(p, os.X_OK)]
        if missing:
            print(f"{missing[0]} has not been built\n0 passed, {len(cases)} failed, 0 skipped")
            return 1
        shutil.rmtree(self.failed_directory, ignore_errors=True)
        results = self._run(cases)
        print(f"{results.count('ok')} passed, {results.count('FAILED')} failed, {results.count('skipped')} skipped")
        return 1 if "FAILED" in results else 0

    def _chosen(self, arguments):
        """Raises ValueError for a name or a pattern that stands for no case."""
        if arguments == ["--promises"]:
            by_name = {case.__name__: case for case in self.cases}
            unknown = [name for name in promises.chosen(self.name) if name not in by_name]
            if unknown:
                raise ValueError(f"tests/promises.py names cases that tests/{self.name} does not have: {', '.join(unknown)}")
            return [case for case in self.cases if case.__name__ in promises.chosen(self.name)]
        # The whole name of a case stands for that case alone.
        matches = {a: [c for c in self.cases if a == c.__name__] or [c for c in self.cases if a in c.__name__ or a in c.__doc__]
                   for a in arguments}
        unknown = [a for a, found in matches.items() if not found]
        if unknown:
            raise ValueError(f"no case of {self.name} has this in its name or its sentence: {', '.join(unknown)}")
        return [c for c in self.cases if not arguments or any(c in found for found in matches.values())]

    def _run(self, cases):
        results = []
        with temporary_directory(f"vesper-{self.name}") as directory:
            os.chmod(directory, 0o755)
            with self.make_bed(directory) as bed:
                print(f"control plane, kwok and moto up after {bed.world.cluster.seconds['start']:.1f} s", flush=True)
                for case in cases:
                    why = self.skip(case)
                    if why:
                        print(f"skipped {self.name}: {case.__doc__}: {why}", flush=True)
                    results.append("skipped" if why else self._play(case, bed))
        return results

    def _play(self, case, bed):
        figures, begin, trouble, mark = Figures(), time.time(), None, bed.world.audit.mark()
        try:
            case(bed, figures)
        except Exception as e:  # pylint: disable=broad-except
            spots = " < ".join(f"{os.path.basename(f.filename)}:{f.lineno}" for f in reversed(traceback.extract_tb(e.__traceback__)))
            trouble = f"{type(e).__name__}: {e}\n({spots})"
        word = "FAILED" if trouble else "ok"
        print(f"{word:7} {self.name}: {case.__doc__} ({time.time() - begin:.1f} s)")
        for line in figures.shown:
            print(f"          {line}")
        if trouble:
            self._explain(case, bed, trouble, begin, mark)
        sys.stdout.flush()
        try:
            bed.clean()
        except Exception as e:  # pylint: disable=broad-except
            print(f"FAILED  {self.name}: {case.__name__} left the cluster in a state that cannot be cleaned up\n        ! {e!r}", flush=True)
            word = "FAILED"
        return word

    def _explain(self, case, bed, trouble, begin, mark):
        """Prints why the case failed and how to play it again, and keeps what it has written."""
        for line in trouble.splitlines():
            print(f"        ! {line}")
        again = [os.path.join("tests", self.name, "run.py"), case.__name__]
        print(f"        again: VESPER_BUILD={shlex.quote(build_directory())} python3 {shlex.join(again)}")
        print(f"        artefacts: {self._keep(case, bed.world, begin, mark)}")
        for daemon in bed.world.daemons:
            for line in daemon.tail(LOG_LINES).splitlines():
                print(f"        | {line}")

    def _keep(self, case, world, begin, mark):
        """Copies each file that the case has written, the logs of the control plane, and the objects. Returns the folder."""
        place = os.path.join(self.failed_directory, case.__name__)
        os.makedirs(place, exist_ok=True)
        try:
            for entry in os.scandir(world.directory):
                if entry.is_file() and entry.stat().st_mtime >= begin - 1 and entry.path != world.audit.path:
                    shutil.copy2(entry.path, place)
            shutil.copytree(os.path.join(world.cluster.directory, "logs"), os.path.join(place, "control-plane"), dirs_exist_ok=True)
            world.audit.copy(mark, os.path.join(place, "audit.log"))
            with open(os.path.join(place, "objects.json"), "w", encoding="utf-8") as f:
                json.dump({path: world.admin.get(path)["items"] for path in OBJECTS}, f, indent=1)
        except Exception as e:  # pylint: disable=broad-except
            print(f"        not all of its files could be kept: {e!r}")
        return place
