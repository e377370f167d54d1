"""Pictures, and how Pillow writes and reads them."""

import io
import random
import zlib

from PIL import Image


def picture(width, height, mode="RGB", seed=0):
    """A gradient in every channel, with noise on it."""
    rng = random.Random(f"{width} {height} {mode} {seed}")
    channels = len(Image.new(mode, (1, 1)).getbands())
    pixels = bytes((x * (3 + c) + y * (6 - c) + rng.randrange(24)) & 255
                   for y in range(height) for x in range(width) for c in range(channels))
    return Image.frombytes(mode, (width, height), pixels)


def saved(image, form, **options):
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def pixels(file):
    """What Pillow reads."""
    image = Image.open(io.BytesIO(file)).convert("RGB")
    return f"pixels {image.width} {image.height} {zlib.crc32(image.tobytes()):x}"
