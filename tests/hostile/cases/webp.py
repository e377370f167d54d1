"""WebP files."""

import struct

from PIL import Image

from cases.jpeg import exif
from cases.parts import cuts, flipped, noise
from cases.pictures import picture, pixels, saved


def riff(chunks, size=None, kind=b"WEBP"):
    body = kind + b"".join(name + struct.pack("<I", len(data)) + data + bytes(len(data) % 2) for name, data in chunks)
    return b"RIFF" + struct.pack("<I", len(body) if size is None else size) + body


def riff_chunks(file):
    at, found = 12, []
    while at < len(file):
        length = struct.unpack("<I", file[at + 4:at + 8])[0]
        found.append((file[at:at + 4], file[at + 8:at + 8 + length]))
        at += 8 + length + length % 2
    return found


def extended(width, height, flags=0):
    return b"VP8X", bytes([flags, 0, 0, 0]) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")


def webps():
    lossy, lossless = saved(picture(37, 29), "WEBP", quality=60), saved(picture(30, 22), "WEBP", lossless=True)
    yield from cuts("webp_lossy", ".webp", "image", lossy, pixels(lossy), "error truncated WebP")
    yield from cuts("webp_lossless", ".webp", "image", lossless, pixels(lossless), "error truncated WebP")
    photo = riff_chunks(lossy)
    frame_of = lambda width, height: (b"VP8 ", photo[0][1][:6] + struct.pack("<HH", width, height) + photo[0][1][10:])
    vp8l = lambda width, height: (b"VP8L", b"\x2f" + struct.pack("<I", width - 1 | (height - 1) << 14) + bytes(20))
    files = {"alpha_lossy": saved(picture(20, 20, "RGBA"), "WEBP", quality=50),
             "alpha_lossless": saved(picture(20, 20, "RGBA"), "WEBP", lossless=True, exact=True),
             "1x1": saved(picture(1, 1), "WEBP"), "3x2": saved(picture(3, 2), "WEBP"),
             "1x1_lossless": saved(picture(1, 1), "WEBP", lossless=True),
             "quality0": saved(picture(33, 33), "WEBP", quality=0),
             "wide_16383x1": saved(Image.new("RGB", (16383, 1), (9, 99, 200)), "WEBP", lossless=True),
             "with_exif": saved(picture(16, 16), "WEBP", exif=exif(6)[4:], icc_profile=noise("icc", 99)),
             "canvas_fits": riff([extended(37, 29)] + photo), "garbage_behind": lossy + b"garbage" * 9,
             "unknown_behind": riff(photo + [(b"ABCD", b"odd")]),
             "unknown_before": riff([extended(37, 29), (b"ABCD", b"odd")] + photo)}
    for name, file in files.items():
        yield f"webp_{name}.webp", "image", file, pixels(file)
    animation = saved(picture(12, 12), "WEBP", save_all=True, append_images=[picture(12, 12, seed=1)])
    truncated, damaged = "truncated WebP", "damaged WebP"
    errors = {"animation": (animation, "unsupported WebP"), "riff_only": (b"RIFF", truncated),
              "header_only": (riff([]), "WebP: "), "chunk_header_only": (lossy[:20], truncated),
              "riff_size_0": (riff(photo, 0), damaged), "riff_size_3": (riff(photo, 3), damaged),
              "riff_size_4": (riff(photo, 4), "WebP: "), "riff_size_half": (riff(photo, len(lossy) // 2), "WebP: "),
              "riff_size_more": (riff(photo, len(lossy)), truncated),
              "riff_size_max": (riff(photo, 0xFFFFFFFF), truncated),
              "chunk_size_max": (riff(photo)[:16] + b"\xff" * 4 + lossy[20:], "WebP: "),
              "chunk_size_0": (riff([(b"VP8 ", b""), *photo]), "WebP: "),
              "canvas_differs": (riff([extended(38, 29)] + photo), damaged),
              "canvas_max": (riff([extended(1 << 24, 1 << 24)] + photo), damaged),
              "canvas_alone": (riff([extended(37, 29)]), "WebP: "),
              "two_vp8x": (riff([extended(37, 29)] * 2 + photo), "either"),
              "alpha_random": (riff([extended(37, 29, 16), (b"ALPH", b"\1" + noise("alpha", 60))] + photo), "either"),
              "lossy_size_0": (riff([frame_of(0, 9)]), damaged),
              "lossy_16383": (riff([frame_of(16383, 16383)]), "WebP too large"),
              "lossless_16384": (riff([vp8l(16384, 16384)]), "WebP too large"),
              "lossless_zeros": (riff([vp8l(16384, 1)]), "either"),
              "lossless_signature": (riff([(b"VP8L", b"\x30" + riff_chunks(lossless)[0][1][1:])]), damaged),
              "lossless_version": (riff([(b"VP8L", flipped(riff_chunks(lossless)[0][1], 39))]), damaged),
              "lossy_no_start_code": (riff([(b"VP8 ", photo[0][1][:3] + b"\0\0\0" + photo[0][1][6:])]), damaged),
              "lossy_not_key": (riff([(b"VP8 ", flipped(photo[0][1], 0))]), "WebP: "),
              "lossy_random": (riff([(b"VP8 ", photo[0][1][:10] + noise("vp8", 200))]), "either"),
              "unknown_only": (riff([(b"ABCD", bytes(40))]), "WebP: ")}
    for name, (file, text) in errors.items():
        yield f"webp_bad_{name}.webp", "image", file, text if text == "either" else "error " + text
