#!/usr/bin/env python3
"""Adds a column to a step in a copy of the sources, builds what records and reads one, and looks for the column's value in the
recording's JSON and CSV. Usage: new_column.py SOURCES BUILD PROTOZERO_INCLUDE COMPILER..."""
import json
import pathlib
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sources, build, protozero, compiler = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3], sys.argv[4:]
copy = build / "copy"

# file: (what stands there, what is put before it), …
EDITS = {
    "include/drawpoint/instrumentation/ledger/rows.hpp": [
        ("    std::optional<std::int64_t> between_run_queue_ns;\n",
         "    std::optional<std::int64_t> heat_ns;\n"),
        ("                Column{\"spans\", &R::spans, Part{}});",
         "                Column{\"heat_ns\", &R::heat_ns, Measured{99}},\n"),
    ],
    "instrumentation/recorder/loop_track.cpp": [("    step_.loss = loss;\n", "    step_.heat_ns = 4711;\n")],
}
# What a recorder, the reader of its file and the exports are made of.
PARTS = ["instrumentation/*.cpp", "instrumentation/host/*.cpp", "instrumentation/ledger/*.cpp",
         "instrumentation/recorder/*.cpp", "instrumentation/text/*.cpp", "instrumentation/trace/*.cpp"]
MORE = ["instrumentation/export/csv.cpp", "instrumentation/export/json.cpp", "instrumentation/export/json_text.cpp",
        "instrumentation/report/json.cpp", "instrumentation/report/summary_device.cpp"]
UNUSED = {"attribution.cpp", "ledger_window.cpp", "schedule.cpp", "statistics.cpp"}


def copied():
    shutil.rmtree(copy, ignore_errors=True)
    for folder in ("include", "instrumentation"):
        shutil.copytree(sources / folder, copy / folder)
    shutil.copy(pathlib.Path(__file__).with_name("new_column.cpp"), copy / "new_column.cpp")
    for name, places in EDITS.items():
        text = (copy / name).read_text()
        for place, added in places:
            # A step's line stands before those of other rows.
            if place not in text:
                sys.exit(f"{name} has no line {place!r} any more: this test needs a place for its column")
            text = text.replace(place, added + place, 1)
        (copy / name).write_text(text)


def run(*command):
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr[-4000:]}")
    return done.stdout


def built():
    files = [str(file.relative_to(copy)) for part in PARTS for file in sorted(copy.glob(part)) if file.name not in UNUSED]
    files += MORE + ["new_column.cpp"]
    objects = [file.replace("/", "_") + ".o" for file in files]
    flags = ["-std=c++20", "-O0", "-w", "-Iinclude", "-I.", "-idirafter", protozero]
    with ThreadPoolExecutor(2) as two:
        list(two.map(lambda pair: run(*compiler, *flags, "-c", pair[0], "-o", pair[1]), zip(files, objects)))
    run(compiler[-1], *objects, "-o", "new_column", "-lfmt", "-lz", "-pthread")


copied()
built()
run("./new_column", "run.pftrace", "ledger.json", "steps.csv")
steps = json.loads((copy / "ledger.json").read_text())["steps"]
lines = [line.split(",") for line in (copy / "steps.csv").read_text().splitlines()]
in_json = [step.get("heat_ns") for step in steps]
in_csv = [dict(zip(lines[0], line)).get("heat_ns") for line in lines[1:]]
if in_json != [4711, 4711] or in_csv != ["4711", "4711"]:
    sys.exit(f"the column of two steps is {in_json} in JSON and {in_csv} in CSV, not 4711 each")
if b"heat_ns" not in (copy / "run.pftrace").read_bytes():
    sys.exit("the recording does not declare the column")
print(f"a column of a step came from the loop to JSON and CSV by edits of {len(EDITS)} files")
