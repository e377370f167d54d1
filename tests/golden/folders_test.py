#!/usr/bin/env python3
"""Golden tests on other folders: of the project's own golden files further folders are made (cases under other names, a group
or a case alone, a companion or a case taken away, files that cannot be read or that nobody knows), and the golden tests are
run with DRAWPOINT_GOLDEN_DIR naming each. Every case must be replayed, or be named with the reason; nothing may be skipped.
usage: folders_test.py PROGRAM [OTHER_PROGRAM=TEST]..."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

OWN = Path(__file__).resolve().parent
GROUPS = sorted(path.name for path in OWN.iterdir() if path.is_dir() and re.match(r"g\d_", path.name))
COMPANIONS = (".plain.txt", ".markdown.md", ".csv", ".key_averages.json", ".loop_truth.json", ".table_self_cpu.txt",
              ".table_by_shape.txt", ".table_count_all.txt", ".input.json", ".txt")
FAULTS = []

# Recorded answers, a file of each kind with one changed: its replay must fail.
CHANGED_ANSWERS = [("g1_scale_time/scale_time.json", '"out": "', '"out": "1'),
                   ("g2_fastxtend/simple_huge.csv", "fit", "fits"),
                   ("g2_fastxtend/simple_no_valid_batches.json", '"train_forward": [', '"train_forward": [7.5, '),
                   ("g2_fastxtend_direct/direct_ms.plain.txt", "draw", "drew"),
                   ("g2_fastxtend_seed000_v0.1/throughput_1ep.plain.txt", "draw", "drew"),
                   ("g2_fastxtend_seed001_v0.0.19/simple_huge.plain.txt", "draw", "drew"),
                   ("g3_events/cancels.json", "before_fit before_epoch", "before_epoch before_fit"),
                   ("g3_events/gating.json", '"run_after_fit": true', '"run_after_fit": false'),
                   ("g3_events/loaders.json", "before_fit before_epoch", "before_epoch before_fit"),
                   ("g3_events/ordinary_exceptions.json", "before_fit before_epoch", "before_epoch before_fit"),
                   ("g3_events/show_training_loop_simple.txt", "Start Fit", "Start Fits"),
                   ("g4_lightning/simple_profiler.json", "Profiler Report", "Profiler Reports"),
                   ("g4_lightning/file_names.json", '"name":"', '"name":"other'),
                   ("g5_torch_schedule/schedule_table.json", '"333', '"033'),
                   ("g5_torch_schedule/transitions.json", "prepare_trace", "start_trace"),
                   ("g5_torch_schedule/texts.json", "Invalid profiler", "Valid profiler"),
                   ("g6_kineto/cpu_workers2_gz.table_count_all.txt", "aten::", "btep::"),
                   ("g6_kineto/stack_linear16.stacks_self_cpu_time_total.txt", " 3\n", " 03\n")]


class Answer:
    """What the golden tests say of a folder."""

    def __init__(self, program, folder):
        run = subprocess.run([program, "--log_level=message", "--color_output=no"], capture_output=True, text=True,
                             env={**os.environ, "DRAWPOINT_GOLDEN_DIR": str(folder)})
        self.code, self.output, self.folder = run.returncode, run.stdout + run.stderr, folder

    def lines_of(self, name):
        """The lines that name a file of the folder."""
        return [line for line in self.output.splitlines() if f"{self.folder}/{name}" in line]

    def replayed(self, name):
        """How many cases of a file some test replayed."""
        counts = [re.search(r": (\d+) replayed, (\d+) not replayed", line) for line in self.lines_of(name)]
        return max((int(count[1]) for count in counts if count), default=0)


def check(what, good, answer):
    print("ok  " if good else "BAD ", what, flush=True)
    if not good:
        FAULTS.append(what)
        print("\n".join(line for line in answer.output.splitlines() if "error" in line)[:4000], file=sys.stderr)


def is_companion(path):
    """Whether the file belongs to a case that another file holds."""
    shown = path.name.startswith("show_training_loop_") and path.name.endswith(".txt")
    return path.name.endswith(COMPANIONS) and not shown and ".stacks_" not in path.name and ".table_stack" not in path.name


def are_orders(path):
    """Recorded orders of callbacks are no case: other cases read them."""
    content = json.loads(path.read_text()) if path.suffix == ".json" else None
    return isinstance(content, dict) and all(isinstance(value, int) for value in content.values())


def cases(folder):
    """The files with cases that the program replays; advanced_*.masked.txt is another program's."""
    return [path.relative_to(folder).as_posix() for path in sorted(folder.glob("*/*"))
            if not is_companion(path) and not path.name.startswith("advanced_") and not are_orders(path)]


