#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The one test command. Installs what the tests need (as root, on Debian), builds, runs, and counts.
#
#   bash tests/run.sh                    every suite
#   bash tests/run.sh unit sim           only these
#   bash tests/run.sh fuzz SECONDS       each fuzz target for so long (not part of "every suite")
#   bash tests/run.sh soak SECONDS [FROM_SEED]   random worlds, from where build/soak.log ends (not part of "every suite")
#   bash tests/run.sh packages           build .deb, .rpm and images and try them (not part of "every suite"; half an hour on a busy machine of two cores)
#   bash tests/run.sh page               the page of vesperctl plan in a browser (not part of "every suite": the browser is a large package, its cases take 2 minutes)
#   bash tests/run.sh node-all           suite node with what takes long to measure (not part of "every suite"; wants a quiet machine)
#   bash tests/run.sh bench [NAME...]    the benchmarks, all or these (not part of "every suite"; wants a quiet machine); --all: the long one, too
#
# Suites: tidy (compilers, include rule), unit, sim, mutants (bugs planted for sim to find), contract, scheduler (our
# scheduling simulation against kube-scheduler's code), coverage (how many lines of each room these execute), e2e, manifests (what
# a cluster is given: kustomize, helm, permissions), node (the package on real machines in a real cluster).
# Closes with "N passed, N failed, N skipped".
# VESPER_BUILD=DIR builds elsewhere than build/; VESPER_CACHE=DIR keeps built control planes elsewhere than ~/.cache.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
top=$PWD
build=${VESPER_BUILD:-$top/build}
export VESPER_BUILD=$build
passed=0 failed=0 skipped=0
suites=() times=()
failures=$(mktemp)

say() { printf '\n== %s\n' "$*"; }
# count PASSED FAILED SKIPPED
count() { passed=$((passed + $1)); failed=$((failed + $2)); skipped=$((skipped + $3)); }

# check NAME COMMAND...: one check; its output is shown when it fails. Answers as the command does.
check() {
    local name=$1 log good=0; shift
    log=$(mktemp)
    if "$@" >"$log" 2>&1; then
        count 1 0 0; printf 'ok      %s\n' "$name"
    else
        good=1; count 0 1 0; printf 'FAILED  %s\n' "$name"; tail -n 60 "$log" | sed 's/^/        /'
    fi
    rm -f "$log"
    return "$good"
}

# meson_tests DIR SUITE: runs one meson suite of a build folder; counts from its machine-readable log.
meson_tests() {
    local dir=$1 suite=$2 label=$3 out
    out=$(mktemp)
    rm -f "$dir/meson-logs/testlog.json" # a suite without tests would leave the last one's
    # Limits are of a quiet machine: here they only end what hangs.
    meson test -C "$dir" --no-rebuild --suite "$suite" -t 5 --print-errorlogs >"$out" 2>&1
    python3 - "$dir/meson-logs/testlog.json" "$label" <<'PY' >"$out.count" || true
import json, sys
ok = bad = skip = 0
for line in open(sys.argv[1], encoding="utf-8"):
    t = json.loads(line)
    r = t["result"]
    if r in ("OK", "EXPECTEDFAIL"):
        ok += 1
    elif r == "SKIP":
        skip += 1
    else:
        bad += 1
        print(f"FAILED  {sys.argv[2]}: {t['name']} ({r})")
    if r == "OK":
        print(f"ok      {sys.argv[2]}: {t['name']} ({t['duration']:.2f} s)")
print("COUNT", ok, bad, skip)
PY
    grep -v '^COUNT' "$out.count"
    if read -r _ ok bad skip < <(grep '^COUNT' "$out.count") && [ "$((ok + bad + skip))" -gt 0 ]; then
        count "$ok" "$bad" "$skip"
        [ "$bad" -eq 0 ] || sed -n '/stderr\|FAIL\|Error\|ERROR/,$p' "$out" | tail -n 80
    else
        count 0 1 0; echo "FAILED  $label: no test ran"; tail -n 40 "$out"
    fi
    rm -f "$out" "$out.count"
}

