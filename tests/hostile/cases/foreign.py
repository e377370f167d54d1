"""Files of other formats that are named as images, and images that are named as others."""

from cases.parts import gzipped, joined, noise
from cases.pictures import picture, pixels, saved
from cases.png_writer import own_png
from cases.webp import riff


def other_images():
    small = picture(12, 10)
    contents = {"gif": saved(small, "GIF"), "bmp": saved(small, "BMP"), "tiff": saved(small, "TIFF"),
                "pdf": b"%PDF-1.7\n1 0 obj\n<<>>\nendobj\n", "html": b"<!DOCTYPE html><html><body>404</body></html>",
                "elf": b"\x7fELF\2\1\1" + bytes(57), "empty": b"", "byte": b"\xff", "zeros": bytes(1000),
                "text": b"hello\n",
                "random": b"\x01" + noise("image", 999), "avif": b"\0\0\0\x20ftypavif" + bytes(50),
                "gzip": gzipped(b"x"),
                "jpeg_shifted": b"\n" + saved(small, "JPEG"), "svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
                "git_lfs": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"}
    for name, file in contents.items():
        yield f"other_{name}.jpg", "image", file, "error not a JPEG, PNG or WebP"
    yield "other_avi.jpg", "image", riff([(b"LIST", bytes(40))], kind=b"AVI "), "error not a JPEG, PNG or WebP"
    for name, file in ("png", joined(own_png())), ("webp", saved(small, "WEBP")), ("jpeg", saved(small, "JPEG")):
        yield f"other_{name}.{'png' if name == 'jpeg' else 'jpg'}", "image", file, pixels(file)
