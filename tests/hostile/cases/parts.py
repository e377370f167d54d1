"""Bytes that are cut, changed, joined and packed."""

import gzip
import random
import struct

PARTS = 16   # a file is cut at every 16th of its length


def noise(seed, count):
    return random.Random(seed).randbytes(count)


def cuts(stem, ending, kind, file, whole, expected):
    """A file, and what is left of it when it is cut. `expected`: a text, or a function of the length."""
    yield f"{stem}_whole{ending}", kind, file, whole
    for i in range(1, PARTS):
        length = len(file) * i // PARTS
        yield f"{stem}_cut{i:02}{ending}", kind, file[:length], expected(length) if callable(expected) else expected


def flipped(file, bit):
    changed = bytearray(file)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def joined(parts, **changes):
    """The file made of named parts, some of them changed."""
    return b"".join((parts | changes).values())


def gzipped(data, crc=0, length=0):
    """With `crc` and `length` other than 0 the trailer is wrong by that much."""
    packed = gzip.compress(data, mtime=0)
    right = struct.unpack("<II", packed[-8:])
    return packed[:-8] + struct.pack("<II", right[0] ^ crc, (right[1] + length) & 0xFFFFFFFF)
