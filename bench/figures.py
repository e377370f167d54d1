#!/usr/bin/env python3
"""Writes the tables of the documentation from the results in bench/results: what stands between the lines
`<!-- figures: NAME -->` and `<!-- end -->` is the table NAME, so no figure is copied by hand. A suite's JSON stands there as
NAME-DATE.json (bench/remeasure.py puts it there); of several dates the newest counts. Then this is run.
usage: figures.py [--check]     --check: writes nothing, and exits with 1 if a table is not what the results give"""

import re
import sys

from tables import costs, exams, loaders, readme
from tables.shared import PROJECT

PAGES = ("README.md", "docs/accuracy.md", "docs/benchmarks.md", "docs/performance.md")
TABLES = {**loaders.TABLES, **costs.TABLES, **exams.TABLES, **readme.TABLES}
PLACE = re.compile(r"(<!-- figures: (\S+) -->\n)(.*?)(<!-- end -->\n)", re.DOTALL)


def filled(text):
    return PLACE.sub(lambda place: f"{place[1]}{TABLES[place[2]]()}\n{place[4]}", text)


def main():
    for page in PAGES:
        text = (PROJECT / page).read_text()
        new = filled(text)
        if "--check" not in sys.argv[1:]:
            (PROJECT / page).write_text(new)
        elif new != text:
            sys.exit(f"{page}: a table is not what bench/results gives: run bench/figures.py")


if __name__ == "__main__":
    main()
