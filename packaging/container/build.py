#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes container images of the agent and the coordinator, as OCI layouts, without a daemon.

    build.py [--arch amd64|arm64] BUILD OUT        OUT/vesper-agent.oci.tar, OUT/vesper-coordinator.oci.tar

An image holds one program (the coordinator's vesperctl, too, which the chart runs before it is uninstalled), the libraries that it loads, the loader, and what glibc and TLS need besides (nsswitch.conf, the
certificates of public authorities of this machine): no shell, no package manager. The libraries are those of this machine, of BUILD's
architecture (a meson build folder): its own, or one that Debian has beside it (bash tests/setup.sh arm64; meson setup --cross-file
packaging/cross/aarch64-linux-gnu.ini). The same inputs give the same bytes: no time, no user, names in order.

`podman load -i FILE`, `skopeo copy oci-archive:FILE docker://...`, `kind load image-archive FILE` and `ctr -n k8s.io image import FILE`
take the result; the latter two call it as packaging/manifests does.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile

USER = "65532:65532"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
# name: programs in the build folder, of which the first is what it runs, and user. The agent reads the kubelet's key, which is root's.
IMAGES = {
    "vesper-agent": (["agent/vesper-agent"], "0:0"),
    "vesper-coordinator": (["coordinator/vesper-coordinator", "coordinator/vesperctl"], USER),
}
# As images call it: as the machine calls it, its loader.
ARCHITECTURES = {"amd64": ("x86_64", "/lib64/ld-linux-x86-64.so.2"), "arm64": ("aarch64", "/lib/ld-linux-aarch64.so.1")}
TEXTS = {
    "etc/nsswitch.conf": "hosts: files dns\n",
    "etc/passwd": "root:x:0:0:root:/:/sbin/nologin\nvesper:x:65532:65532:vesper:/:/sbin/nologin\n",
    "etc/group": "root:x:0:\nvesper:x:65532:\n",
}


