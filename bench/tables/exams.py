"""Tables of how often the gate, `compare` and the verdicts are right."""

from tables.shared import (RESULTS, caption, file_of, median, percent, place_of, read, result, share, table)

GATE_MACHINES = (("idle", "gate-exam-idle"), ("neighbour", "gate-exam-neighbour"))


def gates():
    rows = [("machine", "planted", "rows", "gates that fail", "rounds, median", "resampled", "foretold", "interval holds")]
    of = lambda counted: share(counted["hits"], counted["of"], (counted["low"], counted["high"])) if counted["of"] else "–"
    for machine, name in GATE_MACHINES:
        for gate in result(name)["gates"]:
            rounds = gate["disjoint"]["median_rounds"]
            foretold, resampled = gate["foretold"], gate["resampled"]["closed"]
            rows.append((machine, gate["contender"], gate["rows"], of(gate["disjoint"]["closed"]),
                         "–" if rounds is None else f"{rounds:g}", f"{percent(resampled['hits'] / resampled['of'], 1)} %",
                         f"{percent(foretold['hits'] / foretold['of'], 1)} %", of(gate["held"]) if gate["held"] else "–"))
    counts = " and ".join(f"{result(name)['rounds']:,} rounds {machine}" for machine, name in GATE_MACHINES)
    return f"{place_of(file_of(GATE_MACHINES[0][1]))}; {counts}:\n\n{table(*rows)}"


def rivals():
    contenders = list(dict.fromkeys(rival["contender"] for rival in result(GATE_MACHINES[0][1])["rivals"]))
    rows = [("machine", "test", "turns", "tests", *contenders)]
    for machine, name in GATE_MACHINES:
        cells, tests = {}, {}
        for rival in result(name)["rivals"]:
            said = rival["called_slower"]
            cells.setdefault((rival["rival"], rival["turns"]), {})[rival["contender"]] = (
                f"{percent(said['hits'] / said['of'], 0)} %" if said["of"] else "–")
            tests[rival["rival"], rival["turns"]] = said["of"]
        rows += [(machine, *test, tests[test], *(of.get(contender, "–") for contender in contenders)) for test, of in cells.items()]
    return table(*rows)


def waterfalls():
    rows = [("planted", "pairs", "in the right rows, median", "lowest–highest", "intervals that hold")]
    for change in result("waterfall")["changes"]:
        shares = change["shares_in_right_rows"]
        rows.append((change["name"], len(shares), f"{percent(median(shares))} %",
                     f"{percent(min(shares))}–{percent(max(shares))} %", f"{change['held']} of {change['intervals']}"))
    return f"{place_of(file_of('waterfall'))}:\n\n{table(*rows)}"


def of_pytorch():
    """Pipelines of PyTorch's loader: what was answered, and the best change, measured and predicted."""
    pipelines = result("accuracy-python")["pipelines"]
    rows = [("pipeline", "verdict", "", "best change", "gains", "predicted")]
    for one in pipelines:
        best, gain = one["best"], one["gains"][one["best"]]
        predicted = one["predicted"][best]
        rows.append((one["name"], one["verdict"], "right" if one["right"] else "declined" if one["abstained"] else "wrong",
                     best, f"{percent(gain, sign='+')} %", "–" if predicted is None else f"{percent(predicted, sign='+')} %"))
    offs = [abs(off) for one in pipelines for off in one["off"].values()]
    right, controls = sum(one["right"] for one in pipelines), [one for one in pipelines if one["is_control"]]
    counts = (f"{right} of {len(pipelines)} right, {sum(bool(one['abstained']) for one in pipelines)} without a verdict, a "
              f"cause for {sum(one['accused'] for one in controls)} of {len(controls)} controls; rates of {len(offs)} settings\n"
              f"that were not recorded off by {percent(sum(offs) / len(offs), 1)} %, mean")
    nulls = [abs(one["null"]) for one in pipelines if "null" in one]
    if nulls:
        counts += f"; two runs of the same differ by {percent(sum(nulls) / len(nulls), 1)} %"
    return f"{caption('accuracy-python')}\n\n{table(*rows)}\n\n{counts}."


