#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vesper's scheduling simulation against kube-scheduler's own code, on random clusters (clusters.py, compare.py).

    tests/scheduler/run.py                     the kept cases, then seeds 1 to 1000
    tests/scheduler/run.py --seeds 2000 500    the kept cases, then 500 seeds from 2000 on
    tests/scheduler/run.py --seed 412          this one, with all that is wrong in it, made small
    tests/scheduler/run.py --case FILE         only this case
    tests/scheduler/run.py --print 412         the cluster of a seed, as the tool would read it
    tests/scheduler/run.py --self-test         what compares, compared: vesper is not asked
    --tool COMMAND     what judges (default: tests/simulate/simulate-nodes where the programs were built, VESPER_BUILD)
    --keep             what is found, made small, goes to cases/, to be played in each run from then on
    --jobs N           processes (default: one for each processor)

A seed that fails is made small and written to VESPER_BUILD/scheduler/ (or cases/), with the command that plays it again. Prints,
last, "N passed, N failed, N skipped": a case for each kept file, one for the seeds.
"""

import argparse
import collections
import json
import multiprocessing
import os
import shlex
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import clusters  # noqa: E402
import compare  # noqa: E402
import oracle  # noqa: E402

CASES = os.path.join(HERE, "cases")
BUILD = os.environ.get("VESPER_BUILD") or os.path.join(os.path.dirname(os.path.dirname(HERE)), "build")
SEEDS = 1000


class Worker:
    """One process's schedcheck, made at its first seed."""
    oracle = None
    arguments = None


def begin(path, tool):
    Worker.oracle = oracle.Oracle(path)
    Worker.arguments = tool


def play(seed):
    objects = clusters.draw(seed, Worker.oracle.place)
    compared = compare.Comparison(Worker.oracle, Worker.arguments, objects)
    return seed, compared.counts, compared.findings


def shown(findings, most=3):
    for f in findings[:most]:
        print(f"        {f.kind} ({f.rule}) when {f.node or 'any node'} goes: {f.text}")
    if len(findings) > most:
        print(f"        and {len(findings) - most} more")


def errors(findings):
    return [f for f in findings if f.kind in compare.ERRORS]


def make_small(asked, tool, objects, finding):
    """The fewest objects in which the same is wrong."""
    def fails(trial):
        try:
            compared = compare.Comparison(asked, tool, trial)
        except oracle.OracleError:  # what is left makes no sense
            return False
        return any(compare.same(finding, f) for f in compared.findings)
    return compare.shrink(objects, fails)


def write_case(directory, name, objects, about):
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, name + ".json")
    with open(path, "w", encoding="utf-8") as f:
        f.write('{"about": %s,\n "kind": "List", "apiVersion": "v1", "items": [\n' % json.dumps(about))
        f.write(",\n".join(json.dumps(o, sort_keys=True) for o in objects))
        f.write("\n]}\n")
    return path


def read_case(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)["items"]


def report_seed(arguments, path, tool, seed):
    """Each kind and rule once, made small."""
    seen = set()
    with oracle.Oracle(path) as asked:
        objects = clusters.draw(seed, asked.place)
        for finding in compare.Comparison(asked, tool, objects).findings:
            if (finding.kind, finding.rule) in seen or finding.kind == "packing" and arguments.seed is None:
                continue
            seen.add((finding.kind, finding.rule))
            small = make_small(asked, tool, objects, finding)
            small_findings = compare.Comparison(asked, tool, small).findings
            word = "".join(ch if ch.isalnum() else "-" for ch in finding.rule.split(":")[0]).strip("-").lower()
            name = "-".join(filter(None, (finding.kind, word, str(seed))))
            kept = write_case(CASES if arguments.keep else os.path.join(BUILD, "scheduler"), name, small,
                              f"{finding.kind}: {finding.rule or finding.text}")
            print(f"    made small: {kept}, {len(small)} of {len(objects)} objects")
            shown([f for f in small_findings if f.kind == finding.kind], 1)


