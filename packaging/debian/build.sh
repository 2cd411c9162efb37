#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the .deb packages of this tree into a folder:  packaging/debian/build.sh OUT
# In a scratch copy, since debian/ has to lie at the top there; needs what debian/control names under Build-Depends.
# Reproducible: the same tree gives the same bytes, wherever and whenever it is built.
set -eu
[ $# -eq 1 ] || { sed -n '3,5s/^# //p' "$0" >&2; exit 2; }
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
dpkg-buildpackage -b -us -uc -j"${VESPER_JOBS:-$(nproc)}"
mv "$scratch"/*.deb "$scratch"/*.changes "$scratch"/*.buildinfo "$out"
