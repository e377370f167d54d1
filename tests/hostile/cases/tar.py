"""Tar shards: a sample is KEY.jpg and KEY.cls."""

import struct

import zstandard

from cases.jpeg_writer import own_jpeg
from cases.parts import cuts, flipped, gzipped, joined, noise

SMALL_JPEG = joined(own_jpeg(16, 16))
END = bytes(1024)


def member(name, data=b"", kind=b"0", size=None, checksum=None, claimed=None):
    """`size`: the bytes of the field; `claimed`: a number in place of the right one."""
    name = name.encode() if isinstance(name, str) else name
    size = size or b"%011o\0" % (len(data) if claimed is None else claimed)
    fields = [name.ljust(100, b"\0"), b"0000644\0" * 3, size, b"0" * 11 + b"\0", b" " * 8, kind, bytes(100),
              b"ustar\x0000", bytes(64), bytes(16), bytes(167)]
    fields[4] = checksum or b"%06o\0 " % sum(b"".join(fields))
    return b"".join(fields) + data + bytes(-len(data) % 512)


def sample(key, label=b"3", image=SMALL_JPEG):
    return member(key + ".jpg", image) + member(key + ".cls", label)


def pax(*records, kind=b"x"):
    def record(key, value):
        rest = b" " + key + b"=" + value + b"\n"
        length = len(rest)
        while len(str(length)) + len(rest) != length:
            length = len(str(length)) + len(rest)
        return str(length).encode() + rest
    return member("PaxHeader", b"".join(record(*of) for of in records), kind)


def unsigned_sum(header):
    """The checksum of a header."""
    return sum(header[:148]) + 8 * ord(" ") + sum(header[156:512])


