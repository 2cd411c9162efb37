# SPDX-License-Identifier: Apache-2.0
"""The cross-build for arm64: programs, packages and images, run by qemu where something runs."""

import os
import shutil
import subprocess
import tempfile

import debroot
import test_deb
from test_image import NAMES, Image, build

TOP = os.path.dirname(debroot.TESTS)
CROSS = os.path.join(TOP, "packaging", "cross", "aarch64-linux-gnu.ini")
QEMU = "qemu-aarch64-static"
PROGRAMS = ("agent/vesper-agent", "coordinator/vesper-coordinator", "coordinator/vesperctl")
# What may depend on the architecture: sizes and signs of types, the libraries of that architecture. None that waits for time: qemu is
# slow.
UNIT_TESTS = ("json", "parse-util", "time-util", "string-util", "kubeconfig", "state-store", "drain-plan", "aws-sigv4", "selector")


def _run(*command, **options):
    done = test_deb.run("nice", *command, timeout=1800, **options)
    assert done.returncode == 0, f"{' '.join(command)} ended with {done.returncode}:\n" + "\n".join(done.stdout.splitlines()[-40:])
    return done.stdout


def _machine(path):
    """The architecture that the ELF header names."""
    with open(path, "rb") as f:
        head = f.read(20)
    assert head[:4] == b"\x7fELF", f"{path} is no ELF file"
    return {62: "x86-64", 183: "arm64"}.get(int.from_bytes(head[18:20], "little"), "another")


class Arm64:
    def __init__(self):
        done = test_deb.run("bash", os.path.join(debroot.TESTS, "setup.sh"), "arm64")
        self.lacks = None if done.returncode == 0 else done.stdout.strip().splitlines()[-1]
        self.folder = tempfile.mkdtemp(prefix="vesper-arm64-")
        self.build = os.path.join(self.folder, "build")
        self.debs = self.images = None

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def test_build(self):
        if self.lacks:
            raise debroot.Unavailable(f"no compiler or libraries for arm64: {self.lacks}")
        _run("meson", "setup", self.build, TOP, "--cross-file", CROSS)
        _run("ninja", "-C", self.build, *PROGRAMS, *(f"tests/unit/test-{t}" for t in UNIT_TESTS))
        for program in PROGRAMS:
            path = os.path.join(self.build, program)
            assert _machine(path) == "arm64", f"{program} is for {_machine(path)}"
            said = _run(QEMU, path, "--version")
            assert said.split()[0] == os.path.basename(program), said

    def test_unit(self):
        for name in UNIT_TESTS:
            said = _run(QEMU, os.path.join(self.build, "tests", "unit", "test-" + name), cwd=self.folder)
            assert "[  PASSED  ]" in said, f"test-{name} ran no test:\n{said}"

    def test_debs(self):
        self.debs = test_deb.build(os.path.join(self.folder, "debs"), "arm64")
        wanted = sorted(list(test_deb.HOLDS) + [p + "-dbgsym" for p in test_deb.HOLDS])
        assert sorted(self.debs) == wanted, f"expected the packages {wanted}, got {sorted(self.debs)}"
        for name, wanted in test_deb.HOLDS.items():
            architecture = _run("dpkg-deb", "-f", self.debs[name], "Architecture").strip()
            assert architecture == "arm64", f"{name} is for {architecture}"
            found = {line.split()[5].lstrip(".") for line in _run("dpkg-deb", "-c", self.debs[name]).splitlines()}
            missing = sorted({p.format(p=name) for p in wanted} - found)
            assert not missing, f"{name} lacks {missing}"
            root = os.path.join(self.folder, "deb-" + name)
            _run("dpkg-deb", "-x", self.debs[name], root)
            for program in os.listdir(os.path.join(root, "usr/bin")):
                path = os.path.join(root, "usr/bin", program)
                if not os.path.islink(path):
                    assert _machine(path) == "arm64", f"{program} is for {_machine(path)}"
                    _run(QEMU, path, "--version")

    def test_images(self):
        self.images = build(os.path.join(self.folder, "images"), self.build, "--arch", "arm64")
        for name in NAMES:
            image, root = Image(self.images[name]), os.path.join(self.folder, name)
            assert image.config["architecture"] == "arm64", image.config["architecture"]
            image.unpack(root)
            for folder, _, files in os.walk(root):
                for file in files:
                    path = os.path.join(folder, file)
                    with open(path, "rb") as f:
                        program = f.read(4) == b"\x7fELF"
                    assert not program or _machine(path) == "arm64", f"{name}: {path} is for {_machine(path)}"
            # -L: its own loader and libraries, not this machine's.
            said = _run(QEMU, "-L", root, "-E", "LD_LIBRARY_PATH=/none", root + image.config["config"]["Entrypoint"][0], "--version")
            assert said.split()[0] == name, said

    CASES = (
        ("arm64: the programs are cross-built, and run", "test_build", ()),
        ("arm64: unit tests, by qemu", "test_unit", ("test_build",)),
        ("arm64: the .deb packages are built, and hold the same", "test_debs", ("test_build",)),
        ("arm64: the images hold arm64 only, and their programs run", "test_images", ("test_build",)),
    )