# again COMMAND...: up to three times, for what comes over the network.
again() {
    local try
    for try in 1 2 3; do
        if "$@"; then return 0; fi
        [ "$try" -eq 3 ] || sleep $((try * 10))
    done
    return 1
}

configure() { # configure DIR OPTIONS...: once; later runs only rebuild
    local dir=$1; shift
    [ -f "$dir/build.ninja" ] || meson setup "$dir" "$@"
}

build_main() {
    say "build"
    configure "$build" >"$build.log" 2>&1 && ninja -C "$build" >>"$build.log" 2>&1 && rm -f "$build.log" && return
    tail -n 60 "$build.log"; echo "The build failed: see $build.log"; count 0 1 0
    return 1
}

build_san() { configure "$build-san" -Db_sanitize=address,undefined -Db_lundef=false -Dbuildtype=debug -Doptimization=1 && ninja -C "$build-san"; }

suite_tidy() {
    check "include rule, unique file names" python3 tests/check-includes.py
    check "the bench knows this build's rates" python3 tests/bench/run.py --defaults
    # Warnings are errors here; whatever the compiler of the day adds is seen.
    check "gcc, no warning" bash -c "rm -rf '$build-gcc' && CC=gcc meson setup '$build-gcc' -Dwerror=true && ninja -C '$build-gcc'"
    check "clang, no warning" bash -c "rm -rf '$build-clang' && CC=clang meson setup '$build-clang' -Dwerror=true -Dfuzzers=true && ninja -C '$build-clang'"
    rm -rf "$build-gcc" "$build-clang"
}

suite_unit() {
    meson_tests "$build" unit "unit"
    check "build with ASan and UBSan" build_san && meson_tests "$build-san" unit "unit, sanitized"
}

suite_sim() {
    meson_tests "$build" sim "sim"
    check "build with ASan and UBSan" build_san && meson_tests "$build-san" sim "sim, sanitized"
}

suite_soak() { check "random worlds for $1 s, in $build/soak.log" python3 tests/sim/soak.py "$build/tests/sim/sim-random" "$build/soak.log" "$@"; tail -n 1 "$build/soak.log"; }

suite_mutants() { counted mutants python3 tests/sim/mutants.py; }

suite_contract() {
    meson_tests "$build" contract "contract, fake"
    check "build with ASan and UBSan" build_san && meson_tests "$build-san" contract "contract, fake, sanitized"
    counted "contract, clouds" python3 tests/contract/run-clouds.py
    with_cluster contract tests/contract/run-real.py
}

# The scheduling simulation against kube-scheduler's own code; before, that code and what compares against each other.
suite_scheduler() {
    with_built "kube-scheduler's code" tests/scheduler/build.sh "scheduler, itself" tests/scheduler/run.py --self-test
    with_built "kube-scheduler's code" tests/scheduler/build.sh scheduler tests/scheduler/run.py
}

# What unit, sim and the contract on the fake execute of each room. Without random worlds: what only they
# reach is reached by chance, and not by the next change any more.
suite_coverage() {
    local dir=$build-cov
    check "build for coverage" bash -c "[ -f '$dir/build.ninja' ] || meson setup '$dir' -Db_coverage=true -Dbuildtype=debug -Doptimization=1 && ninja -C '$dir' && ninja -C '$dir' -t cleandead" || return
    find "$dir" -name '*.gcda' -delete
    echo "without sim's random worlds:"
    check "unit, sim, contract for coverage" meson test -C "$dir" --no-rebuild --suite unit --suite sim --suite contract \
        --no-suite random -t 10
    if python3 tests/coverage.py "$dir"; then
        count 1 0 0; echo "ok      coverage: each room has its floor"
    else
        count 0 1 0; echo "FAILED  coverage: a room is below its floor"
    fi
}

suite_e2e() {
    # Some cases run daemons under valgrind, some the sanitized ones.
    check "build with ASan and UBSan" build_san
    with_cluster e2e tests/e2e/run.py
}

