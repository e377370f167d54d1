#!/usr/bin/env python3
"""include_graph.py [PROJECT]: who may include whom. Rooms depend one way: instrumentation <- pipeline <- loop <-
diagnosis <- bench <- cli; each heavy library stays in the place that needs it,
and each private header in its room. Prints file:line: rule: text."""

import posixpath
import re
import sys
from fnmatch import fnmatch

from sources import main

# Headers for users, each of which includes those of one subject.
DOORS = ["data", "loader", "loop", "torch", "recorder", "ledger", "report", "diagnose", "tune", "trace", "bench"]

# What the files that match the first pattern may include of the project. Paths are below include/drawpoint or the root,
# without extension. The first match decides; a room may always include itself.
ROOMS = [
    ("instrumentation/*", []),
    ("pipeline/torch/*", ["pipeline/*", "instrumentation/*"]),
    # The pipeline feeds instrumentation and never reads it: names of facts, but no reports, no statistics, no files.
    ("pipeline/*", ["instrumentation/clock", "instrumentation/event", "instrumentation/facts", "instrumentation/recorder/*",
                    "instrumentation/ledger/ledger", "instrumentation/ledger/rows", "instrumentation/ledger/order_rule",
                    "instrumentation/ledger/loader_kind",
                    "instrumentation/text/printable",
                    "instrumentation/host/*", "instrumentation/detail/replaced_file", "instrumentation/detail/atomics"]),
    # A learner of LibTorch takes the loader's own batches, so it may know them.
    ("loop/torch/*", ["instrumentation/*", "pipeline/torch/*", "pipeline/loader/core/batch_slots",
                      "pipeline/loader/core/batch_source", "pipeline/runtime/runtime", "pipeline/errors", "pipeline/rng"]),
    ("loop/*", ["instrumentation/*", "pipeline/runtime/runtime", "pipeline/loader/core/batch_source", "pipeline/errors",
                "pipeline/rng"]),
    ("diagnosis/*", ["instrumentation/*", "pipeline/*", "loop/*"]),
    ("python/*", ["instrumentation/*", "pipeline/*", "loop/*", "diagnosis/*"]),
    ("bench/experiment/*", ["instrumentation/*", "pipeline/*", "loop/*", "diagnosis/*"]),
    ("bench/suite/*", ["instrumentation/*", "pipeline/*", "loop/*", "diagnosis/*", "bench/experiment/*"]),
    *((door, ["instrumentation/*", "pipeline/*", "loop/*", "diagnosis/*", "bench/experiment/*", "bench/suite/*"])
      for door in DOORS),
    ("drawpoint", DOORS),   # all doors but that of LibTorch
    ("cli/*", ["*"]), ("tests/*", ["*"]), ("bench/*", ["*"]), ("examples/*", ["*"]),
]
ROOM_NAMES = ("instrumentation", "pipeline", "loop", "diagnosis", "cli", "tests", "bench", "examples", "python")

# Libraries by how their includes begin, and the only places that may have them.
LIBRARIES = [
    ("LibTorch", r"(torch|ATen|c10|caffe2)/", ["*/torch/*", "cli/*", "bench/*", "examples/*"]),
    ("oneTBB", r"(tbb|oneapi)/", ["pipeline/runtime/worker_pool*", "tests/*", "bench/*", "examples/*"]),
    ("Asio", r"(asio\.hpp$|asio/)", ["pipeline/*", "loop/*", "cli/*", "tests/*", "bench/*", "examples/*"]),
    ("protozero", r"protozero/", ["instrumentation/trace*", "instrumentation/export/*", "loop/loggers/*", "tests/*",
                                   "bench/*"]),
    ("gRPC", r"(grpc(pp)?/|.*\.grpc\.pb)", ["cli/serve/*", "tests/cli/*"]),
    ("cpp-httplib", r"httplib", ["cli/serve/*", "tests/cli/*"]),
    ("prometheus-cpp", r"prometheus/", ["cli/prometheus"]),
    ("nanobind", r"nanobind/", ["python/*"]),
    ("simdjson", r"simdjson", ["instrumentation/import/*"]),
    ("LibTorch, through a header of a torch/ folder,", r"drawpoint/(.*/)?torch/",
     ["*/torch/*", "torch", "cli/*", "bench/*", "examples/*", "tests/cli/*"]),
]
# A private header lies beside its sources and belongs to its room; tests and benchmarks may look inside.
PRIVATE_READERS = ("tests", "bench")
# A header in a folder detail/ is for the rooms, and for what users' headers need themselves: never for users.
DETAIL_STRANGERS = ["examples/*", "tests/consumer/*", "tests/compile_fail/*", "drawpoint", *DOORS]
DOOR = re.compile(r"drawpoint/[a-z]+\.hpp$")
DOOR_USERS = ["examples/*", "tests/consumer/*", "tests/compile_fail/*", "drawpoint"]   # they stand for users

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)


def matches(name, patterns):
    return any(fnmatch(name, pattern) for pattern in patterns)


def place(path):
    """pipeline/data_loader for both include/drawpoint/pipeline/loader/data_loader.hpp and pipeline/data_loader.cpp."""
    return re.sub(r"\.[a-z]+$", "", re.sub(r"^(include/)?drawpoint/", "", re.sub(r"^include/", "", str(path))))


def room_of(name):
    return name.split("/")[0]


def included_place(path, target):
    """The place of an included file if it is named as the project's or relative to a parent folder, else None."""
    if target.startswith("../"):
        return place(posixpath.normpath(path.parent / target))
    if target.startswith("drawpoint/") or target.split("/")[0] in ROOM_NAMES and "/" in target:
        return place(target)
    return None


def is_foreign_private(path, target, other):
    """A header without drawpoint/ is of its room's folder alone; include/ is another folder."""
    folder = str(path).split("/")[0]
    return not target.startswith("drawpoint/") and folder not in (room_of(other), *PRIVATE_READERS)


def check(path, text):
    me = place(path)
    findings = []
    for found in INCLUDE.finditer(text):
        target, line = found.group(1), text.count("\n", 0, found.start(1)) + 1
        for library, start, places in LIBRARIES:
            if re.match(start, target) and not matches(me, places):
                findings.append((line, "include-library", f"{target}: {library} belongs only in {', '.join(places)}"))
        if DOOR.match(target) and not matches(me, DOOR_USERS):
            findings.append((line, "include-door", f"{target} is for users; include what is used"))
            continue
        if "/detail/" in target and matches(me, DETAIL_STRANGERS):
            findings.append((line, "include-detail", f"{target} is for the project itself"))
        other = included_place(path, target)
        if other is not None and is_foreign_private(path, target, other):
            findings.append((line, "include-private", f"{target} is private to {room_of(other)}/: make it public "
                             "(include/drawpoint/, or a folder detail/ there) or do without it"))
        if other is None or room_of(other) == room_of(me) and "/" in me:
            continue
        for files, allowed in ROOMS:
            if fnmatch(me, files):
                if not matches(other, allowed):
                    findings.append((line, "include-graph", f"{me} may not include {other}; of other rooms it may "
                                     f"include {', '.join(allowed) or 'nothing'}"))
                break
        else:
            findings.append((line, "include-graph", f"{me} belongs to no room: name it in {__file__.rsplit('/', 1)[-1]}"))
    return findings


if __name__ == "__main__":
    sys.exit(main(check))
