"""JPEG files."""

import struct

from PIL import Image

from cases.jpeg_writer import AC_SYMBOLS, DC_SYMBOLS, frame, huffman, own_jpeg, scan_header, segment, stuffed
from cases.parts import cuts, flipped, joined, noise
from cases.pictures import picture, pixels, saved


def many_scans(count, marker=0xC2):
    """A progressive picture of one block; all scans but the first two say the first again."""
    parts = own_jpeg(8, 8, ((1, 1),), marker)
    first = scan_header([1], 0, 0) + stuffed("0110101010")
    rest = scan_header([1], 1, 63) + stuffed("00000")
    return joined(parts, SOS=first, scan=rest, scans=first * (count - 2))


def exif(orientation, entries=None, next_directory=0):
    entries = [(0x0112, 3, 1, orientation)] if entries is None else entries
    directory = struct.pack("<H", len(entries)) + b"".join(struct.pack("<HHII", *entry) for entry in entries)
    return segment(0xE1, b"Exif\0\0II*\0\x08\0\0\0" + directory + struct.pack("<I", next_directory))


def jpegs_of_pillow():
    photo, gray = picture(49, 35), picture(40, 33, "L")
    baseline = saved(photo, "JPEG", quality=80)
    cut = "error truncated JPEG"
    yield from cuts("jpeg_baseline", ".jpg", "image", baseline, pixels(baseline), cut)
    progressive = saved(photo, "JPEG", quality=80, progressive=True)
    yield from cuts("jpeg_progressive", ".jpg", "image", progressive, pixels(progressive), cut)
    good = {"gray": saved(gray, "JPEG"), "gray_progressive": saved(gray, "JPEG", progressive=True),
            "cmyk_adobe": saved(picture(33, 20, "CMYK"), "JPEG", quality=85)}
    for name, sampling in ("444", 0), ("422", 1), ("420", 2):
        for size in (1, 1), (2, 3), (5, 9), (17, 16), (64, 31):
            good[f"{name}_{size[0]}x{size[1]}"] = saved(picture(*size), "JPEG", subsampling=sampling)
    for quality in 1, 100:
        good[f"quality{quality}"] = saved(photo, "JPEG", quality=quality)
    good["restarts_blocks"] = saved(photo, "JPEG", restart_marker_blocks=2)
    good["restarts_rows"] = saved(photo, "JPEG", restart_marker_rows=1, optimize=True)
    good["wide_65500x1"] = saved(Image.new("L", (65500, 1), 90), "JPEG")
    good["tall_1x65500"] = saved(Image.new("L", (1, 65500), 90), "JPEG")
    adobe = good["cmyk_adobe"]
    at = adobe.index(b"Adobe") + 11
    good["ycck"] = adobe[:at] + b"\2" + adobe[at + 1:]
    good["cmyk_no_adobe"] = adobe[:at - 15] + adobe[at + 1:]
    good["mpo"] = saved(photo, "MPO", save_all=True, append_images=[picture(20, 20)])
    with_end = b"\0garbage\xff\xd8\xff" * 9
    good["garbage_behind"] = baseline + with_end
    good["another_behind"] = baseline + good["gray"]
    # Standard tables may lack: then they are the default, as in Motion JPEG.
    without_tables = baseline
    while (at := without_tables.find(b"\xff\xc4")) >= 0:
        length = struct.unpack(">H", without_tables[at + 2:at + 4])[0]
        without_tables = without_tables[:at] + without_tables[at + 2 + length:]
    good["no_dht_standard"] = without_tables
    before = {f"orientation{i}": exif(i) for i in range(1, 9)}
    before |= {"exif_orientation_absurd": exif(65535), "exif_empty": segment(0xE1, b"Exif\0\0"),
               "exif_random": segment(0xE1, b"Exif\0\0" + noise("exif", 200)),
               "exif_looped": exif(6, next_directory=8),
               "exif_entry_far": exif(0, [(0x0112, 3, 1 << 30, 0xFFFFFFF0)]),
               "exif_many_entries": segment(0xE1, b"Exif\0\0MM\0*\0\0\0\x08" + b"\xff" * 40),
               "exif_sub_loop": exif(0, [(0x8769, 4, 1, 8), (0xA005, 4, 1, 8)]),
               "icc_random": segment(0xE2, b"ICC_PROFILE\0\1\1" + noise("icc", 300)),
               "icc_no_end": segment(0xE2, b"ICC_PROFILE\0\1\x09" + noise("icc", 99)),
               "icc_numbers": segment(0xE2, b"ICC_PROFILE\0\xff\0" + b"x") * 3,
               "comment_64k": segment(0xFE, b"c" * 62000), "comments_many": segment(0xFE, b"") * 2000,
               "xmp_broken": segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0<x:xmpmeta <<<&&&"),
               "comment_with_end": segment(0xFE, b"\xff\xd9\xff\xd8\xff\xda"),
               "thumbnail_inside": segment(0xE1, b"Exif\0\0" + good["444_1x1"])}
    for name, inserted in before.items():
        yield f"jpeg_{name}.jpg", "image", baseline[:2] + inserted + baseline[2:], pixels(baseline)
    for name, file in good.items():
        yield f"jpeg_{name}.jpg", "image", file, pixels(file)
    for i in range(6):
        bit = (len(baseline) - 30 - 25 * i) * 8 + i
        yield f"jpeg_flipped{i}.jpg", "image", flipped(baseline, bit), "either"


