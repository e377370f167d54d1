"""The table of README.md: a figure of each kind, of which docs/benchmarks.md and docs/accuracy.md have all."""

from tables.exams import ONE_LINE, OURS, Exam, exam_files
from tables.loaders import ratio_of, rows_of
from tables.shared import date_of, file_of, percent, place_of, result, spread, table


def figures():
    torch = next(row for row in rows_of("loader", "jpeg") if row["contender"] == "pytorch")
    slow = next(row for row in rows_of("loader-slow", "latency") if row["variant"] == "latency_5ms")
    two = max((one for one in result("scaling")["speed_ups"] if one["num_workers"] == 2),
              key=lambda one: one["prefetch_depth"])
    cost = result("recording")["cpu_added"]
    exam = Exam(exam_files())
    oldest = min(map(file_of, ("loader", "loader-slow", "scaling", "recording")), key=date_of)
    rows = [(place_of(oldest), "value (range)", "command"),
            ("JPEG rate over PyTorch's DataLoader, 2 workers each", spread(torch["ratio_to_own"]), "`./run bench loader`"),
            ("JPEG rate of 2 workers over 1 worker", spread(two), "`./run bench scaling`"),
            ("Time with 5 ms of latency a file, over without", spread(ratio_of(slow)),
             "`./run bench loader --workload latency`"),
            ("CPU time added by recording",
             f"{percent(cost['median'], 1, '+')} % ({percent(cost['low'], 1)}–{percent(cost['high'], 1)})",
             "`./run bench recording --pairs 300 --epochs 1`"),
            ("Right verdicts on fresh cases; a rule of one line",
             f"{percent(exam.right(OURS) / len(exam.rows))} % of {len(exam.rows)}; "
             f"{percent(exam.right(ONE_LINE) / len(exam.rows))} %", "`./run bench accuracy --fresh 60`")]
    return table(*rows)


TABLES = {"readme": figures}