class Target:
    """The architecture that is built for: how its programs run here, and its tools."""

    def __init__(self, architecture):
        self.architecture = architecture
        machine, self.loader = ARCHITECTURES[architecture]
        foreign = machine != os.uname().machine
        self.runner = [f"qemu-{machine}-static"] if foreign else []
        self.strip = f"{machine}-linux-gnu-strip" if foreign else "strip"

    def said(self, *command):
        """What a program of that architecture prints."""
        return subprocess.run([*self.runner, *command], check=True, stdout=subprocess.PIPE, text=True).stdout

    def libraries(self, program):
        """Paths of all that the loader loads for it, the loader included. It names each: NAME => PATH (ADDRESS), or PATH (ADDRESS)."""
        text = self.said(self.loader, "--list", program)
        if "not found" in text:
            sys.exit(f"{program} lacks a library:\n{text}")
        return sorted({*re.findall(r"(/\S+) \(0x", text), self.loader})

    def stripped(self, program):
        """Its bytes without symbols."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program")
            subprocess.run([self.strip, "--strip-all", "-o", path, program], check=True)
            with open(path, "rb") as f:
                return f.read()


def contents(target, programs):
    """{path in the image: (mode, bytes)}"""
    files = {}
    for path in (path for program in programs for path in target.libraries(program)):
        files[path.lstrip("/")] = (0o755, os.path.realpath(path))
    # Loaded by name at run time for resolving names; part of libc itself in newer ones.
    libc = next(p for p in files if p.endswith("/libc.so.6"))
    for name in ("libnss_dns.so.2", "libnss_files.so.2", "libresolv.so.2"):
        path = os.path.join("/", os.path.dirname(libc), name)
        if os.path.exists(path):
            files[path.lstrip("/")] = (0o755, os.path.realpath(path))
    files[CERTIFICATES.lstrip("/")] = (0o644, CERTIFICATES)
    found = {"usr/bin/" + os.path.basename(program): (0o755, target.stripped(program)) for program in programs}
    for path, (mode, source) in files.items():
        with open(source, "rb") as f:
            found[path] = (mode, f.read())
    found.update({path: (0o644, text.encode()) for path, text in TEXTS.items()})
    return found


def layer(files):
    """An uncompressed tar; folders before what is in them."""
    out = io.BytesIO()
    folders = {"tmp": 0o1777, "etc/vesper": 0o755}
    for path in list(files) + list(folders):
        while os.path.dirname(path):
            path = os.path.dirname(path)
            folders.setdefault(path, 0o755)
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(list(files) + list(folders)):
            info = tarfile.TarInfo(path)
            if path in folders:
                info.type, info.mode = tarfile.DIRTYPE, folders[path]
                tar.addfile(info)
            else:
                info.mode, info.size = files[path][0], len(files[path][1])
                tar.addfile(info, io.BytesIO(files[path][1]))
    return out.getvalue()


class Layout:
    """An OCI layout in a tar: blobs by digest."""

    def __init__(self):
        self.blobs = {}

    def add(self, data, media_type, **more):
        digest = hashlib.sha256(data).hexdigest()
        self.blobs[digest] = data
        return {"mediaType": media_type, "digest": "sha256:" + digest, "size": len(data), **more}

    def add_json(self, value, media_type, **more):
        return self.add(json.dumps(value, sort_keys=True, separators=(",", ":")).encode(), media_type, **more)

    def write(self, path, manifest, name, version):
        # containerd calls an image as the first says, podman and skopeo know it by the tag.
        index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
                 "manifests": [{**manifest, "annotations": {
                     "io.containerd.image.name": f"docker.io/library/{name}:{version}",
                     "org.opencontainers.image.ref.name": version}}]}
        files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": json.dumps(index, sort_keys=True).encode()}
        files.update({"blobs/sha256/" + d: data for d, data in self.blobs.items()})
        with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
            for name in sorted(files):
                info = tarfile.TarInfo(name)
                info.mode, info.size = 0o644, len(files[name])
                tar.addfile(info, io.BytesIO(files[name]))


def make(target, name, build, out, version):
    programs, user = IMAGES[name]
    tar = layer(contents(target, [os.path.join(build, program) for program in programs]))
    layout = Layout()
    squeezed = gzip.compress(tar, compresslevel=9, mtime=0)
    blob = layout.add(squeezed, "application/vnd.oci.image.layer.v1.tar+gzip")
    platform = {"architecture": target.architecture, "os": "linux"}
    config = layout.add_json({
        **platform,
        "config": {"Entrypoint": ["/usr/bin/" + os.path.basename(programs[0])], "User": user, "WorkingDir": "/",
                   "Env": ["PATH=/usr/bin", "SSL_CERT_FILE=" + CERTIFICATES],
                   "Labels": {"org.opencontainers.image.title": name, "org.opencontainers.image.version": version,
                              "org.opencontainers.image.licenses": "Apache-2.0"}},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(tar).hexdigest()]},
        "history": [{"created_by": "packaging/container/build.py"}],
    }, "application/vnd.oci.image.config.v1+json")
    manifest = layout.add_json({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                                "config": config, "layers": [blob]},
                               "application/vnd.oci.image.manifest.v1+json", platform=platform)
    path = os.path.join(out, name + ".oci.tar")
    layout.write(path, manifest, name, version)
    print(f"{path}: {platform['architecture']}, {len(squeezed) / 1e6:.1f} MB to pull, {len(tar) / 1e6:.1f} MB unpacked, "
          f"{manifest['digest']}")


def main():
    native = next(a for a, (machine, _) in ARCHITECTURES.items() if machine == os.uname().machine)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", choices=sorted(ARCHITECTURES), default=native, help="of BUILD (default: this machine's)")
    parser.add_argument("build", metavar="BUILD")
    parser.add_argument("out", metavar="OUT")
    options = parser.parse_args()
    target = Target(options.arch)
    os.makedirs(options.out, exist_ok=True)
    for name, (programs, _) in IMAGES.items():
        make(target, name, options.build, options.out, target.said(os.path.join(options.build, programs[0]), "--version").split()[1])


if __name__ == "__main__":
    main()
