#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The one test command. Installs what the tests need (as root, on Debian), builds, runs, and counts.
#
#   bash tests/run.sh                    what every change has to pass: 30 minutes on a new machine of two cores
#   bash tests/run.sh all                everything that these ten suites have, mutants and coverage included: two hours
#   bash tests/run.sh unit sim           the whole of these suites
#
# The ten suites:
#   tidy        the include rule, the tables of the tests; whole: clang and the fuzz targets without a warning, too
#   unit        one program per module, plain and sanitized
#   sim         agents and coordinators on a virtual clock: fixed scenarios, and random worlds from fixed seeds
#   mutants     bugs planted one by one for sim to find                                     (not without a name)
#   contract    the Kubernetes and AWS clients against the fakes, a real API server and moto
#   scheduler   the scheduling simulation against kube-scheduler's code; by default 200 random clusters
#   coverage    how many lines of each room unit, sim and contract execute                  (not without a name)
#   e2e         the programs against a real control plane; by default the cases of tests/promises.py
#   manifests   kustomize, the chart and permissions; by default the cases of tests/promises.py
#   node        the package on real machines in a real cluster; by default the cases of tests/promises.py
#
# By name only, as they need a quiet machine, large packages, or hours:
#   node-all    suite node, and what it measures
#   packages    builds .deb, .rpm and images, and tries them
#   page        the page of vesperctl plan in a browser
#   bench [NAME...]              the benchmarks; --all: the long one, too
#   fuzz SECONDS                 each fuzz target for so long
#   soak SECONDS [FROM_SEED]     random worlds, from where build/soak.log ends
#
# Closes with the seconds of each part, the failures with the place of their logs, and "N passed, N failed, N skipped".
# VESPER_BUILD=DIR builds elsewhere than build/; VESPER_CACHE=DIR keeps built control planes elsewhere than ~/.cache.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
top=$PWD
build=${VESPER_BUILD:-$top/build}
san=$build-san
export VESPER_BUILD=$build
whole=yes # all of a suite, not only what every change has to pass
passed=0 failed=0 skipped=0
parts=() times=()
declare -A made # NAME of a make_NAME -> yes or no
failures=$(mktemp)
trap 'rm -f "$failures"' EXIT

say() { printf '\n== %s\n' "$*"; }
# count PASSED FAILED SKIPPED
count() { passed=$((passed + $1)); failed=$((failed + $2)); skipped=$((skipped + $3)); }

# part NAME COMMAND...: notes how long that takes, and what it says has failed. Answers as the command does.
part() {
    local name=$1 start=$SECONDS out good; shift
    out=$(mktemp)
    say "$name"
    "$@" > >(tee "$out")
    good=$?
    wait $! # for tee
    # A failure with its first words of why, how it is played again, and where its logs are.
    grep '^FAILED \|^ *! \|^ *again: \|^ *artefacts: ' "$out" >>"$failures"
    rm -f "$out"
    parts+=("$name"); times+=($((SECONDS - start)))
    return "$good"
}

# check NAME COMMAND...: one check; its output is shown when it fails. Answers as the command does.
check() {
    local name=$1 log good=0; shift
    log=$(mktemp)
    if "$@" >"$log" 2>&1; then
        count 1 0 0; printf 'ok      %s\n' "$name"
    else
        good=1; count 0 1 0; printf 'FAILED  %s\n' "$name"; tail -n 60 "$log" | sed 's/^/        | /'
    fi
    rm -f "$log"
    return "$good"
}

