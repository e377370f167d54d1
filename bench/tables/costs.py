"""Tables of what recording, importing, tuning and compiling cost, and of where a JPEG's time goes."""

from tables.shared import benchmarks, caption, command_of, file_of, median, number, percent, place_of, result, spread, table


def recording():
    of = result("recording")
    cost = of["cpu_added"]
    rows = [("what", "ours", "90 % interval"),
            ("processor time added to a pass over the photographs", f"{percent(cost['median'], 1, '+')} %",
             f"{percent(cost['low'], 1, '+')} to {percent(cost['high'], 1, '+')} %")]
    return f"{caption('recording')}\n\n{table(*rows)}"


def recorded_parts():
    sample = benchmarks("record", "real_time")["sample/one_event"]   # its unit is ns
    jpeg = benchmarks("record", "share_of_cpu")["share_of_a_jpeg_run"]
    event, operators, sampling = benchmarks("event", "ns_per_event"), result("operators"), result("sampling")
    times = [row["step_ns"] / row["torch_step_ns"] - 1 for row in operators["heaviest"]]
    adds = operators["operator_ns"]
    ns = lambda value: f"{number(value)} ns"
    rows = [("what", "ours", "PyTorch's profiler", "command"),
            ("one event: a stamp and its share of a push", ns(sample), "", command_of("record")),
            ("share of the CPU time of a run over generated JPEG", f"{percent(jpeg, 2)} %", "", command_of("record")),
            ("an event that no callback wants, without a recorder", ns(event["neither"]), "", command_of("event")),
            ("an event with a recorder and two callbacks on every event", ns(event["recorded/callbacks:2"]), "",
             command_of("event")),
            ("an operator of LibTorch", spread(adds["recorded_adds"], " ns"), spread(adds["torch_adds"], " ns"),
             command_of("operators")),
            ("the same with its shapes", spread(adds["with_shapes_adds"], " ns"), "", command_of("operators")),
            ("self time of the ten heaviest operators, over PyTorch's profiler's",
             f"{percent(min(times), 1, '+')} to {percent(max(times), 1, '+')} %", "", command_of("operators")),
            (f"shares of three functions, sampled at {sampling['rate_hz']:.0f} Hz: error",
             f"{number(sampling['worst_error_points'])} points at most", "", command_of("sampling")),
            ("the sampler's share of CPU", f"{percent(sampling['cost_beyond_bare_interrupts'], 1)} %", "",
             command_of("sampling")),
            ("the same, with the interrupts themselves", f"{percent(sampling['cost_with_them'], 1)} %", "",
             command_of("sampling"))]
    return f"{place_of(file_of('record'))}:\n\n{table(*rows)}"


def importing():
    of = result("import")
    speed = of["mb_per_s"]
    rows = [("what", "ours", "lowest–highest round"),
            (f"speed of reading {of['bytes'] / 1e9:.0f} GB of JSON", f"{speed['median']:.0f} MB/s",
             f"{speed['low']:.0f}–{speed['high']:.0f}"),
            ("memory of reading it, at its peak", f"{of['peak_bytes'] / 1e6:.0f} MB", "")]
    return f"{caption('import')}\n\n{table(*rows)}"


def online():
    behind = {}
    cases = result("online")["cases"]
    for case in cases:
        for phase in case["phases"]:
            behind.setdefault(phase["pace"], []).append(phase["behind"])
    rows = [("after 300 steps", "behind the best of the grid: lowest", "highest")]
    for pace, values in behind.items():
        when = "from the start" if pace == 1 else f"of a step {pace:g} times as long"
        rows.append((when, f"{percent(min(values), 1)} %", f"{percent(max(values), 1)} %"))
    return f"{place_of(file_of('online'))}, {len(cases)} cases:\n\n{table(*rows)}"


def compile_time():
    seconds = {row["name"]: row["real_time"] for row in result("compile-time")["benchmarks"] if not row["libtorch"]}
    slowest = max(seconds, key=seconds.get)
    rows = [("a public header alone, without LibTorch", "ours"),
            (f"the slowest of {len(seconds)}, `{slowest}`", f"{seconds[slowest]:.1f} s"),
            ("their median", f"{median(seconds.values()):.1f} s")]
    return f"{caption('compile-time')}\n\n{table(*rows)}"


def decode_stages():
    of = result("decode-stages")
    rows = [("part", "stage", "per cent of the whole decode")]
    rows += [(stage["part"], stage["stage"], percent(stage["of_whole"], 1)) for stage in of["stages"]]
    return f"{caption('decode-stages').removesuffix(':')}, {of['images']} photographs:\n\n{table(*rows)}"


TABLES = {"recording": recording, "recorded-parts": recorded_parts, "import": importing, "online": online,
          "compile-time": compile_time, "decode-stages": decode_stages}