def copy(groups, to, rename=lambda name: name, only=lambda path: True):
    for group in groups:
        for path in (OWN / group).iterdir():
            if only(path):
                (to / group).mkdir(parents=True, exist_ok=True)
                shutil.copy(path, to / group / rename(path.name))
    return to


def new_name(name):
    """Another name for a case, and the same for what lies beside it."""
    for shown in ("show_training_loop_", "advanced_"):
        if name.startswith(shown):
            return shown + "other_" + name.removeprefix(shown)
    return "zz_" + name


def all_are_replayed(program, folder, what):
    answer = Answer(program, folder)
    check(f"{what}: accepted", answer.code == 0, answer)
    for name in cases(folder):
        check(f"{what}: {name} is replayed", answer.replayed(name) > 0, answer)


def is_named(program, folder, name, *words, what, code):
    answer = Answer(program, folder)
    check(f"{what}: exit code {code}", (answer.code != 0) == (code != 0), answer)
    check(f"{what}: named", any(all(word in line for word in words) for line in answer.lines_of(name)), answer)
    return answer


def change(path, edit):
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


def other_sizes(folder):
    """A recorded trace whose loop says another batch size: that is what the driver must expect of it."""
    copy(["g6_kineto"], folder, only=lambda path: path.name.startswith("cpu_"))
    truth = next(folder.glob("*/*.loop_truth.json"))
    change(truth, lambda content: content["loader"].update(batch_size=99))
    return truth.name.removesuffix(".loop_truth.json") + ".json.gz"


def other_counts(folder):
    """Recorded answers for other counts: a plain run of 3 epochs x 4 + 1 batches, made of the pieces of the recorded one, and
    schedules of 20 steps."""
    copy(["g3_events", "g5_torch_schedule"], folder,
         only=lambda path: path.name in ("plain_run_with_before_draw.json", "schedule_table.json"))
    plain = folder / "g3_events" / "plain_run_with_before_draw.json"

    def lengthen(content):
        seen = content["run"]["A"].split()
        batch, rest = (seen[at:seen.index("after_batch", at) + 1]
                       for at in (seen.index("before_draw"), seen.index("before_draw", seen.index("before_validate"))))
        epoch = ["before_epoch", "before_train", *4 * batch, "after_train", "before_validate", *rest, "after_validate", "after_epoch"]
        content["shape"] = "3 epochs x 4 train batches + 1 validation batches"
        content["run"].update(A=" ".join(["after_create", "before_fit", *3 * epoch, "after_fit"]), drawn=[12, 3])
    change(plain, lengthen)

    def shorten(content):
        content["rows"] = [[*row[:6], row[6][:20]] for row in content["rows"][:5]]
    change(folder / "g5_torch_schedule" / "schedule_table.json", shorten)
    return folder


def check_others(others, folder, what):
    """Tests of other programs that read golden files."""
    for other, test in others:
        run = subprocess.run([other, f"--run_test={test}", "--log_level=message", "--color_output=no"], capture_output=True,
                             text=True, env={**os.environ, "DRAWPOINT_GOLDEN_DIR": str(folder)})
        if run.returncode != 0:
            FAULTS.append(what)
            print("BAD ", what, test, run.stdout[-1000:], run.stderr[-1000:])