def jpegs_of_structure():
    good = own_jpeg()
    restarts = own_jpeg(restart=3)
    one = own_jpeg(8, 8, ((1, 1),))
    fill = b"\xff" * 5
    shapes = {"1x1": ((1, 1),) * 3, "2x1": ((2, 1), (1, 1), (1, 1)), "1x2": ((1, 2), (1, 1), (1, 1)),
              "2x2": ((2, 2), (1, 1), (1, 1)), "4x1": ((4, 1), (1, 1), (1, 1)), "1x4": ((1, 4), (1, 1), (1, 1)),
              "4x2": ((4, 2), (1, 1), (1, 1)), "3x1": ((3, 1), (1, 1), (1, 1)), "2x2_2x1": ((2, 2), (2, 1), (2, 1)),
              "2x2_1x2": ((2, 2), (1, 2), (1, 2)), "2x2_mixed": ((2, 2), (2, 1), (1, 2)),
              "chroma_finer": ((1, 1), (2, 2), (2, 2)), "gray_2x2": ((2, 2),),
              "gray_4x4": ((4, 4),), "cmyk_2x2": ((2, 2), (1, 1), (1, 1), (2, 2))}
    files = {f"factors_{name}": joined(own_jpeg(factors=shape)) for name, shape in shapes.items()}
    files |= {"restarts": joined(restarts), "restarts_each": joined(own_jpeg(restart=1)),
              "scan_each": joined(own_jpeg(split=True)),
              "scan_each_420": joined(own_jpeg(factors=shapes["2x2"], split=True)),
              "extended": joined(own_jpeg(marker=0xC1)), "rgb_ids": joined(own_jpeg(ids=b"RGB")),
              "odd_ids": joined(own_jpeg(ids=(0, 255, 7))),
              "dri_0": joined(good, DRI=segment(0xDD, b"\0\0")),
              "dri_65535": joined(good, DRI=segment(0xDD, b"\xff\xff")),
              "fill_bytes": b"".join(part if name in ("SOI", "scan", "scans", "DRI") else fill + part
                                     for name, part in good.items()),
              "fill_before_restart": joined(restarts, scan=restarts["scan"].replace(b"\xff\xd0", fill + b"\xff\xd0")),
              "tables_16_bit": joined(good, DQT=segment(0xDB, b"\x10" + b"\0\x10" * 64)),
              "same_ids": joined(own_jpeg(ids=(1, 1, 1))),
              "data_behind_scan": joined(good, scan=good["scan"] * 2), "scans_100": many_scans(100)}
    for name, file in files.items():
        yield f"jpeg_own_{name}.jpg", "image", file, pixels(file)

    sof = good["SOF"]
    resized = lambda width, height: joined(one, SOF=frame(0xC0, width, height, ((1, 1),)))
    large, truncated, damaged, unsupported = "JPEG too large", "truncated JPEG", "damaged JPEG", "unsupported JPEG"
    errors = {"soi_only": (good["SOI"], truncated), "soi_eoi": (good["SOI"] + good["EOI"], damaged),
              "soi_ff": (b"\xff\xd8\xff", truncated), "header_only": (joined(good, scan=b"", EOI=b""), truncated),
              "no_scan_data": (joined(good, scan=b""), "JPEG: "),
              "size_65500x65500": (resized(65500, 65500), large), "size_65535x65535": (resized(65535, 65535), large),
              "size_65535x1": (resized(65535, 1), large), "size_1x65535": (resized(1, 65535), large),
              "size_65500x1": (resized(65500, 1), truncated), "size_5000x5000": (resized(5000, 5000), truncated),
              "size_0x0": (resized(0, 0), damaged), "size_0x9": (resized(0, 9), damaged),
              "size_9x0": (resized(9, 0), damaged),
              "scans_101": (many_scans(101), "more than 100 scans"),
              "scans_4000": (many_scans(4000), "more than 100 scans"),
              "bits_12": (joined(good, SOF=frame(0xC1, 37, 29, shapes["1x1"], precision=12)), unsupported),
              "bits_2": (joined(good, SOF=frame(0xC0, 37, 29, shapes["1x1"], precision=2)), unsupported),
              "bits_16": (joined(good, SOF=frame(0xC1, 37, 29, shapes["1x1"], precision=16)), unsupported),
              "no_dqt": (joined(good, DQT=b""), damaged), "no_sof": (joined(good, SOF=b""), damaged),
              "no_dht_other": (joined(good, DHT=b""), damaged), "no_sos": (joined(good, SOS=b""), damaged),
              "no_sos_no_data": (joined(good, SOS=b"", scan=b""), damaged),
              "no_eoi": (joined(good, EOI=b""), truncated),
              "two_sof": (joined(good, SOF=sof + sof), damaged),
              "two_soi": (joined(good, SOI=good["SOI"] * 2), damaged),
              "sof_behind_sos": (joined(good, SOF=b"", scan=sof + good["scan"]), damaged),
              "components_0": (joined(good, SOF=frame(0xC0, 37, 29, ())), damaged),
              "components_2": (joined(own_jpeg(factors=((1, 1),) * 2)), unsupported),
              "components_5": (joined(one, SOF=frame(0xC0, 8, 8, ((1, 1),) * 5)), unsupported),
              "components_12": (joined(one, SOF=frame(0xC0, 8, 8, ((1, 1),) * 12)), damaged),
              "components_255": (joined(good, SOF=sof[:9] + b"\xff" + sof[10:]), damaged),
              "factors_0": (joined(good, SOF=frame(0xC0, 37, 29, ((0, 0),) * 3)), damaged),
              "factors_15": (joined(good, SOF=frame(0xC0, 37, 29, ((15, 15), (1, 1), (1, 1)))), damaged),
              "factors_5": (joined(good, SOF=frame(0xC0, 37, 29, ((5, 1), (1, 1), (1, 1)))), damaged),
              "factors_sum": (joined(own_jpeg(factors=((2, 2),) * 3)), damaged),
              "factors_fraction": (joined(own_jpeg(factors=((3, 1), (2, 1), (2, 1)))), damaged),
              "table_4": (joined(good, DQT=segment(0xDB, b"\4" + bytes(64))), damaged),
              "table_short": (joined(good, DQT=segment(0xDB, b"\0" + bytes(30))), damaged),
              "dht_too_many": (joined(good, DHT=segment(0xC4, b"\0" + b"\xff" * 16 + bytes(300))), damaged),
              "dht_overfull": (joined(good, DHT=huffman(0, {1: 3, 2: 9}, DC_SYMBOLS) +
                                      huffman(16, {5: 17}, AC_SYMBOLS)),
                               damaged),
              "dht_index_9": (joined(good, DHT=huffman(9, {4: 12}, DC_SYMBOLS)), damaged),
              "dht_symbol_255": (joined(good, DHT=huffman(0, {4: 12}, b"\xff" * 12) + huffman(16, {5: 17}, AC_SYMBOLS)),
                                 damaged),
              "dri_short": (joined(good, DRI=segment(0xDD, b"\0")), damaged),
              "dri_not_kept": (joined(good, DRI=segment(0xDD, b"\0\2")), damaged),
              "restart_order": (joined(restarts, scan=restarts["scan"].replace(b"\xff\xd1", b"\xff\xd5")), damaged),
              "restart_no_dri": (joined(restarts, DRI=b""), damaged),
              "garbage_before_dqt": (joined(good, DQT=b"garbage" + good["DQT"]), damaged),
              "garbage_before_sos": (joined(good, SOS=b"\0\0\0" + good["SOS"]), damaged),
              "sos_components_0": (joined(good, SOS=segment(0xDA, b"\0\0\x3f\0")), damaged),
              "sos_unknown_id": (joined(good, SOS=scan_header([9, 8, 7])), damaged),
              "sos_length_3": (joined(good, SOS=segment(0xDA, good["SOS"][4:], 3)), damaged),
              "progressive_wrong_band": (joined(one, SOF=frame(0xC2, 8, 8, ((1, 1),)), SOS=scan_header([1], 5, 2)),
                                         damaged),
              "progressive_refined_first": (joined(one, SOF=frame(0xC2, 8, 8, ((1, 1),)),
                                                   SOS=scan_header([1], 0, 0, 0x10)), damaged)}
    for code in 0xC3, 0xC5, 0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF:   # lossless, hierarchical, arithmetic
        errors[f"sof_{code:x}"] = (joined(own_jpeg(marker=code)), unsupported)
    for name, marker in ("sof", 0xC0), ("dqt", 0xDB), ("dht", 0xC4), ("sos", 0xDA), ("dri", 0xDD):
        part, data = name.upper(), good[name.upper()][4:] or b"\0\0"
        for length in 0, 1:
            errors[f"length{length}_{name}"] = (joined(good, **{part: segment(marker, data, length)}), damaged)
    errors["length_past_end"] = (joined(good, DQT=segment(0xE1, b"x", 65535) + good["DQT"]), truncated)
    for name, (file, text) in errors.items():
        yield f"jpeg_bad_{name}.jpg", "image", file, "error " + text
    # The library takes a length of 0 or 1 of a comment for 2.
    for length in 0, 1:
        file = joined(good, DQT=segment(0xFE, b"", length) + good["DQT"])
        yield f"jpeg_comment_length{length}.jpg", "image", file, pixels(file)
