# SPDX-License-Identifier: Apache-2.0
"""A copy of the tree in which mistakes are planted, for sim/mutants.py and mutate/mutate.py."""

import os
import shutil
import subprocess

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Trouble(Exception):
    """The text that the run prints instead of a result."""


class TreeCopy:
    """A copy of what git tracks, as it is in the working folder, and one build folder beside it. A copy that is there
    already is brought up to date: only what has changed is compiled again."""

    def __init__(self, directory, jobs, options=(), contents=None):
        self.source, self.build, self.jobs = os.path.join(directory, "source"), os.path.join(directory, "build"), jobs
        self.update(contents or {})
        if not os.path.exists(os.path.join(self.build, "build.ninja")):
            self.run(["meson", "setup", *options, self.build, self.source])

    def update(self, contents):
        """Brings the copy up to date. contents: file -> bytes, of files that differ from the tree's, or that only the copy has."""
        names = subprocess.run(["git", "-C", TOP, "ls-files", "-z"], check=True, capture_output=True).stdout
        kept = set()
        for name in [*filter(None, names.decode().split("\0")), *contents]:
            at, to = os.path.join(TOP, name), os.path.join(self.source, name)
            if name in contents:
                text = contents[name]
            elif os.path.isfile(at) and not os.path.islink(at):
                with open(at, "rb") as f:
                    text = f.read()
            else:
                continue
            kept.add(to)
            if not holds(to, text):
                os.makedirs(os.path.dirname(to), exist_ok=True)
                with open(to, "wb") as f:
                    f.write(text)
        for folder, _, files in os.walk(self.source):
            for name in files:
                if os.path.join(folder, name) not in kept:
                    os.unlink(os.path.join(folder, name))

    def run(self, command):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise Trouble(f"'{' '.join(command[:3])} ...' failed:\n" + "\n".join(done.stdout.splitlines()[-25:]))

    def make(self, program):
        self.run(["ninja", "-C", self.build, f"-j{self.jobs}", program])


def holds(path, text):
    if not os.path.exists(path):
        return False
    with open(path, "rb") as f:
        return f.read() == text