# counted NAME COMMAND...: what prints "N passed, N failed, N skipped" last.
counted() {
    local name=$1 out p f s; shift
    out=$(mktemp)
    "$@" 2>&1 | tee "$out"
    if read -r p f s < <(tail -n 1 "$out" | sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p'); then
        count "$p" "$f" "$s"
    else
        echo "FAILED  $name: $* did not come to its end"; count 0 1 0
    fi
    rm -f "$out"
}

# meson_tests DIR LABEL ARGUMENTS...: runs these tests of a build folder. Limits are of a quiet machine, and only end what hangs.
meson_tests() {
    local dir=$1 label=$2; shift 2
    rm -f "$dir/meson-logs/testlog.json" # a run that does not begin would leave the last one's
    meson test -C "$dir" --no-rebuild -t 10 "$@" >/dev/null 2>&1
    counted "$label" python3 tests/meson-results.py "$dir" "$label" "$build/failed/${label//[, ]/-}"
}

# -- what suites need, each made once ----------------------------------------------------------------------------

# need NAME...: makes what is not there yet, until something cannot be made. Answers whether all of it is there.
need() {
    local what
    for what; do
        if [ -z "${made[$what]:-}" ]; then
            made[$what]=yes
            part "prepare: ${what/_/ }" "make_$what" || made[$what]=no
        fi
        [ "${made[$what]}" = yes ] || return 1
    done
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

# build_folder DIR OPTIONS...: configured by meson, with warnings as errors. One that is there, the demo's for example, may not have been.
build_folder() {
    local dir=$1; shift
    if [ -f "$dir/build.ninja" ]; then meson configure "$dir" -Dwerror=true "$@"; else meson setup "$dir" -Dwerror=true "$@"; fi
}

# compile DIR TARGETS -- SUITES: all of it, or by default these targets and what the tests of these suites run.
compile() {
    local dir=$1 targets=(); shift
    if [ "$whole" = no ]; then
        while [ "$1" != -- ]; do targets+=("$1"); shift; done
        targets+=($(python3 tests/targets.py "$dir" "${@:2}"))
    fi
    ninja -C "$dir" "${targets[@]}"
}

make_packages() { check "Debian's packages" bash tests/setup.sh test; }
make_gcc() {
    check "gcc, no warning" eval 'CC=gcc build_folder "$build" && compile "$build" \
        agent/vesper-agent coordinator/vesper-coordinator coordinator/vesperctl tests/fake/fake-cluster tests/simulate/simulate-nodes \
        -- unit sim contract --but fuzz alloc-short'
}
# Sanitized, and by clang, whose warnings are seen so.
make_clang() {
    if [ -f "$san/build.ninja" ] && ! grep -q clang "$san/build.ninja"; then rm -rf "$san"; fi # an older tree's
    check "clang, sanitized, no warning" eval 'CC=clang build_folder "$san" -Db_sanitize=address,undefined -Db_lundef=false \
        -Dbuildtype=debug -Doptimization=1 && compile "$san" agent/vesper-agent coordinator/vesper-coordinator -- unit sim contract --but alloc-long'
}
make_go() { bash tests/setup.sh go || { echo "skipped: no Go toolchain (1.21 or newer), and none could be installed"; count 0 0 1; return 1; }; }
make_control_plane() { check "the control plane, kubectl, kubelet and kwok" again bash tests/cluster/build.sh; }
make_moto() { check "moto and boto3" again bash tests/setup.sh moto; }
make_kube_scheduler() { check "kube-scheduler's code" again bash tests/scheduler/build.sh; }
make_helm() { check "helm" again bash tests/manifests/build.sh; }
make_prometheus() { check "Prometheus" again bash tests/setup.sh prometheus; }
make_machines() { check "a Debian for machines, and the package on it" eval 'bash tests/setup.sh node && python3 tests/node/run.py --prepare $(in_part --promises)'; }

needs() {
    case $1 in
    unit|sim) echo clang ;;
    contract|e2e) echo clang moto go control_plane ;;
    scheduler) echo go kube_scheduler ;;
    manifests) echo moto prometheus go control_plane helm ;;
    node|node-all) echo go control_plane helm machines ;;
    bench) echo moto go control_plane ;;
    esac
}

# -- the suites --------------------------------------------------------------------------------------------------

# in_part OPTION: that option where only the cases of every change are played.
in_part() { [ "$whole" = yes ] || echo "$@"; }

suite_tidy() {
    check "include rule, unique file names" python3 tests/check-includes.py
    check "the promises of README have their cases" python3 tests/promises.py
    check "the bench knows this build's rates" python3 tests/bench/run.py --defaults
    [ "$whole" = yes ] || return 0
    check "clang and fuzz targets, no warning" eval 'rm -rf "$build-clang" && CC=clang build_folder "$build-clang" -Dfuzzers=true && ninja -C "$build-clang"'
    rm -rf "$build-clang"
}

suite_unit() {
    meson_tests "$build" "unit" --suite unit $(in_part --no-suite fuzz --no-suite alloc-short)
    meson_tests "$san" "unit, sanitized" --suite unit $(in_part --no-suite alloc-long)
}

suite_sim() {
    local worlds=() # by default a few random ones
    [ "$whole" = no ] || worlds=(--suite random-all --no-suite random)
    meson_tests "$build" "sim" --suite sim "${worlds[@]}"
    meson_tests "$san" "sim, sanitized" --suite sim "${worlds[@]}"
}

