#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the .deb packages of this tree into a folder:  packaging/debian/build.sh OUT [ARCHITECTURE]
# In a scratch copy, since debian/ has to lie at the top there; needs what debian/control names under Build-Depends.
# Reproducible: the same tree gives the same bytes, wherever and whenever it is built. ARCHITECTURE, as dpkg calls it: cross-built
# (arm64: bash tests/setup.sh arm64).
set -eu
[ $# -eq 1 ] || [ $# -eq 2 ] || { sed -n '3,6s/^# //p' "$0" >&2; exit 2; }
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
umask 022

mkdir "$scratch/vesper"
tar -C "$top" --anchored --exclude=./.git --exclude=./build --exclude='./build-*' -cf - . | tar -C "$scratch/vesper" -xf -
ln -s packaging/debian "$scratch/vesper/debian"
cd "$scratch/vesper"
dpkg-buildpackage -b -us -uc ${2:+-a"$2"} -j"${VESPER_JOBS:-$(nproc)}"
mv "$scratch"/*.deb "$scratch"/*.changes "$scratch"/*.buildinfo "$out"
