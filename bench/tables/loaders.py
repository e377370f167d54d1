"""Tables of drawpoint's loader against others and against itself."""

from tables.shared import (benchmarks, caption, command_of, file_of, number, place_of, result, spread, table, times)

NAMES = {
    ("pytorch", "persistent"): "PyTorch's DataLoader",
    ("pytorch", "fast"): "PyTorch's DataLoader, a faster decoder than its own",
    ("pytorch", "unordered"): "PyTorch's DataLoader, out of order",
    ("spdl", "batch"): "SPDL",
    ("spdl", "batch_fast"): "SPDL, a faster decoder than its own",
    ("tf-data", "fixed"): "tf.data",
    ("dali-cpu", "fused"): "DALI on the CPU",
    ("dataloader-rs", "fast"): "dataloader-rs, a faster decoder than its own",
    ("dataloader-rs", "items"): "dataloader-rs",
    ("torchdata-nodes", "threads"): "torchdata.nodes",
    ("grain", "threads"): "Grain",
    ("torch-data", "as_shipped"): "`torch::data`, resize of bytes",
    ("torch-data", "tuned"): "`torch::data`, resize of bytes, allocator tuned",
    ("torch-data-float", "as_shipped"): "`torch::data`, resize of floats",
    ("torch-data-float", "tuned"): "`torch::data`, resize of floats, allocator tuned",
    ("torch-data", "same_kernel_own"): "`torch::data`, our kernel, own decoder",
    ("torch-data", "same_kernel_own_tuned"): "`torch::data`, our kernel, own decoder, allocator tuned",
    ("torch-data", "same_kernel_library"): "`torch::data`, our kernel, libjpeg-turbo",
    ("torch-data", "same_kernel_library_tuned"): "`torch::data`, our kernel, libjpeg-turbo, allocator tuned",
    ("decode-bound", "libjpeg_turbo"): "no loader: threads that decode whole pictures from memory by libjpeg-turbo",
    ("threads-bound", "no_batches"): "threads that only sleep",
}
FORMS = {"wait_1ms": "batches of 1 ms, loop waits", "busy_1ms": "batches of 1 ms, loop computes",
         "busy_20us_depth_16": "batches of 20 µs, depth 16", "busy_20us_depth_4": "batches of 20 µs, depth 4"}


def name_of(row):
    if row["contender"] == "torch-data" and row["workload"] != "jpeg":
        return "`torch::data`"   # nothing is resized
    return NAMES.get((row["contender"], row["variant"]), f"{row['contender']} {row['variant']}")


def rows_of(name, workload):
    return [row for row in result(name)["rows"] if row["workload"] == workload]


def loaders():
    rows = [("theirs", "over ours, own decoder", "over ours, libjpeg-turbo")]
    for row in rows_of("loader", "jpeg"):
        if row["contender"] != "drawpoint":
            rows.append((name_of(row), f"not run: {row['not_run']}", "") if row["not_run"] else
                        (name_of(row), spread(row["ratio_to_own"]), spread(row["ratio_to_library"])))
    return f"{caption('loader')}\n\n{table(*rows)}"


def ratio_of(row):
    return {"median": row["ratio_median"], "low": row["ratio_low"], "high": row["ratio_high"]}


def slow():
    rows = [("what", "theirs", "ratio")]
    for row in rows_of("loader-slow", "latency")[1:]:
        rows.append(("time with 5 ms of latency for every file, over without", "", spread(ratio_of(row))))
    for row in rows_of("loader-slow", "straggler"):
        if row["not_run"]:
            rows.append(("stragglers: their time over ours in order", name_of(row), f"not run: {row['not_run']}"))
        elif row["contender"] == "drawpoint":
            order = "out of order" if row["variant"] == "out_of_order" else "in order"
            rows.append((f"stragglers {order}: rate over theirs", "threads that only sleep", spread(row["share_of_bound"])))
        elif row["contender"] != "threads-bound":
            rows.append(("stragglers: their time over ours in order", name_of(row), spread(ratio_of(row))))
    forms = {}
    for row in rows_of("loader-slow", "consumer"):
        forms.setdefault(row["variant"].rsplit("_x", 1)[0], []).append(row["ratio_median"])
    for form, ratios in forms.items():
        rows.append((f"wall, {FORMS[form]}", "the longer of loop and loading",
                     f"{number(min(ratios))}–{number(max(ratios))}× over steps"))
    return f"{command_of('loader-slow')},\n{place_of(file_of('loader-slow'))}:\n\n{table(*rows)}"


