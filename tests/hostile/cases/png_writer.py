"""PNG files of noise, in parts."""

import struct
import zlib

from cases.parts import noise

CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def chunk(kind, data=b"", wrong=0, length=None):
    return (struct.pack(">I", len(data) if length is None else length) + kind + data +
            struct.pack(">I", zlib.crc32(kind + data) ^ wrong))


def header(width, height, depth=8, colour=2, compression=0, filters=0, interlace=0):
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, compression, filters, interlace))


def filtered_rows(width, height, bits, interlace, filters):
    """Noise in rows, each with one of the filters."""
    out = b""
    for n, (x, y, across, down) in enumerate(PASSES if interlace else ((0, 0, 1, 1),)):
        columns, rows = -(-(width - x) // across), -(-(height - y) // down)
        for row in range(rows if columns > 0 else 0):
            out += bytes([filters[row % len(filters)]]) + noise(f"{n} {row} {width}", (columns * bits + 7) // 8)
    return out


def own_png(width=21, height=18, depth=8, colour=2, interlace=0, filters=(0, 1, 2, 3, 4), palette=None):
    rows = filtered_rows(width, height, depth * CHANNELS[colour], interlace, filters)
    return {"signature": b"\x89PNG\r\n\x1a\n", "IHDR": header(width, height, depth, colour, 0, 0, interlace),
            "PLTE": chunk(b"PLTE", noise("palette", 3 * (palette or 1 << depth))) if colour == 3 else b"",
            "IDAT": chunk(b"IDAT", zlib.compress(rows)), "IEND": chunk(b"IEND")}