suite_mutants() { counted mutants python3 tests/sim/mutants.py; }

suite_contract() {
    [ "$whole" = no ] || meson_tests "$build" "contract, fake" --suite contract
    meson_tests "$san" "contract, fake, sanitized" --suite contract
    counted "contract, clouds" python3 tests/contract/run-clouds.py
    counted "contract, real" python3 tests/contract/run-real.py $(in_part --plain)
}

# Before vesper is compared with kube-scheduler's code, what compares is shown to see differences.
suite_scheduler() {
    counted "scheduler, itself" python3 tests/scheduler/run.py --self-test
    counted scheduler python3 tests/scheduler/run.py $(in_part --seeds 1 200)
}

# What unit, sim and the contract on the fake execute of each room. Without random worlds: what only they reach, the next change
# may leave unreached.
suite_coverage() {
    local dir=$build-cov
    check "build for coverage" eval 'build_folder "$dir" -Db_coverage=true -Dbuildtype=debug -Doptimization=1 && ninja -C "$dir" && ninja -C "$dir" -t cleandead' || return
    find "$dir" -name '*.gcda' -delete
    check "unit, sim, contract for coverage" meson test -C "$dir" --no-rebuild --suite unit --suite sim --suite contract \
        --no-suite random -t 10
    if python3 tests/coverage.py "$dir"; then
        count 1 0 0; echo "ok      coverage: each room has its floor"
    else
        count 0 1 0; echo "FAILED  coverage: a room is below its floor"
    fi
}

suite_e2e() { counted e2e python3 tests/e2e/run.py $(in_part --promises); }

suite_manifests() {
    counted manifests python3 tests/manifests/run.py $(in_part --promises)
    counted dashboard python3 tests/manifests/dashboard.py
}

# Where the machine lets us make no machines in it (no root, no namespaces), all of it is skipped and says why.
suite_node() { counted node python3 tests/node/run.py $(in_part --promises); }
suite_node-all() { counted node-all python3 tests/node/run.py --all; }

# Where the machine has no debhelper, cannot make a system in a folder and so on, cases are skipped and say why.
suite_packages() {
    bash tests/setup.sh packages || echo "what builds packages could not be installed whole"
    counted packages python3 tests/packages/run.py
}

suite_page() {
    bash tests/setup.sh page || echo "a browser could not be installed"
    counted page python3 tests/page/run.py
}

suite_bench() { counted bench python3 tests/bench/run.py "$@"; }

suite_soak() { check "random worlds for $1 s, in $build/soak.log" python3 tests/sim/soak.py "$build/tests/sim/sim-random" "$build/soak.log" "$@"; tail -n 1 "$build/soak.log"; }

suite_fuzz() {
    check "build fuzz targets" eval 'CC=clang build_folder "$build-fuzz" -Dfuzzers=true && ninja -C "$build-fuzz"' &&
        counted "fuzz" python3 tests/fuzz/run-fuzz.py "$build-fuzz" "${1:-60}"
}

# play SUITE ARGUMENTS...: what it lacks has failed, or was skipped, before.
play() {
    if need $(needs "$1"); then part "suite $1" "suite_$1" "${@:2}"; else say "suite $1 is not played: see what could not be prepared"; fi
}

# -- the run -----------------------------------------------------------------------------------------------------

arguments=()
every=(tidy unit sim mutants contract scheduler coverage e2e manifests node)
case ${1:-} in
'') whole=no; suites=(tidy unit sim contract scheduler e2e manifests node) ;;
all) suites=("${every[@]}") ;;
fuzz|soak|bench) suites=("$1") arguments=("${@:2}") ;;
*) suites=("$@") ;;
esac
for suite in "${suites[@]}"; do
    if [ "$(type -t "suite_$suite")" != function ]; then
        echo "no such suite: $suite (all ${every[*]} node-all packages page; bench NAME..., fuzz SECONDS, soak SECONDS [FROM_SEED])"
        exit 2
    fi
done

rm -rf "$build/failed"
if need packages && need gcc; then
    for suite in "${suites[@]}"; do need $(needs "$suite"); done
    for suite in "${suites[@]}"; do play "$suite" "${arguments[@]}"; done
fi

say "times"
for i in "${!parts[@]}"; do printf '%5d s  %s\n' "${times[i]}" "${parts[i]}"; done
printf '%5d s  in all\n' "$SECONDS"
if [ "$failed" -gt 0 ]; then
    say "failed (the whole of each stands above)"
    cat "$failures"
fi
echo
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