# Builds helm once, beside the control plane.
suite_manifests() {
    again bash tests/manifests/build.sh >/dev/null || echo "helm could not be built"
    with_cluster manifests tests/manifests/run.py
    counted dashboard python3 tests/manifests/dashboard.py
}

# Where the machine has no debhelper, cannot make a system in a folder and so on, cases are skipped and say why.
suite_packages() {
    bash tests/setup.sh packages || echo "what builds packages could not be installed whole"
    counted packages python3 tests/packages/run.py
}

# Where the machine lets us make no machines in it (no root, no namespaces), all of it is skipped and says why.
suite_node() {
    bash tests/setup.sh node || echo "what starts machines could not be installed whole"
    with_cluster node tests/node/run.py "$@"
}

suite_node-all() { suite_node --all; }

suite_page() {
    bash tests/setup.sh page || echo "a browser could not be installed"
    counted page python3 tests/page/run.py
}

suite_bench() { with_cluster bench tests/bench/run.py "$@"; }

# with_built WHAT BUILD SUITE SCRIPT ARGUMENTS...: what needs a part of Kubernetes that the script BUILD makes. The other script
# prints "N passed, N failed, N skipped" last.
with_built() {
    local what=$1 build=$2 name=$3 script=$4; shift 4
    if ! bash tests/setup.sh go >/dev/null 2>&1; then
        echo "skipped $name on $what: no Go toolchain (1.24 or newer), and none could be installed"
        count 0 0 1; return
    fi
    if ! again bash "$build" >/dev/null; then
        echo "FAILED  $name: $what could not be built"; count 0 1 0; return
    fi
    counted "$name" python3 "$script" "$@"
}

with_cluster() { with_built "the real control plane" tests/cluster/build.sh "$@"; }

# counted NAME COMMAND...: what prints "N passed, N failed, N skipped" last.
counted() {
    local name=$1 out; shift
    out=$(mktemp)
    "$@" 2>&1 | tee "$out"
    if read -r p f s < <(tail -n 1 "$out" | sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p'); then
        count "$p" "$f" "$s"
    else
        echo "FAILED  $name: $* did not come to its end"; count 0 1 0
    fi
    rm -f "$out"
}

suite_fuzz() {
    local seconds=$1 dir=$build-fuzz
    check "build fuzz targets" bash -c "[ -f '$dir/build.ninja' ] || CC=clang meson setup '$dir' -Dfuzzers=true && ninja -C '$dir'" &&
        counted "fuzz" python3 tests/fuzz/run-fuzz.py "$dir" "$seconds"
}

run_suite() {
    local name=$1 start=$SECONDS out; shift
    out=$(mktemp)
    say "suite $name"
    "suite_$name" "$@" > >(tee "$out")
    wait $!
    grep -A 3 '^FAILED ' "$out" | grep '^FAILED \|^ *!' >>"$failures" # with its first words of why
    rm -f "$out"
    suites+=("$name"); times+=($((SECONDS - start)))
}

[ $# -gt 0 ] || set -- tidy unit sim mutants contract scheduler coverage e2e manifests node
say "packages"
bash tests/setup.sh test || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }
build_main || { echo "$passed passed, $failed failed, $skipped skipped"; exit 1; }
while [ $# -gt 0 ]; do
    case $1 in
    tidy|unit|sim|mutants|contract|scheduler|coverage|e2e|manifests|packages|page|node|node-all) run_suite "$1" ;;
    fuzz) run_suite fuzz "${2:-60}"; [ $# -lt 2 ] || shift ;;
    bench|soak) run_suite "$@"; break ;;
    *) echo "no such suite: $1 (tidy unit sim mutants contract scheduler coverage e2e manifests packages page node node-all; fuzz SECONDS; soak SECONDS [FROM_SEED]; bench NAME...)"; exit 2 ;;
    esac
    shift
done

say "times"
for i in "${!suites[@]}"; do printf '%5d s  %s\n' "${times[i]}" "${suites[i]}"; done
if [ "$failed" -gt 0 ]; then
    say "failed (the whole of each stands above)"
    cat "$failures"
fi
rm -f "$failures"
echo
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
