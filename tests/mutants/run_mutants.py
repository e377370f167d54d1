#!/usr/bin/env python3
"""Seeds one small bug after another, and looks whether a test notices.

mutants.txt has the bugs: a place in a file, what stands there, what is to stand there, and which suites should notice.
Works on a copy of the sources in build/mutants, built without LibTorch. A bug is killed if one of the suites fails,
crashes, or hangs; those of the loader that no suite notices, by the simulation of the loader. Prints a line each, and
the survivors at the end, with what mutants.txt says of why one `lives:`. Status 1: fewer than 95 % are killed, apart
from those that it calls `harmless:`, which change nothing that anybody could see.
--torch: the bugs in device_mutants.txt, in a build with LibTorch. --only: those whose file or text contains TEXT. --every N: a random Nth of them, chosen by --seed."""

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

root = Path(__file__).resolve().parents[2]
tree = root / "build" / "mutants" / "tree"
build = root / "build" / "mutants" / "build"   # with --torch: build-torch
simulated = ("pipeline/loader/threads/", "pipeline/loader/core/", "pipeline/loader/machine/", "pipeline/loader/data_loader",
             "include/drawpoint/pipeline/loader/machine/")
share_to_kill = 0.95


def read_mutants(path):
    mutants, current = [], {}
    for line in path.read_text().splitlines() + [""]:
        if line.startswith("#"):
            continue
        if not line.strip():
            if current:
                mutants.append(current)
            current = {}
            continue
        key, _, value = line.partition(":")
        current[key] = value.strip()
    return mutants


def copy_sources():
    tree.mkdir(parents=True, exist_ok=True)
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, text=True, capture_output=True,
                            check=True).stdout.split("\n")
    wanted = {name for name in listed if name and (root / name).is_file()}
    for old in [p for p in tree.rglob("*") if p.is_file()]:
        if str(old.relative_to(tree)) not in wanted:
            old.unlink()
    for name in wanted:
        to = tree / name
        if not to.exists() or to.read_bytes() != (root / name).read_bytes():
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, to)   # as of now, for Ninja: an older time may be that of what was built


def configure(torch):
    run = ["cmake", "-G", "Ninja", "-S", str(tree), "-B", str(build), "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
           "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1", "-DDRAWPOINT_DEVELOPER=ON",
           f"-DDRAWPOINT_TORCH={'ON' if torch else 'OFF'}", f"-DCMAKE_RUNTIME_OUTPUT_DIRECTORY={build}/bin"]
    subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
    commands = {}   # ctest itself lists only those of programs that are built
    for file in build.rglob("CTestTestfile.cmake"):
        for name, words in re.findall(r'^add_test\((?:\[=*\[|"|)([^"\] ]+)(?:\]=*\]|"|) (.*)\)$', file.read_text(),
                                      re.MULTILINE):
            commands[name] = re.findall(r'"([^"]*)"', words)
    return commands


def make(targets):
    return subprocess.run(["cmake", "--build", str(build), "--parallel", str(os.cpu_count()), "--target", *targets],
                          capture_output=True, text=True)


class Suites:
    def __init__(self, commands):
        self.commands = commands
        self.took = {}

    def matching(self, pattern):
        found = sorted(name for name in self.commands if re.search(pattern, name))
        if not found:
            raise SystemExit(f"run_mutants: no suite matches {pattern}")
        return found

    def target(self, name):
        return Path(self.commands[name][0]).name

    def passes(self, name, limit_s, simulations="20000"):
        environment = dict(os.environ, DRAWPOINT_SIMULATIONS=simulations)
        try:
            done = subprocess.run(self.commands[name], cwd=build, env=environment, capture_output=True, timeout=limit_s)
        except subprocess.TimeoutExpired:
            return "hangs"
        return "" if done.returncode == 0 else "fails"


def mutate(suites, mutant):
    """Returns what killed the mutant, or an empty text."""
    path = tree / mutant["file"]
    text = path.read_text()
    if text.count(mutant["from"]) != 1:
        return "stale"
    names = suites.matching(mutant["tests"])
    simulates = "loader_simulation" in suites.took and mutant["file"].startswith(simulated)
    path.write_text(text.replace(mutant["from"], mutant["to"]))
    try:
        built = make({suites.target(name) for name in names})
        if built.returncode != 0:
            lines = [line for line in built.stdout.split("\n") if "error" in line]
            return "does not compile: " + (lines[0].split("error: ")[-1] if lines else "?")
        for name in names:
            how = suites.passes(name, 20 + 10 * suites.took[name])
            if how:
                return f"{name} {how}"
        if simulates:
            make(["drawpoint_simulation_tests"])
            how = suites.passes("loader_simulation", 60)
            if how:
                return f"loader_simulation {how}"
        return ""
    finally:
        path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--torch", action="store_true")
    wishes = parser.parse_args()
    global build
    if wishes.torch:
        build = build.with_name("build-torch")
    list_of_bugs = Path(__file__).with_name("device_mutants.txt" if wishes.torch else "mutants.txt")
    mutants = [m for m in read_mutants(list_of_bugs) if wishes.only in m["file"] + m["from"]]
    random.Random(wishes.seed).shuffle(mutants)
    mutants = mutants[::wishes.every][wishes.first:]

    copy_sources()
    suites = Suites(configure(wishes.torch))
    names = sorted({name for m in mutants for name in suites.matching(m["tests"])} |
                   ({"loader_simulation"} if not wishes.torch else set()))
    built = make({suites.target(name) for name in names})
    if built.returncode != 0:
        raise SystemExit("run_mutants: the sources do not build:\n" + built.stdout[-3000:])
    for name in names:
        begin = time.monotonic()
        how = suites.passes(name, 600) and suites.passes(name, 600)   # twice: one may need a quiet machine
        suites.took[name] = time.monotonic() - begin
        if how:
            raise SystemExit(f"run_mutants: without any bug, {name} {how}")

    survivors, killed, unusable = [], 0, []
    for number, mutant in enumerate(mutants):
        how = mutate(suites, mutant)
        if how == "stale" or how.startswith("does not compile"):
            unusable.append((mutant, how))
        elif how:
            killed += 1
        elif "harmless" not in mutant:
            survivors.append(mutant)
        print(f"{number:4} {mutant['file']}: {mutant['to'][:60]}: {how or 'SURVIVES'}", flush=True)
    make([suites.target(name) for name in names])   # the sources as they are, for the next time
    counted = killed + len(survivors)
    print(f"{killed} of {counted} killed ({100 * killed / max(counted, 1):.1f} %), {len(unusable)} not usable")
    for mutant in survivors:
        print(f"survives: {mutant['file']}: {mutant['from']}  ->  {mutant['to']}: {mutant.get('lives', 'not explained')}")
    for mutant, how in unusable:
        print(f"not usable: {mutant['file']}: {mutant['from']}: {how}")
    sys.exit(0 if killed >= share_to_kill * counted else 1)


if __name__ == "__main__":
    main()
