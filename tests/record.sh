#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the test command in a fresh clone of what is committed, and adds a line about the run to tests/runs.tsv.
#
#   bash tests/record.sh            on the machine as it is
#   bash tests/record.sh --busy     while another process keeps one processor busy from the beginning to the end
#
# Keeps the output, and the logs of what failed, in build/runs/. Deletes the clone and what was built in it.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
how=quiet
case ${1:-} in
'') ;;
--busy) how=busy ;;
*) sed -n '3,8p' "$0" | cut -c3-; exit 2 ;;
esac
record=$PWD/tests/runs.tsv
commit=$(git rev-parse --short=10 HEAD)
began=$(date -u +%Y-%m-%dT%H:%MZ)
cached=no; ! bash tests/cluster/build.sh --dir >/dev/null 2>&1 || cached=yes
output=$PWD/build/runs/$began-$how.log
mkdir -p "${output%/*}"
clone=$(mktemp -d)
trap 'rm -rf "$clone"' EXIT

git clone -q . "$clone/vesper" || exit 2
if [ "$how" = busy ]; then while kill -0 $$ 2>/dev/null; do :; done & fi
start=$SECONDS
trap : INT TERM # the run ends by itself: its builds and machines must not lose their folder
env -u VESPER_BUILD bash "$clone/vesper/.ci/run" </dev/null 2>&1 | tee "$output"
seconds=$((SECONDS - start))
[ ! -d "$clone/vesper/build/failed" ] || cp -r "$clone/vesper/build/failed" "${output%.log}.failed"
counts=$(tail -n 1 "$output")
wrong=$(sed -n 's/^FAILED  *//p' "$output" | sort -u | tr '\t\n' ' ;')
parts=$(sed -n '/^== times$/,/^$/s/^ *\([0-9]*\) s  \(prepare: \|suite \)\([^(]*[^( ]\).*$/\3 \1/p' "$output" | paste -sd, | sed 's/,/, /g')

[ -s "$record" ] || printf 'began\tcommit\tcores\tmachine\tcontrol plane cached\tseconds\tresult\tfailures\tseconds of each part\n' >"$record"
printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$began" "$commit" "$(nproc)" "$how" "$cached" "$seconds" "$counts" "${wrong:-none}" "$parts" >>"$record"
tail -n 1 "$record"
case $counts in *' 0 failed, '*) ;; *) exit 1 ;; esac
