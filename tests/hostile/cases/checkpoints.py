"""Checkpoints."""

import json
import struct
import zlib

from cases.parts import flipped, noise


def checkpoint(arrays=None, data=b"", metadata=None, crc=0):
    """`crc` other than 0: the checksum is wrong by that much."""
    if arrays is None:
        arrays = {"weights": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, len(data)]}}
    metadata = {"crc32": "00000000", "drawpoint.checkpoint": "1", "note": "text"} if metadata is None else metadata
    text = json.dumps({"__metadata__": metadata} | arrays, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    sum_of = b"%08x" % (zlib.crc32(text + data) ^ crc)
    return struct.pack("<Q", len(text)) + text.replace(b'"crc32":"00000000"', b'"crc32":"' + sum_of + b'"') + data


def checkpoints():
    data = noise("weights", 16)

    def of(dtype="F32", shape=(2, 2), offsets=(0, 16)):
        return checkpoint({"a": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}, data)

    good = checkpoint(data=data)
    yield "checkpoint_good.ckpt", "checkpoint", good, "reads"
    yield "checkpoint_no_arrays.ckpt", "checkpoint", checkpoint({}), "reads"
    no_values = checkpoint({"a": {"dtype": "I64", "shape": [0, 5], "data_offsets": [0, 0]}})
    yield "checkpoint_empty_array.ckpt", "checkpoint", no_values, "reads"
    for i in range(1, 8):
        yield f"checkpoint_cut{i}.ckpt", "checkpoint", good[:len(good) * i // 8], "error cut short"
    place = lambda text, offset=0: 8 * (good.index(text) + offset)
    versioned = lambda version: {"crc32": "00000000", "drawpoint.checkpoint": version}
    plain = lambda text: struct.pack("<Q", len(text)) + text
    none, sums = "is no checkpoint", "checksum does not fit"
    size, described = "another size than its type and shape", "is not described as an array is"
    errors = {"empty": (b"", none), "byte": (b"x", none), "text": (b"a checkpoint\n" * 9, none),
              "random": (noise("checkpoint", 600), none), "zeros": (bytes(100), none), "length_only": (good[:8], none),
              "length_2to63": (b"\0" * 7 + b"\x80" + good[8:], none),
              "length_100m": (struct.pack("<Q", 100_000_001) + good[8:], none),
              "length_1": (struct.pack("<Q", 1) + good[8:], none),
              "length_past_end": (struct.pack("<Q", 99_999_999) + good[8:], "cut short"),
              "torch_zip": (b"PK\3\4" + bytes(300), none), "list": (plain(b"[1,2]"), none),
              "json_broken": (plain(b'{"a":'), none),
              "json_deep": (plain(b'{"a":' + b"[" * 30000), none),
              "json_deep_closed": (plain(b'{"a":' + b"[" * 30000 + b"]" * 30000 + b"}"), "is a safetensors file"),
              "safetensors": (plain(b'{"__metadata__":{"format":"pt"}}'), "is a safetensors file"),
              "metadata_list": (plain(b'{"__metadata__":[]}'), "is a safetensors file"),
              "not_utf8": (plain(b'{"\xff\xfe":1}'), none),
              "version_2": (checkpoint(data=data, metadata=versioned("2")), "of another version"),
              "version_number": (checkpoint(data=data, metadata=versioned(1)), "is a safetensors file"),
              "no_crc": (checkpoint(data=data, metadata={"drawpoint.checkpoint": "1"}), sums),
              "crc_wrong": (checkpoint(data=data, crc=1), sums), "behind": (good + b"x", "bytes follow its arrays"),
              "flipped_data": (flipped(good, 8 * len(good) - 3), sums),
              "flipped_note": (flipped(good, place(b'"text"', 2)), sums),
              "flipped_crc": (flipped(good, place(b'crc32":"', 9)), sums),
              "flipped_brace": (flipped(good, 64), none), "flipped_length": (flipped(good, 0), none),
              "flipped_offset": (flipped(good, place(b",16]", 2)), "is cut short"),
              "shape_huge": (of(shape=[1 << 62, 1 << 62]), size), "shape_minus": (of(shape=[-2, -2]), size),
              "shape_other": (of(shape=[3]), size), "shape_text": (of(shape="4"), described),
              "shape_fraction": (of(shape=[[1]]), described), "type_unknown": (of("F99"), size),
              "type_number": (of(5), described), "offsets_swapped": (of(offsets=[17, 16]), size),
              "offsets_one": (of(offsets=[16]), "bytes follow its arrays"),
              "offsets_2to63": (of(offsets=[0, 1 << 63]), "cut short"),
              "offsets_max": (of(offsets=[0, (1 << 64) - 1]), "bytes follow its arrays"),
              "offsets_minus": (checkpoint({"a": {"dtype": "F32", "shape": [], "data_offsets": [-4, -1]}}), size),
              "array_is_text": (checkpoint({"a": "text"}), described),
              "array_no_shape": (checkpoint({"a": {"dtype": "F32", "data_offsets": [0, 16]}}, data), described)}
    for name, (file, text) in errors.items():
        yield f"checkpoint_bad_{name}.ckpt", "checkpoint", file, "error " + text
