# SPDX-License-Identifier: Apache-2.0
"""The manual pages: without a warning of groff and mandoc, and true: every option and every key stands in them, and no other."""

import os
import re
import subprocess
import tempfile

BUILD = os.environ.get("VESPER_BUILD", os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
                                                    "build"))
PROGRAMS = {"vesper-agent.8": "agent/vesper-agent", "vesper-coordinator.8": "coordinator/vesper-coordinator",
            "vesperctl.1": "coordinator/vesperctl"}
CONFIGURATIONS = {"agent.conf.5": "agent/vesper-agent", "coordinator.conf.5": "coordinator/vesper-coordinator"}
# Not made from anything: as it stands in the tree.
WRITTEN = ["vesper.7"]
PAGES = sorted(list(PROGRAMS) + list(CONFIGURATIONS) + WRITTEN)


def page(name):
    if name in WRITTEN:
        return os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "packaging", "man", name)
    return os.path.join(BUILD, "packaging", name)


def output(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL,
                          env={**os.environ, "LC_ALL": "C.UTF-8"})
    return done.returncode, done.stdout


def tagged(text):
    """What stands bold behind .TP: the options or keys."""
    return re.findall(r"^\.TP\n\.B (.*)$", text, re.M)


class ManualPages:
    def close(self):
        pass

    def test_built(self):
        for name in PAGES:
            assert os.path.exists(page(name)), f"{page(name)} was not built"

    def test_groff(self):
        for name in PAGES:
            code, said = output("groff", "-man", "-Tutf8", "-ww", "-z", page(name))
            assert code == 0 and not said, f"groff about {name}:\n{said}"

    def test_mandoc(self):
        for name in PAGES:
            code, said = output("mandoc", "-T", "lint", "-W", "warning", page(name))
            assert code == 0 and not said, f"mandoc about {name}:\n{said}"

    def test_options(self):
        for name, program in PROGRAMS.items():
            with open(page(name), encoding="utf-8") as f:
                text = f.read()
            section = text.split(".SH OPTIONS\n")[1].split("\n.SH ")[0]
            said = set(re.findall(r"--[a-z][a-z-]*[a-z]", " ".join(tagged(section)).replace("\\", "")))
            code, usage = output(os.path.join(BUILD, program), "--help")
            known = set(re.findall(r"--[a-z][a-z-]*[a-z]", usage))
            assert code == 0 and known, f"{program} --help: {code}, {usage}"
            assert said == known, f"{name} explains {sorted(said)}, --help {sorted(known)}"

    def test_keys(self):
        for name, program in CONFIGURATIONS.items():
            with open(page(name), encoding="utf-8") as f:
                said = tagged(f.read())
            with tempfile.NamedTemporaryFile(suffix=".conf") as empty:
                code, dump = output(os.path.join(BUILD, program), "--config", empty.name, "--dump-config")
            # A list that is not empty takes two lines; a secret that is set, a comment.
            known = [k + "=" for k in re.findall(r"^(?:# )?([A-Za-z]+)=", dump, re.M)]
            known = [k for i, k in enumerate(known) if i == 0 or known[i - 1] != k]
            assert code == 0 and known, f"{program} --dump-config: {code}, {dump}"
            assert said == known, f"{name} explains {said}, the program knows {known}"

    CASES = (
        ("the manual pages are built", "test_built", ()),
        ("groff warns of nothing in them", "test_groff", ("test_built",)),
        ("mandoc warns of nothing in them", "test_mandoc", ("test_built",)),
        ("every option stands in its page, and no other", "test_options", ("test_built",)),
        ("every key stands in its page, in order, and no other", "test_keys", ("test_built",)),
    )
