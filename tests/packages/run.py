#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Suite packages: builds the packages and tries them. Prints each case and, last, "N passed, N failed, N skipped".

    tests/packages/run.py [KIND...]     man, deb, rpm, image, arm64; without one, all
"""

import os
import shutil
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import debroot  # noqa: E402
import test_arm64  # noqa: E402
import test_deb  # noqa: E402
import test_image  # noqa: E402
import test_man  # noqa: E402
import test_rpm  # noqa: E402

# Kinds of packages: the class of their cases, and the commands without which they are skipped.
KINDS = ((test_man.ManualPages, ("groff", "mandoc")),
         (test_deb.Packages, ("dpkg-buildpackage", "dh", "lintian")),
         (test_rpm.Packages, ("rpmbuild", "rpm", "rpmlint")),
         (test_image.Images, ("strip",)),
         (test_arm64.Arm64, ("dpkg-buildpackage", "meson", "ninja")))


def run_kind(kind, tools, counts):
    missing = [t for t in tools if not shutil.which(t)]
    if missing:
        print(f"skipped {len(kind.CASES)} cases of {kind.__module__}: {', '.join(missing)} not installed")
        counts[2] += len(kind.CASES)
        return
    bench, good = kind(), set()
    try:
        for what, name, after in kind.CASES:
            begin = time.monotonic()
            if not good.issuperset(after):
                print(f"skipped {what}: comes after one that did not pass")
                counts[2] += 1
                continue
            try:
                getattr(bench, name)()
            except debroot.Unavailable as e:
                print(f"skipped {what}: {e}")
                counts[2] += 1
            except Exception as e:  # pylint: disable=broad-except
                print(f"FAILED  {what}\n        " + str(e).replace("\n", "\n        "))
                if not isinstance(e, AssertionError):
                    traceback.print_exc(file=sys.stdout)
                counts[1] += 1
            else:
                print(f"ok      {what} ({time.monotonic() - begin:.1f} s)")
                good.add(name)
                counts[0] += 1
            sys.stdout.flush()
    finally:
        bench.close()


def main():
    counts = [0, 0, 0]
    for kind, tools in KINDS:
        if len(sys.argv) > 1 and kind.__module__.removeprefix("test_") not in sys.argv[1:]:
            continue
        run_kind(kind, tools, counts)
    print("%d passed, %d failed, %d skipped" % tuple(counts))
    return 1 if counts[1] else 0


if __name__ == "__main__":
    sys.exit(main())
