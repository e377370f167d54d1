#!/usr/bin/env python3
"""make_image_fixtures.py: writes tests/pipeline/image/fixtures: small generated pictures as PNG and WebP files, and expected.csv with the
size and CRC-32 of the RGB bytes that Pillow's convert("RGB") makes of each. Needs Pillow and numpy; the tests do not run it."""

import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

FOLDER = Path(__file__).parent / "fixtures"
ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
GRAY, RGB, PALETTE, GRAY_ALPHA, RGBA = 0, 2, 3, 4, 6
CHANNELS = {GRAY: 1, RGB: 3, PALETTE: 1, GRAY_ALPHA: 2, RGBA: 4}


def picture(width, height, channels, levels):
    """Waves, blocks and some single pixels; values 0 … levels - 1."""
    y, x = np.mgrid[0:height, 0:width]
    planes = []
    for c in range(channels):
        value = (np.sin(0.31 * x + c) * np.cos(0.23 * y - 2 * c) + 1) / 2
        value = np.where((x // 5 + y // 7 + c) % 3 == 0, 1 - value, value)
        value = np.where((x * 7 + y * 13 + c) % 29 == 0, 0.001, value)
        planes.append(np.minimum(value * levels, levels - 1).astype(np.int64))
    return np.stack(planes, axis=-1)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def packed(pixels, bits):
    """Filtered rows (each filter in turn, undone by nothing: types 0, 1 and 2 suffice) of one pass."""
    height, width, channels = pixels.shape
    rows, before = b"", None
    step = max(1, bits * channels // 8)
    for number, row in enumerate(pixels.reshape(height, width * channels)):
        if bits == 16:
            line = row.astype(">u2").tobytes()
        elif bits == 8:
            line = row.astype("u1").tobytes()
        else:
            digits = "".join(format(int(v), f"0{bits}b") for v in row)
            digits += "0" * (-len(digits) % 8)
            line = bytes(int(digits[i:i + 8], 2) for i in range(0, len(digits), 8))
        kind = number % 3 if before is not None else 0
        left = bytes(step) + line[:-step] if len(line) >= step else bytes(len(line))
        other = {0: bytes(len(line)), 1: left[:len(line)], 2: before or bytes(len(line))}[kind]
        rows += bytes([kind]) + bytes((a - b) & 255 for a, b in zip(line, other))
        before = line
    return rows


def png(pixels, colour, bits, interlaced=False, palette=None, extra=b"", parts=1):
    height, width, _ = pixels.shape
    passes = ADAM7 if interlaced else [(0, 0, 1, 1)]
    raw = b"".join(packed(pixels[y::down, x::across], bits) for x, y, across, down in passes
                   if pixels[y::down, x::across].size)
    stream = zlib.compress(raw, 9)
    cuts = [len(stream) * i // parts for i in range(parts + 1)]
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlaced)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + (chunk(b"PLTE", palette) if palette else b"") + extra +
            b"".join(chunk(b"IDAT", stream[a:b]) for a, b in zip(cuts, cuts[1:])) + chunk(b"IEND", b""))


def main():
    FOLDER.mkdir(exist_ok=True)
    files = {}
    for colour, name, depths in [(GRAY, "gray", (1, 2, 4, 8, 16)), (RGB, "rgb", (8, 16)), (PALETTE, "palette", (1, 2, 4, 8)),
                                 (GRAY_ALPHA, "gray_alpha", (8, 16)), (RGBA, "rgba", (8, 16))]:
        for bits in depths:
            levels = 200 if colour == PALETTE and bits == 8 else 1 << bits
            pixels = picture(19, 17, CHANNELS[colour], levels)
            colours = bytes(np.random.default_rng(5).integers(0, 256, 3 * levels, dtype=np.uint8)) if colour == PALETTE else None
            for interlaced in (False, True):
                files[f"{name}{bits}{'_interlaced' if interlaced else ''}.png"] = png(pixels, colour, bits, interlaced, colours)
    files["palette8_trns.png"] = png(picture(19, 17, 1, 16), PALETTE, 8, palette=bytes(range(48)),
                                     extra=chunk(b"tRNS", bytes([0, 128, 255])))
    files["gray8_trns.png"] = png(picture(19, 17, 1, 256), GRAY, 8, extra=chunk(b"tRNS", b"\0\7"))
    files["rgb8_trns.png"] = png(picture(19, 17, 3, 256), RGB, 8, extra=chunk(b"tRNS", b"\0\7\0\7\0\7"))
    files["rgb8_parts.png"] = png(picture(19, 17, 3, 256), RGB, 8, parts=4,
                                  extra=chunk(b"gAMA", struct.pack(">I", 45455)) + chunk(b"tEXt", b"Title\0waves"))
    files["one_pixel.png"] = png(picture(1, 1, 3, 256), RGB, 8)
    files["thin_interlaced.png"] = png(picture(1, 7, 3, 256), RGB, 8, interlaced=True)
    for name, contents in files.items():
        (FOLDER / name).write_bytes(contents)

    photo = Image.fromarray(picture(41, 31, 3, 256).astype(np.uint8))
    alpha = Image.fromarray(picture(41, 31, 4, 256).astype(np.uint8))
    photo.save(FOLDER / "pillow_rgb.png")
    photo.quantize(40).save(FOLDER / "pillow_palette.png")
    photo.convert("1").save(FOLDER / "pillow_bilevel.png")
    photo.convert("LA").save(FOLDER / "pillow_gray_alpha.png")
    alpha.save(FOLDER / "pillow_rgba.png")
    photo.save(FOLDER / "lossy.webp", quality=80)
    alpha.save(FOLDER / "lossy_alpha.webp", quality=60)
    photo.save(FOLDER / "lossless.webp", lossless=True)
    alpha.save(FOLDER / "lossless_alpha.webp", lossless=True, exact=True)
    photo.convert("L").save(FOLDER / "gray.webp", quality=50)
    Image.fromarray(picture(1, 1, 3, 256).astype(np.uint8)).save(FOLDER / "one_pixel.webp", quality=90)
    Image.fromarray(picture(74, 58, 3, 256).astype(np.uint8)).save(FOLDER / "larger.webp", quality=30, method=6)
    photo.save(FOLDER / "animation.webp", save_all=True, append_images=[photo.rotate(180)], duration=40)

    lines = ["file,width,height,crc32"]
    for path in sorted(FOLDER.glob("*.*")):
        if path.suffix not in (".png", ".webp") or path.name == "animation.webp":
            continue
        with Image.open(path) as image:
            rgb = image.convert("RGB")
        lines.append(f"{path.name},{rgb.width},{rgb.height},{zlib.crc32(rgb.tobytes()):08x}")
    (FOLDER / "expected.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
