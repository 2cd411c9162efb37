# SPDX-License-Identifier: Apache-2.0
"""What the container images weigh: made of the current build, as packaging/container/build.py makes them for anybody."""

import io
import os
import subprocess
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(TOP, "tests", "e2e"), os.path.join(TOP, "tests", "packages")]

import test_image  # noqa: E402
from test_image import BUILD, Image  # noqa: E402

HEAVIEST = 3


def _builds():
    """{architecture as images call it, or None for this machine's: build folder}; packaging/README.md says how the other is made."""
    other = f"{BUILD}-arm64"
    return {None: BUILD, **({"arm64": other} if os.path.exists(os.path.join(other, "agent", "vesper-agent")) else {})}


def _make(out, architecture, build):
    # Printed once, as a table.
    subprocess.run([sys.executable, os.path.join(TOP, "packaging", "container", "build.py"),
                    *(["--arch", architecture] if architecture else []), build, out], check=True, stdout=subprocess.DEVNULL)
    return {name: Image(os.path.join(out, name + ".oci.tar")) for name in test_image.NAMES}


def _files(image):
    """[(bytes, path)] of what is in it, the heaviest first."""
    found = []
    for data in image.plain_layers():
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            found += [(m.size, m.name) for m in tar.getmembers() if m.isfile()]
    return sorted(found, reverse=True)


def images(ctx):
    rows, heavy, figures = [], [], {}
    for architecture, build in _builds().items():
        made = _make(os.path.join(ctx.dir, f"images-{architecture or 'own'}"), architecture, build)
        for name, image in made.items():
            files = _files(image)
            pulled = sum(len(layer) for layer in image.layers)
            unpacked = sum(len(plain) for plain in image.plain_layers())
            program = next(size for size, path in files if path == "usr/bin/" + name)
            label = f"{name}, {image.config['architecture']}"
            rows.append((label, pulled / 1e6, unpacked / 1e6, program / 1e6, len(files)))
            heavy.append((label, ", ".join(f"{os.path.basename(path)} {size / 1e6:.1f}" for size, path in files[:HEAVIEST])))
            ctx.figure(f"image of {label}", f"{pulled / 1e6:.1f} MB to pull, {unpacked / 1e6:.1f} MB unpacked")
            figures[f"{name}_{image.config['architecture']}"] = {"pull_bytes": pulled, "unpacked_bytes": unpacked,
                                                                 "program_bytes": program}
    ctx.table("images, in MB (millions of bytes)", ("", "to pull", "unpacked", "our program", "files"), rows)
    ctx.table("the heaviest files in them, unpacked", ("", "MB"), heavy)
    if "arm64" not in _builds():
        print(f"        arm64: not measured, there is no cross build in {os.path.basename(BUILD)}-arm64 (packaging/README.md)")
    ctx.json("images", figures)


BENCHES = [
    ("images", "the container images of the current build: bytes to pull, unpacked, and what weighs in them", images),
]
