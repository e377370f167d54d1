#!/usr/bin/env python3
"""make_array_fixtures.py: writes tests/pipeline/storage/arrays: small arrays as .npy (by numpy), idx and gzip files. Values are those of
rows(): -3, -2, … in C order, halves for floats, 0, 1, … for unsigned ones. Needs numpy; the tests do not run it."""

import gzip
import struct
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent / "arrays"


def rows(dtype, shape=(3, 2, 2)):
    values = np.arange(np.prod(shape)).reshape(shape)
    kind = np.dtype(dtype).kind
    values = values if kind == "u" else values % 2 if kind == "b" else values - 3
    return (values / 2 if kind == "f" else values).astype(dtype)


def idx(array):
    codes = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}
    header = struct.pack(">HBB", 0, codes[array.dtype.str[1:]], array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(array.dtype.newbyteorder(">")).tobytes()


def packed(data):
    return gzip.compress(data, 9, mtime=0)


def main():
    (FOLDER / "MNIST" / "raw").mkdir(parents=True, exist_ok=True)
    for dtype in ("b1", "u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8"):
        np.save(FOLDER / f"{dtype}.npy", rows(dtype))
    for dtype in (">i2", ">f4", ">f8"):
        np.save(FOLDER / f"big_{dtype[1:]}.npy", rows(dtype))
    for version in (2, 3):
        with open(FOLDER / f"version{version}.npy", "wb") as file:
            np.lib.format.write_array(file, rows("f4"), version=(version, 0))
    np.save(FOLDER / "line.npy", rows("i4", (5,)))
    np.save(FOLDER / "targets.npy", np.array([7, 0, -2]))
    (FOLDER / "packed.npy.gz").write_bytes(packed((FOLDER / "f4.npy").read_bytes()))

    np.save(FOLDER / "refused_fortran.npy", np.asfortranarray(rows("f4", (3, 4))))
    for dtype in ("u2", "u4", "u8", "c8", "U3", "S3", "M8[s]"):
        np.save(FOLDER / f"refused_{dtype[:2]}.npy", np.arange(3).astype(dtype))
    np.save(FOLDER / "refused_fields.npy", np.zeros(3, dtype=[("x", "f4"), ("y", "i4")]))
    np.save(FOLDER / "refused_objects.npy", np.array([{}, [], None], dtype=object), allow_pickle=True)
    np.save(FOLDER / "refused_single.npy", np.float32(1))
    np.save(FOLDER / "refused_empty.npy", np.zeros((0, 4), dtype="f4"))
    np.save(FOLDER / "refused_dimensions.npy", np.zeros((2, 1, 1, 1, 1, 1), dtype="f4"))
    np.savez(FOLDER / "refused.npz", x=rows("f4"))

    for dtype in ("u1", "i1", "i2", "i4", "f4", "f8"):
        (FOLDER / f"{dtype}-idx").write_bytes(idx(rows(dtype)))
    (FOLDER / "packed-idx.gz").write_bytes(packed(idx(rows("i2"))))
    images = (np.arange(4 * 28 * 28) % 251).reshape(4, 28, 28).astype("u1")
    labels = np.array([5, 0, 4, 9], dtype="u1")
    raw = FOLDER / "MNIST" / "raw"
    (raw / "train-images-idx3-ubyte.gz").write_bytes(packed(idx(images)))
    (raw / "train-labels-idx1-ubyte.gz").write_bytes(packed(idx(labels)))
    (raw / "t10k-images-idx3-ubyte").write_bytes(idx(images[:2]))
    (raw / "t10k-labels-idx1-ubyte").write_bytes(idx(labels[:2]))


if __name__ == "__main__":
    main()