def text_of_cut_tar(file, samples):
    """What is said of a tar that ends at `length`."""
    def text(length):
        at = 0
        while any(file[at:at + 512]):
            if length < at + 512:
                return "error " + ("shorter than a header" if at == 0 else "ends too early")
            at += 512 + -(-int(file[at + 124:at + 135], 8) // 512) * 512
            if length < at:
                return "error cut short"
        return "error ends too early" if length < at + 512 else f"rows {samples}"
    return text


def tars():
    good = sample("a") + sample("b") + sample("dir/c", b" 16777215\n")
    zstd = lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data)
    yield from cuts("tar", ".tar", "tar", good + END, "rows 3", text_of_cut_tar(good + END, 3))
    yield from cuts("targz", ".tar.gz", "tar", gzipped(good + END), "rows 3", "error ends too early")
    yield from cuts("tarzst", ".tar.zst", "tar", zstd(good + END), "rows 3", "error ends too early")
    a, image, label = sample("a"), member("b.jpg", SMALL_JPEG), member("b.cls", b"1")
    padded = SMALL_JPEG + bytes(-len(SMALL_JPEG) % 512)
    long_name = "long/" * 30 + "b"
    binary = lambda number: b"\x80" + number.to_bytes(11, "big")
    rows = {"one_end_block": (a + bytes(512), 1), "zeros_behind": (a + bytes(10240), 1),
            "size_spaces": (member("b.jpg", SMALL_JPEG, size=b"%11o " % len(SMALL_JPEG)) + label + END, 1),
            "size_base256": (member("b.jpg", SMALL_JPEG, size=binary(len(SMALL_JPEG))) + label + END, 1),
            "checksum_spaces": (member("README", checksum=b"%6o\0 " % unsigned_sum(member("README"))) + a + END, 1),
            "pax_size": (pax((b"size", b"%d" % len(SMALL_JPEG))) + member("b.jpg", claimed=0) + padded + label + END,
                         1),
            "pax_path": (pax((b"path", long_name.encode() + b".jpg")) + member("x", SMALL_JPEG) +
                         pax((b"path", long_name.encode() + b".cls")) + member("y", b"4") + END, 1),
            "pax_global": (pax((b"comment", b"hello"), kind=b"g") + a + END, 1),
            "pax_unknown": (pax((b"SCHILY.xattr.user", noise("xattr", 50)), (b"mtime", b"-1e99")) + a + END, 1),
            "gnu_long_name": (member("././@LongLink", (long_name + ".jpg").encode() + b"\0", b"L") + image +
                              member("././@LongLink", (long_name + ".cls").encode() + b"\0", b"L") + label + END, 1),
            "gnu_long_link": (member("././@LongLink", b"target\0", b"K") + a + END, 1),
            "folder": (member("dir/", kind=b"5") + sample("dir/a") + END, 1),
            "folder_with_size": (member("dir/", kind=b"5", claimed=1 << 20) + sample("dir/a") + END, 1),
            "absolute": (sample("/etc/passwd") + END, 1), "dots": (sample("../../../etc/a") + END, 1),
            "name_not_utf8": (member(b"\xff\xfe\x80.jpg", SMALL_JPEG) + member(b"\xff\xfe\x80.cls", b"1") + END, 1),
            "name_newline_esc": (sample("a\nb\r\x1b[31mred\x07") + END, 1),
            "name_100_bytes": (sample("n" * 96) + END, 1),
            "old_v7": (member("a.jpg", SMALL_JPEG, b"\0") + member("a.cls", b"1", b"\0") + END, 1),
            "not_an_image": (sample("a", image=b"no image") + END, 1), "image_empty": (sample("a", image=b"") + END, 1),
            "json_label": (image + member("b.json", b'{"label": 7}') + END, 1),
            "upper_case": (member("b.JPG", SMALL_JPEG) + member("b.CLS", b"1") + END, 1),
            "other_members": (member("README") + member("__meta__", b"x") + member(".hidden", b"x") + a + END, 1),
            "several_images": (member("b.png", b"x") + image + label + member("b.txt", b"x" * 700) + END, 1)}
    for name, (file, count) in rows.items():
        yield f"tar_{name}.tar", "tar", file, f"rows {count}"
    packed = {"gz_members": (gzipped(good[:700]) + gzipped(good[700:] + END), "gz"),
              "gz_zeros": (gzipped(good + END) + bytes(600), "gz"),
              "zst_frames": (zstd(good[:700]) + zstd(good[700:] + END), "zst"),
              "zst_skippable": (zstd(good + END) + b"\x50\x2a\x4d\x18\4\0\0\0skip", "zst")}
    for name, (file, ending) in packed.items():
        yield f"tar_{name}.tar.{ending}", "tar", file, "rows 3"

    short, size, broken = "cut short", "whose size is no number", "pax header with a broken"
    raw_pax = lambda text: member("PaxHeader", text, b"x") + a
    sparse = pax((b"GNU.sparse.major", b"1"), (b"GNU.sparse.minor", b"0")) + image
    errors = {"empty": (b"", "shorter than a header"), "byte": (b"a", "shorter than a header"),
              "text": (b"text " * 200, "not a tar"),
              "ends_only": (END, "holds no sample"),
              "checksum_first": (member("a.jpg", checksum=b"000000\0 ") + a, "not a tar"),
              "checksum_later": (a + member("b.jpg", checksum=b"000001\0 "), "a header whose checksum"),
              "checksum_no_number": (a + member("b.jpg", checksum=b"zzzzzz\0 "), "a header whose checksum"),
              "size_negative": (a + member("b.jpg", size=b"\xff" * 12), size),
              "size_letters": (a + member("b.jpg", size=b"abc".ljust(12)), size),
              "size_digit_9": (a + member("b.jpg", size=b"00000000009\0"), size),
              "size_minus": (a + member("b.jpg", size=b"-0000000001\0"), size),
              "size_2to95": (a + member("b.jpg", size=b"\x8f" + b"\xff" * 11), size),
              "size_2to62": (a + member("b.jpg", size=binary(1 << 62)), short),
              "size_2to64": (a + member("b.jpg", size=binary((1 << 64) - 1)) + END, size),
              "size_past_end": (a + member("b.jpg", claimed=9999) + END, short),
              "pax_size_2to63": (pax((b"size", b"9223372036854775808")) + image, short),
              "pax_size_max": (pax((b"size", b"18446744073709551615")) + image, short),
              "pax_size_minus": (pax((b"size", b"-1")) + image, broken),
              "pax_size_text": (pax((b"size", b"1e3")) + image, broken),
              "pax_size_2to64": (pax((b"size", b"18446744073709551616")) + image, broken),
              "pax_no_equals": (raw_pax(b"9 path..\n"), broken),
              "pax_length_0": (raw_pax(b"0 a=b\n"), broken), "pax_length_long": (raw_pax(b"99 path=b\n"), broken),
              "pax_length_huge": (raw_pax(b"9" * 30 + b" a=b\n"), broken),
              "pax_length_minus": (raw_pax(b"-5 a=b\n"), broken),
              "pax_no_newline": (raw_pax(b"9 path=bc"), broken), "pax_random": (raw_pax(noise("pax", 400)), broken),
              "pax_claims_2g": (member("PaxHeader", b"x", b"x", claimed=1 << 31) + a, short),
              "pax_global_path": (pax((b"path", b"a.jpg"), kind=b"g") + a, "every member the same"),
              "pax_path_zero": (pax((b"path", b"b\0.jpg")) + image, "with a zero in it"),
              "pax_no_next": (a + pax((b"path", b"b.jpg")) + END, "and no next"),
              "gnu_no_next": (a + member("././@LongLink", b"b.jpg\0", b"L") + END, "and no next"),
              "gnu_claims": (member("././@LongLink", b"b\0", b"L", claimed=1 << 30) + image, short),
              "sparse": (member("b.jpg", b"x", b"S"), "is a sparse file"),
              "sparse_pax": (sparse, "a sparse file"), "link": (a + member("b.jpg", kind=b"2"), "is a link"),
              "hard_link": (a + member("b.jpg", kind=b"1"), "is a link"),
              "name_empty": (a + member(b"", b"x"), "without a name"),
              "twice": (image + image + label + END, "has this field already"),
              "key_again": (sample("a") + sample("b") + sample("a") + END, "its key was there before"),
              "no_end": (a, "no mark of its end"),
              "behind_end": (a + END + b"garbage", "follows the archive's end"),
              "tar_behind_end": (a + END + sample("b") + END, "follows the archive's end"),
              "no_label": (image + END, "has no label"), "no_image": (label + END, "has no jpg"),
              "json_no_label": (image + member("b.json", b'{"a":1}') + END, "has no label"),
              "json_list": (image + member("b.json", b"[1]") + END, "has no label"),
              "json_broken": (image + member("b.json", b'{"label":') + END, "broken JSON"),
              "json_deep": (image + member("b.json", b"[" * 30000) + END, "broken JSON"),
              "json_minus": (image + member("b.json", b'{"label":-1}') + END, "must be a number"),
              "json_huge": (image + member("b.json", b'{"cls":1e400}') + END, "broken JSON"),
              "json_text": (image + member("b.json", b'{"cls":"1"}') + END, "must be a number"),
              "label_long": (sample("a", b"1" * 65) + END, "too long"), "zip": (b"PK\3\4" + bytes(1000), "not a tar"),
              "bz2": (b"BZh9" + noise("bz2", 600), "not a tar")}
    errors |= {f"type_{kind}": (a + member("b.jpg", kind=kind.encode()), "is no file") for kind in "346V"}
    labels = {"text": b"cat", "empty": b"", "minus": b"-1", "large": b"16777216", "fraction": b"1.5", "zero": b"1\x002"}
    for name, text in labels.items():
        errors[f"label_{name}"] = (sample("a", text) + END, "the label must be")
    for name, (file, text) in errors.items():
        yield f"tar_bad_{name}.tar", "tar", file, "error " + text
    archive = good + END
    fields = b"".join(member(f"a.f{i}") for i in range(1001))
    window = b"\x28\xb5\x2f\xfd\0\xa8" + bytes([len(good) & 31 << 3, 0, 0])
    packed = {"crc": (gzipped(archive, crc=1), "gz", "broken gzip data"),
              "length": (gzipped(archive, length=1), "gz", "broken gzip data"),
              "method": (b"\x1f\x8b\7" + gzipped(archive)[3:], "gz", "broken gzip data"),
              "deflate": (gzipped(archive)[:10] + b"\xff" * 99, "gz", "broken gzip data"),
              "behind": (gzipped(archive) + b"garbage", "gz", "not gzip"),
              "magic_only": (b"\x1f\x8b", "gz", "ends too early"),
              "of_nothing": (gzipped(b""), "gz", "shorter than a header"),
              "pax_bomb": (gzipped(member("P", kind=b"x", claimed=1 << 32) + END), "gz", "too long"),
              "name_bomb": (gzipped(member("P", kind=b"L", claimed=1 << 30) + END), "gz", "too long"),
              "image_2to29": (gzipped(member("a.jpg", claimed=1 << 29)), "gz", "is too large"),
              "member_2to40": (gzipped(member("a.jpg", size=binary(1 << 40))), "gz", "is too large"),
              "fields_1001": (gzipped(fields + END), "gz", "more than 1000 fields"),
              "checksum": (flipped(zstd(archive), 8 * len(zstd(archive)) - 1), "zst", "broken zstd data"),
              "window": (window, "zst", "broken zstd data"),
              "zst_magic_only": (b"\x28\xb5\x2f\xfd", "zst", "ends too early"),
              "zst_behind": (zstd(archive) + b"garbage", "zst", "broken zstd data"),
              "dictionary": (b"\x28\xb5\x2f\xfd\3\x58" + struct.pack("<I", 77) + b"\1\0\0", "zst", "broken zstd data"),
              "padding_bomb": (zstd(archive + bytes(66 << 20)), "zst", "no end of the padding")}
    for name, (file, ending, text) in packed.items():
        yield f"tar_bad_{name}.tar.{ending}", "tar", file, "error " + text
