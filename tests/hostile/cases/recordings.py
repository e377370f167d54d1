"""Recordings: changes of a real one, and what is none."""

import gzip
from pathlib import Path

from cases.parts import cuts, flipped, noise

RECORDINGS = Path(__file__).resolve().parents[2] / "instrumentation/trace/recordings"


def recordings():
    smallest = min(RECORDINGS.glob("*.pftrace.gz"), key=lambda path: (path.stat().st_size, path.name))
    good = gzip.decompress(smallest.read_bytes())
    # A recording of a run that was killed ends anywhere; it is read with a warning.
    yield from cuts("recording", ".pftrace", "recording", good, "reads", "reads")
    for i in range(10):
        bit = 8 * (len(good) * i // 10 + 11) + i % 8
        yield f"recording_flipped{i}.pftrace", "recording", flipped(good, bit), "either"
    for name, file in ("empty", b""), ("newline", b"\n"), ("start_only", good[:9]):
        yield f"recording_{name}.pftrace", "recording", file, "reads"
    damaged = {"zeros_behind": good + bytes(5000), "twice": good + good, "text_behind": good + b"text",
               "middle_zeroed": good[:6000] + bytes(3000) + good[9000:]}
    for name, file in damaged.items():
        yield f"recording_{name}.pftrace", "recording", file, "error are damaged"
    others = {"byte": b"x", "text": b"a recording\n" * 9, "random": b"\1" + noise("recording", 999),
              "zeros": bytes(600), "gzip": smallest.read_bytes(),
              "json": b'{"traceEvents":[]}', "packet": b"\x0a\x08\x08\x01\x50\x01\x5a\x02\x08\x01",
              "packet_long": b"\x0a\xff\xff\xff\xff\x0f" + bytes(40), "shifted": b"\0" + good,
              "start_damaged": flipped(good, 8 * 5), "varint_endless": b"\x0a" + b"\xff" * 300}
    for name, file in others.items():
        yield f"recording_bad_{name}.pftrace", "recording", file, "error not a recording"
