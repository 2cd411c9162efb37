#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The one test command. Installs what the tests need (as root, on Debian), builds, runs, and counts.
#
#   bash tests/run.sh                    what every change has to pass: 30 minutes on a new machine of two cores
#   bash tests/run.sh all                everything that these eleven suites have, mutants and coverage included: two hours
#   bash tests/run.sh unit sim           the whole of these suites
#
# The eleven suites:
#   tidy        the include rule, the tables of the tests; by name, clang also builds the fuzz targets
#   unit        one program per module, plain and sanitized
#   sim         agents and coordinators on a virtual clock: fixed scenarios, and random worlds from fixed seeds
#   mutants     bugs planted one by one for sim to find                                  (by name, and in `all`)
#   mutate      mistakes planted at random for unit and sim to find          (by name, and in `all`)
#   contract    the Kubernetes and AWS clients against the fakes, a real API server and moto
#   scheduler   the scheduling simulation against kube-scheduler's code; by default 200 random clusters
#   coverage    how many lines of each room unit, sim and contract execute               (by name, and in `all`)
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
# With arguments: mutate [N] [SEED] [PATH...]  N mistakes (default 40) in these files or folders (default: all rooms). `all` plants 40
# in what the last 50 commits changed.
#
# Every build treats warnings as errors. Closes with the seconds of each part, the failures with the folders of their logs,
# and "N passed, N failed, N skipped".
# VESPER_BUILD=DIR builds elsewhere than build/; VESPER_CACHE=DIR keeps built control planes elsewhere than ~/.cache.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
top=$PWD
build=${VESPER_BUILD:-$top/build}
san=$build-san
failed_logs=$build/failed
export VESPER_BUILD=$build
whole=yes # all of a suite, not only what every change has to pass
passed=0 failed=0 skipped=0
parts=() times=()
declare -A made # NAME of a make_NAME -> yes or no
# What takes minutes on a new machine, and a moment afterwards.
declare -A minutes=([gcc]=" (2 minutes)" [clang]=" (3 minutes)" [control_plane]=" (7 minutes)" [helm]=" (2 minutes)" [machines]=" (2 minutes)")
failures=$(mktemp) real_output=$(mktemp) real_contract=
trap 'rm -f "$failures" "$real_output"; [ -z "$(jobs -pr)" ] || kill $(jobs -pr)' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say() { printf '\n== %s\n' "$*"; }
# count PASSED FAILED SKIPPED
count() { passed=$((passed + $1)); failed=$((failed + $2)); skipped=$((skipped + $3)); }

# part NAME COMMAND...: runs the command, and notes its seconds and the failures that it prints. Answers as the command does.
part() {
    local name=$1 start=$SECONDS out good to tee; shift
    out=$(mktemp)
    say "$name"
    exec {to}> >(tee "$out")
    tee=$!
    "$@" >&"$to"
    good=$?
    exec {to}>&-
    wait "$tee"
    # A failure, its reason, the command that plays it again, and its logs.
    grep '^FAILED \|^ *! \|^ *again: \|^ *artefacts: ' "$out" >>"$failures"
    rm -f "$out"
    parts+=("$name"); times+=($((SECONDS - start)))
    return "$good"
}

# check NAME COMMAND...: counts one check; shows the end of its output and keeps all of it when it fails. Answers as the command does.
check() {
    local name=$1 log; shift
    log=$(mktemp)
    if "$@" >"$log" 2>&1; then
        count 1 0 0; printf 'ok      %s\n' "$name"; rm -f "$log"
        return 0
    fi
    count 0 1 0
    mkdir -p "$failed_logs"
    chmod 644 "$log"
    mv "$log" "$failed_logs/${name//[ ,\/]/-}.log"
    printf 'FAILED  %s\n' "$name"
    tail -n 60 "$failed_logs/${name//[ ,\/]/-}.log" | sed 's/^/        | /'
    printf '        artefacts: %s\n' "$failed_logs/${name//[ ,\/]/-}.log"
    return 1
}

