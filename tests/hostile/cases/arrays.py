"""Arrays: idx and npy files, and CIFAR's."""

import io
import struct
import zipfile

from cases.parts import cuts, gzipped, noise


def idx(kind, sides, data):
    return bytes([0, 0, kind, len(sides)]) + b"".join(struct.pack(">I", side) for side in sides) + data


def idxs():
    data = noise("idx", 640)
    good = idx(8, (10, 8, 8), data)
    yield from cuts("idx", ".idx", "idx", good, "rows 10", "error the file ends here")
    yield from cuts("idxgz", ".idx.gz", "idx", gzipped(good), "rows 10", "error the gzip data ends too early")
    sizes = {8: 1, 9: 1, 11: 2, 12: 4, 13: 4, 14: 8}
    for kind in [*range(16), 0x10, 0x7F, 0xFF]:
        expected = "rows 5" if kind in sizes else "error does not exist"
        yield f"idx_type_{kind:02x}.idx", "idx", idx(kind, (5, 2), data[:10 * sizes.get(kind, 1)]), expected
    files = {"empty": (b"", "not an idx file"), "byte": (b"\0", "not an idx file"),
             "magic_wrong": (b"\1\0" + good[2:], "not an idx file"),
             "text": (b"text\n" * 9, "not an idx file"), "header_only": (good[:16], "the file ends here"),
             "header_part": (good[:10], "ends within the sizes"),
             "rank_0": (idx(8, (), b"x"), "a single value"),
             "rank_255_short": (b"\0\0\x08\xff" + bytes(40), "ends within the sizes"),
             "side_0": (idx(8, (3, 0), b""), "the array is empty"),
             "overflow": (idx(14, (0xFFFFFFFF,) * 3, data), "more than 2^63"),
             "overflow_to_0": (idx(8, (1 << 31, 1 << 31, 4), data), "more than 2^63"),
             "huge": (idx(8, (0xFFFFFFFF,), data), "the file ends here"),
             "too_short": (good[:-1], "the file ends here"), "too_long": (good + b"x", "1 byte follow")}
    for name, (file, text) in files.items():
        yield f"idx_bad_{name}.idx", "idx", file, "error " + text
    # The file can be read, but a data set takes fewer dimensions.
    yield "idx_rank_255.idx", "idx", idx(8, (1,) * 255, b"x"), "either"
    packed = {"crc": (gzipped(good, crc=1), "damaged gzip data"),
              "length": (gzipped(good, length=1), "damaged gzip data"),
              "too_short": (gzipped(good[:-1]), "the unpacked data ends here"),
              "too_long": (gzipped(good + b"x"), "the unpacked data goes on"),
              "bomb": (gzipped(idx(8, (0x7FFFFFFF, 0x7FFFFFF), data)), "more than the memory limit"),
              "empty": (gzipped(b""), "not an idx file")}
    for name, (file, text) in packed.items():
        yield f"idx_bad_gz_{name}.idx.gz", "idx", file, "error " + text


def npy(text, data=b"", version=(1, 0), length=None):
    start = 10 if version[0] == 1 else 12
    text = text.encode("latin-1") + b" " * (-(start + len(text) + 1) % 64) + b"\n"
    length = struct.pack("<H" if version[0] == 1 else "<I", len(text) if length is None else length)
    return b"\x93NUMPY" + bytes(version) + length + text + data


