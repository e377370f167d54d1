"""Chrome traces."""

import json

from cases.parts import gzipped, noise

ARGUMENTS = ("Input Dims", "name", "Sequence number", "Fwd thread id", "flops", "Ev Idx", "ended", "correlation",
             "device", "stream", "Device Type", "Device Id", "Addr", "Bytes", "Total Allocated")


def chromes():
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 7, "tid": 8, "ts": 1000.5, "dur": 3.25,
             "args": {"Sequence number": 4, "Input Dims": [[2, 3], []]}}
    step = event | {"cat": "user_annotation", "name": "ProfilerStep#1", "ts": 990, "dur": 90}
    named = {"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "args": {"name": "python"}}
    with_events = lambda *events: json.dumps({"schemaVersion": 1, "traceEvents": events, "traceName": "x"}).encode()
    good = with_events(step, event, event | {"ts": 1010}, named)
    begin = good.index(b'"traceEvents": [') + 16
    yield "chrome_good.json", "chrome", good, "reads"
    for i in range(1, 8):
        length = len(good) * i // 8
        expected = "reads" if length >= begin else "error ends before its traceEvents"
        yield f"chrome_cut{i}.json", "chrome", good[:length], expected

    def written(key, value):
        return json.dumps({"traceEvents": [event | {key: "VALUE"}]}).replace('"VALUE"', value).encode()

    not_a_text = {(key, value) for key in ("ph", "name", "cat") for value in ("5", "null", "true", "[]", "{}")}
    for key in "ph", "name", "cat", "pid", "tid", "ts", "dur", "args", "sf":
        for kind, value in ("text", '"text"'), ("number", "5"), ("null", "null"), ("list", "[]"), ("object", "{}"):
            expected = "error does not have the requested type" if (key, value) in not_a_text else "reads"
            yield f"chrome_{key}_{kind}.json", "chrome", written(key, value), expected
    with_frames = lambda frames: json.dumps({"stackFrames": frames, "traceEvents": [event | {"sf": 1}]}).encode()
    memory = {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": 1}
    reads = {"no_events": b'{"traceEvents":[]}', "list_empty": b"[]", "list_open": b'[{"ph":"X"},',
             "byte_order_mark": b"\xef\xbb\xbf[]", "event_empty": b"[{}]",
             "ts_huge": written("ts", "1e400"), "ts_digits": written("ts", "9" * 400), "ts_nan": written("ts", "NaN"),
             "ts_minus": written("ts", "-5.5"), "ts_max": written("ts", "9223372036854775807"),
             "dur_minus": written("dur", "-1"), "dur_huge": written("dur", "1e15"), "dur_nan": written("dur", '"NaN"'),
             "tid_huge": written("tid", "9" * 40), "tid_worker": written("tid", '"worker \\u001b[31m"'),
             "keys_twice": b'[{"ph":"X","ph":"X","name":"a","name":"b","tid":1,"ts":1,"ts":2,"dur":1}]',
             "escaped_nul_esc": written("name", '"a\\u0000b\\u001b[2J"'),
             "name_long": written("name", '"' + "n" * 60000 + '"'),
             "phases": with_events(*(event | {"ph": phase} for phase in ("", "B", "E", "\u00e9", "XX"))),
             "steps_overlap": with_events(step, step, step | {"ts": 995}),
             "step_number_huge": with_events(step | {"name": "ProfilerStep#" + "9" * 30}),
             "step_negative": with_events(step | {"dur": -90}),
             "base_text": b'{"baseTimeNanoseconds":"x","traceEvents":[]}',
             "base_large": b'{"baseTimeNanoseconds":18446744073709551615,"traceEvents":[]}',
             "quote_open": b'[{"ph":"X\\"}',
             "frames_loop": with_frames({"1": {"name": "a", "parent": "2"}, "2": {"name": "b", "parent": "1"}}),
             "frames_self": with_frames({"1": {"name": "a", "parent": 1}}), "frames_list": with_frames([1, 2]),
             "frames_absurd": with_frames({"1": {"name": 5}, "": {"name": "a", "parent": []}, "3": None}),
             "args_wrong": with_events(event | {"args": dict.fromkeys(ARGUMENTS, {"a": [None, -1.5]})}),
             "args_huge": with_events(event | {"args": dict.fromkeys(ARGUMENTS, 1 << 99)}),
             "memory_wrong": with_events(memory | {"args": dict.fromkeys(ARGUMENTS, "text")}),
             "memory_absurd": with_events(memory | {"args": dict.fromkeys(ARGUMENTS, -(1 << 63))}),
             "gz": gzipped(good), "gz_crc": gzipped(good, crc=1)}
    for name, file in reads.items():
        yield f"chrome_{name}.json", "chrome", file, "reads"
    none, member_text = "not a Chrome trace", "is no JSON"
    errors = {"empty": (b"", none), "byte": (b"x", none), "blank": (b" \n", none), "text": (b"a trace\n", none),
              "object_empty": (b"{}", none), "random": (b"\1" + noise("chrome", 500), none),
              "zeros": (bytes(500), none),
              "events_no_list": (b'{"traceEvents":{}}', none), "events_null": (b'{"traceEvents":null}', none),
              "deep": (b"[" * 60000, "expected an event"),
              "deep_member": (b'{"a":' + b"[" * 60000, "ends before its traceEvents"),
              "deep_member_closed": (b'{"a":' + b"[" * 30000 + b"]" * 30000 + b',"traceEvents":[]}', member_text),
              "events_twice": (b'{"traceEvents":[],"traceEvents":[]}', "a second traceEvents"),
              "event_is_number": (b"[5]", "expected an event"), "no_comma": (b"[{} {}]", "expected ','"),
              "two_commas": (b"[{},,{}]", "expected an event"), "text_behind": (good + b"x", "text after the end"),
              "key_no_quotes": (b"{traceEvents:[]}", "expected a key"),
              "no_colon": (b'{"traceEvents" []}', "expected ':'"),
              "no_value": (b'{"a":,"traceEvents":[]}', "expected a value"),
              "nan_member": (b'{"a":NaN,"traceEvents":[]}', member_text),
              "member_not_utf8": (b'{"a":"\xff\xfe","traceEvents":[]}', member_text),
              "not_utf8": (written("name", '"x"').replace(b'"x"', b'"\xc3\x28\xff"'), "UTF-8"),
              "raw_nul_esc": (written("name", '"x"').replace(b'"x"', b'"a\0\x1b[2J"'), "must be escaped"),
              "brackets_mixed": (b'[{"ph":"X"]}', "ended early"),
              "base_huge": (b'{"baseTimeNanoseconds":99999999999999999999,"traceEvents":[]}', member_text),
              "gz_header_cut": (gzipped(good)[:12], none)}
    for name, (file, text) in errors.items():
        yield f"chrome_bad_{name}.json", "chrome", file, "error " + text
    deep = b'[{"ph":"X","args":{"a":' + b"[" * 30000 + b"]" * 30000 + b"}}]"
    yield "chrome_deep_event.json", "chrome", deep, "either"