def play_seeds(arguments, path, tool, first, count):
    started = time.monotonic()
    total, rules, bad = collections.Counter(), collections.Counter(), []
    with multiprocessing.Pool(arguments.jobs, begin, (path, tool)) as pool:
        for seed, counts, findings in pool.imap_unordered(play, range(first, first + count), chunksize=4):
            total.update(counts)
            rules.update((f.kind, f.rule) for f in findings)
            if errors(findings):
                bad.append((seed, findings))
    bad.sort()
    print(f"{total['clusters']} clusters, {total['nodes']} nodes asked in {time.monotonic() - started:.0f} s: {total['yes']} yes, "
          f"{total['no']} no seats, {total['other']} no for another reason")
    print(f"{total['constraint'] + total['left-out']} constraint errors, {total['needless']} needless noes, "
          f"{total['packing']} packing misses, {total['order']} no for an unlucky order alone, {total['crash']} crashes")
    for (kind, rule), n in sorted(rules.items(), key=lambda x: (-x[1], x[0])):
        if kind != "packing":
            print(f"    {n:5d}  {kind}: {rule}")
    for seed, findings in bad[:20]:
        print(f"    seed {seed}: tests/scheduler/run.py --seed {seed}")
        shown(errors(findings), 1)
    told = set()
    for seed, findings in bad:  # a new one is made small
        new = {(f.kind, f.rule) for f in errors(findings)} - told
        if new and len(told) < 6:
            told |= new
            report_seed(arguments, path, tool, seed)
    # Where nothing was said yes or no to, nothing was compared.
    if count >= 50 and not (total["yes"] and total["no"]):
        print("    no yes, or no no: these clusters compare nothing")
        return False
    return not bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", nargs=2, type=int, default=(1, SEEDS), metavar=("FIRST", "COUNT"))
    parser.add_argument("--seed", type=int)
    parser.add_argument("--case")
    parser.add_argument("--print", type=int, metavar="SEED")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--tool", default=os.path.join(BUILD, "tests", "simulate", "simulate-nodes"))
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    path = oracle.built()
    if arguments.print is not None:
        with oracle.Oracle(path) as asked:
            json.dump({"kind": "List", "apiVersion": "v1", "items": clusters.draw(arguments.print, asked.place)}, sys.stdout, indent=1)
        return 0
    if arguments.self_test:
        import selftest
        return selftest.run(path, arguments.jobs)

    passed, failed = 0, 0
    tool = compare.Tool(shlex.split(arguments.tool))
    if not os.access(tool.command[0], os.X_OK):
        print(f"FAILED  the tool that judges is not there: {tool.command[0]}")
        print("0 passed, 1 failed, 0 skipped")
        return 1

    def verdict(good, name):
        nonlocal passed, failed
        passed, failed = passed + good, failed + (not good)
        print(f"{'ok     ' if good else 'FAILED '} {name}")

    kept = sorted(os.listdir(CASES)) if os.path.isdir(CASES) and arguments.seed is None else []
    for case in [arguments.case] if arguments.case else [os.path.join(CASES, name) for name in kept if name.endswith(".json")]:
        with oracle.Oracle(path) as asked:
            findings = compare.Comparison(asked, tool, read_case(case)).findings
        verdict(not errors(findings), f"scheduler: {os.path.basename(case)}")
        shown(findings)
    if arguments.seed is not None:
        begin(path, tool)
        _, counts, findings = play(arguments.seed)
        shown(findings, len(findings))
        print(", ".join(f"{n} {what}" for what, n in counts.items()))
        report_seed(arguments, path, tool, arguments.seed)
        verdict(not errors(findings), f"scheduler: seed {arguments.seed}")
    elif not arguments.case:
        first, count = arguments.seeds
        verdict(play_seeds(arguments, path, tool, first, count), f"scheduler: seeds {first} to {first + count - 1}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