def npys():
    def said(descr="'|u1'", order="False", shape="(10, 64)"):
        return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"

    data = noise("npy", 640)
    yield from cuts("npy", ".npy", "npy", npy(said(), data), "rows 10", "error the file ends")
    rows = {"version2": npy(said(), data, (2, 0)), "version3": npy(said(), data, (3, 0)),
            "longer": npy(said(), data + b"x"),
            "big_endian": npy(said("'>i4'", shape="(10, 16)"), data), "bool": npy(said("'|b1'"), data),
            "half": npy(said("'<f2'", shape="(10, 32)"), data),
            "fortran_1d": npy(said(order="True", shape="(10,)"), data), "python2": npy(said(shape="(10L, 64L)"), data),
            "gz": gzipped(npy(said(), data)),
            "other_order": npy("{\"shape\":(10,64),\"fortran_order\":False,\"descr\":\"|u1\"}", data),
            "no_spaces": npy(said().replace(" ", ""), data),
            "nan": npy(said("'<f4'", shape="(10, 16)"), b"\xff" * 640)}
    for name, file in rows.items():
        yield f"npy_{name}.npy", "npy", file, "rows 10"
    # The files can be read, but a data set takes fewer dimensions.
    yield "npy_rank_9.npy", "npy", npy(said(shape="(10, 64, 1, 1, 1, 1, 1, 1, 1)"), data), "either"
    yield "npy_rank_30000.npy", "npy", npy(said(shape="(" + "1," * 30000 + ")"), b"x", (2, 0)), "either"
    box = io.BytesIO()
    with zipfile.ZipFile(box, "w") as archive:
        archive.writestr(zipfile.ZipInfo("a.npy"), npy(said(), data))
    damaged = "damaged .npy header"
    errors = {"empty": (b"", "not a .npy"), "byte": (b"\x93", "not a .npy"),
              "magic_only": (b"\x93NUMPY", "ends within its header"),
              "version9": (npy(said(), data, (9, 0)), "is not known"),
              "version1_7": (npy(said(), data, (1, 7)), "is not known"),
              "version0": (npy(said(), data, (0, 0)), "is not known"),
              "no_descr": (npy("{'fortran_order': False, 'shape': (10, 64)}", data), "it lacks"),
              "no_keys": (npy("{}", data), "it lacks"),
              "no_shape": (npy("{'descr': '|u1', 'fortran_order': False}", data), "it lacks"),
              "extra_key": (npy(said()[:-1] + "'x': 1}", data), "should not stand here"),
              "key_twice": (npy(said()[:-1] + "'shape': (1,)}", data), "should not stand here"),
              "fortran": (npy(said(order="True"), data), "Fortran order"),
              "order_text": (npy(said(order="'no'"), data), damaged),
              "object": (npy(said("'|O'"), data), "pickled code"), "unicode": (npy(said("'<U4'"), data), "(text)"),
              "bytes": (npy(said("'|S9'"), data), "(text)"), "complex": (npy(said("'<c8'"), data), "(complex)"),
              "uint16": (npy(said("'<u2'"), data), "(unsigned"),
              "date": (npy(said("'<M8[ns]'"), data), "(dates)"),
              "void": (npy(said("'|V8'"), data), "is none a sample can have"),
              "type_empty": (npy(said("''"), data), "is none a sample can have"),
              "type_esc": (npy(said("'\x1b[2J\x00\xff'"), data), "is none a sample can have"),
              "structured": (npy(said("[('a', '<i4')]"), data), "a structured type"),
              "shape_minus": (npy(said(shape="(-1, 64)"), data), damaged),
              "shape_2to63": (npy(said(shape="(9223372036854775808,)"), data), "more than 2^63"),
              "shape_2to64": (npy(said(shape="(18446744073709551616,)"), data), damaged),
              "shape_product": (npy(said("'<i8'", shape="(4294967296, 4294967296)"), data), "more than 2^63"),
              "shape_huge": (npy(said(shape="(9223372036854775807,)"), data), "the file ends here"),
              "shape_empty": (npy(said(shape="()"), data), "a single value"),
              "shape_0": (npy(said(shape="(0, 64)"), data), "the array is empty"),
              "shape_list": (npy(said(shape="[10, 64]"), data), damaged),
              "shape_float": (npy(said(shape="(1e1, 64)"), data), damaged),
              "shape_nested": (npy(said(shape="(" * 9000), data), damaged),
              "header_longer": (npy(said(), b"", (1, 0), 60000), "ends within its header of"),
              "header_2to32": (npy(said(), data, (2, 0), 0xFFFFFFFF), "is longer than the"),
              "header_0": (npy(said(), data, (1, 0), 0), damaged),
              "code": (npy("__import__('os').system('touch /tmp/owned')", data), damaged),
              "code_inside": (npy(said("__import__('os').getcwd()"), data), damaged),
              "lambda": (npy(said(shape="(lambda: (10, 64))()"), data), damaged),
              "no_close": (npy(said()[:-1], data), damaged), "no_quote": (npy("{'descr: 5", data), damaged),
              "more_behind": (npy(said() + " + {}", data), "more follows it"), "zeros": (npy("\0" * 60, data), damaged),
              "random": (npy(noise("header", 90).decode("latin-1"), data), damaged),
              "npz": (box.getvalue(), ".npz archive"),
              "pickle": (b"\x80\4\x95\x10\0\0\0\0\0\0\0\x8c\2os.", "not a .npy"),
              "short": (npy(said(), data[:-1]), "the file ends here"),
              "no_data": (npy(said()), "the file ends here")}
    for name, (file, text) in errors.items():
        yield f"npy_bad_{name}.npy", "npy", file, "error " + text


def cifars():
    record = lambda label: bytes([label]) + noise(f"cifar{label}", 3072)
    yield "cifar_one.bin", "cifar", record(9), "rows 1"
    yield "cifar_five.bin", "cifar", b"".join(map(record, range(5))), "rows 5"
    begins = "error the last record begins here"
    parts = {"byte": b"\0", "short": record(1)[:-1], "long": record(1) + b"x", "half": record(1) + record(2)[:1500],
             "cifar100": b"\1" + record(7)}
    for name, file in parts.items():
        yield f"cifar_bad_{name}.bin", "cifar", file, begins
    yield "cifar_bad_empty.bin", "cifar", b"", "error the file ends here"
    # Labels are checked when a sample is drawn, not when the file is opened.
    for label in 10, 255:
        yield f"cifar_label_{label}.bin", "cifar", record(3) + record(label), "either"
