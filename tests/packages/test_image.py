# SPDX-License-Identifier: Apache-2.0
"""The container images: the same bytes each time, blobs that are what they are called, programs that run in them."""

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

import debroot

TOP = os.path.dirname(debroot.TESTS)
BUILD = os.environ.get("VESPER_BUILD", os.path.join(TOP, "build"))
NAMES = ("vesper-agent", "vesper-coordinator")
BESIDE = {"vesper-coordinator": ["vesperctl"]}  # more programs of that image


def build(out, build_folder=BUILD, *options):
    done = subprocess.run([sys.executable, os.path.join(TOP, "packaging", "container", "build.py"), *options, build_folder, out],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, f"packaging/container/build.py failed:\n{done.stdout}"
    print(done.stdout, end="")
    return {name: os.path.join(out, name + ".oci.tar") for name in NAMES}


class Image:
    """What a container runtime would read of an archive, each blob checked against its name."""

    def __init__(self, path):
        with tarfile.open(path) as tar:
            self.files = {m.name: tar.extractfile(m).read() for m in tar.getmembers()}
        assert json.loads(self.files["oci-layout"])["imageLayoutVersion"] == "1.0.0", self.files["oci-layout"]
        index = json.loads(self.files["index.json"])["manifests"][0]
        self.name = index["annotations"]["io.containerd.image.name"]
        self.manifest = json.loads(self.blob(index))
        self.config = json.loads(self.blob(self.manifest["config"]))
        self.layers = [self.blob(descriptor) for descriptor in self.manifest["layers"]]

    def blob(self, descriptor):
        data = self.files["blobs/" + descriptor["digest"].replace(":", "/")]
        found = "sha256:" + hashlib.sha256(data).hexdigest()
        assert found == descriptor["digest"], f"a blob called {descriptor['digest']} is {found}"
        assert len(data) == descriptor["size"], f"blob {found} has {len(data)} bytes, {descriptor['size']} are said"
        return data

    def plain_layers(self):
        """Their tars, each checked against the name that the configuration gives it."""
        for data, wanted in zip(self.layers, self.config["rootfs"]["diff_ids"]):
            plain = gzip.decompress(data)
            found = "sha256:" + hashlib.sha256(plain).hexdigest()
            assert found == wanted, f"a layer is {found} unpacked, the configuration says {wanted}"
            yield plain

    def unpack(self, folder):
        for plain in self.plain_layers():
            with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
                tar.extractall(folder)


class Images:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="vesper-images-")
        self.paths = None

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def test_build(self):
        self.paths = build(os.path.join(self.folder, "first"))

    def test_same_bytes(self):
        again = build(os.path.join(self.folder, "second"))
        for name in NAMES:
            with open(self.paths[name], "rb") as a, open(again[name], "rb") as b:
                assert a.read() == b.read(), f"{name}: built twice, and the bytes differ"

    def test_names(self):
        wanted = set()
        for folder, _, files in os.walk(os.path.join(TOP, "packaging", "manifests")):
            for name in files:
                with open(os.path.join(folder, name)) as f:
                    wanted.update(re.findall(r"^ *image: (\S+)", f.read(), re.M))
        found = {Image(self.paths[name]).name for name in NAMES}
        assert found == {"docker.io/library/" + name for name in wanted}, f"archives hold {found}, the manifests want {wanted}"

    def test_run(self):
        if os.geteuid() != 0:
            raise debroot.Unavailable("only root can change its root")
        for name in NAMES:
            image, root = Image(self.paths[name]), os.path.join(self.folder, name)
            image.unpack(root)
            config = image.config["config"]
            user, group = (int(n) for n in config["User"].split(":"))
            calls = [(config["Entrypoint"] + ["--version"], name + " 0.1.0"), (config["Entrypoint"] + ["--dump-config"], "[Kubernetes]")]
            calls += [([f"/usr/bin/{other}", "--version"], other + " 0.1.0") for other in BESIDE.get(name, [])]
            for arguments, wanted in calls:
                done = subprocess.run(["chroot", f"--userspec={user}:{group}", root] + arguments,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                      env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
                assert done.returncode == 0 and wanted in done.stdout, f"{name} {arguments}: {done.returncode}, {done.stdout}"

    def test_holds(self):
        for name in NAMES:
            root = os.path.join(self.folder, name)
            programs = sorted(os.listdir(os.path.join(root, "usr/bin")))
            assert programs == [name] + BESIDE.get(name, []), f"{name}: the programs in it are {programs}"
            files = [os.path.relpath(os.path.join(f, n), root) for f, _, names in os.walk(root) for n in names]
            other = sorted(p for p in files if not p.startswith(("lib/", "lib64/", "usr/lib/", "usr/bin/", "etc/")))
            assert not other, f"{name}: {other} are neither program, library nor configuration"
            assert "etc/ssl/certs/ca-certificates.crt" in files, f"{name} has no certificates"

    CASES = (
        ("the images are built", "test_build", ()),
        ("containerd finds them under the names in the manifests", "test_names", ("test_build",)),
        ("images built twice, the same bytes", "test_same_bytes", ("test_build",)),
        ("the programs run in their images, with nothing else there", "test_run", ("test_build",)),
        ("what the images hold", "test_holds", ("test_run",)),
    )
