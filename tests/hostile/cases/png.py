"""PNG files."""

import struct
import zlib

from cases.parts import cuts, flipped, joined, noise
from cases.pictures import picture, pixels, saved
from cases.png_writer import chunk, header, own_png


def pngs():
    for name, interlace in ("png", 0), ("png_interlaced", 1):
        file = joined(own_png(31, 27, interlace=interlace))
        yield from cuts(name, ".png", "image", file, pixels(file), "error truncated PNG")
    # 16 bit: Pillow takes the high byte of colour, but clips gray at 255.
    for colour, depths in (0, (1, 2, 4, 8, 16)), (2, (8, 16)), (3, (1, 2, 4, 8)), (4, (8, 16)), (6, (8, 16)):
        for depth in depths:
            for interlace in 0, 1:
                file = joined(own_png(depth=depth, colour=colour, interlace=interlace))
                yield f"png_c{colour}_{depth}bit{'_i' * interlace}.png", "image", file, pixels(file)
    good, of_palette = own_png(), own_png(colour=3)
    rows = zlib.decompress(good["IDAT"][8:-4])
    idat = lambda data, level=6: chunk(b"IDAT", zlib.compress(data, level))
    parts = [good["IDAT"][8:-4][i:i + 3] for i in range(0, len(good["IDAT"]) - 12, 3)]
    animation = saved(picture(16, 12), "PNG", save_all=True, append_images=[picture(16, 12, seed=i) for i in (1, 2)])
    separate = saved(picture(16, 12), "PNG", save_all=True, default_image=True, append_images=[picture(9, 9, seed=3)])
    level16 = joined(own_png(depth=16, colour=0), IDAT=idat(b"".join(
        b"\0" + b"".join(struct.pack(">H", x * 20 + y) for x in range(21)) for y in range(18))))
    files = {"apng": animation, "apng_default_image": separate, "gray16_dark": level16,
             "many_idat": joined(good, IDAT=b"".join(chunk(b"IDAT", part) for part in parts)),
             "empty_idat": joined(good, IDAT=chunk(b"IDAT") + good["IDAT"] + chunk(b"IDAT")),
             "trns_palette": joined(of_palette, PLTE=of_palette["PLTE"] + chunk(b"tRNS", bytes(range(0, 250, 5)))),
             "trns_gray": joined(own_png(colour=0), PLTE=chunk(b"tRNS", b"\0\x10")),
             "trns_gray16": joined(own_png(colour=0, depth=16), PLTE=chunk(b"tRNS", b"\0\x10")),
             "trns_rgb": joined(good, PLTE=chunk(b"tRNS", b"\0\1\0\2\0\3")),
             "plte_in_rgb": joined(good, PLTE=chunk(b"PLTE", bytes(30))),
             "garbage_behind": joined(good) + b"garbage" * 9,
             "another_behind": joined(good) + joined(of_palette), "1x1": joined(own_png(1, 1)),
             "1x1_i": joined(own_png(1, 1, interlace=1)), "3x2_i": joined(own_png(3, 2, interlace=1)),
             "5x1_1bit_i": joined(own_png(5, 1, 1, 0, 1)), "stored": joined(good, IDAT=idat(rows, 0)),
             "wide_30000x1": joined(own_png(30000, 1, 1, 0)), "tall_1x20000": joined(own_png(1, 20000, 1, 0)),
             "idat_bomb": joined(good, IDAT=idat(rows + bytes(20_000_000), 9)),
             "index_out_of_range": joined(own_png(colour=3, palette=5)),   # noise points at all of 256 entries
             "plte_twice": joined(of_palette, PLTE=of_palette["PLTE"] + chunk(b"PLTE", noise("second", 768))),
             "uniform_1024": joined(good, IHDR=header(1024, 1024), IDAT=idat(bytes(1024 * 3073), 9)),
             "of_pillow_la": saved(picture(20, 20, "LA"), "PNG"),
             "of_pillow_p": saved(picture(20, 20, "L").convert("P"), "PNG"),
             "of_pillow_optimized": saved(picture(20, 20, "RGBA"), "PNG", optimize=True)}
    for name, file in files.items():
        yield f"png_{name}.png", "image", file, pixels(file)

    # Chunks that do not matter for the pixels, and are not even unpacked.
    bomb = zlib.compress(bytes(20_000_000), 9)
    ancillary = {"iccp_bomb": chunk(b"iCCP", b"icc\0\0" + bomb), "ztxt_bomb": chunk(b"zTXt", b"text\0\0" + bomb),
                 "itxt_bomb": chunk(b"iTXt", b"text\0\1\0\0\0" + bomb), "iccp_broken": chunk(b"iCCP", b"icc\0\0broken"),
                 "ztxt_method": chunk(b"zTXt", b"text\0\x09x"), "gama_0": chunk(b"gAMA", bytes(4)),
                 "gama_short": chunk(b"gAMA", b"\0"), "chrm_twice": chunk(b"cHRM", bytes(32)) * 2,
                 "exif_random": chunk(b"eXIf", noise("exif", 80)), "unknown_ancillary": chunk(b"xyZw", noise("x", 50)),
                 "phys_0": chunk(b"pHYs", bytes(9)), "many_ancillary": chunk(b"tEXt", b"a\0b") * 2000,
                 "trns_too_long": chunk(b"tRNS", bytes(400)), "sbit_9": chunk(b"sBIT", b"\x09\x09\x09"),
                 "text_long": chunk(b"tEXt", b"a\0" + b"t" * 60000), "fctl_broken": chunk(b"acTL", b"\xff" * 8)}
    for name, inserted in ancillary.items():
        yield f"png_{name}.png", "image", joined(good, PLTE=inserted), pixels(joined(good))
    adler = good["IDAT"][8:-4][:-4] + bytes(4)
    yield "png_adler_wrong.png", "image", joined(good, IDAT=chunk(b"IDAT", adler)), "either"

    truncated, damaged, unsupported, large = "truncated PNG", "damaged PNG", "unsupported PNG", "PNG too large"
    sized = lambda width, height: joined(good, IHDR=header(width, height))
    errors = {"signature_only": (good["signature"], truncated),
              "signature_cr": (joined(good).replace(b"\r\n", b"\n", 1), damaged),
              "header_only": (joined(good, IDAT=b"", IEND=b""), truncated),
              "no_idat": (joined(good, IDAT=b""), truncated),
              "no_iend": (joined(good, IEND=b""), truncated), "size_0x0": (sized(0, 0), damaged),
              "size_0x9": (sized(0, 9), damaged), "size_9x0": (sized(9, 0), damaged),
              "size_2to31": (sized(1 << 31, 1), damaged), "size_2to32": (sized(0xFFFFFFFF, 0xFFFFFFFF), damaged),
              "size_max": (sized(0x7FFFFFFF, 0x7FFFFFFF), large), "size_65500": (sized(65500, 65500), large),
              "size_65535x1": (sized(65535, 1), "PNG: "), "size_1x65535": (sized(1, 65535), "PNG: "),
              "size_5000": (sized(5000, 5000), "cannot hold"), "size_2x_rows": (sized(21, 40), truncated),
              "no_plte": (joined(of_palette, PLTE=b""), "has no palette"),
              "plte_behind": (joined(of_palette, PLTE=b"", IDAT=of_palette["IDAT"] + of_palette["PLTE"]), "PNG"),
              "plte_4_bytes": (joined(of_palette, PLTE=chunk(b"PLTE", bytes(4))), damaged),
              "plte_empty": (joined(of_palette, PLTE=chunk(b"PLTE")), damaged),
              "plte_300": (joined(of_palette, PLTE=chunk(b"PLTE", bytes(900))), damaged),
              "crc_ihdr": (joined(good, IHDR=flipped(good["IHDR"], 8 * 22)), "wrong checksum of chunk IHDR"),
              "crc_idat": (joined(good, IDAT=chunk(b"IDAT", zlib.compress(rows), 1)), "wrong checksum of chunk IDAT"),
              "crc_iend": (joined(good, IEND=chunk(b"IEND", b"", 1)), "wrong checksum of chunk IEND"),
              "crc_ancillary": (joined(good, PLTE=chunk(b"tEXt", b"a\0b", 1 << 31)), "wrong checksum of chunk tEXt"),
              "length_2to31": (joined(good, PLTE=chunk(b"tEXt", b"a\0b", length=1 << 31)), truncated),
              "length_2to32": (joined(good, IDAT=chunk(b"IDAT", rows, length=0xFFFFFFFF)), truncated),
              "length_past_end": (joined(good, IDAT=chunk(b"IDAT", b"x", length=5000)), truncated),
              "type_not_letters": (joined(good, PLTE=chunk(b"\x1b[2J", b"")), "PNG"),
              "critical_unknown": (joined(good, PLTE=chunk(b"ABCD", b"x")), unsupported),
              "ihdr_twice": (joined(good, PLTE=good["IHDR"]), unsupported),
              "ihdr_late": (joined(good, IHDR=chunk(b"tEXt", b"a\0b") + good["IHDR"]), damaged),
              "ihdr_12_bytes": (joined(good, IHDR=chunk(b"IHDR", good["IHDR"][8:20])), damaged),
              "idat_apart": (joined(good, IDAT=chunk(b"IDAT", parts[0]) + chunk(b"tEXt", b"a\0b") +
                                    chunk(b"IDAT", b"".join(parts[1:]))), damaged),
              "interlace_2": (joined(good, IHDR=header(21, 18, interlace=2)), unsupported),
              "compression_1": (joined(good, IHDR=header(21, 18, compression=1)), unsupported),
              "filter_method_1": (joined(good, IHDR=header(21, 18, filters=1)), unsupported),
              "filter_type_9": (joined(own_png(filters=(0, 9))), damaged),
              "filter_type_255": (joined(own_png(filters=(255,), interlace=1)), damaged),
              "depth_0": (joined(good, IHDR=header(21, 18, 0)), unsupported),
              "depth_3": (joined(good, IHDR=header(21, 18, 3)), unsupported),
              "depth_4_rgb": (joined(good, IHDR=header(21, 18, 4)), unsupported),
              "depth_16_palette": (joined(of_palette, IHDR=header(21, 18, 16, 3)), unsupported),
              "colour_1": (joined(good, IHDR=header(21, 18, 8, 1)), unsupported),
              "colour_5": (joined(good, IHDR=header(21, 18, 8, 5)), unsupported),
              "colour_255": (joined(good, IHDR=header(21, 18, 8, 255)), unsupported),
              "deflate_random": (joined(good, IDAT=chunk(b"IDAT", noise("deflate", 1200))), damaged),
              "deflate_short": (joined(good, IDAT=idat(rows[:-200])), truncated),
              "deflate_no_header": (joined(good, IDAT=chunk(b"IDAT", zlib.compress(rows)[2:])), damaged)}
    for name, (file, text) in errors.items():
        yield f"png_bad_{name}.png", "image", file, "error " + text
