"""A small encoder for the JPEG files that Pillow does not write: any factors, any number of components, any order."""

import random
import struct

AC_SYMBOLS = bytes([0] + [run << 4 | size for run in range(4) for size in range(1, 5)])   # codes of 5 bits
DC_SYMBOLS = bytes(range(12))                                                            # codes of 4 bits


def segment(marker, data, length=None):
    return struct.pack(">BBH", 0xFF, marker, len(data) + 2 if length is None else length) + data


def huffman(kind, lengths, symbols):
    return segment(0xC4, bytes([kind]) + bytes(lengths.get(i, 0) for i in range(1, 17)) + symbols)


def frame(marker, width, height, factors, ids=(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12), precision=8):
    components = b"".join(bytes([ids[c], h << 4 | v, 0]) for c, (h, v) in enumerate(factors))
    return segment(marker, struct.pack(">BHHB", precision, height, width, len(factors)) + components)


def scan_header(ids, first=0, last=63, approximation=0):
    return segment(0xDA, bytes([len(ids)]) + b"".join(bytes([i, 0]) for i in ids) + bytes([first, last, approximation]))


def magnitude(value):
    size = abs(value).bit_length()
    return size, f"{value if value > 0 else value + (1 << size) - 1:0{size}b}" if size else ""


def block(rng, before):
    """A random block in bits, and its DC value; `before` is the one of the block before."""
    dc = rng.randint(-60, 60)
    size, bits = magnitude(dc - before)
    text = f"{size:04b}{bits}"
    for _ in range(rng.randrange(4)):
        size, bits = magnitude(rng.choice([-9, -4, -2, -1, 1, 2, 3, 8]))
        text += f"{AC_SYMBOLS.index(rng.randrange(4) << 4 | size):05b}{bits}"
    return text + "00000", dc


def stuffed(bits):
    bits += "1" * (-len(bits) % 8)
    return int("1" + bits, 2).to_bytes(len(bits) // 8 + 1, "big")[1:].replace(b"\xff", b"\xff\0")


def scan_data(rng, units, layout, restart=0):
    """`layout`: the components of the blocks of a unit."""
    out, before, bits = b"", [0] * 12, ""
    for i in range(units):
        if restart and i and i % restart == 0:
            out += stuffed(bits) + bytes([0xFF, 0xD0 + (i // restart - 1) % 8])
            before, bits = [0] * 12, ""
        for c in layout:
            more, before[c] = block(rng, before[c])
            bits += more
    return out + stuffed(bits)


def own_jpeg(width=37, height=29, factors=((1, 1),) * 3, marker=0xC0, restart=0, ids=(1, 2, 3, 4), split=False):
    """The parts of a file. `split`: a scan for each component."""
    rng = random.Random(f"{width} {height} {factors} {restart}")
    most_h, most_v = max(h for h, _ in factors), max(v for _, v in factors)
    up = lambda a, b: -(-a // b)
    of_scans = []
    for part in [[c] for c in range(len(factors))] if split or len(factors) == 1 else [range(len(factors))]:
        if len(part) == 1:
            h, v = factors[part[0]]
            units, layout = up(up(width * h, most_h), 8) * up(up(height * v, most_v), 8), part
        else:
            units = up(width, 8 * most_h) * up(height, 8 * most_v)
            layout = [c for c in part for _ in range(factors[c][0] * factors[c][1])]
        of_scans.append((scan_header([ids[c] for c in part]), scan_data(rng, units, layout, restart)))
    return {"SOI": b"\xff\xd8", "DQT": segment(0xDB, b"\0" + bytes([16] * 64)),
            "SOF": frame(marker, width, height, factors, ids),
            "DHT": huffman(0, {4: 12}, DC_SYMBOLS) + huffman(16, {5: 17}, AC_SYMBOLS),
            "DRI": segment(0xDD, struct.pack(">H", restart)) if restart else b"",
            "SOS": of_scans[0][0], "scan": of_scans[0][1],
            "scans": b"".join(header + data for header, data in of_scans[1:]), "EOI": b"\xff\xd9"}