class Exam:
    """Fresh cases of one seed, or of several together: what each rule answered, and what was predicted and measured."""

    declining = ("undecided", "interference")   # these and a withheld verdict name nothing
    innocent = (*declining, "compute-bound", "balanced", "warm-up")

    def __init__(self, files):
        self.of = [read(file) for file in files]
        self.rows = [row for one in self.of for row in one["rows"] if row["truth"] is not None]
        self.controls = [row for row in self.rows if row["control"]]

    def answers(self, rule):
        return [(row, next((one for one in row["answers"] if one["rule"] == rule), None)) for row in self.rows]

    def right(self, rule):
        return sum(bool(said and said["right"]) for _, said in self.answers(rule))

    def declined(self, rule):
        return sum(not said or bool(said["abstained"]) or said["verdict"] in self.declining
                   for _, said in self.answers(rule))

    def accused(self, rule):
        """Controls that were given a cause."""
        return sum(bool(said and row["control"] and not said["abstained"] and said["verdict"] not in self.innocent)
                   for row, said in self.answers(rule))

    def predicted(self, what):
        return [one for row in self.rows for one in row[what]]

    def held(self, what):
        """Predictions whose 90 % interval holds what was measured; of rates as in rates()."""
        if what == "settings_batches_per_s":
            return sum(low <= real <= high for _, low, high, real in self.rates(what))
        return sum(one["low"] <= one["real"] <= one["high"] for one in self.predicted(what))

    def rates(self, what):
        """(predicted, low, high, real) of each setting, the predictions at the speed that the machine had when the truth was
        measured: over the recorded setting's rate in the recording, times its rate in the truth."""
        return [(one["predicted"] / row["speed"], one["low"] / row["speed"], one["high"] / row["speed"], one["real"])
                for row in self.rows if row["speed"] for one in row[what]]

    def rates_off(self, what):
        errors = [abs(predicted - real) / real for predicted, _, _, real in self.rates(what)]
        return sum(errors) / len(errors)


OURS, ONE_LINE = "drawpoint", "one line: the longest of four"
EXAM_SEEDS = (25600,)   # of the version that the pages speak of


def exam_files():
    """accuracy-fresh-SEED-DATE.json.gz of each seed."""
    return [next(RESULTS.glob(f"accuracy-fresh-{seed}-*.json.gz")) for seed in EXAM_SEEDS]


def seeds():
    files = exam_files()
    rows = [("seed", "right", "one line right", "controls accused", "no verdict", "rates off", "by one line", "hold: rates",
             "gains")]
    together = [("all", files)] if len(files) > 1 else []
    for label, chosen in [(file.name.split("-")[2], [file]) for file in files] + together:
        exam = Exam(chosen)
        settings, by_one_line, gains = "settings_batches_per_s", "one_line_batches_per_s", "gains"
        rows.append((label, f"{percent(exam.right(OURS) / len(exam.rows), 1)} %",
                     f"{percent(exam.right(ONE_LINE) / len(exam.rows), 1)} %",
                     f"{exam.accused(OURS)} of {len(exam.controls)}", exam.declined(OURS),
                     f"{percent(exam.rates_off(settings), 1)} %", f"{percent(exam.rates_off(by_one_line), 1)} %",
                     f"{percent(exam.held(settings) / len(exam.rates(settings)))} % of {len(exam.rates(settings))}",
                     f"{percent(exam.held(gains) / len(exam.predicted(gains)))} % of {len(exam.predicted(gains))}"))
    return table(*rows)


def gaps():
    """By how far the largest gain of drawpoint's list leads the second."""
    exam = Exam(exam_files())
    bounds = ((0, 5), (5, 15), (15, float("inf")))
    rows = [("the largest predicted gain leads the second by", "right")]
    for low, high in bounds:
        chosen = [(row, said) for row, said in exam.answers(OURS)
                  if row["gap_points"] is not None and low <= row["gap_points"] < high]
        hits = sum(said["right"] for _, said in chosen)
        words = f"less than {high} points" if low == 0 else f"{low} to {high}" if high < 100 else f"{low} and more"
        rows.append((words, share(hits, len(chosen))))
    return table(*rows)


TABLES = {"gates": gates, "rivals": rivals, "waterfalls": waterfalls, "seeds": seeds, "gaps": gaps, "pytorch": of_pytorch}