def every_folder(program, others, root):
    all_are_replayed(program, copy(GROUPS, root / "renamed", new_name), "renamed")
    check_others(others, root / "renamed", "renamed")
    all_are_replayed(program, other_counts(root / "counts"), "other counts")
    for group in GROUPS:
        all_are_replayed(program, copy([group], root / group), f"{group} alone")
    one = OWN / "g2_fastxtend" / "simple_huge"
    single = lambda path: path.name.startswith(one.name + ".")
    all_are_replayed(program, copy(["g2_fastxtend"], root / "one", only=single), "one case")
    check_others(others, root / "one", "one case")

    for end in (".plain.txt", ".csv"):
        folder = copy(["g2_fastxtend"], root / f"without{end}", only=lambda path: single(path) and not path.name.endswith(end))
        answer = is_named(program, folder, "g2_fastxtend/simple_huge.json", "missing companion", end,
                          what=f"without {end}", code=0)
        check(f"without {end}: the rest is replayed", answer.replayed("g2_fastxtend/simple_huge.json") > 0, answer)
    folder = copy(["g2_fastxtend"], root / "orphan", only=lambda path: single(path) and path.suffix != ".json")
    is_named(program, folder, "g2_fastxtend/simple_huge.csv", "simple_huge.json is missing",
             what="texts without their case", code=1)
    folder = copy(["g6_kineto"], root / "truthless", only=lambda path: not path.name.endswith(".loop_truth.json"))
    is_named(program, folder, "g6_kineto/cpu_workers2_gz.json.gz", "missing companion",
             what="a trace without its loop's clock", code=0)

    folder = root / "unread"
    (folder / "g3_events").mkdir(parents=True)
    (folder / "g3_events" / "broken.json").write_text('{"cases": [')
    (folder / "g3_events" / "unknown.json").write_text('{"cases": [{"colour": "red"}]}')
    (folder / "g3_events" / "notes.doc").write_text("?")
    (folder / "g9_other").mkdir()
    answer = Answer(program, folder)
    check("unread: refused", answer.code != 0, answer)
    for name, word in (("g3_events/broken.json", "parse error"), ("g3_events/unknown.json", "no test reads"),
                       ("g3_events/notes.doc", "no test reads"), ("g9_other", "no test reads")):
        check(f"unread: {name} is named", any(word in line for line in answer.lines_of(name)), answer)

    changes = {   # a case that cannot be replayed, among others that can
        "unknown key": ("g2_fastxtend/simple_huge.json", lambda content: content["input"].update(colour="red"),
                        "unknown key colour"),
        "unknown exception": ("g3_events/cancels.json", lambda content: content["cases"][0].update(exception="LoudError()"),
                              "no exception of ours stands for LoudError"),
        "unknown loader": ("g3_events/loaders.json", lambda content: content["cases"][0].update(case="train sings"),
                           "unknown loader"),
        "unknown operation": ("g4_lightning/simple_profiler.json",
                              lambda content: content["cases"][0]["input"]["script"].append(["sing"]),
                              "unknown operation sing"),
        "unknown call": ("g5_torch_schedule/transitions.json",
                         lambda content: content["cases"][0]["calls"][1].__setitem__(0, "sing"), "unknown call sing"),
        "unknown text": ("g5_torch_schedule/texts.json", lambda content: content["cases"][0].update(id="sing"), "unknown text"),
    }
    for what, (name, edit, words) in changes.items():
        folder = copy([name.split("/")[0]], root / what.replace(" ", "_"))
        change(folder / name, edit)
        answer = is_named(program, folder, name, words, what=what, code=1)
        for other in cases(folder):
            if not other.startswith("g2_") or other != name:
                check(f"{what}: {other} is replayed", answer.replayed(other) > 0, answer)

    for name, old, new in CHANGED_ANSWERS:
        folder = copy([name.split("/")[0]], root / "changed" / name)
        text = (folder / name).read_text()
        (folder / name).write_text(text.replace(old, new, 1))
        answer = Answer(program, folder)
        check(f"another answer in {name}: noticed", old in text and answer.code != 0 and
              answer.lines_of(name.split(".")[0]), answer)

    folder = root / "sizes"
    name = other_sizes(folder)
    answer = Answer(program, folder)
    check("another batch size: the trace is held against it", answer.code != 0 and "step.size" in answer.output, answer)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as root:
        every_folder(Path(sys.argv[1]).resolve(), [other.split("=") for other in sys.argv[2:]], Path(root))
    sys.exit(f"{len(FAULTS)} checks failed" if FAULTS else 0)


if __name__ == "__main__":
    main()
