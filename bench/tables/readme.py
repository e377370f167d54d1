"""The table of README.md: a figure of each kind, of which docs/benchmarks.md and docs/accuracy.md have all."""

from tables.exams import ONE_LINE, OURS, Exam, exam_files
from tables.loaders import ratio_of, rows_of
from tables.shared import command_of, date_of, file_of, percent, result, share, spread, table


def figures():
    torch = next(row for row in rows_of("loader", "jpeg") if row["contender"] == "pytorch")
    slow = next(row for row in rows_of("loader-slow", "latency") if row["variant"] == "latency_5ms")
    two = max((one for one in result("scaling")["speed_ups"] if one["num_workers"] == 2),
              key=lambda one: one["prefetch_depth"])
    cost = result("recording")["cpu_added"]
    exam = Exam(exam_files())
    rows = [("figure", "value (range)", "date", "command"),
            ("JPEG rate over PyTorch's DataLoader, same files, 2 workers each", spread(torch["ratio_to_own"]),
             date_of(file_of("loader")), command_of("loader")),
            ("JPEG throughput of 2 workers over 1 worker", spread(two), date_of(file_of("scaling")), command_of("scaling")),
            ("Time with 5 ms of latency for every file, over without", spread(ratio_of(slow)),
             date_of(file_of("loader-slow")), command_of("loader-slow")),
            ("CPU time added by recording",
             f"{percent(cost['median'], 1, '+')} % ({percent(cost['low'], 1)}–{percent(cost['high'], 1)})",
             date_of(file_of("recording")), command_of("recording")),
            ("Right verdicts on cases drawn for the exam; the best rule of one line",
             f"{share(exam.right(OURS), len(exam.rows))}; {percent(exam.right(ONE_LINE) / len(exam.rows))} %",
             date_of(exam_files()[-1]), "`./run bench accuracy --fresh 60 --no-tune`")]
    return table(*rows)


TABLES = {"readme": figures}
