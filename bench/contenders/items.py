"""How the Python contenders make one picture: float32 [3, side, side], its crop, flip and normalisation as the plan says."""

import numpy as np

from serving import MEAN, STD

SCALE = np.float32(1 / (255 * np.array(STD)))[:, None, None]
SHIFT = np.float32(-np.array(MEAN) / np.array(STD))[:, None, None]


def normalized(pixels):
    """From uint8 [height, width, 3]."""
    values = pixels.transpose(2, 0, 1).astype(np.float32, order="C")
    values *= SCALE
    values += SHIFT
    return values


def with_pillow(work, epoch, index):
    """As torchvision does it: Pillow's decoder and antialiased resize. A loader without torch uses this."""
    from PIL import Image
    x, y, width, height, flip = work.crop(epoch, index)
    with Image.open(work.paths[index]) as image:
        crop = image.convert("RGB").crop((x, y, x + width, y + height)).resize((work.side, work.side), Image.BILINEAR)
    if flip:
        crop = crop.transpose(Image.FLIP_LEFT_RIGHT)
    return normalized(np.asarray(crop))


def with_simplejpeg(work, epoch, index):
    """As an informed user writes it: libjpeg-turbo through simplejpeg, OpenCV's bilinear resize, which does not antialias."""
    import cv2
    import simplejpeg
    x, y, width, height, flip = work.crop(epoch, index)
    with open(work.paths[index], "rb") as file:
        image = simplejpeg.decode_jpeg(file.read())
    crop = cv2.resize(image[y:y + height, x:x + width], (work.side, work.side), interpolation=cv2.INTER_LINEAR)
    return normalized(cv2.flip(crop, 1) if flip else crop)


def versions(*names):
    from importlib.metadata import version
    return ", ".join(f"{name} {version(name)}" for name in names)
