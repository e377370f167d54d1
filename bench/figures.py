#!/usr/bin/env python3
"""Writes the tables of docs/benchmarks.md from the results in bench/results: what stands between the lines
`<!-- figures: NAME -->` and `<!-- end -->` is the table NAME, so no figure is copied by hand. A suite's JSON goes there as
SUITE-DATE.json; of several dates the newest counts. Then this is run.
usage: figures.py [--check]     --check: writes nothing, and exits with 1 if a table is not what the results give"""

import json
import re
import statistics
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
RESULTS = PROJECT / "bench/results"
PAGE = PROJECT / "docs/benchmarks.md"


def file_of(name):
    files = sorted(RESULTS.glob(f"{name}-????-??-??.json"))
    if not files:
        sys.exit(f"there is no {RESULTS.relative_to(PROJECT)}/{name}-DATE.json")
    return files[-1]


def result(name):
    return json.loads(file_of(name).read_text())


def measured(name):
    """2026-11-27, 2 cores of Intel(R) Xeon(R) Processor"""
    machine = result(name)["machine"]
    return f"{file_of(name).stem[-10:]}, {machine['cores_usable']} cores of {machine['cpu']}"


def percent(share, digits=0):
    return f"{100 * share:.{digits}f}"


def share(of, digits=0):
    """58 of 60 (91–99 %)"""
    return f"{of['hits']} of {of['of']} ({percent(of['low'], digits)}–{percent(of['high'], digits)} %)" if of["of"] else "–"


def table(*rows):
    head, *body = ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join([head, "|---" * len(rows[0]) + "|", *body])


GATE_MACHINES = (("idle", "gate-exam-idle"), ("neighbour", "gate-exam-neighbour"))


def gates():
    rows = [("machine", "planted", "rows", "gates that fail", "rounds, median", "resampled", "foretold", "interval holds")]
    for machine, name in GATE_MACHINES:
        for gate in result(name)["gates"]:
            rounds = gate["disjoint"]["median_rounds"]
            foretold, resampled = gate["foretold"], gate["resampled"]["closed"]
            rows.append((machine, gate["contender"], gate["rows"], share(gate["disjoint"]["closed"]),
                         "–" if rounds is None else f"{rounds:g}", f"{percent(resampled['hits'] / resampled['of'], 1)} %",
                         f"{percent(foretold['hits'] / foretold['of'], 1)} %",
                         share(gate["held"]) if gate["held"] else "–"))
    counts = " and ".join(f"{result(name)['rounds']:,} rounds {machine}" for machine, name in GATE_MACHINES)
    return f"{measured(GATE_MACHINES[0][1])}; {counts}:\n\n{table(*rows)}"


def rivals():
    contenders = list(dict.fromkeys(rival["contender"] for rival in result(GATE_MACHINES[0][1])["rivals"]))
    rows = [("machine", "test", "turns", *contenders)]
    for machine, name in GATE_MACHINES:
        cells = {}
        for rival in result(name)["rivals"]:
            said = rival["called_slower"]
            cells.setdefault((rival["rival"], rival["turns"]), {})[rival["contender"]] = (
                f"{percent(said['hits'] / said['of'], 0)} %" if said["of"] else "–")
        rows += [(machine, *test, *(of.get(contender, "–") for contender in contenders)) for test, of in cells.items()]
    return table(*rows)


def waterfalls():
    rows = [("planted", "pairs", "in the right rows, median", "lowest–highest", "intervals that hold")]
    for change in result("waterfall")["changes"]:
        shares = change["shares_in_right_rows"]
        rows.append((change["name"], len(shares), f"{percent(statistics.median(shares))} %",
                     f"{percent(min(shares))}–{percent(max(shares))} %", f"{change['held']} of {change['intervals']}"))
    return f"{measured('waterfall')}:\n\n{table(*rows)}"


TABLES = {"gates": gates, "rivals": rivals, "waterfalls": waterfalls}
PLACE = re.compile(r"(<!-- figures: (\S+) -->\n)(.*?)(<!-- end -->\n)", re.DOTALL)


def filled(text):
    return PLACE.sub(lambda place: f"{place[1]}{TABLES[place[2]]()}\n{place[4]}", text)


def main():
    text = PAGE.read_text()
    new = filled(text)
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(new)
    elif new != text:
        sys.exit(f"{PAGE.relative_to(PROJECT)}: a table is not what bench/results gives: run bench/figures.py")


if __name__ == "__main__":
    main()
