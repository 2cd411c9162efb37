#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs fuzz targets and prints what came of it.

    run-fuzz.py BUILD SECONDS [TARGET...]     each for so long, two at a time
    run-fuzz.py BUILD merge [TARGET...]       takes what they found into tests/fuzz/corpus, as few inputs as reach as far

BUILD is a folder of `CC=clang meson setup BUILD -Dfuzzers=true`. What is found is kept: new inputs in
BUILD/corpus/TARGET, for the next run to begin from, inputs that break something in BUILD/findings/TARGET. The last line
is "N passed, N failed, N skipped".
"""
import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
AT_A_TIME = 2
# What a replay in every run of `unit` may cost.
CORPUS_FILES_MAX = 200
CORPUS_BYTES_MAX = 100_000
INPUT_BYTES_MAX = 4096
ROW = "{:<20} {:>12} {:>8} {:>8} {:>10} {:>8}"


def targets(build, names):
    found = sorted(p for p in (build / "tests/fuzz").glob("fuzz-*") if p.is_file() and p.suffix == "")
    return [p for p in found if not names or p.name.removeprefix("fuzz-") in names]


def stat(output, name):
    m = re.findall(rf"stat::{name}:\s+(\d+)", output)
    return int(m[-1]) if m else 0


def fuzz(build, program, seconds):
    name = program.name.removeprefix("fuzz-")
    corpus, findings = build / "corpus" / name, build / "findings" / name
    for folder in (corpus, findings):
        folder.mkdir(parents=True, exist_ok=True)
    before = set(findings.iterdir())
    done = subprocess.run([program, f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1",
                           f"-artifact_prefix={findings}/", corpus, HERE / "corpus" / name],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    edges = re.findall(r"cov: (\d+)", done.stdout)
    row = (name, stat(done.stdout, "number_of_executed_units"), stat(done.stdout, "average_exec_per_sec"),
           int(edges[-1]) if edges else 0, stat(done.stdout, "new_units_added"))
    return row, sorted(set(findings.iterdir()) - before), done


def run(build, seconds, programs):
    failed = 0
    print(ROW.format("target", "executions", "exec/s", "edges", "new inputs", "findings"), flush=True)
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        for row, findings, done in pool.map(lambda p: fuzz(build, p, seconds), programs):
            print(ROW.format(*row, len(findings)), flush=True)
            # libFuzzer's slow-unit files are remarks, not findings: only its exit status counts.
            if done.returncode != 0:
                failed += 1
                print(f"FAILED  fuzz-{row[0]} (exit status {done.returncode}); its input: "
                      + (", ".join(str(f) for f in findings) or "none was kept"))
                print("\n".join("        " + line for line in done.stdout.splitlines()[-60:]))
    return failed


def size(folder):
    files = [p for p in folder.iterdir() if p.is_file()]
    return len(files), sum(p.stat().st_size for p in files)


def merge(build, programs):
    """Inputs of the tree stay; of the new ones those that reach what nothing before reached, smallest first."""
    for program in programs:
        name = program.name.removeprefix("fuzz-")
        ours, new, picked = HERE / "corpus" / name, build / "corpus" / name, build / "merged" / name
        if not new.is_dir():
            continue
        shutil.rmtree(picked, ignore_errors=True)
        shutil.copytree(ours, picked)
        # By edges alone: what differs in nothing but how often an edge was taken is worth no file in the tree.
        subprocess.run([program, "-set_cover_merge=1", "-use_counters=0", f"-max_len={INPUT_BYTES_MAX}", picked, new], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=True)
        before = size(ours)
        for p in sorted((p for p in picked.iterdir() if not (ours / p.name).exists()), key=lambda p: p.stat().st_size):
            files, total = size(ours)
            if files + 1 < CORPUS_FILES_MAX and total + p.stat().st_size < CORPUS_BYTES_MAX:
                shutil.copy(p, ours / p.name)
        print(f"{name:<20} {before[0]:>5} -> {size(ours)[0]:>5} inputs, {size(ours)[1]:>7} bytes")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    build, what, programs = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], targets(pathlib.Path(sys.argv[1]).resolve(), sys.argv[3:])
    if not programs:
        sys.exit(f"{build} has no fuzz targets: CC=clang meson setup {build} -Dfuzzers=true && ninja -C {build}")
    if what == "merge":
        merge(build, programs)
        return 0
    failed = run(build, int(what), programs)
    print(f"{len(programs) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