# counted NAME COMMAND...: runs a command whose last line is "N passed, N failed, N skipped", and adds its counts.
counted() {
    local name=$1 out status p f s; shift
    out=$(mktemp)
    "$@" 2>&1 | tee "$out"
    status=${PIPESTATUS[0]}
    if ! read -r p f s < <(tail -n 1 "$out" | sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p'); then
        echo "FAILED  $name: $* ended with status $status and without its counts"; count 0 1 0
    elif [ $((p + f + s)) -eq 0 ] || { [ "$f" -eq 0 ] && [ "$status" -ne 0 ]; }; then
        echo "FAILED  $name: $* ended with status $status and the counts $p, $f, $s"; count "$p" 1 "$s"
    else
        count "$p" "$f" "$s"
    fi
    rm -f "$out"
}

# meson_tests DIR LABEL ARGUMENTS...: runs these tests of a build folder. A test may take five times its limit (-t), which is that
# of a quiet machine.
meson_tests() {
    local dir=$1 label=$2 out; shift 2
    rm -f "$dir/meson-logs/testlog.json" # a run that does not begin would leave the last one's
    out=$(meson test -C "$dir" --no-rebuild -t 5 "$@" 2>&1)
    counted "$label" python3 tests/meson-tests.py results "$dir" "$label" "$failed_logs/${label//, /-}" $?
    [ -e "$dir/meson-logs/testlog.json" ] || printf '%s\n' "$out" | tail -n 20
}

# -- what suites need, each made once ----------------------------------------------------------------------------

# need NAME...: prepares each once, and stops at the first that fails. Answers whether all are there.
need() {
    local what
    for what; do
        if [ -z "${made[$what]:-}" ]; then
            made[$what]=yes
            part "prepare: ${what/_/ }${minutes[$what]:-}" "make_$what" || made[$what]=no
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

# build_folder COMPILER DIR OPTIONS...: configures the folder. The demo, for example, may have made it without warnings as errors.
build_folder() {
    local compiler=$1 dir=$2 found=gcc; shift 2
    if [ ! -f "$dir/build.ninja" ]; then CC=$compiler meson setup "$dir" -Dwerror=true "$@"; return; fi
    grep -A 1 '^rule c_COMPILER$' "$dir/build.ninja" | grep -q clang && found=clang
    [ "$found" = "$compiler" ] || { echo "$dir was made with $found and has to be made with $compiler: remove it"; return 1; }
    # ninja configures anew what has changed: meson-tests.py has to see tests that are new.
    meson configure "$dir" -Dwerror=true "$@" && ninja -C "$dir" build.ninja
}

# compile DIR TARGET... -- SUITE...: by default builds these targets and the tests of these suites, otherwise everything.
compile() {
    local dir=$1 targets=() tests; shift
    if [ "$whole" = no ]; then
        while [ "$1" != -- ]; do targets+=("$1"); shift; done
        tests=$(python3 tests/meson-tests.py targets "$dir" "${@:2}") || return
        targets+=($tests)
    fi
    ninja -C "$dir" "${targets[@]}"
}

make_packages() { check "Debian's packages" bash tests/setup.sh test; }
make_gcc() {
    check "gcc, no warning" eval 'build_folder gcc "$build" && compile "$build" \
        agent/vesper-agent coordinator/vesper-coordinator coordinator/vesperctl tests/fake/fake-cluster tests/simulate/simulate-nodes \
        -- unit sim contract --but fuzz alloc-short'
}
make_clang() {
    check "clang, sanitized, no warning" eval 'build_folder clang "$san" -Db_sanitize=address,undefined -Db_lundef=false \
        -Dbuildtype=debug -Doptimization=1 && compile "$san" agent/vesper-agent coordinator/vesper-coordinator \
        -- unit sim contract --but alloc-long'
}
make_go() { check "Go" bash tests/setup.sh go; }
# Begins to build the control plane, which is mostly downloads at first, while the compilers have the processors. build.sh lets
# make_control_plane wait for it, and build again what this left undone.
begin_control_plane() { nice -n 19 bash tests/cluster/build.sh >/dev/null 2>&1 & }
make_control_plane() { check "the control plane, kubectl, kubelet and kwok" again bash tests/cluster/build.sh; }
make_moto() { check "moto and boto3" bash tests/setup.sh moto; }
make_kube_scheduler() { check "kube-scheduler's code" again bash tests/scheduler/build.sh; }
make_helm() { check "helm" again bash tests/manifests/build.sh; }
make_prometheus() { check "Prometheus" bash tests/setup.sh prometheus; }
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

# in_part OPTIONS...: prints the options in a run without names, and nothing otherwise.
in_part() { [ "$whole" = yes ] || echo "$@"; }

suite_tidy() {
    check "include rule, unique file names" python3 tests/check-includes.py
    check "the promises of README have their cases" python3 tests/promises.py
    check "the bench knows this build's rates" python3 tests/bench/run.py --defaults
    [ "$whole" = yes ] || return 0
    check "clang and fuzz targets, no warning" eval 'rm -rf "$build-clang" && build_folder clang "$build-clang" -Dfuzzers=true && ninja -C "$build-clang"'
    rm -rf "$build-clang"
}

suite_unit() {
    meson_tests "$build" "unit" --suite unit $(in_part --no-suite fuzz --no-suite alloc-short)
    meson_tests "$san" "unit, sanitized" --suite unit $(in_part --no-suite alloc-long)
    [ "$whole" = yes ] || return 0
    check "what inputs cost, in instructions" input_instructions
}

# Callgrind also finds slow loops that allocate nothing. The check takes two to three minutes of CPU time.
input_instructions() {
    local out status
    out=$(mktemp -d)
    VESPER_CALLGRIND=$out/count valgrind --quiet --tool=callgrind --collect-atstart=no --callgrind-out-file="$out/count" "$build/tests/unit/test-input-cost"
    status=$?
    rm -rf "$out"
    return "$status"
}

suite_sim() {
    local worlds=() # by default a few random ones
    [ "$whole" = no ] || worlds=(--suite random-all --no-suite random)
    meson_tests "$build" "sim" --suite sim "${worlds[@]}"
    meson_tests "$san" "sim, sanitized" --suite sim "${worlds[@]}"
}

suite_mutants() { counted mutants python3 tests/sim/mutants.py; }

# The copy in build-mutate/ makes the next run shorter.
suite_mutate() {
    [ "$every_suite" = no ] || set -- 40 --since 50
    counted mutate python3 tests/mutate/mutate.py --keep "$build-mutate" "$@"
}

suite_contract() {
    [ "$whole" = no ] || meson_tests "$build" "contract, fake" --suite contract
    meson_tests "$san" "contract, fake, sanitized" --suite contract
    counted "contract, clouds" python3 tests/contract/run-clouds.py
    [ -n "$real_contract" ] || begin_real_contract
    wait "$real_contract"
    counted "contract, real" cat "$real_output"
}
# Begins the contract on a real API server, which mostly waits. By default it runs beside sim, which has no clock but its own.
begin_real_contract() {
    python3 tests/contract/run-real.py $(in_part --plain) >"$real_output" 2>&1 &
    real_contract=$!
}

# The self-test shows first that the comparison finds planted differences.
suite_scheduler() {
    counted "scheduler, itself" python3 tests/scheduler/run.py --self-test
    counted scheduler python3 tests/scheduler/run.py $(in_part --seeds 1 200)
}

# Lines of each room that unit, sim and the contract on the fake execute. Random worlds do not count: after the next change, other
# worlds may execute other lines.
suite_coverage() {
    local dir=$build-cov
    check "build for coverage" eval 'build_folder gcc "$dir" -Db_coverage=true -Dbuildtype=debug -Doptimization=1 && ninja -C "$dir" && ninja -C "$dir" -t cleandead' || return
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

# Skips its cases, and says why, where no machines can be started: without root, or without cgroups of version 1.
suite_node() { counted node python3 tests/node/run.py $(in_part --promises); }
suite_node-all() { counted node-all python3 tests/node/run.py --all; }

# Skips a case, and says why, where the machine lacks debhelper, debootstrap and so on.
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
    check "build fuzz targets" eval 'build_folder clang "$build-fuzz" -Dfuzzers=true && ninja -C "$build-fuzz"' &&
        counted "fuzz" python3 tests/fuzz/run-fuzz.py "$build-fuzz" "${1:-60}"
}

# play SUITE ARGUMENTS...: runs the suite. If its preparation failed, that has been counted.
play() {
    if need $(needs "$1"); then part "suite $1" "suite_$1" "${@:2}"; else say "suite $1 is not played: its preparation failed"; fi
}

# -- the run -----------------------------------------------------------------------------------------------------

arguments=()
every=(tidy unit sim mutants mutate contract scheduler coverage e2e manifests node)
usage() {
    echo "usage: run.sh [all | SUITE...] | bench [NAME...] | mutate [N] [SEED] [PATH...] | fuzz [SECONDS] | soak SECONDS [FROM_SEED]"
    echo "suites: ${every[*]} node-all packages page"
    exit 2
}
suites=() every_suite=no
case ${1:-}:$# in
:0) whole=no; suites=(tidy unit sim contract scheduler e2e manifests node) ;;
bench:*|mutate:*|fuzz:[12]|soak:[23]) suites=("$1") arguments=("${@:2}") ;;
*)
    for suite; do
        case $suite in
        all) suites+=("${every[@]}"); every_suite=yes ;;
        tidy|unit|sim|mutants|mutate|contract|scheduler|coverage|e2e|manifests|node|node-all|packages|page) suites+=("$suite") ;;
        *) usage ;;
        esac
    done
    ;;
esac

rm -rf "$failed_logs"
if need packages; then
    case " ${suites[*]} " in *' contract '*|*' e2e '*|*' manifests '*|*' node '*) begin_control_plane ;; esac
fi
if need packages && need gcc; then
    for suite in "${suites[@]}"; do need $(needs "$suite"); done
    for suite in "${suites[@]}"; do
        if [ "$whole" = no ] && [ "$suite" = sim ] && need $(needs contract); then begin_real_contract; fi
        play "$suite" "${arguments[@]}"
    done
fi

say "times"
for i in "${!parts[@]}"; do printf '%5d s  %s\n' "${times[i]}" "${parts[i]}"; done
printf '%5d s  in all\n' "$SECONDS"
if [ "$failed" -gt 0 ]; then
    say "failed"
    cat "$failures"
fi
echo
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