def scaling():
    rows = [("workers", "depth", "rate over that of 1 worker")]
    rows += [(one["num_workers"], one["prefetch_depth"], spread(one)) for one in result("scaling")["speed_ups"]]
    return f"{caption('scaling')}\n\n{table(*rows)}"


def storage():
    of = result("storage")
    places = [metric["name"] for metric in of["metrics"]]
    ratio = {one["contender"]: one["ratio"] for one in of["comparisons"] if one["metric"] == "wall time"}
    rows = [("storage", "images/s", "time over that of files", "page faults", "peak memory")]
    for contender in of["contenders"]:
        value = dict(zip(places, contender["medians"]))
        rows.append((contender["name"], f"{value['items/s']:,.0f}", spread(ratio.get(contender["name"])),
                     f"{value['page faults']:.0f}", f"{value['peak memory'] / 1e6:,.0f} MB"))
    return f"{caption('storage')}\n\n{table(*rows)}"


def overhead():
    us = benchmarks("overhead", "us_per_batch")
    rows = [("a batch of", "workers", "recorded", "time", "over that of one memcpy")]
    for name, value in sorted(us.items()):
        kind, *settings = name.split("/")
        if settings:
            workers, recorded = (setting.split(":")[1] for setting in settings)
            what = "64 rows of 4 floats" if kind == "tiny_batches" else "64 tensors of 3 × 224 × 224 floats"
            ratio = times(value / us["memcpy_ring"]) if kind == "tensor_batches" else ""
            rows.append((what, workers, "yes" if recorded == "1" else "no", f"{number(value)} µs", ratio))
    return f"{caption('overhead')}\n\n{table(*rows)}"


def draw():
    ns = benchmarks("draw", "ns_per_draw")
    bare = ns["bare_child"]
    rows = [("a ready draw with its slot given back", "time", "over a bare child `awaitable`")]
    for name, what in (("ready_next/recorded:0", "not recorded"), ("ready_next/recorded:1", "recorded")):
        rows.append((what, f"{number(ns[name])} ns", times(ns[name] / bare)))
    return f"{caption('draw')}\n\n{table(*rows)}"


def first_batch():
    rows = [("process", "decoder", "making a loader and drawing its first 64 JPEG")]
    for row in result("first-batch")["rows"]:
        decoder = {"own": "own", "library": "libjpeg-turbo"}[row["jpeg_decoder"]]
        rows.append((row["process"], decoder,
                     spread({"median": row["ms_median"], "low": row["ms_low"], "high": row["ms_high"]}, " ms")))
    return f"{caption('first-batch')}\n\n{table(*rows)}"


def memory():
    kinds = {}
    for row in result("memory")["rows"]:
        against = "expected_bytes" if row["kind"].startswith("varying") else "planned_bytes"
        kinds.setdefault((row["kind"], against), []).append(row["peak_bytes"] / row[against])
    names = {"jpeg": "JPEG", "jpeg_ahead": "JPEG, 64 reads of 5 ms ahead", "jpeg_cached": "JPEG, decoded images cached",
             "varying": "padded batches", "varying_growing": "padded batches, each longer than all before"}
    rows = [("what", "peak over", "lowest", "highest")]
    for (kind, against), ratios in kinds.items():
        rows.append((names[kind], "expected" if against == "expected_bytes" else "planned", times(min(ratios)),
                     times(max(ratios))))
    return f"{caption('memory')}\n\n{table(*rows)}"


TABLES = {"loaders": loaders, "slow": slow, "storage": storage, "scaling": scaling, "overhead": overhead, "draw": draw,
          "first-batch": first_batch, "memory": memory}
